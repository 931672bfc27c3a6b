//! Summarizes a cell in one phase: the figures of each run, and their medians over runs.

use super::note::{Note, cause, notes};
use super::pace::PaceChange;
use crate::results::label::Labels;
use crate::results::price::CellPrice;
use crate::results::statistics::{Interval, Rank, interval_of_median, median};
use crate::results::{
    Arrivals, Cause, CheckLevel, Class, Cost, EndedBy, HarnessShares, KindRecord, Observed, Outcome,
    PhaseRecord, Record, Safety, Staleness, Word,
};
use crate::workload::{Durability, OpKind};
use kvdyno_measure::Histogram;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An engine with its options, in one phase at one effective durability level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The requested engine.
    pub engine: String,
    /// The requested options.
    pub options: Vec<(String, String)>,
    /// Its name in tables: the engine with the options that distinguish it.
    #[serde(skip)]
    pub label: String,
    /// The option among these with the number of nodes of the cluster that the engine starts; none: it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_option: Option<String>,
    /// Its rank among the cells at the same level; none if it is not ranked.
    pub rank: Option<Rank>,
    /// Whether it is ranked and no other cell of its table was shown to be faster: one of the leaders is the fastest.
    pub leader: bool,
    /// The requested level.
    #[serde(rename = "durability_asked")]
    pub durability_requested: Durability,
    /// The effective level; none if no run counts.
    #[serde(rename = "durability_in_force")]
    pub durability_effective: Option<Durability>,
    /// What is known about its safety at the effective level; if that is contradicted, it is not ranked.
    pub safety: Safety,
    /// All planned runs, in order of repetition.
    pub runs: Vec<RunFigures>,
    /// The number of later runs without the phase, because it can no longer win it.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// Whether a look of a race has found that it can no longer win.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beaten: bool,
    /// Number of runs that the figures below are computed from.
    pub counted_runs: u32,
    /// Ops per second, the median over runs.
    pub ops_per_second: Option<f64>,
    /// The interval of that median; none for a single run.
    pub ops_per_second_interval: Option<Interval>,
    /// The engine's throughput as if the harness took no time, ops per second: the median over runs. Ranks are by it.
    pub engine_ops_per_second: Option<f64>,
    /// Its rate as a multiple of the leader's or the baseline's rate, estimated within blocks; none if it is not ranked.
    pub ratio: Option<Ratio>,
    /// Service times of all ops.
    pub latency: Latency,
    /// Wait and response times; none: the phase has no rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Arrived>,
    /// The same for each kind of op.
    pub kinds: Vec<KindSummary>,
    /// CPU time of the engine, user and system: seconds per million ops, the median over runs.
    pub cpu_seconds_per_million_ops: Option<f64>,
    /// Resident memory of the process in the phase, bytes: the maximum of all runs.
    pub rss_bytes: Option<u64>,
    /// Allocated bytes of the database after the phase, the median over runs.
    pub disk_allocated_bytes: Option<u64>,
    /// Bytes written to storage per byte of keys and values passed to writes, the median over runs.
    pub write_amplification: Option<f64>,
    /// Allocated bytes per byte of the keys and values in the database, the median over runs; none if sizes vary.
    pub space_amplification: Option<f64>,
    /// Sync calls per acknowledged commit, observed before the run; none: it writes nothing, or nothing was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syncs_per_commit: Option<f64>,
    /// System calls by kind per acknowledged commit, observed before the run: syncs, and writes to files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls_per_commit: BTreeMap<String, f64>,
    /// What an op costs, the median of each figure over runs.
    pub cost: Cost,
    /// How far reads were checked: the lowest level of all runs.
    pub check_level: Option<CheckLevel>,
    /// What its engine is.
    #[serde(skip)]
    pub class: Class,
    /// The class in words, with what a server promises: `server, one machine`, `distributed`, `cache`; none: it is embedded.
    #[serde(rename = "class", skip_serializing_if = "Option::is_none")]
    pub class_words: Option<String>,
    /// The number of its server processes, as the driver reports it; none: unknown, or it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// What it costs; none: no prices are given, or not those of what it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<CellPrice>,
    /// For a cache: the share of its reads of written keys that found nothing, in all runs together, 0 to 1; none: not a
    /// cache, or no such reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted_share: Option<f64>,
    /// How old its reads were, in all runs together; none: it returns the newest values, or which were stale is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// Emulated op kinds.
    pub emulated: Vec<String>,
    /// Retries inside the driver, in all runs together.
    pub retries: u64,
    /// The share of thread time outside the driver's calls, 0 to 1, the median over runs.
    pub harness_share: Option<f64>,
    /// Its parts, the median of each over runs; none: an older version measured them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<HarnessShares>,
    /// Ops per call of the driver, the median over runs.
    pub batch_mean: Option<f64>,
    /// Whether its phase was run with settings that differ from [`super::PhaseSummary::settings`], or with several versions of
    /// the engine; if so, it is not ranked.
    pub settings_differ: bool,
    /// Notes for the reader.
    pub notes: Vec<Note>,
}

