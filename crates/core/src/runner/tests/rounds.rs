//! Tests of trials with rounds, keys in turns, atomic groups and scans with several calls.

use super::super::data::{check_workload, growth};
use super::*;
use crate::engine::Engine;
use crate::generator::{Distribution, Encoding};
use crate::results::StepKind;
use crate::workload::{Emulate, Mix, OpKind, Transaction};
use std::cell::Cell;

fn engines() -> Vec<Engine> {
    keeping_engines()
}

/// A workload with alternating inserts and gets.
fn in_turn(rounds: u32, ops: u64) -> Workload {
    let mut workload = small("nudb-mixed");
    workload.rounds = rounds;
    workload.phases.iter_mut().for_each(|phase| phase.ops = ops);
    workload
}

fn is_caught(engine: &str, workload: Workload) {
    let name = workload.name.clone();
    let record = run_on(engine, workload);
    assert!(matches!(record.outcome, Outcome::WrongAnswers { .. }), "{engine} {name}: {:?}", record.outcome);
}

/// The workload without atomic groups: the faults affect single and joined ops.
fn not_atomic(name: &str) -> Workload {
    let mut workload = small(name);
    workload.phases[0].atomic = false;
    workload
}

#[test]
fn rounds_continue_after_the_previous_one() {
    for engine in engines() {
        let record = run_on(engine.name(), in_turn(3, 500));
        assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
        let runs: Vec<_> = record
            .phases
            .iter()
            .map(|phase| (phase.phase.name.as_str(), phase.round, phase.keys_after))
            .collect();
        let expected = |name, round: u32| (name, Some(round), Some(500 * u64::from(round)));
        let all: Vec<_> =
            (1..=3).flat_map(|round| [expected("insert", round), expected("fetch", round)]).collect();
        assert_eq!(runs, all, "{}", engine.name());
        for phase in &record.phases {
            assert_eq!((phase.ops, phase.series.is_empty()), (500, false), "{}", engine.name());
            assert!(crate::results::sane(phase).is_empty(), "{:?}", crate::results::sane(phase));
        }
        // Draws differ from those of the previous round: values differ in size, so the bytes read differ.
        let read = |at: usize| record.phases[at].logical_bytes_read;
        assert!(read(1) != read(3) && read(3) != read(5), "{}", engine.name());
    }
}

#[test]
fn many_short_rounds_are_saved_sometimes_and_have_no_rows_per_second() {
    let folder = tempfile::tempdir().unwrap();
    let workload = in_turn(500, 20);
    let trial = Trial {
        id: "test".into(),
        order: 0,
        repetition: 1,
        engine: "memory-btree".into(),
        options: Vec::new(),
        seed: None,
        placement: Default::default(),
        reused: Default::default(),
        paranoid: false,
        counts_cycles: false,
        counts_calls: false,
        is_floor: false,
        load_generators: 1,
        nodes_option: None,
        load_generator: None,
        lengths: Default::default(),
        workload: workload.into(),
    };
    let engine = Registry::load(&[]).engine("memory-btree").unwrap();
    let (began, kept) = (std::time::Instant::now(), Cell::new(0));
    let keep = |_: &Record| {
        kept.set(kept.get() + 1);
        Ok(())
    };
    let record = run_trial(&trial, engine, folder.path(), Clock::calibrate(), &mut |_| {}, &keep).unwrap();
    assert_eq!(record.outcome, Outcome::Ok);
    assert_eq!(record.phases.len(), 1000);
    assert!(record.phases.iter().all(|phase| phase.series.is_empty() && phase.ops == 20));
    assert!(kept.get() <= 2 + began.elapsed().as_secs(), "kept {} times", kept.get());
    assert!(kept.get() >= 1);
    assert!(record.warnings.len() < 12, "{} warnings", record.warnings.len());
}

