//! Results: a record per trial, a folder of records per run, and the statistics over them.

mod arrivals;
pub mod audit;
pub mod blocks;
pub mod campaign;
pub mod certificate;
mod choice;
mod class;
pub mod comparison;
mod cost;
pub mod crash;
pub mod figures;
pub mod fixture;
mod identity;
mod journal;
pub mod label;
mod load;
pub mod load_generators;
mod machines;
pub mod means;
mod member_faults;
pub mod merge;
mod observation;
mod parts;
pub mod price;
pub mod race;
#[cfg(test)]
mod random;
mod reserve;
mod rounds;
mod safety;
mod sane;
pub mod scaling;
#[cfg(test)]
mod schema;
mod staleness;
mod state;
pub mod statistics;
pub mod steady;
pub mod store;
pub mod summary;
mod times;
mod variance;
mod word;

pub use arrivals::{Arrivals, Gaps, LATE_NS, Unfit};
pub use audit::Observed;
pub use campaign::{Campaign, MeasuredOn, Part, Shard, TrialEstimate};
pub use choice::{Choice, RuledOut};
pub use class::{Class, Kind, Place};
pub use cost::Cost;
pub use identity::{now_rfc3339, random_suffix, run_id, utc_rfc3339};
pub use load::{parse_record, parse_run};
pub use machines::odd_machines;
pub use member_faults::{Disturbed, FaultRecord, OpErrors};
pub use observation::observation;
pub use parts::Parts;
pub use reserve::{Reserve, ReserveError};
pub use safety::Safety;
#[cfg(test)]
pub(crate) use sane::sane;
pub use sane::sane_record;
pub use staleness::Staleness;
pub use state::{Cause, EndedBy, Role, StepKind};
pub use times::{CallTimes, HarnessShares, HarnessTimes};
pub use word::Word;

pub use crate::workload::{Durability, FaultKind, OpKind};
use crate::workload::{Phase, Workload};
use kvdyno_measure::{
    CapRecord, CapUse, ClockFacts, DeviceUse, DiskUse, Histogram, Machine, Noise, PhaseNoise, Placement,
    SeriesRow, Stall, Usage, Warning,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of the record's schema; all later versions of kvdyno must load a released one.
pub const SCHEMA: u32 = 1;

/// The record of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The [`SCHEMA`] of the tool that wrote it.
    pub schema: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// Start of the trial, UTC, RFC 3339.
    pub started_at: String,
    /// The trial and its settings.
    pub trial: Trial,
    /// How it ended.
    pub outcome: Outcome,
    /// The engine; absent if it never opened.
    pub engine: Option<Arc<EngineFacts>>,
    /// The phases that were run, in order, including a phase that a failure cut short, which is marked.
    pub phases: Vec<PhaseRecord>,
    /// Open, close and other steps, in the order in which they happened.
    pub steps: Vec<Step>,
    /// Disk use after the last close; none if unknown.
    pub disk_after_close: Option<DiskUse>,
    /// Peak resident memory of the trial's process, bytes.
    pub rss_peak_bytes: Option<u64>,
    /// The harness's own memory before the engine was opened, bytes.
    pub rss_before_open_bytes: Option<u64>,
    /// The database of another program that it read a copy of; none: its rows are kvdyno's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignData>,
    /// The cap on the trial's memory; none: no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_cap: Option<CapRecord>,
    /// The CPUs that its threads could run on, in Linux's list format: `0-3,6`; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "cpus_in_force")]
    pub effective_cpus: Option<String>,
    /// The clock and its cost.
    pub clock: Option<ClockFacts>,
    /// Activity of the rest of the machine during the trial.
    pub noise: Option<Noise>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

/// A repetition of a cell, and its place in the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Unique in the run: `0007-redb-quick-2`.
    pub id: String,
    /// Position in the plan, from 0.
    pub order: u32,
    /// The repetition, from 1.
    pub repetition: u32,
    /// The requested engine; may be a variant such as `mutant:stale-read`.
    pub engine: String,
    /// Requested options, `name=value`.
    pub options: Vec<(String, String)>,
    /// The option among these with the number of nodes of the cluster that the engine starts; none: it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_option: Option<String>,
    /// The complete workload as it was run (after shrinking), with the seed of its repetition.
    pub workload: Arc<Workload>,
    /// The seed of its ops, if it differs from that of keys and values, which is so if databases are kept or reused. None:
    /// the workload's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The CPUs and the NUMA node that it is pinned to.
    #[serde(default, skip_serializing_if = "Placement::is_free")]
    pub placement: Placement,
    /// Whether it starts with a copy of a kept database, so that the fills at the start of the workload are skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// Whether keys, values and out buffers end at guard pages, which costs time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paranoid: bool,
    /// Whether its cycles and instructions are counted, which makes context switches slower.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_cycles: bool,
    /// Whether its system calls are counted by name, and its instructions only in user mode. Each call is stopped for this, so its
    /// times are not those of the engine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_calls: bool,
    /// Whether its engine stores nothing: it measures the harness, and is never ranked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_floor: bool,
    /// The number of load generators that run it against one database.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[serde(rename = "ranks")]
    pub load_generators: u32,
    /// The load generator whose part of the workload this is, from 0; none: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "rank")]
    pub load_generator: Option<u32>,
    /// The lengths of phases as multiples of those of the first trials; a phase that is not named has the same length.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lengths: BTreeMap<String, f64>,
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

impl Trial {
    /// Whether both are repetitions of the same engine with the same options and workload.
    pub fn is_cell_of(&self, other: &Trial) -> bool {
        (&self.engine, &self.options, &self.workload.name)
            == (&other.engine, &other.options, &other.workload.name)
    }

    /// The length of a phase as a multiple of its length in the first trials.
    pub fn length(&self, phase: &str) -> f64 {
        self.lengths.get(phase).copied().unwrap_or(1.0)
    }

    /// Whether it reads a copy of a database that another program made.
    pub fn is_foreign(&self) -> bool {
        self.options.iter().any(|(name, value)| (name.as_str(), value.as_str()) == FOREIGN)
    }
}

/// The option by which cells on the database of another program differ from all others, so that no table mixes or ranks them
/// together. Drivers do not receive it.
pub const FOREIGN: (&str, &str) = ("data", "foreign");

/// What was found in a database that another program made. Its values are not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignData {
    /// Rows; none: not counted, because the keys come from a file.
    pub rows: Option<u64>,
    /// Keys that ops draw: all, or a random sample.
    pub drawn: u64,
    /// Sizes of keys, bytes.
    pub key_bytes: SizeRange,
    /// Sizes of values, bytes.
    pub value_bytes: SizeRange,
}

