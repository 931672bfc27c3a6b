//! The faults of ops: each is a few lines around the correct memory-btree.

#![allow(unsafe_code, reason = "it calls another table")]

use crate::{Fault, Ghost, Mutant};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Driver, Error, Level, Op, Session, Status, Work};
use kvdyno_memory::MemoryBtree;
use std::ops::Bound;

/// The largest key of the mutant that swallows errors.
pub(crate) const KEY_SIZE_MAX: u32 = 1024;

/// Ops after which a ghost reappears.
const GHOST_OPS: u64 = 16;

/// The position of a flipped bit is drawn from this and the key.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A session of a mutant.
pub struct MutantSession<'db, const FAULT: u8> {
    mutant: &'db Mutant<FAULT>,
    number: u64,
    inner: <MemoryBtree as Driver>::Session<'db>,
}

fn flip_bit(key: &[u8], value: &mut [u8]) {
    let mix = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(SEED).rotate_left(29);
    let bit = key.iter().fold(SEED, mix) as usize % (value.len() * 8);
    value[bit / 8] ^= 1 << (bit % 8);
}

/// The value as another seed would have produced it: the tag (the first four bytes) differs, and the body after the
/// header of 24 bytes is taken from another position. Length, key and version stay.
fn age(value: &mut [u8]) {
    let tag = value.len().min(4);
    value[..tag].iter_mut().for_each(|byte| *byte ^= 0x5a);
    if value.len() > 24 {
        value[24..].rotate_left(1);
    }
}

/// Runs `run` with an altered op; afterwards the core's half of the op is as before.
fn altered<'a>(
    op: &mut Op<'a>,
    alter: impl FnOnce(&mut kv_op),
    run: impl FnOnce(&mut Op<'a>) -> Result<Status, Error>,
) -> Result<Status, Error> {
    let before = *op.raw();
    // SAFETY: Op is transparent over kv_op, and `alter` only sets lengths and flags that keep all slices within
    // what the core gave.
    alter(unsafe { &mut *std::ptr::from_mut(op).cast::<kv_op>() });
    let outcome = run(op);
    // SAFETY: as above.
    let raw = unsafe { &mut *std::ptr::from_mut(op).cast::<kv_op>() };
    (raw.flags, raw.limit) = (before.flags, before.limit);
    (raw.key, raw.key_length) = (before.key, before.key_length);
    (raw.value, raw.value_length) = (before.value, before.value_length);
    outcome
}

impl<'db, const FAULT: u8> MutantSession<'db, FAULT> {
    pub(crate) fn new(
        mutant: &'db Mutant<FAULT>,
        number: u64,
        inner: <MemoryBtree as Driver>::Session<'db>,
    ) -> Self {
        MutantSession { mutant, number, inner }
    }

    fn is(&self, fault: Fault) -> bool {
        Mutant::<FAULT>::FAULT == fault
    }

    /// Whether this is the mutant of `fault`, and the fault occurs now.
    fn strikes(&self, fault: Fault) -> bool {
        self.is(fault) && fault.strikes()
    }

    fn read(&self, op: &Op<'_>) -> Result<Option<Vec<u8>>, Error> {
        self.mutant.inner.read(op.keyspace(), op.key())
    }

    /// The value of the next key, if it is a different value.
    fn neighbour(&self, op: &Op<'_>, value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let bounds = (Bound::Excluded(op.key()), Bound::Unbounded);
        let row = self.mutant.inner.rows(op.keyspace(), bounds, false, 1)?.pop();
        Ok(row.map(|(_, other)| other).filter(|other| other != value))
    }

