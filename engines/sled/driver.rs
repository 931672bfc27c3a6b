//! The driver of sled 0.34: a lock-free B-link tree over a log-structured page cache.

mod session;

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Opened, Status};
use kvdyno_driver::{TRANSACTIONS, Work, option};
use session::merge;
use sled::{Db, Tree};
use std::fs::File;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

pub use session::SledSession;

/// Checks of the lock after a close, 1 ms apart.
const CLOSE_TRIES: u32 = 10_000;
const VERSION: &str = "0.34.7";
/// The default of `sled::Config`.
const CACHE_BYTES: u64 = 1 << 30;
const SPECIAL: u64 = KV_MERGE_ADD | KV_MERGE_APPEND | KV_DELETE_TELLS | KV_KEYSPACES | KV_CAN_TOUCH;

/// An open database and its trees, one for each keyspace.
pub struct Sled {
    database: Db,
    trees: Vec<Tree>,
    flushes: bool,
    file: PathBuf,
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
        let file = config.path().join("db");
        Ok(Sled { database, trees, flushes: level == Level::Process, file })
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
        self.maintain(Work::Flush)?;
        let file = self.file.clone();
        drop(self);
        // A background thread may keep the last handle, and with it the lock, a moment longer.
        let file = File::open(file)?;
        for _ in 0..CLOSE_TRIES {
            if file.try_lock().is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(1));
        }
        Err(Error::new("the database was still locked 10 s after it was closed"))
    }
}

#[cfg(test)]
mod tests;
