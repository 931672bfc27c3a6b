//! The harness checks itself: random numbers, histogram, clock and value check must match their definitions. The same
//! seed draws the same numbers, so all findings except those about the clock are reproducible.

mod check_clock;
mod check_distributions;
mod check_histogram;
mod check_values;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A statistical finding fails below this probability. With a fixed seed the result does not vary: a given seed
/// always passes or always fails, and about one seed in 50,000 fails although nothing is wrong.
pub const LEAST_P: f64 = 1e-6;

/// One thing that was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What was tested.
    pub name: String,
    /// The result and the expected result.
    pub measured: String,
    /// Whether the result is as expected.
    pub passed: bool,
}

impl Finding {
    fn new(name: impl Into<String>, passed: bool, measured: impl Into<String>) -> Finding {
        Finding { name: name.into(), measured: measured.into(), passed }
    }

    /// A finding that could not be computed.
    fn broken(name: impl Into<String>, error: impl fmt::Display) -> Finding {
        Finding::new(name, false, error.to_string())
    }
}

/// Width of the name column.
const NAME_WIDTH: usize = 38;

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.passed { "ok" } else { "FAILED" };
        write!(out, "  {word:<7} {:<NAME_WIDTH$} {}", self.name, self.measured)
    }
}

/// Findings as lines of text, with a count at the end.
pub struct Listing<'a>(pub &'a [Finding]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.0 {
            writeln!(out, "{finding}")?;
        }
        let failed = self.0.iter().filter(|finding| !finding.passed).count();
        write!(out, "  {} passed, {failed} failed", self.0.len() - failed)
    }
}

/// Runs all tests. Takes a few seconds.
pub fn run(seed: u64) -> Vec<Finding> {
    let mut findings = check_distributions::all(seed);
    findings.extend(check_histogram::all(seed));
    findings.extend(check_values::all(seed));
    findings.extend(check_clock::all());
    findings
}
