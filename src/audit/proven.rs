//! What `verify` has proven of each engine, kept in `engines/proven.toml` and carried in the executable: so that what
//! an engine can do is known, with proof, also where it is not.

use super::verify::{Outcome, Report};
use crate::engine::{Engine, capability_names, level_name};
use crate::measure::read_text;
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The check that proves an ability, where it has another name.
const PROOFS: &[(&str, &str)] = &[
    ("ordered", "scan-forward"),
    ("reverse", "scan-reverse"),
    ("prefix", "scan-prefix"),
    ("hold", "scan-hold"),
    ("delete-tells", "delete"),
];

/// What a driver says so that the core spares it: there is nothing to prove.
const TRAITS: &[&str] = &[
    "fixed-key-size",
    "keeps-key",
    "keeps-value",
    "in-memory",
    "single-writer",
    "scan-blocks-writes",
    "single-thread",
    "stores-nothing",
    "hands-over",
    "evicts",
];

const HEAD: &str = "\
# What `kvdyno verify --proven engines/proven.toml` has proven, each engine's on a machine that has it. Rows of engines
# that were not there stay; not edited by hand.
";

/// An engine's row.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proven {
    /// The engine.
    pub name: String,
    /// Of its library, when it was proven; none: it does not tell.
    pub version: Option<String>,
    /// The durability levels that it has itself.
    pub levels: Vec<String>,
    /// Capabilities that it declares, each with its check passed.
    pub capabilities: Vec<String>,
    /// Capabilities that are no ability and want no proof.
    pub traits: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    engine: Vec<Proven>,
}

impl Proven {
    /// What a report proves; nothing at all if one of its checks failed.
    pub fn of(engine: &Engine, report: &Report) -> Option<Proven> {
        let has_passed = |name: &str| {
            report.checks.iter().any(|check| check.name == name && check.outcome == Outcome::Passed)
        };
        let is_proven = |capability: &str| has_passed(proof_of(capability));
        let declared = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
            report.capabilities.iter().filter(|name| wanted(name)).cloned().collect()
        };
        report.is_green().then(|| Proven {
            name: engine.name().to_string(),
            version: report.version.clone(),
            levels: level_names(engine.levels()),
            capabilities: declared(&is_proven),
            traits: declared(&|capability| TRAITS.contains(&capability)),
        })
    }

    /// What an engine declares and this row does not prove: capabilities and levels.
    pub fn lacks(&self, capabilities: &[&str], levels: u64) -> Vec<String> {
        let is_here = |name: &str| {
            self.capabilities.iter().chain(&self.traits).chain(&self.levels).any(|own| own == name)
        };
        let declared = capabilities.iter().map(|name| name.to_string()).chain(level_names(levels));
        declared.filter(|name| !is_here(name)).collect()
    }
}

/// The check that proves an ability.
fn proof_of(ability: &str) -> &str {
    PROOFS.iter().find(|(known, _)| *known == ability).map_or(ability, |(_, check)| check)
}

/// The names of levels given as bits `1 << level`.
pub fn level_names(levels: u64) -> Vec<String> {
    (0..3).filter(|level| levels & (1 << level) != 0).map(|level| level_name(level).to_string()).collect()
}

fn parse(text: &str) -> Result<Vec<Proven>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(file.engine)
}

fn render(rows: &[Proven]) -> String {
    let mut out = HEAD.to_string();
    for row in rows {
        // A text is written as JSON writes it, which TOML reads too; writing to a String cannot fail.
        let list =
            |names: &[String]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "\n[[engine]]\nname = {:?}", row.name);
        if let Some(version) = &row.version {
            let _ = writeln!(out, "version = {}", serde_json::Value::String(version.clone()));
        }
        let _ = writeln!(out, "levels = [{}]", list(&row.levels));
        let _ = writeln!(out, "capabilities = [{}]", list(&row.capabilities));
        let _ = writeln!(out, "traits = [{}]", list(&row.traits));
    }
    out
}

// A file that does not parse is empty here; the tests below name it.
static EMBEDDED: LazyLock<Vec<Proven>> =
    LazyLock::new(|| parse(include_str!("../../engines/proven.toml")).unwrap_or_default());

/// What was proven of an engine when this executable was built; none: nothing.
pub fn proven(engine: &str) -> Option<&'static Proven> {
    EMBEDDED.iter().find(|row| row.name == engine)
}

/// The file beside plug-ins in which a user keeps what was proven of them.
const BESIDE: &str = "proven.toml";

