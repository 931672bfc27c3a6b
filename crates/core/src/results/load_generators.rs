//! Merges the records of several load generators of one trial.
//!
//! Counts and histograms are added bucket by bucket; no percentile is averaged. A phase lasts from the first start of a load
//! generator to the last end of one, on the common clock that its start was agreed on.

use super::load::LoadError;
use super::rounds::{add_check, add_kind, usage};
use super::{Arrivals, CallTimes, Cause, EndedBy, Outcome, PhaseRecord, Record, Staleness, Trial};
use kvdyno_measure::{Histogram, PhaseNoise, SeriesRow, Usage, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a load generator did in a phase. Times are relative to the common start of counting, on its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadGeneratorRecord {
    /// From 0.
    #[serde(rename = "rank")]
    pub load_generator: u32,
    /// Ops.
    pub ops: u64,
    /// The start of its first thread, nanoseconds.
    pub start_ns: i64,
    /// The end of its last thread, nanoseconds.
    pub end_ns: i64,
    /// The clock of the first load generator minus the clock of this one's machine, nanoseconds.
    pub clock_offset_ns: i64,
    /// The maximum error of that and of the start, nanoseconds.
    pub clock_error_ns: u64,
}

/// The window in which all of these load generators ran, as a share of the time from the first start to the last end; none for
/// fewer than two load generators.
pub fn shared_share(load_generators: &[LoadGeneratorRecord]) -> Option<f64> {
    let (first, last) = span(load_generators)?;
    let begin = load_generators.iter().map(|load_generator| load_generator.start_ns).max()?;
    let end = load_generators.iter().map(|load_generator| load_generator.end_ns).min()?;
    let whole = last.saturating_sub(first);
    let shared = end.saturating_sub(begin).max(0);
    (load_generators.len() > 1 && whole > 0).then(|| shared as f64 / whole as f64)
}

/// The first start and the last end.
fn span(load_generators: &[LoadGeneratorRecord]) -> Option<(i64, i64)> {
    let first = load_generators.iter().map(|load_generator| load_generator.start_ns).min()?;
    Some((first, load_generators.iter().map(|load_generator| load_generator.end_ns).max()?))
}

/// Why there is no record of a load generator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadGeneratorError {
    /// The load generator has not handed it in: why.
    #[error("{0}")]
    Lost(String),
    /// It was handed in, but is none.
    #[error("its record cannot be read: {0}")]
    Unreadable(#[from] LoadError),
}

/// A load generator's record, or why there is none.
pub type OfLoadGenerator = Result<Record, LoadGeneratorError>;

/// The record of a trial from those of its load generators, in their order; there is at least one.
pub fn merged(trial: &Trial, of_load_generators: Vec<OfLoadGenerator>) -> Record {
    let outcome = outcome(&of_load_generators);
    let first = of_load_generators.iter().find_map(|found| found.as_ref().ok());
    let Some(first) = first else {
        return Record::failed(trial.clone(), super::now_rfc3339(), outcome);
    };
    let records: Vec<&Record> = of_load_generators.iter().filter_map(|found| found.as_ref().ok()).collect();
    let mut whole = Record { trial: trial.clone(), outcome, phases: Vec::new(), ..first.clone() };
    whole.engine = records.iter().find_map(|record| record.engine.clone());
    whole.rss_peak_bytes = records.iter().map(|record| record.rss_peak_bytes).sum();
    whole.rss_before_open_bytes = records.iter().map(|record| record.rss_before_open_bytes).sum();
    whole.warnings = warnings(&records);
    // The load generator that came furthest has all phases.
    let longest = records.iter().max_by_key(|record| record.phases.len()).unwrap_or(&first);
    for phase in &longest.phases {
        let same =
            |other: &&PhaseRecord| (&other.phase.name, other.round) == (&phase.phase.name, phase.round);
        let found: Vec<(u32, Option<&PhaseRecord>)> = of_load_generators
            .iter()
            .zip(0..)
            .map(|(record, load_generator)| {
                (load_generator, record.as_ref().ok().and_then(|record| record.phases.iter().find(same)))
            })
            .collect();
        whole.phases.push(merged_phase(trial, &found, phase));
    }
    whole
}

/// The outcome of all load generators: wrong answers first, then the failure that is not the consequence of another one.
fn outcome(of_load_generators: &[OfLoadGenerator]) -> Outcome {
    let of = |load_generator: usize, text: &str| format!("load generator {load_generator}: {text}");
    let mut faults = Vec::new();
    let (mut failure, mut lost) = (None, None);
    for (load_generator, found) in of_load_generators.iter().enumerate() {
        match found.as_ref().map(|record| &record.outcome) {
            Ok(Outcome::Ok) => {}
            Ok(Outcome::WrongAnswers { faults: own }) => {
                faults.extend(own.iter().map(|fault| of(load_generator, fault)))
            }
            Ok(Outcome::Failed { cause: Cause::LoadGeneratorLost, text }) => {
                lost.get_or_insert(Outcome::Failed { cause: Cause::LoadGeneratorLost, text: text.clone() });
            }
            Ok(Outcome::Failed { cause, text }) => {
                failure.get_or_insert(Outcome::Failed { cause: *cause, text: of(load_generator, text) });
            }
            Ok(Outcome::Crashed { signal, stderr, suspects }) => {
                let signal = format!("{signal} in load generator {load_generator}");
                failure.get_or_insert(Outcome::Crashed {
                    signal,
                    stderr: stderr.clone(),
                    suspects: suspects.clone(),
                });
            }
            Err(error) => {
                let text = of(load_generator, &error.to_string());
                failure.get_or_insert(Outcome::Failed { cause: Cause::LoadGeneratorLost, text });
            }
        }
    }
    if !faults.is_empty() {
        return Outcome::WrongAnswers { faults };
    }
    failure.or(lost).unwrap_or(Outcome::Ok)
}

/// The warnings of all load generators, each once.
fn warnings(records: &[&Record]) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    for warning in records.iter().flat_map(|record| &record.warnings) {
        if !all.contains(warning) {
            all.push(warning.clone());
        }
    }
    all
}

