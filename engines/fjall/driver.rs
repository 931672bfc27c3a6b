//! The driver of fjall: a log-structured merge tree with a journal shared by all keyspaces.

mod session;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, PersistMode};
use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Opened, Status, Work, option};
use session::FjallSession;
use std::thread::sleep;
use std::time::Duration;

const VERSION: &str = "3.1.13";
/// The engine writes the length of a key as 16 bits.
const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// The default of `fjall::Config`.
const CACHE_BYTES: u64 = 32 << 20;

/// An open database and its keyspaces.
pub struct Fjall {
    // Keyspaces are dropped first: the database ends its threads when it is dropped last.
    keyspaces: Vec<Keyspace>,
    database: OptimisticTxDatabase,
    /// What follows each write; `None`: the engine itself does enough.
    persist: Option<PersistMode>,
    /// The same for a batch, which does not persist by itself.
    persist_batch: Option<PersistMode>,
    transactions: bool,
}

impl Driver for Fjall {
    const INFO: Info = Info {
        name: c"fjall",
        engine: c"log-structured merge tree",
        language: c"Rust",
        family: c"lsm",
        capabilities: ORDERED_MAP | KV_KEYSPACES | KV_CAN_TOUCH | KV_LIVE_STATS,
        levels: &[Level::None, Level::Process, Level::Power],
        key_size_max: KEY_BYTES_MAX as u32,
        options: &[
            option(
                c"compression",
                c"choice:lz4|none",
                c"lz4",
                c"compression of data blocks and of large journal values",
            ),
            option(c"transactions", c"flag", c"false", c"write through the optimistic transactions of fjall"),
        ],
    };
    type Session<'db> = FjallSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Fjall, Error> {
        let mut level = config.pick(Fjall::INFO.levels, Level::Process)?;
        let cache = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let compression = config.choice("compression", &["lz4", "none"])?;
        let transactions = config.flag("transactions")?;
        let journal = if compression == "lz4" { CompressionType::Lz4 } else { CompressionType::None };
        let builder =
            OptimisticTxDatabase::builder(config.path()).cache_size(cache).journal_compression(journal);
        let database = builder.manual_journal_persist(true).open()?;
        // Whether a keyspace writes its journal buffer after each write is fixed at its creation; its name records it.
        let manual =
            if config.create() { level == Level::None } else { database.inner().keyspace_exists("manual-0") };
        if level == Level::None && !manual {
            level = Level::Process;
        }
        let options = || {
            let options = KeyspaceCreateOptions::default().manual_journal_persist(manual);
            let plain = compression == "none";
            if plain { options.data_block_compression_policy(CompressionPolicy::disabled()) } else { options }
        };
        let kind = if manual { "manual" } else { "flushed" };
        let open = |number| database.inner().keyspace(&format!("{kind}-{number}"), options);
        let keyspaces = (0..config.keyspaces()).map(open).collect::<Result<Vec<_>, _>>()?;
        let persist_batch = match level {
            Level::None => None,
            Level::Process => Some(PersistMode::Buffer),
            Level::Power => Some(PersistMode::SyncData),
        };
        let persist = if level == Level::Process && !manual { None } else { persist_batch };
        opened.level(level);
        opened.version(VERSION);
        opened.compression(compression);
        opened.cache_bytes(cache);
        opened.setting("manual-journal-persist", manual);
        opened.setting("persist", format_args!("{persist_batch:?}"));
        opened.setting("compression", compression);
        opened.setting("transactions", transactions);
        if transactions {
            opened.with(KV_TRANSACTION | KV_TRANSACTION_READS | KV_CAN_NEW | KV_MULTI_GET);
        }
        Ok(Fjall { keyspaces, database, persist, persist_batch, transactions })
    }

    fn session(&self) -> Result<FjallSession<'_>, Error> {
        Ok(FjallSession { driver: self })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        let database = self.database.inner();
        match work {
            Work::Flush => database.persist(PersistMode::SyncAll)?,
            Work::Compact => {
                for keyspace in &self.keyspaces {
                    keyspace.rotate_memtable_and_wait()?;
                    keyspace.major_compact()?;
                }
            }
            Work::Settle => settle(database),
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        let database = self.database.inner();
        *out += &format!(
            "write_buffer_bytes={}\njournals={}\n",
            database.write_buffer_size(),
            database.journal_count()
        );
        *out += &format!("compactions_completed={}\n", database.compactions_completed());
        *out += &format!("tables={}\n", self.keyspaces.iter().map(Keyspace::table_count).sum::<usize>());
    }

    fn close(self) -> Result<(), Error> {
        self.maintain(Work::Flush).map(|_| ())
    }
}

/// Waits until no flush is pending and no compaction runs, ten times in a row: one job may start the next.
fn settle(database: &Database) {
    let mut quiet = 0;
    while quiet < 10 {
        let busy = database.outstanding_flushes() + database.active_compactions() > 0;
        quiet = if busy { 0 } else { quiet + 1 };
        sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests;
