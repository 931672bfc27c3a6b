//! Fills in rows with their index rows: one put where the engine keeps its indexes itself, else a group.

use super::{Draw, INDEX_ROW, Item, NEW, join_flag, set};
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::runner::shared::Shared;
use crate::runner::spaces::INDEXED_VERSION;
use crate::workload::OpKind;

impl Draw {
    /// New rows, as many as `ops` ops write: in one group, which is a transaction where the core has to tie a row to its
    /// index rows and the engine can.
    pub(super) fn add_indexed(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        for left in (0..ops / self.row_ops).rev() {
            let Some(item) = self.next_new(shared) else { return self.end_group(arena) };
            self.add_row(shared, arena, item, left * self.row_ops);
            for number in 1..self.row_ops {
                self.add_index_row(shared, arena, item, number as u32, left * self.row_ops);
            }
        }
    }

    /// The row itself; `behind`: ops of its group that follow its index rows.
    fn add_row(&mut self, shared: &Shared<'_>, arena: &mut Arena, item: u64, behind: usize) {
        let slot = self.items.len();
        let state = shared.versions.and_then(|versions| versions.begin(item, false));
        let key = shared.spaces.write_key(shared.keys, item, arena.key_mut(slot));
        let value = shared.values.write(item, INDEXED_VERSION, arena.value_mut(slot));
        self.value.clear();
        self.value.extend_from_slice(&arena.value_mut(slot)[..value]);
        let flags = self.tie | tie(shared) | join_flag(behind + self.row_ops - 1);
        set(arena.op_mut(slot), KV_PUT, flags, key, value);
        self.items.push(Item::new(OpKind::InsertIndexed, item).with(state).flagged(NEW));
    }

    /// Its row in an index; the value is at hand.
    fn add_index_row(
        &mut self,
        shared: &Shared<'_>,
        arena: &mut Arena,
        item: u64,
        number: u32,
        behind: usize,
    ) {
        let slot = self.items.len();
        let (_, length, space) =
            shared.spaces.write_index_key(shared.keys, (item, &self.value), number, arena.key_mut(slot));
        let content = shared.spaces.index_value(number, &self.value);
        arena.value_mut(slot)[..content.len()].copy_from_slice(content);
        let flags = self.tie | tie(shared) | join_flag(behind + self.row_ops - 1 - number as usize);
        set(arena.op_mut(slot), KV_PUT, flags, (length, space), content.len());
        self.items.push(Item::new(OpKind::InsertIndexed, item).flagged(INDEX_ROW));
    }
}

fn tie(shared: &Shared<'_>) -> u16 {
    if shared.spaces.is_grouped() { KV_ATOMIC } else { 0 }
}
