//! Reads rows by their keys outside phases, many in a call.

use crate::engine::abi::*;
use crate::engine::{Session, Status};

/// Keys read in one call.
pub const OPS: usize = 64;

/// What a get has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A value, which was delivered.
    Value,
    /// No row.
    Nothing,
    /// A value larger than any that was written.
    Larger,
}

/// Reads the rows of `count` keys: `write_key` writes the key of an op and returns its length and keyspace. Returns what was
/// found for each op that was run. An `Err` is the engine's error.
pub fn gets(
    session: &mut Session,
    count: usize,
    mut write_key: impl FnMut(usize, &mut [u8]) -> (usize, u16),
) -> Result<Vec<Found>, String> {
    for at in 0..count {
        let arena = session.arena();
        let (length, space) = write_key(at, arena.key_mut(at));
        let op = arena.op_mut(at);
        (op.kind, op.flags, op.keyspace) = (KV_GET, 0, space);
        (op.key_length, op.value_length) = (length as u32, 0);
    }
    let executed = session.execute(0, count);
    if let Some((_, text)) = executed.error {
        return Err(text);
    }
    (0..executed.done).map(|at| found(session.arena().op(at).status)).collect()
}

fn found(status: u32) -> Result<Found, String> {
    match Status::of(status) {
        Status::Ok => Ok(Found::Value),
        Status::NotFound => Ok(Found::Nothing),
        Status::Short => Ok(Found::Larger),
        // Not answers of a get: the call had an error.
        Status::Exists | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {
            Err(format!("status {status}"))
        }
        Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {
            Err(format!("status {status}"))
        }
    }
}
