//! CPU, memory and I/O used by this process. From `getrusage` and `/proc/self`; unavailable values are absent.

#![allow(unsafe_code, reason = "system calls")]

mod children;
#[cfg(test)]
mod tests;
mod threads;

pub use children::{numbers as descendants, numbers_below as descendants_of};
pub(crate) use threads::cpu_ns_of_other_threads;
pub use threads::{RunDelays, ThreadTimes, cpu_ns_of_this_thread};

use super::cycles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources used by this process with all its threads, and by the processes that it started and that still run (an
/// engine may be a server): since its start, or between two moments. The CPU time of the started processes has a
/// resolution of 10 ms, and their peaks are added up. CPU time includes processes that have ended and were waited
/// for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time in user mode, nanoseconds.
    pub user_cpu_ns: Option<u64>,
    /// CPU time in the kernel, nanoseconds.
    pub system_cpu_ns: Option<u64>,
    /// Resident memory at that moment (VmRSS), bytes.
    pub rss_bytes: Option<u64>,
    /// How much of this belongs to no file (RssAnon), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_anonymous_bytes: Option<u64>,
    /// How much of this is mapped files (RssFile), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_file_bytes: Option<u64>,
    /// Maximum resident memory since the process began (VmHWM), bytes.
    pub rss_peak_bytes: Option<u64>,
    /// Maximum address space since the process began (VmPeak), bytes; includes mapped files, resident or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_peak_bytes: Option<u64>,
    /// Page faults served without reading from storage.
    pub minor_faults: Option<u64>,
    /// Page faults that had to read from storage.
    pub major_faults: Option<u64>,
    /// How many times a thread gave up its CPU to wait.
    pub voluntary_switches: Option<u64>,
    /// How many times a thread was preempted.
    pub involuntary_switches: Option<u64>,
    /// Calls of read and its variants (`read`, `pread`, `readv` ...), but not of io_uring and not of mapped files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_calls: Option<u64>,
    /// Calls of write and its variants; syncs are not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_calls: Option<u64>,
    /// Bytes requested in read calls, cached or not.
    pub read_call_bytes: Option<u64>,
    /// Bytes passed to write calls, cached or not.
    pub written_call_bytes: Option<u64>,
    /// Bytes that had to be read from storage.
    pub read_storage_bytes: Option<u64>,
    /// Bytes that this process caused to be written to storage, counted when a page becomes dirty, including mapped
    /// pages.
    pub written_storage_bytes: Option<u64>,
    /// How many of these bytes were never written, because the file was deleted or truncated first; counted when that
    /// happens.
    pub cancelled_storage_bytes: Option<u64>,
    /// Cycles of the processor, in user mode and in the kernel; none: they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Instructions that it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// For a phase: time that threads were ready to run but had no CPU, nanoseconds. The harness's threads report
    /// theirs before they end; for a thread that the engine ended in the phase, the waiting time of its last second
    /// is missing.
    pub run_delay_ns: Option<u64>,
}

impl Usage {
    /// Use since the process began, without run delay. Reads three small files and one more per thread: about 40 us.
    pub fn now() -> Self {
        let mut usage = Self::default();
        usage.take_rusage();
        usage.add(&Self::of_ended());
        if let Some(text) = read("/proc/self/status") {
            usage.take_status(&text);
        }
        if let Some(text) = read("/proc/self/io") {
            usage.take_io(&text);
        }
        [usage.cycles, usage.instructions] = cycles::now();
        let children = children::of_this_process();
        children.iter().for_each(|child| usage.add(child));
        if !children.is_empty() {
            // Theirs are known per thread only, so the sum would be too small.
            (usage.voluntary_switches, usage.involuntary_switches) = (None, None);
        }
        usage
    }

    /// What the calling thread has used since it began: CPU time (all of it as that in user mode), page faults, switches
    /// and I/O. Reads one small file: about 10 us.
    pub fn of_this_thread() -> Self {
        let mut usage = Self::default();
        usage.take_thread_rusage();
        if let Some(text) = read("/proc/thread-self/io") {
            usage.take_io(&text);
        }
        usage
    }

