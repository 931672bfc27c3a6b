//! Tests of comparisons within blocks. `benches/statistics` measures their error rates.

use super::*;
use crate::results::random::Random;
use std::cmp::Ordering;

/// Engines without throughputs.
fn of_rates(rates: &[Vec<f64>]) -> Option<Table> {
    on(rates, &vec![0; rates.first()?.len()])
}

/// The same for blocks of several machines.
fn on(rates: &[Vec<f64>], machines: &Machines) -> Option<Table> {
    let rows: Vec<Row> = rates.iter().map(|row| Row::new(row, &[], Throughput::UpperBound)).collect();
    Table::new(&rows, machines)
}

/// Rates over five blocks that drift by 40 %, with little noise of each engine.
fn drifting(factors: &[f64]) -> Vec<Vec<f64>> {
    let noise = [0.01, -0.008, 0.004, -0.012, 0.006];
    let rate = |engine: usize, block: usize| {
        factors[engine] * (1.0 - 0.1 * block as f64) * (1.0 + noise[(engine * 2 + block) % noise.len()])
    };
    (0..factors.len()).map(|engine| (0..5).map(|block| rate(engine, block)).collect()).collect()
}

#[test]
fn drift_from_block_to_block_has_no_effect() {
    let table = of_rates(&drifting(&[1.1, 1.0, 1.0])).unwrap();
    assert_eq!(table.order(0, 1), Some(Ordering::Greater));
    assert_eq!(table.order(2, 0), Some(Ordering::Less));
    assert_eq!(table.order(1, 2), None);
    let interval = table.interval(0, 1).unwrap();
    assert!(
        interval.low > 1.0 && interval.low < 1.1 && interval.high > 1.1 && interval.high < 1.2,
        "{interval:?}"
    );
    assert!((table.ratio(1, 0).unwrap() * table.ratio(0, 1).unwrap() - 1.0).abs() < 1e-12);
}

#[test]
fn no_order_is_claimed_below_five_blocks() {
    let rates: Vec<Vec<f64>> = drifting(&[3.0, 2.0, 1.0]).into_iter().map(|row| row[..4].to_vec()).collect();
    let table = of_rates(&rates).unwrap();
    assert_eq!(table.order(0, 2), None);
    assert!(
        table.interval(0, 2).is_some_and(|interval| interval.low > 1.0),
        "the ratio is known nevertheless"
    );
}

#[test]
fn two_engines_are_compared_by_a_paired_t_test() {
    // Expected values: scipy.stats.ttest_rel of the logs.
    let (x, y) = (vec![101.0, 96.0, 110.0, 99.0, 104.0], vec![95.0, 91.0, 101.0, 96.0, 94.0]);
    let table = of_rates(&[x, y]).unwrap();
    let difference = table.lead(0, 1).unwrap();
    assert!((difference.value - 0.066_391_987).abs() < 1e-8, "{difference:?}");
    assert_eq!(difference.degrees, 4.0);
    let interval = table.interval(0, 1).unwrap();
    // Half of the error is that of orders, the other half that of leaders: scipy.stats.t.ppf(1 - 0.0125, 4).
    assert!(
        (interval.low.ln() - 0.023_397_324).abs() < 1e-7 && (interval.high.ln() - 0.109_386_650).abs() < 1e-7,
        "{interval:?}"
    );
    assert!((difference.p() - 0.005_701_406).abs() < 1e-8, "{}", difference.p());
}

