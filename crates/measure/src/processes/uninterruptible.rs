//! Processes that the kernel blocks, so that they do not end when they are killed: those of a disk or a file system that does not
//! respond. This process must not use that file system either, or it would be blocked too.

use crate::start;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a file system may take to change the time of a folder.
const ANSWER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// The processes that this one could not kill.
static BLOCKED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Remembers processes that were killed and did not end.
pub(super) fn remember(processes: impl Iterator<Item = u32>) {
    BLOCKED.lock().unwrap_or_else(PoisonError::into_inner).extend(processes);
}

/// Whether a process has not ended; a zombie has.
fn is_alive(process: u32) -> bool {
    name_of(process).is_some()
}

/// The name of a process that has not ended.
pub(super) fn name_of(process: u32) -> Option<String> {
    // After the name: the state, and the number of threads as the 18th field.
    const THREADS: usize = 17;
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let (head, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first thread may have ended while another one is blocked.
    let has_threads = || fields.get(THREADS).and_then(|count| count.parse().ok()) > Some(1);
    let is_alive = !fields.first()?.starts_with(['Z', 'X']) || has_threads();
    let name = head.split_once('(')?.1.chars().filter(|letter| !letter.is_control()).collect();
    is_alive.then_some(name)
}

/// Whether the file system of a folder lets this process change it. It is only tested while a killed process has not ended: then
/// another process tries, because a blocked one cannot be ended.
pub fn responds(folder: &Path) -> bool {
    let mut blocked = BLOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    blocked.retain(|process| is_alive(*process));
    if blocked.is_empty() {
        return true;
    }
    // It creates nothing, so that nothing is left when a blocked call is completed later.
    let mut touch = Command::new("touch");
    touch.arg("-c").arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut touch) = start::process(&mut touch) else { return true };
    let begun = Instant::now();
    while begun.elapsed() < ANSWER {
        if !matches!(touch.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    let _ = touch.kill();
    blocked.push(touch.id());
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_ended_and_a_sleeping_process_has_not() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(is_alive(child.id()));
        child.kill().unwrap();
        while is_alive(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn a_folder_is_tested_while_a_killed_process_lives_and_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        remember([child.id()].into_iter());
        let answers = [responds(folder.path()), responds(&folder.path().join("absent"))];
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answers, [true, true]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
