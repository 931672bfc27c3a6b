//! The costs of an op: those of an engine whose puts have a known cost, and those of an engine that does nothing.
//!
//! All bounds are of CPU time and of counts, which do not depend on how long anything takes.

use super::command::{build_driver, kvdyno};
use super::disks::Disk;
use serde_json::Value;
use std::path::Path;

/// What a put costs in spender.c.
const WRITTEN_BYTES: f64 = 8192.0;
const READ_BYTES: f64 = 512.0;
const CALLING_NS: f64 = 50_000.0;
const BACKGROUND_NS: f64 = 100_000.0;
const PUTS_PER_SYNC: f64 = 10.0;

const OPS: f64 = 1000.0;
/// What the threads that run ops read once per phase: their own waiting times.
const READS: f64 = 8.0;

/// The costs of the load of an engine, with its databases in a folder.
fn costs(folder: &Path, engine: &str, data: &Path) -> Value {
    let words = format!(
        "run fill-random --keys 1000 --set fill.seconds=0 --engines {engine} --runs 1 --durability none --seed 7 --quiet --ignore-space --plugins plugins \
         --data {} --results {engine}",
        data.display()
    );
    let printed = kvdyno(folder, &words);
    assert_eq!(printed.code, Some(0), "seed 7: {}{}", printed.stdout, printed.stderr);
    let report = kvdyno(folder, &format!("report --format json {engine}"));
    let json: Value = serde_json::from_str(&report.stdout).unwrap_or_else(|_| panic!("{}", report.stderr));
    let floor = &json["summary"]["phases"][0]["floors"][0];
    assert_eq!((&floor["engine"], &floor["runs"][0]["ops"]), (&engine.into(), &1000.into()), "{floor}");
    assert_eq!(floor["cost"], floor["runs"][0]["cost"], "the median of one run");
    floor["cost"].clone()
}

/// Measures until the machine has not disturbed it, at most three times.
fn measured(is_undisturbed: impl Fn(&Value) -> bool, costs: impl Fn() -> Value) -> Value {
    let mut found = costs();
    for _ in 0..2 {
        if !is_undisturbed(&found) {
            println!("disturbed, so it is measured again: {found}");
            found = costs();
        }
    }
    found
}

#[track_caller]
fn assert_within(costs: &Value, name: &str, low: f64, high: f64) {
    let value = costs[name].as_f64().unwrap_or_else(|| panic!("{name} is unknown: {costs}"));
    assert!((low..=high).contains(&value), "seed 7: {name} is {value}, not within {low}..{high}: {costs}");
}

#[test]
fn an_engine_of_known_cost_has_that_cost() {
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/spender.c");
    // Where the machine stops the calling thread between two calls, the harness has a part of its time.
    let is_undisturbed = |costs: &Value| {
        let of = |name: &str| costs[name].as_f64().unwrap_or_default();
        of("harness_cpu_ns") <= CALLING_NS && of("calling_cpu_ns") >= CALLING_NS
    };
    let spent = measured(is_undisturbed, || costs(folder.path(), "spender", &folder.path().join("data")));
    // Clocks of CPU time bound both from below; what is above is the work of system calls.
    assert_within(&spent, "calling_cpu_ns", CALLING_NS, 4.0 * CALLING_NS);
    assert_within(&spent, "background_cpu_ns", BACKGROUND_NS, 2.0 * BACKGROUND_NS);
    assert_within(&spent, "harness_cpu_ns", 0.001, CALLING_NS);
    // Each put waits for the other thread, which waits for the next put.
    assert_within(&spent, "voluntary_switches", 1.0, 6.0);
    assert_within(&spent, "write_calls", 1.0, 1.0);
    assert_within(&spent, "written_call_bytes", WRITTEN_BYTES, WRITTEN_BYTES);
    assert_within(&spent, "read_calls", 1.0, 1.0 + READS / OPS);
    assert_within(&spent, "read_call_bytes", READ_BYTES, READ_BYTES + READS * 64.0 / OPS);
    assert!(spent["minor_faults"].is_f64() && spent["involuntary_switches"].is_f64(), "{spent}");
    assert!(spent["storage_device"].is_null() && spent["flushes"].is_null(), "{spent}");
    let is_in_memory = spent["written_storage_bytes"].is_null();
    if !is_in_memory {
        assert_within(&spent, "written_storage_bytes", WRITTEN_BYTES, 1.1 * WRITTEN_BYTES);
    }
    let text = kvdyno(folder.path(), "report --full spender").stdout;
    assert!(
        text.contains("Cost per op: processor") && text.contains("Cost per op: reads and writes"),
        "{text}"
    );
    let csv = kvdyno(folder.path(), "report --format csv spender").stdout;
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let place = lines[0].iter().position(|name| *name == "write_calls_per_op").unwrap();
    assert_eq!(lines[1][place], "1");
}

#[test]
fn an_engine_that_does_nothing_costs_nothing_but_the_harness() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("plugins")).unwrap();
    // The kernel may have taken pages of the program away.
    let is_undisturbed = |costs: &Value| costs["major_faults"] == 0.0;
    let spent = measured(is_undisturbed, || costs(folder.path(), "null", &folder.path().join("data")));
    // Not even the samples are in it: the end of a thread and the handling of a page fault are.
    assert_within(&spent, "background_cpu_ns", 0.0, 2e6 / OPS);
    assert_within(&spent, "harness_cpu_ns", 0.001, 1e9 / OPS);
    assert_within(&spent, "read_calls", 0.0, READS / OPS);
    for name in ["write_calls", "written_call_bytes", "major_faults"] {
        assert_within(&spent, name, 0.0, 0.0);
    }
}

#[test]
fn bytes_of_storage_are_those_of_a_device_of_its_own() {
    let Some(disk) = Disk::new("ext4") else { return };
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/spender.c");
    let spent = costs(folder.path(), "spender", &disk.path().join("data"));
    assert!(spent["storage_device"].as_str().unwrap_or_default().starts_with("loop"), "{spent}");
    // The file system writes, too: its journal and what describes the file, with each sync.
    assert_within(&spent, "written_storage_bytes", WRITTEN_BYTES, 3.0 * WRITTEN_BYTES);
    if !spent["flushes"].is_null() {
        assert_within(&spent, "flushes", 1.0 / PUTS_PER_SYNC, 4.0 / PUTS_PER_SYNC);
    }
    std::fs::write(disk.path().join("other"), "x").unwrap();
    let shared = costs(folder.path(), "spender", &disk.path().join("data"));
    assert!(shared["storage_device"].is_null() && shared["flushes"].is_null(), "{shared}");
}

#[test]
fn a_file_system_in_memory_has_no_bytes_of_storage() {
    let Some(disk) = Disk::new("tmpfs") else { return };
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cli/spender.c");
    let spent = costs(folder.path(), "spender", &disk.path().join("data"));
    assert_within(&spent, "written_call_bytes", WRITTEN_BYTES, WRITTEN_BYTES);
    for name in ["read_storage_bytes", "written_storage_bytes", "read_amplification", "flushes"] {
        assert!(spent[name].is_null(), "{name}: {spent}");
    }
}
