//! The time of calls, of the engine in them, and of the harness around them.

use super::{KindRecord, PhaseRecord, Role, ThreadRecord};
use kvdyno_measure::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calls of the driver in a phase, of all threads together: their durations as measured by the core, and the times that
/// the driver reported for its ops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTimes {
    /// Calls, without warm-up.
    pub calls: u64,
    /// Their total duration, nanoseconds.
    pub called_ns: u64,
    /// The part of it that the driver reports as waiting for another thread to run the batch, nanoseconds.
    pub waited_ns: u64,
    /// The part of it that is neither in an op's time nor waiting, nanoseconds.
    pub unaccounted_ns: u64,
    /// The unaccounted time that the driver's kit may leave for these calls, nanoseconds (docs/methodology.md, section 3).
    pub bound_ns: u64,
    /// Calls that left more unaccounted time.
    pub calls_over_bound: u64,
    /// Why the times do not count; none: they account for the calls within the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<String>,
}

impl CallTimes {
    /// The sum over several threads or rounds; none if there are none.
    pub fn of_all(all: impl Iterator<Item = CallTimes>) -> Option<CallTimes> {
        all.reduce(|mut whole, next| {
            whole.add(next);
            whole
        })
    }

    fn add(&mut self, next: CallTimes) {
        let sums = [
            (&mut self.calls, next.calls),
            (&mut self.called_ns, next.called_ns),
            (&mut self.waited_ns, next.waited_ns),
            (&mut self.unaccounted_ns, next.unaccounted_ns),
            (&mut self.bound_ns, next.bound_ns),
            (&mut self.calls_over_bound, next.calls_over_bound),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.beyond = self.beyond.take().or(next.beyond);
    }
}

/// The thread time of a phase outside the time of ops, all threads together, by its use; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarnessTimes {
    /// Drawing keys, making values and filling batches, and what else the harness's loop does.
    pub generation_ns: u64,
    /// Checking answers, values and rows, and recording service times.
    pub checks_ns: u64,
    /// Entering and leaving the driver: the part of its calls that is in no op's time.
    pub boundary_ns: u64,
}

impl HarnessTimes {
    /// Adds the times of a later round.
    pub(super) fn add(&mut self, round: HarnessTimes) {
        self.generation_ns = self.generation_ns.saturating_add(round.generation_ns);
        self.checks_ns = self.checks_ns.saturating_add(round.checks_ns);
        self.boundary_ns = self.boundary_ns.saturating_add(round.boundary_ns);
    }
}

impl PhaseRecord {
    /// Wait or response times of all kinds; empty if requests do not arrive at a rate.
    pub fn times(&self, of: fn(&KindRecord) -> &Option<Histogram>) -> Histogram {
        let mut all = Histogram::empty();
        self.kinds.iter().filter_map(|kind| of(kind).as_ref()).for_each(|own| all.merge(own));
        all
    }

    /// Ops per second by the wall clock; none: no op was run.
    pub fn ops_per_second(&self) -> Option<f64> {
        (self.ops > 0 && self.elapsed_ns > 0).then(|| self.ops as f64 / (self.elapsed_ns as f64 / 1e9))
    }

    /// The engine's throughput: the ops per second as if the harness took no time; none: no op was run, or no time was
    /// inside the driver. Threads with different work, such as readers and writers, have shares of their own.
    pub fn engine_ops_per_second(&self) -> Option<f64> {
        let rate = self.ops_per_second()?;
        if self.threads.iter().all(|thread| thread.role == self.threads[0].role) {
            let inside = 1.0 - self.harness_share;
            return (inside > 0.0).then_some(rate / inside);
        }
        let ops: f64 = self.threads.iter().map(engine_ops).sum::<Option<f64>>()?;
        Some(ops / (self.elapsed_ns as f64 / 1e9))
    }

    /// The time that the phase would have taken if the harness took none, nanoseconds; none: the engine's throughput is unknown.
    pub fn engine_elapsed_ns(&self) -> Option<u64> {
        Some((self.ops as f64 * 1e9 / self.engine_ops_per_second()?).round() as u64)
    }

    /// The engine's throughput in `ops` of the phase's ops, which threads of this role ran if there are threads of that role; none:
    /// it is unknown.
    pub fn engine_ops_per_second_of(&self, role: Role, ops: u64) -> Option<f64> {
        let own = || self.threads.iter().filter(|thread| thread.role == role);
        if own().next().is_none() || own().map(|thread| thread.ops).sum::<u64>() != ops {
            return Some(self.engine_ops_per_second()? * ops as f64 / self.ops as f64);
        }
        let all: f64 = own().map(engine_ops).sum::<Option<f64>>()?;
        (self.elapsed_ns > 0).then(|| all / (self.elapsed_ns as f64 / 1e9))
    }

