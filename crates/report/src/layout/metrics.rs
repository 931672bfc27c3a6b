//! The metrics of KVBench's tables: the figure of each column for each engine and level, found by the phase's name.

use super::cells::{Measured, OneRun, Time, explained, measured, per_second, seconds};
use crate::escape::markdown_words;
use kvdyno_core::results::blocks::Throughput;
use kvdyno_core::results::statistics::{Interval, interval_of_median, median};
use kvdyno_core::results::summary::{RunState, Summary};

/// A column.
pub(super) struct Metric {
    /// The title in the wide table.
    pub title: &'static str,
    /// The title in the table of ranks; `None` if it is not ranked.
    pub rank_title: Option<&'static str>,
    /// The column name in CSV.
    pub column: &'static str,
    /// The phase of the figure.
    phase: &'static str,
    /// The figure of a run; those that have to do with time are by this one.
    of: fn(&OneRun, Time) -> Option<f64>,
    /// Whether lower is better.
    pub less_is_better: bool,
}

/// The columns, in the order of the older tool.
pub(super) const METRICS: [Metric; 10] = [
    metric("BatchWrite cost(s)", Some("BatchWrite"), "batch_write_seconds", "batch-write", cost, true),
    metric("MemUsage(MiB)", Some("MemUsage"), "rss_mib", "batch-write", rss, true),
    metric("HeapInuse(MiB)", None, "go_heap_in_use_mib", "batch-write", heap, true),
    metric("DiskUsage(MiB)", Some("DiskUsage"), "disk_allocated_mib", "batch-write", disk, true),
    metric("Prefix op/s", Some("Prefix"), "prefix_ops_per_second", "prefix", rate, false),
    metric("Set op/s", Some("Set"), "set_ops_per_second", "set", rate, false),
    metric("Get op/s", Some("Get"), "get_ops_per_second", "get", rate, false),
    metric("Setmixed op/s", Some("Setmixed"), "setmixed_ops_per_second", "mixed", writes, false),
    metric("Getmixed op/s", Some("Getmixed"), "getmixed_ops_per_second", "mixed", reads, false),
    metric("Del op/s", Some("Delete"), "del_ops_per_second", "delete", rate, false),
];

const fn metric(
    title: &'static str,
    rank_title: Option<&'static str>,
    column: &'static str,
    phase: &'static str,
    of: fn(&OneRun, Time) -> Option<f64>,
    less_is_better: bool,
) -> Metric {
    Metric { title, rank_title, column, phase, of, less_is_better }
}

/// The phase that a workload must have. The names of the other phases are too common to identify it.
const LOAD: &str = "batch-write";

const MIB: f64 = (1 << 20) as f64;

fn cost(run: &OneRun, by: Time) -> Option<f64> {
    Some(seconds(by.of(&run.whole)))
}

fn rss(run: &OneRun, _: Time) -> Option<f64> {
    run.whole.usage.rss_bytes.map(|bytes| bytes as f64 / MIB)
}

/// The heap in use as reported by the engine's runtime; only engines in Go report it.
fn heap(run: &OneRun, _: Time) -> Option<f64> {
    let (_, bytes) = run.whole.engine_stats.iter().find(|(name, _)| name == "go_heap_in_use_bytes")?;
    bytes.parse::<f64>().ok().map(|bytes| bytes / MIB)
}

/// `None` for a database without files, which is in memory.
fn disk(run: &OneRun, _: Time) -> Option<f64> {
    let disk = run.whole.disk_end.filter(|disk| disk.files > 0)?;
    Some(disk.allocated_bytes as f64 / MIB)
}

fn rate(run: &OneRun, by: Time) -> Option<f64> {
    per_second(run.whole.ops, by.of(&run.whole))
}

fn writes(run: &OneRun, by: Time) -> Option<f64> {
    by.rate_of(&run.whole, false, run.ops(false))
}

fn reads(run: &OneRun, by: Time) -> Option<f64> {
    by.rate_of(&run.whole, true, run.ops(true))
}

/// A figure over the runs of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub median: f64,
    /// The interval of the median; `None` for a single run, and if not all runs count.
    pub interval: Option<Interval>,
    /// The values that it is ranked by, one per run; empty if not all runs count.
    pub values: Vec<f64>,
    /// The same by the wall clock.
    pub wall: Vec<f64>,
}

