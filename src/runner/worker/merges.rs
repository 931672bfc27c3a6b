//! Merges that the core makes itself: the counters of a unit are got, added up and put back.

use super::Worker;
use crate::engine::abi::*;
use crate::engine::{Executed, Status};
use crate::results::Cause;

impl Worker<'_, '_> {
    /// The merges of the batch, which are one unit: gets, each alone, then puts, joined as the merges were. The unit's
    /// time is the sum of both calls. Nobody else writes these counters, so that nothing is lost in between.
    pub(super) fn merge_by_get_and_put(&mut self) {
        let shared = self.shared;
        let unit = self.draw.items[0];
        let count = self.draw.items.len();
        let arena = self.session.arena();
        let tie = arena.op(0).flags & KV_ATOMIC;
        for at in 0..count {
            let op = arena.op_mut(at);
            (op.kind, op.flags, op.value_length) = (KV_GET, 0, 0);
        }
        let (got, mut ticks) = self.timed(count);
        let mut merged = 0;
        let mut error = got.error;
        if error.is_none() && got.done == count && self.add_up(count) {
            for at in 0..count {
                let op = self.session.arena().op_mut(at);
                let join = if at + 1 < count { KV_JOIN } else { 0 };
                (op.kind, op.flags, op.value_length) = (KV_PUT, tie | join, 8);
            }
            let (put, of_puts) = self.timed(count);
            ticks += of_puts;
            let arena = self.session.arena();
            merged = (0..put.done).filter(|&at| arena.op(at).status == KV_OK).count();
            if tie != 0 {
                self.judge.transaction(arena, unit, (0, count), put.done);
            }
            error = put.error;
        }
        if let Some((at, text)) = error {
            let index = self.draw.items.get(at).map_or(0, |item| item.index);
            let phase = &shared.phase.name;
            shared.fail(Cause::EngineError, format!("phase {phase}: merge of key {index}: {text}"));
        }
        self.judge.merges += merged as u64;
        if merged == count && self.counts {
            self.judge.tally(shared, &unit, ticks);
        }
        // What was in vain was issued too, or the phase would not end.
        if self.counts {
            self.issued += count as u64;
        }
        let arena = self.session.arena();
        let bytes = |at| arena.key(at).len() as u64 - shared.mark_bytes + 8;
        self.judge.written_bytes += (0..merged).map(bytes).sum::<u64>();
        self.heartbeat(merged);
    }

    /// Executes the first `count` ops; what came of it, and its ticks.
    fn timed(&mut self, count: usize) -> (Executed, u64) {
        let executed = self.session.execute(0, count);
        self.pass(executed.span.left);
        let ticks = self.call_ticks(&executed);
        (executed, ticks)
    }

    /// Makes the values to put of those that were got: one more each, and one more again where a unit has a counter
    /// twice. False: one of them is no counter, or was not got.
    fn add_up(&mut self, count: usize) -> bool {
        self.sums.clear();
        self.sums.extend(self.draw.items[..count].iter().enumerate().map(|(at, item)| (item.index, at)));
        self.sums.sort_unstable();
        let mut last = (u64::MAX, 0);
        for &(index, at) in &self.sums {
            let arena = self.session.arena();
            let stored = match Status::of(arena.op(at).status) {
                // An engine that keeps nothing has none to add to.
                Status::Ok if !self.shared.checked => Some(0),
                Status::Ok => arena.delivered(at).try_into().ok().map(u64::from_le_bytes),
                Status::NotFound => Some(0),
                Status::Short => None,
                // No answers of a get: the call's error says so.
                Status::Exists | Status::Conflict | Status::Aborted | Status::Full => return false,
                Status::TooLarge | Status::Unsupported | Status::NotRun => return false,
                Status::Error | Status::Unknown(_) => return false,
            };
            let Some(stored) = stored else {
                self.judge.faults.add(|| format!("counter {index}: its value has not 8 bytes"));
                return false;
            };
            let sum: u64 = if last.0 == index { last.1 } else { stored };
            last = (index, sum.wrapping_add(1));
            arena.value_mut(at)[..8].copy_from_slice(&last.1.to_le_bytes());
        }
        true
    }
}
