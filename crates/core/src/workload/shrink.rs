//! Shrinks a workload with a time budget to fit into the time of one trial.

use super::{Assumed, Phase, Workload};

const TYPICAL: Assumed = Assumed::TYPICAL;
/// The share of a trial's time that its fills may take before the number of keys is reduced.
const FILL_SHARE: f64 = 0.405;
/// With fewer keys than this, all data fits into a processor's cache, and the trial would measure only that.
const LEAST_KEYS: u64 = 20_000;
/// A phase shorter than this has no meaningful percentiles.
const LEAST_SECONDS: f64 = 0.05;
/// The number of engines that `budget_seconds` is stated for, and the maximum growth of the budget with more engines.
const BUDGET_ENGINES: f64 = 16.0;
const BUDGET_GROWTH: f64 = 8.0 / 3.0;

impl Workload {
    /// The duration in seconds of each of `trials` trials (engines times runs); none: the workload has no budget.
    ///
    /// `budget_seconds` is the time for 16 engines. With fewer engines, each gets more time, up to the durations in the
    /// file. With more engines, the total first grows to 8/3 of the budget (150 s become 400 s); beyond that, each engine
    /// gets less.
    pub fn seconds_per_trial(&self, trials: usize) -> Option<f64> {
        let budget = self.budget_seconds?;
        let trials = trials.max(1) as f64;
        let growth = trials / (BUDGET_ENGINES * f64::from(self.runs.max(1)));
        Some(budget * growth.clamp(1.0, BUDGET_GROWTH) / trials)
    }

    /// Shrinks keys and durations so that a trial takes about `seconds_per_trial` seconds, from opening to closing.
    ///
    /// Does nothing without `budget_seconds`, and never enlarges anything. The result depends only on the workload and the
    /// argument, so all engines of a run get the same. The number of keys shrinks only if filling and sweeping them would
    /// take too much of the time, and never below 20,000.
    pub fn shrink_to(&mut self, seconds_per_trial: f64) {
        if self.budget_seconds.is_none() || !seconds_per_trial.is_finite() || seconds_per_trial <= 0.0 {
            return;
        }
        if self.trial_seconds() <= seconds_per_trial {
            return;
        }
        self.shrink_keys((seconds_per_trial - TYPICAL.rest_seconds).max(0.0) * FILL_SHARE);
        let left = seconds_per_trial - self.fill_seconds() - self.rest_seconds();
        let factor = (left / self.timed_seconds()).clamp(0.0, 1.0);
        if !factor.is_finite() {
            return;
        }
        for phase in self.phases.iter_mut().filter(|phase| !is_fill(phase)) {
            shrink_phase(phase, factor);
        }
    }

    /// The sum of the `seconds` of all phases, each counted as often as it is run; phases that end by a count add nothing.
    pub fn phase_seconds(&self) -> f64 {
        self.phases.iter().map(|phase| phase.seconds * self.times(phase)).sum()
    }

    /// Estimated seconds of a trial.
    fn trial_seconds(&self) -> f64 {
        self.fill_seconds() + self.timed_seconds() + self.rest_seconds()
    }

    /// Estimated seconds of a trial outside its phases: starting, opening, settling, closing, reopening and the sweep.
    pub fn rest_seconds(&self) -> f64 {
        TYPICAL.rest_seconds + self.keys as f64 / TYPICAL.swept_keys * self.complete_sweeps()
    }

    /// The mean number of complete sweeps of a trial. The sweep of a sample takes almost no time.
    fn complete_sweeps(&self) -> f64 {
        if self.sweep_once { 1.0 / f64::from(self.runs.max(1)) } else { 1.0 }
    }

    /// Estimated seconds of a phase, including its warm-up.
    pub fn expected_seconds(&self, phase: &Phase) -> f64 {
        let count = if is_fill(phase) { Some(self.keys) } else { phase.ops_limit() };
        let by_count = count.map(|count| count as f64 / TYPICAL.loaded_keys);
        let limits = [by_count, phase.seconds_limit(), self.load_limit(phase)];
        // A phase without a limit is refused.
        phase.warmup_seconds + limits.into_iter().flatten().reduce(f64::min).unwrap_or(0.0)
    }

