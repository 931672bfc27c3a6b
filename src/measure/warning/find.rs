//! Which warnings the facts give rise to.

use super::{Concern, Warning};
use crate::measure::cgroup::Limit;
use crate::measure::clock::ClockFacts;
use crate::measure::machine::{Conditions, Machine};
use crate::measure::noise::Noise;
use crate::measure::units::{bytes_text, share_text, time_text};

/// Less than this on the disk is little: the largest built-in workload takes about half of it in the greediest engine.
const LITTLE_DISK_BYTES: u64 = 4 << 30;
const LITTLE_MEMORY_BYTES: u64 = 1 << 30;
/// RocksDB and other LSM trees keep thousands of tables open.
const FEW_FILES: u64 = 4096;
/// More than this share of the CPUs busy with something else shows in the figures.
const BUSY_SHARE: f64 = 0.5;
const COSTLY_CLOCK_NS: f64 = 60.0;
/// Limits of disturbance from which a repetition counts as disturbed.
const RUN_DELAY_LIMIT: f64 = 0.02;
const STEAL_LIMIT: f64 = 0.01;
const DRIFT_LIMIT: f64 = 0.03;
const OTHER_WORK_LIMIT: f64 = 0.10;

/// The warnings that a machine gives rise to before anything is measured.
pub fn warnings_of(machine: &Machine, conditions: &Conditions, clock: Option<&ClockFacts>) -> Vec<Warning> {
    let mut found = Vec::new();
    if machine.tool_build != "release" {
        found.push(Concern::DebugBuild.because("This tool was built without optimisation."));
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
        found.push(Concern::CpuQuota.because(format!("The control group allows {cpus} CPUs' time.")));
    }
}

fn of_memory(machine: &Machine, conditions: &Conditions, found: &mut Vec<Warning>) {
    if let Some(bytes) = conditions.memory_available_bytes.filter(|&bytes| bytes < LITTLE_MEMORY_BYTES) {
        found.push(Concern::LowMemory.because(format!("Only {} of memory are left.", bytes_text(bytes))));
    }
    if let Some(bytes) = machine.swap_bytes.filter(|&bytes| bytes > 0) {
        found
            .push(Concern::Swap.because(format!("{} of swap space are in use or ready.", bytes_text(bytes))));
    }
    let whole = machine.memory_bytes.map_or(Limit::Unlimited, Limit::At);
    if let Some(limit @ Limit::At(bytes)) = machine.cgroup_memory_bytes
        && limit < whole
    {
        let text = format!("The control group limits memory to {}.", bytes_text(bytes));
        found.push(Concern::MemoryLimit.because(text));
    }
    if machine.transparent_huge_pages.as_deref() == Some("always") {
        found.push(Concern::HugePages.because("Transparent huge pages are given without being asked for."));
    }
}

fn of_files(machine: &Machine, conditions: &Conditions, found: &mut Vec<Warning>) {
    if let Some(facts) = machine.file_system.as_ref().filter(|facts| facts.is_memory) {
        let text = format!("The data path is on {}, which lives in memory.", facts.kind);
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

/// The warnings that the clock gives rise to.
pub fn warnings_of_clock(clock: &ClockFacts) -> Vec<Warning> {
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
        let text = format!("The clock went backward {steps} times when a time was handed to another CPU.");
        found.push(Concern::ClockStepsBack.because(text));
    }
    found
}

/// The warnings that disturbance in a trial gives rise to; none: it was quiet as far as the kernel tells.
pub fn warnings_of_noise(noise: &Noise) -> Vec<Warning> {
    let over = |share: Option<f64>, limit: f64| share.filter(|share| share.abs() > limit);
    let mut found = Vec::new();
    if let Some(share) = over(noise.steal_share, STEAL_LIMIT) {
        let text = format!("The hypervisor gave {} of the CPUs' time to others.", share_text(share));
        found.push(Concern::Steal.because(text));
    }
    if let Some(share) = over(noise.run_delay_share, RUN_DELAY_LIMIT) {
        let text = format!("Threads waited for a CPU in {} of the time they wanted one.", share_text(share));
        found.push(Concern::RunDelay.because(text));
    }
    if let Some(share) = over(noise.other_cpu_share, OTHER_WORK_LIMIT) {
        let text = format!("Other processes and the kernel used {} of the CPUs.", share_text(share));
        found.push(Concern::OtherWork.because(text));
    }
    if let Some(share) = over(noise.spin_drift_share, DRIFT_LIMIT) {
        let direction = if share > 0.0 { "longer" } else { "less" };
        let text =
            format!("A fixed loop took {} {direction} at the end than at first.", share_text(share.abs()));
        found.push(Concern::SpinDrift.because(text));
    }
    found
}
