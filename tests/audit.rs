//! `kvdyno prove --only syncs`: what each engine claims about durability is what its system calls show, planted liars are caught, and an engine
//! that crashes or hangs costs a line.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::{Printed, build_driver, kvdyno, required_engines};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn audited(folder: &Path, words: &str) -> (Vec<Value>, Printed) {
    let printed = kvdyno(folder, &format!("prove --only syncs {words} --json"));
    let rows = serde_json::from_str(&printed.stdout).unwrap_or(Value::Null);
    (rows.as_array().cloned().unwrap_or_default(), printed)
}

/// Whether this machine has the filter; prints why not.
fn has_filter(folder: &Path) -> bool {
    let (rows, printed) = audited(folder, "memory-btree --durability power --ops 2");
    let verdict = &rows.first().unwrap_or_else(|| panic!("no row: {}", printed.stderr))["verdict"];
    let has_filter = verdict != "not-observed";
    let must = std::env::var("CI").as_deref() == Ok("true");
    assert!(has_filter || !must, "CI needs the seccomp filter: {}", printed.stdout);
    if !has_filter {
        println!("skipped: {}", rows[0]["reason"]);
    }
    has_filter
}

#[test]
fn the_reference_engine_keeps_its_levels_exactly() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    let (rows, printed) = audited(folder.path(), "memory-btree,memory-map --ops 50 --seed 7");
    assert_eq!(printed.code, Some(0), "seed 7: {}{}", printed.stdout, printed.stderr);
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(row["verdict"], "agrees", "seed 7: {row}");
        for section in row["sections"].as_array().unwrap() {
            // Two keys of a group lie in two shards of the map, but the log has one frame for them.
            let syncs = if row["level"] == "power" { 50 } else { 0 };
            assert_eq!(
                (&section["commits"], &section["syncs"]),
                (&50.into(), &syncs.into()),
                "seed 7: {row}"
            );
        }
    }
    assert!(!folder.path().join("kvdyno-results/audit").exists(), "databases were left");
}

#[test]
fn every_fault_of_durability_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    for (fault, level, reason) in [
        ("acknowledges-before-write", "process", "40 of 40 puts were acknowledged before any write began"),
        ("acknowledges-before-sync", "power", "35 of 40 puts were acknowledged before any sync began"),
        ("lies-about-level", "power", "40 of 40 puts were acknowledged before any sync began"),
    ] {
        let (rows, printed) = audited(folder.path(), &format!("mutant:{fault} --ops 40 --seed 7"));
        assert_eq!(printed.code, Some(3), "seed 7: {fault}: {}", printed.stdout);
        assert_eq!(rows.len(), 3);
        for row in rows {
            let is_false = row["level"] == level;
            assert_eq!(row["verdict"], if is_false { "contradicted" } else { "agrees" }, "seed 7: {row}");
            if is_false {
                assert_eq!(row["reason"], reason, "seed 7: {row}");
            }
        }
        let green = kvdyno(
            folder.path(),
            &format!("prove --only rules mutant:{fault} --ops 1000 --seconds 1 --seed 7"),
        );
        assert_eq!(green.code, Some(0), "seed 7: verify cannot see {fault}: {}", green.stdout);
    }
}

#[test]
fn an_engine_that_crashes_or_hangs_costs_a_line() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/faulty.c");
    if !has_filter(folder.path()) {
        return;
    }
    for (fault, reason) in [
        ("segv", "its process died of SIGSEGV (in puts)"),
        ("exit", "its process ended early, with exit code 0 (in puts)"),
        ("hang", "no progress for 8 s, so it was killed (in puts)"),
        ("stop", "no progress for 8 s, so it was killed (in puts)"),
        ("error", "the page is torn"),
    ] {
        let words = format!(
            "faulty,memory-btree --durability none --ops 2000 --plugins plugins --stall-seconds 8 \
             --option faulty.fault={fault}"
        );
        let (rows, printed) = audited(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{fault}: {}{}", printed.stdout, printed.stderr);
        assert_eq!(rows[0]["verdict"], "not-observed", "{fault}: {}", rows[0]);
        let found = rows[0]["reason"].as_str().unwrap();
        assert!(found.contains(reason), "{fault}: {found}");
        assert_eq!(rows[1]["verdict"], "agrees", "{fault}: the rest did not go on");
        assert!(!folder.path().join("kvdyno-results/audit").exists(), "{fault}: databases were left");
    }
}

#[test]
fn wrong_words_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (words, code, hint) in [
        ("no-such-engine", 2, "unknown engine"),
        ("memory-btree --durability default", 2, "name none, process or power"),
        ("memory-btree --durability often", 2, "unknown durability level `often`"),
        ("null --durability power", 2, "none of these engines has a level"),
        ("memory-btree --ops 1", 2, "expected 2 to 1000000 commits"),
    ] {
        let printed = kvdyno(folder.path(), &format!("prove --only syncs {words}"));
        assert_eq!(printed.code, Some(code), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(hint), "{words}: {}", printed.stderr);
    }
}

