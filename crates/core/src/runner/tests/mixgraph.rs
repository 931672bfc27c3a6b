//! The ops of mixgraph that an engine receives: kind, key and size are drawn independently of each other, which the draws of
//! db_bench, simulated from its source, are not.
//!
//! <https://github.com/facebook/rocksdb>, tools/db_bench_tool.cc: `MixGraph`, `QueryDecider`, `GenerateTwoTermExpKeys` and
//! `ParetoCdfInversion`. Only the shuffle of the ranges is not simulated.

use super::received::{Got, received, workload};
use crate::engine::abi::*;
use crate::generator::Random;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::collections::HashSet;

const KEYS: u64 = 3_000;
const OPS: u64 = 300_000;
const RANGES: u64 = 30;

/// The ops of `MixGraph` on so many keys.
fn simulated(seed: u64) -> Vec<Got> {
    let share = |i: f64| 14.18 * f64::exp(-2.917 * i) + 0.0164 * f64::exp(-0.08082 * i);
    let amplify = (1.0 / share(RANGES as f64)).floor() + 1.0;
    let accesses = |range: u64| (amplify * share((RANGES - range) as f64)).floor() as u64;
    let all: u64 = (0..RANGES).map(accesses).sum();
    let pareto = |u: f64, k: f64, sigma: f64| (sigma * (u.powf(-k) - 1.0) / k).ceil() as i64;
    let range_keys = KEYS / RANGES;
    let mut random = Random::seeded(seed);
    let ops = std::iter::repeat_with(|| {
        let number = random.next_u64() % KEYS;
        let u = number as f64 / KEYS as f64;
        let mut left = number % all;
        let mut range = 0;
        while left >= accesses(range) {
            left -= accesses(range);
            range += 1;
        }
        let place = (number % range_keys) as f64 / range_keys as f64;
        let hashed = Random::seeded((place / 0.002312).powf(1.0 / 0.3467).ceil() as u64).next_u64();
        let item = range * range_keys + hashed % range_keys;
        match number % 1_000 {
            0..830 => Got { kind: KV_GET, item, size: 0 },
            830..970 => {
                let size = pareto(u, 0.2615, 25.45).max(10);
                Got { kind: KV_PUT, item, size: if size > 1024 { size % 1024 } else { size } as u32 }
            }
            _ => Got { kind: KV_SCAN, item, size: (pareto(u, 2.517, 14.236) % 10_000) as u32 },
        }
    });
    ops.take(OPS as usize).collect()
}

/// The probability of a table at least as far from independence as that of two properties of ops.
fn independence(ops: &[Got], rows: impl Fn(&Got) -> usize, columns: impl Fn(&Got) -> usize) -> f64 {
    let mut table = vec![vec![0.0_f64; 16]; 16];
    ops.iter().for_each(|op| table[rows(op)][columns(op)] += 1.0);
    let of_row: Vec<f64> = table.iter().map(|row| row.iter().sum()).collect();
    let of_column: Vec<f64> = (0..16).map(|column| table.iter().map(|row| row[column]).sum()).collect();
    let count = |sums: &[f64]| sums.iter().filter(|sum| **sum > 0.0).count() as f64;
    let mut statistic = 0.0;
    for (row, row_sum) in table.iter().zip(&of_row) {
        for (seen, column_sum) in row.iter().zip(&of_column) {
            let expected = row_sum * column_sum / ops.len() as f64;
            // Too few ops for a statistic; of ours there are enough.
            if expected > 4.0 {
                statistic += (seen - expected).powi(2) / expected;
            }
        }
    }
    let degrees = (count(&of_row) - 1.0) * (count(&of_column) - 1.0);
    // One row or one column shows nothing.
    ChiSquared::new(degrees).map_or(1.0, |law| law.sf(statistic))
}

/// Three neighbouring ranges.
fn ranges(op: &Got) -> usize {
    (op.item * 10 / KEYS) as usize
}

