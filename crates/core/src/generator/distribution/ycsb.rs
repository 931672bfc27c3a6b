//! `ycsb-zipfian`: YCSB's own generators, for comparison with its papers; an approximation of Zipf with theta 0.99.
//!
//! Source: `ZipfianGenerator`, `ScrambledZipfianGenerator` and `Utils.fnvhash64` of
//! <https://github.com/brianfrankcooper/YCSB> at d9faaac8, after Gray et al., Quickly Generating Billion-Record
//! Synthetic Databases, SIGMOD 1994. The scrambled generator draws from ten billion ranks whatever the number of
//! items, so that its hottest item gets 3.8 % of the draws; and some items have no hash value (YCSB issue 1495).

use super::zipf::{zeta, zeta_between};
use super::{Draws, Hot, Items, Places, Row};
use crate::generator::portable::pow;
use crate::generator::random::{Random, fraction, scale};

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "ycsb-zipfian",
    parameters: &[],
    usual: &[],
    example: "ycsb-zipfian",
    note: "",
    words: "drawn from YCSB's zipfian distribution",
    places: Places::Fixed,
    hot: Hot::Scattered,
    tested: &["ycsb-zipfian"],
    #[cfg(test)]
    first: &[("ycsb-zipfian", false, [529920, 794778, 801320, 159903, 801320, 857700])],
};

/// YCSB's ZIPFIAN_CONSTANT.
pub(super) const THETA: f64 = 0.99;
/// YCSB's ScrambledZipfianGenerator.ITEM_COUNT; its generator covers 0 to this value, both included.
const ITEM_COUNT: u64 = 10_000_000_000;
/// YCSB's ScrambledZipfianGenerator.ZETAN, the zeta of ITEM_COUNT items.
const ZETAN: f64 = 26.469_028_201_783_02;

/// YCSB's ZipfianGenerator: ranks from a closed form.
#[derive(Clone, Debug)]
pub(super) struct Gray {
    items: u64,
    zetan: f64,
    eta: f64,
    alpha: f64,
    /// 1 + 1/2^theta, the zeta of two items.
    zeta2: f64,
}

impl Gray {
    /// Ranks below `items`, with a known zeta.
    fn with_zeta(items: u64, zetan: f64) -> Gray {
        let mut gray =
            Gray { items, zetan, eta: 0.0, alpha: 1.0 / (1.0 - THETA), zeta2: 1.0 + pow(0.5, THETA) };
        gray.set_eta();
        gray
    }

    /// Ranks below `items`.
    pub(super) fn new(items: u64) -> Gray {
        Gray::with_zeta(items, zeta(items, THETA))
    }

    fn set_eta(&mut self) {
        self.eta = (1.0 - pow(2.0 / self.items as f64, 1.0 - THETA)) / (1.0 - self.zeta2 / self.zetan);
    }

