//! Tests of the layouts: golden files, lines from the older tools' documents, and faults of those tools.

mod older;
mod runs;

use super::*;
use kvdyno_core::results::fixture::{self, sketch::drawn};
use kvdyno_core::results::{Cause, Outcome, Record, Run};
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
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/layout-{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == fresh,
            "../../tests/golden/layout-{name}.txt differs: run with UPDATE=1, read the difference, commit it"
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
fn times_and_rates_are_without_the_harness_and_say_so() {
    // Four fifths of the time of each phase are the harness's.
    let slow = |record: &mut Record| {
        for phase in &mut record.phases {
            phase.elapsed_ns *= 5;
            phase.harness_share = 0.8;
        }
    };
    let of = |name: &str, sketches: &[fixture::sketch::Sketch], change: &dyn Fn(&mut Record)| {
        text(name, &changed(sketches, change).1)
    };
    let none = |record: &mut Record| record.phases.iter_mut().for_each(|phase| phase.harness_share = 0.0);
    for (name, sketches) in [("sizes", &runs::NUDB[..]), ("wide", &[runs::KVBENCH][..])] {
        assert_eq!(of(name, sketches, &slow), of(name, sketches, &none), "{name}");
    }
    assert!(
        of("sizes", &runs::NUDB, &slow).contains("(seconds without the harness's time, median of 3 runs;")
    );
    assert!(of("wide", &[runs::KVBENCH], &slow).contains("Times and rates are without the harness's time."));
    let (rounds, before) = (of("rounds", &runs::TOKU, &slow), of("rounds", &runs::TOKU, &none));
    let scans = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("Scan")).map(|line| line[..60].to_string()).collect()
    };
    assert_eq!(scans(&rounds), scans(&before));
    assert!(rounds.contains("MB/s (cold; without the harness's 0.020s)\n"), "{rounds}");
    assert!(rounds.contains("\n(times and rates are without the harness's 0.024s)\n"), "{rounds}");
    assert!(rounds.contains("\nserial  0.001000s  1000000/s    random  0.001000s  1000000/s"), "{rounds}");
    // The harness decides no rank: a rate with it is a lower bound where a phase writes.
    let ranks = of("ranks", &[runs::KVBENCH], &slow);
    let first: Vec<&str> =
        ranks.lines().find(|line| line.starts_with("| 1 |")).unwrap().split(" | ").collect();
    assert_eq!((first[5], first[6]), ("fjall = lmdb", "fjall"), "set and get: {ranks}");
    // Rows of seconds have no share of their own.
    let seconds = of("seconds", &[runs::KVDK], &slow);
    assert!(
        seconds.contains(", by the wall clock)\n(without the harness's time: read ops 500, write ops 500)\n"),
        "{seconds}"
    );
}

#[test]
fn the_csv_has_the_time_by_the_wall_clock_too() {
    for (name, sketches) in [("sizes", &runs::NUDB[..1]), ("rounds", &runs::TOKU[..1])] {
        let (_, summary) = changed(sketches, |record| {
            for phase in &mut record.phases {
                phase.elapsed_ns = 2_000_000_000;
                phase.harness_share = 0.5;
            }
        });
        let rows = csv(name, &summary);
        let columns = cells(rows.lines().next().unwrap());
        let at = |column: &str| columns.iter().position(|own| *own == column).unwrap();
        let row = cells(rows.lines().nth(1).unwrap());
        assert_eq!((row[at("seconds")], row[at("wall_seconds")]), ("1", "2"), "{name}: {rows}");
    }
}

#[test]
fn rows_of_one_engine_show_what_distinguishes_them_in_every_layout() {
    let option = |name: &str, value: &str| (name.to_string(), value.to_string());
    for (name, sketches) in runs::ALL {
        let (mut run, mut records) = drawn(sketches);
        for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
            let factor = if trial.engine == "fjall" { "0.5" } else { "0.7" };
            if ["fjall", "lmdb"].contains(&trial.engine.as_str()) {
                trial.engine = "nudb".to_string();
                trial.options = vec![option("block_size", "8192"), option("load_factor", factor)];
            }
        }
        let summary = Summary::new(&run, records);
        let text = text(name, &summary);
        for factor in ["0.5", "0.7"] {
            assert!(text.contains(&format!("load_factor={factor}")), "{name}: {text}");
            assert!(
                text.contains(&format!("nudb (block_size=8192, load_factor={factor})")),
                "{name}: {text}"
            );
        }
        for line in text.lines().filter(|line| line.contains("nudb")) {
            assert_eq!(line.matches('(').count(), line.matches(')').count(), "{name}: {line}");
        }
    }
}

#[test]
fn a_refused_engine_is_a_footnote_without_a_row_and_without_backslashes() {
    let (run, mut records) = drawn(&[runs::KVBENCH]);
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        let text = "level_x is not supported; see `kvdyno engines lmdb`".to_string();
        record.outcome = Outcome::Failed { cause: Cause::Refused, text: text.clone() };
        for phase in &mut record.phases {
            let planned = (phase.phase.clone(), phase.durability_requested);
            *phase = kvdyno_core::results::PhaseRecord::not_run(planned.0, planned.1, text.clone());
        }
    }
    let summary = Summary::new(&run, records);
    for name in ["wide", "ranks"] {
        let text = text(name, &summary);
        let line = "* `lmdb: level_x is not supported; see 'kvdyno engines lmdb'`\n";
        assert!(text.contains(line) && !text.contains('\\'), "{name}: {text}");
        assert!(!text.contains("| lmdb |") && !text.contains("\n| 2 |"), "{name}: {text}");
    }
}

#[test]
fn a_file_ends_with_the_problems_of_its_run() {
    for (name, sketches) in runs::ALL {
        let (mut run, records) = drawn(sketches);
        run.warnings = vec![kvdyno_measure::warning::Concern::Load.because("The load was 2.1.")];
        for page in layout(name).unwrap().files(&Summary::new(&run, records)) {
            assert!(
                page.text.contains("\nWarnings\n--------\n\nThe load was 2.1. Wait"),
                "{name}: {}",
                page.text
            );
        }
    }
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
