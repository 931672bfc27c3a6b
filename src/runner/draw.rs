//! Fills a batch: draws units, writes keys and values, and notes what each op may be answered. All of it happens
//! outside the timed call.

use super::check::State;
use super::shared::{Role, Shared};
use super::unit::{Chooser, Kind};
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::generator::{Distribution, Part, Random, Sampler, SpecError};
use crate::workload::{Mix, Phase};

/// What is known of one op of the batch before it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Item {
    /// The key's number.
    pub index: u64,
    /// For reads the oldest state that may be seen; for writes the state sent.
    pub state: State,
    /// Whether `state` says anything (the key is in the version table).
    pub known: bool,
    /// For reads: this thread is the key's writer, so it must see `state` exactly.
    pub exact: bool,
    /// A read of a key that was never written, or an insert of one that was: expected to be in vain.
    pub miss: bool,
}

/// A unit of the batch.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Its kind.
    pub kind: Kind,
    /// Its first op.
    pub first: usize,
    /// Its ops.
    pub ops: usize,
}

/// One thread's draws.
pub struct Draw {
    chooser: Chooser,
    phase: Phase,
    random: Random,
    choices: Random,
    sampler: Sampler,
    writer: u64,
    inserter: u64,
    /// Inserts sent and acknowledged by this thread.
    pub inserted: u64,
    pending_inserts: u64,
    range: u64,
    threads: u64,
    thread: u64,
    /// Writes sent by this thread: versions where no table gives them.
    writes: u64,
    /// Drawn, but too large for what was left of the last batch. Drawing anew would favour small units.
    put_off: Option<Kind>,
    /// The units of the batch.
    pub units: Vec<Unit>,
    /// The ops of the batch.
    pub items: Vec<Item>,
    /// Ops in the batch.
    pub count: usize,
    is_out_of_keys: bool,
}

/// The mix that a role runs.
pub fn mix_of(phase: &Phase, role: Role) -> Mix {
    match role {
        Role::Mix => phase.mix,
        Role::Reader => Mix { get: 1.0, ..Mix::default() },
        Role::Writer => Mix { put: 1.0, ..Mix::default() },
    }
}

impl Draw {
    /// The draws of thread `thread`, whose streams are its own: two per thread, one for keys and one for choices.
    pub fn new(shared: &Shared<'_>, thread: usize) -> Result<Draw, SpecError> {
        let slot = &shared.slots[thread];
        let mix = mix_of(shared.phase, slot.role);
        let chooser =
            Chooser::new(&mix).ok_or_else(|| SpecError("a phase needs a mix with a share above 0".into()))?;
        let covers_fill = chooser.kinds().all(|kind| kind == Kind::Put || kind == Kind::Merge)
            && shared.phase.existing.is_none();
        let range = if covers_fill { shared.fill_items } else { shared.population.dense };
        let part = match slot.writer {
            Some(writer) => Part { index: writer, count: shared.writers },
            None => {
                let readers = shared.slots.iter().filter(|slot| slot.writer.is_none());
                let before = shared.slots[..thread].iter().filter(|slot| slot.writer.is_none()).count();
                Part { index: before as u64, count: readers.count() as u64 }
            }
        };
        let phase = shared.phase;
        // Hot items stay the same from phase to phase; a permutation is another one in each.
        let seed = match phase.distribution {
            Distribution::Permutation => shared.seed,
            _ => shared.hot_seed,
        };
        let sampler = Sampler::new(&phase.distribution, range.max(1), seed, part, phase.clustered)?;
        Ok(Draw {
            chooser,
            phase: phase.clone(),
            random: Random::stream(shared.seed, 2 * thread as u64),
            choices: Random::stream(shared.seed, 2 * thread as u64 + 1),
            sampler,
            writer: slot.writer.unwrap_or(0),
            inserter: slot.inserter.unwrap_or(0),
            inserted: 0,
            pending_inserts: 0,
            range,
            threads: shared.slots.len() as u64,
            thread: thread as u64,
            writes: 0,
            put_off: None,
            units: Vec::with_capacity(shared.phase.join.max(64) as usize),
            items: Vec::new(),
            count: 0,
            is_out_of_keys: false,
        })
    }

