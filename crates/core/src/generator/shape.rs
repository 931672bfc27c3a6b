//! Tests of the generators themselves, for `kvdyno doctor --self`: each returns its measurements without a verdict.

use super::distribution::Distribution;
use super::permutation::Permutation;
use super::random::Random;
use super::sample::{Partition, Sampler};
use super::sizes::Sizes;
use super::spec::{SizeSpec, SpecError};
use super::value::{ValueRules, Values};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

/// The minimum of expected draws in a bin of a chi-square test.
const LEAST_EXPECTED: f64 = 8.0;

/// A chi-square test of counts against masses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquare {
    /// The sum of squared deviations over expectations.
    pub statistic: f64,
    /// Degrees of freedom; 0 if each count is fixed in advance.
    pub degrees: u64,
    /// The probability of a statistic at least as large if the masses are right.
    pub p: f64,
}

/// A Kolmogorov-Smirnov test of a sample against a distribution function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// The largest distance between the two functions.
    pub statistic: f64,
    /// The probability of a distance at least as large if the distribution is right; for whole numbers a lower bound
    /// of it.
    pub p: f64,
}

/// The result of comparing the streams of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Number of streams.
    pub streams: u64,
    /// Draws from each.
    pub draws: u64,
    /// Pairs of neighbouring draws (128 bits) that occurred more than once, in any of the streams.
    pub repeated_windows: u64,
    /// Whether stream i, jumped, was stream i + 1, for each i.
    pub are_jumps_apart: bool,
    /// Whether the jump equals 2^128 steps for every state: its result equals that of the transition matrix squared
    /// 128 times, on all 256 states with one bit, and both are linear. Because the period is 2^256 - 1, streams
    /// cannot overlap within 2^128 draws.
    pub is_jump_exact: bool,
}

/// The probability of each item if hot items are clustered: the exact ones of the algorithm in use (`ycsb-zipfian`:
/// exact except for ranks over a million). Takes O(n) time and memory; returns an error for parameters out of range.
pub fn masses(distribution: &Distribution, n: u64) -> Result<Vec<f64>, SpecError> {
    Ok(Sampler::new(distribution, n, 0, Partition::WHOLE, true)?.masses())
}

/// Compares draws with the exact probabilities. `sequential` and `permutation`, whose counts are fixed, get p = 1 if
/// every item was drawn equally often in complete passes (draws are rounded up to these), otherwise 0. Errors as in
/// `masses`.
pub fn uniformity(
    distribution: &Distribution,
    n: u64,
    draws: u64,
    seed: u64,
) -> Result<ChiSquare, SpecError> {
    let masses = masses(distribution, n)?;
    let is_pass = distribution.is_pass();
    let draws = if is_pass { draws.div_ceil(n) * n } else { draws };
    let mut sampler = Sampler::new(distribution, n, seed, Partition::WHOLE, true)?;
    let mut random = Random::seeded(seed);
    let mut counts = vec![0_u64; n as usize];
    for _ in 0..draws {
        counts[sampler.next(&mut random) as usize] += 1;
    }
    if is_pass {
        let statistic = counts.iter().map(|&count| (count as f64 - (draws / n) as f64).powi(2)).sum();
        return Ok(ChiSquare { statistic, degrees: 0, p: if statistic == 0.0 { 1.0 } else { 0.0 } });
    }
    Ok(against(&masses, &counts))
}

/// Compares where a permutation maps neighbours (i, i + 1) with random places: a table of up to 32 by 32 ranges of
/// places, for the first million items. `n` is at least 1000.
pub fn neighbours(n: u64, seed: u64) -> ChiSquare {
    let permutation = Permutation::new(n, seed);
    let places = n.min(1_000_000);
    let side = ((places as f64 / LEAST_EXPECTED).sqrt() as u64).clamp(2, 32);
    let range = |place: u64| (u128::from(place) * u128::from(side) / u128::from(n)) as u64;
    let size = |range: u64| {
        let start = |range: u64| (u128::from(range) * u128::from(n)).div_ceil(u128::from(side));
        (start(range + 1) - start(range)) as f64 / n as f64
    };
    let mut counts = vec![0_u64; (side * side) as usize];
    let mut before = permutation.at(0);
    for i in 1..places {
        let place = permutation.at(i);
        counts[(range(before) * side + range(place)) as usize] += 1;
        before = place;
    }
    let expected: Vec<f64> =
        (0..side * side).map(|cell| size(cell / side) * size(cell % side) * (places - 1) as f64).collect();
    chi_square(&expected, &counts)
}

