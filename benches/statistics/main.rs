//! Tests the statistics of reports and of `kvdyno compare` with synthetic runs whose true values are known: how often a
//! table claims a false order, how often it finds a true one, and how often its intervals cover the true value.
//!
//! `cargo bench --bench statistics` makes 2000 experiments per case and takes minutes; `-- --small` makes 200, with wider
//! bounds. Both exit with code 1 if a figure is out of its bounds. results/statistics.md has the figures of the first.

mod leaders;
mod machines;
mod noise;

use kvdyno::Random;
use kvdyno::interval_of_median;
use kvdyno::{Better, Rows, Verdict};
use kvdyno::{Row, Table, Throughput, together};
use noise::{CASES, HARD, Kind, Noise, runs};
use std::cmp::Ordering;

const SEED: u64 = 14;

/// The tables of the default run.
const TABLES: usize = 6;

/// Counts the failed checks.
pub struct Checks {
    /// Experiments of a case.
    pub experiments: usize,
    failed: usize,
}

impl Checks {
    /// `share` is at most `most`, plus a margin that chance exceeds in three of four hundred cases.
    pub fn at_most(&mut self, share: f64, most: f64, what: &str) {
        if share > most + 2.8 * self.error(most) {
            self.failed += 1;
            println!("FAILED: {what}: {}, expected at most {}", percent(share), percent(most));
        }
    }

    /// `share` is at least `least`, minus the same margin.
    pub fn at_least(&mut self, share: f64, least: f64, what: &str) {
        if share < least - 2.8 * self.error(least) {
            self.failed += 1;
            println!("FAILED: {what}: {}, expected at least {}", percent(share), percent(least));
        }
    }

    /// Something that must never be.
    pub fn fail(&mut self, what: &str) {
        self.failed += 1;
        println!("FAILED: {what}");
    }

    fn error(&self, share: f64) -> f64 {
        (share * (1.0 - share) / self.experiments as f64).sqrt()
    }
}

/// `4.5 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn main() {
    let small = std::env::args().any(|argument| argument == "--small");
    let experiments = if small { 200 } else { 2000 };
    println!("{experiments} experiments per case, seed {SEED}");
    let mut checks = Checks { experiments, failed: 0 };
    false_orders(&mut checks, small);
    false_orders_of_a_run(&mut checks);
    harness(&mut checks);
    orders_found(&mut checks, small);
    coverage(&mut checks);
    two_runs(&mut checks, small);
    steps(&mut checks);
    machines::check(&mut checks, small);
    leaders::check(&mut checks, small);
    if checks.failed > 0 {
        println!("{} figures are out of their bounds", checks.failed);
        std::process::exit(1);
    }
}

/// A table of rates, measured by the machines of each block.
pub fn table_on(rates: &[Vec<f64>], machines: &[usize]) -> Table {
    let rows: Vec<Row> = rates.iter().map(|row| Row::new(row, &[], Throughput::UpperBound)).collect();
    Table::new(&rows, machines).expect("sound rates")
}

/// A table of rates of one machine.
pub fn table_of(rates: &[Vec<f64>]) -> Table {
    table_on(rates, &vec![0; rates[0].len()])
}

/// Tables of such rates that are read together.
fn tables_of(count: usize, mut rates: impl FnMut() -> Vec<Vec<f64>>) -> Vec<Table> {
    let mut tables: Vec<Table> = (0..count).map(|_| table_of(&rates())).collect();
    together(&mut tables.iter_mut().collect::<Vec<_>>(), 1);
    tables
}

/// Whether any order of the table is false. Engine 0 is truly ahead of the others if `gap` is positive; others are equal.
fn any_false(table: &Table, engines: usize, gap: f64) -> bool {
    let wrong = |first: usize, second: usize| match table.order(first, second) {
        Some(Ordering::Greater) => first != 0 || gap <= 0.0,
        Some(_) => true,
        None => false,
    };
    (0..engines).any(|first| (first + 1..engines).any(|second| wrong(first, second)))
}

