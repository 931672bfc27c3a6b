//! Rows in order, through the pending writes.

use super::super::error::StoreError;
use super::{OUT_BYTES, Store, engine_error};
use kvdyno_core::engine::Arena;
use kvdyno_core::engine::abi::*;

/// Space for the rows of one call.
const PIECE_BYTES: usize = 64 << 10;
/// The same for an engine without an order, which starts again in each call.
const LARGE_PIECE_BYTES: usize = 16 << 20;

/// Receives a row, its key and its value, and returns whether more are needed.
pub(super) type Take<'t> = &'t mut dyn FnMut(&[u8], &[u8]) -> bool;

/// A range of rows.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// The first row, or its place.
    pub from: Vec<u8>,
    /// The row after the last.
    pub to: Vec<u8>,
    /// Descending order.
    pub reverse: bool,
    /// The expected number of rows; 0: all of them. More are read if more are needed.
    pub rows: u32,
}

impl Store<'_> {
    /// Fails with the missing capability if the engine cannot return rows in order.
    pub fn needs_order(&self) -> Result<(), StoreError> {
        if self.engine.capabilities & KV_ORDERED != 0 {
            return Ok(());
        }
        Err(StoreError::Lacks { what: "this command", capability: "ordered" })
    }

    /// Whether a range costs as much as all rows, because they are sorted here.
    pub fn is_sorted_here(&self) -> bool {
        self.engine.capabilities & KV_ORDERED == 0
    }

    /// Fails with the missing capability if the engine cannot return rows.
    pub fn needs_rows(&self) -> Result<(), StoreError> {
        if self.engine.capabilities & KV_CAN_PREFIX != 0 { Ok(()) } else { self.needs_order() }
    }

    /// Passes each row of the range to `take` until it needs no more.
    pub fn rows(&mut self, stretch: &Stretch, take: Take) -> Result<(), StoreError> {
        self.needs_rows()?;
        if stretch.reverse && self.engine.capabilities & KV_CAN_REVERSE == 0 {
            return self.rows_turned(stretch, take);
        }
        let mut waiting = self.overlay.range(&stretch.from, &stretch.to);
        if stretch.reverse {
            waiting.reverse();
        }
        let mut waiting = waiting.into_iter().peekable();
        let mut goes_on = true;
        self.engine_rows(stretch, &mut |key, value| {
            let comes_first = |row: &[u8]| if stretch.reverse { row >= key } else { row <= key };
            let mut is_replaced = false;
            while let Some((row, after)) = waiting.next_if(|(row, _)| goes_on && comes_first(row)) {
                is_replaced |= row == key;
                goes_on = after.is_none_or(|value| take(&row, &value));
            }
            goes_on = goes_on && (is_replaced || take(key, value));
            goes_on
        })?;
        for (row, after) in waiting {
            goes_on = goes_on && after.is_none_or(|value| take(&row, &value));
        }
        Ok(())
    }

    /// Descending order with an engine that scans only in ascending order.
    fn rows_turned(&mut self, stretch: &Stretch, take: Take) -> Result<(), StoreError> {
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let upward = Stretch { reverse: false, rows: 0, ..stretch.clone() };
        self.rows(&upward, &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        })?;
        let _ = rows.iter().rev().all(|(key, value)| take(key, value));
        Ok(())
    }

    fn engine_rows(&mut self, stretch: &Stretch, take: Take) -> Result<(), StoreError> {
        self.read_all();
        let passed = if self.is_sorted_here() {
            self.sorted_rows(stretch, take)
        } else {
            self.ordered_rows(stretch, take)
        };
        let released = self.release_memory();
        passed.and(released)
    }

    fn ordered_rows(&mut self, stretch: &Stretch, take: Take) -> Result<(), StoreError> {
        // In ascending order the bound is excluded; in descending order it is the row before the last, which equals
        // none of our rows.
        let (start, bound, flags) = match stretch.reverse {
            true => (&stretch.to, &stretch.from, KV_REVERSE),
            false => (&stretch.from, &stretch.to, 0),
        };
        let limit = if stretch.rows == 0 { u32::MAX } else { stretch.rows };
        self.pieces(start, bound, flags, limit, take)
    }

    /// The rows of an engine without an order: all rows with a prefix, sorted here.
    fn sorted_rows(&mut self, stretch: &Stretch, take: Take) -> Result<(), StoreError> {
        let (from, to) = (&stretch.from, &stretch.to);
        let alike = from.iter().zip(to).take_while(|(left, right)| left == right).count();
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        self.pieces(&[], &from[..alike], KV_PREFIX, u32::MAX, &mut |key, value| {
            if key >= &from[..] && key < &to[..] {
                rows.push((key.to_vec(), value.to_vec()));
            }
            true
        })?;
        rows.sort_unstable();
        if stretch.reverse {
            rows.reverse();
        }
        let _ = rows.iter().all(|(key, value)| take(key, value));
        Ok(())
    }

    /// Requests rows from a start to a bound (with `KV_PREFIX`: of a prefix) from the engine, at first `limit` of
    /// them.
    fn pieces(
        &mut self,
        start: &[u8],
        bound: &[u8],
        flags: u16,
        mut limit: u32,
        take: Take,
    ) -> Result<(), StoreError> {
        let (mut start, mut resume, mut out_bytes) = (start.to_vec(), 0, PIECE_BYTES);
        loop {
            self.reserve(1, start.len() + bound.len() + out_bytes)?;
            self.pack(0, KV_SCAN, &start, bound, out_bytes);
            let op = self.session().arena().op_mut(0);
            op.flags = resume | flags;
            op.limit = limit;
            let executed = self.session().attempt(0, 1);
            let arena: &Arena = self.session().arena();
            let (status, needed) = (arena.op(0).status, arena.op(0).needed as usize);
            if !matches!(status, KV_OK | KV_NOT_FOUND | KV_SHORT) {
                return Err(engine_error(status, executed.error.as_ref().map(|(_, text)| text.as_str())));
            }
            let mut last: Option<&[u8]> = None;
            let mut left = arena.packed_delivered(0);
            let (mut goes_on, mut rows) = (true, 0);
            while let (true, Some((key, value, rest))) = (goes_on, first_row(left)) {
                goes_on = take(key, value);
                (last, left, rows) = (Some(key), rest, rows + 1);
            }
            if !goes_on || (status != KV_SHORT && rows < limit) {
                return Ok(());
            }
            if let Some(key) = last {
                (start, resume) = (key.to_vec(), KV_RESUME);
            }
            if flags & KV_PREFIX != 0 {
                out_bytes = (2 * out_bytes).min(LARGE_PIECE_BYTES);
            }
            out_bytes = out_bytes.max(needed + OUT_BYTES);
            limit = limit.saturating_mul(4);
        }
    }
}

/// The first of the rows that a scan has written (rule 8 of driver.h), and the rest.
fn first_row(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key_bytes, rest) = bytes.split_first_chunk::<4>()?;
    let (value_bytes, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_ne_bytes(*key_bytes) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_ne_bytes(*value_bytes) as usize)?;
    Some((key, value, rest))
}
