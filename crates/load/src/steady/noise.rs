//! The noise of a series and how long it persists, distinguished from changes of its level.

/// The mean of the smallest nine tenths of the squares of normal numbers with variance one.
const TRIMMED_SQUARE: f64 = 0.623;
/// Noise that persists more than this is a change of level.
pub(super) const MOST_PERSISTENCE: f64 = 0.8;
/// A variance of less is rounding: a standard deviation of one in a million.
pub(super) const LEAST_VARIANCE: f64 = 1e-12;

/// Noise as an autoregression of order one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    /// The variance of one row.
    pub variance: f64,
    /// The correlation of a row with the next, from 0 to 0.8.
    pub persistence: f64,
}

impl Noise {
    /// How many rows say as much about a mean as one independent row.
    pub(super) fn rows_per_independent(&self) -> f64 {
        (1.0 + self.persistence) / (1.0 - self.persistence)
    }

    /// The standard error of the mean of some rows.
    pub(super) fn error_of_mean(&self, rows: f64) -> f64 {
        (self.variance * self.rows_per_independent() / rows).sqrt()
    }
}

/// The noise of `values`, from differences at lags 1 to 3 (the variogram), in which a trend cancels out and the few
/// differences across a step are trimmed.
pub(super) fn noise(values: &[f64]) -> Noise {
    let nearest = spread(values, 1);
    if nearest <= 0.0 {
        return Noise { variance: 0.0, persistence: 0.0 };
    }
    // Of an autoregression, spread(2) / spread(1) = 1 + p and spread(3) / spread(1) = 1 + p + p^2.
    let from_two = spread(values, 2) / nearest - 1.0;
    let from_three = ((1.0 + 4.0 * (spread(values, 3) / nearest - 1.0).max(0.0)).sqrt() - 1.0) / 2.0;
    let persistence = (0.5 * (from_two + from_three)).clamp(0.0, MOST_PERSISTENCE);
    Noise { variance: nearest / (2.0 * (1.0 - persistence)), persistence }
}

/// What a fit leaves of a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remainder {
    /// Twice the negative log likelihood, as an autoregression of order one.
    pub cost: f64,
    /// The noise, corrected for the fit.
    pub noise: Noise,
}

/// What `fitted`, which has `parameters` parameters, leaves of `values`.
pub(super) fn remainder(
    values: &[f64],
    fitted: &[f64],
    parameters: usize,
    most_persistence: f64,
) -> Remainder {
    let rest = || values.iter().zip(fitted).map(|(value, fitted)| value - fitted);
    let rows = values.len() as f64;
    let square: f64 = rest().map(|one| one * one).sum();
    let product: f64 = rest().zip(rest().skip(1)).map(|(one, next)| one * next).sum();
    let correlation = if square > LEAST_VARIANCE * rows { product / square } else { 0.0 };
    let used = correlation.clamp(0.0, most_persistence);
    let innovation = (square - 2.0 * used * product + used * used * square) / rows;
    // The correlation around a fit is too low by about this much for each parameter (Kendall 1954).
    let bias = (1.0 + 3.0 * correlation.max(0.0)) * parameters as f64 / rows;
    let persistence = (correlation + bias).clamp(0.0, most_persistence);
    let variance = innovation / (1.0 - persistence * persistence);
    Remainder { cost: rows * innovation.max(LEAST_VARIANCE).ln(), noise: Noise { variance, persistence } }
}

/// The variance of the differences at a lag, without the tenth that is furthest from their median.
pub(super) fn spread(values: &[f64], lag: usize) -> f64 {
    let mut differences: Vec<f64> =
        values.iter().zip(&values[lag.min(values.len())..]).map(|(a, b)| b - a).collect();
    if differences.is_empty() {
        return 0.0;
    }
    differences.sort_by(f64::total_cmp);
    let median = differences[differences.len() / 2];
    let mut squares: Vec<f64> = differences.iter().map(|one| (one - median) * (one - median)).collect();
    squares.sort_by(f64::total_cmp);
    let kept = (squares.len() * 9).div_ceil(10);
    squares[..kept].iter().sum::<f64>() / kept as f64 / TRIMMED_SQUARE
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Random;
    use super::*;

    #[test]
    fn persistence_is_measured_beside_a_trend() {
        let mut random = Random::new(1);
        let mut last = 0.0;
        let values: Vec<f64> = (0..4000)
            .map(|row| {
                // The sum of twelve even numbers is nearly normal, and has the variance 1.
                last = 0.6 * last + (0..12).map(|_| random.between(-0.5, 0.5)).sum::<f64>();
                last + 0.02 * f64::from(row)
            })
            .collect();
        let noise = noise(&values);
        assert!((noise.persistence - 0.6).abs() < 0.05, "{noise:?}");
        assert!((noise.variance - 1.0 / (1.0 - 0.36)).abs() < 0.15, "{noise:?}");
        assert!((noise.rows_per_independent() - 4.0).abs() < 0.6);
    }
}
