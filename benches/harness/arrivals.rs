//! Requests that arrive at a rate: how well the sender keeps their moments, what sending costs, and whether response times are
//! those of queueing theory on an engine with planted service times.

use crate::{Row, trial};
use kvdyno::abi::*;
use kvdyno::{Arrivals, Clock, Engine, Mix, Outcome, Phase, PhaseRecord, Random, builtin};
use kvdyno_driver::{Config, Driver, Error, Info, Level, Op, Opened, Session, Status, table};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Service times: none.
const NONE: u8 = 0;
/// Always the same.
const FIXED: u8 = 1;
/// Exponential, with this mean.
const EXPONENTIAL: u8 = 2;
/// None, but the first 200 ms of each second nothing is served.
const STALLS: u8 = 3;
/// The mean, nanoseconds.
const SERVICE_NS: u64 = 50_000;

/// An engine with planted service times.
struct Planted<const KIND: u8>(Instant, AtomicU64);

struct PlantedSession<const KIND: u8> {
    begin: Instant,
    random: Random,
}

impl<const KIND: u8> Driver for Planted<KIND> {
    const INFO: Info = Info {
        name: c"planted",
        engine: c"waits",
        language: c"Rust",
        family: c"none",
        capabilities: KV_STORES_NOTHING | KV_IN_MEMORY | KV_ORDERED | KV_CAN_DELETE | KV_OVERWRITE,
        levels: &[Level::None],
        key_size_max: 0,
        options: &[],
    };
    type Session<'db> = PlantedSession<KIND>;

    fn open(_: &Config<'_>, opened: &mut Opened<'_>) -> Result<Self, Error> {
        opened.level(Level::None);
        opened.version("1");
        Ok(Planted(Instant::now(), AtomicU64::new(1)))
    }

    fn session(&self) -> Result<Self::Session<'_>, Error> {
        let random = Random::seeded(self.1.fetch_add(1, Ordering::Relaxed));
        Ok(PlantedSession { begin: self.0, random })
    }
}

impl<const KIND: u8> PlantedSession<KIND> {
    fn work(&mut self) -> Result<Status, Error> {
        let spin = |ns: f64| {
            let begin = Instant::now();
            while (begin.elapsed().as_nanos() as f64) < ns {
                std::hint::spin_loop();
            }
        };
        match KIND {
            FIXED => spin(SERVICE_NS as f64),
            EXPONENTIAL => spin(-(1.0 - self.random.unit()).ln() * SERVICE_NS as f64),
            STALLS => {
                let millisecond = self.begin.elapsed().as_millis() as u64 % 1_000;
                if millisecond < 200 {
                    std::thread::sleep(Duration::from_millis(200 - millisecond));
                }
            }
            _ => {}
        }
        Ok(Status::Ok)
    }
}

impl<const KIND: u8> Session for PlantedSession<KIND> {
    fn get(&mut self, _: &mut Op<'_>) -> Result<Status, Error> {
        self.work()
    }

