//! The keyspaces of a workload's rows and index rows: native, or emulated by a mark in front of each key if the engine has
//! only one keyspace. Collections are keyspaces too: the mark is the collection's name, which is passed to the engine if it
//! has native collections.

use crate::engine::Engine;
use crate::engine::abi::*;
use crate::generator::{Keys, Values};
use crate::workload::{Collections, Index, Workload};

/// The version of every row with indexes: such rows are written once, so that the contents of an index are known.
pub(super) const INDEXED_VERSION: u64 = 1;

/// The maximum number of marks of one byte: each must have a next mark, which ends a scan of its keyspace.
const ONE_BYTE: u64 = 255;
/// Bytes of a collection's name.
pub(super) const NAME_BYTES: usize = 2;

/// The keyspaces of a trial: first those of the rows, then one for each index of each of these.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spaces {
    count: u64,
    indexes: Vec<Index>,
    mark_len: usize,
    keeps_indexes: bool,
    is_atomic: bool,
    collections: Collections,
    /// Whether the engine has native collections.
    has_collections: bool,
}

/// A key that was written into the buffer of an op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WrittenKey {
    /// Its length in bytes.
    pub length: usize,
    /// The keyspace for the op.
    pub space: u16,
}

/// The key of a row in an index that was written into the buffer of an op.
#[derive(Clone, Copy)]
pub(super) struct WrittenIndexKey {
    /// The number of bytes in front of the primary key.
    pub front: usize,
    /// The whole key.
    pub key: WrittenKey,
}

impl Spaces {
    /// The keyspaces for an engine that declares these capabilities (`KV_...` bits).
    pub(super) fn new(workload: &Workload, capabilities: u64) -> Spaces {
        let has = |bits: u64| capabilities & bits == bits;
        let indexes = workload.indexes.clone();
        let collections = workload.collections;
        let count = if collections.has_fields() { collections.count } else { workload.keyspaces };
        let count = u64::from(count.max(1));
        let total = count * (1 + indexes.len() as u64);
        let mark_len = match total {
            _ if collections.has_fields() => NAME_BYTES,
            1 => 0,
            _ if has(KV_KEYSPACES) => 0,
            ..=ONE_BYTE => 1,
            _ => 2,
        };
        let keeps_indexes = !indexes.is_empty() && has(KV_KEYSPACES | KV_INDEXES);
        let has_collections = collections.has_fields() && has(KV_COLLECTIONS);
        let is_atomic = has(KV_TRANSACTION);
        Spaces { count, indexes, mark_len, keeps_indexes, is_atomic, collections, has_collections }
    }

    /// The number of all keyspaces: those of rows and those of index rows.
    pub(super) fn total(&self) -> u64 {
        self.count * (1 + self.indexes.len() as u64)
    }

    /// The number of keyspaces requested from the engine.
    pub(super) fn requested(&self) -> u32 {
        if self.mark_len > 0 { 1 } else { self.total() as u32 }
    }

    /// The number of keyspaces of rows.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The length of the collection's name at the start of each key; 0: no native collections.
    pub(super) fn split(&self) -> u16 {
        if self.has_collections { self.mark_len as u16 } else { 0 }
    }

    /// Whether a scan covers a complete hash, regardless of the phase's number of rows.
    #[inline(always)]
    pub(super) fn are_hashes(&self) -> bool {
        self.collections.are_hashes()
    }

