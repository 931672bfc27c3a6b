//! Numbers about time, memory and disk; knows no engine. What cannot be had here is `None`, never 0.

pub mod cgroup;
pub mod clock;
mod copy;
pub mod counters;
pub mod disk;
pub mod facility;
pub mod file_system;
pub mod histogram;
pub mod machine;
pub mod memory_cap;
mod mounts;
pub mod noise;
pub mod output;
pub mod placement;
pub mod processes;
mod read;
pub mod resources;
pub mod signals;
pub mod units;
pub mod warning;

pub use clock::{Clock, ClockFacts, monotonic_ns};
pub use copy::copy_folder;
pub use counters::Counters;
pub use disk::DiskUse;
pub use file_system::FileSystemFacts;
pub use histogram::Histogram;
pub use machine::{Conditions, Machine, raise_open_files};
pub use memory_cap::{CapRecord, CapUse, MemoryCap};
pub use noise::{Jitter, Noise, NoiseProbe, PhaseNoise, PhaseProbe};
pub use placement::Placement;
pub use processes::{End, Event, TrialProcess, become_part_of_trial, become_trial_process};
pub use read::{read_limited, read_text};
pub use resources::{ThreadTimes, Usage};
pub use warning::{Concern, Warning, warnings_of};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One second of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// End of the interval, nanoseconds from the moment at which counting began, the same for all threads. All rows but the
    /// last end at whole seconds.
    pub at_ns: u64,
    /// Length of the interval, nanoseconds: a second, but in the last row.
    pub interval_ns: u64,
    /// Ops that ended in it; a batch counts where it ended.
    pub ops: u64,
    /// Of these, misses.
    pub misses: u64,
    /// Median service time over all kinds, nanoseconds; none: no ops.
    pub p50_ns: Option<u64>,
    /// 99th percentile; none: sample too small.
    pub p99_ns: Option<u64>,
    /// Slowest.
    pub max_ns: Option<u64>,
    /// Per kind: its name and the histogram of the interval.
    pub kinds: Vec<(String, Histogram)>,
    /// Resident memory at its end, bytes. This and what follows is read when the watcher wakes at the end of the interval, as
    /// a rule within a millisecond; none: it slept through it.
    pub rss_bytes: Option<u64>,
    /// CPU time of the process since the row before was read, user and system, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Bytes that the process caused to be written to storage since the row before was read.
    pub written_bytes: Option<u64>,
    /// Allocated bytes of the database's folder at its end.
    pub disk_allocated_bytes: Option<u64>,
}
