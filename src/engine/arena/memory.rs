//! Memory between inaccessible pages: a driver that leaves it crashes immediately instead of corrupting adjacent
//! memory.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

/// Bytes of a page.
pub(super) fn page() -> usize {
    // SAFETY: a plain system call; every system has pages.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Rounds bytes up to complete pages.
pub(super) fn whole_pages(bytes: usize) -> usize {
    bytes.next_multiple_of(page())
}

/// A range of addresses, parts of which are accessible.
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether it stays mapped when it is dropped.
    pub is_kept: bool,
}

// SAFETY: it owns its pages, and nothing in them belongs to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Reserves complete pages, all of them inaccessible at first.
    pub fn reserve(bytes: usize) -> Memory {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping, wherever the kernel places it.
        let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Memory { start, bytes, is_kept: false }
            }
            _ => Memory::fail(bytes),
        }
    }

    fn fail(bytes: usize) -> ! {
        let layout = Layout::from_size_align(bytes, 1).expect("an arena is far below the address space");
        handle_alloc_error(layout)
    }

    /// Makes complete pages accessible, zeroed, and touches each once; returns where they begin.
    pub fn open(&self, from: usize, bytes: usize) -> NonNull<u8> {
        assert!(from + bytes <= self.bytes);
        // SAFETY: within the mapping, as asserted.
        let start = unsafe { self.start.add(from) };
        // SAFETY: as above; the pages are ours.
        let failed =
            unsafe { libc::mprotect(start.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
        if failed != 0 {
            Memory::fail(bytes);
        }
        for at in (0..bytes).step_by(page()) {
            // SAFETY: within the accessible pages; volatile so that the touch is not optimized away.
            unsafe { start.add(at).write_volatile(0) };
        }
        start
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.is_kept {
            // SAFETY: created by `reserve`, and unmapped once. It cannot fail with our own mapping.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}
