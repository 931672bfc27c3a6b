//! `kvdyno serve` from outside, over its socket.

#[path = "resp/client.rs"]
mod client;
#[path = "resp/redis.rs"]
mod redis;
#[path = "resp/server.rs"]
mod server;
