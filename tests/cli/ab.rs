//! Builds, versions and settings of engines that are compared by trials in turns.

use super::command::{Printed, kvdyno, prepared};
use std::path::Path;
use std::process::Command;

pub(super) const SMALL: &str = "keys = 1000\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\njoin = 1000\n\
    [[phase]]\nname = 'run'\nmix = { get = 9, update = 1 }\nseconds = 5\n";

pub(super) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

pub(super) fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten();
    all.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn each_figure_of_each_arm_has_a_row_and_the_loaded_databases_are_removed() {
    let folder = folder();
    let printed = kvdyno(
        folder.path(),
        "ab small.toml --a lmdb --b memory-btree --b lmdb:durability=none --trial 0.1 --minutes 0.1 --format csv",
    );
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let rows: Vec<Vec<&str>> = printed.stdout.lines().map(|line| line.split(',').collect()).collect();
    let figures: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[2], row[4])).collect();
    let expected = [
        ("ops_per_second", "memory-btree"),
        ("ops_per_second", "lmdb"),
        ("p99_ns", "memory-btree"),
        ("p99_ns", "lmdb"),
    ];
    assert_eq!(figures, expected, "{}", printed.stdout);
    for row in &rows[1..] {
        assert!(row[6].parse::<f64>().is_ok_and(|value| value > 0.0), "{}", printed.stdout);
        assert!(row[12].parse::<u64>().is_ok_and(|blocks| blocks > 0), "{}", printed.stdout);
    }
    let [own] = &entries(&folder.path().join("kvdyno-results"))[..] else { panic!("one folder") };
    let kept = entries(own);
    assert!(kept.len() > 5, "each trial is kept: {kept:?}");
    assert!(kept.iter().all(|path| path.join("run.json").is_file()), "{kept:?}");
}

#[test]
fn arms_that_cannot_be_compared_are_refused_in_one_line_before_anything_is_written() {
    let folder = folder();
    std::fs::write(folder.path().join("scan.toml"), "[scan]\nrate = '5%'\n").unwrap();
    for (flags, wanted) in [
        ("--a lmdb --b lmdb", "two arms are equal"),
        ("--a lmdb --b nosuch", "unknown engine `nosuch`"),
        ("--a lmdb --b gone.so", "gone.so: No such file"),
        ("--a lmdb --b small.toml.so", "small.toml.so: "),
        ("--a lmdb --b lmdb:nosuch=1", "unknown option of lmdb `nosuch`"),
        ("--a lmdb --b memory-btree --seconds 3", "--seconds: ab sets"),
        ("--a lmdb --b memory-btree --keys 1k,2k", "one workload at a time"),
        ("--a lmdb --b memory-btree --until 90%", "expected 0.1% to 50%"),
        ("--a lmdb --b memory-btree --minutes 0", "expected 0.1 to 1440"),
        ("--a lmdb,redb --b memory-btree", "lmdb,redb"),
        ("--a lmdb --b memory-btree --fail-on slower", "expected worse, rate, p99 or inconclusive"),
        ("--a lmdb --b memory-btree --fail-on rate>1%", "comparisons end at intervals of 2 %"),
        ("--a lmdb --b memory-btree --fail-on rate --rate 1k", "--fail-on 'rate': it is not measured"),
        ("--a lmdb --b memory-btree --fail-on inconclusive", "no figure that must not become worse"),
        ("--a lmdb --b memory-btree --fail-on worse --minutes 0.3", "it could not show any change"),
        ("--a lmdb --b memory-btree --limits gone.toml", "--limits gone.toml: No such file"),
        ("--a lmdb --b memory-btree --limits scan.toml", "[scan] rate = \"5%\": it is not measured"),
    ] {
        let printed = kvdyno(folder.path(), &format!("ab small.toml {flags}"));
        assert_eq!(printed.code, Some(2), "{flags}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{flags}: {}", printed.stderr);
        assert!(!folder.path().join("kvdyno-results").exists(), "{flags}");
    }
}

