//! The workloads and suites that are built in: the files of `workloads/`, by name.

use super::{Suite, Workload, WorkloadError, parse, parse_suite};
use kvdyno_measure::text::nearest;
use std::ops::Range;
use std::sync::LazyLock;

/// A name and the text of its file.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../workloads/", $name, ".toml")))),*]
    };
}

/// Workloads, in the order of `kvdyno workloads`.
const FILES: &[(&str, &str)] = files![
    "quick",
    "web",
    "queue",
    "timeseries",
    "durable",
    "bulk",
    "cache",
    "bigger-than-memory",
    "fill-seq",
    "fill-random",
    "fill-sync",
    "batch-write",
    "overwrite",
    "read-random",
    "read-missing",
    "read-seq",
    "read-reverse",
    "scan-short",
    "delete-random",
    "read-while-writing",
    "indexed-insert",
    "keyspaces",
    "insert-delete",
    "long-reader",
    "moving-hotspot",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "mixgraph",
    "linkbench",
    "twitter-cluster12",
    "twitter-cluster27",
    "twitter-cluster37",
    "twitter-cluster52",
    "toku-insert",
    "toku-scan",
    "toku-range",
    "toku-update",
    "toku-insert-multiple",
    "nudb-insert",
    "nudb-fetch",
    "nudb-mixed",
    "mininb-put",
    "mininb-get",
    "kvbench",
    "kvbench-server",
    "kvdk-fill",
    "kvdk-read",
    "kvdk-write",
    "kvdk-mixed",
    "kvdk-scan",
    "kvdk-batch",
    "kvdk-list",
    "member-killed",
];

/// The scenarios among [`FILES`].
const SCENARIOS: Range<usize> = 1..8;

/// Suites, in the order of `kvdyno workloads`.
const SUITES: &[(&str, &str)] =
    files!["mininb-suite", "nudb-suite", "kvbench-suite", "kvbench-redis", "kvdk-suite", "toku-suite"];

static NAMES: LazyLock<Vec<(&'static str, &'static str)>> =
    LazyLock::new(|| FILES.iter().map(|(name, text)| (*name, about(text))).collect());

static SUITE_NAMES: LazyLock<Vec<(&'static str, &'static str)>> =
    LazyLock::new(|| SUITES.iter().map(|(name, text)| (*name, about(text))).collect());

/// The text after `about =` in a file, without its quotes; a test compares it with the parser's result.
fn about(text: &'static str) -> &'static str {
    text.lines()
        .find_map(|line| line.strip_prefix("about = \""))
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default()
}

/// The built-in workloads, each with its description, in the order of `kvdyno workloads`.
pub fn builtin_names() -> &'static [(&'static str, &'static str)] {
    &NAMES
}

/// The workloads among these that say what kind of program they stand for.
pub fn builtin_scenarios() -> &'static [(&'static str, &'static str)] {
    &NAMES[SCENARIOS]
}

/// The built-in suites, each with its description, in the order of `kvdyno workloads`.
pub fn builtin_suites() -> &'static [(&'static str, &'static str)] {
    &SUITE_NAMES
}

/// The file of a built-in workload or suite, with its comments; none if no workload or suite has that name.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    FILES.iter().chain(SUITES).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The built-in suite of that name, if there is one.
pub fn builtin_suite(name: &str) -> Option<Suite> {
    let (_, text) = SUITES.iter().find(|(known, _)| *known == name)?;
    Some(parse_suite(text, &format!("workloads/{name}.toml")).expect("a test reads every built-in suite"))
}