    /// Use since `earlier`. Memory is not a difference: it is the value in `self`.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Self {
            user_cpu_ns: less(self.user_cpu_ns, earlier.user_cpu_ns),
            system_cpu_ns: less(self.system_cpu_ns, earlier.system_cpu_ns),
            rss_bytes: self.rss_bytes,
            rss_anonymous_bytes: self.rss_anonymous_bytes,
            rss_file_bytes: self.rss_file_bytes,
            rss_peak_bytes: self.rss_peak_bytes,
            vm_peak_bytes: self.vm_peak_bytes,
            minor_faults: less(self.minor_faults, earlier.minor_faults),
            major_faults: less(self.major_faults, earlier.major_faults),
            voluntary_switches: less(self.voluntary_switches, earlier.voluntary_switches),
            involuntary_switches: less(self.involuntary_switches, earlier.involuntary_switches),
            read_calls: less(self.read_calls, earlier.read_calls),
            write_calls: less(self.write_calls, earlier.write_calls),
            read_call_bytes: less(self.read_call_bytes, earlier.read_call_bytes),
            written_call_bytes: less(self.written_call_bytes, earlier.written_call_bytes),
            read_storage_bytes: less(self.read_storage_bytes, earlier.read_storage_bytes),
            written_storage_bytes: less(self.written_storage_bytes, earlier.written_storage_bytes),
            cancelled_storage_bytes: less(self.cancelled_storage_bytes, earlier.cancelled_storage_bytes),
            cycles: less(self.cycles, earlier.cycles),
            instructions: less(self.instructions, earlier.instructions),
            run_delay_ns: less(self.run_delay_ns, earlier.run_delay_ns),
        }
    }

    /// Adds the use of another process; values unknown for either stay as they are.
    fn add(&mut self, other: &Self) {
        for (own, others) in [
            (&mut self.user_cpu_ns, other.user_cpu_ns),
            (&mut self.system_cpu_ns, other.system_cpu_ns),
            (&mut self.rss_bytes, other.rss_bytes),
            (&mut self.rss_anonymous_bytes, other.rss_anonymous_bytes),
            (&mut self.rss_file_bytes, other.rss_file_bytes),
            (&mut self.rss_peak_bytes, other.rss_peak_bytes),
            (&mut self.vm_peak_bytes, other.vm_peak_bytes),
            (&mut self.minor_faults, other.minor_faults),
            (&mut self.major_faults, other.major_faults),
            (&mut self.read_calls, other.read_calls),
            (&mut self.write_calls, other.write_calls),
            (&mut self.read_call_bytes, other.read_call_bytes),
            (&mut self.written_call_bytes, other.written_call_bytes),
            (&mut self.read_storage_bytes, other.read_storage_bytes),
            (&mut self.written_storage_bytes, other.written_storage_bytes),
            (&mut self.cancelled_storage_bytes, other.cancelled_storage_bytes),
        ] {
            if let (Some(own), Some(others)) = (own, others) {
                *own = own.saturating_add(others);
            }
        }
    }

    /// CPU time of this process, of the processes that it started and that still run, and of those that it has waited
    /// for, nanoseconds. It does not decrease when a started process ends.
    pub fn tree_cpu_ns() -> Option<u64> {
        let mut own = Self::default();
        own.take_rusage();
        own.add(&Self::of_ended());
        let running =
            children::of_this_process().iter().filter_map(Usage::cpu_ns).fold(0, u64::saturating_add);
        Some(own.cpu_ns()?.saturating_add(running))
    }

    /// Without the bytes of storage: a file system in memory has none, and the kernel counts 0 there.
    pub fn without_storage(self) -> Self {
        Self { read_storage_bytes: None, written_storage_bytes: None, cancelled_storage_bytes: None, ..self }
    }

    /// Without so much resident memory that belongs to no file.
    pub fn without_memory(self, bytes: u64) -> Self {
        let less = |known: Option<u64>| known.map(|known| known.saturating_sub(bytes));
        Self { rss_bytes: less(self.rss_bytes), rss_anonymous_bytes: less(self.rss_anonymous_bytes), ..self }
    }

    /// User and system CPU time together, nanoseconds; `None` if either is unknown.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.user_cpu_ns?.checked_add(self.system_cpu_ns?)
    }

    #[cfg(unix)]
    fn take_rusage(&mut self) {
        let Some(usage) = rusage(libc::RUSAGE_SELF) else { return };
        self.take_counts(&usage);
        let unit_bytes = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
        self.rss_peak_bytes = u64::try_from(usage.ru_maxrss).ok().map(|peak| peak * unit_bytes);
    }

    #[cfg(unix)]
    fn take_counts(&mut self, usage: &libc::rusage) {
        self.user_cpu_ns = time_ns(usage.ru_utime);
        self.system_cpu_ns = time_ns(usage.ru_stime);
        self.minor_faults = u64::try_from(usage.ru_minflt).ok();
        self.major_faults = u64::try_from(usage.ru_majflt).ok();
        self.voluntary_switches = u64::try_from(usage.ru_nvcsw).ok();
        self.involuntary_switches = u64::try_from(usage.ru_nivcsw).ok();
    }

    /// The kernel updates a running thread's times in `rusage` at its ticks only, so the time comes from its CPU clock, which
    /// does not part user and system mode.
    #[cfg(target_os = "linux")]
    fn take_thread_rusage(&mut self) {
        let Some(usage) = rusage(libc::RUSAGE_THREAD) else { return };
        self.take_counts(&usage);
        (self.user_cpu_ns, self.system_cpu_ns) = (threads::cpu_ns_of_this_thread(), Some(0));
    }

    #[cfg(not(target_os = "linux"))]
    fn take_thread_rusage(&mut self) {}

    #[cfg(not(unix))]
    fn take_rusage(&mut self) {}

    /// CPU time of started processes that have ended and were waited for.
    #[cfg(unix)]
    fn of_ended() -> Self {
        let Some(usage) = rusage(libc::RUSAGE_CHILDREN) else { return Self::default() };
        let (user_cpu_ns, system_cpu_ns) = (time_ns(usage.ru_utime), time_ns(usage.ru_stime));
        Self { user_cpu_ns, system_cpu_ns, ..Self::default() }
    }

    #[cfg(not(unix))]
    fn of_ended() -> Self {
        Self::default()
    }

    /// The memory lines of `/proc/self/status`. `VmHWM`, unlike `ru_maxrss`, excludes the process's memory from
    /// before it executed this program.
    fn take_status(&mut self, text: &str) {
        let kibibytes = |name| number_after(text, name)?.checked_mul(1024);
        self.rss_bytes = kibibytes("VmRSS:");
        self.rss_anonymous_bytes = kibibytes("RssAnon:");
        self.rss_file_bytes = kibibytes("RssFile:");
        self.vm_peak_bytes = kibibytes("VmPeak:");
        self.rss_peak_bytes = kibibytes("VmHWM:").or(self.rss_peak_bytes);
    }

    fn take_io(&mut self, text: &str) {
        self.read_calls = number_after(text, "syscr:");
        self.write_calls = number_after(text, "syscw:");
        self.read_call_bytes = number_after(text, "rchar:");
        self.written_call_bytes = number_after(text, "wchar:");
        self.read_storage_bytes = number_after(text, "read_bytes:");
        self.written_storage_bytes = number_after(text, "write_bytes:");
        self.cancelled_storage_bytes = number_after(text, "cancelled_write_bytes:");
    }
}

/// The number of files that this process has open; `None` if unknown.
pub fn open_files() -> Option<u64> {
    let folder = "/proc/self/fd";
    // Linux 6.2 and newer tell it as the folder's length; older ones tell 0.
    match std::fs::metadata(folder).ok()?.len() {
        // The folder that is being read is one of them.
        0 => Some((std::fs::read_dir(folder).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

#[cfg(unix)]
fn rusage(whose: libc::c_int) -> Option<libc::rusage> {
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer refers to a live rusage.
    (unsafe { libc::getrusage(whose, &mut usage) } == 0).then_some(usage)
}

#[cfg(unix)]
fn time_ns(time: libc::timeval) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_usec).ok()? * 1000)
}

/// The number that follows `name` at the beginning of a line.
pub(super) fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// A file of `/proc` or `/sys` as text; `None` if it does not exist or cannot be read.
pub(super) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
