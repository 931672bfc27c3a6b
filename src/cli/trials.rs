//! Trials that a command runs one by one and reads itself: each is a run of its own in the command's folder, without progress and
//! report, on a copy of a database that was loaded once.

use super::error::{CliError, FAILED};
use super::kept::KeepArgs;
use super::report::RESULTS;
use super::request::{LimitArgs, RunArgs, SubjectArgs};
use super::run::{exit_code, observed_run};
use super::workloads::ChangeArgs;
use crate::live::{Live, Show};
use kvdyno_core::engine::Registry;
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::{Outcome, PhaseRecord, Record, now_rfc3339, random_suffix, run_id};
use kvdyno_core::runner::{self, Ending, Entry, Runner, Seeds, TrialSettings};
use kvdyno_measure::signals;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags of a command that runs its trials itself.
#[derive(Debug, clap::Args)]
pub(super) struct TrialArgs {
    /// Write the trials to a new folder in DIR.
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    results: PathBuf,
    /// Create temporary databases in DIR [default: the folder of the trials].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    // The groups with a heading come last because a heading applies to all following flags.
    #[command(flatten)]
    pub changes: ChangeArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl TrialArgs {
    /// Trials in these places, without changes and limits.
    pub(super) fn at(results: PathBuf, data: Option<PathBuf>) -> TrialArgs {
        TrialArgs { results, data, changes: ChangeArgs::default(), limits: LimitArgs::default() }
    }

    /// The arguments of a run of this subject with these changes.
    pub(super) fn of_run(&self, subject: SubjectArgs, changes: ChangeArgs) -> Result<Box<RunArgs>, CliError> {
        let none = ["kvdyno".to_string(), "run".to_string()];
        let mut base = super::run_args(&none).expect("these are words of `kvdyno run`");
        (base.subject, base.changes, base.limits) = (subject, changes, self.limits.clone());
        (base.results, base.data) = (self.results.clone(), self.data.clone());
        base.check()?;
        Ok(base)
    }

    /// The path of a new folder for the trials of a command with a workload. It is not made yet.
    pub(super) fn new_folder(&self, command: &str, workload: &str) -> PathBuf {
        self.results.join(run_id(&now_rfc3339(), &format!("{command}-{workload}"), "", random_suffix()))
    }
}

/// What all trials of a command have in common.
pub(super) struct Trials<'a> {
    /// What the names of runs begin with: the command.
    pub name: &'static str,
    /// The arguments of a run.
    pub base: RunArgs,
    /// The kvdyno that runs the processes.
    pub executable: PathBuf,
    /// The engines.
    pub registry: &'a Registry,
    /// The settings of trials.
    pub settings: TrialSettings,
    /// The new folder of the command.
    pub folder: PathBuf,
    /// The command.
    pub command: Vec<String>,
    /// The folders of plug-ins that the user named.
    pub plugins: &'a [PathBuf],
    /// Whether its first trial prints warnings about the machine.
    pub tells_warnings: bool,
}

/// How the database of an engine is there at the start of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// As a copy of the one that was loaded first and is kept in this folder.
    Copied(PathBuf),
    /// It is loaded again, because the engine keeps nothing in files.
    Loaded,
}

/// Why an engine has no figures.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// What happened.
    pub text: String,
    /// The exit code for it.
    pub code: u8,
}

impl Kept {
    /// How the database of the engine of this entry is kept, in a folder with this number: an engine may be there with several
    /// settings.
    pub(super) fn of(entry: &Entry, folder: &Path, number: usize) -> Kept {
        let keeps_nothing = entry.contestants.iter().any(|one| one.keeps_nothing || one.is_floor);
        if keeps_nothing { Kept::Loaded } else { Kept::Copied(kept_folder(folder).join(number.to_string())) }
    }

    /// For the trial that loads it.
    pub(super) fn first(&self) -> KeepArgs {
        match self {
            Kept::Copied(folder) => KeepArgs { keep: Some(folder.clone()), ..KeepArgs::default() },
            Kept::Loaded => KeepArgs::default(),
        }
    }

    /// For all trials after it. Where it left nothing, because a setting or a level keeps the data in memory, each loads again.
    pub(super) fn later(&self) -> KeepArgs {
        let has_any = |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
        match self {
            Kept::Copied(folder) if has_any(folder) => {
                KeepArgs { reuse: Some(folder.clone()), ..KeepArgs::default() }
            }
            Kept::Copied(_) | Kept::Loaded => KeepArgs::default(),
        }
    }
}