/// An engine works only when it is called if its other threads use less than this share of its CPU time.
const BACKGROUND_LIMIT: f64 = 0.01;

impl Cell {
    /// Whether the engine is known to do nothing between calls: in each run that counts, its own threads and processes beside the
    /// calling threads used next to no CPU time. What a server does is not known.
    pub(super) fn works_only_when_called(&self) -> bool {
        let is_idle = |run: &RunFigures| {
            let (calling, background) = (run.cost.calling_cpu_ns?, run.cost.background_cpu_ns?);
            Some(background < BACKGROUND_LIMIT * (calling + background))
        };
        let mut counted = self.runs.iter().filter(|run| run.state.counts()).peekable();
        self.class.kind.is_embedded()
            && counted.peek().is_some()
            && counted.all(|run| is_idle(run).unwrap_or(false))
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_as_planned(length: &f64) -> bool {
    *length == 1.0
}

/// A rate as a multiple of another rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The estimate.
    pub value: f64,
    /// Its interval, whose level applies to all pairs of all tables together; none if it is unknown.
    pub interval: Option<Interval>,
    /// The p of the difference that orders are by, two-sided and not corrected for other comparisons; none if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// The lowest and the highest figure of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// The lowest figure.
    pub low: u64,
    /// The highest figure.
    pub high: u64,
}

/// Quantiles of service times: of one run, or their medians over runs. A quantile is none if any of the runs has fewer than
/// ten times beyond it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Number of times, in all runs together.
    pub count: u64,
    /// Mean of all times, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Median, nanoseconds.
    pub p50_ns: Option<u64>,
    /// Its range over runs; none for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_range_ns: Option<Range>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Its range over runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_range_ns: Option<Range>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// Its range over runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_range_ns: Option<Range>,
    /// Maximum of all runs.
    pub max_ns: Option<u64>,
}

impl Latency {
    /// The latency of one run.
    pub fn of(histogram: &Histogram) -> Latency {
        Latency {
            count: histogram.count(),
            mean_ns: histogram.mean_ns(),
            p50_ns: histogram.quantile_if_enough(1, 2),
            p99_ns: histogram.quantile_if_enough(99, 100),
            p999_ns: histogram.quantile_if_enough(999, 1000),
            max_ns: histogram.max_ns(),
            ..Latency::default()
        }
    }

    /// The latency of several runs. Quantiles are medians over runs, so that one bad run of five does not dominate a
    /// percentile.
    pub fn over(runs: &[Histogram]) -> Latency {
        let mut all = Histogram::empty();
        runs.iter().for_each(|run| all.merge(run));
        let over = |numerator: u64, denominator: u64| {
            let found = quantile_over(runs, numerator, denominator);
            (found.map(|(ns, _)| ns), found.map(|(_, range)| range).filter(|_| runs.len() > 1))
        };
        let (p50_ns, p50_range_ns) = over(1, 2);
        let (p99_ns, p99_range_ns) = over(99, 100);
        let (p999_ns, p999_range_ns) = over(999, 1000);
        Latency {
            count: all.count(),
            mean_ns: all.mean_ns(),
            p50_ns,
            p50_range_ns,
            p99_ns,
            p99_range_ns,
            p999_ns,
            p999_range_ns,
            max_ns: all.max_ns(),
        }
    }
}

