//! `kvdyno selftest`: tests kvdyno itself.

use super::error::{CliError, WRONG};
use kvdyno_prove::selftest::{self, Listing};

/// Test kvdyno itself: distributions, random streams, histograms, clock and values.
#[derive(Debug, clap::Args)]
pub struct SelftestArgs {
    /// Seed of all random values.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs all tests. The exit code is 3 if one fails, because results of this build cannot be trusted then.
pub fn run(args: &SelftestArgs) -> Result<u8, CliError> {
    let findings = selftest::run(args.seed);
    println!("{}, seed {}", Listing(&findings), args.seed);
    let has_passed = findings.iter().all(|finding| finding.passed);
    Ok(if has_passed { 0 } else { WRONG })
}