/// A process with a filter of this kind, of which there can be only one, that runs a command.
const FILTERED: &str = r"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog program = {1, &allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (listener < 0 || dup(listener) < 0) return 77;
  return execv(words[1], words + 1);
}
";

#[test]
fn without_the_filter_the_reason_is_given_and_nothing_is_concluded() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    std::fs::write(folder.path().join("filtered.c"), FILTERED).unwrap();
    let built = Command::new("cc").args(["-o", "filtered", "filtered.c"]).current_dir(folder.path()).status();
    assert!(built.expect("a C compiler named cc").success());
    let filtered = |words: &str| -> Printed {
        let mut command = Command::new(folder.path().join("filtered"));
        command.arg(env!("CARGO_BIN_EXE_kvdyno")).args(words.split(' ')).current_dir(folder.path());
        command.output().unwrap().into()
    };
    let audited = filtered("prove --only syncs mutant:lies-about-level --durability power --ops 5 --json");
    let rows: Value = serde_json::from_str(&audited.stdout).unwrap();
    assert_eq!((audited.code, &rows[0]["verdict"]), (Some(0), &"not-observed".into()), "{}", audited.stdout);
    assert!(rows[0]["reason"].as_str().unwrap().contains("no seccomp notification"), "{}", audited.stdout);
    std::fs::write(folder.path().join("durable.toml"), DURABLE).unwrap();
    let words =
        "run durable.toml --engines memory-btree --durability power --keys 500 --runs 1 --quiet --full";
    let run = filtered(words);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains("syncs/commit 1"), "{}", run.stdout);
}

const DURABLE: &str = r#"
about = "Durable puts and groups, then reads"

[[phase]]
name = "puts"
mix = { put = 1 }
distribution = "permutation"
ops = 200

[[phase]]
name = "groups"
mix = { put = 1 }
distribution = "permutation"
join = 8
ops = 400

[[phase]]
name = "reads"
mix = { get = 1 }
ops = 200
"#;

#[test]
fn a_run_has_what_was_observed_beside_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    std::fs::write(folder.path().join("durable.toml"), DURABLE).unwrap();
    let run = |engines: &str| {
        let words =
            format!("run durable.toml --engines {engines} --durability power --keys 500 --runs 1 --quiet");
        let printed = kvdyno(folder.path(), &words);
        let csv = kvdyno(folder.path(), "report --format csv").stdout;
        let mut lines = csv.lines().map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>());
        let titles = lines.next().unwrap();
        let place = |title: &str| titles.iter().position(|name| name == title).unwrap();
        let places = ["engine", "phase", "syncs_per_commit", "durability_observed"].map(place);
        let rows: Vec<String> = lines.map(|line| places.map(|place| line[place].clone()).join(" ")).collect();
        (printed, rows)
    };
    let (printed, rows) = run("memory-btree");
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    for row in ["memory-btree puts 1 agrees", "memory-btree groups 1 agrees", "memory-btree reads  "] {
        assert!(rows.iter().any(|found| found == row), "no `{row}` in {rows:?}");
    }
    // Two runs that begin in one second are not in order by their names.
    std::fs::remove_dir_all(folder.path().join("kvdyno-results")).unwrap();
    let (printed, rows) = run("memory-btree,mutant:lies-about-level");
    assert_eq!(printed.code, Some(3), "{}{}", printed.stdout, printed.stderr);
    for row in ["memory-btree puts 1 agrees", "mutant:lies-about-level puts 0 contradicted"] {
        assert!(rows.iter().any(|found| found == row), "no `{row}` in {rows:?}");
    }
    let short = kvdyno(folder.path(), "report").stdout;
    let reason = "mutant:lies-about-level is not ranked, its level power is contradicted: 20 of 20";
    assert!(short.contains(reason), "no `{reason}` in {short}");
    let full = kvdyno(folder.path(), "report --full").stdout;
    for note in ["syncs/commit 1.00", "level contradicted", "syncs/commit 0.00"] {
        assert!(full.contains(note), "no `{note}` in {full}");
    }
}

#[test]
fn every_engine_available_makes_the_calls_of_its_levels() {
    let folder = tempfile::tempdir().unwrap();
    if !has_filter(folder.path()) {
        return;
    }
    let (rows, printed) = audited(folder.path(), "--ops 40 --seed 7");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut wrong = Vec::new();
    for row in &rows {
        let (engine, level) = (text(&row["engine"]), text(&row["level"]));
        println!("{engine} {level}: {} {}", row["verdict"], row["reason"]);
        let is_mapped = level == "process" && text(&row["reason"]).contains("shared mappings");
        // A server whose program is not installed cannot be opened.
        let is_missing = row["version"].is_null() && !required_engines().contains(&&engine[..]);
        if row["verdict"] != "agrees" && !is_mapped && !is_missing {
            wrong.push(format!("seed 7: {engine} {level}: {} ({})", row["verdict"], row["reason"]));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), printed.stderr);
    let names: Vec<String> = rows.iter().map(|row| text(&row["engine"])).collect();
    let required = required_engines();
    let missing: Vec<_> = required.iter().filter(|name| !names.iter().any(|own| own == *name)).collect();
    assert!(missing.is_empty(), "not installed: {missing:?}");
}
