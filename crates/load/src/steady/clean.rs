//! A series made fit for statistics: every row known, on a scale of relative change, without outliers.

/// Rows on each side that a row is compared with to tell an outlier.
const REACH: usize = 30;
/// Outliers are further from the median than this many times the distance from the 10th to the 90th percentile
/// (Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017).
const OUTLIER_SPREADS: f64 = 3.0;

/// A series with unknown rows filled, in logarithms where all values are positive and else divided by the mean of their
/// sizes. A difference of 0.01 is a change of 1 %.
pub(super) struct Clean {
    /// The rows, with each outlier replaced by the median around it.
    pub rows: Vec<f64>,
    /// The rows, with each outlier brought to the limit for outliers, so that stalls at equal distances remain a cycle.
    pub limited: Vec<f64>,
}

/// The clean series; `None` if fewer than half of the rows are known.
pub(super) fn clean(values: &[Option<f64>]) -> Option<Clean> {
    let filled = fill(values)?;
    Some(set_outliers_aside(&relative(&filled)))
}

/// The values with each unknown one on the line between its known neighbours.
fn fill(values: &[Option<f64>]) -> Option<Vec<f64>> {
    let known: Vec<(usize, f64)> = values
        .iter()
        .enumerate()
        .filter_map(|(row, value)| value.filter(|value| value.is_finite()).map(|value| (row, value)))
        .collect();
    if known.is_empty() || known.len() * 2 < values.len() {
        return None;
    }
    let mut filled = Vec::with_capacity(values.len());
    let mut next = 0;
    for row in 0..values.len() {
        while next < known.len() && known[next].0 < row {
            next += 1;
        }
        let after = known[next.min(known.len() - 1)];
        let before = if after.0 <= row { after } else { known[next.saturating_sub(1)] };
        let share = if after.0 == before.0 {
            0.0
        } else {
            (row as f64 - before.0 as f64) / (after.0 - before.0) as f64
        };
        filled.push(before.1 + share.max(0.0) * (after.1 - before.1));
    }
    Some(filled)
}

/// The values on a scale where a small difference is a relative change.
fn relative(values: &[f64]) -> Vec<f64> {
    if values.iter().all(|value| *value > 0.0) {
        return values.iter().map(|value| value.ln()).collect();
    }
    let size = values.iter().map(|value| value.abs()).sum::<f64>() / values.len() as f64;
    let size = if size > 0.0 { size } else { 1.0 };
    values.iter().map(|value| value / size).collect()
}

/// The values without outliers, which are told by the median and the spread of the rows around them.
fn set_outliers_aside(values: &[f64]) -> Clean {
    let mut window: Vec<f64> = Vec::with_capacity(2 * REACH + 1);
    let place = |window: &[f64], value: f64| window.partition_point(|other| *other < value);
    // The window keeps its width at both ends of the series.
    let width = (2 * REACH + 1).min(values.len());
    let mut start = 0;
    for value in &values[..width] {
        window.insert(place(&window, *value), *value);
    }
    let mut clean =
        Clean { rows: Vec::with_capacity(values.len()), limited: Vec::with_capacity(values.len()) };
    for (row, value) in values.iter().enumerate() {
        while start + width < values.len() && start + REACH < row {
            window.remove(place(&window, values[start]));
            let entering = values[start + width];
            window.insert(place(&window, entering), entering);
            start += 1;
        }
        let median = window[width / 2];
        let limit = OUTLIER_SPREADS * (window[width * 9 / 10] - window[width / 10]);
        let is_outlier = (value - median).abs() > limit;
        clean.rows.push(if is_outlier { median } else { *value });
        clean.limited.push(value.clamp(median - limit, median + limit));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_rows_are_on_the_line_between_known_ones() {
        assert_eq!(fill(&[None, Some(1.0), None, Some(3.0), None]), None);
        let filled = fill(&[None, Some(1.0), None, Some(3.0), Some(4.0), Some(f64::NAN)]);
        assert_eq!(filled, Some(vec![1.0, 1.0, 2.0, 3.0, 4.0, 4.0]));
    }

    #[test]
    fn values_with_a_zero_are_shares_of_their_mean() {
        assert_eq!(relative(&[0.0, 1.0, 2.0]), [0.0, 1.0, 2.0]);
        assert_eq!(relative(&[1.0, 1.0]), [0.0, 0.0]);
    }

    #[test]
    fn an_outlier_becomes_the_median_or_the_limit_and_a_step_stays() {
        let mut values: Vec<f64> = (0..101).map(|row| f64::from(row % 5)).collect();
        values[50] = 100.0;
        let clean = set_outliers_aside(&values);
        assert_eq!((clean.rows[50], clean.limited[50]), (2.0, 14.0));
        let step: Vec<f64> = (0..101).map(|row| if row < 60 { 0.0 } else { 100.0 }).collect();
        assert_eq!(set_outliers_aside(&step).rows, step);
    }
}
