//! Tests of the page: it is well-formed and self-contained, and its figures are those of the summary.

use super::*;
use crate::escape::HOSTILE;
use crate::figure::{bytes, rate, three_digits, time};
use kvdyno_core::results::fixture::{self, sketch::*};
use kvdyno_core::results::{Disturbed, FaultRecord, Outcome, Plan, Record};
use kvdyno_measure::{SeriesRow, Stall, StallView};
use roxmltree::{Document, Node};
use std::sync::Arc;
use std::time::Instant;

/// The fixture, with a series of five intervals, a slow one and a stall in each phase.
fn with_series() -> (Run, Vec<Record>) {
    let mut records = fixture::records();
    for phase in records.iter_mut().flat_map(|record| &mut record.phases).filter(|phase| phase.ops > 0) {
        let row = |second: u64| SeriesRow {
            at_ns: second * 1_000_000_000,
            interval_ns: 1_000_000_000,
            ops: if second == 3 { 7 } else { phase.ops / 5 },
            p99_ns: (second != 2).then_some(second * 1_000),
            rss_bytes: Some(second << 20),
            ..SeriesRow::default()
        };
        phase.series = (1..=5).map(row).collect();
        phase.stalls = vec![Stall {
            thread: 0,
            kind: "put".into(),
            at_ns: 1_500_000_000,
            length_ns: 40_000_000,
            others: 0,
            seen: Some(StallView { span_ns: 1, busy: vec![(HOSTILE.join(" "), 1)], ..StallView::default() }),
        }];
    }
    (fixture::run(), records)
}

fn page(run: &Run, records: Vec<Record>) -> String {
    render(&Summary::new(run, records), run)
}

/// The page without its style sheet and script, which are not XML.
pub(crate) fn markup(page: &str) -> String {
    let mut left = page.replacen("<!DOCTYPE html>", "", 1);
    for name in ["style", "script"] {
        let open = format!("<{name}>");
        let start = left.find(&open).unwrap();
        let end = left.find(&format!("</{name}>")).unwrap();
        left.replace_range(start + open.len()..end, "");
        assert_eq!(left.matches(&open).count(), 1, "one {name} only");
    }
    left
}

pub(crate) fn elements<'a>(document: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    let own = |node: &Node| node.has_tag_name(name) || node.tag_name().name() == name;
    document.descendants().filter(own).collect()
}

pub(crate) fn text_of(node: Node) -> String {
    node.descendants().filter_map(|inside| inside.is_text().then(|| inside.text()).flatten()).collect()
}

/// Checks that the page is well-formed, that its ids are unique, and that it loads no external resources and runs only its
/// own script.
pub(crate) fn check(page: &str) {
    let markup = markup(page);
    let document = Document::parse(&markup).unwrap_or_else(|error| panic!("{error}"));
    let mut ids = std::collections::HashSet::new();
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let outside =
            ["link", "img", "iframe", "object", "embed", "base", "form", "image", "use", "audio", "video"];
        assert!(!outside.contains(&name), "<{name}>");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on") && name != "style" && name != "src", "{name}={value}");
            if name == "href" {
                assert!(value.starts_with('#'), "{value}");
                let target = |node: Node| node.attribute("id") == Some(&value[1..]);
                assert!(document.descendants().any(target), "{value} has no target");
            }
            if name == "id" {
                assert!(ids.insert(value.to_string()), "duplicate id {value}");
            }
        }
    }
    for label in elements(&document, "label") {
        assert!(ids.contains(label.attribute("for").unwrap()));
    }
    assert!(page.is_ascii() && !STYLE.contains("url(") && !STYLE.contains("@import"));
}

#[test]
fn the_page_is_well_formed_and_self_contained() {
    let (run, records) = with_series();
    let page = page(&run, records);
    check(&page);
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    for name in ["style", "script"] {
        let inside =
            page.split(&format!("<{name}>")).nth(1).unwrap().split(&format!("</{name}>")).next().unwrap();
        assert!(policy.contains(&format!("{name}-src 'sha256-{}'", hash(inside))), "{name}: {policy}");
    }
}

