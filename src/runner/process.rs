//! One trial in a process of its own: a crash, a hang or a full disk in it becomes a record, and the rest goes on.

use super::Observer;
use super::board::Board;
use super::folder::DataFolder;
use super::kept;
use super::trial::{self, Folders};
use super::watch::Tick;
use crate::engine::{Registry, environment_of};
use crate::measure::units::bytes_text;
use crate::measure::{CapRecord, Clock, MemoryCap, memory_cap, signals};
use crate::results::{Outcome, Record, SCHEMA, Trial};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a trial's process is told, in a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// The trial.
    pub trial: Trial,
    /// Where its engine works.
    pub data: PathBuf,
    /// The kept database that its own is a copy of; none: it begins with nothing.
    pub start: Option<PathBuf>,
    /// Where what must be known of the database is to be written when all went well; none: it is not kept.
    pub leave: Option<PathBuf>,
    /// Where its record goes.
    pub record: PathBuf,
    /// The entrance of the control group that caps its memory; none: there is no cap.
    pub entrance: Option<PathBuf>,
    /// The descriptor of the board that it shows itself on; none: there is none.
    #[serde(default)]
    pub board: Option<i32>,
    /// The plug-in of its engine, alone: what another one brings would be in this one's memory figures. None: built in.
    pub plugin: Option<PathBuf>,
}

/// Begins each line that the process writes for its parent; all else on its stdout is some engine's.
const TICK: &str = "kvdyno-tick ";
/// File descriptors that a trial's process holds back for its record.
const RESERVED_FILES: usize = 4;
/// How often the parent looks at the board, and at whether the user has had enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Lines of stderr that a record keeps.
const STDERR_LINES: usize = 20;

/// The process's own side: runs the task in `file`, writes the record. An `Err` is for stderr.
pub fn run_task(file: &Path) -> Result<(), String> {
    signals::become_trial_process();
    let text =
        fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let task: Task = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let board = Board::inherited(task.board);
    // Before anything large is in memory, and before any thread is started.
    if let Err(text) = hold(&task) {
        let outcome = Outcome::Failed { cause: "refused".into(), text };
        let record = Record::failed(task.trial.clone(), crate::results::now_rfc3339(), outcome);
        return write_record(&record, &task.record);
    }
    let registry = Registry::alone(task.plugin.as_deref())?;
    let engine = registry
        .engine(&task.trial.engine)
        .map_err(|_| format!("the engine `{}` is not here any more", task.trial.engine))?;
    let mut stdout = std::io::stdout();
    let mut on_tick = |tick: &Tick| {
        // A parent that is gone reads nothing; the trial ends with it anyway.
        let _ = writeln!(stdout, "{TICK}{}", serde_json::to_string(tick).unwrap_or_default());
        let _ = stdout.flush();
    };
    // An engine that has used up all file descriptors must not keep the record from being written.
    let reserve = RefCell::new((0..RESERVED_FILES).map(|_| fs::File::open("/dev/null")).collect::<Vec<_>>());
    let keep = |record: &Record| {
        write_record(record, &task.record).or_else(|_| {
            reserve.borrow_mut().clear();
            write_record(record, &task.record)
        })
    };
    let folders = Folders { data: &task.data, start: task.start.as_deref(), leave: task.leave.as_deref() };
    let record =
        trial::run_in(&task.trial, engine, folders, (Clock::calibrate(), board), &mut on_tick, &keep)?;
    keep(&record)
}

/// Puts this process under its limits.
fn hold(task: &Task) -> Result<(), String> {
    if let Some(entrance) = &task.entrance {
        memory_cap::enter(entrance)?;
    }
    task.trial.placement.apply()
}

fn write_record(record: &Record, file: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
    let text = serde_json::to_string(record).map_err(|error| format!("{}: {error}", file.display()))?;
    let part = file.with_extension("part");
    fs::write(&part, text).map_err(failed)?;
    fs::rename(&part, file).map_err(failed)
}

