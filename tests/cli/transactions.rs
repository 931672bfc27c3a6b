//! A phase that is one transaction, on every engine here that has transactions over several calls.

use super::command::{kvdyno, prepared};

/// Names of the engines that are here and have them.
fn engines(folder: &std::path::Path) -> Vec<String> {
    let printed: super::command::Printed =
        prepared(folder, "engines --json").output().expect("the command can be started").into();
    let engines: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let engines = engines.as_array().unwrap().iter();
    let has = |engine: &&serde_json::Value| {
        let capabilities = engine["capabilities_declared"].as_array().into_iter().flatten();
        let is_compared = !engine["name"].as_str().unwrap().starts_with("null");
        let can = capabilities.filter_map(|name| name.as_str()).any(|name| name == "long-transaction");
        engine["is_present"] == true && is_compared && can
    };
    engines.filter(has).map(|engine| engine["name"].as_str().unwrap().to_string()).collect()
}

/// Keys in the database after each phase, in the only record of the engine's.
fn keys_after(folder: &std::path::Path, engine: &str) -> Vec<u64> {
    let runs = std::fs::read_dir(folder.join("kvdyno-results")).unwrap().flatten();
    let trials =
        runs.flat_map(|run| std::fs::read_dir(run.path().join("trials")).into_iter().flatten().flatten());
    let is_of = |name: &std::ffi::OsStr| name.to_string_lossy().contains(&format!("-{engine}-toku-insert"));
    let trial = trials.filter(|trial| is_of(&trial.file_name())).last().unwrap();
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(trial.path().join("record.json")).unwrap()).unwrap();
    record["phases"].as_array().unwrap().iter().map(|phase| phase["keys_after"].as_u64().unwrap()).collect()
}

#[test]
fn a_phase_is_one_transaction_that_is_committed_or_undone() {
    let folder = tempfile::tempdir().unwrap();
    let engines = engines(folder.path());
    if engines.is_empty() {
        println!("skipped: no engine with transactions over several calls is here");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs one (apt-get install libdb5.3-dev)");
    }
    for engine in engines {
        // Committed, undone and inserted again, with groups inside, and all undone.
        for (set, wanted) in [
            ("--set serial.transaction=whole", [500, 1000, 1500, 2000]),
            ("--set random.transaction=aborted", [500, 500, 1000, 1000]),
            ("--set serial.transaction=aborted --set random.transaction=aborted", [0, 0, 0, 0]),
            (
                "--set serial.transaction=whole --set serial.join=10 --set serial.atomic=true --durability power",
                [500, 1000, 1500, 2000],
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let words =
                format!("run toku-insert --engines {engine} --ops 500 --set rounds=2 --runs 1 --quiet {set}");
            let printed = kvdyno(folder.path(), &words);
            assert_eq!(printed.code, Some(0), "{words}\n{}\n{}", printed.stderr, printed.stdout);
            // Where the second half of a turn is undone, its keys are what the next phase inserts.
            assert_eq!(keys_after(folder.path(), &engine), wanted, "{words}");
        }
    }
}

#[test]
fn an_engine_without_them_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        "run toku-insert --engines memory-btree --ops 100 --runs 1 --quiet --set serial.transaction=whole";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(
        printed.stdout.contains("the engine has no transactions over several calls"),
        "{}",
        printed.stdout
    );
}
