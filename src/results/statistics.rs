//! Medians with exact intervals, geometric means and ratios.
//!
//! The interval of a median is bounded by two runs: the i-th smallest and the i-th largest. For independent runs of one
//! distribution it covers the true median with a probability that depends only on their number, not on the distribution
//! (David and Nagaraja, Order Statistics, 3rd ed., 7.1). That probability is the interval's level.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// The minimum level of the intervals of medians, if there are enough runs for it: six or more.
pub const LEVEL: f64 = 0.95;

/// The minimum number of runs for an interval.
pub const FEWEST_FOR_INTERVAL: usize = 2;

/// The minimum number of runs (blocks) for an order of engines.
pub const FEWEST_FOR_ORDER: usize = 5;

/// An interval from `low` to `high`, both included, in the unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability that such an interval covers the true value, 0 to 1.
    pub level: f64,
}

/// The middle value of a sample, or the mean of the middle two; none if it is empty or has a value that is not finite.
pub fn median(sample: &[f64]) -> Option<f64> {
    let sorted = sorted(sample)?;
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    })
}

/// The sample in ascending order; none if it is empty or has a value that is not finite.
fn sorted(sample: &[f64]) -> Option<Vec<f64>> {
    if sample.is_empty() || sample.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The interval of the median: the narrowest one at a level of at least [`LEVEL`], or the range of the sample if even
/// that has a lower level. None for fewer than two values and for values that are not finite.
pub fn interval_of_median(sample: &[f64]) -> Option<Interval> {
    let sorted = sorted(sample)?;
    let runs = sorted.len();
    if runs < FEWEST_FOR_INTERVAL {
        return None;
    }
    let mut cut = 0;
    while cut + 1 < runs.div_ceil(2) && order_statistic_level(runs, cut + 1) >= LEVEL {
        cut += 1;
    }
    Some(Interval { low: sorted[cut], high: sorted[runs - 1 - cut], level: order_statistic_level(runs, cut) })
}

/// The probability that the interval of `runs` values, without the `cut` smallest and the `cut` largest, covers the
/// median: 1 - 2 P(Binomial(runs, 1/2) <= cut).
pub fn order_statistic_level(runs: usize, cut: usize) -> f64 {
    let (mut probability, mut below) = (0.5_f64.powi(runs.min(1_000) as i32), 0.0);
    for count in 0..=cut {
        below += probability;
        probability *= (runs - count) as f64 / (count + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// The range of places of a table, counted from 1, that contains an engine's true place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// One more than the number of engines that are significantly ahead.
    pub best: u32,
    /// The number of engines minus those that are significantly behind.
    pub worst: u32,
    /// Engines that are ranked together.
    pub of: u32,
}

impl Rank {
    /// Whether nothing is known about its place.
    pub fn is_open(self) -> bool {
        self.of > 1 && self.best == 1 && self.worst == self.of
    }

    /// Whether it is significantly ahead of all others.
    pub fn is_first(self) -> bool {
        self.worst == 1
    }
}

impl fmt::Display for Rank {
    /// `2`, `1-4`, or `~` if nothing is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            rank if rank.is_open() => f.pad("~"),
            Rank { best, worst, .. } if best == worst => f.pad(&best.to_string()),
            Rank { best, worst, .. } => f.pad(&format!("{best}-{worst}")),
        }
    }
}

/// The ranks of rows that are sorted by their medians, the best first. `is_ahead(a, b)`: row `a` is significantly ahead of
/// row `b`. Ranks never improve from one row to the next: if they would, the ranges are widened.
pub fn ranks(rows: usize, is_ahead: impl Fn(usize, usize) -> bool) -> Vec<Rank> {
    let count = |is: &dyn Fn(usize) -> bool| (0..rows).filter(|other| is(*other)).count() as u32;
    let of = rows as u32;
    let mut ranks: Vec<Rank> = (0..rows)
        .map(|row| Rank {
            best: 1 + count(&|other| is_ahead(other, row)),
            worst: of - count(&|other| is_ahead(row, other)),
            of,
        })
        .collect();
    for row in 1..rows {
        ranks[row].worst = ranks[row].worst.max(ranks[row - 1].worst);
        let above = rows - 1 - row;
        ranks[above].best = ranks[above].best.min(ranks[above + 1].best);
    }
    ranks
}

/// The order of rows in a table: higher values first, rows without a value last.
pub(super) fn higher_first(left: Option<f64>, right: Option<f64>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => right.total_cmp(&left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// The geometric mean, which is the fair mean of ratios; none if the sample is empty or has a value that is not finite and
/// over 0.
pub fn geometric_mean(sample: &[f64]) -> Option<f64> {
    if sample.is_empty() || sample.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    Some((sample.iter().map(|value| value.ln()).sum::<f64>() / sample.len() as f64).exp())
}

/// `value` as a multiple of `base`; none if that is undefined (a base of 0, or a value that is not finite).
pub fn ratio(value: f64, base: f64) -> Option<f64> {
    let ratio = value / base;
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests;
