//! `crash`: crashes engines again and again and looks at what is left. A process makes commits of a known script, is killed at a
//! random moment, and another process reads the database. The oracle is outside the tested file system: counters of started
//! and acknowledged commits in shared memory.
//!
//! `script` says what is written, `worker` writes it, `medium` is where the database lies and how it crashes, `verifier` reads
//! it, `oracle` judges, `plan` says when, `round` makes one crash of all that, `course` says how it went, and `class` what all rounds
//! together show. `forks` reads databases in forked processes. `calls` kills a process at each of its calls. `evidence` keeps a
//! database that is wrong, and `report` writes beside it what the engine's author needs. `recording` logs what a process writes,
//! `states` are those that a power cut may leave of that, and `replay` rebuilds and judges them.

mod board;
mod calls;
mod class;
mod course;
mod evidence;
mod forks;
mod medium;
mod no_result;
mod oracle;
mod plan;
mod recording;
mod replay;
mod report;
mod round;
mod script;
mod states;
#[cfg(test)]
mod tests;
mod verifier;
mod worker;

pub use board::Stage;
pub use calls::{At, AtCall, Called, CallsTask, Seen, UnknownAt};
pub use class::{Outcome, outcome};
pub use course::{Again, Course};
pub use evidence::{KeptError, kept, read_again};
pub use forks::ReaderTask;
pub use no_result::{Failure, Stopped};
pub use oracle::Verdict;
pub use recording::DeviceTask;
pub(crate) use recording::FailingDevice;
pub use report::{Repeat, report};
pub use states::StateKind;
pub use verifier::VerifierTask;
pub(crate) use worker::Subject;
pub use worker::WorkerTask;

pub use kvdyno_core::results::crash::Mode;

use crate::machine::MachineError;
use evidence::Keeper;
use kvdyno_core::engine::Engine;
use kvdyno_core::engine::abi::*;
use kvdyno_core::results::Durability;
use kvdyno_core::results::certificate::States;
use kvdyno_measure::signals;
use kvdyno_measure::volume::Volume;
use medium::{Cut, Killed, Medium, kind_of, unless_at_fault};
use plan::small_buffers;
use replay::Replay;
use round::{Rounds, round};
use script::Script;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Threads that write, where the engine can have more than one.
const THREADS: u32 = 2;

/// Where a cell crashes its databases.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a folder; its process is killed at a random moment.
    Folder(PathBuf),
    /// The same, in half of the rounds in a folder in memory.
    Folders {
        /// A folder on a disk.
        disk: PathBuf,
        /// A folder in memory.
        memory: PathBuf,
    },
    /// In a folder; its process is killed at each of its calls.
    Calls {
        /// The folder.
        folder: PathBuf,
        /// The most rounds; `None`: all kills of one process, and some of two.
        most: Option<u32>,
        /// Only this round is run.
        only: Option<At>,
    },
    /// In a file system of its own, which is cut off.
    Volume {
        /// The folder for its image.
        images: PathBuf,
        /// The name of the file system.
        kind: String,
        /// The size of its image.
        bytes: u64,
    },
    /// In a file system of its own on a device that records, from which states are rebuilt.
    Device {
        /// The folder for its image.
        images: PathBuf,
        /// The name of the file system.
        kind: String,
        /// The size of its image.
        bytes: u64,
        /// Whether blocks may be torn at sectors.
        tears: bool,
        /// Only the state with this number is rebuilt.
        only: Option<u32>,
    },
}

/// What is to be crashed, and how often.
#[derive(Clone, Debug)]
pub struct Order {
    /// The engine, as users type it.
    pub engine: String,
    /// Options to set, `name=value`.
    pub options: Vec<(String, String)>,
    /// The requested level.
    pub level: Durability,
    /// Where, and how.
    pub place: Place,
    /// The number of crashes, or of states.
    pub rounds: u32,
    /// The seed of the first round, or of the first recording; that of each other one is larger by 1.
    pub seed: u64,
    /// How long a process may take for a step without progress.
    pub stall: Duration,
    /// The folder for databases that are wrong; `None` if they are not kept.
    pub keep: Option<PathBuf>,
}

