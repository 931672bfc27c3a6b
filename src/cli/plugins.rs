//! `--plugins`: the folders that are given, the engines that plug-ins bring, and what is told of those that are refused.

use super::error::CliError;
use crate::engine::{Lookup, Registry, harmless, is_plugin_name};
use crate::runner::described;
use std::path::PathBuf;

/// Plug-ins to load in this process.
#[derive(Debug, clap::Args)]
pub struct DescribeArgs {
    files: Vec<PathBuf>,
}

/// The child's side of looking into plug-ins.
pub fn describe(args: &DescribeArgs) -> Result<u8, CliError> {
    crate::measure::become_trial_process();
    crate::engine::describe(&args.files)
}

/// Refuses what can bring no plug-in.
pub fn check(given: &[PathBuf]) -> Result<(), CliError> {
    for path in given {
        let shown = harmless(&path.to_string_lossy());
        if let Err(error) = path.metadata() {
            return Err(CliError::usage(format!("--plugins {shown}: {error}"))
                .hint("it wants a folder with plug-ins (libkvdyno_NAME.so)"));
        }
        if path.is_file() && !is_plugin_name(path) {
            return Err(CliError::usage(format!("--plugins {shown}: not named as a plug-in"))
                .hint("a plug-in's name is libkvdyno_NAME.so, where NAME has a-z, 0-9, _, . and -"));
        }
    }
    Ok(())
}

/// The engines for a command that was given these names; all there are for none. Plug-ins are looked into by another
/// process.
pub fn registry(given: &[PathBuf], names: &[String]) -> Result<Registry, CliError> {
    let executable = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find this executable: {error}")))?;
    let names: Vec<String> = names.iter().map(|name| super::args::named(name).0.to_string()).collect();
    Ok(Registry::for_names(given, &names, &|files| described(&executable, files)))
}

/// Tells of plug-ins that were refused, where that may be why the command does something else than expected: no engine
/// was named, one that was named is not known, or has its name from another plug-in.
pub fn warn(registry: &Registry, names: &[String]) {
    let is_unknown = |name: &String| {
        let found = registry.engine(super::args::named(name).0);
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
