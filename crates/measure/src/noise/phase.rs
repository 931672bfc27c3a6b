//! Disturbance in one phase of a trial.

use super::{CpuProbe, Pace, run_delay_share, share};
use crate::clock::monotonic_ns;
use crate::resources::{RunDelays, ThreadTimes, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In a shorter span, one tick of the kernel or one time slice of another thread would look like a disturbance.
const LEAST_SPAN_NS: u64 = 100_000_000;

/// Disturbance in a phase without its warm-up. Each share is absent where the kernel does not report it, or if the
/// phase was too short to measure it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseNoise {
    /// Share of all CPUs' time that the hypervisor gave to other guests, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_share: Option<f64>,
    /// Of the time that our threads were running or ready to run, the share in which they waited for a CPU, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_share: Option<f64>,
    /// Share of all CPUs' time that other processes and the kernel used, 0 to 1. Processes started by the trial do
    /// not count as other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_cpu_share: Option<f64>,
    /// The pace of the machine before the phase and its warm-up; none: an older version measured it, it cannot be measured there, or
    /// several load generators ran the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_before: Option<Pace>,
    /// The pace after the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_after: Option<Pace>,
}

impl PhaseNoise {
    /// The paces that are known.
    pub fn paces(&self) -> impl Iterator<Item = Pace> {
        [self.pace_before, self.pace_after].into_iter().flatten()
    }

    /// The noise of a span from a part of `own_ns` nanoseconds, and `other`, the remaining `other_ns`.
    pub fn with(self, own_ns: u64, other: Self, other_ns: u64) -> Self {
        let whole = own_ns as f64 + other_ns as f64;
        let mean = |own: Option<f64>, other: Option<f64>| {
            share(own? * own_ns as f64 + other? * other_ns as f64, whole)
        };
        let pace = |own: Option<Pace>, other: Option<Pace>| Some(own?.with(own_ns, other?, other_ns));
        Self {
            steal_share: mean(self.steal_share, other.steal_share),
            run_delay_share: mean(self.run_delay_share, other.run_delay_share),
            other_cpu_share: mean(self.other_cpu_share, other.other_cpu_share),
            pace_before: pace(self.pace_before, other.pace_before),
            pace_after: pace(self.pace_after, other.pace_after),
        }
    }
}

/// The beginning of a phase.
#[derive(Clone, Debug)]
pub struct PhaseProbe {
    at_ns: u64,
    cpus: CpuProbe,
    delays: RunDelays,
}

impl PhaseProbe {
    /// Begins the phase. Reads one file per thread.
    pub fn start() -> Self {
        Self { at_ns: monotonic_ns(), cpus: CpuProbe::start(), delays: RunDelays::begin() }
    }

    /// Updates the threads' waiting times; to be called once a second, because threads of the engine may end.
    pub fn update(&mut self) {
        self.delays.update();
    }

    /// Ends the phase. `told` are the threads that reported their times before they ended; the run delay of all
    /// threads is stored in `usage`, the process's use of resources in the phase.
    pub fn finish(mut self, told: &[ThreadTimes], usage: &mut Usage) -> PhaseNoise {
        self.update();
        let numbers: Vec<u32> = told.iter().filter_map(|times| times.thread).collect();
        let of_told = told.iter().map(|times| times.run_delay_ns);
        let of_told = of_told.sum::<Option<u64>>();
        usage.run_delay_ns =
            of_told.map(|told| told.saturating_add(self.delays.sum_ns(&numbers).unwrap_or(0)));
        if monotonic_ns().saturating_sub(self.at_ns) < LEAST_SPAN_NS {
            return PhaseNoise::default();
        }
        let (steal_share, other_cpu_share) = self.cpus.finish();
        let run_delay_share = run_delay_share(usage.run_delay_ns, usage.cpu_ns());
        PhaseNoise { steal_share, run_delay_share, other_cpu_share, ..PhaseNoise::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(thread: u32, run_delay_ns: Option<u64>) -> ThreadTimes {
        ThreadTimes { thread: Some(thread), cpu_ns: Some(1), run_delay_ns }
    }

    fn usage() -> Usage {
        Usage { user_cpu_ns: Some(300_000_000), system_cpu_ns: Some(0), ..Usage::default() }
    }

    /// It began long ago, and only what threads reported is known.
    fn probe() -> PhaseProbe {
        let cpus = CpuProbe { ticks: None, own_cpu_ns: None };
        PhaseProbe { at_ns: 0, cpus, delays: RunDelays::begin() }
    }

    #[test]
    fn threads_that_have_ended_count_with_what_they_have_told() {
        // Numbers that no thread can have.
        let told = [waited(u32::MAX, Some(150_000_000)), waited(u32::MAX - 1, Some(150_000_000))];
        let mut used = usage();
        let noise = probe().finish(&told, &mut used);
        // Other threads of this test may have waited too.
        assert!(used.run_delay_ns.unwrap() >= 300_000_000, "{used:?}");
        assert!(noise.run_delay_share.unwrap() >= 0.5, "{noise:?}");
        assert_eq!((noise.steal_share, noise.other_cpu_share), (None, None));
    }

    #[test]
    fn what_one_thread_could_not_tell_is_unknown_of_all() {
        let mut used = usage();
        let noise = probe().finish(&[waited(u32::MAX, Some(1)), waited(1, None)], &mut used);
        assert_eq!((noise.run_delay_share, used.run_delay_ns), (None, None));
    }

    #[test]
    fn a_short_phase_does_not_tell() {
        let mut used = usage();
        let noise = PhaseProbe { at_ns: u64::MAX, ..probe() }.finish(&[waited(u32::MAX, Some(9))], &mut used);
        assert_eq!(noise, PhaseNoise::default());
        assert!(used.run_delay_ns.unwrap() >= 9);
    }

    #[test]
    fn rounds_are_put_together_by_their_lengths() {
        let noise = |share| PhaseNoise { run_delay_share: share, ..PhaseNoise::default() };
        let whole = noise(Some(0.1)).with(3_000, noise(Some(0.5)), 1_000);
        assert_eq!(whole.run_delay_share, Some(0.2));
        assert_eq!(noise(None).with(3_000, noise(Some(0.5)), 1_000), noise(None));
    }
}
