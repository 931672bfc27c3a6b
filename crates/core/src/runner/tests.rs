//! Tests of complete trials in this process, on the reference engines.

mod arrivals;
mod cache;
mod collections;
mod contended;
mod ends;
mod mixgraph;
mod noise;
mod received;
mod rounds;
mod sizes;
mod small_values;
mod spaces;
mod sweep;
mod ycsb;

use super::*;
use crate::engine::{Engine, Registry, abi};
use crate::results::{Cause, CheckLevel, Outcome, Record, StepKind, Trial};
use crate::workload::{Durability, OpKind, Phase, Workload, builtin};
use kvdyno_measure::Clock;

/// The built-in engines that keep all rows.
fn keeping_engines() -> Vec<Engine> {
    let keeps = |engine: &&Engine| engine.is_compared() && engine.capabilities() & abi::KV_EVICTS == 0;
    Registry::load(&[]).engines().iter().filter(keeps).cloned().collect()
}

/// A smaller version of a built-in workload.
fn small(name: &str) -> Workload {
    let mut workload = builtin(name).unwrap();
    workload.keys = workload.keys.min(5_000);
    workload.rounds = workload.rounds.min(3);
    workload.key.alternate = workload.key.alternate.min(1_000);
    // At level none the reference engine loses its data on a reopen.
    workload.durability = workload.durability.max(Durability::Process);
    for phase in &mut workload.phases {
        phase.warmup_seconds = 0.0;
        // Other programs use the page cache too.
        phase.reopen_before |= std::mem::take(&mut phase.drop_caches_before);
        if phase.each_round {
            phase.ops = phase.ops.min(1_000);
        }
        if !phase.each_key {
            phase.ops = if phase.ops == 0 { 3_000 } else { phase.ops.min(3_000) };
            phase.seconds = 0.0;
        }
    }
    workload
}

fn run_on(engine: &str, workload: Workload) -> Record {
    run_seeded(engine, workload, None)
}

/// With another seed for the ops than for the rows.
fn run_seeded(engine: &str, workload: Workload, seed: Option<u64>) -> Record {
    run_as(Trial { seed, ..trial_of(engine, workload) })
}

fn trial_of(engine: &str, workload: Workload) -> Trial {
    Trial {
        id: "test".into(),
        order: 0,
        repetition: 1,
        engine: engine.into(),
        options: Vec::new(),
        workload: workload.into(),
        seed: None,
        placement: Default::default(),
        reused: false,
        paranoid: false,
        counts_cycles: false,
        counts_calls: false,
        is_floor: engine == "null",
        load_generators: 1,
        nodes_option: None,
        load_generator: None,
        lengths: Default::default(),
    }
}

fn run_as(trial: Trial) -> Record {
    let folder = tempfile::tempdir().unwrap();
    let engine = Registry::load(&[]).engine(&trial.engine).unwrap();
    let path = folder.path().to_path_buf();
    run_trial(&trial, engine, &path, Clock::calibrate(), &mut |_| {}, &|_| Ok(())).unwrap()
}

#[test]
fn the_page_cache_is_not_dropped_for_an_engine_that_stores_nothing() {
    let mut workload = small("read-random");
    workload.phases.last_mut().unwrap().drop_caches_before = true;
    let record = run_on("null", workload);
    let steps: Vec<_> = record.steps.iter().map(|step| step.name).collect();
    assert!(steps.contains(&StepKind::Reopen) && !steps.contains(&StepKind::DropCaches), "{steps:?}");
}

#[test]
fn every_builtin_workload_runs_right_on_the_reference_engine() {
    for (name, _) in crate::workload::builtin_names() {
        let workload = small(name);
        // Only a store of several members runs it (tests/cli/members.rs).
        if !workload.faults.is_empty() {
            continue;
        }
        let record = run_on("memory-btree", workload);
        assert_eq!(record.outcome, Outcome::Ok, "{name}");
        for phase in &record.phases {
            assert_eq!(phase.not_run, None, "{name} {}", phase.phase.name);
            assert!(phase.ops > 0, "{name} {}", phase.phase.name);
            assert_eq!(phase.check.level, CheckLevel::Full, "{name} {}", phase.phase.name);
            let faults = crate::results::sane(phase);
            assert!(faults.is_empty(), "{name} {}: {faults:?}", phase.phase.name);
        }
    }
}

