//! Draws the next key: from the thread's view, from the keys that only this thread may write, or a new key.

use super::{Draw, mix_of};
use crate::generator::{Inserts, Partition, Random, SpecError, View};
use crate::runner::phase::writes_keys_there;
use crate::runner::phase_data::Shared;
use crate::runner::spaces::WrittenKey;
use crate::runner::worker::BATCH_OPS;
use crate::workload::{Access, OpKind, Phase};

/// The keys for which a thread's reads must see exactly the last version sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exact {
    /// All keys: no other thread writes a key that this thread reads.
    All,
    /// The thread's own keys: its number and the number of writing threads.
    Own(u64, u64),
    /// No keys: others may write any of them at the same time.
    None,
}

impl Exact {
    pub(super) fn of(shared: &Shared<'_>, thread: usize) -> Exact {
        let slot = &shared.slots[thread];
        // A write that failed may have taken effect.
        if !shared.faults.is_empty() {
            return Exact::None;
        }
        // A thread that draws its own inserts does not draw those of others.
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

/// A key that was drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    /// Its number.
    pub(super) index: u64,
    /// What its bytes are made of (`Keys::codes`); without meaning if keys are not those of the generator.
    code: u64,
}

impl Drawn {
    /// The key of an item.
    #[inline(always)]
    pub(super) fn of(shared: &Shared<'_>, index: u64) -> Drawn {
        let mut code = [0];
        if shared.spaces.is_plain() {
            shared.keys.codes(&[index], &mut code);
        }
        Drawn { index, code: code[0] }
    }

    /// Writes the key; returns its length and its keyspace.
    #[inline(always)]
    pub(super) fn write(self, shared: &Shared<'_>, out: &mut [u8]) -> WrittenKey {
        if shared.spaces.is_plain() {
            return WrittenKey { length: shared.keys.write_code(self.code, out), space: 0 };
        }
        shared.spaces.write_key(shared.keys, self.index, out)
    }
}

/// Keys that were drawn ahead of their ops. Many together take less time, and their versions are loaded into a cache by then: a
/// table of versions is larger than the caches, and the engine evicts what fits. The order of keys is that of the draws.
pub(super) struct Ahead {
    indices: [u64; Ahead::KEYS],
    codes: [u64; Ahead::KEYS],
    next: usize,
}

impl Ahead {
    const KEYS: usize = BATCH_OPS + Ahead::LOADED;
    /// The versions of so many are being loaded: as many as a processor loads at the same time.
    const LOADED: usize = 16;

    /// Without keys.
    pub(super) fn new() -> Ahead {
        Ahead { indices: [0; Ahead::KEYS], codes: [0; Ahead::KEYS], next: Ahead::KEYS }
    }

    /// Draws more keys.
    #[inline(never)]
    fn refill(&mut self, shared: &Shared<'_>, view: &mut View, random: &mut Random) {
        let left = Ahead::KEYS - self.next;
        self.indices.copy_within(self.next.., 0);
        self.codes.copy_within(self.next.., 0);
        self.next = 0;
        view.fill(random, &mut self.indices[left..]);
        if shared.spaces.is_plain() {
            shared.keys.codes(&self.indices[left..], &mut self.codes[left..]);
        }
    }
}

impl Draw {
    /// The view that the thread draws from.
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
        // Hot items are the same in all phases; a permutation differs from phase to phase.
        let seed = if phase.distribution.is_pass() { shared.seed } else { shared.hot_seed };
        let (distribution, clustered) = (&phase.distribution, phase.clustered);
        if !phase.grows || shared.inserters == 0 {
            return View::fixed(distribution, range, seed, part, clustered);
        }
        let inserts = Inserts {
            from: shared.population.next_insert + slot.inserter.unwrap_or(0),
            step: shared.inserters,
            expected: expected_inserts(shared),
        };
        View::growing(distribution, range, seed, part, clustered, inserts)
    }

    /// The next key of the distribution.
    #[inline(always)]
    pub(super) fn drawn(&mut self, shared: &Shared<'_>) -> Drawn {
        let Some(ahead) = &mut self.ahead else { return Drawn::of(shared, self.view.next(&mut self.random)) };
        if ahead.next >= Ahead::KEYS - Ahead::LOADED {
            ahead.refill(shared, &mut self.view, &mut self.random);
        }
        let next = ahead.next;
        ahead.next += 1;
        if let Some(versions) = shared.versions {
            versions.prefetch(ahead.indices[next + Ahead::LOADED]);
        }
        Drawn { index: ahead.indices[next], code: ahead.codes[next] }
    }

    /// The next key that only this thread may write, for ops that the core does in several calls.
    #[inline(always)]
    pub(super) fn own(&mut self, shared: &Shared<'_>) -> Drawn {
        loop {
            let drawn = self.drawn(shared);
            if shared.writers <= 1 || drawn.index % shared.writers == self.writer {
                return drawn;
            }
        }
    }

    /// The next new key of this thread; none: no keys are left.
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
            // Ops of a batch are run in order, so later ops of the batch may already draw the key.
            self.view.set_own(place + 1);
        }
        Some(index)
    }
}

/// The expected number of new keys of a phase, computed as in YCSB: twice the inserts of its ops. For a phase that ends by
/// time, the number of ops is taken as the number of keys at its start, as in YCSB's own files, so that the engine's speed
/// does not matter.
fn expected_inserts(shared: &Shared<'_>) -> u64 {
    let phase = shared.phase;
    let ops = phase.ops_limit().unwrap_or(shared.population.dense);
    let shares =
        shared.slots.iter().map(|slot| insert_share(phase, mix_of(phase, slot.role), shared.row_ops));
    let share = shares.sum::<f64>() / shared.slots.len().max(1) as f64;
    (ops as f64 * share * 2.0) as u64
}

/// The share of a mix's ops that write new keys.
fn insert_share(phase: &Phase, mix: crate::workload::Mix, row_ops: usize) -> f64 {
    let ops = |kind: OpKind| mix.share(kind) * kind.counted_ops(kind.ops(phase, row_ops), row_ops) as f64;
    let new = |kind: OpKind| match kind {
        OpKind::Insert => ops(kind) * (1.0 - phase.existing.unwrap_or(0.0)),
        OpKind::Put => phase.existing.map_or(0.0, |existing| ops(kind) * (1.0 - existing)),
        _ if kind.access() == Access::Insert => ops(kind),
        _ => 0.0,
    };
    let all: f64 = OpKind::ALL.into_iter().map(ops).sum();
    if all > 0.0 { OpKind::ALL.into_iter().map(new).sum::<f64>() / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Mix;

    #[test]
    fn inserts_are_counted_by_ops_and_not_by_groups() {
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
