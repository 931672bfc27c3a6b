//! Keys in turns, in the layout of ft-index's db-insert: N serial keys, then N random keys in the range that the
//! serial ones have covered so far, and so on.

use super::permutation::Permutation;
use super::random::derive;
use super::spec::SpecError;
use std::sync::Arc;

/// Maximum number of turns: each has a permutation of about 100 bytes.
const MOST_TURNS: u64 = 65_536;

/// The layout. Serial item j has the number spacing * j. Random item k of turn r (from 0) has the number spacing *
/// permutation_r(k) + r + 1, with a keyed permutation of [0, (r + 1) * N): all numbers are distinct, and none is a
/// serial one. The mapping takes O(1) in both directions.
#[derive(Clone)]
pub(super) struct Alternate {
    size: u64,
    spacing: u64,
    range: u64,
    turns: Arc<[Permutation]>,
}

impl Alternate {
    /// Turns of `size` serial and `size` random items, `range` items in total.
    pub(super) fn new(size: u64, spacing: u64, range: u64, seed: u64) -> Result<Alternate, SpecError> {
        let turns = turns(size, range);
        if turns >= spacing || turns > MOST_TURNS {
            let most = MOST_TURNS.min(spacing.saturating_sub(1));
            return Err(SpecError(format!(
                "{range} keys in turns of {size} serial and {size} random ones need {turns} turns; spacing \
                 {spacing} allows at most {most}; increase `key.alternate` or `key.spacing`"
            )));
        }
        let seed = derive(seed, 0x7475_726e);
        let turn = |turn: u64| Permutation::new((turn + 1) * size, derive(seed, turn));
        Ok(Alternate { size, spacing, range, turns: (0..turns).map(turn).collect() })
    }

    /// The number of an item.
    #[inline]
    pub(super) fn number(&self, index: u64) -> u64 {
        let (turn, place, is_random) = self.split(index);
        if is_random {
            self.turns[turn as usize].at(place) * self.spacing + turn + 1
        } else {
            (turn * self.size + place) * self.spacing
        }
    }

    /// The item with a number; `None` if no item has it.
    #[inline]
    pub(super) fn index(&self, number: u64) -> Option<u64> {
        self.item(number / self.spacing, number % self.spacing)
    }

    /// A number that no item has, next to that of `index`; exists if `has_gap`.
    #[inline]
    pub(super) fn missing(&self, index: u64) -> u64 {
        self.number(index) / self.spacing * self.spacing + self.spacing - 1
    }

    /// Whether the last number before each serial one is never used.
    pub(super) fn has_gap(&self) -> bool {
        (self.turns.len() as u64) < self.spacing - 1
    }

    /// A place in the order of numbers: serial ones are one more than the number of turns apart. Not every place has
    /// an item.
    pub(super) fn place(&self, index: u64) -> u64 {
        let number = self.number(index);
        number / self.spacing * self.step() + number % self.spacing
    }

    /// The item at a place.
    pub(super) fn at_place(&self, place: u64) -> Option<u64> {
        self.item(place / self.step(), place % self.step())
    }

    /// Upper bound of the places of the items below `items`.
    pub(super) fn places(&self, items: u64) -> u64 {
        turns(self.size, items.min(self.range)) * self.size * self.step()
    }

    fn step(&self) -> u64 {
        self.turns.len() as u64 + 1
    }

    /// Its turn, its place among the serial or the random items of the turn, and whether it is random.
    fn split(&self, index: u64) -> (u64, u64, bool) {
        let (half, place) = (index / self.size, index % self.size);
        (half / 2, place, half % 2 == 1)
    }

    /// The item at a distance after serial place `base`: 0 is the serial one; otherwise the random one of that turn.
    fn item(&self, base: u64, distance: u64) -> Option<u64> {
        let (turn, place, half) = match distance.checked_sub(1) {
            None => (base / self.size, base % self.size, 0),
            Some(turn) => {
                let permutation = self.turns.get(usize::try_from(turn).ok()?)?;
                if base >= permutation.n() {
                    return None;
                }
                (turn, permutation.inverse(base), 1)
            }
        };
        let index = (2 * turn + half).checked_mul(self.size)?.checked_add(place)?;
        (place < self.size && index < self.range).then_some(index)
    }
}

/// Number of turns for this many items; the last one may be incomplete.
pub(super) fn turns(size: u64, items: u64) -> u64 {
    items.div_ceil(size.saturating_mul(2))
}
