//! What charts are made from: a run's summary, its records by trial, and how each engine looks in all of them.

use super::palette::Style;
use crate::report::describe::cell_name;
use crate::report::ranking::cells;
use crate::results::summary::{Cell, PhaseSummary, RunFigures, Summary};
use crate::results::{Record, Run};
use std::collections::HashMap;

/// Lines that a chart shows at first; with more nobody can tell them apart. The rest is there when it is asked for.
pub(super) const LINES_SHOWN: usize = 8;
/// Lines that a chart has at all.
pub(super) const LINES_KEPT: usize = 24;

/// A run to be drawn.
pub(crate) struct Scene<'a> {
    /// What is drawn.
    pub summary: &'a Summary,
    /// Where it comes from.
    pub run: &'a Run,
    records: HashMap<&'a str, &'a Record>,
    places: HashMap<String, usize>,
}

impl<'a> Scene<'a> {
    /// Of a run; engines get their looks in the order in which they are first met.
    pub fn new(summary: &'a Summary, run: &'a Run) -> Scene<'a> {
        let records = summary.records.iter().map(|record| (record.trial.id.as_str(), record)).collect();
        let mut places = HashMap::new();
        for cell in summary.phases.iter().flat_map(cells) {
            let next = places.len();
            places.entry(cell_name(cell)).or_insert(next);
        }
        Scene { summary, run, records, places }
    }

    /// How the engine of a cell looks.
    pub(super) fn style(&self, cell: &Cell) -> Style {
        Style::of(self.places.get(&cell_name(cell)).copied().unwrap_or(0))
    }

    /// The names of all engines, in the order of their looks.
    pub fn engines(&self) -> Vec<&str> {
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

/// What is told where not all lines are shown at first, or kept; nothing where they are.
pub(super) fn left_out(lines: usize) -> String {
    match lines {
        ..=LINES_SHOWN => String::new(),
        lines if lines <= LINES_KEPT => {
            format!(" The {LINES_SHOWN} fastest of {lines} are drawn; the others when chosen above.")
        }
        _ => format!(
            " The {LINES_SHOWN} fastest of {lines} are drawn, the {LINES_KEPT} fastest can be chosen above, and the \
             tables have all."
        ),
    }
}

/// The levels of a phase, each with its cells that have figures.
pub(super) fn levels(phase: &PhaseSummary) -> impl Iterator<Item = (String, Vec<&Cell>)> {
    phase.groups.iter().map(|group| (group.name(), group.cells.iter().collect()))
}
