//! Every command that messages, help and documents print is one that this version accepts.

use super::super::{Command, Parsed, definition, layouts, parsed, plan, run};
use clap::error::ErrorKind;
use kvdyno_core::results::fixture;
use kvdyno_core::results::summary::Summary;
use kvdyno_report::CommandLine;
use std::fs;
use std::path::{Path, PathBuf};

/// All files below a folder with these endings, without tests.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "tests" => files(&path, endings, found),
            false if name != "tests.rs" && endings.iter().any(|ending| name.ends_with(ending)) => {
                found.push(path)
            }
            _ => {}
        }
    }
}

/// The command lines in the source of a module: those in backquotes, in examples of help, and what builds command lines.
fn in_source(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    // A string that continues in the next line.
    let joined = text.split("\\\n").map(str::trim_start).collect::<Vec<_>>().concat();
    let mut found = Vec::new();
    for line in joined.lines().filter(|line| !line.trim_start().starts_with("//")) {
        found.extend(quoted(line));
        if let Some(example) = line.strip_prefix("  kvdyno ") {
            // The explanation follows after a gap.
            found.push(format!("kvdyno {}", example.split("  ").next().unwrap_or_default()));
        }
        for (at, start) in line.match_indices("CommandLine::of(\"") {
            let words = line[at + start.len()..].split('"').next().unwrap_or_default();
            found.push(format!("kvdyno {words}"));
        }
    }
    found
}

/// The command lines in a document: those in backquotes, and lines of code.
fn in_document(text: &str) -> Vec<String> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            let line = line.trim_start().trim_start_matches("$ ");
            found.extend(line.starts_with("kvdyno ").then(|| line.to_string()));
        } else {
            found.extend(quoted(line));
        }
    }
    found
}

/// What begins with `kvdyno` in backquotes.
fn quoted(line: &str) -> Vec<String> {
    let starts = line.match_indices("`kvdyno ").map(|(at, _)| at + 1);
    let whole = starts.filter_map(|at| line[at..].split_once('`'));
    // A template may have any command.
    let named = whole.filter(|(command, _)| !command.starts_with("kvdyno {"));
    named.map(|(command, _)| command.to_string()).collect()
}

/// The words of a command line as a shell splits them, up to what is not for kvdyno. Names of values become values.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) =
        (Vec::new(), None, None);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|' | '>' | '#' | '&' | ';' | '\\') => break,
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.into_iter().filter(|word| word != "...").map(|word| value(&word)).collect()
}

/// A value in place of its name, in help and in templates.
fn value(word: &str) -> String {
    let mut out = word.to_string();
    while let (Some(open), Some(close)) = (out.find('{'), out.find('}')) {
        if open > close || word.contains("={") {
            break;
        }
        out.replace_range(open..=close, "x");
    }
    match out.as_str() {
        "N" => "1".into(),
        "I/N" => "1/2".into(),
        "SHELL" => "bash".into(),
        "SIZE" | "BYTES" | "COUNT" => "64".into(),
        _ => out,
    }
}

/// Why a command line is wrong; `None`: it is accepted, or it only names a flag without its value.
fn fault(line: &str) -> Option<String> {
    let words = split(line);
    let error = parsed(&words).err()?;
    let is_mention = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        // The flag is the last word.
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            words.last().is_some_and(|word| word.starts_with('-'))
        }
        _ => false,
    };
    (!is_mention).then(|| format!("{line}\n    {words:?}\n    {error}"))
}

#[test]
fn every_command_that_is_printed_or_documented_is_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for folder in ["src", "crates"] {
        files(&root.join(folder), &[".rs"], &mut sources);
    }
    let mut documents = vec![root.join("README.md")];
    files(&root.join("docs"), &[".md"], &mut documents);
    let mut commands: Vec<(String, String)> = Vec::new();
    for path in sources.iter().chain(&documents) {
        let text = fs::read_to_string(path).unwrap();
        let is_source = path.extension().is_some_and(|ending| ending == "rs");
        let found = if is_source { in_source(&text) } else { in_document(&text) };
        let place = path.strip_prefix(root).unwrap().display().to_string();
        commands.extend(found.into_iter().map(|command| (place.clone(), command)));
    }
    assert!(commands.len() > 150, "{} commands found", commands.len());
    let faults: Vec<String> = commands
        .iter()
        .filter_map(|(place, command)| fault(command).map(|fault| format!("{place}: {fault}")))
        .collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), commands.len(), faults.join("\n"));
}

