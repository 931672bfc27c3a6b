//! Texts that users type are parsed, printed back, and refused with the closest name.

use super::distribution;
use crate::generator::spec::SizeText;
use crate::generator::*;
use proptest::prelude::*;

fn size() -> impl Strategy<Value = SizeSpec> {
    let pair = || (1..=u32::MAX, 1..=u32::MAX).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        (1..=u32::MAX).prop_map(SizeSpec::Fixed),
        pair().prop_map(|(a, b)| SizeSpec::Uniform(a, b)),
        pair().prop_map(|(a, b)| SizeSpec::Zipf(a, b)),
        (1.0..1e8_f64, 0.0..1e8_f64).prop_map(|(a, b)| SizeSpec::Normal(a, b)),
        (pair(), 0.0..=10.0_f64, 0.001..=1e9_f64).prop_map(|((a, b), k, sigma)| SizeSpec::Pareto(
            ParetoShape { k, sigma },
            a,
            b
        )),
        prop::collection::vec((1..=u32::MAX, 1e-9..1e9_f64), 1..9).prop_map(SizeSpec::Histogram),
    ]
}

proptest! {
    #[test]
    fn reads_back_every_distribution_it_prints(wanted in distribution()) {
        prop_assert_eq!(wanted.to_string().parse::<Distribution>().unwrap(), wanted);
    }

    #[test]
    fn reads_back_every_size_it_prints(wanted in size()) {
        prop_assert_eq!(wanted.to_string().parse::<SizeSpec>().unwrap(), wanted.clone());
        let json = serde_json::to_string(&wanted).unwrap();
        prop_assert_eq!(serde_json::from_str::<SizeSpec>(&json).unwrap(), wanted);
    }

    #[test]
    fn never_panics_on_any_text(text in "\\PC{0,40}") {
        let _ = text.parse::<Distribution>();
        let _ = text.parse::<SizeSpec>();
    }
}

#[test]
fn reads_the_forms_of_the_help() {
    const CASES: &[(&str, Distribution)] = &[
        ("sequential", Distribution::Sequential),
        (" uniform ", Distribution::Uniform),
        ("permutation", Distribution::Permutation),
        ("zipf:0.99", Distribution::Zipf(0.99)),
        ("zipf: 1.5", Distribution::Zipf(1.5)),
        ("ycsb-zipfian", Distribution::YcsbZipfian),
        ("latest", Distribution::Latest),
        ("hotspot:0.2,0.8", Distribution::Hotspot(0.2, 0.8)),
        ("moving-hotspot:0.1,0.9,1000", Distribution::MovingHotspot(0.1, 0.9, 1000.0)),
        ("hot-ranges:3,1,2,0.5,0.1,0.4", Distribution::HotRanges(3.0, 1.0, 2.0, 0.5, 0.1, 0.4)),
        ("exponential", Distribution::Exponential(95.0, 0.857_142_857_1)),
        ("exponential:90,0.5", Distribution::Exponential(90.0, 0.5)),
    ];
    for (text, wanted) in CASES {
        assert_eq!(text.parse::<Distribution>().as_ref(), Ok(wanted), "{text}");
    }
    assert_eq!("exponential:95,0.8571428571".parse::<Distribution>().unwrap().to_string(), "exponential");
}

#[test]
fn reads_the_texts_of_the_table() {
    for row in Distribution::ROWS {
        let firsts = row.first.iter().map(|(text, ..)| text);
        assert!(!row.first.is_empty() && !row.tested.is_empty(), "{} is not tested", row.name);
        for text in firsts.chain(row.tested).chain([&row.example]) {
            let read = text.parse::<Distribution>().unwrap();
            assert_eq!((read.row().name, read.to_string().as_str()), (row.name, *text));
        }
    }
}

