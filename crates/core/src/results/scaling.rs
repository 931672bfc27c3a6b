//! The Universal Scalability Law, fitted to rates at several numbers of threads, load generators or nodes.
//!
//! With N of them the rate is `lambda N / (1 + sigma (N - 1) + kappa N (N - 1))` (Gunther, Guerrilla Capacity Planning, 2007,
//! chapters 4 and 5): lambda is the rate of one, sigma the share of work that is serial, kappa the cost of keeping pairs of
//! them consistent. `N / rate` is linear in 1/lambda, sigma/lambda and kappa/lambda, so the fit is a linear least squares with
//! relative errors and needs no start values. Intervals come from the residuals, so they include what the law does not
//! explain.

use super::statistics::median;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The minimum number of different counts: the law has three parameters.
pub const FEWEST_COUNTS: usize = 4;
/// The law holds only if it differs from the median rate at each count by at most this share.
pub const MOST_DEVIATION: f64 = 0.10;
/// The level of the intervals.
const LEVEL: f64 = 0.95;

/// A rate at a count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Threads, load generators or nodes; at least 1.
    pub count: u32,
    /// Ops per second of one run.
    pub rate: f64,
}

/// A parameter with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The lower end; 0 if the data do not show that the parameter is above 0.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A fitted law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// The rate of one, ops per second.
    pub lambda: Estimate,
    /// The serial share.
    pub sigma: Estimate,
    /// The cost of each pair, as a share of the time of an op.
    pub kappa: Estimate,
    /// The largest deviation of the law from a median rate, as a share of that rate.
    pub deviation: f64,
}

/// Why no law is reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Misfit {
    /// Fewer than [`FEWEST_COUNTS`] different counts, which is the number found.
    Counts(usize),
    /// A rate is not a positive number.
    Rates,
    /// The rate grows faster than the count, which the law excludes.
    Superlinear,
    /// The law differs by this share from the rate at this count.
    Deviation {
        /// The count.
        count: u32,
        /// The share.
        share: f64,
    },
}

impl Law {
    /// The rate at a count, ops per second.
    pub fn rate(&self, count: f64) -> f64 {
        let (sigma, kappa) = (self.sigma.value, self.kappa.value);
        self.lambda.value * count / (1.0 + sigma * (count - 1.0) + kappa * count * (count - 1.0))
    }

    /// The count with the highest rate; none: the data do not show that the rate ever falls.
    pub fn peak(&self) -> Option<f64> {
        let is_shown = self.kappa.low > 0.0 && self.sigma.value < 1.0;
        is_shown.then(|| ((1.0 - self.sigma.value) / self.kappa.value).sqrt().max(1.0))
    }
}