/// The median over runs of each run's quantile, and their range; none if a run has too few times for it.
pub fn quantile_over(runs: &[Histogram], numerator: u64, denominator: u64) -> Option<(u64, Range)> {
    let of = |run: &Histogram| run.quantile_if_enough(numerator, denominator);
    let known: Vec<u64> = runs.iter().map(of).collect::<Option<_>>()?;
    let middle = median(&known.iter().map(|ns| *ns as f64).collect::<Vec<f64>>())?;
    Some((middle.round() as u64, Range { low: *known.iter().min()?, high: *known.iter().max()? }))
}

/// Times of requests that arrived at a rate: of one run, or over runs as in [`Latency`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrived {
    /// From the arrival until the request was sent; empty if the times are not those of the engine.
    pub wait: Latency,
    /// From the arrival until it was acknowledged.
    pub response: Latency,
    /// Requests whose moment was in the phase, those that were sent and dropped, and those that waited at its end.
    pub due: u64,
    /// Sent.
    pub sent: u64,
    /// Dropped because they were late.
    pub dropped: u64,
    /// Waiting at the end.
    pub waiting: u64,
    /// How late requests were sent although a thread was free, p99.9, nanoseconds.
    pub late_p999_ns: Option<u64>,
    /// Whether that is more than a sender in time has.
    pub is_late: bool,
    /// Why wait and response times are not those of the engine at this rate; none: they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
}

impl Arrived {
    /// Those of these runs; none: they have no rate.
    fn of(counted: &[&PhaseRecord]) -> Option<Arrived> {
        let all: Vec<&Arrivals> = counted.iter().filter_map(|phase| phase.arrivals.as_ref()).collect();
        let whole = Arrivals::of_all(all.iter().map(|own| Some(*own)))?;
        let unfit =
            |phase: &&PhaseRecord| phase.arrivals.as_ref()?.unfit(&phase.times(|kind| &kind.response_ns));
        let unfit = counted.iter().find_map(unfit).map(|unfit| unfit.to_string());
        // The sender may be in time up to p99 and late beyond it.
        let is_late = |phase: &&PhaseRecord| {
            let response = phase.times(|kind| &kind.response_ns);
            phase.arrivals.as_ref().is_some_and(|own| own.late_at(&response, 999, 1000).is_some())
        };
        let has_tail = !counted.iter().any(is_late);
        let times = |of: fn(&KindRecord) -> &Option<Histogram>| {
            let runs: Vec<Histogram> = counted.iter().map(|phase| phase.times(of)).collect();
            match Latency::over(&runs) {
                _ if unfit.is_some() => Latency::default(),
                times if has_tail => times,
                times => Latency { p999_ns: None, p999_range_ns: None, ..times },
            }
        };
        Some(Arrived {
            wait: times(|kind| &kind.wait_ns),
            response: times(|kind| &kind.response_ns),
            due: whole.due,
            sent: whole.sent,
            dropped: whole.dropped,
            waiting: whole.waiting,
            late_p999_ns: whole.late_ns.quantile_if_enough(999, 1000),
            is_late: whole.lateness().is_some(),
            unfit,
        })
    }
}

/// One kind of op of a cell, over all runs that count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindSummary {
    /// `get`, `put` ...
    pub kind: Word<OpKind>,
    /// Ops in all runs together.
    pub ops: u64,
    /// Ops among these that correctly found nothing.
    pub misses: u64,
    /// Misses of keys that a cache had evicted.
    #[serde(skip_serializing_if = "crate::results::is_zero")]
    pub evicted: u64,
    /// Rows returned by scans.
    pub rows: u64,
    /// Retries inside the driver.
    pub retries: u64,
    /// Service times.
    pub latency: Latency,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum RunState {
    /// Its figures count.
    Counted,
    /// Its figures count, because the phase was complete; the trial failed elsewhere, usually later.
    FailedLater {
        /// The cause of the failure.
        cause: String,
    },
    /// The trial failed in this phase or earlier, or had wrong answers in any phase.
    Failed {
        /// The cause of the failure.
        cause: String,
    },
    /// The phase was not run, or was cut short.
    NotRun {
        /// The reason.
        reason: String,
    },
    /// The trial is planned and has no record.
    Pending,
}

