//! Goal: a search asks what it needs, and its answers say how they were found.

use super::*;

/// Comparisons with version 5 are never sure: the answer cannot say whether 5 or 6 is the first.
#[test]
fn a_version_that_cannot_be_measured_gives_a_range() {
    let mut bisect = Bisect::new(11, 0.02).expect("valid");
    while let Step::Compare(Compare { base, version }) = *bisect.next() {
        let outcome = match (base, version) {
            (5, _) | (_, 5) => Outcome::Unsure,
            (base, version) if base < 5 && version > 5 => Outcome::Bad,
            _ => Outcome::Good,
        };
        bisect.observe(outcome, 0.005).expect("it asked");
    }
    let Step::Done(Answer::Range { first, last, error }) = *bisect.next() else {
        panic!("{:?}", bisect.next());
    };
    assert_eq!((first, last), (5, 6));
    assert!(error <= 0.02, "{error}");
}

#[test]
fn an_unsure_comparison_is_followed_by_that_of_a_neighbour() {
    let mut bisect = Bisect::new(20, 0.02).expect("valid");
    bisect.observe(Outcome::Bad, 0.01).expect("it asked");
    assert_eq!(*bisect.next(), Step::Compare(Compare { base: 0, version: 10 }));
    bisect.observe(Outcome::Unsure, 0.01).expect("it asked");
    assert_eq!(*bisect.next(), Step::Compare(Compare { base: 0, version: 9 }));
    bisect.observe(Outcome::Unsure, 0.01).expect("it asked");
    assert_eq!(*bisect.next(), Step::Compare(Compare { base: 0, version: 11 }));
    assert_eq!(bisect.log().len(), 3);
}

#[test]
fn ends_that_cannot_be_compared_are_unclear() {
    let mut bisect = Bisect::new(20, 0.05).expect("valid");
    for _ in 0..UNSURE {
        assert_eq!(*bisect.next(), Step::Compare(Compare { base: 0, version: 19 }));
        bisect.observe(Outcome::Unsure, 0.01).expect("it asked");
    }
    assert_eq!(*bisect.next(), Step::Done(Answer::Unclear));
    assert_eq!(bisect.observe(Outcome::Bad, 0.01), Err(ObserveError::Ended));
}

#[test]
fn answers_are_confirmed_by_the_version_before() {
    let mut bisect = Bisect::new(2, 0.05).expect("valid");
    bisect.observe(Outcome::Bad, 0.01).expect("it asked");
    assert!(matches!(bisect.next(), Step::Done(Answer::First { version: 1, is_confirmed: true, .. })));
}

#[test]
fn refuses_what_it_cannot_search() {
    assert_eq!(Bisect::new(1, 0.01).err(), Some(BisectError::TooFewVersions(1)));
    for error in [0.0, 0.5, f64::NAN] {
        assert!(matches!(Bisect::new(5, error), Err(BisectError::OutOfRange(_))), "{error}");
        let mut bisect = Bisect::new(5, 0.1).expect("valid");
        assert!(matches!(bisect.observe(Outcome::Bad, error), Err(ObserveError::OutOfRange(_))), "{error}");
    }
}

/// Searches 20 versions of which those from `bad` on are worse, without errors, and takes out each version that cannot be compared
/// when it is first asked for. Returns the answer and the versions that are left.
fn search_without(gone: &[usize], bad: usize) -> (Answer, Vec<usize>) {
    let mut bisect = Bisect::new(20, 0.02).expect("valid");
    let mut left: Vec<usize> = (0..20).collect();
    while let Step::Compare(Compare { base, version }) = *bisect.next() {
        if let Some(place) = [base, version].into_iter().find(|place| gone.contains(&left[*place])) {
            left.remove(place);
            bisect.skip(place).expect("two are left");
            continue;
        }
        let is_bad = (left[base] + 1..=left[version]).contains(&bad);
        bisect.observe(if is_bad { Outcome::Bad } else { Outcome::Good }, 0.005).expect("it asked");
    }
    let Step::Done(answer) = *bisect.next() else { panic!("the loop has ended") };
    (answer, left)
}

