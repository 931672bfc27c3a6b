//! `sequential`: the items of one residue class in ascending order, then again from the start.

use super::sample::Part;

/// Item after item.
#[derive(Clone, Debug)]
pub struct Sequence {
    part: Part,
    n: u64,
    next: u64,
}

impl Sequence {
    /// The items of `part` of [0, n); the part is not empty.
    pub(super) fn new(n: u64, part: Part) -> Sequence {
        Sequence { part, n, next: part.index }
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let item = if self.next < self.n { self.next } else { self.part.index };
        self.next = item + self.part.count;
        item
    }

    /// The range becomes [0, n) at once.
    pub(super) fn grow(&mut self, n: u64) {
        self.n = n;
    }
}
