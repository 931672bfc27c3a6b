//! `kvdyno workloads [NAME]`.

use super::error::CliError;
use crate::workload::{builtin_names, builtin_text};

/// List the workloads, or print one.
#[derive(Debug, clap::Args)]
pub struct WorkloadsArgs {
    /// A workload: its file is printed, ready to be copied and changed.
    name: Option<String>,
}

/// Prints them.
pub fn run(args: &WorkloadsArgs) -> Result<u8, CliError> {
    let Some(name) = &args.name else {
        let width = builtin_names().iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, about) in builtin_names() {
            println!("{name:width$}  {about}");
        }
        return Ok(0);
    };
    match builtin_text(name) {
        Some(text) => {
            print!("{text}");
            Ok(0)
        }
        None => {
            let known: Vec<&str> = builtin_names().iter().map(|(name, _)| *name).collect();
            Err(super::args::unknown("workload", name, &known, "kvdyno workloads"))
        }
    }
}
