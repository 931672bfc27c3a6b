//! `zipf:THETA`: a true Zipf distribution over N items, for any THETA over 0.
//!
//! Method: rejection under a staircase (Devroye, Non-Uniform Random Variate Generation, 1986, chapter II.3). Ranks 1
//! to 15 have one step each; every octave of ranks after them has 16 steps of equal width, as high as the probability
//! of the step's first rank. A step is drawn by the alias method, a rank uniformly within it, and the rank is
//! accepted with the quotient of its probability and the step's height, which is over 94 % for THETA 0.99. The
//! quotient is convex in the rank, so its tangent and its chord decide all except about one draw in a thousand
//! without computing a power. Setup costs one power per step: 16 log2 N of them, some microseconds.
//!
//! Rejected: rejection-inversion (Hoermann and Derflinger, 1996), equally exact, but with a logarithm and an
//! exponential per draw; YCSB's closed form (Gray et al., 1994), which is an approximation and needs THETA below 1
//! and a sum over all N items (see ycsb.rs).

use super::{Bound, Draws, Hot, Items, Places, Row};
use crate::generator::alias::Alias;
use crate::generator::permutation::Permutation;
use crate::generator::portable::{exp, exp_minus_one_over, ln, pow};
use crate::generator::random::{Random, derive, fraction};

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "zipf",
    parameters: &[("THETA", Bound::Positive)],
    usual: &[],
    example: "zipf:0.99",
    note: "true Zipf over all items, THETA over 0",
    words: "drawn from a zipf distribution with theta {THETA}",
    places: Places::All,
    hot: Hot::Chosen,
    tested: &["zipf:0.5", "zipf:0.99", "zipf:1.2"],
    #[cfg(test)]
    first: &[
        ("zipf:0.5", true, [58092, 89555, 39172, 43868, 65193, 607604]),
        ("zipf:0.99", true, [58092, 9, 1, 43868, 68947, 607604]),
        ("zipf:0.99", false, [885345, 317417, 177180, 10185, 562046, 560493]),
        ("zipf:1.5", false, [861594, 317417, 444208, 177180, 861594, 638786]),
    ],
};

/// log2 of the steps in an octave.
const STEP_BITS: u32 = 4;

/// Ranks `start` to `start + 2^width_bits - 1` with one height.
#[derive(Clone, Copy, Debug)]
struct Step {
    start: u64,
    /// Decrease of the tangent at the step's start per rank.
    tangent: f64,
    /// Decrease of the chord over the step per rank.
    chord: f64,
    width_bits: u32,
}

/// Zipf-distributed ranks: rank r (from 0) has a probability proportional to 1 / (r + 1)^theta.
#[derive(Clone, Debug)]
pub(in crate::generator) struct Ranks {
    n: u64,
    /// The last rank under the staircase, at least n: growing up to here costs nothing.
    covered: u64,
    theta: f64,
    steps: Vec<Step>,
    alias: Alias,
}

impl Ranks {
    /// Ranks 0 to n - 1; theta must be over 0 and finite.
    pub(in crate::generator) fn new(n: u64, theta: f64) -> Ranks {
        let mut steps = Vec::new();
        let mut weights = Vec::new();
        let mut start = 1_u64;
        while start <= n {
            let width_bits = start.ilog2().saturating_sub(STEP_BITS);
            let width = (1_u64 << width_bits) as f64;
            let lowest = pow(1.0 + width / start as f64, -theta);
            steps.push(Step {
                start,
                tangent: theta / start as f64,
                chord: (1.0 - lowest) / width,
                width_bits,
            });
            // The lower bound keeps the alias table's weights over 0 where a power underflows; such a rank is never
            // drawn.
            weights.push((width * pow(start as f64, -theta)).max(f64::MIN_POSITIVE));
            start += 1 << width_bits;
        }
        Ranks { n, covered: start - 1, theta, alias: Alias::new(&weights), steps }
    }

    /// The rank selected by a source of random bits.
    #[inline]
    pub(in crate::generator) fn next(&self, mut bits: impl FnMut() -> u64) -> u64 {
        loop {
            let step = self.steps[self.alias.pick(bits())];
            let place = bits();
            let offset = (place >> 1) >> (63 - step.width_bits);
            // The bits that are not used for the offset; wide steps leave too few.
            let chance = if step.width_bits <= 32 { place << step.width_bits } else { bits() };
            let rank = step.start + offset;
            if self.accepts(&step, offset, fraction(chance)) && rank <= self.n {
                return rank - 1;
            }
        }
    }

    /// Whether `chance` is below the probability at `offset`, relative to the step's height.
    #[inline]
    fn accepts(&self, step: &Step, offset: u64, chance: f64) -> bool {
        if chance < 1.0 - step.tangent * offset as f64 {
            return true;
        }
        chance < 1.0 - step.chord * offset as f64 && self.accepts_exactly(step, offset, chance)
    }

    #[cold]
    #[inline(never)]
    fn accepts_exactly(&self, step: &Step, offset: u64, chance: f64) -> bool {
        chance < pow(1.0 + offset as f64 / step.start as f64, -self.theta)
    }

    /// Sets the ranks to 0 to n - 1; the staircase is rebuilt when n exceeds it, about every 6 % of growth.
    fn grow(&mut self, n: u64) {
        if n > self.covered {
            *self = Ranks::new(n, self.theta);
        }
        self.n = n;
    }
}

