//! A copy of what the core has sent, outside the arena, where no driver can reach it: the first cache line of each op
//! and the core's part of the batch. A driver that changed these would change the data that it is checked against.

use super::Arena;
use crate::engine::abi::*;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// The core's half of an op, as words.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Half([u64; 8]);

/// Size of the core's half of an op; the driver's half follows.
const _: () = assert!(size_of::<Half>() == offset_of!(kv_op, start));

impl Half {
    pub(super) const EMPTY: Half = Half([0; 8]);
}

/// The core's part of the batch, until the core changes it.
pub(super) struct SentBatch {
    pub deadline: u64,
    pub stop: &'static AtomicU32,
    pub clock: u32,
}

/// The offsets of the fields in an op's first half.
const FIELDS: [(usize, &str); 13] = [
    (offset_of!(kv_op, kind), "the kind"),
    (offset_of!(kv_op, slot), "the slot"),
    (offset_of!(kv_op, flags), "the flags"),
    (offset_of!(kv_op, keyspace), "the keyspace"),
    (offset_of!(kv_op, split), "the split"),
    (offset_of!(kv_op, key), "the key's pointer"),
    (offset_of!(kv_op, value), "the value's pointer"),
    (offset_of!(kv_op, out), "the out buffer's pointer"),
    (offset_of!(kv_op, key_length), "the key's length"),
    (offset_of!(kv_op, value_length), "the value's length"),
    (offset_of!(kv_op, out_size), "the out buffer's size"),
    (offset_of!(kv_op, limit), "the limit"),
    (offset_of!(kv_op, due), "the due tick"),
];

/// The result of scanning the ops of a call, combined, so that it costs one branch per call.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Seen {
    /// Nonzero if the core's half of some op has changed, or its status is not `KV_OK`.
    pub odd: u64,
    /// Nonzero if some op reports a length beyond its out buffer.
    pub over: u64,
    /// All kinds, combined with OR.
    pub kinds: u8,
}

/// Records what is sent, and marks all ops as unanswered.
#[inline(always)]
fn note(ops: &mut [kv_op], sent: &mut [Half]) {
    for (op, sent) in ops.iter_mut().zip(sent) {
        op.status = KV_NOT_RUN;
        *sent = *half(op);
    }
}

#[inline(always)]
fn compare(ops: &[kv_op], sent: &[Half]) -> Seen {
    let (mut changed, mut status, mut over, mut kinds) = ([0; 8], 0, 0, 0);
    for (op, sent) in ops.iter().zip(sent) {
        let now = half(op);
        for (changed, (now, sent)) in changed.iter_mut().zip(now.0.iter().zip(&sent.0)) {
            *changed |= now ^ sent;
        }
        status |= op.status;
        kinds |= op.kind;
        // The sign bit is set if the length is too large: by a little, or by so much that the difference wraps
        // around.
        over |= u64::from(op.out_size).wrapping_sub(op.length) | op.length;
    }
    let changed = changed.iter().fold(0, |bits, word| bits | word);
    Seen { odd: changed | u64::from(status), over: over >> 63, kinds }
}

/// The same with 32 bytes at a time, for processors with such registers: this halves the cost.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn note_wide(ops: &mut [kv_op], sent: &mut [Half]) {
    note(ops, sent);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn compare_wide(ops: &[kv_op], sent: &[Half]) -> Seen {
    compare(ops, sent)
}

/// The core's half of an op of an arena.
#[inline(always)]
fn half(op: &kv_op) -> &Half {
    // SAFETY: an op begins with its half, without padding, and the ops of an arena are on separate cache lines.
    unsafe { &*std::ptr::from_ref(op).cast::<Half>() }
}

