//! A separate control group for a trial that caps its memory, page cache included. Version 1 and version 2.

use super::cgroup::{Cgroups, Group, Limit};
use super::resources::number_after;
use crate::text::bytes_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the names of our groups; nothing else is ever removed. The creating process's id follows.
const PREFIX: &str = "kvdyno-trial-";
/// A process that has just ended may keep its group busy for a moment.
const REMOVALS: u32 = 100;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// The memory cap of a trial and its effects, as reported by its control group. The memory of the harness counts too,
/// and page cache is charged to the process that first read or wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapRecord {
    /// `v1` or `v2`: the version of the control group.
    pub version: String,
    /// The effective cap, bytes: the requested cap in whole pages.
    pub limit_bytes: Option<u64>,
    /// Maximum memory in use at one time, bytes.
    pub peak_bytes: Option<u64>,
    /// How many times the cap was reached, so that page cache was dropped or a process killed; absent if unknown, as
    /// with version 1 where the kernel does not count it.
    pub limit_hits: Option<u64>,
    /// Processes that were killed because memory ran out.
    pub kills: Option<u64>,
}

impl CapRecord {
    /// Whether memory in use is known to have reached the cap. Where the kernel does not count that, the peak tells it.
    pub fn was_reached(&self) -> bool {
        let is_at_peak = self.peak_bytes.zip(self.limit_bytes).is_some_and(|(peak, limit)| peak >= limit);
        self.limit_hits > Some(0) || is_at_peak
    }
}

/// Memory use of a capped trial by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapUse {
    /// Page cache, bytes; includes mapped files.
    pub page_cache_bytes: Option<u64>,
    /// Memory that belongs to no file, bytes.
    pub anonymous_bytes: Option<u64>,
    /// Pages of files that were dropped because memory was short and read again, since the trial began.
    pub refaulted_pages: Option<u64>,
}

/// File names of a version.
#[derive(Debug)]
struct Files {
    version: &'static str,
    limit: &'static str,
    peak: &'static str,
    /// Files, and the text before the number. Version 1 counts a hit in the file of the limit that was reached first:
    /// memory with swap has the same limit, and is checked first. Linux 6.18 was observed to count none there, so
    /// that 0 is inconclusive.
    hits: &'static [(&'static str, &'static str)],
    kills: (&'static str, &'static str),
    page_cache: &'static str,
    anonymous: &'static str,
}

static V1: Files = Files {
    version: "v1",
    limit: "memory.limit_in_bytes",
    peak: "memory.max_usage_in_bytes",
    hits: &[("memory.failcnt", ""), ("memory.memsw.failcnt", "")],
    kills: ("memory.oom_control", "oom_kill "),
    page_cache: "cache ",
    anonymous: "rss ",
};

static V2: Files = Files {
    version: "v2",
    limit: "memory.max",
    peak: "memory.peak",
    hits: &[("memory.events", "max ")],
    kills: ("memory.events", "oom_kill "),
    page_cache: "file ",
    anonymous: "anon ",
};

/// Why there is no memory cap.
#[derive(Debug, thiserror::Error)]
pub enum CapError {
    /// This process may use less memory than the cap.
    #[error(
        "the control group of this process allows {} of memory, less than the requested cap of {}",
        bytes_text(*own),
        bytes_text(*requested)
    )]
    AboveOwn {
        /// What this process may use, bytes.
        own: u64,
        /// The cap, bytes.
        requested: u64,
    },
    /// The system has no memory controller.
    #[error("this system has no memory controller")]
    NoController,
    /// A control group cannot be created.
    #[error("cannot create a control group with a memory cap: {0}")]
    Create(io::Error),
    /// No control group above this process delegates the controller.
    #[error("no control group delegates the memory controller")]
    NotDelegated,
    /// This process cannot enter the control group.
    #[error("cannot enter the control group of the memory cap: {0}")]
    Enter(io::Error),
}

/// A capped group. It is removed on drop; a group that remains because its creator was killed is removed by the next
/// `create`.
#[derive(Debug)]
pub struct MemoryCap {
    folder: PathBuf,
    files: &'static Files,
    /// The parent group, if the memory controller was enabled there for this group.
    switched_on: Option<PathBuf>,
}

