//! The ranking table of one durability level, and the remarks below it.

use super::describe::{all_threads, cell_name};
use super::figure::{self, Field, known, rate, time};
use super::safety;
use kvdyno_core::results::figures::{FIGURES, Figure, Form, RATE};
use kvdyno_core::results::statistics::{FEWEST_FOR_ORDER, Interval, Rank};
use kvdyno_core::results::summary::{Cell, Latency, PhaseSummary, Range, Ratio};
use kvdyno_measure::text::{Align, Table, grouped, plain_text, time_text};

/// The columns of a ranking. The units are in the cells.
/// `has_rate`: requests of a cell arrive at a rate.
fn columns(has_rate: bool) -> Vec<Field> {
    let mut columns: Vec<Field> = vec![
        ("rank", Align::Left, Box::new(|cell| known(shown_rank(cell), |rank| rank.to_string()))),
        ("engine", Align::Left, Box::new(cell_name)),
        ("safe", Align::Left, Box::new(safety::cell_mark)),
    ];
    let shown = FIGURES.iter().filter(|figure| has_rate || !figure.needs_rate());
    for (figure, title) in shown.filter_map(|figure| Some((figure, figure.ranked?))) {
        if figure.form == Form::Ratio {
            columns.push((title, Align::Left, Box::new(|cell| known(cell.ratio, ratio))));
        } else {
            columns.push((title, Align::Right, Box::new(move |cell| figure::of_cell(figure, cell))));
        }
        if figure.name == RATE {
            let interval = |cell: &Cell| known(cell.ops_per_second_interval, rates);
            columns.push(("interval", Align::Left, Box::new(interval)));
        }
    }
    let check = |cell: &Cell| known(cell.check_level, |level| level.to_string());
    columns.push(("check", Align::Left, Box::new(check)));
    columns.push((
        "notes",
        Align::Left,
        Box::new(|cell| {
            let notes: Vec<&str> = cell.notes.iter().map(|note| note.mark.as_str()).collect();
            plain_text(&notes.join(", "))
        }),
    ));
    columns
}

/// The rank; none for an engine that is alone in its table after so few runs that no rank could be claimed.
fn shown_rank(cell: &Cell) -> Option<Rank> {
    cell.rank.filter(|rank| rank.of > 1 || cell.counted_runs as usize >= FEWEST_FOR_ORDER)
}

/// The legend of the tables, for the end of a report.
pub(super) const LEGEND: &[&str] = &[
    "rank: the range of places that an engine may have, such as 1-4; ~ if its place is unknown. Ranks need at least 5 runs, and at most one run in twenty has a table with a wrong one. Rows are sorted by what ranks compare, a mean within the blocks of the run: rows that are close may be in another order than their medians.",
    "ops/s: by the wall clock, median over runs, with the interval of that median. net ops/s: as if the harness took no time, which is ops divided by the time inside the engine, times the number of threads. Ranks are by it where one thread only reads, or writes to an engine that does nothing in the background; otherwise it is an upper bound and ops/s a lower one, and an engine is ahead of another only if its ops/s are above the other's net ops/s. ratio: rate relative to the first row of the table (or to --baseline), estimated within the blocks of the run; with a probability of 95 %, all ratios of all tables are within their intervals. Requests that arrive at a rate: ranks are by the p99 of their response times, and ratio is that of the first row divided by that of the row.",
    "p50 to p99.9: percentiles of service times, median over runs, with the range of the runs. max: the slowest op of all runs. A percentile is shown only if each run has at least ten slower ops.",
    "CPU s/Mop: CPU seconds of the engine (user and system) per million ops. disk: space allocated after the phase. w-amp: write amplification, bytes sent to storage per byte of keys and values written. check: how reads were verified. syncs/commit: sync calls per acknowledged commit, counted before the run. -: unknown, or the sample is too small.",
];

/// A table with a row for each cell, in the given order.
pub(super) fn ranking<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Table {
    let cells: Vec<&Cell> = cells.into_iter().collect();
    Table::of(&columns(cells.iter().any(|cell| cell.arrived.is_some())), cells)
}

/// `405k..434k`.
pub(super) fn rates(interval: Interval) -> String {
    format!("{}..{}", rate(interval.low), rate(interval.high))
}

