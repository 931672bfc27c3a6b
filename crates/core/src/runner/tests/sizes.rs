//! Phases that write values of different sizes.

use super::*;

/// Sizes of the values that are loaded, and of those that the next phase writes.
const PAIRS: [(&str, &str); 6] = [
    ("100", "200"),
    ("200", "100"),
    ("100", "5"),
    ("0", "100"),
    ("uniform:0-50", "5000"),
    ("8", "uniform:16-30"),
];

fn with_sizes(name: &str, (first, second): (&str, &str)) -> Workload {
    let mut workload = Workload { keys: 500, ..small(name) };
    for (phase, size) in workload.phases.iter_mut().zip([first, second]) {
        phase.value_size = Some(size.parse().unwrap());
        phase.ops = phase.ops.min(2_000);
    }
    workload
}

#[test]
fn a_phase_reads_values_of_the_sizes_of_all_phases() {
    for pair in PAIRS {
        for name in ["ycsb-a", "ycsb-e", "ycsb-f"] {
            let record = run_on("memory-btree", with_sizes(name, pair));
            assert_eq!(record.outcome, Outcome::Ok, "{name} {pair:?}");
            assert!(record.steps.iter().any(|step| step.name == StepKind::Sweep), "{name} {pair:?}");
        }
    }
}

#[test]
fn a_value_that_is_cut_is_a_fault_whatever_phase_wrote_it() {
    for pair in PAIRS {
        let record = run_on("mutant:truncated-value", with_sizes("ycsb-a", pair));
        assert!(matches!(record.outcome, Outcome::WrongAnswers { .. }), "{pair:?}: {:?}", record.outcome);
    }
}
