//! `hotspot:FRACTION,SHARE`: a share of the draws falls on a fraction of the items, as in YCSB.

use super::permutation::Permutation;
use super::random::Random;
use super::zipf::scatter;

/// Uniform draws from a hot set and from the rest. (YCSB's HotspotIntegerGenerator, whose hot set is the first
/// items.)
#[derive(Clone, Debug)]
pub struct Hotspot {
    n: u64,
    hot: u64,
    fraction: f64,
    share: f64,
    scatter: Option<Permutation>,
}

impl Hotspot {
    /// Items [0, n); with `clustered` the hot ones are first, otherwise a permutation from the seed places them.
    pub(super) fn new(n: u64, fraction: f64, share: f64, seed: u64, clustered: bool) -> Hotspot {
        let mut hotspot = Hotspot { n, hot: n, fraction, share, scatter: scatter(n, seed, clustered) };
        hotspot.grow(n);
        hotspot
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&self, random: &mut Random) -> u64 {
        let is_hot = random.unit() < self.share || self.hot == self.n;
        let (start, length) = if is_hot { (0, self.hot) } else { (self.hot, self.n - self.hot) };
        let place = start + random.below(length);
        match &self.scatter {
            Some(scatter) if place < scatter.n() => scatter.at(place),
            _ => place,
        }
    }

    /// Sets the range to [0, n); the hot set grows with it, and hot items stay hot.
    pub(super) fn grow(&mut self, n: u64) {
        self.n = n;
        self.hot = ((n as f64 * self.fraction) as u64).clamp(1, n);
    }

    /// The probabilities of the places, hot ones first.
    pub(super) fn masses(&self) -> Vec<f64> {
        let share = if self.hot == self.n { 1.0 } else { self.share };
        let hot = share / self.hot as f64;
        let cold = (1.0 - share) / (self.n - self.hot).max(1) as f64;
        (0..self.n).map(|place| if place < self.hot { hot } else { cold }).collect()
    }
}
