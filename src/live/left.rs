//! Estimates of the time left: from earlier trials of the same engine, from the same stages of other engines' trials, from
//! the plan, and from the progress of the current stage.

use kvdyno_core::results::{Cause, Outcome, Record, Trial};
use kvdyno_core::runner::schedule;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The share of a trial's time outside its phases that is spent before the first one.
const BEFORE_SHARE: f64 = 0.3;
/// A stage that takes longer than expected is estimated to need this share of its time so far once more.
const OVERDUE_SHARE: f64 = 0.1;
/// The share of a phase after which only its own rate is used to estimate the rest of it.
const ENOUGH_SHARE: f64 = 0.2;
/// For a new engine, the plan counts as so many engines: its rates are means of many.
const PLAN_ENGINES: f64 = 2.0;
/// The minimum time left of a running trial, in seconds: it is never reported as finished.
const LEAST_LEFT: f64 = 1.0;
/// The time in which the displayed time left follows a new estimate.
const SMOOTHING: Duration = Duration::from_secs(3);

/// Durations of the stages of a trial, in seconds: the steps before the first phase, the first phase, the steps before the
/// second phase, and so on; the last are the steps after the last phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stages(Vec<f64>);

/// The progress of a trial.
#[derive(Clone, Debug, Default)]
pub(super) struct At {
    /// The durations of its stages so far.
    pub so_far: Stages,
    /// The index of the current stage.
    pub stage: usize,
    /// The share of the current phase that is done, 0 to 1; `None` if unknown.
    pub share: Option<f64>,
    /// The maximum duration of the current phase, in seconds; `None` if it has none.
    pub limit: Option<f64>,
}

/// The index of the stage: of a phase, by its position among the turns, or of the steps after the turn `last`.
pub(super) fn stage(turn: Option<usize>, last: Option<usize>) -> usize {
    match (turn, last) {
        (Some(turn), _) => 2 * turn + 1,
        (None, Some(last)) => 2 * last + 2,
        (None, None) => 0,
    }
}

impl Stages {
    /// The estimate from the settings of the workload.
    pub(super) fn planned(trial: &Trial) -> Stages {
        let workload = &trial.workload;
        let rest = workload.rest_seconds();
        let mut stages = vec![rest * BEFORE_SHARE];
        for turn in schedule(workload) {
            stages.extend([workload.expected_seconds(&workload.phases[turn.place]), 0.0]);
        }
        let last = stages.len() - 1;
        stages[last] += rest * (1.0 - BEFORE_SHARE);
        Stages(stages)
    }

    /// The durations in a record of an earlier session; `None` if they are unknown.
    fn recorded(record: &Record) -> Option<Stages> {
        let seconds = record.noise.as_ref()?.elapsed_ns as f64 / 1e9;
        let mut stages = Stages::default();
        for (turn, phase) in record.phases.iter().enumerate() {
            let warm_up = if phase.not_run.is_none() { phase.phase.warmup_seconds } else { 0.0 };
            stages.add(2 * turn + 1, warm_up + phase.elapsed_ns as f64 / 1e9);
            // Steps have the name of their phase and not the round.
            let of_phase = |step: &&kvdyno_core::results::Step| {
                phase.round.is_none() && step.before_phase.as_deref() == Some(phase.phase.name.as_str())
            };
            let before: f64 =
                record.steps.iter().filter(of_phase).map(|step| step.elapsed_ns as f64 / 1e9).sum();
            stages.add(2 * turn, before);
        }
        stages.add(2 * record.phases.len(), (seconds - stages.total()).max(0.0));
        (seconds > 0.0).then_some(stages)
    }

    /// Adds time to a stage.
    pub(super) fn add(&mut self, stage: usize, seconds: f64) {
        if self.0.len() <= stage {
            self.0.resize(stage + 1, 0.0);
        }
        self.0[stage] += seconds;
    }

    /// The stages of a trial that has only as many of the turns as there are lengths, each as many times longer.
    pub(super) fn with_lengths(mut self, lengths: &[f64]) -> Stages {
        let end = self.0.pop();
        self.0.truncate(2 * lengths.len());
        for (turn, length) in lengths.iter().enumerate() {
            if let Some(seconds) = self.0.get_mut(2 * turn + 1) {
                *seconds *= length;
            }
        }
        self.0.extend(end);
        self
    }

    /// The duration of a stage, in seconds.
    pub(super) fn of(&self, stage: usize) -> f64 {
        self.0.get(stage).copied().unwrap_or(0.0)
    }

    /// Their sum: the duration of the complete trial if all are known, in seconds.
    pub(super) fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Adds another trial, stage by stage.
    fn add_all(&mut self, other: &Stages, weight: f64) {
        other.0.iter().enumerate().for_each(|(stage, seconds)| self.add(stage, seconds * weight));
    }

    fn divided(mut self, by: f64) -> Stages {
        self.0.iter_mut().for_each(|seconds| *seconds /= by);
        self
    }

