//! Summarizes records for reports: cells with their medians, grouped by the effective durability level and ranked.
//!
//! All planned trials stay visible: a trial that failed, did not run or has not been measured yet is in its cell, with the
//! cause.

mod cell;
mod note;
mod order;
mod pace;
mod phase;
mod step;

pub use cell::{Arrived, Cell, Latency, Range, Ratio, RunFigures, RunState, quantile_over};
pub use note::cause;
pub(super) use order::beaten_by;
pub use order::{BY_ENGINE_TIME, WITHIN_HARNESS};
pub use pace::{PACE_LIMIT, PaceChange};
pub use phase::{Group, PhaseSummary};
pub use step::StepSummary;

use super::label::Labels;
use super::machines::{self, MachineSummary};
use super::price::Prices;
use super::race::Race;
use super::{Cause, EngineFacts, Outcome, Record, Run, SCHEMA, Trial};
use crate::workload::Workload;
use kvdyno_measure::text::{counted, few};
use kvdyno_measure::warning::Concern;
use kvdyno_measure::{CacheSize, ClockFacts, Warning};
use pace::UsualPaces;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The schema of its records.
    pub schema: u32,
    /// Version of the tool that measured.
    pub tool_version: String,
    /// The run's id.
    pub run_id: String,
    /// Start of the run, UTC, RFC 3339.
    pub started_at: String,
    /// Planned repetitions of each cell; the maximum if they differ.
    pub runs: u32,
    /// The engine that ratios refer to; none: the leader of each table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The prices of machines; none: they are not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The phases, in the order of the plan; the variants of a workload in their natural order.
    pub phases: Vec<PhaseSummary>,
    /// Open, close and other steps, for each engine.
    pub steps: Vec<StepSummary>,
    /// The engines with their effective settings, once each.
    pub engines: Vec<EngineFacts>,
    /// Engines that were known but not available, and why.
    pub absent: Vec<(String, String)>,
    /// Trials that failed.
    pub failures: Vec<Failure>,
    /// Planned trials that have not been measured.
    pub pending: u32,
    /// Warnings of the machine and of trials.
    pub warnings: Vec<TrialWarning>,
    /// The machines of a campaign; empty if one machine measured all trials.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineSummary>,
    /// The harness's buffers for keys and values, bytes; the maximum of all phases, none if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers_bytes: Option<u64>,
    /// The harness's own memory before an engine was opened, bytes; the maximum of all trials, none if unknown.
    pub rss_before_open_bytes: Option<u64>,
    /// The labels of its cells.
    #[serde(skip)]
    pub labels: Labels,
    /// The records, for reports that show them all.
    #[serde(skip)]
    pub records: Vec<Record>,
}

/// A failed trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Its id.
    pub trial: String,
    /// The requested engine.
    pub engine: String,
    /// The label of its cell.
    #[serde(skip)]
    pub label: String,
    /// The repetition, from 1.
    pub repetition: u32,
    /// The cause, in one line.
    pub cause: String,
    /// The kind of the cause, of a trial that failed without wrong answers and whose process did not just die.
    #[serde(skip)]
    pub kind: Option<Cause>,
    /// Whether the engine only does not suit the workload, which its phases say as well.
    #[serde(skip)]
    pub is_unfit: bool,
    /// The last lines of the process's stderr, or the first faults.
    pub details: Vec<String>,
}

/// A kind of warning with its first text, and the number of trials that had it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialWarning {
    /// The warning.
    pub warning: Warning,
    /// Trials that had it; 0: a warning of the run itself.
    pub trials: u32,
    /// The labels of the engines of these trials, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<String>,
}

impl TrialWarning {
    fn of_run(warning: Warning) -> TrialWarning {
        TrialWarning { warning, trials: 0, engines: Vec::new() }
    }

    /// `Phase read has 50 ops. (3 trials of lmdb and sled)`, without the advice; with at most so many names.
    pub fn seen(&self, names: usize) -> String {
        let text = &self.warning.text;
        match u64::from(self.trials) {
            0 => text.clone(),
            trials => {
                let engines = few(&self.engines, names, "and");
                format!("{text} ({} of {engines})", counted(trials, "trial", "trials"))
            }
        }
    }
}

impl Summary {
    /// Summarizes the records of a run, with ratios to the leader of each table; records of unplanned trials are ignored.
    pub fn new(run: &Run, records: Vec<Record>) -> Summary {
        Summary::against(run, records, None)
    }

