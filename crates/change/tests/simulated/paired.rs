//! Goal: verdicts of paired comparisons are false at most as often as they say, and find a difference of 3 % in ten minutes.

use kvdyno_change::paired::{Finding, Options, Paired, Step, Verdict};

use crate::machine::{CONDITIONS, Conditions, Machine, normal};
use crate::random::Random;
use crate::rivals::RULES;
use crate::{parallel, setting};

/// The budget of a comparison.
const BUDGET_SECONDS: f64 = 600.0;

/// What a comparison found, and how long it took.
pub struct Experiment {
    pub findings: Vec<Finding>,
    seconds: f64,
}

impl Experiment {
    /// Runs arms whose rates are `exp(log_rates)` until the comparison is done or the budget is spent. With `MIRRORED=1` in the
    /// environment, blocks are mirrored.
    pub fn run(
        conditions: Conditions,
        noise: f64,
        log_rates: &[f64],
        metrics: usize,
        seed: u64,
    ) -> Experiment {
        let machine = Machine::new(conditions, noise, BUDGET_SECONDS, seed);
        let mirrored = setting("MIRRORED", 0) == 1;
        Experiment::on(machine, log_rates, metrics, Options { seed, mirrored, ..Options::default() })
    }

    fn on(mut machine: Machine, log_rates: &[f64], metrics: usize, options: Options) -> Experiment {
        let mut paired = Paired::new(log_rates.len(), metrics, options).expect("valid");
        while let Step::Block(order) = paired.next().clone() {
            if machine.now > BUDGET_SECONDS {
                paired.end();
                break;
            }
            let trials = order.iter().map(|arm| machine.trial(log_rates[*arm], metrics));
            let trials: Vec<Vec<Option<f64>>> =
                trials.map(|values| values.into_iter().map(Some).collect()).collect();
            paired.observe(&trials).expect("it asked");
        }
        Experiment { findings: paired.findings(), seconds: machine.now }
    }

    fn any(&self, is: impl Fn(&Finding) -> bool) -> bool {
        self.findings.iter().any(is)
    }

    fn has(&self, verdict: Verdict) -> bool {
        self.any(|finding| finding.verdict == verdict)
    }

    /// Whether any interval misses the ratio.
    fn misses(&self, difference: f64) -> bool {
        let ratio = difference.exp();
        self.any(|finding| {
            finding.interval.is_some_and(|interval| !(interval.low..=interval.high).contains(&ratio))
        })
    }
}

fn experiments(
    conditions: Conditions,
    noise: f64,
    difference: f64,
    metrics: usize,
    count: u64,
) -> Vec<Experiment> {
    // Each table has seeds of its own.
    let first = (difference.abs() * 1e9) as u64 + (noise * 1e6) as u64 + metrics as u64 * 1_000_003;
    parallel(count, |index| {
        Experiment::run(conditions, noise, &[0.0, difference], metrics, first * 10_000 + index)
    })
}

fn share(all: &[Experiment], is: impl Fn(&Experiment) -> bool) -> f64 {
    100.0 * all.iter().filter(|experiment| is(experiment)).count() as f64 / all.len() as f64
}

