//! The driver of SurrealKV: a log-structured merge tree whose commits are asynchronous and awaited here.

#![allow(unsafe_code, reason = "the symbol of the plug-in")]

mod session;

use kvdyno_driver::{
    Config, Driver, Error, Info, Level, ORDERED_MAP, Opened, Status, TRANSACTIONS, Work, option,
};
use session::SurrealkvSession;
use surrealkv::{CompactRangeOptions, CompressionType, Durability, Options, Tree, TreeBuilder};
use tokio::runtime::{Builder, Runtime};

const VERSION: &str = "1.2.0";
/// The default of `Options`.
const CACHE_BYTES: u64 = 32 << 20;
/// An open tree, and the runtime of its background tasks and commits.
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
                c"compression of data blocks; level 0 is never compressed",
            ),
            option(c"value-log", c"flag", c"false", c"store values over 1 KiB in a value log"),
            option(
                c"runtime-threads",
                c"count",
                c"0",
                c"threads of the tokio runtime; 0 = one per processor",
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
        opened.setting("compression", compression);
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
            Work::Settle => return Ok(Status::Unsupported), // the tree does not report pending work
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

kvdyno_driver::export_drivers!(Surrealkv);

#[cfg(test)]
mod tests;
