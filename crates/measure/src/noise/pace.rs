//! How fast the machine is at a moment: the time of a step in registers, and of a load from 256 KiB and from 8 MiB, each of which
//! needs the result of the one before. Engines spend their time in such loads, and other guests and programs slow them down long
//! before they slow down registers.

#![allow(unsafe_code, reason = "memory that the allocator does not know")]

use crate::clock::monotonic_ns;
use crate::resources::cpu_ns_of_other_threads;
use crate::rounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

/// Each of the three times is the median of so many samples.
const SAMPLES: usize = 21;
/// Steps of a sample: about 0.1 to 0.2 ms.
const REGISTER_STEPS: u64 = 50_000;
const CACHE_STEPS: u64 = 24_000;
const MEMORY_STEPS: u64 = 1_000;
/// A pace that is not older is not measured again: phases may be shorter than this takes.
const FRESH_NS: u64 = 100_000_000;
const LINE_BYTES: usize = 64;
const CACHE_BYTES: usize = 256 << 10;
const MEMORY_BYTES: usize = 8 << 20;
/// Figures are rounded to so many decimals.
const DECIMALS: i32 = 4;
/// With any odd increment, a multiplier that is 1 modulo 4 visits all numbers below a power of two before it repeats one. The order
/// is none that a processor foresees.
const MULTIPLIER: usize = 0x5_DEEC_E66D;
const INCREMENT: usize = 11;

/// The last pace of this process, and when it was measured.
static LAST: Mutex<Option<(u64, Pace)>> = Mutex::new(None);

/// The speed of the machine at a moment, as seen by one thread that nothing interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pace {
    /// A step in registers, three shifts and three exclusive ors, nanoseconds.
    pub registers_ns: f64,
    /// A load from 256 KiB, nanoseconds.
    pub cache_ns: f64,
    /// A load from 8 MiB, nanoseconds.
    pub memory_ns: f64,
    /// CPU time of the other threads of the process meanwhile, as a share of the time: an engine that works in the background slows
    /// the measurement down itself. None: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cpu_share: Option<f64>,
}

impl Pace {
    /// Measures it, which takes about 10 ms and evicts what is in the nearest caches, or returns what was measured in the last 0.1 s.
    /// None: it cannot be measured here.
    pub fn now() -> Option<Self> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |(at_ns, _): &(u64, Self)| monotonic_ns().saturating_sub(*at_ns) < FRESH_NS;
        if let Some((_, pace)) = last.filter(is_fresh) {
            return Some(pace);
        }
        let pace = Self::measured()?;
        *last = Some((monotonic_ns(), pace));
        Some(pace)
    }

    fn measured() -> Option<Self> {
        let memory = Ring::new(MEMORY_BYTES)?;
        let cache = Ring::new(CACHE_BYTES)?;
        let (begin_ns, others) = (monotonic_ns(), cpu_ns_of_other_threads());
        let pace = Self {
            registers_ns: step_ns(REGISTER_STEPS, shifted),
            cache_ns: step_ns(CACHE_STEPS, |place, steps| cache.follow(place, steps)),
            memory_ns: step_ns(MEMORY_STEPS, |place, steps| memory.follow(place, steps)),
            own_cpu_share: None,
        };
        let elapsed_ns = monotonic_ns().saturating_sub(begin_ns).max(1);
        let used = cpu_ns_of_other_threads().zip(others).map(|(now, then)| now.saturating_sub(then));
        let own_cpu_share = used.map(|used| rounded(used as f64 / elapsed_ns as f64, DECIMALS));
        Some(Self { own_cpu_share, ..pace })
    }

    /// The pace of a span from a part of `own_ns` nanoseconds, and `other`, that of the remaining `other_ns`.
    pub(super) fn with(self, own_ns: u64, other: Self, other_ns: u64) -> Self {
        let whole = (own_ns as f64 + other_ns as f64).max(1.0);
        let mean =
            |own: f64, other: f64| rounded((own * own_ns as f64 + other * other_ns as f64) / whole, DECIMALS);
        Self {
            registers_ns: mean(self.registers_ns, other.registers_ns),
            cache_ns: mean(self.cache_ns, other.cache_ns),
            memory_ns: mean(self.memory_ns, other.memory_ns),
            own_cpu_share: self.own_cpu_share.zip(other.own_cpu_share).map(|(own, other)| mean(own, other)),
        }
    }
}

