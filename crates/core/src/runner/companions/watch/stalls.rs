//! The longest stalls of a phase, with what was seen of their threads.

use super::gaps::Seen;
use crate::runner::longest::LongOp;
use crate::runner::phase_data::Shared;
use crate::runner::worker::Outcome;
use kvdyno_measure::Stall;

/// The number of stalls in a record.
const STALLS: usize = 10;

/// The longest stalls, the longest first. A stall of another thread that is at least half within a longer one is part of that.
pub(super) fn longest(shared: &Shared<'_>, outcomes: &[Outcome], seen: &[Seen]) -> Vec<Stall> {
    let of_thread = |(thread, outcome): (usize, &Outcome)| {
        let ops: Vec<LongOp> = outcome.longest.ops().collect();
        ops.into_iter().map(move |op| (thread, op))
    };
    let mut all: Vec<(usize, LongOp)> = outcomes.iter().enumerate().flat_map(of_thread).collect();
    all.sort_by_key(|(thread, op)| (std::cmp::Reverse(op.ticks), *thread, op.start));
    let mut kept: Vec<(usize, LongOp, u32)> = Vec::new();
    for (thread, op) in all {
        let is_part = |(other, longer, _): &(usize, LongOp, u32)| {
            let both = op.end.min(longer.end).saturating_sub(op.start.max(longer.start));
            *other != thread && both >= op.end.saturating_sub(op.start) / 2
        };
        match kept.iter().position(is_part) {
            Some(place) => kept[place].2 += 1,
            None if kept.len() < STALLS => kept.push((thread, op, 0)),
            None => {}
        }
    }
    let ns = |ticks| shared.clock.to_ns(ticks);
    let begin = shared.begin();
    let stall = |(thread, op, others): (usize, LongOp, u32)| {
        // What was seen is of this op only if nothing of it was before or after it.
        let is_within = |seen: &&Seen| seen.thread == thread && op.start <= seen.from && seen.to <= op.end;
        let longest = seen.iter().filter(is_within).max_by_key(|seen| seen.to - seen.from);
        Stall {
            thread: thread as u32,
            kind: op.kind.to_string(),
            at_ns: ns(op.start.saturating_sub(begin)),
            length_ns: ns(op.ticks),
            others,
            seen: longest.map(|seen| seen.view.clone()),
        }
    };
    kept.into_iter().map(stall).collect()
}
