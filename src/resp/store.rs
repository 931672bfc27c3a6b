//! A worker's access to the engine: reads that are collected into batches, writes that wait in an overlay for one
//! commit, and the stripes of the keys that they change.

mod rows;
mod writes;

pub use rows::Stretch;

use super::overlay::Overlay;
use super::stripes::{Guard, STRIPES, Stripes};
use crate::engine::abi::*;
use crate::engine::{Arena, Database, EngineError, Session};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Maximum ops of a batch: writes of one commit.
const BATCH_OPS: usize = 1024;
/// Maximum reads of a batch; more would keep their clients waiting.
const READ_OPS: usize = 256;
/// Bytes for a batch's keys, values and out bytes, unless it needs more.
const BATCH_BYTES: usize = 512 << 10;
/// The largest arena, bytes: a transaction or a value that needs more is refused.
const MOST_BYTES: usize = 1 << 30;
/// Space for a value that is read; a larger one is read a second time.
const OUT_BYTES: usize = 1024;
/// Maximum bytes of values that a batch of reads may return, as far as this can be predicted.
const MOST_ANSWER_BYTES: usize = 16 << 20;
/// Maximum bytes of values that one command may request.
const MOST_READ_BYTES: usize = 512 << 20;

/// State shared by the stores of a server.
pub struct Engine {
    /// The open database.
    pub database: Database,
    /// Locks over keys.
    pub stripes: Stripes,
    /// Effective capabilities.
    pub capabilities: u64,
    /// The maximum key size of the engine, bytes; 0: no limit below 64 KiB.
    pub key_size_max: usize,
    /// The clock with which ops are stamped.
    pub clock: u32,
    /// Never set; the stop word of batches.
    pub stop: &'static AtomicU32,
    /// An upper bound of the largest value in the database in bytes, if that is large: it limits batches of reads.
    pub largest: AtomicUsize,
    /// Locked while the bound is raised.
    pub raising: Mutex<()>,
}

/// The result of a read.
enum ReadResult {
    /// There is no such row, or the read has not been executed yet.
    Nothing,
    /// The place of its bytes in the store's buffer.
    Bytes(Range<usize>),
    /// The engine's error, in the form of a reply.
    Failed(Box<str>),
}

/// The number of a read that is executed with the next batch.
pub type Later = usize;

/// One worker's store.
pub struct Store<'s> {
    engine: &'s Engine,
    /// `None` only while it is replaced.
    session: Option<Session>,
    overlay: Overlay,
    is_atomic: bool,
    held: Vec<Guard<'s>>,
    /// The held stripes, one bit each.
    is_held: Vec<u64>,
    /// Why a commit failed since the last `take_failure`.
    failure: Option<String>,
    /// Reads in the arena, each with the place of its answer.
    reads: Vec<Later>,
    answers: Vec<ReadResult>,
    bytes: Vec<u8>,
    /// The value that `get` found.
    value: Vec<u8>,
    out_bytes: usize,
}

impl<'s> Store<'s> {
    /// Creates a store for the calling thread.
    pub fn new(engine: &'s Engine) -> Result<Store<'s>, EngineError> {
        let arena = Arena::new(Arena::packed_shape(BATCH_OPS, BATCH_BYTES), engine.clock, engine.stop);
        Ok(Store {
            engine,
            session: Some(engine.database.session(arena)?),
            overlay: Overlay::default(),
            is_atomic: false,
            held: Vec::new(),
            is_held: vec![0; STRIPES / 64],
            failure: None,
            reads: Vec::with_capacity(READ_OPS),
            answers: Vec::new(),
            bytes: Vec::new(),
            value: Vec::new(),
            out_bytes: OUT_BYTES,
        })
    }

    /// Ends the session.
    pub fn end(mut self) -> Result<(), EngineError> {
        match self.session.take() {
            Some(session) => session.end().map(drop),
            None => Ok(()),
        }
    }

    /// The shared state of the stores.
    pub fn engine(&self) -> &'s Engine {
        self.engine
    }

    fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("the session is absent only while `grow` replaces it")
    }

    /// An arena for `ops` ops of `bytes` in total.
    fn reserve(&mut self, ops: usize, bytes: usize) -> Result<(), String> {
        let arena = self.session().arena();
        arena.clear_pack();
        // Each packed op is rounded up to 8 bytes.
        let bytes = bytes + 8 * ops + 16;
        if arena.shape().ops >= ops && arena.pack_room() >= bytes {
            return Ok(());
        }
        if bytes > MOST_BYTES {
            return Err(format!("ERR the transaction needs {bytes} bytes; the maximum is {MOST_BYTES}"));
        }
        let shape = Arena::packed_shape(ops.max(BATCH_OPS).next_power_of_two(), bytes.next_power_of_two());
        self.exchange(shape)
    }

    /// Replaces the session by one with another arena. An engine with one writer may not have two sessions in one
    /// thread, so the old one is closed first.
    fn exchange(&mut self, shape: crate::engine::Shape) -> Result<(), String> {
        let failed = |error: EngineError| format!("ERR engine: {error}");
        if let Some(session) = self.session.take() {
            drop(session.end().map_err(failed)?);
        }
        let arena = Arena::new(shape, self.engine.clock, self.engine.stop);
        self.session = Some(self.engine.database.session(arena).map_err(failed)?);
        Ok(())
    }

    /// Reads a row with the next batch: `answer` returns it after `read_all`.
    pub fn get_later(&mut self, row: &[u8]) -> Result<Later, String> {
        let later = self.answers.len();
        if self.bytes.len() > MOST_READ_BYTES {
            return Err(format!("ERR the reply needs more than {MOST_READ_BYTES} bytes"));
        }
        if let Some(after) = self.overlay.get(row) {
            let from = self.bytes.len();
            if let Some(value) = after {
                self.bytes.extend_from_slice(value);
                self.answers.push(ReadResult::Bytes(from..self.bytes.len()));
            } else {
                self.answers.push(ReadResult::Nothing);
            }
            return Ok(later);
        }
        self.check_key(row)?;
        if self.reads.is_empty() {
            self.session().arena().clear_pack();
        }
        let (op, out_bytes) = (self.reads.len(), self.out_bytes);
        let is_enough = op > 0 && (op + 1) * self.engine.largest.load(Ordering::Relaxed) > MOST_ANSWER_BYTES;
        if op == READ_OPS || is_enough || !self.pack(op, KV_GET, row, &[], out_bytes) {
            self.read_all();
            self.reserve(1, row.len() + out_bytes)?;
            self.pack(0, KV_GET, row, &[], out_bytes);
        }
        self.answers.push(ReadResult::Nothing);
        self.reads.push(later);
        Ok(later)
    }

    fn check_key(&self, row: &[u8]) -> Result<(), String> {
        let most = if self.engine.key_size_max == 0 { 64 << 10 } else { self.engine.key_size_max };
        if row.len() <= most {
            return Ok(());
        }
        Err(format!("ERR the key needs {} bytes in the engine; the maximum is {most}", row.len()))
    }

    fn pack(&mut self, index: usize, kind: u8, key: &[u8], value: &[u8], out_bytes: usize) -> bool {
        let arena = self.session().arena();
        if index >= arena.shape().ops || !arena.pack(index, key, value, out_bytes) {
            return false;
        }
        let op = arena.op_mut(index);
        (op.kind, op.flags, op.keyspace, op.split, op.slot) = (kind, 0, 0, 0, 0);
        (op.limit, op.due, op.status) = (0, 0, KV_NOT_RUN);
        true
    }

    /// Executes the pending reads. A failed read has its error as its answer.
    pub fn read_all(&mut self) {
        let count = self.reads.len();
        if count == 0 {
            return;
        }
        if count > 1 && self.engine.capabilities & KV_MULTI_GET != 0 {
            (0..count - 1).for_each(|op| self.session().arena().op_mut(op).flags = KV_JOIN);
        }
        let executed = self.session().attempt(0, count);
        let reads = std::mem::take(&mut self.reads);
        let mut short = Vec::new();
        let text = executed.error.as_ref().map(|(_, text)| text.as_str());
        for (op, &later) in reads.iter().enumerate() {
            let session = self.session.as_mut().expect("it has just executed");
            let arena: &Arena = session.arena();
            match if op < executed.done { arena.op(op).status } else { KV_ERROR } {
                KV_OK => {
                    let from = self.bytes.len();
                    self.bytes.extend_from_slice(arena.packed_delivered(op));
                    self.answers[later] = ReadResult::Bytes(from..self.bytes.len());
                }
                KV_NOT_FOUND => {}
                KV_SHORT => {
                    short.push((later, arena.packed_key(op).to_vec(), arena.op(op).needed as usize));
                }
                status => self.answers[later] = ReadResult::Failed(engine_error(status, text).into()),
            }
        }
        self.reads = reads;
        self.reads.clear();
        for (later, row, needed) in short {
            self.answers[later] = match self.get_large(&row, needed) {
                Ok(()) => {
                    let from = self.bytes.len();
                    self.bytes.extend_from_slice(&self.value);
                    ReadResult::Bytes(from..self.bytes.len())
                }
                Err(text) => ReadResult::Failed(text.into()),
            };
        }
    }

    /// The answer of a read that `read_all` has executed: its bytes, `None` if there is no such row, or the error.
    pub fn answer(&self, later: Later) -> Result<Option<&[u8]>, &str> {
        match self.answers.get(later) {
            Some(ReadResult::Bytes(place)) => Ok(Some(&self.bytes[place.clone()])),
            Some(ReadResult::Failed(text)) => Err(text),
            Some(ReadResult::Nothing) | None => Ok(None),
        }
    }

    /// Bytes of stored answers.
    pub fn answer_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the answers; numbers start again.
    pub fn forget_answers(&mut self) {
        self.answers.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 4 * BATCH_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Reads a row immediately, through the pending writes.
    pub fn get(&mut self, row: &[u8]) -> Result<Option<&[u8]>, String> {
        if let Some(after) = self.overlay.get(row) {
            let Some(value) = after else { return Ok(None) };
            self.value.clear();
            self.value.extend_from_slice(value);
            return Ok(Some(&self.value));
        }
        self.read_all();
        self.check_key(row)?;
        let out_bytes = self.out_bytes;
        match self.get_sized(row, out_bytes)? {
            Found::Value => Ok(Some(&self.value)),
            Found::Nothing => Ok(None),
            Found::Needs(bytes) => {
                self.get_large(row, bytes)?;
                Ok(Some(&self.value))
            }
        }
    }

    fn get_sized(&mut self, row: &[u8], out_bytes: usize) -> Result<Found, String> {
        self.reserve(1, row.len() + out_bytes)?;
        self.pack(0, KV_GET, row, &[], out_bytes);
        let executed = self.session().attempt(0, 1);
        let session = self.session.as_mut().expect("it has just executed");
        let arena: &Arena = session.arena();
        match arena.op(0).status {
            KV_OK if executed.done == 1 => {
                self.value.clear();
                self.value.extend_from_slice(arena.packed_delivered(0));
                Ok(Found::Value)
            }
            KV_NOT_FOUND => Ok(Found::Nothing),
            KV_SHORT => Ok(Found::Needs(arena.op(0).needed as usize)),
            status => Err(engine_error(status, executed.error.as_ref().map(|(_, text)| text.as_str()))),
        }
    }

    /// Reads a value that did not fit; it may have grown in the meantime.
    fn get_large(&mut self, row: &[u8], needed: usize) -> Result<(), String> {
        let mut needed = needed;
        loop {
            // More values of this size may follow, and reading each twice would cost more than the space.
            self.out_bytes = self.out_bytes.max(needed.min(16 << 10).next_power_of_two());
            match self.get_sized(row, needed)? {
                Found::Value => return Ok(()),
                Found::Needs(more) if more > needed => needed = more,
                _ => return Err("ERR a value changed while it was read".to_string()),
            }
        }
    }
}

/// The result of reading one row.
enum Found {
    Value,
    Nothing,
    Needs(usize),
}

fn engine_error(status: u32, text: Option<&str>) -> String {
    let error = EngineError { status, text: text.unwrap_or_default().to_string() };
    format!("ERR engine: {error}")
}
