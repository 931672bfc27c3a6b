//! What holds where a workload file says nothing, and the texts of durability levels.

use super::{Durability, Index, KeySpec, Mix, Phase, Scan, ValueSpec, WorkloadError};
use crate::generator::{Distribution, Encoding, SizeSpec, nearest};
use std::fmt;
use std::str::FromStr;

/// The seed where none is given: any fixed number serves, the same for all runs.
pub(super) const SEED: u64 = 1;
/// Repetitions where none are given: five let the median carry an interval.
pub(super) const RUNS: u32 = 5;
/// Keys where none are given: over the caches of a processor, and filled in seconds.
pub(super) const KEYS: u64 = 1_000_000;

/// Keyspaces where none are given; also for records from before there were several.
pub(super) fn keyspaces() -> u32 {
    1
}

/// Rounds where none are given; also for records from before there were any.
pub(super) fn rounds() -> u32 {
    1
}

impl Default for Index {
    /// Eight bytes behind the header of a value of full form: all values differ in them.
    fn default() -> Self {
        Index { from: 24, length: 8, clustering: false }
    }
}

impl Default for KeySpec {
    fn default() -> Self {
        KeySpec {
            size: SizeSpec::Fixed(16),
            encoding: Encoding::Binary,
            scattered: false,
            spacing: 2,
            alternate: 0,
            prefix_groups: 0,
            prefix_size: 4,
            file: None,
        }
    }
}

impl Default for ValueSpec {
    fn default() -> Self {
        ValueSpec { size: SizeSpec::Fixed(100), compressed_share: 0.5 }
    }
}

impl Default for Scan {
    fn default() -> Self {
        Scan { rows: 100, uniform_rows: false, reverse: false, prefix: false, index: 0, rows_per_call: 0 }
    }
}

impl Default for Phase {
    fn default() -> Self {
        Phase {
            name: String::new(),
            mix: Mix::default(),
            distribution: Distribution::Uniform,
            clustered: false,
            grows: false,
            miss: 0.0,
            existing: None,
            threads: 1,
            readers: 0,
            writers: 0,
            ops: 0,
            each_key: false,
            seconds: 0.0,
            warmup_seconds: 0.0,
            join: 1,
            atomic: false,
            transaction: None,
            emulate: Vec::new(),
            multi_get_keys: 10,
            transaction_ops: 10,
            scan: Scan::default(),
            each_round: false,
            settle_before: false,
            reopen_before: false,
            drop_caches_before: false,
            durability: None,
            value_size: None,
        }
    }
}

/// The levels as people type them, in ascending order; `default` is the engine's own.
const LEVELS: [(&str, Durability); 4] = [
    ("none", Durability::None),
    ("process", Durability::Process),
    ("power", Durability::Power),
    ("default", Durability::Default),
];

impl fmt::Display for Durability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Durability::None => "none",
            Durability::Process => "process",
            Durability::Power => "power",
            Durability::Default => "default",
        };
        // `pad` and not `write_str`: tables align it.
        out.pad(text)
    }
}

impl FromStr for Durability {
    type Err = WorkloadError;

    /// The level of that name; an unknown one is an error with the nearest name.
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        if let Some((_, level)) = LEVELS.iter().find(|(name, _)| *name == text) {
            return Ok(*level);
        }
        let hint = match nearest(text, &LEVELS.map(|(name, _)| name)) {
            Some(name) => format!("; did you mean `{name}`?"),
            None => String::new(),
        };
        let message = format!("expected `none`, `process`, `power` or `default`, got `{text}`{hint}");
        Err(WorkloadError::new("durability", message))
    }
}
