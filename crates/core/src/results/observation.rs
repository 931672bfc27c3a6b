//! What runs of a phase whose requests arrive at a rate show of limits: the counts that a search and a choice are judged by.

use super::steady::WHOLE_ROW_NS;
use super::{PhaseRecord, Unfit};
use kvdyno_load::search::{Limit, Limits, Metric, Observation, Window};
use kvdyno_measure::{Histogram, SeriesRow};

/// A last second with less than this part of the mean rate is a stall.
const STALLED: f64 = 0.5;

/// What runs of a phase at the same rate show together: the windows of one after those of the other.
pub fn observation(runs: &[&PhaseRecord], limits: &Limits) -> Observation {
    let mut whole = Observation::default();
    let mut sent = 0;
    for phase in runs {
        let own = of_run(phase, limits);
        sent += phase.arrivals.as_ref().map_or(0, |arrivals| arrivals.sent);
        whole.seconds += own.seconds;
        whole.windows.extend(own.windows);
        whole.max_ns = whole.max_ns.max(own.max_ns);
        whole.backlog = whole.backlog.max(own.backlog);
        whole.backlog_grows |= own.backlog_grows;
        whole.stalled_at_end |= own.stalled_at_end;
        whole.sender_late |= own.sender_late;
    }
    whole.achieved = if whole.seconds > 0.0 { sent as f64 / whole.seconds } else { 0.0 };
    whole
}

/// What a run shows, without the requests that are answered per second.
fn of_run(phase: &PhaseRecord, limits: &Limits) -> Observation {
    let response = phase.times(|kind| &kind.response_ns);
    let arrivals = phase.arrivals.as_ref();
    let unfit = arrivals.and_then(|arrivals| arrivals.unfit(&response));
    let whole: Vec<&SeriesRow> = phase.series.iter().filter(|row| row.interval_ns >= WHOLE_ROW_NS).collect();
    let mut windows: Vec<Window> = whole.iter().map(|row| window(&row.response_times(), limits)).collect();
    // Requests that still wait, and those of a last short row, belong to the last window.
    let (all, dropped) = (window(&response, limits), arrivals.map_or(0, |arrivals| arrivals.dropped));
    let sum = |of: &dyn Fn(&Window) -> u64| windows.iter().map(of).sum::<u64>();
    let requests = all.requests.saturating_sub(sum(&|window| window.requests));
    let over: Vec<u64> = (0..all.over.len())
        .map(|place| all.over[place].saturating_sub(sum(&|window| window.over[place])))
        .collect();
    match windows.last_mut() {
        Some(last) => {
            last.requests += requests + dropped;
            last.errors += dropped;
            last.over.iter_mut().zip(over).for_each(|(own, more)| *own += more);
        }
        None => windows.push(Window { requests: all.requests + dropped, errors: dropped, over: all.over }),
    }
    let mean = phase.ops as f64 / (phase.elapsed_ns as f64 / 1e9);
    let last = whole.last().map_or(mean, |row| row.ops as f64 / (row.interval_ns as f64 / 1e9));
    Observation {
        seconds: phase.elapsed_ns as f64 / 1e9,
        windows,
        max_ns: response.max_ns().unwrap_or(0),
        achieved: 0.0,
        backlog: arrivals.map_or(0, |arrivals| arrivals.waiting),
        backlog_grows: matches!(unfit, Some(Unfit::NotSustained(_))),
        stalled_at_end: last < mean * STALLED,
        // No engine tells its debt yet.
        debt_grows: None,
        sender_late: unfit.is_some_and(|unfit| !matches!(unfit, Unfit::NotSustained(_))),
    }
}

/// A window of these response times.
fn window(times: &Histogram, limits: &Limits) -> Window {
    let over = |longest: u64| {
        times.buckets().filter(|bucket| bucket.highest_ns > longest).map(|bucket| bucket.count).sum()
    };
    let of = |limit: &Limit| match limit.metric() {
        Metric::Errors | Metric::Backlog => 0,
        _ => limit.longest_ns().map_or(0, over),
    };
    Window { requests: times.count(), errors: 0, over: limits.list().iter().map(of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture::sketch::{PhaseSketch, Sketch, at_rate, drawn};
    use kvdyno_load::search::Verdict;

    fn judge(runs: &[&PhaseRecord], limits: &str) -> Verdict {
        let limits: Limits = limits.parse().unwrap();
        observation(runs, &limits).judge(&limits, 0.99).verdict
    }

    /// A run of 400 requests, of which `over` took 2 ms and the others 10 us.
    fn run(over: u64) -> PhaseRecord {
        let phases = [PhaseSketch::new("read", &["get"], 400)];
        let (_, records) = drawn(&[Sketch { phases: &phases, engines: &["lmdb"], runs: 1, ..Sketch::EMPTY }]);
        let mut response = Histogram::new();
        response.record_n(10_000, 400 - over);
        response.record_n(2_000_000, over);
        at_rate(&records[0].phases[0], "poisson:400", &response)
    }

    #[test]
    fn runs_that_are_too_small_alone_carry_a_limit_together() {
        // p99 needs 459 requests, if none is over the limit.
        let run = run(0);
        assert_eq!(judge(&[&run], "p99<1ms"), Verdict::Unclear);
        assert_eq!(judge(&[&run, &run], "p99<1ms"), Verdict::Kept);
        assert_eq!(judge(&[], "p99<1ms"), Verdict::Unclear);
    }

    #[test]
    fn one_bad_run_counts_among_good_ones() {
        let (good, bad) = (run(0), run(80));
        assert_eq!(judge(&[&good, &good, &good, &good, &good], "p99<1ms"), Verdict::Kept);
        assert_ne!(judge(&[&good, &good, &good, &good, &bad], "p99<1ms"), Verdict::Kept);
        assert_eq!(judge(&[&bad, &bad, &bad], "p99<1ms"), Verdict::Broken);
        assert_eq!(judge(&[&good, &bad], "max<1ms"), Verdict::Broken);
        let mut growing = good.clone();
        growing.arrivals.as_mut().unwrap().growth_per_second = Some(7.0);
        assert_eq!(judge(&[&good, &good, &growing], "p99<1ms"), Verdict::Broken);
    }
}