    /// Whether there is one keyspace and no index, so that keys are those of the generator.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.count == 1 && self.mark_len == 0
    }

    /// The indexes of each keyspace.
    pub(super) fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The indexes that the engine maintains; empty if they are emulated.
    pub(super) fn kept_indexes(&self) -> Vec<kv_index> {
        let of = |space: u64| {
            (1..).zip(&self.indexes).map(move |(number, index)| kv_index {
                keyspace: space as u16,
                index_keyspace: self.index_space(space, number),
                from: index.from,
                length: index.length,
                clustering: u32::from(index.clustering),
            })
        };
        if self.keeps_indexes { (0..self.count).flat_map(of).collect() } else { Vec::new() }
    }

    /// The length of the mark in front of each key.
    #[inline(always)]
    pub(super) fn mark_len(&self) -> usize {
        self.mark_len
    }

    /// The maximum number of bytes that are added to the generator's keys.
    pub(super) fn extra_len(&self) -> usize {
        // The key of a list element is the list's name and the element's number.
        let name = if self.collections.are_lists() { NAME_BYTES } else { 0 };
        self.mark_len + name + self.indexes.iter().map(|index| index.length as usize).max().unwrap_or(0)
    }

    /// The keyspace of an item's row.
    #[inline(always)]
    pub(super) fn of(&self, item: u64) -> u16 {
        // Avoid a division per row, which is visible in the harness's share.
        if self.count == 1 { 0 } else { (item % self.count) as u16 }
    }

    /// The keyspace of an item's row in index `number`, from 1.
    pub(super) fn index_space(&self, item: u64, number: u32) -> u16 {
        let before = u64::from(self.of(item)) * self.indexes.len() as u64;
        (self.count + before) as u16 + number as u16 - 1
    }

    /// The keyspace number for an op.
    #[inline(always)]
    pub(super) fn op_space(&self, space: u16) -> u16 {
        if self.mark_len > 0 { 0 } else { space }
    }

    /// Writes the mark of a keyspace; returns its length.
    pub(super) fn write_mark(&self, space: u16, out: &mut [u8]) -> usize {
        out[..self.mark_len].copy_from_slice(&space.to_be_bytes()[2 - self.mark_len..]);
        self.mark_len
    }

    /// Writes an item's key, with a mark if necessary; returns its length and its keyspace.
    #[inline(always)]
    pub(super) fn write_key(&self, keys: &Keys, item: u64, out: &mut [u8]) -> WrittenKey {
        if self.is_plain() {
            return WrittenKey { length: keys.write(item, out), space: 0 };
        }
        self.write_in_space(item, out, |out| keys.write(item, out))
    }

    /// The same for the neighbouring key that is never written.
    pub(super) fn write_missing(&self, keys: &Keys, item: u64, out: &mut [u8]) -> WrittenKey {
        self.write_in_space(item, out, |out| keys.write_missing(item, out))
    }

    fn write_in_space(
        &self,
        item: u64,
        out: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> WrittenKey {
        let space = self.of(item);
        let mark = self.write_mark(space, out);
        WrittenKey { length: mark + write(&mut out[mark..]), space: self.op_space(space) }
    }

    /// Writes the key of an item's row in index `number` (from 1); `value` is the row's value.
    pub(super) fn write_index_key(
        &self,
        keys: &Keys,
        item: u64,
        value: &[u8],
        number: u32,
        out: &mut [u8],
    ) -> WrittenIndexKey {
        let Index { from, length, .. } = self.indexes[number as usize - 1];
        let space = self.index_space(item, number);
        let mark = self.write_mark(space, out);
        let front = mark + length as usize;
        out[mark..front].copy_from_slice(&value[from as usize..][..length as usize]);
        let length = front + keys.write(item, &mut out[front..]);
        WrittenIndexKey { front, key: WrittenKey { length, space: self.op_space(space) } }
    }

    /// The value of an index row: the complete value of the row, or nothing.
    pub(super) fn index_value<'v>(&self, number: u32, value: &'v [u8]) -> &'v [u8] {
        if self.indexes[number as usize - 1].clustering { value } else { &[] }
    }

    /// The key without its mark; none: it belongs to another keyspace.
    #[inline(always)]
    pub(super) fn unmarked<'k>(&self, space: u16, key: &'k [u8]) -> Option<&'k [u8]> {
        if self.mark_len == 0 {
            return Some(key);
        }
        key.strip_prefix(&space.to_be_bytes()[2 - self.mark_len..])
    }

    /// The number of ops that write one row with its index rows.
    pub(super) fn row_ops(&self) -> usize {
        if self.keeps_indexes { 1 } else { 1 + self.indexes.len() }
    }

    /// Key and value bytes of a row's index rows, whether the engine or the core writes them.
    pub(super) fn index_bytes(&self, key_len: u64, value_len: u64) -> u64 {
        let of =
            |index: &Index| u64::from(index.length) + key_len + if index.clustering { value_len } else { 0 };
        self.indexes.iter().map(of).sum()
    }

    /// Whether the core writes a row and its index rows as a transaction.
    pub(super) fn is_grouped(&self) -> bool {
        !self.keeps_indexes && self.is_atomic
    }

    /// Whether rows of several keyspaces can be written in one transaction.
    pub(super) fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// Sets whether the engine's transactions can span several keyspaces, which is known after open.
    pub(super) fn set_atomic(&mut self, is_atomic: bool) {
        self.is_atomic = is_atomic;
    }

    /// Whether that must be tried: the engine has keyspaces, and the workload writes to several at once.
    pub(super) fn needs_trial(&self, workload: &Workload) -> bool {
        let transactions = workload.phases.iter().any(|phase| phase.mix.transaction > 0.0 || phase.atomic);
        let groups = !self.indexes.is_empty() && !self.keeps_indexes;
        self.mark_len == 0 && (groups || (transactions && self.count > 1))
    }

    /// The reason why the engine does not support such keys, before it is opened; none: it does.
    pub(super) fn refusal(&self, engine: &Engine, keys: &Keys) -> Option<String> {
        let emulates = !self.indexes.is_empty() && !self.keeps_indexes;
        if emulates && engine.capabilities() & KV_FIXED_KEY_SIZE != 0 {
            return Some(
                "the engine supports keys of one size only, and keys of index rows are longer".into(),
            );
        }
        let (longest, limit) = (keys.max_len() + self.extra_len(), engine.key_size_max() as usize);
        if longest <= limit {
            return None;
        }
        let extra = match self.extra_len() {
            0 => String::new(),
            extra if self.collections != Collections::default() => {
                format!(" ({extra} of them for the collection's name)")
            }
            extra => format!(" ({extra} of them for keyspace and index)"),
        };
        Some(format!("keys have up to {longest} bytes{extra}, but the engine supports at most {limit}"))
    }

    /// A capability that is missing after open, because options disable it; none: nothing is missing.
    pub(super) fn lacks(&self, capabilities: u64) -> Option<String> {
        let has = |bit: u64| capabilities & bit != 0;
        if self.requested() > 1 && !has(KV_KEYSPACES) {
            return Some("the engine has no keyspaces with these options".into());
        }
        if self.has_collections && !has(KV_COLLECTIONS) {
            return Some("the engine has no collections with these options".into());
        }
        (self.keeps_indexes && !has(KV_INDEXES))
            .then(|| "the engine has no indexes with these options".into())
    }

    /// Whether the core writes index rows, some of which have no value.
    pub(super) fn writes_empty_values(&self) -> bool {
        !self.keeps_indexes && self.indexes.iter().any(|index| !index.clustering)
    }

    /// What the core emulates, for the report.
    pub(super) fn emulated(&self, writes_indexes: bool) -> Vec<String> {
        let mut texts = Vec::new();
        if self.mark_len > 0 && !self.has_collections {
            let what = if self.collections.has_fields() { "collections" } else { "keyspaces" };
            texts.push(format!("{what} emulated by key prefix"));
        }
        if writes_indexes && !self.keeps_indexes {
            let how = if self.is_atomic { "atomic" } else { "not atomic" };
            texts.push(format!("indexes emulated, {how}"));
        }
        texts
    }
}

