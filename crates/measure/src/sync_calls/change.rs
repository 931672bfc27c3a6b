//! Which calls change the files of a folder, what each of them does, in words, and where a kill may leave a write half done.

#![allow(unsafe_code, reason = "a fact about the system")]

use super::fault::{copied, file_of, flags_of, mapped, path_of, position};
use super::filter::{ARCHITECTURE, STOPPED};
use super::{Change, Unseen};
use crate::checked;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most pieces of a write that the kernel takes.
const PIECES: u64 = 1024;
/// Bytes of a piece's address and length in memory.
const PIECE_BYTES: usize = 16;

/// How a call says what it changes: places of its arguments.
#[derive(Clone, Copy)]
enum Subject {
    /// A descriptor.
    File(usize),
    /// A path, after the descriptor that it is relative to, if there is one.
    Name(Option<usize>, usize),
    /// An old and a new path.
    Names((Option<usize>, usize), (Option<usize>, usize)),
    /// An address in a map of a file.
    Address(usize),
    /// The number of requests, which may be for any file.
    Requests(usize),
    /// All files.
    All,
}

use Subject::*;

/// A number, what the call does, and to what.
type Known = (libc::c_long, &'static str, Subject);

const CALLS: &[Known] = &[
    (libc::SYS_write, "write", File(0)),
    (libc::SYS_pwrite64, "pwrite", File(0)),
    (libc::SYS_writev, "writev", File(0)),
    (libc::SYS_pwritev, "pwritev", File(0)),
    (libc::SYS_pwritev2, "pwritev2", File(0)),
    (libc::SYS_sendfile, "sendfile to", File(0)),
    (libc::SYS_splice, "splice to", File(2)),
    (libc::SYS_copy_file_range, "copy_file_range to", File(2)),
    (libc::SYS_fsync, "fsync", File(0)),
    (libc::SYS_fdatasync, "fdatasync", File(0)),
    (libc::SYS_sync_file_range, "sync_file_range", File(0)),
    (libc::SYS_syncfs, "syncfs", File(0)),
    (libc::SYS_sync, "sync", All),
    (libc::SYS_msync, "msync", Address(0)),
    (libc::SYS_ftruncate, "ftruncate", File(0)),
    (libc::SYS_truncate, "truncate", Name(None, 0)),
    (libc::SYS_fallocate, "fallocate", File(0)),
    (libc::SYS_renameat, "rename", Names((Some(0), 1), (Some(2), 3))),
    (libc::SYS_renameat2, "rename", Names((Some(0), 1), (Some(2), 3))),
    (libc::SYS_linkat, "link", Names((Some(0), 1), (Some(2), 3))),
    (libc::SYS_symlinkat, "symlink", Name(Some(1), 2)),
    (libc::SYS_unlinkat, "unlink", Name(Some(0), 1)),
    (libc::SYS_mkdirat, "mkdir", Name(Some(0), 1)),
    (libc::SYS_openat, "create", Name(Some(0), 1)),
    (libc::SYS_openat2, "create", Name(Some(0), 1)),
    (libc::SYS_io_submit, "io_submit", Requests(1)),
    (libc::SYS_io_uring_enter, "io_uring_enter", Requests(1)),
];

/// Those that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[Known] = &[
    (libc::SYS_rename, "rename", Names((None, 0), (None, 1))),
    (libc::SYS_link, "link", Names((None, 0), (None, 1))),
    (libc::SYS_symlink, "symlink", Name(None, 1)),
    (libc::SYS_unlink, "unlink", Name(None, 0)),
    (libc::SYS_rmdir, "rmdir", Name(None, 0)),
    (libc::SYS_mkdir, "mkdir", Name(None, 0)),
    (libc::SYS_open, "create", Name(None, 0)),
    (libc::SYS_creat, "create", Name(None, 0)),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[Known] = &[];

const SYNCS: [libc::c_long; 6] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
    libc::SYS_msync,
];