impl MemoryCap {
    /// Creates a group with this cap and no swap. `Err` holds the reason if that is impossible.
    pub fn create(limit_bytes: u64) -> Result<Self, CapError> {
        Self::create_in(&Cgroups::of_this_process(), limit_bytes)
    }

    fn create_in(groups: &Cgroups, limit_bytes: u64) -> Result<Self, CapError> {
        if let Some(Limit::At(bytes)) = groups.memory_limit_bytes()
            && bytes < limit_bytes
        {
            return Err(CapError::AboveOwn { own: bytes, requested: limit_bytes });
        }
        let v2 = groups.v2.as_ref().filter(|group| has_memory(&group.mount, "cgroup.controllers"));
        match (v2, &groups.memory_v1) {
            (Some(group), _) => Self::create_v2(group, limit_bytes),
            (None, Some(group)) => Self::create_v1(group, limit_bytes),
            (None, None) => Err(CapError::NoController),
        }
    }

    fn create_v1(group: &Group, limit_bytes: u64) -> Result<Self, CapError> {
        first_success(group.upward().map(|parent| {
            let cap = Self::make(parent, &V1, None)?;
            cap.write(V1.limit, limit_bytes)?;
            // Where swap is not accounted for, it is disabled.
            if cap.folder.join("memory.memsw.limit_in_bytes").exists() {
                cap.write("memory.memsw.limit_in_bytes", limit_bytes)?;
            } else if cap.folder.join("memory.swappiness").exists() {
                cap.write("memory.swappiness", 0)?;
            }
            Ok(cap)
        }))
    }

    /// Creates the group below the nearest group that delegates the memory controller, or can be configured to. Only
    /// a group without its own processes can, so this is usually not this process's group but one above it.
    fn create_v2(group: &Group, limit_bytes: u64) -> Result<Self, CapError> {
        let hands_on = |folder: &&Path| has_memory(folder, "cgroup.subtree_control");
        let ready = group.upward().filter(hands_on).map(|parent| (parent, false));
        let own = std::iter::once((group.folder.as_path(), true)).filter(|(folder, _)| !hands_on(folder));
        first_success(ready.chain(own).map(|(parent, switch_on)| {
            if switch_on {
                std::fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
            }
            let cap = Self::make(parent, &V2, switch_on.then(|| parent.to_owned()))?;
            cap.write(V2.limit, limit_bytes)?;
            if cap.folder.join("memory.swap.max").exists() {
                cap.write("memory.swap.max", 0)?;
            }
            Ok(cap)
        }))
    }

    fn make(parent: &Path, files: &'static Files, switched_on: Option<PathBuf>) -> io::Result<Self> {
        remove_leftovers(parent, PREFIX);
        Ok(Self { folder: new_group(parent, PREFIX)?, files, switched_on })
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        std::fs::write(self.folder.join(file), value.to_string())
    }

    /// The file to which a process writes `0` to enter the group.
    pub fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The current numbers of the group.
    pub fn record(&self) -> CapRecord {
        let number = |(file, name): (&str, &str)| number_in(&self.folder, file, name);
        let hits = self.files.hits.iter().filter_map(|&hit| number(hit)).reduce(u64::saturating_add);
        CapRecord {
            version: self.files.version.into(),
            limit_bytes: number((self.files.limit, "")),
            peak_bytes: number((self.files.peak, "")),
            limit_hits: hits.filter(|&hits| hits > 0 || self.files.version == V2.version),
            kills: number(self.files.kills),
        }
    }
}

impl Drop for MemoryCap {
    fn drop(&mut self) {
        remove_group(&self.folder);
        if let Some(parent) = &self.switched_on {
            // Other processes may use it by now; then it stays enabled.
            let _ = std::fs::write(parent.join("cgroup.subtree_control"), "-memory");
        }
    }
}

/// Moves this process into the group with this entrance file. Memory that it already has stays charged to the old
/// group.
pub fn enter(entrance: &Path) -> Result<(), CapError> {
    std::fs::write(entrance, "0").map_err(CapError::Enter)
}

