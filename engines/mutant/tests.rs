//! Each fault really occurs, and the model test that finds nothing wrong with memory-btree detects each of them.

#![allow(unsafe_code, reason = "it calls the table as the core does")]

#[path = "../memory/drive.rs"]
mod drive;
#[path = "../memory/model.rs"]
mod model;

use super::*;
use drive::*;
use kvdyno_driver::abi::*;
use model::{Trial, hold};
use std::ffi::CStr;

fn table(fault: &str) -> &'static kv_driver {
    MUTANTS.iter().find(|(name, _)| *name == fault).map(|(_, table)| *table).unwrap()
}

/// The rows of keyspace 0 are entered in keyspace 1 under their first two bytes.
const INDEX: kv_index = kv_index { keyspace: 0, index_keyspace: 1, from: 0, length: 2, clustering: 0 };

fn open(fault: &str, folder: &Path, flags: u32) -> Bench {
    let indexes = if fault == "index-row-lost" { &[INDEX][..] } else { &[] };
    let want = Want { path: folder, level: KV_NONE, flags, keyspaces: 2, indexes, option: None };
    Bench::open(table(fault), &want).unwrap_or_else(|(_, text)| panic!("{fault}: {text}"))
}

/// Opens a mutant and runs `scene` until it reports that the fault has shown.
fn shows(fault: &str, mut scene: impl FnMut(&mut Drive<'_>, u64) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let bench = open(fault, folder.path(), KV_CREATE);
    let mut session = bench.session();
    let has_shown = (0..20_000).any(|round| scene(&mut session, round));
    drop(session);
    bench.close();
    assert!(has_shown, "{fault} did not show");
}

fn key(number: u64) -> [u8; 8] {
    // Even numbers, so that the key with the other last bit is unused.
    (number * 2).to_be_bytes()
}

fn value(number: u64, version: u64) -> Vec<u8> {
    Random(number * 1000 + version + 1).bytes(100)
}

/// Gets rows that were put twice, until one is wrong in the way that `is_fault` checks (row, answer).
fn spoils_gets(fault: &str, is_fault: impl Fn(u64, &Reply) -> bool) {
    shows(fault, |session, round| {
        let number = round % 16;
        if round < 32 {
            session.one(put(&key(number), &value(number, round / 16)));
            return false;
        }
        let answer = session.one(get(&key(number)));
        if answer.status == KV_OK && answer.bytes == value(number, 1) {
            return false;
        }
        assert!(is_fault(number, &answer), "{fault}: row {number}: {answer:?}");
        true
    });
}

fn ones(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn the_faults_of_gets_show() {
    spoils_gets("stale-read", |number, answer| answer.bytes == value(number, 0));
    spoils_gets("bit-flip", |number, answer| ones(&answer.bytes, &value(number, 1)) == 1);
    for fault in ["swapped-values", "cache-swaps"] {
        spoils_gets(fault, |number, answer| answer.bytes == value(number + 1, 1));
    }
    spoils_gets("truncated-value", |number, answer| answer.bytes == value(number, 1)[..50]);
    spoils_gets("zero-page", |_, answer| answer.bytes == [0; 100]);
    spoils_gets("get-fails", |_, answer| answer.status == KV_ERROR);
    spoils_gets("miss-for-present", |_, answer| answer.status == KV_NOT_FOUND);
    spoils_gets("previous-campaign", |number, answer| {
        let right = value(number, 1);
        answer.bytes[..4] != right[..4]
            && answer.bytes[4..24] == right[4..24]
            && answer.bytes[24..] != right[24..]
    });
    shows("wrong-miss", |session, _| {
        let answer = session.one(get(b"absent"));
        answer.status == KV_OK && answer.bytes.is_empty()
    });
    shows("dangling-buffer", |session, round| {
        session.one(put(&key(round), &value(round, 0)));
        let ran = session.run(&[get(&key(round)), get(&key(0))]);
        round > 0 && ran.answers[0].bytes == value(0, 0)
    });
}

#[test]
fn the_faults_of_writes_show() {
    shows("lost-update", |session, round| {
        let before = session.one(get(b"k"));
        let ran = session.one(put(b"k", &value(round, 0)));
        ran.status == KV_OK && before.status == KV_OK && session.one(get(b"k")).bytes == before.bytes
    });
    shows("phantom-put", |session, round| {
        let ran = session.one(put(&key(round), b"v"));
        ran.status == KV_OK && session.one(get(&key(round))).status == KV_NOT_FOUND
    });
    shows("wrong-key", |session, round| {
        session.one(put(&key(round), b"v"));
        let mut other = key(round);
        other[7] ^= 1;
        session.one(get(&key(round))).status == KV_NOT_FOUND && session.one(get(&other)).bytes == b"v"
    });
    shows("error-swallowed", |session, _| {
        let large = vec![b'k'; 1025];
        session.one(put(&large, b"v")).status == KV_OK && session.one(get(&large)).status == KV_NOT_FOUND
    });
    shows("error-swallowed", |session, round| {
        let ran = session.one(put(&key(round), b"v"));
        ran.status == KV_OK && session.one(get(&key(round))).status == KV_NOT_FOUND
    });
    shows("new-overwrites", |session, round| {
        session.one(put(&key(round), b"old"));
        let ran = session.one(put(&key(round), b"new").flags(KV_NEW));
        ran.status == KV_OK && session.one(get(&key(round))).bytes == b"new"
    });
    shows("delete-noop", |session, round| {
        session.one(put(&key(round), b"v"));
        session.one(delete(&key(round))).status == KV_OK && session.one(get(&key(round))).bytes == b"v"
    });
    shows("ghost-after-delete", |session, round| {
        session.one(put(&key(round), b"v"));
        session.one(delete(&key(round)));
        assert_eq!(session.one(get(&key(round))).status, KV_NOT_FOUND);
        (0..round).any(|number| session.one(get(&key(number))).bytes == b"v")
    });
    shows("merge-wrong", |session, round| {
        session.one(merge(&key(round), &3u64.to_le_bytes()));
        session.one(get(&key(round))).bytes == 6u64.to_le_bytes()
    });
}

#[test]
fn the_faults_of_keyspaces_show() {
    let within = |keyspace: u16, ask: Ask| Ask { keyspace, ..ask };
    shows("keyspace-mixed", |session, round| {
        session.one(within(1, put(&key(round), b"v")));
        session.one(get(&key(round))).status == KV_OK
    });
    shows("index-row-lost", |session, round| {
        session.one(put(&key(round), b"value"));
        let index_key = [&b"va"[..], &key(round)].concat();
        session.one(within(1, get(&index_key))).status == KV_NOT_FOUND
    });
}

#[test]
fn the_faults_of_collections_and_lists_show() {
    shows("collection-mixed", |session, round| {
        session.one(Ask { split: 2, ..put(&key(round), b"v") });
        let mut other = key(round);
        other[1] ^= 1;
        session.one(get(&other)).bytes == b"v"
    });
    let push = |value: &[u8]| Ask::new(KV_PUSH, b"list", value);
    let pop = || Ask::new(KV_POP, b"list", b"");
    shows("pop-twice", |session, round| {
        session.one(push(&value(round, 0)));
        let first = session.one(pop());
        assert_eq!((first.status, &first.bytes), (KV_OK, &value(round, 0)));
        session.one(pop()).bytes == first.bytes
    });
    shows("push-lost", |session, round| {
        assert_eq!(session.one(push(&value(round, 0))).status, KV_OK);
        session.one(pop()).status == KV_NOT_FOUND
    });
}

#[test]
fn a_race_is_lost_between_sessions_of_one_time() {
    let folder = tempfile::tempdir().unwrap();
    let bench = open("lost-race", folder.path(), KV_CREATE);
    let mut alone = bench.session();
    for round in 0..100 {
        alone.one(put(&key(1), &value(1, round)));
        assert_eq!(alone.one(get(&key(1))).bytes, value(1, round));
    }
    let mut other = bench.session();
    let mut lost = 0;
    for round in 0..100 {
        alone.one(put(&key(1), b"first"));
        lost += u32::from(other.one(get(&key(1))).bytes != b"first");
        other.one(put(&key(1), &value(1, round)));
        lost += u32::from(alone.one(get(&key(1))).bytes != value(1, round));
    }
    assert!(lost > 10, "{lost} were lost");
    drop((alone, other));
    bench.close();
}

/// Scans sixteen rows until the keys (as numbers) are those that the fault produces.
fn spoils_scans(fault: &str, ask: &Ask, wrong: &[u64]) {
    shows(fault, |session, round| {
        if round < 16 {
            session.one(put(&key(round), b"v"));
            return false;
        }
        let answer = session.one(ask.clone());
        assert_eq!(answer.status, KV_OK, "{fault}");
        let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap()) / 2;
        answer.pairs().iter().map(|(key, _)| number(key)).eq(wrong.iter().copied())
    });
}

#[test]
fn the_faults_of_scans_show() {
    let bounded = scan(&key(2), &key(6));
    spoils_scans("scan-out-of-order", &bounded, &[3, 2, 4, 5]);
    spoils_scans("scan-duplicate", &bounded, &[2, 2, 3, 4, 5]);
    spoils_scans("scan-missing", &bounded, &[2, 4, 5]);
    spoils_scans("scan-early-end", &bounded, &[2, 3]);
    spoils_scans("scan-past-bound", &bounded, &[2, 3, 4, 5, 6]);
    let limited = Ask { limit: 2, ..scan(&key(2), b"") };
    spoils_scans("scan-past-bound", &limited, &[2, 3, 4]);
    spoils_scans("scan-missing", &limited, &[2, 4]);
    spoils_scans("scan-duplicate", &limited, &[2, 2]);
    let prefixed = scan(b"", &key(3)).flags(KV_PREFIX);
    spoils_scans("scan-past-bound", &prefixed, &[3, 4]);
    spoils_scans("declares-too-much", &scan(&key(14), b"").flags(KV_REVERSE), &[14, 15]);
}

#[test]
fn a_transaction_that_fails_leaves_a_half() {
    let atomic = KV_JOIN | KV_ATOMIC;
    let short = Ask { out_size: 0, ..get(b"seen") }.flags(KV_ATOMIC);
    shows("non-atomic-transaction", |session, round| {
        session.one(put(b"seen", b"too long for the buffer"));
        let ran = session.run(&[put(&key(round), b"half").flags(atomic), short.clone()]);
        ran.answers[0].status == KV_ABORTED && session.one(get(&key(round))).bytes == b"half"
    });
    shows("non-atomic-transaction", |session, round| {
        let (first, second) = (put(&key(round), b"half"), put(b"second", &key(round)));
        let ran = session.run(&[first.flags(atomic), second.flags(KV_ATOMIC)]);
        let is_half = session.one(get(b"second")).bytes != key(round);
        ran.answers[0].status == KV_CONFLICT && is_half && session.one(get(&key(round))).bytes == b"half"
    });
}

#[test]
fn a_reopen_loses_what_it_should_keep() {
    for (fault, kept) in [("loses-tail-on-reopen", 60..96), ("loses-creation", 0..1)] {
        let folder = tempfile::tempdir().unwrap();
        let bench = open(fault, folder.path(), KV_CREATE);
        assert_eq!(bench.opened.level, KV_PROCESS, "{fault}");
        for number in 0..96 {
            assert_eq!(bench.session().one(put(&key(number), b"v")).status, KV_OK);
        }
        bench.close();
        let bench = open(fault, folder.path(), 0);
        let found = (0..96).filter(|&number| bench.session().one(get(&key(number))).status == KV_OK).count();
        assert!(kept.contains(&found), "{fault}: {found}");
        bench.close();
    }
}

#[test]
fn an_abort_over_several_calls_undoes_nothing() {
    shows("abort-commits", |session, round| {
        let control = |kind| Ask::new(kind, b"", b"");
        session.one(control(KV_BEGIN));
        session.one(put(&key(round), b"undone"));
        session.one(control(KV_ABORT));
        session.one(get(&key(round))).bytes == b"undone"
    });
}

#[test]
fn a_liar_stamps_no_time() {
    shows("timing-liar", |session, _| {
        let ran = session.run(&[put(b"k", b"v"), get(b"k"), get(b"k")]);
        ran.answers.iter().all(|answer| answer.start == answer.end && answer.start > 0)
    });
}

#[test]
fn a_liar_says_that_it_waited() {
    shows("waiting-liar", |session, _| session.run(&[get(b"k")]).waited >= 1 << 40);
}

#[test]
fn faults_of_durability_are_at_their_level() {
    let written = |fault: &str, level| {
        let folder = tempfile::tempdir().unwrap();
        let want =
            Want { path: folder.path(), level, flags: KV_CREATE, keyspaces: 1, indexes: &[], option: None };
        let bench = Bench::open(table(fault), &want).unwrap_or_else(|(_, text)| panic!("{fault}: {text}"));
        let length = || std::fs::metadata(folder.path().join(LOG_FILE)).unwrap().len();
        let before = length();
        let mut session = bench.session();
        session.one(put(b"key", b"value"));
        let is_written = length() > before;
        drop(session);
        bench.close();
        is_written
    };
    assert!(!written("acknowledges-before-write", KV_PROCESS));
    assert!(written("acknowledges-before-write", KV_POWER));
    // That they do not sync is seen only from outside: `kvdyno prove --only syncs`.
    for fault in ["acknowledges-before-sync", "lies-about-level", "get-fails"] {
        assert!(written(fault, KV_PROCESS) && written(fault, KV_POWER), "{fault}");
    }
}

/// Opens a database, runs `scene`, and opens it again; `is_closed`: it is closed before that, otherwise its files are taken
/// as they are.
fn after(
    fault: &str,
    is_closed: bool,
    scene: impl Fn(&mut Drive<'_>),
    found: impl Fn(&mut Drive<'_>) -> usize,
) -> usize {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bench = open(fault, first.path(), KV_CREATE);
    scene(&mut bench.session());
    let copy = || {
        for entry in std::fs::read_dir(first.path()).unwrap().flatten() {
            std::fs::copy(entry.path(), second.path().join(entry.file_name())).unwrap();
        }
    };
    if !is_closed {
        copy();
    }
    bench.close();
    if is_closed {
        copy();
    }
    let bench = open(fault, second.path(), 0);
    let count = found(&mut bench.session());
    bench.close();
    count
}

#[test]
fn faults_of_crashes_show_only_if_the_database_was_not_closed() {
    let puts = |session: &mut Drive<'_>| {
        for number in 0..30 {
            assert_eq!(session.one(put(&key(number), b"v")).status, KV_OK);
        }
        let joined = put(&key(30), b"v").flags(KV_JOIN | KV_ATOMIC);
        session.run(&[joined, put(&key(31), b"v").flags(KV_ATOMIC)]);
    };
    let rows = |session: &mut Drive<'_>| {
        (0..32).filter(|&number| session.one(get(&key(number))).status == KV_OK).count()
    };
    // 31 commits: a sixteenth of them are two, and the last one has two rows.
    for (fault, left) in [
        ("crash-loses-tail", 29),
        ("crash-loses-creation", 0),
        ("crash-leaves-holes", 31),
        ("crash-halves-transaction", 31),
    ] {
        assert_eq!(after(fault, false, puts, rows), left, "{fault}");
        assert_eq!(after(fault, true, puts, rows), 32, "{fault}");
    }
}

#[test]
fn faults_of_second_crashes_show_only_if_commits_followed_the_first_and_no_close() {
    let copied = |from: &Path, to: &Path| {
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    let rows = |session: &mut Drive<'_>| -> Vec<u64> {
        (0..20).filter(|&number| session.one(get(&key(number))).status == KV_OK).collect()
    };
    for (fault, left) in [
        ("crash-writes-behind-torn", (0..10).collect::<Vec<u64>>()),
        ("crash-forgets-repair", (0..9).chain(10..13).collect()),
    ] {
        for (more, is_closed) in [(0, false), (3, false), (3, true)] {
            let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
            let [first, second, third] = &folders;
            let bench = open(fault, first.path(), KV_CREATE);
            for number in 0..10 {
                assert_eq!(bench.session().one(put(&key(number), b"v")).status, KV_OK);
            }
            copied(first.path(), second.path());
            bench.close();
            let bench = open(fault, second.path(), 0);
            assert_eq!(rows(&mut bench.session()).len(), 10, "{fault}: after the first crash");
            for number in 10..10 + more {
                assert_eq!(bench.session().one(put(&key(number), b"v")).status, KV_OK);
            }
            if !is_closed {
                copied(second.path(), third.path());
            }
            bench.close();
            if is_closed {
                copied(second.path(), third.path());
            }
            let bench = open(fault, third.path(), 0);
            let expected = if is_closed || more == 0 { (0..10 + more).collect() } else { left.clone() };
            assert_eq!(rows(&mut bench.session()), expected, "{fault}, {more} more, closed: {is_closed}");
            bench.close();
        }
    }
}

#[test]
fn the_model_catches_each() {
    // The model has no indexes, no collections, no lists, no transactions over several calls, no strong reads and no
    // crashes, and one session.
    let others = [
        "stale-strong",
        "index-row-lost",
        "collection-mixed",
        "pop-twice",
        "push-lost",
        "lost-race",
        "abort-commits",
        "acknowledges-before-write",
        "acknowledges-before-sync",
        "lies-about-level",
        "crash-loses-tail",
        "crash-loses-creation",
        "crash-leaves-holes",
        "crash-halves-transaction",
        "crash-writes-behind-torn",
        "crash-forgets-repair",
    ];
    for (fault, table) in MUTANTS.iter().filter(|(fault, _)| !others.contains(fault)) {
        let folder = tempfile::tempdir().unwrap();
        let trial = Trial { path: folder.path(), level: KV_NONE, option: None, seed: 1, batches: 100_000 };
        let found = hold(table, &trial);
        assert!(found.is_err(), "{fault} was not caught");
    }
}

#[test]
fn each_has_a_name_and_a_text_of_its_own() {
    for (index, (fault, table)) in MUTANTS.iter().enumerate() {
        // SAFETY: texts of a table are constants with a NUL.
        let (name, engine) = unsafe { (CStr::from_ptr(table.name), CStr::from_ptr(table.engine)) };
        assert_eq!(name.to_str().unwrap(), format!("mutant-{fault}"));
        assert!(engine.to_bytes().starts_with(b"memory-btree with a fault: "));
        assert!(MUTANTS[..index].iter().all(|(other, _)| other != fault));
        assert_eq!(table.abi, KV_ABI);
    }
}

#[test]
fn the_readme_lists_each_and_no_other() {
    let readme = include_str!("README.md");
    assert_eq!(readme.lines().filter(|line| line.starts_with("| `")).count(), MUTANTS.len());
    for (fault, _) in MUTANTS {
        assert!(readme.contains(&format!("\n| `{fault}` |")), "{fault}");
    }
}
