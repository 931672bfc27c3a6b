//! Histograms for the plotters of HdrHistogram: percentile files (.hgrm) and interval logs (.hlog, format V2).
//!
//! Values are in milliseconds, the default of these programs, with all digits down to nanoseconds.

use super::describe::skipped_runs;
use super::layout::Page;
use super::layout::cells::{Measured, file_engine, file_part, measured_with_floors};
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{PhaseRecord, Record, Run};
use kvdyno_measure::Histogram;
use kvdyno_measure::text::plain_text;
use std::fmt::Write;

/// Steps in each half of the remaining distance to 100 %, as in HdrHistogram's own files.
const TICKS_PER_HALF: f64 = 5.0;
const NS_PER_MS: f64 = 1e6;

/// All percentile files, one after the other, preceded by the runs that are in none of them.
pub(super) fn percentiles(summary: &Summary, run: &Run) -> String {
    let mut text = format!("# kvdyno, run {}\n", plain_text(&run.id));
    skipped_runs(summary).iter().for_each(|line| text += &format!("# skipped: {line}\n"));
    percentile_pages(summary).iter().for_each(|page| text += &format!("# {}\n{}", page.file, page.text));
    text
}

/// A file for each phase of a cell, with its runs merged, and one for each kind of op if there are several.
pub(super) fn percentile_pages(summary: &Summary) -> Vec<Page> {
    let mut pages = Vec::new();
    for found in measured_with_floors(summary).iter().filter(|found| !found.runs.is_empty()) {
        let mut kinds: Vec<&str> = Vec::new();
        for kind in found.runs.iter().flat_map(|run| &run.whole.kinds) {
            if !kinds.contains(&kind.kind.as_str()) {
                kinds.push(kind.kind.as_str());
            }
        }
        let all = if kinds.len() == 1 { None } else { Some(None) };
        for kind in all.into_iter().chain(kinds.into_iter().map(Some)) {
            let histogram = merged(found, kind);
            let name = cell_name(found);
            let ending = kind.filter(|_| all.is_some()).map_or_else(String::new, |kind| format!(".{kind}"));
            pages.push(Page {
                folder: None,
                file: file_part(&format!("{name}{ending}")) + ".hgrm",
                text: percentile_text(&histogram),
            });
        }
    }
    pages
}

/// The cell's part of a file name: `quick.read.lmdb.process`.
fn cell_name(found: &Measured) -> String {
    let parts = [&found.phase.workload, &found.phase.name, &file_engine(found.cell), &found.level()];
    parts.map(|part| file_part(part)).join(".")
}

fn merged(found: &Measured, kind: Option<&str>) -> Histogram {
    let mut sum = Histogram::empty();
    let kinds = found.runs.iter().flat_map(|run| &run.whole.kinds);
    kinds
        .filter(|own| kind.is_none_or(|kind| own.kind.as_str() == kind))
        .for_each(|own| sum.merge(&own.service_ns));
    sum
}

/// The text that HdrHistogram's `outputPercentileDistribution` prints.
fn percentile_text(histogram: &Histogram) -> String {
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let total = histogram.count();
    let (mut level, mut below) = (0.0_f64, 0_u64);
    for bucket in histogram.buckets() {
        below = below.saturating_add(bucket.count);
        let value = bucket.highest_ns.min(histogram.max_ns().unwrap_or(0)) as f64 / NS_PER_MS;
        while below as f64 * 100.0 / total as f64 >= level {
            let share = level / 100.0;
            let _ = writeln!(text, "{value:12.6} {share:.12} {below:>10} {:14.2}", 1.0 / (1.0 - share));
            let halvings = (100.0 / (100.0 - level)).log2().floor() + 1.0;
            level += 100.0 / (TICKS_PER_HALF * halvings.exp2());
            // Only the line for 100 % follows the largest value.
            if below == total {
                break;
            }
        }
    }
    if let Some(max_ns) = histogram.max_ns() {
        let _ = writeln!(text, "{:12.6} {:.12} {total:>10}", max_ns as f64 / NS_PER_MS, 1.0);
    }
    let mean = histogram.mean_ns().unwrap_or(0.0);
    let middle = |lowest: u64, highest: u64| lowest as f64 / 2.0 + highest as f64 / 2.0;
    let squares = histogram
        .buckets()
        .map(|bucket| (middle(bucket.lowest_ns, bucket.highest_ns) - mean).powi(2) * bucket.count as f64);
    let deviation = (squares.sum::<f64>() / total.max(1) as f64).sqrt();
    let max = histogram.max_ns().unwrap_or(0) as f64 / NS_PER_MS;
    let (mean, deviation) = (mean / NS_PER_MS, deviation / NS_PER_MS);
    let _ = writeln!(text, "#[Mean    = {mean:12.6}, StdDeviation   = {deviation:12.6}]");
    let _ = writeln!(text, "#[Max     = {max:12.6}, Total count    = {total:12}]");
    // The values of a histogram with three digits up to 73 minutes.
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {:12}]", 32, 2_048);
    text
}

