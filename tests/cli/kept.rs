//! Databases that are kept by one run and started on by others, with every value still checked; and what is refused.

use super::command::{Printed, kvdyno, prepared};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SMALL: &str = "--keys 3000 --ops 3000 --runs 2 --quiet";

fn sound(folder: &Path, words: &str) -> Printed {
    let printed = kvdyno(folder, words);
    assert_eq!(printed.code, Some(0), "{words}\n{}\n{}", printed.stderr, printed.stdout);
    printed
}

fn refused(folder: &Path, words: &str, wanted: &str) {
    let printed = kvdyno(folder, words);
    assert_eq!(printed.code, Some(2), "{words}\n{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stderr.contains(wanted), "{words}\nwanted {wanted}\ngot {}", printed.stderr);
}

/// The records of the newest run, without the floor's.
fn records(folder: &Path) -> Vec<serde_json::Value> {
    let report = kvdyno(folder, "report --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let records = json["records"].as_array().unwrap().iter();
    records.filter(|record| record["trial"]["engine"] != "null").cloned().collect()
}

#[test]
fn a_database_that_its_level_keeps_in_memory_is_not_kept() {
    let top = tempfile::tempdir().unwrap();
    let run = format!("run ycsb-a --engines memory-btree --durability none {SMALL} --keep db");
    let printed = sound(top.path(), &run);
    assert!(printed.stderr.contains("not kept: memory-btree-ycsb-a"), "{}", printed.stderr);
    let run = format!("run ycsb-a --engines memory-btree --durability process {SMALL} --keep other");
    let printed = sound(top.path(), &run);
    assert!(printed.stderr.contains("kept in other: memory-btree-ycsb-a"), "{}", printed.stderr);
}

#[test]
fn what_one_run_has_loaded_others_start_on() {
    let top = tempfile::tempdir().unwrap();
    let printed =
        sound(top.path(), &format!("run ycsb-a --engines redb,lmdb,sqlite,fjall,sled {SMALL} --keep db"));
    let kept = "kept in db: fjall-ycsb-a, lmdb-ycsb-a, redb-ycsb-a, sled-ycsb-a, sqlite-ycsb-a";
    assert!(printed.stderr.contains(kept), "{}", printed.stderr);
    // Twice the same, and another workload on the same rows, whose inserts go on behind them.
    for workload in ["ycsb-a", "ycsb-a", "ycsb-d"] {
        let printed = sound(top.path(), &format!("run {workload} --reuse db {SMALL} --full"));
        assert!(printed.stdout.contains("started from copies of kept databases"), "{}", printed.stdout);
        let records = records(top.path());
        assert_eq!(records.len(), 10, "all five engines that were kept, twice");
        for record in records {
            let (load, run) = (&record["phases"][0], &record["phases"][1]);
            assert_eq!(load["not_run"], "the database was reused");
            assert_eq!((&run["not_run"], &run["ops"]), (&serde_json::Value::Null, &3000.into()), "{run}");
            assert_eq!(run["check"]["level"], "full");
            assert!(run["check"]["values"].as_u64().unwrap() > 0, "{}", run["check"]);
            let names: Vec<_> =
                record["steps"].as_array().unwrap().iter().map(|step| &step["name"]).collect();
            assert_eq!(names[0], "open");
        }
    }
    let report = kvdyno(top.path(), "report --full");
    assert!(report.stdout.contains("--reuse db"), "{}", report.stdout);
    // What it leaves may be kept again, elsewhere.
    sound(top.path(), &format!("run ycsb-d --reuse db/redb-ycsb-a {SMALL} --keep more"));
    sound(top.path(), &format!("run ycsb-d --reuse more {SMALL}"));
}

#[test]
fn an_engine_that_cannot_do_what_follows_says_so_and_not_that_its_load_was_left_out() {
    let top = tempfile::tempdir().unwrap();
    sound(
        top.path(),
        &format!("run read-random --engines memory-map {SMALL} --durability process --keep db"),
    );
    let printed = kvdyno(top.path(), &format!("run scan-short --reuse db {SMALL} --durability process"));
    let records = records(top.path());
    assert_eq!(records[0]["phases"][0]["not_run"], "the database was reused", "{}", printed.stderr);
    assert_eq!(records[0]["outcome"]["text"], "the engine has no ordered scans", "{}", printed.stdout);
}

#[test]
fn rows_that_are_not_those_of_the_state_are_wrong_answers() {
    let top = tempfile::tempdir().unwrap();
    sound(top.path(), &format!("run ycsb-a --engines redb {SMALL} --keep new"));
    sound(top.path(), "run ycsb-a --engines redb --keys 3000 --ops 10 --runs 1 --quiet --keep old");
    // Older rows under a newer state: the versions that were acknowledged are gone.
    let (new, old) = (top.path().join("new/redb-ycsb-a"), top.path().join("old/redb-ycsb-a"));
    let state = |folder: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.join("state.json")).unwrap()).unwrap()
    };
    let mut mixed = state(&new);
    mixed["disk"] = state(&old)["disk"].clone();
    std::fs::remove_dir_all(new.join("db")).unwrap();
    std::fs::rename(old.join("db"), new.join("db")).unwrap();
    std::fs::write(new.join("state.json"), mixed.to_string()).unwrap();
    let printed = kvdyno(top.path(), &format!("run ycsb-c --reuse new {SMALL}"));
    assert_eq!(printed.code, Some(3), "{}\n{}", printed.stderr, printed.stdout);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_run() {
    let top = tempfile::tempdir().unwrap();
    let small = "--keys 2000 --ops 100 --runs 1 --quiet";
    let run = |words: &str| format!("run {words} {small}");
    refused(
        top.path(),
        &run("ycsb-a --engines example --keep db"),
        "example is an in-memory engine: it has no database",
    );
    refused(top.path(), &run("ycsb-a --engines redb --reuse db"), "cannot read db");
    sound(top.path(), &run("ycsb-a --engines redb --keep db"));
    let db = top.path().join("db");
    for (words, wanted) in [
        ("ycsb-a --engines redb --keep db", "--keep: db/redb-ycsb-a already exists"),
        ("ycsb-a --engines sled --reuse db", "there is no kept database of sled (available: redb)"),
        ("ycsb-a --reuse db --value-size 7", "does not fit: its value.size is 1000, not 7"),
        ("ycsb-a --reuse db --seed 2", "does not fit: its seed is 1, not 2"),
        ("fill-random --reuse db", "does not fit: its key."),
        ("ycsb-a --engines redb --reuse elsewhere", "cannot read elsewhere"),
    ] {
        refused(top.path(), &run(words), wanted);
    }
    let elsewhere = "run ycsb-a --reuse db --keys 1000 --ops 100 --runs 1 --quiet";
    refused(top.path(), elsewhere, "does not fit: its keys is 2000, not 1000");
    // A run is resumed as it began.
    refused(top.path(), "run --resume --reuse db --quiet", "this run fills its own databases");
    std::fs::write(db.join("redb-ycsb-a/db/more"), b"x").unwrap();
    refused(top.path(), &run("ycsb-a --reuse db"), "have changed since it was kept");
    std::fs::remove_file(db.join("redb-ycsb-a/state.json")).unwrap();
    refused(top.path(), &run("ycsb-a --reuse db"), "no kept databases in db");
}

/// Kills the process of a trial, in a folder, of the task that is named so; false: there is none.
fn kill_trial(folder: &Path, name: &str) -> bool {
    let folder = folder.canonicalize().unwrap();
    let mut all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.find(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&format!("-{name}-1/task.json"))
            && fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place == folder)
    });
    let number = found.and_then(|entry| entry.file_name().into_string().ok());
    number.is_some_and(|number| Command::new("kill").args(["-9", &number]).status().unwrap().success())
}

#[test]
fn a_trial_that_fails_leaves_nothing_to_start_on() {
    let top = tempfile::tempdir().unwrap();
    let words = "run ycsb-a --engines redb --runs 1 --quiet --keep db";
    let run = prepared(top.path(), words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !kill_trial(top.path(), "redb-ycsb-a") {
        assert!(begun.elapsed() < Duration::from_secs(300), "its trial was not seen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let printed: Printed = run.wait_with_output().unwrap().into();
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stderr.contains("not kept: redb-ycsb-a: no trial was successful"), "{}", printed.stderr);
    assert!(!top.path().join("db/redb-ycsb-a").exists());
}
