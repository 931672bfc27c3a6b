//! Decides which warnings the facts cause.

use super::{Concern, Warning};
use crate::cgroup::Limit;
use crate::clock::ClockFacts;
use crate::machine::{Conditions, Machine};
use crate::noise::Noise;
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
/// Limits above which a trial has a warning.
const STEAL_LIMIT: f64 = 0.01;
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

/// The warnings about disturbance in a trial.
pub fn warnings_of_noise(noise: &Noise) -> Vec<Warning> {
    let over = |share: Option<f64>, limit: f64| share.filter(|share| *share > limit).map(share_text);
    let stolen = over(noise.steal_share, STEAL_LIMIT).map(|share| {
        Concern::Steal.because(format!("The hypervisor gave {share} of the CPUs' time to other guests."))
    });
    let other = over(noise.other_cpu_share, OTHER_WORK_LIMIT).map(|share| {
        Concern::OtherWork.because(format!("Other processes and the kernel used {share} of the CPUs."))
    });
    [stolen, other].into_iter().flatten().collect()
}
