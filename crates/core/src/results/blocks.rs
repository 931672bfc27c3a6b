//! Compares the engines of a table by ratios within blocks.
//!
//! A run is a sequence of randomised complete blocks: each has one trial of every engine. Two engines are compared within
//! blocks, by the logs of their rates, so that drift from block to block has no effect. The difference of two engines is
//! the mean over the blocks in which the runs of both are kept (outliers are excluded, see [`super::variance`]); its
//! variance is the sum of the engines' moderated variances, which need not be equal. An order is claimed if the p of the
//! difference, corrected for all pairs of the table (Bonferroni) and for all tables that are read with it, is below
//! [`FAMILY_ERROR`], and there are five blocks or more. results/statistics.md has how often that
//! is wrong, and how often it finds a difference.
//!
//! The blocks of a campaign are measured by several machines. What makes all engines faster on a machine is an effect of its
//! blocks and cancels. But one engine may gain more from a machine than another. So the machines are a sample: the variance of
//! an engine is that between the means of its machines if that is larger than the variance within machines, and it has the
//! degrees of freedom of the machines, not those of the blocks.

use super::statistics::{FEWEST_FOR_ORDER, Interval};
use super::variance::{Difference, RESOLUTION, Variance, kept, mean, moderated};
use std::cmp::Ordering;

/// The maximum probability of one or more false orders in the tables that are read together.
pub const FAMILY_ERROR: f64 = 0.05;

/// The number of pairs of several tables counts so many times. Small p values of moderated variances are up to this much too
/// small: six tables of equal engines had a false order in up to 6.2 % of simulated runs without it (`benches/statistics`).
const SEVERAL_TABLES: f64 = 1.25;

/// The number of iterations that estimate the effects of blocks and the variances of engines from each other. The weights
/// change by less than a thousandth after the third.
const ROUNDS: usize = 5;

/// The rates of some engines over the same blocks.
pub struct Blocks {
    /// Logs of rates: a row for each engine, a column for each block.
    logs: Vec<Vec<f64>>,
    kept: Vec<Vec<bool>>,
    variances: Vec<Variance>,
    /// The degrees of freedom of all residuals, or of the machines' means if there are several machines.
    degrees: f64,
    /// The factor by which the tables that are read with this one multiply its pairs; 1: it is alone.
    tables: f64,
}

/// Which machine measured each block: a number that is the same for blocks of the same machine.
pub type Machines = [usize];

impl Blocks {
    /// `rates`: a row for each engine with one rate per block. None for fewer than two blocks, for rows of different
    /// lengths, and for rates that are not finite and over 0.
    pub fn new(rates: &[Vec<f64>]) -> Option<Blocks> {
        Blocks::on(rates, &vec![0; rates.first()?.len()])
    }

    /// The same for blocks that were measured by several machines. Also none if `machines` has another length.
    pub fn on(rates: &[Vec<f64>], machines: &Machines) -> Option<Blocks> {
        let blocks = rates.first()?.len();
        let is_sound = |rate: &f64| rate.is_finite() && *rate > 0.0;
        if blocks < 2
            || machines.len() != blocks
            || rates.iter().any(|row| row.len() != blocks || !row.iter().all(is_sound))
        {
            return None;
        }
        let logs: Vec<Vec<f64>> =
            rates.iter().map(|row| row.iter().map(|rate| rate.ln()).collect()).collect();
        let kept = kept(&deviations(&logs, machines), &vec![RESOLUTION; logs.len()]);
        Some(Blocks::of(logs, kept, machines))
    }

    fn of(logs: Vec<Vec<f64>>, kept: Vec<Vec<bool>>, machines: &Machines) -> Blocks {
        let (variances, degrees) = variances(&logs, &kept, machines);
        Blocks { logs, kept, variances, degrees, tables: 1.0 }
    }

