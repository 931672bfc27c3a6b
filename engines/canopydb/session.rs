//! One thread's access to a canopydb database.

use super::Canopydb;
use canopydb::{ReadTransaction, Tree, WriteTransaction};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};

/// A session: each op outside a group is a separate transaction.
pub struct CanopydbSession<'db> {
    driver: &'db Canopydb,
}

impl<'db> CanopydbSession<'db> {
    pub(super) fn of(driver: &'db Canopydb) -> CanopydbSession<'db> {
        CanopydbSession { driver }
    }

    fn name(&self, op: &Op<'_>) -> Result<&'db [u8], Error> {
        Ok(self.driver.trees.get(op.keyspace()).ok_or_else(|| Error::unsupported("this keyspace"))?)
    }

    fn read(&self, transaction: &ReadTransaction, op: &mut Op<'_>) -> Result<Status, Error> {
        let tree = transaction.get_tree(self.name(op)?)?;
        read(&tree.ok_or_else(|| Error::new("the tree does not exist"))?, op)
    }

    fn apply(&self, transaction: &WriteTransaction, ops: &mut [Op<'_>]) -> Result<(Vote, Status), Error> {
        let mut trees: Vec<_> = self.driver.trees.iter().map(|_| None).collect();
        let mut status = Status::Ok;
        let vote = each(ops, |op| {
            let name = self.name(op)?;
            let tree = match &mut trees[op.keyspace()] {
                Some(tree) => tree,
                closed => closed.insert(transaction.get_or_create_tree(name)?),
            };
            status = if matches!(op.kind(), KV_GET | KV_SCAN) { read(tree, op) } else { write(tree, op) }?;
            Ok(status)
        })?;
        Ok((vote, status))
    }

    /// One transaction, retried after a conflict; returns the status of its last op.
    fn transact(&self, ops: &mut [Op<'_>]) -> Result<Status, Error> {
        for retries in 0..1000 {
            let transaction = self.driver.database.begin_write_with(self.driver.concurrent)?;
            let (vote, status) = self.apply(&transaction, ops)?;
            if vote == Vote::Commit {
                match transaction.commit() {
                    Err(canopydb::Error::WriteConflict) => continue,
                    outcome => outcome?,
                };
            }
            ops[0].add_retries(retries);
            return Ok(status);
        }
        ops.iter_mut().for_each(|op| op.finish(Status::Conflict));
        Ok(Status::Conflict)
    }
}

impl Session for CanopydbSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.read(&self.driver.database.begin_read()?, op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.transact(std::slice::from_mut(op))
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.put(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.get(op)
    }

    fn group(&mut self, ops: &mut [Op<'_>], _atomic: bool) -> Result<bool, Error> {
        if ops.iter().all(|op| matches!(op.kind(), KV_GET | KV_SCAN)) {
            let transaction = self.driver.database.begin_read()?;
            each(ops, |op| self.read(&transaction, op))?;
        } else {
            self.transact(ops)?;
        }
        Ok(true)
    }
}

fn read(tree: &Tree<'_>, op: &mut Op<'_>) -> Result<Status, Error> {
    if op.kind() == KV_GET {
        return Ok(tree.get(op.key())?.map_or(Status::NotFound, |value| op.deliver(&value)));
    }
    let range = op.range();
    if range.is_empty() {
        return Ok(op.rows().status());
    }
    let found = tree.range::<&[u8]>(range.bounds())?;
    if op.is_reverse() { op.deliver_rows(found.rev()) } else { op.deliver_rows(found) }
}

fn write(tree: &mut Tree<'_>, op: &mut Op<'_>) -> Result<Status, Error> {
    match op.kind() {
        KV_PUT if op.is_new() && tree.get(op.key())?.is_some() => return Ok(Status::Exists),
        KV_PUT => tree.insert(op.key(), op.value())?,
        KV_DELETE if !tree.delete(op.key())? => return Ok(Status::NotFound),
        KV_DELETE => (),
        _ => return Err(Error::unsupported("this op")),
    }
    Ok(Status::Ok)
}
