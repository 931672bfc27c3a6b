//! The shared data of the threads of a phase: its plan, the population of keys, and the slots in which they publish.

use super::check::{Versions, Window};
use super::companions::stale::Recent;
use super::epochs::Epochs;
use super::judge::Bound;
use super::lists::Lists;
use super::pacer::Arriver;
use super::spaces::Spaces;
use crate::engine::abi::KV_EVICTS;
use crate::generator::{Keys, Values};
use crate::results::{Cause, Role};
use crate::workload::{Durability, MemberFault, OpKind, Phase, Transaction};
use kvdyno_measure::{Clock, Counters, Histogram};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The keys of a database, as known without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Population {
    /// Items [0, dense) all exist, if `whole`.
    pub dense: u64,
    /// Whether that is certain: no partial fill, no deletes.
    pub whole: bool,
    /// The first item that no insert has used.
    pub next_insert: u64,
}

impl Population {
    /// Whether exactly the items [0, dense) exist.
    pub fn is_without_holes(&self) -> bool {
        self.whole && self.dense == self.next_insert
    }
}

/// Counts of one kind of op.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Ops (see `OpKind::counted_ops`).
    pub ops: u64,
    /// Reads and deletes that correctly found nothing.
    pub misses: u64,
    /// Misses of keys that were written and that a cache had evicted.
    pub evicted: u64,
    /// Rows of scans.
    pub rows: u64,
    /// Retries inside the driver.
    pub retries: u64,
    /// Service times of the units, nanoseconds.
    pub service: Histogram,
    /// More times of units that arrived at a rate.
    pub arrived: Option<Box<Arrived>>,
}

/// Times of units that arrived at a rate, nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    /// From the arrival until it was sent.
    pub wait: Histogram,
    /// From the arrival until it was acknowledged.
    pub response: Histogram,
}

impl Arrived {
    fn new() -> Arrived {
        Arrived { wait: Histogram::new(), response: Histogram::new() }
    }
}

impl Tally {
    /// An empty tally.
    pub(super) fn new() -> Tally {
        Tally { ops: 0, misses: 0, evicted: 0, rows: 0, retries: 0, service: Histogram::new(), arrived: None }
    }

    /// Adds another tally.
    pub(super) fn merge(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.misses += other.misses;
        self.evicted += other.evicted;
        self.rows += other.rows;
        self.retries += other.retries;
        self.service.merge(&other.service);
        if let Some(other) = &other.arrived {
            let own = self.arrived.get_or_insert_with(|| Box::new(Arrived::new()));
            own.wait.merge(&other.wait);
            own.response.merge(&other.response);
        }
    }

