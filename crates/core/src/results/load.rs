//! Loads records and runs from JSON that may be newer, damaged or hostile.

use super::{PhaseRecord, Record, Run, SCHEMA, Trial};
use kvdyno_measure::Usage;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// The maximum size of a record, bytes; records have some hundred kilobytes.
pub(super) const RECORD_LIMIT_BYTES: u64 = 256 << 20;

/// The maximum size of a `run.json` and of a journal, bytes.
pub(super) const RUN_LIMIT_BYTES: u64 = 64 << 20;

/// Why a text is not a valid record or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It was written by a newer version.
    NewerSchema {
        /// Its schema; the schema of this version is [`SCHEMA`].
        found: u32,
    },
    /// It is not JSON, lacks a field, or has a field of another type.
    Invalid {
        /// What was expected, with line and column.
        reason: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NewerSchema { found } => write!(
                out,
                "it has schema {found}, but this version of kvdyno supports schemas up to {SCHEMA}: use the version that wrote it, or a newer one"
            ),
            LoadError::Invalid { reason } => {
                write!(out, "not a valid file of kvdyno: {reason}: restore the file, or measure again")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The one field that all schemas share.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

/// Reads a record; fails on a newer schema and on anything that is not a record. Never panics on any input.
pub fn parse_record(json: &[u8]) -> Result<Record, LoadError> {
    let mut record: Record = parse(json)?;
    mark_floor(&mut record.trial);
    if record.is_of_client_alone() {
        record.phases.iter_mut().for_each(forget_usage);
        record.forget_others();
    }
    Ok(record)
}

impl Record {
    /// Whether the engine is a server whose use of resources was not measured: the effective setting `usage` is `client`.
    pub fn is_of_client_alone(&self) -> bool {
        let options = self.engine.iter().flat_map(|engine| &engine.options);
        options.into_iter().any(|(name, value)| name == "usage" && value == "client")
    }

    /// Removes the CPU use of other programs: such a server is one of them and not a disturbance.
    pub fn forget_others(&mut self) {
        self.noise.iter_mut().for_each(|noise| noise.other_cpu_share = None);
        let noises = self.phases.iter_mut().filter_map(|phase| phase.noise.as_mut());
        noises.for_each(|noise| noise.other_cpu_share = None);
    }
}

/// Removes the resources of the client's process, and the disk use of a folder that the server does not use. The run delay
/// of its threads is kept, because it shows how far the figures can be trusted.
fn forget_usage(phase: &mut PhaseRecord) {
    phase.usage = Usage { run_delay_ns: phase.usage.run_delay_ns, ..Usage::default() };
    (phase.watcher, phase.device) = (None, None);
    (phase.disk_peak, phase.disk_end, phase.disk_settled) = (None, None, None);
    for row in &mut phase.series {
        (row.rss_bytes, row.cpu_ns, row.written_bytes, row.disk_allocated_bytes) = (None, None, None, None);
    }
}

/// Reads a `run.json`; fails on a newer schema and on anything that is not a run. Never panics on any input.
pub fn parse_run(json: &[u8]) -> Result<Run, LoadError> {
    let mut run: Run = parse(json)?;
    run.plan.trials.iter_mut().for_each(mark_floor);
    Ok(run)
}

/// Marks the floors in files without `is_floor`. Before that field existed, the name of a floor began with `null`.
fn mark_floor(trial: &mut Trial) {
    trial.is_floor |= trial.engine == "null" || trial.engine.starts_with("null-");
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, LoadError> {
    // Check the schema first: files of newer versions may have any form, and the error must report the version.
    let versioned: Versioned = serde_json::from_slice(json).map_err(invalid)?;
    match versioned.schema {
        0 => Err(LoadError::Invalid { reason: "schema 0 does not exist".to_string() }),
        1..=SCHEMA => serde_json::from_slice(json).map_err(invalid),
        found => Err(LoadError::NewerSchema { found }),
    }
}

fn invalid(error: serde_json::Error) -> LoadError {
    LoadError::Invalid { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;
    use kvdyno_measure::{Noise, PhaseNoise};
    use std::sync::Arc;

    #[test]
    fn resources_of_the_client_are_not_those_of_a_remote_server() {
        let with = |usage: &str| {
            let mut record = fixture::records().remove(0);
            record.noise = Some(Noise { other_cpu_share: Some(0.5), ..Noise::default() });
            record.phases[0].noise = Some(PhaseNoise { other_cpu_share: Some(0.5), ..PhaseNoise::default() });
            let engine = Arc::make_mut(record.engine.as_mut().unwrap());
            engine.options.push(("usage".to_string(), usage.to_string()));
            parse_record(&serde_json::to_vec(&record).unwrap()).unwrap()
        };
        let (ours, theirs) = (with("whole"), with("client"));
        let others = |record: &Record| {
            let of_phase = record.phases[0].noise.unwrap().other_cpu_share;
            (record.noise.as_ref().unwrap().other_cpu_share, of_phase)
        };
        assert_eq!((others(&ours), others(&theirs)), ((Some(0.5), Some(0.5)), (None, None)));
        let (known, unknown) = (&ours.phases[0], &theirs.phases[0]);
        assert!(known.usage.user_cpu_ns.is_some() && known.disk_end.is_some());
        assert_eq!(
            (unknown.usage.user_cpu_ns, unknown.usage.rss_bytes, unknown.disk_end),
            (None, None, None)
        );
        assert!(unknown.series.iter().all(|row| row.rss_bytes.is_none() && row.cpu_ns.is_none()));
        assert_eq!(unknown.usage.run_delay_ns, known.usage.run_delay_ns);
        assert_eq!((unknown.ops, &unknown.kinds), (known.ops, &known.kinds));
    }
}
