//! `kvdyno prove --only rules`: tests the conformance of engines, each in its own process, so that a crash or a hang is a
//! result.

use super::claim::{Claim, Standing, not_here};
use super::{Found, Job, Part, ProveArgs};
use crate::cli::args;
use crate::cli::error::{CliError, FAILED, WRONG};
use kvdyno_core::engine::{Engine, Registry, environment_of};
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::inner::{Kind, Place};
use kvdyno_measure::shortage::Scene;
use kvdyno_measure::text::parse_seconds;
use kvdyno_measure::{Event, Fate, Patience, Task, TaskProcess, signals};
use kvdyno_prove::MachineError;
use kvdyno_prove::proven::{self, Proven};
use kvdyno_prove::verify::{Choice, Effort, Failure, Outcome, Report, check_names, reopened, verify};
use kvdyno_report::CommandLine;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of this part alone.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Rules")]
#[group(skip)]
pub(super) struct Own {
    /// Stop generating ops in a check after this many seconds [default: 5].
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Run only this check. Can be given more than once.
    #[arg(long = "check", value_name = "NAME")]
    pub checks: Vec<String>,
    /// Write to FILE (TOML) what was proven of the engines that passed all checks. Entries of other engines are kept.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["checks", "options"])]
    pub proven: Option<PathBuf>,
}

/// Which checks run, and how much they test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct How {
    seed: u64,
    /// Number of random ops in the model check.
    ops: u64,
    seconds: f64,
    checks: Vec<String>,
    options: Vec<String>,
}

impl Own {
    /// Refuses checks that do not exist and a file that cannot be written.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let known = check_names();
        if let Some(name) = self.checks.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(args::unknown("check", name, &known, "kvdyno prove --only rules --all ENGINE"));
        }
        if let Some(file) = &self.proven {
            proven::check(file).map_err(|text| {
                CliError::usage(format!("--proven: {text}")).hint("name a file in a writable folder")
            })?;
        }
        Ok(())
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = parse_seconds(text).map_err(|error| error.to_string())?;
    let is_valid = seconds > 0.0 && seconds <= MOST_SECONDS;
    if is_valid {
        Ok(seconds)
    } else {
        Err(format!("expected more than 0 and at most {MOST_SECONDS} seconds"))
    }
}

/// Verifies one engine in a process of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VerifyTask {
    /// Name of the engine.
    engine: String,
    /// Its plug-in; `None` if it is built in.
    plugin: Option<PathBuf>,
    /// Folder for databases.
    data: PathBuf,
    /// With options of this engine only.
    how: How,
}

/// What its process tells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A check begins.
    Begun(String),
    /// All checks have ended.
    Report(Box<Report>),
}

/// Verifies a database in a fresh process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReopenedTask {
    /// Name of the engine.
    engine: String,
    /// Its plug-in; `None` if it is built in.
    plugin: Option<PathBuf>,
    /// File that describes the expected database.
    file: PathBuf,
}

impl How {
    /// All checks with their usual effort.
    pub(super) fn usual(seed: u64, options: &[String]) -> How {
        let Effort { ops, seconds, .. } = Effort::default();
        How { seed, ops, seconds, checks: Vec::new(), options: options.to_vec() }
    }

    fn of(args: &super::ProveArgs) -> How {
        let usual = How::usual(args.seed, &args.options);
        How {
            ops: args.ops.unwrap_or(usual.ops),
            seconds: args.rules.seconds.unwrap_or(usual.seconds),
            checks: args.rules.checks.clone(),
            ..usual
        }
    }

    fn effort(&self) -> Effort {
        Effort { seed: self.seed, ops: self.ops, seconds: self.seconds }
    }
}

/// One day.
const MOST_SECONDS: f64 = 86400.0;
/// What the process does before the first check.
const START: &str = "open";
/// Interval between checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Task for VerifyTask {
    const KIND: Kind = Kind::Verify;
    type Message = Message;
    type Prepared = ();

    fn prepare(&self) {}

    fn run(self, (): ()) -> Result<u8, String> {
        // Only its plug-in is loaded, as in a trial.
        let registry = Registry::alone(self.plugin.as_deref()).map_err(|error| error.to_string())?;
        let names = std::slice::from_ref(&self.engine);
        let text = |error: CliError| error.to_string();
        let engine = args::engines(&registry, names).map_err(text)?;
        let settings = args::options(&engine, names, &self.how.options).map_err(text)?.remove(0).options;
        let choice = Choice { checks: self.how.checks.clone(), settings };
        let fresh = |file: &Path| self.in_fresh_process(file);
        let report = verify(&engine[0], &self.data, self.how.effort(), &choice, Some(&fresh), |name| {
            VerifyTask::tell(&Message::Begun(name.to_string()));
        });
        VerifyTask::tell(&Message::Report(Box::new(report)));
        Ok(0)
    }
}

