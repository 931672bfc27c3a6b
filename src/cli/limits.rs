//! The flags that hold a trial's process: a cap on its memory, its CPUs, its NUMA node.

use super::error::CliError;
use crate::measure::{MemoryCap, Placement, placement::parse_cpu_list};
use crate::results::Trial;

/// What each trial's process may use of the machine.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits of each trial's process")]
pub struct LimitArgs {
    /// Cap all of its memory, page cache and harness included, by a control group: `512MiB`.
    #[arg(long, value_name = "BYTES", value_parser = crate::workload::parse_bytes)]
    pub memory: Option<u64>,
    /// Run on these CPUs only, threads of the engine included: `0-3,6`.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<String>,
    /// Run on the CPUs of this NUMA node (or on --cpus), with its memory only.
    #[arg(long, value_name = "N")]
    numa_node: Option<u32>,
    /// Let keys, values and out buffers end at guard pages, where a driver dies that reads or writes beyond one. That
    /// costs time: compare such figures with their like only.
    #[arg(long)]
    paranoid: bool,
}

fn cpus(text: &str) -> Result<String, String> {
    parse_cpu_list(text).map(|_| text.to_string())
}

impl LimitArgs {
    /// How many CPUs each trial may use; none: as many as this process.
    pub fn cpu_count(&self) -> Option<u32> {
        self.placement().cpu_count()
    }

    fn placement(&self) -> Placement {
        Placement { cpus: self.cpus.clone(), numa_node: self.numa_node }
    }

    /// Writes into the trials of a plan where they are held.
    pub fn hold(&self, trials: &mut [Trial]) {
        for trial in trials {
            trial.placement = self.placement();
            trial.paranoid = self.paranoid;
        }
    }
}

/// Refuses, before anything is measured, limits that cannot be had on this machine or by this user.
pub fn check(trials: &[Trial]) -> Result<(), CliError> {
    if let Some(bytes) = trials.iter().filter_map(|trial| trial.workload.memory_bytes).max() {
        MemoryCap::create(bytes).map_err(|reason| {
            CliError::failed(format!("memory cannot be capped: {reason}")).hint(
                "run as root, or in a group of your own: `systemd-run --user --scope -p Delegate=yes kvdyno ...`; \
                 `kvdyno doctor` shows whether it works",
            )
        })?;
    }
    let mut tried: Vec<&Placement> = Vec::new();
    for placement in trials.iter().map(|trial| &trial.placement) {
        if !tried.contains(&placement) {
            placement.probe().map_err(CliError::usage)?;
            tried.push(placement);
        }
    }
    Ok(())
}
