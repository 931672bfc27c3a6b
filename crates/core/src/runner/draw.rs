//! Fills a batch: draws units, writes keys and values, and records the allowed answers of each op. All of this is outside
//! the timed call.

mod keys;

use self::keys::{Ahead, Drawn, Exact};
use super::check::State;
use super::chooser::Chooser;
use super::lists::{ELEMENT_VERSION, Lists, write_key, write_name};
use super::phase::merges_by_get;
use super::phase_data::Shared;
use super::spaces::{INDEXED_VERSION, WrittenKey, indexed_value};
use super::worker::BATCH_OPS;
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::generator::{Pareto, Random, SpecError, View};
use crate::results::Role;
use crate::workload::{Access, Mix, OpKind, Phase, Scan};

/// Information about one op of the batch before it is sent: 16 bytes, because one is written per op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// The key's number.
    pub index: u64,
    /// For reads the oldest state that may be seen; for writes the state sent, or the new floor after an acknowledgement if
    /// several threads write the key.
    pub state: State,
    /// Ops of the unit that begins here; 0: the op belongs to an earlier unit.
    pub unit_ops: u16,
    /// The unit's kind.
    pub kind: OpKind,
    flags: u8,
}

const KNOWN: u8 = 1;
const EXACT: u8 = 2;
const EXPECTED_MISS: u8 = 4;
const INDEX_ROW: u8 = 8;
const UNSURE: u8 = 16;
const NEW: u8 = 32;

impl Item {
    /// An op without further information.
    #[inline(always)]
    pub(super) fn new(kind: OpKind, index: u64) -> Item {
        Item { index, state: State::default(), unit_ops: 1, kind, flags: 0 }
    }

    /// With a state, if the key is in the version table.
    #[inline(always)]
    fn with(mut self, state: Option<State>) -> Item {
        if let Some(state) = state {
            self.state = state;
            self.flags |= KNOWN;
        }
        self
    }

    /// A pop of an empty list.
    fn expecting_miss(self) -> Item {
        self.flagged(EXPECTED_MISS)
    }

    fn flagged(mut self, flag: u8) -> Item {
        self.flags |= flag;
        self
    }

    /// Whether `state` is known (the key is in the version table).
    #[inline(always)]
    pub(super) fn is_known(&self) -> bool {
        self.flags & KNOWN != 0
    }

    /// For reads: this thread is the key's only writer, so it must see exactly `state`. For deletes: the key exists.
    #[inline(always)]
    pub(super) fn is_exact(&self) -> bool {
        self.flags & EXACT != 0
    }

    /// A delete of a key that other threads write: whether it exists is unknown.
    #[inline(always)]
    pub(super) fn is_unsure(&self) -> bool {
        self.flags & UNSURE != 0
    }

    /// A put of the thread's next new key.
    #[inline(always)]
    pub(super) fn is_new(&self) -> bool {
        self.flags & NEW != 0
    }

    /// A put of an index row; the op of its row precedes it.
    #[inline(always)]
    pub(super) fn is_index_row(&self) -> bool {
        self.flags & INDEX_ROW != 0
    }

    /// A read of a key that was never written, an insert of an existing key, or a pop of an empty list.
    #[inline(always)]
    pub(super) fn is_expected_miss(&self) -> bool {
        self.flags & EXPECTED_MISS != 0
    }
}

/// The maximum number of ops of a unit.
pub(super) const MOST_UNIT_OPS: usize = u16::MAX as usize;