    /// Resets all counts.
    pub(super) fn clear(&mut self) {
        (self.ops, self.misses, self.evicted, self.rows, self.retries) = (0, 0, 0, 0, 0);
        self.service.clear();
        if let Some(arrived) = &mut self.arrived {
            arrived.wait.clear();
            arrived.response.clear();
        }
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

/// One tally per kind of the phase; `None` for kinds that the phase does not have.
pub(super) type Tallies = [Option<Tally>; OpKind::COUNT];

/// Empty tallies for these kinds.
pub(super) fn tallies_for(kinds: impl Iterator<Item = OpKind>) -> Tallies {
    let mut tallies: Tallies = Default::default();
    for kind in kinds {
        tallies[kind as usize] = Some(Tally::new());
    }
    tallies
}

/// Empty tallies of a thread for these kinds, with all that the phase counts.
pub(super) fn tallies_of(shared: &Shared<'_>, kinds: impl Iterator<Item = OpKind>) -> Tallies {
    let mut tallies = tallies_for(kinds);
    if shared.arriver.is_some() {
        let each = tallies.iter_mut().flatten();
        each.for_each(|tally| tally.arrived = Some(Box::new(Arrived::new())));
    }
    tallies
}

/// The tallies that a thread publishes for each second of the phase. The watcher takes them shortly after the second has
/// ended; if it is late, or a batch spans several seconds, several rows wait for it.
pub(super) struct Published {
    /// The current row of the thread, from 0; the largest number after its end.
    row: u64,
    rows: Vec<(u64, Tallies)>,
    /// Empty buffers.
    free: Vec<Tallies>,
}

impl Published {
    /// For a thread with these kinds.
    pub(super) fn new(kinds: &[OpKind]) -> Published {
        Published { row: 0, rows: Vec::with_capacity(8), free: vec![tallies_for(kinds.iter().copied())] }
    }

    /// Publishes the tallies of the thread's current row; its next row is `next`.
    pub(super) fn publish(&mut self, tallies: &Tallies, next: u64) {
        let row = self.row.min(next);
        let is_empty = tallies.iter().flatten().all(|tally| tally.ops == 0 && tally.retries == 0);
        if !is_empty {
            let mut own = self.free.pop().unwrap_or_default();
            for (own, tally) in own.iter_mut().zip(tallies) {
                if let Some(tally) = tally {
                    own.get_or_insert_with(Tally::new).merge(tally);
                }
            }
            self.rows.push((row, own));
        }
        self.row = next;
    }

    /// Passes all waiting rows to `each`, and returns the thread's current row.
    pub(super) fn take(&mut self, mut each: impl FnMut(u64, &Tallies)) -> u64 {
        for (row, mut tallies) in self.rows.drain(..) {
            each(row, &tallies);
            tallies.iter_mut().flatten().for_each(Tally::clear);
            self.free.push(tallies);
        }
        self.row
    }
}

/// A thread's counter, in its own cache line; on the board the parent process sees it too.
pub(super) struct Count {
    counters: Arc<Counters>,
    line: usize,
}

impl Count {
    /// A counter that only this process sees.
    pub(super) fn alone() -> Count {
        Count { counters: Arc::new(Counters::alone(1)), line: 0 }
    }

    /// The first word of a line.
    pub(super) fn on(counters: &Arc<Counters>, line: usize) -> Count {
        Count { counters: Arc::clone(counters), line }
    }
}

impl std::ops::Deref for Count {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        self.counters.word(self.line, 0)
    }
}

/// The slot in which a thread publishes, in its own cache lines: it stores a counter after each batch.
#[repr(align(128))]
pub(super) struct Slot {
    /// The thread's role.
    pub role: Role,
    /// Its position among the threads that write.
    pub writer: Option<u64>,
    /// Its position among the threads that insert.
    pub inserter: Option<u64>,
    /// Ops of the thread so far, warm-up included: its heartbeat.
    pub ops: Count,
    /// Where its loop runs.
    runs: AtomicU32,
    /// Number of acknowledged inserts, in the thread's own order.
    pub inserted: AtomicU64,
    /// The tallies since the watcher last took them.
    pub published: Mutex<Published>,
}

/// Where the loop of a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// It has not begun, or has ended.
    Nowhere,
    /// In a thread of the driver's runtime, or in one whose number is unknown.
    Somewhere,
    /// In the thread with this number.
    In(u32),
}

impl Runs {
    /// In this thread; none: it is not known which.
    pub(super) fn of(thread: Option<u32>) -> Runs {
        thread.filter(|number| (1..u32::MAX).contains(number)).map_or(Runs::Somewhere, Runs::In)
    }
}

impl Slot {
    /// An idle slot.
    pub(super) fn new(role: Role, writer: Option<u64>, inserter: Option<u64>, kinds: &[OpKind]) -> Slot {
        Slot {
            role,
            writer,
            inserter,
            ops: Count::alone(),
            runs: AtomicU32::new(0),
            inserted: AtomicU64::new(0),
            published: Mutex::new(Published::new(kinds)),
        }
    }

    /// Stores where the loop runs.
    pub(super) fn runs_in(&self, place: Runs) {
        let number = match place {
            Runs::Nowhere => 0,
            Runs::Somewhere => u32::MAX,
            Runs::In(number) => number,
        };
        self.runs.store(number, Ordering::Release);
    }

    /// Where the loop runs.
    pub(super) fn runs(&self) -> Runs {
        match self.runs.load(Ordering::Acquire) {
            0 => Runs::Nowhere,
            number => Runs::of(Some(number)),
        }
    }
}

