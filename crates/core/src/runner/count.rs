//! Sums counters, to compare them with the number of acknowledged merges.

use super::gets::{Found, OPS, ReadError, gets};
use super::spaces::Spaces;
use crate::engine::{Arena, Database, Shape};
use crate::generator::Keys;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

static NEVER: AtomicU32 = AtomicU32::new(0);

/// The sum of the counters `items`; absent ones count as 0. An `Err` is an invalid counter or an error of the engine.
pub(super) fn sum(
    database: &Database,
    keys: &Keys,
    spaces: &Spaces,
    items: Range<u64>,
    clock: u32,
) -> Result<u64, ReadError> {
    let key_bytes = keys.max_len() + spaces.extra_len();
    let shape = Shape { ops: OPS, key_bytes, value_bytes: 8, out_bytes: 64 };
    let mut arena = Arena::new(shape, clock, &NEVER);
    arena.set_split(spaces.split());
    let mut session = database.session(arena)?;
    let mut sum = 0u64;
    let mut next = items.start;
    while next < items.end {
        let count = (items.end - next).min(OPS as u64) as usize;
        let write_key = |at, key: &mut [u8]| spaces.write_key(keys, next + at as u64, key);
        let found = gets(&mut session, count, write_key).map_err(|error| error.of("counters"))?;
        for (at, found) in found.iter().enumerate() {
            let counter = next + at as u64;
            match found {
                Found::Value => {
                    let bytes = session.arena().delivered(at);
                    let bad = |_| ReadError::Counter { counter, bytes: bytes.len() };
                    sum = sum.wrapping_add(bytes.try_into().map(u64::from_le_bytes).map_err(bad)?);
                }
                Found::Nothing => {}
                Found::Larger => return Err(ReadError::LongCounter(counter)),
            }
        }
        next += found.len() as u64;
    }
    session.end()?;
    Ok(sum)
}
