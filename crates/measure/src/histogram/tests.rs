//! The histogram against exact sorting, against another implementation, and against malformed text.

use super::{BUCKETS, HIGHEST_NS, Histogram, highest_of, index_of, lowest_of};

const QUANTILES: [(u64, u64); 13] = [
    (1, 1000),
    (1, 100),
    (1, 10),
    (1, 4),
    (1, 2),
    (3, 4),
    (9, 10),
    (95, 100),
    (99, 100),
    (999, 1000),
    (9999, 10_000),
    (99_999, 100_000),
    (1, 1),
];

/// A small random generator, because this module may not use the `generator` module.
struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

type Draw = fn(&mut Source) -> u64;

const DISTRIBUTIONS: [(&str, Draw); 6] = [
    ("constant", |_| 1_234_567),
    ("uniform", |s| s.next() % 10_000_000),
    ("exponential", |s| (-20_000.0 * s.unit().ln()) as u64),
    ("lognormal", |s| {
        let normal = (0..12).map(|_| s.unit()).sum::<f64>() - 6.0;
        (8.0 + 1.5 * normal).exp() as u64
    }),
    ("pareto", |s| ((500.0 * s.unit().powf(-1.0 / 1.1)) as u64).min(HIGHEST_NS)),
    (
        "two humps",
        |s| if s.next() % 100 == 0 { 40_000_000 + s.next() % 1_000_000 } else { 300 + s.next() % 40 },
    ),
];

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&ns| histogram.record(ns));
    histogram
}

/// The exact value of rank ceil(q x n) of sorted values.
fn exact(sorted: &[u64], (numerator, denominator): (u64, u64)) -> u64 {
    let rank = (sorted.len() as u64 * numerator).div_ceil(denominator);
    sorted[rank.max(1) as usize - 1]
}

#[test]
fn buckets_follow_each_other_without_gaps_and_are_narrow() {
    for index in 0..BUCKETS {
        let (lowest, highest) = (lowest_of(index), highest_of(index));
        assert_eq!((index_of(lowest), index_of(highest)), (index, index), "bucket {index}");
        assert!((highest - lowest) * 1024 <= lowest.max(1024), "bucket {index} from {lowest} to {highest}");
    }
    assert_eq!((lowest_of(0), highest_of(BUCKETS - 1)), (0, HIGHEST_NS));
    const { assert!(HIGHEST_NS >= 3_600_000_000_000) };
}

#[test]
fn quantiles_are_those_of_the_sorted_values_within_a_thousandth() {
    for (name, draw) in DISTRIBUTIONS {
        let mut source = Source(7);
        let mut values: Vec<u64> = (0..50_000).map(|_| draw(&mut source)).collect();
        let histogram = recorded(&values);
        values.sort_unstable();
        for quantile in QUANTILES {
            let (wanted, actual) =
                (exact(&values, quantile), histogram.quantile(quantile.0, quantile.1).unwrap());
            let is_near = actual >= wanted && (actual - wanted) * 1000 <= wanted;
            assert!(is_near, "{name} {quantile:?}: {actual} instead of {wanted}, seed 7");
        }
        assert_eq!(histogram.min_ns(), values.first().copied(), "{name}");
        assert_eq!(histogram.max_ns(), values.last().copied(), "{name}");
        assert_eq!(histogram.sum_ns(), values.iter().sum::<u64>(), "{name}");
    }
}

#[test]
fn agrees_with_another_hdr_histogram() {
    for (name, draw) in DISTRIBUTIONS {
        let mut source = Source(11);
        let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 3).unwrap();
        let mut ours = Histogram::new();
        for _ in 0..20_000 {
            let ns = draw(&mut source);
            other.record(ns).unwrap();
            ours.record(ns);
        }
        let theirs: Vec<(u64, u64)> =
            other.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        let own: Vec<(u64, u64)> = ours.buckets().map(|bucket| (bucket.highest_ns, bucket.count)).collect();
        assert_eq!(own, theirs, "{name}, seed 11");
        for (numerator, denominator) in [(1, 2), (3, 4), (1, 1)] {
            let wanted = other.value_at_quantile(numerator as f64 / denominator as f64);
            let actual = ours.quantile(numerator, denominator).unwrap();
            assert_eq!(actual, wanted.min(ours.max_ns().unwrap()), "{name} {numerator}/{denominator}");
        }
    }
}

#[test]
fn merging_is_the_same_as_recording_the_union() {
    let (mut both, mut left, mut right) = (Histogram::new(), Histogram::new(), Histogram::new());
    for seed in 0..10_000 {
        let mut source = Source(seed);
        let (left_count, right_count) = (source.next() % 20, source.next() % 20);
        [&mut both, &mut left, &mut right].into_iter().for_each(Histogram::clear);
        for at in 0..left_count + right_count {
            let shift = source.next() % 64;
            let ns = source.next() >> shift;
            both.record(ns);
            if at < left_count { left.record(ns) } else { right.record(ns) }
        }
        match seed % 3 {
            0 => left.merge(&right),
            1 => left.merge(&right.packed()),
            _ => {
                let mut unpacked = left.packed();
                unpacked.merge(&right);
                left = unpacked;
            }
        }
        assert_eq!(left, both, "seed {seed}");
    }
}

