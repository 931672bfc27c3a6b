//! One trial in a process of its own: a crash, a hang or a full disk in it becomes a record, and the rest goes on.

use super::Observer;
use super::board::Board;
use super::folder::DataFolder;
use super::kept;
use super::shared::Failure;
use super::trial::{self, Elsewhere, Folders, HandOver};
use super::watch::Tick;
use crate::engine::{Registry, environment_of};
use crate::measure::units::bytes_text;
use crate::measure::{CapRecord, Clock, End, Event, MemoryCap, TrialProcess, Warning};
use crate::measure::{become_part_of_trial, become_trial_process, memory_cap, signals};
use crate::results::{Cause, Outcome, Record, SCHEMA, StepKind, Trial};
use crate::runner::Doing;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a trial's process is told, in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The trial.
    pub trial: Trial,
    /// Where its engine works.
    pub data: PathBuf,
    /// The kept database that its own is a copy of; none: it begins with nothing.
    pub start: Option<PathBuf>,
    /// Where what must be known of the database is to be written when all went well; none: it is not kept.
    pub leave: Option<PathBuf>,
    /// Where its record goes when it is whole; what there is of it before lies beside it.
    pub record: PathBuf,
    /// A file that may be removed when the disk is full, to make room for the record.
    #[serde(default)]
    pub reserve: Option<PathBuf>,
    /// The entrance of the control group that caps its memory; none: there is no cap.
    pub entrance: Option<PathBuf>,
    /// The descriptor of the board that it shows itself on; none: there is none.
    #[serde(default)]
    pub board: Option<i32>,
    /// The plug-in of its engine, alone: what another one brings would be in this one's memory figures. None: built in.
    pub plugin: Option<PathBuf>,
    /// This executable, for the fresh process.
    pub executable: PathBuf,
    /// The fresh process is told what the trial's own hands over; none: this is the trial's own.
    pub end: Option<HandOver>,
}

/// Begins each line that the process writes for its parent; all else on its stdout is some engine's.
const TICK: &str = "kvdyno-tick ";
/// File descriptors that a trial's process holds back for its record.
const RESERVED_FILES: usize = 4;
/// How often the parent looks at the board, and at whether the user has had enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The file of what the trial's processes say on stderr.
const STDERR: &str = "stderr.txt";
/// Lines of stderr that a record keeps.
const STDERR_LINES: usize = 20;
/// Bytes of stderr that stay beside it.
const STDERR_BYTES: u64 = 64 << 10;

/// The process's own side: runs the task in `file`, writes the record. An `Err` is for stderr.
pub fn run_task(file: &Path) -> Result<(), String> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let task: Task = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    match task.end {
        None => become_trial_process(),
        Some(_) => become_part_of_trial(),
    }
    let board = Board::inherited(task.board);
    // Before anything large is in memory, and before any thread is started.
    if let Err(text) = hold(&task) {
        let outcome = Outcome::Failed { cause: Cause::Refused, text };
        let record = Record::failed(task.trial.clone(), crate::results::now_rfc3339(), outcome);
        return keep_record(&record, &task, || ());
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
    // What there is so far is for the case that the rest goes wrong; without it the rest is none the worse.
    let keep = |record: &Record| {
        let _ = write_record(record, &unfinished(&task.record));
        Ok(())
    };
    let folders = Folders { data: &task.data, start: task.start.as_deref(), leave: task.leave.as_deref() };
    let versions = task.record.with_file_name("versions");
    let around = (Clock::calibrate(), board.clone());
    let record = match &task.end {
        Some(hand_over) => {
            let handed = (hand_over, versions.as_path());
            trial::run_end(&task.trial, engine, folders, around, handed, &mut on_tick, &keep)?
        }
        None => {
            let run = |hand_over: &HandOver| end_elsewhere(&task, hand_over, &board);
            let elsewhere = Elsewhere { versions: &versions, run: &run };
            trial::run_in(&task.trial, engine, folders, around, Some(&elsewhere), &mut on_tick, &keep)?
        }
    };
    keep_record(&record, &task, || reserve.borrow_mut().clear())
}

