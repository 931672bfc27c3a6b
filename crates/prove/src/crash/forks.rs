//! Processes that are forked from one that has loaded an engine and has opened no database: to read one is then a matter of
//! milliseconds, and a crash or a hang of the engine is theirs alone.

use super::board::Board;
use super::is_interrupted;
use super::no_result::Stopped;
use super::round::{POLL, Read, launched};
use super::script::Script;
use super::verifier::{VerifierTask, verify_with};
use super::worker::{MEMORY_BYTES, Subject};
use crate::engine_process::DriveError;
use crate::machine::MachineError;
use kvdyno_core::engine::Engine;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::processes::{cap_own_memory, messages_of, order, orders};
use kvdyno_measure::sync_calls::{end_here, end_started, forked};
use kvdyno_measure::{Event, Fate, Patience, Task, TaskProcess};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time without a word of the process that forks others, in limits of one of them: each of its steps may take as long.
const PATIENCE: u32 = 10;

/// Forks processes of this one.
pub(super) struct Forks {
    subject: Subject,
    /// `None` if it starts threads when it is loaded, which a fork would not have: each process loads it.
    engine: Option<Engine>,
    stall: Duration,
}

impl Forks {
    /// Loads the engine. This process must have no threads.
    pub(super) fn of(subject: &Subject, stall: Duration) -> Result<Forks, MachineError> {
        Ok(Forks { subject: subject.clone(), engine: loaded(subject, stall)?, stall })
    }

    /// Does something with the engine, in a process of its own.
    pub(super) fn with_engine<E: From<DriveError>>(
        &self,
        work: impl FnOnce(&Engine) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.engine {
            Some(engine) => work(engine),
            None => work(&self.subject.engine()?),
        }
    }

    /// Reads a database in a process of its own, of which nothing is left.
    pub(super) fn read(&self, script: Script, folder: &Path, may_create: bool) -> Result<Read, MachineError> {
        let board = Board::shared(self.subject.threads)?;
        let task = VerifierTask {
            subject: self.subject.clone(),
            folder: folder.to_path_buf(),
            script,
            may_create,
            only_opens: false,
            board: -1,
        };
        let work = || {
            if let Err(error) = self.with_engine(|engine| verify_with(engine, &task, &board)) {
                VerifierTask::tell(&error.message());
            }
        };
        let ran = forked(None, self.stall, &|| progress(&board), work).map_err(MachineError::Unfollowed)?;
        end_started();
        let mut read = Read::default();
        messages_of(&ran.printed).0.into_iter().for_each(|message| read.hear(message));
        match ran.is_stalled {
            true => read.hang(self.stall),
            false => read.end(&Fate::of(Some(ran.status))),
        }
        Ok(read)
    }
}

/// A number that changes when a process makes progress.
pub(super) fn progress(board: &Board) -> u64 {
    board.acked() << 16 | board.stages()
}

/// The engine, if it starts no thread when it is loaded.
fn loaded(subject: &Subject, stall: Duration) -> Result<Option<Engine>, MachineError> {
    if subject.plugin.is_some() {
        let look = || {
            let _engine = subject.engine();
            let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
            if threads != 1 {
                end_here();
            }
        };
        let ran = forked(None, stall, &|| 0, look).map_err(MachineError::Start)?;
        if !ran.status.success() {
            return Ok(None);
        }
    }
    // If it cannot be loaded, the first process says why.
    Ok(subject.engine().ok())
}

/// What the process does that forks those that read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReaderTask {
    /// The databases.
    pub(super) subject: Subject,
    /// The folder in which each of them is in its turn.
    pub(super) folder: PathBuf,
    /// How long a process may take for a step without progress.
    pub(super) stall: Duration,
}

/// A database that is to be read.
#[derive(Debug, Serialize, Deserialize)]
struct Database {
    script: Script,
    may_create: bool,
}

impl Task for ReaderTask {
    const KIND: Kind = Kind::CrashReader;
    type Message = Result<Read, String>;
    type Prepared = ();

    fn prepare(&self) {
        cap_own_memory(MEMORY_BYTES);
    }

