//! `kvdyno guard`: counts per op that other programs on the machine do not change, saved once and checked later.

mod busy;
mod counted;
mod file;
mod table;

use super::error::{CliError, REGRESSION};
use super::report::RESULTS;
use super::trials::{TrialArgs, interrupted};
use super::turns::{Engines, Given, short_name};
use busy::Busy;
use counted::{Counted, Wanted, is_guarded};
use file::{Saved, SavedPhase};
use kvdyno_change::counts::{Verdict, judge};
use kvdyno_measure::signals;
use kvdyno_measure::text::plain_text;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Runs of `save`, and of `check` at most. Every second one runs beside busy loops.
const RUNS: usize = 10;

/// Save counts per op, such as system calls and bytes written, or check that they did not rise.
///
/// Each system call of the engine is counted by name, with bytes, page faults and, where the machine has counters, instructions.
/// Other programs change times but not these, so a check can fail a build on a busy machine (see docs/changes.md). Nothing is
/// timed.
#[derive(Debug, clap::Args)]
pub(super) struct GuardArgs {
    #[command(subcommand)]
    command: GuardCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GuardCommand {
    /// Run a workload ten times and save its counts to a file.
    Save(Box<SaveArgs>),
    /// Run the workload of a file again and compare the counts. Exits with code 10 if one rose.
    Check(Box<CheckArgs>),
}

/// Arguments of `guard save`.
#[derive(Debug, clap::Args)]
struct SaveArgs {
    /// The new file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The workload: a name (see `kvdyno workloads`) or a TOML file. It has 10,000 keys and 10,000 ops in each phase, unless
    /// --keys and --ops are given.
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    /// The engine or plug-in (libkvdyno_NAME.so), with options: ENGINE[:NAME=VALUE,...].
    #[arg(short, long, value_name = "ENGINE")]
    engine: Given,
    #[command(flatten)]
    trials: TrialArgs,
}

/// Arguments of `guard check`.
#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// The file that `guard save` has made.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Another build of the engine [default: as the file was made].
    #[arg(short, long, value_name = "ENGINE")]
    engine: Option<Given>,
    /// Output format: text or csv.
    #[arg(long, default_value = "text", value_name = "text|csv")]
    format: table::Form,
    /// Write the runs to a new folder in DIR.
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    results: PathBuf,
    /// Create temporary databases in DIR [default: the folder of the runs].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Saves or checks.
pub(super) fn run(args: GuardArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    signals::count_interrupts();
    match args.command {
        GuardCommand::Save(args) => save(&args, plugins, command),
        GuardCommand::Check(args) => check(&args, plugins, command),
    }
}

fn save(args: &SaveArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    let lengths = args.trials.changes.lengths();
    if let Some(flag) = lengths.iter().find(|flag| **flag != "--ops") {
        return Err(CliError::usage(format!(
            "{flag}: guard sets the number of runs, and phases end by --ops"
        ))
        .hint("omit it"));
    }
    if args.file.symlink_metadata().is_ok() {
        return Err(CliError::usage(format!("{} already exists", args.file.display()))
            .hint("name a new file, or remove this one first"));
    }
    let parent = args.file.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        return Err(CliError::usage(format!("the folder {} does not exist", parent.display()))
            .hint("create it, or name a file in another folder"));
    }
    let engines = Engines::of(&args.engine, plugins)?;
    let folder = args.trials.new_folder("guard", &short_name(&args.workload));
    let wanted = Wanted {
        is_fixed: false,
        workload: &args.workload,
        given: &args.engine,
        engines: &engines,
        folder: &folder,
        plugins,
        command: &command,
    };
    let counted = Counted::new(&args.trials, wanted)?;
    std::fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
    let mut runs = Vec::new();
    let mut made_with = None;
    while runs.len() < RUNS {
        let (record, counts) = counted.run(runs.len())?;
        if signals::interrupts() > 0 {
            return Err(interrupted());
        }
        made_with.get_or_insert_with(|| file::made_with(&record, &folder));
        runs.push(counts);
        eprintln!("run {} of {RUNS}", runs.len());
    }
    let made_with = made_with.unwrap_or_default();
    let saved = Saved::new(args.engine.to_string(), counted.workload(), made_with, &runs);
    saved.write(&args.file)?;
    print!("{}", table::saved(&saved));
    eprintln!("saved: {}\nruns: {}", args.file.display(), folder.display());
    Ok(0)
}