/// What was proven of an engine that is here: when this executable was built, or, of an engine that the project does not
/// know, by its user, who keeps it in `proven.toml` beside the plug-in. A row that proves less than the engine declares
/// now is none.
pub fn proven_here(engine: &Engine) -> Option<Proven> {
    if let Some(row) = proven(engine.name()) {
        return Some(row.clone());
    }
    let text = std::fs::read_to_string(engine.plugin_file()?.with_file_name(BESIDE)).ok()?;
    let row = parse(&text).ok()?.into_iter().find(|row| row.name == engine.name())?;
    // Of what a floor could keep nothing can be proven.
    let is_whole = engine.stores_nothing()
        || row.lacks(&capability_names(engine.capabilities()), engine.levels()).is_empty();
    is_whole.then_some(row)
}

/// Enters a row in a file, in the place of the engine's older one; all other rows stay. The file is made if it is not
/// there, and replaced as a whole. Fails with a text that names the file.
pub fn keep(file: &Path, row: Proven) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.display());
    let mut rows = read(file)?;
    rows.retain(|other| other.name != row.name);
    rows.push(row);
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    let part = part(file);
    std::fs::write(&part, render(&rows)).and_then(|()| std::fs::rename(&part, file)).map_err(failed)
}

/// Whether rows can be entered in a file; an `Err` says why not. It is asked before the proofs, which take minutes.
pub fn check(file: &Path) -> Result<(), String> {
    read(file)?;
    let part = part(file);
    let written = std::fs::write(&part, "").and_then(|()| std::fs::remove_file(&part));
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Where the next form of a file is written before it takes its place.
fn part(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    file.with_file_name(name)
}

/// The rows of a file; none if it is not there.
fn read(file: &Path) -> Result<Vec<Proven>, String> {
    match read_text(file) {
        Ok(text) => parse(&text).map_err(|error| format!("{}: {error}", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("cannot read {}: {error}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::verify::{CheckResult, Effort, check_names};
    use crate::engine::{Registry, capability_names};

    #[test]
    fn every_capability_is_a_trait_or_has_a_check_that_proves_it() {
        let checks = check_names();
        let mut unproven = capability_names(u64::MAX);
        unproven.retain(|name| !TRAITS.contains(name) && !checks.contains(&proof_of(name)));
        assert!(unproven.is_empty(), "without a check: {unproven:?}");
        assert!(TRAITS.iter().all(|name| !checks.contains(&proof_of(name))), "a trait with a proof");
    }

    fn report(outcome: Outcome) -> Report {
        let check = |name: &str, outcome| CheckResult { name: name.into(), outcome };
        Report {
            engine: "null".into(),
            version: Some("1 \"odd\"".into()),
            capabilities: ["ordered", "delete", "delete-tells", "in-memory"].map(String::from).to_vec(),
            effort: Effort::default(),
            levels: Vec::new(),
            checks: vec![
                check("scan-forward", Outcome::Passed),
                check("delete", Outcome::Skipped("it keeps nothing".into())),
                check("model", outcome),
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn only_what_was_tried_is_proven_and_nothing_where_a_check_failed() {
        let engine = Registry::load(&[]).engine("null").unwrap();
        let row = Proven::of(&engine, &report(Outcome::Passed)).unwrap();
        assert_eq!((row.capabilities, row.traits), (vec!["ordered".into()], vec!["in-memory".into()]));
        assert_eq!(Proven::of(&engine, &report(Outcome::Failed("a row is gone".into()))), None);
    }

    #[test]
    fn rows_of_others_stay_and_a_new_one_takes_the_place_of_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proven.toml");
        let engine = Registry::load(&[]).engine("null").unwrap();
        let row = Proven::of(&engine, &report(Outcome::Passed)).unwrap();
        let other = Proven { name: "another".into(), version: None, ..row.clone() };
        for row in [&row, &other, &other, &row] {
            keep(&file, row.clone()).unwrap();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(parse(&text).unwrap(), [other, row.clone()]);
        assert_eq!(row.lacks(&["ordered", "hold"], 1 << 2), ["hold", "power"]);
        std::fs::write(&file, "[[engine]]\nnam = 1\n").unwrap();
        assert!(
            keep(&file, row).unwrap_err().contains("proven.toml"),
            "a file of another kind is not replaced"
        );
    }

    #[test]
    fn the_file_of_the_project_is_as_it_is_written() {
        let text = include_str!("../../engines/proven.toml");
        let rows = parse(text).unwrap_or_else(|error| panic!("engines/proven.toml: {error}"));
        assert!(rows.is_sorted_by(|one, other| one.name < other.name), "by name, each once");
        assert!(render(&rows) == text, "engines/proven.toml was edited by hand");
    }
}
