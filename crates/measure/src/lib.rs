//! Measurements of time, memory and disk, and text about them; independent of engines. Values that are not available are `None`,
//! never 0.

#![warn(unreachable_pub)]

/// Prints to stdout. Replaces std's macro, which panics if stdout cannot be written (full disk, closed pipe).
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}
/// Prints a line to stdout, as `print` does.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($text:tt)*) => { $crate::print!("{}\n", format_args!($($text)*)) };
}
/// Prints to stderr, as `print` does.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::talk(format_args!($($text)*)) };
}
/// Prints a line to stderr, as `print` does.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::eprint!("\n") };
    ($($text:tt)*) => { $crate::eprint!("{}\n", format_args!($($text)*)) };
}

mod cannot;
pub mod cgroup;
pub mod clock;
mod copy;
pub mod counters;
pub mod cycles;
mod device;
pub mod disk;
pub mod facility;
pub mod file_system;
pub mod histogram;
mod huge_pages;
pub mod inner;
pub mod links;
pub mod machine;
pub mod memory_cap;
mod mounts;
pub mod noise;
pub mod output;
mod perf_events;
pub mod placement;
pub mod processes;
mod read;
pub mod resources;
pub mod shortage;
pub mod signals;
pub mod stall;
pub mod start;
mod stray_output;
pub mod sync_calls;
pub mod system_calls;
pub mod text;
pub mod volume;
pub mod warning;

pub use cannot::Cannot;
pub use clock::{Clock, ClockFacts, monotonic_ns};
pub use copy::{CopyError, copy_file, copy_folder, drop_pages_of};
pub use counters::Counters;
pub use device::{DeviceUse, OwnDevice};
pub use disk::DiskUse;
pub use file_system::FileSystemFacts;
pub use histogram::Histogram;
pub use huge_pages::table_in_huge_pages;
pub use inner::Task;
pub use machine::{Conditions, Machine, boot_id, raise_open_files};
pub use memory_cap::{CapRecord, CapUse, MemoryCap};
pub use mounts::mounts_below;
pub use noise::{Jitter, Noise, NoiseProbe, Pace, PhaseNoise, PhaseProbe};
pub use placement::Placement;
pub use processes::{Blocked, End, Event, Fate, Patience, TaskProcess, responds};
pub use read::{read_limited, read_text};
pub use resources::{ThreadTimes, Usage, cpu_ns_of_this_thread, open_files};
pub use stall::{Stall, StallView};
pub use stray_output::{Printed, PrintedFile, memory_file};
pub use warning::{CacheSize, Change, Warning, warnings_of};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a system call that returns a number below 0 and sets `errno` when it fails.
#[cfg(target_os = "linux")]
fn checked(outcome: i32) -> std::io::Result<i32> {
    if outcome < 0 { Err(std::io::Error::last_os_error()) } else { Ok(outcome) }
}

/// One second of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// End of the interval, nanoseconds from the moment at which counting began, the same for all threads. All rows
    /// except the last end at whole seconds.
    pub at_ns: u64,
    /// Length of the interval, nanoseconds: one second, except in the last row.
    pub interval_ns: u64,
    /// Ops that ended in it; a batch counts in the interval in which it ended.
    pub ops: u64,
    /// How many of these were misses.
    pub misses: u64,
    /// Median service time over all kinds, nanoseconds; absent if there were no ops.
    pub p50_ns: Option<u64>,
    /// 99th percentile; absent if the sample is too small.
    pub p99_ns: Option<u64>,
    /// Maximum.
    pub max_ns: Option<u64>,
    /// Name and histogram of the interval, per kind.
    pub kinds: Vec<(String, Histogram)>,
    /// The same of wait times, from the arrival of a request until it was sent; empty if requests do not arrive at a rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait: Vec<(String, Histogram)>,
    /// The same of response times, from the arrival of a request until its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response: Vec<(String, Histogram)>,
    /// Resident memory at its end, bytes. This field and the following are read when the watcher wakes at the end of
    /// the interval, usually within a millisecond; absent if the watcher missed the interval.
    pub rss_bytes: Option<u64>,
    /// CPU time of the process since the previous row was read, user and system, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Bytes that the process caused to be written to storage since the previous row was read.
    pub written_bytes: Option<u64>,
    /// Allocated bytes of the database's folder at its end.
    pub disk_allocated_bytes: Option<u64>,
    /// Resident memory that belongs to no file, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_anonymous_bytes: Option<u64>,
    /// Open files of the trial's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl SeriesRow {
    /// The response times of all kinds; empty if requests do not arrive at a rate.
    pub fn response_times(&self) -> Histogram {
        let mut all = Histogram::empty();
        self.response.iter().for_each(|(_, histogram)| all.merge(histogram));
        all
    }
}

/// Rounded to this many decimals, for measured values whose further digits are meaningless.
fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}
