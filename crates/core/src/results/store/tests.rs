//! Tests of the results folder: crashes, damage, and errors.

use super::*;
use crate::results::fixture;
use crate::results::{Cause, SCHEMA, parse_record, parse_run};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A run of four trials and their records.
fn small_run() -> (Run, Vec<Record>) {
    let mut run = fixture::run();
    run.plan.trials.truncate(4);
    let records = run.plan.trials.iter().cloned().map(fixture::record).collect();
    (run, records)
}

/// A run whose trials are all saved.
fn saved_run(parent: &Path) -> (PathBuf, Vec<Record>) {
    let (run, records) = small_run();
    let mut folder = RunFolder::create(parent, &run).unwrap();
    for record in &records {
        folder.save(record).unwrap();
    }
    (folder.path().to_path_buf(), records)
}

fn ids(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.trial.id.clone()).collect()
}

#[test]
fn a_saved_run_loads_as_it_was() {
    let parent = tempfile::tempdir().unwrap();
    let (path, records) = saved_run(parent.path());
    let folder = RunFolder::open(&path).unwrap();
    assert_eq!(folder.run(), &small_run().0);
    assert_eq!(ids(&folder.finished().unwrap()), ids(&records));
    assert!(folder.finished().unwrap() == records, "a record changed on its way through the folder");
    assert!(folder.run().plan.trials.iter().all(|trial| folder.is_done(&trial.id)));
    assert!(folder.warnings().is_empty());
}

#[test]
fn a_cut_journal_loses_only_the_line_being_written() {
    let parent = tempfile::tempdir().unwrap();
    let (path, records) = saved_run(parent.path());
    let journal_path = path.join(JOURNAL_FILE);
    let journal = fs::read(&journal_path).unwrap();
    for cut in 0..=journal.len() {
        fs::write(&journal_path, &journal[..cut]).unwrap();
        let whole_lines = journal[..cut].iter().filter(|byte| **byte == b'\n').count();
        let mut folder = RunFolder::open(&path).unwrap();
        assert_eq!(ids(&folder.finished().unwrap()), ids(&records[..whole_lines]), "cut at byte {cut}");
        let mut pending = folder.run().plan.trials.clone();
        pending.retain(|trial| !folder.is_done(&trial.id));
        let pending: Vec<String> = pending.into_iter().map(|trial| trial.id).collect();
        assert_eq!(pending, ids(&records[whole_lines..]), "cut at byte {cut}");
        // Each save waits for the disk, so the run is continued after only some of the cuts.
        if cut % 7 != 0 && cut != journal.len() {
            continue;
        }
        for record in &records[whole_lines..] {
            folder.save(record).unwrap();
        }
        drop(folder);
        assert!(
            fs::read(&journal_path).unwrap() == journal,
            "cut at byte {cut}: the journal is not complete again"
        );
    }
}

