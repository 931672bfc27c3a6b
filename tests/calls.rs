//! `kvdyno prove --only crash --mode calls`: what is wrong between two calls is found, sound engines are not accused, and the printed
//! command repeats what was found.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, build_driver, kvdyno};
use serde_json::Value;
use std::path::Path;

const LOSSES: [&str; 7] = ["LOST", "HOLES", "DUPLICATE", "GARBAGE", "CHANGED", "OPEN-FAILED", "OPEN-HUNG"];
/// Each finding is found with each of these seeds; `make test` tries the first.
const SEEDS: std::ops::Range<u64> = 100..105;

/// A folder in memory where there is one.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The only cell of a command, or `None` with the reason printed if this machine has no such filter.
fn cell(folder: &Path, words: &str) -> Option<(Value, Printed)> {
    let printed = kvdyno(folder, &format!("prove --only crash {words} --mode calls --json"));
    let groups: Value = serde_json::from_str(&printed.stdout).unwrap_or(Value::Null);
    let cell = groups[0]["cells"][0].clone();
    assert!(cell.is_object(), "{words}: {}{}", printed.stdout, printed.stderr);
    assert!(!folder.join("kvdyno-results/crash").exists(), "{words}: databases were left");
    if cell["skipped"].as_str().is_some_and(|reason| reason.contains("seccomp")) {
        println!("SKIPPED: {words}: {}", cell["skipped"]);
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs the seccomp filter: {cell}");
        return None;
    }
    Some((cell, printed))
}

fn count(cell: &Value, verdicts: &[&str]) -> u64 {
    verdicts.iter().map(|verdict| cell["verdicts"][verdict].as_u64().unwrap_or(0)).sum()
}

fn rounds(cell: &Value) -> &Vec<Value> {
    cell["rounds"].as_array().unwrap()
}

/// An engine of one log with a fault, at one level.
fn scribe(fault: &str, level: &str, seed: u64) -> String {
    format!("scribe --plugins plugins --durability {level} --seed {seed} --option scribe.fault={fault}")
}

#[test]
fn a_sound_engine_is_killed_at_every_call_and_not_accused() {
    sound_engines_are_not_accused(SEEDS.take(1));
}

#[test]
#[ignore = "takes a minute: `cargo test --test calls -- --ignored`"]
fn sound_engines_are_not_accused_with_other_seeds() {
    sound_engines_are_not_accused(SEEDS.skip(1));
}

fn sound_engines_are_not_accused(seeds: impl Iterator<Item = u64>) {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    for seed in seeds {
        for words in [
            scribe("none", "power", seed),
            format!("memory-btree --durability power --seed {seed}"),
            format!("redb --durability power --seed {seed} --rounds 500"),
        ] {
            let Some((cell, printed)) = cell(folder.path(), &words) else { return };
            assert_eq!((printed.code, count(&cell, &LOSSES)), (Some(0), 0), "{words}: {cell}");
            assert_eq!((&cell["skipped"], &cell["bound"]), (&Value::Null, &Value::Null), "{words}");
            let calls = cell["seen"]["calls"].as_u64().unwrap();
            let single = |round: &&Value| round["in_recovery"] == false;
            let inside = |round: &&Value| round["called"]["first"]["pages"] != 0;
            let first: Vec<u64> = rounds(&cell)
                .iter()
                .filter(single)
                .filter(|round| !inside(round))
                .map(|round| round["called"]["first"]["call"].as_u64().unwrap())
                .collect();
            assert_eq!(first, (1..=calls + 1).collect::<Vec<_>>(), "{words}: not every call, and the end");
            let torn = rounds(&cell).iter().filter(single).filter(inside).count() as u64;
            assert_eq!(torn, cell["seen"]["boundaries"].as_u64().unwrap(), "{words}");
            let seconds = rounds(&cell).len() - first.len() - torn as usize;
            assert!(seconds > 50 && torn > 0, "{words}: {seconds} second kills, {torn} within writes");
        }
    }
}

#[test]
fn what_is_wrong_between_two_calls_is_found_and_its_command_finds_it_again() {
    what_is_wrong_is_found(SEEDS.take(1));
}

