//! `kvdyno prove --only crash`: engines keep after a crash what they claim, planted and known faults are found, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, build_driver, kvdyno, prepared};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Runs the command with a seed that the messages of failed tests name.
fn crashed(folder: &Path, words: &str) -> (Vec<Value>, Printed) {
    let printed = kvdyno(folder, &format!("prove --only crash {words} --seed {SEED} --images images --json"));
    let groups = serde_json::from_str(&printed.stdout).unwrap_or(Value::Null);
    assert!(!folder.join("kvdyno-results/crash").exists(), "{words}: databases were left");
    assert_eq!(leftovers(&folder.join("images")), Vec::<String>::new(), "{words}");
    (groups.as_array().cloned().unwrap_or_default(), printed)
}

const SEED: u64 = 100;

/// A folder in memory where there is one, because syncs of a disk take most of the time otherwise.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// What is left of volumes: files in the folder of images, and loop devices over them.
fn leftovers(images: &Path) -> Vec<String> {
    let files = std::fs::read_dir(images).into_iter().flatten().flatten();
    let mut left: Vec<String> = files.map(|entry| entry.path().display().to_string()).collect();
    for device in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if Path::new(file.trim_end()).starts_with(images) {
            left.push(format!("{}: {file}", device.path().display()));
        }
    }
    left
}

/// The records of 24 kills of an engine that loses nothing.
fn kills(folder: &Path) -> Vec<Value> {
    let (groups, printed) = crashed(folder, "memory-btree --mode kill --durability process --rounds 24");
    assert_eq!(printed.code, Some(0), "seed {SEED}: {}{}", printed.stdout, printed.stderr);
    cells(&groups[0], "kill")[0]["rounds"].as_array().unwrap().clone()
}

/// The cells of a group, without those that were skipped for the lack of a capability of this machine.
fn cells<'g>(group: &'g Value, mode: &str) -> Vec<&'g Value> {
    let all = group["cells"].as_array().unwrap().iter();
    all.filter(|cell| cell["mode"] == mode).collect()
}

/// Runs rounds with further seeds until one of the verdicts is found; returns the exit code of that command. A crash at a random moment
/// may miss what is to be found.
fn until_found(folder: &Path, words: &str, mode: &str, verdicts: &[&str]) -> Option<i32> {
    const ROUNDS: u64 = 8;
    const ATTEMPTS: u64 = 8;
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        let seed = SEED + attempt * ROUNDS;
        let words = format!("{words} --mode {mode} --rounds {ROUNDS} --seed {seed} --images images --json");
        let printed = kvdyno(folder, &format!("prove --only crash {words}"));
        let groups: Value = serde_json::from_str(&printed.stdout).unwrap_or(Value::Null);
        if count(&groups[0]["cells"][0], verdicts) > 0 {
            return printed.code;
        }
        last = format!("{}{}", printed.stdout, printed.stderr);
    }
    panic!(
        "{words} --mode {mode}, seeds {SEED} to {}: none of {verdicts:?}: {last}",
        SEED + ATTEMPTS * ROUNDS
    )
}

/// How many rounds of a cell ended with one of the verdicts.
fn count(cell: &Value, verdicts: &[&str]) -> u64 {
    verdicts.iter().map(|verdict| cell["verdicts"][verdict].as_u64().unwrap_or(0)).sum()
}

const LOSSES: [&str; 7] = ["LOST", "HOLES", "DUPLICATE", "GARBAGE", "CHANGED", "OPEN-FAILED", "OPEN-HUNG"];

/// The file systems that this machine and user can cut off; prints why not for each other one.
fn cuttable(folder: &Path) -> Vec<String> {
    let (groups, printed) = crashed(folder, "memory-btree --mode cut --durability power --rounds 1");
    let group = groups.first().unwrap_or_else(|| panic!("no group: {}", printed.stderr));
    let mut able = Vec::new();
    for cell in cells(group, "cut") {
        let kind = cell["file_system"].as_str().unwrap();
        match cell["skipped"].as_str() {
            None => able.push(kind.to_string()),
            Some(reason) => println!("SKIPPED: power cuts on {kind}: {reason}"),
        }
    }
    able
}

