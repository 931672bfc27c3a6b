//! `latest`: the newest item is the most likely, as in YCSB's SkewedLatestGenerator.

use super::random::Random;
use super::ycsb::Gray;

/// Item n - 1 - rank, with YCSB's Zipfian ranks. (YCSB never draws its item 0; here every item can be drawn.)
#[derive(Clone, Debug)]
pub struct Latest {
    ranks: Gray,
    n: u64,
}

impl Latest {
    /// Items [0, n).
    pub(super) fn new(n: u64) -> Latest {
        Latest { ranks: Gray::new(n), n }
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&self, random: &mut Random) -> u64 {
        self.n - 1 - self.ranks.rank(random.unit())
    }

    /// Sets the range to [0, n); about 40 ns per additional item.
    pub(super) fn grow(&mut self, n: u64) {
        self.ranks.grow(n);
        self.n = n;
    }

    /// The probabilities of the items.
    pub(super) fn masses(&self) -> Vec<f64> {
        let mass = |rank| self.ranks.below(rank + 1) - self.ranks.below(rank);
        (0..self.n).rev().map(mass).collect()
    }
}
