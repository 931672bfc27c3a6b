//! The data of charts: a run's summary, its records by trial, and the style of each engine in all charts.

use super::palette::Style;
use crate::describe::cell_name;
use kvdyno_core::results::summary::{Cell, PhaseSummary, RunFigures, Summary};
use kvdyno_core::results::{Record, Run};
use std::collections::HashMap;

/// The number of lines that a chart shows at first; more would be hard to distinguish. The others can be selected.
pub(super) const LINES_SHOWN: usize = 8;
/// The maximum number of lines of a chart, including hidden ones.
pub(super) const LINES_KEPT: usize = 24;

/// A run to draw.
pub(crate) struct Scene<'a> {
    /// The summary of the run.
    pub summary: &'a Summary,
    /// The run.
    pub run: &'a Run,
    records: HashMap<&'a str, &'a Record>,
    places: HashMap<String, usize>,
}

impl<'a> Scene<'a> {
    /// The scene of a run. Engines get their styles in the order of their first appearance.
    pub(crate) fn new(summary: &'a Summary, run: &'a Run) -> Scene<'a> {
        let records = summary.records.iter().map(|record| (record.trial.id.as_str(), record)).collect();
        let mut places = HashMap::new();
        for cell in summary.phases.iter().flat_map(PhaseSummary::cells) {
            let next = places.len();
            places.entry(cell_name(cell)).or_insert(next);
        }
        Scene { summary, run, records, places }
    }

    /// The style of a cell's engine.
    pub(super) fn style(&self, cell: &Cell) -> Style {
        Style::of(self.places.get(&cell_name(cell)).copied().unwrap_or(0))
    }

    /// The names of all engines, in the order of their styles.
    pub(crate) fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<(&str, usize)> =
            self.places.iter().map(|(name, place)| (name.as_str(), *place)).collect();
        engines.sort_by_key(|(_, place)| *place);
        engines.into_iter().map(|(name, _)| name).collect()
    }

    /// The runs of a cell that count, with their records.
    pub(super) fn counted<'s>(
        &'s self,
        cell: &'s Cell,
    ) -> impl Iterator<Item = (&'s RunFigures, &'a Record)> {
        let counted = cell.runs.iter().filter(|run| run.state.counts());
        counted.filter_map(|run| Some((run, *self.records.get(run.trial.as_str())?)))
    }
}

/// A note for charts that hide or drop lines; empty for other charts.
pub(super) fn hidden_note(lines: usize) -> String {
    match lines {
        ..=LINES_SHOWN => String::new(),
        lines if lines <= LINES_KEPT => {
            format!(" The {LINES_SHOWN} fastest of {lines} are drawn. Select other engines above.")
        }
        _ => format!(
            " The {LINES_SHOWN} fastest of {lines} are drawn. Others of the {LINES_KEPT} fastest can be selected above. The \
             tables contain all."
        ),
    }
}

/// The durability levels of a phase, each with its cells that have figures.
pub(super) fn levels(phase: &PhaseSummary) -> impl Iterator<Item = (String, Vec<&Cell>)> {
    phase.groups.iter().map(|group| (group.name(), group.cells.iter().collect()))
}
