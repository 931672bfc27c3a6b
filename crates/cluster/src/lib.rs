//! Many load generators against one database: where their processes meet, agree on a common start and hear of each other's
//! end.
//!
//! Load generator 0 has the [`Hub`]. The process of each load generator's run connects to it once, and the process of each
//! trial connects anew, so that the end of either is noticed. Messages are JSON behind a length. Whoever connects proves that
//! it knows a secret, and so does the hub; what follows is neither encrypted nor signed (docs/clusters.md).

#![warn(unreachable_pub)]

mod connection;
mod guest;
mod hub;
mod member;
mod secret;
#[cfg(test)]
mod tests;
mod wire;

pub use connection::{Gone, JoinError, NoSuchPlace, Refusal};
pub use guest::Guest;
pub use hub::{AwaitError, Hub, ListenError, RunEnd};
pub use member::{Agreed, Event, Lost, Member};
pub use secret::{Secret, SecretError, VARIABLE as SECRET, nonce};
pub use wire::Broken;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The place of a process among the load generators of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// From 0.
    pub load_generator: u32,
    /// The number of load generators of the run.
    pub load_generators: u32,
    /// Where load generator 0 listens: `HOST:PORT`.
    pub rendezvous: String,
    /// The file with the secret; none: it is in the environment.
    pub secret_file: Option<PathBuf>,
}

/// What must be equal in all load generators, with a short digest of each part.
pub type PlanParts = Vec<(String, String)>;
