//! `moving-hotspot:FRACTION,SHARE,DRAWS`: a share of the draws falls on a hot set, which moves.

use super::hotspot::Hotspot;
use super::{Bound, Draws, Hot, Items, Places, Row};
use crate::generator::random::Random;

/// The most draws between moves: all smaller whole numbers have an exact float.
const MOST_DRAWS: u64 = 1_000_000_000_000_000;

/// The row of the table.
pub(super) const ROW: Row = Row {
    name: "moving-hotspot",
    parameters: &[("FRACTION", Bound::Share), ("SHARE", Bound::Share), ("DRAWS", Bound::Whole(MOST_DRAWS))],
    usual: &[],
    example: "moving-hotspot:0.01,0.9,100000",
    note: "SHARE of the draws on FRACTION of the items, a hot set that moves by its size after DRAWS draws of a thread",
    words: "{SHARE %} of the draws fall on {FRACTION %} of the keys, a hot set that moves by its size after every {DRAWS} draws of \
            a thread",
    places: Places::All,
    hot: Hot::Chosen,
    // Long enough at one place to be compared with the probabilities there; moves have tests of their own.
    tested: &["moving-hotspot:0.1,0.9,1000000000"],
    #[cfg(test)]
    first: &[
        ("moving-hotspot:0.01,0.9,2", true, [3660, 8644, 11278, 14205, 28331, 567209]),
        ("moving-hotspot:0.01,0.9,2", false, [385783, 638285, 911747, 118993, 146308, 367536]),
    ],
};

/// A hotspot whose places are shifted: after the last place comes the first again. The draws of each thread move its own hot set,
/// so that they depend on nothing but its streams.
#[derive(Clone, Debug)]
pub(crate) struct MovingHotspot {
    hotspot: Hotspot,
    /// The first hot place.
    start: u64,
    /// Draws before the next move.
    left: u64,
    draws: u64,
}

impl MovingHotspot {
    /// Items [0, n); with `clustered` hot ones are neighbours, otherwise a permutation from the seed places them.
    pub(super) fn new(items: &Items, fraction: f64, share: f64, draws: f64) -> MovingHotspot {
        let draws = draws as u64;
        MovingHotspot { hotspot: Hotspot::new(items, fraction, share), start: 0, left: draws, draws }
    }

    fn advance(&mut self) {
        self.start = (self.start + self.hotspot.hot) % self.hotspot.n;
        self.left = self.draws;
    }
}

