//! The faults that show only after a crash: what they do to the log of a database that was not closed. The log's format is that of
//! memory-btree.

use crate::Fault;
use kvdyno_driver::Error;
use kvdyno_memory::LOG_FILE;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// A file that exists while the database is open.
const OPEN: &str = "mutant.open";
/// A file that exists once it was closed.
const CLOSED: &str = "mutant.closed";
/// The damaged log before it takes the log's place.
const PART: &str = "mutant.part";
/// A file with the length of the log after a crash. It exists until the database is closed.
const RECOVERED: &str = "mutant.recovered";
/// Bytes before the first frame.
const MAGIC_BYTES: usize = 20;
/// Bytes of a frame before its changes: their length, and a checksum.
const HEAD_BYTES: usize = 8;
/// Bytes of a change before its key: kind, keyspace, length of the key, length of the value.
const CHANGE_BYTES: usize = 11;
/// Commits after the one that a hole is made of.
const AFTER_HOLE: usize = 3;

/// Whether a fault is one of these.
pub(crate) const fn is_of_crash(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::CrashLosesTail
            | Fault::CrashLosesCreation
            | Fault::CrashLeavesHoles
            | Fault::CrashHalvesTransaction
            | Fault::CrashWritesBehindTorn
            | Fault::CrashForgetsRepair
    )
}

/// Called before a database is opened: damages its log if it was not closed. Returns whether it must be created again.
pub(crate) fn before_open(fault: Fault, folder: &Path, create: bool) -> Result<bool, Error> {
    let log = folder.join(LOG_FILE);
    let is_crashed = !create && folder.join(OPEN).exists();
    let mut is_gone = false;
    match fault {
        Fault::CrashLosesCreation if is_crashed && !folder.join(CLOSED).exists() => {
            is_gone = true;
            match fs::remove_file(&log) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        _ if is_crashed && log.exists() => {
            let bytes = fs::read(&log)?;
            let recovered = fs::read_to_string(folder.join(RECOVERED)).ok();
            let recovered = recovered.and_then(|text| text.parse().ok());
            let damaged = damaged(fault, &bytes, recovered);
            if let Some(damaged) = &damaged {
                replace(folder, &log, damaged)?;
            }
            if matches!(fault, Fault::CrashWritesBehindTorn | Fault::CrashForgetsRepair) {
                let end = frames(damaged.as_ref().unwrap_or(&bytes)).last().map_or(0, |(_, end)| *end);
                replace(folder, &folder.join(RECOVERED), end.to_string().as_bytes())?;
            }
        }
        _ => {}
    }
    // On stable storage before the first commit, so that a power cut leaves it there.
    File::create(folder.join(OPEN))?.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok(is_gone)
}

/// Gives a file other bytes in one step, so that a second crash finds the old or the new ones.
fn replace(folder: &Path, file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let part = folder.join(PART);
    let mut written = File::create(&part)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    Ok(fs::rename(part, file)?)
}

/// Called after it was closed.
pub(crate) fn after_close(folder: &Path) -> Result<(), Error> {
    File::create(folder.join(CLOSED))?.sync_all()?;
    match fs::remove_file(folder.join(RECOVERED)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(fs::remove_file(folder.join(OPEN))?)
}

/// The log with the fault; `None` if it is too short to show it. `recovered` is its length after an earlier crash, if the database
/// was not closed since.
fn damaged(fault: Fault, log: &[u8], recovered: Option<usize>) -> Option<Vec<u8>> {
    let frames = frames(log);
    match fault {
        // As if the frame were torn at which that recovery ended, and this one ended there, too.
        Fault::CrashWritesBehindTorn => {
            let end = recovered?;
            (frames.last()?.1 > end).then(|| log[..end].to_vec())
        }
        // As if that recovery had read the frame from a copy, which new frames have overwritten.
        Fault::CrashForgetsRepair => {
            let end = recovered.filter(|end| frames.last().is_some_and(|last| last.1 > *end))?;
            let (start, end) = *frames.iter().rev().find(|frame| frame.1 <= end)?;
            Some([&log[..start], &log[end..]].concat())
        }
        Fault::CrashLosesTail => {
            let kept = frames.len() - frames.len().div_ceil(16);
            let end = frames.get(kept)?.0;
            Some(log[..end].to_vec())
        }
        Fault::CrashLeavesHoles => {
            let (start, end) = frames[frames.len().checked_sub(1 + AFTER_HOLE)?];
            Some([&log[..start], &log[end..]].concat())
        }
        Fault::CrashHalvesTransaction => {
            let halves = |(start, end): &(usize, usize)| {
                let changes = changes(&log[start + HEAD_BYTES..*end]);
                (changes.len() > 1).then(|| (*start, start + HEAD_BYTES + changes[changes.len() / 2], *end))
            };
            let (start, half, end) = frames.iter().rev().find_map(halves)?;
            let frame = sealed(&log[start + HEAD_BYTES..half]);
            Some([&log[..start], &frame, &log[end..]].concat())
        }
        _ => None,
    }
}

/// The little-endian number at a place.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

/// Where the complete frames begin and end.
fn frames(log: &[u8]) -> Vec<(usize, usize)> {
    let mut frames = Vec::new();
    let mut start = MAGIC_BYTES;
    while let Some(length) = number(log, start) {
        let end = start + HEAD_BYTES + length;
        if length == 0 || end > log.len() {
            break;
        }
        frames.push((start, end));
        start = end;
    }
    frames
}

/// Where the changes of a frame begin.
fn changes(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut start = 0;
    while let (Some(key), Some(value)) = (number(bytes, start + 3), number(bytes, start + 7)) {
        starts.push(start);
        start += CHANGE_BYTES + key + value;
    }
    starts
}

/// A frame of these changes.
fn sealed(changes: &[u8]) -> Vec<u8> {
    let length = (changes.len() as u32).to_le_bytes();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(changes);
    [&length[..], &hasher.finalize().to_le_bytes(), changes].concat()
}
