//! Faults of the older tools that no other test holds, one test each. What they were stands on the tools' pages.

use super::trial::{kinds, number, phase, phases, run};
use serde_json::Value;

/// Nanoseconds of the median over all times of a kind.
fn median_ns(kind: &Value) -> u64 {
    let times = &kind["service_ns"];
    let half = number(&times["count"]).div_ceil(2);
    let mut seen = 0;
    for bucket in times["buckets"].as_array().unwrap() {
        seen += number(&bucket[1]);
        if seen >= half {
            return number(&bucket[0]);
        }
    }
    panic!("no times in {kind}")
}

#[test]
fn making_keys_and_values_is_in_no_latency() {
    // An engine that does nothing, and values that take far longer to make than its ops take.
    let record = &run("fill-random --engines null --keys 2k --value-size 256KiB --set fill.join=1")[0];
    let fill = phase(record, "fill");
    let thread = &fill["threads"][0];
    let outside = number(&thread["elapsed_ns"]) - number(&thread["inside_ns"]);
    let (made, timed) = (outside / number(&fill["ops"]), median_ns(&kinds(fill)[0]));
    assert!(made > 1_000, "{made} ns to make a value of 256 KiB");
    assert!(timed * 4 < made, "an op of the null engine took {timed} ns, making its value {made} ns");
}

#[test]
fn keys_and_values_have_the_size_asked_for_in_every_phase() {
    for record in run("quick --engines memory-btree --keys 2k --ops 500 --key-size 9 --value-size 64") {
        for phase in phases(&record) {
            let writes = ["put", "insert", "update", "delete"];
            let written: u64 = kinds(phase)
                .iter()
                .filter(|kind| writes.contains(&kind["kind"].as_str().unwrap()))
                .map(|kind| number(&kind["ops"]))
                .sum();
            assert_eq!(
                number(&phase["logical_bytes_written"]),
                written * (9 + 64),
                "{}",
                phase["phase"]["name"]
            );
        }
    }
}

#[test]
fn a_mean_is_the_sum_of_times_over_their_own_number() {
    // What threads spent in ops of all kinds is inside their calls, and fills most of them: so no mean is off by the
    // number of threads or divided by the ops of another kind. So many ops that a thread which waits for a CPU between two of
    // them, on a busy machine, has little weight.
    for words in [
        "read-random --engines memory-btree --keys 2k --ops 500k --threads 4",
        "ycsb-a --engines memory-btree --keys 2k --ops 500k --threads 2",
    ] {
        let record = &run(words)[0];
        let measured = phases(record).last().unwrap();
        let inside: u64 =
            measured["threads"].as_array().unwrap().iter().map(|one| number(&one["inside_ns"])).sum();
        let timed: u64 = kinds(measured).iter().map(|kind| number(&kind["service_ns"]["sum_ns"])).sum();
        assert!(timed <= inside + inside / 20 && timed * 2 >= inside, "{words}: {timed} ns of {inside} ns");
        for kind in kinds(measured) {
            let (times, ops) = (number(&kind["service_ns"]["count"]), number(&kind["ops"]));
            assert_eq!(times, ops, "{words}: {}", kind["kind"]);
        }
    }
}

#[test]
fn the_last_group_of_a_load_is_written_though_it_is_short() {
    let record = &run("batch-write --engines memory-btree --keys 1050 --set fill.join=100")[0];
    let fill = phase(record, "fill");
    assert_eq!((number(&fill["ops"]), number(&fill["keys_after"])), (1050, 1050));
    let groups = number(&kinds(fill)[0]["service_ns"]["count"]);
    assert_eq!(groups, 11, "ten groups of 100 and one of 50");
}

#[test]
fn scans_have_a_time_each_and_count_their_rows() {
    let record = &run("scan-short --engines memory-btree --keys 2k --ops 500")[0];
    let scan = &kinds(phase(record, "scan"))[0];
    assert_eq!(number(&scan["service_ns"]["count"]), 500);
    // Those that begin among the last nine keys of two thousand have fewer than ten rows.
    let rows = number(&scan["rows"]);
    assert!((4_800..=5_000).contains(&rows), "{rows} rows");
    assert_eq!(number(&phase(record, "scan")["check"]["rows"]), rows, "a row was not compared");
}

#[test]
fn gets_hit_unless_misses_are_asked_for_and_misses_are_counted_apart() {
    let words = "read-random --engines memory-btree --keys 2k --ops 10k";
    let hits = run(words);
    let get = |record: &Value| {
        (
            number(&kinds(phase(record, "read"))[0]["misses"]),
            number(&phase(record, "read")["check"]["values"]),
        )
    };
    assert_eq!(get(&hits[0]), (0, 10_000), "misses, values compared");
    let (misses, compared) = get(&run(&format!("{words} --set read.miss=0.3"))[0]);
    assert!((2_700..=3_300).contains(&misses), "{misses} misses of 10,000");
    assert_eq!(compared, 10_000 - misses);
}

/// Those of the engines that are here.
fn present(names: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let listed = super::command::kvdyno(folder.path(), "engines --json").stdout;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let is_here = |name: &&&str| listed.iter().any(|one| one["name"] == **name && one["is_present"] == true);
    names.iter().filter(is_here).copied().collect::<Vec<_>>().join(",")
}

