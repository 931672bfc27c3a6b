//! Ops per second of each engine, with the interval of the median, grouped by effective durability level.

use super::bars::{self, Bars, Row, Section};
use super::scale::Unit;
use super::{Chart, Scales};
use crate::report::describe::{cell_name, phase_name};
use crate::report::figure::{known, rate};
use crate::results::statistics::{FEWEST_FOR_INTERVAL, Rank};
use crate::results::summary::{Cell, PhaseSummary};
use crate::text::counted;

/// The maximum number of rows per level on the first screen.
const OVERVIEW_ROWS: usize = 8;

/// All cells of a phase; `None` if no cell has a figure.
pub(crate) fn throughput(phase: &PhaseSummary, scales: Scales) -> Option<Chart> {
    draw(phase, scales, usize::MAX, format!("{}: ops/s", phase_name(phase)))
}

/// The first cells of each level, for the first screen; `None` if no cell has a figure.
pub(crate) fn overview(phase: &PhaseSummary, scales: Scales) -> Option<Chart> {
    draw(phase, scales, OVERVIEW_ROWS, phase_name(phase))
}

fn draw(phase: &PhaseSummary, scales: Scales, most: usize, title: String) -> Option<Chart> {
    let mut sections = Vec::new();
    let mut hidden = 0;
    for group in &phase.groups {
        hidden += group.cells.len().saturating_sub(most);
        let heading = Some(format!("effective level {}", group.name()));
        sections.push(Section { heading, rows: group.cells.iter().take(most).map(row).collect() });
    }
    let without: Vec<&Cell> = phase.unranked.iter().collect();
    if !without.is_empty() && most == usize::MAX {
        let heading = Some("not ranked".to_string());
        sections.push(Section { heading, rows: without.into_iter().map(row).collect() });
    }
    let runs = phase.groups.iter().flat_map(|group| &group.cells).map(|cell| cell.counted_runs).max()?;
    let about = match hidden {
        0 => String::new(),
        hidden => format!("{} more below.", counted(hidden as u64, "engine", "engines")),
    };
    let whisker = if runs as usize >= FEWEST_FOR_INTERVAL { "; whisker: its interval" } else { "" };
    let median = format!("ops/s, median of {}{whisker}", counted(runs.into(), "run", "runs"));
    bars::draw(&Bars { title, about, axis: median, unit: Unit::Rate, sections }, scales)
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
