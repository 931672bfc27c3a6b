//! `kvdyno run`: plan, measure, report.

use super::error::{CliError, FAILED, WRONG};
use super::kept::KeepArgs;
use super::layouts;
use super::limits::{self, LimitArgs};
use super::live::LiveArgs;
use super::outside;
use super::passwords;
use super::plan;
use super::refusal::refusals;
use super::sizes::Sizes;
use crate::engine::Registry;
use crate::measure::signals;
use crate::report::Layout;
use crate::results::store::{RunFolder, newest};
use crate::results::summary::Summary;
use crate::results::{Cause, Outcome, Record, Run};
use crate::runner::{self, Ending, Runner, Seeds};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    /// Let every repetition do the same ops on the same rows; without it each has a seed of its own, made from --seed.
    #[arg(long)]
    pub(super) same_ops: bool,
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
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) stall_seconds: u64,
    /// Start even if the disk is smaller than the plan's estimate.
    #[arg(long)]
    pub(super) ignore_space: bool,
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help = layouts::HELP)]
    pub(super) layout: Vec<String>,
    #[command(flatten)]
    pub(super) live: LiveArgs,
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
            same_ops: false,
            options: Vec::new(),
            results: PathBuf::from("kvdyno-results"),
            data: None,
            resume: None,
            stall_seconds: 120,
            ignore_space: false,
            layout: Vec::new(),
            live: LiveArgs::default(),
        }
    }

    /// What differs between the repetitions of a new run.
    pub(super) fn seeds(&self) -> Seeds {
        match (self.same_ops, self.kept.outlives_trials()) {
            (true, _) => Seeds::Same,
            (false, true) => Seeds::OfOps,
            (false, false) => Seeds::OfAll,
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
    args.live.check()?;
    // What it tells on the way nobody need read; its results are in files too.
    signals::outlive_the_reader();
    for (flag, folder) in [("--results", Some(&args.results)), ("--data", args.data.as_ref())] {
        if folder.is_some_and(|folder| folder.to_str().is_none()) {
            return Err(CliError::usage(format!("{flag}: the folder's name is not UTF-8"))
                .hint("name another one: records and engines take names as UTF-8"));
        }
    }
    let registry = super::plugins::registry(plugins, &args.engines)?;
    super::plugins::warn(&registry, &args.engines);
    let failed = |error: crate::results::store::StoreError| CliError::failed(error.to_string());
    let mut results = folder_of(args, &registry)?;
    let layouts = layouts::of_run(&args.layout, results.run())?;
    let reuse = args.kept.check(&registry, results.run())?;
    let run = results.run().clone();
    let earlier = if args.resume.is_some() { results.finished().map_err(failed)? } else { Vec::new() };
    let (mut live, server) = args.live.begin(&run, &earlier)?;
    results.warnings().iter().for_each(|warning| live.tell(&format!("warning: {warning}")));
    for warning in &run.warnings {
        live.tell(&format!("warning: {} {}", warning.text, warning.advice));
    }
    let runner = runner_of(args, plugins, &registry, reuse)?;
    let data = args.data.clone().unwrap_or_else(|| results.path().join("data"));
    signals::count_interrupts();
    args.live.take_terminal(&mut live)?;
    let ending = runner::run(&run.trials, &runner, &mut results, &data, &mut live).map_err(|text| {
        remove_data(args, &data);
        let go_on = format!("kvdyno run --resume={}", results.path().display());
        CliError::failed(text).hint(format!("what was measured is saved; go on with: {go_on}"))
    })?;
    live.finish(ending == Ending::Complete, &results.path().to_string_lossy());
    drop(server);
    let has_failed = outside::concerns(&run)
        && ending != Ending::Interrupted
        && outside::measure(
            &run,
            results.path(),
            &data,
            (&runner.executable, &runner.environment),
            args.live.is_silent(),
        )?;
    remove_data(args, &data);
    let records = results.finished().map_err(failed)?;
    let refusals = refusals(&run, &records, &registry);
    let has_failed = has_failed || !refusals.is_empty();
    let code = exit_code(&records, ending).max(u8::from(has_failed) * FAILED);
    let summary = Summary::new(&run, records);
    show(&run, &summary, &layouts, results.path())?;
    println!("results: {}", results.path().display());
    args.kept.tell(&run);
    if ending == Ending::Interrupted && !args.live.is_json() {
        eprintln!(
            "stopped; what was measured is saved. Go on with: kvdyno run --resume={}",
            results.path().display()
        );
    }
    write_page(&results, &summary, &run);
    refusals.iter().for_each(|refusal| eprintln!("error: {refusal}"));
    Ok(code)
}

/// Only if it is empty and ours: the one that a run makes in its own folder.
fn remove_data(args: &RunArgs, data: &Path) {
    if args.data.is_none() {
        let _ = std::fs::remove_dir(data);
    }
}

/// The folder of a new run, planned and made, or of one that goes on.
fn folder_of(args: &RunArgs, registry: &Registry) -> Result<RunFolder, CliError> {
    if let Some(wanted) = &args.resume {
        return resumed(args, wanted);
    }
    let planned = plan::plan(args, registry)?;
    layouts::of_run(&args.layout, &planned)?;
    args.kept.check(registry, &planned)?;
    RunFolder::create(&args.results, &planned).map_err(|error| CliError::failed(error.to_string()))
}

/// What starts the trials.
fn runner_of(
    args: &RunArgs,
    plugins: &[PathBuf],
    registry: &Registry,
    reuse: BTreeMap<String, PathBuf>,
) -> Result<Runner, CliError> {
    let executable = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find this executable: {error}")))?;
    Ok(Runner {
        executable,
        plugins: registry.plugin_files(),
        keep: args.kept.keep.clone(),
        reuse,
        stall: Duration::from_secs(args.stall_seconds),
        environment: environment(args, plugins)?,
    })
}

/// What the end of a run shows: the table of servers, or its layouts.
fn show(run: &Run, summary: &Summary, layouts: &[&Layout], folder: &Path) -> Result<(), CliError> {
    let table = if outside::concerns(run) { outside::table(run, summary, folder) } else { None };
    let Some(table) = table else {
        layouts::print_ending(layouts, summary, run, folder);
        return Ok(());
    };
    table.keep(folder)?;
    print!("{}", table.text);
    layouts::print_rest(summary, folder);
    Ok(())
}

/// Writes the page into the run's folder and names it; where that fails it is told, for the results are safe.
fn write_page(results: &RunFolder, summary: &Summary, run: &Run) {
    let Some(html) = crate::report::format("html") else { return };
    match results.write_report("report.html", (html.render)(summary, run).as_bytes()) {
        Ok(path) => println!("report: {}", path.display()),
        Err(error) => eprintln!(
            "warning: no report.html: {error}; `kvdyno report {} --format html` prints it",
            results.path().display()
        ),
    }
}

/// What trials find in their environment beside the user's own: passwords, and where plug-ins are, for engines that start
/// this program again.
fn environment(args: &RunArgs, plugins: &[PathBuf]) -> Result<Vec<(String, String)>, CliError> {
    let mut all = passwords::environment(&args.options)?;
    if !plugins.is_empty() {
        let known = std::env::var("KVDYNO_PLUGINS").ok();
        let folders = plugins.iter().map(|folder| folder.to_string_lossy().into_owned());
        all.push(("KVDYNO_PLUGINS".into(), folders.chain(known).collect::<Vec<_>>().join(":")));
    }
    Ok(all)
}

/// Wrong answers outrank failures; a refusal is an answer, unless nothing else came.
fn exit_code(records: &[Record], ending: Ending) -> u8 {
    let any = |test: &dyn Fn(&Record) -> bool| records.iter().any(test);
    let is_refused = |record: &Record| matches!(&record.outcome, Outcome::Failed { cause, .. } if *cause == Cause::Refused);
    if any(&|record| matches!(record.outcome, Outcome::WrongAnswers { .. })) {
        return WRONG;
    }
    if any(&|record| {
        matches!(record.outcome, Outcome::Failed { .. } | Outcome::Crashed { .. }) && !is_refused(record)
    }) {
        return FAILED;
    }
    if ending == Ending::Interrupted {
        return signals::stopped_code();
    }
    let asked: Vec<&Record> = records.iter().filter(|record| !record.trial.is_floor).collect();
    if !asked.is_empty() && asked.iter().all(|record| is_refused(record)) { FAILED } else { 0 }
}
