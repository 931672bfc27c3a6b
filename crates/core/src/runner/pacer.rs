//! The pacer of a thread whose requests arrive at a rate: it takes the next arrival and waits for it. The moments are the same for
//! every engine. A late request is sent at once; none is skipped, and the next ones keep their moments.
//!
//! Of a queue that all threads share, each thread draws all arrivals itself, so that they share no more than the number of the next
//! one. A free thread takes it before its moment, so that requests are served in their order by as many servers as there are threads.

use super::phase_data::Shared;
use crate::generator::{Arrivals, Rate, mix64};
use crate::workload::{Arriving, Phase, WhenLate};
use kvdyno_measure::{Clock, Histogram, cpu_ns_of_this_thread};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A thread sleeps until this long before a moment, and then reads the clock until it has come: a sleeping thread of a virtual
/// machine is woken some 50 us late, and seldom more than 100 us.
const SPIN_NS: u64 = 120_000;
/// The longest sleep, so that a phase that is stopped ends soon.
const SLEEP_NS: u64 = 50_000_000;
/// From the first thread's start to the first arrival, so that the others run, too.
const HEAD_START_NS: u64 = 2_000_000;
/// Sets the seed of arrivals apart from those of keys.
const ARRIVALS: u64 = 0x6172_7269_7661_6c73;
/// The most requests whose waiting times are counted one by one after the end of a phase.
const MOST_WAITING: u64 = 10_000_000;
/// The most requests that are counted again after the end of a phase.
const MOST_COUNTED: f64 = 1e8;
/// Moments kept of all threads together, to test the gaps between them.
const KEPT: u64 = 4096;
/// Of so many arrivals in a row, so that there are gaps between them.
const KEPT_IN_A_ROW: u64 = 64;

/// What the threads of a phase share whose requests arrive at a rate.
pub(super) struct Arriver {
    rate: Rate,
    how: Arriving,
    late: WhenLate,
    seed: u64,
    /// The number of the next arrival, of a common queue.
    next: AtomicU64,
    /// Tick from which moments count.
    from: OnceLock<u64>,
}

impl Arriver {
    /// That of a phase; none: its loop is closed.
    pub(super) fn of(phase: &Phase, seed: u64) -> Option<Arriver> {
        let rate = phase.rate.clone()?;
        Some(Arriver {
            rate,
            how: phase.arrivals,
            late: phase.when_late,
            seed: mix64(seed ^ ARRIVALS),
            next: AtomicU64::new(0),
            from: OnceLock::new(),
        })
    }

    /// Tick from which moments count; none: no thread has begun.
    pub(super) fn from(&self) -> Option<u64> {
        self.from.get().copied()
    }

    /// The number of the next arrival of a common queue.
    pub(super) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }
}

/// An arrival: its moment, and when the request was released to be sent, nanoseconds from the start of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Released {
    pub number: u64,
    pub moment_ns: u64,
    pub at_ns: u64,
}

/// The pacer of one thread.
pub(super) struct Pacer {
    arrivals: Arrivals,
    /// The same arrivals from the first one, to count them again.
    all: Arrivals,
    how: Arriving,
    /// Arrivals drawn so far.
    drawn: u64,
    clock: Clock,
    from: u64,
    late_ticks: Option<u64>,
    spin_ticks: u64,
    /// The arrival that it has taken: its number, and its tick.
    number: u64,
    at: u64,
    /// When the last call returned.
    free_at: u64,
    /// How late a request was sent although the thread was free, nanoseconds.
    pub lateness: Histogram,
    /// Requests sent, and dropped, while the phase counted.
    pub sent: u64,
    pub dropped: u64,
    /// Those of the warm-up, sent or dropped.
    pub of_warm_up: u64,
    /// A request that was taken in time and that the engine did not run before the end: its moment, tick.
    pub not_run: Option<u64>,
    /// Of which arrivals moments are kept: one row of every so many.
    stride: u64,
    pub released: Vec<Released>,
    /// Time in which it slept, without the CPU time that this took, and in which it read the clock until a moment had come, ticks.
    pub slept_ticks: u64,
    pub spun_ticks: u64,
}

impl Pacer {
    /// That of a thread; none: its loop is closed.
    pub(super) fn of(shared: &Shared<'_>, thread: usize) -> Option<Pacer> {
        let arriver = shared.arriver.as_ref()?;
        let (warm_up, threads) = (shared.phase.warmup_seconds, shared.slots.len() as u32);
        let (stream, streams) = match arriver.how {
            Arriving::Shared => (0, 1),
            Arriving::Own => (thread as u32, threads),
        };
        let arrivals =
            Arrivals::of_stream(&arriver.rate, warm_up, shared.seconds, arriver.seed, stream, streams);
        let length_ns = shared.seconds.map(|seconds| ((warm_up + seconds) * 1e9) as u64);
        let expected = length_ns.map(|ns| arrivals.expected(ns) as u64).unwrap_or(shared.phase.ops);
        let kept = KEPT / u64::from(streams);
        let late_ticks = match arriver.late {
            WhenLate::Queue => None,
            WhenLate::Drop(seconds) => Some(shared.clock.from_ns((seconds * 1e9) as u64)),
        };
        Some(Pacer {
            all: arrivals.clone(),
            arrivals,
            how: arriver.how,
            drawn: 0,
            clock: shared.clock,
            from: 0,
            late_ticks,
            spin_ticks: shared.clock.from_ns(SPIN_NS),
            number: 0,
            at: 0,
            free_at: 0,
            lateness: Histogram::new(),
            sent: 0,
            dropped: 0,
            of_warm_up: 0,
            not_run: None,
            stride: (expected / kept.max(1)).max(1),
            released: Vec::with_capacity(KEPT as usize),
            slept_ticks: 0,
            spun_ticks: 0,
        })
    }

