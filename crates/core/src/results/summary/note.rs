//! Notes on a cell: a mark for a narrow column, and a sentence for the text below the table.

use super::cell::{Cell, RunState};
use crate::results::Kind;
use crate::results::race::Race;
use crate::results::{HarnessShares, Outcome, Record, Run, Safety};
use kvdyno_measure::text::{counted, listed, middle_text, share_text, time_text};
use kvdyno_measure::{ClockFacts, shortage::telling_line, warning::HARNESS_SHARE_LIMIT};
use serde::Serialize;

/// A note on a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A word or two: `harness 23%`, `1/3 failed`.
    pub mark: String,
    /// The details; none if the mark is sufficient.
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

/// The cause of a trial's failure, in one line; none if it did not fail.
pub fn cause(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Ok => return None,
        Outcome::WrongAnswers { faults } => match faults.first() {
            Some(first) => format!("wrong answers: {first}"),
            None => "wrong answers".to_string(),
        },
        Outcome::Failed { cause, text } if text.is_empty() => cause.to_string(),
        Outcome::Failed { cause, text } => format!("{cause}: {text}"),
        Outcome::Crashed { signal, stderr, suspects } => {
            let meaning = meaning(signal).map_or_else(String::new, |meaning| format!(" ({meaning})"));
            let line = telling_line(stderr.iter().map(String::as_str));
            let line = line.map_or_else(String::new, |line| format!(": {}", middle_text(line, LINE)));
            let limits = suspects.as_ref();
            let limits = limits.map_or_else(String::new, |limits| {
                format!("; whether a limit is the reason is not known, and these are low: {limits}")
            });
            format!("crashed: {signal}{meaning}{line}{limits}")
        }
    })
}

/// Characters of a line of stderr that a cause has.
const LINE: usize = 160;

/// What a signal that its name does not explain usually means.
fn meaning(signal: &str) -> Option<&'static str> {
    match signal {
        "SIGILL" => Some("usually an instruction that this processor does not have"),
        "SIGBUS" => Some(
            "usually a mapped file that is shorter than its mapping, a disk without free space for a mapped page, or a \
             disk error",
        ),
        _ => None,
    }
}

/// The maximum difference between calibrations of the clock of one machine, as a share.
const CLOCK_LIMIT: f64 = 0.01;

/// A note on a record that was measured under other conditions than the start of its run: by another version of kvdyno, or
/// with a clock of the same kind at a different rate.
pub(super) fn stranger(run: &Run, clock_at_start: &ClockFacts, record: &Record) -> Option<Note> {
    if record.tool_version != run.tool_version {
        let (own, begun) = (&record.tool_version, &run.tool_version);
        return Some(Note::detailed(
            format!("kvdyno {own}"),
            format!("measured with kvdyno {own}, but the run was started with {begun}: compare with care"),
        ));
    }
    let clock = record.clock.as_ref().filter(|clock| clock.kind == clock_at_start.kind)?;
    let differs = (clock.ns_per_tick / clock_at_start.ns_per_tick - 1.0).abs() > CLOCK_LIMIT;
    differs.then(|| {
        let text = "its clock has another rate than the run's: it may have been measured on another machine";
        Note::detailed("other clock", text.to_string())
    })
}

/// A note on a cell whose runs used several versions of the engine.
pub(super) fn several_versions(versions: &[&String]) -> Note {
    let text = format!("its runs used the versions {} of the engine; not ranked", listed(versions, "and"));
    Note::detailed("versions differ", text)
}

/// A note on an engine that has not been verified.
pub(super) fn unverified(run: &Run, engine: &str) -> Option<Note> {
    run.unverified.iter().any(|name| name == engine).then(|| {
        let text = format!(
            "{engine} was not verified when the run was planned; run `kvdyno prove --only rules {engine}`"
        );
        Note::detailed("not verified", text)
    })
}

