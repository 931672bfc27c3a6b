//! Sweeps the lists at the end: they must have the elements that were pushed and not popped, in order, and no others.

use super::{Lists, write_key, write_name};
use crate::engine::abi::*;
use crate::engine::{Arena, Database, Session, Shape, Status};
use crate::runner::check::WrongAnswers;
use crate::runner::gets::ReadError;
use crate::runner::phase_data::Shared;
use crate::runner::rows::split_row;
use crate::runner::shape::ARENA_BYTES;

/// The maximum number of elements that are read one by one; if there are more, the first ones of each list are read.
const READ: u64 = 200_000;
/// The maximum number of elements that are counted by a scan.
const SCANNED: u64 = 2_000_000;
const OPS: usize = 64;
const ROWS_BYTES: usize = 64 << 10;

/// A requested element.
#[derive(Clone, Copy)]
struct Ask {
    list: u64,
    number: u64,
    is_there: bool,
}

/// Pops the remaining elements of native lists until each list is empty. For emulated lists, it reads the elements, checks
/// that those before the first and after the last are absent, and counts all rows if possible. Also returns a note about
/// skipped elements for the record. An `Err` is an error of the engine.
pub(crate) fn sweep(
    shared: &Shared<'_>,
    database: &Database,
) -> Result<(WrongAnswers, Option<String>), ReadError> {
    let mut wrong = WrongAnswers::default();
    let Some(lists) = shared.lists else { return Ok((wrong, None)) };
    let is_native = shared.capabilities & KV_LISTS != 0;
    let value_bytes = shared.values.max_len().max(16);
    let out_bytes = value_bytes.max(if is_native { 0 } else { ROWS_BYTES });
    let shape = Shape { ops: OPS, key_bytes: 16, value_bytes: 8, out_bytes }.within(ARENA_BYTES, 1);
    let arena = Arena::new(shape, shared.clock.kind(), shared.stop);
    let mut session = database.session(arena)?;
    let most = (READ / lists.count()).max(1);
    let mut asks = Vec::with_capacity(OPS);
    for list in 0..lists.count() {
        let elements = lists.elements(list);
        let end = elements.end.min(elements.start + most);
        let before = (!is_native && elements.start > 0).then(|| elements.start - 1);
        let after = (end == elements.end).then_some(end);
        for number in before.into_iter().chain(elements.start..end).chain(after) {
            asks.push(Ask { list, number, is_there: elements.contains(&number) });
            if asks.len() == shape.ops {
                ask(shared, lists, &mut session, &asks, &mut wrong)?;
                asks.clear();
            }
        }
    }
    if !asks.is_empty() {
        ask(shared, lists, &mut session, &asks, &mut wrong)?;
    }
    let left = lists.left();
    if !is_native && shared.capabilities & KV_ORDERED != 0 && left <= SCANNED {
        let rows = count_rows(&mut session)?;
        if rows != left {
            wrong.add(|| format!("there are {rows} elements, but {left} were pushed and not popped"));
        }
    }
    session.end()?;
    let is_cut = (0..lists.count()).any(|list| lists.elements(list).end - lists.elements(list).start > most);
    Ok((wrong, is_cut.then(|| format!("the first {most} elements of each list"))))
}

fn ask(
    shared: &Shared<'_>,
    lists: &Lists,
    session: &mut Session,
    asks: &[Ask],
    wrong: &mut WrongAnswers,
) -> Result<(), ReadError> {
    let is_native = shared.capabilities & KV_LISTS != 0;
    for (at, ask) in asks.iter().enumerate() {
        let key = session.arena().key_mut(at);
        let (kind, length) = match is_native {
            true => (KV_POP, write_name(ask.list, key)),
            false => (KV_GET, write_key(ask.list, ask.number, key)),
        };
        let op = session.arena().op_mut(at);
        (op.kind, op.flags, op.key_length, op.value_length) = (kind, 0, length as u32, 0);
    }
    let executed = session.execute(0, asks.len());
    if let Some((_, text)) = executed.error {
        return Err(ReadError::Op(text));
    }
    for (at, Ask { list, number, is_there }) in asks.iter().copied().enumerate().take(executed.done) {
        let arena = session.arena();
        let status = arena.op(at).status;
        match (Status::of(status), is_there) {
            (Status::Ok, true) => {
                let fault = lists.fault(shared.values, lists.element(list, number), arena.delivered(at));
                fault.into_iter().for_each(|text| wrong.add(|| text));
            }
            (Status::NotFound, false) => {}
            (Status::NotFound, true) => wrong.add(|| format!("element {number} of list {list} is missing")),
            (Status::Ok | Status::Short, _) => {
                wrong.add(|| format!("list {list} has too many elements"));
            }
            (Status::Exists | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge, _)
            | (Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_), _) => {
                return Err(ReadError::Element { list, number, status });
            }
        }
    }
    Ok(())
}

/// Counts the rows of the complete database.
fn count_rows(session: &mut Session) -> Result<u64, ReadError> {
    let (mut rows, mut key_length, mut flags) = (0, 0, KV_KEYS);
    loop {
        let op = session.arena().op_mut(0);
        (op.kind, op.flags, op.limit) = (KV_SCAN, flags, u32::MAX);
        (op.key_length, op.value_length) = (key_length, 0);
        let executed = session.execute(0, 1);
        if let Some((_, text)) = executed.error {
            return Err(ReadError::Op(text));
        }
        let arena = session.arena();
        let (status, count) = (arena.op(0).status, arena.op(0).rows);
        rows += u64::from(count);
        if status == KV_OK {
            return Ok(rows);
        }
        let mut bytes = arena.delivered(0);
        let mut last = Vec::new();
        while let Some((key, _, rest)) = split_row(bytes) {
            (last, bytes) = (key.to_vec(), rest);
        }
        let has_moved = last[..] > *arena.key(0);
        if status != KV_SHORT || !has_moved || last.len() > arena.shape().key_bytes {
            return Err(ReadError::Scan(status));
        }
        arena.key_mut(0)[..last.len()].copy_from_slice(&last);
        (key_length, flags) = (last.len() as u32, KV_KEYS | KV_RESUME);
    }
}
