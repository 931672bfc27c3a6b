//! The older tools' own experiments: that each measures what its tool said that it measured.

use super::command::kvdyno;
use super::trial::{kinds, number, phase, phases, run};

/// Writes of whole rows among the ops of a phase.
fn rows_written(phase: &serde_json::Value) -> u64 {
    let writes = ["put", "insert", "update"];
    let own = kinds(phase).iter().filter(|kind| writes.contains(&kind["kind"].as_str().unwrap()));
    own.map(|kind| number(&kind["ops"])).sum()
}

#[test]
fn a_value_size_holds_in_every_phase_of_kvbench() {
    let record =
        &run("kvbench --engines memory-btree --keys 2k --key-size 9 --value-size 64 --seconds 0.3")[0];
    let mut with_writes = 0;
    for phase in phases(record).iter().filter(|phase| phase["phase"]["name"] != "delete") {
        let written = rows_written(phase);
        assert_eq!(number(&phase["logical_bytes_written"]), written * (9 + 64), "{}", phase["phase"]["name"]);
        with_writes += u32::from(written > 0);
    }
    assert!(with_writes >= 3, "batch-write, set and mixed write");
}

#[test]
fn prefix_queries_return_the_rows_of_their_prefix() {
    let record = &run("kvbench --engines memory-btree --keys 2k --seconds 0.3 --set key.prefix_groups=20")[0];
    let prefix = phase(record, "prefix");
    let scan = kinds(prefix).iter().find(|kind| kind["kind"] == "scan").expect("the phase scans");
    let (ops, rows) = (number(&scan["ops"]), number(&scan["rows"]));
    assert!(
        ops > 0 && rows >= ops,
        "{rows} rows of {ops} prefix queries: each finds the key it was made from"
    );
    assert_eq!(number(&prefix["check"]["rows"]), rows, "every row is compared");
    // An engine that answers with a row of another prefix is found out.
    let folder = tempfile::tempdir().unwrap();
    let words = "run kvbench --engines mutant:scan-past-bound --keys 2k --seconds 0.3 --set key.prefix_groups=20 --runs 1 \
                 --quiet";
    assert_eq!(kvdyno(folder.path(), words).code, Some(3));
}

#[test]
fn every_engine_reads_a_database_of_the_same_size() {
    // Engines of different speed, phases by time: what they leave must be the same for the phase that follows.
    for record in run("kvbench --engines memory-btree,memory-map --keys 2k --seconds 0.3") {
        for name in ["batch-write", "prefix", "set", "get", "mixed"] {
            let phase = phase(&record, name);
            if phase["not_run"].is_null() {
                assert_eq!(number(&phase["keys_after"]), 2_000, "{} {name}", record["trial"]["id"]);
            }
        }
    }
}

/// What a run prints in a layout.
fn printed(words: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), &format!("run {words} --runs 1 --quiet"));
    assert_eq!(printed.code, Some(0), "kvdyno run {words}\n{}", printed.stderr);
    printed.stdout
}

#[test]
fn the_histogram_adds_up_and_has_the_eleven_percentiles() {
    let text = printed(
        "mininb-get --engines memory-btree --keys 20k --set get.drop_caches_before=false --layout histogram",
    );
    let at = text.find("Action: get").unwrap_or_else(|| panic!("no block of gets in\n{text}"));
    let block = text[at..].split("below 1 microsecond").next().unwrap();
    let rungs = block.lines().filter(|line| line.starts_with('['));
    let cells = |line: &str| {
        let cells: Vec<f64> =
            line.split(')').nth(1).unwrap().split_whitespace().map(|cell| cell.parse().unwrap()).collect();
        (cells[0], cells[1])
    };
    let rungs: Vec<(f64, f64)> = rungs.filter(|line| !line.contains("t min")).map(cells).collect();
    let (ops, share) = rungs.iter().fold((0.0, 0.0), |sum, rung| (sum.0 + rung.0, sum.1 + rung.1));
    assert_eq!(ops, 20_000.0, "each key once\n{block}");
    assert!((share - 100.0).abs() < 0.01 * rungs.len() as f64, "{share} % in all");
    let percentiles = block.lines().filter(|line| line.contains("%  latency"));
    let names: Vec<&str> = percentiles.map(|line| line.split('%').next().unwrap()).collect();
    let wanted = "5.0000 50.0000 95.0000 96.0000 97.0000 98.0000 99.0000 99.5000 99.9000 99.9500 99.9900";
    assert_eq!(names.join(" "), wanted);
}

#[test]
fn the_table_of_sizes_has_a_row_for_each_size_and_a_column_for_each_engine() {
    let words =
        "nudb-fetch --engines memory-btree,memory-map --keys 700,1500 --set fetch.ops=300 --layout sizes";
    let text = printed(words);
    for op in ["insert", "fetch"] {
        let at = text.find(&format!("{op}\n")).unwrap_or_else(|| panic!("no table of {op} in\n{text}"));
        let mut lines = text[at..].lines().skip_while(|line| !line.contains("memory-btree"));
        let head = lines.next().unwrap();
        assert!(head.trim_end().ends_with("memory-map"), "{head}");
        for size in ["700", "1500"] {
            let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
            assert_eq!((row[0], row.len()), (size, 3), "{row:?}");
            assert!(row[1..].iter().all(|cell| cell.parse::<f64>().unwrap() > 0.0), "{row:?}");
        }
    }
}

#[test]
fn a_scan_of_many_calls_takes_as_long_as_its_calls() {
    // 100,000 rows of 16 bytes do not fit the buffer of one call.
    let words = "toku-scan --engines memory-btree --keys 100k --set cold.drop_caches_before=false";
    let record = &run(words)[0];
    for name in ["cold", "warm"] {
        let scan = phase(record, name);
        assert_eq!(number(&kinds(scan)[0]["rows"]), 100_000);
        let (elapsed, inside) = (number(&scan["elapsed_ns"]), number(&scan["threads"][0]["inside_ns"]));
        assert!(inside <= elapsed + elapsed / 20, "{name}: {inside} ns inside calls of {elapsed} ns in all");
    }
}

#[test]
fn counters_of_upserts_add_up_and_are_hit_more_than_once() {
    let words = "toku-update --engines memory-btree --keys 500 --set rounds=2 --set upsert.ops=5k";
    let record = &run(words)[0];
    let rounds: Vec<_> = phases(record).iter().filter(|phase| phase["phase"]["name"] == "upsert").collect();
    assert_eq!(rounds.len(), 2);
    for round in &rounds {
        assert_eq!(number(&round["ops"]), 5_000);
    }
    // Ten thousand upserts of five hundred counters: nearly all of them add to one that is there.
    let last = phases(record).last().unwrap();
    if let Some(keys) = last["keys_after"].as_u64() {
        assert!(keys <= 500, "{keys} counters");
    }
    // Of these faults none strikes inside a transaction.
    let words = format!("{words} --set upsert.atomic=false");
    for fault in ["merge-wrong", "lost-update"] {
        let folder = tempfile::tempdir().unwrap();
        let words = words.replace("memory-btree", &format!("mutant:{fault}"));
        let printed = kvdyno(folder.path(), &format!("run {words} --runs 1 --quiet"));
        assert_eq!(printed.code, Some(3), "{fault}: the sum of the counters is not the increments'");
    }
}
