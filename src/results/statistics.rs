//! Medians, their intervals, and ranks that say no more than the intervals carry.
//!
//! The interval of a median is a percentile bootstrap of [`RESAMPLES`] resamples from a fixed seed, so that the same
//! results always give the same report. For five runs or fewer it is the range of the runs, for each run at an end of
//! the range is the median of more than 2.5 % of the resamples; [`coverage_of_range`] says how much that covers.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 10_000;

/// The seed of every bootstrap: "kvdyno" in ASCII.
pub const SEED: u64 = 0x006b_7664_796e_6f00;

/// The share of resamples that lie inside an interval.
pub const CONFIDENCE: f64 = 0.95;

/// The fewest runs that have an interval.
pub const FEWEST_FOR_INTERVAL: usize = 3;

/// The fewest runs over which anything may be called a winner.
pub const FEWEST_FOR_WINNER: usize = 5;

/// From `low` to `high`, both included, in the unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// True if some value lies in both; ends that touch do.
    pub fn overlaps(&self, other: &Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The middle of a sample, or the mean of the middle two; none if it is empty or holds what is not a finite number.
pub fn median(sample: &[f64]) -> Option<f64> {
    if sample.is_empty() || sample.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(median_of_sorted(&sorted))
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// The 95 % bootstrap interval of the median; none for fewer than three values and for values that are not finite.
pub fn interval_of_median(sample: &[f64]) -> Option<Interval> {
    if sample.len() < FEWEST_FOR_INTERVAL || median(sample).is_none() {
        return None;
    }
    if sample.len() <= FEWEST_FOR_WINNER {
        // The range is what the resamples would give, see above.
        let (low, high) = sample.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
        return Some(Interval { low, high });
    }
    let mut draws = Draws::new(SEED);
    let mut drawn = vec![0.0; sample.len()];
    let medians = (0..RESAMPLES).map(|_| draws.median_of_resample(sample, &mut drawn)).collect();
    Some(percentile_interval(medians, CONFIDENCE))
}

/// How much of the time the range of `runs` values covers the median that they were drawn around: 1 - 2^(1 - runs).
pub fn coverage_of_range(runs: usize) -> f64 {
    1.0 - 0.5_f64.powi(runs.saturating_sub(1).min(1_000) as i32)
}

/// The middle `confidence` of the values; `values` is not empty.
pub(super) fn percentile_interval(mut values: Vec<f64>, confidence: f64) -> Interval {
    values.sort_by(f64::total_cmp);
    let outside_each_side = ((1.0 - confidence) / 2.0 * values.len() as f64).floor() as usize;
    let outside_each_side = outside_each_side.min((values.len() - 1) / 2);
    Interval { low: values[outside_each_side], high: values[values.len() - 1 - outside_each_side] }
}

/// The draws of a bootstrap: splitmix64, which is enough for resampling and the same on every machine.
pub(super) struct Draws(u64);

impl Draws {
    /// The same seed gives the same draws.
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// The median of as many draws with replacement as the sample has values; `drawn` is room for them.
    pub fn median_of_resample(&mut self, sample: &[f64], drawn: &mut [f64]) -> f64 {
        for slot in drawn.iter_mut() {
            // Multiply and shift; its bias is under 2^-50 for samples of thousands.
            let place = (u128::from(self.next_u64()) * sample.len() as u128) >> 64;
            *slot = sample[place as usize];
        }
        drawn.sort_by(f64::total_cmp);
        median_of_sorted(drawn)
    }
}

/// A row's place in a ranking of values of which the higher is the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// One more than the number of rows whose interval lies wholly above this one's.
    pub place: u32,
    /// Its interval overlaps that of another row, so that the order of the two is open.
    pub tied: bool,
}

/// The ranks of rows by their intervals, in the order given; a row without an interval has no rank and ties with none.
///
/// Overlap is not transitive: of three rows the outer two may be apart while both overlap the middle one. So a place
/// counts only the rows that are surely ahead, and equal places and the tie mark say what is open.
pub fn ranks(intervals: &[Option<Interval>]) -> Vec<Option<Rank>> {
    let rank_of = |(row, interval): (usize, &Option<Interval>)| {
        let own = interval.as_ref()?;
        let others = intervals.iter().enumerate().filter(|(other, _)| *other != row);
        let others: Vec<&Interval> = others.filter_map(|(_, interval)| interval.as_ref()).collect();
        let ahead = others.iter().filter(|other| other.low > own.high).count();
        Some(Rank { place: ahead as u32 + 1, tied: others.iter().any(|other| other.overlaps(own)) })
    };
    intervals.iter().enumerate().map(rank_of).collect()
}

/// The order of rows in a table: the higher value first, rows without one last.
pub(super) fn higher_first(left: Option<f64>, right: Option<f64>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => right.total_cmp(&left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// The geometric mean, the fair mean of ratios; none if the sample is empty or holds what is not over 0 and finite.
pub fn geometric_mean(sample: &[f64]) -> Option<f64> {
    if sample.is_empty() || sample.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    Some((sample.iter().map(|value| value.ln()).sum::<f64>() / sample.len() as f64).exp())
}

/// `value` as a multiple of `base`; none where that has no meaning (a base of 0, or what is not finite).
pub fn ratio(value: f64, base: f64) -> Option<f64> {
    let ratio = value / base;
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests;
