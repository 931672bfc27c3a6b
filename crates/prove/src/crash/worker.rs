//! The process that is crashed: it creates a database, makes the commits of the script with all threads, maintains, closes and
//! reopens it from time to time, and never ends by itself. After a crash another one goes on: it opens the database, tells its rows,
//! and makes further commits.

use super::board::{Board, Stage};
use super::oracle::{Bounds, Rows};
use super::script::{self, Commit, KEY_BYTES, Script, VALUE_BYTES};
use super::verifier::{Unusable, open, read};
use crate::engine_process::{self, DriveError};
use crate::verify::act::{Act, group};
use crate::verify::caller::Caller;
use crate::verify::subject::{Setup, open_caller, open_database};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Engine, Work};
use kvdyno_core::results::Durability;
use kvdyno_core::runner::{level_number, level_of};
use kvdyno_measure::inner::Kind;
use kvdyno_measure::resources::descendants;
use kvdyno_measure::signals::kill_this_process;
use kvdyno_measure::start::thread_in_or_exit;
use kvdyno_measure::{Clock, Task, processes::cap_own_memory};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Memory that a process may allocate, bytes: a broken length in a file must not take the machine's.
pub(super) const MEMORY_BYTES: u64 = 4 << 30;
/// How often a commit that lost against another thread is repeated.
const RETRIES: u32 = 1000;
/// Sessions between two flushes, and between two compactions.
const FLUSH_EVERY: u64 = 2;
const COMPACT_EVERY: u64 = 3;
/// Interval between two looks at whether to go on.
const PAUSE: Duration = Duration::from_millis(1);
/// Commits whose ops are made before the first of them is sent.
const AHEAD: u64 = 64;
/// Commits before the one in which the process kills itself from which on each is watched, and the interval between two looks before.
const NEAR: u64 = 2000;
const FAR: Duration = Duration::from_micros(50);
/// The commits of a batch: the ops of the largest transaction.
const OPS: usize = 8;

/// The database of a crash test, as both of its processes open it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The engine, as users type it.
    pub engine: String,
    /// Its plug-in; `None` if it is built in.
    pub plugin: Option<PathBuf>,
    /// The requested level.
    pub level: Durability,
    /// Options to set, `name=value`.
    pub options: Vec<(String, String)>,
    /// Threads that write.
    pub threads: u32,
}

/// What the process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerTask {
    /// The database.
    pub subject: Subject,
    /// Its folder, which is empty unless the process goes on after a crash.
    pub folder: PathBuf,
    /// The commits.
    pub script: Script,
    /// Commits of each thread before the database is closed and reopened.
    pub session: u64,
    /// The descriptor of the board.
    pub board: i32,
}

/// What a process of a crash test tells.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message {
    /// The database is open.
    Opened {
        /// The engine's version.
        version: String,
        /// The effective level.
        level: Durability,
        /// Whether it keeps nothing in files.
        in_memory: bool,
        /// The duration in nanoseconds.
        ns: u64,
    },
    /// What was read after a crash.
    Read(Rows),
    /// It accepts writes, was closed and opened again, which took these nanoseconds.
    Reopened(u64),
    /// The device that records is mounted.
    Ready,
    /// It cannot be tested, for this reason.
    Unsuitable(String),
    /// The engine failed.
    Failed(String),
    /// Its rows are others after a clean close and another open.
    Changed(String),
}

impl Subject {
    /// The engine, whose plug-in is the only one that is loaded.
    pub(super) fn engine(&self) -> Result<Engine, DriveError> {
        engine_process::engine(&self.engine, self.plugin.as_deref())
    }

    /// How the database in a folder is opened.
    pub(super) fn setup(&self, folder: PathBuf, create: bool) -> Setup {
        Setup {
            folder,
            create,
            level: level_number(self.level),
            keyspaces: 1,
            indexes: Vec::new(),
            threads: self.threads,
            settings: self.options.clone(),
            clock: Clock::monotonic(),
            ops: OPS,
            key_bytes: KEY_BYTES,
            value_bytes: VALUE_BYTES,
            out_bytes: 2 * VALUE_BYTES,
            faults: Default::default(),
        }
    }
}

impl Task for WorkerTask {
    const KIND: Kind = Kind::CrashWorker;
    type Message = Message;
    type Prepared = ();

    /// An engine that needs more memory than the process that reads may allocate is not tested, instead of failing there.
    fn prepare(&self) {
        cap_own_memory(MEMORY_BYTES);
    }

