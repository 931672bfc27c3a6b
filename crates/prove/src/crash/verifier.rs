//! The process that reads a database after a crash: it opens it, reads every row, writes one, and opens it once more. It tells
//! what it has read and judges nothing.

use super::board::{Board, Stage};
use super::oracle::Rows;
use super::script::{KEY_BYTES, PREFIX, Script, key};
use super::worker::{MEMORY_BYTES, Message, Subject, until_acknowledged, wait_for_end};
use crate::engine_process::DriveError;
use crate::verify::act::{Act, Reply};
use crate::verify::caller::Caller;
use crate::verify::subject::{open_caller, open_database};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Engine};
use kvdyno_core::runner::level_of;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::{Task, processes::cap_own_memory};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use thiserror::Error;

/// Texts that are kept of each kind.
const MOST_TEXTS: usize = 100;
/// The key that is written after the rows were read.
const AFTER: &[u8; KEY_BYTES] = b"kvafter000000000";

/// What the process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifierTask {
    /// The database.
    pub subject: Subject,
    /// Its folder.
    pub folder: PathBuf,
    /// What was written to it.
    pub script: Script,
    /// Whether it was crashed before its creation had ended: then it may also be created again.
    pub may_create: bool,
    /// Whether it only opens the database and waits: it is crashed, too.
    pub only_opens: bool,
    /// The descriptor of the board.
    pub board: i32,
}

impl Task for VerifierTask {
    const KIND: Kind = Kind::CrashVerifier;
    type Message = Message;
    type Prepared = ();

    fn prepare(&self) {
        cap_own_memory(MEMORY_BYTES);
    }

    fn run(self, (): ()) -> Result<u8, String> {
        let board = Board::inherited(self.board).map_err(|error| error.to_string())?;
        if let Err(error) = verify(&self, &board) {
            VerifierTask::tell(&error.message());
        }
        if self.only_opens {
            wait_for_end();
        }
        Ok(0)
    }
}

/// Why a database cannot be used after a crash.
#[derive(Debug, Error)]
pub(super) enum Unusable {
    /// The engine failed.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// It can neither be opened nor created again.
    #[error("{opening}; creating it again: {creating}")]
    Create { opening: DriveError, creating: DriveError },
    /// It cannot be opened again after a clean close.
    #[error("second {0}")]
    Reopen(DriveError),
    /// It cannot be read after a clean close and another open.
    #[error("after another open: {0}")]
    ReadAgain(Box<Unusable>),
    /// A put was acknowledged, and the row is not there.
    #[error("a row that was put after it cannot be read back")]
    NotStored,
    /// A close and an open have changed a row.
    #[error("after a clean close and another open {0}")]
    Changed(String),
    /// A close and an open have lost the row of the last put.
    #[error("after a clean close and another open the row is missing that was put before")]
    Missing,
    /// A scan does not end.
    #[error("a scan returns no row and is not at its end")]
    Endless,
}

impl Unusable {
    /// What a process that reads tells.
    pub(super) fn message(&self) -> Message {
        let text = self.to_string();
        match self {
            // The database can be opened, and does not keep what it has.
            Unusable::Changed(_) | Unusable::Missing => Message::Changed(text),
            _ => Message::Failed(text),
        }
    }
}

fn verify(task: &VerifierTask, board: &Board) -> Result<(), Unusable> {
    verify_with(&task.subject.engine()?, task, board)
}