/// Where the databases of a command are kept while it runs.
fn kept_folder(folder: &Path) -> PathBuf {
    folder.join("kept")
}

/// Removes the databases that a command has kept in its folder.
pub(super) fn remove_kept(folder: &Path) {
    // The folder of the command is new, so nobody else has made it.
    let _ = std::fs::remove_dir_all(kept_folder(folder));
}

impl Trials<'_> {
    /// Runs a trial with arrivals and ops of this number, as `kvdyno run` does.
    pub(super) fn run(&self, entry: Entry, keep: KeepArgs, number: u64) -> Result<Record, CliError> {
        let name = format!("{}-{}", self.name, entry.workload.name);
        let reused = keep.reuse.is_some();
        let settings = TrialSettings { seeds: Seeds::OfOps, reused, ..self.settings.clone() };
        let (mut plan, _) = runner::plan(name, self.command.clone(), vec![entry], &settings)?;
        for trial in &mut plan.trials {
            trial.seed = Some(trial.workload.seed.wrapping_add(number));
        }
        let run = observed_run(&self.base, self.registry, plan, Vec::new())?;
        if number == 1 && self.tells_warnings {
            run.warnings.iter().for_each(|warning| eprintln!("warning: {} {}", warning.text, warning.advice));
        }
        let reuse = keep.check(self.registry, &run)?;
        let others = std::iter::repeat_with(random_suffix).take(100);
        let mut results = RunFolder::create_distinct(&self.folder, run.clone(), others)?;
        let data = self.base.data.clone().unwrap_or_else(|| results.path().join("data"));
        let runner = Runner {
            executable: self.executable.clone(),
            plugins: self.registry.plugin_files(),
            keep: keep.keep,
            reuse,
            stall: Duration::from_secs(self.base.stall_seconds),
            environment: self.base.environment(self.plugins)?,
            audits: Vec::new(),
            company: None,
        };
        let mut live = Live::new(Show::Nothing, &run, &[]);
        let ended = runner::run(&run.plan, &runner, &mut results, &data, &mut live);
        if self.base.data.is_none() {
            let _ = std::fs::remove_dir(&data);
        }
        ended.map_err(CliError::failed)?;
        results.finished()?.pop().ok_or_else(interrupted)
    }
}

/// The entry of a command that runs one workload on one engine. The null engine beside it is skipped, unless it is the one.
pub(super) fn only(mut entries: Vec<Entry>, command: &str) -> Result<Entry, CliError> {
    entries.iter_mut().for_each(|entry| {
        if entry.contestants.len() > 1 {
            entry.contestants.retain(|one| !one.is_floor);
        }
        entry.workload.runs = 1;
    });
    let Ok([entry]) = <[Entry; 1]>::try_from(entries) else { return Err(several(command)) };
    match entry.contestants.as_slice() {
        [_] => Ok(entry),
        _ => Err(CliError::usage(format!("{command} needs one engine")).hint("name a single engine")),
    }
}

/// The error of several workloads where one is expected.
pub(super) fn several(command: &str) -> CliError {
    CliError::usage(format!("{command} runs one workload at a time"))
        .hint("name one workload, without lists of sizes, levels or threads")
}

/// A phase of a trial, or why there is none.
pub(super) fn phase<'r>(record: &'r Record, name: &str) -> Result<&'r PhaseRecord, Failure> {
    let failed =
        |text: String| Failure { text, code: exit_code(std::slice::from_ref(record), Ending::Complete) };
    match &record.outcome {
        Outcome::Ok => {}
        Outcome::Failed { text, .. } => return Err(failed(text.clone())),
        Outcome::WrongAnswers { faults } => {
            let first = faults.first().map_or("", String::as_str);
            return Err(failed(format!("wrong answers: {first}")));
        }
        Outcome::Crashed { signal, .. } => return Err(failed(format!("it crashed: {signal}"))),
    }
    let found = record.phases.iter().find(|phase| phase.phase.name == name);
    let unrun = |why: &str| Failure { text: format!("phase {name} was not run{why}"), code: FAILED };
    let phase = found.ok_or_else(|| unrun(""))?;
    phase.not_run.as_ref().map_or(Ok(phase), |why| Err(unrun(&format!(": {why}"))))
}

/// The command was interrupted.
pub(super) fn interrupted() -> CliError {
    let mut error =
        CliError::failed("interrupted").hint("its runs so far are saved; start the command again");
    error.code = signals::stopped_code();
    error
}
