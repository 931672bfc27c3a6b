//! Values that are far from those before them and those after them: spikes, not changes.

/// Neighbours on each side that a value is compared with.
const NEIGHBOURS: usize = 3;

/// The places of values that are no spikes. A spike is further than `deviations` standard deviations above, or below, the medians of
/// the values on both its sides. So the first value of a step is none, nor is the first or last value of the series.
pub(super) fn without_spikes(values: &[f64], deviations: f64) -> Vec<usize> {
    let far = deviations * deviation(values);
    let is_spike = |place: usize| {
        let before = &values[place.saturating_sub(NEIGHBOURS)..place];
        let after = &values[place + 1..values.len().min(place + 1 + NEIGHBOURS)];
        if before.is_empty() || after.is_empty() {
            return false;
        }
        let (before, after) = (values[place] - median(before), values[place] - median(after));
        (before > far && after > far) || (before < -far && after < -far)
    };
    (0..values.len()).filter(|place| !is_spike(*place)).collect()
}

/// The standard deviation of the noise, by the median distance of neighbours, which steps and spikes hardly change: it is 0.954
/// standard deviations of normal noise.
fn deviation(values: &[f64]) -> f64 {
    let distances: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    median(&distances) / 0.954
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spikes(values: &[f64]) -> Vec<usize> {
        let kept = without_spikes(values, 5.0);
        (0..values.len()).filter(|place| !kept.contains(place)).collect()
    }

    #[test]
    fn spikes_are_no_steps_and_steps_no_spikes() {
        let noise = |place: usize| [0.0, 0.7, -0.4, 0.2, -0.9][place % 5];
        let series = |value: fn(usize) -> f64| (0..30).map(|at| value(at) + noise(at)).collect::<Vec<f64>>();
        assert_eq!(spikes(&series(|_| 100.0)), []);
        assert_eq!(spikes(&series(|at| if at == 12 { 140.0 } else { 100.0 })), [12]);
        assert_eq!(spikes(&series(|at| if at == 12 { 60.0 } else { 100.0 })), [12]);
        assert_eq!(spikes(&series(|at| if at < 12 { 60.0 } else { 100.0 })), []);
        // At the ends nobody knows.
        assert_eq!(spikes(&series(|at| if at == 0 || at == 29 { 60.0 } else { 100.0 })), []);
        // Where a step begins, and the spike is above both sides.
        assert_eq!(
            spikes(&series(|at| [100.0, 160.0, 120.0][(at > 11) as usize + (at > 12) as usize])),
            [12]
        );
    }
}
