//! Sums counters, to compare them with the number of acknowledged merges.

use super::spaces::Spaces;
use crate::engine::abi::*;
use crate::engine::{Arena, Database, Shape, Status};
use crate::generator::Keys;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

static NEVER: AtomicU32 = AtomicU32::new(0);

/// The sum of the counters `items`; absent ones count as 0. An `Err` is an invalid counter or an error of the engine.
pub fn sum(
    database: &Database,
    (keys, spaces): (&Keys, &Spaces),
    items: Range<u64>,
    clock: u32,
) -> Result<u64, String> {
    const OPS: usize = 64;
    let key_bytes = keys.max_len() + spaces.extra_len();
    let shape = Shape { ops: OPS, key_bytes, value_bytes: 8, out_bytes: 64 };
    let mut arena = Arena::new(shape, clock, &NEVER);
    arena.set_split(spaces.split());
    let mut session = database.session(arena).map_err(|error| error.to_string())?;
    let mut sum = 0u64;
    let mut next = items.start;
    while next < items.end {
        let count = (items.end - next).min(OPS as u64) as usize;
        for at in 0..count {
            let arena = session.arena();
            let (length, space) = spaces.write_key(keys, next + at as u64, arena.key_mut(at));
            let op = arena.op_mut(at);
            (op.kind, op.flags, op.keyspace) = (KV_GET, 0, space);
            (op.key_length, op.value_length) = (length as u32, 0);
        }
        let executed = session.execute(0, count);
        if let Some((_, text)) = executed.error {
            return Err(format!("reading counters: {text}"));
        }
        for at in 0..executed.done {
            let arena = session.arena();
            let status = arena.op(at).status;
            match Status::of(status) {
                Status::Ok => {
                    let bytes = arena.delivered(at);
                    let counter = bytes.try_into().map(u64::from_le_bytes);
                    let bad =
                        || format!("counter {} has {} bytes instead of 8", next + at as u64, bytes.len());
                    sum = sum.wrapping_add(counter.map_err(|_| bad())?);
                }
                Status::NotFound => {}
                Status::Short
                | Status::Exists
                | Status::Conflict
                | Status::Aborted
                | Status::Full
                | Status::TooLarge
                | Status::Unsupported
                | Status::NotRun
                | Status::Error
                | Status::Unknown(_) => {
                    return Err(format!("reading counter {}: status {status}", next + at as u64));
                }
            }
        }
        next += executed.done as u64;
    }
    session.end().map_err(|error| error.to_string())?;
    Ok(sum)
}