#[test]
fn intervals_and_orders_are_those_of_all_tables_that_are_read_together() {
    let (x, y) = (vec![101.0, 96.0, 110.0, 99.0, 104.0], vec![95.0, 91.0, 101.0, 96.0, 94.0]);
    // The two-sided p is 0.0057. In six tables it shows a winner and not by the interval alone.
    let claimed = Some(Ordering::Greater);
    let mut before = 0.0;
    for (count, order, by_interval) in
        [(1, claimed, true), (2, claimed, true), (6, claimed, false), (20, None, false)]
    {
        let mut tables: Vec<Table> = (0..count).map(|_| of_rates(&[x.clone(), y.clone()]).unwrap()).collect();
        together(&mut tables.iter_mut().collect::<Vec<_>>(), 1);
        let interval = tables[0].interval(0, 1).unwrap();
        assert!(interval.high > before, "{count} tables: {interval:?}");
        before = interval.high;
        assert_eq!((tables[0].order(0, 1), interval.low > 1.0), (order, by_interval), "{count} tables");
    }
}

#[test]
fn an_interval_ends_at_1_where_it_alone_would_not_show_the_order() {
    // The two-sided p is 0.04: too much for the half of the error that intervals have, but the first is the only leader.
    let (x, y) = (vec![101.0, 96.0, 110.0, 99.0, 104.0], vec![95.0, 91.0, 101.0, 98.0, 103.0]);
    let table = of_rates(&[x, y]).unwrap();
    assert_eq!((table.order(0, 1), table.is_leader(1)), (Some(Ordering::Greater), false));
    assert_eq!(table.interval(0, 1).unwrap().low, 1.0);
    assert_eq!(table.interval(1, 0).unwrap().high, 1.0);
}

#[test]
fn one_bad_run_of_ten_is_excluded() {
    let noise = |engine: usize, block: usize| 1.0 + 0.004 * ((engine * 7 + block * 5) % 9) as f64;
    let mut rates: Vec<Vec<f64>> = (0..3)
        .map(|engine| (0..10).map(|block| (3 - engine) as f64 * noise(engine, block)).collect())
        .collect();
    rates[0][6] /= 2.0;
    let table = of_rates(&rates).unwrap();
    assert_eq!(table.set_aside(0).collect::<Vec<_>>(), [6]);
    assert_eq!(table.set_aside(1).count() + table.set_aside(2).count(), 0);
    assert!((table.ratio(0, 1).unwrap() - 1.5).abs() < 0.02);
    assert_eq!(table.order(0, 1), Some(Ordering::Greater));
}

/// The table of these rates with these shares of the harness.
fn table_of(rates: &[Vec<f64>], shares: &[Vec<Option<f64>>]) -> Option<Table> {
    let engine = |(rate, share): (&f64, &Option<f64>)| share.map(|share| rate / (1.0 - share));
    let row = |(rates, shares): (&Vec<f64>, &Vec<Option<f64>>)| {
        let own: Vec<Option<f64>> = rates.iter().zip(shares).map(engine).collect();
        Row::new(rates, &own, Throughput::Exact)
    };
    let rows: Vec<Row> = rates.iter().zip(shares).map(row).collect();
    Table::new(&rows, &vec![0; rates[0].len()])
}

#[test]
fn the_harness_does_not_decide_between_equal_engines() {
    // The same time inside the engine; the first spends 2 % outside, the second 20 %.
    let noise = [0.01, -0.008, 0.004, -0.012, 0.006];
    let shares = [0.02, 0.20];
    let rates: Vec<Vec<f64>> = (0..2)
        .map(|engine| {
            (0..5).map(|block| (1.0 - shares[engine]) * (1.0 + noise[(engine * 2 + block) % 5])).collect()
        })
        .collect();
    let known: Vec<Vec<Option<f64>>> = shares.iter().map(|share| vec![Some(*share); 5]).collect();
    let table = table_of(&rates, &known).unwrap();
    assert_eq!(table.order_by_rate(0, 1), Some(Ordering::Greater));
    assert_eq!(table.order(0, 1), None);
    let unknown = table_of(&rates, &[vec![None; 5], vec![None; 5]]).unwrap();
    assert_eq!(unknown.order(0, 1), Some(Ordering::Greater));
}

