//! Tests of histories: lines survive, series are apart, and what is shown is what is in them.

use super::*;
use crate::escape::HOSTILE;
use crate::html::tests::{elements, markup, text_of};
use kvdyno_core::results::figures::{Figure, RATE, compared, figure};
use kvdyno_core::results::fixture;
use kvdyno_core::results::summary::Summary;
use proptest::prelude::*;
use roxmltree::Document;
use std::sync::Arc;

/// The line of the fixture's run as that of this commit, with these rates of redb in `read`; none: it has no figures there.
fn entry(commit: &str, run: usize, rates: Option<&[f64]>) -> HistoryEntry {
    let mut own = HistoryEntry::of(
        &fixture::run(),
        &Summary::new(&fixture::run(), fixture::records()),
        commit.to_string(),
        format!("2026-11-{:02}T09:15:29Z", run % 28 + 1),
        None,
    );
    own.run = format!("run-{run}");
    own.cells.retain(|cell| cell.engine == "redb" && cell.phase == "read");
    let values = rates.map(<[f64]>::to_vec);
    own.cells[0].figures.retain(|name, _| name != RATE);
    own.cells[0].figures.extend(values.map(|values| (RATE.to_string(), values)));
    own
}

fn rate() -> Vec<&'static Figure> {
    figure(RATE).into_iter().collect()
}

fn values(series: &series::Series) -> Vec<(usize, f64)> {
    series.points.iter().map(|point| (point.commit, point.value)).collect()
}

fn read(entries: &[HistoryEntry]) -> HistoryFile {
    HistoryFile::read(entries.iter().map(HistoryEntry::line).collect::<String>().as_bytes())
}

/// A change at the third of these commits.
fn with_change(entries: &[HistoryEntry]) -> History {
    let mut history = History::new(entries, &rate(), false);
    history.find(|_| Ok(vec![Shift { index: 2, before: 1e6, after: 9e5, p: 3e-7 }]));
    history
}

#[test]
fn a_line_has_the_figures_of_engines_that_have_some_and_survives_the_file() {
    let (run, summary) = (fixture::run(), Summary::new(&fixture::run(), fixture::records()));
    let mut own = HistoryEntry::of(
        &run,
        &summary,
        "abc".to_string(),
        "2026-11-20T09:15:29Z".to_string(),
        Some("n".to_string()),
    );
    // A parser of JSON may change the last digit of a fraction.
    let values = own.cells.iter_mut().flat_map(|cell| cell.figures.values_mut()).flatten();
    values.for_each(|value| *value = value.round());
    assert_eq!(own.line().matches('\n').count(), 1);
    assert_eq!(
        read(&[own.clone()]),
        HistoryFile {
            whole_bytes: own.line().len() as u64,
            entries: vec![own.clone()],
            ..HistoryFile::default()
        }
    );
    // Floors and engines with planted bugs are no engines, and sled does not reach the level of `sync`.
    assert!(
        own.cells.iter().all(|cell| cell.engine != "null" && !cell.engine.starts_with("mutant:")),
        "{own:?}"
    );
    assert!(!own.cells.iter().any(|cell| cell.engine == "sled" && cell.phase == "sync"), "{own:?}");
    let cell = own.cells.iter().find(|cell| cell.engine == "lmdb" && cell.phase == "read").unwrap();
    assert_eq!((cell.level.as_str(), cell.options.len()), ("process", 1));
    assert_eq!(cell.figures[RATE].len(), 3, "one for each run: {cell:?}");
    assert!(!cell.figures.contains_key("write_amplification_ratio"), "it writes nothing: {cell:?}");
    let odd = HistoryEntry::odd_cells(&summary);
    let of = |part: &str| {
        odd.iter().find(|odd| odd.text.contains(part)).unwrap_or_else(|| panic!("{part}: {odd:?}"))
    };
    assert!(
        of("quick / sync: sled: 3 of 3 runs have no figures (the engine cannot reach level power)")
            .is_missing
    );
    assert!(!of("quick / mixed: fjall: 1 of 3 runs has no figures (crashed: SIGABRT").is_missing);
}

