//! Ops per second of each engine, with the interval of the median, grouped by effective durability level.

use super::bars::{self, Bars, Row, Section};
use super::scale::Unit;
use super::{Chart, Scales};
use crate::describe::{cell_name, phase_name};
use crate::figure::{known, rate};
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
    let whisker = if runs as usize >= FEWEST_FOR_INTERVAL { "; whisker: its interval" } else { "" };
    let median = format!("ops/s, median of {}{whisker}", counted(runs.into(), "run", "runs"));
    let (title, about) = (format!("{}: ops/s", phase_name(phase)), String::new());
    bars::draw(&Bars { title, about, axis: median, unit: Unit::Rate, sections, has_switch: true }, scales)
}

/// A cell as a row; the state replaces the figure of a cell that was not measured.
fn row(cell: &Cell) -> Row {
    let rank = cell.rank.map(|rank| rank.to_string());
    let instead = match cell.ops_per_second {
        Some(_) => None,
        None => Some(cell.notes.first().map_or_else(|| "-".to_string(), |note| note.mark.clone())),
    };
    Row {
        engine: cell_name(cell),
        lead: rank.unwrap_or_else(|| "-".to_string()),
        value: cell.ops_per_second,
        interval: cell.ops_per_second_interval,
        is_first: cell.rank.is_some_and(Rank::is_first),
        instead,
        tip: tip(cell),
    }
}

fn tip(cell: &Cell) -> String {
    let mut parts = vec![format!("{}: {} ops/s", cell_name(cell), known(cell.ops_per_second, rate))];
    if let Some(interval) = cell.ops_per_second_interval {
        parts.push(format!("interval {} to {}", rate(interval.low), rate(interval.high)));
    }
    let runs: Vec<String> = cell.runs.iter().filter_map(|run| run.ops_per_second).map(rate).collect();
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
