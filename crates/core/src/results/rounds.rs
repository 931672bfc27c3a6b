//! Merges the rounds of a phase into one record.

use super::{Arrivals, CallTimes, Check, KindRecord, PhaseRecord, Record, Staleness, ThreadRecord};
use crate::results::EndedBy;
use kvdyno_measure::{DiskUse, Usage};
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
    /// those of the last round. Rows per second, stalls and percentiles of threads, which cannot be summed, are omitted. If
    /// rounds are missing, the phase counts as ended by a failure.
    pub fn whole_phase(&self, phase: &str) -> Option<Cow<'_, PhaseRecord>> {
        let mut rounds = self.phases.iter().filter(|found| found.phase.name == phase);
        let first = rounds.next()?;
        if first.round.is_none() {
            return Some(Cow::Borrowed(first));
        }
        let (series, stalls) = (Vec::new(), Vec::new());
        let mut whole = PhaseRecord { round: None, series, stalls, ..first.clone() };
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
    whole.durability_effective = whole.durability_effective.or(round.durability_effective);
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
    whole.cap_use = round.cap_use;
    whole.buffers_bytes = whole.buffers_bytes.max(round.buffers_bytes);
    whole.logical_bytes_written = whole.logical_bytes_written.saturating_add(round.logical_bytes_written);
    whole.logical_bytes_read = whole.logical_bytes_read.saturating_add(round.logical_bytes_read);
    whole.watcher = whole.watcher.zip(round.watcher).map(|(whole, round)| usage(&whole, &round));
    whole.device =
        whole.device.as_ref().zip(round.device.as_ref()).and_then(|(whole, round)| whole.and(round));
    let allocated = |disk: &Option<DiskUse>| disk.as_ref().map(|disk| disk.allocated_bytes);
    if allocated(&round.disk_peak) > allocated(&whole.disk_peak) {
        whole.disk_peak = round.disk_peak;
    }
    whole.disk_end = round.disk_end;
    whole.disk_settled = round.disk_settled;
    whole.engine_stats.clone_from(&round.engine_stats);
    let times = whole.call_times.take().into_iter().chain(round.call_times.clone());
    whole.call_times = CallTimes::of_all(times);
    whole.harness = whole.harness.zip(round.harness).map(|(mut whole, round)| {
        whole.add(round);
        whole
    });
    add_check(&mut whole.check, &round.check);
    whole.staleness = Staleness::of_all([whole.staleness.as_ref(), round.staleness.as_ref()].into_iter());
    whole.arrivals = Arrivals::of_all([whole.arrivals.as_ref(), round.arrivals.as_ref()].into_iter());
}

pub(super) fn add_kind(kinds: &mut Vec<KindRecord>, round: &KindRecord) {
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
    for (own, other) in [(&mut kind.wait_ns, &round.wait_ns), (&mut kind.response_ns, &round.response_ns)] {
        if let Some(other) = other {
            own.get_or_insert_default().merge(other);
        }
    }
}

fn add_thread(threads: &mut Vec<ThreadRecord>, round: &ThreadRecord) {
    let Some(thread) = threads.iter_mut().find(|thread| thread.thread == round.thread) else {
        threads.push(round.clone());
        forget_percentiles(threads);
        return;
    };
    thread.ops = thread.ops.saturating_add(round.ops);
    let sum = |before: Option<u64>, round: Option<u64>| Some(before?.saturating_add(round?));
    thread.cpu_ns = sum(thread.cpu_ns, round.cpu_ns);
    thread.run_delay_ns = sum(thread.run_delay_ns, round.run_delay_ns);
    thread.elapsed_ns = thread.elapsed_ns.saturating_add(round.elapsed_ns);
    thread.inside_ns = thread.inside_ns.saturating_add(round.inside_ns);
    thread.slept_ns = thread.slept_ns.saturating_add(round.slept_ns);
    thread.max_ns = thread.max_ns.max(round.max_ns);
}

fn forget_percentiles(threads: &mut [ThreadRecord]) {
    for thread in threads {
        (thread.p50_ns, thread.p99_ns) = (None, None);
    }
}

pub(super) fn add_check(check: &mut Check, round: &Check) {
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
pub(super) fn usage(before: &Usage, round: &Usage) -> Usage {
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
        read_calls: sum(before.read_calls, round.read_calls),
        write_calls: sum(before.write_calls, round.write_calls),
        read_call_bytes: sum(before.read_call_bytes, round.read_call_bytes),
        written_call_bytes: sum(before.written_call_bytes, round.written_call_bytes),
        read_storage_bytes: sum(before.read_storage_bytes, round.read_storage_bytes),
        written_storage_bytes: sum(before.written_storage_bytes, round.written_storage_bytes),
        cancelled_storage_bytes: sum(before.cancelled_storage_bytes, round.cancelled_storage_bytes),
        cycles: sum(before.cycles, round.cycles),
        instructions: sum(before.instructions, round.instructions),
        run_delay_ns: sum(before.run_delay_ns, round.run_delay_ns),
    }
}

