//! `exponential:PERCENTILE,FRACTION`: the newest item is the most likely, with exponential decay, as in YCSB.

use super::portable::{exp, ln};
use super::random::Random;

/// Item n - 1 - age, with an exponential age whose PERCENTILE is at FRACTION of n.
///
/// YCSB (ExponentialGenerator, CoreWorkload.nextKeynum) draws again while the age is over n; here the quantile is
/// limited to the existing ages, which is the same distribution with one draw.
#[derive(Clone, Debug)]
pub struct Exponential {
    n: u64,
    /// Decay over the whole range: gamma times n in YCSB's terms.
    decay: f64,
    /// The probability of an age below n before truncation.
    reach: f64,
}

impl Exponential {
    /// Items [0, n); percentile in (0, 100), fraction in (0, 1].
    pub(super) fn new(n: u64, percentile: f64, fraction: f64) -> Exponential {
        let decay = -ln(1.0 - percentile / 100.0) / fraction;
        Exponential { n, decay, reach: 1.0 - exp(-decay) }
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&self, random: &mut Random) -> u64 {
        let part = -ln(1.0 - random.unit() * self.reach) / self.decay;
        let age = (part * self.n as f64) as u64;
        self.n - 1 - age.min(self.n - 1)
    }

    /// Sets the range to [0, n).
    pub(super) fn grow(&mut self, n: u64) {
        self.n = n;
    }

    /// The probabilities of the items.
    pub(super) fn masses(&self) -> Vec<f64> {
        let below = |age: u64| (1.0 - exp(-self.decay * age as f64 / self.n as f64)) / self.reach;
        (0..self.n).rev().map(|age| below(age + 1) - below(age)).collect()
    }
}
