//! Tests of `kvdyno history`: what is added is found again, and where a step is planted.

use super::*;
use kvdyno_core::results::figures::{RATE, figure};
use kvdyno_core::results::fixture;
use kvdyno_core::results::store::RunFolder;

/// Writes a run of two engines whose rates are those of the fixture, multiplied; `kept` records of its trials are there.
fn measured(place: &Path, number: usize, speed: f64, kept: usize) -> PathBuf {
    let mut run = fixture::run();
    run.id = format!("2026-11-20T09-15-29-quick-{number}");
    run.plan.trials.retain(|trial| ["redb", "fjall"].contains(&trial.engine.as_str()));
    let mut folder = RunFolder::create(place, &run).unwrap();
    for trial in run.plan.trials.iter().take(kept) {
        let mut record = fixture::record(trial.clone());
        for phase in &mut record.phases {
            phase.elapsed_ns = (phase.elapsed_ns as f64 / speed) as u64;
        }
        folder.save(&record).unwrap();
    }
    folder.path().to_path_buf()
}

fn adding(folder: &Path, run: &Path, commit: &str) -> Result<u8, CliError> {
    let (folder, run, commit) = (folder.to_path_buf(), run.to_path_buf(), commit.to_string());
    add(&AddArgs { folder, run, commit, time: None, note: None })
}

fn showing(folder: &Path) -> ShowArgs {
    ShowArgs {
        folder: folder.to_path_buf(),
        figures: Vec::new(),
        full: false,
        min_change: 0.0,
        rules: "kvdyno".to_string(),
        machine: None,
        join: false,
        format: "text".to_string(),
        html: None,
    }
}

/// Noise of about 1 %, the same in each run of the test.
fn noise(at: usize) -> f64 {
    1.0 + ((at * 7919 + 13) % 101) as f64 / 101.0 / 50.0 - 0.01
}

/// A history of these rates, one for each commit, from the line of a run.
fn history_of(rates: &[f64], change: impl Fn(usize, &mut HistoryEntry)) -> Vec<HistoryEntry> {
    let summary = Summary::new(&fixture::run(), fixture::records());
    let base =
        HistoryEntry::of(&fixture::run(), &summary, String::new(), "2026-11-20T09:15:29Z".to_string(), None);
    let of = |(at, rate): (usize, &f64)| {
        let mut entry = base.clone();
        (entry.commit, entry.run) = (format!("c{at}"), format!("run-{at}"));
        entry.cells.retain(|cell| cell.engine == "redb" && cell.phase == "read");
        entry.cells[0].figures.insert(RATE.to_string(), vec![*rate]);
        change(at, &mut entry);
        entry
    };
    rates.iter().enumerate().map(of).collect()
}

/// The rows of changes in CSV: the first commit, the commit before it, the word and the ratio.
fn changed(
    entries: &[HistoryEntry],
    is_joined: bool,
    options: &Options,
) -> Vec<(String, String, String, f64)> {
    let rate = figure(RATE).unwrap();
    let mut history = History::new(entries, &[rate], is_joined);
    history.find(|values| found(values, options));
    let rows: Vec<Vec<String>> =
        history_csv(&history).lines().skip(1).map(|row| row.split(',').map(String::from).collect()).collect();
    let is_change = |row: &&Vec<String>| !row[13].is_empty();
    let part =
        |row: &Vec<String>| (row[17].clone(), row[18].clone(), row[13].clone(), row[14].parse().unwrap());
    rows.iter().filter(is_change).map(part).collect()
}

#[test]
fn a_step_of_5_percent_is_named_with_its_first_commit() {
    let rates: Vec<f64> = (0..40).map(|at| if at < 25 { 1e6 } else { 0.95e6 } * noise(at)).collect();
    let found = changed(&history_of(&rates, |_, _| {}), false, &Options::default());
    let [(first, before, word, ratio)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.as_str(), before.as_str(), word.as_str()), ("c25", "c24", "slower"));
    assert!((ratio - 0.95).abs() < 0.005, "{ratio}");
    let small = Options { magnitude: 0.1, ..Options::default() };
    assert_eq!(changed(&history_of(&rates, |_, _| {}), false, &small), [], "--min-change 10%");
}

#[test]
fn a_spike_is_no_change_and_is_one_by_the_rules_of_otava() {
    let rates: Vec<f64> = (0..40).map(|at| if at == 20 { 0.5e6 } else { 1e6 } * noise(at)).collect();
    let entries = history_of(&rates, |_, _| {});
    assert_eq!(changed(&entries, false, &Options::default()), []);
    // At the end nothing shows yet whether it is one; Otava takes it for a change at once.
    let until_spike = &entries[..21];
    assert_eq!(changed(until_spike, false, &Options::default()), []);
    let of_otava = changed(until_spike, false, &Options::otava());
    assert!(of_otava.iter().any(|(first, ..)| first == "c20"), "{of_otava:?}");
}

#[test]
fn another_machine_is_no_change_unless_it_is_joined() {
    let rates: Vec<f64> = (0..40).map(|at| if at < 20 { 1e6 } else { 2e6 } * noise(at)).collect();
    let entries = history_of(&rates, |at, entry| {
        if at >= 20 {
            entry.conditions.machine.cpu_model = Some("Another CPU".to_string());
        }
    });
    assert_eq!(changed(&entries, false, &Options::default()), []);
    let joined = changed(&entries, true, &Options::default());
    let firsts: Vec<&str> = joined.iter().map(|(first, ..)| first.as_str()).collect();
    assert_eq!(firsts, ["c20"]);
}