/// A phase in all load generators; `any` is one of them.
fn merged_phase(trial: &Trial, found: &[(u32, Option<&PhaseRecord>)], any: &PhaseRecord) -> PhaseRecord {
    let all: Vec<&PhaseRecord> = found.iter().filter_map(|(_, phase)| *phase).collect();
    let planned = trial.workload.phases.iter().find(|phase| phase.name == any.phase.name);
    let base = all.first().copied().unwrap_or(any);
    let mut whole = PhaseRecord {
        phase: planned.unwrap_or(&base.phase).clone(),
        kinds: Vec::new(),
        threads: Vec::new(),
        series: Vec::new(),
        load_generators: all.iter().flat_map(|phase| phase.load_generators.iter().copied()).collect(),
        ..base.clone()
    };
    whole.load_generators.sort_by_key(|load_generator| load_generator.load_generator);
    whole.not_run = not_run(found);
    whole.ended_by = ended_by(&all, whole.not_run.is_some());
    let sum =
        |of: &dyn Fn(&PhaseRecord) -> u64| all.iter().fold(0_u64, |sum, phase| sum.saturating_add(of(phase)));
    whole.ops = sum(&|phase| phase.ops);
    whole.logical_bytes_written = sum(&|phase| phase.logical_bytes_written);
    whole.logical_bytes_read = sum(&|phase| phase.logical_bytes_read);
    whole.keys_after =
        all.iter().map(|phase| phase.keys_after).sum::<Option<u64>>().filter(|_| all.len() == found.len());
    let longest = all.iter().map(|phase| phase.elapsed_ns).max().unwrap_or(0);
    let span_ns = span(&whole.load_generators).map(|(first, last)| last.saturating_sub(first).max(0) as u64);
    whole.elapsed_ns = span_ns.filter(|_| whole.load_generators.len() == all.len()).unwrap_or(longest);
    for phase in &all {
        phase.kinds.iter().for_each(|kind| add_kind(&mut whole.kinds, kind));
        let next = whole.threads.len() as u32;
        whole.threads.extend(
            phase
                .threads
                .iter()
                .zip(next..)
                .map(|(thread, number)| super::ThreadRecord { thread: number, ..thread.clone() }),
        );
        for emulated in &phase.emulated {
            if !whole.emulated.contains(emulated) {
                whole.emulated.push(emulated.clone());
            }
        }
    }
    whole.buffers_bytes = all.iter().map(|phase| phase.buffers_bytes).sum();
    whole.series = series(&all);
    // Load generators begin at slightly different moments; the last row ends with the last load generator.
    if let Some(last) = whole.series.last_mut() {
        last.interval_ns += whole.elapsed_ns.saturating_sub(last.at_ns);
        last.at_ns = last.at_ns.max(whole.elapsed_ns);
    }
    for phase in all.iter().skip(1) {
        whole.usage = together(&whole.usage, &phase.usage);
        whole.watcher = whole.watcher.zip(phase.watcher).map(|(one, other)| together(&one, &other));
        whole.noise = whole.noise.zip(phase.noise).map(|(one, other)| worst(one, other));
        whole.harness = whole.harness.zip(phase.harness).map(|(mut one, other)| {
            one.add(other);
            one
        });
        add_check(&mut whole.check, &phase.check);
    }
    // No load generator reads a key of another one, so each knows how old its reads were.
    whole.staleness = Staleness::of_all(all.iter().map(|phase| phase.staleness.as_ref()));
    whole.arrivals = Arrivals::of_all(all.iter().map(|phase| phase.arrivals.as_ref()));
    whole.call_times = CallTimes::of_all(all.iter().filter_map(|phase| phase.call_times.clone()));
    let calls: f64 = all
        .iter()
        .filter(|phase| phase.batch_mean > 0.0)
        .map(|phase| phase.ops as f64 / phase.batch_mean)
        .sum();
    whole.batch_mean = if calls > 0.0 { whole.ops as f64 / calls } else { 0.0 };
    let busy = |phase: &PhaseRecord| phase.threads.iter().map(|thread| thread.elapsed_ns as f64).sum::<f64>();
    let (all_busy, outside) = all.iter().fold((0.0, 0.0), |(time, outside), phase| {
        (time + busy(phase), outside + busy(phase) * phase.harness_share)
    });
    whole.harness_share = if all_busy > 0.0 { (outside / all_busy).clamp(0.0, 1.0) } else { 0.0 };
    whole
}