/// One crash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Its seed: `--rounds 1 --seed SEED` repeats it. For a rebuilt state that of its recording.
    pub seed: u64,
    /// What was left.
    pub verdict: Verdict,
    /// Details of a verdict other than OK.
    pub detail: Option<String>,
    /// What the process did when it was crashed.
    pub stage: Stage,
    /// Whether the recovery was crashed, too.
    pub in_recovery: bool,
    /// Commits acknowledged by all threads before the crash.
    pub acked: u64,
    /// Commits started.
    pub started: u64,
    /// Acknowledged commits that are missing, if the rest is complete.
    pub lost: u64,
    /// Whether no acknowledged commit is left.
    pub is_empty: bool,
    /// Mounting the file system after the crash, nanoseconds; absent where nothing is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount_ns: Option<u64>,
    /// The first open after the crash, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_ns: Option<u64>,
    /// The open after that, after a clean close, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reopen_ns: Option<u64>,
    /// Which state of the device was rebuilt; absent if the crash was a real one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// The calls at which processes were killed; absent if the moment was a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<Called>,
    /// The folder in which the database is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
    /// How it went until then.
    #[serde(default, flatten)]
    pub course: Course,
}

/// A state of a device that was rebuilt from a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Its number: `--state NUMBER` rebuilds it alone.
    pub state: u32,
    /// What is missing in it.
    pub kind: StateKind,
    /// Entries of the log before the crash. The first one is made when the database is created.
    pub position: u64,
    /// Entries of the log.
    pub entries: u64,
    /// Blocks that were written after the last flush.
    pub pending: u64,
    /// How many of them the device has kept.
    pub kept: u64,
    /// The one of which it has kept only a part; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn: Option<Torn>,
    /// The smallest state found that fails in the same way; absent if none was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest: Option<Smallest>,
}

/// A block of which a device has kept only a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torn {
    /// Its number on the device.
    pub block: u64,
    /// The sectors of 512 bytes in it that are kept, from 0.
    pub sectors: Vec<u32>,
}

/// A state that fails like another one, with fewer blocks after the last flush or at an earlier position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smallest {
    /// Entries of the log before the crash.
    pub position: u64,
    /// The blocks of the device that were written after the last flush and are kept.
    pub blocks: Vec<u64>,
    /// Commits acknowledged by all threads before the crash.
    pub acked: u64,
    /// States that were checked to find it.
    pub checks: u32,
}

/// All crashes of one kind of an engine at one level.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The engine.
    pub engine: String,
    /// The library's version.
    pub version: Option<String>,
    /// Options that were set.
    pub options: Vec<(String, String)>,
    /// The effective level: the driver's claim.
    pub level: Durability,
    /// The kind of crash.
    pub mode: Mode,
    /// The tested file system.
    pub file_system: String,
    /// What the device below it does at a crash.
    pub device: String,
    /// Threads that wrote.
    pub threads: u32,
    /// What is known of the calls of its processes; absent if they were crashed in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// The states of its recordings, and how many of them were judged; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<States>,
    /// The limit on their number; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_states: Option<u64>,
    /// The crashes, in order.
    pub rounds: Vec<Round>,
    /// Why some or all rounds were not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Whether that was a failure of the engine, and not of this machine.
    #[serde(default)]
    pub has_failed: bool,
}

