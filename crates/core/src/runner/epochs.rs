//! Epochs: determine, without locks, when all writes that were in flight at some moment have certainly ended.
//!
//! Epoch-based reclamation (Fraser, Practical Lock-Freedom, 2004, section 5.2.3) determines when no thread can still
//! reference an object that was removed from a structure; here the question is when no write with an earlier version can
//! still be in flight. A thread pins the current epoch before it fills a batch and unpins it when the batch has been
//! judged, so that all its writes begin and end while it is pinned. The epoch advances from g to g + 1 only while each
//! thread is unpinned or has pinned g.
//!
//! Claim 1: while a thread has pinned p, the epoch is p or p + 1. `pin` stores p and then sees that the epoch is still p. A
//! thread that advances from p + 1 has seen the epoch p + 1 before it reads the pins; all these accesses are sequentially
//! consistent, so it reads them after the store, finds p, and does not advance.
//!
//! Claim 2: let a write w get version v while its thread has pinned e. When some thread has pinned e + 3 or more, all
//! writes of that key with versions up to v have ended. Proof: let u be one of them, whose thread had pinned d. Versions
//! increase with time, so u got its version before w did, and by claim 1 (for w's thread) the epoch was at most e + 1 then:
//! d <= e + 1. If u's thread were still pinned, the epoch would be at most d + 1 <= e + 2. But it is at least e + 3.
//!
//! This holds even if a thread is delayed for a long time: while it is pinned, the epoch does not advance past it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The first epoch, so that epoch 0 is over from the start.
pub(super) const FIRST: u64 = SAFE;
/// This many epochs later, all writes of an epoch have ended.
pub(super) const SAFE: u64 = 3;
/// The maximum number of pins that a thread reads after a batch: the cache lines of other threads' pins are far away.
const LOOKS: usize = 16;

/// The epoch that a thread has pinned; 0: none. In its own cache lines.
#[repr(align(128))]
struct Pin(AtomicU64);

/// The epoch of a phase and its threads' pins.
pub(super) struct Epochs {
    now: AtomicU64,
    pins: Vec<Pin>,
}

/// How far a thread has checked for pins that hold back the epoch. The result stays valid while the epoch is the same,
/// because later pins use the same epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    epoch: u64,
    next: usize,
}

impl Epochs {
    /// Epochs for this many threads.
    pub(super) fn new(threads: usize) -> Epochs {
        Epochs { now: AtomicU64::new(FIRST), pins: (0..threads).map(|_| Pin(AtomicU64::new(0))).collect() }
    }

    /// Pins the current epoch, and returns it.
    #[inline]
    pub(super) fn pin(&self, thread: usize) -> u64 {
        let mut epoch = self.now.load(Ordering::SeqCst);
        loop {
            self.pins[thread].0.store(epoch, Ordering::SeqCst);
            let now = self.now.load(Ordering::SeqCst);
            if now == epoch {
                return epoch;
            }
            epoch = now;
        }
    }

    /// Removes the pin, and advances the epoch if all pins have been checked and none holds it back.
    #[inline]
    pub(super) fn unpin(&self, thread: usize, cursor: &mut Cursor) {
        self.pins[thread].0.store(0, Ordering::SeqCst);
        let now = self.now.load(Ordering::SeqCst);
        if cursor.epoch != now {
            *cursor = Cursor { epoch: now, next: 0 };
        }
        for pin in self.pins[cursor.next..].iter().take(LOOKS) {
            let pinned = pin.0.load(Ordering::SeqCst);
            if pinned != 0 && pinned != now {
                return;
            }
            cursor.next += 1;
        }
        // Stop at the last epoch that a word of the table can hold.
        if cursor.next == self.pins.len() && now < super::contention::LAST_EPOCH {
            let _ = self.now.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_holds_back_the_epoch() {
        let epochs = Epochs::new(3);
        let mut cursor = Cursor::default();
        let slow = epochs.pin(2);
        assert_eq!(slow, FIRST);
        for _ in 0..100 {
            assert!(epochs.pin(0) <= slow + 1);
            epochs.unpin(0, &mut cursor);
        }
        epochs.unpin(2, &mut Cursor::default());
        for _ in 0..100 {
            epochs.pin(0);
            epochs.unpin(0, &mut cursor);
        }
        assert!(epochs.pin(1) > slow + SAFE, "without it the epoch advances");
    }

    #[test]
    fn no_epoch_is_pinned_two_behind() {
        let epochs = Epochs::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let epochs = &epochs;
                scope.spawn(move || {
                    let mut cursor = Cursor::default();
                    for _ in 0..200_000 {
                        let pinned = epochs.pin(thread);
                        let now = epochs.now.load(Ordering::SeqCst);
                        assert!(now == pinned || now == pinned + 1, "{pinned} pinned in epoch {now}");
                        epochs.unpin(thread, &mut cursor);
                    }
                });
            }
        });
        assert!(epochs.now.load(Ordering::SeqCst) > FIRST + 100);
    }
}
