//! The generalized Pareto distribution, cut at a smallest and a largest whole number: the sizes of values and lengths of
//! scans in many traces.
//!
//! A number is sigma (e^(k t) - 1) / k, rounded up, where t is an exponential number. Because an exponential distribution has no
//! memory, the part of it between two bounds is drawn directly: one draw for each number, however unlikely the bounds are.
//! Rejected: to set numbers out of bounds to the nearest bound, or to take the remainder, as db_bench does, which makes sizes
//! likely that the distribution has hardly ever.

use super::portable::{exp, exp_minus_one_over, ln};
use super::random::fraction;
use super::spec::{SpecError, misshapen, numbers};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The shapes and scales that can be computed accurately.
const SHAPES: RangeInclusive<f64> = 0.0..=10.0;
const SCALES: RangeInclusive<f64> = 1e-3..=1e9;
/// Below this shape, powers of the exponential distribution are computed by a series.
const LEAST_SHAPE: f64 = 1e-6;

/// The parameters of a generalized Pareto distribution that begins at 0; as text `K,SIGMA`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ParetoShape {
    /// The weight of the tail: 0 is the exponential distribution, and from 1 on the mean is infinite.
    pub k: f64,
    /// The scale: the mean of the exponential distribution.
    pub sigma: f64,
}

impl ParetoShape {
    /// The shape, if its parameters are in range; otherwise an error that states the range.
    pub fn checked(self) -> Result<Self, SpecError> {
        let ParetoShape { k, sigma } = self;
        if !SHAPES.contains(&k) {
            return Err(SpecError(format!("K of a Pareto distribution must be 0 to 10, got {k}")));
        }
        if !SCALES.contains(&sigma) {
            let text = format!("SIGMA of a Pareto distribution must be 0.001 to 1000000000, got {sigma}");
            return Err(SpecError(text));
        }
        Ok(self)
    }

    /// The exponential number that becomes `x`: minus the logarithm of the probability of a number over `x`.
    fn time(self, x: f64) -> f64 {
        let y = self.k * x / self.sigma;
        if y < 1e-4 {
            x / self.sigma * (1.0 - y * (1.0 / 2.0 - y * (1.0 / 3.0 - y / 4.0)))
        } else {
            ln(1.0 + y) / self.k
        }
    }

    /// The number that an exponential one becomes.
    #[inline]
    fn number(self, time: f64) -> f64 {
        if self.k < LEAST_SHAPE {
            self.sigma * time * exp_minus_one_over(self.k * time)
        } else {
            self.sigma * (exp(self.k * time) - 1.0) / self.k
        }
    }
}

impl FromStr for ParetoShape {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match numbers(Some(text)).as_deref() {
            Some([k, sigma]) => ParetoShape { k: *k, sigma: *sigma }.checked(),
            _ => Err(misshapen(text.trim(), "K,SIGMA", "2.517,14.236")),
        }
    }
}

impl fmt::Display for ParetoShape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{},{}", self.k, self.sigma)
    }
}

impl TryFrom<String> for ParetoShape {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<ParetoShape> for String {
    fn from(shape: ParetoShape) -> String {
        shape.to_string()
    }
}

impl JsonSchema for ParetoShape {
    fn schema_name() -> Cow<'static, str> {
        "Pareto".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A generalized Pareto distribution from 0 on: `K,SIGMA`, its shape and scale.",
            "pattern": "^ *[0-9.eE+-]+ *, *[0-9.eE+-]+ *$",
            "examples": ["2.517,14.236"]
        })
    }
}

/// Draws whole numbers of a Pareto distribution within bounds, both included.
#[derive(Clone, Copy, Debug)]
pub struct Pareto {
    shape: ParetoShape,
    least: u32,
    most: u32,
    /// The exponential numbers begin here.
    start: f64,
    /// The probability that they end before the largest number.
    reach: f64,
}

