//! The layout of the ft-index examples: rates of each round, shutdown and total time, scans, cache and memory.

use super::cells::{Measured, OneRun, Time, exact, file_engine, file_part, measured, per_second, seconds};
use super::{NET, Page, Runs};
use crate::escape::csv_cell;
use crate::figure::{bytes, known};
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{OpKind, PhaseRecord, Record, StepKind};
use kvdyno_measure::text::plain_text;

/// The columns as CSV. Rows are `round` (a phase, or a round of one) or `step` (a close after the last phase).
pub(super) const COLUMNS: &[&str] = &[
    "workload",
    "engine",
    "options",
    "level_in_force",
    "repetition",
    "row",
    "phase",
    "round",
    "ops",
    "seconds",
    "wall_seconds",
    "ops_per_second",
    "cumulative_ops",
    "cumulative_seconds",
    "cumulative_ops_per_second",
    "scanned_rows",
    "scanned_bytes",
    "scanned_mb_per_second",
    "keys_after",
    "rss_bytes",
    "rss_peak_bytes",
    "vm_peak_bytes",
    "disk_allocated_bytes",
];

/// A number of ops and their total time, without the harness's.
#[derive(Default)]
struct Line {
    ops: u64,
    net_ns: u64,
}

impl Line {
    fn add(&mut self, ops: u64, net_ns: u64) {
        self.ops = self.ops.saturating_add(ops);
        self.net_ns = self.net_ns.saturating_add(net_ns);
    }
}

/// A cell for each engine of each workload: that of its last phase, whose runs have completed all phases.
fn last_cells<'a, 'b>(all: &'b [Measured<'a>]) -> Vec<&'b Measured<'a>> {
    let mut cells: Vec<&Measured> = Vec::new();
    for measured in all.iter().filter(|measured| !measured.runs.is_empty()) {
        let of = |cell: &Measured| {
            (cell.phase.workload.clone(), cell.cell.engine.clone(), cell.cell.options.clone())
        };
        match cells.iter_mut().find(|seen| of(seen) == of(measured)) {
            // A cell that is split by level occurs twice with the same phase; both are kept.
            Some(seen) if seen.phase.name != measured.phase.name => *seen = measured,
            _ => cells.push(measured),
        }
    }
    cells
}

/// A page for each engine and workload: the median run, or each run.
pub(super) fn pages(summary: &Summary, runs: Runs) -> Vec<Page> {
    let all = measured(summary);
    let mut pages = Vec::new();
    for measured in last_cells(&all) {
        let has_any = |run: &&OneRun| has_rounds(run.record) || has_scans(run.record);
        let middle = measured.middle_run(|run| total_ns(run.record)).into_iter().collect();
        let shown: Vec<&OneRun> = if runs == Runs::Each { measured.runs.iter().collect() } else { middle };
        for run in shown.into_iter().filter(has_any) {
            let phase = measured.phase;
            let names = [file_engine(measured.cell), file_part(&phase.workload), measured.level()];
            pages.push(Page {
                folder: (runs == Runs::Each).then(|| format!("run-{}", run.repetition)),
                file: format!("{}-{}.txt", phase.keys, names.join("-")),
                text: text(measured, run, runs),
            });
        }
    }
    pages
}

fn has_rounds(record: &Record) -> bool {
    record.phases.iter().any(|phase| phase.round.is_some())
}

fn has_scans(record: &Record) -> bool {
    record.phases.iter().any(|phase| scanned(phase).is_some())
}

/// The total time of all phases.
fn total_ns(record: &Record) -> u64 {
    record.phases.iter().map(|phase| Time::Net.of(phase)).sum()
}

