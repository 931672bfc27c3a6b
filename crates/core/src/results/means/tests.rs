//! Tests of the means of engines over several phases, with runs of which the truth is known.

use super::*;
use crate::results::random::Random;

/// The same rate in each block.
fn steady(rows: &[&[f64]]) -> Vec<Vec<Rates>> {
    let of = |rate: &f64| vec![Some(*rate).filter(|rate| *rate > 0.0); 5];
    rows.iter().map(|row| row.iter().map(of).collect()).collect()
}

fn values(rates: &[Vec<Rates>]) -> Vec<f64> {
    means(rates, &[0; 5]).iter().map(|mean| mean.map_or(f64::NAN, |mean| mean.value)).collect()
}

#[test]
fn without_missing_cells_it_is_the_geometric_mean_relative_to_the_best() {
    let found = values(&steady(&[&[100.0, 10.0, 4.0], &[50.0, 40.0, 4.0], &[10.0, 5.0, 1.0]]));
    let geometric = |row: [f64; 3]| row.iter().product::<f64>().cbrt();
    let best = geometric([50.0, 40.0, 4.0]);
    let expected = [geometric([100.0, 10.0, 4.0]) / best, 1.0, geometric([10.0, 5.0, 1.0]) / best];
    assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9), "{found:?}");
}

#[test]
fn an_engine_without_a_column_is_compared_by_the_others() {
    // All engines are slow in the last column, and the second engine is 10 % faster than the first wherever it runs.
    let with = values(&steady(&[&[100.0, 50.0, 1.0], &[110.0, 55.0, 1.1], &[20.0, 10.0, 0.2]]));
    let without = values(&steady(&[&[100.0, 50.0, 1.0], &[110.0, 55.0, 0.0], &[20.0, 10.0, 0.2]]));
    assert!(with.iter().zip(&without).all(|(one, other)| (one - other).abs() < 1e-6), "{with:?} {without:?}");
    // One engine is ten times as fast as all others in the last column. Of ratios to the highest rate, an engine that skips it
    // has the highest mean; but the first of the others is faster wherever both run.
    let typical =
        [1.0, 0.95, 0.9, 0.85, 0.7, 0.65].map(|factor| [100.0 * factor, 100.0 * factor, 10.0 * factor]);
    let mut rows: Vec<&[f64]> = typical.iter().map(|row| &row[..]).collect();
    rows.extend([&[60.0, 60.0, 100.0][..], &[80.0, 80.0, 0.0]]);
    let found = values(&steady(&rows));
    assert!(found[0] > found[7] && found.iter().all(|mean| *mean <= 1.0), "{found:?}");
}

#[test]
fn what_has_nothing_in_common_has_no_mean() {
    let found = means(&steady(&[&[1.0, 0.0], &[2.0, 0.0], &[0.0, 9.0], &[0.0, 0.0]]), &[0; 5]);
    let columns: Vec<Option<usize>> = found.iter().map(|mean| mean.map(|mean| mean.columns)).collect();
    assert_eq!(columns, [Some(1), Some(1), None, None]);
    assert_eq!(means(&steady(&[&[1.0, 2.0]]), &[0; 5]), [None], "one engine is compared with nothing");
}

#[test]
fn a_noisy_column_does_not_decide_between_engines_that_are_alike() {
    let seed = 5;
    println!("seed {seed}");
    let mut random = Random::seeded(seed);
    let (mut pairs, mut right, mut right_of_equal) = (0.0, 0.0, 0.0);
    for _ in 0..100 {
        // Each engine is 2 % faster than the one before. Loads have noise of 40 %, reads of 0.5 %.
        let rates: Vec<Vec<Rates>> = (0..8)
            .map(|engine| {
                let mut runs = |noise: f64| -> Rates {
                    (0..5).map(|_| Some((0.02 * f64::from(engine) + noise * random.normal()).exp())).collect()
                };
                vec![runs(0.4), runs(0.005)]
            })
            .collect();
        let found = values(&rates);
        let log = |runs: &Rates| runs.iter().flatten().map(|rate| rate.ln()).sum::<f64>();
        let equal: Vec<f64> = rates.iter().map(|row| row.iter().map(log).sum()).collect();
        for engine in 1..8 {
            pairs += 1.0;
            right += if found[engine] > found[engine - 1] { 1.0 } else { 0.0 };
            right_of_equal += if equal[engine] > equal[engine - 1] { 1.0 } else { 0.0 };
        }
    }
    let (right, right_of_equal) = (right / pairs, right_of_equal / pairs);
    println!("{right:.2} of pairs are in the right order, {right_of_equal:.2} with equal weights");
    assert!(right > right_of_equal + 0.1, "{right} {right_of_equal}");
}

#[test]
fn a_missing_run_costs_that_run_and_not_the_mean() {
    let mut rates = steady(&[&[100.0, 10.0, 4.0], &[50.0, 40.0, 4.0], &[10.0, 5.0, 1.0]]);
    let whole = values(&rates);
    rates[0][1][3] = None;
    let found = means(&rates, &[0; 5]);
    assert!((found[0].unwrap().value - whole[0]).abs() < 1e-6, "{found:?}");
    assert!(found[0].unwrap().interval.is_some());
}

