//! What a process is short of, or was when it failed: space, inodes, open files, processes, memory. An error's text says what
//! kind of call failed; limits, file systems and control groups say which limit that was.

#![allow(unsafe_code, reason = "system calls")]

mod processes;
#[cfg(test)]
mod tests;
mod words;

use super::disk::{Space, space};
use super::machine::OwnLimit;
use super::memory_cap::CapRecord;
use super::start;
use crate::text::bytes_text;
use processes::ProcessLimit;
use std::path::Path;
pub use words::telling_line;
use words::{Said, said};

/// What can be short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Space on the file system, or a quota of it.
    Space,
    /// Files that the file system can still hold.
    Inodes,
    /// Files that a process may have open.
    OpenFiles,
    /// Processes and threads.
    Processes,
    /// Addresses that a process may use.
    AddressSpace,
    /// Memory.
    Memory,
    /// The size that a file may have.
    FileSize,
}

/// What was short, and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// What.
    pub of: Short,
    /// `the limit of 16 open files is reached (ulimit -n)`
    pub text: String,
}

/// What is known of a failed process, apart from its own words.
pub struct Scene<'s> {
    /// The folder of its database.
    pub data: &'s Path,
    /// The cap of its memory, with its counters.
    pub cap: Option<&'s CapRecord>,
    /// Whether the kernel has killed a process because memory ran out; with a cap, one of the capped processes.
    pub out_of_memory: bool,
}

/// A file system with less free space has none for a block of an engine, bytes.
const FULL: u64 = 256 << 10;
/// An engine that has ended may have had this many threads and processes.
const THREADS_OF_ENGINES: u64 = 512;
/// Limits below these are unusually low.
const FEW_FILES: u64 = 1024;
const LITTLE_SPACE: u64 = 64 << 20;
const SMALL_STACK: u64 = 1 << 20;
/// The memory that an allocation is tested with, bytes.
const TESTED_BYTES: usize = 8 << 20;

