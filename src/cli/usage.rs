//! Usage errors that need to know the commands: a flag or a workload in the place of a command, and long flags with one dash.

use super::error::CliError;
use super::workloads::is_workload;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use kvdyno_core::engine::catalogue;
use kvdyno_measure::text::{listed, nearest};
use kvdyno_report::CommandLine;

/// Words that people type for a command.
const SYNONYMS: [(&str, &str); 12] = [
    ("bench", "run"),
    ("benchmark", "run"),
    ("start", "run"),
    ("list", "engines"),
    ("ls", "engines"),
    ("test", "prove"),
    ("check", "prove"),
    ("diff", "compare"),
    ("show", "report"),
    ("results", "report"),
    ("recommend", "choose"),
    ("server", "serve"),
];

/// The message for an error of clap, if it can say more than clap does. `words` are those of the command line, after the name
/// of the program.
pub(super) fn explained(error: &clap::Error, words: &[String], all: &clap::Command) -> Option<CliError> {
    let command = words.iter().find_map(|word| all.find_subcommand(word));
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand if command.is_none() => {
            context(ContextKind::InvalidSubcommand).map(|word| no_command(word, words, all))
        }
        ErrorKind::UnknownArgument => {
            let flag = context(ContextKind::InvalidArg)?.split('=').next()?;
            of_another(flag, command, words, all)
        }
        _ => None,
    }
}

/// The error of `-engines`, which would be `-e ngines`; `None`: there is no such word.
pub(super) fn one_dash(words: &[String]) -> Option<CliError> {
    let is_suspect = |word: &String| word.len() > 3 && word.starts_with('-') && !word.starts_with("--");
    if !words.iter().any(is_suspect) {
        return None;
    }
    let all = &super::definition();
    let command = words.iter().find_map(|word| all.find_subcommand(word)).unwrap_or(all);
    words.iter().take_while(|word| *word != "--").find_map(|word| {
        let name = word.strip_prefix('-')?.split('=').next()?;
        let is_long = name.len() > 2 && command.get_arguments().any(|arg| arg.get_long() == Some(name));
        is_long.then(|| {
            CliError::usage(format!("unknown flag `-{name}`"))
                .hint(format!("long flags have two dashes: --{name}"))
        })
    })
}

/// The visible commands.
fn visible(all: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    all.get_subcommands().filter(|command| !command.is_hide_set())
}

/// A word in the place of a command.
fn no_command(word: &str, words: &[String], all: &clap::Command) -> CliError {
    let error = CliError::usage(format!("unknown command `{word}`"));
    let lower = word.to_lowercase();
    let names: Vec<&str> = visible(all).map(clap::Command::get_name).collect();
    let instead = |command: &[&str]| {
        let typed = words.iter().flat_map(|typed| match typed == word {
            true => command.iter().map(|own| own.to_string()).collect(),
            false => vec![typed.clone()],
        });
        CommandLine::new(typed)
    };
    if names.contains(&lower.as_str()) {
        return error.hint(format!("commands are lower case: {}", instead(&[&lower])));
    }
    if is_workload(word) {
        return error.hint(format!("`{word}` is a workload: {}", instead(&["run", word])));
    }
    if let Some(known) = catalogue().iter().find(|known| known.name == lower) {
        let name = &known.name;
        return error.hint(format!(
            "`{name}` is an engine: `kvdyno run quick --engines {name}` measures it, and `kvdyno engines {name}` describes it"
        ));
    }
    let synonym = SYNONYMS.iter().find(|(known, _)| *known == lower).map(|(_, command)| *command);
    match synonym.or_else(|| nearest(&lower, &names)) {
        Some(near) => {
            error.hint(format!("did you mean `{}`? `kvdyno --help` lists the commands", instead(&[near])))
        }
        None => error.hint(
            "`kvdyno --help` lists the commands; `kvdyno workloads` and `kvdyno engines` list what they run",
        ),
    }
}

