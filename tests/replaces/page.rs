//! Reads the pages: rows of tables, and the commands in them.

use super::source::root;
use std::fs;

/// The table of all features.
pub const TABLE: &str = "docs/replaces/README.md";
/// A page per older tool, and how many faults of it are known.
pub const TOOLS: &[(&str, usize)] = &[
    ("docs/replaces/mininb.md", 15),
    ("docs/replaces/nudb.md", 10),
    ("docs/replaces/kvbench.md", 14),
    ("docs/replaces/kvdk.md", 14),
    ("docs/replaces/ft-index.md", 12),
];

/// A row of a table.
pub struct Row {
    /// `path:line`.
    pub at: String,
    /// The heading that it stands below.
    pub heading: String,
    /// What stands between the bars.
    pub cells: Vec<String>,
}

/// A command as a reader types it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What follows `kvdyno`.
    pub words: String,
    /// Its exit code: 0 unless `(exit N)` follows.
    pub code: i32,
}

/// The text of a page.
pub fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of all tables of a page, without their heads.
pub fn rows(path: &str) -> Vec<Row> {
    let text = text(path);
    let mut rows = Vec::new();
    let mut heading = String::new();
    let mut is_body = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().to_string();
        }
        let Some(inner) = line.strip_prefix('|') else {
            is_body = false;
            continue;
        };
        if inner.chars().all(|c| "-:| ".contains(c)) {
            is_body = true;
        } else if is_body {
            let cells = inner.trim_end().trim_end_matches('|').split('|');
            let cells = cells.map(|cell| cell.trim().to_string()).collect();
            rows.push(Row { at: format!("{path}:{}", index + 1), heading: heading.clone(), cells });
        }
    }
    rows
}

/// What stands between backticks in a cell.
pub fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The commands of a row, in their order.
pub fn commands(row: &Row) -> Vec<Shown> {
    let mut found = Vec::new();
    for cell in &row.cells {
        let parts: Vec<&str> = cell.split('`').collect();
        for (index, part) in parts.iter().enumerate().skip(1).step_by(2) {
            let Some(words) = part.strip_prefix("kvdyno ") else { continue };
            let code = parts.get(index + 1).and_then(|after| after.trim_start().strip_prefix("(exit "));
            let code = code.and_then(|after| after.split(')').next()?.parse().ok()).unwrap_or(0);
            found.push(Shown { words: words.to_string(), code });
        }
    }
    found
}

#[test]
fn commands_and_their_codes_are_found() {
    let row = Row {
        at: String::new(),
        heading: String::new(),
        cells: vec!["old `db -x`".into(), "`kvdyno run a`, then `kvdyno report` (exit 3)".into()],
    };
    let found: Vec<_> = commands(&row).into_iter().map(|shown| (shown.words, shown.code)).collect();
    assert_eq!(found, [("run a".to_string(), 0), ("report".to_string(), 3)]);
}
