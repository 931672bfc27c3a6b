//! Checks the rows of an index: each matches its row, and, over a complete index, each row has one.

use super::{RowsCheck, shown};
use crate::runner::check::Faults;
use crate::runner::shared::{Population, Shared};
use crate::runner::spaces::indexed_value;

impl RowsCheck {
    /// Begins the check of a scan by an index, from the row of `item`.
    pub(super) fn begin_indexed(&mut self, shared: &Shared<'_>, item: u64) {
        self.space = shared.spaces.index_space(item, self.index);
        self.is_exact = false;
        // Items are drawn from those that existed before the scan was sent, and no rows are removed. Among new items, a
        // thread draws only its own.
        let Population { dense, whole, next_insert } = shared.population;
        if whole && dense > 0 && !(dense..next_insert).contains(&item) {
            self.own.resize(shared.keys.max_len() + shared.spaces.extra_len(), 0);
            let value = indexed_value(shared.values, item, &mut self.value);
            let (_, length, _) =
                shared.spaces.write_index_key(shared.keys, (item, value), self.index, &mut self.own);
            self.own.truncate(length);
        }
    }

    /// Checks a row: `key` as returned, `plain` without the mark of its keyspace.
    pub(super) fn indexed_content(
        &mut self,
        shared: &Shared<'_>,
        key: &[u8],
        plain: &[u8],
        value: &[u8],
        faults: &mut Faults,
    ) {
        let number = self.index;
        self.has_own |= key == self.own;
        let index = shared.spaces.indexes()[number as usize - 1];
        let split = plain.split_at_checked(index.length as usize);
        let found = split.and_then(|(bytes, primary)| Some((bytes, shared.keys.index_of(primary)?))).filter(
            |(_, item)| {
                let was_sent = shared.versions.and_then(|table| table.started(*item));
                was_sent.is_none_or(|state| !state.is_absent())
            },
        );
        let Some((bytes, item)) = found else {
            faults.add(|| {
                format!("index {number}: row {} belongs to a key that was never written", shown(plain))
            });
            return;
        };
        let right = indexed_value(shared.values, item, &mut self.value);
        if bytes != &right[index.from as usize..][..index.length as usize] {
            faults.add(|| {
                format!("index {number}: key {item} is entered under bytes that its value does not have")
            });
        }
        let (space, wanted) = (shared.spaces.index_space(item, number), self.space);
        if space != wanted {
            faults.add(|| format!("index {number}: key {item} returned from keyspace {wanted}, not {space}"));
        }
        if value != shared.spaces.index_value(number, right) {
            let what =
                if index.clustering { "other bytes than the row" } else { "a value, but must have none" };
            faults.add(|| format!("index {number}: the index row of key {item} has {what}"));
        }
    }

    /// Checks at the end of the scan that its first row was returned, and, for a complete index, one row for each row.
    pub(super) fn end_indexed(&self, shared: &Shared<'_>, faults: &mut Faults) {
        let number = self.index;
        let has_ended = self.rows < u64::from(self.limit);
        let has_passed = if self.reverse { self.last < self.own } else { self.last > self.own };
        if !self.own.is_empty() && !self.has_own && (has_ended || has_passed) {
            let own = shown(&self.own);
            faults.add(|| format!("index {number}: the index row {own} is missing"));
        }
        if !self.is_whole || shared.writes {
            return;
        }
        let of_rows = (self.space - shared.spaces.count() as u16) / shared.spaces.indexes().len() as u16;
        if let Some(rows) = shared.rows_in(of_rows).filter(|rows| *rows != self.rows) {
            faults.add(|| format!("index {number}: it has {} rows, but {rows} were written", self.rows));
        }
    }
}