/// The same, with an engine that is loaded already.
pub(super) fn verify_with(engine: &Engine, task: &VerifierTask, board: &Board) -> Result<(), Unusable> {
    board.enter(Stage::Recover);
    let (database, ns) = open(engine, &task.subject, &task.folder, task.may_create)?;
    let facts = database.effective();
    VerifierTask::tell(&Message::Opened {
        version: facts.version.clone(),
        level: level_of(facts.level),
        in_memory: facts.capabilities & KV_IN_MEMORY != 0,
        ns,
    });
    if task.only_opens {
        return Ok(());
    }
    let setup = task.subject.setup(task.folder.clone(), false);
    let capabilities = facts.capabilities;
    let mut caller = open_caller(&database, &setup).map_err(DriveError::driver)?;
    let threads = task.subject.threads;
    let rows = read(&task.script, threads, &mut caller, capabilities)?;
    VerifierTask::tell(&Message::Read(rows.clone()));
    let value = task.script.value(0, 0, 1);
    until_acknowledged(&mut caller, &[Act::put(AFTER, &value)])
        .map_err(|error| error.at("a put after it"))?;
    let answer = get(&mut caller, AFTER)?;
    if answer.as_ref() != Some(&value) {
        return Err(Unusable::NotStored);
    }
    caller.end().map_err(DriveError::driver)?;
    database.close().map_err(DriveError::engine("close after it"))?;
    let begun = Instant::now();
    let database =
        open_database(engine, &setup).map_err(|error| Unusable::Reopen(DriveError::driver(error)))?;
    let ns = begun.elapsed().as_nanos() as u64;
    let mut caller = open_caller(&database, &setup).map_err(DriveError::driver)?;
    let again = read(&task.script, threads, &mut caller, capabilities)
        .map_err(|error| Unusable::ReadAgain(Box::new(error)))?;
    if let Some(text) = change(&rows, &again) {
        return Err(Unusable::Changed(text));
    }
    if get(&mut caller, AFTER)?.as_ref() != Some(&value) {
        return Err(Unusable::Missing);
    }
    caller.end().map_err(DriveError::driver)?;
    database.close().map_err(DriveError::engine("second close"))?;
    VerifierTask::tell(&Message::Reopened(ns));
    Ok(())
}

/// How what was read differs from what was read before; `None` if it does not.
fn change(before: &Rows, again: &Rows) -> Option<String> {
    let shown =
        |number: Option<u64>| number.map_or("no row".to_string(), |number| format!("commit {number}"));
    let threads = before.threads.iter().zip(&again.threads).enumerate();
    let mut keys = threads.flat_map(|(thread, (before, again))| {
        before.iter().zip(again).enumerate().map(move |(key, (before, again))| (thread, key, *before, *again))
    });
    let changed = keys.find(|(_, _, before, again)| before != again).map(|(thread, key, before, again)| {
        format!("key {key} of thread {thread} has {} instead of {}", shown(again), shown(before))
    });
    let found = again.garbage.iter().chain(&again.duplicates);
    let mut found = found.filter(|text| !before.garbage.contains(text) && !before.duplicates.contains(text));
    changed.or_else(|| found.next().cloned())
}

/// Opens the database. If it cannot be opened, it is created again where applications would do that: its creation was
/// interrupted, or no file of it is left.
pub(super) fn open(
    engine: &Engine,
    subject: &Subject,
    folder: &Path,
    may_create: bool,
) -> Result<(Database, u64), Unusable> {
    let begun = Instant::now();
    let open = |create| {
        open_database(engine, &subject.setup(folder.to_path_buf(), create)).map_err(DriveError::driver)
    };
    let outcome = open(false);
    let ns = begun.elapsed().as_nanos() as u64;
    match outcome {
        Ok(database) => Ok((database, ns)),
        Err(opening) if may_create || is_without_files(folder) => {
            let begun = Instant::now();
            let database = open(true).map_err(|creating| Unusable::Create { opening, creating })?;
            Ok((database, begun.elapsed().as_nanos() as u64))
        }
        Err(opening) => Err(opening.into()),
    }
}

/// Whether a folder has nothing in it but folders of this kind.
fn is_without_files(folder: &Path) -> bool {
    let is_such = |entry: std::fs::DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_without_files(&entry.path())
    };
    std::fs::read_dir(folder).is_ok_and(|entries| entries.flatten().all(is_such))
}

/// The value of a key.
fn get(caller: &mut Caller, key: &[u8]) -> Result<Option<Vec<u8>>, DriveError> {
    let answer: Reply = caller.call(&[Act::get(key)]).map_err(DriveError::driver)?.remove(0);
    match answer.status {
        KV_OK => Ok(Some(answer.bytes)),
        KV_NOT_FOUND => Ok(None),
        _ => Err(DriveError::status("a get", &answer)),
    }
}

