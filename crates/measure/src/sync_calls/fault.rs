//! Which calls a fault selects: by kind, and by the file that they are for.

#![allow(unsafe_code, reason = "reads the memory of another process")]

use super::change::half_of;
use super::{CallKind, Fault, FaultyCalls, SYNCS};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Bytes of a path, the final zero included.
const PATH_BYTES: usize = 4096;
/// A flag of `fallocate`: it frees space.
const PUNCH_HOLE: u64 = 2;

const READS: [libc::c_long; 5] =
    [libc::SYS_read, libc::SYS_pread64, libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2];
const WRITES: [libc::c_long; 8] = [
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
];
const RESERVES: [libc::c_long; 1] = [libc::SYS_fallocate];
#[cfg(target_arch = "x86_64")]
const OPENS: [libc::c_long; 4] = [libc::SYS_openat, libc::SYS_openat2, libc::SYS_open, libc::SYS_creat];
#[cfg(target_arch = "aarch64")]
const OPENS: [libc::c_long; 2] = [libc::SYS_openat, libc::SYS_openat2];

impl FaultyCalls {
    /// The calls that the filter must stop besides those that are always counted.
    pub(super) fn numbers(self) -> &'static [libc::c_long] {
        match self {
            // The filter always stops shared mappings.
            FaultyCalls::Syncs | FaultyCalls::Writes | FaultyCalls::PartialWrites | FaultyCalls::Maps => &[],
            FaultyCalls::Reads => &READS,
            FaultyCalls::Growth => &RESERVES,
            FaultyCalls::Opens => &OPENS,
        }
    }
}

impl Fault {
    /// Whether a call is one of those that may fail.
    pub(super) fn selects(&self, asked: &libc::seccomp_notif, kind: Option<CallKind>) -> bool {
        let number = libc::c_long::from(asked.data.nr);
        if kind == Some(CallKind::Foreign) {
            return false;
        }
        let is_write = WRITES.contains(&number);
        match self.calls {
            FaultyCalls::Syncs => {
                let is_sync = kind.is_some_and(|kind| SYNCS.contains(&kind) && kind != CallKind::Sync);
                is_sync && self.is_of_folder(asked)
            }
            FaultyCalls::Writes => is_write && self.is_of_folder(asked),
            FaultyCalls::PartialWrites => is_write && self.is_of_folder(asked) && half_of(asked).is_some(),
            FaultyCalls::Reads => READS.contains(&number) && self.is_of_folder(asked),
            FaultyCalls::Growth => {
                (is_write || RESERVES.contains(&number)) && self.is_of_folder(asked) && needs_space(asked)
            }
            FaultyCalls::Maps => kind == Some(CallKind::Mapping) && self.is_of_folder(asked),
            FaultyCalls::Opens => {
                OPENS.contains(&number) && opened(asked).is_some_and(|path| path.starts_with(&self.folder))
            }
        }
    }

    /// Whether the call with this number, from 1, fails.
    pub(super) fn fails(&self, number: u64) -> bool {
        self.first > 0 && (number == self.first || self.lasts && number > self.first)
    }

    /// Whether the file of a call is in the folder.
    fn is_of_folder(&self, asked: &libc::seccomp_notif) -> bool {
        let file = match libc::c_long::from(asked.data.nr) {
            libc::SYS_msync => mapped(asked.pid, asked.data.args[0]),
            libc::SYS_mmap => file_of(asked.pid, asked.data.args[4] as i32),
            _ => file_of(asked.pid, written(asked)),
        };
        file.is_some_and(|file| file.starts_with(&self.folder))
    }
}

/// The descriptor that a call reads, syncs or changes; of two, the one that it writes to.
pub(super) fn written(asked: &libc::seccomp_notif) -> i32 {
    let is_third = [libc::SYS_splice, libc::SYS_copy_file_range].contains(&libc::c_long::from(asked.data.nr));
    asked.data.args[if is_third { 2 } else { 0 }] as i32
}

/// The file of a descriptor.
pub(super) fn file_of(thread: u32, descriptor: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()
}

/// What the kernel says of a descriptor; `name` has the colon.
pub(super) fn fact_of(thread: u32, descriptor: i32, name: &str) -> Option<String> {
    let facts = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).ok()?;
    facts.lines().find_map(|line| line.strip_prefix(name)).map(|fact| fact.trim().to_string())
}

/// The flags with which a descriptor was opened.
pub(super) fn flags_of(thread: u32, descriptor: i32) -> Option<i32> {
    i32::from_str_radix(&fact_of(thread, descriptor, "flags:")?, 8).ok()
}

