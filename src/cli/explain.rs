//! `kvdyno workloads NAME`: describes a workload or suite in plain English.

use super::error::CliError;
use super::workloads::{ChangeArgs, Named, named};

/// The former command `kvdyno explain`.
#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// Workload or suite: a name (see `kvdyno workloads`) or a TOML file.
    pub workload: String,
    #[command(flatten)]
    pub changes: ChangeArgs,
}

/// Prints the description.
pub(super) fn run(workload: &str, changes: &ChangeArgs) -> Result<u8, CliError> {
    let named = named(workload)?;
    let members = named.members(&changes.changes(None)?)?;
    let texts: Vec<String> = match &named {
        Named::Suite(suite, _) => vec![suite.explain(&members)],
        Named::One(_) => members.iter().map(|member| member.workload.explain()).collect(),
    };
    print!("{}", texts.join(&format!("\n{}\n", "-".repeat(80))));
    Ok(0)
}
