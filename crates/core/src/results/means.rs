//! Compares engines over several phases: one figure for each, although phases differ and some engines lack one.
//!
//! The log of an engine's rate in a column (a phase) is the sum of an effect of the engine, one of the column, how well the
//! two suit each other, and noise. The first two are fitted by least squares over the cells that there are, so an engine
//! without a column is compared by its other columns with what the others do there. Without missing cells, and with equal
//! weights, the effects are the geometric means.
//!
//! A column weighs `1 / (suit + noise / blocks)`: the variance of how engines suit columns, which is the same for all columns,
//! plus that of its noise. So columns weigh nearly the same where engines differ by more than chance, and a noisy column
//! weighs less where they do not.
//!
//! Intervals come from a fit of each block: the difference of two engines is the mean over blocks, with the quantiles of
//! Student. What all columns of a trial have in common is in them. Blocks of several machines count once for each machine.

use super::blocks::Machines;
use super::statistics::{Interval, LEVEL, median};
use super::variance::{Difference, RESOLUTION, Variance, mean};

/// The maximum number of iterations of a fit.
const ROUNDS: usize = 500;
/// A fit ends when no effect changes by more.
const CLOSE: f64 = 1e-10;
/// The standard deviation of a normal distribution divided by its median absolute deviation.
const SPREAD: f64 = 1.4826;
/// Runs that are further off by this many robust standard deviations do not count as noise.
const OUTLIER_SPREADS: f64 = 6.0;

/// An engine over several columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Its rate as a multiple of that of the best, 0 to 1.
    pub value: f64,
    /// The interval of that ratio, at [`LEVEL`]; none: it is the best, or there are too few blocks.
    pub interval: Option<Interval>,
    /// The number of columns in which it has figures.
    pub columns: usize,
}

/// The rates of an engine in a column, one for each block; none: the run does not count, or it has none.
pub type Rates = Vec<Option<f64>>;

/// The means of engines. `rates`: a row for each engine with its rates in each column. `machines`: the machine of each block.
/// None for an engine without figures, for one that has no column in common with most others, directly or by way of third
/// ones, and for all if only one is left.
pub fn means(rates: &[Vec<Rates>], machines: &Machines) -> Vec<Option<Mean>> {
    let columns = rates.first().map_or(0, Vec::len);
    let logs = |rate: &Option<f64>| rate.filter(|rate| rate.is_finite() && *rate > 0.0).map(f64::ln);
    let kept = connected(rates);
    let rows: Vec<usize> = (0..rates.len()).filter(|row| kept[*row]).collect();
    let mut found = vec![None; rates.len()];
    if rows.len() < 2 {
        return found;
    }
    let columns: Vec<Column> = (0..columns)
        .map(|column| {
            let own: Vec<Vec<Option<f64>>> =
                rows.iter().map(|row| rates[*row][column].iter().map(logs).collect()).collect();
            Column::of(&own, machines.len())
        })
        .collect();
    let weights = weights(&columns, rows.len(), machines.len());
    let at = |block: usize| -> Vec<Vec<Option<f64>>> {
        let of = |row: usize| columns.iter().map(|column| Some(column.logs[row].as_ref()?[block])).collect();
        (0..rows.len()).map(of).collect()
    };
    // The effect of each engine in each block.
    let effects: Vec<Vec<f64>> =
        (0..machines.len()).map(|block| additive(&at(block), &weights).rows).collect();
    let effect = |row: usize| mean(&effects.iter().map(|block| block[row]).collect::<Vec<_>>());
    let all: Vec<f64> = (0..rows.len()).map(|row| effect(row).unwrap_or_default()).collect();
    let Some(best) = (0..rows.len()).max_by(|one, other| all[*one].total_cmp(&all[*other])) else {
        return found;
    };
    let is_whole =
        |row: usize, block: usize| columns.iter().all(|column| !column.filled[row].contains(&block));
    for (place, row) in rows.iter().enumerate() {
        let value = all[place] - all[best];
        let whole = (0..machines.len()).filter(|block| is_whole(place, *block) && is_whole(best, *block));
        let differences: Vec<(usize, f64)> =
            whole.map(|block| (machines[block], effects[block][place] - effects[block][best])).collect();
        found[*row] = Some(Mean {
            value: value.exp(),
            interval: interval(value, &differences).filter(|_| place != best),
            columns: columns.iter().filter(|column| column.logs[place].is_some()).count(),
        });
    }
    found
}

