//! `kvdyno man`.

use super::error::CliError;
use clap::CommandFactory;

/// Prints the manual page, the commands' pages behind it.
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
