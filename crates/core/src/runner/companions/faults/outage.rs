//! When a store gave service: the acknowledgements of each thread in a phase with faults, and what they say together.
//!
//! A thread keeps its gaps: the times of at least [`LEAST_GAP_NS`] between two of its acknowledgements that follow each other. The
//! times in which no thread had an acknowledgement are where gaps of all threads overlap. This is exact for what lasts at least
//! that long: such a time lies within one gap of each thread, and each of these gaps is at least as long. It also counts the
//! acknowledgements in steps of [`STEP_NS`], from which the rate before and after a fault is known.

use crate::engine::{Arena, Executed, Status};
use crate::results::statistics::median;
use crate::runner::draw::Item;
use crate::runner::phase_data::Shared;

/// Shorter times without an acknowledgement are not kept, nanoseconds.
const LEAST_GAP_NS: u64 = 10_000_000;
/// The length of a step of the rate, nanoseconds.
pub(super) const STEP_NS: u64 = 100_000_000;
/// A store has recovered at the begin of the first second with this share of the rate before the fault.
const RECOVERED_SHARE: f64 = 0.9;
/// The number of steps over which a rate is taken: a second.
const STEPS: usize = 10;

/// A span of time: from and to, ticks or nanoseconds.
pub(super) type Span = (u64, u64);

/// The acknowledgements of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    /// The last one, or the begin; ticks.
    last: u64,
    least: u64,
    /// Where the next step begins.
    next: u64,
    length: u64,
    gaps: Vec<Span>,
    /// The last call failed, so the thread still waits for an acknowledgement.
    waits: bool,
    /// The last gap is one in which the thread ended while it waited.
    is_open: bool,
    /// Ops acknowledged in each step; it has its full length from the start.
    steps: Vec<u32>,
    step: usize,
}

impl Acknowledged {
    /// The recorder of a thread; none: the phase has no faults.
    pub(crate) fn of(shared: &Shared<'_>) -> Option<Acknowledged> {
        // A phase with faults ends by its time.
        let seconds = shared.seconds.filter(|_| !shared.faults.is_empty())?;
        let steps = (seconds * 1e9 / STEP_NS as f64) as usize + 2;
        let ticks = |ns| shared.clock.from_ns(ns);
        Some(Acknowledged::new(steps, ticks(LEAST_GAP_NS), ticks(STEP_NS)))
    }

    /// For a phase that takes at most so many steps; both lengths are in ticks.
    fn new(steps: usize, least: u64, length: u64) -> Acknowledged {
        let (gaps, steps) = (Vec::with_capacity(1024), vec![0; steps]);
        let length = length.max(1);
        Acknowledged { last: 0, least, next: 0, length, gaps, waits: false, is_open: false, steps, step: 0 }
    }

    /// Begins to count at a tick; steps begin at `from`.
    pub(crate) fn begin(&mut self, from: u64, now: u64) {
        (self.last, self.step, self.next) = (now, 0, from + self.length);
        self.gaps.clear();
        self.steps.fill(0);
    }

    /// The units of a batch were acknowledged, except those that failed; `counts`: the warm-up is over.
    pub(crate) fn note(&mut self, items: &[Item], arena: &Arena, executed: &Executed, counts: bool) {
        let mut first = 0;
        while let Some(unit) = items.get(first) {
            let end = first + usize::from(unit.unit_ops).max(1);
            let is_done = |at: usize| at < executed.done && Status::of(arena.op(at).status).is_answer();
            if counts && (first..end).all(is_done) {
                self.add(arena.op(end - 1).end);
            }
            first = end;
        }
        self.waits(executed.error.is_some());
    }

    /// An op was acknowledged at this tick, not before the last one.
    #[inline(always)]
    fn add(&mut self, at: u64) {
        self.pass(at);
        while at >= self.next {
            self.next += self.length;
            self.step += 1;
        }
        if let Some(count) = self.steps.get_mut(self.step) {
            *count += 1;
        }
    }

    #[inline(always)]
    fn pass(&mut self, at: u64) {
        if at.saturating_sub(self.last) >= self.least {
            self.gaps.push((self.last, at));
        }
        self.last = self.last.max(at);
    }

    /// Whether the last call failed.
    fn waits(&mut self, is_so: bool) {
        self.waits = is_so;
    }

    /// The thread has ended.
    pub(crate) fn end(&mut self, at: u64) {
        let before = self.gaps.len();
        self.pass(at);
        self.is_open = self.waits && self.gaps.len() > before;
    }