/// The place of a key within its range, in tenths.
fn place(op: &Got) -> usize {
    (op.item % (KEYS / RANGES) / 10) as usize
}

fn kind(op: &Got) -> usize {
    usize::from(op.kind == KV_PUT) + 2 * usize::from(op.kind == KV_SCAN)
}

/// The quarter of the sizes of its kind that an op's size is in.
fn quarter(op: &Got) -> usize {
    let bounds = if op.kind == KV_PUT { [18, 31, 56] } else { [6, 23, 124] };
    bounds.into_iter().filter(|bound| op.size > *bound).count()
}

/// The probabilities of the tables: kind, value size and scan length by range, and kind by place.
fn tables(ops: &[Got]) -> [f64; 4] {
    let of = |kind: u8| ops.iter().filter(|op| op.kind == kind).copied().collect::<Vec<Got>>();
    [
        independence(ops, kind, ranges),
        independence(&of(KV_PUT), quarter, ranges),
        independence(&of(KV_SCAN), quarter, ranges),
        independence(ops, kind, place),
    ]
}

#[test]
fn kind_key_and_size_are_independent_of_each_other() {
    for threads in [1, 4] {
        let workload = workload("mixgraph", KEYS, OPS, threads);
        let ops = received(&workload, 0).concat();
        let found = tables(&ops);
        let seed = workload.seed;
        assert!(found.iter().all(|p| *p > 1e-4), "seed {seed}, {threads} threads: {found:?}");
        // A thread's next kind does not depend on this one either.
        let pairs: Vec<Got> =
            ops.windows(2).map(|pair| Got { item: kind(&pair[1]) as u64, ..pair[0] }).collect();
        let p = independence(&pairs, kind, |op| op.item as usize);
        assert!(p > 1e-4, "seed {seed}, {threads} threads: kinds in a row: {p}");
        for (wanted, share) in [(KV_GET, 0.83), (KV_PUT, 0.14), (KV_SCAN, 0.03)] {
            let drawn = ops.iter().filter(|op| op.kind == wanted).count() as f64 / OPS as f64;
            assert!((drawn - share).abs() < 0.004, "seed {seed}: {drawn} of kind {wanted}");
        }
    }
}

#[test]
fn each_key_gets_all_kinds_of_ops() {
    let workload = workload("mixgraph", KEYS, OPS, 1);
    let ops = received(&workload, 0).concat();
    let hottest = |kind: u8| {
        let mut counts = vec![0; KEYS as usize];
        ops.iter().filter(|op| op.kind == kind).for_each(|op| counts[op.item as usize] += 1);
        (0..KEYS as usize).max_by_key(|item| counts[*item]).unwrap()
    };
    assert_eq!(hottest(KV_GET), hottest(KV_PUT));
    assert_eq!(hottest(KV_GET), hottest(KV_SCAN));
    let keys: HashSet<u64> = ops.iter().map(|op| op.item).collect();
    assert!(keys.len() as u64 > KEYS * 90 / 100, "{} of {KEYS} keys are used", keys.len());
}

#[test]
fn the_draws_of_db_bench_are_not() {
    let ops = simulated(1);
    let found = tables(&ops);
    assert!(found[0] < 1e-12 && found[3] < 1e-12, "seed 1: kinds by range and by place: {found:?}");
    // With so few keys, writes and scans reach only the hottest range.
    let written: HashSet<u64> =
        ops.iter().filter(|op| op.kind != KV_GET).map(|op| op.item * RANGES / KEYS).collect();
    assert_eq!(written.len(), 1, "seed 1");
    let keys: HashSet<u64> = ops.iter().map(|op| op.item).collect();
    assert!((keys.len() as u64) < KEYS * 70 / 100, "{} of {KEYS} keys are used", keys.len());
    // There are no more different ops than keys.
    let different: HashSet<(u8, u64, u32)> = ops.iter().map(|op| (op.kind, op.item, op.size)).collect();
    assert!(different.len() as u64 <= KEYS, "{}", different.len());
}
