//! A phase of a workload: its fields, each with its type, its form in files and its default.

use super::kind::MixFile;
use super::list::List;
use super::quantity::{Count, Number, Seconds, Size};
use super::table::table;
use super::threads::Threads;
use super::{Access, Arriving, Durability, Mix, OpKind, WhenLate};
use crate::generator::{Distribution, ParetoShape, Rate, SizeSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A transaction that spans a complete phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transaction {
    /// Committed at the phase's end.
    Whole,
    /// Rolled back at its end.
    Aborted,
}

impl Transaction {
    /// The words for it in reports.
    pub fn words(self) -> &'static str {
        match self {
            Transaction::Whole => "in one transaction",
            Transaction::Aborted => "in one transaction that is aborted",
        }
    }
}

/// What ends a phase before its limits.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Until {
    /// Nothing.
    #[default]
    Limit,
    /// That its figures no longer change.
    Steady,
}

/// Ops that the core emulates although the engine supports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Emulate {
    /// Merges by get and put.
    Merge,
}

table! {
    /// The settings of scans.
    #[derive(Copy)]
    Scan, ScanFile as "Scan", "a table" {
        /// Rows of a scan; 0: to the end of the keyspace. Default: 100.
        rows: u32, Count<u32> = 100;
        /// Rows are drawn uniformly from 1 to `rows` (as YCSB's workload E does). Default: false.
        uniform_rows: bool, bool = false;
        /// Rows are drawn from a generalized Pareto distribution, `K,SIGMA`, of which only the numbers from 1 to `rows` are drawn.
        /// Default: every scan has `rows`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pareto_rows: Option<ParetoShape>, ParetoShape = None;
        /// Scan in descending order. Default: false.
        reverse: bool, bool = false;
        /// Only rows that share the start key's prefix (needs `key.prefix_groups`). Default: false.
        prefix: bool, bool = false;
        /// Scan the rows of this index (1: the first of `indexes`), in the order of its bytes. Default: 0, the rows
        /// themselves.
        index: u32, Count<u32> = 0;
        /// Rows requested from the driver in one call; the next call continues after the last row, and all calls are timed as
        /// one scan. Default: 0, as many as fit into the buffer of 256 KiB.
        rows_per_call: u32, Count<u32> = 0;
    }
}