#[test]
fn a_torn_end_is_told_and_ignored_and_earlier_lines_stay() {
    let (one, two) = (entry("a", 0, Some(&[1.0])), entry("b", 1, Some(&[2.0])));
    let all = one.line() + &two.line();
    for cut in 1..two.line().len() - 1 {
        let file = HistoryFile::read(&all.as_bytes()[..one.line().len() + cut]);
        assert_eq!(file.entries, std::slice::from_ref(&one), "cut at {cut}");
        assert_eq!(file.warnings, ["line 2 is torn, as by a crash while it was written: it is ignored"]);
        assert_eq!(file.whole_bytes, one.line().len() as u64);
    }
    // Only the newline is missing, as after an edit.
    let file = HistoryFile::read(&all.as_bytes()[..all.len() - 1]);
    assert_eq!((file.entries.len(), file.is_open, file.whole_bytes), (2, true, all.len() as u64 - 1));
}

#[test]
fn broken_newer_and_repeated_lines_are_skipped_with_their_number() {
    let lines: Vec<String> = (0..3).map(|run| entry("a", run, Some(&[1.0])).line()).collect();
    let newer = lines[1].replacen("\"schema\":1", "\"schema\":2", 1);
    let text = [&lines[0], "{\"schema\":1}\n", "\n", &newer, &lines[0], &lines[2]].concat();
    let file = HistoryFile::read(text.as_bytes());
    let runs: Vec<&str> = file.entries.iter().map(|entry| entry.run.as_str()).collect();
    assert_eq!(runs, ["run-0", "run-2"]);
    assert!(
        file.warnings[0].starts_with("line 2 is skipped: it cannot be read: missing field"),
        "{:?}",
        file.warnings
    );
    assert_eq!(
        file.warnings[1],
        "line 4 is skipped: it has schema 2, and this version of kvdyno knows those up to 1"
    );
    assert_eq!(file.warnings[2], "line 5 is there twice: it counts once");
    assert_eq!(file.whole_bytes, text.len() as u64);
}

#[test]
fn a_commit_has_the_median_of_all_its_runs_at_the_place_where_it_was_added() {
    let entries = [
        entry("a", 0, Some(&[1.0, 2.0, 3.0])),
        entry("b", 1, Some(&[10.0])),
        entry("c", 2, None),
        entry("a", 3, Some(&[7.0, 8.0])),
        entry("d", 4, Some(&[20.0])),
    ];
    let history = History::new(&entries, &rate(), false);
    assert_eq!((history.commit_count(), history.series.len()), (4, 1));
    assert_eq!(values(&history.series[0]), [(0, 3.0), (1, 10.0), (3, 20.0)], "what is unknown is absent");
}

#[test]
fn machines_settings_and_levels_are_apart_unless_they_are_joined() {
    let mut entries: Vec<HistoryEntry> =
        (0..6).map(|run| entry(&format!("c{run}"), run, Some(&[run as f64]))).collect();
    entries[1].conditions.machine.kernel = Some("6.19".to_string());
    let workload = &mut entries[2].conditions.trials[0].workload;
    Arc::make_mut(workload).keys = 4_000;
    entries[3].cells[0].level = "process".to_string();
    let history = History::new(&entries, &rate(), false);
    assert_eq!(history.machine_count(), 2);
    let found: Vec<_> = history
        .series
        .iter()
        .map(|own| (own.machine, own.phase.as_str(), own.level.as_str(), values(own).len()))
        .collect();
    assert_eq!(
        found,
        [
            (0, "quick / read", "power", 3),
            (0, "quick #2 / read", "power", 1),
            (0, "quick / read", "process", 1),
            (1, "quick / read", "power", 1),
        ]
    );
    let text = history_text(&history, true);
    assert!(text.contains("2: Example CPU 3000") && text.contains("kernel 6.19"), "{text}");
    assert!(text.contains("All series on machine 2"), "{text}");
    let joined = History::new(&entries, &rate(), true);
    assert_eq!((joined.machine_count(), joined.series.len()), (1, 2), "levels are never joined");
    let mut second = history;
    second.keep_machine(2);
    assert_eq!(values(&second.series[0]), [(1, 1.0)]);
}

