//! A worker's way to the engine: reads that are gathered into batches, writes that wait in an overlay for one commit,
//! and the stripes of the keys that they change.

mod rows;

pub use rows::Stretch;

use super::overlay::{After, Overlay};
use super::stripes::{Guard, Stripes};
use crate::engine::abi::*;
use crate::engine::{Arena, Database, EngineError, Session};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Ops of a batch.
const BATCH_OPS: usize = 256;
/// Bytes that a batch's keys, values and out bytes take, unless it needs more.
const BATCH_BYTES: usize = 512 << 10;
/// The largest arena, bytes: a transaction or a value that needs more is refused.
const MOST_BYTES: usize = 1 << 30;
/// Room for a value that is read; a larger one is read once more.
const OUT_BYTES: usize = 1024;
/// Bytes of values that a batch of reads may bring, as far as can be foreseen.
const MOST_ANSWER_BYTES: usize = 16 << 20;
/// From here on a value's size is noted.
const LARGE_BYTES: usize = 16 << 10;
/// Writes that a commit may gather.
const MOST_WRITES: usize = 1024;
const MOST_WRITE_BYTES: usize = 4 << 20;

/// What the stores of a server share.
pub struct Engine {
    /// The open database.
    pub database: Database,
    /// Locks over keys.
    pub stripes: Stripes,
    /// Capabilities in force.
    pub capabilities: u64,
    /// The largest key that the engine takes, bytes; 0: no limit below 64 KiB.
    pub key_size_max: usize,
    /// Which clock ops are stamped with.
    pub clock: u32,
    /// Never set; what a batch's stop word is.
    pub stop: &'static AtomicU32,
    /// Bytes of the largest value that was written or read: batches of reads are cut by it.
    pub largest: AtomicUsize,
}

/// The number of a read that is answered with the next batch.
pub type Later = usize;

/// One worker's store.
pub struct Store<'s> {
    engine: &'s Engine,
    /// None only while it is exchanged.
    session: Option<Session>,
    overlay: Overlay,
    is_atomic: bool,
    held: Vec<(u32, Guard<'s>)>,
    /// Why a commit failed since `take_failure`.
    failure: Option<String>,
    /// Reads in the arena, and of each the place of its answer.
    reads: Vec<Later>,
    /// Answers of reads: where their bytes lie in `bytes`; none: not found.
    answers: Vec<Option<Range<usize>>>,
    bytes: Vec<u8>,
    /// The value that `get` has found.
    value: Vec<u8>,
    out_bytes: usize,
}