/// Runs all rounds of a cell. `progress` is called before each round with its number, from 0.
pub fn crash(engine: &Engine, order: &Order, mut progress: impl FnMut(u32)) -> Cell {
    let capabilities = engine.capabilities();
    let has = |capability: u64| capabilities & capability != 0;
    let is_at_calls = matches!(order.place, Place::Calls { .. });
    let threads = if has(KV_SINGLE_THREAD) || is_at_calls { 1 } else { THREADS };
    let (mode, kind) = match &order.place {
        Place::Folder(folder) => (Mode::Kill, kind_of(folder)),
        Place::Calls { folder, .. } => (Mode::Calls, kind_of(folder)),
        Place::Folders { disk, memory } => (Mode::Kill, format!("{} and {}", kind_of(disk), kind_of(memory))),
        Place::Volume { kind, .. } => (Mode::Cut, kind.clone()),
        Place::Device { kind, .. } => (Mode::Replay, kind.clone()),
    };
    let mut cell = Cell {
        engine: order.engine.clone(),
        version: None,
        options: order.options.clone(),
        level: order.level,
        mode,
        file_system: kind,
        device: String::new(),
        threads,
        seen: None,
        states: Vec::new(),
        most_states: matches!(order.place, Place::Device { .. }).then_some(order.rounds.into()),
        rounds: Vec::new(),
        skipped: unsuitable(engine),
        has_failed: false,
    };
    if cell.skipped.is_some() {
        return cell;
    }
    let subject = Subject {
        engine: order.engine.clone(),
        plugin: engine.plugin_file().map(PathBuf::from),
        level: order.level,
        options: order.options.clone(),
        threads,
    };
    let mut keeper = Keeper::of(order, mode, &cell.file_system);
    let script = Script::of(order.seed, has(KV_CAN_DELETE), has(KV_TRANSACTION));
    let name = format!("{}-{}", order.engine, order.level);
    let mut medium: Box<dyn Medium> = match &order.place {
        Place::Folder(folder) => Box::new(Killed::in_folder(folder, &name)),
        Place::Folders { disk, memory } => Box::new(Killed::in_folder(disk, &name).also_in(memory)),
        Place::Calls { folder, most, only } => {
            cell.device = calls::DEVICE.into();
            let order = calls::Order {
                subject: &subject,
                script,
                folder,
                most: *most,
                only: *only,
                keep: order.keep.as_deref(),
                stall: order.stall,
            };
            if let Err(stopped) = calls::calls(&order, &mut cell, &mut progress) {
                stopped.tell(&mut cell);
            }
            return cell;
        }
        Place::Volume { images, kind, bytes } => match Volume::create(images, kind, *bytes) {
            Ok(volume) => Box::new(Cut::on(volume, images)),
            Err(reason) => {
                cell.skipped = Some(reason.to_string());
                return cell;
            }
        },
        Place::Device { images, kind, bytes, tears, only } => {
            cell.device = if *tears { replay::TEARING_DEVICE } else { replay::DEVICE }.into();
            let order = Replay {
                subject: &subject,
                script,
                states: order.rounds,
                tears: *tears,
                only: *only,
                seed: order.seed,
                stall: order.stall,
            };
            let outcome = Volume::formatted(images, kind, *bytes)
                .map_err(|error| Stopped::from(MachineError::from(error)))
                .and_then(|mut volume| replay::replay(&order, &mut volume, &mut cell, keeper, &mut progress));
            if let Err(stopped) = outcome {
                stopped.tell(&mut cell);
            }
            return cell;
        }
    };
    cell.device = medium.device();
    let buffers = small_buffers(&engine.options(), &order.options);
    let mut rounds = Rounds::of(&subject, buffers, order.stall);
    for number in 0..order.rounds {
        progress(number);
        let seed = order.seed.wrapping_add(u64::from(number));
        let script = Script { seed, ..script };
        keeper.iter_mut().for_each(Keeper::begin);
        let outcome = round(&mut rounds, script, medium.as_mut(), &mut cell, keeper.as_mut());
        let outcome = unless_at_fault(outcome, |said| medium.trouble(said), keeper.as_mut());
        let removed = medium.discard();
        match outcome {
            Ok(round) => cell.rounds.push(round),
            Err(stopped) => stopped.tell(&mut cell),
        }
        if let Err(error) = removed {
            cell.skipped.get_or_insert(error.to_string());
        }
        if cell.skipped.is_some() {
            break;
        }
    }
    cell
}

/// Why an engine has nothing to test.
fn unsuitable(engine: &Engine) -> Option<String> {
    let capabilities = engine.capabilities();
    let reasons = [
        (KV_STORES_NOTHING, "it stores nothing"),
        (KV_IN_MEMORY, "it keeps its data in memory only"),
        (KV_EVICTS, "it is a cache, which may lose any row at any time"),
    ];
    let found = reasons.into_iter().find(|(capability, _)| capabilities & capability != 0);
    found.map(|(_, reason)| reason.to_string())
}

/// Whether the user asked to stop.
fn is_interrupted() -> bool {
    signals::interrupts() > 0
}