#[test]
fn steps_before_a_phase_are_taken_in_each_round() {
    let mut workload = in_turn(3, 100);
    (workload.phases[0].settle_before, workload.phases[1].reopen_before) = (true, true);
    let record = run_on("memory-btree", workload);
    assert_eq!(record.outcome, Outcome::Ok);
    let count = |name: StepKind, before: &str| {
        let is =
            |step: &&crate::results::Step| step.name == name && step.before_phase.as_deref() == Some(before);
        record.steps.iter().filter(is).count()
    };
    assert_eq!(
        (
            count(StepKind::Reopen, "fetch"),
            count(StepKind::Close, "fetch"),
            count(StepKind::Settle, "insert")
        ),
        (3, 3, 2)
    );
}

#[test]
fn growth_counts_rounds() {
    let growth_of = |workload: &Workload| {
        let growth = growth(workload);
        (growth.counted, growth.most)
    };
    let toku = builtin("toku-insert").unwrap();
    assert_eq!(growth_of(&toku), (8 << 20, 8 << 20));
    let mut threads = in_turn(3, 100);
    threads.phases[0].threads = 4;
    assert_eq!(growth_of(&threads), (309, 309), "threads may differ by one op, in each round");
    assert_eq!(growth_of(&builtin("nudb-fetch").unwrap()), (1_000_000, 1_000_000));
    let timed = growth(&builtin("ycsb-d").unwrap());
    assert!(timed.counted == 1_000_000 && timed.most > 20_000_000);
    let disk = |rounds| crate::runner::plan::disk_estimate_bytes(&in_turn(rounds, 1000));
    assert!(disk(10) - disk(5) == disk(15) - disk(10) && disk(10) > disk(5));
    let mut tight = toku;
    tight.key.spacing = 4;
    assert!(check_workload(&tight).unwrap_err().to_string().contains("4 turns; spacing 4 allows at most 3"));
}

#[test]
fn keys_in_turns_are_checked_on_every_engine_and_in_scans() {
    for engine in engines() {
        for threads in [1, 3] {
            if threads > 1 && engine.capabilities() & abi::KV_SINGLE_THREAD != 0 {
                continue;
            }
            let mut workload = small("toku-insert");
            workload.phases.iter_mut().for_each(|phase| phase.threads = threads);
            // Scans between the rounds and at the end must find both halves.
            let scan = builtin("toku-scan").unwrap().phases[2].clone();
            workload.phases.push(Phase { name: "scan".into(), ..scan });
            let record = run_on(engine.name(), workload);
            assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
            let scan = record.phases.last().unwrap();
            assert!(scan.not_run.is_some() || scan.kinds[0].rows == 6_000, "{}", engine.name());
        }
    }
}

#[test]
fn faults_in_rounds_and_turns_are_found() {
    for fault in ["phantom-put", "wrong-key", "loses-tail-on-reopen", "miss-for-present", "scan-missing"] {
        let mut workload = small("toku-insert");
        let scan = small("toku-scan").phases.remove(2);
        workload.phases.push(Phase { ops: 8, ..scan });
        is_caught(&format!("mutant:{fault}"), workload);
    }
    for fault in ["scan-missing", "scan-duplicate", "scan-early-end", "scan-out-of-order"] {
        let mut scan = small("toku-scan");
        scan.phases[2].ops = 8; // Every fourth scan has the fault.
        is_caught(&format!("mutant:{fault}"), scan);
        is_caught(&format!("mutant:{fault}"), small("toku-range"));
    }
    for fault in ["scan-duplicate", "scan-early-end", "scan-out-of-order"] {
        is_caught(&format!("mutant:{fault}"), small("ycsb-e"));
    }
    // Keys whose order is known: gaps are found too.
    let mut growing = small("ycsb-e");
    (growing.key.encoding, growing.phases[1].grows) = (Encoding::Decimal, false);
    growing.phases[1].distribution = Distribution::Uniform;
    is_caught("mutant:scan-missing", growing);
    for fault in ["miss-for-present", "swapped-values", "truncated-value", "phantom-put"] {
        is_caught(&format!("mutant:{fault}"), small("nudb-mixed"));
    }
    for fault in ["merge-wrong", "lost-update"] {
        is_caught(&format!("mutant:{fault}"), not_atomic("toku-update"));
    }
    is_caught("mutant:index-row-lost", not_atomic("toku-insert-multiple"));
}

