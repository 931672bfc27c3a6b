//! A control group for the processes of a trial, where one can be created: everything in it can be killed at once.

use crate::cgroup::Cgroups;
use crate::memory_cap::{new_group, remove_group, remove_leftovers};
use std::path::{Path, PathBuf};

/// Prefix of the names of our groups. The creating process's id follows.
const PREFIX: &str = "kvdyno-tree-";
/// A process writes `0` here to enter.
const ENTRANCE: &str = "cgroup.procs";
/// Version 2 only, since Linux 5.14.
const KILL: &str = "cgroup.kill";

/// A group; on drop, everything in it is killed and the group is removed.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Creates it below this process's own group, or the nearest one above it that allows it; `None` if none does.
    pub(super) fn create() -> Option<Group> {
        let own = Cgroups::of_this_process().v2?;
        own.upward().find_map(|parent| {
            remove_leftovers(parent, PREFIX);
            let group = Group(new_group(parent, PREFIX).ok()?);
            group.0.join(KILL).exists().then_some(group)
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        kill(&self.0);
        remove_group(&self.0);
    }
}

/// Moves this process into the group. If that is not allowed, it runs without a group.
pub(super) fn enter(folder: &Path) {
    let _ = std::fs::write(folder.join(ENTRANCE), "0");
}

/// Kills everything in the group.
pub(super) fn kill(folder: &Path) {
    let _ = std::fs::write(folder.join(KILL), "1");
}
