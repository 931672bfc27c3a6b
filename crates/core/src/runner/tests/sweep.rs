//! Tests of what the sweep at the end of a trial reads: all rows in the first run, and with `sweep_once` a sample in later ones.

use super::*;

/// One of many, and enough that a sample leaves some out.
const KEYS: u64 = 5_000;

/// A fill alone, so that only the sweep reads anything.
fn filled() -> Workload {
    let mut workload = small("fill-random");
    workload.phases.truncate(1);
    (workload.keys, workload.sweep_once) = (KEYS, true);
    workload.phases[0].each_key = true;
    workload.phases[0].ops = 0;
    workload
}

fn run_number(repetition: u32, engine: &str, workload: Workload) -> Record {
    run_as(Trial { repetition, ..trial_of(engine, workload) })
}

fn note(record: &Record) -> Option<&str> {
    record.steps.iter().find(|step| step.name == StepKind::Sweep).unwrap().note.as_deref()
}

#[test]
fn later_runs_sweep_a_sample_and_their_records_say_so() {
    for engine in keeping_engines() {
        let run = |repetition: u32, sweep_once: bool| {
            let workload = Workload { sweep_once, ..filled() };
            let record = run_number(repetition, engine.name(), workload);
            assert_eq!(record.outcome, Outcome::Ok, "{}, run {repetition}", engine.name());
            record
        };
        assert_eq!(note(&run(1, true)), None, "{}: the first run sweeps all", engine.name());
        let sampled = run(2, true);
        let text = note(&sampled).unwrap();
        assert!(text.starts_with("1,000 of 5,000 keys, drawn at random"), "{}: {text}", engine.name());
        assert_eq!(note(&run(2, false)), None, "{}: each run sweeps all by default", engine.name());
    }
}

#[test]
fn rows_that_a_reopen_loses_are_found_by_the_first_sweep_and_by_a_sample() {
    for repetition in [1, 2] {
        let record = run_number(repetition, "mutant:loses-tail-on-reopen", filled());
        let Outcome::WrongAnswers { faults } = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(faults[0].starts_with("sweep by get at the end: get of key"), "{faults:?}");
    }
}

#[test]
fn a_lost_index_row_is_found_by_the_first_sweep() {
    let mut indexed = small("indexed-insert");
    indexed.phases.truncate(1);
    indexed.sweep_once = true;
    let record = run_number(1, "mutant:index-row-lost", indexed);
    let Outcome::WrongAnswers { faults } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(faults[0].starts_with("sweep of index "), "{faults:?}");
}

#[test]
fn the_seed_alone_determines_the_sample() {
    let found = |seed: u64| {
        let record = run_number(2, "mutant:loses-tail-on-reopen", Workload { seed, ..filled() });
        let Outcome::WrongAnswers { faults } = record.outcome else {
            panic!("seed {seed}: {:?}", record.outcome)
        };
        faults
    };
    assert_eq!(found(7), found(7), "seed 7");
    assert_ne!(found(7), found(8), "seeds 7 and 8");
}

#[test]
fn a_sample_does_not_replace_the_sweep_after_an_aborted_transaction() {
    let mut workload = small("quick");
    workload.phases.truncate(2);
    (workload.keys, workload.sweep_once) = (KEYS, true);
    let phase = &mut workload.phases[1];
    phase.mix = crate::workload::Mix { update: 1.0, ..Default::default() };
    phase.transaction = Some(crate::workload::Transaction::Aborted);
    let can = |engine: &&Engine| engine.capabilities() & abi::KV_CAN_LONG_TRANSACTION != 0;
    for engine in keeping_engines().iter().filter(can) {
        let record = run_number(2, engine.name(), workload.clone());
        assert_eq!((record.outcome.clone(), note(&record)), (Outcome::Ok, None), "{}", engine.name());
    }
}
