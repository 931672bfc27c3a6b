//! Errors of ops while members fail: they are counted and do not end the phase, and what a failed write may have done is kept in
//! mind.

use crate::engine::abi::*;
use crate::engine::{Arena, Executed, Status};
use crate::runner::draw::{Draw, Item};
use crate::runner::judge::{Judge, roll_back};
use crate::runner::phase_data::Shared;

/// Errors of ops with the same text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpError {
    /// The kind of op.
    pub op: &'static str,
    /// The driver's text.
    pub text: String,
    /// Their number.
    pub count: u64,
    /// The tick at which the first one had ended.
    pub first: u64,
    /// The tick at which the last one had ended.
    pub last: u64,
}

/// The number of different errors that a thread keeps; further ones count as one kind.
const ERROR_KINDS: usize = 64;

impl Judge {
    /// A batch with an error in a phase with faults: the error is counted, and what the op may have done is kept in mind.
    #[cold]
    pub(crate) fn disturbed(
        &mut self,
        shared: &Shared<'_>,
        draw: &mut Draw,
        arena: &Arena,
        executed: &Executed,
        counts: bool,
    ) {
        let is_done = |at: usize| at < executed.done && Status::of(arena.op(at).status).is_answer();
        let mut first = 0;
        while let Some(unit) = draw.items.get(first).copied() {
            let end = first + usize::from(unit.unit_ops).max(1);
            if counts && (first..end).all(is_done) {
                let ticks = arena.op(end - 1).end.saturating_sub(arena.op(first).start);
                self.tally(shared, &unit, ticks);
            }
            for at in first..end {
                match draw.items[at] {
                    item if is_done(at) => {
                        self.op(shared, arena, item, at);
                    }
                    item => self.doubt(shared, arena, item, at, executed.done),
                }
            }
            first = end;
        }
        draw.acknowledge_inserts(0);
        let Some((at, text)) = &executed.error else { return };
        let status = if *at < arena.shape().ops { arena.op(*at).status } else { KV_ERROR };
        // Other failures have nothing to do with members, such as a value that is too large.
        if executed.is_breach || !matches!(status, KV_ERROR | KV_CONFLICT | KV_ABORTED) {
            return self.fail(shared, arena, draw, *at, text);
        }
        let op = draw.items.get(*at).map_or("op", |item| item.kind.name());
        self.count_error(op, text, executed.span.left);
    }

    /// Handles an op that failed or was not run: a write that was sent may take effect at any time.
    fn doubt(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize, done: usize) {
        let op = arena.op(at);
        if op.kind != KV_PUT {
            return;
        }
        if at >= done && op.status == KV_NOT_RUN {
            return roll_back(shared, item.index);
        }
        self.doubtful_writes += 1;
        // A value too small to contain its version has the same bytes in every version.
        let version = shared.values.check(item.index, arena.value(at)).ok().flatten();
        if let (Some(versions), Some(version)) = (shared.versions, version) {
            versions.doubt(item.index, version as u32);
        }
    }

    fn count_error(&mut self, op: &'static str, text: &str, now: u64) {
        let of = |op, text: &str| OpError { op, text: text.to_string(), count: 1, first: now, last: now };
        let known = self.errors.iter().position(|known| known.op == op && known.text == text);
        match known.or_else(|| (self.errors.len() > ERROR_KINDS).then_some(ERROR_KINDS)) {
            Some(place) => {
                let known = &mut self.errors[place];
                (known.count, known.last) = (known.count + 1, now);
            }
            None if self.errors.len() < ERROR_KINDS => self.errors.push(of(op, text)),
            None => self.errors.push(of("any", "other errors")),
        }
    }
}
