//! Random numbers for tests of statistics: of the same seed, the same on every machine.

/// A sequence of them (splitmix64).
pub(super) struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub(super) fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    /// From 0 to 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of a normal distribution with mean 0 and variance 1 (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * (1.0 - self.unit()).ln()).sqrt(), self.unit());
        radius * (std::f64::consts::TAU * angle).cos()
    }
}
