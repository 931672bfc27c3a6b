//! Databases that another program made: which workloads can run on them, and the survey of their keys and sizes before the
//! first phase. Nothing is written to them, and nothing is known of their values but their sizes.

use super::gets::{Found, OPS, ReadError, gets};
use super::rows::split_row;
use super::spaces::WrittenKey;
use super::{kept, phase};
use crate::engine::abi::*;
use crate::engine::{Arena, Database, EngineError, Session, Shape};
use crate::generator::{KeyList, Keys, MOST_KEY_BYTES, Random};
use crate::results::{ForeignData, SizeRange};
use crate::workload::{Collections, Phase, Workload};
use std::sync::atomic::AtomicU32;

/// The maximum number of keys that are kept for the phases, and of their bytes while they are chosen.
const MOST_KEPT: u64 = 4 << 20;
const MOST_KEPT_BYTES: usize = 128 << 20;
/// Bytes that a scan asks for at once.
const PIECE_BYTES: usize = 1 << 20;
/// The largest row that a survey reads: larger ones are refused.
const MOST_ROW_BYTES: usize = 1 << 30;
/// Bytes that a get of a value of unknown size asks for at first.
const GUESSED_BYTES: usize = 4 << 10;

static NEVER: AtomicU32 = AtomicU32::new(0);

/// Why the keys and sizes of a database are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// The engine begins or ends no session.
    #[error("{0}")]
    Session(#[from] EngineError),
    /// Rows cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The driver broke a rule: a row in its answer has no end.
    #[error("reading all rows: the driver returned a malformed row")]
    Malformed,
    /// The driver broke a rule: the rows of a scan are in no order.
    #[error("reading all rows: the rows are not in order")]
    Disordered,
    /// The driver broke a rule: it did none of the gets.
    #[error("reading the keys of the file: no op was run")]
    NotRun,
    /// There are no rows.
    #[error("the database has no rows that can be read: is it that of this engine?")]
    NoRows,
    /// A key of the key file is absent: its place.
    #[error("the database has no row of key {0} of the key file (from 0)")]
    Absent(u64),
    /// A key is too long: its size.
    #[error("a key has {0} bytes, and at most {MOST_KEY_BYTES} are supported")]
    Key(usize),
    /// A row is too large: its size.
    #[error("a row has {0} bytes, and at most {MOST_ROW_BYTES} are supported")]
    Row(u64),
}

/// The reason why a workload cannot run on a database that another program made; none: it can.
pub fn is_unfit(workload: &Workload) -> Option<String> {
    let name = &workload.name;
    let measured = workload.phases.get(kept::fills(workload)..).unwrap_or_default();
    let reason = |phase: &Phase| {
        let mut kinds = phase::kinds_of(phase).into_iter();
        let fault = if kinds.any(|kind| kind.writes()) || phase.transaction.is_some() {
            "writes, and nothing is written to a foreign database"
        } else if phase.miss > 0.0 {
            "reads absent keys, and which keys a foreign database lacks is not known"
        } else if phase.scan.prefix || phase.scan.index > 0 {
            "scans prefixes or indexes, which need keys of a known form"
        } else {
            return None;
        };
        Some(format!("workload {name}: phase {} {fault}", phase.name))
    };
    if measured.is_empty() {
        return Some(format!("workload {name} has only fills, and nothing is written to a foreign database"));
    }
    let has_form = workload.keyspaces > 1
        || !workload.indexes.is_empty()
        || workload.collections != Collections::default();
    if has_form {
        return Some(format!(
            "workload {name} has keyspaces, indexes or collections, and the rows of a foreign database are in one keyspace"
        ));
    }
    measured.iter().find_map(reason)
}

/// What a survey has found.
pub struct Survey {
    /// For the record.
    pub data: ForeignData,
    /// The keys that phases draw.
    pub keys: Keys,
    /// The number of rows; none: not counted.
    pub rows: Option<u64>,
}

/// Keys and sizes drawn from all rows with equal chances: each row has a random priority, and those with the lowest are kept.
struct Sample {
    random: Random,
    most: usize,
    threshold: u64,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    keys: Extremes,
    values: Extremes,
    count: u64,
}

