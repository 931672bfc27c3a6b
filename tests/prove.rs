//! `kvdyno prove`: all parts in one table, options that no part uses are refused, and former names of commands work and say so.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/command.rs"]
mod command;

use command::kvdyno;
use serde_json::Value;

/// Small, and without root.
const SMALL: &str = "--ops 100 --seconds 0.1 --points 1 --mode kill --rounds 2 --seed 3";

#[test]
fn all_parts_of_a_sound_engine_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let printed = kvdyno(folder.path(), &format!("prove memory-btree {SMALL} --json"));
    assert_eq!(printed.code, Some(0), "seed 3: {}{}", printed.stdout, printed.stderr);
    let json: Value = serde_json::from_str(&printed.stdout).unwrap();
    let claims = json["claims"].as_array().unwrap();
    for part in ["rules", "syncs", "crash", "faults"] {
        let of_part = claims.iter().filter(|claim| claim["part"] == part);
        let results: Vec<&str> = of_part.map(|claim| claim["result"].as_str().unwrap()).collect();
        assert!(!results.is_empty() && !results.contains(&"broken"), "{part}: {json}");
        assert!(json[part].is_array() || results.contains(&"not-provable-here"), "{part}: {json}");
    }
    // Kills alone show nothing of a power cut.
    let cut = claims.iter().find(|claim| claim["part"] == "crash" && claim["level"] == "power").unwrap();
    assert_eq!(cut["result"], "not-provable-here", "{cut}");
    assert!(cut["found"].as_str().unwrap().contains("no power cut after an acknowledged commit"), "{cut}");
}

#[test]
fn a_broken_claim_is_exit_code_3_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let words = "prove mutant:get-fails --only rules,syncs --ops 100 --seconds 0.1 --durability power";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(3), "{}{}", printed.stdout, printed.stderr);
    let last = printed.stdout.trim_end().lines().last().unwrap();
    assert!(last.contains(" broken, ") && !last.contains(" 0 broken"), "{}", printed.stdout);
    assert!(printed.stdout.contains("mutant:get-fails, rules: broken: "), "{}", printed.stdout);
}

#[test]
fn an_option_that_no_selected_part_uses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        ("--only rules --rounds 3", "--rounds: no selected part uses it"),
        ("--only rules,syncs --faults enospc", "--faults: no selected part uses it"),
        ("--only syncs --all", "--all: no selected part uses it"),
        ("--only crash --out here", "--out: no selected part uses it"),
        ("--certificate --check open", "--check: no selected part uses it"),
        ("--certificate --only rules", "cannot be used with"),
        ("--only syncs --ops 1", "expected 2 to 1000000 commits"),
        ("--only nothing", "invalid value"),
    ] {
        let printed = kvdyno(folder.path(), &format!("prove memory-btree {words}"));
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
    let printed = kvdyno(folder.path(), "prove");
    assert_eq!(printed.code, Some(2), "{}", printed.stderr);
    assert!(printed.stderr.contains("an ENGINE is required"), "{}", printed.stderr);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "a refused command left something");
}

#[test]
fn former_names_do_the_same_and_say_what_they_are_now() {
    let folder = tempfile::tempdir().unwrap();
    for (old, new, words) in [
        ("verify", "prove --only rules", "memory-btree --check open --json"),
        ("audit", "prove --only syncs", "memory-btree --ops 2 --durability power"),
        ("crash", "prove --only crash", "--kept nowhere"),
        ("faults", "prove --only faults", "null"),
        ("certify", "prove --certificate", "null --mode kill"),
        ("selftest", "doctor --self", "--seed 7"),
        ("explain", "workloads", "quick --keys 5k"),
        ("plot", "report --plot", "throughput nowhere"),
        ("site", "report --site", "nowhere"),
    ] {
        let (former, now) = (
            kvdyno(folder.path(), &format!("{old} {words}")),
            kvdyno(folder.path(), &format!("{new} {words}")),
        );
        assert_eq!(former.code, now.code, "{old}: {}{}", former.stderr, now.stderr);
        let note = format!("note: `kvdyno {old}` is now `kvdyno {new}`\n");
        assert_eq!(former.stderr, note + &now.stderr, "{old}");
        // The others tell times.
        assert!(former.stdout == now.stdout || old != "explain", "{old}: {}\n{}", former.stdout, now.stdout);
    }
    let checked = kvdyno(folder.path(), "certify --check nowhere.json");
    assert!(checked.stderr.contains("nowhere.json"), "{}", checked.stderr);
}

#[test]
fn the_help_lists_twenty_commands_and_no_former_name() {
    let printed = kvdyno(std::path::Path::new("."), "--help");
    let commands = printed.stdout.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names: Vec<&str> =
        commands.lines().filter(is_name).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.iter().filter(|name| **name != "help").count(), 20, "{names:?}");
    assert_eq!(names[..3], ["run", "prove", "report"]);
    assert!(printed.stdout.contains("Examples:"), "{}", printed.stdout);
}
