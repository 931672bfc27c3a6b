//! The rules by which other tools call a series steady.

/// fio's `steadystate=iops_slope:X%`: the slope per row is less than `percent` of the mean (`steadystate.c`). It is applied to
/// the last `window` rows.
pub fn fio_slope(values: &[f64], window: usize, percent: f64) -> bool {
    let window = &values[values.len().saturating_sub(window)..];
    let (mean, slope) = line(window);
    slope.abs() < percent / 100.0 * mean
}

/// The rule of the SNIA Performance Test Specification: of five rounds, the range is at most 20 % of the mean, and the change
/// along the line at most 10 %. The rounds are the five parts of the last half.
pub fn snia(values: &[f64]) -> bool {
    let half = &values[values.len() / 2..];
    let rounds = parts(half, 5);
    let (mean, slope) = line(&rounds);
    let high = rounds.iter().copied().fold(f64::MIN, f64::max);
    let low = rounds.iter().copied().fold(f64::MAX, f64::min);
    high - low <= 0.2 * mean && slope.abs() * 4.0 <= 0.1 * mean
}

/// The `--autoterm` of warp: of the series reduced to 25 points, the last 7 are within 7.5 % of the last.
pub fn warp(values: &[f64]) -> bool {
    let points = parts(values, 25);
    let last = points[points.len() - 1];
    points[points.len() - 7..].iter().all(|point| (point - last).abs() <= 0.075 * last)
}

/// The means of `count` parts of equal length.
fn parts(values: &[f64], count: usize) -> Vec<f64> {
    let part = |index: usize| {
        let part = &values[index * values.len() / count..(index + 1) * values.len() / count];
        part.iter().sum::<f64>() / part.len() as f64
    };
    (0..count).map(part).collect()
}

/// The mean and the slope per value of the line of least squares.
fn line(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let product: f64 =
        values.iter().enumerate().map(|(row, value)| (row as f64 - middle) * (value - mean)).sum();
    (mean, product / (count * (count * count - 1.0) / 12.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_passes_a_flat_series_and_fails_a_steep_one() {
        let flat = [100.0; 100];
        let steep: Vec<f64> = (0..100).map(|row| 100.0 + f64::from(row)).collect();
        assert!(fio_slope(&flat, 50, 0.1) && snia(&flat) && warp(&flat));
        assert!(!fio_slope(&steep, 50, 0.1) && !snia(&steep) && !warp(&steep));
    }
}