table! {
    /// A mix of ops, its generators, and its end.
    Phase, PhaseFile as "Phase", "a table" {
        /// Unique in the workload. Letters, digits, `-` and `_`. Required.
        name: String, String = String::new();
        /// The shares of op kinds, for all threads except dedicated readers and writers. Default: none.
        mix: Mix, MixFile = Mix::default();
        /// How keys are drawn. Default: uniform.
        distribution: Distribution, Distribution = Distribution::Uniform;
        /// Hot keys are neighbours (in the order of their numbers) instead of scattered. Default: false.
        clustered: bool, bool = false;
        /// The range that keys are drawn from grows with the inserts of the phase; otherwise it stays as at the phase's start.
        /// Default: false.
        grows: bool, bool = false;
        /// The share of gets and multi-gets that read a key that was never written, 0 to 1. Default: 0.
        miss: f64, Number = 0.0;
        /// The share of puts that overwrite an existing key (the others write new keys), and the share of inserts that use an
        /// existing key and must be refused, 0 to 1. Default: puts follow the distribution, and inserts use new keys only.
        existing: Option<f64>, Number = None;
        /// Threads that run the mix. Default: the workload's.
        threads: u32, Threads = 1;
        /// Threads that only get (with `miss`), besides `threads`. Default: 0.
        readers: u32, Threads = 0;
        /// Threads that only put, besides `threads`. Default: 0.
        writers: u32, Threads = 0;
        /// End after this many ops of all threads together. Default: 0, no limit.
        ops: u64, Count<u64> = 0;
        /// End when each key has been used once (with `sequential` or `permutation`). Default: false.
        each_key: bool, bool = false;
        /// End after this time. The limit that is reached first ends the phase. Default: 0, no limit.
        seconds: f64, Seconds = 0.0;
        /// What else ends the phase: nothing (`limit`), or that it is steady (`steady`): ops per second, p99 and bytes written per op
        /// no longer change. It takes 40 seconds at least. Default: limit.
        #[serde(skip_serializing_if = "is_default")]
        until: Until, Until = Until::Limit;
        /// Time at the start that is run but not counted. Default: 0.
        warmup_seconds: f64, Seconds = 0.0;
        /// Requests per second that arrive whether or not earlier ones have ended: `20k`, `poisson:20k`, `steps:1k,2k,4k`,
        /// `ramp:1k-100k`. A joined group, a transaction or a scan is one request. Default: a thread sends its next request when the
        /// last one has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<Rate>, Rate = None;
        /// Whether requests wait in one queue for all threads (`shared`), or each thread has its own with its part of the rate
        /// (`own`). Default: shared.
        #[serde(skip_serializing_if = "is_default")]
        arrivals: Arriving, Arriving = Arriving::Shared;
        /// What happens to requests that no thread was free for in time: they are sent (`queue`), or dropped and counted if they are
        /// later than a limit (`drop:10ms`). Default: queue.
        #[serde(skip_serializing_if = "is_default")]
        when_late: WhenLate, WhenLate = WhenLate::Queue;
        /// Writes that may share one commit. Default: 1, no grouping.
        join: u32, Count<u32> = 1;
        /// Joined writes form a transaction: either all writes of a group take effect, or none. Default: false.
        atomic: bool, bool = false;
        /// The complete phase is one transaction of one thread: `whole` (committed at its end) or `aborted` (rolled back, so
        /// the keys must be as before). Default: each op or group stands alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        transaction: Option<Transaction>, Transaction = None;
        /// Ops that are emulated even if the engine supports them: `merge`, by get and put. Default: none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        emulate: Vec<Emulate>, List<Emulate> = Vec::new();
        /// Keys of a multi-get. Default: 10.
        multi_get_keys: u32, Count<u32> = 10;
        /// Ops of a transaction. Default: 10.
        transaction_ops: u32, Count<u32> = 10;
        /// The settings of scans.
        scan: Scan, ScanFile = Scan::default();
        /// The phase is run in each of `rounds`. Default: false.
        each_round: bool, bool = false;
        /// Wait for background work before the phase; timed separately. Default: false.
        settle_before: bool, bool = false;
        /// Close and open the database before the phase; timed separately. Default: false.
        reopen_before: bool, bool = false;
        /// Drop the page cache before the phase, if the system allows it (implies a reopen). Default: false.
        drop_caches_before: bool, bool = false;
        /// The minimum durability level of this phase; the database is reopened for it. Default: the workload's.
        durability: Option<Durability>, Durability = None;
        /// Value sizes of this phase. Default: the workload's.
        value_size: Option<SizeSpec>, Size = None;
    }
}

/// Whether to skip a value that most phases have.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Phase {
    /// The ops of all threads together after which it ends; none: it has no such limit, or it processes each key.
    pub fn ops_limit(&self) -> Option<u64> {
        (self.ops > 0 && !self.each_key).then_some(self.ops)
    }

    /// The seconds after which it ends; none: it has no such limit.
    pub fn seconds_limit(&self) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.seconds)
    }

    /// Whether the phase only loads keys: it processes each key, and does nothing but put, insert (with or without
    /// indexes) and push.
    /// If a workload has other phases too, `--threads`, `--seconds` and `--ops` do not change its fills.
    pub fn is_fill(&self) -> bool {
        let is_load = |kind: OpKind| kind.loads_rows() || kind.access() == Access::Push;
        self.each_key && self.mix.kinds().all(is_load) && self.readers == 0
    }
}
