//! `uniform`: every item equally likely.

use super::random::Random;

/// Uniform draws from [0, n).
#[derive(Clone, Debug)]
pub struct Uniform {
    n: u64,
}

impl Uniform {
    /// Draws from [0, n), n at least 1.
    pub(super) fn new(n: u64) -> Uniform {
        Uniform { n }
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&self, random: &mut Random) -> u64 {
        random.below(self.n)
    }

    /// Sets the range to [0, n).
    pub(super) fn grow(&mut self, n: u64) {
        self.n = n;
    }
}