#[test]
fn a_window_of_rows_slides_and_keeps_its_size() {
    for threads in [1, 4] {
        let mut workload = small("insert-delete");
        workload.phases[1].threads = threads;
        (workload.phases[1].ops, workload.phases[2].ops) = (20_000, 3);
        let record = run_on("memory-btree", workload);
        let of = |phase: usize, kind: OpKind| {
            record.phases[phase].kinds.iter().find(|row| row.kind == kind).unwrap()
        };
        let (inserts, deletes) = (of(1, OpKind::Insert), of(1, OpKind::Delete));
        assert_eq!(inserts.ops + deletes.ops, 20_000, "{threads} threads");
        // More than the keys of the start, so that keys of the phase itself were deleted.
        assert!(deletes.ops > 9_000 && deletes.misses == 0, "{threads} threads: each delete has its key");
        let left = 5_000 + inserts.ops - deletes.ops;
        assert!(left.abs_diff(5_000) < 700, "{threads} threads: {left} of 5,000 rows are left");
        let scans = of(2, OpKind::Scan);
        assert_eq!((scans.ops, scans.rows), (3, 3 * left), "{threads} threads");
    }
}

#[test]
fn the_null_engine_runs_everything_and_is_not_checked() {
    for name in ["quick", "ycsb-f", "batch-write"] {
        let record = run_on("null", small(name));
        assert_eq!(record.outcome, Outcome::Ok, "{name}");
        assert!(
            record.phases.iter().all(|phase| phase.check.level == CheckLevel::None && phase.ops > 0),
            "{name}"
        );
    }
}

#[test]
fn a_scan_on_an_engine_without_scans_is_not_run_with_a_reason() {
    let record = run_on("memory-map", small("scan-short"));
    let scan = record.phases.last().unwrap();
    assert_eq!(scan.not_run.as_deref(), Some("the engine has no ordered scans"));
    assert_eq!(record.outcome, Outcome::Ok);
    assert_ne!(abi::KV_ORDERED, 0);
}

#[test]
fn misses_and_bytes_of_the_warm_up_are_not_counted() {
    let mut workload = small("read-missing");
    let phase = workload.phases.last_mut().unwrap();
    (phase.miss, phase.warmup_seconds, phase.ops, phase.join) = (0.5, 0.05, 2_000, 1);
    phase.mix = crate::workload::Mix { get: 1.0, update: 1.0, ..Default::default() };
    let record = run_on("memory-btree", workload);
    assert_eq!(record.outcome, Outcome::Ok);
    let phase = record.phases.last().unwrap();
    let of = |kind: OpKind| phase.kinds.iter().find(|found| found.kind == kind).unwrap();
    assert_eq!(phase.ops, 2_000);
    assert!(
        of(OpKind::Get).misses <= of(OpKind::Get).ops,
        "{} misses of {} gets",
        of(OpKind::Get).misses,
        of(OpKind::Get).ops
    );
    assert_eq!(phase.logical_bytes_written, of(OpKind::Update).ops * (16 + 100));
    assert_eq!(phase.logical_bytes_read, (of(OpKind::Get).ops - of(OpKind::Get).misses) * (16 + 100));
}

#[test]
#[cfg(feature = "sled")]
fn an_engine_without_the_level_is_refused_or_runs_at_a_weaker_one() {
    let workload = |or_weaker| {
        let mut workload = small("fill-random");
        (workload.durability, workload.or_weaker) = (Durability::Power, or_weaker);
        workload
    };
    let refused = run_on("sled", workload(false));
    assert!(
        matches!(&refused.outcome, Outcome::Failed { cause, .. } if *cause == Cause::Refused),
        "{:?}",
        refused.outcome
    );
    let weaker = run_on("sled", workload(true));
    assert_eq!(weaker.outcome, Outcome::Ok);
    let phase = &weaker.phases[0];
    assert_eq!(
        (phase.durability_requested, phase.durability_effective),
        (Durability::Power, Some(Durability::Process))
    );
    let mut strict = workload(true);
    strict.phases[0].durability = Some(Durability::Power);
    assert_ne!(run_on("sled", strict).outcome, Outcome::Ok, "the level of a phase is required");
}