    /// What a get delivers instead of the value; `None` for a miss.
    fn spoil(&self, op: &Op<'_>, mut value: Vec<u8>) -> Result<Option<Vec<u8>>, Error> {
        let has_bytes = !value.is_empty();
        match Mutant::<FAULT>::FAULT {
            Fault::StaleRead | Fault::StaleStrong => {
                let remembered = self.mutant.remembered.lock()?;
                let old = remembered.stale.get(&(op.keyspace(), op.key().to_vec()));
                if let Some(old) = old.filter(|old| **old != value)
                    && (op.is_strong() || Mutant::<FAULT>::FAULT == Fault::StaleRead)
                    && Mutant::<FAULT>::FAULT.strikes()
                {
                    value.clone_from(old);
                }
            }
            Fault::SwappedValues | Fault::CacheSwaps => {
                if let Some(other) = self.neighbour(op, &value)?
                    && Mutant::<FAULT>::FAULT.strikes()
                {
                    value = other;
                }
            }
            Fault::BitFlip if has_bytes && Fault::BitFlip.strikes() => flip_bit(op.key(), &mut value),
            Fault::TruncatedValue if has_bytes && Fault::TruncatedValue.strikes() => {
                value.truncate(value.len() / 2);
            }
            Fault::ZeroPage if value.iter().any(|&byte| byte != 0) && Fault::ZeroPage.strikes() => {
                let page = value.len().min(4096);
                value[..page].fill(0);
            }
            Fault::PreviousCampaign if has_bytes && Fault::PreviousCampaign.strikes() => age(&mut value),
            Fault::MissForPresent if Fault::MissForPresent.strikes() => return Ok(None),
            Fault::EmptyAbsent if !has_bytes && Fault::EmptyAbsent.strikes() => return Ok(None),
            Fault::GetFails if Fault::GetFails.strikes() => {
                return Err(Error::new("planted bug: this read fails"));
            }
            _ => {}
        }
        Ok(Some(value))
    }

    /// Counts an op; restores the ghosts that are due.
    fn haunt(&self) -> Result<(), Error> {
        if !self.is(Fault::GhostAfterDelete) {
            return Ok(());
        }
        let mut remembered = self.mutant.remembered.lock()?;
        remembered.ops += 1;
        let now = remembered.ops;
        while remembered.ghosts.front().is_some_and(|ghost| ghost.due <= now) {
            if let Some(ghost) = remembered.ghosts.pop_front()
                && self.mutant.inner.read(ghost.keyspace, &ghost.key)?.is_none()
            {
                self.mutant.inner.write(ghost.keyspace, &ghost.key, Some(&ghost.value))?;
            }
        }
        Ok(())
    }

    fn remember_ghost(&self, op: &Op<'_>, value: Vec<u8>) -> Result<(), Error> {
        let mut remembered = self.mutant.remembered.lock()?;
        let due = remembered.ops + GHOST_OPS;
        remembered.ghosts.push_back(Ghost { due, keyspace: op.keyspace(), key: op.key().to_vec(), value });
        Ok(())
    }

    /// Records who writes; whether a concurrent session wrote the key last, and the write must be lost for that reason.
    /// Thread scheduling does not matter.
    fn loses_race(&self, op: &Op<'_>) -> Result<bool, Error> {
        if !self.is(Fault::LostRace) {
            return Ok(false);
        }
        let mut remembered = self.mutant.remembered.lock()?;
        let last = remembered.writers.insert((op.keyspace(), op.key().to_vec()), self.number);
        let has_met = |last: &u64| remembered.ended.get(last).is_none_or(|sessions| *sessions >= self.number);
        let is_race = last.filter(|last| *last != self.number).is_some_and(|last| has_met(&last));
        Ok(is_race && Fault::LostRace.strikes())
    }

    /// Whether a write must be skipped and reported as done.
    fn is_swallowed(&self, op: &Op<'_>, is_there: bool) -> bool {
        let is_too_large = op.key().len() > KEY_SIZE_MAX as usize;
        match Mutant::<FAULT>::FAULT {
            Fault::ErrorSwallowed => is_too_large || Fault::ErrorSwallowed.strikes(),
            Fault::LostUpdate if is_there && op.kind() != KV_DELETE && !op.is_new() => {
                Fault::LostUpdate.strikes()
            }
            Fault::PhantomPut if !is_there && op.kind() == KV_PUT => Fault::PhantomPut.strikes(),
            Fault::DeleteNoop if is_there && op.kind() == KV_DELETE => Fault::DeleteNoop.strikes(),
            _ => false,
        }
    }

