//! Values never change between versions, and any other bytes are detected.

use crate::generator::value::WrongValue;
use crate::generator::*;
use proptest::prelude::*;

fn values(size: &str, share: f64) -> Values {
    Values::new(&ValueRules { size: size.parse().unwrap(), compressed_share: share }, 42).unwrap()
}

fn written(values: &Values, index: u64, version: u64) -> Vec<u8> {
    let mut out = vec![0xee; values.max_len()];
    let len = values.write(index, version, &mut out);
    assert_eq!(len, values.len_of(index, version));
    out.truncate(len);
    out
}

const SIZES: &[&str] = &[
    "0",
    "1",
    "7",
    "8",
    "9",
    "15",
    "16",
    "17",
    "20",
    "23",
    "24",
    "25",
    "31",
    "32",
    "33",
    "63",
    "100",
    "101",
    "255",
    "1000",
    "4096",
    "4119",
    "4120",
    "4121",
    "9000",
    "65536",
    "uniform:8-200",
    "uniform:0-100",
    "histogram:0*1,100*1",
    "zipf:1-5000",
    "normal:4000,300",
    "histogram:8*1,20*1,100*1,10000*1",
];

#[test]
fn values_of_other_sizes_pass_only_where_they_are_accepted_and_only_as_a_whole() {
    for (size, other) in [("100", "200"), ("100", "5"), ("20", "0"), ("uniform:8-15", "9000"), ("4", "100")] {
        let own = values(size, 0.5);
        let other = own.resized(&other.parse().unwrap()).unwrap();
        let both = own.clone().accepting([other.clone()].into_iter());
        assert_eq!((both.min_len(), both.max_len()), (own.min_len(), own.max_len()), "they are not written");
        assert_eq!(both.max_read_len(), own.max_len().max(other.max_len()));
        for (values, refusing) in [(&own, &other), (&other, &own)] {
            let bytes = written(values, 7, 3);
            assert_eq!(both.check(7, &bytes), values.check(7, &bytes), "{size} {}", bytes.len());
            assert!(both.may_have_len(7, 3, bytes.len()) && !both.may_have_len(7, 3, bytes.len() + 1));
            assert!(values.check(7, &bytes).is_ok() && refusing.check(7, &bytes).is_err());
            if let Some((_, cut)) = bytes.split_last() {
                assert!(both.check(7, cut).is_err(), "{size} {}", cut.len());
            }
        }
    }
}

#[test]
fn every_value_passes_its_own_check() {
    for size in SIZES {
        for share in [1.0, 0.9, 0.5, 0.1] {
            let values = values(size, share);
            for (index, version) in
                [(0, 0), (1, 0), (0, 1), (7, 3), ((1 << 63) - 1, 9), (1 << 40, (1 << 40) - 1)]
            {
                let bytes = written(&values, index, version);
                let found = values.check(index, &bytes);
                let wanted = if bytes.len() >= 8 { Some(version) } else { None };
                assert_eq!(found, Ok(wanted), "size {size}, share {share}, {index} version {version}");
                assert_eq!(values.check_version(index, version, &bytes), Ok(()));
                if bytes.len() >= 16 {
                    assert_eq!(values.read_header(&bytes), Some((index, version)));
                } else {
                    assert_eq!(values.read_header(&bytes), None);
                }
            }
        }
    }
}

#[test]
fn no_two_records_have_the_same_value() {
    for size in ["8", "16", "24", "100", "4096"] {
        let values = values(size, 0.5);
        let mut seen: Vec<Vec<u8>> = (0..2_000).map(|index| written(&values, index, 1)).collect();
        seen.extend((2..100).map(|version| written(&values, 7, version)));
        let written = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), written, "size {size}");
        // Nor are the bytes after the header: an engine that stores equal bytes once gains nothing.
        let mut bodies: Vec<&[u8]> = seen.iter().filter_map(|value| value.get(24..)).collect();
        bodies.retain(|body| !body.is_empty());
        let all = bodies.len();
        bodies.sort();
        bodies.dedup();
        assert_eq!(bodies.len(), all, "size {size}, after the header");
    }
}

#[test]
fn any_flipped_bit_is_detected() {
    for size in ["8", "12", "16", "20", "23", "24", "40", "100", "600"] {
        for share in [1.0, 0.4] {
            let values = values(size, share);
            let original = written(&values, 12_345, 6);
            for bit in 0..original.len() * 8 {
                let mut bytes = original.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(values.check(12_345, &bytes).is_err(), "size {size}, share {share}, bit {bit}");
            }
        }
    }
}