/// A count that was checked.
struct Checked {
    phase: String,
    name: String,
    /// Per op, in each run.
    earlier: Vec<f64>,
    later: Vec<f64>,
    verdict: Verdict,
}

/// What a check has found.
struct Outcome {
    workload: String,
    checked: Vec<Checked>,
    /// Runs of the check.
    runs: usize,
}

fn check(args: &CheckArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    let saved = Saved::read(&args.file)?;
    let engine = match &args.engine {
        Some(engine) => engine.clone(),
        None => saved.engine.parse().map_err(|why: String| {
            CliError::usage(format!("{}: engine: {}", args.file.display(), plain_text(&why)))
        })?,
    };
    let engines = Engines::of(&engine, plugins)?;
    let trials = TrialArgs::at(args.results.clone(), args.data.clone());
    let folder = trials.new_folder("guard", &short_name(&saved.workload_name));
    let scratch = tempfile::tempdir().map_err(|error| CliError::failed(error.to_string()))?;
    let workload = scratch.path().join(format!("{}.toml", short_name(&saved.workload_name)));
    std::fs::write(&workload, &saved.workload).map_err(CliError::cannot("write", &workload))?;
    let workload = workload.to_string_lossy();
    let wanted = Wanted {
        is_fixed: true,
        workload: &workload,
        given: &engine,
        engines: &engines,
        folder: &folder,
        plugins,
        command: &command,
    };
    let counted = Counted::new(&trials, wanted)?;
    std::fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
    let mut runs = Vec::new();
    let checked = loop {
        let (record, counts) = counted.run(runs.len())?;
        if signals::interrupts() > 0 {
            return Err(interrupted());
        }
        if runs.is_empty() {
            table::differences(&saved.made_with, &file::made_with(&record, &folder))
                .iter()
                .for_each(|line| eprintln!("{line}"));
        }
        runs.push(counts);
        let now = file::by_phase(&runs);
        if runs.len() == 1 {
            table::unknown(&saved.phases, &now).iter().for_each(|line| eprintln!("{line}"));
        }
        let checked = compare(&saved.phases, &now);
        let open = checked.iter().filter(|one| one.verdict == Verdict::Open).count();
        if open == 0 {
            break checked;
        }
        eprintln!("run {} of {RUNS}: {}", runs.len(), table::open(open));
    };
    let outcome = Outcome { workload: saved.workload_name.clone(), checked, runs: runs.len() };
    print!("{}", table::checked(args.format, &outcome));
    eprintln!("runs: {}", folder.display());
    let rose = outcome.checked.iter().any(|one| one.verdict == Verdict::Rose);
    Ok(if rose { REGRESSION } else { 0 })
}

/// The counts of the same phases before and now, and what they show so far.
fn compare(before: &[SavedPhase], now: &[SavedPhase]) -> Vec<Checked> {
    let mut all = Vec::new();
    for (before, now) in before.iter().zip(now) {
        let names: BTreeSet<&String> = before.counts.keys().chain(now.counts.keys()).collect();
        for name in names.into_iter().filter(|name| is_guarded(name)) {
            let Some((earlier, later)) = before.per_op(name).zip(now.per_op(name)) else { continue };
            let verdict = judge(&earlier, &later, RUNS);
            all.push(Checked { phase: now.name.clone(), name: name.clone(), earlier, later, verdict });
        }
    }
    all
}
