//! Compares the engines of a table by ratios within blocks.
//!
//! A run is a sequence of randomised complete blocks: each has one trial of every engine. Two engines are compared within
//! blocks, by the logs of their rates, so that drift from block to block has no effect. The difference of two engines is
//! the mean over the blocks in which the runs of both are kept (outliers are excluded, see [`super::variance`]); its
//! variance is the sum of the engines' moderated variances, which need not be equal. What is claimed of them, if there are five
//! blocks or more, is in [`family`]. results/statistics.md has how often that is wrong, and how often it finds a difference.
//!
//! An engine may have no run in some blocks, and runs may be longer than planned: a longer run has more weight, and two engines
//! are compared over the blocks that both have.
//!
//! The blocks of a campaign are measured by several machines. What makes all engines faster on a machine is an effect of its
//! blocks and cancels. But one engine may gain more from a machine than another. So the machines are a sample: the variance of
//! an engine is that between the means of its machines if that is larger than the variance within machines, and it has the
//! degrees of freedom of the machines, not those of the blocks.

use super::variance::{Difference, RESOLUTION, Sampled, Variance, kept, moderated};

mod family;
mod freedom;

use family::Claims;
pub use family::{FAMILY_ERROR, error_of_look, together};

/// The number of iterations that estimate the effects of blocks and the variances of engines from each other. The weights
/// change by less than a thousandth after the third.
const ROUNDS: usize = 5;

/// The same where engines have no run in some of the blocks, which couples the effects of engines and blocks.
const ROUNDS_IF_MISSING: usize = 50;

/// The part of the variance of a run's log rate that a longer run does not reduce; the rest is divided by its length.
/// Measured for phases of 0.15 s in sequence in one trial: 27 % were common to the trial.
const LASTING: f64 = 0.27;

/// A run of an engine in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Ops per second.
    pub rate: f64,
    /// The engine's throughput as if the harness took no time, ops per second; none: unknown.
    pub engine_rate: Option<f64>,
    /// How long it measured, as a multiple of the planned length.
    pub length: f64,
}

impl Measured {
    /// Its weight, by the variance of its log rate: 1 for the planned length.
    fn weight(&self) -> f64 {
        1.0 / (LASTING + (1.0 - LASTING) / self.length)
    }

    fn is_sound(&self) -> bool {
        is_sound(self.rate) && is_sound(self.length)
    }
}

fn is_sound(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The runs of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// A run for each block; none: the engine has no run in it.
    pub runs: Vec<Option<Measured>>,
    /// How its throughputs are to be read.
    pub throughput: Throughput,
}

impl Row {
    /// Runs of the planned length in all blocks. `engine_rates` are those of the same runs; empty: unknown.
    pub fn new(rates: &[f64], engine_rates: &[Option<f64>], throughput: Throughput) -> Row {
        let run = |(block, rate): (usize, &f64)| {
            let engine_rate = engine_rates.get(block).copied().flatten();
            Some(Measured { rate: *rate, engine_rate, length: 1.0 })
        };
        Row { runs: rates.iter().enumerate().map(run).collect(), throughput }
    }
}

/// How the throughput of an engine as if the harness took no time is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// One thread, and the engine has no others that work: while the harness works, the engine does not.
    Exact,
    /// An upper bound: while the harness works in one thread, the engine may work in others, or free a lock for them. The
    /// rate is the lower bound.
    UpperBound,
}

/// Which machine measured each block: a number that is the same for blocks of the same machine.
pub type Machines = [usize];

/// Figures of some engines over the same blocks.
struct Blocks {
    /// Logs of the figures: a row for each engine, a column for each block; 0 where there is no run.
    logs: Vec<Vec<f64>>,
    /// The weight of each run; 0: there is none, or it is excluded.
    weights: Vec<Vec<f64>>,
    /// The mean log of each engine after the effects of blocks are removed.
    estimates: Vec<f64>,
    variances: Vec<Variance>,
    /// The degrees of freedom of all residuals, or of the machines' means if there are several machines.
    degrees: f64,
}

impl Blocks {
    fn new(logs: Vec<Vec<f64>>, weights: Vec<Vec<f64>>, machines: &Machines, is_whole: bool) -> Blocks {
        let Fit { estimates, variances, degrees } = fit(&logs, &weights, machines, is_whole);
        Blocks { logs, weights, estimates, variances, degrees }
    }

