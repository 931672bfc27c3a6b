//! All warnings, with advice. The facts are collected elsewhere; here they become sentences.

mod find;
#[cfg(test)]
mod tests;

pub use find::{warnings_of, warnings_of_noise};

use super::{Printed, SeriesRow};
use crate::text::{bytes_text, grouped, listed, share_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A trial is marked if its harness took a larger share than this.
pub const HARNESS_SHARE_LIMIT: f64 = 0.10;

/// A phase was not steady if its median rate in the last third of its seconds differs by more than this from that in
/// the third before.
const STEADY_LIMIT: f64 = 0.10;
/// Minimum number of whole seconds for this check.
const STEADY_SECONDS: usize = 9;
/// Minimum number of whole seconds of a phase whose growth is judged.
const GROWTH_SECONDS: usize = 8;
/// Less growth from one quarter of a phase to the next is not told.
const LEAST_GROWTH_BYTES: u64 = 16 << 20;
const LEAST_GROWTH_FILES: u64 = 50;

/// The size of an engine's cache; the smallest is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheSize<'engine> {
    /// Bytes.
    pub bytes: u64,
    /// The engine's name.
    pub engine: &'engine str,
}

/// A setting that was changed before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<Value> {
    /// As it was requested.
    pub before: Value,
    /// As it is run.
    pub after: Value,
}

/// Something that a reader must know, with advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The same in all versions: `debug-build`.
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

            /// Its name in records: the same in all versions.
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
    /// The tool was built without optimization.
    DebugBuild, "debug-build", "Measure with a release build: cargo run --release.";
    /// The data path is in memory.
    MemoryFileSystem, "memory-file-system", "Put the data path on a disk: a sync to memory does not make data durable.";
    /// Other work is running.
    Load, "load", "Wait until the machine is quiet, or request more runs with --runs 10.";
    /// CPUs change their frequency.
    Governor, "governor", "Set the governor: cpupower frequency-set -g performance.";
    /// CPUs run faster while they are cool.
    Turbo, "turbo", "Turn turbo off for reproducible results, or request more runs with --runs.";
    /// Little space on the disk.
    LowDiskSpace, "low-disk-space", "Free space on the disk of the data path, or choose another data path.";
    /// Little memory left.
    LowMemory, "low-memory", "Stop other programs, or give the engines a smaller cache with --cache.";
    /// Swap space is on.
    Swap, "swap", "Turn swap off while measuring: swapoff -a.";
    /// Few open files are allowed.
    FewOpenFiles, "few-open-files", "Raise the limit: ulimit -n 65536; engines with many files need it.";
    /// The control group limits CPU time.
    CpuQuota, "cpu-quota", "Measure outside the container, or assign it entire CPUs: a quota pauses threads while they work.";
    /// The control group limits memory.
    MemoryLimit, "memory-limit", "Note that the page cache counts toward this limit too.";
    /// Huge pages are used without a request.
    HugePages, "huge-pages", "Set transparent huge pages to madvise: with always, the reported memory use is too high.";
    /// The machine is virtual.
    VirtualMachine, "virtual-machine", "Expect more noise than on dedicated hardware; repeat the run there before you publish results.";
    /// The counter cannot be used.
    SlowClock, "slow-clock", "If the processor's counter is reliable, make the kernel use it: boot with clocksource=tsc.";
    /// Reading the clock is expensive.
    CostlyClock, "costly-clock", "Compare only engines whose ops take much longer than one clock read.";
    /// The clock goes backward between CPUs.
    ClockStepsBack, "clock-steps-back", "Pin the run to one CPU with taskset, or use another machine.";
    /// The hypervisor gave CPU time to other guests.
    Steal, "steal", "Repeat the run at another time: other guests on the same host took CPU time.";
    /// Other programs used CPU time.
    OtherWork, "other-work", "Stop other programs and repeat the run.";
    /// The harness took much of the time.
    HarnessShare, "harness-share", "Treat the throughput as a lower bound. Larger values or more work per op reduce the share.";
    /// The driver's times do not account for enough of its calls.
    UnaccountedTime, "unaccounted-time", "Do not use the times of this row. Run kvdyno prove --only rules on the engine, and see docs/methodology.md, section 3.";
    /// Too few ops for high percentiles.
    ShortSample, "short-sample", "Run longer: --seconds or --ops.";
    /// A phase was cut short.
    NotWhole, "not-whole", "Do not compare this row: the phase ended before it was complete.";
    /// The rate was still changing at the end.
    NotSteady, "not-steady", "Run longer or with a longer warm-up: the rate was still changing at the end.";
    /// Something grew until the end of a phase that added no keys.
    Growth, "growth", "Run longer: if it never ends, the engine leaks. A cache or a write buffer that fills looks the same at first.";
    /// The workload was shrunk to fit the time budget.
    Shrunk, "shrunk", "For the full size, allow more time or use fewer engines.";
    /// Groups of writes were made smaller.
    SmallerGroups, "smaller-groups", "Use smaller values for larger groups: the harness holds the keys and values of a group in memory.";
    /// Caches could not be dropped.
    CachesNotDropped, "caches-not-dropped", "Run as root, or treat the results as those of a warm cache.";
    /// Processes were still running after the trial had ended.
    LeftProcesses, "left-processes", "Report this to the driver's author: close must end every process that the driver has started.";
    /// The driver or its engine printed.
    Printed, "printed", "Report this to the driver's author: printing takes time from the ops, and a driver must not print (rule 9 of driver.h).";
    /// Keys, values and out buffers end at guard pages.
    GuardPages, "guard-pages", "Compare only with other runs that use --paranoid; measure without it.";
    /// A machine of a campaign runs the reference faster or slower than the others.
    OddMachine, "odd-machine", "Find out why, or merge again without its slices: engines are compared within machines, but medians include it.";
    /// The machines of a campaign are not of the same kind.
    MachinesDiffer, "machines-differ", "Compare engines by their ratios, which are taken within machines; medians depend on the mix of machines.";
    /// The engines of a workload had caches of different sizes, because no size was requested.
    CachesDiffer, "caches-differ", "Give all engines the same budget: --cache 64MiB.";
    /// Not every version of every key was checked.
    ChecksReduced, "checks-reduced", "Use fewer keys to check every read against the last written version.";
    /// Values are too small to contain their version.
    SmallValues, "small-values", "Use values of 8 bytes or more to check the version of every value that is read.";
}

