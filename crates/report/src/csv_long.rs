//! The report with a row for each figure, for pivot tables: the figure's run, phase and engine, its name, unit and value.

use super::csv::{options, state, text};
use super::escape::csv_cell;
use kvdyno_core::results::Run;
use kvdyno_core::results::figures::FIGURES;
use kvdyno_core::results::summary::{Cell, Latency, PhaseSummary, RunFigures, Summary};

/// The columns that identify a run of a phase.
pub(super) const NAMES: &str =
    "run_id,trial,workload,phase,engine,options,repetition,durability_in_force,state,cause";
/// The columns of a figure. `kind` is empty for figures over all kinds of op.
const COLUMNS: &str = "kind,figure,unit,value";

/// Renders the report.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let mut lines = vec![format!("{NAMES},{COLUMNS}")];
    for phase in &summary.phases {
        for cell in phase.floors.iter().chain(phase.cells()) {
            for figures in &cell.runs {
                let names = names(run, phase, cell, figures);
                let rows = rows(summary, phase, figures);
                if rows.is_empty() {
                    lines.push(format!("{names},,,,"));
                }
                lines.extend(rows.into_iter().map(|row| format!("{names},{row}")));
            }
        }
    }
    lines.join("\n") + "\n"
}

/// The cells of [`NAMES`].
pub(super) fn names(run: &Run, phase: &PhaseSummary, cell: &Cell, figures: &RunFigures) -> String {
    let (state, cause) = state(&figures.state);
    let words = [
        csv_cell(&run.id),
        csv_cell(&figures.trial),
        csv_cell(&phase.workload),
        csv_cell(&phase.name),
        csv_cell(&cell.engine),
        csv_cell(&options(cell)),
        figures.repetition.to_string(),
        text(figures.durability_effective),
        state.to_string(),
        csv_cell(cause),
    ];
    words.join(",")
}

/// `kind,figure,unit,value` for each known figure.
fn rows(summary: &Summary, phase: &PhaseSummary, run: &RunFigures) -> Vec<String> {
    let mut rows = Vec::new();
    let mut figure = |kind: &str, name: &str, unit: &str, value: String| {
        if !value.is_empty() {
            rows.push(format!("{},{name},{unit},{value}", csv_cell(kind)));
        }
    };
    let named = || FIGURES.iter().filter_map(|of| Some((of, of.long_name?)));
    for (of, name) in named() {
        figure("", name, of.unit, text(of.of_run(run)));
    }
    let record = summary.records.iter().find(|record| record.trial.id == run.trial);
    let whole = record.filter(|_| run.state.counts()).and_then(|record| record.whole_phase(&phase.name));
    for own in whole.iter().flat_map(|whole| &whole.kinds) {
        figure(own.kind.as_str(), "ops", "ops", own.ops.to_string());
        figure(own.kind.as_str(), "misses", "ops", own.misses.to_string());
        if own.evicted > 0 {
            figure(own.kind.as_str(), "evicted", "ops", own.evicted.to_string());
        }
        figure(own.kind.as_str(), "rows", "rows", own.rows.to_string());
        figure(own.kind.as_str(), "retries", "retries", own.retries.to_string());
        let latency = Latency::of(&own.service_ns);
        for (of, name) in named() {
            figure(own.kind.as_str(), name, of.unit, text(of.of_times(&latency)));
        }
    }
    rows
}
