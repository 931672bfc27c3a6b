//! The folder of one run: `run.json`, a record per trial, and the journal that lists the records that count.
//!
//! A record is written to disk first; it counts once its journal line is on disk. So after a crash at any moment, each
//! trial is either done, with its complete record, or not done.

use super::identity::{is_safe_name, with_suffix};
use super::journal::{self, Entry};
use super::load::{LoadError, RECORD_LIMIT_BYTES, RUN_LIMIT_BYTES, parse_record, parse_run};
use super::{Outcome, Parts, Plan, Record, Run};
use kvdyno_measure::read_limited;
use kvdyno_measure::shortage::cure;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RUN_FILE: &str = "run.json";
const JOURNAL_FILE: &str = "journal.jsonl";
const RECORD_FILE: &str = "record.json";
const TRIALS_FOLDER: &str = "trials";
/// The run's place in the order in which the runs next to it were made. A clock may be wrong, and copies have other times.
const ORDER_FILE: &str = "order";
/// The maximum size of that file, bytes.
const ORDER_LIMIT_BYTES: u64 = 32;

/// The status of a trial that the user interrupted: it is kept, but measured again on resume.
const INTERRUPTED: &str = "interrupted";

/// How long the journal may stay locked after its process has ended: one that it was starting inherits the lock, and has it
/// until its program begins.
const INHERITED: Duration = Duration::from_secs(2);
/// The pause between two attempts to lock it.
const PAUSE: Duration = Duration::from_millis(20);

/// Why results cannot be written or read.
#[derive(Debug)]
pub enum StoreError {
    /// The operating system reported an error.
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The run's folder already exists.
    Exists(PathBuf),
    /// There is no `run.json` in the folder.
    NotResults(PathBuf),
    /// Another process writes to the run.
    Locked(PathBuf),
    /// A file has unexpected content.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: LoadError,
    },
    /// A run or trial id that cannot name a folder.
    BadName(String),
    /// An id that two trials of a run have.
    SameName(String),
    /// A record of a trial that is not part of the run's plan.
    UnknownTrial(String),
    /// A second record of a trial that is done.
    AlreadyDone(String),
    /// A record that could not be read back and was not kept.
    NotStorable {
        /// The trial.
        trial: String,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io { doing, path, source } => {
                write!(
                    out,
                    "cannot {doing} {}: {source}: {}",
                    path.display(),
                    cure(source).unwrap_or("check the path, the free space and the permissions")
                )
            }
            StoreError::Exists(path) => {
                write!(
                    out,
                    "{} already exists: choose another results folder, or resume that run",
                    path.display()
                )
            }
            StoreError::NotResults(path) => {
                write!(out, "{} has no {RUN_FILE}: use the folder of one run", path.display())
            }
            StoreError::Locked(path) => {
                write!(
                    out,
                    "another kvdyno process is writing to {}: wait until it has ended, or stop it",
                    path.display()
                )
            }
            StoreError::Unreadable { path, reason } => {
                write!(out, "cannot read {}: {reason}", path.display())
            }
            StoreError::BadName(name) => write!(
                out,
                "{name:?} is not a valid folder name: use letters, digits, '.', '_', '-', ':', and begin with a letter or digit"
            ),
            StoreError::SameName(id) => {
                write!(out, "two trials of the run have the id {id:?}: restore {RUN_FILE}, or measure again")
            }
            StoreError::UnknownTrial(id) => {
                write!(out, "the run has no trial {id:?}: keep its record in the run that planned it")
            }
            StoreError::AlreadyDone(id) => {
                write!(out, "trial {id:?} already has a record: start a new run to measure it again")
            }
            StoreError::NotStorable { trial, reason } => write!(
                out,
                "the record of trial {trial:?} could not be read back and was not kept ({reason}): please report this bug in kvdyno"
            ),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            StoreError::Unreadable { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// Adds the action and the path to an error of the operating system.
trait Doing<Value> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<Value, StoreError>;
}

impl<Value> Doing<Value> for io::Result<Value> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<Value, StoreError> {
        self.map_err(|source| StoreError::Io { doing, path: path.to_path_buf(), source })
    }
}

