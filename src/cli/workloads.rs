//! `kvdyno workloads [NAME]`.

use super::error::CliError;
use super::named;
use crate::workload::{builtin_names, builtin_suites, builtin_text};

/// List the workloads and suites, or print one.
#[derive(Debug, clap::Args)]
pub struct WorkloadsArgs {
    /// A workload or a suite: its file is printed, ready to be copied and changed.
    name: Option<String>,
}

/// Prints them.
pub fn run(args: &WorkloadsArgs) -> Result<u8, CliError> {
    let Some(name) = &args.name else {
        let width = named::known().iter().map(|name| name.len()).max().unwrap_or(0);
        for (name, about) in builtin_names() {
            println!("{name:width$}  {about}");
        }
        println!("\nsuites, each of several workloads on the engines of a comparison:");
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
