//! `sequential`: the items of one residue class in ascending order, then again from the start.

use super::{Draws, Hot, Items, Places, Row, equal};
use crate::generator::random::Random;
use crate::generator::sample::Partition;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "sequential",
    parameters: &[],
    usual: &[],
    example: "sequential",
    note: "",
    words: "each once, {ORDER}",
    places: Places::OwnPart,
    hot: Hot::Nowhere,
    tested: &["sequential"],
    #[cfg(test)]
    first: &[("sequential", false, [0, 1, 2, 3, 4, 5])],
};

/// Returns item after item.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    part: Partition,
    n: u64,
    next: u64,
}

impl Sequence {
    /// The items of `part` of [0, n); the part must not be empty.
    pub(super) fn new(items: &Items) -> Sequence {
        Sequence { part: items.part, n: items.n, next: items.part.index }
    }
}

impl Draws for Sequence {
    #[inline]
    fn next(&mut self, _: &mut Random) -> u64 {
        let item = if self.next < self.n { self.next } else { self.part.index };
        self.next = item + self.part.count;
        item
    }

    fn grow(&mut self, n: u64) {
        self.n = n;
    }

    fn masses(&self) -> Vec<f64> {
        equal(self.n)
    }
}
