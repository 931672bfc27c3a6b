//! The append-only file: frames of changes, replayed at open.
//!
//! A frame is one commit: `u32 length, u32 CRC-32 of the length and the changes, changes`. A change is `u8 kind, u16
//! keyspace, u32 key length, u32 value length, key, value`. All little-endian. A torn end is cut off.

use crate::store::{Key, Store};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Level, Op};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Mutex;

/// The file's name in the database's folder.
pub const LOG_FILE: &str = "memory.log";
const MAGIC: &[u8; 20] = b"kvdyno memory log 1\n";
const HEAD: usize = 8;
/// What level `none` collects before it writes: one system call per some hundred rows.
const PENDING_BYTES: usize = 64 << 10;

/// The kind of a change. Merges are logged as they came: each frame is replayed once, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Insert or overwrite.
    Put = 1,
    /// Delete.
    Delete = 2,
    /// Add a u64.
    Add = 3,
    /// Append bytes.
    Append = 4,
    /// Add a value at the right end of a list.
    Push = 5,
    /// Remove the value at the left end of a list.
    Pop = 6,
}

/// One change of one row.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// The kind.
    pub kind: Kind,
    /// The keyspace.
    pub keyspace: usize,
    /// The row's key.
    pub key: &'a [u8],
    /// The value or operand.
    pub value: &'a [u8],
}

impl<'a> Change<'a> {
    /// The change that a write requests; none for other ops.
    pub fn of(op: &Op<'a>) -> Option<Change<'a>> {
        let (kind, value) = match op.kind() {
            KV_PUT => (Kind::Put, op.value()),
            KV_DELETE => (Kind::Delete, &[][..]),
            KV_MERGE if op.is_append() => (Kind::Append, op.value()),
            KV_MERGE => (Kind::Add, op.value()),
            KV_PUSH => (Kind::Push, op.value()),
            KV_POP => (Kind::Pop, &[][..]),
            _ => return None,
        };
        Some(Change { kind, keyspace: op.keyspace(), key: op.key(), value })
    }

    /// Makes the change, which was checked before.
    pub fn apply<S: Store>(&self, store: &mut S) {
        match self.kind {
            Kind::Put => store.put(self.key, self.value),
            Kind::Delete => drop(store.remove(self.key)),
            Kind::Add => add(store.slot(self.key), self.value),
            Kind::Append => store.slot(self.key).extend_from_slice(self.value),
            Kind::Push => {
                if let Some(lists) = store.lists() {
                    lists.entry(Key::from(self.key)).or_default().push_back(self.value.to_vec());
                }
            }
            Kind::Pop => drop(store.lists().and_then(|lists| lists.get_mut(self.key)?.pop_front())),
        }
    }
}

/// Adds a little-endian u64 to a counter, wrapping; an empty counter is 0.
fn add(counter: &mut Vec<u8>, operand: &[u8]) {
    let sum = word(counter).wrapping_add(word(operand));
    counter.clear();
    counter.extend_from_slice(&sum.to_le_bytes());
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

/// A frame being written; its buffer is kept from commit to commit.
#[derive(Default)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// Begins a frame without changes.
    pub fn begin(&mut self) {
        self.0.clear();
        self.0.resize(HEAD, 0);
    }

    /// Adds a change.
    pub fn push(&mut self, change: &Change<'_>) {
        self.0.push(change.kind as u8);
        self.0.extend_from_slice(&(change.keyspace as u16).to_le_bytes());
        self.0.extend_from_slice(&(change.key.len() as u32).to_le_bytes());
        self.0.extend_from_slice(&(change.value.len() as u32).to_le_bytes());
        self.0.extend_from_slice(change.key);
        self.0.extend_from_slice(change.value);
    }

    /// Ends the frame: its bytes, empty if it has no changes.
    fn seal(&mut self) -> Result<&[u8], Error> {
        let length = self.0.len() - HEAD;
        if length == 0 {
            return Ok(&[]);
        }
        let Ok(length) = u32::try_from(length) else {
            return Err(Error::with(kvdyno_driver::Status::TooLarge, "a commit must be smaller than 4 GiB"));
        };
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum(length, &self.0[HEAD..]);
        self.0[4..HEAD].copy_from_slice(&checksum.to_le_bytes());
        Ok(&self.0)
    }
}

fn checksum(length: u32, changes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(changes);
    hasher.finalize()
}

/// The changes of a frame; an error for bytes that this version of the engine did not write.
fn changes(mut bytes: &[u8], mut each: impl FnMut(Change<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let broken = || {
        Error::new(
            "memory.log: a frame with a valid checksum has no valid changes; was it written by another version?",
        )
    };
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<11>().ok_or_else(broken)?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let kind = match head[0] {
            1 => Kind::Put,
            2 => Kind::Delete,
            3 => Kind::Add,
            4 => Kind::Append,
            5 => Kind::Push,
            6 => Kind::Pop,
            _ => return Err(broken()),
        };
        let (key, rest) = rest.split_at_checked(number(3)).ok_or_else(broken)?;
        let (value, rest) = rest.split_at_checked(number(7)).ok_or_else(broken)?;
        each(Change { kind, keyspace: usize::from(u16::from_le_bytes([head[1], head[2]])), key, value })?;
        bytes = rest;
    }
    Ok(())
}

/// How a log is opened.
pub struct LogOptions {
    /// The effective level.
    pub level: Level,
    /// Create the file; it must not exist.
    pub create: bool,
    /// Replay only.
    pub read_only: bool,
}

/// An open log.
pub struct Log {
    level: Level,
    /// Bytes that were torn off at open.
    pub truncated_bytes: u64,
    tail: Mutex<Tail>,
}

struct Tail {
    file: File,
    /// Bytes of complete frames in the file.
    length: u64,
    pending: Vec<u8>,
    /// Why nothing can be written any more.
    broken: Option<String>,
}

impl Log {
    /// Opens the log in `folder` and passes its changes to `each`.
    pub fn open(
        folder: &Path,
        options: &LogOptions,
        each: impl FnMut(Change<'_>) -> Result<(), Error>,
    ) -> Result<Log, Error> {
        let path = folder.join(LOG_FILE);
        let told = |error: std::io::Error| {
            let mut failure = Error::from(error);
            failure.text = format!("{}: {}", path.display(), failure.text);
            failure
        };
        let mut how = OpenOptions::new();
        how.read(true).append(!options.read_only).create_new(options.create);
        let mut file = how.open(&path).map_err(told)?;
        let size = file.metadata().map_err(told)?.len();
        let length = replay(&file, size, each)?;
        if !options.read_only {
            file.set_len(length).map_err(told)?;
            if length == 0 {
                file.write_all(MAGIC).map_err(told)?;
            }
            if options.level == Level::Power {
                file.sync_all().map_err(told)?;
                File::open(folder).and_then(|folder| folder.sync_all()).map_err(told)?;
            }
        }
        let tail = Tail { file, length: length.max(MAGIC.len() as u64), pending: Vec::new(), broken: None };
        Ok(Log { level: options.level, truncated_bytes: size - length, tail: Mutex::new(tail) })
    }

    /// Commits a frame as the level requires. After an error the frame has had no effect.
    pub fn commit(&self, frame: &mut Frame) -> Result<(), Error> {
        let bytes = frame.seal()?;
        let mut tail = self.tail.lock()?;
        if bytes.is_empty() {
            return Ok(());
        }
        tail.check()?;
        if self.level == Level::None {
            tail.pending.extend_from_slice(bytes);
            return if tail.pending.len() < PENDING_BYTES { Ok(()) } else { tail.write_pending() };
        }
        tail.append(bytes)?;
        if self.level == Level::Power { tail.sync(bytes.len()) } else { Ok(()) }
    }

    /// Writes what is pending and syncs.
    pub fn flush(&self) -> Result<(), Error> {
        let mut tail = self.tail.lock()?;
        tail.check()?;
        tail.write_pending()?;
        tail.sync(0)
    }

    /// Bytes of the log, written or pending.
    pub fn bytes(&self) -> u64 {
        self.tail.lock().map_or(0, |tail| tail.length + tail.pending.len() as u64)
    }
}

impl Tail {
    fn check(&self) -> Result<(), Error> {
        match &self.broken {
            Some(text) => Err(Error::new(format!("an earlier write to the log failed: {text}"))),
            None => Ok(()),
        }
    }

