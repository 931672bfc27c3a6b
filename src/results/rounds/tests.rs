//! Tests of merged rounds: sums, peaks, last states, and missing rounds.

use crate::results::fixture;
use crate::results::summary::{RunState, Summary};
use crate::results::{PhaseRecord, Record};
use std::sync::Arc;

/// The first record of an engine, with its phase `fill` in several rounds, each with its number in its figures.
fn in_rounds(planned: u32, ran: u32) -> Record {
    let mut record = fixture::records().into_iter().find(|record| record.trial.engine == "lmdb").unwrap();
    let workload = Arc::make_mut(&mut record.trial.workload);
    workload.rounds = planned;
    workload.phases[0].each_round = true;
    let fill = record.phases[0].clone();
    let round = |number: u32| {
        let mut round = PhaseRecord { round: Some(number), ..fill.clone() };
        round.phase.each_round = true;
        round.elapsed_ns = 1_000 * u64::from(number);
        round.keys_after = Some(100 * u64::from(number));
        round.usage.rss_bytes = Some(10 - u64::from(number));
        round.usage.major_faults = Some(u64::from(number));
        round.batch_mean = [64.0, 32.0][number as usize % 2];
        round.check.faults = 0;
        round
    };
    record.phases.remove(0);
    record.phases.splice(0..0, (1..=ran).map(round));
    record
}

#[test]
fn sums_peaks_and_last_states() {
    let record = in_rounds(3, 3);
    let one = record.phases[0].clone();
    let whole = record.whole_phase("fill").unwrap();
    assert_eq!((whole.ops, whole.elapsed_ns, whole.keys_after), (3 * one.ops, 6_000, Some(300)));
    assert_eq!((whole.usage.rss_bytes, whole.usage.major_faults), (Some(9), Some(6)));
    assert_eq!(whole.kinds[0].service_ns.count(), 3 * one.kinds[0].service_ns.count());
    assert_eq!(whole.kinds[0].service_ns.max_ns(), one.kinds[0].service_ns.max_ns());
    assert_eq!(whole.threads[0].ops, 3 * one.threads[0].ops);
    assert_eq!((whole.threads[0].p50_ns, whole.threads[0].max_ns), (None, one.threads[0].max_ns));
    assert_eq!(whole.check.values, 3 * one.check.values);
    assert!(whole.series.is_empty() && !one.series.is_empty());
    // Two rounds with 32 ops per call and one with 64: 3 units of ops in 2.5 units of calls.
    assert!((whole.batch_mean - 3.0 / (2.0 / 32.0 + 1.0 / 64.0)).abs() < 1e-9, "{}", whole.batch_mean);
    assert_eq!(whole.not_run, None);
    // A figure that is unknown in one round is unknown for all.
    let mut record = record;
    record.phases[1].usage.major_faults = None;
    assert_eq!(record.whole_phase("fill").unwrap().usage.major_faults, None);
}

#[test]
fn a_phase_without_rounds_is_unchanged() {
    let record = in_rounds(3, 3);
    let read = record.phases.iter().find(|phase| phase.phase.name == "read").unwrap();
    assert_eq!(record.whole_phase("read").as_deref(), Some(read));
    assert_eq!(record.whole_phase("nothing"), None);
    assert_eq!(
        record.rounds_of("fill").map(|phase| phase.round).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
}

#[test]
fn missing_rounds_cost_the_phase_its_figures() {
    let record = in_rounds(3, 2);
    let whole = record.whole_phase("fill").unwrap();
    assert_eq!(whole.not_run.as_deref(), Some("ended after 2 of 3 rounds"));
    let mut run = fixture::run();
    run.plan.trials.retain(|trial| trial.id == record.trial.id);
    let state = |record: Record| {
        let mut run = run.clone();
        run.plan.trials[0] = record.trial.clone();
        let summary = Summary::new(&run, vec![record]);
        let phase = &summary.phases[0];
        let cell = phase.groups.iter().flat_map(|group| &group.cells).chain(&phase.unranked).next().unwrap();
        (phase.rounds, cell.runs[0].clone())
    };
    let (rounds, failed) = state(record);
    assert_eq!(rounds, Some(3));
    assert_eq!(failed.state, RunState::Failed { cause: "ended after 2 of 3 rounds".to_string() });
    let (_, counted) = state(in_rounds(3, 3));
    assert_eq!((counted.state, counted.elapsed_ns), (RunState::Counted, Some(6_000)));
}