/// The sizes of the rows that were read: the smallest and the largest of all, and the median of those that ops draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRange {
    /// The smallest, bytes.
    pub min: u64,
    /// The median, bytes.
    pub median: u64,
    /// The largest, bytes.
    pub max: u64,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Outcome {
    /// All phases ran and every check passed. Phases that the engine does not support are marked in their own records.
    Ok,
    /// Wrong answers: wrong values, wrong rows or unexpected misses.
    WrongAnswers {
        /// The first faults, with phase and key.
        faults: Vec<String>,
    },
    /// An error of the engine or of the machine.
    Failed {
        /// Why.
        cause: Cause,
        /// What happened, and where.
        text: String,
    },
    /// The process died.
    Crashed {
        /// `SIGSEGV`, `SIGABRT`, `exit 3` ...
        signal: String,
        /// The last lines of its stderr.
        stderr: Vec<String>,
        /// Limits that may be the reason, because they are unusually low; none: no such limit is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suspects: Option<String>,
    },
}

/// The engine with its effective settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// The driver's name.
    pub name: String,
    /// A description of one line.
    pub about: String,
    /// Version of its library.
    pub version: String,
    /// Language of the engine.
    pub language: String,
    /// `lsm`, `b+tree` ...
    pub family: String,
    /// `built in`, or the plug-in's file name.
    pub origin: String,
    /// Names of the effective capabilities.
    pub capabilities: Vec<String>,
    /// Effective cache size, bytes; none: the engine has no such setting.
    pub cache_bytes: Option<u64>,
    /// Effective compression; none: unknown.
    pub compression: Option<String>,
    /// Effective options.
    pub options: Vec<(String, String)>,
    /// What it is; none: a record of an older version, whose settings say it ([`Record::class`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Known defects of this version that the driver avoids, each a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided_defects: Vec<String>,
}

/// A step outside the phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it did.
    pub name: StepKind,
    /// The phase that it prepared; none: it followed the last phase.
    pub before_phase: Option<String>,
    /// Duration, nanoseconds.
    pub elapsed_ns: u64,
    /// The result if the step was not simply done: `unsupported`, `not permitted` ...
    pub note: Option<String>,
    /// For a reopen, or the open of a kept database: the number of keys (of elements for lists) in the database; none:
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
}

/// How far reads were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum CheckLevel {
    /// Not at all: the engine stores nothing.
    None,
    /// Only that keys are there: another program wrote the values.
    Presence,
    /// Each value by itself: it belongs to the key and to this trial, and is intact.
    Stateless,
    /// Also against the versions that were written.
    Full,
}

