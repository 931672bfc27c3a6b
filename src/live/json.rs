//! Progress for programs: JSON objects on stderr, one per line (docs/live.md describes every field). Unknown values are
//! null.

use super::state::{State, outcome_text};
use kvdyno_core::results::{Outcome, Record, Run, Trial};
use kvdyno_core::runner::Tick;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The schema version of the events.
const SCHEMA: u32 = 1;
/// The minimum interval between events of a phase.
const EVENT_EVERY: Duration = Duration::from_millis(950);

/// Writes events.
pub(super) struct Events {
    began: Instant,
    last: Option<(Instant, String)>,
}

impl Events {
    /// The run begins.
    pub(super) fn begin(run: &Run) -> Events {
        let events = Events { began: Instant::now(), last: None };
        let engines = unique(run.plan.trials.iter().map(|trial| &trial.engine));
        let workloads = unique(run.plan.trials.iter().map(|trial| &trial.workload.name));
        events.write(
            "run-begins",
            json!({
                "schema": SCHEMA,
                "tool_version": run.tool_version,
                "run": run.id,
                "trials": run.plan.trials.len(),
                "engines": engines,
                "workloads": workloads,
            }),
        );
        events
    }

    fn write(&self, event: &str, rest: Value) {
        let mut all = json!({ "event": event, "at_seconds": self.began.elapsed().as_secs_f64() });
        if let (Value::Object(all), Value::Object(rest)) = (&mut all, rest) {
            all.extend(rest);
        }
        eprintln!("{}", ascii(&all.to_string()));
    }

    /// A message that does not belong to a trial.
    pub(super) fn message(&self, text: &str) {
        self.write("message", json!({ "text": text }));
    }

    /// A trial begins.
    pub(super) fn trial_begins(&mut self, state: &State, trial: &Trial) {
        self.last = None;
        let phases: Vec<&str> = trial.workload.phases.iter().map(|phase| phase.name.as_str()).collect();
        let options: serde_json::Map<String, Value> =
            trial.options.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        self.write(
            "trial-begins",
            json!({
                "trial": trial.id,
                "place": state.now.as_ref().map(|now| now.place + 1),
                "of": state.trials.len(),
                "engine": trial.engine,
                "options": options,
                "workload": trial.workload.name,
                "repetition": trial.repetition,
                "phases": phases,
            }),
        );
    }

    /// Progress after each second of a phase, and at its end.
    pub(super) fn tick(&mut self, state: &State, tick: &Tick) {
        let phase = format!("{} {:?}", tick.phase, tick.round);
        let is_early = |(at, last): &(Instant, String)| *last == phase && at.elapsed() < EVENT_EVERY;
        if self.last.as_ref().is_some_and(is_early) && tick.done_share != Some(1.0) {
            return;
        }
        self.last = Some((Instant::now(), phase));
        let now = state.now.as_ref();
        let rank = state.place().map(|(place, of)| json!({ "place": place, "of": of }));
        self.write(
            "progress",
            json!({
                "trial": now.map(|now| &now.id),
                "phase": tick.phase,
                "round": tick.round,
                "durability_in_force": tick.level,
                "ops": tick.ops,
                "interval_ns": tick.interval_ns,
                "ops_per_second": tick.ops_per_second,
                "p50_ns": tick.p50_ns,
                "p99_ns": tick.p99_ns,
                "rss_bytes": tick.rss_bytes,
                "disk_allocated_bytes": tick.disk_bytes,
                "cpu_ns": tick.cpu_ns,
                "written_bytes": tick.written_bytes,
                "phase_done_share": tick.done_share,
                "run_done_share": state.share(),
                "seconds_left": state.seconds_left(),
                "rank_so_far": rank,
            }),
        );
    }

    /// A trial has ended.
    pub(super) fn trial_ended(&mut self, state: &State, record: &Record) {
        let outcome = match &record.outcome {
            Outcome::Ok => "ok",
            Outcome::WrongAnswers { .. } => "wrong-answers",
            Outcome::Failed { .. } => "failed",
            Outcome::Crashed { .. } => "crashed",
        };
        self.write(
            "trial-ended",
            json!({
                "trial": record.trial.id,
                "outcome": outcome,
                "text": outcome_text(&record.outcome),
                "done": state.done(),
                "of": state.trials.len(),
            }),
        );
    }

    /// The run has ended.
    pub(super) fn run_ended(&self, state: &State, is_complete: bool, results: &str) {
        let ending = if is_complete { "complete" } else { "interrupted" };
        self.write(
            "run-ended",
            json!({ "ending": ending, "done": state.done(), "of": state.trials.len(), "results": results }),
        );
    }
}

/// JSON with every letter escaped that is not printable ASCII, because it may be printed on a terminal.
pub(super) fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if (' '..='~').contains(&letter) {
            text.push(letter);
        } else {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
        }
    }
    text
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}