/// Why the phase was not run or was cut short in any load generator.
fn not_run(found: &[(u32, Option<&PhaseRecord>)]) -> Option<String> {
    let own: Vec<Option<&str>> =
        found.iter().filter_map(|(_, phase)| *phase).map(|phase| phase.not_run.as_deref()).collect();
    // All were refused for the same reason.
    if own.len() == found.len() && own.iter().all(|reason| *reason == own[0]) {
        return own[0].map(String::from);
    }
    if let Some((load_generator, _)) = found.iter().find(|(_, phase)| phase.is_none()) {
        return Some(format!("cut short: load generator {load_generator} has no record of it"));
    }
    let with_reason = found
        .iter()
        .filter_map(|(load_generator, phase)| Some((load_generator, phase.as_ref()?.not_run.as_deref()?)));
    // That another load generator was lost is a consequence.
    let is_cause = |reason: &str| !reason.starts_with("cut short: load generator ");
    let all: Vec<(&u32, &str)> = with_reason.collect();
    let cause = all.iter().find(|(_, reason)| is_cause(reason)).or(all.first())?;
    let (load_generator, reason) = cause;
    Some(if is_cause(reason) {
        format!("load generator {load_generator}: {reason}")
    } else {
        reason.to_string()
    })
}

fn ended_by(all: &[&PhaseRecord], was_cut: bool) -> EndedBy {
    let any = |by: EndedBy| all.iter().any(|phase| phase.ended_by == by);
    match () {
        () if was_cut || any(EndedBy::Failure) => EndedBy::Failure,
        () if any(EndedBy::Keys) => EndedBy::Keys,
        () if all.iter().all(|phase| phase.ended_by == EndedBy::Count) => EndedBy::Count,
        () => EndedBy::Time,
    }
}

