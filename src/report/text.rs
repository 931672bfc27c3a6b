//! The report for a terminal.

use super::content::{Block, content, failure_blocks, warning_blocks};
use crate::results::Run;
use crate::results::summary::Summary;
use crate::text;

/// The maximum length of a line of prose, in characters.
const WIDTH: usize = 120;

/// Renders it.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    blocks(content(summary, run))
}

/// Problems, printed below a layout: failed or missing trials, and warnings. Empty if there are none.
pub fn troubles(summary: &Summary) -> String {
    let found: Vec<Block> = failure_blocks(summary).into_iter().chain(warning_blocks(summary)).collect();
    if found.is_empty() { String::new() } else { format!("\n{}", blocks(found)) }
}

pub(super) fn blocks(blocks: Vec<Block>) -> String {
    let mut all = String::new();
    for block in blocks {
        // An empty line separates blocks.
        if !all.is_empty() {
            all.push('\n');
        }
        all += &set(block);
    }
    all
}

fn set(block: Block) -> String {
    match block {
        Block::Title(title) => format!("{title}\n{}\n", "=".repeat(title.len())),
        Block::Part(title) => format!("{title}\n{}\n", "-".repeat(title.len())),
        Block::Section(title) => format!("{title}:\n"),
        Block::Facts(facts) => text::facts(&facts, WIDTH),
        Block::Table(table) => table.text(),
        Block::Lines(lines) => lines.iter().map(|line| text::wrapped("", "    ", line, WIDTH)).collect(),
        Block::Commands(commands) => {
            commands.iter().map(|(command, purpose)| format!("{command}\n    {purpose}\n")).collect()
        }
    }
}