/// One thread's draws.
pub(super) struct Draw {
    chooser: Chooser,
    phase: Phase,
    random: Random,
    choices: Random,
    view: View,
    /// None: keys are not drawn ahead.
    ahead: Option<Ahead>,
    /// The view grows with the thread's inserts.
    grows: bool,
    exact: Exact,
    /// The epoch in which the batch is drawn, if several threads write the same keys.
    pub epoch: u64,
    writer: u64,
    inserter: u64,
    /// Inserts sent and acknowledged by this thread.
    pub inserted: u64,
    pending_inserts: u64,
    threads: u64,
    thread: u64,
    /// Number of writes sent by this thread, used as versions if there is no version table.
    writes: u64,
    /// A kind that was drawn, but whose unit did not fit into the last batch. Drawing again would favour small units.
    put_off: Option<OpKind>,
    /// The ops of the batch.
    pub items: Vec<Item>,
    /// Ops of a unit, by kind.
    unit_ops: [u16; OpKind::COUNT],
    /// Ops that write one row with its index rows.
    row_ops: usize,
    /// A value, for the bytes of an index.
    value: Vec<u8>,
    /// A scan ends its batch, so that it sees all writes before it and none after it, also when it is resumed.
    ends_at_scan: bool,
    /// Each unit is one op, without more choices than its kind.
    is_plain: bool,
    is_out_of_keys: bool,
    /// The flag that makes a group of joined writes a transaction.
    tie: u16,
    merges_by_get: bool,
    /// The rows of a scan; none: they are not drawn from such a distribution.
    pareto_rows: Option<Pareto>,
}

/// The mix that a role runs.
pub(super) fn mix_of(phase: &Phase, role: Role) -> Mix {
    match role {
        Role::Mix => phase.mix,
        Role::Reader => Mix { get: 1.0, ..Mix::default() },
        Role::Writer => Mix { put: 1.0, ..Mix::default() },
    }
}

impl Draw {
    /// The draws of a thread. Each thread has two streams: one for keys and one for choices.
    pub(super) fn new(shared: &Shared<'_>, thread: usize) -> Result<Draw, SpecError> {
        let slot = &shared.slots[thread];
        let mix = mix_of(shared.phase, slot.role);
        let chooser =
            Chooser::new(&mix).ok_or_else(|| SpecError("a phase needs a mix with a share above 0".into()))?;
        // Inserts use the next new key regardless of the draw; a pass over each key only determines their number.
        let needs_range =
            |kind: OpKind| matches!(kind.access(), Access::Read | Access::Change | Access::Delete);
        let covers_fill = !mix.has(needs_range) && shared.phase.existing.is_none();
        let range = if covers_fill { shared.fill_items } else { shared.population.dense };
        let phase = shared.phase;
        let row_ops = shared.spaces.row_ops();
        let is_plain = shared.arriver.is_none()
            && chooser.kinds().all(|kind| match kind {
                OpKind::Get => phase.miss == 0.0,
                OpKind::Put | OpKind::Update => phase.join <= 1 && phase.existing.is_none() && !phase.atomic,
                _ => false,
            });
        let random = Random::stream(shared.seed, 2 * thread as u64);
        let view = Draw::view(shared, thread, range)?;
        // What a growing range has depends on the inserts so far.
        let ahead = (!phase.grows).then(Ahead::new);
        Ok(Draw {
            chooser,
            phase: phase.clone(),
            random,
            choices: Random::stream(shared.seed, 2 * thread as u64 + 1),
            view,
            ahead,
            grows: phase.grows,
            exact: Exact::of(shared, thread),
            epoch: 0,
            writer: slot.writer.unwrap_or(0),
            inserter: slot.inserter.unwrap_or(0),
            inserted: 0,
            pending_inserts: 0,
            threads: shared.slots.len() as u64,
            thread: thread as u64,
            writes: 0,
            put_off: None,
            items: Vec::with_capacity(Draw::largest_unit(phase, slot.role, row_ops, None).max(BATCH_OPS)),
            unit_ops: OpKind::ALL.map(|kind| kind.ops(phase, row_ops).min(MOST_UNIT_OPS) as u16),
            row_ops,
            value: Vec::with_capacity(shared.values.max_len()),
            ends_at_scan: shared.writes && shared.is_alone(),
            is_plain,
            is_out_of_keys: false,
            tie: if phase.atomic { KV_ATOMIC } else { 0 },
            merges_by_get: merges_by_get(phase, shared.capabilities),
            pareto_rows: phase.scan.pareto_rows.map(|shape| Pareto::new(shape, 1, phase.scan.rows)),
        })
    }

    /// Items of this thread in one pass of a distribution that gives each once.
    pub(super) fn pass_len(&self) -> u64 {
        self.view.pass_len()
    }

    /// Whether every unit is one op: a get, put or update.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The only kind of the mix; none: it has several.
    #[inline(always)]
    pub(super) fn only_kind(&self) -> Option<OpKind> {
        self.chooser.only_kind()
    }

