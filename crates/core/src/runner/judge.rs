//! Judges a batch after it was run: statuses, values and rows, tallies and versions. Outside the timed call.

mod times;

use super::check::{Window, WrongAnswers};
use super::companions::faults::OpError;
use super::companions::stale;
use super::draw::{Draw, Item};
use super::lists::Lists;
use super::phase_data::{Population, Shared, Tallies, Tally};
use super::rows::RowsCheck;
use crate::engine::abi::*;
use crate::engine::{Arena, Executed, OpCode, Status};
use crate::results::{Cause, Staleness};
use crate::workload::OpKind;
use kvdyno_measure::Clock;
use kvdyno_measure::shortage::felt;
use std::ops::Range;
use times::Times;

pub(super) use times::Bound;

/// The checks of one thread so far.
pub(super) struct Judge {
    /// The tallies since the last publication.
    pub interval: Tallies,
    /// The wrong answers.
    pub wrong: WrongAnswers,
    /// Values compared.
    pub values_checked: u64,
    /// Rows of scans compared.
    pub rows_checked: u64,
    /// Key and value bytes of writes.
    pub written_bytes: u64,
    /// Key and value bytes returned by reads.
    pub read_bytes: u64,
    /// Merges acknowledged.
    pub merges: u64,
    /// Ops counted.
    pub ops: u64,
    /// Ticks inside the driver's calls: by its stamps, and what they leave unaccounted over the bound of its kit.
    pub inside_ticks: u64,
    /// Ticks in which answers were judged.
    pub check_ticks: u64,
    /// The time of calls that the driver's stamps leave unaccounted.
    pub times: Times,
    /// Calls of the driver.
    pub batches: u64,
    /// Ops in those calls.
    pub batch_ops: u64,
    /// Errors of ops in a phase with faults, by op and text.
    pub errors: Vec<OpError>,
    /// Writes that failed, so that it is unknown whether they took effect.
    pub doubtful_writes: u64,
    /// Reads that returned an older value than an acknowledged one, or none.
    pub stale_reads: u64,
    /// The ages of stale reads that are no faults; none: there can be none, or they cannot be known.
    pub staleness: Option<Box<Staleness>>,
    /// How long the request that is judged had waited, nanoseconds; 0: it did not arrive at a rate.
    pub waited_ns: u64,
}

impl Judge {
    /// No checks yet.
    pub(super) fn new(interval: Tallies, clock: Clock, bound: Bound, knows_staleness: bool) -> Judge {
        Judge {
            interval,
            wrong: WrongAnswers::default(),
            values_checked: 0,
            rows_checked: 0,
            written_bytes: 0,
            read_bytes: 0,
            merges: 0,
            ops: 0,
            inside_ticks: 0,
            check_ticks: 0,
            times: Times::new(clock, bound),
            batches: 0,
            batch_ops: 0,
            errors: Vec::new(),
            doubtful_writes: 0,
            stale_reads: 0,
            staleness: knows_staleness.then(stale::counts),
            waited_ns: 0,
        }
    }

    /// Resets the counts of the warm-up. Faults and checks are kept, and so are merges, whose sum is checked.
    pub(super) fn forget_warm_up(&mut self) {
        self.interval.iter_mut().flatten().for_each(Tally::clear);
        (self.written_bytes, self.read_bytes) = (0, 0);
        if let Some(staleness) = &mut self.staleness {
            stale::clear(staleness);
        }
    }

    /// Judges the batch that `draw` filled, except the rows of scans. `counts`: the warm-up is over.
    #[inline]
    pub(super) fn batch(
        &mut self,
        shared: &Shared<'_>,
        draw: &mut Draw,
        arena: &Arena,
        executed: &Executed,
        counts: bool,
    ) {
        let done = executed.done;
        if let Some(recent) = shared.recent {
            stale::note(recent, &draw.items, arena, done);
        }
        let is_sound = done == draw.items.len() && executed.error.is_none();
        if draw.is_plain() && counts && is_sound {
            return match shared.checked {
                true => self.plain(shared, draw, arena),
                false => self.floor(shared, draw, arena),
            };
        }
        if executed.error.is_some() && !shared.faults.is_empty() {
            return self.disturbed(shared, draw, arena, executed, counts);
        }
        self.mixed(shared, draw, arena, executed, counts);
    }