#[test]
fn arms_at_different_levels_are_refused_unless_a_level_is_given() {
    let folder = folder();
    let printed = kvdyno(folder.path(), "ab small.toml --a lmdb --b redb --trial 0.1 --minutes 0.1");
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("lmdb is at level process, and redb at level power"),
        "{}",
        printed.stderr
    );
    let given = "ab small.toml --a lmdb:durability=power --b redb --trial 0.1 --minutes 0.1";
    let printed = kvdyno(folder.path(), given);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(printed.stdout.contains("A: lmdb, at level power"), "{}", printed.stdout);
}

/// Builds the example driver in C with a change as `FOLDER/libkvdyno_example.so`.
pub(super) fn build_example(folder: &Path, change: (&str, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("engines/example/driver.c")).unwrap();
    assert_eq!(text.matches(change.0).count(), 1, "{}", change.0);
    std::fs::create_dir(folder).unwrap();
    let source = folder.join("driver.c");
    std::fs::write(&source, text.replace(change.0, change.1)).unwrap();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-I"])
        .arg(root.join("driver/include"))
        .arg(&source)
        .arg("-o")
        .arg(folder.join("libkvdyno_example.so"))
        .status();
    assert!(built.expect("a C compiler named cc").success());
}

const VERSION: &str = "snprintf(opened->version, sizeof(opened->version), \"1\");";

