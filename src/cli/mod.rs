//! The command line: one file per command.

mod args;
mod compare;
mod completions;
mod defect;
mod doctor;
mod engines;
mod error;
mod explain;
mod kept;
mod keys;
mod layouts;
mod limits;
mod live;
mod man;
mod named;
mod new_engine;
mod passwords;
mod plan;
mod plot;
mod plugins;
mod redis_benchmark;
mod refusal;
mod report;
mod run;
mod selftest;
mod serve;
mod site;
mod sizes;
mod trial;
mod verify;
mod versions;
mod workloads;

use crate::measure::{output, signals};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use error::{CliError, FAILED, USAGE};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Benchmark key-value engines. Without a command, run the workload `quick` on all available engines.
#[derive(Debug, Parser)]
#[command(name = "kvdyno", version, max_term_width = 100, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Load the plug-ins (libkvdyno_*.so) in DIR. Can be given more than once.
    #[arg(long, global = true, value_name = "DIR")]
    plugins: Vec<PathBuf>,
}

/// The commands, in the order in which the help lists them.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run workloads on engines and report the results.
    Run(Box<run::RunArgs>),
    /// Print a report of a run.
    Report(report::ReportArgs),
    /// Compare two runs and show what became faster or slower.
    Compare(compare::CompareArgs),
    /// Draw charts of a run as SVG or PNG files.
    Plot(plot::PlotArgs),
    /// Generate a static website from many runs.
    Site(site::SiteArgs),
    /// List all known engines, or show the details of one.
    Engines(engines::EnginesArgs),
    /// List the workloads and suites, or print one.
    Workloads(workloads::WorkloadsArgs),
    /// Describe a workload or suite in plain English.
    Explain(Box<explain::ExplainArgs>),
    /// Create or shuffle a key file.
    Keys(keys::KeysArgs),
    /// Verify engines against a model and test each declared capability.
    Verify(verify::VerifyArgs),
    /// Serve an engine to Redis clients.
    Serve(Box<serve::ServeArgs>),
    /// Create a new driver from a template, ready to build.
    NewEngine(new_engine::NewEngineArgs),
    /// Test kvdyno itself: distributions, random streams, histograms, clock and values.
    Selftest(selftest::SelftestArgs),
    /// Check this machine: what can be measured on it, and what disturbs measurements.
    Doctor(doctor::DoctorArgs),
    /// Print a shell completion script.
    Completions(completions::CompletionsArgs),
    /// Print the manual page.
    Man,
    /// Run one trial in this process (internal).
    #[command(hide = true)]
    Trial(trial::TrialArgs),
    /// Measure one trial with redis-benchmark (internal).
    #[command(hide = true)]
    RedisBenchmarkOne(redis_benchmark::RedisBenchmarkArgs),
    /// Print the contents of plug-ins (internal).
    #[command(hide = true)]
    DescribePlugins(plugins::DescribeArgs),
    /// Print the version of one engine (internal).
    #[command(hide = true)]
    VersionOne(versions::VersionOneArgs),
    /// Verify one engine in this process (internal).
    #[command(hide = true)]
    VerifyOne(verify::VerifyOneArgs),
    /// Verify a database in a fresh process (internal).
    #[command(hide = true)]
    VerifyReopened(verify::VerifyReopenedArgs),
}

impl Command {
    /// Whether another kvdyno process started this one and checks its exit status.
    fn is_inner(&self) -> bool {
        matches!(
            self,
            Command::Trial(_)
                | Command::RedisBenchmarkOne(_)
                | Command::VersionOne(_)
                | Command::VerifyOne(_)
        )
    }
}

/// Parses the arguments, runs the command and returns its exit code (README.md lists the codes).
pub fn main() -> ExitCode {
    signals::end_with_the_reader();
    let parsed = parsed(std::env::args_os());
    if parsed.as_ref().is_ok_and(|cli| cli.command.as_ref().is_some_and(Command::is_inner)) {
        return ExitCode::from(printed(ended(parsed)));
    }
    ExitCode::from(defect::guarded(|| printed(ended(parsed))))
}

/// The command definition. `-1` after a flag is parsed as its value, so that the error states what the flag expects.
fn definition() -> clap::Command {
    fn with_negative(command: clap::Command) -> clap::Command {
        let takes = |arg: clap::Arg| match arg.get_action().takes_values() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        };
        command.mut_args(takes).mut_subcommands(with_negative)
    }
    with_negative(Cli::command())
}

/// Parses the words of a command line.
fn parsed<Word: Into<OsString> + Clone>(words: impl IntoIterator<Item = Word>) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut definition()))
}

/// Runs the command and returns its exit code. clap prints the help and usage errors.
fn ended(parsed: Result<Cli, clap::Error>) -> u8 {
    let outcome = match parsed {
        Ok(cli) => dispatch(cli),
        Err(error) if error.use_stderr() => {
            // If stderr cannot be written, the exit code still reports the error.
            let _ = error.print();
            return USAGE;
        }
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

/// The engines named on the command line of a run. If empty, the run uses all available engines or those of a suite.
fn named_engines(words: &[String]) -> Vec<String> {
    match parsed(words) {
        Ok(Cli { command: Some(Command::Run(args)), .. }) => args.engines,
        _ => Vec::new(),
    }
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

fn dispatch(cli: Cli) -> Result<u8, CliError> {
    let plugins = &cli.plugins;
    plugins::check(plugins)?;
    match cli.command {
        None => run::run(&run::RunArgs::quick(), plugins),
        Some(Command::Run(args)) => run::run(&args, plugins),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Plot(args)) => plot::run(&args),
        Some(Command::Site(args)) => site::run(&args),
        Some(Command::Engines(args)) => engines::run(&args, plugins),
        Some(Command::Workloads(args)) => workloads::run(&args),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::Keys(args)) => keys::run(&args),
        Some(Command::Verify(args)) => verify::run(&args, plugins),
        Some(Command::Serve(args)) => serve::run(&args, plugins),
        Some(Command::NewEngine(args)) => new_engine::run(&args),
        Some(Command::Selftest(args)) => selftest::run(&args),
        Some(Command::Doctor(args)) => doctor::run(&args, plugins),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man) => man::run(),
        Some(Command::Trial(args)) => trial::run(&args),
        Some(Command::RedisBenchmarkOne(args)) => redis_benchmark::run_one(&args, plugins),
        Some(Command::DescribePlugins(args)) => plugins::describe(&args),
        Some(Command::VersionOne(args)) => versions::run_one(&args),
        Some(Command::VerifyOne(args)) => verify::run_one(&args, plugins),
        Some(Command::VerifyReopened(args)) => verify::run_reopened(&args, plugins),
    }
}

#[cfg(test)]
mod tests;
