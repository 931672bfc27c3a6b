//! What a search has found.

use std::fmt;

use super::binomial::Verdict;
use super::limit::Limits;
use super::observation::{Judgement, Observation};

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find a rate that keeps the limits and one that breaks them.
    Bracket,
    /// To bring these rates closer together.
    Narrow,
    /// To confirm a rate. Only figures of a confirmation may be reported.
    Confirm,
}

/// A run at a fixed rate that the search has asked for, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Requests per second, with Poisson arrivals.
    pub rate: f64,
    /// The wanted length, seconds.
    pub seconds: f64,
    /// What it was for.
    pub purpose: Purpose,
    /// What it showed.
    pub observation: Observation,
    /// What that says of the limits.
    pub judgement: Judgement,
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was found.
    pub outcome: Outcome,
    /// All probes, in the order in which they ran.
    pub log: Vec<Probe>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A rate that keeps the limits.
    Holds {
        /// The highest rate that was confirmed, requests per second.
        rate: f64,
        /// The lowest higher rate at which a limit was shown to be broken, requests per second. Absent if none was.
        broke: Option<f64>,
        /// The place in the log of the confirmation.
        confirmation: usize,
    },
    /// The highest rate that the search may try keeps the limits.
    AtLeast {
        /// That rate, requests per second.
        rate: f64,
        /// The place in the log of its confirmation.
        confirmation: usize,
    },
    /// No rate was confirmed.
    NoAnswer(Reason),
}

/// Why no rate was confirmed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// Even the lowest rate breaks a limit: a request takes too long without waiting.
    #[error("{limits} is broken at {rate:.0}/s, the lowest rate of the search: allow a longer time")]
    BrokenAtLowest {
        /// The limits.
        limits: Limits,
        /// The lowest rate, requests per second.
        rate: f64,
    },
    /// The sender was too late in most probes.
    #[error(
        "requests were sent too late at {rate:.0}/s: measure on a quiet machine, with fewer threads than CPUs"
    )]
    SenderLate {
        /// The lowest rate at which it was, requests per second.
        rate: f64,
    },
    /// A probe at the rate that is of interest has too few requests.
    #[error("{limits} needs {needed} requests, {seconds:.0} s at {rate:.0}/s: allow longer probes")]
    TooFewRequests {
        /// The limits.
        limits: Limits,
        /// Requests that the limits need.
        needed: u64,
        /// The rate, requests per second.
        rate: f64,
        /// How long that many requests take to arrive, seconds.
        seconds: f64,
    },
    /// No confirmation was clear enough.
    #[error("no rate up to {rate:.0}/s was confirmed to keep {limits}: allow more probes or longer ones")]
    Unconfirmed {
        /// The limits.
        limits: Limits,
        /// The highest rate that was tried for a confirmation, or the highest of the probes if none was, requests per second.
        rate: f64,
    },
}

impl Answer {
    /// If no rate was confirmed: the highest rate at which a probe has kept the limits, below all rates that broke one, requests
    /// per second. It is an estimate, and the luckiest of several tries. Absent if there is none.
    pub fn unconfirmed(&self) -> Option<f64> {
        let rates = |verdict: Verdict| {
            self.log.iter().filter(move |probe| probe.judgement.verdict == verdict).map(|probe| probe.rate)
        };
        let broke = rates(Verdict::Broken).fold(f64::INFINITY, f64::min);
        let kept = rates(Verdict::Kept).filter(|rate| *rate < broke).reduce(f64::max);
        kept.filter(|_| matches!(self.outcome, Outcome::NoAnswer(_)))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Holds { rate, broke: Some(broke), .. } => {
                write!(f, "{rate:.0}/s holds, {broke:.0}/s does not")
            }
            Outcome::Holds { rate, broke: None, .. } => write!(f, "{rate:.0}/s holds"),
            Outcome::AtLeast { rate, .. } => write!(f, "at least {rate:.0}/s"),
            Outcome::NoAnswer(reason) => write!(f, "{reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(outcome: Outcome, probes: &[(f64, Verdict)]) -> Answer {
        let probe = |&(rate, verdict): &(f64, Verdict)| Probe {
            rate,
            seconds: 10.0,
            purpose: Purpose::Narrow,
            observation: Observation::default(),
            judgement: Judgement { verdict, verdicts: Vec::new(), unsustained: None, samples: Vec::new() },
        };
        Answer { outcome, log: probes.iter().map(probe).collect() }
    }

    #[test]
    fn an_estimate_is_the_highest_rate_that_was_kept_below_all_that_broke_a_limit() {
        use Verdict::{Broken, Kept, Unclear};
        let limits: Limits = "p99<1ms".parse().unwrap();
        let none = || Outcome::NoAnswer(Reason::Unconfirmed { limits: limits.clone(), rate: 0.0 });
        let probes =
            [(10.0, Kept), (30.0, Kept), (40.0, Unclear), (20.0, Kept), (50.0, Broken), (60.0, Kept)];
        assert_eq!(answer(none(), &probes).unconfirmed(), Some(30.0));
        // A confirmation that failed at a lower rate takes it back.
        assert_eq!(answer(none(), &[(30.0, Kept), (29.0, Broken)]).unconfirmed(), None);
        assert_eq!(answer(none(), &[(30.0, Unclear)]).unconfirmed(), None);
        let holds = Outcome::Holds { rate: 30.0, broke: None, confirmation: 1 };
        assert_eq!(answer(holds, &probes).unconfirmed(), None, "a rate that holds is no estimate");
    }
}
