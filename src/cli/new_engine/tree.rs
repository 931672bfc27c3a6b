//! The files of a new engine in this repository, where the kit is not copied and the build finds the engine by its folder.

use super::super::error::CliError;
use super::{Language, files};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that Go gives a meaning, so that no package can have them.
const TAKEN_BY_GO: &[&str] = &[
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "internal",
    "main",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "testdata",
    "type",
    "var",
    "vendor",
];

/// The checkout of kvdyno that contains the current folder; `None`: there is none.
pub(super) fn root() -> Option<PathBuf> {
    let is_ours = |folder: &&Path| {
        ["engines/plugins.rs", "driver/include/driver.h"].iter().all(|file| folder.join(file).is_file())
    };
    let here = std::env::current_dir().ok()?;
    here.ancestors().find(is_ours).map(Path::to_path_buf)
}

/// The folder of an engine, below the root.
pub(super) fn folder(name: &str, language: Language) -> PathBuf {
    Path::new(if language == Language::Go { "engines/go" } else { "engines" }).join(plain(name, language))
}

/// The name of its folder, which is also that of its package in Go, and of its crate and its plug-in otherwise.
fn plain(name: &str, language: Language) -> String {
    if language != Language::Go {
        return name.replace('.', "-");
    }
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_taken =
        TAKEN_BY_GO.contains(&&letters[..]) || letters.starts_with(|first: char| first.is_ascii_digit());
    if is_taken { format!("db{letters}") } else { letters }
}

/// Whether an engine of the checkout has that name; the executable knows only those that were there when it was built.
pub(super) fn has_engine(root: &Path, name: &str) -> bool {
    let folders = ["engines", "engines/go", "engines/servers"].into_iter();
    let entries = folders.filter_map(|folder| fs::read_dir(root.join(folder)).ok()).flatten().flatten();
    let files = entries.filter_map(|entry| fs::read_to_string(entry.path().join("engine.toml")).ok());
    let mut names =
        files.filter_map(|text| Some(text.parse::<toml::Table>().ok()?.get("name")?.as_str()?.to_string()));
    names.any(|names| names.split(',').any(|own| own.trim() == name))
}

/// Writes the files, and adds a crate to the workspace. Returns the paths of what it wrote, below the root.
pub(super) fn create(root: &Path, name: &str, language: Language) -> Result<Vec<PathBuf>, CliError> {
    let folder = folder(name, language);
    let manifest = root.join("Cargo.toml");
    let workspace = if language == Language::Rust {
        let text = fs::read_to_string(&manifest).map_err(CliError::cannot("read", &manifest))?;
        let text = with_member(&text, &folder.display().to_string()).ok_or_else(|| {
            CliError::failed(format!(
                "{} has no list of members with engines; nothing was changed",
                manifest.display()
            ))
        })?;
        Some(text)
    } else {
        None
    };
    let files = files_of(name, language);
    super::write(&root.join(&folder), &files)?;
    let mut written: Vec<PathBuf> = files.iter().map(|(file, _)| folder.join(file)).collect();
    if let Some(text) = workspace {
        fs::write(&manifest, text).map_err(CliError::cannot("write", &manifest))?;
        written.push("Cargo.toml".into());
    }
    Ok(written)
}

/// The manifest of the workspace with a member more, after the last engine; `None`: it lists no engines.
fn with_member(manifest: &str, folder: &str) -> Option<String> {
    let last = manifest.rfind("\n    \"engines/")? + 1;
    let end = last + manifest[last..].find('\n')? + 1;
    Some(format!("{}    \"{folder}\",\n{}", &manifest[..end], &manifest[end..]))
}

/// The files as pairs of a path in the engine's folder and text.
fn files_of(name: &str, language: Language) -> Vec<(String, String)> {
    let plain = plain(name, language);
    let driver = files::driver(name, language);
    let cmake = |source: &str, standard: &str| {
        let text = format!(
            "# The plug-in of {name}: HEADER and LIBRARIES are those of the engine, in place of stdlib.h.\n\
             kvdyno_plugin({plain} SOURCES {source} HEADER stdlib.h{standard})\n"
        );
        ("CMakeLists.txt".to_string(), text)
    };
    let mut files = match language {
        Language::C => vec![("driver.c".into(), driver), cmake("driver.c", "")],
        Language::Cpp => vec![("driver.cc".into(), driver), cmake("driver.cc", " STANDARD 17")],
        Language::Rust => vec![("driver.rs".into(), driver), ("Cargo.toml".into(), cargo_toml(&plain))],
        Language::Go => {
            let package = driver.replace("// Package example is ", &format!("// Package {plain} is "));
            vec![("driver.go".into(), package.replace("package example\n", &format!("package {plain}\n")))]
        }
    };
    files.push(("engine.toml".into(), engine_toml(name, language)));
    files.push(("README.md".into(), readme(name)));
    files
}

