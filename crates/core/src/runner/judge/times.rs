//! The time of calls, measured by the core, that a driver's times leave unaccounted, and the limit for its kit
//! (docs/methodology.md, section 3). Impossible stamps fail the call (crates/core/src/engine/stamps.rs); a driver could only hide time
//! before the first op and after the last one.

use crate::engine::Span;
use crate::results::CallTimes;
use kvdyno_measure::Clock;
use kvdyno_measure::text::{share_text, time_text};

/// The maximum time of a kit before the first stamp and after the last stamp of a call, in addition to two reads of the
/// clock: measured with the null engine of each kit, and with engines that empty the caches
/// (results/call-times.md). Nanoseconds.
const DIRECT_CALL_NS: u64 = 150;
/// The ops of a group get their stamps after it has ended. Those of more ops than this are not in the nearest cache.
const DIRECT_OPS: usize = 64;
const DIRECT_OP_NS: u64 = 2;
/// A driven session: the way out of the turn into the driver's runtime and back, and the kit's own view of each op (Go).
const DRIVEN_CALL_NS: u64 = 500;
const DRIVEN_OP_NS: u64 = 2;
/// The additional share of any call, because the code after a long call is no longer in the nearest caches: 1 / 2^6, 1.6 %.
const CALL_SHIFT: u32 = 6;
/// One call of this many may leave more time unaccounted: a thread nearly always loses its processor inside the ops, because
/// they take nearly all of a call. For a driven session it is one of four, because returning into the runtime may wait.
const DIRECT_CALLS_OVER: u64 = 16;
const DRIVEN_CALLS_OVER: u64 = 4;
/// The number of first calls of a phase, which find the caches cold.
const COLD_CALLS: u64 = 10;
/// A delay that a driver could want to hide; nanoseconds.
const DELAY_NS: u64 = 100_000;
/// All calls without such a delay leave at most the sum of their bounds plus this, for cold caches; nanoseconds.
const COLD_NS: u64 = 1_000_000;
/// Of this share of the time of all calls, 0.1 %, it does not matter how many calls leave it over their bounds: in a phase
/// with syncs most calls follow a wait, in which other programs empty the caches.
const SMALL_SHARE: f64 = 0.001;
/// The minimum number of delays for a statement about their distribution.
const DELAYS: u64 = 20;
/// The maximum unaccounted time of a single call such as a commit; nanoseconds.
const ALONE_NS: u64 = 10_000_000;
/// In calls of a microsecond or more, entering and leaving the driver takes a small part.
const LONG_CALL_NS: u64 = 1_000;
/// The minimum number of long calls for a statement.
const LONG_CALLS: u64 = 100;

/// The time that the kit of a driver may leave unaccounted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    call_ticks: u64,
    /// Each further op takes this long.
    free_ops: usize,
    op_ns: u64,
    /// One call of this many may leave more.
    calls_over: u64,
}

impl Bound {
    /// The bound of a driver's kit, for a clock with this cost; `is_driven`: the driver runs the loops of its sessions.
    pub(crate) fn of(is_driven: bool, clock: Clock, clock_cost_ns: f64) -> Bound {
        let (call_ns, free_ops, op_ns, calls_over) = if is_driven {
            (DRIVEN_CALL_NS, 0, DRIVEN_OP_NS, DRIVEN_CALLS_OVER)
        } else {
            (DIRECT_CALL_NS, DIRECT_OPS, DIRECT_OP_NS, DIRECT_CALLS_OVER)
        };
        // Two reads, and two ticks, which may be long.
        let call_ticks = clock.from_ns(call_ns + (2.0 * clock_cost_ns) as u64) + 2;
        Bound { call_ticks, free_ops, op_ns, calls_over }
    }

    #[inline(always)]
    fn ticks(&self, clock: Clock, called: u64, ops: usize) -> u64 {
        self.call_ticks
            + clock.from_ns(self.op_ns * ops.saturating_sub(self.free_ops) as u64)
            + (called >> CALL_SHIFT)
    }
}

