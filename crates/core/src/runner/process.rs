//! Runs a trial in its own process: a crash, a hang or a full disk becomes a record, and the run continues.

use super::Observer;
use super::board::Board;
use super::companions::Tick;
use super::folder::DataFolder;
use super::kept;
use super::means::{Means, MeansError};
use super::others::Company;
use super::part::of_load_generator;
use super::phase_data::Failure;
use super::short;
use super::trial::{self, Around, ClosedState, Elsewhere, Folders, HandedOver};
use crate::engine::{Refused, Registry, environment_of};
use crate::results::audit::{Audit, Shape};
use crate::results::{Cause, Outcome, Record, SCHEMA, StepKind, Trial};
use crate::runner::Doing;
use kvdyno_cluster::{JoinError, Member, Seat, Secret, SecretError};
use kvdyno_measure::Cannot;
use kvdyno_measure::cycles::Mode;
use kvdyno_measure::inner::{Kind, Place};
use kvdyno_measure::shortage::{Scene, telling_line};
use kvdyno_measure::{
    Blocked, Clock, End, Event, Fate, MemoryCap, Patience, PrintedFile, Task, TaskProcess, Warning,
};
use kvdyno_measure::{cycles, memory_cap, signals, start, system_calls};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// The task of a trial's process, or of the fresh process at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialTask {
    /// The file with the order, which may have the password of a cluster that another load generator has started.
    file: PathBuf,
    /// Whether it is the fresh process.
    is_end: bool,
}

/// What a trial's process is told to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The trial.
    pub trial: Trial,
    /// The folder of its database.
    pub data: PathBuf,
    /// The kept database that its own is a copy of; none: it starts empty.
    pub start: Option<PathBuf>,
    /// The folder for the state of the database, written after success; none: the database is not kept.
    pub leave: Option<PathBuf>,
    /// The file for its complete record; the unfinished record is next to it.
    pub record: PathBuf,
    /// A file that may be removed when the disk is full, to make room for the record.
    #[serde(default)]
    pub reserve: Option<PathBuf>,
    /// The file of the control group that caps its memory; none: no cap.
    pub entrance: Option<PathBuf>,
    /// The descriptor of the board for its progress; none: no board.
    #[serde(default)]
    pub board: Option<i32>,
    /// The plug-in of its engine only: others would count in its memory figures. None: built in.
    pub plugin: Option<PathBuf>,
    /// This executable, to start the fresh process.
    pub executable: PathBuf,
    /// The place among several load generators; none: it is the only one.
    #[serde(default)]
    pub seat: Option<Seat>,
    /// For the fresh process: the state that the trial's process passes on; none: this is the trial's process.
    pub end: Option<ClosedState>,
}

/// File descriptors that a trial's process reserves for its record.
const RESERVED_FILES: usize = 4;
/// How often the parent reads the board and checks for interrupts.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The file for the stderr of the trial's processes.
const STDERR: &str = "stderr.txt";
/// Lines of stderr that a record keeps.
const STDERR_LINES: usize = 20;
/// Bytes at the end of stderr in which the fresh process's last line is searched.
const STDERR_BYTES: u64 = 64 << 10;