/// An aborted phase with each kind of write, between phases that must see the rows from before it.
fn undone() -> Workload {
    let mut workload = small("overwrite");
    let writes =
        Mix { get: 2.0, insert: 1.0, update: 1.0, delete: 1.0, read_modify_write: 1.0, ..Mix::default() };
    let phase = |name: &str, mix: &Mix, transaction| Phase {
        name: name.into(),
        mix: *mix,
        ops: 1_000,
        seconds: 0.0,
        transaction,
        ..Phase::default()
    };
    let reads = Mix { get: 1.0, ..Mix::default() };
    workload.keys = 500;
    workload.phases.truncate(1);
    workload.phases.push(phase("undone", &writes, Some(Transaction::Aborted)));
    workload.phases.push(phase("reads", &reads, None));
    workload.phases.push(phase("writes", &writes, None));
    workload
}

#[test]
fn writes_of_an_aborted_transaction_are_rolled_back() {
    let can = |engine: &&Engine| engine.capabilities() & abi::KV_CAN_LONG_TRANSACTION != 0;
    for engine in engines().iter().filter(can) {
        let record = run_on(engine.name(), undone());
        assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
        let undone = &record.phases[1];
        assert_eq!((undone.keys_after, undone.not_run.as_deref()), (Some(500), None), "{}", engine.name());
        let read = undone.kinds.iter().find(|kind| kind.kind == OpKind::Get).unwrap();
        assert!(undone.check.values > read.ops, "{}: its keys are read again", engine.name());
    }
}

#[test]
fn an_abort_that_commits_is_found_at_once() {
    // It must also be found if the same keys are written again, so that the sweep finds nothing.
    for last in [2, 4] {
        let mut workload = undone();
        workload.phases.truncate(last);
        let record = run_on("mutant:abort-commits", workload);
        let Outcome::WrongAnswers { faults } = &record.outcome else {
            panic!("{:?}", record.outcome);
        };
        assert!(faults[0].contains("after its transaction was aborted"), "{faults:?}");
    }
    let mut committed = undone();
    committed.phases[1].transaction = Some(Transaction::Whole);
    assert_eq!(run_on("mutant:abort-commits", committed).outcome, Outcome::Ok);
}

#[test]
fn a_scan_with_several_calls_returns_the_same_rows() {
    let rows = |engine: &str, rows_per_call, scan_rows, reverse| {
        let mut workload = small("toku-scan");
        (workload.keys, workload.key.alternate) = (500, 100);
        for phase in &mut workload.phases[1..] {
            phase.scan.rows = scan_rows;
            (phase.scan.rows_per_call, phase.scan.reverse) = (rows_per_call, reverse);
            phase.ops = 3;
        }
        let record = run_on(engine, workload);
        assert_eq!(record.outcome, Outcome::Ok, "{engine} {rows_per_call}");
        let cold = &record.phases[1];
        let said = cold.emulated.iter().any(|text| text == "scan continues by a search in each call");
        let holds = Registry::load(&[]).engine(engine).unwrap().capabilities() & abi::KV_CAN_HOLD != 0;
        assert_eq!(said, rows_per_call > 0 && !holds, "{:?}", cold.emulated);
        assert_eq!((cold.ops, cold.kinds[0].service_ns.count()), (3, 3), "timed as one op");
        (cold.kinds[0].rows, cold.logical_bytes_read)
    };
    for engine in engines().iter().filter(|engine| engine.capabilities() & abi::KV_ORDERED != 0) {
        for rows_per_call in [0, 1, 7, 10_000] {
            assert_eq!(
                rows(engine.name(), rows_per_call, 0, false),
                (1_500, 1_500 * 16),
                "{}",
                engine.name()
            );
            assert_eq!(rows(engine.name(), rows_per_call, 40, false).0 % 40, 0, "{}", engine.name());
        }
        if engine.capabilities() & abi::KV_CAN_REVERSE != 0 {
            assert_eq!(rows(engine.name(), 3, 0, true).0, 1_500, "{}", engine.name());
        }
    }
    // A fault in a later call is found too.
    for fault in ["scan-early-end", "scan-missing"] {
        let mut workload = small("toku-scan");
        (workload.phases[1].scan.rows_per_call, workload.phases[1].ops) = (9, 3);
        is_caught(&format!("mutant:{fault}"), workload);
    }
}

