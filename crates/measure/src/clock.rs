//! The clock that times ops: the CPU's time-stamp counter where it is reliable, otherwise the monotonic clock.

#![allow(unsafe_code, reason = "system calls and the processor's counter")]

mod across;
#[cfg(test)]
mod tests;

use super::rounded;
use kvdyno_driver::{ordered_ticks, ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Tick factors are 32.32 fixed-point numbers, so that a conversion is one multiplication and one shift.
const SHIFT: u32 = 32;
/// How long calibration watches both clocks: readings are accurate to about 30 ns, so the rate is accurate to about 3
/// parts per million.
const CALIBRATION_NS: u64 = 12_000_000;
/// Readings of both clocks, of which the closest pair counts: an interrupted reading is not the closest.
const BRACKETS: u32 = 200;
/// Rates outside this range are implausible for a clock: 20 GHz to 1 MHz.
const PLAUSIBLE_NS_PER_TICK: std::ops::Range<f64> = 0.05..1000.0;

/// Which counter is read. The numbers are those of `enum kv_clock` in the driver's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Monotonic = 0,
    Counter = 1,
}

const COUNTER: u32 = Kind::Counter as u32;

/// A clock with its rate. Ticks are valid for one machine until it restarts; only differences have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    kind: Kind,
    /// Nanoseconds per tick, times 2^32.
    ns_per_tick: u64,
    /// Ticks per nanosecond, times 2^32.
    ticks_per_ns: u64,
}

/// Facts about the clock, for records and users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// `counter` or `monotonic`.
    pub kind: String,
    /// What is read, and why it was chosen.
    pub source: String,
    /// Length of a tick, nanoseconds.
    pub ns_per_tick: f64,
    /// Cost of one read, nanoseconds.
    pub cost_ns: f64,
    /// Smallest nonzero difference between two consecutive reads, nanoseconds; absent if no reads differed.
    pub smallest_step_ns: Option<f64>,
    /// Difference that 99.9 % of consecutive reads do not exceed, nanoseconds.
    pub step_p999_ns: f64,
    /// How many times a time was passed from one CPU to another to check whether it goes backward there; absent if
    /// that was not possible.
    pub hand_offs: Option<u64>,
    /// How many times it went backward; absent if that could not be checked.
    pub backward_steps: Option<u64>,
}

impl Clock {
    /// Chooses the clock and determines its rate. Takes about 12 ms if there is a counter, otherwise no time.
    pub fn calibrate() -> Self {
        if counter_refusal().is_some() {
            return Self::monotonic();
        }
        let begin = Bracket::closest();
        std::thread::sleep(std::time::Duration::from_nanos(CALIBRATION_NS));
        let end = Bracket::closest();
        let ticks = end.ticks.wrapping_sub(begin.ticks);
        let ns_per_tick = end.ns.saturating_sub(begin.ns) as f64 / ticks as f64;
        let announced =
            announced_ns_per_tick().filter(|announced| (ns_per_tick / announced - 1.0).abs() < 1e-3);
        Self::counter_at(announced.unwrap_or(ns_per_tick)).unwrap_or(Self::monotonic())
    }

    /// The monotonic clock: a tick is a nanosecond. Needs no calibration.
    pub const fn monotonic() -> Self {
        Self { kind: Kind::Monotonic, ns_per_tick: 1 << SHIFT, ticks_per_ns: 1 << SHIFT }
    }

    fn counter_at(ns_per_tick: f64) -> Option<Self> {
        let one = (1_u64 << SHIFT) as f64;
        PLAUSIBLE_NS_PER_TICK.contains(&ns_per_tick).then(|| Self {
            kind: Kind::Counter,
            ns_per_tick: (ns_per_tick * one).round() as u64,
            ticks_per_ns: (one / ns_per_tick).round() as u64,
        })
    }

