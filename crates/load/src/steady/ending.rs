//! When a phase ends that is to end once it is steady.

use super::{Better, Series, Verdict, verdict};

/// A phase has at least this many rows: the first level of a series that bends later is steady as far as it goes.
const FEWEST_ROWS: usize = 40;
/// It is looked at after this many rows each.
const ROWS_PER_LOOK: usize = 5;
/// This many looks in turn must find it steady. One of many looks finds a lull of a series that still changes.
const LOOKS: usize = 3;

/// The steady part is divided into this many batches, of which the first half is compared with the second: means of batches vary
/// as much as the noise of a series says, however it persists.
const BATCHES: usize = 8;
/// Values are limited to this many times the median deviation from the median.
const DEVIATIONS: f64 = 4.0;
/// The 97.5th percentile of Student's t with six degrees of freedom.
const T: f64 = 2.447;

/// A figure of a phase that is to end when it is steady.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Which direction is an improvement.
    pub better: Better,
    /// How much the second half of the steady part may differ from the first with 95 % confidence, as a part of the mean.
    pub tolerance: f64,
}

/// Watches the rows of a phase, one a second, until it has been steady for some time.
#[derive(Debug)]
pub struct Ending {
    watched: Vec<Watched>,
    columns: Vec<Vec<Option<f64>>>,
    agreed: usize,
}

impl Ending {
    /// For rows of these figures.
    pub fn new(watched: &[Watched]) -> Ending {
        Ending { watched: watched.to_vec(), columns: vec![Vec::new(); watched.len()], agreed: 0 }
    }

    /// Adds the row of the next second; a figure that is missing is unknown. Returns whether the phase may end.
    pub fn observe(&mut self, row: &[Option<f64>]) -> bool {
        for (place, column) in self.columns.iter_mut().enumerate() {
            column.push(row.get(place).copied().flatten());
        }
        let rows = self.columns.first().map_or(0, Vec::len);
        if rows < FEWEST_ROWS - (LOOKS - 1) * ROWS_PER_LOOK || !rows.is_multiple_of(ROWS_PER_LOOK) {
            return false;
        }
        self.agreed = if self.is_steady() { self.agreed + 1 } else { 0 };
        self.agreed >= LOOKS
    }

    /// Whether the verdict is steady and no figure can have changed by more than its tolerance since. The verdict alone says that no
    /// change is known, which a slow one may not be yet.
    fn is_steady(&self) -> bool {
        let columns = || self.columns.iter().zip(&self.watched);
        let series: Vec<Series<'_>> =
            columns().map(|(values, watched)| Series { values, better: watched.better }).collect();
        let from = match verdict(&series, 1.0) {
            Verdict::Steady { from_seconds, .. } | Verdict::SteadyWithPeriod { from_seconds, .. } => {
                from_seconds
            }
            _ => return false,
        };
        columns().all(|(values, watched)| {
            let part = values.get(from as usize..).unwrap_or(&[]);
            change(part).is_none_or(|most| most <= watched.tolerance)
        })
    }
}

/// The values, where those far from the median are replaced by a limit: a stall is no change.
fn limited(values: Vec<f64>) -> Vec<f64> {
    let middle = median(values.clone());
    let deviation = median(values.iter().map(|value| (value - middle).abs()).collect());
    let (low, high) = (middle - DEVIATIONS * deviation, middle + DEVIATIONS * deviation);
    values.into_iter().map(|value| value.clamp(low, high)).collect()
}

/// The median; 0 if there are no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        length => values[(length - 1) / 2].midpoint(values[length / 2]),
    }
}

/// How much the second half of a series may differ from the first, as a part of the mean: the larger end of the 95 % interval. None:
/// fewer than half of the rows are known, or all are 0.
fn change(values: &[Option<f64>]) -> Option<f64> {
    let known = limited(values.iter().copied().flatten().collect());
    let length = known.len() / BATCHES;
    if known.len() * 2 < values.len() || length == 0 {
        return None;
    }
    // The first rows are left over.
    let batches = known[known.len() - length * BATCHES..].chunks_exact(length);
    let means: Vec<f64> = batches.map(|batch| batch.iter().sum::<f64>() / length as f64).collect();
    let (first, second) = means.split_at(BATCHES / 2);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let squares = |part: &[f64]| part.iter().map(|value| (value - mean(part)).powi(2)).sum::<f64>();
    let half = first.len() as f64;
    let error = ((squares(first) + squares(second)) / (2.0 * half - 2.0) * 2.0 / half).sqrt();
    let all = mean(&means);
    (all > 0.0).then(|| ((mean(second) - mean(first)).abs() + T * error) / all)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Random;
    use super::*;

    const SEEDS: u64 = 66;

    /// The rows after which a phase of this shape ends; none: not within 300.
    fn end(random: &mut Random, shape: &dyn Fn(usize) -> f64, noise: f64) -> Option<usize> {
        let mut ending = Ending::new(&[Watched { better: Better::Higher, tolerance: 0.02 }]);
        let mut ends = |row: usize| {
            let value = 1e5 * shape(row) * (1.0 + random.between(-noise, noise));
            ending.observe(&[Some(value)])
        };
        (0..300).find(|row| ends(*row)).map(|row| row + 1)
    }

    fn ends(shape: &dyn Fn(usize) -> f64) -> Vec<Option<usize>> {
        let end = |seed| end(&mut Random::new(seed), shape, 0.03);
        (1..=SEEDS).map(end).collect()
    }

    #[test]
    fn a_flat_phase_ends_soon_and_never_before_forty_seconds() {
        let mut all: Vec<usize> = ends(&|_| 1.0).into_iter().map(|end| end.unwrap_or(300)).collect();
        all.sort_unstable();
        assert_eq!(all[0], FEWEST_ROWS);
        assert!(all[SEEDS as usize * 9 / 10] <= 100, "{all:?}");
    }

    #[test]
    fn a_phase_that_still_changes_does_not_end() {
        // It rises by 30 % over the whole time, or falls by 40 %.
        for change in [0.3, -0.4] {
            let all = ends(&|row| 1.0 + change * row as f64 / 300.0);
            let ended = all.iter().flatten().count();
            assert!(ended as u64 <= SEEDS / 33, "{change}: {ended} of {SEEDS} ended, {all:?}");
        }
    }

    #[test]
    fn a_warm_up_is_over_when_its_phase_ends() {
        // With a time constant of 20 s, 2.5 % of the distance are left after 74 s.
        let all = ends(&|row| 1.0 - 0.5 * (-(row as f64) / 20.0).exp());
        let early = all.iter().flatten().filter(|end| **end < 74).count();
        assert!(early as u64 <= SEEDS / 33, "{early} of {SEEDS} ended early: {all:?}");
        assert!(all.iter().flatten().count() as u64 >= SEEDS * 9 / 10, "{all:?}");
    }

    #[test]
    fn a_stall_does_not_keep_a_phase_from_ending() {
        let with_stall = |stall: bool| {
            let shape = move |row: usize| if stall && row == 33 { 0.2 } else { 1.0 };
            end(&mut Random::new(7), &shape, 0.01)
        };
        assert_eq!(with_stall(false), Some(FEWEST_ROWS));
        assert!(with_stall(true).is_some_and(|end| end <= 100), "{:?}", with_stall(true));
    }

    #[test]
    fn rows_of_unknown_figures_never_end_a_phase() {
        let watched = [Better::Higher, Better::Lower].map(|better| Watched { better, tolerance: 0.1 });
        let mut ending = Ending::new(&watched);
        assert!((0..200).all(|_| !ending.observe(&[None])));
    }
}
