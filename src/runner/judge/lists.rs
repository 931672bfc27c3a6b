//! Judges pushes and pops: each element is returned once, in the order of its number, and pops of empty lists find nothing.

use super::Judge;
use crate::engine::abi::*;
use crate::engine::{Arena, Executed, Status};
use crate::runner::draw::{Draw, Item};
use crate::runner::lists::Lists;
use crate::runner::shared::Shared;
use crate::workload::OpKind;

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
        if let KV_PUT | KV_PUSH = op.kind {
            if self.is_done(item, op.status, "push") {
                self.written_bytes += u64::from(op.value_length);
            }
            return;
        }
        let is_delete = op.kind == KV_DELETE;
        match Status::of(op.status) {
            Status::Ok if is_delete => {}
            Status::NotFound if is_delete => self.faults.add(|| {
                format!("pop: element {number} of list {list} was read, but its delete did not find it")
            }),
            Status::Ok if !item.is_expected_miss() => {
                let value = arena.delivered(at);
                self.read_bytes += value.len() as u64;
                self.values_checked += 1;
                let fault = lists.fault(shared.values, item.index, value);
                fault.into_iter().for_each(|text| self.faults.add(|| format!("pop: {text}")));
            }
            Status::NotFound if item.is_expected_miss() => self.count_miss(OpKind::Pop, false),
            Status::NotFound => self.faults.add(|| {
                format!("pop: list {list} is reported empty, but element {number} was pushed and not popped")
            }),
            Status::Ok => {
                self.faults.add(|| format!("pop: list {list} is empty, but an element was returned"))
            }
            Status::Short => {
                let needed = op.needed;
                self.faults
                    .add(|| format!("pop: list {list}: a value of {needed} bytes, more than any pushed"));
            }
            // Not answers of a pop: the call has an error.
            Status::Exists | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {}
            Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {}
        }
    }
}

/// Handles an op that was not run. An emulated pop counts as run if its delete was run.
#[cold]
fn take_back(lists: &Lists, item: Item, kind: u8) {
    let (list, _) = lists.place(item.index);
    match kind {
        KV_PUT | KV_PUSH => lists.take_back_push(list),
        KV_POP | KV_DELETE if !item.is_expected_miss() => lists.take_back_pop(list),
        _ => {}
    }
}
