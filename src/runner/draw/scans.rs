//! Fills in scans: where they start, and in a keyspace that is told by marks also where they end.

use super::{Draw, Item, set};
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::runner::shared::Shared;
use crate::runner::spaces::indexed_value;
use crate::workload::{OpKind, Phase, Scan};

/// The rows that the next call asks for, of `left`.
pub fn rows_of_call(scan: &Scan, left: u32) -> u32 {
    if scan.rows_per_call == 0 { left } else { left.min(scan.rows_per_call) }
}

/// Whether the iterator of a scan stays open from call to call.
pub fn holds_scans(phase: &Phase, capabilities: u64) -> bool {
    phase.scan.rows_per_call > 0 && capabilities & KV_CAN_HOLD != 0
}

impl Draw {
    pub(super) fn add_scan(&mut self, shared: &Shared<'_>, arena: &mut Arena) {
        let slot = self.items.len();
        let scan = self.phase.scan;
        let item = self.drawn();
        let mut flags = if scan.reverse { KV_REVERSE } else { 0 };
        let (mut value, is_hash) = (0, shared.spaces.are_hashes());
        let (mut key, space) = match scan.index {
            0 => shared.spaces.write_key(shared.keys, item, arena.key_mut(slot)),
            number => self.write_index_start(shared, arena, item, number),
        };
        if is_hash && shared.capabilities & KV_ORDERED == 0 {
            flags |= KV_PREFIX;
            (key, value) = self.whole_hash(shared, arena, item);
        } else if scan.prefix {
            flags |= KV_PREFIX;
            value = shared.spaces.mark_len() + shared.keys.prefix_len();
            let prefix: Vec<u8> = arena.key_mut(slot)[..value].to_vec();
            arena.value_mut(slot)[..value].copy_from_slice(&prefix);
            // A prefix scan is of the whole group: it starts at the group's end.
            key = 0;
        } else {
            // To the end means a whole pass: from one end of the keyspace to the other.
            let is_whole = scan.rows == 0 || is_hash;
            if is_whole {
                key = 0;
            }
            if shared.spaces.mark_len() > 0 {
                (key, value) = self.bound(shared, arena, item, key);
            }
        }
        if holds_scans(&self.phase, shared.capabilities) {
            flags |= KV_HOLD;
        }
        set(arena.op_mut(slot), KV_SCAN, flags, (key, space), value);
        let rows = match (scan.rows, scan.uniform_rows) {
            _ if is_hash => u32::MAX,
            (0, _) => u32::MAX,
            (rows, true) => 1 + self.choices.below(u64::from(rows)) as u32,
            (rows, false) => rows,
        };
        let op = arena.op_mut(slot);
        (op.limit, op.user) = (rows_of_call(&scan, rows), u64::from(rows));
        self.items.push(Item::new(OpKind::Scan, item));
    }

    /// The start of a scan by an index: the bytes that the item's row is found under. Downward the whole key of its
    /// index row, else the scan would begin behind it.
    fn write_index_start(
        &mut self,
        shared: &Shared<'_>,
        arena: &mut Arena,
        item: u64,
        number: u32,
    ) -> (usize, u16) {
        let slot = self.items.len();
        let value = indexed_value(shared.values, item, &mut self.value);
        let (front, length, space) =
            shared.spaces.write_index_key(shared.keys, (item, value), number, arena.key_mut(slot));
        (if self.phase.scan.reverse { length } else { front }, space)
    }

    /// A hash of an engine without order: all rows that have its name in front. A collection of the engine's own must be
    /// named by the key too. The bytes of start and prefix.
    fn whole_hash(&self, shared: &Shared<'_>, arena: &mut Arena, item: u64) -> (usize, usize) {
        let slot = self.items.len();
        let space = shared.spaces.of(item);
        let prefix = shared.spaces.write_mark(space, arena.value_mut(slot));
        (usize::from(shared.spaces.split()), prefix)
    }

    /// Keeps a scan within its keyspace where that is a mark: no row has the bare mark or the next one as its key, so
    /// they serve as start and bound. The bytes of both.
    fn bound(&self, shared: &Shared<'_>, arena: &mut Arena, item: u64, key: usize) -> (usize, usize) {
        let slot = self.items.len();
        let space = match self.phase.scan.index {
            0 => shared.spaces.of(item),
            number => shared.spaces.index_space(item, number),
        };
        let (start, end) = if self.phase.scan.reverse { (space + 1, space) } else { (space, space + 1) };
        let value = shared.spaces.write_mark(end, arena.value_mut(slot));
        if key > 0 {
            return (key, value);
        }
        if shared.spaces.split() > 0 && self.phase.scan.reverse {
            // The start must name the collection: from above all of its fields.
            let field = shared.spaces.write_mark(space, arena.key_mut(slot));
            let end = shared.keys.max_len() + shared.spaces.extra_len();
            arena.key_mut(slot)[field..end].fill(0xff);
            return (end, value);
        }
        (shared.spaces.write_mark(start, arena.key_mut(slot)), value)
    }
}
