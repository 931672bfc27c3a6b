//! The run of a load generator other than 0: it hands in its records and hears how each trial ended in all load generators.

use super::connection::{Connection, Gone, JoinError};
use super::secret::Secret;
use super::wire::{Ask, Hello, MOST_RUN, Tell};
use super::{PlanParts, Seat};
use std::time::Duration;

/// A load generator's connection for the complete run.
pub struct Guest(Connection);

impl Guest {
    /// Joins the run of load generator 0; waits for it for `patience`.
    pub fn join(
        seat: &Seat,
        secret: &Secret,
        plan: PlanParts,
        patience: Duration,
    ) -> Result<Guest, JoinError> {
        let hello = Hello {
            version: 0,
            load_generator: seat.load_generator,
            load_generators: seat.load_generators,
            trial: None,
            plan,
            nonce: String::new(),
            proof: String::new(),
        };
        Connection::open(&seat.rendezvous, secret, hello, MOST_RUN, patience).map(Guest)
    }

    /// Hands in the record of a trial, as JSON, and waits for the outcome of all load generators, and why the run ends with it,
    /// if it does. None: `is_stopped` has ended the wait. An error: the run cannot go on.
    pub fn hand_in(
        &self,
        trial: &str,
        record: String,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(String, Option<String>)>, Gone> {
        // If that fails, what load generator 0 has said before says more.
        let sent = self.0.send(&Ask::Record { trial: trial.to_string(), record });
        loop {
            match self.0.next_unless(is_stopped) {
                Ok(Some(Tell::Outcome { trial: of, outcome, broken })) if of == trial => {
                    return Ok(Some((outcome, broken)));
                }
                Ok(Some(Tell::Lost { load_generator, reason })) => {
                    return Err(Gone::Lost { load_generator, reason });
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(gone) => return Err(sent.err().map_or(gone, Gone::Broken)),
            }
        }
    }

    /// Waits until load generator 0 ends the run: whoever ends before counts as lost. `is_stopped` ends the wait.
    pub fn await_end(&self, is_stopped: &dyn Fn() -> bool) {
        while let Ok(Some(tell)) = self.0.next_unless(is_stopped) {
            if matches!(tell, Tell::Lost { .. }) {
                return;
            }
        }
    }
}
