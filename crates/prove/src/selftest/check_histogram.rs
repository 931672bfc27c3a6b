//! The histogram against an exact sort.

use super::Finding;
use kvdyno_core::generator::Random;
use kvdyno_measure::Histogram;

const VALUES: usize = 200_000;
/// Histograms that are recorded separately and merged.
const PARTS: usize = 7;
/// Maximum relative error of a quantile, always upward.
const MOST_ERROR: f64 = 0.001;
const QUANTILES: [(u64, u64); 11] = [
    (1, 1000),
    (1, 100),
    (1, 10),
    (1, 4),
    (1, 2),
    (9, 10),
    (99, 100),
    (999, 1000),
    (9999, 10_000),
    (99_999, 100_000),
    (1, 1),
];

type Draw = fn(&mut Random) -> u64;

/// Shapes of latency distributions: narrow, wide, two peaks, a heavy tail.
const SHAPES: [(&str, Draw); 6] = [
    ("constant", |_| 1_234_567),
    ("uniform", |random| random.below(10_000_000)),
    ("exponential", |random| (-20_000.0 * (1.0 - random.unit()).ln()) as u64),
    ("lognormal", |random| {
        let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        (8.0 + 1.5 * normal).exp() as u64
    }),
    ("pareto", |random| (500.0 * (1.0 - random.unit()).powf(-1.0 / 1.1)).min(1e12) as u64),
    ("two humps", |random| {
        if random.below(100) == 0 { 40_000_000 + random.below(1_000_000) } else { 300 + random.below(40) }
    }),
];

pub(super) fn all(seed: u64) -> Vec<Finding> {
    SHAPES
        .iter()
        .enumerate()
        .map(|(stream, (shape, draw))| one(shape, *draw, Random::stream(seed, stream as u64)))
        .collect()
}

fn one(shape: &str, draw: Draw, mut random: Random) -> Finding {
    let name = format!("histogram of {shape} times");
    let mut values: Vec<u64> = (0..VALUES).map(|_| draw(&mut random)).collect();
    let mut whole = Histogram::new();
    let mut parts = vec![Histogram::new(); PARTS];
    for (place, &value) in values.iter().enumerate() {
        whole.record(value);
        parts[place % PARTS].record(value);
    }
    let mut merged = Histogram::empty();
    parts.iter().for_each(|part| merged.merge(part));
    if merged != whole {
        return Finding::broken(name, "merging the parts and recording all values give different histograms");
    }
    values.sort_unstable();
    let exact = (values.first().copied(), values.last().copied(), values.iter().sum::<u64>());
    if (whole.min_ns(), whole.max_ns(), whole.sum_ns()) != exact {
        return Finding::broken(name, "minimum, maximum or sum is not exact");
    }
    let mut worst: f64 = 0.0;
    for (numerator, denominator) in QUANTILES {
        let rank = (VALUES as u64 * numerator).div_ceil(denominator).max(1);
        let expected = values[rank as usize - 1];
        let Some(reported) = whole.quantile(numerator, denominator) else {
            return Finding::broken(name, format!("no quantile {numerator}/{denominator}"));
        };
        if reported < expected {
            let text = format!("quantile {numerator}/{denominator} is {reported}, expected {expected}");
            return Finding::broken(name, text);
        }
        worst = worst.max((reported - expected) as f64 / expected.max(1) as f64);
    }
    let measured =
        format!("worst of {} quantiles {:.4} % too high (at most 0.1 %)", QUANTILES.len(), 100.0 * worst);
    Finding::new(name, worst <= MOST_ERROR, measured)
}
