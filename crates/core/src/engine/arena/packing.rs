//! Ops of any size in one arena: their bytes are stored one after the other, for callers who do not know sizes in
//! advance.

use super::{Arena, Shape};

impl Arena {
    /// The shape of an arena for `ops` packed ops whose keys, values and out bytes take at most `bytes` in total.
    pub fn packed_shape(ops: usize, bytes: usize) -> Shape {
        Shape { ops, key_bytes: 0, value_bytes: 0, out_bytes: bytes.div_ceil(ops.max(1)) + 8 }
    }

    /// Bytes that are left for packed ops.
    pub fn pack_room(&self) -> usize {
        self.parts.size - self.parts.keys - self.packed
    }

    /// Removes all packed ops.
    pub fn clear_pack(&mut self) {
        self.packed = 0;
    }

    /// Places key, value and `out_bytes` of op `index` after those packed before, and sets the op's pointers and
    /// lengths to them. Returns `false` without any effect if there is not enough space.
    pub fn pack(&mut self, index: usize, key: &[u8], value: &[u8], out_bytes: usize) -> bool {
        let wanted = key.len() + value.len() + out_bytes;
        // Keeps lengths and rounding far below the range of usize and u32.
        if wanted > u32::MAX as usize || wanted + 8 > self.pack_room() {
            return false;
        }
        let start = self.parts.keys + self.packed;
        let pointers =
            [start, start + key.len(), start + key.len() + value.len()].map(|offset| self.at(offset));
        // SAFETY: `wanted` bytes from `start` on are in the block, after its ops, and the arena is borrowed mutably.
        unsafe {
            std::ptr::copy_nonoverlapping(key.as_ptr(), pointers[0], key.len());
            std::ptr::copy_nonoverlapping(value.as_ptr(), pointers[1], value.len());
        }
        self.packed += wanted.div_ceil(8) * 8;
        let op = self.op_mut(index);
        (op.key, op.value, op.out) = (pointers[0], pointers[1], pointers[2]);
        (op.key_length, op.value_length) = (key.len() as u32, value.len() as u32);
        op.out_size = out_bytes as u32;
        true
    }

    /// The bytes that a packed op delivered; never more than its out bytes.
    pub fn packed_delivered(&self, index: usize) -> &[u8] {
        let op = self.op(index);
        self.within(op.out, (op.length as usize).min(op.out_size as usize))
    }

    /// The key of a packed op.
    pub fn packed_key(&self, index: usize) -> &[u8] {
        let op = self.op(index);
        self.within(op.key, op.key_length as usize)
    }

    fn within(&self, start: *const u8, length: usize) -> &[u8] {
        let from = (start as usize).wrapping_sub(self.base.as_ptr() as usize);
        let is_ours = from >= self.parts.keys && from.saturating_add(length) <= self.parts.size;
        assert!(is_ours, "the driver has changed the core's part of the op");
        // SAFETY: within the block, as asserted.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(from), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    static STOP: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn packed_ops_lie_apart_and_fill_the_arena_to_its_end() {
        let mut arena = Arena::new(Arena::packed_shape(8, 4096), 0, &STOP);
        let room = arena.pack_room();
        assert!(room >= 4096);
        assert!(arena.pack(0, b"key", b"value", 100));
        assert!(arena.pack(1, b"", b"", room - 200));
        assert!(!arena.pack(2, b"k", b"v", 200), "there is not enough space");
        let (first, second) = (arena.op(0), arena.op(1));
        assert_eq!((first.key_length, first.value_length, first.out_size), (3, 5, 100));
        assert!(first.out as usize + 100 <= second.key as usize);
        arena.op_mut(0).length = 1 << 40;
        assert_eq!(arena.packed_delivered(0).len(), 100);
        arena.clear_pack();
        assert_eq!(arena.pack_room(), room);
    }
}
