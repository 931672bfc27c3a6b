//! The reference engines against a model, across reopens, torn logs and threads.

#[path = "drive.rs"]
mod drive;
#[path = "model.rs"]
mod model;

use super::*;
use drive::*;
use kvdyno_driver::Level;
use kvdyno_driver::abi::*;
use model::{Trial, hold};
use std::path::Path;

static MAP: kv_driver = kvdyno_driver::table::<MemoryMap>();
static TREE: kv_driver = kvdyno_driver::table::<MemoryBtree>();
static BOTH: [&kv_driver; 2] = [&MAP, &TREE];

fn want(path: &Path, level: u32, flags: u32) -> Want<'_> {
    Want { path, level, flags, keyspaces: 1, indexes: &[], option: None }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Compares both engines with the model.
fn hold_both(level: u32, option: Option<(&str, &str)>, seeds: std::ops::Range<u64>, batches: u64) {
    for table in BOTH {
        for seed in seeds.clone() {
            let folder = folder();
            let trial = Trial { path: folder.path(), level, option, seed, batches };
            if let Err(text) = hold(table, &trial) {
                panic!("{text}");
            }
        }
    }
}

#[test]
fn answers_like_the_model_in_memory() {
    hold_both(KV_NONE, None, 0..4, 3000);
}

#[test]
fn answers_like_the_model_with_a_buffered_log() {
    hold_both(KV_NONE, Some(("log", "on")), 10..12, 2000);
}

#[test]
fn answers_like_the_model_at_level_process() {
    hold_both(KV_PROCESS, None, 20..22, 2000);
}

#[test]
fn answers_like_the_model_at_level_power() {
    hold_both(KV_POWER, None, 30..31, 400);
}

