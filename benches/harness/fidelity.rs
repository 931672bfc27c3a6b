//! The core compared with a hand-written loop on the same crate: the same keys, each op stamped, the same bytes
//! delivered, in one process, alternating. Each side has a database that was just filled in the same way, because a
//! database that the other has written to is in another state. The core's reads are checked and counted in a histogram;
//! the hand-written loop does neither.

#![allow(unsafe_code, reason = "it calls the engine's C interface")]

use crate::Row;
use heed::types::Bytes;
use heed::{EnvFlags, EnvOpenOptions};
use kvdyno::Clock;
use kvdyno::Registry;
use kvdyno::{Distribution, KeyRules, Keys, Partition, Permutation, Random};
use kvdyno::{Durability, Mix, Phase, Workload, builtin};
use kvdyno::{Outcome, PhaseRecord, Trial};
use kvdyno::{Sampler, SizeSpec, ValueRules, Values};
use kvdyno::{interval_of_median, median};
use redb::ReadableDatabase;
use std::path::Path;

const TABLE: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("k0");
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;
/// Keys that are prepared in advance: as many as the core sends in a batch, or 8 if ops are slow.
const AHEAD: usize = 64;
/// The maximum difference inside the call.
const INSIDE_PERCENT: f64 = 3.0;
/// The maximum difference around the calls, per op.
const WHOLE_NS: f64 = 25.0;

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Get,
    Put,
}

/// Nanoseconds per op: inside the calls, and of the whole loop.
struct Cost {
    inside: f64,
    whole: f64,
}

/// State of a hand-written loop; it draws as the core does.
struct Hand {
    clock: Clock,
    keys: Keys,
    values: Values,
    sampler: Sampler,
    random: Random,
    keys_ahead: Vec<[u8; KEY_BYTES]>,
    values_ahead: Vec<[u8; VALUE_BYTES]>,
    outs: Vec<[u8; 128]>,
}

impl Hand {
    fn new(workload: &Workload) -> Hand {
        let rules = KeyRules { range: workload.keys, ..KeyRules::default() };
        let sizes = ValueRules { size: SizeSpec::Fixed(100), compressed_share: 0.5 };
        let sampler =
            Sampler::new(&Distribution::Uniform, workload.keys, 1, Partition { index: 0, count: 1 }, false);
        Hand {
            clock: Clock::calibrate(),
            keys: Keys::new(&rules, workload.seed).expect("the rules are right"),
            values: Values::new(&sizes, workload.seed).expect("the rules are right"),
            sampler: sampler.expect("the distribution is right"),
            random: Random::stream(3, 0),
            keys_ahead: vec![[0; KEY_BYTES]; AHEAD],
            values_ahead: vec![[0; VALUE_BYTES]; AHEAD],
            outs: vec![[0; 128]; AHEAD],
        }
    }

    /// Writes every key once, in random order, in transactions of 100 that `commit` executes.
    fn fill(&mut self, keys: u64, mut commit: impl FnMut(&[(Vec<u8>, Vec<u8>)])) {
        let order = Permutation::new(keys, 5);
        let mut rows = Vec::new();
        for place in 0..keys {
            let index = order.at(place);
            self.keys.write(index, &mut self.keys_ahead[0]);
            self.values.write(index, 1, &mut self.values_ahead[0]);
            rows.push((self.keys_ahead[0].to_vec(), self.values_ahead[0].to_vec()));
            if rows.len() == 100 || place + 1 == keys {
                commit(&rows);
                rows.clear();
            }
        }
    }

