//! A session of fjall: single writes, batches, or optimistic transactions.

use super::{Fjall, KEY_BYTES_MAX};
use fjall::{Guard, Keyspace, OptimisticWriteTx, Readable};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};

/// A session without state.
pub struct FjallSession<'db> {
    pub(crate) driver: &'db Fjall,
}

impl<'db> FjallSession<'db> {
    /// The keyspace to read from.
    fn keyspace(&self, op: &Op<'_>) -> Result<&'db Keyspace, Error> {
        self.driver.keyspaces.get(op.keyspace()).ok_or_else(|| Error::unsupported("this keyspace"))
    }

    /// The keyspace to write to. The engine would panic on such a key, and then refuse all writes.
    fn writable(&self, op: &Op<'_>) -> Result<&'db Keyspace, Error> {
        if op.key().is_empty() || op.key().len() > KEY_BYTES_MAX {
            return Err(Error::with(Status::TooLarge, "a key must have 1 to 65535 bytes"));
        }
        self.keyspace(op)
    }

    fn write(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let keyspace = self.writable(op)?;
        match op.kind() {
            _ if self.driver.transactions => return self.transact(std::slice::from_mut(op)),
            KV_PUT if op.is_new() => return Ok(Status::Unsupported),
            KV_PUT => keyspace.insert(op.key(), op.value())?,
            _ => keyspace.remove(op.key())?,
        }
        if let Some(mode) = self.driver.persist {
            self.driver.database.persist(mode)?;
        }
        Ok(Status::Ok)
    }

    /// One optimistic transaction, retried after a conflict; returns the status of its last op.
    fn transact(&self, ops: &mut [Op<'_>]) -> Result<Status, Error> {
        for retries in 0..1000 {
            let mut transaction = self.driver.database.write_tx()?.durability(self.driver.persist_batch);
            let mut status = Status::Ok;
            let vote = each(ops, |op| {
                status = apply(&mut transaction, self.writable(op)?, op)?;
                Ok(status)
            })?;
            if vote == Vote::Abort || transaction.commit()?.is_ok() {
                ops[0].add_retries(retries);
                return Ok(status);
            }
        }
        ops.iter_mut().for_each(|op| op.finish(Status::Conflict));
        Ok(Status::Conflict)
    }
}

fn apply(transaction: &mut OptimisticWriteTx, keyspace: &Keyspace, op: &mut Op<'_>) -> Result<Status, Error> {
    match op.kind() {
        KV_GET => {
            let value = transaction.get(keyspace, op.key())?;
            return Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)));
        }
        KV_PUT if op.is_new() && transaction.contains_key(keyspace, op.key())? => return Ok(Status::Exists),
        KV_PUT => transaction.insert(keyspace, op.key(), op.value()),
        KV_DELETE => transaction.remove(keyspace, op.key()),
        _ => return Err(Error::unsupported("this op in a transaction")),
    }
    Ok(Status::Ok)
}

impl Session for FjallSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let keyspace = self.keyspace(op)?;
        if op.key().len() > KEY_BYTES_MAX {
            return Ok(Status::NotFound);
        }
        Ok(keyspace.get(op.key())?.map_or(Status::NotFound, |value| op.deliver(&value)))
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.write(op)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.write(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if op.key().len().max(op.value().len()) > KEY_BYTES_MAX {
            return Err(Error::with(Status::TooLarge, "the bound is longer than a key may be"));
        }
        let range = op.range();
        if range.is_empty() {
            return Ok(op.rows().status());
        }
        let found = self.keyspace(op)?.range::<&[u8], _>(range.bounds());
        if op.is_reverse() {
            op.deliver_rows(found.rev().map(Guard::into_inner))
        } else {
            op.deliver_rows(found.map(Guard::into_inner))
        }
    }

    fn group(&mut self, ops: &mut [Op<'_>], atomic: bool) -> Result<bool, Error> {
        if self.driver.transactions {
            self.transact(ops)?;
            return Ok(true);
        }
        if !ops.iter().all(|op| op.kind() == KV_DELETE || op.kind() == KV_PUT && !op.is_new()) {
            return if atomic { Err(Error::unsupported("this op in a batch")) } else { Ok(false) };
        }
        let mut batch = self.driver.database.inner().batch().durability(self.driver.persist_batch);
        for op in ops.iter_mut() {
            let keyspace = self.writable(op)?;
            if op.kind() == KV_PUT {
                batch.insert(keyspace, op.key(), op.value());
            } else {
                batch.remove(keyspace, op.key());
            }
            op.finish(Status::Ok);
        }
        batch.commit()?;
        Ok(true)
    }
}
