//! Checks specific to this driver; `kvdyno prove --only rules` checks the rest.

#[path = "../memory/drive.rs"]
mod drive;

use drive::{Bench, Want, delete, put, scan};
use kvdyno_driver::abi::*;
use persy::{ByteVec, Config, ValueMode};
use std::sync::atomic::{AtomicBool, Ordering};

static TABLE: kv_driver = kvdyno_driver::table::<super::Persy>();

/// Rows that each commit rewrites, all with its number.
const ROWS: u32 = 40;
const COMMITS: u32 = 300;

fn key(number: u32) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

/// One group of puts, and of rows next to them that are added and removed, so that index pages are split and joined.
fn commit(commit: u32) -> Vec<drive::Ask> {
    let rows = (0..ROWS).map(|number| put(&key(number), &commit.to_le_bytes()));
    let others = (ROWS..8 * ROWS).map(|number| match commit % 2 {
        0 => put(&key(number), &[0; 40]),
        _ => delete(&key(number)),
    });
    let mut all: Vec<_> = rows.chain(others).collect();
    let last = all.len() - 1;
    all[..last].iter_mut().for_each(|ask| ask.flags |= KV_JOIN);
    all
}

#[test]
fn a_scan_beside_commits_sees_all_rows_of_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    // At level power a transaction stays prepared for as long as a sync takes: then the engine's own reads are wrong.
    let want = Want {
        path: folder.path(),
        level: KV_POWER,
        flags: KV_CREATE,
        keyspaces: 1,
        indexes: &[],
        option: None,
    };
    let bench = Bench::open(&TABLE, &want).unwrap_or_else(|(_, text)| panic!("{text}"));
    let done = AtomicBool::new(false);
    let write = |number| {
        let ran = bench.session().run(&commit(number));
        let is_done = ran.answers.iter().all(|answer| answer.status == KV_OK);
        (!is_done).then(|| format!("commit {number}: {}", ran.error))
    };
    assert_eq!(write(0), None);
    let (wrong, failed) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut session = bench.session();
            let mut wrong = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let answer = session.one(scan(&key(0), &key(ROWS)));
                let rows = answer.pairs();
                let is_whole =
                    rows.len() == ROWS as usize && rows.iter().all(|(_, value)| *value == rows[0].1);
                if answer.status != KV_OK || !is_whole {
                    wrong.push(format!("status {}, {} rows: {rows:?}", answer.status, rows.len()));
                }
            }
            wrong
        });
        let failed: Vec<_> = (1..=COMMITS).filter_map(write).collect();
        done.store(true, Ordering::Relaxed);
        (reader.join().unwrap(), failed)
    });
    assert!(failed.is_empty(), "{failed:?}");
    assert!(wrong.is_empty(), "{} scans were wrong, the first: {}", wrong.len(), wrong[0]);
    bench.close();
}

/// The declared defect of the engine, without threads; if this fails, the linked version no longer has it.
#[test]
fn a_snapshot_taken_beside_a_prepared_transaction_shows_half_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.persy");
    let database = persy::Persy::open_or_create_with(file, Config::new(), |_| Ok(())).unwrap();
    let bytes = |text: &str| ByteVec::from(text.as_bytes());
    let mut transaction = database.begin().unwrap();
    transaction.create_index::<ByteVec, ByteVec>("rows", ValueMode::Replace).unwrap();
    transaction.put("rows", bytes("key"), bytes("old")).unwrap();
    transaction.commit().unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.put("rows", bytes("key"), bytes("new")).unwrap();
    let prepared = transaction.prepare().unwrap();
    let snapshot = database.snapshot().unwrap();
    let read = || snapshot.one::<ByteVec, ByteVec>("rows", &bytes("key")).unwrap().unwrap().to_vec();
    let before = read();
    prepared.commit().unwrap();
    assert_eq!((&before[..], &read()[..]), (&b"old"[..], &b"new"[..]));
}

#[test]
fn tells_the_version_that_is_locked() {
    let lock = include_str!("../../Cargo.lock");
    assert!(lock.contains(&format!("name = \"persy\"\nversion = \"{}\"\n", super::VERSION)));
    assert!(include_str!("engine.toml").contains(&format!("version = \"{}\"", super::VERSION)));
}