/// The value of an item's indexed row, written to `scratch`.
pub(super) fn indexed_value<'s>(values: &Values, item: u64, scratch: &'s mut Vec<u8>) -> &'s [u8] {
    scratch.resize(values.max_len(), 0);
    let length = values.write(item, INDEXED_VERSION, scratch);
    &scratch[..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::KeyRules;
    use crate::workload::DataType;

    fn workload(keyspaces: u32, indexes: usize) -> Workload {
        let mut workload = crate::workload::builtin("read-random").unwrap();
        workload.keyspaces = keyspaces;
        workload.indexes = vec![Index { from: 24, length: 8, clustering: false }; indexes];
        workload
    }

    fn keys() -> Keys {
        Keys::new(&KeyRules { range: 1000, ..KeyRules::default() }, 1).unwrap()
    }

    #[test]
    fn every_keyspace_has_a_unique_number() {
        for (count, indexes) in [(1, 0), (1, 3), (7, 0), (5, 2), (4096, 8)] {
            let spaces = Spaces::new(&workload(count, indexes), KV_KEYSPACES);
            let mut seen = vec![false; spaces.total() as usize];
            for item in 0..u64::from(count) {
                let of_indexes = (1..=indexes as u32).map(|number| spaces.index_space(item, number));
                for space in of_indexes.chain([spaces.of(item)]) {
                    assert!(!std::mem::replace(&mut seen[usize::from(space)], true), "{count} {indexes}");
                }
            }
            assert!(seen.iter().all(|seen| *seen), "{count} {indexes}");
        }
    }

    #[test]
    fn engines_without_keyspaces_get_marked_keys() {
        let mut out = [0; 40];
        let native = Spaces::new(&workload(8, 0), KV_KEYSPACES);
        assert_eq!(native.write_key(&keys(), 13, &mut out), WrittenKey { length: 16, space: 5 });
        assert_eq!((native.requested(), native.mark_len()), (8, 0));
        let marked = Spaces::new(&workload(8, 0), 0);
        assert_eq!(marked.write_key(&keys(), 13, &mut out), WrittenKey { length: 17, space: 0 });
        assert_eq!((marked.requested(), out[0]), (1, 5));
        assert_eq!(keys().index_of(marked.unmarked(5, &out[..17]).unwrap()), Some(13));
        assert_eq!(marked.unmarked(6, &out[..17]), None);
        assert_eq!(marked.emulated(false), ["keyspaces emulated by key prefix"]);
        assert!(native.emulated(true).iter().all(|text| text.starts_with("indexes")));
    }

    #[test]
    fn marks_are_in_the_order_of_keyspaces_and_each_has_a_next_one() {
        for count in [200, 255, 256, 4096] {
            let spaces = Spaces::new(&workload(count, 0), 0);
            let mark = |space: u16| {
                let mut out = [0; 2];
                let length = spaces.write_mark(space, &mut out);
                out[..length].to_vec()
            };
            assert_eq!(spaces.mark_len(), if count <= 255 { 1 } else { 2 });
            // The mark after the last one ends a scan of the last keyspace.
            assert!((0..count as u16).all(|space| mark(space) < mark(space + 1)), "{count}");
        }
    }

    #[test]
    fn a_collection_is_named_by_the_first_bytes_of_its_keys() {
        let mut workload = workload(1, 0);
        workload.collections = Collections { count: 300, r#type: DataType::Hash };
        let mut out = [0; 40];
        for (capabilities, split, texts) in
            [(KV_COLLECTIONS, 2, vec![]), (0, 0, vec!["collections emulated by key prefix".to_string()])]
        {
            let spaces = Spaces::new(&workload, capabilities);
            assert_eq!(spaces.write_key(&keys(), 999, &mut out), WrittenKey { length: 18, space: 0 });
            assert_eq!(out[..2], [0, 99]);
            assert_eq!((spaces.count(), spaces.requested(), spaces.split()), (300, 1, split));
            assert_eq!((spaces.emulated(false), spaces.are_hashes()), (texts, true));
            assert_eq!(spaces.lacks(0).is_some(), split > 0);
        }
    }

    #[test]
    fn an_index_row_is_found_under_bytes_of_the_value_and_the_key() {
        let spaces = Spaces::new(&workload(2, 2), KV_KEYSPACES | KV_TRANSACTION);
        let value: Vec<u8> = (0..100).collect();
        let mut out = [0; 64];
        let row = spaces.write_index_key(&keys(), 7, &value, 2, &mut out);
        assert_eq!((row.front, row.key.length, row.key.space), (8, 24, 2 + 2 + 1));
        assert_eq!(out[..8], value[24..32]);
        assert_eq!(keys().index_of(&out[8..24]), Some(7));
        assert_eq!((spaces.row_ops(), spaces.kept_indexes().len(), spaces.is_grouped()), (3, 0, true));
        assert_eq!(spaces.emulated(true), ["indexes emulated, atomic"]);
        let kept = Spaces::new(&workload(2, 2), KV_KEYSPACES | KV_INDEXES);
        let places: Vec<_> =
            kept.kept_indexes().iter().map(|index| (index.keyspace, index.index_keyspace)).collect();
        assert_eq!(places, [(0, 2), (0, 3), (1, 4), (1, 5)]);
        assert_eq!((kept.row_ops(), kept.emulated(true).len()), (1, 0));
        assert_eq!(kept.index_bytes(16, 100), 2 * (8 + 16));
    }
}
