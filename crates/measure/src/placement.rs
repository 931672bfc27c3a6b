//! The CPUs that a process may run on, and the NUMA node of its memory. Linux only; on other systems both are
//! refused.

#![allow(unsafe_code, reason = "system calls")]

use super::resources::read;
use super::start;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;

/// Where a trial is pinned: all threads of its process, including those of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// CPUs, as Linux writes lists: `0-3,6`; absent: those of the node, or any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// The only NUMA node from which it gets memory; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
}

/// Why a process is not placed.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// A text is no list of CPUs.
    #[error("expected CPUs such as 0-3,6, got `{0}`")]
    List(String),
    /// The process may not use one of the CPUs.
    #[error("CPU {cpu} is not available; this process may use {}", cpu_list(allowed))]
    Cpu {
        /// The CPU.
        cpu: usize,
        /// Those that it may use.
        allowed: Vec<usize>,
    },
    /// The machine has no such NUMA node.
    #[error("this machine has no NUMA node {node}; it has {}", cpu_list(known))]
    Node {
        /// The node.
        node: u32,
        /// Those that it has.
        known: Vec<usize>,
    },
    /// The process may use none of the CPUs of a NUMA node.
    #[error("NUMA node {0} has no CPU that this process may use; select CPUs with --cpus")]
    NodeWithoutCpu(u32),
    /// The system does not tell the CPUs of the process.
    #[error("the CPUs of this process are unknown: {0}")]
    Unknown(io::Error),
    /// The system refuses the CPUs.
    #[error("cannot pin to CPUs {}: {error}", cpu_list(cpus))]
    Pin {
        /// The CPUs.
        cpus: Vec<usize>,
        /// The reason.
        error: io::Error,
    },
    /// The system refuses the NUMA node.
    #[error("cannot restrict memory to NUMA node {node}: {error}")]
    Memory {
        /// The node.
        node: u32,
        /// The reason.
        error: io::Error,
    },
    /// The thread that tests a placement cannot be started.
    #[error("{0}")]
    Thread(io::Error),
    /// The thread that tests a placement panicked.
    #[error("the test of the placement failed")]
    Panicked,
    /// This is another system than Linux.
    #[error("CPUs and memory can be chosen on Linux only")]
    NotLinux,
}

impl Placement {
    /// Whether no placement is requested.
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }

    /// Tests it on a thread that ends at once; `Err` describes what is not available, and what is.
    pub fn probe(&self) -> Result<(), PlacementError> {
        if self.is_free() {
            return Ok(());
        }
        std::thread::scope(|scope| {
            let thread = start::thread_in(scope, || self.apply()).map_err(PlacementError::Thread)?;
            thread.join().unwrap_or(Err(PlacementError::Panicked))
        })
    }

    /// Pins the calling thread and all threads that it starts later.
    pub fn apply(&self) -> Result<(), PlacementError> {
        if self.is_free() {
            return Ok(());
        }
        let cpus = self.cpus_here()?;
        set_affinity(&cpus).map_err(|error| PlacementError::Pin { cpus, error })?;
        match self.numa_node {
            Some(node) => bind_memory(node).map_err(|error| PlacementError::Memory { node, error }),
            None => Ok(()),
        }
    }

    /// How many CPUs it leaves a trial; `None` if it restricts nothing or is not available.
    pub fn cpu_count(&self) -> Option<u32> {
        let cpus = if self.is_free() { None } else { self.cpus_here().ok() };
        cpus.and_then(|cpus| u32::try_from(cpus.len()).ok())
    }

    fn cpus_here(&self) -> Result<Vec<usize>, PlacementError> {
        self.cpus_in(&affinity()?, |node| read(&format!("{NODES}/node{node}/cpulist")), &nodes())
    }

    /// The selected CPUs, of those that this process may use.
    fn cpus_in(
        &self,
        allowed: &[usize],
        of_node: impl Fn(u32) -> Option<String>,
        nodes: &[u32],
    ) -> Result<Vec<usize>, PlacementError> {
        let mut cpus = allowed.to_vec();
        if let Some(node) = self.numa_node {
            let known = || nodes.iter().map(|&node| node as usize).collect();
            let absent = || PlacementError::Node { node, known: known() };
            if !nodes.contains(&node) {
                return Err(absent());
            }
            let own = parse_cpu_list(of_node(node).ok_or_else(absent)?.trim()).unwrap_or_default();
            cpus.retain(|cpu| own.contains(cpu));
            if cpus.is_empty() && self.cpus.is_none() {
                return Err(PlacementError::NodeWithoutCpu(node));
            }
        }
        if let Some(text) = &self.cpus {
            cpus = parse_cpu_list(text)?;
        }
        match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(&cpu) => Err(PlacementError::Cpu { cpu, allowed: allowed.to_vec() }),
            None => Ok(cpus),
        }
    }
}

/// The CPUs that this process may run on, as Linux writes lists; `None` if unknown.
pub fn effective_cpus() -> Option<String> {
    affinity().ok().map(|cpus| cpu_list(&cpus))
}

