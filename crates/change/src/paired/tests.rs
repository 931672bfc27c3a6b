//! Goal: blocks, looks and verdicts are what they are said to be.

use super::*;

/// A comparison of two arms by one metric.
fn two(options: Options) -> Paired {
    Paired::new(2, 1, options).expect("valid")
}

/// Runs blocks in which an arm's value is what `value` says of arm and place, `count` of them at most.
fn run(paired: &mut Paired, count: usize, value: impl Fn(usize, usize) -> f64) {
    for _ in 0..count {
        let Step::Block(order) = paired.next().clone() else { return };
        let trials: Vec<_> =
            order.iter().enumerate().map(|(place, arm)| vec![Some(value(*arm, place))]).collect();
        paired.observe(&trials).expect("it asked");
    }
}

#[test]
fn blocks_are_in_random_order_and_mirrored_ones_are_palindromes() {
    for arms in 2..5 {
        let mut firsts = vec![0; arms];
        for block in 0..600 {
            let order = order::order(arms, true, 7, block);
            assert_eq!(order.len(), 2 * arms);
            assert_eq!(order::order(arms, false, 7, block), order[..arms]);
            let backwards: Vec<usize> = order.iter().rev().copied().collect();
            assert_eq!(order, backwards);
            let mut half = order[..arms].to_vec();
            half.sort_unstable();
            assert_eq!(half, (0..arms).collect::<Vec<_>>());
            firsts[order[0]] += 1;
        }
        // Five standard deviations.
        let expected = 600.0 / arms as f64;
        assert!(
            firsts.iter().all(|count| (f64::from(*count) - expected).abs() < 5.0 * expected.sqrt()),
            "{firsts:?}"
        );
    }
    assert_eq!(order::order(3, true, 7, 5), order::order(3, true, 7, 5));
    let of_seed = |seed| (0..64).map(|block| order::order(2, false, seed, block)).collect::<Vec<_>>();
    assert_ne!(of_seed(1), of_seed(2));
}

#[test]
fn a_constant_drift_within_mirrored_blocks_cancels() {
    let mut paired = two(Options { mirrored: true, ..Options::default() });
    // 5 % from place to place, and no difference between arms.
    run(&mut paired, 100, |_, place| (0.05 * place as f64).exp());
    assert_eq!(*paired.next(), Step::Done);
    let finding = paired.findings()[0];
    assert_eq!(finding.verdict, Verdict::Same);
    assert!((finding.ratio.expect("it has blocks") - 1.0).abs() < 1e-12);
}

#[test]
fn a_clear_difference_ends_at_the_first_look() {
    for (factor, verdict) in [(1.5, Verdict::Higher), (0.5, Verdict::Lower)] {
        let mut paired = two(Options::default());
        run(&mut paired, 100, |arm, place| if arm == 1 { factor } else { 1.0 } + 1e-3 * place as f64);
        let finding = paired.findings()[0];
        assert_eq!((finding.verdict, finding.is_open), (verdict, false));
        // 2^(1-14) is the first below 0.5 % times one half over 16 looks.
        assert_eq!((finding.blocks, paired.blocks()), (14, 14));
        assert!((finding.ratio.expect("it has blocks") / factor - 1.0).abs() < 0.01);
    }
}

#[test]
fn a_block_with_a_failed_trial_does_not_count_for_its_metric_and_arm() {
    let mut paired = Paired::new(3, 2, Options::default()).expect("valid");
    let Step::Block(order) = paired.next().clone() else { panic!("it has begun") };
    let mut trials = vec![vec![Some(2.0), Some(3.0)]; order.len()];
    let place = order.iter().position(|arm| *arm == 2).expect("each arm has a place");
    trials[place][1] = None;
    paired.observe(&trials).expect("it asked");
    let counts: Vec<_> = paired.findings().iter().map(|f| (f.metric, f.arm, f.blocks, f.missing)).collect();
    assert_eq!(counts, [(0, 1, 1, 0), (0, 2, 1, 0), (1, 1, 1, 0), (1, 2, 0, 1)]);
    assert_eq!(paired.findings()[3].ratio, None);
}

#[test]
fn a_failed_trial_of_the_first_arm_counts_for_no_arm() {
    let mut paired = Paired::new(3, 1, Options::default()).expect("valid");
    let Step::Block(order) = paired.next().clone() else { panic!("it has begun") };
    let trials: Vec<_> = order.iter().map(|arm| vec![(*arm != 0).then_some(1.0)]).collect();
    paired.observe(&trials).expect("it asked");
    assert!(paired.findings().iter().all(|finding| (finding.blocks, finding.missing) == (0, 1)));
}

#[test]
fn an_early_end_says_that_nothing_is_known() {
    let mut paired = two(Options::default());
    run(&mut paired, 3, |arm, _| if arm == 1 { 2.0 } else { 1.0 });
    paired.end();
    assert_eq!(*paired.next(), Step::Done);
    let finding = paired.findings()[0];
    assert_eq!((finding.verdict, finding.interval, finding.is_open), (Verdict::Unknown, None, true));
    assert!((finding.ratio.expect("it has blocks") - 2.0).abs() < 1e-12);
    assert_eq!(paired.observe(&[]), Err(ObserveError::Ended));
}

/// Nine equal signs have 2^-8, which is within the 0.5 % that a last look has, and not within the errors of others.
#[test]
fn the_last_look_has_the_error_that_is_left() {
    let noisy = |arm: usize, place: usize| (0.03 * arm as f64 + 0.001 * (place * place) as f64).exp();
    let mut paired = two(Options::default());
    run(&mut paired, 9, noisy);
    assert_eq!(paired.findings()[0].interval, None);
    paired.end();
    assert_eq!(paired.findings()[0].verdict, Verdict::Higher);
    let mut paired = two(Options { most_blocks: 9, ..Options::default() });
    run(&mut paired, 9, noisy);
    assert_eq!(*paired.next(), Step::Done);
    assert_eq!(paired.findings()[0].verdict, Verdict::Higher);
}