impl Task for ReopenedTask {
    const KIND: Kind = Kind::VerifyReopened;
    /// The first error.
    type Message = String;
    type Prepared = ();

    fn place(&self) -> Place {
        Place::PartOfAnother
    }

    fn prepare(&self) {}

    fn run(self, (): ()) -> Result<u8, String> {
        let registry = Registry::alone(self.plugin.as_deref()).map_err(|error| error.to_string())?;
        let engine = args::engines(&registry, std::slice::from_ref(&self.engine))
            .map_err(|error| error.to_string())?;
        match reopened(&engine[0], &self.file) {
            Ok(()) => Ok(0),
            Err(failure) => {
                ReopenedTask::tell(&failure.to_string());
                Ok(WRONG)
            }
        }
    }
}

impl VerifyTask {
    /// Starts a fresh process that verifies the database described in `file`. It inherits the environment of this process and
    /// dies with it.
    fn in_fresh_process(&self, file: &Path) -> Result<(), Failure> {
        let failed = |error| MachineError::StartFor { engine: self.engine.clone(), error };
        let task = ReopenedTask {
            engine: self.engine.clone(),
            plugin: self.plugin.clone(),
            file: file.to_path_buf(),
        };
        let finished = task.finish(&std::env::current_exe().map_err(failed)?).map_err(failed)?;
        // What the driver prints is for the process above.
        finished.printed.iter().for_each(|line| println!("{line}"));
        match finished.fate {
            Fate::Exited(0) => Ok(()),
            Fate::Exited(code) if i32::from(WRONG) == code => {
                Err(Failure::Broken(finished.messages.into_iter().next().unwrap_or_default()))
            }
            fate => Err(Failure::Broken(fate.text("it"))),
        }
    }
}

/// How an engine's process ended.
pub(super) enum Verdict {
    Report(Box<Report>),
    /// The check in which it died, and the cause.
    Died(String, String),
    /// The check in which it died because the machine was short of something, and of what: nothing is known of the engine.
    Short(String, String),
}

/// The verdict of each engine.
pub(super) struct Verified {
    verdicts: Vec<(String, Verdict)>,
    /// The command that verifies each again.
    again: Vec<CommandLine>,
}

/// The folder for databases.
const DATA: &str = "kvdyno-results/verify";
/// Seconds that a check may take.
pub(super) const STALL: u64 = 120;

/// Verifies the engines, and shows each as soon as it is verified.
pub(super) fn find(job: &Job<'_>) -> Result<Verified, CliError> {
    let own = &job.args.rules;
    let (how, data) = (How::of(job.args), job.args.data(DATA));
    let (mut verdicts, mut again) = (Vec::new(), Vec::new());
    job.in_folder(&data, &["verify"], || {
        for (name, engine, options) in job.each() {
            let order =
                Order { how: &how, data: &data, plugin: engine.plugin_file(), stall: job.args.stall(STALL) };
            let verdict = order.verdict(name)?;
            if signals::interrupts() > 0 {
                break;
            }
            match &own.proven {
                Some(file) => keep(file, engine, &verdict)?,
                None => remember(job.args, engine, &verdict),
            }
            if job.is_shown {
                show(name, &verdict, job.args.all);
            }
            again.push(command(job, name, options));
            verdicts.push((name.to_string(), verdict));
        }
        Ok(())
    })?;
    Ok(Verified { verdicts, again })
}

impl Found for Verified {
    fn nothing(&self) -> Option<CliError> {
        None
    }

    fn text(&self) -> String {
        String::new()
    }

    fn json(&self) -> Result<serde_json::Value, CliError> {
        let reports = self.verdicts.iter().map(|(name, verdict)| json_of(name, verdict));
        Ok(serde_json::Value::Array(reports.collect()))
    }

    fn claims(&self) -> Vec<Claim> {
        let all = self.verdicts.iter().zip(&self.again);
        all.map(|((name, verdict), again)| claim(name, verdict, again)).collect()
    }

