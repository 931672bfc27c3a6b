//! Goal: points are those of Otava, except where the rules say otherwise.

use super::*;

/// The first 96 values of the series in `tests/tigerbeetle_test.py` of Apache Otava (Apache License 2.0): the throughput of
/// TigerBeetle by commit, with a spike at 10 and steps at 15 and 71.
const TIGERBEETLE: [f64; 96] = [
    26705.0, 26475.0, 26641.0, 26806.0, 26835.0, 26911.0, 26564.0, 26812.0, 26874.0, 26682.0, 15672.0,
    26745.0, 26460.0, 26977.0, 26851.0, 23412.0, 23547.0, 23674.0, 23519.0, 23670.0, 23662.0, 23462.0,
    23750.0, 23717.0, 23524.0, 23588.0, 23687.0, 23793.0, 23937.0, 23715.0, 23570.0, 23730.0, 23690.0,
    23699.0, 23670.0, 23860.0, 23988.0, 23652.0, 23681.0, 23798.0, 23728.0, 23604.0, 23523.0, 23412.0,
    23685.0, 23773.0, 23771.0, 23718.0, 23409.0, 23739.0, 23674.0, 23597.0, 23682.0, 23680.0, 23711.0,
    23660.0, 23990.0, 23938.0, 23742.0, 23703.0, 23536.0, 24363.0, 24414.0, 24483.0, 24509.0, 24944.0,
    24235.0, 24560.0, 24236.0, 24667.0, 24730.0, 28346.0, 28437.0, 28436.0, 28057.0, 28217.0, 28456.0,
    28427.0, 28398.0, 28250.0, 28331.0, 28222.0, 28726.0, 28578.0, 28345.0, 28274.0, 28514.0, 28590.0,
    28449.0, 28305.0, 28411.0, 28788.0, 28404.0, 28821.0, 28580.0, 27483.0,
];

fn indexes(values: &[f64], options: &Options) -> Vec<usize> {
    changes(values, options).expect("valid").iter().map(|change| change.index).collect()
}

/// The points are those that Otava 0.8.0 finds in these values. Its own test has 15 and 71 for the whole series, with a p of 0.01
/// or 0.05 and a magnitude of 5 %.
#[test]
fn has_the_points_of_otava() {
    let otava =
        |window, p, magnitude| indexes(&TIGERBEETLE, &Options { window, p, magnitude, ..Options::otava() });
    assert_eq!(otava(30, 0.01, 0.05), [15, 71]);
    assert_eq!(otava(30, 0.05, 0.05), [15, 71]);
    assert_eq!(otava(30, 0.1, 0.05), [10, 11, 15, 71]);
    assert_eq!(otava(30, 0.001, 0.0), [15, 61, 71, 95]);
    assert_eq!(otava(50, 0.001, 0.0), [15, 61, 71, 95]);
    assert_eq!(otava(20, 0.001, 0.0), [15, 61, 71, 95]);
    assert_eq!(otava(30, 0.000_1, 0.0), [71, 95]);
    let most = [
        3, 6, 7, 10, 11, 13, 15, 16, 28, 29, 35, 37, 39, 41, 44, 48, 49, 56, 58, 61, 65, 66, 69, 71, 74, 76,
        82, 84, 91, 95,
    ];
    assert_eq!(otava(30, 0.2, 0.0), most);
}

/// What SciPy gives Otava for the first three points (the third one with a window of 20: with 50, it is not tested again).
#[test]
fn has_the_means_and_p_values_of_otava() {
    let found = changes(&TIGERBEETLE, &Options::otava()).expect("valid");
    let wanted = [
        (15, 26_000.666_666_666_668, 23_679.782_608_695_652, 3.050_715_978_842e-7),
        (61, 23_679.782_608_695_652, 24_514.1, 4.828_267_491_11e-22),
        (71, 24_514.1, 28_431.75, 2.771_691_139_617e-33),
    ];
    for (change, (index, before, after, p)) in found.iter().zip(wanted) {
        assert_eq!(change.index, index);
        assert!((change.before / before - 1.0).abs() < 1e-12 && (change.after / after - 1.0).abs() < 1e-12);
        assert!((change.p / p - 1.0).abs() < 1e-9, "{change:?}");
    }
}

/// The spike at 10 is set aside, so the first mean is of 14 values; the last value alone is no change.
#[test]
fn leaves_spikes_out_of_points_and_means() {
    let found = changes(&TIGERBEETLE, &Options::default()).expect("valid");
    let places: Vec<usize> = found.iter().map(|change| change.index).collect();
    assert_eq!(places, [15, 61, 71]);
    let without: Vec<f64> = (0..15).filter(|at| *at != 10).map(|at| TIGERBEETLE[at]).collect();
    assert!((found[0].before - without.iter().sum::<f64>() / 14.0).abs() < 1e-6, "{found:?}");
    assert!((found[0].ratio().expect("it is over 0") - 23_679.78 / 26_738.43).abs() < 1e-4, "{:?}", found[0]);
}

#[test]
fn equal_values_have_no_change_and_exact_steps_have_one() {
    assert_eq!(indexes(&[7.0; 40], &Options::default()), []);
    assert_eq!(indexes(&[0.1; 40], &Options::otava()), []);
    let step: Vec<f64> = (0..40).map(|at| if at < 25 { 100.0 } else { 101.0 }).collect();
    let found = changes(&step, &Options::default()).expect("valid");
    assert_eq!(found, [Change { index: 25, before: 100.0, after: 101.0, p: 0.0 }]);
    let small = Options { magnitude: 0.02, ..Options::default() };
    assert_eq!(indexes(&step, &small), []);
}

#[test]
fn a_change_from_zero_has_no_ratio() {
    let step: Vec<f64> = (0..20).map(|at| if at < 10 { 0.0 } else { 1.0 }).collect();
    let found = changes(&step, &Options::default()).expect("valid");
    assert_eq!((found[0].index, found[0].ratio()), (10, None));
}

#[test]
fn a_last_value_is_no_change_until_the_next_confirms_it() {
    let noise = |at: usize| [0.0, 0.7, -0.4, 0.2, -0.9][at % 5];
    let mut values: Vec<f64> = (0..30).map(|at| 100.0 + noise(at)).collect();
    values.push(120.0);
    assert_eq!(indexes(&values, &Options::default()), []);
    assert_eq!(indexes(&values, &Options::otava()), [30]);
    values.push(121.0);
    assert_eq!(indexes(&values, &Options::default()), [30]);
}

#[test]
fn refuses_what_has_no_answer() {
    let usual = Options::default();
    let of = |values: &[f64], options: Options| changes(values, &options).err();
    assert_eq!(of(&[1.0; 3], usual), Some(SeriesError::TooShort { wanted: 4, actual: 3 }));
    assert_eq!(of(&[], Options::otava()), Some(SeriesError::TooShort { wanted: 3, actual: 0 }));
    let mut values = vec![1.0; 10];
    values[4] = f64::INFINITY;
    assert_eq!(of(&values, usual), Some(SeriesError::NotFinite { index: 4, value: f64::INFINITY }));
    for options in [
        Options { window: 1, ..usual },
        Options { p: 0.0, ..usual },
        Options { p: f64::NAN, ..usual },
        Options { magnitude: -1.0, ..usual },
        Options { shortest: 0, ..usual },
        Options { spike: Some(0.0), ..usual },
    ] {
        assert!(matches!(of(&[1.0; 10], options), Some(SeriesError::OutOfRange { .. })), "{options:?}");
    }
}
