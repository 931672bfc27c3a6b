//! What a comparison prints: a row for each figure of each arm.

use super::{Figure, Metric, Outcome, percent};
use kvdyno_change::paired::{Finding, Verdict};
use kvdyno_core::results::statistics::median;
use kvdyno_measure::text::{Align, Table, counted, time_text, wrapped};
use kvdyno_report::{csv_cell, markdown_table, markdown_text};
use std::fmt::Write;

/// The width of the text around the table.
const WIDTH: usize = 120;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Form {
    Text,
    Markdown,
    Csv,
}

/// The verdicts.
pub(super) fn print(form: Form, outcome: &Outcome) -> String {
    match form {
        Form::Text => text(outcome),
        Form::Markdown => markdown(outcome),
        Form::Csv => csv(outcome),
    }
}

/// `A`, `B`, `C` ...; after `Z`, numbers.
fn letter(place: usize) -> String {
    let letter = u8::try_from(place).ok().filter(|place| *place < 26).map(|place| char::from(b'A' + place));
    letter.map_or_else(|| format!("arm {}", place + 1), String::from)
}

fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    for line in arms(outcome) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(text, "\n{}: {}\n\n{}\n", outcome.workload, summary(outcome), table(outcome).text());
    text.push_str(&wrapped("", "", &legend(outcome), WIDTH));
    text
}

fn markdown(outcome: &Outcome) -> String {
    let mut text = format!("### kvdyno ab {}\n\n", markdown_text(&outcome.workload));
    for line in arms(outcome) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {}", markdown_text(&line));
    }
    let _ = write!(text, "\n{}\n\n{}\n", summary(outcome), markdown_table(&table(outcome)));
    let _ = write!(text, "{}\n\n", markdown_text(&legend(outcome)));
    text
}

/// A line for each arm.
fn arms(outcome: &Outcome) -> Vec<String> {
    let all = outcome.arms.iter().zip(&outcome.levels).enumerate();
    all.map(|(place, (arm, level))| {
        let level = level.map_or_else(unknown, |level| level.to_string());
        format!("{}: {}, at level {level}", letter(place), arm.name)
    })
    .collect()
}

/// A row for each figure of each arm.
fn table(outcome: &Outcome) -> Table {
    let has_several = outcome.arms.len() > 2;
    let mut titles = vec![("phase", Align::Left), ("figure", Align::Left), ("A", Align::Right)];
    if has_several {
        titles.push(("arm", Align::Left));
    }
    let of_arm = if has_several { ["value", "ratio to A"] } else { ["B", "B/A"] };
    titles.extend([(of_arm[0], Align::Right), (of_arm[1], Align::Right)]);
    titles.extend([("interval", Align::Left), ("verdict", Align::Left)]);
    let mut table = Table::with_titles(&titles);
    for found in &outcome.compared.findings {
        let metric = &outcome.metrics[found.metric];
        let middle = |arm: usize| metric.figure.shown(median(&outcome.compared.values[arm][found.metric]));
        let mut row = vec![metric.phase.clone(), metric.figure.name().to_string(), middle(0)];
        if has_several {
            row.push(letter(found.arm));
        }
        row.push(middle(found.arm));
        row.push(found.ratio.map_or_else(unknown, |ratio| format!("{ratio:.3}")));
        row.push(found.interval.map_or_else(unknown, |own| format!("{:.3}..{:.3}", own.low, own.high)));
        row.push(verdict(outcome, metric, found));
        table.push(row);
    }
    table
}

/// `35 blocks of 2 trials in 4 min 12 s`.
fn summary(outcome: &Outcome) -> String {
    let failed = match outcome.compared.failed.len() {
        0 => String::new(),
        count => format!(", {}", counted(count as u64, "trial failed", "trials failed")),
    };
    format!(
        "{} of {} trials in {}{failed}",
        counted(outcome.compared.blocks as u64, "block", "blocks"),
        outcome.arms.len(),
        time_text(outcome.compared.seconds * 1e9)
    )
}

fn legend(outcome: &Outcome) -> String {
    let open = outcome.compared.findings.iter().filter(|found| found.is_open).count();
    let more = match open {
        0 => String::new(),
        _ => " Those marked `open` may get a verdict with more time (--minutes).".to_string(),
    };
    format!(
        "Figures are medians of all trials. Ratios are estimated within blocks. All intervals and verdicts together are right with \
         {} %. ~: the trials do not show a difference, nor that there is none of {} or more.{more}",
        (1.0 - outcome.options.alpha) * 100.0,
        percent(outcome.options.margin)
    )
}

fn verdict(outcome: &Outcome, metric: &Metric, found: &Finding) -> String {
    let arm = letter(found.arm);
    let is_better = !metric.figure.is_worse(found.verdict);
    let words = match found.verdict {
        Verdict::Same => format!("the same within {}", percent(outcome.options.margin)),
        Verdict::Unknown => "~".to_string(),
        Verdict::Higher | Verdict::Lower if is_better => format!("{arm} faster"),
        Verdict::Higher | Verdict::Lower => format!("{arm} slower"),
    };
    if found.is_open { format!("{words} (open)") } else { words }
}

fn unknown() -> String {
    "-".to_string()
}

const CSV: &str = "workload,phase,figure,a,arm,value_a,value,ratio,ratio_low,ratio_high,verdict,is_open,blocks,missing_blocks";

fn csv(outcome: &Outcome) -> String {
    let mut text = format!("{CSV}\n");
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for found in &outcome.compared.findings {
        let metric = &outcome.metrics[found.metric];
        let figure = match metric.figure {
            Figure::Rate => "ops_per_second",
            Figure::P99 => "p99_ns",
            Figure::Size => "size_bytes",
        };
        let verdict = match found.verdict {
            Verdict::Same => "same",
            Verdict::Unknown => "unknown",
            verdict if metric.figure.is_worse(verdict) => "slower",
            Verdict::Higher | Verdict::Lower => "faster",
        };
        let value = |arm: usize| number(median(&outcome.compared.values[arm][found.metric]));
        let cells = [
            csv_cell(&outcome.workload),
            csv_cell(&metric.phase),
            figure.to_string(),
            csv_cell(&outcome.arms[0].name),
            csv_cell(&outcome.arms[found.arm].name),
            value(0),
            value(found.arm),
            number(found.ratio),
            number(found.interval.map(|own| own.low)),
            number(found.interval.map(|own| own.high)),
            verdict.to_string(),
            found.is_open.to_string(),
            found.blocks.to_string(),
            found.missing.to_string(),
        ];
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}
