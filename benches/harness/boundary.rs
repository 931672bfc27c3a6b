//! The cost of the boundary alone: calls of null engines with prepared keys, in batches of the core's size and of one op;
//! in Go also with the copies for engines that keep the slices they are given.

use crate::Row;
use kvdyno::Clock;
use kvdyno::abi::{KV_CLOCK_COUNTER, KV_CLOCK_MONOTONIC, KV_GET, KV_NONE, KV_PUT};
use kvdyno::{Arena, Database, Engine, Registry, Request, Shape, plugin_folders};
use std::hint::black_box;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

const BATCH: usize = 64;
const CLOCK: u32 = if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
    KV_CLOCK_COUNTER
} else {
    KV_CLOCK_MONOTONIC
};
static STOP: AtomicU32 = AtomicU32::new(0);

fn request() -> Request {
    Request {
        level: KV_NONE,
        read_only: false,
        create: true,
        cache_bytes: None,
        expected_rows: 0,
        disk_limit_bytes: 0,
        key_size_max: 16,
        key_size_fixed: 16,
        value_size_max: 100,
        threads: 1,
        keyspaces: 1,
        indexes: Vec::new(),
        settings: Vec::new(),
        kinds: 1 << KV_GET | 1 << KV_PUT,
        op_flags: 0,
        clock: CLOCK,
    }
}

/// Nanoseconds per op of `calls` calls of `batch` ops, the best of `rounds`.
fn ns_per_op(engine: &Engine, kind: u8, batch: usize, calls: u64, rounds: u32) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(engine, folder.path(), &request()).expect("a null engine opens");
    let shape = Shape { ops: BATCH, key_bytes: 16, value_bytes: 100, out_bytes: 100 };
    let mut session = database.session(Arena::new(shape, CLOCK, &STOP)).expect("a session");
    for index in 0..BATCH {
        session.arena().key_mut(index).fill(index as u8);
        let op = session.arena().op_mut(index);
        (op.kind, op.key_length, op.value_length) = (kind, 16, if kind == KV_PUT { 100 } else { 0 });
    }
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..calls {
            assert_eq!(session.execute(0, batch).done, batch);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (calls * batch as u64) as f64);
    }
    session.end().expect("the session ends");
    database.close().expect("the database closes");
    best
}

/// Nanoseconds of one read of the clock that ops are stamped with, the best of `rounds`.
fn ns_per_read(calls: u64, rounds: u32) -> f64 {
    let clock = Clock::calibrate();
    let once = |_| {
        let start = Instant::now();
        for _ in 0..calls * BATCH as u64 {
            black_box(clock.now());
        }
        start.elapsed().as_nanos() as f64 / (calls * BATCH as u64) as f64
    };
    (0..rounds).map(once).fold(f64::INFINITY, f64::min)
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    // Short rounds, because the best of many is one without disturbance.
    let (calls, rounds) = if is_small { (100, 1) } else { (2_000, 700) };
    let registry = Registry::load(&plugin_folders(&[]));
    let mut rows = Vec::new();
    if let Ok(null) = registry.engine("null") {
        // One read stamps each op; the rest is the call and the check against the rules.
        let over = ns_per_op(&null, KV_GET, BATCH, calls, rounds) - ns_per_read(calls, rounds);
        let name = format!("null, get, batches of {BATCH}, over one clock read");
        rows.push(Row::new(name, over, "ns/op", Some(3.0)));
    }
    for (name, batch, goal) in [
        ("null", BATCH, None),
        ("null", 1, None),
        ("null-c", BATCH, None),
        ("null-c", 1, None),
        ("null-go", BATCH, Some(25.0)),
        ("null-go", 1, None),
        ("null-go-keeps", BATCH, None),
        ("null-go-keeps", 1, None),
    ] {
        let Ok(engine) = registry.engine(name) else {
            println!("{name}: skipped (built without a compiler for its language)");
            continue;
        };
        for (kind, text) in [(KV_GET, "get"), (KV_PUT, "put")] {
            let found = ns_per_op(&engine, kind, batch, calls, rounds);
            rows.push(Row::new(
                format!("the boundary alone: {name}, {text}, batches of {batch}"),
                found,
                "ns/op",
                goal,
            ));
        }
    }
    rows
}
