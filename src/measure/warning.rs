//! Every warning there is, with what to do about it. Facts come from elsewhere; here they become sentences.

mod find;
#[cfg(test)]
mod tests;

pub use find::{
    Disturbance, disturbance_of_speed, disturbances, disturbances_of_phase, warnings_of, warnings_of_clock,
    warnings_of_noise,
};

use super::SeriesRow;
use super::units::share_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A trial whose harness took a larger share than this is marked.
pub const HARNESS_SHARE_LIMIT: f64 = 0.10;

/// A phase whose median rate in the last third of its seconds differs by more than this from that in the third before was
/// not steady.
const STEADY_LIMIT: f64 = 0.10;
/// Whole seconds that must be there to tell.
const STEADY_SECONDS: usize = 9;

/// What a reader has to know, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stays the same in all versions: `debug-build`.
    pub id: String,
    /// What was seen, with figures.
    pub text: String,
    /// What to do.
    pub advice: String,
}

macro_rules! concerns {
    ($($(#[$doc:meta])* $name:ident, $id:literal, $advice:literal;)*) => {
        /// The kinds of warnings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Concern { $($(#[$doc])* $name,)* }

        impl Concern {
            /// All of them.
            pub const ALL: &[Concern] = &[$(Concern::$name,)*];

            /// Its name in records: stays the same in all versions.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// What to do about it.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

concerns! {
    /// The tool was built without optimisation.
    DebugBuild, "debug-build", "Measure with a release build: cargo run --release.";
    /// The data path is in memory.
    MemoryFileSystem, "memory-file-system", "Put the data path on a disk: a sync in memory keeps nothing.";
    /// Other work is running.
    Load, "load", "Wait until the machine is quiet, or ask for more repetitions with --runs 10.";
    /// CPUs change their frequency.
    Governor, "governor", "Set the governor: cpupower frequency-set -g performance.";
    /// CPUs run faster while they are cool.
    Turbo, "turbo", "Switch turbo off for figures that repeat, or ask for more repetitions.";
    /// Little space on the disk.
    LowDiskSpace, "low-disk-space", "Free space on the disk of the data path, or choose another data path.";
    /// Little memory left.
    LowMemory, "low-memory", "Stop other programs, or give the engines a smaller cache with --cache.";
    /// Swap space is on.
    Swap, "swap", "Switch swap off while measuring: swapoff -a.";
    /// Few open files are allowed.
    FewOpenFiles, "few-open-files", "Raise the limit: ulimit -n 65536; engines with many files need it.";
    /// The control group limits CPU time.
    CpuQuota, "cpu-quota", "Measure outside the container, or give it whole CPUs: a quota stops threads in between.";
    /// The control group limits memory.
    MemoryLimit, "memory-limit", "Keep in mind that the page cache counts towards this limit too.";
    /// Huge pages without being asked.
    HugePages, "huge-pages", "Set transparent huge pages to madvise: with always, memory figures are too high.";
    /// A hypervisor is below.
    VirtualMachine, "virtual-machine", "Expect more noise than on a machine of your own; repeat on one before publishing.";
    /// The counter cannot be used.
    SlowClock, "slow-clock", "Make the kernel use the processor's counter if it is sound: boot with clocksource=tsc.";
    /// Reading the clock costs much.
    CostlyClock, "costly-clock", "Compare only engines whose ops take much longer than one clock read.";
    /// The clock goes backward between CPUs.
    ClockStepsBack, "clock-steps-back", "Bind the run to one CPU with taskset, or use another machine.";
    /// The hypervisor gave our CPUs to others.
    Steal, "steal", "Repeat at another time: neighbours on the same host took CPU time.";
    /// Our threads waited for a CPU.
    RunDelay, "run-delay", "Use fewer threads than CPUs, and stop other programs.";
    /// Other programs used CPU time.
    OtherWork, "other-work", "Stop other programs and repeat.";
    /// The CPU became slower or faster.
    SpinDrift, "spin-drift", "Repeat when the machine is cool and quiet: its CPUs changed speed on the way.";
    /// Much of the time was the harness's.
    HarnessShare, "harness-share", "Read the rate as a lower bound: larger values or more work per op reduce the share.";
    /// The driver's times leave out too much of its calls.
    UnaccountedTime, "unaccounted-time", "Do not use this row's times: run kvdyno verify on the engine, and see docs/methodology.md, section 3.";
    /// Too few ops for high percentiles.
    ShortSample, "short-sample", "Run longer: --seconds or --ops.";
    /// A phase was cut short.
    NotWhole, "not-whole", "Do not compare this row: the phase ended before it was done.";
    /// Rates still moved at the end.
    NotSteady, "not-steady", "Run longer, or with a warm-up: the rate was still changing at the end.";
    /// The workload was made smaller to keep the time.
    Shrunk, "shrunk", "Give it more time, or fewer engines, for the full size.";
    /// Caches could not be dropped.
    CachesNotDropped, "caches-not-dropped", "Run as root, or read the figures as those of a warm cache.";
    /// Processes still ran when the trial had ended.
    LeftProcesses, "left-processes", "Tell the driver's author: close must end every process that the driver has started.";
    /// Keys, values and out buffers end at guard pages.
    GuardPages, "guard-pages", "Compare only with runs that have --paranoid too, and measure without it.";
    /// Not every version of every key was checked.
    ChecksReduced, "checks-reduced", "Use fewer keys for checks against the versions that were written.";
}

impl Concern {
    /// A warning of this kind with what was seen: a whole sentence.
    pub fn because(self, text: impl Into<String>) -> Warning {
        Warning { id: self.id().into(), text: text.into(), advice: self.advice().into() }
    }

    /// The kind with this name; none: no such kind.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|concern| concern.id() == id)
    }
}

/// The median rates of the last third of a series' whole seconds, and of the third before it.
fn rates_at_the_end(series: &[SeriesRow]) -> Option<(f64, f64)> {
    let longest = series.iter().map(|row| row.interval_ns).max()?;
    let whole = series.iter().filter(|row| row.interval_ns > longest / 2);
    let rates: Vec<f64> = whole.map(|row| row.ops as f64 / row.interval_ns as f64).collect();
    let third = rates.len() / 3;
    if rates.len() < STEADY_SECONDS {
        return None;
    }
    let middle = |rates: &[f64]| {
        let mut rates = rates.to_vec();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().filter(|rate| *rate > 0.0)
    };
    let (earlier, last) = rates.split_at(rates.len() - third);
    Some((middle(&earlier[earlier.len() - third..])?, middle(last)?))
}

impl Warning {
    /// If the harness took too large a share of a phase's time, that it did; `share` from 0 to 1.
    pub fn of_harness_share(phase: &str, share: f64) -> Option<Self> {
        (share > HARNESS_SHARE_LIMIT).then(|| {
            Concern::HarnessShare
                .because(format!("In phase {phase} {} of the time was the harness's own.", share_text(share)))
        })
    }

    /// If a driver's times do not account for its calls in a phase, that they do not, and why.
    pub fn of_call_times(phase: &str, why: Option<&str>) -> Option<Self> {
        why.map(|why| Concern::UnaccountedTime.because(format!("In phase {phase} {why}.")))
    }

    /// A phase ended early because no key was left to insert.
    pub fn of_missing_keys(phase: &str) -> Self {
        Concern::NotWhole.because(format!("Phase {phase} ended early because no key was left to insert."))
    }

    /// If the rate of a phase still moved at its end, that it did; `series` as its record has it.
    pub fn of_series(phase: &str, series: &[SeriesRow]) -> Option<Self> {
        let (before, after) = rates_at_the_end(series)?;
        let change = after / before - 1.0;
        (change.abs() > STEADY_LIMIT).then(|| {
            let direction = if change > 0.0 { "higher" } else { "lower" };
            let share = share_text(change.abs());
            Concern::NotSteady.because(format!(
                "In the last third of phase {phase} the rate was {share} {direction} than in the third before."
            ))
        })
    }

    /// If the page cache was not dropped before a phase that asks for it, that it was not, and why.
    pub fn of_caches(phase: &str, why_not: Option<&str>) -> Option<Self> {
        why_not.map(|why| {
            Concern::CachesNotDropped
                .because(format!("The page cache was not dropped before phase {phase}: {why}."))
        })
    }

    /// If the reads of a phase were not checked against the versions that were written, that they were not.
    pub fn of_checks(phase: &str, is_stateless: bool) -> Option<Self> {
        is_stateless.then(|| {
            Concern::ChecksReduced.because(format!(
                "Phase {phase} had too many keys for a table of versions: an old value of the right key would have passed."
            ))
        })
    }

    /// If a workload was made smaller to keep its time, that it was: what it had and has of keys, and of seconds.
    pub fn of_shrinking(workload: &str, keys: (u64, u64), seconds: (f64, f64)) -> Option<Self> {
        let keys_text = (keys.1 < keys.0).then(|| format!("{} keys instead of {}", keys.1, keys.0));
        let shorter = seconds.1 < seconds.0;
        let seconds_text =
            shorter.then(|| format!("phases of {:.1} s in all instead of {:.1} s", seconds.1, seconds.0));
        let texts: Vec<String> = keys_text.into_iter().chain(seconds_text).collect();
        (!texts.is_empty()).then(|| {
            Concern::Shrunk
                .because(format!("{workload} was made smaller to keep its time: {}.", texts.join(", ")))
        })
    }

    /// If the trial had guard pages, that it had.
    pub fn of_guard_pages(are_there: bool) -> Option<Self> {
        are_there.then(|| Concern::GuardPages.because("Keys, values and out buffers ended at guard pages."))
    }

    /// If processes that the engine had started still ran when the trial had ended, that they did; their names and how many
    /// of each.
    pub fn of_left(names: &BTreeMap<&str, usize>) -> Option<Self> {
        let all: usize = names.values().sum();
        let each: Vec<String> = names.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let processes = if all == 1 { "process" } else { "processes" };
        (all > 0).then(|| {
            Concern::LeftProcesses.because(format!(
                "{all} {processes} that the driver had started still ran when the trial had ended, and had to be killed: {}.",
                each.join(", ")
            ))
        })
    }

    /// If a phase has too few ops for its 99th percentile, that it has.
    pub fn of_sample(phase: &str, ops: u64) -> Option<Self> {
        (ops < 100).then(|| {
            Concern::ShortSample
                .because(format!("Phase {phase} has {ops} ops, too few for a 99th percentile."))
        })
    }
}