#[test]
fn says_which_level_and_log_are_in_force() {
    type Outcome = Result<(u32, &'static str, bool), u32>;
    let cases: [(u32, &str, Outcome); 8] = [
        (KV_NONE, "auto", Ok((KV_NONE, "log=off\n", true))),
        (KV_NONE, "on", Ok((KV_NONE, "log=on\n", false))),
        (KV_DEFAULT, "auto", Ok((KV_NONE, "log=off\n", true))),
        (KV_DEFAULT, "on", Ok((KV_PROCESS, "log=on\n", false))),
        (KV_PROCESS, "auto", Ok((KV_PROCESS, "log=on\n", false))),
        (KV_POWER, "on", Ok((KV_POWER, "log=on\n", false))),
        (KV_PROCESS, "off", Err(KV_UNSUPPORTED)),
        (KV_NONE, "perhaps", Err(KV_ERROR)),
    ];
    for (level, option, wanted) in cases {
        let folder = folder();
        let want = Want { option: Some(("log", option)), ..want(folder.path(), level, KV_CREATE) };
        match (Bench::open(&TREE, &want), wanted) {
            (Ok(bench), Ok((level, setting, in_memory))) => {
                assert_eq!(bench.opened.level, level, "{option}");
                assert!(bench.settings().contains(setting), "{option}: {}", bench.settings());
                assert_eq!(bench.opened.capabilities & KV_IN_MEMORY != 0, in_memory, "{option}");
                assert_eq!(folder.path().join(LOG_FILE).exists(), !in_memory, "{option}");
                bench.close();
            }
            (Err((status, text)), Err(wanted)) => assert_eq!(status, wanted, "{text}"),
            (Ok(_), Err(_)) => panic!("level {level}, log={option} was opened"),
            (Err((_, text)), Ok(_)) => panic!("level {level}, log={option}: {text}"),
        }
    }
}

/// Writes frames of one, two and four changes; returns the file and, for each length of it, the number of complete
/// commits.
fn some_log(path: &Path) -> (Vec<u8>, Vec<usize>) {
    let bench =
        Bench::open(&TREE, &want(path, KV_PROCESS, KV_CREATE)).unwrap_or_else(|(_, text)| panic!("{text}"));
    let mut session = bench.session();
    let file = path.join(LOG_FILE);
    let mut ends = vec![std::fs::metadata(&file).unwrap().len() as usize];
    for (index, flags) in [(0u8, 0), (1, KV_JOIN), (2, KV_JOIN | KV_ATOMIC), (3, 0)] {
        let count = [1, 2, 4, 1][usize::from(index)];
        let asks: Vec<Ask> = (0..count)
            .map(|number| {
                let last = number + 1 == count;
                put(&[index, number], &[index; 30]).flags(if last { flags & KV_ATOMIC } else { flags })
            })
            .collect();
        session.run(&asks);
        ends.push(std::fs::metadata(&file).unwrap().len() as usize);
    }
    drop(session);
    bench.close();
    (std::fs::read(&file).unwrap(), ends)
}

#[test]
fn a_tail_torn_at_any_byte_loses_no_whole_commit() {
    let folder = folder();
    let (bytes, ends) = some_log(folder.path());
    let file = folder.path().join(LOG_FILE);
    for cut in 0..=bytes.len() {
        std::fs::write(&file, &bytes[..cut]).unwrap();
        let whole = ends.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
        let rows: usize = [1, 2, 4, 1][..whole].iter().sum();
        let bench = Bench::open(&TREE, &want(folder.path(), KV_PROCESS, 0))
            .unwrap_or_else(|(_, text)| panic!("cut at {cut}: {text}"));
        let kept = if cut < ends[0] { 0 } else { ends[whole] };
        assert!(bench.stats().contains(&format!("rows={rows}\n")), "cut at {cut}: {}", bench.stats());
        assert!(bench.stats().contains(&format!("log_truncated_bytes={}\n", cut - kept)), "cut at {cut}");
        // What is written after the cut must also be found.
        assert_eq!(bench.session().one(put(b"after", b"the cut")).status, KV_OK);
        bench.close();
        let bench = Bench::open(&TREE, &want(folder.path(), KV_PROCESS, 0))
            .unwrap_or_else(|(_, text)| panic!("{text}"));
        assert_eq!(bench.session().one(get(b"after")).bytes, b"the cut", "cut at {cut}");
        assert!(bench.stats().contains(&format!("rows={}\n", rows + 1)), "cut at {cut}");
        bench.close();
    }
}

#[test]
fn a_changed_byte_is_never_delivered() {
    let folder = folder();
    let (bytes, ends) = some_log(folder.path());
    let file = folder.path().join(LOG_FILE);
    for at in ends[0]..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        std::fs::write(&file, &changed).unwrap();
        let bench = Bench::open(&MAP, &want(folder.path(), KV_PROCESS, 0))
            .unwrap_or_else(|(_, text)| panic!("{text}"));
        let whole = ends.iter().filter(|&&end| end <= at).count() - 1;
        let rows: usize = [1, 2, 4, 1][..whole].iter().sum();
        assert!(bench.stats().contains(&format!("rows={rows}\n")), "byte {at}: {}", bench.stats());
        bench.close();
    }
}

#[test]
fn zeros_behind_the_last_commit_are_cut_off() {
    let folder = folder();
    let (mut bytes, _) = some_log(folder.path());
    bytes.resize(bytes.len() + 4096, 0);
    std::fs::write(folder.path().join(LOG_FILE), &bytes).unwrap();
    let bench =
        Bench::open(&TREE, &want(folder.path(), KV_POWER, 0)).unwrap_or_else(|(_, text)| panic!("{text}"));
    assert!(bench.stats().contains("rows=8\n") && bench.stats().contains("log_truncated_bytes=4096\n"));
    bench.close();
}