impl Scene<'_> {
    /// For a process without a cap, as far as it is known here, that has its database in this folder.
    pub fn of_database(data: &Path) -> Scene<'_> {
        Scene { data, cap: None, out_of_memory: false }
    }

    /// What a failed call was short of, by the text of its error. `None` if the text names nothing that can be short.
    pub fn of_error(&self, text: &str) -> Option<Shortage> {
        self.shortage(said(text)?)
    }

    /// What a process was short of that died of a signal (`SIGABRT`, or `exit 1`), by the last lines that it printed and by the
    /// system. `None`: nothing is known to have been short.
    pub fn of_death<'l>(
        &self,
        signal: &str,
        lines: impl DoubleEndedIterator<Item = &'l str>,
    ) -> Option<Shortage> {
        let by_words = || lines.rev().find_map(|line| self.shortage(said(line)?));
        let is_killed = signal.contains("SIGKILL");
        if is_killed && self.out_of_memory {
            return Some(self.named(Short::Memory));
        }
        if let Some(found) = by_words() {
            return Some(found);
        }
        if signal.contains("SIGXFSZ") && OwnLimit::FileSize.soft().is_some() {
            return Some(self.named(Short::FileSize));
        }
        // One of the processes that it had started.
        if self.cap.is_some_and(|cap| cap.kills > Some(0)) {
            return Some(self.named(Short::Memory));
        }
        if is_killed { None } else { self.full() }
    }

    /// Whether the file system of the database is full.
    pub fn full(&self) -> Option<Shortage> {
        match space(self.data).filter(|space| space.bytes > 0)? {
            Space { free_files: Some(0), .. } => Some(self.named(Short::Inodes)),
            Space { free_bytes, .. } if free_bytes < FULL => Some(self.named(Short::Space)),
            _ => None,
        }
    }

    /// Limits that may be why a process died without a word; `None` if none is unusually low.
    pub fn suspects(&self) -> Option<String> {
        let at = |limit: OwnLimit| limit.soft();
        let space = space(self.data).filter(|space| space.bytes > 0);
        let little = space.filter(|space| space.free_bytes < LITTLE_SPACE);
        let few = space.and_then(|space| space.free_files).filter(|files| *files < FEW_FILES);
        let reached = self.cap.filter(|cap| cap.was_reached()).and_then(|cap| cap.limit_bytes);
        let suspects = [
            little.map(|space| {
                format!("free space {} of {}", bytes_text(space.free_bytes), bytes_text(space.bytes))
            }),
            few.map(|files| format!("free inodes {files}")),
            reached.map(|limit| format!("memory cap {}, which was reached", bytes_text(limit))),
            at(OwnLimit::OpenFiles)
                .filter(|limit| *limit < FEW_FILES)
                .map(|limit| format!("open files {limit} (ulimit -n)")),
            ProcessLimit::nearest(THREADS_OF_ENGINES).map(|near| near.suspect()),
            at(OwnLimit::AddressSpace)
                .map(|limit| format!("address space {} (ulimit -v)", bytes_text(limit))),
            at(OwnLimit::Data).map(|limit| format!("data {} (ulimit -d)", bytes_text(limit))),
            at(OwnLimit::FileSize).map(|limit| format!("size of a file {} (ulimit -f)", bytes_text(limit))),
            at(OwnLimit::Stack)
                .filter(|limit| *limit < SMALL_STACK)
                .map(|limit| format!("stack {} (ulimit -s)", bytes_text(limit))),
        ];
        let found: Vec<String> = suspects.into_iter().flatten().collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    fn shortage(&self, said: Said) -> Option<Shortage> {
        Some(self.named(match said {
            Said::NoSpace if self.lacks_inodes() => Short::Inodes,
            Said::NoSpace => Short::Space,
            Said::TooManyFiles => Short::OpenFiles,
            Said::TooLarge => Short::FileSize,
            Said::NoMemory if self.out_of_memory => Short::Memory,
            Said::NoMemory if limits_memory() => Short::AddressSpace,
            Said::NoMemory => Short::Memory,
            Said::NoThread { .. } if ProcessLimit::nearest(THREADS_OF_ENGINES).is_some() => Short::Processes,
            // The stack of a thread is memory of its process.
            Said::NoThread { .. } if limits_memory() => Short::AddressSpace,
            Said::NoThread { is_certain: true } => Short::Processes,
            Said::NoThread { is_certain: false } => return None,
        }))
    }

    /// Whether a file system that takes no more has room for bytes, but not for files; one that the engine has removed meanwhile
    /// may have left its place.
    fn lacks_inodes(&self) -> bool {
        space(self.data).is_some_and(|space| match space.free_files {
            Some(0) => true,
            Some(files) => files < FEW_FILES && space.free_bytes >= LITTLE_SPACE,
            None => false,
        })
    }

    /// A shortage with its limit.
    pub fn named(&self, of: Short) -> Shortage {
        let text = match of {
            Short::Space => match space(self.data) {
                Some(space) => format!(
                    "no space is left on the file system of the database ({} of {} are free now)",
                    bytes_text(space.free_bytes),
                    bytes_text(space.bytes)
                ),
                None => "no space is left on the file system of the database".into(),
            },
            Short::Inodes => "no inode is left on the file system of the database".into(),
            Short::OpenFiles => match OwnLimit::OpenFiles.soft() {
                Some(limit) => format!("the limit of {limit} open files is reached (ulimit -n)"),
                None => "the limit on open files is reached (ulimit -n)".into(),
            },
            Short::Processes => ProcessLimit::nearest(THREADS_OF_ENGINES).map_or_else(
                || {
                    "a limit on processes and threads is reached (ulimit -u, or pids.max of a control group)"
                        .into()
                },
                |near| near.reached(),
            ),
            Short::AddressSpace => match (OwnLimit::AddressSpace.soft(), OwnLimit::Data.soft()) {
                (Some(limit), _) => {
                    format!("the limit of {} on address space is reached (ulimit -v)", bytes_text(limit))
                }
                (None, Some(limit)) => {
                    format!("the limit of {} on data is reached (ulimit -d)", bytes_text(limit))
                }
                (None, None) => "a limit on address space is reached (ulimit -v)".into(),
            },
            Short::Memory => match self.cap.and_then(|cap| cap.limit_bytes) {
                Some(limit) => {
                    format!("the trial's process ran out of memory under a cap of {}", bytes_text(limit))
                }
                None => "the trial's process ran out of memory".into(),
            },
            Short::FileSize => match OwnLimit::FileSize.soft() {
                Some(limit) => {
                    format!("the limit of {} on the size of a file is reached (ulimit -f)", bytes_text(limit))
                }
                None => "the limit on the size of a file is reached".into(),
            },
        };
        Shortage { of, text }
    }
}

