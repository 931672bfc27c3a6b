//! Watches a phase from beside it: once a second it takes what the threads published, samples the process, and tells
//! whoever shows progress. It does not touch the threads' counters in any way that they would notice.

use super::shared::{Shared, Tallies, Tally};
use super::unit::Kind;
use crate::measure::{DiskUse, Histogram, SeriesRow, Usage};
use crate::workload::Durability;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What progress shows: the process writes one a second, and one at the end of each phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// The phase.
    pub phase: String,
    /// The round that it is run in, from 1; none: it is run once.
    #[serde(default)]
    pub round: Option<u32>,
    /// Ops so far, warm-up included; it stands still only when nothing happens.
    pub ops: u64,
    /// The level in force.
    pub level: Durability,
    /// Length of the last interval, nanoseconds.
    pub interval_ns: u64,
    /// Ops per second in it; none: it has no length.
    pub ops_per_second: Option<f64>,
    /// Median of the last interval, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the last interval, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Service times of the last interval: least value of a bucket, nanoseconds, and count; four buckets a doubling.
    pub service_ns: Vec<(u64, u64)>,
    /// Share of the phase that is done, 0 to 1; none: unknown.
    pub done_share: Option<f64>,
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
    /// Allocated bytes on disk.
    pub disk_bytes: Option<u64>,
    /// CPU time of the process in the last interval, user and system, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Bytes that the process caused to be written to storage in it.
    pub written_bytes: Option<u64>,
}

/// Counts threads that have ended, and wakes the watcher.
#[derive(Default)]
pub struct Finished {
    ended: Mutex<usize>,
    changed: Condvar,
}

