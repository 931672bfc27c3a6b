//! A line of a history: a run of a commit, with what must be equal for its figures to be comparable.

use kvdyno_core::results::Run;
use kvdyno_core::results::comparison::Conditions;
use kvdyno_core::results::figures::compared;
use kvdyno_core::results::summary::{Cell, PhaseSummary, RunState, Summary, is_mutant};
use kvdyno_measure::text::counted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the lines; later versions of kvdyno must load a released one.
const SCHEMA: u32 = 1;

/// A run of a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The schema of the tool that wrote it.
    pub schema: u32,
    /// The commit that was measured; any text.
    pub commit: String,
    /// The time of the commit, or else of the run, UTC, RFC 3339.
    pub time: String,
    /// A remark of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The run's id.
    pub run: String,
    /// Version of the tool that measured.
    pub tool_version: String,
    /// The machine and the settings.
    pub conditions: Conditions,
    /// The cells that have figures.
    pub cells: Vec<HistoryCell>,
}

/// An engine in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryCell {
    /// The workload's name.
    pub workload: String,
    /// The phase's name.
    pub phase: String,
    /// The requested engine.
    pub engine: String,
    /// The requested options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// The effective durability level.
    pub level: String,
    /// The values of each figure by its name: one for each run that counts. A figure that one of these runs does not have is
    /// absent.
    pub figures: BTreeMap<String, Vec<f64>>,
}

/// A cell of which not all runs have figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddCell {
    /// `quick / read: sqlite: 1 of 3 runs has no figures (crashed: SIGSEGV)`.
    pub text: String,
    /// Whether none of its runs has figures, so that the history does not have the cell.
    pub is_missing: bool,
}

impl HistoryEntry {
    /// The line of a run. The figures are those by which runs are compared.
    pub fn of(
        run: &Run,
        summary: &Summary,
        commit: String,
        time: String,
        note: Option<String>,
    ) -> HistoryEntry {
        HistoryEntry {
            schema: SCHEMA,
            commit,
            time,
            note,
            run: run.id.clone(),
            tool_version: run.tool_version.clone(),
            conditions: Conditions::of(run),
            cells: cells(summary).filter_map(|(phase, cell)| values(phase, cell)).collect(),
        }
    }

    /// The cells that the history does not have, or has from fewer runs than planned.
    pub fn odd_cells(summary: &Summary) -> Vec<OddCell> {
        cells(summary).filter_map(|(phase, cell)| odd(phase, cell)).collect()
    }

    /// The line, with its newline.
    pub fn line(&self) -> String {
        let json = serde_json::to_string(self)
            .expect("an entry has only texts and finite numbers, which JSON can hold");
        json + "\n"
    }
}

/// The engines of all phases. Those that store nothing measure the harness, and those with planted bugs the checks.
fn cells(summary: &Summary) -> impl Iterator<Item = (&PhaseSummary, &Cell)> {
    let of_phase = |phase| PhaseSummary::cells(phase).map(move |cell| (phase, cell));
    summary.phases.iter().flat_map(of_phase).filter(|(_, cell)| !is_mutant(&cell.engine))
}

/// The figures of the runs that count. A race makes phases longer, and a longer phase may have warmer caches: those runs do not
/// count here.
fn values(phase: &PhaseSummary, cell: &Cell) -> Option<HistoryCell> {
    let level = cell.durability_effective?;
    let runs: Vec<_> = cell.runs.iter().filter(|run| run.state.counts() && run.length == 1.0).collect();
    let mut figures = BTreeMap::new();
    for figure in compared() {
        let values: Option<Vec<f64>> = runs.iter().map(|run| figure.of_run(run)).collect();
        if let Some(values) =
            values.filter(|all| !all.is_empty() && all.iter().all(|value| value.is_finite()))
        {
            figures.insert(figure.name.to_string(), values);
        }
    }
    (!figures.is_empty()).then(|| HistoryCell {
        workload: phase.workload.clone(),
        phase: phase.name.clone(),
        engine: cell.engine.clone(),
        options: cell.options.clone(),
        level: level.to_string(),
        figures,
    })
}

fn odd(phase: &PhaseSummary, cell: &Cell) -> Option<OddCell> {
    let lacking: Vec<_> = cell.runs.iter().filter(|run| !run.state.counts()).collect();
    if lacking.is_empty() {
        return None;
    }
    let why = lacking.iter().find_map(|run| match &run.state {
        RunState::Failed { cause: why } | RunState::NotRun { reason: why } => Some(why.clone()),
        _ => None,
    });
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    let have = if lacking.len() == 1 { "has" } else { "have" };
    let text = format!(
        "{} / {}: {}: {} of {} {have} no figures{why}",
        phase.workload,
        phase.name,
        cell.label,
        lacking.len(),
        counted(cell.runs.len() as u64, "run", "runs")
    );
    Some(OddCell { text, is_missing: lacking.len() == cell.runs.len() })
}

/// What a history's file has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryFile {
    /// Its lines, in their order.
    pub entries: Vec<HistoryEntry>,
    /// Lines that are not counted, each with the reason.
    pub warnings: Vec<String>,
    /// The end of what is kept when a line is appended, bytes: the rest was torn by a crash.
    pub whole_bytes: u64,
    /// Whether the last line lacks its newline.
    pub is_open: bool,
}

/// The one field that all schemas share.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

impl HistoryFile {
    /// Reads a file, which may end anywhere and contain anything. Lines that cannot be read are skipped and told; they stay in the file,
    /// except for a torn end.
    pub fn read(bytes: &[u8]) -> HistoryFile {
        let mut file = HistoryFile::default();
        let mut end = 0;
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            end += line.len() as u64;
            let is_open = !line.ends_with(b"\n");
            match parsed(line) {
                _ if line.trim_ascii().is_empty() => {}
                Ok(entry) => {
                    let is_same =
                        |seen: &HistoryEntry| (&seen.commit, &seen.run) == (&entry.commit, &entry.run);
                    match file.entries.iter().any(is_same) {
                        true => file.warnings.push(format!("line {number} is there twice: it counts once")),
                        false => file.entries.push(entry),
                    }
                }
                Err(_) if is_open => {
                    file.warnings.push(format!(
                        "line {number} is torn, as by a crash while it was written: it is ignored"
                    ));
                    return file;
                }
                Err(reason) => file.warnings.push(format!("line {number} is skipped: {reason}")),
            }
            (file.whole_bytes, file.is_open) = (end, is_open);
        }
        file
    }
}

fn parsed(line: &[u8]) -> Result<HistoryEntry, String> {
    let Versioned { schema } =
        serde_json::from_slice(line).map_err(|error| format!("it cannot be read: {error}"))?;
    if schema > SCHEMA {
        return Err(format!("it has schema {schema}, and this version of kvdyno knows those up to {SCHEMA}"));
    }
    serde_json::from_slice(line).map_err(|error| format!("it cannot be read: {error}"))
}