/// Whether a limit can make allocations of this process fail.
fn limits_memory() -> bool {
    OwnLimit::AddressSpace.soft().is_some() || OwnLimit::Data.soft().is_some()
}

/// What this process is short of at this moment, whatever the engine's words for that are: found out by opening a file,
/// starting a thread and allocating memory.
#[cold]
pub fn felt() -> Option<Short> {
    if let Err(error) = std::fs::File::open("/dev/null")
        && matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    {
        return Some(Short::OpenFiles);
    }
    if !can_allocate() {
        return Some(if limits_memory() { Short::AddressSpace } else { Short::Memory });
    }
    match start::thread(|| ()) {
        Ok(thread) => {
            // It does nothing, so it cannot panic.
            let _ = thread.join();
            None
        }
        // The stack of a thread is memory of its process.
        Err(_) if ProcessLimit::nearest(THREADS_OF_ENGINES).is_none() && limits_memory() => {
            Some(Short::AddressSpace)
        }
        Err(_) => Some(Short::Processes),
    }
}

fn can_allocate() -> bool {
    // SAFETY: a new map of memory that nothing uses, and that is removed again.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let map =
            libc::mmap(std::ptr::null_mut(), TESTED_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if map == libc::MAP_FAILED {
            return false;
        }
        libc::munmap(map, TESTED_BYTES);
    }
    true
}

/// The error of a call that starts a thread or process, or opens a file, with the limit that it has reached and what to do about
/// it; other errors are unchanged.
pub fn explained(error: std::io::Error) -> std::io::Error {
    let raise = |text: String| std::io::Error::new(error.kind(), text);
    match error.raw_os_error() {
        Some(libc::EAGAIN) => match ProcessLimit::nearest(THREADS_OF_ENGINES) {
            Some(near) => raise(format!("{}; {}", near.reached(), near.advice())),
            None if limits_memory() => raise(memory_limits()),
            None => raise(
                "a limit on processes and threads is reached; raise it (ulimit -u, pids.max of the control group, or \
                 kernel.threads-max)"
                    .into(),
            ),
        },
        Some(libc::ENOMEM) if limits_memory() => raise(memory_limits()),
        Some(libc::EMFILE) => {
            let limit = OwnLimit::OpenFiles.soft().map_or_else(String::new, |limit| format!(" of {limit}"));
            raise(format!("the limit{limit} on open files is reached (ulimit -n); raise it"))
        }
        Some(libc::EFBIG) => {
            let limit = OwnLimit::FileSize.soft().map_or_else(String::new, |limit| format!(" of {}", bytes_text(limit)));
            raise(format!("the limit{limit} on the size of a file is reached (ulimit -f); raise it"))
        }
        _ => error,
    }
}

/// What to do about an error that a file could not be written for; `None` if it is not due to a limit.
pub fn cure(error: &std::io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EFBIG => Some("raise the limit on the size of a file (ulimit -f)"),
        libc::EMFILE => Some("raise the limit on open files (ulimit -n)"),
        libc::ENFILE => Some("raise the machine's limit on open files (fs.file-max)"),
        _ => None,
    }
}

fn memory_limits() -> String {
    match (OwnLimit::AddressSpace.soft(), OwnLimit::Data.soft()) {
        (Some(limit), _) => {
            format!("the limit of {} on address space is reached (ulimit -v); raise it", bytes_text(limit))
        }
        (None, Some(limit)) => {
            format!("the limit of {} on data is reached (ulimit -d); raise it", bytes_text(limit))
        }
        (None, None) => "memory is short".into(),
    }
}