fn speed(rate: Option<f64>, arrived: Option<&Arrived>) -> Option<f64> {
    match arrived {
        Some(arrived) => arrived.response.p99_ns.map(|ns| 1e9 / ns.max(1) as f64),
        None => rate,
    }
}

impl Cell {
    /// As [`RunFigures::speed`].
    pub fn speed(&self) -> Option<f64> {
        speed(self.ops_per_second, self.arrived.as_ref())
    }

    /// Whether most of its runs that count are marked as disturbed.
    pub fn is_disturbed(&self) -> bool {
        let counted = self.runs.iter().filter(|run| run.state.counts());
        counted.clone().filter(|run| !run.disturbed.is_empty()).count() * 2 > counted.count()
    }
}

impl RunFigures {
    /// What ranks compare, the higher the better: ops per second, or of requests that arrive at a rate the inverse of their p99.
    pub fn speed(&self) -> Option<f64> {
        speed(self.ops_per_second, self.arrived.as_ref())
    }

    /// Why its durability level is contradicted; none if it is not.
    pub fn contradiction(&self) -> Option<&str> {
        self.observed.as_ref()?.contradiction()
    }
}

impl RunState {
    /// Whether its figures are part of the cell's figures.
    pub fn counts(&self) -> bool {
        matches!(self, RunState::Counted | RunState::FailedLater { .. })
    }
}

/// One run of a cell in one phase. Figures are none if the run does not count or the figure is unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFigures {
    /// The trial's id.
    pub trial: String,
    /// The repetition, from 1.
    pub repetition: u32,
    /// The length of the phase as a multiple of that in the first runs.
    #[serde(skip_serializing_if = "is_as_planned")]
    pub length: f64,
    /// The number of the machine that measured it, from 1; none: one machine measured the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<u32>,
    /// Its state.
    #[serde(flatten)]
    pub state: RunState,
    /// The effective level.
    #[serde(rename = "durability_in_force")]
    pub durability_effective: Option<Durability>,
    /// Ops.
    pub ops: Option<u64>,
    /// Time, nanoseconds.
    pub elapsed_ns: Option<u64>,
    /// Ops per second.
    pub ops_per_second: Option<f64>,
    /// Service times of all kinds.
    pub latency: Latency,
    /// Wait and response times; none: the phase has no rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Arrived>,
    /// The engine's throughput as if the harness took no time, ops per second.
    pub engine_ops_per_second: Option<f64>,
    /// CPU seconds of the engine, user and system, per million ops.
    pub cpu_seconds_per_million_ops: Option<f64>,
    /// Resident memory, the maximum seen in the phase, bytes.
    pub rss_bytes: Option<u64>,
    /// Allocated bytes of the database after the phase.
    pub disk_allocated_bytes: Option<u64>,
    /// Bytes written to storage per byte passed to writes.
    pub write_amplification: Option<f64>,
    /// Allocated bytes per byte of keys and values in the database.
    pub space_amplification: Option<f64>,
    /// What an op costs.
    pub cost: Cost,
    /// The share of thread time outside the driver's calls, 0 to 1.
    pub harness_share: Option<f64>,
    /// Its parts; none: an older version measured them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<HarnessShares>,
    /// Ops per call of the driver.
    pub batch_mean: Option<f64>,
    /// What an accounting pass says about its durability level; if that is contradicted, the cell is not ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// How old its reads were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// Why its driver's times do not count; if set, the cell is not ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unaccounted: Option<String>,
    /// How far the pace of the machine around the phase was from the usual one; none: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace_change: Option<PaceChange>,
    /// How much slower waits for a CPU made it than most runs of the cell: 0.3 is 30 % slower; none: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_change: Option<f64>,
    /// Of these two what is over its limit, a few words each: `8 MiB 30 % slower`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<String>,
}

