//! The machine of a measurement: permanent facts and current conditions. Contains no names of hosts, people or
//! folders, because records are published.

#![allow(unsafe_code, reason = "system calls")]

mod processor;
#[cfg(test)]
mod tests;

use super::cgroup::{Cgroups, Limit};
use super::clock::kernel_clock_source;
use super::disk::free_bytes;
use super::file_system::{FileSystemFacts, chosen, file_system};
use super::noise::load_average;
use super::resources::{number_after, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The machine. Each field is absent where the system does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Model of the processor.
    pub cpu_model: Option<String>,
    /// CPUs (hardware threads) in use by the system.
    pub cpus: Option<u64>,
    /// CPUs that this process may use, by its affinity and its control group.
    pub cpus_allowed: Option<u64>,
    /// Processor packages.
    pub sockets: Option<u64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space, bytes.
    pub swap_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Operating system with its version.
    pub os: Option<String>,
    /// Instruction set: `x86_64`, `aarch64` ...
    pub architecture: String,
    /// Hypervisor, if it runs in one; none: on bare metal, or not known.
    pub virtualisation: Option<String>,
    /// The hypervisor that the machine runs in; absent on bare metal, or if unknown.
    pub governor: Option<String>,
    /// Whether the CPU may run faster than its nominal rate for a while.
    pub turbo: Option<bool>,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// The soft limit on open files of this process.
    pub open_files_soft: Option<Limit>,
    /// The hard limit on open files.
    pub open_files_hard: Option<Limit>,
    /// The soft limit on locked memory, bytes.
    pub locked_memory_soft_bytes: Option<Limit>,
    /// The hard limit on locked memory, bytes.
    pub locked_memory_hard_bytes: Option<Limit>,
    /// Control groups: `v1`, `v2` or `v1+v2`.
    pub cgroup_versions: Option<String>,
    /// Memory limit of this process's control group, bytes.
    pub cgroup_memory_bytes: Option<Limit>,
    /// CPU limit of this process's control group, thousandths of one CPU.
    pub cgroup_cpu_thousandths: Option<Limit>,
    /// The file system of the data path.
    pub file_system: Option<FileSystemFacts>,
    /// Build of this tool: `release`, or `debug` (without optimization or with debug assertions).
    pub tool_build: String,
}

impl Machine {
    /// Examines the machine. Reads about thirty small files: about 1 ms.
    pub fn observe(data_path: &Path) -> Self {
        let processor = processor::Processor::observe();
        let memory = read("/proc/meminfo").unwrap_or_default();
        let kibibytes = |name| number_after(&memory, name)?.checked_mul(1024);
        let groups = Cgroups::of_this_process();
        let open_files = OwnLimit::OpenFiles.read();
        let locked_memory = OwnLimit::LockedMemory.read();
        Self {
            cpu_model: processor.model,
            cpus: processor.cpus,
            cpus_allowed: std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u64),
            sockets: processor.sockets,
            memory_bytes: kibibytes("MemTotal:"),
            swap_bytes: kibibytes("SwapTotal:"),
            kernel: word("/proc/sys/kernel/osrelease"),
            os: os(),
            architecture: std::env::consts::ARCH.into(),
            virtualisation: processor.hypervisor,
            governor: word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            turbo: processor.turbo,
            transparent_huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|text| chosen(&text)),
            clock_source: kernel_clock_source(),
            open_files_soft: open_files.map(|(soft, _)| soft),
            open_files_hard: open_files.map(|(_, hard)| hard),
            locked_memory_soft_bytes: locked_memory.map(|(soft, _)| soft),
            locked_memory_hard_bytes: locked_memory.map(|(_, hard)| hard),
            cgroup_versions: groups.versions(),
            cgroup_memory_bytes: groups.memory_limit_bytes(),
            cgroup_cpu_thousandths: groups.cpu_limit_thousandths(),
            file_system: file_system(data_path),
            tool_build: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
        }
    }
}

/// A random number that the kernel draws when it starts: the same for all processes and containers of the machine until the next
/// boot, and different on each machine. It is not part of records. `None` if unknown.
pub fn boot_id() -> Option<String> {
    word("/proc/sys/kernel/random/boot_id")
}

