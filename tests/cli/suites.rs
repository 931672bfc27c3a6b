//! Lists of sizes and levels, suites, and files of keys, as people use them.

use super::command::{Printed, kvdyno};
use std::fs;
use std::path::Path;

const TINY: &str = "--runs 1 --seconds 0.05 --engines memory-btree --quiet";

/// The trials in the plan of the one run in a folder: workload, the one it is a variant of, engine.
fn planned(folder: &Path) -> Vec<(String, Option<String>, String)> {
    let run = fs::read_dir(folder.join("kvdyno-results")).unwrap().flatten().next().unwrap().path();
    let json: serde_json::Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_string);
    let trial = |trial: &serde_json::Value| {
        let workload = &trial["workload"];
        (text(&workload["name"]).unwrap(), text(&workload["variant_of"]), text(&trial["engine"]).unwrap())
    };
    let mut trials: Vec<_> = json["trials"].as_array().unwrap().iter().map(trial).collect();
    trials.sort();
    trials
}

fn ran(folder: &Path, words: &str) -> Printed {
    let printed = kvdyno(folder, words);
    assert_eq!(printed.code, Some(0), "kvdyno {words}\n{}\n{}", printed.stderr, printed.stdout);
    printed
}

fn refused(folder: &Path, words: &str, code: i32, wanted: &[&str]) {
    let printed = kvdyno(folder, words);
    assert_eq!(printed.code, Some(code), "kvdyno {words}\n{}\n{}", printed.stderr, printed.stdout);
    for text in wanted {
        assert!(printed.stderr.contains(text), "kvdyno {words}: no `{text}` in\n{}", printed.stderr);
    }
}

#[test]
fn a_list_of_sizes_and_levels_is_a_run_of_variants() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("run fill-seq --keys 1k,2k --durability none,process {TINY}");
    let printed = ran(folder.path(), &words);
    let of = Some("fill-seq".to_string());
    let names = ["fill-seq-1k-none", "fill-seq-1k-process", "fill-seq-2k-none", "fill-seq-2k-process"];
    let wanted: Vec<_> = names
        .iter()
        .flat_map(|name| {
            ["memory-btree", "null"].map(|engine| (name.to_string(), of.clone(), engine.to_string()))
        })
        .collect();
    assert_eq!(planned(folder.path()), wanted);
    assert!(names.iter().all(|name| printed.stdout.contains(name)), "{}", printed.stdout);
    let again = ran(folder.path(), "run --resume --quiet");
    assert!(again.stdout.contains("fill-seq-2k-none"), "{}", again.stdout);
}

#[test]
fn a_run_without_engines_compares_one_of_each_kind_and_says_which_it_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let printed = ran(folder.path(), "run fill-seq --keys 100 --runs 1 --quiet");
    let engines: Vec<String> = planned(folder.path()).into_iter().map(|(_, _, engine)| engine).collect();
    let place_of = |name: &String| {
        let known = kvdyno::catalogue().iter().find(|known| known.name == *name);
        known.and_then(|known| known.default.clone())
    };
    let mut places: Vec<String> =
        engines.iter().filter(|name| *name != "null").filter_map(place_of).collect();
    assert_eq!(places.len() + 1, engines.len(), "an engine outside the set: {engines:?}");
    places.sort();
    places.dedup();
    assert_eq!(places.len() + 1, engines.len(), "two engines of one kind: {engines:?}");
    let told = "available engines; --engines all includes the other ";
    let line = printed
        .stderr
        .lines()
        .find(|line| line.contains(told))
        .unwrap_or_else(|| panic!("{}", printed.stderr));
    let others: usize =
        line.split(told).nth(1).unwrap().split(',').next().unwrap().parse().expect("a number");
    // The command that the line names lists as many.
    let command =
        line.split('`').nth(1).and_then(|command| command.strip_prefix("kvdyno ")).expect("a command");
    let listed = ran(folder.path(), &format!("{command} --json")).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("it is JSON");
    let is_available = |row: &&serde_json::Value| row["is_present"] == true;
    let listed: Vec<_> =
        listed.as_array().unwrap().iter().filter(is_available).map(|row| row["name"].to_string()).collect();
    assert_eq!(listed.len(), others, "{listed:?}");
    assert!(listed.contains(&"\"memory-map\"".to_string()), "{listed:?}");
}