    /// Any batch.
    #[inline(never)]
    fn mixed(
        &mut self,
        shared: &Shared<'_>,
        draw: &mut Draw,
        arena: &Arena,
        executed: &Executed,
        counts: bool,
    ) {
        let done = executed.done;
        if let Some(lists) = shared.lists {
            return self.lists(shared, lists, draw, arena, executed, counts);
        }
        let mut inserts = 0;
        let mut at = 0;
        while at < draw.items.len() {
            let unit = draw.items[at];
            let end = at + usize::from(unit.unit_ops);
            if counts && end <= done && unit.kind != OpKind::Scan {
                let ticks = arena.op(end - 1).end.saturating_sub(arena.op(at).start);
                self.tally(shared, &unit, ticks);
            }
            while at < end {
                let item = draw.items[at];
                if at >= done {
                    self.take_back(shared, arena, item, at);
                } else if self.op(shared, arena, item, at) {
                    inserts += u64::from(item.is_new());
                }
                at += 1;
            }
            let is_group = unit.unit_ops > 1 && shared.checked;
            if is_group && arena.op(end - 1).flags & KV_ATOMIC != 0 {
                self.transaction(arena, unit, end - usize::from(unit.unit_ops)..end, done);
            }
        }
        draw.acknowledge_inserts(inserts);
        if let Some((at, text)) = &executed.error {
            self.fail(shared, arena, draw, *at, text);
        }
    }

    /// A batch that was run completely, with units of one op: gets, and puts of keys that are not new.
    #[inline(always)]
    fn plain(&mut self, shared: &Shared<'_>, draw: &Draw, arena: &Arena) {
        self.floor(shared, draw, arena);
        for (at, (item, op)) in draw.items.iter().zip(arena.ops()).enumerate() {
            if op.retries != 0 {
                self.retried(item.kind, op.retries);
            }
            if op.kind == KV_GET {
                self.get(shared, arena, *item, at);
            } else {
                self.put(shared, arena, *item, at);
            }
        }
    }

    #[cold]
    fn retried(&mut self, kind: OpKind, retries: u32) {
        if let Some(tally) = &mut self.interval[kind as usize] {
            tally.retries += u64::from(retries);
        }
    }

    /// Counts the ops of such a batch; there is no more to do if the engine stores nothing.
    #[inline(always)]
    fn floor(&mut self, shared: &Shared<'_>, draw: &Draw, arena: &Arena) {
        let ops = &arena.ops()[..draw.items.len()];
        let ns = |op: &kv_op| shared.clock.to_ns(op.end.saturating_sub(op.start));
        self.ops += ops.len() as u64;
        if let Some(kind) = draw.only_kind() {
            if let Some(tally) = &mut self.interval[kind as usize] {
                tally.ops += tally.service.record_all(ops.iter().map(ns));
            }
            return;
        }
        for (item, op) in draw.items.iter().zip(ops) {
            if let Some(tally) = &mut self.interval[item.kind as usize] {
                tally.ops += 1;
                tally.service.record(ns(op));
            }
        }
    }

    /// Counts a unit that took `ticks`.
    #[inline(always)]
    pub(super) fn tally(&mut self, shared: &Shared<'_>, unit: &Item, ticks: u64) {
        let counted = unit.kind.counted_ops(usize::from(unit.unit_ops), shared.row_ops);
        self.ops += counted;
        if let Some(tally) = &mut self.interval[unit.kind as usize] {
            tally.ops += counted;
            let service_ns = shared.clock.to_ns(ticks);
            tally.service.record(service_ns);
            if let Some(arrived) = &mut tally.arrived {
                arrived.wait.record(self.waited_ns);
                arrived.response.record(self.waited_ns + service_ns);
            }
        }
    }

    /// Records a call that begins or ends a transaction: it counts as the engine's time, but not as an op's.
    /// `counts`: the warm-up is over.
    pub(super) fn control(&mut self, ticks: u64, waited: u64, executed: &Executed, counts: bool) {
        self.inside_ticks += if counts { ticks } else { 0 };
        self.times.call_alone(ticks, waited, executed.span);
    }

