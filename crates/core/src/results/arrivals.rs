//! Requests that arrived at a rate, and how well the generator kept their moments.

use kvdyno_measure::Histogram;
use kvdyno_measure::text::{grouped, time_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sender that is later than this at p99.9 is told; nanoseconds.
pub const LATE_NS: u64 = 10_000;
/// The largest part of a response time that may be the sender's lateness.
const LATE_PART: u64 = 10;
/// Gaps whose probability is below this are not those of a Poisson process.
const LEAST_PROBABILITY: f64 = 0.001;

/// The arrivals of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Requests whose moment was in the phase, without warm-up.
    pub due: u64,
    /// Those that were sent.
    pub sent: u64,
    /// Those that were dropped because they were too late.
    pub dropped: u64,
    /// Those that still waited at the end. Their times until then count as waits and as response times, of which they are the least.
    pub waiting: u64,
    /// Requests of phase and warm-up that were neither sent, dropped nor waiting, by a second count of all moments: an error of the
    /// load generator.
    #[serde(default, skip_serializing_if = "crate::results::is_zero")]
    pub unaccounted: u64,
    /// How much faster requests arrived than they were answered, requests per second; none: the backlog does not grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth_per_second: Option<f64>,
    /// How late requests were sent although their thread was free, nanoseconds.
    pub late_ns: Histogram,
    /// The test of the gaps between the moments of requests; none: they are not a Poisson process, or too few were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moments: Option<Gaps>,
    /// The test of the gaps between the moments at which requests were really released. At rates whose gaps are as short as the
    /// sender's own work, or where threads of the engine need its CPU, it fails although response times are right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Gaps>,
    /// CPU time in which senders read the clock until a moment had come, nanoseconds.
    pub spun_ns: u64,
}

/// A test of whether gaps are exponential, at the rate that was asked for: Anderson and Darling, 1954, all parameters known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// Number of gaps.
    pub count: u64,
    /// The statistic, A^2.
    pub statistic: f64,
    /// The probability of such a statistic or a larger one if they are exponential.
    pub probability: f64,
}

impl Gaps {
    /// The test of gaps that are multiples of the mean gap; none: there are fewer than 8.
    pub fn of(mut gaps: Vec<f64>) -> Option<Gaps> {
        if gaps.len() < 8 {
            return None;
        }
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        // With U = 1 - e^-x: ln U, and ln (1 - U) = -x.
        let ln_u = |x: f64| (-(-x.max(1e-12)).exp_m1()).ln();
        let pairs = gaps.iter().zip(gaps.iter().rev()).zip(0_u32..);
        let sum: f64 = pairs.map(|((low, high), place)| f64::from(2 * place + 1) * (ln_u(*low) - high)).sum();
        let statistic = -n - sum / n;
        Some(Gaps { count: gaps.len() as u64, statistic, probability: probability(statistic) })
    }
}

/// The probability of a statistic of at least `z`, by Marsaglia and Marsaglia, "Evaluating the Anderson-Darling distribution",
/// 2004; within 2e-6 for many values.
fn probability(z: f64) -> f64 {
    if z <= 0.0 {
        return 1.0;
    }
    let below = if z < 2.0 {
        let sum =
            2.00012 + (0.247105 - (0.0649821 - (0.0347962 - (0.0116720 - 0.00168691 * z) * z) * z) * z) * z;
        (-1.2337141 / z).exp() / z.sqrt() * sum
    } else {
        let sum = 1.0776 - (2.30695 - (0.43424 - (0.082433 - (0.008056 - 0.0003146 * z) * z) * z) * z) * z;
        (-sum.exp()).exp()
    };
    (1.0 - below).clamp(0.0, 1.0)
}

/// The test that counts, of two.
fn worse(one: Option<Gaps>, other: Option<Gaps>) -> Option<Gaps> {
    let both = one.into_iter().chain(other);
    both.min_by(|one, other| one.probability.total_cmp(&other.probability))
}

/// What stands against the response times of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unfit {
    /// The engine does not keep the rate, so that response times are a function of the phase's length: the backlog grows by so many
    /// requests per second.
    NotSustained(f64),
    /// The generator was not able to send in time: its lateness at a percentile, and the response time there, nanoseconds.
    Late(u64, u64),
    /// The moments are not those of a Poisson process.
    NotPoisson(Gaps),
    /// Requests that the load generator has lost.
    Lost(u64),
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NotSustained(growth) => {
                write!(
                    out,
                    "not sustained: the backlog grows by {} requests/s",
                    grouped(growth.round() as u64)
                )
            }
            Unfit::Late(late, response) => {
                let (late, response) = (time_text(*late as f64), time_text(*response as f64));
                write!(out, "sender late: it was {late} late where response times were {response}")
            }
            Unfit::Lost(count) => {
                write!(out, "requests lost: the load generator did not send {}", grouped(*count))
            }
            Unfit::NotPoisson(gaps) => write!(
                out,
                "not Poisson: of exponential gaps {} would have such a statistic ({:.1}) with probability {:.1e}",
                grouped(gaps.count),
                gaps.statistic,
                gaps.probability
            ),
        }
    }
}