    /// The shares of the phase's thread time that the harness used; none: an older version measured it.
    pub fn harness_shares(&self) -> Option<HarnessShares> {
        let thread_ns: f64 = self.threads.iter().map(|thread| thread.elapsed_ns as f64).sum();
        let times = self.harness.filter(|_| thread_ns > 0.0)?;
        let share = |ns: u64| (ns as f64 / thread_ns).min(1.0);
        Some(HarnessShares {
            generation: share(times.generation_ns),
            checks: share(times.checks_ns),
            boundary: share(times.boundary_ns),
        })
    }
}

/// The ops that a thread would have run in its time if the harness took none; none: no time was inside the driver.
fn engine_ops(thread: &ThreadRecord) -> Option<f64> {
    match (thread.ops, thread.inside_ns) {
        (0, _) => Some(0.0),
        (_, 0) => None,
        (ops, inside_ns) => Some(ops as f64 * thread.elapsed_ns as f64 / inside_ns as f64),
    }
}

/// The parts of the harness share: shares of a phase's thread time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HarnessShares {
    /// As in [`HarnessTimes`].
    pub generation: f64,
    /// As in [`HarnessTimes`].
    pub checks: f64,
    /// As in [`HarnessTimes`].
    pub boundary: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_is_not_in_the_rate_of_the_engine() {
        let mut phase = crate::results::fixture::records().remove(0).phases.remove(0);
        let thread = phase.threads[0].clone();
        let of = |role: Role, ops, inside_ns| ThreadRecord {
            role: role.into(),
            ops,
            inside_ns,
            elapsed_ns: 1_000_000_000,
            cpu_ns: None,
            run_delay_ns: None,
            ..thread.clone()
        };
        // A reader that spends half of its time outside, and a writer that spends nearly none.
        phase.threads =
            vec![of(Role::Reader, 2_500_000, 500_000_000), of(Role::Writer, 10_000, 1_000_000_000)];
        (phase.elapsed_ns, phase.ops, phase.harness_share) = (1_000_000_000, 2_510_000, 0.25);
        assert_eq!(phase.engine_ops_per_second(), Some(5_010_000.0));
        assert_eq!(phase.engine_ops_per_second_of(Role::Reader, 2_500_000), Some(5_000_000.0));
        assert_eq!(phase.engine_ops_per_second_of(Role::Writer, 10_000), Some(10_000.0));
        // A thread for which no op was left.
        phase.threads.push(of(Role::Reader, 0, 0));
        assert_eq!(phase.engine_ops_per_second_of(Role::Reader, 2_500_000), Some(5_000_000.0));
        // Two threads that do the same, each a quarter of its time outside.
        phase.threads = vec![of(Role::Mix, 1_000, 750_000_000), of(Role::Mix, 1_000, 750_000_000)];
        (phase.ops, phase.harness_share) = (2_000, 0.25);
        assert!((phase.engine_ops_per_second().unwrap() - 2_000.0 / 0.75).abs() < 1e-6);
        // Threads that do both: the kinds share the time.
        assert!((phase.engine_ops_per_second_of(Role::Reader, 500).unwrap() - 500.0 / 0.75).abs() < 1e-6);
        assert_eq!(phase.engine_elapsed_ns(), Some(750_000_000));
    }

    #[test]
    fn one_thread_beyond_its_bound_is_enough() {
        let one = CallTimes {
            calls: 10,
            called_ns: 1_000,
            waited_ns: 1,
            unaccounted_ns: 20,
            bound_ns: 100,
            calls_over_bound: 2,
            beyond: None,
        };
        let other = CallTimes { beyond: Some("too much".into()), ..one.clone() };
        assert_eq!(CallTimes::of_all(std::iter::once(one.clone())), Some(one.clone()));
        let both = CallTimes::of_all([one.clone(), other, one].into_iter()).unwrap();
        assert_eq!((both.calls, both.unaccounted_ns, both.calls_over_bound), (30, 60, 6));
        assert_eq!(both.beyond.as_deref(), Some("too much"));
        assert_eq!(CallTimes::of_all(std::iter::empty()), None);
    }
}
