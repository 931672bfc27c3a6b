//! `kvdyno new-engine NAME --lang LANG [DIR]`: a folder with a driver that is complete and works, to put one's engine
//! into. It has its kit with it and needs nothing of kvdyno but the command.

mod files;

use super::error::CliError;
use crate::engine::{catalogue, is_engine_name};
use std::fs;
use std::path::{Path, PathBuf};

/// Make a folder with a new driver, ready to build.
#[derive(Debug, clap::Args)]
pub struct NewEngineArgs {
    /// What people will type: [a-z0-9][a-z0-9_.-]*
    name: String,
    /// The language of the driver.
    #[arg(long, value_enum)]
    lang: Language,
    /// The folder to make; without it: NAME, here.
    dir: Option<PathBuf>,
}

/// A language that there is a kit for.
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

    /// The file to put one's engine into.
    fn driver(self) -> &'static str {
        match self {
            Language::C => "driver.c",
            Language::Cpp => "driver.cc",
            Language::Rust => "src/lib.rs",
            Language::Go => "driver.go",
        }
    }

    /// What builds the plug-in, and where it then lies.
    fn build(self) -> (&'static str, &'static str) {
        match self {
            Language::C | Language::Cpp | Language::Go => ("make", "."),
            Language::Rust => ("cargo build --release", "target/release"),
        }
    }
}

/// Makes it.
pub fn run(args: &NewEngineArgs) -> Result<u8, CliError> {
    let name = &args.name;
    if !is_engine_name(name) {
        return Err(CliError::usage(format!("`{name}` is no name of an engine"))
            .hint("lower-case letters, digits and `_.-`, a letter or digit first, 64 at most"));
    }
    if catalogue().iter().any(|known| known.name == *name) {
        return Err(CliError::usage(format!("there is an engine named `{name}` already"))
            .hint(format!("`kvdyno engines {name}` shows it; give yours another name")));
    }
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.symlink_metadata().is_ok() {
        return Err(CliError::usage(format!("{} is there already, and is left as it is", folder.display()))
            .hint("name another folder behind the engine's name"));
    }
    write(&folder, &files::files(name, args.lang)).map_err(CliError::failed)?;
    let (build, plugins) = args.lang.build();
    println!(
        "{}: a driver in {} that is complete and keeps its rows in memory. Next:\n",
        folder.display(),
        args.lang.text()
    );
    println!("    cd {}\n    {build}\n    kvdyno verify --plugins {plugins} {name}\n", quoted(&folder));
    println!("Then put your engine into {}, from the top down; README.md says how.", args.lang.driver());
    Ok(0)
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<(), String> {
    for (name, text) in files {
        let file = folder.join(name);
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
        fs::create_dir_all(file.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&file, text).map_err(failed)?;
    }
    Ok(())
}
