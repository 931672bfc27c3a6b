//! The filter: which system calls it stops, and what a stopped one is.

#![allow(unsafe_code, reason = "system calls")]

use super::CallKind;
use super::CallKind::*;
use super::fault;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls that the filter of a pass always stops; the first ones sync.
pub(super) const STOPPED: [libc::c_long; 17] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_submit,
];

/// How many of them sync.
const SYNCS: usize = 6;

/// Offsets in `struct seccomp_data`: the number of the call, the architecture, and the lower half of the fourth argument
/// (both architectures are little-endian).
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const MAP_FLAGS_AT: u32 = 16 + 3 * 8;
/// The lower half of the first argument.
const FIRST_AT: u32 = 16;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_BITS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

fn step(code: u32, operand: u32, jump_if_true: u8, jump_if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_if_true, jf: jump_if_false, k: operand }
}

/// The program of the filter, which stops `more` calls too.
pub(super) fn program(more: &[libc::c_long]) -> Vec<libc::sock_filter> {
    stopping(&[&STOPPED, more].concat())
}

/// The program of a filter that stops no writes, so that they cost what they always do.
pub(super) fn program_of_syncs() -> Vec<libc::sock_filter> {
    stopping(&STOPPED[..SYNCS])
}

/// The program of a filter that stops all calls but messages to this descriptor, by which the listener is passed on.
pub(crate) fn stopping_all(channel: RawFd) -> Vec<libc::sock_filter> {
    vec![
        step(LOAD, ARCHITECTURE_AT, 0, 0),
        step(IF_EQUAL, ARCHITECTURE, 0, 5),
        step(LOAD, NUMBER_AT, 0, 0),
        step(IF_EQUAL, libc::SYS_sendmsg as u32, 0, 3),
        step(LOAD, FIRST_AT, 0, 0),
        step(IF_EQUAL, channel as u32, 0, 1),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
    ]
}

/// The program of a filter that stops these calls and shared mappings; jumps count the steps that are skipped.
fn stopping(stopped: &[libc::c_long]) -> Vec<libc::sock_filter> {
    let calls = stopped.len() as u8;
    let mut program = vec![
        step(LOAD, ARCHITECTURE_AT, 0, 0),
        // Another architecture (32-bit calls): what they do is not seen, but that they are made.
        step(IF_EQUAL, ARCHITECTURE, 0, calls + 5),
        step(LOAD, NUMBER_AT, 0, 0),
    ];
    let stop = |(place, number): (u8, &libc::c_long)| step(IF_EQUAL, *number as u32, calls - place + 3, 0);
    program.extend((0..calls).zip(stopped).map(stop));
    program.extend([
        // Of all mappings only the shared ones, because an allocator maps memory too.
        step(IF_EQUAL, libc::SYS_mmap as u32, 0, 2),
        step(LOAD, MAP_FLAGS_AT, 0, 0),
        step(IF_BITS, libc::MAP_SHARED as u32, 1, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
    ]);
    program
}

/// Installs the filter in this thread, for all threads, processes and programs that come from it, and returns the descriptor
/// at which stopped calls are answered. With `must_outlast_signals`, a kernel in which a signal interrupts a stopped call is an
/// error. Makes only system calls.
pub(super) fn install(steps: &mut [libc::sock_filter], must_outlast_signals: bool) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: a plain system call without pointers.
    let outcome = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    let seccomp = |flags: libc::c_ulong| {
        // SAFETY: the program and its steps are live, and the kernel copies them.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER as libc::c_long,
                flags,
                &raw const program,
            )
        };
        i32::try_from(listener).ok().filter(|listener| *listener >= 0).ok_or_else(io::Error::last_os_error)
    };
    // With the second flag a signal does not interrupt a call that is being counted. Linux before 5.19 does not have it.
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let descriptor = seccomp(listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).or_else(|error| {
        let is_old = error.raw_os_error() == Some(libc::EINVAL);
        if is_old && !must_outlast_signals { seccomp(listener) } else { Err(error) }
    })?;
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// What a stopped call counts as; `None` if it is none of the kinds: a write to a pipe, an `msync` that does not wait.
pub(super) fn kind_of(asked: &libc::seccomp_notif) -> Option<CallKind> {
    let arguments = &asked.data.args;
    let has = |argument: usize, bits: i32| arguments[argument] as i32 & bits == bits;
    if asked.data.arch != ARCHITECTURE {
        return Some(Foreign);
    }
    match libc::c_long::from(asked.data.nr) {
        libc::SYS_fsync => Some(Fsync),
        libc::SYS_fdatasync => Some(Fdatasync),
        libc::SYS_msync => has(2, libc::MS_SYNC).then_some(Msync),
        libc::SYS_sync_file_range => Some(RangeFlush),
        libc::SYS_syncfs => Some(Syncfs),
        libc::SYS_sync => Some(Sync),
        libc::SYS_io_uring_setup | libc::SYS_io_uring_enter => Some(IoUring),
        libc::SYS_io_submit => Some(IoSubmit),
        libc::SYS_mmap => (!has(3, libc::MAP_ANONYMOUS)).then_some(Mapping),
        libc::SYS_pwritev2 if has(5, libc::RWF_SYNC) => Some(SyncWrite),
        libc::SYS_pwritev2 if has(5, libc::RWF_DSYNC) => Some(DsyncWrite),
        number if STOPPED.contains(&number) => kind_of_write(asked.pid, fault::written(asked)),
        _ => None,
    }
}

/// A write by a thread to one of its descriptors.
fn kind_of_write(thread: u32, descriptor: i32) -> Option<CallKind> {
    use std::os::unix::fs::FileTypeExt;
    let kind = match std::fs::metadata(format!("/proc/{thread}/fd/{descriptor}")) {
        Ok(facts) => facts.file_type(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Some(Hidden),
        // Not open, so nothing is written.
        Err(_) => return None,
    };
    if !kind.is_file() && !kind.is_block_device() {
        return None;
    }
    let flags = i32::from_str_radix(&fault::fact_of(thread, descriptor, "flags:")?, 8).ok()?;
    // O_SYNC contains the bit of O_DSYNC.
    Some(match flags {
        flags if flags & libc::O_SYNC == libc::O_SYNC => SyncWrite,
        flags if flags & libc::O_DSYNC != 0 => DsyncWrite,
        _ => Write,
    })
}
