//! When recent writes were acknowledged, by key: it tells how old a stale read was.
//!
//! A read is stale when it returns a state below the floor of its key (check.rs): the floor had risen above that state before the
//! read was sent. So the age of the read is the time since the floor rose first above it. The table keeps the last rises:
//! rings of fixed size, which share the keys out by their number. With few keys each has a long ring of its own.
//!
//! An entry is claimed by storing `BUSY` in its first word, so that two threads never mix theirs, and nobody waits: who finds an
//! entry taken uses the next one. A reader that sees the same first word before and after the tick has seen one entry.

use crate::runner::check::State;
use kvdyno_measure::table_in_huge_pages;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Entries of all rings together: 16 MiB.
const ENTRIES: usize = 1 << 20;
/// The fewest entries of a ring.
const LEAST: usize = 16;

/// The first word of an entry that is being written. Keys of the table have smaller numbers.
const BUSY: u64 = u64::MAX;

/// A rise of a floor.
#[derive(Default)]
struct Entry {
    /// The key's number and the bits of the state; 0: empty.
    what: AtomicU64,
    /// The tick of the acknowledgement.
    tick: AtomicU64,
}

fn word(index: u64, state: State) -> u64 {
    index << 32 | u64::from(state.bits())
}

/// What the table knows about the acknowledgements after a state of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newer {
    /// The tick at which the floor rose above the state, as far as the table goes back; none: it has none of these rises.
    pub tick: Option<u64>,
    /// Whether that was the first time.
    pub is_first: bool,
}

/// The last rises of floors.
pub(crate) struct Recent {
    entries: Vec<Entry>,
    /// For each ring, the place of the next entry.
    next: Vec<AtomicU32>,
    depth: usize,
    /// Keys whose versions after a known one were given up, because they were overwritten before a phase ended, with the last of
    /// them: a copy that lags may still return them, and their numbers are used again.
    withdrawn: Mutex<BTreeMap<u64, u32>>,
}

impl Recent {
    /// For this many keys.
    pub(crate) fn new(keys: usize) -> Recent {
        let rings = keys.next_power_of_two().min(ENTRIES / LEAST);
        Recent {
            entries: table_in_huge_pages(ENTRIES),
            next: (0..rings).map(|_| AtomicU32::new(0)).collect(),
            depth: ENTRIES / rings,
            withdrawn: Mutex::default(),
        }
    }

    fn ring(&self, index: u64) -> (usize, &[Entry]) {
        let number = index as usize & (self.next.len() - 1);
        (number, &self.entries[number * self.depth..][..self.depth])
    }

    /// Notes that an acknowledgement at `tick` raised the floor of a key to `state`. Comes before the rise can be seen.
    pub(crate) fn note(&self, index: u64, state: State, tick: u64) {
        if state == State::default() {
            return;
        }
        let (number, ring) = self.ring(index);
        loop {
            let place = self.next[number].fetch_add(1, Ordering::Relaxed) as usize % ring.len();
            let entry = &ring[place];
            let old = entry.what.load(Ordering::Relaxed);
            let claimed = entry.what.compare_exchange(old, BUSY, Ordering::AcqRel, Ordering::Relaxed);
            if old != BUSY && claimed.is_ok() {
                entry.tick.store(tick, Ordering::Release);
                entry.what.store(word(index, state), Ordering::Release);
                return;
            }
        }
    }

