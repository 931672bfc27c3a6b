//! The run of a rank other than 0: it hands in its records and hears how each trial ended in all ranks.

use super::connection::Connection;
use super::secret::Secret;
use super::wire::{Ask, Hello, MOST_RUN, Tell};
use super::{PlanParts, Seat};
use std::time::Duration;

/// A rank's connection for the complete run.
pub struct Guest(Connection);

impl Guest {
    /// Joins the run of rank 0; waits for it for `patience`.
    pub fn join(seat: &Seat, secret: &Secret, plan: PlanParts, patience: Duration) -> Result<Guest, String> {
        let hello = Hello {
            version: 0,
            rank: seat.rank,
            ranks: seat.ranks,
            trial: None,
            plan,
            nonce: String::new(),
            proof: String::new(),
        };
        Connection::open(&seat.rendezvous, secret, hello, (MOST_RUN, patience)).map(Guest)
    }

    /// Hands in the record of a trial, as JSON, and waits for the outcome of all ranks. An error: the run cannot go on.
    pub fn hand_in(&self, trial: &str, record: String) -> Result<String, String> {
        self.0.send(&Ask::Record { trial: trial.to_string(), record })?;
        loop {
            match self.0.next(&mut || ())? {
                Tell::Outcome { trial: of, outcome } if of == trial => return Ok(outcome),
                Tell::Lost { rank, reason } => return Err(format!("rank {rank}: {reason}")),
                _ => {}
            }
        }
    }
}
