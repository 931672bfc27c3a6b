//! The report for a terminal.

use super::content::{Block, content};
use crate::results::Run;
use crate::results::summary::Summary;

/// Renders it.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let mut text = String::new();
    for block in content(summary, run) {
        // Each block but the lines below a table begins after an empty line.
        if !text.is_empty() {
            text.push('\n');
        }
        text += &set(block);
    }
    text
}

fn set(block: Block) -> String {
    match block {
        Block::Title(title) => format!("{title}\n{}\n", "=".repeat(title.len())),
        Block::Part(title) => format!("{title}\n{}\n", "-".repeat(title.len())),
        Block::Section(title) => format!("{title}:\n"),
        Block::Facts(facts) => {
            let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            facts.iter().map(|(name, said)| format!("{name:<width$}  {said}\n")).collect()
        }
        Block::Table(table) => table.text(),
        Block::Lines(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
        Block::Commands(commands) => {
            commands.iter().map(|(command, purpose)| format!("{command}\n    {purpose}\n")).collect()
        }
    }
}