#[test]
fn without_some_versions_the_first_bad_one_of_those_that_are_left_is_found() {
    for bad in 1..20 {
        for gone in [&[9][..], &[4, 5, 6], &[bad], &[bad - 1], &[bad - 1, bad], &[10, 5, 15, 3]] {
            let (answer, left) = search_without(gone, bad);
            // Versions that nobody asked for stay in the list, although they cannot be compared.
            let first = left.iter().position(|version| *version >= bad);
            match (answer, first) {
                (Answer::First { version, is_confirmed: true, .. }, Some(first)) if first > 0 => {
                    assert_eq!(version, first, "bad {bad}, without {gone:?}");
                }
                (Answer::NoneBad { .. }, None | Some(0)) => {}
                other => panic!("bad {bad}, without {gone:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_was_learned_stays_when_a_version_is_skipped() {
    let mut bisect = Bisect::new(20, 0.02).expect("valid");
    bisect.observe(Outcome::Bad, 0.005).expect("it asked");
    assert_eq!(*bisect.next(), Step::Compare(Compare { base: 0, version: 10 }));
    bisect.observe(Outcome::Good, 0.005).expect("it asked");
    bisect.skip(5).expect("many are left");
    let places: Vec<usize> = bisect.log().iter().map(|asked| asked.compare.version).collect();
    assert_eq!(places, [18, 9]);
    // The first 10 are good still.
    let Step::Compare(Compare { version, .. }) = *bisect.next() else { panic!("it has not ended") };
    assert!((11..17).contains(&version), "{version}");
    let sum: f64 = bisect.belief.none() + bisect.belief.bad(Compare { base: 0, version: 18 });
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
}

#[test]
fn two_versions_at_least_are_left() {
    let mut bisect = Bisect::new(3, 0.02).expect("valid");
    assert_eq!(bisect.skip(3), Err(BisectError::TooFewVersions(2)));
    bisect.skip(1).expect("two are left");
    assert_eq!(*bisect.next(), Step::Compare(Compare { base: 0, version: 1 }));
    assert_eq!(bisect.skip(1), Err(BisectError::TooFewVersions(1)));
}

#[test]
fn when_the_time_is_over_the_answer_is_what_is_known() {
    let mut bisect = Bisect::new(20, 0.02).expect("valid");
    let answer = |bisect: &Bisect| {
        let mut bisect = bisect.clone();
        bisect.end();
        let Step::Done(answer) = *bisect.next() else { panic!("it has ended") };
        answer
    };
    assert_eq!(answer(&bisect), Answer::Unclear);
    bisect.observe(Outcome::Bad, 0.005).expect("it asked");
    assert!(matches!(answer(&bisect), Answer::Range { first: 1, last: 19, .. }));
    bisect.observe(Outcome::Good, 0.005).expect("it asked");
    let Answer::Range { first: 11, last: 19, error } = answer(&bisect) else {
        panic!("{:?}", answer(&bisect));
    };
    assert!(error <= 0.02, "{error}");
}

#[test]
fn the_probability_of_a_skipped_version_goes_to_the_next_or_to_none() {
    let searched = || {
        let mut bisect = Bisect::new(20, 0.02).expect("valid");
        bisect.observe(Outcome::Bad, 0.005).expect("it asked");
        bisect.observe(Outcome::Bad, 0.2).expect("it asked");
        bisect
    };
    let of = |bisect: &Bisect, version| bisect.belief.bad(Compare { base: version - 1, version });
    let before = searched();
    for version in 0..20 {
        let mut bisect = searched();
        bisect.skip(version).expect("many are left");
        let none = bisect.belief.none() - before.belief.none();
        let (wanted, next) = match version {
            0 => (of(&before, 1), None),
            19 => (of(&before, 19), None),
            _ => (0.0, Some(of(&before, version) + of(&before, version + 1))),
        };
        assert!((none - wanted).abs() < 1e-12, "{version}: none {none}, not {wanted}");
        let off = next.map_or(0.0, |next| of(&bisect, version) - next);
        assert!(off.abs() < 1e-12, "{version}: {off}");
    }
}