/// Fits the law. The order of the rates has no effect on the result beyond rounding.
pub fn fit(loads: &[Load]) -> Result<Law, Misfit> {
    let mut counts: Vec<u32> = loads.iter().map(|load| load.count).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < FEWEST_COUNTS {
        return Err(Misfit::Counts(counts.len()));
    }
    let is_usable = |load: &Load| load.count > 0 && load.rate.is_finite() && load.rate > 0.0;
    let degrees = loads.len() - 3;
    if !loads.iter().all(is_usable) {
        return Err(Misfit::Rates);
    }
    // Columns of similar size, so that the equations are well conditioned.
    let most = f64::from(*counts.last().unwrap_or(&1)).max(2.0);
    let scales = [1.0, most - 1.0, most * (most - 1.0)];
    let rows: Vec<[f64; 3]> = loads.iter().map(|load| row(load, scales)).collect();
    let free = Solution::of(&rows, [true; 3]).ok_or(Misfit::Rates)?;
    let student = StudentsT::new(0.0, 1.0, degrees as f64).map_err(|_| Misfit::Rates)?;
    let t = student.inverse_cdf(0.5 + LEVEL / 2.0);
    // The free fit decides whether a parameter is below 0 by more than chance.
    let share = |place: usize| free.share(place, t * (free.squares / degrees as f64).sqrt(), scales);
    let (sigma, kappa) = (share(1), share(2));
    if free.parameters[0] <= 0.0 || sigma.high < 0.0 || kappa.high < 0.0 {
        return Err(Misfit::Superlinear);
    }
    let best = best(&rows, &free).ok_or(Misfit::Superlinear)?;
    let first = best.parameters[0];
    let value = |place: usize| best.parameters[place] / scales[place] / first;
    let within = |value: f64, free: Estimate| Estimate {
        value,
        low: free.low.max(0.0).min(value),
        high: free.high.max(value),
    };
    let error = t * (free.squares / degrees as f64 * free.inverse[0][0]).sqrt();
    let lambda = 1.0 / first;
    // The rate of one is 1 over a parameter, so the ends of its interval change places.
    let slowest = 1.0 / (free.parameters[0] + error);
    let fastest = if free.parameters[0] > error { 1.0 / (free.parameters[0] - error) } else { f64::INFINITY };
    let mut law = Law {
        lambda: Estimate { value: lambda, low: slowest.min(lambda), high: fastest.max(lambda) },
        sigma: within(value(1), sigma),
        kappa: within(value(2), kappa),
        deviation: 0.0,
    };
    for count in counts {
        let rates: Vec<f64> = loads.iter().filter(|load| load.count == count).map(|load| load.rate).collect();
        let middle = median(&rates).ok_or(Misfit::Rates)?;
        let share = (law.rate(f64::from(count)) / middle - 1.0).abs();
        if share > MOST_DEVIATION {
            return Err(Misfit::Deviation { count, share });
        }
        law.deviation = law.deviation.max(share);
    }
    Ok(law)
}

/// A row of the equations: each term divided by `count / rate`, so that the errors are relative. The right side is 1.
fn row(load: &Load, scales: [f64; 3]) -> [f64; 3] {
    let count = f64::from(load.count);
    let terms = [1.0, count - 1.0, count * (count - 1.0)];
    std::array::from_fn(|place| terms[place] / scales[place] * load.rate / count)
}

/// The best fit in which no parameter is below 0: with three parameters, all choices of those that are 0 can be tried.
fn best(rows: &[[f64; 3]], free: &Solution) -> Option<Solution> {
    let is_allowed =
        |found: &Solution| found.parameters[0] > 0.0 && found.parameters[1..].iter().all(|p| *p >= 0.0);
    if is_allowed(free) {
        return Some(free.clone());
    }
    let choices = [[true, true, false], [true, false, true], [true, false, false]];
    let found = choices.into_iter().filter_map(|used| Solution::of(rows, used)).filter(is_allowed);
    found.min_by(|one, other| one.squares.total_cmp(&other.squares))
}

/// A solution of the equations by least squares.
#[derive(Clone, Debug)]
struct Solution {
    parameters: [f64; 3],
    /// The inverse of the normal matrix.
    inverse: [[f64; 3]; 3],
    /// The sum of squared relative residuals.
    squares: f64,
}

impl Solution {
    /// The solution with the parameters that are not `used` at 0; none: the equations are singular.
    fn of(rows: &[[f64; 3]], used: [bool; 3]) -> Option<Solution> {
        let mut normal = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for row in rows {
            let row: [f64; 3] = std::array::from_fn(|place| if used[place] { row[place] } else { 0.0 });
            for (i, one) in row.iter().enumerate() {
                right[i] += one;
                for (j, other) in row.iter().enumerate() {
                    normal[i][j] += one * other;
                }
            }
        }
        for place in (0..3).filter(|place| !used[*place]) {
            normal[place][place] = 1.0;
        }
        let inverse = inverse(normal)?;
        let parameters: [f64; 3] =
            std::array::from_fn(|i| inverse[i].iter().zip(&right).map(|(one, other)| one * other).sum());
        let residual = |row: &[f64; 3]| {
            let terms = row.iter().zip(&parameters).zip(used).filter(|(_, used)| *used);
            1.0 - terms.map(|((term, parameter), _)| term * parameter).sum::<f64>()
        };
        let squares = rows.iter().map(|row| residual(row).powi(2)).sum();
        Some(Solution { parameters, inverse, squares })
    }

