//! `latest`: the newest item is the most likely, as in YCSB's SkewedLatestGenerator.

use super::ycsb::Gray;
use super::{Draws, Hot, Items, Places, Row};
use crate::generator::random::Random;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "latest",
    parameters: &[],
    usual: &[],
    example: "latest",
    note: "",
    words: "drawn so that the newest are the most likely",
    places: Places::FromNewest,
    hot: Hot::Nowhere,
    tested: &["latest"],
    #[cfg(test)]
    first: &[("latest", false, [967525, 999881, 999999, 845092, 999999, 999996])],
};

/// Item n - 1 - rank, with YCSB's Zipfian ranks. (YCSB never draws its item 0; here every item can be drawn.)
#[derive(Clone, Debug)]
pub(crate) struct Latest {
    ranks: Gray,
    n: u64,
}

impl Latest {
    /// Items [0, n).
    pub(super) fn new(items: &Items) -> Latest {
        Latest { ranks: Gray::new(items.n), n: items.n }
    }
}

impl Draws for Latest {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        self.n - 1 - self.ranks.rank(random.unit())
    }

    /// About 40 ns per additional item.
    fn grow(&mut self, n: u64) {
        self.ranks.grow(n);
        self.n = n;
    }

    fn masses(&self) -> Vec<f64> {
        let mass = |rank| self.ranks.below(rank + 1) - self.ranks.below(rank);
        (0..self.n).rev().map(mass).collect()
    }
}
