//! How long trials take: what those of the same engine took before, else what the plan says; and how much of it is left.

use crate::results::{Outcome, Record, Trial};
use crate::runner::schedule;
use std::collections::HashMap;

/// Beside its phases a trial starts a process, opens, closes, reopens and sweeps: seconds, and a share of its phases.
const LEAST_REST: f64 = 0.3;
const REST_SHARE: f64 = 0.1;
/// What takes longer than expected is taken to need so much of its time so far once more.
const OVERDUE_SHARE: f64 = 0.1;
/// A phase of which less than this is done says little about the rest of it.
const LEAST_SHARE: f64 = 0.05;
/// Never said of what still runs, for it would be wrong; seconds.
const LEAST_LEFT: f64 = 1.0;

/// What a trial is expected to take, seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// Its phases, in the order that they are run in, warm-ups in them.
    turns: Vec<f64>,
    /// All that lies between and behind them.
    rest: f64,
}

/// Where a trial is, seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    /// Its phase, by its place in the order; none: it is in a step.
    pub turn: Option<usize>,
    /// Phases that have been begun.
    pub begun: usize,
    /// In this phase or step so far.
    pub here: f64,
    /// In all steps so far, this one in them.
    pub in_steps: f64,
    /// Share of the phase that is done, 0 to 1; none: unknown.
    pub share: Option<f64>,
}

impl Expected {
    /// By the settings of its workload, at the rate of a slow engine where they say how many and not how long.
    pub fn planned(trial: &Trial) -> Expected {
        let workload = &trial.workload;
        let turn = |turn: crate::runner::Turn| workload.expected_seconds(&workload.phases[turn.place]);
        let turns: Vec<f64> = schedule(workload).map(turn).collect();
        let rest = LEAST_REST + REST_SHARE * turns.iter().sum::<f64>();
        Expected { turns, rest }
    }

    /// As a trial was that took `seconds` in all; none: it did not run to its end.
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

    /// The whole trial.
    pub fn total(&self) -> f64 {
        self.turns.iter().sum::<f64>() + self.rest
    }

    /// What is left of it; never nothing.
    pub fn left(&self, at: &At) -> f64 {
        let overdue = |expected: f64, so_far: f64| (expected - so_far).max(OVERDUE_SHARE * so_far);
        let behind: f64 = self.turns.iter().skip(at.begun).sum();
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
        (behind + here + steps).max(LEAST_LEFT)
    }
}

/// What is known of each engine in each workload.
#[derive(Default)]
pub struct Times(HashMap<(String, String), Expected>);

impl Times {
    /// A trial has ended: the last one of an engine is what the next is expected to be. Without `seconds` it is from before this
    /// session, and its record says how long it was.
    pub fn take(&mut self, record: &Record, workload: &str, engine: &str, seconds: Option<f64>) {
        let recorded = || record.noise.as_ref().map(|noise| noise.elapsed_ns as f64 / 1e9);
        let expected = seconds.or_else(recorded).and_then(|seconds| Expected::measured(record, seconds));
        if let Some(expected) = expected {
            self.0.insert((workload.to_string(), engine.to_string()), expected);
        }
    }

    /// What a trial of this engine is expected to take; none: it was not seen yet.
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
    fn what_is_left_goes_down_with_the_phases_and_their_own_progress() {
        let left = |at: At| expected().left(&at);
        assert_eq!(left(at(None, 0, 0.0, 0.0, None)), 39.0);
        // Nothing is known of the phase: what it took the last time.
        assert_eq!(left(at(Some(0), 1, 3.0, 1.0, None)), 7.0 + 25.0 + 3.0);
        // Half of it took 15 s, so that it is slower than the last time.
        assert_eq!(left(at(Some(0), 1, 15.0, 1.0, Some(0.5))), 15.0 + 25.0 + 3.0);
        assert_eq!(left(at(Some(2), 3, 4.0, 1.0, Some(0.8))), 1.0 + 3.0);
    }

    #[test]
    fn what_runs_has_always_something_left() {
        for here in [0.0, 4.0, 20.0, 300.0] {
            let in_sweep = expected().left(&at(None, 3, here, here, None));
            assert!(in_sweep >= 1.0 && in_sweep >= here / 10.0, "{in_sweep} after {here}");
            let in_phase = expected().left(&at(Some(2), 3, here, 0.0, None));
            assert!(in_phase >= 1.0 && in_phase >= here / 10.0, "{in_phase} after {here}");
        }
        assert!(expected().left(&at(Some(2), 3, 5.0, 4.0, Some(1.0))) >= 1.0);
        assert!(Expected::default().left(&At::default()) >= 1.0);
        // More phases than are known of.
        assert!(expected().left(&at(Some(9), 10, 0.0, 0.0, None)) >= 1.0);
    }

    #[test]
    fn a_trial_takes_what_the_last_of_its_engine_took() {
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
        assert_eq!((total("earlier"), times.of("other", "slow")), (None, None), "its record does not say");
        let planned = Expected::planned(&well.trial);
        assert_eq!(planned.turns.len(), well.trial.workload.phases.len());
        assert!(planned.total() > LEAST_REST, "{planned:?}");
    }
}
