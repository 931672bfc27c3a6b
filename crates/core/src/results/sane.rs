//! Consistency rules for the records of all engines: sums agree, quantiles ascend, shares are between 0 and 1.
//!
//! Older tools printed averages below their medians and rows shifted by a column; these rules detect such records.

use super::{KindRecord, PhaseRecord, Record, Staleness, ThreadRecord};
use kvdyno_measure::{Histogram, SeriesRow, Stall};
use std::collections::BTreeMap;

/// The tolerance for rounding and calibration of the clock when service times are compared with thread times.
const CLOCK_TOLERANCE: f64 = 1.05;

/// Contradictions in a record, one sentence each that begins with the phase; empty if there are none.
pub fn sane_record(record: &Record) -> Vec<String> {
    let of_phase = |phase: &PhaseRecord| {
        let name = phase.phase.name.clone();
        sane(phase).into_iter().map(move |violation| format!("{name}: {violation}"))
    };
    record.phases.iter().flat_map(of_phase).collect()
}

/// Contradictions in a phase, one sentence each; empty if there are none.
pub(crate) fn sane(phase: &PhaseRecord) -> Vec<String> {
    let mut violations = Vec::new();
    check_sums(phase, &mut violations);
    for kind in &phase.kinds {
        check_kind(kind, &mut violations);
    }
    for thread in &phase.threads {
        check_thread(thread, &mut violations);
    }
    check_series(phase, &mut violations);
    check_stalls(phase, &mut violations);
    check_times(phase, &mut violations);
    check_shares(phase, &mut violations);
    if let Some(staleness) = &phase.staleness {
        check_staleness(staleness, &mut violations);
    }
    violations
}

/// Adds the sentence unless the claim is true.
fn expect(claim: bool, violations: &mut Vec<String>, sentence: impl FnOnce() -> String) {
    if !claim {
        violations.push(sentence());
    }
}

/// A saturating sum: a hostile record must not cause a panic.
fn total(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}

fn check_sums(phase: &PhaseRecord, violations: &mut Vec<String>) {
    let ops = phase.ops;
    let sums = [
        ("kinds", total(phase.kinds.iter().map(|kind| kind.ops)), ops > 0),
        ("threads", total(phase.threads.iter().map(|thread| thread.ops)), ops > 0),
        ("series rows", total(phase.series.iter().map(|row| row.ops)), !phase.series.is_empty()),
    ];
    for (parts, sum, present) in sums {
        expect(sum == ops || !present, violations, || {
            format!("the {parts} have {sum} ops in total, the phase has {ops}")
        });
    }
    let misses = total(phase.kinds.iter().map(|kind| kind.misses));
    let series_misses = total(phase.series.iter().map(|row| row.misses));
    expect(phase.series.is_empty() || misses == series_misses, violations, || {
        format!("the kinds have {misses} misses in total, the series rows {series_misses}")
    });
}

fn check_staleness(found: &Staleness, violations: &mut Vec<String>) {
    let Staleness { reads, stale, missed, .. } = *found;
    expect(stale <= reads, violations, || format!("{stale} stale reads of {reads}"));
    expect(missed <= stale, violations, || format!("{missed} missed of {stale} stale reads"));
    for (what, ages) in [("versions", &found.versions), ("times", &found.age_ns)] {
        let count = ages.count();
        expect(count <= stale, violations, || format!("{count} ages in {what} of {stale} stale reads"));
        check_histogram(what, ages, violations);
    }
    expect(found.versions.min_ns() != Some(0), violations, || "a stale read of the newest version".into());
}

fn check_kind(kind: &KindRecord, violations: &mut Vec<String>) {
    let name = kind.kind.as_str();
    let units = kind.service_ns.count();
    expect(units <= kind.ops, violations, || format!("{name}: {units} times for {} ops", kind.ops));
    expect(units > 0 || kind.ops == 0, violations, || format!("{name}: {} ops without a time", kind.ops));
    expect(kind.evicted <= kind.misses, violations, || {
        format!("{name}: {} evicted of {} misses", kind.evicted, kind.misses)
    });
    expect(kind.misses <= kind.ops, violations, || {
        format!("{name}: {} misses in {} ops", kind.misses, kind.ops)
    });
    check_histogram(name, &kind.service_ns, violations);
    for times in [&kind.wait_ns, &kind.response_ns].into_iter().flatten() {
        check_histogram(name, times, violations);
        // Those that still waited at the end have no service time.
        expect(times.count() >= units, violations, || {
            format!("{name}: {} of {units} requests have arrived", times.count())
        });
    }
}

/// The quantiles of a histogram ascend, and its mean is between minimum and maximum.
fn check_histogram(name: &str, histogram: &Histogram, violations: &mut Vec<String>) {
    let quantile = |numerator, denominator| histogram.quantile(numerator, denominator);
    let ladder = [
        ("min", histogram.min_ns()),
        ("p50", quantile(1, 2)),
        ("p99", quantile(99, 100)),
        ("p99.9", quantile(999, 1000)),
        ("max", histogram.max_ns()),
    ];
    check_ladder(name, &ladder, violations);
    if let (Some(mean), Some(min), Some(max)) = (histogram.mean_ns(), histogram.min_ns(), histogram.max_ns())
    {
        let within = mean.is_finite() && mean >= min as f64 - 1.0 && mean <= max as f64 + 1.0;
        expect(within, violations, || format!("{name}: mean {mean} ns is not between {min} and {max} ns"));
    }
}

