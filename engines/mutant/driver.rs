//! Mutants: memory-btree with one planted bug each. `kvdyno prove --only rules` and ordinary runs must catch every one.

mod crashed;
mod execute;
mod faults;
mod session;
#[cfg(test)]
mod tests;

pub use faults::{Fault, MUTANTS};
pub use session::MutantSession;

use kvdyno_driver::abi::{KV_CAN_LONG_TRANSACTION, KV_COLLECTIONS, KV_EVICTS};
use kvdyno_driver::{Config, Driver, Error, Info, Level, Opened, Status, Work};
use kvdyno_memory::{Indexes, LOG_FILE, MemoryBtree, Options};
use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// memory-btree with the fault of a number: `Fault::StaleRead as u8`.
pub struct Mutant<const FAULT: u8> {
    inner: MemoryBtree,
    /// The level that it reports.
    claimed: Level,
    indexes: Indexes,
    remembered: Mutex<Remembered>,
    /// The folder of a database that has a fault after a crash.
    watched: Option<PathBuf>,
}

/// The state that some faults need.
#[derive(Default)]
struct Remembered {
    /// Keyspace and key to the value before the last one.
    stale: HashMap<(usize, Vec<u8>), Vec<u8>>,
    /// Deleted rows, with the op at which they reappear.
    ghosts: VecDeque<Ghost>,
    ops: u64,
    /// Keyspace and key to the session that wrote it last.
    writers: HashMap<(usize, Vec<u8>), u64>,
    /// The number of sessions started so far, and that number when each session ended.
    sessions: u64,
    ended: HashMap<u64, u64>,
}

struct Ghost {
    due: u64,
    keyspace: usize,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<const FAULT: u8> Mutant<FAULT> {
    /// Data loss at a reopen shows only with a log: such a mutant has no level without one.
    const LEVELS: &[Level] = match Self::FAULT {
        Fault::LosesTailOnReopen | Fault::LosesCreation => &[Level::Process, Level::Power],
        fault if crashed::is_of_crash(fault) => &[Level::Process, Level::Power],
        _ => &[Level::None, Level::Process, Level::Power],
    };

    /// The level of the log behind a claimed one.
    fn kept(claimed: Level) -> Level {
        match (Self::FAULT, claimed) {
            (Fault::AcknowledgesBeforeWrite, Level::Process) => Level::None,
            (Fault::AcknowledgesBeforeSync | Fault::LiesAboutLevel, Level::Power) => Level::Process,
            _ => claimed,
        }
    }
}

/// Cuts the last sixteenth off a log, at least one byte.
fn cut_tail(folder: &Path) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).open(folder.join(LOG_FILE))?;
    let length = file.metadata()?.len();
    file.set_len(length - length.div_ceil(16))?;
    Ok(())
}

impl<const FAULT: u8> Driver for Mutant<FAULT> {
    const INFO: Info = Info {
        name: Self::FAULT.name(),
        engine: Self::FAULT.text(),
        levels: Self::LEVELS,
        key_size_max: match Self::FAULT {
            Fault::ErrorSwallowed => session::KEY_SIZE_MAX,
            _ => 0,
        },
        capabilities: match Self::FAULT {
            // The bytes of a key that name a collection separate it, whether or not the engine supports collections.
            Fault::CollectionMixed => MemoryBtree::INFO.capabilities | KV_COLLECTIONS,
            // It may report a miss, and returns something else.
            Fault::CacheSwaps => MemoryBtree::INFO.capabilities | KV_EVICTS,
            // Its writes are done immediately, so a commit has nothing left to do.
            Fault::AbortCommits => MemoryBtree::INFO.capabilities | KV_CAN_LONG_TRANSACTION,
            _ => MemoryBtree::INFO.capabilities,
        },
        ..MemoryBtree::INFO
    };
    type Session<'db> = MutantSession<'db, FAULT>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Self, Error> {
        let mut options = Options::from_config(config, Self::LEVELS)?;
        if options.log && !options.create && !options.read_only {
            match Self::FAULT {
                Fault::LosesTailOnReopen => cut_tail(&options.path)?,
                Fault::LosesCreation => {
                    std::fs::remove_file(options.path.join(LOG_FILE))?;
                    options.create = true;
                }
                _ => {}
            }
        }
        let is_watched = crashed::is_of_crash(Self::FAULT) && options.log && !options.read_only;
        if is_watched && crashed::before_open(Self::FAULT, &options.path, options.create)? {
            options.create = true;
        }
        let claimed = options.level;
        let inner = MemoryBtree::open_with(&Options { level: Self::kept(claimed), ..options.clone() })?;
        options.report(opened);
        if Self::FAULT == Fault::StaleStrong {
            opened.setting("stale_reads", "possible");
        }
        let watched = is_watched.then_some(options.path);
        Ok(Mutant { inner, claimed, indexes: options.indexes, remembered: Mutex::default(), watched })
    }

    fn session(&self) -> Result<MutantSession<'_, FAULT>, Error> {
        let mut remembered = self.remembered.lock()?;
        remembered.sessions += 1;
        let number = remembered.sessions;
        Ok(MutantSession::new(self, number, self.inner.session()?))
    }

    fn maintain(&self, work: Work) -> Result<Status, Error> {
        self.inner.maintain(work)
    }

    fn stats(&self, out: &mut String) {
        self.inner.stats(out);
    }

    fn close(self) -> Result<(), Error> {
        self.inner.close()?;
        self.watched.map_or(Ok(()), |folder| crashed::after_close(&folder))
    }
}
