//! The driver of canopydb: a copy-on-write B+tree behind a write-ahead log, with checkpoints.

use canopydb::{Database, DbOptions, EnvOptions, ReadTransaction, Tree, TreeOptions, WriteTransaction};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status};
use kvdyno_driver::{TRANSACTIONS, Vote, Work, each, option};

const VERSION: &str = "0.2.5";
/// The default of `EnvOptions`.
const CACHE_BYTES: u64 = 1 << 30;
/// A value that fits in one page is never compressed.
const PAGE_BYTES: u32 = 4096;

/// An open database and the names of its trees, one for each keyspace.
pub struct Canopydb {
    database: Database,
    level: Level,
    concurrent: bool,
    trees: Vec<Vec<u8>>,
}

impl Driver for Canopydb {
    const INFO: Info = Info {
        name: c"canopydb",
        engine: c"copy-on-write B+tree behind a write-ahead log",
        language: c"Rust",
        family: c"b+tree",
        capabilities: ORDERED_MAP | TRANSACTIONS | KV_DELETE_TELLS | KV_KEYSPACES | KV_CAN_TOUCH,
        levels: &[Level::None, Level::Process, Level::Power],
        key_size_max: 0,
        options: &[
            option(
                c"concurrent-writers",
                c"flag",
                c"false",
                c"optimistic write transactions, not one at a time",
            ),
            option(c"compress-over", c"bytes", c"12288", c"larger values are compressed; up to 4096: none"),
        ],
    };
    type Session<'db> = CanopydbSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Canopydb, Error> {
        let level = config.pick(Canopydb::INFO.levels, Level::Process)?;
        let cache = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let concurrent = config.flag("concurrent-writers")?;
        let compress_over = config.number("compress-over")?.min(u64::from(u32::MAX)) as u32;
        let mut environment = EnvOptions::new(config.path());
        environment.page_cache_size = cache as usize;
        let mut options = DbOptions::new();
        options.use_wal = level != Level::None;
        options.default_commit_sync = level == Level::Power;
        let database = Database::with_options(environment, options)?;
        let trees: Vec<Vec<u8>> =
            (0..config.keyspaces()).map(|number| format!("k{number}").into_bytes()).collect();
        let mut tree_options = TreeOptions::new();
        tree_options.compress_overflow_values = (compress_over > PAGE_BYTES).then_some(compress_over);
        let transaction = database.begin_write()?;
        for name in &trees {
            transaction.get_or_create_tree_with(name, tree_options.clone())?;
        }
        transaction.commit()?;
        opened.level(level);
        opened.version(VERSION);
        let compression = format!("lz4 over {compress_over} B");
        opened.compression(if compress_over > PAGE_BYTES { &compression } else { "none" });
        opened.cache_bytes(cache);
        opened.setting("use-wal", level != Level::None);
        opened.setting("commit-sync", level == Level::Power);
        opened.setting("concurrent-writers", concurrent);
        opened.with(if concurrent { 0 } else { KV_SINGLE_WRITER });
        Ok(Canopydb { database, level, concurrent, trees })
    }

    fn session(&self) -> Result<CanopydbSession<'_>, Error> {
        Ok(CanopydbSession { driver: self })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match work {
            Work::Flush if self.level != Level::None => self.database.sync()?,
            Work::Flush | Work::Settle => self.database.checkpoint()?,
            Work::Compact => self.database.compact()?,
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        if let Ok(transaction) = self.database.begin_read() {
            *out += &format!("last_transaction={}\n", transaction.tx_id());
        }
    }

    fn close(self) -> Result<(), Error> {
        self.maintain(Work::Flush).map(|_| ())
    }
}

/// A session: each op that is not in a group is a transaction of its own.
pub struct CanopydbSession<'db> {
    driver: &'db Canopydb,
}

impl<'db> CanopydbSession<'db> {
    fn name(&self, op: &Op<'_>) -> Result<&'db [u8], Error> {
        Ok(self.driver.trees.get(op.keyspace()).ok_or_else(|| Error::unsupported("such keyspace"))?)
    }

    fn read(&self, transaction: &ReadTransaction, op: &mut Op<'_>) -> Result<Status, Error> {
        let tree = transaction.get_tree(self.name(op)?)?;
        read(&tree.ok_or_else(|| Error::new("the tree is gone"))?, op)
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

    /// One transaction, tried again after a conflict; gives the status of its last op.
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
        _ => return Err(Error::unsupported("such op")),
    }
    Ok(Status::Ok)
}

#[cfg(test)]
mod tests;