/// Writes the whole record, with room made for it where there is none.
fn keep_record(record: &Record, task: &Task, release_files: impl Fn()) -> Result<(), String> {
    write_record(record, &task.record)
        .or_else(|error| {
            release_files();
            let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            for file in [Some(unfinished(&task.record)), task.reserve.clone()].into_iter().flatten() {
                if is_full {
                    // It may be gone already.
                    let _ = fs::remove_file(file);
                }
            }
            write_record(record, &task.record)
        })
        .map_err(|error| format!("cannot write {}: {error}", task.record.display()))
}

/// Where what there is of a record lies while its trial runs.
fn unfinished(record: &Path) -> PathBuf {
    record.with_extension("unfinished")
}

/// Has a fresh process do the end of a trial. It has this one's limits, environment and output, and dies with it.
fn end_elsewhere(task: &Task, hand_over: &HandOver, board: &Board) -> Result<Record, Failure> {
    let failed = |text: String| Failure { cause: Cause::Io, text };
    let file = |name: &str| task.record.with_file_name(name);
    let (task_file, record) = (file("end-task.json"), file("end.json"));
    let end = Task {
        record: record.clone(),
        leave: None,
        board: None,
        end: Some(hand_over.clone()),
        ..task.clone()
    };
    let text = serde_json::to_string(&end).map_err(|error| failed(error.to_string()))?;
    fs::write(&task_file, text)
        .map_err(|error| failed(format!("cannot write {}: {error}", task_file.display())))?;
    board.step(StepKind::Reopen);
    let status = Command::new(&task.executable).arg("trial").arg(&task_file).stdin(Stdio::null()).status();
    let whole = read_record(&record);
    let begun = read_record(&unfinished(&record));
    for file in [task_file, unfinished(&record), record, file("versions")] {
        // It may never have been made.
        let _ = fs::remove_file(file);
    }
    let status =
        status.map_err(|error| failed(format!("cannot start {}: {error}", task.executable.display())))?;
    match whole {
        Some(record) if status.success() => Ok(record),
        whole => {
            let how = status.signal().map_or_else(|| status.to_string(), signals::signal_name);
            let said = last_lines(&file(STDERR)).pop().map_or_else(String::new, |line| format!(": {line}"));
            let has_opened = |record: Record| record.steps.iter().any(|step| step.name == StepKind::Reopen);
            let has_opened = whole.or(begun).is_some_and(has_opened);
            let stage = if has_opened { StepKind::Sweep } else { StepKind::Reopen };
            let text = format!(
                "the fresh process that opens the database again ended with {how} in `{stage}`{said}"
            );
            Err(Failure { cause: Cause::Crashed, text })
        }
    }
}

/// Puts this process under its limits.
fn hold(task: &Task) -> Result<(), String> {
    if let Some(entrance) = &task.entrance {
        memory_cap::enter(entrance)?;
    }
    task.trial.placement.apply()
}

fn write_record(record: &Record, file: &Path) -> io::Result<()> {
    let part = file.with_extension("part");
    let written = serde_json::to_string(record)
        .map_err(io::Error::from)
        .and_then(|text| fs::write(&part, text))
        .and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        // What was written of it takes room that the next try needs.
        let _ = fs::remove_file(&part);
    }
    written
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

/// Where the parent and a trial's process have their files.
pub struct Files<'f> {
    /// An existing folder for the trial's own.
    pub scratch: &'f Path,
    /// What may be removed to make room for its record; none: there is no such file.
    pub reserve: Option<&'f Path>,
}

/// Why the parent ended a trial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Itself,
    /// In this step.
    Stalled(Doing),
    Interrupted,
}

impl Runner {
    /// Where the database of a trial goes: that of its cell's first sound one is kept.
    pub fn place(&self, trial: &Trial) -> Option<PathBuf> {
        let place = self.keep.as_ref()?.join(kept::name(trial));
        place.symlink_metadata().is_err().then_some(place)
    }

