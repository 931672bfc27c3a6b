//! Checks a prefix scan: it returns as many rows as there are keys with the prefix.

use super::RowsCheck;
use crate::runner::check::Faults;
use crate::runner::shared::Shared;

impl RowsCheck {
    /// Checks the number of rows. They are in order, within bounds, and belong to existing keys, so if there are enough of
    /// them, none is missing.
    pub(super) fn end_prefix(&self, shared: &Shared<'_>, item: u64, faults: &mut Faults) {
        // Counters have the numbers after the keys, so some share a prefix with keys.
        if shared.counters_from < shared.keys.range() {
            return;
        }
        let Some(places) = shared.keys.prefix_places(item) else { return };
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let is_there = |place: &u64| self.at_place(shared, *place).is_some();
        let (rows, wanted) = (self.rows, places.clone().filter(is_there).take(limit).count() as u64);
        if rows != wanted {
            return faults.add(|| format!("scan: {rows} rows of a prefix returned, but it has {wanted}"));
        }
        // In an ordered scan, no row may be missing up to the last one.
        let last =
            shared.spaces.unmarked(self.space, self.last_key()).and_then(|key| shared.keys.index_of(key));
        if let Some(last) = last.and_then(|index| shared.keys.place_of(index)).filter(|_| self.is_ordered) {
            let seen = if self.reverse { last..places.end } else { places.start..last + 1 };
            let wanted = seen.filter(is_there).count() as u64;
            if rows != wanted {
                faults.add(|| {
                    format!("scan: {rows} rows of a prefix returned, but it has {wanted} up to the last")
                });
            }
        }
    }
}
