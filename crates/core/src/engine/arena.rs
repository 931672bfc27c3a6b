//! A session's memory: the batch, its ops, and for each op a slot for key, value and out bytes. One block, passed to
//! the driver as base and size (rule 5 of driver.h), between two inaccessible pages. Where ops are timed, every page is touched
//! before, because the first touch of a page inside a timed call would be charged to the engine.

mod guard_pages;
mod memory;
mod packing;
mod sent;
mod trespass;

use self::guard_pages::Guards;
use self::memory::{Memory, page, touch, whole_pages};
use self::sent::{Half, SentBatch};
use super::abi::{KV_GET, KV_SCAN, KV_STRONG, kv_arena, kv_batch, kv_op};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The dimensions of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Maximum ops of a batch.
    pub ops: usize,
    /// Bytes of a key slot.
    pub key_bytes: usize,
    /// Bytes of a value slot (values to write, bounds, prefixes).
    pub value_bytes: usize,
    /// Bytes of an out slot.
    pub out_bytes: usize,
}

/// The offsets of a shape's parts.
#[derive(Clone, Copy)]
struct Parts {
    ops: usize,
    keys: usize,
    values: usize,
    outs: usize,
    size: usize,
    key_step: usize,
    value_step: usize,
    out_step: usize,
}

fn parts(shape: &Shape) -> Parts {
    let line = |bytes: usize| bytes.div_ceil(16) * 16;
    let block = |bytes: usize| bytes.div_ceil(64) * 64;
    let (key_step, value_step, out_step) =
        (line(shape.key_bytes), line(shape.value_bytes), line(shape.out_bytes));
    let ops = block(size_of::<kv_batch>());
    let keys = ops + shape.ops * size_of::<kv_op>();
    let values = keys + block(shape.ops * key_step);
    let outs = values + block(shape.ops * value_step);
    let size = whole_pages(outs + block(shape.ops * out_step));
    Parts { ops, keys, values, outs, size, key_step, value_step, out_step }
}

impl Shape {
    /// The bytes that an arena of this shape takes.
    pub fn bytes(&self) -> usize {
        parts(self).size
    }

    /// The same for fewer ops, if its arena takes more than so many bytes: half of them, again and again, but at least `least`.
    pub fn within(mut self, bytes: usize, least: usize) -> Shape {
        while self.ops > least && self.bytes() > bytes {
            self.ops = (self.ops / 2).max(least);
        }
        self
    }
}

/// The memory of one session.
pub struct Arena {
    base: NonNull<u8>,
    /// Size in bytes that is reported to the driver, from the base on.
    span: usize,
    shape: Shape,
    parts: Parts,
    /// Bytes after the ops that packed ops have used.
    packed: usize,
    /// The ops and the batch as they were sent.
    sent: Box<[Half]>,
    sent_batch: SentBatch,
    /// Reads are sent with `KV_STRONG`.
    is_strong: bool,
    /// Where the driver sees keys, values and out buffers of guarded ops; `None`: in the slots.
    guards: Option<Box<Guards>>,
    /// Owns all of the memory.
    memory: Memory,
}

// SAFETY: an arena owns its block; nothing in it belongs to a thread.
unsafe impl Send for Arena {}

impl Arena {
    /// Creates a zeroed arena whose ops permanently point to their slots. `stop` is the word that ends a batch early.
    pub fn new(shape: Shape, clock: u32, stop: &'static AtomicU32) -> Arena {
        Arena::in_memory(shape, clock, stop, false).touched()
    }

    /// The same with guard pages: each key, value and out buffer ends at an inaccessible page. This costs copies
    /// around each call. Its pages are not touched yet: checks open many sessions and use little of each.
    pub fn guarded(shape: Shape, clock: u32, stop: &'static AtomicU32) -> Arena {
        Arena::in_memory(shape, clock, stop, true)
    }

    fn in_memory(shape: Shape, clock: u32, stop: &'static AtomicU32, is_guarded: bool) -> Arena {
        let parts = parts(&shape);
        let behind = if is_guarded { guard_pages::span(&shape) } else { 0 };
        let memory = Memory::reserve(page() + parts.size + page() + behind);
        let base = memory.open(page(), parts.size);
        let guards = is_guarded.then(|| Box::new(Guards::new(&shape, &memory, page() + parts.size + page())));
        let span = if is_guarded { parts.size + page() + behind } else { parts.size };
        let sent = vec![Half::EMPTY; shape.ops].into_boxed_slice();
        let sent_batch = SentBatch { deadline: 0, stop, clock };
        let mut arena =
            Arena { base, span, shape, parts, packed: 0, sent, sent_batch, is_strong: false, guards, memory };
        for index in 0..shape.ops {
            let key = arena.at(parts.keys + index * parts.key_step);
            let value = arena.at(parts.values + index * parts.value_step);
            let out = arena.at(parts.outs + index * parts.out_step);
            let op = arena.op_mut(index);
            op.key = key;
            op.value = value;
            op.out = out;
            op.out_size = shape.out_bytes as u32;
        }
        arena
    }

