//! Tests of trials with keyspaces and indexes, on every built-in engine.

use super::super::check::{Versions, WrongAnswers};
use super::super::judge::Bound;
use super::super::phase_data::{Population, Shared};
use super::super::rows::RowsCheck;
use super::super::spaces::{Spaces, indexed_value};
use super::super::{data, sweep};
use super::*;
use crate::engine::{Arena, Database, Engine, Request, Shape};
use crate::generator::{Keys, Values};
use crate::results::Cause;
use crate::workload::{Index, Mix, Scan};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

static NEVER: AtomicU32 = AtomicU32::new(0);

/// A built-in workload with a thousand keys.
fn tiny(name: &str) -> Workload {
    let mut workload = small(name);
    workload.keys = 1_000;
    for phase in workload.phases.iter_mut().filter(|phase| !phase.each_key) {
        phase.ops = 800;
    }
    workload
}

fn engines() -> Vec<Engine> {
    keeping_engines()
}

#[test]
fn every_engine_has_keyspaces_or_they_are_emulated() {
    for engine in engines() {
        let mut workload = tiny("keyspaces");
        workload.phases[2].threads = if engine.capabilities() & abi::KV_SINGLE_THREAD == 0 { 3 } else { 1 };
        // Also scans in descending order over complete keyspaces, and counters in all of them.
        let scan = Scan { rows: 0, reverse: true, ..Scan::default() };
        workload.phases.push(Phase { name: "down".into(), scan, ops: 9, ..workload.phases[3].clone() });
        let count = Mix { merge: 1.0, ..Mix::default() };
        workload.phases.push(Phase { name: "count".into(), mix: count, ops: 300, ..Phase::default() });
        let record = run_on(engine.name(), workload);
        assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
        let is_marked = engine.capabilities() & abi::KV_KEYSPACES == 0;
        for phase in record.phases.iter().filter(|phase| phase.not_run.is_none()) {
            let said = phase.emulated.iter().any(|text| text == "keyspaces emulated by key prefix");
            assert_eq!(said, is_marked, "{} {}", engine.name(), phase.phase.name);
        }
    }
}

#[test]
fn every_engine_has_indexes_or_they_are_emulated() {
    for engine in engines() {
        let record = run_on(engine.name(), tiny("indexed-insert"));
        assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
        let insert = &record.phases[0];
        let native = engine.capabilities() & abi::KV_INDEXES != 0;
        let said = insert.emulated.iter().filter(|text| text.starts_with("indexes emulated, ")).count();
        assert_eq!(said, usize::from(!native), "{}: {:?}", engine.name(), insert.emulated);
        // A row counts as one op, whether the engine or the core writes its index rows; the same applies to bytes.
        assert_eq!((insert.ops, insert.kinds[0].kind.as_str()), (800, "insert-indexed"), "{}", engine.name());
        assert_eq!(insert.kinds[0].service_ns.count(), 800 / 100, "{}", engine.name());
        assert_eq!(insert.logical_bytes_written, 800 * (16 + 100 + 3 * (8 + 16) + 100), "{}", engine.name());
        let is_ordered = engine.capabilities() & abi::KV_ORDERED != 0;
        for scan in &record.phases[1..] {
            assert_eq!(scan.not_run.is_none(), is_ordered, "{}", engine.name());
            assert_eq!(scan.check.rows > 0, is_ordered, "{}", engine.name());
        }
    }
}

#[test]
fn indexes_are_read_while_threads_insert_in_several_keyspaces() {
    for engine in engines().iter().filter(|engine| engine.capabilities() & abi::KV_SINGLE_THREAD == 0) {
        let mut workload = tiny("indexed-insert");
        workload.keyspaces = 3;
        workload.value.size = "uniform:60-140".parse().unwrap();
        workload.indexes[0] = Index { from: 2, length: 1, clustering: true };
        (workload.phases[0].threads, workload.phases[0].join) = (4, 10);
        let scan = if engine.capabilities() & abi::KV_ORDERED != 0 { 0.2 } else { 0.0 };
        let mix = Mix { insert_indexed: 0.3, get: 0.5, scan, ..Mix::default() };
        let phase = &mut workload.phases[1];
        (phase.mix, phase.threads, phase.grows, phase.ops) = (mix, 3, true, 1_000);
        let record = run_on(engine.name(), workload);
        assert_eq!(record.outcome, Outcome::Ok, "{}", engine.name());
        assert_eq!(record.phases[1].not_run, None, "{}", engine.name());
    }
}

