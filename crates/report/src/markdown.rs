//! The report as Markdown, for a page or a comment.

use super::block::Block;
use super::content::content;
use super::escape::markdown_text;
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::text::{Align, Table};

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
            facts.iter().map(|(name, value)| format!("- **{name}**: {}\n", markdown_text(value))).collect()
        }
        Block::Table(table) => self::table(&table),
        Block::Lines(lines) => lines.iter().map(|line| bullet(line)).collect(),
        Block::Commands(commands) => {
            // Code spans print backslashes literally, so only the backquote needs to be replaced.
            let code = |command: &str| format!("`{}`", command.replace('`', "'"));
            commands
                .iter()
                .map(|(command, purpose)| format!("- {}: {}\n", code(command), markdown_text(purpose)))
                .collect()
        }
        Block::Matrix(_) | Block::Charts(_) => String::new(),
    }
}

/// A table. No text can break out of its cell.
pub fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = table.columns().iter().map(|column| markdown_text(&column.title)).collect();
    let rule = table.columns().iter().map(|column| match column.align {
        Align::Left => ":---".to_string(),
        Align::Right => "---:".to_string(),
    });
    let rows = table.rows().iter().map(|row| line(row.iter().map(|cell| markdown_text(cell)).collect()));
    [line(titles), line(rule.collect())].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_break_out_of_a_table() {
        let mut table = Table::with_titles(&[("engine", Align::Left), ("ops/s", Align::Right)]);
        table.push(vec!["redb".to_string(), "1.23M".to_string()]);
        table.push(vec!["a|b".to_string()]);
        let expected = "| engine | ops/s |\n| :--- | ---: |\n| redb | 1.23M |\n| a\\|b | - |\n";
        assert_eq!(super::table(&table), expected);
    }
}
