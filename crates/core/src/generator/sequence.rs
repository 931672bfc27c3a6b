//! `sequential`: the items of one residue class in ascending order, then again from the start.

use super::sample::Partition;

/// Returns item after item.
#[derive(Clone, Debug)]
pub struct Sequence {
    part: Partition,
    n: u64,
    next: u64,
}

impl Sequence {
    /// The items of `part` of [0, n); the part must not be empty.
    pub(super) fn new(n: u64, part: Partition) -> Sequence {
        Sequence { part, n, next: part.index }
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let item = if self.next < self.n { self.next } else { self.part.index };
        self.next = item + self.part.count;
        item
    }

    /// Sets the range to [0, n) immediately.
    pub(super) fn grow(&mut self, n: u64) {
        self.n = n;
    }
}
