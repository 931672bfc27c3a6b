//! The wide layout of KVBench: a Markdown table for each level, with a row for each engine and a column for each metric.

use super::cells::Measured;
use super::cells::{exact, file_part};
use super::metrics::{Figure, Level, METRICS, Metric, cells, elsewhere, heading, levels};
use super::{Page, Runs};
use crate::escape::{csv_cell, markdown_words};
use crate::figure::{UNKNOWN, three_digits};
use kvdyno_core::results::summary::Summary;

/// The columns as CSV.
pub(super) const COLUMNS: &[&str] = &[
    "workload",
    "keys",
    "level_in_force",
    "engine",
    "options",
    "repetition",
    METRICS[0].column,
    METRICS[1].column,
    METRICS[2].column,
    METRICS[3].column,
    METRICS[4].column,
    METRICS[5].column,
    METRICS[6].column,
    METRICS[7].column,
    METRICS[8].column,
    METRICS[9].column,
];

/// The line below the titles, as in the older document.
const RULE: &str = "| --- | --- | --- | --- | --- | -- | --- | --- | --- | --- | --- |";

/// The legend of the table.
const LEGEND: [&str; 3] = [
    "Medians over runs. Times and rates are without the harness's time. MemUsage: resident memory of the process after",
    "batch-write, harness included. HeapInuse: heap of engines in Go. DiskUsage: allocated space before the close; - for a",
    "database without files.",
];

/// A page for each level.
pub(super) fn pages(summary: &Summary, _: Runs) -> Vec<Page> {
    let cells = cells(summary);
    let levels = levels(&cells);
    let page = |level: &Level| Page {
        folder: None,
        file: format!("{}-{}-{}.md", file_part(&level.base), level.keys, level.level),
        text: text(level, &heading(level, &levels), &cells),
    };
    levels.iter().filter(|level| has_figures(level)).map(page).collect()
}

fn has_figures(level: &Level) -> bool {
    level.rows.iter().any(|row| row.figures.iter().any(Option::is_some))
}

fn text(level: &Level, heading: &str, all: &[Measured]) -> String {
    let titles: Vec<&str> = METRICS.iter().map(|metric| metric.title).collect();
    let mut lines = vec![heading.to_string(), String::new(), "**throughputs**".to_string(), String::new()];
    lines.extend([format!("| name | {} |", titles.join(" | ")), RULE.to_string()]);
    for row in level.rows.iter().filter(|row| !row.is_refused()) {
        let figures = METRICS.iter().zip(&row.figures).map(|(metric, figure)| cell(metric, figure));
        lines.push(format!(
            "| {} | {} |",
            markdown_words(&row.name),
            figures.collect::<Vec<_>>().join(" | ")
        ));
    }
    lines.push(String::new());
    lines.extend(LEGEND.map(String::from));
    let mut missing: Vec<String> = level.rows.iter().flat_map(|row| row.missing()).collect();
    missing.extend(elsewhere(level, all));
    missing.extend(level.explained());
    if !missing.is_empty() {
        lines.push(String::new());
        lines.extend(missing.iter().map(|line| format!("* {}", markdown_words(line))));
    }
    lines.join("\n") + "\n"
}

/// Integers as in the older table, and three digits for small figures.
fn cell(metric: &Metric, figure: &Option<Figure>) -> String {
    match figure {
        None => UNKNOWN.to_string(),
        Some(figure) if metric.less_is_better && figure.median < 9.995 => three_digits(figure.median),
        Some(figure) if !metric.less_is_better && figure.median < 99.95 => three_digits(figure.median),
        Some(figure) => format!("{:.0}", figure.median),
    }
}

/// A row for each engine, level and run.
pub(super) fn rows(summary: &Summary) -> Vec<Vec<String>> {
    let cells = cells(summary);
    let mut rows = Vec::new();
    for level in levels(&cells) {
        for row in &level.rows {
            for (repetition, values) in row.by_run() {
                let mut line = vec![csv_cell(&level.base), level.keys.to_string(), level.level.clone()];
                line.extend(row.csv_names());
                line.push(repetition.to_string());
                line.extend(values.into_iter().map(exact));
                rows.push(line);
            }
        }
    }
    rows
}