#[test]
fn an_upper_bound_of_the_throughput_decides_nothing() {
    let noise = [0.01, -0.008, 0.004, -0.012, 0.006];
    let of = |rate: f64, share: f64, engine: usize| {
        let rates: Vec<f64> = (0..5).map(|block| rate * (1.0 + noise[(engine * 2 + block) % 5])).collect();
        let own: Vec<Option<f64>> = rates.iter().map(|rate| Some(rate / (1.0 - share))).collect();
        (rates, own)
    };
    let order = |first: (f64, f64), second: (f64, f64), throughput| {
        let rows = [of(first.0, first.1, 0), of(second.0, second.1, 1)]
            .map(|(rates, own)| Row::new(&rates, &own, throughput));
        Table::new(&rows, &[0; 5]).unwrap().order(0, 1)
    };
    // The first has more ops/s and a higher bound, but the second's bound is above the first's ops/s.
    assert_eq!(order((1.0, 0.3), (0.9, 0.2), Throughput::Exact), Some(Ordering::Greater));
    assert_eq!(order((1.0, 0.3), (0.9, 0.2), Throughput::UpperBound), None);
    assert_eq!(order((0.9, 0.2), (1.0, 0.3), Throughput::UpperBound), None);
    // Its ops/s are above the second's bound.
    assert_eq!(order((1.0, 0.3), (0.9, 0.02), Throughput::UpperBound), Some(Ordering::Greater));
    assert_eq!(order((0.9, 0.02), (1.0, 0.3), Throughput::UpperBound), Some(Ordering::Less));
}

#[test]
fn an_exact_throughput_is_compared_with_the_bound_of_another_engine() {
    let noise = [0.01, -0.008, 0.004, -0.012, 0.006];
    let row = |rate: f64, share: f64, engine: usize, throughput| {
        let rates: Vec<f64> = (0..5).map(|block| rate * (1.0 + noise[(engine * 2 + block) % 5])).collect();
        let own: Vec<Option<f64>> = rates.iter().map(|rate| Some(rate / (1.0 - share))).collect();
        Row::new(&rates, &own, throughput)
    };
    // Without the harness the first does 1.43, and the second between 0.9 and 1.13.
    let second = row(0.9, 0.2, 1, Throughput::UpperBound);
    for (throughput, order) in [(Throughput::Exact, Some(Ordering::Greater)), (Throughput::UpperBound, None)]
    {
        let table = Table::new(&[row(1.0, 0.3, 0, throughput), second.clone()], &[0; 5]).unwrap();
        assert_eq!((table.order(0, 1), table.is_leader(1)), (order, order.is_none()), "{throughput:?}");
    }
}

#[test]
fn an_unknown_share_does_not_move_blocks_against_each_other() {
    // Two equal engines that drift; the harness share of one run is unknown, or is 1.
    let drift: Vec<f64> = (0..6).map(|block| 1.0 - 0.1 * block as f64 + 0.001 * (block % 3) as f64).collect();
    let other: Vec<f64> = (0..6).map(|block| 1.0 - 0.1 * block as f64 + 0.001 * (block % 2) as f64).collect();
    for odd in [None, Some(1.0)] {
        let (mut first, mut last) = (vec![Some(0.1); 6], vec![Some(0.1); 6]);
        (first[0], last[5]) = (odd, odd);
        let table = table_of(&[drift.clone(), other.clone()], &[first, last]).unwrap();
        assert_eq!(table.order(0, 1), None, "{odd:?}");
    }
}

#[test]
fn the_same_runs_are_excluded_by_rate_and_by_engine_time() {
    let noise = |engine: usize, block: usize| 1.0 + 0.004 * ((engine * 7 + block * 5) % 9) as f64;
    let mut rates: Vec<Vec<f64>> = (0..3)
        .map(|engine| (0..10).map(|block| (3 - engine) as f64 * noise(engine, block)).collect())
        .collect();
    let mut shares = vec![vec![Some(0.02); 10]; 3];
    // A run at half speed because of the harness only: by engine time it is like the others.
    rates[0][6] /= 2.0;
    shares[0][6] = Some(0.51);
    let table = table_of(&rates, &shares).unwrap();
    assert_eq!(table.set_aside(0).count(), 0);
    rates[0][2] /= 2.0;
    let table = table_of(&rates, &shares).unwrap();
    assert_eq!(table.set_aside(0).collect::<Vec<_>>(), [2]);
}

