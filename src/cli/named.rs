//! Finds workloads and suites by name or file, and applies the changes of the command line to them.

use super::args;
use super::error::CliError;
use crate::workload::{
    Changes, Member, Suite, Workload, WorkloadError, builtin, builtin_names, builtin_suite, builtin_suites,
    is_suite, parse, parse_suite,
};
use std::path::{Path, PathBuf};

/// A workload or a suite.
pub enum Named {
    /// A workload.
    One(Box<Workload>),
    /// A suite, and the folder that its paths are relative to.
    Suite(Suite, PathBuf),
}

/// The names of all built-in workloads and suites, workloads first.
pub fn known() -> Vec<&'static str> {
    builtin_names().iter().chain(builtin_suites()).map(|(name, _)| *name).collect()
}

/// Finds a workload or suite by name, or reads it from a file (its name ends in `.toml` or contains a `/`).
pub fn named(name: &str) -> Result<Named, CliError> {
    let usage = |error: WorkloadError| CliError::usage(error.to_string());
    if is_path(name) {
        let text = read(Path::new(name)).map_err(usage)?;
        if is_suite(&text) {
            let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_path_buf();
            return parse_suite(&text, name).map(|suite| Named::Suite(suite, folder)).map_err(usage);
        }
        return parse(&text, name).map(|workload| Named::One(Box::new(workload))).map_err(usage);
    }
    if let Some(suite) = builtin_suite(name) {
        return Ok(Named::Suite(suite, PathBuf::new()));
    }
    if !known().contains(&name) {
        return Err(args::unknown("workload", name, &known(), "kvdyno workloads"));
    }
    builtin(name).map(|workload| Named::One(Box::new(workload))).map_err(usage)
}

impl Named {
    /// The name without the path.
    pub fn name(&self) -> &str {
        match self {
            Named::One(workload) => &workload.name,
            Named::Suite(suite, _) => &suite.name,
        }
    }

    /// The workloads with the changes applied.
    pub fn members(&self, changes: &Changes) -> Result<Vec<Member>, CliError> {
        let members = match self {
            Named::One(workload) => {
                let variants = changes.variants(workload, &Default::default());
                let member = |workload| Member { workload, engines: Vec::new(), missed: Vec::new() };
                variants.map(|variants| variants.into_iter().map(member).collect())
            }
            Named::Suite(suite, folder) => suite.members(&|name| find(name, folder), changes),
        };
        members.map_err(|error| CliError::usage(error.to_string()))
    }
}

/// Finds a workload that a suite names.
fn find(name: &str, folder: &Path) -> Result<Workload, WorkloadError> {
    if !is_path(name) {
        return builtin(name);
    }
    let path = folder.join(name);
    parse(&read(&path)?, &path.to_string_lossy()).map_err(WorkloadError::with_place)
}

fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

fn read(path: &Path) -> Result<String, WorkloadError> {
    crate::measure::read_text(path).map_err(|error| {
        WorkloadError::new("", format!("cannot read the workload {}: {error}", path.display()))
    })
}