/// The calls that the filter must stop besides those that it always does.
pub(super) fn numbers() -> Vec<libc::c_long> {
    let all = CALLS.iter().chain(OLD_CALLS).map(|(number, ..)| *number);
    all.filter(|number| !STOPPED.contains(number)).collect()
}

/// A sync changes nothing that a process can see, so it need not be done for one that will only be killed.
pub(super) fn is_sync(asked: &libc::seccomp_notif) -> bool {
    SYNCS.contains(&libc::c_long::from(asked.data.nr))
}

/// What a call changes in a folder; `None` if nothing.
pub(super) fn change_of(asked: &libc::seccomp_notif, folder: &Path) -> Option<Change> {
    let (thread, arguments) = (asked.pid, &asked.data.args);
    let number = libc::c_long::from(asked.data.nr);
    if asked.data.arch != ARCHITECTURE {
        return None;
    }
    let (_, does, subject) = CALLS.iter().chain(OLD_CALLS).find(|(known, ..)| *known == number)?;
    let plain = |text: String| Some(Change { text, boundaries: 0 });
    match *subject {
        File(descriptor) => {
            let file = shown(&file_of(thread, arguments[descriptor] as i32)?, folder)?;
            let Some(Extent { start, length, boundaries }) = extent(asked) else {
                return plain(match number {
                    libc::SYS_ftruncate => format!("{does} {file} to {} bytes", arguments[1]),
                    libc::SYS_fallocate => {
                        format!("{does} {} bytes at {} of {file}", arguments[3], arguments[2])
                    }
                    _ => format!("{does} {file}"),
                });
            };
            Some(Change { text: format!("{does} {length} bytes at {start} of {file}"), boundaries })
        }
        Name(base, path) => {
            let path = path_of(asked, base, path)?;
            let file = shown(&path, folder)?;
            match opening(asked) {
                None => plain(format!("{does} {file}")),
                Some(flags) if flags & libc::O_TMPFILE == libc::O_TMPFILE => None,
                Some(flags) => match fs::symlink_metadata(&path) {
                    Ok(facts) if flags & libc::O_TRUNC != 0 && facts.len() > 0 => {
                        plain(format!("truncate {file}"))
                    }
                    Err(_) if flags & libc::O_CREAT != 0 => plain(format!("{does} {file}")),
                    _ => None,
                },
            }
        }
        Names(old, new) => {
            let (old, new) = (path_of(asked, old.0, old.1)?, path_of(asked, new.0, new.1)?);
            let (own_old, own_new) = (shown(&old, folder), shown(&new, folder));
            if own_old.is_none() && own_new.is_none() {
                return None;
            }
            let name = |own: Option<String>, path: &Path| own.unwrap_or_else(|| path.display().to_string());
            plain(format!("{does} {} -> {}", name(own_old, &old), name(own_new, &new)))
        }
        Address(address) => plain(format!("{does} {}", shown(&mapped(thread, arguments[address])?, folder)?)),
        Requests(count) => (arguments[count] > 0)
            .then(|| format!("{does} with {} requests", arguments[count]))
            .and_then(plain),
        All => plain((*does).into()),
    }
}

/// What a call says about changes that are no calls.
pub(super) fn unseen_of(asked: &libc::seccomp_notif, folder: &Path) -> Option<Unseen> {
    let arguments = &asked.data.args;
    if asked.data.arch != ARCHITECTURE {
        return Some(Unseen::Foreign);
    }
    match libc::c_long::from(asked.data.nr) {
        libc::SYS_io_uring_setup => Some(Unseen::IoUring),
        libc::SYS_io_submit => Some(Unseen::IoSubmit),
        libc::SYS_mmap => {
            let is_written = arguments[2] as i32 & libc::PROT_WRITE != 0;
            let is_of_file = arguments[3] as i32 & libc::MAP_ANONYMOUS == 0;
            let file = file_of(asked.pid, arguments[4] as i32).filter(|_| is_written && is_of_file)?;
            Some(Unseen::Map(shown(&file, folder)?))
        }
        _ => {
            let own = fs::read_link(format!("/proc/{}/cwd", asked.pid));
            own.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied).then_some(Unseen::Hidden)
        }
    }
}

