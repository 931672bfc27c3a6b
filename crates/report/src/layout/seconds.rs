//! The layout of KVDK's bench: a row for each second, averages over full seconds, and latencies of reads and writes.

use super::cells::{Measured, OneRun, Time, exact, file_engine, file_part, measured, seconds};
use super::{NET, Page, Runs};
use crate::escape::csv_cell;
use crate::figure::known;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{KindRecord, OpKind, Role, StepKind};
use kvdyno_measure::text::{counted, plain_text};
use kvdyno_measure::{Histogram, SeriesRow};

/// The columns as CSV. Rows are `second` or `thread`.
pub(super) const COLUMNS: &[&str] = &[
    "workload",
    "phase",
    "engine",
    "options",
    "level_in_force",
    "repetition",
    "row",
    "at_ms",
    "interval_ms",
    "read_ops_per_second",
    "not_found_per_second",
    "write_ops_per_second",
    "total_read",
    "total_write",
    "thread",
    "role",
    "thread_ops",
    "thread_elapsed_ms",
    "thread_p50_ns",
    "thread_p99_ns",
    "thread_max_ns",
];

/// The minimum length of a row that counts in averages: nearly a second.
const WHOLE_SECOND_NS: u64 = 900_000_000;

/// The percentiles of the older tool, as fractions.
const PERCENTILES: [(&str, u64, u64); 5] = [
    ("P50", 1, 2),
    ("P99", 99, 100),
    ("P99.5", 995, 1_000),
    ("P99.9", 999, 1_000),
    ("P99.99", 9_999, 10_000),
];

/// A second, with counts and totals so far; rates are computed by its real length. `None` if reads and writes cannot be
/// distinguished.
struct Second {
    at_ns: u64,
    interval_ns: u64,
    reads: Option<u64>,
    misses: u64,
    writes: Option<u64>,
    total_reads: Option<u64>,
    total_writes: Option<u64>,
}

impl Second {
    /// Whether the row covers a full second. A phase may end slightly late.
    fn is_whole(&self) -> bool {
        self.interval_ns >= WHOLE_SECOND_NS
    }

    fn rate(&self, count: u64) -> f64 {
        if self.interval_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.interval_ns as f64 }
    }
}

/// Whether ops of this kind read; all others write.
pub(super) fn is_read(kind: Option<OpKind>) -> bool {
    kind.is_some_and(OpKind::returns_rows)
}

/// The kinds of a phase with ops: those that read, or those that write.
fn kinds<'a>(run: &'a OneRun, reads: bool) -> impl Iterator<Item = &'a KindRecord> {
    run.whole.kinds.iter().filter(move |kind| kind.ops > 0 && is_read(kind.kind.known()) == reads)
}

/// The numbers of reads and writes that ended in a row. Its histograms count each group of ops once, so in a mixed phase
/// the reads or the writes must be without groups, and the other number is the rest.
fn reads_and_writes(run: &OneRun, row: &SeriesRow) -> Option<(u64, u64)> {
    let has = |reads: bool| kinds(run, reads).next().is_some();
    let is_single = |reads: bool| kinds(run, reads).all(|kind| kind.ops == kind.service_ns.count());
    let units = |reads: bool| -> u64 {
        let own = row.kinds.iter().filter(|(kind, _)| is_read(kind.parse().ok()) == reads);
        own.map(|(_, histogram)| histogram.count()).sum()
    };
    match (has(true), has(false)) {
        (true, false) => Some((row.ops, 0)),
        (false, true) => Some((0, row.ops)),
        (false, false) => None,
        _ if is_single(true) => Some((units(true), row.ops.saturating_sub(units(true)))),
        _ if is_single(false) => Some((row.ops.saturating_sub(units(false)), units(false))),
        _ => None,
    }
}

/// The seconds of a phase, over all its rounds.
fn series(measured: &Measured, run: &OneRun) -> Vec<Second> {
    let mut all: Vec<Second> = Vec::new();
    let mut began_ns = 0;
    let mut totals = Some((0_u64, 0_u64));
    for phase in run.record.rounds_of(&measured.phase.name) {
        for row in &phase.series {
            let both = reads_and_writes(run, row);
            totals = totals.zip(both).map(|((reads, writes), (read, written))| {
                (reads.saturating_add(read), writes.saturating_add(written))
            });
            all.push(Second {
                at_ns: began_ns + row.at_ns,
                interval_ns: row.interval_ns,
                reads: both.map(|both| both.0),
                misses: row.misses,
                writes: both.map(|both| both.1),
                total_reads: totals.map(|totals| totals.0),
                total_writes: totals.map(|totals| totals.1),
            });
        }
        began_ns += phase.span_ns();
    }
    all
}