    /// Records a call of the driver that took `ticks` by its stamps, and that also reported `waited` ticks that belong to no
    /// op (rule 7 of driver.h).
    #[inline(always)]
    pub(super) fn call(&mut self, ticks: u64, waited: u64, executed: &Executed) {
        self.inside_ticks += ticks + self.times.call(ticks, waited, executed.span, executed.done);
        self.batches += 1;
        self.batch_ops += executed.done as u64;
    }

    /// Ends the phase, because the op at `at` failed.
    pub(super) fn fail(&mut self, shared: &Shared<'_>, arena: &Arena, draw: &Draw, at: usize, text: &str) {
        let item = draw.items.get(at);
        let (kind, index) = item.map_or(("op", 0), |item| (item.kind.name(), item.index));
        let status = if at < arena.shape().ops { arena.op(at).status } else { KV_ERROR };
        let cause = match status {
            KV_FULL => Cause::NoSpace,
            _ => felt().map_or(Cause::EngineError, Cause::from),
        };
        shared.fail(cause, format!("phase {}: {kind} of key {index}: {text}", shared.phase.name));
    }

    /// Handles an op that was not run.
    #[cold]
    fn take_back(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) {
        if item.is_expected_miss() || item.is_index_row() {
            return;
        }
        match OpCode::of(arena.op(at).kind) {
            OpCode::Put | OpCode::Delete => roll_back(shared, item.index),
            // They change no version. Pushes and pops are judged with the lists.
            OpCode::Get | OpCode::Scan | OpCode::Merge | OpCode::Push | OpCode::Pop => {}
            OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => {}
            OpCode::Nothing | OpCode::Unknown(_) => {}
        }
    }

    /// Judges one op; returns whether it was an acknowledged write.
    #[inline(always)]
    pub(super) fn op(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) -> bool {
        let op = arena.op(at);
        if op.retries != 0 {
            self.retried(item.kind, op.retries);
        }
        if !shared.checked {
            return op.kind == KV_PUT;
        }
        match OpCode::of(op.kind) {
            OpCode::Get => {
                self.get(shared, arena, item, at);
                false
            }
            OpCode::Put => self.put(shared, arena, item, at),
            OpCode::Delete => self.delete(shared, arena, item, at),
            OpCode::Merge => {
                if self.is_done(item, op.status, "merge") {
                    self.merges += 1;
                    self.written_bytes += u64::from(op.key_length + op.value_length) - shared.mark_bytes;
                }
                false
            }
            // Rows of scans are judged when a scan is complete, pushes and pops with the lists.
            OpCode::Scan | OpCode::Push | OpCode::Pop => false,
            // The calls that begin and end transactions, and release iterators, have batches of their own.
            OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => false,
            // Never sent, and a driver that changes the kind of an op has failed its trial.
            OpCode::Nothing | OpCode::Unknown(_) => false,
        }
    }

    #[inline(always)]
    fn get(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) {
        let op = arena.op(at);
        match Status::of(op.status) {
            Status::Ok if !item.is_expected_miss() => {
                let value = arena.delivered(at);
                self.read_bytes += u64::from(op.key_length) - shared.mark_bytes + op.length;
                self.values_checked += 1;
                match shared.values.check(item.index, value) {
                    Ok(version)
                        if !item.is_known()
                            || shared.allows(item.index, self.window(shared, item), version, value) => {}
                    Ok(version) => self.older_value(shared, arena, item, at, version),
                    Err(fault) => self.wrong.add(|| format!("get of key {}: {fault}", item.index)),
                }
            }
            Status::NotFound => {
                let expected = item.is_expected_miss() || self.may_be_absent(shared, item);
                if expected || shared.evicts() {
                    self.count_miss(item.kind, !expected);
                } else {
                    self.older_absence(shared, arena, item, at);
                }
            }
            Status::Ok => self.wrong.add(|| {
                format!("get of a key that was never written (next to key {}): found a value", item.index)
            }),
            Status::Short => {
                let needed = op.needed;
                self.wrong.add(|| {
                    format!("get of key {}: the value has {needed} bytes, more than any written", item.index)
                });
            }
            // Not answers of a get: the call has an error.
            Status::Exists | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {}
            Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {}
        }
    }