fn false_orders(checks: &mut Checks, small: bool) {
    println!("\nEqual engines: at least one false order in a table");
    println!("{:<46} {:>7} {:>7} {:>7} {:>7}   {:>7} {:>7} {:>7} {:>7}", "runs", 5, 5, 5, 5, 10, 10, 10, 10);
    println!(
        "{:<46} {:>7} {:>7} {:>7} {:>7}   {:>7} {:>7} {:>7} {:>7}",
        "engines", 2, 5, 15, 50, 2, 5, 15, 50
    );
    for (noise, is_checked) in
        CASES.iter().map(|noise| (noise, true)).chain(HARD.iter().map(|noise| (noise, false)))
    {
        let mut line = format!("{:<46}", noise.name);
        for blocks in [5, 10] {
            for engines in [2, 5, 15, 50] {
                // Fifty engines are 1225 pairs each time.
                let experiments = if engines == 50 {
                    checks.experiments.min(500) / if small { 4 } else { 1 }
                } else {
                    checks.experiments
                };
                let mut random = Random::seeded(SEED);
                let wrong = (0..experiments).filter(|_| {
                    let rates = runs(noise, engines, blocks, 0.0, &mut random);
                    any_false(&table_of(&rates), engines, 0.0)
                });
                let share = wrong.count() as f64 / experiments as f64;
                line += &format!(" {:>7}", percent(share));
                if is_checked && engines > 2 {
                    let own = Checks { experiments, failed: 0 };
                    let slack = 2.8 * (own.error(0.05) - checks.error(0.05));
                    checks.at_most(
                        share - slack.max(0.0),
                        0.05,
                        &format!("{}, {engines} engines, {blocks} runs", noise.name),
                    );
                }
            }
            line += "  ";
        }
        println!("{}", line.trim_end());
    }
    println!("(the last {} lines are harder than the cases with a bound, and are not checked)", HARD.len());
}

/// The tables of a run are read together.
fn false_orders_of_a_run(checks: &mut Checks) {
    println!("\nEqual engines: at least one false order in {TABLES} tables that are read together");
    println!("{:<46} {:>7} {:>7} {:>7}   {:>7} {:>7} {:>7}", "runs", 5, 5, 5, 10, 10, 10);
    println!("{:<46} {:>7} {:>7} {:>7}   {:>7} {:>7} {:>7}", "engines", 2, 5, 15, 2, 5, 15);
    for noise in CASES {
        let mut line = format!("{:<46}", noise.name);
        for blocks in [5, 10] {
            for engines in [2, 5, 15] {
                let mut random = Random::seeded(SEED + 9);
                let wrong = (0..checks.experiments).filter(|_| {
                    let tables = tables_of(TABLES, || runs(noise, engines, blocks, 0.0, &mut random));
                    tables.iter().any(|table| any_false(table, engines, 0.0))
                });
                let share = wrong.count() as f64 / checks.experiments as f64;
                line += &format!(" {:>7}", percent(share));
                if engines > 2 {
                    let name = format!("{}, {engines} engines, {blocks} runs, {TABLES} tables", noise.name);
                    checks.at_most(share, 0.05, &name);
                }
            }
            line += "  ";
        }
        println!("{}", line.trim_end());
    }
}

/// Equally fast engines with harness shares from 2 % to 20 %, of which an engine's own threads use none or all.
fn harness(checks: &mut Checks) {
    println!("\nEqual engines with harness shares from 2 % to 20 %: at least one false order in a table");
    for (throughput, used) in
        [(Throughput::Exact, 0.0), (Throughput::UpperBound, 0.0), (Throughput::UpperBound, 1.0)]
    {
        for blocks in [5, 10] {
            let mut line = format!("{blocks:>2} runs, {throughput:?}, {} used:", percent(used));
            for engines in [2, 5, 15] {
                let wrong = orders_by_harness(checks.experiments, engines, blocks, (throughput, used));
                let share = wrong as f64 / checks.experiments as f64;
                line += &format!(" {engines:>2} engines {:>6}", percent(share));
                let name =
                    format!("harness shares, {throughput:?}, {used} used, {engines} engines, {blocks} runs");
                checks.at_most(share, 0.05, &name);
            }
            println!("{line}");
        }
    }
}

/// Experiments with a false order. `used`: the part of the harness's time in which every second engine works on.
fn orders_by_harness(
    experiments: usize,
    engines: usize,
    blocks: usize,
    (throughput, used): (Throughput, f64),
) -> usize {
    let mut random = Random::seeded(SEED + 5);
    let shares: Vec<f64> =
        (0..engines).map(|engine| 0.02 + 0.18 * engine as f64 / (engines - 1) as f64).collect();
    let wrong = (0..experiments).filter(|_| {
        // What a program without the harness would reach.
        let mut rates = runs(&CASES[0], engines, blocks, 0.0, &mut random);
        let mut own = Vec::new();
        for (engine, (row, share)) in rates.iter_mut().zip(&shares).enumerate() {
            let kept = 1.0 - share * if engine % 2 == 0 { 1.0 - used } else { 1.0 };
            row.iter_mut().for_each(|rate| *rate *= kept);
            let net: Vec<Option<f64>> = row.iter().map(|rate| Some(rate / (1.0 - share))).collect();
            own.push(Row::new(row, &net, throughput));
        }
        let table = Table::new(&own, &vec![0; blocks]).expect("sound rates");
        (0..engines).any(|first| (first + 1..engines).any(|second| table.order(first, second).is_some()))
    });
    wrong.count()
}

