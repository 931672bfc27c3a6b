//! `kvdyno selftest`: the harness tests itself.

use super::error::{CliError, WRONG};
use crate::audit::selftest::{self, Listing};

/// Test the harness itself.
#[derive(Debug, clap::Args)]
pub struct SelftestArgs {
    /// The seed of everything that is drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs all tests; exit code 3 if one fails, for then no number of this build is to be trusted.
pub fn run(args: &SelftestArgs) -> Result<u8, CliError> {
    let findings = selftest::run(args.seed);
    println!("{}, seed {}", Listing(&findings), args.seed);
    let is_green = findings.iter().all(|finding| finding.passed);
    Ok(if is_green { 0 } else { WRONG })
}
