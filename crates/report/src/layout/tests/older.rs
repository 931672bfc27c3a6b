//! The layouts compared with lines from the older tools' documents, and each fault of those tools that concerns figures.

use super::*;
use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch};
use kvdyno_core::results::{PhaseRecord, Step, StepKind};
use kvdyno_measure::{Histogram, SeriesRow};

/// The summary of one engine's changed records.
fn of(sketch: Sketch, change: impl Fn(&mut Record)) -> Summary {
    changed(&[Sketch { engines: &["lmdb"], runs: 1, ..sketch }], change).1
}

fn histogram_of(times: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::new();
    times.iter().for_each(|(ns, count)| histogram.record_n(*ns, *count));
    histogram
}

/// A phase with one kind of op and these times.
fn timed(phase: &mut PhaseRecord, times: &[(u64, u64)]) {
    phase.kinds[0].service_ns = histogram_of(times);
    phase.kinds[0].ops = phase.kinds[0].service_ns.count();
    phase.ops = phase.kinds[0].ops;
}

const MININB: &[&str] = &[
    "Action: get",
    "Driver: lmdb",
    "Key Len: 16",
    "Val Len: 100",
    "Count: 500000",
    "",
    "Histogram:",
    "[  t min,   t max)        ops count           %",
    "--------------------------------------------------",
    "[      2,       3)           151209       30.24",
    "[    450,     500)                1        0.00",
    "Max latency       : 450.000000 * 1e-6 sec/op",
];

#[test]
fn mininb_prints_the_same_lines() {
    let get = [PhaseSketch::new("get", &["get"], 500_000)];
    let sketch = Sketch { name: "mininb-get", keys: 500_000, phases: &get, ..Sketch::EMPTY };
    let summary = of(sketch, |record| {
        timed(&mut record.phases[0], &[(1_600, 348_790), (2_500, 151_209), (450_000, 1)]);
    });
    let text = text("histogram", &summary);
    for line in MININB {
        assert!(text.lines().any(|own| own == *line), "{line:?} is not in\n{text}");
    }
    let labels = [
        "Min latency",
        "Avg latency",
        "Max latency",
        "5.0000%",
        "50.0000%",
        "95.0000%",
        "96.0000%",
        "97.0000%",
        "98.0000%",
        "99.0000%",
        "99.5000%",
        "99.9000%",
        "99.9500%",
        "99.9900%",
        "Avg throughput",
    ];
    let mut places =
        labels.map(|label| text.find(&format!("\n{label}")).unwrap_or_else(|| panic!("{label}\n{text}")));
    assert!(places.is_sorted());
    places.sort_unstable();
    let page = &layout("histogram").unwrap().files(&summary)[0];
    assert_eq!((page.folder.as_deref(), page.file.as_str()), (Some("nb-1-500000"), "500000-lmdb-get.result"));
}

#[test]
fn mininb_percentiles_are_counted_and_never_interpolated() {
    let get = [PhaseSketch::new("get", &["get"], 15)];
    let sketch = Sketch { name: "mininb-get", phases: &get, ..Sketch::EMPTY };
    // The older tool printed -nan for P5 of these, and 3.0 for P99.99 with a slowest of 43.6.
    let few = of(sketch, |record| timed(&mut record.phases[0], &[(2_000, 14), (43_600, 1)]));
    let text_few = text("histogram", &few);
    for line in ["5.0000%  latency  : n/a (needs 20 ops)", "99.9900%  latency  : n/a (needs 10000 ops)"] {
        assert!(text_few.contains(line), "{text_few}");
    }
    assert!(text_few.contains("50.0000%  latency  : 2.000000 * 1e-6 sec/op"), "{text_few}");
    assert!(!text_few.to_lowercase().contains("nan") && !text_few.contains("-0"));
    // Times below a microsecond have their own histogram, and a percentile is the time of an op, not the middle of a bucket.
    let fast = of(sketch, |record| timed(&mut record.phases[0], &[(740, 9_999), (30_001, 1), (30_002, 1)]));
    let text_fast = text("histogram", &fast);
    assert!(text_fast.contains("[    700,     800)             9999       99.98"), "{text_fast}");
    assert!(text_fast.contains("[     30,      35)                2        0.02"), "{text_fast}");
    assert!(text_fast.contains("50.0000%  latency  : 0.740000"), "{text_fast}");
    assert!(text_fast.contains("99.9900%  latency  : 30.002000"), "{text_fast}");
}