#[test]
fn a_change_is_shown_with_its_first_commit_the_one_before_ratio_and_p() {
    let hash = "0123456789abcdef0123456789abcdef01234567";
    let ids = ["a", "b", hash, "d"];
    let mut entries: Vec<HistoryEntry> =
        ids.iter().enumerate().map(|(run, id)| entry(id, run, Some(&[1e6 - run as f64]))).collect();
    entries[2].note = Some("a smaller page".to_string());
    let history = with_change(&entries);
    let text = history_text(&history, false);
    assert!(
        text.contains("First in 0123456789ab (2026-11-03, a smaller page), the commit after b:"),
        "{text}"
    );
    let row = text.lines().find(|line| line.starts_with("quick / read")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[3..], ["redb", "power", "rate", "1.00M", "900k", "0.900", "slower", "3e-7"]);
    assert!(text.contains("1 of 1 series changed; 0 without a change."), "{text}");
    let csv = history_csv(&history);
    let (head, row) = csv.trim_end().split_once('\n').unwrap();
    assert_eq!(head.split(',').count(), 20);
    let wanted = format!(
        "1,quick,1,read,redb,,power,ops_per_second,ops/s,higher,4,d,999997,slower,0.9,1000000,900000,{hash},b,0.0000003"
    );
    assert_eq!(row, wanted);
}

#[test]
fn each_figure_has_the_word_of_its_direction() {
    let entries: Vec<HistoryEntry> = (0..4).map(|run| entry(&format!("c{run}"), run, Some(&[5.0]))).collect();
    let mut history = History::new(&entries, &compared(), false);
    history.find(|_| Ok(vec![Shift { index: 2, before: 100.0, after: 120.0, p: 1e-9 }]));
    let words: Vec<(&str, &str)> =
        history.series.iter().map(|own| (own.figure_name(), own.word(&own.shifts()[0]))).collect();
    for wanted in
        [("rate", "faster"), ("p99", "slower"), ("cpu", "slower"), ("memory", "larger"), ("disk", "larger")]
    {
        assert!(words.contains(&wanted), "{words:?}");
    }
}

#[test]
fn a_series_that_is_too_short_says_so_and_has_no_number_of_changes() {
    let mut history = History::new(&[entry("a", 0, Some(&[1.0]))], &rate(), false);
    history.find(|_| Err("they have 1 commit, and change points need at least 4".to_string()));
    let text = history_text(&history, true);
    assert!(text.contains("0 of 1 series changed; 0 without a change."), "{text}");
    let line = "1 series was not analysed: they have 1 commit, and change points need at least 4.";
    assert!(text.contains(line), "{text}");
    let row = text.lines().find(|line| line.starts_with("quick / read")).unwrap();
    assert!(row.ends_with(" -"), "{row}");
}

#[test]
fn the_text_fits_120_columns() {
    let long = "x".repeat(200);
    let mut entries: Vec<HistoryEntry> =
        (0..4).map(|run| entry(&format!("{long}{run}"), run, Some(&[5.0]))).collect();
    for own in &mut entries {
        own.note = Some(long.clone());
        own.cells[0].options = vec![("cache".to_string(), long.clone())];
    }
    for line in
        history_text(&with_change(&entries), true).lines().filter(|line| !line.starts_with("First in"))
    {
        assert!(line.len() <= 120, "{} columns: {line}", line.len());
    }
}

