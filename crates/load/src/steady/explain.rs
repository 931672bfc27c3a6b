//! The choice between changes of level and noise that persists, which look alike in a short series.

use super::cells::mean;
use super::noise::{Noise, remainder, spread};
use super::pieces::{Piece, pieces};

/// The persistences of noise that are tried.
const PERSISTENCES: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// The shortest time constant of an approach that is tried, in rows, and the factor from one to the next.
const SHORTEST_TIME: f64 = 1.5;
const TIME_FACTOR: f64 = 1.2;
/// Drifts are tried that begin after each of the first parts of this many of the series, up to a last part, and that have a
/// least number of rows.
const DRIFTS: usize = 20;
const LATEST_DRIFT: usize = 12;
const SHORTEST_DRIFT: usize = 8;

/// What a series does, apart from noise.
pub(super) enum Shape {
    /// It has flat and sloped pieces, in order.
    Pieces(Vec<Piece>),
    /// It comes closer and closer to a level: the distance falls by a factor of e in `time` rows.
    Approach {
        /// How far the first row is above the last level.
        distance: f64,
        /// The time constant in rows.
        time: f64,
    },
    /// It has one level, then drifts to the end.
    Drift {
        /// The change per row at the end.
        slope: f64,
    },
}

/// A shape, its value in each row and the noise around it.
pub(super) struct Explanation {
    /// The shape.
    pub shape: Shape,
    /// The value of the shape in each row.
    pub fitted: Vec<f64>,
    /// The noise.
    pub noise: Noise,
}

/// How the search for an explanation is bounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// What each cut, each slope, an approach and a drift cost: twice a log likelihood.
    pub penalty: f64,
    /// The least number of rows of a piece.
    pub shortest: usize,
    /// The most persistence of noise, from 0 to 0.8.
    pub most_persistence: f64,
}

/// The penalty for few cells, of which the variance of the noise is itself uncertain, as in Student's t.
pub(super) fn for_few(penalty: f64, cells: usize) -> f64 {
    penalty * (1.0 + 8.0 / cells as f64)
}

/// The shape and the noise that together explain `values` best.
///
/// The series is cut for each of a few persistences of the noise, and exponentials and late drifts are fitted with a few
/// constants each. Of all these, the one with the highest likelihood is taken, less penalties; the noise is an
/// autoregression of order one around the shape, with the persistence that fits. Shi et al. choose between autocorrelation
/// and change points in the same way (Changepoint Detection: An Analysis of the Central England Temperature Series, 2022).
pub(super) fn explain(values: &[f64], bounds: Bounds) -> Explanation {
    let nearest = spread(values, 1);
    let piecewise =
        PERSISTENCES.into_iter().filter(|one| *one <= bounds.most_persistence).map(|persistence| {
            let assumed = Noise { variance: nearest / (2.0 * (1.0 - persistence)), persistence };
            let found = pieces(values, &assumed, bounds.penalty, bounds.shortest);
            let fitted =
                found.iter().flat_map(|piece| (piece.start..piece.end).map(|row| piece.at(row))).collect();
            (Shape::Pieces(found), fitted)
        });
    let times = std::iter::successors(Some(SHORTEST_TIME), |time| Some(time * TIME_FACTOR));
    let approaches = times.take_while(|time| *time < values.len() as f64).map(|time| approach(values, time));
    let starts = (1..=LATEST_DRIFT).map(|part| values.len() * part / DRIFTS);
    let drifts =
        starts.filter(|start| values.len() - start >= SHORTEST_DRIFT).map(|start| drift(values, start));
    let mut best: Option<(f64, Explanation)> = None;
    for (shape, fitted) in piecewise.chain(approaches).chain(drifts) {
        let penalties = shape.penalties();
        let remainder = remainder(values, &fitted, penalties + 1, bounds.most_persistence);
        let cost = remainder.cost + bounds.penalty * penalties as f64;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, Explanation { shape, fitted, noise: remainder.noise }));
        }
    }
    best.expect("a persistence of 0 is always tried").1
}

impl Shape {
    /// How many penalties it costs. An approach or a drift costs one: where it ends or begins changes few verdicts.
    fn penalties(&self) -> usize {
        match self {
            Shape::Pieces(found) => found.len() - 1 + found.iter().filter(|piece| piece.slope != 0.0).count(),
            Shape::Approach { .. } | Shape::Drift { .. } => 1,
        }
    }
}

/// The approach of least squares with one time constant.
fn approach(values: &[f64], time: f64) -> (Shape, Vec<f64>) {
    let decay: Vec<f64> = (0..values.len()).map(|row| (-(row as f64) / time).exp()).collect();
    let (distance, fitted) = fit(values, &decay);
    (Shape::Approach { distance, time }, fitted)
}

/// The drift of least squares that begins at one row.
fn drift(values: &[f64], start: usize) -> (Shape, Vec<f64>) {
    let since: Vec<f64> = (0..values.len()).map(|row| row.saturating_sub(start) as f64).collect();
    let (slope, fitted) = fit(values, &since);
    (Shape::Drift { slope }, fitted)
}

/// The coefficient of least squares of a basis beside a level, and the fitted values.
fn fit(values: &[f64], basis: &[f64]) -> (f64, Vec<f64>) {
    let (level, middle) = (mean(values), mean(basis));
    let product: f64 =
        basis.iter().zip(values).map(|(basis, value)| (basis - middle) * (value - level)).sum();
    let square: f64 = basis.iter().map(|basis| (basis - middle).powi(2)).sum();
    let coefficient = product / square;
    (coefficient, basis.iter().map(|basis| level + coefficient * (basis - middle)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approach_is_told_from_its_noise() {
        let values: Vec<f64> =
            (0..100).map(|row| 5.0 - (-f64::from(row) / 10.0).exp() + f64::from(row % 2) * 0.02).collect();
        let bounds = Bounds { penalty: 15.0, shortest: 5, most_persistence: 0.8 };
        let Shape::Approach { distance, time } = explain(&values, bounds).shape else {
            panic!("no approach")
        };
        assert!((distance + 1.0).abs() < 0.1 && (time - 10.0).abs() < 1.5, "{distance} {time}");
    }
}
