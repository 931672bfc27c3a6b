//! Series with a known truth.

/// Random numbers from a seed (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`, evenly in logarithms.
    pub fn between_logarithms(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn coin(&mut self) -> bool {
        self.bits() & 1 == 0
    }

    /// A normal number (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.between(f64::MIN_POSITIVE, 1.0).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.between(0.0, 1.0)).cos()
    }
}

/// What a series is made to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// One level.
    Flat,
    /// Rises by an exponential that has come within 5 % of its end after 10 to 50 % of the rows.
    WarmUp,
    /// Rises over the whole length: a line, or an exponential with a time constant of 0.5 to 1 lengths.
    StillWarming,
    /// Falls over the whole length, or from 20 to 50 % of the rows on: a line.
    Slowdown,
    /// Steps up or down at 10 to 50 % of the rows.
    EarlyStep,
    /// Steps up at 85 to 95 % of the rows, eight or more before the end.
    LateStepUp,
    /// Steps down at 85 to 95 % of the rows, eight or more before the end.
    LateStepDown,
    /// A saw with a period of 5 to 60 rows, seven or more of them, each up to 5 % longer or shorter.
    Saw,
    /// A warm-up with a saw on it, of 14 or more periods.
    WarmUpWithSaw,
    /// A slowdown with a saw on it, of 14 or more periods.
    SlowdownWithSaw,
    /// One level, with 0.5 to 3 % of the rows multiplied by 0.1 to 0.5 or by 2 to 5.
    Burst,
    /// One level, with one stall in each length: 3 to 15 rows, and at most 4 % of the rows but 5, at a tenth to nine tenths of
    /// the level, at 10 to 90 % of the rows.
    Stall,
    /// Half a sine: rises, then falls to where it began.
    Hump,
    /// The sum of independent steps.
    RandomWalk,
}

/// All classes, in the order of the table.
pub const CLASSES: [Class; 14] = [
    Class::Flat,
    Class::WarmUp,
    Class::StillWarming,
    Class::Slowdown,
    Class::EarlyStep,
    Class::LateStepUp,
    Class::LateStepDown,
    Class::Saw,
    Class::WarmUpWithSaw,
    Class::SlowdownWithSaw,
    Class::Burst,
    Class::Stall,
    Class::Hump,
    Class::RandomWalk,
];

/// How many standard errors of the noise the change of a series has at least, were its shape and its noise known.
pub const CLEARNESS: f64 = 10.0;

/// One series and what is known of it.
#[derive(Debug)]
pub struct Synthetic {
    pub class: Class,
    pub rows: usize,
    /// The standard deviation of the noise, in logarithms.
    pub noise: f64,
    /// The correlation of the noise of neighbouring rows.
    pub persistence: f64,
    /// The size of the change, in logarithms.
    pub size: f64,
    /// Where in the series something happens, as a share of its rows; its meaning depends on the class.
    pub place: f64,
    /// The height of the teeth of a saw, in logarithms.
    pub saw: f64,
    /// The period of a saw, in rows.
    pub period: f64,
    /// A second shape of the class, if it has one.
    pub other_shape: bool,
    noise_seed: u64,
}

impl Class {
    /// Whether the end of such a series is steady.
    pub fn is_steady(self) -> bool {
        matches!(
            self,
            Class::Flat
                | Class::WarmUp
                | Class::EarlyStep
                | Class::Saw
                | Class::WarmUpWithSaw
                | Class::Burst
                | Class::Stall
        )
    }
}

impl Synthetic {
    /// A series of a class: noise of 1 to 20 % with a persistence of 0 to 0.7, 30 to 1800 rows, changes of 5 to 60 %. It is
    /// drawn again until its change is as clear as [`CLEARNESS`] says.
    pub fn draw(class: Class, random: &mut Random) -> Synthetic {
        loop {
            let drawn = Synthetic {
                class,
                rows: random.between_logarithms(30.0, 1801.0) as usize,
                noise: random.between_logarithms(0.01, 0.2),
                persistence: random.between(0.0, 0.7),
                size: random.between(0.05, 0.6),
                place: random.between(0.0, 1.0),
                saw: random.between(0.05, 0.6),
                period: random.between(5.0, 60.0),
                other_shape: random.coin(),
                noise_seed: random.bits(),
            };
            if drawn.is_clear() {
                return drawn;
            }
        }
    }

    /// Independent rows that say as much as the rows at the last level.
    pub fn independent_rows(&self) -> f64 {
        (self.rows as f64 - self.place_row()) * (1.0 - self.persistence) / (1.0 + self.persistence)
    }

