//! Sizes of keys and values: a pure function of 64 bits, so that an item always has the same size.

use super::alias::Alias;
use super::distribution::zipf::{Ranks, zeta};
use super::pareto::Pareto;
use super::portable::{exp, ln};
use super::random::{mix64, scale};
use super::spec::{SizeSpec, SpecError};

/// The skew of `zipf:A-B`, YCSB's constant.
const THETA: f64 = 0.99;
/// The truncation of `normal`, in deviations.
const CUT: f64 = 4.0;

/// A distribution of sizes in bytes.
#[derive(Clone, Debug)]
pub struct Sizes {
    least: u32,
    most: u32,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Fixed,
    Uniform { count: u64 },
    Zipf(Ranks),
    Normal { mean: f64, deviation: f64 },
    Pareto(Pareto),
    Histogram { sizes: Vec<u32>, weights: Vec<f64>, alias: Alias },
}

impl Sizes {
    /// The sizes that a spec describes; an error if the spec is out of range.
    pub fn new(spec: &SizeSpec) -> Result<Sizes, SpecError> {
        Ok(match spec.clone().checked()? {
            SizeSpec::Fixed(size) => Sizes { least: size, most: size, form: Form::Fixed },
            SizeSpec::Uniform(least, most) => {
                Sizes { least, most, form: Form::Uniform { count: u64::from(most - least) + 1 } }
            }
            SizeSpec::Zipf(least, most) => {
                let ranks = Ranks::new(u64::from(most - least) + 1, THETA);
                Sizes { least, most, form: Form::Zipf(ranks) }
            }
            SizeSpec::Normal(mean, deviation) => Sizes {
                least: (mean - CUT * deviation).max(1.0).ceil() as u32,
                most: (mean + CUT * deviation).floor() as u32,
                form: Form::Normal { mean, deviation },
            }
            .or_single(mean),
            SizeSpec::Pareto(shape, least, most) => {
                Sizes { least, most, form: Form::Pareto(Pareto::new(shape, least, most)) }
            }
            SizeSpec::Histogram(bars) => {
                let (sizes, weights): (Vec<u32>, Vec<f64>) = bars.into_iter().unzip();
                let least = sizes.iter().copied().min().unwrap_or(1);
                let most = sizes.iter().copied().max().unwrap_or(1);
                let alias = Alias::new(&weights);
                Sizes { least, most, form: Form::Histogram { sizes, weights, alias } }
            }
        })
    }

    /// Sizes of which only the bounds are known, bytes.
    pub(super) fn between(least: u32, most: u32) -> Sizes {
        Sizes { least, most, form: Form::Uniform { count: u64::from(most - least) + 1 } }
    }

    /// A deviation under a quarter of a byte may leave no whole number within the truncation: then the nearest is the
    /// size.
    fn or_single(self, mean: f64) -> Sizes {
        let size = mean.round() as u32;
        if self.least < self.most { self } else { Sizes { least: size, most: size, form: Form::Fixed } }
    }

    /// The size in bytes selected by 64 random bits.
    #[inline]
    pub fn of(&self, hash: u64) -> u32 {
        match &self.form {
            Form::Fixed => self.least,
            // The bias of a plain multiplication is under 2^-32 here.
            Form::Uniform { count } => self.least + scale(hash, *count) as u32,
            _ => self.drawn(hash),
        }
    }

