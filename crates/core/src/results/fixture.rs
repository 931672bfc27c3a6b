//! A run with everything that a report must show, generated from fixed numbers; the fixture files were written from it.

pub mod certificate;
pub mod sketch;

use super::store::RunFolder;
use super::{
    Check, CheckLevel, EngineFacts, HarnessTimes, KindRecord, Outcome, PhaseRecord, Plan, Proof, Record, Run,
    SCHEMA, Step, ThreadRecord, Trial,
};
use crate::results::{EndedBy, OpKind, Role, StepKind};
use crate::workload::{Collections, Durability, KeySpec, Mix, Phase, ValueSpec, Workload};
use kvdyno_measure::{
    ClockFacts, DiskUse, Histogram, Machine, Noise, Placement, SeriesRow, Usage, Warning, warning::Concern,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The version in the fixture, regardless of the tool's own version.
const TOOL_VERSION: &str = "0.1.0";

/// The engines of the fixture's run, in the order of the plan.
pub const ENGINES: [&str; 7] = ["null", "lmdb", "redb", "fjall", "sled", "sqlite", "mutant:stale-read"];

/// The folder of the fixture of schema 1. With `UPDATE=fixture` it is written again first, which is allowed only until a
/// version with this schema is released.
pub fn folder() -> PathBuf {
    static WRITE: Once = Once::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/results-v1");
    if std::env::var("UPDATE").is_ok_and(|what| what == "fixture") {
        WRITE.call_once(|| write(&folder));
    }
    folder
}

fn write(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("the fixture is in the work tree, which tests may write");
    }
    let parent = folder.parent().expect("the fixture's path has several parts");
    let run = Run { id: "results-v1".to_string(), ..run() };
    let mut written = RunFolder::create(parent, &run).expect("its folder was removed just before");
    for record in records() {
        written.save(&record).expect("every record of the fixture is planned and new");
    }
}

/// The run: seven engines, three repetitions in rotated order.
pub fn run() -> Run {
    let mut trials = Vec::new();
    for repetition in 1..=3_u32 {
        for place in 0..ENGINES.len() {
            let engine = ENGINES[(place + repetition as usize) % ENGINES.len()];
            trials.push(trial(trials.len() as u32, engine, repetition));
        }
    }
    Run {
        schema: SCHEMA,
        tool_version: TOOL_VERSION.to_string(),
        id: "2026-11-20T09-15-29-quick-2k-a1b2".to_string(),
        started_at: "2026-11-20T09:15:29Z".to_string(),
        plan: Plan {
            command: ["kvdyno", "run", "quick", "--keys", "2000"].map(String::from).to_vec(),
            trials,
            ..Plan::default()
        },
        proofs: vec![Proof {
            engine: "redb".to_string(),
            version: Some("1.2.3".to_string()),
            levels: vec!["power".to_string()],
            capabilities: vec!["ordered".to_string()],
        }],
        unverified: Vec::new(),
        absent: vec![("rocksdb".to_string(), "plug-in not built".to_string())],
        machine: machine(),
        clock: clock(),
        warnings: vec![warning(Concern::VirtualMachine, "It runs in a virtual machine (kvm).")],
        campaign: None,
        choice: None,
    }
}

/// The records of the run: one crash, one engine with wrong answers, one phase that an engine does not support, and one
/// trial that has not been measured.
pub fn records() -> Vec<Record> {
    let measured =
        run().plan.trials.into_iter().filter(|trial| trial.engine != "sqlite" || trial.repetition < 3);
    measured.map(record).collect()
}

fn trial(order: u32, engine: &str, repetition: u32) -> Trial {
    let options =
        if engine == "lmdb" { vec![("write-map".to_string(), "false".to_string())] } else { vec![] };
    Trial {
        id: format!("{order:04}-{}-quick-{repetition}", engine.replace(':', "-")),
        order,
        repetition,
        engine: engine.to_string(),
        options,
        workload: workload().into(),
        seed: None,
        placement: Placement::default(),
        reused: false,
        paranoid: false,
        counts_cycles: false,
        counts_calls: false,
        is_floor: engine == "null",
        load_generators: 1,
        nodes_option: None,
        load_generator: None,
        lengths: BTreeMap::new(),
    }
}