#[test]
fn a_value_of_no_bytes_has_nothing_but_a_length_to_check() {
    let all_empty = values("0", 0.5);
    assert_eq!((all_empty.min_len(), all_empty.max_len(), all_empty.len_of(7, 3)), (0, 0, 0));
    assert_eq!(all_empty.check(7, &[]), Ok(None));
    assert_eq!(all_empty.check(7, &[0]), Err(WrongValue::Length { wanted: 0, actual: 1 }));
    assert_eq!(all_empty.read_header(&[]), None);
    // Where only some values are empty, the version decides which.
    let some_empty = values("histogram:0*1,100*1", 0.5);
    let of = |version: u64| some_empty.len_of(7, version);
    let (empty, full) = (
        (1..).find(|version| of(*version) == 0).unwrap(),
        (1..).find(|version| of(*version) == 100).unwrap(),
    );
    assert_eq!(some_empty.check_version(7, empty, &[]), Ok(()));
    assert_eq!(some_empty.check_version(7, full, &[]), Err(WrongValue::Length { wanted: 100, actual: 0 }));
    assert_eq!(some_empty.check(7, &written(&some_empty, 7, full)), Ok(Some(full)));
    assert!(values("8", 0.5).check(7, &[]).is_err());
}

#[test]
fn any_flipped_byte_of_large_values_is_detected_and_located() {
    for (size, share) in [("5000", 1.0), ("20000", 0.5), ("20000", 0.05)] {
        let values = values(size, share);
        let original = written(&values, 3, 4);
        for at in (24..original.len()).step_by(37) {
            let mut bytes = original.clone();
            bytes[at] = !bytes[at];
            assert_eq!(values.check(3, &bytes), Err(WrongValue::Body { at }), "size {size}, share {share}");
        }
    }
}

#[test]
fn wrong_keys_versions_and_lengths_are_named() {
    for size in ["16", "23", "24", "100", "5000"] {
        let values = values(size, 0.5);
        let bytes = written(&values, 10, 2);
        assert_eq!(values.check(11, &bytes), Err(WrongValue::Key { wanted: 11, actual: 10 }), "size {size}");
        let stale = Err(WrongValue::Version { wanted: 3, actual: 2 });
        assert_eq!(values.check_version(10, 3, &bytes), stale, "size {size}");
        let short = &bytes[..bytes.len() - 1];
        let wanted = Err(WrongValue::Length { wanted: bytes.len(), actual: short.len() });
        assert_eq!(values.check(10, short), wanted, "size {size}");
        let long = [&bytes[..], &[0]].concat();
        let wanted = Err(WrongValue::Length { wanted: bytes.len(), actual: long.len() });
        assert_eq!(values.check(10, &long), wanted, "size {size}");
        assert_eq!(values.check(10, &vec![0; bytes.len()]), Err(WrongValue::Header), "size {size}");
        let none = Err(WrongValue::Length { wanted: bytes.len(), actual: 0 });
        assert_eq!(values.check(10, &[]), none, "size {size}");
    }
}

#[test]
fn values_of_another_run_or_torn_from_two_versions_are_detected() {
    let ours = values("8192", 0.5);
    let rules = ValueRules { size: SizeSpec::Fixed(8192), compressed_share: 0.5 };
    let theirs = Values::new(&rules, 43).unwrap();
    assert_eq!(ours.check(5, &written(&theirs, 5, 1)), Err(WrongValue::Header));
    let (old, new) = (written(&ours, 5, 1), written(&ours, 5, 2));
    for cut in (512..8192).step_by(512) {
        let torn = [&new[..cut], &old[cut..]].concat();
        assert_eq!(ours.check(5, &torn), Err(WrongValue::Body { at: cut }), "cut at {cut}");
    }
    let swapped = [&new[..24], &new[4120..], &new[24..4120]].concat();
    assert!(ours.check(5, &swapped).is_err());
}

#[test]
fn sizes_that_vary_are_checked_too() {
    let values = values("uniform:24-400", 0.7);
    let mut random = Random::seeded(2);
    for round in 0..2_000 {
        let (index, version) = (random.below(1_000), random.below(10));
        let bytes = written(&values, index, version);
        assert_eq!(values.check(index, &bytes), Ok(Some(version)), "seed 2, round {round}");
        assert!(values.check(index, &bytes[..bytes.len() - 1]).is_err(), "seed 2, round {round}");
        assert!(values.check(index + 1, &bytes).is_err(), "seed 2, round {round}");
    }
}

