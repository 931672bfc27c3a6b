//! Safe handles over the C table: engines, databases, sessions and their memory. The only module that calls drivers.

#![allow(unsafe_code, reason = "the C boundary is here")]

mod answers;
mod arena;
mod builtin;
mod capability;
mod catalogue;
mod database;
mod defect;
mod description;
mod drive;
mod examination;
mod gives;
mod members;
mod option;
mod plugin;
mod properties;
mod registry;
mod select;
mod stamps;

pub use answers::{OpCode, Status, kind_name};
pub use arena::{Arena, Shape};
pub use capability::{capability_names, level_name};
pub use catalogue::{
    Known, catalogue, defects_of, environment_of, file_of, nodes_option_of, report_of, required_engines,
};
pub use database::{Database, Effective, Executed, Request, Session, Work};
pub use defect::PhaseProfile;
pub use description::{Description, TableError, harmless, is_engine_name};
pub use examination::{PluginsTask, Reported};
pub use gives::Gives;
pub use kvdyno_driver::abi;
pub use members::{Launch, Member, Members, MembersError};
pub use option::{OptionInfo, OptionKind};
pub use plugin::{PluginError, Refused, is_plugin_name, plugin_folders};
pub use properties::{Expiry, Processes, Properties, Release, Space, Storage, is_date};
pub use registry::{Absent, Lookup, Registry, mutant_names};
pub use select::{ALL, Chosen, DEFAULT, SelectError, Selection};
pub use stamps::Span;

use kvdyno_driver::abi::kv_driver;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The origin of a driver.
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

/// An engine that can be opened: the contents of its driver's table, and where the table is.
#[derive(Clone)]
pub struct Engine {
    description: Arc<Description>,
    origin: Origin,
    /// Empty until its plug-in is loaded.
    table: Arc<OnceLock<&'static kv_driver>>,
}

/// An error of an engine or its driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", if text.is_empty() { capability::status_name(*status) } else { text })]
pub struct EngineError {
    /// Its status, such as `KV_ERROR`.
    pub status: u32,
    /// What happened.
    pub text: String,
}

impl From<EngineError> for String {
    fn from(error: EngineError) -> String {
        error.to_string()
    }
}

impl Engine {
    /// Checks a table in this process.
    fn check(table: &'static kv_driver, origin: Origin) -> Result<Engine, TableError> {
        let description = Arc::new(Description::of(table)?);
        Ok(Engine { description, origin, table: Arc::new(OnceLock::from(table)) })
    }

    /// An engine of a plug-in that another process has examined. The plug-in is loaded into this process when a
    /// database is opened.
    pub fn described(description: Description, file: &Path) -> Result<Engine, TableError> {
        let description = Arc::new(description.checked()?);
        Ok(Engine { description, origin: Origin::Plugin(file.to_path_buf()), table: Arc::default() })
    }

    /// The table; loads the plug-in if that has not been done yet.
    fn table(&self) -> Result<&'static kv_driver, EngineError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let file = self.plugin_file().unwrap_or(Path::new(""));
        let engines = plugin::quietly(|| plugin::load(file));
        let failed = |text: String| EngineError { status: abi::KV_ERROR, text };
        let engines = engines.map_err(|reason| failed(format!("{}: {reason}", file.display())))?;
        let own = engines.into_iter().find(|engine| engine.name() == self.name());
        let table = own.and_then(|engine| engine.table.get().copied());
        let gone = || failed(format!("{} no longer contains the engine `{}`", file.display(), self.name()));
        let table = table.ok_or_else(gone)?;
        Ok(self.table.get_or_init(|| table))
    }

    /// An engine for tests and benchmarks, from a table of theirs.
    pub fn of_table(table: &'static kv_driver) -> Engine {
        Engine::check(table, Origin::BuiltIn).expect("the table is valid")
    }

    /// The name that users type.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// One line: a short description.
    pub fn about(&self) -> String {
        self.description.about.clone()
    }

    /// The engine's language.
    pub fn language(&self) -> String {
        self.description.language.clone()
    }

    /// `lsm`, `b+tree` ...
    pub fn family(&self) -> String {
        self.description.family.clone()
    }

    /// The origin of the driver.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The plug-in that contains it; `None` if it is built in.
    pub fn plugin_file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::BuiltIn => None,
            Origin::Plugin(file) => Some(file),
        }
    }

    /// Declared capabilities: `KV_...` bits.
    pub fn capabilities(&self) -> u64 {
        self.description.capabilities
    }

    /// Whether the driver runs the loops of its sessions (rule 12 of driver.h).
    pub fn is_driven(&self) -> bool {
        self.description.is_driven
    }

    /// The durability levels that the engine supports itself: bit `1 << level`.
    pub fn levels(&self) -> u64 {
        self.description.levels
    }

    /// Maximum key size, bytes; 65536 if the engine has no smaller limit.
    pub fn key_size_max(&self) -> u32 {
        if self.description.key_size_max == 0 { 65536 } else { self.description.key_size_max }
    }

    /// The options, in the driver's order.
    pub fn options(&self) -> Vec<OptionInfo> {
        self.description.options.clone()
    }

    /// Whether it stores anything; the null engine does not.
    pub fn stores_nothing(&self) -> bool {
        self.capabilities() & abi::KV_STORES_NOTHING != 0
    }

    /// Whether it keeps nothing in files, with any options.
    pub fn keeps_nothing(&self) -> bool {
        self.stores_nothing() || self.capabilities() & abi::KV_IN_MEMORY != 0
    }

    /// Whether a comparison of all engines includes it: null engines, examples, mutants and servers run only if they
    /// are named on the command line.
    pub fn is_compared(&self) -> bool {
        !self.stores_nothing() && is_compared_family(&self.family())
    }
}

/// Whether engines of this family are part of comparisons.
fn is_compared_family(family: &str) -> bool {
    !["none", "example", "mutant", "server"].contains(&family)
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Engine({}, {})", self.name(), self.origin)
    }
}
