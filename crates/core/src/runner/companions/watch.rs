//! Watches a phase from a separate thread: at the end of each second it samples the process, then takes the tallies that
//! the threads have published, and reports progress. It only reads the threads' counters, which does not slow them down.

mod gaps;
mod rows;
mod stalls;

pub(crate) use rows::ROW_NS;

use super::{Companion, OnTick, Stage};
use crate::engine::Database;
use crate::results::PhaseRecord;
use crate::results::steady::UntilSteady;
use crate::runner::end_count::Finished;
use crate::runner::phase::elapsed_ns;
use crate::runner::phase_data::Shared;
use crate::runner::worker::Outcome;
use crate::workload::{Durability, Until};
use gaps::{Gaps, LOOK, Seen};
use kvdyno_measure::file_system::has_no_storage;
use kvdyno_measure::{
    CapUse, DeviceUse, DiskUse, Histogram, OwnDevice, PhaseNoise, PhaseProbe, SeriesRow, ThreadTimes, Usage,
    open_files,
};
use rows::{Rows, Sample};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// A report of progress: the process writes one per second, and one at the end of each phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// The phase.
    pub phase: String,
    /// The round in which it is run, from 1; none: it is run once.
    #[serde(default)]
    pub round: Option<u32>,
    /// Ops so far, warm-up included; unchanged only if there is no progress.
    pub ops: u64,
    /// The effective level.
    pub level: Durability,
    /// Length of the last row of the series, nanoseconds.
    pub interval_ns: u64,
    /// Ops per second in that row; none: it has no length.
    pub ops_per_second: Option<f64>,
    /// Median of the last interval, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the last interval, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Service times of the last interval: lower bound of a bucket, nanoseconds, and count; four buckets per doubling.
    pub service_ns: Vec<(u64, u64)>,
    /// Completed share of the phase, 0 to 1; none: unknown.
    pub done_share: Option<f64>,
    /// Resident memory, bytes.
    pub rss_bytes: Option<u64>,
    /// Allocated bytes on disk.
    pub disk_bytes: Option<u64>,
    /// CPU time of the process in the last interval, user and system, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Bytes that the process wrote to storage in the last interval.
    pub written_bytes: Option<u64>,
}

/// The time after the end of a second until the watcher takes its tallies, nanoseconds: most threads are inside a batch at
/// first.
const PUBLISHED_AFTER_NS: u64 = 100_000_000;

/// The watcher of a phase.
pub(super) struct Watch<'s> {
    shared: &'s Shared<'s>,
    database: &'s Database,
    data: &'s Path,
    on_tick: OnTick<'s>,
    /// As in [`Stage`].
    target_ops: Option<u64>,
    buffers_bytes: u64,
    finished: Arc<Finished>,
    rows: Rows,
    probe: Option<PhaseProbe>,
    /// The usage before anything was counted, and at the last sample.
    before: Usage,
    usage: Usage,
    /// What this thread had used at the same moments.
    own_before: Usage,
    own: Usage,
    has_storage: bool,
    device: Option<OwnDevice>,
    /// The threads that make no progress; none: nothing is counted yet.
    gaps: Option<Gaps>,
    /// Rows before this one have been sampled.
    sampled: u64,
    /// Rows before this one have been reported.
    reported: u64,
    disk_peak: Option<DiskUse>,
    /// Whether the phase is steady; none: it does not end by that.
    until: Option<UntilSteady>,
    /// None: the phase has not ended.
    watched: Option<Watched>,
}

/// The results of the watcher.
struct Watched {
    /// One row per second; the last row has its own length.
    series: Vec<SeriesRow>,
    /// The usage of the process while the threads counted.
    usage: Usage,
    /// The part of it that the watcher used.
    watcher: Usage,
    /// The I/O of the database's own device, if it has one.
    device: Option<DeviceUse>,
    /// Disturbances of the phase.
    noise: PhaseNoise,
    /// What was seen of threads while they made no progress.
    seen: Vec<Seen>,
    /// The largest disk use seen.
    disk_peak: Option<DiskUse>,
    /// The disk use at the end.
    disk_end: Option<DiskUse>,
}