    /// The same table as one of several that are read together, itself included: the probability of a false order is that in
    /// all of them.
    pub fn among(self, tables: usize) -> Blocks {
        let tables = if tables > 1 { SEVERAL_TABLES * tables as f64 } else { 1.0 };
        Blocks { tables, ..self }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.logs[0].len()
    }

    /// The blocks, counted from 0, in which the run of an engine is excluded.
    pub fn set_aside(&self, engine: usize) -> impl Iterator<Item = usize> + '_ {
        self.kept[engine].iter().enumerate().filter(|(_, kept)| !**kept).map(|(block, _)| block)
    }

    /// The first engine's log rate here minus the second's in `others`, which has the same engines and blocks; none if
    /// unknown (no block in common, or no degrees of freedom).
    fn difference(&self, first: usize, others: &Blocks, second: usize) -> Option<Difference> {
        let shared = |block: &usize| self.kept[first][*block] && others.kept[second][*block];
        let blocks: Vec<usize> = (0..self.blocks()).filter(shared).collect();
        let differences: Vec<f64> =
            blocks.iter().map(|block| self.logs[first][*block] - others.logs[second][*block]).collect();
        let (one, other) = (self.variances[first], others.variances[second]);
        let (count, degrees) = (blocks.len(), self.degrees.min(others.degrees));
        let difference = Difference::new(mean(&differences)?, (one, count), (other, count), degrees);
        (difference.degrees > 0.0).then_some(difference)
    }

    /// The number of comparisons that p values are corrected for: pairs of engines, in all tables that are read together.
    fn comparisons(&self) -> f64 {
        let engines = self.logs.len() as f64;
        (engines * (engines - 1.0) / 2.0).max(1.0) * self.tables
    }

    /// The first engine's rate as a multiple of the second's; none if it is not known.
    pub fn ratio(&self, first: usize, second: usize) -> Option<f64> {
        Some(self.difference(first, self, second)?.value.exp())
    }

    /// The interval of that ratio. Its level applies to all intervals of the tables together, so it excludes 1 exactly if an
    /// order is claimed, except in tables with fewer than five blocks.
    pub fn interval(&self, first: usize, second: usize) -> Option<Interval> {
        let difference = self.difference(first, self, second)?;
        let reach = difference.reach(FAMILY_ERROR / self.comparisons());
        reach.is_finite().then(|| Interval {
            low: (difference.value - reach).exp(),
            high: (difference.value + reach).exp(),
            level: 1.0 - FAMILY_ERROR,
        })
    }

    /// Which of the two has the higher rate; none: no claim.
    pub fn order(&self, first: usize, second: usize) -> Option<Ordering> {
        self.order_against(first, self, second)
    }

    /// The same for the first engine's rate here and the second's in `others`.
    fn order_against(&self, first: usize, others: &Blocks, second: usize) -> Option<Ordering> {
        let difference = self.difference(first, others, second)?;
        let is_claimed = self.blocks() >= FEWEST_FOR_ORDER
            && difference.p() * self.comparisons() < FAMILY_ERROR
            && first != second;
        is_claimed.then(|| difference.value.total_cmp(&0.0))
    }
}

/// How the throughput of an engine as if the harness took no time is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// One thread that only reads: while the harness works, the engine does not.
    Exact,
    /// An upper bound: while the harness works in one thread, the engine may work in others, or free a lock for them. The
    /// rate is the lower bound.
    UpperBound,
}

/// The engines of a table: their rates, and their throughputs as if the harness took no time.
///
/// The harness must not decide an order: if two equal engines have unequal harness shares, their rates differ only because
/// of the harness.
pub struct Table {
    rates: Blocks,
    own: Option<(Blocks, Throughput)>,
}