#[test]
fn bytes_after_the_journal_lose_nothing_acknowledged() {
    let parent = tempfile::tempdir().unwrap();
    let (path, records) = saved_run(parent.path());
    let journal_path = path.join(JOURNAL_FILE);
    let journal = fs::read(&journal_path).unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(40));
    runner
        .run(&proptest::collection::vec(any::<u8>(), 0..200), |tail| {
            fs::write(&journal_path, [journal.as_slice(), &tail].concat()).unwrap();
            let folder = RunFolder::resume(&path).unwrap();
            prop_assert_eq!(ids(&folder.finished().unwrap()), ids(&records));
            prop_assert!(fs::read(&journal_path).unwrap() == journal, "the torn end is still there");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_record_that_is_missing_or_damaged_counts_as_not_done() {
    let parent = tempfile::tempdir().unwrap();
    let (path, records) = saved_run(parent.path());
    let record_path = path.join(TRIALS_FOLDER).join(&records[1].trial.id).join(RECORD_FILE);
    let whole = fs::read(&record_path).unwrap();
    let damages: [&dyn Fn(); 3] = [
        &|| fs::write(&record_path, &whole[..whole.len() / 2]).unwrap(),
        &|| fs::write(&record_path, [&whole[..], b" "].concat()).unwrap(),
        &|| fs::remove_file(&record_path).unwrap(),
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        let folder = RunFolder::open(&path).unwrap();
        assert!(!folder.is_done(&records[1].trial.id), "damage {number}");
        assert_eq!(folder.finished().unwrap().len(), 3, "damage {number}");
        assert_eq!(folder.warnings().len(), 1, "damage {number}");
    }
    RunFolder::open(&path).unwrap().save(&records[1]).unwrap();
    assert_eq!(RunFolder::open(&path).unwrap().finished().unwrap().len(), 4);
}

#[test]
fn the_remains_of_a_killed_save_are_ignored() {
    let parent = tempfile::tempdir().unwrap();
    let (run, records) = small_run();
    let mut folder = RunFolder::create(parent.path(), &run).unwrap();
    folder.save(&records[0]).unwrap();
    let path = folder.path().to_path_buf();
    drop(folder);
    // Killed while writing the record, and killed between the record and its journal line.
    let second = path.join(TRIALS_FOLDER).join(&records[1].trial.id);
    fs::create_dir(&second).unwrap();
    fs::write(second.join("record.json.unfinished"), b"{\"schema\":").unwrap();
    let third = path.join(TRIALS_FOLDER).join(&records[2].trial.id);
    fs::create_dir(&third).unwrap();
    fs::write(third.join(RECORD_FILE), serde_json::to_vec(&records[2]).unwrap()).unwrap();
    let mut folder = RunFolder::resume(&path).unwrap();
    assert_eq!(ids(&folder.finished().unwrap()), ids(&records[..1]));
    for record in &records[1..] {
        folder.save(record).unwrap();
    }
    assert_eq!(RunFolder::open(&path).unwrap().finished().unwrap().len(), 4);
}

#[test]
fn refuses_a_second_record_of_a_trial_and_one_that_was_not_planned() {
    let parent = tempfile::tempdir().unwrap();
    let (run, records) = small_run();
    let mut folder = RunFolder::create(parent.path(), &run).unwrap();
    folder.save(&records[0]).unwrap();
    assert!(matches!(folder.save(&records[0]), Err(StoreError::AlreadyDone(_))));
    let mut stranger = records[1].clone();
    stranger.trial.id = "../../stranger".to_string();
    assert!(matches!(folder.save(&stranger), Err(StoreError::UnknownTrial(_))));
    assert_eq!(folder.finished().unwrap().len(), 1);
}

#[test]
fn an_interrupted_trial_is_kept_and_measured_again() {
    let parent = tempfile::tempdir().unwrap();
    let (run, records) = small_run();
    let mut folder = RunFolder::create(parent.path(), &run).unwrap();
    let mut interrupted = records[0].clone();
    interrupted.outcome = Outcome::Failed { cause: Cause::Interrupted, text: "Ctrl-C".to_string() };
    folder.save(&interrupted).unwrap();
    assert!(!folder.is_done(&interrupted.trial.id));
    assert_eq!(folder.finished().unwrap().len(), 1);
    folder.save(&records[0]).unwrap();
    assert!(folder.is_done(&interrupted.trial.id));
    let path = folder.path().to_path_buf();
    assert_eq!(RunFolder::open(&path).unwrap().finished().unwrap()[0].outcome, records[0].outcome);
}

#[test]
fn refuses_a_record_that_cannot_be_read_back() {
    let parent = tempfile::tempdir().unwrap();
    let (run, mut records) = small_run();
    let mut folder = RunFolder::create(parent.path(), &run).unwrap();
    records[0].phases[0].harness_share = f64::NAN;
    let error = folder.save(&records[0]).unwrap_err();
    assert!(matches!(error, StoreError::NotStorable { .. }), "{error}");
    assert!(!folder.is_done(&records[0].trial.id));
}

#[test]
fn only_one_process_writes_to_a_run() {
    let parent = tempfile::tempdir().unwrap();
    let (run, records) = small_run();
    let mut folder = RunFolder::create(parent.path(), &run).unwrap();
    assert!(matches!(RunFolder::resume(folder.path()), Err(StoreError::Locked(_))));
    let mut reader = RunFolder::open(folder.path()).unwrap();
    assert!(matches!(reader.save(&records[0]), Err(StoreError::Locked(_))));
    folder.save(&records[0]).unwrap();
    drop(folder);
    // The reader reads the journal again before it writes.
    assert!(matches!(reader.save(&records[0]), Err(StoreError::AlreadyDone(_))));
    reader.save(&records[1]).unwrap();
}

#[test]
fn a_lock_that_is_about_to_go_is_waited_for() {
    let resumed = || {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(parent.path(), &small_run().0).unwrap();
        let path = folder.path().to_path_buf();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(5 * PAUSE);
                drop(folder);
            });
            RunFolder::resume(&path).is_ok() && begun.elapsed() >= 5 * PAUSE
        })
    };
    // On a busy machine it may be held for too long.
    assert!((0..10).any(|_| resumed()));
}

