//! When a comparison is looked at, and which part of its error each look may use.

/// Looks before the last one, at most. With `GROWTH` they reach more than 600 blocks.
const LOOKS: usize = 16;
/// The number of blocks grows by this factor from look to look. With less, more looks share the error; with more, a verdict comes
/// later.
const GROWTH: f64 = 1.3;
/// The part of the error that these looks share equally. The last one has the rest.
const EARLY: f64 = 0.5;

/// The looks of one comparison.
#[derive(Clone, Debug)]
pub(super) struct Looks {
    alpha: f64,
    done: usize,
    /// The number of blocks of the next look.
    next: usize,
}

impl Looks {
    /// The looks of a comparison whose error is `alpha`. The first is when n equal signs are improbable enough: 2^(1-n).
    pub fn new(alpha: f64) -> Looks {
        let first = 1.0 - (alpha * EARLY / LOOKS as f64).log2();
        Looks { alpha, done: 0, next: first.ceil() as usize }
    }

    /// The error that a look at `blocks` blocks may use, if one is due.
    pub fn due(&mut self, blocks: usize) -> Option<f64> {
        if self.done == LOOKS || blocks < self.next {
            return None;
        }
        self.done += 1;
        self.next = (self.next as f64 * GROWTH).ceil() as usize;
        Some(self.alpha * EARLY / LOOKS as f64)
    }

    /// The error that is left for the last look.
    pub fn rest(&self) -> f64 {
        self.alpha * (1.0 - EARLY * self.done as f64 / LOOKS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_use_no_more_than_the_error_of_the_comparison() {
        for alpha in [0.05, 0.01, 0.000_1] {
            let mut looks = Looks::new(alpha);
            let mut used = 0.0;
            for blocks in 1..=super::super::MOST_BLOCKS {
                used += looks.due(blocks).unwrap_or(0.0);
                assert!(used + looks.rest() <= alpha * (1.0 + 1e-12), "{blocks} blocks");
                assert!(looks.rest() >= alpha / 2.0);
            }
            assert!(used > 0.0);
        }
    }
}
