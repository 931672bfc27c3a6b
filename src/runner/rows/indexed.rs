//! The rows of an index: that each is the one that its row must have, and, over a whole index, that each row has one.

use super::{RowsCheck, shown};
use crate::runner::check::Faults;
use crate::runner::shared::{Population, Shared};
use crate::runner::spaces::indexed_value;

impl RowsCheck {
    /// A scan by an index, from the row of `item`.
    pub(super) fn begin_indexed(&mut self, shared: &Shared<'_>, item: u64) {
        self.space = shared.spaces.index_space(item, self.index);
        self.is_exact = false;
        // Items are drawn from those that were there before the scan was sent, and nothing takes rows away. Of the new ones
        // a thread draws its own.
        let Population { dense, whole, next_insert } = shared.population;
        if whole && dense > 0 && !(dense..next_insert).contains(&item) {
            self.own.resize(shared.keys.max_len() + shared.spaces.extra_len(), 0);
            let value = indexed_value(shared.values, item, &mut self.value);
            let (_, length, _) =
                shared.spaces.write_index_key(shared.keys, (item, value), self.index, &mut self.own);
            self.own.truncate(length);
        }
    }

    /// A row: `key` as it came, `plain` without the mark of its keyspace.
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
            faults.add(|| format!("index {number}: row {} is of a key never written", shown(plain)));
            return;
        };
        let right = indexed_value(shared.values, item, &mut self.value);
        if bytes != &right[index.from as usize..][..index.length as usize] {
            faults.add(|| format!("index {number}: key {item} stands under bytes that its value has not"));
        }
        let (space, expected) = (shared.spaces.index_space(item, number), self.space);
        if space != expected {
            faults.add(|| format!("index {number}: key {item} came from keyspace {expected}, not {space}"));
        }
        if value != shared.spaces.index_value(number, right) {
            let what =
                if index.clustering { "other bytes than the row" } else { "a value, and may have none" };
            faults.add(|| format!("index {number}: the index row of key {item} has {what}"));
        }
    }

    /// The scan ended; did the row come that it began at, and over all of an index, one for each row?
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
            faults.add(|| format!("index {number}: it has {} rows, {rows} were written", self.rows));
        }
    }
}
