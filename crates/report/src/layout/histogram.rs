//! The layout of mininb: settings, a latency histogram, percentiles and throughput, for each engine and phase.

use super::cells::{Measured, OneRun, exact, file_engine, file_part, measured, per_second};
use super::{Page, Runs};
use crate::figure::{bytes, known};
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::Histogram;
use kvdyno_measure::text::plain_text;
use std::collections::BTreeSet;

/// The columns as CSV. `bucket` rows have a range in nanoseconds (`to_ns` is excluded); other rows have a value.
pub(super) const COLUMNS: &[&str] = &[
    "workload",
    "phase",
    "engine",
    "options",
    "level_in_force",
    "kind",
    "keys",
    "repetition",
    "figure",
    "from_ns",
    "to_ns",
    "ops",
    "percent",
    "value",
];

/// The percentiles of the older tool, as shares in ten-thousandths.
const PERCENTILES: [u64; 11] = [500, 5_000, 9_500, 9_600, 9_700, 9_800, 9_900, 9_950, 9_990, 9_995, 9_999];
const WHOLE: u64 = 10_000;

/// A block: the ops of one kind in a phase of a cell.
struct Block<'a> {
    measured: &'a Measured<'a>,
    kind: &'a str,
    /// The runs that the block merges.
    runs: &'a [OneRun<'a>],
    histogram: Histogram,
}

impl<'a> Block<'a> {
    fn new(measured: &'a Measured, kind: &'a str, runs: &'a [OneRun]) -> Block<'a> {
        let mut histogram = Histogram::empty();
        for found in runs.iter().flat_map(|run| &run.whole.kinds).filter(|found| found.kind.as_str() == kind)
        {
            histogram.merge(&found.service_ns);
        }
        Block { measured, kind, runs, histogram }
    }

    /// The ops of each run.
    fn ops(&self) -> Vec<u64> {
        let of = |run: &OneRun| {
            run.whole.kinds.iter().filter(|kind| kind.kind.as_str() == self.kind).map(|kind| kind.ops).sum()
        };
        self.runs.iter().map(of).collect()
    }

    fn evicted(&self) -> u64 {
        let kinds = self.runs.iter().flat_map(|run| &run.whole.kinds);
        kinds.filter(|kind| kind.kind.as_str() == self.kind).map(|kind| kind.evicted).sum()
    }

    fn misses(&self) -> u64 {
        let kinds = self.runs.iter().flat_map(|run| &run.whole.kinds);
        kinds.filter(|kind| kind.kind.as_str() == self.kind).map(|kind| kind.misses).sum()
    }

    /// Ops per second by wall clock, and by the sum of op times alone, as in the older tool.
    fn rates(&self) -> (Option<f64>, Option<f64>) {
        let ops: u64 = self.ops().iter().sum();
        let elapsed_ns = self.runs.iter().map(|run| run.whole.elapsed_ns).sum();
        let sum_ns = self.histogram.mean_ns().map(|mean| mean * self.histogram.count() as f64);
        let by_latencies = sum_ns.filter(|sum| *sum > 0.0).map(|sum| ops as f64 * 1e9 / sum);
        (per_second(ops, elapsed_ns), by_latencies)
    }

    /// `put`, or `mix, get` if the phase has another name than the kind.
    fn action(&self) -> String {
        let phase = &self.measured.phase.name;
        if phase == self.kind { phase.clone() } else { format!("{phase}, {}", self.kind) }
    }
}

/// The kinds of ops of a cell, in the order of its records.
fn kinds<'a>(measured: &'a Measured) -> Vec<&'a str> {
    let mut kinds: Vec<&str> = Vec::new();
    for kind in measured.runs.iter().flat_map(|run| &run.whole.kinds) {
        if !kinds.contains(&kind.kind.as_str()) && kind.ops > 0 {
            kinds.push(kind.kind.as_str());
        }
    }
    kinds
}

/// A block for each engine, phase and kind of op, over all runs or for each run.
pub(super) fn pages(summary: &Summary, runs: Runs) -> Vec<Page> {
    let all = measured(summary);
    let mut pages = Vec::new();
    for measured in &all {
        for kind in kinds(measured) {
            let slices: Vec<&[OneRun]> = match runs {
                Runs::Together => vec![&measured.runs],
                Runs::Each => measured.runs.chunks(1).collect(),
            };
            let blocks = slices.into_iter().map(|slice| Block::new(measured, kind, slice));
            pages.extend(blocks.map(|block| Page {
                folder: folder(&block, runs),
                file: file(&all, &block),
                text: text(&block),
            }));
        }
    }
    pages
}

