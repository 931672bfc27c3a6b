//! Bad input: a line that says what is wrong, a hint (such as the nearest name), and the exit code of docs/glossary.md.

use super::command::{kvdyno, required_engines};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Arguments, exit code, and what stderr must hold.
const CASES: &[(&str, i32, &[&str])] = &[
    ("run quick --engines rdeb", 2, &["unknown engine `rdeb`", "did you mean `redb`"]),
    ("run quick --engines lsn", 2, &["unknown engine `lsn`", "did you mean `lsm`"]),
    ("run quick --engines all,-rsut", 2, &["unknown engine `rsut`", "did you mean `rust`"]),
    ("run quick --engines nosuch*", 2, &["no engine matches `nosuch*`"]),
    ("run quick --engines null*", 2, &["`null*` matches only engines that must be named: null"]),
    ("run quick --engines mutant:*", 2, &["no engine matches `mutant:*`"]),
    ("run quick --engines memory-map,-rust", 2, &["selects no engine"]),
    ("run quick --engines=-all", 2, &["selects no engine"]),
    ("prove --only rules defualt", 2, &["did you mean `default`"]),
    ("engines rsut", 2, &["did you mean `rust`"]),
    ("run quick --load-seconds 0", 2, &["expected a time over 0"]),
    ("run quikc", 2, &["unknown workload `quikc`", "did you mean `quick`"]),
    ("run", 2, &["no workload given"]),
    ("run missing.toml", 2, &["cannot read the workload missing.toml"]),
    ("run quick --keys 10kk", 2, &["10kk"]),
    ("run quick --keys 1k,1k", 2, &["two workloads named `quick-1k`"]),
    ("run quick --keys 1k,x", 2, &["expected a count"]),
    ("run quick --scale 0", 2, &["expected a factor from 0.000001"]),
    ("run quick --scale=-1", 2, &["expected a factor from 0.000001"]),
    ("run quick --threads cpu", 2, &["cpus-1"]),
    ("run quick --durability process,powr", 2, &["unknown durability level `powr`", "did you mean `power`"]),
    ("run mininb-siute", 2, &["unknown workload `mininb-siute`", "did you mean `mininb-suite`"]),
    ("run quick --durability powr", 2, &["unknown durability level `powr`", "did you mean `power`"]),
    ("run quick --set read.secnds=1", 2, &["secnds", "seconds"]),
    ("run quick --set nophase.seconds=1", 2, &["nophase"]),
    ("run quick --set read.distribution=zipff:1", 2, &["zipff"]),
    ("run quick --engines memory-btree --option memory-btree.lgo=on", 2, &["lgo", "did you mean `log`"]),
    ("run quick --engines memory-btree --option redb.x=1", 2, &["redb"]),
    ("run quick --engines memory-btree --option nonsense", 2, &["expected engine.name=value"]),
    ("run quick --engines mutant:stale-raed", 2, &["did you mean `mutant:stale-read`"]),
    ("run quick --key-size 4 --set key.encoding=decimal", 2, &["quick"]),
    ("report nowhere", 2, &["nowhere"]),
    ("report --format pdf", 2, &["unknown format `pdf`"]),
    ("engines levledb", 2, &["unknown engine"]),
    ("workloads ycsb-g", 2, &["did you mean `ycsb-"]),
    ("prove --only rules nothing-like-it", 2, &["unknown engine"]),
    ("run quick --resume", 2, &["no run to resume"]),
    ("frobnicate", 2, &["unknown command `frobnicate`", "hint: "]),
    ("--engines redb", 2, &["`--engines` is a flag of `kvdyno run`", "kvdyno run quick --engines redb"]),
    ("quick", 2, &["unknown command `quick`", "`quick` is a workload: kvdyno run quick"]),
    ("quikc", 2, &["unknown command `quikc`", "hint: "]),
    ("verfy memory-map", 2, &["unknown command `verfy`", "hint: "]),
    ("RUN quick", 2, &["commands are lower case: kvdyno run quick"]),
    ("memory-map", 2, &["`memory-map` is an engine: `kvdyno run quick --engines memory-map`"]),
    ("run quick -engines memory-map", 2, &["unknown flag `-engines`", "two dashes: --engines"]),
    ("report --engines memory-map", 2, &["`kvdyno report` has no flag `--engines`", "`kvdyno run`"]),
    ("run quick --engines Memory-Map", 2, &["did you mean `memory-map`? Names are lower case"]),
    ("run Quick", 2, &["unknown workload `Quick`", "did you mean `quick`? Names are lower case"]),
    ("run quick --keys 1,000", 2, &["has a thousands separator; write 1000 or 1k"]),
    ("run quick --keys 10.000", 2, &["has a thousands separator; write 10000 or 10k"]),
    ("run quick --keys 10,500", 2, &["`10,500` is ambiguous", "write 10500", "--keys 10 --keys 500"]),
    ("run quick --ops 1,000,000", 2, &["write 1000000 or 1M"]),
    ("run quick --seconds 1,5", 2, &["has a decimal comma; write 1.5"]),
    ("run quick --set keys=1,000", 2, &["write 1000 or 1k"]),
    ("keys make k --count 1,000 --key-size 16", 2, &["write 1000 or 1k"]),
    ("run quick --runs five", 2, &["expected a whole number, 1 or more"]),
    ("run quick --runs 0", 2, &["expected a whole number, 1 or more"]),
    ("run quick --runs 99999999999", 2, &["expected a whole number, 1 or more"]),
    ("run quick --stall-seconds ten", 2, &["expected a whole number, 1 or more"]),
    ("run quick --seed x", 2, &["expected a whole number, 0 or more"]),
    ("serve memory-map --port x", 2, &["expected a whole number from 0 to 65535"]),
    ("run quick --value-size 2GiB", 2, &["expected sizes from 0 B to 1 GiB, got 2 GiB"]),
    (
        "run quick --durability fsync",
        2,
        &["unknown durability level `fsync`", "did you mean `power`?", "fsync"],
    ),
    ("prove memory-map --only syncs --durability async", 2, &["did you mean `none`?", "The levels are: "]),
    ("serve memory-map --durability strong", 2, &["unknown durability level `strong`", "the levels are: "]),
    ("run --resume .", 2, &["`.` is a folder, not a workload", "kvdyno run --resume=."]),
    ("run --resume=.", 2, &["--resume: . is not the folder of a run", "contains run.json"]),
    ("run --resume=nowhere", 2, &["--resume: nowhere does not exist", "contains run.json"]),
    (
        "run quick --engines memory-map --data no/new",
        2,
        &["--data: the folder no does not exist", "spelling"],
    ),
    (
        "run quick --engines memory-map --keep no/new",
        2,
        &["--keep: the folder no does not exist", "spelling"],
    ),
    ("prove memory-map --only rules --data no/new", 2, &["--data: the folder no does not exist"]),
    ("run quick memory-map", 2, &["unknown workload `memory-map`", "it is an engine: --engines memory-map"]),
    ("run quick.toml", 2, &["cannot read the workload quick.toml", "`quick` is a built-in workload"]),
    ("run quick --scale 0,1", 2, &["has a decimal comma; write 0.1"]),
    ("serve memory-map --bind localhost", 2, &["expected an IP address such as 127.0.0.1"]),
    ("serve memory-map --max-bulk 1TiB", 2, &["--max-bulk 1 TiB exceeds the maximum of 512 MiB"]),
    ("compare a b --fail-on regression=5", 2, &["unknown condition", "'regression>N%'"]),
];

