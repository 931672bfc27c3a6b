//! What the machine allows beyond plain files and threads: each facility is tested, none is assumed.

mod system_calls;

use super::cgroup::{Cgroups, Group};
use super::links;
use super::memory_cap::{self, new_group};
use super::perf_events::{Counter, Event, Whose};
use super::resources::read;
use super::shortage::{Scene, Short};
use super::stall;
use super::sync_calls;
use super::volume;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// It works.
    Works,
    /// It exists, but this user may not use it.
    NotPermitted,
    /// This kernel or machine does not have it.
    Missing,
    /// It could not be tested, because a limit of this process is reached.
    Unknown,
}

/// A facility that some measurement needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facility {
    /// Its name: `seccomp notification`.
    pub name: String,
    /// The result of its test.
    pub answer: Availability,
    /// Details of the result.
    pub detail: String,
    /// What it is needed for and how to get it: a sentence.
    pub advice: String,
}

/// Tests all of them. Leaves nothing on the machine; creates and removes control groups and file systems where that is allowed.
pub fn facilities() -> Vec<Facility> {
    vec![
        facility(
            "perf events",
            software_events(),
            "Needed to count system calls: run as root, or set kernel.perf_event_paranoid to 1 or less.",
        ),
        facility(
            "tracepoints",
            tracepoints(),
            "Needed to count system calls by tracepoint: run as root and mount tracefs with mount -t tracefs tracefs /sys/kernel/tracing.",
        ),
        facility(
            "hardware counters",
            cycle_counter(),
            "Needed by `kvdyno run --count-cycles`; most virtual machines do not have them.",
        ),
        facility(
            "seccomp notification",
            counted_sync(),
            "Needed to count sync calls per commit: use Linux 5.5 or newer with CONFIG_SECCOMP_FILTER, outside containers \
             that forbid it.",
        ),
        facility(
            "memory cap",
            memory_cap(),
            "Needed by `kvdyno run --memory`, in a control group with the memory controller: run as root, or in a delegated \
             group (systemd-run --user --scope -p Delegate=yes).",
        ),
        facility(
            "cgroup v2",
            groups_v2(),
            "Needed to kill a complete process tree: use a delegated group (systemd-run --user --scope), or run as root.",
        ),
        facility(
            "loop devices",
            system_calls::free_loop_device("/dev/loop-control").map(|number| format!("loop{number} is free")),
            "Needed for crash tests and exact device counters: run as root, outside containers.",
        ),
        facility(
            "power cut on ext4",
            volume::probe("ext4"),
            "Needed by `kvdyno prove --only crash --mode cut`: run as root, outside containers, with mkfs.ext4 (Debian: e2fsprogs).",
        ),
        facility(
            "power cut on XFS",
            volume::probe("xfs"),
            "Needed by `kvdyno prove --only crash --mode cut`: run as root, outside containers, with mkfs.xfs (Debian: xfsprogs).",
        ),
        facility(
            "thread states",
            thread_states(),
            "Needed to show what a thread waits for in a stall: mount /proc, and use a kernel with CONFIG_HAVE_ARCH_TRACEHOOK \
             and CONFIG_SCHED_INFO, outside sandboxes that hide them.",
        ),
        facility(
            "FUSE",
            volume::probe_record(),
            "Needed by `kvdyno prove --only crash --mode replay`, a device in user space below a loop device: run as root, outside containers, \
             with /dev/fuse.",
        ),
        facility(
            "network links",
            links::probe(),
            "Needed to cut the link of a member (`kind = \"cut\"` of a [[fault]]): run as root, with CAP_SYS_ADMIN and CAP_NET_ADMIN, \
             and a kernel with network namespaces, veth and bridge.",
        ),
        facility(
            "drop_caches",
            may_open("/proc/sys/vm/drop_caches", false)
                .map(|()| "writable; caches are dropped in this system only".into()),
            "Needed for cold reads: run as root.",
        ),
    ]
}

fn facility(name: &str, outcome: io::Result<String>, advice: &str) -> Facility {
    let (answer, detail) = match outcome {
        Ok(detail) => (Availability::Works, detail),
        Err(error) if limit_of(&error).is_some() => {
            let advice =
                "Not tested, because a limit is reached: raise it, then run the same command again.".into();
            return Facility {
                name: name.into(),
                answer: Availability::Unknown,
                detail: error.to_string(),
                advice,
            };
        }
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                (Availability::NotPermitted, format!("not permitted: {error}"))
            }
            _ => (Availability::Missing, error.to_string()),
        },
    };
    Facility { name: name.into(), answer, detail, advice: advice.into() }
}

/// The limit of this process that is the reason of an error; space on a disk is none.
fn limit_of(error: &io::Error) -> Option<Short> {
    let shortage = Scene::of_database(Path::new("/")).of_error(&error.to_string())?;
    Some(shortage.of).filter(|of| matches!(of, Short::Processes | Short::OpenFiles | Short::AddressSpace))
}

