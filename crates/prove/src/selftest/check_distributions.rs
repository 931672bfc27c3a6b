//! Random numbers: distributions by chi-square and Kolmogorov-Smirnov tests, disjoint streams, correct permutations.

use super::{Finding, LEAST_P};
use kvdyno_core::generator::shape::{self, ChiSquare, KolmogorovSmirnov};
use kvdyno_core::generator::{Distribution, Permutation, SizeSpec};

/// Items and draws of a chi-square test.
const ITEMS: u64 = 1000;
const DRAWS: u64 = 200_000;
/// As users type them.
const SIZES: [&str; 6] = [
    "uniform:250-2500",
    "uniform:1-8",
    "zipf:1-1024",
    "normal:1000,100",
    "pareto:0.2615,25.45,10-1024",
    "histogram:100*9,1000*1",
];
/// Sizes of ranges around powers of two, where permutations walk past the end of the range.
const RANGES: [u64; 9] = [1, 2, 3, 31, 1000, 1024, 1025, 65_537, 200_003];

pub(super) fn all(seed: u64) -> Vec<Finding> {
    let mut findings = vec![of_source(seed), streams(seed)];
    let texts = Distribution::ROWS.into_iter().flat_map(|row| row.tested);
    findings.extend(texts.map(|text| distribution(text, seed)));
    findings.extend(SIZES.iter().map(|text| size(text, seed)));
    findings.push(permutations(seed));
    findings.extend([1000, 100_000, 10_000_000].map(|n| {
        let found = shape::neighbours(n, seed);
        by_chi_square(format!("permutation of {n}: neighbours"), found)
    }));
    findings
}

fn of_source(seed: u64) -> Finding {
    by_distance("random source, 0 to 1".into(), shape::ks_of_source(DRAWS, seed))
}

fn by_distance(name: String, found: KolmogorovSmirnov) -> Finding {
    let KolmogorovSmirnov { statistic, p } = found;
    Finding::new(
        name,
        p >= LEAST_P,
        format!("KS distance {statistic:.5}, p {p:.3e} (at least {LEAST_P:.0e})"),
    )
}

fn by_chi_square(name: String, found: ChiSquare) -> Finding {
    let ChiSquare { statistic, degrees, p } = found;
    let measured =
        format!("chi square {statistic:.1} of {degrees} degrees, p {p:.3e} (at least {LEAST_P:.0e})");
    Finding::new(name, p >= LEAST_P, measured)
}

fn distribution(text: &str, seed: u64) -> Finding {
    let name = format!("distribution {text}");
    let found = text
        .parse::<Distribution>()
        .and_then(|distribution| shape::uniformity(&distribution, ITEMS, DRAWS, seed));
    match found {
        Ok(found) if found.degrees == 0 => {
            let measured = format!("{} draws, every item drawn equally often", DRAWS.div_ceil(ITEMS) * ITEMS);
            let passed = found.p >= LEAST_P;
            let text = if passed { measured } else { "not every item was drawn equally often".into() };
            Finding::new(name, passed, text)
        }
        Ok(found) => by_chi_square(name, found),
        Err(error) => Finding::broken(name, error),
    }
}

fn size(text: &str, seed: u64) -> Finding {
    let name = format!("size {text}");
    match text.parse::<SizeSpec>().and_then(|spec| shape::ks(&spec, DRAWS, seed)) {
        Ok(found) => by_distance(name, found),
        Err(error) => Finding::broken(name, error),
    }
}

fn streams(seed: u64) -> Finding {
    const STREAMS: u64 = 32;
    const DRAWS_EACH: u64 = 10_000;
    let found = shape::disjoint_streams(seed, STREAMS, DRAWS_EACH);
    let passed = found.repeated_windows == 0 && found.are_jumps_apart && found.is_jump_exact;
    let measured = format!(
        "{} of {STREAMS} x {DRAWS_EACH} windows repeat; jumps of 2^128 {}",
        found.repeated_windows,
        if found.is_jump_exact && found.are_jumps_apart { "proven" } else { "NOT proven" }
    );
    Finding::new("streams of threads are disjoint", passed, measured)
}

/// Every item is drawn once, and the inverse maps it back.
fn permutations(seed: u64) -> Finding {
    let name = "permutations cover their range";
    for n in RANGES {
        let permutation = Permutation::new(n, seed);
        let mut seen = vec![false; n as usize];
        for item in 0..n {
            let image = permutation.at(item);
            let is_fresh = image < n && !std::mem::replace(&mut seen[image as usize], true);
            if !is_fresh || permutation.inverse(image) != item {
                return Finding::broken(
                    name,
                    format!(
                        "of {n}: item {item} maps to {image}, which is out of range, repeated or not inverted"
                    ),
                );
            }
        }
    }
    let ranges = RANGES.map(|n| n.to_string()).join(", ");
    Finding::new(name, true, format!("each item once, with inverse, for ranges of {ranges}"))
}
