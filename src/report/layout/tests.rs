//! Tests of the layouts: golden files, lines from the older tools' documents, and faults of those tools.

mod older;
mod runs;

use super::*;
use crate::results::fixture::{self, sketch::drawn};
use crate::results::{Cause, Outcome, Record, Run};
use std::path::Path;
use std::sync::Arc;

fn text(name: &str, summary: &Summary) -> String {
    layout(name).unwrap().text(summary).unwrap()
}

fn csv(name: &str, summary: &Summary) -> String {
    layout(name).unwrap().csv(summary).unwrap()
}

/// The cells of a CSV row without quotes.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

#[test]
fn layouts_are_as_they_were() {
    for (name, sketches) in runs::ALL {
        let (run, records) = drawn(sketches);
        let summary = Summary::new(&run, records);
        let rows = csv(name, &summary);
        let head: String = rows.lines().take(12).map(|line| format!("{line}\n")).collect();
        let fresh = format!("{}\nThe first rows as CSV:\n{head}", text(name, &summary));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/layout-{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == fresh,
            "tests/golden/layout-{name}.txt differs: run with UPDATE=1, read the difference, commit it"
        );
    }
    let named: Vec<&str> = runs::ALL.iter().map(|(name, _)| *name).collect();
    let known: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
    assert_eq!(named, known);
}

#[test]
fn every_row_has_as_many_cells_as_the_head() {
    for (name, sketches) in runs::ALL {
        let (run, records) = drawn(sketches);
        let rows = csv(name, &Summary::new(&run, records));
        let columns = cells(rows.lines().next().unwrap()).len();
        assert!(rows.lines().count() > 1, "{name}");
        for line in rows.lines() {
            assert_eq!(cells(line).len(), columns, "{name}: {line}");
        }
    }
}

#[test]
fn layouts_without_data_are_not_shown() {
    let summary = Summary::new(&fixture::run(), fixture::records());
    for name in ["wide", "ranks", "rounds"] {
        assert_eq!(layout(name).unwrap().text(&summary), None, "{name}");
        assert!(layout(name).unwrap().files(&summary).is_empty(), "{name}");
    }
    let nothing = Summary::new(&fixture::run(), Vec::new());
    for layout in LAYOUTS {
        assert_eq!((layout.text(&nothing), layout.csv(&nothing)), (None, None), "{}", layout.name);
    }
    assert!(layout("tables").is_none());
}

#[test]
fn floors_are_shown_only_where_nothing_else_is() {
    let summary = Summary::new(&fixture::run(), fixture::records());
    assert!(!text("histogram", &summary).contains("null"));
    let mut run = fixture::run();
    run.plan.trials.retain(|trial| trial.engine == "null");
    let alone = Summary::new(&run, fixture::records());
    assert!(text("histogram", &alone).contains("Driver: null"));
    assert!(text("seconds", &alone).contains("null"));
}

#[test]
fn names_cannot_break_out_of_a_layout_or_its_files() {
    let evil = "\u{1b}[31m|../x/\n=cmd\",";
    for (name, sketches) in runs::ALL {
        let (mut run, mut records) = drawn(sketches);
        for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
            trial.engine += evil;
            Arc::make_mut(&mut trial.workload).name += evil;
        }
        let summary = Summary::new(&run, records);
        let text = text(name, &summary);
        assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{name}: {text:?}");
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        for line in text.lines().filter(|line| line.starts_with("| ")) {
            assert!([11, 12].contains(&bars(line)) || bars(line) == 10 + 1, "{line}");
        }
        assert!(!csv(name, &summary).contains(['\u{1b}', '\r']));
        for page in layout(name).unwrap().files(&summary) {
            let whole = page.folder.unwrap_or_default() + &page.file;
            assert!(!whole.contains(['/', '\\', '\n', ' ', '\u{1b}']), "{whole:?}");
        }
    }
}

#[test]
fn the_files_of_a_run_have_names_of_their_own() {
    for (name, sketches) in runs::ALL {
        let (run, records) = drawn(sketches);
        let pages = layout(name).unwrap().files(&Summary::new(&run, records));
        assert!(!pages.is_empty(), "{name}");
        for page in &pages {
            let same = |other: &&Page| (&other.folder, &other.file) == (&page.folder, &page.file);
            assert_eq!(pages.iter().filter(same).count(), 1, "{name}: {page:?}");
        }
    }
}

#[test]
fn a_failed_engine_stays_in_the_table_with_dashes_and_its_cause() {
    let (run, mut records) = drawn(&[runs::KVBENCH]);
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        record.outcome = Outcome::Failed { cause: Cause::NoSpace, text: "the disk is full".into() };
        record.phases.clear();
    }
    let wide = text("wide", &Summary::new(&run, records));
    assert!(wide.contains("| lmdb | - | - | - | - | - | - | - | - | - | - |"), "{wide}");
    let causes: Vec<&str> = wide.lines().filter(|line| line.starts_with("* lmdb")).collect();
    assert_eq!(causes, ["* lmdb: no-space: the disk is full"], "printed once, not for each phase");
    let (run, mut records) = drawn(&[runs::NUDB[0]]);
    records.retain(|record| record.trial.engine != "lmdb");
    let sizes = text("sizes", &Summary::new(&run, records));
    let row = sizes.lines().find(|line| line.starts_with("           1000")).unwrap();
    assert!(row.ends_with("             -"), "{sizes}");
}

#[test]
fn a_trial_that_failed_is_in_no_figure() {
    let (run, mut records) = drawn(&[runs::NUDB[0]]);
    let before = csv("sizes", &Summary::new(&run, records.clone())).lines().count();
    records[0].outcome = Outcome::WrongAnswers { faults: vec!["insert: key 3".to_string()] };
    let after = csv("sizes", &Summary::new(&run, records)).lines().count();
    assert_eq!(before - after, 2, "its two phases");
}

/// The run with changed records.
fn changed(sketches: &[fixture::sketch::Sketch], change: impl Fn(&mut Record)) -> (Run, Summary) {
    let (run, mut records) = drawn(sketches);
    records.iter_mut().for_each(change);
    let summary = Summary::new(&run, records);
    (run, summary)
}
