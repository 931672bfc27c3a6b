//! Resource usage: CPU, memory, disk and bytes written to storage. Lower is better for all of them.

use super::bars::{self, Bars, Row, Section};
use super::scale::Unit;
use super::{Chart, Scales};
use crate::describe::cell_name;
use kvdyno_core::results::summary::{Cell, PhaseSummary};

/// A figure of a cell, drawn as bars.
struct Figure {
    title: &'static str,
    axis: &'static str,
    unit: Unit,
    of: fn(&Cell) -> Option<f64>,
}

const FIGURES: [Figure; 4] = [
    Figure {
        title: "CPU",
        axis: "CPU seconds of the engine per million ops",
        unit: Unit::Plain,
        of: |cell| cell.cpu_seconds_per_million_ops,
    },
    Figure {
        title: "memory",
        axis: "resident memory of the process, maximum over runs",
        unit: Unit::Bytes,
        of: |cell| cell.rss_bytes.map(|bytes| bytes as f64),
    },
    Figure {
        title: "disk",
        axis: "allocated bytes after the phase, median",
        unit: Unit::Bytes,
        of: |cell| cell.disk_allocated_bytes.map(|bytes| bytes as f64),
    },
    Figure {
        title: "write amplification",
        axis: "bytes to storage per byte written, median",
        unit: Unit::Plain,
        of: |cell| cell.write_amplification,
    },
];

/// A chart for each figure that at least one cell has, with the engines in the order of their rates.
pub(crate) fn resources(phase: &PhaseSummary, scales: Scales) -> Vec<Chart> {
    FIGURES.iter().filter_map(|figure| draw(phase, figure, scales)).collect()
}

fn draw(phase: &PhaseSummary, figure: &Figure, scales: Scales) -> Option<Chart> {
    let row = |cell: &Cell| Row {
        engine: cell_name(cell),
        lead: String::new(),
        value: (figure.of)(cell),
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
        title: figure.title.to_string(),
        about: String::new(),
        axis: figure.axis.to_string(),
        unit: figure.unit,
        sections,
        has_switch: false,
    };
    bars::draw(&bars, scales)
}
