//! Guard pages: each key, value and out buffer that a driver gets ends at an inaccessible page, so that reading or
//! writing one byte too far ends the process immediately. The bytes before each are checked after the call.

use super::memory::{Memory, page, touch, whole_pages};
use super::trespass::Watched;
use super::{Arena, Shape};
use crate::engine::answers::kind_name;
use std::ptr::NonNull;
use strum::VariantArray;

/// Bytes before a key, value or out buffer that are checked.
const LOOK_BYTES: usize = 4096;
/// The value of these bytes.
const FILL: u8 = 0xa5;
static UNCHANGED: [u8; LOOK_BYTES] = [FILL; LOOK_BYTES];

/// The parts of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Region {
    Key,
    Value,
    #[strum(serialize = "out buffer")]
    Out,
}

/// Separate pages for one part of an op, followed by a guard page.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub start: NonNull<u8>,
    pub room: usize,
    /// Bytes at its end that belong to the last call.
    length: usize,
}

impl Place {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the pages are accessible, and callers borrow the arena that owns them mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.room) }
    }

    /// Where the part begins, and how many of the bytes before it are checked.
    fn split(&mut self) -> (&mut [u8], &mut [u8]) {
        let begins = self.room - self.length;
        let (before, given) = self.bytes().split_at_mut(begins);
        (&mut before[begins.saturating_sub(LOOK_BYTES)..], given)
    }

    /// Assigns these bytes to the call; returns where they begin.
    fn give(&mut self, bytes: &[u8]) -> *mut u8 {
        self.length = bytes.len().min(self.room);
        let (before, given) = self.split();
        before.fill(FILL);
        given.copy_from_slice(&bytes[..given.len()]);
        given.as_mut_ptr()
    }
}

/// The places of all ops of an arena.
pub(super) struct Guards {
    places: Box<[[Place; 3]]>,
    /// The first rule that the last call broke.
    pub trespass: Option<(usize, String)>,
    watched: Watched,
}

// SAFETY: the places are in the arena's own memory.
unsafe impl Send for Guards {}

/// Bytes that the places of a shape need, guard pages included.
pub(super) fn span(shape: &Shape) -> usize {
    let of_op = rooms(shape).iter().map(|room| room + page()).sum::<usize>();
    of_op * shape.ops
}

fn rooms(shape: &Shape) -> [usize; 3] {
    [shape.key_bytes, shape.value_bytes, shape.out_bytes].map(|bytes| whole_pages(bytes.max(1)))
}

impl Guards {
    /// Creates places for each op, from offset `from` on, which is preceded by a guard page.
    pub(super) fn new(shape: &Shape, memory: &Memory, from: usize) -> Guards {
        let mut at = from;
        let places: Box<[[Place; 3]]> = (0..shape.ops)
            .map(|_| {
                rooms(shape).map(|room| {
                    let start = memory.open(at, room);
                    at += room + page();
                    Place { start, room, length: 0 }
                })
            })
            .collect();
        let watched = Watched::new(&places);
        Guards { places, trespass: None, watched }
    }

    /// Touches all pages of all places, before they are used.
    pub(super) fn touch(&mut self) {
        for place in self.places.iter().flatten() {
            // SAFETY: `open` made them accessible, and no driver has been given them yet.
            unsafe { touch(place.start, place.room) };
        }
    }
}

impl Arena {
    /// Copies the parts of ops to places that end at a guard page.
    #[cold]
    pub(super) fn give_guarded(&mut self, first: usize, count: usize) {
        let Some(mut guards) = self.guards.take() else { return };
        guards.trespass = None;
        for at in first..first + count {
            let [key, value, out] = &mut guards.places[at];
            let room = (self.op(at).out_size as usize).min(self.shape.out_bytes);
            let pointers =
                (key.give(self.key(at)), value.give(self.value(at)), out.give(self.slot(at, room)));
            let op = self.op_mut(at);
            (op.key, op.value, op.out) = pointers;
        }
        guards.watched.note(&self.ops()[first..first + count], first);
        self.guards = Some(guards);
    }