/// Where the next write to a descriptor goes that does not say it.
pub(super) fn position(thread: u32, descriptor: i32) -> Option<u64> {
    if flags_of(thread, descriptor)? & libc::O_APPEND != 0 {
        Some(fs::metadata(format!("/proc/{thread}/fd/{descriptor}")).ok()?.len())
    } else {
        fact_of(thread, descriptor, "pos:")?.parse().ok()
    }
}

/// The file that is mapped at an address.
pub(super) fn mapped(thread: u32, address: u64) -> Option<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{thread}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let is_there = (number(start)?..number(end)?).contains(&address);
        is_there.then(|| rest.find('/').map(|at| PathBuf::from(&rest[at..])))?
    })
}

/// Whether a call needs space that its file does not have: past its end, or in a hole.
fn needs_space(asked: &libc::seccomp_notif) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (thread, arguments) = (asked.pid, &asked.data.args);
    let descriptor = written(asked);
    let path = format!("/proc/{thread}/fd/{descriptor}");
    let Ok(file) = fs::metadata(&path) else { return false };
    let position = || position(thread, descriptor);
    let (start, length) = match libc::c_long::from(asked.data.nr) {
        libc::SYS_fallocate if arguments[1] & PUNCH_HOLE != 0 => return false,
        // It reserves space even where the file is long enough.
        libc::SYS_fallocate => return true,
        // Where and how much is in memory: taken as a write past the end.
        libc::SYS_sendfile | libc::SYS_splice | libc::SYS_copy_file_range => return true,
        libc::SYS_pwrite64 => (Some(arguments[3]), arguments[2]),
        // The lengths of a vector are not looked up: at least a byte.
        libc::SYS_pwritev | libc::SYS_pwritev2 => (Some(arguments[3]), 1),
        libc::SYS_writev => (position(), 1),
        _ => (position(), arguments[2]),
    };
    // Blocks that are allocated past its end need no more space.
    let has = file.len().max(file.blocks() * 512);
    start.is_some_and(|start| {
        start.saturating_add(length) > has || start < file.len() && is_hole(&path, start)
    })
}

/// Whether a file has a hole at this place.
fn is_hole(path: &str, place: u64) -> bool {
    use std::os::fd::AsRawFd;
    let Ok(file) = fs::File::open(path) else { return false };
    let Ok(place) = libc::off_t::try_from(place) else { return false };
    // SAFETY: a plain system call on a descriptor that nobody else has.
    let data = unsafe { libc::lseek(file.as_raw_fd(), place, libc::SEEK_DATA) };
    // Without data from there on, the call fails.
    data != place
}

/// The path that a call opens, absolute, without `.` and `..`.
fn opened(asked: &libc::seccomp_notif) -> Option<PathBuf> {
    let number = libc::c_long::from(asked.data.nr);
    let is_relative_to_descriptor = number == libc::SYS_openat || number == libc::SYS_openat2;
    path_of(asked, is_relative_to_descriptor.then_some(0), usize::from(is_relative_to_descriptor))
}

/// The path that an argument of a call points to, absolute, without `.` and `..`. It is relative to the descriptor that another
/// argument is, if there is one, or to the working folder.
pub(super) fn path_of(asked: &libc::seccomp_notif, base: Option<usize>, path: usize) -> Option<PathBuf> {
    let (thread, arguments) = (asked.pid, &asked.data.args);
    let path = text_at(thread, arguments[path])?;
    let descriptor = base.map_or(libc::AT_FDCWD, |base| arguments[base] as i32);
    let base = if descriptor == libc::AT_FDCWD {
        fs::read_link(format!("/proc/{thread}/cwd")).ok()?
    } else {
        file_of(thread, descriptor)?
    };
    let mut plain = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// The text at an address of another process.
fn text_at(thread: u32, address: u64) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = [0_u8; PATH_BYTES];
    let mut read = 0;
    // A page at a time, because the next one may not exist.
    while read < PATH_BYTES && !bytes[..read].contains(&0) {
        let place = address + read as u64;
        let count = (4096 - place as usize % 4096).min(PATH_BYTES - read);
        read += copied(thread, place, &mut bytes[read..read + count])?;
    }
    let length = bytes[..read].iter().position(|byte| *byte == 0)?;
    Some(Path::new(std::ffi::OsStr::from_bytes(&bytes[..length])).to_path_buf())
}

/// Copies what is at an address of another process; the bytes that were copied, at least one.
pub(super) fn copied(thread: u32, address: u64, bytes: &mut [u8]) -> Option<usize> {
    let into = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let from = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: `into` is live and has room for that many bytes; the kernel checks the other address.
    let copied = unsafe { libc::process_vm_readv(thread as i32, &into, 1, &from, 1, 0) };
    usize::try_from(copied).ok().filter(|copied| *copied > 0)
}
