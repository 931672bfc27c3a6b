//! Names to drivers: the built-in list, the plug-ins found, and the mutants.

use super::builtin::BUILT_IN;
use super::plugin::{self, Refused};
use super::{Engine, Origin};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Why a name is no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Known, but not here; says what to do.
    Absent(String),
    /// Not known; the names there are.
    Unknown(Vec<String>),
}

/// All engines of this process.
pub struct Registry {
    engines: Vec<Engine>,
    absent: Vec<(String, String)>,
    refused: Vec<Refused>,
}

impl Registry {
    /// The built-in engines and the plug-ins in `folders` (or plug-ins' files); the first of a name wins.
    pub fn load(folders: &[PathBuf]) -> Registry {
        let mut registry = Registry { engines: Vec::new(), absent: Vec::new(), refused: Vec::new() };
        for entry in BUILT_IN {
            match entry.table.map(|table| Engine::check(table, Origin::BuiltIn)) {
                Some(Ok(engine)) => registry.engines.push(engine),
                Some(Err(reason)) => {
                    registry.refused.push(Refused { file: PathBuf::from(entry.name), reason });
                }
                None => {
                    let advice = format!(
                        "built without it; build with `cargo build --release --features {}`, or `make`",
                        entry.feature
                    );
                    registry.absent.push((entry.name.to_string(), advice));
                }
            }
        }
        let (found, refused) = plugin::load_all(folders);
        for engine in found {
            if registry.find(engine.name()).is_none() {
                registry.engines.push(engine);
            }
        }
        registry.refused.extend(refused);
        registry
    }

    fn find(&self, name: &str) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.name() == name)
    }

    /// All engines that are here, in the order people see; mutants are not listed.
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// Where each engine's plug-in is; a trial loads that one alone.
    pub fn plugin_files(&self) -> BTreeMap<String, PathBuf> {
        let files = self.engines.iter().filter_map(|engine| Some((engine, engine.plugin_file()?)));
        files.map(|(engine, file)| (engine.name().to_string(), file.to_path_buf())).collect()
    }

    /// Engines that are known and not here, with what to do.
    pub fn absent(&self) -> &[(String, String)] {
        &self.absent
    }

    /// Plug-ins that were not loaded, and why.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The engine of that name; `mutant:FAULT` names a planted fault.
    pub fn engine(&self, name: &str) -> Result<Engine, Lookup> {
        if let Some(fault) = name.strip_prefix("mutant:") {
            let found = kvdyno_mutant::MUTANTS.iter().find(|(known, _)| *known == fault);
            return match found.map(|(_, table)| Engine::check(table, Origin::BuiltIn)) {
                Some(Ok(engine)) => Ok(engine),
                Some(Err(reason)) => Err(Lookup::Absent(reason)),
                None => Err(Lookup::Unknown(mutant_names())),
            };
        }
        if let Some(engine) = self.find(name) {
            return Ok(engine.clone());
        }
        if let Some((_, advice)) = self.absent.iter().find(|(known, _)| known == name) {
            return Err(Lookup::Absent(advice.clone()));
        }
        let present = self.engines.iter().map(|engine| engine.name().to_string());
        Err(Lookup::Unknown(present.chain(self.absent.iter().map(|(name, _)| name.clone())).collect()))
    }
}

/// `mutant:FAULT` for every planted fault.
pub fn mutant_names() -> Vec<String> {
    kvdyno_mutant::MUTANTS.iter().map(|(fault, _)| format!("mutant:{fault}")).collect()
}
