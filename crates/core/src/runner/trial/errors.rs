//! Why a trial cannot be set up, and why a phase of it is not run.

use crate::runner::companions::Unfit;
use std::io;
use std::path::PathBuf;

/// Why a trial has no record.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Its keys or values cannot be made.
    #[error("{0}")]
    Data(String),
    /// It reuses a kept database, and there is none.
    #[error("the trial reuses a kept database, but none is given")]
    NoDatabase,
    /// It does not fit the database that it would start with.
    #[error("{0}")]
    Unfit(String),
    /// The state of a database, which is kept or handed over, cannot be read or written.
    #[error("{0}")]
    State(String),
    /// That state has more versions than fit into a table.
    #[error("it has too many versions")]
    TooManyVersions,
    /// The unfinished record was not kept.
    #[error("{0}")]
    Keep(#[from] io::Error),
}

/// Why a phase is not run, as its record says.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRun {
    /// It fills a database that is full already.
    #[error("the database was reused")]
    Reused,
    /// A reopen is part of the phase, and the data would not survive it.
    #[error("it needs a reopen, and an in-memory engine would lose its data")]
    LosesData,
    /// The close before it failed.
    #[error("the database could not be closed")]
    NotClosed,
    /// The engine cannot run it, or would not run it correctly.
    #[error("{0}")]
    Lacks(String),
    /// The engine did not open the database, or not as it is needed.
    #[error("{0}")]
    NotOpened(String),
    /// Faults of members cannot happen.
    #[error("{0}")]
    Members(#[from] Unfit),
    /// Another load generator is gone.
    #[error("{0}")]
    LoadGeneratorLost(String),
    /// Other load generators cannot find the cluster of load generator 0.
    #[error("the driver does not tell how others reach its cluster: {}: {error}", file.display())]
    NoWay {
        /// The file that the driver should have written.
        file: PathBuf,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// Other load generators have no part in the database.
    #[error(
        "several load generators need one database that all of them reach, and this one is in the process of one of them, or \
         of a server that it has started"
    )]
    NotShared,
    /// A foreign database has no list of its keys.
    #[error("the engine cannot list its keys: name a file of keys with --set key.file=FILE")]
    NoKeys,
    /// The survey of a foreign database failed.
    #[error("{0}")]
    Survey(String),
    /// The files of a foreign database cannot be dropped from the page cache.
    #[error("cannot read {}: {error}", folder.display())]
    NotDropped {
        /// The folder of the database.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
}