#[test]
fn mininb_throughput_is_by_the_clock_and_the_older_one_is_beside_it() {
    let get = [PhaseSketch::new("get", &["get"], 1_000)];
    let summary = of(Sketch { name: "mininb-get", phases: &get, ..Sketch::EMPTY }, |record| {
        timed(&mut record.phases[0], &[(1_000, 1_000)]);
        record.phases[0].elapsed_ns = 4_000_000;
    });
    let text = text("histogram", &summary);
    assert!(text.contains("Avg throughput    :  250000 ops/sec (by wall clock)"), "{text}");
    assert!(text.contains("Avg throughput    : 1000000 ops/sec (by the latencies alone"), "{text}");
}

#[test]
fn nudb_prints_the_same_tables() {
    const SAMPLE: &str = "\
insert
        inserts          nudb       rocksdb
        1000000          2.64          8.95
        5000000         17.67         91.25
       10000000         43.61        249.31
";
    const FETCH: &[&str] = &["fetch", "1000000", "items", "      # db keys          nudb       rocksdb"];
    let seconds = [[2.64, 17.67, 43.61], [8.95, 91.25, 249.31]];
    let phases = [
        PhaseSketch { each_key: true, ..PhaseSketch::new("insert", &["insert"], 1_000) },
        PhaseSketch::new("fetch", &["get"], 1_000),
    ];
    // Not in the order of the sizes.
    let sketch = |name, keys| Sketch {
        name,
        keys,
        variant_of: Some("nudb-fetch"),
        engines: &["nudb", "rocksdb"],
        phases: &phases,
        runs: 1,
        ..Sketch::EMPTY
    };
    let sketches = [sketch("c", 10_000_000), sketch("a", 1_000_000), sketch("b", 5_000_000)];
    let (_, summary) = changed(&sketches, |record| {
        let engine = usize::from(record.trial.engine == "rocksdb");
        let size = ["a", "b", "c"].iter().position(|name| *name == record.trial.workload.name).unwrap();
        record.phases[0].elapsed_ns = (seconds[engine][size] * 1e9) as u64;
        record.phases[1].ops = 1_000_000;
    });
    let text = text("sizes", &summary);
    assert!(text.starts_with(SAMPLE), "{text}");
    let fetch: Vec<&str> = text.lines().skip_while(|line| *line != "fetch").take(4).collect();
    assert_eq!(fetch, FETCH);
    assert!(csv("sizes", &summary).starts_with("num_db_items,db,op,ops/sec,"));
}

#[test]
fn nudb_rates_against_size_have_a_row_for_each_power_of_ten() {
    let (_, summary) = changed(&[runs::NUDB[2]], |_| {});
    let text = text("sizes", &summary);
    let rows: Vec<&str> = text.lines().take(4).collect();
    // Batches of 300 never end at 1000, so the older tool printed NA. Here the round that reaches 1000 counts.
    assert_eq!(rows[0], "insert (per second)");
    assert_eq!(rows[1], "    num_db_keys         fjall          lmdb");
    assert_eq!((&rows[2][..15], &rows[3][..15]), ("           1000", "           1500"));
    assert!(!text.contains("NA") && !text.contains('-'), "{text}");
    let rows = csv("sizes", &summary);
    let sizes: Vec<&str> = rows.lines().skip(1).step_by(1).map(|line| cells(line)[0]).take(5).collect();
    assert_eq!(sizes, ["300", "600", "900", "1200", "1500"], "a row for each batch");
}

const WIDE: &str = "| name | BatchWrite cost(s) | MemUsage(MiB) | HeapInuse(MiB) | DiskUsage(MiB) | Prefix op/s | Set op/s \
                    | Get op/s | Setmixed op/s | Getmixed op/s | Del op/s |\n\
                    | --- | --- | --- | --- | --- | -- | --- | --- | --- | --- | --- |\n";

#[test]
fn kvbench_prints_the_same_wide_table_and_fills_it_by_name() {
    let (_, whole) = changed(&[runs::KVBENCH], |_| {});
    let text_whole = text("wide", &whole);
    assert!(text_whole.starts_with("### nofsync"), "{text_whole}");
    assert!(text_whole.contains(WIDE), "{text_whole}");
    let cells_of = |text: &str, name: &str| -> Vec<String> {
        let row = text.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        row.split('|').map(|cell| cell.trim().to_string()).collect()
    };
    let before = cells_of(&text_whole, "fjall");
    // A database in memory has no disk usage, and an engine without prefixes has no rate. The other columns do not move.
    let (_, partly) = changed(&[runs::KVBENCH], |record| {
        record.phases[0].disk_end = Some(kvdyno_measure::DiskUse::default());
        record.phases[1] = PhaseRecord::not_run(
            record.phases[1].phase.clone(),
            record.phases[1].durability_requested,
            "no ordered scans".to_string(),
        );
    });
    let text_partly = text("wide", &partly);
    let after = cells_of(&text_partly, "fjall");
    assert_eq!((after[5].as_str(), after[6].as_str()), ("-", "-"), "{text_partly}");
    assert_eq!((&before[..5], &before[7..]), (&after[..5], &after[7..]));
    assert!(text_partly.contains("* fjall, prefix: no ordered scans"), "{text_partly}");
}

