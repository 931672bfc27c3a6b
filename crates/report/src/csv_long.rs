//! The report with a row for each figure, for pivot tables: the figure's run, phase and engine, its name, unit and value.

use super::csv::{options, state, text};
use super::escape::csv_cell;
use kvdyno_core::results::summary::{Cell, Latency, PhaseSummary, RunFigures, Summary};
use kvdyno_core::results::{COSTS, Run};

/// The columns that identify a run of a phase.
pub(super) const NAMES: &str =
    "run_id,trial,workload,phase,engine,options,repetition,durability_in_force,state,cause";
/// The columns of a figure. `kind` is empty for figures over all kinds of op.
const COLUMNS: &str = "kind,figure,unit,value";

/// Renders the report.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let mut lines = vec![format!("{NAMES},{COLUMNS}")];
    for phase in &summary.phases {
        for cell in phase.floors.iter().chain(super::ranking::cells(phase)) {
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
        text(figures.durability_in_force),
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
    figure("", "ops", "ops", text(run.ops));
    figure("", "elapsed", "ns", text(run.elapsed_ns));
    figure("", "throughput", "ops/s", text(run.ops_per_second));
    figure("", "engine_throughput", "ops/s", text(run.engine_ops_per_second));
    times(&mut figure, "", &run.latency);
    figure("", "cpu", "s/Mop", text(run.cpu_seconds_per_million_ops));
    figure("", "rss", "bytes", text(run.rss_bytes));
    figure("", "disk_allocated", "bytes", text(run.disk_allocated_bytes));
    figure("", "write_amplification", "ratio", text(run.write_amplification));
    figure("", "space_amplification", "ratio", text(run.space_amplification));
    figure(
        "",
        "syncs",
        "calls/commit",
        text(run.observed.as_ref().and_then(|observed| observed.syncs_per_commit)),
    );
    figure("", "harness_share", "ratio", text(run.harness_share));
    figure("", "harness_generation", "ratio", text(run.harness.map(|harness| harness.generation)));
    figure("", "harness_checks", "ratio", text(run.harness.map(|harness| harness.checks)));
    figure("", "harness_boundary", "ratio", text(run.harness.map(|harness| harness.boundary)));
    figure("", "batch", "ops/call", text(run.batch_mean));
    if let Some(found) = &run.staleness {
        figure("", "reads", "ops", found.reads.to_string());
        figure("", "stale_reads", "ops", found.stale.to_string());
        figure("", "stale_missed_reads", "ops", found.missed.to_string());
        figure("", "stale_versions_max", "versions", text(found.versions.max_ns()));
        figure("", "stale_age_max", "ns", text(found.age_ns.max_ns()));
        figure("", "stale_age_at_least", "ns", text(found.at_least_ns));
        figure("", "stale_unknown_version_reads", "ops", found.of_unknown_version().to_string());
        figure("", "stale_unknown_age_reads", "ops", found.of_unknown_age().to_string());
    }
    for cost in COSTS {
        // The unit has a column of its own.
        let name =
            ["_per_op", "_ns", "_ratio"].iter().fold(cost.name, |name, unit| name.trim_end_matches(unit));
        figure("", name, cost.unit, text((cost.of)(&run.cost)));
    }
    let record = summary.records.iter().find(|record| record.trial.id == run.trial);
    let whole = record.filter(|_| run.state.counts()).and_then(|record| record.whole_phase(&phase.name));
    for own in whole.iter().flat_map(|whole| &whole.kinds) {
        figure(&own.kind, "ops", "ops", own.ops.to_string());
        figure(&own.kind, "misses", "ops", own.misses.to_string());
        if own.evicted > 0 {
            figure(&own.kind, "evicted", "ops", own.evicted.to_string());
        }
        figure(&own.kind, "rows", "rows", own.rows.to_string());
        figure(&own.kind, "retries", "retries", own.retries.to_string());
        times(&mut figure, &own.kind, &Latency::of(&own.service_ns));
    }
    rows
}

fn times(figure: &mut impl FnMut(&str, &str, &str, String), kind: &str, latency: &Latency) {
    figure(kind, "service_mean", "ns", text(latency.mean_ns));
    figure(kind, "service_p50", "ns", text(latency.p50_ns));
    figure(kind, "service_p99", "ns", text(latency.p99_ns));
    figure(kind, "service_p999", "ns", text(latency.p999_ns));
    figure(kind, "service_max", "ns", text(latency.max_ns));
}
