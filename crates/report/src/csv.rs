//! The report for spreadsheets and programs: a row per engine, phase and run, with exact figures.
//!
//! Columns that begin with `cell_` describe all runs of a cell and are the same in each of its rows. Columns that begin
//! with `trial_` describe the complete trial of a run and are the same in the rows of its phases. An unknown value is an
//! empty cell.

use super::escape::csv_cell;
use super::ranking::check_name;
use kvdyno_core::results::summary::{Cell, Latency, PhaseSummary, RunFigures, RunState, Summary};
use kvdyno_core::results::{COSTS, Record, Run, Staleness, StepKind};
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

/// The columns, in order; those of [`COSTS`] follow. Their names are stable across versions.
const COLUMNS: &[Column] = &[
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
    ("durability_in_force", |row| text(row.run.durability_in_force)),
    ("keys", |row| row.phase.keys.to_string()),
    ("threads", |row| super::describe::all_threads(row.phase).to_string()),
    ("ops", |row| text(row.run.ops)),
    ("elapsed_ns", |row| text(row.run.elapsed_ns)),
    ("ops_per_second", |row| text(row.run.ops_per_second)),
    ("engine_ops_per_second", |row| text(row.run.engine_ops_per_second)),
    ("mean_ns", |row| text(row.run.latency.mean_ns)),
    ("p50_ns", |row| text(row.run.latency.p50_ns)),
    ("p99_ns", |row| text(row.run.latency.p99_ns)),
    ("p999_ns", |row| text(row.run.latency.p999_ns)),
    ("max_ns", |row| text(row.run.latency.max_ns)),
    ("cpu_seconds_per_million_ops", |row| text(row.run.cpu_seconds_per_million_ops)),
    ("rss_bytes", |row| text(row.run.rss_bytes)),
    ("disk_allocated_bytes", |row| text(row.run.disk_allocated_bytes)),
    ("write_amplification_ratio", |row| text(row.run.write_amplification)),
    ("space_amplification_ratio", |row| text(row.run.space_amplification)),
    ("syncs_per_commit", |row| {
        text(row.run.observed.as_ref().and_then(|observed| observed.syncs_per_commit))
    }),
    ("durability_observed", |row| text(row.run.observed.as_ref().map(|observed| observed.verdict))),
    ("harness_share_ratio", |row| text(row.run.harness_share)),
    ("harness_generation_ratio", |row| text(row.run.harness.map(|harness| harness.generation))),
    ("harness_checks_ratio", |row| text(row.run.harness.map(|harness| harness.checks))),
    ("harness_boundary_ratio", |row| text(row.run.harness.map(|harness| harness.boundary))),
    ("ops_per_call", |row| text(row.run.batch_mean)),
    ("cell_rank", |row| text(row.cell.rank.map(|rank| rank.best))),
    ("cell_tied", |row| text(row.cell.rank.map(|rank| rank.best != rank.worst))),
    ("cell_rank_worst", |row| text(row.cell.rank.map(|rank| rank.worst))),
    ("cell_runs_counted", |row| row.cell.counted_runs.to_string()),
    ("cell_median_ops_per_second", |row| text(row.cell.ops_per_second)),
    ("cell_low_ops_per_second", |row| text(row.cell.ops_per_second_interval.map(|interval| interval.low))),
    ("cell_high_ops_per_second", |row| text(row.cell.ops_per_second_interval.map(|interval| interval.high))),
    ("cell_interval_level", |row| text(row.cell.ops_per_second_interval.map(|interval| interval.level))),
    ("cell_median_engine_ops_per_second", |row| text(row.cell.engine_ops_per_second)),
    ("cell_ratio", |row| text(row.cell.ratio.map(|ratio| ratio.value))),
    ("cell_ratio_low", |row| text(row.cell.ratio.and_then(|ratio| Some(ratio.interval?.low)))),
    ("cell_ratio_high", |row| text(row.cell.ratio.and_then(|ratio| Some(ratio.interval?.high)))),
    ("cell_mean_ns", |row| latency(row, |latency| text(latency.mean_ns))),
    ("cell_p50_ns", |row| latency(row, |latency| text(latency.p50_ns))),
    ("cell_p50_low_ns", |row| text(row.cell.latency.p50_range_ns.map(|range| range.low))),
    ("cell_p50_high_ns", |row| text(row.cell.latency.p50_range_ns.map(|range| range.high))),
    ("cell_p99_ns", |row| latency(row, |latency| text(latency.p99_ns))),
    ("cell_p99_low_ns", |row| text(row.cell.latency.p99_range_ns.map(|range| range.low))),
    ("cell_p99_high_ns", |row| text(row.cell.latency.p99_range_ns.map(|range| range.high))),
    ("cell_p999_ns", |row| latency(row, |latency| text(latency.p999_ns))),
    ("cell_p999_low_ns", |row| text(row.cell.latency.p999_range_ns.map(|range| range.low))),
    ("cell_p999_high_ns", |row| text(row.cell.latency.p999_range_ns.map(|range| range.high))),
    ("cell_max_ns", |row| latency(row, |latency| text(latency.max_ns))),
    ("cell_cpu_seconds_per_million_ops", |row| text(row.cell.cpu_seconds_per_million_ops)),
    ("cell_rss_bytes", |row| text(row.cell.rss_bytes)),
    ("cell_disk_allocated_bytes", |row| text(row.cell.disk_allocated_bytes)),
    ("cell_write_amplification_ratio", |row| text(row.cell.write_amplification)),
    ("cell_space_amplification_ratio", |row| text(row.cell.space_amplification)),
    ("cell_syncs_per_commit", |row| text(row.cell.syncs_per_commit)),
    ("cell_harness_share_ratio", |row| text(row.cell.harness_share)),
    ("cell_check_level", |row| row.cell.check_level.map(check_name).unwrap_or_default().to_string()),
    ("cell_emulated", |row| csv_cell(&row.cell.emulated.join("; "))),
    ("cell_notes", |row| csv_cell(&notes(row.cell))),
    ("trial_open_ns", |row| text(step_ns(row, StepKind::Open, false))),
    ("trial_close_ns", |row| text(step_ns(row, StepKind::Close, true))),
    ("trial_reopen_ns", |row| text(step_ns(row, StepKind::Reopen, true))),
    ("trial_rss_peak_bytes", |row| text(row.record.and_then(|record| record.rss_peak_bytes))),
    ("trial_memory_cap_bytes", |row| text(cap(row).and_then(|cap| cap.limit_bytes))),
    ("trial_memory_peak_bytes", |row| text(cap(row).and_then(|cap| cap.peak_bytes))),
    ("reads", |row| stale(row, |found| Some(found.reads))),
    ("stale_reads", |row| stale(row, |found| Some(found.stale))),
    ("stale_missed_reads", |row| stale(row, |found| Some(found.missed))),
    ("stale_versions_p50", |row| stale(row, |found| found.versions.quantile_if_enough(1, 2))),
    ("stale_versions_p99", |row| stale(row, |found| found.versions.quantile_if_enough(99, 100))),
    ("stale_versions_max", |row| stale(row, |found| found.versions.max_ns())),
    ("stale_age_p50_ns", |row| stale(row, |found| found.age_ns.quantile_if_enough(1, 2))),
    ("stale_age_p99_ns", |row| stale(row, |found| found.age_ns.quantile_if_enough(99, 100))),
    ("stale_age_max_ns", |row| stale(row, |found| found.age_ns.max_ns())),
    ("stale_age_at_least_ns", |row| stale(row, |found| found.at_least_ns)),
    ("stale_unknown_version_reads", |row| stale(row, |found| Some(found.of_unknown_version()))),
    ("stale_unknown_age_reads", |row| stale(row, |found| Some(found.of_unknown_age()))),
    ("storage_device", |row| csv_cell(row.run.cost.storage_device.as_deref().unwrap_or_default())),
];

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
        Some(prices) => (PRICES, vec![csv_cell(&prices.currency)]),
        None => (&[][..], Vec::new()),
    };
    let names = COLUMNS.iter().map(|(name, _)| *name).chain(COSTS.iter().map(|figure| figure.name));
    let names: Vec<&str> = names
        .chain(prices.iter().map(|(name, _)| *name))
        .chain(currency.iter().map(|_| "price_currency"))
        .collect();
    let mut lines = vec![names.join(",")];
    for phase in &summary.phases {
        for cell in phase.floors.iter().chain(super::ranking::cells(phase)) {
            for figures in &cell.runs {
                let record = summary.records.iter().find(|record| record.trial.id == figures.trial);
                let row = Row { run_id: &run.id, phase, cell, run: figures, record };
                let costs = COSTS.iter().map(|figure| text((figure.of)(&figures.cost)));
                let prices = prices.iter().map(|(_, cell)| cell(&row)).chain(currency.clone());
                let cells: Vec<String> =
                    COLUMNS.iter().map(|(_, cell)| cell(&row)).chain(costs).chain(prices).collect();
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

fn latency(row: &Row, format: fn(&Latency) -> String) -> String {
    format(&row.cell.latency)
}

/// A figure of stale reads; empty if the engine has none, or if it is unknown.
fn stale(row: &Row, figure: fn(&Staleness) -> Option<u64>) -> String {
    text(row.run.staleness.as_ref().and_then(figure))
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
