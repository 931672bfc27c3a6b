//! `View`: the items that one thread draws from: those at the phase's start and, while the range grows, its own
//! inserts.
//!
//! A thread of a growing phase sees the inserts that it has drawn itself, and no other thread's. Its draws therefore
//! depend on its streams alone: not on the engine's speed, the size of batches, or the timing of threads. It
//! estimates the current size of the range as if all inserting threads had progressed as far as itself, so that a
//! key's share is the same for any number of threads.

use super::distribution::{Distribution, Places};
use super::random::Random;
use super::sample::{Partition, Sampler};
use super::spec::SpecError;

/// Where a thread's inserts are: the first, and the distance to the next, which is the number of inserting threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserts {
    /// The thread's first new item.
    pub from: u64,
    /// At least 1.
    pub step: u64,
    /// New items of all threads that the phase is expected to make (CoreWorkload's `expectednewkeys`).
    pub expected: u64,
}

/// The meaning of the sampler's places after the items of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// There are none.
    Nothing,
    /// This many neighbours represent one own insert: those that all threads have made in the same turn.
    Turns(u64),
    /// Places are counted from the newest, which is the thread's newest insert: all own inserts are followed by the
    /// items of the start, from their end on. For the oldest places, which represent other threads' inserts, old
    /// items are returned.
    Ages,
}

/// A sampler, and the meaning of its places.
#[derive(Clone, Debug)]
pub struct View {
    sampler: Sampler,
    /// Number of items at the start.
    first: u64,
    behind: Behind,
    inserts: Inserts,
    /// Own inserts so far.
    own: u64,
}

impl View {
    /// The items [0, n) and no others.
    pub fn fixed(
        distribution: &Distribution,
        n: u64,
        seed: u64,
        part: Partition,
        clustered: bool,
    ) -> Result<View, SpecError> {
        let sampler = Sampler::new(distribution, n.max(1), seed, part, clustered)?;
        let inserts = Inserts { from: 0, step: 1, expected: 0 };
        Ok(View { sampler, first: n, behind: Behind::Nothing, inserts, own: 0 })
    }

    /// The items [0, n), and the own inserts set by [`View::set_own`].
    pub fn growing(
        distribution: &Distribution,
        n: u64,
        seed: u64,
        part: Partition,
        clustered: bool,
        inserts: Inserts,
    ) -> Result<View, SpecError> {
        let (range, behind) = match distribution.row().places {
            // All items that are expected, because the range cannot grow.
            Places::Fixed => {
                (n.saturating_add(inserts.expected).min((1 << 63) - 1), Behind::Turns(inserts.step))
            }
            // Of a part's places, every `count`-th is the thread's.
            Places::OwnPart => (n, Behind::Turns(part.count)),
            Places::FromNewest => (n, Behind::Ages),
            Places::All => (n, Behind::Turns(inserts.step)),
        };
        let sampler = Sampler::new(distribution, range.max(1), seed, part, clustered)?;
        Ok(View { sampler, first: n, behind, inserts, own: 0 })
    }

