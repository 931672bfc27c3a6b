//! Statistics of several small samples: moderated variances, excluded outliers, t quantiles.
//!
//! A sample of five runs gives a poor estimate of its variance. Engines of one table were measured on one machine by one
//! harness, so their variances are similar, but not equal: a pooled variance would claim orders by chance if one engine
//! is noisier than the others, and separate variances find few differences. The moderated variance is between the two:
//! the more similar the variances are, the closer it is to the pooled one (empirical Bayes: Smyth, Linear Models and
//! Empirical Bayes Methods for Assessing Differential Expression in Microarray Experiments, 2004). `benches/statistics`
//! measures the resulting error rates.

use super::statistics::median;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::gamma::digamma;

/// The resolution of logs of rates: the minimum standard deviation of a sample of them.
pub(super) const RESOLUTION: f64 = 1e-4;

/// The maximum degrees of freedom that the other samples may add to one.
const MOST_PRIOR_DEGREES: f64 = 60.0;

/// A moderated variance is at least this share of the table's median variance. All five runs of an engine with two modes
/// may be in the same mode, and would then look far steadier than the engine is.
const LEAST_SHARE: f64 = 0.5;

/// The probability that a good run of a normal sample is excluded.
const OUTLIER_P: f64 = 1e-4;

/// An excluded run also differs by this many robust standard deviations of the complete table.
const OUTLIER_SPREADS: f64 = 6.0;

/// One outlier may be excluded for this many runs. An engine with more outliers is noisy, and its variance must show it.
const RUNS_PER_OUTLIER: usize = 5;

/// A sample's variance and its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variance {
    /// In the square of the sample's unit.
    pub value: f64,
    /// Degrees of freedom; may be fractional.
    pub degrees: f64,
    /// Those of them that come from the other samples, and so are the same information for all.
    pub shared: f64,
    /// The minimum standard deviation of its values: figures with discrete steps may be equal by chance.
    pub resolution: f64,
}

impl Variance {
    /// The variance of `values` around their mean; none for fewer than two.
    pub(super) fn of(values: &[f64], resolution: f64) -> Option<Variance> {
        let mean = mean(values)?;
        let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Variance { value: squares / degrees, degrees, shared: 0.0, resolution })
    }
}

/// The mean; none if there are no values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Each of the variances, moderated by the others.
pub(super) fn moderated(variances: &[Variance]) -> Vec<Variance> {
    let floor = |own: &Variance, value: f64| value.max(own.resolution * own.resolution);
    let known: Vec<Variance> = variances.iter().copied().filter(|own| own.degrees > 0.0).collect();
    let total: f64 = known.iter().map(|own| own.degrees).sum();
    if known.len() < 2 {
        return variances.iter().map(|own| Variance { value: floor(own, own.value), ..*own }).collect();
    }
    // The log of a sample's variance scatters depending on its degrees of freedom; any scatter beyond that is the
    // difference between the true variances.
    let log = |own: &Variance| {
        let half = own.degrees / 2.0;
        floor(own, own.value).ln() - digamma(half) + half.ln()
    };
    let logs: Vec<f64> = known.iter().map(log).collect();
    let center = mean(&logs).unwrap_or_default();
    let scatter = logs.iter().map(|log| (log - center).powi(2)).sum::<f64>() / (logs.len() - 1) as f64;
    let by_chance = known.iter().map(|own| trigamma(own.degrees / 2.0)).sum::<f64>() / known.len() as f64;
    let prior_degrees = if scatter > by_chance {
        (2.0 * inverse_trigamma(scatter - by_chance)).min(MOST_PRIOR_DEGREES)
    } else {
        MOST_PRIOR_DEGREES
    };
    let prior = if prior_degrees < MOST_PRIOR_DEGREES {
        let half = prior_degrees / 2.0;
        (center + digamma(half) - half.ln()).exp()
    } else {
        known.iter().map(|own| own.value * own.degrees).sum::<f64>() / total
    };
    let values: Vec<f64> = known.iter().map(|own| own.value).collect();
    let least = median(&values).unwrap_or_default() * LEAST_SHARE;
    let moderate = |own: &Variance| {
        let degrees = prior_degrees + own.degrees;
        let value = (prior_degrees * prior + own.degrees * own.value) / degrees;
        let degrees = degrees.min(total);
        let shared = (degrees - own.degrees).max(0.0);
        Variance { value: floor(own, value.max(least)), degrees, shared, ..*own }
    };
    variances.iter().map(moderate).collect()
}

/// A sample: the variance of its runs, and how many there are, which may be fractional.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub variance: Variance,
    pub runs: f64,
}

impl Sampled {
    /// The variance of the mean of the runs.
    fn of_mean(self) -> f64 {
        self.variance.value / self.runs
    }
}

/// A difference of two means, its standard error, and the degrees of freedom of the error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// The first mean minus the second.
    pub value: f64,
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom (Welch and Satterthwaite).
    pub degrees: f64,
}

