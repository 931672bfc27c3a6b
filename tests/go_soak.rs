//! Engines in Go under a mixed load by four threads, with the garbage collector forced to run all the time: no wrong value,
//! and nothing that grows without end. Ten minutes, so only `make test-all` runs it; KVDYNO_SOAK_SECONDS makes it shorter.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use serde_json::Value;
use std::path::Path;

/// Caches and memtables are small, so that they are full after seconds and what grows then is a leak.
const SOAK: &str = r#"
about = "A mix by four threads, for long"
keys = "50k"
cache_bytes = "16MiB"

[[phase]]
name = "fill"
mix = { put = 1 }
distribution = "permutation"
each_key = true
join = 100

[[phase]]
name = "soak"
mix = { get = 4, update = 3, delete = 1, scan = 1, transaction = 1 }
distribution = "zipf:0.8"
threads = 4
"#;

fn records(folder: &Path) -> Vec<Value> {
    let runs = std::fs::read_dir(folder.join("kvdyno-results")).unwrap().flatten();
    let trials = runs.flat_map(|run| std::fs::read_dir(run.path().join("trials")).unwrap().flatten());
    let texts = trials.filter_map(|trial| std::fs::read_to_string(trial.path().join("record.json")).ok());
    texts.map(|text| serde_json::from_str(&text).unwrap()).collect()
}

/// The median of a series' column over a share of its rows.
fn median(series: &[Value], column: &str, from: f64, to: f64) -> f64 {
    let place = |share: f64| (series.len() as f64 * share) as usize;
    let mut found: Vec<f64> =
        series[place(from)..place(to)].iter().filter_map(|row| row[column].as_f64()).collect();
    assert!(!found.is_empty(), "no {column} in the series");
    found.sort_by(f64::total_cmp);
    found[found.len() / 2]
}

#[test]
#[ignore = "ten minutes for each engine; `make test-all` runs it"]
fn engines_in_go_leak_nothing_under_a_long_load() {
    let seconds: f64 = std::env::var("KVDYNO_SOAK_SECONDS").map_or(600.0, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("soak.toml"), format!("{SOAK}seconds = {seconds}\n")).unwrap();
    let words = "run soak.toml --engines badger,pebble --option badger.gogc=5 --option pebble.gogc=1 \
                 --option badger.memtable=8388608 --durability none --runs 1 --quiet --stall-seconds 120";
    let printed = kvdyno(folder.path(), words);
    if printed.code == Some(4) {
        assert!(std::env::var("CI").is_err(), "CI needs the engines in Go: {}", printed.stderr);
        println!("skipped: not installed");
        return;
    }
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    for record in records(folder.path()) {
        let name = record["trial"]["engine"].as_str().unwrap();
        if name == "null" {
            continue;
        }
        assert_eq!(record["outcome"]["status"], "ok", "{name}");
        let soak = &record["phases"][1];
        assert_eq!(soak["check"]["faults"], 0, "{name}: {}", soak["check"]);
        let stat = |name: &str| -> f64 {
            let stats = soak["engine_stats"].as_array().unwrap();
            let found = stats.iter().find(|pair| pair[0] == name).unwrap_or_else(|| panic!("no {name}"));
            found[1].as_str().unwrap().parse().unwrap()
        };
        let series = soak["series"].as_array().unwrap();
        let (early, late) = (median(series, "rss_bytes", 0.3, 0.5), median(series, "rss_bytes", 0.8, 1.0));
        println!(
            "{name}: RSS {:.1} MiB, later {:.1} MiB; {} goroutines, {} handles, {} collections",
            early / 1048576.0,
            late / 1048576.0,
            stat("go_goroutines"),
            stat("go_open_handles"),
            stat("go_gc_runs")
        );
        assert!(late < early * 1.25 + 32e6, "{name}: RSS grew from {early} to {late} bytes");
        assert!(stat("go_goroutines") < 100.0, "{name}: goroutines");
        assert!(stat("go_gc_runs") > seconds, "{name}: the collector was not forced");
        // The database's and those of sessions that are open; none is while stats are read after a phase.
        assert!(stat("go_open_handles") <= 1.0, "{name}: handles");
    }
}