#[test]
fn the_file_for_otava_has_a_number_in_each_cell_and_its_configuration_has_each_column() {
    let mut entries = vec![
        entry("a,\"b\"", 0, None),
        entry("=b", 1, Some(&[10.0])),
        entry("c", 2, None),
        entry("d", 3, Some(&[12.5])),
    ];
    entries
        .iter_mut()
        .for_each(|own| own.cells[0].options = vec![("page size".to_string(), "4,096".to_string())]);
    let history = History::new(
        &entries,
        &[&rate()[..], &figure("p50_ns").into_iter().collect::<Vec<_>>()].concat(),
        false,
    );
    let csv = otava_csv(&history);
    let lines: Vec<&str> = csv.lines().collect();
    let names = ["quick/read/redb(page_size=4_096)/power/rate", "quick/read/redb(page_size=4_096)/power/p50"];
    assert_eq!(lines[0], format!("time,commit,{},{}", names[0], names[1]));
    assert_eq!(
        lines[1], "2026-11-01T09:15:29Z,\"a,\"\"b\"\"\",10,795",
        "the first value stands for those before it"
    );
    assert_eq!(lines[2], "2026-11-02T09:15:29Z,\"'=b\",10,795");
    assert_eq!(lines[3], "2026-11-03T09:15:29Z,c,10,795", "the value before it stands for what is missing");
    assert_eq!(lines[4], "2026-11-04T09:15:29Z,d,12.5,795");
    assert_eq!((lines.len(), repeated(&history)), (5, 1));
    let wanted = format!(
        "tests:\n  kvdyno:\n    type: csv\n    file: history.csv\n    time_column: time\n    attributes: [commit]\n    metrics:\n\
         \x20     \"{}\":\n        direction: 1\n      \"{}\":\n        direction: -1\n",
        names[0], names[1]
    );
    assert_eq!(otava_config(&history), wanted);
}

#[test]
fn the_page_has_a_chart_of_each_series_with_its_change_marked() {
    let entries: Vec<HistoryEntry> =
        (0..4).map(|run| entry(&format!("c{run}"), run, Some(&[1e6 - run as f64]))).collect();
    let page = history_page(&with_change(&entries));
    let markup = markup(&page);
    let document = Document::parse(&markup).unwrap();
    let charts = elements(&document, "figure");
    assert_eq!(charts.len(), 1);
    assert!(text_of(charts[0]).starts_with("quick / read, redb, level power"), "{}", text_of(charts[0]));
    let tips: Vec<String> =
        charts[0].descendants().filter(|node| node.tag_name().name() == "title").map(text_of).collect();
    assert!(tips.contains(&"slower since c2: 1.00M to 900k, p 3e-7".to_string()), "{tips:?}");
    let red = "p 3e-7</title><path class=\"z\"";
    assert!(page.contains(red), "what became worse is red: {page}");
    assert!(tips.contains(&"c3, 2026-11-04T09:15:29Z: 1.00M".to_string()), "{tips:?}");
    assert!(
        elements(&document, "h3").iter().any(|title| text_of(*title).starts_with("First in c2")),
        "{page}"
    );
    let mut same = History::new(&entries, &compared(), false);
    same.find(|_| Ok(Vec::new()));
    let page = history_page(&same);
    assert!(page.contains("has a change.") && page.contains("Without a change: "), "{page}");
}

#[test]
fn hostile_strings_stay_text() {
    for evil in HOSTILE {
        let mut entries: Vec<HistoryEntry> =
            (0..4).map(|run| entry(&format!("{evil}{run}"), run, Some(&[1e6]))).collect();
        for own in &mut entries {
            own.note = Some(evil.to_string());
            own.run += evil;
            own.time = evil.to_string();
            own.tool_version = evil.to_string();
            own.conditions.machine.cpu_model = Some(evil.to_string());
            let cell = &mut own.cells[0];
            for text in [&mut cell.workload, &mut cell.phase, &mut cell.engine, &mut cell.level] {
                *text = evil.to_string();
            }
            cell.options = vec![(evil.to_string(), evil.to_string())];
        }
        let history = with_change(&read(&entries).entries);
        let page = history_page(&history);
        let markup = markup(&page);
        let document = Document::parse(&markup).unwrap_or_else(|error| panic!("{evil:?}: {error}"));
        assert_eq!(elements(&document, "script").len(), 1, "{evil:?}");
        for node in document.descendants() {
            assert!(
                !node.attributes().any(|own| own.name().starts_with("on") || own.name() == "src"),
                "{evil:?}"
            );
        }
        for text in [&page, &history_text(&history, true), &history_csv(&history), &otava_csv(&history)] {
            assert!(
                text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)),
                "{evil:?}: {text}"
            );
        }
        assert_eq!(otava_csv(&history).lines().count(), 5, "{evil:?}");
        assert_eq!(otava_config(&history).lines().count(), 9, "{evil:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let file = HistoryFile::read(&bytes);
        prop_assert!(file.whole_bytes <= bytes.len() as u64);
    }
}