/// Why a trial's process has no record.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Its order cannot be read, or its record cannot be written.
    #[error("{0}")]
    File(#[from] Cannot),
    /// A file is no order.
    #[error("{}: {error}", file.display())]
    Order {
        /// The file.
        file: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// The faults of the trial cannot be prepared.
    #[error("{0}")]
    Means(#[from] MeansError),
    /// The plug-in cannot be loaded any more.
    #[error("{0}")]
    Plugin(#[from] Refused),
    /// The engine is no longer there: its name.
    #[error("the engine `{0}` is no longer available")]
    Engine(String),
    /// The trial cannot be set up: why.
    #[error("{0}")]
    Trial(String),
}

/// Why a limit of a trial cannot be applied.
#[derive(Debug, thiserror::Error)]
enum LimitError {
    #[error("{0}")]
    Memory(String),
    #[error("cannot count cycles: {0}; omit --count-cycles")]
    Cycles(io::Error),
    #[error("cannot count system calls: {0}; `kvdyno doctor` says what this machine allows")]
    Calls(io::Error),
    #[error("{0}")]
    Placement(String),
}

/// What is there before the plug-in is loaded.
pub struct Prepared {
    order: Order,
    board: Board,
    /// What the faults of the trial need, `None` if it has none; or why the limits of the trial cannot be applied.
    means: Result<Option<Means>, LimitError>,
}

impl Task for TrialTask {
    const KIND: Kind = Kind::Trial;
    type Message = Tick;
    type Prepared = Result<Prepared, ProcessError>;

    fn place(&self) -> Place {
        if self.is_end { Place::PartOfAnother } else { Place::Own }
    }

    fn prepare(&self) -> Self::Prepared {
        let text = fs::read_to_string(&self.file).map_err(Cannot::on("read", &self.file))?;
        let order: Order = serde_json::from_str(&text)
            .map_err(|error| ProcessError::Order { file: self.file.clone(), error })?;
        let board = Board::inherited(order.board);
        // Before memory is used, and before any thread is started.
        if let Err(error) = apply_limits(&order) {
            return Ok(Prepared { order, board, means: Err(error) });
        }
        // The plug-in's runtime may read its environment when it is loaded.
        let means = match order.end {
            None => Means::prepare(&order.trial.workload, &order.executable)?,
            Some(_) => {
                Means::prepare_end(&order.trial.workload, &order.executable);
                None
            }
        };
        Ok(Prepared { order, board, means: Ok(means) })
    }

    /// Writes the record.
    fn run(self, prepared: Self::Prepared) -> Result<u8, String> {
        prepared.and_then(obey).map(|()| 0).map_err(|error| error.to_string())
    }
}

/// Runs the trial, or refuses it, and writes the record. An `Err` is printed to stderr.
fn obey(Prepared { order, board, means }: Prepared) -> Result<(), ProcessError> {
    match means {
        Ok(means) => measure(&order, &board, means),
        Err(error) => {
            let outcome = Outcome::Failed { cause: Cause::Refused, text: error.to_string() };
            let record = Record::failed(order.trial.clone(), crate::results::now_rfc3339(), outcome);
            Ok(keep_record(&record, &order, || ())?)
        }
    }
}

/// Loads the plug-in, runs the trial and writes the record.
fn measure(order: &Order, board: &Board, means: Option<Means>) -> Result<(), ProcessError> {
    let registry = Registry::alone(order.plugin.as_deref())?;
    let engine =
        registry.engine(&order.trial.engine).map_err(|_| ProcessError::Engine(order.trial.engine.clone()))?;
    let mut on_tick = TrialTask::tell;
    // An engine that has used all file descriptors must not prevent the record from being written.
    let reserve = RefCell::new((0..RESERVED_FILES).map(|_| fs::File::open("/dev/null")).collect::<Vec<_>>());
    // The unfinished record is only needed if the rest fails, so errors are ignored.
    let keep = |record: &Record| {
        let _ = write_record(record, &unfinished(&order.record));
        Ok(())
    };
    let folders = Folders { data: &order.data, start: order.start.as_deref(), leave: order.leave.as_deref() };
    let versions = order.record.with_file_name("versions");
    let clock = Clock::calibrate();
    let record = match &order.end {
        Some(hand_over) => {
            let around = Around::alone(clock, board.clone());
            let handed = HandedOver { state: hand_over, versions: &versions };
            trial::run_end(&order.trial, engine, folders, around, handed, &mut on_tick, &keep)
        }
        None => {
            let run = |hand_over: &ClosedState| end_elsewhere(order, hand_over, board);
            let member = match order.seat.as_ref().map(|seat| joined(seat, &order.trial)).transpose() {
                Ok(member) => member,
                Err(error) => {
                    let outcome =
                        Outcome::Failed { cause: Cause::LoadGeneratorLost, text: error.to_string() };
                    let record = Record::failed(order.trial.clone(), crate::results::now_rfc3339(), outcome);
                    return Ok(keep_record(&record, order, || reserve.borrow_mut().clear())?);
                }
            };
            let elsewhere = Elsewhere { versions: &versions, is_kept: order.leave.is_some(), run: &run };
            let board = board.clone();
            let around = Around { clock, board, member, means, elsewhere: Some(&elsewhere) };
            trial::run_in(&order.trial, engine, folders, around, &mut on_tick, &keep)
        }
    };
    let record = record.map_err(|error| ProcessError::Trial(error.to_string()))?;
    Ok(keep_record(&record, order, || reserve.borrow_mut().clear())?)
}

/// Why a trial did not join the other load generators.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum NotJoined {
    Secret(#[from] SecretError),
    Join(#[from] JoinError),
}

/// Joins the other load generators of the trial.
fn joined(seat: &Seat, trial: &Trial) -> Result<Member, NotJoined> {
    Ok(Member::join(seat, &Secret::find(seat.secret_file.as_deref())?, &trial.id, trial.load_generators)?)
}

/// Writes the complete record, and frees space for it if necessary.
fn keep_record(record: &Record, order: &Order, release_files: impl Fn()) -> Result<(), Cannot> {
    write_record(record, &order.record)
        .or_else(|error| {
            release_files();
            let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            for file in [Some(unfinished(&order.record)), order.reserve.clone()].into_iter().flatten() {
                if is_full {
                    // It may have been removed already.
                    let _ = fs::remove_file(file);
                }
            }
            write_record(record, &order.record)
        })
        .map_err(Cannot::on("write", &order.record))
}

/// The file for the unfinished record of a running trial.
fn unfinished(record: &Path) -> PathBuf {
    record.with_extension("unfinished")
}

/// Runs the end of a trial in a fresh process, which has the limits, environment and output of this one, and ends with it.
fn end_elsewhere(order: &Order, hand_over: &ClosedState, board: &Board) -> Result<Record, Failure> {
    let failed = |text: String| Failure { cause: Cause::Io, text };
    let file = |name: &str| order.record.with_file_name(name);
    let (task_file, record) = (file("end-task.json"), file("end.json"));
    let end = Order {
        record: record.clone(),
        leave: None,
        board: None,
        seat: None,
        end: Some(hand_over.clone()),
        ..order.clone()
    };
    let text = serde_json::to_string(&end).map_err(|error| failed(error.to_string()))?;
    // It may have the password of a cluster that another load generator has started.
    let written = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&task_file);
    written
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| failed(Cannot::on("write", &task_file)(error).to_string()))?;
    board.step(StepKind::Reopen);
    let command = TrialTask { file: task_file.clone(), is_end: true }.command(&order.executable);
    let status = command
        .and_then(|mut command| start::process(command.stdin(Stdio::null())))
        .and_then(|mut child| child.wait());
    let whole = read_record(&record);
    let begun = read_record(&unfinished(&record));
    for file in [task_file, unfinished(&record), record, file("versions")] {
        // It may not exist.
        let _ = fs::remove_file(file);
    }
    let status = status.map_err(|error| failed(Cannot::on("start", &order.executable)(error).to_string()))?;
    match whole {
        Some(record) if status.success() => Ok(record),
        whole => {
            let how = Fate::of(Some(status)).word();
            let message = end_of(&file(STDERR))
                .ok()
                .and_then(|end| telling_line(String::from_utf8_lossy(&end).lines()).map(String::from))
                .map_or_else(String::new, |line| format!(": {line}"));
            let has_opened = |record: Record| record.steps.iter().any(|step| step.name == StepKind::Reopen);
            let has_opened = whole.or(begun).is_some_and(has_opened);
            let stage = if has_opened { StepKind::Sweep } else { StepKind::Reopen };
            let text =
                format!("the fresh process that reopens the database ended with {how} in `{stage}`{message}");
            Err(Failure { cause: Cause::Crashed, text })
        }
    }
}

/// Applies the limits to this process.
fn apply_limits(order: &Order) -> Result<(), LimitError> {
    if let Some(entrance) = &order.entrance {
        memory_cap::enter(entrance).map_err(|error| LimitError::Memory(error.to_string()))?;
    }
    // A fresh process at the end has the filter of the one that starts it.
    if order.trial.counts_calls && order.end.is_none() {
        system_calls::begin().map_err(LimitError::Calls)?;
        // Without counters there are no instructions.
        let _ = cycles::begin(Mode::User);
    }
    if order.trial.counts_cycles {
        cycles::begin(Mode::Both).map_err(LimitError::Cycles)?;
    }
    order.trial.placement.apply().map_err(|error| LimitError::Placement(error.to_string()))
}

fn write_record(record: &Record, file: &Path) -> io::Result<()> {
    let part = file.with_extension("part");
    let written = serde_json::to_string(record)
        .map_err(io::Error::from)
        .and_then(|text| fs::write(&part, text))
        .and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        // Free the space for the next attempt.
        let _ = fs::remove_file(&part);
    }
    written
}

/// The settings for running trials.
#[derive(Clone)]
pub struct Runner {
    /// The executable that runs the processes of trials.
    pub executable: PathBuf,
    /// The plug-ins of engines that are not built in.
    pub plugins: BTreeMap<String, PathBuf>,
    /// The folder for kept databases; none: databases are not kept.
    pub keep: Option<PathBuf>,
    /// The kept databases whose copies trials start with, by the ids of the trials.
    pub reuse: BTreeMap<String, PathBuf>,
    /// A trial that makes no progress for this long is killed.
    pub stall: Duration,
    /// Additional environment of their processes, which is not recorded: names and values.
    pub environment: Vec<(String, String)>,
    /// What accounting passes have observed.
    pub audits: Vec<Audit>,
    /// The other load generators of the run; none: it is the only one.
    pub company: Option<Arc<Company>>,
}

/// The files of the parent and of a trial's process.
pub struct Files<'f> {
    /// An existing folder for the trial's files.
    pub scratch: &'f Path,
    /// A file that may be removed to free space for its record; none: no such file.
    pub reserve: Option<&'f Path>,
}