    /// Reduces the number of keys until the fills and the sweep take at most `seconds` seconds.
    fn shrink_keys(&mut self, seconds: f64) {
        let fills: f64 = self.phases.iter().filter(|phase| is_fill(phase)).map(|fill| self.times(fill)).sum();
        if fills > 0.0 {
            let sweeps = self.complete_sweeps() / TYPICAL.swept_keys;
            let keys = seconds / (fills / TYPICAL.loaded_keys + sweeps);
            // Rounded down to full thousands, for readability.
            self.keys = self.keys.min((keys as u64 / 1000 * 1000).max(LEAST_KEYS));
        }
    }

    /// Estimated seconds of the fills.
    fn fill_seconds(&self) -> f64 {
        let fills = self.phases.iter().filter(|phase| is_fill(phase));
        let by_count = self.keys as f64 / TYPICAL.loaded_keys;
        let seconds = |phase: &Phase| phase.seconds_limit().map_or(by_count, |limit| by_count.min(limit));
        fills.map(|phase| seconds(phase) * self.times(phase)).sum()
    }

    /// Estimated seconds of the other phases.
    fn timed_seconds(&self) -> f64 {
        let phases = self.phases.iter().filter(|phase| !is_fill(phase));
        phases.map(|phase| timed_seconds(phase) * self.times(phase)).sum()
    }

    /// The number of times a phase is run.
    fn times(&self, phase: &Phase) -> f64 {
        if phase.each_round { f64::from(self.rounds) } else { 1.0 }
    }
}

/// Whether the phase ends by the number of keys, so that only fewer keys shorten it.
fn is_fill(phase: &Phase) -> bool {
    phase.each_key
}

/// The seconds of a phase; if it has no time limit, estimated from its ops at the rate of a fill.
fn timed_seconds(phase: &Phase) -> f64 {
    phase.seconds_limit().unwrap_or(phase.ops as f64 / TYPICAL.loaded_keys)
}

/// Rounds down to full milliseconds, for readability.
fn round_ms(seconds: f64) -> f64 {
    (seconds * 1000.0).floor() / 1000.0
}

