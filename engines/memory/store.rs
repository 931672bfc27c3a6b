//! The two containers, a hash map and an ordered map of byte strings, behind one trait.

use kvdyno_driver::{Error, Op, Status};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque, btree_map};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Bound;

/// Bytes of the keys that are stored in the container itself: they fill three words together with tag and length.
const INLINE: usize = 22;

/// A key. A short one costs no allocation and no further cache line.
pub enum Key {
    /// Length and bytes.
    Short(u8, [u8; INLINE]),
    /// The bytes.
    Long(Box<[u8]>),
}

impl Key {
    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Key::Short(length, bytes) => &bytes[..usize::from(*length)],
            Key::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Key {
    #[inline]
    fn from(key: &[u8]) -> Key {
        if key.len() > INLINE {
            return Key::Long(key.into());
        }
        let mut bytes = [0; INLINE];
        bytes[..key.len()].copy_from_slice(key);
        Key::Short(key.len() as u8, bytes)
    }
}

impl Borrow<[u8]> for Key {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Key) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

/// Makes [`FoldHasher`]s. The seed is a constant: the keys are a benchmark's and not hostile, and the same
/// run uses the same buckets every time.
#[derive(Clone, Copy, Default)]
pub struct Fold;

impl BuildHasher for Fold {
    type Hasher = FoldHasher;

    #[inline]
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher(SEED)
    }
}

/// The fractional digits of pi and of the golden ratio: odd, with bits spread over the word.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes eight bytes per multiplication: the two halves of the 128-bit product, folded. std's own SipHash costs more
/// and protects against attacks that cannot happen here.
pub struct FoldHasher(u64);

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for FoldHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut state = self.0.wrapping_add(bytes.len() as u64);
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            state = fold(state ^ u64::from_le_bytes(*word), FACTOR);
        }
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        self.0 = fold(state ^ u64::from_le_bytes(last), FACTOR ^ SEED);
    }

    /// The length of a slice is passed here before its bytes; `write` mixes it in itself.
    #[inline]
    fn write_usize(&mut self, _length: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A container of rows, behind its own lock.
pub trait Store: Default + Send + Sync + 'static {
    /// Shards of a keyspace; a power of two.
    const SHARDS: usize;

    /// The shard of a key.
    fn shard(key: &[u8]) -> usize;

    /// Reserves space for this many rows, if there is memory for it.
    fn reserve(&mut self, _rows: usize) {}

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Option<&[u8]>;

    /// Inserts or overwrites.
    fn put(&mut self, key: &[u8], value: &[u8]);

    /// Inserts; false if the key exists.
    fn put_new(&mut self, key: &[u8], value: &[u8]) -> bool;

    /// Deletes; whether the key existed.
    fn remove(&mut self, key: &[u8]) -> bool;

    /// The value of a key, for changes; an absent one is created empty.
    fn slot(&mut self, key: &[u8]) -> &mut Vec<u8>;

    /// Rows.
    fn row_count(&self) -> usize;

    /// The lists; `None` if the container has none.
    fn lists(&mut self) -> Option<&mut Lists> {
        None
    }

    /// Writes the rows that a scan requests.
    fn scan(&self, op: &mut Op<'_>) -> Result<Status, Error>;
}

/// Overwrites in place if that wastes little.
#[inline]
fn overwrite(old: &mut Vec<u8>, value: &[u8]) {
    if value.len() <= old.capacity() && old.capacity() <= 2 * value.len() + 64 {
        old.clear();
        old.extend_from_slice(value);
    } else {
        *old = value.to_vec();
    }
}

/// The hash map.
#[derive(Default)]
pub struct Map(HashMap<Key, Vec<u8>, Fold>);

impl Store for Map {
    const SHARDS: usize = 64;

    /// By bits that std's map uses neither for the bucket (the low ones) nor for its tags (the top seven).
    #[inline]
    fn shard(key: &[u8]) -> usize {
        (Fold.hash_one(key) >> 48) as usize % Map::SHARDS
    }

    fn reserve(&mut self, rows: usize) {
        // If memory is short it grows on demand, like any map.
        let _ = self.0.try_reserve(rows);
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) {
        if key.len() > INLINE
            && let Some(old) = self.0.get_mut(key)
        {
            return overwrite(old, value);
        }
        match self.0.entry(Key::from(key)) {
            Entry::Occupied(mut old) => overwrite(old.get_mut(), value),
            Entry::Vacant(slot) => drop(slot.insert(value.to_vec())),
        }
    }

    #[inline]
    fn put_new(&mut self, key: &[u8], value: &[u8]) -> bool {
        match self.0.entry(Key::from(key)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(slot) => {
                slot.insert(value.to_vec());
                true
            }
        }
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> bool {
        self.0.remove(key).is_some()
    }

    #[inline]
    fn slot(&mut self, key: &[u8]) -> &mut Vec<u8> {
        self.0.entry(Key::from(key)).or_default()
    }

    fn row_count(&self) -> usize {
        self.0.len()
    }

    fn scan(&self, _op: &mut Op<'_>) -> Result<Status, Error> {
        Err(Error::unsupported("scans"))
    }
}

/// Lists by name: pushed at the back, popped at the front.
pub type Lists = HashMap<Key, VecDeque<Vec<u8>>, Fold>;

/// The ordered map, and next to it the lists.
#[derive(Default)]
pub struct Tree(BTreeMap<Key, Vec<u8>>, Lists);

impl Tree {
    /// The rows between two bounds, which must be in order.
    pub(crate) fn range(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> btree_map::Range<'_, Key, Vec<u8>> {
        self.0.range::<[u8], _>(bounds)
    }
}

impl Store for Tree {
    const SHARDS: usize = 1;

    #[inline]
    fn shard(_key: &[u8]) -> usize {
        0
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) {
        if key.len() > INLINE
            && let Some(old) = self.0.get_mut(key)
        {
            return overwrite(old, value);
        }
        match self.0.entry(Key::from(key)) {
            btree_map::Entry::Occupied(mut old) => overwrite(old.get_mut(), value),
            btree_map::Entry::Vacant(slot) => drop(slot.insert(value.to_vec())),
        }
    }

    #[inline]
    fn put_new(&mut self, key: &[u8], value: &[u8]) -> bool {
        match self.0.entry(Key::from(key)) {
            btree_map::Entry::Occupied(_) => false,
            btree_map::Entry::Vacant(slot) => {
                slot.insert(value.to_vec());
                true
            }
        }
    }

    #[inline]
    fn remove(&mut self, key: &[u8]) -> bool {
        self.0.remove(key).is_some()
    }

    #[inline]
    fn slot(&mut self, key: &[u8]) -> &mut Vec<u8> {
        self.0.entry(Key::from(key)).or_default()
    }

    fn lists(&mut self) -> Option<&mut Lists> {
        Some(&mut self.1)
    }

    fn row_count(&self) -> usize {
        self.0.len()
    }

    fn scan(&self, op: &mut Op<'_>) -> Result<Status, Error> {
        let range = op.range();
        if range.is_empty() {
            return op.deliver_rows(std::iter::empty::<Result<(&[u8], &[u8]), Error>>());
        }
        let rows = self.range(range.bounds()).map(|(key, value)| Ok::<_, Error>((key.as_bytes(), value)));
        if op.is_reverse() { op.deliver_rows(rows.rev()) } else { op.deliver_rows(rows) }
    }
}