fn workload() -> Workload {
    let phase = |name: &str, mix: Mix| Phase { name: name.to_string(), mix, ..Phase::default() };
    let fill = Phase { each_key: true, ..phase("fill", Mix { put: 1.0, ..Mix::default() }) };
    let read = Phase { ops: 4_000, ..phase("read", Mix { get: 1.0, ..Mix::default() }) };
    let mixed = Mix { get: 0.5, update: 0.5, ..Mix::default() };
    let mixed = Phase { ops: 3_000, threads: 2, ..phase("mixed", mixed) };
    let sync = phase("sync", Mix { put: 1.0, ..Mix::default() });
    let sync = Phase { ops: 200, durability: Some(Durability::Power), ..sync };
    Workload {
        name: "quick".to_string(),
        about: "A first look.".to_string(),
        source: None,
        fixes: Vec::new(),
        variant_of: None,
        layouts: Vec::new(),
        seed: 1,
        runs: 3,
        budget_seconds: None,
        load_seconds: None,
        keys: 2_000,
        keyspaces: 1,
        collections: Collections::default(),
        key: KeySpec::default(),
        value: ValueSpec::default(),
        indexes: Vec::new(),
        durability: Durability::Process,
        or_weaker: false,
        sweep_once: false,
        cache_bytes: Some(64 << 20),
        memory_bytes: None,
        rounds: 1,
        faults: Vec::new(),
        phases: vec![fill, read, mixed, sync],
    }
}

/// A record of a trial with its engine's fixed numbers.
pub fn record(trial: Trial) -> Record {
    let mut phases = Vec::new();
    for (index, phase) in trial.workload.phases.iter().enumerate() {
        phases.push(phase_record(&trial, phase, index as u64));
    }
    let (outcome, kept) = outcome(&trial);
    phases.truncate(kept);
    Record {
        schema: SCHEMA,
        tool_version: TOOL_VERSION.to_string(),
        started_at: format!("2026-11-20T09:{:02}:00Z", 16 + trial.order),
        outcome,
        engine: Some(engine_facts(&trial).into()),
        phases,
        steps: steps(&trial),
        disk_after_close: (trial.engine != "null").then(|| disk(400_000)),
        rss_peak_bytes: Some(40 << 20),
        rss_before_open_bytes: Some(9 << 20),
        foreign: None,
        memory_cap: None,
        effective_cpus: None,
        clock: Some(clock()),
        noise: Some(Noise::default()),
        warnings: match (trial.engine.as_str(), trial.repetition) {
            ("sled", 1 | 2) => vec![warning(Concern::Load, "The load was 2.1 at the trial's begin.")],
            _ => vec![],
        },
        trial,
    }
}

/// How a trial ended, and how many of its phases were kept.
fn outcome(trial: &Trial) -> (Outcome, usize) {
    match (trial.engine.as_str(), trial.repetition) {
        ("fjall", 2) => {
            let stderr = vec!["thread 'flush' panicked".to_string(), "aborting".to_string()];
            (Outcome::Crashed { signal: "SIGABRT".to_string(), stderr, suspects: None }, 2)
        }
        ("mutant:stale-read", _) => {
            let faults = vec!["read: key 17: version 1 where 2 was written".to_string()];
            (Outcome::WrongAnswers { faults }, 4)
        }
        _ => (Outcome::Ok, 4),
    }
}

fn engine_facts(trial: &Trial) -> EngineFacts {
    EngineFacts {
        name: trial.engine.clone(),
        about: format!("The {} engine.", trial.engine),
        version: "1.2.3".to_string(),
        language: "Rust".to_string(),
        family: "b+tree".to_string(),
        origin: "built in".to_string(),
        capabilities: ["ordered", "delete"].map(String::from).to_vec(),
        cache_bytes: Some(64 << 20),
        compression: None,
        options: trial.options.clone(),
        class: None,
        avoided_defects: (trial.engine == "lmdb")
            .then(|| "a cursor at a deleted row skips the next one".to_string())
            .into_iter()
            .collect(),
    }
}

