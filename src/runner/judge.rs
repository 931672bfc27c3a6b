//! Looks at a batch after it was run: statuses, values and rows, tallies and versions. Outside the timed call.

use super::check::{Faults, Window};
use super::draw::{Draw, Item, Unit};
use super::rows::RowsCheck;
use super::shared::{Shared, Tallies};
use super::unit::Kind;
use crate::engine::abi::*;
use crate::engine::{Arena, Executed};

/// What one thread has found so far.
pub struct Judge {
    /// What came since it was last published.
    pub interval: Tallies,
    /// What was wrong.
    pub faults: Faults,
    /// Values compared.
    pub values_checked: u64,
    /// Rows of scans compared.
    pub rows_checked: u64,
    /// Key and value bytes that writes carried.
    pub written_bytes: u64,
    /// Key and value bytes that reads brought.
    pub read_bytes: u64,
    /// Merges acknowledged.
    pub merges: u64,
    /// Ops counted.
    pub ops: u64,
    /// Ticks inside the driver's calls, as its own stamps say.
    pub inside_ticks: u64,
    /// Ticks of the same calls, seen from outside.
    call_ticks: u64,
    /// Ticks of the units in them, added up.
    unit_ticks: u64,
    /// Calls of the driver, and ops in them.
    pub batches: u64,
    /// Ops in those calls.
    pub batch_ops: u64,
}

impl Judge {
    /// Nothing found yet.
    pub fn new(interval: Tallies) -> Judge {
        Judge {
            interval,
            faults: Faults::default(),
            values_checked: 0,
            rows_checked: 0,
            written_bytes: 0,
            read_bytes: 0,
            merges: 0,
            ops: 0,
            inside_ticks: 0,
            call_ticks: 0,
            unit_ticks: 0,
            batches: 0,
            batch_ops: 0,
        }
    }

    /// Judges the batch that `draw` filled, but for the rows of scans. `counts`: it lies behind the warm-up.
    #[inline]
    pub fn batch(
        &mut self,
        shared: &Shared<'_>,
        draw: &mut Draw,
        arena: &Arena,
        executed: &Executed,
        counts: bool,
    ) {
        let done = executed.done;
        let mut inserts = 0;
        for place in 0..draw.units.len() {
            let unit = draw.units[place];
            let end = unit.first + unit.ops;
            if counts && end <= done && unit.kind != Kind::Scan {
                let start = arena.op(unit.first).start;
                self.tally(shared, &unit, arena.op(end - 1).end.saturating_sub(start));
            }
            for at in unit.first..end {
                if at >= done {
                    self.take_back(shared, arena, draw.items[at], at);
                    continue;
                }
                let acknowledged = self.op(shared, arena, draw.items[at], at, unit.kind);
                inserts += u64::from(acknowledged && is_new_key(shared, &draw.items[at]));
            }
        }
        draw.acknowledge_inserts(inserts);
        if let Some((at, text)) = &executed.error {
            self.fail(shared, arena, draw, *at, text);
        }
    }

    /// Counts a unit that took `ticks`.
    #[inline(always)]
    pub fn tally(&mut self, shared: &Shared<'_>, unit: &Unit, ticks: u64) {
        let counted = unit.kind.counted_ops(unit.ops);
        self.ops += counted;
        self.unit_ticks += ticks;
        if let Some(tally) = &mut self.interval[unit.kind as usize] {
            tally.ops += counted;
            tally.service.record(shared.clock.to_ns(ticks));
        }
    }

    /// Notes a call of the driver that took `ticks` by its own stamps and `outside` seen from here.
    #[inline(always)]
    pub fn call(&mut self, ticks: u64, outside: u64, ops: usize) {
        self.inside_ticks += ticks;
        self.call_ticks += outside;
        self.batches += 1;
        self.batch_ops += ops as u64;
    }