#[derive(Clone, Copy)]
struct Row {
    priority: u64,
    start: usize,
    key: u32,
    value: u32,
}

/// The smallest and the largest size.
#[derive(Clone, Copy)]
struct Extremes {
    min: u64,
    max: u64,
}

impl Extremes {
    const NONE: Extremes = Extremes { min: u64::MAX, max: 0 };

    fn add(&mut self, size: usize) {
        self.min = self.min.min(size as u64);
        self.max = self.max.max(size as u64);
    }

    fn range(self, sizes: impl Iterator<Item = u32>) -> SizeRange {
        let mut sizes: Vec<u32> = sizes.collect();
        sizes.sort_unstable();
        let median = sizes.get(sizes.len() / 2).map_or(0, |size| u64::from(*size));
        SizeRange { min: self.min.min(self.max), median, max: self.max }
    }
}

impl Sample {
    fn new(seed: u64, most: u64) -> Sample {
        Sample {
            random: Random::seeded(seed),
            most: most.clamp(1, MOST_KEPT) as usize,
            threshold: u64::MAX,
            bytes: Vec::new(),
            rows: Vec::new(),
            keys: Extremes::NONE,
            values: Extremes::NONE,
            count: 0,
        }
    }

    fn add(&mut self, key: &[u8], value: usize) {
        self.count += 1;
        self.keys.add(key.len());
        self.values.add(value);
        let priority = self.random.next_u64();
        // A scan that starts at an empty key starts at the first one.
        if priority > self.threshold || key.is_empty() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.rows.push(Row { priority, start, key: key.len() as u32, value: value as u32 });
        let is_full = self.rows.len() >= self.most.saturating_mul(2) || self.bytes.len() >= MOST_KEPT_BYTES;
        if is_full && self.rows.len() > 1 {
            self.keep(self.most.min(self.rows.len() / 2));
        }
    }

    /// Keeps this many rows, in their order.
    fn keep(&mut self, count: usize) {
        if self.rows.len() <= count {
            return;
        }
        let mut priorities: Vec<u64> = self.rows.iter().map(|row| row.priority).collect();
        let (_, threshold, _) = priorities.select_nth_unstable(count.max(1) - 1);
        self.threshold = *threshold;
        self.rows.retain(|row| row.priority <= self.threshold);
        let mut bytes = Vec::with_capacity(self.bytes.len() / 2);
        for row in &mut self.rows {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[row.start..row.start + row.key as usize]);
            row.start = start;
        }
        self.bytes = bytes;
    }

    fn finish(mut self) -> Result<Survey, SurveyError> {
        self.keep(self.most);
        if self.rows.is_empty() {
            return Err(SurveyError::NoRows);
        }
        let data = ForeignData {
            rows: Some(self.count),
            drawn: self.rows.len() as u64,
            key_bytes: self.keys.range(self.rows.iter().map(|row| row.key)),
            value_bytes: self.values.range(self.rows.iter().map(|row| row.value)),
        };
        let ends = self.rows.iter().map(|row| row.start + row.key as usize).collect();
        let list = KeyList { bytes: self.bytes, ends, longest: self.keys.max as usize };
        Ok(Survey { rows: data.rows, keys: Keys::listed(list), data })
    }
}

/// A session with one op, and the size of its buffer.
fn session(database: &Database, clock: u32, out_bytes: usize) -> Result<Session, EngineError> {
    let shape = Shape { ops: 1, key_bytes: MOST_KEY_BYTES as usize, value_bytes: 8, out_bytes };
    database.session(Arena::new(shape, clock, &NEVER))
}

/// The buffer that a row or value of `needed` bytes needs.
fn room(needed: u64) -> Result<usize, SurveyError> {
    match usize::try_from(needed) {
        Ok(needed) if needed <= MOST_ROW_BYTES => Ok(needed.next_power_of_two()),
        _ => Err(SurveyError::Row(needed)),
    }
}

