//! The file format of workloads: its optional fields, and the conversion to and from `Workload`.

use super::collections::CollectionsFile;
use super::data::{IndexFile, KeyFile, ValueFile};
use super::list::List;
use super::phase::PhaseFile;
use super::quantity::{Bytes, Count, Seconds};
use super::table::{FileForm, table_form};
use super::threads::Threads;
use super::{Collections, Durability, FaultKind, MemberFault, Phase, Target, Workload, defaults};
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
    /// Only the first run of each engine reads the complete database at its end (the sweep); later runs read a sample of its
    /// keys. Default: false, each run reads all.
    sweep_once: Option<bool>,
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

table_form!(FaultFile => MemberFault { phase, kind, member, at_seconds, for_seconds, delay_seconds });

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
            sweep_once: self.sweep_once.unwrap_or_default(),
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
            seed: FileForm::of(&workload.seed),
            runs: FileForm::of(&workload.runs),
            budget_seconds: FileForm::of(&workload.budget_seconds),
            load_seconds: FileForm::of(&workload.load_seconds),
            keys: FileForm::of(&workload.keys),
            keyspaces: FileForm::of(&workload.keyspaces)
                .filter(|_| workload.keyspaces != defaults::keyspaces()),
            threads: None,
            durability: Some(workload.durability),
            or_weaker: workload.or_weaker.then_some(true),
            sweep_once: workload.sweep_once.then_some(true),
            cache_bytes: FileForm::of(&workload.cache_bytes),
            memory_bytes: FileForm::of(&workload.memory_bytes),
            collections: FileForm::of(&workload.collections)
                .filter(|_| workload.collections != Collections::default()),
            key: FileForm::of(&workload.key),
            value: FileForm::of(&workload.value),
            indexes: Some(workload.indexes.iter().filter_map(FileForm::of).collect())
                .filter(|all: &Vec<_>| !all.is_empty()),
            rounds: FileForm::of(&workload.rounds).filter(|_| workload.rounds != defaults::rounds()),
            phases: workload.phases.iter().filter_map(FileForm::of).collect(),
            faults: workload.faults.iter().filter_map(FileForm::of).collect(),
        }
    }
}