/// Regression: after a power cut at level process the first page may be missing, and the engine did not open.
#[test]
fn a_log_whose_first_page_never_reached_the_device_is_empty() {
    let folder = folder();
    let (mut bytes, _) = some_log(folder.path());
    let page = bytes.len().min(4096);
    bytes[..page].fill(0);
    bytes.extend_from_slice(&[7; 4096]);
    std::fs::write(folder.path().join(LOG_FILE), &bytes).unwrap();
    for (rows, cut) in [(0, bytes.len()), (1, 0)] {
        let bench = Bench::open(&TREE, &want(folder.path(), KV_PROCESS, 0))
            .unwrap_or_else(|(_, text)| panic!("{text}"));
        assert!(bench.stats().contains(&format!("rows={rows}\n")), "{}", bench.stats());
        assert!(bench.stats().contains(&format!("log_truncated_bytes={cut}\n")), "{}", bench.stats());
        assert_eq!(bench.session().one(put(b"k", b"v")).status, KV_OK);
        bench.close();
    }
}

#[test]
fn refuses_a_file_that_is_no_log_and_a_log_that_is_not_there() {
    let folder = folder();
    let open = |flags| Bench::open(&TREE, &want(folder.path(), KV_PROCESS, flags)).map(|_| ()).unwrap_err();
    assert!(open(0).1.contains(LOG_FILE), "{}", open(0).1);
    std::fs::write(folder.path().join(LOG_FILE), b"something else altogether").unwrap();
    assert!(open(0).1.contains("not a log"), "{}", open(0).1);
    assert!(open(KV_CREATE).1.contains("exists"), "{}", open(KV_CREATE).1);
}

