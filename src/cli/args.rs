//! Arguments that several commands share: engines and options.

use super::error::CliError;
use kvdyno_core::engine::{
    Engine, Lookup, Registry, SelectError, Selection, catalogue, mutant_names, nodes_option_of,
};
use kvdyno_core::runner::{Contestant, URL, option_value};
use kvdyno_core::workload::Durability;
use kvdyno_measure::text::{counted, nearest};

/// The error for an unknown name, with the nearest known name or the command that lists them.
pub(super) fn unknown(what: &str, name: &str, known: &[&str], list: &str) -> CliError {
    let error = CliError::usage(format!("unknown {what} `{name}`"));
    match nearest(name, known) {
        Some(near) if *near == name.to_lowercase() => {
            error.hint(format!("did you mean `{near}`? Names are lower case"))
        }
        Some(near) => error.hint(format!("did you mean `{near}`? See `{list}` for a list")),
        None => error.hint(format!("see `{list}` for a list")),
    }
}

/// What the durability levels mean.
const LEVELS: &str = "the levels are: none (may lose anything), process (survives a crash of the process), power (survives a power \
     failure, as with an fsync for each commit) and default (what the engine's authors chose)";

/// Words for durability in engines and other tools, and the level that is nearest to them.
const SYNCS: [(&str, &str); 12] = [
    ("async", "none"),
    ("nosync", "none"),
    ("no-sync", "none"),
    ("nofsync", "none"),
    ("off", "none"),
    ("os", "process"),
    ("wal", "process"),
    ("sync", "power"),
    ("durable", "power"),
    ("always", "power"),
    ("full", "power"),
    ("disk", "power"),
];

/// A durability level.
pub(super) fn level(text: &str) -> Result<Durability, CliError> {
    text.trim().parse().map_err(|_| {
        let word = text.to_lowercase();
        let similar =
            SYNCS.iter().find(|(known, _)| word == *known || known.len() > 3 && word.contains(known));
        let near = similar
            .map(|(_, level)| *level)
            .or_else(|| nearest(text, &["none", "process", "power", "default"]));
        let meant = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let levels = if meant.is_empty() { LEVELS.to_string() } else { LEVELS.replacen("the", "The", 1) };
        CliError::usage(format!("unknown durability level `{text}`")).hint(meant + &levels)
    })
}

/// The help of arguments that select engines, after a sentence of their own.
pub(super) const SELECTORS: &str = "Each is a name, `all`, `default`, a language (`rust`), a family (`lsm`, `hash`, `memory`), \
     `in-memory`, `cache`, `server`, or a pattern (`'*-memory'`); `-` before it excludes: `all,-sled`.";

/// The engines that words select. A word that is unknown, and a group without an available engine, are errors.
pub(super) fn selected(registry: &Registry, words: &[String], start: &str) -> Result<Selection, CliError> {
    let selection = any_selected(registry, words, start, "engine")?;
    let Some((word, missing)) = selection.unmet.first() else { return Ok(selection) };
    let missing: Vec<String> = missing.iter().map(|(name, advice)| format!("{name}: {advice}")).collect();
    let text = format!("no engine of `{word}` is available\n  {}", missing.join("\n  "));
    Err(CliError::absent(text.trim_end().to_string()))
}

/// The same, but a group may have no available engine; `what` is for the message about an unknown word.
pub(super) fn any_selected(
    registry: &Registry,
    words: &[String],
    start: &str,
    what: &str,
) -> Result<Selection, CliError> {
    registry.select(words, start).map_err(|error| match error {
        SelectError::Unknown(word, _) if word.is_empty() => {
            let words = words.join(",");
            match words.trim() {
                "" => CliError::usage("the list of engines is empty")
                    .hint("`kvdyno engines` lists their names; `all` and `default` select several"),
                _ => CliError::usage(format!("`{words}` has an empty name between its commas")),
            }
        }
        SelectError::NoMatch(pattern, known) => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let error = CliError::usage(format!("no {what} matches `{pattern}`"));
            let lower = pattern.to_lowercase();
            if lower != pattern {
                return error.hint(format!("names are lower case: `{lower}`"));
            }
            match nearest(&pattern.replace(['*', '?'], ""), &known) {
                Some(near) => error.hint(format!("did you mean `{near}`? See `kvdyno engines` for a list")),
                None => error.hint("see `kvdyno engines` for a list"),
            }
        }
        SelectError::Unknown(word, known) => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            unknown(what, &word, &known, "kvdyno engines")
        }
        SelectError::MustBeNamed(word, names) => {
            CliError::usage(format!("`{word}` matches only engines that must be named: {}", names.join(", ")))
        }
        SelectError::Empty => CliError::usage(format!("`{}` selects no engine", words.join(",")))
            .hint("`-` before a word excludes engines; select others before it"),
    })
}

/// Finds the engines with these names, in the same order. An unknown name is a usage error. All absent engines are reported
/// in one error.
pub(super) fn engines(registry: &Registry, names: &[String]) -> Result<Vec<Engine>, CliError> {
    let mut found = Vec::new();
    let mut absent = Vec::new();
    for name in names {
        match registry.engine(split_options(name).0) {
            Ok(engine) => found.push(engine),
            Err(Lookup::Absent(advice)) => absent.push(format!("{name}: {advice}")),
            Err(Lookup::Unknown(known)) => {
                let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
                let mutants = mutant_names();
                known.extend(mutants.iter().map(String::as_str));
                return Err(unknown("engine", name, &known, "kvdyno engines"));
            }
        }
    }
    if absent.is_empty() {
        return Ok(found);
    }
    let count = counted(absent.len() as u64, "engine is", "engines are");
    Err(CliError::absent(format!("{count} not available\n  {}", absent.join("\n  "))))
}

