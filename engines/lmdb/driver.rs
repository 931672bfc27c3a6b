//! The driver of LMDB through heed: a copy-on-write B+tree in a memory map, written by one thread at a time.

mod held;
mod session;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use kvdyno_driver::abi::*;
use kvdyno_driver::option;
use kvdyno_driver::{Config, Driver, Error, Info, Level, ORDERED_MAP, Opened, Status, TRANSACTIONS, Work};
use session::LmdbSession;

const MAP_BYTES: u64 = 64 << 30;
/// LMDB's own default; a reader occupies a slot while its thread lives.
const READERS_MIN: usize = 126;
/// Compiled in.
const KEY_BYTES_MAX: u32 = 511;

/// An open environment and its databases, one for each keyspace.
pub struct Lmdb {
    environment: Env,
    databases: Vec<Database<Bytes, Bytes>>,
}

impl Driver for Lmdb {
    const INFO: Info = Info {
        name: c"lmdb",
        engine: c"copy-on-write B+tree in a memory map",
        language: c"C",
        family: c"b+tree",
        capabilities: ORDERED_MAP
            | TRANSACTIONS
            | KV_DELETE_TELLS
            | KV_KEYSPACES
            | KV_SINGLE_WRITER
            | KV_CAN_TOUCH
            | KV_CAN_HOLD,
        levels: &[Level::Process, Level::Power],
        key_size_max: KEY_BYTES_MAX,
        options: &[
            option(
                c"write-map",
                c"flag",
                c"false",
                c"write through the map (MDB_WRITEMAP) instead of pwrite",
            ),
            option(c"map-size", c"bytes", c"0", c"size of the map; 0 = the disk limit, otherwise 64 GiB"),
            option(c"read-ahead", c"flag", c"true", c"let the system read ahead in the map"),
        ],
    };
    type Session<'db> = LmdbSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Lmdb, Error> {
        let level = config.pick(Lmdb::INFO.levels, Level::Power)?;
        let (write_map, read_ahead) = (config.flag("write-map")?, config.flag("read-ahead")?);
        let size = match config.number("map-size")? {
            0 => config.disk_limit_bytes().unwrap_or(MAP_BYTES),
            size => size,
        };
        let map_bytes = size.max(1 << 20).next_multiple_of(1 << 16);
        let mut flags = EnvFlags::empty();
        flags.set(EnvFlags::NO_SYNC, level == Level::Process);
        flags.set(EnvFlags::WRITE_MAP, write_map);
        flags.set(EnvFlags::NO_READ_AHEAD, !read_ahead);
        let mut options = EnvOpenOptions::new();
        options.map_size(map_bytes as usize).max_dbs(config.keyspaces() as u32);
        options.max_readers(READERS_MIN.max(2 * config.threads()) as u32);
        #[allow(unsafe_code, reason = "the engine's environment is a memory map")]
        // SAFETY: only the flags NO_SYNC and WRITE_MAP are unsafe; the effect of a power cut or a stray write on the
        // file is what is measured. The folder belongs to this trial: no other process has its file open.
        let environment = unsafe { options.flags(flags).open(config.path())? };
        let mut transaction = environment.write_txn()?;
        let mut databases = Vec::new();
        for number in 0..config.keyspaces() {
            // A single keyspace needs no name, which saves the page of names in each commit.
            let name = (config.keyspaces() > 1).then(|| format!("k{number}"));
            databases.push(environment.create_database(&mut transaction, name.as_deref())?);
        }
        transaction.commit()?;
        let version = heed::lmdb_version();
        opened.level(level);
        opened.version(&format!("{}.{}.{}", version.major, version.minor, version.patch));
        opened.compression("none");
        opened.setting("no-sync", level == Level::Process);
        opened.setting("write-map", write_map);
        opened.setting("map-size", map_bytes);
        opened.setting("read-ahead", read_ahead);
        Ok(Lmdb { environment, databases })
    }

    fn session(&self) -> Result<LmdbSession<'_>, Error> {
        Ok(LmdbSession { driver: self, held: None })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match work {
            Work::Flush => self.environment.force_sync()?,
            Work::Settle => (), // nothing runs in the background
            Work::Compact => return Ok(Status::Unsupported), // can only write a copy
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        let (info, stat) = (self.environment.info(), self.environment.stat());
        *out += &format!("last_page={}\npage_bytes={}\n", info.last_page_number, stat.page_size);
        *out += &format!("readers={}\nlast_transaction={}\n", info.number_of_readers, info.last_txn_id);
    }

    fn close(self) -> Result<(), Error> {
        self.environment.force_sync()?;
        self.environment.prepare_for_closing().wait();
        Ok(())
    }
}
