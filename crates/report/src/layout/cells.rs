//! The data of layouts: each cell of a phase with the records of its runs that count.

use crate::describe::cell_name;
use crate::escape::csv_cell;
use kvdyno_core::results::label::full_name;
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_core::results::{PhaseRecord, Record, Role, Step, StepKind};
use kvdyno_measure::text::plain_text;
use std::borrow::Cow;

/// A cell in a phase.
pub(crate) struct Measured<'a> {
    pub phase: &'a PhaseSummary,
    pub cell: &'a Cell,
    /// The runs that count, in order of repetition.
    pub runs: Vec<OneRun<'a>>,
}

/// A counted run of a cell.
pub(crate) struct OneRun<'a> {
    pub repetition: u32,
    pub record: &'a Record,
    /// The complete phase, with all its rounds.
    pub whole: Cow<'a, PhaseRecord>,
}

/// All cells of all phases, including those without a counted run: by phase in the order of the plan, then by level and
/// engine. Floors measure the harness and not an engine, so they are included only if there is nothing else.
pub(crate) fn measured(summary: &Summary) -> Vec<Measured<'_>> {
    let only_floors = summary.phases.iter().all(|phase| phase.groups.is_empty() && phase.unranked.is_empty());
    measured_with(summary, only_floors)
}

/// [`measured`], including the floors.
pub(crate) fn measured_with_floors(summary: &Summary) -> Vec<Measured<'_>> {
    measured_with(summary, true)
}

fn measured_with(summary: &Summary, floors: bool) -> Vec<Measured<'_>> {
    let mut all = Vec::new();
    for phase in &summary.phases {
        let floors = phase.floors.iter().filter(|_| floors);
        let ranked = phase.groups.iter().flat_map(|group| &group.cells);
        let mut cells: Vec<&Cell> = floors.chain(ranked).chain(&phase.unranked).collect();
        cells.sort_by_key(|cell| (cell.durability_effective, &cell.engine, &cell.options));
        all.extend(cells.into_iter().map(|cell| Measured { phase, cell, runs: runs(summary, phase, cell) }));
    }
    all
}

fn runs<'a>(summary: &'a Summary, phase: &'a PhaseSummary, cell: &Cell) -> Vec<OneRun<'a>> {
    let counted = cell.runs.iter().filter(|run| run.state.counts());
    let of = |run: &kvdyno_core::results::summary::RunFigures| {
        let record = summary.records.iter().find(|record| record.trial.id == run.trial)?;
        Some(OneRun { repetition: run.repetition, record, whole: record.whole_phase(&phase.name)? })
    };
    counted.filter_map(of).collect()
}

impl<'a> Measured<'a> {
    /// The name of the engine in a column or row: with the options that distinguish it.
    pub(crate) fn name(&self) -> String {
        cell_name(self.cell)
    }

    /// The engine with all its options, for a line of its own.
    pub(crate) fn full_name(&self) -> String {
        full_name(&self.cell.engine, &self.cell.options)
    }

    /// The base workload, of which this may be a variant.
    pub(crate) fn base(&self) -> &'a str {
        self.phase.variant_of.as_deref().unwrap_or(&self.phase.workload)
    }

    /// The effective durability level, or the requested one if nothing was measured.
    pub(crate) fn level(&self) -> String {
        self.cell.durability_effective.unwrap_or(self.cell.durability_requested).to_string()
    }

    /// Whether all planned runs count and had the same settings.
    pub(crate) fn is_whole(&self) -> bool {
        self.runs.len() == self.cell.runs.len() && !self.cell.settings_differ
    }

    /// The median run by the duration that `of` returns; of two, the shorter one.
    pub(crate) fn middle_run(&self, of: impl Fn(&OneRun) -> u64) -> Option<&OneRun<'a>> {
        let mut runs: Vec<&OneRun> = self.runs.iter().collect();
        runs.sort_by_key(|run| of(run));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// `run 2 of 3 (the median by time)`; empty if there is only one run.
    pub(crate) fn which(&self, run: &OneRun, chosen: bool) -> String {
        match (self.cell.runs.len(), chosen) {
            (0 | 1, _) => String::new(),
            (all, true) => format!(", run {} of {all} (the median by time)", run.repetition),
            (all, false) => format!(", run {} of {all}", run.repetition),
        }
    }

    /// The cells that identify this cell in CSV: workload, phase, engine, options, effective level.
    pub(crate) fn csv_names(&self) -> Vec<String> {
        let level = self.cell.durability_effective.map(|level| level.to_string()).unwrap_or_default();
        vec![
            csv_cell(&self.phase.workload),
            csv_cell(&self.phase.name),
            csv_cell(&self.cell.engine),
            csv_cell(&options(self.cell)),
            level,
        ]
    }
}