    /// Whether the out buffer of an op was written to after its call, if there are guard pages.
    pub fn is_changed_since(&mut self, at: usize) -> bool {
        let Some(mut guards) = self.guards.take() else { return false };
        let (_, given) = guards.places[at][2].split();
        let is_changed = *given != *self.slot(at, given.len());
        self.guards = Some(guards);
        is_changed
    }

    /// Copies results to where the core expects them, and checks the memory that a driver must not write to.
    #[cold]
    pub(in crate::engine) fn take_guarded(&mut self, first: usize, count: usize) {
        let Some(mut guards) = self.guards.take() else { return };
        for at in first..first + count {
            let kind = kind_name(self.sent_kind(at));
            for (part, place) in Region::VARIANTS.iter().zip(&mut guards.places[at]) {
                let (before, given) = place.split();
                let is_changed = match part {
                    Region::Key => *given != *self.sent_key(at, given.len()),
                    Region::Value => *given != *self.sent_value(at, given.len()),
                    Region::Out => {
                        self.slot_mut(at, given.len()).copy_from_slice(given);
                        false
                    }
                };
                let is_spilt = *before != UNCHANGED[..before.len()];
                let what = match (is_spilt, is_changed) {
                    (true, _) => "wrote before the",
                    (false, true) => "changed the",
                    (false, false) => continue,
                };
                guards
                    .trespass
                    .get_or_insert_with(|| (at, format!("rule 5: the driver {what} {part} of a {kind}")));
            }
        }
        self.guards = Some(guards);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::abi::*;
    use std::sync::atomic::AtomicU32;

    static NEVER: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn keys_values_and_out_buffers_end_where_a_page_begins_and_bytes_before_them_are_watched() {
        let shape = Shape { ops: 3, key_bytes: 20, value_bytes: 5000, out_bytes: 100 };
        let mut arena = Arena::guarded(shape, 0, &NEVER);
        for at in 0..3 {
            arena.key_mut(at)[..7].copy_from_slice(b"the key");
            arena.value_mut(at)[..4999].fill(7);
            let op = arena.op_mut(at);
            (op.kind, op.key_length, op.value_length, op.out_size) = (KV_GET, 7, 4999, 99);
        }
        type Wrong = fn(&kv_op);
        // SAFETY: each writes within the pages of its own op.
        let wrongs: [(Wrong, Option<&str>); 6] = [
            (|op| unsafe { op.out.write_bytes(3, 99) }, None),
            (|op| unsafe { op.out.sub(1).write(0) }, Some("wrote before the out buffer of a get")),
            (|op| unsafe { op.out.sub(3000).write(0) }, Some("wrote before the out buffer of a get")),
            (|op| unsafe { op.key.cast_mut().write(0) }, Some("changed the key of a get")),
            (|op| unsafe { op.value.cast_mut().add(4998).write(0) }, Some("changed the value of a get")),
            (|op| unsafe { op.value.cast_mut().sub(1).write(0) }, Some("wrote before the value of a get")),
        ];
        for (wrong, wanted) in wrongs {
            arena.prepare_batch(1, 2);
            let op = *arena.op(2);
            for end in [op.key.addr() + 7, op.value.addr() + 4999, op.out.addr() + 99] {
                assert_eq!(end % page(), 0);
            }
            assert_eq!((arena.key(2), arena.value(2).len()), (&b"the key"[..], 4999));
            wrong(&op);
            arena.take_guarded(1, 2);
            let found = arena.guards.as_ref().and_then(|guards| guards.trespass.clone());
            assert_eq!(found.as_ref().map(|found| found.0), wanted.map(|_| 2));
            assert!(found.is_none_or(|(_, text)| text.ends_with(wanted.unwrap_or("?"))), "{wanted:?}");
        }
        arena.op_mut(2).length = 99;
        assert_eq!(arena.delivered(2), [3; 99], "the result is where the core expects it");
        assert!(!arena.is_changed_since(2));
        // SAFETY: it writes within the pages of its own op.
        unsafe { arena.op(2).out.write(4) };
        assert!(arena.is_changed_since(2), "a write after the call");
    }
}