/// Whether an engine can be opened here; prints why not.
fn is_available(folder: &Path, name: &str) -> bool {
    let printed = kvdyno(folder, &format!("engines {name}"));
    let is_here =
        kvdyno(folder, &format!("prove --only crash {name} --mode kill --rounds 1 --json")).code != Some(4);
    let must = std::env::var("CI").as_deref() == Ok("true");
    assert!(is_here || !must, "CI needs {name}: {}", printed.stdout);
    if !is_here {
        println!("SKIPPED: {name} is not available");
    }
    is_here
}

#[test]
fn the_reference_engine_keeps_its_levels() {
    let folder = fast_folder();
    let (groups, printed) = crashed(
        folder.path(),
        "memory-btree --mode kill,cut --durability process,power --rounds 12 --image-size 320M",
    );
    assert_eq!(printed.code, Some(0), "seed {SEED}: {}{}", printed.stdout, printed.stderr);
    assert_eq!(groups.len(), 2);
    for group in &groups {
        for cell in cells(group, "kill") {
            assert_eq!(count(cell, &["OK"]), 12, "seed {SEED}: {cell}");
            assert!((0.25..0.5).contains(&cell["bound"].as_f64().unwrap()), "{cell}");
        }
        let is_power = group["level"] == "power";
        for cell in cells(group, "cut").into_iter().filter(|cell| cell["skipped"].is_null()) {
            assert!(!is_power || count(cell, &LOSSES) == 0, "seed {SEED}: {cell}");
            assert!(cell["rounds"].as_array().unwrap().iter().all(|round| round["mount_ns"].is_u64()));
        }
        let class = group["class"].as_str().unwrap();
        let expected = if cuttable(folder.path()).is_empty() {
            "survives-kill"
        } else if is_power {
            "loses-nothing"
        } else {
            "cut-loses-end"
        };
        assert_eq!(class, expected, "seed {SEED}: {group}");
        assert_eq!(group["contradicted"], Value::Null);
    }
}

#[test]
fn every_fault_that_a_kill_shows_is_found() {
    let folder = fast_folder();
    for (fault, level, verdict) in [
        ("acknowledges-before-write", "process", "LOST"),
        ("crash-loses-tail", "power", "LOST"),
        ("crash-loses-creation", "power", "LOST"),
        ("crash-leaves-holes", "power", "HOLES"),
        ("crash-halves-transaction", "power", "HOLES"),
    ] {
        let words = format!("mutant:{fault} --mode kill --durability {level} --rounds 8");
        let (groups, printed) = crashed(folder.path(), &words);
        assert_eq!(printed.code, Some(3), "seed {SEED}: {fault}: {}", printed.stdout);
        let cell = cells(&groups[0], "kill")[0];
        assert!(count(cell, &[verdict]) > 0, "seed {SEED}: {fault}: {cell}");
        assert!(groups[0]["contradicted"].is_string());
        if fault == "crash-halves-transaction" {
            let text = cell["rounds"].to_string();
            assert!(text.contains("part of a transaction"), "seed {SEED}: {text}");
        }
    }
}

#[test]
fn faults_that_only_a_second_crash_shows_are_found() {
    let folder = fast_folder();
    for (fault, verdict) in [("crash-writes-behind-torn", "LOST"), ("crash-forgets-repair", "HOLES")] {
        let words = format!("mutant:{fault} --mode kill --durability power --rounds 24");
        let (groups, printed) = crashed(folder.path(), &words);
        assert_eq!(printed.code, Some(3), "seed {SEED}: {fault}: {}", printed.stdout);
        let cell = cells(&groups[0], "kill")[0];
        assert!(count(cell, &[verdict]) > 0, "seed {SEED}: {fault}: {cell}");
        for round in cell["rounds"].as_array().unwrap().iter().filter(|round| round["verdict"] != "ok") {
            assert!(round["again"]["commits"].as_u64() > Some(0), "seed {SEED}: {fault}: {round}");
        }
    }
}