fn shrink_phase(phase: &mut Phase, factor: f64) {
    if let Some(before) = phase.seconds_limit() {
        let seconds = round_ms(before * factor).max(LEAST_SECONDS.min(before));
        phase.warmup_seconds = round_ms(phase.warmup_seconds * seconds / before);
        phase.seconds = seconds;
    } else {
        phase.ops = ((phase.ops as f64 * factor) as u64).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn quick(engines: usize) -> (f64, Workload) {
        let mut workload = builtin("quick").unwrap();
        let seconds = workload.seconds_per_trial(engines * 5).unwrap();
        workload.shrink_to(seconds);
        (seconds, workload)
    }

    #[test]
    fn sixteen_engines_take_less_than_two_and_a_half_minutes_from_opening_to_closing() {
        let (seconds, workload) = quick(16);
        assert!(seconds * 16.0 * 5.0 <= 150.0, "{seconds}");
        assert!(workload.keys >= 50_000, "{}", workload.keys);
        let planned = workload.trial_seconds();
        assert!((0.9 * seconds..=seconds + 1e-9).contains(&planned), "planned {planned}");
    }

    #[test]
    fn what_later_runs_do_not_sweep_is_time_for_the_phases() {
        // So few keys need not shrink.
        let of = |sweep_once: bool, runs: u32| {
            let mut workload = Workload { keys: 40_000, sweep_once, runs, ..builtin("quick").unwrap() };
            workload.shrink_to(1.8);
            assert_eq!(workload.keys, 40_000);
            workload
        };
        let (once, each) = (of(true, 5), of(false, 5));
        let saved = each.rest_seconds() - once.rest_seconds();
        let gained = once.timed_seconds() - each.timed_seconds();
        // Durations are rounded to milliseconds.
        assert!(saved > 0.1 && (gained - saved).abs() < 0.01, "gained {gained} of {saved}");
        assert_eq!(of(true, 1), Workload { sweep_once: true, ..of(false, 1) }, "one run sweeps all");
    }

    #[test]
    fn sixteen_engines_read_mix_and_scan_for_more_than_a_third_of_the_time() {
        let (seconds, workload) = quick(16);
        let read: f64 = workload.phases[1..5].iter().map(|phase| phase.seconds).sum();
        assert!(read > 0.35 * seconds, "{read} of {seconds}");
        // A durable update takes milliseconds: fewer of them would show no percentiles.
        assert!(workload.phases[5].seconds >= 0.25, "{}", workload.phases[5].seconds);
    }

    #[test]
    fn sixty_engines_take_seven_minutes_at_most() {
        for engines in 1..=60 {
            let (seconds, workload) = quick(engines);
            let total = seconds * engines as f64 * 5.0;
            assert!(total <= 400.0 + 1e-9, "{engines} engines: {total}");
            let planned = workload.trial_seconds();
            assert!(planned <= seconds + 1e-9, "{engines} engines: {planned} of {seconds}");
            assert!(workload.keys >= LEAST_KEYS, "{engines} engines: {}", workload.keys);
            assert!(workload.check().is_ok(), "{engines} engines");
        }
        assert_eq!(quick(16).1.keys, quick(40).1.keys);
    }

    #[test]
    fn one_engine_gets_the_durations_of_the_file() {
        assert_eq!(quick(1).1, builtin("quick").unwrap());
    }

    #[test]
    fn shrinks_all_times_in_proportion_and_the_warm_up_with_them() {
        let mut workload = builtin("quick").unwrap();
        workload.phases[1].warmup_seconds = 0.5;
        let before = workload.clone();
        workload.shrink_to(3.0);
        let factor = workload.phases[1].seconds / before.phases[1].seconds;
        assert!(factor < 1.0);
        let is_near = |seconds: f64, expected: f64| (seconds - expected).abs() < 0.0021;
        assert!(is_near(workload.phases[1].warmup_seconds, 0.5 * factor));
        for (after, before) in workload.phases[1..].iter().zip(&before.phases[1..]) {
            assert!(is_near(after.seconds, before.seconds * factor), "{}", after.name);
            assert_eq!(after.ops, before.ops);
        }
    }

    #[test]
    fn shrinks_ops_of_a_phase_without_a_time_limit() {
        let mut workload = builtin("quick").unwrap();
        for phase in &mut workload.phases[1..] {
            (phase.seconds, phase.ops) = (0.0, 100_000);
        }
        workload.shrink_to(3.0);
        assert!((20_000..40_000).contains(&workload.phases[1].ops), "{}", workload.phases[1].ops);
    }

    #[test]
    fn a_tiny_share_leaves_the_least_keys_and_times() {
        let mut workload = builtin("quick").unwrap();
        workload.shrink_to(0.01);
        assert_eq!(workload.keys, LEAST_KEYS);
        assert!(workload.phases[1..].iter().all(|phase| phase.seconds == LEAST_SECONDS));
        assert!(workload.check().is_ok());
    }

    #[test]
    fn never_enlarges_and_never_touches_a_workload_without_a_budget() {
        let mut small = builtin("quick").unwrap();
        small.keys = 100;
        small.shrink_to(0.5);
        assert_eq!(small.keys, 100);
        let mut written = builtin("ycsb-a").unwrap();
        assert_eq!(written.seconds_per_trial(30), None);
        written.shrink_to(0.5);
        assert_eq!(written, builtin("ycsb-a").unwrap());
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut workload = builtin("quick").unwrap();
            workload.shrink_to(nonsense);
            assert_eq!(workload, builtin("quick").unwrap(), "share {nonsense}");
        }
    }
}
