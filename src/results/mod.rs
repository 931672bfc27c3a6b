//! What is kept: a record per trial, a folder of records per run, and the statistics over them.

pub mod blocks;
pub mod comparison;
#[cfg(test)]
pub(crate) mod fixture;
mod identity;
mod journal;
mod load;
mod parts;
mod reserve;
mod rounds;
mod sane;
mod schema;
mod state;
pub mod statistics;
pub mod store;
pub mod summary;
mod times;
mod variance;

pub use identity::{now_rfc3339, random_suffix, rfc3339, run_id};
pub use load::{LoadError, parse_record, parse_run};
pub use parts::Parts;
pub use reserve::Reserve;
pub use sane::{sane, sane_record};
pub use schema::schema;
pub use state::{Cause, EndedBy, StepKind};
pub use times::CallTimes;

use crate::measure::{
    CapRecord, CapUse, ClockFacts, DiskUse, Histogram, Machine, Noise, PhaseNoise, Placement, SeriesRow,
    Usage, Warning,
};
use crate::workload::{Durability, Phase, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of the record's schema; a released one must load for ever.
pub const SCHEMA: u32 = 1;

/// What a trial leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA`] of the tool that wrote it.
    pub schema: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// When the trial began, UTC, RFC 3339.
    pub started_at: String,
    /// Which trial.
    pub trial: Trial,
    /// How it ended.
    pub outcome: Outcome,
    /// The engine; absent if it never opened.
    pub engine: Option<Arc<EngineFacts>>,
    /// The phases that were run, in order. A phase that was cut short by a failure is there, marked.
    pub phases: Vec<PhaseRecord>,
    /// Open, close and so on, in order of happening.
    pub steps: Vec<Step>,
    /// Disk use after the last close; none if unknown.
    pub disk_after_close: Option<DiskUse>,
    /// Peak resident memory of the trial's process, bytes.
    pub rss_peak_bytes: Option<u64>,
    /// The harness's own memory before the engine was opened, bytes.
    pub rss_before_open_bytes: Option<u64>,
    /// The cap on the trial's memory; none: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_cap: Option<CapRecord>,
    /// The CPUs that its threads could run on, as Linux writes lists: `0-3,6`; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_in_force: Option<String>,
    /// The clock and its cost.
    pub clock: Option<ClockFacts>,
    /// What the rest of the machine did meanwhile.
    pub noise: Option<Noise>,
    /// What a reader has to know.
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
    /// The engine asked for; may be a variant such as `mutant:stale-read`.
    pub engine: String,
    /// Options asked for, `name=value`.
    pub options: Vec<(String, String)>,
    /// The workload, complete, as it was run (after shrinking), with the seed of its repetition.
    pub workload: Arc<Workload>,
    /// The seed of its ops, where they have another one than keys and values: databases are kept, or started on. None:
    /// that of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Where it is held.
    #[serde(default, skip_serializing_if = "Placement::is_free")]
    pub placement: Placement,
    /// Whether it starts on a copy of a kept database, so that the fills at the workload's start are not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// Whether keys, values and out buffers end at guard pages, which costs time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paranoid: bool,
    /// Whether its engine stores nothing: it measures the harness, and is never ranked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_floor: bool,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Outcome {
    /// All phases ran and every check passed. Phases that the engine cannot do are marked in their own records.
    Ok,
    /// Wrong answers: a value, a row, a miss.
    WrongAnswers {
        /// The first faults, with phase and key.
        faults: Vec<String>,
    },
    /// An error of the engine or of the machine.
    Failed {
        /// Why.
        cause: Cause,
        /// What happened, where.
        text: String,
    },
    /// The process died.
    Crashed {
        /// `SIGSEGV`, `SIGABRT`, `exit 3` ...
        signal: String,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
}

/// The engine as it was in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// The driver's name.
    pub name: String,
    /// One line.
    pub about: String,
    /// Version of its library.
    pub version: String,
    /// Language of the engine.
    pub language: String,
    /// `lsm`, `b+tree` ...
    pub family: String,
    /// Built in, or the plug-in's file name.
    pub origin: String,
    /// Names of the capabilities in force.
    pub capabilities: Vec<String>,
    /// Cache in force, bytes; none: no such knob.
    pub cache_bytes: Option<u64>,
    /// Compression in force; none: unknown.
    pub compression: Option<String>,
    /// Options in force.
    pub options: Vec<(String, String)>,
}

/// A step outside the phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it did.
    pub name: StepKind,
    /// The phase that it prepared; none: the end.
    pub before_phase: Option<String>,
    /// How long, nanoseconds.
    pub elapsed_ns: u64,
    /// What came of it if not simply done: `unsupported`, `not permitted` ...
    pub note: Option<String>,
    /// Of a reopen, or the open of a kept database: the keys (of lists: the elements) that the database then held; none
    /// where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
}

/// How far reads were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckLevel {
    /// Nothing: the engine stores nothing.
    None,
    /// Each value by itself: right key, whole, of this trial.
    Stateless,
    /// And against the versions that were written.
    Full,
}

