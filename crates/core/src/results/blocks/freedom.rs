//! How many degrees of freedom the residuals of each engine have where engines have no run in some blocks.
//!
//! A block in which an engine runs alone tells nothing of its noise: the effect of the block takes all of it. In general the fitted
//! effects take the part of a run's variance that is called its leverage (Hoaglin and Welsch, The Hat Matrix in Regression and
//! ANOVA, 1978), and what is left of all runs of an engine are its degrees of freedom. If all engines run in all blocks, they are
//! (blocks - 1) times what the engine's weight leaves of an effect of a block.

/// The part of its own equation that is added to each engine's: only differences of effects are determined. It changes them by
/// as little.
const SLACK: f64 = 1e-9;

/// Fewer degrees are none, but for what is added and for rounding.
const NONE: f64 = 1e-5;

/// The degrees of freedom of each engine. `precisions`: the inverse of the variance of each run, a row for each engine; 0: there is
/// no run.
pub(super) fn degrees(precisions: &[Vec<f64>]) -> Vec<f64> {
    let engines = precisions.len();
    let blocks = precisions.first().map_or(0, Vec::len);
    let totals: Vec<f64> = (0..blocks).map(|block| precisions.iter().map(|row| row[block]).sum()).collect();
    // The weights of the engines in the effect of a block.
    let weights = |block: usize| -> Vec<f64> {
        let of = |row: &Vec<f64>| if totals[block] > 0.0 { row[block] / totals[block] } else { 0.0 };
        precisions.iter().map(of).collect()
    };
    let weights: Vec<Vec<f64>> = (0..blocks).map(weights).collect();
    // The equations of the effects of engines after those of blocks are eliminated.
    let equation = |one: usize| -> Vec<f64> {
        let own: f64 = precisions[one].iter().sum();
        let of = |other: usize| {
            let common: f64 = (0..blocks).map(|block| precisions[one][block] * weights[block][other]).sum();
            match one == other {
                true if own > 0.0 => own * (1.0 + SLACK) - common,
                true => 1.0,
                false => -common,
            }
        };
        (0..engines).map(of).collect()
    };
    let covariances = inverse((0..engines).map(equation).collect());
    let mut degrees = vec![0.0; engines];
    for (block, weights) in weights.iter().enumerate() {
        // The covariances of the mean of the block's engines with each engine, and its own variance.
        let of_mean: Vec<f64> = covariances.iter().map(|row| product(row, weights)).collect();
        let own = product(&of_mean, weights);
        for (engine, degrees) in degrees.iter_mut().enumerate() {
            let precision = precisions[engine][block];
            if precision > 0.0 {
                let fitted = covariances[engine][engine] - 2.0 * of_mean[engine] + own + 1.0 / totals[block];
                *degrees += 1.0 - precision * fitted;
            }
        }
    }
    degrees.iter().map(|degrees| if *degrees < NONE { 0.0 } else { *degrees }).collect()
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The inverse of a symmetric, positive definite matrix (Gauss and Jordan, in place).
fn inverse(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for pivot in 0..rows.len() {
        let factor = 1.0 / rows[pivot][pivot];
        rows[pivot][pivot] = 1.0;
        rows[pivot].iter_mut().for_each(|value| *value *= factor);
        let own = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(place, _)| *place != pivot) {
            let times = std::mem::take(&mut row[pivot]);
            row.iter_mut().zip(&own).for_each(|(value, own)| *value -= times * own);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::random::Random;

    #[test]
    fn degrees_of_whole_tables_are_those_of_the_weights_in_the_effects_of_blocks() {
        let precisions = [4.0, 1.0, 0.5, 2.5];
        let rows: Vec<Vec<f64>> = precisions.iter().map(|precision| vec![*precision; 6]).collect();
        for (found, precision) in degrees(&rows).iter().zip(precisions) {
            assert!((found - 5.0 * (1.0 - precision / 8.0)).abs() < 1e-6, "{found} of precision {precision}");
        }
    }

    #[test]
    fn a_run_alone_in_its_block_adds_nothing_and_all_degrees_are_the_runs_less_the_effects() {
        let whole = vec![vec![1.0; 3]; 4];
        let mut late = whole.clone();
        late.iter_mut().for_each(|row| row.extend([0.0; 2]));
        late[1][3..].fill(2.0);
        for (one, other) in degrees(&whole).iter().zip(degrees(&late)) {
            assert!((one - other).abs() < 1e-6, "{one} and {other}");
        }
        // One without runs, and two that share no block.
        assert_eq!(degrees(&[vec![0.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]]), [0.0; 3]);
        for seed in 0..50 {
            let mut random = Random::seeded(seed);
            let mut row = |_| -> Vec<f64> {
                (0..7)
                    .map(
                        |block| {
                            if block < 2 || random.unit() < 0.4 { 10.0 * random.unit() + 0.01 } else { 0.0 }
                        },
                    )
                    .collect()
            };
            let rows: Vec<Vec<f64>> = (0..5).map(&mut row).collect();
            let runs = rows.iter().flatten().filter(|precision| **precision > 0.0).count();
            let blocks = (0..7).filter(|block| rows.iter().any(|row| row[*block] > 0.0)).count();
            let all: f64 = degrees(&rows).iter().sum();
            assert!((all - (runs as f64 - 5.0 - blocks as f64 + 1.0)).abs() < 1e-4, "seed {seed}: {all}");
        }
    }
}