    /// Touches all of its pages, before it is used.
    pub fn touched(mut self) -> Arena {
        // SAFETY: they are the arena's own and accessible, and no driver has been given them yet.
        unsafe { touch(self.base, self.parts.size) };
        if let Some(guards) = &mut self.guards {
            guards.touch();
        }
        self
    }

    /// Sets for all ops, permanently, how many leading bytes of their keys name a collection.
    pub fn set_split(&mut self, bytes: u16) {
        for index in 0..self.shape.ops {
            self.op_mut(index).split = bytes;
        }
    }

    #[inline(always)]
    fn at(&self, offset: usize) -> *mut u8 {
        // SAFETY: offsets come from `parts` and are within the block.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Keeps its memory mapped forever, because a driver that broke the rules may still use it.
    pub(super) fn keep_mapped(&mut self) {
        self.memory.is_kept = true;
    }

    /// The memory that it takes, without copies at guard pages, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.parts.size as u64
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The pointer that a driver gets at session.
    pub(super) fn raw(&self) -> kv_arena {
        kv_arena { base: self.base.as_ptr(), size: self.span as u64 }
    }

    /// The batch.
    #[inline(always)]
    pub(super) fn batch_mut(&mut self) -> &mut kv_batch {
        // SAFETY: the block begins with the batch; all zeroes is a valid batch.
        unsafe { &mut *self.base.as_ptr().cast::<kv_batch>() }
    }

    /// The batch.
    #[inline(always)]
    pub fn batch(&self) -> &kv_batch {
        // SAFETY: as above.
        unsafe { &*self.base.as_ptr().cast::<kv_batch>() }
    }

    /// Sets the batch to `count` ops from op `first` on.
    #[inline(always)]
    pub(super) fn prepare_batch(&mut self, first: usize, count: usize) {
        assert!(first + count <= self.shape.ops);
        if self.is_strong {
            self.ask_strong(first, count);
        }
        if self.guards.is_some() {
            self.give_guarded(first, count);
        }
        self.note_sent(first, count);
        let ops = self.op_pointer(first);
        let SentBatch { deadline, stop, clock } = self.sent_batch;
        let batch = self.batch_mut();
        batch.ops = ops;
        batch.count = count as u32;
        (batch.deadline, batch.stop, batch.clock) = (deadline, stop, clock);
        batch.done.store(0, Ordering::Relaxed);
        batch.waited = 0;
        batch.error[0] = 0;
    }

    /// Sets whether reads must see every acknowledged write, where the store could also answer with older ones.
    pub(super) fn set_strong(&mut self, is_strong: bool) {
        self.is_strong = is_strong;
    }

    #[cold]
    fn ask_strong(&mut self, first: usize, count: usize) {
        for at in first..first + count {
            let op = self.op_mut(at);
            if matches!(op.kind, KV_GET | KV_SCAN) {
                op.flags |= KV_STRONG;
            }
        }
    }

    /// Sets the tick after which no op is started; none: there is no such tick, which is 0 for the driver.
    pub fn set_deadline(&mut self, tick: Option<u64>) {
        self.sent_batch.deadline = tick.map_or(0, |tick| tick.max(1));
    }

    /// The address of op `first`, or of the end of the ops.
    #[inline(always)]
    fn op_pointer(&self, first: usize) -> *mut kv_op {
        assert!(first <= self.shape.ops);
        self.at(self.parts.ops + first * size_of::<kv_op>()).cast()
    }

    /// An op.
    #[inline(always)]
    pub fn op(&self, index: usize) -> &kv_op {
        assert!(index < self.shape.ops);
        // SAFETY: `shape.ops` ops are at `parts.ops`.
        unsafe { &*self.at(self.parts.ops).cast::<kv_op>().add(index) }
    }

    /// All ops, in order.
    #[inline(always)]
    pub fn ops(&self) -> &[kv_op] {
        // SAFETY: `shape.ops` ops are at `parts.ops`.
        unsafe { std::slice::from_raw_parts(self.at(self.parts.ops).cast::<kv_op>(), self.shape.ops) }
    }

    /// An op, to be filled in. Its pointers must not be changed.
    #[inline(always)]
    pub fn op_mut(&mut self, index: usize) -> &mut kv_op {
        assert!(index < self.shape.ops);
        // SAFETY: as above, and the arena is borrowed mutably.
        unsafe { &mut *self.at(self.parts.ops).cast::<kv_op>().add(index) }
    }

    /// The key slot of an op.
    #[inline(always)]
    pub fn key_mut(&mut self, index: usize) -> &mut [u8] {
        assert!(index < self.shape.ops);
        // SAFETY: slot `index` has key_bytes bytes of the block, borrowed mutably.
        unsafe {
            let slot = self.at(self.parts.keys + index * self.parts.key_step);
            std::slice::from_raw_parts_mut(slot, self.shape.key_bytes)
        }
    }

    /// The key of an op, with the op's length.
    #[inline(always)]
    pub fn key(&self, index: usize) -> &[u8] {
        let length = (self.op(index).key_length as usize).min(self.shape.key_bytes);
        // SAFETY: as above, and no longer than the slot.
        unsafe { std::slice::from_raw_parts(self.at(self.parts.keys + index * self.parts.key_step), length) }
    }

    /// The value slot of an op.
    #[inline(always)]
    pub fn value_mut(&mut self, index: usize) -> &mut [u8] {
        assert!(index < self.shape.ops);
        // SAFETY: slot `index` has value_bytes bytes of the block, borrowed mutably.
        unsafe {
            let slot = self.at(self.parts.values + index * self.parts.value_step);
            std::slice::from_raw_parts_mut(slot, self.shape.value_bytes)
        }
    }

    /// The value of an op (bytes to write, bound or prefix), with the op's length.
    #[inline(always)]
    pub fn value(&self, index: usize) -> &[u8] {
        let length = (self.op(index).value_length as usize).min(self.shape.value_bytes);
        // SAFETY: as above, and no longer than the slot.
        unsafe {
            std::slice::from_raw_parts(self.at(self.parts.values + index * self.parts.value_step), length)
        }
    }

    /// The bytes that an op delivered: `length` bytes of its out slot. A length beyond the slot is a fault of the
    /// driver; the slice is truncated and the caller sees the difference in `op.length`.
    #[inline(always)]
    pub fn delivered(&self, index: usize) -> &[u8] {
        let length = (self.op(index).length as usize).min(self.shape.out_bytes);
        // SAFETY: no longer than the slot.
        unsafe { std::slice::from_raw_parts(self.at(self.parts.outs + index * self.parts.out_step), length) }
    }

    /// The first bytes of an out slot, regardless of the delivered length.
    fn slot(&self, index: usize, length: usize) -> &[u8] {
        assert!(index < self.shape.ops && length <= self.shape.out_bytes);
        // SAFETY: no longer than the slot.
        unsafe { std::slice::from_raw_parts(self.at(self.parts.outs + index * self.parts.out_step), length) }
    }

    fn slot_mut(&mut self, index: usize, length: usize) -> &mut [u8] {
        assert!(index < self.shape.ops && length <= self.shape.out_bytes);
        // SAFETY: as above, and the arena is borrowed mutably.
        unsafe {
            std::slice::from_raw_parts_mut(self.at(self.parts.outs + index * self.parts.out_step), length)
        }
    }

    /// The first bytes of a key slot, regardless of the op's length.
    fn sent_key(&self, index: usize, length: usize) -> &[u8] {
        assert!(index < self.shape.ops && length <= self.shape.key_bytes);
        // SAFETY: no longer than the slot.
        unsafe { std::slice::from_raw_parts(self.at(self.parts.keys + index * self.parts.key_step), length) }
    }

    /// The same for a value slot.
    fn sent_value(&self, index: usize, length: usize) -> &[u8] {
        assert!(index < self.shape.ops && length <= self.shape.value_bytes);
        // SAFETY: no longer than the slot.
        unsafe {
            std::slice::from_raw_parts(self.at(self.parts.values + index * self.parts.value_step), length)
        }
    }

    /// What the last call did to memory outside the driver's, if there are guard pages.
    pub(super) fn trespass(&self) -> Option<&(usize, String)> {
        self.guards.as_ref().and_then(|guards| guards.trespass.as_ref())
    }

    /// Whether it has guard pages.
    #[inline(always)]
    pub(super) fn is_guarded(&self) -> bool {
        self.guards.is_some()
    }
}
