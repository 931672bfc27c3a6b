//! Checks reads against writes: the versions of every key, and the versions that a read may see.
//!
//! If each key has one writing thread, versions increase by one, and a read that began when version `acked` was
//! acknowledged and ended when version `started` had been sent must see a version between the two: a linearizability check
//! of single-writer registers in O(1). Reads by the writer itself must see exactly the last version. contended.rs handles
//! keys that several threads write.

use super::companions::stale::Recent;
use super::contention::words;
use kvdyno_measure::table_in_huge_pages;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The memory limit of versions, bytes, and the same again for the words of keys that several threads write; above it,
/// checks are stateless.
pub(super) const VERSIONS_LIMIT_BYTES: u64 = 64 << 20;

/// A state of a key: its version and whether that version is a delete. Version 0: never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct State(u32);

impl State {
    /// The version, from 1; 0: never written.
    pub(super) fn version(self) -> u32 {
        self.0 >> 1
    }

    /// Whether the key is absent in this state.
    pub(super) fn is_absent(self) -> bool {
        self.0 & 1 != 0 || self.0 == 0
    }

    /// The next state, after a write or delete of the key.
    pub(super) fn next(self, deleted: bool) -> State {
        State(((self.version() + 1) << 1) | u32::from(deleted))
    }

    /// The state with a value of this version.
    pub(super) fn of_version(version: u32) -> State {
        State(version << 1)
    }

    /// The state after a delete with the version of this state.
    pub(super) fn deleted(self) -> State {
        State(self.0 | 1)
    }

    pub(super) fn of_bits(bits: u32) -> State {
        State(bits)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }
}

/// The states that a read may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The oldest state.
    pub oldest: State,
    /// The newest state.
    pub newest: State,
}

impl Window {
    /// Whether a value of `version` may be seen; none: a value too small to contain its version.
    pub(super) fn allows(&self, version: Option<u64>) -> bool {
        let Some(version) = version else {
            return !(self.oldest == self.newest && self.oldest.is_absent());
        };
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        if version == self.oldest.version() {
            return !self.oldest.is_absent();
        }
        if version == self.newest.version() {
            return !self.newest.is_absent();
        }
        version > self.oldest.version() && version < self.newest.version()
    }

    /// Whether a value that is too small to contain its version may be seen: `is_of` says whether the value of a version has its
    /// length. If there are very many versions, one of them is assumed to have it.
    pub(super) fn allows_small(&self, is_of: impl Fn(u32) -> bool) -> bool {
        const MOST: u32 = 256;
        self.newest.version().saturating_sub(self.oldest.version()) > MOST
            || self.newest_small(is_of).is_some()
    }

    /// The newest version that may be seen and whose value has the length of a small value, as `is_of` says; none: no version
    /// has it.
    pub(super) fn newest_small(&self, is_of: impl Fn(u32) -> bool) -> Option<u32> {
        let is_seen = |version: &u32| {
            let is_absent = |state: State| state.version() == *version && state.is_absent();
            !is_absent(self.oldest) && !is_absent(self.newest) && is_of(*version)
        };
        (self.oldest.version()..=self.newest.version()).rev().find(is_seen)
    }

    /// Whether the key may be absent. Any delete may have happened between two states.
    pub(super) fn allows_absent(&self, phase_deletes: bool) -> bool {
        self.oldest.is_absent() || self.newest.is_absent() || (phase_deletes && self.oldest != self.newest)
    }

    /// For messages: `version 3` or `versions 3 to 5`.
    pub(super) fn text(&self) -> String {
        let state = |state: State| match (state.version(), state.is_absent()) {
            (0, _) => "absent (never written)".to_string(),
            (version, true) => format!("absent (deleted by version {version})"),
            (version, false) => format!("version {version}"),
        };
        if self.oldest == self.newest {
            state(self.oldest)
        } else {
            format!("{} to {}", state(self.oldest), state(self.newest))
        }
    }
}