/// What was checked in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// How far.
    pub level: CheckLevel,
    /// Values compared, byte for byte.
    pub values: u64,
    /// Rows of scans compared.
    pub rows: u64,
    /// What was wrong.
    pub faults: u64,
    /// The first of them.
    pub first_faults: Vec<String>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// Its settings as run.
    pub phase: Phase,
    /// The round it was run in, from 1; none: its workload has no rounds, or it is not run in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Why it did not run (the engine lacks a capability or a level), or why it was cut short; none: it is whole.
    pub not_run: Option<String>,
    /// The level in force; none if it did not run.
    pub durability_in_force: Option<Durability>,
    /// The level asked for.
    pub durability_asked: Durability,
    /// What the core did in the engine's place: `merge = get + put`, `indexes emulated, atomic`.
    pub emulated: Vec<String>,
    /// From the first thread's start to the last thread's end, without warm-up, nanoseconds.
    pub elapsed_ns: u64,
    /// Ops in that time (a group of K joined puts counts K; a transaction, a read-modify-write or a row with its
    /// index rows counts 1).
    pub ops: u64,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Keys in the database after it, if known.
    pub keys_after: Option<u64>,
    /// Per kind of op.
    pub kinds: Vec<KindRecord>,
    /// Per thread.
    pub threads: Vec<ThreadRecord>,
    /// Per second; the last row may be shorter.
    pub series: Vec<SeriesRow>,
    /// What the process used meanwhile: differences, but for `rss_bytes` and peaks.
    pub usage: Usage,
    /// What disturbed it, its warm-up left out; none: an older version measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<PhaseNoise>,
    /// What its memory was made of at its end, database open; none: the trial had no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_use: Option<CapUse>,
    /// Key and value bytes handed to writes.
    pub logical_bytes_written: u64,
    /// Key and value bytes got from reads.
    pub logical_bytes_read: u64,
    /// Disk: the largest seen in the phase, at its end, and after settling (if that was done next).
    pub disk_peak: Option<DiskUse>,
    /// At its end.
    pub disk_end: Option<DiskUse>,
    /// After a settle step that follows.
    pub disk_settled: Option<DiskUse>,
    /// What the engine tells of its inside at the end of the phase, `name=value`; counters count from its open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engine_stats: Vec<(String, String)>,
    /// Ops per call of the driver, mean.
    pub batch_mean: f64,
    /// How far the driver's times account for its calls; none: it did not run, or an older version measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_times: Option<CallTimes>,
    /// The share of the phase's thread time that passed outside the driver's calls, 0 to 1.
    pub harness_share: f64,
    /// What was checked.
    pub check: Check,
}

/// For figures that most records do not have.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One kind of op in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindRecord {
    /// `get`, `multi-get`, `put`, `insert`, `update`, `delete`, `scan`, `merge`, `read-modify-write`,
    /// `transaction`, `insert-indexed`.
    pub kind: String,
    /// Ops counted.
    pub ops: u64,
    /// Of these, those that found nothing as they may (gets and deletes).
    pub misses: u64,
    /// Of the misses, those of keys that had been written, and that a cache had let go.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evicted: u64,
    /// Rows delivered by scans.
    pub rows: u64,
    /// Retries inside the driver.
    pub retries: u64,
    /// Service time of each timed unit (a joined group is one unit), nanoseconds.
    pub service_ns: Histogram,
}

/// One thread in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRecord {
    /// From 0.
    pub thread: u32,
    /// `mix`, `reader` or `writer`.
    pub role: String,
    /// Ops.
    pub ops: u64,
    /// From its start to its end, nanoseconds.
    pub elapsed_ns: u64,
    /// Time inside the driver's calls, nanoseconds.
    pub inside_ns: u64,
    /// Time that it ran on a CPU, warm-up left out, nanoseconds; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time that it was ready to run and had no CPU, warm-up left out, nanoseconds; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// Median service time, nanoseconds; none: no ops.
    pub p50_ns: Option<u64>,
    /// 99th percentile; none: sample too small.
    pub p99_ns: Option<u64>,
    /// Slowest.
    pub max_ns: Option<u64>,
}

/// A run: what was asked, on what machine. `run.json` in the results folder, written before the first trial.
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
    /// The command that repeats it, without paths of the machine.
    pub command: Vec<String>,
    /// The trials, in the order of the plan.
    pub trials: Vec<Trial>,
    /// Engines that were known but absent, and why.
    pub absent: Vec<(String, String)>,
    /// What `kvdyno verify` had proven of the engines when the run was planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// Engines of plug-ins of which `kvdyno verify` had proven nothing when the run was planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// The clock.
    pub clock: ClockFacts,
    /// Warnings of the machine.
    pub warnings: Vec<Warning>,
}

/// What was proven of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The engine.
    pub engine: String,
    /// The version of its library that it was proven for; none: it does not tell.
    pub version: Option<String>,
    /// The durability levels that it has.
    pub levels: Vec<String>,
    /// Its capabilities: those with a check that passed, and those in which there is nothing to prove.
    pub capabilities: Vec<String>,
}

impl Trial {
    /// The seed of its ops.
    pub fn ops_seed(&self) -> u64 {
        self.seed.unwrap_or(self.workload.seed)
    }
}

impl Record {
    /// The record of a trial that left none itself.
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
            memory_cap: None,
            cpus_in_force: None,
            clock: None,
            noise: None,
            warnings: Vec::new(),
        }
    }
}

impl PhaseRecord {
    /// The record of a phase that did not run, and why.
    pub fn not_run(phase: Phase, durability_asked: Durability, reason: String) -> PhaseRecord {
        PhaseRecord {
            phase,
            round: None,
            not_run: Some(reason),
            durability_in_force: None,
            durability_asked,
            emulated: Vec::new(),
            elapsed_ns: 0,
            ops: 0,
            ended_by: EndedBy::Failure,
            keys_after: None,
            kinds: Vec::new(),
            threads: Vec::new(),
            series: Vec::new(),
            usage: Usage::default(),
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
            check: Check { level: CheckLevel::None, values: 0, rows: 0, faults: 0, first_faults: Vec::new() },
        }
    }
}