/// The calls of one thread.
pub(crate) struct Times {
    clock: Clock,
    bound: Bound,
    calls: u64,
    called_ticks: u64,
    waited_ticks: u64,
    unaccounted_ticks: u64,
    bound_ticks: u64,
    excess_ticks: u64,
    calls_over_bound: u64,
    delay_ticks: u64,
    /// Calls with a delay outside the ops, and those with one inside.
    delays_hidden: u64,
    delays_inside: u64,
    /// All other calls: their time, their unaccounted time, and their bounds.
    prompt_ticks: u64,
    prompt_unaccounted_ticks: u64,
    prompt_bound_ticks: u64,
    /// The maximum unaccounted time above its bound of a single call.
    alone_ticks: u64,
    long_call_ticks: u64,
    /// Long calls, and those whose stamps account for less than half of their time.
    long_calls: u64,
    understated_calls: u64,
}

impl Times {
    /// Before the first call.
    pub(crate) fn new(clock: Clock, bound: Bound) -> Times {
        Times {
            clock,
            bound,
            calls: 0,
            called_ticks: 0,
            waited_ticks: 0,
            unaccounted_ticks: 0,
            bound_ticks: 0,
            excess_ticks: 0,
            calls_over_bound: 0,
            delay_ticks: clock.from_ns(DELAY_NS),
            delays_hidden: 0,
            delays_inside: 0,
            prompt_ticks: 0,
            prompt_unaccounted_ticks: 0,
            prompt_bound_ticks: 0,
            alone_ticks: 0,
            long_call_ticks: clock.from_ns(LONG_CALL_NS),
            long_calls: 0,
            understated_calls: 0,
        }
    }

    /// Records a call of `ops` ops with `inside` ticks from its first stamp to its last one, and `waited` ticks until ops
    /// were due. Returns the unaccounted ticks over the bound of its kit, which are the engine's.
    #[inline(always)]
    pub(crate) fn call(&mut self, inside: u64, waited: u64, span: Span, ops: usize) -> u64 {
        let called = span.ticks();
        let of_ops = called.saturating_sub(waited);
        let unaccounted = of_ops.saturating_sub(inside);
        let bound = self.bound.ticks(self.clock, called, ops);
        self.calls += 1;
        self.called_ticks += called;
        self.waited_ticks += waited;
        self.unaccounted_ticks += unaccounted;
        self.bound_ticks += bound;
        self.calls_over_bound += u64::from(unaccounted > bound);
        if unaccounted >= self.delay_ticks {
            self.delays_hidden += 1;
        } else if inside >= self.delay_ticks {
            self.delays_inside += 1;
        } else {
            self.prompt_ticks += of_ops;
            self.prompt_unaccounted_ticks += unaccounted;
            self.prompt_bound_ticks += bound;
        }
        if of_ops >= self.long_call_ticks {
            self.long_calls += 1;
            self.understated_calls += u64::from(inside < of_ops / 2);
        }
        let excess = unaccounted.saturating_sub(bound);
        self.excess_ticks += excess;
        excess
    }

    /// The ticks of all calls so far.
    pub(crate) fn called_ticks(&self) -> u64 {
        self.called_ticks
    }

    /// The ticks of calls that belong to no op, as far as each is within its bound.
    pub(crate) fn within_bound_ticks(&self) -> u64 {
        self.unaccounted_ticks - self.excess_ticks
    }

    /// Records a single call such as a commit.
    pub(crate) fn call_alone(&mut self, inside: u64, waited: u64, span: Span) {
        let unaccounted = span.ticks().saturating_sub(inside).saturating_sub(waited);
        let beyond = unaccounted.saturating_sub(self.bound.ticks(self.clock, span.ticks(), 1));
        self.alone_ticks = self.alone_ticks.max(beyond);
    }

    /// Describes calls whose stamps account for less than half of their time, if they are the majority: that is no rounding.
    pub(crate) fn understated(&self) -> Option<String> {
        let (understated, long) = (self.understated_calls, self.long_calls);
        (long >= LONG_CALLS && understated > long / 2).then(|| {
            format!(
                "the driver's stamps account for less than half the time in {understated} of {long} calls"
            )
        })
    }

    /// The totals for the record.
    pub(crate) fn totals(&self) -> CallTimes {
        let ns = |ticks| self.clock.to_ns(ticks);
        CallTimes {
            calls: self.calls,
            called_ns: ns(self.called_ticks),
            waited_ns: ns(self.waited_ticks),
            unaccounted_ns: ns(self.unaccounted_ticks),
            bound_ns: ns(self.bound_ticks),
            calls_over_bound: self.calls_over_bound,
            beyond: self.beyond(),
        }
    }

