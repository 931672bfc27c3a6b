//! Maps names to drivers: the built-in list, the plug-ins found, and the mutants; and lists the known engines that
//! are not available.

use super::builtin::BUILT_IN;
use super::catalogue::{Known, catalogue, lacking_here};
use super::plugin::{self, PluginError, Refused, plugin_folders, plugin_name};
use super::{Engine, Origin, is_compared_family};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a name is not an available engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Known but not available; the text gives the reason and what to do.
    Absent(String),
    /// Unknown; the text lists the known names.
    Unknown(Vec<String>),
}

/// An engine of the catalogue that is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Its catalogue entry.
    pub known: &'static Known,
    /// Why its plug-in was not built or not loaded; `None` if unknown.
    pub reason: Option<String>,
    /// Whether its plug-in was built: then installing the engine would not help.
    pub is_built: bool,
}

impl Absent {
    /// One line: why it is not available, if known, and how to install it, if it is not.
    pub fn advice(&self) -> String {
        if let Some(reason) = self.reason.as_ref().filter(|_| self.is_built) {
            return reason.clone();
        }
        let reason = self.reason.as_ref().map(|reason| format!("{reason}; ")).unwrap_or_default();
        format!("{reason}to install: {}", self.known.get)
    }

    /// Whether a comparison of all engines would include it.
    pub fn is_compared(&self) -> bool {
        is_compared_family(&self.known.family)
    }
}

/// Examines plug-ins: returns the contents of each, or why it cannot be loaded, in the order of the files.
pub(super) type Probe<'a> = &'a dyn Fn(&[PathBuf]) -> Vec<Result<Vec<Engine>, PluginError>>;

/// All available engines.
pub struct Registry {
    engines: Vec<Engine>,
    absent: Vec<Absent>,
    refused: Vec<Refused>,
}

impl Registry {
    /// The built-in engines, and nothing else.
    fn built_in() -> Registry {
        let mut registry = Registry { engines: Vec::new(), absent: Vec::new(), refused: Vec::new() };
        for entry in BUILT_IN {
            match entry.table.map(|table| Engine::check(table, Origin::BuiltIn)) {
                Some(Ok(engine)) => registry.engines.push(engine),
                Some(Err(error)) => {
                    let (file, engine, reason) = (PathBuf::from(entry.name), None, error.to_string());
                    registry.refused.push(Refused { file, engine, reason });
                }
                None => {}
            }
        }
        registry
    }

    /// Adds the engines of one plug-in. A name refers to one engine: the first that has it.
    fn add(&mut self, file: &Path, found: Result<Vec<Engine>, PluginError>) {
        let refused = |engine, reason| Refused { file: file.to_path_buf(), engine, reason };
        let engines = match found {
            Ok(engines) => engines,
            Err(error) => return self.refused.push(refused(None, error.to_string())),
        };
        for engine in engines {
            let name = engine.name().to_string();
            let Some(first) = self.find(&name) else {
                self.engines.push(engine);
                continue;
            };
            let owner = match first.plugin_file() {
                None => "a built-in engine".into(),
                Some(file) => plugin::shown(file),
            };
            let reason = format!(
                "its engine `{name}` was skipped because {owner} has the same name; rename one of them"
            );
            self.refused.push(refused(Some(name), reason));
        }
    }

    /// Adds the engines of the files that pass the checks and that `probe` examines, and records the rest as refused.
    fn add_all(&mut self, files: Vec<PathBuf>, probe: Probe<'_>) {
        let checked: Vec<(PathBuf, Result<PathBuf, PluginError>)> = files
            .into_iter()
            .map(|file| {
                let lacking = plugin_name(&file).and_then(lacking_here);
                let lacking = lacking.map(|reason| Err(PluginError::Processor(reason)));
                let real = lacking.unwrap_or_else(|| plugin::check_file(&file));
                (file, real)
            })
            .collect();
        let sound: Vec<PathBuf> =
            checked.iter().filter_map(|(_, real)| real.as_ref().ok().cloned()).collect();
        let mut found = probe(&sound).into_iter();
        for (file, real) in checked {
            match real {
                Ok(_) => {
                    let engines = found.next().unwrap_or(Err(PluginError::Unexamined));
                    self.add(&file, engines);
                }
                Err(error) => self.add(&file, Err(error)),
            }
        }
    }