#[test]
fn each_key_of_a_fill_with_indexes_is_written_once() {
    for threads in [1, 3] {
        let mut workload = tiny("indexed-insert");
        workload.phases.truncate(1);
        workload.phases[0].distribution = crate::generator::Distribution::Sequential;
        (workload.phases[0].each_key, workload.phases[0].ops) = (true, 0);
        workload.phases[0].threads = threads;
        assert!(workload.phases[0].is_fill());
        let record = run_on("memory-btree", workload);
        assert_eq!(record.outcome, Outcome::Ok, "{threads} threads");
        assert_eq!((record.phases[0].ops, record.phases[0].keys_after), (1_000, Some(1_000)));
    }
}

#[test]
fn the_sweep_finds_a_lost_index_row_that_no_phase_read() {
    let mut workload = tiny("indexed-insert");
    workload.phases.truncate(1);
    let record = run_on("mutant:index-row-lost", workload);
    let Outcome::WrongAnswers { faults } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(faults[0].starts_with("sweep of index 3 at the end: index 3: "), "{faults:?}");
}

#[test]
fn a_row_in_the_wrong_keyspace_is_found() {
    let record = run_on("mutant:keyspace-mixed", tiny("keyspaces"));
    let Outcome::WrongAnswers { faults } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(faults[0].contains("returned from keyspace 0"), "{faults:?}");
}

#[test]
fn keys_that_become_too_long_are_refused_before_the_engine_is_opened() {
    let mut workload = tiny("indexed-insert");
    workload.key.size = crate::generator::SizeSpec::Fixed(1020);
    let record = run_on("mutant:error-swallowed", workload);
    let Outcome::Failed { cause, text } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert_eq!(*cause, Cause::Refused);
    assert_eq!(
        text,
        "keys have up to 1028 bytes (8 of them for keyspace and index), but the engine supports at most 1024"
    );
    assert!(record.steps.is_empty());
}

#[test]
fn transactions_of_one_keyspace_are_distinguished_from_those_of_several() {
    let mut workload = tiny("keyspaces");
    workload.phases[1].mix = Mix { transaction: 1.0, ..Mix::default() };
    let capabilities = abi::KV_KEYSPACES | abi::KV_TRANSACTION | abi::KV_OVERWRITE;
    let mut spaces = Spaces::new(&workload, capabilities);
    assert!(spaces.needs_trial(&workload));
    let lacks = |spaces: &Spaces| super::super::phase::lacks(&workload.phases[1], capabilities, spaces);
    assert_eq!(lacks(&spaces), None);
    spaces.set_atomic(false);
    assert_eq!(lacks(&spaces).as_deref(), Some("the engine has no transactions over several keyspaces"));
    let mut indexed = Spaces::new(&tiny("indexed-insert"), capabilities);
    assert_eq!((indexed.is_grouped(), indexed.row_ops()), (true, 4));
    indexed.set_atomic(false);
    assert_eq!(
        (indexed.is_grouped(), indexed.emulated(true)),
        (false, vec!["indexes emulated, not atomic".into()])
    );
    assert_eq!(indexed.lacks(0).as_deref(), Some("the engine has no keyspaces with these options"));
}