/// The log of all trials. The tag of a line contains workload, phase, engine, kind and run.
pub(super) fn log(summary: &Summary, run: &Run) -> String {
    let mut comments = vec![format!("kvdyno {}, run {}", run.tool_version, run.id)];
    comments.extend(skipped_runs(summary).into_iter().map(|line| format!("skipped: {line}")));
    let counted: Vec<&Record> = summary.records.iter().collect();
    log_text(summary, &comments, &counted)
}

/// One log per trial.
pub(super) fn log_pages(summary: &Summary) -> Vec<Page> {
    let page = |record: &Record| {
        let comment = format!("kvdyno {}, trial {}", record.tool_version, record.trial.id);
        Page {
            folder: None,
            file: file_part(&record.trial.id) + ".hlog",
            text: log_text(summary, &[comment], &[record]),
        }
    };
    let has_lines = |record: &&Record| record.phases.iter().any(|phase| counts(summary, record, phase));
    summary.records.iter().filter(has_lines).map(page).collect()
}

/// Whether the phase's figures count in the report and it has rows for each second.
fn counts(summary: &Summary, record: &Record, phase: &PhaseRecord) -> bool {
    let same = |own: &&kvdyno_core::results::summary::PhaseSummary| {
        own.name == phase.phase.name && own.workload == record.trial.workload.name
    };
    let cells = summary.phases.iter().filter(same).flat_map(|own| {
        own.floors.iter().chain(own.groups.iter().flat_map(|group| &group.cells)).chain(&own.unranked)
    });
    let runs = cells.flat_map(|cell| &cell.runs);
    let is_counted = runs.filter(|run| run.trial == record.trial.id).any(|run| run.state.counts());
    is_counted && !phase.series.is_empty()
}

fn log_text(summary: &Summary, comments: &[String], records: &[&Record]) -> String {
    let begins: Vec<f64> = records.iter().map(|record| epoch_seconds(&record.started_at)).collect();
    let base = begins.iter().copied().fold(f64::INFINITY, f64::min);
    let base = if base.is_finite() { base } else { 0.0 };
    let mut text = String::new();
    comments.iter().for_each(|comment| text += &format!("#[{}]\n", plain_text(comment)));
    text += "#[Histogram log format version 1.3]\n";
    let date = records.first().map_or("-", |record| &record.started_at);
    let _ = writeln!(text, "#[StartTime: {base:.3} (seconds since epoch), {}]", plain_text(date));
    let _ = writeln!(text, "#[BaseTime: {base:.3} (seconds since epoch)]");
    text += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
    for (record, begin) in records.iter().zip(begins) {
        let mut at = begin - base;
        for phase in &record.phases {
            let name = Some(phase.phase.name.as_str());
            let steps = record.steps.iter().filter(|step| step.before_phase.as_deref() == name);
            at += steps.map(|step| step.elapsed_ns as f64 / 1e9).sum::<f64>();
            if phase.not_run.is_none() {
                at += phase.phase.warmup_seconds;
            }
            if counts(summary, record, phase) {
                log_lines(&mut text, record, phase, at);
            }
            at += phase.elapsed_ns as f64 / 1e9;
        }
    }
    text
}

fn log_lines(text: &mut String, record: &Record, phase: &PhaseRecord, begin: f64) {
    let trial = &record.trial;
    let options: Vec<String> = trial.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let engine = [vec![trial.engine.clone()], options].concat().join("-");
    for row in &phase.series {
        for (kind, histogram) in &row.kinds {
            let parts = [&trial.workload.name, &phase.phase.name, &engine, kind].map(|part| file_part(part));
            let at = begin + row.at_ns.saturating_sub(row.interval_ns) as f64 / 1e9;
            let (seconds, max) = (row.interval_ns as f64 / 1e9, histogram.max_ns().unwrap_or(0) as f64);
            let _ = writeln!(
                text,
                "Tag={}/run{},{at:.3},{seconds:.3},{:.6},{}",
                parts.join("/"),
                trial.repetition,
                max / NS_PER_MS,
                histogram.hdr_log_text()
            );
        }
    }
}

/// A date such as `2026-11-20T09:15:29Z` in seconds since 1970; 0 if the text is no such date.
fn epoch_seconds(date: &str) -> f64 {
    let numbers: Vec<i64> =
        date.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok()).collect();
    let [year, month, day, hour, minute, second, ..] = numbers[..] else { return 0.0 };
    // Years are counted from March, so that the leap day is the last day of the year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    (((days * 24 + hour) * 60 + minute) * 60 + second) as f64
}

#[cfg(test)]
mod tests;
