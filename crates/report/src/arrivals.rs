//! The table of a phase whose requests arrive at a rate: service, wait and response times side by side.

use super::describe::cell_name;
use super::figure::{UNKNOWN, known, time};
use kvdyno_core::results::summary::{Cell, Latency, PhaseSummary, Summary};
use kvdyno_core::workload::arrivals_text;
use kvdyno_measure::text::{Align, Table, grouped};

/// The legend of the table, for the end of a report.
pub(super) const LEGEND: &str = "Response times: of requests that arrive at a rate, whether or not earlier ones have ended. service: from the call of the engine until its answer. wait: from the moment of the request until it was sent, because all threads were busy. response: both together, which is what a user of the program sees. sender late: how late requests were sent although a thread was free, which is the generator's fault. waiting: requests that nobody had sent when the phase ended; they count with the time until then. Where the engine does not keep the rate, wait and response times grow with the length of the phase, so there are none.";

/// The table of a phase with its title; none if its requests do not arrive at a rate.
pub(super) fn table(phase: &PhaseSummary) -> Option<(String, Table)> {
    let settings = &phase.settings;
    let rate = settings.rate.as_ref()?;
    let titles = [
        "engine",
        "sent",
        "service p50",
        "p99",
        "wait p50",
        "p99",
        "response p50",
        "p99",
        "p99.9",
        "max",
        "late p99.9",
        "dropped",
        "waiting",
    ];
    let titles: Vec<(&str, Align)> = titles
        .iter()
        .map(|title| (*title, if *title == "engine" { Align::Left } else { Align::Right }))
        .collect();
    let mut table = Table::with_titles(&titles);
    for cell in phase.cells().filter(|cell| cell.counted_runs > 0) {
        table.push(row(cell));
    }
    let title = format!("Response times at {}", arrivals_text(rate, settings.arrivals, settings.when_late));
    (!table.is_empty()).then_some((title, table))
}

fn row(cell: &Cell) -> Vec<String> {
    let mut row = vec![cell_name(cell)];
    let Some(arrived) = &cell.arrived else {
        row.resize(13, UNKNOWN.to_string());
        return row;
    };
    row.push(grouped(arrived.sent));
    let middle = |times: &Latency| [times.p50_ns, times.p99_ns].map(|ns| known(ns, time));
    row.extend(middle(&cell.latency));
    row.extend(middle(&arrived.wait));
    row.extend(middle(&arrived.response));
    row.extend(
        [arrived.response.p999_ns, arrived.response.max_ns, arrived.late_p999_ns].map(|ns| known(ns, time)),
    );
    row.extend([grouped(arrived.dropped), grouped(arrived.waiting)]);
    row
}

/// Whether the requests of any phase arrive at a rate.
pub(super) fn has_any(summary: &Summary) -> bool {
    summary.phases.iter().any(|phase| phase.settings.rate.is_some())
}