#[test]
fn kvbench_ranks_share_a_cell_where_no_order_is_shown() {
    let (_, summary) = changed(&[runs::KVBENCH], |record| {
        let get = &mut record.phases[3];
        let times = match (record.trial.engine.as_str(), record.trial.repetition) {
            ("fjall", repetition) => 1_000 + u64::from(repetition) * 3 % 5,
            ("lmdb", repetition) => 1_001 + u64::from(repetition) * 2 % 5,
            _ => 2_000,
        };
        get.elapsed_ns = get.ops * times;
        record.phases[1].durability_effective = record.phases[0].durability_effective;
        for phase in &mut record.phases {
            phase.durability_effective = Some(phase.durability_requested);
        }
        if record.trial.engine == "redb" {
            record.phases[1].not_run = Some("no ordered scans".to_string());
            (record.phases[1].ops, record.phases[1].elapsed_ns) = (0, 0);
        }
    });
    let text = text("ranks", &summary);
    let head =
        "| Rank | BatchWrite | MemUsage | DiskUsage | Prefix | Set | Get | Setmixed | Getmixed | Delete |\n";
    assert!(text.contains("**Index ranking**\n\nThe higher the ranking, the better\n"), "{text}");
    assert!(text.contains(head), "{text}");
    let row = |rank: &str| -> Vec<&str> {
        let line = text.lines().find(|line| line.starts_with(&format!("| {rank} |"))).unwrap();
        line.split('|').map(str::trim).collect()
    };
    let gets: Vec<&str> = ["1", "2", "3"].map(|rank| row(rank)[7]).to_vec();
    assert_eq!(gets, ["fjall = lmdb", "", "redb"], "{text}");
    let prefixes: Vec<&str> = ["1", "2", "3"].map(|rank| row(rank)[5]).to_vec();
    assert_eq!(prefixes, ["fjall", "lmdb", "-"], "{text}");
    // Less memory ranks higher.
    assert_eq!(row("1")[3], "fjall", "{text}");
    let (_, few) = changed(&[Sketch { runs: 4, ..runs::KVBENCH }], |_| {});
    assert_eq!(layout("ranks").unwrap().text(&few), None, "four runs show no order");
}

#[test]
fn kvdk_prints_the_same_rows_by_the_real_interval() {
    const SAMPLE: &[&str] = &[
        "------- ops in seconds -----------",
        "time (ms),   read ops,   not found,  write ops,  total read,  total write",
        "1000        62763000    0           3933000     62763000     3933000",
        "2001        62297000    0           4303000     125060000    8236000",
        "finish bench",
        " ------------ statistics ------------",
    ];
    let mixed = [PhaseSketch::new("mixed", &["get", "put"], 1_000)];
    let summary = of(Sketch { name: "kvdk-mixed", phases: &mixed, ..Sketch::EMPTY }, |record| {
        let row = |at_ms: u64, interval_ms: u64, reads: u64, writes: u64| SeriesRow {
            at_ns: at_ms * 1_000_000,
            interval_ns: interval_ms * 1_000_000,
            ops: reads + writes,
            kinds: vec![
                ("get".to_string(), histogram_of(&[(890, reads)])),
                ("put".to_string(), histogram_of(&[(1_260, writes)])),
            ],
            ..SeriesRow::default()
        };
        let phase = &mut record.phases[0];
        phase.series = vec![
            row(1_000, 1_000, 62_763_000, 3_933_000),
            row(2_001, 1_000, 62_297_000, 4_303_000),
            // The last second is incomplete, half as long.
            row(2_501, 500, 20_000_000, 1_000_000),
        ];
        phase.kinds[0].service_ns = histogram_of(&[(890, 145_060_000)]);
        phase.kinds[0].ops = 145_060_000;
        phase.kinds[1].service_ns = histogram_of(&[(1_260, 9_236_000)]);
        phase.kinds[1].ops = 9_236_000;
    });
    let text = text("seconds", &summary);
    let mut rest = text.lines();
    for line in SAMPLE {
        assert!(rest.any(|own| own == *line), "{line:?} is not in its place in\n{text}");
    }
    assert!(
        text.contains("\n2501        40000000    0           2000000     145060000    9236000  (500 ms)\n"),
        "{text}"
    );
    assert!(text.contains("\nread ops 62530000, write ops 4118000\n"), "full seconds only: {text}");
    // The older tool divided the time of writes by the number of reads and printed 0.09.
    assert!(text.contains("\nread latencies (us): Avg: 0.89, P50: 0.89, P99: 0.89, P99.5: 0.89,"), "{text}");
    assert!(text.contains("\nwrite latencies (us): Avg: 1.26, P50: 1.26, P99: 1.26, P99.5: 1.26,"), "{text}");
}

