//! A session of SurrealKV: optimistic transactions, retried after a conflict, each commit awaited.

use super::Surrealkv;
use kvdyno_driver::abi::*;
use kvdyno_driver::{Error, Op, Session, Status, Vote, each};
use std::ops::Bound;
use std::thread::sleep;
use std::time::Duration;
use surrealkv::{LSMIterator, Mode, ReadOptions, Transaction};

/// The number of attempts of a transaction, and the pause after a conflict.
const TRIES: u32 = 10_000;
const PAUSE: Duration = Duration::from_micros(20);

/// A session: each op outside a group is a separate transaction.
pub struct SurrealkvSession<'db> {
    pub(crate) driver: &'db Surrealkv,
}

impl SurrealkvSession<'_> {
    /// One optimistic transaction, retried after a conflict; returns the status of its last op.
    fn transact(&self, ops: &mut [Op<'_>], mode: Mode) -> Result<Status, Error> {
        for retries in 0..TRIES {
            // The next attempt sees the winning write only when its commit is complete.
            if retries > 0 {
                sleep(PAUSE);
            }
            let mut transaction = self.driver.tree.begin_with_mode(mode)?;
            transaction.set_durability(self.driver.durability);
            let mut status = Status::Ok;
            let vote = each(ops, |op| {
                status = apply(&mut transaction, op)?;
                Ok(status)
            })?;
            if vote == Vote::Commit && mode != Mode::ReadOnly {
                match self.driver.runtime.block_on(transaction.commit()) {
                    Err(surrealkv::Error::TransactionWriteConflict | surrealkv::Error::TransactionRetry) => {
                        continue;
                    }
                    outcome => outcome?,
                }
            }
            ops[0].add_retries(retries);
            return Ok(status);
        }
        ops.iter_mut().for_each(|op| op.finish(Status::Conflict));
        Ok(Status::Conflict)
    }
}

fn apply(transaction: &mut Transaction, op: &mut Op<'_>) -> Result<Status, Error> {
    match op.kind() {
        KV_GET if op.key().is_empty() => return Ok(Status::NotFound),
        KV_PUT | KV_DELETE if op.key().is_empty() => {
            return Err(Error::with(Status::TooLarge, "a key must have at least 1 byte"));
        }
        KV_GET => {
            let value = transaction.get(op.key())?;
            return Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)));
        }
        KV_SCAN => return scan(transaction, op),
        KV_PUT if op.is_new() && transaction.get(op.key())?.is_some() => return Ok(Status::Exists),
        KV_PUT => transaction.set(op.key(), op.value())?,
        KV_DELETE => transaction.delete(op.key())?,
        _ => return Err(Error::unsupported("this op")),
    }
    Ok(Status::Ok)
}

fn scan(transaction: &Transaction, op: &mut Op<'_>) -> Result<Status, Error> {
    let (range, reverse) = (op.range(), op.is_reverse());
    let mut writer = op.rows();
    if range.is_empty() {
        return Ok(writer.status());
    }
    // The engine's ranges include their lower end and exclude their upper end.
    let after = |key: &[u8]| [key, &[0]].concat();
    let (lower, upper) = range.bounds();
    let mut options = ReadOptions::new();
    options.set_iterate_lower_bound(match lower {
        Bound::Included(key) => Some(key.to_vec()),
        Bound::Excluded(key) => Some(after(key)),
        Bound::Unbounded => None,
    });
    options.set_iterate_upper_bound(match upper {
        Bound::Included(key) => Some(after(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
        Bound::Unbounded => None,
    });
    let mut cursor = transaction.range_with_options(&options)?;
    let mut more = if reverse { cursor.seek_last()? } else { cursor.seek_first()? };
    while more && writer.push(cursor.key().user_key(), &cursor.value_ref()?) {
        more = if reverse { cursor.prev()? } else { cursor.next()? };
    }
    Ok(writer.status())
}

impl Session for SurrealkvSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        apply(&mut self.driver.tree.begin_with_mode(Mode::ReadOnly)?, op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let mode = if op.is_new() { Mode::ReadWrite } else { Mode::WriteOnly };
        self.transact(std::slice::from_mut(op), mode)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.put(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.get(op)
    }

    fn group(&mut self, ops: &mut [Op<'_>], _atomic: bool) -> Result<bool, Error> {
        let reads = ops.iter().filter(|op| matches!(op.kind(), KV_GET | KV_SCAN)).count();
        let blind = reads == 0 && !ops.iter().any(|op| op.is_new());
        let mode = if reads == ops.len() {
            Mode::ReadOnly
        } else if blind {
            Mode::WriteOnly
        } else {
            Mode::ReadWrite
        };
        self.transact(ops, mode)?;
        Ok(true)
    }
}