/// A note on a cell that is skipped of later runs of a race.
pub(super) fn left_out(race: &Race, phase: &str, engine: &str, cell: &Cell) -> Option<Note> {
    let (after, by) = race.beaten(phase, engine).filter(|_| cell.left_out > 0)?;
    let mark = format!("{} of {} runs", cell.runs.len(), race.blocks());
    let text = format!("after run {after} it could no longer be the fastest: {by} was faster");
    Some(Note::detailed(mark, text))
}

/// All notes of a cell, the most serious first.
pub(super) fn notes(cell: &Cell) -> Vec<Note> {
    let mut notes = failures(cell);
    if let Some(unfit) = cell.arrived.as_ref().and_then(|arrived| arrived.unfit.as_ref()) {
        let mark = unfit.split(':').next().unwrap_or(unfit);
        notes.push(Note::detailed(mark, format!("{unfit}; no percentile, and not ranked")));
    }
    if let Some(arrived) = cell.arrived.as_ref().filter(|arrived| arrived.is_late && arrived.unfit.is_none())
    {
        let late = arrived.late_p999_ns.map_or_else(String::new, |ns| time_text(ns as f64));
        let detail = format!("requests were sent up to {late} late at p99.9 although a thread was free");
        notes.push(Note::detailed(format!("sender late {late}"), detail));
    }
    if let Some(share) = cell.evicted_share {
        let share = share_text(share);
        let detail =
            format!("{share} of its reads of written keys found nothing, because a cache may evict them");
        notes.push(Note::detailed(format!("evicted {share}"), detail));
    }
    if let Some(class) = cell.class_words.as_ref().filter(|_| cell.class.kind.is_server()) {
        let mark = class.split(',').next().unwrap_or(class);
        let detail = format!(
            "{class}; its ops cross a socket to another process, so it has no rank among embedded engines"
        );
        notes.push(Note::detailed(mark, detail));
    }
    if cell.class.kind == Kind::Foreign {
        let detail =
            "the database was made by another program: its keys were looked for, and its values not checked";
        notes.push(Note::detailed("values not checked", detail.to_string()));
    }
    notes.extend(unaccounted(cell));
    notes.extend(contradicted(cell));
    notes.extend(disturbed(cell));
    if cell.harness_share.is_some_and(|share| share > HARNESS_SHARE_LIMIT) {
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let mark = format!("harness {}", percent(cell.harness_share.unwrap_or_default()));
        notes.push(match cell.harness {
            Some(HarnessShares { generation, checks, boundary }) => {
                let (generation, checks, boundary) =
                    (percent(generation), percent(checks), percent(boundary));
                Note::detailed(
                    mark,
                    format!("generation {generation}, checks {checks}, boundary {boundary} of thread time"),
                )
            }
            None => Note::mark(mark),
        });
    }
    if cell.retries > 0 {
        notes.push(Note::mark(format!("{} retries", cell.retries)));
    }
    notes.extend(cell.syncs_per_commit.map(|syncs| Note::mark(format!("syncs/commit {syncs:.2}"))));
    notes.extend(certified(cell));
    notes.extend(cell.emulated.iter().map(|text| Note::detailed("emulated", text.clone())));
    notes
}

/// A note on runs whose driver's times do not account for its calls.
fn unaccounted(cell: &Cell) -> Option<Note> {
    let found: Vec<(u32, &str)> =
        cell.runs.iter().filter_map(|run| Some((run.repetition, run.unaccounted.as_deref()?))).collect();
    let mark = format!("{}/{} times unaccounted", found.len(), cell.runs.len());
    (!found.is_empty())
        .then(|| Note::detailed(mark, format!("{}; not ranked", joined(&found, cell.runs.len()))))
}

/// A note on runs whose engine does not make the calls of its level.
fn contradicted(cell: &Cell) -> Option<Note> {
    let found: Vec<(u32, &str)> =
        cell.runs.iter().filter_map(|run| Some((run.repetition, run.contradiction()?))).collect();
    (!found.is_empty()).then(|| {
        Note::detailed("level contradicted", format!("{}; not ranked", joined(&found, cell.runs.len())))
    })
}

