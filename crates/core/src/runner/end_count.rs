//! Counts the threads of a phase that have ended, for those that wait for them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Counts threads that have ended, and wakes those that wait.
#[derive(Default)]
pub(super) struct Finished {
    ended: Mutex<usize>,
    changed: Condvar,
}

impl Finished {
    /// Counts one more thread.
    pub(super) fn thread_ended(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Waits until `count` threads have ended; returns false if `until` is reached first.
    pub(super) fn wait(&self, count: usize, until: Instant) -> bool {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while *ended < count {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                return false;
            };
            ended = self.changed.wait_timeout(ended, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Counts its thread on drop, so that a thread that panics counts as ended too.
pub(super) struct Ending(pub Arc<Finished>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.thread_ended();
    }
}
