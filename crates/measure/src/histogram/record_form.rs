//! The form of a histogram in a record: sparse and readable, and validated when it is read back.

use super::packing::Packed;
use super::{BUCKETS, HIGHEST_NS, Histogram, highest_of, index_of, lowest_of};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;

pub(super) const SIGNIFICANT_DIGITS: u8 = 3;

/// Times with their number of occurrences. Buckets are at most 1/1024 of their values wide.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Histogram")]
struct Stored {
    /// Unit of all times.
    unit: Unit,
    /// Always 3.
    significant_digits: u8,
    /// Number of recorded values.
    count: u64,
    /// Number of values above 2^42 - 1 ns (73 minutes), counted in the last bucket; absent if there are none.
    #[serde(default, skip_serializing_if = "is_none")]
    saturated: u64,
    /// Exact sum of the values.
    sum_ns: u64,
    /// Exact minimum; absent if there are no values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_ns: Option<u64>,
    /// Exact maximum; absent if there are no values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_ns: Option<u64>,
    /// Smallest value and count of each bucket in use, ascending.
    buckets: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Ns,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            unit: Unit::Ns,
            significant_digits: SIGNIFICANT_DIGITS,
            count: self.count,
            saturated: self.saturated,
            sum_ns: self.sum_ns,
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            buckets: self.occupied().map(|(index, count)| (lowest_of(index), count)).collect(),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        restore(&stored).map_err(|fault| D::Error::custom(format!("invalid histogram: {fault}")))
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Histogram").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Stored::json_schema(generator)
    }
}

/// The histogram, or what is wrong with the stored form.
fn restore(stored: &Stored) -> Result<Histogram, String> {
    if stored.significant_digits != SIGNIFICANT_DIGITS {
        return Err(format!("expected 3 significant digits, got {}", stored.significant_digits));
    }
    let sums = check_buckets(&stored.buckets)?;
    if sums.count != stored.count {
        return Err(format!("the buckets hold {} values, but count is {}", sums.count, stored.count));
    }
    check_extremes(stored)?;
    let sum_ns = u128::from(stored.sum_ns);
    let is_at_its_end = stored.sum_ns == u64::MAX;
    // Saturated values are larger than their bucket, so they bound the sum only from below.
    let is_too_large = stored.saturated == 0 && sum_ns > sums.highest_ns;
    if (sum_ns < sums.lowest_ns && !is_at_its_end) || is_too_large {
        return Err(format!("sum_ns {sum_ns} does not fit the buckets"));
    }
    Ok(Histogram {
        counts: Vec::new(),
        packed: stored
            .buckets
            .iter()
            .map(|&(lowest_ns, count)| (index_of(lowest_ns), count))
            .collect::<Packed>(),
        count: stored.count,
        saturated: stored.saturated,
        sum_ns: stored.sum_ns,
        min_ns: stored.min_ns.unwrap_or(u64::MAX),
        max_ns: stored.max_ns.unwrap_or(0),
    })
}

/// Totals of the buckets: number of values, and the smallest and largest possible sum.
struct Sums {
    count: u64,
    lowest_ns: u128,
    highest_ns: u128,
}

fn check_buckets(buckets: &[(u64, u64)]) -> Result<Sums, String> {
    let mut sums = Sums { count: 0, lowest_ns: 0, highest_ns: 0 };
    let mut previous = None;
    for &(lowest_ns, count) in buckets {
        if lowest_ns > HIGHEST_NS || lowest_of(index_of(lowest_ns)) != lowest_ns {
            return Err(format!("no bucket begins at {lowest_ns} ns"));
        }
        if previous.is_some_and(|previous| previous >= lowest_ns) {
            return Err(format!("the bucket at {lowest_ns} ns is not in ascending order"));
        }
        if count == 0 {
            return Err(format!("the bucket at {lowest_ns} ns is empty"));
        }
        previous = Some(lowest_ns);
        sums.count = sums.count.checked_add(count).ok_or("the counts add up to more than 2^64 - 1")?;
        sums.lowest_ns += u128::from(lowest_ns) * u128::from(count);
        sums.highest_ns += u128::from(highest_of(index_of(lowest_ns))) * u128::from(count);
    }
    Ok(sums)
}

/// The minimum and maximum must be in the first and last bucket.
fn check_extremes(stored: &Stored) -> Result<(), String> {
    let (Some(&(first_ns, _)), Some(&(last_ns, last_count))) =
        (stored.buckets.first(), stored.buckets.last())
    else {
        let is_bare = stored.min_ns.is_none() && stored.max_ns.is_none() && stored.saturated == 0;
        return if is_bare { Ok(()) } else { Err("min_ns or max_ns without buckets".into()) };
    };
    let (Some(min_ns), Some(max_ns)) = (stored.min_ns, stored.max_ns) else {
        return Err("min_ns or max_ns is missing".into());
    };
    let bucket_of = |ns: u64| lowest_of(index_of(ns.min(HIGHEST_NS)));
    if bucket_of(min_ns) != first_ns || bucket_of(max_ns) != last_ns || min_ns > max_ns {
        return Err(format!("min_ns {min_ns} and max_ns {max_ns} do not fit the buckets"));
    }
    let is_past_the_end = max_ns > HIGHEST_NS;
    let can_be_saturated = last_ns == lowest_of(BUCKETS - 1) && stored.saturated <= last_count;
    if is_past_the_end != (stored.saturated > 0) || (is_past_the_end && !can_be_saturated) {
        return Err(format!("{} values past the last bucket do not fit max_ns {max_ns}", stored.saturated));
    }
    Ok(())
}