impl Difference {
    /// The difference of means with these variances over their runs; it has at most `most` degrees of freedom, the total of
    /// all samples.
    pub(super) fn new(value: f64, first: Sampled, second: Sampled, most: f64) -> Difference {
        let degrees = satterthwaite(first, first.variance.degrees, second, second.variance.degrees);
        Difference { value, error: error_of(first, second), degrees: degrees.min(most) }
    }

    /// The same for samples of one table. Satterthwaite's formula adds degrees of freedom as if both variances were known
    /// independently, but what the other engines tell of them (Smyth's prior) is the same for both. Where noise is unequal, this is
    /// nearly half of what is known of a variance, and counted twice it makes small p values too small. So it counts once, and the
    /// formula is used for the degrees that each sample has of its own.
    pub(super) fn in_table(value: f64, first: Sampled, second: Sampled, most: f64) -> Difference {
        let own = |variance: Variance| variance.degrees - variance.shared;
        let shared = first.variance.shared.min(second.variance.shared);
        let degrees = shared + satterthwaite(first, own(first.variance), second, own(second.variance));
        Difference { value, error: error_of(first, second), degrees: degrees.min(most) }
    }

    /// The two-sided p: the probability of a difference this large if the true difference is 0.
    pub(super) fn p(&self) -> f64 {
        let Ok(student) = StudentsT::new(0.0, 1.0, self.degrees) else { return 1.0 };
        (2.0 * student.cdf(-(self.value / self.error).abs())).clamp(0.0, 1.0)
    }

    /// The one-sided p: the probability of a difference of at least this value if the true difference is not over 0.
    pub(super) fn p_over_zero(&self) -> f64 {
        match StudentsT::new(0.0, 1.0, self.degrees) {
            Ok(student) => student.cdf(-self.value / self.error).clamp(0.0, 1.0),
            Err(_) => 1.0,
        }
    }

    /// Half the width of the interval at `1 - alpha`.
    pub(super) fn reach(&self, alpha: f64) -> f64 {
        match StudentsT::new(0.0, 1.0, self.degrees) {
            Ok(student) => student.inverse_cdf(1.0 - alpha / 2.0) * self.error,
            Err(_) => f64::INFINITY,
        }
    }
}

/// The standard error of the difference of two means.
fn error_of(first: Sampled, second: Sampled) -> f64 {
    (first.of_mean() + second.of_mean()).sqrt()
}

/// The degrees of freedom of the difference of two means whose variances have these (Satterthwaite, An Approximate Distribution of
/// Estimates of Variance Components, 1946).
fn satterthwaite(first: Sampled, first_degrees: f64, second: Sampled, second_degrees: f64) -> f64 {
    let (a, b) = (first.of_mean(), second.of_mean());
    (a + b).powi(2) / (a * a / first_degrees + b * b / second_degrees)
}

/// Which runs are kept: false for outliers. `rows`: deviations of each engine's runs from their expected values; with three
/// engines or more, an outlier must also be far off by the spread of the complete table. `resolutions`: see
/// [`Variance::resolution`], one for each row.
pub(super) fn kept(rows: &[Vec<f64>], resolutions: &[f64]) -> Vec<Vec<bool>> {
    let all: Vec<f64> = rows.iter().flatten().map(|deviation| deviation.abs()).collect();
    // 1.4826: the standard deviation of a normal distribution divided by its median absolute deviation.
    let spread = if rows.len() >= 3 { median(&all).unwrap_or_default() * 1.4826 } else { 0.0 };
    let kept = |(row, resolution): (&Vec<f64>, &f64)| {
        kept_of(row, OUTLIER_SPREADS * spread.max(*resolution), *resolution)
    };
    rows.iter().zip(resolutions).map(kept).collect()
}

/// Which runs of one engine are kept. The largest allowed number of outliers is tried first, so that two outliers do not
/// hide each other: all of them must differ from the rest.
fn kept_of(row: &[f64], least: f64, resolution: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| row[*b].abs().total_cmp(&row[*a].abs()));
    for outliers in (1..=row.len() / RUNS_PER_OUTLIER).rev() {
        let (off, rest) = order.split_at(outliers);
        let rest: Vec<f64> = rest.iter().map(|place| row[*place]).collect();
        let (Some(center), Some(variance)) = (mean(&rest), Variance::of(&rest, resolution)) else { continue };
        let Ok(student) = StudentsT::new(0.0, 1.0, variance.degrees) else { continue };
        let deviation = (variance.value * (1.0 + 1.0 / rest.len() as f64)).sqrt().max(resolution);
        let limit = student.inverse_cdf(1.0 - OUTLIER_P / 2.0) * deviation;
        if off.iter().all(|place| (row[*place] - center).abs() > limit.max(least)) {
            return (0..row.len()).map(|place| !off.contains(&place)).collect();
        }
    }
    vec![true; row.len()]
}

/// The second derivative of the log of the gamma function, for x over 0: recurrence up to 8, then the asymptotic series
/// (Abramowitz and Stegun, 6.4.6 and 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    sum + 1.0 / x
        + square / 2.0
        + square / x * (1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0)))
}