    fn fail(&mut self, shared: &Shared<'_>, arena: &Arena, draw: &Draw, at: usize, text: &str) {
        let item = draw.items.get(at).copied().unwrap_or_default();
        let kind =
            draw.units.iter().find(|unit| at < unit.first + unit.ops).map_or("op", |unit| unit.kind.name());
        let status = if at < arena.shape().ops { arena.op(at).status } else { KV_ERROR };
        let cause = match status {
            KV_FULL => "no-space",
            _ if text.contains("No space left") => "no-space",
            _ if text.contains("Too many open files") => "too-many-files",
            _ if text.contains("Cannot allocate memory") => "out-of-memory",
            _ => "engine-error",
        };
        shared.fail(cause, format!("phase {}: {kind} of key {}: {text}", shared.phase.name, item.index));
    }

    /// An op that was not run.
    #[cold]
    fn take_back(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) {
        if item.miss {
            return;
        }
        let kind = arena.op(at).kind;
        if let (KV_PUT | KV_DELETE, Some(versions)) = (kind, shared.versions) {
            versions.roll_back(item.index);
        }
    }

    /// One op; says whether it was a write that was acknowledged.
    #[inline(always)]
    fn op(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize, kind: Kind) -> bool {
        let op = arena.op(at);
        if op.retries != 0
            && let Some(tally) = &mut self.interval[kind as usize]
        {
            tally.retries += u64::from(op.retries);
        }
        if !shared.checked {
            return op.kind == KV_PUT;
        }
        match op.kind {
            KV_GET => {
                self.get(shared, arena, item, at, kind);
                false
            }
            KV_PUT => self.put(shared, arena, item, at),
            KV_DELETE => self.delete(shared, arena, item, at),
            KV_MERGE => {
                if self.is_done(shared, item, op.status, "merge") {
                    self.merges += 1;
                    self.written_bytes += u64::from(op.key_length + op.value_length);
                }
                false
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn get(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize, kind: Kind) {
        let op = arena.op(at);
        match op.status {
            KV_OK if !item.miss => {
                let value = arena.delivered(at);
                self.read_bytes += u64::from(op.key_length) + op.length;
                self.values_checked += 1;
                match shared.values.check(item.index, value) {
                    Ok(version) if !item.known || self.window(shared, item).allows(version) => {}
                    Ok(version) => {
                        let window = self.window(shared, item);
                        self.faults.add(|| {
                            let allowed = window.text();
                            let version = version.map_or("unknown".into(), |version| version.to_string());
                            format!("get of key {}: version {version}, expected {allowed}", item.index)
                        });
                    }
                    Err(fault) => self.faults.add(|| format!("get of key {}: {fault}", item.index)),
                }
            }
            KV_NOT_FOUND => {
                let expected = item.miss || self.may_be_absent(shared, item);
                if expected {
                    self.count_miss(kind);
                } else {
                    let window = self.window(shared, item);
                    self.faults.add(|| {
                        let allowed = if item.known { window.text() } else { "a value".into() };
                        format!("get of key {}: not found, expected {allowed}", item.index)
                    });
                }
            }
            KV_OK => self.faults.add(|| {
                format!("get of a key that was never written (beside key {}): found a value", item.index)
            }),
            KV_SHORT => {
                let needed = op.needed;
                self.faults.add(|| {
                    format!("get of key {}: the value has {needed} bytes, more than any written", item.index)
                });
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn count_miss(&mut self, kind: Kind) {
        if let Some(tally) = &mut self.interval[kind as usize] {
            tally.misses += 1;
        }
    }

    #[inline(always)]
    fn window(&self, shared: &Shared<'_>, item: Item) -> Window {
        let newest =
            if item.exact { None } else { shared.versions.and_then(|table| table.started(item.index)) };
        Window { oldest: item.state, newest: newest.unwrap_or(item.state) }
    }

    fn may_be_absent(&self, shared: &Shared<'_>, item: Item) -> bool {
        if item.known {
            self.window(shared, item).allows_absent(shared.deletes)
        } else {
            !shared.population.whole || shared.deletes || item.index >= shared.population.dense
        }
    }

    /// For writes: true if done; a fault or nothing (the batch has the error) else.
    #[inline(always)]
    fn is_done(&mut self, shared: &Shared<'_>, item: Item, status: u32, what: &str) -> bool {
        if status == KV_OK {
            return true;
        }
        self.write_failed(shared, item, status, what);
        false
    }

    #[cold]
    fn write_failed(&mut self, shared: &Shared<'_>, item: Item, status: u32, what: &str) {
        let key = item.index;
        match status {
            KV_EXISTS => self
                .faults
                .add(|| format!("{what} of key {key}: the engine says it exists; it was never written")),
            KV_NOT_FOUND => self.faults.add(|| format!("{what} of key {key}: the engine says not found")),
            KV_FULL => shared
                .fail("no-space", format!("phase {}: {what} of key {key}: no space left", shared.phase.name)),
            KV_UNSUPPORTED => shared.fail(
                "engine-error",
                format!("{what}: the engine says it cannot do this, and declares that it can"),
            ),
            KV_ERROR => {}
            other => shared.fail(
                "engine-error",
                format!("phase {}: {what} of key {key}: status {other}", shared.phase.name),
            ),
        }
    }

    #[inline(always)]
    fn put(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) -> bool {
        let op = arena.op(at);
        if item.miss {
            return self.refused_insert(shared, item, op.status);
        }
        if !self.is_done(shared, item, op.status, "put") {
            if let Some(versions) = shared.versions {
                versions.roll_back(item.index);
            }
            return false;
        }
        self.written_bytes += u64::from(op.key_length) + u64::from(op.value_length);
        if item.known
            && let Some(versions) = shared.versions
        {
            versions.acknowledge(item.index, item.state);
        }
        true
    }

    #[cold]
    fn refused_insert(&mut self, shared: &Shared<'_>, item: Item, status: u32) -> bool {
        match status {
            KV_EXISTS => self.count_miss(Kind::Insert),
            KV_OK => {
                self.faults.add(|| format!("insert of key {}: it is there, and was not refused", item.index))
            }
            other => self.write_failed(shared, item, other, "insert"),
        }
        false
    }

    fn delete(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) -> bool {
        let op = arena.op(at);
        let tells = shared.capabilities & KV_DELETE_TELLS != 0;
        let was_found = op.status == KV_OK;
        if op.status != KV_OK && !(tells && op.status == KV_NOT_FOUND) {
            return self.is_done(shared, item, op.status, "delete");
        }
        if tells && item.known && was_found != item.exact {
            let (said, truth) = if was_found { ("found", "absent") } else { ("absent", "there") };
            self.faults.add(|| format!("delete of key {}: said {said}, it was {truth}", item.index));
        }
        if !was_found {
            self.count_miss(Kind::Delete);
        }
        self.written_bytes += u64::from(op.key_length);
        if item.known
            && let Some(versions) = shared.versions
        {
            versions.acknowledge(item.index, item.state);
        }
        true
    }

    /// Do the driver's stamps account for the time that its calls took? They may leave out the way in and out, which
    /// is short against calls of a microsecond; a driver that says much less tells lies about its engine.
    pub fn check_stamps(&mut self, shared: &Shared<'_>) {
        const CALLS: u64 = 100;
        const LONG_CALL_NS: u64 = 1000;
        let is_long =
            self.batches >= CALLS && shared.clock.to_ns(self.call_ticks) / self.batches >= LONG_CALL_NS;
        if shared.checked && is_long && self.unit_ticks < self.call_ticks / 2 {
            let (said, seen) = (shared.clock.to_ns(self.unit_ticks), shared.clock.to_ns(self.call_ticks));
            self.faults.add(|| format!("the driver's stamps add up to {said} ns, its calls took {seen} ns"));
        }
    }

    /// The end of a scan, with all its pieces.
    pub fn scan(&mut self, rows: &RowsCheck, counts: bool) {
        self.rows_checked += rows.rows;
        self.values_checked += rows.rows;
        if counts {
            self.read_bytes += rows.bytes;
            if let Some(tally) = &mut self.interval[Kind::Scan as usize] {
                tally.rows += rows.rows;
            }
        }
    }
}

fn is_new_key(shared: &Shared<'_>, item: &Item) -> bool {
    shared.inserters > 0 && item.index >= shared.population.next_insert && item.index < shared.insert_end
}