/// Reads all rows in order; keeps up to `most` keys. `progress` is called before each call of the driver.
pub fn by_scan(
    database: &Database,
    clock: u32,
    seed: u64,
    most: u64,
    mut progress: impl FnMut(),
) -> Result<Survey, SurveyError> {
    let mut sample = Sample::new(seed, most);
    let mut own = session(database, clock, PIECE_BYTES)?;
    let (mut key_length, mut flags) = (0, 0);
    loop {
        progress();
        let op = own.arena().op_mut(0);
        (op.kind, op.flags, op.limit) = (KV_SCAN, flags, u32::MAX);
        (op.key_length, op.value_length) = (key_length, 0);
        let executed = own.execute(0, 1);
        if let Some((_, text)) = executed.error {
            return Err(ReadError::Op(text).of("all rows").into());
        }
        let arena = own.arena();
        let (status, count, needed) = (arena.op(0).status, arena.op(0).rows, arena.op(0).needed);
        let mut bytes = arena.delivered(0);
        let mut last: &[u8] = &[];
        for _ in 0..count {
            let Some((key, value, rest)) = split_row(bytes) else {
                return Err(SurveyError::Malformed);
            };
            if key.len() > MOST_KEY_BYTES as usize {
                return Err(SurveyError::Key(key.len()));
            }
            sample.add(key, value.len());
            (last, bytes) = (key, rest);
        }
        if status == KV_OK {
            own.end()?;
            return sample.finish();
        }
        if count > 0 {
            let last = last.to_vec();
            if last[..] <= *arena.key(0) && flags != 0 {
                return Err(SurveyError::Disordered);
            }
            arena.key_mut(0)[..last.len()].copy_from_slice(&last);
            (key_length, flags) = (last.len() as u32, KV_RESUME);
        } else {
            // The next row is larger than the buffer.
            let last = arena.key(0).to_vec();
            own.end()?;
            own = session(database, clock, room(needed)?)?;
            own.arena().key_mut(0)[..last.len()].copy_from_slice(&last);
        }
    }
}

/// Reads the rows of given keys, all of which must be there. `progress` is called before each call of the driver.
pub fn by_keys(
    database: &Database,
    clock: u32,
    keys: &Keys,
    mut progress: impl FnMut(),
) -> Result<Survey, SurveyError> {
    let mut ops = OPS;
    let opened = |ops: usize, out_bytes: usize| {
        let shape = Shape { ops, key_bytes: keys.max_len(), value_bytes: 8, out_bytes };
        database.session(Arena::new(shape, clock, &NEVER))
    };
    let mut own = opened(ops, GUESSED_BYTES)?;
    let (mut lengths, mut sizes, mut extremes) = (Vec::new(), Vec::new(), (Extremes::NONE, Extremes::NONE));
    while (sizes.len() as u64) < keys.range() {
        progress();
        let next = sizes.len() as u64;
        let count = (keys.range() - next).min(ops as u64) as usize;
        let found = gets(&mut own, count, |at, key| WrittenKey {
            length: keys.write(next + at as u64, key),
            space: 0,
        });
        let found = found.map_err(|error| error.of("the keys of the file"))?;
        let mut larger = None;
        for (at, found) in found.into_iter().enumerate() {
            let op = own.arena().op(at);
            match found {
                Found::Value => {
                    lengths.push(op.key_length);
                    sizes.push(op.length as u32);
                    extremes.0.add(op.key_length as usize);
                    extremes.1.add(op.length as usize);
                }
                Found::Nothing => {
                    return Err(SurveyError::Absent(next + at as u64));
                }
                Found::Larger => {
                    larger = Some(op.needed);
                    break;
                }
            }
        }
        match larger {
            Some(needed) => {
                let out_bytes = room(needed)?;
                ops = (PIECE_BYTES / out_bytes).clamp(1, OPS);
                own.end()?;
                own = opened(ops, out_bytes)?;
            }
            None if next == sizes.len() as u64 => {
                return Err(SurveyError::NotRun);
            }
            None => {}
        }
    }
    own.end()?;
    let data = ForeignData {
        rows: None,
        drawn: sizes.len() as u64,
        key_bytes: extremes.0.range(lengths.into_iter()),
        value_bytes: extremes.1.range(sizes.into_iter()),
    };
    Ok(Survey { rows: None, keys: keys.clone(), data })
}