/// The state of a phase in a trial, and its record, with rounds merged, if its figures count.
pub(super) fn state_of<'a>(
    record: Option<&'a Record>,
    phase: &str,
) -> (RunState, Option<Cow<'a, PhaseRecord>>) {
    let Some(record) = record else { return (RunState::Pending, None) };
    let unfit = too_slow(&record.outcome);
    let cause = cause(&record.outcome).filter(|_| unfit.is_none());
    // A trial with wrong answers never counts: a fault that was found in one phase may also have affected others.
    if let (Outcome::WrongAnswers { .. }, Some(cause)) = (&record.outcome, &cause) {
        return (RunState::Failed { cause: cause.clone() }, None);
    }
    let Some(found) = record.whole_phase(phase) else {
        return (
            without_figures(cause, unfit.as_deref().unwrap_or("its record does not have the phase")),
            None,
        );
    };
    if found.check.faults > 0 {
        let first = found.check.first_faults.first().map_or("no details", String::as_str);
        return (RunState::Failed { cause: format!("wrong answers: {first}") }, None);
    }
    // A missing capability is not a failure.
    let is_refusal = match &record.outcome {
        Outcome::Failed { cause, .. } => *cause == Cause::Refused,
        outcome => *outcome == Outcome::Ok,
    };
    if let (Some(reason), true, 0) = (&found.not_run, is_refusal, found.ops) {
        return (RunState::NotRun { reason: reason.clone() }, None);
    }
    if let (Some(reason), EndedBy::Failure) = (&unfit, found.ended_by) {
        return (RunState::NotRun { reason: reason.clone() }, None);
    }
    if found.ended_by == EndedBy::Failure {
        let cause = cause
            .or_else(|| found.not_run.clone())
            .unwrap_or_else(|| "a failure ended the phase".to_string());
        return (RunState::Failed { cause }, None);
    }
    if let Some(reason) = &found.not_run {
        return (RunState::NotRun { reason: reason.clone() }, None);
    }
    if found.ops == 0 || found.elapsed_ns == 0 {
        return (without_figures(cause, "no op was run"), None);
    }
    (cause.map_or(RunState::Counted, |cause| RunState::FailedLater { cause }), Some(found))
}

/// Why an engine was too slow for the workload; none: it was not.
fn too_slow(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { cause: Cause::TooSlow, text } => Some(format!("too slow: {text}")),
        Outcome::Failed { cause: Cause::Skipped, text } => Some(format!("skipped: {text}")),
        _ => None,
    }
}

fn without_figures(cause: Option<String>, reason: &str) -> RunState {
    match cause {
        Some(cause) => RunState::Failed { cause },
        None => RunState::NotRun { reason: reason.to_string() },
    }
}

/// The figures of one run; `live_bytes_per_key` is the size of a key and its value, if it is fixed.
pub(super) fn figures(
    trial: &str,
    repetition: u32,
    state: RunState,
    phase: Option<&PhaseRecord>,
    live_bytes_per_key: Option<f64>,
) -> RunFigures {
    let disk = phase.and_then(|phase| phase.disk_end).map(|disk| disk.allocated_bytes);
    // At a given rate threads wait most of the time, for neither the engine nor the harness.
    let closed = phase.filter(|phase| phase.arrivals.is_none());
    RunFigures {
        trial: trial.to_string(),
        repetition,
        length: 1.0,
        machine: None,
        state,
        durability_effective: phase.and_then(|phase| phase.durability_effective),
        ops: phase.map(|phase| phase.ops),
        elapsed_ns: phase.map(|phase| phase.elapsed_ns),
        ops_per_second: phase.and_then(PhaseRecord::ops_per_second),
        engine_ops_per_second: closed.and_then(PhaseRecord::engine_ops_per_second),
        arrived: phase.and_then(|phase| Arrived::of(&[phase])),
        latency: phase.map(|phase| Latency::of(&merged(&[phase], None))).unwrap_or_default(),
        cpu_seconds_per_million_ops: phase.and_then(cpu_seconds_per_million_ops),
        rss_bytes: phase.and_then(rss_bytes),
        disk_allocated_bytes: disk,
        write_amplification: phase.and_then(write_amplification),
        space_amplification: phase.and_then(|phase| space_amplification(phase, disk?, live_bytes_per_key?)),
        cost: phase.map(PhaseRecord::cost).unwrap_or_default(),
        harness_share: closed.map(|phase| phase.harness_share),
        harness: closed.and_then(PhaseRecord::harness_shares),
        batch_mean: phase.map(|phase| phase.batch_mean),
        observed: phase.and_then(|phase| phase.observed.clone()),
        staleness: phase.and_then(|phase| phase.staleness.clone()),
        unaccounted: phase.and_then(|phase| phase.call_times.as_ref()?.beyond.clone()),
        pace_change: None,
        wait_change: None,
        disturbed: Vec::new(),
    }
}

