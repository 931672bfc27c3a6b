//! `hot-ranges:COUNT,A,B,C,D,POWER`: ranges of neighbouring items of which a few are hot, and hot items in each of them, as
//! in the model of ZippyDB's keys (Cao et al., Characterizing, Modeling, and Benchmarking RocksDB Key-Value Workloads at Facebook,
//! FAST 2020, section 7), which is db_bench's mixgraph.

use super::{Bound, Draws, Hot, Items, Places, Row};
use crate::generator::alias::Alias;
use crate::generator::permutation::Permutation;
use crate::generator::portable::{exp, pow};
use crate::generator::random::{Random, derive};

/// The most ranges: a thread has a permutation of each.
const MOST_RANGES: u64 = 10_000;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "hot-ranges",
    parameters: &[
        ("COUNT", Bound::Whole(MOST_RANGES)),
        ("A", Bound::Positive),
        ("B", Bound::Positive),
        ("C", Bound::Positive),
        ("D", Bound::Positive),
        ("POWER", Bound::Share),
    ],
    usual: &[],
    example: "hot-ranges:30,14.18,2.917,0.0164,0.08082,0.3467",
    note: "COUNT ranges of neighbours, the i-th hottest with weight A e^-Bi + C e^-Di; in each, the hottest share p of the items \
           gets p^POWER of the draws",
    words: "drawn from {COUNT} ranges of neighbouring keys, the i-th hottest with a weight of {A} e^-{B}i + {C} e^-{D}i; in \
            each range, the hottest share p of the keys gets p^{POWER} of the draws; hot ranges, and hot keys in them, are \
            scattered",
    places: Places::All,
    hot: Hot::Nowhere,
    tested: &[
        "hot-ranges:30,14.18,2.917,0.0164,0.08082,0.3467",
        "hot-ranges:7,1,0.5,1,0.5,1",
        "hot-ranges:1,1,1,1,1,0.6",
    ],
    #[cfg(test)]
    first: &[
        ("hot-ranges:30,14.18,2.917,0.0164,0.08082,0.3467", true, [8953, 33437, 22464, 6906, 766856, 3491]),
        (
            "hot-ranges:30,14.18,2.917,0.0164,0.08082,0.3467",
            false,
            [132539, 213601, 120635, 130219, 581894, 119095],
        ),
    ],
};

/// A range by its weight, then an item by its rank within the range.
///
/// The item of rank r (from 0) of a range of m has the probability ((r + 1) / m)^POWER - (r / m)^POWER: db_bench's power law
/// y = a x^b, cut at m items, where a follows from b and m. So the shape does not depend on the number of items. Items
/// that a growing range gets are in none of the ranges: each is as likely as the average item.
#[derive(Clone, Debug)]
pub(crate) struct HotRanges {
    weights: Vec<f64>,
    alias: Alias,
    power: f64,
    /// The reciprocal of the power.
    root: f64,
    /// The ranges, the hottest first.
    ranges: Vec<Range>,
    /// All ranges together have this many items.
    ranged: u64,
    n: u64,
}

/// Neighbouring items.
#[derive(Clone, Debug)]
struct Range {
    first: u64,
    count: u64,
    /// Where the ranks are; none: the hottest is first.
    scatter: Option<Permutation>,
}

