//! What a crashed process was doing: for each thread a sequence of commits that is a pure function of a seed, and values that
//! say which commit wrote them.

use kvdyno_core::generator::{Random, mix64};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Keys of each thread, usually. Few, so that most commits overwrite or delete rows of earlier ones.
pub(super) const KEYS: u32 = 200;
/// Threads at most.
const MOST_THREADS: usize = 2;
/// Bytes of a key; engines with keys of one size get the same.
pub(super) const KEY_BYTES: usize = 16;
/// What every key begins with.
pub(super) const PREFIX: &str = "kvcrash";
/// Bytes of the longest value.
pub(super) const VALUE_BYTES: usize = 8000;
/// Bytes of most pages.
const PAGE_BYTES: usize = 4096;
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
    /// Keys of each thread.
    #[serde(default = "usual_keys")]
    pub keys: u32,
    /// Of 32 values so many are longer than a page. `None`, as in kept databases of older versions: 24 in a quarter of the scripts, and
    /// 1 in the others, of which some are a little shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_values: Option<u32>,
    /// The commits of each thread that a first crash has undone.
    #[serde(default, skip_serializing_if = "is_none_undone")]
    pub undone: [Undone; MOST_THREADS],
}

/// Commits of a thread that were started before a crash and were not there after it. They are not made again: the next ones have larger
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// The commit before the first of them.
    pub kept: u64,
    /// The last of them, or `kept` if there are none.
    pub last: u64,
}

/// The keys of scripts that say nothing about them.
fn usual_keys() -> u32 {
    KEYS
}

/// Whether no thread has such commits.
fn is_none_undone(undone: &[Undone; MOST_THREADS]) -> bool {
    undone.iter().all(|undone| undone.kept == undone.last)
}

