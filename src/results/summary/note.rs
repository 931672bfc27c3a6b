//! What a reader must know of a cell: a mark for a narrow column, and a sentence for below the table.

use super::cell::{Cell, RunState};
use crate::measure::units::share_text;
use crate::measure::warning::HARNESS_SHARE_LIMIT;
use crate::results::{Outcome, Record, Run};
use serde::Serialize;

/// One thing that a reader must know of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A word or two: `harness 23%`, `1/3 failed`.
    pub mark: String,
    /// The whole of it; none if the mark says all.
    pub detail: Option<String>,
}

impl Note {
    fn mark(mark: String) -> Note {
        Note { mark, detail: None }
    }

    pub(super) fn detailed(mark: impl Into<String>, detail: String) -> Note {
        Note { mark: mark.into(), detail: Some(detail) }
    }
}

/// What went wrong with a trial, in a line; none if nothing did.
pub fn cause(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Ok => return None,
        Outcome::WrongAnswers { faults } => match faults.first() {
            Some(first) => format!("wrong answers: {first}"),
            None => "wrong answers".to_string(),
        },
        Outcome::Failed { cause, text } if text.is_empty() => cause.to_string(),
        Outcome::Failed { cause, text } => format!("{cause}: {text}"),
        Outcome::Crashed { signal, .. } => format!("crashed: {signal}"),
    })
}

/// How much the clocks of one machine may differ between calibrations, as a share.
const CLOCK_LIMIT: f64 = 0.01;

/// What a record tells of having been made otherwise than its run was begun: by another kvdyno, or where the same kind of
/// clock runs at another rate.
pub(super) fn stranger(run: &Run, record: &Record) -> Option<Note> {
    if record.tool_version != run.tool_version {
        let (own, begun) = (&record.tool_version, &run.tool_version);
        return Some(Note::detailed(
            format!("kvdyno {own}"),
            format!("measured with kvdyno {own}, and the run was begun with {begun}: compare with care"),
        ));
    }
    let clock = record.clock.as_ref().filter(|clock| clock.kind == run.clock.kind)?;
    let differs = (clock.ns_per_tick / run.clock.ns_per_tick - 1.0).abs() > CLOCK_LIMIT;
    differs.then(|| {
        let text =
            "its clock ticks at another rate than the run's: it was perhaps measured on another machine";
        Note::detailed("other clock", text.to_string())
    })
}

/// What a reader must know of an engine that nobody has held against the rules.
pub(super) fn unverified(run: &Run, engine: &str) -> Option<Note> {
    run.unverified.iter().any(|name| name == engine).then(|| {
        let text = format!(
            "nothing that {engine} declares was proven when the run was planned; `kvdyno verify {engine}` tries it"
        );
        Note::detailed("not verified", text)
    })
}

/// All notes of a cell, the gravest first.
pub(super) fn notes(cell: &Cell) -> Vec<Note> {
    let mut notes = failures(cell);
    if let Some(share) = cell.evicted_share.filter(|_| cell.is_cache()) {
        let share = share_text(share);
        let detail = format!(
            "{share} of its reads of keys that had been written found nothing, as those of a cache may"
        );
        notes.push(Note::detailed(format!("evicted {share}"), detail));
    }
    if let Some(class) = cell.class.as_ref().filter(|_| !cell.is_cache()) {
        let mark = class.split(',').next().unwrap_or(class);
        let detail =
            format!("{class}: its ops go over a socket to another process, so its rank is not among equals");
        notes.push(Note::detailed(mark, detail));
    }
    notes.extend(unaccounted(cell));
    notes.extend(disturbed(cell));
    if cell.harness_share.is_some_and(|share| share > HARNESS_SHARE_LIMIT) {
        let percent = cell.harness_share.unwrap_or_default() * 100.0;
        notes.push(Note::mark(format!("harness {percent:.0}%")));
    }
    if cell.retries > 0 {
        notes.push(Note::mark(format!("{} retries", cell.retries)));
    }
    notes.extend(cell.emulated.iter().map(|text| Note::detailed("emulated", text.clone())));
    notes
}

/// Runs whose driver's times do not account for its calls.
fn unaccounted(cell: &Cell) -> Option<Note> {
    let told: Vec<(u32, &str)> =
        cell.runs.iter().filter_map(|run| Some((run.repetition, run.unaccounted.as_deref()?))).collect();
    let mark = format!("{}/{} times unaccounted", told.len(), cell.runs.len());
    (!told.is_empty())
        .then(|| Note::detailed(mark, format!("{}; not ranked", in_one(&told, cell.runs.len()))))
}

/// Runs whose figures count and that something else on the machine disturbed.
fn disturbed(cell: &Cell) -> Option<Note> {
    let runs: Vec<(u32, String)> = cell
        .runs
        .iter()
        .filter(|run| !run.disturbed.is_empty())
        .map(|run| (run.repetition, run.disturbed.join(" and ")))
        .collect();
    let told: Vec<String> = runs.iter().map(|(run, text)| format!("run {run}: {text}")).collect();
    let mark = format!("{}/{} disturbed", runs.len(), cell.runs.len());
    (!runs.is_empty()).then(|| Note::detailed(mark, told.join("; ")))
}

/// Runs that did not go as planned, by what became of them.
fn failures(cell: &Cell) -> Vec<Note> {
    let of = cell.runs.len();
    let mut notes = Vec::new();
    let failed = told(cell, |state| match state {
        RunState::Failed { cause } => Some(cause),
        _ => None,
    });
    if !failed.is_empty() {
        notes.push(Note::detailed(format!("{}/{of} failed", failed.len()), in_one(&failed, of)));
    }
    let later = told(cell, |state| match state {
        RunState::FailedLater { cause } => Some(cause),
        _ => None,
    });
    if !later.is_empty() {
        notes.push(Note::detailed(format!("{}/{of} failed later", later.len()), in_one(&later, of)));
    }
    let not_run = told(cell, |state| match state {
        RunState::NotRun { reason } => Some(reason),
        _ => None,
    });
    if !not_run.is_empty() {
        notes.push(Note::detailed("did not run", in_one(&not_run, of)));
    }
    let pending = cell.runs.iter().filter(|run| run.state == RunState::Pending).count();
    if pending > 0 {
        notes.push(Note::mark(format!("{pending}/{of} missing")));
    }
    if cell.settings_differ {
        notes.push(Note::detailed(
            "other settings",
            "its phase was run with other settings than the rest".to_string(),
        ));
    }
    notes
}

/// What the runs in one state say, with their repetitions.
fn told(cell: &Cell, text_of: fn(&RunState) -> Option<&String>) -> Vec<(u32, &str)> {
    cell.runs.iter().filter_map(|run| Some((run.repetition, text_of(&run.state)?.as_str()))).collect()
}

/// The texts in one; once only where all of the cell's runs say the same, for what an engine lacks it lacks each time.
fn in_one(told: &[(u32, &str)], of: usize) -> String {
    match told {
        [(_, first), rest @ ..] if told.len() == of && rest.iter().all(|(_, text)| text == first) => {
            first.to_string()
        }
        _ => told.iter().map(|(run, text)| format!("run {run}: {text}")).collect::<Vec<_>>().join("; "),
    }
}
