//! Tables: titles, alignment and cells, and their form for a fixed-width font.

use super::wrapped_lines;

/// Blanks between two columns, at most.
const GAP: usize = 2;

/// The minimum width of a column whose cells are wrapped.
const NARROWEST: usize = 24;

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

    /// A table with a row for each item. Its columns are [`Field`]s, or the same with closures.
    pub fn of<'i, Item: 'i, Cell: Fn(&Item) -> String>(
        fields: &[(&str, Align, Cell)],
        items: impl IntoIterator<Item = &'i Item>,
    ) -> Table {
        let head =
            |(title, align, _): &(&str, Align, Cell)| Column { title: title.to_string(), align: *align };
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

    /// The same in lines of at most `width` characters. Columns that do not fit follow in further tables, after an empty line,
    /// each with the names of the rows again: the first column, and the second if both are words. Only a word that is longer than a line is not broken.
    pub fn text_within(&self, width: usize) -> String {
        let parts = self.parts(width);
        parts.iter().map(|part| part.wrapped(width).text()).collect::<Vec<String>>().join("\n")
    }

    /// The tables whose columns fit into lines of this width; the last column of one may still be too wide.
    fn parts(&self, width: usize) -> Vec<Table> {
        let widths = self.widths();
        let words = self.columns.iter().take_while(|column| column.align == Align::Left).count();
        let names: Vec<usize> = (0..words.clamp(1, 2).min(self.columns.len())).collect();
        let (mut parts, mut part) = (Vec::new(), Vec::new());
        for column in 0..self.columns.len() {
            // A last column of words needs no more than this, because its cells are wrapped.
            let is_wrapped = column + 1 == self.columns.len() && self.columns[column].align == Align::Left;
            let needed = if is_wrapped { widths[column].min(NARROWEST) } else { widths[column] };
            let used: usize = part.iter().map(|column: &usize| widths[*column] + GAP).sum();
            if part.len() > names.len() && used + needed > width {
                parts.push(part);
                part = names.clone();
            }
            part.push(column);
        }
        parts.push(part);
        parts.iter().map(|columns| self.only(columns)).collect()
    }

    /// The table of these columns.
    fn only(&self, columns: &[usize]) -> Table {
        let row = |row: &Vec<String>| columns.iter().map(|column| row[*column].clone()).collect();
        Table {
            columns: columns.iter().map(|column| self.columns[*column].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// The table with the cells of its last column wrapped over several rows, if it is one of words and does not fit.
    fn wrapped(&self, width: usize) -> Table {
        let (Some(last), widths) = (self.columns.len().checked_sub(1), self.widths()) else {
            return self.clone();
        };
        let used: usize = widths[..last].iter().map(|width| width + GAP).sum();
        let left = width.saturating_sub(used).max(NARROWEST);
        if last == 0 || widths[last] <= left || self.columns[last].align != Align::Left {
            return self.clone();
        }
        let mut table = Table::new(self.columns.clone());
        for row in &self.rows {
            for (index, line) in wrapped_lines(&row[last], left).into_iter().enumerate() {
                let mut cells = if index == 0 { row.clone() } else { vec![String::new(); row.len()] };
                cells[last] = line;
                table.push(cells);
            }
        }
        table
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
    fn a_table_that_is_too_wide_is_split_and_its_last_words_are_wrapped() {
        let mut table = Table::with_titles(&[
            ("engine", Align::Left),
            ("ops/s", Align::Right),
            ("p99", Align::Right),
            ("notes", Align::Left),
        ]);
        table.push(vec!["redb".to_string(), "1.23M".to_string(), "4us".to_string(), "one two ".repeat(6)]);
        table.push(vec!["lmdb".to_string(), "1.5M".to_string(), "3us".to_string(), String::new()]);
        assert_eq!(table.text_within(200), table.text());
        let wrapped = [
            "engine  ops/s p99  notes",
            "------  ----- ---  -----------------------",
            "redb    1.23M 4us  one two one two one two",
            "                   one two one two one two",
            "lmdb     1.5M 3us",
        ];
        assert_eq!(table.text_within(44).lines().collect::<Vec<&str>>(), wrapped);
        let split = "engine  ops/s\n------  -----\nredb    1.23M\nlmdb     1.5M\n\n\
                     engine  p99\n------  ---\nredb    4us\nlmdb    3us\n\n";
        let text = table.text_within(16);
        assert!(text.starts_with(split), "{text}");
        assert_eq!(text.matches("one two").count(), 6, "nothing is lost: {text}");
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