    /// The thread runs from now on.
    pub(super) fn begin(&mut self, shared: &Shared<'_>, now: u64) {
        let Some(arriver) = &shared.arriver else { return };
        let head_start = self.clock.from_ns(HEAD_START_NS);
        (self.from, self.free_at) = (*arriver.from.get_or_init(|| now + head_start), now);
    }

    /// Takes the next arrival, and sleeps until shortly before it. Returns false if there is none before the end, or if the phase is
    /// stopped.
    pub(super) fn take(&mut self, shared: &Shared<'_>, end_at: Option<u64>, counts: bool) -> bool {
        let Some(arriver) = &shared.arriver else { return false };
        loop {
            self.number = match self.how {
                Arriving::Shared => arriver.next.fetch_add(1, Ordering::AcqRel),
                Arriving::Own => self.drawn,
            };
            let mut ns = 0;
            while self.drawn <= self.number {
                ns = self.arrivals.next_ns();
                self.drawn += 1;
            }
            self.at = self.from + self.clock.from_ns(ns);
            if end_at.is_some_and(|end| self.at >= end) {
                self.sleep_until(shared, end_at.unwrap_or(0), counts);
                return false;
            }
            let Some(limit) = self.late_ticks else { break };
            if self.clock.now() <= self.at.saturating_add(limit) {
                break;
            }
            self.dropped += u64::from(counts);
            self.of_warm_up += u64::from(!counts);
        }
        self.sleep_until(shared, self.at.saturating_sub(self.spin_ticks), counts)
    }

    /// Returns false if the phase is stopped.
    fn sleep_until(&mut self, shared: &Shared<'_>, tick: u64, counts: bool) -> bool {
        let begin = self.clock.now();
        if begin >= tick {
            return true;
        }
        let (mut now, cpu_begin) = (begin, cpu_ns_of_this_thread());
        while now < tick && shared.stop.load(Ordering::Relaxed) == 0 {
            let left = self.clock.to_ns(tick - now);
            std::thread::sleep(Duration::from_nanos(left.clamp(1, SLEEP_NS)));
            now = self.clock.now();
        }
        if counts {
            let cpu_ns =
                cpu_ns_of_this_thread().zip(cpu_begin).map_or(0, |(end, begin)| end.saturating_sub(begin));
            self.slept_ticks += (now - begin).saturating_sub(self.clock.from_ns(cpu_ns));
        }
        shared.stop.load(Ordering::Relaxed) == 0
    }

    /// Waits until the moment has come.
    #[inline(always)]
    pub(super) fn wait(&mut self, counts: bool) {
        let begin = self.clock.now();
        let mut now = begin;
        while now < self.at {
            std::hint::spin_loop();
            now = self.clock.now();
        }
        self.spun_ticks += if counts { now - begin } else { 0 };
    }

    /// The request was sent at `start`, and the call returned. Returns how long it had waited, ticks.
    pub(super) fn sent(&mut self, start: u64, returned: u64, was_run: bool, counts: bool) -> u64 {
        let late = start.saturating_sub(self.at.max(self.free_at));
        self.free_at = returned;
        if !was_run {
            self.not_run = Some(self.at);
            return 0;
        }
        self.of_warm_up += u64::from(!counts);
        if counts {
            self.sent += 1;
            self.lateness.record(self.clock.to_ns(late));
            let row = self.number / KEPT_IN_A_ROW;
            if row.is_multiple_of(self.stride) && self.released.len() < self.released.capacity() {
                let since = |tick: u64| self.clock.to_ns(tick.saturating_sub(self.from));
                let (moment_ns, at_ns) = (since(self.at), since(self.at + late));
                self.released.push(Released { number: self.number, moment_ns, at_ns });
            }
        }
        start.saturating_sub(self.at)
    }

    /// The requests that no thread has taken until `end`: how many, and how long they have waited, nanoseconds. If there are more than
    /// [`MOST_WAITING`], their number is that of the mean of the rate. `next`: the number of the next one of a common queue.
    pub(super) fn waiting(&self, next: u64, end: u64) -> (u64, Histogram) {
        let mut arrivals = self.arrivals.clone();
        let next = match self.how {
            Arriving::Shared => next,
            Arriving::Own => self.drawn,
        };
        let mut ages = Histogram::empty();
        for number in self.drawn..self.drawn.max(next) + MOST_WAITING {
            let at = self.from + self.clock.from_ns(arrivals.next_ns());
            if at >= end {
                return (ages.count(), ages);
            }
            if number >= next {
                ages.record(self.clock.to_ns(end - at));
            }
        }
        let of = |tick: u64| arrivals.expected(self.clock.to_ns(tick.saturating_sub(self.from)));
        ((of(end) - next as f64).max(0.0) as u64, ages)
    }

    /// The requests whose moment was before `end`, with those of the warm-up, by drawing all moments again; none: there are too
    /// many, or too many `waiting` ones.
    pub(super) fn due(&self, end: u64, waiting: u64) -> Option<u64> {
        let end_ns = self.clock.to_ns(end.saturating_sub(self.from));
        if self.all.expected(end_ns) > MOST_COUNTED || waiting >= MOST_WAITING {
            return None;
        }
        let mut all = self.all.clone();
        let is_before = |ns: &u64| self.from + self.clock.from_ns(*ns) < end;
        Some(std::iter::repeat_with(|| all.next_ns()).take_while(is_before).count() as u64)
    }

    /// The number of arrivals that it has drawn.
    pub(super) fn drawn(&self) -> u64 {
        self.drawn
    }

    /// The arrivals, for what is expected of them.
    pub(super) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }
}
