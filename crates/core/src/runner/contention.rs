//! Versions of keys that several threads write: a correct read is never reported as wrong, and stale reads and lost
//! updates are still found.
//!
//! A write takes the next version of its key when it is drawn, so versions show the order in which writes were drawn, not
//! the order in which the engine applies them. A read may see any version from the key's floor before the read was sent
//! to the last version that was assigned when it has ended. When a write w is acknowledged, the floor rises to one more
//! than the base of w: a version such that all versions up to it had ended when w began. Proof: a read that begins after w
//! has ended sees the version that was applied last, which is w or a version applied after w. All versions up to the base
//! were applied before w began, so it is none of these.
//!
//! The base is found by epochs (epochs.rs). Each key has a word: a version, and the epoch in which it was assigned. Three
//! epochs later, all versions up to the word's version have ended: it is the base, and the word is replaced by w's version
//! and epoch. Otherwise the base of w is unknown, and w does not raise the floor. So a key that is rarely written has an
//! exact floor (the base of version v is v - 1), and the floor of a hot key lags by some batches. The statement of a word
//! stays true even if another thread overwrites it, so words are stored without synchronization.
//!
//! A write that was not run, or had no effect, leaves a gap in the versions: it has ended like any other.
//!
//! After the phase it is unknown, for some keys, which of their latest versions was applied last. These keys are read
//! again (companions/rereads.rs), so that all phases begin with one known version of each key.

use super::check::{State, States, Versions};
use super::epochs::SAFE;
use kvdyno_measure::table_in_huge_pages;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of a word that hold the version.
const VERSION_BITS: u32 = 31;
/// The last epoch that a word can hold: at one epoch per microsecond it is reached after two hours, and floors no longer
/// rise.
pub(super) const LAST_EPOCH: u64 = u64::MAX >> VERSION_BITS;

/// A version, and the epoch that its writer had pinned.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    fn new(version: u32, epoch: u64) -> Word {
        Word(epoch << VERSION_BITS | u64::from(version))
    }

    fn version(self) -> u32 {
        (self.0 & ((1 << VERSION_BITS) - 1)) as u32
    }

    fn epoch(self) -> u64 {
        self.0 >> VERSION_BITS
    }
}

/// A write with its assigned version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handed {
    /// The state that it writes.
    pub state: State,
    /// The new floor after its acknowledgement; never written: the floor does not rise.
    pub floor: State,
    /// The state that it finds if no other write happens in between; none: unknown.
    pub before: Option<State>,
}

/// A word for each key.
pub(super) fn words(len: usize) -> Vec<AtomicU64> {
    table_in_huge_pages(len)
}

impl Versions {
    /// Begins a contended phase. Nothing is in flight: all versions so far have ended.
    pub(super) fn begin_contended(&self) {
        for (word, states) in self.words().iter().zip(self.states()) {
            let version = State::of_bits(states.started.load(Ordering::Relaxed)).version();
            word.store(Word::new(version, 0).0, Ordering::Relaxed);
        }
    }

    /// Assigns a version to a write whose thread has pinned `epoch`; none: not in the table.
    #[inline]
    pub(super) fn hand_out(&self, index: u64, deleted: bool, epoch: u64) -> Option<Handed> {
        let cell = &self.states().get(index as usize)?.started;
        let mut now = cell.load(Ordering::Relaxed);
        let state = loop {
            let next = State::of_bits(now).next(deleted);
            match cell.compare_exchange_weak(now, next.bits(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break next,
                Err(other) => now = other,
            }
        };
        let cell = self.words().get(index as usize)?;
        let word = Word(cell.load(Ordering::Acquire));
        if word.epoch() + SAFE > epoch {
            return Some(Handed { state, floor: State::default(), before: None });
        }
        cell.store(Word::new(state.version(), epoch).0, Ordering::Release);
        if word.version() + 1 != state.version() {
            return Some(Handed { state, floor: State::of_version(word.version() + 1), before: None });
        }
        // If the floor is the previous version, no other write is in flight.
        let before = self.acked(index).filter(|before| before.version() == word.version());
        Some(Handed { state, floor: state, before })
    }

    /// Records an acknowledged write with this floor.
    #[inline]
    pub(super) fn raise(&self, index: u64, floor: State) {
        if let Some(states) = self.states().get(index as usize) {
            states.acked.fetch_max(floor.bits(), Ordering::AcqRel);
        }
    }

    /// Keys for which it is unknown which version was applied last, when nothing is in flight.
    pub(super) fn open(&self) -> impl Iterator<Item = u64> + '_ {
        let is_open =
            |states: &States| states.started.load(Ordering::Relaxed) != states.acked.load(Ordering::Relaxed);
        (0..).zip(self.states()).filter(move |(_, states)| is_open(states)).map(|(index, _)| index)
    }

