//! Reads that return an older state than an acknowledged one: a fault, or a stale read where the engine may answer so.

mod recent;

pub(crate) use recent::Recent;

use super::Companion;
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::results::{PhaseRecord, Staleness};
use crate::runner::check::Window;
use crate::runner::draw::Item;
use crate::runner::judge::Judge;
use crate::runner::phase_data::Shared;
use crate::runner::worker::Outcome;
use crate::workload::OpKind;
use kvdyno_measure::Histogram;
use recent::Newer;

/// The stale reads of a phase.
pub(crate) struct StaleReads<'s> {
    /// The phase.
    pub shared: &'s Shared<'s>,
}

impl<'s> Companion<'s> for StaleReads<'s> {
    fn record(self: Box<Self>, outcomes: &[Outcome], record: &mut PhaseRecord) {
        record.staleness = staleness(self.shared, outcomes);
    }
}

/// The stale reads of all threads; none: there can be none, or it is not known which reads are stale.
fn staleness(shared: &Shared<'_>, outcomes: &[Outcome]) -> Option<Staleness> {
    if !shared.knows_staleness() {
        return None;
    }
    let mut whole = Staleness::of_all(outcomes.iter().map(|outcome| outcome.judge.staleness.as_deref()))?;
    let reads = OpKind::ALL.into_iter().filter(|kind| kind.gets());
    let tallies = |kind| outcomes.iter().filter_map(move |outcome| outcome.total[kind as usize].as_ref());
    whole.reads = reads.flat_map(tallies).map(|tally| tally.ops).sum();
    Some(whole)
}

/// Empty counts, ready to record without allocating.
pub(crate) fn counts() -> Box<Staleness> {
    let (versions, age_ns) = (Histogram::new(), Histogram::new());
    Box::new(Staleness { versions, age_ns, ..Staleness::default() })
}

/// Resets the counts of the warm-up.
pub(crate) fn clear(staleness: &mut Staleness) {
    staleness.versions.clear();
    staleness.age_ns.clear();
    (staleness.stale, staleness.missed, staleness.at_least_ns) = (0, 0, None);
}

/// Notes when the writes of a batch were acknowledged; comes before the batch is judged.
#[inline(never)]
pub(crate) fn note(recent: &Recent, items: &[Item], arena: &Arena, done: usize) {
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
#[derive(Debug, PartialEq)]
enum Seen {
    Version(u32),
    /// It is older than all versions that may be seen.
    Unknown,
}

impl Judge {
    /// A get has returned a value whose version is not in its window.
    #[cold]
    pub(crate) fn older_value(
        &mut self,
        shared: &Shared<'_>,
        arena: &Arena,
        item: Item,
        at: usize,
        version: Option<u64>,
    ) {
        if shared.is_doubtful(item.index, version) {
            return;
        }
        let window = self.window(shared, item);
        self.stale_reads += 1;
        let recent = shared.recent.filter(|_| shared.accepts_stale);
        if let Some(recent) = recent
            && let Some(seen) = seen_value(recent, item.index, window, version)
        {
            return self.stale(shared, recent, item, arena.op(at).start, window, seen);
        }
        self.wrong.add(|| {
            let allowed = window.text();
            let seen = Shared::shown(version, arena.delivered(at));
            format!("get of key {}: {seen}, expected {allowed}", item.index)
        });
    }

    /// A get has found nothing, but the key must be there.
    #[cold]
    pub(crate) fn older_absence(&mut self, shared: &Shared<'_>, arena: &Arena, item: Item, at: usize) {
        let window = self.window(shared, item);
        self.stale_reads += 1;
        if shared.accepts_stale {
            // Without the key's version nothing is known of the read.
            let Some(recent) = shared.recent.filter(|_| item.is_known()) else { return };
            if let Some(staleness) = &mut self.staleness {
                staleness.missed += 1;
            }
            let seen = seen_absence(shared, recent, item, window);
            return self.stale(shared, recent, item, arena.op(at).start, window, seen);
        }
        self.wrong.add(|| {
            let allowed = if item.is_known() { window.text() } else { "a value".into() };
            format!("get of key {}: not found, expected {allowed}", item.index)
        });
    }

    /// Counts a stale read that was sent at `start`.
    fn stale(
        &mut self,
        shared: &Shared<'_>,
        recent: &Recent,
        item: Item,
        start: u64,
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

/// The version of a value of a key that a get has returned although a newer state was acknowledged; none: that is a fault.
fn seen_value(recent: &Recent, index: u64, window: Window, version: Option<u64>) -> Option<Seen> {
    let Some(version) = version else {
        // A value too small to contain its version, of a key that was deleted.
        return (window.oldest.version() > 0).then_some(Seen::Unknown);
    };
    let version = u32::try_from(version).ok().filter(|version| *version > 0)?;
    if version < window.oldest.version() {
        return (!recent.is_delete(index, version)).then_some(Seen::Version(version));
    }
    let is_given_up = version > window.newest.version() && recent.is_withdrawn(index, version);
    is_given_up.then_some(Seen::Unknown)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::check::State;

    #[test]
    fn only_a_version_that_was_written_and_had_a_value_is_stale() {
        let recent = Recent::new(4);
        recent.note(1, State::of_version(3).deleted(), 30);
        recent.withdraw(2, 6, 7);
        let window = Window { oldest: State::of_version(5), newest: State::of_version(6) };
        let seen = |index, version| seen_value(&recent, index, window, version);
        assert_eq!(seen(1, Some(4)), Some(Seen::Version(4)));
        assert_eq!(seen(1, Some(3)), None, "it is a delete");
        assert_eq!(seen(1, Some(0)), None, "no value has it");
        assert_eq!(seen(1, Some(7)), None, "nobody has written it yet");
        assert_eq!(seen(2, Some(7)), Some(Seen::Unknown), "it was written, and its number is used again");
        assert_eq!(seen(2, Some(8)), None);
        assert_eq!(seen(1, Some(u64::from(u32::MAX) + 5)), None, "larger than any version");
        assert_eq!(seen(1, None), Some(Seen::Unknown), "the value is too small for its version");
        let never = Window { oldest: State::default(), newest: State::default() };
        assert_eq!(seen_value(&recent, 1, never, None), None, "the key was never there");
    }
}