fn check_ladder(name: &str, ladder: &[(&str, Option<u64>)], violations: &mut Vec<String>) {
    let known: Vec<(&str, u64)> = ladder.iter().filter_map(|(step, ns)| Some((*step, (*ns)?))).collect();
    for pair in known.windows(2) {
        let ((lower, lower_ns), (upper, upper_ns)) = (pair[0], pair[1]);
        expect(lower_ns <= upper_ns, violations, || {
            format!("{name}: {lower} is {lower_ns} ns and {upper} is {upper_ns} ns")
        });
    }
}

fn check_thread(thread: &ThreadRecord, violations: &mut Vec<String>) {
    let name = format!("thread {}", thread.thread);
    check_ladder(
        &name,
        &[("p50", thread.p50_ns), ("p99", thread.p99_ns), ("max", thread.max_ns)],
        violations,
    );
    let most = thread.elapsed_ns as f64 * CLOCK_TOLERANCE;
    expect(thread.inside_ns as f64 <= most, violations, || {
        format!("{name}: {} ns inside calls of {} ns in total", thread.inside_ns, thread.elapsed_ns)
    });
}

fn check_series(phase: &PhaseRecord, violations: &mut Vec<String>) {
    let mut end_before = 0;
    let mut units: BTreeMap<&str, u64> = BTreeMap::new();
    for (index, row) in phase.series.iter().enumerate() {
        let name = format!("series row {index}");
        check_series_row(&name, row, violations);
        expect(row.at_ns >= end_before, violations, || {
            format!("{name} ends at {} ns, before the previous row", row.at_ns)
        });
        end_before = row.at_ns;
        for (kind, histogram) in &row.kinds {
            let sum = units.entry(kind).or_default();
            *sum = sum.saturating_add(histogram.count());
        }
    }
    for kind in &phase.kinds {
        let (in_series, in_all) = (units.get(kind.kind.as_str()).copied(), kind.service_ns.count());
        expect(in_series.is_none_or(|units| units == in_all), violations, || {
            format!(
                "{}: {} times in the series rows, {in_all} in total",
                kind.kind,
                in_series.unwrap_or_default()
            )
        });
    }
}

/// Stalls are in the order of their lengths, and no look is counted twice.
fn check_stalls(phase: &PhaseRecord, violations: &mut Vec<String>) {
    let is_longer = |pair: &[Stall]| pair[0].length_ns >= pair[1].length_ns;
    expect(phase.stalls.windows(2).all(is_longer), violations, || {
        "the stalls are not in the order of their lengths".to_string()
    });
    for (stall, view) in phase.stalls.iter().filter_map(|stall| Some((stall, stall.seen.as_ref()?))) {
        let states = view.running.saturating_add(view.blocked);
        expect(states <= view.looks, violations, || {
            format!("a stall at {} ns has {states} states in {} looks", stall.at_ns, view.looks)
        });
    }
}

fn check_series_row(name: &str, row: &SeriesRow, violations: &mut Vec<String>) {
    check_ladder(name, &[("p50", row.p50_ns), ("p99", row.p99_ns), ("max", row.max_ns)], violations);
    expect(row.misses <= row.ops, violations, || format!("{name}: {} misses in {} ops", row.misses, row.ops));
}

/// Ops take time, and in a closed loop the ops of a thread cannot take longer than the thread runs.
fn check_times(phase: &PhaseRecord, violations: &mut Vec<String>) {
    expect(phase.ops == 0 || phase.elapsed_ns > 0, violations, || format!("{} ops in no time", phase.ops));
    let service_ns: f64 = phase.kinds.iter().map(|kind| kind.service_ns.sum_ns() as f64).sum();
    let thread_ns: f64 = phase.threads.iter().map(|thread| thread.elapsed_ns as f64).sum();
    expect(phase.threads.is_empty() || service_ns <= thread_ns * CLOCK_TOLERANCE, violations, || {
        format!("ops took {service_ns:.0} ns in threads that ran for {thread_ns:.0} ns")
    });
}

fn check_shares(phase: &PhaseRecord, violations: &mut Vec<String>) {
    let share = phase.harness_share;
    expect((0.0..=1.0).contains(&share), violations, || {
        format!("the harness's share is {share}, not within 0 to 1")
    });
    let thread_ns: f64 = phase.threads.iter().map(|thread| thread.elapsed_ns as f64).sum();
    if let Some(times) = phase.harness {
        let sum_ns = times.generation_ns as f64 + times.checks_ns as f64 + times.boundary_ns as f64;
        expect(sum_ns <= thread_ns * CLOCK_TOLERANCE, violations, || {
            format!("the harness took {sum_ns:.0} ns of threads that ran for {thread_ns:.0} ns")
        });
    }
    if let Some(times) = &phase.call_times {
        let outside = times.unaccounted_ns.saturating_add(times.waited_ns);
        expect(outside <= times.called_ns.saturating_add(times.calls), violations, || {
            format!("{outside} ns of calls of {} ns are not in any op's time", times.called_ns)
        });
    }
    let batch = phase.batch_mean;
    expect(phase.ops == 0 || (batch.is_finite() && batch > 0.0), violations, || {
        format!("{batch} ops per call on average")
    });
    expect(phase.check.faults == 0 || !phase.check.first_faults.is_empty(), violations, || {
        format!("{} wrong answers were found and none is recorded", phase.check.faults)
    });
    expect(phase.durability_effective.is_some() || phase.ops == 0, violations, || {
        "ops were run at an unknown durability level".to_string()
    });
}

#[cfg(test)]
mod tests {
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
            ("unknown durability", |phase| phase.durability_effective = None),
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
}
