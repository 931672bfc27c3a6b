//! Stalls: the longest ops of a phase, and what could be seen while they lasted. Another thread looks at the one that makes no
//! progress, and reads counters twice within the stall, so that nothing before or after it is in the differences.

mod look;
#[cfg(test)]
mod tests;

pub(super) use look::call_of_a_waiting_thread;
pub use look::own_thread;

use super::noise::{pressure_ns, stolen_ns};
use super::resources::{Usage, descendants, read};
use look::{Look, look_at, times_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::rc::Rc;

/// An op that took less is no stall; nanoseconds.
pub const LEAST_STALL_NS: u64 = 10_000_000;
/// A thread other than the stalled one is named if it used at least this share of the observed time.
const BUSY_SHARE: f64 = 0.05;
/// The maximum number of other threads that are named.
const BUSY: usize = 4;
/// The maximum number of system calls that are named.
const CALLS: usize = 4;

/// An op that took at least 10 ms, one of the longest of its thread in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// The thread, from 0.
    pub thread: u32,
    /// The kind of op: `put`; or `begin`, `commit` or `abort` of a phase that is one transaction.
    pub kind: String,
    /// Its start, nanoseconds from the moment at which counting began.
    pub at_ns: u64,
    /// Its service time, nanoseconds.
    pub length_ns: u64,
    /// Stalls of other threads of which at least half was within this one; they are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u32,
    /// What was seen while it lasted; none: it was too short, or nobody looked in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<StallView>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What was seen during a part of a stall. Each value is of that part alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallView {
    /// The length of that part, nanoseconds.
    pub span_ns: u64,
    /// Looks at the thread, about 10 ms apart; 0: it is not known which thread of the driver's runtime ran the op.
    pub looks: u32,
    /// How often it was running, or ready to run.
    pub running: u32,
    /// How often it was in uninterruptible sleep, as a thread is that waits for a block device.
    pub blocked: u32,
    /// The system calls that it was in, and how often; `page fault`: it waited outside of a system call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(String, u32)>,
    /// CPU time of the thread, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time in which it was ready to run and had no CPU, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// Page faults of the thread, served without reading from storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_faults: Option<u64>,
    /// Page faults of the thread that had to read from storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Other threads of the engine that used the CPU most, by their names, with CPU time in nanoseconds. Threads of the same
    /// name are added up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<(String, u64)>,
    /// Bytes that the trial's processes had to read from storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_storage_bytes: Option<u64>,
    /// Bytes that they caused to be written to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_storage_bytes: Option<u64>,
    /// Time of all CPUs that the hypervisor gave to other guests, nanoseconds; the kernel counts it in steps of 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<u64>,
    /// Time in which some thread of the machine waited for I/O, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_pressure_ns: Option<u64>,
    /// Counters of the engine that changed, by how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engine: Vec<(String, i64)>,
}

/// The trial and the machine at one moment: the same for all threads that stall.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    usage: Usage,
    stolen_ns: Option<u64>,
    io_pressure_ns: Option<u64>,
    /// Name and CPU time of each thread, by its number.
    threads: HashMap<u32, (String, u64)>,
    /// Numeric statistics of the engine.
    engine: Vec<(String, i64)>,
}

impl Surroundings {
    /// The surroundings now. Reads some small files, and two more per thread. Storage is unknown in memory.
    pub fn now(has_storage: bool, engine: Vec<(String, i64)>) -> Rc<Self> {
        let usage = Usage::now();
        Rc::new(Self {
            usage: if has_storage { usage } else { usage.without_storage() },
            stolen_ns: stolen_ns(),
            io_pressure_ns: pressure_ns("/proc/pressure/io"),
            threads: threads_now(),
            engine,
        })
    }
}

/// All at one moment of a stall.
#[derive(Clone, Debug)]
struct Reading {
    tick: u64,
    around: Rc<Surroundings>,
    look: Option<Look>,
    times: Option<(u64, u64)>,
}

/// The observation of a thread that makes no progress.
#[derive(Debug)]
pub struct Observation {
    /// Its number; none: unknown.
    thread: Option<u32>,
    first: Reading,
    last: Option<Reading>,
    looks: Vec<Look>,
}

impl Observation {
    /// Begins it. `tick` must have passed before `around` was read.
    pub fn begin(thread: Option<u32>, tick: u64, around: Rc<Surroundings>) -> Self {
        let first = Reading::of(thread, tick, around);
        Self { thread, looks: first.look.clone().into_iter().collect(), first, last: None }
    }

    /// Looks at the thread, which reads two small files: about 10 us. `still` is asked after that; if it is false, the thread has
    /// made progress meanwhile, and what was seen is dropped.
    pub fn look(&mut self, still: impl FnOnce() -> bool) {
        let look = self.thread.and_then(look_at);
        if still() {
            self.looks.extend(look);
        }
    }