#[test]
fn hashes_match_known_values() {
    assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    assert_eq!(hash("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

/// The groups of this engine in all charts with this title.
fn marks<'a>(document: &'a Document<'a>, title: &str, engine: &str) -> Vec<Node<'a, 'a>> {
    let figures = elements(document, "figure").into_iter();
    let own = figures.filter(|figure| figure.descendants().any(|node| text_of(node) == title));
    let groups = own.flat_map(|figure| figure.descendants().collect::<Vec<_>>());
    groups.filter(|node| node.attribute("data-e") == Some(engine)).collect()
}

/// The x values of a line: its own, or those of its chart up to its length.
fn along(line: Node) -> Option<Vec<String>> {
    let chart = line.ancestors().find(|node| node.tag_name().name() == "svg")?;
    let all = line.attribute("data-x").or_else(|| chart.attribute("data-x"))?;
    let values = line.attribute("data-v")?.split('|').count();
    Some(all.split('|').take(values).map(String::from).collect())
}

#[test]
fn charts_have_the_figures_of_the_json_report() {
    let (run, records) = with_series();
    let summary = Summary::new(&run, records);
    let json: serde_json::Value =
        serde_json::from_str(&(crate::format("json").unwrap().render)(&summary, &run)).unwrap();
    let markup = markup(&render(&summary, &run));
    let document = Document::parse(&markup).unwrap();
    let mut compared = 0;
    for phase in json["summary"]["phases"].as_array().unwrap() {
        let name = phase["name"].as_str().unwrap();
        let phase_name = format!("{} / {name}", phase["workload"].as_str().unwrap());
        for cell in
            phase["groups"].as_array().unwrap().iter().flat_map(|group| group["cells"].as_array().unwrap())
        {
            let engine = match cell["engine"].as_str().unwrap() {
                "lmdb" => "lmdb (write-map=false)",
                other => other,
            };
            let title = format!("{phase_name}: ops/s");
            let shown: Vec<_> = marks(&document, &title, engine)
                .iter()
                .map(|mark| mark.attribute("data-v").unwrap().to_string())
                .collect();
            assert_eq!(shown, [rate(cell["ops_per_second"].as_f64().unwrap())], "{title}, {engine}");
            let is_title = |node: Node| node.has_tag_name("h2") && text_of(node) == phase_name;
            let section = elements(&document, "section").into_iter();
            let section = section.filter(|node| node.descendants().any(is_title));
            let inside = section
                .flat_map(|node| node.descendants())
                .filter(|node| node.attribute("data-e") == Some(engine));
            let of: Vec<_> = inside.collect();
            let is_curve = |node: &&Node| along(**node).is_some_and(|along| along[0] == "0 %");
            let curve = of.iter().find(is_curve).unwrap();
            let places = along(*curve).unwrap();
            let times: Vec<&str> = curve.attribute("data-v").unwrap().split('|').collect();
            for (place, field) in [("50 %", "p50_ns"), ("99 %", "p99_ns"), ("99.9 %", "p999_ns")] {
                let wanted = cell["latency"][field].as_u64().map(time);
                let found = places.iter().position(|other| other == place).map(|at| times[at].to_string());
                assert_eq!(found, wanted, "{phase_name}, {engine}, {place}");
            }
            let is_there =
                |shown: String| of.iter().any(|node| node.attribute("data-v") == Some(shown.as_str()));
            assert!(is_there(three_digits(cell["cpu_seconds_per_million_ops"].as_f64().unwrap())));
            assert!(is_there(bytes(cell["rss_bytes"].as_u64().unwrap())));
            compared += 1;
        }
    }
    assert_eq!(compared, 5 * 4 - 1);
}

/// The text and class of a cell.
type HeatCell<'a> = (String, Option<&'a str>);

/// The rows of the first heat-map: the engine and its cells.
fn heat<'a>(document: &'a Document<'a>) -> Vec<(String, Vec<HeatCell<'a>>)> {
    let tables = elements(document, "table");
    let table = tables.iter().find(|table| table.attribute("class") == Some("heat")).unwrap();
    let rows =
        table.descendants().filter(|node| node.has_tag_name("tr") && node.attribute("class").is_none());
    let cell = |node: Node<'a, 'a>| (text_of(node).trim().to_string(), node.attribute("class"));
    let row = |row: Node<'a, 'a>| {
        let mut cells = row.children().filter(Node::is_element).map(cell);
        let engine = cells.next().unwrap().0;
        (engine, cells.collect())
    };
    rows.map(row).collect()
}

