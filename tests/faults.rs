//! `kvdyno prove --only faults`: planted engines that ignore errors are caught, sound ones raise no alarm, and an engine that hangs or dies
//! costs a cell.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, build_driver, kvdyno};
use serde_json::Value;
use std::path::Path;

fn tested(folder: &Path, words: &str) -> (Vec<Value>, Printed) {
    let printed = kvdyno(folder, &format!("prove --only faults {words} --json"));
    let rows = serde_json::from_str(&printed.stdout).unwrap_or(Value::Null);
    assert!(!folder.join("kvdyno-results/faults").exists(), "{words}: databases were left");
    (rows.as_array().cloned().unwrap_or_default(), printed)
}

/// Whether this machine has the filter; prints why not.
fn has_filter(folder: &Path) -> bool {
    let (rows, printed) = tested(folder, "memory-btree --faults sync-eio --points 1");
    let row = rows.first().unwrap_or_else(|| panic!("no row: {}", printed.stderr));
    let has_filter = row["skipped"].is_null();
    assert!(has_filter || std::env::var("CI").as_deref() != Ok("true"), "CI needs the seccomp filter: {row}");
    if !has_filter {
        println!("skipped: {}", row["skipped"]);
    }
    has_filter
}

/// The reactions of a row, without repetitions, and the texts of those that are not `reported`.
fn reactions(row: &Value) -> (Vec<&str>, Vec<&str>) {
    let points = row["points"].as_array().unwrap();
    let mut all: Vec<&str> = points.iter().map(|point| point["reaction"].as_str().unwrap()).collect();
    all.sort_unstable();
    all.dedup();
    let odd = points.iter().filter(|point| point["reaction"] != "reported");
    (all, odd.map(|point| point["text"].as_str().unwrap()).collect())
}

#[test]
fn an_ignored_error_is_caught_and_a_reported_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "faults/careless.c");
    if !has_filter(folder.path()) {
        return;
    }
    let row = |ignores: &str, fault: &str, words: &str| {
        let words = format!(
            "careless --plugins plugins --option careless.ignores={ignores} --faults {fault} --seed 3 {words}"
        );
        let (mut rows, printed) = tested(folder.path(), &words);
        assert_eq!(rows.len(), 1, "{words}: {}{}", printed.stdout, printed.stderr);
        (rows.remove(0), printed.code)
    };
    for fault in ["sync-eio", "write-eio", "read-eio", "enospc", "emfile", "write-eintr", "write-short"] {
        let (sound, code) = row("none", fault, "--points 12");
        assert_eq!((reactions(&sound).0, code), (vec!["reported"], Some(0)), "seed 3: {sound}");
        assert!(sound["calls"].as_u64() > Some(0), "{sound}");
    }
    for (ignores, fault, words, reaction, text) in [
        ("sync", "sync-eio", "", "broken", "was acknowledged although its sync failed"),
        // Without a sync there is no such call.
        ("sync", "sync-eio", "--durability process", "", ""),
        ("write", "write-eio", "", "broken", ""),
        ("write", "enospc", "", "broken", ""),
        ("write", "write-short", "", "broken", ""),
        ("read", "read-eio", "", "broken", "was acknowledged and is not found"),
        ("open", "emfile", "", "broken", "was acknowledged and is not found"),
        // Found only because commits are made after the one that failed.
        ("torn", "write-eio", "", "broken", ""),
        ("hangs", "write-eio", "--durability process --stall-seconds 8", "hung", "no progress for 8 s"),
        ("exits", "write-eio", "", "crashed", "exit code 7"),
    ] {
        let (found, code) = row(ignores, fault, words);
        let (mut all, mut texts) = reactions(&found);
        // A sync of a group fails, and a later one of the same group does not.
        if ignores == "sync" {
            all.retain(|reaction| *reaction != "repeated");
            texts.retain(|text| !text.ends_with("pages may be lost"));
        }
        // A later commit may put a whole row over the half.
        if fault == "write-short" {
            all.retain(|reaction| *reaction != "absorbed");
            texts.retain(|text| !text.is_empty());
        }
        let wanted: &[&str] = if reaction.is_empty() { &[] } else { &[reaction] };
        assert_eq!(all, wanted, "seed 3: ignores {ignores}: {found}");
        assert!(texts.iter().all(|found| found.contains(text)), "seed 3: ignores {ignores}: {found}");
        assert_eq!(code, Some(if reaction == "broken" { 3 } else { 0 }), "ignores {ignores}: {found}");
    }
}

#[test]
fn a_database_that_was_not_closed_before_is_tested_too() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "faults/careless.c");
    if !has_filter(folder.path()) {
        return;
    }
    let words =
        "careless --plugins plugins --option careless.ignores=tail --faults read-eio --seed 3 --points 12";
    let (rows, printed) = tested(folder.path(), words);
    assert_eq!(printed.code, Some(3), "seed 3: {}{}", printed.stdout, printed.stderr);
    let points = rows[0]["points"].as_array().unwrap();
    assert_eq!(points.iter().filter(|point| point["after_kill"] == true).count(), 6, "seed 3: {}", rows[0]);
    let broken: Vec<&Value> = points.iter().filter(|point| point["reaction"] == "broken").collect();
    assert!(!broken.is_empty(), "seed 3: {}", rows[0]);
    // A close has left nothing to recover.
    assert!(broken.iter().all(|point| point["after_kill"] == true), "seed 3: {}", rows[0]);
}