fn steps(trial: &Trial) -> Vec<Step> {
    let step = |name: StepKind, before: Option<&str>, elapsed_ns: u64| step(trial, name, before, elapsed_ns);
    vec![
        step(StepKind::Open, Some("fill"), 1_200_000),
        step(StepKind::Settle, Some("read"), 30_000_000),
        Step { note: Some("not permitted".to_string()), ..step(StepKind::DropCaches, Some("mixed"), 0) },
        step(StepKind::Reopen, Some("sync"), 2_500_000),
        step(StepKind::Close, None, 900_000),
    ]
}

fn step(trial: &Trial, name: StepKind, before: Option<&str>, elapsed_ns: u64) -> Step {
    Step {
        name,
        before_phase: before.map(String::from),
        elapsed_ns: elapsed_ns + u64::from(trial.repetition) * 1_000,
        note: None,
        keys: None,
    }
}

/// Nanoseconds per op of each engine and phase, before the spread over runs.
fn cost_ns(engine: &str, phase: u64) -> u64 {
    let costs: [u64; 4] = match engine {
        "null" => [16, 13, 20, 16],
        "lmdb" => [2_400, 610, 2_000, 350_000],
        "redb" => [6_100, 840, 4_400, 352_000],
        "fjall" => [2_350, 1_500, 3_900, 410_000],
        "sled" => [5_200, 900, 4_100, 0],
        "sqlite" => [9_100, 3_300, 8_000, 366_000],
        _ => [300, 200, 350, 300],
    };
    costs[phase as usize % costs.len()]
}

fn effective_level(engine: &str, requested: Durability) -> Option<Durability> {
    match (engine, requested) {
        ("null" | "mutant:stale-read", _) => Some(Durability::None),
        ("redb", _) => Some(Durability::Power),
        ("sled", Durability::Power) => None,
        (_, requested) => Some(requested),
    }
}

fn phase_record(trial: &Trial, phase: &Phase, index: u64) -> PhaseRecord {
    let requested = phase.durability.unwrap_or(trial.workload.durability);
    let level = effective_level(&trial.engine, requested);
    let ops = match level {
        None => 0,
        Some(_) if phase.each_key => trial.workload.keys,
        Some(_) => phase.ops,
    };
    // Runs differ by a few percent, and two engines in `sync` by less than that.
    let spread = [100, 97, 104][trial.repetition as usize % 3];
    let cost_ns = cost_ns(&trial.engine, index) * spread / 100;
    let threads = u64::from(phase.threads);
    let inside_ns = ops * cost_ns / threads;
    let outside_ns = ops * 25 / threads;
    let elapsed_ns = inside_ns + outside_ns;
    let writes = ops / if phase.mix.get > 0.0 { 2 } else { 1 } * u64::from(index != 1);
    let mut seed = index * 1_000 + u64::from(trial.order);
    let kinds = kinds(phase, ops, cost_ns, &mut seed);
    let stores = trial.engine != "null";
    PhaseRecord {
        phase: phase.clone(),
        round: None,
        not_run: level.is_none().then(|| "the engine cannot reach level power".to_string()),
        durability_effective: level,
        durability_requested: requested,
        emulated: if trial.engine == "sqlite" && index == 2 {
            vec!["update = put".to_string()]
        } else {
            vec![]
        },
        elapsed_ns,
        ops,
        ended_by: EndedBy::Count,
        keys_after: Some(trial.workload.keys),
        threads: (0..phase.threads)
            .map(|thread| thread_record(thread, ops / threads, elapsed_ns, inside_ns))
            .collect(),
        series: if ops == 0 { vec![] } else { vec![series_row(&kinds, ops, elapsed_ns)] },
        stalls: Vec::new(),
        kinds,
        usage: usage(ops, cost_ns, writes, stores),
        watcher: None,
        device: None,
        noise: None,
        cap_use: None,
        logical_bytes_written: writes * 116,
        logical_bytes_read: (ops - writes) * 116,
        disk_peak: stores.then(|| disk(500_000)),
        engine_stats: Vec::new(),
        disk_end: stores.then(|| disk(450_000 + u64::from(trial.repetition) * 4_096)),
        disk_settled: None,
        batch_mean: if ops == 0 { 0.0 } else { 64.0 },
        observed: None,
        load_generators: Vec::new(),
        buffers_bytes: None,
        disturbed: None,
        staleness: None,
        arrivals: None,
        system_calls: None,
        call_times: None,
        harness_share: if ops == 0 { 0.0 } else { outside_ns as f64 / elapsed_ns as f64 },
        harness: (ops > 0).then(|| HarnessTimes {
            generation_ns: outside_ns / 2 * threads,
            checks_ns: outside_ns / 4 * threads,
            boundary_ns: outside_ns / 4 * threads,
        }),
        check: Check {
            level: if stores { CheckLevel::Full } else { CheckLevel::None },
            values: ops - writes,
            rows: 0,
            faults: 0,
            first_faults: vec![],
        },
    }
}