impl<'s> Store<'s> {
    /// For the thread that calls this.
    pub fn new(engine: &'s Engine) -> Result<Store<'s>, EngineError> {
        let arena = Arena::new(Arena::packed_shape(BATCH_OPS, BATCH_BYTES), engine.clock, engine.stop);
        Ok(Store {
            engine,
            session: Some(engine.database.session(arena)?),
            overlay: Overlay::default(),
            is_atomic: false,
            held: Vec::new(),
            failure: None,
            reads: Vec::with_capacity(BATCH_OPS),
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

    /// What the stores share.
    pub fn engine(&self) -> &'s Engine {
        self.engine
    }

    fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("the session is gone only while `grow` exchanges it")
    }

    /// An arena with room for `ops` ops of `bytes` in all.
    fn reserve(&mut self, ops: usize, bytes: usize) -> Result<(), String> {
        let arena = self.session().arena();
        arena.clear_pack();
        // Each packed op is rounded up to 8 bytes.
        let bytes = bytes + 8 * ops + 16;
        if arena.shape().ops >= ops && arena.pack_room() >= bytes {
            return Ok(());
        }
        if bytes > MOST_BYTES {
            return Err(format!("ERR a transaction of {bytes} bytes; {MOST_BYTES} are the most"));
        }
        let shape = Arena::packed_shape(ops.max(BATCH_OPS).next_power_of_two(), bytes.next_power_of_two());
        self.exchange(shape)
    }

    /// A session with another arena: an engine with one writer may not have two in one thread, so the old one goes first.
    fn exchange(&mut self, shape: crate::engine::Shape) -> Result<(), String> {
        let failed = |error: EngineError| format!("ERR engine: {error}");
        if let Some(session) = self.session.take() {
            drop(session.end().map_err(failed)?);
        }
        let arena = Arena::new(shape, self.engine.clock, self.engine.stop);
        self.session = Some(self.engine.database.session(arena).map_err(failed)?);
        Ok(())
    }

    /// Reads a row with the next batch: `answer` has it after `read_all`.
    pub fn get_later(&mut self, row: &[u8]) -> Result<Later, String> {
        let later = self.answers.len();
        if let Some(after) = self.overlay.get(row) {
            let from = self.bytes.len();
            let found = after.as_ref().map(|value| {
                self.bytes.extend_from_slice(value);
                from..self.bytes.len()
            });
            self.answers.push(found);
            return Ok(later);
        }
        self.check_key(row)?;
        if self.reads.is_empty() {
            self.session().arena().clear_pack();
        }
        let (op, out_bytes) = (self.reads.len(), self.out_bytes);
        let is_enough = op > 0 && (op + 1) * self.engine.largest.load(Ordering::Relaxed) > MOST_ANSWER_BYTES;
        if op == BATCH_OPS || is_enough || !self.pack(op, KV_GET, row, &[], out_bytes) {
            self.read_all()?;
            self.reserve(1, row.len() + out_bytes)?;
            self.pack(0, KV_GET, row, &[], out_bytes);
        }
        self.answers.push(None);
        self.reads.push(later);
        Ok(later)
    }

    fn check_key(&self, row: &[u8]) -> Result<(), String> {
        let most = if self.engine.key_size_max == 0 { 64 << 10 } else { self.engine.key_size_max };
        if row.len() <= most {
            return Ok(());
        }
        Err(format!("ERR the key takes {} bytes in the engine, whose largest is {most}", row.len()))
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

    /// Runs the reads that wait; an error is also what `take_failure` tells, for it is theirs and not the caller's alone.
    pub fn read_all(&mut self) -> Result<(), String> {
        let read = self.run_reads();
        if let Err(text) = &read {
            self.failure.get_or_insert(text.clone());
        }
        read
    }

    fn run_reads(&mut self) -> Result<(), String> {
        let count = self.reads.len();
        if count == 0 {
            return Ok(());
        }
        if count > 1 && self.engine.capabilities & KV_MULTI_GET != 0 {
            (0..count - 1).for_each(|op| self.session().arena().op_mut(op).flags = KV_JOIN);
        }
        let executed = self.session().execute(0, count);
        let reads = std::mem::take(&mut self.reads);
        let mut short = Vec::new();
        for (op, &later) in reads.iter().enumerate().take(executed.done) {
            let session = self.session.as_mut().expect("it has just executed");
            let arena: &Arena = session.arena();
            match arena.op(op).status {
                KV_OK => {
                    let from = self.bytes.len();
                    self.bytes.extend_from_slice(arena.packed_delivered(op));
                    self.answers[later] = Some(from..self.bytes.len());
                }
                KV_NOT_FOUND => {}
                KV_SHORT => {
                    short.push((later, arena.packed_key(op).to_vec(), arena.op(op).needed as usize));
                }
                status => {
                    return Err(engine_error(status, executed.error.as_ref().map(|(_, text)| text.as_str())));
                }
            }
        }
        if executed.done < count {
            return Err(engine_error(KV_ERROR, executed.error.as_ref().map(|(_, text)| text.as_str())));
        }
        self.reads = reads;
        self.reads.clear();
        for (later, row, needed) in short {
            self.get_large(&row, needed)?;
            let from = self.bytes.len();
            self.bytes.extend_from_slice(&self.value);
            self.answers[later] = Some(from..self.bytes.len());
        }
        Ok(())
    }

    /// The answer of a read that `read_all` has run.
    pub fn answer(&self, later: Later) -> Option<&[u8]> {
        self.answers.get(later)?.clone().map(|place| &self.bytes[place])
    }

    /// Bytes of answers that are kept.
    pub fn answer_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the answers; the numbers begin anew.
    pub fn forget_answers(&mut self) {
        self.answers.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 4 * BATCH_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Reads a row now, through the writes that wait.
    pub fn get(&mut self, row: &[u8]) -> Result<Option<&[u8]>, String> {
        if let Some(after) = self.overlay.get(row) {
            let Some(value) = after else { return Ok(None) };
            self.value.clear();
            self.value.extend_from_slice(value);
            return Ok(Some(&self.value));
        }
        self.read_all()?;
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
        let executed = self.session().execute(0, 1);
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

    /// A value that had no room; it may have grown meanwhile.
    fn get_large(&mut self, row: &[u8], needed: usize) -> Result<(), String> {
        let mut needed = needed;
        self.engine.largest.fetch_max(needed, Ordering::Relaxed);
        loop {
            // Values of this size may come again, and reading each twice would cost more than the room.
            self.out_bytes = self.out_bytes.max(needed.min(16 << 10).next_power_of_two());
            match self.get_sized(row, needed)? {
                Found::Value => return Ok(()),
                Found::Needs(more) if more > needed => needed = more,
                _ => return Err("ERR a value changed while it was read".to_string()),
            }
        }
    }

    /// Holds the stripes of `keys` until the next commit. Where another holds one of them, what waits is committed first,
    /// so that nobody waits for a stripe while holding a greater one.
    pub fn lock(&mut self, rows: &[&[u8]]) -> Result<(), String> {
        let stripes = &self.engine.stripes;
        let mut wanted: Vec<u32> = rows.iter().map(|row| stripes.of(row)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let held = |held: &[(u32, Guard)], stripe: u32| held.iter().any(|(known, _)| *known == stripe);
        let mut blocked = false;
        for &stripe in &wanted {
            if held(&self.held, stripe) {
                continue;
            }
            match stripes.try_lock(stripe) {
                Some(guard) => self.held.push((stripe, guard)),
                None => {
                    blocked = true;
                    break;
                }
            }
        }
        if !blocked {
            return Ok(());
        }
        self.commit();
        for stripe in wanted {
            self.held.push((stripe, stripes.lock(stripe)));
        }
        Ok(())
    }

    /// Commits of the stripe that a key belongs to; for WATCH. The caller holds no stripes.
    pub fn commits_of(&mut self, row: &[u8]) -> u64 {
        let stripe = self.engine.stripes.of(row);
        match self.held.iter().find(|(known, _)| *known == stripe) {
            Some((_, guard)) => **guard,
            None => *self.engine.stripes.lock(stripe),
        }
    }

    /// Writes a row with the next commit.
    pub fn put(&mut self, row: &[u8], value: Vec<u8>) -> Result<(), String> {
        self.check_key(row)?;
        if value.len() > LARGE_BYTES {
            self.engine.largest.fetch_max(value.len(), Ordering::Relaxed);
        }
        self.overlay.set(row, Some(value));
        Ok(())
    }

    /// Deletes a row with the next commit.
    pub fn delete(&mut self, row: &[u8]) -> Result<(), String> {
        if self.engine.capabilities & KV_CAN_DELETE == 0 {
            return Err("ERR this engine cannot delete".to_string());
        }
        self.overlay.set(row, None);
        Ok(())
    }

    /// The next commit is a transaction: all of it or nothing.
    pub fn make_atomic(&mut self) {
        self.is_atomic = true;
    }

    /// Whether a commit is due.
    pub fn is_full(&self) -> bool {
        self.overlay.len() >= MOST_WRITES || self.overlay.bytes() >= MOST_WRITE_BYTES
    }

    /// Whether writes wait.
    pub fn has_writes(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// Writes a row by itself, without waiting for the commit.
    pub fn write_now(&mut self, row: &[u8], value: &[u8]) -> Result<(), String> {
        self.read_all()?;
        self.reserve(1, row.len() + value.len())?;
        self.pack(0, KV_PUT, row, value, 0);
        self.write_packed(1, false)
    }

    /// Commits what waits, and lets the stripes go. Reads that wait are run before. `take_failure` tells what went wrong:
    /// writes of a commit that failed may be there or not.
    pub fn commit(&mut self) {
        let read = self.read_all();
        let written = if self.overlay.is_empty() { Ok(()) } else { self.write_all() };
        if !self.overlay.is_empty() {
            self.held.iter_mut().for_each(|(_, guard)| **guard += 1);
        }
        self.overlay.clear();
        self.is_atomic = false;
        self.held.clear();
        if let Err(text) = read.and(written) {
            self.failure.get_or_insert(text);
        }
    }

    /// Why a commit has failed since the last call; none: none has.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Throws away the writes that wait, and lets the stripes go.
    pub fn abandon(&mut self) {
        self.overlay.clear();
        self.is_atomic = false;
        self.held.clear();
    }

    fn write_all(&mut self) -> Result<(), String> {
        let is_atomic = self.is_atomic && self.overlay.len() > 1;
        let overlay = std::mem::take(&mut self.overlay);
        let result = self.write(&overlay, is_atomic);
        self.overlay = overlay;
        result
    }

    fn write(&mut self, overlay: &Overlay, is_atomic: bool) -> Result<(), String> {
        let all: usize = overlay.bytes();
        if is_atomic {
            self.reserve(overlay.len(), all)?;
        } else {
            self.session().arena().clear_pack();
        }
        let mut packed = 0;
        for (row, after) in overlay.iter() {
            if !self.pack_write(packed, row, after) {
                self.write_packed(packed, false)?;
                packed = 0;
                self.reserve(1, row.len() + after.as_ref().map_or(0, Vec::len))?;
                self.pack_write(0, row, after);
            }
            packed += 1;
        }
        self.write_packed(packed, is_atomic)?;
        if self.session().arena().shape().bytes() > 16 * BATCH_BYTES {
            self.exchange(Arena::packed_shape(BATCH_OPS, BATCH_BYTES))?;
        }
        Ok(())
    }

    fn pack_write(&mut self, index: usize, row: &[u8], after: &After) -> bool {
        match after {
            Some(value) => self.pack(index, KV_PUT, row, value, 0),
            None => self.pack(index, KV_DELETE, row, &[], 0),
        }
    }

    fn write_packed(&mut self, count: usize, is_atomic: bool) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        let atomic = if is_atomic { KV_ATOMIC } else { 0 };
        for op in 0..count {
            let join = if op + 1 < count { KV_JOIN } else { 0 };
            self.session().arena().op_mut(op).flags = join | atomic;
        }
        let executed = self.session().execute(0, count);
        let text = executed.error.as_ref().map(|(_, text)| text.as_str());
        for op in 0..count {
            let status = if op < executed.done { self.session().arena().op(op).status } else { KV_ERROR };
            if status != KV_OK && status != KV_NOT_FOUND {
                return Err(engine_error(status, text));
            }
        }
        Ok(())
    }
}

/// What a read of one row gave.
enum Found {
    Value,
    Nothing,
    Needs(usize),
}

fn engine_error(status: u32, text: Option<&str>) -> String {
    let error = EngineError { status, text: text.unwrap_or_default().to_string() };
    format!("ERR engine: {error}")
}