#[test]
fn small_values_have_the_documented_power() {
    let tiny = values("1", 1.0);
    let bytes = written(&tiny, 5, 1);
    let passed = (0..10_000).filter(|&other| tiny.check(other, &bytes).is_ok()).count();
    assert!((10..100).contains(&passed), "{passed} of 10000 pass, 39 were expected");
    assert_eq!(tiny.check(5, &bytes), Ok(None));
    assert_eq!(tiny.check_version(5, 9, &bytes), Ok(()));
    assert!(matches!(tiny.check(5, &[1, 2]), Err(WrongValue::Length { wanted: 1, actual: 2 })));

    let seven = values("7", 1.0);
    let bytes = written(&seven, 5, 1);
    assert_eq!((0..10_000).filter(|&other| seven.check(other, &bytes).is_ok()).count(), 1);

    let eight = values("8", 1.0);
    let bytes = written(&eight, 5, 1);
    assert_eq!(eight.check(5, &bytes), Ok(Some(1)));
    assert_eq!(eight.check_version(5, 2, &bytes), Err(WrongValue::Version { wanted: 2, actual: 1 }));
    assert_eq!((0..10_000).filter(|&other| eight.check(other, &bytes).is_ok()).count(), 1);
}

#[test]
fn keeps_its_bytes() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sum = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| mix64(sum ^ u64::from(byte))).to_string();
    let small = [("5", 1.0), ("12", 1.0), ("20", 1.0), ("40", 1.0)];
    let large = [("100", 0.5), ("10000", 1.0), ("10000", 0.5)];
    let small = small.map(|(size, share)| hex(&written(&values(size, share), 781, 3)));
    let large = large.map(|(size, share)| sum(&written(&values(size, share), 781, 3)));
    let golden = [
        "8b339d7bcd",
        "0300000000665720b7dd4fee",
        "ab6b92bc0688c4170300000000000000b7dd4fee",
        "f7fbf65b280000000d030000000000000300000000000000004569e6f18a5b0765ea72910a87b924",
    ];
    let sums = ["1291273207403464708", "14327292846922041239", "17495487601173684779"];
    assert_eq!((small, large), (golden.map(String::from), sums.map(String::from)));
}

#[test]
fn other_sizes_share_the_noise_and_the_seed() {
    let values = values("100", 0.5);
    let resized = values.resized(&SizeSpec::Fixed(300)).unwrap();
    let fresh = self::values("300", 0.5);
    assert_eq!(written(&resized, 4, 5), written(&fresh, 4, 5));
    assert!(written(&values.resized(&SizeSpec::Fixed(0)).unwrap(), 4, 5).is_empty());
    assert!(values.resized(&SizeSpec::Uniform(5, 0)).is_err());
}

#[test]
fn refuses_shares_out_of_range() {
    for share in [0.0, -0.5, 1.1, f64::NAN, f64::INFINITY] {
        let rules = ValueRules { size: SizeSpec::Fixed(100), compressed_share: share };
        let text = Values::new(&rules, 1).unwrap_err().0;
        assert!(text.starts_with("`value.compressed_share` must be"), "{text}");
    }
}

#[test]
fn faults_describe_what_was_wrong() {
    let cases = [
        (WrongValue::Length { wanted: 100, actual: 99 }, "the value has 99 bytes, but 100 were written"),
        (WrongValue::Key { wanted: 1, actual: 2 }, "the value belongs to key 2, but key 1 was requested"),
        (
            WrongValue::Version { wanted: 3, actual: 2 },
            "the value is version 2 of its key, but version 3 was expected",
        ),
        (WrongValue::Header, "the value's header is damaged or from another run"),
        (WrongValue::Body { at: 77 }, "the value is damaged starting at byte 77"),
    ];
    for (wrong, text) in cases {
        assert_eq!(wrong.to_string(), text);
    }
}

proptest! {
    #[test]
    fn random_bytes_never_pass_and_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), index: u64) {
        for size in ["8", "16", "24", "100", "uniform:1-199"] {
            let values = values(size, 0.5);
            let _ = values.read_header(&bytes);
            let found = values.check(index, &bytes);
            prop_assert!(found.is_err() || bytes.len() < 8, "size {}: {:?}", size, found);
        }
    }
}
