//! The page of one engine, as `kvdyno engines NAME` prints it.

use super::Row;
use kvdyno_core::engine::{Engine, Expiry, Known, Processes, Properties, Space, Storage};
use kvdyno_core::results::certificate::certified;
use kvdyno_measure::text::wrapped;
use kvdyno_report::CommandLine;
use std::fmt::Write;
use std::path::PathBuf;

/// Makes a labelled line of the page, wrapped to the width.
type Line<'l> = &'l dyn Fn(&str, &str) -> String;

/// The page as text. Only commands may exceed the width.
pub(super) fn text(row: &Row, plugins: &[PathBuf], width: usize) -> String {
    let line = |label: &str, text: &str| wrapped(&format!("  {label:<14}"), &" ".repeat(16), text, width);
    let about = row.engine.as_ref().map(Engine::about);
    let about = about.unwrap_or_else(|| row.fact(|known| &known.build).to_string());
    let mut out = wrapped("", "  ", &format!("{}: {about}", row.name), width);
    match (&row.engine, &row.absent) {
        (Some(engine), _) => out += &line("available", &engine.origin().to_string()),
        (None, Some(absent)) => out += &line("not available", &absent.advice()),
        (None, None) => {}
    }
    if row.engine.is_some() {
        out += &line("version", row.version.as_deref().unwrap_or("-"));
    }
    out += &line("language", &row.language());
    out += &line("family", &row.family());
    if let Some(known) = row.known {
        out += &line("licence", &known.licence);
        out += &line("upstream", &known.upstream);
        properties(known).iter().for_each(|(label, text)| out += &line(label, text));
        out += &line("build", &known.build);
        // A command is not wrapped, so that it can be copied.
        out += &format!("  {:<14}{}\n", "install", known.get);
        if !known.needs_env.is_empty() {
            out += &line("environment", &known.needs_env.join(" "));
        }
        if !known.needs_cpu.is_empty() {
            out += &line("processor", &known.needs_cpu.join(" "));
        }
        for (index, sentence) in known.fairness.iter().enumerate() {
            out += &line(if index == 0 { "fairness" } else { "" }, sentence);
        }
    }
    for (index, defect) in row.known.iter().flat_map(|known| &known.defects).enumerate() {
        out += &line(if index == 0 { "known defects" } else { "" }, &defect.text());
    }
    out += &line("levels", &row.levels().map_or("-".to_string(), |levels| levels.join(", ")));
    out + &certified_levels(row, &line) + &capabilities(row, plugins, &line) + &options(row, &line)
}

/// What decides and cannot be measured; what is unknown is `-`.
fn properties(known: &Known) -> Vec<(&'static str, String)> {
    let Properties { callable_from, largest_key, largest_value, storage, processes, space, expiry, release } =
        &known.properties;
    let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let bytes = |bytes: &Option<u64>| text(bytes.map(|bytes| format!("{bytes} bytes")));
    let words = |words: Option<&str>| text(words.map(str::to_string));
    let is_known = !callable_from.is_empty();
    vec![
        (
            "released",
            text(release.as_ref().map(|release| format!("{} on {}", release.version, release.date))),
        ),
        ("callable from", text(is_known.then(|| callable_from.join(", ")))),
        ("keys up to", bytes(largest_key)),
        ("values up to", bytes(largest_value)),
        ("storage", words(storage.map(Storage::words))),
        ("processes", words(processes.map(Processes::words))),
        ("freed space", words(space.map(Space::words))),
        ("expiry", words(expiry.map(Expiry::words))),
    ]
}

/// What certificates of this version say about its levels.
fn certified_levels(row: &Row, line: Line<'_>) -> String {
    let proven = || row.proven.as_ref().and_then(|proven| proven.version.clone());
    let Some(version) = row.version.clone().or_else(proven) else { return String::new() };
    let of_level = |level: String| {
        let found = certified(&row.name, &version, level.parse().ok()?)?;
        let mark = if found.is_contradicted { "CONTRADICTED, " } else { "" };
        Some(format!("{level}: {mark}{}; {} losses in {} crashes", found.class, found.losses, found.crashes))
    };
    let found: Vec<String> = row.levels().into_iter().flatten().filter_map(of_level).collect();
    let title = |place: usize| if place == 0 { "certified" } else { "" };
    found.iter().enumerate().map(|(place, text)| line(title(place), text)).collect()
}

/// Its capabilities, and which of them are proven.
fn capabilities(row: &Row, plugins: &[PathBuf], line: Line<'_>) -> String {
    let mut out = String::new();
    if let Some(engine) = &row.engine {
        out += &line("largest key", &format!("{} bytes", engine.key_size_max()));
    }
    if let Some(declared) = row.declared() {
        out += &line("capabilities", &declared.join(", "));
    }
    let Some(proven) = &row.proven else {
        let plugins = plugins.iter().map(|folder| folder.display().to_string());
        let prove = CommandLine::of("prove --only rules").with(&row.name).with_flags("--plugins", plugins);
        return out + &line("proven", &format!("- (not verified; run `{prove}`)"));
    };
    let of = proven.version.as_ref().map(|version| format!(" (version {version})")).unwrap_or_default();
    out += &line("proven", &format!("{}{of}", proven.capabilities.join(", ")));
    if !proven.traits.is_empty() {
        out += &line("traits", &proven.traits.join(", "));
    }
    out
}

fn options(row: &Row, line: Line<'_>) -> String {
    let Some(engine) = &row.engine else { return String::new() };
    let options = engine.options();
    if options.is_empty() {
        return line("options", "-");
    }
    let mut out = String::new();
    for gives in row.known.iter().flat_map(|known| &known.gives) {
        out += &line(
            "by an option",
            &format!("{}={}: {}", gives.option, gives.value, gives.capabilities.join(", ")),
        );
    }
    // Writing to a String cannot fail.
    let _ = writeln!(out, "  options (--option {}.NAME=VALUE):", engine.name());
    for option in options {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "    {}={}  ({})", option.name, option.default_value, option.kind);
        out += &line("", &option.help).replacen("                ", "        ", 1);
    }
    out
}
