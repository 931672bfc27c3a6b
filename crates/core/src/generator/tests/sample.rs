//! Every distribution draws as documented: golden numbers, coverage, parts, growth, invalid input.

use super::all;
use crate::generator::*;
use std::collections::{HashMap, HashSet};

fn sampler(distribution: &str, n: u64, seed: u64, clustered: bool) -> Sampler {
    Sampler::new(&distribution.parse().unwrap(), n, seed, Partition::WHOLE, clustered).unwrap()
}

#[test]
fn keeps_its_first_items() {
    for (distribution, clustered, wanted) in Distribution::ROWS.into_iter().flat_map(|row| row.first) {
        let mut sampler = sampler(distribution, 1_000_000, 42, *clustered);
        let mut random = Random::stream(42, 1);
        let actual: Vec<u64> = (0..6).map(|_| sampler.next(&mut random)).collect();
        assert_eq!(actual, wanted, "{distribution}, clustered {clustered}");
    }
}

#[test]
fn many_at_once_are_the_same_items() {
    for distribution in all() {
        for n in [1, 2, 3, 100, 4_097, 1_000_000, (1 << 33) + 1, 1 << 63] {
            for clustered in [true, false] {
                let (mut one, mut many) =
                    (sampler(distribution, n, 9, clustered), sampler(distribution, n, 9, clustered));
                let (mut random, mut other, mut sizes) =
                    (Random::seeded(9), Random::seeded(9), Random::seeded(8));
                for _ in 0..20 {
                    let mut items = vec![0; sizes.below(200) as usize];
                    many.fill(&mut other, &mut items);
                    let wanted: Vec<u64> = items.iter().map(|_| one.next(&mut random)).collect();
                    assert_eq!(items, wanted, "seed 9, {distribution} over {n}, clustered {clustered}");
                    assert_eq!(random, other, "seed 9, {distribution} over {n}: the source is elsewhere");
                }
            }
        }
    }
}

#[test]
fn draws_stay_in_any_range() {
    for distribution in all() {
        for n in [1, 2, 3, 5, 16, 17, 100, 4_097, (1 << 33) + 1, 1 << 62, 1 << 63] {
            for clustered in [true, false] {
                let mut sampler = sampler(distribution, n, 9, clustered);
                let mut random = Random::seeded(9);
                for draw in 0..200 {
                    let item = sampler.next(&mut random);
                    assert!(item < n, "seed 9, {distribution} over {n}: draw {draw} is {item}");
                }
            }
        }
    }
}

#[test]
fn a_pass_returns_each_item_once_and_passes_differ() {
    for n in [1_u64, 2, 3, 7, 64, 100, 1_000, 4_096, 10_007] {
        for distribution in ["sequential", "permutation"] {
            let mut sampler = sampler(distribution, n, n, false);
            let mut random = Random::seeded(0);
            let mut pass = || -> Vec<u64> { (0..n).map(|_| sampler.next(&mut random)).collect() };
            let (first, second) = (pass(), pass());
            for order in [&first, &second] {
                let seen: HashSet<u64> = order.iter().copied().collect();
                assert_eq!(seen.len() as u64, n, "{distribution} over {n}");
                assert!(order.iter().all(|&item| item < n));
            }
            assert_eq!(first == second, distribution == "sequential" || n < 7 && first == second);
        }
    }
}

#[test]
fn parts_are_disjoint_and_cover() {
    for distribution in ["sequential", "permutation"] {
        for (n, count) in [(10, 1), (10, 3), (10, 10), (1_000, 7), (4_099, 64)] {
            let mut seen = HashMap::new();
            for index in 0..count {
                let part = Partition { index, count };
                let mut sampler = Sampler::new(&distribution.parse().unwrap(), n, 5, part, false).unwrap();
                assert_eq!(sampler.part_len(), part.len(n));
                let mut random = Random::stream(5, index);
                for _ in 0..sampler.part_len() {
                    let item = sampler.next(&mut random);
                    assert_eq!(item % count, index, "{distribution} over {n}, part {index} of {count}");
                    *seen.entry(item).or_insert(0) += 1;
                }
            }
            assert_eq!(seen.len() as u64, n, "{distribution} over {n} in {count}");
            assert!(seen.values().all(|&times| times == 1));
        }
    }
}

#[test]
fn the_inverse_reverses_a_permutation() {
    for n in [1, 2, 3, 5, 31, 32, 33, 4_095, 4_096, 4_097, 1 << 20, (1 << 40) + 1, 1 << 63] {
        for seed in 0..20 {
            let permutation = Permutation::new(n, seed);
            let mut random = Random::seeded(seed);
            for _ in 0..200 {
                let item = random.below(n);
                assert_eq!(permutation.inverse(permutation.at(item)), item, "seed {seed}, {item} of {n}");
                assert_eq!(permutation.at(permutation.inverse(item)), item, "seed {seed}, {item} of {n}");
            }
        }
    }
}

#[test]
fn many_at_once_are_permuted_in_the_same_way() {
    for n in
        [1, 2, 3, 33, 64, 4_095, 4_096, 4_097, 200_000, (1 << 20) + 1, 10_u64.pow(18), (1 << 62) + 1, 1 << 63]
    {
        for seed in 0..5 {
            let permutation = Permutation::new(n, seed);
            let mut random = Random::seeded(seed);
            let items: Vec<u64> = (0..500).map(|_| random.below(n)).collect();
            let wanted: Vec<u64> = items.iter().map(|item| permutation.at(*item)).collect();
            let mut mapped = items.clone();
            permutation.map(&mut mapped);
            assert_eq!(mapped, wanted, "seed {seed}, {n} items");
            permutation.unmap(&mut mapped);
            assert_eq!(mapped, items, "seed {seed}, {n} items, back");
        }
    }
}