/// A file of the folder, without the folder; `None` if it is elsewhere.
fn shown(file: &Path, folder: &Path) -> Option<String> {
    let own = file.strip_prefix(folder).ok()?;
    Some(if own.as_os_str().is_empty() { "its folder".into() } else { own.display().to_string() })
}

/// The flags of a call that opens a file; `None` if it is none.
fn opening(asked: &libc::seccomp_notif) -> Option<i32> {
    let arguments = &asked.data.args;
    match libc::c_long::from(asked.data.nr) {
        libc::SYS_openat => Some(arguments[2] as i32),
        libc::SYS_openat2 => {
            // The flags are the first word of a structure.
            let mut flags = [0; 8];
            copied(asked.pid, arguments[2], &mut flags).map(|_| u64::from_le_bytes(flags) as i32)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(arguments[1] as i32),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => Some(libc::O_CREAT | libc::O_TRUNC),
        _ => None,
    }
}

/// Where a write goes.
struct Extent {
    start: u64,
    length: u64,
    /// Page boundaries within it.
    boundaries: u32,
}

/// Where a write from memory goes; `None` if the call is none.
fn extent(asked: &libc::seccomp_notif) -> Option<Extent> {
    let (thread, arguments) = (asked.pid, &asked.data.args);
    let descriptor = arguments[0] as i32;
    let flags = flags_of(thread, descriptor)?;
    let number = libc::c_long::from(asked.data.nr);
    let length = match number {
        libc::SYS_write | libc::SYS_pwrite64 => arguments[2],
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            pieces(asked)?.iter().map(|(_, length)| length).sum()
        }
        _ => return None,
    };
    // Linux appends even if the call names a place; a place of -1 is that of the descriptor.
    let start = match arguments[3] {
        place if has_place(number) && place != u64::MAX && flags & libc::O_APPEND == 0 => place,
        _ => position(thread, descriptor)?,
    };
    let first = page() - start % page();
    // A direct write does not go through pages of the cache, between which the kernel looks for a kill.
    let is_whole = length <= first || flags & libc::O_DIRECT != 0;
    let boundaries = if is_whole { 0 } else { 1 + (length - first - 1) / page() };
    Some(Extent { start, length, boundaries: u32::try_from(boundaries).unwrap_or(u32::MAX) })
}

/// Whether a call says where it writes.
fn has_place(number: libc::c_long) -> bool {
    matches!(number, libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2)
}

