//! A series that points divide, and the tests of neighbouring pieces.

use super::Options;
use crate::student;

/// What Student's t-test says of two neighbouring pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Test {
    pub before: f64,
    pub after: f64,
    pub p: f64,
}

impl Test {
    /// The test with equal variances. As in Otava, these are means of squares, without Bessel's correction, so p is a little
    /// smaller than usual.
    pub fn new(left: &[f64], right: &[f64]) -> Test {
        let (n, m) = (left.len() as f64, right.len() as f64);
        let (before, after) = (mean(left), mean(right));
        let squares = |values: &[f64], mean: f64| {
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
        };
        let freedom = (left.len() + right.len()).saturating_sub(2);
        let pooled = ((n - 1.0) * squares(left, before) + (m - 1.0) * squares(right, after)) / freedom as f64;
        let t = (after - before) / (pooled * (1.0 / n + 1.0 / m)).sqrt();
        // Two values, or only equal ones, show nothing.
        let p = if freedom == 0 || t.is_nan() { 1.0 } else { student::two_sided(t, freedom) };
        Test { before, after, p }
    }

    /// The relative change, up or down, whichever is greater. It is 0 if there is none, and also to or from 0 in that direction.
    fn magnitude(&self) -> f64 {
        let change = |from: f64, to: f64| if from == 0.0 { 0.0 } else { (to / from - 1.0).abs() };
        change(self.before, self.after).max(change(self.after, self.before))
    }
}

/// The mean, exact for equal values.
fn mean(values: &[f64]) -> f64 {
    let first = values[0];
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// A series with points, each the first place of a piece, and their tests.
pub(super) struct Pieces<'v> {
    values: &'v [f64],
    points: Vec<(usize, Test)>,
}

impl<'v> Pieces<'v> {
    /// The series with points at these places, in ascending order.
    pub fn new(values: &'v [f64], points: Vec<usize>) -> Pieces<'v> {
        let test = Test { before: 0.0, after: 0.0, p: 1.0 };
        let mut pieces = Pieces { values, points: points.into_iter().map(|point| (point, test)).collect() };
        (0..pieces.points.len()).for_each(|at| pieces.test(at));
        pieces
    }

    pub fn points(&self) -> impl Iterator<Item = (usize, &Test)> {
        self.points.iter().map(|(point, test)| (*point, test))
    }

    /// The ends of the two pieces that meet at a point.
    fn around(&self, at: usize) -> (usize, usize, usize) {
        let before = at.checked_sub(1).map_or(0, |before| self.points[before].0);
        let after = self.points.get(at + 1).map_or(self.values.len(), |(after, _)| *after);
        (before, self.points[at].0, after)
    }

    fn test(&mut self, at: usize) {
        let (before, point, after) = self.around(at);
        self.points[at].1 = Test::new(&self.values[before..point], &self.values[point..after]);
    }

    /// The point to remove next, if any: the one with the highest p of those beside a piece that is too short, then of all whose p
    /// is too high; then the one with the smallest magnitude, if it is too small.
    pub fn weakest(&self, options: &Options) -> Option<usize> {
        // The first of equal ones.
        let by_p = |a: &usize, b: &usize| self.points[*a].1.p.total_cmp(&self.points[*b].1.p).then(b.cmp(a));
        let is_beside_short = |at: &usize| {
            let (before, point, after) = self.around(*at);
            (point - before).min(after - point) < options.shortest
        };
        let all = 0..self.points.len();
        let short = all.clone().filter(is_beside_short).max_by(by_p);
        let weak = || all.clone().max_by(by_p).filter(|at| self.points[*at].1.p >= options.p);
        let small = || {
            let magnitude = |at: &usize| self.points[*at].1.magnitude();
            let smallest = all.clone().min_by(|a, b| magnitude(a).total_cmp(&magnitude(b)));
            smallest.filter(|at| magnitude(at) <= options.magnitude)
        };
        short.or_else(weak).or_else(small)
    }

    /// Removes a point, and tests its neighbours again.
    pub fn remove(&mut self, at: usize) {
        self.points.remove(at);
        if let Some(before) = at.checked_sub(1) {
            self.test(before);
        }
        if at < self.points.len() {
            self.test(at);
        }
    }
}
