//! A cursor that stays open from call to call, with the read transaction that it needs.

#![allow(unsafe_code, reason = "a transaction that outlives a call")]

use heed::types::Bytes;
use heed::{Database, Env, RoRange, RoRevRange, RoTxn, WithTls};
use kvdyno_driver::{Error, Op, Status};

enum Walk {
    Up(RoRange<'static, Bytes, Bytes>),
    Down(RoRevRange<'static, Bytes, Bytes>),
}

/// A held scan. Its rows are those of the moment at which it began.
pub struct Held {
    /// Dropped before its read transaction.
    walk: Walk,
    /// The key of the last row written; it is in the map, which the transaction keeps unchanged.
    last: &'static [u8],
    name: (u8, u16, u16),
    _transaction: Box<RoTxn<'static, WithTls>>,
}

impl Held {
    /// Begins a scan.
    pub fn begin(environment: &Env, database: Database<Bytes, Bytes>, op: &Op<'_>) -> Result<Held, Error> {
        let transaction = Box::new(environment.clone().static_read_txn()?);
        // SAFETY: the walk, which borrows the transaction, is dropped before the box that contains it and never
        // leaves it.
        let lent: &'static RoTxn<'static, WithTls> = unsafe { &*std::ptr::from_ref(transaction.as_ref()) };
        let (range, name) = (op.range(), op.scan_name());
        let walk = if op.is_reverse() {
            Walk::Down(database.rev_range(lent, &range.bounds())?)
        } else {
            Walk::Up(database.range(lent, &range.bounds())?)
        };
        Ok(Held { walk, last: &[], name, _transaction: transaction })
    }

    /// Whether the scan continues with it.
    pub fn is_of(&self, op: &Op<'_>) -> bool {
        op.goes_on() && self.name == op.scan_name() && self.last == op.key()
    }

    /// The next rows.
    pub fn deliver(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let mut rows = op.rows();
        while let Some(row) = match &mut self.walk {
            Walk::Up(walk) => walk.next(),
            Walk::Down(walk) => walk.next(),
        } {
            let (key, value) = row?;
            self.last = key;
            if !rows.push(key, value) {
                break;
            }
        }
        Ok(rows.status())
    }
}
