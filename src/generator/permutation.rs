//! A keyed order of N items in O(1) memory: `Permutation`, and `Pass`, which deals the items out once each.

use super::random::{Split, derive};
use super::sample::Part;

/// Rounds of a turn. With four, one key in fifty failed a chi-square test on neighbours at 1 in 1000; with five as many
/// as chance has it.
const ROUNDS: usize = 5;

/// Under 5 bits there are too few keys for the positions to be even over seeds (17 items pass, 12 did not).
const LEAST_BITS: u32 = 5;

/// A bijection of [0, n) chosen by a seed, with its inverse.
///
/// Numbers of k bits, 2^k >= n, go through rounds of `x * odd + add` (modulo 2^k) and `x ^= x >> k/2`, each of which
/// is a bijection; a result of n or more is sent through again (cycle walking, under two turns on average from 16 items on). When n
/// grows by one within the same k, only one image changes: hot items stay hot while a range grows, until the range
/// passes a power of two, where all are dealt anew.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    multiply: [u64; ROUNDS],
    add: [u64; ROUNDS],
    divide: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of [0, n) that a seed names; 1 <= n <= 2^63.
    pub fn new(n: u64, seed: u64) -> Permutation {
        debug_assert!((1..=1 << 63).contains(&n), "a permutation has 1 to 2^63 items");
        let mut keys = Split(derive(seed, 0x7065_726d));
        let mut permutation = Permutation {
            n,
            mask: 0,
            shift: 0,
            multiply: [1; ROUNDS],
            add: [0; ROUNDS],
            divide: [1; ROUNDS],
        };
        for round in 0..ROUNDS {
            // Multipliers near 1 mix badly; a few low bits keep away from them, where there are bits enough.
            let low = if n > 32 { (!2, 5) } else { (!0, 1) };
            permutation.multiply[round] = keys.next() & low.0 | low.1;
            permutation.divide[round] = inverse_of_odd(permutation.multiply[round]);
            permutation.add[round] = keys.next();
        }
        permutation.resize(n);
        permutation
    }

    /// The items.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The same key over another number of items.
    #[inline]
    pub fn resize(&mut self, n: u64) {
        let bits = (64 - (n - 1).leading_zeros()).max(LEAST_BITS);
        self.n = n;
        self.mask = u64::MAX >> (64 - bits);
        self.shift = bits.div_ceil(2);
    }

    /// The image of `i`, which is below n.
    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n, "an item of the range");
        let mut x = i;
        loop {
            for round in 0..ROUNDS {
                x = x.wrapping_mul(self.multiply[round]).wrapping_add(self.add[round]) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }

    /// The item whose image is `x`, which is below n.
    #[inline]
    pub fn inverse(&self, x: u64) -> u64 {
        debug_assert!(x < self.n, "an item of the range");
        let mut i = x;
        loop {
            for round in (0..ROUNDS).rev() {
                // The shift is at least half the bits, so that one step undoes it.
                i ^= i >> self.shift;
                i = i.wrapping_sub(self.add[round]).wrapping_mul(self.divide[round]) & self.mask;
            }
            if i < self.n {
                return i;
            }
        }
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration, which doubles the correct bits.
fn inverse_of_odd(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

/// `permutation`: the items of one residue class in random order, each once; then again in another order.
#[derive(Clone, Debug)]
pub struct Pass {
    part: Part,
    seed: u64,
    /// Items of the whole range; a new value takes effect with the next pass.
    n: u64,
    pass: u64,
    place: u64,
    order: Permutation,
}

impl Pass {
    /// The passes over `part` of [0, n); the part is not empty.
    pub(super) fn new(n: u64, seed: u64, part: Part) -> Pass {
        let seed = derive(seed, 0x7061_7373 + part.index);
        Pass { part, seed, n, pass: 0, place: 0, order: Permutation::new(part.len(n), seed) }
    }

    /// The next item.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        if self.place == self.order.n() {
            self.turn();
        }
        let item = self.part.item(self.order.at(self.place));
        self.place += 1;
        item
    }

    /// Starts the next pass, in a new order and over the range of now.
    #[cold]
    fn turn(&mut self) {
        self.pass += 1;
        self.place = 0;
        self.order = Permutation::new(self.part.len(self.n), derive(self.seed, self.pass));
    }

    /// The range becomes [0, n) with the next pass.
    pub(super) fn grow(&mut self, n: u64) {
        self.n = n;
    }
}
