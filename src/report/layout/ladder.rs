//! The bucket bounds of the histogram layout: steps of 1 up to 10, then of 10 to 25 % in each decade.

use crate::measure::Histogram;

/// The bounds in each decade from 10 on, as multiples of a tenth of its first value.
const DECADE: [u64; 16] = [10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90];
/// The number of decades: the last bound is 9 x 10^9.
const DECADES: u32 = 9;

/// A bucket that is not empty: values from `from` (included) to `to` (excluded; `None` for no end), in the ladder's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rung {
    pub from: u64,
    pub to: Option<u64>,
    pub count: u64,
}

/// The upper bounds of the buckets, in ascending order. The first bucket begins at 0, and the last one has no bound.
pub(super) fn bounds() -> Vec<u64> {
    let decades = (0..DECADES).flat_map(|power| DECADE.map(|step| step * 10_u64.pow(power)));
    (1..=9).chain(decades).collect()
}

/// The buckets that are not empty, in units of `unit_ns`.
///
/// The histogram's own buckets are at most a thousandth of their values wide. Each is counted in the rung of its lowest
/// value, so an op may be one rung too low if it took less than a thousandth longer than the rung's bound. The least and
/// the largest value are known exactly.
pub(super) fn rungs(histogram: &Histogram, unit_ns: u64) -> Vec<Rung> {
    let bounds = bounds();
    let mut rungs: Vec<Rung> = Vec::new();
    let mut buckets = histogram.buckets().peekable();
    while let Some(bucket) = buckets.next() {
        let is_slowest = buckets.peek().is_none() && bucket.count == 1;
        let known_ns = if is_slowest { histogram.max_ns() } else { histogram.min_ns() };
        let ns = bucket.lowest_ns.max(known_ns.unwrap_or(0));
        let place = bounds.partition_point(|bound| bound.saturating_mul(unit_ns) <= ns);
        let from = if place == 0 { 0 } else { bounds[place - 1] };
        match rungs.last_mut() {
            Some(last) if last.from == from => last.count = last.count.saturating_add(bucket.count),
            _ => rungs.push(Rung { from, to: bounds.get(place).copied(), count: bucket.count }),
        }
    }
    rungs
}

/// The buckets as lines: a header, and a line for each bucket with its share of `all`.
pub(super) fn lines(rungs: &[Rung], all: u64) -> Vec<String> {
    let mut lines = vec![format!("[{:>7}, {:>7}){:>17}{:>12}", "t min", "t max", "ops count", "%"), rule()];
    for rung in rungs {
        let to = rung.to.map_or_else(|| "inf".to_string(), |to| to.to_string());
        let share = rung.count as f64 / all.max(1) as f64 * 100.0;
        lines.push(format!("[{:>7}, {to:>7}){:>17}{share:>12.2}", rung.from, rung.count));
    }
    lines
}

/// The rule between the parts of the table.
pub(super) fn rule() -> String {
    "-".repeat(50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_older_tool() {
        let bounds = bounds();
        // The older tool has two more, 1e200 and infinity; here the last rung has no bound.
        assert_eq!(bounds.len(), 153);
        assert!(bounds.is_sorted());
        assert_eq!(bounds[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]);
        assert_eq!(bounds[23..27], [80, 90, 100, 120]);
        assert_eq!(bounds.last(), Some(&9_000_000_000));
    }

    #[test]
    fn what_lies_on_a_bound_is_in_the_rung_that_begins_there() {
        let mut histogram = Histogram::new();
        for ns in [999, 1_000, 1_999, 2_000, 25_000, 25_000] {
            histogram.record(ns);
        }
        let found: Vec<(u64, u64)> =
            rungs(&histogram, 1_000).iter().map(|rung| (rung.from, rung.count)).collect();
        assert_eq!(found, [(0, 1), (1, 2), (2, 1), (20, 2)], "24,992 to 25,007 ns are one bucket");
        let all: u64 = rungs(&histogram, 1).iter().map(|rung| rung.count).sum();
        assert_eq!(all, 6);
        histogram.record(450_000);
        assert_eq!(
            rungs(&histogram, 1_000).last().map(|rung| rung.from),
            Some(450),
            "the slowest is known exactly"
        );
        assert!(rungs(&Histogram::empty(), 1_000).is_empty());
    }

    #[test]
    fn no_time_is_too_long_for_it() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        let rungs = rungs(&histogram, 1_000);
        assert_eq!((rungs.len(), rungs[0].count), (1, 1));
        assert!(lines(&rungs, 1)[2].ends_with("100.00"));
    }
}
