//! Runs from start to end, stopped by the user, and killed; and what `--resume` makes of them.

use super::command::{Printed, kvdyno, prepared};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

const SMALL: &str = "--keys 3000 --ops 3000 --set sync.ops=20 --quiet";

/// The folders of runs below `folder/kvdyno-results`.
fn run_folders(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder.join("kvdyno-results")) else { return Vec::new() };
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.join("run.json").exists());
    folders.sort();
    folders
}

fn records(run: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(run.join("trials")) else { return 0 };
    entries.flatten().filter(|entry| entry.path().join("record.json").exists()).count()
}

#[test]
fn a_run_prints_an_overview_keeps_records_and_leaves_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let printed =
        kvdyno(folder.path(), &format!("run quick --engines memory-btree,memory-map {SMALL} --runs 2"));
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let full = "all tables: kvdyno report --full\n";
    for text in ["memory-btree", "memory-map", "ops/s", "null", "Verdict:", full, "results: kvdyno-results/"]
    {
        assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
    }
    assert!(!printed.stdout.contains("Service times"), "{}", printed.stdout);
    let tables = kvdyno(folder.path(), "report --full").stdout;
    assert!(tables.contains("Service times") && tables.contains("p99"), "{tables}");
    let runs = run_folders(folder.path());
    assert_eq!(runs.len(), 1);
    assert_eq!(records(&runs[0]), 6, "two engines and the floor, twice");
    assert!(!runs[0].join("data").exists());
    for format in ["text", "markdown", "csv", "json"] {
        let report = kvdyno(folder.path(), &format!("report --format {format}"));
        assert_eq!(report.code, Some(0), "{format}: {}", report.stderr);
        assert!(report.stdout.contains("memory-map"), "{format}:\n{}", report.stdout);
    }
}

#[test]
fn a_workload_from_a_file_with_overrides_runs() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), "workloads scan-short --toml");
    std::fs::write(folder.path().join("mine.toml"), printed.stdout).unwrap();
    let words = "run mine.toml --engines memory-btree --keys 2000 --ops 500 --runs 1 --value-size uniform:1-300 \
                 --set key.encoding=hex --set key.scattered=true --quiet --seed 9";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
}

#[test]
fn a_loaded_engine_runs_like_a_built_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(
        folder.path(),
        &format!("run quick --engines example,null-c {SMALL} --runs 1 --durability none"),
    );
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert!(printed.stdout.contains("example"), "{}", printed.stdout);
}

/// Starts a run and waits until it says that its first trial has ended.
fn started(folder: &Path) -> (Child, JoinHandle<String>) {
    let words =
        "run quick --engines memory-btree,memory-map --keys 3000 --ops 40000 --set sync.ops=400 --runs 5";
    let mut command = prepared(folder, words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let mut seen = String::new();
    let mut byte = [0; 1];
    while !seen.contains("1/15 ") {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the run ended early:\n{seen}");
        seen.push(byte[0] as char);
    }
    // Read on, so that the run never waits for us.
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        rest
    });
    (child, rest)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_run_that_was_killed_goes_on_and_its_report_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, _) = started(folder.path());
    signal(&child, "KILL");
    child.wait().unwrap();
    let run = run_folders(folder.path()).remove(0);
    let before = records(&run);
    assert!((1..15).contains(&before), "{before} records");
    // A line that was cut by the crash.
    let journal = run.join("journal.jsonl");
    let mut text = std::fs::read(&journal).unwrap();
    text.extend_from_slice(b"deadbeef {\"trial\":\"00");
    std::fs::write(&journal, text).unwrap();
    let printed = kvdyno(folder.path(), "run --resume --quiet");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert_eq!(run_folders(folder.path()).len(), 1, "resume made another run");
    assert_eq!(records(&run), 15);
    let report = kvdyno(folder.path(), "report --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(json["records"].as_array().map(Vec::len), Some(15));
    assert!(!run.join("data").exists(), "the killed trial's folder was left");
}

