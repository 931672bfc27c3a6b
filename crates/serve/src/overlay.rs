//! Writes that wait for their commit: the changes of a worker's commands since the last one, by key. Commands of the
//! same worker read through it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A key's state after the commit: its value, or `None` for a deleted key.
pub type After = Option<Vec<u8>>;

/// The number of the answer whose command has written a row; `None`: those of several.
pub type Writer = Option<usize>;

/// Writes by key.
#[derive(Debug, Default)]
pub struct Overlay {
    writes: HashMap<Vec<u8>, (After, Writer)>,
    bytes: usize,
}

impl Overlay {
    /// The pending change of the key; `None` if there is none.
    pub fn get(&self, key: &[u8]) -> Option<&After> {
        if self.writes.is_empty() { None } else { self.writes.get(key).map(|(after, _)| after) }
    }

    /// Records a write, replacing an earlier one to the same key.
    pub fn set(&mut self, key: &[u8], after: After, writer: usize) {
        self.bytes += key.len() + after.as_ref().map_or(0, Vec::len);
        match self.writes.entry(key.to_vec()) {
            Entry::Occupied(mut known) => {
                let (before, writers) = known.get();
                self.bytes -= key.len() + before.as_ref().map_or(0, Vec::len);
                let writer = writers.filter(|known| *known == writer);
                known.insert((after, writer));
            }
            Entry::Vacant(free) => {
                free.insert((after, Some(writer)));
            }
        }
    }

    /// Number of keys with a write.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values in it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The writes; by key if `in_order`, because writing neighbours one after the other is cheaper where keys are
    /// ordered. A caller that takes a value out must clear the overlay afterwards.
    pub fn rows(&mut self, in_order: bool) -> Vec<(&[u8], &mut After, Writer)> {
        let all = self.writes.iter_mut();
        let mut rows: Vec<_> = all.map(|(key, (after, writer))| (key.as_slice(), after, *writer)).collect();
        if in_order {
            rows.sort_unstable_by_key(|(key, ..)| *key);
        }
        rows
    }

    /// The writes to keys from `from` on and below `to`, in order of their keys.
    pub fn range(&self, from: &[u8], to: &[u8]) -> Vec<(Vec<u8>, After)> {
        let within = |key: &[u8]| key >= from && key < to;
        let found = self.writes.iter().filter(|(key, _)| within(key));
        let mut rows: Vec<_> = found.map(|(key, (after, _))| (key.clone(), after.clone())).collect();
        rows.sort();
        rows
    }

    /// Removes all writes.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.bytes = 0;
    }
}