impl Pareto {
    /// Numbers of a shape that is in range, from `least` to `most`; `least` is 1 or more.
    pub fn new(shape: ParetoShape, least: u32, most: u32) -> Pareto {
        let start = shape.time(f64::from(least) - 1.0);
        let reach = below(shape.time(f64::from(most)) - start);
        Pareto { shape, least, most, start, reach }
    }

    /// The number selected by 64 random bits.
    #[inline]
    pub fn of(&self, bits: u64) -> u32 {
        let time = self.start - ln(1.0 - fraction(bits) * self.reach);
        let number = self.shape.number(time).ceil();
        number.clamp(f64::from(self.least), f64::from(self.most)) as u32
    }

    /// The probability of a number over `x`, without the cut at the largest.
    fn over(&self, x: f64) -> f64 {
        exp(self.start - self.shape.time(x))
    }

    /// The probability of a number of at most `number`, which is within the bounds.
    pub(super) fn at_most(&self, number: u32) -> f64 {
        below(self.shape.time(f64::from(number)) - self.start) / self.reach
    }

    /// The mean: the smallest number, and the probability of more than each number from there on. The first thousand are added
    /// one by one, the others by Euler and Maclaurin.
    pub(super) fn mean(&self) -> f64 {
        const DIRECT: u32 = 1_000;
        let middle = self.most.min(self.least.saturating_add(DIRECT));
        let (first, last) = (f64::from(middle), f64::from(self.most));
        let direct: f64 = (self.least..middle).map(|number| self.over(f64::from(number))).sum();
        let (from, to) = (self.over(first), self.over(last));
        let ParetoShape { k, sigma } = self.shape;
        let span = self.shape.time(last) - self.shape.time(first);
        let integral = (sigma + k * first) * from * span * exp_minus_one_over((k - 1.0) * span);
        let slopes = from / (sigma + k * first) - to / (sigma + k * last);
        let rest = integral + (from - to) / 2.0 + slopes / 12.0;
        let numbers = f64::from(self.most) - f64::from(self.least);
        f64::from(self.least) + (direct + rest - numbers * to) / self.reach
    }
}