/// The x with trigamma(x) = `value`, which must be over 0. Trigamma is monotonic, so bisection finds it.
fn inverse_trigamma(value: f64) -> f64 {
    // Trigamma is between 1/x and 1/x + 1/x^2.
    let (mut low, mut high) = (1.0 / value, 1.0 / value + 1.0 / value.sqrt() + 1.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_trigamma_and_its_inverse() {
        let squared_pi = std::f64::consts::PI.powi(2);
        for (x, value) in [(1.0, squared_pi / 6.0), (0.5, squared_pi / 2.0), (2.0, squared_pi / 6.0 - 1.0)] {
            assert!((trigamma(x) / value - 1.0).abs() < 1e-10, "{x}");
        }
        for x in [0.05, 0.3, 1.0, 2.5, 7.9, 8.1, 40.0, 3e3] {
            assert!((inverse_trigamma(trigamma(x)) / x - 1.0).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn similar_variances_are_pooled_and_different_ones_are_not() {
        let of = |values: &[f64]| {
            values
                .iter()
                .map(|value| Variance { value: *value, degrees: 4.0, shared: 0.0, resolution: RESOLUTION })
                .collect()
        };
        let alike: Vec<Variance> = of(&[1.0, 1.1, 0.9, 1.05, 0.95]);
        for found in moderated(&alike) {
            assert!((found.value - 1.0).abs() < 0.02 && found.degrees == 20.0, "{found:?}");
        }
        let unlike: Vec<Variance> = of(&[1e-2, 1.0, 1e2, 1e-1, 1e1]);
        let found = moderated(&unlike);
        assert!(found[2].value > 50.0 && found[2].degrees < 6.0, "{:?}", found[2]);
        // The smallest variance is increased.
        assert!(found[0].value >= 0.25, "{:?}", found[0]);
    }

    #[test]
    fn outliers_are_excluded_and_do_not_hide_each_other() {
        let steady = [0.01, -0.02, 0.0, 0.015, -0.01, 0.005, 0.02, -0.015];
        let with = |more: &[f64]| steady.iter().chain(more).copied().collect::<Vec<f64>>();
        let aside = |row: Vec<f64>| kept(&[row], &[RESOLUTION])[0].iter().filter(|kept| !**kept).count();
        assert_eq!(aside(with(&[0.0, 0.01])), 0);
        assert_eq!(aside(with(&[-0.69, 0.01])), 1);
        assert_eq!(aside(with(&[-0.69, -0.7])), 2);
        // Three of ten are too many to be outliers.
        assert_eq!(aside(vec![-0.69, -0.7, -0.68, 0.0, 0.01, -0.01, 0.02, -0.02, 0.0, 0.01]), 0);
        // One of four is too many as well.
        assert_eq!(aside(vec![0.0, 0.01, -0.01, -0.69]), 0);
    }

    #[test]
    fn differences_use_the_quantiles_of_student() {
        let variance = Variance { value: 5.0, degrees: 4.0, shared: 0.0, resolution: RESOLUTION };
        let same = Sampled { variance, runs: 5.0 };
        let difference = Difference::new(2.0, same, same, 4.0);
        assert_eq!((difference.error, difference.degrees), (2.0_f64.sqrt(), 4.0));
        assert!((difference.reach(0.05) / 2.0_f64.sqrt() - 2.776_445).abs() < 1e-5);
        // scipy: 2 * t.cdf(-sqrt(2), 4)
        assert!((difference.p() - 0.230_199_6).abs() < 1e-6, "{}", difference.p());
        assert!((difference.p_over_zero() - difference.p() / 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_two_engines_of_a_table_share_counts_once() {
        let sampled = |value, degrees, shared| {
            let variance = Variance { value, degrees, shared, resolution: RESOLUTION };
            Sampled { variance, runs: 5.0 }
        };
        let of = |degrees, shared| sampled(5.0, degrees, shared);
        let degrees = |first, second, most| Difference::in_table(1.0, first, second, most).degrees;
        assert_eq!(degrees(of(7.0, 3.0), of(7.0, 3.0), 50.0), 3.0 + 8.0);
        assert_eq!(Difference::new(1.0, of(7.0, 3.0), of(7.0, 3.0), 50.0).degrees, 14.0);
        // Nothing is shared, or all is.
        assert_eq!(degrees(of(4.0, 0.0), of(4.0, 0.0), 50.0), 8.0);
        assert_eq!(degrees(of(40.0, 40.0), of(40.0, 40.0), 50.0), 40.0);
        assert_eq!(degrees(of(60.0, 56.0), of(60.0, 56.0), 50.0), 50.0);
        // The noisier engine's own degrees count.
        let noisy = sampled(5e3, 7.0, 3.0);
        assert!((degrees(noisy, of(7.0, 3.0), 50.0) - 7.0).abs() < 0.02);
        let alike: Vec<Variance> = [1.0, 100.0, 0.01]
            .iter()
            .map(|value| Variance { value: *value, degrees: 4.0, shared: 0.0, resolution: RESOLUTION })
            .collect();
        for found in moderated(&alike) {
            assert!((found.degrees - found.shared - 4.0).abs() < 1e-12 && found.shared > 0.0, "{found:?}");
        }
    }
}
