//! Compares two runs: the same figure of the same cell in each, and whether it has changed.
//!
//! The repetitions of two runs do not form blocks: the third trial of one has no relation to the third of the other. So
//! the two samples are independent. The means of their logs are compared by Welch's test, with variances moderated over
//! all rows of one figure and outliers excluded ([`super::variance`]), and the p values of all rows that are shown
//! together are corrected by Holm's method. Changes of the machine between the two runs count as changes of the engine.

mod conditions;
mod runs;

pub use conditions::Conditions;
pub use runs::{Row, RunComparison, Side};

use super::statistics::{FEWEST_FOR_ORDER, Interval, median};
use super::variance::{Difference, RESOLUTION, Sampled, Variance, kept, mean, moderated};
use serde::{Deserialize, Serialize};

/// The maximum probability of one or more false verdicts among all compared rows: a change is reported if its corrected p
/// is below this.
pub const FAMILY_ERROR: f64 = 0.05;

/// The same for rows with three or four runs on one side. So few runs of an engine with two modes may all be in the same
/// mode, which hides its noise (`benches/statistics`).
pub const FAMILY_ERROR_OF_FEW: f64 = 0.02;

/// The minimum number of runs on each side of a comparison.
pub const FEWEST_RUNS: usize = 3;

/// The direction of an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Higher values are better: ops per second.
    Higher,
    /// Lower values are better: latency, bytes.
    Lower,
}

/// The result for the second run compared with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// Inconclusive.
    Open,
}

/// A figure of a cell in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Values of the first run.
    pub base_runs: usize,
    /// Values of the second run.
    pub new_runs: usize,
    /// Geometric mean of the first run, without outliers.
    pub base_mean: f64,
    /// Geometric mean of the second run, without outliers.
    pub new_mean: f64,
    /// The second mean as a multiple of the first.
    pub ratio: f64,
    /// The interval of that ratio, at 95 % for this row alone.
    pub interval: Interval,
    /// The two-sided p, corrected for all rows that are compared together.
    pub p: f64,
    /// Values that were excluded as outliers, in both runs.
    pub set_aside: usize,
    /// The verdict.
    pub verdict: Verdict,
}

/// Rows that are compared together.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Option<Comparison>>,
    better: Vec<Better>,
}

impl Rows {
    /// Adds the rows of one figure: for each cell the values of the first run and those of the second. `step` returns the
    /// step size of the figure near a value, in its unit; it is the minimum noise, also of equal values. A cell with fewer
    /// than three values on one side, or with a value that is not finite and over 0, cannot be compared.
    pub fn add(&mut self, cells: &[(Vec<f64>, Vec<f64>)], better: Better, step: impl Fn(f64) -> f64) {
        let logs = |values: &[f64]| {
            let is_sound = |value: &f64| value.is_finite() && *value > 0.0;
            (values.len() >= FEWEST_RUNS && values.iter().all(is_sound))
                .then(|| values.iter().map(|value| value.ln()).collect::<Vec<f64>>())
        };
        let logs: Vec<Option<[Vec<f64>; 2]>> =
            cells.iter().map(|(base, new)| Some([logs(base)?, logs(new)?])).collect();
        let samples: Vec<&Vec<f64>> = logs.iter().flatten().flatten().collect();
        // The standard deviation of a uniform distribution over one step, as a share of the value.
        let resolution = |logs: &&Vec<f64>| {
            let value = median(logs).unwrap_or_default().exp();
            (step(value) / value / 12_f64.sqrt()).max(RESOLUTION)
        };
        let resolutions: Vec<f64> = samples.iter().map(resolution).collect();
        let mut kept_samples = without_outliers(&samples, &resolutions).into_iter();
        let kept_logs: Vec<Option<[Vec<f64>; 2]>> = logs
            .iter()
            .map(|row| row.as_ref().and_then(|_| Some([kept_samples.next()?, kept_samples.next()?])))
            .collect();
        let all_kept = kept_logs.iter().flatten().flatten();
        let own: Vec<Variance> = all_kept
            .zip(&resolutions)
            .filter_map(|(logs, resolution)| Variance::of(logs, *resolution))
            .collect();
        let total: f64 = own.iter().map(|variance| variance.degrees).sum();
        let mut variances = moderated(&own).into_iter();
        for ((base, new), logs) in cells.iter().zip(kept_logs) {
            let compared = logs.and_then(|[base_logs, new_logs]| {
                let (base_variance, new_variance) = (variances.next()?, variances.next()?);
                let difference = Difference::new(
                    mean(&new_logs)? - mean(&base_logs)?,
                    Sampled { variance: base_variance, runs: base_logs.len() as f64 },
                    Sampled { variance: new_variance, runs: new_logs.len() as f64 },
                    total,
                );
                let reach = difference.reach(0.05);
                Some(Comparison {
                    base_runs: base.len(),
                    new_runs: new.len(),
                    base_mean: mean(&base_logs)?.exp(),
                    new_mean: mean(&new_logs)?.exp(),
                    ratio: difference.value.exp(),
                    interval: Interval {
                        low: (difference.value - reach).exp(),
                        high: (difference.value + reach).exp(),
                        level: 0.95,
                    },
                    p: difference.p(),
                    set_aside: base.len() + new.len() - base_logs.len() - new_logs.len(),
                    verdict: Verdict::Open,
                })
            });
            self.rows.push(compared);
            self.better.push(better);
        }
    }

    /// All rows, in the order in which they were added, with corrected p values and verdicts; none for cells that cannot
    /// be compared.
    pub fn finish(mut self) -> Vec<Option<Comparison>> {
        let corrected = holm(&self.rows.iter().flatten().map(|row| row.p).collect::<Vec<f64>>());
        let rows =
            self.rows.iter_mut().zip(&self.better).filter_map(|(row, better)| Some((row.as_mut()?, better)));
        for ((row, better), p) in rows.zip(corrected) {
            row.p = p;
            let runs = row.base_runs.min(row.new_runs);
            let limit = if runs < FEWEST_FOR_ORDER { FAMILY_ERROR_OF_FEW } else { FAMILY_ERROR };
            row.verdict = match (p < limit, better, row.ratio > 1.0) {
                (false, _, _) => Verdict::Open,
                (true, Better::Higher, true) | (true, Better::Lower, false) => Verdict::Better,
                (true, Better::Higher, false) | (true, Better::Lower, true) => Verdict::Worse,
            };
        }
        self.rows
    }
}

/// The samples without their outliers. There are no common blocks, so deviations are from each sample's median.
fn without_outliers(samples: &[&Vec<f64>], resolutions: &[f64]) -> Vec<Vec<f64>> {
    let deviations = |logs: &&Vec<f64>| {
        let middle = median(logs).unwrap_or_default();
        logs.iter().map(|log| log - middle).collect::<Vec<f64>>()
    };
    let kept = kept(&samples.iter().map(deviations).collect::<Vec<_>>(), resolutions);
    let keep = |(logs, kept): (&&Vec<f64>, Vec<bool>)| {
        logs.iter().zip(kept).filter(|(_, kept)| *kept).map(|(log, _)| *log).collect()
    };
    samples.iter().zip(kept).map(keep).collect()
}

/// The p values of a family of comparisons, corrected by Holm's method (A Simple Sequentially Rejective Multiple Test
/// Procedure, 1979), in the given order: the probability of any false verdict stays below alpha.
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (place, index) in order.iter().enumerate() {
        let remaining = (p_values.len() - place) as f64;
        largest = largest.max((p_values[*index] * remaining).min(1.0));
        adjusted[*index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests;