/// The states of a key, next to each other: a write uses both.
#[repr(align(8))]
#[derive(Default)]
pub(super) struct States {
    /// The last one sent.
    pub(super) started: AtomicU32,
    /// The last one acknowledged.
    pub(super) acked: AtomicU32,
}

/// The versions of the keys below `len`.
pub(super) struct Versions {
    states: Vec<States>,
    /// For keys that several threads write; empty if no phase has such keys.
    words: Vec<AtomicU64>,
    /// Versions of writes that failed while members of a store failed, by key: such a write may take effect at any later time, or
    /// never, so a read may see it in addition to its window.
    doubtful: Mutex<BTreeMap<u64, Vec<u32>>>,
    /// When recent writes were acknowledged; none: every read must see the newest ones.
    recent: Option<Recent>,
}

impl Versions {
    /// A table for `keys` keys and for as many of `range` (including keys that phases may add) as fit; none if `keys` do not
    /// fit.
    pub(super) fn new(keys: u64, range: u64) -> Option<Versions> {
        let most = VERSIONS_LIMIT_BYTES / 8;
        if keys > most {
            return None;
        }
        let len = range.max(keys).min(most) as usize;
        let (states, doubtful) = (table_in_huge_pages(len), Mutex::default());
        Some(Versions { states, words: Vec::new(), doubtful, recent: None })
    }

    /// Remembers from now on when recent writes were acknowledged.
    pub(super) fn remember_recent(&mut self) {
        self.recent.get_or_insert_with(|| Recent::new(self.states.len()));
    }

    /// When recent writes were acknowledged; none: nobody asks.
    pub(super) fn recent(&self) -> Option<&Recent> {
        self.recent.as_ref()
    }

    /// Adds words, if phases need them.
    pub(super) fn with_words(mut self, are_needed: bool) -> Versions {
        self.words = words(if are_needed { self.states.len() } else { 0 });
        self
    }

    /// Records that a write failed which may take effect.
    #[cold]
    pub(super) fn doubt(&self, index: u64, version: u32) {
        let mut all = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(index).or_default().push(version);
    }

