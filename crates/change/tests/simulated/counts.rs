//! Goal: counts that did not change raise no alarm beside other programs, and small changes are found.

use kvdyno_change::counts::{Verdict, judge};

use crate::machine::normal;
use crate::random::Random;
use crate::{parallel, setting};

const RUNS: usize = 10;

/// How a count varies between runs.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// It is the same in all runs.
    Exact,
    /// It is the same but for a rare extra one.
    Rare,
    /// It varies by a part, with a spread of 0.1 %, such as instructions.
    Narrow,
    /// It depends on when a thread in the background runs, and more so on a busy machine.
    Background,
    /// A clock starts the work, so that a run that takes longer has more of it.
    Timed,
}

const KINDS: [Kind; 5] = [Kind::Exact, Kind::Rare, Kind::Narrow, Kind::Background, Kind::Timed];

/// The count of a run, whose true value is multiplied by `factor`.
fn count(kind: Kind, factor: f64, is_busy: bool, is_loaded: bool, random: &mut Random) -> f64 {
    let base = 100_000.0 * factor;
    let value = match kind {
        Kind::Exact => base,
        Kind::Rare => base + if random.unit() < 0.02 { 1.0 } else { 0.0 },
        Kind::Narrow => base * (1.0 + 0.001 * normal(random)),
        Kind::Background => base * (1.0 + random.exponential(if is_busy { 0.2 } else { 0.05 })),
        Kind::Timed => {
            let seconds = random.between(1.0, 1.2) * if is_busy { 2.0 } else { 1.0 };
            (2.0 * factor * seconds * if is_loaded { 1.5 } else { 1.0 }).floor()
        }
    };
    value.round()
}

/// What a check shows of a count whose true value has changed by `factor`. Every second run is made busy; a check runs beside
/// another program for part of its time.
fn check(kind: Kind, factor: f64, seed: u64) -> Verdict {
    let mut random = Random::new(seed, 0);
    let earlier: Vec<f64> = (0..RUNS).map(|run| count(kind, 1.0, run % 2 == 1, false, &mut random)).collect();
    let is_loaded = random.unit() < 0.5;
    let mut later = Vec::new();
    loop {
        let is_busy = later.len() % 2 == 1 || (is_loaded && random.unit() < 0.5);
        later.push(count(kind, factor, is_busy, is_loaded, &mut random));
        match judge(&earlier, &later, RUNS) {
            Verdict::Open => {}
            verdict => return verdict,
        }
    }
}

#[test]
fn a_count_that_has_not_changed_raises_no_alarm() {
    let checks = setting("KVDYNO_CHECKS", 2000);
    for kind in KINDS {
        let alarms = parallel(checks, |seed| check(kind, 1.0, seed) != Verdict::Same);
        let alarms = alarms.into_iter().filter(|is| *is).count();
        println!("{kind:?}: {alarms} false alarms in {checks} checks");
        assert!(alarms <= 1, "{kind:?}: {alarms} of {checks}");
    }
}

#[test]
fn one_per_cent_more_is_found_in_counts_that_vary_by_less() {
    for kind in [Kind::Exact, Kind::Rare, Kind::Narrow] {
        let found = parallel(100, |seed| check(kind, 1.01, seed) == Verdict::Rose);
        assert!(found.iter().all(|is| *is), "{kind:?}: {found:?}");
        let fell = parallel(100, |seed| check(kind, 0.99, seed) == Verdict::Fell);
        assert!(fell.iter().all(|is| *is), "{kind:?}: {fell:?}");
    }
    // What varies by more than it rose cannot be found, and is not.
    let found = parallel(100, |seed| check(Kind::Background, 1.01, seed) == Verdict::Rose);
    assert!(!found.contains(&true), "{found:?}");
}