#[test]
#[ignore = "takes a minute: `cargo test --test calls -- --ignored`"]
fn what_is_wrong_between_two_calls_is_found_with_other_seeds() {
    what_is_wrong_is_found(SEEDS.skip(1));
}

fn what_is_wrong_is_found(seeds: impl Iterator<Item = u64>) {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let Some(_) = cell(folder.path(), &format!("{} --rounds 1", scribe("none", "process", 1))) else {
        return;
    };
    for seed in seeds {
        for (fault, verdict, call) in [
            ("no-end-mark", "HOLES", "pwrite "),
            ("rename-late", "OPEN-FAILED", "(rename log.new -> log)"),
            ("recover-in-place", "LOST", ""),
            ("tail-stays", "CHANGED", "at page boundary "),
        ] {
            let words = scribe(fault, "process", seed);
            let printed = kvdyno(folder.path(), &format!("prove --only crash {words} --mode calls"));
            assert_eq!(printed.code, Some(3), "{words}: {}", printed.stdout);
            // Lines are wrapped between words.
            let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(call) && text.contains(verdict), "{words}: {}", printed.stdout);
            assert!(text.contains(" kills "), "{words}: losses are counted: {}", printed.stdout);
            let command =
                printed.stdout.lines().find_map(|line| line.trim().strip_prefix("repeat: kvdyno ")).unwrap();
            assert!(command.contains("--call "), "{words}: {command}");
            let is_second = command.split("--call ").nth(1).unwrap().split(' ').next().unwrap().contains(',');
            assert_eq!(is_second, fault == "recover-in-place", "{words}: {command}");
            let again = kvdyno(folder.path(), &format!("{command} --json"));
            assert_eq!(again.code, Some(3), "{words}: {command}: {}", again.stdout);
            let groups: Value = serde_json::from_str(&again.stdout).unwrap();
            let cell = &groups[0]["cells"][0];
            assert_eq!((rounds(cell).len(), count(cell, &LOSSES)), (1, 1), "{words}: {command}: {cell}");
        }
    }
}

/// Regression: the process after a first kill went on at the next number without a look at the rows, and the first kill had been
/// judged in another run. What the first kill had undone was then a hole.
#[test]
fn what_the_first_kill_has_undone_is_lost_and_no_hole_after_the_second() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let Some((cell, printed)) = cell(folder.path(), &scribe("now-and-then", "process", 100)) else { return };
    assert_eq!(printed.code, Some(3), "{cell}");
    assert_eq!(count(&cell, &LOSSES), count(&cell, &["LOST"]), "{}", cell["verdicts"]);
    let by_both = |round: &&Value| round["in_recovery"] == true && round["lost"] == 2;
    assert!(rounds(&cell).iter().filter(by_both).count() > 0, "no round lost a commit by each kill: {cell}");
    let is_less = |round: &Value| round["lost"].as_u64() <= round["acked"].as_u64();
    assert!(rounds(&cell).iter().all(is_less), "{cell}");
}

#[test]
fn a_creation_that_fails_forever_after_a_kill_is_no_loss_and_is_told() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let Some((cell, printed)) = cell(folder.path(), &scribe("create-in-steps", "process", 100)) else {
        return;
    };
    assert_eq!(printed.code, Some(0), "{cell}");
    let failed: Vec<&Value> =
        rounds(&cell).iter().filter(|round| round["verdict"] == "create-failed").collect();
    assert!(!failed.is_empty(), "{cell}");
    assert_eq!(failed[0]["called"]["first"]["what"], "create mark", "{cell}");
    assert_eq!(failed[0]["stage"], "create");
}

#[test]
fn what_is_no_call_is_named() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let words = scribe("map-only", "process", 100);
    let Some((mapped, printed)) = cell(folder.path(), &words) else { return };
    assert_eq!(mapped["seen"]["unseen"], serde_json::json!(["writes through a map of map"]), "{mapped}");
    // After the last call all acknowledged commits but the last are lost.
    assert_eq!(printed.code, Some(3), "{mapped}");
    let words = scribe("tells-map", "process", 100);
    let printed = kvdyno(folder.path(), &format!("prove --only crash {words} --mode calls --rounds 30"));
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    let text = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("; not seen: writes through a map of map"), "{text}");
    let (cell, _) = cell(folder.path(), &scribe("none", "process", 100)).unwrap();
    assert_eq!(cell["seen"]["unseen"], serde_json::json!([]));
}