    fn interrupted(&self) -> &'static str {
        "only the engines listed above were verified"
    }

    fn code(&self) -> Result<u8, CliError> {
        let of = |wanted: fn(&Verdict) -> bool| self.verdicts.iter().any(|(_, verdict)| wanted(verdict));
        Ok(match () {
            () if of(Verdict::is_red) => WRONG,
            () if of(|verdict| matches!(verdict, Verdict::Short(..))) => FAILED,
            () => 0,
        })
    }
}

impl Verdict {
    fn is_red(&self) -> bool {
        match self {
            Verdict::Report(report) => !report.is_green(),
            Verdict::Died(..) => true,
            Verdict::Short(..) => false,
        }
    }
}

/// The command that verifies an engine.
fn command(job: &Job<'_>, name: &str, options: &[(String, String)]) -> CommandLine {
    let engine = args::split_options(name).0;
    CommandLine::of("prove")
        .with(engine)
        .with_flags("--only", ["rules"])
        .with_flags("--plugins", job.plugins.iter().map(|folder| folder.display().to_string()))
        .with_flags("--option", options.iter().map(|(option, value)| format!("{engine}.{option}={value}")))
}

/// Whether an engine keeps the rules.
fn claim(name: &str, verdict: &Verdict, again: &CommandLine) -> Claim {
    let found = match verdict {
        Verdict::Short(check, how) => {
            return not_here(name, Part::Rules, None, &format!("{how} in check {check}"));
        }
        Verdict::Died(check, how) => format!("{how} in check {check}"),
        Verdict::Report(report) => {
            let passed = report.checks.iter().filter(|check| check.outcome == Outcome::Passed).count();
            let first = report.failures().next().map(|(check, text)| {
                let more = report.failures().count() - 1;
                let text = text.lines().next().unwrap_or_default();
                let rest = format!("; and {more} more checks: `{again}` shows them");
                format!("{check}: {text}{}", if more > 0 { &rest } else { "" })
            });
            first.unwrap_or_else(|| format!("{passed} checks passed"))
        }
    };
    let result = if verdict.is_red() { Standing::Broken } else { Standing::Kept };
    Claim { engine: name.into(), part: Part::Rules, level: None, result, found }
}

/// Writes what was proven to the file. Nothing is written for an engine that failed.
fn keep(file: &Path, engine: &Engine, verdict: &Verdict) -> Result<(), CliError> {
    let row = match verdict {
        Verdict::Report(report) => Proven::of(engine, report),
        Verdict::Died(..) | Verdict::Short(..) => None,
    };
    match row {
        Some(row) => proven::keep(file, row).map_err(|error| CliError::failed(error.to_string())),
        None => {
            eprintln!("{}: nothing was proven; {} was not changed", engine.name(), file.display());
            Ok(())
        }
    }
}

/// Remembers what all checks have proven of a plug-in that the project does not know, in a file beside it, where `kvdyno run`,
/// `engines` and `choose` look. A failure takes back what is remembered.
fn remember(args: &ProveArgs, engine: &Engine, verdict: &Verdict) {
    let Some(file) = proven::beside(engine) else { return };
    let Verdict::Report(report) = verdict else { return };
    let name = engine.name();
    let done = match Proven::of(engine, report) {
        Some(row) if is_whole(args) => proven::keep(&file, row).map(|()| "passed all checks; saved in"),
        Some(_) => return,
        None if file.exists() => proven::forget(&file, name).map(|()| "failed; removed from"),
        None => return,
    };
    match done {
        Ok(what) => eprintln!("{name} {what} {}", file.display()),
        Err(error) => {
            eprintln!("warning: {error}; `--proven FILE` saves the result of {name} in another file");
        }
    }
}

/// Whether all checks run, of the engine as it is without options.
fn is_whole(args: &ProveArgs) -> bool {
    args.rules.checks.is_empty() && args.options.is_empty()
}

fn json_of(name: &str, verdict: &Verdict) -> serde_json::Value {
    match verdict {
        Verdict::Report(report) => serde_json::to_value(report).unwrap_or_default(),
        Verdict::Died(check, how) => serde_json::json!({ "engine": name, "died_in": check, "how": how }),
        Verdict::Short(check, how) => serde_json::json!({ "engine": name, "short_in": check, "how": how }),
    }
}

