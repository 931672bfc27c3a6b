//! A series cut into flat and sloped pieces, as few as explain it.

use super::noise::{LEAST_VARIANCE, Noise};

/// How many rows of the common noise are added to each piece when its variance is estimated.
const PRIOR_ROWS: f64 = 5.0;

/// A run of rows with one level, or with one slope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// The first row.
    pub start: usize,
    /// One past the last row.
    pub end: usize,
    /// The mean.
    pub level: f64,
    /// The change per row; 0 for a flat piece.
    pub slope: f64,
}

impl Piece {
    /// The number of its rows.
    pub fn rows(&self) -> f64 {
        (self.end - self.start) as f64
    }

    /// The change from its start to its end.
    pub fn change(&self) -> f64 {
        self.slope * self.rows()
    }

    /// The fitted value of a row.
    pub fn at(&self, row: usize) -> f64 {
        self.level + self.slope * (row as f64 - (self.start + self.end - 1) as f64 / 2.0)
    }
}

/// Sums from which the fit of any piece is found in constant time.
struct Sums {
    mean: f64,
    value: Vec<f64>,
    square: Vec<f64>,
    row_value: Vec<f64>,
}

/// What the fits of all pieces share.
struct Model<'a> {
    noise: &'a Noise,
    penalty: f64,
    /// By the rows of a piece: the share of its variance that a slope may leave to be worth its penalty.
    worth: Vec<f64>,
}

impl Model<'_> {
    fn new(noise: &Noise, penalty: f64, rows: usize) -> Model<'_> {
        let worth = |rows: usize| (-penalty * noise.rows_per_independent() / rows as f64).exp();
        Model { noise, penalty, worth: (0..=rows).map(worth).collect() }
    }
}

/// The best fit of a piece.
struct Fit {
    cost: f64,
    level: f64,
    slope: f64,
}

/// The pieces with the least sum of costs, where each cut and each slope costs `penalty`.
///
/// The cost of a piece is twice the negative log likelihood of normal rows with a mean and a variance of its own (`meanvar`
/// of Killick, Fearnhead and Eckley, Optimal Detection of Changepoints With a Linear Computational Cost, JASA 2012),
/// divided by the rows per independent row of the noise. A slope may replace the mean. The optimum is exact; their pruning is
/// not needed for the few hundred rows that are given.
pub(super) fn pieces(values: &[f64], noise: &Noise, penalty: f64, shortest: usize) -> Vec<Piece> {
    let rows = values.len();
    let sums = Sums::new(values);
    let model = Model::new(noise, penalty, rows);
    let mut best = vec![f64::INFINITY; rows + 1];
    let mut cut = vec![0; rows + 1];
    best[0] = -penalty;
    for end in shortest..=rows {
        for start in 0..=end - shortest {
            if best[start].is_finite() {
                let cost = best[start] + sums.fit(start, end, &model).cost + penalty;
                if cost < best[end] {
                    best[end] = cost;
                    cut[end] = start;
                }
            }
        }
    }
    let mut found = Vec::new();
    let mut end = rows;
    while end > 0 {
        let start = cut[end];
        let fit = sums.fit(start, end, &model);
        found.push(Piece { start, end, level: fit.level, slope: fit.slope });
        end = start;
    }
    found.reverse();
    found
}

impl Sums {
    fn new(values: &[f64]) -> Sums {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let mut sums = Sums { mean, value: vec![0.0], square: vec![0.0], row_value: vec![0.0] };
        let (mut value, mut square, mut row_value) = (0.0, 0.0, 0.0);
        for (row, one) in values.iter().enumerate() {
            let one = one - mean;
            value += one;
            square += one * one;
            row_value += row as f64 * one;
            sums.value.push(value);
            sums.square.push(square);
            sums.row_value.push(row_value);
        }
        sums
    }

    fn fit(&self, start: usize, end: usize, model: &Model<'_>) -> Fit {
        let rows = (end - start) as f64;
        let value = self.value[end] - self.value[start];
        let level = value / rows;
        let around_level = (self.square[end] - self.square[start] - value * level).max(0.0);
        let middle = (start + end - 1) as f64 / 2.0;
        let product = self.row_value[end] - self.row_value[start] - middle * value;
        let around_middle = rows * (rows * rows - 1.0) / 12.0;
        let around_line = (around_level - product * product / around_middle).max(0.0);
        let weight = rows / model.noise.rows_per_independent();
        let variance = |residual: f64| {
            ((residual + PRIOR_ROWS * model.noise.variance) / (rows + PRIOR_ROWS)).max(LEAST_VARIANCE)
        };
        let (flat, sloped) = (variance(around_level), variance(around_line));
        if sloped < flat * model.worth[end - start] {
            let cost = weight * sloped.ln() + model.penalty;
            Fit { cost, level: self.mean + level, slope: product / around_middle }
        } else {
            Fit { cost: weight * flat.ln(), level: self.mean + level, slope: 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_and_a_slope_are_cut_where_they_begin() {
        let values: Vec<f64> = (0..90)
            .map(|row| {
                f64::from(row % 2) * 0.02
                    + if row < 30 { 0.0 } else { 1.0 + f64::from((row - 60).max(0)) * 0.1 }
            })
            .collect();
        let found = pieces(&values, &Noise { variance: 1e-4, persistence: 0.0 }, 15.0, 5);
        let cuts: Vec<usize> = found.iter().map(|piece| piece.start).collect();
        assert_eq!(cuts.len(), 3, "{found:?}");
        assert_eq!(cuts[..2], [0, 30]);
        assert!((59..=62).contains(&cuts[2]), "{found:?}");
        assert_eq!((found[0].slope, found[1].slope), (0.0, 0.0));
        assert!((found[2].slope - 0.1).abs() < 0.005 && (found[2].at(89) - 3.9).abs() < 0.05, "{found:?}");
    }
}
