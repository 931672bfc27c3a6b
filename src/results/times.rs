//! Compares the times that a driver reports with the durations of its calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calls of the driver in a phase, of all threads together: their durations as measured by the core, and the times that
/// the driver reported for its ops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTimes {
    /// Calls, without warm-up.
    pub calls: u64,
    /// Their total duration, nanoseconds.
    pub called_ns: u64,
    /// The part of it that the driver reports as waiting for another thread to run the batch, nanoseconds.
    pub waited_ns: u64,
    /// The part of it that is neither in an op's time nor waiting, nanoseconds.
    pub unaccounted_ns: u64,
    /// The unaccounted time that the driver's kit may leave for these calls, nanoseconds (docs/methodology.md, section 3).
    pub bound_ns: u64,
    /// Calls that left more unaccounted time.
    pub calls_over_bound: u64,
    /// Why the times do not count; none: they account for the calls within the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<String>,
}

impl CallTimes {
    /// The sum over several threads or rounds; none if there are none.
    pub fn of_all(all: impl Iterator<Item = CallTimes>) -> Option<CallTimes> {
        all.reduce(|mut whole, next| {
            whole.add(next);
            whole
        })
    }

    fn add(&mut self, next: CallTimes) {
        let sums = [
            (&mut self.calls, next.calls),
            (&mut self.called_ns, next.called_ns),
            (&mut self.waited_ns, next.waited_ns),
            (&mut self.unaccounted_ns, next.unaccounted_ns),
            (&mut self.bound_ns, next.bound_ns),
            (&mut self.calls_over_bound, next.calls_over_bound),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.beyond = self.beyond.take().or(next.beyond);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_beyond_its_bound_is_enough() {
        let one = CallTimes {
            calls: 10,
            called_ns: 1_000,
            waited_ns: 1,
            unaccounted_ns: 20,
            bound_ns: 100,
            calls_over_bound: 2,
            beyond: None,
        };
        let other = CallTimes { beyond: Some("too much".into()), ..one.clone() };
        assert_eq!(CallTimes::of_all(std::iter::once(one.clone())), Some(one.clone()));
        let both = CallTimes::of_all([one.clone(), other, one].into_iter()).unwrap();
        assert_eq!((both.calls, both.unaccounted_ns, both.calls_over_bound), (30, 60, 6));
        assert_eq!(both.beyond.as_deref(), Some("too much"));
        assert_eq!(CallTimes::of_all(std::iter::empty()), None);
    }
}
