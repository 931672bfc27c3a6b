//! `kvdyno trial FILE`: one trial in this process, started by `run`.

use super::error::CliError;
use std::path::PathBuf;

/// Run the task in a file.
#[derive(Debug, clap::Args)]
pub struct TrialArgs {
    /// The task.
    file: PathBuf,
}

/// Runs it.
pub fn run(args: &TrialArgs) -> Result<u8, CliError> {
    crate::runner::run_task(&args.file).map_err(CliError::failed).map(|()| 0)
}
