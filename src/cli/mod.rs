//! The command line: one file per command.

mod ab;
mod accounting;
mod args;
mod bisect;
mod choose;
mod compare;
mod completions;
mod defect;
mod doctor;
mod engines;
mod error;
mod examples;
mod explain;
mod folders;
mod guard;
mod history;
mod inner;
mod kept;
mod keys;
mod layouts;
mod live;
mod load_generators;
mod man;
mod member;
mod merge;
mod new_engine;
mod number;
mod plan;
mod plot;
mod plugins;
mod prove;
mod race;
mod redis_benchmark;
mod report;
mod request;
mod run;
mod screen;
mod selftest;
mod sender;
mod serve;
mod site;
mod slice;
mod slo;
mod trials;
mod turns;
mod usage;
mod versions;
mod workloads;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use error::{CliError, FAILED, USAGE};
use kvdyno_measure::{output, signals, start};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Benchmark key-value engines. Without a command, compare one engine of each kind with the workload `quick`.
#[derive(Debug, Parser)]
#[command(name = "kvdyno", version, max_term_width = 100, propagate_version = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Load the plug-ins (libkvdyno_*.so) in DIR. Can be given more than once.
    #[arg(long, global = true, value_name = "DIR")]
    plugins: Vec<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  kvdyno                                      Compare one engine of each kind
  kvdyno run ycsb-a --engines redb,sled       Compare two engines with a workload
  kvdyno report --full                        Print all tables of the newest run
  kvdyno prove redb                           Test whether an engine does what it claims
  kvdyno choose --help                        List the requirements that an engine can be chosen by
  kvdyno doctor                               Check what disturbs measurements on this machine";

/// The commands, the most used first, as the help lists them. The hidden ones are former names, for one release.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run workloads on engines and report the results.
    #[command(after_help = examples::RUN)]
    Run(Box<request::RunArgs>),
    /// Test what engines claim: the rules for drivers, syncs, and what survives crashes and faults.
    Prove(Box<prove::ProveArgs>),
    /// Print a report of a run, draw its charts, or generate a website of many runs.
    #[command(after_help = examples::REPORT)]
    Report(Box<report::ReportArgs>),
    /// Compare two runs and show what became faster or slower.
    #[command(after_help = examples::COMPARE)]
    Compare(compare::CompareArgs),
    /// List all known engines, or show the details of one.
    #[command(after_help = examples::ENGINES)]
    Engines(engines::EnginesArgs),
    /// Recommend an engine for what an application needs, by a measurement.
    #[command(after_help = examples::CHOOSE)]
    Choose(Box<choose::ChooseArgs>),
    /// List the workloads and suites, or describe one in plain English.
    #[command(after_help = examples::WORKLOADS)]
    Workloads(Box<workloads::WorkloadsArgs>),
    /// Serve an engine to Redis clients.
    #[command(after_help = examples::SERVE)]
    Serve(Box<serve::ServeArgs>),
    /// Check what can be measured on this machine and what disturbs measurements, or test kvdyno itself.
    #[command(after_help = examples::DOCTOR)]
    Doctor(doctor::DoctorArgs),
    #[command(after_help = examples::SLO)]
    Slo(Box<slo::SloArgs>),
    #[command(after_help = examples::AB)]
    Ab(Box<ab::AbArgs>),
    #[command(after_help = examples::GUARD)]
    Guard(Box<guard::GuardArgs>),
    #[command(after_help = examples::BISECT)]
    Bisect(Box<bisect::BisectArgs>),
    #[command(after_help = examples::HISTORY)]
    History(history::HistoryArgs),
    /// Plan a run that several machines measure in slices.
    #[command(after_help = examples::PLAN)]
    Plan(Box<plan::PlanArgs>),
    /// Merge the results of several machines.
    #[command(after_help = examples::MERGE)]
    Merge(merge::MergeArgs),
    /// Create or shuffle a key file.
    #[command(after_help = examples::KEYS)]
    Keys(keys::KeysArgs),
    /// Create a new driver from a template, ready to build.
    #[command(after_help = examples::NEW_ENGINE)]
    NewEngine(new_engine::NewEngineArgs),
    /// Print a shell completion script.
    #[command(after_help = examples::COMPLETIONS)]
    Completions(completions::CompletionsArgs),
    /// Print the manual pages.
    #[command(after_help = examples::MAN)]
    Man(man::ManArgs),
    /// Former name of `prove --only rules`.
    #[command(hide = true)]
    Verify(Box<prove::ProveArgs>),
    /// Former name of `prove --only syncs`.
    #[command(hide = true)]
    Audit(Box<prove::ProveArgs>),
    /// Former name of `prove --only crash`.
    #[command(hide = true)]
    Crash(Box<prove::ProveArgs>),
    /// Former name of `prove --only faults`.
    #[command(hide = true)]
    Faults(Box<prove::ProveArgs>),
    /// Former name of `prove --certificate`, whose --check is now --check-certificates.
    #[command(hide = true, mut_arg("checks", |arg| arg.long("check-rule").hide(true)),
              mut_arg("certificates", |arg| arg.long("check")))]
    Certify(Box<prove::ProveArgs>),
    /// Former name of `doctor --self`.
    #[command(hide = true)]
    Selftest(selftest::SelftestArgs),
    /// Former name of `workloads NAME`.
    #[command(hide = true)]
    Explain(Box<explain::ExplainArgs>),
    /// Former name of `report --plot`.
    #[command(hide = true)]
    Plot(plot::PlotArgs),
    /// Former name of `report --site`.
    #[command(hide = true)]
    Site(site::SiteArgs),
    /// Run a task in this process (internal).
    #[command(hide = true)]
    Inner(inner::InnerArgs),
    /// Become a member of a trial's store (internal).
    #[command(hide = true)]
    Member(member::MemberArgs),
}