impl OneRun<'_> {
    /// The number of reads of the phase, or of its other ops.
    pub(crate) fn ops(&self, reads: bool) -> u64 {
        let own = self.whole.kinds.iter().filter(|kind| super::seconds::is_read(kind.kind.known()) == reads);
        own.map(|kind| kind.ops).sum()
    }

    /// The step with this name before the phase `before`, or after all phases; `None` if it was not done.
    pub(crate) fn step(&self, name: StepKind, before: Option<&str>) -> Option<&Step> {
        let is_it = |step: &&Step| step.name == name && step.before_phase.as_deref() == before;
        self.record.steps.iter().find(is_it).filter(|step| step.note.is_none())
    }
}

/// A line for each name that does not show all options: `nudb (block_size=8192, ..): nudb (block_size=8192, load_factor=0.7)`.
pub(super) fn explained<'a>(all: impl IntoIterator<Item = &'a Measured<'a>>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for measured in all {
        let (name, full) = (measured.name(), plain_text(&measured.full_name()));
        let line = format!("{name}: {full}");
        if name != full && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// `cache=1G; sync=on`.
pub(crate) fn options(cell: &Cell) -> String {
    cell.options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
}

/// A part of a file name: letters, digits, `.`, `-`, `_` and `=`.
pub(crate) fn file_part(text: &str) -> String {
    let safe =
        |letter: char| if letter.is_ascii_alphanumeric() || ".-_=".contains(letter) { letter } else { '_' };
    plain_text(text).chars().map(safe).collect()
}

/// The engine and its options, for a file name.
pub(crate) fn file_engine(cell: &Cell) -> String {
    let options: Vec<String> = cell.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    file_part(&[vec![cell.engine.clone()], options].concat().join("-"))
}

/// The time that a figure is by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// As if the harness took no time, as in `net ops/s` of the report; by the wall clock if that is unknown.
    Net,
    /// The wall clock.
    Wall,
}

impl Time {
    /// The time of a phase, nanoseconds.
    pub(super) fn of(self, phase: &PhaseRecord) -> u64 {
        match self {
            Time::Net => phase.engine_elapsed_ns().unwrap_or(phase.elapsed_ns),
            Time::Wall => phase.elapsed_ns,
        }
    }

    /// The rate of the phase's reads or of its other ops, of which there are so many; `None` if there are none.
    pub(super) fn rate_of(self, phase: &PhaseRecord, reads: bool, ops: u64) -> Option<f64> {
        let role = if reads { Role::Reader } else { Role::Writer };
        let wall = || per_second(ops, phase.elapsed_ns);
        match self {
            _ if ops == 0 => None,
            Time::Net => phase.engine_ops_per_second_of(role, ops).or_else(wall),
            Time::Wall => wall(),
        }
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A rate per second; `None` if no time has passed.
pub(crate) fn per_second(count: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| count as f64 / seconds(ns))
}

/// The exact figure, or an empty text if it is unknown.
pub(crate) fn exact<Figure: ToString>(figure: Option<Figure>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}
