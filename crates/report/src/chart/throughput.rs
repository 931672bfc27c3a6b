//! The figure by which engines are ranked, grouped by effective durability level: ops per second with the interval of the median,
//! or the response p99 of requests that arrive at a rate.

use super::bars::{self, Bars, Row, Section};
use super::scale::Unit;
use super::{Chart, Scales};
use crate::describe::{cell_name, headline, phase_name};
use crate::figure::rate;
use kvdyno_core::results::statistics::{FEWEST_FOR_INTERVAL, Rank};
use kvdyno_core::results::summary::{Cell, PhaseSummary};
use kvdyno_measure::text::counted;

/// All cells of a phase; `None` if no cell has a figure.
pub(crate) fn throughput(phase: &PhaseSummary, scales: Scales) -> Option<Chart> {
    let mut sections = Vec::new();
    for group in &phase.groups {
        let heading = Some(format!("effective level {}", group.name()));
        sections.push(Section { heading, rows: group.cells.iter().map(row).collect() });
    }
    let without: Vec<&Cell> = phase.unranked.iter().collect();
    if !without.is_empty() {
        let heading = Some("not ranked".to_string());
        sections.push(Section { heading, rows: without.into_iter().map(row).collect() });
    }
    let runs = phase.groups.iter().flat_map(|group| &group.cells).map(|cell| cell.counted_runs).max()?;
    let whisker = if runs as usize >= FEWEST_FOR_INTERVAL && phase.settings.rate.is_none() {
        "; whisker: its interval"
    } else {
        ""
    };
    let (figure, unit) = match phase.settings.rate {
        Some(_) => ("response p99", Unit::Time),
        None => ("ops/s", Unit::Rate),
    };
    let axis = format!("{figure}, median of {}{whisker}", counted(runs.into(), "run", "runs"));
    let (title, about) = (format!("{}: {figure}", phase_name(phase)), String::new());
    bars::draw(&Bars { title, about, axis, unit, sections, has_switch: true }, scales)
}

/// A cell as a row; the state replaces the figure of a cell that was not measured.
fn row(cell: &Cell) -> Row {
    let rank = cell.rank.map(|rank| rank.to_string());
    let value = match &cell.arrived {
        Some(arrived) => arrived.response.p99_ns.map(|ns| ns as f64),
        None => cell.ops_per_second,
    };
    let instead = match value {
        Some(_) => None,
        None => Some(cell.notes.first().map_or_else(|| "-".to_string(), |note| note.mark.clone())),
    };
    Row {
        engine: cell_name(cell),
        lead: rank.unwrap_or_else(|| "-".to_string()),
        value,
        interval: cell.ops_per_second_interval.filter(|_| cell.arrived.is_none()),
        is_first: cell.rank.is_some_and(Rank::is_first),
        instead,
        tip: tip(cell),
    }
}

fn tip(cell: &Cell) -> String {
    let figure = if cell.arrived.is_some() { "response p99" } else { "ops/s" };
    let mut parts = vec![format!("{}: {} {figure}", cell_name(cell), headline(cell))];
    if let Some(interval) = cell.ops_per_second_interval.filter(|_| cell.arrived.is_none()) {
        parts.push(format!("interval {} to {}", rate(interval.low), rate(interval.high)));
    }
    let runs: Vec<String> = cell
        .runs
        .iter()
        .filter(|run| run.arrived.is_none())
        .filter_map(|run| run.ops_per_second)
        .map(rate)
        .collect();
    if runs.len() > 1 {
        parts.push(format!("runs {}", runs.join(", ")));
    }
    parts.extend(cell.rank.map(|rank| format!("rank {rank}")));
    parts.extend(cell.notes.iter().map(|note| match &note.detail {
        Some(detail) => format!("{}: {detail}", note.mark),
        None => note.mark.clone(),
    }));
    parts.join("; ")
}