/// The probability that an exponential number is below `time`.
fn below(time: f64) -> f64 {
    time * exp_minus_one_over(-time)
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::super::shape::against;
    use super::*;

    /// Shape, scale and bounds: both laws of mixgraph, the exponential one, one that is nearly that, bounds far in the tail, a
    /// single number.
    const CASES: &[(f64, f64, u32, u32)] = &[
        (0.2615, 25.45, 10, 1024),
        (2.517, 14.236, 1, 10_000),
        (0.0, 40.0, 1, 300),
        (1e-9, 40.0, 1, 300),
        (1.0, 3.0, 1, 5_000),
        (0.0, 1.0, 2_000, 2_010),
        (10.0, 1e-3, 5, 900),
        (0.5, 1e9, 1, 2_000),
        (0.3, 20.0, 7, 7),
    ];

    fn pareto(&(k, sigma, least, most): &(f64, f64, u32, u32)) -> Pareto {
        Pareto::new(ParetoShape { k, sigma }.checked().unwrap(), least, most)
    }

    /// The probability of a number over x, as in books: `(1 + k x / sigma)^(-1 / k)`, relative to that at the lower bound.
    fn survival(k: f64, sigma: f64, x: f64, start: f64) -> f64 {
        let log = |x: f64| if k < 1e-8 { -x / sigma } else { -(k * x / sigma).ln_1p() / k };
        (log(x) - log(start)).exp()
    }

    fn masses(&(k, sigma, least, most): &(f64, f64, u32, u32)) -> Vec<f64> {
        let over = |number: u32| survival(k, sigma, f64::from(number), f64::from(least) - 1.0);
        (least..=most).map(|number| (over(number - 1) - over(number)) / (1.0 - over(most))).collect()
    }

    #[test]
    fn draws_have_the_closed_form_between_their_bounds() {
        for case @ (.., least, most) in CASES {
            let (pareto, mut random) = (pareto(case), Random::seeded(31));
            let mut counts = vec![0_u64; (most - least + 1) as usize];
            for _ in 0..1_000_000 {
                let number = pareto.of(random.next_u64());
                assert!((*least..=*most).contains(&number), "seed 31, {case:?}: {number}");
                counts[(number - least) as usize] += 1;
            }
            let masses = masses(case);
            let test = against(&masses, &counts);
            assert!(test.p > 1e-4, "seed 31, {case:?}: {test:?}");
            // A scale that is 10 % off would be seen.
            if most - least > 20 && case.1 < 1e6 {
                let (k, sigma, ..) = *case;
                let off = against(&self::masses(&(k, sigma * 1.1, *least, *most)), &counts);
                assert!(off.p < 1e-4 || k > 5.0, "seed 31, {case:?}: {off:?}");
            }
        }
    }

    #[test]
    fn function_and_mean_are_those_of_the_sum() {
        for case @ (_, _, least, most) in CASES {
            let (pareto, masses) = (pareto(case), masses(case));
            let mut sum = 0.0;
            for (number, mass) in (*least..=*most).zip(&masses) {
                sum += mass;
                assert!((pareto.at_most(number) - sum).abs() < 1e-9, "{case:?} at {number}");
            }
            let mean: f64 =
                (*least..=*most).zip(&masses).map(|(number, mass)| f64::from(number) * mass).sum();
            assert!((pareto.mean() / mean - 1.0).abs() < 1e-9, "{case:?}: {} and {mean}", pareto.mean());
        }
        // Too many numbers to add up: 1 / (1 - k) of the scale, and half a byte for rounding up.
        let wide = Pareto::new(ParetoShape { k: 0.25, sigma: 3e4 }, 1, u32::MAX);
        assert!((wide.mean() / 40_000.5 - 1.0).abs() < 1e-9, "{}", wide.mean());
    }

    #[test]
    fn the_ends_of_the_random_bits_are_the_bounds() {
        for case @ (.., least, most) in CASES {
            let pareto = pareto(case);
            assert_eq!(pareto.of(0), *least, "{case:?}");
            assert!(pareto.of(u64::MAX) <= *most, "{case:?}");
        }
        assert_eq!(pareto(&CASES[0]).of(u64::MAX), 1024);
        assert_eq!(pareto(&CASES[1]).of(u64::MAX), 10_000);
    }

    #[test]
    fn keeps_its_first_numbers() {
        let drawn = |case| {
            let (pareto, mut random) = (pareto(case), Random::seeded(42));
            [(); 6].map(|()| pareto.of(random.next_u64()))
        };
        assert_eq!(drawn(&CASES[0]), [68, 21, 216, 49, 64, 37]);
        assert_eq!(drawn(&CASES[1]), [230, 9, 5183, 84, 186, 39]);
    }

    #[test]
    fn parameters_out_of_range_are_refused_in_one_line() {
        let error = |text: &str| text.parse::<ParetoShape>().unwrap_err().0;
        assert_eq!(error("2.5"), "`2.5` is not of the form `K,SIGMA`; for example `2.517,14.236`");
        assert_eq!(error("a,b"), "`a,b` is not of the form `K,SIGMA`; for example `2.517,14.236`");
        assert_eq!(error("-1,5"), "K of a Pareto distribution must be 0 to 10, got -1");
        assert_eq!(error("NaN,5"), "K of a Pareto distribution must be 0 to 10, got NaN");
        assert_eq!(error("1,0"), "SIGMA of a Pareto distribution must be 0.001 to 1000000000, got 0");
        assert_eq!(error("1,inf"), "SIGMA of a Pareto distribution must be 0.001 to 1000000000, got inf");
        let shape: ParetoShape = " 2.517 , 14.236 ".parse().unwrap();
        assert_eq!((shape.k, shape.sigma, shape.to_string().as_str()), (2.517, 14.236, "2.517,14.236"));
    }
}