/// Puts raw rows.
fn put(database: &Database, rows: &[(u16, Vec<u8>, Vec<u8>)]) {
    let shape = Shape { ops: 1, key_bytes: 64, value_bytes: 200, out_bytes: 8 };
    let mut session = database.session(Arena::new(shape, 0, &NEVER)).unwrap();
    for (space, key, value) in rows {
        let arena = session.arena();
        arena.key_mut(0)[..key.len()].copy_from_slice(key);
        arena.value_mut(0)[..value.len()].copy_from_slice(value);
        let op = arena.op_mut(0);
        (op.kind, op.keyspace) = (abi::KV_PUT, *space);
        (op.key_length, op.value_length) = (key.len() as u32, value.len() as u32);
        session.execute(0, 1);
        assert_eq!(session.arena().op(0).status, abi::KV_OK);
    }
    session.end().unwrap();
}

/// A phase that reads `dense` keys, without a table of versions.
fn shared_of<'a>(
    phase: &'a Phase,
    (keys, spaces, values): (&'a Keys, &'a Spaces, &'a Values),
    capabilities: u64,
    dense: u64,
) -> Shared<'a> {
    Shared {
        phase,
        seed: 1,
        round: None,
        hot_seed: 1,
        keys,
        spaces,
        mark_bytes: 0,
        row_ops: 1,
        values,
        versions: None,
        recent: None,
        accepts_stale: false,
        epochs: None,
        lists: None,
        population: Population { dense, whole: true, next_insert: dense },
        fill_items: dense,
        insert_end: dense,
        counters_from: dense,
        clock: Clock::calibrate(),
        bound: Bound::of(false, Clock::monotonic(), 20.0),
        capabilities,
        checked: true,
        is_guarded: false,
        writers: 0,
        inserters: 0,
        deletes: false,
        writes: false,
        seconds: None,
        warm_until: AtomicU64::new(0),
        counted_from: Default::default(),
        arriver: None,
        stop: &NEVER,
        is_steady: AtomicBool::new(false),
        failure: Mutex::new(None),
        level: crate::workload::Durability::None,
        slots: Vec::new(),
        faults: Vec::new(),
    }
}

#[test]
fn index_rows_of_an_unordered_engine_are_read_by_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let workload = tiny("indexed-insert");
    let engine = Registry::load(&[]).engine("memory-map").unwrap();
    let spaces = Spaces::new(&workload, engine.capabilities());
    let request = Request { create: true, keyspaces: spaces.requested(), ..Request::default() };
    let database = Database::open(&engine, folder.path(), &request).unwrap();
    let (keys, _) = data::keys(&workload, data::growth(&workload), 0).unwrap();
    let values = data::values(&workload).unwrap();
    let index_row = |item: u64, number: u32| {
        let (mut scratch, mut key) = (Vec::new(), vec![0; 64]);
        let value = indexed_value(&values[0], item, &mut scratch);
        let row = spaces.write_index_key(&keys, item, value, number, &mut key).key;
        (row.space, key[..row.length].to_vec(), spaces.index_value(number, value).to_vec())
    };
    let mut rows: Vec<_> =
        (0..20).flat_map(|item| (1..=3).map(move |number| index_row(item, number))).collect();
    let faults_of = |dense: u64| {
        let phase = Phase::default();
        let shared = shared_of(&phase, (&keys, &spaces, &values[0]), engine.capabilities(), dense);
        sweep::index_gets(&shared, &database, sweep::Extent::All).unwrap().first
    };
    put(&database, &rows);
    assert_eq!(faults_of(20), Vec::<String>::new());
    assert_eq!(faults_of(21)[0], "index 1: the index row of key 20 is missing");
    rows[4].2.push(1);
    put(&database, &rows[4..5]);
    assert_eq!(faults_of(20), ["index 2: the index row of key 1 has bytes that were not written"]);
    database.close().unwrap();
}

fn key_of(keys: &Keys, item: u64) -> Vec<u8> {
    let mut key = vec![0; keys.max_len()];
    let length = keys.write(item, &mut key);
    key[..length].to_vec()
}

