//! The descriptions of the engines agree: the table of engines/README.md with its sources, and each driver that is built
//! with its engine.toml and with what `verify` has proven.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "catalogue/questions.rs"]
mod questions;

use kvdyno::proven;
use kvdyno::{
    Certificate, CertifiedLevel, Engine, Registry, capability_names, catalogue, certificate_markdown,
    certified_levels, certified_toml, plugin_folders,
};
use std::path::Path;

const HEAD: &str = "\
# Engines

Every engine that the project knows, one folder each: the driver, `engine.toml` (facts that are needed before it is
built), and a README with its settings per durability level and the reasons. The capabilities are those that
`kvdyno prove --only rules` has proven for the version in the table. The durability is claimed by the driver, and the one in brackets is
that of a [certificate](../docs/durability.md#certificates): the measured class, and `N of M`: N of the M crashes that the level must
survive (at `process` kills, at `power` also power cuts) left lost or wrong data. `kvdyno engines` lists which
engines are available and why others are not; `kvdyno engines NAME` shows an engine's options. `make engines-table` generates
this page from the `engine.toml` files, `proven.toml` and `certified.toml`, which it generates from the certificates and
`contradicted.toml`; do not edit it.

| engine | family | language | licence | proven version | durability: claimed (measured) | capabilities | install |
|---|---|---|---|---|---|---|---|
";

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Whether a line can be typed as a command.
fn is_command(line: &str) -> bool {
    ["cargo ", "make", "apt-get ", "KVDYNO_"].iter().any(|start| line.starts_with(start))
}

/// The certificates of the repository, each with its path.
fn certificates() -> Vec<(String, Certificate)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/certificates");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_json = |file: &&std::path::PathBuf| file.extension().is_some_and(|ending| ending == "json");
    let read = |file: &std::path::PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).unwrap();
        (name.clone(), Certificate::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    files.iter().filter(is_json).map(read).collect()
}

fn certified() -> Vec<CertifiedLevel> {
    certified_levels(&certificates().into_iter().map(|(_, certificate)| certificate).collect::<Vec<_>>())
}

/// `process ([class](page), 3 of 60), power`.
fn levels(levels: &[String], engine: &str, certified: &[CertifiedLevel]) -> String {
    let level = |level: &String| {
        let own = certified.iter().rfind(|row| row.engine == engine && row.level.to_string() == *level);
        own.map_or(level.clone(), |row| {
            let page = format!("../{}", row.page());
            let found = &row.certified;
            let mark = if found.is_contradicted { "CONTRADICTED: " } else { "" };
            format!("{level} ({mark}[{}]({page}), {} of {})", found.class, found.losses, found.crashes)
        })
    };
    if levels.is_empty() { "-".into() } else { levels.iter().map(level).collect::<Vec<_>>().join(", ") }
}

fn table() -> String {
    let certified = certified();
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
            proven.map_or("-".into(), |row| levels(&row.levels, &known.name, &certified)),
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
        let kind = option.map(|option| option.kind.to_string());
        let choices = kind.as_deref().and_then(|kind| kind.strip_prefix("choice:"));
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

#[test]
fn the_summary_of_the_certificates_is_up_to_date_and_none_was_changed() {
    for (name, certificate) in certificates() {
        assert!(certificate.is_intact(), "{name} was changed");
        assert_eq!(certificate.file_name(), name, "the name of the file");
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/certified.toml");
    let text = certified_toml(certified());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == text, "engines/certified.toml is out of date: run `make engines-table`, and commit it");
}

#[test]
fn the_pages_of_the_certificates_are_those_that_this_version_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/certificates");
    for (name, certificate) in certificates() {
        let (file, page) = (folder.join(format!("{name}.md")), certificate_markdown(&certificate));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == page, "{name}.md is out of date: run `make engines-table`, and commit it");
    }
}

#[test]
fn the_pages_of_all_certificates_answer_what_users_ask() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/certificates/README.md");
    let page = questions::page(&certificates(), &certified());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "{} is out of date: run `make engines-table`, and commit it", file.display());
    for (name, certificate) in certificates() {
        let subject = &certificate.subject;
        assert!(page.contains(&format!("[{}]({name}.md)", subject.engine)), "{name} is not on the page");
    }
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
fn a_driver_accepts_no_larger_keys_than_its_engine_and_has_the_options_that_give_capabilities() {
    for engine in here() {
        let known = catalogue().iter().find(|known| known.name == engine.name());
        let known = known.expect("only known engines are checked");
        let own = engine.key_size_max();
        let largest = known.properties.largest_key;
        assert!(
            largest.is_none_or(|largest| u64::from(own) <= largest),
            "{}: {own} of {largest:?}",
            engine.name()
        );
        for gives in &known.gives {
            let has = engine.options().iter().any(|option| option.name == gives.option);
            assert!(has, "{} has no option {}", engine.name(), gives.option);
        }
    }
}

/// Engines that `make test` does not prove. The table shows them as not proven until somebody has verified them.
const UNPROVEN: [&str; 3] = [
    // Each check starts a server for ten seconds or more.
    "cassandra",
    // It needs a cluster of the user's; what passes on the mock of its client is no proof of TiKV.
    "tikv",
    "tikv-raw",
];

#[test]
fn every_driver_declares_only_what_is_proven() {
    let mut wrong = Vec::new();
    let is_to_prove = |name: &str| !UNPROVEN.contains(&name) || proven(name).is_some();
    for engine in here().iter().filter(|engine| !engine.stores_nothing() && is_to_prove(engine.name())) {
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
        "{}\nrun `kvdyno prove --only rules --proven engines/proven.toml`, then `make engines-table`, and commit both",
        wrong.join("\n")
    );
    // A changed driver need not be proven immediately, but it must be before it passes CI.
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        panic!("{text}");
    }
    println!("{text}");
}
