//! Tests of comparisons within blocks. `benches/statistics` measures their error rates.

use super::*;

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
    let table = Blocks::new(&drifting(&[1.1, 1.0, 1.0])).unwrap();
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
    let table = Blocks::new(&rates).unwrap();
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
    let table = Blocks::new(&[x, y]).unwrap();
    let difference = table.difference(0, &table, 1).unwrap();
    assert!((difference.value - 0.066_391_987).abs() < 1e-8, "{difference:?}");
    assert_eq!(difference.degrees, 4.0);
    let interval = table.interval(0, 1).unwrap();
    assert!(
        (interval.low.ln() - 0.032_240_781).abs() < 1e-7 && (interval.high.ln() - 0.100_543_193).abs() < 1e-7,
        "{interval:?}"
    );
    assert!((difference.p() - 0.005_701_406).abs() < 1e-8, "{}", difference.p());
}

#[test]
fn intervals_and_orders_are_those_of_all_tables_that_are_read_together() {
    let (x, y) = (vec![101.0, 96.0, 110.0, 99.0, 104.0], vec![95.0, 91.0, 101.0, 96.0, 94.0]);
    let mut before = 0.0;
    for tables in [1, 2, 6, 7, 8, 20] {
        let table = Blocks::new(&[x.clone(), y.clone()]).unwrap().among(tables);
        let interval = table.interval(0, 1).unwrap();
        assert!(interval.high - interval.low > before, "{tables} tables: {interval:?}");
        before = interval.high - interval.low;
        let order = (tables < 8).then_some(Ordering::Greater);
        assert_eq!((table.order(0, 1), interval.low > 1.0), (order, tables < 8), "{tables} tables");
    }
}

#[test]
fn one_bad_run_of_ten_is_excluded() {
    let noise = |engine: usize, block: usize| 1.0 + 0.004 * ((engine * 7 + block * 5) % 9) as f64;
    let mut rates: Vec<Vec<f64>> = (0..3)
        .map(|engine| (0..10).map(|block| (3 - engine) as f64 * noise(engine, block)).collect())
        .collect();
    rates[0][6] /= 2.0;
    let table = Blocks::new(&rates).unwrap();
    assert_eq!(table.set_aside(0).collect::<Vec<_>>(), [6]);
    assert_eq!(table.set_aside(1).count() + table.set_aside(2).count(), 0);
    assert!((table.ratio(0, 1).unwrap() - 1.5).abs() < 0.02);
    assert_eq!(table.order(0, 1), Some(Ordering::Greater));
}

/// The table of these rates with these shares of the harness.
fn table_of(rates: &[Vec<f64>], shares: &[Vec<Option<f64>>]) -> Option<Table> {
    let engine = |(rate, share): (&f64, &Option<f64>)| share.map(|share| rate / (1.0 - share));
    let engines = rates.iter().zip(shares);
    let own: Vec<Vec<_>> =
        engines.map(|(rates, shares)| rates.iter().zip(shares).map(engine).collect()).collect();
    Table::new(rates, &own, Throughput::Exact, &vec![0; rates[0].len()])
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
    assert_eq!(table.rates().order(0, 1), Some(Ordering::Greater));
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
        let (one, other) = (of(first.0, first.1, 0), of(second.0, second.1, 1));
        Table::new(&[one.0, other.0], &[one.1, other.1], throughput, &[0; 5]).unwrap().order(0, 1)
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
    assert_eq!(table.rates().set_aside(0).count(), 0);
    rates[0][2] /= 2.0;
    let table = table_of(&rates, &shares).unwrap();
    assert_eq!(table.rates().set_aside(0).collect::<Vec<_>>(), [2]);
}

#[test]
fn refuses_rates_without_blocks() {
    assert!(Blocks::new(&[]).is_none());
    assert!(Blocks::new(&[vec![1.0]]).is_none());
    assert!(Blocks::new(&[vec![1.0, 2.0], vec![1.0]]).is_none());
    assert!(Blocks::new(&[vec![1.0, 0.0], vec![1.0, 2.0]]).is_none());
    assert!(Blocks::new(&[vec![1.0, f64::NAN], vec![1.0, 2.0]]).is_none());
    // Equal rates throughout: no order, and intervals of the resolution's width.
    let table = Blocks::new(&[vec![2.0; 5], vec![2.0; 5], vec![2.0; 5]]).unwrap();
    assert_eq!((table.order(0, 1), table.ratio(0, 1)), (None, Some(1.0)));
    let alone = Blocks::new(&[vec![2.0, 3.0, 4.0]]).unwrap();
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
    let (one, several) = (Blocks::new(&rates).unwrap(), Blocks::on(&rates, &machines).unwrap());
    assert_eq!(several.order(0, 1), None);
    let width = |table: &Blocks| {
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
    assert_eq!(Blocks::on(&rates, &machines).unwrap().order(0, 1), Some(Ordering::Greater));
}

#[test]
fn one_machine_by_any_number_is_the_same_as_no_machines() {
    let (rates, _) = on_machines([1.05, 1.0, 1.1, 1.0]);
    let (plain, numbered) = (Blocks::new(&rates).unwrap(), Blocks::on(&rates, &[7; 12]).unwrap());
    assert_eq!(plain.interval(0, 1), numbered.interval(0, 1));
    assert!(Blocks::on(&rates, &[0; 11]).is_none(), "a machine for each block");
}
