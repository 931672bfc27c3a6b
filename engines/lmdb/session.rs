//! Sessions of LMDB: the transactions of each op, and the scan that a session holds.

use crate::Lmdb;
use crate::held::Held;
use heed::types::Bytes;
use heed::{Database, MdbError, RoTxn, RwTxn};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};

/// A session: each op outside a group is a separate transaction.
pub struct LmdbSession<'db> {
    pub(crate) driver: &'db Lmdb,
    /// The held scan, for scans in calls of few rows. Any other op releases it: a thread has one read transaction at
    /// a time.
    pub(crate) held: Option<Held>,
}

impl LmdbSession<'_> {
    fn database(&self, op: &Op<'_>) -> Result<Database<Bytes, Bytes>, Error> {
        self.driver.databases.get(op.keyspace()).copied().ok_or_else(|| Error::unsupported("this keyspace"))
    }

    fn read(&self, transaction: &RoTxn<'_>, op: &mut Op<'_>) -> Result<Status, Error> {
        let database = self.database(op)?;
        if op.kind() == KV_GET {
            let value = database.get(transaction, op.key()).map_err(failure)?;
            return Ok(value.map_or(Status::NotFound, |value| op.deliver(value)));
        }
        let range = op.range();
        if range.is_empty() {
            return Ok(op.rows().status());
        }
        if op.is_reverse() {
            op.deliver_rows(database.rev_range(transaction, &range.bounds())?)
        } else {
            op.deliver_rows(database.range(transaction, &range.bounds())?)
        }
    }

    fn write(&self, transaction: &mut RwTxn<'_>, op: &mut Op<'_>) -> Result<Status, Error> {
        let database = self.database(op)?;
        match op.kind() {
            KV_GET | KV_SCAN => return self.read(transaction, op),
            KV_PUT if op.is_new() => {
                let old = database.get_or_put(transaction, op.key(), op.value()).map_err(failure)?;
                return Ok(if old.is_some() { Status::Exists } else { Status::Ok });
            }
            KV_PUT => database.put(transaction, op.key(), op.value()).map_err(failure)?,
            KV_DELETE if !database.delete(transaction, op.key()).map_err(failure)? => {
                return Ok(Status::NotFound);
            }
            KV_DELETE => (),
            _ => return Err(Error::unsupported("this op")),
        }
        Ok(Status::Ok)
    }
}

fn failure(error: heed::Error) -> Error {
    match error {
        heed::Error::Mdb(MdbError::MapFull) => {
            Error::with(Status::Full, "the map is full; raise option map-size")
        }
        heed::Error::Mdb(MdbError::BadValSize) => {
            Error::with(Status::TooLarge, "a key must have 1 to 511 bytes")
        }
        error => error.into(),
    }
}

impl Session for LmdbSession<'_> {
    #[inline]
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.held = None;
        let transaction = self.driver.environment.read_txn()?;
        self.read(&transaction, op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.held = None;
        let mut transaction = self.driver.environment.write_txn()?;
        let status = self.write(&mut transaction, op)?;
        // A transaction without a change is dropped, which aborts it.
        if status == Status::Ok {
            transaction.commit().map_err(failure)?;
        }
        Ok(status)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.put(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let held = self.held.take().filter(|held| held.is_of(op));
        if op.raw().flags & KV_HOLD == 0 || op.range().is_empty() {
            return self.get(op);
        }
        let mut held = match held {
            Some(held) => held,
            None => Held::begin(&self.driver.environment, self.database(op)?, op)?,
        };
        let status = held.deliver(op)?;
        self.held = op.is_held().then_some(held);
        Ok(status)
    }

    /// `KV_DROP`: there are no transactions over several calls.
    fn control(&mut self, _op: &mut Op<'_>) -> Result<Status, Error> {
        self.held = None;
        Ok(Status::Ok)
    }

    fn group(&mut self, ops: &mut [Op<'_>], _atomic: bool) -> Result<bool, Error> {
        self.held = None;
        if ops.iter().all(|op| matches!(op.kind(), KV_GET | KV_SCAN)) {
            let transaction = self.driver.environment.read_txn()?;
            each(ops, |op| self.read(&transaction, op))?;
            return Ok(true);
        }
        let mut transaction = self.driver.environment.write_txn()?;
        if each(ops, |op| self.write(&mut transaction, op))? == Vote::Commit {
            transaction.commit().map_err(failure)?;
        }
        Ok(true)
    }
}