#[test]
fn all_metrics_and_arms_share_the_error() {
    let blocks = |arms: usize, metrics: usize| {
        let mut paired = Paired::new(arms, metrics, Options::default()).expect("valid");
        while let Step::Block(order) = paired.next().clone() {
            let trials: Vec<_> = order.iter().map(|arm| vec![Some(1.0 + *arm as f64); metrics]).collect();
            paired.observe(&trials).expect("it asked");
        }
        paired.blocks()
    };
    // Each factor of two of comparisons needs one more equal sign.
    assert_eq!([blocks(2, 1), blocks(2, 2), blocks(3, 1), blocks(3, 4)], [14, 15, 15, 17]);
}

/// More looks never take back what earlier ones have shown.
#[test]
fn intervals_only_become_narrower() {
    for seed in 0..8 {
        let mut paired =
            two(Options { seed, until: 1e-6, margin: 1e-6, most_blocks: 150, ..Options::default() });
        let mut state = 77 + seed;
        let mut before = (0.0, f64::INFINITY);
        while let Step::Block(order) = paired.next().clone() {
            let noise = order.iter().map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                vec![Some(1.0 + 0.1 * (state >> 40) as f64 / (1 << 24) as f64)]
            });
            let trials: Vec<_> = noise.collect();
            paired.observe(&trials).expect("it asked");
            if let Some(interval) = paired.findings()[0].interval {
                assert!(
                    interval.low >= before.0 && interval.high <= before.1,
                    "seed {seed}: {interval:?} after {before:?}"
                );
                before = (interval.low, interval.high);
            }
        }
        assert!(before.0 > 0.9 && before.1 < 1.1, "{before:?}");
    }
}

/// First 20 blocks in which the second arm is 10 % higher, then blocks in which it is 10 % lower: no verdict remains.
#[test]
fn looks_that_contradict_each_other_show_nothing() {
    let mut paired =
        Paired::new(2, 2, Options { until: 1e-6, margin: 0.001, ..Options::default() }).expect("valid");
    for block in 0..200 {
        let Step::Block(order) = paired.next().clone() else { break };
        let change = if block < 20 { 0.1 } else { -0.1 };
        let trials: Vec<_> = order
            .iter()
            .enumerate()
            .map(|(place, arm)| {
                let wobble = 1e-3 * ((block + place) % 7) as f64;
                // The second metric stays open, so that the first one is looked at again.
                let open = 1.0 + 0.2 * ((block * 7 + place * 3) % 5) as f64;
                vec![Some((change * *arm as f64 + wobble).exp()), Some(open)]
            })
            .collect();
        paired.observe(&trials).expect("it asked");
        if block == 19 {
            assert_eq!(paired.findings()[0].verdict, Verdict::Higher);
        }
    }
    let finding = paired.findings()[0];
    assert_ne!(finding.verdict, Verdict::Higher, "{finding:?}");
    let interval = finding.interval.expect("it was looked at");
    assert!(interval.low <= interval.high, "{finding:?}");
}

#[test]
fn refuses_what_it_cannot_compare() {
    let new = |options: Options| Paired::new(2, 1, options).err();
    let usual = Options::default();
    assert_eq!(Paired::new(1, 1, usual).err(), Some(PairedError::TooFewArms(1)));
    assert_eq!(Paired::new(2, 0, usual).err(), Some(PairedError::NoMetric));
    for options in [
        Options { alpha: 0.0, ..usual },
        Options { alpha: 1.0, ..usual },
        Options { margin: -0.1, ..usual },
        Options { until: f64::NAN, ..usual },
        Options { most_blocks: 0, ..usual },
        Options { most_blocks: MOST_BLOCKS + 1, ..usual },
    ] {
        assert!(matches!(new(options), Some(PairedError::OutOfRange { .. })), "{options:?}");
    }
    let mut paired = two(usual);
    assert_eq!(paired.observe(&[]), Err(ObserveError::WrongTrials { wanted: 2, actual: 0 }));
    let wrong = vec![vec![]; 2];
    assert_eq!(paired.observe(&wrong), Err(ObserveError::WrongMetrics { trial: 0, wanted: 1, actual: 0 }));
    for value in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let trials = vec![vec![Some(value)]; 2];
        assert!(matches!(paired.observe(&trials), Err(ObserveError::NotPositive { .. })), "{value}");
    }
    assert_eq!(paired.blocks(), 0);
}

#[test]
fn with_one_block_less_than_the_least_nothing_is_shown() {
    for (arms, metrics) in [(2, 1), (3, 4)] {
        let least = least_blocks(arms, metrics, Options::default().alpha);
        for blocks in [least - 1, least] {
            let mut paired = Paired::new(arms, metrics, Options::default()).expect("valid");
            for _ in 0..blocks {
                let Step::Block(order) = paired.next().clone() else { panic!("it has not ended") };
                let value = |arm: &usize| vec![Some((1 + arm) as f64); metrics];
                paired.observe(&order.iter().map(value).collect::<Vec<_>>()).expect("it asked");
            }
            paired.end();
            let shown = paired.findings().iter().all(|found| found.verdict == Verdict::Higher);
            assert_eq!(shown, blocks == least, "{arms} arms, {metrics} metrics, {blocks} blocks");
        }
    }
}
