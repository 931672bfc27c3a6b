//! The processor: model, CPUs, sockets, turbo, and the hypervisor, if any.

use super::super::resources::read;
use super::word;
use std::collections::BTreeSet;

/// Facts about the processor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Processor {
    pub(super) model: Option<String>,
    pub(super) cpus: Option<u64>,
    pub(super) sockets: Option<u64>,
    pub(super) turbo: Option<bool>,
    pub(super) hypervisor: Option<String>,
}

impl Processor {
    pub(super) fn observe() -> Self {
        let text = read("/proc/cpuinfo").unwrap_or_default();
        Self { cpus: online_cpus(), turbo: turbo(), hypervisor: hypervisor(&text), ..Self::parse(&text) }
    }

    /// Facts from `/proc/cpuinfo`. On Arm it has numbers instead of a model name.
    fn parse(text: &str) -> Self {
        let arm = || {
            let (maker, part) = (value(text, "CPU implementer")?, value(text, "CPU part")?);
            Some(format!("implementer {maker}, part {part}"))
        };
        let packages: BTreeSet<&str> = values(text, "physical id").collect();
        Self {
            model: value(text, "model name").map(str::to_owned).or_else(arm),
            sockets: (!packages.is_empty()).then_some(packages.len() as u64),
            ..Self::default()
        }
    }
}

/// The values of all lines `name : value`.
fn values<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn value<'a>(text: &'a str, name: &'a str) -> Option<&'a str> {
    values(text, name).find(|value| !value.is_empty())
}

#[cfg(unix)]
fn online_cpus() -> Option<u64> {
    // SAFETY: sysconf only reads a number.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u64::try_from(cpus).ok().filter(|&cpus| cpus > 0)
}

#[cfg(not(unix))]
fn online_cpus() -> Option<u64> {
    None
}

/// Intel's driver reports when turbo is off, the others when it is on.
fn turbo() -> Option<bool> {
    let folder = "/sys/devices/system/cpu";
    let off = word(&format!("{folder}/intel_pstate/no_turbo")).map(|text| text == "0");
    off.or_else(|| word(&format!("{folder}/cpufreq/boost")).map(|text| text == "1"))
}

/// The hypervisor's name, or that there is one; `None` if none is detected.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let says_so =
        value(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let maker = word("/sys/class/dmi/id/sys_vendor").filter(|maker| is_virtual_maker(maker));
    let by_processor = says_so.then(|| signature().unwrap_or_else(|| "unknown hypervisor".into()));
    match (by_processor, maker) {
        (Some(name), Some(maker)) => Some(format!("{name} ({maker})")),
        (name, maker) => name.or(maker).or_else(|| word("/sys/hypervisor/type")),
    }
}

fn is_virtual_maker(maker: &str) -> bool {
    let makers =
        ["QEMU", "Amazon EC2", "Google", "VMware", "innotek", "Xen", "Parallels", "Apple Virtualization"];
    makers.iter().any(|known| maker.starts_with(known))
}

/// The twelve letters of the hypervisor's name in cpuid leaf 0x40000000.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    // A safe function in newer compilers.
    #[allow(unused_unsafe, reason = "safe in newer versions of std")]
    // SAFETY: every x86-64 processor has cpuid, and the flag `hypervisor` guarantees this leaf.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    let letters = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let known = [
        ("KVMKVMKVM", "KVM"),
        ("Microsoft Hv", "Hyper-V"),
        ("VMwareVMware", "VMware"),
        ("XenVMMXenVMM", "Xen"),
        ("bhyve bhyve ", "bhyve"),
        ("TCGTCGTCGTCG", "QEMU without acceleration"),
    ];
    let found = known.iter().find(|(word, _)| letters.starts_with(word.as_bytes()));
    found.map(|(_, name)| (*name).to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::{Processor, is_virtual_maker};

    #[test]
    fn reads_the_model_and_counts_sockets() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nphysical id\t: 0\n\n\
                    processor\t: 1\nmodel name\t: AMD EPYC\nphysical id\t: 1\n";
        let processor = Processor::parse(text);
        assert_eq!((processor.model.as_deref(), processor.sockets), (Some("AMD EPYC"), Some(2)));
    }

    #[test]
    fn arm_processors_have_numbers_and_unknown_ones_nothing() {
        let arm = Processor::parse("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
        assert_eq!((arm.model.as_deref(), arm.sockets), (Some("implementer 0x41, part 0xd0c"), None));
        assert_eq!(Processor::parse("no colon"), Processor::default());
    }

    #[test]
    fn makers_of_real_machines_are_no_hypervisors() {
        assert!(is_virtual_maker("QEMU") && !is_virtual_maker("Dell Inc."));
    }
}