    /// Whether an insert found no key left.
    pub(super) fn is_out_of_keys(&self) -> bool {
        self.is_out_of_keys
    }

    /// Ops that one unit of the thread's largest kind takes, of so many that are counted; none: no limit.
    pub(super) fn largest_unit(phase: &Phase, role: Role, row_ops: usize, quota: Option<u64>) -> usize {
        let ops = |kind: OpKind| {
            let ops = kind.ops(phase, row_ops).min(MOST_UNIT_OPS);
            quota.map_or(ops, |quota| kind.cut(ops, row_ops, quota))
        };
        mix_of(phase, role).kinds().map(ops).max().unwrap_or(1)
    }

    /// Draws units until the batch has `target` ops (at least one unit, at most the arena's ops), or `ops_left` ops
    /// are counted.
    #[inline]
    pub(super) fn fill(&mut self, shared: &Shared<'_>, arena: &mut Arena, target: usize, ops_left: u64) {
        self.items.clear();
        self.pending_inserts = 0;
        if self.grows {
            // Inserts that the last batch did not run do not exist.
            self.view.set_own(self.inserted);
        }
        if !self.is_plain {
            return self.fill_mixed(shared, arena, target, ops_left);
        }
        for _ in 0..ops_left.min(target as u64) {
            let kind = self.chooser.next(&mut self.choices);
            let drawn = self.drawn(shared);
            match kind {
                OpKind::Get => self.add_get_of(shared, arena, kind, drawn, 0),
                _ => self.add_put(shared, arena, kind, drawn, 0),
            }
        }
    }