    /// Items of this thread in one pass of a distribution that gives each once.
    pub fn pass_len(&self) -> u64 {
        self.sampler.part_len()
    }

    /// Whether an insert found no key left.
    pub fn is_out_of_keys(&self) -> bool {
        self.is_out_of_keys
    }

    /// Ops that one unit of the thread's largest kind takes.
    pub fn largest_unit(phase: &Phase, role: Role) -> usize {
        let mix = mix_of(phase, role);
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.share(&mix) > 0.0);
        kinds.map(|kind| kind.ops(phase)).max().unwrap_or(1)
    }

    /// Draws units until the batch has `target` ops (at least one unit, at most the arena's ops), or `ops_left` ops
    /// are counted.
    #[inline]
    pub fn fill(&mut self, shared: &Shared<'_>, arena: &mut Arena, target: usize, ops_left: u64) {
        self.units.clear();
        self.items.clear();
        self.count = 0;
        self.pending_inserts = 0;
        if shared.phase.grows {
            let now = shared.dense_now();
            if now > self.range {
                self.range = now;
                self.sampler.grow(now);
            }
        }
        let capacity = arena.shape().ops;
        let mut counted = 0;
        while self.count < target && counted < ops_left && !self.is_out_of_keys {
            let kind = self.put_off.take().unwrap_or_else(|| self.chooser.next(&mut self.choices));
            let mut ops = kind.ops(&self.phase);
            if self.count > 0 && self.count + ops > capacity {
                self.put_off = Some(kind);
                break;
            }
            if kind.counted_ops(ops) == ops as u64 {
                ops = ops.min((ops_left - counted) as usize);
            }
            let first = self.count;
            self.add(shared, arena, kind, ops);
            let ops = self.count - first;
            if ops > 0 {
                self.units.push(Unit { kind, first, ops });
                counted += kind.counted_ops(ops);
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, shared: &Shared<'_>, arena: &mut Arena, kind: Kind, ops: usize) {
        match kind {
            Kind::Get => self.add_get(shared, arena, 0),
            Kind::MultiGet => {
                for left in (0..ops).rev() {
                    self.add_get(shared, arena, join_flag(left));
                }
            }
            Kind::Put => self.add_puts(shared, arena, ops),
            Kind::Insert => self.add_inserts(shared, arena, ops),
            Kind::Update => {
                for left in (0..ops).rev() {
                    let index = self.own(shared);
                    self.add_put(shared, arena, index, join_flag(left));
                }
            }
            Kind::Delete => {
                for left in (0..ops).rev() {
                    let index = self.own(shared);
                    self.add_delete(shared, arena, index, join_flag(left));
                }
            }
            Kind::Scan => self.add_scan(shared, arena),
            Kind::Merge => self.add_merge(shared, arena),
            Kind::ReadModifyWrite => {
                let index = self.own(shared);
                self.add_get_of(shared, arena, index, 0);
                self.add_put(shared, arena, index, 0);
            }
            Kind::Transaction => {
                for left in (0..ops).rev() {
                    let index = self.own(shared);
                    self.add_put(shared, arena, index, KV_ATOMIC | join_flag(left));
                }
            }
        }
    }

    /// Ends a group that found no more keys: its last op so far is tied to nothing.
    #[cold]
    fn end_group(&mut self, arena: &mut Arena) {
        if let Some(last) = self.count.checked_sub(1) {
            arena.op_mut(last).flags &= !KV_JOIN;
        }
    }

    /// A key that this thread may write.
    #[inline(always)]
    fn own(&mut self, shared: &Shared<'_>) -> u64 {
        loop {
            let index = self.sampler.next(&mut self.random);
            if shared.writers <= 1 || index % shared.writers == self.writer {
                return index;
            }
        }
    }

    /// The next new key of this thread; none: the keys are used up.
    #[inline(always)]
    fn next_new(&mut self, shared: &Shared<'_>) -> Option<u64> {
        let place = self.inserted + self.pending_inserts;
        let index = shared.population.next_insert + self.inserter + shared.inserters * place;
        if index >= shared.insert_end {
            self.is_out_of_keys = true;
            return None;
        }
        self.pending_inserts += 1;
        Some(index)
    }

    /// Inserts up to op `done` were acknowledged.
    pub fn acknowledge_inserts(&mut self, count: u64) {
        self.inserted += count;
    }

    #[inline(always)]
    fn add_puts(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        for left in (0..ops).rev() {
            let index = match self.phase.existing {
                Some(share) if self.choices.unit() >= share => match self.next_new(shared) {
                    Some(index) => index,
                    None => return self.end_group(arena),
                },
                _ => self.own(shared),
            };
            self.add_put(shared, arena, index, join_flag(left));
        }
    }

    fn add_inserts(&mut self, shared: &Shared<'_>, arena: &mut Arena, ops: usize) {
        let new = if shared.capabilities & KV_CAN_NEW != 0 { KV_NEW } else { 0 };
        for left in (0..ops).rev() {
            let flags = join_flag(left) | new;
            if self.phase.existing.is_some_and(|share| self.choices.unit() < share) {
                let index = self.own(shared);
                self.add_refused_insert(shared, arena, index, flags);
                continue;
            }
            let Some(index) = self.next_new(shared) else { return self.end_group(arena) };
            self.add_put(shared, arena, index, flags);
        }
    }

    /// An insert of a key that is there: it must be refused, and its value must never be seen.
    fn add_refused_insert(&mut self, shared: &Shared<'_>, arena: &mut Arena, index: u64, flags: u16) {
        let slot = self.count;
        let last = shared.versions.and_then(|versions| versions.started(index)).unwrap_or_default();
        let key = shared.keys.write(index, arena.key_mut(slot));
        let value = shared.values.write(index, u64::from(last.version()) + 1, arena.value_mut(slot));
        set(arena.op_mut(slot), KV_PUT, flags, key, value);
        self.items.push(Item { index, miss: true, ..Item::default() });
        self.count += 1;
    }

    #[inline(always)]
    fn add_get(&mut self, shared: &Shared<'_>, arena: &mut Arena, flags: u16) {
        let index = self.sampler.next(&mut self.random);
        if self.phase.miss > 0.0 && self.choices.unit() < self.phase.miss {
            let slot = self.count;
            let length = shared.keys.write_missing(index, arena.key_mut(slot));
            set(arena.op_mut(slot), KV_GET, flags, length, 0);
            self.items.push(Item { index, miss: true, ..Item::default() });
            self.count += 1;
            return;
        }
        self.add_get_of(shared, arena, index, flags);
    }

    #[inline(always)]
    fn add_get_of(&mut self, shared: &Shared<'_>, arena: &mut Arena, index: u64, flags: u16) {
        let slot = self.count;
        let length = shared.keys.write(index, arena.key_mut(slot));
        set(arena.op_mut(slot), KV_GET, flags, length, 0);
        let mut item = Item { index, ..Item::default() };
        if let Some(versions) = shared.versions {
            item.exact = !shared.writes
                || (shared.slots.len() == 1)
                || (shared.writers > 0 && self.owns(shared) && index % shared.writers == self.writer);
            let state = if item.exact { versions.started(index) } else { versions.acked(index) };
            item.known = state.is_some();
            item.state = state.unwrap_or_default();
        }
        self.items.push(item);
        self.count += 1;
    }

    fn owns(&self, shared: &Shared<'_>) -> bool {
        // Fresh inserts are written by their inserter, whoever owns the number later.
        shared.inserters == 0 && self.chooser.kinds().any(Kind::writes)
    }

    #[inline(always)]
    fn add_put(&mut self, shared: &Shared<'_>, arena: &mut Arena, index: u64, flags: u16) {
        let slot = self.count;
        let state = shared.versions.and_then(|versions| versions.begin(index, false));
        // Without a table versions only make the bytes differ: content is checked, staleness is not.
        self.writes += 1;
        let version =
            state.map_or(self.writes * self.threads + self.thread, |state| u64::from(state.version()));
        let key = shared.keys.write(index, arena.key_mut(slot));
        let value = shared.values.write(index, version, arena.value_mut(slot));
        set(arena.op_mut(slot), KV_PUT, flags, key, value);
        self.items.push(Item {
            index,
            state: state.unwrap_or_default(),
            known: state.is_some(),
            ..Item::default()
        });
        self.count += 1;
    }

    fn add_delete(&mut self, shared: &Shared<'_>, arena: &mut Arena, index: u64, flags: u16) {
        let slot = self.count;
        // The state before says whether the engine must find the key.
        let was_there = shared.versions.and_then(|versions| versions.started(index));
        let state = shared.versions.and_then(|versions| versions.begin(index, true));
        let key = shared.keys.write(index, arena.key_mut(slot));
        set(arena.op_mut(slot), KV_DELETE, flags, key, 0);
        self.items.push(Item {
            index,
            state: state.unwrap_or_default(),
            known: state.is_some(),
            exact: was_there.is_some_and(|state| !state.is_absent()),
            miss: false,
        });
        self.count += 1;
    }

    fn add_merge(&mut self, shared: &Shared<'_>, arena: &mut Arena) {
        let slot = self.count;
        let native = shared.capabilities & KV_MERGE_ADD != 0;
        // Emulated by get and put, a counter needs one writing thread.
        let drawn = if native { self.sampler.next(&mut self.random) } else { self.own(shared) };
        let index = shared.counters_from + drawn;
        let key = shared.keys.write(index, arena.key_mut(slot));
        arena.value_mut(slot)[..8].copy_from_slice(&1u64.to_le_bytes());
        set(arena.op_mut(slot), KV_MERGE, 0, key, 8);
        self.items.push(Item { index, ..Item::default() });
        self.count += 1;
    }

    fn add_scan(&mut self, shared: &Shared<'_>, arena: &mut Arena) {
        let slot = self.count;
        let scan = self.phase.scan;
        let index = self.sampler.next(&mut self.random);
        let mut key = shared.keys.write(index, arena.key_mut(slot));
        let mut flags = if scan.reverse { KV_REVERSE } else { 0 };
        let mut value = 0;
        if scan.prefix {
            flags |= KV_PREFIX;
            value = shared.keys.prefix_len();
            let prefix: Vec<u8> = arena.key_mut(slot)[..value].to_vec();
            arena.value_mut(slot)[..value].copy_from_slice(&prefix);
            // A prefix scan is of the whole group: it starts at the group's end.
            key = 0;
        }
        if scan.rows == 0 && !scan.prefix {
            // To the end means a whole pass: from one end of the keyspace to the other.
            key = 0;
        }
        set(arena.op_mut(slot), KV_SCAN, flags, key, value);
        arena.op_mut(slot).limit = match (scan.rows, scan.uniform_rows) {
            (0, _) => u32::MAX,
            (rows, true) => 1 + self.choices.below(u64::from(rows)) as u32,
            (rows, false) => rows,
        };
        self.items.push(Item { index, ..Item::default() });
        self.count += 1;
    }
}

#[inline(always)]
fn join_flag(left: usize) -> u16 {
    if left > 0 { KV_JOIN } else { 0 }
}

/// Fills in the core's half of an op; its pointers stay.
#[inline(always)]
fn set(op: &mut kv_op, kind: u8, flags: u16, key: usize, value: usize) {
    op.kind = kind;
    op.flags = flags;
    op.key_length = key as u32;
    op.value_length = value as u32;
    op.limit = 0;
    op.due = 0;
    op.retries = 0;
}
