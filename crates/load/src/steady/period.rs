//! A cycle that repeats, found in the autocorrelation.

use super::noise::noise;

/// The shortest cycle, in rows.
const SHORTEST: usize = 4;
/// A cycle must repeat this many times.
const REPEATS: usize = 6;
/// The least contrast of a cycle: about the share of the variance that it explains, times 1.5 for a saw.
const LEAST_CONTRAST: f64 = 0.15;
/// How many standard errors of the autocorrelation a contrast must have.
const STANDARD_ERRORS: f64 = 4.5;
/// The other three quarters of a series have at least this share of the contrast of the highest.
const LEAST_SHARE_OF_REST: f64 = 0.75;
/// The first lag with this share of the highest contrast is the cycle; later ones are its multiples.
const FIRST_SHARE: f64 = 0.65;

/// The length in rows of the cycle in `values`, if there is one that repeats at least six times.
///
/// The series is detrended by moving lines. A lag is a cycle if its autocorrelation stands out from that at one half and
/// one and a half times the lag. The standard error of an autocorrelation in noise is that of Bartlett (1946) for an
/// autoregression of order one, whose coefficient is measured in differences at that lag, where the cycle cancels out.
pub(super) fn period(values: &[f64]) -> Option<f64> {
    let rows = values.len();
    let longest = rows / REPEATS;
    if longest < SHORTEST {
        return None;
    }
    // A slow change stands out more the longer the lag: a cycle has its highest contrast well inside.
    let beyond = longest + longest / 4;
    let level = detrended(values, rows / 3);
    let correlation = autocorrelation(&level, beyond * 3 / 2 + 2)?;
    let at = |lag: f64| {
        let below = lag.floor();
        let share = lag - below;
        correlation[below as usize] * (1.0 - share) + correlation[below as usize + 1] * share
    };
    let contrast = |lag: usize| {
        let lag = lag as f64;
        at(lag) - 0.5 * (at(0.5 * lag) + at(1.5 * lag))
    };
    let contrasts: Vec<f64> =
        (0..=beyond).map(|lag| if lag < SHORTEST { 0.0 } else { contrast(lag) }).collect();
    let highest = contrasts.iter().copied().fold(0.0, f64::max);
    // Odd multiples of a cycle stand out as much as the cycle: take the first peak that is nearly the highest.
    let first = contrasts.iter().position(|one| *one >= FIRST_SHARE * highest)?;
    let end = (first + first / 4 + 1).min(beyond);
    let best = (first..=end).max_by(|one, other| contrasts[*one].total_cmp(&contrasts[*other]))?;
    let repeated: Vec<f64> = level[best..].iter().zip(&level).map(|(late, early)| late - early).collect();
    let square = noise(&repeated).persistence.powi(2);
    let error = (1.5 * (1.0 + square) / (1.0 - square) / rows as f64).sqrt();
    if best > longest || contrasts[best] < LEAST_CONTRAST.max(STANDARD_ERRORS * error) {
        return None;
    }
    is_throughout(&level, best).then(|| refine(&correlation, best))
}

/// Whether the contrast of a lag comes from the whole series: one event, such as a long stall, stands out in one quarter only.
fn is_throughout(values: &[f64], lag: usize) -> bool {
    let starts = values.len() - lag * 3 / 2;
    let mut quarters = [0.0; 4];
    for row in 0..starts {
        let beside = 0.5 * (values[row + lag / 2] + values[row + lag * 3 / 2]);
        quarters[row * 4 / starts] += values[row] * (values[row + lag] - beside);
    }
    let highest = quarters.iter().copied().fold(0.0, f64::max);
    quarters.iter().sum::<f64>() - highest > LEAST_SHARE_OF_REST * highest
}

/// The length of a cycle to a fraction of a row, from the peak at a multiple of it.
fn refine(correlation: &[f64], lag: usize) -> f64 {
    let mut length = lag as f64;
    let mut multiple = 2.0;
    while multiple * length + length / 4.0 + 1.0 < correlation.len() as f64 {
        let reach = (length / 4.0).min(multiple).max(1.0);
        let from = (multiple * length - reach).round() as usize;
        let to = (multiple * length + reach).round() as usize;
        let peak = (from..=to).max_by(|one, other| correlation[*one].total_cmp(&correlation[*other]));
        let Some(peak) = peak.filter(|peak| correlation[*peak] > 0.5 * correlation[lag]) else { break };
        length = peak as f64 / multiple;
        multiple += 1.0;
    }
    length
}

/// The values less the line of least squares through the window of `width` rows around each, which is shifted at the ends.
fn detrended(values: &[f64], width: usize) -> Vec<f64> {
    let width = width.clamp(2, values.len());
    let (mut sum, mut moment) = (vec![0.0], vec![0.0]);
    for (row, value) in values.iter().enumerate() {
        sum.push(sum[row] + value);
        moment.push(moment[row] + row as f64 * value);
    }
    let count = width as f64;
    let around_middle = count * (count * count - 1.0) / 12.0;
    let one = |(row, value): (usize, &f64)| {
        let from = row.saturating_sub(width / 2).min(values.len() - width);
        let middle = from as f64 + (count - 1.0) / 2.0;
        let total = sum[from + width] - sum[from];
        let slope = (moment[from + width] - moment[from] - middle * total) / around_middle;
        value - total / count - slope * (row as f64 - middle)
    };
    values.iter().enumerate().map(one).collect()
}

/// The autocorrelation at the lags below `lags`; `None` if the values do not vary.
fn autocorrelation(values: &[f64], lags: usize) -> Option<Vec<f64>> {
    let product =
        |lag: usize| -> f64 { values[lag..].iter().zip(values).map(|(late, early)| late * early).sum() };
    let whole = product(0);
    if whole <= f64::EPSILON * values.len() as f64 {
        return None;
    }
    Some(
        (0..lags)
            .map(|lag| product(lag) / whole * (values.len() as f64 / (values.len() - lag) as f64))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_found_to_a_fraction_of_a_row() {
        let saw: Vec<f64> = (0..300).map(|row| (f64::from(row) / 12.4).fract()).collect();
        let found = period(&saw).expect("a saw has a period");
        assert!((found - 12.4).abs() < 0.1, "{found}");
    }

    #[test]
    fn a_cycle_seen_five_times_is_no_period() {
        let saw: Vec<f64> = (0..100).map(|row| (f64::from(row) / 20.0).fract()).collect();
        assert_eq!(period(&saw), None);
        assert_eq!(period(&[1.0; 100]), None);
    }
}