impl<'s> Companion<'s> for Watch<'s> {
    fn begin(&mut self, stage: &Stage<'s, '_>) {
        (self.target_ops, self.buffers_bytes) = (stage.target_ops, stage.buffers_bytes);
        self.finished = Arc::clone(&stage.finished);
        self.has_storage = !has_no_storage(self.data);
        self.device = OwnDevice::of(self.data);
    }

    fn start(&mut self, _stage: &Stage<'s, '_>) {
        self.begin_counting();
    }

    fn attend(&mut self) {
        self.run();
    }

    fn end(&mut self, outcomes: &[Outcome]) {
        let times: Vec<ThreadTimes> = outcomes.iter().filter_map(|outcome| outcome.times).collect();
        self.watched = Some(self.finish(elapsed_ns(self.shared, outcomes), &times));
    }

    fn record(self: Box<Self>, outcomes: &[Outcome], record: &mut PhaseRecord) {
        record.buffers_bytes = Some(self.buffers_bytes);
        record.cap_use = CapUse::of_this_process();
        let Some(watched) = self.watched else { return };
        (record.series, record.usage, record.noise) = (watched.series, watched.usage, Some(watched.noise));
        (record.watcher, record.device) = (Some(watched.watcher), watched.device);
        record.stalls = stalls::longest(self.shared, outcomes, &watched.seen);
        (record.disk_peak, record.disk_end) = (watched.disk_peak, watched.disk_end);
    }
}

