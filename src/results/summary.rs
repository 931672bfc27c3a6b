//! From records to what a report shows: cells with their medians, grouped by the durability level in force and ranked.
//!
//! Nothing that was planned is dropped: a trial that failed, did not run or was not yet measured stays visible in its
//! cell, with its cause.

mod cell;
mod note;
mod order;
mod phase;
mod step;

pub use cell::{CACHE, Cell, KindSummary, Latency, Range, Ratio, RunFigures, RunState, quantile_over};
pub use note::{Note, cause};
pub use order::BY_ENGINE_TIME;
pub use phase::{Group, PhaseSummary};
pub use step::StepSummary;

use super::{EngineFacts, Outcome, Record, Run, SCHEMA};
use crate::measure::Warning;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// What a report shows of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The schema of the records that it was made with.
    pub schema: u32,
    /// Version of the tool that measured.
    pub tool_version: String,
    /// The run's id.
    pub run_id: String,
    /// When the run began, UTC, RFC 3339.
    pub started_at: String,
    /// Repetitions planned for each cell; the most, if they differ.
    pub runs: u32,
    /// The engine that ratios are to; none: the leader of each table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The phases, in the order of the plan.
    pub phases: Vec<PhaseSummary>,
    /// Open, close and so on, for each engine.
    pub steps: Vec<StepSummary>,
    /// The engines as they were in force, once each.
    pub engines: Vec<EngineFacts>,
    /// Engines that were known but absent, and why.
    pub absent: Vec<(String, String)>,
    /// Trials that did not end well.
    pub failures: Vec<Failure>,
    /// Trials that were planned and are not measured.
    pub pending: u32,
    /// Warnings of the machine and of trials.
    pub warnings: Vec<TrialWarning>,
    /// The harness's own memory before an engine was opened, bytes; the most of all trials, none if unknown.
    pub rss_before_open_bytes: Option<u64>,
    /// The records, for reports that show them all.
    #[serde(skip)]
    pub records: Vec<Record>,
}

/// A trial that did not end well.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Its id.
    pub trial: String,
    /// The engine asked for.
    pub engine: String,
    /// The repetition, from 1.
    pub repetition: u32,
    /// What happened, a line.
    pub cause: String,
    /// The last lines of the process's stderr, or the faults that were found.
    pub details: Vec<String>,
}

/// A kind of warning with the text that came first, and how many trials gave it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialWarning {
    /// The warning.
    pub warning: Warning,
    /// Trials that gave it; 0: the run itself did.
    pub trials: u32,
}

impl Summary {
    /// Sums up the records of a run, with ratios to the leader of each table; records of trials that the run did not plan
    /// are left out.
    pub fn new(run: &Run, records: Vec<Record>) -> Summary {
        Summary::against(run, records, None)
    }

    /// The same with ratios to the engine `baseline`, in each table that has it.
    pub fn against(run: &Run, records: Vec<Record>, baseline: Option<&str>) -> Summary {
        let planned: HashSet<&str> = run.trials.iter().map(|trial| trial.id.as_str()).collect();
        let kept: Vec<Record> =
            records.into_iter().filter(|record| planned.contains(record.trial.id.as_str())).collect();
        let found = Found::new(run, &kept);
        let pending = run.trials.iter().filter(|trial| found.record(&trial.id).is_none()).count();
        Summary {
            schema: SCHEMA,
            tool_version: run.tool_version.clone(),
            run_id: run.id.clone(),
            started_at: run.started_at.clone(),
            runs: run.trials.iter().map(|trial| trial.repetition).max().unwrap_or(0),
            baseline: baseline.map(String::from),
            phases: phase::summarize(run, &found, baseline),
            steps: step::summarize(run, &found),
            engines: engines(&kept),
            absent: run.absent.clone(),
            failures: kept.iter().filter_map(failure).collect(),
            pending: pending as u32,
            warnings: warnings(run, &kept),
            rss_before_open_bytes: kept.iter().filter_map(|record| record.rss_before_open_bytes).max(),
            records: kept,
        }
    }
}

/// True for engines with a planted fault: they show that faults are found, and are never ranked.
pub fn is_mutant(engine: &str) -> bool {
    engine.starts_with("mutant:")
}

/// Records, and which is that of a trial.
struct Found<'a> {
    run: &'a Run,
    records: &'a [Record],
    of_trial: HashMap<&'a str, &'a Record>,
}

impl<'a> Found<'a> {
    fn new(run: &'a Run, records: &'a [Record]) -> Found<'a> {
        // Of two with one id the first, as they were found.
        let of_trial = records.iter().rev().map(|record| (record.trial.id.as_str(), record)).collect();
        Found { run, records, of_trial }
    }

    fn record(&self, trial_id: &str) -> Option<&'a Record> {
        self.of_trial.get(trial_id).copied()
    }
}

/// Engines in order of appearance; one that was in force in two ways (by options) is there twice.
fn engines(records: &[Record]) -> Vec<EngineFacts> {
    let mut engines: Vec<EngineFacts> = Vec::new();
    for facts in records.iter().filter_map(|record| record.engine.as_ref()) {
        if !engines.contains(facts) {
            engines.push(facts.as_ref().clone());
        }
    }
    engines
}

fn failure(record: &Record) -> Option<Failure> {
    let details = match &record.outcome {
        Outcome::Ok => return None,
        Outcome::WrongAnswers { faults } => faults.clone(),
        Outcome::Failed { .. } => Vec::new(),
        Outcome::Crashed { stderr, .. } => stderr.clone(),
    };
    Some(Failure {
        trial: record.trial.id.clone(),
        engine: record.trial.engine.clone(),
        repetition: record.trial.repetition,
        cause: cause(&record.outcome).unwrap_or_default(),
        details,
    })
}

fn warnings(run: &Run, records: &[Record]) -> Vec<TrialWarning> {
    let mut all: Vec<TrialWarning> =
        run.warnings.iter().map(|warning| TrialWarning { warning: warning.clone(), trials: 0 }).collect();
    for warning in records.iter().flat_map(|record| &record.warnings) {
        match all.iter_mut().find(|seen| seen.warning.id == warning.id) {
            // A warning of the run holds for all its trials, and need not be counted.
            Some(seen) if seen.trials == 0 => {}
            Some(seen) => seen.trials += 1,
            None => all.push(TrialWarning { warning: warning.clone(), trials: 1 }),
        }
    }
    all
}

#[cfg(test)]
mod tests;