/// Compares counts of items with their probabilities.
pub fn against(masses: &[f64], counts: &[u64]) -> ChiSquare {
    let draws = counts.iter().sum::<u64>() as f64;
    let expected: Vec<f64> = masses.iter().map(|mass| mass * draws).collect();
    chi_square(&expected, counts)
}

/// Compares counts of items, in their order, with their probabilities.
#[cfg(test)]
pub fn ks_of_counts(masses: &[f64], counts: &[u64]) -> KolmogorovSmirnov {
    let draws = counts.iter().sum::<u64>();
    let (mut below, mut seen, mut statistic) = (0.0, 0, 0.0_f64);
    for (mass, count) in masses.iter().zip(counts) {
        below += mass;
        seen += count;
        statistic = statistic.max((below - seen as f64 / draws as f64).abs());
    }
    KolmogorovSmirnov { statistic, p: kolmogorov(statistic, draws) }
}

/// Compares two samples by the counts of their bins; bins that are empty in both are skipped.
#[cfg(test)]
pub fn two_samples(left: &[u64], right: &[u64]) -> ChiSquare {
    let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
    let (of_left, of_right) = ((sum(right) / sum(left)).sqrt(), (sum(left) / sum(right)).sqrt());
    let (mut statistic, mut bins) = (0.0, 0_u64);
    for (&left, &right) in left.iter().zip(right).filter(|(left, right)| **left + **right > 0) {
        let difference = of_left * left as f64 - of_right * right as f64;
        statistic += difference * difference / (left + right) as f64;
        bins += 1;
    }
    let degrees = bins.saturating_sub(1);
    ChiSquare { statistic, degrees, p: ChiSquared::new(degrees as f64).map_or(1.0, |chi| chi.sf(statistic)) }
}

/// Chi-square with the rarest items combined until a bin expects at least `LEAST_EXPECTED`.
fn chi_square(expected: &[f64], counts: &[u64]) -> ChiSquare {
    let mut order: Vec<usize> = (0..expected.len()).collect();
    order.sort_by(|&a, &b| expected[b].total_cmp(&expected[a]));
    let (mut statistic, mut bins) = (0.0, 0_u64);
    let (mut wanted, mut actual) = (0.0, 0.0);
    let mut left: f64 = expected.iter().sum();
    for &item in &order {
        wanted += expected[item];
        actual += counts[item] as f64;
        left -= expected[item];
        // The last bin gets what would be too little for a separate one.
        let is_last = item == order[order.len() - 1];
        if is_last || (wanted >= LEAST_EXPECTED && left >= LEAST_EXPECTED) {
            if wanted > 0.0 {
                statistic += (actual - wanted) * (actual - wanted) / wanted;
                bins += 1;
            }
            (wanted, actual) = (0.0, 0.0);
        }
    }
    let degrees = bins.saturating_sub(1);
    let p = ChiSquared::new(degrees as f64).map_or(1.0, |chi| chi.sf(statistic));
    ChiSquare { statistic, degrees, p }
}

/// Compares drawn sizes with the spec's distribution function. Returns an error for a spec out of range.
pub fn ks(spec: &SizeSpec, draws: u64, seed: u64) -> Result<KolmogorovSmirnov, SpecError> {
    let sizes = Sizes::new(spec)?;
    let bell = Normal::standard();
    let below = |size: u32| sizes.at_most(size, |x| bell.cdf(x));
    let mut random = Random::seeded(seed);
    let mut drawn: Vec<u32> = (0..draws).map(|_| sizes.of(random.next_u64())).collect();
    drawn.sort_unstable();
    let mut statistic: f64 = 0.0;
    let mut seen = 0;
    for run in drawn.chunk_by(|a, b| a == b) {
        // Both are step functions of whole numbers: the distance is largest at a drawn size or just below it.
        let smaller = run[0].checked_sub(1).map_or(0.0, below);
        statistic = statistic.max((smaller - seen as f64 / draws as f64).abs());
        seen += run.len();
        statistic = statistic.max((below(run[0]) - seen as f64 / draws as f64).abs());
    }
    Ok(KolmogorovSmirnov { statistic, p: kolmogorov(statistic, draws) })
}

