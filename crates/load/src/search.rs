//! The search for the highest rate that keeps limits: a state machine without a clock and without an engine.
//!
//! `Search::next` says what to run, `Search::observe` takes what the run showed, until `next` says `Done`. There are three
//! stages. *Bracket* finds a rate that keeps the limits and one that breaks them. *Narrow* measures rates close to the limit,
//! one below and one above it, in an order that the seed draws, so that a server that becomes slower is not taken for one that
//! is loaded more; a line through all shares over the limit estimates where the limit is met. *Confirm* runs a lower rate
//! for longer. Only a confirmation whose verdict is `Kept` is an answer. Its rate is chosen before it runs, and its data are
//! new. So the answer is not the luckiest of several tries: the allowed error is divided among the confirmations (Bonferroni).

mod answer;
pub mod binomial;
mod fit;
mod limit;
mod observation;
mod plan;
mod sample;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Outcome, Probe, Purpose, Reason};
pub use binomial::{Verdict, verdict};
pub use limit::{Limit, LimitError, Limits, Metric};
pub use observation::{Judgement, Observation, Unsustained, Window, backlog_grows};

/// How a search is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Determines the order of probes.
    pub seed: u64,
    /// The usual length of a probe, seconds. Near the limit it is up to three times as long.
    pub probe_seconds: f64,
    /// The usual length of a confirmation, seconds. It is up to four times as long if that makes the answer closer.
    pub confirm_seconds: f64,
    /// The greatest length of a probe or confirmation that needs more requests than those lengths give, seconds.
    pub longest_seconds: f64,
    /// The lowest rate to try, requests per second. If absent: a thousandth of the closed loop's.
    pub lowest_rate: Option<f64>,
    /// The highest rate to try, requests per second. If absent: four times the closed loop's.
    pub highest_rate: Option<f64>,
    /// The confidence that the rate keeps the limits, from 0 to 1.
    pub confidence: f64,
    /// The relative width to which the rate is narrowed, from 0 to 1.
    pub width: f64,
    /// The greatest number of probes, confirmations included: at least 4.
    pub probes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            probe_seconds: 5.0,
            confirm_seconds: 15.0,
            longest_seconds: 120.0,
            lowest_rate: None,
            highest_rate: None,
            confidence: 0.95,
            width: 0.02,
            probes: 12,
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run the engine at a fixed rate with Poisson arrivals, and `observe` the result.
    Probe {
        /// Requests per second.
        rate: f64,
        /// How long to measure, seconds.
        seconds: f64,
        /// What it is for.
        purpose: Purpose,
    },
    /// The search has ended.
    Done(Answer),
}

/// Why an observation was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    /// The search has ended.
    #[error("the search has ended and takes no observation")]
    Ended,
    /// A window does not have a number for each limit.
    #[error("a window has numbers for {actual} limits: expected {wanted}")]
    WrongLimits {
        /// Limits of the search.
        wanted: usize,
        /// Numbers of the window.
        actual: usize,
    },
}

/// A search.
#[derive(Clone, Debug)]
pub struct Search {
    limits: Limits,
    /// The highest rate of the closed loop, requests per second.
    closed_loop: f64,
    options: Options,
    log: Vec<Probe>,
    /// Rates that the stage still has to visit, last first, each with its length in seconds.
    queue: Vec<(f64, f64)>,
    step: Step,
}

impl Search {
    /// Begins a search for the highest rate that keeps `limits`, near `closed_loop`: the requests per second that the engine
    /// answers if each thread sends the next request as soon as it has an answer. It may be over or under its capacity.
    pub fn new(limits: Limits, closed_loop: f64, options: Options) -> Search {
        let step = Step::Probe { rate: 0.0, seconds: 0.0, purpose: Purpose::Bracket };
        let mut search = Search { limits, closed_loop, options, log: Vec::new(), queue: Vec::new(), step };
        search.step = search.plan();
        search
    }

    /// What to do next. It stays the same until an observation is taken.
    pub fn next(&self) -> &Step {
        &self.step
    }

    /// The limits, in the order that `Window::over` must have.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes what the run that `next` asked for has shown.
    ///
    /// # Errors
    ///
    /// If the search has ended, or if a window does not have a number for each limit.
    pub fn observe(&mut self, observation: Observation) -> Result<(), ObserveError> {
        let Step::Probe { rate, seconds, purpose } = self.step else {
            return Err(ObserveError::Ended);
        };
        let wanted = self.limits.list().len();
        if let Some(window) = observation.windows.iter().find(|window| window.over.len() != wanted) {
            return Err(ObserveError::WrongLimits { wanted, actual: window.over.len() });
        }
        let confidence = match purpose {
            Purpose::Confirm => self.confidence(),
            Purpose::Bracket | Purpose::Narrow => self.options.confidence,
        };
        let judgement = observation.judge(&self.limits, confidence);
        self.log.push(Probe { rate, seconds, purpose, observation, judgement });
        self.step = self.plan();
        Ok(())
    }
}