#[test]
fn atomic_groups_of_every_kind_are_correct_or_unsupported() {
    let of = |mix: Mix, existing| {
        let mut workload = small("quick");
        workload.phases.truncate(1);
        let phase = Phase { mix, existing, join: 10, atomic: true, ops: 500, ..Phase::default() };
        workload.phases.push(Phase { name: "groups".into(), ..phase });
        workload
    };
    let kinds = [
        (Mix { put: 1.0, ..Mix::default() }, None),
        (Mix { put: 1.0, ..Mix::default() }, Some(0.5)),
        (Mix { insert: 1.0, ..Mix::default() }, Some(0.3)),
        (Mix { update: 1.0, get: 1.0, ..Mix::default() }, None),
        (Mix { delete: 1.0, ..Mix::default() }, None),
        (Mix { merge: 1.0, ..Mix::default() }, None),
    ];
    for engine in engines() {
        for (mix, existing) in kinds {
            let record = run_on(engine.name(), of(mix, existing));
            assert_eq!(record.outcome, Outcome::Ok, "{} {mix:?}", engine.name());
            let groups = &record.phases[1];
            if engine.capabilities() & abi::KV_TRANSACTION == 0 {
                let why = groups.not_run.as_deref();
                assert!(
                    why.is_some_and(|why| why.starts_with("the engine has no ")),
                    "{} {why:?}",
                    engine.name()
                );
            } else if groups.not_run.is_none() {
                assert_eq!(groups.ops, 500, "{} {mix:?}", engine.name());
            }
        }
    }
}

#[test]
fn merges_are_emulated_on_demand_with_correct_sums() {
    for engine in engines() {
        for (emulate, keys) in [(false, 5_000), (true, 5_000), (true, 7)] {
            let mut workload = small("toku-update");
            (workload.keys, workload.durability) = (keys, Durability::Process);
            let phase = &mut workload.phases[0];
            phase.atomic = engine.capabilities() & abi::KV_TRANSACTION != 0;
            phase.emulate = if emulate { vec![Emulate::Merge] } else { Vec::new() };
            let record = run_on(engine.name(), workload);
            assert_eq!(record.outcome, Outcome::Ok, "{} {keys}", engine.name());
            let last = record.phases.last().unwrap();
            let said = last.emulated.iter().any(|text| text == "merge = get + put");
            assert_eq!(said, emulate || engine.capabilities() & abi::KV_MERGE_ADD == 0, "{}", engine.name());
            assert_eq!((last.ops, last.kinds[0].service_ns.count()), (1_000, 10), "{}", engine.name());
            assert_eq!(last.logical_bytes_written, 1_000 * 16);
        }
    }
    let mut workload = not_atomic("toku-update");
    workload.phases[0].emulate = vec![Emulate::Merge];
    let floor = run_on("null", workload.clone());
    assert_eq!((floor.outcome, floor.phases[0].ops), (Outcome::Ok, 1_000));
    // The thread may lose its processor within a call of one round.
    let shares: Vec<f64> = floor.phases.iter().map(|phase| phase.harness_share).collect();
    assert!(shares.iter().any(|share| *share > 0.10), "{shares:?}");
    assert!(
        floor.warnings.iter().all(|warning| warning.id != "harness-share"),
        "a null engine measures the harness"
    );
    is_caught("mutant:lost-update", workload);
}

#[test]
fn an_engine_that_stores_nothing_counts_only_inserted_keys() {
    let mut workload = small("read-random");
    let phase =
        |name: &str, mix, ops| Phase { name: name.into(), mix, ops, each_round: true, ..Phase::default() };
    (workload.keys, workload.rounds) = (100, 3);
    workload.phases = vec![
        phase("insert", crate::workload::Mix { insert: 1.0, ..Default::default() }, 400),
        phase("fetch", crate::workload::Mix { get: 1.0, ..Default::default() }, 200),
    ];
    for engine in ["null", "memory-btree"] {
        let record = run_on(engine, workload.clone());
        assert_eq!(record.outcome, Outcome::Ok, "{engine}");
        assert!(record.phases.iter().all(|phase| phase.ops == phase.phase.ops), "{engine}");
    }
}
