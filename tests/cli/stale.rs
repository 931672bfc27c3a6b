//! Reads that may be stale: a store that says so is measured, and the figures are those that its driver has counted; one that does
//! not say so has wrong answers; and a wrong value is a fault in both.

use super::clusters::is_here;
use super::command::{Printed, kvdyno};
use super::liars::build;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A workload of 64 keys whose second phase has this mix.
fn workload(folder: &Path, keys: u32, phase: &str) {
    let text = format!(
        "runs = 1\nkeys = {keys}\ndurability = 'none'\n[[phase]]\nname = 'load'\nmix.put = 1\ndistribution = 'permutation'\n\
         each_key = true\n[[phase]]\nname = 'run'\n{phase}\n"
    );
    fs::write(folder.join("w.toml"), text).unwrap();
}

fn run(folder: &Path, options: &str) -> Printed {
    kvdyno(folder, &format!("run w.toml --plugins plugins --engines laggard --results r {options}"))
}

/// The record of the first trial in the only run of the folder `r`.
fn record(folder: &Path) -> Value {
    let run = fs::read_dir(folder.join("r")).unwrap().next().unwrap().unwrap().path();
    let trials = fs::read_dir(run.join("trials")).unwrap().map(|trial| trial.unwrap().path());
    let first = trials.min().unwrap().join("record.json");
    serde_json::from_str(&fs::read_to_string(first).unwrap()).unwrap()
}

/// A figure that the driver has counted.
fn counted(phase: &Value, name: &str) -> u64 {
    let stats = phase["engine_stats"].as_array().unwrap();
    let own = stats.iter().find(|pair| pair[0] == name).unwrap_or_else(|| panic!("no {name} in {stats:?}"));
    own[1].as_str().unwrap().parse().unwrap()
}

/// The longest age that the driver has counted, by the clock of the record.
fn longest_ns(record: &Value, phase: &Value) -> f64 {
    counted(phase, "longest_ticks") as f64 * record["clock"]["ns_per_tick"].as_f64().unwrap()
}

#[test]
fn the_ages_of_stale_reads_are_those_that_the_driver_has_counted() {
    for (lag, threads) in [(1, 1), (3, 1), (3, 3)] {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), "laggard");
        let mix = "mix = { get = 0.6, update = 0.4 }\nops = 20000\nwarmup_seconds = 0";
        workload(folder.path(), 64, &format!("threads = {threads}\n{mix}"));
        let printed = run(folder.path(), &format!("--option laggard.lag={lag}"));
        assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
        let record = record(folder.path());
        let phase = &record["phases"][1];
        let found = &phase["staleness"];
        let number = |name: &str| found[name].as_u64().unwrap_or_else(|| panic!("{name} of {found}"));
        let gets = phase["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "get").unwrap();
        assert_eq!(number("reads"), gets["ops"].as_u64().unwrap());
        let (stale, missed) = (counted(phase, "stale"), counted(phase, "missed"));
        let of = |name: &str, figure: &str| found[name][figure].as_u64().unwrap();
        let longest = longest_ns(&record, phase);
        assert!(stale > 500 && missed <= stale, "{stale} {missed}");
        if threads == 1 {
            assert_eq!((number("stale"), number("missed")), (stale, missed));
            assert_eq!(of("versions", "sum_ns"), counted(phase, "versions"));
            assert_eq!(of("versions", "max_ns"), counted(phase, "most_versions"));
            let most = of("age_ns", "max_ns") as f64;
            assert!((most - longest).abs() <= 2.0 + longest * 1e-6, "{most} instead of {longest} ns");
            assert_eq!(of("age_ns", "count"), stale, "each write is remembered");
        } else {
            // Where several threads write, counts and times are from below.
            assert!((1..=stale).contains(&number("stale")), "{} of {stale}", number("stale"));
            assert!(of("versions", "max_ns") >= 1);
            assert!(of("age_ns", "max_ns") as f64 <= longest + 2.0 + longest * 1e-6);
        }
        let told = kvdyno(folder.path(), "report r --full").stdout;
        assert!(told.contains("Stale reads") && told.contains("distributed with stale reads"), "{told}");
        let brief = kvdyno(folder.path(), "report r").stdout;
        assert!(brief.contains("reads stale, at most"), "{brief}");
        for format in ["markdown", "html", "json", "csv", "csv-long"] {
            let told = kvdyno(folder.path(), &format!("report r --format {format}")).stdout;
            assert!(told.to_lowercase().contains("stale"), "{format}: {told}");
        }
    }
}

#[test]
fn deleted_rows_may_come_back_and_new_ones_may_be_missed() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "laggard");
    workload(folder.path(), 32, "mix = { get = 0.5, update = 0.3, delete = 0.2 }\nops = 20000");
    let printed = run(folder.path(), "--option laggard.lag=1");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
    let record = record(folder.path());
    let phase = &record["phases"][1];
    let found = &phase["staleness"];
    assert_eq!(found["stale"].as_u64(), Some(counted(phase, "stale")), "{found}");
    assert_eq!(found["missed"].as_u64(), Some(counted(phase, "missed")), "{found}");
    assert_eq!(found["versions"]["max_ns"], 1, "{found}");
    assert!(counted(phase, "missed") > 100);
}