/// A note on a cell whose level a certificate of its version contradicts.
pub(super) fn contradicted_by_crashes(certified: &Safety) -> Option<Note> {
    let Safety::Contradicted { reason, page: Some(page) } = certified else { return None };
    Some(Note::detailed("level contradicted", format!("{reason} ({page}); not ranked")))
}

/// A note on what a certificate says about the cell's level.
fn certified(cell: &Cell) -> Option<Note> {
    let certified = cell.runs.iter().find_map(|run| run.observed.as_ref()?.certified.as_ref())?;
    let crashes = counted(certified.crashes, "crash", "crashes");
    let losses = counted(certified.losses, "loss", "losses");
    let end = if certified.is_contradicted { ": contradicted" } else { "" };
    Some(Note::detailed(
        format!("{crashes}, {losses}{end}"),
        format!("kvdyno prove --certificate: {}", certified.class),
    ))
}

/// A note on a cell most of whose runs were disturbed.
fn disturbed(cell: &Cell) -> Option<Note> {
    let runs: Vec<(u32, String)> = cell
        .runs
        .iter()
        .filter(|run| !run.disturbed.is_empty())
        .map(|run| (run.repetition, run.disturbed.join(" and ")))
        .collect();
    let texts: Vec<String> = runs.iter().map(|(run, text)| format!("run {run}: {text}")).collect();
    let mark = format!("{}/{} disturbed", runs.len(), cell.runs.len());
    cell.is_disturbed().then(|| Note::detailed(mark, texts.join("; ")))
}

/// Notes on runs that did not go as planned, by their state.
fn failures(cell: &Cell) -> Vec<Note> {
    let of = cell.runs.len();
    let mut notes = Vec::new();
    let failed = reasons(cell, |state| match state {
        RunState::Failed { cause } => Some(cause),
        _ => None,
    });
    if !failed.is_empty() {
        notes.push(Note::detailed(format!("{}/{of} failed", failed.len()), joined(&failed, of)));
    }
    let later = reasons(cell, |state| match state {
        RunState::FailedLater { cause } => Some(cause),
        _ => None,
    });
    if !later.is_empty() {
        notes.push(Note::detailed(format!("{}/{of} failed later", later.len()), joined(&later, of)));
    }
    let not_run = reasons(cell, |state| match state {
        RunState::NotRun { reason } => Some(reason),
        _ => None,
    });
    if !not_run.is_empty() {
        let mark = match not_run.len() {
            all if all == of => "did not run".to_string(),
            some => format!("{some}/{of} did not run"),
        };
        notes.push(Note::detailed(mark, joined(&not_run, of)));
    }
    let pending = cell.runs.iter().filter(|run| run.state == RunState::Pending).count();
    if pending > 0 {
        notes.push(Note::mark(format!("{pending}/{of} missing")));
    }
    if cell.settings_differ {
        notes.push(Note::detailed(
            "other settings",
            "its phase was run with different settings from the other engines".to_string(),
        ));
    }
    notes
}

/// The reasons of the runs in one state, with their repetitions.
fn reasons(cell: &Cell, text_of: fn(&RunState) -> Option<&String>) -> Vec<(u32, &str)> {
    cell.runs.iter().filter_map(|run| Some((run.repetition, text_of(&run.state)?.as_str()))).collect()
}

/// The joined texts; a single one if it is the same for all of the cell's runs, as for a missing capability.
fn joined(texts: &[(u32, &str)], of: usize) -> String {
    match texts {
        [(_, first), rest @ ..] if texts.len() == of && rest.iter().all(|(_, text)| text == first) => {
            first.to_string()
        }
        _ => {
            let groups = texts.chunk_by(|(_, one), (_, next)| one == next).map(|group| match group {
                [(run, text)] => format!("run {run}: {text}"),
                _ => {
                    let runs: Vec<String> = group.iter().map(|(run, _)| run.to_string()).collect();
                    format!("runs {}: {}", listed(&runs, "and"), group[0].1)
                }
            });
            groups.collect::<Vec<_>>().join("; ")
        }
    }
}
