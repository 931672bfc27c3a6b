//! The file of saved counts.

use super::RUNS;
use super::counted::{PhaseCounts, is_call};
use crate::cli::error::CliError;
use crate::cli::folders::write_new;
use kvdyno_core::results::Record;
use kvdyno_core::workload::{Workload, parse};
use kvdyno_measure::Machine;
use kvdyno_measure::text::plain_text;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// The format of the file.
const FORMAT: u32 = 1;

/// Counts of several runs, and what they were counted with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    format: u32,
    /// What made it: the version of kvdyno and of the engine, the machine. They are compared by name.
    pub made_with: BTreeMap<String, String>,
    /// The engine as the user gave it.
    pub engine: String,
    /// The name of the workload.
    pub workload_name: String,
    /// The workload as a file, with all changes.
    pub workload: String,
    /// The phases, in order.
    pub phases: Vec<SavedPhase>,
}

/// The counts of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedPhase {
    pub name: String,
    /// Its ops in each run.
    pub ops: Vec<u64>,
    /// Each count in each run.
    pub counts: BTreeMap<String, Vec<u64>>,
}

impl SavedPhase {
    /// A count per op in each run. A call that is in none was not made; another count is then unknown.
    pub(super) fn per_op(&self, name: &str) -> Option<Vec<f64>> {
        let of = |(count, ops): (u64, &u64)| count as f64 / (*ops).max(1) as f64;
        match self.counts.get(name) {
            Some(runs) => Some(runs.iter().copied().zip(&self.ops).map(of).collect()),
            None => is_call(name).then(|| vec![0.0; self.ops.len()]),
        }
    }
}

/// What counts depend on, of a run.
pub(super) fn made_with(record: &Record, folder: &Path) -> BTreeMap<String, String> {
    let machine = Machine::observe(folder);
    let mut all = BTreeMap::from([("kvdyno".to_string(), record.tool_version.clone())]);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            all.insert(name.to_string(), plain_text(&value));
        }
    };
    add("engine", record.engine.as_ref().map(|engine| format!("{} {}", engine.name, engine.version)));
    let level = record.phases.first().and_then(|phase| phase.durability_effective);
    add("level", level.map(|level| level.to_string()));
    add("processor", machine.cpu_model);
    add("CPUs", machine.cpus_allowed.map(|cpus| cpus.to_string()));
    add("kernel", machine.kernel);
    add("system", machine.os);
    all
}

/// Puts the counts of several runs together by phase. A call that a run does not have was not made in it; another count that is not
/// known of each run is skipped.
pub(super) fn by_phase(runs: &[Vec<PhaseCounts>]) -> Vec<SavedPhase> {
    let Some(first) = runs.first() else { return Vec::new() };
    let of = |place: usize| {
        let own: Vec<&PhaseCounts> = runs.iter().filter_map(|run| run.get(place)).collect();
        let names: BTreeSet<&String> = own.iter().flat_map(|run| run.counts.keys()).collect();
        let values = |name: &String| -> Option<Vec<u64>> {
            own.iter().map(|run| run.counts.get(name).copied().or(is_call(name).then_some(0))).collect()
        };
        SavedPhase {
            name: first[place].phase.clone(),
            ops: own.iter().map(|run| run.ops).collect(),
            counts: names.into_iter().filter_map(|name| Some((name.clone(), values(name)?))).collect(),
        }
    };
    (0..first.len()).map(of).collect()
}

impl Saved {
    pub(super) fn new(
        engine: String,
        workload: &Workload,
        made_with: BTreeMap<String, String>,
        runs: &[Vec<PhaseCounts>],
    ) -> Saved {
        Saved {
            format: FORMAT,
            made_with,
            engine,
            workload_name: workload.name.clone(),
            workload: workload.to_toml(),
            phases: by_phase(runs),
        }
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Saved, CliError> {
        let text = kvdyno_measure::read_text(path).map_err(|error| {
            CliError::usage(format!("{}: {error}", path.display())).hint("kvdyno guard save FILE makes it")
        })?;
        let wrong = |why: String| {
            CliError::usage(format!("{} is not a guard file: {why}", path.display()))
                .hint("make it again with kvdyno guard save")
        };
        let saved: Saved = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if saved.format != FORMAT {
            return Err(wrong(format!("its format is {}, and this version reads {FORMAT}", saved.format)));
        }
        // A file with fewer runs or phases could not show that a count rose.
        let has_all = |runs: usize| runs == RUNS;
        let lacks = |phase: &&SavedPhase| {
            !has_all(phase.ops.len()) || !phase.counts.values().all(|runs| has_all(runs.len()))
        };
        if let Some(phase) = saved.phases.iter().find(lacks) {
            return Err(wrong(format!("phase {} does not have {RUNS} values of each count", phase.name)));
        }
        let workload =
            parse(&saved.workload, &saved.workload_name).map_err(|error| wrong(error.to_string()))?;
        if !workload.phases.iter().map(|phase| &phase.name).eq(saved.phases.iter().map(|phase| &phase.name)) {
            return Err(wrong("its phases are not those of its workload".into()));
        }
        Ok(saved)
    }

    /// Writes it to a new file.
    pub(super) fn write(&self, path: &Path) -> Result<(), CliError> {
        let mut text =
            serde_json::to_string_pretty(self).map_err(|error| CliError::failed(error.to_string()))?;
        text.push('\n');
        write_new(path, |out| out.write_all(text.as_bytes()))
    }
}