/// The rows of all load generators, second by second: they begin at the same moment. The last one may be shorter in some load
/// generators.
fn series(all: &[&PhaseRecord]) -> Vec<SeriesRow> {
    let rows = all.iter().map(|phase| phase.series.len()).max().unwrap_or(0);
    let row = |place: usize| {
        let own: Vec<&SeriesRow> = all.iter().filter_map(|phase| phase.series.get(place)).collect();
        let kinds = together_by_kind(&own, |row| &row.kinds);
        let mut times = Histogram::empty();
        kinds.iter().for_each(|(_, histogram)| times.merge(histogram));
        let sum = |of: fn(&SeriesRow) -> u64| own.iter().fold(0_u64, |sum, row| sum.saturating_add(of(row)));
        let known = |of: fn(&SeriesRow) -> Option<u64>| own.iter().map(|row| of(row)).sum::<Option<u64>>();
        SeriesRow {
            at_ns: own.iter().map(|row| row.at_ns).max().unwrap_or(0),
            interval_ns: own.iter().map(|row| row.interval_ns).max().unwrap_or(0),
            ops: sum(|row| row.ops),
            misses: sum(|row| row.misses),
            p50_ns: times.quantile_if_enough(1, 2),
            p99_ns: times.quantile_if_enough(99, 100),
            max_ns: times.max_ns(),
            kinds,
            wait: together_by_kind(&own, |row| &row.wait),
            response: together_by_kind(&own, |row| &row.response),
            rss_bytes: known(|row| row.rss_bytes),
            rss_anonymous_bytes: known(|row| row.rss_anonymous_bytes),
            open_files: known(|row| row.open_files),
            cpu_ns: known(|row| row.cpu_ns),
            written_bytes: known(|row| row.written_bytes),
            disk_allocated_bytes: None,
        }
    };
    let mut all: Vec<SeriesRow> = (0..rows).map(row).collect();
    // A load generator whose last row is longer than a second ends within the next row of another.
    for place in 1..all.len() {
        let before = all[place - 1].at_ns;
        all[place].at_ns = all[place].at_ns.max(before);
    }
    all
}

/// The histograms of a kind of several rows as one.
fn together_by_kind(
    rows: &[&SeriesRow],
    of: fn(&SeriesRow) -> &Vec<(String, Histogram)>,
) -> Vec<(String, Histogram)> {
    let mut kinds: Vec<(String, Histogram)> = Vec::new();
    for (name, histogram) in rows.iter().flat_map(|row| of(row)) {
        match kinds.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => sum.merge(histogram),
            None => kinds.push((name.clone(), histogram.clone())),
        }
    }
    kinds.iter_mut().for_each(|(_, histogram)| *histogram = histogram.packed());
    kinds
}

/// The use of two processes at the same time.
fn together(one: &Usage, other: &Usage) -> Usage {
    let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
    Usage {
        rss_bytes: sum(one.rss_bytes, other.rss_bytes),
        rss_anonymous_bytes: sum(one.rss_anonymous_bytes, other.rss_anonymous_bytes),
        rss_file_bytes: sum(one.rss_file_bytes, other.rss_file_bytes),
        rss_peak_bytes: sum(one.rss_peak_bytes, other.rss_peak_bytes),
        vm_peak_bytes: sum(one.vm_peak_bytes, other.vm_peak_bytes),
        ..usage(one, other)
    }
}

