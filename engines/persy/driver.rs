//! The driver of Persy: a B+tree index in one file, behind a journal.

#![allow(unsafe_code, reason = "the symbol of the plug-in")]

mod rows;

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status};
use kvdyno_driver::{Vote, Work, each};
use persy::{ByteVec, Snapshot, Transaction, TransactionConfig, ValueMode};
use rows::{own, rows};
use std::sync::{Mutex, MutexGuard, RwLock};

const VERSION: &str = "1.8.1";
const CACHE_BYTES: u64 = 32 << 20; // the default of `persy::Config`
/// The largest key or value that an index accepts.
const SIZE_MAX: usize = 512 << 10;
/// An index that belongs to the driver, because a flush must change something.
const FLUSHES: &str = "flushes";

/// An open file and the names of its indexes, one for each keyspace.
pub struct Persy {
    database: persy::Persy,
    background: bool,
    indexes: Vec<String>,
    /// Held while a transaction writes: if two write at the same time, rows get lost (README.md).
    writing: Mutex<()>,
    /// Held for writing while a prepared transaction is applied, and for reading by each read: a concurrent read
    /// would see half of the commit (README.md).
    applying: RwLock<()>,
}

impl Driver for Persy {
    const INFO: Info = Info {
        name: c"persy",
        engine: c"B+tree index in one file, behind a journal",
        language: c"Rust",
        family: c"b+tree",
        capabilities: ORDERED_MAP | KV_MULTI_GET | KV_KEYSPACES | KV_SINGLE_WRITER,
        levels: &[Level::Process, Level::Power],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = PersySession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Persy, Error> {
        let level = config.pick(Persy::INFO.levels, Level::Power)?;
        let cache = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let mut settings = persy::Config::new();
        settings.change_cache_size(cache);
        let indexes: Vec<_> = (0..config.keyspaces()).map(|number| format!("k{number}")).collect();
        let file = config.path().join("data.persy");
        let database = persy::Persy::open_or_create_with(file, settings, |_| Ok(()))?;
        let mut transaction = database.begin()?;
        for index in indexes.iter().map(String::as_str).chain([FLUSHES]) {
            if !database.exists_index(index)? {
                transaction.create_index::<ByteVec, ByteVec>(index, ValueMode::Replace)?;
            }
        }
        transaction.commit()?;
        opened.level(level);
        opened.version(VERSION);
        opened.compression("none");
        opened.cache_bytes(cache);
        let background = level == Level::Process;
        opened.setting("value_size_max", SIZE_MAX);
        opened.setting("background-sync", background);
        Ok(Persy { database, background, indexes, writing: Mutex::default(), applying: RwLock::default() })
    }

    fn session(&self) -> Result<PersySession<'_>, Error> {
        Ok(PersySession { driver: self })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        if work != Work::Flush {
            return Ok(Status::Unsupported);
        }
        if self.background {
            // A synced transaction syncs the file, and so all earlier ones; it must change something.
            let mut transaction =
                self.database.begin_with(TransactionConfig::new().set_background_sync(false))?;
            transaction.put(FLUSHES, ByteVec::from(&b"last"[..]), ByteVec::from(&b"flush"[..]))?;
            transaction.commit()?;
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        if let Ok(indexes) = self.database.list_indexes() {
            *out += &format!("indexes={}\n", indexes.len());
        }
    }

    fn close(self) -> Result<(), Error> {
        self.maintain(Work::Flush).map(|_| ())
    }
}

/// A session: each op outside a group is a separate transaction.
pub struct PersySession<'db> {
    driver: &'db Persy,
}

impl<'db> PersySession<'db> {
    fn index(&self, op: &Op<'_>) -> Result<&'db str, Error> {
        let name = self.driver.indexes.get(op.keyspace());
        name.map(String::as_str).ok_or_else(|| Error::unsupported("this keyspace"))
    }

    fn begin(&self) -> Result<(MutexGuard<'db, ()>, Transaction), Error> {
        let config = TransactionConfig::new().set_background_sync(self.driver.background);
        Ok((self.driver.writing.lock()?, self.driver.database.begin_with(config)?))
    }

    /// Applies a transaction while no read runs. The slow part, the sync of level power, is in its preparation.
    fn commit(&self, transaction: Transaction) -> Result<(), Error> {
        let prepared = transaction.prepare()?;
        let _unread = self.driver.applying.write()?;
        Ok(prepared.commit()?)
    }

    fn write(&self, transaction: &mut Transaction, op: &mut Op<'_>) -> Result<Status, Error> {
        let index = self.index(op)?;
        let key = ByteVec::from(op.key());
        match op.kind() {
            KV_GET => {
                let value = transaction.one::<ByteVec, ByteVec>(index, &key)?;
                return Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)));
            }
            KV_PUT if op.is_new() => return Err(Error::unsupported("insert without overwrite")),
            KV_PUT if op.key().len().max(op.value().len()) > SIZE_MAX => return Ok(Status::TooLarge),
            KV_PUT => transaction.put(index, key, ByteVec::from(op.value()))?,
            KV_DELETE => transaction.remove::<ByteVec, ByteVec>(index, key, None)?,
            _ => return Err(Error::unsupported("this op in a transaction")),
        }
        Ok(Status::Ok)
    }

    fn read(&self, snapshot: &Snapshot, op: &mut Op<'_>) -> Result<Status, Error> {
        let index = self.index(op)?;
        if op.kind() == KV_GET {
            let value = snapshot.one::<ByteVec, ByteVec>(index, &ByteVec::from(op.key()))?;
            return Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)));
        }
        let range = op.range();
        if range.is_empty() {
            return Ok(op.rows().status());
        }
        let (lower, upper) = range.bounds();
        let found = snapshot.range(index, (own(lower), own(upper)))?;
        if op.is_reverse() { rows(op, found.rev()) } else { rows(op, found) }
    }
}

impl Session for PersySession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let index = self.index(op)?;
        let _whole = self.driver.applying.read()?;
        let value = self.driver.database.one::<ByteVec, ByteVec>(index, &ByteVec::from(op.key()))?;
        Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)))
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        if op.is_new() {
            return Ok(Status::Unsupported);
        }
        let (_alone, mut transaction) = self.begin()?;
        let status = self.write(&mut transaction, op)?;
        if status == Status::Ok {
            self.commit(transaction)?;
        }
        Ok(status)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.put(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let _whole = self.driver.applying.read()?;
        self.read(&self.driver.database.snapshot()?, op)
    }

    fn group(&mut self, ops: &mut [Op<'_>], _atomic: bool) -> Result<bool, Error> {
        if ops.iter().all(|op| matches!(op.kind(), KV_GET | KV_SCAN)) {
            let _whole = self.driver.applying.read()?;
            let snapshot = self.driver.database.snapshot()?;
            each(ops, |op| self.read(&snapshot, op))?;
            return Ok(true);
        }
        let (_alone, mut transaction) = self.begin()?;
        if each(ops, |op| self.write(&mut transaction, op))? == Vote::Commit {
            self.commit(transaction)?;
        }
        Ok(true)
    }
}

kvdyno_driver::export_drivers!(Persy);

#[cfg(test)]
mod tests;
