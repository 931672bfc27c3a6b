//! What a crashed process was doing: for each thread a sequence of commits that is a pure function of a seed, and values that
//! say which commit wrote them.

use kvdyno_core::generator::{Random, mix64};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Keys of each thread. Few, so that most commits overwrite or delete rows of earlier ones.
pub(super) const KEYS: u32 = 200;
/// Bytes of a key; engines with keys of one size get the same.
pub(super) const KEY_BYTES: usize = 16;
/// What every key begins with.
pub(super) const PREFIX: &str = "kvcrash";
/// Bytes of the longest value.
pub(super) const VALUE_BYTES: usize = 8000;
/// Bytes of a value's header: tag, thread and key, number of the commit.
const HEAD: usize = 24;
/// Changes of the largest transaction.
const LARGEST: u64 = 6;

/// The commits of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The seed of everything.
    pub seed: u64,
    /// Whether it has deletes.
    pub deletes: bool,
    /// Whether it has transactions.
    pub transactions: bool,
}

/// One commit. Its changes are of different keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Whether they are one transaction.
    pub is_transaction: bool,
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key's number among those of its thread.
    pub key: u32,
    /// A put, otherwise a delete.
    pub is_put: bool,
}

/// A value that the script did not write under its key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("key {key} of thread {thread} has {wrong}")]
pub struct WrongValue {
    thread: u32,
    key: u32,
    wrong: Wrong,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum Wrong {
    /// It has too few bytes.
    #[error("a value of {0} bytes, which no commit wrote")]
    Length(usize),
    #[error("only zeros")]
    Zeros,
    #[error("bytes that no commit wrote")]
    Foreign,
    #[error("the value of key {key} of thread {thread}")]
    OfKey { thread: u64, key: u64 },
    #[error(
        "a value of commit {number} that is wrong from byte {same} on ({found} bytes, written were {written})"
    )]
    From { number: u64, same: usize, found: usize, written: usize },
}

/// A source of random numbers for one place of the script.
fn random(seed: u64, place: [u64; 3]) -> Random {
    Random::seeded(place.into_iter().fold(seed, |state, word| mix64(state.rotate_left(17) ^ mix64(word))))
}

impl Script {
    /// A commit of a thread; numbers begin at 1.
    pub fn commit(&self, thread: u32, number: u64) -> Commit {
        let mut random = random(self.seed, [1, u64::from(thread), number]);
        let is_transaction = self.transactions && random.below(4) == 0;
        let count = if is_transaction { 2 + random.below(LARGEST - 1) } else { 1 };
        let mut changes: Vec<Change> = Vec::new();
        while changes.len() < count as usize {
            let key = random.below(u64::from(KEYS)) as u32;
            let is_put = !(self.deletes && random.below(8) == 0);
            if changes.iter().all(|change| change.key != key) {
                changes.push(Change { key, is_put });
            }
        }
        Commit { changes, is_transaction }
    }

    /// The value that a commit puts.
    pub fn value(&self, thread: u32, key: u32, number: u64) -> Vec<u8> {
        let row = u64::from(thread) << 32 | u64::from(key);
        let mut random = random(self.seed, [2, row, number]);
        // Most values fit several times in a page; some need pages of their own. In a quarter of the scripts most do: a process
        // that is killed leaves a long write half done.
        let large = if self.has_large_values() { 24 } else { 1 };
        let body = if random.below(32) < large {
            3000 + random.below((VALUE_BYTES - HEAD - 3000) as u64)
        } else {
            8 + random.below(700)
        };
        let mut value = Vec::with_capacity(HEAD + body as usize + 8);
        for word in [self.tag(), row, number] {
            value.extend(word.to_le_bytes());
        }
        while value.len() < HEAD + body as usize {
            value.extend(random.next_u64().to_le_bytes());
        }
        value.truncate(HEAD + body as usize);
        value
    }