/// An engine at a durability level, with a figure for each of [`METRICS`].
pub(super) struct Row<'a> {
    pub name: String,
    pub figures: Vec<Option<Figure>>,
    /// The cell of each metric's phase, if it is planned.
    cells: Vec<Option<&'a Measured<'a>>>,
}

impl Row<'_> {
    /// The figures of each run: repetition, and a value for each metric.
    pub(super) fn by_run(&self) -> Vec<(u32, Vec<Option<f64>>)> {
        let mut repetitions: Vec<u32> =
            self.cells.iter().flatten().flat_map(|cell| &cell.runs).map(|run| run.repetition).collect();
        repetitions.sort_unstable();
        repetitions.dedup();
        let value = |place: usize, repetition: u32| {
            let run = self.cells[place]?.runs.iter().find(|run| run.repetition == repetition)?;
            (METRICS[place].of)(run, Time::Net)
        };
        let values = |repetition: u32| (0..METRICS.len()).map(|place| value(place, repetition)).collect();
        repetitions.into_iter().map(|repetition| (repetition, values(repetition))).collect()
    }

    /// How the net figure of a metric is to be read; `None` if its phase is not planned.
    pub(super) fn throughput(&self, place: usize) -> Option<Throughput> {
        self.cells[place].map(|cell| cell.phase.throughput(cell.cell))
    }

    /// The cells that identify the row in CSV: engine and options.
    pub(super) fn csv_names(&self) -> Vec<String> {
        let names = self.cells.iter().flatten().next().map(|cell| cell.csv_names());
        names.map(|names| names[2..4].to_vec()).unwrap_or_else(|| vec![String::new(); 2])
    }

    /// Whether the engine ran none of its phases because it lacks what they need.
    pub(super) fn is_refused(&self) -> bool {
        let mut runs = self.cells.iter().flatten().flat_map(|cell| &cell.cell.runs).peekable();
        runs.peek().is_some() && runs.all(|run| matches!(run.state, RunState::NotRun { .. }))
    }

    /// Why figures are missing: a line for each phase that the engine did not complete.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut lines: Vec<(&str, String)> = Vec::new();
        for cell in self.cells.iter().flatten().filter(|cell| cell.runs.is_empty()) {
            let why = cell.cell.runs.iter().find_map(|run| match &run.state {
                RunState::NotRun { reason } => Some(reason.clone()),
                RunState::Failed { cause } => Some(cause.clone()),
                RunState::Pending => Some("not measured yet".to_string()),
                RunState::Counted | RunState::FailedLater { .. } => None,
            });
            let line = (cell.phase.name.as_str(), why.unwrap_or_default());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let is_one = self.figures.iter().all(Option::is_none);
        match lines.first() {
            // A reason that applies to all phases is printed once.
            Some((_, first)) if is_one && lines.iter().all(|(_, why)| why == first) => {
                vec![format!("{}: {first}", self.name)]
            }
            _ => lines.iter().map(|(phase, why)| format!("{}, {phase}: {why}", self.name)).collect(),
        }
    }
}

/// The engines at one effective durability level.
pub(super) struct Level<'a> {
    /// The base workload, of which this may be a variant.
    pub base: String,
    /// The workload's number of keys.
    pub keys: u64,
    pub level: String,
    pub rows: Vec<Row<'a>>,
}

impl Level<'_> {
    /// A line for each name that does not show all options.
    pub(super) fn explained(&self) -> Vec<String> {
        explained(self.rows.iter().flat_map(|row| row.cells.iter().flatten().copied()))
    }
}