    /// Like [`Summary::new`], with ratios to the engine `baseline` in each table that has it.
    pub fn against(run: &Run, records: Vec<Record>, baseline: Option<&str>) -> Summary {
        let planned: HashSet<&str> = run.plan.trials.iter().map(|trial| trial.id.as_str()).collect();
        let kept: Vec<Record> =
            records.into_iter().filter(|record| planned.contains(record.trial.id.as_str())).collect();
        let found = Found::new(run, &kept);
        let pending = run.plan.trials.iter().filter(|trial| found.record(&trial.id).is_none()).count();
        let phases = phase::summarize(run, &found, baseline);
        let machines = machines::machines(run, &phases);
        let of_machines = machines::warnings(&machines).into_iter();
        let buffers = kept.iter().flat_map(|record| &record.phases).filter_map(|phase| phase.buffers_bytes);
        Summary {
            schema: SCHEMA,
            tool_version: run.tool_version.clone(),
            run_id: run.id.clone(),
            started_at: run.started_at.clone(),
            runs: run.plan.race.as_ref().map_or(0, Race::blocks).max(repetitions(&run.plan.trials)),
            baseline: baseline.map(String::from),
            prices: None,
            phases,
            steps: step::summarize(run, &found),
            engines: engines(&kept),
            absent: run.absent.clone(),
            failures: kept.iter().filter_map(|record| failure(record, &found.labels)).collect(),
            pending: pending as u32,
            warnings: of_machines
                .chain(of_cache_sizes(&kept))
                .map(TrialWarning::of_run)
                .chain(warnings(run, &kept, &found.labels))
                .collect(),
            machines,
            buffers_bytes: buffers.max(),
            rss_before_open_bytes: kept.iter().filter_map(|record| record.rss_before_open_bytes).max(),
            labels: found.labels.clone(),
            records: kept,
        }
    }
}

/// The trials in the order of the plan, except that workloads follow each other, the variants of one in their natural order: by
/// keys, level and threads, then by the numbers in their names. A plan mixes them.
fn by_workload(run: &Run) -> Vec<&Trial> {
    let base = |workload: &Workload| workload.variant_of.clone().unwrap_or_else(|| workload.name.clone());
    let mut bases: HashMap<String, usize> = HashMap::new();
    for trial in &run.plan.trials {
        let next = bases.len();
        bases.entry(base(&trial.workload)).or_insert(next);
    }
    let mut trials: Vec<&Trial> = run.plan.trials.iter().collect();
    trials.sort_by_cached_key(|trial| {
        let workload = &trial.workload;
        let threads = workload.phases.iter().map(|phase| phase.threads).max();
        let place = bases.get(&base(workload)).copied();
        (place, workload.keys, workload.durability, threads, natural(&workload.name))
    });
    trials
}

/// The parts of a name, of which numbers are compared as numbers.
fn natural(name: &str) -> Vec<(u64, String)> {
    let parts = name.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit());
    let part = |part: &[u8]| {
        let text = String::from_utf8_lossy(part).into_owned();
        text.parse().map_or_else(|_| (0, text.clone()), |number| (number, String::new()))
    };
    parts.map(part).collect()
}

/// The number of repetitions of the workload that has the most; a slice of a campaign has not all of them.
fn repetitions(trials: &[Trial]) -> u32 {
    let mut of_workload: HashMap<&str, HashSet<u32>> = HashMap::new();
    for trial in trials {
        of_workload.entry(&trial.workload.name).or_default().insert(trial.repetition);
    }
    of_workload.values().map(|own| own.len() as u32).max().unwrap_or(0)
}

/// Whether the engine has a planted bug: such engines show that faults are found and are never ranked.
pub fn is_mutant(engine: &str) -> bool {
    engine.starts_with("mutant:")
}

/// Records, and an index by trial.
struct Found<'a> {
    run: &'a Run,
    records: &'a [Record],
    of_trial: HashMap<&'a str, &'a Record>,
    /// The numbers of the machines that measured the trials; empty if one machine measured all.
    machines: HashMap<&'a str, u32>,
    labels: Labels,
    usual_paces: UsualPaces,
}

