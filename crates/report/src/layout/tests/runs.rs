//! The runs for the tests of the layouts: a small version of each older tool's experiments.

use kvdyno_core::results::fixture::sketch::{LEVEL_POWER, PhaseSketch, Sketch};

const fn phase<'a>(name: &'a str, kinds: &'a [&'a str], ops: u64) -> PhaseSketch<'a> {
    PhaseSketch { name, kinds, ops, each_round: false, each_key: false }
}

const fn fill<'a>(name: &'a str, kinds: &'a [&'a str], ops: u64) -> PhaseSketch<'a> {
    PhaseSketch { each_key: true, ..phase(name, kinds, ops) }
}

const fn round<'a>(name: &'a str, kinds: &'a [&'a str], ops: u64) -> PhaseSketch<'a> {
    PhaseSketch { each_round: true, ..phase(name, kinds, ops) }
}

pub(super) const MININB: [Sketch; 2] = [
    Sketch {
        name: "mininb-put",
        phases: &[fill("put", &["put"], 20_000)],
        keys: 20_000,
        cost_ns: 4_000,
        ..Sketch::EMPTY
    },
    Sketch {
        name: "mininb-get",
        phases: &[fill("put", &["put"], 20_000), phase("get", &["get"], 20_000)],
        keys: 20_000,
        cost_ns: 900,
        ..Sketch::EMPTY
    },
];

/// Several sizes, which the tables sort.
pub(super) const NUDB: [Sketch; 3] = [
    Sketch { name: "nudb-fetch-1k", keys: 1_000, ..FETCH },
    Sketch { name: "nudb-fetch-10k", keys: 10_000, cost_ns: 3_000_000, ..FETCH },
    Sketch {
        name: "nudb-mixed",
        keys: 4_000,
        rounds: 5,
        phases: &[round("insert", &["insert"], 300), round("fetch", &["get"], 300)],
        cost_ns: 2_000,
        ..Sketch::EMPTY
    },
];

const FETCH: Sketch = Sketch {
    variant_of: Some("nudb-fetch"),
    phases: &[fill("insert", &["insert"], 1_000), phase("fetch", &["get"], 1_000)],
    cost_ns: 2_640_000,
    ..Sketch::EMPTY
};

pub(super) const KVBENCH: Sketch = Sketch {
    name: "kvbench",
    phases: &[
        fill("batch-write", &["put"], 2_000),
        phase("prefix", &["scan"], 1_000),
        phase("set", &["put"], 1_000),
        phase("get", &["get"], 1_000),
        phase("mixed", &["put", "get"], 1_000),
        phase("delete", &["delete"], 1_000),
    ],
    engines: &["fjall", "lmdb", "redb"],
    runs: 5,
    cost_ns: 3_000,
    ..Sketch::EMPTY
};

const KVBENCH_POWER: Sketch = Sketch {
    name: "kvbench-power",
    variant_of: Some("kvbench"),
    level: LEVEL_POWER,
    cost_ns: 300_000,
    ..KVBENCH
};

pub(super) const KVDK: Sketch = Sketch {
    name: "kvdk-mixed",
    phases: &[phase("mixed", &["get", "put"], 3_500)],
    cost_ns: 1_000_000,
    ..Sketch::EMPTY
};

pub(super) const TOKU: [Sketch; 3] = [
    Sketch {
        name: "toku-insert",
        rounds: 3,
        keys: 6_000,
        phases: &[round("serial", &["insert"], 1_000), round("random", &["insert"], 1_000)],
        ..Sketch::EMPTY
    },
    Sketch {
        name: "toku-scan",
        phases: &[fill("fill", &["put"], 1_000), phase("cold", &["scan"], 1), phase("warm", &["scan"], 1)],
        cost_ns: 5_000_000,
        ..Sketch::EMPTY
    },
    Sketch { name: "toku-update", rounds: 3, phases: &[round("upsert", &["put"], 1_000)], ..Sketch::EMPTY },
];

/// A run for each layout, in the order of the layouts.
pub(super) const ALL: [(&str, &[Sketch]); 6] = [
    ("histogram", &MININB),
    ("sizes", &NUDB),
    ("wide", &[KVBENCH, KVBENCH_POWER]),
    ("ranks", &[KVBENCH, KVBENCH_POWER]),
    ("seconds", &[KVDK]),
    ("rounds", &TOKU),
];