/// Conditions that may change within a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Load average of the last minute: threads that were running or ready to run.
    pub load: Option<f64>,
    /// Memory available without swapping, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Space that this user may still write on the file system of the data path, bytes.
    pub disk_free_bytes: Option<u64>,
}

impl Conditions {
    /// Examines the current conditions.
    pub fn observe(data_path: &Path) -> Self {
        let memory = read("/proc/meminfo").unwrap_or_default();
        let available = number_after(&memory, "MemAvailable:");
        Self {
            load: load_average(),
            memory_available_bytes: available.and_then(|kibibytes| kibibytes.checked_mul(1024)),
            disk_free_bytes: free_bytes(data_path),
        }
    }
}

/// A limit of this process, which the processes that it starts inherit.
pub(super) enum OwnLimit {
    OpenFiles,
    LockedMemory,
    /// Of the user.
    Processes,
    AddressSpace,
    Data,
    FileSize,
    Stack,
}

impl OwnLimit {
    #[cfg(unix)]
    #[allow(clippy::unnecessary_cast, reason = "its type differs between C libraries")]
    fn number(&self) -> u32 {
        match self {
            Self::OpenFiles => libc::RLIMIT_NOFILE as u32,
            Self::LockedMemory => libc::RLIMIT_MEMLOCK as u32,
            Self::Processes => libc::RLIMIT_NPROC as u32,
            Self::AddressSpace => libc::RLIMIT_AS as u32,
            Self::Data => libc::RLIMIT_DATA as u32,
            Self::FileSize => libc::RLIMIT_FSIZE as u32,
            Self::Stack => libc::RLIMIT_STACK as u32,
        }
    }

    /// The soft limit; `None`: there is none, or it is unknown.
    pub(super) fn soft(self) -> Option<u64> {
        match self.read()? {
            (Limit::At(limit), _) => Some(limit),
            (Limit::Unlimited, _) => None,
        }
    }

    /// The soft and the hard limit.
    #[cfg(unix)]
    #[allow(clippy::unnecessary_cast, reason = "the fields' widths differ between systems")]
    pub(super) fn read(self) -> Option<(Limit, Limit)> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a live rlimit.
        let outcome = unsafe { libc::getrlimit(self.number() as _, &mut limit) };
        let of = |value: libc::rlim_t| {
            if value == libc::RLIM_INFINITY { Limit::Unlimited } else { Limit::At(value as u64) }
        };
        (outcome == 0).then(|| (of(limit.rlim_cur), of(limit.rlim_max)))
    }

    /// Sets the soft limit; `false` if that was refused.
    #[cfg(unix)]
    pub(super) fn set_soft(self, soft: u64, hard: Limit) -> bool {
        let rlim_max = if let Limit::At(hard) = hard { hard as libc::rlim_t } else { libc::RLIM_INFINITY };
        let limit = libc::rlimit { rlim_cur: soft as libc::rlim_t, rlim_max };
        // SAFETY: the pointer is to a live rlimit.
        unsafe { libc::setrlimit(self.number() as _, &limit) == 0 }
    }

    #[cfg(not(unix))]
    pub(super) fn set_soft(self, _soft: u64, _hard: Limit) -> bool {
        false
    }

    #[cfg(not(unix))]
    pub(super) fn read(self) -> Option<(Limit, Limit)> {
        None
    }
}

/// Allows this process to open `wanted` files at once, up to the hard limit. Returns the new limit; `None` if
/// unknown.
pub fn raise_open_files(wanted: u64) -> Option<u64> {
    let (soft, hard) = OwnLimit::OpenFiles.read()?;
    let (Limit::At(soft), hard) = (soft, hard) else { return Some(u64::MAX) };
    let most = match hard {
        Limit::At(hard) => hard.min(wanted),
        Limit::Unlimited => wanted,
    };
    if most <= soft {
        return Some(soft);
    }
    Some(if OwnLimit::OpenFiles.set_soft(most, hard) { most } else { soft })
}

/// A file that contains one word or line.
fn word(path: &str) -> Option<String> {
    let text = read(path)?;
    Some(text.trim().to_owned()).filter(|word| !word.is_empty())
}

fn os() -> Option<String> {
    match read("/etc/os-release").as_deref().and_then(parse_os) {
        Some(name) => Some(name),
        None => Some(std::env::consts::OS.to_owned()).filter(|name| !name.is_empty()),
    }
}

fn parse_os(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}