fn text(measured: &Measured, run: &OneRun, runs: Runs) -> String {
    let which = measured.which(run, runs == Runs::Together);
    let (workload, name) = (&measured.phase.workload, measured.full_name());
    let effective = run.record.phases.iter().filter_map(|phase| phase.durability_effective);
    let mut levels: Vec<String> = effective.map(|level| level.to_string()).collect();
    levels.dedup();
    let mut lines = vec![format!("{workload}: {name}, level {}{which}", levels.join(", then "))];
    lines.extend(rounds(run));
    lines.extend(run.record.phases.iter().flat_map(scan));
    lines.extend(cache(run.record));
    lines.extend(memory(run.record));
    let mut emulated: Vec<&String> = run.record.phases.iter().flat_map(|phase| &phase.emulated).collect();
    emulated.sort();
    emulated.dedup();
    let mut reasons: Vec<String> = run.record.phases.iter().filter_map(not_run).collect();
    reasons.dedup();
    lines.extend(reasons);
    if !emulated.is_empty() {
        let names: Vec<&str> = emulated.into_iter().map(String::as_str).collect();
        lines.push(format!("(emulated: {})", names.join(", ")));
    }
    lines.iter().map(|line| plain_text(line) + "\n").collect()
}

/// A line for a phase without figures, with the reason.
fn not_run(phase: &PhaseRecord) -> Option<String> {
    phase.not_run.as_ref().map(|reason| format!("({} did not run: {reason})", phase.phase.name))
}

/// The names of the phases that run in rounds, in order.
fn names(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for phase in record.phases.iter().filter(|phase| phase.round.is_some()) {
        if !names.contains(&phase.phase.name.as_str()) {
            names.push(&phase.phase.name);
        }
    }
    names
}

/// The name of the ops: insertions if all of them only write and none changes existing keys.
fn noun(phases: &[&PhaseRecord]) -> &'static str {
    let mut kinds = phases.iter().flat_map(|phase| &phase.kinds).filter(|kind| kind.ops > 0).peekable();
    let inserts =
        kinds.peek().is_some() && kinds.all(|kind| kind.kind.known().is_some_and(OpKind::loads_rows));
    if inserts { "insertions" } else { "ops" }
}

/// A line for each round, with the rate of each phase and the cumulative rate; then shutdown, total time and size.
fn rounds(run: &OneRun) -> Vec<String> {
    let record = run.record;
    let names = names(record);
    let in_rounds: Vec<&PhaseRecord> = record.phases.iter().filter(|phase| phase.round.is_some()).collect();
    let (Some(first), Some(last_round)) =
        (in_rounds.first(), in_rounds.iter().filter_map(|phase| phase.round).max())
    else {
        return Vec::new();
    };
    let noun = noun(&in_rounds);
    let batch = in_rounds.iter().find(|phase| phase.not_run.is_none()).unwrap_or(first).ops;
    let is_single = names.len() == 1;
    let mut lines = vec![match is_single {
        true => {
            format!("{} in rounds of {}: rows, interval, its rate, cumulative rate", names.join(""), batch)
        }
        false => format!("{} {noun} of {batch} per batch", names.join(" and ")),
    }];
    let mut so_far = Line::default();
    for round in 1..=last_round {
        let of_round: Vec<&PhaseRecord> =
            in_rounds.iter().filter(|phase| phase.round == Some(round)).copied().collect();
        let mut parts = Vec::new();
        let mut own = Line::default();
        for phase in of_round {
            if phase.not_run.is_some() {
                parts.push(format!("{}         -s        -/s", phase.phase.name));
                continue;
            }
            own.add(phase.ops, Time::Net.of(phase));
            parts.push(part(&phase.phase.name, phase.ops, Time::Net.of(phase)));
        }
        so_far.add(own.ops, own.net_ns);
        lines.push(match is_single {
            true => format!(
                "{} {:.3} {} {}",
                so_far.ops,
                seconds(own.net_ns),
                rate(own.ops, own.net_ns).trim_start(),
                rate(so_far.ops, so_far.net_ns).trim_start()
            ),
            false => {
                parts.push(part("cumulative", so_far.ops, so_far.net_ns));
                parts.join("    ")
            }
        });
    }
    lines.extend(ending(run, &so_far, noun, is_single));
    let wall_ns: u64 = in_rounds.iter().map(|phase| phase.elapsed_ns).sum();
    lines.push(format!("(times and rates are {})", net_words(so_far.net_ns, wall_ns)));
    lines
}

