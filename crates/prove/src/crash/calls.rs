//! `--mode calls`: a process that makes a short script of commits is killed before each of its calls that change its folder, at page
//! boundaries within its writes, and after the last one; then at calls of the process that recovers and goes on. No kill is at a
//! random moment, so windows of microseconds are hit, and a call repeats what was found.
//!
//! `life` is what the processes do that are killed, `plan` says where they are killed, and `bench` is the process that forks and
//! kills them and reads what is left.

mod bench;
mod life;
mod plan;

pub use bench::CallsTask;
pub use plan::{At, UnknownAt};

use super::no_result::Stopped;
use super::round::start;
use super::script::Script;
use super::worker::Subject;
use super::{Cell, Round};
use crate::child::{Ended, follow};
use crate::machine::MachineError;
use kvdyno_core::results::Durability;
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::sync_calls::Point;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// What `--mode calls` does at a crash.
pub(super) const DEVICE: &str = "the kernel lives on, and what was written to files stays; the process is killed before a call that \
    changes the folder, at a page boundary within a write, or after the last call";
/// The longest time without a word of the process that kills others, in limits of one of them: a round has up to three. It may be run
/// again to keep the database, and before a call of two processes is repeated, the calls of the second are counted.
const PATIENCE: u32 = 10;

/// What is known of the process that is killed, from one that was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its calls that change its folder.
    pub calls: u64,
    /// Page boundaries within its writes at which it is killed, too.
    pub boundaries: u64,
    /// Rounds in which the call with the same number was another one: the engine's threads run as the kernel schedules them.
    pub moved: u32,
    /// What changes the folder without a call for each change.
    pub unseen: Vec<String>,
}

/// The call at which a process was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtCall {
    /// Its number among the calls that change the folder, from 1; one more than there are if the process was killed after the last one.
    pub call: u64,
    /// Page boundaries up to which this write was done; 0: it was not begun.
    pub pages: u32,
    /// Calls of a process that is not killed.
    pub calls: u64,
    /// What it does; empty after the last one.
    pub what: String,
}

/// The calls at which the processes of a round were killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Of the process that created the database.
    pub first: AtCall,
    /// Of the one that opened it after that; absent if it was not killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<AtCall>,
}

impl Called {
    /// As the command line names it: `--call CALL` repeats it.
    pub fn at(&self) -> At {
        let point = |at: &AtCall| Point { call: at.call, pages: at.pages };
        At { first: point(&self.first), second: self.second.as_ref().map(point) }
    }
}

impl fmt::Display for AtCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AtCall { call, pages, calls, what } = self;
        match pages {
            _ if what.is_empty() => write!(out, "after the last of {calls} calls"),
            0 => write!(out, "before call {call} of {calls} ({what})"),
            pages => write!(out, "at page boundary {pages} within call {call} of {calls} ({what})"),
        }
    }
}

impl fmt::Display for Called {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.first)?;
        self.second.as_ref().map_or(Ok(()), |second| write!(out, ", and the process after it {second}"))
    }
}

/// What the process tells that kills others.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    /// The engine's version, and the effective level.
    Opened(String, Durability),
    /// What a process that is not killed does.
    Seen(Seen),
    /// A round.
    Round(Box<Round>),
    /// No further rounds are run.
    Stopped {
        /// Why.
        reason: String,
        /// Whether the engine failed, and not this machine.
        has_failed: bool,
        /// Whether the engine is none for this test.
        is_unsuitable: bool,
    },
}

/// What is to be done.
pub(super) struct Order<'o> {
    pub subject: &'o Subject,
    /// Commits, without the choice of a seed.
    pub script: Script,
    /// The folder for databases.
    pub folder: &'o Path,
    /// The most rounds; `None`: all kills of one process, and some of two.
    pub most: Option<u32>,
    /// Only this round is run.
    pub only: Option<At>,
    /// The folder for databases that are wrong.
    pub keep: Option<&'o Path>,
    pub stall: Duration,
}

/// Runs a cell.
pub(super) fn calls(
    order: &Order<'_>,
    cell: &mut Cell,
    progress: &mut dyn FnMut(u32),
) -> Result<(), Stopped> {
    let name = format!("{}-{}", order.subject.engine, order.subject.level);
    let name: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let data = DataFolder::create(order.folder, "crash", &name).map_err(MachineError::from)?;
    let outcome = run(order, &data, cell, progress);
    let removed = data.remove().map_err(MachineError::from);
    outcome?;
    Ok(removed?)
}

fn run(
    order: &Order<'_>,
    data: &DataFolder,
    cell: &mut Cell,
    progress: &mut dyn FnMut(u32),
) -> Result<(), Stopped> {
    let folder = data.database();
    // As the kernel names open files.
    let folder = folder.canonicalize().map_err(|error| MachineError::Path { path: folder, error })?;
    let task = CallsTask {
        subject: order.subject.clone(),
        script: plan::varied(order.script),
        folder,
        most: order.most,
        only: order.only,
        keep: order.keep.map(Path::to_path_buf),
        file_system: cell.file_system.clone(),
        stall: order.stall,
    };
    let mut process = start(&task, order.subject)?;
    progress(0);
    let ended = follow(&mut process, order.stall * PATIENCE, |told| match told {
        Told::Opened(version, level) => {
            cell.version = Some(version).filter(|version| !version.is_empty());
            cell.level = level;
        }
        Told::Seen(seen) => cell.seen = Some(seen),
        Told::Round(round) => {
            cell.rounds.push(*round);
            progress(cell.rounds.len() as u32);
        }
        Told::Stopped { reason, has_failed, is_unsuitable } => {
            if is_unsuitable {
                cell.rounds.clear();
            }
            cell.has_failed = has_failed;
            cell.skipped = Some(reason);
        }
    });
    match ended {
        Ended::Interrupted => Err(Stopped::Interrupted),
        ended if ended.is_success() => Ok(()),
        ended => Err(MachineError::Bench(format!("the process that kills others: {ended}")).into()),
    }
}
