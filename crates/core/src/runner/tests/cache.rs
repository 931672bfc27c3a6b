//! Tests of trials on caches: evictions are counted, and answers are checked as for other engines.

use super::*;
use crate::results::{Cause, KindRecord, OpKind, StepKind};

/// Reads and updates by four threads of 5000 rows of a kilobyte, with a budget for the engine's cache.
fn with_budget(cache_bytes: u64) -> Workload {
    let mut workload = small("ycsb-a");
    workload.durability = Durability::None;
    workload.cache_bytes = Some(cache_bytes);
    workload.phases.iter_mut().skip(1).for_each(|phase| phase.threads = 4);
    workload
}

fn of(record: &Record, kind: OpKind) -> &KindRecord {
    let kinds = record.phases.iter().flat_map(|phase| &phase.kinds);
    kinds.into_iter().find(|found| found.kind == kind).unwrap()
}

fn sweep_note(record: &Record) -> Option<&str> {
    record.steps.iter().find(|step| step.name == StepKind::Sweep).unwrap().note.as_deref()
}

#[test]
#[cfg(feature = "quick-cache")]
fn evicted_rows_are_counted_and_are_not_faults() {
    let record = run_on("quick-cache", with_budget(1 << 20));
    assert_eq!(record.outcome, Outcome::Ok);
    let get = of(&record, OpKind::Get);
    assert!(get.evicted > 100 && get.evicted == get.misses && get.misses < get.ops, "{get:?}");
    assert!(
        sweep_note(&record).unwrap().ends_with(" of 5000 keys read were evicted"),
        "{:?}",
        sweep_note(&record)
    );
    for phase in &record.phases {
        assert_eq!((phase.keys_after, phase.check.level), (None, CheckLevel::Full));
        assert!(crate::results::sane(phase).is_empty(), "{:?}", crate::results::sane(phase));
    }
    let record = run_on("quick-cache", with_budget(64 << 20));
    assert_eq!((of(&record, OpKind::Get).evicted, sweep_note(&record)), (0, None), "all rows fit");
}

#[test]
#[cfg(feature = "quick-cache")]
fn phases_that_must_not_lose_rows_are_not_run_on_a_cache() {
    for (name, reason) in
        [("toku-update", "counters, lists and indexes"), ("kvdk-list", "counters, lists and indexes")]
    {
        let mut workload = small(name);
        workload.durability = Durability::None;
        workload.phases.iter_mut().for_each(|phase| phase.atomic = false);
        let record = run_on("quick-cache", workload);
        let Outcome::Failed { cause, text } = &record.outcome else { panic!("{name}: {:?}", record.outcome) };
        assert!(
            *cause == Cause::Refused && text.contains(reason) && text.contains("it is a cache"),
            "{name}: {text}"
        );
    }
}

#[test]
fn the_value_of_another_key_is_a_fault_of_a_cache_too() {
    let Outcome::WrongAnswers { faults } = run_on("mutant:cache-swaps", with_budget(64 << 20)).outcome else {
        panic!("not found");
    };
    assert!(faults[0].contains("get of key "), "{faults:?}");
}

#[test]
fn an_engine_that_is_not_a_cache_must_not_lose_a_row_at_any_level() {
    let record = run_on("mutant:miss-for-present", with_budget(64 << 20));
    assert!(matches!(record.outcome, Outcome::WrongAnswers { .. }), "{:?}", record.outcome);
    assert!(record.phases.iter().flat_map(|phase| &phase.kinds).all(|kind| kind.evicted == 0));
}
