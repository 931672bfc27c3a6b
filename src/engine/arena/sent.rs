//! What the core has sent, beside the arena, where no driver can reach it: the first cache line of each op and the core's
//! part of the batch. A driver that changes them changes what it is judged by.

use super::Arena;
use crate::engine::abi::*;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// The core's half of an op, as words.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Half([u64; 8]);

/// The core's half of an op ends where the driver's begins.
const _: () = assert!(size_of::<Half>() == offset_of!(kv_op, start));

impl Half {
    pub(super) const EMPTY: Half = Half([0; 8]);
}

/// What of the batch is the core's for good, or until it says otherwise.
pub(super) struct SentBatch {
    pub deadline: u64,
    pub stop: &'static AtomicU32,
    pub clock: u32,
}

/// Fields of an op's first half, where each begins.
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

impl Arena {
    #[inline(always)]
    fn half_at(&self, index: usize) -> *mut Half {
        std::ptr::from_ref(self.op(index)).cast_mut().cast()
    }

    /// Notes what is sent, and that no op has an answer yet.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, first: usize, count: usize) {
        for at in first..first + count {
            self.op_mut(at).status = KV_NOT_RUN;
            // SAFETY: an op begins with its half, without padding, on a cache line of its own.
            self.sent[at] = unsafe { *self.half_at(at) };
        }
    }

    /// Not 0: the driver has changed the core's half of an op that was sent.
    #[inline(always)]
    pub(in crate::engine) fn changed_bits(&self, index: usize) -> u64 {
        // SAFETY: as above.
        let now = unsafe { &*self.half_at(index) };
        let sent = &self.sent[index];
        (0..8).fold(0, |bits, word| bits | (now.0[word] ^ sent.0[word]))
    }

    /// The name of the first field that the driver changed.
    pub(in crate::engine) fn changed_field(&self, index: usize) -> &'static str {
        // SAFETY: as above.
        let now = unsafe { *self.half_at(index) };
        let bytes = |half: Half| half.0.map(u64::to_ne_bytes);
        let (now, sent) = (bytes(now), bytes(self.sent[index]));
        let at = now.iter().flatten().zip(sent.iter().flatten()).position(|(now, sent)| now != sent);
        let field = at.and_then(|at| FIELDS.iter().rev().find(|(from, _)| *from <= at && at < 56));
        field.map_or("the core's own word", |(_, name)| name)
    }

    /// The kind that an op was sent with.
    pub(in crate::engine) fn sent_kind(&self, index: usize) -> u8 {
        self.sent[index].0[0].to_ne_bytes()[0]
    }

    /// Whether the core's part of a batch is as it was sent.
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

    /// After a call that broke a rule: all is as it was sent, and no op has an answer.
    #[cold]
    pub(in crate::engine) fn void(&mut self, first: usize, count: usize) {
        for at in first..first + count {
            // SAFETY: as above, and the arena is borrowed mutably.
            unsafe { *self.half_at(at) = self.sent[at] };
            self.op_mut(at).status = KV_ERROR;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Shape;

    static NEVER: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn every_field_that_a_driver_changes_is_named_and_put_back() {
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
            assert_eq!(arena.changed_bits(2), 0);
            change(arena.op_mut(2));
            assert_ne!(arena.changed_bits(2), 0, "{name}");
            assert_eq!(arena.changed_field(2), name);
            arena.void(1, 3);
        }
        assert!(arena.is_batch_as_sent(1, 3) && !arena.is_batch_as_sent(0, 3));
        assert_eq!(arena.op(2).status, KV_ERROR);
    }
}
