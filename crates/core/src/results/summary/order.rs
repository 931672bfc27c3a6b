//! Ranks and ratios of the cells of a table.

use super::cell::{Cell, Ratio, RunFigures, RunState};
use super::note::Note;
use crate::results::blocks::{Measured, Row, Table, Throughput, error_of_look, together};
use crate::results::statistics::{higher_first, ranks, ratio};
use std::cmp::Ordering;

/// The mark of a cell whose order among others differs between ops/s and the time inside the engines.
pub const BY_ENGINE_TIME: &str = "by engine time";

/// The mark of a cell that has more or less ops/s than others, which the time of the harness may explain.
pub const WITHIN_HARNESS: &str = "within harness share";

/// One run may be missing for this many planned ones, as one may be an outlier: see [`crate::results::variance`].
const RUNS_PER_MISSING: usize = 5;

/// Whether a cell may be ranked: its runs have times that account for their calls and a level that is not contradicted, used the
/// settings of the table, and count. A run that was not run, which the row says with the reason, costs that run, if it is one of
/// five at most. One that failed may say something about the others.
fn may_be_ranked(cell: &Cell) -> bool {
    let missing = cell.runs.iter().filter(|run| !run.state.counts()).count();
    let is_sound = |run: &RunFigures| {
        (run.state.counts() || matches!(run.state, RunState::NotRun { .. })) && run.unaccounted.is_none()
    };
    !cell.settings_differ
        && !cell.safety.is_contradicted()
        && cell.speed().is_some()
        && cell.runs.iter().all(is_sound)
        && missing * RUNS_PER_MISSING <= cell.runs.len()
}

/// The runs of a ranked cell; `lengths` are those of the blocks. A run with another length is not compared: a longer phase may
/// have warmer caches.
fn row(cell: &Cell, lengths: &[f64], throughput: Throughput) -> Row {
    let run = |(block, length): (usize, &f64)| {
        let run = cell.runs.get(block).filter(|run| run.state.counts() && run.length == *length)?;
        let engine_rate = run.engine_ops_per_second;
        Some(Measured { rate: run.speed()?, engine_rate, length: run.length })
    };
    Row { runs: lengths.iter().enumerate().map(run).collect(), throughput }
}

/// The rows of these ranked cells: the length of a block is that of its longest run.
fn rows(cells: &[Cell], blocks: usize, throughput: impl Fn(&Cell) -> Throughput) -> Vec<Row> {
    let length = |block: usize| {
        let runs = cells.iter().filter_map(|cell| cell.runs.get(block));
        runs.map(|run| run.length).fold(1.0, f64::max)
    };
    let lengths: Vec<f64> = (0..blocks).map(length).collect();
    cells.iter().map(|cell| row(cell, &lengths, throughput(cell))).collect()
}

/// For each of these ranked cells, one that is faster, so that it cannot be the fastest of the table; none: it still can.
/// `tables`: the number of tables that are read with this one, itself included; `looks`: how often the run looks at them.
pub(in crate::results) fn beaten_by(
    cells: &[Cell],
    throughput: impl Fn(&Cell) -> Throughput,
    tables: usize,
    looks: usize,
) -> Vec<Option<usize>> {
    let blocks = cells.iter().map(|cell| cell.runs.len()).max().unwrap_or_default();
    let Some(table) = Table::new(&rows(cells, blocks, throughput), &vec![0; blocks]) else {
        return vec![None; cells.len()];
    };
    let may_win = table.not_beaten(error_of_look(tables, looks));
    let faster = |row: usize| {
        let others = (0..cells.len()).filter(|other| *other != row);
        others.min_by(|one, other| table.p_faster(*one, row).total_cmp(&table.p_faster(*other, row)))
    };
    (0..cells.len()).map(|row| if may_win[row] { None } else { faster(row) }).collect()
}

/// The ranked cells of a table, compared.
pub(super) struct Comparison {
    /// None: a single block, or no cell.
    table: Option<Table>,
    /// The number of ranked cells, which are the first.
    ranked: usize,
    /// The repetitions of the blocks.
    repetitions: Vec<u32>,
    throughputs: Vec<Throughput>,
}

impl Comparison {
    /// Sorts the cells of a table: those that may be ranked are first, in descending order of what orders compare; the others
    /// follow in that of their medians.
    pub(super) fn sorted(cells: &mut [Cell], throughput: impl Fn(&Cell) -> Throughput) -> Comparison {
        cells.sort_by(|left, right| {
            higher_first(left.speed(), right.speed()).then_with(|| left.engine.cmp(&right.engine))
        });
        // All ranked cells have the same blocks: those of the cell with the most blocks.
        let blocks = |cell: &Cell| {
            cell.runs.iter().map(|run| (run.repetition, run.machine)).collect::<Vec<(u32, Option<u32>)>>()
        };
        let most = cells.iter().filter(|cell| may_be_ranked(cell)).map(&blocks).max_by_key(Vec::len);
        let most = most.unwrap_or_default();
        // A race leaves an engine out of the last blocks.
        let is_ranked = |cell: &Cell| {
            let own = blocks(cell);
            may_be_ranked(cell) && most.starts_with(&own) && most.len() - own.len() <= cell.left_out as usize
        };
        cells.sort_by_key(|cell| !is_ranked(cell));
        let ranked = cells.iter().take_while(|cell| is_ranked(cell)).count();
        let cells = &mut cells[..ranked];
        let table = |cells: &[Cell]| {
            let machines = most.iter().map(|(_, machine)| machine.unwrap_or_default() as usize);
            Table::new(&rows(cells, most.len(), &throughput), &machines.collect::<Vec<usize>>())
        };
        let unsorted = table(cells);
        if let Some(unsorted) = &unsorted {
            let mut places: Vec<usize> = (0..ranked).collect();
            places.sort_by(|one, other| unsorted.estimate(*other).total_cmp(&unsorted.estimate(*one)));
            let sorted: Vec<Cell> = places.iter().map(|place| cells[*place].clone()).collect();
            cells.iter_mut().zip(sorted).for_each(|(cell, sorted)| *cell = sorted);
        }
        let repetitions = most.iter().map(|(repetition, _)| *repetition).collect();
        let throughputs = cells.iter().map(&throughput).collect();
        Comparison { table: table(cells), ranked, repetitions, throughputs }
    }

