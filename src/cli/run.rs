//! `kvdyno run`: plan, measure, report.

use super::args;
use super::error::{CliError, FAILED, INTERRUPTED, WRONG};
use super::limits::{self, LimitArgs};
use super::progress::Progress;
use crate::engine::{Engine, Registry};
use crate::measure::units::bytes_text;
use crate::measure::{Clock, Conditions, Machine, disk, signals, warnings_of};
use crate::results::store::{RunFolder, newest};
use crate::results::summary::Summary;
use crate::results::{Outcome, Record, Run, SCHEMA, now_rfc3339, random_suffix, run_id};
use crate::runner::{self, Contestant, Ending, Runner};
use crate::workload::{Durability, Overrides, Workload, builtin, builtin_names, parse};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure engines under workloads.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Workloads: names (`kvdyno workloads`) or TOML files.
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// Engines, separated by commas; without it: every engine this build has.
    #[arg(short, long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    limits: LimitArgs,
    /// Set any field of the workload: `read.seconds=3`, `key.encoding=hex`; may be given more than once.
    #[arg(long, value_name = "PHASE.FIELD=VALUE")]
    set: Vec<String>,
    /// Set an option of an engine; may be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    options: Vec<String>,
    /// Where results go: a folder per run below this one.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results")]
    results: PathBuf,
    /// Where databases are made and removed; default: in the run's folder.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Go on with a run that was stopped: the newest one, or that in DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    resume: Option<Option<PathBuf>>,
    /// End a trial in which no op ends for this long.
    #[arg(long, value_name = "N", default_value_t = 120)]
    stall_seconds: u64,
    /// Start even if the disk is smaller than the plan's estimate.
    #[arg(long)]
    ignore_space: bool,
    /// No progress on stderr.
    #[arg(short, long)]
    quiet: bool,
}

/// The usual fields of a workload.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Fields of the workload")]
struct Sizes {
    /// Keys: `200k`.
    #[arg(long, value_parser = count)]
    keys: Option<u64>,
    /// Bytes of a key: `16`, `uniform:8-64`.
    #[arg(long)]
    key_size: Option<String>,
    /// Bytes of a value: `100`, `uniform:250-2500`, `1KiB`.
    #[arg(long)]
    value_size: Option<String>,
    /// Threads.
    #[arg(short, long)]
    threads: Option<u32>,
    /// Seconds of each measured phase: `10`, `500ms`.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Ops of each measured phase: `1M`.
    #[arg(long, value_parser = count)]
    ops: Option<u64>,
    /// The least durability level: none, process, power or default.
    #[arg(long)]
    durability: Option<String>,
    /// Cache budget of each engine: `64MiB`.
    #[arg(long, value_parser = bytes)]
    cache: Option<u64>,
    /// The seed of every stream.
    #[arg(long)]
    seed: Option<u64>,
    /// Repetitions of each cell.
    #[arg(short, long)]
    runs: Option<u32>,
}

fn count(text: &str) -> Result<u64, String> {
    crate::workload::parse_count(text)
}

fn bytes(text: &str) -> Result<u64, String> {
    crate::workload::parse_bytes(text)
}

fn seconds(text: &str) -> Result<f64, String> {
    crate::workload::parse_seconds(text)
}

impl RunArgs {
    /// What runs without a command.
    pub fn quick() -> RunArgs {
        RunArgs {
            workloads: vec!["quick".into()],
            engines: Vec::new(),
            sizes: Sizes::default(),
            limits: LimitArgs::default(),
            set: Vec::new(),
            options: Vec::new(),
            results: PathBuf::from("kvdyno-results"),
            data: None,
            resume: None,
            stall_seconds: 120,
            ignore_space: false,
            quiet: false,
        }
    }

    fn overrides(&self) -> Result<Overrides, CliError> {
        let size = |flag: &str, text: &Option<String>| match text {
            Some(text) => crate::workload::parse_size(text)
                .map(Some)
                .map_err(|error| CliError::usage(format!("{flag} {text}: {error}"))),
            None => Ok(None),
        };
        let sizes = &self.sizes;
        Ok(Overrides {
            keys: sizes.keys,
            key_size: size("--key-size", &sizes.key_size)?,
            value_size: size("--value-size", &sizes.value_size)?,
            threads: sizes.threads,
            seconds: sizes.seconds,
            ops: sizes.ops,
            durability: sizes.durability.as_deref().map(durability).transpose()?,
            cache: sizes.cache,
            memory: self.limits.memory,
            seed: sizes.seed,
            runs: sizes.runs,
            set: self.set.clone(),
        })
    }
}

fn durability(text: &str) -> Result<Durability, CliError> {
    match text {
        "none" => Ok(Durability::None),
        "process" => Ok(Durability::Process),
        "power" => Ok(Durability::Power),
        "default" => Ok(Durability::Default),
        _ => Err(args::unknown(
            "durability level",
            text,
            &["none", "process", "power", "default"],
            "kvdyno run --help",
        )),
    }
}

/// A workload by name, or from a file.
fn workload(name: &str) -> Result<Workload, CliError> {
    if name.ends_with(".toml") || name.contains('/') {
        let text = std::fs::read_to_string(name)
            .map_err(|error| CliError::usage(format!("cannot read the workload {name}: {error}")))?;
        return parse(&text, name).map_err(|error| CliError::usage(error.to_string()));
    }
    if !builtin_names().iter().any(|(known, _)| *known == name) {
        let known: Vec<&str> = builtin_names().iter().map(|(known, _)| *known).collect();
        return Err(args::unknown("workload", name, &known, "kvdyno workloads"));
    }
    builtin(name).map_err(|error| CliError::usage(error.to_string()))
}