#[test]
fn noise_is_what_engines_and_blocks_do_not_explain_and_outliers_are_none() {
    let seed = 7;
    println!("seed {seed}");
    let mut random = Random::seeded(seed);
    let drift: Vec<f64> = (0..5).map(|_| 0.3 * random.normal()).collect();
    let mut rates: Vec<Rates> = (0..40)
        .map(|engine| {
            drift
                .iter()
                .map(|drift| Some((f64::from(engine) + drift + 0.05 * random.normal()).exp()))
                .collect()
        })
        .collect();
    let before = noise(&rates).unwrap();
    assert!((0.04..0.06).contains(&before), "{before}");
    rates[3][2] = rates[3][2].map(|rate| rate / 10.0);
    let after = noise(&rates).unwrap();
    assert!((0.04..0.08).contains(&after), "{after}");
    assert_eq!(noise(&rates[..1]), None, "one engine has no noise apart from that of the blocks");
}

/// Of how many of 100 intervals contain the truth, of engines whose rates in columns have this noise, whose blocks drift, of
/// which trials have a part of their noise in common, and of which every seventh cell is missing.
fn coverage(suit: f64, noise: &[f64], machines: &[usize], seed: u64) -> f64 {
    let (engines, columns, blocks) = (8, noise.len(), machines.len());
    let mut random = Random::seeded(seed);
    let (mut covered, mut all) = (0.0, 0.0);
    for _ in 0..300 {
        let skill: Vec<f64> = (0..engines).map(|_| random.normal()).collect();
        let is_there = |engine: usize, column: usize| (engine * columns + column) % 7 != 3;
        let true_log: Vec<Vec<f64>> = (0..engines)
            .map(|engine| (0..columns).map(|_| skill[engine] + suit * random.normal()).collect())
            .collect();
        let drift: Vec<f64> = (0..blocks).map(|_| 0.2 * random.normal()).collect();
        // What one machine does to one engine.
        let of_machine: Vec<Vec<f64>> =
            (0..engines).map(|_| (0..4).map(|_| 0.05 * random.normal()).collect()).collect();
        let has_several = machines.iter().any(|machine| *machine > 0);
        let mut rates = vec![vec![vec![None; blocks]; columns]; engines];
        for (engine, of_engine) in rates.iter_mut().enumerate() {
            for (block, machine) in machines.iter().enumerate() {
                let of_trial =
                    0.02 * random.normal() + if has_several { of_machine[engine][*machine] } else { 0.0 };
                for (column, own) in of_engine.iter_mut().enumerate() {
                    let log = true_log[engine][column] + drift[block] + of_trial;
                    let log = log + noise[column] * random.normal();
                    own[block] = is_there(engine, column).then(|| log.exp());
                }
            }
        }
        let found = means(&rates, machines);
        // The truth: the same fit, with the same weights, of rates without noise.
        let logs = |engine: usize, column: usize| is_there(engine, column).then(|| true_log[engine][column]);
        let all_logs: Vec<Vec<Option<f64>>> =
            (0..engines).map(|engine| (0..columns).map(|column| logs(engine, column)).collect()).collect();
        let parts: Vec<Column> = (0..columns)
            .map(|column| {
                let own: Vec<Rates> = rates
                    .iter()
                    .map(|row| row[column].iter().map(|rate| rate.map(f64::ln)).collect())
                    .collect();
                Column::of(&own, blocks)
            })
            .collect();
        let truth = additive(&all_logs, &weights(&parts, engines, blocks)).rows;
        let best = found.iter().position(|mean| mean.unwrap().interval.is_none()).unwrap();
        for (engine, mean) in found.iter().enumerate() {
            let Some(interval) = mean.unwrap().interval else { continue };
            let ratio = (truth[engine] - truth[best]).exp();
            covered += if interval.low <= ratio && ratio <= interval.high { 1.0 } else { 0.0 };
            all += 1.0;
        }
    }
    100.0 * covered / all
}

#[test]
fn intervals_contain_the_truth_as_often_as_they_say() {
    let seed = 20_261_127;
    println!("seed {seed}");
    for (suit, noise, machines) in [
        (0.0, vec![0.03; 6], vec![0; 5]),
        (0.7, vec![0.03; 6], vec![0; 5]),
        (0.7, vec![0.01, 0.5, 0.03, 0.1, 0.02, 0.05], vec![0; 5]),
        (0.02, vec![0.01, 0.5, 0.03, 0.1, 0.02, 0.05], vec![0; 10]),
        (0.7, vec![0.03; 6], vec![0, 0, 1, 1, 2, 2, 3, 3]),
    ] {
        let percent = coverage(suit, &noise, &machines, seed);
        let case = format!("suit {suit}, noise {noise:?}, machines {machines:?}: {percent:.1} %");
        println!("{case}");
        assert!((93.0..=98.0).contains(&percent), "{case}");
    }
}
