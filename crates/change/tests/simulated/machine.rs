//! A machine whose speed changes, and the trials that it runs.

use crate::random::Random;
use crate::setting;

/// What a trial takes beside the time that it measures, seconds.
const OVERHEAD_SECONDS: f64 = 0.5;

/// What disturbs trials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// A load for 10 % of the time, in bursts of 1 to 30 s that slow all trials by 1.3 to 3 times.
    pub bursts: bool,
    /// Speed changes by 10 % up and down in 1 to 10 minutes, or as a random walk of 10 % in 5 minutes.
    pub wander: bool,
    /// Noise is of Student's t with 3 degrees of freedom, and 3 % of the trials are slower by 15 % on average.
    pub tails: bool,
    /// Each trial has one of two speeds, which are 6 % apart.
    pub modes: bool,
}

/// Conditions by name.
pub const CONDITIONS: [(&str, Conditions); 6] = {
    const QUIET: Conditions = Conditions { bursts: false, wander: false, tails: false, modes: false };
    [
        ("quiet", QUIET),
        ("load 10 % of the time", Conditions { bursts: true, ..QUIET }),
        ("speed wanders by 10 %", Conditions { wander: true, ..QUIET }),
        ("heavy tails", Conditions { tails: true, ..QUIET }),
        ("two modes", Conditions { modes: true, ..QUIET }),
        ("all together", Conditions { bursts: true, wander: true, tails: true, modes: true }),
    ]
};

/// A machine and its clock.
pub struct Machine {
    conditions: Conditions,
    /// The standard deviation of the log of a trial's rate.
    noise: f64,
    /// How long a trial measures, seconds: 1, or `TRIAL_SECONDS` in the environment.
    trial_seconds: f64,
    random: Random,
    /// Seconds since the beginning.
    pub now: f64,
    /// Begin, end, and how much slower.
    bursts: Vec<(f64, f64, f64)>,
    /// The period and phase of a sine, or else the walk by seconds.
    sine: Option<(f64, f64)>,
    walk: Vec<f64>,
}

impl Machine {
    /// The machine of a seed, for at most `seconds`.
    pub fn new(conditions: Conditions, noise: f64, seconds: f64, seed: u64) -> Machine {
        let mut random = Random::new(seed, 3);
        let mut bursts = Vec::new();
        // The mean length of a burst is 29 s / ln 30.
        let gap = 9.0 * 29.0 / 30_f64.ln();
        let mut begin = if random.unit() < 0.1 { 0.0 } else { random.exponential(gap) };
        while begin < seconds {
            let end = begin + random.spread(1.0, 30.0);
            bursts.push((begin, end, random.between(1.3, 3.0)));
            begin = end + random.exponential(gap);
        }
        let sine = (random.unit() < 0.5).then(|| (random.spread(60.0, 600.0), random.unit()));
        let mut walk = vec![0.0];
        for _ in 0..seconds as usize + 60 {
            let last = walk[walk.len() - 1];
            walk.push(last + 0.1 / 300_f64.sqrt() * normal(&mut random));
        }
        let trial_seconds = setting("TRIAL_SECONDS", 1) as f64;
        Machine { conditions, noise, trial_seconds, random, now: 0.0, bursts, sine, walk }
    }

    /// Runs a trial whose rate without disturbance is `exp(log_rate)`, and returns the rates of `metrics` figures. They have their
    /// own noise, and the machine's speed in common.
    pub fn trial(&mut self, log_rate: f64, metrics: usize) -> Vec<f64> {
        let begin = self.now + OVERHEAD_SECONDS;
        let end = begin + self.trial_seconds;
        let mut speed = 1.0;
        if self.conditions.bursts {
            for (from, to, slower) in &self.bursts {
                let share = (to.min(end) - from.max(begin)).max(0.0) / self.trial_seconds;
                speed -= share * (1.0 - 1.0 / slower);
            }
        }
        let mut log = speed.ln() + log_rate;
        if self.conditions.wander {
            log += match self.sine {
                Some((period, phase)) => 0.1 * (std::f64::consts::TAU * (begin / period + phase)).sin(),
                None => self.walk[begin as usize],
            };
        }
        if self.conditions.modes && self.random.unit() < 0.5 {
            log -= 0.06;
        }
        self.now = end;
        (0..metrics).map(|_| (log + self.draw()).exp()).collect()
    }

    fn draw(&mut self) -> f64 {
        let random = &mut self.random;
        let plain = self.noise * normal(random);
        if !self.conditions.tails {
            return plain;
        }
        let square: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
        let far = if random.unit() < 0.03 { random.exponential(0.15) } else { 0.0 };
        plain / square.sqrt() - far
    }
}

/// Standard normal (Box and Muller).
pub fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.unit().ln()).sqrt() * (std::f64::consts::TAU * random.unit()).cos()
}