/// `without the harness's 2.039s`: what a time leaves out.
fn net_words(net_ns: u64, wall_ns: u64) -> String {
    match wall_ns.saturating_sub(net_ns) {
        0 => NET.to_string(),
        harness_ns => format!("without the harness's {:.3}s", seconds(harness_ns)),
    }
}

/// `serial  2.609965s   401759/s`.
fn part(name: &str, ops: u64, elapsed_ns: u64) -> String {
    format!("{name} {:>9.6}s {}", seconds(elapsed_ns), rate(ops, elapsed_ns))
}

/// `  401759/s`, or a dash if no time has passed.
fn rate(ops: u64, elapsed_ns: u64) -> String {
    format!("{:>8}/s", known(per_second(ops, elapsed_ns), |rate| format!("{rate:.0}")))
}

/// The last lines of the older tools: the time of the close, the total time including it, and the size of the files.
fn ending(run: &OneRun, so_far: &Line, noun: &str, is_single: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_single {
        let rate = rate(so_far.ops, so_far.net_ns);
        lines.push(format!("total {} {:.3} {}", so_far.ops, seconds(so_far.net_ns), rate.trim_start()));
    }
    let shutdown = run.step(StepKind::Close, None);
    lines.push(format!("Shutdown {}", known(shutdown, |step| format!("{:>9.6}s", seconds(step.elapsed_ns)))));
    let total_ns = shutdown.map(|step| so_far.net_ns.saturating_add(step.elapsed_ns));
    if let Some(total_ns) = total_ns {
        let (total, rate) = (seconds(total_ns), rate(so_far.ops, total_ns));
        lines.push(format!("Total time {total:>9.6}s for {} {noun} = {rate}", so_far.ops));
    }
    match run.record.disk_after_close {
        Some(disk) if disk.files > 0 => {
            let (allocated, apparent) = (bytes(disk.allocated_bytes), bytes(disk.apparent_bytes));
            lines.push(format!("File size {apparent}, {allocated} on disk, after the close"));
        }
        Some(_) => lines.push("File size - (the database has no files)".to_string()),
        None => {}
    }
    lines
}

/// The scans of a phase: their number, their rows, and the bytes of keys and values; `None` unless all ops were scans.
fn scanned(phase: &PhaseRecord) -> Option<(u64, u64, u64)> {
    let mut kinds = phase.kinds.iter().filter(|kind| kind.ops > 0);
    let scan = kinds.next().filter(|kind| kind.kind == OpKind::Scan)?;
    kinds.next().is_none().then_some((scan.ops, scan.rows, phase.logical_bytes_read))
}

/// One line for full scans, two lines for range scans, and none for a phase without scans.
fn scan(phase: &PhaseRecord) -> Vec<String> {
    let Some((scans, rows, read_bytes)) = scanned(phase) else { return Vec::new() };
    let name = &phase.phase.name;
    let net_ns = Time::Net.of(phase);
    let elapsed = seconds(net_ns);
    let speed = known(per_second(read_bytes, net_ns), |rate| format!("{:>9.6}", rate / 1e6));
    let net = net_words(net_ns, phase.elapsed_ns);
    let line = format!("Scan    {read_bytes} bytes ({rows} rows) in {elapsed:>9.6}s at {speed}MB/s");
    if phase.phase.scan.rows == 0 && !phase.phase.scan.prefix {
        let scans = if scans > 1 { format!(", {scans} scans") } else { String::new() };
        return vec![format!("{line} ({name}{scans}; {net})")];
    }
    let mut lines = vec![format!("{line} ({name}; {net})")];
    let times = phase.kinds.iter().find(|kind| kind.kind == OpKind::Scan).map(|kind| &kind.service_ns);
    if let Some((min, max, mean)) =
        times.and_then(|times| Some((times.min_ns()?, times.max_ns()?, times.mean_ns()?)))
    {
        let (min, max, mean) = (seconds(min), seconds(max), mean / 1e9);
        lines.push(format!("Range   min {min:.9}s max {max:.9}s mean {mean:.9}s of {scans} ranges"));
    }
    lines
}