    /// The effect of a completed put on other keyspaces.
    fn stray(&self, op: &Op<'_>) -> Result<(), Error> {
        let inner = &self.mutant.inner;
        if op.keyspace() > 0 && self.strikes(Fault::KeyspaceMixed) {
            return inner.write(0, op.key(), Some(op.value()));
        }
        let name = usize::from(op.raw().split);
        if name > 0 && self.strikes(Fault::CollectionMixed) {
            let mut key = op.key().to_vec();
            key[name - 1] ^= 1;
            return inner.write(op.keyspace(), &key, Some(op.value()));
        }
        if self.is(Fault::IndexRowLost)
            && let Some((space, key)) = self.mutant.indexes.rows(op.keyspace(), op.key(), op.value()).pop()
            && Fault::IndexRowLost.strikes()
        {
            return inner.write(space, &key, None);
        }
        Ok(())
    }

    /// A scan whose rows are altered before they are delivered.
    fn scan_wrongly(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let range = op.range();
        if range.is_empty() || op.raw().flags & KV_HOLD != 0 {
            return self.inner.scan(op);
        }
        // At most this many rows can be delivered; two more, for rows that a fault removes.
        let visible = (op.limit() as usize).min(op.raw().out_size as usize / 8);
        let mut rows = self.mutant.inner.rows(op.keyspace(), range.bounds(), op.is_reverse(), visible + 2)?;
        // The range begins at the prefix but does not end with it.
        if let Some(prefix) = op.prefix() {
            rows.retain(|(key, _)| key.starts_with(prefix));
        }
        let count = rows.len().min(visible);
        if count >= 2 && Mutant::<FAULT>::FAULT.strikes() {
            match Mutant::<FAULT>::FAULT {
                Fault::ScanOutOfOrder => rows.swap(0, 1),
                Fault::ScanDuplicate => rows.insert(1, rows[0].clone()),
                Fault::ScanMissing => drop(rows.remove(1)),
                _ => rows.truncate(count / 2),
            }
        }
        op.deliver_rows(rows.into_iter().map(Ok::<_, Error>))
    }

    /// A scan that delivers one row more than allowed, if there is one.
    fn scan_too_far(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let status = self.inner.scan(op)?;
        let rows = op.raw().rows;
        let starts_at_prefix = op.prefix().is_some() && op.key().is_empty();
        if status != Status::Ok
            || (starts_at_prefix && op.is_reverse())
            || !self.strikes(Fault::ScanPastBound)
        {
            return Ok(status);
        }
        let loosen = |raw: &mut kv_op| {
            if starts_at_prefix {
                (raw.key, raw.key_length) = (raw.value, raw.value_length);
            }
            raw.value_length = 0;
            raw.flags &= !KV_PREFIX;
            raw.limit = rows.saturating_add(1);
        };
        let inner = &mut self.inner;
        match altered(op, loosen, |op| inner.scan(op))? {
            Status::Ok => Ok(Status::Ok),
            _ => self.inner.scan(op),
        }
    }

    /// Makes the puts of the first half of a transaction.
    fn leave_half(&self, ops: &[Op<'_>]) -> Result<(), Error> {
        for op in ops[..ops.len().div_ceil(2)].iter().filter(|op| op.kind() == KV_PUT) {
            self.mutant.inner.write(op.keyspace(), op.key(), Some(op.value()))?;
        }
        Ok(())
    }
}

impl<const FAULT: u8> Drop for MutantSession<'_, FAULT> {
    fn drop(&mut self) {
        if let Ok(mut remembered) = self.mutant.remembered.lock() {
            let sessions = remembered.sessions;
            remembered.ended.insert(self.number, sessions);
        }
    }
}