/// The pieces of a write from several places: address and length of each.
fn pieces(asked: &libc::seccomp_notif) -> Option<Vec<(u64, u64)>> {
    let arguments = &asked.data.args;
    let count = arguments[2].min(PIECES) as usize;
    let mut bytes = vec![0; count * PIECE_BYTES];
    if count > 0 && copied(asked.pid, arguments[1], &mut bytes)? < bytes.len() {
        return None;
    }
    let words =
        bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
    let words: Vec<u64> = words.collect();
    Some(words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Bytes of a page.
fn page() -> u64 {
    // SAFETY: a plain call without pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(4096)
}

/// Does a write up to a page boundary, from 1, as the kernel does if the process is killed meanwhile.
pub(super) fn tear(asked: &libc::seccomp_notif, boundary: u32) -> io::Result<()> {
    let Extent { start, length, .. } = extent(asked).ok_or_else(unreadable)?;
    write_part(asked, start, (u64::from(boundary) * page() - start % page()).min(length))
}

fn unreadable() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// The bytes of half of a write from memory, as a kernel may do it: a direct write ends at a block. `None` if there is no such half.
pub(super) fn half_of(asked: &libc::seccomp_notif) -> Option<u64> {
    let Extent { length, .. } = extent(asked)?;
    let is_direct = flags_of(asked.pid, asked.data.args[0] as i32)? & libc::O_DIRECT != 0;
    let unit = if is_direct { page() } else { 1 };
    Some(length / 2 / unit * unit).filter(|half| *half > 0)
}

/// Half of a write that was done for another process.
pub(super) struct Half {
    /// The bytes that were written.
    pub(super) bytes: u64,
    /// The descriptor, if the write has moved its position, and the position before.
    moved: Option<(OwnedFd, u64)>,
    /// The length of the file before, if the write has appended to it.
    appended: Option<u64>,
}

impl Half {
    /// Does half of a write, and moves the position of its descriptor as the write would.
    pub(super) fn of(asked: &libc::seccomp_notif) -> io::Result<Half> {
        let bytes = half_of(asked).ok_or_else(unreadable)?;
        let Extent { start, .. } = extent(asked).ok_or_else(unreadable)?;
        let descriptor = asked.data.args[0] as i32;
        let has_place = has_place(libc::c_long::from(asked.data.nr)) && asked.data.args[3] != u64::MAX;
        let is_appended = flags_of(asked.pid, descriptor).ok_or_else(unreadable)? & libc::O_APPEND != 0;
        let moved = if has_place { None } else { Some((descriptor_of(asked.pid, descriptor)?, start)) };
        write_part(asked, start, bytes)?;
        let half = Half { bytes, moved, appended: is_appended.then_some(start) };
        half.seek(bytes)?;
        Ok(half)
    }

    /// The process was interrupted before it knew of it, and makes the whole call again.
    pub(super) fn take_back(&self, asked: &libc::seccomp_notif) -> io::Result<()> {
        self.seek(0)?;
        match self.appended {
            Some(length) => writable(asked)?.set_len(length),
            None => Ok(()),
        }
    }

    /// Sets the position to so many bytes behind that before the write.
    fn seek(&self, bytes: u64) -> io::Result<()> {
        let Some((descriptor, start)) = &self.moved else { return Ok(()) };
        let place = libc::off_t::try_from(start + bytes).map_err(|_| unreadable())?;
        // SAFETY: a plain system call on an open descriptor.
        let place = unsafe { libc::lseek(descriptor.as_raw_fd(), place, libc::SEEK_SET) };
        if place < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// A copy of a descriptor of another process, with the same position.
fn descriptor_of(thread: u32, descriptor: i32) -> io::Result<OwnedFd> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse::<i32>().ok());
    let process = process.ok_or_else(unreadable)?;
    // SAFETY: plain system calls, which return new descriptors without other owners.
    unsafe {
        let process = checked(libc::syscall(libc::SYS_pidfd_open, process, 0) as i32)?;
        let process = OwnedFd::from_raw_fd(process);
        let copy = checked(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) as i32)?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// The file that a call writes to.
fn writable(asked: &libc::seccomp_notif) -> io::Result<fs::File> {
    let file = PathBuf::from(format!("/proc/{}/fd/{}", asked.pid, asked.data.args[0] as i32));
    fs::OpenOptions::new().write(true).open(file)
}

/// Writes the first bytes of a write, at this place.
fn write_part(asked: &libc::seccomp_notif, start: u64, most: u64) -> io::Result<()> {
    let arguments = &asked.data.args;
    let pieces = match libc::c_long::from(asked.data.nr) {
        libc::SYS_write | libc::SYS_pwrite64 => vec![(arguments[1], arguments[2])],
        _ => pieces(asked).ok_or_else(unreadable)?,
    };
    let mut bytes = Vec::new();
    for (address, length) in pieces {
        let length = length.min(most - bytes.len() as u64) as usize;
        let mut piece = vec![0; length];
        if length > 0 && copied(asked.pid, address, &mut piece) != Some(length) {
            return Err(unreadable());
        }
        bytes.extend(piece);
    }
    writable(asked)?.write_all_at(&bytes, start)
}