#[test]
fn gets_leave_nothing_behind_in_memory() {
    // Values that were never given back would be 120 MB.
    let names =
        ["memory-btree", "leveldb", "kyotocabinet", "berkeleydb-plain", "tokukv-plain", "nessdb", "rocksdb"];
    let words = "--keys 1k --value-size 4KiB --ops 30k --durability none --cache 8MiB";
    for record in run(&format!("read-random --engines {} {words}", present(&names))) {
        let resident = |name: &str| number(&phase(&record, name)["usage"]["rss_bytes"]);
        let (before, after) = (resident("load"), resident("read"));
        assert!(after < before + (40 << 20), "{}: {before} bytes, then {after}", record["trial"]["engine"]);
    }
}

#[test]
fn an_engine_has_the_cache_asked_for_or_says_that_it_has_none() {
    let here = present(&["sqlite", "redb", "sled", "lmdb", "memory-btree"]);
    let mut caches = Vec::new();
    for record in run(&format!("fill-random --engines {here} --keys 1k --durability none --cache 20MiB")) {
        let facts = &record["engine"];
        assert!(!facts["compression"].as_str().unwrap_or("-").is_empty());
        caches.push((facts["name"].as_str().unwrap().to_string(), facts["cache_bytes"].as_u64()));
    }
    for (name, cache) in &caches {
        let has_knob = !["lmdb", "memory-btree"].contains(&name.as_str());
        assert_eq!(*cache, has_knob.then_some(20 << 20), "{name}");
    }
    assert!(caches.iter().any(|(_, cache)| cache.is_none()));
}

#[test]
fn rates_are_by_the_time_that_passed_and_not_by_the_time_asked_for() {
    let record = &run("read-random --engines memory-btree --keys 2k --seconds 0.3")[0];
    let read = phase(record, "read");
    let rows = read["series"].as_array().unwrap();
    let last = rows.last().unwrap();
    assert_eq!(rows.iter().map(|row| number(&row["ops"])).sum::<u64>(), number(&read["ops"]));
    assert!(
        number(&last["interval_ns"]) < 1_000_000_000,
        "the last row is shorter than a second, and says so"
    );
    let elapsed = number(&read["elapsed_ns"]);
    assert!(elapsed >= 290_000_000, "{elapsed} ns");
    let folder = tempfile::tempdir().unwrap();
    let words = "read-random --engines memory-btree --keys 2k --seconds 0.2";
    super::trial::run_in(folder.path(), words);
    let csv = super::command::kvdyno(folder.path(), "report --format csv").stdout;
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|one| *one == name).unwrap();
    let row = csv.lines().find(|line| line.contains(",read,memory-btree,")).unwrap();
    let cell = |name: &str| row.split(',').nth(column(name)).unwrap().parse::<f64>().unwrap();
    let rate = cell("ops") / cell("elapsed_ns") * 1e9;
    assert!((cell("ops_per_second") / rate - 1.0).abs() < 1e-9, "{row}");
}

#[test]
fn the_settings_are_printed_as_they_were_run() {
    let folder = tempfile::tempdir().unwrap();
    let words = "run read-while-writing --engines memory-btree --keys 2k --ops 500 --value-size 64 --threads 2 \
                 --set read.miss=0.25 --seed 9 --runs 1 --quiet";
    let first = super::command::kvdyno(folder.path(), words);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    // Another run in the same folder must not lend it its settings.
    let other = words.replace("2k", "1k").replace("--value-size 64", "--value-size 32");
    let runs = std::fs::read_dir(folder.path().join("kvdyno-results")).unwrap().flatten();
    let of_first = runs.map(|entry| entry.path()).find(|path| path.join("run.json").exists()).unwrap();
    assert_eq!(super::command::kvdyno(folder.path(), &other).code, Some(0));
    let report =
        super::command::kvdyno(folder.path(), &format!("report {} --full", of_first.display())).stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        "25 % of reads miss",
        "2,000 keys of 16 B",
        "values of 64 B",
        "2 threads and 1 writer",
        "500 ops",
        "--seed 9",
    ] {
        assert!(report.contains(text), "no `{text}` in\n{report}");
    }
    assert!(!report.contains("1,000 keys") && !report.contains("values of 32 B"), "{report}");
}

#[test]
fn a_key_file_is_used_to_its_last_key_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.bin");
    // Exactly as many keys as are asked for.
    let bytes: Vec<u8> =
        (0..500_u64).flat_map(|key| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()).collect();
    std::fs::write(&file, &bytes).unwrap();
    let words = "read-random --engines memory-btree,memory-map --key-size 8 --set key.file=keys.bin --ops 2k";
    let records = super::trial::run_in(folder.path(), &format!("{words} --keys 500"));
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(number(&phase(record, "load")["keys_after"]), 500);
    }
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "the file was written to");
    let printed = super::command::kvdyno(folder.path(), &format!("run {words} --keys 501"));
    assert_ne!(printed.code, Some(0), "a key more than the file has");
    assert!(printed.stderr.contains("contains 500 keys"), "{}", printed.stderr);
}

#[test]
fn resident_memory_is_taken_before_the_close() {
    // An engine in memory has given back all of it after the close.
    let record = &run("fill-random --engines memory-btree --keys 20k --value-size 1KiB --durability none")[0];
    let resident = number(&phase(record, "fill")["usage"]["rss_bytes"]);
    assert!(resident > 20_000 * 1_024, "{resident} bytes for 20,000 rows of 1 KiB");
    assert!(number(&record["rss_peak_bytes"]) >= resident);
}