    fn run(self, (): ()) -> Result<u8, String> {
        let board = Board::inherited(self.board).map_err(|error| error.to_string())?;
        if let Err(error) = work(&self, &board) {
            WorkerTask::tell(&Message::Failed(error.to_string()));
        }
        wait_for_end()
    }
}

/// The parent decides how this process ends.
pub(super) fn wait_for_end() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Enters a stage, after the last one if the process is not to stay there.
fn enter(board: &Board, stage: Stage) {
    while board.is_held() || !board.try_enter(stage) {
        std::thread::sleep(PAUSE);
    }
}

/// Opens, commits and closes until it is killed, or until the engine fails.
fn work(task: &WorkerTask, board: &Board) -> Result<(), Unusable> {
    let before = elsewhere(&task.folder);
    let engine = task.subject.engine()?;
    // Of a process before this one.
    let last = board.started();
    let mut session = 0;
    loop {
        let stage = match session {
            0 if board.goes_on() => Stage::Recover,
            0 => Stage::Create,
            _ => Stage::Reopen,
        };
        enter(board, stage);
        let begun = Instant::now();
        let setup = task.subject.setup(task.folder.clone(), stage == Stage::Create);
        let database = match stage {
            Stage::Recover => open(&engine, &task.subject, &task.folder, false)?.0,
            _ => open_database(&engine, &setup).map_err(DriveError::driver)?,
        };
        let facts = database.effective();
        if session == 0 {
            WorkerTask::tell(&Message::Opened {
                version: facts.version.clone(),
                level: level_of(facts.level),
                in_memory: facts.capabilities & KV_IN_MEMORY != 0,
                ns: begun.elapsed().as_nanos() as u64,
            });
        }
        if stage == Stage::Recover {
            let mut caller = open_caller(&database, &setup).map_err(DriveError::driver)?;
            let rows = read(&task.script, task.subject.threads, &mut caller, facts.capabilities)?;
            caller.end().map_err(DriveError::driver)?;
            WorkerTask::tell(&Message::Read(rows));
        }
        if stage == Stage::Create {
            if engine.family() == "server" && descendants().is_empty() {
                let text = "the server runs elsewhere; let the driver start one of its own";
                WorkerTask::tell(&Message::Unsuitable(text.into()));
                return Ok(());
            }
            if let Some(file) = elsewhere(&task.folder).difference(&before).next() {
                let text = format!(
                    "it writes to {} outside its folder, where no crash reaches it; let the driver keep all files in the \
                     folder that it is given",
                    file.display()
                );
                WorkerTask::tell(&Message::Unsuitable(text));
                return Ok(());
            }
        }
        enter(board, Stage::Run);
        let first = last + session * task.session + 1;
        commit_session(task, board, &database, &setup, first..first + task.session)?;
        if session % FLUSH_EVERY == 1 {
            enter(board, Stage::Maintain);
            database.maintain(Work::Flush).map_err(DriveError::engine("flush"))?;
        }
        if session % COMPACT_EVERY == 1 {
            enter(board, Stage::Maintain);
            database.maintain(Work::Compact).map_err(DriveError::engine("compact"))?;
        }
        enter(board, Stage::Close);
        database.close().map_err(DriveError::engine("close"))?;
        session += 1;
    }
}

/// Files outside a folder that this process or one that it has started has open for writing. A file without a name is not one.
pub(super) fn elsewhere(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    // As the kernel names open files.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    for process in std::iter::once(std::process::id()).chain(descendants()) {
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"));
        for descriptor in descriptors.into_iter().flatten().flatten() {
            let Ok(file) = std::fs::read_link(descriptor.path()) else { continue };
            let is_file =
                std::fs::metadata(descriptor.path()).is_ok_and(|facts| facts.is_file() && facts.nlink() > 0);
            if is_file && !file.starts_with(&folder) && is_writable(process, &descriptor.file_name()) {
                found.insert(file);
            }
        }
    }
    found
}

