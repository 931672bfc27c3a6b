//! Tests of the site: figures are in the right tables, every link has a target, and hostile strings never become markup.

use super::*;
use crate::escape::HOSTILE;
use crate::figure::rate;
use crate::html::tests::{elements, markup, text_of};
use kvdyno_core::results::fixture::certificate::planted;
use kvdyno_core::results::fixture::{self, sketch::*};
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Plan, Record, Run, Word};
use roxmltree::{Document, Node};
use std::collections::HashMap;
use std::sync::Arc;

/// A site's pages by their paths.
fn pages(runs: Vec<(Run, Vec<Record>)>) -> HashMap<String, String> {
    let mut site = Site::default();
    site.leave_out("broken", "no run.json");
    let mut pages: Vec<Page> =
        runs.into_iter().map(|(run, records)| site.add(&Summary::new(&run, records), &run)).collect();
    pages.extend(site.pages());
    let path = |page: &Page| page.folder.iter().chain([&page.file]).cloned().collect::<Vec<_>>().join("/");
    let count = pages.len();
    let pages: HashMap<String, String> = pages.into_iter().map(|page| (path(&page), page.text)).collect();
    assert_eq!(pages.len(), count, "two pages have the same path");
    pages
}

/// The fixture's run, repeated later with another version of the engines.
fn later(version: &str) -> (Run, Vec<Record>) {
    let (run, mut records) = (fixture::run(), fixture::records());
    for engine in records.iter_mut().filter_map(|record| record.engine.as_mut()) {
        Arc::make_mut(engine).version = version.to_string();
    }
    let id = "2026-12-24T09-15-29-quick-2k-c3d4".to_string();
    (Run { id, started_at: "2026-12-24T09:15:29Z".to_string(), ..run }, records)
}

#[test]
fn certificates_are_on_the_first_page_and_on_that_of_their_engine() {
    let (run, records) = later("2");
    let mut site = Site::default();
    site.add(&Summary::new(&run, records), &run);
    let engine = site.engines()[0].to_string();
    let mut own = planted();
    own.subject.engine = engine.split(" (").next().unwrap_or_default().into();
    own.levels[0].class = Some(Word::Other(HOSTILE.concat()));
    site.certify(vec![own.clone(), planted(), own]);
    let file = site.engine_file(&engine);
    let pages: HashMap<String, String> =
        site.pages().into_iter().map(|page| (page.file, page.text)).collect();
    for (file, rows) in [("index.html".to_string(), 4), (file, 2)] {
        let markup = markup(&pages[&file]);
        let document = Document::parse(&markup).unwrap();
        let titles = elements(&document, "h2");
        let title = titles.iter().find(|title| text_of(**title) == "Durability, claimed and measured");
        let section = title.unwrap().parent().unwrap();
        let of_section = |node: &&Node| node.ancestors().any(|above| above == section);
        let cells: Vec<String> =
            elements(&document, "td").iter().filter(of_section).map(|cell| text_of(*cell)).collect();
        let rows_found = cells.iter().filter(|cell| cell.as_str() == "not contradicted").count();
        assert_eq!(rows_found, rows, "{file}: {cells:?}");
        assert!(cells.iter().any(|cell| cell == "nothing acknowledged is lost"), "{file}: {cells:?}");
    }
}

/// Checks that the pages are well-formed, load no external resources, and link only to pages of the site.
fn check(pages: &HashMap<String, String>) {
    for (path, page) in pages {
        let markup = markup(page);
        let document = Document::parse(&markup).unwrap_or_else(|error| panic!("{path}: {error}"));
        for node in document.descendants().filter(Node::is_element) {
            let name = node.tag_name().name();
            assert!(
                !["link", "img", "iframe", "object", "embed", "base", "form"].contains(&name),
                "{path}: <{name}>"
            );
            for attribute in node.attributes() {
                let (name, value) = (attribute.name(), attribute.value());
                assert!(
                    !name.starts_with("on") && name != "style" && name != "src",
                    "{path}: {name}={value}"
                );
                if name != "href" || value.starts_with('#') {
                    continue;
                }
                let target = match value.strip_prefix("../") {
                    Some(target) => target.to_string(),
                    None => value.to_string(),
                };
                assert!(pages.contains_key(&target), "{path} links to {value}, which is not a page");
            }
        }
        assert!(page.is_ascii(), "{path}");
    }
}

/// The cells of an engine's row in a level's table, with the column titles.
fn row(index: &str, level: &str, engine: &str) -> Vec<(String, String)> {
    let markup = markup(index);
    let document = Document::parse(&markup).unwrap();
    let parts = elements(&document, "div");
    let part = parts.into_iter().find(|part| part.attribute("data-level") == Some(level)).unwrap();
    let titles: Vec<String> =
        part.descendants().filter(|node| node.attribute("scope") == Some("col")).map(text_of).collect();
    let row = part.descendants().find(|node| node.attribute("data-e") == Some(engine)).unwrap();
    let cells = row.children().filter(Node::is_element).map(text_of);
    titles.into_iter().zip(cells).collect()
}