    fn run(self, (): ()) -> Result<u8, String> {
        // First, so that nothing that is started reads them.
        let orders = orders::<Database>().map_err(|error| error.to_string())?;
        let forks = Forks::of(&self.subject, self.stall).map_err(|error| error.to_string())?;
        for database in orders {
            let Database { script, may_create } = database.map_err(|error| error.to_string())?;
            let read = forks.read(script, &self.folder, may_create);
            ReaderTask::tell(&read.map_err(|error| error.to_string()));
        }
        Ok(0)
    }
}

/// The process that forks those that read. It ends with this value.
pub(super) struct Readers {
    process: TaskProcess<Result<Read, String>>,
    orders: PipeWriter,
    stall: Duration,
}

impl Readers {
    /// Starts it, for databases in a folder that may be on file systems which are mounted later.
    pub(super) fn start(
        subject: &Subject,
        folder: PathBuf,
        stall: Duration,
    ) -> Result<Readers, MachineError> {
        let task = ReaderTask { subject: subject.clone(), folder, stall };
        let (process, orders) =
            launched(subject, |executable, with| task.start_for_orders(executable, with))?;
        Ok(Readers { process, orders, stall })
    }

    /// Reads the database that is in the folder now.
    pub(super) fn read(&mut self, script: Script, may_create: bool) -> Result<Read, Stopped> {
        let database = Database { script, may_create };
        let failed = |text: String| MachineError::Bench(format!("the process that reads databases: {text}"));
        order(&mut self.orders, &database).map_err(|error| failed(error.to_string()))?;
        let mut patience = Patience::new(self.stall * PATIENCE);
        loop {
            match self.process.next(POLL) {
                Event::Told(read) => return Ok(read.map_err(failed)?),
                Event::Quiet => {}
                Event::Ended(end) => return Err(failed(end.fate().text("it")).into()),
            }
            if is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            if patience.is_over() {
                return Err(failed("it makes no progress".into()).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::oracle::{Bounds, Verdict};
    use kvdyno_core::results::Durability;
    use std::process::Command;

    /// What is in a folder that has this as the log of memory-btree.
    fn verdict(forks: &Forks, log: impl FnOnce(&Path), may_create: bool) -> (Verdict, bool) {
        let folder = tempfile::tempdir().unwrap();
        log(&folder.path().join("memory.log"));
        let script = Script::of(1, true, true);
        let read = forks.read(script, folder.path(), may_create).unwrap();
        let bounds = vec![Bounds { acked: 1, started: 1 }; 2];
        (read.judgement(&script, &bounds).verdict, read.reopen_ns.is_some())
    }

    /// Set in a process that runs one test alone.
    const IS_ALONE: &str = "KVDYNO_TEST_IS_ALONE";

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "processes are forked only on Linux")]
    fn what_an_engine_does_to_its_process_is_a_verdict_and_the_next_database_is_read() {
        // A reader kills and reaps every child of its process, so it would take those of other tests.
        if std::env::var_os(IS_ALONE).is_none() {
            let name = std::thread::current().name().unwrap().to_string();
            let mut command = Command::new(std::env::current_exe().unwrap());
            let done = command.args(["--exact", &name]).env(IS_ALONE, "1").output().unwrap();
            let printed = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success() && printed.contains("1 passed"), "{printed}{done:?}");
            return;
        }
        let subject = Subject {
            engine: "memory-btree".into(),
            plugin: None,
            level: Durability::Process,
            options: Vec::new(),
            threads: 2,
        };
        let mut forks = Forks::of(&subject, Duration::from_secs(60)).unwrap();
        assert!(forks.engine.is_some());
        // An empty one has lost what was acknowledged.
        let empty = |_: &Path| {};
        assert_eq!(verdict(&forks, empty, true), (Verdict::Lost, true));
        let garbage = |log: &Path| fs::write(log, [7; 100]).unwrap();
        assert_eq!(verdict(&forks, garbage, false), (Verdict::OpenFailed, false));
        // Opening a pipe that nobody writes to takes for ever.
        let pipe = |log: &Path| assert!(Command::new("mkfifo").arg(log).status().unwrap().success());
        forks.stall = Duration::from_millis(500);
        assert_eq!(verdict(&forks, pipe, false), (Verdict::OpenHung, false));
        forks.stall = Duration::from_secs(60);
        assert_eq!(verdict(&forks, empty, true), (Verdict::Lost, true));
        // As an engine that starts threads when it is loaded.
        forks.engine = None;
        assert_eq!(verdict(&forks, empty, true), (Verdict::Lost, true));
    }
}
