//! Tests of the ends of phases: by count, with more threads than ops, and by time.

use super::*;
use crate::results::EndedBy;
use crate::workload::{Emulate, Mix};

/// A load and a phase of `ops` ops on eight threads. The limit in seconds only ends a phase that would not end.
fn eight_threads(phase: Phase) -> Workload {
    let mut workload = small("read-random");
    (workload.keys, workload.phases[1]) =
        (1_000, Phase { name: "run".into(), threads: 8, seconds: 20.0, ..phase });
    workload
}

fn only(set: impl Fn(&mut Mix)) -> Mix {
    let mut mix = Mix::default();
    set(&mut mix);
    mix
}

#[test]
fn a_phase_with_more_threads_than_ops_runs_these_ops_and_ends() {
    let mixes = [
        only(|mix| mix.get = 1.0),
        only(|mix| mix.put = 1.0),
        only(|mix| (mix.get, mix.update) = (0.5, 0.5)),
        only(|mix| mix.insert = 1.0),
        only(|mix| mix.merge = 1.0),
        only(|mix| mix.scan = 1.0),
    ];
    for engine in ["null", "memory-btree"] {
        for (place, mix) in mixes.iter().enumerate() {
            for (ops, join, warmup_seconds) in [(3, 1, 0.0), (1, 4, 0.0), (7, 1, 0.01)] {
                // The null engine would use up all new keys in the warm-up.
                if mix.insert > 0.0 && warmup_seconds > 0.0 {
                    continue;
                }
                let record = run_on(
                    engine,
                    eight_threads(Phase { mix: *mix, ops, join, warmup_seconds, ..Phase::default() }),
                );
                let what = format!("{engine}, mix {place}, {ops} ops");
                assert_eq!(record.outcome, Outcome::Ok, "{what}");
                let phase = &record.phases[1];
                assert_eq!((phase.ops, phase.ended_by), (ops, EndedBy::Count), "{what}");
                let of_threads: Vec<u64> = phase.threads.iter().map(|thread| thread.ops).collect();
                assert_eq!((of_threads.len(), of_threads.iter().max()), (8, Some(&1)), "{what}");
                let faults = crate::results::sane(phase);
                assert!(faults.is_empty(), "{what}: {faults:?}");
                if engine == "memory-btree" && mix.insert > 0.0 && warmup_seconds == 0.0 {
                    assert_eq!(phase.keys_after, Some(1_000 + ops), "{what}");
                }
            }
        }
    }
}

#[test]
fn readers_and_writers_share_few_ops() {
    let phase = Phase { ops: 2, readers: 4, writers: 4, ..Phase::default() };
    let mut workload = eight_threads(phase);
    workload.phases[1].threads = 0;
    let record = run_on("memory-btree", workload);
    assert_eq!(record.outcome, Outcome::Ok);
    assert_eq!((record.phases[1].ops, record.phases[1].ended_by), (2, EndedBy::Count));
}

#[test]
fn more_threads_than_keys_are_refused_where_each_needs_its_own() {
    // Each thread would search for a counter of its own without end.
    let emulate = vec![Emulate::Merge];
    let phase = Phase { mix: only(|mix| mix.merge = 1.0), emulate, ops: 100, ..Phase::default() };
    let mut workload = eight_threads(phase);
    workload.keys = 2;
    let record = run_on("memory-btree", workload);
    let reason = record.phases[1].not_run.as_deref().unwrap_or_default();
    assert!(reason.ends_with("8 threads share 2 keys; use at most 2 threads"), "{reason}");
    let mut workload = small("fill-seq");
    (workload.keys, workload.phases[0].threads) = (3, 8);
    match run_on("memory-btree", workload).outcome {
        Outcome::Failed { cause: Cause::Refused, text } => {
            assert_eq!(text, "3 items cannot be split among 8 threads; use at most 3 threads");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_rows_of_a_phase_end_with_it_and_have_its_length() {
    // By count, with threads that start late, after a warm-up, and by time over several rows.
    for (threads, ops, seconds, warmup_seconds) in
        [(1, 500, 0.0, 0.0), (8, 500, 0.0, 0.0), (8, 3, 0.0, 0.0), (3, 500, 0.0, 0.01), (2, 0, 1.06, 0.0)]
    {
        let mix = only(|mix| (mix.get, mix.update) = (0.5, 0.5));
        let mut workload = eight_threads(Phase { mix, ops, warmup_seconds, ..Phase::default() });
        (workload.phases[1].threads, workload.phases[1].seconds) = (threads, seconds);
        let record = run_on("memory-btree", workload);
        for phase in &record.phases {
            let what = format!("{}: {threads} threads, {ops} ops, {seconds} s", phase.phase.name);
            let sum: u64 = phase.series.iter().map(|row| row.interval_ns).sum();
            assert_eq!(sum, phase.elapsed_ns, "{what}");
            assert_eq!(phase.series.last().map(|row| row.at_ns), Some(phase.elapsed_ns), "{what}");
            let least = (phase.phase.seconds * 1e9) as u64;
            assert!(phase.elapsed_ns + 1_000 >= least, "{what}: {} ns", phase.elapsed_ns);
        }
    }
}