impl Command {
    /// Whether another kvdyno process started this one and checks its exit status.
    fn is_inner(&self) -> bool {
        matches!(self, Command::Inner(_) | Command::Member(_))
    }

    /// The name of a former command, and what it is now.
    fn renamed(&self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Command::Verify(_) => ("verify", "prove --only rules"),
            Command::Audit(_) => ("audit", "prove --only syncs"),
            Command::Crash(_) => ("crash", "prove --only crash"),
            Command::Faults(_) => ("faults", "prove --only faults"),
            Command::Certify(_) => ("certify", "prove --certificate"),
            Command::Selftest(_) => ("selftest", "doctor --self"),
            Command::Explain(_) => ("explain", "workloads"),
            Command::Plot(_) => ("plot", "report --plot"),
            Command::Site(_) => ("site", "report --site"),
            _ => return None,
        })
    }
}

/// Parses the arguments, runs the command and returns its exit code (docs/glossary.md lists the codes).
pub fn main() -> ExitCode {
    if let Err(text) = start::require_stack() {
        eprintln!("error: {text}");
        return ExitCode::from(FAILED);
    }
    signals::end_with_the_reader();
    let words: Vec<OsString> = std::env::args_os().collect();
    let parsed = parsed(words.clone());
    if parsed.as_ref().is_ok_and(|parsed| parsed.command.is_inner()) {
        return ExitCode::from(printed(ended(parsed, &words)));
    }
    ExitCode::from(defect::guarded(|| printed(ended(parsed, &words))))
}

/// The command definition. `-1` after a flag is parsed as its value, so that the error states what the flag expects.
fn definition() -> clap::Command {
    fn with_negative(command: clap::Command) -> clap::Command {
        let allow = |arg: clap::Arg| match arg.get_action().takes_values() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        };
        command.mut_args(allow).mut_subcommands(with_negative)
    }
    with_negative(Cli::command())
}

/// A parsed command line.
struct Parsed {
    command: Command,
    plugins: Vec<PathBuf>,
    /// The words that repeat the command.
    words: Vec<String>,
}

/// Parses the words of a command line. Without a command, they mean `kvdyno run quick`.
fn parsed<Word: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = Word>,
) -> Result<Parsed, clap::Error> {
    let mut definition = definition();
    let matches = definition.try_get_matches_from_mut(words)?;
    let words = request::command(&definition, &matches);
    let Cli { command, plugins } =
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))?;
    match command {
        Some(command) => Ok(Parsed { command, plugins, words }),
        None => Ok(Parsed { plugins, words, ..parsed(["kvdyno", "run", "quick"])? }),
    }
}