/// Whether a process can write to one of its descriptors.
fn is_writable(process: u32, descriptor: &OsStr) -> bool {
    let path = format!("/proc/{process}/fdinfo/{}", descriptor.to_string_lossy());
    let facts = std::fs::read_to_string(path).unwrap_or_default();
    let flags =
        facts.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

/// The commits of all threads, with these numbers, between one open and the next.
fn commit_session(
    task: &WorkerTask,
    board: &Board,
    database: &Database,
    setup: &Setup,
    numbers: Range<u64>,
) -> Result<(), DriveError> {
    let mut callers = Vec::new();
    for thread in 0..task.subject.threads {
        // What is done between two commits makes a kill within one rare.
        callers.push((thread, open_caller(database, setup).map_err(DriveError::driver)?.without_looks()));
    }
    let is_over = AtomicBool::new(false);
    let outcomes: Vec<Result<(), DriveError>> = std::thread::scope(|scope| {
        // The scope waits for it.
        let _killer = board.kills_in().map(|number| {
            let is_over = &is_over;
            thread_in_or_exit(scope, move || kill_in_commit(board, number, is_over))
        });
        let spawn = |(thread, mut caller): (u32, Caller)| {
            let numbers = numbers.clone();
            thread_in_or_exit(scope, move || {
                let outcome = commit(task, board, &mut caller, thread, numbers);
                // At once: the other thread may commit for long, and the process be crashed meanwhile.
                if let Err(error) = &outcome {
                    WorkerTask::tell(&Message::Failed(error.to_string()));
                }
                outcome.and_then(|()| caller.end().map_err(DriveError::driver))
            })
        };
        let running: Vec<_> = callers.into_iter().map(spawn).collect();
        let join =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or(Err(DriveError::Panicked));
        let outcomes = running.into_iter().map(join).collect();
        is_over.store(true, SeqCst);
        outcomes
    });
    outcomes.into_iter().collect()
}

/// Kills this process within a commit of its first thread, the one with this number or one after it. Returns if the session is over
/// before that.
fn kill_in_commit(board: &Board, number: u64, is_over: &AtomicBool) {
    loop {
        let Bounds { acked, started } = board.first();
        if started >= number && acked < started {
            break;
        }
        if is_over.load(SeqCst) {
            return;
        }
        if started.saturating_add(NEAR) < number {
            std::thread::sleep(FAR);
        } else {
            std::hint::spin_loop();
        }
    }
    let (begun, wait) = (Instant::now(), board.kill_after());
    while begun.elapsed() < wait {
        std::hint::spin_loop();
    }
    board.tell_kill();
    kill_this_process()
}

/// The commits of a thread, with these numbers.
fn commit(
    task: &WorkerTask,
    board: &Board,
    caller: &mut Caller,
    thread: u32,
    numbers: Range<u64>,
) -> Result<(), DriveError> {
    let is_timed = thread == 0 && board.kills_in().is_some();
    let mut next = numbers.start;
    while next < numbers.end {
        let some = next..numbers.end.min(next + AHEAD);
        // Before their calls, which are then most of what the thread does.
        let acts: Vec<Vec<Act>> = some.clone().map(|number| acts_of(&task.script, thread, number)).collect();
        next = some.end;
        for (number, acts) in some.zip(&acts) {
            while board.is_paused() {
                std::thread::sleep(PAUSE);
            }
            let begun = is_timed.then(Instant::now);
            board.start(thread, number);
            until_acknowledged(caller, acts).map_err(|error| error.at(format!("commit {number}")))?;
            board.acknowledge(thread, number);
            if let Some(begun) = begun {
                board.took(begun.elapsed());
            }
        }
    }
    Ok(())
}

/// The ops of a commit.
pub(super) fn acts_of(script: &Script, thread: u32, number: u64) -> Vec<Act> {
    let Commit { changes, is_transaction } = script.commit(thread, number);
    let act = |change: &script::Change| {
        let key = script::key(thread, change.key);
        if change.is_put {
            Act::put(&key, &script.value(thread, change.key, number))
        } else {
            Act::delete(&key)
        }
    };
    group(changes.iter().map(act).collect(), if is_transaction { KV_ATOMIC } else { 0 })
}

/// Repeats a commit until it is acknowledged.
pub(super) fn until_acknowledged(caller: &mut Caller, acts: &[Act]) -> Result<(), DriveError> {
    for _ in 0..RETRIES {
        let answers = caller.call(acts).map_err(DriveError::driver)?;
        let Some(failed) = answers.iter().find(|answer| !answer.is_answer()) else { return Ok(()) };
        if answers.iter().all(|answer| answer.status != KV_CONFLICT) {
            return Err(DriveError::status("an op", failed));
        }
    }
    Err(DriveError::Conflicts { op: "an op", times: RETRIES })
}
