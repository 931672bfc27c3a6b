//! Checks the stamps of a call against the core's own two clock reads around it (rules 6 and 7 of driver.h): no op's
//! time is outside the call, none is counted twice, and no time between two ops is missing.

use super::Arena;
use super::abi::*;
use super::answers::{SLACK_TICKS, kind_name};

/// When a call was entered and left, by the core's own clock reads immediately around it, ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Before the call.
    pub entered: u64,
    /// After the call.
    pub left: u64,
}

impl Span {
    /// Its duration.
    #[inline(always)]
    pub fn ticks(self) -> u64 {
        self.left.saturating_sub(self.entered)
    }

    /// Whether `waited` ticks can have passed in addition to those of the ops.
    fn has_room(self, in_ops: u64, waited: u64) -> bool {
        waited <= self.ticks().saturating_sub(in_ops).saturating_add(SLACK_TICKS)
    }

    fn holds(self, tick: u64) -> bool {
        tick.saturating_add(SLACK_TICKS) >= self.entered && tick <= self.left.saturating_add(SLACK_TICKS)
    }
}

impl Arena {
    /// Whether the stamps of a call need no closer check: from the batch's start to the end of its last op, each op
    /// begins where the previous one ended, and everything is within the call; no op had to wait.
    #[inline(always)]
    pub(super) fn are_stamps_plain(&self, first: usize, count: usize, span: Span) -> bool {
        let mut clock = self.batch().start;
        let mut odd = 0;
        for op in &self.ops()[first..first + count] {
            odd |= (op.start ^ clock) | (op.end.wrapping_sub(op.start) >> 63);
            odd |= u64::from(op.flags & KV_JOIN) | op.due;
            clock = op.end;
        }
        let (is_chain, end) = if odd == 0 { (true, clock) } else { self.chain_of_groups(first, count) };
        let start = self.batch().start;
        is_chain && self.batch().waited == 0 && span.holds(start) && span.holds(end)
    }

    /// The same for a call with groups, whose ops share stamps: whether the groups follow each other, and where they
    /// end.
    #[inline(never)]
    fn chain_of_groups(&self, first: usize, count: usize) -> (bool, u64) {
        let (mut clock, mut group_end, mut tied) = (self.batch().start, 0, 0);
        let mut odd = 0;
        for op in &self.ops()[first..first + count] {
            odd |= (op.start ^ clock) | ((op.end ^ group_end) & tied) | (op.end.wrapping_sub(op.start) >> 63);
            odd |= op.due;
            // KV_JOIN is the lowest bit: all ones if the next op is in the same group.
            tied = u64::from(op.flags & KV_JOIN).wrapping_neg();
            group_end = op.end;
            clock = op.end ^ ((op.end ^ op.start) & tied);
        }
        (odd == 0, group_end)
    }

    /// The first rule that the stamps of the `done` ops of a call break, with the op where they do.
    #[cold]
    pub(super) fn stamp_breach(&self, first: usize, done: usize, span: Span) -> Option<(usize, String)> {
        let batch = self.batch();
        let (mut clock, mut in_ops, mut has_due) = (batch.start, 0_u64, false);
        if done > 0 && !span.holds(batch.start) {
            return Some((first, format!("rule 7: the batch's start is {}", outside(batch.start, span))));
        }
        let mut at = first;
        while at < first + done {
            let op = self.op(at);
            let kind = kind_name(op.kind);
            if let Some(text) = op_breach(op, clock, span) {
                return Some((at, format!("rule 7: a {kind} {text}")));
            }
            let mut last = at;
            while self.op(last).flags & KV_JOIN != 0 && last + 1 < first + done {
                last += 1;
                if (self.op(last).start, self.op(last).end) != (op.start, op.end) {
                    return Some((
                        last,
                        "rule 6: an op of a group has different stamps than the group's first op".into(),
                    ));
                }
            }
            has_due |= op.due != 0;
            in_ops += op.end - op.start;
            clock = op.end;
            at = last + 1;
        }
        let waited = batch.waited;
        let text = if waited == 0 {
            return None;
        } else if !has_due {
            format!("rule 7: `waited` is {waited} ticks, but all ops of the call are due immediately")
        } else if !span.has_room(in_ops, waited) {
            let ticks = span.ticks();
            format!("rule 7: `waited` is {waited} ticks, in a call of {ticks} ticks with {in_ops} in its ops")
        } else {
            return None;
        };
        Some((first, text))
    }
}

/// How far a tick is outside a call.
fn outside(tick: u64, span: Span) -> String {
    match span.entered.checked_sub(tick) {
        Some(before) => format!("{before} ticks before its call"),
        None => format!("{} ticks after its call", tick.saturating_sub(span.left)),
    }
}

