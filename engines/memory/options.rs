//! How a database of the reference engines is opened.

use crate::index::Indexes;
use crate::log::LOG_FILE;
use kvdyno_driver::abi::KV_IN_MEMORY;
use kvdyno_driver::{Config, Error, Level, Opened, Status};
use std::path::PathBuf;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// An existing folder; used only with a log.
    pub path: PathBuf,
    /// The effective level.
    pub level: Level,
    /// Whether the database has a log.
    pub log: bool,
    /// A new database: the log must not exist.
    pub create: bool,
    /// Nothing may be written.
    pub read_only: bool,
    /// Keyspaces, at least 1.
    pub keyspaces: usize,
    /// Indexes that follow the rows; the hash map supports none.
    pub indexes: Indexes,
    /// Rows to reserve space for.
    pub expected_rows: u64,
}

impl Options {
    /// The request of a config. A level that the option `log` excludes is [`Status::Unsupported`].
    pub fn from_config(config: &Config<'_>, levels: &[Level]) -> Result<Options, Error> {
        let choice = config.choice("log", &["auto", "on", "off"])?;
        let authors = if choice == "on" { Level::Process } else { Level::None };
        let level = config.pick(levels, authors.max(levels[0]))?;
        let log = match choice {
            "on" => true,
            "off" if level > Level::None => {
                let text = "option log=off: a durability level above `none` needs the file";
                return Err(Error::with(Status::Unsupported, text));
            }
            "off" => false,
            _ => level > Level::None || (!config.create() && config.path().join(LOG_FILE).exists()),
        };
        Ok(Options {
            path: config.path().to_path_buf(),
            level,
            log,
            create: config.create(),
            read_only: config.read_only(),
            keyspaces: config.keyspaces(),
            indexes: Indexes::new(config.indexes(), config.keyspaces())?,
            expected_rows: config.expected_rows().unwrap_or(0),
        })
    }

    /// Reports what is in effect.
    pub fn report(&self, opened: &mut Opened<'_>) {
        opened.level(self.level);
        opened.version(env!("CARGO_PKG_VERSION"));
        opened.compression("none");
        opened.setting("log", if self.log { "on" } else { "off" });
        if !self.log {
            opened.with(KV_IN_MEMORY);
        }
    }
}
