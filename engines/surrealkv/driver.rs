//! The driver of SurrealKV: a log-structured merge tree whose commits are asynchronous and awaited here.

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Op, Opened, Session, Status};
use kvdyno_driver::{TRANSACTIONS, Vote, Work, each, option};
use std::ops::Bound;
use std::thread::sleep;
use std::time::Duration;
use surrealkv::{CompactRangeOptions, CompressionType, Durability, LSMIterator, Mode, Options, ReadOptions};
use surrealkv::{Transaction, Tree, TreeBuilder};
use tokio::runtime::{Builder, Runtime};

const VERSION: &str = "1.2.0";
/// The default of `Options`.
const CACHE_BYTES: u64 = 32 << 20;
/// How often a transaction is tried, and the pause after a conflict.
const TRIES: u32 = 10_000;
const PAUSE: Duration = Duration::from_micros(20);

/// An open tree, and the runtime that its background tasks and commits run on.
pub struct Surrealkv {
    tree: Tree,
    runtime: Runtime,
    durability: Durability,
}

impl Driver for Surrealkv {
    const INFO: Info = Info {
        name: c"surrealkv",
        engine: c"log-structured merge tree with asynchronous commits",
        language: c"Rust",
        family: c"lsm",
        capabilities: ORDERED_MAP | TRANSACTIONS,
        levels: &[Level::Process, Level::Power],
        key_size_max: 0,
        options: &[
            option(
                c"compression",
                c"choice:none|snappy|zstd",
                c"none",
                c"of data blocks; level 0 is never compressed",
            ),
            option(c"value-log", c"flag", c"false", c"keep values over 1 KiB in a value log"),
            option(
                c"runtime-threads",
                c"count",
                c"0",
                c"threads of the tokio runtime; 0 = one for each processor",
            ),
        ],
    };
    type Session<'db> = SurrealkvSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Surrealkv, Error> {
        let level = config.pick(Surrealkv::INFO.levels, Level::Process)?;
        let cache = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let compression = config.choice("compression", &["none", "snappy", "zstd"])?;
        let (value_log, threads) = (config.flag("value-log")?, config.number("runtime-threads")?);
        let mut builder = Builder::new_multi_thread();
        if threads != 0 {
            builder.worker_threads(threads as usize);
        }
        let runtime = builder.enable_time().build()?;
        let blocks = match compression {
            "snappy" => vec![CompressionType::None, CompressionType::SnappyCompression],
            "zstd" => vec![CompressionType::None, CompressionType::ZstdCompression],
            _ => Vec::new(),
        };
        let options = Options::new()
            .with_path(config.path().to_path_buf())
            .with_block_cache_capacity(cache)
            .with_compression_per_level(blocks)
            .with_enable_vlog(value_log);
        let entered = runtime.enter();
        let tree = TreeBuilder::with_options(options).build()?;
        drop(entered);
        let durability = if level == Level::Power { Durability::Immediate } else { Durability::Eventual };
        opened.level(level);
        opened.version(VERSION);
        opened.compression(compression);
        opened.cache_bytes(cache);
        opened.setting("durability", format_args!("{durability:?}"));
        opened.setting("value-log", value_log);
        opened.setting("runtime-threads", runtime.metrics().num_workers());
        Ok(Surrealkv { tree, runtime, durability })
    }

    fn session(&self) -> Result<SurrealkvSession<'_>, Error> {
        Ok(SurrealkvSession { driver: self })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        let _entered = self.runtime.enter();
        match work {
            Work::Flush => self.tree.flush_wal(true)?,
            Work::Compact => self.tree.compact_range(None, None, &CompactRangeOptions::default())?,
            Work::Settle => return Ok(Status::Unsupported), // the tree does not say what is left to do
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        *out += &format!("background_errors={}\n", self.tree.background_error_count());
    }

    fn close(self) -> Result<(), Error> {
        self.runtime.block_on(self.tree.close())?;
        Ok(())
    }
}

/// A session: each op that is not in a group is a transaction of its own.
pub struct SurrealkvSession<'db> {
    driver: &'db Surrealkv,
}

impl SurrealkvSession<'_> {
    /// One optimistic transaction, tried again after a conflict; gives the status of its last op.
    fn transact(&self, ops: &mut [Op<'_>], mode: Mode) -> Result<Status, Error> {
        for retries in 0..TRIES {
            // The write that won is seen by the next try only when its commit is through.
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
        KV_GET => {
            let value = transaction.get(op.key())?;
            return Ok(value.map_or(Status::NotFound, |value| op.deliver(&value)));
        }
        KV_SCAN => return scan(transaction, op),
        KV_PUT if op.is_new() && transaction.get(op.key())?.is_some() => return Ok(Status::Exists),
        KV_PUT => transaction.set(op.key(), op.value())?,
        KV_DELETE => transaction.delete(op.key())?,
        _ => return Err(Error::unsupported("such op")),
    }
    Ok(Status::Ok)
}

fn scan(transaction: &Transaction, op: &mut Op<'_>) -> Result<Status, Error> {
    let (range, reverse) = (op.range(), op.is_reverse());
    let mut writer = op.rows();
    if range.is_empty() {
        return Ok(writer.status());
    }
    // The engine's ranges have their lower end in and their upper end out.
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

#[cfg(test)]
mod tests;