#[test]
fn groups_patterns_and_exclusions_select_engines_also_in_suites() {
    let folder = tempfile::tempdir().unwrap();
    ran(folder.path(), "run fill-seq --keys 100 --runs 1 --quiet --engines memory-*,-*-map");
    let engines: Vec<String> = planned(folder.path()).into_iter().map(|(_, _, engine)| engine).collect();
    assert_eq!(engines, ["memory-btree", "null"]);
    let folder = tempfile::tempdir().unwrap();
    let suite =
        "engines = ['memory-*', '-memory-btree']\nruns = 1\n[[part]]\nworkload = 'fill-seq'\nkeys = 100\n";
    fs::write(folder.path().join("own.toml"), suite).unwrap();
    ran(folder.path(), "run own.toml --quiet");
    let engines: Vec<String> = planned(folder.path()).into_iter().map(|(_, _, engine)| engine).collect();
    assert_eq!(engines, ["memory-map", "null"]);
    let listed = ran(folder.path(), "engines memory-* --json").stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["memory-btree", "memory-map"]);
}

#[test]
fn a_scale_reaches_keys_and_seconds() {
    let folder = tempfile::tempdir().unwrap();
    ran(folder.path(), "run read-random --scale 0.002 --runs 1 --engines memory-btree --quiet");
    let json = ran(folder.path(), "report --format json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let workload = &json["records"][0]["trial"]["workload"];
    assert_eq!(
        (workload["keys"].as_u64(), workload["phases"][1]["seconds"].as_f64()),
        (Some(2000), Some(0.02))
    );
}

const OWN: &str = "about = 'Two'\nengines = ['memory-btree', 'ENGINE']\nruns = 1\n\
    [[part]]\nworkload = ['fill-seq', 'sub/mine.toml']\nkeys = ['1k', '2k']\n\
    [[part]]\nworkload = 'read-random'\nvariant = 'map'\nengines = ['memory-map']\nset = ['keys=3k', 'read.ops=500']\n";

/// A folder with a suite and a workload that it names.
fn own_suite(engine: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("suites");
    fs::create_dir_all(inner.join("sub")).unwrap();
    fs::write(inner.join("two.toml"), OWN.replace("ENGINE", engine)).unwrap();
    let mine = "[[phase]]\nname = 'put'\nmix = { put = 1 }\nops = 300\n";
    fs::write(inner.join("sub/mine.toml"), mine).unwrap();
    folder
}

#[test]
fn a_suite_of_ones_own_runs_as_one() {
    let folder = own_suite("memory-map");
    ran(folder.path(), "run suites/two.toml --quiet");
    let trials = planned(folder.path());
    let names: Vec<String> = trials.iter().map(|(name, _, engine)| format!("{name} {engine}")).collect();
    let mut wanted = Vec::new();
    for name in ["fill-seq-1k", "fill-seq-2k", "mine-1k", "mine-2k"] {
        wanted.extend(["memory-btree", "memory-map", "null"].map(|engine| format!("{name} {engine}")));
    }
    wanted.extend(["memory-map", "null"].map(|engine| format!("read-random-map {engine}")));
    assert_eq!(names, wanted);
    let run = fs::read_dir(folder.path().join("kvdyno-results")).unwrap().flatten().next().unwrap();
    assert!(run.file_name().to_string_lossy().contains("-two-"), "{:?}", run.file_name());
}

#[test]
fn the_command_line_goes_over_what_a_suite_says() {
    let folder = own_suite("memory-map");
    let words = "run suites/two.toml --engines memory-btree --keys 500 --set value.size=24 --option memory-btree.log=true";
    let printed = kvdyno(folder.path(), &format!("{words} --quiet"));
    // Whether it has the option is another matter: here its name must be one of an engine of the run.
    assert!(!printed.stderr.contains("unknown engine"), "{}", printed.stderr);
    ran(folder.path(), "run suites/two.toml --engines memory-btree --keys 500 --set value.size=24 --quiet");
    let names: Vec<String> = planned(folder.path()).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["fill-seq", "fill-seq", "mine", "mine", "read-random-map", "read-random-map"]);
}