/// A flag that the command does not have, but others do.
fn of_another(
    flag: &str,
    command: Option<&clap::Command>,
    words: &[String],
    all: &clap::Command,
) -> Option<CliError> {
    let has = |command: &clap::Command| {
        command.get_arguments().any(|arg| {
            let long = arg.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
            let short =
                arg.get_short().is_some_and(|short| flag.strip_prefix('-') == Some(&short.to_string()));
            (long || short) && !arg.is_global_set()
        })
    };
    let owners: Vec<&str> = visible(all).filter(|one| has(one)).map(clap::Command::get_name).collect();
    if owners.is_empty() {
        return None;
    }
    match command {
        None if owners.contains(&"run") => {
            let typed =
                CommandLine::new(["run".to_string(), "quick".to_string()].into_iter().chain(words.to_vec()));
            Some(
                CliError::usage(format!("`{flag}` is a flag of `kvdyno run`"))
                    .hint(format!("name a workload: {typed}")),
            )
        }
        None => Some(
            CliError::usage(format!("`{flag}` is a flag of {}", commands(&owners)))
                .hint("write the command before its flags; `kvdyno --help` lists the commands"),
        ),
        Some(command) => Some(
            CliError::usage(format!("`kvdyno {}` has no flag `{flag}`", command.get_name())).hint(format!(
                "it is a flag of {}; `kvdyno {} --help` lists the flags of this command",
                commands(&owners),
                command.get_name()
            )),
        ),
    }
}

/// `kvdyno run`, `kvdyno plan` and `kvdyno choose`.
fn commands(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`kvdyno {name}`")).collect();
    listed(&names, "and")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{definition, parsed};

    /// The message for a wrong command line; `None`: that of clap.
    fn message(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        let all = ["kvdyno".to_string()].into_iter().chain(words.clone());
        if let Some(error) = one_dash(&words) {
            return Some(error.to_string());
        }
        let error = parsed(all).map(|_| ()).unwrap_err();
        let mut definition = definition();
        definition.build();
        explained(&error, &words, &definition).map(|error| error.to_string())
    }

    #[test]
    fn what_belongs_to_a_command_is_answered_with_that_command() {
        for (line, wanted) in [
            (
                "--engines redb",
                "`--engines` is a flag of `kvdyno run`\nhint: name a workload: kvdyno run quick --engines redb",
            ),
            ("-e redb", "name a workload: kvdyno run quick -e redb"),
            ("quick", "`quick` is a workload: kvdyno run quick"),
            ("quick --engines redb", "`quick` is a workload: kvdyno run quick --engines redb"),
            ("kvbench-suite", "`kvbench-suite` is a workload: kvdyno run kvbench-suite"),
            ("mine.toml", "`mine.toml` is a workload: kvdyno run mine.toml"),
            ("redb", "`redb` is an engine: `kvdyno run quick --engines redb` measures it"),
            ("RocksDB", "`rocksdb` is an engine"),
            ("RUN quick", "commands are lower case: kvdyno run quick"),
            ("bench quick", "did you mean `kvdyno run quick`?"),
            ("veryfi redb", "lists the commands"),
            ("engnes", "did you mean `kvdyno engines`?"),
            ("--markdown", "lists the commands"),
            ("--site", "`--site` is a flag of `kvdyno report`"),
            (
                "report --engines redb",
                "`kvdyno report` has no flag `--engines`\nhint: it is a flag of `kvdyno run`, ",
            ),
            (
                "run quick -engines redb",
                "unknown flag `-engines`\nhint: long flags have two dashes: --engines",
            ),
        ] {
            let found = message(line).unwrap_or_default();
            let is_left_to_clap = line == "--markdown" && found.is_empty();
            assert!(is_left_to_clap || found.contains(wanted), "kvdyno {line}: no `{wanted}` in\n{found}");
        }
    }

    #[test]
    fn a_hidden_command_is_never_suggested() {
        let mut definition = definition();
        definition.build();
        let hidden: Vec<String> = definition
            .get_subcommands()
            .filter(|command| command.is_hide_set())
            .map(|command| command.get_name().to_string())
            .collect();
        assert!(hidden.len() > 5, "{hidden:?}");
        for name in &hidden {
            for typed in [format!("{name}x"), name[1..].to_string(), name.to_uppercase()] {
                let found =
                    message(&typed).unwrap_or_else(|| panic!("kvdyno {typed}: clap would suggest {name}"));
                assert!(!found.contains(&format!("kvdyno {name}`")), "kvdyno {typed}: {found}");
            }
        }
    }
}
