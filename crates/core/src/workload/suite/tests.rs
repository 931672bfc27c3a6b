//! Tests of suites: parsing, expansion into workloads, and errors.

use super::*;
use crate::workload::{builtin, builtin_suite, builtin_suites, builtin_text};

fn suite(text: &str) -> Suite {
    parse_suite(text, "s.toml").unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

fn find(name: &str) -> Result<Workload, WorkloadError> {
    builtin(name)
}

fn names(members: &[Member]) -> Vec<&str> {
    members.iter().map(|member| member.workload.name.as_str()).collect()
}

const SMALL: &str = "about = 'Fills'\nengines = ['a', 'b']\nlayouts = 'histogram'\nruns = 2\n\
    [[part]]\nworkload = 'fill-seq'\nkeys = ['500k', 100000]\n\
    [[part]]\nworkload = ['overwrite', 'ycsb-a']\nvariant = 'hot'\ndurability = ['process', 'power']\nengines = 'c'\n\
    set = ['value.size=24', 'key.size=32']\n";

#[test]
fn a_suite_expands_to_workloads_with_their_engines() {
    let small = suite(SMALL);
    assert_eq!((small.name.as_str(), small.about.as_str(), small.runs), ("s", "Fills", Some(2)));
    let members = small.members(&find, &Changes::default()).unwrap();
    let expected = [
        "fill-seq-500k",
        "fill-seq-100k",
        "overwrite-hot-process",
        "overwrite-hot-power",
        "ycsb-a-hot-process",
        "ycsb-a-hot-power",
    ];
    assert_eq!(names(&members), expected);
    let (first, last) = (&members[0], &members[5]);
    assert_eq!((first.workload.keys, first.workload.variant_of.as_deref()), (500_000, Some("fill-seq")));
    assert_eq!((&first.engines[..], &last.engines[..]), (&["a".into(), "b".into()][..], &["c".into()][..]));
    assert_eq!(
        (last.workload.durability, last.workload.variant_of.as_deref()),
        (Durability::Power, Some("ycsb-a"))
    );
    assert_eq!(last.workload.value.size.to_string(), "24");
    assert!(
        members.iter().all(|member| member.workload.runs == 2 && member.workload.layouts == ["histogram"])
    );
    assert!(members.iter().all(|member| member.workload.check().is_ok()));
}

#[test]
fn the_command_line_changes_every_part() {
    let axes = Axes { keys: vec![1000], durability: vec![Durability::None], ..Axes::default() };
    let overrides = Overrides { runs: Some(1), set: vec!["key.size=20".into()], ..Overrides::default() };
    let changes = Changes { scale: None, axes, overrides };
    let members = suite(SMALL).members(&find, &changes).unwrap();
    assert_eq!(names(&members), ["fill-seq", "overwrite-hot", "ycsb-a-hot"]);
    for member in &members {
        let workload = &member.workload;
        assert_eq!((workload.keys, workload.runs, workload.durability), (1000, 1, Durability::None));
        assert_eq!(workload.key.size.to_string(), "20");
    }
    let scaled = suite(SMALL).members(&find, &Changes { scale: Some(0.1), ..Changes::default() }).unwrap();
    assert_eq!(names(&scaled)[..2], ["fill-seq-50k", "fill-seq-10k"]);
    assert_eq!(scaled[2].workload.keys, 100_000);
}

#[test]
fn distinguishes_suites_from_workloads() {
    assert!(is_suite(SMALL));
    assert!(!is_suite("[[phase]]\nname = 'a'") && !is_suite("keys = 5") && !is_suite("= ="));
    assert!(!is_suite("[[phase]]\nname = 'a'\n[[part]]\n"), "the parser of workloads reports the field");
}

/// A file, and its error.
const BROKEN: &[(&str, &str)] = &[
    ("", "s.toml:1: `part`: expected at least one [[part]], got none"),
    ("about = = 5", "s.toml:1: invalid TOML: "),
    ("\npart = 5", "s.toml:2: expected tables written as [[part]], got the number `5`"),
    ("runs = 0\n[[part]]\nworkload = 'quick'", "s.toml:1: `runs`: expected 1 or more, got 0"),
    ("name = 'a b'\n[[part]]\nworkload = 'quick'", "s.toml:1: `name`: expected letters, digits, "),
    (
        "enginse = []\n[[part]]\nworkload = 'quick'",
        "s.toml:1: unknown field `enginse`; did you mean `engines`?",
    ),
    (
        "engines = 5\n[[part]]\nworkload = 'quick'",
        "s.toml:1: expected a string in quotes, got the number `5`",
    ),
    (
        "engines = [5]\n[[part]]\nworkload = 'quick'",
        "s.toml:1: expected a string in quotes, got the number `5`",
    ),
    (
        "engines = { a = 1 }\n[[part]]",
        "s.toml:1: expected a value or a list of values in brackets, got a table",
    ),
    (
        "about = 'x'\n[[part]]\nkeys = [1]",
        "s.toml:2: part 1: `workload`: expected the name of a workload, got none",
    ),
    ("[[part]]\nworkload = 'quick'\nkeys = [0]", "s.toml:3: part 1: `keys`: expected 1 or more, got 0"),
    ("[[part]]\nworkload = 'quick'\nkeys = ['many']", "s.toml:3: expected a count such as 200000"),
    (
        "[[part]]\nworkload = 'quick'\nvariant = 'a/b'",
        "s.toml:3: part 1: `variant`: expected letters, digits, ",
    ),
    ("[[part]]\nworkload = 'quick'\ndurability = 'pwer'", "got `pwer`; did you mean `power`?"),
    (
        "[[part]]\nworkload = 'quick'\nruns = 3",
        "s.toml:3: unknown field `runs` here; it belongs to the top of the file",
    ),
    ("\n[[part]]\nworkload = 'quikc'", "s.toml:2: part 1: unknown workload `quikc`; did you mean `quick`?"),
    (
        "[[part]]\nworkload = 'quick'\nset = 'raed.seconds=1'",
        "s.toml:1: part 1: `set`, --set raed.seconds=1: the workload has no phase `raed`; did you mean `read`?",
    ),
    (
        "[[part]]\nworkload = 'quick'\n\n[[part]]\nworkload = ['fill-seq', 'quick']",
        "s.toml:4: part 2: two workloads have the name `quick`; add a `variant` to one of the parts",
    ),
];

#[test]
fn errors_are_one_line_with_place_and_reason() {
    let mut failures = String::new();
    for (text, expected) in BROKEN {
        let members = parse_suite(text, "s.toml").and_then(|suite| suite.members(&find, &Changes::default()));
        let got = members.map_or_else(|error| error.to_string(), |_| "no error".to_string());
        if !got.contains(expected) || got.contains('\n') || !got.starts_with("s.toml:") {
            failures += &format!("for\n{text}\nexpected {expected}\ngot    {got}\n\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_built_in_suite_expands_to_valid_workloads() {
    for (name, about) in builtin_suites() {
        let suite = builtin_suite(name).unwrap();
        assert_eq!((suite.name.as_str(), suite.about.as_str()), (*name, *about));
        assert!((10..=100).contains(&about.len()), "{name}: {about}");
        let text = builtin_text(name).unwrap();
        assert!(text.starts_with("#:schema ./suite-schema.json\n") && is_suite(text), "{name}");
        for scale in [None, Some(0.1), Some(0.001)] {
            let changes = Changes { scale, ..Changes::default() };
            let members = suite.members(&find, &changes).unwrap_or_else(|error| panic!("{error}"));
            for Member { workload, engines, .. } in &members {
                workload.check().unwrap_or_else(|error| panic!("{name}: {error}"));
                // A part's engines replace the suite's; a suite without engines would run on all.
                // The suite for servers has its own table instead of a layout.
                let is_shown = !workload.layouts.is_empty() || *name == "kvbench-redis";
                assert!(!engines.is_empty() && is_shown, "{name}: {}", workload.name);
            }
        }
    }
}

#[test]
fn the_schema_file_is_fresh_and_accepts_the_suites() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/suite-schema.json");
    let fresh = serde_json::to_string_pretty(&suite_schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == fresh, "workloads/suite-schema.json is stale; run the tests with UPDATE=1");
    let validator = jsonschema::validator_for(&suite_schema()).unwrap();
    let json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let texts = builtin_suites().iter().map(|(name, _)| builtin_text(name).unwrap());
    for text in texts.chain([SMALL]) {
        let errors: Vec<String> = validator.iter_errors(&json(text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
    }
    for wrong in
        ["about = 'x'", "[[part]]\nkeys = 5", "[[part]]\nworkload = 5", "[[part]]\nworkloda = 'quick'"]
    {
        assert!(!validator.is_valid(&json(wrong)), "{wrong}");
    }
}

#[test]
fn the_reference_names_every_field_and_every_suite() {
    let reference = include_str!("../../../../../docs/workloads.md");
    let schema = suite_schema();
    for table in ["/properties", "/$defs/Part/properties"] {
        for field in schema.pointer(table).unwrap().as_object().unwrap().keys() {
            assert!(
                reference.contains(&format!("`{field}`")),
                "docs/workloads.md lacks `{field}` of {table}"
            );
        }
    }
    for (name, _) in builtin_suites() {
        assert!(reference.contains(&format!("`{name}`")), "docs/workloads.md lacks {name}");
    }
}
