//! Tests of descriptions: every workload has a complete one, and three are compared word for word.

use crate::workload::{Changes, Overrides, builtin, builtin_names, builtin_suite, builtin_suites, parse};

const PARTS: &[&str] = &["Ops: ", "Threads: ", "Ends: ", "Timed: ", "Verified: ", "Caches: "];

/// Signs that a piece of the text is missing.
const HOLES: &[&str] = &["  .", " ,", ": .", ":.", "..", ": ;", " ;", "None", "Some(", ": \n", "()"];

fn assert_is_whole(name: &str, text: &str) {
    assert!(!text.contains(":\n\n") && !text.ends_with(":\n"), "{name}: nothing after a colon in\n{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{name}: too long: {line}");
        for hole in HOLES {
            assert!(!line.contains(hole) || line.contains("..."), "{name}: `{hole}` in: {line}");
        }
    }
}

#[test]
fn every_workload_is_explained_without_an_empty_part() {
    for (name, about) in builtin_names() {
        let workload = builtin(name).unwrap();
        let text = workload.explain();
        assert!(text.starts_with(&format!("{name}: ")) && text.contains("\nData\n"), "{text}");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(about), "{text}");
        for part in PARTS {
            let said = text.lines().filter(|line| line.starts_with(&format!("  {part}"))).count();
            assert_eq!(said, workload.phases.len(), "{name}: `{part}` in\n{text}");
        }
        assert_is_whole(name, &text);
        let is_of_a_tool = ["mininb", "nudb", "kvbench", "kvdk", "toku", "mixgraph"]
            .iter()
            .any(|tool| name.starts_with(tool));
        assert_eq!(text.contains("Problems of the original"), is_of_a_tool, "{name}");
        assert!(!is_of_a_tool || text.contains("\nFrom: "), "{name}");
    }
    for (name, _) in builtin_suites() {
        let suite = builtin_suite(name).unwrap();
        let members = suite.members(&builtin, &Changes::default()).unwrap();
        let text = suite.explain(&members);
        assert_is_whole(name, &text);
        for member in &members {
            assert!(
                text.contains(&format!("  - {}: ", member.workload.name)),
                "{name}: {}",
                member.workload.name
            );
        }
    }
}

#[test]
fn each_field_is_described() {
    let quick = builtin("quick").unwrap();
    let cases: &[(&str, &str)] = &[
        ("keys=1234567", "1,234,567 keys of 16 bytes"),
        ("sweep_once=false", "opened and read completely (the sweep)"),
        ("sweep_once=true", "In later runs, 1 % of the keys are read, chosen at random, and at least 1,000."),
        ("key.scattered=true", "consecutive numbers become keys that are far apart"),
        ("key.encoding=hex", "hexadecimal"),
        ("key.size=uniform:16-32", "16 to 32 bytes, all sizes equally likely"),
        ("keyspaces=8", "8 keyspaces"),
        ("value.compressed_share=1", "noise"),
        ("value.size=histogram:100*3,1000*1", "100 bytes (75 %) and 1,000 bytes (25 %)"),
        ("durability=power", "level power: an acknowledged write survives power loss"),
        ("memory_bytes=512MiB", "536,870,912 bytes of memory, page cache included"),
        ("cache_bytes=1MiB", "1,048,576 bytes"),
        ("read.miss=0.25", "25 % of the gets read a key that was never written"),
        (
            "value.size=pareto:0.25,20,10-1k",
            "10 to 1,024 bytes, from a generalized Pareto distribution with k 0.25",
        ),
        (
            "scan.scan.pareto_rows=2,5",
            "scans of 1 to 100 rows, their number from a generalized Pareto distribution with k 2 and",
        ),
        (
            "read.distribution=moving-hotspot:0.01,0.9,100000",
            "90 % of the draws fall on 1 % of the keys, a hot set that moves by its size after every 100,000 draws of a thread; \
             the hot keys are scattered",
        ),
        (
            "read.distribution=hot-ranges:30,14.18,2.917,0.0164,0.08082,0.3467",
            "30 ranges of neighbouring keys, the i-th hottest with a weight of 14.18 e^-2.917i + 0.0164 e^-0.08082i",
        ),
        ("read.distribution=hotspot:0.2,0.8", "80 % of the draws fall on 20 % of the keys"),
        ("read.drop_caches_before=true", "the page cache is dropped"),
        ("read.reopen_before=true", "closed and opened again"),
        ("read.warmup_seconds=0.5", "the first 0.5 s are warm-up and not counted"),
        ("read.readers=2", "1 and 2 readers"),
        ("mix.mix={update=1}", "updates, which overwrite the complete value, not grouped"),
        ("sync.join=10", "in groups of 10 that may share one commit"),
        ("sync.atomic=true", "transaction"),
        ("scan.scan.reverse=true", "scans of 100 rows, in descending order"),
        ("mix.existing=0.5", "50 % of existing keys"),
        ("mix.value_size=50", "Values have 50 bytes"),
    ];
    for (set, expected) in cases {
        let mut sets = vec![set.to_string()];
        if set.starts_with("mix.existing") {
            sets.insert(0, "mix.mix={put=1}".into());
        }
        if set.starts_with("sync.atomic") {
            sets.insert(0, "sync.join=5".into());
        }
        let mut workload = quick.clone();
        Overrides { set: sets, ..Overrides::default() }.apply(&mut workload).unwrap();
        let text = workload.explain();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{set}: no `{expected}` in\n{text}");
        assert_is_whole(set, &text);
    }
    let text = "[[phase]]\nname = 'a'\nmix = { put = 1 }\nops = 1\n";
    assert!(parse(text, "w.toml").unwrap().explain().starts_with("w: -\n"));
}

#[test]
fn three_descriptions_match_their_files() {
    for name in ["mininb-get", "indexed-insert", "ycsb-e"] {
        let path = format!("{}/../../tests/golden/explain-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = builtin(name).unwrap().explain();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(
            text,
            std::fs::read_to_string(&path).unwrap_or_default(),
            "{path} is stale; run with UPDATE=1"
        );
    }
}