#[test]
fn refuses_rates_without_blocks() {
    assert!(of_rates(&[]).is_none());
    assert!(of_rates(&[vec![1.0]]).is_none());
    assert!(of_rates(&[vec![1.0, 2.0], vec![1.0]]).is_none());
    assert!(of_rates(&[vec![1.0, 0.0], vec![1.0, 2.0]]).is_none());
    assert!(of_rates(&[vec![1.0, f64::NAN], vec![1.0, 2.0]]).is_none());
    // Equal rates throughout: no order, and intervals of the resolution's width.
    let table = of_rates(&[vec![2.0; 5], vec![2.0; 5], vec![2.0; 5]]).unwrap();
    assert_eq!((table.order(0, 1), table.ratio(0, 1)), (None, Some(1.0)));
    let alone = of_rates(&[vec![2.0, 3.0, 4.0]]).unwrap();
    assert_eq!(alone.order(0, 0), None);
}

/// Rates of two engines on four machines with three blocks each: the first is faster by a share that depends on the machine.
fn on_machines(gains: [f64; 4]) -> (Vec<Vec<f64>>, Vec<usize>) {
    let machines: Vec<usize> = (0..12).map(|block| block % 4).collect();
    // Noise of a percent that is the same for no two runs.
    let noise = |engine: usize, block: usize| 1.0 + 0.01 * ((engine * 12 + block) * 7 % 13) as f64 / 13.0;
    let speeds = [100.0, 130.0, 80.0, 110.0];
    let first = machines.iter().enumerate().map(|(block, on)| speeds[*on] * gains[*on] * noise(0, block));
    let second = machines.iter().enumerate().map(|(block, on)| speeds[*on] * noise(1, block));
    (vec![first.collect(), second.collect()], machines)
}

#[test]
fn an_engine_that_gains_on_one_machine_only_is_not_ahead() {
    let (rates, machines) = on_machines([1.2, 1.0, 1.0, 1.0]);
    let (one, several) = (of_rates(&rates).unwrap(), on(&rates, &machines).unwrap());
    assert_eq!(several.order(0, 1), None);
    let width = |table: &Table| {
        let interval = table.interval(0, 1).unwrap();
        interval.high / interval.low
    };
    assert!(width(&several) > width(&one), "the interval includes the differences between machines");
    assert_eq!(several.ratio(0, 1), one.ratio(0, 1), "the estimate is the same");
    assert_eq!(several.set_aside(0).count(), 0, "its runs on that machine are no outliers");
}

#[test]
fn an_engine_that_is_faster_on_each_machine_is_ahead_although_the_machines_differ() {
    let (rates, machines) = on_machines([1.2, 1.21, 1.19, 1.2]);
    assert_eq!(on(&rates, &machines).unwrap().order(0, 1), Some(Ordering::Greater));
}

#[test]
fn one_machine_by_any_number_is_the_same_as_no_machines() {
    let (rates, _) = on_machines([1.05, 1.0, 1.1, 1.0]);
    let (plain, numbered) = (of_rates(&rates).unwrap(), on(&rates, &[7; 12]).unwrap());
    assert_eq!(plain.interval(0, 1), numbered.interval(0, 1));
    assert!(on(&rates, &[0; 11]).is_none(), "a machine for each block");
}

