//! `kvdyno merge`: merges the slices of a plan into one run.

use super::error::CliError;
use super::slice::read_plan;
use kvdyno_core::results::merge::{MergeError, Merged, merge};
use kvdyno_measure::text::counted;
use kvdyno_report::CommandLine;
use std::path::PathBuf;

/// Merge the results of several machines.
#[derive(Debug, clap::Args)]
pub(super) struct MergeArgs {
    /// Folders of slices, or folders that contain them.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Write the merged run to this new folder.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Check the slices against the plan in FILE, and show its trials that are in no slice as missing.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// Merges, and prints what was merged.
pub(super) fn run(args: &MergeArgs) -> Result<u8, CliError> {
    if let Some(missing) = args.dirs.iter().find(|dir| !dir.is_dir()) {
        return Err(CliError::usage(format!("folder {} does not exist", missing.display()))
            .hint("name the folders that `kvdyno run --plan` has printed, or their parent"));
    }
    let plan = args.plan.as_deref().map(read_plan).transpose()?;
    let merged = merge(&args.dirs, plan.as_ref(), &args.output)?;
    merged.notes().iter().for_each(|note| eprintln!("{note}"));
    let Merged { runs, machines, records, .. } = merged;
    println!(
        "merged {} from {} on {}",
        counted(records as u64, "record", "records"),
        counted(runs as u64, "run", "runs"),
        counted(machines as u64, "machine", "machines")
    );
    println!("results: {}", args.output.display());
    println!("report: {}", CommandLine::of("report").with_path(&args.output));
    Ok(0)
}

impl From<MergeError> for CliError {
    fn from(error: MergeError) -> CliError {
        let text = error.to_string();
        match error {
            MergeError::Store(error) => error.into(),
            MergeError::NoResults(_) | MergeError::NoSlices(_) => CliError::usage(text)
                .hint("name the folders that `kvdyno run --plan` has printed, or their parent"),
            MergeError::NotPlanned(_) => CliError::usage(text).hint(
                "only results of `kvdyno run --plan` can be merged; `kvdyno compare` compares two other runs",
            ),
            MergeError::Exists(_) => CliError::usage(text).hint("name a new folder"),
            MergeError::Differ(_) => CliError::not_comparable(text)
                .hint("merge only slices of one plan, and omit one of two folders that disagree"),
        }
    }
}
