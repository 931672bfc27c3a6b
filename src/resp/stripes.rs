//! Locks over keys: a key belongs to one of many stripes by its hash. Whoever changes a key holds its stripe from his
//! look at it to the end of the commit; a stripe counts its commits, which is what WATCH compares.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Enough that two of some hundred keys in flight seldom meet.
pub const STRIPES: usize = 1 << 14;

/// The stripes of a server.
pub struct Stripes {
    counts: Vec<Mutex<u64>>,
    hasher: RandomState,
}

/// A stripe that is held.
pub type Guard<'s> = MutexGuard<'s, u64>;

impl Stripes {
    /// None held, no commits.
    pub fn new() -> Stripes {
        Stripes { counts: (0..STRIPES).map(|_| Mutex::new(0)).collect(), hasher: RandomState::new() }
    }

    /// The stripe of a key.
    pub fn of(&self, key: &[u8]) -> u32 {
        (self.hasher.hash_one(key) % STRIPES as u64) as u32
    }

    /// Takes a stripe if nobody holds it.
    pub fn try_lock(&self, stripe: u32) -> Option<Guard<'_>> {
        match self.counts[stripe as usize].try_lock() {
            Ok(guard) => Some(guard),
            // The count is right after each step, so a thread that panicked has left nothing half done in it.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for a stripe. Whoever holds others must wait in ascending order.
    pub fn lock(&self, stripe: u32) -> Guard<'_> {
        self.counts[stripe as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