/// The stages of all rounds of a cell, with their numbers.
fn stages(cell: &Value) -> [u64; 3] {
    let of = |names: &[&str]| names.iter().map(|name| cell["stages"][name].as_u64().unwrap_or(0)).sum();
    [of(&["create"]), of(&["maintain", "close", "reopen"]), of(&["run"])]
}

#[test]
fn the_stages_that_are_crashed_have_the_drawn_shares_whether_commits_are_fast_or_slow() {
    const ROUNDS: u64 = 24;
    let folder = fast_folder();
    build_driver(folder.path(), "cli/forgetful.c");
    // A commit of the second takes as long as one on a disk that syncs 50 times in a second.
    for words in ["memory-btree", "forgetful --plugins plugins --option forgetful.fault=slow-put"] {
        let words = format!(
            "prove --only crash {words} --mode kill --durability process --rounds {ROUNDS} --seed {SEED} --json"
        );
        let printed = kvdyno(folder.path(), &words);
        let groups: Value =
            serde_json::from_str(&printed.stdout).unwrap_or_else(|_| panic!("{}", printed.stderr));
        let cell = &groups[0]["cells"][0];
        let found = stages(cell);
        assert_eq!(found, DRAWN, "seed {SEED}: {words}: {}", cell["stages"]);
        let by_time = |round: &&Value| round["is_by_time"] == true;
        assert_eq!(
            cell["rounds"].as_array().unwrap().iter().filter(by_time).count(),
            0,
            "seed {SEED}: {words}"
        );
    }
}

/// Rounds that [`SEED`] and the 23 seeds after it crash while the database is created, is maintained, closed or reopened, and while
/// commits are made.
const DRAWN: [u64; 3] = [7, 8, 9];

#[test]
fn a_process_that_makes_no_progress_is_crashed_by_time_and_that_is_said() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/forgetful.c");
    // Seed 112 is crashed after some commits; none is ever acknowledged.
    let words = "prove --only crash forgetful --mode kill --durability process --rounds 1 --seed 112 --plugins plugins \
                 --option forgetful.fault=hang-first-put";
    let printed = kvdyno(folder.path(), words);
    assert!(
        printed.stdout.contains("1 of 1 rounds were cut short by time"),
        "{}{}",
        printed.stdout,
        printed.stderr
    );
}

#[test]
fn large_rounds_write_thousands_of_rows_and_set_only_options_that_the_engine_has() {
    let folder = fast_folder();
    let rounds = kills(folder.path());
    let large: Vec<&Value> = rounds.iter().filter(|round| round["keys"] == 5000).collect();
    assert!(!large.is_empty(), "seed {SEED}: {rounds:?}");
    assert!(large.iter().any(|round| round["rows"].as_u64() > Some(2000)), "seed {SEED}: {large:?}");
    assert!(large.iter().all(|round| round["options"].is_null()), "seed {SEED}: {large:?}");
}

#[test]
fn half_of_the_kills_after_commits_are_within_one() {
    let folder = fast_folder();
    let rounds = kills(folder.path());
    let within: Vec<&Value> = rounds.iter().filter(|round| round["is_in_commit"] == true).collect();
    assert!(!within.is_empty() && within.len() < rounds.len(), "seed {SEED}: {rounds:?}");
    assert!(within.iter().all(|round| round["stage"] == "run"), "seed {SEED}: {within:?}");
    assert!(rounds.iter().any(|round| round["threads"] == 1), "seed {SEED}: {rounds:?}");
}

#[test]
fn every_fault_that_a_power_cut_shows_is_found() {
    let folder = fast_folder();
    for kind in cuttable(folder.path()) {
        for fault in
            ["acknowledges-before-sync", "lies-about-level", "crash-loses-tail", "crash-leaves-holes"]
        {
            let words = format!("mutant:{fault} --file-system {kind} --durability power");
            assert_eq!(until_found(folder.path(), &words, "cut", &LOSSES), Some(3), "{fault} on {kind}");
        }
    }
}