impl Arena {
    /// Records what is sent, and marks all ops as unanswered.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, first: usize, count: usize) {
        let from = self.op_pointer(first);
        let sent = &mut self.sent[first..first + count];
        // SAFETY: as many ops as halves are there, and the arena is borrowed mutably.
        let ops = unsafe { std::slice::from_raw_parts_mut(from, sent.len()) };
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports it.
            return unsafe { note_wide(ops, sent) };
        }
        note(ops, sent);
    }

    /// Scans all ops of a call at once.
    #[inline(always)]
    pub(in crate::engine) fn seen(&self, first: usize, count: usize) -> Seen {
        let (ops, sent) = (&self.ops()[first..first + count], &self.sent[first..first + count]);
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor supports it.
            return unsafe { compare_wide(ops, sent) };
        }
        compare(ops, sent)
    }

    /// Whether the driver has changed the core's half of an op that was sent.
    pub(in crate::engine) fn has_changed(&self, index: usize) -> bool {
        half(self.op(index)).0 != self.sent[index].0
    }

    /// The name of the first field that the driver changed.
    pub(in crate::engine) fn changed_field(&self, index: usize) -> &'static str {
        let now = *half(self.op(index));
        let bytes = |half: Half| half.0.map(u64::to_ne_bytes);
        let (now, sent) = (bytes(now), bytes(self.sent[index]));
        let at = now.iter().flatten().zip(sent.iter().flatten()).position(|(now, sent)| now != sent);
        let field = at.and_then(|at| FIELDS.iter().rev().find(|(from, _)| *from <= at && at < 56));
        field.map_or("the core's own word", |(_, name)| name)
    }

    /// The kind of an op as it was sent.
    pub(in crate::engine) fn sent_kind(&self, index: usize) -> u8 {
        self.sent[index].0[0].to_ne_bytes()[0]
    }

    /// Whether the core's part of a batch is unchanged.
    #[inline(always)]
    pub(in crate::engine) fn is_batch_as_sent(&self, first: usize, count: usize) -> bool {
        let (batch, sent) = (self.batch(), &self.sent_batch);
        std::ptr::eq(batch.ops, self.op_pointer(first))
            && batch.count as usize == count
            && batch.deadline == sent.deadline
            && std::ptr::eq(batch.stop, sent.stop)
            && batch.clock == sent.clock
    }

    /// Whether the word that ends batches is set.
    pub(in crate::engine) fn is_stopped(&self) -> bool {
        self.sent_batch.stop.load(Ordering::Relaxed) != 0
    }

    /// After a call that broke a rule: restores everything as it was sent, without any answers.
    #[cold]
    pub(in crate::engine) fn void(&mut self, first: usize, count: usize) {
        for at in first..first + count {
            let sent = self.sent[at];
            let op = self.op_mut(at);
            // SAFETY: as in `half`, and the arena is borrowed mutably.
            unsafe { std::ptr::from_mut(op).cast::<Half>().write(sent) };
            op.status = KV_ERROR;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Shape;

    static NEVER: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn every_field_that_a_driver_changes_is_named_and_restored() {
        let mut arena = Arena::new(Shape { ops: 4, key_bytes: 8, value_bytes: 8, out_bytes: 8 }, 0, &NEVER);
        type Change = fn(&mut kv_op);
        let changes: [(Change, &str); 14] = [
            (|op| op.kind += 1, "the kind"),
            (|op| op.slot += 1, "the slot"),
            (|op| op.flags ^= KV_ATOMIC, "the flags"),
            (|op| op.keyspace += 256, "the keyspace"),
            (|op| op.split += 1, "the split"),
            (|op| op.key = op.key.wrapping_add(1), "the key's pointer"),
            (|op| op.value = op.value.wrapping_add(1), "the value's pointer"),
            (|op| op.out = op.out.wrapping_add(1), "the out buffer's pointer"),
            (|op| op.key_length += 1, "the key's length"),
            (|op| op.value_length += 1, "the value's length"),
            (|op| op.out_size += 1, "the out buffer's size"),
            (|op| op.limit += 1, "the limit"),
            (|op| op.due += 1, "the due tick"),
            (|op| op.user += 1, "the core's own word"),
        ];
        arena.prepare_batch(1, 3);
        for (change, name) in changes {
            (1..4).for_each(|at| arena.op_mut(at).status = KV_OK);
            assert!(!arena.has_changed(2) && arena.seen(1, 3).odd == 0);
            change(arena.op_mut(2));
            assert!(arena.has_changed(2), "{name}");
            assert_ne!(arena.seen(1, 3).odd, 0, "{name}");
            assert_ne!(
                compare(&arena.ops()[1..4], &arena.sent[1..4]).odd,
                0,
                "{name}, without wide registers"
            );
            assert_eq!(arena.changed_field(2), name);
            arena.void(1, 3);
        }
        assert!(arena.is_batch_as_sent(1, 3) && !arena.is_batch_as_sent(0, 3));
        assert_eq!(arena.op(2).status, KV_ERROR);
    }

    #[test]
    fn one_odd_op_of_many_is_seen() {
        let mut arena = Arena::new(Shape { ops: 64, key_bytes: 8, value_bytes: 8, out_bytes: 8 }, 0, &NEVER);
        arena.prepare_batch(0, 64);
        assert_eq!(arena.seen(0, 64).odd, u64::from(KV_NOT_RUN));
        (0..64).for_each(|at| (arena.op_mut(at).status, arena.op_mut(at).length) = (KV_OK, 8));
        let seen = arena.seen(0, 64);
        assert_eq!((seen.odd, seen.over, seen.kinds), (0, 0, KV_NOTHING));
        for length in [9, u64::from(u32::MAX), 1 << 63, (1 << 63) + 9, u64::MAX] {
            arena.op_mut(17).length = length;
            assert_eq!((arena.seen(0, 64).over, arena.seen(18, 46).over), (1, 0), "{length}");
        }
    }
}
