//! Where the mean of a longer run is expected to lie.

use super::Interval;
use super::cells::mean;

/// How many times longer the run is.
const TIMES: f64 = 10.0;

/// The fewest rows or periods with an interval.
const FEWEST_PARTS: usize = 4;
/// A change of this share of the mean is not seen by the verdict.
const UNSEEN_CHANGE: f64 = 0.005;

/// The interval for the mean of `values` from the row `from` on, in a run with ten times the rows.
///
/// The long-run variance of a row is the larger of two estimates: that of an autoregression of order one, and that of means
/// of batches (Schmeiser, Batch Size Effects in the Analysis of Simulation Output, 1982). With a period, whole periods are
/// averaged first. Outliers count. `None` with fewer than four known rows.
pub(super) fn ten_times_longer(
    values: &[Option<f64>],
    from: usize,
    period_rows: Option<f64>,
) -> Option<Interval> {
    let all_rows = values.len() as f64;
    let known: Vec<f64> =
        values.get(from..)?.iter().flatten().copied().filter(|one| one.is_finite()).collect();
    let width = period_rows.map_or(1, |period| period.round() as usize).max(1);
    // Fewer periods than four say too little of their noise: the saw is then taken for noise that persists.
    let width = if known.len() < FEWEST_PARTS * width { 1 } else { width };
    let parts: Vec<f64> = known.rchunks_exact(width).map(mean).collect();
    if parts.len() < FEWEST_PARTS {
        return None;
    }
    let center = mean(&parts);
    let (long_run, degrees) = long_run_variance(&parts, center);
    let seen = parts.len() as f64;
    let unseen = (TIMES - 1.0) * all_rows / width as f64;
    // The mean of the longer run differs from the one seen by a share of the difference to the mean of the unseen part.
    let share = unseen / (seen + unseen);
    // Of few events, such as bursts, a number is expected in the unseen part that is itself uncertain by their number.
    let uncertain = long_run * (1.0 + 2.0 / degrees);
    let error = share * (uncertain * (1.0 / seen + 1.0 / unseen)).sqrt();
    let reach = (student(degrees) * error).hypot(UNSEEN_CHANGE * center);
    Some(Interval { low: center - reach, high: center + reach })
}

/// The variance of a mean times the number of its parts, and the degrees of freedom of that estimate.
fn long_run_variance(parts: &[f64], center: f64) -> (f64, f64) {
    let count = parts.len() as f64;
    let square: f64 = parts.iter().map(|part| (part - center).powi(2)).sum();
    if square <= 0.0 {
        return (0.0, count - 1.0);
    }
    let product: f64 = parts.windows(2).map(|pair| (pair[0] - center) * (pair[1] - center)).sum();
    let correlation = product / square;
    let correlation = (correlation + (1.0 + 3.0 * correlation) / count).clamp(0.0, 0.9);
    let repeats = (1.0 + correlation) / (1.0 - correlation);
    let autoregression = square / (count - 1.0) * repeats;
    let size = (parts.len() as f64).sqrt().round() as usize;
    let batches: Vec<f64> = parts.rchunks_exact(size).map(mean).collect();
    let batch_center = mean(&batches);
    let between: f64 = batches.iter().map(|batch| (batch - batch_center).powi(2)).sum();
    let batched = between / (batches.len() as f64 - 1.0) * size as f64;
    // A few bursts that make most of the variance say little of it: with a kurtosis k, the relative variance of the estimate
    // is that of 2 / (k - 1) times the degrees of freedom of normal numbers.
    let fourth: f64 = parts.iter().map(|part| (part - center).powi(4)).sum();
    let kurtosis = fourth * count / (square * square);
    let heaviness = ((kurtosis - 1.0) / 2.0).max(1.0);
    (autoregression.max(batched), (count / repeats / heaviness - 1.0).max(3.0))
}

/// The 97.5th percentile of Student's t (Abramowitz and Stegun, 26.7.5), for three degrees of freedom or more.
fn student(degrees: f64) -> f64 {
    let normal: f64 = 1.959_964;
    let (third, fifth, seventh) = (normal.powi(3), normal.powi(5), normal.powi(7));
    normal
        + (third + normal) / (4.0 * degrees)
        + (5.0 * fifth + 16.0 * third + 3.0 * normal) / (96.0 * degrees.powi(2))
        + (3.0 * seventh + 19.0 * fifth + 17.0 * third - 15.0 * normal) / (384.0 * degrees.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_student() {
        for (degrees, percentile) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (100.0, 1.984)] {
            assert!(
                (student(degrees) - percentile).abs() < 0.02 * percentile,
                "{degrees}: {}",
                student(degrees)
            );
        }
    }

    #[test]
    fn three_rows_have_no_interval() {
        assert_eq!(ten_times_longer(&[Some(1.0); 3], 0, None), None);
        assert_eq!(ten_times_longer(&[Some(1.0); 9], 10, None), None);
    }
}
