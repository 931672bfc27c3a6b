//! `kvdyno workloads [NAME]`: lists workloads and suites, or prints one.

use super::error::CliError;
use super::named;
use crate::text::Table;
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
        let (workloads, suites) = (builtin_names(), builtin_suites());
        let mut table = Table::untitled(2);
        for (name, about) in workloads.iter().chain(suites) {
            table.push(vec![name.to_string(), about.to_string()]);
        }
        let lines = table.lines();
        let (workloads, suites) = lines.split_at(workloads.len());
        println!("{}\n\nsuites (several workloads, with the engines to compare):", workloads.join("\n"));
        println!("{}", suites.join("\n"));
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
