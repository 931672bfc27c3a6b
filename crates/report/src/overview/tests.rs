//! Tests of the report on one screen: everything is in it, it fits, and colours are not needed.

use super::*;
use crate::figure::rate;
use crate::tests::{assert_golden, scaled};
use kvdyno_core::results::fixture;
use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};
use kvdyno_core::results::race::{Beaten, Look, Race, Standing};
use kvdyno_core::results::{Cause, Durability, OpKind, Outcome, PhaseRecord, Record, Trial};
use kvdyno_measure::warning::Concern;
use proptest::prelude::*;
use std::sync::Arc;

/// The title of a column and the engine of each row with its cell, of all blocks of the only matrix.
fn cells(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut columns: Vec<(usize, String)> = Vec::new();
    let is_matrix = |line: &&str| !line.is_empty();
    let lines = text.lines().skip_while(|line| !line.starts_with("engine ")).take_while(is_matrix);
    let is_row = |line: &&str| {
        ["* ", "mean: ", "too noisy", "process: ", "? safety", "X safety", "+ no loss"]
            .iter()
            .all(|start| !line.starts_with(start))
    };
    for line in lines.take_while(is_row) {
        if line.starts_with("engine ") {
            let starts = line.match_indices("phase").map(|(at, _)| at);
            columns = starts.map(|at| (at, line[at..].split("  ").next().unwrap().to_string())).collect();
        } else if !line.starts_with("--") {
            let engine = line.split("  ").next().unwrap().trim_end_matches([' ', '+', '?', 'X']).to_string();
            for (place, (start, title)) in columns.iter().enumerate() {
                let end = columns.get(place + 1).map_or(line.len(), |(next, _)| (*next).min(line.len()));
                let cell = line.get(*start..end).unwrap_or_default().trim().to_string();
                found.push((engine.clone(), title.clone(), cell));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn the_matrix_fits_its_width_and_has_every_engine_and_phase_once(
        engines in 1usize..20,
        phases in 1usize..12,
        length in 0usize..20,
        runs in prop::sample::select(vec![1u32, 5]),
        width in 60usize..200,
    ) {
        let engines: Vec<String> = (0..engines).map(|number| format!("e{number}{}", "n".repeat(length))).collect();
        let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
        let names: Vec<String> = (0..phases).map(|number| format!("phase{number}{}", "p".repeat(length / 3))).collect();
        let phases: Vec<PhaseSketch> = names.iter().map(|name| PhaseSketch::new(name, &["get"], 20)).collect();
        let sketch = Sketch { name: "all", phases: &phases, engines: &engines, runs, ..Sketch::EMPTY };
        let (run, records) = drawn(&[sketch]);
        let summary = Summary::new(&run, records);
        let text = overview(&summary, &run, Screen { width, has_colours: false });
        let found = cells(&text);
        for line in text.lines().skip_while(|line| !line.starts_with("engine ")).take_while(|line| !line.is_empty()) {
            prop_assert!(line.len() <= width.max(Screen::NARROWEST), "{} columns: {line}", line.len());
        }
        prop_assert_eq!(found.len(), engines.len() * names.len());
        for phase in &summary.phases {
            for cell in phase.groups.iter().flat_map(|group| &group.cells) {
                let own = |(engine, title, _): &&(String, String, String)| *engine == cell.engine && *title == phase.name;
                let own: Vec<_> = found.iter().filter(own).collect();
                prop_assert_eq!(own.len(), 1, "{} in {}\n{}", &cell.engine, &phase.name, &text);
                let shown = rate(cell.ops_per_second.unwrap());
                prop_assert!(own[0].2.trim_start_matches('*').starts_with(&shown), "{own:?}, not {shown}");
            }
        }
    }
}

#[test]
fn a_contradicted_engine_has_its_mark_its_reason_and_no_rank_and_references_are_below() {
    let phases = [PhaseSketch::new("read", &["get"], 100)];
    let engines = ["memory-btree", "badger", "redb", "bbolt", "fjall"];
    let (run, mut records) =
        drawn(&[Sketch { name: "a", phases: &phases, engines: &engines, runs: 5, ..Sketch::EMPTY }]);
    for record in &mut records {
        let version = match record.trial.engine.as_str() {
            "badger" => "v4.9.6",
            "bbolt" => "v1.5.0",
            _ => continue,
        };
        Arc::make_mut(record.engine.as_mut().unwrap()).version = version.to_string();
    }
    let summary = Summary::new(&run, records);
    let text = overview(&summary, &run, Screen { width: 120, has_colours: false });
    let row = |engine: &str| {
        let found = text.lines().find(|line| line.starts_with(engine));
        found.unwrap_or_else(|| panic!("no {engine} in\n{text}"))
    };
    assert!(row("badger").starts_with("badger       X  -"), "{text}");
    assert!(row("badger").ends_with('X'), "the place of its rank: {text}");
    assert!(
        row("bbolt").starts_with("bbolt        +  ") && row("fjall").starts_with("fjall        ?  "),
        "{text}"
    );
    for part in [
        "X safety contradicted, so not ranked: badger at process (37 of 746 kills left lost or wrong data)",
        "see `kvdyno engines badger`",
        "? safety not tested: ",
        "fjall and memory-btree at process",
        "+ no loss seen: in 532 kills of each at process (a loss in up to 0.56 % of kills is still possible)",
        "-- level process, references: simple engines of kvdyno for comparison, not libraries",
        "; to compare at power: kvdyno run",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "no `{part}` in\n{text}");
    }
    let below = |title: &str, engine: &str| text.find(title) < text.find(&format!("\n{engine}"));
    assert!(
        below("references: simple engines", "memory-btree") && below("\nfjall", "memory-btree"),
        "{text}"
    );
}

#[test]
fn the_mark_beside_a_name_is_that_of_its_level_and_a_cell_at_another_level_has_its_own() {
    let phases = [PhaseSketch::new("read", &["get"], 100), PhaseSketch::new("sync", &["put"], 100)];
    let engines = ["tkrzw-hash", "fjall", "bbolt"];
    let (run, mut records) =
        drawn(&[Sketch { name: "a", phases: &phases, engines: &engines, runs: 5, ..Sketch::EMPTY }]);
    for record in &mut records {
        let version = match record.trial.engine.as_str() {
            "tkrzw-hash" => "1.0.25",
            "bbolt" => "v1.5.0",
            _ => "0",
        };
        Arc::make_mut(record.engine.as_mut().unwrap()).version = version.to_string();
        record.phases[1].durability_effective = Some(Durability::Power);
    }
    let text = overview(&Summary::new(&run, records), &run, Screen::FILE);
    let row = text.lines().find(|line| line.starts_with("tkrzw-hash")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.starts_with("tkrzw-hash +/X  ") && row.ends_with(" X"), "no loss at process only: {text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("X safety contradicted, so not ranked: tkrzw-hash at power ("), "{text}");
}

#[test]
fn a_title_counts_the_warnings_that_are_not_shown() {
    let (summary, run) = sixteen();
    let title = |concerns: &[Concern]| {
        let mut records = summary.records.clone();
        for record in &mut records {
            record.warnings = concerns.iter().map(|concern| concern.because("So it is.")).collect();
        }
        let text = overview(&Summary::new(&run, records), &run, Screen::FILE);
        text.lines().find(|line| line.starts_with("Warnings")).map(String::from)
    };
    // One is of the run itself.
    assert_eq!(title(&[Concern::Load]).as_deref(), Some("Warnings:"));
    let many = [Concern::Load, Concern::Steal, Concern::Growth];
    assert_eq!(title(&many).as_deref(), Some("Warnings (2 of 4, all with --full):"));
}

const SIXTEEN: [&str; 16] = [
    "engine-a", "engine-b", "engine-c", "engine-d", "engine-e", "engine-f", "engine-g", "engine-h", "redb",
    "engine-j", "engine-k", "engine-l", "engine-m", "sled", "engine-o", "null",
];

/// A run of fifteen engines and the floor in six phases, five times: engines in pairs that are alike, one that crashes, one at
/// a stronger level, and two that lack something.
fn sixteen() -> (Summary, Run) {
    let fill = PhaseSketch { each_key: true, ..PhaseSketch::new("fill", &["put"], 1_000) };
    let phases = [
        fill,
        PhaseSketch::new("read", &["get"], 2_000),
        PhaseSketch::new("read-missing", &["get"], 2_000),
        PhaseSketch::new("mix", &["get", "put"], 2_000),
        PhaseSketch::new("scan", &["scan"], 1_000),
        PhaseSketch::new("sync", &["put"], 200),
    ];
    let sketch = Sketch { name: "quick", phases: &phases, engines: &SIXTEEN, runs: 5, ..Sketch::EMPTY };
    let (mut run, mut records) = drawn(&[sketch]);
    for trial in &mut run.plan.trials {
        let phases = &mut Arc::make_mut(&mut trial.workload).phases;
        phases[0].join = 100;
        phases[2].miss = 0.1;
        phases[3].threads = 2;
        phases[5].durability = Some(Durability::Power);
        trial.is_floor = trial.engine == "null";
    }
    for record in &mut records {
        record.trial = run.plan.trials[record.trial.order as usize].clone();
        let workload = Arc::clone(&record.trial.workload);
        let place = SIXTEEN.iter().position(|name| *name == record.trial.engine).unwrap() as u64;
        for (phase, settings) in record.phases.iter_mut().zip(&workload.phases) {
            phase.phase = settings.clone();
            // Engines in pairs; runs of neighbours differ in opposite directions.
            let drift = 100 + u64::from(record.trial.repetition) * (2 + place % 2) % 7;
            phase.elapsed_ns = phase.ops * (300 + place / 2 * 400) * drift / 100;
        }
        let sync = record.phases.pop().unwrap();
        record.phases.push(match record.trial.engine.as_str() {
            "sled" => PhaseRecord::not_run(
                sync.phase,
                Durability::Power,
                "cannot reach durability level `power`; the strongest level of this engine is `process`"
                    .into(),
            ),
            _ => PhaseRecord {
                durability_effective: Some(Durability::Power),
                durability_requested: Durability::Power,
                elapsed_ns: sync.ops * (300_000 + place * 1_700 * u64::from(record.trial.repetition % 3)),
                ..sync
            },
        });
        if record.trial.engine == "engine-o" {
            let scan = &mut record.phases[4];
            let reason = "the engine has no ordered scans".to_string();
            *scan = PhaseRecord::not_run(scan.phase.clone(), Durability::Process, reason);
        }
        if record.trial.engine == "engine-d" && record.trial.repetition == 4 {
            record.outcome =
                Outcome::Crashed { signal: "SIGABRT".to_string(), stderr: Vec::new(), suspects: None };
            record.phases.truncate(3);
        }
        if record.trial.engine == "engine-f" {
            record.phases[1].harness_share = 0.2;
        }
    }
    run.absent = vec![("rocksdb".to_string(), "plug-in not built".to_string())];
    run.warnings = fixture::run().warnings;
    (Summary::new(&run, records), run)
}

#[test]
fn a_winner_s_p99_is_that_of_each_kind_if_they_differ_by_more_than_twice() {
    let (summary, run) =
        scaled(&["lmdb", "sqlite"], 5, |engine, run| engine.len() as f64 + f64::from(run) / 100.0);
    let mut records = summary.records;
    let text = |records: &[Record]| overview(&Summary::new(&run, records.to_vec()), &run, Screen::FILE);
    assert!(!text(&records).contains("p99 get"), "they are alike");
    for record in &mut records {
        let updates = record.phases[2].kinds.iter_mut().find(|kind| kind.kind == OpKind::Update).unwrap();
        (0..1_000_u64).for_each(|place| updates.service_ns.record(17_000_000 + place));
    }
    let found = text(&records).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(found.contains("p99 get ") && found.contains(", update 17.0ms"), "{found}");
    let full = (crate::format("text").unwrap().render)(&Summary::new(&run, records), &run);
    let head = full.lines().find(|line| line.starts_with("engine") && line.contains("mixed get")).unwrap();
    assert!(head.contains(" mixed update") && head.contains(" read "), "{head}");
}

#[test]
fn sixteen_engines_in_six_phases_fit_on_one_screen() {
    let (summary, run) = sixteen();
    let text = overview(&summary, &run, Screen::FILE);
    assert_golden("report-overview.txt", &text);
    // The command prints two lines more.
    assert!(text.lines().count() <= 55, "{} lines\n{text}", text.lines().count());
    let narrow = overview(&summary, &run, Screen { width: 80, has_colours: false });
    assert_golden("report-overview-80.txt", &narrow);
    for (text, width) in [(&text, 120), (&narrow, 80)] {
        // Commands are not broken.
        let long = text.lines().find(|line| line.len() > width && !line.contains("kvdyno"));
        assert_eq!(long, None);
    }
}

/// The same with many warnings and failures, and a race that eight engines have left after its first look.
fn long() -> (Summary, Run) {
    let (summary, mut run) = sixteen();
    let mut records = summary.records;
    let has_left = |trial: &Trial| trial.repetition > 3 && LEFT.contains(&trial.engine.as_str());
    run.plan.trials.retain(|trial| !has_left(trial));
    records.retain(|record| !has_left(&record.trial));
    let beaten = LEFT.map(|engine| Beaten { engine: engine.to_string(), by: "engine-a".to_string() });
    let table = |phase: &str| Standing {
        phase: phase.to_string(),
        group: "process".to_string(),
        open: vec!["engine-a".to_string(), "engine-b".to_string()],
        beaten: beaten.to_vec(),
        length: 1.0,
    };
    let tables = ["fill", "read", "read-missing", "mix", "scan"].map(table).to_vec();
    let look = Look { after: 3, tables, trials_left_out: 16 };
    run.plan.race =
        Some(Race { looks_after: vec![3, 4, 5], looks: vec![look.clone(), Look { after: 4, ..look }] });
    for (place, record) in records.iter_mut().enumerate() {
        let long =
            "other programs took a part of the processors, which makes its figures imprecise; ".repeat(4);
        record.warnings = [Concern::Load, Concern::Steal, Concern::Growth]
            .map(|concern| concern.because(format!("In phase read, {long}see.")))
            .to_vec();
        if place % 9 == 0 && record.trial.engine.as_str() > "engine-g" && record.trial.engine != "null" {
            let text = format!("a long reason of this engine alone, {}", "which goes on and on ".repeat(12));
            let text = format!("{}: {text}", record.trial.engine);
            record.outcome = Outcome::Failed { cause: Cause::EngineError, text };
        }
    }
    (Summary::new(&run, records), run)
}

const LEFT: [&str; 3] = ["engine-c", "engine-e", "engine-f"];

#[test]
fn the_intervals_of_the_means_give_way_to_a_column_that_fits_without_them() {
    let (summary, run) = sixteen();
    let at = |width: usize| {
        let text = overview(&summary, &run, Screen { width, has_colours: false });
        let blocks = text.lines().filter(|line| line.starts_with("engine ")).count();
        let has_intervals = text.contains("with its 95 % interval");
        assert_ne!(has_intervals, text.contains("(its 95 % interval is in report.html)"), "{text}");
        (blocks, has_intervals)
    };
    assert_eq!(at(200), (1, true));
    // The widest screen that all columns fit without the intervals only, and the next narrower one that they do not fit.
    let without = (60..200).rev().find(|width| !at(*width).1).unwrap();
    assert_eq!((at(without + 1), at(without).0), ((1, true), 1));
    let split = (60..without).rev().find(|width| at(*width).0 > 1).unwrap();
    assert!(without - split >= " 0.44-0.61".len(), "{split} to {without}");
}

#[test]
fn a_long_screen_drops_what_the_report_has_and_nothing_of_the_conclusion() {
    let (summary, run) = long();
    for width in [120, 140] {
        let screen = Screen { width, has_colours: false };
        let texts = EXTENTS.map(|extent| of_extent(&summary, &run, screen, extent));
        let lines: Vec<usize> = texts.iter().map(|text| text.lines().count()).collect();
        assert!(lines[0] > LINES && lines[2] > LINES && lines[3] <= LINES, "{lines:?}\n{}", texts[0]);
        assert!(lines[..4].is_sorted_by(|more, fewer| more > fewer) && lines[4] <= lines[3], "{lines:?}");
        let shown = overview(&summary, &run, screen);
        assert_eq!(shown, texts[3], "the first extent that fits");
        let conclusion = |text: &str| {
            let parts = text.split("Warnings").next().unwrap().lines().filter(|line| !line.is_empty());
            parts.map(String::from).collect::<Vec<String>>()
        };
        assert!(conclusion(&shown).iter().any(|line| line.starts_with("Verdict")), "{shown}");
        assert_eq!(conclusion(&shown), conclusion(&texts[0]));
        for part in [
            "4 warnings: in all tables (--full)",
            "reasons: in all tables (--full)",
            "1 other step with --full",
        ] {
            assert!(shown.contains(part), "no `{part}` in\n{shown}");
        }
        assert!(texts[0].contains("processors, which makes") && !texts[0].contains("other step"));
    }
    let mut records = summary.records;
    records.iter_mut().for_each(|record| record.warnings.push(Concern::DebugBuild.because("It is slow.")));
    let shown = of_extent(&Summary::new(&run, records), &run, Screen::FILE, EXTENTS[3]);
    assert!(shown.contains("  It is slow. ") && shown.contains("\n  4 other warnings: "), "{shown}");
}

#[test]
fn a_cell_that_left_a_race_has_its_sign_and_the_legend_says_when() {
    let (summary, run) = long();
    let text = overview(&summary, &run, Screen::FILE);
    let row = |engine: &str| text.lines().find(|line| line.starts_with(engine)).unwrap_or_default();
    for engine in LEFT {
        // In all phases but the last, which no look has decided.
        assert_eq!(row(engine).matches('\'').count(), 5, "{engine}\n{text}");
    }
    assert!(row("engine-c").contains(" 1.37M'"), "{text}");
    assert!(!row("engine-a").contains('\'') && !row("engine-d").contains('\''), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("; ' left the race after run 3: cannot win this column any more"), "{text}");
    assert!(flat.contains("median of 3 to 5 runs"), "{text}");
    let page = (crate::format("html").unwrap().render)(&summary, &run);
    assert!(page.contains("1.37M&#39;") || page.contains("1.37M'"), "the page has it too");
    let (before, plain) = sixteen();
    assert!(!overview(&before, &plain, Screen::FILE).contains("left the race"));
}

#[test]
fn a_warning_is_shown_to_its_end_with_its_engines() {
    let (summary, run) = sixteen();
    let mut records = summary.records;
    let text =
        format!("In phase read {}the last word.", "the times of a driver leave something open, ".repeat(9));
    for record in &mut records {
        record.warnings = vec![Concern::UnaccountedTime.because(text.clone())];
    }
    let shown = overview(&Summary::new(&run, records), &run, Screen { width: 80, has_colours: false });
    let flowing = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flowing.contains("the last word. (") && flowing.contains(" others) Do not use the times"),
        "{shown}"
    );
    assert!(flowing.contains(Concern::UnaccountedTime.advice()), "{shown}");
}

#[test]
fn colours_add_nothing_but_colours() {
    let (summary, run) = sixteen();
    let plain = overview(&summary, &run, Screen::FILE);
    let coloured = overview(&summary, &run, Screen { has_colours: true, ..Screen::FILE });
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[1m"));
    let mut stripped = coloured.clone();
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m"] {
        stripped = stripped.replace(code, "");
    }
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&stripped), trimmed(&plain));
}

#[test]
fn the_matrix_says_what_the_noise_hides() {
    let text = |runs: u32| {
        let (summary, run) = scaled(&["lmdb", "sqlite", "fjall"], runs, |engine, run| {
            1.0 + f64::from(run * engine.len() as u32 % 5) / 10.0
        });
        overview(&summary, &run, Screen::FILE)
    };
    let line = text(5).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, line) = line.split_once(" too noisy ").unwrap();
    let (line, _) = line.split_once(" * best").unwrap();
    // The last phase is at another level.
    assert!(line.contains(" to rank engines closer than ") && line.contains(" at process, "), "{line}");
    assert!(line.ends_with(" at power"), "{line}");
    assert!(!text(4).contains("\ntoo noisy "), "no order is claimed");
}

