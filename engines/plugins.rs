//! Builds from `engines/`, before the executable: the catalogue of all engines that the project knows, and the
//! plug-ins that need only a compiler, in `plugins` next to the executable. Without a compiler, or on a system
//! without shared libraries of this kind, they are skipped with a warning.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the tree, from the folder of the crate that is built.
const ROOT: &str = "../..";
/// The folders and sources of the plug-ins.
const PLUGINS: &[(&str, &str)] =
    &[("example", "driver.c"), ("null-c", "driver.c"), ("example-cpp", "driver.cc")];
/// The languages of programs for reports.
const REPORT_ENDINGS: &[&str] = &["c", "cc", "go", "rs"];

fn main() {
    // Cargo starts it in the folder of the crate.
    std::env::set_current_dir(ROOT).expect("the crate is two folders below the root");
    watch("engines/plugins.rs");
    watch("driver/include");
    watch("driver/plugin.map");
    write_catalogue().expect("the catalogue of engines can be read from engines/ and written to OUT_DIR");
    for (name, source) in PLUGINS {
        watch(&format!("engines/{name}/{source}"));
        if let Err(reason) = build(name, source) {
            println!("cargo:warning=skipped the plug-in {name}: {reason}");
        }
    }
}

/// Has it run again after a change of a path, which is relative to the root.
fn watch(path: &str) {
    println!("cargo:rerun-if-changed={ROOT}/{path}");
}

/// Writes the tables of crates/core/src/engine/catalogue.rs: `FILES`, each folder's name and its engine.toml, and `REPORTS`, the name of
/// each folder with a program for reports, its ending and its text; and the list `REFERENCES`
/// of crates/core/src/results/class.rs, the names of engines of this project that store rows. Only these files are
/// watched, because a change of a driver in C must not rebuild all of Rust; a new folder or program is therefore seen only when
/// this file is touched, which a test requests.
fn write_catalogue() -> Result<(), std::io::Error> {
    let mut files = Vec::new();
    let mut reports = Vec::new();
    // The engines of one plug-in are in one folder: those in Go, and those that are servers.
    for parent in ["", "go/", "servers/"] {
        for entry in fs::read_dir(format!("engines/{parent}"))? {
            let entry = entry?;
            let file = entry.path().join("engine.toml");
            if file.is_file() {
                watch(&file.to_string_lossy());
                let folder = format!("{parent}{}", entry.file_name().to_string_lossy());
                for ending in REPORT_ENDINGS {
                    let program = entry.path().join(format!("report.{ending}.in"));
                    if program.is_file() {
                        watch(&program.to_string_lossy());
                        reports.push((folder.clone(), *ending, fs::read_to_string(&program)?));
                    }
                }
                files.push((folder, fs::read_to_string(&file)?));
            }
        }
    }
    files.sort();
    reports.sort();
    let text = format!(
        "static FILES: &[(&str, &str)] = &{files:?};\nstatic REPORTS: &[(&str, &str, &str)] = &{reports:?};\n"
    );
    let out = out_dir().map_err(std::io::Error::other)?;
    fs::write(out.join("catalogue.rs"), text)?;
    let references: Vec<&str> = files.iter().flat_map(|(_, text)| references(text)).collect();
    fs::write(out.join("references.rs"), format!("static REFERENCES: &[&str] = &{references:?};\n"))
}

/// The names in an engine.toml of this project; none if the engine stores nothing or has a planted bug.
fn references(text: &str) -> Vec<&str> {
    let value = |key: &str| {
        let mut lines =
            text.lines().filter_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
        lines.next().map_or("", |value| value.trim().trim_matches('"'))
    };
    let is_reference = value("upstream") == "this project" && !["none", "mutant"].contains(&value("family"));
    value("name").split(',').map(str::trim).filter(|_| is_reference).collect()
}

fn out_dir() -> Result<PathBuf, String> {
    std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| "OUT_DIR is not set".into())
}

/// `target/<profile>/plugins`, three folders above the one that cargo gives to this script.
fn out_folder() -> Result<PathBuf, String> {
    let out = out_dir()?;
    let profile = out.ancestors().nth(3).ok_or("OUT_DIR is not deep enough")?;
    Ok(profile.join("plugins"))
}

fn build(name: &str, source: &str) -> Result<(), String> {
    let folder = out_folder()?;
    fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let is_cpp = source.ends_with(".cc");
    let compiler = cc::Build::new().cargo_metadata(false).opt_level(2).cpp(is_cpp).try_get_compiler();
    let compiler = compiler.map_err(|error| format!("no compiler for {source}: {error}"))?;
    let mut command: Command = compiler.to_command();
    let language: &[&str] = if is_cpp { &["-std=c++17", "-fno-gnu-unique"] } else { &["-std=c11"] };
    command
        .args(language)
        .args([
            "-O2",
            "-g",
            "-Wall",
            "-Wextra",
            "-Idriver/include",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
        ])
        .arg("-Wl,--version-script=driver/plugin.map")
        .arg(Path::new("engines").join(name).join(source))
        .arg("-o")
        .arg(folder.join(format!("libkvdyno_{name}.so")))
        .arg("-pthread");
    let output = command.output().map_err(|error| format!("cannot run the compiler: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