    /// Adds the known engines that are not available, each with the reason if `folders` record one.
    fn add_absent(&mut self, folders: &[PathBuf]) {
        let left_out = plugin::left_out(folders);
        let missing = catalogue().iter().filter(|known| self.find(&known.name).is_none());
        let absent = |known: &'static Known| {
            let is_its = |name: &str| name == known.name || name == known.plugin();
            let left_out =
                || left_out.iter().find(|(name, _)| is_its(name)).map(|(_, reason)| reason.clone());
            let refused = self.refused_as(is_its).map(Refused::to_string);
            Absent { known, is_built: refused.is_some(), reason: refused.or_else(left_out) }
        };
        self.absent = missing.map(absent).collect();
    }

    /// The plug-in with such a file name that was not loaded.
    fn refused_as(&self, is_its: impl Fn(&str) -> bool) -> Option<&Refused> {
        let whole = self.refused.iter().filter(|refused| refused.engine.is_none());
        whole.into_iter().find(|refused| plugin_name(&refused.file).is_some_and(&is_its))
    }

    /// The built-in engines and the plug-ins in `folders`, which are loaded into this process; the first of a name
    /// wins.
    pub fn load(folders: &[PathBuf]) -> Registry {
        Registry::probe_folders(folders, &|files| files.iter().map(|file| plugin::load(file)).collect())
    }

    /// The same, but `probe` examines the plug-ins.
    fn probe_folders(folders: &[PathBuf], probe: Probe<'_>) -> Registry {
        let mut registry = Registry::built_in();
        registry.add_all(plugin::files_in(folders), probe);
        registry.add_absent(folders);
        registry
    }

    /// The engines that `names` need; plug-ins in the folders `given` precede the usual ones. All engines if there
    /// are no names. If possible, plug-ins that are not requested are not examined, so that their behavior at load
    /// does not matter.
    pub fn for_names(given: &[PathBuf], names: &[String], probe: Probe<'_>) -> Registry {
        let folders = plugin_folders(given);
        let is_usual = given.is_empty() && std::env::var_os("KVDYNO_PLUGINS").is_none();
        if !is_usual || names.is_empty() {
            return Registry::probe_folders(&folders, probe);
        }
        let mut registry = Registry::built_in();
        let mut files: Vec<PathBuf> = Vec::new();
        for name in names.iter().filter(|name| registry.find(name).is_none()) {
            let known = catalogue().iter().find(|known| known.name == *name);
            let own = [Some(name.as_str()), known.map(Known::plugin)];
            let own = own.into_iter().flatten().map(|name| format!("libkvdyno_{name}.so"));
            let file = own.flat_map(|file| folders.iter().map(move |folder| folder.join(&file)));
            files.extend(file.filter(|file| file.is_file()).take(1));
        }
        files.sort();
        files.dedup();
        registry.add_all(files, probe);
        let is_here = |name: &String| name.starts_with("mutant") || registry.find(name).is_some();
        if names.iter().all(is_here) { registry } else { Registry::probe_folders(&folders, probe) }
    }

    /// The built-in engines and those of one plug-in, if there is one, which is loaded into this process.
    pub fn alone(file: Option<&Path>) -> Result<Registry, Refused> {
        let mut registry = Registry::built_in();
        if let Some(file) = file {
            let refused = |error: PluginError| Refused {
                file: file.to_path_buf(),
                engine: None,
                reason: error.to_string(),
            };
            let found = plugin::load(file).map_err(refused)?;
            registry.add(file, Ok(found));
        }
        Ok(registry)
    }

    fn find(&self, name: &str) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.name() == name)
    }

    /// All available engines, in the order in which users see them; mutants are not listed.
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The plug-in of each engine; a trial loads only that one.
    pub fn plugin_files(&self) -> BTreeMap<String, PathBuf> {
        let files = self.engines.iter().filter_map(|engine| Some((engine, engine.plugin_file()?)));
        files.map(|(engine, file)| (engine.name().to_string(), file.to_path_buf())).collect()
    }

    /// Known engines that are not available, by name.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// Plug-ins that were not loaded, and why.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The engine with that name; `mutant:FAULT` names a planted bug.
    pub fn engine(&self, name: &str) -> Result<Engine, Lookup> {
        if let Some(fault) = name.strip_prefix("mutant:") {
            let found = kvdyno_mutant::MUTANTS.iter().find(|(known, _)| *known == fault);
            return match found.map(|(_, table)| Engine::check(table, Origin::BuiltIn)) {
                Some(Ok(engine)) => Ok(engine),
                Some(Err(error)) => Err(Lookup::Absent(error.to_string())),
                None => Err(Lookup::Unknown(mutant_names())),
            };
        }
        if let Some(engine) = self.find(name) {
            return Ok(engine.clone());
        }
        if let Some(absent) = self.absent.iter().find(|absent| absent.known.name == name) {
            return Err(Lookup::Absent(absent.advice()));
        }
        if let Some(refused) = self.refused_as(|own| own == name) {
            return Err(Lookup::Absent(refused.to_string()));
        }
        let present = self.engines.iter().map(|engine| engine.name().to_string());
        Err(Lookup::Unknown(
            present.chain(self.absent.iter().map(|absent| absent.known.name.clone())).collect(),
        ))
    }
}

/// `mutant:FAULT` for every planted bug.
pub fn mutant_names() -> Vec<String> {
    kvdyno_mutant::MUTANTS.iter().map(|(fault, _)| format!("mutant:{fault}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_known_is_here_or_absent_and_every_built_in_one_is_known() {
        let registry = Registry::load(&[]);
        let names: Vec<&str> = catalogue().iter().map(|known| known.name.as_str()).collect();
        for entry in BUILT_IN {
            assert!(names.contains(&entry.name), "`{}` has no engine.toml", entry.name);
        }
        for name in names {
            let is_absent = registry.absent().iter().any(|absent| absent.known.name == name);
            assert!(registry.find(name).is_some() != is_absent, "{name}");
        }
    }

    #[test]
    fn an_absent_engine_says_why_and_what_brings_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("absent.txt"), "example\tno compiler\n").unwrap();
        let registry = Registry::load(&[folder.path().to_path_buf()]);
        let Err(Lookup::Absent(advice)) = registry.engine("example") else { panic!("it is available") };
        assert!(advice.starts_with("no compiler; to install: ") && advice.ends_with("make"), "{advice}");
        std::fs::write(folder.path().join("libkvdyno_example.so"), "no library").unwrap();
        let registry = Registry::load(&[folder.path().to_path_buf()]);
        let Err(Lookup::Absent(advice)) = registry.engine("example") else { panic!("it is available") };
        assert!(advice.contains("libkvdyno_example.so: not a shared library"), "{advice}");
    }
}
