//! Activity of the rest of the machine during a measurement, and how fast and how steady its CPUs are.

#![allow(unsafe_code, reason = "system calls")]

mod pace;
mod phase;
#[cfg(test)]
mod tests;

pub use pace::Pace;
pub use phase::{PhaseNoise, PhaseProbe};

use super::clock::{Clock, monotonic_ns};
use super::resources::{RunDelays, Usage, read};
use super::rounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shares are rounded to six decimals.
const DECIMALS: i32 = 6;
/// Two consecutive clock reads are this far apart only if something else ran between them.
const GAP_NS: u64 = 1000;

/// Disturbance in a span of time. Each field is absent where the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Length of the span, nanoseconds.
    pub elapsed_ns: u64,
    /// Share of all CPUs' time that the hypervisor gave to other guests, 0 to 1.
    pub steal_share: Option<f64>,
    /// Of the time that our threads were running or ready to run, the share in which they waited for a CPU, 0 to 1.
    /// For a trial: over all its phases.
    pub run_delay_share: Option<f64>,
    /// Share of all CPUs' time that other processes and the kernel used, 0 to 1. Processes started by this one do not
    /// count as other.
    pub other_cpu_share: Option<f64>,
    /// Load average of the last minute at the beginning: threads that were running or ready to run.
    pub load_before: Option<f64>,
    /// The same at the end.
    pub load_after: Option<f64>,
    /// Time in which some thread of the machine waited for a CPU, nanoseconds.
    pub cpu_pressure_ns: Option<u64>,
    /// Time in which some thread of the machine waited for I/O, nanoseconds.
    pub io_pressure_ns: Option<u64>,
}

/// The beginning of a span.
#[derive(Clone, Debug)]
pub struct NoiseProbe {
    at_ns: u64,
    cpus: CpuProbe,
    delays: RunDelays,
    cpu_ns: Option<u64>,
    load: Option<f64>,
    cpu_pressure_ns: Option<u64>,
    io_pressure_ns: Option<u64>,
}

impl NoiseProbe {
    /// Begins a span.
    pub fn start() -> Self {
        Self {
            at_ns: monotonic_ns(),
            cpus: CpuProbe::start(),
            delays: RunDelays::begin(),
            cpu_ns: Usage::tree_cpu_ns(),
            load: load_average(),
            cpu_pressure_ns: pressure_ns("/proc/pressure/cpu"),
            io_pressure_ns: pressure_ns("/proc/pressure/io"),
        }
    }

    /// Ends the span. Call it while the threads that worked in the span still exist; otherwise their waiting time is
    /// missing.
    pub fn finish(&self) -> Noise {
        let elapsed_ns = monotonic_ns().saturating_sub(self.at_ns);
        let mut delays = self.delays.clone();
        delays.update();
        let cpu_ns = Usage::tree_cpu_ns().zip(self.cpu_ns).map(|(now, then)| now.saturating_sub(then));
        let (steal_share, other_cpu_share) = self.cpus.finish();
        let less = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Noise {
            elapsed_ns,
            steal_share,
            run_delay_share: run_delay_share(delays.sum_ns(&[]), cpu_ns),
            other_cpu_share,
            load_before: self.load,
            load_after: load_average(),
            cpu_pressure_ns: less(pressure_ns("/proc/pressure/cpu"), self.cpu_pressure_ns),
            io_pressure_ns: less(pressure_ns("/proc/pressure/io"), self.io_pressure_ns),
        }
    }
}

/// Time of all CPUs, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTicks {
    busy: u64,
    steal: u64,
    all: u64,
}

impl CpuTicks {
    fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            steal: self.steal.saturating_sub(earlier.steal),
            all: self.all.saturating_sub(earlier.all),
        }
    }

    fn other_share(self, own_cpu_ns: u64) -> Option<f64> {
        let own_ticks = own_cpu_ns as f64 * ticks_per_second()? / 1e9;
        // Our own time has a finer resolution than the sum; the difference may be below zero.
        share((self.busy as f64 - own_ticks).max(0.0), self.all as f64)
    }
}