    fn drawn(&self, hash: u64) -> u32 {
        let mut state = hash;
        let mut bits = || {
            let drawn = state;
            state = mix64(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
            drawn
        };
        match &self.form {
            Form::Zipf(ranks) => self.least + ranks.next(bits) as u32,
            Form::Normal { mean, deviation } => loop {
                let size = (mean + deviation * normal(&mut bits)).round();
                if size >= f64::from(self.least) && size <= f64::from(self.most) {
                    return size as u32;
                }
            },
            Form::Pareto(pareto) => pareto.of(bits()),
            Form::Histogram { sizes, alias, .. } => sizes[alias.pick(bits())],
            Form::Fixed | Form::Uniform { .. } => self.of(hash),
        }
    }

    /// The smallest size, in bytes.
    pub fn min(&self) -> u32 {
        self.least
    }

    /// The largest size, in bytes.
    pub fn max(&self) -> u32 {
        self.most
    }

    /// The fixed size, in bytes; `None` if sizes differ.
    pub fn fixed(&self) -> Option<u32> {
        (self.least == self.most).then_some(self.least)
    }

    /// The mean size, in bytes.
    pub fn mean(&self) -> f64 {
        match &self.form {
            Form::Fixed => f64::from(self.least),
            Form::Uniform { .. } => (f64::from(self.least) + f64::from(self.most)) / 2.0,
            Form::Zipf(_) => {
                let count = u64::from(self.most - self.least) + 1;
                f64::from(self.least) - 1.0 + zeta(count, THETA - 1.0) / zeta(count, THETA)
            }
            Form::Normal { mean, deviation } => {
                self.normal_sum(*mean, *deviation, |x| x) / self.normal_sum(*mean, *deviation, |_| 1.0)
            }
            Form::Pareto(pareto) => pareto.mean(),
            Form::Histogram { sizes, weights, .. } => {
                let sum: f64 =
                    sizes.iter().zip(weights).map(|(size, weight)| f64::from(*size) * weight).sum();
                sum / weights.iter().sum::<f64>()
            }
        }
    }

    /// The integral of `f` under the bell curve within the truncation, by 2000 midpoints.
    fn normal_sum(&self, mean: f64, deviation: f64, f: impl Fn(f64) -> f64) -> f64 {
        let width = (f64::from(self.most) - f64::from(self.least) + 1.0) / 2_000.0;
        let points = (0..2_000).map(|k| f64::from(self.least) - 0.5 + (f64::from(k) + 0.5) * width);
        points.map(|x| f(x) * exp(-((x - mean) / deviation).powi(2) / 2.0)).sum()
    }

    /// The probability of a size of at most `size` bytes, for tests of the draws. `normal` needs its distribution
    /// function, which the caller provides.
    pub(super) fn at_most(&self, size: u32, bell: impl Fn(f64) -> f64) -> f64 {
        if size < self.least {
            return 0.0;
        }
        if size >= self.most {
            return 1.0;
        }
        match &self.form {
            Form::Fixed => 1.0,
            Form::Uniform { count } => f64::from(size - self.least + 1) / *count as f64,
            Form::Zipf(_) => {
                let count = u64::from(self.most - self.least) + 1;
                zeta(u64::from(size - self.least) + 1, THETA) / zeta(count, THETA)
            }
            Form::Normal { mean, deviation } => {
                let below = |edge: f64| bell((edge - mean) / deviation);
                let start = below(f64::from(self.least) - 0.5);
                (below(f64::from(size) + 0.5) - start) / (below(f64::from(self.most) + 0.5) - start)
            }
            Form::Pareto(pareto) => pareto.at_most(size),
            Form::Histogram { sizes, weights, .. } => {
                let under = sizes.iter().zip(weights).filter(|(bar, _)| **bar <= size);
                under.map(|(_, weight)| weight).sum::<f64>() / weights.iter().sum::<f64>()
            }
        }
    }
}

/// A standard normal number (Marsaglia's polar method).
fn normal(bits: &mut impl FnMut() -> u64) -> f64 {
    const HALF: f64 = 1.0 / 2_147_483_648.0;
    loop {
        let drawn = bits();
        let x = f64::from(drawn as u32) * HALF - 1.0;
        let y = f64::from((drawn >> 32) as u32) * HALF - 1.0;
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * ln(square) / square).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;

    const SPECS: &[&str] = &[
        "100",
        "uniform:250-2500",
        "0",
        "uniform:0-100",
        "zipf:0-1024",
        "histogram:0*1,100*9",
        "uniform:7-7",
        "zipf:1-1024",
        "zipf:4-65536",
        "normal:400,50",
        "normal:20,40",
        "normal:100,0",
        "normal:100.4,0.05",
        "histogram:100*9,1000*1",
        "histogram:8",
        "pareto:0.2615,25.45,10-1024",
        "pareto:0,40,1-300",
        "pareto:1.5,3,1-4294967295",
        "pareto:1,1,5-5",
        "zipf:1-4294967295",
    ];

    #[test]
    fn sizes_stay_in_range_and_have_the_mean_they_tell() {
        for spec in SPECS {
            let sizes = Sizes::new(&spec.parse().unwrap()).unwrap();
            let mut random = Random::seeded(17);
            let (mut sum, mut squares) = (0.0, 0.0);
            let draws = 100_000;
            for _ in 0..draws {
                let hash = random.next_u64();
                let size = sizes.of(hash);
                assert!((sizes.min()..=sizes.max()).contains(&size), "{spec}: {size}");
                assert_eq!(size, sizes.of(hash), "{spec}: the same bits select the same size");
                sum += f64::from(size);
                squares += f64::from(size).powi(2);
            }
            let mean = sum / f64::from(draws);
            let error = ((squares / f64::from(draws) - mean * mean).max(0.0) / f64::from(draws)).sqrt();
            let wanted = sizes.mean();
            assert!(
                (mean - wanted).abs() <= 5.0 * error + 1e-9,
                "seed 17, {spec}: mean {mean}, expected {wanted}"
            );
        }
    }

    #[test]
    fn normal_is_cut_at_one_and_at_four_deviations() {
        let sizes = Sizes::new(&SizeSpec::Normal(20.0, 40.0)).unwrap();
        assert_eq!((sizes.min(), sizes.max()), (1, 180));
        let sizes = Sizes::new(&SizeSpec::Normal(400.0, 50.0)).unwrap();
        assert_eq!((sizes.min(), sizes.max()), (200, 600));
        assert_eq!(Sizes::new(&SizeSpec::Normal(100.4, 0.05)).unwrap().fixed(), Some(100));
    }

    #[test]
    fn keeps_its_first_sizes() {
        let golden: &[(&str, [u32; 4])] = &[
            ("uniform:250-2500", [1011, 2182, 516, 1864]),
            ("zipf:1-1024", [1, 552, 14, 273]),
            ("normal:400,50", [375, 380, 428, 382]),
            ("pareto:0.2615,25.45,10-1024", [22, 80, 13, 51]),
            ("histogram:100*9,1000*1", [100, 100, 100, 100]),
        ];
        for (spec, wanted) in golden {
            let sizes = Sizes::new(&spec.parse().unwrap()).unwrap();
            assert_eq!([1, 2, 3, 4].map(|i| sizes.of(mix64(i))), *wanted, "{spec}");
        }
    }
}
