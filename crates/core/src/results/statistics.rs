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

/// The ranks of rows that are sorted by what orders compare, the best first. `is_ahead(a, b)`: row `a` is significantly ahead
/// of row `b`; `is_leader(a)`: row `a` may be the first. Ranks never improve from one row to the next: if they would, the
/// ranges are widened.
pub fn ranks(
    rows: usize,
    is_ahead: impl Fn(usize, usize) -> bool,
    is_leader: impl Fn(usize) -> bool,
) -> Vec<Rank> {
    let count = |is: &dyn Fn(usize) -> bool| (0..rows).filter(|other| is(*other)).count() as u32;
    let of = rows as u32;
    let mut ranks: Vec<Rank> = (0..rows)
        .map(|row| Rank {
            // One that is no leader is behind another, even if it is not known which.
            best: 1 + count(&|other| is_ahead(other, row)).max(u32::from(!is_leader(row))),
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn computes_medians() {
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn the_interval_of_a_median_uses_order_statistics() {
        assert_eq!(interval_of_median(&[1.0]), None);
        // Runs, the first and last place of the interval, and its level: 1 - 2 P(Binomial(runs, 1/2) < first).
        let cases = [
            (2, 1, 2, 0.5),
            (3, 1, 3, 0.75),
            (5, 1, 5, 0.9375),
            (6, 1, 6, 0.968_75),
            (7, 1, 7, 0.984_375),
            (9, 2, 8, 0.960_937_5),
            (10, 2, 9, 0.978_515_625),
            (20, 6, 15, 0.958_610_534_667_968_8),
        ];
        for (runs, low, high, level) in cases {
            let sample: Vec<f64> = (1..=runs).rev().map(f64::from).collect();
            let expected = Interval { low: f64::from(low), high: f64::from(high), level };
            assert_eq!(interval_of_median(&sample), Some(expected), "{runs} runs");
        }
    }

    /// The ranks of this many rows as text; the first row of each pair is ahead of the second.
    fn ranks_of(rows: usize, ahead: &[(usize, usize)]) -> Vec<String> {
        let is_leader = |row: usize| ahead.iter().all(|(_, behind)| *behind != row);
        let ranks = ranks(rows, |first, second| ahead.contains(&(first, second)), is_leader);
        ranks.iter().map(Rank::to_string).collect()
    }

    #[test]
    fn ranks_are_ranges_of_places() {
        assert_eq!(ranks_of(3, &[(0, 1), (0, 2), (1, 2)]), ["1", "2", "3"]);
        assert_eq!(ranks_of(3, &[(0, 2), (1, 2)]), ["1-2", "1-2", "3"]);
        assert_eq!(ranks_of(4, &[(0, 3)]), ["1-3", "~", "~", "2-4"]);
        assert_eq!(ranks_of(1, &[]), ["1"]);
        assert_eq!(ranks_of(2, &[]), ["~", "~"]);
        assert_eq!(ranks_of(0, &[]), Vec::<String>::new());
    }

    #[test]
    fn a_noisy_row_does_not_get_a_better_rank_than_a_faster_one() {
        // Row 1 is significantly behind row 0; row 2 has a lower median and is so noisy that nothing is known about it.
        assert_eq!(ranks_of(3, &[(0, 1)]), ["1-2", "~", "~"]);
    }

    #[test]
    fn a_row_that_is_no_leader_is_not_the_first_even_if_no_order_says_so() {
        let ranks = ranks(3, |_, _| false, |row| row < 2);
        assert_eq!(ranks.iter().map(Rank::to_string).collect::<Vec<_>>(), ["~", "~", "2-3"]);
    }

    #[test]
    fn computes_geometric_means_and_ratios() {
        assert!((geometric_mean(&[1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(ratio(3.0, 2.0), Some(1.5));
        assert_eq!(ratio(3.0, 0.0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_interval_contains_the_median_and_lies_in_the_range(
            sample in proptest::collection::vec(0.001_f64..1e9, 2..40)
        ) {
            let middle = median(&sample).unwrap();
            let interval = interval_of_median(&sample).unwrap();
            let (least, most) = sample.iter().fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
            prop_assert!(interval.low <= middle && middle <= interval.high);
            prop_assert!(least <= interval.low && interval.high <= most);
            prop_assert!(sample.len() < 6 || interval.level >= LEVEL);
        }

        #[test]
        fn ranks_never_improve_down_a_table_and_claim_no_more_than_the_pairs(
            pairs in proptest::collection::vec((0_usize..9, 0_usize..9), 0..30)
        ) {
            let is_ahead = |first: usize, second: usize| first != second && pairs.contains(&(first, second));
            let is_leader = |row: usize| !(0..9).any(|other| is_ahead(other, row));
            let ranks = ranks(9, is_ahead, is_leader);
            for row in 0..9 {
                let ahead = (0..9).filter(|other| is_ahead(*other, row)).count() as u32;
                prop_assert!(ranks[row].best <= ahead + 1 && ranks[row].worst <= 9 && ranks[row].best >= 1);
                if row > 0 {
                    prop_assert!(ranks[row - 1].best <= ranks[row].best && ranks[row - 1].worst <= ranks[row].worst);
                }
            }
        }
    }
}