/// The engines of the run, the floor behind them.
fn contestants(args: &RunArgs, registry: &Registry) -> Result<Vec<Contestant>, CliError> {
    let mut names = args.engines.clone();
    if names.is_empty() {
        let compared = registry.engines().iter().filter(|engine| engine.is_compared());
        names = compared.map(|engine| engine.name().to_string()).collect();
    }
    if !names.iter().any(|name| name.starts_with("null")) {
        names.push("null".into());
    }
    let mut seen = Vec::new();
    names.retain(|name| {
        let is_first = !seen.contains(name);
        seen.push(name.clone());
        is_first
    });
    let engines: Vec<Engine> = args::engines(registry, &names)?;
    args::options(&engines, &names, &args.options)
}

/// The workloads, with overrides, shrunk to their budget.
fn workloads(args: &RunArgs, engines: usize) -> Result<Vec<Workload>, CliError> {
    if args.workloads.is_empty() {
        return Err(CliError::usage("no workload given")
            .hint("`kvdyno run quick`, or a name of `kvdyno workloads`, or a TOML file"));
    }
    let overrides = args.overrides()?;
    let mut found = Vec::new();
    for name in &args.workloads {
        let mut workload = workload(name)?;
        overrides.apply(&mut workload).map_err(|error| CliError::usage(error.to_string()))?;
        if let Some(share) = workload.seconds_per_trial(engines * workload.runs.max(1) as usize) {
            workload.shrink_to(share);
        }
        runner::check_workload(&workload)
            .map_err(|text| CliError::usage(format!("workload {}: {text}", workload.name)))?;
        found.push(workload);
    }
    Ok(found)
}

/// The command that repeats the run, without paths of this machine.
fn command_line() -> Vec<String> {
    let mut words = vec!["kvdyno".to_string()];
    let mut arguments = std::env::args().skip(1);
    while let Some(word) = arguments.next() {
        let is_path = |flag: &str| ["--results", "--data", "--plugins", "--resume"].contains(&flag);
        if is_path(&word) {
            arguments.next();
        } else if !word.split_once('=').is_some_and(|(flag, _)| is_path(flag)) {
            let is_file = word.ends_with(".toml");
            let name = Path::new(&word).file_name().map(|name| name.to_string_lossy().into_owned());
            words.push(if is_file { name.unwrap_or(word) } else { word });
        }
    }
    words
}

fn parameters(workload: &Workload) -> String {
    let keys = workload.keys;
    let keys = match keys {
        _ if keys > 0 && keys.is_multiple_of(1_000_000) => format!("{}M", keys / 1_000_000),
        _ if keys > 0 && keys.is_multiple_of(1000) => format!("{}k", keys / 1000),
        _ => keys.to_string(),
    };
    format!("{keys}-{}-{}", workload.key.size, workload.value.size).replace([':', ',', '*', '.'], "_")
}

/// Engines that a comparison of all would have had, with what brings them.
fn absent(registry: &Registry) -> Vec<(String, String)> {
    let compared = registry.absent().iter().filter(|absent| absent.is_compared());
    compared.map(|absent| (absent.known.name.clone(), absent.advice())).collect()
}

/// A new run: everything that can be refused is refused before the first trial.
fn plan(args: &RunArgs, registry: &Registry) -> Result<Run, CliError> {
    let contestants = contestants(args, registry)?;
    let workloads = workloads(args, contestants.len())?;
    let data = args.data.as_deref().unwrap_or(&args.results);
    if let Some(data) = &args.data {
        runner::check_parent(data).map_err(CliError::usage)?;
    }
    let estimate = workloads.iter().map(runner::disk_estimate_bytes).max().unwrap_or(0);
    if let Some(free) = disk::free_bytes(data)
        && free < estimate
        && !args.ignore_space
    {
        return Err(CliError::failed(format!(
            "a trial of this plan may need {} of disk, {} are free",
            bytes_text(estimate),
            bytes_text(free)
        ))
        .hint("free some space, use a larger disk with --data DIR, or fewer keys with --keys; --ignore-space starts anyway"));
    }
    let mut trials = runner::trials(&contestants, &workloads, workloads[0].seed);
    args.limits.hold(&mut trials);
    limits::check(&trials)?;
    let started_at = now_rfc3339();
    let name: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
    let name = if name.len() > 3 { format!("{}-and-{}", name[0], name.len() - 1) } else { name.join("-") };
    let machine = Machine::observe(data);
    let clock = Clock::calibrate().facts();
    Ok(Run {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        id: run_id(&started_at, &name, &parameters(&workloads[0]), random_suffix()),
        started_at,
        command: command_line(),
        trials,
        absent: absent(registry),
        warnings: warnings_of(&machine, &Conditions::observe(data), Some(&clock)),
        machine,
        clock,
    })
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
        None => RunFolder::create(&args.results, &plan(args, &registry)?).map_err(failed)?,
    };
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
    print!("{}", (crate::report::FORMATS[0].render)(&summary, &run));
    println!("results: {}", results.path().display());
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
