//! Tests of what a comparison counts as, of its statistics, and of the words of answers.

use super::*;
use crate::cli::Cli;
use clap::Parser;
use kvdyno_change::paired::{Interval, Paired, Verdict};

fn args(flags: &str) -> BisectArgs {
    let words = format!("kvdyno bisect small --versions v {flags}");
    let parsed = Cli::try_parse_from(words.split_whitespace()).unwrap();
    let Some(crate::cli::Command::Bisect(args)) = parsed.command else { panic!("it is `bisect`") };
    *args
}

fn finding(low: f64, high: f64) -> Finding {
    let verdict = match (low, high) {
        _ if low > 1.0 => Verdict::Higher,
        _ if high < 1.0 => Verdict::Lower,
        _ => Verdict::Unknown,
    };
    let interval = Some(Interval { low, high });
    let ratio = Some((low * high).sqrt());
    Finding { metric: 0, arm: 1, blocks: 14, missing: 0, ratio, interval, verdict, is_open: false }
}

#[test]
fn a_change_is_bad_if_it_is_shown_and_may_be_as_great_as_the_smallest() {
    let rate = |low, high| outcome(Figure::Rate, 0.03, &finding(low, high));
    assert_eq!(rate(0.90, 0.95), Outcome::Bad);
    assert_eq!(rate(0.96, 0.999), Outcome::Bad);
    // A change that is certain and certainly too small is none.
    assert_eq!(rate(0.98, 0.99), Outcome::Good);
    assert_eq!(rate(0.98, 1.10), Outcome::Good);
    assert_eq!(rate(1.10, 1.20), Outcome::Good);
    assert_eq!(rate(0.96, 1.01), Outcome::Unsure);
    let size = |low, high| outcome(Figure::Size, 0.03, &finding(low, high));
    assert_eq!(size(1.01, 1.05), Outcome::Bad);
    assert_eq!(size(0.90, 0.95), Outcome::Good);
    assert_eq!(size(1.01, 1.02), Outcome::Good);
    assert_eq!(size(0.99, 1.05), Outcome::Unsure);
    let unknown = Finding { interval: None, ..finding(0.9, 0.95) };
    assert_eq!(outcome(Figure::Rate, 0.03, &unknown), Outcome::Unsure);
}

/// Whatever the figure and the smallest change, a comparison that ends by itself is sure.
#[test]
fn a_comparison_that_ends_before_its_time_is_good_or_bad() {
    for (worse, smallest) in [("rate", 0.03), ("p99", 0.03), ("size", 0.01), ("rate", 0.5), ("p99", 0.5)] {
        for ratio in [1.0, 1.0 - smallest / 2.0, 1.0 + smallest / 2.0, 1.0 - 2.0 * smallest / 3.0] {
            let args = args(&format!("--worse {worse} --smallest {smallest}"));
            let mut paired = Paired::new(2, 1, options(&args, 1)).unwrap();
            let mut blocks = 0_u64;
            while let kvdyno_change::paired::Step::Block(order) = paired.next().clone() {
                // Noise of 4 %, from a counter.
                let noise =
                    |trial: u64| 1.0 + 0.04 * (((blocks * 2 + trial) * 7_919 % 101) as f64 / 101.0 - 0.5);
                let value = |(trial, arm): (usize, &usize)| {
                    vec![Some(noise(trial as u64) * if *arm == 1 { ratio } else { 1.0 })]
                };
                let block: Vec<Vec<Option<f64>>> = order.iter().enumerate().map(value).collect();
                paired.observe(&block).unwrap();
                blocks += 1;
            }
            let found = paired.findings().remove(0);
            assert!(!found.is_open, "{worse} {smallest} {ratio}: {found:?}");
            let outcome = outcome(args.worse, args.smallest, &found);
            assert_ne!(outcome, Outcome::Unsure, "{worse} {smallest} {ratio}: {found:?}");
        }
    }
}

fn versions(names: &[&str]) -> Vec<Version> {
    names.iter().map(|name| Version { name: (*name).to_string(), given: None }).collect()
}

#[test]
fn answers_name_versions_that_were_skipped() {
    let (args, all) = (args(""), versions(&["1", "2", "3", "4", "5"]));
    let step =
        Compared { base: 1, version: 4, finding: finding(0.93, 0.95), outcome: Outcome::Bad, seconds: 9.0 };
    let first = Answer::First { version: 2, error: 0.004, is_confirmed: true };
    let text = words::answer(&args, &all, &[0, 1, 4], &[step], first);
    assert_eq!(
        text.replace('\n', " "),
        "the first version that is slower is 5, or one of 3 to 4 before it, which were skipped (0.94 of 2; probability that \
         this is wrong: 0.4 %) skipped: 3, 4"
    );
    let range = Answer::Range { first: 2, last: 3, error: 0.000_01 };
    let text = words::answer(&args, &all, &[0, 1, 3, 4], &[], range);
    assert!(text.contains("is one of 3 to 5; ") && text.contains("under 0.01 %"), "{text}");
    let unconfirmed = Answer::First { version: 1, error: 0.004, is_confirmed: false };
    let text = words::answer(&args, &all, &[0, 1, 2, 3, 4], &[], unconfirmed);
    assert!(text.contains("slower is 2 (not shown to be slower than 1 itself; "), "{text}");
    let text = words::answer(&args, &all, &[0, 1, 2, 3], &[], Answer::NoneBad { error: 0.002 });
    assert!(text.starts_with("no version is slower: 4 is not slower than 1 by 3 % or more"), "{text}");
}

#[test]
fn an_unsure_comparison_says_how_long_it_may_take() {
    let (args, all) = (args(""), versions(&["1", "2"]));
    let line = |low, high, seconds| {
        let (finding, outcome) = (finding(low, high), Outcome::Unsure);
        words::step(&args, &all, &Compared { base: 0, version: 1, finding, outcome, seconds })
    };
    // Half of the interval is nearly twice the 2 % by which it is slower, so it takes nearly four times as long.
    let text = line(0.98_f64 / 1.04, 0.98 * 1.04, 600.0);
    assert!(text.contains("unsure, it may need about 38 minutes (14 blocks in 600 s)"), "{text}");
    let text = line(0.80, 1.01, 30.0);
    assert!(text.contains(", it may need about 1 minute ("), "{text}");
}
