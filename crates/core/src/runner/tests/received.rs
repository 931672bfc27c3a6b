//! Tests of the ops that an engine receives: a driver logs the ops of each thread in order.

use super::small;
use crate::engine::Engine;
use crate::engine::abi::*;
use crate::results::{Outcome, Trial};
use crate::runner::run_trial;
use crate::workload::{Phase, Workload};
use kvdyno_driver::{Config, Driver, Error, Info, Level, Op, Opened, Session, Status, table};
use kvdyno_measure::Clock;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// The ops of a session, in order.
pub(super) type Received = Vec<Got>;

/// An op: its kind, the item of its key, and the bytes of its value or the rows that it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Got {
    pub kind: u8,
    pub item: u64,
    pub size: u32,
}

type Sink = Arc<Mutex<Vec<(usize, Received)>>>;

/// The ops that the databases in these folders have received.
static SINKS: LazyLock<Mutex<HashMap<PathBuf, Sink>>> = LazyLock::new(Default::default);

/// Logs ops; each takes this many additional microseconds.
struct Logging<const MICROSECONDS: u64> {
    sink: Sink,
    sessions: Mutex<usize>,
}

struct LoggingSession<'db, const MICROSECONDS: u64> {
    number: usize,
    sink: &'db Sink,
    received: Received,
}

impl<const MICROSECONDS: u64> Driver for Logging<MICROSECONDS> {
    const INFO: Info = Info {
        name: c"logging",
        engine: c"logs ops",
        language: c"Rust",
        family: c"none",
        capabilities: KV_STORES_NOTHING
            | KV_IN_MEMORY
            | KV_ORDERED
            | KV_CAN_DELETE
            | KV_OVERWRITE
            | KV_MERGE_ADD,
        levels: &[Level::None, Level::Process],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = LoggingSession<'db, MICROSECONDS>;

    fn open(config: &Config<'_>, opened: &mut Opened<'_>) -> Result<Self, Error> {
        opened.level(Level::Process);
        opened.version("1");
        let sink = SINKS.lock().unwrap().entry(config.path().into()).or_default().clone();
        Ok(Logging { sink, sessions: Mutex::new(0) })
    }

    fn session(&self) -> Result<Self::Session<'_>, Error> {
        let mut sessions = self.sessions.lock().unwrap();
        *sessions += 1;
        Ok(LoggingSession { number: *sessions, sink: &self.sink, received: Vec::new() })
    }
}

impl<const MICROSECONDS: u64> LoggingSession<'_, MICROSECONDS> {
    fn note(&mut self, op: &Op<'_>) -> Result<Status, Error> {
        let number = op.key().last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let size = if op.kind() == KV_SCAN { op.limit() } else { op.value().len() as u32 };
        self.received.push(Got { kind: op.kind(), item: number / 2, size });
        let begin = Instant::now();
        while MICROSECONDS > 0 && begin.elapsed() < Duration::from_micros(MICROSECONDS) {
            std::hint::spin_loop();
        }
        Ok(Status::Ok)
    }
}

impl<const MICROSECONDS: u64> Session for LoggingSession<'_, MICROSECONDS> {
    fn get(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.note(op)
    }

    fn put(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.note(op)
    }

    fn delete(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.note(op)
    }

    fn scan(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.note(op)
    }

    fn merge(&mut self, op: &mut Op<'_>) -> Result<Status, Error> {
        self.note(op)
    }
}

impl<const MICROSECONDS: u64> Drop for LoggingSession<'_, MICROSECONDS> {
    fn drop(&mut self) {
        self.sink.lock().unwrap().push((self.number, std::mem::take(&mut self.received)));
    }
}

/// The ops of each thread in the workload's last phase, on an engine whose ops take this many microseconds (0, 2 or 300).
pub(super) fn received(workload: &Workload, microseconds: u64) -> Vec<Received> {
    static FAST: kv_driver = table::<Logging<0>>();
    static SLOW: kv_driver = table::<Logging<2>>();
    static SLOWEST: kv_driver = table::<Logging<300>>();
    let engine = Engine::of_table(match microseconds {
        0 => &FAST,
        2 => &SLOW,
        _ => &SLOWEST,
    });
    let folder = tempfile::tempdir().unwrap();
    let trial = Trial {
        id: "test".into(),
        order: 0,
        repetition: 1,
        engine: "logging".into(),
        options: Vec::new(),
        workload: workload.clone().into(),
        placement: Default::default(),
        seed: None,
        reused: false,
        paranoid: false,
        counts_cycles: false,
        counts_calls: false,
        is_floor: false,
        load_generators: 1,
        nodes_option: None,
        load_generator: None,
        lengths: Default::default(),
    };
    let record =
        run_trial(&trial, engine, folder.path(), Clock::calibrate(), &mut |_| {}, &|_| Ok(())).unwrap();
    assert_eq!(record.outcome, Outcome::Ok, "{}", workload.name);
    let sink = SINKS.lock().unwrap().remove(folder.path()).unwrap();
    let mut sessions = std::mem::take(&mut *sink.lock().unwrap());
    sessions.sort_by_key(|(number, _)| *number);
    let threads = workload.phases.last().unwrap().threads as usize;
    let first = sessions.len() - threads;
    sessions.into_iter().skip(first).map(|(_, received)| received).collect()
}