/// `0.980 (0.951..1.010)`; `1` for the row that is the base of the ratios.
pub(super) fn ratio(ratio: Ratio) -> String {
    match ratio.interval {
        Some(Interval { low, high, .. }) => {
            format!("{} ({})", figure::ratio(ratio.value), figure::ratio_range(low, high))
        }
        None if ratio.value == 1.0 => "1".to_string(),
        None => figure::ratio(ratio.value),
    }
}

/// Service times with the ranges of the runs: a row for each engine, and one for each kind of op if there are several.
/// `None` if no cell has a time.
pub(super) fn service_times(phase: &PhaseSummary) -> Option<Table> {
    let measured: Vec<&Cell> = phase.cells().filter(|cell| cell.latency.count > 0).collect();
    let is_mixed = measured.iter().any(|cell| cell.kinds.len() > 1);
    let mut titles = vec![("engine", Align::Left), ("kind", Align::Left), ("ops", Align::Right)];
    let figures: Vec<&Figure> = FIGURES.iter().filter(|figure| figure.service.is_some()).collect();
    for figure in &figures {
        titles.extend(figure.service.map(|title| (title, Align::Right)));
        titles.extend(figure.range_of_times().map(|_| ("runs", Align::Left)));
    }
    let mut table = Table::with_titles(&titles);
    let range = |range: Option<Range>| {
        known(range, |range| match (time(range.low), time(range.high)) {
            (low, high) if low == high => low,
            (low, high) => format!("{low}..{high}"),
        })
    };
    let row = |cell: &Cell, kind: &str, ops: u64, latency: &Latency| {
        let mut row = vec![cell_name(cell), plain_text(kind), grouped(ops)];
        for figure in &figures {
            row.push(known(figure.of_times(latency), |value| figure::text(figure.form, value)));
            row.extend(figure.range_of_times().map(|of| range(of(latency))));
        }
        row
    };
    for cell in measured {
        if is_mixed {
            let ops = cell.kinds.iter().map(|kind| kind.ops).sum();
            table.push(row(cell, "all", ops, &cell.latency));
        }
        for kind in &cell.kinds {
            table.push(row(cell, kind.kind.as_str(), kind.ops, &kind.latency));
        }
    }
    (!table.is_empty()).then_some(table)
}

/// Cells without measurements, each with the reason; `None` if there are none.
pub(super) fn without_figures(phase: &PhaseSummary) -> Option<Table> {
    let mut table =
        Table::with_titles(&[("engine", Align::Left), ("state", Align::Left), ("reason", Align::Left)]);
    for cell in phase.unranked.iter().filter(|cell| cell.counted_runs == 0) {
        for note in &cell.notes {
            let why = note.detail.as_deref().unwrap_or("there is no record");
            table.push(vec![cell_name(cell), plain_text(&note.mark), plain_text(why)]);
        }
    }
    (!table.is_empty()).then_some(table)
}

/// The floor of the phase and the details of notes on measured cells, for the lines below the tables.
pub(super) fn remarks(phase: &PhaseSummary) -> Vec<String> {
    let mut remarks: Vec<String> = phase.floors.iter().map(|cell| floor(phase, cell)).collect();
    if phase.floors.is_empty() {
        remarks.push("floor: - (no null engine in this run)".to_string());
    }
    for cell in phase.floors.iter().chain(phase.cells()).filter(|cell| cell.counted_runs > 0) {
        for note in &cell.notes {
            if let Some(detail) = &note.detail {
                remarks.push(plain_text(&format!("{}, {}: {detail}", cell_name(cell), note.mark)));
            }
        }
    }
    remarks
}

/// The cost of the harness alone: the null engine does nothing.
fn floor(phase: &PhaseSummary, cell: &Cell) -> String {
    let name = cell_name(cell);
    let threads = f64::from(all_threads(phase));
    if let Some(arrived) = &cell.arrived {
        let p99 = known(arrived.response.p99_ns, time);
        return format!("floor: {name}, which does nothing, has a response p99 of {p99}");
    }
    match cell.ops_per_second {
        Some(rate_found) if rate_found > 0.0 => {
            let ns = time_text(threads * 1e9 / rate_found);
            format!(
                "floor: {name}, which does nothing, reaches {} ops/s, {ns} of thread time per op",
                rate(rate_found)
            )
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
