//! Resource usage: CPU, memory, disk and bytes written to storage. Lower is better for all of them.

use super::bars::{self, Bars, Row, Section};
use super::{Chart, Scales};
use crate::describe::cell_name;
use kvdyno_core::results::figures::{FIGURES, Figure};
use kvdyno_core::results::summary::{Cell, PhaseSummary};

/// A chart for each figure that at least one cell has, with the engines in the order of their rates.
pub(crate) fn resources(phase: &PhaseSummary, scales: Scales) -> Vec<Chart> {
    FIGURES.iter().filter_map(|figure| draw(phase, figure, scales)).collect()
}

fn draw(phase: &PhaseSummary, figure: &Figure, scales: Scales) -> Option<Chart> {
    let (title, axis) = figure.bars?;
    let row = |cell: &Cell| Row {
        engine: cell_name(cell),
        lead: String::new(),
        value: figure.of_cell(cell),
        interval: None,
        is_first: false,
        instead: None,
        tip: String::new(),
    };
    let several = phase.groups.len() > 1;
    let section = |group: &kvdyno_core::results::summary::Group| Section {
        heading: several.then(|| format!("effective level {}", group.name())),
        rows: group.cells.iter().map(row).collect(),
    };
    let sections = phase.groups.iter().map(section).collect();
    let bars = Bars {
        title: title.to_string(),
        about: String::new(),
        axis: axis.to_string(),
        unit: figure.form.into(),
        sections,
        has_switch: false,
    };
    bars::draw(&bars, scales)
}
