//! The ranking table of one durability level, and what stands below it.

use super::describe::{all_threads, cell_name};
use super::escape::plain_text;
use super::figure::{bytes, known, rate, three_digits, time};
use super::table::{Align, Table};
use crate::measure::units::time_text;
use crate::results::CheckLevel;
use crate::results::summary::{Cell, PhaseSummary};

/// The columns of a ranking; the units stand in the cells.
const COLUMNS: [(&str, Align); 14] = [
    ("rank", Align::Left),
    ("engine", Align::Left),
    ("ops/s", Align::Right),
    ("interval", Align::Left),
    ("p50", Align::Right),
    ("p99", Align::Right),
    ("p99.9", Align::Right),
    ("max", Align::Right),
    ("CPU s/Mop", Align::Right),
    ("RSS", Align::Right),
    ("disk", Align::Right),
    ("w-amp", Align::Right),
    ("check", Align::Left),
    ("notes", Align::Left),
];

/// What the columns mean, for the foot of a report.
pub(super) const LEGEND: &[&str] = &[
    "ops/s: median over runs, with its 95 % bootstrap interval (up to five runs: their range); engines whose intervals overlap tie (=), and a rank counts the engines surely ahead.",
    "p50 to max: service times of all runs merged. CPU s/Mop: CPU seconds, user and system, per million ops, the harness included.",
    "disk: allocated after the phase. w-amp: bytes sent to storage per byte of keys and values written. check: how reads were verified. -: not known, or the sample is too small.",
];

/// The cells as rows, in their order.
pub(super) fn ranking<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Table {
    let mut table = Table::with_titles(&COLUMNS);
    for cell in cells {
        table.push(row(cell));
    }
    table
}

fn row(cell: &Cell) -> Vec<String> {
    let rank = |rank: crate::results::statistics::Rank| {
        format!("{}{}", rank.place, if rank.tied { "=" } else { "" })
    };
    let notes: Vec<&str> = cell.notes.iter().map(|note| note.mark.as_str()).collect();
    vec![
        known(cell.rank, rank),
        cell_name(cell),
        known(cell.ops_per_second, rate),
        known(cell.ops_per_second_interval, |interval| {
            format!("{}..{}", rate(interval.low), rate(interval.high))
        }),
        known(cell.latency.p50_ns, time),
        known(cell.latency.p99_ns, time),
        known(cell.latency.p999_ns, time),
        known(cell.latency.max_ns, time),
        known(cell.cpu_seconds_per_million_ops, three_digits),
        known(cell.rss_bytes, bytes),
        known(cell.disk_allocated_bytes, bytes),
        known(cell.write_amplification, three_digits),
        known(cell.check_level, |level| check_name(level).to_string()),
        plain_text(&notes.join(", ")),
    ]
}

/// The word for how far reads were checked.
pub(super) fn check_name(level: CheckLevel) -> &'static str {
    match level {
        CheckLevel::None => "none",
        CheckLevel::Stateless => "stateless",
        CheckLevel::Full => "full",
    }
}

/// All cells of a phase but the floor, ranked ones first.
pub(super) fn cells(phase: &PhaseSummary) -> impl Iterator<Item = &Cell> {
    phase.groups.iter().flat_map(|group| &group.cells).chain(&phase.unranked)
}

/// Times by kind of op; none if no cell has more than one kind.
pub(super) fn by_kind(phase: &PhaseSummary) -> Option<Table> {
    let mixed: Vec<&Cell> = cells(phase).filter(|cell| cell.kinds.len() > 1).collect();
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("kind", Align::Left),
        ("ops", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
    ]);
    for cell in mixed {
        for kind in &cell.kinds {
            table.push(vec![
                cell_name(cell),
                plain_text(&kind.kind),
                super::figure::count(kind.ops),
                known(kind.latency.p50_ns, time),
                known(kind.latency.p99_ns, time),
                known(kind.latency.p999_ns, time),
                known(kind.latency.max_ns, time),
            ]);
        }
    }
    (!table.is_empty()).then_some(table)
}

/// Cells of which nothing was measured, each with the reason; none if there are none.
pub(super) fn without_figures(phase: &PhaseSummary) -> Option<Table> {
    let mut table =
        Table::with_titles(&[("engine", Align::Left), ("what", Align::Left), ("why", Align::Left)]);
    for cell in phase.unranked.iter().filter(|cell| cell.counted_runs == 0) {
        for note in &cell.notes {
            let why = note.detail.as_deref().unwrap_or("there is no record of it");
            table.push(vec![cell_name(cell), plain_text(&note.mark), plain_text(why)]);
        }
    }
    (!table.is_empty()).then_some(table)
}

/// The floor of the phase, and the details of notes on measured cells: sentences for below the tables.
pub(super) fn remarks(phase: &PhaseSummary) -> Vec<String> {
    let mut remarks: Vec<String> = phase.floors.iter().map(|cell| floor(phase, cell)).collect();
    if phase.floors.is_empty() {
        remarks.push("floor: - (no null engine in this run)".to_string());
    }
    for cell in cells(phase).filter(|cell| cell.counted_runs > 0) {
        for note in &cell.notes {
            if let Some(detail) = &note.detail {
                remarks.push(plain_text(&format!("{}, {}: {detail}", cell_name(cell), note.mark)));
            }
        }
    }
    remarks
}

/// What the harness alone costs: the null engine does nothing.
fn floor(phase: &PhaseSummary, cell: &Cell) -> String {
    let name = cell_name(cell);
    let threads = f64::from(all_threads(phase));
    match cell.ops_per_second {
        Some(rate_found) if rate_found > 0.0 => {
            let ns = time_text(threads * 1e9 / rate_found);
            format!("floor: {name} does nothing at {} ops/s, {ns} of a thread per op", rate(rate_found))
        }
        _ => {
            let why: Vec<String> = cell
                .notes
                .iter()
                .map(|note| note.detail.clone().unwrap_or_else(|| note.mark.clone()))
                .collect();
            plain_text(&format!("floor: - ({name}: {})", why.join(", ")))
        }
    }
}
