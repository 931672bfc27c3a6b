//! What the project says of its engines agrees: the table of engines/README.md with what it is made from, and each
//! driver that is built with its engine.toml and with what `verify` has proven.

use kvdyno::audit::proven::proven;
use kvdyno::engine::{Engine, Registry, capability_names, catalogue, plugin_folders};
use std::path::Path;

const HEAD: &str = "\
# Engines

Every engine that the project knows, one folder each: the driver, `engine.toml` (what must be known before it is built),
and a README with its settings per durability level, and why. What an engine can do is what `kvdyno verify` has proven,
of the version named. `kvdyno engines` tells which of them are here, and why others are not; `kvdyno engines NAME` shows
its options. This page is made from the `engine.toml` files and `proven.toml` by `make engines-table`, not edited.

| engine | family | language | licence | proven of | levels | can do | what brings it |
|---|---|---|---|---|---|---|---|
";

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Whether a line can be typed as it stands.
fn is_command(line: &str) -> bool {
    ["cargo ", "make", "apt-get ", "KVDYNO_"].iter().any(|start| line.starts_with(start))
}

fn table() -> String {
    let rows = catalogue().iter().map(|known| {
        let proven = proven(&known.name);
        let list = |names: &[String]| if names.is_empty() { "-".to_string() } else { names.join(", ") };
        let can_do = proven.map(|row| [row.capabilities.clone(), row.traits.clone()].concat());
        let cells = [
            format!("[{}]({}/README.md)", known.name, known.folder),
            known.family.clone(),
            known.language.clone(),
            known.licence.clone(),
            proven.and_then(|row| row.version.clone()).unwrap_or("-".into()),
            proven.map_or("-".into(), |row| list(&row.levels)),
            can_do.map_or("not proven yet".into(), |names| list(&names)),
            if is_command(&known.get) { format!("`{}`", known.get) } else { known.get.clone() },
        ];
        format!("| {} |\n", cells.map(|text| cell(&text)).join(" | "))
    });
    HEAD.to_string() + &rows.collect::<String>()
}

#[test]
fn the_table_of_engines_is_that_of_the_catalogue_and_of_what_is_proven() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/README.md");
    let table = table();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == table,
        "engines/README.md is stale: run `make engines-table`, read the difference, commit it"
    );
}

/// The engines that are here and that the project knows.
fn here() -> Vec<Engine> {
    let registry = Registry::load(&plugin_folders(&[]));
    let is_known = |engine: &&Engine| catalogue().iter().any(|known| known.name == engine.name());
    registry.engines().iter().filter(is_known).cloned().collect()
}

#[test]
fn every_driver_says_of_itself_what_its_engine_toml_says() {
    for engine in here() {
        let known = catalogue().iter().find(|known| known.name == engine.name());
        let known = known.expect("only engines that are known are asked");
        let said = (engine.family(), engine.language());
        assert_eq!(said, (known.family.clone(), known.language.clone()), "{}", engine.name());
    }
}

#[test]
fn every_driver_declares_only_what_is_proven() {
    let mut wrong = Vec::new();
    for engine in here().iter().filter(|engine| !engine.stores_nothing()) {
        let lacking = match proven(engine.name()) {
            Some(row) => row.lacks(&capability_names(engine.capabilities()), engine.levels()),
            None => vec!["anything".into()],
        };
        if !lacking.is_empty() {
            wrong.push(format!("{} has no proof of {}", engine.name(), lacking.join(", ")));
        }
    }
    if wrong.is_empty() {
        return;
    }
    let text = format!(
        "{}\nrun `kvdyno verify --proven engines/proven.toml`, then `make engines-table`, and commit both",
        wrong.join("\n")
    );
    // Who changes a driver need not prove it in the same moment; nothing of the kind goes past CI.
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        panic!("{text}");
    }
    println!("{text}");
}
