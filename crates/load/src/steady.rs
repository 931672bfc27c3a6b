//! Whether the figures of one phase are steady, from one row a second.
//!
//! Several figures of one phase (rate, p99 latency, write amplification) are judged one by one; the worst verdict is the
//! verdict of the phase. For each figure, in this order:
//!
//! 1. Unknown rows are filled, logarithms are taken, and outliers are set aside (`clean`).
//! 2. Rows are averaged into at most 200 cells (`cells`). They are explained by flat and sloped pieces with change points
//!    between them (`pieces`), by an approach to a level, or by a drift to the end, and by noise that persists; the likelihood decides between
//!    these (`explain`, `noise`).
//! 3. What is left is searched for a period by its autocorrelation (`period`). With one, whole periods are averaged, and these
//!    are explained instead.
//! 4. The figure is steady if it has reached a level that makes up a quarter of the rows or more, and that does not bend or
//!    wander and is not too short (`judge`, `tail`).
//! 5. An interval says where the mean of a run ten times longer is expected to lie (`interval`).

mod cells;
mod clean;
mod ending;
mod explain;
mod interval;
mod judge;
mod noise;
mod period;
mod pieces;
#[cfg(test)]
mod rivals;
#[cfg(test)]
mod synthetic;
mod tail;
#[cfg(test)]
mod tests;

pub use ending::{Ending, Watched};

use std::fmt;

use judge::Finding;

/// Which direction of a figure is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better: a rate.
    Higher,
    /// Less is better: a latency, an amplification.
    Lower,
}

/// One figure of a phase, one row per interval.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// One value per row, in any unit. `None` where the figure is unknown in that row, for example the latency of a second
    /// without operations.
    pub values: &'a [Option<f64>],
    /// Which direction is an improvement.
    pub better: Better,
}

/// Where the mean of a figure is expected to lie, with a confidence of 95 %, in a run ten times longer.
///
/// The mean is taken over all rows from the start of the steady part to the end of the longer run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end, in the unit of the figure.
    pub low: f64,
    /// The upper end, in the unit of the figure.
    pub high: f64,
}

/// What the rows of a phase say about its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// No figure changes any more.
    Steady {
        /// Seconds from the first row to the start of the steady part.
        from_seconds: f64,
        /// One interval per series; `None` for a series with too few known rows, which had no part in the verdict.
        means: Vec<Option<Interval>>,
    },
    /// No figure changes any more, except for a cycle that repeats, such as that of compactions.
    SteadyWithPeriod {
        /// The length of the cycle, in seconds.
        period_seconds: f64,
        /// Seconds from the first row to the start of the steady part.
        from_seconds: f64,
        /// One interval per series; `None` for a series with too few known rows, which had no part in the verdict.
        means: Vec<Option<Interval>>,
    },
    /// A figure is still improving at the end, or improved too recently to be called steady.
    Warming,
    /// A figure is still getting worse at the end, or got worse too recently to be called steady.
    Slowing,
    /// There are too few rows to decide.
    TooShort,
}

impl Verdict {
    /// The verdict in words, without its numbers.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Steady { .. } => "steady",
            Verdict::SteadyWithPeriod { .. } => "steady with a period",
            Verdict::Warming => "warming",
            Verdict::Slowing => "slowing",
            Verdict::TooShort => "too short",
        }
    }

    /// Whether the phase is steady, with or without a period.
    pub fn is_steady(&self) -> bool {
        matches!(self, Verdict::Steady { .. } | Verdict::SteadyWithPeriod { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::SteadyWithPeriod { period_seconds, .. } => {
                write!(formatter, "steady with a period of {period_seconds:.0} s")
            }
            _ => formatter.write_str(self.name()),
        }
    }
}

/// The verdict on a phase, from parallel series with one row per `interval_seconds`.
///
/// The series have the same number of rows. One of which fewer than half of the rows are known has no part in the verdict.
/// 600 rows of one series take about one millisecond, so it may be called again each second on a growing series. A phase that
/// is to end when it is steady needs a least duration too: the first level of a series that steps or bends later is steady
/// as far as it goes.
pub fn verdict(series: &[Series<'_>], interval_seconds: f64) -> Verdict {
    let findings: Vec<Option<Finding>> = series.iter().map(judge::judge).collect();
    let known = || findings.iter().flatten();
    if known().any(|finding| matches!(finding, Finding::Slowing)) {
        return Verdict::Slowing;
    }
    if known().any(|finding| matches!(finding, Finding::Warming)) {
        return Verdict::Warming;
    }
    if known().next().is_none() || known().any(|finding| matches!(finding, Finding::TooShort)) {
        return Verdict::TooShort;
    }
    let mut from = 0;
    let mut period = None;
    for finding in known() {
        if let Finding::Steady { from_row, period_rows } = finding {
            from = from.max(*from_row);
            period = period.or(*period_rows);
        }
    }
    let means = series.iter().zip(&findings).map(|(one, finding)| match finding {
        Some(Finding::Steady { period_rows, .. }) => {
            interval::ten_times_longer(one.values, from, *period_rows)
        }
        _ => None,
    });
    let means = means.collect();
    let from_seconds = from as f64 * interval_seconds;
    match period {
        Some(rows) => {
            Verdict::SteadyWithPeriod { period_seconds: rows * interval_seconds, from_seconds, means }
        }
        None => Verdict::Steady { from_seconds, means },
    }
}