/// The faults of a scan from the key of `from` with this limit, flags and bound, whose pieces have the rows of these items.
fn faults_of_scan(
    shared: &Shared<'_>,
    from: u64,
    (limit, flags, bound): (u32, u16, &[u8]),
    pieces: &[&[u64]],
) -> Vec<String> {
    let (mut check, mut faults) = (RowsCheck::default(), WrongAnswers::default());
    let shape = Shape { ops: 1, key_bytes: 64, value_bytes: 200, out_bytes: 8 };
    let mut arena = Arena::new(shape, 0, &NEVER);
    (arena.op_mut(0).user, arena.op_mut(0).flags) = (u64::from(limit), flags);
    check.begin(shared, from, arena.op(0), &key_of(shared.keys, from), bound);
    for items in pieces {
        let mut bytes = Vec::new();
        for item in *items {
            let mut value = vec![0; shared.values.max_len().max(8)];
            // A counter has eight bytes.
            let is_row = *item < shared.counters_from;
            let length = if is_row { shared.values.write(*item, 1, &mut value) } else { 8 };
            let key = key_of(shared.keys, *item);
            bytes.extend((key.len() as u32).to_ne_bytes());
            bytes.extend((length as u32).to_ne_bytes());
            bytes.extend(key);
            bytes.extend(&value[..length]);
        }
        check.piece(shared, &bytes, items.len() as u32, &mut faults);
    }
    check.end(shared, &mut faults);
    faults.first
}

#[test]
fn a_row_after_a_counter_must_be_in_order_too() {
    let workload = tiny("quick");
    let spaces = Spaces::new(&workload, abi::KV_ORDERED);
    let (keys, _) = data::keys(&workload, data::growth(&workload), 10).unwrap();
    let values = data::values(&workload).unwrap();
    // The counters come after five rows in key order.
    let scan = Scan { rows: 7, ..Scan::default() };
    let phase = Phase { scan, ..Phase::default() };
    let shared = shared_of(&phase, (&keys, &spaces, &values[0]), abi::KV_ORDERED, 5);
    let faults_of = |pieces: &[&[u64]]| faults_of_scan(&shared, 0, (7, 0, &[]), pieces);
    assert_eq!(faults_of(&[&[0, 1, 2, 3, 4, 5, 6]]), Vec::<String>::new());
    assert_eq!(faults_of(&[&[0, 1, 2], &[3, 4, 5, 6]]), Vec::<String>::new());
    for wrong in [&[&[0, 1, 7, 2, 7, 3, 7][..]][..], &[&[0, 1, 7], &[2, 7, 3, 7]]] {
        let found = faults_of(wrong);
        let strayed = found.iter().filter(|fault| fault.contains("out of order"));
        assert!(strayed.count() >= 2, "{found:?}");
    }
    assert!(faults_of(&[&[0, 1, 1, 2, 3, 4, 5]])[0].contains("twice"));
    assert!(faults_of(&[&[0, 1, 3, 4, 5, 6, 7]])[0].contains("key 2 was expected"));
    assert!(faults_of(&[&[0, 1, 2, 3]])[0].contains("key 4 is missing"));
}

#[test]
fn counters_do_not_take_the_place_of_missing_rows() {
    let workload = tiny("quick");
    let spaces = Spaces::new(&workload, abi::KV_ORDERED);
    let (keys, _) = data::keys(&workload, data::growth(&workload), 10).unwrap();
    let values = data::values(&workload).unwrap();
    let phase = Phase { scan: Scan { rows: 4, ..Scan::default() }, ..Phase::default() };
    let shared = shared_of(&phase, (&keys, &spaces, &values[0]), abi::KV_ORDERED, 5);
    let forward = |rows: &[u64]| faults_of_scan(&shared, 1, (4, 0, &[]), &[rows]);
    assert_eq!(forward(&[1, 2, 3, 4]), Vec::<String>::new());
    assert_eq!(forward(&[1, 2, 5, 6])[0], "scan: counter 5 returned, but key 3 was expected before it");
    assert_eq!(forward(&[5, 6, 7, 8])[0], "scan: counter 5 returned, but key 1 was expected before it");
    let later = |rows: &[u64]| faults_of_scan(&shared, 3, (4, 0, &[]), &[rows]);
    assert_eq!(later(&[3, 4, 5, 6]), Vec::<String>::new(), "rows end before the counters");
    let reverse = |rows: &[u64]| faults_of_scan(&shared, 6, (4, abi::KV_REVERSE, &[]), &[rows]);
    assert_eq!(reverse(&[6, 5, 4, 3]), Vec::<String>::new());
    assert_eq!(reverse(&[6, 5, 3, 2])[0], "scan: key 3 returned, but key 4 was expected");
}

