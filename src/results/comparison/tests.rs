//! Tests of the comparison of two samples.

use super::*;

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance
}

#[test]
fn knows_exact_mann_whitney_p_values() {
    // Known answers: scipy.stats.mannwhitneyu(..., method="exact"), and for ties the enumeration of all choices.
    let cases: &[(&[f64], &[f64], f64)] = &[
        (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1),
        (&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0], 0.111_111_111),
        (&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0], 0.007_936_508),
        (&[1.0], &[2.0], 1.0),
        (&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0], 1.0),
        (&[1.0, 1.0], &[1.0, 2.0], 1.0),
    ];
    for (first, second, p) in cases {
        let found = mann_whitney(first, second).unwrap();
        assert!(near(found, *p, 1e-8), "{first:?} against {second:?}: {found}, expected {p}");
        assert!(
            near(mann_whitney(second, first).unwrap(), found, 1e-12),
            "it does not matter which comes first"
        );
    }
    assert_eq!(mann_whitney(&[], &[1.0]), None);
    assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
}

#[test]
fn the_approximation_agrees_with_the_exact_count() {
    let first: Vec<f64> = (0..24).map(|place| f64::from(place * 7 % 24)).collect();
    for shift in [0.0, 1.5, 4.0, 8.0] {
        let second: Vec<f64> = first.iter().map(|value| value + shift).collect();
        let ranks = doubled_ranks(&first, &second);
        let rank_sum: usize = ranks[..first.len()].iter().sum();
        let (exact, normal) =
            (exact_p(&ranks, first.len(), rank_sum), normal_p(&ranks, first.len(), rank_sum));
        assert!(near(exact, normal, 0.01), "shift {shift}: exact {exact}, normal {normal}");
    }
}

#[test]
fn large_samples_use_the_approximation_without_harm() {
    let first: Vec<f64> = (0..100).map(f64::from).collect();
    let second: Vec<f64> = (1000..1100).map(f64::from).collect();
    assert!(mann_whitney(&first, &second).unwrap() < 1e-9);
    assert_eq!(mann_whitney(&vec![1.0; 100], &vec![1.0; 100]), Some(1.0));
}

#[test]
fn calls_a_clear_difference_and_its_direction() {
    let slow = [100.0, 101.0, 99.0, 100.5, 99.5];
    let fast = [120.0, 121.0, 119.0, 120.5, 119.5];
    let verdict = |first: &[f64], second: &[f64], better| {
        Comparison::new(first, second, better, Rule::default()).unwrap().verdict
    };
    assert_eq!(verdict(&slow, &fast, Better::Higher), Verdict::Faster);
    assert_eq!(verdict(&fast, &slow, Better::Higher), Verdict::Slower);
    assert_eq!(verdict(&slow, &fast, Better::Lower), Verdict::Slower);
    assert_eq!(verdict(&fast, &slow, Better::Lower), Verdict::Faster);
    let comparison = Comparison::new(&slow, &fast, Better::Higher, Rule::default()).unwrap();
    assert_eq!((comparison.first_runs, comparison.second_runs), (5, 5));
    assert_eq!(comparison.difference, 20.0);
    assert_eq!(comparison.ratio, Some(1.2));
    assert!(comparison.interval.unwrap().low > 0.0);
}

#[test]
fn makes_no_call_on_few_runs_overlap_or_a_change_too_small() {
    let verdict = |first: &[f64], second: &[f64]| {
        Comparison::new(first, second, Better::Higher, Rule::default()).unwrap().verdict
    };
    // Three runs against three: no separation can be rarer than one in ten.
    assert_eq!(verdict(&[1.0, 1.1, 1.2], &[9.0, 9.1, 9.2]), Verdict::NoCall);
    assert_eq!(verdict(&[1.0], &[9.0]), Verdict::NoCall);
    // Overlap.
    assert_eq!(verdict(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.0, 4.0, 5.0, 6.0, 7.0]), Verdict::NoCall);
    // Apart, but by 1 %.
    let first = [100.0, 100.1, 100.2, 100.3, 100.4];
    let second = [101.0, 101.1, 101.2, 101.3, 101.4];
    assert_eq!(verdict(&first, &second), Verdict::NoCall);
    assert_eq!(Comparison::new(&[], &[1.0], Better::Higher, Rule::default()), None);
}

#[test]
fn hardly_ever_calls_a_difference_between_equals() {
    let seed = 20_261_120;
    let mut draws = Draws::new(seed);
    let mut sample =
        || (0..10).map(|_| 100.0 + (draws.next_u64() % 1000) as f64 / 20.0).collect::<Vec<f64>>();
    let rounds = 60;
    let called = (0..rounds)
        .filter(|_| {
            let (first, second) = (sample(), sample());
            Comparison::new(&first, &second, Better::Higher, Rule::default()).unwrap().verdict
                != Verdict::NoCall
        })
        .count();
    assert!(called <= 3, "{called} of {rounds} pairs of equals were called different, seed {seed}");
}

#[test]
fn holm_scales_the_smallest_most() {
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!(near(*found, expected, 1e-12), "{adjusted:?}");
    }
    assert_eq!(holm(&[]), Vec::<f64>::new());
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

#[test]
fn verdicts_read_as_their_signs() {
    for verdict in [Verdict::Faster, Verdict::Slower, Verdict::NoCall] {
        let json = serde_json::to_string(&verdict).unwrap();
        assert_eq!(json, format!("\"{}\"", verdict.sign()));
    }
}