#[test]
fn a_sync_that_is_repeated_after_it_has_failed_is_not_absorbed() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "faults/careless.c");
    if !has_filter(folder.path()) {
        return;
    }
    let words = "prove --only faults careless --plugins plugins --option careless.ignores=repeats --faults sync-eio --seed 3";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "seed 3: {}{}", printed.stdout, printed.stderr);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for wanted in ["power repeated", "failed and a later one did not: pages may be lost."] {
        assert!(text.contains(wanted), "seed 3: {wanted}: {}", printed.stdout);
    }
}

#[test]
fn nothing_is_said_of_an_engine_whose_calls_cannot_be_made_to_fail() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "faults/careless.c");
    if !has_filter(folder.path()) {
        return;
    }
    let words = "prove --only faults careless,memory-map --plugins plugins --option careless.ignores=ring --faults sync-eio,write-eio \
                 --points 1";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for wanted in [
        "careless 1 power not observed not observed",
        "careless: not observed: it reads or writes through io_uring",
    ] {
        assert!(text.contains(wanted), "{wanted}: {}", printed.stdout);
    }
}

#[test]
fn the_reference_engines_break_nothing_wherever_a_call_fails() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    for (seed, level) in [(5, "power"), (6, "process")] {
        let words = format!("memory-btree,memory-map --points 25 --seed {seed} --durability {level}");
        let (rows, printed) = tested(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{words}: {}{}", printed.stdout, printed.stderr);
        assert_eq!(rows.len(), 18);
        for row in rows {
            let tried = row["points"].as_array().unwrap().len() as u64;
            // Of the writes of a disk only those of files count.
            let is_of_disk = row["fault"] == "disk-eio";
            assert!(is_of_disk || tried == row["calls"].as_u64().unwrap().min(25), "{words}: {row}");
            let all = reactions(&row).0;
            assert!(all.iter().all(|one| ["reported", "absorbed"].contains(one)), "{words}: {row}");
        }
    }
}

/// A known case in an engine that is always built: canopydb takes a log that it cannot read for its end.
#[test]
fn an_engine_that_drops_its_log_after_a_read_error_is_found() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    let (rows, printed) = tested(folder.path(), "canopydb --faults read-eio --seed 1");
    assert_eq!(printed.code, Some(3), "seed 1: {}{}", printed.stdout, printed.stderr);
    let (all, texts) = reactions(&rows[0]);
    assert!(all.contains(&"broken"), "seed 1: {}", rows[0]);
    assert!(texts.iter().any(|text| text.contains("was acknowledged and is not found")), "{texts:?}");
}

/// A filter makes only the call fail, and the page cache keeps what was written. With a disk it is gone after the first failed sync.
#[test]
fn what_a_disk_did_not_write_is_lost_by_engines_that_ignore_a_failed_sync_or_repeat_it() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "faults/careless.c");
    if !has_filter(folder.path()) {
        return;
    }
    for (ignores, expected) in [("none", "reported"), ("repeats", "broken"), ("sync", "broken")] {
        let words = format!(
            "careless --plugins plugins --option careless.ignores={ignores} --faults disk-eio --seed 3 --images images"
        );
        let (rows, printed) = tested(folder.path(), &words);
        let row = rows.first().unwrap_or_else(|| panic!("{words}: {}", printed.stderr));
        if let Some(reason) = row["skipped"].as_str() {
            println!("SKIPPED: {words}: {reason}");
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "CI needs FUSE, loop devices and mkfs: {reason}"
            );
            return;
        }
        let points = row["points"].as_array().unwrap();
        let (all, texts) = reactions(row);
        assert!(points.len() >= 2 && all.contains(&expected), "seed 3: {words}: {row}");
        assert_eq!(printed.code, Some(if expected == "broken" { 3 } else { 0 }), "seed 3: {words}: {row}");
        // A later commit may write the same page again.
        let others = all.iter().filter(|one| **one != expected && **one != "absorbed");
        assert_eq!(others.count(), 0, "seed 3: {words}: {row}");
        assert!(expected != "broken" || texts.iter().any(|text| text.contains("no error before")), "{row}");
    }
    // Below that level no commit waits for the disk.
    let (rows, _) = tested(folder.path(), "memory-btree --durability process --faults disk-eio");
    assert_eq!(
        (&rows[0]["points"], &rows[0]["skipped"]),
        (&serde_json::json!([]), &Value::Null),
        "{}",
        rows[0]
    );
}

#[test]
fn the_matrix_has_a_row_for_each_engine_and_says_what_was_not_tested() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "faults/careless.c");
    if !has_filter(folder.path()) {
        return;
    }
    let words = "prove --only faults memory-btree,careless,null --plugins plugins --points 2 --option careless.ignores=write";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(3), "{}{}", printed.stdout, printed.stderr);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for wanted in [
        "engine version level sync-eio write-eio read-eio enospc emfile write-eintr map-enomem write-short disk-eio",
        "memory-btree 0.1.0 power reported",
        "careless 1 power reported BROKEN reported BROKEN reported BROKEN -",
        "careless, write-eio, call 1 of ",
    ] {
        assert!(text.contains(wanted), "{wanted}:\n{}", printed.stdout);
    }
}

#[test]
fn wrong_words_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (words, hint) in [
        ("no-such-engine", "unknown engine"),
        ("memory-btree --faults fire", "`fire` is no fault; expected one of sync-eio, write-eio"),
        ("memory-btree --durability default", "name none, process or power"),
        ("memory-btree --durability often", "unknown durability level `often`"),
        ("memory-btree --points 0", "a whole number from 1 to 100000"),
        ("null", "none of these engines stores anything"),
        ("memory-btree --faults sync-eio --images images", "--images: no selected part uses it"),
        ("sled --durability power", "none of these engines stores anything"),
    ] {
        let printed = kvdyno(folder.path(), &format!("prove --only faults {words}"));
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(hint), "{words}: {}", printed.stderr);
    }
}