/// The time of a step, nanoseconds: the median of samples, most of which nothing interrupts. The first one fills the caches and does
/// not count.
fn step_ns(steps: u64, run: impl Fn(usize, u64) -> usize) -> f64 {
    let mut place = black_box(run(0, steps));
    let mut times = [0; SAMPLES];
    for time in &mut times {
        let begin_ns = monotonic_ns();
        place = black_box(run(place, steps));
        *time = monotonic_ns().saturating_sub(begin_ns);
    }
    times.sort_unstable();
    rounded(times[SAMPLES / 2] as f64 / steps as f64, DECIMALS)
}

/// Steps in registers. A compiler makes one of several multiplications, but not of these.
fn shifted(place: usize, steps: u64) -> usize {
    let mut state = place as u64 | 1;
    for _ in 0..black_box(steps) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state as usize
}

/// Lines of memory, each with the place of the next one, in small pages of its own mapping: freeing a large block would change what
/// the allocator does for the engine, and huge pages are sometimes there and sometimes not.
struct Ring {
    start: *mut u32,
    bytes: usize,
}

/// Entries of a line.
const ENTRIES: usize = LINE_BYTES / size_of::<u32>();

#[cfg(unix)]
impl Ring {
    /// A ring of so many bytes, a power of two; none: the kernel gives no memory.
    fn new(bytes: usize) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let ring = Self { start: start.cast(), bytes };
        #[cfg(target_os = "linux")]
        // SAFETY: the range is the mapping. If the kernel refuses, the pages may be huge.
        unsafe {
            libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE);
        }
        let lines = bytes / LINE_BYTES;
        for line in 0..lines {
            let next = line.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) % lines;
            // SAFETY: the line is within the mapping, which is aligned to a page.
            unsafe { ring.start.add(line * ENTRIES).write((next * ENTRIES) as u32) };
        }
        Some(ring)
    }

    /// Follows the ring from a place for some steps.
    fn follow(&self, mut place: usize, steps: u64) -> usize {
        for _ in 0..steps {
            // SAFETY: the place is 0 or was read from the ring, so it is that of a line within the mapping.
            place = unsafe { self.start.add(place).read() } as usize;
        }
        place
    }
}

#[cfg(unix)]
impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of this ring, which nothing else uses.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

#[cfg(not(unix))]
impl Ring {
    fn new(_bytes: usize) -> Option<Self> {
        None
    }

    fn follow(&self, place: usize, _steps: u64) -> usize {
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_visits_each_line_once() {
        for bytes in [CACHE_BYTES, MEMORY_BYTES] {
            let (ring, lines) = (Ring::new(bytes).unwrap(), bytes / LINE_BYTES);
            let mut seen = vec![false; lines];
            let mut line = 0;
            for _ in 0..lines {
                assert!(!seen[line], "{bytes} bytes, line {line}");
                seen[line] = true;
                line = line.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) % lines;
            }
            assert_eq!((line, ring.follow(0, lines as u64)), (0, 0));
        }
    }

    #[test]
    fn what_was_measured_just_now_is_not_measured_again() {
        let first = Pace::now().unwrap();
        for ns in [first.registers_ns, first.cache_ns, first.memory_ns] {
            assert!(ns > 0.0 && ns < 1e6, "{first:?}");
        }
        // Another value cannot be told from a new measurement unless it is one that none has.
        let known = Pace { registers_ns: -1.0, ..first };
        *LAST.lock().unwrap() = Some((monotonic_ns(), known));
        assert_eq!(Pace::now(), Some(known));
        *LAST.lock().unwrap() = Some((monotonic_ns().saturating_sub(2 * FRESH_NS), known));
        assert_ne!(Pace::now(), Some(known));
    }

    #[test]
    fn rounds_are_put_together_by_their_lengths() {
        let pace =
            |ns: f64| Pace { registers_ns: ns, cache_ns: 2.0 * ns, memory_ns: 9.0 * ns, own_cpu_share: None };
        assert_eq!(pace(1.0).with(300, pace(2.0), 100), pace(1.25));
    }
}