/// `nb-1-500000`: the folder name that the older tool's script uses for a round and a size.
fn folder(block: &Block, runs: Runs) -> Option<String> {
    let repetition = block.runs.first().filter(|_| runs == Runs::Each)?.repetition;
    Some(format!("nb-{repetition}-{}", block.measured.phase.keys))
}

/// `500000-leveldb-get.result`, with workload and level if the phase alone is ambiguous.
fn file(all: &[Measured], block: &Block) -> String {
    let own = block.measured;
    let same = |other: &&Measured| {
        (other.phase.keys, &other.phase.name, &other.cell.engine, &other.cell.options)
            == (own.phase.keys, &own.phase.name, &own.cell.engine, &own.cell.options)
    };
    let mut parts = vec![own.phase.keys.to_string(), file_engine(own.cell)];
    if all.iter().filter(same).count() > 1 {
        parts.extend([file_part(&own.phase.workload), own.level()]);
    }
    parts.push(file_part(&own.phase.name));
    if own.phase.name != block.kind && kinds(own).len() > 1 {
        parts.push(file_part(block.kind));
    }
    parts.join("-") + ".result"
}

fn text(block: &Block) -> String {
    let histogram = &block.histogram;
    let count = histogram.count();
    let mut lines_all = settings(block);
    lines_all.extend([String::new(), "Histogram:".to_string()]);
    lines_all.extend(lines(&rungs(histogram, 1_000), count));
    let sum_us = histogram.mean_ns().unwrap_or(0.0) * count as f64 / 1e3;
    lines_all.extend([rule(), format!("Total:{sum_us:>12.0}{count:>17}{:>12}", "100%")]);
    let us = |ns: Option<f64>| known(ns, |ns| format!("{:.6} * 1e-6 sec/op", ns / 1e3));
    let exact_ns = |ns: Option<u64>| us(ns.map(|ns| ns as f64));
    lines_all.push(format!("Min latency       : {}", exact_ns(histogram.min_ns())));
    lines_all.push(format!("Avg latency       : {}", us(histogram.mean_ns())));
    lines_all.push(format!("Max latency       : {}", exact_ns(histogram.max_ns())));
    for share in PERCENTILES {
        let value = match percentile(histogram, share) {
            Some(ns) => exact_ns(Some(ns)),
            None => format!("n/a (needs {} ops)", needed(share)),
        };
        lines_all.push(format!("{:.4}%  latency  : {value}", share as f64 / 100.0));
    }
    let (by_wall, by_latencies) = block.rates();
    let rate = |rate: Option<f64>| known(rate, |rate| format!("{rate:.0}"));
    lines_all.push(format!("Avg throughput    : {:>7} ops/sec (by wall clock)", rate(by_wall)));
    lines_all.push(format!(
        "Avg throughput    : {:>7} ops/sec (by the latencies alone, as in mininb)",
        rate(by_latencies)
    ));
    lines_all.extend(nanoseconds(histogram));
    plain_lines(&lines_all)
}

/// The lines as printable ASCII.
fn plain_lines(lines: &[String]) -> String {
    lines.iter().map(|line| plain_text(line).trim_end().to_string() + "\n").collect()
}

/// The settings that the older tool prints, and those that it does not.
fn settings(block: &Block) -> Vec<String> {
    let phase = block.measured.phase;
    let value_size = phase.settings.value_size.as_ref().unwrap_or(&phase.value.size);
    let engine = block.runs.first().and_then(|run| run.record.engine.as_ref());
    let mut lines = vec![
        format!("Action: {}", block.action()),
        format!("Driver: {}", block.measured.full_name()),
        format!("Key Len: {}", phase.key.size),
        format!("Val Len: {value_size}"),
        format!("Count: {}", range(&block.ops())),
        format!("Workload: {}, {} keys", phase.workload, phase.keys),
        format!("Version: {}", known(engine, |engine| engine.version.clone())),
        format!("Level: {} (effective; {} requested)", block.measured.level(), phase.durability_requested),
        format!("Cache: {}", known(engine.and_then(|engine| engine.cache_bytes), bytes)),
        format!("Compression: {}", known(engine.and_then(|engine| engine.compression.clone()), |name| name)),
        format!("Threads: {}", crate::describe::all_threads(phase)),
        format!(
            "Checked: {}",
            known(
                block.runs.iter().map(|run| run.whole.check.level).min_by_key(|level| *level as u8),
                |level| level.to_string()
            )
        ),
        format!("Runs: {}", runs(block)),
    ];
    if block.evicted() > 0 {
        lines.push(format!("Evicted: {} (the engine is a cache)", block.evicted()));
    }
    let misses = block.misses().saturating_sub(block.evicted());
    if misses > 0 {
        lines.push(format!("Not found: {misses} (expected misses)"));
    }
    let ops: u64 = block.ops().iter().sum();
    if block.histogram.count() < ops {
        lines.push(format!("Timed: {} groups of ops; the table counts groups", block.histogram.count()));
    }
    lines
}

