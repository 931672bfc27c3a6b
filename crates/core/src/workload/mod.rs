//! Workloads as data: a workload is a named list of phases; a phase is a mix of ops, its generators and its end.

mod builtin;
mod check;
mod collections;
mod defaults;
mod explain;
mod fault;
mod file;
mod kind;
mod list;
mod overrides;
mod parse;
#[cfg(test)]
mod properties;
mod quantity;
mod shrink;
mod suite;
#[cfg(test)]
mod tests;
mod threads;
mod variants;

pub use builtin::{builtin, builtin_names, builtin_suite, builtin_suites, builtin_text};
pub use collections::{Collections, DataType};
pub use fault::{FaultKind, MemberFault, Target};
pub use kind::{Access, Mix, OpKind};
pub use overrides::Overrides;
pub use parse::{WorkloadError, parse, schema};
pub use quantity::parse_size;
pub use suite::{Member, Suite, is_suite, parse_suite};
pub use threads::{parse_threads, with_cpus};
pub use variants::{Axes, Changes};

use crate::generator::{Distribution, Encoding, SizeSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The durability level that a workload requests: a minimum (docs/glossary.md).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// May lose anything.
    None,
    /// Survives kill -9.
    #[default]
    Process,
    /// Survives power loss.
    Power,
    /// The default of the engine's authors.
    Default,
}

/// A named list of phases and the data they share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The name to type on the command line.
    pub name: String,
    /// A description of one line.
    pub about: String,
    /// The tool or paper that it comes from, in one line; none: it is our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Problems of that tool or paper that are fixed here.
    #[serde(rename = "mends", default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<String>,
    /// The workload that this is a variant of, created for a list of sizes or by a suite; none: it is not a variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant_of: Option<String>,
    /// The layouts that its report uses if none is requested, by name; empty: the overview.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<String>,
    /// The seed of every stream.
    pub seed: u64,
    /// Repetitions of each cell.
    pub runs: u32,
    /// The duration of the complete run, in seconds; sizes and times shrink to fit it; none: nothing shrinks.
    pub budget_seconds: Option<f64>,
    /// The maximum duration of a fill without a time of its own, in seconds: an engine that has not loaded all keys by then
    /// is too slow for the workload; none: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_seconds: Option<f64>,
    /// Keys that the fill writes; phases draw from them. 0: there is no fill, phases insert.
    pub keys: u64,
    /// Keyspaces that the keys are spread over, by their numbers.
    #[serde(default = "defaults::keyspaces")]
    pub keyspaces: u32,
    /// The collections that keys are fields of, or the lists that the phases push to and pop from.
    #[serde(default)]
    pub collections: Collections,
    /// How a number becomes a key.
    pub key: KeySpec,
    /// Size and compressibility of values.
    pub value: ValueSpec,
    /// Secondary indexes of the rows.
    #[serde(default)]
    pub indexes: Vec<Index>,
    /// The requested level, unless a phase has its own.
    pub durability: Durability,
    /// An engine that cannot reach that level runs at its strongest one and is ranked there; otherwise it is refused.
    /// The level of a single phase is required in any case.
    #[serde(default)]
    pub or_weaker: bool,
    /// Budget for the engine's own caches, in bytes; none: the engine's default.
    pub cache_bytes: Option<u64>,
    /// Cap on all memory of a trial's process, page cache included, in bytes; none: no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How many times the phases with `each_round` are run, in turn; they are consecutive.
    #[serde(default = "defaults::rounds")]
    pub rounds: u32,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Faults of the members of a store while a phase is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<MemberFault>,
}

impl Workload {
    /// The maximum duration of a phase that loads keys, in seconds; none: the phase has no such maximum.
    pub fn load_limit(&self, phase: &Phase) -> Option<f64> {
        self.load_seconds.filter(|_| phase.is_fill() && phase.seconds_limit().is_none())
    }

    /// Key and value bytes of the index rows of one row, whether the engine or the core writes them.
    pub fn index_bytes(&self, key_bytes: f64, value_bytes: f64) -> f64 {
        let of = |index: &Index| {
            f64::from(index.length) + key_bytes + if index.clustering { value_bytes } else { 0.0 }
        };
        self.indexes.iter().map(of).sum()
    }
}

