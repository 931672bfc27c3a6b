//! What people type: one file per command.

mod args;
mod compare;
mod completions;
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

use crate::measure::signals;
use clap::{Parser, Subcommand};
use error::CliError;
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
}

/// Parses the arguments, runs the command, and tells how it ended (exit codes: docs/glossary.md).
pub fn main() -> ExitCode {
    signals::end_with_the_reader();
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.code)
        }
    }
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
    }
}
