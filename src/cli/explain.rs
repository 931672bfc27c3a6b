//! `kvdyno explain WORKLOAD`: describes a workload or suite in plain English.

use super::error::CliError;
use super::workloads::{ChangeArgs, Named, named};

/// Describe a workload or suite in plain English.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Workload or suite: a name (see `kvdyno workloads`) or a TOML file.
    workload: String,
    #[command(flatten)]
    changes: ChangeArgs,
}

/// Prints the description.
pub fn run(args: &ExplainArgs) -> Result<u8, CliError> {
    let named = named(&args.workload)?;
    let members = named.members(&args.changes.changes(None)?)?;
    let texts: Vec<String> = match &named {
        Named::Suite(suite, _) => vec![suite.explain(&members)],
        Named::One(_) => members.iter().map(|member| member.workload.explain()).collect(),
    };
    print!("{}", texts.join(&format!("\n{}\n", "-".repeat(80))));
    Ok(0)
}
