//! Stopping a process with all its threads and all processes below it, and a limit on the memory of this process. Linux only.

#![allow(unsafe_code, reason = "system calls")]

use crate::resources::descendants_of;
use std::time::{Duration, Instant};

/// Interval between two checks of a process that is being stopped.
const PAUSE: Duration = Duration::from_micros(100);

/// Why a process is not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// A thread was still running at the end of the time.
    #[error("process {process} could not be stopped within {} s", limit.as_secs())]
    StillRuns {
        /// The process.
        process: u32,
        /// The time.
        limit: Duration,
    },
    /// This is another system than Linux.
    #[error("processes can be stopped only on Linux")]
    NotLinux,
}

/// Stops a process and all processes below it, and returns when each of their threads is stopped: the signal alone only asks
/// for it, and a thread in a system call runs until that has ended.
#[cfg(target_os = "linux")]
pub fn stop_tree(process: u32, limit: Duration) -> Result<(), StopError> {
    let begun = Instant::now();
    loop {
        let mut tree = vec![process];
        tree.extend(descendants_of(process));
        let running: Vec<u32> = tree.into_iter().filter(|process| !is_stopped(*process)).collect();
        if running.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > limit {
            return Err(StopError::StillRuns { process, limit });
        }
        for process in running {
            if let Ok(process) = i32::try_from(process) {
                // SAFETY: a plain system call, on a process that this one has started.
                unsafe { libc::kill(process, libc::SIGSTOP) };
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether all threads of a process are stopped or have ended.
#[cfg(target_os = "linux")]
fn is_stopped(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return true };
    threads.flatten().all(|thread| {
        // A thread that has ended meanwhile has no file.
        let Ok(stat) = std::fs::read(thread.path().join("stat")) else { return true };
        let text = String::from_utf8_lossy(&stat).into_owned();
        let state = text.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        state.is_none_or(|state| "TtZXx".contains(state))
    })
}

/// Not available on other systems than Linux.
#[cfg(not(target_os = "linux"))]
pub fn stop_tree(_process: u32, _limit: Duration) -> Result<(), StopError> {
    let _ = (PAUSE, Instant::now(), descendants_of);
    Err(StopError::NotLinux)
}

/// Continues a process that was stopped, and all processes below it.
pub fn continue_tree(process: u32) {
    send(process, libc::SIGCONT);
}

/// Kills a process and all processes below it.
pub fn kill_tree(process: u32) {
    send(process, libc::SIGKILL);
}

/// Sends a signal to a process and to all below it, to those above last.
fn send(process: u32, signal: libc::c_int) {
    let below = descendants_of(process);
    for process in below.into_iter().rev().chain([process]) {
        if let Ok(process) = i32::try_from(process) {
            // SAFETY: a plain system call, on a process that this one has started.
            unsafe { libc::kill(process, signal) };
        }
    }
}

/// Limits the memory that this process may allocate; maps of files do not count. An allocation over the limit fails.
pub fn cap_own_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes as libc::rlim_t, rlim_max: bytes as libc::rlim_t };
    // SAFETY: a plain system call; the limit is live. If it is refused, the process runs without the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) };
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_stopped_tree_has_no_running_thread() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done & while :; do :; done"]).stdin(Stdio::null());
        let mut child = shell.spawn().unwrap();
        while descendants_of(child.id()).is_empty() {
            std::thread::yield_now();
        }
        let tree: Vec<u32> = descendants_of(child.id()).into_iter().chain([child.id()]).collect();
        let outcome = stop_tree(child.id(), Duration::from_secs(10));
        let stopped: Vec<bool> = tree.iter().map(|process| is_stopped(*process)).collect();
        for process in tree {
            // SAFETY: a plain system call, on processes of this test.
            unsafe { libc::kill(process as i32, libc::SIGKILL) };
        }
        child.wait().unwrap();
        assert_eq!(outcome, Ok(()));
        assert_eq!(stopped, [true, true]);
    }

    #[test]
    fn a_stopped_tree_is_continued_and_a_tree_is_killed_as_a_whole() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done & while :; do :; done"]).stdin(Stdio::null());
        let mut child = shell.spawn().unwrap();
        while descendants_of(child.id()).is_empty() {
            std::thread::yield_now();
        }
        let tree: Vec<u32> = descendants_of(child.id()).into_iter().chain([child.id()]).collect();
        let begun = Instant::now();
        let wait = |is_so: &dyn Fn(u32) -> bool| {
            while !tree.iter().all(|process| is_so(*process)) && begun.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
            tree.iter().all(|process| is_so(*process))
        };
        let stopped = stop_tree(child.id(), Duration::from_secs(10));
        continue_tree(child.id());
        let is_continued = wait(&|process| !is_stopped(process));
        kill_tree(child.id());
        child.wait().unwrap();
        assert_eq!((stopped, is_continued), (Ok(()), true));
        // One that has ended counts as stopped.
        assert!(wait(&is_stopped), "a process is left");
    }

    #[test]
    fn a_process_that_is_gone_counts_as_stopped() {
        assert_eq!(stop_tree(u32::MAX >> 1, Duration::from_secs(1)), Ok(()));
    }
}
