//! A scan of a prefix: that as many rows came as there are keys with the prefix.

use super::RowsCheck;
use crate::runner::check::Faults;
use crate::runner::shared::Shared;

impl RowsCheck {
    /// Rows in order, in bounds, each of a key that is there, and no fewer than there are keys: then they are all.
    pub(super) fn end_prefix(&self, shared: &Shared<'_>, item: u64, faults: &mut Faults) {
        // Counters share the numbers behind the keys, and with them some prefix.
        if shared.counters_from < shared.keys.range() {
            return;
        }
        let Some(places) = shared.keys.prefix_places(item) else { return };
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let is_there = |place: &u64| self.at_place(shared, *place).is_some();
        let (rows, expected) = (self.rows, places.clone().filter(is_there).take(limit).count() as u64);
        if rows != expected {
            return faults.add(|| format!("scan: {rows} rows of a prefix came, {expected} are there"));
        }
        // Where order tells how far the scan has come, none may be missing up to there.
        let last =
            shared.spaces.unmarked(self.space, self.last_key()).and_then(|key| shared.keys.index_of(key));
        if let Some(last) = last.and_then(|index| shared.keys.place_of(index)).filter(|_| self.is_ordered) {
            let seen = if self.reverse { last..places.end } else { places.start..last + 1 };
            let expected = seen.filter(is_there).count() as u64;
            if rows != expected {
                faults.add(|| {
                    format!("scan: {rows} rows of a prefix came, {expected} are there up to the last")
                });
            }
        }
    }
}