/// The results folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    run: Run,
    done: BTreeMap<String, Entry>,
    warnings: Vec<String>,
    /// The journal, locked while it is open; none until the first save of a folder that was opened for reading.
    journal: Option<File>,
}

impl RunFolder {
    /// Creates the folder `parent/<run.id>` with its `run.json`, and locks its journal.
    ///
    /// Fails if the folder exists, if the id of the run or of a trial is not a valid folder name, and on errors of the
    /// operating system.
    pub fn create(parent: &Path, run: &Run) -> Result<RunFolder, StoreError> {
        check_names(run)?;
        fs::create_dir_all(parent).doing("create the folder", parent)?;
        let path = parent.join(&run.id);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::Exists(path));
            }
            made => made.doing("create the folder", &path)?,
        }
        let trials = path.join(TRIALS_FOLDER);
        fs::create_dir(&trials).doing("create the folder", &trials)?;
        let mut folder =
            RunFolder { path, run: run.clone(), done: BTreeMap::new(), warnings: Vec::new(), journal: None };
        folder.hold_journal()?;
        write_order(&folder.path)?;
        // `run.json` is written last: after an earlier crash the folder does not look like a run.
        write_whole(&folder.path, RUN_FILE, &to_json(run, &run.id)?)?;
        sync_folder(parent)?;
        Ok(folder)
    }

    /// Creates the folder as [`RunFolder::create`] does. While there is a run with the same id, which started in the same
    /// second, the next of `suffixes` takes the place of the id's own.
    pub fn create_distinct(
        parent: &Path,
        mut run: Run,
        suffixes: impl IntoIterator<Item = u16>,
    ) -> Result<RunFolder, StoreError> {
        let mut created = RunFolder::create(parent, &run);
        for suffix in suffixes {
            if !matches!(created, Err(StoreError::Exists(_))) {
                break;
            }
            run.id = with_suffix(&run.id, suffix);
            created = RunFolder::create(parent, &run);
        }
        created
    }

    /// Opens the folder of a run for reading; writes nothing until the first [`RunFolder::save`].
    ///
    /// A torn end of the journal is ignored, and a trial whose record is missing or does not match its journal line counts
    /// as not done; see [`RunFolder::warnings`]. Fails if `run.json` cannot be read or has a newer schema.
    pub fn open(path: &Path) -> Result<RunFolder, StoreError> {
        let run_path = path.join(RUN_FILE);
        let json = match read_limited(&run_path, RUN_LIMIT_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::NotResults(path.to_path_buf()));
            }
            read => read.doing("read", &run_path)?,
        };
        let mut run = parse_run(&json).map_err(|reason| StoreError::Unreadable { path: run_path, reason })?;
        let mut parts = Parts::default();
        run.plan.trials.iter_mut().for_each(|trial| parts.share_trial(trial));
        check_names(&run)?;
        let mut folder = RunFolder {
            path: path.to_path_buf(),
            run,
            done: BTreeMap::new(),
            warnings: Vec::new(),
            journal: None,
        };
        folder.read_journal()?;
        Ok(folder)
    }

    /// Opens the folder of a run to continue it: like [`RunFolder::open`], but removes the torn end of the journal and locks
    /// it. Also fails if another process has the lock.
    pub fn resume(path: &Path) -> Result<RunFolder, StoreError> {
        let mut folder = RunFolder::open(path)?;
        folder.hold_journal()?;
        Ok(folder)
    }

    /// The planned run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Changes the trials of the plan that have no record; the changed plan is on disk when this returns.
    ///
    /// Fails if the id of a trial is not a valid folder name, and on errors of the operating system; the plan is then the old
    /// one.
    pub fn replan(&mut self, plan: Plan) -> Result<(), StoreError> {
        let run = Run { plan, ..self.run.clone() };
        check_names(&run)?;
        self.hold_journal()?;
        write_whole(&self.path, RUN_FILE, &to_json(&run, &run.id)?)?;
        self.run = run;
        Ok(())
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Damage that was found when the folder was opened, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the trial has a record that counts; a trial that the user interrupted does not count as done.
    pub fn is_done(&self, trial_id: &str) -> bool {
        self.done.get(trial_id).is_some_and(|entry| entry.status != INTERRUPTED)
    }

    /// The journal lines of the records that count, without those of trials that the user interrupted.
    pub(super) fn done(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.done.iter().filter(|(_, entry)| entry.status != INTERRUPTED)
    }

    /// Replaces parts of the trials by equal parts of other runs.
    pub(super) fn share(&mut self, parts: &mut Parts) {
        self.run.plan.trials.iter_mut().for_each(|trial| parts.share_trial(trial));
    }

    /// All records, in the order of the plan. Fails if one cannot be read or has a newer schema.
    pub fn finished(&self) -> Result<Vec<Record>, StoreError> {
        let mut parts = Parts::default();
        self.run.plan.trials.iter().for_each(|trial| parts.share_trial(&mut trial.clone()));
        let mut records = Vec::new();
        for trial in self.run.plan.trials.iter().filter(|trial| self.done.contains_key(&trial.id)) {
            let mut record = self.record(&trial.id)?;
            parts.share(&mut record);
            records.push(record);
        }
        Ok(records)
    }

    /// Saves the record of a trial; it is on disk when this returns.
    ///
    /// Fails for a trial that was not planned or is done, for a record that could not be read back, and on errors of the
    /// operating system; the trial is then not done, and saving may be tried again.
    pub fn save(&mut self, record: &Record) -> Result<(), StoreError> {
        let id = &record.trial.id;
        if !self.run.plan.trials.iter().any(|trial| trial.id == *id) {
            return Err(StoreError::UnknownTrial(id.clone()));
        }
        self.hold_journal()?;
        if self.is_done(id) {
            return Err(StoreError::AlreadyDone(id.clone()));
        }
        let json = to_json(record, id)?;
        // A number that JSON cannot represent (NaN, infinity) is written as null and then refused when read.
        parse_record(&json)
            .map_err(|error| StoreError::NotStorable { trial: id.clone(), reason: error.to_string() })?;
        let trials = self.path.join(TRIALS_FOLDER);
        let folder = trials.join(id);
        fs::create_dir_all(&folder).doing("create the folder", &folder)?;
        sync_folder(&trials)?;
        write_whole(&folder, RECORD_FILE, &json)?;
        let entry = Entry {
            trial: id.clone(),
            record: format!("{TRIALS_FOLDER}/{id}/{RECORD_FILE}"),
            bytes: json.len() as u64,
            crc32: journal::checksum(&json),
            // A cause may be long or hostile, and a journal line has a limit.
            status: status(&record.outcome).chars().take(40).collect(),
        };
        self.append(&entry)?;
        self.done.insert(id.clone(), entry);
        Ok(())
    }

    /// The folder for other files of a trial, such as its stderr; created if it does not exist.
    pub fn trial_folder(&self, trial_id: &str) -> Result<PathBuf, StoreError> {
        if !is_safe_name(trial_id) {
            return Err(StoreError::BadName(trial_id.to_string()));
        }
        let folder = self.path.join(TRIALS_FOLDER).join(trial_id);
        fs::create_dir_all(&folder).doing("create the folder", &folder)?;
        Ok(folder)
    }

    /// Writes a report next to the records, atomically, and replaces an older one; returns its path.
    pub fn write_report(&self, name: &str, text: &[u8]) -> Result<PathBuf, StoreError> {
        if !is_safe_name(name) {
            return Err(StoreError::BadName(name.to_string()));
        }
        write_whole(&self.path, name, text)?;
        Ok(self.path.join(name))
    }

    pub(super) fn record_path(&self, trial_id: &str) -> PathBuf {
        self.path.join(TRIALS_FOLDER).join(trial_id).join(RECORD_FILE)
    }

    fn record(&self, trial_id: &str) -> Result<Record, StoreError> {
        let path = self.record_path(trial_id);
        let json = read_limited(&path, RECORD_LIMIT_BYTES).doing("read", &path)?;
        parse_record(&json).map_err(|reason| StoreError::Unreadable { path, reason })
    }

    /// Reads the journal and checks each record against its line; returns the end of the last complete line.
    fn read_journal(&mut self) -> Result<u64, StoreError> {
        let path = self.path.join(JOURNAL_FILE);
        let bytes = match read_limited(&path, RUN_LIMIT_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.doing("read", &path)?,
        };
        let scan = journal::scan(&bytes);
        self.warnings.clear();
        if scan.damaged_lines > 0 {
            self.warnings.push(format!(
                "{} lines of the journal are damaged; their trials count as not done",
                scan.damaged_lines
            ));
        }
        let planned: BTreeSet<&str> = self.run.plan.trials.iter().map(|trial| trial.id.as_str()).collect();
        let mut newest = BTreeMap::new();
        for entry in scan.entries {
            // Trials outside the plan are ignored, so a forged journal cannot point to other files.
            if planned.contains(entry.trial.as_str()) {
                newest.insert(entry.trial.clone(), entry);
            }
        }
        let mut done = BTreeMap::new();
        for (id, entry) in newest {
            if self.matches(&entry) {
                done.insert(id, entry);
            } else {
                self.warnings
                    .push(format!("the record of trial {id} is missing or damaged; it counts as not done"));
            }
        }
        self.done = done;
        Ok(scan.whole_bytes)
    }

    fn matches(&self, entry: &Entry) -> bool {
        read_limited(&self.record_path(&entry.trial), RECORD_LIMIT_BYTES)
            .is_ok_and(|bytes| bytes.len() as u64 == entry.bytes && journal::checksum(&bytes) == entry.crc32)
    }

    /// Takes the lock, reads the journal again under the lock (another process may have written to it) and removes its torn
    /// end.
    fn hold_journal(&mut self) -> Result<(), StoreError> {
        if self.journal.is_some() {
            return Ok(());
        }
        let path = self.path.join(JOURNAL_FILE);
        let file =
            OpenOptions::new().append(true).read(true).create(true).open(&path).doing("open", &path)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::WouldBlock) if begun.elapsed() < INHERITED => std::thread::sleep(PAUSE),
                Err(fs::TryLockError::WouldBlock) => return Err(StoreError::Locked(self.path.clone())),
                // Some file systems have no locks; there, users must not run two processes on the same folder.
                Err(fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => break,
                Err(fs::TryLockError::Error(error)) => return Err(error).doing("lock", &path),
            }
        }
        let whole_bytes = self.read_journal()?;
        if file.metadata().doing("read", &path)?.len() != whole_bytes {
            file.set_len(whole_bytes).doing("remove the torn end of", &path)?;
        }
        file.sync_all().doing("write", &path)?;
        sync_folder(&self.path)?;
        self.journal = Some(file);
        Ok(())
    }

    fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let path = self.path.join(JOURNAL_FILE);
        let Some(mut file) = self.journal.take() else {
            return Err(StoreError::Locked(self.path.clone()));
        };
        // On failure the file is closed, and the next save reads the journal again and removes its torn end.
        file.write_all(&journal::encode(entry)).doing("write", &path)?;
        file.sync_data().doing("write", &path)?;
        self.journal = Some(file);
        Ok(())
    }
}