#[test]
fn leaders_are_the_engines_that_are_behind_no_other() {
    for seed in 0..200 {
        let mut random = Random::seeded(seed);
        let engines = 2 + seed as usize % 12;
        let noise = 0.02 * (1 + seed % 8) as f64;
        let mut table = || {
            let row = |engine: usize| {
                let own = noise * (0.5 * random.normal()).exp();
                let share = 0.2 * random.unit();
                let rates: Vec<f64> =
                    (0..5).map(|_| (0.05 * engine as f64 + own * random.normal()).exp()).collect();
                let net: Vec<Option<f64>> = rates.iter().map(|rate| Some(rate / (1.0 - share))).collect();
                let throughput = if seed % 3 == 0 { Throughput::Exact } else { Throughput::UpperBound };
                Row::new(&rates, if seed % 3 == 2 { &[] } else { &net }, throughput)
            };
            Table::new(&(0..engines).map(row).collect::<Vec<_>>(), &[0; 5]).unwrap()
        };
        let mut tables = [table(), table()];
        together(&mut tables.iter_mut().collect::<Vec<_>>(), 1);
        for table in &tables {
            let is_behind = |engine: usize, other: usize| table.order(engine, other) == Some(Ordering::Less);
            let leaders: Vec<usize> = (0..engines).filter(|engine| table.is_leader(*engine)).collect();
            assert!(!leaders.is_empty(), "seed {seed}");
            for leader in &leaders {
                assert!((0..engines).all(|other| !is_behind(*leader, other)), "seed {seed}, engine {leader}");
            }
            if let [winner] = leaders.as_slice() {
                assert!(
                    (0..engines).all(|other| other == *winner || is_behind(other, *winner)),
                    "seed {seed}"
                );
            }
            for one in 0..engines {
                for other in (0..engines).filter(|other| *other != one) {
                    // An interval does not contradict what rates show, and orders are transitive and as the rows are sorted.
                    let (order, interval) =
                        (table.order_by_rate(one, other), table.interval(one, other).unwrap());
                    let includes = interval.low < 1.0 && interval.high > 1.0;
                    assert_eq!(order.is_none(), includes, "seed {seed}: {interval:?}");
                    if is_behind(one, other) {
                        assert!(table.estimate(one) < table.estimate(other), "seed {seed}");
                        let after = |last: usize| !is_behind(last, one) || is_behind(last, other);
                        assert!((0..engines).all(after), "seed {seed}");
                    }
                }
            }
        }
    }
}

#[test]
fn runs_of_the_planned_length_in_all_blocks_are_compared_as_ever() {
    // The figures of the version that knew no other runs; the last run of the first engine is an outlier.
    let noise = |engine: usize, block: usize| 1.0 + 0.01 * ((engine * 7 + block * 5) % 9) as f64;
    let mut rates: Vec<Vec<f64>> = (0..4)
        .map(|engine| (0..6).map(|block| noise(engine, block) * (1.0 + 0.1 * engine as f64)).collect())
        .collect();
    rates[0][5] /= 3.0;
    let table = of_rates(&rates).unwrap();
    assert_eq!(table.set_aside(0).collect::<Vec<_>>(), [5]);
    for (first, second, ratio, p) in AS_EVER {
        let two_sided = 2.0 * table.p_faster(first, second).min(table.p_faster(second, first));
        assert!((table.ratio(first, second).unwrap() / ratio - 1.0).abs() < 1e-12, "{first} {second}");
        assert!((two_sided / p - 1.0).abs() < 1e-9, "{first} {second}: {two_sided:e}");
    }
}

/// Pairs of engines, their ratio and their two-sided p.
const AS_EVER: [(usize, usize, f64, f64); 3] = [
    (0, 1, 0.895_272_073_007_201_1, 3.232_250_892_917_223_5e-5),
    (1, 3, 0.854_331_461_969_291_7, 1.973_807_366_627_881e-7),
    (2, 3, 0.927_634_047_435_796, 4.886_828_449_901_102e-4),
];

