//! Values: their compressibility, and that the value check detects every wrong value.

use super::Finding;
use kvdyno_core::generator::{Random, SizeSpec, SpecError, ValueRules, Values, shape};

/// Values to compress by LZ4.
struct Compressible {
    size: &'static str,
    /// The requested share of incompressible bytes.
    share: f64,
    tolerance: f64,
}

/// At share 1 the headers of small values still compress.
const COMPRESSIBILITY: [Compressible; 6] = [
    Compressible { size: "100", share: 1.0, tolerance: 0.10 },
    Compressible { size: "100", share: 0.5, tolerance: 0.04 },
    Compressible { size: "1000", share: 0.5, tolerance: 0.04 },
    Compressible { size: "4096", share: 1.0, tolerance: 0.02 },
    Compressible { size: "4096", share: 0.25, tolerance: 0.05 },
    Compressible { size: "uniform:50-150", share: 0.5, tolerance: 0.04 },
];
/// Size of the blocks that engines compress.
const BLOCK_BYTES: usize = 16 << 10;
/// One size of each form of a value, and one whose body has several chunks.
const SIZES: [u32; 8] = [4, 7, 8, 15, 16, 24, 100, 9000];

pub(super) fn all(seed: u64) -> Vec<Finding> {
    let mut findings: Vec<_> = COMPRESSIBILITY.iter().map(|case| compressibility(case, seed)).collect();
    findings.extend(SIZES.map(|size| bit_flips(size, seed)));
    findings.push(mistakes(seed));
    findings
}

fn compressibility(case: &Compressible, seed: u64) -> Finding {
    let Compressible { size, share, tolerance } = *case;
    let name = format!("values of {size} B at share {share}");
    let found =
        size.parse::<SizeSpec>().and_then(|size| shape::compressibility(&size, share, seed, BLOCK_BYTES));
    match found {
        Ok(kept) => {
            let measured =
                format!("LZ4 keeps {kept:.3} in blocks of 16 KiB (requested {share}, tolerance {tolerance})");
            Finding::new(name, (kept - share).abs() <= tolerance, measured)
        }
        Err(error) => Finding::broken(name, error),
    }
}

fn values_of(size: u32, seed: u64) -> Result<Values, SpecError> {
    Values::new(&ValueRules { size: SizeSpec::Fixed(size), compressed_share: 0.5 }, seed)
}

/// Flips each single bit of some values: the check must detect each flip.
fn bit_flips(size: u32, seed: u64) -> Finding {
    let name = format!("value check, bit flips in {size} B");
    let values = match values_of(size, seed) {
        Ok(values) => values,
        Err(error) => return Finding::broken(name, error),
    };
    let mut random = Random::seeded(seed);
    let mut bytes = vec![0; values.max_len()];
    let samples = if size > 1000 { 2 } else { 20 };
    let (mut flips, mut missed) = (0_u64, 0_u64);
    for _ in 0..samples {
        let (index, version) = (random.below(1 << 40), random.below(1 << 20));
        let length = values.write(index, version, &mut bytes);
        if let Err(fault) = values.check_version(index, version, &bytes[..length]) {
            return Finding::broken(name, format!("a correct value is reported as wrong: {fault}"));
        }
        for bit in 0..8 * length {
            bytes[bit / 8] ^= 1 << (bit % 8);
            flips += 1;
            missed += u64::from(values.check_version(index, version, &bytes[..length]).is_ok());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    Finding::new(name, missed == 0, format!("{missed} of {flips} flips missed"))
}

/// Values of other keys, versions and seeds, truncated values, and zeros.
fn mistakes(seed: u64) -> Finding {
    const SAMPLES: u64 = 2000;
    let name = "value check, wrong values of 100 B";
    let (values, others) = match (values_of(100, seed), values_of(100, seed.wrapping_add(1))) {
        (Ok(values), Ok(others)) => (values, others),
        (Err(error), _) | (_, Err(error)) => return Finding::broken(name, error),
    };
    let mut missed = 0;
    let mut bytes = [0; 100];
    for index in 0..SAMPLES {
        let version = index % 5;
        let mut is_missed = |index: u64, bytes: &[u8]| {
            missed += u64::from(values.check_version(index, version, bytes).is_ok());
        };
        values.write(index, version, &mut bytes);
        is_missed(index + 1, &bytes);
        is_missed(index, &bytes[..99]);
        values.write(index, version + 1, &mut bytes);
        is_missed(index, &bytes);
        others.write(index, version, &mut bytes);
        is_missed(index, &bytes);
        is_missed(index, &[0; 100]);
    }
    let measured = format!("{missed} of {} missed: other key, version, seed, length; zeros", 5 * SAMPLES);
    Finding::new(name, missed == 0, measured)
}
