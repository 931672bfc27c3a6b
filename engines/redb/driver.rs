//! The driver of redb: a copy-on-write B+tree in one file, written by one thread at a time.

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status};
use kvdyno_driver::{TRANSACTIONS, Vote, Work, each};
use redb::{AccessGuard, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable};
use redb::{StorageError, Table, TableDefinition, WriteTransaction};

const VERSION: &str = "4.4.0";
/// The default of `Builder::new`.
const CACHE_BYTES: u64 = 1 << 30;

type Bytes = &'static [u8];

/// An open database and the names of its tables, one for each keyspace.
pub struct Redb {
    database: Database,
    durability: Durability,
    tables: Vec<String>,
}

impl Driver for Redb {
    const INFO: Info = Info {
        name: c"redb",
        engine: c"copy-on-write B+tree in one file",
        language: c"Rust",
        family: c"b+tree",
        capabilities: ORDERED_MAP
            | TRANSACTIONS
            | KV_DELETE_TELLS
            | KV_KEYSPACES
            | KV_SINGLE_WRITER
            | KV_CAN_TOUCH,
        levels: &[Level::None, Level::Power],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = RedbSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Redb, Error> {
        let level = config.pick(Redb::INFO.levels, Level::Power)?;
        let cache = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let file = config.path().join("data.redb");
        let database = Database::builder().set_cache_size(cache as usize).create(file)?;
        let durability = if level == Level::None { Durability::None } else { Durability::Immediate };
        opened.level(level);
        opened.version(VERSION);
        opened.compression("none");
        opened.cache_bytes(cache);
        opened.setting("durability", format_args!("{durability:?}"));
        let tables = (0..config.keyspaces()).map(|number| format!("k{number}")).collect();
        let driver = Redb { database, durability, tables };
        let transaction = driver.database.begin_write()?;
        for keyspace in 0..driver.tables.len() {
            transaction.open_table(driver.table(keyspace)?)?;
        }
        transaction.commit()?;
        Ok(driver)
    }

    fn session(&self) -> Result<RedbSession<'_>, Error> {
        Ok(RedbSession { driver: self })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match work {
            Work::Flush => self.persist(),
            Work::Settle => Ok(Status::Ok), // nothing runs in the background
            Work::Compact => Ok(Status::Unsupported), // `Database::compact` needs exclusive access
        }
    }

    fn stats(&self, out: &mut String) {
        let cache = self.database.cache_stats();
        *out += &format!("cache_hits={}\ncache_misses={}\n", cache.read_hits(), cache.read_misses());
        *out += &format!("cache_evictions={}\ncache_used_bytes={}\n", cache.evictions(), cache.used_bytes());
    }

    fn close(self) -> Result<(), Error> {
        self.persist().map(|_| ())
    }
}

impl Redb {
    fn table(&self, keyspace: usize) -> Result<TableDefinition<'_, Bytes, Bytes>, Error> {
        let name = self.tables.get(keyspace).ok_or_else(|| Error::unsupported("this keyspace"))?;
        Ok(TableDefinition::new(name))
    }

    fn begin_write(&self) -> Result<WriteTransaction, Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        Ok(transaction)
    }

    /// An immediate commit makes all earlier commits durable.
    fn persist(&self) -> Result<Status, Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        transaction.commit()?;
        Ok(Status::Ok)
    }
}

/// A session: each op outside a group is a separate transaction.
pub struct RedbSession<'db> {
    driver: &'db Redb,
}

impl RedbSession<'_> {
    fn read(&self, transaction: &ReadTransaction, op: &mut Op<'_>) -> Result<Status, Error> {
        read(&transaction.open_table(self.driver.table(op.keyspace())?)?, op)
    }
}

impl Session for RedbSession<'_> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.read(&self.driver.database.begin_read()?, op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        let transaction = self.driver.begin_write()?;
        let status = write(&mut transaction.open_table(self.driver.table(op.keyspace())?)?, op)?;
        // A transaction without a change is dropped, which aborts it.
        if status == Status::Ok {
            transaction.commit()?;
        }
        Ok(status)
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
            return Ok(true);
        }
        let transaction = self.driver.begin_write()?;
        let mut tables: Vec<_> = self.driver.tables.iter().map(|_| None).collect();
        let vote = each(ops, |op| {
            let definition = self.driver.table(op.keyspace())?;
            let table = match &mut tables[op.keyspace()] {
                Some(table) => table,
                closed => closed.insert(transaction.open_table(definition)?),
            };
            if matches!(op.kind(), KV_GET | KV_SCAN) { read(table, op) } else { write(table, op) }
        })?;
        drop(tables);
        if vote == Vote::Commit {
            transaction.commit()?;
        }
        Ok(true)
    }
}

fn read(table: &impl ReadableTable<Bytes, Bytes>, op: &mut Op<'_>) -> Result<Status, Error> {
    if op.kind() == KV_GET {
        return Ok(table.get(op.key())?.map_or(Status::NotFound, |value| op.deliver(value.value())));
    }
    let range = op.range();
    if range.is_empty() {
        return rows(op, std::iter::empty());
    }
    let found = table.range::<&[u8]>(range.bounds())?;
    if op.is_reverse() { rows(op, found.rev()) } else { rows(op, found) }
}

type Row<'t> = Result<(AccessGuard<'t, Bytes>, AccessGuard<'t, Bytes>), StorageError>;

fn rows<'t>(op: &mut Op<'_>, found: impl Iterator<Item = Row<'t>>) -> Result<Status, Error> {
    let mut writer = op.rows();
    for row in found {
        let (key, value) = row?;
        if !writer.push(key.value(), value.value()) {
            break;
        }
    }
    Ok(writer.status())
}

fn write(table: &mut Table<'_, Bytes, Bytes>, op: &mut Op<'_>) -> Result<Status, Error> {
    match op.kind() {
        KV_PUT if op.is_new() && table.get(op.key())?.is_some() => return Ok(Status::Exists),
        KV_PUT => drop(table.insert(op.key(), op.value())?),
        KV_DELETE if table.remove(op.key())?.is_none() => return Ok(Status::NotFound),
        KV_DELETE => (),
        _ => return Err(Error::unsupported("this op")),
    }
    Ok(Status::Ok)
}

#[cfg(test)]
mod tests;
