//! The driver of SQLite as a key-value store: a table without row ids for each keyspace, in WAL mode.

#![allow(unsafe_code, reason = "the symbol of the plug-in")]

mod session;

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Opened, Status};
use kvdyno_driver::{TRANSACTIONS, Work, option};
use rusqlite::{Connection, OpenFlags};
use session::SqliteSession;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The default of `PRAGMA cache_size`, for each connection.
const CACHE_BYTES: u64 = 2_048_000;

/// The file, the settings of each connection, and one connection for maintenance, which also keeps the log open.
pub struct Sqlite {
    file: PathBuf,
    pragmas: String,
    busy_timeout: Duration,
    keyspaces: usize,
    keeper: Mutex<Connection>,
}

impl Driver for Sqlite {
    const INFO: Info = Info {
        name: c"sqlite",
        engine: c"B-tree of SQL tables with a write-ahead log",
        language: c"C",
        family: c"b+tree",
        capabilities: ORDERED_MAP
            | TRANSACTIONS
            | KV_DELETE_TELLS
            | KV_KEYSPACES
            | KV_SINGLE_WRITER
            | KV_CAN_TOUCH,
        levels: &[Level::Process, Level::Power],
        key_size_max: 0,
        options: &[
            option(c"synchronous", c"choice:off|normal", c"off", c"at process: whether checkpoints sync"),
            option(
                c"page-size",
                c"bytes",
                c"4096",
                c"page size in bytes, a power of two; only for a new database",
            ),
            option(c"mmap-size", c"bytes", c"0", c"bytes of the file that are read through a memory map"),
            option(c"wal-autocheckpoint", c"count", c"1000", c"pages in the log that start a checkpoint"),
            option(c"busy-timeout-ms", c"count", c"5000", c"how long one attempt waits for another writer"),
        ],
    };
    type Session<'db> = SqliteSession;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Sqlite, Error> {
        let level = config.pick(Sqlite::INFO.levels, Level::Power)?;
        let relaxed = config.choice("synchronous", &["off", "normal"])?;
        let synchronous = if level == Level::Power { "full" } else { relaxed };
        let names = ["page-size", "mmap-size", "wal-autocheckpoint", "busy-timeout-ms"];
        let [page, mmap, checkpoint, busy_ms] = names.map(|name| config.number(name));
        let (page, mmap, checkpoint, busy_ms) = (page?, mmap?, checkpoint?, busy_ms?);
        // The budget is split: each connection has its own cache.
        let connections = config.threads() as u64 + 1;
        let cache = config.cache_bytes().map_or(CACHE_BYTES, |bytes| bytes / connections);
        let pragmas = format!(
            "PRAGMA page_size={page}; PRAGMA journal_mode=wal; PRAGMA synchronous={synchronous};
             PRAGMA cache_size=-{}; PRAGMA mmap_size={mmap}; PRAGMA wal_autocheckpoint={checkpoint};",
            (cache / 1024).max(1)
        );
        let (file, busy_timeout) = (config.path().join("data.sqlite"), Duration::from_millis(busy_ms));
        let keeper = connect(&file, &pragmas, busy_timeout)?;
        for number in 0..config.keyspaces() {
            keeper.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS k{number} (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            ))?;
        }
        opened.level(level);
        opened.version(rusqlite::version());
        opened.compression("none");
        opened.cache_bytes(cache * connections);
        opened.setting("busy-timeout-ms", busy_ms);
        for name in
            ["page_size", "journal_mode", "synchronous", "cache_size", "mmap_size", "wal_autocheckpoint"]
        {
            opened.setting(&name.replace('_', "-"), pragma(&keeper, name)?);
        }
        let keeper = Mutex::new(keeper);
        Ok(Sqlite { file, pragmas, busy_timeout, keyspaces: config.keyspaces(), keeper })
    }

    fn session(&self) -> Result<SqliteSession, Error> {
        SqliteSession::new(connect(&self.file, &self.pragmas, self.busy_timeout)?, self.keyspaces)
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        match work {
            Work::Flush => sync_and_checkpoint(&keeper)?,
            Work::Compact => keeper.execute_batch("VACUUM")?,
            Work::Settle => (), // nothing runs in the background
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        for name in ["page_count", "freelist_count"] {
            if let Ok(value) = pragma(&keeper, name) {
                *out += &format!("{name}={value}\n");
            }
        }
    }

    fn close(self) -> Result<(), Error> {
        let keeper = self.keeper.into_inner().unwrap_or_else(PoisonError::into_inner);
        sync_and_checkpoint(&keeper)?;
        keeper.close().map_err(|(_, error)| error.into())
    }
}

fn connect(file: &PathBuf, pragmas: &str, busy_timeout: Duration) -> Result<Connection, Error> {
    // A session is used by one thread at a time, so its connection needs no mutex.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.execute_batch(pragmas)?;
    Ok(connection)
}

fn pragma(connection: &Connection, name: &str) -> Result<String, Error> {
    let value = connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))?;
    Ok(match value {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => format!("{other:?}"),
    })
}

/// A checkpoint syncs log and file only if synchronous is not off.
fn sync_and_checkpoint(keeper: &Connection) -> Result<(), Error> {
    let before = pragma(keeper, "synchronous")?;
    keeper.execute_batch("PRAGMA synchronous=full; PRAGMA wal_checkpoint(TRUNCATE)")?;
    keeper.execute_batch(&format!("PRAGMA synchronous={before}"))?;
    Ok(())
}

kvdyno_driver::export_drivers!(Sqlite);
