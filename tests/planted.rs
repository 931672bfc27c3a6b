//! Durability bugs that are planted in a store (tests/planted/ledger.c): each is found by the part of `kvdyno prove` that
//! results/planted-bugs.md names, and the store is not accused where it is right.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{build_driver, kvdyno};
use serde_json::Value;
use std::path::Path;

const SEED: u64 = 1;
const LOSSES: [&str; 7] = ["LOST", "HOLES", "DUPLICATE", "GARBAGE", "CHANGED", "OPEN-FAILED", "OPEN-HUNG"];
const SYNCS: &str = "--only syncs";
const KILL: &str = "--only crash --durability process --mode kill --rounds 40";
const CALLS: &str = "--only crash --durability process --mode calls";
const CUT: &str = "--only crash --durability power --mode cut --rounds 40";
const REPLAY: &str = "--only crash --durability power --mode replay --file-system ext4 --states 150";
const TEARS: &str = "--only crash --durability power --mode replay --file-system ext4 --states 300 --tears";

/// Classes of bugs that no other test plants, and what finds each.
const FEW: [(&str, &str); 7] = [
    ("skip-many", "--only syncs --ops 12000"),
    ("two-logs", CALLS),
    ("double-not-rewritten", CALLS),
    ("double-no-barrier", REPLAY),
    ("skip-reopened", REPLAY),
    ("short-ignored", "--only faults --faults write-short"),
    ("uring-ignored", "--only faults --faults disk-eio"),
];

const OTHERS: [(&str, &str); 33] = [
    ("no-sync", SYNCS),
    ("sync-other", REPLAY),
    ("sync-first", REPLAY),
    ("sync-range", SYNCS),
    ("timer", SYNCS),
    ("map-async", SYNCS),
    ("map-none", SYNCS),
    ("map-last", REPLAY),
    ("skip-16", SYNCS),
    ("skip-200", "--only syncs --ops 400"),
    ("skip-rows", "--only syncs --ops 2000"),
    ("skip-long", CUT),
    ("skip-overwrites", REPLAY),
    ("skip-large", REPLAY),
    // How often two commits meet depends on the machine: all states.
    ("group-joins", "--only crash --durability power --mode replay --file-system ext4 --states 5000"),
    ("direct-unflushed", SYNCS),
    ("direct-tail", CALLS),
    ("buffered", CALLS),
    ("by-thread-late", CALLS),
    ("sum-less", CALLS),
    // On a busy machine fewer commits are made before a kill, and fewer stale records are behind them.
    ("recycled", "--only crash --durability process --mode kill --rounds 400"),
    ("recover-in-place", CALLS),
    ("behind-torn", CALLS),
    ("no-deletes", CALLS),
    ("no-end-mark", CALLS),
    ("empties-early", CALLS),
    ("rename-unsynced", REPLAY),
    ("drops-concurrent", KILL),
    ("close-unsynced", REPLAY),
    ("in-place", CALLS),
    ("head-one-sync", REPLAY),
    ("wide-head", TEARS),
    ("uring-unsynced", REPLAY),
];

/// Ways that differ in which calls they make, and in whose thread.
const RIGHT: [&str; 12] = [
    "sound",
    "dsync",
    "direct",
    "rwf",
    "mapped",
    "syncfs",
    "by-thread",
    "group",
    "recycles",
    "heads",
    "double",
    "uring",
];

/// A folder in memory where there is one, with the store in `plugins`.
fn folder_with_ledger() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    build_driver(folder.path(), "planted/ledger.c");
    folder
}

/// What is wrong with a way of the store; `None` if this machine could not test all of it.
fn wrong(folder: &Path, way: &str, words: &str) -> Option<Vec<String>> {
    let option = format!("ledger --plugins plugins --option ledger.way={way}");
    let has_images = words.contains("crash") || words.contains("disk-eio");
    let images = if has_images { " --images images" } else { "" };
    let printed = kvdyno(folder, &format!("prove {words} {option} --seed {SEED}{images} --json"));
    let rows: Value = serde_json::from_str(&printed.stdout)
        .unwrap_or_else(|_| panic!("{way}: {words}: {}{}", printed.stdout, printed.stderr));
    let mut found = Vec::new();
    for row in rows.as_array().unwrap() {
        let skipped = |of: &Value| of["skipped"].as_str().or(of["unseen"].as_str()).map(String::from);
        let none = Vec::new();
        let cells = row["cells"].as_array().unwrap_or(&none);
        if let Some(reason) = cells.iter().chain([row]).find_map(skipped) {
            println!("SKIPPED: {way}: {words}: {reason}");
            let is_ring = way.starts_with("uring");
            assert!(is_ring || std::env::var("CI").as_deref() != Ok("true"), "{way}: {words}: {reason}");
            return None;
        }
        let points = row["points"].as_array().unwrap_or(&none).iter();
        found.extend(points.filter(|point| point["reaction"] == "broken").map(Value::to_string));
        found.extend((row["verdict"] == "contradicted").then(|| row["reason"].to_string()));
        if row["contradicted"].is_string() {
            let verdicts = cells.iter().filter_map(|cell| cell["verdicts"].as_object()).flatten();
            let lost = verdicts.filter(|(name, _)| LOSSES.contains(&name.as_str()));
            found.extend(lost.map(|(name, count)| format!("{name} {count}")));
        }
    }
    assert_eq!(
        printed.code,
        Some(if found.is_empty() { 0 } else { 3 }),
        "{way}: {words}: {}",
        printed.stderr
    );
    Some(found)
}

fn each_is_found(ways: &[(&str, &str)]) {
    let folder = folder_with_ledger();
    for (way, words) in ways {
        let Some(found) = wrong(folder.path(), way, words) else { continue };
        println!("{way}: {found:?}");
        assert!(!found.is_empty(), "seed {SEED}: {way} was not found by {words}");
    }
}

fn none_is_accused(ways: &[&str], crashes: &[&str]) {
    let folder = folder_with_ledger();
    for way in ways {
        for words in crashes {
            let found = wrong(folder.path(), way, words).unwrap_or_default();
            assert_eq!(found, Vec::<String>::new(), "seed {SEED}: {way} is right, but {words}");
        }
    }
}

#[test]
fn bugs_of_classes_that_no_other_test_plants_are_found() {
    each_is_found(&FEW);
}

#[test]
#[ignore = "takes minutes: `cargo test --test planted -- --ignored`"]
fn all_other_bugs_are_found() {
    each_is_found(&OTHERS);
}

#[test]
fn right_ways_to_write_are_not_accused() {
    let some = [
        "--only crash --durability power --mode kill --rounds 8",
        "--only crash --durability power --mode replay --file-system ext4 --states 30",
    ];
    none_is_accused(&RIGHT, &some);
}

#[test]
#[ignore = "takes minutes: `cargo test --test planted -- --ignored`"]
fn right_ways_to_write_are_not_accused_by_many_crashes() {
    none_is_accused(&RIGHT, &[SYNCS, KILL, CALLS, CUT, REPLAY, TEARS, "--only faults"]);
}
