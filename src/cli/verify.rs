//! `kvdyno verify [ENGINE...]`: conformance, one process per engine, so that a crash or a hang is a result.

use super::error::{CliError, WRONG};
use crate::audit::proven::{self, Proven};
use crate::audit::verify::{Choice, Effort, Outcome, Report, check_names, verify};
use crate::engine::{Engine, Registry, environment_of, mutant_names};
use crate::measure::signals;
use crate::runner::DataFolder;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Prove what a driver declares, against a model.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Engines; without one: all there are. `mutants` stands for every engine with a planted fault.
    engines: Vec<String>,
    #[command(flatten)]
    how: How,
    /// Where databases are made and removed.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results/verify")]
    data: PathBuf,
    /// Show every check, not only those that fail.
    #[arg(short, long)]
    all: bool,
    /// The reports as JSON.
    #[arg(long)]
    json: bool,
    /// Enter what green engines have proven in this file (TOML), beside what stands there of others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["checks", "options"])]
    proven: Option<PathBuf>,
    /// End a check that takes longer than this.
    #[arg(long, value_name = "N", default_value_t = 120)]
    stall_seconds: u64,
}

/// How much is tried.
#[derive(Debug, clap::Args)]
struct How {
    /// The seed of the random ops.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Random ops of the model check.
    #[arg(long, default_value_t = 20_000)]
    ops: u64,
    /// Seconds after which a check draws no more ops.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Run this check alone; may be given more than once.
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// Set an option of an engine; may be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    options: Vec<String>,
}

/// One engine in this process.
#[derive(Debug, clap::Args)]
pub struct VerifyOneArgs {
    engine: String,
    data: PathBuf,
    #[command(flatten)]
    how: How,
}

impl How {
    fn effort(&self) -> Effort {
        Effort { seed: self.seed, ops: self.ops, seconds: self.seconds }
    }
}

/// Begins the line that names a check before it runs.
const BEGUN: &str = "kvdyno-check ";
/// Begins the line with the report.
const REPORT: &str = "kvdyno-report ";

/// The child's side.
pub fn run_one(args: &VerifyOneArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    signals::become_trial_process();
    // Its plug-in alone, as a trial does.
    let registry = Registry::alone(plugins.first().map(PathBuf::as_path)).map_err(CliError::failed)?;
    let names = std::slice::from_ref(&args.engine);
    let engine = super::args::engines(&registry, names)?;
    let settings = super::args::options(&engine, names, &args.how.options)?.remove(0).options;
    let choice = Choice { checks: args.how.checks.clone(), settings };
    let report = verify(&engine[0], &args.data, args.how.effort(), &choice, |name| {
        println!("{BEGUN}{name}");
        let _ = std::io::stdout().flush();
    });
    let json = serde_json::to_string(&report).map_err(|error| CliError::failed(error.to_string()))?;
    println!("{REPORT}{json}");
    Ok(0)
}

/// How an engine's process ended.
enum Verdict {
    Report(Box<Report>),
    /// In which check, and how.
    Died(String, String),
}

/// Runs the command.
pub fn run(args: &VerifyArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let registry = super::plugins::registry(plugins, &args.engines)?;
    super::plugins::warn(&registry, &args.engines);
    let mut names: Vec<String> = Vec::new();
    for name in &args.engines {
        if name == "mutants" {
            names.extend(mutant_names());
        } else {
            names.push(name.clone());
        }
    }
    if args.engines.is_empty() {
        names = registry.engines().iter().map(|engine| engine.name().to_string()).collect();
    }
    let engines: Vec<Engine> = super::args::engines(&registry, &names)?;
    super::args::options(&engines, &names, &args.how.options)?;
    let known = check_names();
    if let Some(name) = args.how.checks.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(super::args::unknown("check", name, &known, "kvdyno verify --all ENGINE"));
    }
    let mut is_red = false;
    let mut reports = Vec::new();
    for (name, engine) in names.iter().zip(&engines) {
        let verdict = one(args, engine.plugin_file(), name)?;
        is_red |= !matches!(&verdict, Verdict::Report(report) if report.is_green());
        if let Some(file) = &args.proven {
            keep(file, engine, &verdict)?;
        }
        if args.json {
            reports.push(json_of(name, &verdict));
        } else {
            show(name, &verdict, args.all);
        }
    }
    // Only if it is empty; it is made anew when it is needed.
    let _ = std::fs::remove_dir(&args.data);
    if args.json {
        println!("{}", serde_json::Value::Array(reports));
    }
    Ok(if is_red { WRONG } else { 0 })
}

