//! The file format of workloads: its optional fields, and the conversion to and from `Workload`.

use super::kind::MixFile;
use super::list::List;
use super::quantity::{Bytes, Count, Number, Seconds, Size};
use super::threads::Threads;
use super::{
    Collections, DataType, Durability, Emulate, FaultKind, Index, KeySpec, MemberFault, Phase, Scan, Target,
    Transaction, ValueSpec, Workload, defaults,
};
use crate::generator::{Distribution, Encoding, SizeSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kvdyno workload: a named list of phases, run in order on one database.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Workload")]
pub(super) struct WorkloadFile {
    /// The name to type on the command line. Letters, digits, `-`, `_` and `.`. Default: the file's name.
    name: Option<String>,
    /// A description of one line. Default: empty.
    about: Option<String>,
    /// The tool or paper that it comes from. Default: none.
    source: Option<String>,
    /// Problems of that tool or paper that are fixed here, one text each. Default: none.
    #[serde(alias = "mends")]
    fixes: Option<List<String>>,
    /// The seed of every random stream. Default: 1.
    seed: Option<Count<u64>>,
    /// Repetitions of each cell. Default: 5.
    runs: Option<Count<u32>>,
    /// Duration of a run of 16 engines, from opening to closing; sizes and times shrink to fit it. Default: nothing
    /// shrinks.
    budget_seconds: Option<Seconds>,
    /// Maximum duration of each phase that only loads keys and has no `seconds`. An engine that is slower fails as too
    /// slow, and its later runs are skipped. Default: no maximum.
    load_seconds: Option<Seconds>,
    /// Keys that the fill writes and that phases draw from; 0: there is no fill, phases insert. Default: 1,000,000.
    keys: Option<Count<u64>>,
    /// Keyspaces (tables, column families, databases) that keys are spread over: key number N is in keyspace
    /// N % keyspaces. Emulated by a prefix of the key if the engine has only one keyspace, and labelled as emulated.
    /// Default: 1.
    keyspaces: Option<Count<u32>>,
    /// Threads of every phase that does not set its own; `cpus`: the number of CPUs. Default: 1.
    threads: Option<Threads>,
    /// The minimum durability level of every phase that does not set its own. Default: process.
    durability: Option<Durability>,
    /// An engine that cannot reach the workload's level runs at its strongest one and is ranked there. Default: false,
    /// such an engine is refused.
    or_weaker: Option<bool>,
    /// Budget for the engine's own caches. Default: the engine's default.
    cache_bytes: Option<Bytes>,
    /// Cap on all memory of a trial's process, page cache included, by a control group. Default: no cap.
    memory_bytes: Option<Bytes>,
    /// Collections that keys are fields of (key number N is in collection N % count), or lists. Native if the engine has
    /// them, otherwise emulated by a prefix of the key, and labelled as emulated. Default: none.
    collections: Option<CollectionsFile>,
    /// How a number becomes a key.
    key: Option<KeyFile>,
    /// Size and compressibility of values.
    value: Option<ValueFile>,
    /// Secondary indexes of the rows, which `insert_indexed` writes and `scan.index` reads. Default: none.
    indexes: Option<Vec<IndexFile>>,
    /// The workload that this is a variant of. Default: none.
    variant_of: Option<String>,
    /// The layouts that its report uses if none is requested. Default: the overview.
    layouts: Option<List<String>>,
    /// How many times the phases with `each_round` are run, in turn. Default: 1.
    rounds: Option<Count<u32>>,
    /// The phases, in order.
    #[serde(rename = "phase")]
    phases: Vec<PhaseFile>,
    /// Faults of the members of a store that kvdyno has started, while a phase is measured. Default: none.
    #[serde(rename = "fault", skip_serializing_if = "Vec::is_empty")]
    faults: Vec<FaultFile>,
}

/// A fault of a member of a store while a phase is measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Fault")]
pub(super) struct FaultFile {
    /// The phase in which it happens, by its name. Default: the last phase.
    phase: Option<String>,
    /// `kill` (SIGKILL, and started again at the end of the fault), `pause` (SIGSTOP, and continued at its end), `restart`
    /// (SIGTERM, and started again at once), `cut` (no packet reaches or leaves it) or `slow` (its syncs are delayed). Default: kill.
    kind: Option<FaultKind>,
    /// `leader`, `follower` (the first member that does not lead), or the number of a member, from 1. Default: leader.
    member: Option<Target>,
    /// When it begins, from the moment at which counting begins. Default: 0.
    at_seconds: Option<Seconds>,
    /// How long it lasts. Default: until the phase ends.
    for_seconds: Option<Seconds>,
    /// How much longer each sync call takes while a disk is slow. Needed by `slow`, and no other kind has it.
    delay_seconds: Option<Seconds>,
}

/// How a number becomes a key.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Key")]
pub(super) struct KeyFile {
    /// Bytes of a key, 4 to 65536: a size or a distribution of sizes. Default: 16.
    size: Option<Size>,
    /// Default: binary.
    encoding: Option<Encoding>,
    /// Keys are scattered by a permutation instead of following the order of their numbers. Default: false.
    scattered: Option<bool>,
    /// The distance between the numbers of neighbouring keys; misses use the numbers in the gap. Default: 2.
    spacing: Option<Count<u64>>,
    /// Keys are inserted in turns: this many in ascending order, then as many at random over the range of those so far,
    /// none twice. Needs fewer turns than `spacing`. Default: 0, they are inserted in order or scattered.
    alternate: Option<Count<u64>>,
    /// Keys share this many distinct prefixes. Default: 0, none.
    prefix_groups: Option<Count<u64>>,
    /// Bytes of such a prefix. Default: 4.
    prefix_size: Option<Count<u32>>,
    /// A file of key material: key i is its bytes [i * size, (i + 1) * size). Default: keys are generated.
    file: Option<String>,
}

/// Size and compressibility of values.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Value")]
pub(super) struct ValueFile {
    /// Bytes of a value: a size or a distribution of sizes. Default: 100.
    size: Option<Size>,
    /// The share of a value that remains after compression: 1 is noise, 0.5 compresses to half. Default: 0.5.
    compressed_share: Option<Number>,
}

/// A secondary index: each row is also entered under some bytes of its value, followed by its key.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { from = 24, length = 8 }")]
#[schemars(rename = "Index")]
pub(super) struct IndexFile {
    /// The first byte of the value that the index uses, from 0. Default: 24, after the value's header.
    from: Option<Count<u32>>,
    /// The number of bytes that it uses. Default: 8.
    length: Option<Count<u32>>,
    /// Index rows hold the complete value; otherwise they hold no value. Default: false.
    clustering: Option<bool>,
}

/// The collections that keys are fields of.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { count = 16, type = \"hash\" }")]
#[schemars(rename = "Collections")]
pub(super) struct CollectionsFile {
    /// The number of collections, up to 65535. Default: 16.
    count: Option<Count<u32>>,
    /// The type of each: `hash`, `sorted` or `list`; `string` for no collections. Default: string.
    r#type: Option<DataType>,
}

/// The settings of scans.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Scan")]
pub(super) struct ScanFile {
    /// Rows of a scan; 0: to the end of the keyspace. Default: 100.
    rows: Option<Count<u32>>,
    /// Rows are drawn uniformly from 1 to `rows`. Default: false.
    uniform_rows: Option<bool>,
    /// Scan in descending order. Default: false.
    reverse: Option<bool>,
    /// Only rows that share the start key's prefix (needs `key.prefix_groups`). Default: false.
    prefix: Option<bool>,
    /// Scan the rows of this index (1: the first of `indexes`), in the order of its bytes. Default: 0, the rows
    /// themselves.
    index: Option<Count<u32>>,
    /// Rows requested from the driver in one call; the next call continues after the last row, and all calls are timed as
    /// one scan. Default: 0, as many as fit into the buffer of 256 KiB.
    rows_per_call: Option<Count<u32>>,
}

/// A mix of ops, its generators, and its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Phase")]
pub(super) struct PhaseFile {
    /// Unique in the workload. Letters, digits, `-` and `_`. Required.
    name: Option<String>,
    /// How keys are drawn. Default: uniform.
    distribution: Option<Distribution>,
    /// Hot keys are neighbours instead of scattered. Default: false.
    clustered: Option<bool>,
    /// The range that keys are drawn from grows with the inserts of the phase. Default: false.
    grows: Option<bool>,
    /// The share of gets and multi-gets that read a key that was never written, 0 to 1. Default: 0.
    miss: Option<Number>,
    /// The share of puts that overwrite an existing key, 0 to 1. Default: puts follow the distribution.
    existing: Option<Number>,
    /// Threads that run the mix. Default: the workload's.
    threads: Option<Threads>,
    /// Threads that only get, besides `threads`. Default: 0.
    readers: Option<Threads>,
    /// Threads that only put, besides `threads`. Default: 0.
    writers: Option<Threads>,
    /// End after this many ops of all threads together. Default: 0, no limit.
    ops: Option<Count<u64>>,
    /// End when each key has been used once (with `sequential` or `permutation`). Default: false.
    each_key: Option<bool>,
    /// End after this time. The limit that is reached first ends the phase. Default: 0, no limit.
    seconds: Option<Seconds>,
    /// Time at the start that is run but not counted. Default: 0.
    warmup_seconds: Option<Seconds>,
    /// Writes that may share one commit. Default: 1, no grouping.
    join: Option<Count<u32>>,
    /// Joined writes form a transaction: either all writes of a group take effect, or none. Default: false.
    atomic: Option<bool>,
    /// The complete phase is one transaction of one thread: `whole` (committed at its end) or `aborted` (rolled back, so
    /// the keys must be as before). Default: each op or group stands alone.
    transaction: Option<Transaction>,
    /// Ops that are emulated even if the engine supports them: `merge`, by get and put. Default: none.
    emulate: Option<List<Emulate>>,
    /// Keys of a multi-get. Default: 10.
    multi_get_keys: Option<Count<u32>>,
    /// Ops of a transaction. Default: 10.
    transaction_ops: Option<Count<u32>>,
    /// The phase is run in each of `rounds`. Default: false.
    each_round: Option<bool>,
    /// Wait for background work before the phase; timed separately. Default: false.
    settle_before: Option<bool>,
    /// Close and open the database before the phase; timed separately. Default: false.
    reopen_before: Option<bool>,
    /// Drop the page cache before the phase, if the system allows it (implies a reopen). Default: false.
    drop_caches_before: Option<bool>,
    /// The minimum durability level of this phase; the database is reopened for it. Default: the workload's.
    durability: Option<Durability>,
    /// Value sizes of this phase. Default: the workload's.
    value_size: Option<Size>,
    /// The shares of op kinds, for all threads except dedicated readers and writers.
    mix: Option<MixFile>,
    /// The settings of scans.
    scan: Option<ScanFile>,
}

/// The form in a file of a value of type `T`.
pub(super) trait FileForm<T> {
    fn of(value: &T) -> Self;
    fn value(self) -> T;
}

macro_rules! file_form {
    ($($wrapper:ident => $type:ty),*; $($same:ty),*) => {
        $(impl FileForm<$type> for $wrapper {
            fn of(value: &$type) -> Self {
                $wrapper(value.clone())
            }
            fn value(self) -> $type {
                self.0
            }
        })*
        $(impl FileForm<$same> for $same {
            fn of(value: &$same) -> Self {
                value.clone()
            }
            fn value(self) -> $same {
                self
            }
        })*
    };
}

file_form!(Bytes => u64, Threads => u32, Seconds => f64, Number => f64, Size => SizeSpec;
    bool, String, Encoding, Distribution, Durability, DataType, Transaction, FaultKind, Target);

impl<T: Clone> FileForm<Vec<T>> for List<T> {
    fn of(value: &Vec<T>) -> Self {
        List(value.clone())
    }
    fn value(self) -> Vec<T> {
        self.0
    }
}

impl<T: Clone> FileForm<T> for Count<T> {
    fn of(value: &T) -> Self {
        Count(value.clone())
    }
    fn value(self) -> T {
        self.0
    }
}

/// A table of a file is the form of a struct with the same field names. Missing fields have their defaults, and fields
/// with their default are not written; the fields in the second list are optional in the struct too.
macro_rules! table_form {
    ($file:ident => $type:ident { $($field:ident),* } optional { $($optional:ident),* }) => {
        impl $file {
            fn over(self, mut value: $type) -> $type {
                $(if let Some(written) = self.$field {
                    value.$field = written.value();
                })*
                $(value.$optional = self.$optional.map(FileForm::value).or(value.$optional);)*
                value
            }
        }

        impl FileForm<$type> for $file {
            fn of(value: &$type) -> Self {
                let usual = $type::default();
                $file {
                    $($field: (value.$field != usual.$field).then(|| FileForm::of(&value.$field)),)*
                    $($optional: value.$optional.as_ref().map(FileForm::of),)*
                }
            }

            fn value(self) -> $type {
                self.over($type::default())
            }
        }
    };
}
pub(super) use table_form;

table_form!(KeyFile => KeySpec {
    size, encoding, scattered, spacing, alternate, prefix_groups, prefix_size
} optional { file });
table_form!(IndexFile => Index { from, length, clustering } optional {});
table_form!(CollectionsFile => Collections { count, r#type } optional {});
table_form!(ValueFile => ValueSpec { size, compressed_share } optional {});
table_form!(ScanFile => Scan { rows, uniform_rows, reverse, prefix, index, rows_per_call } optional {});
table_form!(FaultFile => MemberFault { phase, kind, member, at_seconds } optional { for_seconds, delay_seconds });
table_form!(PhaseFile => Phase {
    name, distribution, clustered, grows, miss, threads, readers, writers, ops, each_key, seconds, warmup_seconds,
    join, atomic, emulate, multi_get_keys, transaction_ops, each_round, settle_before, reopen_before, drop_caches_before, mix, scan
} optional { existing, transaction, durability, value_size });

impl WorkloadFile {
    /// Converts the file to a workload; `stem` is the default name.
    pub(super) fn into_workload(self, stem: &str) -> Workload {
        let usual = Phase { threads: self.threads.map_or(1, FileForm::value), ..Phase::default() };
        let last = self.phases.last().and_then(|phase| phase.name.clone()).unwrap_or_default();
        let usual_fault = MemberFault { phase: last, ..MemberFault::default() };
        Workload {
            name: self.name.unwrap_or_else(|| stem.to_string()),
            about: self.about.unwrap_or_default(),
            source: self.source,
            fixes: self.fixes.map_or_else(Vec::new, |list| list.0),
            variant_of: self.variant_of,
            layouts: self.layouts.map_or_else(Vec::new, |list| list.0),
            seed: self.seed.map_or(defaults::SEED, FileForm::value),
            runs: self.runs.map_or(defaults::RUNS, FileForm::value),
            budget_seconds: self.budget_seconds.map(FileForm::value),
            load_seconds: self.load_seconds.map(FileForm::value),
            keys: self.keys.map_or(defaults::KEYS, FileForm::value),
            keyspaces: self.keyspaces.map_or_else(defaults::keyspaces, FileForm::value),
            collections: self.collections.map(FileForm::value).unwrap_or_default(),
            key: self.key.map(FileForm::value).unwrap_or_default(),
            value: self.value.map(FileForm::value).unwrap_or_default(),
            indexes: self.indexes.into_iter().flatten().map(FileForm::value).collect(),
            durability: self.durability.unwrap_or_default(),
            or_weaker: self.or_weaker.unwrap_or_default(),
            cache_bytes: self.cache_bytes.map(FileForm::value),
            memory_bytes: self.memory_bytes.map(FileForm::value),
            rounds: self.rounds.map_or_else(defaults::rounds, FileForm::value),
            phases: self.phases.into_iter().map(|phase| phase.over(usual.clone())).collect(),
            faults: self.faults.into_iter().map(|fault| fault.over(usual_fault.clone())).collect(),
        }
    }

    /// Converts a workload to a file: all fields of the workload itself, but of phases only those that differ from the
    /// default.
    pub(super) fn of(workload: &Workload) -> Self {
        WorkloadFile {
            name: Some(workload.name.clone()),
            about: Some(workload.about.clone()),
            source: workload.source.clone(),
            fixes: (!workload.fixes.is_empty()).then(|| List(workload.fixes.clone())),
            variant_of: workload.variant_of.clone(),
            layouts: (!workload.layouts.is_empty()).then(|| List(workload.layouts.clone())),
            seed: Some(FileForm::of(&workload.seed)),
            runs: Some(FileForm::of(&workload.runs)),
            budget_seconds: workload.budget_seconds.as_ref().map(FileForm::of),
            load_seconds: workload.load_seconds.as_ref().map(FileForm::of),
            keys: Some(FileForm::of(&workload.keys)),
            keyspaces: (workload.keyspaces != defaults::keyspaces())
                .then(|| FileForm::of(&workload.keyspaces)),
            threads: None,
            durability: Some(workload.durability),
            or_weaker: workload.or_weaker.then_some(true),
            cache_bytes: workload.cache_bytes.as_ref().map(FileForm::of),
            memory_bytes: workload.memory_bytes.as_ref().map(FileForm::of),
            collections: (workload.collections != Collections::default())
                .then(|| FileForm::of(&workload.collections)),
            key: Some(FileForm::of(&workload.key)),
            value: Some(FileForm::of(&workload.value)),
            indexes: Some(workload.indexes.iter().map(FileForm::of).collect())
                .filter(|all: &Vec<_>| !all.is_empty()),
            rounds: (workload.rounds != defaults::rounds()).then(|| FileForm::of(&workload.rounds)),
            phases: workload.phases.iter().map(FileForm::of).collect(),
            faults: workload.faults.iter().map(FileForm::of).collect(),
        }
    }
}