/// Reads every row that may exist by a get, and all that do by a scan if the engine has one.
pub(super) fn read(
    script: &Script,
    threads: u32,
    caller: &mut Caller,
    capabilities: u64,
) -> Result<Rows, Unusable> {
    let mut rows = Rows::default();
    for thread in 0..threads {
        let mut found = Vec::new();
        for number in 0..script.keys {
            let value = get(caller, &key(thread, number))?;
            found.push(value.and_then(|value| number_in(script, thread, number, &value, &mut rows)));
        }
        rows.threads.push(found);
    }
    if capabilities & (KV_ORDERED | KV_CAN_PREFIX) != 0 {
        scan(script, caller, capabilities & KV_ORDERED != 0, &mut rows)?;
    }
    rows.garbage.truncate(MOST_TEXTS);
    rows.duplicates.truncate(MOST_TEXTS);
    Ok(rows)
}

/// The commit that wrote a value.
fn number_in(script: &Script, thread: u32, key: u32, value: &[u8], rows: &mut Rows) -> Option<u64> {
    script.number_of(thread, key, value).map_err(|error| rows.garbage.push(error.to_string())).ok()
}

/// Scans all rows and compares them with what the gets have found.
fn scan(script: &Script, caller: &mut Caller, is_ordered: bool, rows: &mut Rows) -> Result<(), Unusable> {
    let threads = rows.threads.len() as u32;
    let first =
        if is_ordered { Act::scan(&[]) } else { Act::scan(&[]).to(PREFIX.as_bytes()).with(KV_PREFIX) };
    let mut scanned: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut last: Option<Vec<u8>> = None;
    loop {
        let act = match &last {
            Some(last) => Act { key: last.clone(), ..first.clone().with(KV_RESUME) },
            None => first.clone(),
        };
        let answer = caller.call(&[act]).map_err(DriveError::driver)?.remove(0);
        if !matches!(answer.status, KV_OK | KV_SHORT) {
            return Err(DriveError::status("a scan", &answer).into());
        }
        let piece = answer.rows().map_err(DriveError::driver)?;
        for (key, value) in &piece {
            if is_ordered && last.as_ref().is_some_and(|last| last >= key) {
                rows.duplicates.push("a scan returns rows twice or out of order".into());
            }
            last = Some(key.clone());
            if key == AFTER {
                continue;
            }
            let Some(place) = script.place_of(key, threads) else {
                rows.garbage.push(format!("a scan returns the key {:?}", String::from_utf8_lossy(key)));
                continue;
            };
            let Some(number) = number_in(script, place.0, place.1, value, rows) else { continue };
            if scanned.insert(place, number).is_some() && !is_ordered {
                rows.duplicates.push(format!("a scan returns key {} of thread {} twice", place.1, place.0));
            }
        }
        if rows.duplicates.len() > MOST_TEXTS || rows.garbage.len() > MOST_TEXTS {
            // A cycle in a broken file would be scanned without end.
            break;
        }
        if answer.status == KV_OK {
            break;
        }
        if piece.is_empty() {
            return Err(Unusable::Endless);
        }
    }
    for (thread, found) in rows.threads.iter().enumerate() {
        for (key, number) in found.iter().enumerate() {
            let by_scan = scanned.get(&(thread as u32, key as u32)).copied();
            // A get that found garbage has no number.
            if by_scan != *number && rows.garbage.is_empty() {
                let shown =
                    |number: Option<u64>| number.map_or("no row".into(), |number| format!("commit {number}"));
                rows.duplicates.push(format!(
                    "key {key} of thread {thread}: a scan finds {}, a get {}",
                    shown(by_scan),
                    shown(*number)
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: `--mode calls` told each of them as a failure, so that rows that a close loses were no loss before the first
    /// acknowledged commit.
    #[test]
    fn a_database_that_does_not_keep_what_it_has_is_told_as_changed() {
        let changed = |error: Unusable| matches!(error.message(), Message::Changed(_));
        assert!(changed(Unusable::Missing));
        assert!(changed(Unusable::Changed("key 1 of thread 0 has no row instead of commit 2".into())));
        assert!(!changed(Unusable::NotStored));
        assert!(!changed(Unusable::ReadAgain(Box::new(Unusable::Endless))));
    }
}
