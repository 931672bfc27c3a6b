//! The sweep: reads everything again after the database was closed and reopened, and finds faults in rows that no phase
//! has read, and rows that did not survive the close. Not measured, but timed as a step.

use super::check::WrongAnswers;
use super::gets::{Found, OPS, ReadError, gets};
use super::phase_data::Shared;
use super::shape::ARENA_BYTES;
use super::spaces::{Spaces, indexed_value};
use crate::engine::abi::*;
use crate::engine::{Arena, Database, Session, Shape};
use crate::generator::{Distribution, Random};
use crate::results::{KindRecord, OpKind};
use crate::workload::{Mix, Phase, Scan};
use kvdyno_measure::text::grouped;
use serde::{Deserialize, Serialize};

/// The maximum number of keys that are read one by one; if there are more, this many are drawn at random.
pub const SWEEP_GETS: u64 = 200_000;
/// The maximum time of random gets if a scan reads all rows as well; seconds. From a disk, so many gets can take hours.
pub const SWEEP_GET_SECONDS: f64 = 30.0;
/// The maximum number of keys that are scanned completely.
const SCANNED: u64 = 2_000_000;
/// The least keys of a sample, and one of how many keys it has.
const SAMPLE: u64 = 1_000;
const SAMPLED_OF: u64 = 100;
/// The rows of each scan of a sample, which begins at one of its keys.
const SAMPLE_ROWS: u32 = 100;

/// How much a sweep reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Extent {
    /// There is nothing to read.
    Nothing,
    /// A random sample of the keys; all, if there are not more than that.
    Sample,
    /// Every key.
    All,
}

impl Extent {
    /// The number of keys of the sample of this many; none: all are read.
    fn sample_of(self, keys: u64) -> Option<u64> {
        let count = (keys / SAMPLED_OF).clamp(SAMPLE, SWEEP_GETS);
        (self == Extent::Sample && count < keys).then_some(count)
    }
}

fn is_scanned(keys: u64, capabilities: u64) -> bool {
    capabilities & KV_ORDERED != 0 && keys <= SCANNED
}

/// The phases of a sweep over `keys` keys: by get, and if possible by a scan of each keyspace and of each index. Without
/// keys there are only the scans, which must find nothing. A sample is read by get, and by short scans.
pub(super) fn phases(keys: u64, capabilities: u64, spaces: &Spaces, extent: Extent) -> Vec<Phase> {
    let base = Phase { threads: 1, join: 1, ..Phase::default() };
    if let Some(count) = extent.sample_of(keys) {
        return sample_phases(count, capabilities, spaces, &base);
    }
    let all = keys <= SWEEP_GETS;
    let is_limited = !all && is_scanned(keys, capabilities);
    let mut phases = vec![Phase {
        name: "sweep by get".into(),
        mix: Mix { get: 1.0, ..Mix::default() },
        distribution: if all { Distribution::Sequential } else { Distribution::Uniform },
        ops: keys.min(SWEEP_GETS),
        seconds: if is_limited { SWEEP_GET_SECONDS } else { 0.0 },
        ..base.clone()
    }];
    if keys == 0 {
        phases.clear();
    }
    if !is_scanned(keys, capabilities) {
        return phases;
    }
    phases.extend((0..=spaces.indexes().len() as u32).map(|index| Phase {
        name: scan_name(index),
        mix: Mix { scan: 1.0, ..Mix::default() },
        scan: Scan { rows: 0, index, ..Scan::default() },
        // The first keys are in one keyspace each.
        distribution: Distribution::Sequential,
        ops: spaces.count(),
        ..base.clone()
    }));
    phases
}

fn scan_name(index: u32) -> String {
    if index == 0 { "sweep by scan".into() } else { format!("sweep of index {index}") }
}

