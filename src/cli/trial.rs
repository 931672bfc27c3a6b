//! `kvdyno trial FILE`: runs one trial in this process. Started by `kvdyno run`.

use super::error::CliError;
use std::path::PathBuf;

/// Run one trial in this process.
#[derive(Debug, clap::Args)]
pub struct TrialArgs {
    /// The task file.
    file: PathBuf,
}

/// Runs the task.
pub fn run(args: &TrialArgs) -> Result<u8, CliError> {
    kvdyno_core::runner::run_task(&args.file).map_err(CliError::failed).map(|()| 0)
}