#[test]
fn reads_sizes_with_suffixes() {
    let cases = [
        ("100", SizeSpec::Fixed(100)),
        ("4k", SizeSpec::Fixed(4096)),
        ("4 KiB", SizeSpec::Fixed(4096)),
        ("1_000", SizeSpec::Fixed(1000)),
        ("1M", SizeSpec::Fixed(1 << 20)),
        ("4kB", SizeSpec::Fixed(4000)),
        ("1.5KiB", SizeSpec::Fixed(1536)),
        ("uniform:250-2500", SizeSpec::Uniform(250, 2500)),
        ("uniform:1k-4KiB", SizeSpec::Uniform(1024, 4096)),
        ("uniform:1kB-1MB", SizeSpec::Uniform(1000, 1_000_000)),
        ("zipf:1-1024", SizeSpec::Zipf(1, 1024)),
        ("normal:400,50.5", SizeSpec::Normal(400.0, 50.5)),
        ("normal:4k,1k", SizeSpec::Normal(4096.0, 1024.0)),
        ("histogram:100*9,1000*1", SizeSpec::Histogram(vec![(100, 9.0), (1000, 1.0)])),
        ("pareto: 0.2615, 25.45, 10-1k", SizeSpec::Pareto(ParetoShape { k: 0.2615, sigma: 25.45 }, 10, 1024)),
        ("histogram:1k,2k*0.5", SizeSpec::Histogram(vec![(1024, 1.0), (2048, 0.5)])),
    ];
    for (text, wanted) in cases {
        assert_eq!(text.parse::<SizeSpec>(), Ok(wanted), "{text}");
    }
}

#[test]
fn a_fixed_size_is_a_number_in_toml_and_the_rest_are_texts() {
    assert_eq!(SizeText::from(SizeSpec::Fixed(7)), SizeText::Number(7));
    assert_eq!(SizeText::from(SizeSpec::Uniform(1, 2)), SizeText::Text("uniform:1-2".into()));
    assert_eq!(serde_json::from_str::<SizeSpec>("100").unwrap(), SizeSpec::Fixed(100));
    assert_eq!(serde_json::from_str::<SizeSpec>("\"4k\"").unwrap(), SizeSpec::Fixed(4096));
    assert_eq!(serde_json::from_str::<SizeSpec>("0").unwrap(), SizeSpec::Fixed(0));
    assert!(serde_json::from_str::<SizeSpec>("-1").is_err());
}

#[test]
fn errors_contain_the_closest_name_or_the_form() {
    const CASES: &[(&str, &str)] = &[
        ("zipff:1", "unknown distribution `zipff`; did you mean `zipf:THETA`?"),
        ("zipff", "unknown distribution `zipff`; did you mean `zipf:THETA`?"),
        ("unifrom", "unknown distribution `unifrom`; did you mean `uniform`?"),
        ("zipfian", "unknown distribution `zipfian`; did you mean `zipf:THETA`?"),
        ("Latest", "unknown distribution `Latest`; did you mean `latest`?"),
        ("hot:1,2", "unknown distribution `hot`; did you mean `hotspot:FRACTION,SHARE`?"),
        ("zipf", "`zipf` is not of the form `zipf:THETA`; for example `zipf:0.99`"),
        ("zipf:x", "`zipf:x` is not of the form `zipf:THETA`; for example `zipf:0.99`"),
        ("zipf:0", "THETA of `zipf:0` must be a finite number over 0, got 0"),
        ("zipf:inf", "THETA of `zipf:inf` must be a finite number over 0, got inf"),
        ("zipf:NaN", "THETA of `zipf:NaN` must be a finite number over 0, got NaN"),
        (
            "hotspot:0.2",
            "`hotspot:0.2` is not of the form `hotspot:FRACTION,SHARE`; for example `hotspot:0.2,0.8`",
        ),
        ("hotspot:1.5,0.8", "FRACTION of `hotspot:1.5,0.8` must be over 0 and at most 1, got 1.5"),
        ("hotspot:0.2,0", "SHARE of `hotspot:0.2,0` must be over 0 and at most 1, got 0"),
        (
            "moving-hotspot:0.1,0.9",
            "`moving-hotspot:0.1,0.9` is not of the form `moving-hotspot:FRACTION,SHARE,DRAWS`; for example \
             `moving-hotspot:0.01,0.9,100000`",
        ),
        (
            "moving-hotspot:0.1,0.9,0.5",
            "DRAWS of `moving-hotspot:0.1,0.9,0.5` must be a whole number from 1 to 1000000000000000, got 0.5",
        ),
        (
            "hot-ranges:20000,1,1,1,1,1",
            "COUNT of `hot-ranges:20000,1,1,1,1,1` must be a whole number from 1 to 10000, got 20000",
        ),
        (
            "hot-ranges:30,1,-1,1,1,1",
            "B of `hot-ranges:30,1,-1,1,1,1` must be a finite number over 0, got -1",
        ),
        ("hot-ranges:30,1,1,1,1,2", "POWER of `hot-ranges:30,1,1,1,1,2` must be over 0 and at most 1, got 2"),
        ("exponential:100,1", "PERCENTILE of `exponential:100,1` must be over 0 and under 100, got 100"),
        ("uniform:3", "`uniform` does not accept parameters, got `uniform:3`"),
    ];
    for (text, wanted) in CASES {
        assert_eq!(text.parse::<Distribution>().unwrap_err().0, *wanted, "{text}");
    }
    let far = "xyzzy".parse::<Distribution>().unwrap_err().0;
    assert!(far.starts_with("unknown distribution `xyzzy`; expected one of sequential, uniform,"), "{far}");
}