    #[inline(always)]
    fn count_miss(&mut self, kind: OpKind, is_evicted: bool) {
        if let Some(tally) = &mut self.interval[kind as usize] {
            tally.misses += 1;
            tally.evicted += u64::from(is_evicted);
        }
    }

    /// The states of a key that a read may see.
    #[inline(always)]
    pub(super) fn window(&self, shared: &Shared<'_>, item: Item) -> Window {
        let newest =
            if item.is_exact() { None } else { shared.versions.and_then(|table| table.started(item.index)) };
        Window { oldest: item.state, newest: newest.unwrap_or(item.state) }
    }

    fn may_be_absent(&self, shared: &Shared<'_>, item: Item) -> bool {
        if item.is_known() {
            self.window(shared, item).allows_absent(shared.deletes)
        } else {
            let Population { dense, whole, next_insert } = shared.population;
            !whole || shared.deletes || dense == 0 || (dense..next_insert).contains(&item.index)
        }
    }

    /// For writes: returns true if done; otherwise adds a fault, or nothing if the call has an error.
    #[inline(always)]
    fn is_done(&mut self, item: Item, status: u32, what: &str) -> bool {
        if status == KV_OK {
            return true;
        }
        self.write_failed(item, status, what);
        false
    }

    #[cold]
    fn write_failed(&mut self, item: Item, status: u32, what: &str) {
        let key = item.index;
        match Status::of(status) {
            Status::Exists => self
                .wrong
                .add(|| format!("{what} of key {key}: reported as existing, but it was never written")),
            Status::NotFound => self.wrong.add(|| format!("{what} of key {key}: reported as not found")),
            Status::Ok => {}
            // Not answers of a write: the call has an error.
            Status::Short | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {}
            Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {}
        }
    }

    #[inline(always)]
    fn put(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) -> bool {
        let op = arena.op(at);
        if item.is_expected_miss() {
            return self.refused_insert(item, op.status);
        }
        if item.is_index_row() {
            self.is_done(item, op.status, "put of an index row");
            return false;
        }
        if !self.is_done(item, op.status, "put") {
            roll_back(shared, item.index);
            return false;
        }
        let (key, value) = (u64::from(op.key_length) - shared.mark_bytes, u64::from(op.value_length));
        self.written_bytes += key + value;
        if item.kind == OpKind::InsertIndexed {
            self.written_bytes += shared.spaces.index_bytes(key, value);
        }
        acknowledge(shared, item);
        true
    }

    #[cold]
    fn refused_insert(&mut self, item: Item, status: u32) -> bool {
        match Status::of(status) {
            Status::Exists => self.count_miss(OpKind::Insert, false),
            Status::Ok => self
                .wrong
                .add(|| format!("insert of key {}: it exists, but the insert was not refused", item.index)),
            Status::NotFound => self.write_failed(item, status, "insert"),
            // Not answers of an insert: the call has an error.
            Status::Short | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {}
            Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {}
        }
        false
    }

    fn delete(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) -> bool {
        let op = arena.op(at);
        let reports = shared.capabilities & KV_DELETE_TELLS != 0;
        let was_found = op.status == KV_OK;
        if op.status != KV_OK && !(reports && op.status == KV_NOT_FOUND) {
            return self.is_done(item, op.status, "delete");
        }
        let is_evicted = shared.evicts() && !was_found;
        if reports && !is_evicted && is_foreseen(shared, item) && was_found != item.is_exact() {
            let (reported, truth) = if was_found { ("found", "absent") } else { ("not found", "present") };
            self.wrong
                .add(|| format!("delete of key {}: reported as {reported}, but it was {truth}", item.index));
        }
        if !was_found {
            self.count_miss(OpKind::Delete, false);
        }
        self.written_bytes += u64::from(op.key_length) - shared.mark_bytes;
        acknowledge(shared, item);
        true
    }