/// Enters what was proven; of an engine that failed nothing is.
fn keep(file: &Path, engine: &Engine, verdict: &Verdict) -> Result<(), CliError> {
    let row = match verdict {
        Verdict::Report(report) => Proven::of(engine, report),
        Verdict::Died(..) => None,
    };
    match row {
        Some(row) => proven::keep(file, row).map_err(CliError::failed),
        None => {
            eprintln!("{}: nothing is proven, so {} stays as it is", engine.name(), file.display());
            Ok(())
        }
    }
}

fn json_of(name: &str, verdict: &Verdict) -> serde_json::Value {
    match verdict {
        Verdict::Report(report) => serde_json::to_value(report).unwrap_or_default(),
        Verdict::Died(check, how) => serde_json::json!({ "engine": name, "died_in": check, "how": how }),
    }
}

fn show(name: &str, verdict: &Verdict, all: bool) {
    match verdict {
        Verdict::Died(check, how) => println!("{name:24} RED    {how} in check {check}"),
        Verdict::Report(report) => {
            let count = |wanted: fn(&Outcome) -> bool| {
                report.checks.iter().filter(|check| wanted(&check.outcome)).count()
            };
            let passed = count(|outcome| *outcome == Outcome::Passed);
            let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
            let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
            let colour = if report.is_green() { "green" } else { "RED" };
            println!("{name:24} {colour:6} {passed} passed, {failed} failed, {skipped} not for this engine");
            if all {
                println!("{report}");
            } else {
                report.failures().for_each(|(check, text)| println!("    {check}: {text}"));
            }
        }
    }
}

fn one(args: &VerifyArgs, plugin: Option<&Path>, name: &str) -> Result<Verdict, CliError> {
    let folder =
        DataFolder::create(&args.data, "verify", &name.replace(':', "-")).map_err(CliError::failed)?;
    let mut child = spawn(args, plugin, name, &folder.database())?;
    let verdict = watch(&mut child, Duration::from_secs(args.stall_seconds), name);
    folder.remove().map_err(CliError::failed)?;
    Ok(verdict)
}

fn spawn(args: &VerifyArgs, plugin: Option<&Path>, name: &str, data: &Path) -> Result<Child, CliError> {
    let failed =
        |error: std::io::Error| CliError::failed(format!("cannot start a process for {name}: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.envs(environment_of(name));
    command.arg("verify-one").arg(name).arg(data);
    command.arg(format!("--seed={}", args.how.seed)).arg(format!("--ops={}", args.how.ops));
    command.arg(format!("--seconds={}", args.how.seconds));
    command.args(args.how.checks.iter().map(|check| format!("--check={check}")));
    let own = format!("{}.", super::args::named(name).0);
    let options = args.how.options.iter().filter(|option| option.starts_with(&own));
    command.args(options.map(|option| format!("--option={option}")));
    if let Some(file) = plugin {
        command.arg("--plugins").arg(file);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // Panics that a check provokes and catches are no news for the reader.
    command.stderr(Stdio::null());
    command.spawn().map_err(failed)
}

fn watch(child: &mut Child, stall: Duration, name: &str) -> Verdict {
    let (send, receive) = channel::<String>();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
    }
    let on_terminal = std::io::stderr().is_terminal();
    let mut check = "open".to_string();
    let mut report = None;
    let mut stalled = false;
    loop {
        match receive.recv_timeout(stall) {
            Ok(line) => {
                if let Some(begun) = line.strip_prefix(BEGUN) {
                    check = begun.to_string();
                    if on_terminal {
                        eprint!("\r\x1b[K{name}: {check}");
                    }
                } else if let Some(json) = line.strip_prefix(REPORT) {
                    report = serde_json::from_str(json).ok();
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                stalled = true;
                // It may be gone already; then there is nothing to kill.
                let _ = child.kill();
            }
        }
    }
    if on_terminal {
        eprint!("\r\x1b[K");
    }
    let status = child.wait().ok();
    match (report, stalled, status.and_then(|status| status.signal())) {
        (Some(report), false, None) => Verdict::Report(Box::new(report)),
        (_, true, _) => Verdict::Died(check, format!("nothing happened for {} s", stall.as_secs())),
        (_, _, Some(signal)) => {
            Verdict::Died(check, format!("the process died of {}", signals::signal_name(signal)))
        }
        (_, _, None) => Verdict::Died(check, "the process ended early".into()),
    }
}
