//! Tables of text, rendered with spaces, as Markdown or as HTML.

use super::escape::markdown_text;
use super::markup::{Html, html};

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column title.
    pub title: String,
    /// The alignment of its cells.
    pub align: Align,
}

/// The maximum length of a cell in an HTML table that is not wrapped, in characters.
const LONG_CELL: usize = 48;

/// A table. Each row has one cell per column.
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

    /// A table without rows, with columns given as `(title, align)`.
    pub fn with_titles(titles: &[(&str, Align)]) -> Table {
        Table::new(
            titles.iter().map(|(title, align)| Column { title: title.to_string(), align: *align }).collect(),
        )
    }

    /// Adds a row. Missing cells become unknown (`-`), and surplus cells are dropped.
    pub fn push(&mut self, mut row: Vec<String>) {
        row.resize(self.columns.len(), "-".to_string());
        self.rows.push(row);
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table aligned with spaces, for a fixed-width font. The cells must be printable ASCII.
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
                // Between two right-aligned columns one space is enough.
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

    /// The table as HTML, with a scroll bar if it is too wide. Cells with long texts are wrapped.
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

    /// The table as Markdown. No text can break out of its cell.
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
    fn words_are_left_aligned_and_numbers_right_aligned() {
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
