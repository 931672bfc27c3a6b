//! Asks the kernel for huge pages: random reads of a large table then miss fewer entries of the page table's cache, so they
//! cost less, and evict fewer of the engine's.

#![allow(unsafe_code, reason = "madvise has no safe function")]

/// A table of this many default entries, in huge pages where the kernel provides them.
pub fn table_in_huge_pages<Entry: Default>(len: usize) -> Vec<Entry> {
    let mut table = Vec::with_capacity(len);
    // Before any of it is touched.
    advise(table.spare_capacity_mut());
    table.resize_with(len, Entry::default);
    table
}

#[cfg(target_os = "linux")]
fn advise<Entry>(memory: &mut [std::mem::MaybeUninit<Entry>]) {
    const HUGE_PAGE_BYTES: usize = 2 << 20;
    let range = memory.as_mut_ptr_range();
    let start = (range.start as usize).next_multiple_of(HUGE_PAGE_BYTES);
    let end = range.end as usize / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if start < end {
        let place = range.start.cast::<u8>().wrapping_add(start - range.start as usize);
        // SAFETY: the pages lie in the slice, which is borrowed mutably; the advice does not change their content. If the
        // kernel refuses, they are ordinary pages.
        unsafe { libc::madvise(place.cast(), end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<Entry>(_: &mut [std::mem::MaybeUninit<Entry>]) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_table_has_its_entries_whatever_its_size() {
        for len in [0, 1, 1_000, 262_144, 1_000_003] {
            let table: Vec<AtomicU64> = table_in_huge_pages(len);
            assert!(table.len() == len && table.iter().all(|entry| entry.load(Ordering::Relaxed) == 0));
            if let Some(last) = table.last() {
                last.store(7, Ordering::Relaxed);
                assert_eq!(table[len - 1].load(Ordering::Relaxed), 7);
            }
        }
    }
}