    fn put(&mut self, _: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    fn delete(&mut self, _: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    fn scan(&mut self, _: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }

    fn merge(&mut self, _: &mut Op<'_>) -> Result<Status, Error> {
        Ok(Status::Ok)
    }
}

/// Gets for `seconds` on an engine with these service times; none: in a closed loop.
fn measure(
    table: &'static kv_driver,
    rate: Option<&str>,
    seconds: f64,
    threads: u32,
    seed: u64,
) -> PhaseRecord {
    let mut workload = builtin("read-random").expect("it is built in");
    workload.keys = 100_000;
    let rate = rate.map(|text| text.parse().expect("a rate"));
    let mix = Mix { get: 1.0, ..Mix::default() };
    workload.phases = vec![Phase { name: "run".into(), mix, rate, seconds, threads, ..Phase::default() }];
    let engine = Engine::of_table(table);
    let trial = trial(engine.name(), &workload, Some(seed), true);
    let data = tempfile::tempdir().expect("a temporary folder");
    let record = kvdyno::run_trial(&trial, engine, data.path(), Clock::calibrate(), &mut |_| {}, &|_| Ok(()));
    let mut record = record.expect("the trial can be set up");
    assert_eq!(record.outcome, Outcome::Ok);
    record.phases.pop().expect("a phase")
}

fn arrivals(record: &PhaseRecord) -> &Arrivals {
    record.arrivals.as_ref().expect("the phase has a rate")
}

/// A percentile of response times, nanoseconds.
fn response(record: &PhaseRecord, part: f64) -> f64 {
    let times = record.kinds[0].response_ns.as_ref().expect("the phase has a rate");
    times.quantile((part * 1e4).round() as u64, 10_000).expect("it has times") as f64
}

/// The sender alone: at a rate of which a thread is capable, and twice that with two threads if there are CPUs for them.
fn sender(is_small: bool) -> Vec<Row> {
    static NULL: kv_driver = table::<Planted<NONE>>();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let sizes: &[(&str, u32)] = if cpus >= 4 { &[("100k", 1), ("1M", 2)] } else { &[("100k", 1)] };
    let (runs, seconds) = if is_small { (1, 0.02) } else { (100, 0.5) };
    let mut rows = Vec::new();
    for (rate, threads) in sizes {
        let name = format!("{rate}/s, {threads} thread{}", if *threads == 1 { "" } else { "s" });
        let text = format!("poisson:{rate}");
        let all: Vec<PhaseRecord> =
            (0..runs).map(|seed| measure(&NULL, Some(&text), seconds, *threads, seed)).collect();
        let is_poisson =
            |record: &&PhaseRecord| arrivals(record).gaps.is_some_and(|gaps| gaps.probability > 0.05);
        let passed = all.iter().filter(is_poisson).count();
        let text = format!("{passed} of {runs} pass the test of their gaps at 5 %");
        rows.push(Row::with_text(
            format!("{name}: not Poisson"),
            (runs as usize - passed) as f64,
            "runs",
            5.0,
            text,
        ));
        let mut late = kvdyno_measure::Histogram::new();
        all.iter().for_each(|record| late.merge(&arrivals(record).late_ns));
        for (part, name_of) in [(5_000, "p50"), (9_900, "p99"), (9_990, "p99.9")] {
            let ns = late.quantile(part, 10_000).unwrap_or(0) as f64;
            let goal = (part == 9_990).then_some(10_000.0);
            rows.push(Row::new(format!("{name}: late at {name_of}"), ns, "ns", goal));
        }
        let all = measure(&NULL, Some(rate), seconds * 20.0, *threads, 1);
        let wanted: f64 = rate.replace('k', "e3").replace('M', "e6").parse().expect("a number");
        // The phase ends within microseconds of its time, and the first arrival is 2 ms after its start.
        let sent = arrivals(&all).sent as f64 / (seconds * 20.0 - 0.002);
        rows.push(Row::new(
            format!("{name}: rate missed by"),
            (sent / wanted - 1.0).abs() * 100.0,
            "%",
            Some(0.01),
        ));
    }
    rows
}

/// What a request at a rate costs more than one in a closed loop, both in calls of their own because the engine is slow.
fn cost(is_small: bool) -> Vec<Row> {
    static FIXED_TIMES: kv_driver = table::<Planted<FIXED>>();
    let seconds = if is_small { 0.02 } else { 2.0 };
    let outside = |rate: Option<&str>| {
        let record = measure(&FIXED_TIMES, rate, seconds, 1, 1);
        let thread = &record.threads[0];
        (thread.elapsed_ns - thread.inside_ns) as f64 / record.ops.max(1) as f64
    };
    let best = |rate: Option<&str>| (0..5).map(|_| outside(rate)).fold(f64::INFINITY, f64::min);
    let (closed, open) = (best(None), best(Some("poisson:1M")));
    vec![
        Row::new("closed loop: outside the call", closed, "ns/op", None),
        Row::new("at a rate over the capacity: outside the call", open, "ns/op", None),
        Row::new("sending at a rate over a closed loop", open - closed, "ns/op", Some(50.0)),
    ]
}

/// Response times against closed forms.
fn theory(is_small: bool) -> Vec<Row> {
    static FIXED_TIMES: kv_driver = table::<Planted<FIXED>>();
    static RANDOM_TIMES: kv_driver = table::<Planted<EXPONENTIAL>>();
    let seconds = |utilisation: f64| match (is_small, utilisation > 0.9) {
        (true, _) => 0.02,
        (_, true) => 120.0,
        _ => 30.0,
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    for (name, table, threads) in
        [("M/D/1", &FIXED_TIMES, 1), ("M/M/1", &RANDOM_TIMES, 1), ("M/D/2", &FIXED_TIMES, 2)]
    {
        if threads as usize > cpus {
            continue;
        }
        // A request occupies its thread for a little longer than its service time: it is drawn, sent and judged.
        let closed = measure(table, None, if is_small { 0.02 } else { 5.0 }, threads, 1);
        let service = closed.elapsed_ns as f64 * f64::from(threads) / closed.ops.max(1) as f64;
        for utilisation in [0.1, 0.5, 0.8, 0.95] {
            let per_second = utilisation * f64::from(threads) * 1e9 / service;
            let rate = format!("poisson:{per_second}");
            let record = measure(table, Some(&rate), seconds(utilisation), threads, 1);
            if is_small {
                rows.push(Row::new(format!("{name}, utilisation {utilisation}"), 0.0, "%", None));
                continue;
            }
            for part in [0.5, 0.9, 0.99, 0.999] {
                let expected = match name {
                    "M/M/1" => -(1.0_f64 - part).ln() * service / (1.0 - utilisation),
                    _ => service * (1.0 + deterministic_wait(utilisation, threads as usize, part)),
                };
                let off = (response(&record, part) / expected - 1.0) * 100.0;
                let text = format!("{:.1} us, not {:.1} us", response(&record, part) / 1e3, expected / 1e3);
                let name = format!("{name}, utilisation {utilisation}: p{} off by", part * 100.0);
                rows.push(Row::with_text(name, off, "%", 2.0, text));
            }
        }
    }
    rows
}

/// The quantile of the waiting time of M/D/c, in service times: Franx, "A simple solution for the M/D/c waiting time distribution",
/// Operations Research Letters 29, 2001, from the stationary numbers of requests, which the recursion of one service time gives.
fn deterministic_wait(utilisation: f64, servers: usize, part: f64) -> f64 {
    let load = utilisation * servers as f64;
    const STATES: usize = 600;
    let poisson = |mean: f64, count: usize| {
        let mut terms = vec![(-mean).exp()];
        (1..count).for_each(|k| terms.push(terms[k - 1] * mean / k as f64));
        terms
    };
    let arrive = poisson(load, STATES);
    let mut state = vec![0.0; STATES];
    state[0] = 1.0;
    for _ in 0..20_000 {
        let mut next = vec![0.0; STATES];
        for (count, share) in state.iter().enumerate().filter(|(_, share)| **share > 1e-18) {
            let left = count.saturating_sub(servers);
            for (more, chance) in arrive.iter().enumerate().take(STATES - left).take(60) {
                next[left + more] += share * chance;
            }
        }
        let change: f64 = next.iter().zip(&state).map(|(new, old)| (new - old).abs()).sum();
        state = next;
        if change < 1e-13 {
            break;
        }
    }
    // The chance that at most `waiting` requests wait.
    let mut sums = Vec::new();
    let mut sum = state[..servers].iter().sum::<f64>();
    for share in &state[servers..] {
        sum += share;
        sums.push(sum);
    }
    let below = |time: f64| {
        let whole = time.floor() as usize + 1;
        let terms = poisson(load * (whole as f64 - time), whole * servers);
        let at = |(j, term): (usize, &f64)| term * sums.get(whole * servers - 1 - j).copied().unwrap_or(1.0);
        terms.iter().enumerate().map(at).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 300.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) < part { low = middle } else { high = middle }
    }
    high
}

/// A stall of 200 ms each second: what a closed loop shows of it, and what users see.
fn stalls(is_small: bool) -> Vec<Row> {
    static STALLING: kv_driver = table::<Planted<STALLS>>();
    let seconds = if is_small { 0.02 } else { 10.0 };
    let closed = measure(&STALLING, None, seconds, 1, 1);
    let open = measure(&STALLING, Some("poisson:20k"), seconds, 1, 1);
    let p99 = closed.kinds[0].service_ns.quantile(99, 100).unwrap_or(0) as f64;
    let mut rows = vec![Row::new("stalls: p99 of a closed loop", p99 / 1e6, "ms", None)];
    for (part, expected) in [(0.9, 100.0), (0.99, 190.0)] {
        let off = (response(&open, part) / 1e6 / expected - 1.0) * 100.0;
        let text = format!("{:.1} ms, not {expected:.0} ms", response(&open, part) / 1e6);
        rows.push(Row::with_text(format!("stalls: response p{} off by", part * 100.0), off, "%", 10.0, text));
    }
    rows
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    [sender, cost, stalls, theory].iter().flat_map(|rows| rows(is_small)).collect()
}