impl CapUse {
    /// The memory of this process's own capped group; `None` if it is not in one of our groups.
    pub fn of_this_process() -> Option<Self> {
        let groups = Cgroups::of_this_process();
        let is_ours = |group: &&Group| {
            group.folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
        };
        let v2 = groups.v2.as_ref().filter(is_ours).map(|group| (group, &V2));
        let (group, files) = v2.or(groups.memory_v1.as_ref().filter(is_ours).map(|group| (group, &V1)))?;
        let number = |name| number_in(&group.folder, "memory.stat", name);
        Some(Self {
            page_cache_bytes: number(files.page_cache),
            anonymous_bytes: number(files.anonymous),
            refaulted_pages: number("workingset_refault_file "),
        })
    }
}

/// The version, `v1` or `v2`, of the group below which a cap can be created, tested with one of 64 MiB; `Err` holds
/// the reason if none can.
pub fn probe() -> Result<&'static str, CapError> {
    MemoryCap::create(64 << 20).map(|cap| cap.files.version)
}

fn has_memory(folder: &Path, file: &str) -> bool {
    let names = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    names.split_ascii_whitespace().any(|name| name == "memory")
}

fn number_in(folder: &Path, file: &str, name: &str) -> Option<u64> {
    number_after(&std::fs::read_to_string(folder.join(file)).ok()?, name)
}

/// The first cap that could be created; otherwise the first error, which is that of the nearest group.
fn first_success(tries: impl Iterator<Item = io::Result<MemoryCap>>) -> Result<MemoryCap, CapError> {
    let mut reason = None;
    for outcome in tries {
        match outcome {
            Ok(cap) => return Ok(cap),
            Err(error) => reason = reason.or(Some(error)),
        }
    }
    Err(reason.map_or(CapError::NotDelegated, CapError::Create))
}

/// Removes a group whose processes have just ended.
pub(super) fn remove_group(folder: &Path) {
    for _ in 0..REMOVALS {
        match std::fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(REMOVAL_PAUSE),
            _ => break,
        }
    }
}

/// Creates a group of ours. Its name has this process's id and random letters: a process that was killed may have had the
/// same id, and its group may still be there.
pub(super) fn new_group(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    let prefix = format!("{prefix}{}-", std::process::id());
    Ok(tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?.keep())
}

