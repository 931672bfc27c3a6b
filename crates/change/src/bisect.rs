//! The first bad one of ordered versions, by comparisons that may be wrong: a state machine without a clock and without an engine.
//!
//! Version 0 is good by definition, and each version from the first bad one on is expected to be worse than it. `Bisect::next` says
//! which two versions to compare, and `Bisect::observe` takes what the comparison showed and the probability that it is wrong.
//! Each place of the first bad version, and that there is none, has a probability, which comparisons change by Bayes' rule. The
//! next question halves the probability (Horstein, Sequential transmission using noiseless feedback, 1963; Burnashev and Zigangirov,
//! An interval estimation problem for controlled observations, 1974). Before the first comparison, there is no bad version with
//! a probability of one half, and each version is equally likely to be the first. The error of an answer is the probability of
//! all others.
//!
//! The ends are compared first. A version is an answer only after it was compared with the version before it. A comparison that is
//! unsure changes no probability: a neighbour is asked, and the same question again if that tells more. A question with three more
//! unsure outcomes than others is not asked again.
//!
//! Of a paired comparison (`crate::paired`), the outcome is `Good` if the interval has no change for the worse as great as the
//! smallest that is searched; else `Bad` if the verdict is a change for the worse; else `Unsure`. Its error is `alpha`.
//!
//! A version that cannot be compared is skipped: that it is the first bad one becomes the same answer as that the next one is.
//!
//! If versions are not ordered like this, the answer is still a change, but which one is not certain:
//!
//! - With several bad steps, the first one is found if it alone can be seen against version 0. If it cannot, comparisons are good
//!   or unsure up to the step that makes the sum visible, and that step is found.
//! - A change that was fixed again before the last version is not found: the ends do not differ.
//! - If it was fixed and came back, one of the two steps is found, because each is worse than the version before it.
//! - If versions became worse in many small steps, none is visibly worse than the one before it. The answer is a range, or a version
//!   that is not confirmed; rarely it is one that a false comparison has confirmed.

mod belief;
#[cfg(test)]
mod tests;

use belief::Belief;

/// How many more outcomes of a question may be unsure than not before it is not asked again.
const UNSURE: usize = 3;

/// Two versions to compare: is `version` worse than `base`?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compare {
    /// The place of the older version, from 0.
    pub base: usize,
    /// The place of the newer version.
    pub version: usize,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Compare two versions, and `observe` the outcome.
    Compare(Compare),
    /// The search has ended.
    Done(Answer),
}

/// What a comparison has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The newer version is worse.
    Bad,
    /// The newer version is not worse.
    Good,
    /// The comparison did not show which.
    Unsure,
}

/// Where the first bad version is. Errors are probabilities that the answer is wrong, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// One version is the first bad one.
    First {
        /// Its place, from 1.
        version: usize,
        /// The error.
        error: f64,
        /// Whether it was shown to be worse than the version before it. If not, that comparison was unsure each time, and
        /// the answer follows from comparisons with version 0.
        is_confirmed: bool,
    },
    /// The first bad version is one of several, and comparisons do not show which.
    Range {
        /// The place of the first of them, from 1.
        first: usize,
        /// The place of the last of them.
        last: usize,
        /// The error.
        error: f64,
    },
    /// The last version is not worse than the first.
    NoneBad {
        /// The error.
        error: f64,
    },
    /// Comparisons of the last version with the first do not show whether it is worse.
    Unclear,
}

/// Why a search cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BisectError {
    /// Nothing to search.
    #[error("{0} versions cannot be searched: name a good one, a bad one, and those between them")]
    TooFewVersions(usize),
    /// The wanted error is no probability of an error.
    #[error("the wanted error is {0}: expected a probability over 0 and under 0.5")]
    OutOfRange(f64),
}

/// Why an outcome was not taken.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ObserveError {
    /// The search has ended.
    #[error("the search has ended and takes no outcome")]
    Ended,
    /// The error of the comparison is no probability of an error.
    #[error("the error of the comparison is {0}: expected a probability over 0 and under 0.5")]
    OutOfRange(f64),
}

/// A question and its outcomes so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub compare: Compare,
    /// What the comparison has shown.
    pub outcome: Outcome,
    /// The probability that this is wrong, from 0 to 1.
    pub error: f64,
}

/// A search for the first bad version.
#[derive(Clone, Debug)]
pub struct Bisect {
    /// The place of the last version.
    last: usize,
    error: f64,
    belief: Belief,
    log: Vec<Asked>,
    /// Whether nothing more is asked.
    is_over: bool,
    step: Step,
}

impl Bisect {
    /// Begins a search among `versions` versions, in their order, for an answer with an error of at most `error`. It is
    /// reached with comparisons whose own errors are larger, by more of them.
    ///
    /// # Errors
    ///
    /// If there are fewer than two versions, or `error` is not over 0 and under 0.5.
    pub fn new(versions: usize, error: f64) -> Result<Bisect, BisectError> {
        if versions < 2 {
            return Err(BisectError::TooFewVersions(versions));
        }
        if !(error > 0.0 && error < 0.5) {
            return Err(BisectError::OutOfRange(error));
        }
        let last = versions - 1;
        let step = Step::Compare(Compare { base: 0, version: last });
        Ok(Bisect { last, error, belief: Belief::new(last), log: Vec::new(), is_over: false, step })
    }

    /// What to do next. It stays the same until an outcome is taken.
    pub fn next(&self) -> &Step {
        &self.step
    }

