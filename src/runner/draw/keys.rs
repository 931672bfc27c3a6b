//! Which key comes next: one of the thread's view, one that the thread alone may write, or a new one.

use super::{Draw, mix_of};
use crate::generator::{Distribution, Inserts, Partition, SpecError, View};
use crate::runner::phase::writes_keys_there;
use crate::runner::shared::Shared;
use crate::runner::unit::Kind;
use crate::workload::Phase;

/// Of which keys a thread's reads must see just the last version that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exact {
    /// Of all: nobody else writes a key that this thread reads.
    All,
    /// Of those that are this thread's, by the number of threads that write.
    Own(u64, u64),
    /// Of none: others may write any of them at the same time.
    None,
}

impl Exact {
    pub(super) fn of(shared: &Shared<'_>, thread: usize) -> Exact {
        let slot = &shared.slots[thread];
        // Who draws his own inserts draws nobody else's.
        let writes_there = |role| writes_keys_there(shared.phase, role);
        if shared.slots.len() == 1 || !shared.slots.iter().any(|slot| writes_there(slot.role)) {
            return Exact::All;
        }
        match slot.writer {
            Some(writer) if shared.epochs.is_none() && writes_there(slot.role) => {
                Exact::Own(writer, shared.writers)
            }
            _ => Exact::None,
        }
    }

    #[inline(always)]
    pub(super) fn has(self, index: u64) -> bool {
        match self {
            Exact::All => true,
            Exact::Own(writer, writers) => index % writers == writer,
            Exact::None => false,
        }
    }
}

impl Draw {
    /// What the thread draws from.
    pub(super) fn view(shared: &Shared<'_>, thread: usize, range: u64) -> Result<View, SpecError> {
        let (slot, phase) = (&shared.slots[thread], shared.phase);
        let part = match slot.writer {
            Some(writer) => Partition { index: writer, count: shared.writers },
            None => {
                let readers = shared.slots.iter().filter(|slot| slot.writer.is_none());
                let before = shared.slots[..thread].iter().filter(|slot| slot.writer.is_none()).count();
                Partition { index: before as u64, count: readers.count() as u64 }
            }
        };
        // Hot items stay the same from phase to phase; a permutation is another one in each.
        let seed = match phase.distribution {
            Distribution::Permutation => shared.seed,
            _ => shared.hot_seed,
        };
        let (distribution, clustered) = (&phase.distribution, phase.clustered);
        if !phase.grows || shared.inserters == 0 {
            return View::fixed(distribution, range, seed, part, clustered);
        }
        let inserts = Inserts {
            from: shared.population.next_insert + slot.inserter.unwrap_or(0),
            step: shared.inserters,
            expected: expected_inserts(shared),
        };
        View::growing(distribution, range, seed, (part, clustered), inserts)
    }

    /// The next key that the distribution gives.
    #[inline(always)]
    pub(super) fn drawn(&mut self) -> u64 {
        self.view.next(&mut self.random)
    }

    /// The next key of those that this thread alone may write: for what the core does in several calls.
    #[inline(always)]
    pub(super) fn own(&mut self, shared: &Shared<'_>) -> u64 {
        loop {
            let index = self.drawn();
            if shared.writers <= 1 || index % shared.writers == self.writer {
                return index;
            }
        }
    }

    /// The next new key of this thread; none: the keys are used up.
    #[inline(always)]
    pub(super) fn next_new(&mut self, shared: &Shared<'_>) -> Option<u64> {
        let place = self.inserted + self.pending_inserts;
        let index = shared.population.next_insert + self.inserter + shared.inserters * place;
        if index >= shared.insert_end {
            self.is_out_of_keys = true;
            return None;
        }
        self.pending_inserts += 1;
        if self.grows {
            // Ops of a batch are run in order, so those behind this one in the batch may draw the key already.
            self.view.set_own(place + 1);
        }
        Some(index)
    }
}

/// New keys that a phase is expected to make, as YCSB reckons it: twice the inserts of its ops. Where time ends it there
/// are as many ops as keys at its start, as in the files that YCSB comes with: an engine's speed must not decide.
fn expected_inserts(shared: &Shared<'_>) -> u64 {
    let phase = shared.phase;
    let ops = if phase.ops > 0 { phase.ops } else { shared.population.dense };
    let shares =
        shared.slots.iter().map(|slot| insert_share(phase, mix_of(phase, slot.role), shared.row_ops));
    let share = shares.sum::<f64>() / shared.slots.len().max(1) as f64;
    (ops as f64 * share * 2.0) as u64
}

/// The share of a mix's ops that write new keys.
fn insert_share(phase: &Phase, mix: crate::workload::Mix, row_ops: usize) -> f64 {
    let ops = |kind: Kind| kind.share(&mix) * kind.counted_ops(kind.ops(phase, row_ops), row_ops) as f64;
    let new = |kind: Kind| match kind {
        Kind::Insert => ops(kind) * (1.0 - phase.existing.unwrap_or(0.0)),
        Kind::Put => phase.existing.map_or(0.0, |existing| ops(kind) * (1.0 - existing)),
        Kind::InsertIndexed => ops(kind),
        _ => 0.0,
    };
    let all: f64 = Kind::ALL.into_iter().map(ops).sum();
    if all > 0.0 { Kind::ALL.into_iter().map(new).sum::<f64>() / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Mix;

    #[test]
    fn inserts_are_reckoned_by_ops_and_not_by_groups() {
        let mix = Mix { get: 0.95, insert: 0.05, ..Mix::default() };
        let phase = Phase { join: 1, ..Phase::default() };
        assert!((insert_share(&phase, mix, 1) - 0.05).abs() < 1e-12);
        let joined = Phase { join: 19, ..Phase::default() };
        assert!((insert_share(&joined, mix, 1) - 0.5).abs() < 1e-12);
        let puts = Mix { put: 1.0, ..Mix::default() };
        let half = Phase { existing: Some(0.5), join: 1, ..Phase::default() };
        assert_eq!((insert_share(&half, puts, 1), insert_share(&phase, puts, 1)), (0.5, 0.0));
        assert_eq!(insert_share(&phase, Mix { insert_indexed: 1.0, ..Mix::default() }, 4), 1.0);
    }
}