    /// The next item. Places whose insert has not been drawn yet are drawn again (CoreWorkload's `nextKeynum`); if
    /// there is no item at all, the result is item 0.
    #[inline(always)]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        let place = self.sampler.next(random);
        if self.behind == Behind::Nothing { place } else { self.item(place, random) }
    }

    /// The next items, as many as `out` has space for: the same as by [`View::next`].
    pub fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
        if self.behind == Behind::Nothing {
            return self.sampler.fill(random, out);
        }
        out.iter_mut().for_each(|item| *item = self.next(random));
    }

    #[inline(never)]
    fn item(&mut self, mut place: u64, random: &mut Random) -> u64 {
        loop {
            let found = match self.behind {
                Behind::Turns(stride) => match place.checked_sub(self.first) {
                    None => Some(place),
                    Some(behind) => self.insert(behind / stride),
                },
                _ => self.aged(self.sampler.n() - 1 - place),
            };
            match found {
                Some(item) => return item,
                None if self.first + self.own == 0 => return 0,
                None => place = self.sampler.next(random),
            }
        }
    }

    /// The own insert with a number; `None` if it has not been drawn yet.
    #[inline(always)]
    fn insert(&self, number: u64) -> Option<u64> {
        (number < self.own).then(|| self.inserts.from + number * self.inserts.step)
    }

    /// The item this many places before the newest.
    #[inline(always)]
    fn aged(&self, age: u64) -> Option<u64> {
        match age.checked_sub(self.own) {
            None => self.insert(self.own - 1 - age),
            Some(age) if age < self.first => Some(self.first - 1 - age),
            Some(age) => (age - self.first).checked_rem(self.first),
        }
    }

    /// Sets how many inserts the thread has drawn.
    #[inline]
    pub fn set_own(&mut self, own: u64) {
        self.own = own;
        let stride = match self.behind {
            Behind::Nothing => return,
            Behind::Turns(stride) => stride,
            Behind::Ages => self.inserts.step,
        };
        self.sampler.grow(self.first.saturating_add(own.saturating_mul(stride)));
    }

    /// Items of this thread in one pass of a distribution that returns each once.
    pub fn pass_len(&self) -> u64 {
        self.sampler.part_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSERTS: Inserts = Inserts { from: 1_002, step: 4, expected: 400 };

    fn view(distribution: &str, index: u64) -> View {
        let part = Partition { index, count: 4 };
        View::growing(&distribution.parse().unwrap(), 1_000, 7, part, false, INSERTS).unwrap()
    }

    #[test]
    fn own_inserts_come_and_those_of_others_do_not() {
        for distribution in super::super::tests::all() {
            let mut view = view(distribution, 2);
            let mut random = Random::seeded(5);
            let mut reached = 0_u64;
            for own in 0..=50 {
                view.set_own(own);
                for _ in 0..2_000 {
                    let item = view.next(&mut random);
                    let is_own =
                        item >= 1_002 && (item - 1_002).is_multiple_of(4) && (item - 1_002) / 4 < own;
                    assert!(item < 1_000 || is_own, "seed 5, {distribution}: {item} after {own} inserts");
                    reached += u64::from(is_own);
                }
            }
            // With `zipf` the new items are the coldest.
            assert!(
                reached > 0 || distribution == "zipf:2.5",
                "seed 5, {distribution}: no own insert was drawn"
            );
        }
    }

    #[test]
    fn the_newest_of_latest_is_the_own_newest_insert() {
        let mut view = view("latest", 2);
        let mut random = Random::seeded(6);
        let draws = 100_000;
        for own in [1, 2, 30] {
            view.set_own(own);
            let newest = (0..draws).filter(|_| view.next(&mut random) == 1_002 + 4 * (own - 1)).count();
            let share = newest as f64 / f64::from(draws);
            // 1 / zeta(1004 to 1120, 0.99): as many as if all four threads had progressed equally.
            assert!((share - 0.128).abs() < 0.004, "seed 6: {share} with {own} own inserts");
        }
    }

    #[test]
    fn growth_moves_no_hot_item() {
        for distribution in ["zipf:1.2", "ycsb-zipfian"] {
            let hottest = |own| {
                let mut view = view(distribution, 2);
                view.set_own(own);
                let mut random = Random::seeded(8);
                let mut counts = std::collections::HashMap::new();
                (0..20_000).for_each(|_| *counts.entry(view.next(&mut random)).or_insert(0) += 1);
                counts.into_iter().max_by_key(|&(_, count)| count).unwrap().0
            };
            let start = hottest(0);
            assert!((1..50).all(|own| hottest(own) == start), "seed 8, {distribution}");
        }
    }

    #[test]
    fn a_pass_has_the_part_of_the_start_and_all_own_inserts() {
        for distribution in ["sequential", "permutation"] {
            let mut view = view(distribution, 2);
            view.set_own(30);
            let mut random = Random::seeded(0);
            // The first pass of a permutation covers only the start.
            let first = if distribution == "permutation" { 250 } else { 0 };
            (0..first).for_each(|_| assert!(view.next(&mut random) < 1_000));
            let mut seen: Vec<u64> = (0..280).map(|_| view.next(&mut random)).collect();
            seen.sort_unstable();
            let wanted = (0..250).map(|place| 2 + place * 4).chain((0..30).map(|own| 1_002 + own * 4));
            assert_eq!(seen, wanted.collect::<Vec<u64>>(), "{distribution}");
        }
    }

    #[test]
    fn of_no_items_the_first_comes() {
        let inserts = Inserts { from: 0, step: 1, expected: 10 };
        for distribution in super::super::tests::all() {
            let distribution = distribution.parse().unwrap();
            let mut view = View::growing(&distribution, 0, 7, Partition::WHOLE, false, inserts).unwrap();
            let mut random = Random::seeded(1);
            assert_eq!(view.next(&mut random), 0, "{distribution}");
            view.set_own(3);
            assert!((0..100).all(|_| view.next(&mut random) < 3), "{distribution}");
        }
    }
}
