//! `kvdyno faults [ENGINE...]`: makes system calls of engines fail, and shows what they do and what is left.

use super::audit::progress;
use super::error::{CliError, WRONG};
use super::verify::{lock_folder, names};
use kvdyno_core::engine::Engine;
use kvdyno_core::results::Durability;
use kvdyno_core::runner::{level_number, level_of};
use kvdyno_measure::signals;
use kvdyno_measure::text::{Align, Table, wrapped};
use kvdyno_prove::faults::{FaultKind, IN_MEMORY, Reaction, Row, Target, probe};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use strum::VariantArray;

/// Make system calls of engines fail as on a broken or full disk, and show what the engines do and whether acknowledged data
/// is there afterwards.
#[derive(Debug, clap::Args)]
pub struct FaultsArgs {
    #[arg(value_name = "ENGINE", value_delimiter = ',',
          help = format!("Engines to test [default: all available engines]. {}", super::args::SELECTORS))]
    engines: Vec<String>,
    /// Faults: sync-eio, write-eio, read-eio (one call fails), enospc, emfile (all calls fail from one on) [default: all].
    #[arg(long, value_name = "FAULTS", value_delimiter = ',')]
    faults: Vec<FaultKind>,
    /// Durability level: none, process or power [default: the strongest of each engine].
    #[arg(long, value_name = "LEVEL")]
    durability: Option<String>,
    /// Failing calls of each kind, each in a process of its own.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    points: u64,
    /// Seed of keys, values and the choice of calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Set an option of an engine. Can be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    options: Vec<String>,
    /// Create temporary databases in DIR.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results/faults")]
    data: PathBuf,
    /// Print the observations as JSON.
    #[arg(long)]
    json: bool,
    /// An engine that makes no progress for N seconds hangs. Some try again for half a minute.
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..))]
    stall_seconds: u64,
}

/// Runs the command.
pub fn run(args: &FaultsArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let asked: Option<Durability> = args.durability.as_deref().map(str::parse).transpose()?;
    if asked == Some(Durability::Default) {
        return Err(CliError::usage("--durability: `default` is requested, never claimed")
            .hint("name none, process or power, or leave --durability out"));
    }
    let kinds = if args.faults.is_empty() { FaultKind::VARIANTS.to_vec() } else { args.faults.clone() };
    let registry = super::plugins::registry(plugins, &args.engines)?;
    super::plugins::warn(&registry, &args.engines);
    let names = names(&registry, &args.engines)?;
    let engines: Vec<Engine> = super::args::engines(&registry, &names)?;
    let contestants = super::args::options(&engines, &names, &args.options)?;
    let lock = lock_folder(&args.data, &["faults"])?;
    signals::count_interrupts();
    let mut rows: Vec<Row> = Vec::new();
    for ((name, engine), contestant) in names.iter().zip(&engines).zip(contestants) {
        if engine.stores_nothing() || signals::interrupts() > 0 {
            continue;
        }
        let Some(level) = level_for(engine, asked) else { continue };
        progress(name);
        let target = Target {
            engine: super::args::split_options(name).0.to_string(),
            plugin: engine.plugin_file().map(PathBuf::from),
            level,
            options: contestant.options,
            seed: args.seed,
            points: args.points as usize,
            data: args.data.clone(),
            stall: Duration::from_secs(args.stall_seconds),
        };
        rows.extend(probe(&target, &kinds).map_err(CliError::failed)?);
    }
    progress("");
    // This removes the folder only if it is empty.
    let _ = fs::remove_dir(&args.data);
    drop(lock);
    if rows.is_empty() && signals::interrupts() == 0 {
        return Err(CliError::usage("none of these engines stores anything at this level")
            .hint("`kvdyno engines NAME` shows the levels of an engine"));
    }
    if args.json {
        println!("{}", serde_json::to_string(&rows)?);
    } else {
        print!("{}", text(&rows, &kinds));
    }
    if signals::interrupts() > 0 {
        eprintln!("interrupted; the last engine above may be incomplete");
        return Ok(signals::stopped_code());
    }
    if rows.iter().all(|row| row.skipped.is_some()) {
        return Err(CliError::failed("nothing was tested").hint("the reasons are above"));
    }
    Ok(if rows.iter().any(Row::is_broken) { WRONG } else { 0 })
}

/// The requested level if the engine has it, or its strongest.
fn level_for(engine: &Engine, asked: Option<Durability>) -> Option<Durability> {
    let has = |level: &Durability| engine.levels() & 1 << level_number(*level) != 0;
    match asked {
        Some(level) => Some(level).filter(has),
        None => (0..=level_number(Durability::Power)).rev().map(level_of).find(has),
    }
}

/// The matrix, and the reasons for everything but a report.
fn text(rows: &[Row], kinds: &[FaultKind]) -> String {
    let mut titles = vec![("engine", Align::Left), ("version", Align::Left), ("level", Align::Left)];
    titles.extend(kinds.iter().map(|kind| (kind.name(), Align::Left)));
    let mut table = Table::with_titles(&titles);
    let (mut lines, mut in_memory): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for of_engine in rows.chunk_by(|one, other| one.engine == other.engine) {
        let first = &of_engine[0];
        if first.skipped.as_deref() == Some(IN_MEMORY) {
            in_memory.push(&first.engine);
            continue;
        }
        let version = first.version.clone().unwrap_or_else(|| "-".into());
        let mut cells = vec![first.engine.clone(), version, first.level.to_string()];
        cells.extend(of_engine.iter().map(cell));
        table.push(cells);
        of_engine.iter().for_each(|row| lines.extend(reasons(row)));
    }
    lines.dedup();
    if !in_memory.is_empty() {
        lines.push(format!("Not tested, because they keep nothing in files: {}.", in_memory.join(", ")));
    }
    let lines: String = lines.iter().map(|line| wrapped("", "  ", line, 100)).collect();
    format!("What engines do if system calls fail:\n\n{}\n{lines}", table.text())
}

/// What is said of a row besides its cell.
fn reasons(row: &Row) -> Vec<String> {
    let odd = [Reaction::Broken, Reaction::Hung, Reaction::Crashed];
    let of_point = |reaction| {
        let point = row.first(reaction)?;
        let place = format!("call {} of {}", point.call, row.calls);
        Some(format!("{}, {}, {place}: {reaction}: {}.", row.engine, row.fault, point.text))
    };
    let skipped = row.skipped.iter().map(|reason| format!("{}: not tested: {reason}.", row.engine));
    odd.into_iter().filter_map(of_point).chain(skipped).collect()
}

/// `reported 4, absorbed 2`; `-` if no call of this kind was made.
fn cell(row: &Row) -> String {
    match &row.reactions()[..] {
        [] => "-".into(),
        [(reaction, _)] => reaction.to_string(),
        several => several
            .iter()
            .map(|(reaction, count)| format!("{reaction} {count}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
