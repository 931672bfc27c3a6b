//! One look at a thread of this process, from `/proc/self/task`: what it is doing, and what it has used.

use crate::resources::{ThreadTimes, read};
use crate::start;
use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A thread that is to wait does so by then.
const LONGEST_WAY: Duration = Duration::from_secs(10);

/// What a thread was doing at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// The kernel's letter: `R` runs or is ready to, `S` sleeps, `D` sleeps and cannot be interrupted ...
    pub state: char,
    /// The system call that it was in; `page fault`: it waited outside of one. None: it ran, or that is not known.
    pub call: Option<String>,
    /// Page faults since the thread began.
    pub minor_faults: u64,
    /// Page faults that read from storage since then.
    pub major_faults: u64,
}

impl Look {
    /// Whether it ran or was ready to.
    pub(crate) fn is_running(&self) -> bool {
        self.state == 'R'
    }

    /// Whether it was in uninterruptible sleep.
    pub(crate) fn is_blocked(&self) -> bool {
        self.state == 'D'
    }
}

/// The number of the calling thread; `None` if unknown.
pub fn own_thread() -> Option<u32> {
    ThreadTimes::of_this_thread().thread
}

/// Looks at a thread; `None` if it has ended, or if the kernel does not tell.
pub(super) fn look_at(thread: u32) -> Option<Look> {
    let file = |name: &str| read(&format!("/proc/self/task/{thread}/{name}"));
    // The call first: a thread that wakes in between is then seen as running in a call, and not as sleeping in none.
    let call = file("syscall");
    let look = parse_state(&file("stat")?)?;
    Some(Look { call: call.and_then(|text| parse_call(&text)), ..look })
}

/// Starts a thread that waits, looks at it, and ends it: the name of the system call that it was seen in.
pub(crate) fn call_of_a_waiting_thread() -> io::Result<String> {
    let (tell, told) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    let waiting = start::thread(move || {
        let _ = tell.send(own_thread());
        // Returns when the other end is dropped.
        let _ = finished.recv();
    })?;
    let seen = told.recv().ok().flatten().and_then(|thread| {
        times_of(thread)?;
        read(&format!("/proc/self/task/{thread}/syscall"))?;
        let begun = Instant::now();
        loop {
            match look_at(thread)?.call {
                Some(call) => return Some(call),
                // It is still on its way, or the kernel never tells.
                None if begun.elapsed() < LONGEST_WAY => std::thread::yield_now(),
                None => return None,
            }
        }
    });
    drop(finish);
    let _ = waiting.join();
    let text = "the kernel does not tell what the threads of this process are doing";
    seen.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, text))
}

/// CPU time and run delay of a thread, nanoseconds.
pub(super) fn times_of(thread: u32) -> Option<(u64, u64)> {
    parse_times(&read(&format!("/proc/self/task/{thread}/schedstat"))?)
}

/// The first two numbers of a `schedstat`.
pub(super) fn parse_times(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// State and page faults from a line that begins `NUMBER (NAME) `; the name may contain anything.
pub(super) fn parse_state(text: &str) -> Option<Look> {
    let (_, rest) = text.rsplit_once(") ")?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |place: usize| words.get(place)?.parse().ok();
    let state = words.first()?.chars().next()?;
    Some(Look { state, call: None, minor_faults: number(7)?, major_faults: number(9)? })
}

/// The call from a line that is `running`, `-1 SP PC` outside of a call, or `NUMBER ARGUMENTS SP PC`.
pub(super) fn parse_call(text: &str) -> Option<String> {
    let number: libc::c_long = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(match number {
        -1 => "page fault".to_string(),
        number => name_of(number).map_or_else(|| format!("system call {number}"), str::to_string),
    })
}

/// The name of a system call that storage engines wait in.
#[cfg(target_os = "linux")]
fn name_of(number: libc::c_long) -> Option<&'static str> {
    const NAMES: &[(libc::c_long, &str)] = &[
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_fdatasync, "fdatasync"),
        (libc::SYS_msync, "msync"),
        (libc::SYS_sync_file_range, "sync_file_range"),
        (libc::SYS_syncfs, "syncfs"),
        (libc::SYS_sync, "sync"),
        (libc::SYS_read, "read"),
        (libc::SYS_pread64, "pread"),
        (libc::SYS_readv, "readv"),
        (libc::SYS_preadv, "preadv"),
        (libc::SYS_preadv2, "preadv2"),
        (libc::SYS_write, "write"),
        (libc::SYS_pwrite64, "pwrite"),
        (libc::SYS_writev, "writev"),
        (libc::SYS_pwritev, "pwritev"),
        (libc::SYS_pwritev2, "pwritev2"),
        (libc::SYS_io_uring_enter, "io_uring_enter"),
        (libc::SYS_io_getevents, "io_getevents"),
        (libc::SYS_fallocate, "fallocate"),
        (libc::SYS_ftruncate, "ftruncate"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_close, "close"),
        (libc::SYS_unlinkat, "unlinkat"),
        (libc::SYS_renameat2, "renameat2"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_mmap, "mmap"),
        (libc::SYS_munmap, "munmap"),
        (libc::SYS_mremap, "mremap"),
        (libc::SYS_madvise, "madvise"),
        (libc::SYS_mprotect, "mprotect"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_sched_yield, "sched_yield"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_epoll_pwait, "epoll_pwait"),
        (libc::SYS_recvfrom, "recvfrom"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_sendto, "sendto"),
        (libc::SYS_sendmsg, "sendmsg"),
        (libc::SYS_wait4, "wait4"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, "open"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_unlink, "unlink"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_rename, "rename"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_poll, "poll"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, "epoll_wait"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_select, "select"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_pause, "pause"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn name_of(_number: libc::c_long) -> Option<&'static str> {
    None
}
