//! The list of all engines, in 110 columns: the available ones, then the others with their install commands.

use super::{COLUMNS, Row};
use crate::engine::Refused;
use std::fmt::Write;

/// Groups of capabilities. Each capability has its own letter and position in a row.
const CAPABILITIES: &[&[(char, &str)]] = &[
    &[('o', "ordered"), ('r', "reverse"), ('p', "prefix"), ('h', "hold")],
    &[('m', "multi-get"), ('t', "transaction"), ('R', "transaction-reads"), ('l', "long-transaction")],
    &[('a', "merge-add"), ('A', "merge-append")],
    &[('d', "delete"), ('D', "delete-tells"), ('w', "overwrite"), ('n', "new")],
    &[
        ('k', "keyspaces"),
        ('c', "collections"),
        ('x', "time-to-live"),
        ('L', "lists"),
        ('i', "indexes"),
        ('z', "touch"),
    ],
];

/// Maximum width of versions and licences in the list. The version of a Go module can be a date and a hash.
const VERSION_COLUMNS: usize = 8;
const LICENCE_COLUMNS: usize = 15;

/// The letters of the given capabilities, and `-` for each missing one.
fn letters(capabilities: &[String]) -> String {
    let letter = |(letter, name): &(char, &str)| {
        if capabilities.iter().any(|own| own == name) { *letter } else { '-' }
    };
    let groups = CAPABILITIES.iter().map(|group| group.iter().map(letter).collect::<String>());
    groups.collect::<Vec<_>>().join(" ")
}

/// The list as text. Only install commands and reasons may exceed the width.
pub(super) fn text(rows: &[Row], refused: &[Refused]) -> String {
    let (available, absent): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.engine.is_some());
    let mut out = String::new();
    let head = |first: &str| {
        [first, "family", "language", "version", "licence", "levels", "capabilities (proven)"]
            .map(String::from)
    };
    let mut table = vec![head("available")];
    table.extend(available.iter().map(|row| cells(row)));
    let places = table.len();
    table.push(head("not available"));
    table.extend(absent.iter().map(|row| cells(row)));
    let mut lines = aligned(&table).into_iter();
    // Writing to a String cannot fail.
    lines.by_ref().take(places).for_each(|line| {
        let _ = writeln!(out, "{line}");
    });
    if !absent.is_empty() {
        let _ = writeln!(out, "\n{}", lines.next().unwrap_or_default());
    }
    for (index, (row, line)) in absent.iter().zip(lines).enumerate() {
        let _ = writeln!(out, "{line}");
        // Printed once for consecutive engines with the same text.
        let next = absent.get(index + 1);
        if next.is_none_or(|next| install_text(next) != install_text(row)) {
            out += &install_text(row);
        }
    }
    for (index, refused) in refused.iter().enumerate() {
        let _ = writeln!(out, "{}refused: {refused}", if index == 0 { "\n" } else { "" });
    }
    let _ = write!(out, "\n{}", legend(&available));
    out
}

/// The install command of an absent engine, and why it is absent.
fn install_text(row: &Row) -> String {
    let Some(absent) = &row.absent else { return String::new() };
    let reason = absent.reason.as_ref().map(|reason| format!("    reason: {reason}\n")).unwrap_or_default();
    format!("    install: {}\n{reason}", absent.known.get)
}

fn cells(row: &Row) -> [String; 7] {
    let first_word = |text: &str| text.split_whitespace().next().unwrap_or("-").to_string();
    let licence = row.fact(|known| &known.licence);
    let licence = licence.replace(" OR ", "/").replace("-or-later", "+").replace("-only", "");
    let capabilities = match &row.proven {
        Some(proven) => letters(&proven.capabilities),
        None => "not verified".to_string(),
    };
    [
        row.name.clone(),
        first_word(&row.family()),
        row.language(),
        clipped(&first_word(row.version.as_deref().unwrap_or("-")), VERSION_COLUMNS),
        clipped(&licence, LICENCE_COLUMNS),
        row.levels().map_or("-".to_string(), |levels| levels.join(" ")),
        capabilities,
    ]
}

/// Truncates a text to a number of columns and marks the truncation. The engine's page shows the full text.
fn clipped(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_string();
    }
    text.chars().take(columns - 2).collect::<String>().trim_end().to_string() + ".."
}

