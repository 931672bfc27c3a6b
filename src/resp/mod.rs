//! The Redis protocol in front of an engine: RESP2 and RESP3 over any driver, many connections to a thread, what is
//! ready on all of them to the engine as one batch.

mod client;
mod command;
mod commands;
mod glob;
mod overlay;
mod parse;
mod record;
mod reply;
mod server;
mod store;
mod stripes;
mod worker;

pub use parse::{Limits, Parser, Step};
pub use server::{Server, Settings, Shared};