#[test]
fn writes_nothing_when_opened_read_only() {
    let folder = folder();
    let (mut bytes, _) = some_log(folder.path());
    bytes.extend_from_slice(b"torn");
    let file = folder.path().join(LOG_FILE);
    std::fs::write(&file, &bytes).unwrap();
    let bench = Bench::open(&TREE, &want(folder.path(), KV_POWER, KV_READ_ONLY))
        .unwrap_or_else(|(_, text)| panic!("{text}"));
    let mut session = bench.session();
    assert_eq!(session.one(get(&[0, 0])).bytes, [0; 30]);
    for ask in [put(b"k", b"v"), delete(&[0, 0]), merge(b"c", &[1; 8])] {
        assert_eq!(session.one(ask.clone()).status, KV_UNSUPPORTED, "{ask:?}");
        let group = [get(&[0, 0]).flags(KV_JOIN | KV_ATOMIC), ask.flags(KV_ATOMIC)];
        assert_eq!(session.run(&group).answers[1].status, KV_UNSUPPORTED);
    }
    assert_eq!(bench.maintain(KV_FLUSH), KV_OK);
    drop(session);
    bench.close();
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_bad_op_is_told_from_the_others_of_its_group() {
    for level in [KV_NONE, KV_PROCESS] {
        let folder = folder();
        let bench = Bench::open(&MAP, &want(folder.path(), level, KV_CREATE))
            .unwrap_or_else(|(_, text)| panic!("{text}"));
        let mut session = bench.session();
        let mut elsewhere = get(b"k");
        elsewhere.keyspace = 9;
        for bad in [put(b"", b"v"), elsewhere, merge(b"k", b"no counter")] {
            let ran = session.run(&[put(b"a", b"1").flags(KV_JOIN), bad.clone().flags(KV_JOIN), get(b"a")]);
            let statuses: Vec<u32> = ran.answers.iter().map(|answer| answer.status).collect();
            assert!(
                statuses[0] == KV_OK && statuses[1] > KV_SHORT && statuses[2] == KV_OK,
                "{bad:?}: {statuses:?}"
            );
            assert!(!ran.error.is_empty(), "{bad:?}");
        }
        drop(session);
        bench.close();
    }
}

/// The same options that the table would open with, and a log that fails.
fn with_a_failing_log(folder: &Path, level: Level) -> Bench {
    let options = Options {
        path: folder.to_path_buf(),
        level,
        log: false,
        create: true,
        read_only: false,
        keyspaces: 1,
        indexes: Indexes::default(),
        expected_rows: 0,
    };
    std::fs::write(folder.join(LOG_FILE), b"").unwrap();
    let mut memory = MemoryMap::open_with(&options).unwrap();
    memory.write(0, b"old", Some(b"1")).unwrap();
    memory.log = Some(Log::that_cannot_write(&folder.join(LOG_FILE), level));
    Bench::of(&MAP, memory)
}

#[test]
fn a_write_that_the_log_refuses_has_no_effect() {
    for level in [Level::Process, Level::Power] {
        let folder = folder();
        let bench = with_a_failing_log(folder.path(), level);
        let mut session = bench.session();
        for flags in [0, KV_JOIN, KV_JOIN | KV_ATOMIC] {
            let last = flags & KV_ATOMIC;
            let asks = [
                put(b"new", b"2").flags(flags),
                put(b"old", b"2").flags(flags),
                merge(b"old", b"+").flags(flags | KV_APPEND),
                delete(b"old").flags(last),
            ];
            let ran = session.run(&asks);
            assert!(ran.answers.iter().all(|answer| answer.status == KV_ERROR), "{:?}", ran.answers);
            assert!(!ran.error.is_empty());
            assert_eq!(session.one(get(b"new")).status, KV_NOT_FOUND);
            assert_eq!(session.one(get(b"old")).bytes, b"1");
        }
        drop(session);
        bench.close_in_vain();
    }
}

#[test]
fn a_buffered_log_that_fails_says_so_from_then_on() {
    let folder = folder();
    let bench = with_a_failing_log(folder.path(), Level::None);
    let mut session = bench.session();
    let statuses: Vec<u32> = (0..100u8).map(|key| session.one(put(&[key], &[0; 1000])).status).collect();
    let first = statuses.iter().position(|&status| status == KV_ERROR).unwrap();
    assert!(first > 50 && statuses[first..].iter().all(|&status| status == KV_ERROR), "{statuses:?}");
    drop(session);
    bench.close_in_vain();
}

#[test]
fn threads_lose_no_update_and_see_no_half_transaction() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 500;
    for (table, level) in [(&MAP, KV_NONE), (&TREE, KV_NONE), (&MAP, KV_PROCESS), (&TREE, KV_PROCESS)] {
        let folder = folder();
        let bench = Bench::open(table, &want(folder.path(), level, KV_CREATE))
            .unwrap_or_else(|(_, text)| panic!("{text}"));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let bench = &bench;
                scope.spawn(move || count_up(bench, thread, ROUNDS));
            }
        });
        let check = |bench: &Bench| {
            let mut session = bench.session();
            for key in [&b"sum"[..], b"left", b"right"] {
                assert_eq!(session.one(get(key)).bytes, (THREADS * ROUNDS).to_le_bytes());
            }
        };
        check(&bench);
        bench.close();
        if level == KV_PROCESS {
            let bench = Bench::open(table, &want(folder.path(), level, 0))
                .unwrap_or_else(|(_, text)| panic!("{text}"));
            check(&bench);
            bench.close();
        }
    }
}

/// Adds one to a counter, and in one transaction to two others that must always be seen equal.
fn count_up(bench: &Bench, thread: u64, rounds: u64) {
    let mut session = bench.session();
    let one = 1u64.to_le_bytes();
    let both = KV_JOIN | KV_ATOMIC;
    for round in 0..rounds {
        assert_eq!(session.one(merge(b"sum", &one)).status, KV_OK);
        // In both orders, so that locks taken in the order of the ops would deadlock.
        let keys: [&[u8]; 2] =
            if thread.is_multiple_of(2) { [b"left", b"right"] } else { [b"right", b"left"] };
        let ran = session.run(&[merge(keys[0], &one).flags(both), merge(keys[1], &one).flags(KV_ATOMIC)]);
        assert!(ran.answers.iter().all(|answer| answer.status == KV_OK), "{}", ran.error);
        let ran = session.run(&[get(keys[0]).flags(both), get(keys[1]).flags(KV_ATOMIC)]);
        assert_eq!(ran.answers[0].bytes, ran.answers[1].bytes, "thread {thread}, round {round}");
    }
}

