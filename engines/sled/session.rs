//! One thread's access to a sled database.

use super::Sled;
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};
use sled::transaction::ConflictableTransactionError::Abort;
use sled::transaction::{TransactionError, Transactional, TransactionalTree};
use sled::{Batch, Tree};
use std::cell::RefCell;

/// The operand begins with a byte that selects the kind of merge.
pub(super) fn merge(_key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Option<Vec<u8>> {
    let (kind, operand) = operand.split_first()?;
    let old = old.unwrap_or(&[]);
    if *kind == b'.' {
        return Some([old, operand].concat());
    }
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    Some(number(old).wrapping_add(number(operand)).to_le_bytes().to_vec())
}

/// A session; its only memory is a merge's operand.
pub struct SledSession<'db> {
    pub(super) driver: &'db Sled,
    pub(super) operand: Vec<u8>,
}

impl<'db> SledSession<'db> {
    fn tree(&self, op: &Op<'_>) -> Result<&'db Tree, Error> {
        self.driver.trees.get(op.keyspace()).ok_or_else(|| Error::unsupported("this keyspace"))
    }

    /// The acknowledgement of a write: at `process` the log buffer is written first.
    fn written(&self) -> Result<Status, Error> {
        if self.driver.flushes {
            self.driver.database.flush()?;
        }
        Ok(Status::Ok)
    }
}

impl Session for SledSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(self.tree(op)?.get(op.key())?.map_or(Status::NotFound, |value| op.deliver(&value)))
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let tree = self.tree(op)?;
        if !op.is_new() {
            tree.insert(op.key(), op.value())?;
        } else if tree.compare_and_swap(op.key(), None::<&[u8]>, Some(op.value()))?.is_err() {
            return Ok(Status::Exists);
        }
        self.written()
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let old = self.tree(op)?.remove(op.key())?;
        if old.is_some() { self.written() } else { Ok(Status::NotFound) }
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let range = op.range();
        if range.is_empty() {
            return Ok(op.rows().status());
        }
        let found = self.tree(op)?.range::<&[u8], _>(range.bounds());
        if op.is_reverse() { op.deliver_rows(found.rev()) } else { op.deliver_rows(found) }
    }

    fn merge(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.operand.clear();
        self.operand.push(if op.is_append() { b'.' } else { b'+' });
        self.operand.extend_from_slice(op.value());
        self.tree(op)?.merge(op.key(), &self.operand)?;
        self.written()
    }

    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        let tree = self.tree(&ops[0])?;
        let here = ops.iter().all(|op| op.keyspace() == ops[0].keyspace());
        ops.iter().try_for_each(|op| self.tree(op).map(|_| ()))?;
        if atomic {
            let trees = if here { std::slice::from_ref(tree) } else { &self.driver.trees[..] };
            transact(trees, ops)?;
        } else {
            // A batch does not report which deletes found their key.
            if !here || !ops.iter().all(|op| op.kind() == KV_PUT && !op.is_new()) {
                return Ok(false);
            }
            let mut batch = Batch::default();
            ops.iter().for_each(|op| batch.insert(op.key(), op.value()));
            tree.apply_batch(batch)?;
            ops.iter_mut().for_each(|op| op.finish(Status::Ok));
        }
        self.written()?;
        Ok(true)
    }
}

/// One transaction over `trees`: the single tree of all ops, or those of all keyspaces.
fn transact(trees: &[Tree], ops: &mut [Op<'_>]) -> Result<(), Error> {
    // The engine needs a closure that it may call again; it sets the results of the ops each time.
    let ops = RefCell::new(ops);
    let outcome = trees.transaction(|views: &Vec<TransactionalTree>| {
        let view = |op: &Op<'_>| &views[if views.len() == 1 { 0 } else { op.keyspace() }];
        match each(&mut ops.borrow_mut(), |op| apply(view(op), op)) {
            Ok(Vote::Commit) => Ok(()),
            Ok(Vote::Abort) => Err(Abort(None)),
            Err(error) => Err(Abort(Some(error))),
        }
    });
    match outcome {
        Ok(()) | Err(TransactionError::Abort(None)) => Ok(()),
        Err(TransactionError::Abort(Some(error))) => Err(error),
        Err(TransactionError::Storage(error)) => Err(error.into()),
    }
}

fn apply(view: &TransactionalTree, op: &mut Op<'_>) -> Result<Status, Error> {
    let found = match op.kind() {
        KV_GET => return Ok(view.get(op.key())?.map_or(Status::NotFound, |value| op.deliver(&value))),
        KV_PUT if op.is_new() && view.get(op.key())?.is_some() => return Ok(Status::Exists),
        KV_PUT => view.insert(op.key(), op.value()).map(|_| true)?,
        KV_DELETE => view.remove(op.key())?.is_some(),
        // A transaction has no merge; nothing can happen between its get and its insert.
        KV_MERGE => {
            let operand = [&[if op.is_append() { b'.' } else { b'+' }], op.value()].concat();
            let merged = merge(op.key(), view.get(op.key())?.as_deref(), &operand);
            view.insert(op.key(), merged.unwrap_or_default()).map(|_| true)?
        }
        _ => return Err(Error::unsupported("this op in a transaction")),
    };
    Ok(if found { Status::Ok } else { Status::NotFound })
}