impl<'a> Found<'a> {
    fn new(run: &'a Run, records: &'a [Record]) -> Found<'a> {
        // If two have the same id, the first is used.
        let of_trial = records.iter().rev().map(|record| (record.trial.id.as_str(), record)).collect();
        let machines = run.campaign.iter().filter(|part| part.machines.len() > 1).flat_map(|part| {
            let numbered = (1..).zip(&part.machines);
            numbered.flat_map(|(number, on)| on.trials.iter().map(move |trial| (trial.as_str(), number)))
        });
        let cells = run.plan.trials.iter().map(|trial| (trial.engine.as_str(), &trial.options[..]));
        let machines: HashMap<&str, u32> = machines.collect();
        let usual_paces = UsualPaces::new(records, &machines);
        Found { run, records, of_trial, machines, labels: Labels::new(cells), usual_paces }
    }

    fn machine(&self, trial_id: &str) -> Option<u32> {
        self.machines.get(trial_id).copied()
    }

    /// The clock of the machine that measured a trial, as it was calibrated before its first trial.
    fn clock(&self, trial_id: &str) -> &ClockFacts {
        let machines = self.run.campaign.as_ref().map_or(&[][..], |part| &part.machines);
        let on = self.machine(trial_id).and_then(|number| machines.get(number as usize - 1));
        on.map_or(&self.run.clock, |on| &on.clock)
    }

    fn record(&self, trial_id: &str) -> Option<&'a Record> {
        self.of_trial.get(trial_id).copied()
    }
}

/// Engines in order of appearance; one with two different sets of effective options appears twice.
fn engines(records: &[Record]) -> Vec<EngineFacts> {
    let mut engines: Vec<EngineFacts> = Vec::new();
    for facts in records.iter().filter_map(|record| record.engine.as_ref()) {
        if !engines.contains(facts) {
            engines.push(facts.as_ref().clone());
        }
    }
    engines
}

fn failure(record: &Record, labels: &Labels) -> Option<Failure> {
    let details = match &record.outcome {
        Outcome::Ok => return None,
        Outcome::WrongAnswers { faults } => faults.clone(),
        Outcome::Failed { .. } => Vec::new(),
        Outcome::Crashed { stderr, .. } => stderr.clone(),
    };
    let kind = match &record.outcome {
        Outcome::Failed { cause, .. } => Some(*cause),
        _ => None,
    };
    Some(Failure {
        trial: record.trial.id.clone(),
        engine: record.trial.engine.clone(),
        label: labels.of(&record.trial.engine, &record.trial.options),
        repetition: record.trial.repetition,
        cause: cause(&record.outcome).unwrap_or_default(),
        is_unfit: kind.is_some_and(Cause::is_unfitness),
        kind,
        details,
    })
}

fn warnings(run: &Run, records: &[Record], labels: &Labels) -> Vec<TrialWarning> {
    let mut all: Vec<TrialWarning> = run.warnings.iter().cloned().map(TrialWarning::of_run).collect();
    for record in records {
        let Trial { engine, options, is_floor, .. } = &record.trial;
        let label = labels.of(engine, options);
        // The calls of a null engine are so short that cold caches take a part of them, which misleads nobody. Older versions
        // warned of it.
        let misleads = |warning: &&Warning| !(*is_floor && warning.id == Concern::UnaccountedTime.id());
        for warning in record.warnings.iter().filter(misleads) {
            let place = all.iter().position(|seen| seen.warning.id == warning.id).unwrap_or_else(|| {
                all.push(TrialWarning::of_run(warning.clone()));
                all.len() - 1
            });
            // A warning of the run applies to all its trials and is not counted.
            if place >= run.warnings.len() {
                all[place].trials += 1;
                if !all[place].engines.contains(&label) {
                    all[place].engines.push(label.clone());
                }
            }
        }
    }
    all
}

/// A warning if the engines of a workload had different caches because none was requested: that of the workload in which they
/// differ the most.
fn of_cache_sizes(records: &[Record]) -> Option<Warning> {
    let mut sizes: HashMap<&str, Vec<CacheSize<'_>>> = HashMap::new();
    for record in records.iter().filter(|record| record.trial.workload.cache_bytes.is_none()) {
        let found = record
            .engine
            .as_ref()
            .and_then(|engine| Some(CacheSize { bytes: engine.cache_bytes?, engine: &engine.name }));
        sizes.entry(&record.trial.workload.name).or_default().extend(found);
    }
    let ends =
        sizes.into_values().filter_map(|own| Some((own.iter().copied().min()?, own.into_iter().max()?)));
    let (least, most) = ends.max_by_key(|(least, most)| most.bytes - least.bytes)?;
    Warning::of_cache_sizes(least, most)
}

#[cfg(test)]
mod tests;