/// The noise of a column: the standard deviation of the log of a rate after the effects of engine and block, pooled over the
/// engines, without runs that are so far off that comparisons exclude them; about a share of the rate. None: unknown.
pub fn noise(rates: &[Rates]) -> Option<f64> {
    let logs: Vec<Rates> = rates
        .iter()
        .map(|row| row.iter().map(|rate| rate.filter(|rate| *rate > 0.0).map(f64::ln)).collect())
        .collect();
    let residuals = Residuals::of(&logs, logs.first()?.len());
    let spread = median(&residuals.all.iter().map(|one| one.abs()).collect::<Vec<f64>>())? * SPREAD;
    let kept = residuals.all.iter().filter(|one| one.abs() <= OUTLIER_SPREADS * spread.max(RESOLUTION));
    let squares: Vec<f64> = kept.map(|one| one * one).collect();
    let degrees = residuals.degrees - (residuals.all.len() - squares.len()) as f64;
    (degrees > 0.0).then(|| (squares.iter().sum::<f64>() / degrees).sqrt())
}

/// The interval of a difference of logs whose mean is `value`, from those of the blocks, each with its machine.
fn interval(value: f64, blocks: &[(usize, f64)]) -> Option<Interval> {
    let mut machines: Vec<(usize, Vec<f64>)> = Vec::new();
    for (machine, difference) in blocks {
        match machines.iter_mut().find(|(known, _)| known == machine) {
            Some((_, own)) => own.push(*difference),
            None => machines.push((*machine, vec![*difference])),
        }
    }
    let sample: Vec<f64> = match machines.as_slice() {
        [(_, own)] => own.clone(),
        several => several.iter().filter_map(|(_, own)| mean(own)).collect(),
    };
    let variance = Variance::of(&sample, RESOLUTION)?;
    let error = (variance.value.max(RESOLUTION * RESOLUTION) / sample.len() as f64).sqrt();
    let reach = Difference { value, error, degrees: variance.degrees }.reach(1.0 - LEVEL);
    reach.is_finite().then(|| Interval {
        low: (value - reach).exp(),
        high: (value + reach).exp(),
        level: LEVEL,
    })
}

/// A column: what its engines did in each block.
struct Column {
    /// The logs of the rates in each block, for each engine; none: it has no run here. A run that is missing is what the
    /// engine's other runs and the other engines in its block suggest.
    logs: Vec<Option<Vec<f64>>>,
    /// The blocks of these runs, for each engine.
    filled: Vec<Vec<usize>>,
    /// The variance of the noise of a run; none: unknown.
    noise: Option<f64>,
}

impl Column {
    fn of(logs: &[Rates], blocks: usize) -> Column {
        let residuals = Residuals::of(logs, blocks);
        let expected = |row: usize, block: usize| residuals.fit.rows[row] + residuals.fit.columns[block];
        let of_row = |(row, own): (usize, &Rates)| {
            let has_any = own.iter().any(Option::is_some);
            let log = |block: usize| own[block].unwrap_or_else(|| expected(row, block));
            has_any.then(|| (0..blocks).map(log).collect::<Vec<f64>>())
        };
        let missing = |own: &Rates| -> Vec<usize> {
            let has_any = own.iter().any(Option::is_some);
            (0..blocks).filter(|block| has_any && own[*block].is_none()).collect()
        };
        let (degrees, squares) = (residuals.degrees, residuals.all.iter().map(|one| one * one).sum::<f64>());
        Column {
            logs: logs.iter().enumerate().map(of_row).collect(),
            filled: logs.iter().map(missing).collect(),
            noise: (degrees > 0.0).then_some(squares / degrees),
        }
    }
}

/// What the effects of engines and blocks do not explain.
struct Residuals {
    fit: Additive,
    /// Of each run.
    all: Vec<f64>,
    /// Their degrees of freedom.
    degrees: f64,
}