impl<const FAULT: u8> Session for MutantSession<'_, FAULT> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.haunt()?;
        let value = match self.read(op)? {
            Some(value) => self.spoil(op, value)?,
            None => self.strikes(Fault::WrongMiss).then(Vec::new),
        };
        Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)))
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.haunt()?;
        let old = self.read(op)?;
        if self.is_swallowed(op, old.is_some()) || (self.loses_race(op)? && old.is_some() && !op.is_new()) {
            return Ok(Status::Ok);
        }
        if old.is_some() && op.is_new() && self.strikes(Fault::NewOverwrites) {
            self.mutant.inner.write(op.keyspace(), op.key(), Some(op.value()))?;
            return Ok(Status::Ok);
        }
        if !op.key().is_empty() && !op.is_new() && self.strikes(Fault::WrongKey) {
            let mut key = op.key().to_vec();
            key[op.key().len() - 1] ^= 1;
            self.mutant.inner.write(op.keyspace(), &key, Some(op.value()))?;
            return Ok(Status::Ok);
        }
        let status = self.inner.put(op)?;
        if status == Status::Ok {
            self.stray(op)?;
            if self.mutant.claimed == Level::Power && self.strikes(Fault::AcknowledgesBeforeSync) {
                self.mutant.inner.maintain(Work::Flush)?;
            }
        }
        if let (Fault::StaleRead | Fault::StaleStrong, Some(old)) = (Mutant::<FAULT>::FAULT, old) {
            let key = (op.keyspace(), op.key().to_vec());
            self.mutant.remembered.lock()?.stale.insert(key, old);
        }
        Ok(status)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.haunt()?;
        let old = self.read(op)?;
        if self.is_swallowed(op, old.is_some()) {
            return Ok(Status::Ok);
        }
        let status = self.inner.delete(op)?;
        if let Some(value) = old
            && self.strikes(Fault::GhostAfterDelete)
        {
            self.remember_ghost(op, value)?;
        }
        Ok(status)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.haunt()?;
        match Mutant::<FAULT>::FAULT {
            Fault::ScanOutOfOrder | Fault::ScanDuplicate | Fault::ScanMissing | Fault::ScanEarlyEnd => {
                self.scan_wrongly(op)
            }
            Fault::ScanPastBound => self.scan_too_far(op),
            Fault::DeclaresTooMuch if op.is_reverse() => {
                let inner = &mut self.inner;
                altered(op, |raw| raw.flags &= !KV_REVERSE, |op| inner.scan(op))
            }
            _ => self.inner.scan(op),
        }
    }

    fn merge(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.haunt()?;
        let is_there = self.read(op)?.is_some();
        if self.is_swallowed(op, is_there) {
            return Ok(Status::Ok);
        }
        let status = self.inner.merge(op)?;
        if status == Status::Ok && self.strikes(Fault::MergeWrong) {
            return self.inner.merge(op);
        }
        Ok(status)
    }

    /// Begins, commits or aborts: writes are done when they are sent, and the mutant does not undo them.
    fn control(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        match op.kind() {
            KV_BEGIN | KV_COMMIT | KV_ABORT if self.is(Fault::AbortCommits) => Ok(Status::Ok),
            _ => self.inner.control(op),
        }
    }

    fn push(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if self.strikes(Fault::PushLost) {
            return Ok(Status::Ok);
        }
        self.inner.push(op)
    }

    fn pop(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if self.is(Fault::PopTwice)
            && let Some(value) = self.mutant.inner.first_of_list(op.keyspace(), op.key())?
            && Fault::PopTwice.strikes()
        {
            return Ok(op.deliver(&value));
        }
        self.inner.pop(op)
    }

    /// Joined ops are run like single ones, so that faults also occur in them.
    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        if !atomic {
            return Ok(false);
        }
        if self.strikes(Fault::NonAtomicTransaction) {
            self.leave_half(ops)?;
            return Err(Error::with(Status::Conflict, "gave up after a conflict"));
        }
        let outcome = self.inner.group(ops, true);
        let has_failed = outcome.is_err() || ops.iter().any(|op| op.status() == KV_ABORTED);
        if has_failed && self.is(Fault::NonAtomicTransaction) {
            self.leave_half(ops)?;
        }
        outcome
    }
}