#[test]
fn recording_many_at_once_is_recording_each() {
    let (mut once, mut each) = (Histogram::new(), Histogram::new());
    for (ns, n) in [(0, 3), (1999, 2), (5_000_000, 1), (HIGHEST_NS + 9, 4), (77, 0)] {
        once.record_n(ns, n);
        (0..n).for_each(|_| each.record(ns));
    }
    assert_eq!(once, each);
    assert_eq!(once.count(), 10);
    once.record_n(u64::MAX, u64::MAX);
    assert_eq!((once.count(), once.sum_ns()), (u64::MAX, u64::MAX));
}

#[test]
fn values_past_the_end_are_counted_and_the_maximum_stays_exact() {
    let histogram = recorded(&[5, HIGHEST_NS, HIGHEST_NS + 1, u64::MAX]);
    assert_eq!((histogram.count(), histogram.saturated), (4, 2));
    assert_eq!(histogram.max_ns(), Some(u64::MAX));
    assert_eq!(histogram.quantile(1, 1), Some(u64::MAX));
    assert_eq!(histogram.quantile(1, 4), Some(5));
    assert_eq!(histogram.sum_ns(), u64::MAX);
}

#[test]
fn an_empty_one_knows_nothing() {
    for histogram in [Histogram::empty(), Histogram::new(), Histogram::default(), Histogram::new().packed()] {
        assert_eq!(histogram.count(), 0);
        assert_eq!((histogram.min_ns(), histogram.max_ns(), histogram.mean_ns()), (None, None, None));
        assert_eq!(histogram.quantile(1, 2), None);
        assert_eq!(histogram.buckets().count(), 0);
        assert_eq!(histogram, Histogram::empty());
    }
}

#[test]
fn an_empty_histogram_can_record() {
    let mut histogram = Histogram::empty();
    histogram.record(3000);
    histogram.record(1000);
    assert_eq!(histogram, recorded(&[1000, 3000]));
    let mut packed = histogram.packed();
    packed.record(2000);
    assert_eq!(packed, recorded(&[1000, 2000, 3000]));
    assert_eq!(packed.mean_ns(), Some(2000.0));
}

#[test]
fn one_takes_less_than_a_megabyte_and_recording_never_adds_to_it() {
    let mut histogram = Histogram::new();
    let before = histogram.counts.capacity();
    assert!(before * size_of::<u64>() < 1 << 20, "{before} buckets");
    for shift in 0..64 {
        histogram.record(1 << shift);
    }
    assert_eq!(histogram.counts.capacity(), before);
}

#[test]
fn clearing_removes_everything() {
    let mut histogram = recorded(&[0, 17, 1 << 30, u64::MAX]);
    histogram.clear();
    assert_eq!(histogram, Histogram::empty());
    assert!(histogram.counts.iter().all(|&count| count == 0));
    histogram.record(17);
    assert_eq!(histogram, recorded(&[17]));
}

#[test]
fn small_samples_have_no_high_quantiles() {
    let of = |n: u64| recorded(&(1..=n).collect::<Vec<_>>());
    assert_eq!(of(999).quantile_if_enough(99, 100), None);
    assert_eq!(of(1000).quantile_if_enough(99, 100), Some(990));
    assert_eq!(of(9999).quantile_if_enough(999, 1000), None);
    assert!(of(10_000).quantile_if_enough(999, 1000).is_some_and(|ns| (9990..=10_000).contains(&ns)));
    assert_eq!(of(19).quantile_if_enough(1, 2), None);
    assert_eq!(of(20).quantile_if_enough(1, 2), Some(10));
    assert_eq!(of(3).quantile_if_enough(1, 1), Some(3));
}

#[test]
fn refuses_invalid_quantiles() {
    let histogram = recorded(&[1, 2, 3]);
    assert_eq!(histogram.quantile(1, 0), None);
    assert_eq!(histogram.quantile(3, 2), None);
    assert_eq!(histogram.quantile_if_enough(3, 2), None);
    assert_eq!(histogram.quantile_if_enough(0, 0), None);
    assert_eq!(histogram.quantile(0, 1), Some(1));
    assert_eq!(histogram.quantile(u64::MAX, u64::MAX), Some(3));
}

#[test]
fn a_stored_histogram_reads_back_equal() {
    for (name, draw) in DISTRIBUTIONS {
        let mut source = Source(3);
        let histogram = recorded(&(0..2000).map(|_| draw(&mut source)).collect::<Vec<_>>());
        let text = serde_json::to_string(&histogram).unwrap();
        let back: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!(back, histogram, "{name}, seed 3");
        assert_eq!(serde_json::to_string(&back).unwrap(), text, "{name}, seed 3");
    }
    for special in
        [Histogram::empty(), recorded(&[0]), recorded(&[u64::MAX; 3]), recorded(&[1, HIGHEST_NS + 1])]
    {
        let text = serde_json::to_string(&special).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), special, "{text}");
    }
}

