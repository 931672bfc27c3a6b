//! The defaults of workload files, and the names of durability levels.

use super::{Durability, Index, KeySpec, Mix, Phase, Scan, ValueSpec, WorkloadError};
use crate::generator::{Distribution, Encoding, SizeSpec};
use kvdyno_measure::text::nearest;
use std::fmt;
use std::str::FromStr;

/// The default seed: a fixed number, the same for all runs.
pub(super) const SEED: u64 = 1;
/// Default repetitions: five are enough for an interval of the median.
pub(super) const RUNS: u32 = 5;
/// Default number of keys: larger than the caches of a processor, and filled in seconds.
pub(super) const KEYS: u64 = 1_000_000;

/// Default number of keyspaces; also for old records without the field.
pub(super) fn keyspaces() -> u32 {
    1
}

/// Default number of rounds; also for old records without the field.
pub(super) fn rounds() -> u32 {
    1
}

impl Default for Index {
    /// The eight bytes after the header of a value in full form, in which all values differ.
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

/// The names of the levels on the command line, in ascending order; `default` is the engine's own.
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
        // `pad` instead of `write_str`, so that tables can align it.
        out.pad(text)
    }
}

impl FromStr for Durability {
    type Err = WorkloadError;

    /// Parses the name of a level; the error of an unknown one suggests the nearest name.
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
