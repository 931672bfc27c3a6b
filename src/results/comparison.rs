//! The comparison of two samples: the difference of their medians, and whether it is more than chance.
//!
//! A difference is called only when three things agree: the bootstrap interval of the difference leaves out 0, the
//! Mann-Whitney test gives a small p, and the difference is large enough to matter. Trials on noisy machines showed
//! that each of them alone calls too often.

use super::statistics::{
    Draws, FEWEST_FOR_INTERVAL, Interval, RESAMPLES, SEED, median, percentile_interval, ratio,
};
use serde::{Deserialize, Serialize};

/// The largest number of values, of both samples together, for which the exact p is counted.
const EXACT_LIMIT: usize = 50;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Ops per second.
    Higher,
    /// Latency, bytes.
    Lower,
}

/// When a difference is called.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The p below which chance is ruled out; the interval has the confidence 1 - alpha.
    pub alpha: f64,
    /// The change that matters, as a share of the first median: 0.05 is 5 %.
    pub threshold: f64,
}

impl Default for Rule {
    /// p under 0.01, a 99 % interval, and a change over 5 %.
    fn default() -> Rule {
        Rule { alpha: 0.01, threshold: 0.05 }
    }
}

/// What may be said of the second sample, seen from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is better.
    Faster,
    /// It is worse.
    Slower,
    /// No call.
    #[serde(rename = "~")]
    NoCall,
}

impl Verdict {
    /// `faster`, `slower` or `~`.
    pub fn sign(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoCall => "~",
        }
    }
}

/// Two samples of one figure, the second seen from the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Values of the first sample.
    pub first_runs: usize,
    /// Values of the second sample.
    pub second_runs: usize,
    /// Median of the first.
    pub first_median: f64,
    /// Median of the second.
    pub second_median: f64,
    /// The second median as a multiple of the first; none if the first is 0.
    pub ratio: Option<f64>,
    /// The second median less the first, in the unit of the samples.
    pub difference: f64,
    /// The bootstrap interval of the difference; none if a sample has fewer than three values.
    pub interval: Option<Interval>,
    /// Two-sided p of the Mann-Whitney test.
    pub p: f64,
    /// What may be said.
    pub verdict: Verdict,
}

impl Comparison {
    /// Compares the second sample with the first; none if one is empty or holds what is not a finite number.
    pub fn new(first: &[f64], second: &[f64], better: Better, rule: Rule) -> Option<Comparison> {
        let (first_median, second_median) = (median(first)?, median(second)?);
        let difference = second_median - first_median;
        let interval = interval_of_difference(first, second, 1.0 - rule.alpha);
        let p = mann_whitney(first, second)?;
        let apart = interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0);
        let matters = difference.abs() > rule.threshold * first_median.abs();
        let verdict = match (apart && matters && p < rule.alpha, better, difference > 0.0) {
            (false, _, _) => Verdict::NoCall,
            (true, Better::Higher, true) | (true, Better::Lower, false) => Verdict::Faster,
            (true, Better::Higher, false) | (true, Better::Lower, true) => Verdict::Slower,
        };
        Some(Comparison {
            first_runs: first.len(),
            second_runs: second.len(),
            first_median,
            second_median,
            ratio: ratio(second_median, first_median),
            difference,
            interval,
            p,
            verdict,
        })
    }
}

fn interval_of_difference(first: &[f64], second: &[f64], confidence: f64) -> Option<Interval> {
    if first.len().min(second.len()) < FEWEST_FOR_INTERVAL {
        return None;
    }
    let mut draws = Draws::new(SEED);
    let (mut first_drawn, mut second_drawn) = (vec![0.0; first.len()], vec![0.0; second.len()]);
    let differences = (0..RESAMPLES)
        .map(|_| {
            let from = draws.median_of_resample(first, &mut first_drawn);
            draws.median_of_resample(second, &mut second_drawn) - from
        })
        .collect();
    Some(percentile_interval(differences, confidence))
}

/// The two-sided p of the Mann-Whitney test; none if a sample is empty or holds what is not a finite number.
///
/// Up to 50 values together it is exact, with ties (the permutation distribution of the ranks as they are); beyond, the
/// normal approximation with the corrections for ties and continuity.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<f64> {
    if median(first).is_none() || median(second).is_none() {
        return None;
    }
    let ranks = doubled_ranks(first, second);
    let rank_sum: usize = ranks[..first.len()].iter().sum();
    if ranks.len() <= EXACT_LIMIT {
        Some(exact_p(&ranks, first.len(), rank_sum))
    } else {
        Some(normal_p(&ranks, first.len(), rank_sum))
    }
}

/// Twice the rank of each value among all, first sample first; ties share their mean rank, which doubled is whole.
fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let rank = |value: &f64| {
        let below = all.iter().filter(|other| *other < value).count();
        let equal = all.iter().filter(|other| *other == value).count();
        2 * below + equal + 1
    };
    all.iter().map(rank).collect()
}

/// Counts, of all ways to choose the first sample among the ranks, those with a sum as far from the mean.
fn exact_p(ranks: &[usize], chosen: usize, rank_sum: usize) -> f64 {
    let largest_sum: usize = ranks.iter().sum();
    // ways[count][sum]: the number of choices of `count` of the ranks seen so far that add up to `sum`.
    let mut ways = vec![vec![0.0_f64; largest_sum + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for count in (1..=chosen).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            for sum in *rank..=largest_sum {
                more[0][sum] += fewer[count - 1][sum - rank];
            }
        }
    }
    let all: f64 = ways[chosen].iter().sum();
    let at_most: f64 = ways[chosen][..=rank_sum].iter().sum();
    let at_least: f64 = ways[chosen][rank_sum..].iter().sum();
    (2.0 * at_most.min(at_least) / all).min(1.0)
}

fn normal_p(ranks: &[usize], chosen: usize, rank_sum: usize) -> f64 {
    let (all, chosen_count) = (ranks.len() as f64, chosen as f64);
    let mean_rank = (all + 1.0) / 2.0;
    // The variance of a sum drawn without replacement, from the ranks as they are, which accounts for ties.
    let spread: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0 - mean_rank).powi(2)).sum::<f64>() / all;
    let variance = chosen_count * (all - chosen_count) / (all - 1.0) * spread;
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = (rank_sum as f64 / 2.0 - chosen_count * mean_rank).abs();
    let z = (distance - 0.5).max(0.0) / variance.sqrt();
    statrs::function::erf::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The p values of a family of comparisons after Holm, in the order given: the chance of even one false call stays
/// below alpha.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (place, index) in order.iter().enumerate() {
        let scaled = p_values[*index] * (p_values.len() - place) as f64;
        largest = largest.max(scaled.min(1.0));
        adjusted[*index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests;