    /// The rank at the quantile `u`.
    #[inline]
    pub(super) fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zetan;
        if uz < self.zeta2 {
            return u64::from(uz >= 1.0);
        }
        let (items, base) = (self.items as f64, self.eta * u - self.eta + 1.0);
        // Nearly always the 100th power is close enough to tell the rank.
        let near = items * hundredth_power(base);
        let rank = (near * (1.0 - NEAR)) as u64;
        let rank = if rank == (near * (1.0 + NEAR)) as u64 { rank } else { self.exact_rank(base) };
        rank.min(self.items - 1)
    }

    /// Replaces random bits by the ranks at the quantiles that they stand for.
    fn map(&self, bits: &mut [u64]) {
        let items = self.items as f64;
        if self.items > MOST_WHOLE {
            return bits.iter_mut().for_each(|bits| *bits = self.rank(fraction(*bits)));
        }
        // All steps are computed for all, and the rare ones that they do not decide are computed again.
        for bits in bits {
            let u = fraction(*bits);
            let uz = u * self.zetan;
            let near = items * hundredth_power(self.eta * u - self.eta + 1.0);
            let rank = whole(near * (1.0 - NEAR));
            let is_decided = (rank == whole(near * (1.0 + NEAR))) | (uz < self.zeta2);
            let rank = if uz < self.zeta2 { u64::from(uz >= 1.0) } else { rank.min(self.items - 1) };
            *bits = if is_decided { rank } else { self.rank(u) };
        }
    }

    #[cold]
    #[inline(never)]
    fn exact_rank(&self, base: f64) -> u64 {
        (self.items as f64 * pow(base, self.alpha)) as u64
    }

    /// Sets the ranks to those below `items`, not fewer than before; a few more are added term by term, as in YCSB.
    /// Eta follows `items`; YCSB keeps the eta of the first count.
    pub(super) fn grow(&mut self, items: u64) {
        if items - self.items <= 8 {
            for k in self.items + 1..=items {
                self.zetan += pow(k as f64, -THETA);
            }
        } else if self.items >= 1_000 {
            self.zetan += zeta_between(self.items, items, THETA);
        } else {
            self.zetan = zeta(items, THETA);
        }
        self.items = items;
        self.set_eta();
    }

    /// The probability of a rank below `rank`.
    pub(super) fn below(&self, rank: u64) -> f64 {
        let head = self.zeta2.min(self.zetan) / self.zetan;
        match rank {
            0 => 0.0,
            1 => 1.0 / self.zetan,
            _ if rank >= self.items => 1.0,
            _ => {
                let power = pow(rank as f64 / self.items as f64, 1.0 / self.alpha);
                ((power - 1.0 + self.eta) / self.eta).clamp(head, 1.0)
            }
        }
    }
}

/// Bound of the relative error of [`hundredth_power`] in the place of a power of `alpha`, which is 100 but for 9e-14, where
/// the power is over 1e-10; and of that power itself.
const NEAR: f64 = 1e-13;

/// The largest count of ranks for [`whole`].
const MOST_WHOLE: u64 = 1 << 51;

/// The whole part of a number from 0 to 2^51, by an addition that rounds it to the nearest whole number. Vectors of numbers
/// have no instruction for the conversion.
#[inline]
fn whole(x: f64) -> u64 {
    const SHIFTER: f64 = 4_503_599_627_370_496.0;
    let nearest = x + SHIFTER;
    let difference = nearest.to_bits().wrapping_sub(SHIFTER.to_bits());
    difference.wrapping_sub(u64::from(nearest - SHIFTER > x))
}

/// `x` to the power of 100 by multiplications; the relative error is about 50 units in the last place.
#[inline]
fn hundredth_power(x: f64) -> f64 {
    let fourth = (x * x) * (x * x);
    let eighth = fourth * fourth;
    let thirty_second = (eighth * eighth) * (eighth * eighth);
    (thirty_second * thirty_second) * (thirty_second * fourth)
}

/// The absolute value of YCSB's 64-bit FNV-1a hash of the 8 bytes of `number`.
#[inline]
pub(super) fn fnv64(number: u64) -> u64 {
    const PRIME: u64 = 1_099_511_628_211;
    let bytes = number.to_le_bytes();
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    let mut hash = bytes[..4].iter().fold(0xcbf2_9ce4_8422_2325_u64, add);
    hash = if number >> 32 == 0 {
        // Four bytes of 0 leave four multiplications.
        hash.wrapping_mul(PRIME.wrapping_pow(4))
    } else {
        bytes[4..].iter().fold(hash, add)
    };
    (hash as i64).unsigned_abs()
}

/// YCSB's ScrambledZipfianGenerator, as CoreWorkload uses it.
#[derive(Clone, Debug)]
pub(crate) struct Ycsb {
    ranks: Gray,
    n: u64,
    /// 2^64 divided by n + 1, rounded down.
    inverse: u64,
}

