//! The report for a terminal.

mod grid;

use super::block::Block;
use super::content::{content, failure_blocks, warning_blocks};
use super::describe::has_kinds_apart;
use super::figure::{known, time};
use super::matrix::{Matrix, matrices};
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::text::{self, Align, Column, Table, plain_text};

/// The maximum length of a line, in characters; only a matrix may use all of a wide terminal.
pub(super) const WIDTH: usize = 120;

/// The terminal, or the file, that the report is for.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The number of columns; at least [`Screen::NARROWEST`].
    pub width: usize,
    /// Whether it shows colours. Colours never carry information of their own.
    pub has_colours: bool,
}

impl Screen {
    /// The minimum width that reports are made for.
    pub const NARROWEST: usize = 80;
    /// A file.
    pub const FILE: Screen = Screen { width: WIDTH, has_colours: false };
}

/// Renders it.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let mut all = content(summary, run);
    // After the facts of the run.
    let place = all.iter().position(|block| matches!(block, Block::Part(_))).unwrap_or(all.len());
    all.splice(place..place, matrices(summary).iter().flat_map(p99_blocks));
    blocks(all)
}

/// The 99th percentiles of a workload's engines in its phases, in the order of the overview; empty if all are unknown. Kinds of op
/// that differ much in one of the engines have a column each.
fn p99_blocks(matrix: &Matrix) -> Vec<Block> {
    let number = |title: String| Column { title: plain_text(&title), align: Align::Right };
    let rows = || matrix.sections.iter().flat_map(|section| &section.rows);
    let cells = |place: usize| rows().filter_map(move |row| Some(row.entries[place].as_ref()?.cell));
    // The place of a column of the matrix, and a kind; none: all kinds.
    let mut columns: Vec<(usize, Option<&str>)> = Vec::new();
    for place in 0..matrix.columns.len() {
        let mut kinds: Vec<&str> = Vec::new();
        if cells(place).any(has_kinds_apart) {
            for kind in cells(place).flat_map(|cell| &cell.kinds) {
                if !kinds.contains(&kind.kind.as_str()) {
                    kinds.push(kind.kind.as_str());
                }
            }
        }
        columns.extend(kinds.iter().map(|kind| (place, Some(*kind))));
        columns.extend(kinds.is_empty().then_some((place, None)));
    }
    let engine = Column { title: "engine".to_string(), align: Align::Left };
    let title = |(place, kind): &(usize, Option<&str>)| {
        let phase = &matrix.columns[*place].phase.name;
        number(kind.map_or_else(|| phase.clone(), |kind| format!("{phase} {kind}")))
    };
    let mut table = Table::new([engine].into_iter().chain(columns.iter().map(title)).collect());
    for row in rows() {
        let of = |(place, kind): &(usize, Option<&str>)| {
            let cell = row.entries[*place].as_ref()?.cell;
            match kind {
                Some(kind) => cell.kinds.iter().find(|own| own.kind.as_str() == *kind)?.latency.p99_ns,
                None => cell.latency.p99_ns,
            }
        };
        let p99_ns: Vec<Option<u64>> = columns.iter().map(of).collect();
        if p99_ns.iter().any(Option::is_some) {
            let times = p99_ns.into_iter().map(|p99_ns| known(p99_ns, time));
            table.push([row.label.to_string()].into_iter().chain(times).collect());
        }
    }
    if table.is_empty() {
        return Vec::new();
    }
    let title = format!("{} / p99 of service times (medians over runs)", matrix.workload);
    vec![Block::Part(plain_text(&title)), Block::Table(table)]
}

/// Problems, printed below a layout: failed or missing trials, and warnings. Empty if there are none.
pub fn troubles(summary: &Summary) -> String {
    let found: Vec<Block> = failure_blocks(summary).into_iter().chain(warning_blocks(summary)).collect();
    if found.is_empty() { String::new() } else { format!("\n{}", blocks(found)) }
}

/// What a million ops cost, printed below the overview. Empty without prices.
pub fn prices(summary: &Summary) -> String {
    let found = super::price::blocks(summary);
    if found.is_empty() { String::new() } else { format!("\n{}", blocks(found)) }
}

pub(super) fn blocks(blocks: Vec<Block>) -> String {
    let mut all = String::new();
    for block in blocks {
        // An empty line separates blocks.
        if !all.is_empty() {
            all.push('\n');
        }
        all += &self::block(block, Screen::FILE);
    }
    all
}

/// A block on a screen.
pub(super) fn block(block: Block, screen: Screen) -> String {
    let width = screen.width.min(WIDTH);
    match block {
        Block::Title(title) => format!("{title}\n{}\n", "=".repeat(title.len())),
        Block::Part(title) => format!("{title}\n{}\n", "-".repeat(title.len())),
        Block::Section(title) => format!("{title}:\n"),
        Block::Facts(facts) => text::facts(&facts, width),
        Block::Table(table) => table.text_within(width),
        Block::Matrix(matrix) => grid::text(&matrix, screen),
        Block::Lines(lines) => lines.iter().map(|line| text::wrapped("", "    ", line, width)).collect(),
        Block::Commands(commands) => {
            commands.iter().map(|(command, purpose)| format!("{command}\n    {purpose}\n")).collect()
        }
        Block::Charts(_) => String::new(),
    }
}
