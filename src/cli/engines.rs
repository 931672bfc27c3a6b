//! `kvdyno engines [WORDS]`: lists all engines or the selected ones, available or not, or shows the details of one.

mod list;
mod show;

use super::args;
use super::error::CliError;
use super::plugins;
use super::screen::of_stdout;
use super::versions::versions;
use kvdyno_core::engine::{ALL, Absent, Engine, Known, Lookup, Registry, capability_names, catalogue};
use kvdyno_measure::signals;
use kvdyno_prove::proven::{Proven, level_names, proven, proven_here};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// List all known engines, or show the details of one.
#[derive(Debug, clap::Args)]
pub(super) struct EnginesArgs {
    #[arg(value_name = "ENGINE", value_delimiter = ',',
          help = format!("Show the details and options of this engine, or list the selected engines. {}", args::SELECTORS))]
    engines: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How long the list waits for the versions of all engines.
const LIST_BUDGET: Duration = Duration::from_millis(1500);
/// How long the page of one engine waits for its version.
const SHOW_BUDGET: Duration = Duration::from_secs(10);
/// The maximum width of the output in columns.
const COLUMNS: usize = 110;

/// Everything that is known about one engine.
struct Row {
    name: String,
    /// From its engine.toml. `None` for a plug-in that the project does not know.
    known: Option<&'static Known>,
    /// `None` if it is not available.
    engine: Option<Engine>,
    /// Set if it is not available.
    absent: Option<Absent>,
    proven: Option<Proven>,
    /// Reported by the engine. `None` if unknown.
    version: Option<String>,
}

/// Prints the list or one engine.
pub(super) fn run(args: &EnginesArgs, given: &[PathBuf]) -> Result<u8, CliError> {
    let registry = plugins::registry(given, &[])?;
    let mut rows = rows(&registry);
    let name = match args.engines.as_slice() {
        [name] if !matches!(registry.engine(name), Err(Lookup::Unknown(_))) => Some(name),
        _ => None,
    };
    if let Some(name) = name {
        match registry.engine(name) {
            Ok(engine) => rows = vec![Row::of(name, Some(engine), None)],
            Err(_) if rows.iter().any(|row| row.name == *name) => rows.retain(|row| row.name == *name),
            Err(_) => {
                let names = std::slice::from_ref(name);
                plugins::warn(&registry, names);
                args::engines(&registry, names).map(|_| ())?;
            }
        }
    } else if !args.engines.is_empty() {
        plugins::warn(&registry, &args.engines);
        let selection = args::any_selected(&registry, &args.engines, ALL, "engine")?;
        let names: Vec<String> = selection.names();
        let is_missing = |row: &Row| selection.missing.iter().any(|(name, _)| *name == row.name);
        rows.retain(|row| names.contains(&row.name) || is_missing(row));
    }
    let budget = if name.is_some() { SHOW_BUDGET } else { LIST_BUDGET };
    // The version of a server takes seconds: one must be started.
    let asked = rows.iter().filter(|row| name.is_some() || !row.is_server());
    let available: Vec<&Engine> = asked.filter_map(|row| row.engine.as_ref()).collect();
    let mut found = versions(&available, budget).unwrap_or_else(|error| {
        eprintln!("warning: the versions of engines are unknown: {error}");
        BTreeMap::new()
    });
    if signals::interrupts() > 0 {
        return Ok(signals::stopped_code());
    }
    rows.iter_mut().for_each(|row| row.version = found.remove(&row.name));
    let width = of_stdout().width.min(COLUMNS);
    match (name, args.json) {
        (Some(_), true) => println!("{}", rows[0].json()),
        (None, true) => println!("{}", Value::Array(rows.iter().map(Row::json).collect())),
        (Some(_), false) => print!("{}", show::text(&rows[0], given, width)),
        (None, false) => print!("{}", list::text(&rows, registry.refused(), width)),
    }
    Ok(0)
}

fn rows(registry: &Registry) -> Vec<Row> {
    let available =
        registry.engines().iter().map(|engine| Row::of(engine.name(), Some(engine.clone()), None));
    let absent = registry.absent().iter().map(|one| Row::of(&one.known.name, None, Some(one.clone())));
    let mut rows: Vec<Row> = available.chain(absent).collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

impl Row {
    fn of(name: &str, engine: Option<Engine>, absent: Option<Absent>) -> Row {
        let known = catalogue().iter().find(|known| known.name == name);
        let proven = match &engine {
            Some(engine) => proven_here(engine),
            None => proven(name).cloned(),
        };
        Row { name: name.to_string(), known, engine, absent, proven, version: None }
    }

    fn is_server(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.family() == "server")
    }

    /// A field of its engine.toml, or `-` for a plug-in that the project does not know.
    fn fact(&self, field: impl Fn(&'static Known) -> &'static str) -> &'static str {
        self.known.map_or("-", field)
    }

    fn family(&self) -> String {
        let own = self.engine.as_ref().map(Engine::family);
        own.unwrap_or_else(|| self.fact(|known| &known.family).to_string())
    }

    fn language(&self) -> String {
        let own = self.engine.as_ref().map(Engine::language);
        own.unwrap_or_else(|| self.fact(|known| &known.language).to_string())
    }

    /// Its durability levels, from its driver table or from the last proof. `None` if unknown.
    fn levels(&self) -> Option<Vec<String>> {
        let own = self.engine.as_ref().map(|engine| level_names(engine.levels()));
        own.or_else(|| self.proven.as_ref().map(|proven| proven.levels.clone()))
    }

    /// The capabilities that the driver table of an available engine declares.
    fn declared(&self) -> Option<Vec<&'static str>> {
        self.engine.as_ref().map(|engine| capability_names(engine.capabilities()))
    }

    fn json(&self) -> Value {
        let engine = self.engine.as_ref();
        let options = engine.map(Engine::options).unwrap_or_default();
        let options = options.iter().map(|option| {
            json!({ "name": option.name, "type": option.kind, "default": option.default_value,
                    "help": option.help })
        });
        json!({
            "name": self.name,
            "is_present": engine.is_some(),
            "is_known": self.known.is_some(),
            "about": engine.map(Engine::about),
            "origin": engine.map(|engine| engine.origin().to_string()),
            "reason": self.absent.as_ref().and_then(|absent| absent.reason.clone()),
            "get": self.known.map(|known| &known.get),
            "family": self.family(),
            "language": self.language(),
            "version": self.version,
            "licence": self.known.map(|known| &known.licence),
            "upstream": self.known.map(|known| &known.upstream),
            "build": self.known.map(|known| &known.build),
            "needs_env": self.known.map(|known| &known.needs_env),
            "needs_cpu": self.known.map(|known| &known.needs_cpu),
            "fairness": self.known.map(|known| &known.fairness),
            "defects": self.known.map(|known| &known.defects),
            "levels": self.levels(),
            "key_size_max_bytes": engine.map(Engine::key_size_max),
            "capabilities_declared": self.declared(),
            "capabilities_proven": self.proven.as_ref().map(|proven| &proven.capabilities),
            "traits": self.proven.as_ref().map(|proven| &proven.traits),
            "version_proven": self.proven.as_ref().and_then(|proven| proven.version.as_ref()),
            "options": options.collect::<Vec<_>>(),
        })
    }
}