impl Table {
    /// `rates`: see [`Blocks::new`]; `engine_rates`: the engine's throughput in each run. If one of them is unknown,
    /// orders are by rates. Both comparisons exclude the same runs: those whose engine's throughput is an outlier.
    /// `machines`: the machine of each block.
    pub fn new(
        rates: &[Vec<f64>],
        engine_rates: &[Vec<Option<f64>>],
        throughput: Throughput,
        machines: &Machines,
    ) -> Option<Table> {
        let known = |rates: &Vec<Option<f64>>| rates.iter().copied().collect::<Option<Vec<f64>>>();
        let is_whole = rates.iter().zip(engine_rates).all(|(rates, engine)| rates.len() == engine.len());
        let own: Option<Vec<Vec<f64>>> = engine_rates.iter().map(known).collect();
        let rates = Blocks::on(rates, machines)?;
        Some(match own.filter(|_| is_whole).and_then(|own| Blocks::on(&own, machines)) {
            Some(own) => {
                let rates = Blocks::of(rates.logs, own.kept.clone(), machines);
                Table { rates, own: Some((own, throughput)) }
            }
            None => Table { rates, own: None },
        })
    }

    /// The same table as one of several that are read together: see [`Blocks::among`].
    pub fn among(self, tables: usize) -> Table {
        let own = self.own.map(|(blocks, throughput)| (blocks.among(tables), throughput));
        Table { rates: self.rates.among(tables), own }
    }

    /// The comparison of rates.
    pub fn rates(&self) -> &Blocks {
        &self.rates
    }

    /// Which engine is faster whatever the harness does. None: no claim. By the engines' throughputs, or by rates if those
    /// are unknown. Where they are upper bounds, an engine is faster if its rate is above the other's throughput.
    pub fn order(&self, first: usize, second: usize) -> Option<Ordering> {
        let rates = &self.rates;
        match &self.own {
            None => rates.order(first, second),
            Some((own, Throughput::Exact)) => own.order(first, second),
            Some((own, Throughput::UpperBound)) => {
                let is_above = |one, other| rates.order_against(one, own, other) == Some(Ordering::Greater);
                match (is_above(first, second), is_above(second, first)) {
                    (true, _) => Some(Ordering::Greater),
                    (_, true) => Some(Ordering::Less),
                    _ => None,
                }
            }
        }
    }
}

fn median(values: &[f64]) -> f64 {
    super::statistics::median(values).unwrap_or_default()
}

/// The number of blocks of a machine from which on their median is that of an engine on this machine.
const FEWEST_FOR_MEDIAN: usize = 3;

/// The deviation of each run from its engine's median, after the median effect of its block is removed. With only two
/// engines, an outlier of one would affect the median of the block and so both, so the block's effect is not removed.
/// The median is that of the engine on the machine, so that an engine that is always slower on one of the machines has no
/// outliers there.
fn deviations(logs: &[Vec<f64>], machines: &Machines) -> Vec<Vec<f64>> {
    let center = |row: &[f64]| {
        let of = |machine: usize| -> Vec<f64> {
            row.iter().zip(machines).filter(|(_, on)| **on == machine).map(|(log, _)| *log).collect()
        };
        let whole = median(row);
        let middle = |machine: usize| Some(of(machine)).filter(|own| own.len() >= FEWEST_FOR_MEDIAN);
        row.iter()
            .zip(machines)
            .map(|(log, on)| log - middle(*on).map_or(whole, |own| median(&own)))
            .collect::<Vec<f64>>()
    };
    let mut rows: Vec<Vec<f64>> = logs.iter().map(|row| center(row)).collect();
    if rows.len() >= 3 {
        for block in 0..rows[0].len() {
            let effect = median(&rows.iter().map(|row| row[block]).collect::<Vec<f64>>());
            rows.iter_mut().for_each(|row| row[block] -= effect);
        }
        rows = rows.iter().map(|row| center(row)).collect();
    }
    rows
}