#[test]
fn a_number_of_rounds_spreads_them_over_all_calls_and_a_wrong_database_is_kept() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let words = scribe("no-end-mark", "process", 100);
    let Some((cell, _)) = cell(folder.path(), &format!("{words} --rounds 40 --keep kept")) else { return };
    assert_eq!(rounds(&cell).len(), 40, "{cell}");
    assert!(rounds(&cell).iter().all(|round| round["in_recovery"] == false), "{cell}");
    let last = rounds(&cell)[39]["called"]["first"]["call"].as_u64().unwrap();
    assert!(last > cell["seen"]["calls"].as_u64().unwrap() * 3 / 4, "{cell}");
    let kept = rounds(&cell).iter().find_map(|round| round["kept"].as_str()).expect("one is kept");
    assert!(kept.starts_with("kept/scribe-process-calls-"), "{kept}");
    let again = kvdyno(folder.path(), &format!("prove --kept {kept} --plugins plugins"));
    assert_eq!(again.code, Some(3), "{}{}", again.stdout, again.stderr);
    assert!(again.stdout.contains("HOLES: "), "{}", again.stdout);
}

/// The kept database of a fault of the engine of one log, and its verdict. `None` if this machine cannot find it.
fn kept_of(folder: &Path, fault: &str) -> Option<(std::path::PathBuf, String)> {
    let words = scribe(fault, "process", 100);
    let (cell, printed) = cell(folder, &format!("{words} --keep kept-{fault}"))?;
    assert_eq!(printed.code, Some(3), "{fault}: {}{}", printed.stdout, printed.stderr);
    assert!(!printed.stderr.contains("no report"), "{fault}: {}", printed.stderr);
    let round = rounds(&cell).iter().find(|round| round["kept"].is_string()).expect("one is kept");
    let verdict = round["verdict"].as_str().unwrap().to_uppercase();
    Some((folder.join(round["kept"].as_str().unwrap()), verdict))
}

fn text_of(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rows of a list of a report, each as its columns.
fn list_of(folder: &Path, name: &str) -> Vec<Vec<String>> {
    let text = text_of(folder, name);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| line.split('\t').map(String::from).collect()).collect()
}

/// Builds and runs the program of a report; its exit code and what it printed.
fn checked(folder: &Path) -> (Option<i32>, String) {
    let output = std::process::Command::new("sh").arg("check.sh").current_dir(folder).output().unwrap();
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    (output.status.code(), texts.concat())
}

/// Every file below a folder with its contents.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.map(|file| (file.clone(), std::fs::read(&file).unwrap())).collect();
    files.sort();
    files
}

/// A folder with the log store as a plug-in, which has a program for reports beside it.
fn with_program_for_reports() -> tempfile::TempDir {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/report-scribe.c.in");
    std::fs::copy(program, folder.path().join("plugins/report-scribe.c.in")).unwrap();
    folder
}