/// A built-in workload of `keys` keys, whose last phase runs `ops` ops on `threads` threads.
pub(super) fn workload(name: &str, keys: u64, ops: u64, threads: u32) -> Workload {
    let mut workload = small(name);
    workload.keys = keys;
    workload.key = Default::default();
    let phase = workload.phases.last_mut().unwrap();
    (phase.ops, phase.seconds, phase.threads, phase.each_key) = (ops, 0.0, threads, false);
    workload
}

/// Phases in which the draws of a thread could depend on earlier ops of any thread.
fn phases() -> Vec<Phase> {
    let of = |text: &str| {
        let fill = "name = 'fill'\nmix = { put = 1 }\ndistribution = 'permutation'\neach_key = true";
        let text = format!("keys = 5000\n[[phase]]\n{fill}\n[[phase]]\nname = 'run'\nops = 9000\n{text}");
        crate::workload::parse(&text, "test").unwrap().phases.remove(1)
    };
    vec![
        of("mix = { get = 0.5, update = 0.5 }\ndistribution = 'zipf:0.99'"),
        of("mix = { get = 0.5, insert = 0.5 }\ndistribution = 'latest'\ngrows = true"),
        of("mix = { scan = 0.5, insert = 0.5 }\ndistribution = 'ycsb-zipfian'\ngrows = true"),
        of("mix = { get = 0.4, insert = 0.3, update = 0.3 }\ngrows = true"),
        of(
            "mix = { get = 0.5, put = 0.5 }\nexisting = 0.5\ndistribution = 'zipf:0.8'\ngrows = true\njoin = 7",
        ),
        of("mix = { get = 0.5, insert = 0.5 }\ndistribution = 'permutation'\ngrows = true"),
        of(
            "mix = { get = 0.3, multi_get = 0.3, insert = 0.4 }\ndistribution = 'exponential'\ngrows = true\njoin = 3",
        ),
        of("mix = { get = 0.5, merge = 0.5 }\ndistribution = 'hotspot:0.1,0.9'\njoin = 5"),
    ]
}

#[test]
fn the_same_seed_gives_the_same_ops_whatever_the_engine_s_speed() {
    for (place, phase) in phases().into_iter().enumerate() {
        for threads in [1, 4, 16] {
            let mut workload = workload("ycsb-a", 5_000, 9_000, threads);
            *workload.phases.last_mut().unwrap() = Phase { threads, ..phase.clone() };
            let fast = received(&workload, 0);
            let slow = received(&workload, 2);
            let seed = workload.seed;
            assert_eq!(fast.iter().map(Vec::len).sum::<usize>(), 9_000, "phase {place}");
            assert!(
                fast == slow,
                "seed {seed}: phase {place}, {threads} threads: other ops on a slower engine"
            );
            // With ops of 300 us a batch has one to three ops.
            if threads == 1 {
                workload.phases.last_mut().unwrap().ops = 1_000;
                let slowest = received(&workload, 300);
                workload.phases.last_mut().unwrap().ops = 1_000;
                assert!(
                    received(&workload, 0) == slowest,
                    "seed {seed}: phase {place}: other ops in small batches"
                );
            }
        }
    }
}

#[test]
fn a_phase_that_ends_by_time_runs_a_prefix_of_the_same_ops() {
    for name in ["ycsb-d", "ycsb-e"] {
        let mut workload = workload(name, 5_000, 0, 4);
        workload.phases.last_mut().unwrap().seconds = 0.2;
        let compared = || {
            let (fast, slow) = (received(&workload, 0), received(&workload, 2));
            let both = |(fast, slow): (&Vec<_>, &Vec<_>)| {
                let both = fast.len().min(slow.len());
                assert!(
                    fast[..both] == slow[..both],
                    "seed {}: {name}: other ops on a slower engine",
                    workload.seed
                );
                both
            };
            fast.iter().zip(&slow).map(both).sum::<usize>()
        };
        // A busy machine may not run every thread in this time.
        assert!((0..10).any(|_| compared() > 0), "seed {}: {name}: no thread has run", workload.seed);
    }
}