/// The folder of a run that is made of records of other runs.
pub(super) struct Target<'a> {
    path: &'a Path,
    run: &'a Run,
    journal: Vec<u8>,
}

impl<'a> Target<'a> {
    /// Creates the folder, which may exist if it is empty.
    pub(super) fn create(path: &'a Path, run: &'a Run) -> Result<Target<'a>, StoreError> {
        check_names(run)?;
        let trials = path.join(TRIALS_FOLDER);
        fs::create_dir_all(&trials).doing("create the folder", &trials)?;
        Ok(Target { path, run, journal: Vec::new() })
    }

    /// Adds a record, and copies the other files of its trial's folder, such as its stderr. Nothing is durable yet.
    pub(super) fn add(
        &mut self,
        entry: &Entry,
        bytes: &[u8],
        others: Option<&Path>,
    ) -> Result<(), StoreError> {
        let folder = self.path.join(TRIALS_FOLDER).join(&entry.trial);
        fs::create_dir(&folder).doing("create the folder", &folder)?;
        let record = folder.join(RECORD_FILE);
        fs::write(&record, bytes).doing("write", &record)?;
        let Some(others) = others else { return Ok(()) };
        for file in fs::read_dir(others).doing("read", others)? {
            let file = file.doing("read", others)?;
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && file.file_name() != RECORD_FILE {
                let copy = folder.join(file.file_name());
                fs::copy(file.path(), &copy).doing("write", &copy)?;
            }
        }
        self.journal.extend(journal::encode(entry));
        Ok(())
    }

    /// Writes the journal and `run.json`, when all records are durable.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        write_whole(self.path, JOURNAL_FILE, &self.journal)?;
        write_order(self.path)?;
        write_whole(self.path, RUN_FILE, &to_json(self.run, &self.run.id)?)
    }
}