/// Zipf over items: hot ranks scattered over the range, or at its start.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    ranks: Ranks,
    scatter: Option<Permutation>,
}

impl Zipf {
    /// With `clustered` item = rank, otherwise a permutation from the seed places the ranks.
    pub(super) fn new(items: &Items, theta: f64) -> Zipf {
        Zipf { ranks: Ranks::new(items.n, theta), scatter: scatter(items) }
    }
}

impl Draws for Zipf {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        let rank = self.ranks.next(|| random.next_u64());
        match &self.scatter {
            Some(scatter) => scatter.at(rank),
            None => rank,
        }
    }

    fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
        out.iter_mut().for_each(|rank| *rank = self.ranks.next(|| random.next_u64()));
        if let Some(scatter) = &self.scatter {
            scatter.map(out);
        }
    }

    /// Hot items keep their places: the new ones are the coldest.
    fn grow(&mut self, n: u64) {
        self.ranks.grow(n);
    }

    fn masses(&self) -> Vec<f64> {
        let Ranks { n, theta, .. } = self.ranks;
        let total = zeta(n, theta);
        (1..=n).map(|rank| (rank as f64).powf(-theta) / total).collect()
    }
}

/// Zipf after the range has grown; separate, because a draw needs an additional lookup.
#[derive(Clone, Debug)]
pub(crate) struct GrownZipf(Zipf);

impl From<Zipf> for GrownZipf {
    fn from(zipf: Zipf) -> GrownZipf {
        GrownZipf(zipf)
    }
}

impl Draws for GrownZipf {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        let rank = self.0.ranks.next(|| random.next_u64());
        match &self.0.scatter {
            Some(scatter) if rank < scatter.n() => scatter.at(rank),
            _ => rank,
        }
    }

    fn grow(&mut self, n: u64) {
        self.0.grow(n);
    }

    fn masses(&self) -> Vec<f64> {
        self.0.masses()
    }
}

/// The places of hot ranks: the same for every thread of a seed.
pub(super) fn scatter(items: &Items) -> Option<Permutation> {
    (!items.clustered).then(|| Permutation::new(items.n, derive(items.seed, 0x7363_6174)))
}

/// The sum of 1 / k^theta for k from 1 to n: the first thousand terms one by one, the rest by Euler and Maclaurin,
/// whose remainder is below 1e-18 there.
pub(in crate::generator) fn zeta(n: u64, theta: f64) -> f64 {
    let direct = n.min(1_000);
    let sum: f64 = (1..=direct).map(|k| pow(k as f64, -theta)).sum();
    if n == direct { sum } else { sum + zeta_between(direct, n, theta) }
}

/// The sum of 1 / k^theta for k from `from` + 1 to `to`; `from` is 1000 or more.
pub(super) fn zeta_between(from: u64, to: u64, theta: f64) -> f64 {
    let (from, to) = (from as f64, to as f64);
    let span = ln(to / from);
    let at = |x: f64| pow(x, -theta);
    let integral = exp((1.0 - theta) * ln(from)) * span * exp_minus_one_over((1.0 - theta) * span);
    let first = -theta * (at(to) / to - at(from) / from);
    let third =
        -theta * (theta + 1.0) * (theta + 2.0) * (at(to) / (to * to * to) - at(from) / (from * from * from));
    integral + (at(to) - at(from)) / 2.0 + first / 12.0 - third / 720.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_equals_the_plain_sum() {
        for theta in [-0.01, 0.5, 0.99, 1.0, 1.000_001, 1.5, 3.0] {
            for n in [1_u64, 2, 999, 1_000, 1_001, 5_000, 100_000] {
                let plain: f64 = (1..=n).rev().map(|k| (k as f64).powf(-theta)).sum();
                let error = zeta(n, theta) / plain - 1.0;
                assert!(error.abs() < 1e-13, "theta {theta}, n {n}: off by {error}");
            }
        }
    }

    #[test]
    fn zeta_of_ycsb_is_its_published_constant() {
        let error = zeta(10_000_000_000, 0.99) / 26.469_028_201_783_02 - 1.0;
        assert!(error.abs() < 1e-9, "off by {error}");
    }

    #[test]
    fn tangent_and_chord_enclose_the_quotient() {
        for theta in [0.2, 0.99, 1.0, 2.5] {
            for step in &Ranks::new(100_000, theta).steps {
                for offset in [0, 1, (1_u64 << step.width_bits) / 2, (1 << step.width_bits) - 1] {
                    let quotient = (1.0 + offset as f64 / step.start as f64).powf(-theta);
                    assert!(1.0 - step.tangent * offset as f64 <= quotient + 1e-15, "{step:?} at {offset}");
                    if offset < 1 << step.width_bits {
                        assert!(1.0 - step.chord * offset as f64 >= quotient - 1e-15, "{step:?} at {offset}");
                    }
                }
            }
        }
    }

    #[test]
    fn growth_step_by_step_equals_a_new_start() {
        let mut grown = Ranks::new(1, 0.99);
        for n in 2..=3_000 {
            grown.grow(n);
        }
        let mut random = Random::seeded(11);
        let fresh = Ranks::new(3_000, 0.99);
        for draw in 0..10_000 {
            let mut copy = random.clone();
            assert_eq!(grown.next(|| copy.next_u64()), fresh.next(|| random.next_u64()), "draw {draw}");
        }
    }
}
