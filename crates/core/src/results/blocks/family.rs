//! What is claimed of the engines of tables that are read together: which may be the fastest, and which is ahead of which.
//!
//! *Leaders* are found by comparisons with the best (Hsu, Constrained Simultaneous Confidence Intervals for Multiple Comparisons
//! with the Best, 1984): an engine is none if another is shown to be faster, where only the comparisons of one engine with all
//! others are counted. The list of leaders is wrong if the truly fastest engine is missing in it.
//!
//! *Orders* are found by Holm's step-down method over all pairs of all tables (Holm, A Simple Sequentially Rejective Multiple Test
//! Procedure, 1979): each order that is claimed leaves fewer pairs to correct for. They are then closed: if a is ahead of b and b
//! of c, then a is ahead of c.

use super::Table;
use crate::results::statistics::{FEWEST_FOR_ORDER, Interval};
use crate::results::variance::Difference;
use std::cmp::Ordering;

/// The maximum probability of one or more errors in the tables that are read together: a false order, or a table whose fastest
/// engine is not among its leaders.
pub const FAMILY_ERROR: f64 = 0.05;

/// The part of it for orders, and for leaders.
const HALF: f64 = FAMILY_ERROR / 2.0;

/// The number of comparisons of several tables counts so many times. The p values of moderated variances are good on average, but
/// small ones are too small where the noise of engines differs: with 1.25, eleven such tables of equal engines had an error in 10 %
/// of simulated runs (`benches/statistics`).
const SEVERAL_TABLES: f64 = 5.0;

/// The same for a table of two engines. Nothing moderates their variances: it is a t test of the differences in the blocks, which
/// is exact for normal noise, also if one of the two is noisier. The rest is for outliers.
const SEVERAL_TABLES_OF_TWO: f64 = 1.25;

/// A number of engines to which [`SEVERAL_TABLES`] applies.
const MORE_THAN_TWO: usize = 3;

/// What is claimed of the engines of a table.
#[derive(Clone)]
pub(super) struct Claims {
    /// Whether the first engine is ahead of the second.
    ahead: Vec<Vec<bool>>,
    is_leader: Vec<bool>,
}

impl Claims {
    /// Nothing is claimed.
    pub(super) fn none(engines: usize) -> Claims {
        Claims { ahead: vec![vec![false; engines]; engines], is_leader: vec![true; engines] }
    }

    /// The claims of these orders and of the engines that may be the fastest.
    fn new(mut ahead: Vec<Vec<bool>>, may_lead: &[bool]) -> Claims {
        let engines = ahead.len();
        for by in 0..engines {
            for first in 0..engines {
                if ahead[first][by] {
                    let behind = ahead[by].clone();
                    ahead[first].iter_mut().zip(behind).for_each(|(is_ahead, other)| *is_ahead |= other);
                }
            }
        }
        let is_beaten = |engine: usize| (0..engines).any(|other| ahead[other][engine]);
        let is_leader: Vec<bool> =
            (0..engines).map(|engine| may_lead[engine] && !is_beaten(engine)).collect();
        match (0..engines).filter(|engine| is_leader[*engine]).collect::<Vec<_>>().as_slice() {
            // Orders that contradict each other show nothing.
            [] => return Claims::none(engines),
            [winner] => (0..engines).for_each(|other| ahead[*winner][other] = other != *winner),
            _ => {}
        }
        Claims { ahead, is_leader }
    }
}

/// By which figures engines are compared.
#[derive(Clone, Copy)]
enum By {
    /// Those that orders use.
    Bounds,
    /// Rates alone.
    Rates,
}

/// A pair of engines of a table; the first may be ahead.
struct Pair {
    table: usize,
    first: usize,
    second: usize,
    /// Two-sided, times the factor of its table.
    p: f64,
}

