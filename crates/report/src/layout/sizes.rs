//! The layout of NuDB's bench: a table for each op, with a row for each database size and a column for each engine.

use super::cells::{Measured, OneRun, Time, exact, explained, file_part, measured, per_second, seconds};
use super::{Page, Runs};
use crate::escape::csv_cell;
use crate::figure::UNKNOWN;
use kvdyno_core::results::statistics::median;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{EndedBy, OpKind, PhaseRecord, Record};
use kvdyno_measure::text::{counted, plain_text};
use std::collections::BTreeMap;

/// The columns as CSV: those of the older tool's raw output, then those that distinguish the rows here.
pub(super) const COLUMNS: &[&str] = &[
    "num_db_items",
    "db",
    "op",
    "ops/sec",
    "seconds",
    "repetition",
    "workload",
    "level_in_force",
    "wall_seconds",
];

/// The widths of the first column and of the others.
const SIZE_WIDTH: usize = 15;
const CELL_WIDTH: usize = 14;

/// A complete phase or a round of it, with the number of keys after it.
struct Sample<'a> {
    record: &'a PhaseRecord,
    size: Option<u64>,
}

/// The samples of a run: one, or one per round.
fn samples<'a>(measured: &Measured, run: &'a OneRun) -> Vec<Sample<'a>> {
    if measured.phase.rounds.is_none() {
        return vec![Sample { record: &run.whole, size: Some(measured.phase.keys) }];
    }
    let rounds = run.record.phases.iter().enumerate();
    let own = rounds.filter(|(_, phase)| phase.phase.name == measured.phase.name);
    own.map(|(place, record)| Sample { record, size: size_at(run.record, place) }).collect()
}

/// The number of keys after a phase of the record; the number of inserts so far if the engine stores nothing.
fn size_at(record: &Record, place: usize) -> Option<u64> {
    let until = record.phases.get(..=place)?;
    until.last()?.keys_after.or_else(|| {
        let kinds = until.iter().flat_map(|phase| &phase.kinds).filter(|kind| kind.kind == OpKind::Insert);
        Some(kinds.map(|kind| kind.ops).sum()).filter(|inserted| *inserted > 0)
    })
}

/// The common settings of a table: its columns differ only in the engine, and its rows only in the size.
#[derive(PartialEq)]
struct Key {
    base: String,
    phase: String,
    level: String,
    /// Key size, value size, threads.
    data: String,
    in_rounds: bool,
}

fn key(measured: &Measured) -> Key {
    let phase = measured.phase;
    let value_size = phase.settings.value_size.as_ref().unwrap_or(&phase.value.size);
    let threads = crate::describe::all_threads(phase);
    Key {
        base: measured.base().to_string(),
        phase: phase.name.clone(),
        level: measured.level(),
        data: format!(
            "keys of {} B, values of {value_size} B, {}",
            phase.key.size,
            counted(threads.into(), "thread", "threads")
        ),
        in_rounds: phase.rounds.is_some(),
    }
}

/// The tables, phase by phase. A cell without measurements is in the first table of its phase, because its effective level
/// is unknown.
fn tables<'a, 'b>(all: &'b [Measured<'a>]) -> Vec<(Key, Vec<&'b Measured<'a>>)> {
    let mut tables: Vec<(Key, Vec<&Measured>)> = Vec::new();
    for measured in all.iter().filter(|measured| !measured.runs.is_empty()) {
        let key = key(measured);
        match tables.iter_mut().find(|(seen, _)| *seen == key) {
            Some((_, cells)) => cells.push(measured),
            None => tables.push((key, vec![measured])),
        }
    }
    for measured in all.iter().filter(|measured| measured.runs.is_empty()) {
        let own = key(measured);
        let same = |key: &Key| (&key.base, &key.phase, &key.data) == (&own.base, &own.phase, &own.data);
        if let Some((_, cells)) = tables.iter_mut().find(|(key, _)| same(key)) {
            cells.push(measured);
        }
    }
    tables
}

/// A page for each table.
pub(super) fn pages(summary: &Summary, _: Runs) -> Vec<Page> {
    let all = measured(summary);
    let tables = tables(&all);
    let page = |(key, cells): &(Key, Vec<&Measured>)| {
        let several =
            |same: &dyn Fn(&Key) -> bool| tables.iter().filter(|(other, _)| same(other)).count() > 1;
        let mut settings = vec![format!("effective durability level: {}", key.level)];
        if several(&|other| (&other.phase, &other.level) == (&key.phase, &key.level)) {
            settings.push(format!("{}, {}", key.base, key.data));
        }
        let file = format!("{}-{}-{}.txt", file_part(&key.base), file_part(&key.phase), key.level);
        Page { folder: None, file, text: table(key, cells, &settings.join("; ")) }
    };
    tables.iter().map(page).collect()
}