/// `3 of 3, merged`, `run 2 of 3`.
fn runs(block: &Block) -> String {
    let planned = block.measured.cell.runs.len();
    match block.runs {
        [one] if planned > 1 => format!("run {} of {planned}", one.repetition),
        runs if runs.len() > 1 => format!("{} of {planned}, merged", runs.len()),
        runs => format!("{} of {planned}", runs.len()),
    }
}

/// `500000`, or `480000 to 500000` if runs differ.
fn range(counts: &[u64]) -> String {
    let distinct: BTreeSet<u64> = counts.iter().copied().collect();
    match (distinct.first(), distinct.last()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (Some(one), _) => one.to_string(),
        _ => "-".to_string(),
    }
}

/// The percentile in ten-thousandths; `None` if the sample is too small to distinguish it from the least or the largest
/// value.
fn percentile(histogram: &Histogram, share: u64) -> Option<u64> {
    (histogram.count() >= needed(share)).then(|| histogram.quantile(share, WHOLE))?
}

/// The minimum number of ops for which at least one is beyond the percentile, on the side with fewer ops.
fn needed(share: u64) -> u64 {
    WHOLE.div_ceil(share.min(WHOLE - share).max(1))
}

/// A finer histogram of ops below one microsecond, which are a single bucket of the main one; empty without such ops.
fn nanoseconds(histogram: &Histogram) -> Vec<String> {
    let below: Vec<Rung> = rungs(histogram, 1).into_iter().filter(|rung| rung.from < 1_000).collect();
    if below.is_empty() {
        return Vec::new();
    }
    let count: u64 = below.iter().map(|rung| rung.count).sum();
    let share = count as f64 / histogram.count().max(1) as f64 * 100.0;
    let mut all = vec![String::new(), "Histogram below 1 microsecond, in nanoseconds:".to_string()];
    all.extend(lines(&below, histogram.count()));
    all.extend([rule(), format!("{:<18}{count:>17}{:>11.2}%", "Below 1000 ns:", share)]);
    all
}

/// A row for each bucket and each figure of each run.
pub(super) fn rows(summary: &Summary) -> Vec<Vec<String>> {
    let all = measured(summary);
    let mut rows = Vec::new();
    for measured in &all {
        for kind in kinds(measured) {
            for slice in measured.runs.chunks(1) {
                rows.extend(rows_of(&Block::new(measured, kind, slice)));
            }
        }
    }
    rows
}

fn rows_of(block: &Block) -> Vec<Vec<String>> {
    let repetition = block.runs.iter().map(|run| run.repetition.to_string()).collect();
    let mut names = block.measured.csv_names();
    names.extend([block.kind.to_string(), block.measured.phase.keys.to_string(), repetition]);
    let row = |cells: [String; 6]| [names.clone(), cells.to_vec()].concat();
    let count = block.histogram.count();
    let fast = rungs(&block.histogram, 1).into_iter().filter(|rung| rung.from < 1_000);
    let slow = rungs(&block.histogram, 1_000).into_iter().filter(|rung| rung.from > 0);
    let slow = slow.map(|rung| Rung { from: rung.from * 1_000, to: rung.to.map(|to| to * 1_000), ..rung });
    let bucket = |rung: Rung| {
        let share = rung.count as f64 / count.max(1) as f64 * 100.0;
        let cells = [rung.from.to_string(), exact(rung.to), rung.count.to_string(), share.to_string()];
        let [from, to, count, share] = cells;
        row(["bucket".to_string(), from, to, count, share, String::new()])
    };
    let mut rows: Vec<Vec<String>> = fast.chain(slow).map(bucket).collect();
    let mut figure = |name: String, value: String| {
        rows.push(row([name, String::new(), String::new(), String::new(), String::new(), value]));
    };
    figure("min_ns".to_string(), exact(block.histogram.min_ns()));
    figure("mean_ns".to_string(), exact(block.histogram.mean_ns()));
    figure("max_ns".to_string(), exact(block.histogram.max_ns()));
    for share in PERCENTILES {
        figure(format!("p{}_ns", share as f64 / 100.0), exact(percentile(&block.histogram, share)));
    }
    let (by_wall, by_latencies) = block.rates();
    figure("ops_per_second".to_string(), exact(by_wall));
    figure("ops_per_second_by_latencies".to_string(), exact(by_latencies));
    rows
}

