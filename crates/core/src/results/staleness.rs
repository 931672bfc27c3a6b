//! How old the answers of reads were, in a store whose reads may return older values than acknowledged ones.

use kvdyno_measure::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stale reads of a phase, without warm-up. Ages are from below: a read was at least so old.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staleness {
    /// Reads of single keys.
    pub reads: u64,
    /// Reads among these that returned an older state than one that was acknowledged before they began.
    pub stale: u64,
    /// Stale reads that found nothing, although the key was there.
    pub missed: u64,
    /// How many newer versions were acknowledged before each stale read began, if its own version is known.
    pub versions: Histogram,
    /// The time from the acknowledgement of the first newer version to the begin of each stale read, if that acknowledgement is
    /// remembered; nanoseconds.
    pub age_ns: Histogram,
    /// Of the others: the longest time from an acknowledgement of a newer version that is remembered; none: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_ns: Option<u64>,
}

impl Staleness {
    /// Adds others: counts and buckets are summed.
    pub fn add(&mut self, other: &Staleness) {
        self.reads = self.reads.saturating_add(other.reads);
        self.stale = self.stale.saturating_add(other.stale);
        self.missed = self.missed.saturating_add(other.missed);
        self.versions.merge(&other.versions);
        self.age_ns.merge(&other.age_ns);
        self.at_least_ns = self.at_least_ns.max(other.at_least_ns);
    }

    /// All of these together; none if any is unknown, or there are none.
    pub fn of_all<'a>(all: impl Iterator<Item = Option<&'a Staleness>>) -> Option<Staleness> {
        let all: Vec<&Staleness> = all.collect::<Option<_>>()?;
        let mut whole = all.first().map(|first| (*first).clone())?;
        all[1..].iter().for_each(|other| whole.add(other));
        (whole.versions, whole.age_ns) = (whole.versions.packed(), whole.age_ns.packed());
        Some(whole)
    }

    /// The share of stale reads, 0 to 1; none without reads.
    pub fn share(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.stale as f64 / self.reads as f64)
    }

    /// Stale reads whose age in versions is unknown.
    pub fn of_unknown_version(&self) -> u64 {
        self.stale.saturating_sub(self.versions.count())
    }

    /// Stale reads whose age in time is unknown.
    pub fn of_unknown_age(&self) -> u64 {
        self.stale.saturating_sub(self.age_ns.count())
    }

    /// The longest age that is known, and whether some read was or may have been older; none: nothing is known.
    pub fn longest_ns(&self) -> Option<(u64, bool)> {
        let most = self.age_ns.max_ns().max(self.at_least_ns)?;
        Some((most, self.of_unknown_age() > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(ages: &[(u64, u64)], unknown: u64, at_least_ns: Option<u64>) -> Staleness {
        let mut found = Staleness { reads: 1_000, at_least_ns, ..Staleness::default() };
        for (versions, ns) in ages {
            found.versions.record(*versions);
            found.age_ns.record(*ns);
        }
        found.stale = ages.len() as u64 + unknown;
        found
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(
            ages in prop::collection::vec((1_u64..3_000, 1_u64..1_000_000_000), 0..60),
            place in 0_usize..60,
        ) {
            let (one, other) = ages.split_at(place.min(ages.len()));
            let sum = Staleness::of_all([Some(&of(one, 1, None)), Some(&of(other, 2, Some(7)))].into_iter());
            prop_assert_eq!(sum, Some(Staleness { reads: 2_000, ..of(&ages, 3, Some(7)) }));
        }
    }

    #[test]
    fn what_is_unknown_is_counted_and_never_an_age_of_zero() {
        let found = of(&[(1, 500)], 2, Some(9_000));
        assert_eq!((found.of_unknown_version(), found.of_unknown_age()), (2, 2));
        assert_eq!(found.longest_ns(), Some((9_000, true)));
        assert_eq!(of(&[(1, 500)], 0, None).longest_ns(), Some((500, false)));
        assert_eq!(of(&[], 4, None).longest_ns(), None);
        assert_eq!(Staleness::of_all([Some(&found), None].into_iter()), None);
        assert_eq!(Staleness::of_all(std::iter::empty()), None);
    }
}
