//! Goal: bisection names the bad version of a history, and is wrong as often as it says.

use std::collections::BTreeMap;

use kvdyno_change::bisect::{Answer, Bisect, Compare, Outcome, Step};
use kvdyno_change::paired::{Options, Verdict};

use crate::machine::CONDITIONS;
use crate::paired::Experiment;
use crate::random::Random;
use crate::{parallel, setting};

/// A whole number from 0, below `end`.
fn below(random: &mut Random, end: usize) -> usize {
    ((random.unit() * end as f64) as usize).min(end - 1)
}

/// A history of versions: how much slower each is than the first, and comparisons that see it with noise.
struct History {
    /// Per cent.
    slower: Vec<f64>,
    /// The probability that an outcome that is not unsure is wrong.
    error: f64,
    /// The probability that a comparison is unsure.
    unsure: f64,
    random: Random,
}

impl History {
    fn new(slower: Vec<f64>, seed: u64) -> History {
        History { slower, error: 0.01, unsure: 0.1, random: Random::new(seed, 0) }
    }

    /// Steps of per cent, each from its version on.
    fn steps(versions: usize, steps: &[(usize, f64)], seed: u64) -> History {
        let at =
            |version: usize| steps.iter().filter(|(from, _)| *from <= version).map(|(_, step)| step).sum();
        History::new((0..versions).map(at).collect(), seed)
    }

    /// Differences below 1 % are equal; from 1 to 2 % no comparison is sure.
    fn compare(&mut self, compare: Compare) -> Outcome {
        let slower = self.slower[compare.version] - self.slower[compare.base];
        if (1.0..2.0).contains(&slower) || self.random.unit() < self.unsure {
            return Outcome::Unsure;
        }
        if (slower >= 2.0) != (self.random.unit() < self.error) { Outcome::Bad } else { Outcome::Good }
    }

    fn search(&mut self, wanted: f64) -> (Answer, usize) {
        let mut bisect = Bisect::new(self.slower.len(), wanted).expect("valid");
        while let Step::Compare(compare) = *bisect.next() {
            let outcome = self.compare(compare);
            bisect.observe(outcome, self.error).expect("it asked");
        }
        let Step::Done(answer) = *bisect.next() else { unreachable!("the loop has ended") };
        (answer, bisect.log().len())
    }
}

fn named(answer: Answer) -> Option<usize> {
    match answer {
        Answer::First { version, .. } => Some(version),
        _ => None,
    }
}

/// The goal: of 100 histories of 20 versions with one step of 3 to 10 %, the right one is named in at least 95.
#[test]
fn names_the_planted_version_of_twenty() {
    let mut right = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed, 1);
        let (bad, step) = (1 + below(&mut random, 19), random.between(3.0, 10.0));
        let (answer, _) = History::steps(20, &[(bad, step)], seed).search(0.01);
        right += usize::from(named(answer) == Some(bad));
    }
    println!("seeds 0 to 99: {right} of 100");
    assert!(right >= 95, "{right} of 100");
}

/// Half of the histories have no bad version, as the search expects. Comparisons are as bad as one wrong in five, or half of them
/// unsure. Answers are wrong as often as they say.
#[test]
fn the_stated_error_holds() {
    const COUNT: u64 = 4_000;
    println!(
        "| comparison wrong | unsure | wanted error | version named | wrong | stated | none bad | wrong | stated | range | wrong | stated | comparisons |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (error, unsure, wanted) in [
        (0.01, 0.1, 0.05),
        (0.01, 0.1, 0.01),
        (0.05, 0.1, 0.05),
        (0.1, 0.3, 0.05),
        (0.1, 0.5, 0.1),
        (0.2, 0.2, 0.1),
    ] {
        let mut comparisons = 0;
        // Named ones, none and ranges: how many, wrong ones, stated errors.
        let mut scores = [(0_usize, 0_usize, 0.0); 3];
        for seed in 0..COUNT {
            let mut random = Random::new(seed, 1);
            let bad = (random.unit() < 0.5).then(|| 1 + below(&mut random, 19));
            let mut history = History::steps(20, bad.map(|bad| (bad, 5.0)).as_slice(), seed);
            (history.error, history.unsure) = (error, unsure);
            let (answer, asked) = history.search(wanted);
            comparisons += asked;
            let (kind, right, stated) = match answer {
                Answer::First { version, error, .. } => (0, bad == Some(version), error),
                Answer::NoneBad { error } => (1, bad.is_none(), error),
                Answer::Range { first, last, error } => {
                    (2, bad.is_some_and(|bad| (first..=last).contains(&bad)), error)
                }
                Answer::Unclear => continue,
            };
            assert!(kind == 2 || stated <= wanted, "{answer:?}");
            scores[kind].0 += 1;
            scores[kind].1 += usize::from(!right);
            scores[kind].2 += stated;
        }
        let cells = scores.map(|(count, wrong, stated)| {
            let percent = |part: f64, all: f64| 100.0 * part / all.max(1.0);
            let share = percent(count as f64, COUNT as f64);
            let (wrong, stated) = (percent(wrong as f64, count as f64), percent(stated, count as f64));
            format!("{share:.1} % | {wrong:.2} % | {stated:.2} %")
        });
        println!(
            "| {:.0} % | {:.0} % | {:.0} % | {} | {:.1} |",
            100.0 * error,
            100.0 * unsure,
            100.0 * wanted,
            cells.join(" | "),
            comparisons as f64 / COUNT as f64,
        );
        for (count, wrong, stated) in scores {
            // Four standard deviations of a count.
            let off = (wrong as f64 - stated).abs();
            assert!(off <= 4.0 * stated.sqrt() + 2.0, "{count}: {wrong} wrong, {stated} stated");
        }
        let least = if unsure > 0.1 { 0.75 } else { 0.99 };
        assert!((scores[0].0 + scores[1].0) as f64 >= least * COUNT as f64, "{scores:?}");
    }
}

