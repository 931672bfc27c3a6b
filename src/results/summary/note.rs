//! What a reader must know of a cell: a mark for a narrow column, and a sentence for below the table.

use super::cell::{Cell, RunState};
use crate::measure::warning::HARNESS_SHARE_LIMIT;
use crate::results::Outcome;
use serde::Serialize;

/// One thing that a reader must know of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A word or two: `harness 23%`, `1 of 3 failed`.
    pub mark: String,
    /// The whole of it; none if the mark says all.
    pub detail: Option<String>,
}

impl Note {
    fn mark(mark: String) -> Note {
        Note { mark, detail: None }
    }

    fn detailed(mark: impl Into<String>, detail: String) -> Note {
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
        Outcome::Failed { cause, text } if text.is_empty() => cause.clone(),
        Outcome::Failed { cause, text } => format!("{cause}: {text}"),
        Outcome::Crashed { signal, .. } => format!("crashed: {signal}"),
    })
}

/// All notes of a cell, the gravest first.
pub(super) fn notes(cell: &Cell) -> Vec<Note> {
    let mut notes = failures(cell);
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

/// Runs that give no figures, by what became of them.
fn failures(cell: &Cell) -> Vec<Note> {
    let of = cell.runs.len();
    let mut notes = Vec::new();
    let causes = |wanted: fn(&RunState) -> Option<&String>| -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for run in &cell.runs {
            let Some(cause) = wanted(&run.state) else { continue };
            told.push(format!("run {}: {cause}", run.repetition));
        }
        told
    };
    let failed = causes(|state| match state {
        RunState::Failed { cause } => Some(cause),
        _ => None,
    });
    if !failed.is_empty() {
        notes.push(Note::detailed(format!("{} of {of} failed", failed.len()), failed.join("; ")));
    }
    let later = causes(|state| match state {
        RunState::FailedLater { cause } => Some(cause),
        _ => None,
    });
    if !later.is_empty() {
        notes.push(Note::detailed(format!("{} of {of} failed later", later.len()), later.join("; ")));
    }
    let not_run = causes(|state| match state {
        RunState::NotRun { reason } => Some(reason),
        _ => None,
    });
    if !not_run.is_empty() {
        notes.push(Note::detailed("did not run", one_reason(&not_run)));
    }
    let pending = cell.runs.iter().filter(|run| run.state == RunState::Pending).count();
    if pending > 0 {
        notes.push(Note::mark(format!("{pending} of {of} not measured")));
    }
    if cell.settings_differ {
        notes.push(Note::detailed(
            "other settings",
            "its phase was run with other settings than the rest".to_string(),
        ));
    }
    notes
}

/// The reason alone where all runs give the same, for an engine that lacks an ability lacks it in each run.
fn one_reason(told: &[String]) -> String {
    let bare =
        |text: &String| text.split_once(": ").map_or_else(|| text.clone(), |(_, reason)| reason.to_string());
    let mut reasons: Vec<String> = told.iter().map(bare).collect();
    reasons.dedup();
    if reasons.len() == 1 { reasons.remove(0) } else { told.join("; ") }
}
