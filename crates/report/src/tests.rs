//! Tests of the reports: golden files from the fixture, and properties of all formats.

use super::next::next_steps;
use super::verdict::verdict;
use super::*;
use kvdyno_core::results::fixture;
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::{Cause, Outcome, Record, Word};
use std::path::Path;
use std::sync::Arc;

/// The run and summary of the fixture on disk.
fn fixture_summary() -> (Summary, Run) {
    let folder = RunFolder::open(&fixture::folder()).unwrap();
    (Summary::new(folder.run(), folder.finished().unwrap()), folder.run().clone())
}

fn render(name: &str, summary: &Summary, run: &Run) -> String {
    (format(name).unwrap().render)(summary, run)
}

/// A run with `runs` repetitions of each engine. `scale` returns the factor of ops per second for an engine and a
/// repetition.
pub(super) fn scaled(engines: &[&str], runs: u32, scale: fn(&str, u32) -> f64) -> (Summary, Run) {
    let mut run = fixture::run();
    run.plan.trials.retain(|trial| trial.repetition == 1 && engines.contains(&trial.engine.as_str()));
    let mut trials = Vec::new();
    for repetition in 1..=runs {
        for trial in &run.plan.trials {
            let mut trial = trial.clone();
            trial.id = format!("{}-r{repetition}", trial.id);
            trial.repetition = repetition;
            trials.push(trial);
        }
    }
    run.plan.trials = trials;
    let measured = |trial: &kvdyno_core::results::Trial| {
        let mut first = trial.clone();
        first.repetition = 1;
        let mut record: Record = fixture::record(first);
        record.trial = trial.clone();
        for phase in &mut record.phases {
            let factor = scale(&trial.engine, trial.repetition);
            phase.elapsed_ns = (phase.ops as f64 / 1e6 / factor * 1e9) as u64;
            phase.harness_share = 0.0;
        }
        record
    };
    let records = run.plan.trials.iter().map(measured).collect();
    (Summary::new(&run, records), run)
}

#[test]
fn reports_of_the_fixture_match_the_golden_files() {
    let (summary, run) = fixture_summary();
    for (name, file) in
        [("text", "report-text.txt"), ("markdown", "report-markdown.md"), ("csv", "report-csv.csv")]
    {
        assert_golden(file, &render(name, &summary, &run));
    }
}

pub(super) fn assert_golden(file: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "tests/golden/{file} differs: run with UPDATE=1, read the difference, commit it");
}

#[test]
fn rows_of_one_engine_show_what_distinguishes_them_in_every_report() {
    let (mut run, mut records) = (fixture::run(), fixture::records());
    for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
        let factor = match trial.engine.as_str() {
            "lmdb" => "0.5",
            "fjall" => "0.7",
            _ => continue,
        };
        let option = |name: &str, value: &str| (name.to_string(), value.to_string());
        trial.engine = "nudb".to_string();
        trial.options = vec![option("block_size", "8192"), option("load_factor", factor)];
    }
    let summary = Summary::new(&run, records);
    let screens = [80, 120].map(|width| {
        let screen = Screen { width, has_colours: false };
        (format!("overview {width}"), overview(&summary, &run, screen))
    });
    let formats = FORMATS.iter().map(|format| (format.name.to_string(), (format.render)(&summary, &run)));
    for (name, text) in formats.chain(screens) {
        for factor in ["0.5", "0.7"] {
            let forms = ["load_factor=", "load_factor:", "load\\_factor="];
            let is_there = |form: &&str| text.contains(&format!("{form}{factor}"));
            assert!(
                ["json", "csv-faults"].contains(&name.as_str()) || forms.iter().any(is_there),
                "{name}: {factor} is not in\n{text}"
            );
        }
        if name == "overview 80" {
            let mut lines = text.lines().filter(|line| line.contains("nudb") && !line.contains("kvdyno"));
            assert_eq!(lines.find(|line| line.len() > 80), None, "{text}");
        }
    }
    // The crashed run of one of them is not that of the other.
    let crashed = summary.failures.iter().find(|failure| failure.engine == "nudb").unwrap();
    assert_eq!(crashed.label, "nudb (load_factor=0.7, ..)");
}