#[test]
fn a_commit_without_the_figure_is_not_in_the_series() {
    let rates: Vec<f64> = (0..40).map(|at| if at < 25 { 1e6 } else { 0.9e6 } * noise(at)).collect();
    let entries = history_of(&rates, |at, entry| {
        if (23..27).contains(&at) {
            entry.cells.clear();
        }
    });
    let found = changed(&entries, false, &Options::default());
    assert_eq!((found[0].0.as_str(), found[0].1.as_str(), found.len()), ("c27", "c22", 1), "{found:?}");
}

#[test]
fn runs_are_added_line_by_line_and_a_torn_end_makes_room_for_the_next() {
    let place = tempfile::tempdir().unwrap();
    let (folder, runs) = (place.path().join("speed"), place.path().join("runs"));
    let path = folder.join(FILE);
    for number in 0..3 {
        adding(&folder, &measured(&runs, number, 1.0, 6), &format!("c{number}")).unwrap();
    }
    let whole = fs::read(&path).unwrap();
    let lines = HistoryFile::read(&whole).entries;
    assert_eq!(lines.iter().map(|entry| entry.commit.as_str()).collect::<Vec<_>>(), ["c0", "c1", "c2"]);
    assert_eq!((lines[0].time.as_str(), lines[0].cells.len()), ("2026-11-20T09:15:29Z", 8));
    // A crash while the third was written.
    let third = whole.len() - lines[2].line().len();
    fs::write(&path, &whole[..third + 50]).unwrap();
    adding(&folder, &measured(&runs, 3, 1.0, 6), "c3").unwrap();
    let after = fs::read(&path).unwrap();
    assert_eq!(after[..third], whole[..third], "what was there is still there");
    let file = HistoryFile::read(&after);
    assert_eq!(
        file.entries.iter().map(|entry| entry.commit.as_str()).collect::<Vec<_>>(),
        ["c0", "c1", "c3"]
    );
    assert_eq!(file.warnings, Vec::<String>::new());
    // A last line without its newline is whole, and the next begins a line of its own.
    fs::write(&path, &after[..after.len() - 1]).unwrap();
    adding(&folder, &measured(&runs, 4, 1.0, 6), "c4").unwrap();
    assert_eq!(HistoryFile::read(&fs::read(&path).unwrap()).entries.len(), 4);
    let page = place.path().join("history.html");
    let args = ShowArgs { html: Some(page.clone()), ..showing(&folder) };
    assert_eq!(show(&args).unwrap(), 0);
    assert!(fs::read_to_string(&page).unwrap().contains("quick / read, redb, level power"));
}

#[test]
fn what_cannot_be_added_or_shown_is_refused_with_one_line() {
    let place = tempfile::tempdir().unwrap();
    let (folder, runs) = (place.path().join("speed"), place.path().join("runs"));
    let refused = |result: Result<u8, CliError>, wanted: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(wanted) && text.contains("\nhint: "), "{wanted}: {text}");
    };
    refused(show(&showing(&folder)), "has no history.jsonl: it is no history");
    let open = measured(&runs, 0, 1.0, 5);
    refused(adding(&folder, &open, "c0"), "is not finished: 1 trial has no record");
    refused(adding(&folder, &place.path().join("nowhere"), "c0"), "nowhere does not exist");
    assert!(!folder.exists(), "nothing was created");
    let run = measured(&runs, 1, 1.0, 6);
    adding(&folder, &run, "c1").unwrap();
    let before = fs::read(folder.join(FILE)).unwrap();
    for commit in ["c1", "c2"] {
        refused(
            adding(&folder, &run, commit),
            "the history has the run 2026-11-20T09-15-29-quick-1 already, of commit c1",
        );
    }
    assert_eq!(fs::read(folder.join(FILE)).unwrap(), before);
    let broken = place.path().join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join(FILE), "{}\n").unwrap();
    refused(show(&showing(&broken)), "has no line that can be read");
    let other = ShowArgs { machine: Some(2), ..showing(&folder) };
    assert!(show(&other).unwrap_err().to_string().contains("--machine 2: the history has 1 machine"));
}

#[test]
fn a_run_in_which_all_failed_has_nothing_to_add() {
    let place = tempfile::tempdir().unwrap();
    let mut run = fixture::run();
    run.plan.trials.retain(|trial| trial.engine == "redb");
    let mut results = RunFolder::create(place.path(), &run).unwrap();
    for trial in &run.plan.trials {
        let outcome = kvdyno_core::results::Outcome::Crashed {
            signal: "SIGSEGV".to_string(),
            stderr: Vec::new(),
            suspects: None,
        };
        let record = kvdyno_core::results::Record::failed(trial.clone(), run.started_at.clone(), outcome);
        results.save(&record).unwrap();
    }
    let folder = place.path().join("speed");
    let text = adding(&folder, results.path(), "c0").unwrap_err().to_string();
    assert!(text.contains("no engine of the run") && text.contains("SIGSEGV"), "{text}");
    assert!(!folder.exists(), "nothing was created");
}

#[test]
fn too_few_commits_say_how_many_are_needed() {
    let error = found(&[1.0, 2.0, 3.0], &Options::default()).unwrap_err();
    assert_eq!(error, "they have 3 commits, and change points need at least 4");
}

#[test]
fn words_times_and_percentages_have_their_ranges() {
    assert!(words("").is_err() && words(" ").is_err() && words(&"x".repeat(201)).is_err());
    assert_eq!(words("v1.2").as_deref(), Ok("v1.2"));
    assert_eq!(time("2026-11-20T10:15:29+01:00").as_deref(), Ok("2026-11-20T09:15:29Z"));
    assert!(time("yesterday").unwrap_err().contains("--format=%cI"));
    assert_eq!((part("2%"), part("0.02"), part("0%")), (Ok(0.02), Ok(0.02), Ok(0.0)));
    assert!(part("-1%").is_err() && part("x").is_err() && part("nan").is_err());
}