    /// Warms up and runs in its own thread, as the core's workers do: the allocator treats the first thread
    /// differently from all others.
    fn in_a_thread(
        &mut self,
        size: &Size,
        op: Op,
        mut call: impl FnMut(&[u8], &[u8], &mut [u8]) + Send,
    ) -> Cost {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                self.run(size.warm, op, &mut call);
                self.run(size.ops, op, &mut call)
            });
            worker.join().expect("the loop does not panic")
        })
    }

    /// Runs `ops` ops; the stamp at the end of one is the start of the next. Keys and values are prepared in advance, as
    /// in the core. With other work between two ops, a call's last loads would complete during that work and not be in
    /// its time, because the stamp does not wait for them (10 % of a get of LMDB).
    fn run(&mut self, ops: u64, op: Op, mut call: impl FnMut(&[u8], &[u8], &mut [u8])) -> Cost {
        let begin = self.clock.now();
        let ahead = if op == Op::Get { AHEAD } else { 8 };
        let (mut inside, mut number) = (0, 0);
        while number < ops {
            let count = ahead.min((ops - number) as usize);
            for place in 0..count {
                let index = self.sampler.next(&mut self.random);
                self.keys.write(index, &mut self.keys_ahead[place]);
                if op == Op::Put {
                    self.values.write(index, number + place as u64 + 1, &mut self.values_ahead[place]);
                }
            }
            let mut start = self.clock.now();
            for place in 0..count {
                call(&self.keys_ahead[place], &self.values_ahead[place], &mut self.outs[place]);
                let end = self.clock.now();
                inside += end - start;
                start = end;
            }
            number += count as u64;
        }
        let whole = self.clock.now() - begin;
        let per_op = |ticks: u64| self.clock.to_ns(ticks) as f64 / ops as f64;
        Cost { inside: per_op(inside), whole: per_op(whole) }
    }
}

/// The hand-written loop over redb: a transaction per op, like its driver.
fn by_hand_on_redb(folder: &Path, hand: &mut Hand, size: &Size, op: Op) -> Cost {
    let database = redb::Database::builder().create(folder.join("data.redb")).expect("a new file");
    hand.fill(size.keys, |rows| {
        let mut transaction = database.begin_write().expect("a write");
        transaction.set_durability(redb::Durability::None).expect("a level");
        let mut table = transaction.open_table(TABLE).expect("a table");
        for (key, value) in rows {
            table.insert(&key[..], &value[..]).expect("a put");
        }
        drop(table);
        transaction.commit().expect("a commit");
    });
    let call = |key: &[u8], value: &[u8], out: &mut [u8]| match op {
        Op::Get => {
            let transaction = database.begin_read().expect("a read");
            let table = transaction.open_table(TABLE).expect("the table is there");
            let found = table.get(key).expect("a get").expect("every key is there");
            out[..found.value().len()].copy_from_slice(found.value());
        }
        Op::Put => {
            let mut transaction = database.begin_write().expect("a write");
            transaction.set_durability(redb::Durability::None).expect("a level");
            drop(
                transaction.open_table(TABLE).expect("the table is there").insert(key, value).expect("a put"),
            );
            transaction.commit().expect("a commit");
        }
    };
    hand.in_a_thread(size, op, call)
}

/// The hand-written loop over LMDB.
fn by_hand_on_lmdb(folder: &Path, hand: &mut Hand, size: &Size, op: Op) -> Cost {
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 30).max_dbs(1);
    // SAFETY: the folder is the bench's own, and no other process has it open.
    let environment = unsafe { options.flags(EnvFlags::NO_SYNC).open(folder) }.expect("a new folder");
    let mut transaction = environment.write_txn().expect("a write");
    let database = environment.create_database::<Bytes, Bytes>(&mut transaction, None).expect("a database");
    transaction.commit().expect("a commit");
    hand.fill(size.keys, |rows| {
        let mut transaction = environment.write_txn().expect("a write");
        for (key, value) in rows {
            database.put(&mut transaction, key, value).expect("a put");
        }
        transaction.commit().expect("a commit");
    });
    let call = |key: &[u8], value: &[u8], out: &mut [u8]| match op {
        Op::Get => {
            let transaction = environment.read_txn().expect("a read");
            let found = database.get(&transaction, key).expect("a get").expect("every key is there");
            out[..found.len()].copy_from_slice(found);
        }
        Op::Put => {
            let mut transaction = environment.write_txn().expect("a write");
            database.put(&mut transaction, key, value).expect("a put");
            transaction.commit().expect("a commit");
        }
    };
    let cost = hand.in_a_thread(size, op, call);
    environment.prepare_for_closing().wait();
    cost
}

/// The amount of work in a round.
struct Size {
    keys: u64,
    warm: u64,
    ops: u64,
    rounds: usize,
}

