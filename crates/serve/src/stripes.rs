//! Locks over keys: the hash of a key selects one of many stripes. A thread that changes a key holds its stripe from
//! reading it to the end of the commit; a stripe counts its commits, which WATCH compares.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// So many that two threads with a thousand stripes each rarely collide on different keys: on a collision a thread
/// must commit its writes. A stripe takes four bytes, so that all fit into the processor's caches.
pub(crate) const STRIPES: usize = 1 << 18;

/// The stripes of a server.
pub struct Stripes {
    /// For each stripe twice the number of its commits, plus one while a thread holds it.
    words: Box<[AtomicU32]>,
    /// Waiting threads sleep on these; all share them, because waiting is rare.
    waiting: AtomicUsize,
    asleep: Mutex<()>,
    release: Condvar,
    hasher: RandomState,
}

/// A stripe that is locked until this is dropped.
pub struct Guard<'s> {
    stripes: &'s Stripes,
    stripe: u32,
    has_written: bool,
}

impl Stripes {
    /// No stripe locked, no commits.
    pub fn new() -> Stripes {
        Stripes {
            words: (0..STRIPES).map(|_| AtomicU32::new(0)).collect(),
            waiting: AtomicUsize::new(0),
            asleep: Mutex::default(),
            release: Condvar::new(),
            hasher: RandomState::new(),
        }
    }

    /// The stripe of a key.
    pub fn of(&self, key: &[u8]) -> u32 {
        (self.hasher.hash_one(key) % STRIPES as u64) as u32
    }

    /// Locks a stripe if no thread holds it.
    pub fn try_lock(&self, stripe: u32) -> Option<Guard<'_>> {
        let word = &self.words[stripe as usize];
        let seen = word.load(Ordering::Relaxed);
        // SeqCst, as in the guard's drop: of a thread about to sleep and one that releases, at least one sees the
        // other.
        let is_free = seen & 1 == 0
            && word.compare_exchange(seen, seen | 1, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        is_free.then(|| Guard { stripes: self, stripe, has_written: false })
    }

    /// Waits for a stripe. A thread that holds others must wait in ascending order.
    pub fn lock(&self, stripe: u32) -> Guard<'_> {
        if let Some(guard) = self.try_lock(stripe) {
            return guard;
        }
        let mut asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let guard = loop {
            if let Some(guard) = self.try_lock(stripe) {
                break guard;
            }
            asleep = self.release.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        guard
    }
}

impl Guard<'_> {
    /// Number of commits of the stripe's keys so far; wraps around after two billion.
    pub fn commits(&self) -> u32 {
        self.stripes.words[self.stripe as usize].load(Ordering::Relaxed) >> 1
    }

    /// The number of the stripe.
    pub fn stripe(&self) -> u32 {
        self.stripe
    }

    /// Releases the stripe; counts one more commit if keys of it were written.
    pub fn release(mut self, has_written: bool) {
        self.has_written = has_written;
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let word = &self.stripes.words[self.stripe as usize];
        if self.has_written {
            word.fetch_add(1, Ordering::SeqCst);
        } else {
            word.fetch_sub(1, Ordering::SeqCst);
        }
        if self.stripes.waiting.load(Ordering::SeqCst) != 0 {
            let _asleep = self.stripes.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            self.stripes.release.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_counts_the_commits_that_wrote_and_no_others() {
        let stripes = Stripes::new();
        let stripe = stripes.of(b"key");
        stripes.lock(stripe).release(true);
        stripes.lock(stripe).release(false);
        drop(stripes.lock(stripe));
        stripes.lock(stripe).release(true);
        assert_eq!(stripes.lock(stripe).commits(), 2);
        assert_eq!(stripes.lock(stripe + 1 - 2 * (stripe % 2)).commits(), 0, "its neighbour");
    }

    #[test]
    fn a_stripe_that_is_held_is_free_when_its_guard_goes_also_in_a_panic() {
        let stripes = Stripes::new();
        let guard = stripes.try_lock(7).unwrap();
        assert!(stripes.try_lock(7).is_none());
        assert!(stripes.try_lock(8).is_some());
        drop(guard);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = stripes.lock(7);
            panic!("while it is held");
        }));
        assert!(panicked.is_err());
        assert_eq!(stripes.try_lock(7).unwrap().commits(), 0);
    }

    #[test]
    fn threads_that_want_the_same_stripes_come_one_after_the_other_and_none_sleeps_for_ever() {
        const STEPS: u32 = 20_000;
        let stripes = Stripes::new();
        let (holders, seen) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (stripes, holders, seen) = (&stripes, &holders, &seen);
                scope.spawn(move || {
                    for step in 0..STEPS {
                        // Every second thread holds a second, greater stripe, and so wakes threads that wait for
                        // either.
                        let first = stripes.lock(3);
                        let second = (step % 2 == thread % 2).then(|| stripes.lock(5));
                        seen.fetch_max(1 + holders.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(second);
                        first.release(true);
                    }
                });
            }
        });
        assert_eq!(seen.into_inner(), 1);
        assert_eq!(stripes.lock(3).commits(), 4 * STEPS);
        assert_eq!(stripes.lock(5).commits(), 0);
    }
}
