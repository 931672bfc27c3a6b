//! `kvdyno doctor --self`: tests kvdyno itself.

use super::error::{CliError, WRONG};
use kvdyno_prove::selftest::{self, Listing};

/// The former command `kvdyno selftest`.
#[derive(Debug, clap::Args)]
pub(super) struct SelftestArgs {
    /// Seed of all random values.
    #[arg(long, default_value_t = 1, value_parser = super::number::number(0..=u64::MAX))]
    pub seed: u64,
}

/// Runs all tests. The exit code is 3 if one fails, because results of this build cannot be trusted then.
pub(super) fn run(seed: u64) -> Result<u8, CliError> {
    let findings = selftest::run(seed);
    println!("{}, seed {seed}", Listing(&findings));
    let has_passed = findings.iter().all(|finding| finding.passed);
    Ok(if has_passed { 0 } else { WRONG })
}
