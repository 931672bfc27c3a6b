//! What the runs show for each phase and durability level, as data: the question, the engines that may be the fastest, and a
//! statement that claims no more than the intervals show.

mod kept;
mod recommendation;
mod words;

pub use recommendation::recommendation;
pub(super) use words::{brief, brief_legend, verdict};

use super::describe::question;
use kvdyno_core::results::Kind;
use kvdyno_core::results::statistics::{FEWEST_FOR_ORDER, Interval};
use kvdyno_core::results::summary::{Cell, Group, PhaseSummary, Summary};
use kvdyno_measure::warning::HARNESS_SHARE_LIMIT;

/// What the runs show for a phase at a durability level.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    /// The phase.
    pub phase: &'a PhaseSummary,
    /// Its engines at one level.
    pub group: &'a Group,
    /// The question that the phase answers, from its settings: `point reads`.
    pub question: String,
    /// The ranked engines that no other was shown to be faster than, in the order of the table. One of them is the fastest.
    pub leaders: Vec<&'a Cell>,
    /// The number of ranked engines that are slower than at least one other.
    pub slower: usize,
    /// The engines with figures but without a rank.
    pub unranked: Vec<&'a Cell>,
    /// What is shown.
    pub statement: Statement<'a>,
}

/// What the runs of a phase show at a level.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement<'a> {
    /// Every engine has runs that failed, are incomplete or doubtful.
    NoneRanked,
    /// Only one engine is ranked.
    Only,
    /// So few runs show no order.
    TooFewRuns(u32),
    /// The only leader is faster than all other ranked engines.
    Winner(Lead<'a>),
    /// One of several leaders is the fastest, and other engines are slower.
    Leaders {
        /// By how much the first leader is ahead of the engines that are not leaders.
        lead: Lead<'a>,
        /// Leaders that may have fewer ops/s than the first because of the harness.
        by_harness: Vec<&'a Cell>,
    },
    /// Any of the engines may be the fastest.
    NoDifference {
        /// Engines that may have fewer ops/s than the first because of the harness.
        by_harness: Vec<&'a Cell>,
    },
}

/// By how much the first leader is ahead of the engines that are not leaders.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lead<'a> {
    /// The first of them in the table.
    pub next: &'a Cell,
    /// The ratio.
    pub by: By,
}

/// A ratio of two engines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum By {
    /// A ratio of rates.
    Times {
        /// The estimate of the ratio to the next engine.
        value: f64,
        /// Its interval.
        interval: Option<Interval>,
        /// The lower limit of the ratios to all engines that are not leaders; none: it is not above 1.
        at_least: Option<f64>,
    },
    /// The rates alone do not show that it is ahead, but the time inside the engines does.
    EngineTime,
    /// Ratios are relative to another engine.
    Unknown,
}

/// The verdicts, phase by phase and level by level. References of this project are no contestants.
pub(super) fn verdicts(summary: &Summary) -> Vec<Verdict<'_>> {
    let mut all = Vec::new();
    for phase in &summary.phases {
        let contestants = phase.groups.iter().filter(|group| group.kind != Kind::Reference);
        all.extend(contestants.map(|group| of_group(phase, group)));
    }
    all
}

fn of_group<'a>(phase: &'a PhaseSummary, group: &'a Group) -> Verdict<'a> {
    let ranked: Vec<&Cell> = group.cells.iter().filter(|cell| cell.rank.is_some()).collect();
    let (leaders, rest): (Vec<&Cell>, Vec<&Cell>) = ranked.iter().partition(|cell| cell.leader);
    Verdict {
        phase,
        group,
        question: question(phase),
        statement: statement(&ranked, &leaders, &rest),
        slower: rest.len(),
        leaders,
        unranked: group.cells.iter().filter(|cell| cell.rank.is_none()).collect(),
    }
}

fn statement<'a>(ranked: &[&'a Cell], leaders: &[&'a Cell], rest: &[&'a Cell]) -> Statement<'a> {
    let runs = ranked.iter().map(|cell| cell.counted_runs).max().unwrap_or(0);
    match (ranked, rest) {
        ([], _) => Statement::NoneRanked,
        ([_], _) => Statement::Only,
        _ if (runs as usize) < FEWEST_FOR_ORDER => Statement::TooFewRuns(runs),
        (_, []) => Statement::NoDifference { by_harness: by_harness(leaders) },
        (_, [next, ..]) => {
            let lead = Lead { next, by: by(leaders[0], rest) };
            match leaders.len() {
                1 => Statement::Winner(lead),
                _ => Statement::Leaders { lead, by_harness: by_harness(leaders) },
            }
        }
    }
}

/// By how much the first engine is ahead of the others.
fn by(first: &Cell, rest: &[&Cell]) -> By {
    let is_base = first.ratio.is_some_and(|base| base.value == 1.0 && base.interval.is_none());
    let Some(ratio) = rest[0].ratio.filter(|ratio| is_base && ratio.value > 0.0) else { return By::Unknown };
    let highest = |cell: &&Cell| cell.ratio.and_then(|ratio| ratio.interval).map(|interval| interval.high);
    let limits: Option<Vec<f64>> = rest.iter().map(highest).collect();
    let at_least = limits.and_then(|limits| limits.into_iter().reduce(f64::max)).map(|high| 1.0 / high);
    match ratio.interval {
        // An end at 1 is that of an order, which rates show.
        Some(interval) if interval.high > 1.0 => By::EngineTime,
        interval => By::Times {
            value: 1.0 / ratio.value,
            interval: interval.map(|Interval { low, high, level }| Interval {
                low: 1.0 / high,
                high: 1.0 / low,
                level,
            }),
            at_least: at_least.filter(|times| *times > 1.0),
        },
    }
}

/// The leaders that the first one is ahead of by rate, which the time of the harness may explain.
fn by_harness<'a>(leaders: &[&'a Cell]) -> Vec<&'a Cell> {
    let is_base = leaders[0].ratio.is_some_and(|ratio| ratio.interval.is_none());
    let is_behind = |cell: &&&Cell| {
        let interval = cell.ratio.and_then(|ratio| ratio.interval);
        is_base && interval.is_some_and(|interval| interval.high <= 1.0)
    };
    leaders[1..].iter().filter(is_behind).copied().collect()
}

impl Verdict<'_> {
    /// Whether an engine without a rank had a higher rate than all ranked ones.
    pub(crate) fn is_beaten(&self) -> bool {
        let best = self.leaders.first().and_then(|cell| cell.speed());
        self.unranked.iter().any(|cell| cell.speed() > best)
    }

    /// The harness's share of the first leader's time, if it is large.
    pub(crate) fn harness_share(&self) -> Option<f64> {
        self.leaders.first()?.harness_share.filter(|share| *share > HARNESS_SHARE_LIMIT)
    }
}

#[cfg(test)]
mod tests;
