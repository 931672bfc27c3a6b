//! The driver of quick_cache: a cache in memory with a fixed budget, which evicts rarely read rows.

use kvdyno_driver::abi::*;
use kvdyno_driver::{Config, Driver, Error, Info, Level, Op, Opened, Session, Status, Work};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

const VERSION: &str = "0.6.24";
/// The budget if none is given; upstream has no default.
const CACHE_BYTES: u64 = 64 << 20;
/// The size of a row in addition to its key and value: both pointers and lengths, the counts of the value, and
/// upstream's entry (its README: 21 bytes).
const ROW_BYTES: u64 = 32 + 16 + 21;
/// The number of rows that upstream sizes its tables for if the expected number is unknown.
const EXPECTED_ROWS: u64 = 1 << 16;

type Key = Box<[u8]>;
type Value = Arc<[u8]>;

/// The bytes of the budget that a row uses.
#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Value> for Bytes {
    fn weight(&self, key: &Key, value: &Value) -> u64 {
        key.len() as u64 + value.len() as u64 + ROW_BYTES
    }
}

/// A cache.
pub struct QuickCache {
    cache: Cache<Key, Value, Bytes>,
}

impl Driver for QuickCache {
    const INFO: Info = Info {
        name: c"quick-cache",
        engine: c"cache in memory, Clock-PRO variant (S3-FIFO like)",
        language: c"Rust",
        family: c"memory",
        capabilities: KV_CAN_DELETE
            | KV_DELETE_TELLS
            | KV_OVERWRITE
            | KV_IN_MEMORY
            | KV_CAN_TOUCH
            | KV_EVICTS,
        levels: &[Level::None],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = QuickCacheSession<'db>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<QuickCache, Error> {
        let level = config.pick(QuickCache::INFO.levels, Level::None)?;
        let budget = config.cache_bytes().unwrap_or(CACHE_BYTES);
        let rows = config.expected_rows().unwrap_or(EXPECTED_ROWS).min(budget / ROW_BYTES).max(1);
        let cache = Cache::with_weighter(rows as usize, budget, Bytes);
        opened.level(level);
        opened.version(VERSION);
        opened.compression("none");
        opened.cache_bytes(budget);
        opened.setting("estimated-items", rows);
        opened.setting("shards", cache.num_shards());
        Ok(QuickCache { cache })
    }

    fn session(&self) -> Result<QuickCacheSession<'_>, Error> {
        Ok(QuickCacheSession { cache: &self.cache })
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match work {
            Work::Settle => Ok(Status::Ok), // nothing runs in the background
            Work::Flush | Work::Compact => Ok(Status::Unsupported),
        }
    }

    fn stats(&self, out: &mut String) {
        *out += &format!("rows={}\nweight_bytes={}\n", self.cache.len(), self.cache.weight());
    }
}

/// A session.
pub struct QuickCacheSession<'db> {
    cache: &'db Cache<Key, Value, Bytes>,
}

impl Session for QuickCacheSession<'_> {
    #[inline]
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(self.cache.get(op.key()).map_or(Status::NotFound, |value| op.deliver(&value)))
    }

    #[inline]
    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.cache.insert(op.key().into(), op.value().into());
        Ok(Status::Ok)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        Ok(if self.cache.remove(op.key()).is_some() { Status::Ok } else { Status::NotFound })
    }
}

#[cfg(test)]
mod tests;
