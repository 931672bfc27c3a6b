//! The request at open, the report of what is in effect, and what a driver declares about itself.

use crate::abi::*;
use crate::op::{Error, write_error, write_text};
use std::ffi::{CStr, c_char};
use std::path::Path;

/// A durability level; see docs/glossary.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// May lose anything.
    None = KV_NONE,
    /// An acknowledged write survives kill -9.
    Process = KV_PROCESS,
    /// An acknowledged write survives power loss.
    Power = KV_POWER,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Process => "process",
            Level::Power => "power",
        }
    }
}

/// What a driver declares about itself.
pub struct Info {
    /// `[a-z0-9][a-z0-9_.-]{0,63}`; also the folder's name.
    pub name: &'static CStr,
    /// One line: what the engine is.
    pub engine: &'static CStr,
    /// Of the engine: "Rust", "C".
    pub language: &'static CStr,
    /// "b+tree", "lsm", "memory" ...
    pub family: &'static CStr,
    /// `KV_ORDERED | ...`
    pub capabilities: u64,
    /// The levels the engine itself has, ascending.
    pub levels: &'static [Level],
    /// Largest key in bytes; 0 = at least 65536.
    pub key_size_max: u32,
    /// Options, in the order shown.
    pub options: &'static [kv_option],
}

/// An option for [`Info::options`]. `kind`: "bytes", "count", "flag", "choice:a|b", "text".
pub const fn option(
    name: &'static CStr,
    kind: &'static CStr,
    default_value: &'static CStr,
    help: &'static CStr,
) -> kv_option {
    kv_option {
        name: name.as_ptr(),
        kind: kind.as_ptr(),
        default_value: default_value.as_ptr(),
        help: help.as_ptr(),
    }
}

/// The capabilities of every ordered map, for [`Info::capabilities`].
pub const ORDERED_MAP: u64 = KV_ORDERED | KV_CAN_REVERSE | KV_CAN_PREFIX | KV_CAN_DELETE | KV_OVERWRITE;

/// The capabilities of every engine whose transactions read their own writes.
pub const TRANSACTIONS: u64 = KV_MULTI_GET | KV_TRANSACTION | KV_TRANSACTION_READS | KV_CAN_NEW;

/// The request at open.
pub struct Config<'a> {
    raw: &'a kv_config,
    options: &'a [kv_option],
}

fn text<'a>(pointer: *const c_char) -> Result<&'a str, Error> {
    // SAFETY: the boundary gives NUL-terminated texts that live until open returns.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Error::new("a string in the config is not UTF-8"))
}