/// Compares the random source's numbers in [0, 1) with the uniform distribution.
pub fn ks_of_source(draws: u64, seed: u64) -> KolmogorovSmirnov {
    let mut random = Random::seeded(seed);
    let mut drawn: Vec<f64> = (0..draws).map(|_| random.unit()).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let distances = drawn.iter().enumerate().map(|(place, &number)| {
        let (under, at) = (place as f64 / draws as f64, (place + 1) as f64 / draws as f64);
        (number - under).abs().max((at - number).abs())
    });
    let statistic = distances.fold(0.0, f64::max);
    KolmogorovSmirnov { statistic, p: kolmogorov(statistic, draws) }
}

/// The asymptotic probability of a larger distance, with Stephens's correction for finite samples.
fn kolmogorov(statistic: f64, draws: u64) -> f64 {
    let root = (draws as f64).sqrt();
    let x = (root + 0.12 + 0.11 / root) * statistic;
    if x < 0.2 {
        return 1.0;
    }
    let term = |k: f64| (-2.0 * k * k * x * x).exp();
    let sum: f64 = (1..=50).map(|k| if k % 2 == 1 { term(f64::from(k)) } else { -term(f64::from(k)) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// Searches the streams of a seed for common draws, and proves the jump between them. Takes 16 bytes per draw.
pub fn disjoint_streams(seed: u64, streams: u64, draws: u64) -> Streams {
    let mut windows = Vec::new();
    let mut are_jumps_apart = true;
    let mut start = Random::seeded(seed);
    for stream in 0..streams {
        are_jumps_apart &= stream > 16 || start == Random::stream(seed, stream);
        let mut random = start.clone();
        let mut before = random.next_u64();
        for _ in 1..draws {
            let number = random.next_u64();
            windows.push([before, number]);
            before = number;
        }
        start.jump();
    }
    windows.sort_unstable();
    let repeated_windows = windows.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    Streams { streams, draws, repeated_windows, are_jumps_apart, is_jump_exact: is_jump_exact() }
}

/// Compares `Random::jump` with 2^128 steps, by the transition matrix over single bits.
fn is_jump_exact() -> bool {
    let unit = |bit: usize| {
        let mut state = [0; 4];
        state[bit / 64] = 1 << (bit % 64);
        Random { state }
    };
    // Column c is the state that follows the state in which only bit c is set.
    let mut matrix: Vec<[u64; 4]> = (0..256)
        .map(|bit| {
            let mut random = unit(bit);
            random.next_u64();
            random.state
        })
        .collect();
    for _ in 0..128 {
        matrix = matrix.iter().map(|column| product(&matrix, column)).collect();
    }
    (0..256).all(|bit| {
        let mut random = unit(bit);
        random.jump();
        random.state == matrix[bit]
    })
}

/// A matrix over single bits times a state.
fn product(matrix: &[[u64; 4]], state: &[u64; 4]) -> [u64; 4] {
    let mut sum = [0; 4];
    for (bit, column) in matrix.iter().enumerate() {
        if state[bit / 64] >> (bit % 64) & 1 == 1 {
            for (into, from) in sum.iter_mut().zip(column) {
                *into ^= from;
            }
        }
    }
    sum
}

/// The share of bytes that LZ4 keeps of values concatenated and compressed in blocks of `block_bytes`, over a
/// megabyte of values or 32 of them, whichever is more. Returns an error for a spec or share out of range, and for values
/// that all have 0 bytes.
pub fn compressibility(size: &SizeSpec, share: f64, seed: u64, block_bytes: usize) -> Result<f64, SpecError> {
    let values = Values::new(&ValueRules { size: size.clone(), compressed_share: share }, seed)?;
    if values.max_len() == 0 {
        return Err(SpecError(format!("size `{size}`: values without bytes cannot be compressed")));
    }
    let mut random = Random::seeded(seed);
    let mut bytes = Vec::new();
    let mut value = vec![0; values.max_len()];
    for count in 0.. {
        if bytes.len() >= 1 << 20 && count >= 32 {
            break;
        }
        let len = values.write(random.below(1_000_000), random.below(4), &mut value);
        bytes.extend_from_slice(&value[..len]);
    }
    let blocks = bytes.chunks_exact(block_bytes.min(bytes.len()));
    let (mut before, mut after) = (0, 0);
    for block in blocks {
        before += block.len();
        after += lz4_flex::block::compress(block).len();
    }
    Ok(after as f64 / before as f64)
}
