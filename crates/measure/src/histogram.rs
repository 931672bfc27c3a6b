//! Histogram of nanoseconds: 3 significant digits up to 73 minutes; count, sum, minimum and maximum are exact.
//!
//! The layout is that of HdrHistogram: 2048 buckets of 1 ns, then 1024 buckets for each doubling, so that a bucket is
//! at most 1/1024 of its values wide. Recording is one shift and a handful of additions, and allocates nothing.

mod hdr;
mod packing;
mod record_form;
#[cfg(test)]
mod tests;

use packing::Packed;

/// The largest value with its own bucket, nanoseconds: a little over 73 minutes.
pub const HIGHEST_NS: u64 = (1 << 42) - 1;

/// 1024 buckets per doubling: the middle of a bucket is off by at most 0.05 %, its end by at most 0.1 %.
const HALF_BITS: u32 = 10;
const FULL: u64 = 2 << HALF_BITS;
const BUCKETS: usize = index_of(HIGHEST_NS) + 1;
/// Buckets up to 16 ms are touched at construction; a slower op can afford the page fault.
const TOUCHED: usize = index_of(1 << 24);
/// A quantile is reported only if at least this many values are above it.
const VALUES_BEYOND: u128 = 10;
const COUNTS_PER_PAGE: usize = 4096 / size_of::<u64>();

/// How often each time was seen. Merging is lossless; two histograms are equal if they contain the same values,
/// whatever their internal form.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// One count per bucket, or empty if the counts are in `packed`.
    counts: Vec<u64>,
    packed: Packed,
    count: u64,
    saturated: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its smallest value, nanoseconds.
    pub lowest_ns: u64,
    /// Its largest value, nanoseconds. The last bucket also contains all values above [`HIGHEST_NS`].
    pub highest_ns: u64,
    /// Number of values in it.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::empty()
    }
}

impl Histogram {
    /// Creates a histogram that is ready to record: 264 KiB, of which 120 KiB (the buckets up to 16 ms) are touched
    /// now, so that recording causes no page faults.
    pub fn new() -> Self {
        let mut counts = vec![0; BUCKETS];
        for count in counts[..TOUCHED].iter_mut().step_by(COUNTS_PER_PAGE) {
            *count = std::hint::black_box(0);
        }
        Self { counts, ..Self::empty() }
    }