/// One commit. Its changes are of different keys; a commit that was undone has none.
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
    /// The usual commits.
    pub fn of(seed: u64, deletes: bool, transactions: bool) -> Script {
        let undone = [Undone::default(); MOST_THREADS];
        Script { seed, deletes, transactions, keys: KEYS, long_values: None, undone }
    }

    /// The commits that are made after a crash, with numbers after `last`. Of each thread those up to `kept` are there.
    pub fn after(mut self, kept: &[u64], last: u64) -> Script {
        for (undone, kept) in self.undone.iter_mut().zip(kept) {
            *undone = Undone { kept: *kept, last: last.max(*kept) };
        }
        self
    }

    fn undone(&self, thread: u32) -> Undone {
        self.undone.get(thread as usize).copied().unwrap_or_default()
    }

    /// Whether a crash has undone a commit.
    pub fn is_undone(&self, thread: u32, number: u64) -> bool {
        let Undone { kept, last } = self.undone(thread);
        (kept + 1..=last).contains(&number)
    }

    /// The commits of a thread up to a number, without those that a crash has undone.
    pub fn count(&self, thread: u32, number: u64) -> u64 {
        let Undone { kept, last } = self.undone(thread);
        number - (number.min(last) - number.min(kept))
    }

    /// The same with another seed.
    pub(super) fn with_seed(self, seed: u64) -> Script {
        Script { seed, ..self }
    }

    /// A commit of a thread; numbers begin at 1.
    pub fn commit(&self, thread: u32, number: u64) -> Commit {
        if self.is_undone(thread, number) {
            return Commit { changes: Vec::new(), is_transaction: false };
        }
        let mut random = random(self.seed, [1, u64::from(thread), number]);
        let is_transaction = self.transactions && random.below(4) == 0;
        let count = if is_transaction { 2 + random.below(LARGEST - 1) } else { 1 };
        let mut changes: Vec<Change> = Vec::new();
        while changes.len() < count as usize {
            let key = random.below(u64::from(self.keys)) as u32;
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
        // Most values fit several times in a page; some need pages of their own. In some scripts most do: a process that is killed
        // leaves a long write half done.
        let (long, least) = match self.long_values {
            Some(long) => (long, PAGE_BYTES - HEAD),
            None if self.has_long_values() => (24, 3000),
            None => (1, 3000),
        };
        let body = if random.below(32) < u64::from(long) {
            (least as u64) + random.below((VALUE_BYTES - HEAD - least) as u64)
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

    fn has_long_values(&self) -> bool {
        random(self.seed, [3, 0, 0]).below(4) == 0
    }

    /// The thread and number of a key; `None` for a key that no commit writes.
    pub(super) fn place_of(&self, bytes: &[u8], threads: u32) -> Option<(u32, u32)> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() == KEY_BYTES)?;
        let (thread, number) = text.strip_prefix(PREFIX)?.split_at_checked(2)?;
        let place = (thread.parse().ok()?, number.parse().ok()?);
        (place.0 < threads && place.1 < self.keys && key(place.0, place.1) == bytes).then_some(place)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: Script = Script {
        seed: 7,
        deletes: true,
        transactions: true,
        keys: KEYS,
        long_values: None,
        undone: [Undone { kept: 0, last: 0 }; MOST_THREADS],
    };

    #[test]
    fn the_script_of_a_kept_database_of_an_older_version_is_read_as_it_was_written() {
        let old = r#"{"seed":7,"deletes":true,"transactions":true}"#;
        assert_eq!(serde_json::from_str::<Script>(old).unwrap(), SCRIPT);
        // These values are in such databases.
        let value = |seed: u64, number| {
            let value = Script { seed, ..SCRIPT }.value(1, 5, number);
            (value.len(), value.iter().map(|byte| u64::from(*byte)).sum::<u64>())
        };
        assert_eq!([value(7, 1), value(7, 2), value(1, 1), value(4, 9)], OLD_VALUES);
        let new = Script { keys: 5000, long_values: Some(8), ..SCRIPT.after(&[3, 4], 6) };
        let text = serde_json::to_string(&new).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&text).unwrap(), new, "{text}");
    }

    /// Lengths and sums of bytes.
    const OLD_VALUES: [(usize, u64); 4] = [(3120, 399604), (86, 8372), (448, 52569), (6096, 764497)];

    #[test]
    fn the_drawn_share_of_values_is_longer_than_a_page() {
        for long in [0, 1, 8, 32] {
            let script = Script { long_values: Some(long), ..SCRIPT };
            let lengths: Vec<usize> = (1..=3200).map(|number| script.value(0, 1, number).len()).collect();
            assert!(lengths.iter().all(|length| *length <= VALUE_BYTES));
            let count = lengths.iter().filter(|length| **length >= PAGE_BYTES).count();
            let expected = 100 * long as usize;
            assert!(count.abs_diff(expected) <= 100, "seed 7: {count} of 3200 instead of {expected}");
        }
    }

    #[test]
    fn what_a_crash_has_undone_is_not_made_again_and_not_counted() {
        let script = SCRIPT.after(&[3, 6], 6);
        let undone: Vec<u64> = (1..10).filter(|number| script.is_undone(0, *number)).collect();
        assert_eq!(undone, [4, 5, 6]);
        assert!((1..10).all(|number| !script.is_undone(1, number)));
        let counts: Vec<u64> = (0..9).map(|number| script.count(0, number)).collect();
        assert_eq!(counts, [0, 1, 2, 3, 3, 3, 3, 4, 5]);
        assert!((0..9).all(|number| script.count(1, number) == number));
        assert!(script.commit(0, 5).changes.is_empty());
        assert_eq!(script.commit(0, 7), SCRIPT.commit(0, 7));
        assert_eq!(
            script.value(0, 1, 5),
            SCRIPT.value(0, 1, 5),
            "a value says who wrote it, also if that was undone"
        );
    }

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
                assert_eq!(SCRIPT.place_of(&key(thread, number), 2), Some((thread, number)));
            }
        }
        for other in
            [&b"kvcrash02000000"[..], b"kvcrash020000000", b"kvcrash000000200", b"other", b"kvcrash00+000001"]
        {
            assert_eq!(SCRIPT.place_of(other, 2), None);
        }
    }
}