/// How a number becomes a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeySpec {
    /// Bytes of a key, 4 to 65536; a size or a distribution of sizes.
    pub size: SizeSpec,
    /// `binary`, `decimal`, `hex`, `hashed` or `random`.
    pub encoding: Encoding,
    /// Keys in the order of their numbers, or scattered by a permutation.
    pub scattered: bool,
    /// The distance between the numbers of neighbouring keys; misses use the numbers in the gap.
    pub spacing: u64,
    /// Keys are inserted in turns: this many in ascending order, then as many at random over the range of those so far,
    /// each once and never an existing key; 0: no turns.
    pub alternate: u64,
    /// Keys share this many distinct prefixes; 0: none.
    pub prefix_groups: u64,
    /// Bytes of such a prefix.
    pub prefix_size: u32,
    /// A file of key material: key i is its bytes [i * size, (i + 1) * size).
    pub file: Option<String>,
}

/// Size and compressibility of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValueSpec {
    /// Bytes of a value; a size or a distribution of sizes.
    pub size: SizeSpec,
    /// The share of a value's bytes that remains after compression: 1 is noise, 0.5 compresses to half.
    pub compressed_share: f64,
}

/// A secondary index: each row is also entered under some bytes of its value, followed by its key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Index {
    /// The first of these bytes, from 0.
    pub from: u32,
    /// The number of these bytes.
    pub length: u32,
    /// The index row holds the complete value; otherwise it holds no value.
    pub clustering: bool,
}

/// The settings of scans.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scan {
    /// Rows of a scan; 0: to the end of the keyspace.
    pub rows: u32,
    /// Rows are drawn uniformly from 1 to `rows` (as YCSB's workload E does).
    pub uniform_rows: bool,
    /// Scan in descending order.
    pub reverse: bool,
    /// Only rows that share the start key's prefix (needs `key.prefix_groups`).
    pub prefix: bool,
    /// Scan the rows of this index, counted from 1, in the order of its bytes; 0: the rows themselves.
    pub index: u32,
    /// Rows requested from the driver in one call; the next call continues after the last row; 0: as many as fit into
    /// the buffer.
    pub rows_per_call: u32,
}

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

/// Ops that the core emulates although the engine supports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Emulate {
    /// Merges by get and put.
    Merge,
}

/// A mix of ops, its generators, and its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Phase {
    /// Unique in the workload.
    pub name: String,
    /// Shares of op kinds, for all threads except dedicated readers and writers.
    pub mix: Mix,
    /// How keys are drawn.
    pub distribution: Distribution,
    /// Hot keys are neighbours (in the order of their numbers) instead of scattered.
    pub clustered: bool,
    /// The range that keys are drawn from grows with the inserts of the phase; otherwise it stays as at the phase's start.
    pub grows: bool,
    /// The share of gets and multi-gets that read a key that was never written.
    pub miss: f64,
    /// The share of puts that overwrite an existing key (the others write new keys), and the share of inserts that use an
    /// existing key and must be refused. None: puts follow the distribution, and inserts use new keys only.
    pub existing: Option<f64>,
    /// Threads that run the mix.
    pub threads: u32,
    /// Dedicated threads that only get (with `miss`), besides `threads`.
    pub readers: u32,
    /// Dedicated threads that only put, besides `threads`.
    pub writers: u32,
    /// End after this many ops of all threads together; 0: no limit. With `each_key` the number of keys.
    pub ops: u64,
    /// Ops = number of keys: each key once (with `sequential` or `permutation`).
    pub each_key: bool,
    /// End after this many seconds; 0: no limit. The limit that is reached first ends the phase.
    pub seconds: f64,
    /// Seconds at the start that are run but not counted.
    pub warmup_seconds: f64,
    /// Writes that may share one commit (JOIN); 1: no grouping.
    pub join: u32,
    /// Joined writes form a transaction: either all writes of a group take effect, or none.
    pub atomic: bool,
    /// The complete phase is one transaction of its only thread; none: each op or group stands alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction: Option<Transaction>,
    /// Ops that are emulated even if the engine supports them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emulate: Vec<Emulate>,
    /// Keys of a multi-get.
    pub multi_get_keys: u32,
    /// Ops of a transaction.
    pub transaction_ops: u32,
    /// The settings of scans.
    pub scan: Scan,
    /// The phase is run in each of `Workload::rounds`.
    pub each_round: bool,
    /// Wait for background work before the phase (timed separately).
    pub settle_before: bool,
    /// Close and open the database before the phase (timed separately).
    pub reopen_before: bool,
    /// Drop the page cache before the phase, if the system allows it (implies a reopen).
    pub drop_caches_before: bool,
    /// A durability level that replaces the workload's; the database is reopened for it.
    pub durability: Option<Durability>,
    /// Value sizes that replace the workload's.
    pub value_size: Option<SizeSpec>,
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
