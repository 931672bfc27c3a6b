//! What a run at a fixed rate shows, and what that says of the limits.

use super::binomial::{Verdict, verdict};
use super::limit::{Limits, Metric};
use super::sample::{Sample, sample};

/// A part of a run. All windows of a run are equally long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Requests that arrived in this window, those that failed, were dropped or have no answer yet included.
    pub requests: u64,
    /// How many of them failed or were dropped.
    pub errors: u64,
    /// For each limit of the search, in its order: how many of them took longer than `Limit::longest_ns`. A request
    /// without an answer counts if it has waited for longer. The number is ignored for limits on errors and backlogs.
    pub over: Vec<u64>,
}

/// What a run at a fixed rate shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// How long it was measured, seconds.
    pub seconds: f64,
    /// Its windows, in order: 10 or more, and 20 are best.
    pub windows: Vec<Window>,
    /// The longest response time, nanoseconds.
    pub max_ns: u64,
    /// Requests answered per second.
    pub achieved: f64,
    /// Requests without an answer at the end.
    pub backlog: u64,
    /// Whether the backlog grows, so that response times are a matter of how long the run is. See `backlog_grows`.
    pub backlog_grows: bool,
    /// Whether no request was being answered at the end, so that the response times of a stall are not all known.
    pub stalled_at_end: bool,
    /// Whether work that the engine has put off (compaction) grows. Absent if it is unknown.
    pub debt_grows: Option<bool>,
    /// Whether requests were sent so late that the rate is not the wanted one.
    pub sender_late: bool,
}

/// Whether backlogs at the ends of equally long windows grow, if `requests` have arrived in all of them: each one of the last
/// third is larger than all of the first third, by more than the noise of that many arrivals. A stall, or a slow second, after
/// which the backlog falls again, is no growth.
pub fn backlog_grows(backlogs: &[u64], requests: u64) -> bool {
    let third = backlogs.len() / 3;
    let first = backlogs.iter().take(third).max();
    let last = backlogs.iter().rev().take(third).min();
    match (first, last) {
        (Some(first), Some(last)) => *last as f64 > *first as f64 + (requests as f64).sqrt(),
        _ => false,
    }
}

/// Why a rate is not sustained, whatever its response times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsustained {
    /// The backlog grows.
    BacklogGrows,
    /// Work that the engine has put off grows.
    DebtGrows,
    /// Fewer than 90 % of the requests are answered.
    NotAchieved,
}

/// What an observation says of the limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What it says of all limits together.
    pub verdict: Verdict,
    /// What it says of each limit, in the order of the limits.
    pub verdicts: Vec<Verdict>,
    /// Why the rate is not sustained; absent if it is.
    pub unsustained: Option<Unsustained>,
    /// For each limit on a share: its counts, as if its requests were independent.
    pub(crate) samples: Vec<Option<Sample>>,
}

impl Observation {
    /// Requests that arrived.
    pub fn requests(&self) -> u64 {
        self.windows.iter().map(|window| window.requests).sum()
    }

    /// What it says of limits with confidence `confidence` (0 to 1).
    pub fn judge(&self, limits: &Limits, confidence: f64) -> Judgement {
        let unsustained = self.unsustained();
        let mut samples = Vec::new();
        let mut verdicts = Vec::new();
        for (index, limit) in limits.list().iter().enumerate() {
            let over = |window: &Window| match limit.metric() {
                Metric::Errors => window.errors,
                _ => window.over.get(index).copied().unwrap_or(0),
            };
            let counts: Vec<(u64, u64)> =
                self.windows.iter().map(|window| (window.requests, over(window))).collect();
            let within = |is_within: bool| if is_within { Verdict::Kept } else { Verdict::Broken };
            let (verdict, sample) = match (limit.quantile(), limit.largest_backlog()) {
                (Some(quantile), _) => {
                    let sample = sample(&counts);
                    (verdict(sample.n, sample.over, quantile, confidence), Some(sample))
                }
                (None, Some(largest)) => (within(self.backlog <= largest), None),
                (None, None) => {
                    let is_within = limit.longest_ns().is_none_or(|longest| self.max_ns <= longest);
                    (within(is_within && counts.iter().all(|(_, over)| *over == 0)), None)
                }
            };
            samples.push(sample);
            verdicts.push(verdict);
        }
        let verdict = if self.sender_late || self.requests() == 0 {
            Verdict::Unclear
        } else if unsustained.is_some() || verdicts.contains(&Verdict::Broken) {
            Verdict::Broken
        } else if verdicts.contains(&Verdict::Unclear) || self.stalled_at_end {
            Verdict::Unclear
        } else {
            Verdict::Kept
        };
        Judgement { verdict, verdicts, unsustained, samples }
    }

