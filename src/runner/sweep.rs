//! The look at everything once more, after the database was closed and opened again: what a phase did not read, and
//! what did not survive the close, is found here. Not measured, but timed as a step.

use crate::engine::abi::KV_ORDERED;
use crate::generator::Distribution;
use crate::workload::{Mix, Phase, Scan};

/// Keys that are read one by one; of more, this many are drawn.
const GETS: u64 = 200_000;
/// Keys that are scanned as a whole.
const SCANNED: u64 = 2_000_000;

/// The phases of a sweep over `keys` keys.
pub fn phases(keys: u64, capabilities: u64) -> Vec<Phase> {
    let base = Phase { threads: 1, join: 1, ..Phase::default() };
    let all = keys <= GETS;
    let mut phases = vec![Phase {
        name: "sweep by get".into(),
        mix: Mix { get: 1.0, ..Mix::default() },
        distribution: if all { Distribution::Sequential } else { Distribution::Uniform },
        ops: keys.min(GETS),
        ..base.clone()
    }];
    if capabilities & KV_ORDERED != 0 && keys <= SCANNED {
        phases.push(Phase {
            name: "sweep by scan".into(),
            mix: Mix { scan: 1.0, ..Mix::default() },
            scan: Scan { rows: 0, uniform_rows: false, reverse: false, prefix: false },
            ops: 1,
            ..base
        });
    }
    phases
}

/// What the sweep leaves out, for the record; none: it covers every key.
pub fn note(keys: u64, capabilities: u64) -> Option<String> {
    let is_scanned = capabilities & KV_ORDERED != 0 && keys <= SCANNED;
    (keys > GETS && !is_scanned).then(|| format!("{GETS} of {keys} keys, drawn at random"))
}