    /// The first engine's log figure here minus the second's in `others`, which has the same engines and blocks; none if
    /// unknown (no block in common, or no degrees of freedom).
    fn difference(&self, first: usize, others: &Blocks, second: usize) -> Option<Difference> {
        // A block has the weight of a difference of runs with these weights and equal variances.
        let pair = |block: usize| {
            let (one, other) = (self.weights[first][block], others.weights[second][block]);
            (one > 0.0 && other > 0.0).then(|| (block, one, other, 2.0 / (1.0 / one + 1.0 / other)))
        };
        let pairs: Vec<(usize, f64, f64, f64)> = (0..self.logs[first].len()).filter_map(pair).collect();
        if pairs.is_empty() {
            return None;
        }
        let total: f64 = pairs.iter().map(|(.., weight)| weight).sum();
        let difference = |block: usize| self.logs[first][block] - others.logs[second][block];
        let sum: f64 = pairs.iter().map(|(block, .., weight)| weight * difference(*block)).sum();
        // The number of runs of weight 1 whose mean has the same variance.
        let runs = |squares: f64| total * total / squares;
        let one = runs(pairs.iter().map(|(_, one, _, weight)| weight * weight / one).sum());
        let other = runs(pairs.iter().map(|(_, _, other, weight)| weight * weight / other).sum());
        let one = Sampled { variance: self.variances[first], runs: one };
        let other = Sampled { variance: others.variances[second], runs: other };
        let degrees = self.degrees.min(others.degrees);
        let difference = Difference::in_table(sum / total, one, other, degrees);
        (difference.degrees > 0.0).then_some(difference)
    }
}

/// The engines of a table: their rates, and their throughputs as if the harness took no time.
///
/// The harness must not decide an order: if two equal engines have unequal harness shares, their rates differ only because
/// of the harness.
pub struct Table {
    rates: Blocks,
    /// The least and the highest figure that each engine may have without the harness; none: unknown, so orders are by rates.
    bounds: Option<(Blocks, Blocks)>,
    /// Whether each run of each engine is there.
    is_there: Vec<Vec<bool>>,
    /// What is claimed of the engines, and what would be by their rates alone.
    claims: Claims,
    claims_by_rate: Claims,
    /// The number of comparisons of all tables that are read together, for intervals.
    comparisons: f64,
}

impl Table {
    /// `machines`: the machine of each block. None for fewer than two blocks, for rows of different lengths, and for rates and
    /// lengths that are not finite and over 0. If the throughput of a run is unknown, orders are by rates. Comparisons of rates
    /// and of throughputs exclude the same runs: those whose throughput is an outlier.
    ///
    /// The table is the only one that is read: see [`together`].
    pub fn new(rows: &[Row], machines: &Machines) -> Option<Table> {
        let blocks = rows.first()?.runs.len();
        let is_sound =
            |row: &Row| row.runs.len() == blocks && row.runs.iter().flatten().all(Measured::is_sound);
        if blocks < 2 || machines.len() != blocks || !rows.iter().all(is_sound) {
            return None;
        }
        let of = |figure: &dyn Fn(&Row, &Measured) -> f64| -> Vec<Vec<f64>> {
            let log = |row: &Row, run: &Option<Measured>| run.as_ref().map_or(0.0, |run| figure(row, run));
            rows.iter().map(|row| row.runs.iter().map(|run| log(row, run)).collect()).collect()
        };
        let weights = of(&|_, run| run.weight());
        let is_there: Vec<Vec<bool>> =
            rows.iter().map(|row| row.runs.iter().map(Option::is_some).collect()).collect();
        let is_whole = is_there.iter().flatten().all(|is_there| *is_there);
        let rates = of(&|_, run| run.rate.ln());
        let is_known = |run: &Measured| run.engine_rate.is_some_and(self::is_sound);
        let has_throughputs = rows.iter().all(|row| row.runs.iter().flatten().all(is_known));
        let own = |run: &Measured| run.engine_rate.unwrap_or(run.rate).ln();
        let highest = if has_throughputs { of(&|_, run| own(run)) } else { rates.clone() };
        let weights = without_outliers(&highest, weights, machines);
        let blocks = |logs: Vec<Vec<f64>>| Blocks::new(logs, weights.clone(), machines, is_whole);
        let least = of(&|row, run| match row.throughput {
            Throughput::Exact => own(run),
            Throughput::UpperBound => run.rate.ln(),
        });
        let engines = rows.len();
        let mut table = Table {
            rates: blocks(rates),
            bounds: has_throughputs.then(|| (blocks(least), blocks(highest))),
            is_there,
            claims: Claims::none(engines),
            claims_by_rate: Claims::none(engines),
            comparisons: 1.0,
        };
        together(&mut [&mut table], 1);
        Some(table)
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.rates.logs[0].len()
    }