impl Draws for MovingHotspot {
    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        if self.left == 0 {
            self.advance();
        }
        self.left -= 1;
        let (place, n) = (self.start + self.hotspot.place(random), self.hotspot.n);
        self.hotspot.item(if place < n { place } else { place - n })
    }

    /// The hot set grows with the range, and its first place stays.
    fn grow(&mut self, n: u64) {
        self.hotspot.grow(n);
    }

    /// The probabilities until the first move.
    fn masses(&self) -> Vec<f64> {
        self.hotspot.masses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::shape::against;
    use crate::generator::{Partition, Sampler};

    fn sampler(text: &str, n: u64, clustered: bool) -> Sampler {
        Sampler::new(&text.parse().unwrap(), n, 21, Partition::WHOLE, clustered).unwrap()
    }

    /// The draws of each place of the hot set, as counts of items.
    fn counts(sampler: &mut Sampler, random: &mut Random, moves: usize, draws: usize) -> Vec<Vec<u64>> {
        let mut all = vec![vec![0; sampler.n() as usize]; moves];
        for counts in &mut all {
            (0..draws).for_each(|_| counts[sampler.next(random) as usize] += 1);
        }
        all
    }

    #[test]
    fn each_place_has_the_probabilities_of_a_hotspot() {
        let mut sampler = sampler("moving-hotspot:0.1,0.9,100000", 1_000, true);
        let all = counts(&mut sampler, &mut Random::seeded(22), 25, 100_000);
        for (place, counts) in all.iter().enumerate() {
            let first = place * 100 % 1_000;
            let is_hot = |item: usize| (first..first + 100).contains(&item);
            let mass = |item| if is_hot(item) { 0.9 / 100.0 } else { 0.1 / 900.0 };
            let masses: Vec<f64> = (0..1_000).map(mass).collect();
            let test = against(&masses, counts);
            assert!(test.p > 1e-5, "seed 22, place {place}: {test:?}");
            let before: Vec<f64> = (0..1_000).map(|item| mass((item + 100) % 1_000)).collect();
            assert!(against(&before, counts).p < 1e-9, "seed 22, place {place} is that of the move before");
        }
    }

    #[test]
    fn a_hot_set_at_the_end_continues_at_the_start() {
        // 4 of 10: from place 8 on they are 8, 9, 0 and 1.
        let mut sampler = sampler("moving-hotspot:0.4,1,50", 10, true);
        let all = counts(&mut sampler, &mut Random::seeded(23), 6, 50);
        let hot = |counts: &Vec<u64>| (0..10).filter(|item| counts[*item] > 0).collect::<Vec<usize>>();
        let wanted = [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 8, 9], [2, 3, 4, 5], [6, 7, 8, 9], [0, 1, 2, 3]];
        assert_eq!(all.iter().map(hot).collect::<Vec<_>>(), wanted, "seed 23");
    }

    #[test]
    fn scattered_hot_sets_follow_each_other_without_a_common_key_and_reach_all() {
        let mut sampler = sampler("moving-hotspot:0.01,1,5000", 1_000, false);
        let all = counts(&mut sampler, &mut Random::seeded(24), 100, 5_000);
        let mut seen = vec![0; 1_000];
        for counts in &all {
            let hot: Vec<usize> = (0..1_000).filter(|item| counts[*item] > 0).collect();
            assert_eq!(hot.len(), 10, "seed 24");
            assert!(hot.last().unwrap() - hot[0] > 100, "seed 24: {hot:?} are not scattered");
            hot.into_iter().for_each(|item| seen[item] += 1);
        }
        assert!(seen.iter().all(|times| *times == 1), "seed 24: each key is hot once");
    }

    #[test]
    fn all_threads_begin_with_the_same_hot_set_and_move_by_their_own_draws() {
        let (mut one, mut other) = (
            sampler("moving-hotspot:0.01,1,100", 1_000, false),
            sampler("moving-hotspot:0.01,1,100", 1_000, false),
        );
        let [ahead, behind] = [0, 1].map(|stream| Random::stream(25, stream));
        let of_one = counts(&mut one, &mut { ahead }, 5, 100);
        let of_other = counts(&mut other, &mut { behind }, 5, 100);
        for (left, right) in of_one.iter().zip(&of_other) {
            assert!(left.iter().zip(right).all(|(left, right)| (*left > 0) == (*right > 0)), "seed 25");
            assert_ne!(left, right, "seed 25: the draws themselves differ");
        }
    }

    #[test]
    fn one_key_and_a_set_of_all_keys_stay() {
        for (text, n) in [("moving-hotspot:0.5,0.5,1", 1), ("moving-hotspot:1,0.5,3", 7)] {
            let all = counts(&mut sampler(text, n, true), &mut Random::seeded(26), 1, 70_000);
            let test = against(&vec![1.0 / n as f64; n as usize], &all[0]);
            assert!(test.p > 1e-5, "seed 26, {text}: {test:?}");
        }
    }

    #[test]
    fn growth_keeps_the_place() {
        let mut sampler = sampler("moving-hotspot:0.1,1,10", 100, true);
        let mut random = Random::seeded(27);
        (0..15).for_each(|_| assert!(sampler.next(&mut random) < 20, "seed 27"));
        sampler.grow(200);
        (0..5).for_each(|_| assert!((10..30).contains(&sampler.next(&mut random)), "seed 27"));
        (0..10).for_each(|_| assert!((30..50).contains(&sampler.next(&mut random)), "seed 27"));
    }
}
