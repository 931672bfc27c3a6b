//! Values of 0 bytes, and others too small to contain their version.

use super::*;
use crate::generator::SizeSpec;

/// Sizes that all include 0 bytes.
const SIZES: [&str; 4] = ["0", "uniform:0-100", "uniform:0-7", "histogram:0*1,100*1"];

fn with_values(name: &str, size: &str) -> Workload {
    let mut workload = small(name);
    workload.value.size = size.parse().unwrap();
    workload.keys = workload.keys.min(1_000);
    for phase in &mut workload.phases {
        phase.value_size = None;
        phase.ops = phase.ops.min(500);
    }
    workload
}

#[test]
fn every_builtin_workload_runs_right_with_values_of_no_bytes() {
    for (place, (name, _)) in crate::workload::builtin_names().iter().enumerate() {
        let workload = with_values(name, SIZES[place % SIZES.len()]);
        // The bytes of an index are in the value.
        if !workload.faults.is_empty() || !workload.indexes.is_empty() {
            continue;
        }
        let record = run_on("memory-btree", workload);
        assert_eq!(record.outcome, Outcome::Ok, "{name}");
        let is_told = record.warnings.iter().any(|warning| warning.id == "small-values");
        assert!(is_told, "{name}: the record says what was not checked");
        for phase in &record.phases {
            assert!(phase.not_run.is_none() && phase.ops > 0, "{name} {}", phase.phase.name);
            let faults = crate::results::sane(phase);
            assert!(faults.is_empty(), "{name} {}: {faults:?}", phase.phase.name);
        }
    }
}

#[test]
fn a_record_says_exactly_what_is_checked_of_small_values() {
    let said = |size: &str| {
        let record = run_on("memory-btree", with_values("read-random", size));
        let found = record.warnings.into_iter().find(|warning| warning.id == "small-values");
        found.map(|warning| warning.text)
    };
    let all_empty = said("0").unwrap();
    assert!(
        all_empty.starts_with("Values have 0 bytes: only their presence and their length"),
        "{all_empty}"
    );
    let some_empty = said("uniform:0-100").unwrap();
    assert!(some_empty.contains("of those of 0 bytes presence and length"), "{some_empty}");
    let small = said("4").unwrap();
    assert!(
        small.contains("presence, length and the bytes") && !small.contains("0 bytes presence"),
        "{small}"
    );
    assert_eq!(said("8"), None);
}

#[test]
fn a_row_without_bytes_that_is_reported_as_absent_is_a_fault() {
    for (name, size) in
        [("ycsb-b", "0"), ("read-missing", "uniform:0-3"), ("read-random", "histogram:0*1,100*9")]
    {
        let record = run_on("mutant:empty-absent", with_values(name, size));
        assert!(
            matches!(record.outcome, Outcome::WrongAnswers { .. }),
            "{name} {size}: {:?}",
            record.outcome
        );
    }
}

#[test]
fn a_value_cut_to_the_length_of_another_version_is_a_fault() {
    // Half of two bytes is a valid value of one byte, and half of one byte is one of none.
    for size in ["histogram:1*1,2*1", "histogram:0*1,1*1", "histogram:0*1,100*9"] {
        let workload = Workload { keys: 500, ..with_values("ycsb-b", size) };
        assert!(matches!(workload.value.size, SizeSpec::Histogram(_)));
        let record = run_on("mutant:truncated-value", workload);
        let Outcome::WrongAnswers { faults } = record.outcome else { panic!("{size}: {:?}", record.outcome) };
        assert!(!faults.is_empty());
    }
}

#[test]
fn an_absent_key_with_a_value_of_no_bytes_is_a_fault() {
    let mut workload = with_values("read-missing", "0");
    workload.phases.last_mut().unwrap().miss = 0.5;
    let record = run_on("mutant:wrong-miss", workload);
    assert!(matches!(record.outcome, Outcome::WrongAnswers { .. }), "{:?}", record.outcome);
}

#[test]
fn scans_over_keys_from_a_file_are_checked_with_values_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    // In no order.
    let keys: String = (0..1_000_u64).map(|number| format!("key-{:012}", number * 7_919 % 1_000)).collect();
    std::fs::write(&file, keys).unwrap();
    let workload = |size: &str| {
        let mut workload = Workload { keys: 1_000, ..with_values("scan-short", size) };
        workload.key.file = Some(file.to_string_lossy().into_owned());
        workload
    };
    for size in ["0", "8", "16", "100"] {
        assert_eq!(run_on("memory-btree", workload(size)).outcome, Outcome::Ok, "{size}");
        for fault in ["scan-duplicate", "scan-out-of-order"] {
            let outcome = run_on(&format!("mutant:{fault}"), workload(size)).outcome;
            assert!(matches!(outcome, Outcome::WrongAnswers { .. }), "{fault} {size}: {outcome:?}");
        }
    }
}
