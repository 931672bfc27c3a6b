//! An engine that cannot load its keys in time costs one `load_seconds`, and the run says so.

use super::command::{Printed, build_driver, kvdyno, prepared};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// It needs ten seconds to load these keys, and the other engine a few milliseconds.
const WORDS: &str = "run quick --keys 10k --ops 500 --set sync.ops=20 --set sync.durability=none --durability none \
                     --runs 3 --load-seconds 2 --plugins plugins";

/// The records of the one run in a folder: engine, repetition, status with cause, text, and ops of the first phase.
fn records(folder: &Path) -> Vec<(String, u64, String, String, u64)> {
    let run: PathBuf =
        std::fs::read_dir(folder.join("kvdyno-results")).unwrap().flatten().next().unwrap().path();
    let json = |path: PathBuf| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let trials = std::fs::read_dir(run.join("trials")).unwrap().flatten();
    let files = trials.map(|entry| entry.path().join("record.json")).filter(|file| file.exists());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let record = |file: PathBuf| {
        let record = json(file);
        let outcome = &record["outcome"];
        let status = format!("{} {}", text(&outcome["status"]), text(&outcome["cause"]));
        (
            text(&record["trial"]["engine"]),
            record["trial"]["repetition"].as_u64().unwrap(),
            status.trim().to_string(),
            text(&outcome["text"]),
            record["phases"][0]["ops"].as_u64().unwrap_or(0),
        )
    };
    let mut records: Vec<_> = files.map(record).collect();
    records.sort();
    records
}

fn assert_one_bound(folder: &Path) {
    let records = records(folder);
    let of = |engine: &str| records.iter().filter(|record| record.0 == engine).collect::<Vec<_>>();
    assert!(of("memory-btree").iter().all(|record| record.2 == "ok"), "{records:?}");
    let slow = of("slow");
    let states: Vec<&str> = slow.iter().map(|record| record.2.as_str()).collect();
    assert_eq!(states, ["failed too-slow", "failed skipped", "failed skipped"], "{records:?}");
    let (first, loaded) = (&slow[0].3, slow[0].4);
    assert!((1..10_000).contains(&loaded), "{records:?}");
    assert!(first.contains(" of 10,000 keys in 2 s"), "{first}");
    assert!(slow[1].3.starts_with("run 1 was too slow: it loaded "), "{}", slow[1].3);
    assert_eq!(slow[1].4, 0, "it was run");
}

#[test]
fn an_engine_that_loads_too_slowly_is_a_line_with_the_reason_and_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/slow.c");
    let printed = kvdyno(folder.path(), &format!("{WORDS} --engines slow,memory-btree --quiet"));
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert_one_bound(folder.path());
    assert!(printed.stderr.contains("; its other runs are skipped"), "{}", printed.stderr);
    let told =
        printed.stdout.contains("slow skipped fill, ") && printed.stdout.contains(": too slow: loaded ");
    assert!(told && !printed.stdout.contains("slow ("), "{}", printed.stdout);
    let tables = kvdyno(folder.path(), "report --full").stdout;
    assert!(tables.contains("too slow: loaded ") && tables.contains("did not run"), "{tables}");
    // An engine that was not compared at all is a failure.
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/slow.c");
    let printed = kvdyno(folder.path(), &format!("{WORDS} --engines slow --quiet"));
    assert_eq!(printed.code, Some(1), "{}\n{}", printed.stderr, printed.stdout);
}

#[test]
fn a_resumed_run_skips_the_engine_that_was_too_slow_before() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/slow.c");
    let mut command = prepared(folder.path(), &format!("{WORDS} --engines slow,memory-btree"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (mut seen, mut byte) = (String::new(), [0; 1]);
    while !seen.contains("its other runs are skipped") {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the run ended early:\n{seen}");
        seen.push(byte[0] as char);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let printed: Printed = kvdyno(folder.path(), "run --resume --quiet --plugins plugins");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert_eq!(records(folder.path()).len(), 9, "two engines and the floor, three times");
    assert_one_bound(folder.path());
}