/// The merged histograms of all phases, for one kind or all kinds.
pub(super) fn merged(phases: &[&PhaseRecord], kind: Option<&Word<OpKind>>) -> Histogram {
    let mut all = Histogram::empty();
    for found in phases.iter().flat_map(|phase| &phase.kinds) {
        if kind.is_none_or(|kind| found.kind == *kind) {
            all.merge(&found.service_ns);
        }
    }
    all
}

/// The service times of these runs, for one kind of op or all kinds. Runs without an op of the kind are ignored.
fn latency(counted: &[&PhaseRecord], kind: Option<&Word<OpKind>>) -> Latency {
    let runs: Vec<Histogram> = counted.iter().map(|phase| merged(&[phase], kind)).collect();
    Latency::over(&runs.into_iter().filter(|run| run.count() > 0).collect::<Vec<Histogram>>())
}

fn cpu_seconds_per_million_ops(phase: &PhaseRecord) -> Option<f64> {
    let cpu_ns = phase.engine_cpu_ns()?;
    // Nanoseconds per op are thousandths of seconds per million ops.
    (phase.ops > 0).then(|| cpu_ns as f64 / phase.ops as f64 / 1e3)
}

/// The maximum seen at the end of the phase and of each of its seconds. The peak of the process is not used, because it may
/// come from an earlier phase.
fn rss_bytes(phase: &PhaseRecord) -> Option<u64> {
    phase.series.iter().filter_map(|row| row.rss_bytes).chain(phase.usage.rss_bytes).max()
}

fn write_amplification(phase: &PhaseRecord) -> Option<f64> {
    let written = phase.written_storage_bytes()?;
    (phase.logical_bytes_written > 0).then(|| written as f64 / phase.logical_bytes_written as f64)
}

fn space_amplification(phase: &PhaseRecord, disk_bytes: u64, live_bytes_per_key: f64) -> Option<f64> {
    let live_bytes = phase.keys_after? as f64 * live_bytes_per_key;
    (live_bytes > 0.0).then(|| disk_bytes as f64 / live_bytes)
}

/// The name of a cell.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub engine: &'a str,
    pub options: &'a [(String, String)],
    pub labels: &'a Labels,
    pub nodes_option: Option<&'a str>,
    pub durability_requested: Durability,
}

/// What an engine is.
#[derive(Clone, Default)]
pub(super) struct ClassInWords {
    pub class: Class,
    /// In words; none: it is embedded.
    pub words: Option<String>,
}