    /// The current time, ticks.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.kind {
            Kind::Counter => ticks(COUNTER),
            Kind::Monotonic => monotonic_ns(),
        }
    }

    /// Converts a time span in ticks to nanoseconds, rounded down.
    #[inline(always)]
    pub const fn to_ns(&self, ticks: u64) -> u64 {
        ((ticks as u128 * self.ns_per_tick as u128) >> SHIFT) as u64
    }

    /// Converts a time span in nanoseconds to ticks, rounded down.
    #[inline(always)]
    pub const fn from_ns(&self, ns: u64) -> u64 {
        ((ns as u128 * self.ticks_per_ns as u128) >> SHIFT) as u64
    }

    /// The number by which drivers know this clock: 0 monotonic, 1 counter (`enum kv_clock` of the driver's header).
    pub const fn kind(&self) -> u32 {
        self.kind as u32
    }

    /// Measures the clock itself. Takes at most about 15 ms.
    pub fn facts(&self) -> ClockFacts {
        let (smallest_step_ns, step_p999_ns) = self.steps_ns();
        let across = across::hand_off(self);
        let (kind, source) = match self.kind {
            Kind::Counter => ("counter", counter_source()),
            Kind::Monotonic => ("monotonic", monotonic_source()),
        };
        ClockFacts {
            kind: kind.into(),
            source,
            ns_per_tick: rounded(self.ns_per_tick as f64 / (1_u64 << SHIFT) as f64, 9),
            cost_ns: self.cost_ns(),
            smallest_step_ns,
            step_p999_ns,
            hand_offs: across.map(|across| across.hand_offs),
            backward_steps: across.map(|across| across.backward_steps),
        }
    }

    /// Cost of one read, nanoseconds: the best of several rounds, because interruptions only add time. Takes a few ms
    /// at most.
    pub fn cost_ns(&self) -> f64 {
        const READS: u32 = 1000;
        let round = || {
            let begin = monotonic_ns();
            for _ in 0..READS {
                black_box(self.now());
            }
            monotonic_ns().saturating_sub(begin)
        };
        let best_ns = (0..40).map(|_| round()).min().unwrap_or(0);
        rounded(best_ns as f64 / f64::from(READS), 3)
    }

    /// The smallest step and the 99.9th percentile of steps between consecutive reads.
    fn steps_ns(&self) -> (Option<f64>, f64) {
        let mut steps: Vec<u64> = vec![0; 20_000];
        let mut before = self.now();
        for step in &mut steps {
            let now = self.now();
            *step = now.saturating_sub(before);
            before = now;
        }
        steps.sort_unstable();
        let tick_ns = self.ns_per_tick as f64 / (1_u64 << SHIFT) as f64;
        let least = steps.iter().copied().find(|&step| step > 0);
        let in_ns = |ticks: u64| rounded(ticks as f64 * tick_ns, 3);
        (least.map(in_ns), in_ns(steps[steps.len() * 999 / 1000]))
    }
}

/// A reading of both clocks at nearly the same moment.
struct Bracket {
    ticks: u64,
    ns: u64,
    width_ns: u64,
}

impl Bracket {
    fn read() -> Self {
        let before_ns = monotonic_ns();
        let ticks = ordered_ticks(COUNTER);
        let after_ns = monotonic_ns();
        let width_ns = after_ns.saturating_sub(before_ns);
        Self { ticks, ns: before_ns + width_ns / 2, width_ns }
    }

    fn closest() -> Self {
        let first = Self::read();
        (1..BRACKETS)
            .map(|_| Self::read())
            .fold(first, |best, next| if next.width_ns < best.width_ns { next } else { best })
    }
}

/// The monotonic clock, nanoseconds since a moment that does not change while the machine runs.
#[cfg(unix)]
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; the clock exists on every Unix, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock, nanoseconds since the first call in this process.
#[cfg(not(unix))]
pub fn monotonic_ns() -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

/// Why the counter must not be used; `None` if it may be used.
fn counter_refusal() -> Option<String> {
    if !cfg!(any(target_arch = "x86_64", all(target_arch = "aarch64", target_os = "linux"))) {
        return Some("this processor's counter is not supported".into());
    }
    #[cfg(target_arch = "x86_64")]
    if !is_invariant() {
        return Some("the processor's time-stamp counter is not invariant".into());
    }
    // The kernel watches the counter and stops using it when CPUs disagree, which cpuid cannot detect.
    let kernel = kernel_clock_source()?;
    let trusted = ["tsc", "arch_sys_counter"];
    (!trusted.contains(&kernel.as_str())).then(|| format!("the kernel's clock source is {kernel}"))
}

/// Whether the counter runs at one rate in all states of the CPU: leaf 0x80000007, bit 8 of EDX.
#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    const POWER_LEAF: u32 = 0x8000_0007;
    // A safe function in newer compilers.
    #[allow(unused_unsafe, reason = "safe in newer versions of std")]
    // SAFETY: every x86-64 processor has cpuid, and the highest leaf is queried before the leaf is read.
    unsafe {
        std::arch::x86_64::__cpuid(0x8000_0000).eax >= POWER_LEAF
            && std::arch::x86_64::__cpuid(POWER_LEAF).edx & (1 << 8) != 0
    }
}

/// The rate that the processor announces; `None` if it does not.
fn announced_ns_per_tick() -> Option<f64> {
    #[cfg(target_arch = "aarch64")]
    {
        let hertz: u64;
        // SAFETY: the frequency register can be read from user space on Linux; the read changes nothing.
        unsafe {
            std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags))
        };
        (hertz > 0).then(|| 1e9 / hertz as f64)
    }
    #[cfg(not(target_arch = "aarch64"))]
    None
}

/// The clock source that the kernel uses; `None` if unknown.
pub(super) fn kernel_clock_source() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn counter_source() -> String {
    let name = if cfg!(target_arch = "x86_64") { "tsc" } else { "cntvct_el0" };
    match kernel_clock_source() {
        Some(kernel) => format!("{name}, invariant; the kernel uses {kernel}"),
        None => format!("{name}, invariant; the kernel's clock source is unknown"),
    }
}

fn monotonic_source() -> String {
    let reason =
        counter_refusal().unwrap_or_else(|| "the counter was not requested, or has no steady rate".into());
    format!("CLOCK_MONOTONIC: {reason}")
}