    /// The row where something happens.
    pub fn place_row(&self) -> f64 {
        let (low, high) = match self.class {
            Class::WarmUp | Class::WarmUpWithSaw | Class::EarlyStep => (0.1, 0.5),
            Class::Slowdown | Class::SlowdownWithSaw if self.other_shape => (0.2, 0.5),
            Class::LateStepUp | Class::LateStepDown => (0.85, 0.95),
            _ => (0.0, 0.0),
        };
        (low + (high - low) * self.place) * self.rows as f64
    }

    fn is_clear(&self) -> bool {
        match self.class {
            Class::Flat | Class::Burst | Class::Stall | Class::RandomWalk => return true,
            Class::Saw => return self.rows as f64 >= 7.0 * self.period,
            Class::WarmUpWithSaw | Class::SlowdownWithSaw if (self.rows as f64) < 14.0 * self.period => {
                return false;
            }
            Class::LateStepUp | Class::LateStepDown if self.rows as f64 - self.place_row() < 8.0 => {
                return false;
            }
            _ => {}
        }
        let shape: Vec<f64> = (0..self.rows).map(|row| self.shape(row as f64)).collect();
        let mean = shape.iter().sum::<f64>() / self.rows as f64;
        let square: f64 = shape.iter().map(|one| (one - mean) * (one - mean)).sum();
        let long_run = self.noise * self.noise * (1.0 + self.persistence) / (1.0 - self.persistence);
        square / long_run > CLEARNESS * CLEARNESS
    }

    /// The level at a row, in logarithms, for all classes whose level has a formula.
    fn shape(&self, row: f64) -> f64 {
        let share = row / self.rows as f64;
        let place = self.place_row();
        match self.class {
            Class::WarmUp | Class::WarmUpWithSaw => -self.size * (-row / (place / 3.0)).exp(),
            Class::StillWarming if self.other_shape => -self.size * (-share / (0.5 + 0.5 * self.place)).exp(),
            Class::StillWarming => self.size * share,
            Class::Slowdown | Class::SlowdownWithSaw => {
                -self.size * ((row - place) / (self.rows as f64 - place)).max(0.0)
            }
            Class::EarlyStep if row >= place => self.size * if self.other_shape { 1.0 } else { -1.0 },
            Class::LateStepUp if row >= place => self.size,
            Class::LateStepDown if row >= place => -self.size,
            Class::Hump => self.size * (std::f64::consts::PI * share).sin(),
            _ => 0.0,
        }
    }

    /// The rate in each row of a run with `times` the rows; the first rows are the same for any number of times.
    pub fn values(&self, times: usize) -> Vec<f64> {
        let mut random = Random::new(self.noise_seed);
        let burst_share = random.between(0.005, 0.03);
        let own = (1.0 - self.persistence * self.persistence).sqrt();
        let mut noise = random.normal();
        let mut walk = 0.0;
        let longest_stall = (0.04 * self.rows as f64).clamp(5.0, 15.0);
        let stall_rows = random.between(3.0, longest_stall + 1.0) as usize;
        let stall_depth = random.between(0.1, 0.9).ln();
        let mut stall_start = random.between(0.1, 0.9) * self.rows as f64;
        let mut tooth = random.between(0.0, 1.0);
        let mut period = self.period;
        let mut values = Vec::with_capacity(self.rows * times);
        for row in 0..self.rows * times {
            noise = self.persistence * noise + own * random.normal();
            walk += self.noise * random.normal();
            let burst = if random.between(0.0, 1.0) >= burst_share {
                0.0
            } else if random.coin() {
                random.between_logarithms(0.1, 0.5).ln()
            } else {
                random.between_logarithms(2.0, 5.0).ln()
            };
            tooth += 1.0 / period;
            if tooth >= 1.0 {
                tooth -= 1.0;
                period = self.period * random.between(0.95, 1.05);
            }
            if row % self.rows == 0 && row > 0 {
                stall_start = row as f64 + random.between(0.1, 0.9) * self.rows as f64;
            }
            let is_stall = (stall_start as usize..stall_start as usize + stall_rows).contains(&row);
            let saw = -self.saw * (tooth - 0.5);
            let level = match self.class {
                Class::Saw => saw,
                Class::WarmUpWithSaw | Class::SlowdownWithSaw => saw + self.shape(row as f64),
                Class::Burst => burst,
                Class::Stall if is_stall => stall_depth,
                Class::RandomWalk => walk,
                _ => self.shape(row as f64),
            };
            let noise = if self.class == Class::RandomWalk { 0.0 } else { self.noise * noise };
            values.push(10_000.0 * (level + noise).exp());
        }
        values
    }
}
