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
