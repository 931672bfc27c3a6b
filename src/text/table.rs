//! Tables: titles, alignment and cells, and their form for a fixed-width font.

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

/// A column of a table with a row for each item: its title, its alignment, and its cell for an item.
pub type Field<Item> = (&'static str, Align, fn(&Item) -> String);

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

    /// A table with a row for each item.
    pub fn of<'i, Item: 'i>(fields: &[Field<Item>], items: impl IntoIterator<Item = &'i Item>) -> Table {
        let head = |(title, align, _): &Field<Item>| Column { title: title.to_string(), align: *align };
        let mut table = Table::new(fields.iter().map(head).collect());
        items.into_iter().for_each(|item| table.push(fields.iter().map(|(_, _, cell)| cell(item)).collect()));
        table
    }

    /// A table of words without titles, for [`Table::lines`].
    pub fn untitled(columns: usize) -> Table {
        Table::with_titles(&vec![("", Align::Left); columns])
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

    /// The heads of the columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows without the titles.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The table aligned with spaces, with titles above a rule. The cells must be printable ASCII.
    pub fn text(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let widths = self.widths();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        [&titles, &rule].into_iter().chain(&self.rows).map(|row| self.line(row, &widths) + "\n").collect()
    }

    /// The rows aligned with spaces, a line each, without the titles.
    pub fn lines(&self) -> Vec<String> {
        let widths = self.widths();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.title.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        let mut before = None;
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            // Between two right-aligned columns one space is enough.
            line += match (before, column.align) {
                (None, _) => "",
                (Some(Align::Right), Align::Right) => " ",
                _ => "  ",
            };
            line += &match column.align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            };
            before = Some(column.align);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_aligned_and_numbers_right_aligned() {
        let mut table =
            Table::with_titles(&[("engine", Align::Left), ("ops/s", Align::Right), ("notes", Align::Left)]);
        table.push(vec!["redb".to_string(), "1.23M".to_string(), String::new()]);
        table.push(vec!["a|b".to_string()]);
        let expected = "engine  ops/s  notes\n------  -----  -----\nredb    1.23M\na|b         -  -\n";
        assert_eq!(table.text(), expected);
        assert_eq!(table.lines(), ["redb    1.23M", "a|b         -  -"]);
    }

    #[test]
    fn a_field_is_a_title_and_a_cell() {
        let fields: [Field<u32>; 2] =
            [("n", Align::Right, |n| n.to_string()), ("twice", Align::Right, |n| (2 * n).to_string())];
        assert_eq!(Table::of(&fields, &[1, 20]).text(), " n twice\n-- -----\n 1     2\n20    40\n");
    }

    #[test]
    fn every_row_has_as_many_cells_as_there_are_columns() {
        let mut table = Table::untitled(2);
        table.push(vec!["x".to_string(); 9]);
        table.push(Vec::new());
        assert_eq!(table.lines(), ["x  x", "-  -"]);
    }
}
