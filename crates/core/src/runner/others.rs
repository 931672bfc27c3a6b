//! The other load generators of a run: their records become one.

use crate::results::load_generators::{LoadGeneratorError, OfLoadGenerator, merged};
use crate::results::{Cause, Outcome, Record, Trial, parse_record};
use kvdyno_cluster::{Guest, Hub, Seat};
use kvdyno_measure::signals;

/// A run's place among the load generators, and its connection to them.
pub struct Company {
    /// The load generator, and where the load generators meet.
    pub seat: Seat,
    /// The connection.
    pub side: Side,
}

/// The side of a connection.
pub enum Side {
    /// Load generator 0.
    Host(Hub),
    /// The others.
    Guest(Guest),
}

impl Company {
    /// Merges the record of a trial with those of the other load generators (load generator 0), or hands it in and takes the
    /// common outcome (the others). Also returns why the run cannot go on, if it cannot. None: the user has interrupted the
    /// run.
    pub fn settle(&self, trial: &Trial, record: Record) -> Option<(Record, Option<String>)> {
        let is_stopped = || signals::interrupts() >= 2;
        let ended = |reason: &str| format!("the run cannot go on: {reason}");
        match &self.side {
            Side::Host(hub) => {
                let handed = hub.gather(&trial.id, trial.load_generators, &is_stopped)?;
                let others = handed.into_iter().map(|handed| -> OfLoadGenerator {
                    let json = handed.map_err(|reason| LoadGeneratorError::Lost(reason.to_string()))?;
                    Ok(parse_record(json.as_bytes())?)
                });
                let whole = merged(trial, [Ok(record)].into_iter().chain(others).collect());
                let outcome = serde_json::to_string(&whole.outcome).unwrap_or_default();
                let stopped = (signals::interrupts() > 0).then_some("load generator 0: it was interrupted");
                let gone = hub.announce(&trial.id, &outcome, stopped).err().filter(|_| stopped.is_none());
                Some((whole, gone.map(|reason| format!("a load generator is gone: {reason}"))))
            }
            Side::Guest(guest) => {
                let failed = |record: Record, reason: String| {
                    let outcome = Outcome::Failed { cause: Cause::LoadGeneratorLost, text: reason.clone() };
                    Some((Record { outcome, ..record }, Some(ended(&reason))))
                };
                let json = match serde_json::to_string(&record) {
                    Ok(json) => json,
                    Err(error) => return failed(record, error.to_string()),
                };
                let (outcome, broken) = match guest.hand_in(&trial.id, json, &is_stopped) {
                    Ok(told) => told?,
                    // Ctrl-C in a terminal reaches all load generators, and load generator 0 may have ended before its trial.
                    Err(_) if signals::interrupts() > 0 => return None,
                    Err(gone) => return failed(record, gone.to_string()),
                };
                match serde_json::from_str(&outcome) {
                    Ok(outcome) => {
                        // Ctrl-C in a terminal reaches all load generators, which end by themselves then.
                        let broken = broken.filter(|_| signals::interrupts() == 0);
                        Some((Record { outcome, ..record }, broken.map(|reason| ended(&reason))))
                    }
                    Err(error) => failed(record, format!("its message cannot be read: {error}")),
                }
            }
        }
    }

    /// Waits in a load generator that has no more trials until load generator 0 ends the run.
    pub fn await_end(&self) {
        if let Side::Guest(guest) = &self.side {
            guest.await_end(&|| signals::interrupts() > 0);
        }
    }
}
