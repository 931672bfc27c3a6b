//! Whether the last level of a series is one: it does not bend or wander, and is long enough.

use super::cells::mean;
use super::explain::for_few;
use super::judge::TOLERANCE;
use super::noise::{Noise, remainder};

/// The evidence that the steady part bends.
const PENALTY_OF_BEND: f64 = 14.0;

/// How many independent cells say as much, with a persistence that is one standard error higher than measured.
pub(super) fn independent(cells: usize, noise: &Noise) -> f64 {
    let count = cells as f64;
    let error = ((1.0 - noise.persistence * noise.persistence) / count).sqrt();
    let persistence = (noise.persistence + error).min(0.99);
    count * (1.0 - persistence) / (1.0 + persistence)
}

/// The correlation of neighbouring cells, corrected for its bias in a short series (Kendall 1954).
pub(super) fn persistence(cells: &[f64]) -> f64 {
    remainder(cells, &vec![mean(cells); cells.len()], 1, 1.0 - 1e-9).noise.persistence
}

/// The change per cell at the end of a part that is explained better by a parabola than by a level, for example a hump.
pub(super) fn bend(cells: &[f64], most_persistence: f64) -> Option<f64> {
    let count = cells.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let level = mean(cells);
    let line = |row: usize| row as f64 - middle;
    let curve = |row: usize| line(row).powi(2) - (count * count - 1.0) / 12.0;
    let slope = coefficient(cells, line);
    let curvature = coefficient(cells, curve);
    let flat = vec![level; cells.len()];
    let bent: Vec<f64> =
        (0..cells.len()).map(|row| level + slope * line(row) + curvature * curve(row)).collect();
    let evidence =
        remainder(cells, &flat, 1, most_persistence).cost - remainder(cells, &bent, 3, most_persistence).cost;
    let (low, high) =
        bent.iter().fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(*one), high.max(*one)));
    let is_bent = evidence > for_few(PENALTY_OF_BEND, cells.len()) && high - low > TOLERANCE;
    is_bent.then_some(slope + 2.0 * curvature * middle)
}

/// The coefficient of least squares for a `basis` whose mean is zero.
fn coefficient(cells: &[f64], basis: impl Fn(usize) -> f64) -> f64 {
    let product: f64 = cells.iter().enumerate().map(|(row, cell)| basis(row) * cell).sum();
    let square: f64 = (0..cells.len()).map(|row| basis(row).powi(2)).sum();
    if square > 0.0 { product / square } else { 0.0 }
}
