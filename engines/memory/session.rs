//! One thread's access to a map: single ops, joined groups and transactions.

use crate::index::index_row;
use crate::log::{Change, Frame, Kind};
use crate::{Memory, Store};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};
use std::sync::RwLockWriteGuard;

/// A session. Its only state is the buffer that its commits are written from.
pub struct MemorySession<'db, S> {
    memory: &'db Memory<S>,
    frame: Frame,
}

/// The state of a row before a group changed it.
struct Before {
    shard: usize,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

/// The locks of a group's shards, locked in the order of their index so that two groups never wait for each other.
struct Locks<'db, S>(Vec<(usize, RwLockWriteGuard<'db, S>)>);

impl<'db, S: Store> Locks<'db, S> {
    fn take(memory: &'db Memory<S>, ops: &[Op<'_>]) -> Result<Locks<'db, S>, Error> {
        let mut indices = Vec::with_capacity(ops.len());
        for op in ops {
            indices.push(memory.index(op.keyspace(), op.key())?);
            for index in memory.indexes.of(op.keyspace()) {
                indices.push(memory.index(index.index_keyspace.into(), &[])?);
            }
        }
        indices.sort_unstable();
        indices.dedup();
        let mut guards = Vec::with_capacity(indices.len());
        for index in indices {
            guards.push((index, memory.shards[index].0.write()?));
        }
        Ok(Locks(guards))
    }

    fn store(&mut self, index: usize) -> Result<&mut S, Error> {
        match self.0.binary_search_by_key(&index, |(shard, _)| *shard) {
            Ok(at) => Ok(&mut self.0[at].1),
            Err(_) => Err(Error::new("a group accessed a shard that it has not locked")),
        }
    }

    /// Undoes changes, the last one first.
    fn undo(&mut self, changes: Vec<Before>) -> Result<(), Error> {
        for before in changes.into_iter().rev() {
            let store = self.store(before.shard)?;
            match before.value {
                Some(value) => store.put(&before.key, &value),
                None => drop(store.remove(&before.key)),
            }
        }
        Ok(())
    }
}