/// How trials are run.
#[derive(Clone)]
pub struct Runner {
    /// The executable that knows the hidden command `trial`.
    pub executable: PathBuf,
    /// The plug-ins of engines that are not built in.
    pub plugins: BTreeMap<String, PathBuf>,
    /// Where databases are kept; none: nowhere.
    pub keep: Option<PathBuf>,
    /// The kept databases that trials start on a copy of, by the trials' ids.
    pub reuse: BTreeMap<String, PathBuf>,
    /// A trial in which nothing happens for this long is ended.
    pub stall: Duration,
    /// What their processes find in their environment and no record shows: names and values.
    pub environment: Vec<(String, String)>,
}

/// Why the parent ended a trial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Itself,
    Stalled,
    Interrupted,
}

impl Runner {
    /// Where the database of a trial goes: that of its cell's first sound one is kept.
    pub fn place(&self, trial: &Trial) -> Option<PathBuf> {
        let place = self.keep.as_ref()?.join(kept::name(trial));
        place.symlink_metadata().is_err().then_some(place)
    }

    /// Runs a trial in `data` with its files in `scratch`, an existing folder, and gives its record, whatever happens.
    pub fn run(
        &self,
        trial: &Trial,
        data: &DataFolder,
        scratch: &Path,
        observer: &mut dyn Observer,
    ) -> Record {
        let started_at = crate::results::now_rfc3339();
        let (tried, cap) = match trial.workload.memory_bytes.map(MemoryCap::create).transpose() {
            Ok(cap) => {
                let tried = self.try_run(trial, data, scratch, cap.as_ref(), observer);
                (tried, cap.map(|cap| cap.record()))
            }
            Err(text) => (Err(Box::new((Outcome::Failed { cause: "refused".into(), text }, None))), None),
        };
        let mut record = match tried {
            Ok(record) => record,
            Err(ended) => {
                let (outcome, partial) = *ended;
                let mut record =
                    partial.unwrap_or_else(|| Record::failed(trial.clone(), started_at, Outcome::Ok));
                record.outcome = outcome;
                record.schema = SCHEMA;
                record
            }
        };
        record.memory_cap = cap;
        record
    }

    fn try_run(
        &self,
        trial: &Trial,
        data: &DataFolder,
        scratch: &Path,
        cap: Option<&MemoryCap>,
        observer: &mut dyn Observer,
    ) -> Result<Record, Box<(Outcome, Option<Record>)>> {
        let refused = |text: String| Box::new((Outcome::Failed { cause: "io".into(), text }, None));
        let board = Board::shared(&trial.workload);
        let task = Task {
            trial: trial.clone(),
            data: data.database(),
            start: self.reuse.get(&trial.id).cloned(),
            leave: self.place(trial).map(|_| data.root().to_path_buf()),
            record: scratch.join("result.json"),
            entrance: cap.map(MemoryCap::entrance),
            board: board.as_ref().and_then(Board::descriptor),
            plugin: self.plugins.get(&trial.engine).cloned(),
        };
        let task_file = scratch.join("task.json");
        let stderr_file = scratch.join("stderr.txt");
        let text = serde_json::to_string(&task).map_err(|error| refused(error.to_string()))?;
        fs::write(&task_file, text)
            .map_err(|error| refused(format!("cannot write {}: {error}", task_file.display())))?;
        let kills_before = signals::out_of_memory_kills();
        let mut child = self.spawn(&trial.engine, &task_file, &stderr_file).map_err(refused)?;
        let (status, ended) = self.watch(&mut child, board.as_ref(), observer);
        let stderr = last_lines(&stderr_file);
        let partial = read_record(&task.record);
        let is_whole = status.as_ref().is_some_and(ExitStatus::success);
        match (partial, is_whole && ended == Ended::Itself) {
            (Some(record), true) => Ok(record),
            (partial, _) => {
                let cap = cap.map(MemoryCap::record);
                let out_of_memory = match &cap {
                    Some(cap) if cap.kills.is_some() => cap.kills > Some(0),
                    _ => signals::out_of_memory_kills() > kills_before,
                };
                let memory = Memory { out_of_memory, cap };
                Err(Box::new((why(status, ended, self.stall, stderr, memory), partial)))
            }
        }
    }