#[test]
fn formats_with_many_lines_match_the_golden_files_for_a_small_run() {
    use fixture::sketch::{PhaseSketch, Sketch};
    let phases = [PhaseSketch::new("fill", &["put"], 300), PhaseSketch::new("mixed", &["get", "put"], 200)];
    let sketch = Sketch { name: "small", phases: &phases, engines: &["lmdb"], runs: 1, ..Sketch::EMPTY };
    let (run, records) = fixture::sketch::drawn(&[sketch]);
    let summary = Summary::new(&run, records);
    for name in ["csv-long", "hgrm", "hlog", "gobench", "bencher", "github-bigger", "github-smaller"] {
        assert_golden(&format!("report-{name}.txt"), &render(name, &summary, &run));
    }
}

#[test]
fn formats_have_unique_names_and_end_with_a_newline() {
    let (summary, run) = fixture_summary();
    for format in FORMATS {
        assert_eq!(FORMATS.iter().filter(|other| other.name == format.name).count(), 1);
        let report = (format.render)(&summary, &run);
        assert!(report.ends_with('\n') && !report.ends_with("\n\n"), "{}", format.name);
        assert!(report.is_ascii(), "{}", format.name);
    }
    assert!(format("pdf").is_none());
}

#[test]
fn the_text_fits_a_wide_terminal() {
    let (summary, run) = fixture_summary();
    let text = render("text", &summary, &run);
    let in_table =
        |line: &&str| line.starts_with("rank") || line.starts_with(|first: char| first.is_ascii_digit());
    for line in text.lines().filter(in_table) {
        assert!(line.len() <= 140, "{} columns: {line}", line.len());
    }
}

#[test]
fn every_engine_and_every_failure_is_in_every_format() {
    let (summary, run) = fixture_summary();
    // Services that track commits take figures alone.
    let figures_alone = ["bencher", "github-bigger", "github-smaller"];
    for format in FORMATS.iter().filter(|format| !figures_alone.contains(&format.name)) {
        let report = (format.render)(&summary, &run);
        for engine in fixture::ENGINES {
            assert!(report.contains(engine), "{engine} is not in {}", format.name);
        }
        for failure in ["SIGABRT", "cannot reach level power", "version 1 where 2 was written"] {
            assert!(report.contains(failure), "{failure:?} is not in {}", format.name);
        }
    }
}

#[test]
fn hostile_strings_do_no_harm_in_any_format() {
    let evil = "\u{1b}[31m=cmd|x|\r\n<script>\u{202e}\"',;`*_";
    let mut run = fixture::run();
    let mut records = fixture::records();
    for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
        if trial.engine == "lmdb" {
            trial.engine = evil.to_string();
            trial.options = vec![(evil.to_string(), evil.to_string())];
        }
        let workload = Arc::make_mut(&mut trial.workload);
        workload.name = evil.to_string();
        workload.phases[0].name = evil.to_string();
    }
    for record in records.iter_mut().filter(|record| record.trial.engine == "redb") {
        record.outcome = Outcome::Failed { cause: Cause::EngineError, text: evil.to_string() };
        record.phases[0].kinds[0].kind = Word::Other(evil.to_string());
        Arc::make_mut(record.engine.as_mut().unwrap()).version = evil.to_string();
        record.steps[0].note = Some(evil.to_string());
    }
    run.plan.command = vec![evil.to_string()];
    run.absent = vec![(evil.to_string(), evil.to_string())];
    run.machine.cpu_model = Some(evil.to_string());
    run.id = evil.to_string();
    let summary = Summary::new(&run, records);
    let text = render("text", &summary, &run);
    assert!(
        text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)),
        "a terminal would interpret it"
    );
    let markdown = render("markdown", &summary, &run);
    // Code spans are printed literally.
    let outside_code: String = markdown.lines().flat_map(|line| line.split('`').step_by(2)).collect();
    assert!(!outside_code.contains("<script"), "raw HTML is in the Markdown");
    for line in markdown.lines().filter(|line| line.starts_with("| ")) {
        let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
        assert!([16, 11, 8, 7, 6, 5, 4].contains(&bars), "{bars} bars: {line}");
    }
    let csv = render("csv", &summary, &run);
    assert!(!csv.contains(['\u{1b}', '\r', '\t']));
    for cell in csv.split([',', '\n']) {
        assert!(!cell.trim_start_matches('"').starts_with(['=', '+', '@']), "a formula: {cell}");
    }
    let json: serde_json::Value = serde_json::from_str(&render("json", &summary, &run)).unwrap();
    assert_eq!(json["run"]["id"], evil);
}