#[test]
fn tables_have_the_newest_figures_of_each_engine_and_phase() {
    let pages = pages(vec![(fixture::run(), fixture::records()), later("2.0.0")]);
    check(&pages);
    let summary = Summary::new(&fixture::run(), fixture::records());
    let index = &pages["index.html"];
    assert!(index.contains("results of 2 runs") && index.contains("broken: no run.json"));
    let mut compared = 0;
    for phase in &summary.phases {
        for group in &phase.groups {
            for cell in group.cells.iter().filter(|cell| cell.options.is_empty()) {
                let row = row(index, &group.durability_effective.to_string(), &cell.engine);
                let title = format!("{} / {}", phase.workload, phase.name);
                let (_, shown) = row.iter().find(|(found, _)| *found == title).unwrap();
                let rank = cell.rank.map(|rank| format!(" {rank}"));
                let wanted = rate(cell.ops_per_second.unwrap()) + &rank.unwrap_or_default();
                assert_eq!(*shown, wanted, "{title}, {}", cell.engine);
                compared += 1;
            }
        }
    }
    assert!(compared > 10, "{compared}");
    assert!(index.contains("runs/2026-12-24T09-15-29-quick-2k-c3d4.html".to_lowercase().as_str()));
}

#[test]
fn an_engine_has_its_history_over_versions() {
    let pages = pages(vec![(fixture::run(), fixture::records()), later("2.0.0")]);
    let page = &pages["engines/redb.html"];
    assert!(page.contains("Versions: 1.2.3 and 2.0.0"), "{page}");
    let markup = markup(page);
    let document = Document::parse(&markup).unwrap();
    let figures = elements(&document, "figure");
    let read =
        figures.iter().find(|figure| text_of(**figure).starts_with("quick / read, level power")).unwrap();
    let bars: Vec<_> = read.descendants().filter_map(|node| node.attribute("data-e")).collect();
    assert_eq!(bars, ["1.2.3, 2026-11-20", "2.0.0, 2026-12-24"]);
    // A single run has no history.
    let once = self::pages(vec![later("2.0.0")]);
    assert!(!once["engines/redb.html"].contains("<figure"));
}

#[test]
fn other_settings_and_other_machines_are_separate() {
    let (mut other, mut records) = later("2.0.0");
    let keys = |trial: &mut kvdyno_core::results::Trial| Arc::make_mut(&mut trial.workload).keys = 4_000;
    other.plan.trials.iter_mut().for_each(keys);
    records.iter_mut().for_each(|record| keys(&mut record.trial));
    let here = self::pages(vec![(fixture::run(), fixture::records()), (other.clone(), records.clone())]);
    let titles: Vec<String> =
        row(&here["index.html"], "process", "fjall").into_iter().map(|cell| cell.0).collect();
    let read = titles.iter().position(|title| title == "quick / read").unwrap();
    assert_eq!(titles[read + 1], "quick / read #2", "next to the first: {titles:?}");
    other.machine.cpu_model = Some("Another".to_string());
    let apart = self::pages(vec![(fixture::run(), fixture::records()), (other, records)]);
    let markup = markup(&apart["index.html"]);
    let document = Document::parse(&markup).unwrap();
    let sections = elements(&document, "section").into_iter();
    assert_eq!(sections.filter(|node| node.attribute("data-machine").is_some()).count(), 2);
}

#[test]
fn a_figure_of_an_older_run_is_marked() {
    let (run, records) = later("2.0.0");
    let fewer: Vec<Record> = records.into_iter().filter(|record| record.trial.engine != "fjall").collect();
    let trials = run.plan.trials.iter().filter(|trial| trial.engine != "fjall").cloned().collect();
    let pages = pages(vec![
        (fixture::run(), fixture::records()),
        (Run { plan: Plan { trials, ..run.plan }, ..run }, fewer),
    ]);
    let shown = |engine: &str| {
        let row = row(&pages["index.html"], "process", engine);
        row.into_iter().find(|(title, _)| title == "quick / read").unwrap().1
    };
    assert!(
        shown("fjall").contains('*') && !shown("sled").contains('*'),
        "{} {}",
        shown("fjall"),
        shown("sled")
    );
}

#[test]
fn hostile_strings_stay_text_and_name_no_file() {
    for evil in HOSTILE {
        let (mut run, mut records) = (fixture::run(), fixture::records());
        for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
            trial.engine = if trial.engine == "redb" { evil.to_string() } else { trial.engine.clone() };
            trial.options = vec![(evil.to_string(), evil.to_string())];
            Arc::make_mut(&mut trial.workload).name = evil.to_string();
        }
        for engine in records.iter_mut().filter_map(|record| record.engine.as_mut()) {
            Arc::make_mut(engine).version = evil.to_string();
        }
        run.machine.cpu_model = Some(evil.to_string());
        run.plan.command = vec![evil.to_string()];
        run.started_at = evil.to_string();
        check(&pages(vec![(run, records)]));
    }
}