#[test]
fn refuses_sizes_out_of_range() {
    for text in [
        "",
        "-1",
        "5G",
        "1x",
        "uniform",
        "uniform:5",
        "uniform:9-5",
        "zipf:9-5",
        "zipf:a-b",
        "normal:0,1",
        "normal:5,-1",
        "normal:5",
        "normal:NaN,1",
        "normal:1,inf",
        "pareto:1,2",
        "pareto:1,2,3",
        "pareto:1,2,9-5",
        "pareto:1,2,0-5",
        "pareto:-1,2,1-5",
        "pareto:1,0,1-5",
        "pareto:1,x,1-5",
        "pareto:11,1,1-5",
        "histogram:",
        "histogram:5*0",
        "histogram:5*-1",
        "histogram:5*x",
        "unform:1-2",
        "hist:1",
    ] {
        let error = text.parse::<SizeSpec>().expect_err(text).0;
        assert!(!error.contains('\n') && !error.is_empty(), "{text}: {error}");
    }
    assert_eq!(
        "unform:1-2".parse::<SizeSpec>().unwrap_err().0,
        "unknown size `unform`; did you mean `uniform:A-B`?"
    );
    for (text, wanted) in [
        (
            "pareto:1,2",
            "`pareto:1,2` is not of the form `pareto:K,SIGMA,A-B`; for example `pareto:0.2615,25.45,10-1024`",
        ),
        (
            "pareto:1,2,0-5",
            "size `pareto:1,2,0-5`: the smallest must be 1 or more, and first, as in `pareto:0.2615,25.45,10-1024`",
        ),
        ("pareto:-1,2,1-5", "size `pareto:-1,2,1-5`: K of a Pareto distribution must be 0 to 10, got -1"),
    ] {
        assert_eq!(text.parse::<SizeSpec>().unwrap_err().0, wanted);
    }
}

#[test]
fn the_schema_contains_the_forms() {
    let schema = serde_json::to_value(schemars::schema_for!(Distribution)).unwrap();
    assert_eq!(schema["type"], "string");
    for row in Distribution::ROWS {
        assert!(schema["description"].as_str().unwrap().contains(&row.form()));
    }
    let sizes = serde_json::to_value(schemars::schema_for!(SizeSpec)).unwrap();
    assert_eq!(sizes["anyOf"][0]["minimum"], 0);
}