#[test]
fn each_workload_has_its_matrix() {
    let phases = [PhaseSketch::new("read", &["get"], 100)];
    let sketch = |name: &'static str| Sketch { name, phases: &phases, runs: 1, ..Sketch::EMPTY };
    let (run, records) = drawn(&[sketch("first"), sketch("second")]);
    let text = overview(&Summary::new(&run, records), &run, Screen::FILE);
    assert_eq!(text.matches(": ops/s, median of 1 run, and rank").count(), 2, "{text}");
    assert!(text.contains("~ no order shown (that takes 5 runs or more)"), "{text}");
    let command = "get enough runs to name a winner: kvdyno run quick --keys 2000 --runs 5\n";
    assert!(text.contains(command), "no duration is recorded, so none is claimed: {text}");
}

#[test]
fn what_would_decide_has_a_duration_from_the_trials_of_the_run() {
    const NOISE: [f64; 5] = [0.04, -0.03, 0.01, -0.05, 0.03];
    let (mut summary, run) = scaled(&["lmdb", "sqlite"], 5, |engine, run| {
        let (of, shift) = if engine == "lmdb" { (1.0, 1) } else { (0.95, 2) };
        of * (1.0 + NOISE[(run as usize * shift) % NOISE.len()])
    });
    for record in &mut summary.records {
        record.noise.as_mut().unwrap().elapsed_ns = 60_000_000_000;
    }
    let text = overview(&summary, &run, Screen::FILE);
    let (_, runs) = text.split_once(" --runs ").unwrap();
    let runs: u32 = runs.split_whitespace().next().unwrap().parse().unwrap();
    let minutes = super::duration(f64::from(2 * runs * 60));
    let expected = [
        "find out which of these engines is the fastest in ".to_string(),
        format!(" (about {minutes}): kvdyno run quick --keys 2000"),
    ];
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let has_all = expected.iter().all(|part| words.contains(part.as_str()));
    assert!(has_all, "two engines, {runs} times, a minute each: {text}");
}

