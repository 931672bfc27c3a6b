//! The Redis protocol in front of an engine: RESP2 and RESP3 over any driver, with many connections per thread. The
//! requests that are ready on all of them are sent to the engine as one batch.

#![warn(unreachable_pub)]

// Its `println` and others replace std's, which panic if stdout or stderr cannot be written.
#[macro_use]
extern crate kvdyno_measure;

mod client;
mod command;
mod commands;
mod error;
mod glob;
mod overlay;
mod parse;
mod record;
mod reply;
mod server;
mod socket;
mod store;
mod stripes;
mod worker;

pub use error::{ServerError, StoreError};
pub use parse::{Limits, Parser, Step};
pub use server::{Server, Settings, Shared};
pub use socket::{Listener, SocketError, UnixSocket};
