//! The driver of canopydb: a copy-on-write B+tree behind a write-ahead log, with checkpoints.

mod session;

use canopydb::{Database, DbOptions, EnvOptions, TreeOptions};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Opened, Status};
use kvdyno_driver::{TRANSACTIONS, Work, option};

pub use session::CanopydbSession;

const VERSION: &str = "0.2.5";
const SPECIAL: u64 = KV_SINGLE_WRITER | KV_DELETE_TELLS | KV_KEYSPACES | KV_CAN_TOUCH;
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
        capabilities: ORDERED_MAP | TRANSACTIONS | SPECIAL,
        levels: &[Level::None, Level::Process, Level::Power],
        key_size_max: 0,
        options: &[
            option(c"concurrent-writers", c"flag", c"false", c"optimistic concurrent write transactions"),
            option(
                c"compress-over",
                c"bytes",
                c"12288",
                c"larger values are compressed; up to 4096: no compression",
            ),
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
        opened.setting("compress-over", compress_over);
        opened.setting("use-wal", level != Level::None);
        opened.setting("commit-sync", level == Level::Power);
        opened.setting("concurrent-writers", concurrent);
        opened.without(if concurrent { KV_SINGLE_WRITER } else { 0 });
        Ok(Canopydb { database, level, concurrent, trees })
    }

    fn session(&self) -> Result<CanopydbSession<'_>, Error> {
        Ok(CanopydbSession::of(self))
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

#[cfg(test)]
mod tests;
