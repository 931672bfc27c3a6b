//! `permutation`: the items of one residue class in random order, each once; then again in another order.

use super::{Draws, Hot, Items, Places, Row, equal};
use crate::generator::permutation::Permutation;
use crate::generator::random::{Random, derive};
use crate::generator::sample::Partition;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "permutation",
    parameters: &[],
    usual: &[],
    example: "permutation",
    note: "each once",
    words: "each once, in shuffled order",
    places: Places::OwnPart,
    hot: Hot::Nowhere,
    tested: &["permutation"],
    #[cfg(test)]
    first: &[("permutation", false, [585956, 540761, 242306, 826663, 97721, 870639])],
};

/// Passes over the items.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    part: Partition,
    seed: u64,
    /// Number of items in the complete range; a new value takes effect in the next pass.
    n: u64,
    pass: u64,
    place: u64,
    order: Permutation,
}

impl Pass {
    /// The passes over `part` of [0, n); the part must not be empty.
    pub(super) fn new(items: &Items) -> Pass {
        let Items { n, part, .. } = *items;
        let seed = derive(items.seed, 0x7061_7373 + part.index);
        Pass { part, seed, n, pass: 0, place: 0, order: Permutation::new(part.len(n), seed) }
    }

    /// Starts the next pass, in a new order and over the current range.
    #[cold]
    fn turn(&mut self) {
        self.pass += 1;
        self.place = 0;
        self.order = Permutation::new(self.part.len(self.n), derive(self.seed, self.pass));
    }
}

impl Draws for Pass {
    #[inline]
    fn next(&mut self, _: &mut Random) -> u64 {
        if self.place == self.order.n() {
            self.turn();
        }
        let item = self.part.item(self.order.at(self.place));
        self.place += 1;
        item
    }

    /// The next pass is the first over the new range.
    fn grow(&mut self, n: u64) {
        self.n = n;
    }

    fn masses(&self) -> Vec<f64> {
        equal(self.n)
    }
}
