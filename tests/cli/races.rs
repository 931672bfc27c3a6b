//! Races: engines that can no longer win are left out, also after the run was killed and resumed.

use super::command::{Printed, kvdyno, prepared};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Engines of very different speed, and a small workload.
const WORDS: &str =
    "run quick --engines memory-map,memory-btree,redb,sqlite --keys 2000 --ops 2000 --set sync.ops=5 --race";
const FIRST_LOOK: &str = "after 3 runs, engines that may still win: ";

fn run_folder(folder: &Path) -> PathBuf {
    std::fs::read_dir(folder.join("kvdyno-results")).unwrap().next().unwrap().unwrap().path()
}

fn plan(run: &Path) -> Value {
    let run: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
    run["plan"].clone()
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
    let beaten = |look: &Value| -> usize {
        look["tables"].as_array().unwrap().iter().map(|table| table["beaten"].as_array().unwrap().len()).sum()
    };
    assert!(beaten(&looks[0]) > 0, "these engines differ by far: {}", looks[0]);
    assert!(beaten(&looks[1]) >= beaten(&looks[0]), "an engine came back");
}

#[test]
fn a_race_leaves_engines_out_of_what_they_cannot_win_and_other_runs_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), WORDS);
    assert!(printed.stderr.contains(FIRST_LOOK), "{}", printed.stderr);
    assert_complete(&run_folder(folder.path()), &printed);
    let tables = kvdyno(folder.path(), "report --full").stdout;
    assert!(tables.contains("3 of 5 runs") && tables.contains("of each cell"), "{tables}");
    assert!(!tables.contains("trials are left") && !tables.contains("pending"), "{tables}");
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), &WORDS.replace(" --race", ""));
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
    let printed = kvdyno(folder.path(), "run --resume");
    assert!(!printed.stderr.contains(FIRST_LOOK), "the look was repeated:\n{}", printed.stderr);
    assert_eq!(plan(&run)["race"]["looks"][0], before["race"]["looks"][0]);
    assert_complete(&run, &printed);
}

#[test]
fn a_run_that_cannot_be_a_race_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        ("run quick --race --engines redb", "--race needs 4 or more engines"),
        (&format!("{WORDS} --runs 4"), "--race needs 5 or more runs"),
        (&format!("{WORDS} read-random"), "--race needs one workload"),
        (&format!("{WORDS} --reference memory-btree"), "--reference"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
    assert!(!folder.path().join("kvdyno-results").exists());
}
