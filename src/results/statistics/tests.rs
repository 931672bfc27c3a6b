//! Tests of medians, intervals and ranks.

use super::*;
use proptest::prelude::*;

/// Values from a distribution whose true median is known, from a seed.
fn exponential_sample(draws: &mut Draws, size: usize) -> Vec<f64> {
    let unit = |draws: &mut Draws| (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..size).map(|_| -(1.0 - unit(draws)).ln()).collect()
}

#[test]
fn knows_medians() {
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[1.0, f64::NAN]), None);
    assert_eq!(median(&[1.0, f64::INFINITY]), None);
}

#[test]
fn splitmix_gives_its_published_numbers() {
    // From the reference implementation of splitmix64 with seed 1234567.
    let mut draws = Draws::new(1_234_567);
    let numbers: Vec<u64> = (0..3).map(|_| draws.next_u64()).collect();
    assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}

#[test]
fn up_to_five_runs_have_their_range_as_interval() {
    assert_eq!(interval_of_median(&[1.0]), None);
    assert_eq!(interval_of_median(&[1.0, 2.0]), None);
    for size in 3..=5 {
        let sample: Vec<f64> = (1..=size).map(f64::from).collect();
        let range = Interval { low: 1.0, high: f64::from(size) };
        assert_eq!(interval_of_median(&sample), Some(range), "{size} runs");
    }
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    let interval = interval_of_median(&ten).unwrap();
    assert!(interval.low > 1.0 && interval.high < 10.0, "{interval:?}");
}

#[test]
fn the_same_sample_always_has_the_same_interval() {
    let sample = [9.0, 2.0, 7.5, 7.25, 3.0, 8.0, 4.0];
    assert_eq!(interval_of_median(&sample), interval_of_median(&sample));
}

#[test]
fn the_interval_covers_the_true_median_about_as_often_as_it_says() {
    let true_median = 2.0_f64.ln();
    for (size, least, most) in [(3, 0.67, 0.83), (5, 0.88, 0.99), (10, 0.88, 0.99)] {
        let seed = 7 + size as u64;
        let mut draws = Draws::new(seed);
        let rounds = 200;
        let covered = (0..rounds)
            .filter(|_| {
                let interval = interval_of_median(&exponential_sample(&mut draws, size)).unwrap();
                interval.low <= true_median && true_median <= interval.high
            })
            .count();
        let share = covered as f64 / f64::from(rounds);
        assert!((least..=most).contains(&share), "{size} runs: covered {share}, seed {seed}");
    }
    assert_eq!(coverage_of_range(3), 0.75);
    assert_eq!(coverage_of_range(5), 0.9375);
}

#[test]
fn overlapping_intervals_tie_and_others_do_not() {
    let span = |low: f64, high: f64| Some(Interval { low, high });
    let rank = |place, tied| Some(Rank { place, tied });
    assert_eq!(ranks(&[span(10.0, 12.0), span(7.0, 9.0)]), [rank(1, false), rank(2, false)]);
    assert_eq!(ranks(&[span(7.0, 9.0), span(9.0, 12.0)]), [rank(1, true), rank(1, true)]);
    // Apart, but both overlap the one between them.
    let chain = [span(10.0, 12.0), span(9.0, 10.5), span(8.0, 9.5)];
    assert_eq!(ranks(&chain), [rank(1, true), rank(1, true), rank(2, true)]);
    assert_eq!(ranks(&[None, span(1.0, 2.0), None]), [None, rank(1, false), None]);
    assert_eq!(ranks(&[]), []);
}

#[test]
fn knows_geometric_means_and_ratios() {
    assert!((geometric_mean(&[1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-12);
    assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    assert_eq!(geometric_mean(&[]), None);
    assert_eq!(ratio(3.0, 2.0), Some(1.5));
    assert_eq!(ratio(3.0, 0.0), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_interval_contains_the_median_and_lies_in_the_range(
        sample in proptest::collection::vec(0.001_f64..1e9, 3..25)
    ) {
        let middle = median(&sample).unwrap();
        let interval = interval_of_median(&sample).unwrap();
        let (least, most) = sample.iter().fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
        prop_assert!(interval.low <= middle && middle <= interval.high);
        prop_assert!(least <= interval.low && interval.high <= most);
    }

    #[test]
    fn a_row_is_behind_exactly_the_rows_wholly_above(
        ends in proptest::collection::vec((0_u8..20, 0_u8..6), 1..12)
    ) {
        let spans: Vec<Option<Interval>> = ends
            .iter()
            .map(|(low, width)| Some(Interval { low: f64::from(*low), high: f64::from(low + width) }))
            .collect();
        let ranks = ranks(&spans);
        for (row, rank) in ranks.iter().enumerate() {
            let own = spans[row].unwrap();
            let ahead = spans.iter().flatten().filter(|other| other.low > own.high).count();
            prop_assert_eq!(rank.unwrap().place as usize, ahead + 1);
        }
        prop_assert!(ranks.iter().flatten().any(|rank| rank.place == 1), "somebody is first");
    }
}
