//! What is watched of a process that may be killed at one of its calls, and what was seen of it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitStatus;

/// A moment in the life of a process: one of its calls that change a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// The number of the call, from 1.
    pub call: u64,
    /// Page boundaries of this write up to which it was done; 0: it was not begun.
    pub pages: u32,
}

/// Which calls are watched, and when the process is killed.
#[derive(Clone, Debug)]
pub struct Watch {
    /// An absolute path without links; calls that change files elsewhere are not counted.
    pub folder: PathBuf,
    /// The process is killed there; `None`: nowhere.
    pub until: Option<Point>,
}

/// A call that changes the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What it does, in words: `rename snap.tmp -> snap`.
    pub text: String,
    /// Page boundaries of the file within a write: at each of them a kill may end it.
    pub boundaries: u32,
}

/// What changes a folder without a call for each change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display)]
pub enum Unseen {
    /// Stores to a file that is mapped for writing, shared.
    #[strum(to_string = "writes through a map of {0}")]
    Map(String),
    /// Requests through `io_uring`: only that they are handed over is a call.
    #[strum(to_string = "single writes through io_uring")]
    IoUring,
    /// Requests through `io_submit`: only that they are handed over is a call.
    #[strum(to_string = "single writes through io_submit")]
    IoSubmit,
    /// System calls by the numbers of another architecture.
    #[strum(to_string = "system calls of another architecture")]
    Foreign,
    /// Calls on files that the process hides from this one.
    #[strum(to_string = "calls on files that it hides from other processes")]
    Hidden,
}

/// How a process ended, and what it did until then.
#[derive(Debug)]
pub struct Ran {
    /// The calls that changed the folder, in order; the last one is that at which it was killed, if it was.
    pub changes: Vec<Change>,
    /// What else may have changed it.
    pub unseen: BTreeSet<Unseen>,
    /// Where it was killed; `None` if it never came there.
    pub killed: Option<Point>,
    /// Whether it was killed because it made no progress.
    pub is_stalled: bool,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub printed: String,
}
