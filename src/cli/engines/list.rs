//! The list of all engines: the available ones, then the others with their install commands.

use super::Row;
use kvdyno_core::engine::Refused;
use kvdyno_measure::text::{NO_BREAK, Table, short_text, wrapped};
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

/// The width from which the list has all columns. In less, it has no versions and licences, and letters without spaces.
const COMPLETE: usize = 106;
/// Maximum width of versions and licences in the list. The version of a Go module can be a date and a hash.
const VERSION_COLUMNS: usize = 8;
const LICENCE_COLUMNS: usize = 15;
/// Their places among the cells of a row.
const VERSION_AND_LICENCE: std::ops::Range<usize> = 3..5;

/// The letters of the given capabilities, and `-` for each missing one.
fn letters(capabilities: &[String]) -> String {
    let letter = |(letter, name): &(char, &str)| {
        if capabilities.iter().any(|own| own == name) { *letter } else { '-' }
    };
    let groups = CAPABILITIES.iter().map(|group| group.iter().map(letter).collect::<String>());
    groups.collect::<Vec<_>>().join(" ")
}

/// The list as text. Only install commands and reasons may exceed the width.
pub(super) fn text(rows: &[Row], refused: &[Refused], width: usize) -> String {
    let is_complete = width >= COMPLETE;
    let (available, absent): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.engine.is_some());
    let mut out = String::new();
    let head = |first: &str| {
        [first, "family", "language", "version", "licence", "levels", "capabilities (proven)"]
            .map(String::from)
            .to_vec()
    };
    let mut table = Table::untitled(if is_complete { 7 } else { 5 });
    let mut push = |mut cells: Vec<String>| {
        if !is_complete {
            cells.drain(VERSION_AND_LICENCE);
        }
        table.push(cells);
    };
    push(head("available"));
    available.iter().for_each(|row| push(cells(row, is_complete)));
    push(head("not available"));
    absent.iter().for_each(|row| push(cells(row, is_complete)));
    let mut lines = table.lines().into_iter();
    // Writing to a String cannot fail.
    lines.by_ref().take(1 + available.len()).for_each(|line| {
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
    let _ = write!(out, "\n{}", legend(&available, width));
    out
}

/// The install command of an absent engine that is not built, and why it is absent.
fn install_text(row: &Row) -> String {
    let Some(absent) = &row.absent else { return String::new() };
    let reason = absent.reason.as_ref().map(|reason| format!("    reason: {reason}\n")).unwrap_or_default();
    if absent.is_built && !reason.is_empty() {
        return reason;
    }
    format!("    install: {}\n{reason}", absent.known.get)
}

fn cells(row: &Row, is_complete: bool) -> Vec<String> {
    let first_word = |text: &str| text.split_whitespace().next().unwrap_or("-").to_string();
    let licence = row.fact(|known| &known.licence);
    let licence = licence.replace(" OR ", "/").replace("-or-later", "+").replace("-only", "");
    let capabilities = match &row.proven {
        Some(proven) if is_complete => letters(&proven.capabilities),
        Some(proven) => letters(&proven.capabilities).replace(' ', ""),
        None => "not verified".to_string(),
    };
    vec![
        row.name.clone(),
        first_word(&row.family()),
        row.language(),
        short_text(&first_word(row.version.as_deref().unwrap_or("-")), VERSION_COLUMNS),
        short_text(&licence, LICENCE_COLUMNS),
        row.levels().map_or("-".to_string(), |levels| levels.join(" ")),
        capabilities,
    ]
}

/// The meaning of the letters, and further hints.
fn legend(available: &[&Row], width: usize) -> String {
    let all = CAPABILITIES.iter().flat_map(|group| group.iter());
    let meanings: Vec<String> = all.map(|(letter, name)| format!("{letter}{NO_BREAK}{name}")).collect();
    let list =
        |label: &str, names: &[String]| wrapped(label, &" ".repeat(label.len()), &names.join(", "), width);
    let mut text = list("capabilities: ", &meanings);
    let more = if width < COMPLETE { "version, licence, " } else { "" };
    let hint = format!(
        "`kvdyno engines NAME` shows {more}details and options of an engine; engines with planted bugs: mutant:FAULT"
    );
    text += &wrapped("", "  ", &hint, width);
    let defects = available.iter().filter(|row| row.known.is_some_and(|known| !known.defects.is_empty()));
    let defects: Vec<String> = defects.map(|row| row.name.clone()).collect();
    if !defects.is_empty() {
        text += &list("engines with known defects: ", &defects);
    }
    let unknown = |is_server: bool| -> Vec<String> {
        let rows = available.iter().filter(|row| row.version.is_none() && row.is_server() == is_server);
        rows.map(|row| row.name.clone()).collect()
    };
    for (label, names) in [
        ("no version reported in time: ", unknown(false)),
        ("servers (`kvdyno engines NAME` shows the version): ", unknown(true)),
    ] {
        if !names.is_empty() {
            text += &list(label, &names);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::engine::{Registry, abi, capability_names};
    use kvdyno_prove::proven::proven;
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
            | abi::KV_EVICTS
            | abi::KV_LIVE_STATS
            | abi::KV_NO_EMPTY_VALUES;
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
        for (rows, width) in [(&rows, 110), (&all_absent, 110), (&rows, 80), (&all_absent, 80)] {
            let text = text(rows, &[], width);
            let long: Vec<&str> =
                text.lines().filter(|line| line.len() > width && !line.starts_with("    ")).collect();
            assert!(long.is_empty(), "over {width} columns:\n{}", long.join("\n"));
            for row in rows {
                let line = text.lines().find(|line| line.split_whitespace().next() == Some(&row.name));
                let line = line.unwrap_or_else(|| panic!("no row of {}", row.name));
                assert!(proven(&row.name).is_some() || line.ends_with("not verified"), "{line}");
            }
        }
    }
}
