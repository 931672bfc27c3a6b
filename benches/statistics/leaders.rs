//! Runs of several tables: leaders and orders that are wrong, how many engines may be the fastest, and races, in which engines
//! leave the phases that they cannot win.

use super::noise::normal;
use super::{Checks, SEED, percent};
use kvdyno::{Measured, Random, Row, Table, Throughput, error_of_look, together};
use std::cmp::Ordering;

/// The tables of a default run with its other workloads.
const TABLES: usize = 11;

/// The engines of its tables.
const ENGINES: usize = 14;

/// The standard deviation of a run's log rate on a busy virtual machine with two processors.
const BUSY: f64 = 0.16;

/// That of the true log rates of engines: the distances of the first places are like those of default runs.
const SPREAD: f64 = 0.5;

/// That of the effects of blocks.
const BLOCKS: f64 = 0.10;

/// The part of the variance of a run that a longer run keeps.
const LASTING: f64 = 0.27;

/// Blocks after which a race drops engines. Those after the first have longer runs.
const LOOKS: [usize; 3] = [3, 4, 5];

/// How the noise of engines differs. In records of a default run the logs of the engines' standard deviations have a standard
/// deviation of 0.65, and chance alone makes 0.40 of it with five runs: 0.5 is left.
struct Shape {
    name: &'static str,
    /// The standard deviation of the log of an engine's noise.
    unequal: f64,
    /// Whether single runs are far off: t with four degrees of freedom.
    is_heavy: bool,
}

const SHAPES: [Shape; 3] = [
    Shape { name: "equal", unequal: 0.0, is_heavy: false },
    Shape { name: "unequal", unequal: 0.5, is_heavy: false },
    Shape { name: "unequal and heavy-tailed", unequal: 0.3, is_heavy: true },
];

/// The engines of a table; the first is the fastest.
struct Engines {
    truths: Vec<f64>,
    spreads: Vec<f64>,
    is_heavy: bool,
}

impl Engines {
    fn new(count: usize, (noise, spread): (f64, f64), shape: &Shape, random: &mut Random) -> Engines {
        let mut truths: Vec<f64> = (0..count).map(|_| spread * normal(random)).collect();
        truths.sort_by(|one, other| other.total_cmp(one));
        let spreads = (0..count).map(|_| noise * (shape.unequal * normal(random)).exp()).collect();
        Engines { truths, spreads, is_heavy: shape.is_heavy }
    }

    /// A run in a block with this effect.
    fn run(&self, engine: usize, effect: f64, length: f64, random: &mut Random) -> Measured {
        let mut noise = normal(random);
        if self.is_heavy {
            let squares: f64 = (0..4).map(|_| normal(random).powi(2)).sum();
            // The variance of t with four degrees of freedom is 2.
            noise /= (squares / 4.0).sqrt() * 2.0_f64.sqrt();
        }
        let spread = self.spreads[engine] * (LASTING + (1.0 - LASTING) / length).sqrt();
        Measured { rate: (self.truths[engine] + effect + spread * noise).exp(), engine_rate: None, length }
    }

    /// Blocks with all engines.
    fn table(&self, blocks: usize, random: &mut Random) -> Table {
        let mut rows = self.rows();
        for _ in 0..blocks {
            let effect = BLOCKS * normal(random);
            for (engine, row) in rows.iter_mut().enumerate() {
                row.runs.push(Some(self.run(engine, effect, 1.0, random)));
            }
        }
        Table::new(&rows, &vec![0; blocks]).expect("sound rates")
    }

    fn rows(&self) -> Vec<Row> {
        self.truths.iter().map(|_| Row { runs: Vec::new(), throughput: Throughput::UpperBound }).collect()
    }

