//! The file format of workloads: what may be left out, and how it becomes a `Workload` and back.

use super::list::List;
use super::quantity::{Bytes, Count, Number, Seconds, Size};
use super::threads::Threads;
use super::{
    Collections, DataType, Durability, Emulate, Index, KeySpec, Mix, Phase, Scan, Transaction, ValueSpec,
    Workload, defaults,
};
use crate::generator::{Distribution, Encoding, SizeSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kvdyno workload: a named list of phases, run in order on one database.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Workload")]
pub(super) struct WorkloadFile {
    /// What people type. Letters, digits, `-`, `_` and `.`. Default: the file's name.
    name: Option<String>,
    /// One line for people. Default: empty.
    about: Option<String>,
    /// The tool or paper that it is from. Default: none.
    source: Option<String>,
    /// What was wrong there and is not here, a text each. Default: none.
    mends: Option<List<String>>,
    /// The seed of every random stream. Default: 1.
    seed: Option<Count<u64>>,
    /// Repetitions of each cell. Default: 5.
    runs: Option<Count<u32>>,
    /// Measuring time of a run on ten engines; sizes and times shrink to keep it. Default: nothing shrinks.
    budget_seconds: Option<Seconds>,
    /// Keys that the fill writes and that phases draw from; 0: there is no fill, phases insert. Default: 1,000,000.
    keys: Option<Count<u64>>,
    /// Keyspaces (tables, column families, databases) that keys are spread over: key number N is in keyspace
    /// N % keyspaces. By a prefix of the key where the engine has one keyspace only, and labelled so. Default: 1.
    keyspaces: Option<Count<u32>>,
    /// Threads of every phase that does not say its own; `cpus`: as many as there are CPUs. Default: 1.
    threads: Option<Threads>,
    /// The least durability of every phase that does not say its own. Default: process.
    durability: Option<Durability>,
    /// An engine that cannot reach the workload's level runs at the strongest it has, and is ranked there. Default:
    /// false, it is refused.
    or_weaker: Option<bool>,
    /// Budget for the engine's own caches. Default: as the engine's authors ship it.
    cache_bytes: Option<Bytes>,
    /// Cap on all memory of a trial's process, page cache included, by a control group. Default: no cap.
    memory_bytes: Option<Bytes>,
    /// Collections that keys are fields of (key number N is in collection N % count), or lists. The engine's own where
    /// it has them, else by a prefix of the key, and labelled so. Default: none.
    collections: Option<CollectionsFile>,
    /// How a number becomes a key.
    key: Option<KeyFile>,
    /// What values look like.
    value: Option<ValueFile>,
    /// Secondary indexes of the rows, which `insert_indexed` writes and `scan.index` reads. Default: none.
    indexes: Option<Vec<IndexFile>>,
    /// The workload that this is a variant of. Default: none.
    variant_of: Option<String>,
    /// The layouts that its report has if none is asked for. Default: the tables of all workloads.
    layouts: Option<List<String>>,
    /// How often the phases with `each_round` are run, in turn. Default: 1.
    rounds: Option<Count<u32>>,
    /// The phases, in order.
    #[serde(rename = "phase")]
    phases: Vec<PhaseFile>,
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
    /// Keys are scattered by a permutation instead of lying in the order of their numbers. Default: false.
    scattered: Option<bool>,
    /// The distance between the numbers of neighbours; a miss falls into the gap. Default: 2.
    spacing: Option<Count<u64>>,
    /// Keys come in turns: this many in ascending order, then as many at random over the range of those so far, none
    /// twice. Needs fewer turns than `spacing`. Default: 0, they come in order or scattered.
    alternate: Option<Count<u64>>,
    /// Keys share this many distinct prefixes. Default: 0, none.
    prefix_groups: Option<Count<u64>>,
    /// Bytes of such a prefix. Default: 4.
    prefix_size: Option<Count<u32>>,
    /// A file of key material: key i is its bytes [i * size, (i + 1) * size). Default: keys are made.
    file: Option<String>,
}

/// What values look like.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Value")]
pub(super) struct ValueFile {
    /// Bytes of a value: a size or a distribution of sizes. Default: 100.
    size: Option<Size>,
    /// What is left of a value when it is compressed: 1 is noise, 0.5 compresses to half. Default: 0.5.
    compressed_share: Option<Number>,
}

/// A secondary index: each row is also entered under some bytes of its value, followed by its key.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { from = 24, length = 8 }")]
#[schemars(rename = "Index")]
pub(super) struct IndexFile {
    /// The first byte of the value that the index is by, from 0. Default: 24, behind the value's header.
    from: Option<Count<u32>>,
    /// How many bytes it is by. Default: 8.
    length: Option<Count<u32>>,
    /// Index rows hold the whole value; else they hold none. Default: false.
    clustering: Option<bool>,
}

/// The collections that keys are fields of.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { count = 16, type = \"hash\" }")]
#[schemars(rename = "Collections")]
pub(super) struct CollectionsFile {
    /// How many, up to 65535. Default: 16.
    count: Option<Count<u32>>,
    /// What each is: `hash`, `sorted`, `list`; `string` for none. Default: string.
    r#type: Option<DataType>,
}

/// The shares of op kinds in a phase; they need not add up to one. Default of each: 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table of shares such as { get = 0.9, put = 0.1 }")]
#[schemars(rename = "Mix")]
pub(super) struct MixFile {
    /// Read a key.
    get: Option<Number>,
    /// Read `multi_get_keys` keys in one group.
    multi_get: Option<Number>,
    /// Write a key drawn from the distribution; see `existing`.
    put: Option<Number>,
    /// Write the next new key, never overwriting.
    insert: Option<Number>,
    /// Overwrite a key that is there.
    update: Option<Number>,
    /// Delete a key.
    delete: Option<Number>,
    /// Scan; see `[phase.scan]`.
    scan: Option<Number>,
    /// Add 1 to a counter: native, or emulated by get and put, and labelled so.
    merge: Option<Number>,
    /// Get a key and put it back with a new value; timed as one.
    read_modify_write: Option<Number>,
    /// `transaction_ops` updates, atomically.
    transaction: Option<Number>,
    /// Write the next new key with a row in each of `indexes`, atomically where the engine can; timed as one.
    insert_indexed: Option<Number>,
    /// Push a new value at the right end of a list.
    push: Option<Number>,
    /// Pop the value at the left end of a list: native, or by get and delete, and labelled so.
    pop: Option<Number>,
}

/// What a scan does.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Scan")]
pub(super) struct ScanFile {
    /// Rows wanted; 0: to the end of the keyspace. Default: 100.
    rows: Option<Count<u32>>,
    /// Rows are drawn uniformly from 1 to `rows`. Default: false.
    uniform_rows: Option<bool>,
    /// Downward. Default: false.
    reverse: Option<bool>,
    /// Only rows that share the start key's prefix (needs `key.prefix_groups`). Default: false.
    prefix: Option<bool>,
    /// Over the rows of this index (1: the first of `indexes`), in the order of its bytes. Default: 0, over the rows.
    index: Option<Count<u32>>,
    /// Rows asked of the driver in one call, which goes on behind the last; timed as one scan all the same. Default: 0,
    /// as many as the buffer of 256 KiB takes.
    rows_per_call: Option<Count<u32>>,
}

/// A mix of ops, its generators, and its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Phase")]
pub(super) struct PhaseFile {
    /// Unique in the workload. Letters, digits, `-` and `_`. Required.
    name: Option<String>,
    /// Which key. Default: uniform.
    distribution: Option<Distribution>,
    /// Hot keys lie side by side instead of scattered. Default: false.
    clustered: Option<bool>,
    /// The range that keys are drawn from grows with the inserts of the phase. Default: false.
    grows: Option<bool>,
    /// The share of gets and multi-gets that ask for a key that was never written, 0 to 1. Default: 0.
    miss: Option<Number>,
    /// The share of puts that overwrite a key that is there, 0 to 1. Default: as the distribution falls.
    existing: Option<Number>,
    /// Threads that run the mix. Default: the workload's.
    threads: Option<Threads>,
    /// Threads that only get, besides `threads`. Default: 0.
    readers: Option<Threads>,
    /// Threads that only put, besides `threads`. Default: 0.
    writers: Option<Threads>,
    /// End after this many ops of all threads together. Default: 0, no such end.
    ops: Option<Count<u64>>,
    /// End after each key once (with `sequential` or `permutation`). Default: false.
    each_key: Option<bool>,
    /// End after this time. Whichever end comes first. Default: 0, no such end.
    seconds: Option<Seconds>,
    /// Time at the start that is run but not counted. Default: 0.
    warmup_seconds: Option<Seconds>,
    /// Writes that may share one commit. Default: 1, each alone.
    join: Option<Count<u32>>,
    /// Joined writes are a transaction: all of a group are done, or none. Default: false.
    atomic: Option<bool>,
    /// All of the phase is one transaction of one thread, `whole` (committed at its end) or `aborted` (undone then: the keys
    /// must be as before). Default: each op or group is by itself.
    transaction: Option<Transaction>,
    /// What is emulated even where the engine has it: `merge`, by get and put. Default: nothing.
    emulate: Option<List<Emulate>>,
    /// Keys of a multi-get. Default: 10.
    multi_get_keys: Option<Count<u32>>,
    /// Ops of a transaction. Default: 10.
    transaction_ops: Option<Count<u32>>,
    /// The phase is run in each of `rounds`. Default: false.
    each_round: Option<bool>,
    /// Wait for background work before the phase; timed apart. Default: false.
    settle_before: Option<bool>,
    /// Close and open before the phase; timed apart. Default: false.
    reopen_before: Option<bool>,
    /// Drop the page cache before the phase, where that is possible (implies a reopen). Default: false.
    drop_caches_before: Option<bool>,
    /// Another level than the workload's; the database is opened again for it. Default: the workload's.
    durability: Option<Durability>,
    /// Other value sizes than the workload's. Default: the workload's.
    value_size: Option<Size>,
    /// The shares of op kinds (of all threads, or of those without a role).
    mix: Option<MixFile>,
    /// What scans do.
    scan: Option<ScanFile>,
}

/// What stands in a file for a value of type `T`.
trait Stands<T> {
    fn of(value: &T) -> Self;
    fn value(self) -> T;
}

macro_rules! stands {
    ($($wrapper:ident => $type:ty),*; $($same:ty),*) => {
        $(impl Stands<$type> for $wrapper {
            fn of(value: &$type) -> Self {
                $wrapper(value.clone())
            }
            fn value(self) -> $type {
                self.0
            }
        })*
        $(impl Stands<$same> for $same {
            fn of(value: &$same) -> Self {
                value.clone()
            }
            fn value(self) -> $same {
                self
            }
        })*
    };
}

stands!(Bytes => u64, Threads => u32, Seconds => f64, Number => f64, Size => SizeSpec;
    bool, String, Encoding, Distribution, Durability, DataType, Transaction);

impl<T: Clone> Stands<Vec<T>> for List<T> {
    fn of(value: &Vec<T>) -> Self {
        List(value.clone())
    }
    fn value(self) -> Vec<T> {
        self.0
    }
}

impl<T: Clone> Stands<T> for Count<T> {
    fn of(value: &T) -> Self {
        Count(value.clone())
    }
    fn value(self) -> T {
        self.0
    }
}

/// A table of a file stands for a struct with the same field names. What is left out keeps its default, and what has
/// its default is left out; the fields in the second list are optional in the struct too.
macro_rules! table_stands {
    ($file:ident => $type:ident { $($field:ident),* } optional { $($optional:ident),* }) => {
        impl $file {
            fn over(self, mut value: $type) -> $type {
                $(if let Some(written) = self.$field {
                    value.$field = written.value();
                })*
                $(value.$optional = self.$optional.map(Stands::value).or(value.$optional);)*
                value
            }
        }

        impl Stands<$type> for $file {
            fn of(value: &$type) -> Self {
                let usual = $type::default();
                $file {
                    $($field: (value.$field != usual.$field).then(|| Stands::of(&value.$field)),)*
                    $($optional: value.$optional.as_ref().map(Stands::of),)*
                }
            }

            fn value(self) -> $type {
                self.over($type::default())
            }
        }
    };
}

table_stands!(KeyFile => KeySpec {
    size, encoding, scattered, spacing, alternate, prefix_groups, prefix_size
} optional { file });
table_stands!(IndexFile => Index { from, length, clustering } optional {});
table_stands!(CollectionsFile => Collections { count, r#type } optional {});
table_stands!(ValueFile => ValueSpec { size, compressed_share } optional {});
table_stands!(MixFile => Mix {
    get, multi_get, put, insert, update, delete, scan, merge, read_modify_write, transaction,
    insert_indexed, push, pop
} optional {});
table_stands!(ScanFile => Scan { rows, uniform_rows, reverse, prefix, index, rows_per_call } optional {});
table_stands!(PhaseFile => Phase {
    name, distribution, clustered, grows, miss, threads, readers, writers, ops, each_key, seconds, warmup_seconds,
    join, atomic, emulate, multi_get_keys, transaction_ops, each_round, settle_before, reopen_before, drop_caches_before, mix, scan
} optional { existing, transaction, durability, value_size });

impl WorkloadFile {
    /// The workload that the file means; `stem` is its name if it gives none.
    pub(super) fn into_workload(self, stem: &str) -> Workload {
        let usual = Phase { threads: self.threads.map_or(1, Stands::value), ..Phase::default() };
        Workload {
            name: self.name.unwrap_or_else(|| stem.to_string()),
            about: self.about.unwrap_or_default(),
            source: self.source,
            mends: self.mends.map_or_else(Vec::new, |list| list.0),
            variant_of: self.variant_of,
            layouts: self.layouts.map_or_else(Vec::new, |list| list.0),
            seed: self.seed.map_or(defaults::SEED, Stands::value),
            runs: self.runs.map_or(defaults::RUNS, Stands::value),
            budget_seconds: self.budget_seconds.map(Stands::value),
            keys: self.keys.map_or(defaults::KEYS, Stands::value),
            keyspaces: self.keyspaces.map_or_else(defaults::keyspaces, Stands::value),
            collections: self.collections.map(Stands::value).unwrap_or_default(),
            key: self.key.map(Stands::value).unwrap_or_default(),
            value: self.value.map(Stands::value).unwrap_or_default(),
            indexes: self.indexes.into_iter().flatten().map(Stands::value).collect(),
            durability: self.durability.unwrap_or_default(),
            or_weaker: self.or_weaker.unwrap_or_default(),
            cache_bytes: self.cache_bytes.map(Stands::value),
            memory_bytes: self.memory_bytes.map(Stands::value),
            rounds: self.rounds.map_or_else(defaults::rounds, Stands::value),
            phases: self.phases.into_iter().map(|phase| phase.over(usual.clone())).collect(),
        }
    }

    /// The file for a workload: what the workload itself says stands there, in phases only what is not the default.
    pub(super) fn of(workload: &Workload) -> Self {
        WorkloadFile {
            name: Some(workload.name.clone()),
            about: Some(workload.about.clone()),
            source: workload.source.clone(),
            mends: (!workload.mends.is_empty()).then(|| List(workload.mends.clone())),
            variant_of: workload.variant_of.clone(),
            layouts: (!workload.layouts.is_empty()).then(|| List(workload.layouts.clone())),
            seed: Some(Stands::of(&workload.seed)),
            runs: Some(Stands::of(&workload.runs)),
            budget_seconds: workload.budget_seconds.as_ref().map(Stands::of),
            keys: Some(Stands::of(&workload.keys)),
            keyspaces: (workload.keyspaces != defaults::keyspaces()).then(|| Stands::of(&workload.keyspaces)),
            threads: None,
            durability: Some(workload.durability),
            or_weaker: workload.or_weaker.then_some(true),
            cache_bytes: workload.cache_bytes.as_ref().map(Stands::of),
            memory_bytes: workload.memory_bytes.as_ref().map(Stands::of),
            collections: (workload.collections != Collections::default())
                .then(|| Stands::of(&workload.collections)),
            key: Some(Stands::of(&workload.key)),
            value: Some(Stands::of(&workload.value)),
            indexes: Some(workload.indexes.iter().map(Stands::of).collect())
                .filter(|all: &Vec<_>| !all.is_empty()),
            rounds: (workload.rounds != defaults::rounds()).then(|| Stands::of(&workload.rounds)),
            phases: workload.phases.iter().map(Stands::of).collect(),
        }
    }
}