/// Removes our groups, by the prefix of their names, whose creator is gone. A group that still has processes remains,
/// because the kernel refuses to remove it.
pub(super) fn remove_leftovers(parent: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split('-').next()?.parse().ok());
        if maker.is_some_and(|maker: u32| !Path::new(&format!("/proc/{maker}")).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Returns to the kernel what the process has freed, so that it no longer counts toward its cap. Does nothing without the C library
/// of GNU.
#[allow(unsafe_code, reason = "malloc_trim is a function of the C library")]
pub fn return_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hierarchy of version 2 made of plain files: `top/above/ours`, where `above` delegates the controller.
    fn hierarchy() -> (tempfile::TempDir, Cgroups) {
        let top = tempfile::tempdir().unwrap();
        let ours = top.path().join("above/ours");
        std::fs::create_dir_all(&ours).unwrap();
        std::fs::write(top.path().join("cgroup.controllers"), "cpu memory io\n").unwrap();
        std::fs::write(top.path().join("above/cgroup.subtree_control"), "memory pids\n").unwrap();
        let group = Group { mount: top.path().into(), folder: ours };
        (top, Cgroups { v2: Some(group), ..Cgroups::default() })
    }

    #[test]
    fn a_cap_of_version_2_is_made_where_the_controller_is_handed_on() {
        let (top, groups) = hierarchy();
        let cap = MemoryCap::create_in(&groups, 4096).unwrap();
        assert_eq!(cap.folder.parent(), Some(top.path().join("above").as_path()));
        assert_eq!(std::fs::read_to_string(cap.folder.join("memory.max")).unwrap(), "4096");
        std::fs::write(cap.folder.join("memory.events"), "low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\n")
            .unwrap();
        let record = cap.record();
        assert_eq!((record.version.as_str(), record.limit_bytes), ("v2", Some(4096)));
        assert_eq!((record.peak_bytes, record.limit_hits, record.kills), (None, Some(17), Some(1)));
    }

    #[test]
    fn the_controller_is_switched_on_in_our_own_group_only_where_nobody_hands_it_on() {
        let (top, groups) = hierarchy();
        std::fs::write(top.path().join("above/cgroup.subtree_control"), "pids\n").unwrap();
        let cap = MemoryCap::create_in(&groups, 4096).unwrap();
        let ours = top.path().join("above/ours");
        assert_eq!(cap.folder.parent(), Some(ours.as_path()));
        let switch = ours.join("cgroup.subtree_control");
        assert_eq!(std::fs::read_to_string(&switch).unwrap(), "+memory");
        drop(cap);
        assert_eq!(std::fs::read_to_string(&switch).unwrap(), "-memory");
    }

    #[test]
    fn a_cap_above_our_own_limit_is_refused() {
        let (top, groups) = hierarchy();
        std::fs::write(top.path().join("above/memory.max"), "1048576\n").unwrap();
        let reason = MemoryCap::create_in(&groups, 2 << 20).unwrap_err();
        assert_eq!(
            reason.to_string(),
            "the control group of this process allows 1 MiB of memory, less than the requested cap of 2 MiB"
        );
        assert!(MemoryCap::create_in(&groups, 1 << 20).is_ok());
        let reason = MemoryCap::create_in(&Cgroups::default(), 1 << 20).unwrap_err();
        assert!(matches!(reason, CapError::NoController), "{reason}");
    }

    #[test]
    fn only_groups_of_ours_whose_maker_is_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let mine = format!("{PREFIX}{}-7", std::process::id());
        // No process has this number: it is larger than any that Linux assigns.
        let gone = format!("{PREFIX}4294967295-0");
        for name in [mine.as_str(), gone.as_str(), "kvdyno-trial-x-1", "user.slice"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_leftovers(parent.path(), PREFIX);
        let left = |name: &str| parent.path().join(name).exists();
        assert!(left(&mine) && left("kvdyno-trial-x-1") && left("user.slice") && !left(&gone));
    }

    #[test]
    fn groups_left_by_a_killed_process_with_our_id_are_not_in_the_way() {
        let parent = tempfile::tempdir().unwrap();
        for number in 0..100 {
            let left = format!("{PREFIX}{}-{number}", std::process::id());
            std::fs::create_dir(parent.path().join(left)).unwrap();
        }
        assert!(new_group(parent.path(), PREFIX).unwrap().is_dir());
    }

    #[test]
    fn a_cap_of_this_machine_is_in_force_and_gone_when_dropped() {
        let cap = match MemoryCap::create(32 << 20) {
            Ok(cap) => cap,
            Err(reason) => return eprintln!("skipped: {reason}"),
        };
        let record = cap.record();
        assert_eq!(record.limit_bytes, Some(32 << 20), "{record:?}");
        assert_eq!((record.limit_hits.unwrap_or(0), record.kills), (0, Some(0)), "{record:?}");
        let folder = cap.folder.clone();
        drop(cap);
        assert!(!folder.exists());
        assert_eq!(CapUse::of_this_process(), None);
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn freed_memory_is_returned_although_later_memory_is_in_use() {
        const BLOCKS: usize = 100_000;
        let blocks: Vec<Box<[u8; 1_000]>> = (0..BLOCKS).map(|_| Box::new([1; 1_000])).collect();
        // The C library returns by itself only what no used memory is behind.
        let later: Vec<Box<[u8; 1_000]>> = (0..100).map(|_| Box::new([1; 1_000])).collect();
        drop(blocks);
        let resident = || crate::Usage::now().rss_bytes.unwrap();
        let before = resident();
        return_freed();
        let after = resident();
        assert!(after + BLOCKS as u64 * 1_000 / 2 < before, "{before} B before, {after} B after");
        drop(later);
    }
}