/// The bounds in each decade from 10 on, as multiples of a tenth of its first value.
const DECADE: [u64; 16] = [10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90];
/// The number of decades: the last bound is 9 x 10^9.
const DECADES: u32 = 9;

/// A bucket that is not empty: values from `from` (included) to `to` (excluded; `None` for no end), in the ladder's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rung {
    pub from: u64,
    pub to: Option<u64>,
    pub count: u64,
}

/// The upper bounds of the buckets, in ascending order. The first bucket begins at 0, and the last one has no bound.
fn bounds() -> Vec<u64> {
    let decades = (0..DECADES).flat_map(|power| DECADE.map(|step| step * 10_u64.pow(power)));
    (1..=9).chain(decades).collect()
}

/// The buckets that are not empty, in units of `unit_ns`.
///
/// The histogram's own buckets are at most a thousandth of their values wide. Each is counted in the rung of its lowest
/// value, so an op may be one rung too low if it took less than a thousandth longer than the rung's bound. The least and
/// the largest value are known exactly.
fn rungs(histogram: &Histogram, unit_ns: u64) -> Vec<Rung> {
    let bounds = bounds();
    let mut rungs: Vec<Rung> = Vec::new();
    let mut buckets = histogram.buckets().peekable();
    while let Some(bucket) = buckets.next() {
        let is_slowest = buckets.peek().is_none() && bucket.count == 1;
        let known_ns = if is_slowest { histogram.max_ns() } else { histogram.min_ns() };
        let ns = bucket.lowest_ns.max(known_ns.unwrap_or(0));
        let place = bounds.partition_point(|bound| bound.saturating_mul(unit_ns) <= ns);
        let from = if place == 0 { 0 } else { bounds[place - 1] };
        match rungs.last_mut() {
            Some(last) if last.from == from => last.count = last.count.saturating_add(bucket.count),
            _ => rungs.push(Rung { from, to: bounds.get(place).copied(), count: bucket.count }),
        }
    }
    rungs
}

/// The buckets as lines: a header, and a line for each bucket with its share of `all`.
fn lines(rungs: &[Rung], all: u64) -> Vec<String> {
    let mut lines = vec![format!("[{:>7}, {:>7}){:>17}{:>12}", "t min", "t max", "ops count", "%"), rule()];
    for rung in rungs {
        let to = rung.to.map_or_else(|| "inf".to_string(), |to| to.to_string());
        let share = rung.count as f64 / all.max(1) as f64 * 100.0;
        lines.push(format!("[{:>7}, {to:>7}){:>17}{share:>12.2}", rung.from, rung.count));
    }
    lines
}

/// The rule between the parts of the table.
fn rule() -> String {
    "-".repeat(50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_older_tool() {
        let bounds = bounds();
        // The older tool has two more, 1e200 and infinity; here the last rung has no bound.
        assert_eq!(bounds.len(), 153);
        assert!(bounds.is_sorted());
        assert_eq!(bounds[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]);
        assert_eq!(bounds[23..27], [80, 90, 100, 120]);
        assert_eq!(bounds.last(), Some(&9_000_000_000));
    }

    #[test]
    fn what_lies_on_a_bound_is_in_the_rung_that_begins_there() {
        let mut histogram = Histogram::new();
        for ns in [999, 1_000, 1_999, 2_000, 25_000, 25_000] {
            histogram.record(ns);
        }
        let found: Vec<(u64, u64)> =
            rungs(&histogram, 1_000).iter().map(|rung| (rung.from, rung.count)).collect();
        assert_eq!(found, [(0, 1), (1, 2), (2, 1), (20, 2)], "24,992 to 25,007 ns are one bucket");
        let all: u64 = rungs(&histogram, 1).iter().map(|rung| rung.count).sum();
        assert_eq!(all, 6);
        histogram.record(450_000);
        assert_eq!(
            rungs(&histogram, 1_000).last().map(|rung| rung.from),
            Some(450),
            "the slowest is known exactly"
        );
        assert!(rungs(&Histogram::empty(), 1_000).is_empty());
    }

    #[test]
    fn no_time_is_too_long_for_it() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        let rungs = rungs(&histogram, 1_000);
        assert_eq!((rungs.len(), rungs[0].count), (1, 1));
        assert!(lines(&rungs, 1)[2].ends_with("100.00"));
    }
}