/// Whether a write can be done: `None` if so, otherwise its result, with nothing changed.
fn refusal<S: Store>(store: &S, op: &Op<'_>) -> Result<Option<Status>, Error> {
    if !matches!(op.kind(), KV_PUT | KV_DELETE | KV_MERGE) {
        return Ok(Some(Status::Unsupported));
    }
    if op.key().is_empty() {
        return Err(Error::with(Status::TooLarge, "a key must have at least one byte"));
    }
    match op.kind() {
        KV_PUT if op.is_new() && store.get(op.key()).is_some() => Ok(Some(Status::Exists)),
        KV_DELETE if store.get(op.key()).is_none() => Ok(Some(Status::NotFound)),
        KV_MERGE if !op.is_append() => {
            if op.value().len() != 8 {
                let text = format!("merge: the operand must have 8 bytes, not {}", op.value().len());
                return Err(Error::with(Status::TooLarge, text));
            }
            match store.get(op.key()) {
                Some(counter) if counter.len() != 8 => Err(Error::new(format!(
                    "merge: a counter must have 8 bytes, the value has {}",
                    counter.len()
                ))),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

#[inline]
fn read<S: Store>(store: &S, op: &mut Op<'_>) -> Status {
    match store.get(op.key()) {
        Some(value) => op.deliver(value),
        None => Status::NotFound,
    }
}

impl<'db, S: Store> MemorySession<'db, S> {
    pub(crate) fn new(memory: &'db Memory<S>) -> MemorySession<'db, S> {
        MemorySession { memory, frame: Frame::default() }
    }

    /// Without a log and indexes nothing can fail after these checks, and there is one map lookup.
    #[inline]
    fn is_simple(&self, op: &Op<'_>) -> bool {
        let memory = self.memory;
        memory.log.is_none() && memory.indexes.is_empty() && !op.key().is_empty() && !memory.read_only
    }

    /// A single write: first the checks that may refuse it, then the log, then the map, all under the lock.
    fn write(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.check_writable()?;
        if !self.memory.indexes.is_empty() {
            return self.write_indexed(op);
        }
        let mut store = self.memory.shard(op.keyspace(), op.key())?.write()?;
        if let Some(status) = refusal(&*store, op)? {
            return Ok(status);
        }
        self.log_and_apply(op, &mut *store)
    }

    /// A valid change of a list.
    fn log_and_apply(&mut self, op: &Op<'_>, store: &mut S) -> Result<Status, Error> {
        let Some(change) = Change::of(op) else {
            return Ok(Status::Unsupported);
        };
        if let Some(log) = &self.memory.log {
            self.frame.begin();
            self.frame.push(&change);
            log.commit(&mut self.frame)?;
        }
        change.apply(store);
        Ok(Status::Ok)
    }

    /// A single write that may also change index rows.
    fn write_indexed(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let mut held = Locks::take(self.memory, std::slice::from_ref(op))?;
        let mut undo = Vec::new();
        self.frame.begin();
        let outcome = match (self.step(op, &mut held, &mut undo), &self.memory.log) {
            (Ok(status), Some(log)) => log.commit(&mut self.frame).map(|()| status),
            (outcome, _) => outcome,
        };
        if outcome.is_err() {
            held.undo(undo)?;
        }
        outcome
    }

    fn check_writable(&self) -> Result<(), Error> {
        if self.memory.read_only {
            return Err(Error::with(Status::Unsupported, "the database was opened read-only"));
        }
        Ok(())
    }

    /// Joined gets: a lock is kept while the next key belongs to the same shard.
    fn get_all(&mut self, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let memory = self.memory;
        let mut held = None;
        for op in ops {
            let index = memory.index(op.keyspace(), op.key())?;
            if !matches!(&held, Some((shard, _)) if *shard == index) {
                drop(held.take());
                held = Some((index, memory.shards[index].0.read()?));
            }
            if let Some((_, store)) = &held {
                let status = read(&**store, op);
                op.finish(status);
            }
        }
        Ok(())
    }

    /// One op of a group, under the group's locks.
    fn step(
        &mut self,
        op: &mut Op<'_>,
        held: &mut Locks<'_, S>,
        undo: &mut Vec<Before>,
    ) -> Result<Status, Error> {
        let shard = self.memory.index(op.keyspace(), op.key())?;
        let store = held.store(shard)?;
        match op.kind() {
            KV_GET => return Ok(read(store, op)),
            KV_SCAN => return store.scan(op),
            _ => self.check_writable()?,
        }
        if let Some(status) = refusal(store, op)? {
            return Ok(status);
        }
        self.memory.indexes.check(op)?;
        if let Some(change) = Change::of(op) {
            self.change(&change, held, undo)?;
        }
        Ok(Status::Ok)
    }

    /// Makes a change to a row and its index rows.
    fn change(
        &mut self,
        change: &Change<'_>,
        held: &mut Locks<'_, S>,
        undo: &mut Vec<Before>,
    ) -> Result<(), Error> {
        let memory = self.memory;
        let before = self.change_one(change, held, undo)?;
        for index in memory.indexes.of(change.keyspace) {
            if let Some(value) = &before {
                let gone = index_row(index, change.key, value);
                self.change_one(&gone.change(index, Kind::Delete), held, undo)?;
            }
            if change.kind == Kind::Put {
                let made = index_row(index, change.key, change.value);
                self.change_one(&made.change(index, Kind::Put), held, undo)?;
            }
        }
        Ok(())
    }

    /// Makes one change; returns the value before it.
    fn change_one(
        &mut self,
        change: &Change<'_>,
        held: &mut Locks<'_, S>,
        undo: &mut Vec<Before>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let shard = self.memory.index(change.keyspace, change.key)?;
        let store = held.store(shard)?;
        let value = store.get(change.key).map(<[u8]>::to_vec);
        undo.push(Before { shard, key: change.key.to_vec(), value: value.clone() });
        change.apply(store);
        self.frame.push(change);
        Ok(value)
    }

    /// A group with one commit, all or nothing. False: it must be run op by op.
    fn commit_group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        let mut held = match Locks::take(self.memory, ops) {
            Ok(held) => held,
            Err(error) if atomic => return Err(error),
            Err(_) => return Ok(false),
        };
        let mut undo = Vec::new();
        self.frame.begin();
        let outcome = if atomic {
            each(ops, |op| self.step(op, &mut held, &mut undo))
        } else {
            self.step_all(ops, &mut held, &mut undo).map(|()| Vote::Commit)
        };
        let outcome = match (outcome, &self.memory.log) {
            (Ok(Vote::Commit), Some(log)) => log.commit(&mut self.frame).map(|()| Vote::Commit),
            (outcome, _) => outcome,
        };
        if matches!(outcome, Ok(Vote::Commit)) {
            return Ok(true);
        }
        held.undo(undo)?;
        match outcome {
            Err(error) if atomic => Err(error),
            // Distinguishes the op that failed from the others.
            Err(_) => Ok(false),
            Ok(_) => Ok(true),
        }
    }

    fn step_all(
        &mut self,
        ops: &mut [Op<'_>],
        held: &mut Locks<'_, S>,
        undo: &mut Vec<Before>,
    ) -> Result<(), Error> {
        for op in ops {
            let status = self.step(op, held, undo)?;
            op.finish(status);
        }
        Ok(())
    }
}

impl<S: Store> Session for MemorySession<'_, S> {
    #[inline]
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let store = self.memory.shard(op.keyspace(), op.key())?.read()?;
        Ok(read(&*store, op))
    }

    #[inline]
    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if !self.is_simple(op) {
            return self.write(op);
        }
        let mut store = self.memory.shard(op.keyspace(), op.key())?.write()?;
        if op.is_new() {
            return Ok(if store.put_new(op.key(), op.value()) { Status::Ok } else { Status::Exists });
        }
        store.put(op.key(), op.value());
        Ok(Status::Ok)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if !self.is_simple(op) {
            return self.write(op);
        }
        let mut store = self.memory.shard(op.keyspace(), op.key())?.write()?;
        Ok(if store.remove(op.key()) { Status::Ok } else { Status::NotFound })
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let store = self.memory.shard(op.keyspace(), op.key())?.read()?;
        store.scan(op)
    }

    fn merge(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.write(op)
    }

    fn push(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.check_writable()?;
        let mut store = self.memory.shard(op.keyspace(), op.key())?.write()?;
        self.log_and_apply(op, &mut *store)
    }

    fn pop(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.check_writable()?;
        let mut store = self.memory.shard(op.keyspace(), op.key())?.write()?;
        let next = store.lists().and_then(|lists| lists.get(op.key())?.front());
        let Some(value) = next else { return Ok(Status::NotFound) };
        match op.deliver(value) {
            Status::Ok => self.log_and_apply(op, &mut *store),
            status => Ok(status),
        }
    }

    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        if !atomic && ops.iter().any(|op| matches!(op.kind(), KV_PUSH | KV_POP)) {
            return Ok(false);
        }
        if !atomic && ops.iter().all(|op| op.kind() == KV_GET) {
            // Run op by op after a failure, so that the kit reports which op it was.
            return Ok(self.get_all(ops).is_ok());
        }
        // Without a log there is no commit to share.
        if !atomic && self.memory.log.is_none() {
            return Ok(false);
        }
        self.commit_group(ops, atomic)
    }
}