#[test]
fn a_flag_that_does_not_affect_a_workload_of_a_suite_is_reported() {
    let folder = own_suite("memory-map");
    let mixed = "engines = 'memory-btree'\nruns = 1\n[[part]]\nworkload = ['fill-seq', 'toku-insert']\nset = ['value.size=24']\n";
    fs::write(folder.path().join("mixed.toml"), mixed).unwrap();
    let printed = ran(folder.path(), "run mixed.toml --keys 500 --ops 200 --quiet");
    assert!(
        printed.stderr.contains("--keys does not affect these workloads, which insert"),
        "{}",
        printed.stderr
    );
    let alone = "engines = 'memory-btree'\n[[part]]\nworkload = 'toku-insert'\n";
    fs::write(folder.path().join("alone.toml"), alone).unwrap();
    for flag in ["--keys 500", "--seconds 1"] {
        let name = flag.split(' ').next().unwrap();
        let wanted = format!("{name} affects no workload of the suite");
        refused(folder.path(), &format!("run alone.toml {flag}"), 2, &[&wanted, "--scale"]);
    }
}

#[test]
fn absent_engines_of_a_suite_are_skipped_and_unknown_ones_refused() {
    let folder = own_suite("nessdb");
    let empty = tempfile::tempdir().unwrap();
    let here = format!("--plugins {}", empty.path().display());
    let printed = ran(folder.path(), &format!("run suites/two.toml --quiet {here}"));
    assert!(printed.stderr.contains("skipped, not available: nessdb: "), "{}", printed.stderr);
    let folder = own_suite("nesdb");
    refused(
        folder.path(),
        "run suites/two.toml",
        2,
        &["unknown engine in the suite `nesdb`", "did you mean `nessdb`"],
    );
    let only = "engines = 'nessdb'\n[[part]]\nworkload = 'fill-seq'\n";
    fs::write(folder.path().join("only.toml"), only).unwrap();
    refused(
        folder.path(),
        &format!("run only.toml {here}"),
        4,
        &["none of the suite's engines is available", "nessdb: "],
    );
    assert!(!folder.path().join("kvdyno-results").exists(), "a refused run left a folder");
}

#[test]
fn errors_in_a_suite_are_reported_with_their_line() {
    let folder = own_suite("memory-map");
    let path = folder.path().join("suites/two.toml");
    let text = fs::read_to_string(&path).unwrap();
    let with = |from: &str, to: &str| fs::write(&path, text.replace(from, to)).unwrap();
    with("runs = 1", "runz = 1");
    refused(
        folder.path(),
        "run suites/two.toml",
        2,
        &["suites/two.toml:3: unknown field `runz`; did you mean `runs`?"],
    );
    with("sub/mine.toml", "sub/mine2.toml");
    refused(
        folder.path(),
        "run suites/two.toml",
        2,
        &["two.toml:4: part 1: cannot read the workload suites/sub/mine2.toml"],
    );
    with("read.ops=500", "raed.ops=500");
    refused(
        folder.path(),
        "run suites/two.toml",
        2,
        &["two.toml:7: part 2: `set`, ", "no phase `raed`; did you mean `read`"],
    );
    fs::write(&path, &text).unwrap();
    fs::write(folder.path().join("suites/sub/mine.toml"), "\nkesy = 5\n").unwrap();
    refused(
        folder.path(),
        "run suites/two.toml",
        2,
        &["two.toml:4: part 1: suites/sub/mine.toml:2: unknown field `kesy`"],
    );
    refused(folder.path(), "run fill-seq fill-seq", 2, &["two workloads named `fill-seq`"]);
}