fn software_events() -> io::Result<String> {
    Counter::open(Event::TaskClock, Whose::Thread)?;
    let level = read("/proc/sys/kernel/perf_event_paranoid");
    Ok(format!("software events; perf_event_paranoid {}", level.as_deref().map_or("unknown", str::trim)))
}

fn cycle_counter() -> io::Result<String> {
    match Counter::open(Event::Cycles, Whose::Thread) {
        Ok(_) => Ok("cycles can be counted".into()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(error) => Err(io::Error::new(error.kind(), format!("no cycle counter is available: {error}"))),
    }
}

/// Reads the id of a tracepoint and opens a counter on it.
fn tracepoints() -> io::Result<String> {
    let folders = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for folder in folders {
        match std::fs::read_to_string(Path::new(folder).join("events/syscalls/sys_enter_fdatasync/id")) {
            Ok(text) => {
                let number = text
                    .trim()
                    .parse()
                    .map_err(|_| io::Error::other("the tracepoint's id is not a number"))?;
                return Counter::open(Event::Tracepoint(number), Whose::Thread)
                    .map(|_| "sync calls can be counted".into());
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => failure = error,
            Err(_) => {}
        }
    }
    if failure.kind() == io::ErrorKind::NotFound {
        failure = io::Error::new(
            io::ErrorKind::NotFound,
            "tracefs is not mounted, or has no tracepoints for system calls",
        );
    }
    Err(failure)
}

/// Installs the filter in a new process that makes one sync call.
fn counted_sync() -> io::Result<String> {
    let file = File::open("/dev/null")?;
    // The file cannot be synced, which does not matter: the call is counted.
    let counts = sync_calls::counted(None, || drop(file.sync_data()))?;
    match counts.syncs() {
        1 => Ok("a filter counted 1 of 1 sync calls".into()),
        count => Err(io::Error::other(format!("a filter counted {count} of 1 sync calls"))),
    }
}

/// Creates a capped group and removes it.
fn memory_cap() -> io::Result<String> {
    let version = memory_cap::probe().map_err(|reason| absent(&reason.to_string()))?;
    Ok(format!("--memory can cap each trial, page cache included, by a control group of {version}"))
}

/// Reads what a thread of this process that waits in a system call is doing.
fn thread_states() -> io::Result<String> {
    let call = stall::call_of_a_waiting_thread()?;
    Ok(format!("a thread that waited was seen in {call}, with its run delay"))
}

fn groups_v2() -> io::Result<String> {
    let group = Cgroups::of_this_process().v2.ok_or_else(|| absent("version 2 is not mounted"))?;
    try_group(&group)?;
    let names = std::fs::read_to_string(group.folder.join("cgroup.controllers")).unwrap_or_default();
    let names = names.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    Ok(match names.as_str() {
        "" => "groups can be created; no controllers".into(),
        names => format!("groups can be created; controllers {names}"),
    })
}

/// Creates a group below this process's group and removes it.
fn try_group(group: &Group) -> io::Result<()> {
    std::fs::remove_dir(new_group(&group.folder, "kvdyno-probe-")?)
}

/// Opens a file for writing (and reading) and closes it again without writing.
fn may_open(path: &str, with_reading: bool) -> io::Result<()> {
    OpenOptions::new().read(with_reading).write(true).open(path).map(drop)
}

fn absent(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, text)
}

#[cfg(test)]
mod tests {
    use super::{Availability, Group, facilities, facility, try_group};
    use std::collections::HashSet;
    use std::io;

    #[test]
    fn each_facility_is_tried_and_has_advice() {
        let all = facilities();
        let names: HashSet<&str> = all.iter().map(|facility| facility.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for facility in &all {
            assert!(facility.advice.ends_with('.') && !facility.detail.is_empty(), "{facility:?}");
        }
    }

    #[test]
    fn what_is_forbidden_is_told_from_what_is_missing() {
        let answer = |kind| facility("x", Err(io::Error::from(kind)), "Do.").answer;
        assert_eq!(answer(io::ErrorKind::PermissionDenied), Availability::NotPermitted);
        assert_eq!(answer(io::ErrorKind::NotFound), Availability::Missing);
        assert_eq!(facility("x", Ok("seen".into()), "Do.").answer, Availability::Works);
    }

    #[test]
    fn a_limit_is_no_fault_of_the_kernel_or_the_user() {
        let starts = io::Error::new(
            io::ErrorKind::WouldBlock,
            "cannot start a thread: the limit of 1 processes and threads of this user is reached (ulimit -u); raise it",
        );
        for error in [starts, io::Error::from_raw_os_error(libc::EMFILE)] {
            let text = error.to_string();
            let found = facility("x", Err(error), "Use another kernel.");
            assert_eq!((found.answer, found.detail.as_str()), (Availability::Unknown, text.as_str()));
            assert!(found.advice.contains("a limit is reached: raise it"), "{found:?}");
        }
    }

    #[test]
    fn trying_a_group_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { mount: folder.path().into(), folder: folder.path().into() };
        try_group(&group).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
