//! The guard: the parent of a trial's process. It adopts the processes that the trial leaves, and ends them. Linux
//! only; other systems have no guard.

#![allow(unsafe_code, reason = "system calls")]

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::super::{
        Blocked, DYING_SECONDS, GROUP, MARK, PAUSE, group, told::write_left, uninterruptible::name_of,
    };
    use crate::resources::descendants;
    use crate::shortage::explained;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
    use std::time::{Duration, Instant};

    /// Processes that end by themselves this soon after the trial do not count as left.
    const MAY_END: Duration = Duration::from_millis(500);
    /// How long killing all remaining processes may take. A process that the kernel blocks longer is abandoned.
    const KILLING: Duration = Duration::from_secs(3);

    static TRIAL: AtomicI32 = AtomicI32::new(0);
    /// Set if the killed trial has not ended in time.
    static IS_BLOCKED: AtomicBool = AtomicBool::new(false);

    /// Makes this process, which must not have other threads yet, the guard of a new process that returns from this
    /// call as the trial. The trial runs in its own session and control group, adopts the processes that its engine
    /// leaves, is killed when the guard is gone, gets an error instead of a signal for a too large file, ignores
    /// Ctrl-C (the process that started it decides), and is the first to be killed when memory runs out.
    pub(crate) fn become_trial_process() {
        let folder = std::env::var_os(GROUP).map(PathBuf::from);
        // SAFETY: plain system calls without pointers to our data. With one thread, the new process cannot inherit a
        // locked lock.
        let trial = unsafe {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            // Blocked by the starting process; one that came before is ignored now.
            set_blocked(libc::SIGINT, false);
            set_blocked(libc::SIGTERM, true);
            libc::fork()
        };
        if trial < 0 {
            eprintln!("cannot start a process: {}", explained(std::io::Error::last_os_error()));
            std::process::exit(1);
        }
        if trial > 0 {
            guard(trial, folder.as_deref());
        }
        // SAFETY: plain system calls without pointers.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            set_blocked(libc::SIGTERM, false);
        }
        if let Some(folder) = &folder {
            group::enter(folder);
        }
        // Not allowed everywhere, and only a preference.
        let _ = std::fs::write("/proc/self/oom_score_adj", "900");
    }

    /// Makes this process, which a trial's process started, end with it. The trial's guard adopts the processes that
    /// it leaves.
    pub(crate) fn become_part_of_trial() {
        // SAFETY: plain system calls without pointers.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
    }

    fn set_blocked(signal: libc::c_int, is_blocked: bool) {
        let how = if is_blocked { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
        // SAFETY: all zeroes is a valid set, and the pointers refer to live sets.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::sigprocmask(how, &set, std::ptr::null_mut());
        }
    }

    extern "C" fn end_trial(_signal: libc::c_int) {
        // SAFETY: a plain system call that a signal handler may make.
        unsafe { libc::kill(TRIAL.load(Ordering::Relaxed), libc::SIGKILL) };
        // SAFETY: a plain system call that a signal handler may make.
        unsafe { libc::alarm(DYING_SECONDS) };
    }

    extern "C" fn give_up(_signal: libc::c_int) {
        IS_BLOCKED.store(true, Ordering::Relaxed);
    }

    /// Waits for the trial, ends the processes that it leaves, reports their names, and ends with the trial's status.
    fn guard(trial: i32, group: Option<&Path>) -> ! {
        TRIAL.store(trial, Ordering::Relaxed);
        let handler = end_trial as *const () as libc::sighandler_t;
        let alarm = give_up as *const () as libc::sighandler_t;
        // SAFETY: the handlers make system calls that they may make, and store a flag; the action is live. Without SA_RESTART the
        // alarm ends the call that waits.
        unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            libc::signal(libc::SIGTERM, handler);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = alarm;
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        }
        if !starter_lives() {
            end_trial(libc::SIGTERM);
        }
        set_blocked(libc::SIGTERM, false);
        let status = loop {
            match wait(0) {
                Waited::Ended(process, status) if process == trial => break status,
                Waited::Interrupted if IS_BLOCKED.load(Ordering::Relaxed) => break libc::SIGKILL,
                Waited::Ended(..) | Waited::Interrupted => {}
                Waited::Nobody | Waited::Running => break 0,
            }
        };
        let left = if libc::WIFEXITED(status) { names_after_grace() } else { Vec::new() };
        let begun = Instant::now();
        let is_over = loop {
            if let Some(group) = group {
                group::kill(group);
            }
            descendants().into_iter().for_each(kill);
            if !is_above_others() {
                break true;
            }
            if begun.elapsed() > KILLING {
                break false;
            }
            std::thread::sleep(PAUSE);
        };
        if let Some(group) = group {
            // The process that started this one may be gone; otherwise it cleans up too.
            let _ = std::fs::remove_dir(group);
        }
        let blocked = if is_over { Vec::new() } else { blocked(descendants()) };
        // If it is gone, nobody reads this.
        let _ = write_left(&mut std::io::stdout(), left, blocked);
        end_as(status)
    }

    /// Whether the parent of this process still exists: it may have died before the death signal was requested.
    fn starter_lives() -> bool {
        let mark = std::env::var(MARK).unwrap_or_default();
        let starter = mark.split('-').next().and_then(|number| number.parse::<u32>().ok());
        starter.is_none_or(|starter| starter == std::os::unix::process::parent_id())
    }

    enum Waited {
        Ended(i32, i32),
        Running,
        Interrupted,
        Nobody,
    }

    fn wait(options: i32) -> Waited {
        let mut status = 0;
        // SAFETY: the pointer refers to a live number.
        let process = unsafe { libc::waitpid(-1, &mut status, options) };
        let is_interrupted = || std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        match process {
            0 => Waited::Running,
            -1 if is_interrupted() => Waited::Interrupted,
            -1 => Waited::Nobody,
            process => Waited::Ended(process, status),
        }
    }

    /// Whether this process still has children; reaps those that have ended.
    fn is_above_others() -> bool {
        loop {
            match wait(libc::WNOHANG) {
                Waited::Ended(..) | Waited::Interrupted => {}
                Waited::Running => return true,
                Waited::Nobody => return false,
            }
        }
    }

    fn names_after_grace() -> Vec<String> {
        let begun = Instant::now();
        while is_above_others() {
            if begun.elapsed() > MAY_END {
                return descendants().into_iter().filter_map(name_of).collect();
            }
            std::thread::sleep(PAUSE);
        }
        Vec::new()
    }

    fn kill(process: u32) {
        if let Ok(process) = i32::try_from(process) {
            // SAFETY: a plain system call.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }

    /// Ends this process as another has ended.
    pub(crate) fn end_as(status: i32) -> ! {
        // SAFETY: plain system calls; the pointer refers to a live limit.
        unsafe {
            if libc::WIFSIGNALED(status) {
                // A core file, if enabled, must be the trial's.
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                let signal = libc::WTERMSIG(status);
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            libc::_exit(libc::WEXITSTATUS(status))
        }
    }

    /// Asks a guard to end its trial.
    pub(in super::super) fn end(guard: u32) {
        if let Ok(guard) = i32::try_from(guard) {
            // SAFETY: a plain system call, on a process of ours that was not waited for.
            unsafe { libc::kill(guard, libc::SIGTERM) };
        }
    }

    /// Those of these processes that have not ended.
    fn blocked(processes: Vec<u32>) -> Vec<Blocked> {
        let named = |process| name_of(process).map(|name| Blocked { process, name });
        processes.into_iter().filter_map(named).collect()
    }

    /// Kills every process that was started with this in its environment. Returns those that have not ended.
    pub(in super::super) fn end_marked(mark: &str) -> Vec<Blocked> {
        let begun = Instant::now();
        loop {
            let marked = marked(mark);
            if marked.is_empty() || begun.elapsed() > KILLING {
                return blocked(marked);
            }
            marked.into_iter().for_each(kill);
            std::thread::sleep(PAUSE);
        }
    }

    fn marked(mark: &str) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let bears = |process: &u32| {
            environment_of(*process).split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        };
        numbers.filter(bears).collect()
    }

    /// The environment of a process, of which the first thread may have ended; empty if unknown.
    fn environment_of(process: u32) -> Vec<u8> {
        let threads = || std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let of = |folder: PathBuf| std::fs::read(folder.join("environ")).unwrap_or_default();
        let first = of(PathBuf::from(format!("/proc/{process}")));
        let others = || threads().map(|thread| of(thread.path())).find(|text| !text.is_empty());
        if first.is_empty() { others().unwrap_or_default() } else { first }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// Nothing to do here.
    pub(crate) fn become_trial_process() {}

    /// Nothing to do here.
    pub(crate) fn become_part_of_trial() {}

    /// Ends a trial's process.
    pub(in super::super) fn end(process: u32) {
        if let Ok(process) = i32::try_from(process) {
            // SAFETY: a plain system call, on a process of ours that was not waited for.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }

    /// Nothing to do here.
    pub(in super::super) fn end_marked(_mark: &str) -> Vec<super::super::Blocked> {
        Vec::new()
    }
}
