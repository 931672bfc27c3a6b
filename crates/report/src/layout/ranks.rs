//! The ranks of KVBench: a Markdown table for each level, with a row for each rank and a column for each metric.

use super::cells::{exact, file_part};
use super::metrics::{Figure, Level, METRICS, Metric, cells, heading, levels};
use super::{Page, Runs};
use crate::escape::{csv_cell, markdown_words};
use crate::figure::UNKNOWN;
use kvdyno_core::results::blocks::{Row, Table, Throughput};
use kvdyno_core::results::statistics::{FEWEST_FOR_ORDER, Rank, ranks};
use kvdyno_core::results::summary::Summary;
use std::cmp::Ordering;

/// The columns as CSV.
pub(super) const COLUMNS: &[&str] = &[
    "workload",
    "keys",
    "level_in_force",
    "metric",
    "rank",
    "tied",
    "engine",
    "options",
    "median",
    "low",
    "high",
];

/// The line below the titles in the older document, with a column for each ranked metric.
const RULE: &str = "|------|-----------| --- | --- |---------| --- | --- | --- | --- |---------|";

/// The legend of the table.
const LEGEND: [&str; 2] = [
    "A rank is one more than the number of engines that are surely ahead. It needs at least five runs.",
    "Engines in one cell share a rank. An empty cell is a rank that no engine has. - is an engine without the metric.",
];

/// The ranked metrics, each with its index among all.
fn ranked() -> impl Iterator<Item = (usize, &'static Metric, &'static str)> {
    METRICS.iter().enumerate().filter_map(|(place, metric)| Some((place, metric, metric.rank_title?)))
}

/// The ranks of a level's rows in a metric, by the order of their runs within blocks.
fn ranks_of(level: &Level, place: usize) -> Vec<Option<Rank>> {
    // The order is of values where higher is better.
    let values = |all: &[f64]| match METRICS[place].less_is_better {
        true => all.iter().map(|value| 1.0 / value).collect::<Vec<f64>>(),
        false => all.to_vec(),
    };
    let figure = |row: usize| level.rows[row].figures[place].as_ref().filter(|own| !own.values.is_empty());
    let rows: Vec<(usize, &Figure)> =
        (0..level.rows.len()).filter_map(|row| Some((row, figure(row)?))).collect();
    let mut found = vec![None; level.rows.len()];
    // As in the ranking of the report: by the time inside the engines, with that of the harness as a bound.
    let machines = vec![0; rows.first().map_or(0, |(_, figure)| figure.wall.len())];
    let row = |(row, figure): &(usize, &Figure)| {
        let throughput = level.rows[*row].throughput(place).unwrap_or(Throughput::UpperBound);
        let net: Vec<Option<f64>> = values(&figure.values).into_iter().map(Some).collect();
        Row::new(&values(&figure.wall), &net, throughput)
    };
    let table = Table::new(&rows.iter().map(row).collect::<Vec<Row>>(), &machines);
    let Some(table) = table.filter(|table| table.blocks() >= FEWEST_FOR_ORDER) else { return found };
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by(|one, other| table.estimate(*other).total_cmp(&table.estimate(*one)));
    let is_ahead =
        |first: usize, second: usize| table.order(places[first], places[second]) == Some(Ordering::Greater);
    let is_leader = |row: usize| table.is_leader(places[row]);
    for (place, rank) in places.iter().zip(ranks(rows.len(), is_ahead, is_leader)) {
        found[rows[*place].0] = Some(rank);
    }
    found
}

/// A page for each level.
pub(super) fn pages(summary: &Summary, _: Runs) -> Vec<Page> {
    // Its orders are by blocks of one machine.
    if !summary.machines.is_empty() {
        return Vec::new();
    }
    let cells = cells(summary);
    let levels = levels(&cells);
    let has_ranks =
        |level: &&Level| ranked().any(|(place, _, _)| ranks_of(level, place).iter().any(Option::is_some));
    let page = |level: &Level| Page {
        folder: None,
        file: format!("{}-{}-{}-ranks.md", file_part(&level.base), level.keys, level.level),
        text: text(level, &heading(level, &levels)),
    };
    levels.iter().filter(has_ranks).map(page).collect()
}

fn text(level: &Level, heading: &str) -> String {
    let titles: Vec<&str> = ranked().map(|(_, _, title)| title).collect();
    let mut lines: Vec<String> =
        [heading, "", "**Index ranking**", "", "The higher the ranking, the better", ""]
            .map(String::from)
            .to_vec();
    lines.extend([format!("| Rank | {} |", titles.join(" | ")), RULE.to_string()]);
    let columns: Vec<Vec<String>> = ranked().map(|(place, _, _)| column(level, place)).collect();
    for place in 0..with_figures(level) {
        let cells: Vec<&str> = columns.iter().map(|column| column[place].as_str()).collect();
        lines.push(format!("| {} | {} |", place + 1, cells.join(" | ")));
    }
    lines.push(String::new());
    lines.extend(LEGEND.map(String::from));
    let mut missing: Vec<String> = level.rows.iter().flat_map(|row| row.missing()).collect();
    missing.extend(level.explained());
    if !missing.is_empty() {
        lines.push(String::new());
        lines.extend(missing.iter().map(|line| format!("* {}", markdown_words(line))));
    }
    lines.join("\n") + "\n"
}

/// The number of rows of the table: engines without any figure are in its footnotes only.
fn with_figures(level: &Level) -> usize {
    level.rows.iter().filter(|row| row.figures.iter().any(Option::is_some)).count()
}

/// A column from the first rank down: the engines of each rank, the best median first, and then a `-` for each engine
/// without a rank.
fn column(level: &Level, place: usize) -> Vec<String> {
    let ranks = ranks_of(level, place);
    let count = with_figures(level);
    let without = count.saturating_sub(ranks.iter().flatten().count());
    let sign = if METRICS[place].less_is_better { 1.0 } else { -1.0 };
    let cell = |row: usize| {
        let here = level
            .rows
            .iter()
            .zip(&ranks)
            .filter(|(_, rank)| rank.is_some_and(|rank| rank.best as usize == row + 1));
        let mut names: Vec<(f64, String)> = here
            .filter_map(|(found, _)| {
                Some((found.figures[place].as_ref()?.median * sign, markdown_words(&found.name)))
            })
            .collect();
        names.sort_by(|left, right| left.0.total_cmp(&right.0));
        let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
        if names.is_empty() && row >= count - without { UNKNOWN.to_string() } else { names.join(" = ") }
    };
    (0..count).map(cell).collect()
}

/// A row for each level, metric and engine.
pub(super) fn rows(summary: &Summary) -> Vec<Vec<String>> {
    let cells = cells(summary);
    let mut rows = Vec::new();
    for level in levels(&cells) {
        for (place, metric, _) in ranked() {
            for (row, rank) in level.rows.iter().zip(ranks_of(&level, place)) {
                let figure = row.figures[place].as_ref();
                let interval = figure.and_then(|figure| figure.interval);
                let mut line = vec![csv_cell(&level.base), level.keys.to_string(), level.level.clone()];
                line.extend([
                    metric.column.to_string(),
                    exact(rank.map(|rank| rank.best)),
                    exact(rank.map(|rank| rank.best != rank.worst)),
                ]);
                line.extend(row.csv_names());
                line.extend([exact(figure.map(|figure| figure.median))]);
                line.extend([
                    exact(interval.map(|interval| interval.low)),
                    exact(interval.map(|interval| interval.high)),
                ]);
                rows.push(line);
            }
        }
    }
    rows
}
