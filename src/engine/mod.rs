//! Safe handles over the C table: engines, databases, sessions and their memory. The only room that calls drivers.

mod answers;
mod arena;
mod builtin;
mod capability;
mod catalogue;
mod database;
mod defect;
mod plugin;
mod registry;
mod stamps;

pub use answers::Status;
pub use arena::{Arena, Shape};
pub use capability::{capability_names, level_name};
pub use catalogue::{Known, catalogue, defects_of, environment_of};
pub use database::{Database, Executed, InForce, Request, Session, Work};
pub use defect::{Asked, Defect, DefectOutcome, Meets};
pub use kvdyno_driver::abi;
pub use plugin::{Refused, plugin_folders};
pub use registry::{Absent, Lookup, Registry, mutant_names};
pub use stamps::Span;

use kvdyno_driver::abi::{KV_ABI, kv_driver};
use std::ffi::c_char;
use std::path::{Path, PathBuf};

/// Where a driver comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Linked into the executable.
    BuiltIn,
    /// A plug-in's file.
    Plugin(PathBuf),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::BuiltIn => out.write_str("built in"),
            Origin::Plugin(file) => out.write_str(&file.file_name().unwrap_or_default().to_string_lossy()),
        }
    }
}

/// An option that a driver has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// `name` of `name=value`.
    pub name: String,
    /// `bytes`, `count`, `flag`, `choice:a|b`, `text`.
    pub kind: String,
    /// What holds when it is not set.
    pub default_value: String,
    /// One line.
    pub help: String,
}

/// A driver's table, checked.
#[derive(Clone)]
pub struct Engine {
    table: &'static kv_driver,
    name: String,
    origin: Origin,
}

/// Something an engine or its driver did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    /// `KV_ERROR` and so on.
    pub status: u32,
    /// What happened.
    pub text: String,
}

impl std::fmt::Display for EngineError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.text.is_empty() {
            return write!(out, "{}", capability::status_name(self.status));
        }
        out.write_str(&self.text)
    }
}

impl std::error::Error for EngineError {}

/// Bytes of a driver's own text (a name, a line of help), at most.
const TEXT_BYTES: usize = 4096;
/// Options of a driver, at most.
const MOST_OPTIONS: u32 = 1024;

/// A NUL-terminated text of the boundary; empty where the pointer is null. One that does not end is cut.
fn boundary_text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    let length = bounded_length(pointer);
    // SAFETY: so many bytes were just read there.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// How long a text is; `TEXT_BYTES`: it does not end before.
fn bounded_length(pointer: *const c_char) -> usize {
    // SAFETY: a driver's texts are constants that end with NUL (driver.h); no more is read of one that does not.
    unsafe { libc::strnlen(pointer, TEXT_BYTES) }
}

/// Refuses a table with a text that does not end, or with more options than anybody has.
fn check_texts(table: &kv_driver) -> Result<(), String> {
    let is_endless = |pointer: *const c_char| !pointer.is_null() && bounded_length(pointer) == TEXT_BYTES;
    let endless = |what: &str| Err(format!("the driver's {what} does not end within {TEXT_BYTES} bytes"));
    let of_table = [
        (table.name, "name"),
        (table.engine, "line on the engine"),
        (table.language, "language"),
        (table.family, "family"),
    ];
    if let Some((_, what)) = of_table.iter().find(|(pointer, _)| is_endless(*pointer)) {
        return endless(what);
    }
    if table.option_count > MOST_OPTIONS {
        return Err(format!("the driver has {} options, at most {MOST_OPTIONS} can be", table.option_count));
    }
    for (at, option) in options_of(table).iter().enumerate() {
        if [option.name, option.kind, option.default_value, option.help].into_iter().any(is_endless) {
            return endless(&format!("text of option {at}"));
        }
    }
    Ok(())
}