#[test]
fn says_that_no_version_is_bad() {
    let answers: Vec<Answer> = (0..500).map(|seed| History::steps(20, &[], seed).search(0.01).0).collect();
    let none = answers.iter().filter(|answer| matches!(answer, Answer::NoneBad { .. })).count();
    let false_ones = answers.iter().filter(|answer| named(**answer).is_some()).count();
    println!("seeds 0 to 499: {none} of 500 without a bad version, {false_ones} false ones");
    assert!(none >= 490 && false_ones <= 5, "{none} {false_ones}");
}

#[test]
fn two_bad_steps_give_the_first() {
    let right = (0..200).filter(|seed| {
        let (answer, _) = History::steps(20, &[(6, 4.0), (13, 5.0)], *seed).search(0.01);
        named(answer) == Some(6)
    });
    let right = right.count();
    assert!(right >= 195, "{right} of 200");
}

/// A step of 1.5 % is not visible alone, and no comparison denies it: the step that is visible is named, or a range that has it.
#[test]
fn a_step_too_small_to_see_gives_the_visible_one() {
    let mut counts = BTreeMap::new();
    for seed in 0..200 {
        let (answer, _) = History::steps(20, &[(6, 1.5), (13, 5.0)], seed).search(0.01);
        let kind = match answer {
            Answer::First { version: 13, .. } => "13",
            Answer::Range { first: ..=13, last: 13.., .. } => "a range with 13",
            _ => "other",
        };
        *counts.entry(kind).or_insert(0) += 1;
    }
    assert!(counts.get("other").is_none_or(|other| *other <= 6), "{counts:?}");
    assert!(counts.get("13").is_some_and(|right| *right >= 150), "{counts:?}");
}

#[test]
fn a_change_that_was_fixed_again_is_not_found() {
    let none = (0..200).filter(|seed| {
        let (answer, _) = History::steps(20, &[(6, 5.0), (12, -5.0)], *seed).search(0.01);
        matches!(answer, Answer::NoneBad { .. })
    });
    assert!(none.count() >= 195);
}

#[test]
fn a_change_that_came_back_gives_one_of_its_steps() {
    let found = (0..200).filter(|seed| {
        let (answer, _) = History::steps(20, &[(3, 5.0), (7, -5.0), (12, 5.0)], *seed).search(0.01);
        [Some(3), Some(12)].contains(&named(answer))
    });
    let found = found.count();
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn many_small_steps_rarely_give_a_version() {
    let mut confirmed = 0;
    for seed in 0..200 {
        let slower = (0..20).map(|version| 0.4 * version as f64).collect();
        let mut history = History::new(slower, seed);
        let (answer, asked) = history.search(0.01);
        assert!(asked <= 50, "{asked}");
        confirmed += usize::from(matches!(answer, Answer::First { is_confirmed: true, .. }));
    }
    // Several candidates are compared with the version before them, and each of these comparisons is wrong in 1 %.
    assert!(confirmed <= 20, "{confirmed} of 200");
}

#[test]
fn answers_without_unsure_comparisons_are_confirmed() {
    for seed in 0..100 {
        let mut history = History::steps(20, &[(9, 5.0)], seed);
        history.unsure = 0.0;
        let (answer, _) = history.search(0.05);
        assert!(matches!(answer, Answer::First { is_confirmed: true, .. }), "seed {seed}: {answer:?}");
    }
}

/// Histories of 20 versions with one step of 3 to 10 %, whose comparisons are paired ones of ten minutes on a machine with all that
/// disturbs trials. Returns how many versions were named, and how many of these are right.
fn on_machines(count: u64) -> (usize, usize) {
    let (_, conditions) = CONDITIONS[5];
    let answers = parallel(count, |seed| {
        let mut random = Random::new(seed, 10);
        let (bad, step) = (1 + below(&mut random, 19), random.between(0.03, 0.1));
        let mut bisect = Bisect::new(20, 0.01).expect("valid");
        while let Step::Compare(compare) = *bisect.next() {
            let log_rate = |version: usize| if version >= bad { -step } else { 0.0 };
            let log_rates = [log_rate(compare.base), log_rate(compare.version)];
            let seed = seed * 1_000 + bisect.log().len() as u64;
            let experiment = Experiment::run(conditions, 0.03, &log_rates, 1, seed);
            let finding = experiment.findings[0];
            let outcome = match (finding.verdict, finding.interval) {
                // The steps that are searched are of 3 % or more.
                (_, Some(interval)) if interval.low > 0.97 => Outcome::Good,
                (Verdict::Lower, _) => Outcome::Bad,
                _ => Outcome::Unsure,
            };
            bisect.observe(outcome, Options::default().alpha).expect("it asked");
        }
        let Step::Done(answer) = *bisect.next() else { unreachable!("the loop has ended") };
        (named(answer), bad)
    });
    let named = answers.iter().filter(|(named, _)| named.is_some()).count();
    (named, answers.iter().filter(|(named, bad)| *named == Some(*bad)).count())
}

#[test]
fn names_the_planted_version_by_paired_comparisons() {
    let (named, right) = on_machines(20);
    println!("seeds 0 to 19: {right} of {named} named ones are right");
    assert!(right >= 19, "{right} of {named}");
}

#[test]
#[ignore = "a minute: prints a line"]
fn bisect_on_machines() {
    let count = setting("COUNT", 2_000) / 10;
    let (named, right) = on_machines(count);
    println!("{count} histories: {named} named, {right} right");
}
