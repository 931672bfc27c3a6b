//! `kvdyno man`: prints the manual pages, or writes one file per command.

use super::error::CliError;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::path::PathBuf;

/// Print the manual pages.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Write each page into its own file in DIR (kvdyno.1, kvdyno-run.1, ...) instead of printing them.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes the manual page of kvdyno and those of its commands.
pub(super) fn run(args: &ManArgs) -> Result<u8, CliError> {
    // The pages of `kvdyno help` would only repeat the list of commands.
    let mut root = super::Cli::command().disable_help_subcommand(true);
    root.build();
    let mut commands = Vec::new();
    collect(&root, &mut commands);
    if let Some(folder) = &args.dir {
        fs::create_dir_all(folder).map_err(CliError::cannot("create", folder))?;
    }
    for command in commands {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
        let file = args.dir.as_ref().map(|folder| folder.join(format!("{name}.1")));
        let mut text = Vec::new();
        Man::new(command)
            .title(name)
            .source(concat!("kvdyno ", env!("CARGO_PKG_VERSION")))
            .render(&mut text)
            .map_err(|error| CliError::failed(format!("cannot write the manual page: {error}")))?;
        match file {
            Some(file) => fs::write(&file, text).map_err(CliError::cannot("write", &file))?,
            None => print!("{}", String::from_utf8_lossy(&text)),
        }
    }
    Ok(0)
}

/// A command, then those below it, except for internal ones.
fn collect(command: &Command, found: &mut Vec<Command>) {
    found.push(command.clone());
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        collect(inner, found);
    }
}
