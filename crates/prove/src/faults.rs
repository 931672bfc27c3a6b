//! Faults of storage: a call of the engine's fails as on a broken or full disk, and what becomes of it is observed: whether
//! the engine reports it, and whether everything that it has acknowledged is there when the database is opened again.
//!
//! A database is prepared twice, and closed the first time only. Each fault then has a copy of one of them and a process of its own, in
//! which one system call, chosen by the seed, fails; a third process, without faults, opens what is left and compares it. `disk` makes
//! the disk under the database fail instead of a call.

mod disk;
mod pass;
mod probe;

pub use pass::Pass;
pub use probe::{Target, probe};

use kvdyno_core::results::Durability;
use kvdyno_measure::sync_calls::FaultyCalls;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};
use thiserror::Error;

/// Why an engine without files is not tested.
pub const IN_MEMORY: &str = "it keeps nothing in files";

/// There is no fault of this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{word}` is no fault; expected one of {}", FaultKind::VARIANTS.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownFault {
    word: String,
}

/// What goes wrong; in the order in which it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FaultKind {
    /// One sync fails with EIO.
    SyncEio,
    /// One write fails with EIO.
    WriteEio,
    /// One read fails with EIO.
    ReadEio,
    /// From one call on there is no free space: ENOSPC.
    #[serde(rename = "enospc")]
    #[strum(serialize = "enospc")]
    NoSpace,
    /// From one call on no file can be opened: EMFILE.
    #[serde(rename = "emfile")]
    #[strum(serialize = "emfile")]
    TooManyFiles,
    /// One write is interrupted before it has written anything: EINTR.
    WriteEintr,
    /// One shared mapping of a file fails with ENOMEM.
    MapEnomem,
    /// Half of one write is done, and the call returns the number of its bytes.
    WriteShort,
    /// One write of the disk fails: the next sync returns EIO, and the page is not written again.
    DiskEio,
}

use FaultKind::*;

impl FaultKind {
    /// The word for it on the command line and in titles.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The calls that fail, and their error; `None` if the disk fails instead.
    fn failing(self) -> Option<(FaultyCalls, i32)> {
        match self {
            SyncEio => Some((FaultyCalls::Syncs, libc::EIO)),
            WriteEio => Some((FaultyCalls::Writes, libc::EIO)),
            ReadEio => Some((FaultyCalls::Reads, libc::EIO)),
            NoSpace => Some((FaultyCalls::Growth, libc::ENOSPC)),
            TooManyFiles => Some((FaultyCalls::Opens, libc::EMFILE)),
            WriteEintr => Some((FaultyCalls::Writes, libc::EINTR)),
            MapEnomem => Some((FaultyCalls::Maps, libc::ENOMEM)),
            // A short write returns no error.
            WriteShort => Some((FaultyCalls::PartialWrites, 0)),
            DiskEio => None,
        }
    }

    /// Whether all later calls fail too.
    fn lasts(self) -> bool {
        matches!(self, NoSpace | TooManyFiles)
    }
}

impl FromStr for FaultKind {
    type Err = UnknownFault;

    fn from_str(word: &str) -> Result<FaultKind, UnknownFault> {
        let found = FaultKind::VARIANTS.iter().copied().find(|kind| kind.name() == word);
        found.ok_or_else(|| UnknownFault { word: word.into() })
    }
}

/// What an engine did while the fault was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum Reaction {
    /// It returned an error.
    Reported,
    /// It returned no error, and all its answers are right.
    Absorbed,
    /// It acknowledged a commit of which one sync had failed and another one had not: a kernel may have dropped the pages at the first.
    Repeated,
    /// Its process ended.
    Crashed,
    /// It made no progress.
    Hung,
    /// It acknowledged what is not there, or not as it promises, or answered wrongly.
    #[strum(serialize = "BROKEN")]
    Broken,
}

/// One fault in one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The number of the call that failed, of those of its kind, from 1; with `disk-eio`, of the write of the disk.
    pub call: u64,
    /// Whether the database was not closed before, but its process killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_kill: bool,
    /// What the engine did.
    pub reaction: Reaction,
    /// What it said, or what is wrong; empty if it absorbed the fault.
    pub text: String,
}

/// What one engine does at one kind of fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The engine.
    pub engine: String,
    /// The version that its driver reports; `None` if it was not opened.
    pub version: Option<String>,
    /// The level that its driver claims.
    pub level: Durability,
    /// The kind of fault.
    pub fault: FaultKind,
    /// The seed of keys, values and the choice of calls.
    pub seed: u64,
    /// Calls of that kind, or writes of the disk, in processes without faults: one on a database that was closed before, and one on one
    /// that was not.
    pub calls: u64,
    /// The faults that were tried.
    pub points: Vec<Point>,
    /// Why nothing was tried; `None` if something was.
    pub skipped: Option<String>,
}

impl Row {
    /// The reactions with their numbers, the most frequent first.
    pub fn reactions(&self) -> Vec<(Reaction, usize)> {
        let mut counts: Vec<(Reaction, usize)> = Vec::new();
        for point in &self.points {
            match counts.iter_mut().find(|(reaction, _)| *reaction == point.reaction) {
                Some((_, count)) => *count += 1,
                None => counts.push((point.reaction, 1)),
            }
        }
        counts.sort_by_key(|(reaction, count)| (std::cmp::Reverse(*count), *reaction));
        counts
    }

    /// The first point with a reaction.
    pub fn first(&self, reaction: Reaction) -> Option<&Point> {
        self.points.iter().find(|point| point.reaction == reaction)
    }

    /// Whether a promise was broken.
    pub fn is_broken(&self) -> bool {
        self.first(Reaction::Broken).is_some()
    }
}