#[test]
fn csv_rows_have_as_many_cells_as_the_head_and_one_row_per_run() {
    let (summary, run) = fixture_summary();
    let csv = render("csv", &summary, &run);
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    let mut rows = 0;
    for line in lines {
        let mut quoted = false;
        let commas = line.chars().filter(|letter| {
            quoted ^= *letter == '"';
            *letter == ',' && !quoted
        });
        assert_eq!(commas.count() + 1, columns, "{line}");
        rows += 1;
    }
    assert_eq!(rows, 7 * 4 * 3);
}

#[test]
fn json_has_the_run_the_summary_and_every_record() {
    let (summary, run) = fixture_summary();
    let json: serde_json::Value = serde_json::from_str(&render("json", &summary, &run)).unwrap();
    assert_eq!(json["schema"], kvdyno_core::results::SCHEMA);
    assert_eq!(json["records"].as_array().unwrap().len(), 20);
    assert_eq!(json["summary"]["phases"].as_array().unwrap().len(), 4);
    let kept: Run = serde_json::from_value(json["run"].clone()).unwrap();
    assert!(kept == run);
    assert_eq!(json["summary"]["phases"][1]["groups"][0]["cells"][0]["rank"]["best"], 1);
}

#[test]
fn three_runs_never_have_a_winner() {
    let (summary, _) = scaled(&["lmdb", "redb", "sqlite"], 3, |engine, _| engine.len() as f64);
    let verdicts = verdict(&summary);
    assert!(
        verdicts.iter().any(|verdict| verdict.contains("inconclusive: 3 runs show no order")),
        "{verdicts:?}"
    );
    let (summary, run) = fixture_summary();
    let report = render("text", &summary, &run);
    let text = verdicts.join(" ") + report.split("Verdict").nth(1).unwrap().split("Next").next().unwrap();
    assert!(!text.contains("winner"), "{text}");
}

#[test]
fn separate_ranges_of_five_runs_have_a_winner_and_overlapping_ones_have_none() {
    let (apart, _) = scaled(&["lmdb", "sqlite"], 5, |engine, run| {
        let base = if engine == "lmdb" { 2.0 } else { 1.0 };
        base * (1.0 + f64::from(run * engine.len() as u32 % 5) / 100.0)
    });
    let read = verdict(&apart).into_iter().find(|verdict| verdict.contains("read")).unwrap();
    let expected = "the winner is lmdb (write-map=false), 2.00 times as fast as sqlite (1.";
    assert!(read.contains(expected), "{read}");
    let (overlapping, _) =
        scaled(&["lmdb", "sqlite"], 5, |engine, run| 1.0 + f64::from(run * engine.len() as u32 % 5) / 100.0);
    let read = verdict(&overlapping).into_iter().find(|verdict| verdict.contains("read")).unwrap();
    assert!(read.contains("inconclusive: the fastest is one of"), "{read}");
}