#[test]
fn two_builds_of_one_engine_each_run_their_own_file() {
    let folder = folder();
    build_example(&folder.path().join("old"), (VERSION, &VERSION.replace("\"1\"", "\"old\"")));
    build_example(&folder.path().join("new"), (VERSION, &VERSION.replace("\"1\"", "\"new\"")));
    let arms = "ab small.toml --durability none --a old/libkvdyno_example.so --b new/libkvdyno_example.so";
    let printed = kvdyno(folder.path(), &format!("{arms} --trial 0.1 --minutes 0.1"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(printed.stdout.contains("A: example, old/libkvdyno_example.so"), "{}", printed.stdout);
    let [own] = &entries(&folder.path().join("kvdyno-results"))[..] else { panic!("one folder") };
    let count = |version: &str| {
        let is_it = |record: &str| record.contains(&format!("\"version\":\"{version}\""));
        let trials = entries(own).into_iter().flat_map(|run| entries(&run.join("trials")));
        trials.filter(|trial| is_it(&std::fs::read_to_string(trial.join("record.json")).unwrap())).count()
    };
    let (old, new) = (count("old"), count("new"));
    // Each was loaded once, and ran in each block.
    assert!(old == new && old >= 2, "{old} trials of the old file, {new} of the new one");
}

/// Builds a driver as `worn/libkvdyno_example.so` whose seventh open and all later ones fail.
pub(super) fn build_worn(folder: &Path) {
    // Each open adds a byte to a file.
    let worn = format!(
        "FILE *opens = fopen(\"{}\", \"a\");\n  fputc('x', opens);\n  const long count = ftell(opens);\n  fclose(opens);\n  \
         if (count > 6) return kv_fail_open(opened, KV_ERROR, \"it is worn out\");\n  uint64_t room;",
        folder.join("opens").display()
    );
    build_example(&folder.join("worn"), ("uint64_t room;", &worn));
}

#[test]
fn trials_that_fail_end_the_comparison_and_are_told_by_the_exit_code() {
    let folder = folder();
    build_worn(folder.path());
    let arms =
        "ab small.toml --durability none --a memory-btree --b worn/libkvdyno_example.so --fail-on worse";
    let printed = kvdyno(folder.path(), &format!("{arms} --trial 0.1 --minutes 5"));
    assert_eq!(printed.code, Some(1), "{}", printed.stderr);
    assert!(printed.stderr.contains("a trial failed: "), "{}", printed.stderr);
    assert!(printed.stderr.contains("worn out"), "{}", printed.stderr);
    assert!(printed.stderr.contains("trials of 3 blocks in turn have failed"), "{}", printed.stderr);
    assert!(printed.stdout.contains("3 trials failed"), "{}", printed.stdout);
}

#[test]
fn limits_set_the_exit_code_and_the_summary_of_a_job_has_the_verdicts() {
    let folder = folder();
    let start = "(void)batch;\n  pthread_mutex_lock";
    for (name, spins) in [("fast", 1), ("slow", 50_000)] {
        let spin = format!("for (volatile int spin = 0; spin < {spins}; spin++) {{}}\n  {start}");
        build_example(&folder.path().join(name), (start, &spin));
    }
    std::fs::write(folder.path().join("limits.toml"), "[run]\nrate = '20%'\n").unwrap();
    std::fs::write(folder.path().join("summary.md"), "before\n").unwrap();
    let run = |a: &str, b: &str, flags: &str| {
        let arms = format!("--a {a}/libkvdyno_example.so --b {b}/libkvdyno_example.so");
        let words = format!("ab small.toml --durability none {arms} --trial 0.1 --minutes 3 {flags}");
        let mut command = prepared(folder.path(), &words);
        Printed::from(command.env("GITHUB_STEP_SUMMARY", "summary.md").output().unwrap())
    };
    let summary = || std::fs::read_to_string(folder.path().join("summary.md")).unwrap();

    let slower = run("fast", "slow", "--limits limits.toml --format markdown");
    assert_eq!(slower.code, Some(10), "{}", slower.stderr);
    assert!(slower.stderr.contains("worse: ops/s of phase run: 9"), "{}", slower.stderr);
    assert!(slower.stderr.contains("(limits.toml: [run] rate = \"20%\")"), "{}", slower.stderr);
    assert!(
        slower.stdout.contains("\n| phase | figure | A | B | B/A | interval | verdict |\n"),
        "{}",
        slower.stdout
    );
    assert_eq!(summary(), format!("before\n{}", slower.stdout));
    assert!(slower.stderr.contains("summary: summary.md\n"), "{}", slower.stderr);

    let faster = run("slow", "fast", "--limits limits.toml --fail-on worse,inconclusive");
    assert_eq!(faster.code, Some(0), "{}", faster.stderr);
    // Each run appends its own.
    assert_eq!(summary().matches("### kvdyno ab small").count(), 2, "{}", summary());
}

#[test]
fn the_action_uses_all_its_inputs_and_only_flags_that_exist() {
    let action = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml")).unwrap();
    let (inputs, runs) = action.split_once("\nruns:\n").unwrap();
    let inputs = inputs.split_once("\ninputs:\n").unwrap().1;
    let names = inputs.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let names: Vec<&str> = names.filter(|name| !name.starts_with(' ')).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(runs.contains(&format!("${{{{ inputs.{name} }}}}")), "the input {name} is not used");
    }
    let help = kvdyno(Path::new("."), "ab --help").stdout;
    let compare = runs.split_once("read -ra flags").unwrap().1;
    let flags: Vec<&str> = compare
        .split(|letter: char| letter.is_whitespace() || letter == '(')
        .filter(|word| word.starts_with("--"))
        .collect();
    assert!(flags.len() >= 5, "{flags:?}");
    for flag in flags {
        assert!(help.contains(&format!("{flag} <")), "`kvdyno ab` has no {flag}");
    }
}

#[test]
fn an_arm_is_run_by_the_kvdyno_that_it_names() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let other = folder.path().join("kvdyno");
    let log = folder.path().join("log");
    let script =
        format!("#!/bin/sh\necho run >> {}\nexec {} \"$@\"\n", log.display(), env!("CARGO_BIN_EXE_kvdyno"));
    std::fs::write(&other, script).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    let printed = kvdyno(
        folder.path(),
        "ab small.toml --a memory-btree@./kvdyno --b memory-btree --trial 0.1 --minutes 0.1",
    );
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(printed.stdout.contains("A: memory-btree, ./kvdyno"), "{}", printed.stdout);
    let [own] = &entries(&folder.path().join("kvdyno-results"))[..] else { panic!("one folder") };
    let runs = std::fs::read_to_string(log).unwrap().lines().count();
    // It was asked for its version, and ran one half of the trials, each in a process and with another that opens the database again.
    let own_trials = entries(own).len() / 2;
    assert!(
        (own_trials + 1..=2 * own_trials + 1).contains(&runs),
        "{runs} processes for {own_trials} trials"
    );
    let printed = kvdyno(folder.path(), "ab small.toml --a memory-btree@small.toml --b memory-btree");
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(printed.stderr.contains("small.toml: "), "{}", printed.stderr);
}
