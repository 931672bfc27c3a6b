//! Searches on servers that are formulas: without noise, so that each rule shows alone.

use super::*;

/// A run of `seconds` at `rate` with a share of requests over the first limit, equal in all windows.
fn run(rate: f64, seconds: f64, share: f64) -> Observation {
    let requests = (rate * seconds / 20.0) as u64;
    let over = (requests as f64 * share).round() as u64;
    let window = Window { requests, errors: 0, over: vec![over] };
    Observation { seconds, windows: vec![window; 20], achieved: rate, ..Observation::default() }
}

/// Searches with what `server` shows at a rate and a length, from a closed loop of 1,000/s.
fn search(
    limits: &str,
    options: Options,
    mut server: impl FnMut(f64, f64, Purpose) -> Observation,
) -> Answer {
    let mut search = Search::new(limits.parse().expect("limits"), 1_000.0, options);
    loop {
        match search.next().clone() {
            Step::Probe { rate, seconds, purpose } => {
                search.observe(server(rate, seconds, purpose)).expect("it was asked for");
            }
            Step::Done(answer) => return answer,
        }
    }
}

/// A share of 1 % at 700/s that doubles with each 5 % of rate.
fn steep(rate: f64) -> f64 {
    (0.01 * (rate / 700.0).powf(14.2)).min(1.0)
}

fn rate(answer: &Answer) -> f64 {
    match answer.outcome {
        Outcome::Holds { rate, .. } => rate,
        _ => panic!("{}", answer.outcome),
    }
}

#[test]
fn finds_the_rate_and_reports_its_confirmation() {
    let answer = search("p99<1ms", Options::default(), |rate, seconds, _| run(rate, seconds, steep(rate)));
    let Outcome::Holds { rate, broke: Some(broke), confirmation } = answer.outcome else {
        panic!("{}", answer.outcome);
    };
    assert!((0.97 * 700.0..700.0).contains(&rate), "{rate}");
    assert!((700.0..1.1 * 700.0).contains(&broke), "{broke}");
    assert!(answer.log.len() <= 12);
    let probe = answer.log.last().expect("probes");
    assert_eq!((confirmation, probe.purpose), (answer.log.len() - 1, Purpose::Confirm));
    assert_eq!((probe.rate, probe.judgement.verdict), (rate, Verdict::Kept));
    assert!(probe.seconds >= 15.0);
}

#[test]
fn a_confirmation_that_is_unclear_is_no_answer() {
    // Probes show half of the share that confirmations show: the luck of the best of several tries.
    let lucky = |rate: f64, seconds, purpose| {
        let luck = if purpose == Purpose::Confirm { 1.0 } else { 0.5 };
        run(rate, seconds, luck * steep(rate))
    };
    let answer = search("p99<1ms", Options::default(), lucky);
    let confirmations: Vec<&Probe> =
        answer.log.iter().filter(|probe| probe.purpose == Purpose::Confirm).collect();
    assert!(confirmations.len() > 1);
    assert!(confirmations.windows(2).all(|pair| pair[1].rate < pair[0].rate));
    if let Outcome::Holds { rate, .. } = answer.outcome {
        assert!(rate < 700.0, "{rate}");
    }
    // The share of all confirmations is the allowed one: it is neither kept nor broken.
    let unclear = |rate: f64, seconds, purpose| {
        run(rate, seconds, if purpose == Purpose::Confirm { 0.01 } else { steep(rate) })
    };
    let answer = search("p99<1ms", Options::default(), unclear);
    assert!(matches!(answer.outcome, Outcome::NoAnswer(Reason::Unconfirmed { .. })), "{}", answer.outcome);
}

#[test]
fn confirmations_share_the_allowed_error() {
    // So many over the limit that a single run would keep it with a confidence of 95 %, but with none that is higher.
    let close = |rate: f64, seconds: f64, purpose| {
        let mut run = run(rate, seconds, if purpose == Purpose::Confirm { 0.0 } else { steep(rate) });
        if purpose == Purpose::Confirm {
            let n = run.requests() as f64;
            let most = binomial::most_over(n, 0.99, 0.95).expect("enough requests") as u64;
            for (index, window) in run.windows.iter_mut().enumerate() {
                window.over[0] = most / 20 + u64::from((index as u64) < most % 20);
            }
        }
        run
    };
    let answer = search("p99<1ms", Options::default(), close);
    assert!(matches!(answer.outcome, Outcome::NoAnswer(Reason::Unconfirmed { .. })), "{}", answer.outcome);
    assert_eq!(answer.log.iter().filter(|probe| probe.purpose == Purpose::Confirm).count(), 3);
}

#[test]
fn a_backlog_that_grows_breaks_a_limit_that_is_never_met() {
    let overloaded = |rate: f64, seconds, _| {
        let achieved = rate.min(900.0);
        Observation { backlog_grows: rate > 900.0, achieved, ..run(rate, seconds, 0.0) }
    };
    let answer = search("p99<10s", Options::default(), overloaded);
    assert!((0.97 * 900.0..=900.0).contains(&rate(&answer)), "{}", answer.outcome);
}