/// The built-in workload of that name; the error for an unknown name suggests the nearest one.
pub fn builtin(name: &str) -> Result<Workload, WorkloadError> {
    if let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) {
        return parse(text, &format!("workloads/{name}.toml"));
    }
    let known: Vec<&str> = FILES.iter().map(|(known, _)| *known).collect();
    let hint = match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "run `kvdyno workloads` for a list".to_string(),
    };
    Err(WorkloadError::new("workload", format!("unknown workload `{name}`; {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::{Distribution, Encoding, ParetoShape, Rate, SizeSpec};
    use crate::workload::{Changes, Durability, Mix, Phase};

    #[test]
    fn every_built_in_file_is_a_workload_of_its_name() {
        for (name, text) in FILES {
            let workload = builtin(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(workload.name, *name);
            assert_eq!(workload.about, about(text), "{name}");
            assert!((10..=100).contains(&workload.about.len()), "{name}: {}", workload.about);
            assert_eq!(builtin_text(name), Some(*text));
        }
    }

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                let name = path.file_stem().unwrap().to_str().unwrap().to_string();
                assert!(
                    FILES.iter().chain(SUITES).any(|(known, _)| *known == name),
                    "{name} is not in the list"
                );
            }
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let error = |name: &str| builtin(name).unwrap_err().to_string();
        assert_eq!(error("quik"), "workload: unknown workload `quik`; did you mean `quick`?");
        assert_eq!(
            error("read_random"),
            "workload: unknown workload `read_random`; did you mean `read-random`?"
        );
        assert_eq!(error("tpcc"), "workload: unknown workload `tpcc`; run `kvdyno workloads` for a list");
    }

    #[test]
    fn all_but_scenarios_and_those_of_older_tools_have_the_usual_sizes() {
        const TOOLS: &[&str] = &["quick", "mininb-", "nudb-", "kvbench", "kvdk-", "toku-", "member-"];
        let is_usual = |name: &str| !TOOLS.iter().any(|tool| name.starts_with(tool));
        let is_scenario = |name: &str| builtin_scenarios().iter().any(|(known, _)| *known == name);
        for (name, _) in FILES.iter().filter(|(name, _)| is_usual(name) && !is_scenario(name)) {
            let workload = builtin(name).unwrap();
            // As many bytes as others have, in fewer values.
            let keys = if *name == "twitter-cluster37" { 50_000 } else { 1_000_000 };
            assert_eq!((workload.keys, workload.runs, workload.budget_seconds), (keys, 5, None), "{name}");
            for phase in &workload.phases {
                let is_load = phase.name == "load";
                assert_eq!(phase.seconds, if is_load { 0.0 } else { 10.0 }, "{name}");
                assert_eq!(phase.is_fill() && phase.seconds == 0.0, is_load, "{name}");
                assert!(!is_load || (phase.join == 100 && phase.distribution == Distribution::Permutation));
            }
            if !["ycsb", "mixgraph", "linkbench", "twitter"].iter().any(|mix| name.starts_with(mix)) {
                assert_eq!(workload.key.size, SizeSpec::Fixed(16), "{name}");
                assert_eq!(workload.value, crate::workload::ValueSpec::default(), "{name}");
            }
        }
    }

    #[test]
    fn a_scenario_is_repeated_and_takes_minutes_unless_it_must_fill_the_memory() {
        let names: Vec<&str> = builtin_scenarios().iter().map(|(name, _)| *name).collect();
        let expected = ["web", "queue", "timeseries", "durable", "bulk", "cache", "bigger-than-memory"];
        assert_eq!(names, expected);
        for name in names {
            let workload = builtin(name).unwrap();
            assert_eq!(workload.runs, 5, "{name}");
            assert!(workload.phases[0].is_fill() && workload.load_seconds.is_some(), "{name}");
            let data = workload.keys as f64 * (16.0 + 1000.0);
            match workload.memory_bytes {
                Some(memory) => assert!(data > 3.0 * memory as f64 && name == "bigger-than-memory"),
                None => assert_eq!(workload.budget_seconds, Some(140.0), "{name}"),
            }
        }
    }

    #[test]
    fn the_suite_of_mininb_gives_all_engines_the_same_cache() {
        let members = builtin_suite("mininb-suite").unwrap().members(&builtin, &Changes::default()).unwrap();
        assert!(members.iter().all(|member| member.workload.cache_bytes == Some(100 << 20)));
        // The ft-index examples had one for both of their engines, too.
        for (name, _) in FILES.iter().filter(|(name, _)| name.starts_with("toku-")) {
            assert!(builtin(name).unwrap().cache_bytes >= Some(127 << 20), "{name}");
        }
    }

    #[test]
    fn quick_is_as_promised() {
        let quick = builtin("quick").unwrap();
        assert_eq!((quick.keys, quick.runs, quick.budget_seconds), (200_000, 5, Some(145.0)));
        assert_eq!((&quick.key.size, &quick.value.size), (&SizeSpec::Fixed(16), &SizeSpec::Fixed(100)));
        assert_eq!((quick.value.compressed_share, quick.durability), (0.5, Durability::Process));
        let names: Vec<&str> = quick.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["fill", "read", "read-missing", "mix", "scan", "sync"]);
        let [fill, read, missing, mix, scan, sync] = quick.phases.as_slice() else { panic!("six phases") };
        assert!(fill.is_fill() && fill.distribution == Distribution::Permutation && fill.join == 100);
        assert_eq!((read.mix.get, read.miss, &read.distribution), (1.0, 0.0, &Distribution::Uniform));
        assert_eq!((missing.mix.get, missing.miss), (1.0, 0.1));
        assert_eq!((&mix.distribution, mix.threads), (&Distribution::Zipf(0.99), 2));
        assert_eq!(mix.mix, Mix { get: 0.5, update: 0.5, ..Mix::default() });
        assert_eq!((scan.mix.scan, scan.scan.rows), (1.0, 100));
        assert_eq!((sync.mix.update, sync.ops, sync.threads, sync.join), (1.0, 2000, 1, 1));
        assert_eq!(sync.durability, Some(Durability::Power));
        assert!(quick.phases[1..].iter().all(|phase| phase.ops > 0 && phase.seconds > 0.0));
        assert!(quick.sweep_once);
    }

    #[test]
    fn kvdk_workloads_fill_reopen_and_measure_for_ten_seconds() {
        let phases = |name: &str| -> Vec<String> {
            let workload = builtin(name).unwrap();
            assert_eq!((workload.keys, &workload.layouts[..]), (1_000_000, &["seconds".to_string()][..]));
            assert_eq!(
                (&workload.key.size, &workload.value.size),
                (&SizeSpec::Fixed(8), &SizeSpec::Fixed(120))
            );
            let [fill, rest @ ..] = workload.phases.as_slice() else { panic!("a fill") };
            assert!(fill.is_fill() && fill.name == "fill" && fill.threads == 2, "{name}");
            for phase in rest {
                assert_eq!(phase.threads + phase.readers + phase.writers, 2, "{name}");
                assert_eq!((phase.seconds, phase.warmup_seconds), (10.0, 2.0), "{name}");
            }
            assert!(rest.first().is_none_or(|phase| phase.reopen_before), "{name}");
            rest.iter().map(|phase| phase.name.clone()).collect()
        };
        assert_eq!(phases("kvdk-fill"), [""; 0]);
        assert_eq!(phases("kvdk-read"), ["read"]);
        assert_eq!(phases("kvdk-write"), ["insert", "update"]);
        assert_eq!(phases("kvdk-mixed"), ["mixed"]);
        assert_eq!(phases("kvdk-scan"), ["scan"]);
        assert_eq!(phases("kvdk-batch"), ["batch"]);
        assert_eq!(phases("kvdk-list"), ["push-pop"]);
        let batch = &builtin("kvdk-batch").unwrap().phases[1];
        assert_eq!((batch.existing, batch.join, batch.atomic), (Some(0.0), 100, true));
        assert!(builtin("kvdk-list").unwrap().collections.are_lists());
    }

    /// The run phase of a YCSB workload, after a check that its data is as YCSB defines it.
    fn ycsb(letter: char) -> Phase {
        let workload = builtin(&format!("ycsb-{letter}")).unwrap();
        assert_eq!((&workload.key.size, workload.key.encoding), (&SizeSpec::Fixed(23), Encoding::Hashed));
        assert_eq!(workload.value.size, SizeSpec::Fixed(1000));
        let [load, run] = workload.phases.as_slice() else { panic!("load and run") };
        assert!(load.is_fill());
        run.clone()
    }

    #[test]
    fn ycsb_workloads_are_as_defined() {
        use Distribution::{Latest, YcsbZipfian};
        let mix = |get: f64, update: f64, insert: f64, scan: f64, read_modify_write: f64| Mix {
            get,
            update,
            insert,
            scan,
            read_modify_write,
            ..Mix::default()
        };
        let cases = [
            ('a', mix(0.5, 0.5, 0.0, 0.0, 0.0), YcsbZipfian),
            ('b', mix(0.95, 0.05, 0.0, 0.0, 0.0), YcsbZipfian),
            ('c', mix(1.0, 0.0, 0.0, 0.0, 0.0), YcsbZipfian),
            ('d', mix(0.95, 0.0, 0.05, 0.0, 0.0), Latest),
            ('e', mix(0.0, 0.0, 0.05, 0.95, 0.0), YcsbZipfian),
            ('f', mix(0.5, 0.0, 0.0, 0.0, 0.5), YcsbZipfian),
        ];
        for (letter, mix, distribution) in cases {
            let run = ycsb(letter);
            assert_eq!((run.mix, &run.distribution), (mix, &distribution), "ycsb-{letter}");
            assert_eq!(run.grows, run.mix.insert > 0.0, "ycsb-{letter}");
        }
        let scan = ycsb('e').scan;
        assert_eq!((scan.rows, scan.uniform_rows, scan.reverse), (100, true, false));
    }

    /// The last phase of a workload, which names its source.
    fn published(name: &str) -> (Workload, Phase) {
        let workload = builtin(name).unwrap();
        assert!(workload.source.is_some(), "{name}");
        let run = workload.phases.last().unwrap().clone();
        (workload, run)
    }

    #[test]
    fn mixgraph_has_the_parameters_of_its_wiki() {
        let (workload, run) = published("mixgraph");
        assert_eq!(workload.key.size, SizeSpec::Fixed(48));
        let values = ParetoShape { k: 0.2615, sigma: 25.45 };
        assert_eq!(workload.value.size, SizeSpec::Pareto(values, 10, 1024));
        assert_eq!(run.mix, Mix { get: 0.83, put: 0.14, scan: 0.03, ..Mix::default() });
        let keys = Distribution::HotRanges(30.0, 14.18, 2.917, 0.0164, 0.08082, 0.3467);
        assert_eq!(run.distribution, keys);
        let rows = Some(ParetoShape { k: 2.517, sigma: 14.236 });
        assert_eq!((run.scan.rows, run.scan.pareto_rows), (10_000, rows));
        // The rate that its file names is one.
        for rate in ["sine:4500,1000,86071s", "sine:4500,1000,10s"] {
            assert!(builtin_text("mixgraph").unwrap().contains(&format!("run.rate={rate}`")), "{rate}");
            assert!(rate.parse::<Rate>().is_ok(), "{rate}");
        }
    }

    #[test]
    fn linkbench_has_the_shares_of_its_ops_and_lists_of_a_few_rows() {
        let (workload, run) = published("linkbench");
        let Mix { scan, get, update, insert, delete, .. } = run.mix;
        let close = |share: f64, parts: &[f64]| (share - parts.iter().sum::<f64>()).abs() < 1e-4;
        assert!(close(scan, &[50.7119145]));
        assert!(close(get, &[12.9326683, 4.8863567, 0.5261142]));
        assert!(close(update, &[8.0122125, 7.366437]));
        assert!(close(insert, &[8.9886601, 2.5732789]));
        assert!(close(delete, &[2.9907664, 1.0115914]));
        assert!(close(100.0, &[scan, get, update, insert, delete]));
        assert!(run.scan.prefix && run.scan.rows == 0 && workload.key.scattered);
        // 4.1 links and their node.
        assert_eq!(workload.keys / workload.key.prefix_groups, 5);
    }

    #[test]
    fn twitters_clusters_have_the_means_of_their_table() {
        // Sizes of key and value, alpha, misses, shares of gets, of writes, and of requests whose key is new.
        let cases = [
            (12, 44, 1030, 0.3048, 0.0058, 0.20, 0.80, 0.7945),
            (27, 66, 8, 1.065, 0.8061, 0.85, 0.15, 0.1112),
            (37, 72, 20134, 0.4251, 0.5938, 0.63, 0.37, 0.2635),
        ];
        for (cluster, key, value, alpha, miss, get, put, new) in cases {
            let (workload, run) = published(&format!("twitter-cluster{cluster}"));
            let sizes = (SizeSpec::Fixed(key), SizeSpec::Fixed(value));
            assert_eq!((workload.key.size, workload.value.size), sizes, "{cluster}");
            assert_eq!((run.distribution, run.miss), (Distribution::Zipf(alpha), miss), "{cluster}");
            assert_eq!(run.mix, Mix { get, put, ..Mix::default() }, "{cluster}");
            let drawn = (1.0 - run.existing.unwrap()) * put;
            assert!((drawn - new).abs() < 1e-3 && run.grows, "{cluster}: {drawn}");
            assert_eq!(workload.durability, Durability::None, "{cluster}: a cache");
        }
        let (workload, run) = published("twitter-cluster52");
        assert_eq!((workload.key.size, workload.value.size), (SizeSpec::Fixed(20), SizeSpec::Fixed(273)));
        assert_eq!((run.distribution, run.miss), (Distribution::Zipf(1.2117), 0.0189));
        assert_eq!(run.mix, Mix { get: 0.91, insert: 0.04, read_modify_write: 0.02, ..Mix::default() });
    }

    #[test]
    fn what_is_inserted_at_one_end_is_deleted_at_the_other() {
        let (workload, read) = published("insert-delete");
        let churn = &workload.phases[1];
        assert_eq!(churn.mix, Mix { insert: 0.5, delete: 0.5, ..Mix::default() });
        assert!(churn.grows && churn.distribution == Distribution::Sequential);
        assert_eq!((read.mix.scan, read.scan.rows), (1.0, 0));
    }

    #[test]
    fn the_long_reader_keeps_its_cursor_and_has_a_writer_to_compare_with() {
        let workload = builtin("long-reader").unwrap();
        let [_, write, read] = workload.phases.as_slice() else { panic!("three phases") };
        assert_eq!((write.threads, write.writers, write.existing), (0, 1, Some(1.0)));
        assert_eq!((read.threads, read.writers, read.existing), (1, 1, Some(1.0)));
        assert_eq!((read.mix.scan, read.scan.rows), (1.0, 0));
        assert!(read.scan.rows_per_call > 0, "a cursor is held only from call to call");
    }

    #[test]
    fn the_moving_hotspot_is_compared_with_one_that_stays() {
        let (workload, moving) = published("moving-hotspot");
        let still = &workload.phases[1];
        assert_eq!(still.distribution, Distribution::Hotspot(0.01, 0.9));
        assert_eq!(moving.distribution, Distribution::MovingHotspot(0.01, 0.9, 100_000.0));
        assert_eq!(moving.mix, still.mix);
    }
}
