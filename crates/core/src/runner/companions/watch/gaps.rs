//! Looks for threads that make no progress, and observes them while that lasts. It reads a counter per thread, except during
//! a gap, so that it costs nothing when there is nothing to see.

use crate::engine::Database;
use crate::engine::abi::KV_LIVE_STATS;
use crate::runner::phase_data::{Runs, Shared, Slot};
use kvdyno_measure::stall::{Observation, StallView, Surroundings, own_thread};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// A gap is read again when it has become longer by this part of itself, and at least a look has passed.
const GROWTH: u64 = 10;
/// The number of observations that are kept of each thread: the longest.
const KEPT: usize = 32;

/// What was seen of a thread between two ticks, in which it made no progress.
pub(super) struct Seen {
    /// The thread, from 0.
    pub thread: usize,
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// What was seen.
    pub view: StallView,
}

/// A thread of the phase.
#[derive(Default)]
struct Watched {
    /// Its ops at the last look; none: nobody has looked.
    ops: Option<u64>,
    observation: Option<Observation>,
    /// Tick at which the observation is to be read again.
    read_at: u64,
    seen: Vec<Seen>,
}

/// The threads of a phase.
pub(super) struct Gaps {
    threads: Vec<Watched>,
    /// The calling thread, which looks.
    own: Option<u32>,
    has_storage: bool,
}

impl Gaps {
    /// For the threads of a phase; call it in the thread that will look.
    pub(super) fn new(threads: usize, has_storage: bool) -> Gaps {
        Gaps { threads: (0..threads).map(|_| Watched::default()).collect(), own: own_thread(), has_storage }
    }

    /// Looks at all threads.
    pub(super) fn look(&mut self, shared: &Shared<'_>, database: &Database) {
        // Before anything is read, so that nothing read is older.
        let now = shared.clock.now();
        let mut around = None;
        let has_storage = self.has_storage;
        let read = || Surroundings::now(has_storage, statistics(shared, database));
        let mut around = || Rc::clone(around.get_or_insert_with(read));
        for (place, slot) in shared.slots.iter().enumerate() {
            let ops = slot.ops.load(Ordering::Relaxed);
            if slot.runs() == Runs::Nowhere || self.threads[place].ops != Some(ops) {
                self.end(shared, place);
                self.threads[place].ops = Some(ops);
            } else {
                self.threads[place].observe(shared, slot, now, &mut around);
            }
        }
    }

    /// Ends the observation of a thread, if there is one.
    fn end(&mut self, shared: &Shared<'_>, place: usize) {
        let Some(observation) = self.threads[place].observation.take() else { return };
        let Some((from, to)) = observation.span() else { return };
        let calling = shared.slots.iter().filter_map(|slot| match slot.runs() {
            Runs::In(number) => Some(number),
            Runs::Nowhere | Runs::Somewhere => None,
        });
        let own: Vec<u32> = calling.chain(self.own).collect();
        let Some(view) = observation.view(shared.clock.to_ns(to.saturating_sub(from)), &own) else { return };
        let seen = &mut self.threads[place].seen;
        seen.push(Seen { thread: place, from, to, view });
        if seen.len() > KEPT
            && let Some((shortest, _)) = seen.iter().enumerate().min_by_key(|(_, seen)| seen.to - seen.from)
        {
            seen.swap_remove(shortest);
        }
    }

    /// All that was seen.
    pub(super) fn into_seen(mut self, shared: &Shared<'_>) -> Vec<Seen> {
        (0..self.threads.len()).for_each(|place| self.end(shared, place));
        self.threads.into_iter().flat_map(|thread| thread.seen).collect()
    }
}

/// The engine's counters, if its driver allows to ask for them while ops run.
fn statistics(shared: &Shared<'_>, database: &Database) -> Vec<(String, i64)> {
    if shared.capabilities & KV_LIVE_STATS == 0 {
        return Vec::new();
    }
    let all = database.stats().unwrap_or_default();
    all.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

impl Watched {
    /// Observes the thread of a slot, which has made no progress since the last look, at the tick `now`.
    fn observe(
        &mut self,
        shared: &Shared<'_>,
        slot: &Slot,
        now: u64,
        around: &mut impl FnMut() -> Rc<Surroundings>,
    ) {
        let pause = shared.clock.from_ns(LOOK.as_nanos() as u64);
        let Some(observation) = &mut self.observation else {
            let thread = match slot.runs() {
                Runs::In(number) => Some(number),
                Runs::Nowhere | Runs::Somewhere => None,
            };
            self.observation = Some(Observation::begin(thread, now, around()));
            self.read_at = now + pause / 2;
            return;
        };
        let ops = self.ops;
        let is_still = || ops == Some(slot.ops.load(Ordering::Acquire)) && slot.runs() != Runs::Nowhere;
        observation.look(is_still);
        if now < self.read_at {
            return;
        }
        observation.read_again(around(), || is_still().then(|| shared.clock.now()));
        let since = observation.span().map_or(0, |(from, to)| to.saturating_sub(from));
        self.read_at = now + (since / GROWTH).max(pause / 2);
    }
}