/// What is wrong with the stamps of an op, if the previous one ended at `clock`.
fn op_breach(op: &kv_op, clock: u64, span: Span) -> Option<String> {
    let waits = op.due > clock;
    if op.start < clock {
        Some(format!("starts {} ticks before the previous op ended", clock - op.start))
    } else if op.start > clock && !waits {
        Some(format!("starts {} ticks after the previous op ended, although it was due", op.start - clock))
    } else if waits && op.start < op.due {
        Some(format!("starts {} ticks before it is due", op.due - op.start))
    } else if op.end < op.start {
        Some(format!("ends {} ticks before its start", op.start - op.end))
    } else if !span.holds(op.end) {
        Some(format!("ends {}", outside(op.end, span)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Shape;
    use std::sync::atomic::AtomicU32;

    static NEVER: AtomicU32 = AtomicU32::new(0);
    const CALL: Span = Span { entered: 1_000_000, left: 1_001_000 };

    /// Four ops of 200 ticks each, starting 100 ticks after the call's begin, and the reported fault after a change.
    fn said(change: fn(&mut Arena)) -> Option<String> {
        let mut arena = Arena::new(Shape { ops: 4, key_bytes: 8, value_bytes: 8, out_bytes: 8 }, 0, &NEVER);
        arena.prepare_batch(0, 4);
        arena.batch_mut().start = 1_000_100;
        for at in 0..4 {
            let op = arena.op_mut(at);
            (op.kind, op.start) = (KV_GET, 1_000_100 + 200 * at as u64);
            op.end = op.start + 200;
        }
        change(&mut arena);
        let text = arena.stamp_breach(0, 4, CALL).map(|(_, text)| text);
        if text.is_some() {
            assert!(!arena.are_stamps_plain(0, 4, CALL), "{text:?}");
        }
        text
    }

    #[test]
    fn stamps_that_follow_each_other_within_the_call_are_fine() {
        assert_eq!(said(|_| ()), None);
        let tie = |arena: &mut Arena| {
            for at in 1..4 {
                (arena.op_mut(at).start, arena.op_mut(at).end) = (1_000_300, 1_000_900);
                arena.op_mut(at).flags = if at < 3 { KV_JOIN } else { 0 };
            }
            assert!(arena.are_stamps_plain(0, 4, CALL));
        };
        assert_eq!(said(tie), None);
        // Waited until an op was due, and reported so.
        let wait = |arena: &mut Arena| {
            arena.op_mut(3).due = 1_000_750;
            (arena.op_mut(3).start, arena.batch_mut().waited) = (1_000_760, 60);
        };
        assert_eq!(said(wait), None);
        // Two processors' counters differ slightly.
        assert_eq!(said(|arena| arena.op_mut(3).end = 1_001_900), None);
    }

    #[test]
    fn stamps_that_cannot_be_true_are_named() {
        type Change = fn(&mut Arena);
        let lies: &[(Change, &str)] = &[
            (|arena| arena.batch_mut().start = 900_000, "the batch's start is 100000 ticks before its call"),
            (|arena| arena.batch_mut().start = 1_000_000, "starts 100 ticks after the previous op ended"),
            (|arena| arena.op_mut(2).start = 1_000_400, "starts 100 ticks before the previous op ended"),
            (|arena| arena.op_mut(2).start = 1_000_600, "starts 100 ticks after the previous op ended"),
            (|arena| arena.op_mut(1).end = 1_000_200, "ends 100 ticks before its start"),
            (|arena| arena.op_mut(3).end = 1_101_000, "ends 100000 ticks after its call"),
            (|arena| arena.op_mut(1).flags = KV_JOIN, "rule 6: an op of a group has different stamps"),
            (|arena| arena.op_mut(1).due = 1_000_350, "starts 50 ticks before it is due"),
            (|arena| arena.batch_mut().waited = 1, "rule 7: `waited` is 1 ticks"),
        ];
        for &(change, wanted) in lies {
            let text = said(change).unwrap_or_default();
            assert!(text.contains(wanted), "no `{wanted}` in `{text}`");
        }
        let late = |arena: &mut Arena| {
            arena.op_mut(3).due = 1_000_750;
            (arena.op_mut(3).start, arena.batch_mut().waited) = (1_000_760, 5_000);
        };
        let text = said(late).unwrap_or_default();
        assert!(
            text.contains("`waited` is 5000 ticks, in a call of 1000 ticks with 740 in its ops"),
            "{text}"
        );
    }
}