    /// The number of engines.
    pub fn engines(&self) -> usize {
        self.rates.logs.len()
    }

    /// The blocks, counted from 0, in which the run of an engine is excluded as an outlier.
    pub fn set_aside(&self, engine: usize) -> impl Iterator<Item = usize> + '_ {
        let runs = self.rates.weights[engine].iter().zip(&self.is_there[engine]).enumerate();
        runs.filter(|(_, (weight, is_there))| **is_there && **weight == 0.0).map(|(block, _)| block)
    }

    /// The figure by which rows are sorted, as a log: the mean of what orders use, after the effects of blocks are removed. Of
    /// two bounds it is the lower one: an engine that is ahead of another is above it in both.
    pub fn estimate(&self, engine: usize) -> f64 {
        self.bounds.as_ref().map_or(&self.rates, |(least, _)| least).estimates[engine]
    }

    /// The first engine's rate as a multiple of the second's; none if it is not known.
    pub fn ratio(&self, first: usize, second: usize) -> Option<f64> {
        Some(self.rates.difference(first, &self.rates, second)?.value.exp())
    }

    /// The difference by which the first engine may be shown to be faster than the second.
    fn lead(&self, first: usize, second: usize) -> Option<Difference> {
        let (least, highest) =
            self.bounds.as_ref().map_or((&self.rates, &self.rates), |(least, highest)| (least, highest));
        least.difference(first, highest, second)
    }
}

fn median(values: &[f64]) -> f64 {
    super::statistics::median(values).unwrap_or_default()
}

/// The number of blocks of a machine from which on their median is that of an engine on this machine.
const FEWEST_FOR_MEDIAN: usize = 3;

/// The weights of runs, with 0 for outliers.
fn without_outliers(logs: &[Vec<f64>], weights: Vec<Vec<f64>>, machines: &Machines) -> Vec<Vec<f64>> {
    let places = |row: &[f64]| -> Vec<usize> { (0..row.len()).filter(|place| row[*place] > 0.0).collect() };
    let there: Vec<Vec<usize>> = weights.iter().map(|row| places(row)).collect();
    let deviations = deviations(logs, &weights, machines);
    let own = |(row, there): (&Vec<f64>, &Vec<usize>)| there.iter().map(|block| row[*block]).collect();
    let rows: Vec<Vec<f64>> = deviations.iter().zip(&there).map(own).collect();
    let kept = kept(&rows, &vec![RESOLUTION; rows.len()]);
    let mut left = weights;
    for ((row, there), kept) in left.iter_mut().zip(&there).zip(&kept) {
        there.iter().zip(kept).filter(|(_, kept)| !**kept).for_each(|(block, _)| row[*block] = 0.0);
    }
    left
}

/// The deviation of each run from its engine's median, after the median effect of its block is removed, as that of a run of
/// weight 1; 0 where there is no run. With only two engines in a block, an outlier of one would affect the median of the block
/// and so both, so the block's effect is not removed.
/// The median is that of the engine on the machine, so that an engine that is always slower on one of the machines has no
/// outliers there.
fn deviations(logs: &[Vec<f64>], weights: &[Vec<f64>], machines: &Machines) -> Vec<Vec<f64>> {
    let center = |row: &[f64], weights: &[f64]| {
        let of = |is_it: &dyn Fn(usize) -> bool| -> Vec<f64> {
            (0..row.len())
                .filter(|place| weights[*place] > 0.0 && is_it(*place))
                .map(|place| row[place])
                .collect()
        };
        let whole = median(&of(&|_| true));
        let middle = |machine: usize| {
            Some(of(&|place| machines[place] == machine)).filter(|own| own.len() >= FEWEST_FOR_MEDIAN)
        };
        row.iter()
            .zip(machines)
            .map(|(log, on)| log - middle(*on).map_or(whole, |own| median(&own)))
            .collect::<Vec<f64>>()
    };
    let centered = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        rows.iter().zip(weights).map(|(row, own)| center(row, own)).collect()
    };
    let mut rows = centered(logs);
    for block in 0..machines.len() {
        let here = rows.iter().zip(weights).filter(|(_, own)| own[block] > 0.0).map(|(row, _)| row[block]);
        let here: Vec<f64> = here.collect();
        if here.len() >= 3 {
            let effect = median(&here);
            rows.iter_mut().for_each(|row| row[block] -= effect);
        }
    }
    if rows.len() >= 3 {
        rows = centered(&rows);
    }
    for (row, weights) in rows.iter_mut().zip(weights) {
        row.iter_mut().zip(weights).for_each(|(deviation, weight)| *deviation *= weight.sqrt());
    }
    rows
}

