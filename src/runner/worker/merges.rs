//! Merges by the core: reads the counters of a unit, adds to them and writes them back.

use super::Worker;
use crate::engine::abi::*;
use crate::engine::{Executed, Status};
use crate::results::Cause;

impl Worker<'_, '_> {
    /// Runs the merges of the batch, which are one unit: separate gets, then puts that are joined like the merges. The
    /// unit's time is the sum of both calls. No other thread writes these counters, so no update is lost.
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
        // Failed merges count as issued too, or the phase would not end.
        if self.counts {
            self.issued += count as u64;
        }
        let arena = self.session.arena();
        let bytes = |at| arena.key(at).len() as u64 - shared.mark_bytes + 8;
        self.judge.written_bytes += (0..merged).map(bytes).sum::<u64>();
        self.heartbeat(merged);
    }

    /// Executes the first `count` ops; returns the result and the ticks.
    fn timed(&mut self, count: usize) -> (Executed, u64) {
        let executed = self.session.execute(0, count);
        self.pass(executed.span.left);
        let ticks = self.call_ticks(&executed);
        (executed, ticks)
    }

    /// Computes the values to put from those that were read: each plus one, and plus one again if a unit has a counter
    /// twice. Returns false if a value is not a counter, or was not read.
    fn add_up(&mut self, count: usize) -> bool {
        self.sums.clear();
        self.sums.extend(self.draw.items[..count].iter().enumerate().map(|(at, item)| (item.index, at)));
        self.sums.sort_unstable();
        let mut last = (u64::MAX, 0);
        for &(index, at) in &self.sums {
            let arena = self.session.arena();
            let stored = match Status::of(arena.op(at).status) {
                // An engine that stores nothing has no value to add to.
                Status::Ok if !self.shared.checked => Some(0),
                Status::Ok => arena.delivered(at).try_into().ok().map(u64::from_le_bytes),
                Status::NotFound => Some(0),
                Status::Short => None,
                // Not answers of a get: the call has an error.
                Status::Exists | Status::Conflict | Status::Aborted | Status::Full => return false,
                Status::TooLarge | Status::Unsupported | Status::NotRun => return false,
                Status::Error | Status::Unknown(_) => return false,
            };
            let Some(stored) = stored else {
                self.judge.faults.add(|| format!("counter {index}: its value does not have 8 bytes"));
                return false;
            };
            let sum: u64 = if last.0 == index { last.1 } else { stored };
            last = (index, sum.wrapping_add(1));
            arena.value_mut(at)[..8].copy_from_slice(&last.1.to_le_bytes());
        }
        true
    }
}