/// A page for each engine and phase: the median run, or each run.
pub(super) fn pages(summary: &Summary, runs: Runs) -> Vec<Page> {
    let mut pages = Vec::new();
    for measured in &measured(summary) {
        let shown: Vec<&OneRun> = match runs {
            Runs::Together => measured.middle_run(|run| run.whole.elapsed_ns).into_iter().collect(),
            Runs::Each => measured.runs.iter().collect(),
        };
        for run in shown {
            let series = series(measured, run);
            if series.is_empty() {
                continue;
            }
            let phase = measured.phase;
            let names = [
                file_engine(measured.cell),
                file_part(&phase.workload),
                file_part(&phase.name),
                measured.level(),
            ];
            pages.push(Page {
                folder: (runs == Runs::Each).then(|| format!("run-{}", run.repetition)),
                file: format!("{}-{}.txt", phase.keys, names.join("-")),
                text: text(measured, run, &series, runs),
            });
        }
    }
    pages
}

fn text(measured: &Measured, run: &OneRun, series: &[Second], runs: Runs) -> String {
    let phase = measured.phase;
    let which = measured.which(run, runs == Runs::Together);
    let mut lines = vec![format!(
        "{} / {}: {}, level {}{which}",
        phase.workload,
        phase.name,
        measured.full_name(),
        measured.level()
    )];
    lines.extend(restored(measured, run));
    let [writers, readers, both] = threads(run);
    let init = |count: usize, what: &str| format!("init {count} {what}");
    lines.extend([init(writers, "write threads"), init(readers, "read threads")]);
    lines.extend((both > 0).then(|| init(both, "threads that read and write")));
    lines.push("------- ops in seconds -----------".to_string());
    lines.push("time (ms),   read ops,   not found,  write ops,  total read,  total write".to_string());
    lines.extend(series.iter().map(line));
    lines.extend(["finish bench", " ------------ statistics ------------"].map(String::from));
    lines.extend(statistics(run, series));
    let histograms: &[OneRun] =
        if runs == Runs::Together { &measured.runs } else { std::slice::from_ref(run) };
    for (name, reads) in [("read", true), ("write", false)] {
        lines.extend(latencies(name, histograms, reads));
    }
    lines.extend(remarks(measured, histograms.len()));
    lines.iter().map(|line| plain_text(line).trim_end().to_string() + "\n").collect()
}

fn line(second: &Second) -> String {
    let rate = |count: Option<u64>| known(count, |count| format!("{:.0}", second.rate(count)));
    let total = |count: Option<u64>| known(count, |count| count.to_string());
    let part =
        if second.is_whole() { String::new() } else { format!("  ({} ms)", second.interval_ns / 1_000_000) };
    format!(
        "{:<12}{:<12}{:<12}{:<12}{:<13}{}{part}",
        second.at_ns / 1_000_000,
        rate(second.reads),
        rate(Some(second.misses)),
        rate(second.writes),
        total(second.total_reads),
        total(second.total_writes)
    )
}

/// The number of records after a reopen, or after the open of a kept database, and its duration, in the format of the
/// engine's log.
fn restored(measured: &Measured, run: &OneRun) -> Option<String> {
    let before = Some(measured.phase.name.as_str());
    let kept = || run.step(StepKind::Open, before).filter(|_| run.record.trial.reused);
    let step = run.step(StepKind::Reopen, before).or_else(kept)?;
    let records = known(step.keys, |records| records.to_string());
    Some(format!("In restoring: {records} records, {:.3} ms", step.elapsed_ns as f64 / 1e6))
}

/// The numbers of threads that only write, that only read, and that do both.
fn threads(run: &OneRun) -> [usize; 3] {
    let has = |reads: bool| kinds(run, reads).next().is_some();
    let of_a_mix = match (has(false), has(true)) {
        (true, true) => 2,
        (true, false) => 0,
        (false, _) => 1,
    };
    let mut counts = [0; 3];
    for thread in &run.whole.threads {
        let place = match thread.role.known() {
            Some(Role::Reader) => 1,
            Some(Role::Writer) => 0,
            Some(Role::Mix) | None => of_a_mix,
        };
        counts[place] += 1;
    }
    counts
}