    /// Whether a write of this version failed and may have taken effect.
    #[cold]
    pub(super) fn is_doubtful(&self, index: u64, version: Option<u64>) -> bool {
        let all = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&index).into_iter().flatten().any(|own| Some(u64::from(*own)) == version)
    }

    /// All writes that failed and may take effect, by key.
    pub(super) fn all_doubtful(&self) -> Vec<(u64, Vec<u32>)> {
        let all = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(index, versions)| (*index, versions.clone())).collect()
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    pub(super) fn states(&self) -> &[States] {
        &self.states
    }

    /// Has the processor load a key's states into the nearest cache, without waiting for them.
    #[inline(always)]
    pub(super) fn prefetch(&self, index: u64) {
        if let Some(states) = self.states.get(index as usize) {
            prefetch(states);
        }
        if let Some(word) = self.words.get(index as usize) {
            prefetch(word);
        }
    }

    /// The number of keys in the table: all keys below this have versions.
    pub(super) fn len(&self) -> u64 {
        self.states.len() as u64
    }

    /// The last state sent; none: not in the table.
    #[inline(always)]
    pub(super) fn started(&self, index: u64) -> Option<State> {
        self.states.get(index as usize).map(|states| State(states.started.load(Ordering::Acquire)))
    }

    /// The last state acknowledged.
    #[inline(always)]
    pub(super) fn acked(&self, index: u64) -> Option<State> {
        self.states.get(index as usize).map(|states| State(states.acked.load(Ordering::Acquire)))
    }

    /// Records a write that the key's only writer is about to send; returns its state.
    #[inline(always)]
    pub(super) fn begin(&self, index: u64, deleted: bool) -> Option<State> {
        let cell = &self.states.get(index as usize)?.started;
        let state = State(cell.load(Ordering::Relaxed)).next(deleted);
        cell.store(state.0, Ordering::Release);
        Some(state)
    }

    /// Records an acknowledged write.
    #[inline(always)]
    pub(super) fn acknowledge(&self, index: u64, state: State) {
        if let Some(states) = self.states.get(index as usize) {
            states.acked.store(state.0, Ordering::Release);
        }
    }

    /// Records that a started write was not run, or had no effect.
    pub(super) fn roll_back(&self, index: u64) {
        if let Some(States { started, acked }) = self.states.get(index as usize) {
            started.store(acked.load(Ordering::Relaxed), Ordering::Release);
        }
    }

    /// Restores the result of `bytes`: later writes were rolled back.
    pub(super) fn restore(&self, bytes: &[u8]) {
        for States { started, acked } in &self.states {
            started.store(0, Ordering::Release);
            acked.store(0, Ordering::Release);
        }
        self.take(bytes);
    }

    /// The acknowledged states, when nothing is in flight: four bytes per key, little-endian, up to the last key that was
    /// written.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let acked = |states: &States| states.acked.load(Ordering::Relaxed);
        let written = self.states.iter().rposition(|states| acked(states) != 0).map_or(0, |last| last + 1);
        self.states[..written].iter().flat_map(|states| acked(states).to_le_bytes()).collect()
    }

    /// Loads the result of `bytes`; returns false if the bytes are invalid, or have more keys than fit.
    pub(super) fn take(&self, bytes: &[u8]) -> bool {
        let (states, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() || states.len() > self.states.len() {
            return false;
        }
        for (state, States { started, acked }) in states.iter().zip(&self.states) {
            let state = u32::from_le_bytes(*state);
            started.store(state, Ordering::Relaxed);
            acked.store(state, Ordering::Relaxed);
        }
        true
    }

    /// The number of existing keys, when nothing is in flight.
    pub(super) fn present_count(&self) -> u64 {
        let acked = self.states.iter().map(|states| State(states.acked.load(Ordering::Relaxed)));
        acked.filter(|state| !state.is_absent()).count() as u64
    }
}

/// Has the processor load what a reference points to, if it has an instruction for that.
#[inline(always)]
pub(super) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code, reason = "an instruction that std has only as an unsafe function")]
    // SAFETY: a prefetch has no effect but on caches; SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(target_arch = "aarch64")]
    #[allow(unsafe_code, reason = "std has no stable function for this instruction")]
    // SAFETY: a prefetch has no effect but on caches.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) std::ptr::from_ref(place), options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Wrong answers of a phase: all are counted, the first ones are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct WrongAnswers {
    /// The number of faults.
    pub count: u64,
    /// The messages of the first ones.
    pub first: Vec<String>,
}

const KEPT: usize = 5;

