//! How this process handles signals that ask it to stop: it counts them. Unix only; on other systems Ctrl-C ends the
//! process at once.

#![allow(unsafe_code, reason = "signal handlers and system calls")]

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The signal that Ctrl-C sends.
const INTERRUPT: i32 = 2;

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicI32 = AtomicI32::new(INTERRUPT);

/// The number of Ctrl-C (SIGINT) received since [`count_interrupts`]. SIGTERM and SIGHUP count twice, because their
/// senders do not wait for long.
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Acquire)
}

/// Counts a Ctrl-C for a terminal mode that reports it as a key.
pub fn interrupt() {
    LAST.store(INTERRUPT, Ordering::Release);
    INTERRUPTS.fetch_add(1, Ordering::AcqRel);
}

/// The exit code of a stopped command: 128 plus the number of the last signal that requested it.
pub fn stopped_code() -> u8 {
    u8::try_from(128 + LAST.load(Ordering::Acquire)).unwrap_or(u8::MAX)
}

#[cfg(unix)]
extern "C" fn on_interrupt(signal: libc::c_int) {
    if signal == libc::SIGHUP {
        leave_terminal();
    }
    LAST.store(signal, Ordering::Release);
    INTERRUPTS.fetch_add(if signal == libc::SIGINT { 1 } else { 2 }, Ordering::AcqRel);
}

/// A closed terminal refuses every write: from now on messages are discarded, without an error.
#[cfg(unix)]
fn leave_terminal() {
    // SAFETY: system calls that a signal handler may make; all pointers refer to live values.
    unsafe {
        let before = std::io::Error::last_os_error().raw_os_error();
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for descriptor in 0..=2 {
            let mut settings: libc::termios = std::mem::zeroed();
            let is_gone = libc::tcgetattr(descriptor, &mut settings) != 0
                && std::io::Error::last_os_error().raw_os_error() == Some(libc::EIO);
            if is_gone && nowhere >= 0 {
                libc::dup2(nowhere, descriptor);
            }
        }
        if nowhere > 2 {
            libc::close(nowhere);
        }
        #[cfg(target_os = "linux")]
        if let Some(before) = before {
            *libc::__errno_location() = before;
        }
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP are counted instead of ending the process. An ignored SIGHUP stays ignored,
/// because `nohup` requires it.
#[cfg(unix)]
pub fn count_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler adds to atomics and makes system calls that it may make. SA_RESTART restarts
        // interrupted system calls of others, SA_ONSTACK is what the Go runtime requires of every handler in its
        // process.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if signal == libc::SIGHUP {
                libc::sigaction(signal, std::ptr::null(), &mut action);
                if action.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                action = std::mem::zeroed();
            }
            action.sa_sigaction = on_interrupt as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Nothing to do here.
#[cfg(not(unix))]
pub fn count_interrupts() {}

/// Does this while SIGINT is blocked in the calling thread. In a process that it starts it stays blocked, so that a Ctrl-C does
/// not end it before it has said what becomes of one.
#[cfg(target_os = "linux")]
pub fn with_interrupts_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: all zeroes is a valid set, and the pointers refer to live sets.
    let before = unsafe {
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
        before
    };
    let done = work();
    // SAFETY: the pointer refers to a live set, which the same call has written.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    done
}

/// Nothing is blocked here.
#[cfg(not(target_os = "linux"))]
pub fn with_interrupts_blocked<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// From now on a pipe whose reader is gone ends the process silently, as `kvdyno engines | head` expects, and a too
/// large file is an error.
#[cfg(unix)]
pub fn end_with_the_reader() {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// From now on a pipe whose reader is gone is an error: work in progress is completed.
#[cfg(unix)]
pub fn outlive_the_reader() {
    // SAFETY: plain system call without pointers.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Ends the process in the same way as a pipe whose reader is gone.
#[cfg(unix)]
pub fn end_by_pipe() {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::raise(libc::SIGPIPE);
    }
}

/// Kills the process: no exit handler runs, and nothing is closed.
#[cfg(unix)]
pub fn kill_this_process() -> ! {
    // SAFETY: a plain system call without pointers.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("the process was killed")
}

/// Ends the process.
#[cfg(not(unix))]
pub fn kill_this_process() -> ! {
    std::process::abort()
}

/// Nothing to do here.
#[cfg(not(unix))]
pub fn end_with_the_reader() {}

/// Nothing to do here.
#[cfg(not(unix))]
pub fn outlive_the_reader() {}

/// Nothing to do here.
#[cfg(not(unix))]
pub fn end_by_pipe() {}

/// Processes that the kernel has killed because memory ran out, since it started; `None` if unknown.
pub fn out_of_memory_kills() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// The name of a signal.
pub fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {number}"),
    };
    name.into()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::with_interrupts_blocked;
    use std::process::Command;

    /// Whether a process that is started now has SIGINT blocked.
    fn is_blocked() -> bool {
        let output = Command::new("grep").args(["SigBlk", "/proc/self/status"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mask = u64::from_str_radix(text.trim_start_matches("SigBlk:").trim(), 16).unwrap();
        mask & 1 << (libc::SIGINT - 1) != 0
    }

    #[test]
    fn what_is_started_while_interrupts_are_blocked_has_them_blocked() {
        assert!(!is_blocked());
        assert!(with_interrupts_blocked(is_blocked));
        assert!(!is_blocked());
    }
}