    /// Which engines are left after a race with as many runs as five blocks have. In later blocks those that are left share the
    /// time of all.
    fn race(&self, tables: usize, random: &mut Random) -> Vec<bool> {
        let (mut rows, mut left) = (self.rows(), vec![true; self.truths.len()]);
        for block in 1..=LOOKS[LOOKS.len() - 1] {
            let effect = BLOCKS * normal(random);
            let racing = left.iter().filter(|left| **left).count();
            let length = if block <= LOOKS[0] { 1.0 } else { left.len() as f64 / racing as f64 };
            for (engine, row) in rows.iter_mut().enumerate() {
                row.runs.push(left[engine].then(|| self.run(engine, effect, length, random)));
            }
            if LOOKS.contains(&block) {
                let table = Table::new(&rows, &vec![0; block]).expect("sound rates");
                let kept = table.not_beaten(error_of_look(tables, LOOKS.len()));
                left.iter_mut().zip(kept).for_each(|(left, kept)| *left &= kept);
            }
        }
        left
    }
}

/// Prints and checks all figures about leaders.
pub fn check(checks: &mut Checks, small: bool) {
    errors(checks);
    winners(checks, small);
    races(checks, small);
}

/// Tables that are read together.
fn read(engines: &[Engines], blocks: usize, random: &mut Random) -> Vec<Table> {
    let mut tables: Vec<Table> = engines.iter().map(|engines| engines.table(blocks, random)).collect();
    together(&mut tables.iter_mut().collect::<Vec<_>>(), 1);
    tables
}

fn is_ahead(table: &Table, first: usize, second: usize) -> bool {
    table.order(first, second) == Some(Ordering::Greater)
}

/// Whether an order is claimed that is false.
fn has_false_order(table: &Table, engines: &Engines) -> bool {
    let count = engines.truths.len();
    let is_false = |first: usize, second: usize| {
        is_ahead(table, first, second) && engines.truths[first] <= engines.truths[second]
    };
    (0..count).any(|first| (0..count).any(|second| is_false(first, second)))
}

/// Equal engines. Of these, the first counts as the fastest.
fn errors(checks: &mut Checks) {
    println!(
        "\nEqual engines, {TABLES} tables read together: a false order or the fastest no leader; any engine no leader"
    );
    for shape in &SHAPES {
        for blocks in [5, 10] {
            let mut line = format!("{:<26} {blocks:>2} runs:", shape.name);
            for count in [5, 15, 50] {
                // Fifty engines are 1225 pairs in each table.
                let experiments = checks.experiments / if count == 50 { 40 } else { 2 };
                let mut random = Random::seeded(SEED + 10);
                let (mut wrong, mut dropped) = (0, 0);
                for _ in 0..experiments {
                    let engines: Vec<Engines> =
                        (0..TABLES).map(|_| Engines::new(count, (BUSY, 0.0), shape, &mut random)).collect();
                    let tables = read(&engines, blocks, &mut random);
                    let is_wrong = |(table, engines): (&Table, &Engines)| {
                        has_false_order(table, engines) || !table.is_leader(0)
                    };
                    wrong += usize::from(tables.iter().zip(&engines).any(is_wrong));
                    let all_lead = |table: &Table| (0..count).all(|engine| table.is_leader(engine));
                    dropped += usize::from(!tables.iter().all(all_lead));
                }
                let share = |count: usize| count as f64 / experiments as f64;
                line += &format!(
                    "  {count:>2} engines {:>6} {:>6}",
                    percent(share(wrong)),
                    percent(share(dropped))
                );
                let own = Checks { experiments, failed: 0 };
                let slack = 2.8 * (own.error(0.05) - checks.error(0.05));
                let name = format!("errors of a run, {}, {count} engines, {blocks} runs", shape.name);
                checks.at_most(share(wrong) - slack.max(0.0), 0.05, &name);
            }
            println!("{line}");
        }
    }
}