#[test]
fn the_stored_form_is_readable() {
    let text = serde_json::to_string(&recorded(&[7, 7, 5001])).unwrap();
    assert_eq!(
        text,
        r#"{"unit":"ns","significant_digits":3,"count":3,"sum_ns":5015,"min_ns":7,"max_ns":5001,"buckets":[[7,2],[5000,1]]}"#
    );
    assert_eq!(
        serde_json::to_string(&Histogram::empty()).unwrap(),
        r#"{"unit":"ns","significant_digits":3,"count":0,"sum_ns":0,"buckets":[]}"#
    );
}

#[test]
fn has_a_schema_that_names_its_fields() {
    let schema = serde_json::to_value(schemars::schema_for!(Histogram)).unwrap();
    for field in ["unit", "significant_digits", "count", "sum_ns", "buckets"] {
        assert!(schema["properties"].get(field).is_some(), "{field} in {schema}");
    }
}

/// One value of 5 ns, and the replacements that are made in its text.
const ONE: &str =
    r#"{"unit":"ns","significant_digits":3,"count":1,"sum_ns":5,"min_ns":5,"max_ns":5,"buckets":[[5,1]]}"#;
const FAULTS: [(&str, &str); 20] = [
    (r#""ns""#, r#""us""#),
    (r#"digits":3"#, r#"digits":2"#),
    (r#""count":1"#, r#""count":2"#),
    (r#""count":1"#, r#""count":-1"#),
    (r#""count":1"#, r#""count":1.5"#),
    (r#""sum_ns":5"#, r#""sum_ns":4"#),
    (r#""sum_ns":5"#, r#""sum_ns":6"#),
    (r#""min_ns":5"#, r#""min_ns":4"#),
    (r#""max_ns":5"#, r#""max_ns":9"#),
    (r#""min_ns":5,"#, ""),
    (r#""max_ns":5,"#, ""),
    (r#""sum_ns":5,"#, ""),
    (r#""min_ns":5"#, r#""saturated":1,"min_ns":5"#),
    ("[[5,1]]", "[[5]]"),
    ("[[5,1]]", "[[5,1],[5,0]]"),
    ("[[5,1]]", "[[5,1],[4,1]]"),
    ("[[5,1]]", "[[5,1],[5001,0]]"),
    ("[[5,1]]", "[[18446744073709551615,1]]"),
    ("[[5,1]]", "[[4,18446744073709551615],[5,2]]"),
    ("[[5,1]]", "[]"),
];

#[test]
fn refuses_text_that_is_not_a_histogram() {
    assert_eq!(serde_json::from_str::<Histogram>(ONE).unwrap(), recorded(&[5]));
    for (from, to) in FAULTS {
        let text = ONE.replacen(from, to, 1);
        assert_ne!(text, ONE, "{from}");
        let outcome = serde_json::from_str::<Histogram>(&text);
        assert!(outcome.is_err(), "accepted: {text}");
    }
    let between = ONE.replace(":5,", ":5001,").replace("[5,", "[5001,");
    assert!(serde_json::from_str::<Histogram>(&between).is_err(), "accepted: {between}");
}

#[test]
fn reports_what_is_wrong_with_a_text() {
    let text = ONE.replace(r#""count":1"#, r#""count":2"#);
    let error = serde_json::from_str::<Histogram>(&text).unwrap_err().to_string();
    assert!(error.contains("the buckets hold 1 values, but count is 2"), "{error}");
}

#[test]
fn truncated_text_never_panics() {
    let whole = serde_json::to_string(&recorded(&[3, 5000, 70_000_000, u64::MAX])).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone().into_bytes();
        bytes.truncate(at);
        assert!(serde_json::from_slice::<Histogram>(&bytes).is_err(), "the first {at} bytes were accepted");
        for digit in b'0'..=b'9' {
            let mut changed = whole.clone().into_bytes();
            if changed[at].is_ascii_digit() {
                changed[at] = digit;
                if let Ok(histogram) = serde_json::from_slice::<Histogram>(&changed) {
                    let _ = (histogram.quantile(99, 100), histogram.clone().record(1));
                }
            }
        }
    }
}

#[test]
fn values_added_together_are_those_added_one_by_one() {
    let values = [0, 1, 7, 2_047, 2_048, 5_000, 5_000, 1 << 30, HIGHEST_NS, HIGHEST_NS + 1, u64::MAX];
    let (mut together, mut one) = (Histogram::empty(), Histogram::new());
    for part in [&values[..3], &[], &values[3..]] {
        assert_eq!(together.record_all(part.iter().copied()), part.len() as u64);
        part.iter().for_each(|ns| one.record(*ns));
    }
    assert_eq!(together, one);
    let facts = |histogram: &Histogram| {
        (histogram.count(), histogram.sum_ns(), histogram.min_ns(), histogram.max_ns())
    };
    assert_eq!(facts(&together), facts(&one));
    assert_eq!(together.packed(), one.packed());
}
