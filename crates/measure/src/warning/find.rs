//! Decides which warnings the facts cause.

use super::{Concern, Warning};
use crate::cgroup::Limit;
use crate::clock::ClockFacts;
use crate::machine::{Conditions, Machine};
use crate::noise::{Noise, PhaseNoise};
use crate::text::{bytes_text, share_text, time_text};

/// Less than this on the disk is too little: the largest built-in workload takes about half of it in the engine that
/// uses most.
const LITTLE_DISK_BYTES: u64 = 4 << 30;
const LITTLE_MEMORY_BYTES: u64 = 1 << 30;
/// RocksDB and other LSM trees keep thousands of tables open.
const FEW_FILES: u64 = 4096;
/// If a larger share than this of the CPUs is busy with something else, results are affected.
const BUSY_SHARE: f64 = 0.5;
const COSTLY_CLOCK_NS: f64 = 60.0;
/// Limits above which a run counts as disturbed.
const RUN_DELAY_LIMIT: f64 = 0.02;
const STEAL_LIMIT: f64 = 0.01;
const DRIFT_LIMIT: f64 = 0.03;
const OTHER_WORK_LIMIT: f64 = 0.10;

/// The warnings about a machine before anything is measured.
pub fn warnings_of(machine: &Machine, conditions: &Conditions, clock: Option<&ClockFacts>) -> Vec<Warning> {
    let mut found = Vec::new();
    if machine.tool_build != "release" {
        found.push(Concern::DebugBuild.because("This tool was built without optimization."));
    }
    of_processor(machine, conditions, &mut found);
    of_memory(machine, conditions, &mut found);
    of_files(machine, conditions, &mut found);
    found.extend(clock.map(warnings_of_clock).unwrap_or_default());
    found
}

fn of_processor(machine: &Machine, conditions: &Conditions, found: &mut Vec<Warning>) {
    if let (Some(load), Some(cpus)) = (conditions.load, machine.cpus)
        && load > cpus as f64 * BUSY_SHARE
    {
        found.push(
            Concern::Load.because(format!("Other work is running: load average {load} on {cpus} CPUs.")),
        );
    }
    if let Some(governor) = machine.governor.as_deref().filter(|governor| *governor != "performance") {
        found.push(Concern::Governor.because(format!("The frequency governor is {governor}.")));
    }
    if machine.turbo == Some(true) {
        found.push(Concern::Turbo.because("The CPUs may run faster than their nominal rate for a while."));
    }
    if let Some(name) = &machine.virtualisation {
        found.push(Concern::VirtualMachine.because(format!("This is a virtual machine: {name}.")));
    }
    if let Some(Limit::At(thousandths)) = machine.cgroup_cpu_thousandths {
        let cpus = thousandths as f64 / 1000.0;
        found.push(Concern::CpuQuota.because(format!("The control group limits CPU time to {cpus} CPUs.")));
    }
}

fn of_memory(machine: &Machine, conditions: &Conditions, found: &mut Vec<Warning>) {
    if let Some(bytes) = conditions.memory_available_bytes.filter(|&bytes| bytes < LITTLE_MEMORY_BYTES) {
        found
            .push(Concern::LowMemory.because(format!("Only {} of memory are available.", bytes_text(bytes))));
    }
    if let Some(bytes) = machine.swap_bytes.filter(|&bytes| bytes > 0) {
        found.push(Concern::Swap.because(format!("{} of swap space are enabled.", bytes_text(bytes))));
    }
    let whole = machine.memory_bytes.map_or(Limit::Unlimited, Limit::At);
    if let Some(limit @ Limit::At(bytes)) = machine.cgroup_memory_bytes
        && limit < whole
    {
        let text = format!("The control group limits memory to {}.", bytes_text(bytes));
        found.push(Concern::MemoryLimit.because(text));
    }
    if machine.transparent_huge_pages.as_deref() == Some("always") {
        found.push(Concern::HugePages.because("Transparent huge pages are always on."));
    }
}

fn of_files(machine: &Machine, conditions: &Conditions, found: &mut Vec<Warning>) {
    if let Some(facts) = machine.file_system.as_ref().filter(|facts| facts.is_memory) {
        let text = format!("The data path is on {}, which is in memory.", facts.kind);
        found.push(Concern::MemoryFileSystem.because(text));
    }
    if let Some(bytes) = conditions.disk_free_bytes.filter(|&bytes| bytes < LITTLE_DISK_BYTES) {
        let text = format!("Only {} are free on the disk of the data path.", bytes_text(bytes));
        found.push(Concern::LowDiskSpace.because(text));
    }
    if let Some(Limit::At(files)) = machine.open_files_soft
        && files < FEW_FILES
    {
        found.push(Concern::FewOpenFiles.because(format!("Only {files} files may be open at once.")));
    }
}