    /// Creates an empty histogram that allocates nothing; the first recorded or merged value allocates the buckets.
    pub const fn empty() -> Self {
        Self {
            counts: Vec::new(),
            packed: Packed::new(),
            count: 0,
            saturated: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Adds one value, nanoseconds. Values above [`HIGHEST_NS`] count in the last bucket; the maximum stays exact.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        match self.counts.get_mut(index_of(ns.min(HIGHEST_NS))) {
            Some(count) => *count = count.wrapping_add(1),
            None => return self.record_unpacked(ns),
        }
        self.count = self.count.wrapping_add(1);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns > HIGHEST_NS {
            self.saturated = self.saturated.wrapping_add(1);
        }
    }

    /// Adds values, nanoseconds, like [`Histogram::record`], and returns how many they were.
    #[inline(always)]
    pub fn record_all(&mut self, values: impl Iterator<Item = u64>) -> u64 {
        self.unpack();
        let (mut count, mut sum_ns, mut saturated) = (0, self.sum_ns, 0_u64);
        let (mut min_ns, mut max_ns) = (self.min_ns, self.max_ns);
        for ns in values {
            if let Some(count) = self.counts.get_mut(index_of(ns.min(HIGHEST_NS))) {
                *count = count.wrapping_add(1);
            }
            count += 1;
            sum_ns = sum_ns.saturating_add(ns);
            (min_ns, max_ns) = (min_ns.min(ns), max_ns.max(ns));
            saturated += u64::from(ns > HIGHEST_NS);
        }
        self.count = self.count.wrapping_add(count);
        self.saturated = self.saturated.wrapping_add(saturated);
        (self.sum_ns, self.min_ns, self.max_ns) = (sum_ns, min_ns, max_ns);
        count
    }

    #[cold]
    fn record_unpacked(&mut self, ns: u64) {
        self.unpack();
        self.record(ns);
    }

    /// Adds a value `n` times. Counts and sums saturate at `u64::MAX`.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.unpack();
        self.add_to_bucket(index_of(ns.min(HIGHEST_NS)), n);
        self.count = self.count.saturating_add(n);
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(n));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns > HIGHEST_NS {
            self.saturated = self.saturated.saturating_add(n);
        }
    }

    /// Adds everything in the other histogram: the same as recording its values here.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.unpack();
        for (index, count) in other.occupied() {
            self.add_to_bucket(index, count);
        }
        self.count = self.count.saturating_add(other.count);
        self.saturated = self.saturated.saturating_add(other.saturated);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Removes all values and keeps the buckets' memory. The cost is proportional to the used range.
    pub fn clear(&mut self) {
        if self.count > 0 && !self.counts.is_empty() {
            let first = index_of(self.min_ns.min(HIGHEST_NS));
            let last = index_of(self.max_ns.min(HIGHEST_NS));
            self.counts[first..=last].fill(0);
        }
        *self = Self { counts: std::mem::take(&mut self.counts), ..Self::empty() };
    }

    /// The same content in few bytes (about three per bucket in use), for series that are kept long.
    pub fn packed(&self) -> Self {
        Self { counts: Vec::new(), packed: self.occupied().collect(), ..*self }
    }

    /// Number of recorded values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values, nanoseconds, exact up to `u64::MAX` (584 years), where it saturates.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The exact minimum, nanoseconds; `None` if empty.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The exact maximum, nanoseconds; `None` if empty.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Mean of the values (not of the buckets), nanoseconds; `None` if empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The value that `numerator`/`denominator` of all values do not exceed, nanoseconds, at most 0.1 % too high.
    ///
    /// It is the upper end of the bucket of the value with rank ceil(count x numerator / denominator), limited to the
    /// maximum. `None` if empty, or if the quantile is not in 0 to 1.
    pub fn quantile(&self, numerator: u64, denominator: u64) -> Option<u64> {
        if self.count == 0 || denominator == 0 || numerator > denominator {
            return None;
        }
        if numerator == 0 {
            return Some(self.min_ns);
        }
        let product = u128::from(self.count) * u128::from(numerator);
        // At most `count`, because the numerator is at most the denominator.
        let rank = product.div_ceil(u128::from(denominator)) as u64;
        let mut below = 0_u64;
        for (index, count) in self.occupied() {
            below = below.saturating_add(count);
            if below >= rank {
                let is_last_of_all = index == BUCKETS - 1 && self.saturated > 0;
                return Some(if is_last_of_all { self.max_ns } else { highest_of(index).min(self.max_ns) });
            }
        }
        Some(self.max_ns)
    }

    /// [`Histogram::quantile`], but `None` ("-") if fewer than ten values are above it: the median needs 20 values,
    /// p99 1000 and p99.9 10,000. A quantile that depends on a few values is mostly chance.
    pub fn quantile_if_enough(&self, numerator: u64, denominator: u64) -> Option<u64> {
        let beyond = u128::from(self.count) * u128::from(denominator.checked_sub(numerator)?);
        if beyond < u128::from(denominator) * VALUES_BEYOND && numerator < denominator {
            return None;
        }
        self.quantile(numerator, denominator)
    }

    /// The buckets that are not empty, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.occupied().map(|(index, count)| Bucket {
            lowest_ns: lowest_of(index),
            highest_ns: highest_of(index),
            count,
        })
    }

    /// Lower bound and count of the non-empty buckets of a coarser histogram: four per doubling, for charts.
    pub fn coarse(&self) -> Vec<(u64, u64)> {
        let mut wide: Vec<(u64, u64)> = Vec::new();
        for bucket in self.buckets() {
            let shift = bucket.lowest_ns.max(4).ilog2() - 2;
            let lowest_ns = bucket.lowest_ns >> shift << shift;
            match wide.last_mut() {
                Some((last, count)) if *last == lowest_ns => *count = count.saturating_add(bucket.count),
                _ => wide.push((lowest_ns, bucket.count)),
            }
        }
        wide
    }

    /// Index and count of the buckets that are not empty, in ascending order.
    fn occupied(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let used = if self.count == 0 || self.counts.is_empty() {
            0..0
        } else {
            index_of(self.min_ns.min(HIGHEST_NS))..index_of(self.max_ns.min(HIGHEST_NS)) + 1
        };
        let first = used.start;
        let dense = self.counts[used].iter().enumerate().map(move |(at, &count)| (first + at, count));
        dense.filter(|&(_, count)| count > 0).chain(self.packed.iter())
    }

    fn add_to_bucket(&mut self, index: usize, n: u64) {
        self.counts[index] = self.counts[index].saturating_add(n);
    }

    /// Prepares for recording; keeps the content.
    fn unpack(&mut self) {
        if self.counts.is_empty() {
            self.counts = Self::new().counts;
            let packed = std::mem::replace(&mut self.packed, Packed::new());
            for (index, count) in packed.iter() {
                self.counts[index] = count;
            }
        }
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let figures = |h: &Self| (h.count, h.saturated, h.sum_ns, h.min_ns, h.max_ns);
        figures(self) == figures(other) && self.occupied().eq(other.occupied())
    }
}

impl Eq for Histogram {}

/// The bucket of a value of at most [`HIGHEST_NS`].
#[inline(always)]
const fn index_of(ns: u64) -> usize {
    let shift = u64::BITS - HALF_BITS - 1 - (ns | (FULL - 1)).leading_zeros();
    ((shift as usize) << HALF_BITS) + (ns >> shift) as usize
}

/// The smallest value of a bucket, nanoseconds.
const fn lowest_of(index: usize) -> u64 {
    let shift = (index >> HALF_BITS).saturating_sub(1);
    ((index - (shift << HALF_BITS)) as u64) << shift
}

/// The largest value of a bucket, nanoseconds.
const fn highest_of(index: usize) -> u64 {
    lowest_of(index + 1) - 1
}
