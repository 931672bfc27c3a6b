//! The report for spreadsheets and programs: a row per engine, phase and run, with exact figures.
//!
//! Columns that begin with `cell_` describe all runs of a cell and are the same in each of its rows. Columns that begin
//! with `trial_` describe the complete trial of a run and are the same in the rows of its phases. An unknown value is an
//! empty cell.

use super::escape::csv_cell;
use kvdyno_core::results::figures::{FIGURES, Figure, Part};
use kvdyno_core::results::summary::{Cell, PhaseSummary, RunFigures, RunState, Summary};
use kvdyno_core::results::{Record, Run, StepKind};
use kvdyno_measure::CapRecord;

/// The sources of a row.
struct Row<'a> {
    run_id: &'a str,
    phase: &'a PhaseSummary,
    cell: &'a Cell,
    run: &'a RunFigures,
    record: Option<&'a Record>,
}

/// A column: its name, which ends with the unit, and a function that returns the escaped cell.
type Column = (&'static str, fn(&Row) -> String);

/// The first columns. The names of all columns are stable across versions.
const NAMES: &[Column] = &[
    ("run_id", |row| csv_cell(row.run_id)),
    ("trial", |row| csv_cell(&row.run.trial)),
    ("workload", |row| csv_cell(&row.phase.workload)),
    ("phase", |row| csv_cell(&row.phase.name)),
    ("engine", |row| csv_cell(&row.cell.engine)),
    ("options", |row| csv_cell(&options(row.cell))),
    ("repetition", |row| row.run.repetition.to_string()),
    ("state", |row| state(&row.run.state).0.to_string()),
    ("cause", |row| csv_cell(state(&row.run.state).1)),
    ("durability_asked", |row| row.cell.durability_requested.to_string()),
    ("durability_in_force", |row| text(row.run.durability_effective)),
    ("keys", |row| row.phase.keys.to_string()),
    ("threads", |row| super::describe::all_threads(row.phase).to_string()),
];

/// What was observed of the durability level; after the figures of the engine.
const OBSERVED: &[Column] =
    &[("durability_observed", |row| text(row.run.observed.as_ref().map(|observed| observed.verdict)))];

/// The columns of a cell before its figures.
const RANKS: &[Column] = &[
    ("cell_rank", |row| text(row.cell.rank.map(|rank| rank.best))),
    ("cell_tied", |row| text(row.cell.rank.map(|rank| rank.best != rank.worst))),
    ("cell_rank_worst", |row| text(row.cell.rank.map(|rank| rank.worst))),
    ("cell_runs_counted", |row| row.cell.counted_runs.to_string()),
];

/// The columns of a cell after its figures, and those of the trial.
const REMARKS: &[Column] = &[
    ("cell_check_level", |row| text(row.cell.check_level)),
    ("cell_emulated", |row| csv_cell(&row.cell.emulated.join("; "))),
    ("cell_notes", |row| csv_cell(&notes(row.cell))),
    ("trial_open_ns", |row| text(step_ns(row, StepKind::Open, false))),
    ("trial_close_ns", |row| text(step_ns(row, StepKind::Close, true))),
    ("trial_reopen_ns", |row| text(step_ns(row, StepKind::Reopen, true))),
    ("trial_rss_peak_bytes", |row| text(row.record.and_then(|record| record.rss_peak_bytes))),
    ("trial_memory_cap_bytes", |row| text(cap(row).and_then(|cap| cap.limit_bytes))),
    ("trial_memory_peak_bytes", |row| text(cap(row).and_then(|cap| cap.peak_bytes))),
];

/// The device of the costs, before them.
const DEVICE: &[Column] =
    &[("storage_device", |row| csv_cell(row.run.cost.storage_device.as_deref().unwrap_or_default()))];

/// Columns next to each other.
enum Columns {
    /// Listed ones.
    Listed(&'static [Column]),
    /// A part of the figures of a run.
    OfRun(Part),
    /// The figures of a cell.
    OfCell,
}

/// All columns, in order.
const ALL: &[Columns] = &[
    Columns::Listed(NAMES),
    Columns::OfRun(Part::Engine),
    Columns::Listed(OBSERVED),
    Columns::OfRun(Part::Harness),
    Columns::Listed(RANKS),
    Columns::OfCell,
    Columns::Listed(REMARKS),
    Columns::OfRun(Part::Stale),
    Columns::Listed(DEVICE),
    Columns::OfRun(Part::Cost),
];

impl Columns {
    fn titles(&self) -> Vec<&'static str> {
        match self {
            Columns::Listed(columns) => columns.iter().map(|(name, _)| *name).collect(),
            Columns::OfRun(part) => of_run(*part).map(|figure| figure.name).collect(),
            Columns::OfCell => FIGURES.iter().flat_map(|figure| figure.cell_columns).copied().collect(),
        }
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        match self {
            Columns::Listed(columns) => columns.iter().map(|(_, cell)| cell(row)).collect(),
            Columns::OfRun(part) => of_run(*part).map(|figure| text(figure.of_run(row.run))).collect(),
            Columns::OfCell => {
                FIGURES.iter().flat_map(|figure| figure.cell_values(row.cell)).map(text).collect()
            }
        }
    }
}

fn of_run(part: Part) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(move |figure| figure.part == part && figure.is_of_runs())
}