/// By how much the comparisons of a table with so many engines are multiplied, if so many tables are read together.
fn factor(engines: usize, tables: usize, looks: usize) -> f64 {
    let of_tables = match (tables, engines) {
        (0 | 1, _) => 1.0,
        (_, 0..=2) => SEVERAL_TABLES_OF_TWO,
        _ => SEVERAL_TABLES,
    };
    looks as f64 * of_tables
}

/// The part of the error of leaders that one of several looks at one of several tables has, for [`Table::not_beaten`]. In all
/// looks and tables together, a fastest engine is missed with at most half of [`FAMILY_ERROR`]. It is that of tables with more than
/// two engines, which is less than that of two.
pub fn error_of_look(tables: usize, looks: usize) -> f64 {
    error_of(MORE_THAN_TWO, tables, looks)
}

/// The same for a table with so many engines.
fn error_of(engines: usize, tables: usize, looks: usize) -> f64 {
    HALF / (factor(engines, tables, looks) * tables.max(1) as f64)
}

/// Finds what is claimed of the engines of tables that are read together. The probability of an error is that in all of them.
/// `looks`: how often the same question was asked of runs that then went on; 1: once, after the last block.
pub fn together(tables: &mut [&mut Table], looks: usize) {
    let claiming = tables.iter().filter(|table| table.may_claim()).count();
    let pairs: f64 = tables.iter().filter(|table| table.may_claim()).map(|table| table.pairs()).sum();
    for table in tables.iter_mut() {
        let factor = factor(table.engines(), claiming, looks);
        table.comparisons = factor * pairs.max(table.pairs()).max(1.0);
    }
    let by_bounds = claims(tables, By::Bounds, claiming, looks);
    let by_rates = match tables.iter().any(|table| table.bounds.is_some()) {
        true => claims(tables, By::Rates, claiming, looks),
        false => by_bounds.clone(),
    };
    for ((table, by_bounds), by_rates) in tables.iter_mut().zip(by_bounds).zip(by_rates) {
        (table.claims, table.claims_by_rate) = (by_bounds, by_rates);
    }
}

fn claims(tables: &[&mut Table], by: By, claiming: usize, looks: usize) -> Vec<Claims> {
    let p_values: Vec<Vec<Vec<f64>>> = tables.iter().map(|table| table.p_values(by)).collect();
    let may_claim = |at: &usize| tables[*at].may_claim();
    let pairs_of = |at: usize| pairs_of(at, &p_values[at], factor(tables[at].engines(), claiming, looks));
    let mut pairs: Vec<Pair> = (0..tables.len()).filter(may_claim).flat_map(pairs_of).collect();
    pairs.sort_by(|left, right| left.p.total_cmp(&right.p));
    let mut ahead: Vec<Vec<Vec<bool>>> =
        tables.iter().map(|table| vec![vec![false; table.engines()]; table.engines()]).collect();
    for (claimed, pair) in pairs.iter().enumerate() {
        if pair.p * (pairs.len() - claimed) as f64 >= HALF {
            break;
        }
        ahead[pair.table][pair.first][pair.second] = true;
    }
    let claims = |(at, ahead): (usize, Vec<Vec<bool>>)| match may_claim(&at) {
        true => {
            let error = error_of(ahead.len(), claiming, looks);
            Claims::new(ahead, &not_beaten(&p_values[at], error))
        }
        false => Claims::none(ahead.len()),
    };
    ahead.into_iter().enumerate().map(claims).collect()
}

/// All pairs of a table, by the one-sided p of each engine being faster than each other, which counts `factor` times.
fn pairs_of(table: usize, p_values: &[Vec<f64>], factor: f64) -> Vec<Pair> {
    let pair = |one: usize, other: usize| {
        let (p, back) = (p_values[one][other], p_values[other][one]);
        let (first, second) = if p <= back { (one, other) } else { (other, one) };
        Pair { table, first, second, p: 2.0 * p.min(back) * factor }
    };
    let with = |one: usize| (one + 1..p_values.len()).map(move |other| pair(one, other));
    (0..p_values.len()).flat_map(with).collect()
}