#[test]
fn all_limits_are_kept() {
    let two = |rate: f64, seconds, _| {
        let mut run = run(rate, seconds, steep(rate));
        for window in &mut run.windows {
            window
                .over
                .push((window.requests as f64 * (0.1 * (rate / 500.0).powi(6)).min(1.0)).round() as u64);
        }
        run
    };
    let answer = search("p99<1ms,p90<100us", Options::default(), two);
    assert!((0.95 * 500.0..500.0).contains(&rate(&answer)), "{}", answer.outcome);
}

#[test]
fn the_seed_determines_the_order_of_rates() {
    // Windows that vary make the line uncertain, so that the search visits pairs of rates.
    let noisy = |rate: f64, seconds, _| {
        let mut run = run(rate, seconds, 0.0);
        for (index, window) in run.windows.iter_mut().enumerate() {
            let share = if index % 5 == 0 { 5.0 * steep(rate) } else { 0.0 };
            window.over[0] = (window.requests as f64 * share.min(1.0)).round() as u64;
        }
        run
    };
    let log = |seed| search("p99<1ms", Options { seed, ..Options::default() }, noisy).log;
    assert_eq!(log(1), log(1));
    let first = |seed| {
        let log = log(seed);
        let pair: Vec<f64> =
            log.iter().filter(|probe| probe.purpose == Purpose::Narrow).map(|probe| probe.rate).collect();
        pair[pair.len() - 2] < pair[pair.len() - 1]
    };
    let rising = (0..40).filter(|seed| first(*seed)).count();
    assert!((8..=32).contains(&rising), "{rising} of 40");
}

#[test]
fn says_why_there_is_no_answer() {
    let answer = search("p99<1ms", Options::default(), |rate, seconds, _| run(rate, seconds, 0.5));
    let text = "p99<1ms is broken at 8/s, the lowest rate of the search: allow a longer time";
    assert_eq!(answer.outcome.to_string(), text);
    let slow = |rate: f64, seconds, _| run(rate, seconds, (0.01 * rate / 2.0).min(1.0));
    let answer = search("p99<1ms", Options::default(), slow);
    let reason = Reason::TooFewRequests {
        limits: "p99<1ms".parse().expect("limits"),
        needed: 918,
        rate: 2.0,
        seconds: 459.0,
    };
    assert_eq!(reason.to_string(), "p99<1ms needs 918 requests, 459 s at 2/s: allow longer probes");
    assert!(matches!(answer.outcome, Outcome::NoAnswer(Reason::TooFewRequests { .. })), "{}", answer.outcome);
    let late = |rate: f64, seconds, _| Observation { sender_late: true, ..run(rate, seconds, 0.0) };
    let answer = search("p99<1ms", Options::default(), late);
    assert!(matches!(answer.outcome, Outcome::NoAnswer(Reason::SenderLate { .. })), "{}", answer.outcome);
    assert_eq!(answer.log.len(), 3);
}

#[test]
fn a_rate_that_the_sender_cannot_send_is_a_lower_bound() {
    let answer = search("p99<1ms", Options::default(), |rate, seconds, _| run(rate, seconds, 0.0));
    assert!(matches!(answer.outcome, Outcome::AtLeast { rate: 4_000.0, .. }), "{}", answer.outcome);
    let fast = |rate: f64, seconds, _| Observation { sender_late: rate > 1_100.0, ..run(rate, seconds, 0.0) };
    let answer = search("p99<1ms", Options::default(), fast);
    assert!(matches!(answer.outcome, Outcome::AtLeast { rate, .. } if rate < 1_250.0), "{}", answer.outcome);
}

#[test]
fn low_rates_are_measured_for_as_long_as_they_need() {
    let options = Options { highest_rate: Some(20.0), ..Options::default() };
    let answer = search("p99<1ms", options, |rate, seconds, _| run(rate, seconds, 0.0));
    assert!(answer.log.iter().all(|probe| probe.rate * probe.seconds >= 918.0));
}

#[test]
fn refuses_an_observation_that_it_cannot_use() {
    let mut search = Search::new("p99<1ms,max<1s".parse().expect("limits"), 1_000.0, Options::default());
    let error = search.observe(run(800.0, 5.0, 0.0)).expect_err("it has one number");
    assert_eq!(error.to_string(), "a window has numbers for 1 limits: expected 2");
    let ended = search_to_its_end();
    assert_eq!(ended.clone().observe(run(1.0, 1.0, 0.0)), Err(ObserveError::Ended));
}

fn search_to_its_end() -> Search {
    let mut search = Search::new("p99<1ms".parse().expect("limits"), 1_000.0, Options::default());
    while let Step::Probe { rate, seconds, .. } = *search.next() {
        search.observe(run(rate, seconds, steep(rate))).expect("it was asked for");
    }
    search
}