    /// Runs a trial in `data` and gives its record, whatever happens.
    pub fn run(
        &self,
        trial: &Trial,
        data: &DataFolder,
        files: &Files<'_>,
        observer: &mut dyn Observer,
    ) -> Record {
        let started_at = crate::results::now_rfc3339();
        let (tried, cap) = match trial.workload.memory_bytes.map(MemoryCap::create).transpose() {
            Ok(cap) => {
                let tried = self.try_run(trial, data, files, cap.as_ref(), observer);
                (tried, cap.map(|cap| cap.record()))
            }
            Err(text) => (Err(Box::new((Outcome::Failed { cause: Cause::Refused, text }, None))), None),
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
        files: &Files<'_>,
        cap: Option<&MemoryCap>,
        observer: &mut dyn Observer,
    ) -> Result<Record, Box<(Outcome, Option<Record>)>> {
        let refused = |text: String| Box::new((Outcome::Failed { cause: Cause::Io, text }, None));
        // Whole paths, for an engine may change the working folder.
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let scratch = whole(files.scratch);
        let board = Board::shared(&trial.workload);
        let task = Task {
            trial: trial.clone(),
            data: whole(&data.database()),
            start: self.reuse.get(&trial.id).map(|path| whole(path)),
            leave: self.place(trial).map(|_| whole(data.root())),
            record: scratch.join("result.json"),
            reserve: files.reserve.map(whole),
            entrance: cap.map(MemoryCap::entrance),
            board: board.as_ref().and_then(Board::descriptor),
            plugin: self.plugins.get(&trial.engine).cloned(),
            executable: self.executable.clone(),
            end: None,
        };
        let task_file = scratch.join("task.json");
        let stderr_file = scratch.join(STDERR);
        let text = serde_json::to_string(&task).map_err(|error| refused(error.to_string()))?;
        fs::write(&task_file, text)
            .map_err(|error| refused(format!("cannot write {}: {error}", task_file.display())))?;
        // Of an earlier try, before the run was interrupted.
        for old in [&task.record, &unfinished(&task.record)] {
            let _ = fs::remove_file(old);
        }
        let kills_before = signals::out_of_memory_kills();
        let mut process = self.start(&trial.engine, &task_file, &stderr_file).map_err(refused)?;
        let (end, ended) = self.watch(&mut process, board.as_ref(), observer);
        drop(process);
        let stderr = last_lines(&stderr_file);
        let whole = read_record(&task.record);
        let partial = read_record(&unfinished(&task.record));
        for old in [&task.record, &unfinished(&task.record)] {
            // It stays in memory, and room on the disk may be short.
            let _ = fs::remove_file(old);
        }
        let is_sound = ended == Ended::Itself && end.status.is_some_and(|status| status.success());
        match whole {
            Some(mut record) if is_sound => {
                record.warnings.extend(left_behind(&end.left));
                Ok(record)
            }
            whole => {
                let cap = cap.map(MemoryCap::record);
                let out_of_memory = match &cap {
                    Some(cap) if cap.kills.is_some() => cap.kills > Some(0),
                    _ => signals::out_of_memory_kills() > kills_before,
                };
                let ended = match (&whole, ended) {
                    (Some(_), Ended::Stalled(_)) => Ended::Stalled(Doing::Exit),
                    (_, ended) => ended,
                };
                let memory = Memory { out_of_memory, cap };
                let mut partial = whole.or(partial);
                if let Some(record) = &mut partial {
                    record.warnings.extend(left_behind(&end.left));
                }
                Err(Box::new((why(end.status, ended, self.stall, stderr, memory), partial)))
            }
        }
    }

    fn start(&self, engine: &str, task: &Path, stderr: &Path) -> Result<TrialProcess, String> {
        let stderr =
            fs::File::create(stderr).map_err(|error| format!("cannot make {}: {error}", stderr.display()))?;
        let mut command = Command::new(&self.executable);
        command.envs(environment_of(engine));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg("trial").arg(task).stderr(stderr);
        TrialProcess::start(&mut command)
            .map_err(|error| format!("cannot start {}: {error}", self.executable.display()))
    }

    /// Passes ticks on until the process ends, stands still for too long, or the user has had enough.
    fn watch(
        &self,
        process: &mut TrialProcess,
        board: Option<&Board>,
        observer: &mut dyn Observer,
    ) -> (End, Ended) {
        let mut last_change = Instant::now();
        let mut last_tick = (String::new(), None, 0);
        let mut last_look = (0, 0);
        let mut ended = Ended::Itself;
        loop {
            match process.next(LOOK_EVERY) {
                Event::Line(line) => {
                    let tick =
                        line.strip_prefix(TICK).and_then(|json| serde_json::from_str::<Tick>(json).ok());
                    if let Some(tick) = tick {
                        if (&tick.phase, tick.round, tick.ops) != (&last_tick.0, last_tick.1, last_tick.2) {
                            last_change = Instant::now();
                            last_tick = (tick.phase.clone(), tick.round, tick.ops);
                        }
                        observer.tick(&tick);
                    }
                }
                Event::Quiet => {}
                Event::Ended(end) => return (end, ended),
            }
            let look = board.map(Board::look);
            if let Some(look) = &look {
                // An engine may have closed what ticks go through.
                if (look.changes, look.ops()) != last_look {
                    last_change = Instant::now();
                    last_look = (look.changes, look.ops());
                }
                observer.look(look);
            }
            if ended == Ended::Itself {
                if signals::interrupts() >= 2 {
                    ended = Ended::Interrupted;
                } else if last_change.elapsed() > self.stall {
                    ended = Ended::Stalled(look.map_or(Doing::Phase, |look| look.doing));
                }
                if ended != Ended::Itself {
                    process.kill();
                }
            }
        }
    }
}

/// What a reader has to know of processes that an engine left.
fn left_behind(names: &[String]) -> Option<Warning> {
    let mut counts = BTreeMap::new();
    names.iter().for_each(|name| *counts.entry(name.as_str()).or_insert(0) += 1);
    Warning::of_left(&counts)
}

fn read_record(file: &Path) -> Option<Record> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// The last lines of a file, of which the end alone is kept if it is long.
fn last_lines(file: &Path) -> Vec<String> {
    let end = end_of(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&end).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].iter().map(|line| line.to_string()).collect()
}

fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_BYTES)))?;
    let mut end = Vec::new();
    Read::by_ref(&mut file).take(STDERR_BYTES).read_to_end(&mut end)?;
    if length > STDERR_BYTES {
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&end)?;
    }
    Ok(end)
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
    let failed = |cause: Cause, text: String| Outcome::Failed { cause, text };
    match ended {
        Ended::Interrupted => return failed(Cause::Interrupted, "stopped by the user".into()),
        Ended::Stalled(doing) => {
            let seconds = stall.as_secs();
            let what = match doing {
                Doing::Phase | Doing::Step(StepKind::Sweep) => format!("no op ended for {seconds} s"),
                Doing::Start => format!("the trial did not begin within {seconds} s"),
                // What the fresh process does after it opened the database, it shows to nobody.
                Doing::Step(StepKind::Reopen) => format!("reopen and sweep did not end within {seconds} s"),
                Doing::Exit => format!("its process did not exit within {seconds} s"),
                Doing::Step(step) => format!("{step} did not return within {seconds} s"),
            };
            return failed(
                Cause::Timeout,
                format!("{what}, so it was killed; give it more with --stall-seconds"),
            );
        }
        Ended::Itself => {}
    }
    let signal = status.and_then(|status| status.signal());
    let has_no_memory = stderr.iter().any(|line| line.contains("memory allocation of"));
    if has_no_memory || (signal == Some(9) && memory.out_of_memory) {
        let cap = memory.cap.and_then(|cap| cap.limit_bytes);
        let cap = cap.map_or_else(String::new, |bytes| format!(" under a cap of {}", bytes_text(bytes)));
        return failed(Cause::OutOfMemory, format!("the trial's process ran out of memory{cap}"));
    }
    let signal = match (signal, status.and_then(|status| status.code())) {
        (Some(number), _) => signals::signal_name(number),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => "unknown".into(),
    };
    Outcome::Crashed { signal, stderr }
}