/// See [`Table::not_beaten`].
fn not_beaten(p_values: &[Vec<f64>], alpha: f64) -> Vec<bool> {
    let engines = p_values.len();
    let others = engines.saturating_sub(1) as f64;
    let is_beaten = |engine: usize, by: usize| by != engine && p_values[by][engine] * others < alpha;
    (0..engines).map(|engine| !(0..engines).any(|other| is_beaten(engine, other))).collect()
}

impl Table {
    fn may_claim(&self) -> bool {
        self.engines() > 1 && self.blocks() >= FEWEST_FOR_ORDER
    }

    /// The number of pairs of engines.
    fn pairs(&self) -> f64 {
        let engines = self.engines() as f64;
        engines * (engines - 1.0) / 2.0
    }

    fn difference_by(&self, by: By, first: usize, second: usize) -> Option<Difference> {
        match by {
            By::Bounds => self.lead(first, second),
            By::Rates => self.rates.difference(first, &self.rates, second),
        }
    }

    /// The uncorrected p of the first engine being faster than the second, whatever the harness does: one-sided, 1 if unknown.
    pub fn p_faster(&self, first: usize, second: usize) -> f64 {
        self.p_by(By::Bounds, first, second)
    }

    fn p_by(&self, by: By, first: usize, second: usize) -> f64 {
        self.difference_by(by, first, second).map_or(1.0, |difference| difference.p_over_zero())
    }

    fn p_values(&self, by: By) -> Vec<Vec<f64>> {
        let engines = self.engines();
        let row = |first: usize| (0..engines).map(|second| self.p_by(by, first, second)).collect();
        (0..engines).map(row).collect()
    }

    /// Which engines may be the fastest: those that no other was shown to be faster than. The probability that the truly fastest
    /// is not among them is at most `alpha`, from as few as two blocks: see [`error_of_look`] for several looks and tables.
    pub fn not_beaten(&self, alpha: f64) -> Vec<bool> {
        not_beaten(&self.p_values(By::Bounds), alpha)
    }

    /// Whether no other engine is shown to be faster, whatever the harness does. One of the leaders is the fastest.
    pub fn is_leader(&self, engine: usize) -> bool {
        self.claims.is_leader[engine]
    }

    /// Which engine is faster whatever the harness does. None: no claim. By the engines' throughputs, or by rates if those
    /// are unknown. Where they are upper bounds, an engine is faster if its rate is above the other's throughput.
    pub fn order(&self, first: usize, second: usize) -> Option<Ordering> {
        order(&self.claims, first, second)
    }

    /// Which engine would be faster if rates were all that is known.
    pub fn order_by_rate(&self, first: usize, second: usize) -> Option<Ordering> {
        order(&self.claims_by_rate, first, second)
    }

    /// The interval of the ratio of the first engine's rate to the second's. Its level applies to all intervals of the tables that
    /// are read together. It includes 1 if rates show no order, and has an end there if one is claimed that this interval, which
    /// does not step down, would not show (Stefansson, Kim and Hsu, On Confidence Sets in Multiple Comparisons, 1988).
    pub fn interval(&self, first: usize, second: usize) -> Option<Interval> {
        let difference = self.difference_by(By::Rates, first, second)?;
        let reach = difference.reach(HALF / self.comparisons);
        let (low, high) = ((difference.value - reach).exp(), (difference.value + reach).exp());
        let (low, high) = match self.order_by_rate(first, second) {
            Some(Ordering::Greater) if difference.value > 0.0 => (low.max(1.0), high),
            Some(Ordering::Less) if difference.value < 0.0 => (low, high.min(1.0)),
            _ => (low, high),
        };
        reach.is_finite().then_some(Interval { low, high, level: 1.0 - FAMILY_ERROR })
    }
}

fn order(claims: &Claims, first: usize, second: usize) -> Option<Ordering> {
    match (claims.ahead[first][second], claims.ahead[second][first]) {
        (true, _) => Some(Ordering::Greater),
        (_, true) => Some(Ordering::Less),
        _ => None,
    }
}