#[test]
fn engines_that_are_known_to_lose_or_corrupt_are_found() {
    let folder = fast_folder();
    let kinds = cuttable(folder.path());
    let lossy = |words: &str, mode: &str, verdicts: &[&str]| {
        // None of these claims what it does not keep.
        assert_eq!(until_found(folder.path(), words, mode, verdicts), Some(0), "{words}");
    };
    if is_available(folder.path(), "berkeleydb") {
        lossy("berkeleydb --durability none", "kill", &["LOST"]);
    }
    if is_available(folder.path(), "kyotocabinet") {
        lossy("kyotocabinet --durability none", "kill", &["LOST", "HOLES"]);
    }
    if is_available(folder.path(), "sled") {
        lossy("sled --durability none", "kill", &["LOST"]);
    }
    for kind in &kinds {
        if is_available(folder.path(), "sled") {
            lossy(&format!("sled --durability process --file-system {kind}"), "cut", &LOSSES);
        }
        if is_available(folder.path(), "lmdb") {
            lossy(&format!("lmdb --durability process --file-system {kind}"), "cut", &LOSSES[1..]);
        }
    }
}

#[test]
fn an_engine_that_claims_power_keeps_it() {
    let folder = fast_folder();
    for name in ["redb", "lmdb"] {
        if is_available(folder.path(), name) {
            let words = format!("{name} --mode kill,cut --durability power --rounds 6");
            let (_, printed) = crashed(folder.path(), &words);
            assert_eq!(printed.code, Some(0), "seed {SEED}: {}{}", printed.stdout, printed.stderr);
        }
    }
}

#[test]
fn what_cannot_be_tested_is_skipped_with_the_reason_and_the_rest_runs() {
    let folder = fast_folder();
    let words =
        "memory-btree --durability power --rounds 1 --states 1 --file-system xfs,ext4 --image-size 1M";
    let (groups, printed) = crashed(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    let reasons: Vec<&str> =
        cells(&groups[0], "cut").iter().map(|cell| cell["skipped"].as_str().unwrap()).collect();
    assert!(reasons.iter().all(|reason| reason.contains("needs an image of at least")), "{reasons:?}");
    for cell in cells(&groups[0], "replay") {
        let reason = cell["skipped"].as_str().unwrap();
        assert!(reason.contains("needs an image of at least"), "{reason}");
    }
    assert_eq!(count(cells(&groups[0], "kill")[0], &["OK"]), 1);
    let (groups, _) = crashed(folder.path(), "memory-btree --durability none --rounds 1 --states 1");
    for cell in cells(&groups[0], "kill") {
        assert_eq!(cell["skipped"], "it keeps its data in memory only");
    }
    let (groups, _) = crashed(folder.path(), "null --rounds 1 --states 1");
    assert_eq!(groups[0]["class"], Value::Null);
    let btrfs = "memory-btree --mode cut --durability power --rounds 1 --file-system btrfs";
    let (groups, _) = crashed(folder.path(), btrfs);
    assert!(cells(&groups[0], "cut")[0]["skipped"].is_string(), "{groups:?}");
}

#[test]
fn wrong_words_are_refused_before_anything_runs() {
    let folder = fast_folder();
    for (words, hint) in [
        ("", "ENGINE"),
        ("no-such-engine", "unknown engine"),
        ("memory-btree --mode pause", "expected `kill`, `calls`, `cut` or `replay`"),
        ("memory-btree --mode kill,calls --call 3", "add --mode calls"),
        ("memory-btree --mode calls --call 3,0", "expected the number of a call, as in `57`"),
        ("memory-btree --mode replay --states 0", "a whole number from 1 to "),
        ("memory-btree --mode replay --states 9 --state 9", "there is no state 9 of 9"),
        ("memory-btree --mode cut --state 1", "add --mode replay"),
        ("memory-btree --durability default", "name none, process or power"),
        ("memory-btree --file-system ../x", "expected ext4, ext4-writeback, xfs or btrfs"),
        ("memory-btree --file-system ext4,ext2", "(ext2 has no journal)"),
        ("memory-btree --rounds 0", "a whole number from 1 to "),
        ("null --durability power", "none of these engines has a level"),
    ] {
        let printed = kvdyno(folder.path(), &format!("prove --only crash {words}"));
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(hint), "{words}: {}", printed.stderr);
    }
}