/// The larger of each share: a phase is as disturbed as its most disturbed load generator.
fn worst(one: PhaseNoise, other: PhaseNoise) -> PhaseNoise {
    let most = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (known, None) | (None, known) => known,
    };
    PhaseNoise {
        steal_share: most(one.steal_share, other.steal_share),
        run_delay_share: most(one.run_delay_share, other.run_delay_share),
        other_cpu_share: most(one.other_cpu_share, other.other_cpu_share),
        // Those of several machines have no pace in common.
        pace_before: None,
        pace_after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{fixture, sane_record};
    use proptest::prelude::*;

    fn first() -> Record {
        fixture::records().into_iter().find(|record| record.trial.engine == "lmdb").unwrap()
    }

    /// The record as one of a load generator whose phases took these nanoseconds.
    fn of_load_generator(load_generator: u32, span: (i64, i64)) -> Record {
        let mut record = first();
        for phase in &mut record.phases {
            let ops = phase.ops;
            let (start_ns, end_ns) = span;
            phase.load_generators = vec![LoadGeneratorRecord {
                load_generator,
                ops,
                start_ns,
                end_ns,
                clock_offset_ns: 5,
                clock_error_ns: 9,
            }];
        }
        record
    }

    #[test]
    fn load_generators_add_up_and_the_time_is_from_the_first_start_to_the_last_end() {
        let one = first();
        let span = (1_000, 4_000_001_000);
        let all = vec![
            Ok(of_load_generator(0, span)),
            Ok(of_load_generator(1, (3_000, 4_000_000_000))),
            Ok(of_load_generator(2, span)),
        ];
        let whole = merged(&one.trial, all);
        assert_eq!((&whole.outcome, &whole.trial), (&one.outcome, &one.trial));
        for (phase, own) in whole.phases.iter().zip(&one.phases) {
            assert_eq!((phase.ops, phase.threads.len()), (3 * own.ops, 3 * own.threads.len()));
            let numbers: Vec<u32> = phase.threads.iter().map(|thread| thread.thread).collect();
            assert_eq!(numbers, Vec::from_iter(0..numbers.len() as u32));
            assert_eq!(phase.elapsed_ns, 4_000_000_000);
            assert_eq!(
                phase.series.last().map(|row| row.at_ns),
                Some(phase.elapsed_ns),
                "rows end with the phase"
            );
            assert_eq!(
                phase
                    .load_generators
                    .iter()
                    .map(|load_generator| load_generator.load_generator)
                    .collect::<Vec<_>>(),
                [0, 1, 2]
            );
            assert!(shared_share(&phase.load_generators).is_some_and(|share| (0.99..1.0).contains(&share)));
            assert_eq!(phase.check.values, 3 * own.check.values);
            assert_eq!(phase.keys_after, own.keys_after.map(|keys| 3 * keys));
            assert!((phase.batch_mean - own.batch_mean).abs() < 1e-9);
            assert!((phase.harness_share - own.harness_share).abs() < 1e-9);
        }
        assert_eq!(sane_record(&whole), Vec::<String>::new());
    }

    #[test]
    fn one_load_generator_is_its_own_record() {
        let one = first();
        let whole = merged(&one.trial, vec![Ok(one.clone())]);
        // Quantiles of rows are computed again; the fixture has none.
        let of = |record: &Record| {
            let mut phases = record.phases.clone();
            let rows = phases.iter_mut().flat_map(|phase| &mut phase.series);
            rows.for_each(|row| {
                (row.p50_ns, row.p99_ns, row.max_ns, row.disk_allocated_bytes) = (None, None, None, None)
            });
            phases
        };
        assert_eq!(of(&whole), of(&one));
    }

    #[test]
    fn a_failure_is_that_of_the_load_generator_that_caused_it() {
        let trial = first().trial;
        let failed = |cause, text: &str| Outcome::Failed { cause, text: text.into() };
        let with = |outcome: &Outcome, keep: usize| {
            let mut record = of_load_generator(0, (0, 1_000));
            record.outcome = outcome.clone();
            record.phases.truncate(keep);
            record
        };
        let lost = failed(Cause::LoadGeneratorLost, "load generator 1: its trial's process has ended");
        let crashed = Outcome::Crashed { signal: "SIGKILL".into(), stderr: vec![], suspects: None };
        let mut cut = with(&lost, 2);
        cut.phases[1].not_run = Some("cut short: load generator 1: its trial's process has ended".into());
        let whole = merged(&trial, vec![Ok(cut), Ok(with(&crashed, 1))]);
        assert_eq!(
            whole.outcome,
            Outcome::Crashed { signal: "SIGKILL in load generator 1".into(), stderr: vec![], suspects: None }
        );
        assert_eq!(whole.phases[0].not_run, None);
        assert_eq!(
            whole.phases[1].not_run.as_deref(),
            Some("cut short: load generator 1 has no record of it")
        );
        assert_eq!(whole.phases[1].ended_by, EndedBy::Failure);
        let gone = merged(
            &trial,
            vec![Ok(with(&lost, 1)), Err(LoadGeneratorError::Lost("its run has ended".into()))],
        );
        assert_eq!(gone.outcome, failed(Cause::LoadGeneratorLost, "load generator 1: its run has ended"));
        let full = failed(Cause::NoSpace, "put: full");
        let wrong = Outcome::WrongAnswers { faults: vec!["key 3".into()] };
        let worst = merged(&trial, vec![Ok(with(&full, 1)), Ok(with(&wrong, 1))]);
        assert_eq!(worst.outcome, Outcome::WrongAnswers { faults: vec!["load generator 1: key 3".into()] });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// However values are spread over load generators, the merged histograms are those of all values.
        #[test]
        fn any_partition_of_the_times_gives_the_same_histograms(
            times in proptest::collection::vec((0_usize..4, 0_usize..3, 1_u64..1 << 40), 1..300),
        ) {
            let trial = first().trial;
            let record = |keep: &dyn Fn(usize) -> bool| {
                let mut record = first();
                record.phases.truncate(1);
                let phase = &mut record.phases[0];
                let mut total = Histogram::new();
                let mut rows = vec![Histogram::new(), Histogram::new(), Histogram::new()];
                for (_, row, ns) in times.iter().filter(|(load_generator, _, _)| keep(*load_generator)) {
                    total.record(*ns);
                    rows[*row].record(*ns);
                }
                (phase.ops, phase.kinds[0].ops) = (total.count(), total.count());
                phase.kinds[0].service_ns = total;
                let name = phase.kinds[0].kind.clone();
                phase.series = rows
                    .into_iter()
                    .zip(1..)
                    .map(|(times, at)| SeriesRow {
                        at_ns: at * 1_000_000_000,
                        interval_ns: 1_000_000_000,
                        ops: times.count(),
                        p50_ns: times.quantile_if_enough(1, 2),
                        p99_ns: times.quantile_if_enough(99, 100),
                        max_ns: times.max_ns(),
                        kinds: vec![(name.to_string(), times)],
                        ..SeriesRow::default()
                    })
                    .collect();
                record
            };
            let whole = record(&|_| true);
            let parts = (0..4).map(|load_generator| Ok(record(&|own| own == load_generator))).collect();
            let merged = merged(&trial, parts);
            let (found, expected) = (&merged.phases[0], &whole.phases[0]);
            prop_assert_eq!(found.ops, expected.ops);
            prop_assert_eq!(&found.kinds[0].service_ns, &expected.kinds[0].service_ns);
            for (row, other) in found.series.iter().zip(&expected.series) {
                prop_assert_eq!((row.ops, row.p50_ns, row.p99_ns, row.max_ns), (other.ops, other.p50_ns, other.p99_ns, other.max_ns));
                prop_assert_eq!(&row.kinds, &other.kinds);
            }
        }
    }
}