impl Residuals {
    fn of(logs: &[Rates], blocks: usize) -> Residuals {
        let fit = additive(logs, &vec![1.0; blocks]);
        let mut all = Vec::new();
        for (row, own) in logs.iter().enumerate() {
            let known = own.iter().enumerate().filter_map(|(block, log)| Some((block, (*log)?)));
            all.extend(known.map(|(block, log)| log - fit.rows[row] - fit.columns[block]));
        }
        let rows = logs.iter().filter(|own| own.iter().any(Option::is_some)).count();
        let used = (0..blocks).filter(|block| logs.iter().any(|own| own[*block].is_some())).count();
        let degrees = all.len() as f64 - rows as f64 - used as f64 + 1.0;
        Residuals { fit, all, degrees }
    }
}

/// The weight of each column.
fn weights(columns: &[Column], rows: usize, blocks: usize) -> Vec<f64> {
    let equal = vec![1.0; columns.len()];
    let center = |row: usize| columns.iter().map(|column| mean(column.logs[row].as_ref()?)).collect();
    let centers: Vec<Vec<Option<f64>>> = (0..rows).map(center).collect();
    let fit = additive(&centers, &equal);
    let noise = |column: &Column| column.noise.unwrap_or_default() / blocks as f64;
    let (mut squares, mut cells, mut by_noise) = (0.0, 0.0, 0.0);
    for (row, own) in centers.iter().enumerate() {
        for (place, center) in own.iter().enumerate() {
            let Some(center) = center else { continue };
            squares += (center - fit.rows[row] - fit.columns[place]).powi(2);
            cells += 1.0;
            by_noise += noise(&columns[place]);
        }
    }
    let used = columns.iter().filter(|column| column.logs.iter().any(Option::is_some)).count();
    let degrees: f64 = cells - rows as f64 - used as f64 + 1.0;
    if degrees <= 0.0 {
        return equal;
    }
    let suit = (squares / degrees - by_noise / cells).max(0.0);
    columns.iter().map(|column| 1.0 / (suit + noise(column)).max(RESOLUTION * RESOLUTION)).collect()
}

/// The effects of rows and columns, whose sums are closest to the values.
struct Additive {
    rows: Vec<f64>,
    columns: Vec<f64>,
}

/// Fits them by least squares, with a weight for each column; one without values has the effect 0.
fn additive(values: &[Vec<Option<f64>>], weights: &[f64]) -> Additive {
    let mut fit = Additive { rows: vec![0.0; values.len()], columns: vec![0.0; weights.len()] };
    for _ in 0..ROUNDS {
        let mut change = 0.0_f64;
        for (row, own) in values.iter().enumerate() {
            let known = own.iter().enumerate().filter_map(|(column, value)| Some((column, (*value)?)));
            let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (column, value)| {
                (sum + weights[column] * (value - fit.columns[column]), all + weights[column])
            });
            let next = if weight > 0.0 { sum / weight } else { 0.0 };
            change = change.max((next - fit.rows[row]).abs());
            fit.rows[row] = next;
        }
        for column in 0..weights.len() {
            let left: Vec<f64> =
                (0..values.len()).filter_map(|row| Some(values[row][column]? - fit.rows[row])).collect();
            fit.columns[column] = mean(&left).unwrap_or_default();
        }
        if change < CLOSE {
            break;
        }
    }
    fit
}

/// The rows that can be compared: those that share columns with the column of the most rows, directly or by way of others.
fn connected(rates: &[Vec<Rates>]) -> Vec<bool> {
    let has = |row: usize, column: usize| rates[row][column].iter().any(Option::is_some);
    let columns = rates.first().map_or(0, Vec::len);
    let count = |column: &usize| (0..rates.len()).filter(|row| has(*row, *column)).count();
    let mut reached: Vec<usize> = (0..columns).max_by_key(count).into_iter().collect();
    let mut rows = vec![false; rates.len()];
    while let Some(column) = reached.pop() {
        for (row, is_reached) in rows.iter_mut().enumerate() {
            if has(row, column) && !*is_reached {
                *is_reached = true;
                reached.extend((0..columns).filter(|other| has(row, *other)));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests;