#[cfg(test)]
mod tests {
    use crate::results::fixture;
    use crate::results::summary::{RunState, Summary};
    use crate::results::{PhaseRecord, Record};
    use std::sync::Arc;

    /// The first record of an engine, with its phase `fill` in several rounds, each with its number in its figures.
    fn in_rounds(planned: u32, ran: u32) -> Record {
        let mut record = fixture::records().into_iter().find(|record| record.trial.engine == "lmdb").unwrap();
        let workload = Arc::make_mut(&mut record.trial.workload);
        workload.rounds = planned;
        workload.phases[0].each_round = true;
        let fill = record.phases[0].clone();
        let round = |number: u32| {
            let mut round = PhaseRecord { round: Some(number), ..fill.clone() };
            round.phase.each_round = true;
            round.elapsed_ns = 1_000 * u64::from(number);
            round.keys_after = Some(100 * u64::from(number));
            round.usage.rss_bytes = Some(10 - u64::from(number));
            round.usage.major_faults = Some(u64::from(number));
            round
                .threads
                .iter_mut()
                .for_each(|thread| (thread.cpu_ns, thread.run_delay_ns) = (Some(900), Some(100)));
            round.batch_mean = [64.0, 32.0][number as usize % 2];
            round.check.faults = 0;
            round
        };
        record.phases.remove(0);
        record.phases.splice(0..0, (1..=ran).map(round));
        record
    }

    #[test]
    fn sums_peaks_and_last_states() {
        let record = in_rounds(3, 3);
        let one = record.phases[0].clone();
        let whole = record.whole_phase("fill").unwrap();
        assert_eq!((whole.ops, whole.elapsed_ns, whole.keys_after), (3 * one.ops, 6_000, Some(300)));
        assert_eq!((whole.usage.rss_bytes, whole.usage.major_faults), (Some(9), Some(6)));
        assert_eq!(whole.kinds[0].service_ns.count(), 3 * one.kinds[0].service_ns.count());
        assert_eq!(whole.kinds[0].service_ns.max_ns(), one.kinds[0].service_ns.max_ns());
        assert_eq!(whole.threads[0].ops, 3 * one.threads[0].ops);
        assert_eq!((whole.threads[0].p50_ns, whole.threads[0].max_ns), (None, one.threads[0].max_ns));
        let times = |record: &PhaseRecord| (record.threads[0].cpu_ns, record.threads[0].run_delay_ns);
        assert_eq!(times(&whole), (Some(3 * 900), Some(3 * 100)));
        assert_eq!(whole.check.values, 3 * one.check.values);
        assert!(whole.series.is_empty() && !one.series.is_empty());
        // Two rounds with 32 ops per call and one with 64: 3 units of ops in 2.5 units of calls.
        assert!((whole.batch_mean - 3.0 / (2.0 / 32.0 + 1.0 / 64.0)).abs() < 1e-9, "{}", whole.batch_mean);
        assert_eq!(whole.not_run, None);
        // A figure that is unknown in one round is unknown for all.
        let mut record = record;
        record.phases[1].usage.major_faults = None;
        assert_eq!(record.whole_phase("fill").unwrap().usage.major_faults, None);
    }

    #[test]
    fn a_phase_without_rounds_is_unchanged() {
        let record = in_rounds(3, 3);
        let read = record.phases.iter().find(|phase| phase.phase.name == "read").unwrap();
        assert_eq!(record.whole_phase("read").as_deref(), Some(read));
        assert_eq!(record.whole_phase("nothing"), None);
        assert_eq!(
            record.rounds_of("fill").map(|phase| phase.round).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(3)]
        );
    }

    #[test]
    fn missing_rounds_cost_the_phase_its_figures() {
        let record = in_rounds(3, 2);
        let whole = record.whole_phase("fill").unwrap();
        assert_eq!(whole.not_run.as_deref(), Some("ended after 2 of 3 rounds"));
        let mut run = fixture::run();
        run.plan.trials.retain(|trial| trial.id == record.trial.id);
        let state = |record: Record| {
            let mut run = run.clone();
            run.plan.trials[0] = record.trial.clone();
            let summary = Summary::new(&run, vec![record]);
            let phase = &summary.phases[0];
            let cell =
                phase.groups.iter().flat_map(|group| &group.cells).chain(&phase.unranked).next().unwrap();
            (phase.rounds, cell.runs[0].clone())
        };
        let (rounds, failed) = state(record);
        assert_eq!(rounds, Some(3));
        assert_eq!(failed.state, RunState::Failed { cause: "ended after 2 of 3 rounds".to_string() });
        let (_, counted) = state(in_rounds(3, 3));
        assert_eq!((counted.state, counted.elapsed_ns), (RunState::Counted, Some(6_000)));
    }
}