    /// Checks whether the driver's stamps account for most of the time of its calls. Calls are counted and their times not
    /// summed, because a call may wait for a processor between the core's stamp and the driver's.
    pub(super) fn check_times(&mut self) {
        if let Some(text) = self.times.understated() {
            self.wrong.add(|| text);
        }
    }

    /// Counts a completed scan with all its pieces.
    pub(super) fn scan(&mut self, rows: &RowsCheck, counts: bool) {
        self.rows_checked += rows.rows;
        self.values_checked += rows.rows;
        if counts {
            self.read_bytes += rows.bytes;
            if let Some(tally) = &mut self.interval[OpKind::Scan as usize] {
                tally.rows += rows.rows;
            }
        }
    }

    /// A batch of pushes and pops.
    fn lists(
        &mut self,
        shared: &Shared<'_>,
        lists: &Lists,
        draw: &Draw,
        arena: &Arena,
        executed: &Executed,
        counts: bool,
    ) {
        let mut at = 0;
        while at < draw.items.len() {
            let unit = draw.items[at];
            let end = at + usize::from(unit.unit_ops);
            if counts && end <= executed.done {
                let ticks = arena.op(end - 1).end.saturating_sub(arena.op(at).start);
                self.tally(shared, &unit, ticks);
            }
            for at in at..end {
                let (item, op) = (draw.items[at], arena.op(at));
                if at >= executed.done {
                    take_back(lists, item, op.kind);
                    continue;
                }
                if let Some(tally) = &mut self.interval[item.kind as usize] {
                    tally.retries += u64::from(op.retries);
                }
                if shared.checked {
                    self.list_op(shared, lists, arena, item, at);
                }
            }
            at = end;
        }
        if let Some((at, text)) = &executed.error {
            self.fail(shared, arena, draw, *at, text);
        }
    }

    fn list_op(&mut self, shared: &Shared<'_>, lists: &Lists, arena: &Arena, item: Item, at: usize) {
        let op = arena.op(at);
        let (list, number) = lists.place(item.index);
        let is_delete = match OpCode::of(op.kind) {
            OpCode::Put | OpCode::Push => {
                if self.is_done(item, op.status, "push") {
                    self.written_bytes += u64::from(op.value_length);
                }
                return;
            }
            OpCode::Get | OpCode::Pop => false,
            OpCode::Delete => true,
            // Never sent in a phase of lists.
            OpCode::Scan | OpCode::Merge | OpCode::Nothing | OpCode::Unknown(_) => return,
            OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => return,
        };
        match Status::of(op.status) {
            Status::Ok if is_delete => {}
            Status::NotFound if is_delete => self.wrong.add(|| {
                format!("pop: element {number} of list {list} was read, but its delete did not find it")
            }),
            Status::Ok if !item.is_expected_miss() => {
                let value = arena.delivered(at);
                self.read_bytes += value.len() as u64;
                self.values_checked += 1;
                let fault = lists.fault(shared.values, item.index, value);
                fault.into_iter().for_each(|text| self.wrong.add(|| format!("pop: {text}")));
            }
            Status::NotFound if item.is_expected_miss() => self.count_miss(OpKind::Pop, false),
            Status::NotFound => self.wrong.add(|| {
                format!("pop: list {list} is reported empty, but element {number} was pushed and not popped")
            }),
            Status::Ok => {
                self.wrong.add(|| format!("pop: list {list} is empty, but an element was returned"))
            }
            Status::Short => {
                let needed = op.needed;
                self.wrong
                    .add(|| format!("pop: list {list}: a value of {needed} bytes, more than any pushed"));
            }
            // Not answers of a pop: the call has an error.
            Status::Exists | Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => {}
            Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => {}
        }
    }

    /// Checks the transaction of these `ops` after the batch was acknowledged up to `done`. Answers (found, not
    /// found, exists) count as done.
    pub(super) fn transaction(&mut self, arena: &Arena, unit: Item, ops: Range<usize>, done: usize) {
        let is_done = |at: &usize| *at < done && Status::of(arena.op(*at).status).is_answer();
        let count = ops.clone().filter(is_done).count();
        if count != 0 && count != ops.len() {
            self.split(arena, unit, ops, count);
        }
    }