impl HotRanges {
    /// Items [0, n) in `count` ranges whose sizes differ by at most 1, or in n ranges if that is less. With `clustered` the hottest
    /// range is first, and so is the hottest item of each range.
    pub(super) fn new(items: &Items, count: f64, a: f64, b: f64, c: f64, d: f64, power: f64) -> HotRanges {
        let count = (count as u64).min(items.n);
        // A weight that underflows is never drawn, but the alias table needs weights over 0.
        let (largest, rank) = (a.max(c), |place: u64| place as f64 + 1.0);
        let weight = |place: u64| a / largest * exp(-b * rank(place)) + c / largest * exp(-d * rank(place));
        let weights: Vec<f64> = (0..count).map(|place| weight(place).max(f64::MIN_POSITIVE)).collect();
        let seed = derive(items.seed, 0x7261_6e67);
        let order = Permutation::new(count, seed);
        let range = |place: u64| {
            let slot = if items.clustered { place } else { order.at(place) };
            let start = |slot: u64| (u128::from(slot) * u128::from(items.n) / u128::from(count)) as u64;
            let (first, next) = (start(slot), start(slot + 1));
            let scatter = (!items.clustered).then(|| Permutation::new(next - first, derive(seed, place + 1)));
            Range { first, count: next - first, scatter }
        };
        let ranges = (0..count).map(range).collect();
        let (alias, root) = (Alias::new(&weights), 1.0 / power);
        HotRanges { weights, alias, power, root, ranges, ranged: items.n, n: items.n }
    }
}

