//! Ranks and ratios of the cells of a table.

use super::cell::{Cell, Ratio};
use super::note::Note;
use crate::results::blocks::{Table, Throughput};
use crate::results::statistics::{FEWEST_FOR_ORDER, higher_first, ranks, ratio};
use std::cmp::Ordering;

/// The mark of a cell whose order among others differs between ops/s and the time inside the engines.
pub const BY_ENGINE_TIME: &str = "by engine time";

/// The mark of a cell that has more or less ops/s than others, which the time of the harness may explain.
pub const WITHIN_HARNESS: &str = "within harness share";

/// Sorts the cells of a table; those that may be ranked are first, in descending order of their medians. Returns their number.
pub(super) fn sort(cells: &mut [Cell]) -> usize {
    cells.sort_by(|left, right| {
        higher_first(left.ops_per_second, right.ops_per_second).then_with(|| left.engine.cmp(&right.engine))
    });
    // All ranked cells have the same blocks: those of the cell with the most blocks.
    let repetitions = |cell: &Cell| {
        cell.runs.iter().map(|run| (run.repetition, run.machine)).collect::<Vec<(u32, Option<u32>)>>()
    };
    let blocks = cells.iter().filter(|cell| is_whole(cell)).map(&repetitions).max_by_key(Vec::len);
    let is_ranked = |cell: &Cell| is_whole(cell) && Some(repetitions(cell)) == blocks;
    cells.sort_by_key(|cell| !is_ranked(cell));
    cells.iter().take_while(|cell| is_ranked(cell)).count()
}

/// Whether a table with these ranked cells may claim an order.
pub(super) fn may_claim(ranked: &[Cell]) -> bool {
    ranked.len() > 1 && ranked[0].runs.len() >= FEWEST_FOR_ORDER
}

/// Ranks sorted cells that may be ranked, and computes their ratios to the cell of `baseline` (none: to the first row).
/// `tables`: the number of tables that are read with this one, itself included.
pub(super) fn rank(cells: &mut [Cell], throughput: Throughput, tables: usize, baseline: Option<&str>) {
    let ranked = cells.len();
    let table = Comparison::new(cells, throughput, tables);
    for (row, rank) in ranks(ranked, |first, second| table.is_ahead(first, second)).into_iter().enumerate() {
        cells[row].rank = Some(rank);
    }
    let base = match baseline {
        Some(name) => cells.iter().position(|cell| cell.engine == name),
        None => (!cells.is_empty()).then_some(0),
    };
    if let Some(base) = base {
        let ratios: Vec<Option<Ratio>> = (0..ranked).map(|row| table.ratio(cells, row, base)).collect();
        cells.iter_mut().zip(ratios).for_each(|(cell, ratio)| cell.ratio = ratio);
    }
    for row in 0..ranked {
        let notes = table.notes(cells, row);
        cells[row].notes.extend(notes);
    }
}

/// Whether every run counts, has times that account for its calls and a level that is not contradicted, and used the settings
/// of the table.
fn is_whole(cell: &Cell) -> bool {
    !cell.settings_differ
        && cell.ops_per_second.is_some()
        && cell
            .runs
            .iter()
            .all(|run| run.state.counts() && run.unaccounted.is_none() && run.contradiction().is_none())
}

/// The ranked cells of a table, compared; none: a single block.
struct Comparison(Option<Table>, Throughput);

impl Comparison {
    fn new(cells: &[Cell], throughput: Throughput, tables: usize) -> Comparison {
        let rates = |cell: &Cell| cell.runs.iter().filter_map(|run| run.ops_per_second).collect::<Vec<f64>>();
        let engine = |cell: &Cell| cell.runs.iter().map(|run| run.engine_ops_per_second).collect::<Vec<_>>();
        let (rates, engine): (Vec<_>, Vec<_>) = cells.iter().map(|cell| (rates(cell), engine(cell))).unzip();
        // All ranked cells have the same machines.
        let runs = cells.first().map_or(&[][..], |cell| &cell.runs);
        let machines: Vec<usize> = runs.iter().map(|run| run.machine.unwrap_or_default() as usize).collect();
        let table = Table::new(&rates, &engine, throughput, &machines);
        Comparison(table.map(|table| table.among(tables)), throughput)
    }

    fn is_ahead(&self, first: usize, second: usize) -> bool {
        self.0.as_ref().is_some_and(|table| table.order(first, second) == Some(Ordering::Greater))
    }

    fn ratio(&self, cells: &[Cell], row: usize, base: usize) -> Option<Ratio> {
        if row == base {
            return Some(Ratio { value: 1.0, interval: None });
        }
        match self.0.as_ref().map(Table::rates) {
            Some(rates) => {
                Some(Ratio { value: rates.ratio(row, base)?, interval: rates.interval(row, base) })
            }
            None => {
                let value = ratio(cells[row].ops_per_second?, cells[base].ops_per_second?)?;
                Some(Ratio { value, interval: None })
            }
        }
    }

    /// Notes on how a cell was compared.
    fn notes(&self, cells: &[Cell], row: usize) -> Vec<Note> {
        let Some(table) = &self.0 else { return Vec::new() };
        let rates = table.rates();
        let mut notes = Vec::new();
        let runs = &cells[row].runs;
        let aside: Vec<String> =
            rates.set_aside(row).map(|block| runs[block].repetition.to_string()).collect();
        if !aside.is_empty() {
            let mark = format!("{}/{} outlier", aside.len(), runs.len());
            let which = if aside.len() == 1 { "run" } else { "runs" };
            let verb = if aside.len() == 1 { "is" } else { "are" };
            let text = format!(
                "{which} {} {verb} excluded from comparisons with other engines",
                aside.join(" and ")
            );
            notes.push(Note::detailed(mark, text));
        }
        let differs = |other: &usize| *other != row && table.order(row, *other) != rates.order(row, *other);
        let others: Vec<&str> =
            (0..cells.len()).filter(differs).map(|other| cells[other].engine.as_str()).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            notes.push(match self.1 {
                Throughput::Exact => Note::detailed(
                    BY_ENGINE_TIME,
                    format!("compared with {others} by the time inside the engine: the harness causes much of the difference in ops/s"),
                ),
                Throughput::UpperBound => Note::detailed(
                    WITHIN_HARNESS,
                    format!("not ordered against {others}: the time of the harness may cause the difference in ops/s"),
                ),
            });
        }
        notes
    }
}