/// The checks of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// How far reads were checked.
    pub level: CheckLevel,
    /// Values compared, byte for byte.
    pub values: u64,
    /// Rows of scans compared.
    pub rows: u64,
    /// Number of faults.
    pub faults: u64,
    /// The first faults.
    pub first_faults: Vec<String>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// The settings it was run with.
    pub phase: Phase,
    /// The round it was run in, from 1; none: its workload has no rounds, or the phase is not part of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Why it did not run (the engine lacks a capability or a level), or why it was cut short; none: it is complete.
    pub not_run: Option<String>,
    /// The effective durability level; none if it did not run.
    #[serde(rename = "durability_in_force")]
    pub durability_effective: Option<Durability>,
    /// The requested durability level.
    #[serde(rename = "durability_asked")]
    pub durability_requested: Durability,
    /// What the core emulated: `merge = get + put`, `indexes emulated, atomic`.
    pub emulated: Vec<String>,
    /// From the first thread's start to the last thread's end, without warm-up, nanoseconds.
    pub elapsed_ns: u64,
    /// Ops in that time (a group of K joined puts counts K; a transaction, a read-modify-write or a row with its
    /// index rows counts 1).
    pub ops: u64,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Keys in the database after the phase, if known.
    pub keys_after: Option<u64>,
    /// Per kind of op.
    pub kinds: Vec<KindRecord>,
    /// Per thread.
    pub threads: Vec<ThreadRecord>,
    /// Per second; the last row may be shorter.
    pub series: Vec<SeriesRow>,
    /// Its stalls, the longest first: at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// Resources that the process used during the phase: differences, except `rss_bytes` and peaks.
    pub usage: Usage,
    /// The part of it that the harness's own thread used, which samples the process each second: differences, without memory
    /// and run delay, and with all CPU time as that in user mode; none: an older version measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watcher: Option<Usage>,
    /// The I/O of the block device below the database, with what was dirty at the end of the phase; none: other files are on
    /// the same device, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUse>,
    /// Disturbances of the phase, without its warm-up; none: an older version measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<PhaseNoise>,
    /// The kinds of memory in use at the end of the phase, with the database open; none: the trial had no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_use: Option<CapUse>,
    /// Key and value bytes passed to writes.
    pub logical_bytes_written: u64,
    /// Key and value bytes returned by reads.
    pub logical_bytes_read: u64,
    /// The largest disk use seen in the phase.
    pub disk_peak: Option<DiskUse>,
    /// Disk use at the end of the phase.
    pub disk_end: Option<DiskUse>,
    /// Disk use after settling, if a settle step follows.
    pub disk_settled: Option<DiskUse>,
    /// Internal statistics that the engine reports at the end of the phase, `name=value`; counters count from its open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engine_stats: Vec<(String, String)>,
    /// Mean number of ops per call of the driver.
    pub batch_mean: f64,
    /// How far the driver's times account for its calls; none: the phase did not run, or an older version measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_times: Option<CallTimes>,
    /// The share of the phase's thread time outside the driver's calls, 0 to 1.
    pub harness_share: f64,
    /// The parts of that time; none: the phase did not run, or an older version measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<HarnessTimes>,
    /// What was checked.
    pub check: Check,
    /// What an accounting pass before the run says about its durability level; none: it writes nothing, or no pass was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The load generators that ran it together; empty: there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "ranks")]
    pub load_generators: Vec<load_generators::LoadGeneratorRecord>,
    /// Memory of the buffers of its threads for keys and values, bytes. It is the harness's: part of the peaks of the process,
    /// and of no other figure of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers_bytes: Option<u64>,
    /// What happened while members of the store failed; none: the phase has no faults, or did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
    /// How old its reads were; none: the store returns the newest values, or which reads were stale is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// The requests that arrived at its rate; none: it has no rate, or did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Its system calls by name, of the threads that run ops and of those of the engine; none: they were not counted, or it did not
    /// run. With them are the few by which threads start and end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<BTreeMap<String, u64>>,
}

/// Whether to skip a count that most records do not have.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One kind of op in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindRecord {
    /// The name of the op kind, such as `get` or `multi-get`.
    pub kind: Word<OpKind>,
    /// Ops counted.
    pub ops: u64,
    /// Gets and deletes among these that correctly found nothing.
    pub misses: u64,
    /// Misses of keys that had been written and that a cache had evicted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evicted: u64,
    /// Rows returned by scans.
    pub rows: u64,
    /// Retries inside the driver.
    pub retries: u64,
    /// Service time of each timed unit (a joined group is one unit), nanoseconds.
    pub service_ns: Histogram,
    /// From the arrival of each unit until it was sent, nanoseconds; none: the phase has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<Histogram>,
    /// From the arrival of each unit until it was acknowledged, nanoseconds; none: the phase has no rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Histogram>,
}

