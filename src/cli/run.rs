//! `kvdyno run`: plans a run, measures it and prints the report.

use super::error::{CliError, FAILED, WRONG};
use super::kept::KeepArgs;
use super::layouts;
use super::limits::{self, LimitArgs};
use super::live::LiveArgs;
use super::passwords;
use super::plan;
use super::redis_benchmark;
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

/// Run workloads on engines and report the results.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Workloads and suites to run: names (see `kvdyno workloads`) or TOML files.
    #[arg(value_name = "WORKLOAD")]
    pub(super) workloads: Vec<String>,
    /// Engines to run, separated by commas [default: the suite's engines, or all available engines].
    #[arg(short, long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) engines: Vec<String>,
    /// Run the same ops on the same rows in every repetition. By default, each repetition has its own seed, derived from
    /// --seed.
    #[arg(long)]
    pub(super) same_ops: bool,
    /// Set an option of an engine. Can be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    pub(super) options: Vec<String>,
    /// Write the results of the run to a new folder in DIR.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results")]
    pub(super) results: PathBuf,
    /// Create temporary databases in DIR [default: the run's folder].
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Resume an interrupted run: the newest one, or the one in DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub(super) resume: Option<Option<PathBuf>>,
    /// Kill a trial that makes no progress for N seconds.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) stall_seconds: u64,
    /// Start even if the disk has less free space than the estimate of the plan.
    #[arg(long)]
    pub(super) ignore_space: bool,
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help = layouts::HELP)]
    pub(super) layout: Vec<String>,
    // The groups with a heading come last because a heading applies to all following flags.
    #[command(flatten)]
    pub(super) sizes: Sizes,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) kept: KeepArgs,
    #[command(flatten)]
    pub(super) live: LiveArgs,
}

impl RunArgs {
    /// The arguments of `kvdyno` without a command.
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

fn resumed(args: &RunArgs, requested: &Option<PathBuf>) -> Result<RunFolder, CliError> {
    let failed = |error: crate::results::store::StoreError| CliError::failed(error.to_string());
    let path = match requested {
        Some(path) => path.clone(),
        None => {
            let found = if args.results.is_dir() { newest(&args.results).map_err(failed)? } else { None };
            found.ok_or_else(|| {
                CliError::usage(format!("no run to resume in {}", args.results.display()))
                    .hint("name the folder of the run: --resume=DIR")
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
    // Progress needs no reader, and the results are also saved in files.
    signals::outlive_the_reader();
    for (flag, folder) in [("--results", Some(&args.results)), ("--data", args.data.as_ref())] {
        if folder.is_some_and(|folder| folder.to_str().is_none()) {
            return Err(CliError::usage(format!("{flag}: the folder's name is not valid UTF-8"))
                .hint("use another folder: records and engines require UTF-8 names"));
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
    results.warnings().iter().for_each(|warning| live.message(&format!("warning: {warning}")));
    for warning in &run.warnings {
        live.message(&format!("warning: {} {}", warning.text, warning.advice));
    }
    let runner = runner_of(args, plugins, &registry, reuse)?;
    let data = args.data.clone().unwrap_or_else(|| results.path().join("data"));
    signals::count_interrupts();
    args.live.take_terminal(&mut live)?;
    let ending = runner::run(&run.trials, &runner, &mut results, &data, &mut live).map_err(|text| {
        remove_data(args, &data);
        let resume = format!("kvdyno run --resume={}", results.path().display());
        CliError::failed(text).hint(format!("completed trials are saved; resume with: {resume}"))
    })?;
    live.finish(ending == Ending::Complete, &results.path().to_string_lossy());
    drop(server);
    let has_failed = redis_benchmark::applies_to(&run)
        && ending != Ending::Interrupted
        && redis_benchmark::measure(
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
    args.kept.report(&run);
    if ending == Ending::Interrupted && !args.live.is_json() {
        eprintln!(
            "interrupted; completed trials are saved. Resume with: kvdyno run --resume={}",
            results.path().display()
        );
    }
    write_page(&results, &summary, &run);
    refusals.iter().for_each(|refusal| eprintln!("error: {refusal}"));
    Ok(code)
}

/// Removes the folder for databases if it is empty and in the run's own folder.
fn remove_data(args: &RunArgs, data: &Path) {
    if args.data.is_none() {
        let _ = std::fs::remove_dir(data);
    }
}

/// Plans a new run and creates its folder, or opens the folder of a run to resume.
fn folder_of(args: &RunArgs, registry: &Registry) -> Result<RunFolder, CliError> {
    if let Some(requested) = &args.resume {
        return resumed(args, requested);
    }
    let planned = plan::plan(args, registry)?;
    layouts::of_run(&args.layout, &planned)?;
    args.kept.check(registry, &planned)?;
    RunFolder::create(&args.results, &planned).map_err(|error| CliError::failed(error.to_string()))
}

/// The runner, which starts the trials.
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

/// Prints the results at the end of a run: the table of servers, or the layouts.
fn show(run: &Run, summary: &Summary, layouts: &[&Layout], folder: &Path) -> Result<(), CliError> {
    let table =
        if redis_benchmark::applies_to(run) { redis_benchmark::table(run, summary, folder) } else { None };
    let Some(table) = table else {
        layouts::print_ending(layouts, summary, run, folder);
        return Ok(());
    };
    table.keep(folder)?;
    print!("{}", table.text);
    layouts::print_rest(summary, folder);
    Ok(())
}

/// Writes the HTML report into the run's folder and prints its path. A failure is only a warning because the results are
/// saved.
fn write_page(results: &RunFolder, summary: &Summary, run: &Run) {
    let Some(html) = crate::report::format("html") else { return };
    match results.write_report("report.html", (html.render)(summary, run).as_bytes()) {
        Ok(path) => println!("report: {}", path.display()),
        Err(error) => eprintln!(
            "warning: cannot write report.html: {error}; `kvdyno report {} --format html` prints it",
            results.path().display()
        ),
    }
}

/// Environment variables that trials get in addition to the user's: passwords, and the folders of plug-ins for engines that
/// start kvdyno themselves.
fn environment(args: &RunArgs, plugins: &[PathBuf]) -> Result<Vec<(String, String)>, CliError> {
    let mut all = passwords::environment(&args.options)?;
    if !plugins.is_empty() {
        let known = std::env::var("KVDYNO_PLUGINS").ok();
        let folders = plugins.iter().map(|folder| folder.to_string_lossy().into_owned());
        all.push(("KVDYNO_PLUGINS".into(), folders.chain(known).collect::<Vec<_>>().join(":")));
    }
    Ok(all)
}

/// The exit code: wrong answers outrank failures. A refused trial is a failure only if all trials were refused.
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
    let compared: Vec<&Record> = records.iter().filter(|record| !record.trial.is_floor).collect();
    if !compared.is_empty() && compared.iter().all(|record| is_refused(record)) { FAILED } else { 0 }
}
