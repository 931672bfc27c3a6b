//! What a search has found.

use std::fmt;

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