    /// The number of the commit that wrote a value found under a key.
    pub fn number_of(&self, thread: u32, key: u32, value: &[u8]) -> Result<u64, WrongValue> {
        let wrong = |wrong| WrongValue { thread, key, wrong };
        let word = |place: usize| {
            let bytes = value.get(place * 8..)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let (Some(tag), Some(row), Some(number)) = (word(0), word(1), word(2)) else {
            return Err(wrong(Wrong::Length(value.len())));
        };
        if tag != self.tag() {
            let is_zero = value.iter().all(|byte| *byte == 0);
            return Err(wrong(if is_zero { Wrong::Zeros } else { Wrong::Foreign }));
        }
        if row != u64::from(thread) << 32 | u64::from(key) {
            let (thread, key) = (row >> 32, row & u64::from(u32::MAX));
            return Err(wrong(Wrong::OfKey { thread, key }));
        }
        let expected = self.value(thread, key, number);
        if expected != value {
            let same = expected.iter().zip(value).take_while(|(one, other)| one == other).count();
            let (found, written) = (value.len(), expected.len());
            return Err(wrong(Wrong::From { same, number, found, written }));
        }
        Ok(number)
    }

    fn has_large_values(&self) -> bool {
        random(self.seed, [3, 0, 0]).below(4) == 0
    }

    /// The first word of every value: values of other seeds are recognized.
    fn tag(&self) -> u64 {
        mix64(self.seed ^ 0x6b76_6479_6e6f)
    }
}

/// The key with a number, of a thread.
pub(super) fn key(thread: u32, key: u32) -> Vec<u8> {
    format!("{PREFIX}{thread:02}{key:07}").into_bytes()
}

/// The thread and number of a key; `None` for a key that no commit writes.
pub(super) fn place_of(bytes: &[u8], threads: u32) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() == KEY_BYTES)?;
    let (thread, number) = text.strip_prefix(PREFIX)?.split_at_checked(2)?;
    let place = (thread.parse().ok()?, number.parse().ok()?);
    (place.0 < threads && place.1 < KEYS && key(place.0, place.1) == bytes).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: Script = Script { seed: 7, deletes: true, transactions: true };

    #[test]
    fn the_same_seed_has_the_same_commits_and_another_seed_others() {
        let all = |script: Script| (1..200).map(|number| script.commit(1, number)).collect::<Vec<_>>();
        assert_eq!(all(SCRIPT), all(SCRIPT));
        assert_ne!(all(SCRIPT), all(Script { seed: 8, ..SCRIPT }));
        assert!(all(Script { transactions: false, ..SCRIPT }).iter().all(|commit| commit.changes.len() == 1));
        let puts_only = all(Script { deletes: false, ..SCRIPT });
        assert!(puts_only.iter().flat_map(|commit| &commit.changes).all(|change| change.is_put));
        for commit in all(SCRIPT) {
            let mut keys: Vec<u32> = commit.changes.iter().map(|change| change.key).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), commit.changes.len());
            assert!(keys.len() > 1 || !commit.is_transaction);
        }
    }

    #[test]
    fn a_value_says_who_wrote_it_and_a_changed_one_is_refused() {
        for number in 1..300 {
            let value = SCRIPT.value(1, 5, number);
            assert!(value.len() <= VALUE_BYTES);
            assert_eq!(SCRIPT.number_of(1, 5, &value), Ok(number));
            let mut torn = value.clone();
            let last = torn.len() - 1;
            torn[last] ^= 1;
            assert!(SCRIPT.number_of(1, 5, &torn).is_err());
            assert!(SCRIPT.number_of(1, 5, &value[..last]).is_err());
            assert!(SCRIPT.number_of(1, 6, &value).is_err());
            assert!(Script { seed: 8, ..SCRIPT }.number_of(1, 5, &value).is_err());
        }
        assert!(SCRIPT.number_of(0, 0, &[]).is_err());
        let zeros = SCRIPT.number_of(0, 0, &[0; 100]).unwrap_err();
        assert_eq!(zeros.to_string(), "key 0 of thread 0 has only zeros");
    }

    #[test]
    fn a_key_has_one_place() {
        for thread in 0..2 {
            for number in 0..KEYS {
                assert_eq!(key(thread, number).len(), KEY_BYTES);
                assert_eq!(place_of(&key(thread, number), 2), Some((thread, number)));
            }
        }
        for other in
            [&b"kvcrash02000000"[..], b"kvcrash020000000", b"kvcrash000000200", b"other", b"kvcrash00+000001"]
        {
            assert_eq!(place_of(other, 2), None);
        }
    }
}