fn cargo_toml(plain: &str) -> String {
    format!(
        "[package]\nname = \"kvdyno-{plain}\"\nversion = \"0.1.0\"\nedition.workspace = true\nrust-version.workspace = true\n\
         license.workspace = true\npublish = false\n\n[lib]\npath = \"driver.rs\"\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n\
         kvdyno-driver = {{ path = \"../../driver/rust\" }} # the kit\n\n[lints]\nworkspace = true\n"
    )
}

fn engine_toml(name: &str, language: Language) -> String {
    let (build, get) = match language {
        Language::C | Language::Cpp => ("plug-in, by CMake, with the system's library", "make"),
        Language::Rust => ("separate plug-in, with a crate from the registry", "make engines-extra"),
        Language::Go => (
            "plug-in of all engines in Go, by `go build`, modules from the default proxy; needs cgo",
            "install Go 1.25 or newer (https://go.dev/dl), then make",
        ),
    };
    format!(
        "# Facts about {name} that are needed before it is built. The driver declares its capabilities.\n\
         name = \"{name}\"\nupstream = \"-\"\nlicence = \"-\"\nfamily = \"example\"\nlanguage = \"{}\"\n\
         build = \"{build}\"\nget = \"{get}\"\nneeds_env = []\n\
         fairness = \"What a reader must know to judge its results.\"\n",
        language.text()
    )
}

fn readme(name: &str) -> String {
    format!(
        "# {name}\n\nThe driver of {name}. It stores its rows in memory until the engine is connected.\n\n## Durability\n\n\
         | level | setting | what happens at a commit |\n|---|---|---|\n| none | - | nothing |\n\n\
         ## Known limits\n\nNone is known.\n"
    )
}

/// What to do next, as lines for a terminal.
pub(super) fn next_steps(name: &str, language: Language) -> String {
    let folder = folder(name, language);
    let (link, build) = match language {
        Language::C | Language::Cpp => {
            (format!("name its header and library in {}/CMakeLists.txt", folder.display()), "plugins".into())
        }
        Language::Rust => (
            format!("run `cargo add CRATE` in {}", folder.display()),
            format!("rust-plugins RUST_PLUGINS={}", plain(name, language)),
        ),
        Language::Go => ("run `go get MODULE@VERSION` in engines/go".into(), "go-plugins".into()),
    };
    let driver = folder.join(if language == Language::Rust { "driver.rs" } else { language.driver() });
    format!(
        "    make {build}\n    kvdyno prove --only rules {name}\n\n\
         Then connect your engine: {link}, and change\n{} from top to bottom. Complete engine.toml\n\
         and README.md. At the end:\n\n    make {build}\n    make\n    kvdyno prove --only rules --proven engines/proven.toml {name}\n    make engines-table\n\n\
         CONTRIBUTING.md has the details.",
        driver.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_name_that_its_language_accepts() {
        for (name, language, wanted) in [
            ("my.own-2", Language::C, "engines/my-own-2"),
            ("my.own-2", Language::Rust, "engines/my-own-2"),
            ("my.own_2", Language::Go, "engines/go/myown2"),
            ("map", Language::Go, "engines/go/dbmap"),
            ("2nd", Language::Go, "engines/go/db2nd"),
        ] {
            assert_eq!(folder(name, language), Path::new(wanted));
        }
    }

    #[test]
    fn a_member_is_added_after_the_last_engine() {
        let manifest = include_str!("../../../Cargo.toml");
        let more = with_member(manifest, "engines/mine").unwrap();
        let members = |text: &str| -> Vec<String> {
            let table: toml::Table = text.parse().unwrap();
            let members = table["workspace"]["members"].as_array().unwrap().iter();
            members.map(|member| member.as_str().unwrap().to_string()).collect()
        };
        let (before, mut after) = (members(manifest), members(&more));
        let at = after.iter().position(|member| member == "engines/mine").unwrap();
        assert!(after[at - 1].starts_with("engines/") && !after[at + 1].starts_with("engines/"), "{after:?}");
        after.remove(at);
        assert_eq!(before, after);
        assert_eq!(with_member("[workspace]\nmembers = []\n", "engines/mine"), None);
    }
}
