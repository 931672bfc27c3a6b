//! Rows averaged into fewer, wider cells.

use super::explain::{Explanation, Shape};

/// A series of more pieces is not detrended by them.
const MOST_PIECES: usize = 3;

/// Means over some rows each, which need not be a whole number. The last cell ends with the last row, and rows at the start
/// that do not fill a cell are skipped.
pub(super) struct Cells {
    /// The mean of each cell.
    pub means: Vec<f64>,
    width: f64,
    rows: usize,
}

impl Cells {
    /// The cells of `width` rows each.
    pub fn new(rows: &[f64], width: f64) -> Cells {
        let mut sums = vec![0.0];
        for row in rows {
            sums.push(sums[sums.len() - 1] + row);
        }
        let sum_until = |place: f64| {
            let row = (place.max(0.0) as usize).min(rows.len() - 1);
            sums[row] + (place - row as f64) * rows[row]
        };
        let count = (rows.len() as f64 / width + 1e-9).floor() as usize;
        let place = |cell: usize| rows.len() as f64 - (count - cell) as f64 * width;
        let means =
            (0..count).map(|cell| (sum_until(place(cell + 1)) - sum_until(place(cell))) / width).collect();
        Cells { means, width, rows: rows.len() }
    }

    /// The first row of a cell; that of the first cell is the first row of all.
    pub fn first_row(&self, cell: usize) -> usize {
        if cell == 0 {
            return 0;
        }
        (self.rows as f64 - (self.means.len() - cell) as f64 * self.width).round() as usize
    }

    /// The rows of whole cells less what explains them. Many pieces may be the teeth of a saw, and are left in.
    pub fn without(&self, rows: &[f64], explanation: &Explanation) -> Vec<f64> {
        let is_simple = match &explanation.shape {
            Shape::Pieces(found) => found.len() <= MOST_PIECES,
            Shape::Approach { .. } | Shape::Drift { .. } => true,
        };
        let width = self.width as usize;
        let rows = &rows[rows.len() - self.means.len() * width..];
        let fitted = |row: usize| if is_simple { explanation.fitted[row / width] } else { 0.0 };
        rows.iter().enumerate().map(|(row, value)| value - fitted(row)).collect()
    }
}

/// The mean; 0 of no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_fraction_of_a_row_end_with_the_last_row() {
        let rows: Vec<f64> = (0..10).map(f64::from).collect();
        let cells = Cells::new(&rows, 2.5);
        assert_eq!(cells.means.len(), 4);
        assert!((cells.means[3] - (0.5 * 7.0 + 8.0 + 9.0) / 2.5).abs() < 1e-12, "{:?}", cells.means);
        assert_eq!(Cells::new(&rows, 4.0).means, [3.5, 7.5]);
        assert_eq!((cells.first_row(0), Cells::new(&rows, 4.0).first_row(1)), (0, 6));
    }
}
