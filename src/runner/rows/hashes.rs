//! Checks the rows of a complete hash: each is returned once. An unordered engine may return them in any order.

use super::RowsCheck;
use crate::generator::mix64;
use crate::runner::check::Faults;
use crate::runner::shared::Shared;

impl RowsCheck {
    /// Checks at the end of the scan of a complete hash, without writers, that its rows are the expected ones.
    pub(super) fn end_hash(&self, shared: &Shared<'_>, faults: &mut Faults) {
        let (space, count) = (u64::from(self.space), shared.spaces.count());
        let end = shared
            .population
            .next_insert
            .max(shared.fill_items)
            .min(shared.versions.map_or(u64::MAX, |table| table.len()));
        let is_there = |item: &u64| match shared.versions {
            Some(table) => table.acked(*item).is_some_and(|state| !state.is_absent()),
            None => *item < shared.population.dense,
        };
        let (mut rows, mut sum) = (0u64, 0u64);
        for item in (space..end).step_by(count as usize).filter(is_there) {
            rows += 1;
            sum = sum.wrapping_add(mix64(item));
        }
        if self.fields != rows {
            faults.add(|| format!("scan: {} rows of hash {space} returned, but it has {rows}", self.fields));
        } else if self.sum != sum {
            faults.add(|| {
                format!("scan: {rows} rows of hash {space} returned, some twice and others not at all")
            });
        }
    }
}