/// Runs the command, parsed from these words, and returns its exit code. clap prints the help and most usage errors.
fn ended(parsed: Result<Parsed, clap::Error>, words: &[OsString]) -> u8 {
    let words: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let outcome = match parsed {
        Ok(parsed) => usage::one_dash(&words).map_or_else(|| dispatch(parsed), Err),
        Err(error) if error.use_stderr() => match usage_error(&error, &words) {
            Some(error) => Err(error),
            None => {
                // If stderr cannot be written, the exit code still reports the error.
                let _ = error.print();
                return USAGE;
            }
        },
        Err(help) => help
            .print()
            .map(|()| 0)
            .map_err(|error| CliError::failed(format!("cannot write to stdout: {error}"))),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        if std::env::current_dir().is_err() {
            eprintln!("hint: the current folder was removed or cannot be read; change to another folder");
        }
        error.code
    })
}

/// A better message than that of clap, if there is one.
fn usage_error(error: &clap::Error, words: &[String]) -> Option<CliError> {
    usage::one_dash(words).or_else(|| {
        let mut definition = definition();
        definition.build();
        usage::explained(error, words, &definition)
    })
}

/// The arguments of a run, from the words of its command, and the words that repeat it. `None` for words that are no command
/// of this version.
fn run_command<Word: Into<OsString> + Clone>(words: &[Word]) -> Option<(Box<request::RunArgs>, Vec<String>)> {
    match parsed(words.iter().cloned()) {
        Ok(Parsed { command: Command::Run(args), words, .. }) => Some((args, words)),
        _ => None,
    }
}

/// The arguments of such a run.
fn run_args(words: &[String]) -> Option<Box<request::RunArgs>> {
    run_command(words).map(|(args, _)| args)
}

/// The words that select engines on the command line of a run. If empty, the run uses those of a suite, or the default set.
fn named_engines(words: &[String]) -> Vec<String> {
    run_args(words).map(|args| args.subject.engines).unwrap_or_default()
}

/// The exit code after all output was written. Output that could not be written is a failure.
fn printed(code: u8) -> u8 {
    let Err(error) = output::finish() else { return code };
    if error.kind() == ErrorKind::BrokenPipe {
        if code == 0 {
            signals::end_by_pipe();
        }
        return code;
    }
    eprintln!("error: cannot write to stdout: {error}");
    if code == 0 { FAILED } else { code }
}

fn dispatch(Parsed { command, plugins, words }: Parsed) -> Result<u8, CliError> {
    let plugins = &plugins;
    plugins::check(plugins)?;
    if let Some((old, new)) = command.renamed() {
        eprintln!("note: `kvdyno {old}` is now `kvdyno {new}`");
    }
    match command {
        Command::Run(args) => run::run(&args, plugins, words),
        Command::Plan(args) => plan::run(*args, plugins, words),
        Command::Slo(args) => slo::run(*args, plugins, words),
        Command::Ab(args) => ab::run(*args, plugins, words),
        Command::Guard(args) => guard::run(*args, plugins, words),
        Command::Bisect(args) => bisect::run(*args, plugins, words),
        Command::History(args) => history::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Choose(args) => choose::run(&args, plugins),
        Command::Report(args) => report::run(&args, plugins),
        Command::Compare(args) => compare::run(&args),
        Command::Engines(args) => engines::run(&args, plugins),
        Command::Workloads(args) => workloads::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Prove(args) => prove::run(&args, plugins),
        Command::Serve(args) => serve::run(&args, plugins),
        Command::NewEngine(args) => new_engine::run(&args),
        Command::Doctor(args) => doctor::run(&args, plugins),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Inner(args) => inner::run(args),
        Command::Member(args) => member::run(&args),
        Command::Verify(args) => prove::run_part(*args, "rules", plugins),
        Command::Audit(args) => prove::run_part(*args, "syncs", plugins),
        Command::Crash(args) => prove::run_part(*args, "crash", plugins),
        Command::Faults(args) => prove::run_part(*args, "faults", plugins),
        Command::Certify(args) => prove::run_part(*args, "certificate", plugins),
        Command::Selftest(args) => selftest::run(args.seed),
        Command::Explain(args) => explain::run(&args.workload, &args.changes),
        Command::Plot(args) => plot::run(&args),
        Command::Site(args) => site::run(&args.dirs, &args.out),
    }
}

#[cfg(test)]
mod tests;