/// The columns of prices, which follow if prices are given.
const PRICES: &[Column] = &[
    ("cell_price_per_hour", |row| text(row.cell.price.map(|price| price.per_hour))),
    ("cell_price_per_million_ops", |row| text(row.cell.price.map(|price| price.per_million_ops))),
    ("cell_low_price_per_million_ops", |row| {
        text(row.cell.price.and_then(|price| Some(price.interval?.low)))
    }),
    ("cell_high_price_per_million_ops", |row| {
        text(row.cell.price.and_then(|price| Some(price.interval?.high)))
    }),
];

/// Renders the report.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let (prices, currency) = match &summary.prices {
        Some(prices) => (Columns::Listed(PRICES), vec![csv_cell(&prices.currency)]),
        None => (Columns::Listed(&[]), Vec::new()),
    };
    let mut names: Vec<&str> = ALL.iter().flat_map(Columns::titles).collect();
    names.extend(prices.titles());
    names.extend(currency.iter().map(|_| "price_currency"));
    let mut lines = vec![names.join(",")];
    for phase in &summary.phases {
        for cell in phase.floors.iter().chain(phase.cells()) {
            for figures in &cell.runs {
                let record = summary.records.iter().find(|record| record.trial.id == figures.trial);
                let row = Row { run_id: &run.id, phase, cell, run: figures, record };
                let mut cells: Vec<String> = ALL.iter().flat_map(|columns| columns.cells(&row)).collect();
                cells.extend(prices.cells(&row));
                cells.extend(currency.clone());
                lines.push(cells.join(","));
            }
        }
    }
    lines.join("\n") + "\n"
}

/// The exact figure, or an empty text if it is unknown.
pub(super) fn text<Figure: ToString>(figure: Option<Figure>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}

/// The duration of the trial's first step with this name; with `at_end`, of the first one after the last phase. `None` if
/// the step was not done or has a note.
fn step_ns(row: &Row, name: StepKind, at_end: bool) -> Option<u64> {
    let steps = &row.record?.steps;
    let step = steps.iter().find(|step| step.name == name && step.before_phase.is_none() >= at_end)?;
    step.note.is_none().then_some(step.elapsed_ns)
}

fn cap<'a>(row: &Row<'a>) -> Option<&'a CapRecord> {
    row.record?.memory_cap.as_ref()
}

pub(super) fn options(cell: &Cell) -> String {
    cell.options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
}

fn notes(cell: &Cell) -> String {
    cell.notes.iter().map(|note| note.mark.as_str()).collect::<Vec<_>>().join("; ")
}

/// The state of the run as a word, and its cause.
pub(super) fn state(state: &RunState) -> (&'static str, &str) {
    match state {
        RunState::Counted => ("counted", ""),
        RunState::FailedLater { cause } => ("failed-later", cause),
        RunState::Failed { cause } => ("failed", cause),
        RunState::NotRun { reason } => ("not-run", reason),
        RunState::Pending => ("pending", ""),
    }
}
