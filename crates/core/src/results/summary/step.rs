//! Summarizes steps outside the phases: open, close, settle, reopen ..., timed for each engine.

use super::{Found, by_workload};
use crate::results::statistics::median;
use crate::results::{Run, Step, StepKind, Trial};
use serde::Serialize;
use std::collections::HashMap;

/// A step of an engine, over all its trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepSummary {
    /// The workload's name.
    pub workload: String,
    /// The requested engine.
    pub engine: String,
    /// The requested options.
    pub options: Vec<(String, String)>,
    /// The label of its cell.
    #[serde(skip)]
    pub label: String,
    /// `open`, `close`, `settle` ...
    pub name: StepKind,
    /// The phase that it prepared; none: it followed the last phase.
    pub before_phase: Option<String>,
    /// Number of times that it was done.
    pub count: u32,
    /// Median of its durations, nanoseconds; none if it was never done.
    pub median_ns: Option<u64>,
    /// The longest, nanoseconds.
    pub max_ns: Option<u64>,
    /// Results of steps that were not simply done, once each.
    pub notes: Vec<String>,
}

/// A step of one trial.
struct Place<'a> {
    trial: &'a Trial,
    step: &'a Step,
}

/// The steps of all cells, in the order of the workloads and of execution.
pub(super) fn summarize(run: &Run, found: &Found) -> Vec<StepSummary> {
    let mut places: Vec<Vec<Place>> = Vec::new();
    let mut known = HashMap::new();
    for record in by_workload(run).into_iter().filter_map(|trial| found.record(&trial.id)) {
        for step in &record.steps {
            let trial = &record.trial;
            let cell = (&trial.workload.name, &trial.engine, &trial.options);
            let place = *known.entry((cell, step.name, &step.before_phase)).or_insert_with(|| {
                places.push(Vec::new());
                places.len() - 1
            });
            places[place].push(Place { trial, step });
        }
    }
    places.iter().filter_map(|steps| step_summary(steps, found)).collect()
}

fn step_summary(steps: &[Place], found: &Found) -> Option<StepSummary> {
    let first = steps.first()?;
    // A step with a note was not done or not done properly, so its time has no meaning.
    let done: Vec<u64> =
        steps.iter().filter(|place| place.step.note.is_none()).map(|place| place.step.elapsed_ns).collect();
    let durations: Vec<f64> = done.iter().map(|ns| *ns as f64).collect();
    let mut notes: Vec<String> = steps.iter().filter_map(|place| place.step.note.clone()).collect();
    notes.sort();
    notes.dedup();
    Some(StepSummary {
        workload: first.trial.workload.name.clone(),
        engine: first.trial.engine.clone(),
        options: first.trial.options.clone(),
        label: found.labels.of(&first.trial.engine, &first.trial.options),
        name: first.step.name,
        before_phase: first.step.before_phase.clone(),
        count: done.len() as u32,
        median_ns: median(&durations).map(|ns| ns.round() as u64),
        max_ns: done.iter().max().copied(),
        notes,
    })
}
