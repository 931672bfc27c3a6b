//! Rows and columns of text, set with spaces or as Markdown.

use super::escape::markdown_text;
use super::markup::{Html, html};

/// To which side the cells of a column go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// Where its cells go.
    pub align: Align,
}

/// The longest cell of a page's table that stays on one line, in characters.
const LONG_CELL: usize = 48;

/// A table whose rows all have as many cells as there are columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// A table without rows, of columns given as `(title, align)`.
    pub fn with_titles(titles: &[(&str, Align)]) -> Table {
        Table::new(
            titles.iter().map(|(title, align)| Column { title: title.to_string(), align: *align }).collect(),
        )
    }

    /// Adds a row; a cell that is missing is unknown (`-`), and one too many is dropped.
    pub fn push(&mut self, mut row: Vec<String>) {
        row.resize(self.columns.len(), "-".to_string());
        self.rows.push(row);
    }

    /// True if it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Set with spaces, for a fixed-width font; the cells must be printable ASCII.
    pub fn text(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let width = |place: usize| {
            let cells = self.rows.iter().chain([&titles]).filter_map(|row| row.get(place));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let mut set = String::new();
            let mut before = None;
            for ((cell, column), width) in cells {
                // Numbers that end a column and begin the next at once are far enough apart with one space.
                set += match (before, column.align) {
                    (None, _) => "",
                    (Some(Align::Right), Align::Right) => " ",
                    _ => "  ",
                };
                set += &match column.align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                };
                before = Some(column.align);
            }
            set.trim_end().to_string() + "\n"
        };
        [&titles, &rule].into_iter().chain(&self.rows).map(line).collect()
    }

    /// As a table of a page, which can be scrolled where it is too wide. Cells with long texts have lines.
    pub(super) fn html(&self) -> Html {
        let class = |column: &Column, cell: &str| match column.align {
            Align::Right => Html::constant(" class=\"r\""),
            Align::Left if cell.len() > LONG_CELL => Html::constant(" class=\"long\""),
            Align::Left => Html::default(),
        };
        let title = |column: &Column| html!("<th scope=\"col\"{}>{}</th>", class(column, ""), column.title);
        let titles: Html = self.columns.iter().map(title).collect();
        let cell = |(column, cell): (&Column, &String)| html!("<td{}>{}</td>", class(column, cell), cell);
        let row = |row: &Vec<String>| {
            html!("<tr>{}</tr>\n", self.columns.iter().zip(row).map(cell).collect::<Html>())
        };
        html!(
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
            titles,
            self.rows.iter().map(row).collect::<Html>()
        )
    }

    /// As a Markdown table; whatever the cells hold stays in its cell.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = self.columns.iter().map(|column| markdown_text(&column.title)).collect();
        let rule = self.columns.iter().map(|column| match column.align {
            Align::Left => ":---".to_string(),
            Align::Right => "---:".to_string(),
        });
        let rows = self.rows.iter().map(|row| line(row.iter().map(|cell| markdown_text(cell)).collect()));
        [line(titles), line(rule.collect())].into_iter().chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::with_titles(&[("engine", Align::Left), ("ops/s", Align::Right), ("notes", Align::Left)]);
        table.push(vec!["redb".to_string(), "1.23M".to_string(), String::new()]);
        table.push(vec!["a|b".to_string()]);
        table
    }

    #[test]
    fn sets_words_left_and_numbers_right() {
        let expected = "engine  ops/s  notes\n------  -----  -----\nredb    1.23M\na|b         -  -\n";
        assert_eq!(table().text(), expected);
    }

    #[test]
    fn a_cell_cannot_break_out_of_a_markdown_table() {
        let expected =
            "| engine | ops/s | notes |\n| :--- | ---: | :--- |\n| redb | 1.23M |  |\n| a\\|b | - | - |\n";
        assert_eq!(table().markdown(), expected);
    }

    #[test]
    fn every_row_has_as_many_cells_as_there_are_columns() {
        let mut table = table();
        table.push(vec!["x".to_string(); 9]);
        for line in table.markdown().lines() {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 4, "{line}");
        }
    }
}
