//! The pages are whole: every row of the table, every fault with the test that keeps it out.

use super::page::{TABLE, TOOLS, commands, rows, spans};
use super::source::SOURCES;

#[test]
fn the_table_has_rows_1_to_84_in_order_and_each_shows_a_command() {
    let rows = rows(TABLE);
    let rows: Vec<_> = rows.iter().filter(|row| row.cells[0].parse::<usize>().is_ok()).collect();
    let numbers: Vec<usize> = rows.iter().map(|row| row.cells[0].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=84).collect::<Vec<_>>());
    for row in rows {
        assert_eq!(row.cells.len(), 5, "{}: number, feature, older tools, kvdyno, command", row.at);
        assert!(row.cells[3] == "yes" && !commands(row).is_empty(), "{}: yes with a command", row.at);
    }
}

/// Whether a test of this name is in the tree.
fn is_a_test(name: &str) -> bool {
    let (rust, go) = (format!("fn {name}("), format!("func {name}("));
    let is_in = |text: &str| match text.find(&rust) {
        Some(at) => text[..at].trim_end().ends_with(']') && text[..at].contains("#[test]"),
        None => text.contains(&go),
    };
    SOURCES
        .iter()
        .any(|source| (source.path.ends_with(".rs") || source.path.ends_with(".go")) && is_in(&source.text))
}

#[test]
fn every_fault_is_listed_and_every_test_that_is_named_is_there() {
    for (path, count) in TOOLS {
        let rows = rows(path);
        let faults: Vec<_> = rows.iter().filter(|row| row.heading == "Known faults").collect();
        let numbers: Vec<usize> = faults.iter().filter_map(|row| row.cells[0].parse().ok()).collect();
        assert_eq!(numbers, (1..=*count).collect::<Vec<_>>(), "{path}");
        for row in faults {
            assert_eq!(row.cells.len(), 4, "{}: number, fault, how kvdyno avoids it, tests", row.at);
            let tests = spans(&row.cells[3]);
            assert!(!tests.is_empty() || !row.cells[3].is_empty(), "{}: no test", row.at);
            for test in tests {
                assert!(is_a_test(test), "{}: no test is named {test}", row.at);
            }
        }
    }
    assert!(is_a_test("every_fault_is_listed_and_every_test_that_is_named_is_there"));
    assert!(!is_a_test("is_a_test") && !is_a_test("nothing_has_this_name"));
}

#[test]
fn every_page_of_a_tool_has_its_command_lines_its_outputs_and_its_faults() {
    for (path, _) in TOOLS {
        let rows = rows(path);
        for heading in ["Command lines", "Options"] {
            let of_heading: Vec<_> = rows.iter().filter(|row| row.heading == heading).collect();
            assert!(of_heading.len() >= 2, "{path}: no table below `{heading}`");
            let silent = of_heading.iter().find(|row| row.cells.iter().any(String::is_empty));
            assert!(silent.is_none(), "{}: an empty cell", silent.map_or("", |row| &row.at));
        }
        let text = super::page::text(path);
        for heading in ["\n## Original output\n", "\n## Output of kvdyno\n"] {
            assert!(text.contains(heading), "{path}: no `{}`", heading.trim());
        }
    }
}