/// One kind or two, each with a tail of one op in a hundred.
fn kinds(phase: &Phase, ops: u64, cost_ns: u64, seed: &mut u64) -> Vec<KindRecord> {
    let kinds: &[OpKind] = match (phase.mix.get > 0.0, phase.mix.update > 0.0) {
        (true, true) => &[OpKind::Get, OpKind::Update],
        (true, false) => &[OpKind::Get],
        _ => &[OpKind::Put],
    };
    let share = ops / kinds.len() as u64;
    let of = |kind: &OpKind| {
        let mut service_ns = Histogram::new();
        for op in 0..share {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few different times keep the fixture small.
            let jitter = (*seed >> 33) % 8 * (cost_ns / 64);
            let tail = if op % 100 == 99 { cost_ns } else { 0 };
            service_ns.record(cost_ns * 9 / 10 + jitter + tail);
        }
        KindRecord {
            kind: (*kind).into(),
            ops: share,
            misses: 0,
            evicted: 0,
            rows: 0,
            retries: 0,
            service_ns,
            wait_ns: None,
            response_ns: None,
        }
    };
    kinds.iter().map(of).collect()
}

fn thread_record(thread: u32, ops: u64, elapsed_ns: u64, inside_ns: u64) -> ThreadRecord {
    ThreadRecord {
        thread,
        role: Role::Mix.into(),
        ops,
        elapsed_ns,
        inside_ns,
        cpu_ns: None,
        run_delay_ns: None,
        slept_ns: 0,
        p50_ns: inside_ns.checked_div(ops),
        p99_ns: None,
        max_ns: inside_ns.checked_div(ops).map(|mean_ns| mean_ns * 2),
    }
}

fn series_row(kinds: &[KindRecord], ops: u64, elapsed_ns: u64) -> SeriesRow {
    SeriesRow {
        at_ns: elapsed_ns,
        interval_ns: elapsed_ns,
        ops,
        kinds: kinds.iter().map(|kind| (kind.kind.to_string(), kind.service_ns.clone())).collect(),
        ..SeriesRow::default()
    }
}

fn usage(ops: u64, cost_ns: u64, writes: u64, stores: bool) -> Usage {
    Usage {
        user_cpu_ns: Some(ops * (cost_ns.min(20_000) + 25)),
        system_cpu_ns: Some(ops * 100),
        rss_bytes: Some(30 << 20),
        rss_peak_bytes: Some(33 << 20),
        written_storage_bytes: stores.then_some(writes * 290),
        ..Usage::default()
    }
}

fn disk(allocated_bytes: u64) -> DiskUse {
    DiskUse { allocated_bytes, apparent_bytes: allocated_bytes - 100, ..DiskUse::default() }
}

fn machine() -> Machine {
    Machine {
        cpu_model: Some("Example CPU 3000".to_string()),
        cpus: Some(2),
        memory_bytes: Some(24 << 30),
        kernel: Some("6.18.44".to_string()),
        os: Some("Debian GNU/Linux 12".to_string()),
        architecture: "x86_64".to_string(),
        virtualisation: Some("kvm".to_string()),
        tool_build: "release".to_string(),
        ..Machine::default()
    }
}

fn clock() -> ClockFacts {
    ClockFacts {
        kind: "counter".to_string(),
        source: "time-stamp counter (invariant)".to_string(),
        ns_per_tick: 0.385,
        cost_ns: 10.5,
        smallest_step_ns: Some(10.0),
        step_p999_ns: 24.0,
        hand_offs: Some(10_000),
        backward_steps: Some(0),
    }
}

fn warning(concern: Concern, text: &str) -> Warning {
    Warning { id: concern.id().to_string(), text: text.to_string(), advice: concern.advice().to_string() }
}
