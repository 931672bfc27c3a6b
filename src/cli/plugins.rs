//! `--plugins`: checks the given folders, loads the engines of plug-ins, and reports plug-ins that were refused.

use super::error::CliError;
use kvdyno_core::engine::{Lookup, Registry, harmless, is_plugin_name};
use kvdyno_core::runner::described;
use std::cell::RefCell;
use std::path::PathBuf;

/// The path of this executable, which starts itself for each trial.
pub(super) fn executable() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|error| CliError::failed(format!("cannot find this executable: {error}")))
}

/// Refuses paths that cannot contain plug-ins.
pub(super) fn check(given: &[PathBuf]) -> Result<(), CliError> {
    for path in given {
        let shown = harmless(&path.to_string_lossy());
        if let Err(error) = path.metadata() {
            return Err(CliError::usage(format!("--plugins {shown}: {error}"))
                .hint("name a folder that contains plug-ins (libkvdyno_NAME.so)"));
        }
        if path.is_file() && !is_plugin_name(path) {
            return Err(CliError::usage(format!("--plugins {shown}: not the file name of a plug-in"))
                .hint("a plug-in is named libkvdyno_NAME.so, where NAME consists of a-z, 0-9, _, . and -"));
        }
    }
    Ok(())
}

/// The registry for a command that names these engines, or for all engines if there are no names. Another process loads the
/// plug-ins; if none can be started, that is one error, and not one of each plug-in.
pub(super) fn registry(given: &[PathBuf], names: &[String]) -> Result<Registry, CliError> {
    let executable = executable()?;
    let names: Vec<String> =
        names.iter().map(|name| super::args::split_options(name).0.to_string()).collect();
    let failure = RefCell::new(None);
    let probe = |files: &[PathBuf]| {
        described(&executable, files).unwrap_or_else(|text| {
            *failure.borrow_mut() = Some(text);
            Vec::new()
        })
    };
    let registry = Registry::for_names(given, &names, &probe);
    match failure.into_inner() {
        Some(text) => Err(CliError::failed(text)),
        None => Ok(registry),
    }
}

/// Warns about refused plug-ins if they may explain an unexpected result: no engine was named, a named engine is unknown, or
/// a named engine comes from another plug-in.
pub(super) fn warn(registry: &Registry, names: &[String]) {
    let is_unknown = |name: &String| {
        let found = registry.engine(super::args::split_options(name).0);
        name != "mutants" && matches!(found, Err(Lookup::Unknown(_)))
    };
    let concerns_all = names.iter().any(is_unknown) || names.is_empty();
    for refused in registry.refused() {
        let is_named = refused.engine.as_ref().is_some_and(|engine| names.contains(engine));
        if is_named || concerns_all {
            eprintln!("warning: plug-in {refused}");
        }
    }
}
