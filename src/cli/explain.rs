//! `kvdyno explain WORKLOAD`.

use super::error::CliError;
use super::named::{Named, named};
use super::sizes::Sizes;

/// Say in plain words what a workload or a suite does.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// A workload or suite: a name (`kvdyno workloads`) or a TOML file.
    workload: String,
    #[command(flatten)]
    sizes: Sizes,
}

/// Prints it.
pub fn run(args: &ExplainArgs) -> Result<u8, CliError> {
    let named = named(&args.workload)?;
    let members = named.members(&args.sizes.changes(None)?)?;
    let texts: Vec<String> = match &named {
        Named::Suite(suite, _) => vec![suite.explain(&members)],
        Named::One(_) => members.iter().map(|member| member.workload.explain()).collect(),
    };
    print!("{}", texts.join(&format!("\n{}\n", "-".repeat(80))));
    Ok(0)
}
