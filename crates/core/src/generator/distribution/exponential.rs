//! `exponential:PERCENTILE,FRACTION`: the newest item is the most likely, with exponential decay, as in YCSB.

use super::{Bound, Draws, Hot, Items, Places, Row};
use crate::generator::portable::{exp, ln};
use crate::generator::random::Random;

/// YCSB's: 95 % of the draws within 6/7 of the items.
const USUAL: [f64; 2] = [95.0, 0.857_142_857_1];

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "exponential",
    parameters: &[("PERCENTILE", Bound::Percentile), ("FRACTION", Bound::Share)],
    usual: &USUAL,
    example: "exponential:95,0.857",
    note: "",
    words: "drawn from an exponential distribution: {PERCENTILE} % of the draws fall on {FRACTION %} of the keys",
    places: Places::FromNewest,
    hot: Hot::Scattered,
    tested: &["exponential", "exponential:99,0.1"],
    #[cfg(test)]
    first: &[("exponential", false, [625429, 874570, 990280, 478859, 998206, 962126])],
};

/// Item n - 1 - age, with an exponential age whose PERCENTILE is at FRACTION of n.
///
/// YCSB (ExponentialGenerator, CoreWorkload.nextKeynum) draws again while the age is over n; here the quantile is
/// limited to the existing ages, which is the same distribution with one draw.
#[derive(Clone, Debug)]
pub(crate) struct Exponential {
    n: u64,
    /// Decay over the whole range: gamma times n in YCSB's terms.
    decay: f64,
    /// The probability of an age below n before truncation.
    reach: f64,
}

impl Exponential {
    /// Items [0, n); percentile in (0, 100), fraction in (0, 1].
    pub(super) fn new(items: &Items, percentile: f64, fraction: f64) -> Exponential {
        let decay = -ln(1.0 - percentile / 100.0) / fraction;
        Exponential { n: items.n, decay, reach: 1.0 - exp(-decay) }
    }
}

impl Draws for Exponential {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        let part = -ln(1.0 - random.unit() * self.reach) / self.decay;
        let age = (part * self.n as f64) as u64;
        self.n - 1 - age.min(self.n - 1)
    }

    fn grow(&mut self, n: u64) {
        self.n = n;
    }

    fn masses(&self) -> Vec<f64> {
        let below = |age: u64| (1.0 - exp(-self.decay * age as f64 / self.n as f64)) / self.reach;
        (0..self.n).rev().map(|age| below(age + 1) - below(age)).collect()
    }
}