/// What is estimated of the engines of a table.
struct Fit {
    estimates: Vec<f64>,
    variances: Vec<Variance>,
    degrees: f64,
}

/// The mean of values with weights; none if there are none.
fn weighted_mean(values: &[(f64, f64)]) -> Option<f64> {
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    (total > 0.0).then(|| values.iter().map(|(value, weight)| value * weight).sum::<f64>() / total)
}

/// The mean log and the moderated variance of a run of weight 1 of each engine, after the effects of engine and block are
/// removed, and the degrees of freedom of all of them together. The effect of a block is the mean of its runs' residuals,
/// weighted by the inverse of each run's variance. `is_whole`: every engine has a run in every block, outliers included.
fn fit(logs: &[Vec<f64>], weights: &[Vec<f64>], machines: &Machines, is_whole: bool) -> Fit {
    let (engines, blocks) = (logs.len(), logs[0].len());
    let rounds = if is_whole { ROUNDS } else { ROUNDS_IF_MISSING };
    let runs = |engine: usize| (0..blocks).filter(move |block| weights[engine][*block] > 0.0);
    let groups = groups(machines);
    let mut precisions = vec![1.0; engines];
    let mut effects = vec![0.0; blocks];
    let mut found = Vec::new();
    let means = |effects: &[f64]| -> Vec<f64> {
        let of = |engine: usize| {
            let own =
                runs(engine).map(|block| (logs[engine][block] - effects[block], weights[engine][block]));
            weighted_mean(&own.collect::<Vec<_>>()).unwrap_or_default()
        };
        (0..engines).map(of).collect()
    };
    for _ in 0..rounds {
        let means = means(&effects);
        let precision_of = |engine: usize, block: usize| precisions[engine] * weights[engine][block];
        let weight_of =
            |block: usize| -> f64 { (0..engines).map(|engine| precision_of(engine, block)).sum() };
        for block in 0..blocks {
            let sum: f64 = (0..engines)
                .map(|engine| precision_of(engine, block) * (logs[engine][block] - means[engine]))
                .sum();
            let weight = weight_of(block);
            effects[block] = if weight > 0.0 { sum / weight } else { 0.0 };
        }
        let residuals = |engine: usize| -> Vec<Vec<(f64, f64)>> {
            let own = |group: &Vec<usize>| -> Vec<(f64, f64)> {
                let here = group.iter().filter(|block| weights[engine][**block] > 0.0);
                here.map(|block| (logs[engine][*block] - effects[*block], weights[engine][*block])).collect()
            };
            groups.iter().map(own).filter(|group| !group.is_empty()).collect()
        };
        let all_precisions = || -> Vec<Vec<f64>> {
            let row = |engine| (0..blocks).map(|block| precision_of(engine, block)).collect();
            (0..engines).map(row).collect()
        };
        let degrees = (!is_whole).then(|| freedom::degrees(&all_precisions()));
        // The part of the degrees of freedom that an engine has left after the effects of blocks: if no run is missing, by its
        // weight in them.
        let share = |engine: usize| -> f64 {
            let count = runs(engine).count();
            match &degrees {
                Some(degrees) => degrees[engine] / count.saturating_sub(1).max(1) as f64,
                None => {
                    let left: f64 =
                        runs(engine).map(|block| 1.0 - precision_of(engine, block) / weight_of(block)).sum();
                    left / count.max(1) as f64
                }
            }
        };
        let spreads: Vec<Spread> =
            (0..engines).map(|engine| Spread::of(&residuals(engine), share(engine))).collect();
        found = moderated_spreads(&spreads);
        precisions = found.iter().map(|variance| 1.0 / variance.value).collect();
    }
    let kept_runs: usize = (0..engines).map(|engine| runs(engine).count()).sum();
    let with_runs =
        (0..blocks).filter(|block| (0..engines).any(|engine| weights[engine][*block] > 0.0)).count();
    let degrees = match groups.len() {
        0 | 1 => kept_runs as f64 - engines as f64 - (with_runs as f64 - 1.0),
        machines => (engines as f64 - 1.0) * (machines as f64 - 1.0),
    };
    Fit { estimates: means(&effects), variances: found, degrees }
}