#[test]
fn bad_input_has_a_message_a_hint_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    for (words, code, wanted) in CASES {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(*code), "kvdyno {words}\n{}", printed.stderr);
        for text in *wanted {
            assert!(printed.stderr.contains(text), "kvdyno {words}: no `{text}` in\n{}", printed.stderr);
        }
        assert_eq!(printed.stdout, "", "kvdyno {words}: only results go to stdout");
    }
    assert!(!folder.path().join("kvdyno-results").exists(), "a refused run left a folder");
}

#[test]
fn a_dry_run_prints_the_plan_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run quick --engines memory-map,memory-btree --runs 3 --data new --dry-run";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    for text in ["quick", "9 trials, about ", "dry run: nothing was run"] {
        assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a dry run left something");
}

#[test]
fn a_file_system_that_is_read_only_is_not_called_full() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), "run quick --engines memory-map --data /proc/new");
    assert!(printed.code == Some(2) || printed.code == Some(1), "{}", printed.stderr);
    assert!(!printed.stderr.contains("0 B are free"), "{}", printed.stderr);
}

#[test]
fn a_wrong_workload_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.toml"), "about = \"x\"\n\n[[phase]]\nname = \"a\"\nmixx = 3\n")
        .unwrap();
    let printed = kvdyno(folder.path(), "run mine.toml");
    assert_eq!(printed.code, Some(2));
    assert!(printed.stderr.contains("mine.toml:5"), "{}", printed.stderr);
    assert!(printed.stderr.contains("mix"), "{}", printed.stderr);
}

