//! Merges the rounds of a phase into one record.

use super::{CallTimes, Check, KindRecord, PhaseRecord, Record, ThreadRecord};
use crate::measure::{DiskUse, Usage};
use crate::results::EndedBy;
use std::borrow::Cow;

impl PhaseRecord {
    /// The start of the next round's rows on a time axis: a phase's first row begins before its first thread does, and the
    /// last may end after its threads.
    pub fn span_ns(&self) -> u64 {
        self.series.last().map_or(0, |row| row.at_ns).max(self.elapsed_ns)
    }
}

impl Record {
    /// The records of a phase, one for each round in order; a single one for a phase without rounds.
    pub fn rounds_of<'a>(&'a self, phase: &'a str) -> impl Iterator<Item = &'a PhaseRecord> {
        self.phases.iter().filter(move |found| found.phase.name == phase)
    }

    /// The complete phase with its rounds merged; none if the record does not have it.
    ///
    /// Ops, times, histograms, resources and checks are summed, peaks are the maximum, and states at the end of a round are
    /// those of the last round. Rows per second and percentiles of threads, which cannot be summed, are omitted. If rounds
    /// are missing, the phase counts as ended by a failure.
    pub fn whole_phase(&self, phase: &str) -> Option<Cow<'_, PhaseRecord>> {
        let mut rounds = self.phases.iter().filter(|found| found.phase.name == phase);
        let first = rounds.next()?;
        if first.round.is_none() {
            return Some(Cow::Borrowed(first));
        }
        let mut whole = PhaseRecord { round: None, series: Vec::new(), ..first.clone() };
        forget_percentiles(&mut whole.threads);
        let mut weights = Weights::default();
        weights.add(first);
        let mut count = 1;
        for round in rounds {
            add(&mut whole, round);
            weights.add(round);
            count += 1;
        }
        weights.set(&mut whole);
        let planned = self.trial.workload.rounds;
        if count < planned && whole.not_run.is_none() {
            whole.ended_by = EndedBy::Failure;
            whole.not_run = Some(format!("ended after {count} of {planned} rounds"));
        }
        Some(Cow::Owned(whole))
    }
}

/// The weights of the means of a complete phase.
#[derive(Default)]
struct Weights {
    calls: f64,
    ops: f64,
    elapsed_ns: f64,
    outside_ns: f64,
}

impl Weights {
    fn add(&mut self, round: &PhaseRecord) {
        if round.batch_mean > 0.0 {
            self.ops += round.ops as f64;
            self.calls += round.ops as f64 / round.batch_mean;
        }
        self.elapsed_ns += round.elapsed_ns as f64;
        self.outside_ns += round.elapsed_ns as f64 * round.harness_share;
    }

    fn set(&self, whole: &mut PhaseRecord) {
        whole.batch_mean = if self.calls > 0.0 { self.ops / self.calls } else { 0.0 };
        whole.harness_share = if self.elapsed_ns > 0.0 { self.outside_ns / self.elapsed_ns } else { 0.0 };
    }
}

/// Adds a round to the rounds before it.
fn add(whole: &mut PhaseRecord, round: &PhaseRecord) {
    if whole.not_run.is_none() {
        whole.not_run.clone_from(&round.not_run);
        whole.ended_by = round.ended_by;
    }
    whole.durability_in_force = whole.durability_in_force.or(round.durability_in_force);
    for emulated in &round.emulated {
        if !whole.emulated.contains(emulated) {
            whole.emulated.push(emulated.clone());
        }
    }
    whole.noise = whole
        .noise
        .zip(round.noise)
        .map(|(whole_noise, noise)| whole_noise.with(whole.elapsed_ns, noise, round.elapsed_ns));
    whole.elapsed_ns = whole.elapsed_ns.saturating_add(round.elapsed_ns);
    whole.ops = whole.ops.saturating_add(round.ops);
    whole.keys_after = round.keys_after;
    round.kinds.iter().for_each(|kind| add_kind(&mut whole.kinds, kind));
    round.threads.iter().for_each(|thread| add_thread(&mut whole.threads, thread));
    whole.usage = usage(&whole.usage, &round.usage);
    whole.cap_use.clone_from(&round.cap_use);
    whole.cap_use = round.cap_use;
    whole.logical_bytes_written = whole.logical_bytes_written.saturating_add(round.logical_bytes_written);
    whole.logical_bytes_read = whole.logical_bytes_read.saturating_add(round.logical_bytes_read);
    let allocated = |disk: &Option<DiskUse>| disk.as_ref().map(|disk| disk.allocated_bytes);
    if allocated(&round.disk_peak) > allocated(&whole.disk_peak) {
        whole.disk_peak = round.disk_peak;
    }
    whole.disk_end = round.disk_end;
    whole.disk_settled = round.disk_settled;
    whole.engine_stats.clone_from(&round.engine_stats);
    let times = whole.call_times.take().into_iter().chain(round.call_times.clone());
    whole.call_times = CallTimes::of_all(times);
    add_check(&mut whole.check, &round.check);
}