fn median_seconds(all: &[Experiment]) -> f64 {
    let mut seconds: Vec<f64> = all.iter().map(|experiment| experiment.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn is_false(experiment: &Experiment) -> bool {
    experiment.has(Verdict::Higher) || experiment.has(Verdict::Lower)
}

/// The numbers are exact, because seeds determine them. With an error of 1 %, more than 5 of 150 has a probability below 1 in 500.
#[test]
fn equal_arms_are_not_called_different() {
    for (name, conditions) in CONDITIONS {
        let all = experiments(conditions, 0.03, 0.0, 3, 150);
        let false_ones = all.iter().filter(|experiment| is_false(experiment)).count();
        let missed = all.iter().filter(|experiment| experiment.misses(0.0)).count();
        println!("{name}: {false_ones} of 150 false, {missed} intervals miss");
        assert!(false_ones <= 3 && missed <= 3, "{name}: {false_ones} {missed}");
    }
}

#[test]
fn a_slowdown_of_3_per_cent_is_found_in_ten_minutes() {
    for (name, conditions) in CONDITIONS {
        let all = experiments(conditions, 0.03, -0.03, 1, 100);
        let found = share(&all, |experiment| experiment.has(Verdict::Lower));
        println!("{name}: {found:.0} % found, median {:.0} s", median_seconds(&all));
        assert!(found >= 90.0, "{name}: {found}");
        assert!(!all.iter().any(|experiment| experiment.has(Verdict::Higher)), "{name}");
    }
}

#[test]
fn equal_arms_on_a_quiet_machine_are_the_same() {
    let (_, quiet) = CONDITIONS[0];
    let all = experiments(quiet, 0.02, 0.0, 1, 100);
    assert!(share(&all, |experiment| experiment.has(Verdict::Same)) >= 95.0);
    // A difference outside of the margin is never the same.
    let all = experiments(quiet, 0.02, 0.0205, 1, 100);
    assert!(share(&all, |experiment| experiment.has(Verdict::Same)) <= 1.0);
}

#[test]
fn several_equal_arms_are_not_called_different() {
    let (_, all_together) = CONDITIONS[5];
    let all = parallel(150, |seed| Experiment::run(all_together, 0.03, &[0.0; 4], 1, seed));
    let false_ones = all.iter().filter(|experiment| is_false(experiment)).count();
    assert!(false_ones <= 3, "{false_ones} of 150 false");
    // One slower arm of four is found, and no other.
    let all = parallel(60, |seed| Experiment::run(all_together, 0.03, &[0.0, 0.0, -0.05, 0.0], 1, seed));
    let is_found = |experiment: &&Experiment| experiment.findings[1].verdict == Verdict::Lower;
    let is_other = |experiment: &&Experiment| {
        [0, 2].iter().any(|at| ![Verdict::Same, Verdict::Unknown].contains(&experiment.findings[*at].verdict))
    };
    let (found, other) = (all.iter().filter(is_found).count(), all.iter().filter(is_other).count());
    assert!(found >= 57 && other <= 1, "{found} found, {other} others");
}

/// A load that is in step with the blocks slows the second trial of each, or the second and third. Were every block AB or ABBA, B
/// would be slower.
#[test]
fn a_load_in_step_with_the_blocks_is_no_difference() {
    for mirrored in [false, true] {
        let mut false_ones = 0;
        for seed in 0..200 {
            let mut random = Random::new(seed, 8);
            let options = Options { seed, mirrored, most_blocks: 100, ..Options::default() };
            let mut paired = Paired::new(2, 1, options).expect("valid");
            while let Step::Block(order) = paired.next().clone() {
                let loads = [0.0, 0.1, 0.1, 0.0].iter().take(order.len());
                let trials: Vec<_> =
                    loads.map(|load| vec![Some((0.01 * normal(&mut random) - load).exp())]).collect();
                paired.observe(&trials).expect("it asked");
            }
            let verdict = paired.findings()[0].verdict;
            false_ones += usize::from(![Verdict::Same, Verdict::Unknown].contains(&verdict));
        }
        assert!(false_ones <= 4, "{false_ones} of 200 false");
    }
}

/// Drawn pairs find a difference in less time than ABBA.
#[test]
fn pairs_find_more_than_mirrored_blocks() {
    let (_, all_together) = CONDITIONS[5];
    let median = |mirrored: bool| {
        let all = parallel(100, |seed| {
            let machine = Machine::new(all_together, 0.03, BUDGET_SECONDS, seed);
            Experiment::on(machine, &[0.0, -0.03], 1, Options { seed, mirrored, ..Options::default() })
        });
        median_seconds(&all)
    };
    let (pairs, mirrored) = (median(false), median(true));
    println!("median {pairs:.0} s, mirrored {mirrored:.0} s");
    assert!(pairs < 0.9 * mirrored, "{pairs} s, mirrored {mirrored} s");
}

/// The rules of others are wrong where this one is not: the simulated machines are as bad as they are meant to be.
#[test]
fn the_rules_of_others_call_equal_arms_different() {
    let (_, wander) = CONDITIONS[2];
    for ((name, rule), least) in RULES.into_iter().zip([30, 20, 5]) {
        let wrong =
            parallel(100, |seed| rule(&mut Machine::new(wander, 0.03, BUDGET_SECONDS, seed), 0.0) != 0);
        let wrong = wrong.into_iter().filter(|wrong| *wrong).count();
        println!("{name}: {wrong} of 100");
        assert!(wrong >= least, "{name}: {wrong} of 100");
    }
}

/// `COUNT` is the number of experiments of each row, `TRIAL_SECONDS` the length of trials, and `MIRRORED=1` mirrors blocks.
#[test]
#[ignore = "minutes: prints error rates and power"]
fn paired_table() {
    let count = setting("COUNT", 2_000);
    println!("{count} experiments per row, 10 minutes at most, 0.5 s beside each trial\n");
    println!(
        "| machine | noise of a trial | metrics | false verdicts | any interval misses | same | median s |"
    );
    println!("|---|---|---|---|---|---|---|");
    let (mut wrong, mut all_count) = (0.0, 0.0);
    for (name, conditions) in CONDITIONS {
        for (noise, metrics) in [(0.02, 1), (0.04, 1), (0.03, 12)] {
            let all = experiments(conditions, noise, 0.0, metrics, count);
            let false_ones = share(&all, is_false);
            wrong += false_ones;
            all_count += 1.0;
            println!(
                "| {name} | {:.0} % | {metrics} | {false_ones:.2} % | {:.2} % | {:.1} % | {:.0} |",
                100.0 * noise,
                share(&all, |experiment| experiment.misses(0.0)),
                share(&all, |experiment| experiment.findings.iter().all(|f| f.verdict == Verdict::Same)),
                median_seconds(&all),
            );
        }
    }
    println!("\nall rows: {:.3} % false verdicts\n", wrong / all_count);
    println!(
        "| machine | noise of a trial | metrics | 3 % slower: found | called faster | interval misses | median s |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, conditions) in CONDITIONS {
        for (noise, metrics) in [(0.02, 1), (0.04, 1), (0.03, 12)] {
            let all = experiments(conditions, noise, -0.03, metrics, count / 2);
            // With several metrics, the first one.
            println!(
                "| {name} | {:.0} % | {metrics} | {:.1} % | {:.2} % | {:.2} % | {:.0} |",
                100.0 * noise,
                share(&all, |experiment| experiment.findings[0].verdict == Verdict::Lower),
                share(&all, |experiment| experiment.has(Verdict::Higher)),
                share(&all, |experiment| experiment.misses(-0.03)),
                median_seconds(&all),
            );
        }
    }
}

/// `COUNT` is the number of experiments of each row.
#[test]
#[ignore = "minutes: prints error rates and power of the rules of others"]
fn rivals_table() {
    let count = setting("COUNT", 2_000);
    println!(
        "| rule | machine (noise 3 %) | equal arms called different | 3 % slower: found | called faster |"
    );
    println!("|---|---|---|---|---|");
    for (name, rule) in RULES {
        for (machine, conditions) in CONDITIONS {
            let run = |difference: f64| {
                parallel(count, |seed| {
                    rule(&mut Machine::new(conditions, 0.03, BUDGET_SECONDS, seed), difference)
                })
            };
            let share = |verdicts: &[i32], wanted: &[i32]| {
                let count = verdicts.iter().filter(|verdict| wanted.contains(verdict)).count();
                100.0 * count as f64 / verdicts.len() as f64
            };
            let (equal, slower) = (run(0.0), run(-0.03));
            println!(
                "| {name} | {machine} | {:.1} % | {:.1} % | {:.1} % |",
                share(&equal, &[-1, 1]),
                share(&slower, &[-1]),
                share(&slower, &[1]),
            );
        }
    }
}

/// The blocks until a confidence sequence of a normal mixture (Robbins, Statistical methods related to the law of the iterated
/// logarithm, 1970) finds the difference; it is looked at after every block. It is given that the noise is normal, and its size, which is 1.
fn confidence_sequence(differences: &[f64], alpha: f64) -> Option<usize> {
    // The number of blocks for which it is made.
    const MADE_FOR: f64 = 10.0;
    let mut sum = 0.0;
    differences.iter().enumerate().position(|(index, difference)| {
        sum += difference;
        let n = (index + 1) as f64;
        let bound = (n + MADE_FOR) * (-2.0 * alpha.ln() + ((n + MADE_FOR) / MADE_FOR).ln());
        sum * sum > bound
    })
}

/// Fixed looks against a verdict that may be read at any time, with normal noise, and 100 blocks at most.
#[test]
#[ignore = "minutes: prints a table"]
fn anytime_table() {
    let count = setting("COUNT", 2_000);
    println!(
        "| comparisons | difference / noise | fixed looks: found | mean blocks | confidence sequence: found | mean blocks |"
    );
    println!("|---|---|---|---|---|---|");
    for (metrics, difference) in [(1, 0.35), (1, 0.45), (1, 0.6), (12, 0.35), (12, 0.45), (12, 0.6)] {
        let runs = parallel(count, |seed| {
            let mut random = Random::new(seed, 9);
            let differences: Vec<f64> = (0..100).map(|_| difference + normal(&mut random)).collect();
            let options = Options { seed, most_blocks: 100, until: 1e-9, margin: 1e-9, ..Options::default() };
            let mut paired = Paired::new(2, metrics, options).expect("valid");
            let mut found = None;
            for (block, difference) in differences.iter().enumerate() {
                let Step::Block(order) = paired.next().clone() else { break };
                // One metric has the difference; the others stay open.
                let value = |arm: usize, metric: usize| {
                    if metric == 0 { (arm as f64 * difference).exp() } else { 1.0 }
                };
                let trials: Vec<Vec<Option<f64>>> = order
                    .iter()
                    .map(|arm| (0..metrics).map(|metric| Some(value(*arm, metric))).collect())
                    .collect();
                paired.observe(&trials).expect("it asked");
                if found.is_none() && paired.findings()[0].verdict == Verdict::Higher {
                    found = Some(block);
                }
            }
            let alpha = Options::default().alpha / metrics as f64;
            [found, confidence_sequence(&differences, alpha)]
        });
        let cell = |rule: usize| {
            let found = runs.iter().filter(|run| run[rule].is_some()).count();
            let blocks: usize = runs.iter().map(|run| run[rule].map_or(100, |block| block + 1)).sum();
            format!(
                "{:.0} % | {:.0}",
                100.0 * found as f64 / runs.len() as f64,
                blocks as f64 / runs.len() as f64
            )
        };
        println!("| {metrics} | {difference} | {} | {} |", cell(0), cell(1));
    }
}
