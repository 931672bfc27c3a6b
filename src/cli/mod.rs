//! What people type: one file per command.

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
mod outside;
mod passwords;
mod plan;
mod plot;
mod plugins;
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

/// A dynamometer for key-value engines. Without a command: `run quick` on every engine this build has.
#[derive(Debug, Parser)]
#[command(name = "kvdyno", version, max_term_width = 100, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// A folder with plug-ins (libkvdyno_*.so); may be given more than once.
    #[arg(long, global = true, value_name = "DIR")]
    plugins: Vec<PathBuf>,
}

/// The commands, in the order of help.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure engines under workloads.
    Run(Box<run::RunArgs>),
    /// Report on a results folder.
    Report(report::ReportArgs),
    /// Compare two runs: what became faster or slower.
    Compare(compare::CompareArgs),
    /// Draw charts of a results folder: SVG and PNG files for papers and READMEs.
    Plot(plot::PlotArgs),
    /// Make a static site of many results folders.
    Site(site::SiteArgs),
    /// List every engine the project knows, here or absent, or show one.
    Engines(engines::EnginesArgs),
    /// List the workloads, or print one.
    Workloads(workloads::WorkloadsArgs),
    /// Say in plain words what a workload or a suite does.
    Explain(Box<explain::ExplainArgs>),
    /// Make a file of keys, or shuffle one.
    Keys(keys::KeysArgs),
    /// Prove what a driver declares, against a model.
    Verify(verify::VerifyArgs),
    /// Serve an engine to Redis clients.
    Serve(Box<serve::ServeArgs>),
    /// Make a folder with a new driver, ready to build.
    NewEngine(new_engine::NewEngineArgs),
    /// Test the harness itself: distributions, streams, histograms, clock, values.
    Selftest(selftest::SelftestArgs),
    /// Look at the machine: what can be measured on it, and what stands in the way.
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Print the manual page.
    Man,
    /// One trial in this process; for kvdyno's own use.
    #[command(hide = true)]
    Trial(trial::TrialArgs),
    /// One trial by another program; for kvdyno's own use.
    #[command(hide = true)]
    OutsideOne(outside::OutsideArgs),
    /// What plug-ins hold; for kvdyno's own use.
    #[command(hide = true)]
    DescribePlugins(plugins::DescribeArgs),
    /// One engine's version; for kvdyno's own use.
    #[command(hide = true)]
    VersionOne(versions::VersionOneArgs),
    /// One engine's conformance in this process; for kvdyno's own use.
    #[command(hide = true)]
    VerifyOne(verify::VerifyOneArgs),
    /// A database of one engine in a fresh process; for kvdyno's own use.
    #[command(hide = true)]
    VerifyReopened(verify::VerifyReopenedArgs),
}

impl Command {
    /// Whether this process works for another one of ours, which looks at how it ends.
    fn is_inner(&self) -> bool {
        matches!(
            self,
            Command::Trial(_) | Command::OutsideOne(_) | Command::VersionOne(_) | Command::VerifyOne(_)
        )
    }
}

/// Parses the arguments, runs the command, and tells how it ended (exit codes: README.md).
pub fn main() -> ExitCode {
    signals::end_with_the_reader();
    let parsed = parsed(std::env::args_os());
    if parsed.as_ref().is_ok_and(|cli| cli.command.as_ref().is_some_and(Command::is_inner)) {
        return ExitCode::from(printed(ended(parsed)));
    }
    ExitCode::from(defect::guarded(|| printed(ended(parsed))))
}

/// The commands; `-1` behind a flag is its value, so that the message says what the flag expects.
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

/// What the words of a command line ask for.
fn parsed<Word: Into<OsString> + Clone>(words: impl IntoIterator<Item = Word>) -> Result<Cli, clap::Error> {
    let matches = definition().try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut definition()))
}

/// Runs what was asked for; help and wrong arguments are clap's to print.
fn ended(parsed: Result<Cli, clap::Error>) -> u8 {
    let outcome = match parsed {
        Ok(cli) => dispatch(cli),
        Err(error) if error.use_stderr() => {
            // Who hears nothing still gets the exit code.
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
            eprintln!("hint: the current folder is gone, or may not be read: change to another one");
        }
        error.code
    })
}

/// The engines that the command line of a run names; none: all that are here, or those of a suite.
fn asked_by_name(words: &[String]) -> Vec<String> {
    match parsed(words) {
        Ok(Cli { command: Some(Command::Run(args)), .. }) => args.engines,
        _ => Vec::new(),
    }
}

/// The exit code, now that all is printed: what nobody could read is a failure.
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
        Some(Command::OutsideOne(args)) => outside::run_one(&args, plugins),
        Some(Command::DescribePlugins(args)) => plugins::describe(&args),
        Some(Command::VersionOne(args)) => versions::run_one(&args),
        Some(Command::VerifyOne(args)) => verify::run_one(&args, plugins),
        Some(Command::VerifyReopened(args)) => verify::run_reopened(&args, plugins),
    }
}

#[cfg(test)]
mod tests;