/// The levels of a run in ascending order, by workload and size; empty if the run has none of the phases.
pub(super) fn levels<'a>(all: &'a [Measured<'a>]) -> Vec<Level<'a>> {
    let loads =
        |cell: &Measured| all.iter().any(|other| other.phase.name == LOAD && is_same_trial(cell, other));
    let known =
        |cell: &&Measured| METRICS.iter().any(|metric| metric.phase == cell.phase.name) && loads(cell);
    let cells: Vec<&Measured> = all.iter().filter(known).collect();
    let mut levels: Vec<Level> = Vec::new();
    for cell in &cells {
        let own: Vec<&Measured> = cells.iter().filter(|other| is_same_trial(cell, other)).copied().collect();
        let level = level_of(&own);
        let seen = |found: &Level| {
            (found.base.as_str(), found.keys, &found.level) == (cell.base(), cell.phase.keys, &level)
        };
        let place = levels.iter().position(seen).unwrap_or_else(|| {
            let (base, keys) = (cell.base().to_string(), cell.phase.keys);
            levels.push(Level { base, keys, level: level.clone(), rows: Vec::new() });
            levels.len() - 1
        });
        let row = row(own);
        let rows = &mut levels[place].rows;
        match rows.iter_mut().find(|other| other.name == row.name) {
            // An engine without an intermediate level occurs twice: once with this level requested, and once with another
            // level requested and this one effective. The first one is kept.
            Some(other) => {
                if requested(&row) == level && requested(other) != level {
                    *other = row;
                }
            }
            None => rows.push(row),
        }
    }
    levels.iter_mut().for_each(|level| level.rows.sort_by(|left, right| left.name.cmp(&right.name)));
    levels.sort_by_key(|level| ["none", "process", "power"].iter().position(|name| *name == level.level));
    levels.sort_by(|left, right| (&left.base, left.keys).cmp(&(&right.base, right.keys)));
    levels
}

/// A line for each engine that was requested at this level and ran at another one.
pub(super) fn elsewhere(level: &Level, all: &[Measured]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for cell in all.iter().filter(|cell| (cell.base(), cell.phase.keys) == (level.base.as_str(), level.keys))
    {
        let is_here = level.rows.iter().any(|row| row.name == cell.name());
        if is_here || cell.runs.is_empty() || cell.cell.durability_requested.to_string() != level.level {
            continue;
        }
        let line = format!("{}: level {} not supported, ran at {}", cell.name(), level.level, cell.level());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Whether two phases belong to the same trials: the same workload, engine and options.
fn is_same_trial(left: &Measured, right: &Measured) -> bool {
    let of =
        |cell: &Measured| (cell.phase.workload.clone(), cell.cell.engine.clone(), cell.cell.options.clone());
    of(left) == of(right)
}

/// The effective level of the first measured phase, or the requested level.
fn level_of(cells: &[&Measured]) -> String {
    let measured = cells.iter().find(|cell| !cell.runs.is_empty()).or(cells.first());
    measured.map(|cell| cell.level()).unwrap_or_default()
}

fn requested(row: &Row) -> String {
    let first = row.cells.iter().flatten().next();
    first.map(|cell| cell.cell.durability_requested.to_string()).unwrap_or_default()
}

fn row<'a>(own: Vec<&'a Measured<'a>>) -> Row<'a> {
    let of = |metric: &Metric| own.iter().find(|cell| cell.phase.name == metric.phase).copied();
    let cells: Vec<Option<&Measured>> = METRICS.iter().map(of).collect();
    let figure = |(metric, cell): (&Metric, &Option<&Measured>)| {
        let cell = (*cell)?;
        let by = |time: Time| cell.runs.iter().filter_map(|run| (metric.of)(run, time)).collect::<Vec<f64>>();
        let values = by(Time::Net);
        let is_whole = cell.is_whole() && values.len() == cell.runs.len();
        let interval = if is_whole { interval_of_median(&values) } else { None };
        Some(Figure {
            median: median(&values)?,
            interval,
            values: if is_whole { values } else { Vec::new() },
            wall: if is_whole { by(Time::Wall) } else { Vec::new() },
        })
    };
    let figures = METRICS.iter().zip(&cells).map(figure).collect();
    Row { name: own.first().map(|cell| cell.name()).unwrap_or_default(), figures, cells }
}

/// The cells of the tables of a run.
pub(super) fn cells(summary: &Summary) -> Vec<Measured<'_>> {
    measured(summary)
}

/// `### nofsync`: the older tool's name for the level, and ours.
pub(super) fn heading(level: &Level, all: &[Level]) -> String {
    let words = match level.level.as_str() {
        "process" => "nofsync (effective durability level: process)".to_string(),
        "power" => "fsync (effective durability level: power)".to_string(),
        other => format!("effective durability level: {other}"),
    };
    let several = all.iter().any(|other| (&other.base, other.keys) != (&level.base, level.keys));
    let which = if several {
        format!(", {} with {} keys", markdown_words(&level.base), level.keys)
    } else {
        String::new()
    };
    format!("### {words}{which}")
}