    /// Its gaps, in order.
    pub(crate) fn gaps(&self) -> &[Span] {
        &self.gaps
    }

    /// The end of the last gap, if the thread ended while it waited.
    pub(crate) fn open_until(&self) -> Option<u64> {
        self.gaps.last().filter(|_| self.is_open).map(|(_, to)| *to)
    }

    /// Its ops in each step.
    pub(crate) fn steps(&self) -> &[u32] {
        &self.steps
    }
}

/// The spans that lie in a span of each list and are at least so long. The spans of a list are in order and do not overlap.
pub(super) fn common(lists: &[&[Span]], least: u64) -> Vec<Span> {
    let Some((first, rest)) = lists.split_first() else { return Vec::new() };
    let mut all = first.to_vec();
    for list in rest {
        let (mut both, mut at) = (Vec::new(), 0);
        for &(from, to) in &all {
            // A later span of `all` may begin within the same span of the list.
            while at < list.len() && list[at].1 <= from {
                at += 1;
            }
            let overlapping = list[at..].iter().take_while(|other| other.0 < to);
            let parts = overlapping.map(|other| (from.max(other.0), to.min(other.1)));
            both.extend(parts.filter(|(from, to)| to - from >= least));
        }
        all = both;
    }
    all
}

/// What a fault did to the service; all times are nanoseconds from the start of the phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Effect {
    /// The longest span in which no thread had an acknowledgement; none: there was none of [`LEAST_GAP_NS`] or more.
    pub without_service: Option<Span>,
    /// The number of such spans, and the sum of their lengths.
    pub times: u64,
    pub sum: u64,
    /// The one of them in which the phase ended, so that it may have lasted longer.
    pub cut_off: Option<Span>,
    /// The longest span in which one thread had none.
    pub thread_waited: Option<Span>,
    /// The phase ended in such a span of a thread.
    pub thread_is_cut_off: bool,
    /// The median rate before the fault, ops per second; none: there was less than a second before it.
    pub rate_before: Option<f64>,
    /// When the rate was back; none: not before the end, or the rate before is unknown.
    pub recovered_at: Option<u64>,
}

/// The service of a phase.
pub(super) struct Service {
    /// The gaps of each thread.
    pub threads: Vec<Vec<Span>>,
    /// Where the last gap of each thread ends, if the thread ended while it waited.
    pub open: Vec<Option<u64>>,
    /// Ops of all threads in each step.
    pub steps: Vec<u64>,
    /// The end of the phase.
    pub end: u64,
}

impl Service {
    /// The effect of a fault that began at `at`, until the next one began, or the phase ended, at `until`: that of spans whose middle is
    /// in between. `calm` is where the
    /// time begins that is before the fault.
    pub(super) fn effect(&self, calm: u64, at: u64, until: u64) -> Effect {
        // A span that the next fault ends or begins is of the fault in which most of it lies.
        let is_own = |(from, to): &Span| (at..until).contains(&(from + (to - from) / 2));
        let length = |(from, to): &Span| to - from;
        let longest = |spans: &[Span]| spans.iter().copied().filter(is_own).max_by_key(length);
        let lists: Vec<&[Span]> = self.threads.iter().map(Vec::as_slice).collect();
        let spans: Vec<Span> = common(&lists, LEAST_GAP_NS).into_iter().filter(is_own).collect();
        let without_service = longest(&spans);
        // No thread had an acknowledgement when it ended, so one of those that ended first waited.
        let cut_off = spans.last().copied().filter(|(_, to)| self.open.contains(&Some(*to)));
        let is_cut_off =
            |(list, open): (&&[Span], &Option<u64>)| open.is_some() && list.last().is_some_and(is_own);
        let rate_before = self.rate_before(calm, at);
        let from = without_service.map_or(at, |(_, to)| to.max(at));
        let recovered_at = rate_before.and_then(|rate| self.recovered(rate, from, until));
        Effect {
            without_service,
            times: spans.len() as u64,
            sum: spans.iter().map(length).sum(),
            cut_off,
            thread_waited: lists.iter().filter_map(|list| longest(list)).max_by_key(length),
            thread_is_cut_off: lists.iter().zip(&self.open).any(is_cut_off),
            rate_before,
            recovered_at,
        }
    }