    /// Reads everything again. `still` is asked after that, and returns the tick; none: the thread has made progress
    /// meanwhile, so what was read is dropped.
    pub fn read_again(&mut self, around: Rc<Surroundings>, still: impl FnOnce() -> Option<u64>) {
        let reading = Reading::of(self.thread, 0, around);
        if let Some(tick) = still() {
            self.last = Some(Reading { tick, ..reading });
        }
    }

    /// The ticks between which it was observed; none: it has been read only once.
    pub fn span(&self) -> Option<(u64, u64)> {
        Some((self.first.tick, self.last.as_ref()?.tick))
    }

    /// What was seen, in a span of this length. `own` are the threads that are not of the engine.
    pub fn view(&self, span_ns: u64, own: &[u32]) -> Option<StallView> {
        let (first, last) = (&self.first, self.last.as_ref()?);
        let less = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let of_thread = |of: fn(&Look) -> u64| {
            less(last.look.as_ref().map(of), first.look.as_ref().map(of)).filter(|_| self.thread.is_some())
        };
        let used = last.around.usage.since(&first.around.usage);
        let count = |is: fn(&Look) -> bool| self.looks.iter().filter(|look| is(look)).count() as u32;
        Some(StallView {
            span_ns,
            looks: self.looks.len() as u32,
            running: count(Look::is_running),
            blocked: count(Look::is_blocked),
            calls: most(self.looks.iter().filter_map(|look| Some((look.call.clone()?, 1))), CALLS),
            cpu_ns: less(last.times.map(|times| times.0), first.times.map(|times| times.0)),
            run_delay_ns: less(last.times.map(|times| times.1), first.times.map(|times| times.1)),
            minor_faults: of_thread(|look| look.minor_faults),
            major_faults: of_thread(|look| look.major_faults),
            busy: self.busy(last, span_ns, own),
            read_storage_bytes: used.read_storage_bytes,
            written_storage_bytes: used.written_storage_bytes,
            stolen_ns: less(last.around.stolen_ns, first.around.stolen_ns),
            io_pressure_ns: less(last.around.io_pressure_ns, first.around.io_pressure_ns),
            engine: changes(&first.around.engine, &last.around.engine),
        })
    }

    /// The other threads that used the CPU most.
    fn busy(&self, last: &Reading, span_ns: u64, own: &[u32]) -> Vec<(String, u64)> {
        let before = &self.first.around.threads;
        let is_other = |number: &u32| Some(*number) != self.thread && !own.contains(number);
        let used =
            last.around.threads.iter().filter(|(number, _)| is_other(number)).map(|(number, (name, ns))| {
                let then = before.get(number).map_or(0, |(_, ns)| *ns);
                // A number that was reused for another thread starts again at zero.
                (name.clone(), ns.checked_sub(then).unwrap_or(*ns))
            });
        let mut busy = most(used, BUSY);
        busy.retain(|(_, ns)| *ns as f64 >= span_ns as f64 * BUSY_SHARE);
        busy
    }
}

impl Reading {
    fn of(thread: Option<u32>, tick: u64, around: Rc<Surroundings>) -> Self {
        Self { tick, around, look: thread.and_then(look_at), times: thread.and_then(times_of) }
    }
}

/// The sums by name, the largest first.
fn most<Count: Copy + Ord + Default + std::ops::AddAssign>(
    all: impl Iterator<Item = (String, Count)>,
    limit: usize,
) -> Vec<(String, Count)> {
    let mut sums: HashMap<String, Count> = HashMap::new();
    all.for_each(|(name, count)| *sums.entry(name).or_default() += count);
    let mut sums: Vec<(String, Count)> = sums.into_iter().collect();
    sums.sort_by(|(one_name, one), (other_name, other)| {
        other.cmp(one).then_with(|| one_name.cmp(other_name))
    });
    sums.truncate(limit);
    sums
}

/// The statistics that changed, by how much.
fn changes(before: &[(String, i64)], after: &[(String, i64)]) -> Vec<(String, i64)> {
    let change = |(name, now): &(String, i64)| {
        let (_, then) = before.iter().find(|(known, _)| known == name)?;
        Some((name.clone(), now.checked_sub(*then)?)).filter(|(_, change)| *change != 0)
    };
    after.iter().filter_map(change).collect()
}

/// Name and CPU time of each thread of this process and of the processes that it started.
fn threads_now() -> HashMap<u32, (String, u64)> {
    let mut all = HashMap::new();
    let own = std::iter::once("/proc/self/task".to_string());
    let others = descendants().into_iter().map(|process| format!("/proc/{process}/task"));
    for folder in own.chain(others) {
        for thread in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Some(number) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let file = |name: &str| read(&format!("{folder}/{number}/{name}"));
            // A thread that ended during the scan no longer has files.
            if let (Some(name), Some((cpu_ns, _))) =
                (file("comm"), file("schedstat").and_then(|text| look::parse_times(&text)))
            {
                all.insert(number, (name.trim_end().to_string(), cpu_ns));
            }
        }
    }
    all
}
