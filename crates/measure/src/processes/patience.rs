//! How long a process may make no progress before the process that watches it gives up.

use std::time::{Duration, Instant};

/// The longest time between two looks that is counted. A watcher that was stopped itself, as with its virtual machine, cannot
/// tell what the other process would have done.
const LONGEST: Duration = Duration::from_secs(1);

/// Adds up the time without progress.
pub struct Patience {
    limit: Duration,
    waited: Duration,
    last_look: Instant,
}

impl Patience {
    /// The time begins now.
    pub fn new(limit: Duration) -> Patience {
        Patience { limit, waited: Duration::ZERO, last_look: Instant::now() }
    }

    /// Called when there was progress.
    pub fn renew(&mut self) {
        *self = Patience::new(self.limit);
    }

    /// Whether there was no progress for longer than the limit; to be called at least once a second.
    pub fn is_over(&mut self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&mut self, now: Instant) -> bool {
        self.waited += now.duration_since(self.last_look).min(LONGEST);
        self.last_look = now;
        self.waited > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_progress_adds_up_until_the_limit() {
        let mut patience = Patience::new(Duration::from_secs(2));
        let begun = patience.last_look;
        let mut at = |ms| patience.is_over_at(begun + Duration::from_millis(ms));
        assert_eq!([800, 1_600, 2_000, 2_100, 2_900].map(&mut at), [false, false, false, true, true]);
    }

    #[test]
    fn time_in_which_the_watcher_was_stopped_is_not_counted() {
        let mut patience = Patience::new(Duration::from_secs(2));
        let begun = patience.last_look;
        let mut at = |ms| patience.is_over_at(begun + Duration::from_millis(ms));
        assert_eq!([200, 60_000, 60_700, 60_900].map(&mut at), [false, false, false, true]);
    }

    #[test]
    fn progress_begins_the_time_again() {
        let mut patience = Patience::new(Duration::from_millis(1_500));
        assert!(!patience.is_over_at(patience.last_look + Duration::from_secs(1)));
        patience.renew();
        assert!(!patience.is_over_at(patience.last_look + Duration::from_secs(1)));
    }
}