#[test]
fn cells_of_the_heat_map_have_the_figures_of_the_records() {
    let (run, records) = with_series();
    let medians = |engine: &str, place: usize| -> Option<f64> {
        let of = |record: &Record| {
            let phase = record.phases.get(place).filter(|phase| phase.ops > 0)?;
            Some(phase.ops as f64 * 1e9 / phase.elapsed_ns as f64)
        };
        let own = records.iter().filter(|record| record.trial.engine == engine);
        kvdyno_core::results::statistics::median(&own.filter_map(of).collect::<Vec<f64>>())
    };
    let expected: Vec<Vec<Option<f64>>> =
        fixture::ENGINES.iter().map(|engine| (0..4).map(|place| medians(engine, place)).collect()).collect();
    let markup = markup(&page(&run, records.clone()));
    let document = Document::parse(&markup).unwrap();
    let rows = heat(&document);
    assert_eq!(rows[0].0, "engine");
    let titles: Vec<&str> = rows[0].1.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(titles, ["mean", "fill", "read", "mixed", "sync"]);
    let mut compared = 0;
    for (engine, wanted) in fixture::ENGINES.iter().zip(expected) {
        let is_own = |(name, _): &&(String, _)| name.split(' ').next() == Some(*engine);
        // The engine with wrong answers has no figures.
        let Some((_, cells)) = rows.iter().find(is_own) else {
            assert_eq!(*engine, "mutant:stale-read");
            continue;
        };
        for (place, wanted) in wanted.into_iter().enumerate() {
            let (text, class) = &cells[place + 1];
            let Some(wanted) = wanted else {
                assert_eq!((text.as_str(), *class), ("-", None), "{engine}, {place}");
                continue;
            };
            assert_eq!(text.split(' ').next(), Some(rate(wanted).as_str()), "{engine}, {place}: {text}");
            // lmdb, fjall, sled and sqlite are at the same level in the first phases.
            if place < 3 && !["null", "redb"].contains(engine) {
                let own = ["lmdb", "fjall", "sled", "sqlite"].map(|other| medians(other, place).unwrap());
                let ratio = wanted / own.into_iter().fold(0.0, f64::max);
                let least = [0.0, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9];
                let shade = least.iter().rposition(|least| ratio >= *least).unwrap();
                assert_eq!(*class, Some(format!("q{shade}").as_str()), "{engine}, {place}: {ratio}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 12);
    let (_, redb) = rows.iter().find(|(name, _)| name == "redb ?").unwrap();
    assert_eq!(redb[1].1, None, "an engine alone at its level is not shaded");
}

#[test]
fn the_page_is_readable_without_its_script_and_folds_what_is_not_needed_first() {
    let (run, records) = with_series();
    let markup = markup(&page(&run, records));
    let document = Document::parse(&markup).unwrap();
    let hidden: Vec<&str> = document
        .descendants()
        .filter(|node| node.attribute("hidden").is_some())
        .map(|node| node.attribute("id").unwrap())
        .collect();
    assert_eq!(hidden, ["controls", "tip"]);
    let folded = |title: &str| {
        let title = elements(&document, "h2").into_iter().find(|node| text_of(*node) == title).unwrap();
        title.ancestors().any(|node| node.has_tag_name("details"))
    };
    assert!(folded("quick / fill"), "it only loads");
    for title in ["Verdict", "Trade-offs", "quick / read", "quick / mixed", "quick / sync"] {
        assert!(!folded(title), "{title}");
    }
    for details in elements(&document, "details") {
        assert!(details.first_element_child().unwrap().has_tag_name("summary"));
        assert!(details.attribute("open").is_none());
    }
    // A run of loads has nothing else to show.
    let load = PhaseSketch { each_key: true, ..PhaseSketch::new("load", &["put"], 1_000) };
    let (run, records) = drawn(&[Sketch { name: "w", phases: &[load], ..Sketch::EMPTY }]);
    assert!(page(&run, records).contains("<section id=\"p0\" class=\"phase\">\n<h2>w / load</h2>"));
}

#[test]
fn series_show_gaps_slow_intervals_and_stalls() {
    let (run, records) = with_series();
    let markup = markup(&page(&run, records));
    let document = Document::parse(&markup).unwrap();
    let rates = marks(&document, "ops/s over time, level process", "lmdb (write-map=false)");
    assert_eq!(along(rates[0]).unwrap().join(" "), "1s 2s 3s 4s 5s");
    assert!(rates[0].attribute("data-v").unwrap().contains("|7.00|"), "the slow interval's own rate");
    let marks_of = |shape: &str| {
        let marks = rates[0].descendants().filter(|node| node.attribute("class") == Some("z"));
        marks.filter(|node| node.attribute("d").is_some_and(|path| path.contains(shape))).collect::<Vec<_>>()
    };
    assert_eq!(marks_of("l8 8").len(), 2, "a cross on each scale");
    let triangles = marks_of("h8z");
    assert_eq!(triangles.len(), 2, "a triangle on each scale");
    assert!(text_of(triangles[0]).starts_with("stall of 40.0ms at 1.50s: "), "{}", text_of(triangles[0]));
    let p99 = marks(&document, "p99 over time, level process", "lmdb (write-map=false)");
    assert_eq!(along(p99[0]).unwrap().join(" "), "1s 3s 4s 5s", "unknown values have no point");
    assert_eq!(p99[0].descendants().filter(|node| node.has_tag_name("polyline")).count(), 4, "a gap");
    assert!(text_of(document.root()).contains("lmdb (write-map=false) 1"), "slow intervals are counted");
}

#[test]
fn faults_are_drawn_behind_the_series() {
    let (run, mut records) = with_series();
    let plain = page(&run, records.clone());
    assert!(!plain.contains("class=\"u\""));
    let fault = FaultRecord {
        target: "leader".into(),
        member: HOSTILE.join(" "),
        at_ns: 1_500_000_000,
        until_ns: Some(3_000_000_000),
        without_service_ns: Some(700_000_000),
        ..FaultRecord::default()
    };
    for phase in records.iter_mut().flat_map(|record| &mut record.phases).filter(|phase| phase.ops > 0) {
        phase.disturbed = Some(Disturbed { faults: vec![fault.clone()], ..Disturbed::default() });
    }
    let page = page(&run, records);
    check(&page);
    let markup = markup(&page);
    let document = Document::parse(&markup).unwrap();
    let bands: Vec<Node> = elements(&document, "path")
        .into_iter()
        .filter(|path| path.attribute("class") == Some("u"))
        .map(|path| path.parent().unwrap())
        .collect();
    assert!(!bands.is_empty());
    for band in bands {
        let text = text_of(band);
        assert!(text.contains("at 1.50s: no service for 700ms") && text.ends_with("kill leader"), "{text}");
    }
}

#[test]
fn hostile_strings_stay_text() {
    let evil = HOSTILE.join(" ");
    for evil in HOSTILE.iter().copied().chain([evil.as_str()]) {
        let (mut run, mut records) = with_series();
        for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
            trial.engine = if trial.engine == "lmdb" { evil.to_string() } else { trial.engine.clone() };
            trial.options = vec![(evil.to_string(), evil.to_string())];
            Arc::make_mut(&mut trial.workload).name = evil.to_string();
        }
        for record in &mut records {
            let engine = Arc::make_mut(record.engine.as_mut().unwrap());
            engine.capabilities.push(evil.to_string());
            engine.options.push((evil.to_string(), evil.to_string()));
            for text in [&mut engine.name, &mut engine.version, &mut engine.family, &mut engine.origin] {
                *text = evil.to_string();
            }
            for warning in &mut record.warnings {
                warning.text = evil.to_string();
            }
            record.steps[2].note = Some(evil.to_string());
        }
        records[3].outcome =
            Outcome::Crashed { signal: evil.into(), stderr: vec![evil.into()], suspects: Some(evil.into()) };
        run.machine.cpu_model = Some(evil.to_string());
        run.plan.command = vec![evil.to_string()];
        run.id = evil.to_string();
        run.absent = vec![(evil.to_string(), evil.to_string())];
        check(&page(&run, records));
    }
}

#[test]
fn empty_and_incomplete_runs_have_a_page() {
    let run = fixture::run();
    let empty = page(&run, Vec::new());
    check(&empty);
    assert!(empty.contains("21 of the planned trials have no record"), "{empty}");
    let half: Vec<Record> = fixture::records().into_iter().take(5).collect();
    check(&page(&run, half));
    let nothing = Run { plan: Plan::default(), absent: Vec::new(), ..run };
    let nothing = page(&nothing, Vec::new());
    check(&nothing);
    assert!(nothing.contains("Nothing was measured."));
}

#[test]
fn the_matrix_distinguishes_proven_from_declared_capabilities() {
    let (run, records) = with_series();
    let markup = markup(&page(&run, records));
    let document = Document::parse(&markup).unwrap();
    let matrix = elements(&document, "div")
        .into_iter()
        .find(|node| node.attribute("class") == Some("matrix"))
        .unwrap();
    let row = |engine: &str| {
        let rows = matrix.descendants().filter(|node| node.has_tag_name("tr"));
        let cells = |row: Node| row.children().filter(Node::is_element).map(text_of).collect::<Vec<_>>();
        rows.map(cells).find(|cells| cells[0] == engine).unwrap()
    };
    assert_eq!(row("engine"), ["engine", "ordered", "delete"]);
    assert_eq!(row("redb"), ["redb", "yes", "declared"]);
    assert_eq!(row("fjall"), ["fjall", "declared", "declared"]);
}

/// Generated names of engines or workloads.
fn names(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{what}-{number}")).collect()
}

#[test]
fn the_page_of_a_quick_run_of_all_engines_is_below_a_mebibyte_and_a_quarter() {
    let engines = names("some-engine", 48);
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let phase = |name: &'static str, kinds: &'static [&'static str]| PhaseSketch::new(name, kinds, 20_000);
    let phases = [
        phase("fill", &["put"]),
        phase("read", &["get"]),
        phase("read-missing", &["get"]),
        phase("mix", &["get", "put"]),
        phase("scan", &["scan"]),
        phase("sync", &["put"]),
    ];
    // Phases take three to four seconds, so that they have series.
    let sketch =
        Sketch { name: "quick", phases: &phases, engines: &engines, cost_ns: 20_000, ..Sketch::EMPTY };
    let (run, records) = drawn(&[sketch]);
    let page = page(&run, records);
    assert!(page.contains("Cost per op: processor"));
    assert!(page.len() < 5 << 18, "{} bytes", page.len());
    check(&page);
}

/// A field of this process's status, in KiB.
fn status_kib(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}

/// 10,000 cells with one run and with three: at most 300 MB of memory, with all records loaded.
/// `cargo test --release --lib ten_thousand -- --ignored --nocapture`.
#[test]
#[ignore = "40,000 records; the time limit is for a release build"]
fn ten_thousand_cells_take_seconds() {
    let (engines, workloads) = (names("engine", 100), names("workload", 100));
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let phases = [PhaseSketch::new("read", &["get"], 1_000)];
    for (runs, most_mib, most_added_mib) in [(1, 286, 100), (3, 286, 100)] {
        let sketch = |name| Sketch { name, phases: &phases, engines: &engines, runs, ..Sketch::EMPTY };
        let sketches: Vec<Sketch> = workloads.iter().map(|name| sketch(name.as_str())).collect();
        let (run, records) = drawn(&sketches);
        // Reset the peak, with all records loaded.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let before_kib = status_kib("VmRSS:").unwrap_or(0);
        let begin = Instant::now();
        let page = render(&Summary::new(&run, records), &run);
        let all = begin.elapsed();
        let peak_kib = status_kib("VmHWM:").unwrap_or(0);
        let (peak_mib, added_mib) = (peak_kib >> 10, peak_kib.saturating_sub(before_kib) >> 10);
        println!("{runs} runs: {} MiB in {all:?}; peak {peak_mib} MiB, {added_mib} added", page.len() >> 20);
        if !cfg!(debug_assertions) {
            assert!(all.as_secs_f64() < 3.0, "{all:?}");
        }
        assert!(peak_mib <= most_mib && added_mib <= most_added_mib, "{peak_mib} MiB, {added_mib} added");
        assert_eq!(page.matches("class=\"phase\"").count(), 100);
    }
}
