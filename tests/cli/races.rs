//! Races: what is run is what the plan says after each look, also after the run was killed and resumed. Whether an engine is
//! skipped depends on the noise here; with known speeds, it is tested in the core.

use super::command::{Printed, kvdyno, prepared};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Four engines, and a small workload.
const WORDS: &str =
    "run quick --engines memory-map,memory-btree,redb,lmdb --keys 2000 --ops 2000 --set sync.ops=5";
const FIRST_LOOK: &str = "after 3 runs, engines that may still win: ";

fn run_folder(folder: &Path) -> PathBuf {
    std::fs::read_dir(folder.join("kvdyno-results")).unwrap().next().unwrap().unwrap().path()
}

fn plan(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// Checks that a race is complete: each trial of the plan that it has followed has a record of what the plan says.
fn assert_complete(run: &Path, printed: &Printed) {
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    let plan = plan(run);
    let looks = plan["race"]["looks"].as_array().unwrap();
    assert_eq!(looks.iter().map(|look| look["after"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4]);
    let trials = plan["trials"].as_array().unwrap();
    for trial in trials {
        let file = run.join("trials").join(trial["id"].as_str().unwrap()).join("record.json");
        let record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(record["trial"], *trial);
        let names = |phases: &Value, name: &dyn Fn(&Value) -> Value| -> Vec<Value> {
            phases.as_array().unwrap().iter().map(name).collect()
        };
        assert_eq!(
            names(&record["phases"], &|phase| phase["phase"]["name"].clone()),
            names(&trial["workload"]["phases"], &|phase| phase["name"].clone()),
            "{}",
            trial["id"]
        );
    }
    let count = std::fs::read_dir(run.join("trials")).unwrap().count();
    assert_eq!(count, trials.len(), "a trial was run that is not in the plan");
}

#[test]
fn a_run_is_a_race_that_runs_what_its_looks_say_unless_it_is_fixed() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), WORDS);
    assert!(printed.stderr.contains(FIRST_LOOK), "{}", printed.stderr);
    assert_complete(&run_folder(folder.path()), &printed);
    let tables = kvdyno(folder.path(), "report --full").stdout;
    assert!(tables.contains("race       looked after runs 3 and 4; "), "{tables}");
    assert!(!tables.contains("left: ") && !tables.contains("--resume"), "{tables}");
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), &format!("{WORDS} --fixed"));
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    assert!(!printed.stderr.contains("may still win"), "{}", printed.stderr);
    let plan = plan(&run_folder(folder.path()));
    assert_eq!((plan["race"].clone(), plan["trials"].as_array().unwrap().len()), (Value::Null, 25));
}

#[test]
fn a_race_that_is_killed_and_resumed_follows_the_looks_that_it_has_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        prepared(folder.path(), WORDS).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let look = lines.find(|line| line.as_ref().unwrap().contains(FIRST_LOOK)).unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let run = run_folder(folder.path());
    let before = plan(&run);
    assert_eq!(before["race"]["looks"].as_array().unwrap().len(), 1, "{look}");
    // It goes on with the plan that it began with.
    let refused = kvdyno(folder.path(), "run --resume --fixed");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("which has other rules (--race, --fixed)"), "{}", refused.stderr);
    let printed = kvdyno(folder.path(), "run --resume --race");
    assert!(!printed.stderr.contains(FIRST_LOOK), "the look was repeated:\n{}", printed.stderr);
    assert_eq!(plan(&run)["race"]["looks"][0], before["race"]["looks"][0]);
    assert_complete(&run, &printed);
}

#[test]
fn a_run_that_cannot_be_a_race_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        ("run quick --race --engines redb", "--race needs 4 or more engines"),
        (&format!("{WORDS} --race --runs 4"), "--race needs 5 or more runs"),
        (
            "run quick read-random --race --engines memory-map,memory-btree,redb,lmdb",
            "--race needs one workload",
        ),
        (&format!("{WORDS} --race --reference memory-btree"), "--reference"),
        (&format!("{WORDS} --race --fixed"), "--fixed"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
    assert!(!folder.path().join("kvdyno-results").exists());
    let text = "after runs 3 and 4, engines leave the phases that they can no longer win to the others";
    for (flags, is_race) in [("", true), ("--race", true), ("--fixed", false), ("--runs 4", false)] {
        let printed = kvdyno(folder.path(), &format!("{WORDS} --dry-run {flags}"));
        assert_eq!(
            (printed.code, printed.stdout.contains(text)),
            (Some(0), is_race),
            "{flags}: {}",
            printed.stdout
        );
    }
}
