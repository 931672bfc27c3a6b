//! A worker's access to the engine: reads that are collected into batches, writes that wait in an overlay for one
//! commit, and the stripes of the keys that they change.

mod rows;
mod writes;

pub(crate) use rows::Stretch;

use super::error::StoreError;
use super::overlay::Overlay;
use super::stripes::{Guard, STRIPES, Stripes};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Arena, Database, EngineError, Session};
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
/// Space for a value that is read, at first and at most; a larger one is read a second time.
const OUT_BYTES: usize = 1024;
const MOST_OUT_BYTES: usize = 16 << 10;
/// Maximum bytes of values that a batch of reads may return, as far as this can be predicted.
const MOST_ANSWER_BYTES: usize = 16 << 20;
/// The same for reads that are executed again, whose sizes are known.
const MOST_AGAIN_BYTES: usize = 2 << 20;
/// A buffer or an arena that is larger is released after use.
const MOST_KEPT_BYTES: usize = 16 * BATCH_BYTES;
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
    /// The maximum key size of the engine, bytes; 0: at least 65536.
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
    /// Why it failed.
    Failed(Box<StoreError>),
}

/// The number of a read that is executed with the next batch.
pub(crate) type Later = usize;

/// One worker's store.
pub struct Store<'s> {
    engine: &'s Engine,
    /// `None` while it is replaced, and if that has failed.
    session: Option<Session>,
    overlay: Overlay,
    is_atomic: bool,
    /// As it was before the command that runs.
    was_atomic: bool,
    held: Vec<Guard<'s>>,
    /// Whether a command has locked several keys, of which it may only read some.
    holds_several: bool,
    /// The held stripes, one bit each.
    is_held: Vec<u64>,
    /// The number of the answer whose command runs.
    writer: usize,
    /// Why a commit failed since the last `take_failure`, as far as no single answer is concerned.
    failure: Option<StoreError>,
    /// The answers whose rows the engine has refused, and why.
    refused: Vec<(usize, StoreError)>,
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
            was_atomic: false,
            held: Vec::new(),
            holds_several: false,
            is_held: vec![0; STRIPES / 64],
            writer: 0,
            failure: None,
            refused: Vec::new(),
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
        self.session.as_mut().expect("the session is absent only if the engine has refused to open it again")
    }

    /// An arena for `ops` ops of `bytes` in total.
    fn reserve(&mut self, ops: usize, bytes: usize) -> Result<(), StoreError> {
        let arena = self.session().arena();
        arena.clear_pack();
        // Each packed op is rounded up to 8 bytes.
        let bytes = bytes + 8 * ops + 16;
        if arena.shape().ops >= ops && arena.pack_room() >= bytes {
            return Ok(());
        }
        if bytes > MOST_BYTES {
            return Err(StoreError::LargeTransaction { bytes, most: MOST_BYTES });
        }
        let ops = ops.max(BATCH_OPS).next_power_of_two();
        // An arena that is not kept has no space for more, because all of it is touched.
        let more = bytes.next_power_of_two();
        let bytes = if more > MOST_KEPT_BYTES { bytes.next_multiple_of(1 << 20) } else { more };
        self.exchange(Arena::packed_shape(ops, bytes))
    }

    /// Replaces the session by one with another arena. An engine with one writer may not have two sessions in one
    /// thread, so the old one is closed first.
    fn exchange(&mut self, shape: kvdyno_core::engine::Shape) -> Result<(), StoreError> {
        if let Some(session) = self.session.take() {
            drop(session.end()?);
        }
        let arena = Arena::new(shape, self.engine.clock, self.engine.stop);
        self.session = Some(self.engine.database.session(arena)?);
        Ok(())
    }

    /// Replaces an arena that one large value or transaction has needed by one of the usual size.
    fn release_memory(&mut self) -> Result<(), StoreError> {
        if self.session().arena().shape().bytes() > MOST_KEPT_BYTES {
            self.exchange(Arena::packed_shape(BATCH_OPS, BATCH_BYTES))?;
        }
        Ok(())
    }

    /// Reads a row with the next batch: `answer` returns it after `read_all`.
    pub fn get_later(&mut self, row: &[u8]) -> Result<Later, StoreError> {
        let later = self.answers.len();
        if self.bytes.len() > MOST_READ_BYTES {
            return Err(StoreError::LargeReply { most: MOST_READ_BYTES });
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

    /// Fails if the row is longer than the engine allows.
    pub fn check_key(&self, row: &[u8]) -> Result<(), StoreError> {
        let most = if self.engine.key_size_max == 0 { 64 << 10 } else { self.engine.key_size_max };
        if row.len() <= most {
            return Ok(());
        }
        Err(StoreError::LongKey { bytes: row.len(), most })
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

    /// Executes the pending reads, in order. A failed read has its error as its answer.
    pub fn read_all(&mut self) {
        let mut reads = std::mem::take(&mut self.reads);
        let is_joined = reads.len() > 1 && self.engine.capabilities & KV_MULTI_GET != 0;
        if is_joined {
            (0..reads.len() - 1).for_each(|op| self.session().arena().op_mut(op).flags = KV_JOIN);
        }
        let answered = if reads.is_empty() { 0 } else { self.execute_reads(&reads, is_joined) };
        if answered < reads.len() {
            self.read_again(&reads, answered);
        }
        reads.clear();
        self.reads = reads;
    }

    /// Executes the packed reads and stores their answers, up to the first one that must be executed again: the reads
    /// after it too, so that none sees an older state than one before it. Returns how many have been answered.
    fn execute_reads(&mut self, reads: &[Later], is_joined: bool) -> usize {
        let executed = self.session().attempt(0, reads.len());
        let text = executed.error.as_ref().map(|(_, text)| text.as_str());
        let session = self.session.as_mut().expect("it has just executed");
        let arena: &Arena = session.arena();
        let status_of = |op: usize| if op < executed.done { arena.op(op).status } else { KV_NOT_RUN };
        let is_answered = |op: usize| matches!(status_of(op), KV_OK | KV_NOT_FOUND);
        if is_joined && !executed.is_breach && !(0..reads.len()).all(is_answered) {
            // The group has had no effect. What has failed is not repeated, but the others were only aborted.
            for (op, &later) in reads.iter().enumerate() {
                let status = status_of(op);
                if !is_answered(op) && !matches!(status, KV_SHORT | KV_ABORTED | KV_NOT_RUN) {
                    self.answers[later] = ReadResult::Failed(engine_error(status, text).into());
                }
            }
            return 0;
        }
        for (op, &later) in reads.iter().enumerate() {
            match status_of(op) {
                KV_OK => {
                    let from = self.bytes.len();
                    self.bytes.extend_from_slice(arena.packed_delivered(op));
                    self.answers[later] = ReadResult::Bytes(from..self.bytes.len());
                }
                KV_NOT_FOUND => {}
                KV_SHORT => return op,
                // The driver has stopped at a failure before it.
                KV_NOT_RUN if op > 0 && !executed.is_breach => return op,
                KV_NOT_RUN => self.answers[later] = ReadResult::Failed(engine_error(KV_ERROR, text).into()),
                status => self.answers[later] = ReadResult::Failed(engine_error(status, text).into()),
            }
        }
        reads.len()
    }

    /// Executes the reads from number `first` on again, except those that have failed: not joined, so that each gets an answer
    /// of its own, and with space for the sizes that the last attempt has found.
    fn read_again(&mut self, reads: &[Later], first: usize) {
        let has_failed = |later: Later| matches!(self.answers[later], ReadResult::Failed(_));
        let ops: Vec<usize> = (first..reads.len()).filter(|&op| !has_failed(reads[op])).collect();
        let reads: Vec<Later> = ops.iter().map(|&op| reads[op]).collect();
        let arena: &Arena = self.session().arena();
        let needed =
            |op: usize| if arena.op(op).status == KV_SHORT { arena.op(op).needed as usize } else { 0 };
        // Values that are read together are often of one size.
        let usual = ops.iter().map(|&op| needed(op)).max().unwrap_or(0).min(MOST_AGAIN_BYTES / 2);
        let sized = |op: usize| if needed(op) > 0 { needed(op) } else { usual };
        let mut rest: Vec<(Vec<u8>, usize)> =
            ops.iter().map(|&op| (arena.packed_key(op).to_vec(), sized(op))).collect();
        self.expect_values_of(usual);
        let mut at = 0;
        while at < reads.len() {
            let mut end = at;
            let mut bytes = 0;
            while end < reads.len() && (end == at || bytes + rest[end].1 <= MOST_AGAIN_BYTES) {
                let (row, out_bytes) = &mut rest[end];
                *out_bytes = self.out_bytes.max(*out_bytes);
                bytes += row.len() + *out_bytes;
                end += 1;
            }
            if let Err(error) = self.reserve(end - at, bytes) {
                self.answers[reads[at]] = ReadResult::Failed(error.into());
                at += 1;
                continue;
            }
            for (op, (row, out_bytes)) in rest[at..end].iter().enumerate() {
                self.pack(op, KV_GET, row, &[], *out_bytes);
            }
            let answered = self.execute_reads(&reads[at..end], false);
            let arena: &Arena = self.session().arena();
            for op in answered..end - at {
                // It may have grown in the meantime.
                if arena.op(op).status == KV_SHORT {
                    rest[at + op].1 = rest[at + op].1.max(arena.op(op).needed as usize);
                }
            }
            at += answered;
        }
        if let (Err(error), Some(&last)) = (self.release_memory(), reads.last()) {
            self.answers[last] = ReadResult::Failed(error.into());
        }
    }

    /// More values of this size may follow, and reading each twice would cost more than the space.
    fn expect_values_of(&mut self, bytes: usize) {
        self.out_bytes = self.out_bytes.max(bytes.min(MOST_OUT_BYTES).next_power_of_two());
    }

    /// The answer of a read that `read_all` has executed: its bytes, `None` if there is no such row, or the error.
    pub fn answer(&self, later: Later) -> Result<Option<&[u8]>, &StoreError> {
        match self.answers.get(later) {
            Some(ReadResult::Bytes(place)) => Ok(Some(&self.bytes[place.clone()])),
            Some(ReadResult::Failed(error)) => Err(error),
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
        self.refused.clear();
        for buffer in [&mut self.bytes, &mut self.value] {
            buffer.clear();
            if buffer.capacity() > 4 * BATCH_BYTES {
                *buffer = Vec::new();
            }
        }
    }

    /// Reads a row immediately, through the pending writes.
    pub fn get(&mut self, row: &[u8]) -> Result<Option<&[u8]>, StoreError> {
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
                self.release_memory()?;
                Ok(Some(&self.value))
            }
        }
    }

    /// The same, for a caller who keeps the bytes.
    pub fn get_owned(&mut self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let is_there = self.get(row)?.is_some();
        Ok(is_there.then(|| std::mem::take(&mut self.value)))
    }

    fn get_sized(&mut self, row: &[u8], out_bytes: usize) -> Result<Found, StoreError> {
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
    fn get_large(&mut self, row: &[u8], needed: usize) -> Result<(), StoreError> {
        let mut needed = needed;
        loop {
            self.expect_values_of(needed);
            match self.get_sized(row, needed)? {
                Found::Value => return Ok(()),
                Found::Needs(more) if more > needed => needed = more,
                _ => return Err(StoreError::Changed),
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

fn engine_error(status: u32, text: Option<&str>) -> StoreError {
    StoreError::Engine(EngineError { status, text: text.unwrap_or_default().to_string() })
}
