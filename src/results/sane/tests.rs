//! Tests of the consistency rules: a correct record passes, and each contradiction is reported.

use super::*;
use crate::results::fixture;

fn phase() -> PhaseRecord {
    let trial = fixture::run().plan.trials.into_iter().find(|trial| trial.engine == "lmdb").unwrap();
    fixture::record(trial).phases.remove(2)
}

#[test]
fn records_of_the_fixture_are_sane() {
    for record in fixture::records() {
        assert_eq!(sane_record(&record), Vec::<String>::new(), "trial {}", record.trial.id);
    }
}

#[test]
fn each_contradiction_is_reported() {
    type Lie = fn(&mut PhaseRecord);
    let lies: &[(&str, Lie)] = &[
        ("the kinds have", |phase| phase.kinds[0].ops += 1),
        ("the threads have", |phase| phase.threads[1].ops -= 1),
        ("the series rows have", |phase| phase.series[0].ops += 1),
        ("misses in total", |phase| phase.kinds[0].misses = 1),
        ("times for", |phase| phase.kinds[0].service_ns.record(2_000)),
        ("without a time", |phase| phase.kinds[0].service_ns = Histogram::empty()),
        ("misses in", |phase| phase.kinds[0].misses = phase.kinds[0].ops + 1),
        ("p50 is", |phase| phase.threads[0].p50_ns = Some(u64::MAX)),
        ("inside calls", |phase| phase.threads[0].inside_ns = phase.threads[0].elapsed_ns * 2),
        ("before the previous row", |phase| {
            let row = SeriesRow { at_ns: 1, ..SeriesRow::default() };
            phase.series.push(row);
        }),
        ("times in the series", |phase| phase.series[0].kinds[0].1.record(5)),
        ("in no time", |phase| phase.elapsed_ns = 0),
        ("threads that ran", |phase| phase.threads.iter_mut().for_each(|thread| thread.elapsed_ns = 1)),
        ("harness's share", |phase| phase.harness_share = 1.5),
        ("harness's share", |phase| phase.harness_share = f64::NAN),
        ("ops per call", |phase| phase.batch_mean = 0.0),
        ("none is recorded", |phase| phase.check.faults = 3),
        ("unknown durability", |phase| phase.durability_in_force = None),
    ];
    for (sentence, lie) in lies {
        let mut phase = phase();
        lie(&mut phase);
        let found = sane(&phase);
        assert!(
            found.iter().any(|violation| violation.contains(sentence)),
            "{sentence:?} is not in {found:?}"
        );
    }
}

#[test]
fn numbers_at_the_end_of_their_range_do_not_panic() {
    let mut phase = phase();
    phase.ops = u64::MAX;
    for kind in &mut phase.kinds {
        (kind.ops, kind.misses) = (u64::MAX, u64::MAX);
    }
    for thread in &mut phase.threads {
        (thread.ops, thread.elapsed_ns, thread.inside_ns) = (u64::MAX, u64::MAX, u64::MAX);
    }
    phase.series[0].ops = u64::MAX;
    assert!(!sane(&phase).is_empty());
}