/// Waits until a condition is met; fails after a minute.
fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_met() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} took over a minute");
        std::thread::yield_now();
    }
}

/// A command that runs until it is stopped.
const LONG: &str = "prove --only crash memory-btree --durability power --rounds 1000000 --images images";

#[test]
fn an_interrupted_command_leaves_nothing() {
    let folder = fast_folder();
    let images = folder.path().join("images");
    let modes = if cuttable(folder.path()).is_empty() { "kill" } else { "cut" };
    let mut command = prepared(folder.path(), &format!("{LONG} --mode {modes} --keep kept"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_at_work = || match modes {
        "kill" => {
            folder.path().join("kvdyno-results/crash").read_dir().is_ok_and(|mut all| all.next().is_some())
        }
        _ => leftovers(&images).len() > 1,
    };
    until("the first round", is_at_work);
    let signalled = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signalled.unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(leftovers(&images), Vec::<String>::new());
    assert!(!folder.path().join("kvdyno-results/crash").exists());
    assert_eq!(leftovers(&folder.path().join("kept")), Vec::<String>::new(), "the copy of a round is left");
}

#[test]
fn what_a_killed_command_has_left_is_removed_at_the_next_start() {
    let folder = fast_folder();
    let images = folder.path().join("images");
    if cuttable(folder.path()).is_empty() {
        return;
    }
    let foreign = images.join("kvdyno-volume-of-mine");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("image"), "mine").unwrap();
    let own = || leftovers(&images).into_iter().filter(|left| !left.contains("of-mine")).collect::<Vec<_>>();
    let mut command = prepared(folder.path(), &format!("{LONG} --mode cut --file-system ext4"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a loop device", || own().len() > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!own().is_empty(), "a killed command cannot remove its image");
    // The mount and the loop device end with the processes.
    until("the end of the mount", || own().len() == 1);
    let words = "prove --only crash memory-btree --mode cut --durability power --rounds 1 --images images";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    assert!(printed.stderr.contains("left behind by a kvdyno that was killed"), "{}", printed.stderr);
    assert_eq!(own(), Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(foreign.join("image")).unwrap(), "mine");
}

#[test]
fn each_way_to_lose_everything_has_its_verdict() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/forgetful.c");
    for (fault, verdict, detail) in [
        ("none", "LOST", "acknowledged and missing"),
        ("hang-open", "OPEN-HUNG", "no progress for 8 s while it opened the database"),
        ("abort-open", "OPEN-FAILED", "its process died of SIGABRT while it opened the database"),
        ("error-open", "OPEN-FAILED", "bad magic"),
        ("hang-get", "OPEN-HUNG", "no progress for 8 s while it read the database"),
        ("abort-get", "OPEN-FAILED", "its process died of SIGABRT while it read the database"),
        ("zeros-get", "GARBAGE", "has only zeros"),
    ] {
        // Seed 112 crashes while commits are made, and not while the database is reopened.
        let stall = if fault.starts_with("hang") { 8 } else { 60 };
        let words = format!(
            "prove --only crash forgetful --mode kill --rounds 1 --seed 112 --json --plugins plugins --stall-seconds {stall} \
             --option forgetful.fault={fault}"
        );
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(3), "{fault}: {}{}", printed.stdout, printed.stderr);
        let groups: Value = serde_json::from_str(&printed.stdout).unwrap();
        let cell = &groups[0]["cells"][0];
        assert_eq!(count(cell, &[verdict]), 1, "{fault}: {cell}");
        let found = cell["rounds"][0]["detail"].as_str().unwrap();
        assert!(found.contains(detail), "{fault}: {found}");
        assert_eq!(groups[0]["class"], "volatile", "{fault}: {groups}");
    }
    for (fault, code, reason) in [
        ("error-put", 1, "the engine failed before a crash: commit "),
        ("abort-put", 1, "its process died of SIGABRT before a crash (running)"),
        ("write-elsewhere", 0, "/elsewhere outside its folder, where no crash reaches it"),
    ] {
        let words = format!(
            "prove --only crash forgetful,memory-btree --mode kill --durability process --rounds 1 --seed 112 --json --plugins plugins \
             --option forgetful.fault={fault}"
        );
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(code), "{fault}: {}{}", printed.stdout, printed.stderr);
        let groups: Value = serde_json::from_str(&printed.stdout).unwrap();
        let found = groups[0]["cells"][0]["skipped"].as_str().unwrap();
        assert!(found.contains(reason), "{fault}: {found}");
        assert_eq!(count(&groups[1]["cells"][0], &["OK"]), 1, "{fault}: the rest did not run");
    }
}

