//! Change points of a series of values, such as one figure of many commits: E-divisive with Student's t-test.
//!
//! It follows Apache Otava, which was Hunter (Fleming et al., Hunter: Using change point detection to hunt for performance
//! regressions, 2023): `otava/analysis.py` and `otava/change_point_divisive` at commit 1ceb153. A window slides over the series by half of
//! its length, or to the last change point in it. In each window, the series is split where the energy statistic of Matteson and
//! James (A nonparametric approach for multiple change point analysis of multivariate data, 2014) is greatest, as long as a
//! t-test of the two pieces has a p of at most ten times `Options::p`. These points are weak. Then the weakest point is
//! removed and its neighbours are tested again, until all have a p below `Options::p` and a magnitude over `Options::magnitude`.
//! Nothing is random, so the same values give the same points.
//!
//! Deviations from Otava:
//!
//! - Spikes are set aside first: values that are further than `Options::spike` standard deviations from those before them and from
//!   those after them. Otava takes single spikes for changes (its issue 150), or misses a change beside them.
//! - A piece between two points has at least `Options::shortest` values. Otava has no such limit.
//! - After a point is removed, the points before and after it are tested again. Otava tests the point after it and the one after
//!   that, so that the one before it keeps its old p.
//! - Values that are absent are not in the series. Otava repeats the last known value.
//! - All values are analysed each time. Otava can analyse only those that were appended.
//! - Where all values of both pieces are equal, p is 1. Otava has no p there, and does not report a point either.

mod divisive;
mod pieces;
mod spikes;
#[cfg(test)]
mod tests;

use divisive::weak_points;
use pieces::{Pieces, Test};
use spikes::without_spikes;

/// How points are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Values of a window: at least 2.
    pub window: usize,
    /// A point has a p below this, over 0 and at most 1.
    pub p: f64,
    /// A point has a magnitude over this: the relative change, up or down, whichever is greater; at least 0.
    pub magnitude: f64,
    /// Values of a piece, at least 1. With 2, a last value that is far from the others is no change until the next one confirms it.
    pub shortest: usize,
    /// A value that is further from both its sides is a spike: standard deviations of the noise, over 0. If absent, no value is.
    pub spike: Option<f64>,
}

impl Options {
    /// The rules of Otava, whose deviations are then only those that have no option.
    pub fn otava() -> Options {
        Options { shortest: 1, spike: None, ..Options::default() }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options { window: 50, p: 0.001, magnitude: 0.0, shortest: 2, spike: Some(5.0) }
    }
}

/// A change of the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The place of the first value that has the change, from 0.
    pub index: usize,
    /// The mean of the values from the change before it, or from the first value, without spikes, in the unit of the values.
    pub before: f64,
    /// The mean of the values up to the next change, or to the last value, without spikes.
    pub after: f64,
    /// The p value of Student's t-test of the two pieces. It does not account for the choice of the place.
    pub p: f64,
}

impl Change {
    /// The mean after the change divided by that before it. Absent if that is 0.
    pub fn ratio(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before)
    }
}

/// Why a series has no answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SeriesError {
    /// Too few values.
    #[error("the series has {actual} values: change points need at least {wanted}")]
    TooShort {
        /// Values that are needed.
        wanted: usize,
        /// Values that there are.
        actual: usize,
    },
    /// A value is infinite or not a number.
    #[error("value {index} of the series is {value}: leave out values that are not known")]
    NotFinite {
        /// The place of the value, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// An option is out of its range.
    #[error("{name} is {value}: expected {expected}")]
    OutOfRange {
        /// The option.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Its range.
        expected: &'static str,
    },
}

/// The changes in a series, in its order.
///
/// # Errors
///
/// If the series has fewer than three values or fewer than two pieces need, if a value is not finite, or if an option is out
/// of its range.
pub fn changes(values: &[f64], options: &Options) -> Result<Vec<Change>, SeriesError> {
    let out = |name, value, expected| Err(SeriesError::OutOfRange { name, value, expected });
    if options.window < 2 {
        return out("window", options.window as f64, "at least 2");
    }
    if !(options.p > 0.0 && options.p <= 1.0) {
        return out("p", options.p, "over 0 and at most 1");
    }
    if !(options.magnitude >= 0.0 && options.magnitude.is_finite()) {
        return out("magnitude", options.magnitude, "at least 0");
    }
    if options.shortest == 0 {
        return out("shortest", 0.0, "at least 1");
    }
    if let Some(spike) = options.spike.filter(|spike| !(*spike > 0.0 && spike.is_finite())) {
        return out("spike", spike, "over 0, or absent");
    }
    let wanted = options.shortest.saturating_mul(2).max(3);
    if values.len() < wanted {
        return Err(SeriesError::TooShort { wanted, actual: values.len() });
    }
    if let Some((index, value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(SeriesError::NotFinite { index, value: *value });
    }
    let places = match options.spike {
        Some(deviations) => without_spikes(values, deviations),
        None => (0..values.len()).collect(),
    };
    let kept: Vec<f64> = places.iter().map(|place| values[*place]).collect();
    let mut pieces = Pieces::new(&kept, weak_points(&kept, options.window, relaxed(options.p)));
    while let Some(weakest) = pieces.weakest(options) {
        pieces.remove(weakest);
    }
    let change = |(point, test): (usize, &Test)| {
        let Test { before, after, p } = *test;
        Change { index: places[point], before, after, p }
    };
    Ok(pieces.points().map(change).collect())
}

/// The p of weak points, as Otava has it.
fn relaxed(p: f64) -> f64 {
    match p {
        p if p < 0.05 => 10.0 * p,
        p if p < 0.5 => 2.0 * p,
        p => p,
    }
}
