//! Keys in turns are distinct, map back, and their random half is spread over the range covered so far.

use crate::generator::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn rules(range: u64, size: u64, spacing: u64) -> KeyRules {
    KeyRules { range, spacing, alternate: size, size: SizeSpec::Fixed(8), ..KeyRules::default() }
}

/// The number in the key of an item.
fn number(keys: &Keys, index: u64) -> u64 {
    let mut out = [0; 8];
    assert_eq!(keys.write(index, &mut out), 8);
    u64::from_be_bytes(out)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_are_distinct_map_back_and_ascend_with_their_places(
        size in 1u64..40, range in 1u64..600, spare in 2u64..9, seed in any::<u64>(),
    ) {
        let spacing = range.div_ceil(2 * size) + spare;
        let keys = Keys::new(&rules(range, size, spacing), seed).unwrap();
        prop_assert_eq!(keys.misses(), Ok(()));
        let mut seen = HashSet::new();
        for index in 0..range {
            let mut out = [0; 8];
            keys.write(index, &mut out);
            prop_assert!(seen.insert(out), "key {} of {} is a duplicate", index, range);
            prop_assert_eq!(keys.index_of(&out), Some(index));
            keys.write_missing(index, &mut out);
            prop_assert_eq!(keys.index_of(&out), None);
            let (turn, place) = (index / (2 * size), index % (2 * size));
            let at = number(&keys, index);
            if place < size {
                prop_assert_eq!(at, (turn * size + place) * spacing, "a serial key");
            } else {
                prop_assert!(at < (turn + 1) * size * spacing, "a random key is in the range covered so far");
            }
            prop_assert_eq!(keys.at_place(keys.place_of(index).unwrap()), Some(index));
            prop_assert!(keys.place_of(index).unwrap() < keys.places(index + 1));
        }
        let mut order: Vec<u64> = (0..range).collect();
        order.sort_by_key(|&index| number(&keys, index));
        prop_assert!(order.is_sorted_by_key(|&index| keys.place_of(index)));
        // No place returns an item that does not exist, or one a second time.
        let found: Vec<u64> = (0..keys.places(range)).filter_map(|place| keys.at_place(place)).collect();
        prop_assert_eq!(found, order);
    }
}

#[test]
fn the_random_half_spreads_over_all_earlier_keys() {
    const SIZE: u64 = 8192;
    const PARTS: u64 = 64;
    let keys = Keys::new(&rules(8 * SIZE, SIZE, 64), 5).unwrap();
    for turn in 0..4 {
        let mut counts = [0_u64; PARTS as usize];
        let covered = (turn + 1) * SIZE * 64;
        for place in 0..SIZE {
            let number = number(&keys, turn * 2 * SIZE + SIZE + place);
            counts[(number * PARTS / covered) as usize] += 1;
        }
        let expected = SIZE as f64 / PARTS as f64;
        let statistic: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        // 99.99 % of such sums are below 117 with 63 degrees; drawn without repeats, they are smaller still.
        assert!(statistic < 117.0, "seed 5, turn {turn}: {statistic} {counts:?}");
        assert!(counts.iter().all(|&count| count > 0), "seed 5, turn {turn}");
    }
    // Neighbours in time are not neighbours in place.
    let ascents = (1..SIZE).filter(|&place| number(&keys, SIZE + place) > number(&keys, SIZE + place - 1));
    let share = ascents.count() as f64 / SIZE as f64;
    assert!((0.47..0.53).contains(&share), "seed 5: {share}");
}

#[test]
fn keeps_its_first_keys_and_refuses_what_does_not_fit() {
    let keys = Keys::new(&rules(16, 4, 64), 1).unwrap();
    let numbers: Vec<u64> = (0..16).map(|index| number(&keys, index)).collect();
    assert_eq!(numbers[..4], [0, 64, 128, 192]);
    assert_eq!(numbers[8..12], [256, 320, 384, 448]);
    let mut first: Vec<u64> = numbers[4..8].to_vec();
    first.sort_unstable();
    assert_eq!(first, [1, 65, 129, 193], "the first turn has one random key after each serial one");
    assert!(numbers[12..].iter().all(|number| number % 64 == 2));

    let refusal = |rules: KeyRules| Keys::new(&rules, 1).unwrap_err().0;
    assert_eq!(
        refusal(rules(600, 4, 64)),
        "600 keys in turns of 4 serial and 4 random ones need 75 turns; spacing 64 allows at most 63; increase \
         `key.alternate` or `key.spacing`"
    );
    for wrong in [
        KeyRules { scattered: true, ..rules(16, 4, 64) },
        KeyRules { prefix_groups: 2, prefix_size: 1, ..rules(16, 4, 64) },
        KeyRules { encoding: Encoding::Hashed, size: SizeSpec::Fixed(16), ..rules(16, 4, 64) },
    ] {
        assert!(refusal(wrong).starts_with("`key.alternate` requires plain keys"));
    }
    // One more turn than misses leave space for.
    let tight = Keys::new(&rules(8, 4, 2), 1).unwrap();
    assert!(tight.misses().unwrap_err().0.contains("leave no gap"));
    // Serial numbers alone take space: 16 keys need 8 of them.
    let held = KeyRules { size: SizeSpec::Fixed(4), ..rules(1 << 28, 1 << 26, 32) };
    assert!(Keys::new(&held, 1).is_ok());
    assert!(Keys::new(&KeyRules { spacing: 64, ..held }, 1).unwrap_err().0.contains("need 5 bytes"));
}