#[test]
fn the_hash_spreads_keys_over_all_shards() {
    for width in [4usize, 8, 16, 40] {
        let mut counts = [0u32; Map::SHARDS];
        for number in 0..64_000u64 {
            let mut key = vec![0; width];
            let digits = number.to_be_bytes();
            let length = width.min(8);
            key[width - length..].copy_from_slice(&digits[8 - length..]);
            counts[Map::shard(&key)] += 1;
        }
        // Mean 1000, standard deviation 31: six of them.
        assert!(counts.iter().all(|count| (810..1190).contains(count)), "{width}: {counts:?}");
    }
}

/// The nanosecond clock that stamps the tests' batches.
fn now_ns() -> u64 {
    kvdyno_driver::ticks(KV_CLOCK_MONOTONIC)
}

#[test]
fn a_batch_ends_at_the_stop_word_and_the_deadline_and_waits_for_due_ops() {
    let folder = folder();
    let bench = Bench::open(&TREE, &want(folder.path(), KV_NONE, KV_CREATE))
        .unwrap_or_else(|(_, text)| panic!("{text}"));
    let two = [put(b"a", b"1"), put(b"b", b"2")];
    let statuses = |ran: &BatchOutcome| ran.answers.iter().map(|answer| answer.status).collect::<Vec<u32>>();

    let mut session = bench.session();
    session.stop = 1;
    assert_eq!(statuses(&session.run(&two)), [KV_NOT_RUN, KV_NOT_RUN]);
    let mut session = bench.session();
    session.deadline = now_ns();
    assert_eq!(statuses(&session.run(&two)), [KV_NOT_RUN, KV_NOT_RUN]);

    let mut session = bench.session();
    session.due = now_ns() + 200_000;
    let ran = session.run(&two);
    assert_eq!(statuses(&ran), [KV_OK, KV_OK]);
    assert!(ran.answers[1].start >= session.due && ran.waited == ran.answers[1].start - ran.answers[0].end);

    // Due after the deadline: the spin ends there, and the op is not run.
    session.due = u64::MAX;
    session.deadline = now_ns() + 50_000_000;
    let ran = session.run(&two);
    assert_eq!((statuses(&ran), ran.done), (vec![KV_OK, KV_NOT_RUN], 1));
}

#[test]
fn refuses_what_is_not_in_force() {
    let folder = folder();
    for table in BOTH {
        let bench = Bench::open(table, &want(folder.path(), KV_NONE, KV_CREATE))
            .unwrap_or_else(|(_, text)| panic!("{text}"));
        let mut session = bench.session();
        let mortal = Ask { limit: 60, ..put(b"k", b"v") };
        for ask in
            [mortal, scan(b"", b"").flags(KV_HOLD), Ask::new(KV_BEGIN, b"", b""), Ask::new(77, b"", b"")]
        {
            assert_eq!(session.one(ask.clone()).status, KV_UNSUPPORTED, "{ask:?}");
            let group = [put(b"k", b"v").flags(KV_JOIN | KV_ATOMIC), ask.clone().flags(KV_ATOMIC)];
            let ran = session.run(&group);
            assert!(ran.answers.iter().all(|answer| answer.status == KV_UNSUPPORTED), "{ask:?}");
            assert_eq!(session.one(get(b"k")).status, KV_NOT_FOUND, "{ask:?}");
        }
        drop(session);
        bench.close();
    }
}

/// Keyspace 0 is indexed by bytes 1 and 2 (keyspace 1) and by byte 0, clustering (keyspace 2); keyspace 3 is not.
const INDEXES: [kv_index; 2] = [
    kv_index { keyspace: 0, index_keyspace: 1, from: 1, length: 2, clustering: 0 },
    kv_index { keyspace: 0, index_keyspace: 2, from: 0, length: 1, clustering: 1 },
];

