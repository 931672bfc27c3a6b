//! The figures of one engine over versions and time.

use super::bars::{self, Bars, Row, Section};
use super::scale::Unit;
use super::{Chart, Scales};
use kvdyno_core::results::statistics::Interval;

/// A figure of an earlier run.
pub(crate) struct Past {
    /// The engine's version and the day of the run.
    pub name: String,
    /// Ops per second.
    pub value: f64,
    /// The interval of the median, if there were enough runs.
    pub interval: Option<Interval>,
    /// The tooltip.
    pub tip: String,
}

/// A bar for each figure, in the given order.
pub(crate) fn history(title: String, past: &[Past], scales: Scales) -> Option<Chart> {
    let row = |past: &Past| Row {
        engine: past.name.clone(),
        lead: String::new(),
        value: Some(past.value),
        interval: past.interval,
        is_first: false,
        instead: None,
        tip: past.tip.clone(),
    };
    let sections = vec![Section { heading: None, rows: past.iter().map(row).collect() }];
    let axis = "ops/s, median over runs; whisker: its interval".to_string();
    bars::draw(
        &Bars { title, about: String::new(), axis, unit: Unit::Rate, sections, has_switch: true },
        scales,
    )
}
