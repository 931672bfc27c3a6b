//! `kvdyno report DIR`.

use super::error::CliError;
use super::layouts;
use super::outside;
use crate::results::store::{RunFolder, newest};
use crate::results::summary::{Summary, is_mutant};
use std::path::{Path, PathBuf};

/// Report on a results folder.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// The folder of a run, or one that holds runs: then its newest.
    #[arg(default_value = "kvdyno-results")]
    dir: PathBuf,
    /// text, markdown, html, csv, csv-long, hgrm, hlog, gobench or json (docs/formats.md).
    #[arg(long, default_value = "text")]
    format: String,
    /// Show ratios to ENGINE instead of ratios to the fastest engine of each table.
    #[arg(long, value_name = "ENGINE")]
    baseline: Option<String>,
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help = layouts::HELP)]
    layout: Vec<String>,
    /// Write the layouts, or the files of hgrm and hlog, below DIR, a file for each cell or run, instead of printing them.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the report, or writes its layouts.
pub fn run(args: &ReportArgs) -> Result<u8, CliError> {
    let format = crate::report::format(&args.format).ok_or_else(|| {
        let known: Vec<&str> = crate::report::FORMATS.iter().map(|format| format.name).collect();
        super::args::unknown("format", &args.format, &known, "kvdyno report --help")
    })?;
    let layouts = layouts::named(&args.layout)?;
    layouts::check(&layouts, format, args.out.as_deref())?;
    let results = open(&args.dir)?;
    results.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let finished = results.finished().map_err(|error| CliError::failed(error.to_string()))?;
    if let Some(name) = &args.baseline {
        let mut engines: Vec<&str> = results.run().trials.iter().map(|trial| trial.engine.as_str()).collect();
        engines.sort_unstable();
        engines.dedup();
        if !engines.contains(&name.as_str()) {
            return Err(super::args::unknown("engine", name, &engines, "kvdyno report"));
        }
        let is_floor = results.run().trials.iter().any(|trial| trial.is_floor && trial.engine == *name);
        if is_floor || is_mutant(name) {
            return Err(CliError::usage(format!("{name} is never ranked, so there are no ratios to it"))
                .hint("name an engine that has a rank"));
        }
    }
    let summary = Summary::against(results.run(), finished, args.baseline.as_deref());
    let csv = format.name == "csv";
    let pages = format.pages(&summary);
    if args.out.is_none() && format.is_one_page() && pages.as_ref().is_some_and(|pages| pages.len() > 1) {
        let count = pages.map_or(0, |pages| pages.len());
        return Err(CliError::usage(format!("this run has {count} files of format {}", format.name))
            .hint("say where they are to be written: --out DIR"));
    }
    match &args.out {
        Some(out) if layouts.is_empty() => layouts::write_pages(pages.unwrap_or_default(), out)?,
        Some(out) => layouts::write(&layouts, csv, &summary, results.run(), out)?,
        None if layouts.is_empty() => {
            print!("{}", (format.render)(&summary, results.run()));
            let table = outside::table(results.run(), &summary, results.path());
            if let Some(table) = table.filter(|_| format.name == "text") {
                print!("\n{}", table.text);
            }
        }
        None => {
            if !layouts::print(&layouts, csv, &summary, results.run()) {
                return Err(CliError::usage("no layout that was asked for has anything to show of this run")
                    .hint("without --layout the report has everything"));
            }
        }
    }
    Ok(0)
}

/// The run in the folder, or the newest of those in it.
pub(super) fn open(dir: &Path) -> Result<RunFolder, CliError> {
    let failed = |error: crate::results::store::StoreError| CliError::failed(error.to_string());
    if !dir.is_dir() {
        return Err(CliError::usage(format!("there is no folder {}", dir.display()))
            .hint("give the folder of a run, as `kvdyno run` printed it"));
    }
    let path = if dir.join("run.json").exists() {
        dir.to_path_buf()
    } else {
        newest(dir).map_err(failed)?.ok_or_else(|| {
            CliError::usage(format!("{} holds no results", dir.display()))
                .hint("give the folder of a run, as `kvdyno run` printed it")
        })?
    };
    RunFolder::open(&path).map_err(failed)
}
