//! `kvdyno run`: plan, measure, report.

use super::error::{CliError, FAILED, INTERRUPTED, WRONG};
use super::kept::KeepArgs;
use super::layouts;
use super::limits::{self, LimitArgs};
use super::plan;
use super::progress::Progress;
use super::sizes::Sizes;
use crate::engine::Registry;
use crate::measure::signals;
use crate::results::store::{RunFolder, newest};
use crate::results::summary::Summary;
use crate::results::{Outcome, Record};
use crate::runner::{self, Ending, Runner};
use std::path::PathBuf;
use std::time::Duration;

/// Measure engines under workloads.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Workloads and suites: names (`kvdyno workloads`) or TOML files.
    #[arg(value_name = "WORKLOAD")]
    pub(super) workloads: Vec<String>,
    /// Engines, separated by commas; without it: those of a suite, else every engine this build has.
    #[arg(short, long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) engines: Vec<String>,
    #[command(flatten)]
    pub(super) sizes: Sizes,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) kept: KeepArgs,
    /// Set an option of an engine; may be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    pub(super) options: Vec<String>,
    /// Where results go: a folder per run below this one.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results")]
    pub(super) results: PathBuf,
    /// Where databases are made and removed; default: in the run's folder.
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Go on with a run that was stopped: the newest one, or that in DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(super) resume: Option<Option<PathBuf>>,
    /// End a trial in which no op ends for this long.
    #[arg(long, value_name = "N", default_value_t = 120)]
    pub(super) stall_seconds: u64,
    /// Start even if the disk is smaller than the plan's estimate.
    #[arg(long)]
    pub(super) ignore_space: bool,
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help = layouts::HELP)]
    pub(super) layout: Vec<String>,
    /// No progress on stderr.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

impl RunArgs {
    /// What runs without a command.
    pub fn quick() -> RunArgs {
        RunArgs {
            workloads: vec!["quick".into()],
            engines: Vec::new(),
            sizes: Sizes::default(),
            limits: LimitArgs::default(),
            kept: KeepArgs::default(),
            options: Vec::new(),
            results: PathBuf::from("kvdyno-results"),
            data: None,
            resume: None,
            stall_seconds: 120,
            ignore_space: false,
            layout: Vec::new(),
            quiet: false,
        }
    }
}

fn resumed(args: &RunArgs, wanted: &Option<PathBuf>) -> Result<RunFolder, CliError> {
    let failed = |error: crate::results::store::StoreError| CliError::failed(error.to_string());
    let path = match wanted {
        Some(path) => path.clone(),
        None => {
            let found = if args.results.is_dir() { newest(&args.results).map_err(failed)? } else { None };
            found.ok_or_else(|| {
                CliError::usage(format!("no run to go on with in {}", args.results.display()))
                    .hint("name it: --resume=DIR")
            })?
        }
    };
    let folder = RunFolder::resume(&path).map_err(failed)?;
    limits::check(&folder.run().trials)?;
    Ok(folder)
}

/// Runs the command.
pub fn run(args: &RunArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let registry = Registry::load_for(plugins, &args.engines);
    for refused in registry.refused() {
        eprintln!("warning: plug-in {} was not loaded: {}", refused.file.display(), refused.reason);
    }
    let failed = |error: crate::results::store::StoreError| CliError::failed(error.to_string());
    let mut results = match &args.resume {
        Some(wanted) => resumed(args, wanted)?,
        None => {
            let planned = plan::plan(args, &registry)?;
            layouts::of_run(&args.layout, &planned)?;
            args.kept.check(&registry, &planned)?;
            RunFolder::create(&args.results, &planned).map_err(failed)?
        }
    };
    let layouts = layouts::of_run(&args.layout, results.run())?;
    let reuse = args.kept.check(&registry, results.run())?;
    results.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let run = results.run().clone();
    for warning in &run.warnings {
        eprintln!("warning: {} {}", warning.text, warning.advice);
    }
    let executable = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find this executable: {error}")))?;
    let runner = Runner {
        executable,
        plugins: registry.plugin_files(),
        keep: args.kept.keep.clone(),
        reuse,
        stall: Duration::from_secs(args.stall_seconds),
    };
    let data = args.data.clone().unwrap_or_else(|| results.path().join("data"));
    signals::count_interrupts();
    let mut progress = Progress::new(args.quiet, &run);
    let ending =
        runner::run(&run.trials, &runner, &mut results, &data, &mut progress).map_err(CliError::failed)?;
    progress.finish();
    // Only if it is empty and ours: the one that a run makes in its own folder.
    if args.data.is_none() {
        let _ = std::fs::remove_dir(&data);
    }
    let records = results.finished().map_err(failed)?;
    let code = exit_code(&records, ending);
    let summary = Summary::new(&run, records);
    layouts::print_ending(&layouts, &summary, &run, results.path());
    println!("results: {}", results.path().display());
    args.kept.tell(&run);
    if ending == Ending::Interrupted {
        eprintln!(
            "stopped; what was measured is saved. Go on with: kvdyno run --resume={}",
            results.path().display()
        );
    }
    Ok(code)
}

/// Wrong answers outrank failures; a refusal is an answer, unless nothing else came.
fn exit_code(records: &[Record], ending: Ending) -> u8 {
    let any = |test: &dyn Fn(&Record) -> bool| records.iter().any(test);
    let is_refused =
        |record: &Record| matches!(&record.outcome, Outcome::Failed { cause, .. } if cause == "refused");
    let is_floor = |record: &Record| crate::results::summary::is_floor(&record.trial.engine);
    if any(&|record| matches!(record.outcome, Outcome::WrongAnswers { .. })) {
        return WRONG;
    }
    if any(&|record| {
        matches!(record.outcome, Outcome::Failed { .. } | Outcome::Crashed { .. }) && !is_refused(record)
    }) {
        return FAILED;
    }
    if ending == Ending::Interrupted {
        return INTERRUPTED;
    }
    let asked: Vec<&Record> = records.iter().filter(|record| !is_floor(record)).collect();
    if !asked.is_empty() && asked.iter().all(|record| is_refused(record)) { FAILED } else { 0 }
}