/// All shared data of the threads of a phase.
pub(super) struct Shared<'p> {
    /// Settings.
    pub phase: &'p Phase,
    /// The round that it is run in; none: it is run once.
    pub round: Option<u32>,
    /// The seed of the phase's streams.
    pub seed: u64,
    /// The seed that determines the hot items: the same in all phases of a workload.
    pub hot_seed: u64,
    /// Converts numbers to keys.
    pub keys: &'p Keys,
    /// The keyspaces.
    pub spaces: &'p Spaces,
    /// The length of the mark of each key, which is not counted in any figure.
    pub mark_bytes: u64,
    /// Ops that write one row with its index rows.
    pub row_ops: usize,
    /// Converts numbers and versions to values.
    pub values: &'p Values,
    /// Versions of keys; none: checks are stateless.
    pub versions: Option<&'p Versions>,
    /// When recent writes were acknowledged; none: the engine has no stale reads.
    pub recent: Option<&'p Recent>,
    /// Whether gets and scans may see older states than acknowledged ones.
    pub accepts_stale: bool,
    /// The epochs of batches, if several threads write the same keys and there are versions.
    pub epochs: Option<Epochs>,
    /// The contents of lists; none: there are no lists.
    pub lists: Option<&'p Lists>,
    /// The keys at the start.
    pub population: Population,
    /// Number of items of a fill of this workload.
    pub fill_items: u64,
    /// Number of items that have keys; inserts end there.
    pub insert_end: u64,
    /// The item of the first counter; counters follow all other keys.
    pub counters_from: u64,
    /// The clock.
    pub clock: Clock,
    /// The time of calls that the driver's kit may leave unaccounted.
    pub bound: Bound,
    /// Effective capabilities, `KV_...` bits.
    pub capabilities: u64,
    /// The effective level.
    pub level: Durability,
    /// Whether answers can be checked; false: the engine stores nothing.
    pub checked: bool,
    /// Keys, values and out buffers end at guard pages.
    pub is_guarded: bool,
    /// Threads that write, in all roles.
    pub writers: u64,
    /// Threads that insert new keys.
    pub inserters: u64,
    /// Whether anything in the phase deletes.
    pub deletes: bool,
    /// Whether anything in the phase writes.
    pub writes: bool,
    /// Seconds after which the phase ends, without warm-up; none: no limit.
    pub seconds: Option<f64>,
    /// Tick at which the warm-up ends, the same for all load generators; 0 until the threads start.
    pub warm_until: AtomicU64,
    /// Tick at which the first thread began to count; empty until then.
    pub counted_from: OnceLock<u64>,
    /// When requests arrive; none: the loops are closed.
    pub arriver: Option<Arriver>,
    /// Stops all threads early.
    pub stop: &'static AtomicU32,
    /// Whether they were stopped because the phase is steady.
    pub is_steady: AtomicBool,
    /// The first failure.
    pub failure: Mutex<Option<Failure>>,
    /// One per thread.
    pub slots: Vec<Slot>,
    /// The faults of members of the store, in their order. If there are any, errors of ops are counted and do not end the
    /// phase.
    pub faults: Vec<MemberFault>,
}

/// Why a phase was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The cause of the failure.
    pub cause: Cause,
    /// What happened, and where.
    pub text: String,
}