    /// The outcomes so far, in their order.
    pub fn log(&self) -> &[Asked] {
        &self.log
    }

    /// Takes the outcome of the comparison that `next` asked for. `error` is the probability that it is wrong, given that it is
    /// `Bad` or `Good`; for `Unsure` it has no effect. Outcomes of one question that is asked twice must be independent.
    ///
    /// # Errors
    ///
    /// If the search has ended, or `error` is not over 0 and under 0.5.
    pub fn observe(&mut self, outcome: Outcome, error: f64) -> Result<(), ObserveError> {
        let Step::Compare(compare) = self.step else {
            return Err(ObserveError::Ended);
        };
        if !(error > 0.0 && error < 0.5) {
            return Err(ObserveError::OutOfRange(error));
        }
        match outcome {
            Outcome::Bad => self.belief.learn(compare, true, error),
            Outcome::Good => self.belief.learn(compare, false, error),
            Outcome::Unsure => {}
        }
        self.log.push(Asked { compare, outcome, error });
        self.step = self.plan();
        Ok(())
    }

    /// Takes a version out, because it cannot be compared. Versions after it move one place forward, in the log, too, and outcomes with
    /// it leave the log. Whether it was the first bad one is not asked any more: that is now a part of the answer that the version
    /// after it is the first, or, without the first or the last version, that no version is bad.
    ///
    /// # Errors
    ///
    /// If fewer than two versions would be left, or there is no such version.
    pub fn skip(&mut self, version: usize) -> Result<(), BisectError> {
        if self.last < 2 || version > self.last {
            return Err(BisectError::TooFewVersions(self.last));
        }
        self.belief.skip(version);
        self.last -= 1;
        self.log.retain(|asked| asked.compare.base != version && asked.compare.version != version);
        let moved = |place: &mut usize| *place -= usize::from(*place > version);
        for asked in &mut self.log {
            moved(&mut asked.compare.base);
            moved(&mut asked.compare.version);
        }
        self.step = self.plan();
        Ok(())
    }

    /// Ends the search, because the time that its caller has is spent: the answer is what is known. The moment must depend on the
    /// clock alone, and not on what was found.
    pub fn end(&mut self) {
        self.is_over = true;
        self.step = self.plan();
    }

    /// Comparisons of a search, at most: several times those of a search without errors.
    fn most(&self) -> usize {
        20 + 6 * (self.last.ilog2() as usize + 1)
    }

    /// How many outcomes of a question were unsure, and how many were not.
    fn outcomes(&self, compare: Compare) -> (usize, usize) {
        let asked = self.log.iter().filter(|asked| asked.compare == compare);
        let (unsure, sure): (Vec<&Asked>, Vec<&Asked>) =
            asked.partition(|asked| asked.outcome == Outcome::Unsure);
        (unsure.len(), sure.len())
    }

    /// Whether a question may be asked, or asked again.
    fn is_open(&self, compare: Compare) -> bool {
        let (unsure, sure) = self.outcomes(compare);
        unsure < UNSURE + sure && self.log.len() < self.most() && !self.is_over
    }

    /// What to do next.
    fn plan(&self) -> Step {
        let none = self.belief.none();
        if 1.0 - none <= self.error {
            return Step::Done(Answer::NoneBad { error: 1.0 - none });
        }
        let ends = Compare { base: 0, version: self.last };
        // Nothing is asked between ends that are not known to differ.
        if none > self.error {
            return match self.is_open(ends) {
                true => Step::Compare(ends),
                false => Step::Done(Answer::Unclear),
            };
        }
        let (likeliest, probability) = self.belief.likeliest();
        if 1.0 - probability <= self.error {
            let last_step = Compare { base: likeliest - 1, version: likeliest };
            let is_bad = |asked: &&Asked| asked.compare == last_step && asked.outcome == Outcome::Bad;
            let is_confirmed = self.log.iter().any(|asked| is_bad(&asked));
            if is_confirmed || !self.is_open(last_step) {
                let error = 1.0 - probability;
                return Step::Done(Answer::First { version: likeliest, error, is_confirmed });
            }
            return Step::Compare(last_step);
        }
        match self.question() {
            Some(compare) => Step::Compare(compare),
            None => {
                let (first, last, probability) = self.belief.range(self.error);
                Step::Done(Answer::Range { first, last, error: 1.0 - probability })
            }
        }
    }

    /// The question that tells most, if it is not unsure: the closer its two outcomes are to one half, the more. One that was unsure
    /// before is expected to be so again, so another may be better. A question whose outcome is known with more certainty than is
    /// wanted is not worth asking.
    fn question(&self) -> Option<Compare> {
        let with_first = (1..=self.last).map(|version| Compare { base: 0, version });
        let with_previous = (2..=self.last).map(|version| Compare { base: version - 1, version });
        let open = with_first.chain(with_previous).filter(|compare| self.is_open(*compare));
        let is_useful = |bad: f64| bad.min(1.0 - bad) > self.error / 2.0;
        let useful =
            open.map(|compare| (compare, self.belief.bad(compare))).filter(|(_, bad)| is_useful(*bad));
        let worth = useful.map(|(compare, bad)| {
            let entropy = -bad * bad.log2() - (1.0 - bad) * (1.0 - bad).log2();
            let (unsure, sure) = self.outcomes(compare);
            (entropy * (1 + sure) as f64 / (1 + sure + unsure) as f64, compare)
        });
        // The first of equal ones.
        worth.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, compare)| compare)
    }
}