#[test]
fn no_message_names_a_former_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let definition = definition();
    let hidden: Vec<&str> = definition
        .get_subcommands()
        .filter(|command| command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    let mut sources = Vec::new();
    files(&root.join("src"), &[".rs"], &mut sources);
    files(&root.join("crates"), &[".rs"], &mut sources);
    for path in sources {
        for command in in_source(&fs::read_to_string(&path).unwrap()) {
            let name = command.split(' ').nth(1).unwrap_or_default();
            assert!(!hidden.contains(&name), "{}: {command}", path.display());
        }
    }
}

#[test]
fn commands_are_found_and_wrong_ones_are_faults() {
    let source = "x.hint(\"see `kvdyno engines {name}` and \\\n    `kvdyno repotr`\");\n  kvdyno run quick  Text\n\
                  CommandLine::of(\"merge\")\n// `kvdyno comment`";
    assert_eq!(
        in_source(source),
        ["kvdyno engines {name}", "kvdyno repotr", "kvdyno run quick", "kvdyno merge"]
    );
    assert!(fault("kvdyno repotr").is_some() && fault("kvdyno run --enginse a").is_some());
    assert!(fault("kvdyno run quick --runs five").is_some());
    assert_eq!(fault("kvdyno run quick --engines 'a b' --runs N > file"), None);
}

#[test]
fn the_help_of_each_command_has_examples() {
    for command in definition().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.starts_with("Examples:\n"), "kvdyno {name} --help has no examples");
        let first = help.lines().nth(1).unwrap_or_default();
        assert!(first.starts_with(&format!("  kvdyno {name}")), "{name}: {first}");
    }
}

/// A command line is accepted as a shell passes it on, and no word was changed by its quotes.
fn assert_accepted(command: &CommandLine) {
    let printed = command.to_string();
    assert_eq!(split(&printed), command.words(), "{printed}");
    parsed(command.words()).map(|_| ()).unwrap_or_else(|error| panic!("{printed}\n{error}"));
}

#[test]
fn commands_with_folders_are_accepted_whatever_their_names() {
    let (run, plain) = (fixture::run(), vec![PathBuf::from("plugins")]);
    for folder in ["kvdyno-results/one", "my runs (1)/a b", "-odd", "$HOME/x;y"] {
        let path = Path::new(folder);
        let plugins = [vec![path.to_path_buf()], plain.clone()].concat();
        let words = ["kvdyno", "run", "read-seq", "--foreign", "--reuse", "db", "--data"].map(String::from);
        let words = words.into_iter().chain(["data".into(), format!("--results={folder}")]);
        let Ok(Parsed { command: Command::Run(args), .. }) = parsed(words) else { panic!("{folder}") };
        assert_accepted(&run::resume_command(&args, &run, path, &plugins));
        assert_accepted(&run::merge_command(path));
        assert_accepted(&plan::next(path, &plugins));
        assert_accepted(&layouts::full_command(path));
    }
}

#[test]
fn the_next_steps_of_a_report_are_accepted() {
    let mut run = fixture::run();
    let words = "kvdyno run quick --keys 2000 --option fjall.cache=1MiB --engines fjall,lmdb,sqlite";
    run.plan.command = words.split(' ').map(String::from).collect();
    let run = layouts::with_folders(&run, Path::new("my runs/one"), &[PathBuf::from("plug ins")]);
    let text = (kvdyno_report::FORMATS[0].render)(&Summary::new(&run, fixture::records()), &run);
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("kvdyno ")).collect();
    let has = |part: &str| commands.iter().any(|command| command.contains(part));
    assert!(has("--resume='my runs/") && has("'--plugins=plug ins'"), "{commands:#?}");
    let faults: Vec<String> = commands.iter().filter_map(|command| fault(command)).collect();
    assert!(commands.len() > 1 && faults.is_empty(), "{faults:#?}");
}
