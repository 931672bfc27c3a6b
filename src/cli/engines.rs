//! `kvdyno engines [NAME]`.

use super::error::CliError;
use crate::engine::{Engine, Registry, capability_names, level_name, plugin_folders};
use std::path::PathBuf;

/// List the engines, or show one.
#[derive(Debug, clap::Args)]
pub struct EnginesArgs {
    /// An engine: its capabilities, levels and options.
    name: Option<String>,
}

/// Prints them.
pub fn run(args: &EnginesArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let registry = Registry::load(&plugin_folders(plugins));
    match &args.name {
        Some(name) => {
            let engine = super::args::engines(&registry, std::slice::from_ref(name))?;
            show(&engine[0]);
        }
        None => list(&registry),
    }
    Ok(0)
}

fn levels(engine: &Engine) -> String {
    let names: Vec<&str> =
        (0..3).filter(|level| engine.levels() & (1 << level) != 0).map(level_name).collect();
    names.join(", ")
}

fn list(registry: &Registry) {
    let mut rows: Vec<[String; 6]> =
        vec![["engine", "origin", "language", "family", "levels", "about"].map(String::from)];
    for engine in registry.engines() {
        rows.push([
            engine.name().into(),
            engine.origin().to_string(),
            engine.language(),
            engine.family(),
            levels(engine),
            engine.about(),
        ]);
    }
    let widths: Vec<usize> =
        (0..5).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let cells: Vec<String> = (0..5).map(|column| format!("{:1$}", row[column], widths[column])).collect();
        println!("{}  {}", cells.join("  "), row[5]);
    }
    for (name, advice) in registry.absent() {
        println!("{name:0$}  absent: {advice}", widths[0]);
    }
    for refused in registry.refused() {
        println!("refused: {}: {}", refused.file.display(), refused.reason);
    }
    println!(
        "\n`kvdyno engines NAME` shows capabilities and options of one; mutants for tests: mutant:FAULT"
    );
}

fn show(engine: &Engine) {
    println!("{}: {}", engine.name(), engine.about());
    println!("  origin        {}", engine.origin());
    println!("  language      {}", engine.language());
    println!("  family        {}", engine.family());
    println!("  levels        {}", levels(engine));
    println!("  largest key   {} bytes", engine.key_size_max());
    println!("  capabilities  {}", capability_names(engine.capabilities()).join(", "));
    let options = engine.options();
    if options.is_empty() {
        println!("  options       none");
        return;
    }
    println!("  options (--option {}.NAME=VALUE):", engine.name());
    for option in options {
        println!("    {}={}  ({})", option.name, option.default_value, option.kind);
        println!("        {}", option.help);
    }
}
