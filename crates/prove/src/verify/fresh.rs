//! Close and reopen in a fresh process: a database that exists only in the memory of one process is not stored.
//!
//! A file has what the fresh process needs: one line of JSON on how to open the database; then the rows that must be
//! present, each preceded by its keyspace and the lengths of key and value.

use super::failure::Failure;
use super::model::Model;
use super::subject::{Setup, Subject};
use crate::machine::MachineError;
use kvdyno_core::engine::Engine;
use kvdyno_core::engine::abi::*;
use kvdyno_measure::Clock;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs [`reopened`] with the file in a fresh process; `Err` holds what it found, or how it ended.
pub type Fresh<'f> = &'f (dyn Fn(&Path) -> Result<(), Failure> + Sync);

#[derive(Serialize, Deserialize)]
struct Head {
    folder: PathBuf,
    level: u32,
    keyspaces: u32,
    /// keyspace, index_keyspace, from, length, clustering
    indexes: Vec<(u16, u16, u32, u32, u32)>,
    threads: u32,
    settings: Vec<(String, String)>,
    ops: usize,
    key_bytes: usize,
    value_bytes: usize,
    out_bytes: usize,
}

/// Writes the file for a closed database.
pub(super) fn write(file: &Path, setup: &Setup, model: &Model) -> Result<(), Failure> {
    let index =
        |index: &kv_index| (index.keyspace, index.index_keyspace, index.from, index.length, index.clustering);
    let head = Head {
        folder: setup.folder.clone(),
        level: setup.level,
        keyspaces: setup.keyspaces,
        indexes: setup.indexes.iter().map(index).collect(),
        threads: setup.threads,
        settings: setup.settings.clone(),
        ops: setup.ops,
        key_bytes: setup.key_bytes,
        value_bytes: setup.value_bytes,
        out_bytes: setup.out_bytes,
    };
    let mut bytes = serde_json::to_vec(&head)?;
    bytes.push(b'\n');
    for (space, key, value) in model.rows() {
        bytes.extend(space.to_le_bytes());
        bytes.extend((key.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(key);
        bytes.extend(value);
    }
    Ok(fs::write(file, bytes).map_err(MachineError::file("write", file))?)
}

/// The next `count` bytes.
fn next<'b>(rest: &mut &'b [u8], count: usize) -> Result<&'b [u8], Failure> {
    let (taken, left) = rest.split_at_checked(count).ok_or(Failure::Check("the file of rows ends early"))?;
    *rest = left;
    Ok(taken)
}

fn number(rest: &mut &[u8], bytes: usize) -> Result<usize, Failure> {
    Ok(next(rest, bytes)?.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// Runs in the fresh process: opens the database that the file describes and compares it with the rows in the file.
pub fn reopened(engine: &Engine, file: &Path) -> Result<(), Failure> {
    let bytes = fs::read(file).map_err(MachineError::file("read", file))?;
    let end = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or(Failure::Check("the file of rows has no header"))?;
    let head: Head = serde_json::from_slice(&bytes[..end])?;
    let index = |(keyspace, index_keyspace, from, length, clustering)| kv_index {
        keyspace,
        index_keyspace,
        from,
        length,
        clustering,
    };
    let setup = Setup {
        folder: head.folder,
        create: false,
        level: head.level,
        keyspaces: head.keyspaces,
        indexes: head.indexes.into_iter().map(index).collect(),
        threads: head.threads,
        settings: head.settings,
        clock: Clock::monotonic(),
        ops: head.ops,
        key_bytes: head.key_bytes,
        value_bytes: head.value_bytes,
        out_bytes: head.out_bytes,
        faults: Default::default(),
    };
    let mut subject = Subject::open(engine, setup, None)?;
    let mut rest = &bytes[end + 1..];
    while !rest.is_empty() {
        let (space, key, value) = (number(&mut rest, 2)?, number(&mut rest, 4)?, number(&mut rest, 4)?);
        let (key, value) = (next(&mut rest, key)?, next(&mut rest, value)?);
        subject.model.insert(space as u16, key, value);
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}