/// The cell of these runs; `counted` are the phase records of those that count.
pub(super) fn cell(
    name: Name,
    runs: Vec<RunFigures>,
    counted: &[&PhaseRecord],
    settings_differ: bool,
    ClassInWords { class, words: class_words }: ClassInWords,
) -> Cell {
    let rates: Vec<f64> = runs.iter().filter_map(|run| run.ops_per_second).collect();
    let middle = |figure: fn(&RunFigures) -> Option<f64>| {
        median(&runs.iter().filter_map(figure).collect::<Vec<f64>>())
    };
    let disk_bytes = middle(|run| run.disk_allocated_bytes.map(|bytes| bytes as f64));
    let mut emulated: Vec<String> = counted.iter().flat_map(|phase| phase.emulated.clone()).collect();
    emulated.sort();
    emulated.dedup();
    let retries = counted.iter().flat_map(|phase| &phase.kinds).map(|kind| kind.retries);
    let mut cell = Cell {
        engine: name.engine.to_string(),
        options: name.options.to_vec(),
        label: name.labels.of(name.engine, name.options),
        nodes_option: name.nodes_option.map(String::from),
        rank: None,
        leader: false,
        durability_requested: name.durability_requested,
        durability_effective: counted.first().and_then(|phase| phase.durability_effective),
        counted_runs: counted.len() as u32,
        ops_per_second: median(&rates),
        ops_per_second_interval: interval_of_median(&rates),
        engine_ops_per_second: middle(|run| run.engine_ops_per_second),
        ratio: None,
        latency: latency(counted, None),
        arrived: Arrived::of(counted),
        kinds: kinds(counted),
        cpu_seconds_per_million_ops: middle(|run| run.cpu_seconds_per_million_ops),
        rss_bytes: runs.iter().filter_map(|run| run.rss_bytes).max(),
        disk_allocated_bytes: disk_bytes.map(|bytes| bytes.round() as u64),
        write_amplification: middle(|run| run.write_amplification),
        space_amplification: middle(|run| run.space_amplification),
        syncs_per_commit: middle(|run| run.observed.as_ref()?.syncs_per_commit),
        // One pass before the run is that of all runs.
        calls_per_commit: counted
            .iter()
            .find_map(|run| Some(run.observed.as_ref()?.calls_per_commit.clone()))
            .unwrap_or_default(),
        cost: Cost::over(&runs.iter().map(|run| &run.cost).collect::<Vec<_>>(), median),
        check_level: counted.iter().map(|phase| phase.check.level).min_by_key(|level| *level as u8),
        evicted_share: class.kind.is_cache().then(|| evicted_share(counted)).flatten(),
        class,
        class_words,
        staleness: Staleness::of_all(counted.iter().map(|phase| phase.staleness.as_ref())),
        servers: None,
        safety: Safety::NothingToProve,
        price: None,
        emulated,
        retries: retries.fold(0, u64::saturating_add),
        harness_share: middle(|run| run.harness_share),
        harness: harness(middle),
        batch_mean: middle(|run| run.batch_mean),
        settings_differ,
        runs,
        left_out: 0,
        beaten: false,
        notes: Vec::new(),
    };
    cell.notes = notes(&cell);
    cell
}

/// The medians of the parts of the harness share.
fn harness(middle: impl Fn(fn(&RunFigures) -> Option<f64>) -> Option<f64>) -> Option<HarnessShares> {
    Some(HarnessShares {
        generation: middle(|run| Some(run.harness?.generation))?,
        checks: middle(|run| Some(run.harness?.checks))?,
        boundary: middle(|run| Some(run.harness?.boundary))?,
    })
}

fn evicted_share(counted: &[&PhaseRecord]) -> Option<f64> {
    let kinds = counted.iter().flat_map(|phase| &phase.kinds);
    let kinds = kinds.filter(|kind| kind.kind.known().is_some_and(OpKind::gets));
    let (mut written, mut evicted) = (0_u64, 0_u64);
    for kind in kinds {
        // Expected misses are reads of keys that were never written.
        written += kind.ops.saturating_sub(kind.misses.saturating_sub(kind.evicted));
        evicted += kind.evicted;
    }
    (written > 0).then(|| evicted as f64 / written as f64)
}

fn kinds(counted: &[&PhaseRecord]) -> Vec<KindSummary> {
    let mut kinds: Vec<KindSummary> = Vec::new();
    for found in counted.iter().flat_map(|phase| &phase.kinds) {
        let known = kinds.iter().position(|kind| kind.kind == found.kind);
        let place = known.unwrap_or_else(|| {
            let latency = latency(counted, Some(&found.kind));
            kinds.push(KindSummary {
                kind: found.kind.clone(),
                ops: 0,
                misses: 0,
                evicted: 0,
                rows: 0,
                retries: 0,
                latency,
            });
            kinds.len() - 1
        });
        let kind = &mut kinds[place];
        kind.ops = kind.ops.saturating_add(found.ops);
        kind.misses = kind.misses.saturating_add(found.misses);
        kind.evicted = kind.evicted.saturating_add(found.evicted);
        kind.rows = kind.rows.saturating_add(found.rows);
        kind.retries = kind.retries.saturating_add(found.retries);
    }
    kinds
}