/// How a trial ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Itself,
    /// The parent killed it in this step.
    Stalled(Doing),
    Interrupted,
}

impl Runner {
    /// The path to keep the database of a trial at: the database of its cell's first successful trial is kept.
    pub fn place(&self, trial: &Trial) -> Option<PathBuf> {
        let place = self.keep.as_ref()?.join(kept::name(trial));
        place.symlink_metadata().is_err().then_some(place)
    }

    /// Runs a trial in `data`; always returns a record.
    pub fn run(
        &self,
        trial: &Trial,
        data: &DataFolder,
        files: &Files<'_>,
        observer: &mut dyn Observer,
    ) -> Record {
        let started_at = crate::results::now_rfc3339();
        let kills_before = signals::out_of_memory_kills();
        let (tried, cap) = match trial.workload.memory_bytes.map(MemoryCap::create).transpose() {
            Ok(cap) => {
                let tried = self.try_run(trial, data, files, cap.as_ref(), observer);
                (tried, cap.map(|cap| cap.record()))
            }
            Err(error) => {
                let text = error.to_string();
                (Err(Box::new((Outcome::Failed { cause: Cause::Refused, text }, None))), None)
            }
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
        let out_of_memory = match &cap {
            Some(cap) if cap.kills.is_some() => cap.kills > Some(0),
            _ => signals::out_of_memory_kills() > kills_before,
        };
        let scene = Scene { data: data.root(), cap: cap.as_ref(), out_of_memory };
        record.outcome = short::outcome(record.outcome, &scene);
        record.memory_cap = cap;
        self.add_observations(&mut record);
        record
    }

    /// Adds to each phase that writes what was observed of its engine at its level.
    fn add_observations(&self, record: &mut Record) {
        let Trial { engine, options, .. } = &record.trial;
        let own = |audit: &&Audit| audit.engine == *engine && audit.options == *options;
        for phase in &mut record.phases {
            let audit =
                self.audits.iter().filter(own).find(|audit| Some(audit.level) == phase.durability_effective);
            phase.observed = audit.zip(Shape::of(&phase.phase)).map(|(audit, shape)| audit.observed(shape));
        }
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
        // Absolute paths, because an engine may change the working folder.
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let scratch = whole(files.scratch);
        let board = Board::shared(&trial.workload);
        let seat =
            self.company.as_ref().filter(|_| trial.load_generators > 1).map(|company| company.seat.clone());
        let order = Order {
            trial: seat
                .as_ref()
                .map_or_else(|| trial.clone(), |seat| of_load_generator(trial, seat.load_generator)),
            data: whole(&data.database()),
            start: self.reuse.get(&trial.id).map(|path| whole(path)),
            leave: self.place(trial).map(|_| whole(data.root())),
            record: scratch.join("result.json"),
            reserve: files.reserve.map(whole),
            entrance: cap.map(MemoryCap::entrance),
            board: board.as_ref().and_then(Board::descriptor),
            plugin: self.plugins.get(&trial.engine).cloned(),
            executable: self.executable.clone(),
            seat,
            end: None,
        };
        let task_file = scratch.join("task.json");
        let stderr_file = scratch.join(STDERR);
        let text = serde_json::to_string(&order).map_err(|error| refused(error.to_string()))?;
        fs::write(&task_file, text)
            .map_err(|error| refused(Cannot::on("write", &task_file)(error).to_string()))?;
        // Left by an earlier attempt before the run was interrupted.
        let ends = ["end-task.json", "end.json", "end.unfinished", "versions"].map(|name| scratch.join(name));
        for old in ends.iter().chain([&order.record, &unfinished(&order.record)]) {
            let _ = fs::remove_file(old);
            let _ = fs::remove_file(old.with_extension("part"));
        }
        let (mut process, mut stderr) = self
            .start(&trial.engine, &task_file, &stderr_file)
            .map_err(|error| refused(error.to_string()))?;
        let (end, ended) = self.watch(&mut process, &mut stderr, board.as_ref(), observer);
        let on_stdout = process.take_printed();
        drop(process);
        // If the disk is so full or broken that it cannot be read, nothing is known of it.
        let (on_stderr, stderr) = stderr.finish().unwrap_or_default();
        let stderr = last_lines(&stderr);
        let whole = read_record(&order.record);
        let partial = read_record(&unfinished(&order.record));
        for old in [&order.record, &unfinished(&order.record)] {
            // It is in memory now, and disk space may be short.
            let _ = fs::remove_file(old);
        }
        let is_sound = ended == Ended::Itself && end.status.is_some_and(|status| status.success());
        match whole {
            Some(mut record) if is_sound => {
                record.warnings.extend(left_behind(&end));
                record.warnings.extend(Warning::of_printed("stdout", &on_stdout));
                record.warnings.extend(Warning::of_printed("stderr", &on_stderr));
                Ok(record)
            }
            whole => {
                let ended = match (&whole, ended) {
                    (Some(_), Ended::Stalled(_)) => Ended::Stalled(Doing::Exit),
                    (_, ended) => ended,
                };
                let mut partial = whole.or(partial);
                if let Some(record) = &mut partial {
                    record.warnings.extend(left_behind(&end));
                }
                Err(Box::new((why(&end, ended, self.stall, stderr), partial)))
            }
        }
    }

    fn start(
        &self,
        engine: &str,
        task: &Path,
        stderr: &Path,
    ) -> Result<(TaskProcess<Tick>, PrintedFile), Cannot> {
        let (printed, stderr) = PrintedFile::create(stderr).map_err(Cannot::on("create", stderr))?;
        let task = TrialTask { file: task.to_path_buf(), is_end: false };
        let process = task
            .start(&self.executable, |command| {
                command.envs(environment_of(engine));
                command.envs(self.environment.iter().map(|(name, value)| (name, value)));
                command.stderr(stderr);
            })
            .map_err(Cannot::on("start", &self.executable))?;
        Ok((process, printed))
    }

    /// Forwards ticks until the process ends, makes no progress for too long, or the user interrupts it.
    fn watch(
        &self,
        process: &mut TaskProcess<Tick>,
        stderr: &mut PrintedFile,
        board: Option<&Board>,
        observer: &mut dyn Observer,
    ) -> (End, Ended) {
        let mut patience = Patience::new(self.stall);
        let mut last_tick = (String::new(), None, 0);
        let mut last_progress = (0, 0);
        let mut ended = Ended::Itself;
        loop {
            match process.next(LOOK_EVERY) {
                Event::Told(tick) => {
                    if (&tick.phase, tick.round, tick.ops) != (&last_tick.0, last_tick.1, last_tick.2) {
                        patience.renew();
                        last_tick = (tick.phase.clone(), tick.round, tick.ops);
                    }
                    observer.tick(&tick);
                }
                Event::Quiet => {}
                Event::Ended(end) => return (end, ended),
            }
            // If it cannot be shortened, it only grows.
            let _ = stderr.shorten();
            let snapshot = board.map(Board::snapshot);
            if let Some(snapshot) = &snapshot {
                // An engine may have closed the pipe for ticks.
                if (snapshot.changes, snapshot.ops()) != last_progress {
                    patience.renew();
                    last_progress = (snapshot.changes, snapshot.ops());
                }
                observer.snapshot(snapshot);
            }
            if ended == Ended::Itself {
                if signals::interrupts() >= 2 {
                    ended = Ended::Interrupted;
                } else if patience.is_over() {
                    ended = Ended::Stalled(snapshot.map_or(Doing::Phase, |snapshot| snapshot.doing));
                }
                if ended != Ended::Itself {
                    process.kill();
                }
            }
        }
    }
}

/// Warnings about processes that an engine left running.
fn left_behind(end: &End) -> impl Iterator<Item = Warning> {
    let mut counts = BTreeMap::new();
    end.left.iter().for_each(|name| *counts.entry(name.as_str()).or_insert(0) += 1);
    Warning::of_left(&counts).into_iter().chain(Warning::of_blocked(&blocked_text(&end.blocked)))
}

/// `kvdyno (process 17)`, for each; empty if there are none.
fn blocked_text(blocked: &[Blocked]) -> String {
    let each = |blocked: &Blocked| format!("{} (process {})", blocked.name, blocked.process);
    blocked.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn read_record(file: &Path) -> Option<Record> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// The last lines of what was printed. If a runtime has printed the traces of many stacks, the line that says why is before
/// them.
fn last_lines(end: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text.lines().collect();
    let mut last = lines[lines.len().saturating_sub(STDERR_LINES)..].to_vec();
    if let Some(telling) = telling_line(lines.iter().copied())
        && !last.iter().any(|line| line.trim() == telling)
    {
        last[0] = telling;
    }
    last.into_iter().map(String::from).collect()
}

/// The end of a file.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_BYTES)))?;
    let mut end = Vec::new();
    file.take(STDERR_BYTES).read_to_end(&mut end)?;
    Ok(end)
}

/// The outcome of a process that did not finish normally.
fn why(end: &End, ended: Ended, stall: Duration, stderr: Vec<String>) -> Outcome {
    let failed = |cause: Cause, text: String| Outcome::Failed { cause, text };
    match ended {
        Ended::Interrupted => return failed(Cause::Interrupted, "stopped by the user".into()),
        Ended::Stalled(doing) => {
            let seconds = stall.as_secs();
            let what = match doing {
                Doing::Phase | Doing::Step(StepKind::Sweep) => format!("no op finished for {seconds} s"),
                Doing::Start => format!("the trial did not start within {seconds} s"),
                // The progress of the fresh process after the open is not visible.
                Doing::Step(StepKind::Reopen) => {
                    format!("reopen and sweep did not finish within {seconds} s")
                }
                Doing::Exit => format!("its process did not exit within {seconds} s"),
                Doing::Step(step) => format!("{step} did not return within {seconds} s"),
            };
            let text = match (&*blocked_text(&end.blocked), end.status) {
                ("", Some(_)) => format!("{what}, so it was killed; raise the limit with --stall-seconds"),
                (names, _) => {
                    let names = if names.is_empty() { "its process" } else { names };
                    format!(
                        "{what}, and {names} could not be killed: the kernel blocks it, as when a disk or a file system \
                         does not respond; check the disk and the kernel's log (dmesg)"
                    )
                }
            };
            return failed(Cause::Timeout, text);
        }
        Ended::Itself => {}
    }
    Outcome::Crashed { signal: end.fate().word(), stderr, suspects: None }
}
