//! The process above a counted one: it counts each stopped call in memory that both see, then lets it continue.

#![allow(unsafe_code, reason = "system calls, and memory that two processes share")]

use super::change::Half;
use super::{CallCounts, CallKind, Fault, FaultyCalls, KINDS, filter};
use crate::checked;
use crate::processes::end_as;
use crate::shortage::explained;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// A flag of `SECCOMP_IOCTL_NOTIF_SET_FLAGS`: the two processes take turns on one CPU (Linux 6.6 or newer).
const WAKE_SYNCHRONOUSLY: libc::c_ulong = 1;

/// The counts of this process, of all its threads, and of the processes that it starts: by kind, then the calls that a fault
/// selects, then those of them that failed, which are in no other count, then those that submit requests.
#[derive(Clone, Copy)]
pub struct SyncCalls(&'static [AtomicU64; PLACES]);

const SELECTED: usize = KINDS.len();
const FAILED: usize = KINDS.len() + 1;
const SUBMITTED: usize = KINDS.len() + 2;
const PLACES: usize = KINDS.len() + 3;

/// Counters, all 0, that are shared with the processes that this one forks; never unmapped.
pub(crate) fn shared_counters<const COUNT: usize>() -> io::Result<&'static [AtomicU64; COUNT]> {
    // SAFETY: a new mapping at a place that the kernel chooses.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<[AtomicU64; COUNT]>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the memory is zeroed, aligned, large enough, and never unmapped; all access is atomic.
    Ok(unsafe { &*memory.cast() })
}

impl SyncCalls {
    /// The calls so far. A call is in it before the kernel does it.
    pub fn counts(&self) -> CallCounts {
        CallCounts(std::array::from_fn(|kind| self.0[kind].load(Ordering::SeqCst)))
    }

    /// The calls so far that the fault selects.
    pub fn selected(&self) -> u64 {
        self.0[SELECTED].load(Ordering::SeqCst)
    }

    /// Those of them that failed.
    pub fn failed(&self) -> u64 {
        self.0[FAILED].load(Ordering::SeqCst)
    }

    /// Calls that submit requests to io_uring or by io_submit; a ring that is only set up may never be used.
    pub fn submitted(&self) -> u64 {
        self.0[SUBMITTED].load(Ordering::SeqCst)
    }

    /// The count before.
    fn add(&self, place: usize) -> u64 {
        self.0[place].fetch_add(1, Ordering::SeqCst)
    }

