//! All system calls of a process, counted exactly and by name: a seccomp filter stops each of them, in any thread and from any
//! language, until the process above has counted it. It costs microseconds per call, so nothing is timed meanwhile.
//!
//! The main thread of the process is not counted: it is the one that watches the others. What is counted is the call, before the
//! kernel does it. What io_uring does is not seen, only that it is asked to.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

/// The counts of this process, if it is counted.
static COUNTED: OnceLock<Table> = OnceLock::new();

/// Makes this process, which must not have other threads yet, the supervisor of a new process that returns from this call, whose
/// calls are counted from now on, and those of the processes that it starts. It dies with the supervisor, which ends with its
/// status. An error (a kernel without the filter, or a filter above that excludes another) is the new process's, which then runs
/// uncounted.
pub fn begin() -> io::Result<()> {
    let table = begin_counting()?;
    // A process begins once.
    let _ = COUNTED.set(table);
    Ok(())
}

/// Whether the calls of this process are counted.
pub fn are_counted() -> bool {
    COUNTED.get().is_some()
}

/// Calls by their names so far, of all threads but the main one; none: this process is not counted. Names that were not called are
/// absent.
pub fn now() -> Option<BTreeMap<String, u64>> {
    COUNTED.get().map(Table::named)
}

/// The calls between two moments, by their names.
pub fn since(now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let made = |(name, count): (&String, &u64)| {
        let before = then.get(name).copied().unwrap_or(0);
        count.checked_sub(before).filter(|made| *made > 0).map(|made| (name.clone(), made))
    };
    now.iter().filter_map(made).collect()
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use linux::{Table, begin_counting};
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use unknown::{Table, begin_counting};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use crate::sync_calls::supervisor::{Side, answer, asked, fork, shared_counters};
    use crate::sync_calls::{ARCHITECTURE, stopping_all};
    use std::collections::BTreeMap;
    use std::io;
    use std::os::fd::{IntoRawFd, OwnedFd};
    use std::sync::atomic::{AtomicU64, Ordering};
    use syscalls::Sysno;

    /// More than any call's number: 472 in Linux 6.18.
    const PLACES: usize = 512;
    /// The place of calls without a name: newer ones, and those by the numbers of another architecture.
    const UNNAMED: usize = PLACES - 1;

    /// A counter for each number of a call, in memory that the supervisor sees, too.
    pub(super) struct Table(&'static [AtomicU64; PLACES]);

    impl Table {
        pub(super) fn named(&self) -> BTreeMap<String, u64> {
            let mut named = BTreeMap::new();
            for (number, count) in self.0.iter().enumerate() {
                let count = count.load(Ordering::SeqCst);
                if count > 0 {
                    let name = Sysno::new(number).map_or("unnamed", |call| call.name());
                    *named.entry(name.to_string()).or_default() += count;
                }
            }
            named
        }

        /// Counts a stopped call, unless it is one of this thread, then lets it continue.
        fn take(&self, listener: &OwnedFd, uncounted: u32) -> io::Result<()> {
            let Some(asked) = asked(listener)? else { return Ok(()) };
            let number = usize::try_from(asked.data.nr).ok();
            let named = number.filter(|number| asked.data.arch == ARCHITECTURE && *number < UNNAMED);
            let place = &self.0[named.unwrap_or(UNNAMED)];
            let is_counted = asked.pid != uncounted;
            if is_counted {
                place.fetch_add(1, Ordering::SeqCst);
            }
            if !answer(listener, asked.id, None)? && is_counted {
                // The call was not done: a signal interrupted it, and it comes again, or its thread was killed.
                place.fetch_sub(1, Ordering::SeqCst);
            }
            Ok(())
        }
    }

    pub(super) fn begin_counting() -> io::Result<Table> {
        let table = Table(shared_counters()?);
        match fork(stopping_all)? {
            Side::Counted(installed) => {
                // It stays open, so that no other file gets its number: messages to it are not stopped.
                let _ = installed?.into_raw_fd();
                Ok(table)
            }
            Side::Above(above) => {
                let uncounted = above.process();
                above.end_with(|listener| table.take(listener, uncounted))
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod unknown {
    use std::collections::BTreeMap;
    use std::io;

    pub(super) struct Table;

    impl Table {
        pub(super) fn named(&self) -> BTreeMap<String, u64> {
            BTreeMap::new()
        }
    }

    pub(super) fn begin_counting() -> io::Result<Table> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_were_made_between_two_moments_are_in_their_difference() {
        let of = |counts: &[(&str, u64)]| -> BTreeMap<String, u64> {
            counts.iter().map(|(name, count)| (name.to_string(), *count)).collect()
        };
        let made = since(&of(&[("fsync", 5), ("read", 7), ("write", 2)]), &of(&[("fsync", 2), ("read", 7)]));
        assert_eq!(made, of(&[("fsync", 3), ("write", 2)]));
    }
}
