//! The core against a loop written by hand on the same crate: the same keys, each op stamped, the same bytes
//! delivered, in one process on one database, alternating. Its own reads are checked and counted in a histogram; the
//! hand-written loop does neither.

use crate::Row;
use heed::types::Bytes;
use heed::{EnvFlags, EnvOpenOptions};
use kvdyno::engine::Registry;
use kvdyno::generator::{Distribution, KeyRules, Keys, Part, Random, Sampler, SizeSpec, ValueRules, Values};
use kvdyno::measure::Clock;
use kvdyno::results::statistics::{interval_of_median, median};
use kvdyno::results::{Outcome, PhaseRecord, Trial};
use kvdyno::workload::{Durability, Mix, Phase, Workload, builtin};
use redb::ReadableDatabase;
use std::path::Path;

const TABLE: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("k0");
/// More inside the call than this is the core's fault.
const INSIDE_PERCENT: f64 = 3.0;
/// More around the calls than this, per op, is too.
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

/// A loop's own state: the same draws as the core's.
struct Hand {
    clock: Clock,
    keys: Keys,
    values: Values,
    sampler: Sampler,
    random: Random,
    key: Vec<u8>,
    value: Vec<u8>,
    out: Vec<u8>,
}

impl Hand {
    fn new(workload: &Workload) -> Hand {
        let rules = KeyRules { range: workload.keys, ..KeyRules::default() };
        let sizes = ValueRules { size: SizeSpec::Fixed(100), compressed_share: 0.5 };
        let sampler =
            Sampler::new(&Distribution::Uniform, workload.keys, 1, Part { index: 0, count: 1 }, false);
        Hand {
            clock: Clock::calibrate(),
            keys: Keys::new(&rules, workload.seed).expect("the rules are right"),
            values: Values::new(&sizes, workload.seed).expect("the rules are right"),
            sampler: sampler.expect("the distribution is right"),
            random: Random::stream(3, 0),
            key: vec![0; 16],
            value: vec![0; 100],
            out: vec![0; 128],
        }
    }

    /// Runs `ops` ops, each between two stamps of which it shares one with the next.
    fn run(&mut self, ops: u64, op: Op, mut call: impl FnMut(&[u8], &[u8], &mut [u8])) -> Cost {
        let begin = self.clock.now();
        let mut inside = 0;
        for number in 0..ops {
            let index = self.sampler.next(&mut self.random);
            self.keys.write(index, &mut self.key);
            if op == Op::Put {
                self.values.write(index, number + 1, &mut self.value);
            }
            let start = self.clock.now();
            call(&self.key, &self.value, &mut self.out);
            inside += self.clock.now() - start;
        }
        let whole = self.clock.now() - begin;
        let per_op = |ticks: u64| self.clock.to_ns(ticks) as f64 / ops as f64;
        Cost { inside: per_op(inside), whole: per_op(whole) }
    }
}

/// The hand-written loop over redb: a transaction per op, as its driver.
fn by_hand_on_redb(folder: &Path, hand: &mut Hand, warm: u64, ops: u64, op: Op) -> Cost {
    let database = redb::Database::builder().create(folder.join("data.redb")).expect("it was closed");
    let mut call = |key: &[u8], value: &[u8], out: &mut [u8]| match op {
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
    hand.run(warm, op, &mut call);
    hand.run(ops, op, &mut call)
}

/// The hand-written loop over LMDB.
fn by_hand_on_lmdb(folder: &Path, hand: &mut Hand, warm: u64, ops: u64, op: Op) -> Cost {
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 30).max_dbs(1);
    // SAFETY: the bench's own folder, and no other process has it open.
    let environment = unsafe { options.flags(EnvFlags::NO_SYNC).open(folder) }.expect("it was closed");
    let transaction = environment.read_txn().expect("a read");
    let database =
        environment.open_database::<Bytes, Bytes>(&transaction, None).expect("a look").expect("it is there");
    drop(transaction);
    let mut call = |key: &[u8], value: &[u8], out: &mut [u8]| match op {
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
    hand.run(warm, op, &mut call);
    let cost = hand.run(ops, op, &mut call);
    environment.prepare_for_closing().wait();
    cost
}

fn workload(keys: u64, warm: u64, ops: u64, op: Op) -> Workload {
    let mut workload = builtin("read-random").expect("it is built in");
    workload.keys = keys;
    workload.durability = Durability::None;
    let mix = match op {
        Op::Get => Mix { get: 1.0, ..Mix::default() },
        Op::Put => Mix { update: 1.0, ..Mix::default() },
    };
    let phase = |name: &str, ops: u64| Phase { name: name.into(), mix, ops, threads: 1, ..Phase::default() };
    let mut fill = workload.phases[0].clone();
    fill.seconds = 0.0;
    workload.phases = vec![fill, phase("warm", warm), phase("measured", ops)];
    workload
}

/// The core's side: fills a new database in `folder`, warms up, measures.
fn by_core(registry: &Registry, engine: &str, folder: &Path, workload: &Workload) -> PhaseRecord {
    let trial = Trial {
        id: "fidelity".into(),
        order: 0,
        repetition: 1,
        engine: engine.into(),
        options: Vec::new(),
        workload: workload.clone(),
    };
    let engine = registry.engine(engine).expect("it is built in");
    let clock = Clock::calibrate();
    let record = kvdyno::runner::run_trial(&trial, engine, folder, clock, &mut |_| {}, &|_| Ok(()));
    let mut record = record.expect("the trial can be set up");
    assert_eq!(record.outcome, Outcome::Ok);
    record.phases.pop().expect("three phases")
}

fn compare(registry: &Registry, engine: &str, op: Op, is_small: bool) -> Vec<Row> {
    let (keys, warm, ops, rounds) = match (is_small, op) {
        (true, _) => (200, 100, 200, 3),
        (false, Op::Get) => (100_000, 100_000, 400_000, 21),
        (false, Op::Put) => (100_000, 10_000, 60_000, 21),
    };
    let workload = workload(keys, warm, ops, op);
    let (mut inside, mut whole) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut hand = Hand::new(&workload);
        let mut by_hand = |hand: &mut Hand| match engine {
            "redb" => by_hand_on_redb(folder.path(), hand, warm, ops, op),
            _ => by_hand_on_lmdb(folder.path(), hand, warm, ops, op),
        };
        let record = by_core(registry, engine, folder.path(), &workload);
        let core = Cost {
            inside: record.threads[0].inside_ns as f64 / ops as f64,
            whole: record.elapsed_ns as f64 / ops as f64,
        };
        // Twice, so that a drift of the machine within a round shows as noise and not as a difference.
        let first = by_hand(&mut hand);
        let second = by_hand(&mut hand);
        let hand = if round % 2 == 0 { first } else { second };
        inside.push((core.inside / hand.inside - 1.0) * 100.0);
        whole.push(core.whole - hand.whole);
    }
    let name = format!("{engine} {}", if op == Op::Get { "get" } else { "put" });
    vec![
        resolved(format!("{name}: inside the call, core over hand"), "%", &inside, INSIDE_PERCENT),
        resolved(format!("{name}: whole loop, core over hand"), "ns/op", &whole, WHOLE_NS),
    ]
}

/// The median with its interval; it is called only where the interval is narrow enough to tell.
fn resolved(name: String, unit: &'static str, sample: &[f64], goal: f64) -> Row {
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