#[test]
fn kvdk_names_threads_by_what_they_do_and_what_a_kept_database_brought() {
    let list = [PhaseSketch::new("push-pop", &["push", "pop"], 1_000)];
    let text_of = |name: StepKind, is_reused: bool| {
        let summary = of(Sketch { name: "kvdk-list", phases: &list, ..Sketch::EMPTY }, |record| {
            record.trial.reused = is_reused;
            let before_phase = Some("push-pop".to_string());
            record.steps =
                vec![Step { name, before_phase, elapsed_ns: 1_500_000, note: None, keys: Some(7) }];
            let thread = record.phases[0].threads[0].clone();
            record.phases[0].threads.push(thread);
        });
        text("seconds", &summary)
    };
    let restored = "In restoring: 7 records, 1.500 ms\n";
    let init = "init 0 write threads\ninit 0 read threads\ninit 2 threads that read and write\n";
    for (step, is_reused) in [(StepKind::Reopen, false), (StepKind::Open, true), (StepKind::Reopen, true)] {
        let text = text_of(step, is_reused);
        assert!(text.contains(&format!("{restored}{init}")), "{step}: {text}");
    }
    let fresh = text_of(StepKind::Open, false);
    assert!(
        !fresh.contains("In restoring") && fresh.contains(init),
        "a new database restores nothing: {fresh}"
    );
}

#[test]
fn kvdk_rows_of_reads_and_writes_in_groups_are_dashes_where_they_cannot_be_told_apart() {
    let mixed = [PhaseSketch::new("mixed", &["multi-get", "put"], 1_000)];
    let summary = of(Sketch { name: "kvdk-mixed", phases: &mixed, ..Sketch::EMPTY }, |record| {
        record.phases[0].kinds.iter_mut().for_each(|kind| kind.ops *= 10);
    });
    let text = text("seconds", &summary);
    assert!(text.contains("read ops -, write ops -"), "{text}");
}

#[test]
fn toku_prints_the_same_lines() {
    let sketch = Sketch { engines: &["lmdb"], runs: 1, rounds: 4, ..runs::TOKU[0] };
    let times = [[2.609965, 10.983798], [3.053433, 12.008670], [5.198312, 15.087426], [6.096396, 13.550688]];
    let (_, summary) = changed(&[sketch], |record| {
        for phase in &mut record.phases {
            let place = usize::from(phase.phase.name == "random");
            phase.elapsed_ns = (times[phase.round.unwrap() as usize - 1][place] * 1e9_f64).round() as u64;
            phase.ops = 1_048_576;
        }
        record.steps.last_mut().unwrap().elapsed_ns = 4_025_110_000;
    });
    let text = text("rounds", &summary);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines[0], "serial and random insertions of 1048576 per batch");
    // The older tool's cumulative time includes the time between the halves.
    let first =
        "serial  2.609965s   401759/s    random 10.983798s    95466/s    cumulative 13.593763s   154273/s";
    assert_eq!(lines[1], first);
    assert!(
        lines[4]
            .starts_with("serial  6.096396s   171999/s    random 13.550688s    77382/s    cumulative 68.58")
    );
    assert_eq!(lines[5], "Shutdown  4.025110s");
    assert!(
        lines[6].starts_with("Total time 72.6") && lines[6].contains("s for 8388608 insertions =   1155"),
        "{text}"
    );
}

#[test]
fn toku_scans_have_rows_bytes_and_the_rate_in_millions() {
    let (_, summary) = changed(&[Sketch { engines: &["lmdb"], runs: 1, ..runs::TOKU[1] }], |record| {
        let cold = &mut record.phases[1];
        cold.kinds[0].rows = 2_072_644;
        (cold.logical_bytes_read, cold.elapsed_ns) = (33_162_304, 7_924_463_000);
        record.phases[2].engine_stats = [("cache_hits", "53"), ("cache_misses", "3")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        record.phases[2].usage.rss_bytes = Some(1_232 << 10);
        record.phases[2].usage.rss_peak_bytes = Some(68_096 << 10);
        record.phases[2].usage.vm_peak_bytes = Some(244_668 << 10);
        record.phases[2].usage.vm_peak_bytes = Some(244_668 << 10);
    });
    let text = text("rounds", &summary);
    let first = "Scan    33162304 bytes (2072644 rows) in  7.924463s at  4.184801MB/s";
    assert!(text.contains(first), "{text}");
    for line in [
        "miss=3 hit=53",
        "VmPeak:   244668 kB",
        "VmPeak:   244668 kB",
        "VmHWM:     68096 kB",
        "VmRSS:      1232 kB",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
