//! The report for a terminal.

use super::content::{Block, content, failure_blocks, warning_blocks};
use crate::results::Run;
use crate::results::summary::Summary;

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
    let mut text = String::new();
    for block in blocks {
        // An empty line separates blocks.
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
            facts.iter().map(|(name, said)| wrapped(&format!("{name:<width$}  {said}"), width + 2)).collect()
        }
        Block::Table(table) => table.text(),
        Block::Lines(lines) => lines.iter().map(|line| wrapped(line, 4)).collect(),
        Block::Commands(commands) => {
            commands.iter().map(|(command, purpose)| format!("{command}\n    {purpose}\n")).collect()
        }
    }
}

/// Wraps a line at spaces if it is too long, and indents all lines after the first. A word that is too long by itself,
/// such as a command to copy, is not broken.
fn wrapped(line: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut rest = line;
    let mut margin = 0;
    while margin + rest.len() > WIDTH {
        let limit = WIDTH - margin;
        let lead = rest.len() - rest.trim_start().len();
        let before = rest.get(lead..=limit).and_then(|fitting| fitting.rfind(' ')).map(|place| lead + place);
        let Some(place) = before.or_else(|| rest[lead..].find(' ').map(|place| lead + place)) else { break };
        text += &format!("{}{}\n", " ".repeat(margin), rest[..place].trim_end());
        rest = rest[place..].trim_start();
        margin = indent;
    }
    text + &" ".repeat(margin) + rest + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_at_spaces_and_lose_nothing() {
        let words = "word ".repeat(60);
        let line = format!("    {}", words.trim_end());
        let text = wrapped(&line, 4);
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("    ")), "{text}");
        assert_eq!(text.split_whitespace().count(), 60);
        assert_eq!(wrapped("short", 4), "short\n");
        let long = "x".repeat(300);
        assert_eq!(wrapped(&long, 4), format!("{long}\n"));
        assert_eq!(wrapped(&format!("{long} y"), 2), format!("{long}\n  y\n"));
        assert_eq!(wrapped("", 4), "\n");
    }
}