    #[cold]
    fn split(&mut self, arena: &Arena, unit: Item, ops: Range<usize>, count: usize) {
        let all = ops.len();
        let failed = ops.map(|at| arena.op(at).status).find(|status| !Status::of(*status).is_answer());
        let status = failed.map_or_else(String::new, |status| format!(", another has status {status}"));
        let (kind, index) = (unit.kind.name(), unit.index);
        self.wrong.add(|| {
            format!(
                "transaction of {all} ops that begins with {kind} of key {index}: only {count} took effect{status}"
            )
        });
    }
}

/// Records that a write of a key was acknowledged.
#[inline(always)]
fn acknowledge(shared: &Shared<'_>, item: Item) {
    match shared.versions {
        Some(versions) if item.is_known() && shared.epochs.is_some() => {
            versions.raise(item.index, item.state);
        }
        Some(versions) if item.is_known() => versions.acknowledge(item.index, item.state),
        Some(_) | None => {}
    }
}

/// Records that a write had no effect. If several threads write the key, its version is not used again.
#[cold]
pub(super) fn roll_back(shared: &Shared<'_>, index: u64) {
    if let (Some(versions), None) = (shared.versions, &shared.epochs) {
        versions.roll_back(index);
    }
}

/// Whether it is known if a delete must find its key: no other write of the key was in flight from the drawing of the
/// delete until now.
fn is_foreseen(shared: &Shared<'_>, item: Item) -> bool {
    let is_last = || shared.versions.and_then(|table| table.started(item.index)) == Some(item.state);
    item.is_known() && !item.is_unsure() && (shared.epochs.is_none() || is_last())
}

/// Handles an op that was not run. An emulated pop counts as run if its delete was run.
#[cold]
fn take_back(lists: &Lists, item: Item, kind: u8) {
    let (list, _) = lists.place(item.index);
    match OpCode::of(kind) {
        OpCode::Put | OpCode::Push => lists.take_back_push(list),
        OpCode::Pop | OpCode::Delete if item.is_expected_miss() => {}
        OpCode::Pop | OpCode::Delete => lists.take_back_pop(list),
        // The get of an emulated pop, whose delete follows.
        OpCode::Get => {}
        // Never sent in a phase of lists.
        OpCode::Scan | OpCode::Merge | OpCode::Nothing | OpCode::Unknown(_) => {}
        OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Shape;
    use crate::runner::judge::Bound;
    use crate::runner::phase_data::tallies_for;
    use crate::workload::OpKind;
    use kvdyno_measure::Clock;
    use std::sync::atomic::AtomicU32;

    static NEVER: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_transaction_takes_effect_completely_or_not_at_all() {
        let clock = Clock::calibrate();
        let faults = |statuses: [u32; 4], done: usize| {
            let shape = Shape { ops: 4, key_bytes: 8, value_bytes: 8, out_bytes: 8 };
            let mut arena = Arena::new(shape, clock.kind(), &NEVER);
            for (at, status) in statuses.into_iter().enumerate() {
                arena.op_mut(at).status = status;
            }
            let bound = Bound::of(false, clock, 20.0);
            let mut judge = Judge::new(tallies_for([OpKind::Put].into_iter()), clock, bound, false);
            judge.transaction(&arena, Item::new(OpKind::Put, 7), 0..4, done);
            judge.wrong.first
        };
        for whole in [[KV_OK; 4], [KV_OK, KV_EXISTS, KV_NOT_FOUND, KV_OK]] {
            assert!(faults(whole, 4).is_empty());
            assert!(faults(whole, 0).is_empty(), "not run at all");
            assert_eq!(faults(whole, 3).len(), 1, "acknowledged up to its middle");
        }
        assert!(faults([KV_ABORTED, KV_CONFLICT, KV_ABORTED, KV_ABORTED], 4).is_empty());
        assert_eq!(
            faults([KV_OK, KV_OK, KV_CONFLICT, KV_OK], 4),
            ["transaction of 4 ops that begins with put of key 7: only 3 took effect, another has status 4"]
        );
    }
}
