//! The generators pass the tests of `kvdyno doctor --self`, and the tests detect wrong values.

use crate::generator::shape::*;
use crate::generator::*;

/// The distributions that are compared with their probabilities, and extreme parameters.
fn all() -> impl Iterator<Item = &'static str> {
    let extremes = ["zipf:0.2", "zipf:1", "zipf:1.3", "zipf:3", "hotspot:1,0.5", "hotspot:0.001,1"];
    Distribution::ROWS.into_iter().flat_map(|row| row.tested).copied().chain(extremes)
}

#[test]
fn every_distribution_passes_chi_square() {
    for distribution in all() {
        for (n, seed) in [(2, 1), (10, 2), (1_000, 3), (50_000, 4)] {
            let test = uniformity(&distribution.parse().unwrap(), n, 300_000, seed).unwrap();
            assert!(test.p > 1e-5, "seed {seed}, {distribution} over {n}: {test:?}");
        }
    }
}

#[test]
fn passes_are_exact() {
    for distribution in [Distribution::Sequential, Distribution::Permutation] {
        let test = uniformity(&distribution, 997, 3_000, 5).unwrap();
        assert_eq!((test.statistic, test.p), (0.0, 1.0));
    }
}

#[test]
fn masses_add_up_to_one() {
    for distribution in all() {
        for n in [1, 2, 3, 1_000] {
            let sum: f64 = masses(&distribution.parse().unwrap(), n).unwrap().iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{distribution} over {n}: {sum}");
        }
    }
}

#[test]
fn chi_square_detects_a_different_skew() {
    // Two per cent off in theta must be detected: the test must be powerful enough.
    let n = 1_000;
    let wanted = masses(&Distribution::Zipf(0.99), n).unwrap();
    let mut sampler = Sampler::new(&Distribution::Zipf(0.97), n, 1, Partition::WHOLE, true).unwrap();
    let mut random = Random::seeded(1);
    let mut counts = vec![0.0_f64; n as usize];
    for _ in 0..300_000 {
        counts[sampler.next(&mut random) as usize] += 1.0;
    }
    let statistic: f64 =
        wanted.iter().zip(counts).map(|(mass, count)| (count - mass * 3e5).powi(2) / (mass * 3e5)).sum();
    assert!(statistic > 1_300.0, "{statistic} with 999 degrees");
}

#[test]
fn permutations_pass_chi_square_on_neighbours() {
    for n in [1_000, 4_096, 100_000, 200_000, 131_073, 1 << 20, 1_000_000_007, 1 << 40, 1 << 62] {
        let worst = (0..10).map(|seed| neighbours(n, seed).p).fold(1.0, f64::min);
        assert!(worst > 1e-5, "seeds 0 to 9, {n} items: {worst}");
    }
}

#[test]
fn permutations_pass_chi_square_on_places() {
    for n in [2_u64, 3, 5, 17, 33, 100] {
        let seeds = 20_000;
        let mut counts = vec![0_u32; (n * n) as usize];
        for seed in 0..seeds {
            let permutation = Permutation::new(n, seed);
            for i in 0..n {
                counts[(i * n + permutation.at(i)) as usize] += 1;
            }
        }
        let expected = seeds as f64 / n as f64;
        let statistic: f64 =
            counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        let degrees = ((n - 1) * (n - 1)) as f64;
        assert!(
            statistic < degrees + 5.0 * (2.0 * degrees).sqrt() + 5.0,
            "{n} items: {statistic} for {degrees}"
        );
    }
}

#[test]
fn sizes_and_the_source_pass_kolmogorov_and_smirnov() {
    for spec in [
        "100",
        "uniform:250-2500",
        "zipf:1-1024",
        "normal:400,50",
        "normal:20,40",
        "pareto:0.2615,25.45,10-1024",
        "pareto:2.517,14.236,1-10000",
        "histogram:100*9,1000*1",
    ] {
        let test = ks(&spec.parse().unwrap(), 100_000, 7).unwrap();
        assert!(test.p > 1e-4, "seed 7, {spec}: {test:?}");
    }
    let test = ks_of_source(100_000, 7);
    assert!(test.p > 1e-4 && test.statistic > 1e-4, "seed 7: {test:?}");
}

#[test]
fn streams_are_disjoint_and_the_jump_is_proven() {
    let found = disjoint_streams(11, 24, 2_000);
    let wanted = Streams {
        streams: 24,
        draws: 2_000,
        repeated_windows: 0,
        are_jumps_apart: true,
        is_jump_exact: true,
    };
    assert_eq!(found, wanted);
}

#[test]
fn values_compress_as_asked() {
    // (size, share, lowest and highest share measured); what the header and the noise cost is in body.rs.
    let cases = [
        ("100", 1.0, 0.90, 0.95),
        ("100", 0.5, 0.47, 0.53),
        ("100", 0.3, 0.26, 0.33),
        ("uniform:50-150", 0.5, 0.47, 0.53),
        ("1000", 0.5, 0.47, 0.54),
        ("4096", 1.0, 0.99, 1.01),
        ("4096", 0.9, 0.87, 0.94),
        ("4096", 0.5, 0.47, 0.54),
        ("4096", 0.25, 0.22, 0.29),
        ("65536", 0.5, 0.47, 0.54),
    ];
    for (size, share, low, high) in cases {
        for block_bytes in [4_096, 16_384, 65_536] {
            let kept = compressibility(&size.parse().unwrap(), share, 1, block_bytes).unwrap();
            assert!((low..=high).contains(&kept), "{size} at {share} in {block_bytes}: {kept}");
        }
    }
}