#[test]
fn histories_are_linked_from_the_first_page_whatever_their_names() {
    let (run, records) = later("2");
    for evil in HOSTILE.iter().chain(&["speed", "../../x"]) {
        let mut site = Site::default();
        let entry = crate::HistoryEntry::of(
            &run,
            &Summary::new(&run, records.clone()),
            evil.to_string(),
            run.started_at.clone(),
            None,
        );
        let history = crate::History::new(&[entry], &kvdyno_core::results::figures::compared(), false);
        let mut all = vec![site.add(&Summary::new(&run, records.clone()), &run)];
        all.extend((0..3).map(|_| site.add_history(evil, &history)));
        all.extend(site.pages());
        let path =
            |page: &Page| page.folder.iter().chain([&page.file]).cloned().collect::<Vec<_>>().join("/");
        let count = all.len();
        let pages: HashMap<String, String> = all.into_iter().map(|page| (path(&page), page.text)).collect();
        assert_eq!(pages.len(), count, "each history has a page of its own: {evil:?}");
        check(&pages);
        assert_eq!(pages["index.html"].matches("<a href=\"histories/").count(), 3, "{evil:?}");
        assert!(pages["index.html"].contains(": 1 commit, 0 of "), "{evil:?}");
    }
}

#[test]
fn the_first_page_names_the_engines_that_may_be_the_fastest_for_a_kind_of_program() {
    let phases = [
        PhaseSketch { each_key: true, ..PhaseSketch::new("load", &["put"], 100) },
        PhaseSketch::new("visit", &["get"], 100),
    ];
    let run = |id: &str, name: &'static str, engines: &[&str]| {
        // Each is slower than the one before it.
        let (run, mut records) =
            drawn(&[Sketch { name, phases: &phases, engines, runs: 5, ..Sketch::EMPTY }]);
        for record in records.iter_mut().filter(|record| record.trial.engine == "badger") {
            Arc::make_mut(record.engine.as_mut().unwrap()).version = "v4.9.6".to_string();
        }
        (Run { id: id.to_string(), ..run }, records)
    };
    let pages = pages(vec![
        run("many", "web", &["memory-btree", "badger", "fjall", "lmdb", "sled"]),
        run("few", "web", &["lmdb", "fjall"]),
        run("other", "read-random", &["fjall", "lmdb"]),
    ]);
    check(&pages);
    let markup = markup(&pages["index.html"]);
    let document = Document::parse(&markup).unwrap();
    let terms: Vec<String> = elements(&document, "dl")[0]
        .children()
        .filter(Node::is_element)
        .map(|node| text_of(node).split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let [name, entry] = &terms[..] else { panic!("{terms:?}") };
    assert_eq!(name, "web");
    assert!(entry.starts_with("A web service: ") && entry.contains(": fjall ? (visit)"), "{entry}");
    let left_out = ["badger", "memory-btree", "lmdb", "load"];
    assert!(left_out.iter().all(|name| !entry.contains(name)), "{entry}");
    assert!(pages["index.html"].contains("<a href=\"runs/many.html\">run of 4 engines</a>"), "{entry}");
    // The fastest of a column, in its newest run, has the strongest shade.
    let shade = |engine: &str| {
        let row = document.descendants().find(|node| node.attribute("data-e") == Some(engine)).unwrap();
        row.descendants().filter_map(|node| node.attribute("class")).any(|class| class.ends_with(" q6"))
    };
    assert!(shade("lmdb") && shade("fjall") && !shade("sled") && !shade("memory-btree"));
}

#[test]
fn the_first_page_of_many_runs_is_small() {
    let names: Vec<String> = (0..30).map(|number| format!("engine-{number}")).collect();
    let engines: Vec<&str> = names.iter().map(String::as_str).collect();
    let phases = [PhaseSketch::new("read", &["get"], 1_000), PhaseSketch::new("scan", &["scan"], 1_000)];
    let run = |number: usize| {
        let sketch = Sketch { name: "w", phases: &phases, engines: &engines, ..Sketch::EMPTY };
        let (run, records) = drawn(&[sketch]);
        (Run { id: format!("run-{number}"), ..run }, records)
    };
    let pages = pages((0..20).map(run).collect());
    check(&pages);
    assert_eq!(pages.len(), 1 + 20 + 30);
    assert!(pages["index.html"].len() < 200_000, "{}", pages["index.html"].len());
}

#[test]
fn file_names_stay_in_their_folder_and_are_unique() {
    let mut names = super::collect::Names::default();
    let mut seen = std::collections::HashSet::new();
    for name in HOSTILE.iter().chain(&["../../x", "..", "a/b", "a_b", "A_B", "CON"]) {
        let file = names.of(name);
        assert!(file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{file}");
        assert!(!file.is_empty() && file.len() < 100 && seen.insert(file.clone()), "{name:?}: {file}");
        assert_eq!(names.of(name), file);
    }
}