#[test]
fn a_data_folder_that_is_not_ours_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("home");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("thesis.txt"), "years").unwrap();
    let printed = kvdyno(folder.path(), "run quick --engines memory-btree --data home");
    assert_eq!(printed.code, Some(2));
    assert!(printed.stderr.contains("thesis.txt"), "{}", printed.stderr);
    assert_eq!(fs::read_to_string(data.join("thesis.txt")).unwrap(), "years");
}

#[test]
fn a_plan_that_does_not_fit_the_disk_is_refused_with_the_estimate() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run fill-random --engines memory-btree --keys 100G --set key.spacing=1";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(1), "{}", printed.stderr);
    assert!(printed.stderr.contains("of disk") && printed.stderr.contains("are free"), "{}", printed.stderr);
}

#[test]
fn plugins_that_are_no_plugins_or_not_safe_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::write(plugins.join("libkvdyno_text.so"), "no library").unwrap();
    let writable = plugins.join("libkvdyno_open.so");
    fs::write(&writable, "").unwrap();
    fs::set_permissions(&writable, fs::Permissions::from_mode(0o777)).unwrap();
    let source = folder.path().join("other.c");
    fs::write(&source, "unsigned list[2] = {99, 0};\nconst void *kv_plugin(void) { return list; }\n")
        .unwrap();
    let empty = folder.path().join("empty.c");
    fs::write(&empty, "int nothing;\n").unwrap();
    for (source, name) in [(&source, "libkvdyno_other-abi.so"), (&empty, "libkvdyno_empty.so")] {
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC"])
            .arg(source)
            .arg("-o")
            .arg(plugins.join(name))
            .status();
        assert!(built.expect("a C compiler named cc").success());
    }
    let printed = kvdyno(folder.path(), "engines --plugins plugins");
    assert_eq!(printed.code, Some(0));
    for text in ["not a shared library", "chmod go-w", "ABI 99", "does not export `kv_plugin`"] {
        assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
    }
}

#[test]
fn lists_help_completions_and_manual_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        ("--help", "prove"),
        ("run --help", "--durability"),
        ("run -h", "kvdyno run ycsb-a --engines redb,sled"),
        ("completions bash", "memory-btree"),
        ("engines", "memory-btree"),
        ("engines memory-btree", "capabilities"),
        ("workloads", "ycsb-f"),
        ("workloads quick --toml", "[[phase]]"),
        ("completions bash", "kvdyno"),
        ("man", "kvdyno"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(0), "kvdyno {words}\n{}", printed.stderr);
        assert!(printed.stdout.contains(wanted), "kvdyno {words}: no `{wanted}` in\n{}", printed.stdout);
    }
}

fn listed(folder: &tempfile::TempDir, words: &str) -> serde_json::Value {
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "kvdyno {words}\n{}", printed.stderr);
    serde_json::from_str(&printed.stdout).unwrap()
}

/// An engine of the catalogue that this build does not have, with the reason that `plugins/absent.txt` gives for it.
fn absent(folder: &tempfile::TempDir) -> Option<(String, String)> {
    let engines = listed(folder, "engines --json");
    let absent = engines.as_array().unwrap().iter().find(|engine| engine["is_present"] == false)?;
    let name = absent["name"].as_str().unwrap().to_string();
    let plugins = folder.path().join("plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("absent.txt"), format!("{name}\tits header is on the moon\n")).unwrap();
    Some((name, absent["get"].as_str().unwrap().to_string()))
}

#[test]
fn an_absent_engine_is_listed_with_its_install_command_and_naming_it_is_exit_code_4() {
    let folder = tempfile::tempdir().unwrap();
    let Some((name, get)) = absent(&folder) else {
        println!("skipped: every known engine is available");
        return;
    };
    for words in [format!("run quick --engines {name}"), format!("prove --only rules {name}")] {
        let printed = kvdyno(folder.path(), &format!("{words} --plugins plugins"));
        assert_eq!(printed.code, Some(4), "kvdyno {words}\n{}", printed.stderr);
        for text in [&name, "its header is on the moon", &get] {
            assert!(printed.stderr.contains(text), "kvdyno {words}: no `{text}` in\n{}", printed.stderr);
        }
    }
    // A pattern that matches nothing else.
    let printed = kvdyno(folder.path(), &format!("run quick --engines ?{} --plugins plugins", &name[1..]));
    assert_eq!(printed.code, Some(4), "{}", printed.stderr);
    for text in [&format!("no engine of `?{}` is available", &name[1..]), &name, &get] {
        assert!(printed.stderr.contains(text), "no `{text}` in\n{}", printed.stderr);
    }
    let small = "--keys 50 --ops 50 --runs 1 --quiet --set sync.ops=5";
    let words = format!("run quick --engines ?{},memory-map {small}", &name[1..]);
    let printed = kvdyno(folder.path(), &format!("{words} --plugins plugins"));
    assert_eq!(printed.code, Some(4), "a group of which no engine is available\n{}", printed.stderr);
    for words in ["engines --plugins plugins".to_string(), format!("engines {name} --plugins plugins")] {
        let printed = kvdyno(folder.path(), &words);
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        for text in [&name, "its header is on the moon", &get] {
            assert!(printed.stdout.contains(text), "kvdyno {words}: no `{text}` in\n{}", printed.stdout);
        }
    }
}

#[test]
fn an_engine_is_listed_with_everything_known_about_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = listed(&folder, "engines memory-btree --json");
    for (field, wanted) in [("is_present", "true"), ("is_known", "true"), ("origin", "\"built in\"")] {
        assert_eq!(engine[field].to_string(), wanted, "{field}");
    }
    for field in ["version", "licence", "get", "capabilities_proven", "levels", "options", "fairness"] {
        assert!(!engine[field].is_null(), "no {field} in {engine}");
    }
}

