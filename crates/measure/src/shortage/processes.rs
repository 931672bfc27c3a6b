//! The limits on processes and threads: of the user, of control groups, and of the machine.

use crate::cgroup::Cgroups;
use crate::machine::OwnLimit;
use crate::resources::number_after;
use std::fs::read_to_string;

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    User,
    Group,
    Machine,
}

/// A limit on processes and threads, of which a thread counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessLimit {
    owner: Owner,
    limit: u64,
    used: u64,
}

impl ProcessLimit {
    /// The limit that is nearest; `None` if at least `room` more can be started.
    pub(crate) fn nearest(room: u64) -> Option<ProcessLimit> {
        let all = [of_user(), of_groups(), of_machine()];
        let nearest = all.into_iter().flatten().min_by_key(ProcessLimit::room)?;
        (nearest.room() < room).then_some(nearest)
    }

    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// `the limit of 6 processes and threads of this user is reached (ulimit -u)`
    pub(crate) fn reached(&self) -> String {
        let limit = self.limit;
        match self.owner {
            Owner::User => {
                format!("the limit of {limit} processes and threads of this user is reached (ulimit -u)")
            }
            Owner::Group => {
                format!(
                    "the limit of {limit} processes and threads of the control group is reached (pids.max)"
                )
            }
            Owner::Machine => {
                format!(
                    "the limit of {limit} processes and threads of this machine is reached (kernel.threads-max)"
                )
            }
        }
    }

    /// What to do.
    pub(crate) fn advice(&self) -> &'static str {
        match self.owner {
            Owner::User => "raise it, or end other processes of this user",
            Owner::Group => "raise it, or end other processes of the group",
            Owner::Machine => "raise it, or end other processes",
        }
    }

    /// `processes and threads of this user 6 (ulimit -u)`
    pub(crate) fn suspect(&self) -> String {
        let limit = self.limit;
        match self.owner {
            Owner::User => format!("processes and threads of this user {limit} (ulimit -u)"),
            Owner::Group => format!("processes and threads of the control group {limit} (pids.max)"),
            Owner::Machine => format!("processes and threads of this machine {limit} (kernel.threads-max)"),
        }
    }
}

/// The limit of this user. It does not apply to root.
fn of_user() -> Option<ProcessLimit> {
    // SAFETY: getuid cannot fail.
    let user = unsafe { libc::getuid() };
    let limit = OwnLimit::Processes.soft().filter(|_| user != 0)?;
    let mut used = 0;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // A process may have ended since.
        let Some(status) = is_process.then(|| read_to_string(entry.path().join("status")).ok()).flatten()
        else {
            continue;
        };
        if number_after(&status, "Uid:") == Some(user.into()) {
            used += number_after(&status, "Threads:").unwrap_or(1);
        }
    }
    Some(ProcessLimit { owner: Owner::User, limit, used })
}

/// The nearest limit of the control group of this process and of those above it.
fn of_groups() -> Option<ProcessLimit> {
    let groups = Cgroups::of_this_process();
    let number =
        |folder: &std::path::Path, file: &str| read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    let folders = groups.v2.iter().chain(&groups.pids_v1).flat_map(|group| group.upward());
    let limits = folders.filter_map(|folder| {
        let (limit, used) = (number(folder, "pids.max")?, number(folder, "pids.current")?);
        Some(ProcessLimit { owner: Owner::Group, limit, used })
    });
    limits.min_by_key(ProcessLimit::room)
}

fn of_machine() -> Option<ProcessLimit> {
    let limit = read_to_string("/proc/sys/kernel/threads-max").ok()?.trim().parse().ok()?;
    // `0.00 0.01 0.05 1/345 4242`: of the processes and threads that exist, one runs.
    let load = read_to_string("/proc/loadavg").ok()?;
    let used = load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    Some(ProcessLimit { owner: Owner::Machine, limit, used })
}
