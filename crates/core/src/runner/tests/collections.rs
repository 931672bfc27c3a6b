//! Tests of trials with collections and lists, on every built-in engine.

use super::*;
use crate::results::StepKind;
use crate::workload::{Collections, DataType, Mix, Scan};

fn engines() -> Vec<crate::engine::Engine> {
    keeping_engines()
}

/// A workload of point ops and scans in collections of a type.
fn of_fields(r#type: DataType) -> Workload {
    let mut workload = small("keyspaces");
    (workload.keys, workload.keyspaces) = (1_000, 1);
    workload.collections = Collections { count: 7, r#type };
    for phase in workload.phases.iter_mut().filter(|phase| !phase.each_key) {
        phase.ops = 500;
    }
    let mix = Mix { get: 1.0, insert: 0.3, update: 0.5, delete: 0.2, ..Mix::default() };
    workload.phases[1].mix = mix;
    let scan = Scan { rows: 0, reverse: r#type == DataType::Sorted, ..Scan::default() };
    workload.phases.push(Phase { name: "whole".into(), scan, ops: 9, ..workload.phases[3].clone() });
    let count = Mix { merge: 1.0, ..Mix::default() };
    workload.phases.push(Phase { name: "count".into(), mix: count, ops: 300, ..Phase::default() });
    let again = workload.phases[4].clone();
    workload.phases.push(Phase { name: "whole-with-counters".into(), ..again });
    workload
}

/// A fill of lists, then pushes and pops that sometimes empty them.
fn of_lists(threads: u32) -> Workload {
    let mut workload = small("kvdk-list");
    (workload.keys, workload.collections.count) = (100, 5);
    workload.value.size = "uniform:1-90".parse().unwrap();
    let phase = &mut workload.phases[1];
    (phase.ops, phase.seconds, phase.warmup_seconds, phase.threads) = (2_000, 0.0, 0.0, threads);
    (phase.mix.push, phase.mix.pop, phase.reopen_before) = (0.4, 0.6, false);
    workload.phases[0].join = 7;
    workload
}

#[test]
fn every_engine_has_collections_or_they_are_emulated() {
    for engine in engines() {
        for r#type in [DataType::Hash, DataType::Sorted] {
            let record = run_on(engine.name(), of_fields(r#type));
            assert_eq!(record.outcome, Outcome::Ok, "{} {}", engine.name(), r#type.name());
            let is_emulated = engine.capabilities() & abi::KV_COLLECTIONS == 0;
            for phase in record.phases.iter().filter(|phase| phase.not_run.is_none()) {
                let said = phase.emulated.iter().any(|text| text == "collections emulated by key prefix");
                assert_eq!(said, is_emulated, "{} {}", engine.name(), phase.phase.name);
                assert!(phase.emulated.iter().all(|text| !text.starts_with("keyspaces")));
            }
            let scans = record.phases[3..].iter().filter(|phase| phase.phase.mix.scan > 0.0);
            let is_ordered = engine.capabilities() & abi::KV_ORDERED != 0;
            for scan in scans {
                assert_eq!(scan.not_run.is_none(), is_ordered, "{} {}", engine.name(), scan.phase.name);
                let rows = scan.kinds.first().map_or(0, |kind| kind.rows);
                // A scan reads a complete hash: about a seventh of the thousand keys.
                let whole = r#type == DataType::Hash || scan.phase.scan.rows == 0;
                assert!(!is_ordered || !whole || rows > 100 * scan.ops, "{rows} rows in {} scans", scan.ops);
            }
        }
    }
}

#[test]
fn every_engine_has_lists_or_they_are_emulated() {
    for engine in engines() {
        let threads = if engine.capabilities() & abi::KV_SINGLE_THREAD == 0 { 3 } else { 1 };
        let record = run_on(engine.name(), of_lists(threads));
        assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
        let [fill, mixed] = &record.phases[..] else { panic!("two phases") };
        let is_emulated = engine.capabilities() & abi::KV_LISTS == 0;
        assert_eq!(mixed.emulated.contains(&"lists emulated by keys".to_string()), is_emulated);
        assert_eq!((fill.ops, fill.keys_after), (100, Some(100)), "{}", engine.name());
        let [push, pop] = &mixed.kinds[..] else { panic!("two kinds") };
        assert_eq!((push.kind.as_str(), pop.kind.as_str(), push.ops + pop.ops), ("push", "pop", 2_000));
        // Three pops for two pushes: the lists become empty.
        assert!(pop.misses > 0 && pop.service_ns.count() == pop.ops, "{}", engine.name());
        let left = 100 + push.ops - (pop.ops - pop.misses);
        assert_eq!(mixed.keys_after, Some(left), "{}", engine.name());
        assert!(mixed.check.values >= pop.ops - pop.misses);
    }
}

#[test]
fn repeated_pops_and_lost_pushes_are_found() {
    let said = |engine: &str| match run_on(engine, of_lists(2)).outcome {
        Outcome::WrongAnswers { faults } => faults.join("; "),
        other => panic!("{engine}: {other:?}"),
    };
    assert!(said("mutant:pop-twice").contains(" is next"), "{}", said("mutant:pop-twice"));
    let lost = said("mutant:push-lost");
    assert!(lost.contains(" is next") || lost.contains("is reported empty"), "{lost}");
}

#[test]
fn the_sweep_counts_the_remaining_elements_of_lists() {
    let fill_only = || {
        let mut workload = of_lists(1);
        workload.phases.truncate(1);
        workload
    };
    let Outcome::WrongAnswers { faults } = run_on("mutant:push-lost", fill_only()).outcome else {
        panic!("the remaining elements were not checked")
    };
    assert!(faults[0].starts_with("sweep of the lists at the end: "), "{faults:?}");
    let record = run_on("memory-btree", fill_only());
    let sweep = record.steps.iter().find(|step| step.name == StepKind::Sweep).unwrap();
    assert_eq!((record.outcome, sweep.note.clone()), (Outcome::Ok, None));
}

#[test]
fn a_field_in_the_wrong_collection_is_found() {
    let record = run_on("mutant:collection-mixed", of_fields(DataType::Sorted));
    assert!(matches!(record.outcome, Outcome::WrongAnswers { .. }), "{:?}", record.outcome);
    assert!(record.phases[0].emulated.is_empty(), "it declares collections");
}

#[test]
fn a_reopen_records_the_number_of_restored_keys() {
    for (name, keys) in [("kvdk-read", 1_000), ("kvdk-list", 1_000)] {
        let mut workload = small(name);
        workload.keys = keys;
        workload.durability = Durability::Process;
        let phase = &mut workload.phases[1];
        (phase.ops, phase.seconds, phase.warmup_seconds) = (50, 0.0, 0.0);
        let record = run_on("memory-btree", workload);
        assert_eq!(record.outcome, Outcome::Ok, "{name}");
        let step = |name: StepKind, before: Option<&str>| {
            let same =
                |step: &&crate::results::Step| step.name == name && step.before_phase.as_deref() == before;
            record.steps.iter().find(same).unwrap().keys
        };
        assert_eq!(step(StepKind::Open, Some("fill")), None);
        assert_eq!(step(StepKind::Reopen, Some(&record.phases[1].phase.name)), Some(keys), "{name}");
    }
}