fn with_indexes(path: &Path, level: u32, flags: u32) -> Bench {
    let want = Want { keyspaces: 4, indexes: &INDEXES, ..want(path, level, flags) };
    Bench::open(&TREE, &want).unwrap_or_else(|(_, text)| panic!("{text}"))
}

/// The rows of a keyspace, as text.
fn rows_of(session: &mut Drive<'_>, keyspace: u16) -> Vec<String> {
    let rows = session.one(Ask { keyspace, ..scan(b"", b"") }).pairs();
    let text = |(key, value): &(Vec<u8>, Vec<u8>)| {
        format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value))
    };
    rows.iter().map(text).collect()
}

#[test]
fn index_rows_follow_their_rows_over_every_way_of_writing_and_a_reopen() {
    for level in [KV_NONE, KV_PROCESS] {
        let folder = folder();
        let bench = with_indexes(folder.path(), level, KV_CREATE);
        let mut session = bench.session();
        let atomic = KV_JOIN | KV_ATOMIC;
        session.run(&[put(b"k1", b"abc-1").flags(KV_JOIN), put(b"k2", b"abd-2")]);
        session.run(&[put(b"k3", b"xbc-3").flags(atomic), put(b"k1", b"ybc-4").flags(KV_ATOMIC)]);
        session.one(Ask { keyspace: 3, ..put(b"k1", b"z") });
        assert_eq!(session.one(put(b"k2", b"no").flags(KV_NEW)).status, KV_EXISTS);
        assert_eq!(rows_of(&mut session, 1), ["bck1=", "bck3=", "bdk2="]);
        assert_eq!(rows_of(&mut session, 2), ["ak2=abd-2", "xk3=xbc-3", "yk1=ybc-4"]);
        assert_eq!(session.one(delete(b"k3")).status, KV_OK);
        assert_eq!(session.one(delete(b"k3")).status, KV_NOT_FOUND);
        // A transaction that is rolled back leaves index rows unchanged.
        let short = Ask { out_size: 0, ..get(b"k2") };
        session.run(&[put(b"k2", b"qqq").flags(atomic), delete(b"k1").flags(atomic), short.flags(KV_ATOMIC)]);
        session.run(&[put(b"k9", b"qqq").flags(atomic), put(b"", b"qqq").flags(KV_ATOMIC)]);
        drop(session);
        bench.close();
        if level == KV_NONE {
            continue;
        }
        let bench = with_indexes(folder.path(), level, 0);
        let mut session = bench.session();
        assert_eq!(rows_of(&mut session, 0), ["k1=ybc-4", "k2=abd-2"]);
        assert_eq!(rows_of(&mut session, 1), ["bck1=", "bdk2="]);
        assert_eq!(rows_of(&mut session, 2), ["ak2=abd-2", "yk1=ybc-4"]);
        assert_eq!(rows_of(&mut session, 3), ["k1=z"]);
        drop(session);
        bench.close();
    }
}

#[test]
fn refuses_what_would_part_rows_from_index_rows() {
    let folder = folder();
    let bench = with_indexes(folder.path(), KV_NONE, KV_CREATE);
    let mut session = bench.session();
    assert_eq!(session.one(put(b"k", b"ab")).status, KV_TOO_LARGE);
    assert_eq!(session.one(merge(b"k", &[0; 8])).status, KV_UNSUPPORTED);
    assert_eq!(session.one(Ask { keyspace: 1, ..put(b"k", b"abc") }).status, KV_UNSUPPORTED);
    assert!((0..4).all(|space| rows_of(&mut session, space).is_empty()));
    drop(session);
    bench.close();
    for (table, keyspaces) in [(&MAP, 4), (&TREE, 2)] {
        let want = Want { keyspaces, indexes: &INDEXES, ..want(folder.path(), KV_NONE, KV_CREATE) };
        assert!(Bench::open(table, &want).is_err());
    }
}
