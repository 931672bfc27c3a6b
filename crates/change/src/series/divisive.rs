//! The split step: weak points in windows that slide over a series.

use super::pieces::Test;

/// The places at which a t-test with a p of at most `most_p` splits a window of `window` values, in ascending order.
pub(super) fn weak_points(values: &[f64], window: usize, most_p: f64) -> Vec<usize> {
    let mut points = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = values.len().min(start + window);
        let found: Vec<usize> =
            split(&values[start..end], most_p).into_iter().map(|point| start + point).collect();
        let last = found.last().copied().unwrap_or(0);
        points.extend(found);
        start = last.max(start + window / 2);
    }
    points.sort_unstable();
    points.dedup();
    points
}

/// The points of one window.
fn split(values: &[f64], most_p: f64) -> Vec<usize> {
    let mut points = Vec::new();
    loop {
        let starts = std::iter::once(0).chain(points.iter().copied());
        let ends = points.iter().copied().chain(std::iter::once(values.len()));
        let mut best: Option<(f64, usize, usize, usize)> = None;
        for (start, end) in starts.zip(ends) {
            if let Some((energy, place)) = candidate(&values[start..end])
                && best.is_none_or(|(most, ..)| energy > most)
            {
                best = Some((energy, start, start + place, end));
            }
        }
        let Some((_, start, place, end)) = best else {
            return points;
        };
        if Test::new(&values[start..place], &values[place..end]).p > most_p {
            return points;
        }
        points.push(place);
        points.sort_unstable();
    }
}

/// The greatest energy statistic of two neighbouring pieces of which the first begins with the values, and the place where
/// the second one begins. Absent for fewer than two values.
///
/// For pieces of n and m values, it is twice the sum of distances between them, less the sums within each, multiplied by
/// 2 m / (n - 1) and 2 n / (m - 1), all divided by n + m.
fn candidate(values: &[f64]) -> Option<(f64, usize)> {
    let distance = |a: usize, b: usize| (values[a] - values[b]).abs();
    // The distances within the first values.
    let mut left = vec![0.0; values.len() + 1];
    for end in 1..=values.len() {
        left[end] = left[end - 1] + (0..end - 1).map(|other| distance(other, end - 1)).sum::<f64>();
    }
    // For each value, its distances to those after it and before `end`.
    let mut later = vec![0.0; values.len()];
    let mut best: Option<(f64, usize)> = None;
    for end in 2..=values.len() {
        (0..end - 1).for_each(|value| later[value] += distance(value, end - 1));
        let all: f64 = later[..end].iter().sum();
        let mut right = 0.0;
        for place in (1..end).rev() {
            right += later[place];
            let (n, m) = (place as f64, (end - place) as f64);
            let within =
                |sum: f64, other: f64, own: f64| if own < 2.0 { 0.0 } else { other / (own - 1.0) * sum };
            let between = all - right - left[place];
            let energy = 2.0 * (between - within(left[place], m, n) - within(right, n, m)) / (n + m);
            // The first place of equal ones.
            if best.is_none_or(|(most, at)| energy > most || energy == most && place < at) {
                best = Some((energy, place));
            }
        }
    }
    best
}
