//! Runs verify on the reference engines, which must pass. tests/conformance.rs has every mutant, which must fail.

use super::{Choice, Effort, Outcome, Report, check_names, verify};
use kvdyno_core::engine::Registry;

const EFFORT: Effort = Effort { seed: 7, ops: 4000, seconds: 10.0 };

fn verified(name: &str, effort: Effort) -> Report {
    chosen(name, effort, &Choice::default())
}

fn chosen(name: &str, effort: Effort, choice: &Choice) -> Report {
    let engine = Registry::load(&[]).engine(name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let folder = tempfile::tempdir().unwrap();
    verify(&engine, folder.path(), effort, choice, None, |_| ())
}

#[test]
fn the_reference_engines_pass() {
    for name in ["memory-map", "memory-btree", "null"] {
        for seed in [7, 8, 9] {
            let report = verified(name, Effort { seed, ..EFFORT });
            assert!(report.is_green(), "{report}");
        }
    }
}

#[test]
fn a_report_converts_to_json_and_text() {
    let report = verified("memory-btree", Effort { ops: 200, ..EFFORT });
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    let shown = report.to_string();
    for name in check_names() {
        assert!(shown.contains(name), "{name} is missing in {shown}");
    }
    assert!(report.checks.iter().any(|check| check.outcome == Outcome::Passed));
}

#[test]
fn the_same_seed_gives_the_same_failures() {
    let failures = || {
        let report = verified("mutant:new-overwrites", Effort { ops: 1000, ..EFFORT });
        // Which calls of two threads meet is not in a seed.
        let all = report.failures().filter(|(check, _)| *check != "threads-contended");
        all.map(|(check, text)| (check.to_string(), text.to_string())).collect::<Vec<_>>()
    };
    let (first, second) = (failures(), failures());
    assert!(!first.is_empty());
    assert_eq!(first, second, "seed {}", EFFORT.seed);
}

#[test]
fn a_failing_model_check_shows_the_few_ops_that_reproduce_it() {
    let choice = Choice { checks: vec!["model".into()], settings: Vec::new() };
    let report = chosen("mutant:new-overwrites", EFFORT, &choice);
    assert_eq!(report.checks.len(), 1, "only the chosen check");
    let (_, text) = report.failures().next().unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert!(lines[1].starts_with("2 of these ") && lines[1].ends_with("ops reproduce it:"), "{text}");
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[2].starts_with("put ") && lines[2].contains(" = v1 ("), "{text}");
    assert!(lines[3].starts_with("put new ") && lines[4].starts_with("then: "), "{text}");
}