impl WrongAnswers {
    /// Counts a fault; the message is created only for the faults that are kept.
    #[cold]
    pub(super) fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(text());
        }
    }

    /// Adds those of another thread.
    pub(super) fn merge(&mut self, other: WrongAnswers) {
        self.count += other.count;
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(versions: &Versions) -> Window {
        Window { oldest: versions.acked(0).unwrap(), newest: versions.started(0).unwrap() }
    }

    #[test]
    fn a_value_without_a_version_has_the_length_of_one_that_may_be_seen() {
        let window = |oldest: State, newest: State| Window { oldest, newest };
        let (second, third) = (State::of_version(2), State::of_version(3));
        let is_of = |own: u32| move |version: u32| version == own;
        assert!(window(second, second).allows_small(is_of(2)));
        assert!(
            !window(second, second).allows_small(is_of(1)) && !window(second, second).allows_small(is_of(3))
        );
        assert!(
            window(second, third).allows_small(is_of(3)) && !window(second, third).allows_small(is_of(4))
        );
        assert!(!window(second, third.deleted()).allows_small(is_of(3)), "version 3 is a delete");
        assert!(!window(third.deleted(), third.deleted()).allows_small(|_| true), "the key is absent");
        assert!(window(second, State::of_version(5000)).allows_small(|_| false), "too many to compute");
        let several = window(second, State::of_version(6));
        assert_eq!(several.newest_small(|version| matches!(version, 3 | 6)), Some(6));
        assert_eq!(several.newest_small(|version| version < 5), Some(4), "not the newest of all");
        assert_eq!(several.newest_small(|version| version > 6), None);
    }

    #[test]
    fn a_read_sees_the_acknowledged_version_or_one_in_flight() {
        let versions = Versions::new(1, 1).unwrap();
        assert!(window(&versions).allows_absent(false));
        assert!(!window(&versions).allows(Some(0)));
        let first = versions.begin(0, false).unwrap();
        assert!(window(&versions).allows(Some(1)) && window(&versions).allows_absent(false));
        versions.acknowledge(0, first);
        assert!(window(&versions).allows(Some(1)));
        assert!(!window(&versions).allows_absent(true) && !window(&versions).allows(Some(2)));
        versions.begin(0, false).unwrap();
        versions.begin(0, false).unwrap();
        let open = window(&versions);
        assert!(
            open.allows(Some(1)) && open.allows(Some(2)) && open.allows(Some(3)) && !open.allows(Some(4))
        );
        assert!(open.allows_absent(true) && !open.allows_absent(false));
    }

    #[test]
    fn a_deleted_key_must_be_absent_until_it_is_written_again() {
        let versions = Versions::new(1, 1).unwrap();
        for deleted in [false, true] {
            let state = versions.begin(0, deleted).unwrap();
            versions.acknowledge(0, state);
        }
        assert!(window(&versions).allows_absent(false));
        assert!(!window(&versions).allows(Some(1)) && !window(&versions).allows(Some(2)));
        assert_eq!(versions.present_count(), 0);
        versions.begin(0, false);
        versions.roll_back(0);
        assert_eq!(versions.started(0), versions.acked(0));
    }

    #[test]
    fn acknowledged_states_are_saved_and_those_in_flight_are_not() {
        let versions = Versions::new(5, 9).unwrap();
        for (index, deleted) in [(0, false), (3, false), (3, true)] {
            let state = versions.begin(index, deleted).unwrap();
            versions.acknowledge(index, state);
        }
        versions.begin(7, false).unwrap();
        let bytes = versions.bytes();
        assert_eq!(bytes.len(), 4 * 4);
        let next = Versions::new(5, 6).unwrap();
        assert!(next.take(&bytes));
        assert_eq!((next.acked(0), next.started(0)), (versions.acked(0), versions.acked(0)));
        assert_eq!((next.acked(3), next.present_count()), (versions.acked(3), 1));
        assert!(!next.take(&bytes[1..]) && !next.take(&[0; 4 * 7]));
    }

    #[test]
    fn a_write_that_failed_may_be_seen_at_any_later_time() {
        let versions = Versions::new(2, 2).unwrap();
        let failed = versions.begin(0, false).unwrap();
        versions.doubt(0, failed.version());
        let next = versions.begin(0, false).unwrap();
        versions.acknowledge(0, next);
        assert!(!window(&versions).allows(Some(1)), "an older version is stale");
        assert!(versions.is_doubtful(0, Some(1)), "unless its write may have been delayed");
        assert!(!versions.is_doubtful(0, Some(2)) && !versions.is_doubtful(1, Some(1)));
        assert_eq!(versions.all_doubtful(), [(0, vec![1])]);
    }

    #[test]
    fn too_many_keys_have_no_table_and_growth_is_limited() {
        let most = VERSIONS_LIMIT_BYTES / 8;
        assert!(Versions::new(most + 1, most + 1).is_none());
        assert_eq!(Versions::new(10, u64::MAX).unwrap().len(), most);
    }
}
