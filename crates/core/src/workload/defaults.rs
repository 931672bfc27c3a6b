//! The defaults of workloads' own fields, and the error of an unknown durability level.

use super::{Durability, WorkloadError};
use kvdyno_measure::text::nearest;
use strum::VariantNames;

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

/// The error of an unknown level suggests the nearest name.
pub(super) fn unknown_level(text: &str) -> WorkloadError {
    let hint = match nearest(text, Durability::VARIANTS) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    };
    let message = format!("expected `none`, `process`, `power` or `default`, got `{text}`{hint}");
    WorkloadError::new("durability", message)
}