/// The phases of a sweep of a sample: the same keys for every engine with the same seed, each once.
fn sample_phases(count: u64, capabilities: u64, spaces: &Spaces, base: &Phase) -> Vec<Phase> {
    let base = Phase { distribution: Distribution::Permutation, ..base.clone() };
    let gets = Phase {
        name: "sweep by get".into(),
        mix: Mix { get: 1.0, ..Mix::default() },
        ops: count,
        ..base.clone()
    };
    let scans = (0..=spaces.indexes().len() as u32).map(|index| Phase {
        name: scan_name(index),
        mix: Mix { scan: 1.0, ..Mix::default() },
        scan: Scan { rows: SAMPLE_ROWS, index, ..Scan::default() },
        ops: count / u64::from(SAMPLE_ROWS),
        ..base.clone()
    });
    let is_ordered = capabilities & KV_ORDERED != 0;
    [gets].into_iter().chain(scans.filter(|_| is_ordered)).collect()
}

/// The limits of the sweep, for the record; none: it covers every key.
pub(super) fn note(keys: u64, capabilities: u64, extent: Extent) -> Option<String> {
    if let Some(count) = extent.sample_of(keys) {
        let rest = match note(keys, capabilities, Extent::All) {
            None => "; only the first run sweeps all",
            Some(_) => "",
        };
        return Some(format!("{} of {} keys, drawn at random{rest}", grouped(count), grouped(keys)));
    }
    (keys > SWEEP_GETS && !is_scanned(keys, capabilities))
        .then(|| format!("{SWEEP_GETS} of {keys} keys, drawn at random"))
}

/// Counts evicted keys among those that the sweep read.
#[derive(Default)]
pub(super) struct Lost {
    read: u64,
    evicted: u64,
}

impl Lost {
    /// Adds the results of a phase of the sweep.
    pub(super) fn add(&mut self, kinds: &[KindRecord]) {
        for kind in kinds.iter().filter(|kind| kind.kind == OpKind::Get) {
            self.read += kind.ops;
            self.evicted += kind.evicted;
        }
    }

    /// A note for the record; none: no keys were evicted.
    pub(super) fn note(&self) -> Option<String> {
        (self.evicted > 0).then(|| format!("{} of {} keys read were evicted", self.evicted, self.read))
    }
}

/// Reads the index rows of up to 200,000 rows, or of a sample, by their keys, if indexes cannot be scanned completely. This
/// does not find index rows that should not exist. An `Err` is an error of the engine.
pub(super) fn index_gets(
    shared: &Shared<'_>,
    database: &Database,
    extent: Extent,
) -> Result<WrongAnswers, ReadError> {
    let mut wrong = WrongAnswers::default();
    let (keys, indexes) = (shared.population.dense, shared.spaces.indexes().len() as u32);
    if indexes == 0 || is_scanned(keys, shared.capabilities) {
        return Ok(wrong);
    }
    let shape = Shape {
        ops: OPS,
        key_bytes: shared.keys.max_len() + shared.spaces.extra_len(),
        value_bytes: 8,
        out_bytes: shared.values.max_read_len().max(8),
    }
    .within(ARENA_BYTES, 1);
    let arena = Arena::new(shape, shared.clock.kind(), shared.stop);
    let mut session = database.session(arena)?;
    let mut random = Random::seeded(shared.seed);
    let count = extent.sample_of(keys).unwrap_or(keys.min(SWEEP_GETS));
    let items = (0..count).map(|place| if count == keys { place } else { random.below(keys) });
    let items: Vec<u64> = items.collect();
    for number in 1..=indexes {
        for items in items.chunks(shape.ops) {
            get_rows(shared, &mut session, items, number, &mut wrong)?;
        }
    }
    session.end()?;
    Ok(wrong)
}

