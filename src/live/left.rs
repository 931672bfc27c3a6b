//! Estimates of the duration of trials, and of the time left: from earlier trials of the same engine, or from the plan.

use crate::results::{Outcome, Record, Trial};
use crate::runner::schedule;
use std::collections::HashMap;

/// The time of a trial outside its phases (start of the process, open, close, reopen, sweep): seconds, and a share of the
/// time of its phases.
const LEAST_REST: f64 = 0.3;
const REST_SHARE: f64 = 0.1;
/// A phase or step that takes longer than expected is estimated to need this share of its time so far once more.
const OVERDUE_SHARE: f64 = 0.1;
/// The minimum share of a phase that must be done before its rest is estimated from it.
const LEAST_SHARE: f64 = 0.05;
/// The minimum time left of a running trial, in seconds: it is never reported as finished.
const LEAST_LEFT: f64 = 1.0;

/// The expected duration of a trial, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The durations of its phases in the order in which they run, including warm-up.
    turns: Vec<f64>,
    /// The time between and after the phases.
    rest: f64,
}

/// The progress of a trial; times are in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    /// The index of the current phase; `None` in a step.
    pub turn: Option<usize>,
    /// The number of phases that have begun.
    pub begun: usize,
    /// The time in this phase or step so far.
    pub here: f64,
    /// The time in all steps so far, including this one.
    pub in_steps: f64,
    /// The share of the phase that is done, 0 to 1; `None` if unknown.
    pub share: Option<f64>,
}

impl Expected {
    /// The estimate from the settings of the workload. Phases with a number of ops instead of a duration are estimated at the
    /// rate of a slow engine.
    pub fn planned(trial: &Trial) -> Expected {
        let workload = &trial.workload;
        let turn = |turn: crate::runner::Turn| workload.expected_seconds(&workload.phases[turn.place]);
        let turns: Vec<f64> = schedule(workload).map(turn).collect();
        let rest = LEAST_REST + REST_SHARE * turns.iter().sum::<f64>();
        Expected { turns, rest }
    }

    /// The durations of a trial that took `seconds` in total; `None` if it was not completed.
    fn measured(record: &Record, seconds: f64) -> Option<Expected> {
        if record.outcome != Outcome::Ok || seconds <= 0.0 {
            return None;
        }
        let turn = |phase: &crate::results::PhaseRecord| {
            let warm_up = if phase.not_run.is_none() { phase.phase.warmup_seconds } else { 0.0 };
            warm_up + phase.elapsed_ns as f64 / 1e9
        };
        let turns: Vec<f64> = record.phases.iter().map(turn).collect();
        let rest = (seconds - turns.iter().sum::<f64>()).max(0.0);
        Some(Expected { turns, rest })
    }

    /// The duration of the complete trial.
    pub fn total(&self) -> f64 {
        self.turns.iter().sum::<f64>() + self.rest
    }

    /// The time left; never zero.
    pub fn left(&self, at: &At) -> f64 {
        let overdue = |expected: f64, so_far: f64| (expected - so_far).max(OVERDUE_SHARE * so_far);
        let later: f64 = self.turns.iter().skip(at.begun).sum();
        let (here, steps) = match at.turn {
            Some(turn) => {
                let expected = self.turns.get(turn).copied().unwrap_or(0.0);
                let here = match at.share.filter(|share| *share >= LEAST_SHARE) {
                    Some(share) => at.here * (1.0 - share) / share,
                    None => overdue(expected, at.here),
                };
                (here, (self.rest - at.in_steps).max(0.0))
            }
            None => (0.0, overdue(self.rest, at.in_steps).max(OVERDUE_SHARE * at.here)),
        };
        (later + here + steps).max(LEAST_LEFT)
    }
}

/// The known durations for each workload and engine.
#[derive(Default)]
pub struct Times(HashMap<(String, String), Expected>);

impl Times {
    /// Records the duration of a completed trial as the expectation for the next one of its engine. Without `seconds` the
    /// trial is from an earlier session, and the duration is in its record.
    pub fn take(&mut self, record: &Record, workload: &str, engine: &str, seconds: Option<f64>) {
        let recorded = || record.noise.as_ref().map(|noise| noise.elapsed_ns as f64 / 1e9);
        let expected = seconds.or_else(recorded).and_then(|seconds| Expected::measured(record, seconds));
        if let Some(expected) = expected {
            self.0.insert((workload.to_string(), engine.to_string()), expected);
        }
    }

    /// The expected duration of a trial of this engine; `None` if none has completed yet.
    pub fn of(&self, workload: &str, engine: &str) -> Option<&Expected> {
        self.0.get(&(workload.to_string(), engine.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    fn expected() -> Expected {
        Expected { turns: vec![10.0, 20.0, 5.0], rest: 4.0 }
    }

    fn at(turn: Option<usize>, begun: usize, here: f64, in_steps: f64, share: Option<f64>) -> At {
        At { turn, begun, here, in_steps, share }
    }

    #[test]
    fn the_time_left_decreases_with_phases_and_their_progress() {
        let left = |at: At| expected().left(&at);
        assert_eq!(left(at(None, 0, 0.0, 0.0, None)), 39.0);
        // Without the progress of the phase, its last duration counts.
        assert_eq!(left(at(Some(0), 1, 3.0, 1.0, None)), 7.0 + 25.0 + 3.0);
        // Half of it took 15 s, so it is slower than the last time.
        assert_eq!(left(at(Some(0), 1, 15.0, 1.0, Some(0.5))), 15.0 + 25.0 + 3.0);
        assert_eq!(left(at(Some(2), 3, 4.0, 1.0, Some(0.8))), 1.0 + 3.0);
    }

    #[test]
    fn a_running_trial_always_has_time_left() {
        for here in [0.0, 4.0, 20.0, 300.0] {
            let in_sweep = expected().left(&at(None, 3, here, here, None));
            assert!(in_sweep >= 1.0 && in_sweep >= here / 10.0, "{in_sweep} after {here}");
            let in_phase = expected().left(&at(Some(2), 3, here, 0.0, None));
            assert!(in_phase >= 1.0 && in_phase >= here / 10.0, "{in_phase} after {here}");
        }
        assert!(expected().left(&at(Some(2), 3, 5.0, 4.0, Some(1.0))) >= 1.0);
        assert!(Expected::default().left(&At::default()) >= 1.0);
        // More phases than known.
        assert!(expected().left(&at(Some(9), 10, 0.0, 0.0, None)) >= 1.0);
    }

    #[test]
    fn a_trial_is_expected_to_take_as_long_as_the_last_of_its_engine() {
        let mut times = Times::default();
        let records = fixture::records();
        let well = records.iter().find(|record| record.outcome == Outcome::Ok).unwrap();
        let failed = records.iter().find(|record| record.outcome != Outcome::Ok).unwrap();
        times.take(well, "quick", "slow", Some(60.0));
        times.take(well, "quick", "fast", Some(2.0));
        times.take(failed, "quick", "fast", Some(0.1));
        times.take(well, "quick", "earlier", None);
        let total = |engine: &str| times.of("quick", engine).map(Expected::total);
        assert_eq!((total("slow"), total("fast")), (Some(60.0), Some(2.0)));
        assert_eq!((total("earlier"), times.of("other", "slow")), (None, None), "its record has no duration");
        let planned = Expected::planned(&well.trial);
        assert_eq!(planned.turns.len(), well.trial.workload.phases.len());
        assert!(planned.total() > LEAST_REST, "{planned:?}");
    }
}
