//! `kvdyno inner TASK`: runs a task in this process. Started by other processes of kvdyno.

use super::error::CliError;
use super::redis_benchmark::RedisBenchmarkTask;
use super::{prove, versions};
use kvdyno_core::engine::PluginsTask;
use kvdyno_core::runner::TrialTask;
use kvdyno_measure::inner::{Given, Kind};
use kvdyno_prove::{crash, faults, syncs};

/// Run a task in this process.
#[derive(Debug, clap::Args)]
pub(super) struct InnerArgs {
    /// The task as JSON.
    task: Given,
}

/// Runs the task.
pub(super) fn run(InnerArgs { task }: InnerArgs) -> Result<u8, CliError> {
    match task.kind {
        Kind::Trial => task.run::<TrialTask>(),
        Kind::RedisBenchmark => task.run::<RedisBenchmarkTask>(),
        Kind::Plugins => task.run::<PluginsTask>(),
        Kind::Version => task.run::<versions::VersionTask>(),
        Kind::Verify => task.run::<prove::VerifyTask>(),
        Kind::VerifyReopened => task.run::<prove::ReopenedTask>(),
        Kind::Audit => task.run::<syncs::Pass>(),
        Kind::Faults => task.run::<faults::Pass>(),
        Kind::CrashWorker => task.run::<crash::WorkerTask>(),
        Kind::CrashCalls => task.run::<crash::CallsTask>(),
        Kind::CrashDevice => task.run::<crash::DeviceTask>(),
        Kind::CrashVerifier => task.run::<crash::VerifierTask>(),
        Kind::CrashReader => task.run::<crash::ReaderTask>(),
    }
    .map_err(CliError::failed)
}
