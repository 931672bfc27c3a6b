//! What this process does with signals: counts Ctrl-C, dies with its parent, and lives through SIGXFSZ. Linux only;
//! elsewhere Ctrl-C ends the process at once.

use std::sync::atomic::{AtomicU32, Ordering};

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// How often Ctrl-C (SIGINT) or SIGTERM came since [`count_interrupts`].
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Acquire)
}

/// As if Ctrl-C had come, for a terminal that makes a key of it.
pub fn interrupt() {
    INTERRUPTS.fetch_add(1, Ordering::AcqRel);
}

#[cfg(unix)]
extern "C" fn on_interrupt(_signal: libc::c_int) {
    INTERRUPTS.fetch_add(1, Ordering::AcqRel);
}

/// From now on SIGINT and SIGTERM are counted instead of ending the process.
#[cfg(unix)]
pub fn count_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only adds to an atomic. SA_RESTART keeps system calls of others whole, SA_ONSTACK is what
        // the Go runtime wants of every handler in its process.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_interrupt as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Nothing to do here.
#[cfg(not(unix))]
pub fn count_interrupts() {}

/// From now on a pipe whose reader is gone ends the process quietly, as `kvdyno engines | head` wants.
#[cfg(unix)]
pub fn end_with_the_reader() {
    // SAFETY: plain system call without pointers.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Nothing to do here.
#[cfg(not(unix))]
pub fn end_with_the_reader() {}

/// Makes a trial's process end when the one that started it does, be told about a file that is too large by an error
/// instead of a signal, ignore Ctrl-C (the parent decides), and be the first to go when memory runs out.
#[cfg(target_os = "linux")]
pub fn become_trial_process() {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
    // Not allowed everywhere, and only a preference.
    let _ = std::fs::write("/proc/self/oom_score_adj", "900");
}

/// Nothing to do here.
#[cfg(not(target_os = "linux"))]
pub fn become_trial_process() {}

/// Ends all processes of the group whose first process has or had this number.
#[cfg(unix)]
pub fn kill_group(first: u32) {
    if let Ok(first @ 2..) = libc::pid_t::try_from(first) {
        // SAFETY: plain system call without pointers. A group that is gone is no concern.
        unsafe { libc::kill(-first, libc::SIGKILL) };
    }
}

/// Processes that the kernel has killed for lack of memory since it started; none: unknown.
pub fn out_of_memory_kills() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// The name of a signal.
pub fn signal_name(number: i32) -> String {
    let name = match number {
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