#[test]
fn a_permutation_keeps_its_numbers() {
    let permutation = Permutation::new(1_000_000, 42);
    let actual: Vec<u64> = (0..5).map(|i| permutation.at(i)).collect();
    assert_eq!(actual, [470350, 659949, 663020, 480562, 937363]);
}

#[test]
fn growth_reaches_the_new_items() {
    // The modulus of `ycsb-zipfian` is fixed.
    for distribution in all().filter(|name| *name != "ycsb-zipfian") {
        let mut sampler = sampler(distribution, 10, 4, true);
        let mut random = Random::seeded(4);
        for n in (10..=400).step_by(13) {
            sampler.grow(n);
            sampler.grow(n / 2);
            assert_eq!(sampler.n(), n);
            for _ in 0..50 {
                assert!(sampler.next(&mut random) < n, "seed 4, {distribution} grown to {n}");
            }
        }
        let reached = (0..40_000).any(|_| sampler.next(&mut random) >= 300);
        assert!(reached, "{distribution} never leaves the old range");
    }
}

#[test]
fn threads_agree_on_the_hot_items() {
    for distribution in ["zipf:1.2", "hotspot:0.01,0.99"] {
        let hottest = |stream| {
            let mut sampler = sampler(distribution, 1_000, 8, false);
            let mut random = Random::stream(8, stream);
            let mut counts = vec![0; 1_000];
            for _ in 0..20_000 {
                counts[sampler.next(&mut random) as usize] += 1;
            }
            let mut order: Vec<usize> = (0..1_000).collect();
            order.sort_by_key(|&item| std::cmp::Reverse(counts[item]));
            order[..2].iter().copied().collect::<HashSet<_>>()
        };
        if distribution.starts_with("zipf") {
            assert_eq!(hottest(0), hottest(1), "{distribution}");
        }
        assert!(hottest(0).iter().any(|&item| item > 10), "{distribution} scatters");
    }
}

#[test]
fn the_head_of_zipf_has_the_theoretical_probabilities() {
    for (theta, n) in
        [(0.5, 100_000_u64), (0.99, 1_000_000), (1.0, 1_000_000), (1.5, 1 << 40), (4.0, 1 << 63)]
    {
        // The rest of the series beyond this sum, by the integral: accurate to 1e-6 or better.
        let direct = n.min(2_000_000);
        let mut total: f64 = (1..=direct).map(|k| (k as f64).powf(-theta)).sum();
        if n > direct {
            let power = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
            total += power(n as f64 + 0.5) - power(direct as f64 + 0.5);
        }
        let mut sampler = sampler(&format!("zipf:{theta}"), n, 6, true);
        let mut random = Random::seeded(6);
        let draws = 400_000;
        let mut counts = [0_u32; 20];
        for _ in 0..draws {
            if let Some(count) = counts.get_mut(sampler.next(&mut random) as usize) {
                *count += 1;
            }
        }
        for (rank, count) in counts.iter().enumerate() {
            let wanted = f64::from(draws) * ((rank + 1) as f64).powf(-theta) / total;
            let distance = (f64::from(*count) - wanted).abs();
            assert!(
                distance < 5.0 * wanted.sqrt().max(1.0),
                "seed 6, theta {theta}: rank {rank} has {count}, expected {wanted}"
            );
        }
    }
}

#[test]
fn the_hottest_item_of_ycsb_has_the_published_share() {
    let mut sampler = sampler("ycsb-zipfian", 1_000, 1, false);
    let mut random = Random::seeded(1);
    let mut counts = vec![0_u32; 1_000];
    for _ in 0..200_000 {
        counts[sampler.next(&mut random) as usize] += 1;
    }
    // FNV-1a of eight zero bytes, its absolute value, modulo 1001 (CoreWorkload counts one more); and the mass of rank 0,
    // 1 / zeta(10^10).
    let hottest = 0xa8c7_f832_281a_39c5_u64.wrapping_neg() % 1_001;
    let share = f64::from(counts[hottest as usize]) / 200_000.0;
    assert!((share - 0.0378).abs() < 0.003, "seed 1: {share}");
}

#[test]
fn refuses_what_cannot_be_drawn() {
    let make =
        |distribution, n, part| Sampler::new(&distribution, n, 0, part, false).map(|_| ()).unwrap_err().0;
    let text = make(Distribution::Uniform, 0, Partition::WHOLE);
    assert_eq!(text, "`uniform` needs 1 to 2^63 items, got 0");
    let text = make(Distribution::Sequential, 3, Partition { index: 5, count: 8 });
    assert_eq!(text, "3 items cannot be split among 8 threads; use at most 3 threads");
    make(Distribution::Permutation, 3, Partition { index: 3, count: 8 });
    make(Distribution::Permutation, 3, Partition { index: 2, count: 2 });
    make(Distribution::Zipf(-1.0), 3, Partition::WHOLE);
    make(Distribution::Uniform, (1 << 63) + 1, Partition::WHOLE);
}
