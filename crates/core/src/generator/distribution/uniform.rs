//! `uniform`: every item equally likely.

use super::{Draws, Hot, Items, Places, Row, equal};
use crate::generator::random::Random;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "uniform",
    parameters: &[],
    usual: &[],
    example: "uniform",
    note: "",
    words: "drawn at random, all equally likely",
    places: Places::All,
    hot: Hot::Nowhere,
    tested: &["uniform"],
    #[cfg(test)]
    first: &[("uniform", false, [752791, 366025, 34446, 864434, 6443, 127861])],
};

/// Uniform draws from [0, n).
#[derive(Clone, Debug)]
pub(crate) struct Uniform {
    n: u64,
}

impl Uniform {
    /// Draws from [0, n), n at least 1.
    pub(super) fn new(items: &Items) -> Uniform {
        Uniform { n: items.n }
    }
}

impl Draws for Uniform {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        random.below(self.n)
    }

    fn grow(&mut self, n: u64) {
        self.n = n;
    }

    fn masses(&self) -> Vec<f64> {
        equal(self.n)
    }
}
