//! `Sampler`: draws items, for any distribution.

use super::distribution::{Distribution, Form, Items};
use super::random::Random;
use super::spec::SpecError;

/// One of `count` threads: it owns the items whose index is `index` modulo `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// From 0 to count - 1.
    pub index: u64,
    /// At least 1.
    pub count: u64,
}

impl Partition {
    /// The only part.
    pub const WHOLE: Partition = Partition { index: 0, count: 1 };

    /// The number of items of [0, n) in this part.
    #[inline]
    pub fn len(&self, n: u64) -> u64 {
        if self.index < n { (n - self.index - 1) / self.count + 1 } else { 0 }
    }

    /// The part's item number `place`.
    #[inline]
    pub fn item(&self, place: u64) -> u64 {
        self.index + place * self.count
    }
}

/// Draws items of a range. Everything except the draws themselves (such as which items are hot) depends on the seed
/// passed to `new`, which must be the same for all threads; the draws use the `Random` passed to `next`.
#[derive(Clone, Debug)]
pub struct Sampler {
    n: u64,
    part: Option<Partition>,
    form: Form,
}

impl Sampler {
    /// A sampler of the items [0, n).
    ///
    /// `sequential` and `permutation` return the items of `part` only, each once per pass; the others draw from all.
    /// `clustered` places the hot items of `zipf` and `hotspot` next to each other at the start instead of scattering
    /// them. Returns an error for parameters out of range, an n of 0 or over 2^63, and a part without items.
    pub fn new(
        distribution: &Distribution,
        n: u64,
        seed: u64,
        part: Partition,
        clustered: bool,
    ) -> Result<Sampler, SpecError> {
        if n == 0 || n > 1 << 63 {
            return Err(SpecError(format!("`{distribution}` needs 1 to 2^63 items, got {n}")));
        }
        let distribution = distribution.clone().checked()?;
        let own = distribution.is_pass().then_some(part);
        if own.is_some() && (part.index >= part.count || part.len(n) == 0) {
            let Partition { count, .. } = part;
            let text = format!("{n} items cannot be split among {count} threads; use at most {n} threads");
            return Err(SpecError(text));
        }
        let form = Form::new(&distribution, &Items { n, seed, part, clustered });
        Ok(Sampler { n, part: own, form })
    }

    /// The next item, in [0, n).
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        self.form.next(random)
    }

    /// Draws as many items as `out` has space for: the same as by [`Sampler::next`], in less time.
    #[inline]
    pub fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
        self.form.fill(random, out);
    }

    /// Sets the range to [0, n); an n below the current one changes nothing, and neither does any n for
    /// `ycsb-zipfian`. `permutation` uses it from its next pass on. Costs some ns; for `zipf` some microseconds about
    /// every 6 % of growth.
    #[inline]
    pub(super) fn grow(&mut self, n: u64) {
        if n > self.n && !self.form.is_fixed() {
            self.grow_to(n);
        }
    }

    fn grow_to(&mut self, n: u64) {
        self.n = n;
        self.form.grow(n);
    }

    /// The probability of each item if hot items are clustered.
    pub(super) fn masses(&self) -> Vec<f64> {
        self.form.masses()
    }

    /// The number of items in the range.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The number of items that can be drawn: those of the part for `sequential` and `permutation`, otherwise all.
    pub fn part_len(&self) -> u64 {
        self.part.map_or(self.n, |part| part.len(self.n))
    }
}
