//! Workloads as data: a workload is a named list of phases; a phase is a mix of ops, its generators and its end.

mod arrivals;
mod assumed;
mod builtin;
mod check;
mod collections;
mod data;
mod defaults;
mod explain;
mod fault;
mod file;
mod kind;
mod list;
mod memory;
mod overrides;
mod parse;
mod phase;
#[cfg(test)]
mod properties;
mod quantity;
mod shrink;
mod suite;
mod table;
#[cfg(test)]
mod tests;
mod threads;
mod variants;

pub use arrivals::{Arriving, WhenLate, arrivals_text};
pub use assumed::Assumed;
pub use builtin::{builtin, builtin_names, builtin_scenarios, builtin_suite, builtin_suites, builtin_text};
pub use collections::{Collections, DataType};
pub use data::{Index, KeySpec, ValueSpec};
pub use fault::{FaultKind, MemberFault, Target};
pub use kind::{Access, Mix, OpKind};
pub use memory::{CACHE_DIVISOR, HARNESS_BYTES, STATE_BYTES};
pub use overrides::Overrides;
pub use parse::{WorkloadError, parse, schema};
pub use phase::{Emulate, Phase, Scan, Transaction, Until};
pub use quantity::parse_size;
pub use suite::{Member, Suite, is_suite, parse_suite};
pub use threads::{ThreadsError, parse_threads, with_cpus};
pub use variants::{AGING, Axes, Changes};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The durability level that a workload requests: a minimum (docs/glossary.md).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = WorkloadError, parse_err_fn = defaults::unknown_level)]
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
    /// Whether only the first run of each engine sweeps the complete database; later runs sweep a sample of its keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sweep_once: bool,
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
