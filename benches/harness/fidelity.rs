//! The core compared with a hand-written loop on the same crate: the same keys, each op stamped, the same bytes
//! delivered, in one process, alternating. Each side has a database that was just filled in the same way, because a
//! database that the other has written to is in another state. The core's reads are checked and counted in a histogram;
//! the hand-written loop does neither. A bare loop, with all keys made before and no stamps, is what the core's engine
//! throughput is to estimate; it is compared in one and in two threads.

#![allow(unsafe_code, reason = "it calls the engine's C interface")]

use crate::{Row, trial};
use heed::types::Bytes;
use heed::{EnvFlags, EnvOpenOptions};
use kvdyno::Clock;
use kvdyno::Registry;
use kvdyno::{Distribution, KeyRules, Keys, Partition, Permutation, Random};
use kvdyno::{Durability, Mix, Phase, Workload, builtin};
use kvdyno::{Outcome, PhaseRecord};
use kvdyno::{Sampler, SizeSpec, ValueRules, Values};
use kvdyno::{interval_of_median, median};
use redb::ReadableDatabase;
use std::path::Path;
use std::sync::Barrier;

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

/// The maximum difference of the engine throughput from a bare loop's rate, either way.
const THROUGHPUT_PERCENT: f64 = 5.0;

/// What one side has measured.
struct Cost {
    /// Nanoseconds per op and thread inside the calls.
    inside: f64,
    /// Nanoseconds per op and thread of the whole loop.
    whole: f64,
    /// Ops per second of all threads: of a bare loop, or the core's engine throughput.
    throughput: f64,
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
    fn new(workload: &Workload, thread: u64) -> Hand {
        let rules = KeyRules { range: workload.keys, ..KeyRules::default() };
        let sizes = ValueRules { size: SizeSpec::Fixed(100), compressed_share: 0.5 };
        let sampler =
            Sampler::new(&Distribution::Uniform, workload.keys, 1, Partition { index: 0, count: 1 }, false);
        Hand {
            clock: Clock::calibrate(),
            keys: Keys::new(&rules, workload.seed).expect("the rules are right"),
            values: Values::new(&sizes, workload.seed).expect("the rules are right"),
            sampler: sampler.expect("the distribution is right"),
            random: Random::stream(3, thread),
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

    /// Runs `ops` ops; the stamp at the end of one is the start of the next. Keys and values are prepared in advance, as
    /// in the core. With other work between two ops, a call's last loads would complete during that work and not be in
    /// its time, because the stamp does not wait for them (10 % of a get of LMDB).
    fn run(&mut self, ops: u64, op: Op, call: &impl Fn(&[u8], &[u8], &mut [u8])) -> (f64, f64) {
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
        (per_op(inside), per_op(whole))
    }

    /// Waits for the other threads, then runs `ops` ops without stamps, with keys and values made before. Returns the ticks
    /// of its first and last moment.
    fn run_bare(
        &mut self,
        ops: u64,
        op: Op,
        barrier: &Barrier,
        call: &impl Fn(&[u8], &[u8], &mut [u8]),
    ) -> (u64, u64) {
        let mut made = Vec::with_capacity(ops as usize);
        for number in 0..ops {
            let index = self.sampler.next(&mut self.random);
            let (mut key, mut value) = ([0; KEY_BYTES], [0; VALUE_BYTES]);
            self.keys.write(index, &mut key);
            if op == Op::Put {
                self.values.write(index, number + 1, &mut value);
            }
            made.push((key, value));
        }
        barrier.wait();
        let begin = self.clock.now();
        for (key, value) in &made {
            call(key, value, &mut self.outs[0]);
        }
        (begin, self.clock.now())
    }
}

/// What one thread of a hand-written loop measured.
struct Timed {
    inside: f64,
    whole: f64,
    /// The ticks of the first and last moment of its bare loop.
    bare: (u64, u64),
}

/// Warms up and runs in threads of its own, as the core's workers do: the allocator treats the first thread differently
/// from all others.
fn by_hand(hands: &mut [Hand], size: &Size, op: Op, call: impl Fn(&[u8], &[u8], &mut [u8]) + Sync) -> Cost {
    let (clock, barrier) = (hands[0].clock, Barrier::new(hands.len()));
    let threads = hands.len() as f64;
    let run = |hand: &mut Hand| {
        hand.run(size.warm, op, &call);
        barrier.wait();
        let (inside, whole) = hand.run(size.ops, op, &call);
        Timed { inside, whole, bare: hand.run_bare(size.ops, op, &barrier, &call) }
    };
    let run = &run;
    let runs = std::thread::scope(|scope| {
        let workers: Vec<_> = hands.iter_mut().map(|hand| scope.spawn(move || run(hand))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join().expect("it does not panic");
        workers.into_iter().map(join).collect::<Vec<Timed>>()
    });
    let mean = |of: fn(&Timed) -> f64| runs.iter().map(of).sum::<f64>() / threads;
    let begin = runs.iter().map(|run| run.bare.0).min().unwrap_or(0);
    let end = runs.iter().map(|run| run.bare.1).max().unwrap_or(0);
    Cost {
        inside: mean(|run| run.inside),
        whole: mean(|run| run.whole),
        throughput: size.ops as f64 * threads * 1e9 / clock.to_ns(end - begin) as f64,
    }
}

/// The hand-written loop over redb: a transaction per op, like its driver.
fn by_hand_on_redb(folder: &Path, hands: &mut [Hand], size: &Size, op: Op) -> Cost {
    let database = redb::Database::builder().create(folder.join("data.redb")).expect("a new file");
    hands[0].fill(size.keys, |rows| {
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
    by_hand(hands, size, op, call)
}

/// The hand-written loop over LMDB.
fn by_hand_on_lmdb(folder: &Path, hands: &mut [Hand], size: &Size, op: Op) -> Cost {
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 30).max_dbs(1);
    // SAFETY: the folder is the bench's own, and no other process has it open.
    let environment = unsafe { options.flags(EnvFlags::NO_SYNC).open(folder) }.expect("a new folder");
    let mut transaction = environment.write_txn().expect("a write");
    let database = environment.create_database::<Bytes, Bytes>(&mut transaction, None).expect("a database");
    transaction.commit().expect("a commit");
    hands[0].fill(size.keys, |rows| {
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
    let cost = by_hand(hands, size, op, call);
    environment.prepare_for_closing().wait();
    cost
}

/// The amount of work in a round.
struct Size {
    keys: u64,
    warm: u64,
    /// Of each thread.
    ops: u64,
    rounds: usize,
}

fn workload(size: &Size, op: Op, threads: u32) -> Workload {
    let mut workload = builtin("read-random").expect("it is built in");
    workload.keys = size.keys;
    workload.durability = Durability::None;
    let mix = match op {
        Op::Get => Mix { get: 1.0, ..Mix::default() },
        Op::Put => Mix { update: 1.0, ..Mix::default() },
    };
    let phase = |name: &str, ops: u64| Phase {
        name: name.into(),
        mix,
        ops: ops * u64::from(threads),
        threads,
        ..Phase::default()
    };
    let mut fill = workload.phases[0].clone();
    fill.seconds = 0.0;
    workload.phases = vec![fill, phase("warm", size.warm), phase("measured", size.ops)];
    workload
}

/// The core's side: fills a new database in `folder`, warms up, and measures.
fn by_core(registry: &Registry, engine: &str, folder: &Path, workload: &Workload) -> PhaseRecord {
    let trial = trial(engine, workload, None, false);
    let engine = registry.engine(engine).expect("it is built in");
    let clock = Clock::calibrate();
    let record = kvdyno::run_trial(&trial, engine, folder, clock, &mut |_| {}, &|_| Ok(()));
    let mut record = record.expect("the trial can be set up");
    assert_eq!(record.outcome, Outcome::Ok);
    record.phases.pop().expect("three phases")
}

fn compare(registry: &Registry, engine: &str, op: Op, threads: u32, is_small: bool) -> Vec<Row> {
    let size = match (is_small, op) {
        (true, _) => Size { keys: 200, warm: 100, ops: 200, rounds: 3 },
        (false, Op::Get) => Size { keys: 100_000, warm: 100_000, ops: 400_000, rounds: 21 },
        (false, Op::Put) => Size { keys: 100_000, warm: 10_000, ops: 60_000, rounds: 21 },
    };
    let workload = workload(&size, op, threads);
    let by_hand = || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut hands: Vec<Hand> = (0..threads).map(|thread| Hand::new(&workload, thread.into())).collect();
        match engine {
            "redb" => by_hand_on_redb(folder.path(), &mut hands, &size, op),
            _ => by_hand_on_lmdb(folder.path(), &mut hands, &size, op),
        }
    };
    let by_core = || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = by_core(registry, engine, folder.path(), &workload);
        let per_op = |ns: u64| ns as f64 / size.ops as f64;
        let inside: u64 = record.threads.iter().map(|thread| thread.inside_ns).sum();
        Cost {
            inside: per_op(inside) / f64::from(threads),
            whole: per_op(record.elapsed_ns),
            throughput: record.engine_ops_per_second().expect("the phase has a time"),
        }
    };
    let (mut inside, mut whole) = (Vec::new(), Vec::new());
    let (mut throughput, mut rate) = (Vec::new(), Vec::new());
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
        throughput.push((core.throughput / hand.throughput - 1.0) * 100.0);
        rate.push((1e9 * f64::from(threads) / core.whole / hand.throughput - 1.0) * 100.0);
    }
    let kind = if op == Op::Get { "get" } else { "put" };
    let name = format!("{engine} {kind}, {threads} thread{}", if threads == 1 { "" } else { "s" });
    vec![
        resolved(format!("{name}: inside the call, core over loop"), "%", &inside, INSIDE_PERCENT),
        resolved(format!("{name}: whole loop, core over loop"), "ns/op", &whole, WHOLE_NS),
        agrees(format!("{name}: net ops/s, core over bare loop"), &throughput, THROUGHPUT_PERCENT),
        Row::new(format!("{name}: ops/s, core over bare loop"), median(&rate).unwrap_or(f64::NAN), "%", None),
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

/// The median with its interval, and whether it is within the goal of 0, either way.
fn agrees(name: String, sample: &[f64], goal: f64) -> Row {
    let middle = median(sample).unwrap_or(f64::NAN);
    let Some(interval) = interval_of_median(sample) else { return Row::new(name, middle, "%", None) };
    let call = match () {
        () if interval.low >= -goal && interval.high <= goal => "ok",
        () if interval.low > goal || interval.high < -goal => "OVER",
        () => "not resolved",
    };
    let text = format!("[{:.2}, {:.2}], n = {}: {call}", interval.low, interval.high, sample.len());
    Row::with_text(name, middle, "%", goal, text)
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    let registry = Registry::load(&[]);
    let mut rows = Vec::new();
    for engine in ["lmdb", "redb"] {
        for (op, threads) in [(Op::Get, 1), (Op::Put, 1), (Op::Get, 2), (Op::Put, 2)] {
            rows.extend(compare(&registry, engine, op, threads, is_small));
        }
    }
    rows
}