    /// One write(2); on failure the file is as before, or the log is unusable.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Err(error) = self.file.write_all(bytes) {
            if let Err(second) = self.file.set_len(self.length) {
                self.broken = Some(format!("{error}; then {second}"));
            }
            return Err(error.into());
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn write_pending(&mut self) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.pending);
        let written = self.append(&pending);
        if let Err(error) = &written {
            // Rows of the pending frames were acknowledged: the map and the file now differ.
            self.broken = Some(error.text.clone());
        }
        self.pending = pending;
        self.pending.clear();
        written
    }

    /// After a failed sync the state of the device is unknown, and a second sync may wrongly succeed: the failure is
    /// final.
    fn sync(&mut self, frame_bytes: usize) -> Result<(), Error> {
        let Err(error) = self.file.sync_data() else {
            return Ok(());
        };
        self.length -= frame_bytes as u64;
        self.broken = Some(error.to_string());
        // The frame was not acknowledged; if cutting it off fails too, the log is marked unusable already.
        let _ = self.file.set_len(self.length);
        Err(error.into())
    }
}

/// Reads the file from its start: the length of its complete frames, 0 if even the first line is incomplete or never reached
/// the device.
fn replay(
    file: &File,
    size: u64,
    mut each: impl FnMut(Change<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut magic = Vec::new();
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    // After a power cut a file may have its size and none of its first page, unless the level is power.
    if !magic.is_empty() && magic.iter().all(|byte| *byte == 0) {
        return Ok(0);
    }
    if !MAGIC.starts_with(&magic) {
        return Err(Error::new("memory.log: not a log of this engine, or a log of another version"));
    }
    if magic.len() < MAGIC.len() {
        return Ok(0);
    }
    let mut length = MAGIC.len() as u64;
    let mut bytes = Vec::new();
    while size - length > HEAD as u64 {
        let mut head = [0; HEAD];
        input.read_exact(&mut head)?;
        let [a, b, c, d, crc @ ..] = head;
        let frame_length = u32::from_le_bytes([a, b, c, d]);
        if frame_length == 0 || u64::from(frame_length) > size - length - HEAD as u64 {
            break;
        }
        bytes.resize(frame_length as usize, 0);
        input.read_exact(&mut bytes)?;
        if checksum(frame_length, &bytes) != u32::from_le_bytes(crc) {
            break;
        }
        changes(&bytes, &mut each)?;
        length += HEAD as u64 + u64::from(frame_length);
    }
    Ok(length)
}

#[cfg(test)]
impl Log {
    /// A log whose file is read-only, so that every write fails.
    pub fn that_cannot_write(path: &Path, level: Level) -> Log {
        let file = File::open(path).expect("the test created the file");
        let tail = Tail { file, length: MAGIC.len() as u64, pending: Vec::new(), broken: None };
        Log { level, truncated_bytes: 0, tail: Mutex::new(tail) }
    }
}