fn add_kind(kinds: &mut Vec<KindRecord>, round: &KindRecord) {
    let Some(kind) = kinds.iter_mut().find(|kind| kind.kind == round.kind) else {
        kinds.push(round.clone());
        return;
    };
    kind.ops = kind.ops.saturating_add(round.ops);
    kind.misses = kind.misses.saturating_add(round.misses);
    kind.evicted = kind.evicted.saturating_add(round.evicted);
    kind.rows = kind.rows.saturating_add(round.rows);
    kind.retries = kind.retries.saturating_add(round.retries);
    kind.service_ns.merge(&round.service_ns);
}

fn add_thread(threads: &mut Vec<ThreadRecord>, round: &ThreadRecord) {
    let Some(thread) = threads.iter_mut().find(|thread| thread.thread == round.thread) else {
        threads.push(round.clone());
        forget_percentiles(threads);
        return;
    };
    thread.ops = thread.ops.saturating_add(round.ops);
    thread.elapsed_ns = thread.elapsed_ns.saturating_add(round.elapsed_ns);
    thread.inside_ns = thread.inside_ns.saturating_add(round.inside_ns);
    thread.max_ns = thread.max_ns.max(round.max_ns);
}

fn forget_percentiles(threads: &mut [ThreadRecord]) {
    for thread in threads {
        (thread.p50_ns, thread.p99_ns) = (None, None);
    }
}

fn add_check(check: &mut Check, round: &Check) {
    if (round.level as u8) < check.level as u8 {
        check.level = round.level;
    }
    check.values = check.values.saturating_add(round.values);
    check.rows = check.rows.saturating_add(round.rows);
    check.faults = check.faults.saturating_add(round.faults);
    check.first_faults.extend(round.first_faults.iter().cloned());
}

/// Sums differences; resident memory is the maximum of both, because it belongs to a moment; peaks count from the start of
/// the process, so the last one is the largest.
fn usage(before: &Usage, round: &Usage) -> Usage {
    let sum = |before: Option<u64>, round: Option<u64>| Some(before?.saturating_add(round?));
    Usage {
        user_cpu_ns: sum(before.user_cpu_ns, round.user_cpu_ns),
        system_cpu_ns: sum(before.system_cpu_ns, round.system_cpu_ns),
        rss_bytes: before.rss_bytes.max(round.rss_bytes),
        rss_anonymous_bytes: before.rss_anonymous_bytes.max(round.rss_anonymous_bytes),
        rss_file_bytes: before.rss_file_bytes.max(round.rss_file_bytes),
        rss_peak_bytes: before.rss_peak_bytes.max(round.rss_peak_bytes),
        vm_peak_bytes: before.vm_peak_bytes.max(round.vm_peak_bytes),
        minor_faults: sum(before.minor_faults, round.minor_faults),
        major_faults: sum(before.major_faults, round.major_faults),
        voluntary_switches: sum(before.voluntary_switches, round.voluntary_switches),
        involuntary_switches: sum(before.involuntary_switches, round.involuntary_switches),
        read_call_bytes: sum(before.read_call_bytes, round.read_call_bytes),
        written_call_bytes: sum(before.written_call_bytes, round.written_call_bytes),
        read_storage_bytes: sum(before.read_storage_bytes, round.read_storage_bytes),
        written_storage_bytes: sum(before.written_storage_bytes, round.written_storage_bytes),
        cancelled_storage_bytes: sum(before.cancelled_storage_bytes, round.cancelled_storage_bytes),
        run_delay_ns: sum(before.run_delay_ns, round.run_delay_ns),
    }
}

#[cfg(test)]
mod tests;
