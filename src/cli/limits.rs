//! Flags that limit the process of each trial: memory, CPUs and NUMA node.

use super::error::CliError;
use crate::measure::{MemoryCap, Placement, placement::parse_cpu_list};
use crate::results::Trial;

/// Limits for the process of each trial.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits for each trial")]
pub struct LimitArgs {
    /// Limit the memory of each trial, including page cache and harness, with a control group, such as `512MiB`.
    #[arg(long, value_name = "BYTES", value_parser = crate::text::parse_bytes)]
    pub memory: Option<u64>,
    /// Run each trial, including threads of the engine, only on these CPUs, such as `0-3,6`.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<String>,
    /// Run each trial on the CPUs of NUMA node N (or on --cpus) and use only memory of that node.
    #[arg(long, value_name = "N")]
    numa_node: Option<u32>,
    /// Put a guard page after each key, value and output buffer, so that a driver that reads or writes past the end crashes.
    /// This costs time: compare the results only with those of other runs with --paranoid.
    #[arg(long)]
    paranoid: bool,
}

fn cpus(text: &str) -> Result<String, String> {
    parse_cpu_list(text).map(|_| text.to_string())
}

impl LimitArgs {
    /// How many CPUs each trial may use. `None`: as many as this process.
    pub fn cpu_count(&self) -> Option<u32> {
        self.placement().cpu_count()
    }

    fn placement(&self) -> Placement {
        Placement { cpus: self.cpus.clone(), numa_node: self.numa_node }
    }

    /// Adds the limits to the trials of a plan.
    pub fn hold(&self, trials: &mut [Trial]) {
        for trial in trials {
            trial.placement = self.placement();
            trial.paranoid = self.paranoid;
        }
    }
}

/// Refuses limits that this machine does not support or that this user may not set, before anything is measured.
pub fn check(trials: &[Trial]) -> Result<(), CliError> {
    if let Some(bytes) = trials.iter().filter_map(|trial| trial.workload.memory_bytes).max() {
        MemoryCap::create(bytes).map_err(|reason| {
            CliError::failed(format!("memory cannot be capped: {reason}")).hint(
                "run as root, or in your own control group: `systemd-run --user --scope -p Delegate=yes kvdyno ...`; \
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
