//! Sync calls of a process, counted exactly: a seccomp filter stops each of them, in any thread and from any language, until
//! the process above has counted it. It costs microseconds per call, so it is never used while anything is timed.
//!
//! What is counted is the call, before the kernel does it: a call that fails counts as well. Syncs through io_uring and
//! io_submit are not seen; that they are in use is.
//!
//! The same filter injects faults: a call that a [`Fault`] selects is not done, and returns the fault's error. It also kills a process
//! at one of its calls ([`forked`]). A smaller one, which stops no writes, delays the syncs of servers while a phase is measured
//! ([`SlowSyncs`]).

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod change;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod fault;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod kill;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod slow;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod supervisor;
#[cfg(test)]
mod tests;
mod watch;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use filter::{ARCHITECTURE, stopping_all};
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use kill::{end_here, end_started, forked};
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use slow::{SlowSyncs, hand_over_syncs};
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use supervisor::{SyncCalls, become_counted, become_faulty, counted};
pub use watch::{Change, Point, Ran, Unseen, Watch};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use strum::VariantArray;

/// What is counted apart, by number and by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CallKind {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `msync` with `MS_SYNC`.
    Msync,
    /// `syncfs`.
    Syncfs,
    /// `sync`.
    Sync,
    /// A write to a file that was opened with `O_SYNC`, or with `RWF_SYNC`.
    #[strum(serialize = "O_SYNC write")]
    SyncWrite,
    /// A write to a file that was opened with `O_DSYNC`, or with `RWF_DSYNC`.
    #[strum(serialize = "O_DSYNC write")]
    DsyncWrite,
    /// `sync_file_range`: not a sync, because it flushes neither metadata nor the device's cache.
    #[strum(serialize = "sync_file_range")]
    RangeFlush,
    /// Any other write to a file.
    Write,
    /// A file mapped shared: what is stored there is not seen.
    #[strum(serialize = "shared mapping")]
    Mapping,
    /// `io_uring_setup` and `io_uring_enter`: what is done there is not seen.
    IoUring,
    /// `io_submit`: what is done there is not seen.
    IoSubmit,
    /// A call that may be a write to a file: the process hides its files from this one (`PR_SET_DUMPABLE`).
    #[strum(serialize = "hidden call")]
    Hidden,
    /// A call by the numbers of another architecture (32-bit calls): what it does is not seen.
    #[strum(serialize = "32-bit call")]
    Foreign,
}

use CallKind::*;

/// All kinds in the order of their numbers.
const KINDS: &[CallKind] = CallKind::VARIANTS;

/// The kinds that return when what was written is on stable storage.
const SYNCS: [CallKind; 7] = [Fsync, Fdatasync, Msync, Syncfs, Sync, SyncWrite, DsyncWrite];

/// Which calls a fault makes fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultyCalls {
    /// All syncs that can fail: `fsync`, `fdatasync`, `msync` with `MS_SYNC`, `syncfs`, durable writes.
    Syncs,
    /// All writes.
    Writes,
    /// Writes from memory that can be done in part.
    PartialWrites,
    /// All reads.
    Reads,
    /// Calls that need space: writes past the end of a file or into a hole, `fallocate`. `ftruncate` needs none.
    Growth,
    /// All calls that open a file.
    Opens,
    /// All calls that map a file shared.
    Maps,
}

/// A fault: calls on files in a folder that fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// An absolute path without links; files elsewhere have no faults.
    pub folder: PathBuf,
    /// The selected calls.
    pub calls: FaultyCalls,
    /// The number of the first selected call that fails, from 1; 0: none fails, the calls are only counted.
    pub first: u64,
    /// Whether all later ones fail too.
    pub lasts: bool,
    /// The error that a failing call returns. Of `PartialWrites` half is done instead, and the call returns the number of its bytes.
    pub errno: i32,
}

/// Calls by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts([u64; KINDS.len()]);

impl CallCounts {
    /// The calls of a kind.
    pub fn of(&self, kind: CallKind) -> u64 {
        self.0[kind as usize]
    }

    /// The calls that return when what was written is on stable storage.
    pub fn syncs(&self) -> u64 {
        SYNCS.iter().map(|kind| self.of(*kind)).sum()
    }

    /// All writes to files.
    pub fn writes(&self) -> u64 {
        [Write, SyncWrite, DsyncWrite].iter().map(|kind| self.of(*kind)).sum()
    }

    /// The calls since an earlier count.
    pub fn since(&self, before: &CallCounts) -> CallCounts {
        CallCounts(std::array::from_fn(|kind| self.0[kind].saturating_sub(before.0[kind])))
    }

    /// The kinds that were called, by name.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        let all = KINDS.iter().map(|kind| (kind.to_string(), self.of(*kind)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use elsewhere::*;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere {
    use super::CallCounts;
    use std::io;

    fn unsupported() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "only on Linux, on x86-64 and aarch64")
    }

    /// Never exists here.
    pub struct SyncCalls(std::convert::Infallible);

    impl SyncCalls {
        /// The calls so far.
        pub fn counts(&self) -> CallCounts {
            match self.0 {}
        }

        /// The calls so far that the fault selects.
        pub fn selected(&self) -> u64 {
            match self.0 {}
        }

        /// Those of them that failed.
        pub fn failed(&self) -> u64 {
            match self.0 {}
        }

        /// Calls that submit requests elsewhere.
        pub fn submitted(&self) -> u64 {
            match self.0 {}
        }
    }

    /// Not possible here.
    pub fn become_counted() -> io::Result<SyncCalls> {
        Err(unsupported())
    }

    /// Not possible here.
    pub fn become_faulty(_fault: super::Fault) -> io::Result<SyncCalls> {
        Err(unsupported())
    }

    /// Not possible here.
    pub fn counted(_fault: Option<super::Fault>, _work: impl FnOnce()) -> io::Result<CallCounts> {
        Err(unsupported())
    }

    /// Not possible here.
    pub fn forked(
        _watch: Option<&super::Watch>,
        _stall: std::time::Duration,
        _progress: &dyn Fn() -> u64,
        _work: impl FnOnce(),
    ) -> io::Result<super::Ran> {
        Err(unsupported())
    }

    /// Nothing to do here.
    pub fn end_started() {}

    /// Ends this process.
    pub fn end_here() -> ! {
        std::process::abort()
    }

    /// Never exists here.
    pub struct SlowSyncs(std::convert::Infallible);

    impl SlowSyncs {
        /// Not possible here.
        pub fn prepare() -> io::Result<SlowSyncs> {
            Err(unsupported())
        }

        /// Starts its thread.
        pub fn start(&mut self) -> io::Result<()> {
            match self.0 {}
        }

        /// The descriptor.
        pub fn channel(&self) -> i32 {
            match self.0 {}
        }

        /// Whether a process has handed over its syncs.
        pub fn sees(&self, _process: u32) -> bool {
            match self.0 {}
        }

        /// Delays the syncs of a process.
        pub fn begin(&self, _process: u32, _delay: std::time::Duration) {
            match self.0 {}
        }

        /// Ends that.
        pub fn end(&self, _process: u32) -> u64 {
            match self.0 {}
        }
    }

    /// Not possible here.
    pub fn hand_over_syncs(_channel: i32) -> io::Result<()> {
        Err(unsupported())
    }
}