fn get_rows(
    shared: &Shared<'_>,
    session: &mut Session,
    items: &[u64],
    number: u32,
    wrong: &mut WrongAnswers,
) -> Result<(), ReadError> {
    let mut scratch = Vec::new();
    let found = gets(session, items.len(), |at, key| {
        let value = indexed_value(shared.values, items[at], &mut scratch);
        shared.spaces.write_index_key(shared.keys, items[at], value, number, key).key
    });
    let found = found.map_err(|error| error.of(format!("index {number}")))?;
    for ((at, found), &item) in found.into_iter().enumerate().zip(items) {
        let right = indexed_value(shared.values, item, &mut scratch);
        match found {
            Found::Value if session.arena().delivered(at) == shared.spaces.index_value(number, right) => {}
            Found::Nothing => wrong.add(|| format!("index {number}: the index row of key {item} is missing")),
            Found::Value | Found::Larger => wrong.add(|| {
                format!("index {number}: the index row of key {item} has bytes that were not written")
            }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_every_keyspace_and_every_index() {
        let mut workload = crate::workload::builtin("indexed-insert").unwrap();
        workload.keyspaces = 5;
        let spaces = Spaces::new(&workload, KV_ORDERED);
        let phases = |keys, capabilities| phases(keys, capabilities, &spaces, Extent::All);
        let all = phases(1000, KV_ORDERED);
        let scans: Vec<_> =
            all[1..].iter().map(|phase| (phase.scan.index, phase.scan.rows, phase.ops)).collect();
        assert_eq!(scans, [(0, 0, 5), (1, 0, 5), (2, 0, 5), (3, 0, 5)]);
        assert_eq!(phases(1000, 0).len(), 1);
        assert_eq!(phases(0, KV_ORDERED).len(), 4);
        assert!(phases(0, 0).is_empty());
        assert_eq!(phases(SCANNED + 1, KV_ORDERED).len(), 1);
        // Gets end by time only if a scan reads every row after them.
        for (keys, capabilities, seconds) in [
            (SWEEP_GETS, KV_ORDERED, 0.0),
            (SWEEP_GETS + 1, KV_ORDERED, SWEEP_GET_SECONDS),
            (SWEEP_GETS + 1, 0, 0.0),
            (SCANNED + 1, KV_ORDERED, 0.0),
        ] {
            let phases = phases(keys, capabilities);
            assert_eq!(phases[0].seconds, seconds, "{keys} keys");
            assert!(seconds == 0.0 || phases.len() > 1, "{keys} keys");
        }
        let note = |keys, capabilities| note(keys, capabilities, Extent::All);
        assert!(note(SCANNED + 1, KV_ORDERED).is_some() && note(1000, 0).is_none());
    }

    #[test]
    fn a_sample_has_one_of_a_hundred_keys_and_a_thousand_at_least() {
        for (keys, count) in [
            (0, None),
            (SAMPLE, None),
            (SAMPLE + 1, Some(SAMPLE)),
            (57_000, Some(SAMPLE)),
            (1_000_000, Some(10_000)),
            (1 << 40, Some(SWEEP_GETS)),
        ] {
            assert_eq!(Extent::Sample.sample_of(keys), count, "{keys} keys");
            assert_eq!(Extent::All.sample_of(keys), None, "{keys} keys");
        }
        let spaces = Spaces::new(&crate::workload::builtin("indexed-insert").unwrap(), KV_ORDERED);
        let ops = |keys, capabilities| -> Vec<(u32, u64)> {
            let phases = phases(keys, capabilities, &spaces, Extent::Sample);
            phases.iter().map(|phase| (phase.scan.index, phase.ops)).collect()
        };
        assert_eq!(ops(57_000, KV_ORDERED), [(0, 1000), (0, 10), (1, 10), (2, 10), (3, 10)]);
        assert_eq!(ops(57_000, 0), [(0, 1000)]);
        assert_eq!(ops(1000, 0), [(0, 1000)], "no more keys than a sample has: all are read");
        let note = note(57_000, KV_ORDERED, Extent::Sample).unwrap();
        assert!(note.starts_with("1,000 of 57,000 keys, "), "{note}");
    }
}