#[test]
fn a_file_of_exactly_the_keys_that_are_needed_serves() {
    let folder = tempfile::tempdir().unwrap();
    ran(folder.path(), "keys make keys.bin --count 2k --key-size 12 --seed 5");
    assert_eq!(fs::metadata(folder.path().join("keys.bin")).unwrap().len(), 24_000);
    for workload in ["mininb-put", "mininb-get"] {
        let words = "--set key.file=keys.bin --key-size 12 --set key.scattered=true";
        ran(folder.path(), &format!("run {workload} --keys 2k {words} {TINY}"));
        ran(folder.path(), "keys shuffle keys.bin --key-size 12 --count 1k");
    }
}

#[test]
fn key_files_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.bin");
    ran(folder.path(), "keys make keys.bin --count 100 --key-size 16");
    let keys = fs::read(&path).unwrap();
    let with = |keys: &str, size: &str| {
        format!("run mininb-put --keys {keys} --key-size {size} --set key.file=keys.bin {TINY}")
    };
    refused(
        folder.path(),
        &with("101", "16"),
        2,
        &["the key file contains 100 keys of 16 bytes, but 101 are needed"],
    );
    refused(
        folder.path(),
        &with("100", "12"),
        2,
        &["1600 bytes, which is not a multiple of `key.size` (12 bytes)"],
    );
    let shuffle = "keys shuffle keys.bin --key-size";
    refused(
        folder.path(),
        &format!("{shuffle} 16 --count 101"),
        2,
        &["keys.bin: the key file contains 100 keys"],
    );
    refused(folder.path(), &format!("{shuffle} 12"), 2, &["not a multiple of `key.size` (12 bytes)"]);
    refused(folder.path(), &format!("{shuffle} 2"), 2, &["a key must have 4 to 65536 bytes"]);
    refused(folder.path(), &format!("{shuffle} 16 --to keys.bin"), 2, &["keys.bin already exists"]);
    refused(folder.path(), "keys shuffle none.bin --key-size 16", 1, &["cannot read none.bin"]);
    refused(
        folder.path(),
        "keys make keys.bin --count 5 --key-size 16",
        2,
        &["keys.bin already exists", "remove this one first"],
    );
    refused(
        folder.path(),
        "keys make new.bin --count 5G --key-size 4",
        2,
        &["only 4294967296 distinct keys of 4 bytes"],
    );
    refused(folder.path(), "keys make new.bin --count 0 --key-size 4", 2, &["expected 1 or more"]);
    refused(
        folder.path(),
        "keys make none/new.bin --count 5 --key-size 4",
        1,
        &["cannot create none/new.bin"],
    );
    assert!(!folder.path().join("new.bin").exists());
    assert_eq!(fs::read(&path).unwrap(), keys, "a refusal changed the file");
    fs::write(&path, [&keys[..], &keys[..16]].concat()).unwrap();
    let twice = "the key file contains the same key twice, at positions 0 and 100";
    refused(folder.path(), &with("101", "16"), 2, &[twice]);
    refused(folder.path(), &format!("{shuffle} 16"), 2, &[twice]);
    fs::write(&path, "").unwrap();
    refused(folder.path(), &format!("{shuffle} 16"), 2, &["the key file contains 0 keys"]);
}

const PREFIXES: &str = "durability = 'none'\nruns = 1\nkeys = 1000\n[key]\nprefix_groups = 100\nprefix_size = 3\n\
    [[phase]]\nname = 'fill'\nmix = { put = 1 }\ndistribution = 'permutation'\neach_key = true\n\
    [[phase]]\nname = 'prefix'\nmix = { scan = 1 }\nscan = { rows = ROWS, prefix = true }\nops = 300\n\
    [[phase]]\nname = 'half'\nmix = { delete = 1 }\ndistribution = 'permutation'\nops = 500\n\
    [[phase]]\nname = 'prefix-again'\nmix = { scan = 1 }\nscan = { rows = 0, prefix = true }\nops = 300\n";