/// The error of reading a file.
pub(super) fn reading(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { doing: "read", path: path.to_path_buf(), source }
}

/// The error of writing a file or folder.
pub(super) fn writing(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { doing: "write", path: path.to_path_buf(), source }
}

/// Takes the lock of a run that no process writes to, for as long as the file is open; `None` if a process writes to it, or if
/// there is no journal.
pub fn lock_idle(path: &Path) -> Option<File> {
    let journal = path.join(JOURNAL_FILE);
    // A pipe would block the open.
    let is_file = journal.symlink_metadata().is_ok_and(|facts| facts.is_file());
    let file = is_file.then(|| File::open(journal).ok()).flatten()?;
    file.try_lock().ok().map(|()| file)
}

/// The run's place in the order in which the runs in its folder were made, from 1; 0: an older version made it.
fn order(run: &Path) -> u64 {
    let text = read_limited(&run.join(ORDER_FILE), ORDER_LIMIT_BYTES).unwrap_or_default();
    std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Makes a run the newest in its folder: its place is after those of all others, also of runs that were copied there.
fn write_order(run: &Path) -> Result<(), StoreError> {
    let parent = match run.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut last = 0;
    for entry in fs::read_dir(parent).doing("read", parent)? {
        last = last.max(order(&entry.doing("read", parent)?.path()));
    }
    write_whole(run, ORDER_FILE, format!("{}\n", last.saturating_add(1)).as_bytes())
}

/// Sorts runs from the oldest to the newest: those of one folder in the order in which they were made. Those of different
/// folders, which may come from different machines, by date; the date of a run is no later than those of newer runs in its
/// folder, because the clock may have been wrong.
pub fn sort_by_age(runs: &mut Vec<RunFolder>) {
    let date = |folder: &RunFolder| folder.run().started_at.clone();
    let mut dated: Vec<(String, u64, RunFolder)> =
        runs.drain(..).map(|folder| (date(&folder), order(folder.path()), folder)).collect();
    // The newest first.
    dated.sort_by(|one, other| (other.1, &other.0).cmp(&(one.1, &one.0)));
    let mut earliest: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (date, _, folder) in &mut dated {
        let parent = folder.path().parent().unwrap_or(folder.path()).to_path_buf();
        let known = earliest.entry(parent).or_insert_with(|| date.clone());
        if *date < *known {
            known.clone_from(date);
        }
        date.clone_from(known);
    }
    dated.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    runs.extend(dated.into_iter().map(|(.., folder)| folder));
}

/// The newest run in a folder of runs: the last one that was made there. Runs of older versions, which have no place in that
/// order, are older; their order is that of their names, which begin with date and time, and in the same second that of the
/// times of their `run.json`. None if there is no run. Fails if the folder cannot be read.
pub fn newest(parent: &Path) -> Result<Option<PathBuf>, StoreError> {
    const SECOND: usize = "2026-11-21T00-00-00".len();
    let mut runs = Vec::new();
    for entry in fs::read_dir(parent).doing("read", parent)? {
        let entry = entry.doing("read", parent)?;
        let Some(file) = fs::metadata(entry.path().join(RUN_FILE)).ok().filter(fs::Metadata::is_file) else {
            continue;
        };
        let name = entry.file_name();
        let second: Vec<u8> = name.as_encoded_bytes().iter().take(SECOND).copied().collect();
        runs.push((order(&entry.path()), second, file.modified().ok(), name));
    }
    Ok(runs.into_iter().max().map(|(.., name)| parent.join(name)))
}

/// The folder, next to runs, for the records of load generators other than the first: parts of these runs.
pub const LOAD_GENERATORS: &str = "ranks";

/// The folders of runs in a folder: itself, and folders up to three levels below it; links are not followed.
/// Fails if the folder cannot be read.
pub fn runs_below(parent: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    let mut left = vec![(parent.to_path_buf(), 0)];
    while let Some((folder, depth)) = left.pop() {
        if folder.join(RUN_FILE).is_file() {
            found.push(folder);
            continue;
        }
        for entry in fs::read_dir(&folder).doing("read", &folder)? {
            let entry = entry.doing("read", &folder)?;
            let is_part = entry.file_name() == LOAD_GENERATORS;
            if depth < 3 && !is_part && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push((entry.path(), depth + 1));
            }
        }
    }
    Ok(found)
}

