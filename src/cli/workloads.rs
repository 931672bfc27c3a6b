//! `kvdyno workloads [NAME]`: lists workloads and suites, or prints one.

use super::error::CliError;
use super::named;
use crate::workload::{builtin_names, builtin_suites, builtin_text};

/// List the workloads and suites, or print one.
#[derive(Debug, clap::Args)]
pub struct WorkloadsArgs {
    /// Print the TOML file of this workload or suite, as a starting point for your own.
    name: Option<String>,
}

/// Prints the list or one file.
pub fn run(args: &WorkloadsArgs) -> Result<u8, CliError> {
    let Some(name) = &args.name else {
        let width = named::known().iter().map(|name| name.len()).max().unwrap_or(0);
        for (name, about) in builtin_names() {
            println!("{name:width$}  {about}");
        }
        println!("\nsuites (several workloads, with the engines to compare):");
        for (name, about) in builtin_suites() {
            println!("{name:width$}  {about}");
        }
        return Ok(0);
    };
    match builtin_text(name) {
        Some(text) => {
            print!("{text}");
            Ok(0)
        }
        None => Err(super::args::unknown("workload", name, &named::known(), "kvdyno workloads")),
    }
}
