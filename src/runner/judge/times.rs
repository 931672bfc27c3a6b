//! What a driver's times leave unaccounted of its calls, as the core saw these from outside, and how much of that its kit
//! may (docs/methodology.md, section 3). Stamps that cannot be true fail the call (src/engine/stamps.rs); what is left to
//! hide time in lies before the first op and behind the last one.

use crate::engine::Span;
use crate::engine::abi::*;
use crate::measure::units::{share_text, time_text};
use crate::measure::{Clock, Histogram};
use crate::results::CallTimes;

/// What a kit takes of a call before its first stamp and after its last one, at most, beside two reads of the clock:
/// measured on the floor of each (docs/methodology.md has the figures). Nanoseconds.
const DIRECT_CALL_NS: u64 = 150;
/// The kit of Go crosses into its runtime, and makes its own view of each op.
const GO_CALL_NS: u64 = 500;
const GO_OP_NS: u64 = 2;
/// And of any call this share, for one that took long finds its way back out of the nearest caches: 1 / 2^6, 1.6 %.
const CALL_SHIFT: u32 = 6;
/// One call of so many may leave more than that unaccounted: a thread that loses its processor does so in the ops nearly
/// always, for they are nearly all of a call. Of the Go kit one of four: its way in may wait for the runtime.
const DIRECT_CALLS_OVER: u64 = 16;
const GO_CALLS_OVER: u64 = 4;
/// The first calls of a phase find nothing in the caches.
const COLD_CALLS: u64 = 10;
/// A kit that hands batches over says itself how long the way there and back took. One call of ten is faster than this,
/// also where threads wait for processors; nanoseconds.
const HANDED_OVER_NS: u64 = 1_000_000;
/// A delay that somebody may want to hide; nanoseconds.
const DELAY_NS: u64 = 100_000;
/// All calls without such a delay leave no more than their bounds together and this, for what is cold at first; nanoseconds.
const COLD_NS: u64 = 1_000_000;
/// Fewer delays than these say nothing about where delays fall.
const DELAYS: u64 = 20;
/// A call alone, as that of a commit, hides no more than this; nanoseconds.
const ALONE_NS: u64 = 10_000_000;
/// From a microsecond on, the way into a driver and out of it is short against the call.
const LONG_CALL_NS: u64 = 1_000;
/// Fewer long calls say nothing.
const LONG_CALLS: u64 = 100;

/// What the kit of a driver may leave unaccounted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    call_ticks: u64,
    op_ns: u64,
    /// One call of so many may leave more.
    calls_over: u64,
}

impl Bound {
    /// Of the kit behind a table with these capabilities, on a clock that costs so much to read.
    pub fn of(capabilities: u64, clock: Clock, clock_cost_ns: f64) -> Bound {
        let hands_over = capabilities & KV_HANDS_OVER != 0;
        let (call_ns, op_ns, calls_over) = if hands_over {
            (GO_CALL_NS, GO_OP_NS, GO_CALLS_OVER)
        } else {
            (DIRECT_CALL_NS, 0, DIRECT_CALLS_OVER)
        };
        // Two reads, and two ticks, which may be long ones.
        let call_ticks = clock.from_ns(call_ns + (2.0 * clock_cost_ns) as u64) + 2;
        Bound { call_ticks, op_ns, calls_over }
    }

    #[inline(always)]
    fn ticks(&self, clock: Clock, called: u64, ops: usize) -> u64 {
        self.call_ticks + clock.from_ns(self.op_ns * ops as u64) + (called >> CALL_SHIFT)
    }
}

/// The calls of one thread.
pub struct Times {
    clock: Clock,
    bound: Bound,
    calls: u64,
    called_ticks: u64,
    waited_ticks: u64,
    unaccounted_ticks: u64,
    bound_ticks: u64,
    calls_over_bound: u64,
    /// What each call that waited for another thread says that it waited.
    waited: Histogram,
    delay_ticks: u64,
    /// Calls with a delay outside the ops, and those with one inside.
    delays_hidden: u64,
    delays_told: u64,
    /// Of all other calls: their time, what they left unaccounted of it, and what they may have.
    prompt_ticks: u64,
    prompt_unaccounted_ticks: u64,
    prompt_bound_ticks: u64,
    /// The most that a call alone left unaccounted above its bound.
    alone_ticks: u64,
    long_call_ticks: u64,
    /// Long calls, and those of them of which the stamps account for less than half.
    long_calls: u64,
    understated_calls: u64,
}

