//! Writes of a worker: the stripes of their keys, their overlay, and the commit.

use super::super::error::StoreError;
use super::super::overlay::{After, Overlay, Writer};
use super::super::record::LARGEST;
use super::super::stripes::Guard;
use super::{BATCH_BYTES, BATCH_OPS, Store, engine_error};
use kvdyno_core::engine::abi::*;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Sizes of values from here on are recorded.
const LARGE_BYTES: usize = 16 << 10;
/// Bytes of writes that a commit may collect; the engine gets them in pieces that fit into a batch.
const MOST_WRITE_BYTES: usize = 4 << 20;

impl<'s> Store<'s> {
    /// Locks the stripes of `keys` until the next commit. If another thread holds one of them, pending writes are
    /// committed first, so that no thread waits for a stripe while it holds a greater one.
    pub fn lock(&mut self, rows: &[&[u8]]) -> Result<(), StoreError> {
        let stripes = &self.engine.stripes;
        if let [row] = rows
            && self.try_hold(stripes.of(row))
        {
            return Ok(());
        }
        self.holds_several |= rows.len() > 1;
        let mut wanted: Vec<u32> = rows.iter().map(|row| stripes.of(row)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.iter().all(|&stripe| self.try_hold(stripe)) {
            return Ok(());
        }
        self.commit();
        for stripe in wanted {
            self.keep(stripes.lock(stripe));
        }
        Ok(())
    }

    /// Locks a stripe until the next commit; `false` if another thread holds it.
    fn try_hold(&mut self, stripe: u32) -> bool {
        if self.is_held[stripe as usize / 64] >> (stripe % 64) & 1 == 1 {
            return true;
        }
        let guard = self.engine.stripes.try_lock(stripe);
        guard.map(|guard| self.keep(guard)).is_some()
    }

    fn keep(&mut self, guard: Guard<'s>) {
        let stripe = guard.stripe();
        self.is_held[stripe as usize / 64] |= 1 << (stripe % 64);
        self.held.push(guard);
    }

    /// Releases the stripes; those whose keys were written count one more commit.
    fn release(&mut self, has_written: bool) {
        let stripes = &self.engine.stripes;
        let rows = std::mem::take(&mut self.holds_several).then(|| self.overlay.rows(false));
        let written: Option<HashSet<u32>> =
            rows.map(|rows| rows.iter().map(|(row, ..)| stripes.of(row)).collect());
        for guard in self.held.drain(..) {
            let stripe = guard.stripe();
            self.is_held[stripe as usize / 64] = 0;
            guard.release(has_written && written.as_ref().is_none_or(|written| written.contains(&stripe)));
        }
    }

    /// Number of commits of the stripe of a key, for WATCH. The caller must not hold stripes.
    pub fn commits_of(&mut self, row: &[u8]) -> u32 {
        let stripe = self.engine.stripes.of(row);
        match self.held.iter().find(|known| known.stripe() == stripe) {
            Some(guard) => guard.commits(),
            None => self.engine.stripes.lock(stripe).commits(),
        }
    }

    /// Writes a row with the next commit.
    pub fn put(&mut self, row: &[u8], value: Vec<u8>) -> Result<(), StoreError> {
        self.check_key(row)?;
        if value.len() > LARGE_BYTES {
            self.foresee(value.len())?;
        }
        self.overlay.set(row, Some(value), self.writer);
        Ok(())
    }

    /// Records, in the database too, that a value of this size may be read from now on.
    fn foresee(&mut self, size: usize) -> Result<(), StoreError> {
        let known = &self.engine.largest;
        if size <= known.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _alone = self.engine.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = size.next_power_of_two();
        if bound > known.load(Ordering::Relaxed) {
            self.write_now(LARGEST, &(bound as u64).to_be_bytes())?;
            known.store(bound, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Deletes a row with the next commit.
    pub fn delete(&mut self, row: &[u8]) -> Result<(), StoreError> {
        if self.engine.capabilities & KV_CAN_DELETE == 0 {
            return Err(StoreError::CannotDelete);
        }
        self.overlay.set(row, None, self.writer);
        Ok(())
    }

    /// Sets for which answer the next writes are.
    pub fn write_for(&mut self, answer: usize) {
        self.writer = answer;
    }

    /// Begins a command: if it fails, `take_back` discards what it has written.
    pub fn begin(&mut self) {
        self.overlay.begin();
        self.was_atomic = self.is_atomic;
    }

    /// Discards the pending writes of a command that has failed.
    pub fn take_back(&mut self) {
        self.overlay.take_back();
        self.is_atomic = self.was_atomic;
    }

    /// Makes the next commit a transaction: all or nothing.
    pub fn make_atomic(&mut self) {
        self.is_atomic = true;
    }

    /// Whether a commit is due.
    pub fn is_full(&self) -> bool {
        self.overlay.len() >= BATCH_OPS || self.overlay.bytes() >= MOST_WRITE_BYTES
    }

    /// Whether writes wait.
    pub fn has_writes(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// Writes a row separately, without waiting for the commit.
    pub fn write_now(&mut self, row: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.read_all();
        self.reserve(1, row.len() + value.len())?;
        self.pack(0, KV_PUT, row, value, 0);
        self.execute_writes(0..1, 0).map_err(|(_, error)| error)
    }

    /// Commits the pending writes and releases the stripes. Pending reads are executed first. `take_failure` returns
    /// what went wrong: the writes of a failed commit may or may not be stored.
    pub fn commit(&mut self) {
        self.read_all();
        let written = if self.overlay.is_empty() { Ok(()) } else { self.write_all() };
        self.release(!self.overlay.is_empty());
        self.overlay.clear();
        (self.is_atomic, self.was_atomic) = (false, false);
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }

    /// Why a commit has failed since the last `take_failure`; `None` if none has.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Why the writes of an answer have failed since the last `forget_answers`; `None` if they have not.
    pub fn failure_of(&self, answer: usize) -> Option<&StoreError> {
        self.refused.iter().find(|(known, _)| *known == answer).map(|(_, error)| error)
    }

    /// Why a commit has failed since the last call; `None` if none has.
    pub fn take_failure(&mut self) -> Option<StoreError> {
        self.failure.take()
    }

    /// Discards the pending writes and releases the stripes.
    pub fn abandon(&mut self) {
        self.overlay.clear();
        (self.is_atomic, self.was_atomic) = (false, false);
        self.release(false);
    }

    fn write_all(&mut self) -> Result<(), StoreError> {
        let is_atomic = self.is_atomic && self.overlay.len() > 1;
        let mut overlay = std::mem::take(&mut self.overlay);
        let written = self.write(&mut overlay, is_atomic);
        self.overlay = overlay;
        let released = self.release_memory();
        written.and(released)
    }

    /// Writes the rows, and releases the large values among them as soon as they are in the arena.
    fn write(&mut self, overlay: &mut Overlay, is_atomic: bool) -> Result<(), StoreError> {
        let all: usize = overlay.bytes();
        if is_atomic {
            self.reserve(overlay.len(), all)?;
        } else {
            self.session().arena().clear_pack();
        }
        let mut packed: Vec<Writer> = Vec::new();
        for (row, after, writer) in overlay.rows(self.engine.capabilities & KV_ORDERED != 0) {
            if !self.pack_write(packed.len(), row, after) {
                self.write_packed(&packed, false)?;
                packed.clear();
                self.reserve(1, row.len() + after.as_ref().map_or(0, Vec::len))?;
                self.pack_write(0, row, after);
            }
            after.take_if(|value| value.len() > BATCH_BYTES);
            packed.push(writer);
        }
        self.write_packed(&packed, is_atomic)
    }

    fn pack_write(&mut self, index: usize, row: &[u8], after: &After) -> bool {
        match after {
            Some(value) => self.pack(index, KV_PUT, row, value, 0),
            None => self.pack(index, KV_DELETE, row, &[], 0),
        }
    }

    /// Executes the packed writes as one group. What the engine refuses fails for the answer that has written it; the others of a
    /// group that is not atomic, which were only aborted, are executed again.
    fn write_packed(&mut self, writers: &[Writer], is_atomic: bool) -> Result<(), StoreError> {
        let all = 0..writers.len();
        let Err((done, error)) = self.execute_writes(all.clone(), if is_atomic { KV_ATOMIC } else { 0 })
        else {
            return Ok(());
        };
        if is_atomic {
            return Err(error);
        }
        let arena = self.session().arena();
        let status_of = |op: usize| if op < done { arena.op(op).status } else { KV_NOT_RUN };
        let statuses: Vec<u32> = all.map(status_of).collect();
        for (op, (status, writer)) in statuses.into_iter().zip(writers).enumerate() {
            let outcome = match status {
                KV_OK | KV_NOT_FOUND => Ok(()),
                KV_ABORTED | KV_NOT_RUN => self.execute_writes(op..op + 1, 0).map_err(|(_, error)| error),
                _ => Err(error.clone()),
            };
            match (outcome, writer) {
                (Ok(()), _) => {}
                (Err(error), Some(answer)) => self.refused.push((*answer, error)),
                (Err(error), None) => return Err(error),
            }
        }
        Ok(())
    }

    /// Executes packed writes as one group; fails with the number of ops that have a status, and the reason.
    fn execute_writes(&mut self, ops: Range<usize>, atomic: u16) -> Result<(), (usize, StoreError)> {
        let (first, count) = (ops.start, ops.len());
        if count == 0 {
            return Ok(());
        }
        for op in ops.clone() {
            let join = if op + 1 < ops.end { KV_JOIN } else { 0 };
            self.session().arena().op_mut(op).flags = join | atomic;
        }
        let executed = self.session().attempt(first, count);
        let text = executed.error.as_ref().map(|(_, text)| text.as_str());
        for op in ops {
            let is_done = op - first < executed.done;
            let status = if is_done { self.session().arena().op(op).status } else { KV_ERROR };
            if status != KV_OK && status != KV_NOT_FOUND {
                return Err((executed.done, engine_error(status, text)));
            }
        }
        Ok(())
    }
}