impl Arrivals {
    /// Those of several senders together, or of several rounds; none: one of them has none.
    pub(super) fn of_all<'a>(all: impl Iterator<Item = Option<&'a Arrivals>>) -> Option<Arrivals> {
        let mut all: Vec<&Arrivals> = all.collect::<Option<_>>()?;
        let mut whole = all.pop()?.clone();
        for other in all {
            whole.due = whole.due.saturating_add(other.due);
            whole.sent = whole.sent.saturating_add(other.sent);
            whole.dropped = whole.dropped.saturating_add(other.dropped);
            whole.waiting = whole.waiting.saturating_add(other.waiting);
            whole.unaccounted = whole.unaccounted.saturating_add(other.unaccounted);
            whole.spun_ns = whole.spun_ns.saturating_add(other.spun_ns);
            whole.late_ns.merge(&other.late_ns);
            whole.growth_per_second = match (whole.growth_per_second, other.growth_per_second) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
            whole.moments = worse(whole.moments, other.moments);
            whole.gaps = worse(whole.gaps, other.gaps);
        }
        Some(whole)
    }

    /// What stands against the response times; none: they are those of the engine at this rate. `response`: those of all kinds.
    pub fn unfit(&self, response: &Histogram) -> Option<Unfit> {
        if self.unaccounted > 0 {
            return Some(Unfit::Lost(self.unaccounted));
        }
        if let Some(growth) = self.growth_per_second {
            return Some(Unfit::NotSustained(growth));
        }
        for (part, of) in [(1, 2), (99, 100)] {
            if let Some((late, response)) = self.late_at(response, part, of) {
                return Some(Unfit::Late(late, response));
            }
        }
        self.moments.filter(|gaps| gaps.probability < LEAST_PROBABILITY).map(Unfit::NotPoisson)
    }

    /// The sender's lateness at a percentile, and the response time there, if it is a notable part of that; nanoseconds. None: it is
    /// not, or the sample is too small.
    pub fn late_at(&self, response: &Histogram, part: u64, of: u64) -> Option<(u64, u64)> {
        let late = self.late_ns.quantile_if_enough(part, of)?;
        let response = response.quantile_if_enough(part, of)?;
        (late > LATE_NS && late > response / LATE_PART).then_some((late, response))
    }

    /// The lateness at p99.9, if it is worth telling, nanoseconds.
    pub fn lateness(&self) -> Option<u64> {
        self.late_ns.quantile_if_enough(999, 1000).filter(|late| *late > LATE_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_published_table() {
        // Marsaglia and Marsaglia's examples, and the critical values that everybody uses.
        for (z, wanted) in [(1.933, 0.1), (2.492, 0.05), (3.878, 0.01), (5.97, 0.001)] {
            let found = probability(z);
            assert!((found / wanted - 1.0).abs() < 0.02, "{z}: {found}, not {wanted}");
        }
    }

    #[test]
    fn what_the_engine_or_the_generator_does_not_keep_is_unfit() {
        let histogram = |ns: u64| {
            let mut all = Histogram::new();
            all.record_n(ns, 10_000);
            all
        };
        let arrivals = |late, growth| Arrivals {
            due: 10_000,
            sent: 10_000,
            dropped: 0,
            waiting: 0,
            unaccounted: 0,
            growth_per_second: growth,
            late_ns: histogram(late),
            moments: None,
            gaps: None,
            spun_ns: 0,
        };
        assert_eq!(arrivals(200, None).unfit(&histogram(500)), None, "too little to matter");
        assert_eq!(arrivals(20_000, None).unfit(&histogram(500_000)), None, "a small part");
        assert!(matches!(arrivals(20_000, None).unfit(&histogram(100_000)), Some(Unfit::Late(..))));
        assert_eq!(arrivals(200, Some(7.0)).unfit(&histogram(500)), Some(Unfit::NotSustained(7.0)));
        // Requests of a generator that skips the moments that have passed while its threads were busy.
        let skipping = Arrivals { due: 9_000, sent: 9_000, unaccounted: 1_000, ..arrivals(200, None) };
        assert_eq!(skipping.unfit(&histogram(500)), Some(Unfit::Lost(1_000)));
    }
}