impl Times {
    /// Before the first call.
    pub fn new(clock: Clock, bound: Bound) -> Times {
        Times {
            clock,
            bound,
            calls: 0,
            called_ticks: 0,
            waited_ticks: 0,
            unaccounted_ticks: 0,
            bound_ticks: 0,
            calls_over_bound: 0,
            waited: Histogram::new(),
            delay_ticks: clock.from_ns(DELAY_NS),
            delays_hidden: 0,
            delays_told: 0,
            prompt_ticks: 0,
            prompt_unaccounted_ticks: 0,
            prompt_bound_ticks: 0,
            alone_ticks: 0,
            long_call_ticks: clock.from_ns(LONG_CALL_NS),
            long_calls: 0,
            understated_calls: 0,
        }
    }

    /// Notes a call of `ops` ops with `inside` ticks from its first stamp to its last one, that waited beside them.
    #[inline(always)]
    pub fn call(&mut self, inside: u64, waited: u64, span: Span, ops: usize) {
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
        if waited != 0 {
            self.waited.record(self.clock.to_ns(waited));
        }
        if unaccounted >= self.delay_ticks {
            self.delays_hidden += 1;
        } else if inside >= self.delay_ticks {
            self.delays_told += 1;
        } else {
            self.prompt_ticks += of_ops;
            self.prompt_unaccounted_ticks += unaccounted;
            self.prompt_bound_ticks += bound;
        }
        if of_ops >= self.long_call_ticks {
            self.long_calls += 1;
            self.understated_calls += u64::from(inside < of_ops / 2);
        }
    }

    /// Notes a call that stands for itself, as that of a commit.
    pub fn call_alone(&mut self, inside: u64, waited: u64, span: Span) {
        let unaccounted = span.ticks().saturating_sub(inside).saturating_sub(waited);
        let beyond = unaccounted.saturating_sub(self.bound.ticks(self.clock, span.ticks(), 1));
        self.alone_ticks = self.alone_ticks.max(beyond);
    }

    /// Calls whose stamps account for less than half of them, where these are most: that is no rounding.
    pub fn understated(&self) -> Option<String> {
        let (understated, long) = (self.understated_calls, self.long_calls);
        (long >= LONG_CALLS && understated > long / 2).then(|| {
            format!(
                "of {long} calls the driver's stamps account for less than half the time in {understated}"
            )
        })
    }