/// The engine's own counts of cache hits and misses since it was opened; `None` if it does not report them.
fn cache(record: &Record) -> Option<String> {
    let stats = &record.phases.last()?.engine_stats;
    let of = |word: &str| stats.iter().find(|(name, _)| name.contains("cache") && name.contains(word));
    let miss = of("miss")?;
    // Some engines count only misses.
    Some(match of("hit") {
        Some(hit) => {
            format!("miss={} hit={} ({}, {}, since the engine was opened)", miss.1, hit.1, miss.0, hit.0)
        }
        None => {
            format!("miss={} hit=- ({}, since the engine was opened; it does not count hits)", miss.1, miss.0)
        }
    })
}

/// The memory of the process at the end of the last phase, before the close, including the harness.
fn memory(record: &Record) -> Vec<String> {
    let Some(last) = record.phases.iter().rev().find(|phase| phase.ops > 0) else { return Vec::new() };
    let line = |name: &str, found: Option<u64>| {
        format!("{:<8}{:>8} kB", format!("{name}:"), known(found, |bytes| (bytes / 1024).to_string()))
    };
    vec![
        line("VmPeak", last.usage.vm_peak_bytes),
        line("VmHWM", last.usage.rss_peak_bytes),
        line("VmRSS", last.usage.rss_bytes),
    ]
}

/// A row for each phase and round of each run, and one for the close.
pub(super) fn rows(summary: &Summary) -> Vec<Vec<String>> {
    let all = measured(summary);
    let mut rows = Vec::new();
    for measured in last_cells(&all) {
        let names = measured.csv_names();
        let names = [vec![names[0].clone()], names[2..].to_vec()].concat();
        for run in measured.runs.iter().filter(|run| has_rounds(run.record) || has_scans(run.record)) {
            let mut names = names.clone();
            names.push(run.repetition.to_string());
            let mut so_far = Line::default();
            for phase in &run.record.phases {
                if phase.round.is_some() {
                    so_far.add(phase.ops, Time::Net.of(phase));
                }
                rows.push([names.clone(), phase_row(phase, phase.round.map(|_| &so_far))].concat());
            }
            if let Some(step) = run.step(StepKind::Close, None) {
                let mut row = names.clone();
                row.extend(["step".to_string(), "close".to_string(), String::new(), String::new()]);
                row.extend([seconds(step.elapsed_ns).to_string(), seconds(step.elapsed_ns).to_string()]);
                row.resize(COLUMNS.len() - 1, String::new());
                row.push(exact(run.record.disk_after_close.map(|disk| disk.allocated_bytes)));
                rows.push(row);
            }
        }
    }
    rows
}

fn phase_row(phase: &PhaseRecord, so_far: Option<&Line>) -> Vec<String> {
    let (scanned_rows, scanned_bytes) = scanned(phase).map(|(_, rows, bytes)| (rows, bytes)).unzip();
    let net_ns = Time::Net.of(phase);
    let speed = scanned_bytes.and_then(|bytes| per_second(bytes, net_ns)).map(|rate| rate / 1e6);
    vec![
        "round".to_string(),
        csv_cell(&phase.phase.name),
        exact(phase.round),
        phase.ops.to_string(),
        seconds(net_ns).to_string(),
        seconds(phase.elapsed_ns).to_string(),
        exact(per_second(phase.ops, net_ns)),
        exact(so_far.map(|line| line.ops)),
        exact(so_far.map(|line| seconds(line.net_ns))),
        exact(so_far.and_then(|line| per_second(line.ops, line.net_ns))),
        exact(scanned_rows),
        exact(scanned_bytes),
        exact(speed),
        exact(phase.keys_after),
        exact(phase.usage.rss_bytes),
        exact(phase.usage.rss_peak_bytes),
        exact(phase.usage.vm_peak_bytes),
        exact(phase.disk_end.map(|disk| disk.allocated_bytes)),
    ]
}