/// The moderated variances of the engines after the effects of engine and block are removed, and the degrees of freedom of
/// all of them together. The effect of a block is the mean of its runs' residuals, weighted by the inverse of each
/// engine's variance.
fn variances(logs: &[Vec<f64>], kept: &[Vec<bool>], machines: &Machines) -> (Vec<Variance>, f64) {
    let (engines, blocks) = (logs.len(), logs[0].len());
    let runs = |engine: usize| (0..blocks).filter(move |block| kept[engine][*block]);
    let groups = groups(machines);
    let mut weights = vec![1.0; engines];
    let mut effects = vec![0.0; blocks];
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let means: Vec<f64> = (0..engines)
            .map(|engine| {
                let values: Vec<f64> =
                    runs(engine).map(|block| logs[engine][block] - effects[block]).collect();
                mean(&values).unwrap_or_default()
            })
            .collect();
        let weight_of = |block: usize| -> f64 {
            (0..engines).filter(|engine| kept[*engine][block]).map(|engine| weights[engine]).sum()
        };
        for block in 0..blocks {
            let here = (0..engines).filter(|engine| kept[*engine][block]);
            let sum: f64 = here.map(|engine| weights[engine] * (logs[engine][block] - means[engine])).sum();
            let weight = weight_of(block);
            effects[block] = if weight > 0.0 { sum / weight } else { 0.0 };
        }
        let residuals = |engine: usize| -> Vec<Vec<f64>> {
            let own = |group: &Vec<usize>| -> Vec<f64> {
                let here = group.iter().filter(|block| kept[engine][**block]);
                here.map(|block| logs[engine][*block] - effects[*block]).collect()
            };
            groups.iter().map(own).filter(|group| !group.is_empty()).collect()
        };
        // The part of the degrees of freedom that an engine has left after the effects of blocks, by its weight in them.
        let share = |engine: usize| -> f64 {
            let left: f64 = runs(engine).map(|block| 1.0 - weights[engine] / weight_of(block)).sum();
            left / runs(engine).count().max(1) as f64
        };
        let spreads: Vec<Spread> =
            (0..engines).map(|engine| Spread::of(&residuals(engine), share(engine))).collect();
        found = moderated_spreads(&spreads);
        weights = found.iter().map(|variance| 1.0 / variance.value).collect();
    }
    let kept_runs: usize = (0..engines).map(|engine| runs(engine).count()).sum();
    let degrees = match groups.len() {
        0 | 1 => kept_runs as f64 - engines as f64 - (blocks as f64 - 1.0),
        machines => (engines as f64 - 1.0) * (machines as f64 - 1.0),
    };
    (found, degrees)
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
    /// The mean number of runs of a machine, and that of the machine of a run.
    sizes: (f64, f64),
}

impl Spread {
    /// `residuals`: those of each machine. `share`: the part of the degrees of freedom that the effects of blocks leave.
    fn of(residuals: &[Vec<f64>], share: f64) -> Spread {
        let variance = |squares: f64, degrees: f64| Variance {
            value: if degrees > 0.0 { squares / degrees } else { 0.0 },
            degrees: degrees.max(0.0),
            resolution: RESOLUTION,
        };
        let squares_around = |values: &[f64], center: f64| -> f64 {
            values.iter().map(|value| (value - center).powi(2)).sum()
        };
        let all: Vec<f64> = residuals.iter().flatten().copied().collect();
        let (runs, machines) = (all.len() as f64, residuals.len() as f64);
        let center = mean(&all).unwrap_or_default();
        let (mut within, mut between, mut squared_sizes) = (0.0, 0.0, 0.0);
        for group in residuals {
            let own = mean(group).unwrap_or_default();
            let size = group.len() as f64;
            within += squares_around(group, own);
            between += size * (own - center).powi(2);
            squared_sizes += size * size;
        }
        let of_run = if runs > 0.0 { squared_sizes / runs } else { 0.0 };
        let of_machine = if machines > 1.0 { (runs - of_run) / (machines - 1.0) } else { of_run };
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
    let none = Variance { value: 0.0, degrees: 0.0, resolution: RESOLUTION };
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
