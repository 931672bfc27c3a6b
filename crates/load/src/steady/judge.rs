//! The verdict on one series.

use super::cells::{Cells, mean};
use super::clean::{self, Clean};
use super::explain::{Bounds, Explanation, Shape, explain, for_few};
use super::noise::{MOST_PERSISTENCE, Noise};
use super::pieces::Piece;
use super::tail::{bend, independent, persistence};
use super::{Better, Series, period};

/// Fewer rows than this are not judged.
const FEWEST_ROWS: usize = 15;
/// Rows are averaged until at most this many cells are left.
const MOST_CELLS: usize = 200;
/// A piece has at least this many cells.
const SHORTEST_PIECE: usize = 5;
/// A piece has at least this many cycles.
const SHORTEST_PIECE_OF_CYCLES: usize = 3;
/// The evidence that a change needs: twice a log likelihood, for many rows.
const PENALTY: f64 = 15.0;
/// The steady part is at least this share of the rows.
const STEADY_SHARE: f64 = 0.25;
/// The steady part says as much as this many independent rows.
const FEWEST_INDEPENDENT: f64 = 8.0;
/// A piece of at most this share of the cells, between two at one level, is a stall that has passed.
const LONGEST_STALL: f64 = 0.05;
/// Levels before and after a stall differ by at most this many standard errors.
const STANDARD_ERRORS_OF_SAME: f64 = 3.0;
/// Means over a cycle share little with the cycle before.
const MOST_PERSISTENCE_OF_CYCLES: f64 = 0.2;
/// An approach is over when this share of the distance is left.
const APPROACHED: f64 = 0.025;
/// A part bends only if noise with this persistence does not explain it better.
const LEAST_PERSISTENCE_OF_BEND: f64 = 0.2;
/// A series whose neighbouring cells are correlated more than this wanders.
const WANDERING: f64 = 0.85;
/// A change of less than this, in logarithms, is no change.
pub(super) const TOLERANCE: f64 = 0.01;

/// What one series says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Finding {
    Steady { from_row: usize, period_rows: Option<f64> },
    Warming,
    Slowing,
    TooShort,
}

/// The verdict on one series; `None` if fewer than half of its rows are known.
pub(super) fn judge(series: &Series<'_>) -> Option<Finding> {
    let Clean { rows, limited } = clean::clean(series.values)?;
    if rows.len() < FEWEST_ROWS {
        return Some(Finding::TooShort);
    }
    let plain = Cells::new(&rows, rows.len().div_ceil(MOST_CELLS) as f64);
    let bounds = Bounds {
        penalty: for_few(PENALTY, plain.means.len()),
        shortest: SHORTEST_PIECE,
        most_persistence: MOST_PERSISTENCE,
    };
    let explanation = explain(&plain.means, bounds);
    let period_rows = period::period(&plain.without(&limited, &explanation));
    let (cells, end) = match period_rows {
        None => {
            let end = end(&plain.means, &explanation, FEWEST_INDEPENDENT);
            (plain, end)
        }
        Some(period) => {
            let cycles = Cells::new(&rows, period * (rows.len() as f64 / period / MOST_CELLS as f64).ceil());
            let bounds = Bounds {
                penalty: for_few(PENALTY, cycles.means.len()),
                shortest: SHORTEST_PIECE_OF_CYCLES,
                most_persistence: MOST_PERSISTENCE_OF_CYCLES,
            };
            let explanation = explain(&cycles.means, bounds);
            // A cycle has been seen often enough to be found, which is enough.
            let end = end(&cycles.means, &explanation, 0.0);
            (cycles, end)
        }
    };
    Some(match end {
        End::Steady { from } => Finding::Steady { from_row: cells.first_row(from), period_rows },
        End::Changing { by } if (by > 0.0) == (series.better == Better::Higher) => Finding::Warming,
        End::Changing { .. } => Finding::Slowing,
        End::Unclear => Finding::TooShort,
    })
}

/// The end of a series, without regard to what is better.
enum End {
    Steady { from: usize },
    Changing { by: f64 },
    Unclear,
}

/// What the explanation of a series says about its end.
fn end(cells: &[f64], explanation: &Explanation, fewest: f64) -> End {
    let noise = &explanation.noise;
    let (from, change) = match &explanation.shape {
        Shape::Pieces(found) => after_pieces(found, noise),
        Shape::Approach { distance, time } => {
            let left = (TOLERANCE / distance.abs()).clamp(APPROACHED, 1.0);
            ((-left.ln() * time).ceil() as usize, -distance)
        }
        Shape::Drift { slope } => (cells.len(), *slope),
    };
    if (cells.len().saturating_sub(from) as f64) < STEADY_SHARE * cells.len() as f64 {
        return End::Changing { by: change };
    }
    let tail: Vec<f64> =
        cells.iter().zip(&explanation.fitted).skip(from).map(|(cell, fitted)| cell - fitted).collect();
    let tail = tail.as_slice();
    if let Some(by) = bend(tail, noise.persistence.max(LEAST_PERSISTENCE_OF_BEND)) {
        return End::Changing { by };
    }
    if persistence(tail) > WANDERING {
        let quarter = tail.len() / 4;
        let (before, last) = tail[tail.len() - 2 * quarter..].split_at(quarter);
        return End::Changing { by: mean(last) - mean(before) };
    }
    if independent(tail.len(), noise) < fewest {
        return End::Unclear;
    }
    End::Steady { from }
}

/// Where the last level begins, and the last change. With a sloped last piece it begins at the end.
///
/// Pieces before the last that are at its level belong to it, also across a short piece: a stall that has passed.
fn after_pieces(found: &[Piece], noise: &Noise) -> (usize, f64) {
    let last = &found[found.len() - 1];
    if last.change().abs() > TOLERANCE {
        return (last.end, last.slope);
    }
    let is_same = |piece: &Piece| {
        let error = noise.error_of_mean(piece.rows()).hypot(noise.error_of_mean(last.rows()));
        let limit = TOLERANCE.max(STANDARD_ERRORS_OF_SAME * error);
        (piece.level - last.level).abs() < limit && piece.change().abs() <= TOLERANCE
    };
    let longest_stall = (LONGEST_STALL * last.end as f64).max(SHORTEST_PIECE as f64);
    let mut first = found.len() - 1;
    loop {
        if first >= 1 && (found[first - 1].level - last.level).abs() < TOLERANCE && is_same(&found[first - 1])
        {
            first -= 1;
        } else if first >= 2 && found[first - 1].rows() <= longest_stall && is_same(&found[first - 2]) {
            first -= 2;
        } else {
            break;
        }
    }
    let before = first.checked_sub(1).map_or(last.level, |before| found[before].level);
    (found[first].start, last.level - before)
}
