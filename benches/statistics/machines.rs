//! Synthetic campaigns: blocks measured by several machines, each of which favours some engines, and machines that are odd.

use super::noise::normal;
use super::{Checks, SEED, percent, table_of, table_on};
use kvdyno::{Random, Table, odd_machines};
use std::cmp::Ordering;

/// Noise of a run.
const NOISE: f64 = 0.03;

/// How much faster a machine is than another for all engines.
const SPEEDS: f64 = 0.20;

/// Machines and blocks.
const CAMPAIGNS: [(usize, usize); 7] = [(2, 10), (3, 9), (4, 12), (4, 20), (10, 10), (10, 20), (10, 50)];

/// Prints and checks all figures about machines.
pub fn check(checks: &mut Checks, small: bool) {
    println!(
        "\nCampaigns of equal engines: a false order in a table, its intervals covering the truth, and +10 % of one engine found"
    );
    println!(
        "{:<18} {:>8} {:>6} {:>24}  {:>24}  {:>24}  {:>24}",
        "engine x machine", "machines", "blocks", "false 2, 5, 15", "if ignored", "covered", "found"
    );
    for interaction in [0.0, 0.02, 0.05, 0.10] {
        for campaign in CAMPAIGNS {
            orders(checks, small, interaction, campaign);
        }
    }
    odd(checks);
}

/// The rates of engines in blocks that the machines measure in turn. The first engine is faster by `gap`.
fn rates(
    engines: usize,
    machines: &[usize],
    (interaction, gap): (f64, f64),
    random: &mut Random,
) -> Vec<Vec<f64>> {
    let count = machines.iter().max().map_or(0, |last| last + 1);
    let mut draws = |spread: f64| (0..count).map(|_| spread * normal(random)).collect::<Vec<f64>>();
    let speeds = draws(SPEEDS);
    let own: Vec<Vec<f64>> = (0..engines).map(|_| draws(interaction)).collect();
    let of_engine = |(engine, own): (usize, &Vec<f64>)| {
        let truth = if engine == 0 { (1.0 + gap).ln() } else { 0.0 };
        let mut rate = |on: usize| (truth + speeds[on] + own[on] + NOISE * normal(random)).exp();
        machines.iter().map(|on| rate(*on)).collect::<Vec<f64>>()
    };
    own.iter().enumerate().map(of_engine).collect()
}

fn orders(checks: &mut Checks, small: bool, interaction: f64, (machines, blocks): (usize, usize)) {
    let on: Vec<usize> = (0..blocks).map(|block| block % machines).collect();
    let (mut wrong, mut ignored, mut covered, mut found) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let experiments = checks.experiments / if small { 1 } else { 2 };
    for engines in [2, 5, 15] {
        let mut random = Random::seeded(SEED + 7);
        let mut counts = [0_usize; 4];
        for _ in 0..experiments {
            let equal = rates(engines, &on, (interaction, 0.0), &mut random);
            let table = table_on(&equal, &on);
            let any = |table: &Table| {
                (0..engines)
                    .any(|first| (first + 1..engines).any(|second| table.order(first, second).is_some()))
            };
            let covers = |first: usize, second: usize| {
                table.interval(first, second).is_none_or(|found| found.low <= 1.0 && 1.0 <= found.high)
            };
            counts[0] += usize::from(any(&table));
            counts[1] += usize::from(any(&table_of(&equal)));
            counts[2] += usize::from(
                (0..engines).all(|first| (first + 1..engines).all(|second| covers(first, second))),
            );
            let ahead = rates(engines, &on, (interaction, 0.10), &mut random);
            let table = table_on(&ahead, &on);
            counts[3] +=
                (1..engines).filter(|other| table.order(0, *other) == Some(Ordering::Greater)).count();
        }
        let share = |count: usize| count as f64 / experiments as f64;
        wrong.push(share(counts[0]));
        ignored.push(share(counts[1]));
        covered.push(share(counts[2]));
        found.push(share(counts[3]) / (engines - 1) as f64);
        let name = format!(
            "engine x machine {interaction}, {machines} machines, {blocks} blocks, {engines} engines"
        );
        // Two engines have as many degrees of freedom as there are machines less one. Their bound is that of independent runs,
        // which is not checked above either.
        if engines > 2 {
            checks.at_most(share(counts[0]), 0.05 + 0.01, &name);
            checks.at_least(share(counts[2]), 0.95 - 0.01, &format!("coverage, {name}"));
        }
    }
    let all =
        |shares: &[f64]| shares.iter().map(|share| format!("{:>8}", percent(*share))).collect::<String>();
    println!(
        "{:<18} {machines:>8} {blocks:>6} {:>24}  {:>24}  {:>24}  {:>24}",
        percent(interaction),
        all(&wrong),
        all(&ignored),
        all(&covered),
        all(&found)
    );
}

/// How often equal machines are called odd, and how often a machine that is 20 % slower is found, and no other.
fn odd(checks: &mut Checks) {
    println!("\nMachines compared by a reference: called odd by chance, and one that is 20 % slower found");
    for (machines, blocks) in [(3, 3), (4, 5), (10, 2), (10, 10), (50, 4)] {
        for noise in [0.01, NOISE, 0.10] {
            let mut random = Random::seeded(SEED + 8);
            let (mut called, mut found) = (0, 0);
            for _ in 0..checks.experiments {
                let mut all: Vec<Vec<f64>> = (0..machines)
                    .map(|_| (0..blocks).map(|_| (noise * normal(&mut random)).exp()).collect())
                    .collect();
                called += usize::from(odd_machines(&all).contains(&true));
                all[0].iter_mut().for_each(|rate| *rate *= 0.8);
                let odd = odd_machines(&all);
                found += usize::from(odd[0] && !odd[1..].contains(&true));
            }
            let experiments = checks.experiments as f64;
            let share = |count: usize| count as f64 / experiments;
            println!(
                "{machines:>3} machines, {blocks:>2} blocks each, noise of {:>4}: {:>6} {:>6}",
                format!("{:.0} %", noise * 100.0),
                percent(share(called)),
                percent(share(found))
            );
            let name = format!("odd machines, {machines} machines, {blocks} blocks, noise {noise}");
            checks.at_most(share(called), 0.05, &name);
            if noise <= NOISE && blocks >= 3 {
                checks.at_least(share(found), 0.90, &format!("found, {name}"));
            }
        }
    }
}