/// CPU time of the machine, and our part of it, at the beginning of a span.
#[derive(Clone, Copy, Debug)]
struct CpuProbe {
    ticks: Option<CpuTicks>,
    own_cpu_ns: Option<u64>,
}

impl CpuProbe {
    fn start() -> Self {
        let ticks = read("/proc/stat").as_deref().and_then(parse_cpu_ticks);
        Self { ticks, own_cpu_ns: Usage::tree_cpu_ns() }
    }

    /// The share that was stolen, and the share that others used.
    fn finish(&self) -> (Option<f64>, Option<f64>) {
        let now = Self::start();
        let Some(ticks) = now.ticks.zip(self.ticks).map(|(now, then)| now.since(then)) else {
            return (None, None);
        };
        let own = now.own_cpu_ns.zip(self.own_cpu_ns).map(|(now, then)| now.saturating_sub(then));
        let stolen = share(ticks.steal as f64, ticks.all as f64);
        (stolen, own.and_then(|own| ticks.other_share(own)))
    }
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal; guests are part of user.
fn parse_cpu_ticks(text: &str) -> Option<CpuTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Vec<u64> =
        line.split_ascii_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = numbers[..] else {
        return None;
    };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTicks { busy, steal, all: busy + idle + iowait + steal })
}

/// Run delays and CPU times of several spans as one share; `None` if nothing ran.
pub fn run_delay_share_of(spans: &[(u64, u64)]) -> Option<f64> {
    let sum = |of: fn(&(u64, u64)) -> u64| spans.iter().map(of).fold(0, u64::saturating_add);
    run_delay_share(Some(sum(|span| span.0)), Some(sum(|span| span.1)))
}

/// Of the time that threads were running or ready to run, the share in which they waited.
fn run_delay_share(delay_ns: Option<u64>, cpu_ns: Option<u64>) -> Option<f64> {
    let delay_ns = delay_ns? as f64;
    share(delay_ns, delay_ns + cpu_ns? as f64)
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| rounded(part / whole, DECIMALS))
}

/// Load average of the last minute; `None` if unknown.
pub(super) fn load_average() -> Option<f64> {
    read("/proc/loadavg")?.split_ascii_whitespace().next()?.parse().ok()
}

/// Time of all CPUs that the hypervisor has given to other guests, nanoseconds; the kernel counts it in ticks.
pub(super) fn stolen_ns() -> Option<u64> {
    let ticks = parse_cpu_ticks(&read("/proc/stat")?)?;
    Some((ticks.steal as f64 * 1e9 / ticks_per_second()?) as u64)
}

/// Total of the line `some` of a pressure file, nanoseconds.
pub(super) fn pressure_ns(path: &str) -> Option<u64> {
    parse_pressure_ns(&read(path)?)
}

fn parse_pressure_ns(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total_us: u64 = line.split_once("total=")?.1.trim().parse().ok()?;
    total_us.checked_mul(1000)
}

#[cfg(unix)]
fn ticks_per_second() -> Option<f64> {
    // SAFETY: sysconf only reads a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks > 0).then_some(ticks as f64)
}

#[cfg(not(unix))]
fn ticks_per_second() -> Option<f64> {
    None
}

/// How often and how long a thread that only reads the clock was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Jitter {
    /// Share of the time lost to gaps over 1 us, 0 to 1.
    pub lost_share: f64,
    /// The longest gap, nanoseconds.
    pub longest_gap_ns: u64,
}

impl Jitter {
    /// Watches one CPU for `span_ns` nanoseconds by reading the clock continuously.
    pub fn watch(clock: &Clock, span_ns: u64) -> Self {
        let (begin, gap) = (clock.now(), clock.from_ns(GAP_NS));
        let (span, mut before) = (clock.from_ns(span_ns), begin);
        let (mut lost, mut longest) = (0, 0);
        while before.wrapping_sub(begin) < span {
            let now = clock.now();
            let step = now.saturating_sub(before);
            if step > gap {
                lost += step;
                longest = longest.max(step);
            }
            before = now;
        }
        let watched = before.wrapping_sub(begin).max(1);
        Self {
            lost_share: rounded(lost as f64 / watched as f64, DECIMALS),
            longest_gap_ns: clock.to_ns(longest),
        }
    }
}