/// Parses `0-3,6`: ascending, each CPU once.
pub fn parse_cpu_list(text: &str) -> Result<Vec<usize>, PlacementError> {
    let wrong = || PlacementError::List(text.to_string());
    let number =
        |part: &str| part.trim().parse::<usize>().ok().filter(|&cpu| cpu < MOST_CPUS).ok_or_else(wrong);
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The list as Linux writes it; the numbers ascend.
fn cpu_list(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let text = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let texts: Vec<String> = runs.iter().map(text).collect();
    if texts.is_empty() { "none".into() } else { texts.join(",") }
}

const NODES: &str = "/sys/devices/system/node";
/// The capacity of a `cpu_set_t`.
const MOST_CPUS: usize = 1024;

/// The NUMA nodes of this machine, ascending.
fn nodes() -> Vec<u32> {
    let entries = std::fs::read_dir(NODES).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok();
    let mut nodes: Vec<u32> = entries.filter_map(number).collect();
    nodes.sort_unstable();
    nodes
}

#[cfg(target_os = "linux")]
fn affinity() -> Result<Vec<usize>, PlacementError> {
    // SAFETY: all zeroes is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is live and has the given size.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Err(PlacementError::Unknown(io::Error::last_os_error()));
    }
    // SAFETY: the numbers are within the set.
    Ok((0..MOST_CPUS).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

#[cfg(target_os = "linux")]
fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all zeroes is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        // SAFETY: `parse_cpu_list` and `affinity` return numbers within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the set is live and has the given size.
    let outcome = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restricts memory that the calling thread, and all threads that it starts later, touch first to this node.
#[cfg(target_os = "linux")]
fn bind_memory(node: u32) -> io::Result<()> {
    /// From linux/mempolicy.h.
    const MPOL_BIND: libc::c_int = 2;
    const WORDS: usize = 16;
    let mut mask = [0 as libc::c_ulong; WORDS];
    let bits = libc::c_ulong::BITS;
    let Some(word) = mask.get_mut((node / bits) as usize) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    *word = 1 << (node % bits);
    // The kernel uses one bit less than the given number.
    let bits = WORDS as libc::c_ulong * libc::c_ulong::from(bits) + 1;
    // SAFETY: the mask is live and has that many bits; the kernel only reads it.
    let outcome = unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, mask.as_ptr(), bits) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Result<Vec<usize>, PlacementError> {
    Err(PlacementError::NotLinux)
}

#[cfg(not(target_os = "linux"))]
fn set_affinity(_cpus: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn bind_memory(_node: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_linux_does() {
        assert_eq!(parse_cpu_list("6,0-3,2").unwrap(), [0, 1, 2, 3, 6]);
        assert_eq!(cpu_list(&[0, 1, 2, 3, 6]), "0-3,6");
        for text in ["", "a", "3-1", "0,,1", "-1", "1024", "0-4000000000"] {
            assert!(
                parse_cpu_list(text).unwrap_err().to_string().contains(&format!("got `{text}`")),
                "{text}"
            );
        }
    }

    fn cpus(cpus: Option<&str>, numa_node: Option<u32>) -> Result<Vec<usize>, PlacementError> {
        let placement = Placement { cpus: cpus.map(String::from), numa_node };
        let of_node = |node| Some(if node == 0 { "0-3\n" } else { "\n" }.to_string());
        placement.cpus_in(&[0, 1, 2, 4], of_node, &[0, 2])
    }

    #[test]
    fn what_is_not_here_is_refused_with_what_is() {
        assert_eq!(cpus(Some("1-2"), None).unwrap(), [1, 2]);
        assert_eq!(cpus(None, Some(0)).unwrap(), [0, 1, 2]);
        assert_eq!(cpus(Some("4"), Some(0)).unwrap(), [4]);
        assert_eq!(cpus(Some("4"), Some(2)).unwrap(), [4]);
        assert_eq!(
            cpus(Some("0-3"), None).unwrap_err().to_string(),
            "CPU 3 is not available; this process may use 0-2,4"
        );
        assert_eq!(
            cpus(None, Some(1)).unwrap_err().to_string(),
            "this machine has no NUMA node 1; it has 0,2"
        );
        assert!(matches!(cpus(None, Some(2)), Err(PlacementError::NodeWithoutCpu(2))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_held_with_all_that_it_starts() {
        let first = affinity().unwrap()[0];
        let placement = Placement { cpus: Some(first.to_string()), numa_node: None };
        let inherited = std::thread::spawn(move || {
            placement.apply().unwrap();
            std::thread::spawn(effective_cpus).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), Some(first.to_string()));
        assert_eq!(Placement { cpus: Some(first.to_string()), numa_node: None }.cpu_count(), Some(1));
        if let Some(&node) = nodes().first() {
            let of_node = Placement { cpus: None, numa_node: Some(node) };
            let own = of_node.cpus_here().map(|cpus| cpus.len() as u32).ok();
            assert_eq!((of_node.cpu_count(), Placement::default().cpu_count()), (own, None));
        }
        let absent = Placement { cpus: Some("1023".into()), numa_node: None };
        assert_eq!(absent.cpu_count(), None);
        assert!(matches!(absent.probe(), Err(PlacementError::Cpu { cpu: 1023, .. })));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_of_a_node_that_is_here_can_be_had() {
        let Some(&node) = nodes().first() else {
            return eprintln!("skipped: the kernel reports no NUMA nodes");
        };
        let placement = Placement { cpus: None, numa_node: Some(node) };
        match placement.probe() {
            Err(PlacementError::Memory { error, .. }) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: {error}");
            }
            outcome => outcome.unwrap(),
        }
    }
}