impl Finished {
    /// One more.
    pub fn thread_ended(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Waits until `count` have ended; false: the time came first.
    fn wait(&self, count: usize, until: Instant) -> bool {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while *ended < count {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                return false;
            };
            ended = self.changed.wait_timeout(ended, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Counts its thread when that ends, however it does: nobody must wait for one that has panicked.
pub struct Ending(pub Arc<Finished>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.thread_ended();
    }
}

/// The watcher of a phase.
pub struct Watch<'s, 'p> {
    shared: &'s Shared<'p>,
    data: PathBuf,
    ops_wanted: u64,
    finished: Arc<Finished>,
    series: Vec<SeriesRow>,
    began: Instant,
    row_began_ns: u64,
    usage: Usage,
    disk_peak: Option<DiskUse>,
}

impl<'s, 'p> Watch<'s, 'p> {
    /// For the database in `data`.
    pub fn new(shared: &'s Shared<'p>, data: &std::path::Path, ops_wanted: u64) -> Watch<'s, 'p> {
        Watch {
            shared,
            data: data.to_path_buf(),
            ops_wanted,
            finished: Arc::default(),
            series: Vec::new(),
            began: Instant::now(),
            row_began_ns: 0,
            usage: Usage::default(),
            disk_peak: None,
        }
    }

    /// Where threads say that they have ended.
    pub fn finished(&self) -> Arc<Finished> {
        Arc::clone(&self.finished)
    }

    /// The phase begins: to be called just before its threads are let go.
    pub fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// Watches until all threads have ended. Gives the usage at the end of the warm-up, if there was one.
    pub fn run(&mut self, on_tick: &mut dyn FnMut(&Tick)) -> Option<Usage> {
        let threads = self.shared.slots.len();
        let mut after_warmup = None;
        if self.shared.phase.warmup_seconds > 0.0 {
            let until = self.began + Duration::from_secs_f64(self.shared.phase.warmup_seconds);
            self.finished.wait(threads, until);
            after_warmup = Some(Usage::now());
            self.began = until;
        }
        self.usage = after_warmup.unwrap_or_else(Usage::now);
        let mut seconds = 1;
        // A tenth after the full second, so that the threads have published it.
        while !self.finished.wait(threads, self.began + Duration::from_millis(seconds * 1000 + 100)) {
            self.row(on_tick);
            seconds += 1;
        }
        after_warmup
    }

    /// The last, shorter row.
    pub fn last_row(&mut self, on_tick: &mut dyn FnMut(&Tick)) {
        self.row(on_tick);
    }

    /// All rows, and the largest disk use seen.
    pub fn into_series(mut self, disk_end: Option<DiskUse>) -> (Vec<SeriesRow>, Option<DiskUse>) {
        self.see_disk(disk_end);
        (self.series, self.disk_peak)
    }

    fn see_disk(&mut self, disk: Option<DiskUse>) {
        let allocated = |disk: &Option<DiskUse>| disk.as_ref().map(|disk| disk.allocated_bytes);
        if allocated(&disk) > allocated(&self.disk_peak) {
            self.disk_peak = disk;
        }
    }

    fn row(&mut self, on_tick: &mut dyn FnMut(&Tick)) {
        let tallies = self.take();
        let at_ns = self.began.elapsed().as_nanos() as u64;
        let usage = Usage::now();
        let disk = DiskUse::of(&self.data);
        let mut all = Tally::new();
        tallies.iter().flatten().for_each(|tally| all.merge(tally));
        let kinds = Kind::ALL.into_iter().filter_map(|kind| {
            let tally = tallies[kind as usize].as_ref().filter(|tally| tally.ops > 0)?;
            Some((kind.name().to_string(), tally.service.packed()))
        });
        let used = usage.since(&self.usage);
        let row = SeriesRow {
            at_ns,
            interval_ns: at_ns - self.row_began_ns,
            ops: all.ops,
            misses: all.misses,
            p50_ns: all.service.quantile_if_enough(1, 2),
            p99_ns: all.service.quantile_if_enough(99, 100),
            max_ns: all.service.max_ns(),
            kinds: kinds.collect(),
            rss_bytes: usage.rss_bytes,
            cpu_ns: used.cpu_ns(),
            written_bytes: used.written_storage_bytes,
            disk_allocated_bytes: disk.as_ref().map(|disk| disk.allocated_bytes),
        };
        on_tick(&self.tick(&row, &all.service));
        self.usage = usage;
        self.row_began_ns = at_ns;
        self.see_disk(disk);
        self.series.push(row);
    }

    /// What the threads have published since the last time.
    fn take(&self) -> Tallies {
        let mut sum: Tallies = Default::default();
        for slot in &self.shared.slots {
            let mut interval = slot.interval.lock().unwrap_or_else(PoisonError::into_inner);
            for (sum, tally) in sum.iter_mut().zip(interval.iter_mut()) {
                if let Some(tally) = tally {
                    sum.get_or_insert_with(Tally::new).merge(tally);
                    tally.clear();
                }
            }
        }
        sum
    }

    fn tick(&self, row: &SeriesRow, service: &Histogram) -> Tick {
        let ops = self.shared.slots.iter().map(|slot| slot.ops.load(Ordering::Relaxed)).sum();
        let by_count = (self.ops_wanted > 0).then(|| ops as f64 / self.ops_wanted as f64);
        let seconds = self.shared.phase.seconds;
        let by_time = (seconds > 0.0).then(|| row.at_ns as f64 / 1e9 / seconds);
        let done_share = match (by_count, by_time) {
            (Some(count), Some(time)) => Some(count.max(time)),
            (count, time) => count.or(time),
        };
        Tick {
            phase: self.shared.phase.name.clone(),
            round: self.shared.round,
            ops,
            level: self.shared.level,
            interval_ns: row.interval_ns,
            ops_per_second: (row.interval_ns > 0).then(|| row.ops as f64 * 1e9 / row.interval_ns as f64),
            p50_ns: row.p50_ns,
            p99_ns: row.p99_ns,
            service_ns: service.coarse(),
            done_share: done_share.map(|share: f64| share.min(1.0)),
            rss_bytes: row.rss_bytes,
            disk_bytes: row.disk_allocated_bytes,
            cpu_ns: row.cpu_ns,
            written_bytes: row.written_bytes,
        }
    }
}