fn show(name: &str, verdict: &Verdict, all: bool) {
    match verdict {
        Verdict::Died(check, how) => println!("{name:24} RED    {how} in check {check}"),
        Verdict::Short(check, how) => println!("{name:24} not verified: {how} in check {check}"),
        Verdict::Report(report) => {
            let count = |wanted: fn(&Outcome) -> bool| {
                report.checks.iter().filter(|check| wanted(&check.outcome)).count()
            };
            let passed = count(|outcome| *outcome == Outcome::Passed);
            let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
            let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
            let colour = if report.is_green() { "green" } else { "RED" };
            println!("{name:24} {colour:6} {passed} passed, {failed} failed, {skipped} not applicable");
            if all {
                println!("{report}");
            } else {
                report.failures().for_each(|(check, text)| println!("    {check}: {text}"));
            }
        }
    }
}

/// How an engine is verified.
pub(super) struct Order<'o> {
    pub how: &'o How,
    /// Folder for databases.
    pub data: &'o Path,
    /// The engine's plug-in; `None` if it is built in.
    pub plugin: Option<&'o Path>,
    /// The longest time of a check.
    pub stall: Duration,
}

impl Order<'_> {
    /// Verifies an engine in a process of its own.
    pub(super) fn verdict(&self, name: &str) -> Result<Verdict, CliError> {
        let folder =
            DataFolder::create(self.data, "verify", &name.replace(':', "-")).map_err(CliError::failed)?;
        let verdict = self
            .start(name, &folder.database())
            .map(|mut process| watch(&mut process, self.stall, name, folder.root()));
        folder.remove().map_err(CliError::failed)?;
        verdict
    }

    fn start(&self, name: &str, data: &Path) -> Result<TaskProcess<Message>, CliError> {
        let failed =
            |error: std::io::Error| CliError::failed(format!("cannot start a process for {name}: {error}"));
        let own = format!("{}.", args::split_options(name).0);
        let mut how = self.how.clone();
        how.options.retain(|option| option.starts_with(&own));
        let task = VerifyTask {
            engine: name.to_string(),
            plugin: self.plugin.map(Path::to_path_buf),
            // The path is absolute because an engine may change the working folder.
            data: std::path::absolute(data).map_err(failed)?,
            how,
        };
        let executable = std::env::current_exe().map_err(failed)?;
        let mut command = task.command(&executable).map_err(failed)?;
        TaskProcess::start_with_stderr(command.envs(environment_of(name))).map_err(failed)
    }
}

fn watch(process: &mut TaskProcess<Message>, stall: Duration, name: &str, data: &Path) -> Verdict {
    let on_terminal = std::io::stderr().is_terminal();
    let mut check = START.to_string();
    let mut printed = Vec::new();
    let mut report: Option<Report> = None;
    let mut patience = Patience::new(stall);
    let mut stalled = false;
    let end = loop {
        match process.next(POLL_INTERVAL) {
            Event::Told(message) => {
                printed.push((check.clone(), process.take_printed()));
                match message {
                    Message::Begun(begun) => {
                        check = begun;
                        if on_terminal {
                            eprint!("\r\x1b[K{name}: {check}");
                        }
                    }
                    Message::Report(told) => report = Some(*told),
                }
                patience.renew();
            }
            Event::Quiet => {}
            Event::Ended(end) => break end,
        }
        stalled |= patience.is_over();
        if stalled || signals::interrupts() > 0 {
            process.kill();
        }
    };
    if on_terminal {
        eprint!("\r\x1b[K");
    }
    if signals::interrupts() > 0 {
        return Verdict::Died(check, "interrupted by the user".into());
    }
    match (report, stalled, end.fate()) {
        (Some(mut report), false, Fate::Exited(0)) => {
            printed.push((check, process.take_printed()));
            report.add_printed(&printed);
            report.add_left(&end.left);
            Verdict::Report(Box::new(report))
        }
        (Some(_), true, _) => {
            Verdict::Died("exit".into(), format!("the process did not exit within {} s", stall.as_secs()))
        }
        (None, true, _) => {
            Verdict::Died(check, format!("the process was stopped after {} s", stall.as_secs()))
        }
        (report, _, fate) => {
            let mut how = fate.text("the process");
            if let (Fate::Died(_), Some(trespass)) = (&fate, &end.trespass) {
                how.push_str(&format!(" ({trespass})"));
            }
            let check = if report.is_some() { "exit".into() } else { check };
            let last = process.take_printed();
            let scene = Scene::of_database(data);
            match scene.of_death(&how, std::iter::once(last.last())) {
                Some(shortage) => Verdict::Short(check, format!("{}, and {how}", shortage.text)),
                None => Verdict::Died(check, how),
            }
        }
    }
}