/// One thread in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRecord {
    /// From 0.
    pub thread: u32,
    /// `mix`, `reader` or `writer`.
    pub role: Word<Role>,
    /// Ops.
    pub ops: u64,
    /// From its start to its end, nanoseconds.
    pub elapsed_ns: u64,
    /// Time inside the driver's calls, nanoseconds.
    pub inside_ns: u64,
    /// Time that it ran on a CPU, without warm-up, nanoseconds; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time that it was ready to run and had no CPU, without warm-up, nanoseconds; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// Time that it slept until the next request was due, without the CPU time that this took, nanoseconds; 0 if requests do not arrive
    /// at a rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slept_ns: u64,
    /// Median service time, nanoseconds; none: no ops.
    pub p50_ns: Option<u64>,
    /// 99th percentile; none: sample too small.
    pub p99_ns: Option<u64>,
    /// Slowest service time.
    pub max_ns: Option<u64>,
}

/// The plan of a run: what does not depend on the machine and the moment. Its fields are part of `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The names of its workloads and suites, joined by `-`; empty: an older version planned it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The command that repeats the run, without paths of the machine.
    pub command: Vec<String>,
    /// The trials, in the order of the plan.
    pub trials: Vec<Trial>,
    /// The engine that runs in each block so that machines can be compared; none: only engines that store nothing do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The looks that leave engines out of what they can no longer win; none: all trials are run as planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<race::Race>,
    /// The estimated needs of the trials; none: an older version planned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
}

impl Plan {
    /// Whether it has trials of several load generators, which one process cannot resume.
    pub fn has_several_load_generators(&self) -> bool {
        self.trials.iter().any(|trial| trial.load_generators > 1)
    }
}

/// The estimated needs of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Maximum disk space of a trial, bytes.
    pub disk_bytes: u64,
    /// Minimum memory of a trial with any engine, bytes: its threads hold keys and values.
    pub memory_bytes: u64,
    /// Time in the phases of all trials, seconds; a phase that ends by a count is estimated at the rate of a slow engine.
    pub seconds: f64,
}

/// A run: its plan and its machine. `run.json` in the results folder, written before the first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// `2026-11-20T09-15-29-quick-200k-a1b2`: the folder's name.
    pub id: String,
    /// UTC, RFC 3339.
    pub started_at: String,
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
    /// Engines that were known but not available, and why.
    pub absent: Vec<(String, String)>,
    /// What `kvdyno prove --only rules` had proven about the engines when the run was planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// Engines of plug-ins about which `kvdyno prove --only rules` had proven nothing when the run was planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// The clock.
    pub clock: ClockFacts,
    /// Warnings of the machine.
    pub warnings: Vec<Warning>,
    /// The part of a campaign that it is; none: it is no part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<Part>,
    /// The choice of an engine that it was measured for; none: it was measured for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
}

/// What was proven about an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The engine.
    pub engine: String,
    /// The version of its library that it was proven for; none: the engine does not report it.
    pub version: Option<String>,
    /// The durability levels that it supports.
    pub levels: Vec<String>,
    /// Its capabilities: those with a check that passed, and those that need no proof.
    pub capabilities: Vec<String>,
}

impl Trial {
    /// The seed of its ops.
    pub fn ops_seed(&self) -> u64 {
        self.seed.unwrap_or(self.workload.seed)
    }
}

impl Record {
    /// The record of a trial that left no record itself.
    pub fn failed(trial: Trial, started_at: String, outcome: Outcome) -> Record {
        Record {
            schema: SCHEMA,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            started_at,
            trial,
            outcome,
            engine: None,
            phases: Vec::new(),
            steps: Vec::new(),
            disk_after_close: None,
            rss_peak_bytes: None,
            rss_before_open_bytes: None,
            foreign: None,
            memory_cap: None,
            effective_cpus: None,
            clock: None,
            noise: None,
            warnings: Vec::new(),
        }
    }
}

impl PhaseRecord {
    /// The record of a phase that did not run, and why.
    pub fn not_run(phase: Phase, durability_requested: Durability, reason: String) -> PhaseRecord {
        PhaseRecord {
            phase,
            round: None,
            not_run: Some(reason),
            durability_effective: None,
            durability_requested,
            emulated: Vec::new(),
            elapsed_ns: 0,
            ops: 0,
            ended_by: EndedBy::Failure,
            keys_after: None,
            kinds: Vec::new(),
            threads: Vec::new(),
            series: Vec::new(),
            stalls: Vec::new(),
            usage: Usage::default(),
            watcher: None,
            device: None,
            noise: None,
            cap_use: None,
            logical_bytes_written: 0,
            logical_bytes_read: 0,
            disk_peak: None,
            disk_end: None,
            disk_settled: None,
            engine_stats: Vec::new(),
            batch_mean: 0.0,
            call_times: None,
            harness_share: 0.0,
            harness: None,
            check: Check { level: CheckLevel::None, values: 0, rows: 0, faults: 0, first_faults: Vec::new() },
            observed: None,
            load_generators: Vec::new(),
            buffers_bytes: None,
            disturbed: None,
            staleness: None,
            arrivals: None,
            system_calls: None,
        }
    }
}
