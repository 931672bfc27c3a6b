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
        let wanted = places.filter(|place| self.at_place(shared, *place).is_some()).take(limit).count();
        if self.rows != wanted as u64 {
            let rows = self.rows;
            faults.add(|| format!("scan: {rows} rows of a prefix came, {wanted} are there"));
        }
    }
}
