//! Tests of `kvdyno serve` over its socket.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "resp/client.rs"]
mod client;
#[path = "cli/command.rs"]
mod command;
#[path = "resp/forms.rs"]
mod forms;
#[path = "resp/libraries.rs"]
mod libraries;
#[path = "resp/load.rs"]
mod load;
#[path = "resp/redis.rs"]
mod redis;
#[path = "resp/server.rs"]
mod server;
#[path = "resp/sizes.rs"]
mod sizes;
#[path = "resp/socket.rs"]
mod socket;
#[path = "resp/strangers.rs"]
mod strangers;
