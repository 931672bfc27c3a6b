//! `kvdyno completions SHELL`: prints a shell completion script.

use super::error::CliError;
use clap::CommandFactory;

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell to generate the script for.
    shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "kvdyno", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(0)
}
