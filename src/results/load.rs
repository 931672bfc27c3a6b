//! Reads records and runs from JSON that may be newer, damaged or hostile.

use super::{Record, Run, SCHEMA};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// The largest record that is read, bytes; real ones have some hundred kilobytes.
pub(super) const RECORD_LIMIT_BYTES: u64 = 256 << 20;

/// The largest `run.json` and the largest journal that are read, bytes.
pub(super) const RUN_LIMIT_BYTES: u64 = 64 << 20;

/// Why a text is no record or run of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A newer tool wrote it.
    NewerSchema {
        /// Its schema; ours is [`SCHEMA`].
        found: u32,
    },
    /// It is not JSON, or lacks something, or has something of another type.
    Invalid {
        /// What was expected, with line and column.
        reason: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NewerSchema { found } => write!(
                out,
                "it has schema {found}, and this kvdyno reads schemas up to {SCHEMA}: use the kvdyno that wrote it, or a newer one"
            ),
            LoadError::Invalid { reason } => {
                write!(out, "it is not what kvdyno writes: {reason}: restore the file, or measure again")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The one field that all schemas share.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

/// Reads a record; fails on a newer schema and on anything that is not a record. Never panics, whatever the bytes.
pub fn parse_record(json: &[u8]) -> Result<Record, LoadError> {
    parse(json)
}

/// Reads a `run.json`; fails on a newer schema and on anything that is not a run. Never panics, whatever the bytes.
pub fn parse_run(json: &[u8]) -> Result<Run, LoadError> {
    parse(json)
}

fn parse<Kept: DeserializeOwned>(json: &[u8]) -> Result<Kept, LoadError> {
    // The schema first: what a newer tool wrote may have any shape, and the user is to hear about the version.
    let versioned: Versioned = serde_json::from_slice(json).map_err(invalid)?;
    match versioned.schema {
        0 => Err(LoadError::Invalid { reason: "there is no schema 0".to_string() }),
        1..=SCHEMA => serde_json::from_slice(json).map_err(invalid),
        found => Err(LoadError::NewerSchema { found }),
    }
}

fn invalid(error: serde_json::Error) -> LoadError {
    LoadError::Invalid { reason: error.to_string() }
}