fn workload(size: &Size, op: Op) -> Workload {
    let mut workload = builtin("read-random").expect("it is built in");
    workload.keys = size.keys;
    workload.durability = Durability::None;
    let mix = match op {
        Op::Get => Mix { get: 1.0, ..Mix::default() },
        Op::Put => Mix { update: 1.0, ..Mix::default() },
    };
    let phase = |name: &str, ops: u64| Phase { name: name.into(), mix, ops, threads: 1, ..Phase::default() };
    let mut fill = workload.phases[0].clone();
    fill.seconds = 0.0;
    workload.phases = vec![fill, phase("warm", size.warm), phase("measured", size.ops)];
    workload
}

/// The core's side: fills a new database in `folder`, warms up, and measures.
fn by_core(registry: &Registry, engine: &str, folder: &Path, workload: &Workload) -> PhaseRecord {
    let trial = Trial {
        id: "fidelity".into(),
        order: 0,
        repetition: 1,
        engine: engine.into(),
        options: Vec::new(),
        workload: workload.clone().into(),
        seed: None,
        placement: Default::default(),
        reused: false,
        paranoid: false,
        is_floor: false,
    };
    let engine = registry.engine(engine).expect("it is built in");
    let clock = Clock::calibrate();
    let record = kvdyno::run_trial(&trial, engine, folder, clock, &mut |_| {}, &|_| Ok(()));
    let mut record = record.expect("the trial can be set up");
    assert_eq!(record.outcome, Outcome::Ok);
    record.phases.pop().expect("three phases")
}

fn compare(registry: &Registry, engine: &str, op: Op, is_small: bool) -> Vec<Row> {
    let size = match (is_small, op) {
        (true, _) => Size { keys: 200, warm: 100, ops: 200, rounds: 3 },
        (false, Op::Get) => Size { keys: 100_000, warm: 100_000, ops: 400_000, rounds: 21 },
        (false, Op::Put) => Size { keys: 100_000, warm: 10_000, ops: 60_000, rounds: 21 },
    };
    let workload = workload(&size, op);
    let by_hand = || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut hand = Hand::new(&workload);
        match engine {
            "redb" => by_hand_on_redb(folder.path(), &mut hand, &size, op),
            _ => by_hand_on_lmdb(folder.path(), &mut hand, &size, op),
        }
    };
    let by_core = || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = by_core(registry, engine, folder.path(), &workload);
        let per_op = |ns: u64| ns as f64 / size.ops as f64;
        Cost { inside: per_op(record.threads[0].inside_ns), whole: per_op(record.elapsed_ns) }
    };
    let (mut inside, mut whole) = (Vec::new(), Vec::new());
    for round in 0..size.rounds {
        let (core, hand) = if round % 2 == 0 {
            let core = by_core();
            (core, by_hand())
        } else {
            let hand = by_hand();
            (by_core(), hand)
        };
        inside.push((core.inside / hand.inside - 1.0) * 100.0);
        whole.push(core.whole - hand.whole);
    }
    let name = format!("{engine} {}", if op == Op::Get { "get" } else { "put" });
    vec![
        resolved(format!("{name}: inside the call, core over loop"), "%", &inside, INSIDE_PERCENT),
        resolved(format!("{name}: whole loop, core over loop"), "ns/op", &whole, WHOLE_NS),
    ]
}

/// The median with its interval; the verdict is "not resolved" if the interval includes the goal.
pub(crate) fn resolved(name: String, unit: &'static str, sample: &[f64], goal: f64) -> Row {
    let middle = median(sample).unwrap_or(f64::NAN);
    let Some(interval) = interval_of_median(sample) else { return Row::new(name, middle, unit, None) };
    let call = match () {
        () if interval.high <= goal => "ok",
        () if interval.low > goal => "OVER",
        () => "not resolved",
    };
    let text = format!("[{:.2}, {:.2}], n = {}: {call}", interval.low, interval.high, sample.len());
    Row::with_text(name, middle, unit, goal, text)
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    let registry = Registry::load(&[]);
    let mut rows = Vec::new();
    for engine in ["lmdb", "redb"] {
        for op in [Op::Get, Op::Put] {
            rows.extend(compare(&registry, engine, op, is_small));
        }
    }
    rows
}