impl Draws for HotRanges {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        if self.n > self.ranged {
            let item = random.below(self.n);
            if item >= self.ranged {
                return item;
            }
        }
        let range = &self.ranges[self.alias.pick(random.next_u64())];
        // Over 0 and at most 1, because 0 has no logarithm.
        let share = pow(1.0 - random.unit(), self.root);
        let rank = ((range.count as f64 * share) as u64).min(range.count - 1);
        range.first + range.scatter.as_ref().map_or(rank, |scatter| scatter.at(rank))
    }

    fn grow(&mut self, n: u64) {
        self.n = n;
    }

    fn masses(&self) -> Vec<f64> {
        let average = 1.0 / self.n as f64;
        let all: f64 = self.weights.iter().sum::<f64>() / (self.ranged as f64 * average);
        let of_range = |(range, weight): (&Range, &f64)| {
            let (count, share, power) = (range.count as f64, weight / all, self.power);
            let below = move |rank: u64| (rank as f64 / count).powf(power) * share;
            (0..range.count).map(move |rank| below(rank + 1) - below(rank))
        };
        let ranged = self.ranges.iter().zip(&self.weights).flat_map(of_range);
        ranged.chain((self.ranged..self.n).map(|_| average)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::shape::{against, two_samples};
    use crate::generator::{Partition, Sampler};

    const MIXGRAPH: &str = "hot-ranges:30,14.18,2.917,0.0164,0.08082,0.3467";

    fn sampler(text: &str, n: u64, clustered: bool) -> Sampler {
        Sampler::new(&text.parse().unwrap(), n, 21, Partition::WHOLE, clustered).unwrap()
    }

    fn counts(sampler: &mut Sampler, seed: u64, draws: usize) -> Vec<u64> {
        let (mut random, mut counts) = (Random::seeded(seed), vec![0; sampler.n() as usize]);
        (0..draws).for_each(|_| counts[sampler.next(&mut random) as usize] += 1);
        counts
    }

    /// The shares of the ranges by db_bench's formula, the hottest first.
    fn shares() -> Vec<f64> {
        let weight = |i: f64| 14.18 * f64::exp(-2.917 * i) + 0.0164 * f64::exp(-0.08082 * i);
        let weights: Vec<f64> = (1..=30).map(|i| weight(f64::from(i))).collect();
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / all).collect()
    }

    #[test]
    fn ranges_have_the_shares_of_the_formula_wherever_they_are() {
        for clustered in [true, false] {
            let counts = counts(&mut sampler(MIXGRAPH, 3_000, clustered), 31, 1_000_000);
            let mut ranges: Vec<u64> = counts.chunks(100).map(|range| range.iter().sum()).collect();
            if !clustered {
                assert!(ranges[0] < 500_000, "seed 31: the hottest range is elsewhere");
                ranges.sort_unstable_by(|a, b| b.cmp(a));
            }
            // 79 % of the draws are in one range of 30.
            assert!((ranges[0] as f64 / 1e6 - 0.7913).abs() < 0.002, "seed 31: {ranges:?}");
            if clustered {
                let test = against(&shares(), &ranges);
                assert!(test.p > 1e-4, "seed 31: {test:?}");
            }
        }
    }

    #[test]
    fn the_hottest_share_of_a_range_gets_its_power_of_the_draws() {
        for n in [1_000, 100_000] {
            let counts = counts(&mut sampler("hot-ranges:1,1,1,1,1,0.3467", n, true), 32, 1_000_000);
            for share in [0.001, 0.01, 0.1, 0.5] {
                let hot = (n as f64 * share) as usize;
                let drawn = counts[..hot].iter().sum::<u64>() as f64 / 1e6;
                let wanted = share.powf(0.3467);
                let error = (wanted * (1.0 - wanted) / 1e6).sqrt();
                assert!((drawn - wanted).abs() < 4.5 * error, "seed 32, {n}: {share}: {drawn}, not {wanted}");
            }
        }
    }

    #[test]
    fn the_hot_items_of_two_ranges_are_at_different_places() {
        let mut sampler = sampler("hot-ranges:2,1,1e-9,1,1e-9,0.3467", 2_000, false);
        let counts = counts(&mut sampler, 33, 400_000);
        let hottest = |range: &[u64]| {
            let mut order: Vec<usize> = (0..1_000).collect();
            order.sort_by_key(|item| std::cmp::Reverse(range[*item]));
            order.truncate(10);
            order
        };
        let (left, right) = (hottest(&counts[..1_000]), hottest(&counts[1_000..]));
        let common = left.iter().filter(|item| right.contains(item)).count();
        assert!(common <= 1, "seed 33: {left:?} and {right:?}");
        assert!(left.iter().max().unwrap() - left.iter().min().unwrap() > 100, "seed 33: {left:?}");
        let mut sorted = [counts[..1_000].to_vec(), counts[1_000..].to_vec()];
        sorted.iter_mut().for_each(|range| range.sort_unstable_by(|a, b| b.cmp(a)));
        let test = two_samples(&sorted[0], &sorted[1]);
        assert!(test.p > 1e-4, "seed 33: both ranges have the same law: {test:?}");
    }

    #[test]
    fn new_items_are_as_likely_as_the_average_and_hot_ones_stay_hot() {
        let mut sampler = sampler(MIXGRAPH, 3_000, true);
        sampler.grow(4_000);
        let counts = counts(&mut sampler, 34, 1_000_000);
        let (test, new) = (against(&sampler.masses(), &counts), counts[3_000..].iter().sum::<u64>());
        assert!(test.p > 1e-4, "seed 34: {test:?}");
        assert!((new as f64 / 1e6 - 0.25).abs() < 0.002, "seed 34: {new}");
        assert_eq!(counts.iter().max(), Some(&counts[0]), "seed 34");
    }

    #[test]
    fn ranges_that_do_not_divide_the_items_cover_them_once() {
        for (count, n) in [(30, 1_000_u64), (7, 7), (10, 3), (30, 1), (9_999, 10_000)] {
            let text = format!("hot-ranges:{count},1,0.1,1,0.1,0.5");
            for clustered in [true, false] {
                let distribution = text.parse().unwrap();
                let items = Items { n, seed: 3, part: Partition::WHOLE, clustered };
                let super::super::Form::HotRanges(drawn) = super::super::Form::new(&distribution, &items)
                else {
                    panic!("{text}")
                };
                let mut ranges: Vec<(u64, u64)> =
                    drawn.ranges.iter().map(|range| (range.first, range.count)).collect();
                ranges.sort_unstable();
                assert_eq!(ranges.len() as u64, n.min(count), "{text} over {n}");
                let mut next = 0;
                for (first, count) in ranges {
                    assert_eq!(first, next, "{text} over {n}");
                    assert!((count - n / n.min(drawn.ranges.len() as u64)) < 2, "{text} over {n}");
                    next = first + count;
                }
                assert_eq!(next, n, "{text}");
            }
        }
    }
}
