//! `kvdyno new-engine NAME --lang LANG [DIR]`: creates a folder with a complete, working driver as a template for an engine.
//! It includes the kit and needs nothing of kvdyno except the command. With `--in-tree` it is an engine of this repository.

mod files;
mod tree;

use super::error::CliError;
use kvdyno_core::engine::{catalogue, is_engine_name};
use kvdyno_report::{CommandLine, shell_word};
use std::fs;
use std::path::{Path, PathBuf};

/// Create a new driver from a template, ready to build.
#[derive(Debug, clap::Args)]
pub(super) struct NewEngineArgs {
    /// Name of the engine: [a-z0-9][a-z0-9_.-]*
    name: String,
    /// Language of the driver.
    #[arg(long, value_enum, ignore_case = true)]
    lang: Language,
    /// Folder to create [default: NAME].
    dir: Option<PathBuf>,
    /// Add the engine to the checkout of kvdyno around this folder, with its kit and its build.
    #[arg(long, conflicts_with = "dir")]
    in_tree: bool,
}

/// The languages for which there is a kit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Language {
    #[value(name = "c")]
    C,
    #[value(name = "c++")]
    Cpp,
    #[value(name = "rust")]
    Rust,
    #[value(name = "go")]
    Go,
}

impl Language {
    fn text(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
            Language::Go => "Go",
        }
    }

    /// The file of the driver.
    fn driver(self) -> &'static str {
        match self {
            Language::C => "driver.c",
            Language::Cpp => "driver.cc",
            Language::Rust => "src/lib.rs",
            Language::Go => "driver.go",
        }
    }

    /// The build command, and the folder in which it puts the plug-in.
    fn build(self) -> (&'static str, &'static str) {
        match self {
            Language::C | Language::Cpp | Language::Go => ("make", "."),
            Language::Rust => ("cargo build --release", "target/release"),
        }
    }
}

/// Creates the driver.
pub(super) fn run(args: &NewEngineArgs) -> Result<u8, CliError> {
    let name = &args.name;
    if !is_engine_name(name) {
        return Err(CliError::usage(format!("`{name}` is not a valid engine name"))
            .hint("use lower-case letters, digits and `_.-`, starting with a letter or digit, at most 64 characters"));
    }
    let root = if args.in_tree { Some(checkout()?) } else { None };
    let is_of_tree = root.as_ref().is_some_and(|root| tree::has_engine(root, name));
    if is_of_tree || catalogue().iter().any(|known| known.name == *name) {
        return Err(CliError::usage(format!("an engine named `{name}` already exists"))
            .hint(format!("`kvdyno engines {name}` shows it; choose another name")));
    }
    if let Some(root) = root {
        return add_to_tree(&root, args);
    }
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.symlink_metadata().is_ok() {
        return Err(exists(&folder).hint("name another folder after the name of the engine"));
    }
    write(&folder, &files::files(name, args.lang))?;
    let (build, plugins) = args.lang.build();
    println!(
        "Created {}: a complete driver in {} that stores its rows in memory. Next steps:\n",
        folder.display(),
        args.lang.text()
    );
    println!(
        "    cd {}\n    {build}\n    {}\n",
        shell_word(&folder.display().to_string()),
        CommandLine::of("prove --only rules").with_flags("--plugins", [plugins]).with(name)
    );
    println!("Then connect your engine in {}, from top to bottom; see README.md.", args.lang.driver());
    Ok(0)
}

fn exists(folder: &Path) -> CliError {
    CliError::usage(format!("{} already exists; nothing was changed", folder.display()))
}

/// The checkout to which `--in-tree` adds an engine.
fn checkout() -> Result<PathBuf, CliError> {
    tree::root().ok_or_else(|| {
        CliError::usage("this folder is not in a checkout of kvdyno")
            .hint("`--in-tree` adds an engine to kvdyno's own repository; without it, the engine gets a folder with its own kit")
    })
}

/// Adds the engine to kvdyno's own repository.
fn add_to_tree(root: &Path, args: &NewEngineArgs) -> Result<u8, CliError> {
    let folder = tree::folder(&args.name, args.lang);
    if root.join(&folder).symlink_metadata().is_ok() {
        return Err(exists(&folder).hint("choose another name for the engine"));
    }
    let written = tree::create(root, &args.name, args.lang)?;
    println!(
        "Added {}, a complete driver in {} that stores its rows in memory:\n",
        args.name,
        args.lang.text()
    );
    written.iter().for_each(|file| println!("    {}", file.display()));
    println!("\nNext steps:\n");
    if std::env::current_dir().is_ok_and(|here| here != root) {
        println!("    cd {}", shell_word(&root.display().to_string()));
    }
    println!("{}", tree::next_steps(&args.name, args.lang));
    Ok(0)
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<(), CliError> {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap_or(folder))
            .and_then(|()| fs::write(&file, text))
            .map_err(CliError::cannot("write", &file))?;
    }
    Ok(())
}
