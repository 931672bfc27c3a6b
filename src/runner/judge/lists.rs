//! Judges pushes and pops: each element comes once, in the order of their numbers, and an empty list says so.

use super::Judge;
use crate::engine::abi::*;
use crate::engine::{Arena, Executed};
use crate::runner::draw::{Draw, Item};
use crate::runner::lists::Lists;
use crate::runner::shared::Shared;
use crate::runner::unit::Kind;

impl Judge {
    /// A batch of pushes and pops.
    pub(super) fn lists(
        &mut self,
        (shared, lists): (&Shared<'_>, &Lists),
        draw: &Draw,
        arena: &Arena,
        executed: &Executed,
        counts: bool,
    ) {
        let mut at = 0;
        while at < draw.items.len() {
            let unit = draw.items[at];
            let end = at + usize::from(unit.unit_ops);
            if counts && end <= executed.done {
                let ticks = arena.op(end - 1).end.saturating_sub(arena.op(at).start);
                self.tally(shared, &unit, ticks);
            }
            for at in at..end {
                let (item, op) = (draw.items[at], arena.op(at));
                if at >= executed.done {
                    take_back(lists, item, op.kind);
                    continue;
                }
                if let Some(tally) = &mut self.interval[item.kind as usize] {
                    tally.retries += u64::from(op.retries);
                }
                if shared.checked {
                    self.list_op((shared, lists), arena, item, at);
                }
            }
            at = end;
        }
        if let Some((at, text)) = &executed.error {
            self.fail(shared, arena, draw, *at, text);
        }
    }

    fn list_op(&mut self, (shared, lists): (&Shared<'_>, &Lists), arena: &Arena, item: Item, at: usize) {
        let op = arena.op(at);
        let (list, number) = lists.place(item.index);
        match (op.kind, op.status) {
            (KV_PUT | KV_PUSH, _) => {
                if self.is_done(shared, item, op.status, "push") {
                    self.written_bytes += u64::from(op.value_length);
                }
            }
            (KV_DELETE, KV_NOT_FOUND) => self.faults.add(|| {
                format!("pop: element {number} of list {list} was read, and is not there to be deleted")
            }),
            (KV_DELETE, _) => drop(self.is_done(shared, item, op.status, "pop")),
            (_, KV_OK) if !item.is_in_vain() => {
                let value = arena.delivered(at);
                self.read_bytes += value.len() as u64;
                self.values_checked += 1;
                let fault = lists.fault(shared.values, item.index, value);
                fault.into_iter().for_each(|text| self.faults.add(|| format!("pop: {text}")));
            }
            (_, KV_NOT_FOUND) if item.is_in_vain() => self.count_miss(Kind::Pop),
            (_, KV_NOT_FOUND) => self.faults.add(|| {
                format!("pop: list {list} says that it is empty, element {number} was pushed and not popped")
            }),
            (_, KV_OK) => self.faults.add(|| format!("pop: list {list} is empty, and an element came")),
            (_, KV_SHORT) => {
                let needed = op.needed;
                self.faults
                    .add(|| format!("pop: list {list}: a value of {needed} bytes, more than any pushed"));
            }
            (_, status) => drop(self.is_done(shared, item, status, "pop")),
        }
    }
}

/// An op that was not run. An emulated pop was one if its delete was.
#[cold]
fn take_back(lists: &Lists, item: Item, kind: u8) {
    let (list, _) = lists.place(item.index);
    match kind {
        KV_PUT | KV_PUSH => lists.take_back_push(list),
        KV_POP | KV_DELETE if !item.is_in_vain() => lists.take_back_pop(list),
        _ => {}
    }
}