/// Averages over the full seconds, by their real lengths, and the rows that they are computed from.
fn statistics(run: &OneRun, series: &[Second]) -> Vec<String> {
    let whole = |second: &&Second| second.is_whole();
    let steady: Vec<&Second> = series.iter().filter(whole).collect();
    let (used, which) = match steady.len() {
        0 => (
            series.iter().collect(),
            format!("all {:.3} s, which contain no full second", seconds(run.whole.elapsed_ns)),
        ),
        count if count == series.len() => (steady, format!("all {}", counted(count as u64, "row", "rows"))),
        count => (steady, format!("{count} of {} rows, those of a full second", series.len())),
    };
    let time_ns: u64 = used.iter().map(|second| second.interval_ns).sum();
    let average = |of: fn(&Second) -> Option<u64>| {
        let sum: Option<u64> = used.iter().map(|second| of(second)).sum();
        let rate = sum.filter(|_| time_ns > 0).map(|sum| sum as f64 * 1e9 / time_ns as f64);
        known(rate, |rate| format!("{rate:.0}"))
    };
    let net = |reads: bool| match run.ops(reads) {
        0 => "0".to_string(),
        ops => known(Time::Net.rate_of(&run.whole, reads, ops), |rate| format!("{rate:.0}")),
    };
    let warm_up = run.whole.phase.warmup_seconds;
    let after =
        if warm_up > 0.0 { format!(", after {warm_up} s of warm-up not shown") } else { String::new() };
    vec![
        format!("read ops {}, write ops {}", average(|second| second.reads), average(|second| second.writes)),
        format!("(averages of {which}{after}, by the wall clock)"),
        format!("({NET}: read ops {}, write ops {})", net(true), net(false)),
    ]
}

/// `read latencies (us): Avg: 0.89, P50: 0.83 ...`, from the times of reads alone or of writes alone; `None` without such
/// ops.
fn latencies(name: &str, runs: &[OneRun], reads: bool) -> Option<String> {
    let mut histogram = Histogram::empty();
    let own = runs.iter().flat_map(|run| kinds(run, reads));
    own.for_each(|kind| histogram.merge(&kind.service_ns));
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let mut parts = vec![format!("Avg: {}", us(histogram.mean_ns()?))];
    for (title, numerator, denominator) in PERCENTILES {
        let found = histogram.quantile_if_enough(numerator, denominator);
        parts.push(format!("{title}: {}", found.map_or_else(|| "n/a".to_string(), |ns| us(ns as f64))));
    }
    Some(format!("{name} latencies (us): {}", parts.join(", ")))
}

/// Notes on differences from the figures of the older tool.
fn remarks(measured: &Measured, runs: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if runs > 1 {
        lines.push(format!("(latencies of {runs} runs, merged)"));
    }
    let all = || measured.runs.iter().flat_map(|run| &run.whole.kinds).filter(|kind| kind.ops > 0);
    if all().any(|kind| kind.service_ns.count() < kind.ops) {
        lines.push("(latencies are of groups of joined ops)".to_string());
    }
    let (scans, rows) = all()
        .filter(|kind| kind.kind == OpKind::Scan)
        .fold((0, 0), |sum, kind| (sum.0 + kind.ops, sum.1 + kind.rows));
    if scans > 0 {
        let each = rows as f64 / scans as f64;
        lines.push(format!(
            "(a scan of {each:.1} rows counts as one read op; the older tool counted each row as an op)"
        ));
    }
    if !measured.cell.emulated.is_empty() {
        lines.push(format!("(emulated: {})", measured.cell.emulated.join(", ")));
    }
    lines
}

/// A row for each second and each thread of each run.
pub(super) fn rows(summary: &Summary) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for measured in &measured(summary) {
        for run in &measured.runs {
            let mut names = measured.csv_names();
            names.push(run.repetition.to_string());
            for second in series(measured, run) {
                let rate = |count: Option<u64>| exact(count.map(|count| second.rate(count)));
                let mut row = names.clone();
                row.extend(["second".to_string(), ms(second.at_ns), ms(second.interval_ns)]);
                row.extend([rate(second.reads), rate(Some(second.misses)), rate(second.writes)]);
                row.extend([exact(second.total_reads), exact(second.total_writes)]);
                row.resize(COLUMNS.len(), String::new());
                rows.push(row);
            }
            rows.extend(run.whole.threads.iter().map(|thread| {
                let mut row = names.clone();
                row.push("thread".to_string());
                row.resize(COLUMNS.len() - 7, String::new());
                row.extend([
                    thread.thread.to_string(),
                    csv_cell(thread.role.as_str()),
                    thread.ops.to_string(),
                ]);
                row.extend([
                    ms(thread.elapsed_ns),
                    exact(thread.p50_ns),
                    exact(thread.p99_ns),
                    exact(thread.max_ns),
                ]);
                row
            }));
        }
    }
    rows
}

/// Exact milliseconds.
fn ms(ns: u64) -> String {
    (ns as f64 / 1e6).to_string()
}