#[test]
fn an_engine_that_fails_before_the_first_crash_is_no_success_beside_one_that_is_tested() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/forgetful.c");
    let words = "prove --only crash forgetful,memory-btree --mode kill --durability process --rounds 2 --seed 112 --plugins plugins \
                 --option forgetful.fault=error-first-create";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(1), "{}{}", printed.stdout, printed.stderr);
    assert!(
        printed.stdout.contains("failed: the engine failed before a crash: open: no first one"),
        "{}",
        printed.stdout
    );
    assert!(
        printed.stderr.contains("forgetful, level process: not all rounds were run"),
        "{}",
        printed.stderr
    );
}

#[test]
fn a_database_that_a_kill_has_left_wrong_is_kept_and_read_again() {
    let folder = fast_folder();
    let words = "mutant:crash-leaves-holes --mode kill --durability power --rounds 8 --keep kept";
    let (groups, printed) = crashed(folder.path(), words);
    assert_eq!(printed.code, Some(3), "seed {SEED}: {}", printed.stdout);
    let all = cells(&groups[0], "kill")[0]["rounds"].as_array().unwrap();
    let kept = all.iter().find(|round| round["kept"].is_string()).expect("one is kept");
    let place = kept["kept"].as_str().unwrap();
    assert!(place.starts_with("kept/mutant-crash-leaves-holes-power-kill-"), "{place}");
    for _ in 0..2 {
        let again = kvdyno(folder.path(), &format!("prove --kept {place}"));
        assert_eq!(again.code, Some(3), "{}{}", again.stdout, again.stderr);
        let verdict = kept["verdict"].as_str().unwrap().to_uppercase();
        let expected = format!("{place}: {verdict}: {}\n", kept["detail"].as_str().unwrap());
        assert_eq!(again.stdout, expected, "seed {SEED}");
    }
    for (words, expected) in [
        ("prove --kept nowhere", "cannot read nowhere/kept.json"),
        ("prove --only crash redb --kept kept", "cannot be used with"),
        ("prove --kept kept --rounds 3", "cannot be used with"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(2), "{words}: {}{}", printed.stdout, printed.stderr);
        assert!(printed.stderr.contains(expected), "{words}: {}", printed.stderr);
    }
}

#[test]
fn an_engine_that_fails_after_some_rounds_is_no_success_and_none_disappears() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/forgetful.c");
    let words = "prove --only crash forgetful,null --mode kill --durability process --rounds 12 --seed 112 --json --plugins plugins \
                 --option forgetful.fault=error-third-create";
    let printed = kvdyno(folder.path(), words);
    let groups: Value = serde_json::from_str(&printed.stdout).unwrap();
    let cell = &groups[0]["cells"][0];
    let rounds = count(cell, &["OK"]);
    assert!((1..12).contains(&rounds), "nothing was acknowledged: {cell}");
    assert!(
        cell["skipped"].as_str().unwrap().contains("failed before a crash: open: no third one"),
        "{cell}"
    );
    assert_eq!(printed.code, Some(1), "{}{}", printed.stdout, printed.stderr);
    assert!(
        printed.stderr.contains("forgetful, level process: not all rounds were run"),
        "{}",
        printed.stderr
    );
    assert!(
        printed.stderr.contains("skipped, because they have none of the levels in --durability: null"),
        "{}",
        printed.stderr
    );
}