#[test]
fn what_another_phase_wrote_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "laggard");
    workload(folder.path(), 4, "mix.get = 1\nops = 100\n[[phase]]\nname = 'more'\nmix.get = 1\nops = 100");
    let printed = run(folder.path(), "--option laggard.lag=1 --option laggard.every=1");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
    let record = record(folder.path());
    for phase in [1, 2] {
        let found = &record["phases"][phase]["staleness"];
        assert_eq!(
            (&found["reads"], &found["stale"], &found["missed"]),
            (&100.into(), &100.into(), &100.into())
        );
        assert_eq!((&found["versions"]["max_ns"], &found["age_ns"]["count"]), (&1.into(), &100.into()));
    }
}

/// With so many keys the last 16 acknowledgements of each are remembered, and these reads are 20 states old.
#[test]
fn an_age_that_is_not_remembered_is_counted_as_unknown() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "laggard");
    workload(
        folder.path(),
        33_000,
        "mix = { get = 0.5, update = 0.5 }\ndistribution = 'ycsb-zipfian'\nops = 200000",
    );
    let printed = run(folder.path(), "--option laggard.lag=20 --option laggard.every=3");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
    let record = record(folder.path());
    let phase = &record["phases"][1];
    let found = &phase["staleness"];
    let (stale, known) = (found["stale"].as_u64().unwrap(), found["age_ns"]["count"].as_u64().unwrap());
    assert_eq!((stale, &found["versions"]["count"]), (counted(phase, "stale"), &stale.into()));
    assert!(0 < known && known < stale, "{known} of {stale}");
    let longest = longest_ns(&record, phase);
    assert!(found["at_least_ns"].as_f64().unwrap() <= longest + 2.0 + longest * 1e-6, "{found}");
    assert!(printed.stdout.contains("reads stale, the oldest at least 20 versions"), "{}", printed.stdout);
}

#[test]
fn scans_may_be_stale_too() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "laggard");
    workload(
        folder.path(),
        64,
        "mix = { scan = 0.3, update = 0.5, delete = 0.2 }\nscan.rows = 10\nops = 3000",
    );
    let printed = run(folder.path(), "");
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
    assert_eq!(run(folder.path(), "--option laggard.declares=no").code, Some(3));
}

#[test]
fn what_is_not_declared_or_wrong_is_a_fault_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "laggard");
    workload(folder.path(), 64, "mix = { get = 0.6, update = 0.4 }\nops = 5000");
    for (options, wanted) in [
        ("declares=no", "expected version"),
        ("fault=other", "get of key"),
        ("fault=corrupt", "get of key"),
        // The check at the end asks for the newest.
        ("fault=weak", "sweep by get at the end: get of key"),
    ] {
        let printed = run(folder.path(), &format!("--option laggard.{options}"));
        assert_eq!(printed.code, Some(3), "{options}: {}\n{}", printed.stdout, printed.stderr);
        assert!(printed.stdout.contains(wanted), "{options}: {}", printed.stdout);
    }
}

#[test]
fn verify_asks_for_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "laggard");
    let verify = |options: &str| {
        kvdyno(
            folder.path(),
            &format!("prove --only rules laggard --ops 400 --seconds 0.3 --plugins plugins {options}"),
        )
    };
    let honest = verify("");
    assert_eq!(honest.code, Some(0), "{}", honest.stdout);
    let weak = verify("--option laggard.fault=weak");
    assert_eq!(weak.code, Some(3), "{}", weak.stdout);
}

/// Serializable reads of three members: no answer is a fault, and the figures are in the record.
#[test]
fn serializable_reads_of_etcd_are_measured() {
    if !is_here("etcd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(
        folder.path(),
        50,
        "threads = 4\nmix = { get = 0.5, update = 0.5 }\nops = 1500\n[[phase]]\nname = 'others'\nmix = { get = 0.4, multi_get = \
         0.1, scan = 0.1, update = 0.3, delete = 0.1 }\nmulti_get_keys = 3\nscan.rows = 5\nops = 300",
    );
    let words = "run w.toml --engines etcd --results r --durability power --option etcd.reads=serializable";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
    let record = record(folder.path());
    for phase in [1, 2] {
        let found = &record["phases"][phase]["staleness"];
        assert!(found["reads"].as_u64().unwrap() > 50 && found["stale"].is_u64(), "{found}");
    }
    assert!(
        printed.stdout.contains("stores with several copies whose reads may be stale"),
        "{}",
        printed.stdout
    );
}

#[test]
#[ignore = "slow: make test-all"]
fn reads_of_replicas_of_a_redis_cluster_are_measured() {
    if !is_here("redis-cluster") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path(), 4, "mix = { get = 0.6, update = 0.4 }\nseconds = 5");
    let words = "run w.toml --engines redis-cluster --results r --option redis-cluster.reads=replicas";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stdout, printed.stderr);
    let found = &record(folder.path())["phases"][1]["staleness"];
    println!("{} of {} reads were stale", found["stale"], found["reads"]);
    assert!(found["reads"].as_u64().unwrap() > 1_000, "{found}");
}