#[test]
fn a_kept_database_is_a_report_whose_program_shows_the_missing_keys_without_kvdyno() {
    let folder = with_program_for_reports();
    // A recovery that is killed leaves an empty log.
    let Some((kept, verdict)) = kept_of(folder.path(), "recover-in-place") else { return };
    assert_eq!(verdict, "LOST");
    let (acknowledged, found) = (list_of(&kept, "acknowledged.tsv"), list_of(&kept, "found.tsv"));
    assert_eq!((acknowledged.len(), found.len()), (200, 200), "all keys of one thread");
    let mut missing = Vec::new();
    for (acknowledged, found) in acknowledged.iter().zip(&found) {
        assert_eq!((&acknowledged[..2], acknowledged.len()), (&found[..2], 6), "the same key");
        assert_eq!(&found[2..], ["0", "none"], "nothing is there: {found:?}");
        if acknowledged[3] != "none" && acknowledged[5] != "none" || acknowledged[4] == "0" {
            missing.extend((acknowledged[3] != "none").then(|| acknowledged.clone()));
        }
    }
    assert!(missing.len() > 5, "{acknowledged:?}");
    let before = contents(&kept.join("db"));
    let (code, said) = checked(&kept);
    assert_eq!(code, Some(1), "{said}");
    for row in &missing {
        let [_, key, commit, value, ..] = &row[..] else { panic!("{row:?}") };
        let line = format!("first open: {key}: none instead of {value}, acknowledged in commit {commit}\n");
        assert!(said.contains(&line), "{line}{said}");
    }
    let told = said.lines().filter(|line| line.starts_with("first open: ")).count();
    assert_eq!(told, missing.len(), "only these are wrong: {said}");
    assert!(said.contains("second open: ") && said.ends_with("not what was acknowledged.\n"), "{said}");
    assert_eq!(contents(&kept.join("db")), before, "the database stays as it was");

    let page = text_of(&kept, "README.md");
    let known: Value = serde_json::from_str(&text_of(&kept, "kept.json")).unwrap();
    let last = acknowledged.iter().map(|row| row[2].parse::<u64>().unwrap()).max();
    assert_eq!(last, known["bounds"][0]["acked"].as_u64(), "the last acknowledged commit has changed a key");
    let row = &missing[0];
    for expected in [
        "# scribe 1: LOST after a crash",
        "| options | `fault=recover-in-place` |",
        "| durability level | `process`: ",
        &format!("| seed | {} |", known["script"]["seed"]),
        "| crash | calls: ",
        "promises to lose nothing acknowledged",
        "`LOST`: The last acknowledged commits are missing",
        &format!("| `{}` | {} of commit {} | no row |", row[1], row[3], row[2]),
        "    sh check.sh\n",
        "`report.c`, which needs a compiler",
        "kvdyno prove --only crash scribe --mode calls --durability process --option scribe.fault=recover-in-place",
        "--call ",
    ] {
        assert!(page.contains(expected), "`{expected}` is not in:\n{page}");
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(page.contains(&format!("| kernel | {} |", kernel.trim())), "{page}");
    let command = page.lines().find_map(|line| line.strip_prefix("    kvdyno ")).expect("the command");
    let again = kvdyno(folder.path(), command);
    assert_eq!(again.code, Some(3), "{command}: {}{}", again.stdout, again.stderr);
}

#[test]
fn the_program_of_a_report_shows_a_part_of_a_transaction_and_accuses_no_sound_database() {
    let folder = with_program_for_reports();
    let Some((kept, verdict)) = kept_of(folder.path(), "no-end-mark") else { return };
    assert_eq!(verdict, "HOLES");
    let (code, said) = checked(&kept);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("was one transaction: ") && !said.contains(" instead of "), "{said}");
    // The same without what was not acknowledged any more is what was acknowledged.
    let acknowledged = list_of(&kept, "acknowledged.tsv");
    let found = list_of(&kept, "found.tsv");
    let of = |(row, found): (&Vec<String>, &Vec<String>)| {
        let [thread, key, commit, value] = &found[..] else { panic!("{found:?}") };
        assert!([&row[3], &row[5]].contains(&value), "{row:?} {found:?}");
        format!("{thread}\t{key}\t{commit}\t{value}\t0\tnone\n")
    };
    let sound: String = acknowledged.iter().zip(&found).map(of).collect();
    std::fs::write(kept.join("acknowledged.tsv"), sound).unwrap();
    let (code, said) = checked(&kept);
    let expected =
        "first open: all 200 keys are as acknowledged\nsecond open: all 200 keys are as acknowledged\n";
    assert_eq!((code, said), (Some(0), format!("{expected}Nothing is wrong.\n")));
    // What is built with another compiler is no finding.
    let output =
        std::process::Command::new("sh").arg("check.sh").current_dir(&kept).env("CC", "false").output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

#[test]
fn an_engine_without_a_program_has_the_rest_of_the_report() {
    let folder = fast_folder();
    build_driver(folder.path(), "cli/scribe.c");
    let Some((kept, _)) = kept_of(folder.path(), "rename-late") else { return };
    let page = text_of(&kept, "README.md");
    assert!(page.contains("kvdyno has no program for scribe. "), "{page}");
    assert!(text_of(&kept, "found.tsv").contains("no log"), "{}", text_of(&kept, "found.tsv"));
    assert_eq!(list_of(&kept, "acknowledged.tsv").len(), 200);
    assert!(!kept.join("check.sh").exists() && kept.join("db").exists());
}
