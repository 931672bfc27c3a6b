//! Keys are unique, in the documented order, and map back to their index.

use crate::generator::*;
use std::collections::HashSet;
use std::sync::Arc;

fn rules(range: u64, size: &str, encoding: Encoding) -> KeyRules {
    KeyRules { range, size: size.parse().unwrap(), encoding, ..KeyRules::default() }
}

/// One of each kind.
fn kinds(range: u64) -> Vec<KeyRules> {
    let mut kinds = vec![
        rules(range, "16", Encoding::Binary),
        rules(range, "4", Encoding::Binary),
        rules(range, "8", Encoding::Binary),
        rules(range, "100", Encoding::Binary),
        rules(range, "12", Encoding::Decimal),
        rules(range, "24", Encoding::Decimal),
        rules(range, "8", Encoding::Hex),
        rules(range, "33", Encoding::Hex),
        rules(range, "12", Encoding::Hashed),
        rules(range, "23", Encoding::Hashed),
        rules(range, "uniform:10-40", Encoding::Binary),
        rules(range, "zipf:10-300", Encoding::Decimal),
        rules(range, "normal:40,5", Encoding::Hex),
        rules(range, "uniform:12-30", Encoding::Hashed),
        rules(range, "64", Encoding::Random),
        rules(range, "uniform:8-30", Encoding::Random),
        KeyRules { spacing: 64, ..rules(range, "16", Encoding::Binary) },
    ];
    for encoding in [Encoding::Binary, Encoding::Decimal, Encoding::Hex, Encoding::Hashed, Encoding::Random] {
        kinds.push(KeyRules { prefix_groups: 10, prefix_size: 4, ..rules(range, "20", encoding) });
        kinds.push(KeyRules { prefix_groups: 7, prefix_size: 3, ..rules(range, "uniform:20-40", encoding) });
    }
    let scattered = kinds.clone().into_iter().map(|kind| KeyRules { scattered: true, ..kind });
    kinds.iter().cloned().chain(scattered.collect::<Vec<_>>()).collect()
}

fn name(rules: &KeyRules) -> String {
    format!("{} {} scattered {} groups {}", rules.size, rules.encoding, rules.scattered, rules.prefix_groups)
}

#[test]
fn parts_have_no_key_in_common_and_are_together_the_whole() {
    for rules in kinds(999) {
        let whole = Keys::new(&KeyRules { range: 3 * 999, ..rules.clone() }, 77).unwrap();
        let written = |keys: &Keys, index: u64, missing: bool| {
            let mut out = vec![0; keys.max_len()];
            let len = if missing { keys.write_missing(index, &mut out) } else { keys.write(index, &mut out) };
            out.truncate(len);
            out
        };
        let mut seen = HashSet::new();
        for index in 0..3 {
            let keys =
                Keys::new(&KeyRules { part: Partition { index, count: 3 }, ..rules.clone() }, 77).unwrap();
            for item in 0..rules.range {
                let key = written(&keys, item, false);
                assert_eq!(keys.index_of(&key), Some(item), "{}", name(&rules));
                assert!(seen.insert(key), "{}: part {index}, item {item}", name(&rules));
                let missing = written(&keys, item, true);
                assert_eq!(keys.index_of(&missing), None, "{}", name(&rules));
                assert!(seen.insert(missing), "{}: part {index}, miss {item}", name(&rules));
            }
        }
        // Prefixes of neighbours depend on the size of the range.
        let is_same = rules.prefix_groups == 0;
        let all = (0..3 * 999).all(|item| seen.contains(&written(&whole, item, false)));
        assert!(all || !is_same, "{}", name(&rules));
    }
}

#[test]
fn keys_and_misses_are_unique_and_map_back() {
    for rules in kinds(5_000) {
        let keys = Keys::new(&rules, 77).unwrap();
        assert_eq!(keys.misses(), Ok(()));
        let mut out = vec![0xa5; keys.max_len()];
        let mut seen = HashSet::new();
        for index in 0..rules.range {
            let len = keys.write(index, &mut out);
            assert!(len >= 4 && len <= keys.max_len());
            assert_eq!(keys.index_of(&out[..len]), Some(index), "{}", name(&rules));
            assert!(seen.insert(out[..len].to_vec()), "{}: index {index}", name(&rules));
            let len = keys.write_missing(index, &mut out);
            assert_eq!(keys.index_of(&out[..len]), None, "{}", name(&rules));
            assert!(seen.insert(out[..len].to_vec()), "{}: miss {index}", name(&rules));
        }
    }
}