fn check_names(run: &Run) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    let ids = || run.plan.trials.iter().map(|trial| &trial.id);
    if let Some(id) = ids().chain([&run.id]).find(|id| !is_safe_name(id)) {
        return Err(StoreError::BadName(id.clone()));
    }
    match ids().find(|id| !seen.insert(id.as_str())) {
        Some(id) => Err(StoreError::SameName(id.clone())),
        None => Ok(()),
    }
}

/// The status of a trial: `ok`, `wrong-answers`, `crashed`, or the cause of its failure.
fn status(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::WrongAnswers { .. } => "wrong-answers",
        Outcome::Failed { cause, .. } => cause.name(),
        Outcome::Crashed { .. } => "crashed",
    }
}

fn to_json<T: serde::Serialize>(kept: &T, name: &str) -> Result<Vec<u8>, StoreError> {
    let mut json = serde_json::to_vec(kept)
        .map_err(|error| StoreError::NotStorable { trial: name.to_string(), reason: error.to_string() })?;
    json.push(b'\n');
    Ok(json)
}

/// Writes a file atomically: after a crash it is complete or does not exist.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let unfinished = folder.join(format!("{name}.unfinished"));
    let path = folder.join(name);
    let mut file = File::create(&unfinished).doing("write", &unfinished)?;
    file.write_all(bytes).doing("write", &unfinished)?;
    file.sync_all().doing("write", &unfinished)?;
    drop(file);
    fs::rename(&unfinished, &path).doing("write", &path)?;
    sync_folder(folder)
}

/// Makes names in a folder durable. Systems and file systems that cannot sync a folder do so without a call.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|opened| opened.sync_all()) {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced.doing("write", folder),
    }
}

#[cfg(test)]
mod tests;