#[test]
fn one_interrupt_finishes_the_trial_and_saves() {
    let folder = tempfile::tempdir().unwrap();
    let (child, stderr) = started(folder.path());
    signal(&child, "INT");
    let printed: Printed = child.wait_with_output().unwrap().into();
    assert_eq!(printed.code, Some(130), "{}", printed.stdout);
    let stderr = stderr.join().unwrap();
    let run = run_folders(folder.path()).remove(0);
    let saved = records(&run);
    assert!((1..15).contains(&saved), "{saved} records");
    // Between two trials there is none to wait for.
    let answers = stderr.matches("stopping after this trial; Ctrl-C again").count();
    assert_eq!(answers, usize::from(saved > 1), "{saved} records: {stderr}");
    assert!(stderr.contains("interrupted; completed trials are saved"), "{stderr}");
    let again = kvdyno(folder.path(), "run --resume --quiet");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(records(&run), 15);
}

/// What each trial did in its last phase, by repetition: ops of each kind, bytes read and bytes written.
fn done(more: &str) -> Vec<(u64, serde_json::Value)> {
    let folder = tempfile::tempdir().unwrap();
    let words =
        "run ycsb-a --engines memory-btree,memory-map --keys 2000 --ops 5000 --runs 2 --quiet --threads 1";
    assert_eq!(kvdyno(folder.path(), &format!("{words} {more}")).code, Some(0));
    let report = kvdyno(folder.path(), "report --format json");
    let json: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let mut seen = Vec::new();
    for record in json["records"].as_array().unwrap() {
        if record["trial"]["engine"] == "null" {
            continue;
        }
        let phase = record["phases"].as_array().unwrap().last().unwrap().clone();
        let ops: Vec<_> = phase["kinds"].as_array().unwrap().iter().map(|kind| kind["ops"].clone()).collect();
        let all = serde_json::json!([ops, phase["logical_bytes_read"], phase["logical_bytes_written"]]);
        seen.push((record["trial"]["repetition"].as_u64().unwrap(), all));
    }
    assert_eq!(seen.len(), 4);
    seen.sort_by_key(|(repetition, _)| *repetition);
    seen
}

#[test]
fn the_same_seed_gives_the_same_ops_on_every_engine() {
    let own = done("");
    assert!(own[0].1 == own[1].1 && own[2].1 == own[3].1, "seed 1: {own:?}");
    assert_ne!(own[0].1, own[2].1, "seed 1: each repetition does other ops");
    let same = done("--same-ops");
    assert!(same.iter().all(|(_, all)| *all == own[0].1), "seed 1: {same:?} and {own:?}");
}

/// The seeds of rows and of ops of each trial of the newest plan, in order of repetition.
fn seeds(folder: &Path) -> Vec<(u64, u64, u64)> {
    let text = std::fs::read(run_folders(folder).last().unwrap().join("run.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let seed = |trial: &serde_json::Value| {
        let of_rows = trial["workload"]["seed"].as_u64().unwrap();
        (trial["repetition"].as_u64().unwrap(), of_rows, trial["seed"].as_u64().unwrap_or(of_rows))
    };
    let mut all: Vec<_> = plan["trials"].as_array().unwrap().iter().map(seed).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn each_repetition_has_a_seed_that_all_engines_share() {
    let run = |more: &str| {
        let folder = tempfile::tempdir().unwrap();
        let words = format!("run read-random --engines redb {SMALL} --runs 3 --seed 7 --full {more}");
        let words = words.replace(" --set sync.ops=20", "");
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
        assert!(!printed.stdout.contains("other settings"), "{}", printed.stdout);
        seeds(folder.path())
    };
    // One entry for each repetition: the engine and the floor have the same.
    let own = run("");
    assert_eq!(own.iter().map(|found| found.0).collect::<Vec<_>>(), [1, 2, 3], "seed 7: {own:?}");
    assert!(own.iter().all(|(_, rows, ops)| rows == ops), "{own:?}");
    assert!(own[0].1 == 7 && own[1].1 != 7 && own[2].1 != own[1].1, "{own:?}");
    assert_eq!(run("--same-ops"), [(1, 7, 7), (2, 7, 7), (3, 7, 7)]);
    let kept: Vec<_> = own.iter().map(|(run, _, ops)| (*run, 7, *ops)).collect();
    assert_eq!(run("--keep db"), kept, "rows that are kept are the same in all repetitions");
}

#[test]
fn a_workload_that_was_made_smaller_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run quick --engines memory-map --runs 1 --set budget_seconds=0.5 --quiet --full";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let text = "quick was shrunk to fit its time budget: 20,000 keys instead of 200,000, ";
    assert!(printed.stdout.replace("\n    ", " ").contains(text), "{}", printed.stdout);
}

/// A run of one engine without records, whose plan `change` has changed.
fn unfinished(folder: &Path, change: impl Fn(&mut serde_json::Value)) -> std::path::PathBuf {
    let printed = kvdyno(folder, "run fill-seq --engines memory-btree --keys 50 --runs 1 --quiet");
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let run = run_folders(folder).remove(0);
    for trial in std::fs::read_dir(run.join("trials")).unwrap().flatten() {
        std::fs::remove_dir_all(trial.path()).unwrap();
    }
    std::fs::remove_file(run.join("journal.jsonl")).unwrap();
    let file = run.join("run.json");
    let mut plan = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut plan);
    std::fs::write(&file, plan.to_string()).unwrap();
    run
}