#[test]
fn refuses_a_folder_that_exists_and_names_that_are_paths() {
    let parent = tempfile::tempdir().unwrap();
    let (mut run, _) = small_run();
    RunFolder::create(parent.path(), &run).unwrap();
    assert!(matches!(RunFolder::create(parent.path(), &run), Err(StoreError::Exists(_))));
    run.id = "../outside".to_string();
    assert!(matches!(RunFolder::create(parent.path(), &run), Err(StoreError::BadName(_))));
    run.id = "inside".to_string();
    run.plan.trials[1].id = run.plan.trials[0].id.clone();
    assert!(matches!(RunFolder::create(parent.path(), &run), Err(StoreError::SameName(_))));
    assert!(matches!(RunFolder::open(parent.path()), Err(StoreError::NotResults(_))));
}

#[test]
fn finds_the_newest_run() {
    let parent = tempfile::tempdir().unwrap();
    assert_eq!(newest(parent.path()).unwrap(), None);
    let (mut run, _) = small_run();
    let found = || newest(parent.path()).unwrap().unwrap().file_name().unwrap().to_os_string();
    // The clock was ahead, and then too late.
    for id in
        ["2026-11-20T09-15-29-quick-a1b2", "2030-11-21T00-00-00-quick-0000", "2025-12-31T23-59-59-quick-ffff"]
    {
        run.id = id.to_string();
        RunFolder::create(parent.path(), &run).unwrap();
        assert_eq!(found(), id);
    }
    fs::create_dir(parent.path().join("zzz-not-a-run")).unwrap();
    assert_eq!(found(), "2025-12-31T23-59-59-quick-ffff");
    fs::remove_dir_all(parent.path().join("2025-12-31T23-59-59-quick-ffff")).unwrap();
    assert_eq!(found(), "2030-11-21T00-00-00-quick-0000");
    // A run that was copied from a folder with more runs; the next one that is made here is newer.
    let copied = "2024-01-01T00-00-00-quick-0001";
    run.id = copied.into();
    let other = tempfile::tempdir().unwrap();
    fs::rename(RunFolder::create(other.path(), &run).unwrap().path(), parent.path().join(copied)).unwrap();
    fs::write(parent.path().join(copied).join(ORDER_FILE), "71\n").unwrap();
    run.id = "2026-11-20T09-15-30-quick-a1b2".into();
    RunFolder::create(parent.path(), &run).unwrap();
    assert_eq!(found(), "2026-11-20T09-15-30-quick-a1b2");
    assert_eq!(fs::read_to_string(parent.path().join(&run.id).join(ORDER_FILE)).unwrap(), "72\n");
}

#[test]
fn the_newest_run_of_older_versions_is_that_of_the_latest_date() {
    let parent = tempfile::tempdir().unwrap();
    let (mut run, _) = small_run();
    let mut create = |id: &str| {
        run.id = id.to_string();
        let folder = RunFolder::create(parent.path(), &run).unwrap();
        fs::remove_file(folder.path().join(ORDER_FILE)).unwrap();
    };
    for id in
        ["2026-11-20T09-15-29-quick-a1b2", "2026-11-21T00-00-00-quick-0000", "2025-12-31T23-59-59-quick-ffff"]
    {
        create(id);
    }
    let found = || newest(parent.path()).unwrap().unwrap().file_name().unwrap().to_os_string();
    assert_eq!(found(), "2026-11-21T00-00-00-quick-0000");
    // In the same second, the suffix of a name is random.
    let first = fs::File::open(parent.path().join("2026-11-21T00-00-00-quick-0000").join(RUN_FILE)).unwrap();
    for (id, after) in [("2026-11-21T00-00-00-quick-aaaa", 2), ("2026-11-21T00-00-00-quick-ffff", 1)] {
        create(id);
        let file = fs::File::options().write(true).open(parent.path().join(id).join(RUN_FILE)).unwrap();
        let time = first.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(after);
        file.set_modified(time).unwrap();
    }
    assert_eq!(found(), "2026-11-21T00-00-00-quick-aaaa");
    // A file that is damaged counts as none.
    for damaged in ["", "first", "-1", "99999999999999999999999999999999999"] {
        let path = parent.path().join("2025-12-31T23-59-59-quick-ffff").join(ORDER_FILE);
        fs::write(path, damaged).unwrap();
        assert_eq!(found(), "2026-11-21T00-00-00-quick-aaaa", "{damaged}");
    }
    assert!(newest(&parent.path().join("absent")).is_err());
}

