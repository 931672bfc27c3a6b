//! The error of a command: an exit code, a message, and a hint about what to do next.

use std::fmt;

/// A trial failed.
pub const FAILED: u8 = 1;
/// A usage error.
pub const USAGE: u8 = 2;
/// Wrong answers, or a broken claim.
pub const WRONG: u8 = 3;
/// An engine named on the command line is not available.
pub const ABSENT: u8 = 4;
/// Two runs whose figures are not comparable.
pub const NOT_COMPARABLE: u8 = 5;
/// `compare --fail-on regression`: a figure got worse.
pub const REGRESSION: u8 = 10;
/// `compare --fail-on inconclusive`: a regression was neither found nor ruled out.
pub const INCONCLUSIVE: u8 = 11;
/// A bug in kvdyno: it panicked. Completed trials are saved.
pub const DEFECT: u8 = 70;

/// The error of a command.
#[derive(Debug)]
pub struct CliError {
    /// The exit code.
    pub code: u8,
    message: String,
    hint: Option<String>,
}

impl CliError {
    /// A usage error: the request is wrong or impossible.
    pub fn usage(message: impl Into<String>) -> CliError {
        CliError { code: USAGE, message: message.into(), hint: None }
    }

    /// A failure caused by the machine or a file.
    pub fn failed(message: impl Into<String>) -> CliError {
        CliError { code: FAILED, message: message.into(), hint: None }
    }

    /// An engine is not available.
    pub fn absent(message: impl Into<String>) -> CliError {
        CliError { code: ABSENT, message: message.into(), hint: None }
    }

    /// Adds a hint about what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
