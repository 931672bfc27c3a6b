//! Synthetic runs: rates with known true values and the kinds of noise that occur in benchmarks.

use kvdyno::Random;

/// How rates vary around the true value. Shares are of the rate: 0.03 is 3 %.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// Normal logs with this standard deviation.
    Normal(f64),
    /// 3 % normal noise; the first share of the runs is slower by the second share.
    Modes(f64, f64),
    /// 3 % normal noise; the first share of the runs has the second share of the rate.
    Outliers(f64, f64),
    /// 3 % normal noise; the machine loses this share of its speed from the first trial to the last.
    Drift(f64),
    /// 3 % normal noise, and noise of the machine with this standard deviation, of which neighbouring trials share 90 %.
    Wander(f64),
    /// The first engine has the first noise, the others the second.
    OneNoisy(f64, f64),
    /// Half of the engines have the first noise, half the second.
    HalfNoisy(f64, f64),
    /// Each engine has its own noise, with a median of 3 %, log-normal with this standard deviation.
    Unequal(f64),
    /// 5 % noise; each run of an engine shares half of it with the previous run.
    Sticky,
}

/// A kind of noise with its name.
pub struct Noise {
    /// Printed in the tables.
    pub name: &'static str,
    /// The kind and its parameters.
    pub kind: Kind,
    /// Runs are independent of each other.
    pub is_independent: bool,
}

const fn noise(name: &'static str, kind: Kind, is_independent: bool) -> Noise {
    Noise { name, kind, is_independent }
}

/// The noise for which the bounds are checked.
pub const CASES: &[Noise] = &[
    noise("noise of 3 %", Kind::Normal(0.03), true),
    noise("noise of 10 %", Kind::Normal(0.10), true),
    noise("two modes: 30 % of runs 15 % slower", Kind::Modes(0.3, 0.15), true),
    noise("outliers: 10 % of runs at half speed", Kind::Outliers(0.1, 0.5), true),
    noise("drift of 20 % over the run", Kind::Drift(0.2), false),
    noise("correlated: machine wanders by 10 %", Kind::Wander(0.1), false),
];

/// Harder noise, which is printed and not checked.
pub const HARD: &[Noise] = &[
    noise("two modes: half of the runs 20 % slower", Kind::Modes(0.5, 0.2), true),
    noise("one engine with 20 %, the others 1 %", Kind::OneNoisy(0.2, 0.01), true),
    noise("one engine with 0.5 %, the others 10 %", Kind::OneNoisy(0.005, 0.1), true),
    noise("half of the engines with 20 %, half 1 %", Kind::HalfNoisy(0.2, 0.01), true),
    noise("noise from 0.4 to 22 % (19 of 20 engines)", Kind::Unequal(1.0), true),
    noise("each run shares half with the one before", Kind::Sticky, false),
];

/// A draw from the normal distribution.
pub fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// Rates of `engines` over `blocks`: 1, and 1 + `gap` for the first engine, with noise. The order of the engines in each
/// block is random, as in a run.
pub fn runs(noise: &Noise, engines: usize, blocks: usize, gap: f64, random: &mut Random) -> Vec<Vec<f64>> {
    let mut logs = vec![vec![0.0; blocks]; engines];
    logs[0] = vec![(1.0 + gap).ln(); blocks];
    let spreads: Vec<f64> = (0..engines)
        .map(|engine| match noise.kind {
            Kind::Normal(spread) => spread,
            Kind::OneNoisy(first, others) => {
                if engine == 0 {
                    first
                } else {
                    others
                }
            }
            Kind::HalfNoisy(first, second) => {
                if engine < engines / 2 {
                    first
                } else {
                    second
                }
            }
            Kind::Unequal(spread) => 0.03 * (spread * normal(random)).exp(),
            Kind::Sticky => 0.05,
            _ => 0.03,
        })
        .collect();
    let mut machine = normal(random);
    let mut order: Vec<usize> = (0..engines).collect();
    for block in 0..blocks {
        for place in (1..engines).rev() {
            order.swap(place, random.below(place as u64 + 1) as usize);
        }
        for (place, engine) in order.iter().copied().enumerate() {
            machine = 0.9 * machine + (1.0_f64 - 0.81).sqrt() * normal(random);
            let own = normal(random);
            let progress = (block * engines + place) as f64 / (blocks * engines - 1).max(1) as f64;
            let before = if block > 0 {
                logs[engine][block - 1] - (if engine == 0 { 1.0 + gap } else { 1.0_f64 }).ln()
            } else {
                0.0
            };
            logs[engine][block] += match noise.kind {
                Kind::Sticky if block > 0 => 0.5 * before + 0.75_f64.sqrt() * spreads[engine] * own,
                Kind::Modes(share, slower) if random.unit() < share => {
                    (1.0 - slower).ln() + spreads[engine] * own
                }
                Kind::Outliers(share, part) if random.unit() < share => part.ln() + spreads[engine] * own,
                Kind::Drift(share) => (1.0 - share * progress).ln() + spreads[engine] * own,
                Kind::Wander(spread) => spread * machine + spreads[engine] * own,
                _ => spreads[engine] * own,
            };
        }
    }
    logs.into_iter().map(|row| row.into_iter().map(f64::exp).collect()).collect()
}