    /// Why the times do not count; none: they count.
    fn beyond(&self) -> Option<String> {
        let (over, calls) = (self.calls_over_bound, self.calls);
        let allowed = self.prompt_bound_ticks + self.clock.from_ns(COLD_NS);
        let cold = self.clock.from_ns(COLD_NS).min((self.called_ticks as f64 * SMALL_SHARE) as u64);
        let are_many = over > COLD_CALLS + calls / self.bound.calls_over && self.excess_ticks > cold;
        if are_many || self.prompt_unaccounted_ticks > allowed {
            let excess = time_text(self.clock.to_ns(self.excess_ticks) as f64);
            // All calls together may be within their bounds while many of them are not.
            if self.unaccounted_ticks <= self.bound_ticks {
                return Some(format!(
                    "{over} of {calls} calls are over the bound of what the driver's kit may leave unaccounted, by {excess} in all"
                ));
            }
            let share = |ticks: u64| share_text(ticks as f64 / self.called_ticks.max(1) as f64);
            let (left, allowed) = (share(self.unaccounted_ticks), share(self.bound_ticks));
            return Some(format!(
                "the driver's times leave {left} of the calls unaccounted, but its kit may leave {allowed}: {over} of \
                 {calls} calls are over the bound"
            ));
        }
        if let Some(delays) = self.hidden_delays() {
            return Some(delays);
        }
        if self.alone_ticks >= self.clock.from_ns(ALONE_NS) {
            let time = time_text(self.clock.to_ns(self.alone_ticks) as f64);
            return Some(format!(
                "the driver's times leave {time} unaccounted in one call that ends a transaction"
            ));
        }
        None
    }