fn orders_found(checks: &mut Checks, small: bool) {
    println!(
        "\nOne engine ahead of the others: share of its pairs found, in one table and in one of {TABLES} tables"
    );
    println!(
        "{:<46} {:>5} {:>26}   {:>26}   {:>26}",
        "",
        "",
        "5 runs",
        "10 runs",
        format!("{TABLES} tables, 5 runs")
    );
    println!(
        "{:<46} {:>5} {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}",
        "", "gap", "2", "5", "15", "2", "5", "15", "2", "5", "15"
    );
    let wanted = |noise: &Noise, gap: f64, (blocks, tables): (usize, usize), engines: usize| match (
        noise.kind, blocks,
    ) {
        // What a family of tables may cost: the noise of these engines is equal.
        (Kind::Normal(0.03), 5) if tables > 1 && engines <= 5 && gap == 0.10 => 0.50,
        _ if engines > 5 || tables > 1 => 0.0,
        (Kind::Normal(0.03), 5) if gap == 0.10 => 0.90,
        (Kind::Drift(_), 5) if gap == 0.10 => 0.85,
        (Kind::Outliers(..), 10) if gap == 0.20 => 0.70,
        _ => 0.0,
    };
    for noise in CASES {
        for gap in [0.05, 0.10, 0.20] {
            let mut line = format!("{:<46} {:>5}", noise.name, percent(gap).replace(".0 ", " "));
            for (blocks, tables) in [(5, 1), (10, 1), (5, TABLES)] {
                for engines in [2, 5, 15] {
                    let experiments = checks.experiments / if small { 1 } else { 2 } / tables;
                    let mut random = Random::seeded(SEED + 1);
                    let mut found = 0;
                    for _ in 0..experiments {
                        for table in tables_of(tables, || runs(noise, engines, blocks, gap, &mut random)) {
                            let is_ahead = |other: &usize| table.order(0, *other) == Some(Ordering::Greater);
                            found += (1..engines).filter(is_ahead).count();
                        }
                    }
                    let share = found as f64 / (experiments * tables * (engines - 1)) as f64;
                    line += &format!(" {:>8}", percent(share));
                    let least = wanted(noise, gap, (blocks, tables), engines);
                    checks.at_least(
                        share,
                        least,
                        &format!("{}, gap {gap}, {engines} engines, {blocks} runs", noise.name),
                    );
                }
                line += "  ";
            }
            println!("{}", line.trim_end());
        }
    }
}

fn coverage(checks: &mut Checks) {
    println!("\nIntervals of independent runs: how often they cover the true value");
    println!("ratios of a table of 5 engines, all ten together, expected 95.0 % or more:");
    for noise in CASES.iter().filter(|noise| noise.is_independent) {
        let mut line = format!("{:<46}", noise.name);
        for blocks in [3, 5, 7, 10] {
            let mut random = Random::seeded(SEED + 2);
            let covered = (0..checks.experiments).filter(|_| {
                let table = table_of(&runs(noise, 5, blocks, 0.1, &mut random));
                let truth = |engine: usize| if engine == 0 { 1.1 } else { 1.0 };
                let covers = |first: usize, second: usize| {
                    let interval = table.interval(first, second).expect("two blocks or more");
                    let ratio = truth(first) / truth(second);
                    interval.low <= ratio && ratio <= interval.high
                };
                (0..5).all(|first| (first + 1..5).all(|second| covers(first, second)))
            });
            let share = covered.count() as f64 / checks.experiments as f64;
            line += &format!(" {:>2} runs {:>7}", blocks, percent(share));
            if matches!(noise.kind, Kind::Normal(_)) {
                // Half of the error of a family is that of leaders.
                checks.at_least(share, 0.95, &format!("coverage, {}, {blocks} runs", noise.name));
                checks.at_most(share, 0.99, &format!("coverage, {}, {blocks} runs", noise.name));
            }
        }
        println!("{line}");
    }
    println!("medians (of a skewed distribution), confidence level printed and found:");
    for blocks in [2, 3, 4, 5, 6, 7, 8, 10, 15, 20] {
        let mut random = Random::seeded(SEED + 3);
        let (mut covered, mut level) = (0, 0.0);
        let experiments = checks.experiments * 5;
        for _ in 0..experiments {
            let sample: Vec<f64> = (0..blocks).map(|_| -(1.0 - random.unit()).ln()).collect();
            let interval = interval_of_median(&sample).expect("two runs or more");
            level = interval.level;
            covered += usize::from(interval.low <= 2.0_f64.ln() && 2.0_f64.ln() <= interval.high);
        }
        let share = covered as f64 / experiments as f64;
        println!("{blocks:>4} runs: {} {}", percent(level), percent(share));
        checks.at_least(share, level - 0.02, &format!("interval of the median of {blocks} runs"));
        checks.at_most(share, level + 0.02, &format!("interval of the median of {blocks} runs"));
    }
}

