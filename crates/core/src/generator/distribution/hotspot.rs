//! `hotspot:FRACTION,SHARE`: a share of the draws falls on a fraction of the items, as in YCSB.

use super::zipf::scatter;
use super::{Bound, Draws, Hot, Items, Places, Row};
use crate::generator::permutation::Permutation;
use crate::generator::random::Random;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "hotspot",
    parameters: &[("FRACTION", Bound::Share), ("SHARE", Bound::Share)],
    usual: &[],
    example: "hotspot:0.2,0.8",
    note: "SHARE of the draws on FRACTION of the items",
    words: "{SHARE %} of the draws fall on {FRACTION %} of the keys",
    places: Places::All,
    hot: Hot::Chosen,
    tested: &["hotspot:0.2,0.8", "hotspot:0.01,0.5"],
    #[cfg(test)]
    first: &[
        ("hotspot:0.2,0.8", true, [73205, 172886, 25572, 84116, 166631, 634108]),
        ("hotspot:0.2,0.8", false, [426978, 653014, 114658, 974521, 541631, 689373]),
    ],
};

/// Uniform draws from a hot set and from the rest. (YCSB's HotspotIntegerGenerator, whose hot set is the first
/// items.)
#[derive(Clone, Debug)]
pub(crate) struct Hotspot {
    pub(super) n: u64,
    pub(super) hot: u64,
    fraction: f64,
    share: f64,
    scatter: Option<Permutation>,
}

impl Hotspot {
    /// Items [0, n); with `clustered` the hot ones are first, otherwise a permutation from the seed places them.
    pub(super) fn new(items: &Items, fraction: f64, share: f64) -> Hotspot {
        let n = items.n;
        let mut hotspot = Hotspot { n, hot: n, fraction, share, scatter: scatter(items) };
        hotspot.grow(n);
        hotspot
    }

    /// A place, of which the hot ones are first.
    #[inline]
    pub(super) fn place(&self, random: &mut Random) -> u64 {
        let is_hot = random.unit() < self.share || self.hot == self.n;
        let (start, length) = if is_hot { (0, self.hot) } else { (self.hot, self.n - self.hot) };
        start + random.below(length)
    }

    /// The item at a place.
    #[inline]
    pub(super) fn item(&self, place: u64) -> u64 {
        match &self.scatter {
            Some(scatter) if place < scatter.n() => scatter.at(place),
            _ => place,
        }
    }
}

impl Draws for Hotspot {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        let place = self.place(random);
        self.item(place)
    }

    /// The hot set grows with the range, and hot items stay hot.
    fn grow(&mut self, n: u64) {
        self.n = n;
        self.hot = ((n as f64 * self.fraction) as u64).clamp(1, n);
    }

    fn masses(&self) -> Vec<f64> {
        let share = if self.hot == self.n { 1.0 } else { self.share };
        let hot = share / self.hot as f64;
        let cold = (1.0 - share) / (self.n - self.hot).max(1) as f64;
        (0..self.n).map(|place| if place < self.hot { hot } else { cold }).collect()
    }
}