    /// The ratio of a parameter to the first, with its interval by the delta method; `error` is the t quantile times the
    /// standard deviation of the residuals.
    fn share(&self, place: usize, error: f64, scales: [f64; 3]) -> Estimate {
        let first = self.parameters[0];
        let ratio = self.parameters[place] / first;
        let [own, with, of_first] = [self.inverse[place][place], self.inverse[place][0], self.inverse[0][0]];
        let variance = (own - 2.0 * ratio * with + ratio * ratio * of_first).max(0.0);
        let half = error * variance.sqrt() / first.abs();
        let scaled = |value: f64| value / scales[place];
        Estimate { value: scaled(ratio), low: scaled(ratio - half), high: scaled(ratio + half) }
    }
}

/// The inverse of a symmetric positive matrix; none: it is singular.
fn inverse(matrix: [[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let mut left = matrix;
    let mut right = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let size = matrix.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
    for place in 0..3 {
        let pivot =
            (place..3).max_by(|one, other| left[*one][place].abs().total_cmp(&left[*other][place].abs()))?;
        left.swap(place, pivot);
        right.swap(place, pivot);
        let head = left[place][place];
        if head.is_nan() || head.abs() <= size * 1e-13 {
            return None;
        }
        for column in 0..3 {
            left[place][column] /= head;
            right[place][column] /= head;
        }
        for other in (0..3).filter(|other| *other != place) {
            let factor = left[other][place];
            for column in 0..3 {
                left[other][column] -= factor * left[place][column];
                right[other][column] -= factor * right[place][column];
            }
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn truth(lambda: f64, sigma: f64, kappa: f64, count: u32) -> f64 {
        let n = f64::from(count);
        lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    fn loads(counts: &[u32], rate: impl Fn(u32) -> f64) -> Vec<Load> {
        counts.iter().map(|&count| Load { count, rate: rate(count) }).collect()
    }

    /// A normal number from a counter: the sum of twelve uniform ones, less six.
    fn normal(state: &mut u64) -> f64 {
        let mut uniform = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    const COUNTS: [u32; 6] = [1, 2, 4, 8, 16, 32];

    proptest! {
        #[test]
        fn exact_rates_give_their_law(
            log_lambda in 0.0_f64..7.0, sigma in 0.0_f64..0.9, kappa in 0.0_f64..0.05, runs in 1_usize..4,
        ) {
            let lambda = 10_f64.powf(log_lambda);
            let once = loads(&COUNTS, |count| truth(lambda, sigma, kappa, count));
            let all: Vec<Load> = (0..runs).flat_map(|_| once.clone()).collect();
            let law = fit(&all).unwrap();
            prop_assert!((law.lambda.value / lambda - 1.0).abs() < 1e-6, "{law:?}");
            prop_assert!((law.sigma.value - sigma).abs() < 1e-6 && (law.kappa.value - kappa).abs() < 1e-7, "{law:?}");
            prop_assert!(law.deviation < 1e-6);
            for each in [law.lambda, law.sigma, law.kappa] {
                prop_assert!(each.low <= each.value && each.value <= each.high && each.low >= 0.0, "{each:?}");
            }
        }

        /// Rates in another unit change only lambda, and the order of rates nothing.
        #[test]
        fn units_and_order_do_not_matter(seed: u64, factor in 1e-3_f64..1e6) {
            let mut state = seed;
            let noisy = |state: &mut u64| -> Vec<Load> {
                let own = COUNTS.iter().chain(&COUNTS);
                own.map(|&count| Load { count, rate: truth(1e5, 0.05, 0.001, count) * (1.0 + 0.02 * normal(state)) }).collect()
            };
            let one = noisy(&mut state);
            let mut other: Vec<Load> = one.iter().map(|load| Load { rate: load.rate * factor, ..*load }).collect();
            other.reverse();
            let (Ok(one), Ok(other)) = (fit(&one), fit(&other)) else { return Ok(()) };
            prop_assert!((other.lambda.value / one.lambda.value / factor - 1.0).abs() < 1e-6);
            prop_assert!((one.sigma.value - other.sigma.value).abs() < 1e-6);
            prop_assert!((one.kappa.high - other.kappa.high).abs() < 1e-6);
        }

        #[test]
        fn any_rates_give_a_sound_law_or_a_reason(
            all in proptest::collection::vec((0_u32..70, proptest::num::f64::ANY), 0..40),
        ) {
            let all: Vec<Load> = all.into_iter().map(|(count, rate)| Load { count, rate }).collect();
            if let Ok(law) = fit(&all) {
                prop_assert!(law.lambda.value > 0.0 && law.sigma.value >= 0.0 && law.kappa.value >= 0.0, "{law:?}");
                prop_assert!(law.deviation <= MOST_DEVIATION);
            }
        }
    }

    /// The share of intervals that contain the true value, over many noisy sweeps, is near their level.
    #[test]
    fn intervals_contain_the_truth_as_often_as_they_claim() {
        let (seed, sweeps) = (11_u64, 2_000);
        let (sigma, kappa) = (0.05, 0.002);
        let mut state = seed;
        let mut hits = [0_u32; 3];
        let mut fitted = 0_u32;
        for _ in 0..sweeps {
            let once = COUNTS.iter().cycle().take(COUNTS.len() * 5);
            let all: Vec<Load> = once
                .map(|&count| Load {
                    count,
                    rate: truth(1e6, sigma, kappa, count) * (0.03 * normal(&mut state)).exp(),
                })
                .collect();
            let Ok(law) = fit(&all) else { continue };
            fitted += 1;
            for (place, (truth, own)) in
                [(1e6, law.lambda), (sigma, law.sigma), (kappa, law.kappa)].into_iter().enumerate()
            {
                hits[place] += u32::from(own.low <= truth && truth <= own.high);
            }
        }
        assert!(fitted > sweeps * 99 / 100, "seed {seed}: {fitted} fits");
        for (name, hits) in ["lambda", "sigma", "kappa"].into_iter().zip(hits) {
            let share = f64::from(hits) / f64::from(fitted);
            assert!((0.93..=0.98).contains(&share), "seed {seed}, {name}: {share}");
        }
    }

    #[test]
    fn a_rate_that_only_levels_off_has_no_peak() {
        let (seed, mut false_peaks) = (5_u64, 0);
        let mut state = seed;
        for _ in 0..500 {
            let all: Vec<Load> = COUNTS
                .iter()
                .cycle()
                .take(30)
                .map(|&count| Load {
                    count,
                    rate: truth(1e6, 0.1, 0.0, count) * (0.03 * normal(&mut state)).exp(),
                })
                .collect();
            false_peaks += u32::from(fit(&all).is_ok_and(|law| law.peak().is_some()));
        }
        // The interval has 2.5 % on this side.
        assert!(false_peaks < 25, "seed {seed}: {false_peaks} of 500");
        let law = fit(&loads(&COUNTS, |count| truth(1e6, 0.1, 0.01, count))).unwrap();
        assert!((law.peak().unwrap() - 90_f64.sqrt()).abs() < 0.01, "{law:?}");
    }

    #[test]
    fn the_law_is_reported_only_where_it_holds() {
        let few = loads(&[1, 2, 4, 4, 2], f64::from);
        assert_eq!(fit(&few), Err(Misfit::Counts(3)));
        assert_eq!(
            fit(&loads(&[1, 2, 4, 8], |count| if count == 4 { 0.0 } else { 1.0 })),
            Err(Misfit::Rates)
        );
        let faster = loads(&COUNTS, |count| f64::from(count).powf(1.5));
        assert_eq!(fit(&faster), Err(Misfit::Superlinear));
        // A step: twice the rate from 8 threads on, as on a machine whose second socket wakes up.
        let step = loads(&COUNTS, |count| if count < 8 { 100.0 } else { 250.0 });
        assert!(
            matches!(fit(&step), Err(Misfit::Deviation { .. } | Misfit::Superlinear)),
            "{:?}",
            fit(&step)
        );
        // Slightly more than linear by chance is a law without serial share.
        let almost = loads(&COUNTS, |count| f64::from(count) * if count == 2 { 101.0 } else { 100.0 });
        let law = fit(&almost).unwrap();
        assert!(law.sigma.value < 0.01 && law.sigma.low == 0.0 && law.peak().is_none(), "{law:?}");
    }
}
