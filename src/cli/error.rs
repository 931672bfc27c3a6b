//! The error of a command: an exit code, a message, and a hint about what to do next.

use kvdyno_core::engine::EngineError;
use kvdyno_core::results::store::StoreError;
use kvdyno_core::runner::PlanError;
use kvdyno_core::workload::WorkloadError;
use kvdyno_measure::shortage::cure;
use kvdyno_measure::text::harmless_text;
use std::fmt;
use std::io;
use std::path::Path;

/// A trial failed.
pub(super) const FAILED: u8 = 1;
/// A usage error.
pub(super) const USAGE: u8 = 2;
/// Wrong answers, or a broken claim.
pub(super) const WRONG: u8 = 3;
/// An engine named on the command line is not available.
pub(super) const ABSENT: u8 = 4;
/// Two runs whose figures are not comparable.
pub(super) const NOT_COMPARABLE: u8 = 5;
/// `compare --fail-on regression`, `ab --fail-on`: a figure got worse.
pub(super) const REGRESSION: u8 = 10;
/// `compare --fail-on inconclusive`, `bisect`: a regression was neither found nor ruled out, or its version is not known.
pub(super) const INCONCLUSIVE: u8 = 11;
/// A bug in kvdyno: it panicked. Completed trials are saved.
pub(super) const DEFECT: u8 = 70;

/// The error of a command.
#[derive(Debug)]
pub(super) struct CliError {
    /// The exit code.
    pub code: u8,
    message: String,
    hint: Option<String>,
}

impl CliError {
    /// A usage error: the request is wrong or impossible.
    pub(super) fn usage(message: impl fmt::Display) -> CliError {
        CliError { code: USAGE, message: message.to_string(), hint: None }
    }

    /// A failure caused by the machine or a file.
    pub(super) fn failed(message: impl fmt::Display) -> CliError {
        CliError { code: FAILED, message: message.to_string(), hint: None }
    }

    /// An engine is not available.
    pub(super) fn absent(message: impl fmt::Display) -> CliError {
        CliError { code: ABSENT, message: message.to_string(), hint: None }
    }

    /// Results that are not comparable.
    pub(super) fn not_comparable(message: impl fmt::Display) -> CliError {
        CliError { code: NOT_COMPARABLE, message: message.to_string(), hint: None }
    }

    /// The error of an operation (`write`) on a file or folder.
    pub(super) fn cannot(what: &str, path: &Path) -> impl Fn(io::Error) -> CliError {
        move |error| CliError::failed(format!("cannot {what} {}: {error}", path.display()))
    }

    /// The error of writing a file or folder below --out.
    pub(super) fn cannot_write_out(path: &Path) -> impl Fn(io::Error) -> CliError {
        let cannot = CliError::cannot("write", path);
        move |error| {
            let hint =
                cure(&error).unwrap_or("check that --out names a writable folder on a disk with free space");
            cannot(error).hint(hint)
        }
    }

    /// What happened, without the hint.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a hint about what to do next.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&harmless_text(&self.message))?;
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {}", harmless_text(hint)),
            None => Ok(()),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        CliError::failed(error.to_string())
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> CliError {
        CliError::failed(error.to_string())
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> CliError {
        CliError::failed(format!("cannot write JSON: {error}"))
    }
}

impl From<WorkloadError> for CliError {
    fn from(error: WorkloadError) -> CliError {
        CliError::usage(error.to_string())
    }
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> CliError {
        let hint = match error {
            PlanError::Workload { .. } => None,
            PlanError::Trials(_) => {
                Some("use fewer repetitions (--runs), engines (--engines) or workloads".into())
            }
        };
        CliError { hint, ..CliError::usage(error.to_string()) }
    }
}
