//! Tests of the comparison of two runs. `benches/statistics` measures its error rates.

use super::*;

/// The rows of one figure, compared.
fn compared(cells: &[(&[f64], &[f64])], better: Better) -> Vec<Option<Comparison>> {
    let mut rows = Rows::default();
    let cells: Vec<(Vec<f64>, Vec<f64>)> =
        cells.iter().map(|(base, new)| (base.to_vec(), new.to_vec())).collect();
    rows.add(&cells, better, |_| 0.0);
    rows.finish()
}

const SLOW: [f64; 5] = [100.0, 101.0, 99.0, 100.5, 99.5];
const FAST: [f64; 5] = [120.0, 121.0, 119.0, 120.5, 119.5];

#[test]
fn reports_a_clear_difference_and_its_direction() {
    let verdict =
        |base: &[f64], new: &[f64], better| compared(&[(base, new)], better)[0].as_ref().unwrap().verdict;
    assert_eq!(verdict(&SLOW, &FAST, Better::Higher), Verdict::Better);
    assert_eq!(verdict(&FAST, &SLOW, Better::Higher), Verdict::Worse);
    assert_eq!(verdict(&SLOW, &FAST, Better::Lower), Verdict::Worse);
    assert_eq!(verdict(&FAST, &SLOW, Better::Lower), Verdict::Better);
    assert_eq!(verdict(&SLOW, &SLOW, Better::Lower), Verdict::Open);
    let row = compared(&[(&SLOW, &FAST)], Better::Higher).remove(0).unwrap();
    assert_eq!((row.base_runs, row.new_runs), (5, 5));
    assert!((row.base_mean - 100.0).abs() < 0.01 && (row.new_mean - 120.0).abs() < 0.01, "{row:?}");
    assert!((row.ratio - 1.2).abs() < 1e-3 && row.interval.low < 1.2 && row.interval.high > 1.2, "{row:?}");
}

#[test]
fn a_single_row_is_compared_with_a_pooled_variance() {
    // Expected value: scipy.stats.ttest_ind of the logs with equal variances, because two samples alone are pooled.
    let (base, new) = ([100.0, 104.0, 98.0, 101.0], [106.0, 103.0, 108.0, 107.0]);
    let row = compared(&[(&base, &new)], Better::Higher).remove(0).unwrap();
    assert!((row.p - EXPECTED_P).abs() < 1e-8, "{}", row.p);
}

const EXPECTED_P: f64 = 0.019_409_121;

#[test]
fn p_is_corrected_for_all_rows_of_all_figures() {
    let (base, new) = ([100.0, 104.0, 98.0, 101.0, 99.0], [106.0, 103.0, 108.0, 107.0, 105.0]);
    let alone = compared(&[(&base, &new)], Better::Higher)[0].as_ref().unwrap().p;
    let mut rows = Rows::default();
    rows.add(&[(base.to_vec(), new.to_vec())], Better::Higher, |_| 0.0);
    for _ in 0..9 {
        rows.add(&[(SLOW.to_vec(), SLOW.to_vec())], Better::Lower, |_| 0.0);
    }
    let all = rows.finish();
    assert!((all[0].as_ref().unwrap().p / alone - 10.0).abs() < 1e-9);
    assert_eq!(all[3].as_ref().unwrap().verdict, Verdict::Open);
}

#[test]
fn few_runs_need_a_smaller_p() {
    // A p between 0.02 and 0.05 gives a verdict for five runs but not for four.
    let base = [100.0, 103.0, 98.0, 102.0, 100.0];
    for runs in [3, 4, 5] {
        for shift in 1..60 {
            let new: Vec<f64> =
                base[..runs].iter().map(|value| value * (1.0 + f64::from(shift) / 500.0)).collect();
            let row = compared(&[(&base[..runs], &new)], Better::Higher).remove(0).unwrap();
            let limit = if runs < 5 { FAMILY_ERROR_OF_FEW } else { FAMILY_ERROR };
            assert_eq!(row.verdict == Verdict::Better, row.p < limit, "{runs} runs, {row:?}");
        }
    }
}

#[test]
fn cells_that_cannot_be_compared_are_skipped() {
    let rows = compared(
        &[
            (&SLOW, &FAST),
            (&[1.0, 2.0], &FAST),
            (&[0.0, 1.0, 2.0], &FAST),
            (&SLOW, &[1.0, f64::NAN, 1.0]),
            (&[], &[]),
        ],
        Better::Higher,
    );
    let known: Vec<bool> = rows.iter().map(Option::is_some).collect();
    assert_eq!(known, [true, false, false, false, false]);
    assert_eq!(rows[0].as_ref().unwrap().verdict, Verdict::Better);
}

#[test]
fn an_outlier_is_excluded_and_counted() {
    let mut bad = FAST;
    bad[2] = 55.0;
    let rows = compared(&[(&SLOW, &bad), (&SLOW, &SLOW), (&FAST, &FAST)], Better::Higher);
    let row = rows[0].as_ref().unwrap();
    assert_eq!((row.set_aside, row.verdict), (1, Verdict::Better));
    assert!((row.new_mean - 120.25).abs() < 0.01, "the printed mean is that of the ratio: {row:?}");
}

#[test]
fn holm_scales_the_smallest_p_most() {
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
    }
    assert_eq!(holm(&[]), Vec::<f64>::new());
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

#[test]
fn a_difference_of_one_step_is_inconclusive() {
    // A clock with steps of 10 ns: the same median is 20 or 30 by chance.
    let (base, new) = (vec![20.0; 5], vec![30.0, 20.0, 20.0, 30.0, 20.0]);
    let verdict = |step: f64| {
        let mut rows = Rows::default();
        rows.add(&[(base.clone(), new.clone())], Better::Lower, |_| step);
        rows.finish().remove(0).unwrap()
    };
    assert_eq!((verdict(10.0).verdict, verdict(10.0).set_aside), (Verdict::Open, 0));
    // Values that are far apart give a verdict.
    let mut rows = Rows::default();
    rows.add(&[(base.clone(), vec![90.0; 5])], Better::Lower, |_| 10.0);
    assert_eq!(rows.finish()[0].as_ref().unwrap().verdict, Verdict::Worse);
}