#[test]
fn counters_with_a_prefix_do_not_hide_that_a_row_of_it_is_missing() {
    let mut workload = tiny("quick");
    (workload.key.prefix_groups, workload.key.prefix_size) = (200, 8);
    // The last rows and the first counters share a prefix.
    let count = 997;
    for capabilities in [0, abi::KV_ORDERED] {
        let spaces = Spaces::new(&workload, capabilities);
        let (keys, _) = data::keys(&workload, data::growth(&workload), count).unwrap();
        let values = data::values(&workload).unwrap();
        let scan = Scan { rows: 0, prefix: true, ..Scan::default() };
        let phase = Phase { scan, ..Phase::default() };
        let shared = shared_of(&phase, (&keys, &spaces, &values[0]), capabilities, count);
        // A prefix that rows and counters have.
        let (item, items) = (0..count)
            .map(|item| {
                let places = keys.prefix_places(item).unwrap();
                let items = places.filter_map(|place| keys.at_place(place));
                (item, items.collect::<Vec<u64>>())
            })
            .find(|(_, items)| {
                let counters = items.iter().filter(|item| **item >= count).count();
                counters >= 1 && items.len() - counters >= 2
            })
            .expect("a prefix of rows and counters");
        let start = key_of(&keys, item);
        let faults_of = |limit: u32, rows: &[u64]| {
            faults_of_scan(&shared, rows[0], (limit, abi::KV_PREFIX, &start[..8]), &[rows])
        };
        assert_eq!(faults_of(u32::MAX, &items), Vec::<String>::new());
        let row = items.iter().position(|item| *item < count).unwrap();
        let mut lacking = items.clone();
        lacking.remove(row);
        assert!(faults_of(u32::MAX, &lacking)[0].contains("rows of a prefix came"), "{lacking:?}");
        if capabilities != 0 {
            let limit = lacking.len() as u32;
            assert!(!faults_of(limit, &lacking).is_empty(), "{lacking:?} of {items:?}");
        }
    }
}

#[test]
fn rows_of_a_prefix_are_all_different_also_without_an_order() {
    let mut workload = tiny("quick");
    // Five keys share each prefix.
    (workload.key.prefix_groups, workload.key.prefix_size) = (200, 8);
    let spaces = Spaces::new(&workload, 0);
    let (keys, _) = data::keys(&workload, data::growth(&workload), 0).unwrap();
    let values = data::values(&workload).unwrap();
    let scan = Scan { rows: 0, prefix: true, ..Scan::default() };
    let phase = Phase { scan, ..Phase::default() };
    let shared = shared_of(&phase, (&keys, &spaces, &values[0]), 0, 1_000);
    let places: Vec<u64> = keys.prefix_places(0).unwrap().collect();
    assert_eq!(places.len(), 5);
    let faults_of = |rows: &[usize]| {
        let items: Vec<u64> = rows.iter().map(|row| keys.at_place(places[*row]).unwrap()).collect();
        let start = key_of(&keys, items[0]);
        let op = (u32::MAX, abi::KV_PREFIX, &start[..8]);
        faults_of_scan(&shared, items[0], op, &[&items])
    };
    assert_eq!(faults_of(&[2, 0, 4, 1, 3]), Vec::<String>::new());
    assert!(faults_of(&[0, 2, 2, 1, 4])[0].contains("some twice and others not at all"));
    assert!(faults_of(&[0, 2, 1, 4])[0].contains("4 rows of a prefix came, 5 are there"));
}