#[test]
fn failures_with_one_cause_are_one_line_and_every_record_without_figures_is_accounted_for() {
    let (summary, run) = scaled(&["lmdb", "sqlite", "fjall"], 5, |_, run| f64::from(run));
    let mut records: Vec<Record> = summary.records;
    for record in records.iter_mut().filter(|record| record.trial.engine != "lmdb") {
        record.outcome = Outcome::Failed { cause: Cause::NoSpace, text: "the disk is full".to_string() };
        record.phases.clear();
    }
    let text = overview(&Summary::new(&run, records.clone()), &run, Screen::FILE);
    let line = "fjall (5 trials) and sqlite (5 trials) failed: no-space: the disk is full";
    let other = "sqlite (5 trials) and fjall (5 trials) failed: no-space: the disk is full";
    assert!(text.contains(line) || text.contains(other), "{text}");
    // A full disk is no fault of an engine.
    assert!(
        text.contains("with the databases in DIR, on a file system with more space: kvdyno run"),
        "{text}"
    );
    assert!(!text.contains("kvdyno prove --only rules"), "{text}");
    // An engine that does not fit the workload has not failed.
    for record in records.iter_mut().filter(|record| record.trial.engine == "fjall") {
        record.outcome = Outcome::Failed { cause: Cause::Refused, text: "no ordered scans".to_string() };
    }
    let text = overview(&Summary::new(&run, records.clone()), &run, Screen::FILE);
    assert!(
        text.contains("sqlite (5 trials) failed: no-space") && !text.contains("fjall (5 trials)"),
        "{text}"
    );
    for record in records.iter_mut().filter(|record| record.trial.engine == "sqlite") {
        record.outcome = Outcome::Failed { cause: Cause::EngineError, text: "malformed".to_string() };
    }
    let text = overview(&Summary::new(&run, records), &run, Screen::FILE);
    assert!(text.contains("check sqlite, which failed"), "{text}");
    let empty = overview(&Summary::new(&run, Vec::new()), &run, Screen::FILE);
    for part in ["no engine was measured", "nothing was measured", "15 planned trials are without a record"] {
        assert!(empty.contains(part), "no `{part}` in\n{empty}");
    }
}