#[test]
fn ranks_are_byte_order() {
    for rules in kinds(3_000) {
        let keys = Keys::new(&rules, 78).unwrap();
        let key = |index| {
            let mut out = vec![0; keys.max_len()];
            let len = keys.write(index, &mut out);
            out.truncate(len);
            out
        };
        let mut order: Vec<u64> = (0..rules.range).collect();
        order.sort_by_key(|&index| key(index));
        let is_ascending = order.is_sorted();
        assert_eq!(is_ascending, keys.is_ordered(), "{}", name(&rules));
        for (rank, &index) in order.iter().enumerate() {
            match keys.place_of(index) {
                Some(actual) => {
                    assert_eq!(actual, rank as u64, "{}", name(&rules));
                    assert_eq!(keys.at_place(actual), Some(index), "{}", name(&rules));
                }
                None => assert!(!rules.encoding.is_ordered()),
            }
        }
    }
}

#[test]
fn many_at_once_are_the_same_keys() {
    for rules in kinds(3_000) {
        let keys = Keys::new(&rules, 78).unwrap();
        let indices: Vec<u64> = (0..rules.range).rev().collect();
        let mut codes = vec![0; indices.len()];
        keys.codes(&indices, &mut codes);
        for (index, code) in indices.iter().zip(codes) {
            let (mut one, mut other) = (vec![0; keys.max_len()], vec![0; keys.max_len()]);
            assert_eq!(keys.write(*index, &mut one), keys.write_code(code, &mut other), "{}", name(&rules));
            assert_eq!(one, other, "{}, key {index}", name(&rules));
            let length = keys.write(*index, &mut one);
            assert_eq!(keys.index_of(&one[..length]), Some(*index), "{}", name(&rules));
            let place = keys.place_of(*index);
            for at in place.unwrap_or(5).saturating_sub(2)..place.unwrap_or(5) + 3 {
                assert_eq!(
                    keys.is_at_place(&one[..length], at),
                    place == Some(at),
                    "{}, key {index}",
                    name(&rules)
                );
            }
        }
        for first in [0, 1, 14, 15, 16, 100, 2_983, 2_984, 2_985, 2_999, 3_000, u64::MAX] {
            for is_down in [false, true] {
                for count in [1, 2, 16] {
                    let mut found = vec![7; count];
                    keys.at_places(first, is_down, &mut found);
                    for (distance, found) in (0..).zip(found) {
                        let place =
                            if is_down { first.checked_sub(distance) } else { first.checked_add(distance) };
                        let wanted = place.and_then(|place| keys.at_place(place)).unwrap_or(u64::MAX);
                        assert_eq!(
                            found,
                            wanted,
                            "{}: {distance} from {first}, down {is_down}",
                            name(&rules)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn keys_of_a_group_are_neighbours_that_share_a_prefix() {
    for scattered in [false, true] {
        let rules = KeyRules {
            prefix_groups: 10,
            prefix_size: 4,
            scattered,
            ..rules(1_000, "16", Encoding::Decimal)
        };
        let keys = Keys::new(&rules, 1).unwrap();
        assert_eq!(keys.prefix_len(), 4);
        let mut sorted: Vec<[u8; 16]> = Vec::new();
        for index in 0..1_000 {
            let mut out = [0; 16];
            keys.write(index, &mut out);
            sorted.push(out);
        }
        sorted.sort_unstable();
        let groups: Vec<usize> = sorted.chunk_by(|a, b| a[..4] == b[..4]).map(<[_]>::len).collect();
        assert_eq!(groups, [100; 10], "scattered {scattered}");
        for index in (0..1_000).step_by(37) {
            let places = keys.prefix_places(index).unwrap();
            let mut out = [[0; 16]; 2];
            keys.write(index, &mut out[0]);
            for place in 0..1_000 {
                keys.write(keys.at_place(place).unwrap(), &mut out[1]);
                let shares = out[0][..4] == out[1][..4];
                assert_eq!(
                    places.contains(&place),
                    shares,
                    "index {index}, place {place}, scattered {scattered}"
                );
            }
        }
        assert_eq!(
            Keys::new(&KeyRules { prefix_groups: 0, prefix_size: 0, ..rules.clone() }, 1)
                .unwrap()
                .prefix_places(5),
            None
        );
    }
}

#[test]
fn keeps_its_first_keys() {
    let key = |rules: &KeyRules, index| {
        let keys = Keys::new(rules, 42).unwrap();
        let mut out = vec![0; keys.max_len()];
        let len = keys.write(index, &mut out);
        out[..len].escape_ascii().to_string()
    };
    let prefixed = KeyRules { prefix_groups: 100, prefix_size: 3, ..rules(1_000, "12", Encoding::Decimal) };
    let scattered = KeyRules { scattered: true, ..rules(1_000_000, "12", Encoding::Decimal) };
    let cases = [
        (
            rules(1_000_000, "16", Encoding::Binary),
            r"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x06\x1a",
        ),
        (rules(1_000_000, "4", Encoding::Binary), r"\x00\x00\x06\x1a"),
        (rules(1_000_000, "12", Encoding::Decimal), "000000001562"),
        (rules(1_000_000, "8", Encoding::Hex), "0000061a"),
        (prefixed, "078000001562"),
        (scattered, "000000760754"),
        (rules(1_000_000, "16", Encoding::Hashed), "user306582554230"),
        (rules(1_000_000, "23", Encoding::Hashed), "user0629694964305460996"),
        (rules(1_000_000, "uniform:8-14", Encoding::Decimal), "00001562000"),
        (rules(1_000_000, "12", Encoding::Random), r"\x87\xd8\xd6)\xbaWK\x89\xf2\x83\x8f\x88"),
    ];
    for (rules, wanted) in cases {
        assert_eq!(key(&rules, 781), wanted, "{}", name(&rules));
    }
}

#[test]
fn large_keys_work() {
    let keys = Keys::new(&rules(100, "64KiB", Encoding::Binary), 1).unwrap();
    let mut out = vec![1; 65_536];
    assert_eq!(keys.write(99, &mut out), 65_536);
    assert_eq!(keys.index_of(&out), Some(99));
    assert_eq!(keys.index_of(&out[1..]), None);
}

#[test]
fn the_full_capacity_can_be_used() {
    for (range, size, encoding) in [
        (5_000, "4", Encoding::Decimal),
        (32_768, "4", Encoding::Hex),
        (1 << 31, "4", Encoding::Binary),
        (5_000, "8", Encoding::Hashed),
        (1 << 62, "8", Encoding::Random),
        (1 << 62, "8", Encoding::Binary),
        (1 << 62, "16", Encoding::Binary),
        (1 << 62, "16", Encoding::Hex),
        (1 << 62, "20", Encoding::Decimal),
        (500_000_000_000_000_000, "22", Encoding::Hashed),
    ] {
        for scattered in [false, true] {
            let keys = Keys::new(&KeyRules { scattered, ..rules(range, size, encoding) }, 2).unwrap();
            let mut out = vec![0; keys.max_len()];
            for index in [0, 1, range / 3, range - 2, range - 1] {
                let len = keys.write(index, &mut out);
                assert_eq!(keys.index_of(&out[..len]), Some(index), "{range} {size} {encoding} {scattered}");
                let len = keys.write_missing(index, &mut out);
                assert_eq!(keys.index_of(&out[..len]), None);
            }
        }
    }
}

#[test]
fn foreign_bytes_have_no_index() {
    for rules in kinds(1_000) {
        let keys = Keys::new(&rules, 3).unwrap();
        let mut random = Random::seeded(3);
        let mut out = vec![0; keys.max_len()];
        for _ in 0..300 {
            let len = keys.write(random.below(1_000), &mut out);
            let at = random.below(len as u64) as usize;
            let original = out[..len].to_vec();
            out[at] ^= 1 << random.below(8);
            if let Some(index) = keys.index_of(&out[..len]) {
                let mut again = vec![0; keys.max_len()];
                let length = keys.write(index, &mut again);
                assert_eq!(again[..length], out[..len], "seed 3, {}", name(&rules));
                assert_ne!(again[..length], original[..], "seed 3, {}", name(&rules));
            }
            assert_eq!(keys.index_of(&original[..len - 1]), None, "{}", name(&rules));
        }
        for foreign in [&b""[..], b"x", b"user", b"zzzzzzzzzzzzzzzz", &[255; 16], &[b'9'; 40]] {
            assert_eq!(keys.index_of(foreign), None, "{}", name(&rules));
        }
    }
}

#[test]
fn a_key_file_is_split_into_keys() {
    let bytes: Vec<u8> = (0..=255).collect();
    let file: KeyFile = Arc::new(bytes.clone());
    let from_file = KeyRules { file: Some(file), ..rules(32, "8", Encoding::Binary) };
    let keys = Keys::new(&from_file, 1).unwrap();
    let mut out = [0; 8];
    assert_eq!(keys.write(3, &mut out), 8);
    assert_eq!(out, bytes[24..32]);
    assert_eq!(keys.index_of(&out), None);
    assert!(!keys.is_ordered());
    assert_eq!(keys.place_of(3), None);
    assert_eq!(keys.repeated_in_file(), None);
    // Only a sorted file tells the index of a key.
    let mut sorted = keys.clone();
    sorted.sort_file();
    for index in 0..32 {
        let mut key = [0; 8];
        keys.write(index, &mut key);
        assert_eq!((keys.index_of(&key), sorted.index_of(&key)), (None, Some(index)));
    }
    assert_eq!((sorted.index_of(b"not here"), sorted.index_of(b"short")), (None, None));
    assert!(sorted.place_of(0).is_none(), "the order of the file is not that of the keys");
    assert!(keys.misses().unwrap_err().0.contains("set `miss` to 0"));

    let scattered = Keys::new(&KeyRules { scattered: true, ..from_file.clone() }, 1).unwrap();
    let all: HashSet<[u8; 8]> = (0..32)
        .map(|index| {
            scattered.write(index, &mut out);
            out
        })
        .collect();
    assert_eq!(all.len(), 32);

    let twice: KeyFile = Arc::new([&bytes[..], &bytes[8..16]].concat());
    let keys = Keys::new(&KeyRules { file: Some(twice), range: 33, ..from_file.clone() }, 1).unwrap();
    assert_eq!(keys.repeated_in_file(), Some((1, 32)));
    let short = Keys::new(&KeyRules { range: 33, ..from_file.clone() }, 1).unwrap_err().0;
    assert_eq!(short, "the key file contains 32 keys of 8 bytes, but 33 are needed");
    let odd: KeyFile = Arc::new(bytes[..63].to_vec());
    let odd = Keys::new(&KeyRules { file: Some(odd), range: 7, ..from_file.clone() }, 1).unwrap_err().0;
    assert!(
        odd.starts_with("the key file has 63 bytes, which is not a multiple of `key.size` (8 bytes)"),
        "{odd}"
    );
    let sized = KeyRules { size: SizeSpec::Uniform(4, 8), ..from_file };
    assert!(Keys::new(&sized, 1).unwrap_err().0.contains("a fixed size"));
}

#[test]
fn refuses_what_does_not_fit() {
    let base = |range, size: &str, encoding| rules(range, size, encoding);
    let cases = [
        (
            base(200_000, "4", Encoding::Decimal),
            "4-byte decimal keys have space for 10000 numbers; 200000 keys with spacing 2 need 6 digits",
        ),
        (
            base(1 << 40, "4", Encoding::Binary),
            "4-byte binary keys have space for 4294967296 numbers; 1099511627776 keys with spacing 2 need 6 bytes",
        ),
        (
            base(1_000_000, "8", Encoding::Hashed),
            "8-byte hashed keys have space for 10000 numbers; 1000000 keys with spacing 2 need 11 bytes",
        ),
        (
            KeyRules { prefix_groups: 10, prefix_size: 14, ..base(1 << 20, "16", Encoding::Binary) },
            "16-byte binary keys have space for 65536 numbers after a prefix of 14 bytes; 1048576 keys with spacing 2 need \
             3 bytes",
        ),
        (
            KeyRules { prefix_groups: 300, prefix_size: 1, ..base(1_000, "16", Encoding::Binary) },
            "a binary prefix of 1 bytes can distinguish 256 groups, but 300 are requested",
        ),
        (
            KeyRules { prefix_groups: 3, prefix_size: 4, ..base(10, "4", Encoding::Hex) },
            "hex keys with a prefix of 4 bytes need at least 5 bytes, got 4",
        ),
        (base(10, "3", Encoding::Binary), "keys must have 4 to 65536 bytes, got `3`"),
        (
            base(10, "uniform:8-65537", Encoding::Binary),
            "keys must have 4 to 65536 bytes, got `uniform:8-65537`",
        ),
        (base(0, "16", Encoding::Binary), "the number of keys must be 1 to 2^62, got 0"),
        (KeyRules { spacing: 0, ..base(1, "16", Encoding::Binary) }, "`key.spacing` must be at least 1"),
        (
            KeyRules { prefix_groups: 3, ..base(1, "16", Encoding::Binary) },
            "`key.prefix_groups` and `key.prefix_size` must be used together: set both or neither",
        ),
    ];
    for (rules, wanted) in cases {
        assert_eq!(Keys::new(&rules, 1).unwrap_err().0, wanted);
    }
    let tight = Keys::new(&KeyRules { spacing: 1, ..base(10_000, "4", Encoding::Decimal) }, 1).unwrap();
    assert!(tight.misses().unwrap_err().0.contains("`key.spacing` of 1"));
}