/// Runs a program of this machine; its output, or `None` if it fails.
fn tool(program: &str, words: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// A mount and a loop device, removed on drop if they are still there.
struct Left {
    mount: String,
    image: String,
    device: String,
}

impl Drop for Left {
    fn drop(&mut self) {
        tool("umount", &[&self.mount]);
        // The device may be another test's by now.
        let name = self.device.trim_start_matches("/dev/");
        let file =
            std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
        if file.starts_with(&self.image) {
            tool("losetup", &["-d", &self.device]);
        }
    }
}

/// Makes a folder like that of a volume, mounted, whose owner is gone.
fn leave(home: &Path, has_marker: bool) -> Left {
    let (mount, image) = (home.join("mount"), home.join("image").display().to_string());
    std::fs::create_dir_all(&mount).unwrap();
    // Locked until all is there: the kvdyno of another test would remove it before.
    let marker = has_marker.then(|| std::fs::File::create(home.join("KVDYNO-VOLUME")).unwrap());
    marker.iter().for_each(|marker| marker.lock().unwrap());
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    // Another process may take the free device between the two steps of losetup.
    let device = (0..20).find_map(|_| tool("losetup", &["-f", "--show", &image])).expect("a loop device");
    let left = Left { mount: mount.display().to_string(), image, device };
    tool("mkfs.ext4", &["-q", &left.device]).expect("mkfs.ext4 works for kvdyno");
    tool("mount", &[&left.device, &left.mount]).expect("mount works for kvdyno");
    left
}

#[test]
fn a_mount_and_a_loop_device_that_were_left_are_removed_and_those_of_others_are_not() {
    let folder = fast_folder();
    if !cuttable(folder.path()).contains(&"ext4".to_string()) {
        return;
    }
    let images = folder.path().join("images");
    // As an older version or another mount namespace may leave them: one with the marker, one without.
    let (own, other) = (images.join("kvdyno-volume-1-0"), images.join("kvdyno-volume-1-1"));
    let _left = [leave(&own, true), leave(&other, false)];
    let printed = kvdyno(
        folder.path(),
        "prove --only crash memory-btree --mode kill --durability power --rounds 1 --images images",
    );
    let is_kept = other.join("mount/lost+found").exists();
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    assert!(is_kept, "a mount without the marker was removed");
    assert!(!own.exists(), "{}", printed.stderr);
    assert!(!leftovers(&images).iter().any(|left| left.contains("1-0")));
}

/// A small file system in memory, unmounted on drop.
struct Small(String);

impl Small {
    /// `None`: this machine or user cannot mount one; prints that.
    fn mounted(folder: &Path, size: &str) -> Option<Small> {
        std::fs::create_dir_all(folder).unwrap();
        let place = folder.display().to_string();
        let mounted = tool("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "kvdyno-test", &place]);
        if mounted.is_none() {
            println!("SKIPPED: no file system in memory can be mounted here");
        }
        mounted.map(|_| Small(place))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        tool("umount", &[&self.0]);
    }
}

/// Whether a database in a folder is read: by a process of its own, or by one that is forked from another one, which has a guard.
fn is_read(folder: &Path) -> bool {
    let name = folder.display().to_string();
    let count = |kind: &str| {
        let runs = |process: std::fs::DirEntry| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains(kind) && line.contains(&name)
        };
        std::fs::read_dir("/proc").into_iter().flatten().flatten().map(runs).filter(|runs| *runs).count()
    };
    count("crash-verifier") > 0 || count("crash-reader") > 2
}

#[test]
fn a_folder_for_images_that_fills_up_is_no_fault_of_the_engine() {
    let folder = fast_folder();
    if !cuttable(folder.path()).contains(&"ext4".to_string()) {
        return;
    }
    let images = folder.path().join("images");
    // A cut may find what it needs in blocks that it had before; a state is written anew each time.
    for (mode, must_stop) in [("cut", false), ("replay", true)] {
        let Some(_small) = Small::mounted(&images, "600m") else { return };
        let words = format!(
            "prove --only crash memory-btree --mode {mode} --durability power --rounds 40 --states 100000 --file-system ext4 \
             --images images --seed {SEED} --json"
        );
        let mut command = prepared(folder.path(), &words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the first database that is read", || {
            is_read(folder.path()) || child.try_wait().unwrap().is_some()
        });
        let mut filler = std::fs::File::create(images.join("filler")).unwrap();
        let filled = std::io::copy(&mut std::io::repeat(1), &mut filler);
        assert!(filled.is_err(), "the folder has no limit");
        let printed: Printed = child.wait_with_output().unwrap().into();
        let groups: Value = serde_json::from_str(&printed.stdout)
            .unwrap_or_else(|_| panic!("{mode}: {}{}", printed.stdout, printed.stderr));
        let cell = &groups[0]["cells"][0];
        assert_eq!(groups[0]["contradicted"], Value::Null, "seed {SEED}: {mode}: {groups}");
        assert_eq!(count(cell, &LOSSES), 0, "seed {SEED}: {mode}: {cell}");
        let is_stopped = cell["skipped"].is_string();
        assert!(is_stopped || !must_stop, "seed {SEED}: {mode}: {cell}");
        assert_eq!(cell["has_failed"], false, "seed {SEED}: {mode}: {cell}");
        assert_eq!(printed.code, Some(i32::from(is_stopped)), "{mode}: {}", printed.stderr);
    }
}