/// Engines that differ: how often one is named, and how many may be the fastest.
fn winners(checks: &mut Checks, small: bool) {
    println!(
        "\n{TABLES} tables of {ENGINES} engines that differ, 5 runs: tables with a winner and leaders, by orders of all pairs (Bonferroni) and now"
    );
    let experiments = checks.experiments / if small { 10 } else { 20 };
    for shape in &SHAPES {
        for part in [1.0, 0.7, 0.5, 0.35] {
            let mut random = Random::seeded(SEED + 11);
            let (mut before, mut now, mut wrong) = ([0, 0], [0, 0], 0);
            for _ in 0..experiments {
                let engines: Vec<Engines> = (0..TABLES)
                    .map(|_| Engines::new(ENGINES, (BUSY * part, SPREAD), shape, &mut random))
                    .collect();
                let tables = read(&engines, 5, &mut random);
                for table in &tables {
                    let pairs = (ENGINES * (ENGINES - 1) / 2 * TABLES) as f64 * 1.25;
                    let is_behind = |engine: usize| {
                        (0..ENGINES).any(|other| {
                            other != engine && 2.0 * table.p_faster(other, engine) * pairs < 0.05
                        })
                    };
                    let is_beaten = |engine: usize| (0..ENGINES).any(|other| is_ahead(table, other, engine));
                    let leads = |engine: &usize| table.is_leader(*engine);
                    let leaders: Vec<usize> = (0..ENGINES).filter(leads).collect();
                    if leaders.is_empty() || leaders.iter().any(|engine| is_beaten(*engine)) {
                        checks.fail("a leader is behind another engine");
                    }
                    let count = |leaders: usize, sums: &mut [usize; 2]| {
                        sums[0] += usize::from(leaders == 1);
                        sums[1] += leaders;
                    };
                    count((0..ENGINES).filter(|engine| !is_behind(*engine)).count(), &mut before);
                    count(leaders.len(), &mut now);
                }
                let is_wrong = |(table, engines): (&Table, &Engines)| {
                    has_false_order(table, engines) || !table.is_leader(0)
                };
                wrong += usize::from(tables.iter().zip(&engines).any(is_wrong));
            }
            let of = |count: usize| count as f64 / (experiments * TABLES) as f64;
            println!(
                "{:<26} noise x {part:<4}: {:>6} {:>5.2}   {:>6} {:>5.2}   errors {}",
                shape.name,
                percent(of(before[0])),
                of(before[1]),
                percent(of(now[0])),
                of(now[1]),
                percent(wrong as f64 / experiments as f64)
            );
        }
    }
}

/// The same number of runs as a race.
fn races(checks: &mut Checks, small: bool) {
    println!(
        "\nRaces with looks after blocks {LOOKS:?}: of equal engines the fastest dropped; of others tables with a winner and leaders"
    );
    let experiments = checks.experiments / if small { 2 } else { 4 };
    for shape in &SHAPES {
        let mut random = Random::seeded(SEED + 12);
        let is_missed = |random: &mut Random| {
            (0..TABLES).fold(false, |missed, _| {
                let engines = Engines::new(ENGINES, (BUSY, 0.0), shape, random);
                missed | !engines.race(TABLES, random)[0]
            })
        };
        let missed = (0..experiments).filter(|_| is_missed(&mut random)).count() as f64 / experiments as f64;
        let mut line = format!("{:<26} {:>6}", shape.name, percent(missed));
        for part in [1.0, 0.7, 0.5, 0.35] {
            let tables = experiments * TABLES / 10;
            let (mut winners, mut leaders) = (0, 0);
            for _ in 0..tables {
                let engines = Engines::new(ENGINES, (BUSY * part, SPREAD), shape, &mut random);
                let left = engines.race(TABLES, &mut random).iter().filter(|left| **left).count();
                winners += usize::from(left == 1);
                leaders += left;
            }
            let of = |count: usize| count as f64 / tables as f64;
            line += &format!("   x {part}: {:>6} {:>5.2}", percent(of(winners)), of(leaders));
        }
        println!("{line}");
        let slack = 2.8 * (Checks { experiments, failed: 0 }.error(0.05) - checks.error(0.05));
        checks.at_most(missed - slack.max(0.0), 0.05, &format!("a race, {}", shape.name));
    }
}
