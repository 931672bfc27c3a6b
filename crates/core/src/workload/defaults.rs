//! The defaults of workloads' own fields, and the names of durability levels.

use super::{Durability, WorkloadError};
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