#[test]
fn scans_of_a_single_writing_thread_are_checked_exactly() {
    let workload = tiny("quick");
    let spaces = Spaces::new(&workload, abi::KV_ORDERED);
    let (keys, _) = data::keys(&workload, data::growth(&workload), 0).unwrap();
    let values = data::values(&workload).unwrap();
    let mix = Mix { scan: 1.0, update: 1.0, delete: 1.0, ..Mix::default() };
    let scan = Scan { rows: 4, ..Scan::default() };
    let versions = Versions::new(1_000, 1_000).unwrap();
    let write = |item, deleted| {
        let state = versions.begin(item, deleted).unwrap();
        versions.acknowledge(item, state);
    };
    (0..1_000).for_each(|item| write(item, false));
    // Consecutive keys: the second is deleted, the fourth has a newer version than the scans return.
    let place = keys.place_of(3).unwrap().min(900);
    let items: Vec<u64> = (0..7).map(|row| keys.at_place(place + row).unwrap()).collect();
    write(items[1], true);
    let faults_of = |threads, rows: &[usize]| {
        let phase = Phase { scan, mix, threads, ..Phase::default() };
        let mut shared = shared_of(&phase, (&keys, &spaces, &values[0]), abi::KV_ORDERED, 1_000);
        (shared.versions, shared.writes, shared.deletes) = (Some(&versions), true, true);
        shared.slots = crate::runner::phase::slots(&phase);
        let rows: Vec<u64> = rows.iter().map(|row| items[*row]).collect();
        faults_of_scan(&shared, items[0], (4, 0, &[]), &[&rows])
    };
    let right = [0, 2, 3, 4];
    assert_eq!(faults_of(1, &right), Vec::<String>::new());
    let expect = |rows: &[usize], text: &str| {
        let found = faults_of(1, rows);
        assert!(found.first().is_some_and(|fault| fault.contains(text)), "{rows:?}: {found:?}");
        assert_eq!(faults_of(2, rows), Vec::<String>::new(), "another thread may have written");
    };
    expect(&[0, 1, 2, 3], "version 1, but the last written was 2");
    expect(&[0, 3, 4, 5], "was expected");
    expect(&[0, 2, 3], "is missing");
    expect(&[], "ended after 0 rows");
    write(items[3], false);
    expect(&right, "version 1, but the last written was 2");
}

#[test]
fn a_scan_over_hashed_keys_ends_early_only_at_the_last_key() {
    let workload = tiny("ycsb-e");
    let spaces = Spaces::new(&workload, abi::KV_ORDERED);
    let (keys, _) = data::keys(&workload, data::growth(&workload), 0).unwrap();
    let values = data::values(&workload).unwrap();
    let mut items: Vec<u64> = (0..1_000).collect();
    items.sort_by_key(|item| key_of(&keys, *item));
    for reverse in [false, true] {
        if reverse {
            items.reverse();
        }
        let scan = Scan { rows: 10, reverse, ..Scan::default() };
        let phase = Phase { scan, ..Phase::default() };
        let shared = shared_of(&phase, (&keys, &spaces, &values[0]), abi::KV_ORDERED, 1_000);
        let flags = if reverse { abi::KV_REVERSE } else { 0 };
        let faults_of = |rows: &[u64]| {
            faults_of_scan(&shared, rows.first().map_or(items[993], |row| *row), (10, flags, &[]), &[rows])
        };
        assert_eq!(faults_of(&items[500..510]), Vec::<String>::new());
        assert_eq!(faults_of(&items[993..]), Vec::<String>::new());
        let early = ["scan: ended after 6 rows, but 7 are there from its start on"];
        assert_eq!(faults_of(&items[993..999]), early);
        let gap: Vec<u64> = items[993..].iter().copied().filter(|item| *item != items[996]).collect();
        assert_eq!(faults_of(&gap), early);
        assert_eq!(faults_of(&[]), ["scan: ended after 0 rows, but 7 are there from its start on"]);
    }
}
