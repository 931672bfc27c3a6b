//! `kvdyno completions SHELL`.

use super::error::CliError;
use clap::CommandFactory;

/// Print a completion script.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh.
    shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "kvdyno", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(0)
}
