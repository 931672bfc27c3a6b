//! `kvdyno compare`: two runs side by side, its exit codes, and what it refuses.

use super::command::{Printed, kvdyno};
use std::path::Path;

const SIZES: &str = "--keys 2000 --ops 4000 --runs 5";

/// Makes a run in its own folder and returns the name of the folder.
fn measured(folder: &Path, name: &str, sizes: &str) -> String {
    let words = format!("run read-random --engines memory-btree --quiet --results {name} {sizes}");
    let printed = kvdyno(folder, &words);
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.stderr, printed.stdout);
    name.to_string()
}

fn compared(folder: &Path, base: &str, new: &str, more: &str) -> Printed {
    kvdyno(folder, &format!("compare {base} {new} {more}"))
}

#[test]
fn two_runs_are_compared_figure_by_figure_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let (base, new) = (measured(folder.path(), "one", SIZES), measured(folder.path(), "two", SIZES));
    let short = compared(folder.path(), &base, &new, "");
    let has_tables = short.stdout.contains("p99 of service times:");
    assert!(!has_tables && short.stdout.contains("significant change"), "{}", short.stdout);
    let text = compared(folder.path(), &base, &new, "--full");
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    for part in
        ["read-random / read", "ops/s:", "p99 of service times:", "memory-btree", "5+5", "significant change"]
    {
        assert!(text.stdout.contains(part), "no `{part}` in\n{}", text.stdout);
    }
    let markdown = compared(folder.path(), &base, &new, "--format markdown --figures rate --full");
    assert!(markdown.stdout.contains("| memory-btree |"), "{}", markdown.stdout);
    assert!(!markdown.stdout.contains("p99 of service times"), "{}", markdown.stdout);
    let json = compared(folder.path(), &base, &new, "--format json");
    let found: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(found["differences"].as_array().unwrap().len(), 0);
    assert_eq!(found["rows"][0]["compared"]["base_runs"], 5);
}

#[test]
fn other_settings_are_not_comparable_unless_forced_and_a_regression_has_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let base = measured(folder.path(), "small", SIZES);
    // Values a thousand times as large, copied out by each get: slower on any machine.
    let new = measured(folder.path(), "large", "--keys 200 --ops 4000 --runs 5 --value-size 100000");
    let refused = compared(folder.path(), &base, &new, "");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(5), ""), "{}", refused.stderr);
    for part in ["not comparable", "workload read-random, keys: 2000 and 200", "value, size", "--force"] {
        assert!(refused.stderr.contains(part), "no `{part}` in\n{}", refused.stderr);
    }
    let forced = compared(folder.path(), &base, &new, "--force --figures rate --fail-on regression>5%");
    assert_eq!(forced.code, Some(10), "{}\n{}", forced.stdout, forced.stderr);
    assert!(
        forced.stdout.contains("slower") && forced.stdout.contains("compared because of --force"),
        "{}",
        forced.stdout
    );
    assert!(forced.stderr.contains("worse by more than 5"), "{}", forced.stderr);
    let without = compared(folder.path(), &base, &new, "--force --figures rate");
    assert_eq!(without.code, Some(0), "a regression alone is no failure: {}", without.stderr);
}

#[test]
fn bad_input_has_a_message_and_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let base = measured(folder.path(), "one", "--keys 2000 --ops 4000 --runs 1");
    for (new, more, code, part) in [
        ("absent", "", 2, "folder absent does not exist"),
        ("one", "", 2, "both folders contain the run"),
        ("one", "--figures speed", 2, "unknown figure `speed`"),
        ("one", "--fail-on slower", 2, "--fail-on slower: unknown condition"),
        ("one", "--format csv", 2, "unknown format `csv`"),
    ] {
        let printed = compared(folder.path(), &base, new, more);
        assert_eq!(printed.code, Some(code), "{new} {more}: {}", printed.stderr);
        assert!(
            printed.stderr.contains(part) && printed.stderr.contains("hint:"),
            "{new} {more}: {}",
            printed.stderr
        );
    }
}
