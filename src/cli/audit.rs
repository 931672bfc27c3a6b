//! `kvdyno audit [ENGINE...]`: compares the durability level that a driver claims with the sync calls that its engine makes.

use super::error::{CliError, WRONG};
use super::verify::{lock_folder, names};
use kvdyno_core::engine::Engine;
use kvdyno_core::results::Durability;
use kvdyno_core::results::audit::{Audit, AuditVerdict, Shape};
use kvdyno_core::runner::level_number;
use kvdyno_measure::signals;
use kvdyno_measure::text::{Align, Table, listed, wrapped};
use kvdyno_prove::syncs::{GROUP, Pass, observe};
use kvdyno_report::{SYNC_COLUMNS, sync_cells};
use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use strum::VariantArray;

/// Compare the durability level that each driver claims with the sync calls that its engine makes.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    #[arg(value_name = "ENGINE", value_delimiter = ',',
          help = format!("Engines to audit [default: all available engines]. {}", super::args::SELECTORS))]
    engines: Vec<String>,
    /// Durability levels to audit: none, process or power [default: all levels of each engine].
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    durability: Vec<String>,
    /// Commits of each shape: puts, groups, transactions, puts of two threads.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    ops: u64,
    /// Seed of the values.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Set an option of an engine. Can be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    options: Vec<String>,
    /// Create temporary databases in DIR.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results/audit")]
    data: PathBuf,
    /// Print the observations as JSON.
    #[arg(long)]
    json: bool,
    /// Stop an engine that makes no progress for N seconds.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    stall_seconds: u64,
}

const LEVELS: [Durability; 3] = [Durability::None, Durability::Process, Durability::Power];

/// Runs the command.
pub fn run(args: &AuditArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let asked = levels(&args.durability)?;
    let registry = super::plugins::registry(plugins, &args.engines)?;
    super::plugins::warn(&registry, &args.engines);
    let names = names(&registry, &args.engines)?;
    let engines: Vec<Engine> = super::args::engines(&registry, &names)?;
    let contestants = super::args::options(&engines, &names, &args.options)?;
    let lock = lock_folder(&args.data, &["audit"])?;
    tell_without_level(&names, &engines, &asked);
    signals::count_interrupts();
    let mut audits = Vec::new();
    for ((name, engine), contestant) in names.iter().zip(&engines).zip(contestants) {
        let has = |level: &&Durability| engine.levels() & 1 << level_number(**level) != 0;
        for level in asked.iter().filter(has) {
            let pass = Pass {
                engine: super::args::split_options(name).0.to_string(),
                plugin: engine.plugin_file().map(PathBuf::from),
                level: *level,
                options: contestant.options.clone(),
                seed: args.seed,
                commits: args.ops,
                shapes: Shape::VARIANTS.to_vec(),
                data: args.data.clone(),
                run: "audit".into(),
            };
            if signals::interrupts() == 0 {
                progress(&format!("{name}, level {level}"));
                audits
                    .push(observe(&pass, Duration::from_secs(args.stall_seconds)).map_err(CliError::failed)?);
            }
        }
    }
    progress("");
    // This removes the folder only if it is empty.
    let _ = fs::remove_dir(&args.data);
    drop(lock);
    if audits.is_empty() && signals::interrupts() == 0 {
        return Err(CliError::usage("none of these engines has a level of --durability")
            .hint("`kvdyno engines NAME` shows the levels of an engine"));
    }
    if args.json {
        let all: Vec<_> = audits.iter().map(json_of).collect();
        println!("{}", serde_json::Value::Array(all));
    } else {
        print!("{}", text(&audits));
    }
    if signals::interrupts() > 0 {
        eprintln!("interrupted; only the engines listed above were audited");
        return Ok(signals::stopped_code());
    }
    let is_contradicted = |audit: &Audit| audit.verdict().0 == AuditVerdict::Contradicted;
    Ok(if audits.iter().any(is_contradicted) { WRONG } else { 0 })
}

/// Shows on a terminal what is being done; an empty text removes it.
pub(super) fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// Names the engines that have none of the levels: they are in no table.
pub(super) fn tell_without_level(names: &[String], engines: &[Engine], asked: &[Durability]) {
    let has = |engine: &Engine, level: &Durability| engine.levels() & 1 << level_number(*level) != 0;
    let without =
        names.iter().zip(engines).filter(|(_, engine)| !asked.iter().any(|level| has(engine, level)));
    let without: Vec<String> = without.map(|(name, _)| name.clone()).collect();
    if !without.is_empty() {
        eprintln!("skipped, without a level of --durability: {}", listed(&without, "and"));
    }
}

/// The levels to audit: all three if none are named.
pub(super) fn levels(words: &[String]) -> Result<Vec<Durability>, CliError> {
    if words.is_empty() {
        return Ok(LEVELS.to_vec());
    }
    let mut levels = Vec::new();
    for word in words {
        let level: Durability = word.parse()?;
        if level == Durability::Default {
            return Err(CliError::usage("--durability: `default` is requested, never claimed")
                .hint("name none, process or power, or leave --durability out"));
        }
        levels.push(level);
    }
    levels.sort_unstable();
    levels.dedup();
    Ok(levels)
}

/// An observation with its verdict.
fn json_of(audit: &Audit) -> serde_json::Value {
    let mut value = serde_json::to_value(audit).unwrap_or_default();
    let (verdict, reason) = audit.verdict();
    value["verdict"] = serde_json::json!(verdict);
    value["reason"] = serde_json::json!(reason);
    value
}

/// The table, and the reasons of verdicts other than `agrees`.
fn text(audits: &[Audit]) -> String {
    let subject = [("engine", Align::Left), ("version", Align::Left), ("level", Align::Left)];
    let columns = [&subject[..], &SYNC_COLUMNS, &[("verdict", Align::Left)]].concat();
    let mut table = Table::with_titles(&columns);
    let mut reasons = String::new();
    for audit in audits {
        let (verdict, reason) = audit.verdict();
        let mut row = vec![
            audit.engine.clone(),
            audit.version.clone().unwrap_or_else(|| "-".into()),
            audit.level.to_string(),
        ];
        row.extend(sync_cells(audit));
        row.push(verdict.to_string());
        table.push(row);
        if let Some(reason) = reason {
            let line = format!("{}, level {}: {verdict}: {reason}.", audit.engine, audit.level);
            reasons += &wrapped("", "  ", &line, 100);
        }
    }
    let head = format!("Syncs per acknowledged commit; groups and transactions have {GROUP} puts:");
    format!("{head}\n\n{}\n{reasons}", table.text())
}