    /// The time left of a trial that is expected to take this long: of its current stage, and of the complete trial.
    pub(super) fn left(&self, at: &At) -> (f64, f64) {
        let (expected, here) = (self.of(at.stage), at.so_far.of(at.stage));
        let by_rate = at.share.filter(|share| *share > 0.0).map(|share| (here / share, share));
        let duration = match by_rate {
            Some((duration, share)) => {
                let weight = (share / ENOUGH_SHARE).min(1.0);
                duration * weight + expected * (1.0 - weight)
            }
            None => expected,
        };
        let duration = at.limit.map_or(duration, |limit| duration.min(limit));
        // A phase that is done is no longer overdue.
        let overdue = OVERDUE_SHARE * here * (1.0 - at.share.unwrap_or(0.0));
        let left = (duration - here).max(overdue);
        let later: f64 = self.0.iter().skip(at.stage + 1).sum();
        (left, left + later)
    }
}

/// The measured durations of a workload and engine.
#[derive(Default)]
struct Cell {
    /// The sum over its trials.
    sum: Stages,
    /// The number of its trials.
    count: f64,
    /// Whether a trial was complete, so that other engines may take as long.
    is_typical: bool,
    /// Whether its other trials are skipped.
    is_skipped: bool,
    /// The number of turns of its first trial; later ones may have fewer.
    turns: usize,
}

/// The sum of the mean durations of several engines, and their number.
#[derive(Default)]
pub(super) struct Typical {
    sum: Stages,
    count: f64,
}

/// The measured durations for each workload and engine.
#[derive(Default)]
pub(super) struct Times(HashMap<(String, String), Cell>);

impl Times {
    /// Adds a trial that has ended. Without `stages` it is from an earlier session, and the durations are in its record.
    pub(super) fn take(&mut self, record: &Record, workload: &str, engine: &str, stages: Option<Stages>) {
        let cell = self.0.entry((workload.to_string(), engine.to_string())).or_default();
        match &record.outcome {
            Outcome::Failed { cause: Cause::Skipped, .. } => return,
            Outcome::Failed { cause, .. } if cause.skips_other_runs() => cell.is_skipped = true,
            outcome => cell.is_typical |= *outcome == Outcome::Ok && !record.trial.is_floor,
        }
        let turns = schedule(&record.trial.workload).count();
        if cell.count == 0.0 {
            cell.turns = turns;
        } else if cell.turns != turns || !record.trial.lengths.is_empty() {
            return;
        }
        if let Some(stages) = stages.or_else(|| Stages::recorded(record)) {
            cell.sum.add_all(&stages, 1.0);
            cell.count += 1.0;
        }
    }

    /// The durations of all engines that have completed a trial of the workload.
    pub(super) fn typical(&self, workload: &str) -> Typical {
        let mut typical = Typical::default();
        let is_typical = |cell: &&Cell| cell.is_typical && cell.count > 0.0;
        let cells = self.0.iter().filter(|((other, _), _)| other == workload).map(|(_, cell)| cell);
        for cell in cells.filter(is_typical) {
            typical.sum.add_all(&cell.sum, 1.0 / cell.count);
            typical.count += 1.0;
        }
        typical
    }

    /// The expected duration of a trial: as long as the engine's earlier ones, otherwise the mean of the other engines and of the
    /// plan, which counts as several.
    pub(super) fn expected(
        &self,
        workload: &str,
        engine: &str,
        planned: &Stages,
        typical: &Typical,
    ) -> Stages {
        match self.0.get(&(workload.to_string(), engine.to_string())) {
            Some(cell) if cell.is_skipped => Stages::default(),
            Some(cell) if cell.count > 0.0 => cell.sum.clone().divided(cell.count),
            _ => {
                let mut sum = typical.sum.clone();
                sum.add_all(planned, PLAN_ENGINES);
                sum.divided(typical.count + PLAN_ENGINES)
            }
        }
    }

    /// Whether a trial of this engine has ended.
    pub(super) fn has_seen(&self, workload: &str, engine: &str) -> bool {
        let cell = self.0.get(&(workload.to_string(), engine.to_string()));
        cell.is_some_and(|cell| cell.is_skipped || cell.count > 0.0)
    }
}

/// The displayed time left: counts down, and moves to new estimates over a few seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown(Option<(Instant, f64)>);

impl Shown {
    /// The time left to display; `estimate` is the current estimate, of which the current stage needs at least `least`.
    pub(super) fn follow(&mut self, at: Instant, estimate: f64, least: f64) -> f64 {
        let seconds = match self.0 {
            None => estimate,
            Some((then, seconds)) => {
                let passed = at.saturating_duration_since(then).as_secs_f64();
                let counted = seconds - passed;
                let weight = 1.0 - (-passed / SMOOTHING.as_secs_f64()).exp();
                counted + (estimate - counted) * weight
            }
        };
        let seconds = seconds.max(least).max(LEAST_LEFT);
        self.0 = Some((at, seconds));
        seconds
    }
}

#[cfg(test)]
mod tests;