impl Shared<'_> {
    /// Begins the warm-up of the phase at this tick; without one, its threads count as soon as they run.
    pub(super) fn start_clocks(&self, now: u64) {
        let warm = self.clock.from_ns((self.phase.warmup_seconds * 1e9) as u64);
        self.warm_until.store(now + warm, Ordering::Release);
    }

    /// A thread begins to count at `now`. Returns the tick at which the phase begins: when the first thread does. Its rows and
    /// its time are counted from there, so that they do not contain the time until a thread gets a processor.
    pub(super) fn begin_counting(&self, now: u64) -> u64 {
        *self.counted_from.get_or_init(|| now)
    }

    /// The tick at which the phase begins; before any thread counts, the earliest possible one.
    pub(super) fn begin(&self) -> u64 {
        self.counted_from.get().copied().unwrap_or_else(|| self.warm_until.load(Ordering::Acquire))
    }

    /// The tick at which the phase ends; none: it ends by a count.
    pub(super) fn end_at(&self) -> Option<u64> {
        let ticks = self.clock.from_ns((self.seconds? * 1e9) as u64);
        Some(self.begin().saturating_add(ticks))
    }

    /// Records the first failure and stops all threads.
    pub(super) fn fail(&self, cause: Cause, text: String) {
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if failure.is_none() {
            *failure = Some(Failure { cause, text });
        }
        self.stop.store(1, Ordering::Release);
    }

    /// Stops all threads, because the phase is steady.
    pub(super) fn end_steady(&self) {
        self.is_steady.store(true, Ordering::Release);
        self.stop.store(1, Ordering::Release);
    }

    /// Whether a read may see this value; `version`: the one that it contains.
    #[inline(always)]
    pub(super) fn allows(&self, index: u64, window: Window, version: Option<u64>, value: &[u8]) -> bool {
        window.allows(version) && (version.is_some() || self.allows_small(index, window, value.len()))
    }

    /// The same for a value too small to contain its version: its length is that of a version that the read may see. A write
    /// that failed with a member may have taken effect, and its version is not in the window.
    #[inline(never)]
    fn allows_small(&self, index: u64, window: Window, length: usize) -> bool {
        !self.faults.is_empty() || window.allows_small(self.has_length(index, length))
    }

    /// The newest version that a read may see and whose value has this length, for a value too small to contain its version.
    pub(super) fn small_version(&self, index: u64, window: Window, length: usize) -> Option<u32> {
        window.newest_small(self.has_length(index, length))
    }

    fn has_length(&self, index: u64, length: usize) -> impl Fn(u32) -> bool {
        move |version: u32| self.values.may_have_len(index, u64::from(version), length)
    }

    /// A value that was read, for messages; `version`: the one that it contains.
    pub(super) fn shown(version: Option<u64>, value: &[u8]) -> String {
        let small = || format!("a value of {} bytes, too small to contain its version", value.len());
        version.map_or_else(small, |version| format!("version {version}"))
    }

    /// Whether a write of this version failed and may have taken effect.
    #[cold]
    pub(super) fn is_doubtful(&self, index: u64, version: Option<u64>) -> bool {
        self.versions.is_some_and(|table| table.is_doubtful(index, version))
    }

    /// Whether reads may be stale and it is known how old they are.
    pub(super) fn knows_staleness(&self) -> bool {
        self.accepts_stale && self.recent.is_some()
    }

    /// Whether the engine is a cache, which may evict any row.
    #[inline(always)]
    pub(super) fn evicts(&self) -> bool {
        self.capabilities & KV_EVICTS != 0
    }

    /// The number of rows in a keyspace of rows, when nothing is in flight; none: unknown.
    pub(super) fn rows_in(&self, space: u16) -> Option<u64> {
        let count = self.spaces.count();
        match self.versions {
            _ if self.evicts() => None,
            Some(table) if self.population.next_insert <= table.len() => {
                let items = (u64::from(space)..table.len()).step_by(count as usize);
                let is_there = |item: &u64| table.acked(*item).is_some_and(|state| !state.is_absent());
                Some(items.filter(is_there).count() as u64)
            }
            _ if self.population.is_without_holes() => {
                Some((self.population.dense + count - 1 - u64::from(space)) / count)
            }
            _ => None,
        }
    }

    /// The number of items that certainly exist now, without gaps: those at the start, and inserts up to the first one that its
    /// thread has not acknowledged.
    fn dense_now(&self) -> u64 {
        if self.inserters == 0 || self.population.dense < self.population.next_insert {
            return self.population.dense;
        }
        let next =
            |slot: &Slot| Some(slot.inserter? + slot.inserted.load(Ordering::Acquire) * self.inserters);
        self.population.dense + self.slots.iter().filter_map(next).min().unwrap_or(0)
    }

    /// Whether the phase has one thread: then nothing is written while it scans, because a scan ends its batch.
    #[inline(always)]
    pub(super) fn is_alone(&self) -> bool {
        self.slots.len() == 1
    }

    /// The population after the phase.
    pub(super) fn population_after(&self) -> Population {
        if self.phase.transaction == Some(Transaction::Aborted) {
            return self.population;
        }
        self.population_now()
    }

    /// The population with the inserts that all threads have published.
    pub(super) fn population_now(&self) -> Population {
        let inserted = || self.slots.iter().filter(|slot| slot.inserter.is_some());
        let most = inserted().map(|slot| slot.inserted.load(Ordering::Acquire)).max().unwrap_or(0);
        Population {
            dense: self.dense_now(),
            whole: self.population.whole && !self.deletes,
            next_insert: self.population.next_insert + most * self.inserters,
        }
    }
}
