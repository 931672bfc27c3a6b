//! Counters in memory that another process can read: one cache line of words for each, and nothing else.
//!
//! The memory belongs to no file on a disk (memfd). A page of a file on disk is write-protected after each
//! write-back, so the next store to it would be a page fault that may wait for the disk. A counter must not have that
//! cost.

#![allow(unsafe_code, reason = "system calls")]

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a line.
pub const WORDS: usize = 16;

/// Two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
struct Line([AtomicU64; WORDS]);

/// Lines of words, all initially 0.
pub struct Counters {
    base: NonNull<Line>,
    lines: usize,
    is_mapped: bool,
    /// The descriptor that another process can map; -1 if there is none.
    #[cfg(target_os = "linux")]
    descriptor: libc::c_int,
}

// SAFETY: the memory holds atomics only, and lives as long as the value.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

impl Counters {
    /// Creates counters for this process only.
    pub fn alone(lines: usize) -> Counters {
        let all: Box<[Line]> = (0..lines).map(|_| Line(Default::default())).collect();
        let base = NonNull::from(Box::leak(all)).cast();
        Counters {
            base,
            lines,
            is_mapped: false,
            #[cfg(target_os = "linux")]
            descriptor: -1,
        }
    }

    /// Creates counters that a process started from now on can map too, by [`Counters::descriptor`].
    #[cfg(target_os = "linux")]
    pub fn shared(lines: usize) -> io::Result<Counters> {
        let flags = libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string that ends in 0; the result is checked.
        let descriptor = unsafe { libc::memfd_create(c"kvdyno-counters".as_ptr(), flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: plain system calls on our own descriptor. The size is sealed, because a process that truncates it
        // would kill the other processes that read it.
        let is_sized = unsafe {
            libc::ftruncate(descriptor, (lines * size_of::<Line>()) as libc::off_t) == 0
                && libc::fcntl(descriptor, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) == 0
        };
        let mapped = if is_sized { map(descriptor, lines) } else { Err(io::Error::last_os_error()) };
        match mapped {
            Ok(base) => Ok(Counters { base, lines, is_mapped: true, descriptor }),
            Err(error) => {
                close(descriptor);
                Err(error)
            }
        }
    }

    /// Not available on other systems than Linux.
    #[cfg(not(target_os = "linux"))]
    pub fn shared(_lines: usize) -> io::Result<Counters> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The descriptor by which a process started from now on finds them; `None` if only this process has them.
    #[cfg(target_os = "linux")]
    pub fn descriptor(&self) -> Option<i32> {
        (self.descriptor >= 0).then_some(self.descriptor)
    }

    /// Not available on other systems than Linux.
    #[cfg(not(target_os = "linux"))]
    pub fn descriptor(&self) -> Option<i32> {
        None
    }

    /// Opens the counters of the process that started this one. The descriptor is closed, so that engines cannot
    /// reach it.
    #[cfg(target_os = "linux")]
    pub fn inherited(descriptor: i32) -> io::Result<Counters> {
        // SAFETY: a zeroed stat is what fstat fills in; the results are checked.
        let (is_known, stat) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            (libc::fstat(descriptor, &mut stat) == 0, stat)
        };
        let bytes = stat.st_size as usize;
        if !is_known || bytes == 0 || !bytes.is_multiple_of(size_of::<Line>()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let lines = bytes / size_of::<Line>();
        let base = map(descriptor, lines);
        close(descriptor);
        Ok(Counters { base: base?, lines, is_mapped: true, descriptor: -1 })
    }

    /// Not available on other systems than Linux.
    #[cfg(not(target_os = "linux"))]
    pub fn inherited(_descriptor: i32) -> io::Result<Counters> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// A word of a line; both indexes must be in range.
    #[inline(always)]
    pub fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        assert!(line < self.lines, "no such line of counters");
        // SAFETY: the line is one of those at `base`, which live as long as `self`.
        unsafe { &self.base.add(line).as_ref().0[word] }
    }

    /// The value of a word.
    pub fn get(&self, line: usize, word: usize) -> u64 {
        self.word(line, word).load(Ordering::Relaxed)
    }

    /// Stores a word.
    pub fn set(&self, line: usize, word: usize, value: u64) {
        self.word(line, word).store(value, Ordering::Relaxed);
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let lines = std::ptr::slice_from_raw_parts_mut(self.base.as_ptr(), self.lines);
        if !self.is_mapped {
            // SAFETY: `alone` leaked this very box.
            drop(unsafe { Box::from_raw(lines) });
            return;
        }
        #[cfg(target_os = "linux")]
        {
            // SAFETY: the mapping is ours, and no reference into it can exist any more.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.lines * size_of::<Line>()) };
            if self.descriptor >= 0 {
                close(self.descriptor);
            }
        }
    }
}

/// Maps this many lines.
#[cfg(target_os = "linux")]
fn map(descriptor: libc::c_int, lines: usize) -> io::Result<NonNull<Line>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // All pages are present from the start, so that no thread has a page fault on its first count.
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    let bytes = lines * size_of::<Line>();
    // SAFETY: a new mapping, wherever the kernel places it; the result is checked. Pages satisfy the alignment of
    // lines.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(target_os = "linux")]
fn close(descriptor: libc::c_int) {
    // SAFETY: plain system call; its result cannot be handled.
    unsafe { libc::close(descriptor) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_its_own() {
        let counters = Counters::alone(3);
        for line in 0..3 {
            for word in 0..WORDS {
                assert_eq!(counters.get(line, word), 0);
                counters.set(line, word, (line * WORDS + word) as u64);
            }
        }
        assert_eq!(counters.get(2, 15), 47);
        assert_eq!((counters.lines(), counters.descriptor()), (3, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_one_side_stores_the_other_sees() {
        let ours = Counters::shared(2).unwrap();
        // SAFETY: plain system call; the copy represents what a child inherits.
        let copy = unsafe { libc::dup(ours.descriptor().unwrap()) };
        let theirs = Counters::inherited(copy).unwrap();
        assert_eq!((theirs.lines(), theirs.descriptor()), (2, None));
        theirs.set(1, 3, 77);
        assert_eq!(ours.get(1, 3), 77);
        drop(ours);
        assert_eq!(theirs.get(1, 3), 77, "it lives as long as anyone maps it");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_descriptor_of_something_else_is_refused() {
        assert!(Counters::inherited(1 << 20).is_err());
        use std::os::fd::IntoRawFd;
        let null = std::fs::File::open("/dev/null").unwrap().into_raw_fd();
        assert!(Counters::inherited(null).is_err());
        let shared = Counters::shared(1).unwrap();
        // SAFETY: plain system call: truncating memory that others read must not be possible.
        assert_ne!(unsafe { libc::ftruncate(shared.descriptor().unwrap(), 0) }, 0);
    }
}