impl Concern {
    /// A warning of this kind with its observation: a complete sentence.
    pub fn because(self, text: impl Into<String>) -> Warning {
        Warning { id: self.id().into(), text: text.into(), advice: self.advice().into() }
    }
}

/// Growth of something until the end of a series: none if it stopped, or slowed down to less than half.
struct Growth {
    per_second: f64,
    last: u64,
}

/// The growth in the last three quarters of a series' whole seconds, by the medians of its quarters. It is growth only if each
/// of these is larger than the one before by at least `least`.
fn growth_at_the_end(series: &[SeriesRow], of: fn(&SeriesRow) -> Option<u64>, least: u64) -> Option<Growth> {
    let longest = series.iter().map(|row| row.interval_ns).max()?;
    let whole: Vec<&SeriesRow> = series.iter().filter(|row| row.interval_ns > longest / 2).collect();
    let values: Vec<u64> = whole.iter().filter_map(|row| of(row)).collect();
    if values.len() < GROWTH_SECONDS || values.len() < whole.len() {
        return None;
    }
    let quarter = values.len() / 4;
    let middle = |place: usize| {
        let end = values.len() - (3 - place) * quarter;
        let mut part = values[end - quarter..end].to_vec();
        part.sort_unstable();
        part[quarter / 2]
    };
    let [second, third, last] = [middle(1), middle(2), middle(3)];
    let (before, after) = (third.checked_sub(second)?, last.checked_sub(third)?);
    let span_ns: u64 = whole[whole.len() - quarter..].iter().map(|row| row.interval_ns).sum();
    let has_grown = before >= least && after >= least && after >= before / 2;
    has_grown.then(|| Growth { per_second: after as f64 * 1e9 / span_ns as f64, last })
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
    /// A warning if the harness took too large a share of a phase's time; `share` from 0 to 1.
    pub fn of_harness_share(phase: &str, share: f64) -> Option<Self> {
        (share > HARNESS_SHARE_LIMIT).then(|| {
            Concern::HarnessShare.because(format!(
                "In phase {phase} the harness itself took {} of the time.",
                share_text(share)
            ))
        })
    }

    /// A warning if a driver's times do not account for its calls in a phase, with the reason.
    pub fn of_call_times(phase: &str, why: Option<&str>) -> Option<Self> {
        why.map(|why| Concern::UnaccountedTime.because(format!("In phase {phase} {why}.")))
    }

    /// A phase ended early because no key was left to insert.
    pub fn of_missing_keys(phase: &str) -> Self {
        Concern::NotWhole.because(format!("Phase {phase} ended early because no key was left to insert."))
    }

    /// A warning if the rate of a phase was still changing at its end; `series` as in its record.
    pub fn of_series(phase: &str, series: &[SeriesRow]) -> Option<Self> {
        let (before, after) = rates_at_the_end(series)?;
        let change = after / before - 1.0;
        (change.abs() > STEADY_LIMIT).then(|| {
            let direction = if change > 0.0 { "higher" } else { "lower" };
            let share = share_text(change.abs());
            Concern::NotSteady.because(format!(
                "In the last third of phase {phase} the rate was {share} {direction} than in the third before it."
            ))
        })
    }

    /// A warning if memory or open files grew until the end of a phase that added no keys; `series` as in its record.
    pub fn of_growth(phase: &str, series: &[SeriesRow]) -> Option<Self> {
        let memory = growth_at_the_end(series, |row| row.rss_anonymous_bytes, LEAST_GROWTH_BYTES);
        let files = growth_at_the_end(series, |row| row.open_files, LEAST_GROWTH_FILES);
        let memory = memory.map(|growth| {
            let (rate, last) = (bytes_text(growth.per_second as u64), bytes_text(growth.last));
            format!("the memory of its process still grew by {rate} per second, to {last}")
        });
        let files = files.map(|growth| {
            format!("open files still grew by {:.0} per second, to {}", growth.per_second, growth.last)
        });
        let texts: Vec<String> = memory.into_iter().chain(files).collect();
        (!texts.is_empty()).then(|| {
            Concern::Growth.because(format!(
                "At the end of phase {phase}, which added no keys, {}.",
                texts.join(", and ")
            ))
        })
    }

    /// A warning if the page cache was not dropped before a phase that requires it, with the reason.
    pub fn of_caches(phase: &str, why_not: Option<&str>) -> Option<Self> {
        why_not.map(|why| {
            Concern::CachesNotDropped
                .because(format!("The page cache was not dropped before phase {phase}: {why}."))
        })
    }

    /// A warning if engines that were compared had caches of their default sizes, which differ: the smallest and the largest.
    pub fn of_cache_sizes(least: CacheSize<'_>, most: CacheSize<'_>) -> Option<Self> {
        (least.bytes < most.bytes).then(|| {
            let of = |size: CacheSize<'_>| format!("{} ({})", bytes_text(size.bytes), size.engine);
            Concern::CachesDiffer.because(format!(
                "The engines had caches of their default sizes, from {} to {}.",
                of(least),
                of(most)
            ))
        })
    }

    /// A warning if the reads of a phase were not checked against the last written versions.
    pub fn of_checks(phase: &str, is_stateless: bool) -> Option<Self> {
        is_stateless.then(|| {
            Concern::ChecksReduced.because(format!(
                "Phase {phase} had too many keys for a table of versions, so a stale value of the right key was not detected."
            ))
        })
    }

    /// A warning if values are too small to contain their version: the sizes of the smallest and the largest value, bytes.
    pub fn of_small_values(least: usize, most: usize) -> Option<Self> {
        let checked = match (least, most) {
            (8.., _) => return None,
            (0, 0) => "Values have 0 bytes: only their presence and their length were checked",
            (0, _) => {
                "Values under 8 bytes contain no version: of those only presence, length and the bytes, which are the same for \
                 every version of a key, were checked; of those of 0 bytes presence and length"
            }
            _ => {
                "Values under 8 bytes contain no version: of those only presence, length and the bytes, which are the same for \
                 every version of a key, were checked"
            }
        };
        let text =
            format!("{checked}. An older value of the right key with the same length was not detected.");
        Some(Concern::SmallValues.because(text))
    }

    /// A warning if a workload was shrunk to fit its time budget: its keys and its seconds.
    pub fn of_shrinking(workload: &str, keys: Change<u64>, seconds: Change<f64>) -> Option<Self> {
        let keys_text = (keys.after < keys.before)
            .then(|| format!("{} keys instead of {}", grouped(keys.after), grouped(keys.before)));
        let shorter = seconds.after < seconds.before;
        let seconds_text = shorter
            .then(|| format!("{:.1} s of phases in total instead of {:.1} s", seconds.after, seconds.before));
        let texts: Vec<String> = keys_text.into_iter().chain(seconds_text).collect();
        (!texts.is_empty()).then(|| {
            Concern::Shrunk
                .because(format!("{workload} was shrunk to fit its time budget: {}.", texts.join(", ")))
        })
    }

    /// A warning if groups of a workload were made smaller: phases, with the writes of a group.
    pub fn of_groups(workload: &str, phases: &[(String, Change<u32>)]) -> Option<Self> {
        let each = |(name, group): &(String, Change<u32>)| {
            format!("{} instead of {} in phase {name}", group.after, group.before)
        };
        let texts: Vec<String> = phases.iter().map(each).collect();
        (!texts.is_empty()).then(|| {
            Concern::SmallerGroups.because(format!(
                "{workload} has fewer writes per group, because their keys and values would take over 16 MiB: {}.",
                texts.join(", ")
            ))
        })
    }

    /// A warning if the trial had guard pages.
    pub fn of_guard_pages(are_there: bool) -> Option<Self> {
        are_there.then(|| Concern::GuardPages.because("Keys, values and out buffers ended at guard pages."))
    }

    /// A warning if processes that the engine had started were still running after the trial had ended: their names,
    /// and how many of each.
    pub fn of_left(names: &BTreeMap<&str, usize>) -> Option<Self> {
        let all: usize = names.values().sum();
        let each: Vec<String> = names.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let processes = if all == 1 { "process" } else { "processes" };
        (all > 0).then(|| {
            Concern::LeftProcesses.because(format!(
                "{all} {processes} started by the driver still ran after the trial had ended and had to be killed: {}.",
                each.join(", ")
            ))
        })
    }

    /// A warning if the driver or its engine printed to stdout or stderr.
    pub fn of_printed(stream: &str, printed: &Printed) -> Option<Self> {
        (!printed.is_empty()).then(|| {
            Concern::Printed.because(format!("The driver or its engine {} ({stream}).", printed.text()))
        })
    }

    /// A warning if processes that the engine had started could not be killed: their names.
    pub fn of_blocked(names: &str) -> Option<Self> {
        (!names.is_empty()).then(|| {
            Concern::LeftProcesses.because(format!(
                "Processes that the driver had started could not be killed, because the kernel blocks them: {names}."
            ))
        })
    }

    /// A warning if machines of a campaign are odd: a clause for each, without a full stop.
    pub fn of_odd_machines(odd: &[String]) -> Option<Self> {
        let all = listed(odd, "and");
        let mut letters = all.chars();
        let first = letters.next()?.to_ascii_uppercase();
        Some(Concern::OddMachine.because(format!("{first}{}.", letters.as_str())))
    }

    /// A warning if the machines of a campaign differ: the facts that do, with their values.
    pub fn of_different_machines(facts: &[String]) -> Option<Self> {
        let all = facts.join("; ");
        (!facts.is_empty()).then(|| Concern::MachinesDiffer.because(format!("The machines differ: {all}.")))
    }

    /// A warning if a phase has too few ops for its 99th percentile.
    pub fn of_sample(phase: &str, ops: u64) -> Option<Self> {
        (ops < 100).then(|| {
            Concern::ShortSample
                .because(format!("Phase {phase} has {ops} ops, too few for a 99th percentile."))
        })
    }
}
