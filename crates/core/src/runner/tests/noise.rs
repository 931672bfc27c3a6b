//! Tests of rows per second, run delay, and seeds in records.

use super::{run_on, run_seeded, small};
use crate::results::{Outcome, PhaseRecord, Record};
use crate::workload::Workload;
use kvdyno_measure::ThreadTimes;

const SECOND_NS: u64 = 1_000_000_000;

fn timed(warmup_seconds: f64, seconds: f64, threads: u32) -> Workload {
    let mut workload = small("read-random");
    let phase = workload.phases.last_mut().unwrap();
    (phase.warmup_seconds, phase.seconds, phase.ops, phase.threads) = (warmup_seconds, seconds, 0, threads);
    workload
}

fn last(record: &Record) -> &PhaseRecord {
    assert_eq!(record.outcome, Outcome::Ok);
    record.phases.last().unwrap()
}

/// Even on a busy machine, a row is a full second after the warm-up, and the last one ends with the phase.
#[test]
fn rows_are_full_seconds_after_the_warm_up() {
    for threads in [1, 3] {
        let record = run_on("memory-map", timed(0.3, 1.2, threads));
        let phase = last(&record);
        let rows = &phase.series;
        let (end, whole) = rows.split_last().unwrap();
        for (place, row) in whole.iter().enumerate() {
            assert_eq!((row.at_ns, row.interval_ns), ((place as u64 + 1) * SECOND_NS, SECOND_NS));
        }
        assert!(!whole.is_empty(), "{rows:?}");
        assert_eq!(end.at_ns - end.interval_ns, whole.len() as u64 * SECOND_NS);
        assert!(end.at_ns >= 1_200_000_000 && end.interval_ns <= SECOND_NS + SECOND_NS / 20, "{end:?}");
        assert_eq!(rows.iter().map(|row| row.ops).sum::<u64>(), phase.ops);
        assert!(crate::results::sane(phase).is_empty(), "{:?}", crate::results::sane(phase));
        // The ends of threads and of rows use the same clock, from the start of counting.
        assert!(phase.elapsed_ns <= end.at_ns + SECOND_NS / 1_000, "{} and {}", phase.elapsed_ns, end.at_ns);
    }
}

#[test]
fn a_phase_that_ends_with_a_second_has_no_further_short_row() {
    let record = run_on("memory-map", timed(0.0, 1.0, 2));
    let rows = &last(&record).series;
    assert!(rows.iter().all(|row| row.interval_ns >= SECOND_NS / 20), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.interval_ns).sum::<u64>(), rows.last().unwrap().at_ns);
}

#[test]
fn threads_report_their_run_delay_before_they_end() {
    if ThreadTimes::of_this_thread().run_delay_ns.is_none() {
        return;
    }
    // A busy machine may leave the probe no time.
    let records = (0..10).map(|_| run_on("memory-map", timed(0.05, 0.3, 4)));
    let is_told = |record: &Record| last(record).noise.is_some_and(|noise| noise.run_delay_share.is_some());
    let record = records.into_iter().find(is_told).expect("no share of ten runs");
    let phase = last(&record);
    let threads: Option<u64> = phase.threads.iter().map(|thread| thread.run_delay_ns).sum();
    let (threads, all) = (threads.unwrap(), phase.usage.run_delay_ns.unwrap());
    assert!(all >= threads, "{all} ns of all threads, {threads} ns of those that ran ops");
    assert!(phase.threads.iter().all(|thread| thread.cpu_ns.is_some()));
    let noise = phase.noise.unwrap();
    let cpu_ns = phase.usage.cpu_ns().unwrap() as f64;
    let expected = all as f64 / (all as f64 + cpu_ns);
    assert!((noise.run_delay_share.unwrap() - expected).abs() < 1e-5, "{noise:?} and {expected}");
    // The trial's share is that of its phases: the fill's and this one's.
    let fill = &record.phases[0].usage;
    let (delays, cpus) = (all + fill.run_delay_ns.unwrap(), cpu_ns + fill.cpu_ns().unwrap() as f64);
    let expected = delays as f64 / (delays as f64 + cpus);
    let whole = record.noise.as_ref().unwrap().run_delay_share.unwrap();
    assert!((whole - expected).abs() < 1e-5, "{whole} and {expected}");
}

/// Bytes that the reads of a trial returned: values differ in size, so the bytes depend on the keys that were drawn.
fn read_bytes(workload: &Workload, seed: Option<u64>) -> u64 {
    last(&run_seeded("memory-map", workload.clone(), seed)).logical_bytes_read
}

#[test]
fn ops_may_have_another_seed_than_the_rows_that_they_read() {
    let mut workload = small("read-random");
    workload.value.size = "uniform:8-4000".parse().unwrap();
    workload.phases.last_mut().unwrap().ops = 500;
    let (own, other) = (read_bytes(&workload, None), read_bytes(&workload, Some(9)));
    assert_eq!((own, other), (read_bytes(&workload, None), read_bytes(&workload, Some(9))), "seeds 1 and 9");
    assert_ne!(own, other, "another seed draws other keys");
    assert_eq!(own, read_bytes(&workload, Some(workload.seed)), "ops use the workload's seed by default");
}