    fn take_back(&self, place: usize) {
        self.0[place].fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a fork returns in each of the two processes.
pub(crate) enum Side {
    /// The new process, whose calls are stopped from now on, with its end of the channel; or the error, and they are not.
    Counted(io::Result<OwnedFd>),
    /// The process above.
    Above(Above),
}

/// The process above a counted one.
pub(crate) struct Above {
    counted: libc::pid_t,
    channel: OwnedFd,
}

/// What a call returns instead of being done.
enum Instead {
    /// This error.
    Error(i32),
    /// The bytes of its half that was done.
    Half(Half),
}

/// What the process above does with sync calls.
struct Supervisor {
    calls: SyncCalls,
    fault: Option<Fault>,
}

/// Makes this process, which must not have other threads yet, the supervisor of a new process that returns from this call. The
/// sync calls of the new process are counted from now on, and it dies with the supervisor. The supervisor ends with its
/// status. An error (a kernel without the filter, or a filter above that excludes another) is the new process's, which then
/// runs uncounted.
pub fn become_counted() -> io::Result<SyncCalls> {
    become_watched(None)
}

/// The same, with calls that fail.
pub fn become_faulty(fault: Fault) -> io::Result<SyncCalls> {
    become_watched(Some(fault))
}

fn become_watched(fault: Option<Fault>) -> io::Result<SyncCalls> {
    let supervisor = Supervisor { calls: SyncCalls(shared_counters()?), fault };
    match fork(|_| supervisor.program())? {
        Side::Counted(installed) => installed.map(|_| supervisor.calls),
        Side::Above(above) => above.end_with(|listener| supervisor.answer(listener)),
    }
}

/// The sync calls of `work`, which runs in a new process, with calls that fail if there is a fault, and then ends. If this
/// process has other threads, `work` may do only what a fork of it may.
pub fn counted(fault: Option<Fault>, work: impl FnOnce()) -> io::Result<CallCounts> {
    let supervisor = Supervisor { calls: SyncCalls(shared_counters()?), fault };
    match fork(|_| supervisor.program())? {
        Side::Counted(installed) => {
            let error = installed.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            if error == 0 {
                work();
            }
            // SAFETY: ends this process without the exit handlers of the process that it was forked from.
            unsafe { libc::_exit(error) }
        }
        Side::Above(above) => match above.supervise(&|listener| supervisor.answer(listener))? {
            (_, true) => Ok(supervisor.calls.counts()),
            (status, false) => Err(io::Error::from_raw_os_error(libc::WEXITSTATUS(status))),
        },
    }
}

/// Forks a process whose calls are stopped by the filter of this program, which may depend on the descriptor of the channel.
/// Makes only system calls in the new process.
pub(crate) fn fork(program: impl FnOnce(RawFd) -> Vec<libc::sock_filter>) -> io::Result<Side> {
    let (above, below) = channel()?;
    // Before the fork, because the new process must not allocate.
    let mut program = program(below.as_raw_fd());
    // SAFETY: a plain system call; the new process makes only system calls until it returns from here.
    let counted = unsafe { libc::fork() };
    match counted {
        -1 => Err(explained(io::Error::last_os_error())),
        0 => {
            drop(above);
            // SAFETY: a plain system call without pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let own = std::process::id();
            let installed =
                filter::install(&mut program, false).and_then(|listener| send(&below, &listener, own));
            Ok(Side::Counted(installed.map(|()| below)))
        }
        counted => Ok(Side::Above(Above { counted, channel: above })),
    }
}

/// Two ends through which descriptors are passed.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends, which have no other owner.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        checked(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Room for the head of a message and one descriptor.
type Control = [u64; 4];

/// A message of one number, with room for a descriptor beside it.
fn message(number: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zeroes is a valid message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = number;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as _;
    message
}

/// Sends a descriptor with the number of this process. Makes one system call, which no filter stops.
pub(super) fn send(channel: &OwnedFd, descriptor: &OwnedFd, mut process: u32) -> io::Result<()> {
    let mut control = Control::default();
    let mut vector = libc::iovec { iov_base: (&raw mut process).cast(), iov_len: size_of::<u32>() };
    let message = message(&mut vector, &mut control);
    // SAFETY: the message and what it points to are live, and the control bytes have room for one head and one descriptor.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(&message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(head).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
        checked(libc::sendmsg(channel.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as i32).map(drop)
    }
}

/// A descriptor that the other side sends, and the process that sent it; `None` if it sends none.
pub(super) fn receive(channel: &OwnedFd) -> io::Result<Option<(u32, OwnedFd)>> {
    let (mut process, mut control) = (0_u32, Control::default());
    let mut vector = libc::iovec { iov_base: (&raw mut process).cast(), iov_len: size_of::<u32>() };
    let mut message = message(&mut vector, &mut control);
    // SAFETY: as in `send`; the kernel has filled in the head if there is one, and the descriptor has no other owner.
    unsafe {
        checked(libc::recvmsg(channel.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) as i32)?;
        let head = libc::CMSG_FIRSTHDR(&message);
        if head.is_null() || (*head).cmsg_type != libc::SCM_RIGHTS {
            return Ok(None);
        }
        let descriptor = libc::CMSG_DATA(head).cast::<RawFd>().read_unaligned();
        Ok(Some((process, OwnedFd::from_raw_fd(descriptor))))
    }
}

impl Above {
    /// The counted process.
    pub(crate) fn process(&self) -> u32 {
        self.counted.unsigned_abs()
    }

    /// Answers calls until the process has ended, and ends with its status.
    pub(crate) fn end_with(self, answer: impl Fn(&OwnedFd) -> io::Result<()>) -> ! {
        match self.supervise(&answer) {
            Ok((status, _)) => end_as(status),
            Err(error) => {
                eprintln!("cannot count system calls: {error}");
                std::process::exit(1)
            }
        }
    }

    /// Answers calls until the process has ended: its status, and whether it had the filter at all. Processes that it leaves
    /// get an error for further calls that are stopped. After an error of ours the process is killed, because its calls would
    /// wait forever.
    fn supervise(self, answer: &dyn Fn(&OwnedFd) -> io::Result<()>) -> io::Result<(i32, bool)> {
        let answered = self.answer_all(answer);
        if answered.is_err() {
            // SAFETY: a plain system call, on a child that was not waited for.
            unsafe { libc::kill(self.counted, libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: the pointer refers to a live number.
        while unsafe { libc::waitpid(self.counted, &mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        answered.map(|has_filter| (status, has_filter))
    }

    /// Answers calls until the process has ended; whether it has installed the filter.
    fn answer_all(&self, answer: &dyn Fn(&OwnedFd) -> io::Result<()>) -> io::Result<bool> {
        let Some((_, listener)) = receive(&self.channel)? else { return Ok(false) };
        wake_synchronously(&listener);
        // SAFETY: a plain system call, which returns a new descriptor.
        let ended = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, self.counted, 0) } as i32)?;
        // SAFETY: the descriptor has no other owner.
        let ended = unsafe { OwnedFd::from_raw_fd(ended) };
        let watched = |descriptor: &OwnedFd| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut events = [watched(&listener), watched(&ended)];
        loop {
            // SAFETY: the array is live and its length is given.
            match checked(unsafe { libc::poll(events.as_mut_ptr(), 2, -1) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            };
            if events[0].revents & libc::POLLIN != 0 {
                answer(&listener)?;
            } else if events[1].revents != 0 {
                return Ok(true);
            } else if events[0].revents != 0 {
                // Nobody has the filter any more, so the process is about to end.
                events[0].fd = -1;
            }
        }
    }
}

impl Supervisor {
    /// The program of its filter.
    fn program(&self) -> Vec<libc::sock_filter> {
        filter::program(self.fault.as_ref().map_or(&[], |fault| fault.calls.numbers()))
    }

    /// The counts that a call is in, and what it returns instead of being done.
    fn judge(&self, asked: &libc::seccomp_notif) -> ([Option<usize>; 2], Option<Instead>) {
        let kind = filter::kind_of(asked);
        let selecting = self.fault.as_ref().filter(|fault| fault.selects(asked, kind));
        if let Some(fault) = selecting {
            let number = self.calls.add(SELECTED) + 1;
            if fault.fails(number) {
                self.calls.add(FAILED);
                let instead = match fault.calls {
                    FaultyCalls::PartialWrites => Half::of(asked).ok().map(Instead::Half),
                    _ => Some(Instead::Error(fault.errno)),
                };
                if instead.is_none() {
                    // This process may not use the files of that one.
                    self.calls.take_back(FAILED);
                    self.calls.add(CallKind::Hidden as usize);
                    return ([Some(SELECTED), Some(CallKind::Hidden as usize)], None);
                }
                return ([Some(SELECTED), Some(FAILED)], instead);
            }
        }
        let place = kind.map(|kind| kind as usize);
        if let Some(place) = place {
            self.calls.add(place);
        }
        let submits = [libc::SYS_io_uring_enter, libc::SYS_io_submit];
        if submits.contains(&libc::c_long::from(asked.data.nr)) && kind != Some(CallKind::Foreign) {
            self.calls.add(SUBMITTED);
        }
        ([selecting.map(|_| SELECTED), place], None)
    }

    /// Counts a call, then lets it continue or fail.
    fn answer(&self, listener: &OwnedFd) -> io::Result<()> {
        let Some(asked) = asked(listener)? else { return Ok(()) };
        let (places, instead) = self.judge(&asked);
        let result = instead.as_ref().map(|instead| match instead {
            Instead::Error(errno) => -i64::from(*errno),
            Instead::Half(half) => half.bytes as i64,
        });
        let is_answered = answer(listener, asked.id, result)?;
        if !is_answered {
            if let Some(Instead::Half(half)) = instead {
                half.take_back(&asked)?;
            }
            // The call was not done: a signal interrupted it, and it comes again, or its thread was killed.
            places.into_iter().flatten().for_each(|place| self.calls.take_back(place));
        }
        Ok(())
    }
}

/// A stopped process and the one that answers it take turns on one CPU.
pub(super) fn wake_synchronously(listener: &OwnedFd) {
    // SAFETY: a plain system call; an error only means that the kernel is too old for it.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, WAKE_SYNCHRONOUSLY);
    }
}

/// The next stopped call; `None` if it is no longer waiting.
pub(crate) fn asked(listener: &OwnedFd) -> io::Result<Option<libc::seccomp_notif>> {
    // SAFETY: all zeroes is a valid notification, and the kernel requires it.
    let mut asked: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: the pointer refers to a live structure of the size that is part of the request's number.
    match unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) } {
        0 => Ok(Some(asked)),
        _ => withdrawn(io::Error::last_os_error()).map(|()| None),
    }
}

/// Lets a stopped call continue, or return a result without being done, as the kernel returns it: a negative one is an error. Returns
/// whether the call was still waiting.
pub(crate) fn answer(listener: &OwnedFd, id: u64, result: Option<i64>) -> io::Result<bool> {
    // SAFETY: all zeroes is a valid answer.
    let mut answer: libc::seccomp_notif_resp = unsafe { zeroed() };
    answer.id = id;
    match result {
        Some(errno) if errno < 0 => answer.error = errno as i32,
        Some(value) => answer.val = value,
        None => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    }
    // SAFETY: the pointer refers to a live structure of the size that is part of the request's number.
    match unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) } {
        0 => Ok(true),
        _ => withdrawn(io::Error::last_os_error()).map(|()| false),
    }
}

/// No error if the call is no longer waiting.
fn withdrawn(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR | libc::EINPROGRESS) => Ok(()),
        _ => Err(error),
    }
}
