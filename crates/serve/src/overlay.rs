//! Writes that wait for their commit: the changes of a worker's commands since the last one, by key. Commands of the
//! same worker read through it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A key's state after the commit: its value, or `None` for a deleted key.
pub(crate) type After = Option<Vec<u8>>;

/// The number of the answer whose command has written a row; `None`: those of several.
pub(crate) type Writer = Option<usize>;

/// A write of a key.
#[derive(Debug)]
struct Write {
    after: After,
    writer: Writer,
    /// The number of the command that has written it last.
    command: u64,
}

/// Writes by key.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    writes: HashMap<Vec<u8>, Write>,
    bytes: usize,
    /// The number of the command that runs.
    command: u64,
    /// Whether that command has written.
    has_written: bool,
    /// The writes of others that it has replaced.
    replaced: Vec<(Vec<u8>, Write)>,
}

impl Overlay {
    /// The pending change of the key; `None` if there is none.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&After> {
        if self.writes.is_empty() { None } else { self.writes.get(key).map(|write| &write.after) }
    }

    /// Begins a command: `take_back` removes what is written from here on.
    pub(crate) fn begin(&mut self) {
        self.command += 1;
        self.has_written = false;
        self.replaced.clear();
    }

    /// Removes what the command has written.
    pub(crate) fn take_back(&mut self) {
        if !std::mem::take(&mut self.has_written) {
            return;
        }
        self.writes.retain(|_, write| write.command != self.command);
        self.writes.extend(self.replaced.drain(..));
        self.bytes = self.writes.iter().map(|(key, write)| size(key, &write.after)).sum();
    }

    /// Records a write, replacing an earlier one to the same key.
    pub(crate) fn set(&mut self, key: &[u8], after: After, writer: usize) {
        self.bytes += size(key, &after);
        self.has_written = true;
        let command = self.command;
        match self.writes.entry(key.to_vec()) {
            Entry::Occupied(mut known) => {
                self.bytes -= size(key, &known.get().after);
                let writer = known.get().writer.filter(|known| *known == writer);
                let before = known.insert(Write { after, writer, command });
                if before.command != command {
                    self.replaced.push((key.to_vec(), before));
                }
            }
            Entry::Vacant(free) => {
                free.insert(Write { after, writer: Some(writer), command });
            }
        }
    }

    /// Number of keys with a write.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there is nothing to commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values in it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The writes; by key if `in_order`, because writing neighbours one after the other is cheaper where keys are
    /// ordered. A caller that takes a value out must clear the overlay afterwards.
    pub(crate) fn rows(&mut self, in_order: bool) -> Vec<(&[u8], &mut After, Writer)> {
        let all = self.writes.iter_mut();
        let mut rows: Vec<_> =
            all.map(|(key, write)| (key.as_slice(), &mut write.after, write.writer)).collect();
        if in_order {
            rows.sort_unstable_by_key(|(key, ..)| *key);
        }
        rows
    }

    /// The writes to keys from `from` on and below `to`, in order of their keys.
    pub(crate) fn range(&self, from: &[u8], to: &[u8]) -> Vec<(Vec<u8>, After)> {
        let within = |key: &[u8]| key >= from && key < to;
        let found = self.writes.iter().filter(|(key, _)| within(key));
        let mut rows: Vec<_> = found.map(|(key, write)| (key.clone(), write.after.clone())).collect();
        rows.sort();
        rows
    }

    /// Removes all writes.
    pub(crate) fn clear(&mut self) {
        self.writes.clear();
        self.bytes = 0;
        self.has_written = false;
        self.replaced.clear();
    }
}

fn size(key: &[u8], after: &After) -> usize {
    key.len() + after.as_ref().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_has_written_can_be_taken_back() {
        let put = |overlay: &mut Overlay, key: &str, value: &str, writer| {
            overlay.set(key.as_bytes(), Some(value.into()), writer);
        };
        let shown = |overlay: &mut Overlay| {
            let rows = overlay.rows(true).into_iter();
            rows.map(|(key, after, writer)| (key.to_vec(), after.clone(), writer)).collect::<Vec<_>>()
        };
        let mut overlay = Overlay::default();
        overlay.begin();
        put(&mut overlay, "a", "1", 0);
        put(&mut overlay, "b", "1", 0);
        let (before, bytes) = (shown(&mut overlay), overlay.bytes());
        overlay.begin();
        put(&mut overlay, "a", "two", 1);
        put(&mut overlay, "a", "three", 1);
        overlay.set(b"b", None, 1);
        put(&mut overlay, "c", "1", 1);
        overlay.take_back();
        assert_eq!((shown(&mut overlay), overlay.bytes()), (before, bytes));
        // What is committed in the middle of a command stays written.
        overlay.begin();
        put(&mut overlay, "a", "two", 2);
        overlay.clear();
        put(&mut overlay, "d", "1", 2);
        overlay.take_back();
        assert!(overlay.is_empty() && overlay.bytes() == 0);
    }
}
