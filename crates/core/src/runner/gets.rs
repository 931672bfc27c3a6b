//! Reads rows by their keys outside phases, many in a call.

use super::spaces::WrittenKey;
use crate::engine::abi::*;
use crate::engine::{EngineError, Session, Status};

/// Keys read in one call.
pub(super) const OPS: usize = 64;

/// Why rows cannot be read outside phases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The engine begins or ends no session.
    #[error("{0}")]
    Session(#[from] EngineError),
    /// An op failed: the driver's text.
    #[error("{0}")]
    Op(String),
    /// A status that is no answer to a get.
    #[error("status {0}")]
    Status(u32),
    /// A status that is no answer to a read of an element.
    #[error("element {number} of list {list}: status {status}")]
    Element {
        /// The list.
        list: u64,
        /// The element's number.
        number: u64,
        /// The status.
        status: u32,
    },
    /// A status that is no answer to a scan, or a scan that does not go on.
    #[error("a scan of all elements: status {0}")]
    Scan(u32),
    /// A counter of another size.
    #[error("counter {counter} has {bytes} bytes instead of 8")]
    Counter {
        /// Its number.
        counter: u64,
        /// Its size.
        bytes: usize,
    },
    /// A counter of a larger size: its number.
    #[error("counter {0} has more than 8 bytes")]
    LongCounter(u64),
    /// Another one of these, with what was read.
    #[error("reading {what}: {error}")]
    Reading {
        /// What was read.
        what: String,
        /// The error.
        error: Box<ReadError>,
    },
}

impl ReadError {
    /// The error with what was read.
    pub fn of(self, what: impl Into<String>) -> ReadError {
        ReadError::Reading { what: what.into(), error: Box::new(self) }
    }
}

/// What a get has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A value, which was delivered.
    Value,
    /// No row.
    Nothing,
    /// A value larger than any that was written.
    Larger,
}

/// Reads the rows of `count` keys: `write_key` writes the key of an op. Returns what was
/// found for each op that was run.
pub(super) fn gets(
    session: &mut Session,
    count: usize,
    mut write_key: impl FnMut(usize, &mut [u8]) -> WrittenKey,
) -> Result<Vec<Found>, ReadError> {
    for at in 0..count {
        let arena = session.arena();
        let key = write_key(at, arena.key_mut(at));
        let op = arena.op_mut(at);
        (op.kind, op.flags, op.keyspace) = (KV_GET, 0, key.space);
        (op.key_length, op.value_length) = (key.length as u32, 0);
    }
    let executed = session.execute(0, count);
    if let Some((_, text)) = executed.error {
        return Err(ReadError::Op(text));
    }
    (0..executed.done).map(|at| found(session.arena().op(at).status)).collect()
}

fn found(status: u32) -> Result<Found, ReadError> {
    match Status::of(status) {
        Status::Ok => Ok(Found::Value),
        Status::NotFound => Ok(Found::Nothing),
        Status::Short => Ok(Found::Larger),
        // Not answers of a get: the call had an error.
        Status::Exists | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {
            Err(ReadError::Status(status))
        }
        Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {
            Err(ReadError::Status(status))
        }
    }
}