/// Splits an engine's name from the options in parentheses, as reports show them: `redis (server=x, multi-get=pipeline)`.
pub(super) fn split_options(text: &str) -> (&str, Vec<(&str, &str)>) {
    let Some((name, options)) = text.strip_suffix(')').and_then(|text| text.split_once(" (")) else {
        return (text, Vec::new());
    };
    (name, options.split(", ").map(|option| option.split_once('=').unwrap_or((option, ""))).collect())
}

/// Creates the contestants and applies `engine.name=value` options to them. An option that no engine of the run has is a
/// usage error.
pub(super) fn options(
    engines: &[Engine],
    names: &[String],
    settings: &[String],
) -> Result<Vec<Contestant>, CliError> {
    let mut contestants: Vec<Contestant> = Vec::new();
    for (name, engine) in names.iter().zip(engines) {
        let (name, own) = split_options(name);
        let options = own.into_iter().map(|(option, value)| option_of(engine, name, option, value));
        contestants.push(Contestant {
            engine: name.into(),
            options: options.collect::<Result<_, _>>()?,
            nodes_option: None,
            is_floor: engine.stores_nothing(),
            keeps_nothing: engine.keeps_nothing(),
        });
    }
    for setting in settings {
        let form = || {
            CliError::usage(format!("`--option {setting}`: expected engine.name=value"))
                .hint("`kvdyno engines NAME` shows an engine's options")
        };
        let (left, value) = setting.split_once('=').ok_or_else(form)?;
        let (engine, option) = left.rsplit_once('.').ok_or_else(form)?;
        if !contestants.iter().any(|contestant| contestant.engine == engine) {
            let known: Vec<&str> = contestants.iter().map(|contestant| contestant.engine.as_str()).collect();
            let error =
                CliError::usage(format!("--option {engine}.{option}: this run has no engine `{engine}`"));
            return Err(match nearest(engine, &known) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("the engines of this run are: {}", known.join(", "))),
            });
        }
        let alike = contestants.iter_mut().zip(engines).filter(|(contestant, _)| contestant.engine == engine);
        for (contestant, found) in alike {
            contestant.options.push(option_of(found, engine, option, value)?);
        }
    }
    for contestant in &mut contestants {
        let is_set = |name: &&str| contestant.options.iter().any(|(option, _)| option == name);
        // A running cluster has the nodes that it has.
        let own = nodes_option_of(&contestant.engine).filter(is_set).filter(|_| !contestant.has_url());
        contestant.nodes_option = own.map(String::from);
    }
    Ok(contestants)
}

/// The names of engines, each once for each number of nodes: `etcd (members=3)`. Refuses engines that start no cluster;
/// `is_floor` tells which ones store nothing, and stay as they are.
pub(super) fn with_nodes(
    names: &[String],
    nodes: &[u32],
    settings: &[String],
    is_floor: impl Fn(&str) -> bool,
) -> Result<Vec<String>, CliError> {
    let mut all = Vec::new();
    for text in names {
        let (name, options) = split_options(text);
        if is_floor(name) {
            all.push(text.clone());
            continue;
        }
        let Some(own) = nodes_option_of(name) else {
            let known = catalogue().iter().filter(|known| known.nodes.is_some());
            let known: Vec<&str> = known.map(|known| known.name.as_str()).collect();
            return Err(CliError::usage(format!("--nodes: {name} starts no cluster"))
                .hint(format!("omit --nodes, or name only engines that do: {}", known.join(", "))));
        };
        let is_set = |wanted: &str| {
            options.iter().any(|(option, value)| *option == wanted && !value.is_empty())
                || settings.iter().any(|setting| setting.starts_with(&format!("{name}.{wanted}=")))
        };
        for (option, why) in [
            (own, "is the number of its nodes, which --nodes sets"),
            (URL, "names a running cluster, whose number of nodes --nodes cannot set"),
        ] {
            if is_set(option) {
                return Err(CliError::usage(format!("--nodes: the option {option} of {name} {why}"))
                    .hint("omit one of them"));
            }
        }
        for count in nodes {
            let given = options.iter().map(|(option, value)| format!("{option}={value}"));
            let options: Vec<String> = given.chain([format!("{own}={count}")]).collect();
            all.push(format!("{name} ({})", options.join(", ")));
        }
    }
    Ok(all)
}

/// Checks an option's name and value and returns them.
fn option_of(engine: &Engine, name: &str, option: &str, value: &str) -> Result<(String, String), CliError> {
    let infos = engine.options();
    let Some(info) = infos.iter().find(|info| info.name == option) else {
        let known: Vec<&str> = infos.iter().map(|info| info.name.as_str()).collect();
        let list = format!("kvdyno engines {name}");
        return Err(unknown(&format!("option of {name}"), option, &known, &list));
    };
    let value = option_value(&info.kind, value)
        .map_err(|error| CliError::usage(format!("`--option {name}.{option}={value}`: {error}")))?;
    Ok((option.to_string(), value))
}