impl Ycsb {
    /// Items [0, n), permanently: the item is a hash modulo a number, and another number would move every hot item.
    /// CoreWorkload's n is the number of existing records plus the expected inserts; see view.rs.
    pub(super) fn new(items: &Items) -> Ycsb {
        let n = items.n;
        Ycsb { ranks: Gray::with_zeta(ITEM_COUNT + 1, ZETAN), n, inverse: u64::MAX / (n + 1) }
    }

    /// `hash` modulo n + 1. The quotient by the inverse is at most two too low; how much is as good as random, so there are no
    /// branches.
    #[inline]
    fn modulo(&self, hash: u64) -> u64 {
        let modulus = self.n + 1;
        let rest = hash - scale(hash, self.inverse) * modulus;
        let rest = rest.min(rest.wrapping_sub(modulus));
        rest.min(rest.wrapping_sub(modulus))
    }
}

impl Draws for Ycsb {
    /// CoreWorkload passes the generator one item too many, because its end is included, and draws again when that item is
    /// drawn; hot items are therefore the same here.
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        loop {
            let item = self.modulo(fnv64(self.ranks.rank(random.unit())));
            if item < self.n {
                return item;
            }
        }
    }

    /// The steps are separate loops, so that the work on several items overlaps.
    fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
        let mut filled = 0;
        while filled < out.len() {
            let rest = &mut out[filled..];
            rest.iter_mut().for_each(|bits| *bits = random.next_u64());
            self.ranks.map(rest);
            rest.iter_mut().for_each(|rank| *rank = self.modulo(fnv64(*rank)));
            // The one item too many is dropped, and its place is drawn again.
            let mut kept = 0;
            for at in 0..rest.len() {
                let item = rest[at];
                rest[kept] = item;
                kept += usize::from(item < self.n);
            }
            filled += kept;
        }
    }

    /// The range is fixed.
    fn grow(&mut self, _: u64) {}

    /// The first million ranks are hashed one by one; the others, whose probabilities are tiny, count as if hashing spread them
    /// evenly.
    fn masses(&self) -> Vec<f64> {
        let head = 1 << 20;
        let modulus = self.n + 1;
        let rest = 1.0 - self.ranks.below(head);
        let mut masses = vec![rest / modulus as f64; modulus as usize];
        let mut below = 0.0;
        for rank in 0..head {
            let next = self.ranks.below(rank + 1);
            masses[(fnv64(rank) % modulus) as usize] += next - below;
            below = next;
        }
        let again = masses.pop().unwrap_or(0.0);
        masses.iter_mut().for_each(|mass| *mass /= 1.0 - again);
        masses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::sample::Partition;

    #[test]
    fn hash_equals_fnv_1a_of_the_bytes() {
        assert_eq!(fnv64(0), 0xa8c7_f832_281a_39c5_u64.wrapping_neg());
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in [0x15_u8, 0xcd, 0x5b, 0x07, 0, 0, 0, 0] {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        assert_eq!(fnv64(123_456_789), (hash as i64).unsigned_abs());
    }

    #[test]
    fn the_short_ways_give_the_same_items() {
        let mut random = Random::seeded(1);
        for items in [3, 1_000, 1_000_000, ITEM_COUNT + 1] {
            let gray = Gray::new(items);
            let mut exact = 0;
            for round in 0..200_000 {
                // Also close to where the closed form begins.
                let u = if round % 2 == 0 {
                    random.unit()
                } else {
                    gray.zeta2 / gray.zetan + random.unit() * 1e-6
                };
                let u = u.min(1.0 - f64::EPSILON / 2.0);
                if u * gray.zetan < gray.zeta2 {
                    continue;
                }
                let base = gray.eta * u - gray.eta + 1.0;
                let power = pow(base, gray.alpha);
                assert!((hundredth_power(base) / power - 1.0).abs() < NEAR / 2.0, "{items} items at {u}");
                let wanted = gray.exact_rank(base).min(items - 1);
                assert_eq!(gray.rank(u), wanted, "{items} items at {u}, seed 1");
                let near = items as f64 * hundredth_power(base);
                exact += u32::from((near * (1.0 - NEAR)) as u64 != (near * (1.0 + NEAR)) as u64);
            }
            assert!(exact < 1_000, "{items} items: {exact} ranks needed the exact power");
        }
        for items in [1_000, 1_000_000, ITEM_COUNT + 1, MOST_WHOLE, 1 << 62] {
            let gray = Gray::new(items);
            let edge = (gray.zeta2 / gray.zetan * (1_u64 << 53) as f64) as u64;
            let near = (edge.saturating_sub(500)..edge + 500).map(|upper| upper << 11);
            let first = ((1.0 / gray.zetan * (1_u64 << 53) as f64) as u64).saturating_sub(500);
            let hottest = (first..first + 1_000).map(|upper| upper << 11);
            let drawn = std::iter::repeat_with(|| random.next_u64()).take(200_000);
            let bits: Vec<u64> = near.chain(hottest).chain([0, u64::MAX]).chain(drawn).collect();
            let mut ranks = bits.clone();
            gray.map(&mut ranks);
            for (bits, rank) in bits.into_iter().zip(ranks) {
                assert_eq!(rank, gray.rank(fraction(bits)), "{items} items, bits {bits}, seed 1");
            }
        }
        for x in [0.0, 0.4, 0.5, 0.6, 1.0, 1.5, 2.5, 3.0 - 1e-9, 1e10 + 0.5, (1_u64 << 51) as f64 - 0.5] {
            assert_eq!(whole(x), x as u64, "{x}");
        }
        for n in [1, 2, 3, 999_999, 1 << 32, (1 << 62) + 1, 1 << 63] {
            let ycsb = Ycsb::new(&Items { n, seed: 0, part: Partition::WHOLE, clustered: false });
            for _ in 0..10_000 {
                let hash = random.next_u64() >> (random.next_u64() % 64).max(1);
                assert_eq!(ycsb.modulo(hash), hash % (n + 1), "n {n}, seed 1");
            }
            assert_eq!(ycsb.modulo((1 << 63) - 1), ((1 << 63) - 1) % (n + 1));
        }
    }

    #[test]
    fn head_has_the_masses_of_the_closed_form() {
        let gray = Gray::with_zeta(ITEM_COUNT + 1, ZETAN);
        assert_eq!(gray.rank(0.0), 0);
        assert_eq!(gray.rank(1.0 / ZETAN - 1e-9), 0);
        assert_eq!(gray.rank(1.0 / ZETAN + 1e-9), 1);
        assert!(gray.rank(1.0 - f64::EPSILON / 2.0) <= ITEM_COUNT);
        assert!((gray.below(1) - 0.037_780).abs() < 1e-6);
    }

    #[test]
    fn growth_in_small_steps_keeps_zeta() {
        for (start, step) in [(1, 1), (2, 1), (3, 1), (1_000, 1), (1, 16), (990, 16), (100_000, 64)] {
            let mut gray = Gray::new(start);
            for n in (start + 1..start + 5_000).step_by(step) {
                gray.grow(n);
            }
            let fresh = Gray::new(gray.items);
            assert!((gray.zetan / fresh.zetan - 1.0).abs() < 1e-12);
            assert!((gray.eta / fresh.eta - 1.0).abs() < 1e-10);
        }
    }

    #[test]
    fn ranks_of_one_and_two_items_stay_in_range() {
        for items in 1..5 {
            let gray = Gray::new(items);
            for step in 0..=1_000 {
                let u = (f64::from(step) / 1_000.0).min(1.0 - f64::EPSILON / 2.0);
                assert!(gray.rank(u) < items, "{items} items at {u}");
            }
        }
    }
}
