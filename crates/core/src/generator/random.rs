//! The random source: xoshiro256++, the same bits on every machine, split into streams that never overlap.

/// The odd number closest to 2^64 over the golden ratio: the step of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The polynomial x^(2^128) modulo the generator's characteristic polynomial (Blackman and Vigna,
/// <https://prng.di.unimi.it/xoshiro256plusplus.c>); `shape::disjoint_streams` proves it from the transition matrix.
const JUMP: [u64; 4] =
    [0x180e_c6d3_3cfd_0aba, 0xd5a6_1266_f0c9_392c, 0xa958_2618_e03f_c9aa, 0x39ab_dc45_29b1_661c];

/// The finaliser of splitmix64: a bijection of 64-bit numbers that spreads every bit over all.
#[inline]
pub const fn mix64(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The upper 64 bits of a product: maps a uniform `bits` to [0, n).
#[inline]
pub(super) const fn scale(bits: u64, n: u64) -> u64 {
    ((bits as u128 * n as u128) >> 64) as u64
}

/// A separate seed for each purpose, so that independent decisions never share a source.
pub(super) const fn derive(seed: u64, purpose: u64) -> u64 {
    mix64(mix64(seed.wrapping_add(GOLDEN)).wrapping_add(purpose.wrapping_mul(GOLDEN)))
}

/// Splitmix64 as a sequence, for filling states and keys.
#[derive(Clone, Debug)]
pub(super) struct Split(pub(super) u64);

impl Split {
    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0)
    }
}

/// A stream of random numbers (xoshiro256++ 1.0); not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    pub(super) state: [u64; 4],
}

impl Random {
    /// The stream of a seed, whose state is filled by splitmix64 as the authors recommend.
    pub fn seeded(seed: u64) -> Random {
        let mut split = Split(seed);
        Random { state: [split.next(), split.next(), split.next(), split.next()] }
    }

    /// Stream `stream` of a seed: the seed's stream after `stream` jumps of 2^128 steps. Costs about 0.3 us per jump.
    /// Streams of one seed do not overlap within 2^128 draws.
    pub fn stream(seed: u64, stream: u64) -> Random {
        let mut random = Random::seeded(seed);
        for _ in 0..stream {
            random.jump();
        }
        random
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let s2 = s2 ^ s0;
        let s3 = s3 ^ s1;
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        result
    }

    /// A number in [0, n), each equally likely (Lemire's multiplication with rejection, 2019). `n` is at least 1.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n { self.below_slowly(n, product) } else { (product >> 64) as u64 }
    }

    /// The rare part of `below`, which costs a division and possibly another draw.
    #[cold]
    #[inline(never)]
    fn below_slowly(&mut self, n: u64, mut product: u128) -> u64 {
        debug_assert!(n > 0, "the bound must be at least 1");
        let threshold = n.wrapping_neg() % n;
        while (product as u64) < threshold {
            product = u128::from(self.next_u64()) * u128::from(n);
        }
        (product >> 64) as u64
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        fraction(self.next_u64())
    }

    /// Steps 2^128 draws forward.
    pub fn jump(&mut self) {
        let mut sum = [0_u64; 4];
        for word in JUMP {
            for bit in 0..64 {
                if word >> bit & 1 == 1 {
                    for (into, from) in sum.iter_mut().zip(self.state) {
                        *into ^= from;
                    }
                }
                self.next_u64();
            }
        }
        self.state = sum;
    }
}

/// The upper 53 bits as a number in [0, 1).
#[inline]
pub(super) fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    #[test]
    fn equals_the_published_generator_through_jumps() {
        for seed in [0, 1, 42, u64::MAX, 0x1234_5678_9abc_def0] {
            let mut ours = Random::seeded(seed);
            let mut theirs = Xoshiro256PlusPlus::seed_from_u64(seed);
            for jump in 0..4 {
                for draw in 0..1000 {
                    assert_eq!(ours.next_u64(), theirs.next_u64(), "seed {seed}, jump {jump}, draw {draw}");
                }
                ours.jump();
                theirs.jump();
            }
        }
    }

    #[test]
    fn stream_is_the_seed_after_jumps() {
        let mut jumped = Random::seeded(7);
        for stream in 0..5 {
            assert_eq!(Random::stream(7, stream), jumped, "stream {stream}");
            jumped.jump();
        }
    }

    #[test]
    fn keeps_its_first_numbers() {
        let mut random = Random::seeded(42);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, [0xd076_4d4f_4476_689f, 0x519e_4174_576f_3791, 0xfbe0_7cfb_0c24_ed8c]);
        assert_eq!(mix64(1), 0x5692_161d_100b_05e5);
    }

    #[test]
    fn numbers_below_a_bound_are_unbiased() {
        // Two thirds of 2^64: a plain multiplication would draw the even numbers twice as often as each third one.
        let n = 3 << 62;
        let mut random = Random::seeded(3);
        let draws = 200_000;
        let mut counts = [0_u32; 3];
        for _ in 0..draws {
            let number = random.below(n);
            assert!(number < n);
            counts[(number % 3) as usize] += 1;
        }
        for count in counts {
            assert!((f64::from(count) - f64::from(draws) / 3.0).abs() < 1100.0, "seed 3: {counts:?}");
        }
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn unit_stays_under_one() {
        assert_eq!(fraction(0), 0.0);
        assert!(fraction(u64::MAX) < 1.0);
    }
}
