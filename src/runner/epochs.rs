//! Epochs: when all writes that were on their way at some moment have surely ended, found out without locks.
//!
//! Epoch-based reclamation (Fraser, Practical Lock-Freedom, 2004, section 5.2.3) asks when no thread can still hold what
//! was taken out of a structure; here the question is when no write can still be on its way that was handed its version
//! before. A thread pins the epoch of now before it fills a batch and unpins when the batch is judged, so that all its
//! writes begin and end while it is pinned. The epoch goes from g to g + 1 only while each thread is unpinned or has
//! pinned g.
//!
//! Claim 1: while a thread has p pinned, the epoch is p or p + 1. `pin` stores p and then sees the epoch still at p. Who
//! advances from p + 1 has seen the epoch at p + 1 before it looks at the pins; all these accesses are sequentially
//! consistent, so it looks after the store, finds p, and does not advance.
//!
//! Claim 2: let a write w get version v while its thread has e pinned. When some thread has pinned e + 3 or more, all
//! writes of that key with versions up to v have ended. For let u be one of them, got while its thread had d pinned.
//! Versions rise with time, so u got its own before w did, and by claim 1 (for w's thread) the epoch was at most e + 1
//! then: d <= e + 1. Were u's thread still pinned, the epoch would be at most d + 1 <= e + 2. It is e + 3.
//!
//! However long a thread is kept from running, nothing false follows: while it is pinned, no epoch passes.

use std::sync::atomic::{AtomicU64, Ordering};

/// The first epoch, so that what is stamped with 0 is over from the start.
pub const FIRST: u64 = SAFE;
/// So many epochs later all writes of an epoch have ended.
pub const SAFE: u64 = 3;
/// Pins that a thread looks at after a batch, at most: the lines of other threads' pins are far away.
const LOOKS: usize = 16;

/// The epoch that a thread has pinned; 0: none. In cache lines of its own.
#[repr(align(128))]
struct Pin(AtomicU64);

/// The epoch of a phase and its threads' pins.
pub struct Epochs {
    now: AtomicU64,
    pins: Vec<Pin>,
}

/// How far a thread has looked for pins that hold the epoch back. What it has seen stays true while the epoch is the
/// same: a pin that is set later is of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    epoch: u64,
    next: usize,
}

impl Epochs {
    /// For so many threads.
    pub fn new(threads: usize) -> Epochs {
        Epochs { now: AtomicU64::new(FIRST), pins: (0..threads).map(|_| Pin(AtomicU64::new(0))).collect() }
    }

    /// Pins the epoch of now, and gives it.
    #[inline]
    pub fn pin(&self, thread: usize) -> u64 {
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

    /// Takes the pin away, and advances the epoch if no other thread holds it back, as far as that was looked at.
    #[inline]
    pub fn unpin(&self, thread: usize, cursor: &mut Cursor) {
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
        // The last epoch that a word of the table can hold stays.
        if cursor.next == self.pins.len() && now < super::contended::LAST_EPOCH {
            let _ = self.now.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_holds_the_epoch_back() {
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
        assert!(epochs.pin(1) > slow + SAFE, "without it the epoch goes on");
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
