//! The descriptions of the engines agree: the table of engines/README.md with its sources, and each driver that is built
//! with its engine.toml and with what `verify` has proven.

use kvdyno::proven;
use kvdyno::{Engine, Registry, capability_names, catalogue, plugin_folders};
use std::path::Path;

const HEAD: &str = "\
# Engines

Every engine that the project knows, one folder each: the driver, `engine.toml` (facts that are needed before it is
built), and a README with its settings per durability level and the reasons. The capabilities are those that
`kvdyno verify` has proven for the version in the table. `kvdyno engines` lists which engines are available and why
others are not; `kvdyno engines NAME` shows an engine's options. `make engines-table` generates this page from the
`engine.toml` files and `proven.toml`; do not edit it.

| engine | family | language | licence | proven version | durability levels | capabilities | install |
|---|---|---|---|---|---|---|---|
";

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Whether a line can be typed as a command.
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

/// The choices of an engine's compression in docs/engines.md.
fn documented_choices(page: &str, engine: &str) -> Option<String> {
    let rows = page.split("## Compression").nth(1)?.lines().filter(|line| line.starts_with("| `"));
    let mut cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let row = cells.find(|cells| cells[1].split(", ").any(|name| name == format!("`{engine}`")))?;
    Some(row[2].to_string())
}

#[test]
fn the_choices_of_compression_are_those_of_the_drivers() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/engines.md");
    let page = std::fs::read_to_string(file).unwrap();
    let registry = Registry::load(&plugin_folders(&[]));
    let mut seen = 0;
    for engine in registry.engines() {
        let options = engine.options();
        let option = options.iter().find(|option| option.name == "compression");
        let choices = option.and_then(|option| option.kind.strip_prefix("choice:"));
        let mut told = choices.map(|choices| choices.split('|').map(String::from).collect::<Vec<_>>());
        let mut page = documented_choices(&page, engine.name())
            .map(|choices| choices.split(", ").map(String::from).collect::<Vec<_>>());
        assert_eq!(
            page.as_ref().map(|page| &page[0]),
            option.map(|option| &option.default_value),
            "the first choice of {}",
            engine.name()
        );
        told.iter_mut().chain(&mut page).for_each(|choices| choices.sort());
        assert_eq!(page, told, "{}", engine.name());
        seen += usize::from(page.is_some());
    }
    assert!(seen > 0, "no engine with a choice was found");
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
        "engines/README.md is out of date: run `make engines-table`, read the difference, commit it"
    );
}

/// The engines that are available and that the project knows.
fn here() -> Vec<Engine> {
    let registry = Registry::load(&plugin_folders(&[]));
    let is_known = |engine: &&Engine| catalogue().iter().any(|known| known.name == engine.name());
    registry.engines().iter().filter(is_known).cloned().collect()
}

#[test]
fn every_driver_says_of_itself_what_its_engine_toml_says() {
    for engine in here() {
        let known = catalogue().iter().find(|known| known.name == engine.name());
        let known = known.expect("only known engines are checked");
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
    // A changed driver need not be proven immediately, but it must be before it passes CI.
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        panic!("{text}");
    }
    println!("{text}");
}