/// The blocks of each machine.
fn groups(machines: &Machines) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (block, machine) in machines.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| known == machine) {
            Some((_, group)) => group.push(block),
            None => groups.push((*machine, vec![block])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The spread of the residuals of an engine.
struct Spread {
    /// Of its runs around the means of their machines.
    within: Variance,
    /// Of the means of the machines, as a variance of runs: if machines have no effect on the engine, it estimates the same as
    /// `within`. None: one machine.
    between: Option<Variance>,
    /// The mean weight of the runs of a machine, and that of the machine of a run.
    sizes: (f64, f64),
}

impl Spread {
    /// `residuals`: those of each machine, each with its weight. `share`: the part of the degrees of freedom that the effects of blocks leave.
    fn of(residuals: &[Vec<(f64, f64)>], share: f64) -> Spread {
        let variance = |squares: f64, degrees: f64| Variance {
            value: if degrees > 0.0 { squares / degrees } else { 0.0 },
            degrees: degrees.max(0.0),
            shared: 0.0,
            resolution: RESOLUTION,
        };
        let squares_around = |values: &[(f64, f64)], center: f64| -> f64 {
            values.iter().map(|(value, weight)| weight * (value - center).powi(2)).sum()
        };
        let weight_of = |values: &[(f64, f64)]| -> f64 { values.iter().map(|(_, weight)| weight).sum() };
        let all: Vec<(f64, f64)> = residuals.iter().flatten().copied().collect();
        let (runs, machines) = (all.len() as f64, residuals.len() as f64);
        let (total, center) = (weight_of(&all), weighted_mean(&all).unwrap_or_default());
        let (mut within, mut between, mut squared_sizes) = (0.0, 0.0, 0.0);
        for group in residuals {
            let own = weighted_mean(group).unwrap_or_default();
            let size = weight_of(group);
            within += squares_around(group, own);
            between += size * (own - center).powi(2);
            squared_sizes += size * size;
        }
        let of_run = if total > 0.0 { squared_sizes / total } else { 0.0 };
        let of_machine = if machines > 1.0 { (total - of_run) / (machines - 1.0) } else { of_run };
        Spread {
            within: variance(within, share * (runs - machines)),
            between: (residuals.len() > 1).then(|| variance(between, share * (machines - 1.0))),
            sizes: (of_machine, of_run),
        }
    }
}

/// The variance of each engine that applies to the mean of its runs, moderated by those of the others.
fn moderated_spreads(spreads: &[Spread]) -> Vec<Variance> {
    let within: Vec<Variance> = moderated(&spreads.iter().map(|spread| spread.within).collect::<Vec<_>>());
    if spreads.iter().all(|spread| spread.between.is_none()) {
        return within;
    }
    let none = Variance { value: 0.0, degrees: 0.0, shared: 0.0, resolution: RESOLUTION };
    let between = spreads.iter().map(|spread| spread.between.unwrap_or(none)).collect::<Vec<_>>();
    let between = moderated(&between);
    let has_within = spreads.iter().any(|spread| spread.within.degrees > 0.0);
    let whole = |((spread, within), between): ((&Spread, &Variance), &Variance)| {
        if !has_within {
            return *between;
        }
        // The variance of the machines' effects on this engine, and what they add to the variance of the mean of its runs.
        let (of_machine, of_run) = spread.sizes;
        let of_machines = ((between.value - within.value) / of_machine.max(1.0)).max(0.0);
        Variance { value: within.value + of_machines * of_run, ..*between }
    };
    spreads.iter().zip(&within).zip(&between).map(whole).collect()
}

#[cfg(test)]
mod tests;
