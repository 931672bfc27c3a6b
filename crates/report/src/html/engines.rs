//! The engines on the page: facts, claimed durability levels, capabilities and effective options.

use super::super::chart::Scene;
use super::super::describe::engine_name;
use super::super::figure::{UNKNOWN, bytes, known};
use super::super::markup::{Html, html, table};
use kvdyno_core::results::summary::Cell;
use kvdyno_core::results::{Durability, EngineFacts, Observed, Proof};
use kvdyno_measure::text::{Align, Column, Table, listed, plain_text};

/// The section; empty if no engine was opened.
pub(super) fn section(scene: &Scene) -> Html {
    if scene.summary.engines.is_empty() {
        return Html::default();
    }
    let about = [
        "levels claimed: the effective durability levels in this run, as the driver reports them. observed: what \
         their sync calls show, counted before the run; - if it writes nothing. certificate: the durability class that kvdyno prove --certificate \
         has measured for this version with default options; - if there is none.",
        "yes: declared in this run, and proven by kvdyno prove --only rules for this version. other: proven for another version. \
         declared: declared but not proven. -: not declared.",
    ];
    let mut section = Html::constant("<section id=\"engines\">\n<h2>Engines</h2>\n");
    section.push(&table(&facts(scene)));
    section.push(&html!("<p class=\"about\">{}</p>\n<h3>Capabilities</h3>\n", about[0]));
    section.push(&html!("<div class=\"matrix\">{}</div>\n", table(&abilities(scene))));
    section.push(&html!(
        "<p class=\"about\">{}</p>\n<h3>Effective options</h3>\n{}",
        about[1],
        table(&options(scene))
    ));
    section.push(&Html::constant("</section>\n"));
    section
}

fn facts(scene: &Scene) -> Table {
    let titles = [
        "engine",
        "version",
        "language",
        "family",
        "origin",
        "levels claimed",
        "observed",
        "certificate",
        "cache",
        "compression",
    ];
    let mut table = Table::with_titles(&titles.map(|title| (title, Align::Left)));
    for engine in &scene.summary.engines {
        table.push(vec![
            engine_name(&engine.name),
            plain_text(&engine.version),
            plain_text(&engine.language),
            plain_text(&engine.family),
            plain_text(&engine.origin),
            levels(scene, engine),
            observed(scene, engine, |observed| observed.verdict.to_string()),
            observed(scene, engine, |observed| {
                observed
                    .certified
                    .as_ref()
                    .map_or(UNKNOWN.to_string(), |certified| certified.class.to_string())
            }),
            known(engine.cache_bytes, bytes),
            known(engine.compression.as_deref(), plain_text),
        ]);
    }
    table
}

/// The cells of an engine in all phases.
fn cells_of<'s>(scene: &'s Scene, engine: &'s EngineFacts) -> impl Iterator<Item = &'s Cell> {
    let all = scene.summary.phases.iter().flat_map(|phase| phase.cells().chain(&phase.floors));
    all.filter(|cell| cell.engine == engine.name)
}

/// What was observed or certified of the levels at which an engine writes: `process: agrees, power: agrees`.
fn observed(scene: &Scene, engine: &EngineFacts, of: fn(&Observed) -> String) -> String {
    let of_cell = |cell: &Cell| {
        let observed = cell.runs.iter().find_map(|run| run.observed.as_ref())?;
        Some((cell.durability_effective?, of(observed)))
    };
    let mut found: Vec<(Durability, String)> = cells_of(scene, engine).filter_map(of_cell).collect();
    found.sort();
    found.dedup();
    let texts: Vec<String> = match &found[..] {
        [] => return UNKNOWN.to_string(),
        [(_, text)] => vec![text.clone()],
        several => several.iter().map(|(level, text)| format!("{level}: {text}")).collect(),
    };
    plain_text(&texts.join(", "))
}

/// The effective durability levels of an engine's cells.
fn levels(scene: &Scene, engine: &EngineFacts) -> String {
    let mut levels: Vec<_> = cells_of(scene, engine).filter_map(|cell| cell.durability_effective).collect();
    levels.sort_unstable();
    levels.dedup();
    let names: Vec<String> = levels.iter().map(ToString::to_string).collect();
    if names.is_empty() { UNKNOWN.to_string() } else { listed(&names, "and") }
}

/// A row for each engine and a column for each capability that at least one engine has.
fn abilities(scene: &Scene) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for ability in scene.summary.engines.iter().flat_map(|engine| &engine.capabilities) {
        if !names.contains(&ability.as_str()) {
            names.push(ability);
        }
    }
    let column = |title: &str| Column { title: plain_text(title), align: Align::Left };
    let columns = ["engine"].into_iter().chain(names.iter().copied());
    let mut table = Table::new(columns.map(column).collect());
    for engine in &scene.summary.engines {
        let proof = scene.run.proofs.iter().find(|proof| proof.engine == engine.name);
        let cell = |ability: &&str| ability_text(engine, proof, ability).to_string();
        table.push([engine_name(&engine.name)].into_iter().chain(names.iter().map(cell)).collect());
    }
    table
}

fn ability_text(engine: &EngineFacts, proof: Option<&Proof>, ability: &str) -> &'static str {
    let has = |names: &[String]| names.iter().any(|name| name == ability);
    match proof.filter(|proof| has(&proof.capabilities)) {
        _ if !has(&engine.capabilities) => UNKNOWN,
        Some(proof) if proof.version.as_deref() == Some(&engine.version) => "yes",
        Some(_) => "other",
        None => "declared",
    }
}

fn options(scene: &Scene) -> Table {
    let mut table = Table::with_titles(&[("engine", Align::Left), ("effective options", Align::Left)]);
    for engine in &scene.summary.engines {
        let options: Vec<String> =
            engine.options.iter().map(|(name, value)| plain_text(&format!("{name}={value}"))).collect();
        let options = if options.is_empty() { UNKNOWN.to_string() } else { options.join(", ") };
        table.push(vec![engine_name(&engine.name), options]);
    }
    table
}