#[test]
fn a_run_is_not_resumed_without_its_engines() {
    let folder = tempfile::tempdir().unwrap();
    let run = unfinished(folder.path(), |plan| plan["trials"][0]["engine"] = "of-a-plug-in".into());
    let printed = kvdyno(folder.path(), "run --resume --quiet");
    assert_eq!(printed.code, Some(4), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("some of its engines are not available: of-a-plug-in"),
        "{}",
        printed.stderr
    );
    assert!(printed.stderr.contains("--plugins"), "{}", printed.stderr);
    assert_eq!(records(&run), 0, "trials were recorded as failures");
}

#[test]
fn a_plan_that_breaks_a_rule_is_not_resumed() {
    for (field, value, wanted) in [
        ("threads", 1_000_000_000_u64.into(), "threads"),
        ("threads", 0.into(), "threads"),
        ("seconds", (-1).into(), "seconds"),
        ("phases", serde_json::json!([]), "at least one [[phase]]"),
        ("keys", serde_json::Value::from(1_u64 << 62), "`keys`: expected up to"),
        ("twice", 0.into(), "two trials of the run have the id"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let run = unfinished(folder.path(), |plan| match field {
            "keys" | "phases" => plan["trials"][0]["workload"][field] = value.clone(),
            "twice" => plan["trials"][1]["id"] = plan["trials"][0]["id"].clone(),
            _ => plan["trials"][0]["workload"]["phases"][0][field] = value.clone(),
        });
        let printed = kvdyno(folder.path(), "run --resume --quiet");
        assert_eq!(printed.code, Some(1), "{field}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{field}: no `{wanted}` in\n{}", printed.stderr);
        assert_eq!(records(&run), 0, "{field}");
    }
}

#[test]
fn a_run_is_not_resumed_with_another_plan() {
    let folder = tempfile::tempdir().unwrap();
    let run = unfinished(folder.path(), |_| ());
    for (words, wanted) in [
        ("--runs 9", "workload fields"),
        ("--keys 51", "workload fields"),
        ("--engines redb", "engines"),
        ("read-random --same-ops", "workloads and seeds"),
        ("--cpus 0", "limits"),
    ] {
        let printed = kvdyno(folder.path(), &format!("run --resume --quiet {words}"));
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(
            printed.stderr.contains(&format!("which has other {wanted}\n")),
            "{words}: {}",
            printed.stderr
        );
        assert_eq!(records(&run), 0, "{words}");
    }
    // The report's next step is the command of the run with --resume.
    let words = "run fill-seq --engines memory-btree --keys 50 --runs 1 --quiet --resume";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert_eq!(records(&run), 2);
}
