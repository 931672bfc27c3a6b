//! Tests of medians, intervals and ranks.

use super::*;
use proptest::prelude::*;

#[test]
fn computes_medians() {
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[1.0, f64::NAN]), None);
    assert_eq!(median(&[1.0, f64::INFINITY]), None);
}

#[test]
fn the_interval_of_a_median_uses_order_statistics() {
    assert_eq!(interval_of_median(&[1.0]), None);
    // Runs, the first and last place of the interval, and its level: 1 - 2 P(Binomial(runs, 1/2) < first).
    let cases = [
        (2, 1, 2, 0.5),
        (3, 1, 3, 0.75),
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.968_75),
        (7, 1, 7, 0.984_375),
        (9, 2, 8, 0.960_937_5),
        (10, 2, 9, 0.978_515_625),
        (20, 6, 15, 0.958_610_534_667_968_8),
    ];
    for (runs, low, high, level) in cases {
        let sample: Vec<f64> = (1..=runs).rev().map(f64::from).collect();
        let expected = Interval { low: f64::from(low), high: f64::from(high), level };
        assert_eq!(interval_of_median(&sample), Some(expected), "{runs} runs");
    }
}

/// The ranks of this many rows as text; the first row of each pair is ahead of the second.
fn ranks_of(rows: usize, ahead: &[(usize, usize)]) -> Vec<String> {
    ranks(rows, |first, second| ahead.contains(&(first, second))).iter().map(Rank::to_string).collect()
}

#[test]
fn ranks_are_ranges_of_places() {
    assert_eq!(ranks_of(3, &[(0, 1), (0, 2), (1, 2)]), ["1", "2", "3"]);
    assert_eq!(ranks_of(3, &[(0, 2), (1, 2)]), ["1-2", "1-2", "3"]);
    assert_eq!(ranks_of(4, &[(0, 3)]), ["1-3", "~", "~", "2-4"]);
    assert_eq!(ranks_of(1, &[]), ["1"]);
    assert_eq!(ranks_of(2, &[]), ["~", "~"]);
    assert_eq!(ranks_of(0, &[]), Vec::<String>::new());
}

#[test]
fn a_noisy_row_does_not_get_a_better_rank_than_a_faster_one() {
    // Row 1 is significantly behind row 0; row 2 has a lower median and is so noisy that nothing is known about it.
    assert_eq!(ranks_of(3, &[(0, 1)]), ["1-2", "~", "~"]);
}

#[test]
fn computes_geometric_means_and_ratios() {
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
        sample in proptest::collection::vec(0.001_f64..1e9, 2..40)
    ) {
        let middle = median(&sample).unwrap();
        let interval = interval_of_median(&sample).unwrap();
        let (least, most) = sample.iter().fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
        prop_assert!(interval.low <= middle && middle <= interval.high);
        prop_assert!(least <= interval.low && interval.high <= most);
        prop_assert!(sample.len() < 6 || interval.level >= LEVEL);
    }

    #[test]
    fn ranks_never_improve_down_a_table_and_claim_no_more_than_the_pairs(
        pairs in proptest::collection::vec((0_usize..9, 0_usize..9), 0..30)
    ) {
        let is_ahead = |first: usize, second: usize| first != second && pairs.contains(&(first, second));
        let ranks = ranks(9, is_ahead);
        for row in 0..9 {
            let ahead = (0..9).filter(|other| is_ahead(*other, row)).count() as u32;
            prop_assert!(ranks[row].best <= ahead + 1 && ranks[row].worst <= 9 && ranks[row].best >= 1);
            if row > 0 {
                prop_assert!(ranks[row - 1].best <= ranks[row].best && ranks[row - 1].worst <= ranks[row].worst);
            }
        }
    }
}
