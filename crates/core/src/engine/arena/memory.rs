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
    pub(super) fn reserve(bytes: usize) -> Memory {
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

    /// Makes complete pages accessible, zeroed; returns where they begin.
    pub(super) fn open(&self, from: usize, bytes: usize) -> NonNull<u8> {
        assert!(from + bytes <= self.bytes);
        // SAFETY: within the mapping, as asserted.
        let start = unsafe { self.start.add(from) };
        // SAFETY: as above; the pages are ours.
        let failed =
            unsafe { libc::mprotect(start.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
        if failed != 0 {
            Memory::fail(bytes);
        }
        start
    }
}

/// Writes to each of these pages what is there, so that the kernel provides them now.
///
/// # Safety
///
/// They are accessible, and nobody else uses them.
pub(super) unsafe fn touch(start: NonNull<u8>, bytes: usize) {
    for at in (0..bytes).step_by(page()) {
        // SAFETY: as above; volatile so that nothing is optimized away.
        unsafe { start.add(at).write_volatile(start.add(at).read_volatile()) };
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

#[cfg(test)]
mod tests {
    use super::{Memory, page, touch};

    /// How many of these pages the kernel has provided.
    fn provided(memory: &Memory) -> usize {
        let mut pages = vec![0_u8; memory.bytes / page()];
        // SAFETY: a byte for each page of the mapping.
        let failed = unsafe { libc::mincore(memory.start.as_ptr().cast(), memory.bytes, pages.as_mut_ptr()) };
        assert_eq!(failed, 0);
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn pages_are_provided_when_they_are_touched_and_keep_what_is_there() {
        let memory = Memory::reserve(5 * page());
        let start = memory.open(page(), 3 * page());
        assert_eq!(provided(&memory), 0);
        // SAFETY: accessible, as opened above.
        unsafe {
            start.write(7);
            touch(start, 3 * page());
            assert_eq!(start.read(), 7);
        }
        assert_eq!(provided(&memory), 3);
    }

    #[test]
    fn an_arena_for_timed_ops_has_all_of_its_pages() {
        use super::super::{Arena, Shape};
        use std::sync::atomic::AtomicU32;
        static NEVER: AtomicU32 = AtomicU32::new(0);
        let shape = Shape { ops: 4, key_bytes: 16, value_bytes: 20_000, out_bytes: 20_000 };
        let arena = Arena::new(shape, 0, &NEVER);
        // All but the two guard pages.
        assert_eq!(provided(&arena.memory), arena.memory.bytes / page() - 2);
        let of_guarded = provided(&Arena::guarded(shape, 0, &NEVER).memory);
        assert!(provided(&Arena::guarded(shape, 0, &NEVER).touched().memory) > of_guarded + 4 * 10);
    }
}
