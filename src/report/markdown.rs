//! The report as Markdown, for a page or a comment.

use super::content::{Block, content};
use super::escape::markdown_text;
use crate::results::Run;
use crate::results::summary::Summary;

/// Renders the report.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    blocks(content(summary, run))
}

pub(super) fn blocks(blocks: Vec<Block>) -> String {
    blocks.into_iter().map(set).collect::<Vec<_>>().join("\n")
}

/// A list item; an indented line becomes an item of the line before it.
fn bullet(line: &str) -> String {
    let indent = if line.starts_with(' ') { "  " } else { "" };
    format!("{indent}- {}\n", markdown_text(line.trim_start()))
}

fn set(block: Block) -> String {
    match block {
        Block::Title(title) => format!("# {}\n", markdown_text(&title)),
        Block::Part(title) => format!("## {}\n", markdown_text(&title)),
        Block::Section(title) => format!("### {}\n", markdown_text(&title)),
        Block::Facts(facts) => {
            facts.iter().map(|(name, said)| format!("- **{name}**: {}\n", markdown_text(said))).collect()
        }
        Block::Table(table) => table.markdown(),
        Block::Lines(lines) => lines.iter().map(|line| bullet(line)).collect(),
        Block::Commands(commands) => {
            // Code spans print backslashes literally, so only the backquote needs to be replaced.
            let code = |command: &str| format!("`{}`", command.replace('`', "'"));
            commands
                .iter()
                .map(|(command, purpose)| format!("- {}: {}\n", code(command), markdown_text(purpose)))
                .collect()
        }
    }
}