fn table(key: &Key, cells: &[&Measured], settings: &str) -> String {
    let mut names: Vec<String> = cells.iter().map(|measured| measured.name()).collect();
    names.sort();
    names.dedup();
    let runs: Vec<usize> =
        cells.iter().map(|measured| measured.runs.len()).filter(|runs| *runs > 0).collect();
    let (least, most) = (runs.iter().min().copied().unwrap_or(0), runs.iter().max().copied().unwrap_or(0));
    let runs =
        if least == most { counted(most as u64, "run", "runs") } else { format!("{least} to {most} runs") };
    let in_seconds = !key.in_rounds && cells.iter().all(|measured| by_count(measured));
    let (head, first, rows, unit) = match (key.in_rounds, in_seconds) {
        (true, _) => {
            (vec![format!("{} (per second)", key.phase)], "num_db_keys", round_rows(cells), "ops per second")
        }
        (false, true) if fills(cells) => (vec![key.phase.clone()], "inserts", rows(cells, true), "seconds"),
        (false, true) => (
            vec![key.phase.clone(), fetches(cells), "items".to_string()],
            "# db keys",
            rows(cells, true),
            "seconds",
        ),
        (false, false) => {
            (vec![format!("{} (per second)", key.phase)], "# db keys", rows(cells, false), "ops per second")
        }
    };
    let mut lines = head;
    let width = |name: &str| CELL_WIDTH.max(name.len() + 2);
    let titles: String = names.iter().map(|name| format!("{name:>width$}", width = width(name))).collect();
    lines.push(format!("{first:>SIZE_WIDTH$}{titles}"));
    for (size, figures) in rows {
        let cell = |name: &String| {
            let figure = figures
                .get(name)
                .map_or_else(|| UNKNOWN.to_string(), |figure| figure_text(*figure, in_seconds));
            format!("{figure:>width$}", width = width(name))
        };
        lines.push(format!("{size:>SIZE_WIDTH$}{}", names.iter().map(cell).collect::<String>()));
    }
    lines.push(format!("({unit} {}, median of {runs}; {settings})", super::NET));
    lines.extend(explained(cells.iter().copied()));
    lines.iter().map(|line| plain_text(line) + "\n").collect()
}

/// Seconds with two decimals, as in the older tool, and more for short times; rates as integers, except slow ones.
fn figure_text(figure: f64, in_seconds: bool) -> String {
    match figure {
        figure if in_seconds && figure < 0.01 => format!("{figure:.6}"),
        figure if in_seconds && figure < 1.0 => format!("{figure:.4}"),
        figure if !in_seconds && figure >= 100.0 => format!("{figure:.0}"),
        figure => format!("{figure:.2}"),
    }
}

/// Whether the phase ended after a number of ops. If so, the table compares seconds, otherwise rates.
fn by_count(measured: &Measured) -> bool {
    measured.runs.iter().all(|run| run.whole.ended_by == EndedBy::Count)
}

/// Whether the phase wrote each key once, as the older tool's insert does.
fn fills(cells: &[&Measured]) -> bool {
    cells.iter().all(|measured| {
        measured.phase.settings.is_fill() || measured.phase.settings.each_key && only_writes(measured)
    })
}

fn only_writes(measured: &Measured) -> bool {
    let mut kinds = measured.runs.iter().flat_map(|run| &run.whole.kinds).filter(|kind| kind.ops > 0);
    kinds.all(|kind| kind.kind.known().is_some_and(OpKind::loads_rows))
}

/// The number of ops of the phase: `1000000`; all numbers if they differ between sizes.
fn fetches(cells: &[&Measured]) -> String {
    let mut counts: Vec<u64> =
        cells.iter().flat_map(|measured| &measured.runs).map(|run| run.whole.ops).collect();
    counts.sort_unstable();
    counts.dedup();
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Sizes in ascending order, each with the known figures of the engines.
type Rows = BTreeMap<u64, BTreeMap<String, f64>>;

fn rows(cells: &[&Measured], in_seconds: bool) -> Rows {
    let mut rows = Rows::new();
    for measured in cells {
        let of = |run: &OneRun| match in_seconds {
            true => Some(seconds(Time::Net.of(&run.whole))),
            false => per_second(run.whole.ops, Time::Net.of(&run.whole)),
        };
        let row = rows.entry(measured.phase.keys).or_default();
        if let Some(middle) = median(&measured.runs.iter().filter_map(of).collect::<Vec<_>>()) {
            row.insert(measured.name(), middle);
        }
    }
    rows
}

/// The rates of the rounds in which the database reached a power of ten, and of the last round.
fn round_rows(cells: &[&Measured]) -> Rows {
    let mut rows = Rows::new();
    for measured in cells {
        let mut rates: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in &measured.runs {
            for sample in samples(measured, run) {
                if let (Some(size), Some(rate)) =
                    (sample.size, per_second(sample.record.ops, Time::Net.of(sample.record)))
                {
                    rates.entry(size).or_default().push(rate);
                }
            }
        }
        let (Some(first), Some(last)) = (rates.keys().next().copied(), rates.keys().last().copied()) else {
            continue;
        };
        let powers = (2..=19).map(|power| 10_u64.pow(power)).filter(|size| (first..=last).contains(size));
        for row in powers.chain([last]) {
            // The first round that reached or exceeded it.
            let reached = rates.range(row..).next().and_then(|(_, rates)| median(rates));
            if let Some(rate) = reached {
                rows.entry(row).or_default().insert(measured.name(), rate);
            }
        }
    }
    rows
}

/// A row for each run and size, or for each round.
pub(super) fn csv_rows(summary: &Summary) -> Vec<Vec<String>> {
    let all = measured(summary);
    let mut rows = Vec::new();
    for measured in &all {
        for run in &measured.runs {
            for sample in samples(measured, run) {
                let record = sample.record;
                let net_ns = Time::Net.of(record);
                rows.push(vec![
                    exact(sample.size),
                    csv_cell(&measured.full_name()),
                    csv_cell(&measured.phase.name),
                    exact(per_second(record.ops, net_ns)),
                    seconds(net_ns).to_string(),
                    run.repetition.to_string(),
                    csv_cell(&measured.phase.workload),
                    exact(record.durability_effective),
                    seconds(record.elapsed_ns).to_string(),
                ]);
            }
        }
    }
    rows
}
