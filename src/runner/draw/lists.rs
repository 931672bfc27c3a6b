//! Fills in pushes and pops of lists: native, or emulated by a key for each element.

use super::{Draw, Item, join_flag, set};
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::runner::lists::{ELEMENT_VERSION, Lists, write_key, write_name};
use crate::runner::shared::Shared;
use crate::workload::OpKind;

impl Draw {
    pub(super) fn add_pushes(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        let Some(lists) = shared.lists else { return };
        for left in (0..ops).rev() {
            let (list, slot) = (self.own_list(shared, lists), self.items.len());
            let number = lists.push(list);
            let element = lists.element(list, number);
            let key = arena.key_mut(slot);
            let (kind, key) = match shared.capabilities & KV_LISTS {
                0 => (KV_PUT, write_key(list, number, key)),
                _ => (KV_PUSH, write_name(list, key)),
            };
            let value = shared.values.write(element, ELEMENT_VERSION, arena.value_mut(slot));
            set(arena.op_mut(slot), kind, join_flag(left), (key, 0), value);
            self.items.push(Item::new(OpKind::Push, element));
        }
    }

    pub(super) fn add_pop(&mut self, shared: &Shared<'_>, arena: &mut Arena) {
        let Some(lists) = shared.lists else { return };
        let (list, slot) = (self.own_list(shared, lists), self.items.len());
        let number = lists.pop(list);
        let next = number.unwrap_or_else(|| lists.elements(list).start);
        let item = Item::new(OpKind::Pop, lists.element(list, next));
        let item = if number.is_none() { item.expecting_miss() } else { item };
        self.items.push(item);
        if shared.capabilities & KV_LISTS != 0 {
            let key = write_name(list, arena.key_mut(slot));
            set(arena.op_mut(slot), KV_POP, 0, (key, 0), 0);
            return;
        }
        let key = write_key(list, next, arena.key_mut(slot));
        set(arena.op_mut(slot), KV_GET, 0, (key, 0), 0);
        // An empty list has nothing to delete.
        if number.is_some() {
            write_key(list, next, arena.key_mut(slot + 1));
            set(arena.op_mut(slot + 1), KV_DELETE, 0, (key, 0), 0);
            self.items.push(item);
        }
    }

    #[inline(always)]
    fn own_list(&mut self, shared: &Shared<'_>, lists: &Lists) -> u64 {
        let item = self.own(shared);
        lists.of(item, self.writer, shared.writers)
    }
}