#[test]
fn a_winner_by_engine_time_has_no_ratio_of_rates() {
    let (mut run, _) = (fixture::run(), ());
    let (summary, _) =
        scaled(&["lmdb", "sqlite"], 5, |engine, run| 1.0 + f64::from(run * engine.len() as u32 % 5) / 100.0);
    let mut records = summary.records;
    run.plan.trials = records.iter().map(|record| record.trial.clone()).collect();
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        record.phases.iter_mut().for_each(|phase| phase.harness_share = 0.3);
    }
    let verdicts = verdict(&Summary::new(&run, records));
    let expected = "the winner is lmdb (write-map=false), ahead of sqlite by the time inside the engines";
    assert!(verdicts.iter().any(|verdict| verdict.contains(expected)), "{verdicts:?}");
    // A phase that writes: the time of the harness decides nothing.
    assert!(verdicts[0].contains("inconclusive"), "{verdicts:?}");
}

#[test]
fn one_run_or_two_are_inconclusive() {
    for runs in [1, 2] {
        let (summary, run) = scaled(&["lmdb", "sqlite"], runs, |engine, _| engine.len() as f64);
        for verdict in verdict(&summary) {
            assert!(verdict.contains("inconclusive"), "{verdict}");
        }
        let text = render("text", &summary, &run);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("engines are ranked only with 5 or more runs"), "{text}");
    }
}

#[test]
fn one_engine_alone_is_compared_with_nothing() {
    let (summary, _) = scaled(&["null", "sqlite"], 5, |_, run| f64::from(run));
    let verdicts = verdict(&summary);
    assert!(verdicts[0].contains("sqlite is the only ranked engine"), "{verdicts:?}");
    assert!(
        verdicts.iter().all(|verdict| !verdict.contains("null")),
        "the floor is not compared: {verdicts:?}"
    );
}

#[test]
fn a_single_run_has_no_rank_even_of_an_engine_alone() {
    let rank = |runs: u32| {
        let (summary, run) = scaled(&["lmdb"], runs, |_, run| 1.0 + f64::from(run) / 100.0);
        let text = render("text", &summary, &run);
        let row = text.lines().skip_while(|line| !line.starts_with("rank ")).nth(2).unwrap();
        row.split_whitespace().next().unwrap().to_string()
    };
    assert_eq!((rank(1), rank(5)), ("-".to_string(), "1".to_string()));
}

#[test]
fn a_run_without_records_has_a_report() {
    let run = fixture::run();
    let summary = Summary::new(&run, Vec::new());
    let text = render("text", &summary, &run);
    assert!(text.contains("0 of 21 trials recorded"), "{text}");
    assert!(text.contains("3/3 missing"), "{text}");
    let resumed = format!("--resume=kvdyno-results/{}", run.id);
    assert!(next_steps(&summary, &run)[0].0.ends_with(&resumed), "{:?}", next_steps(&summary, &run));
    for format in FORMATS {
        assert!(!(format.render)(&summary, &run).is_empty());
    }
}

#[test]
fn next_steps_are_two_or_three_commands() {
    let (summary, run) = fixture_summary();
    let steps = next_steps(&summary, &run);
    let commands: Vec<&str> = steps.iter().map(|(command, _)| command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "kvdyno run quick --keys 2000 --resume=kvdyno-results/results-v1",
            "kvdyno prove --only rules fjall",
            "kvdyno run quick --keys 2000 --engines 'lmdb (write-map=false),sled,fjall' --runs 5"
        ]
    );
    let (calm, run) =
        scaled(&["lmdb", "sqlite"], 5, |engine, run| engine.len() as f64 + f64::from(run) / 100.0);
    let steps = next_steps(&calm, &run);
    assert!((2..=3).contains(&steps.len()), "{steps:?}");
}

#[test]
fn seconds_that_do_not_count_are_reported() {
    let (mut run, mut records) = (fixture::run(), fixture::records());
    let trials = run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial));
    let phases = trials.map(|trial| &mut Arc::make_mut(&mut trial.workload).phases[1]);
    phases.for_each(|phase| (phase.seconds, phase.warmup_seconds) = (3.2, 2.0));
    for phase in records.iter_mut().filter_map(|record| record.phases.get_mut(1)) {
        (phase.phase.seconds, phase.phase.warmup_seconds) = (3.2, 2.0);
    }
    let text = text::render(&Summary::new(&run, records), &run);
    // Lines are wrapped.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("or 3.2 s, the first 2 s not counted"), "{text}");
}
