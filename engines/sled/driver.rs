//! The driver of sled 0.34: a lock-free B-link tree over a log-structured page cache.

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status};
use kvdyno_driver::{TRANSACTIONS, Vote, Work, each, option};
use sled::transaction::ConflictableTransactionError::Abort;
use sled::transaction::{TransactionError, TransactionalTree};
use sled::{Batch, Db, Tree};
use std::cell::RefCell;

const VERSION: &str = "0.34.7";
/// The default of `sled::Config`.
const CACHE_BYTES: u64 = 1 << 30;
const SPECIAL: u64 = KV_MERGE_ADD | KV_MERGE_APPEND | KV_DELETE_TELLS | KV_KEYSPACES | KV_CAN_TOUCH;

/// An open database and its trees, one for each keyspace.
pub struct Sled {
    database: Db,
    trees: Vec<Tree>,
    flushes: bool,
}

impl Driver for Sled {
    const INFO: Info = Info {
        name: c"sled",
        engine: c"B-link tree over a log-structured page cache",
        language: c"Rust",
        family: c"bw-tree",
        capabilities: ORDERED_MAP | TRANSACTIONS & !KV_MULTI_GET | SPECIAL,
        levels: &[Level::None, Level::Process],
        key_size_max: 0,
        options: &[option(c"flush-every-ms", c"count", c"500", c"background flush period; 0 = none")],
    };
    type Session<'db> = SledSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Sled, Error> {
        let level = config.pick(Sled::INFO.levels, Level::None)?;
        let cache = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let period_ms = config.number("flush-every-ms")?;
        let database = sled::Config::new()
            .path(config.path())
            .cache_capacity(cache)
            .flush_every_ms((period_ms != 0).then_some(period_ms))
            .open()?;
        let mut trees = Vec::new();
        for number in 0..config.keyspaces() {
            let tree = database.open_tree(format!("k{number}"))?;
            tree.set_merge_operator(merge);
            trees.push(tree);
        }
        opened.level(level);
        opened.version(VERSION);
        opened.compression("none");
        opened.cache_bytes(cache);
        opened.setting("flush-every-ms", period_ms);
        opened.setting("flush-each-write", level == Level::Process);
        Ok(Sled { database, trees, flushes: level == Level::Process })
    }

    fn session(&self) -> Result<SledSession<'_>, Error> {
        Ok(SledSession { driver: self, operand: Vec::new() })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match work {
            Work::Flush => self.database.flush().map(|_| Status::Ok).map_err(Error::from),
            _ => Ok(Status::Unsupported),
        }
    }

    fn stats(&self, out: &mut String) {
        if let Ok(bytes) = self.database.size_on_disk() {
            *out += &format!("size_on_disk_bytes={bytes}\n");
        }
    }

    fn close(self) -> Result<(), Error> {
        self.maintain(Work::Flush).map(|_| ())
    }
}

/// The operand begins with a byte that says which merge it is.
fn merge(_key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Option<Vec<u8>> {
    let (kind, operand) = operand.split_first()?;
    let old = old.unwrap_or(&[]);
    if *kind == b'.' {
        return Some([old, operand].concat());
    }
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    Some(number(old).wrapping_add(number(operand)).to_le_bytes().to_vec())
}

/// A session; its own memory is a merge's operand.
pub struct SledSession<'db> {
    driver: &'db Sled,
    operand: Vec<u8>,
}

impl<'db> SledSession<'db> {
    fn tree(&self, op: &Op<'_>) -> Result<&'db Tree, Error> {
        self.driver.trees.get(op.keyspace()).ok_or_else(|| Error::unsupported("such keyspace"))
    }

    /// The acknowledgement of a write: at `process` its log buffer is written first.
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
        if atomic {
            if !here {
                return Err(Error::unsupported("transactions over several keyspaces"));
            }
            transact(tree, ops)?;
        } else {
            // A batch does not tell which deletes found their key.
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

fn transact(tree: &Tree, ops: &mut [Op<'_>]) -> Result<(), Error> {
    // The engine wants a closure that it may call again; it changes the ops each time.
    let ops = RefCell::new(ops);
    let outcome = tree.transaction(|view| match each(&mut ops.borrow_mut(), |op| apply(view, op)) {
        Ok(Vote::Commit) => Ok(()),
        Ok(Vote::Abort) => Err(Abort(None)),
        Err(error) => Err(Abort(Some(error))),
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
        _ => return Err(Error::unsupported("such op in a transaction")),
    };
    Ok(if found { Status::Ok } else { Status::NotFound })
}

#[cfg(test)]
mod tests;