    /// Delays happen anywhere in a call; if most are outside the ops, the driver hides them. Not for a driven session, where
    /// returning into the runtime may wait.
    fn hidden_delays(&self) -> Option<String> {
        let (hidden, all) = (self.delays_hidden, self.delays_hidden + self.delays_inside);
        let outside = self.prompt_unaccounted_ticks as f64 / self.prompt_ticks.max(1) as f64;
        let expected = outside.max(1.0 / (1 << CALL_SHIFT) as f64) * all as f64;
        let is_direct = self.bound.calls_over == DIRECT_CALLS_OVER;
        (is_direct && hidden >= DELAYS && hidden as f64 > 4.0 * expected).then(|| {
            let limit = time_text(DELAY_NS as f64);
            format!("{hidden} of {all} delays of {limit} and more are outside the time of ops; {expected:.1} are expected there by chance")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of 64 ops: their number, the time from first to last stamp, waiting time, and total time; nanoseconds.
    type Calls<'a> = &'a [(u64, u64, u64, u64)];

    fn times(is_driven: bool, calls: Calls<'_>) -> Times {
        times_of(is_driven, calls, 64)
    }

    fn times_of(is_driven: bool, calls: Calls<'_>, ops: usize) -> Times {
        let clock = Clock::monotonic();
        let mut times = Times::new(clock, Bound::of(is_driven, clock, 20.0));
        for &(count, inside, waited, outside) in calls {
            for _ in 0..count {
                let span = Span { entered: 1_000, left: 1_000 + outside };
                let excess = times.call(inside, waited, span, ops);
                // Two reads of the clock and two ticks are in each bound.
                let (kit, of_ops) =
                    if is_driven { (500, 2 * ops as u64) } else { (150, 2 * ops.saturating_sub(64) as u64) };
                let bound = kit + of_ops + 42 + (outside >> 6);
                assert_eq!(excess, outside.saturating_sub(inside + waited).saturating_sub(bound));
            }
        }
        times
    }

    fn reason(is_driven: bool, calls: Calls<'_>) -> String {
        times(is_driven, calls).totals().beyond.unwrap_or_default()
    }

    #[test]
    fn the_time_of_a_kit_is_within_its_bound() {
        let fine: &[(bool, Calls<'_>)] = &[
            (false, &[(1000, 6_400, 0, 6_450)]),
            // 150 ns, two reads of the clock, and 1.6 % of the call.
            (false, &[(1000, 99_000, 0, 100_700)]),
            // The engine has evicted the caches in one call of twenty.
            (false, &[(950, 8_000, 0, 8_030), (50, 8_000, 0, 8_500)]),
            // The thread lost its processor 15 times outside the ops, 985 times inside.
            (false, &[(99_000, 6_400, 0, 6_450), (15, 6_400, 0, 4_000_000), (985, 4_000_000, 0, 4_000_050)]),
            // Cold caches at first.
            (false, &[(10, 6_400, 0, 90_000), (30, 6_400, 0, 6_450)]),
            (true, &[(1000, 6_400, 0, 7_000)]),
            (true, &[(800, 6_400, 0, 7_000), (200, 6_400, 0, 300_000)]),
            // A phase with syncs: reads follow them with cold caches, and leave 0.01 % of the time.
            (false, &[(120, 8_000_000, 0, 8_000_050), (30, 20_000, 0, 23_000)]),
            // Ops that were due later.
            (true, &[(1000, 100_000, 60_000, 161_000)]),
        ];
        for &(is_driven, calls) in fine {
            assert_eq!(reason(is_driven, calls), "", "{calls:?}");
        }
    }

    #[test]
    fn the_stamps_of_a_large_group_take_time_after_it() {
        for (ops, outside, is_fine) in [
            (64, 6_400 + 170, true),
            (64, 6_400 + 400, false),
            // The null engine leaves 1.2 ns an op in groups of 1000.
            (1000, 6_400 + 1_230, true),
            (1000, 6_400 + 2_400, false),
        ] {
            let beyond = times_of(false, &[(1000, 6_400, 0, outside)], ops).totals().beyond;
            assert_eq!(beyond.is_none(), is_fine, "{ops} ops, {outside} ns: {beyond:?}");
        }
    }

    #[test]
    fn time_beyond_the_bound_is_reported() {
        let lies: &[(bool, Calls<'_>, &str)] = &[
            (false, &[(1000, 3_200, 0, 6_400)], "leave 50 % of the calls unaccounted"),
            (false, &[(1000, 6_000, 0, 6_400)], "1000 of 1000 calls are over the bound"),
            // All calls together leave less than they may, and half of them leave more.
            (
                false,
                &[(5_000, 6_400, 0, 6_402), (5_000, 6_400, 0, 6_800)],
                "5000 of 10000 calls are over the bound of what the driver's kit may leave unaccounted, by ",
            ),
            // Every tenth.
            (
                false,
                &[(900, 6_400, 0, 6_450), (100, 3_200, 0, 6_450)],
                "100 of 1000 calls are over the bound",
            ),
            // One call of a hundred, with less than a delay.
            (
                false,
                &[(9_900, 6_400, 0, 6_450), (100, 6_400, 0, 96_400)],
                "100 of 10000 calls are over the bound",
            ),
            // Reads between syncs: 0.2 % of the time.
            (
                false,
                &[(120, 500_000, 0, 500_050), (30, 20_000, 0, 25_000)],
                "30 of 150 calls are over the bound",
            ),
            // The same share as with syncs that are fine, but more than a millisecond.
            (
                false,
                &[(12_000, 8_000_000, 0, 8_000_050), (3_000, 20_000, 0, 23_000)],
                "3000 of 15000 calls are over the bound",
            ),
            // Delays alone, in a call of a hundred.
            (
                false,
                &[(9_900, 6_400, 0, 6_450), (100, 6_400, 0, 206_450)],
                "100 of 100 delays of 100 us and more",
            ),
            (true, &[(1000, 3_200, 0, 6_400)], "leave 50 % of the calls unaccounted"),
        ];
        for &(is_driven, calls, expected) in lies {
            let text = reason(is_driven, calls);
            assert!(text.contains(expected), "{calls:?}: no `{expected}` in `{text}`");
        }
    }

    #[test]
    fn stamps_that_account_for_less_than_half_of_most_calls_are_a_fault() {
        for (inside, waited, outside, is_fault) in [
            (10_000, 0, 12_000, false),
            // Waiting until an op is due is accounted for.
            (10_000, 30_000, 42_000, false),
            (10_000, 0, 42_000, true),
            (10_000, 15_000, 42_000, true),
            (100, 1_000, 42_000, true),
        ] {
            let found = times(true, &[(200, inside, waited, outside)]).understated();
            assert_eq!(found.is_some(), is_fault, "{inside} {waited} {outside}: {found:?}");
        }
    }

    #[test]
    fn a_commit_that_hides_its_time_is_reported() {
        let mut times = times(false, &[]);
        times.call_alone(1_000_000, 0, Span { entered: 0, left: 9_000_000 });
        assert_eq!(times.totals().beyond, None);
        times.call_alone(1_000_000, 0, Span { entered: 0, left: 90_000_000 });
        assert!(times.totals().beyond.unwrap_or_default().contains("one call that ends a transaction"));
    }
}