/// Two runs of the same engines, each with its own drift if the noise has one.
fn two_runs(checks: &mut Checks, small: bool) {
    println!(
        "\nTwo runs compared (`kvdyno compare`): false verdicts among equal rows, and +10 % found in one of them"
    );
    println!(
        "{:<46} {:>6} {:>9} {:>9} {:>9}   {:>9} {:>9}",
        "", "runs", "false 5", "false 15", "false 50", "found 5", "found 15"
    );
    for noise in CASES {
        for repetitions in [3, 4, 5, 10] {
            let mut line = format!("{:<46} {:>6}", noise.name, repetitions);
            for rows in [5, 15, 50] {
                let share = calls(checks.experiments, noise, rows, repetitions, 0.0, |verdicts| {
                    f64::from(u8::from(verdicts.iter().any(|verdict| *verdict != Verdict::Open)))
                });
                line += &format!(" {:>9}", percent(share));
                // Three runs may all be outliers, which no rule can detect.
                if repetitions > 3 && (noise.is_independent || matches!(noise.kind, Kind::Drift(_))) {
                    checks.at_most(
                        share,
                        0.05,
                        &format!("two runs, {}, {rows} rows, {repetitions} runs", noise.name),
                    );
                }
            }
            line += "  ";
            for rows in [5, 15] {
                let share = calls(
                    checks.experiments / if small { 2 } else { 1 },
                    noise,
                    rows,
                    repetitions,
                    0.10,
                    |verdicts| f64::from(u8::from(verdicts[0] == Verdict::Better)),
                );
                line += &format!(" {:>9}", percent(share));
                if matches!(noise.kind, Kind::Normal(0.03)) && repetitions == 5 && rows == 5 {
                    checks.at_least(share, 0.90, &format!("two runs, {}, +10 %", noise.name));
                }
            }
            println!("{line}");
        }
    }
}

/// Percentiles of a fast engine are multiples of the clock's step: each run has one of two by chance.
fn steps(checks: &mut Checks) {
    for repetitions in [5, 10] {
        let mut random = Random::seeded(SEED + 6);
        let mut values =
            || (0..repetitions).map(|_| if random.below(2) == 0 { 20.0 } else { 30.0 }).collect::<Vec<f64>>();
        let wrong = (0..checks.experiments).filter(|_| {
            let mut rows = Rows::default();
            let cells: Vec<(Vec<f64>, Vec<f64>)> = (0..5).map(|_| (values(), values())).collect();
            rows.add(&cells, Better::Lower, |_| 10.0);
            rows.finish().iter().flatten().any(|row| row.verdict != Verdict::Open)
        });
        let share = wrong.count() as f64 / checks.experiments as f64;
        println!("20 or 30 ns by chance, {repetitions} runs, 5 rows: {}", percent(share));
        checks.at_most(share, 0.05, &format!("figures in steps, {repetitions} runs"));
    }
}

/// The mean of `count` over the verdicts of two runs, the second of which has `gap` in its first row.
fn calls(
    experiments: usize,
    noise: &Noise,
    rows: usize,
    repetitions: usize,
    gap: f64,
    count: impl Fn(&[Verdict]) -> f64,
) -> f64 {
    let mut random = Random::seeded(SEED + 4);
    let mut sum = 0.0;
    for _ in 0..experiments {
        let base = runs(noise, rows, repetitions, 0.0, &mut random);
        let new = runs(noise, rows, repetitions, gap, &mut random);
        let mut all = Rows::default();
        let samples: Vec<(Vec<f64>, Vec<f64>)> = base.into_iter().zip(new).collect();
        all.add(&samples, Better::Higher, |_| 0.0);
        let verdicts: Vec<Verdict> =
            all.finish().into_iter().map(|row| row.expect("sound rates").verdict).collect();
        sum += count(&verdicts);
    }
    sum / experiments as f64
}