    /// The entries of a key: states and ticks, in no order.
    fn of(&self, index: u64) -> impl Iterator<Item = (State, u64)> + '_ {
        let (_, ring) = self.ring(index);
        ring.iter().filter_map(move |entry| {
            let what = entry.what.load(Ordering::Acquire);
            let tick = entry.tick.load(Ordering::Acquire);
            let is_whole = what != BUSY && entry.what.load(Ordering::Relaxed) == what;
            (is_whole && what as u32 != 0 && what >> 32 == index).then(|| (State::of_bits(what as u32), tick))
        })
    }

    /// What is known of the acknowledgements of versions above this one.
    pub(crate) fn newer_than(&self, index: u64, version: u32) -> Newer {
        let mut newer = Newer::default();
        for (state, tick) in self.of(index) {
            // Rises are forgotten in their order: if this one is still here, the one after it is too.
            newer.is_first |= state.version() <= version + 1;
            if state.version() > version {
                newer.tick = Some(newer.tick.map_or(tick, |first| first.min(tick)));
            }
        }
        Newer { is_first: newer.is_first && newer.tick.is_some(), ..newer }
    }

    /// The newest version below this one that is known to be a delete.
    pub(crate) fn deleted_before(&self, index: u64, version: u32) -> Option<u32> {
        let deletes = self.of(index).map(|(state, _)| state).filter(|state| state.is_absent());
        deletes.map(State::version).filter(|own| *own < version).max()
    }

    /// Whether this version is known to be a delete, so that it has no value.
    pub(crate) fn is_delete(&self, index: u64, version: u32) -> bool {
        self.of(index).any(|(state, _)| state.version() == version && state.is_absent())
    }

    /// Gives up the versions of a key from `kept` + 1 to `last`.
    pub(crate) fn withdraw(&self, index: u64, kept: u32, last: u32) {
        if last > kept {
            let mut all = self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
            let most = all.entry(index).or_default();
            *most = last.max(*most);
        }
    }

    /// Whether this version of the key may be one of those that were given up.
    #[cold]
    pub(crate) fn is_withdrawn(&self, index: u64, version: u32) -> bool {
        let all = self.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&index).is_some_and(|last| version <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(version: u32) -> State {
        State::of_version(version)
    }

    #[test]
    fn the_first_newer_acknowledgement_is_found() {
        let recent = Recent::new(10);
        for version in 1..=5 {
            recent.note(3, put(version), 100 * u64::from(version));
        }
        recent.note(4, put(1), 999);
        for version in 0..5 {
            let tick = 100 * u64::from(version + 1);
            assert_eq!(recent.newer_than(3, version), Newer { tick: Some(tick), is_first: true });
        }
        assert_eq!(recent.newer_than(3, 5), Newer::default());
        assert_eq!(recent.newer_than(7, 0), Newer::default(), "a key without writes");
        // Several writers: a floor may rise by more than one.
        recent.note(4, put(6), 2_000);
        assert_eq!(recent.newer_than(4, 3), Newer { tick: Some(2_000), is_first: true });
    }

    #[test]
    fn what_the_table_has_forgotten_is_not_called_the_first() {
        let recent = Recent::new(1 << 20);
        assert_eq!((recent.depth, recent.next.len()), (LEAST, ENTRIES / LEAST));
        for version in 1..=20 {
            recent.note(9, put(version), u64::from(version));
        }
        // Versions 5 to 20 are left.
        assert_eq!(recent.newer_than(9, 2), Newer { tick: Some(5), is_first: false });
        assert_eq!(recent.newer_than(9, 3), Newer { tick: Some(5), is_first: false });
        assert_eq!(recent.newer_than(9, 4), Newer { tick: Some(5), is_first: true });
        // Another key of the same ring.
        let other = 9 + (ENTRIES / LEAST) as u64;
        (1..=16).for_each(|version| recent.note(other, put(version), 50));
        assert_eq!(recent.newer_than(9, 19), Newer::default());
    }

    #[test]
    fn deletes_have_no_value() {
        let recent = Recent::new(4);
        recent.note(0, put(1), 10);
        recent.note(0, put(2).deleted(), 20);
        recent.note(0, put(3), 30);
        assert!(recent.is_delete(0, 2) && !recent.is_delete(0, 1) && !recent.is_delete(1, 2));
        assert_eq!((recent.deleted_before(0, 3), recent.deleted_before(0, 2)), (Some(2), None));
        assert_eq!(recent.newer_than(0, 1), Newer { tick: Some(20), is_first: true });
    }

    #[test]
    fn withdrawn_versions_are_known() {
        let recent = Recent::new(4);
        recent.withdraw(2, 5, 7);
        recent.withdraw(3, 5, 5);
        assert!(recent.is_withdrawn(2, 7) && !recent.is_withdrawn(2, 8) && !recent.is_withdrawn(3, 5));
    }

    #[test]
    fn threads_never_see_mixed_entries() {
        let recent = Recent::new(1);
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let recent = &recent;
                scope.spawn(move || {
                    for turn in 0..2_000_u32 {
                        let version = 1 + thread + 4 * turn;
                        recent.note(0, put(version), u64::from(version));
                        if turn % 500 == 0 {
                            let is_whole = |(state, tick): (State, u64)| u64::from(state.version()) == tick;
                            assert!(recent.of(0).all(is_whole));
                        }
                    }
                });
            }
        });
        assert_eq!(recent.of(0).count(), 8_000);
    }
}