#[test]
fn only_what_is_proven_is_written_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        "prove --only rules memory-map mutant:stale-read --ops 500 --seconds 0.5 --proven proven.toml";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(3), "{}", printed.stdout);
    let text = fs::read_to_string(folder.path().join("proven.toml")).unwrap();
    assert!(text.contains("name = \"memory-map\"") && text.contains("\"overwrite\""), "{text}");
    assert!(!text.contains("mutant") && !text.contains("\"ordered\""), "{text}");
    assert!(printed.stderr.contains("nothing was proven"), "{}", printed.stderr);
}

#[test]
fn every_required_engine_is_available() {
    let folder = tempfile::tempdir().unwrap();
    let engines = listed(&folder, "engines --json");
    // In CI, so that a missing engine cannot hide behind a skip.
    let absent = absent_of(&required_engines(), &engines);
    assert!(absent.is_empty(), "required and absent: {absent:?}");
    // An engine that is known and not installed is one that is missing, and so is one that nobody knows.
    let known = engines.as_array().unwrap().iter().find(|engine| engine["is_present"] == false);
    let known = known.map_or("no-such-engine", |engine| engine["name"].as_str().unwrap());
    assert_eq!(absent_of(&["null", known, "another-engine", "memory-map"], &engines).len(), 2);
}

/// Those of `names` that are not available, each with the reason.
fn absent_of(names: &[&str], engines: &serde_json::Value) -> Vec<String> {
    let absent = names.iter().filter_map(|name| {
        let engine = engines.as_array().unwrap().iter().find(|engine| engine["name"] == *name);
        match engine {
            Some(engine) if engine["is_present"] == true => None,
            Some(engine) => Some(format!("{name}: {}", engine["reason"])),
            None => Some(format!("{name}: no engine has that name")),
        }
    });
    absent.collect()
}

#[test]
fn every_required_facility_works_and_what_is_not_ok_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // Set by the Makefile for CI, so that a missing facility cannot hide behind a skip.
    let required = std::env::var("KVDYNO_REQUIRED_FACILITIES").unwrap_or_default();
    let doctor = |require: &str| -> super::command::Printed {
        let mut command = super::command::prepared(folder.path(), "doctor --json --require");
        command.arg(require).output().unwrap().into()
    };
    let printed = doctor(&required);
    assert_eq!(printed.code, Some(0), "{required}: {}", printed.stderr);
    let found: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    let rows = found["rows"].as_array().unwrap();
    let is_ok = |row: &&serde_json::Value| row["verdict"] == "ok" || row["verdict"] == "info";
    let ok = rows.iter().find(is_ok).unwrap()["name"].as_str().unwrap();
    if let Some(row) = rows.iter().find(|row| row["verdict"] == "missing") {
        let name = row["name"].as_str().unwrap();
        let printed = doctor(&format!("{}, {name}", ok.to_uppercase()));
        let wanted = format!("error: required and not ok: {name} (");
        assert!(printed.stderr.starts_with(&wanted), "{}", printed.stderr);
        assert_eq!(printed.code, Some(1));
    }
    let printed = doctor("no such row");
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(printed.stderr.contains("doctor has no row `no such row`"), "{}", printed.stderr);
}

#[test]
fn a_closed_stdout_does_not_cause_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    for words in ["workloads quick", "man", "run fill-random --engines memory-map --keys 1k --runs 1"] {
        let mut command = super::command::prepared(folder.path(), words);
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(!stderr.contains("panicked"), "kvdyno {words}: {stderr}");
        assert_ne!(ended.status.code(), Some(101), "kvdyno {words}");
    }
}