/// The warnings about the clock.
pub(crate) fn warnings_of_clock(clock: &ClockFacts) -> Vec<Warning> {
    let mut found = Vec::new();
    if clock.kind == "monotonic" {
        found.push(
            Concern::SlowClock.because(format!("The processor's counter is not used: {}.", clock.source)),
        );
    }
    if clock.cost_ns > COSTLY_CLOCK_NS {
        found.push(
            Concern::CostlyClock.because(format!("One clock read costs {}.", time_text(clock.cost_ns))),
        );
    }
    if let Some(steps) = clock.backward_steps.filter(|&steps| steps > 0) {
        let text = format!("The clock went backward {steps} times when a time was passed to another CPU.");
        found.push(Concern::ClockStepsBack.because(text));
    }
    found
}

/// A disturbance that is over its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    /// Its kind.
    pub concern: Concern,
    /// How large it was.
    pub share: f64,
}

impl Disturbance {
    /// The observation, a sentence without its full stop.
    fn seen(&self) -> String {
        let share = share_text(self.share.abs());
        match self.concern {
            Concern::Steal => format!("The hypervisor gave {share} of the CPUs' time to other guests"),
            Concern::RunDelay => {
                format!("Threads that were ready to run waited for a CPU in {share} of the time")
            }
            Concern::OtherWork => format!("Other processes and the kernel used {share} of the CPUs"),
            _ => {
                let direction = if self.share > 0.0 { "more time" } else { "less time" };
                format!("A fixed loop took {share} {direction} at the end than at the beginning")
            }
        }
    }

    /// The same in a few words, for a table row: `run delay 48 %`.
    pub fn words(&self) -> String {
        let share = share_text(self.share.abs());
        match self.concern {
            Concern::Steal => format!("steal {share}"),
            Concern::RunDelay => format!("run delay {share}"),
            Concern::OtherWork => format!("other programs {share}"),
            _ if self.share > 0.0 => format!("CPUs {share} slower at the end"),
            _ => format!("CPUs {share} faster at the end"),
        }
    }
}

fn over(concern: Concern, share: Option<f64>, limit: f64) -> Option<Disturbance> {
    let share = share.filter(|share| share.abs() > limit)?;
    Some(Disturbance { concern, share })
}

/// The disturbances of a phase; empty if none is known.
pub fn disturbances_of_phase(noise: &PhaseNoise) -> Vec<Disturbance> {
    let all = [
        over(Concern::Steal, noise.steal_share, STEAL_LIMIT),
        over(Concern::RunDelay, noise.run_delay_share, RUN_DELAY_LIMIT),
        over(Concern::OtherWork, noise.other_cpu_share, OTHER_WORK_LIMIT),
    ];
    all.into_iter().flatten().collect()
}

/// The disturbances of a complete trial.
pub fn disturbances(noise: &Noise) -> Vec<Disturbance> {
    let whole = PhaseNoise {
        steal_share: noise.steal_share,
        run_delay_share: noise.run_delay_share,
        other_cpu_share: noise.other_cpu_share,
    };
    let mut all = disturbances_of_phase(&whole);
    all.extend(disturbance_of_speed(noise));
    all
}

/// The CPUs changed speed during a trial; phases do not measure this.
pub fn disturbance_of_speed(noise: &Noise) -> Option<Disturbance> {
    over(Concern::SpinDrift, noise.spin_drift_share, DRIFT_LIMIT)
}

/// The warnings about disturbance in a trial, in total or in one of its phases, with their names; empty if none is
/// known.
pub fn warnings_of_noise(noise: &Noise, phases: &[(&str, PhaseNoise)]) -> Vec<Warning> {
    let whole = disturbances(noise).into_iter().map(|found| (found, None));
    let in_phases = phases
        .iter()
        .flat_map(|(name, noise)| disturbances_of_phase(noise).into_iter().map(|found| (found, Some(*name))));
    let all: Vec<(Disturbance, Option<&str>)> = whole.chain(in_phases).collect();
    let kinds = [Concern::Steal, Concern::RunDelay, Concern::OtherWork, Concern::SpinDrift];
    let worst = |concern: Concern| {
        let own = all.iter().filter(move |(found, _)| found.concern == concern);
        own.max_by(|(one, _), (other, _)| one.share.abs().total_cmp(&other.share.abs()))
    };
    let warning = |(found, phase): &(Disturbance, Option<&str>)| {
        let place = phase.map_or_else(String::new, |phase| format!(" in phase {phase}"));
        found.concern.because(format!("{}{place}.", found.seen()))
    };
    kinds.into_iter().filter_map(worst).map(warning).collect()
}
