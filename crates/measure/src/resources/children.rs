//! Resources of the running processes that this process started. From `/proc`, where the kernel lists them.

use super::{Usage, read};

/// The unit of CPU times in `/proc/PID/stat`: the kernel reports 100 per second to user space on every machine.
const TICK_NS: u64 = 10_000_000;

/// The use of each of them; empty if there are none, or if the kernel does not list them.
pub(super) fn of_this_process() -> Vec<Usage> {
    // A process that ends during the scan no longer has files.
    numbers().into_iter().filter_map(of).collect()
}

/// The ids of the started processes, and of the processes that they started.
pub fn numbers() -> Vec<u32> {
    below("self")
}

/// The ids of the processes that another process has started, and of the processes that they started.
pub fn numbers_below(process: u32) -> Vec<u32> {
    below(&process.to_string())
}

fn below(process: &str) -> Vec<u32> {
    let mut all = started_by(process);
    let mut next = 0;
    while let Some(process) = all.get(next) {
        let started = started_by(&process.to_string());
        all.extend(started);
        next += 1;
    }
    all
}

fn started_by(process: &str) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| {
        list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>()
    };
    lists.flat_map(numbers).collect()
}

fn of(process: u32) -> Option<Usage> {
    let file = |name: &str| read(&format!("/proc/{process}/{name}"));
    let mut usage = Usage::default();
    usage.take_stat(&file("stat")?)?;
    usage.take_status(&file("status")?);
    if let Some(text) = file("io") {
        usage.take_io(&text);
    }
    Some(usage)
}

impl Usage {
    /// CPU time and page faults, including ended children, from a line that begins `PID (NAME) `.
    fn take_stat(&mut self, text: &str) -> Option<()> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |place: usize| fields.get(place)?.parse::<u64>().ok();
        let both = |place: usize, ended: usize| Some(field(place)?.saturating_add(field(ended)?));
        self.minor_faults = both(7, 8);
        self.major_faults = both(9, 10);
        self.user_cpu_ns = both(11, 13).map(|ticks| ticks.saturating_mul(TICK_NS));
        self.system_cpu_ns = both(12, 14).map(|ticks| ticks.saturating_mul(TICK_NS));
        Some(())
    }
}