    /// Why the rate is not sustained.
    fn unsustained(&self) -> Option<Unsustained> {
        // A Poisson stream of 400 requests or more varies by less than half of this.
        const ACHIEVED: f64 = 0.9;
        let wanted = ACHIEVED * self.requests() as f64 / self.seconds;
        if self.backlog_grows {
            Some(Unsustained::BacklogGrows)
        } else if self.debt_grows == Some(true) {
            Some(Unsustained::DebtGrows)
        } else if self.achieved < wanted {
            Some(Unsustained::NotAchieved)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 20 windows of 1,000 requests, of which `over` in each are over the first limit.
    fn run(over: u64) -> Observation {
        let window = Window { requests: 1_000, errors: 0, over: vec![over] };
        Observation { seconds: 1.0, windows: vec![window; 20], achieved: 20_000.0, ..Observation::default() }
    }

    fn judge(observation: &Observation, limits: &str) -> Verdict {
        observation.judge(&limits.parse().expect("limits"), 0.99).verdict
    }

    #[test]
    fn few_over_the_limit_keep_it_unless_the_rate_is_not_sustained() {
        assert_eq!(judge(&run(5), "p99<1ms"), Verdict::Kept);
        assert_eq!(judge(&run(10), "p99<1ms"), Verdict::Unclear);
        assert_eq!(judge(&run(20), "p99<1ms"), Verdict::Broken);
        assert_eq!(judge(&Observation { backlog_grows: true, ..run(5) }, "p99<1ms"), Verdict::Broken);
        assert_eq!(judge(&Observation { debt_grows: Some(true), ..run(5) }, "p99<1ms"), Verdict::Broken);
        assert_eq!(judge(&Observation { debt_grows: Some(false), ..run(5) }, "p99<1ms"), Verdict::Kept);
        assert_eq!(judge(&Observation { achieved: 17_000.0, ..run(5) }, "p99<1ms"), Verdict::Broken);
        assert_eq!(judge(&Observation { stalled_at_end: true, ..run(5) }, "p99<1ms"), Verdict::Unclear);
        assert_eq!(judge(&Observation { sender_late: true, ..run(5) }, "p99<1ms"), Verdict::Unclear);
        assert_eq!(judge(&Observation::default(), "p99<1ms"), Verdict::Unclear);
    }

    #[test]
    fn other_limits_have_rules_of_their_own() {
        assert_eq!(judge(&Observation { max_ns: 999_999, ..run(0) }, "max<1ms"), Verdict::Kept);
        assert_eq!(judge(&Observation { max_ns: 1_000_000, ..run(0) }, "max<1ms"), Verdict::Broken);
        assert_eq!(judge(&Observation { backlog: 9, ..run(0) }, "backlog<10"), Verdict::Kept);
        assert_eq!(judge(&Observation { backlog: 10, ..run(0) }, "backlog<10"), Verdict::Broken);
        let mut failing = run(0);
        assert_eq!(judge(&failing, "errors<0.1%"), Verdict::Kept);
        failing.windows[3].errors = 20;
        failing.windows[9].errors = 22;
        assert_eq!(judge(&failing, "errors<0.1%"), Verdict::Unclear);
        failing.windows.iter_mut().for_each(|window| window.errors = 9);
        assert_eq!(judge(&failing, "errors<0.1%"), Verdict::Broken);
        assert_eq!(judge(&failing, "p99<1ms,errors<0.1%"), Verdict::Broken);
    }

    #[test]
    fn a_backlog_grows_if_it_never_falls_back() {
        let rising: Vec<u64> = (0..20).map(|window| window * 100).collect();
        assert!(backlog_grows(&rising, 100_000));
        assert!(!backlog_grows(&rising, 10_000_000), "it is less than the noise of the arrivals");
        let mut stalled = vec![5; 20];
        stalled[18] = 50_000;
        assert!(!backlog_grows(&stalled, 100_000));
        assert!(!backlog_grows(&[], 0));
    }
}