    /// Sets the state of such a key to the state that a read has seen. The numbers of later versions are used again, because
    /// their values were overwritten before the phase ended.
    pub(super) fn close(&self, index: u64, state: State) {
        if let (Some(recent), Some(started)) = (self.recent(), self.started(index)) {
            recent.withdraw(index, state.version(), started.version());
        }
        if let Some(States { started, acked }) = self.states().get(index as usize) {
            started.store(state.bits(), Ordering::Release);
            acked.store(state.bits(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Window;
    use super::super::epochs::{Cursor, Epochs, FIRST};
    use super::*;
    use crate::generator::Random;
    use std::sync::atomic::AtomicU32;

    fn table(keys: u64) -> Versions {
        let versions = Versions::new(keys, keys).unwrap().with_words(true);
        versions.begin_contended();
        versions
    }

    #[test]
    fn a_rarely_written_key_has_an_exact_floor() {
        let versions = table(1);
        for (number, epoch) in (1..).zip([FIRST, FIRST + SAFE, FIRST + 2 * SAFE]) {
            let handed = versions.hand_out(0, number == 3, epoch).unwrap();
            assert_eq!((handed.state, handed.floor), (handed.floor, handed.state));
            assert_eq!(handed.before, versions.acked(0));
            versions.raise(0, handed.floor);
            assert_eq!(versions.acked(0), versions.started(0));
        }
        assert!(versions.acked(0).unwrap().is_absent());
        assert_eq!(versions.open().count(), 0);
    }

    #[test]
    fn the_floor_of_a_hot_key_lags_and_is_never_too_high() {
        let versions = table(1);
        let first = versions.hand_out(0, false, FIRST).unwrap();
        // Unknown: the first may be in flight.
        let second = versions.hand_out(0, false, FIRST + 1).unwrap();
        assert_eq!((second.floor, second.before), (State::default(), None));
        versions.raise(0, second.floor);
        assert_eq!(versions.acked(0), Some(State::default()));
        versions.raise(0, first.floor);
        assert_eq!(versions.acked(0).unwrap().version(), 1);
        // Three epochs later the first has ended, but the second may not have.
        let third = versions.hand_out(0, false, FIRST + SAFE).unwrap();
        assert_eq!((third.floor.version(), third.before), (2, None));
        versions.raise(0, third.floor);
        let window = Window { oldest: versions.acked(0).unwrap(), newest: versions.started(0).unwrap() };
        assert!(!window.allows(Some(1)) && window.allows(Some(2)) && window.allows(Some(3)));
        assert_eq!(versions.open().collect::<Vec<_>>(), [0]);
        versions.close(0, second.state);
        assert_eq!((versions.started(0), versions.acked(0)), (Some(second.state), Some(second.state)));
    }

    #[test]
    fn there_are_no_false_alarms_and_stale_values_are_found() {
        // A thread that is stopped early keeps all floors low.
        assert!((11..31).any(|seed| overwritten(seed) > 100_000), "seeds 11 to 30");
    }

    /// A correct store of registers that all threads write: each op takes effect at one moment between its start and its
    /// end, and threads may be delayed anywhere. No read may be reported as wrong, and a value that an acknowledged write has
    /// certainly overwritten must be reported. Returns how often a read of the first version would have been.
    fn overwritten(seed: u64) -> u64 {
        const KEYS: u64 = 64;
        const THREADS: usize = 4;
        let (versions, epochs) = (table(KEYS), Epochs::new(THREADS));
        let registers: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            let work = |thread: usize| {
                let (versions, epochs, registers) = (&versions, &epochs, &registers);
                move || {
                    let mut random = Random::stream(seed, thread as u64);
                    let (mut cursor, mut stale) = (Cursor::default(), 0);
                    for _ in 0..20_000 {
                        let epoch = epochs.pin(thread);
                        let ops: Vec<_> = (0..1 + random.below(16))
                            .map(|_| {
                                // Half of all writes use one key.
                                let key = if random.below(2) == 0 { 0 } else { random.below(KEYS) };
                                match random.below(3) {
                                    0 => (key, None, versions.acked(key).unwrap()),
                                    _ => (key, versions.hand_out(key, false, epoch), State::default()),
                                }
                            })
                            .collect();
                        let mut floors = Vec::new();
                        for (key, handed, floor) in ops {
                            if random.below(64) == 0 {
                                std::thread::yield_now();
                            }
                            let register = &registers[key as usize];
                            match handed {
                                Some(handed) => {
                                    register.store(handed.state.version(), Ordering::SeqCst);
                                    floors.push((key, handed.floor));
                                }
                                None => {
                                    let seen = register.load(Ordering::SeqCst);
                                    let newest = versions.started(key).unwrap();
                                    let window = Window { oldest: floor, newest };
                                    let allows = window.allows(Some(u64::from(seen)));
                                    let is_right =
                                        if seen == 0 { window.allows_absent(false) } else { allows };
                                    assert!(is_right, "seed {seed}: {seen} of {}", window.text());
                                    stale += u64::from(!window.allows(Some(1)));
                                }
                            }
                        }
                        floors.into_iter().for_each(|(key, floor)| versions.raise(key, floor));
                        epochs.unpin(thread, &mut cursor);
                    }
                    stale
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    }
}
