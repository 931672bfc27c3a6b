//! `kvdyno report DIR`.

use super::error::CliError;
use crate::results::store::{RunFolder, newest};
use crate::results::summary::Summary;
use std::path::PathBuf;

/// Report on a results folder.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// The folder of a run, or one that holds runs: then its newest.
    #[arg(default_value = "kvdyno-results")]
    dir: PathBuf,
    /// text, markdown, csv or json.
    #[arg(long, default_value = "text")]
    format: String,
}

/// Prints the report.
pub fn run(args: &ReportArgs) -> Result<u8, CliError> {
    let format = crate::report::format(&args.format).ok_or_else(|| {
        let known: Vec<&str> = crate::report::FORMATS.iter().map(|format| format.name).collect();
        super::args::unknown("format", &args.format, &known, "kvdyno report --help")
    })?;
    let failed = |error: crate::results::store::StoreError| CliError::failed(error.to_string());
    if !args.dir.is_dir() {
        return Err(CliError::usage(format!("there is no folder {}", args.dir.display()))
            .hint("give the folder of a run, as `kvdyno run` printed it"));
    }
    let path = if args.dir.join("run.json").exists() {
        args.dir.clone()
    } else {
        newest(&args.dir).map_err(failed)?.ok_or_else(|| {
            CliError::usage(format!("{} holds no results", args.dir.display()))
                .hint("give the folder of a run, as `kvdyno run` printed it")
        })?
    };
    let results = RunFolder::open(&path).map_err(failed)?;
    results.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let summary = Summary::new(results.run(), results.finished().map_err(failed)?);
    print!("{}", (format.render)(&summary, results.run()));
    Ok(0)
}