#[test]
fn every_row_of_a_prefix_must_come() {
    for rows in ["0", "7"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("p.toml"), PREFIXES.replace("ROWS", rows)).unwrap();
        ran(folder.path(), "run p.toml --engines memory-btree --quiet");
        let json: serde_json::Value =
            serde_json::from_str(&ran(folder.path(), "report --format json").stdout).unwrap();
        let records = json["records"].as_array().unwrap();
        let record = records.iter().find(|record| record["trial"]["engine"] == "memory-btree").unwrap();
        let came = record["phases"][1]["kinds"][0]["rows"].as_u64();
        assert_eq!(came, Some(if rows == "0" { 3000 } else { 2100 }), "ten keys to a prefix, 300 scans");
        for fault in ["scan-early-end", "scan-missing", "scan-past-bound", "scan-duplicate"] {
            let printed = kvdyno(folder.path(), &format!("run p.toml --engines mutant:{fault} --quiet"));
            assert_eq!(printed.code, Some(3), "{fault}, {rows} rows\n{}\n{}", printed.stderr, printed.stdout);
        }
    }
}

#[test]
fn what_a_workload_does_is_said_with_what_the_flags_change() {
    let folder = own_suite("memory-map");
    let said = ran(folder.path(), "workloads mininb-get --keys 5k --set get.seconds=3").stdout;
    for text in [
        "From: mininb",
        "5,000 keys of 16 bytes",
        "Ends: after each of the 5,000 keys or after 3 s",
        "Problems of the original",
    ] {
        assert!(said.contains(text), "no `{text}` in\n{said}");
    }
    let said = ran(folder.path(), "workloads fill-seq --keys 1k,2k").stdout;
    assert!(said.contains("fill-seq-1k: ") && said.contains("fill-seq-2k: "), "{said}");
    let said = ran(folder.path(), "workloads suites/two.toml --scale 0.5").stdout;
    for text in ["  - mine-500: 500 keys, level process, 1 run.", "as variant `map`", "\nmine-500: -\n"] {
        assert!(said.contains(text), "no `{text}` in\n{said}");
    }
    refused(folder.path(), "workloads quikc", 2, &["unknown workload `quikc`", "did you mean `quick`"]);
    refused(folder.path(), "workloads quick --set raed.ops=1", 2, &["no phase `raed`"]);
    refused(folder.path(), "workloads none.toml", 2, &["cannot read the workload none.toml"]);
}

#[test]
fn every_built_in_suite_runs_in_miniature() {
    let listed = ran(tempfile::tempdir().unwrap().path(), "workloads").stdout;
    let (_, suites) = listed.split_once("\nSuites (").expect("suites are listed apart");
    let suites: Vec<&str> =
        suites.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        suites,
        ["mininb-suite", "nudb-suite", "kvbench-suite", "kvbench-redis", "kvdk-suite", "toku-suite"]
    );
    for suite in suites {
        let folder = tempfile::tempdir().unwrap();
        let printed = ran(folder.path(), &format!("workloads {suite} --toml"));
        assert!(printed.stdout.contains("[[part]]"), "{}", printed.stdout);
        ran(folder.path(), &format!("run {suite} --scale 0.001 --runs 1 --engines memory-btree --quiet"));
        let engines = planned(folder.path()).into_iter().filter(|(.., engine)| engine == "memory-btree");
        // mininb-suite puts once and gets what it put: one workload.
        let wanted = if suite == "mininb-suite" { 1 } else { 3 };
        assert!(engines.count() >= wanted, "{suite}");
        let report = ran(folder.path(), "report");
        assert!(report.stdout.contains("memory-btree"), "{}", report.stdout);
    }
}

#[test]
fn threads_of_cpus_are_those_that_a_trial_has() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        "run read-while-writing --keys 2k --seconds 0.05 --runs 1 --engines memory-btree --quiet --cpus 0";
    ran(folder.path(), &format!("{words} --threads cpus"));
    let json: serde_json::Value =
        serde_json::from_str(&ran(folder.path(), "report --format json").stdout).unwrap();
    let phases = json["records"][0]["trial"]["workload"]["phases"].as_array().unwrap();
    assert_eq!(phases.last().unwrap()["threads"].as_u64(), Some(1), "one CPU");
}