/// Rows with a run where there is a length.
fn uneven(rates: &[Vec<f64>], lengths: &[Vec<f64>]) -> Vec<Row> {
    let run = |(rate, length): (&f64, &f64)| {
        (*length > 0.0).then_some(Measured { rate: *rate, engine_rate: None, length: *length })
    };
    let row = |(rates, lengths): (&Vec<f64>, &Vec<f64>)| Row {
        runs: rates.iter().zip(lengths).map(run).collect(),
        throughput: Throughput::UpperBound,
    };
    rates.iter().zip(lengths).map(row).collect()
}

#[test]
fn engines_are_compared_over_the_blocks_that_both_have_by_the_weights_of_their_runs() {
    let rates = drifting(&[1.3, 1.2, 1.0]);
    let lengths =
        [vec![1.0, 1.0, 1.0, 4.0, 4.0], vec![1.0, 1.0, 1.0, 4.0, 4.0], vec![1.0, 1.0, 1.0, 0.0, 0.0]];
    let table = Table::new(&uneven(&rates, &lengths), &[0; 5]).unwrap();
    let logs = |engine: usize, block: usize| (rates[0][block] / rates[engine][block]).ln();
    // 1 / (0.27 + 0.73 / 4)
    let weights = [1.0, 1.0, 1.0, 2.209_944_751_381_215_5, 2.209_944_751_381_215_5];
    let mean = (0..5).map(|block| weights[block] * logs(1, block)).sum::<f64>() / weights.iter().sum::<f64>();
    assert!((table.ratio(0, 1).unwrap().ln() - mean).abs() < 1e-12);
    let mean = (0..3).map(|block| logs(2, block)).sum::<f64>() / 3.0;
    assert!((table.ratio(0, 2).unwrap().ln() - mean).abs() < 1e-12, "the last two blocks tell nothing of it");
    assert_eq!(table.order(0, 2), Some(Ordering::Greater));
    assert!(table.estimate(0) > table.estimate(1) && table.estimate(1) > table.estimate(2));
    assert_eq!(table.set_aside(2).count(), 0, "a missing run is no outlier");
    // If all runs are longer, the scatter is what it is.
    let (even, longer) =
        (of_rates(&rates).unwrap(), Table::new(&uneven(&rates, &vec![vec![4.0; 5]; 3]), &[0; 5]).unwrap());
    assert!((longer.lead(0, 1).unwrap().error / even.lead(0, 1).unwrap().error - 1.0).abs() < 1e-9);
    // Engines without a common block are not compared, and one without runs is not beaten.
    let apart = [vec![1.0, 1.0, 1.0, 0.0, 0.0], vec![0.0, 0.0, 0.0, 1.0, 1.0], vec![0.0; 5]];
    let table = Table::new(&uneven(&rates, &apart), &[0; 5]).unwrap();
    assert_eq!((table.ratio(0, 1), table.order(0, 1), table.is_leader(2)), (None, None, true));
    assert!(
        Table::new(&uneven(&rates, &[vec![f64::INFINITY; 5], vec![1.0; 5], vec![1.0; 5]]), &[0; 5]).is_none()
    );
}

/// The mean of the estimated variances of engines with equal noise, as a multiple of the true one. `lengths`: those of the runs.
fn variance_of_runs(lengths: &[Vec<f64>], random: &mut Random) -> f64 {
    const TABLES: usize = 400;
    const NOISE: f64 = 0.05;
    let blocks = lengths[0].len();
    let mut sum = 0.0;
    for _ in 0..TABLES {
        let effects: Vec<f64> = (0..blocks).map(|_| 0.2 * random.normal()).collect();
        let mut row = |lengths: &Vec<f64>| -> Vec<f64> {
            let rate = |(length, effect): (&f64, &f64)| {
                let share = if *length > 0.0 { LASTING + (1.0 - LASTING) / length } else { 1.0 };
                (effect + NOISE * share.sqrt() * random.normal()).exp()
            };
            lengths.iter().zip(&effects).map(rate).collect()
        };
        let rates: Vec<Vec<f64>> = lengths.iter().map(&mut row).collect();
        let table = Table::new(&uneven(&rates, lengths), &vec![0; blocks]).unwrap();
        let variances = table.rates.variances.iter().map(|variance| variance.value);
        sum += variances.sum::<f64>() / lengths.len() as f64;
    }
    sum / (TABLES as f64 * NOISE * NOISE)
}