    /// The error of claims is that in all of these tables and looks together.
    pub(super) fn read_together(all: &mut [Comparison], looks: usize) {
        together(&mut all.iter_mut().filter_map(|own| own.table.as_mut()).collect::<Vec<_>>(), looks);
    }

    /// Ranks the sorted cells, and computes their ratios to the cell of `baseline` (none: to the first row).
    pub(super) fn rank(&self, cells: &mut [Cell], baseline: Option<&str>) {
        let cells = &mut cells[..self.ranked];
        let leads = |row: usize| self.table.as_ref().is_none_or(|table| table.is_leader(row));
        // What has left a race never leads again, unless those that beat it have no rank.
        let is_open = (0..self.ranked).any(|row| leads(row) && !cells[row].beaten);
        let beaten: Vec<bool> = cells.iter().map(|cell| is_open && cell.beaten).collect();
        let is_leader = |row: usize| leads(row) && !beaten[row];
        let ranks = ranks(self.ranked, |first, second| self.is_ahead(first, second), is_leader);
        for (row, (cell, rank)) in cells.iter_mut().zip(ranks).enumerate() {
            (cell.rank, cell.leader) = (Some(rank), is_leader(row));
        }
        let base = match baseline {
            Some(name) => cells.iter().position(|cell| cell.engine == name),
            None => (!cells.is_empty()).then_some(0),
        };
        if let Some(base) = base {
            let ratios: Vec<Option<Ratio>> =
                (0..self.ranked).map(|row| self.ratio(cells, row, base)).collect();
            cells.iter_mut().zip(ratios).for_each(|(cell, ratio)| cell.ratio = ratio);
        }
        for row in 0..self.ranked {
            let notes = self.notes(cells, row);
            cells[row].notes.extend(notes);
        }
    }

    fn is_ahead(&self, first: usize, second: usize) -> bool {
        self.table.as_ref().is_some_and(|table| table.order(first, second) == Some(Ordering::Greater))
    }

    fn ratio(&self, cells: &[Cell], row: usize, base: usize) -> Option<Ratio> {
        if row == base {
            return Some(Ratio { value: 1.0, interval: None, p: None });
        }
        match &self.table {
            Some(table) => {
                let p = 2.0 * table.p_faster(row, base).min(table.p_faster(base, row));
                let interval = table.interval(row, base);
                Some(Ratio { value: table.ratio(row, base)?, interval, p: Some(p.min(1.0)) })
            }
            None => {
                let value = ratio(cells[row].speed()?, cells[base].speed()?)?;
                Some(Ratio { value, interval: None, p: None })
            }
        }
    }

    /// Notes on how a cell was compared.
    fn notes(&self, cells: &[Cell], row: usize) -> Vec<Note> {
        let Some(table) = &self.table else { return Vec::new() };
        let mut notes = Vec::new();
        let runs = &cells[row].runs;
        let aside: Vec<String> =
            table.set_aside(row).map(|block| self.repetitions[block].to_string()).collect();
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
        let differs =
            |other: &usize| *other != row && table.order(row, *other) != table.order_by_rate(row, *other);
        // Exact times decide, also against a bound that is below them; a bound that is not leaves it open.
        let is_decided = |other: &usize| {
            let are_exact = [row, *other].iter().all(|at| self.throughputs[*at] == Throughput::Exact);
            are_exact || table.order(row, *other).is_some()
        };
        let (decided, open): (Vec<usize>, Vec<usize>) =
            (0..cells.len()).filter(differs).partition(is_decided);
        let names = |others: &[usize]| {
            others.iter().map(|other| cells[*other].engine.as_str()).collect::<Vec<&str>>().join(", ")
        };
        if !decided.is_empty() {
            let others = names(&decided);
            notes.push(Note::detailed(
                BY_ENGINE_TIME,
                format!("compared with {others} by the time inside the engine: the harness causes much of the difference in ops/s"),
            ));
        }
        if !open.is_empty() {
            let others = names(&open);
            notes.push(Note::detailed(
                WITHIN_HARNESS,
                format!(
                    "not ordered against {others}: the time of the harness may cause the difference in ops/s"
                ),
            ));
        }
        notes
    }
}