impl<'s> Watch<'s> {
    /// A watcher for the database, which is in `data`.
    pub(super) fn new(
        shared: &'s Shared<'s>,
        database: &'s Database,
        data: &'s Path,
        on_tick: OnTick<'s>,
    ) -> Watch<'s> {
        Watch {
            shared,
            database,
            data,
            on_tick,
            target_ops: None,
            buffers_bytes: 0,
            finished: Arc::default(),
            rows: Rows::default(),
            probe: None,
            before: Usage::default(),
            usage: Usage::default(),
            own_before: Usage::default(),
            own: Usage::default(),
            has_storage: false,
            device: None,
            gaps: None,
            sampled: 0,
            reported: 0,
            disk_peak: None,
            until: (shared.phase.until == Until::Steady).then(UntilSteady::default),
            watched: None,
        }
    }

    /// What is used from now on is counted.
    fn begin_counting(&mut self) {
        self.probe = Some(PhaseProbe::start());
        self.device.iter_mut().for_each(OwnDevice::begin);
        (self.before, self.own_before) = self.used();
    }

    /// What the process and this thread have used. The two are always read in this order, so that what the reading costs is
    /// in neither difference, or in both.
    fn used(&self) -> (Usage, Usage) {
        let both = (Usage::now(), Usage::of_this_thread());
        if self.has_storage { both } else { (both.0.without_storage(), both.1.without_storage()) }
    }

    /// Watches until all threads have ended.
    fn run(&mut self) {
        let threads = self.shared.slots.len();
        if self.shared.phase.warmup_seconds > 0.0 {
            self.finished.wait(threads, self.instant(0));
            self.begin_counting();
        }
        self.usage = self.before;
        self.gaps = Some(Gaps::new(threads, self.has_storage));
        let mut row = 0;
        while !self.wait((row + 1) * ROW_NS) {
            // If this thread was not scheduled in time, the rows in between have no sample.
            row = row.max((self.counted_ns() / ROW_NS).saturating_sub(1));
            self.sample(row, self.buffers_bytes);
            let has_ended = self.wait((row + 1) * ROW_NS + PUBLISHED_AFTER_NS);
            let least = self.take();
            let (seen, service) = self.rows.seen(row, ROW_NS);
            self.report(&seen, &service);
            if !has_ended && self.until.as_mut().is_some_and(|until| until.observe(&seen)) {
                self.shared.end_steady();
            }
            // The row of this second stays open, because the phase may end with it.
            self.rows.close_before(least.min(row));
            row += 1;
            self.reported = row;
            if has_ended {
                break;
            }
        }
    }

    /// Waits until all threads have ended, and looks at them from time to time; returns false if so many nanoseconds are
    /// counted first. The first thread may begin to count only while this one waits already.
    fn wait(&mut self, counted_ns: u64) -> bool {
        let threads = self.shared.slots.len();
        loop {
            let next = self.instant(counted_ns).min(Instant::now() + LOOK);
            if self.finished.wait(threads, next) {
                return true;
            }
            if let Some(gaps) = &mut self.gaps {
                gaps.look(self.shared, self.database);
            }
            if self.counted_ns() >= counted_ns {
                return false;
            }
        }
    }

    /// Finishes a phase that took `end_ns`, until its last thread ended; `times` are those of the threads.
    fn finish(&mut self, end_ns: u64, times: &[ThreadTimes]) -> Watched {
        // Their buffers have been freed.
        let now = self.sample(end_ns / ROW_NS, 0);
        let mut usage = now.since(&self.before);
        let watcher = self.own.since(&self.own_before);
        let noise = self.probe.take().map(|probe| probe.finish(times, &mut usage)).unwrap_or_default();
        self.take();
        let device = self.device.as_ref().and_then(OwnDevice::finish);
        let seen = self.gaps.take().map_or_else(Vec::new, |gaps| gaps.into_seen(self.shared));
        let unreported = self.rows.service_from(self.reported);
        let Some((last, length_ns)) = Rows::last(end_ns) else {
            self.report(&SeriesRow::default(), &Histogram::empty());
            let disk_end = DiskUse::of(self.data);
            let (series, disk_peak) = (Vec::new(), self.disk_peak);
            return Watched { series, usage, watcher, device, noise, seen, disk_peak, disk_end };
        };
        self.rows.end(last);
        let (row, _) = self.rows.seen(last, length_ns);
        self.report(&row, &unreported);
        let disk_end = DiskUse::of(self.data);
        self.see_disk(disk_end);
        let series = std::mem::take(&mut self.rows).into_series(length_ns);
        Watched { series, usage, watcher, device, noise, seen, disk_peak: self.disk_peak, disk_end }
    }

    /// Nanoseconds since counting began.
    fn counted_ns(&self) -> u64 {
        self.shared.clock.to_ns(self.shared.clock.now().saturating_sub(self.shared.begin()))
    }

    /// The instant at which this many nanoseconds will have passed since counting began, by the clock of the threads, which
    /// differs from the clock for waiting.
    fn instant(&self, counted_ns: u64) -> Instant {
        let clock = self.shared.clock;
        let at = self.shared.begin() + clock.from_ns(counted_ns);
        Instant::now() + Duration::from_nanos(clock.to_ns(at.saturating_sub(clock.now())))
    }

    fn see_disk(&mut self, disk: Option<DiskUse>) {
        let allocated = |disk: &Option<DiskUse>| disk.as_ref().map(|disk| disk.allocated_bytes);
        if allocated(&disk) > allocated(&self.disk_peak) {
            self.disk_peak = disk;
        }
    }

    /// Samples the process at the end of a row, without these buffers.
    fn sample(&mut self, row: u64, buffers_bytes: u64) -> Usage {
        let (usage, own) = self.used();
        let usage = usage.without_memory(buffers_bytes);
        self.own = own;
        let disk = DiskUse::of(self.data);
        if let Some(probe) = &mut self.probe {
            probe.update();
        }
        let used = usage.since(&self.usage);
        // If a row in between was missed, the share of each row is unknown.
        let is_next = row <= self.sampled;
        self.rows.sample(
            row,
            Sample {
                rss_bytes: usage.rss_bytes,
                cpu_ns: used.cpu_ns().filter(|_| is_next),
                written_bytes: used.written_storage_bytes.filter(|_| is_next),
                disk_bytes: disk.as_ref().map(|disk| disk.allocated_bytes),
                rss_anonymous_bytes: usage.rss_anonymous_bytes,
                open_files: open_files(),
            },
        );
        (self.usage, self.sampled) = (usage, row + 1);
        self.see_disk(disk);
        usage
    }

    /// Takes the tallies that the threads have published since the last time. Returns the first row that a thread is still
    /// in.
    fn take(&mut self) -> u64 {
        let mut least = u64::MAX;
        for slot in &self.shared.slots {
            let mut published = slot.published.lock().unwrap_or_else(PoisonError::into_inner);
            least = least.min(published.take(|row, tallies| self.rows.add(row, tallies)));
        }
        least
    }

    fn report(&mut self, row: &SeriesRow, service: &Histogram) {
        let tick = self.tick(row, service);
        (self.on_tick)(&tick);
    }

    fn tick(&self, row: &SeriesRow, service: &Histogram) -> Tick {
        let ops = self.shared.slots.iter().map(|slot| slot.ops.load(Ordering::Relaxed)).sum();
        let by_count = self.target_ops.map(|target| ops as f64 / target.max(1) as f64);
        let by_time = self.shared.phase.seconds_limit().map(|seconds| row.at_ns as f64 / 1e9 / seconds);
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