#[test]
fn runs_are_sorted_by_their_age_whatever_the_clock_was() {
    let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut run, _) = small_run();
    let mut made = |parent: &Path, started_at: &str, suffix: u16| {
        (run.started_at, run.id) =
            (started_at.into(), crate::results::run_id(started_at, "quick", "", suffix));
        RunFolder::create(parent, &run).unwrap()
    };
    let mut runs = vec![
        made(mine.path(), "2026-11-20T09:00:00Z", 1),
        // The clock was ahead.
        made(mine.path(), "2031-01-01T00:00:00Z", 2),
        made(mine.path(), "2026-11-20T11:00:00Z", 3),
        made(other.path(), "2026-11-20T10:00:00Z", 4),
        made(other.path(), "2026-11-20T12:00:00Z", 5),
    ];
    runs.rotate_left(2);
    sort_by_age(&mut runs);
    let suffixes: Vec<&str> = runs.iter().map(|folder| folder.run().id.rsplit('-').next().unwrap()).collect();
    assert_eq!(suffixes, ["0001", "0004", "0002", "0003", "0005"]);
}

#[test]
fn runs_of_one_second_have_folders_of_their_own_also_when_their_random_suffixes_are_equal() {
    let parent = tempfile::tempdir().unwrap();
    let (mut run, _) = small_run();
    run.id = "2026-11-21T00-00-00-quick-2301".into();
    let created = |suffixes: &[u16]| {
        let folder = RunFolder::create_distinct(parent.path(), run.clone(), suffixes.iter().copied())?;
        Ok::<_, StoreError>((folder.path().file_name().unwrap().to_owned(), folder.run().id.clone()))
    };
    assert_eq!(created(&[7]).unwrap().1, "2026-11-21T00-00-00-quick-2301");
    let (name, id) = created(&[0x2301, 7, 8]).unwrap();
    assert_eq!((name.to_str(), id.as_str()), (Some(id.as_str()), "2026-11-21T00-00-00-quick-0007"));
    assert_eq!(RunFolder::open(&parent.path().join(&id)).unwrap().run().id, id);
    assert!(matches!(created(&[7, 0x2301]), Err(StoreError::Exists(_))));
}

#[test]
fn a_newer_schema_is_named_as_such() {
    let newer = json!({ "schema": SCHEMA + 1, "phases": "in another shape" });
    let bytes = serde_json::to_vec(&newer).unwrap();
    let errors = [parse_record(&bytes).unwrap_err(), parse_run(&bytes).unwrap_err()];
    for error in errors {
        assert_eq!(error, LoadError::NewerSchema { found: SCHEMA + 1 });
        assert!(error.to_string().contains("newer"), "{error}");
    }
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join(RUN_FILE), &bytes).unwrap();
    let error = RunFolder::open(parent.path()).unwrap_err();
    assert!(error.to_string().contains("schema 2"), "{error}");
}

/// Replaces every place in a JSON text in turn by values of the wrong type and size.
fn corrupt(value: &Value, seed: &mut u64) -> Value {
    let wrong =
        [json!(null), json!(-1), json!(1e308), json!(u64::MAX), json!("\u{1b}[2J"), json!([]), json!({})];
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let roll = (*seed >> 33) as usize;
    if roll.is_multiple_of(40) {
        return wrong[roll / 40 % wrong.len()].clone();
    }
    match value {
        Value::Array(items) => items.iter().map(|item| corrupt(item, seed)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), corrupt(field, seed))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn hostile_records_are_refused_or_loaded_but_never_panic() {
    let (run, records) = small_run();
    let whole = serde_json::to_value(&records[2]).unwrap();
    let mut seed = 99;
    let mut loaded = Vec::new();
    for _ in 0..300 {
        let bytes = serde_json::to_vec(&corrupt(&whole, &mut seed)).unwrap();
        if let Ok(record) = parse_record(&bytes) {
            crate::results::sane_record(&record);
            loaded.push(record);
        }
    }
    crate::results::summary::Summary::new(&run, loaded);
    for bytes in
        [&b""[..], b"{", b"[]", b"null", b"{\"schema\":-1}", b"{\"schema\":0}", &[b'['; 100_000], &[0xff; 9]]
    {
        assert!(parse_record(bytes).is_err());
        assert!(parse_run(bytes).is_err());
    }
}

#[test]
fn every_error_includes_advice() {
    let path = PathBuf::from("results/run");
    let io_error = io::Error::new(io::ErrorKind::StorageFull, "no space left");
    let errors = [
        StoreError::Io { doing: "write", path: path.clone(), source: io_error },
        StoreError::Exists(path.clone()),
        StoreError::NotResults(path.clone()),
        StoreError::Locked(path.clone()),
        StoreError::Unreadable { path, reason: LoadError::NewerSchema { found: 2 } },
        StoreError::BadName("../x".to_string()),
        StoreError::UnknownTrial("x".to_string()),
        StoreError::AlreadyDone("x".to_string()),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains(": "), "no advice after the colon: {text}");
        assert!(!text.contains('\n') && text.is_ascii(), "{text}");
    }
}
