//! `kvdyno completions SHELL`: prints a shell completion script.

use super::error::CliError;
use clap::CommandFactory;

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// Shell to generate the script for.
    shell: clap_complete::Shell,
}

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs) -> Result<u8, CliError> {
    // Generated from a definition without the internal commands, because scripts offer hidden commands too.
    let all = super::Cli::command();
    let mut shown = clap::Command::new("kvdyno")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "kvdyno", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(0)
}