    #[inline(never)]
    fn fill_mixed(&mut self, shared: &Shared<'_>, arena: &mut Arena, target: usize, ops_left: u64) {
        let capacity = arena.shape().ops;
        let mut counted = 0;
        while self.items.len() < target && counted < ops_left && !self.is_out_of_keys {
            let kind = self.put_off.take().unwrap_or_else(|| self.chooser.next(&mut self.choices));
            let mut ops = usize::from(self.unit_ops[kind as usize]);
            let first = self.items.len();
            if first > 0 && first + ops > capacity {
                self.put_off = Some(kind);
                break;
            }
            ops = kind.cut(ops, self.row_ops, ops_left - counted);
            self.add(shared, arena, kind, ops);
            let ops = self.items.len() - first;
            if ops > 0 {
                self.items[first..].iter_mut().for_each(|item| item.unit_ops = 0);
                self.items[first].unit_ops = ops as u16;
                counted += kind.counted_ops(ops, self.row_ops);
            }
            if kind == OpKind::Scan && self.ends_at_scan {
                break;
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, shared: &Shared<'_>, arena: &mut Arena, kind: OpKind, ops: usize) {
        match kind {
            OpKind::Get => self.add_get(shared, arena, kind, 0),
            OpKind::MultiGet => {
                for left in (0..ops).rev() {
                    self.add_get(shared, arena, kind, join_flag(left));
                }
            }
            OpKind::Put => self.add_puts(shared, arena, ops),
            OpKind::Insert => self.add_inserts(shared, arena, ops),
            OpKind::Update => {
                for left in (0..ops).rev() {
                    let drawn = self.drawn(shared);
                    self.add_put(shared, arena, kind, drawn, self.tie | join_flag(left));
                }
            }
            OpKind::Delete => {
                for left in (0..ops).rev() {
                    let drawn = self.drawn(shared);
                    self.add_delete(shared, arena, drawn, self.tie | join_flag(left));
                }
            }
            OpKind::Scan => self.add_scan(shared, arena),
            OpKind::Merge => self.add_merges(shared, arena, ops),
            OpKind::ReadModifyWrite => {
                let drawn = self.drawn(shared);
                self.add_get_of(shared, arena, kind, drawn, 0);
                self.add_put(shared, arena, kind, drawn, 0);
            }
            OpKind::Transaction => {
                for left in (0..ops).rev() {
                    let drawn = self.drawn(shared);
                    self.add_put(shared, arena, kind, drawn, KV_ATOMIC | join_flag(left));
                }
            }
            OpKind::InsertIndexed => self.add_indexed(shared, arena, ops),
            OpKind::Push => self.add_pushes(shared, arena, ops),
            OpKind::Pop => self.add_pop(shared, arena),
        }
    }

    /// Ends a group that found no more keys: its last op is not tied to another.
    #[cold]
    fn end_group(&mut self, arena: &mut Arena) {
        if let Some(last) = self.items.len().checked_sub(1) {
            arena.op_mut(last).flags &= !KV_JOIN;
        }
    }

    /// Counts acknowledged inserts.
    pub(super) fn acknowledge_inserts(&mut self, count: u64) {
        self.inserted += count;
    }

    #[inline(always)]
    fn add_puts(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        for left in (0..ops).rev() {
            let (drawn, flag) = match self.phase.existing {
                Some(share) if self.choices.unit() >= share => match self.next_new(shared) {
                    Some(index) => (Drawn::of(shared, index), NEW),
                    None => return self.end_group(arena),
                },
                _ => (self.drawn(shared), 0),
            };
            self.add_put(shared, arena, OpKind::Put, drawn, self.tie | join_flag(left));
            self.mark(flag);
        }
    }

    fn add_inserts(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        let new = if shared.capabilities & KV_CAN_NEW != 0 { KV_NEW } else { 0 };
        for left in (0..ops).rev() {
            let flags = self.tie | join_flag(left) | new;
            if self.phase.existing.is_some_and(|share| self.choices.unit() < share) {
                let drawn = self.drawn(shared);
                self.add_refused_insert(shared, arena, drawn, flags);
                continue;
            }
            let Some(index) = self.next_new(shared) else { return self.end_group(arena) };
            self.add_put(shared, arena, OpKind::Insert, Drawn::of(shared, index), flags);
            self.mark(NEW);
        }
    }

    /// Sets a flag on the last op.
    #[inline(always)]
    fn mark(&mut self, flag: u8) {
        if let Some(item) = self.items.last_mut() {
            item.flags |= flag;
        }
    }

    /// An insert of an existing key: it must be refused, and its value must never be seen.
    fn add_refused_insert(&mut self, shared: &Shared<'_>, arena: &mut Arena, drawn: Drawn, flags: u16) {
        let index = drawn.index;
        let slot = self.items.len();
        let last = shared.versions.and_then(|versions| versions.started(index)).unwrap_or_default();
        let key = drawn.write(shared, arena.key_mut(slot));
        let value = shared.values.write(index, u64::from(last.version()) + 1, arena.value_mut(slot));
        set(arena.op_mut(slot), KV_PUT, flags, key, value);
        self.items.push(Item::new(OpKind::Insert, index).flagged(EXPECTED_MISS));
    }

    #[inline(always)]
    fn add_get(&mut self, shared: &Shared<'_>, arena: &mut Arena, kind: OpKind, flags: u16) {
        let drawn = self.drawn(shared);
        if self.phase.miss > 0.0 && self.choices.unit() < self.phase.miss {
            let slot = self.items.len();
            let key = shared.spaces.write_missing(shared.keys, drawn.index, arena.key_mut(slot));
            set(arena.op_mut(slot), KV_GET, flags, key, 0);
            self.items.push(Item::new(kind, drawn.index).flagged(EXPECTED_MISS));
            return;
        }
        self.add_get_of(shared, arena, kind, drawn, flags);
    }

    #[inline(always)]
    fn add_get_of(&mut self, shared: &Shared<'_>, arena: &mut Arena, kind: OpKind, drawn: Drawn, flags: u16) {
        let index = drawn.index;
        let slot = self.items.len();
        let key = drawn.write(shared, arena.key_mut(slot));
        set(arena.op_mut(slot), KV_GET, flags, key, 0);
        let mut item = Item::new(kind, index);
        if let Some(versions) = shared.versions {
            item = if self.exact.has(index) {
                item.with(versions.started(index)).flagged(EXACT)
            } else {
                item.with(versions.acked(index))
            };
        }
        self.items.push(item);
    }

    #[inline(always)]
    fn add_put(&mut self, shared: &Shared<'_>, arena: &mut Arena, kind: OpKind, drawn: Drawn, flags: u16) {
        let index = drawn.index;
        let slot = self.items.len();
        let (state, kept) = match shared.versions {
            Some(versions) if shared.epochs.is_some() => {
                let handed = versions.hand_out(index, false, self.epoch);
                (handed.map(|handed| handed.state), handed.map(|handed| handed.floor))
            }
            versions => {
                let state = versions.and_then(|versions| versions.begin(index, false));
                (state, state)
            }
        };
        // Without a table, versions only make values differ: their content is checked, but not their age.
        self.writes += 1;
        let version =
            state.map_or(self.writes * self.threads + self.thread, |state| u64::from(state.version()));
        let key = drawn.write(shared, arena.key_mut(slot));
        let value = shared.values.write(index, version, arena.value_mut(slot));
        set(arena.op_mut(slot), KV_PUT, flags, key, value);
        self.items.push(Item::new(kind, index).with(kept));
    }

    fn add_delete(&mut self, shared: &Shared<'_>, arena: &mut Arena, drawn: Drawn, flags: u16) {
        let index = drawn.index;
        let slot = self.items.len();
        let key = drawn.write(shared, arena.key_mut(slot));
        set(arena.op_mut(slot), KV_DELETE, flags, key, 0);
        let item = Item::new(OpKind::Delete, index);
        // The previous state determines whether the engine must find the key.
        let (item, before) = match shared.versions {
            Some(versions) if shared.epochs.is_some() => {
                let handed = versions.hand_out(index, true, self.epoch);
                let before = handed.and_then(|handed| handed.before);
                let item = item.with(handed.map(|handed| handed.floor));
                (if before.is_none() { item.flagged(UNSURE) } else { item }, before)
            }
            versions => {
                let before = versions.and_then(|versions| versions.started(index));
                (item.with(versions.and_then(|versions| versions.begin(index, true))), before)
            }
        };
        let is_there = before.is_some_and(|state| !state.is_absent());
        self.items.push(if is_there { item.flagged(EXACT) } else { item });
    }

    fn add_merges(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        for left in (0..ops).rev() {
            let slot = self.items.len();
            // Emulated by get and put, a counter needs one writing thread.
            let drawn = if self.merges_by_get { self.own(shared) } else { self.drawn(shared) };
            let index = shared.counters_from + drawn.index;
            let key = shared.spaces.write_key(shared.keys, index, arena.key_mut(slot));
            arena.value_mut(slot)[..8].copy_from_slice(&1u64.to_le_bytes());
            set(arena.op_mut(slot), KV_MERGE, self.tie | join_flag(left), key, 8);
            self.items.push(Item::new(OpKind::Merge, index));
        }
    }

    fn add_scan(&mut self, shared: &Shared<'_>, arena: &mut Arena) {
        let slot = self.items.len();
        let scan = self.phase.scan;
        let drawn = self.drawn(shared);
        let item = drawn.index;
        let mut flags = if scan.reverse { KV_REVERSE } else { 0 };
        let (mut value, is_hash) = (0, shared.spaces.are_hashes());
        let WrittenKey { length: mut key, space } = match scan.index {
            0 => drawn.write(shared, arena.key_mut(slot)),
            number => self.write_index_start(shared, arena, item, number),
        };
        if is_hash && shared.capabilities & KV_ORDERED == 0 {
            flags |= KV_PREFIX;
            (key, value) = self.whole_hash(shared, arena, item);
        } else if scan.prefix {
            flags |= KV_PREFIX;
            value = shared.spaces.mark_len() + shared.keys.prefix_len();
            let prefix: Vec<u8> = arena.key_mut(slot)[..value].to_vec();
            arena.value_mut(slot)[..value].copy_from_slice(&prefix);
            // A prefix scan is of the whole group: it starts at the group's end.
            key = 0;
        } else {
            // To the end means a whole pass: from one end of the keyspace to the other.
            let is_whole = scan.rows == 0 || is_hash;
            if is_whole {
                key = 0;
            }
            if shared.spaces.mark_len() > 0 {
                (key, value) = self.bound(shared, arena, item, key);
            }
        }
        if holds_scans(&self.phase, shared.capabilities) {
            flags |= KV_HOLD;
        }
        set(arena.op_mut(slot), KV_SCAN, flags, WrittenKey { length: key, space }, value);
        let rows = match (scan.rows, &self.pareto_rows) {
            _ if is_hash => u32::MAX,
            (0, _) => u32::MAX,
            (_, Some(rows)) => rows.of(self.choices.next_u64()),
            (rows, None) if scan.uniform_rows => 1 + self.choices.below(u64::from(rows)) as u32,
            (rows, None) => rows,
        };
        let op = arena.op_mut(slot);
        (op.limit, op.user) = (rows_of_call(&scan, rows), u64::from(rows));
        self.items.push(Item::new(OpKind::Scan, item));
    }

    /// The start of a scan by an index: the bytes that the item's row is found under. Downward the whole key of its
    /// index row, else the scan would begin behind it.
    fn write_index_start(
        &mut self,
        shared: &Shared<'_>,
        arena: &mut Arena,
        item: u64,
        number: u32,
    ) -> WrittenKey {
        let slot = self.items.len();
        let value = indexed_value(shared.values, item, &mut self.value);
        let row = shared.spaces.write_index_key(shared.keys, item, value, number, arena.key_mut(slot));
        let length = if self.phase.scan.reverse { row.key.length } else { row.front };
        WrittenKey { length, ..row.key }
    }

    /// A hash of an engine without order: all rows that have its name in front. A collection of the engine's own must be
    /// named by the key too. The bytes of start and prefix.
    fn whole_hash(&self, shared: &Shared<'_>, arena: &mut Arena, item: u64) -> (usize, usize) {
        let slot = self.items.len();
        let space = shared.spaces.of(item);
        let prefix = shared.spaces.write_mark(space, arena.value_mut(slot));
        (usize::from(shared.spaces.split()), prefix)
    }

    /// Keeps a scan within its keyspace where that is a mark: no row has the bare mark or the next one as its key, so
    /// they serve as start and bound. The bytes of both.
    fn bound(&self, shared: &Shared<'_>, arena: &mut Arena, item: u64, key: usize) -> (usize, usize) {
        let slot = self.items.len();
        let space = match self.phase.scan.index {
            0 => shared.spaces.of(item),
            number => shared.spaces.index_space(item, number),
        };
        let (start, end) = if self.phase.scan.reverse { (space + 1, space) } else { (space, space + 1) };
        let value = shared.spaces.write_mark(end, arena.value_mut(slot));
        if key > 0 {
            return (key, value);
        }
        if shared.spaces.split() > 0 && self.phase.scan.reverse {
            // The start must name the collection: from above all of its fields.
            let field = shared.spaces.write_mark(space, arena.key_mut(slot));
            let end = shared.keys.max_len() + shared.spaces.extra_len();
            arena.key_mut(slot)[field..end].fill(0xff);
            return (end, value);
        }
        (shared.spaces.write_mark(start, arena.key_mut(slot)), value)
    }

    /// New rows, as many as `ops` ops write: in one group, which is a transaction where the core has to tie a row to its
    /// index rows and the engine can.
    fn add_indexed(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        for left in (0..ops / self.row_ops).rev() {
            let Some(item) = self.next_new(shared) else { return self.end_group(arena) };
            self.add_row(shared, arena, item, left * self.row_ops);
            for number in 1..self.row_ops {
                self.add_index_row(shared, arena, item, number as u32, left * self.row_ops);
            }
        }
    }

    /// The row itself; `behind`: ops of its group that follow its index rows.
    fn add_row(&mut self, shared: &Shared<'_>, arena: &mut Arena, item: u64, behind: usize) {
        let slot = self.items.len();
        let state = shared.versions.and_then(|versions| versions.begin(item, false));
        let key = shared.spaces.write_key(shared.keys, item, arena.key_mut(slot));
        let value = shared.values.write(item, INDEXED_VERSION, arena.value_mut(slot));
        self.value.clear();
        self.value.extend_from_slice(&arena.value_mut(slot)[..value]);
        let flags = self.tie | tie(shared) | join_flag(behind + self.row_ops - 1);
        set(arena.op_mut(slot), KV_PUT, flags, key, value);
        self.items.push(Item::new(OpKind::InsertIndexed, item).with(state).flagged(NEW));
    }

    /// Its row in an index; the value is at hand.
    fn add_index_row(
        &mut self,
        shared: &Shared<'_>,
        arena: &mut Arena,
        item: u64,
        number: u32,
        behind: usize,
    ) {
        let slot = self.items.len();
        let row = shared.spaces.write_index_key(shared.keys, item, &self.value, number, arena.key_mut(slot));
        let content = shared.spaces.index_value(number, &self.value);
        arena.value_mut(slot)[..content.len()].copy_from_slice(content);
        let flags = self.tie | tie(shared) | join_flag(behind + self.row_ops - 1 - number as usize);
        set(arena.op_mut(slot), KV_PUT, flags, row.key, content.len());
        self.items.push(Item::new(OpKind::InsertIndexed, item).flagged(INDEX_ROW));
    }

    fn add_pushes(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        let Some(lists) = shared.lists else { return };
        for left in (0..ops).rev() {
            let (list, slot) = (self.own_list(shared, lists), self.items.len());
            let number = lists.push(list);
            let element = lists.element(list, number);
            let key = arena.key_mut(slot);
            let (kind, key) = match shared.capabilities & KV_LISTS {
                0 => (KV_PUT, in_one_space(write_key(list, number, key))),
                _ => (KV_PUSH, in_one_space(write_name(list, key))),
            };
            let value = shared.values.write(element, ELEMENT_VERSION, arena.value_mut(slot));
            set(arena.op_mut(slot), kind, join_flag(left), key, value);
            self.items.push(Item::new(OpKind::Push, element));
        }
    }

    fn add_pop(&mut self, shared: &Shared<'_>, arena: &mut Arena) {
        let Some(lists) = shared.lists else { return };
        let (list, slot) = (self.own_list(shared, lists), self.items.len());
        let number = lists.pop(list);
        let next = number.unwrap_or_else(|| lists.elements(list).start);
        let item = Item::new(OpKind::Pop, lists.element(list, next));
        let item = if number.is_none() { item.expecting_miss() } else { item };
        self.items.push(item);
        if shared.capabilities & KV_LISTS != 0 {
            let key = in_one_space(write_name(list, arena.key_mut(slot)));
            set(arena.op_mut(slot), KV_POP, 0, key, 0);
            return;
        }
        let key = in_one_space(write_key(list, next, arena.key_mut(slot)));
        set(arena.op_mut(slot), KV_GET, 0, key, 0);
        // An empty list has nothing to delete.
        if number.is_some() {
            write_key(list, next, arena.key_mut(slot + 1));
            set(arena.op_mut(slot + 1), KV_DELETE, 0, key, 0);
            self.items.push(item);
        }
    }

    #[inline(always)]
    fn own_list(&mut self, shared: &Shared<'_>, lists: &Lists) -> u64 {
        let item = self.own(shared).index;
        lists.of(item, self.writer, shared.writers)
    }
}

#[inline(always)]
fn join_flag(left: usize) -> u16 {
    if left > 0 { KV_JOIN } else { 0 }
}

/// Fills in the core's half of an op, except its pointers. `key`: its length, and the keyspace of the op.
#[inline(always)]
fn set(op: &mut kv_op, kind: u8, flags: u16, key: WrittenKey, value: usize) {
    op.kind = kind;
    op.flags = flags;
    op.keyspace = key.space;
    op.key_length = key.length as u32;
    op.value_length = value as u32;
    op.limit = 0;
}

/// The key of a list, which has no keyspace of its own.
fn in_one_space(length: usize) -> WrittenKey {
    WrittenKey { length, space: 0 }
}

/// The rows that the next call asks for, of `left`.
pub(super) fn rows_of_call(scan: &Scan, left: u32) -> u32 {
    if scan.rows_per_call == 0 { left } else { left.min(scan.rows_per_call) }
}

/// Whether the iterator of a scan stays open from call to call.
pub(super) fn holds_scans(phase: &Phase, capabilities: u64) -> bool {
    phase.scan.rows_per_call > 0 && capabilities & KV_CAN_HOLD != 0
}

fn tie(shared: &Shared<'_>) -> u16 {
    if shared.spaces.is_grouped() { KV_ATOMIC } else { 0 }
}
