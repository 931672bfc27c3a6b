//! Reads that return an older state than an acknowledged one: a fault, or a stale read where the engine may answer so.

use super::Judge;
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::measure::Histogram;
use crate::results::Staleness;
use crate::runner::check::Window;
use crate::runner::draw::Item;
use crate::runner::recent::{Newer, Recent};
use crate::runner::shared::Shared;

/// Empty counts, ready to record without allocating.
pub fn counts() -> Box<Staleness> {
    let (versions, age_ns) = (Histogram::new(), Histogram::new());
    Box::new(Staleness { versions, age_ns, ..Staleness::default() })
}

/// Resets the counts of the warm-up.
pub fn clear(staleness: &mut Staleness) {
    staleness.versions.clear();
    staleness.age_ns.clear();
    (staleness.stale, staleness.missed, staleness.at_least_ns) = (0, 0, None);
}

/// Notes when the writes of a batch were acknowledged; comes before the batch is judged.
#[inline(never)]
pub fn note(recent: &Recent, items: &[Item], arena: &Arena, done: usize) {
    for (item, op) in items.iter().zip(arena.ops()).take(done) {
        let is_acknowledged = match op.kind {
            KV_PUT => op.status == KV_OK && !item.is_expected_miss() && !item.is_index_row(),
            KV_DELETE => matches!(op.status, KV_OK | KV_NOT_FOUND),
            _ => false,
        };
        if is_acknowledged && item.is_known() {
            recent.note(item.index, item.state, op.end);
        }
    }
}

/// The version of a stale read.
enum Seen {
    Version(u32),
    /// It is older than all versions that may be seen.
    Unknown,
}

impl Judge {
    /// A get has returned a value whose version is not in its window.
    #[cold]
    pub(super) fn older_value(
        &mut self,
        shared: &Shared<'_>,
        arena: &Arena,
        (item, at): (Item, usize),
        version: Option<u64>,
    ) {
        if shared.is_doubtful(item.index, version) {
            return;
        }
        let window = self.window(shared, item);
        self.stale_reads += 1;
        if let Some((recent, seen)) = seen_value(shared, item, window, version) {
            return self.stale(shared, recent, (item, arena.op(at).start), window, seen);
        }
        self.faults.add(|| {
            let allowed = window.text();
            let version = version.map_or("unknown".into(), |version| version.to_string());
            format!("get of key {}: version {version}, expected {allowed}", item.index)
        });
    }

    /// A get has found nothing, but the key must be there.
    #[cold]
    pub(super) fn older_absence(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) {
        let window = self.window(shared, item);
        self.stale_reads += 1;
        if shared.accepts_stale {
            // Without the key's version nothing is known of the read.
            let Some(recent) = shared.recent.filter(|_| item.is_known()) else { return };
            if let Some(staleness) = &mut self.staleness {
                staleness.missed += 1;
            }
            let seen = seen_absence(shared, recent, item, window);
            return self.stale(shared, recent, (item, arena.op(at).start), window, seen);
        }
        self.faults.add(|| {
            let allowed = if item.is_known() { window.text() } else { "a value".into() };
            format!("get of key {}: not found, expected {allowed}", item.index)
        });
    }

    /// Counts a stale read that was sent at `start`.
    fn stale(
        &mut self,
        shared: &Shared<'_>,
        recent: &Recent,
        (item, start): (Item, u64),
        window: Window,
        seen: Seen,
    ) {
        let Some(staleness) = &mut self.staleness else { return };
        staleness.stale += 1;
        let Seen::Version(version) = seen else { return };
        staleness.versions.record(u64::from(window.oldest.version() - version));
        let Newer { tick, is_first } = recent.newer_than(item.index, version);
        let Some(age) = tick.map(|tick| shared.clock.to_ns(start.saturating_sub(tick))) else { return };
        match is_first {
            true => staleness.age_ns.record(age),
            false => staleness.at_least_ns = staleness.at_least_ns.max(Some(age)),
        }
    }
}

/// The version of a value that a get has returned although a newer state was acknowledged; none: that is a fault.
fn seen_value<'s>(
    shared: &Shared<'s>,
    item: Item,
    window: Window,
    version: Option<u64>,
) -> Option<(&'s Recent, Seen)> {
    let recent = shared.recent.filter(|_| shared.accepts_stale)?;
    let Some(version) = version else {
        // A value too small to contain its version, of a key that was deleted.
        return (window.oldest.version() > 0).then_some((recent, Seen::Unknown));
    };
    let version = u32::try_from(version).ok().filter(|version| *version > 0)?;
    if version < window.oldest.version() {
        return (!recent.is_delete(item.index, version)).then_some((recent, Seen::Version(version)));
    }
    let is_given_up = version > window.newest.version() && recent.is_withdrawn(item.index, version);
    is_given_up.then_some((recent, Seen::Unknown))
}

/// The version of the newest absence that a get may have seen.
fn seen_absence(shared: &Shared<'_>, recent: &Recent, item: Item, window: Window) -> Seen {
    let was_never_deleted = shared.population.whole && !shared.deletes;
    if was_never_deleted {
        return Seen::Version(0);
    }
    // If several threads write a key, not every delete of it is a floor of its own.
    let delete = match shared.epochs {
        Some(_) => None,
        None => recent.deleted_before(item.index, window.oldest.version()),
    };
    delete.map_or(Seen::Unknown, Seen::Version)
}