    /// The median rate of the steps that lie between the two moments, if there are enough.
    fn rate_before(&self, calm: u64, at: u64) -> Option<f64> {
        let (first, last) = (calm.div_ceil(STEP_NS) as usize, (at / STEP_NS) as usize);
        let steps = self.steps.get(first..last.min(self.steps.len())).filter(|steps| steps.len() >= STEPS)?;
        let rates: Vec<f64> = steps.iter().map(|ops| *ops as f64 * 1e9 / STEP_NS as f64).collect();
        median(&rates)
    }

    /// The begin of the first second at or after `from`, in steps, that has ended by `until` and has enough of the rate.
    fn recovered(&self, rate: f64, from: u64, until: u64) -> Option<u64> {
        let least = rate * RECOVERED_SHARE * STEPS as f64 * STEP_NS as f64 / 1e9;
        let last = (until.min(self.end) / STEP_NS) as usize;
        let first = from.div_ceil(STEP_NS) as usize;
        let steps = self.steps.get(first..last.min(self.steps.len()))?;
        let place = steps.windows(STEPS).position(|steps| steps.iter().sum::<u64>() as f64 >= least)?;
        Some((first + place) as u64 * STEP_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// The service of threads with these moments of acknowledgement, nanoseconds, in order.
    fn service(threads: &[Vec<u64>], end: u64) -> Service {
        let count = end.div_ceil(STEP_NS) as usize + 1;
        let (mut steps, mut open) = (vec![0_u64; count], Vec::new());
        let of_thread = |moments: &Vec<u64>| {
            let mut own = Acknowledged::new(count, LEAST_GAP_NS, STEP_NS);
            own.begin(0, 0);
            moments.iter().for_each(|at| own.add(*at));
            // A thread that was acknowledged a moment before the end did not wait then.
            own.waits(moments.last().is_none_or(|last| end - last > 2 * MS));
            own.end(end);
            open.push(own.open_until());
            steps.iter_mut().zip(own.steps()).for_each(|(sum, own)| *sum += u64::from(*own));
            own.gaps().to_vec()
        };
        let threads = threads.iter().map(of_thread).collect();
        Service { threads, open, steps, end }
    }

    #[test]
    fn an_outage_is_the_longest_time_between_two_acknowledgements_of_any_thread() {
        // Two threads with an op each millisecond, one of them half a millisecond later; both have none from 3 s to 4.2 s and
        // 4.25 s.
        let moments = |shift: u64, back: u64| -> Vec<u64> {
            let all = (1..8_000).map(|ms| ms * MS + shift);
            all.filter(|at| *at <= 3_000 * MS || *at >= back * MS).collect()
        };
        let service = service(&[moments(0, 4_200), moments(MS / 2, 4_250)], 8_000 * MS);
        let effect = service.effect(0, 3_000 * MS, 8_000 * MS);
        assert_eq!(effect.without_service, Some((3_000 * MS, 4_200 * MS)));
        assert_eq!(effect.thread_waited, Some((2_999 * MS + MS / 2, 4_250 * MS + MS / 2)));
        assert_eq!((effect.times, effect.sum, effect.cut_off), (1, 1_200 * MS, None));
        assert_eq!(effect.rate_before, Some(2_000.0));
        assert_eq!(
            effect.recovered_at,
            Some(4_200 * MS),
            "half a step of one thread is within a tenth of a second"
        );
    }

    #[test]
    fn a_fault_that_nobody_notices_has_no_outage_and_one_that_lasts_no_recovery() {
        let all: Vec<u64> = (1..6_000).map(|ms| ms * MS).collect();
        let effect = service(std::slice::from_ref(&all), 6_000 * MS).effect(0, 2_050 * MS, 6_000 * MS);
        assert_eq!((effect.without_service, effect.recovered_at), (None, Some(2_100 * MS)));
        let dead: Vec<u64> = all.into_iter().filter(|at| *at < 2_000 * MS).collect();
        let effect = service(&[dead], 6_000 * MS).effect(0, 2_000 * MS, 6_000 * MS);
        assert_eq!(effect.without_service, Some((1_999 * MS, 6_000 * MS)));
        assert_eq!(effect.cut_off, effect.without_service, "nobody knows when it would have ended");
        assert_eq!((effect.rate_before, effect.recovered_at), (Some(1_000.0), None));
        let early = service(&[vec![MS]], 6_000 * MS).effect(0, 500 * MS, 6_000 * MS);
        assert_eq!(early.rate_before, None, "half a second is no rate");
    }

    #[test]
    fn a_fault_after_another_has_its_own_time() {
        let moments: Vec<u64> = (1..9_000)
            .map(|ms| ms * MS)
            .filter(|at| !(2_000 * MS..2_500 * MS).contains(at) && !(6_000 * MS..6_100 * MS).contains(at))
            .collect();
        let service = service(&[moments], 9_000 * MS);
        let first = service.effect(0, 2_000 * MS, 6_000 * MS);
        assert_eq!(first.without_service, Some((1_999 * MS, 2_500 * MS)));
        let second = service.effect(4_000 * MS, 6_000 * MS, 9_000 * MS);
        assert_eq!(second.without_service, Some((5_999 * MS, 6_100 * MS)));
        // It began just before the second fault, and is not of the one before.
        assert_eq!(service.effect(0, 3_000 * MS, 6_000 * MS).without_service, None);
    }

    #[test]
    fn each_time_without_service_counts_and_the_last_one_may_be_cut_off() {
        // Two threads, each of which has its own pauses too; nobody is served from 2 s to 2.5 s, from 3 s to 3.2 s, and from 5.7 s on.
        let served = |at: &u64| {
            let is_in = |(from, to): (u64, u64)| (from * MS..to * MS).contains(at);
            ![(2_000, 2_500), (3_000, 3_200), (5_700, 6_000)].into_iter().any(is_in)
        };
        let moments = |shift: u64, away: std::ops::Range<u64>| -> Vec<u64> {
            (1..6_000).map(|ms| ms * MS - shift).filter(served).filter(|at| !away.contains(at)).collect()
        };
        let threads = [moments(0, 4_000 * MS..4_400 * MS), moments(MS / 2, 4_600 * MS..4_900 * MS)];
        let mut service = service(&threads, 6_000 * MS);
        let effect = service.effect(0, 2_000 * MS, 6_000 * MS);
        let longest = (2_000 * MS - MS / 2, 2_500 * MS);
        assert_eq!((effect.without_service, effect.times), (Some(longest), 3));
        let last = (5_700 * MS - MS / 2, 6_000 * MS);
        assert_eq!(effect.cut_off, Some(last), "it may have lasted longer");
        assert_eq!(effect.sum, 500 * MS + MS / 2 + 200 * MS + MS / 2 + 300 * MS + MS / 2);
        assert!(effect.thread_is_cut_off);
        assert_eq!(service.effect(0, 2_000 * MS, 3_100 * MS).cut_off, None, "it is not of a fault before");
        // A phase whose last ops were answered ends with no time that it cut off.
        service.open = vec![None; 2];
        let effect = service.effect(0, 2_000 * MS, 6_000 * MS);
        assert_eq!((effect.cut_off, effect.thread_is_cut_off), (None, false));
    }

    #[test]
    fn a_thread_that_was_served_last_leaves_no_open_time() {
        let ended = |waits: bool, at: u64| {
            let mut own = Acknowledged::new(10, LEAST_GAP_NS, STEP_NS);
            own.begin(0, 0);
            own.add(3 * MS);
            own.waits(waits);
            own.end(at);
            (own.gaps().to_vec(), own.open_until())
        };
        assert_eq!(ended(true, 40 * MS), (vec![(3 * MS, 40 * MS)], Some(40 * MS)));
        assert_eq!(ended(false, 40 * MS), (vec![(3 * MS, 40 * MS)], None), "it was only not scheduled");
        assert_eq!(ended(true, 9 * MS), (Vec::new(), None), "shorter than what is kept");
    }

    proptest! {
        /// The overlap of the gaps is what a single list of all acknowledgements shows.
        #[test]
        fn threads_together_have_the_gaps_of_their_merged_acknowledgements(
            threads in proptest::collection::vec(
                proptest::collection::vec(0_u64..40 * MS, 0..60), 1..5
            )
        ) {
            let summed = |steps: &Vec<u64>| -> Vec<u64> {
                steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect()
            };
            let moments: Vec<Vec<u64>> = threads.iter().map(summed).collect();
            let end = moments.iter().flatten().max().copied().unwrap_or(0) + 15 * MS;
            let service = service(&moments, end);
            let mut merged: Vec<u64> = moments.into_iter().flatten().chain([0, end]).collect();
            merged.sort_unstable();
            let expected: Vec<Span> = merged
                .windows(2)
                .map(|pair| (pair[0], pair[1]))
                .filter(|(from, to)| to - from >= LEAST_GAP_NS)
                .collect();
            let lists: Vec<&[Span]> = service.threads.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(common(&lists, LEAST_GAP_NS), expected);
        }
    }
}
