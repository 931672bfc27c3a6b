//! The reference engines: a hash map and an ordered map in memory, each with an optional append-only file.

mod index;
mod log;
mod names;
mod options;
mod session;
mod store;
#[cfg(test)]
mod tests;

pub use index::Indexes;
pub use log::LOG_FILE;
use names::LEVELS;
pub use names::Named;
pub use options::Options;
pub use session::MemorySession;
pub use store::{Map, Store, Tree};

use kvdyno_driver::{Config, Driver, Error, Info, Opened, Status, Work};
use log::{Change, Frame, Kind, Log, LogOptions};
use std::ops::Bound;
use std::sync::RwLock;

/// `memory-map`.
pub type MemoryMap = Memory<Map>;
/// `memory-btree`.
pub type MemoryBtree = Memory<Tree>;

/// A container behind its lock, on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Shard<S>(RwLock<S>);

/// An open database.
pub struct Memory<S> {
    /// The shards of the first keyspace, then those of the next.
    shards: Box<[Shard<S>]>,
    keyspaces: usize,
    indexes: Indexes,
    log: Option<Log>,
    read_only: bool,
}

/// A row as [`Memory::rows`] returns it: key and value.
pub type Row = (Vec<u8>, Vec<u8>);

impl<S: Store> Memory<S> {
    /// Opens or creates a database.
    pub fn open_with(options: &Options) -> Result<Memory<S>, Error> {
        if S::SHARDS > 1 && !options.indexes.is_empty() {
            return Err(Error::unsupported("indexes"));
        }
        let mut shards = Vec::new();
        shards.resize_with(options.keyspaces * S::SHARDS, Shard::<S>::default);
        if options.keyspaces == 1 {
            // An eighth more than the mean, because the shards do not get equal shares.
            let rows = options.expected_rows as usize / S::SHARDS;
            for Shard(store) in &mut shards {
                store.get_mut()?.reserve(rows + rows / 8);
            }
        }
        let mut memory = Memory {
            shards: shards.into_boxed_slice(),
            keyspaces: options.keyspaces,
            indexes: options.indexes.clone(),
            log: None,
            read_only: options.read_only,
        };
        if options.log {
            let how =
                LogOptions { level: options.level, create: options.create, read_only: options.read_only };
            memory.log = Some(Log::open(&options.path, &how, |change| {
                let store = memory.shard(change.keyspace, change.key)?;
                change.apply(&mut *store.write()?);
                Ok(())
            })?);
        }
        Ok(memory)
    }

    /// The value of a key.
    pub fn read(&self, keyspace: usize, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.shard(keyspace, key)?.read()?.get(key).map(<[u8]>::to_vec))
    }

    /// Puts a value, or deletes the key if there is none.
    pub fn write(&self, keyspace: usize, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
        let change = Change { kind, keyspace, key, value: value.unwrap_or(&[]) };
        let mut store = self.shard(keyspace, key)?.write()?;
        if let Some(log) = &self.log {
            let mut frame = Frame::default();
            frame.begin();
            frame.push(&change);
            log.commit(&mut frame)?;
        }
        change.apply(&mut *store);
        Ok(())
    }

    /// The value at the left end of a list.
    pub fn first_of_list(&self, keyspace: usize, list: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut store = self.shard(keyspace, list)?.write()?;
        Ok(store.lists().and_then(|lists| lists.get(list)?.front().cloned()))
    }

    /// Rows stored.
    pub fn row_count(&self) -> usize {
        self.shards.iter().map(|Shard(store)| store.read().map_or(0, |store| store.row_count())).sum()
    }

    fn index(&self, keyspace: usize, key: &[u8]) -> Result<usize, Error> {
        if keyspace >= self.keyspaces {
            return Err(Error::new(format!("keyspace {keyspace}: the database has {}", self.keyspaces)));
        }
        Ok(keyspace * S::SHARDS + S::shard(key))
    }

    fn shard(&self, keyspace: usize, key: &[u8]) -> Result<&RwLock<S>, Error> {
        Ok(&self.shards[self.index(keyspace, key)?].0)
    }
}

impl Memory<Tree> {
    /// At most `limit` rows between two bounds, ascending, or descending if `is_reverse`.
    pub fn rows(
        &self,
        keyspace: usize,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        is_reverse: bool,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let store = self.shard(keyspace, &[])?.read()?;
        let mut range = store.range(bounds);
        let mut next = || if is_reverse { range.next_back() } else { range.next() };
        let rows = std::iter::from_fn(&mut next).take(limit);
        Ok(rows.map(|(key, value)| (key.as_bytes().to_vec(), value.clone())).collect())
    }
}

impl<S: Named> Driver for Memory<S> {
    const INFO: Info = S::INFO;
    type Session<'db> = MemorySession<'db, S>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Memory<S>, Error> {
        let options = Options::from_config(config, LEVELS)?;
        let memory = Memory::open_with(&options)?;
        options.report(opened);
        opened.setting("shards", S::SHARDS);
        Ok(memory)
    }

    fn session(&self) -> Result<MemorySession<'_, S>, Error> {
        Ok(MemorySession::new(self))
    }

    /// Nothing runs in the background, and nothing is compacted.
    fn maintain(&self, work: Work) -> Result<Status, Error> {
        match (work, &self.log) {
            (Work::Compact, _) => return Ok(Status::Unsupported),
            (Work::Flush, Some(log)) if !self.read_only => log.flush()?,
            _ => {}
        }
        Ok(Status::Ok)
    }

    fn stats(&self, out: &mut String) {
        out.push_str(&format!("rows={}\n", self.row_count()));
        if let Some(log) = &self.log {
            out.push_str(&format!("log_bytes={}\n", log.bytes()));
            out.push_str(&format!("log_truncated_bytes={}\n", log.truncated_bytes));
        }
    }

    fn close(self) -> Result<(), Error> {
        match &self.log {
            Some(log) if !self.read_only => log.flush(),
            _ => Ok(()),
        }
    }
}