fn options_of(table: &kv_driver) -> &[abi::kv_option] {
    let count = table.option_count as usize;
    if count == 0 || table.options.is_null() {
        return &[];
    }
    // SAFETY: a table has `option_count` options (driver.h).
    unsafe { std::slice::from_raw_parts(table.options, count) }
}

impl Engine {
    /// Checks a table: its ABI, its size, its name and that every entry is there.
    fn check(table: &'static kv_driver, origin: Origin) -> Result<Engine, String> {
        if table.abi != KV_ABI {
            return Err(format!("its driver table has ABI {}, this kvdyno speaks {KV_ABI}", table.abi));
        }
        if (table.size as usize) < size_of::<kv_driver>() {
            let wanted = size_of::<kv_driver>();
            return Err(format!("its driver table has {} bytes, ABI {KV_ABI} has {wanted}", table.size));
        }
        check_texts(table)?;
        let name = boundary_text(table.name);
        if !is_engine_name(&name) {
            return Err(format!("`{}` is no engine name ([a-z0-9][a-z0-9_.-]*)", name.escape_default()));
        }
        let complete = table.open.is_some()
            && table.session.is_some()
            && table.execute.is_some()
            && table.session_end.is_some()
            && table.maintain.is_some()
            && table.stats.is_some()
            && table.close.is_some();
        if !complete {
            return Err(format!("the driver table of `{name}` lacks an entry"));
        }
        Ok(Engine { table, name, origin })
    }

    /// An engine of a test.
    #[cfg(test)]
    pub fn of_table(table: &'static kv_driver) -> Engine {
        Engine::check(table, Origin::BuiltIn).expect("a test's table is sound")
    }

    /// What people type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line: what it is.
    pub fn about(&self) -> String {
        boundary_text(self.table.engine)
    }

    /// The engine's language.
    pub fn language(&self) -> String {
        boundary_text(self.table.language)
    }

    /// `lsm`, `b+tree` ...
    pub fn family(&self) -> String {
        boundary_text(self.table.family)
    }

    /// Where the driver comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The plug-in that it is in; none: it is built in.
    pub fn plugin_file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::BuiltIn => None,
            Origin::Plugin(file) => Some(file),
        }
    }

    /// Declared capabilities: `KV_...` bits.
    pub fn capabilities(&self) -> u64 {
        self.table.capabilities
    }

    /// The durability levels that the engine has itself: bit `1 << level`.
    pub fn levels(&self) -> u64 {
        self.table.levels
    }

    /// Largest key, bytes; 65536 where the engine has no smaller limit.
    pub fn key_size_max(&self) -> u32 {
        if self.table.key_size_max == 0 { 65536 } else { self.table.key_size_max }
    }

    /// The options, in the driver's order.
    pub fn options(&self) -> Vec<OptionInfo> {
        options_of(self.table)
            .iter()
            .map(|option| OptionInfo {
                name: boundary_text(option.name),
                kind: boundary_text(option.kind),
                default_value: boundary_text(option.default_value),
                help: boundary_text(option.help),
            })
            .collect()
    }

    /// Whether it keeps anything; a floor does not.
    pub fn stores_nothing(&self) -> bool {
        self.table.capabilities & abi::KV_STORES_NOTHING != 0
    }

    /// Whether a comparison of all engines includes it: floors, examples, mutants and servers are asked for by name.
    pub fn is_compared(&self) -> bool {
        !self.stores_nothing() && is_compared_family(&self.family())
    }
}

/// Whether engines of this family are there to be compared.
fn is_compared_family(family: &str) -> bool {
    !["none", "example", "mutant", "server"].contains(&family)
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Engine({}, {})", self.name, self.origin)
    }
}

/// Whether a name is `[a-z0-9][a-z0-9_.-]{0,63}`.
pub fn is_engine_name(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=64).contains(&bytes.len())
        && letters(bytes[0])
        && bytes.iter().all(|&byte| letters(byte) || b"_.-".contains(&byte))
}
