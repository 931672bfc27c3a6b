//! Workloads and suites by name or from files, and what they are as they are to be run.

use super::args;
use super::error::CliError;
use crate::workload::{
    Changes, Member, Suite, Workload, WorkloadError, builtin, builtin_names, builtin_suite, builtin_suites,
    is_suite, parse, parse_suite,
};
use std::path::{Path, PathBuf};

/// What a name stands for.
pub enum Named {
    /// A workload.
    One(Box<Workload>),
    /// A suite, and the folder that its paths begin at.
    Suite(Suite, PathBuf),
}

/// The names of all that is built in, workloads first.
pub fn known() -> Vec<&'static str> {
    builtin_names().iter().chain(builtin_suites()).map(|(name, _)| *name).collect()
}

/// The workload or suite of a name, or of a file (its name ends in `.toml` or has a `/`).
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
    /// What people typed, without the path.
    pub fn name(&self) -> &str {
        match self {
            Named::One(workload) => &workload.name,
            Named::Suite(suite, _) => &suite.name,
        }
    }

    /// The workloads as they are to be run.
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

/// A workload that a suite names.
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