#[test]
fn variances_are_right_on_average_where_engines_lack_runs_in_late_blocks() {
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut random = Random::seeded(seed);
    let mut all = Vec::new();
    // Of so many engines, these are left in the late blocks, in which their runs are longer. Those of whole tables are 2 % too small,
    // because of moderation.
    for (engines, left) in [
        (6, vec![1, 1]),
        (6, vec![2, 1]),
        (4, vec![2, 1, 1, 1, 1]),
        (12, vec![3, 1]),
        (3, vec![1; 7]),
        (6, vec![6, 6]),
    ] {
        let lengths = |engine: usize| -> Vec<f64> {
            let late =
                left.iter().map(|left| if engine < *left { engines as f64 / *left as f64 } else { 0.0 });
            [1.0; 3].into_iter().chain(late).collect()
        };
        let found = variance_of_runs(&(0..engines).map(lengths).collect::<Vec<_>>(), &mut random);
        println!("{engines} engines, then {left:?}: {found:.3}");
        assert!((0.94..=1.05).contains(&found), "seed {seed}, {engines} engines, then {left:?}: {found:.3}");
        all.push(found);
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!((0.95..=1.05).contains(&mean), "seed {seed}: {mean:.3}");
}

#[test]
fn an_interval_contains_its_estimate_also_where_other_blocks_show_the_order() {
    // The first engine is ahead of the second in 20 blocks, and the second of the third in 20 others. The one block that the first
    // shares with the third does not show that it is ahead of that, too.
    let noise = |engine: usize, block: usize| if block >> engine & 1 == 0 { 0.015 } else { -0.015 };
    let log = |engine: usize, block: usize| match (engine, block) {
        (0, 40) => 0.045,
        (2, 40) => 0.05,
        _ => 0.1 - 0.05 * engine as f64 + noise(engine, block),
    };
    let is_there = [|block| block < 20 || block == 40, |block| block < 40, |block| block >= 20];
    let row = |of: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
        (0..3).map(|engine| (0..41).map(|block| of(engine, block)).collect()).collect()
    };
    let rates = row(&|engine, block| log(engine, block).exp());
    let lengths = row(&|engine, block| f64::from(u8::from(is_there[engine](block))));
    let table = Table::new(&uneven(&rates, &lengths), &[0; 41]).unwrap();
    assert!((0..3).all(|engine| table.set_aside(engine).count() == 0));
    for (first, second, order) in [(0, 2, Ordering::Greater), (2, 0, Ordering::Less)] {
        let (ratio, interval) = (table.ratio(first, second).unwrap(), table.interval(first, second).unwrap());
        assert_eq!(table.order_by_rate(first, second), Some(order));
        assert_eq!(ratio > 1.0, order == Ordering::Less, "{ratio}");
        assert!(interval.low <= ratio && ratio <= interval.high, "{ratio} in {interval:?}");
    }
}

#[test]
fn who_may_be_the_fastest_is_asked_of_as_few_as_three_blocks() {
    let rates: Vec<Vec<f64>> = drifting(&[1.3, 1.29, 1.0]).into_iter().map(|row| row[..3].to_vec()).collect();
    let table = of_rates(&rates).unwrap();
    assert_eq!(table.not_beaten(0.025), [true, true, false]);
    assert_eq!(table.not_beaten(0.0), [true; 3]);
    assert!((0..3).all(|engine| table.is_leader(engine)), "three blocks give no order");
}