impl<'a> Config<'a> {
    pub(crate) fn new(raw: &'a kv_config, options: &'a [kv_option]) -> Result<Config<'a>, Error> {
        let config = Config { raw, options };
        for setting in config.settings() {
            let name = text(setting.name)?;
            if !options.iter().any(|option| text(option.name).is_ok_and(|known| known == name)) {
                return Err(Error::new(format!("no option named `{name}`")));
            }
        }
        Ok(config)
    }

    fn settings(&self) -> &'a [kv_setting] {
        if self.raw.setting_count == 0 {
            return &[];
        }
        // SAFETY: the boundary gives setting_count settings.
        unsafe { std::slice::from_raw_parts(self.raw.settings, self.raw.setting_count as usize) }
    }

    /// An existing folder that only this database uses.
    pub fn path(&self) -> &'a Path {
        Path::new(text(self.raw.path).unwrap_or("."))
    }

    /// The folder is empty: create a database.
    pub fn create(&self) -> bool {
        self.raw.flags & KV_CREATE != 0
    }

    /// Read-only: the database's files must not be written either.
    pub fn read_only(&self) -> bool {
        self.raw.flags & KV_READ_ONLY != 0
    }

    /// Whether the engine is requested as its authors ship it.
    pub fn asks_default(&self) -> bool {
        self.raw.level == KV_DEFAULT
    }

    /// The weakest of `levels` (ascending) at or above the requested one; `default` is the authors' own.
    pub fn pick(&self, levels: &[Level], default: Level) -> Result<Level, Error> {
        if self.asks_default() {
            return Ok(default);
        }
        levels.iter().copied().find(|&level| level as u32 >= self.raw.level).ok_or_else(|| {
            let asked = if self.raw.level == KV_POWER { "power" } else { "process" };
            let best = levels.last().map_or("none", |level| level.name());
            Error::with(
                crate::Status::Unsupported,
                format!(
                    "cannot reach durability level `{asked}`; the strongest level of this engine is `{best}`"
                ),
            )
        })
    }

    /// Budget for the engine's own caches; `None`: the engine's default.
    pub fn cache_bytes(&self) -> Option<u64> {
        (self.raw.cache_bytes != 0).then_some(self.raw.cache_bytes)
    }

    /// How many rows the workload will store, if known.
    pub fn expected_rows(&self) -> Option<u64> {
        (self.raw.expected_rows != 0).then_some(self.raw.expected_rows)
    }

    /// How large the database may grow, if known. For engines that map a file of fixed size.
    pub fn disk_limit_bytes(&self) -> Option<u64> {
        (self.raw.disk_limit_bytes != 0).then_some(self.raw.disk_limit_bytes)
    }

    /// Sessions that will be open at once.
    pub fn threads(&self) -> usize {
        self.raw.threads.max(1) as usize
    }

    /// Requested keyspaces, at least 1.
    pub fn keyspaces(&self) -> usize {
        self.raw.keyspaces.max(1) as usize
    }

    /// The indexes that the engine must maintain; none unless the driver declares `KV_INDEXES`.
    pub fn indexes(&self) -> &'a [kv_index] {
        if self.raw.index_count == 0 {
            return &[];
        }
        // SAFETY: the boundary gives index_count indexes.
        unsafe { std::slice::from_raw_parts(self.raw.indexes, self.raw.index_count as usize) }
    }

    /// Largest key in bytes.
    pub fn key_size_max(&self) -> usize {
        self.raw.key_size_max as usize
    }

    /// Largest value in bytes.
    pub fn value_size_max(&self) -> usize {
        self.raw.value_size_max as usize
    }

    /// The value of an option: the given one, otherwise its default.
    pub fn setting(&self, name: &str) -> Result<&'a str, Error> {
        for setting in self.settings() {
            if text(setting.name)? == name {
                return text(setting.value);
            }
        }
        for option in self.options {
            if text(option.name)? == name {
                return text(option.default_value);
            }
        }
        Err(Error::new(format!("the driver asked for an option `{name}` that it does not declare")))
    }

    /// A "flag" option: `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<bool, Error> {
        let value = self.setting(name)?;
        value.parse().map_err(|_| Error::new(format!("option {name}: expected true or false, got `{value}`")))
    }

    /// A "count" or "bytes" option; the core has converted `64M` to digits.
    pub fn number(&self, name: &str) -> Result<u64, Error> {
        let value = self.setting(name)?;
        value.parse().map_err(|_| Error::new(format!("option {name}: expected a number, got `{value}`")))
    }

    /// A "choice" option: one of `choices`.
    pub fn choice(&self, name: &str, choices: &[&'static str]) -> Result<&'static str, Error> {
        let value = self.setting(name)?;
        let found = choices.iter().find(|&&choice| choice == value);
        found.copied().ok_or_else(|| {
            Error::new(format!("option {name}: expected one of {}, got `{value}`", choices.join(", ")))
        })
    }
}

/// What is in effect after open. The kit has filled in the table's capabilities and "no cache setting".
pub struct Opened<'a> {
    raw: &'a mut kv_opened,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(raw: &'a mut kv_opened, capabilities: u64) -> Opened<'a> {
        raw.capabilities = capabilities;
        raw.cache_bytes = u64::MAX;
        Opened { raw }
    }

    pub(crate) fn fail(&mut self, text: &str) {
        write_error(&mut self.raw.error, text);
    }

    pub(crate) fn capabilities(&self) -> u64 {
        self.raw.capabilities
    }

    /// The effective durability level.
    pub fn level(&mut self, level: Level) {
        self.raw.level = level as u32;
    }

    /// The engine library's version.
    pub fn version(&mut self, version: &str) {
        write_text(&mut self.raw.version, version);
    }

    /// "none", "lz4" ...
    pub fn compression(&mut self, name: &str) {
        write_text(&mut self.raw.compression, name);
    }

    /// The effective cache size, in bytes. Not calling it means that the engine has no such setting.
    pub fn cache_bytes(&mut self, bytes: u64) {
        self.raw.cache_bytes = bytes;
    }

    /// An effective setting, as `name=value`; also settings that the user cannot change.
    pub fn setting(&mut self, name: &str, value: impl std::fmt::Display) {
        let used = self.raw.settings.iter().position(|&byte| byte == 0).unwrap_or(0);
        let line = format!("{name}={value}\n");
        if used + line.len() < self.raw.settings.len() {
            write_text(&mut self.raw.settings[used..], &line);
        }
    }

    /// Narrows the capabilities.
    pub fn without(&mut self, capabilities: u64) {
        self.raw.capabilities &= !capabilities;
    }

    /// Adds capabilities that exist only with the given options (`KV_IN_MEMORY`, for example).
    pub fn with(&mut self, capabilities: u64) {
        self.raw.capabilities |= capabilities;
    }
}