    fn spawn(&self, engine: &str, task: &Path, stderr: &Path) -> Result<Child, String> {
        let stderr =
            fs::File::create(stderr).map_err(|error| format!("cannot make {}: {error}", stderr.display()))?;
        let mut command = Command::new(&self.executable);
        command.envs(environment_of(engine));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg("trial").arg(task).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        // A process group of its own: Ctrl-C is for the parent, which lets the trial finish.
        command.process_group(0);
        command.spawn().map_err(|error| format!("cannot start {}: {error}", self.executable.display()))
    }

    /// Passes ticks on until the process ends, stands still for too long, or the user has had enough.
    fn watch(
        &self,
        child: &mut Child,
        board: Option<&Board>,
        observer: &mut dyn Observer,
    ) -> (Option<ExitStatus>, Ended) {
        let ticks = read_ticks(child);
        let mut last_change = Instant::now();
        let mut last = (String::new(), None, 0);
        let mut ended = Ended::Itself;
        loop {
            match ticks.recv_timeout(LOOK_EVERY) {
                Ok(tick) => {
                    if (&tick.phase, tick.round, tick.ops) != (&last.0, last.1, last.2) {
                        last_change = Instant::now();
                        last = (tick.phase.clone(), tick.round, tick.ops);
                    }
                    observer.tick(&tick);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(board) = board {
                observer.look(&board.look());
            }
            if ended == Ended::Itself {
                if signals::interrupts() >= 2 {
                    ended = Ended::Interrupted;
                } else if last_change.elapsed() > self.stall {
                    ended = Ended::Stalled;
                }
                if ended != Ended::Itself {
                    // It may be gone already; then there is nothing to kill.
                    let _ = child.kill();
                }
            }
        }
        (child.wait().ok(), ended)
    }
}

fn read_ticks(child: &mut Child) -> Receiver<Tick> {
    let (send, receive) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let tick = line.strip_prefix(TICK).and_then(|json| serde_json::from_str(json).ok());
                if let Some(tick) = tick
                    && send.send(tick).is_err()
                {
                    return;
                }
            }
        });
    }
    receive
}

fn read_record(file: &Path) -> Option<Record> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn last_lines(file: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].iter().map(|line| line.to_string()).collect()
}

/// What is known of a dead process's memory.
struct Memory {
    /// The kernel has killed something for lack of it.
    out_of_memory: bool,
    cap: Option<CapRecord>,
}

/// What ended a process that did not finish by itself.
fn why(
    status: Option<ExitStatus>,
    ended: Ended,
    stall: Duration,
    stderr: Vec<String>,
    memory: Memory,
) -> Outcome {
    let failed = |cause: &str, text: String| Outcome::Failed { cause: cause.into(), text };
    match ended {
        Ended::Interrupted => return failed("interrupted", "stopped by the user".into()),
        Ended::Stalled => {
            let text = format!(
                "no op ended for {} s, so it was killed; give it more with --stall-seconds",
                stall.as_secs()
            );
            return failed("timeout", text);
        }
        Ended::Itself => {}
    }
    let signal = status.and_then(|status| status.signal());
    let has_no_memory = stderr.iter().any(|line| line.contains("memory allocation of"));
    if has_no_memory || (signal == Some(9) && memory.out_of_memory) {
        let cap = memory.cap.and_then(|cap| cap.limit_bytes);
        let cap = cap.map_or_else(String::new, |bytes| format!(" under a cap of {}", bytes_text(bytes)));
        return failed("out-of-memory", format!("the trial's process ran out of memory{cap}"));
    }
    let signal = match (signal, status.and_then(|status| status.code())) {
        (Some(number), _) => signals::signal_name(number),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => "unknown".into(),
    };
    Outcome::Crashed { signal, stderr }
}
