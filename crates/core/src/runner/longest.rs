//! The longest ops of a thread, in an array of fixed size: what the hot loop does for them is one comparison per call.

use super::draw::Item;
use crate::engine::{Arena, Executed};
use crate::workload::OpKind;

/// The number of ops that are kept.
const KEPT: usize = 8;

/// An op that took long, or the begin or end of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LongOp {
    /// The kind of op.
    pub kind: &'static str,
    /// Its first tick.
    pub start: u64,
    /// Its last tick.
    pub end: u64,
    /// Its service time in ticks: less than from start to end if it took several calls.
    pub ticks: u64,
}

/// The longest ops so far.
#[derive(Debug)]
pub(super) struct Longest {
    ops: [LongOp; KEPT],
    /// What is not longer is not kept, ticks.
    least: u64,
}

impl Longest {
    /// None yet; ops of `least` ticks or fewer are never kept.
    pub(super) fn new(least: u64) -> Longest {
        Longest { ops: [LongOp::default(); KEPT], least }
    }

    /// Whether something that took this many ticks may have to be kept.
    #[inline(always)]
    pub(super) fn has_room(&self, ticks: u64) -> bool {
        ticks > self.least
    }

    /// Keeps an op in the place of the shortest, if it is longer.
    #[cold]
    pub(super) fn keep(&mut self, op: LongOp) {
        if !self.has_room(op.ticks) {
            return;
        }
        let Some(shortest) = self.ops.iter_mut().min_by_key(|kept| kept.ticks) else { return };
        *shortest = op;
        let shortest = self.ops.iter().map(|kept| kept.ticks).min().unwrap_or(0);
        self.least = self.least.max(shortest);
    }

    /// Keeps the long ops of a call, except scans, which may take several calls.
    #[cold]
    pub(super) fn keep_call(&mut self, items: &[Item], arena: &Arena, executed: &Executed) {
        let mut at = 0;
        while let Some(unit) = items.get(at) {
            let end = at + usize::from(unit.unit_ops);
            if end > executed.done {
                break;
            }
            let (start, last) = (arena.op(at).start, arena.op(end - 1).end);
            if unit.kind != OpKind::Scan {
                let ticks = last.saturating_sub(start);
                self.keep(LongOp { kind: unit.kind.name(), start, end: last, ticks });
            }
            at = end;
        }
    }

    /// The ops that were kept.
    pub(super) fn ops(&self) -> impl Iterator<Item = LongOp> + '_ {
        self.ops.iter().copied().filter(|op| op.ticks > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(ticks: u64) -> LongOp {
        LongOp { kind: "put", start: 1_000, end: 1_000 + ticks, ticks }
    }

    #[test]
    fn the_longest_are_kept_in_any_order() {
        let mut longest = Longest::new(10);
        assert!(!longest.has_room(10) && longest.has_room(11));
        // 1 to 1008 in an order that is neither ascending nor descending: 1009 is a prime.
        (1..=1008).map(|step| step * 7 % 1009).for_each(|ticks| longest.keep(op(ticks)));
        let mut kept: Vec<u64> = longest.ops().map(|op| op.ticks).collect();
        kept.sort_unstable();
        assert_eq!(kept, (1001..=1008).collect::<Vec<u64>>());
        assert!(!longest.has_room(1001) && longest.has_room(1002));
    }

    #[test]
    fn what_is_short_is_never_kept() {
        let mut longest = Longest::new(10);
        [3, 11, 10, 0].into_iter().for_each(|ticks| longest.keep(op(ticks)));
        assert_eq!(longest.ops().collect::<Vec<_>>(), [op(11)]);
    }
}
