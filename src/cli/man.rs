//! `kvdyno man`: prints the manual page.

use super::error::CliError;
use clap::CommandFactory;

/// Prints the manual page of kvdyno, followed by those of its commands.
pub fn run() -> Result<u8, CliError> {
    let mut command = super::Cli::command();
    command.build();
    let mut pages = vec![command.clone()];
    pages.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    for page in pages {
        let mut text = Vec::new();
        clap_mangen::Man::new(page)
            .render(&mut text)
            .map_err(|error| CliError::failed(format!("cannot write the manual page: {error}")))?;
        print!("{}", String::from_utf8_lossy(&text));
    }
    Ok(0)
}