    /// For the record.
    pub fn told(&self) -> CallTimes {
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

    /// Why the times do not count; none: they do.
    fn beyond(&self) -> Option<String> {
        let (over, calls) = (self.calls_over_bound, self.calls);
        let allowed = self.prompt_bound_ticks + self.clock.from_ns(COLD_NS);
        if over > COLD_CALLS + calls / self.bound.calls_over || self.prompt_unaccounted_ticks > allowed {
            let share = |ticks: u64| share_text(ticks as f64 / self.called_ticks.max(1) as f64);
            let (left, allowed) = (share(self.unaccounted_ticks), share(self.bound_ticks));
            return Some(format!(
                "the driver's times leave {left} of the calls unaccounted, where its kit may leave {allowed}: {over} of \
                 {calls} calls are over the bound"
            ));
        }
        if let Some(delays) = self.hidden_delays() {
            return Some(delays);
        }
        if self.alone_ticks >= self.clock.from_ns(ALONE_NS) {
            let time = time_text(self.clock.to_ns(self.alone_ticks) as f64);
            return Some(format!(
                "the driver's times leave {time} unaccounted of one call that ends a transaction"
            ));
        }
        let waited = self.waited.quantile_if_enough(1, 10).filter(|ns| *ns > HANDED_OVER_NS)?;
        let (waited, limit) = (time_text(waited as f64), time_text(HANDED_OVER_NS as f64));
        Some(format!(
            "nine of ten batches that were handed over waited for {waited} or longer, by the driver's word; the bound is \
             {limit}"
        ))
    }

    /// Delays fall anywhere in a call; where most fall outside the ops, they were put there. The way into Go may itself
    /// wait.
    fn hidden_delays(&self) -> Option<String> {
        let (hidden, all) = (self.delays_hidden, self.delays_hidden + self.delays_told);
        let outside = self.prompt_unaccounted_ticks as f64 / self.prompt_ticks.max(1) as f64;
        let expected = outside.max(1.0 / (1 << CALL_SHIFT) as f64) * all as f64;
        let is_direct = self.bound.calls_over == DIRECT_CALLS_OVER;
        (is_direct && hidden >= DELAYS && hidden as f64 > 4.0 * expected).then(|| {
            let limit = time_text(DELAY_NS as f64);
            format!("{hidden} of {all} delays of {limit} and more are in no op's time; chance would put {expected:.1} there")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of 64 ops: how many, from first stamp to last, waited, and as seen from outside; nanoseconds.
    type Calls<'a> = &'a [(u64, u64, u64, u64)];

    fn times(capabilities: u64, calls: Calls<'_>) -> Times {
        let clock = Clock::monotonic();
        let mut times = Times::new(clock, Bound::of(capabilities, clock, 20.0));
        for &(count, inside, waited, outside) in calls {
            for _ in 0..count {
                let span = Span { entered: 1_000, left: 1_000 + outside };
                times.call(inside, waited, span, 64);
            }
        }
        times
    }

    fn said(capabilities: u64, calls: Calls<'_>) -> String {
        times(capabilities, calls).told().beyond.unwrap_or_default()
    }

    #[test]
    fn what_a_kit_takes_is_within_its_bound() {
        let fine: &[(u64, Calls<'_>)] = &[
            (0, &[(1000, 6_400, 0, 6_450)]),
            // 150 ns, two reads of the clock, and 1.6 % of the call.
            (0, &[(1000, 99_000, 0, 100_700)]),
            // Caches that the engine has emptied, in one call of twenty.
            (0, &[(950, 8_000, 0, 8_030), (50, 8_000, 0, 8_500)]),
            // Lost its processor 15 times outside the ops, 985 times inside.
            (0, &[(99_000, 6_400, 0, 6_450), (15, 6_400, 0, 4_000_000), (985, 4_000_000, 0, 4_000_050)]),
            // Cold at first.
            (0, &[(10, 6_400, 0, 90_000), (30, 6_400, 0, 6_450)]),
            (KV_HANDS_OVER, &[(1000, 6_400, 0, 7_000)]),
            (KV_HANDS_OVER, &[(800, 6_400, 0, 7_000), (200, 6_400, 0, 300_000)]),
            (KV_HANDS_OVER, &[(1000, 100_000, 60_000, 161_000)]),
        ];
        for &(capabilities, calls) in fine {
            assert_eq!(said(capabilities, calls), "", "{calls:?}");
        }
    }

    #[test]
    fn what_is_beyond_the_bound_is_told() {
        let lies: &[(u64, Calls<'_>, &str)] = &[
            (0, &[(1000, 3_200, 0, 6_400)], "leave 50 % of the calls unaccounted"),
            (0, &[(1000, 6_000, 0, 6_400)], "1000 of 1000 calls are over the bound"),
            // Every tenth.
            (0, &[(900, 6_400, 0, 6_450), (100, 3_200, 0, 6_450)], "100 of 1000 calls are over the bound"),
            // One call of a hundred, with less than a delay.
            (
                0,
                &[(9_900, 6_400, 0, 6_450), (100, 6_400, 0, 96_400)],
                "100 of 10000 calls are over the bound",
            ),
            // Delays alone, in a call of a hundred.
            (
                0,
                &[(9_900, 6_400, 0, 6_450), (100, 6_400, 0, 206_450)],
                "100 of 100 delays of 100 us and more",
            ),
            (KV_HANDS_OVER, &[(1000, 3_200, 0, 6_400)], "leave 50 % of the calls unaccounted"),
            (KV_HANDS_OVER, &[(1000, 2_000_000, 2_000_000, 4_000_000)], "by the driver's word"),
        ];
        for &(capabilities, calls, wanted) in lies {
            let text = said(capabilities, calls);
            assert!(text.contains(wanted), "{calls:?}: no `{wanted}` in `{text}`");
        }
    }

    #[test]
    fn stamps_that_account_for_less_than_half_of_most_calls_are_a_fault() {
        for (inside, waited, outside, is_fault) in [
            (10_000, 0, 12_000, false),
            // Handed over to another thread: no op's time, so nothing is missing.
            (10_000, 30_000, 42_000, false),
            (10_000, 0, 42_000, true),
            (10_000, 15_000, 42_000, true),
            (100, 1_000, 42_000, true),
        ] {
            let found = times(KV_HANDS_OVER, &[(200, inside, waited, outside)]).understated();
            assert_eq!(found.is_some(), is_fault, "{inside} {waited} {outside}: {found:?}");
        }
    }

    #[test]
    fn a_commit_that_hides_its_time_is_told() {
        let mut times = times(0, &[]);
        times.call_alone(1_000_000, 0, Span { entered: 0, left: 9_000_000 });
        assert_eq!(times.told().beyond, None);
        times.call_alone(1_000_000, 0, Span { entered: 0, left: 90_000_000 });
        assert!(times.told().beyond.unwrap_or_default().contains("one call that ends a transaction"));
    }
}