/// The lines of a table with aligned columns.
fn aligned(table: &[[String; 7]]) -> Vec<String> {
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    table.iter().map(line).collect()
}

/// The meaning of the letters, and further hints.
fn legend(available: &[&Row]) -> String {
    let all = CAPABILITIES.iter().flat_map(|group| group.iter());
    let meanings: Vec<String> = all.map(|(letter, name)| format!("{letter} {name}")).collect();
    let mut text = wrapped("capabilities: ", &meanings, ", ");
    text += "`kvdyno engines NAME` shows details and options of an engine; engines with planted faults: mutant:FAULT\n";
    let defects = available.iter().filter(|row| row.known.is_some_and(|known| !known.defects.is_empty()));
    let defects: Vec<String> = defects.map(|row| row.name.clone()).collect();
    if !defects.is_empty() {
        text += &wrapped("engines with known defects: ", &defects, ", ");
    }
    let unknown: Vec<String> =
        available.iter().filter(|row| row.version.is_none()).map(|row| row.name.clone()).collect();
    if !unknown.is_empty() {
        text += &wrapped("no version reported in time: ", &unknown, ", ");
    }
    text
}

/// Words after a label, wrapped to the width. Continuation lines are indented to the first word.
pub(super) fn wrapped(label: &str, words: &[String], between: &str) -> String {
    let mut out = label.to_string();
    let mut used = label.len();
    for (index, word) in words.iter().enumerate() {
        let end = if index + 1 < words.len() { between } else { "" };
        if used > label.len() && used + word.len() + end.trim_end().len() > COLUMNS {
            out.truncate(out.trim_end().len());
            out += &format!("\n{:1$}", "", label.len());
            used = label.len();
        }
        out += &format!("{word}{end}");
        used += word.len() + end.len();
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::proven::proven;
    use crate::engine::{Registry, abi, capability_names};
    use std::collections::BTreeSet;

    #[test]
    fn every_capability_has_its_own_letter() {
        let all: Vec<_> = CAPABILITIES.iter().flat_map(|group| group.iter()).collect();
        assert_eq!(all.iter().map(|(letter, _)| letter).collect::<BTreeSet<_>>().len(), all.len());
        let known = capability_names(u64::MAX);
        assert!(all.iter().all(|(_, name)| known.contains(name)));
        let traits = abi::KV_FIXED_KEY_SIZE
            | abi::KV_KEEPS_KEY
            | abi::KV_KEEPS_VALUE
            | abi::KV_IN_MEMORY
            | abi::KV_SINGLE_WRITER
            | abi::KV_SCAN_BLOCKS_WRITES
            | abi::KV_SINGLE_THREAD
            | abi::KV_STORES_NOTHING
            | abi::KV_HANDS_OVER
            | abi::KV_EVICTS;
        for name in capability_names(!traits) {
            assert!(all.iter().any(|(_, own)| *own == name), "no letter for {name}");
        }
        let some = ["ordered", "new"].map(String::from);
        assert_eq!(letters(&some), "o--- ---- -- ---n ------");
    }

    #[test]
    fn the_list_fits_the_width_whether_engines_are_available_or_not() {
        let registry = Registry::load(&[]);
        let rows = super::super::rows(&registry);
        let mut all_absent = super::super::rows(&registry);
        all_absent.iter_mut().for_each(|row| row.engine = None);
        all_absent.iter_mut().for_each(|row| row.version = Some("10.11.12-rc1 (2020)".into()));
        for rows in [rows, all_absent] {
            let text = text(&rows, &[]);
            let long: Vec<&str> =
                text.lines().filter(|line| line.len() > COLUMNS && !line.starts_with("    ")).collect();
            assert!(long.is_empty(), "over {COLUMNS} columns:\n{}", long.join("\n"));
            for row in &rows {
                let line = text.lines().find(|line| line.split_whitespace().next() == Some(&row.name));
                let line = line.unwrap_or_else(|| panic!("no row of {}", row.name));
                assert!(proven(&row.name).is_some() || line.ends_with("not verified"), "{line}");
            }
        }
    }

    #[test]
    fn wrapped_lines_are_indented_to_the_first_word() {
        let words = vec!["word".to_string(); 40];
        let text = wrapped("  label  ", &words, ", ");
        assert!(text.lines().all(|line| line.len() <= COLUMNS && line == line.trim_end()));
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().skip(1).all(|line| line.starts_with("         word")));
    }
}