#[test]
fn a_folder_for_databases_that_fills_up_is_no_fault_of_the_engine() {
    let folder = fast_folder();
    let Some(_small) = Small::mounted(&folder.path().join("small"), "300k") else { return };
    let words = format!(
        "prove --only crash memory-btree --mode kill --durability process --rounds 40 --data small/data --seed {SEED} --json"
    );
    let printed = kvdyno(folder.path(), &words);
    let groups: Value = serde_json::from_str(&printed.stdout)
        .unwrap_or_else(|_| panic!("{}{}", printed.stdout, printed.stderr));
    let cell = &groups[0]["cells"][0];
    assert_eq!(groups[0]["contradicted"], Value::Null, "seed {SEED}: {groups}");
    let reason = cell["skipped"].as_str().expect("no database of 40 rounds was larger than the folder");
    assert!(reason.starts_with("this machine is at fault, not the engine: no space is left"), "{reason}");
    assert_eq!((&cell["has_failed"], printed.code), (&Value::Bool(false), Some(1)), "{}", printed.stderr);
}

/// Regression: only rounds with random moments asked for space.
#[test]
fn a_folder_without_space_for_processes_that_are_killed_at_calls_is_no_fault_of_the_engine() {
    let folder = fast_folder();
    let Some(_small) = Small::mounted(&folder.path().join("small"), "24k") else { return };
    let words = format!(
        "prove --only crash memory-btree --mode calls --durability process --rounds 9 --data small/data --seed {SEED} --json"
    );
    let printed = kvdyno(folder.path(), &words);
    let groups: Value = serde_json::from_str(&printed.stdout)
        .unwrap_or_else(|_| panic!("{}{}", printed.stdout, printed.stderr));
    let cell = &groups[0]["cells"][0];
    let reason = cell["skipped"].as_str().expect("the commits of a script need more than the folder has");
    if reason.contains("seccomp") {
        println!("SKIPPED: {reason}");
        return;
    }
    assert!(reason.starts_with("this machine is at fault, not the engine: no space is left"), "{reason}");
    assert_eq!((&cell["has_failed"], printed.code), (&Value::Bool(false), Some(1)), "{}", printed.stderr);
}

#[test]
fn a_seed_repeats_the_commits_of_a_round() {
    let folder = fast_folder();
    let printed = kvdyno(
        folder.path(),
        "prove --only crash mutant:crash-leaves-holes --mode kill --durability power --rounds 4 --seed 7",
    );
    assert_eq!(printed.code, Some(3), "{}{}", printed.stdout, printed.stderr);
    let command =
        printed.stdout.lines().find_map(|line| line.trim().strip_prefix("repeat: kvdyno ")).unwrap();
    // The same commits, but threads run as the kernel schedules them.
    let again = || kvdyno(folder.path(), command);
    let found = (0..8).map(|_| again()).find(|again| again.code == Some(3)).expect("the round is repeated");
    assert!(found.stdout.contains("repeat: kvdyno ") && found.stdout.contains(command), "{}", found.stdout);
}
