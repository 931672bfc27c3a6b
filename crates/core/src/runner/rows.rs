//! Checks the rows of a scan: order, bounds, count and contents, over all pieces of the scan.

use super::check::{Window, WrongAnswers};
use super::phase_data::{Population, Shared};
use super::spaces::indexed_value;
use crate::engine::abi::*;
use crate::generator::mix64;

/// A scan being checked.
#[derive(Default)]
pub(super) struct RowsCheck {
    /// The scanned index, from 1; 0: the rows themselves.
    index: u32,
    /// Its keyspace.
    space: u16,
    start: Vec<u8>,
    prefix: Vec<u8>,
    last: Vec<u8>,
    reverse: bool,
    limit: u32,
    /// Rows so far.
    pub rows: u64,
    /// Key and value bytes so far.
    pub bytes: u64,
    /// The position in key order of the next expected row, if the answer is known exactly.
    cursor: Option<u64>,
    /// The distance between positions that may belong to this keyspace.
    step: u64,
    /// Upper bound of the positions that may have a key.
    end: u64,
    /// The items at the next positions.
    ahead: Ahead,
    /// The first items of the next scan, which is drawn for the item that is first among them.
    prepared: Option<(u64, Ahead)>,
    /// Whether the row before, if any, was at the position before the cursor. (A counter is at no position.)
    is_in_step: bool,
    is_exact: bool,
    /// Whether all rows are known, but not their order: a scan that ends before its limit has them all.
    is_counted_at_end: bool,
    /// The item that a prefix scan was drawn for, if all rows of the prefix are known.
    prefixed: Option<u64>,
    /// Whether rows are returned in the order of their keys.
    is_ordered: bool,
    /// Whether a row was not in order.
    has_strayed: bool,
    /// Whether it is a scan of a complete hash whose rows are known: they are counted, and `sum` identifies them.
    is_counted: bool,
    /// Whether `sum` is needed.
    is_summed: bool,
    /// The number of rows without counters, and the sum of the mixed numbers of their items.
    fields: u64,
    sum: u64,
    /// Whether it goes from one end of the keyspace to the other.
    is_whole: bool,
    /// Whether a key may be written while the scan runs.
    is_raced: bool,
    /// The keys now.
    population: Population,
    /// Whether another program wrote the rows, so that only the row at which a scan begins is known.
    is_foreign: bool,
    /// That row, or the first row of a scan by an index, if it certainly exists, and whether it was returned.
    own: Vec<u8>,
    has_own: bool,
    /// A value, to compare with.
    value: Vec<u8>,
}

/// Items at consecutive positions in key order, looked up together: finding one and loading its version takes long, but
/// none of them waits for another.
#[derive(Default)]
struct Ahead {
    /// The first position; the others follow in the direction of the scan.
    first: u64,
    /// The number of positions looked up.
    count: usize,
    /// `u64::MAX`: there is no item at this position.
    items: [u64; Ahead::ITEMS],
}

impl Ahead {
    const ITEMS: usize = 16;
}

/// The row that must be returned next.
#[derive(Clone, Copy)]
struct Next {
    /// Its position in key order.
    place: u64,
    /// Its item.
    index: u64,
}

/// Splits `{u32 key length, u32 value length, key, value}` off the front.
pub(super) fn split_row(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let key = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let value = u32::from_ne_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
    let end = 8usize.checked_add(key)?.checked_add(value)?;
    Some((bytes.get(8..8 + key)?, bytes.get(8 + key..end)?, &bytes[end..]))
}

/// Key bytes for messages.
fn shown(key: &[u8]) -> String {
    let text: String = key.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
    if key.len() > 24 { format!("{text}...") } else { text }
}

impl RowsCheck {
    /// Begins the check of a scan that was drawn for `item`, requested by `op`: from `key` (empty: from the end of the
    /// keyspace) to `bound`.
    pub(super) fn begin(&mut self, shared: &Shared<'_>, item: u64, op: &kv_op, key: &[u8], bound: &[u8]) {
        let scan = shared.phase.scan;
        let is_hash = shared.spaces.are_hashes();
        self.is_whole = (scan.rows == 0 || is_hash) && !scan.prefix;
        self.is_ordered = shared.capabilities & KV_ORDERED != 0;
        self.start.clear();
        self.prefix.clear();
        self.last.clear();
        self.own.clear();
        (self.reverse, self.limit) = (op.flags & KV_REVERSE != 0, op.user as u32);
        (self.rows, self.bytes, self.has_own, self.has_strayed) = (0, 0, false, false);
        (self.fields, self.sum, self.ahead.count, self.is_in_step) = (0, 0, 0, true);
        self.start.extend_from_slice(key);
        if op.flags & KV_PREFIX != 0 {
            self.prefix.extend_from_slice(bound);
        }
        (self.index, self.prefixed, self.is_counted_at_end) = (scan.index, None, false);
        if scan.index > 0 {
            return self.begin_indexed(shared, item);
        }
        self.space = shared.spaces.of(item);
        self.is_raced = shared.writes && !shared.is_alone();
        self.population = if shared.writes { shared.population_now() } else { shared.population };
        self.is_foreign = shared.values.are_foreign();
        if self.is_foreign && !self.is_whole {
            self.own.extend_from_slice(key);
        }
        let is_known = !self.is_foreign
            && !shared.evicts()
            && !shared.accepts_stale
            && !self.is_raced
            && match shared.versions {
                Some(table) => self.population.next_insert <= table.len(),
                None => !shared.writes && self.population.is_without_holes(),
            };
        let from = match self.prepared.take() {
            Some((prepared, ahead)) if prepared == item => {
                self.ahead = ahead;
                Some(self.ahead.first)
            }
            _ => shared.keys.place_of(item),
        };
        self.is_counted = is_hash && is_known;
        self.is_exact = is_known && from.is_some() && !scan.prefix && self.is_ordered;
        self.is_counted_at_end = is_known && from.is_none() && !scan.prefix && !is_hash && self.is_ordered;
        self.prefixed = (scan.prefix && !is_hash && is_known).then_some(item);
        self.is_summed = self.is_counted || self.is_counted_at_end || self.prefixed.is_some();
        let is_ordered = shared.keys.is_ordered();
        // If positions are items, the distance between those of a keyspace is the number of keyspaces.
        self.step = if is_ordered { shared.spaces.count() } else { 1 };
        let first = if is_ordered { u64::from(self.space) } else { 0 };
        self.end = shared.keys.places(self.population.next_insert.max(shared.fill_items));
        self.cursor = match (self.is_whole, self.reverse) {
            (false, _) => from,
            (true, false) => Some(first),
            (true, true) => self.end.checked_sub(1 + first).map(|last| first + last / self.step * self.step),
        };
    }

    /// Looks up the first items of the scan whose check begins next, which was drawn for `item`, so that their versions are loaded
    /// by then.
    pub(super) fn prepare(&mut self, shared: &Shared<'_>, item: u64, rows: u32) {
        let is_short = (1..=Ahead::ITEMS as u32).contains(&rows);
        let (Some(versions), true) = (shared.versions, is_short && shared.phase.scan.index == 0) else {
            return;
        };
        let Some(first) = shared.keys.place_of(item) else { return };
        let mut ahead = Ahead { first, count: rows as usize, ..Ahead::default() };
        let items = &mut ahead.items[..ahead.count];
        shared.keys.at_places(first, shared.phase.scan.reverse, items);
        items.iter().for_each(|item| versions.prefetch(*item));
        self.prepared = Some((item, ahead));
    }

    /// The item whose key is at this position, exists, and is in the keyspace of the scan.
    fn at_place(&self, shared: &Shared<'_>, place: u64) -> Option<u64> {
        shared.keys.at_place(place).filter(|index| self.is_there(shared, *index))
    }

    /// Whether an item's key exists and is in the keyspace of the scan.
    #[inline]
    fn is_there(&self, shared: &Shared<'_>, index: u64) -> bool {
        let there = match shared.versions {
            Some(table) => table.acked(index).is_some_and(|state| !state.is_absent()),
            None => index < self.population.dense,
        };
        there && shared.spaces.of(index) == self.space
    }

    /// The same as [`RowsCheck::at_place`], for positions that are asked for in order.
    #[inline]
    fn at_next_place(&mut self, shared: &Shared<'_>, place: u64) -> Option<u64> {
        let first = self.ahead.first;
        let mut at = if self.reverse { first.wrapping_sub(place) } else { place.wrapping_sub(first) };
        if at >= self.ahead.count as u64 {
            self.look_ahead(shared, place);
            at = 0;
        }
        let index = self.ahead.items[at as usize];
        (index != u64::MAX && self.is_there(shared, index)).then_some(index)
    }

    fn look_ahead(&mut self, shared: &Shared<'_>, place: u64) {
        // Positions of other keyspaces lie between those of a larger step.
        let most = if self.step == 1 { (self.left() as usize).clamp(1, Ahead::ITEMS) } else { 1 };
        (self.ahead.first, self.ahead.count) = (place, most);
        let items = &mut self.ahead.items[..most];
        shared.keys.at_places(place, self.reverse, items);
        if let Some(versions) = shared.versions {
            items.iter().for_each(|item| versions.prefetch(*item));
        }
    }

    /// The next row that must be returned; none: the keyspace ends.
    #[inline]
    fn expected(&mut self, shared: &Shared<'_>) -> Option<Next> {
        let mut place = self.cursor?;
        while self.reverse || place < self.end {
            if let Some(index) = self.at_next_place(shared, place) {
                return Some(Next { place, index });
            }
            place = if self.reverse { place.checked_sub(self.step)? } else { place + self.step };
        }
        None
    }

    /// The number of rows that are still requested.
    pub(super) fn left(&self) -> u32 {
        match self.limit {
            u32::MAX => u32::MAX,
            limit => u64::from(limit).saturating_sub(self.rows) as u32,
        }
    }

    /// The last key returned.
    pub(super) fn last_key(&self) -> &[u8] {
        &self.last
    }

    /// Whether more rows were returned than can exist, or a row was returned twice: such a scan would be resumed without end.
    pub(super) fn is_endless(&self, shared: &Shared<'_>, wrong: &mut WrongAnswers) -> bool {
        // Each item has a row, and one in each index; there are at most as many counters as items of a fill.
        let items = shared.counters_from.max(shared.insert_end).saturating_add(shared.fill_items);
        let most = items.saturating_mul(1 + shared.spaces.indexes().len() as u64);
        if self.rows > most {
            wrong.add(|| format!("scan: {} rows returned, but there are keys for at most {most}", self.rows));
        }
        self.has_strayed || self.rows > most
    }

    /// Checks one piece: `count` rows in `bytes`.
    pub(super) fn piece(
        &mut self,
        shared: &Shared<'_>,
        mut bytes: &[u8],
        count: u32,
        wrong: &mut WrongAnswers,
    ) {
        let mut before = std::mem::take(&mut self.last);
        let mut last = None;
        let mut is_whole = true;
        for _ in 0..count {
            let Some((key, value, rest)) = split_row(bytes) else {
                wrong.add(|| "scan: the rows are malformed: a length points beyond the buffer".into());
                is_whole = false;
                break;
            };
            bytes = rest;
            let plain = shared.spaces.unmarked(self.space, key);
            let expected = if self.is_exact && plain.is_some() { self.expected(shared) } else { None };
            // The key at the expected position needs no search for its item, and is in order and in bounds after the position
            // before.
            let is_expected = expected
                .is_some_and(|next| plain.is_some_and(|key| shared.keys.is_at_place(key, next.place)));
            let was_in_step = std::mem::replace(&mut self.is_in_step, false);
            if let (true, true, Some(Next { place, index }), Some(plain)) =
                (is_expected, was_in_step, expected, plain)
                && index < shared.counters_from
            {
                self.rows += 1;
                self.bytes += (plain.len() + value.len()) as u64;
                self.row(shared, index, value, wrong);
                self.pass(place);
                last = Some(key);
                continue;
            }
            if !(is_expected && was_in_step) {
                self.place(key, last.unwrap_or(&before), wrong);
            }
            self.rows += 1;
            match plain {
                None => wrong.add(|| format!("scan: key {} belongs to another keyspace", shown(key))),
                Some(plain) => {
                    self.bytes += (plain.len() + value.len()) as u64;
                    match self.index {
                        0 => self.content(shared, plain, value, expected, is_expected, wrong),
                        _ => self.indexed_content(shared, key, plain, value, wrong),
                    }
                }
            }
            last = Some(key);
        }
        if let Some(last) = last {
            before.clear();
            before.extend_from_slice(last);
        }
        self.last = before;
        if is_whole && !bytes.is_empty() {
            let left = bytes.len();
            wrong.add(|| format!("scan: {left} bytes after the last of {count} rows"));
        }
    }

    /// Order, after the key `last`, and bounds.
    fn place(&mut self, key: &[u8], last: &[u8], wrong: &mut WrongAnswers) {
        if !last.is_empty() && self.is_ordered {
            let is_ordered = if self.reverse { key < last } else { key > last };
            if !is_ordered {
                self.has_strayed = true;
                let (what, last) = (if key == last { "twice" } else { "out of order" }, shown(last));
                wrong.add(|| format!("scan: key {} returned {what}, after {last}", shown(key)));
            }
        }
        let is_inside = !self.is_ordered
            || self.start.is_empty()
            || if self.reverse { key <= &self.start[..] } else { key >= &self.start[..] };
        if !is_inside {
            wrong.add(|| format!("scan: key {} is before the start {}", shown(key), shown(&self.start)));
        }
        if !key.starts_with(&self.prefix) {
            wrong.add(|| format!("scan: key {} lacks the prefix {}", shown(key), shown(&self.prefix)));
        }
    }

    /// Checks a row; `expected` is the row that must be here, and `is_expected` whether `key` is its key.
    fn content(
        &mut self,
        shared: &Shared<'_>,
        key: &[u8],
        value: &[u8],
        expected: Option<Next>,
        is_expected: bool,
        wrong: &mut WrongAnswers,
    ) {
        if self.is_foreign {
            self.has_own |= key == self.own;
            return;
        }
        let found = match expected {
            Some(next) if is_expected => Some(next.index),
            _ => index_of_row(shared, key, value),
        };
        let Some(index) = found else {
            wrong.add(|| format!("scan: key {} was never written", shown(key)));
            return;
        };
        let (space, wanted) = (shared.spaces.of(index), self.space);
        if space != wanted {
            wrong.add(|| format!("scan: key {index} of keyspace {space} returned from keyspace {wanted}"));
        }
        if index >= shared.counters_from {
            return self.counter(shared, index, expected, wrong);
        }
        self.row(shared, index, value, wrong);
        if !self.is_exact {
            return;
        }
        let wanted = expected.map(|next| next.index);
        if wanted != Some(index) {
            let wanted = wanted.map_or("the end".into(), |index| format!("key {index}"));
            wrong.add(|| format!("scan: key {index} returned, but {wanted} was expected"));
        }
        let place = match expected {
            Some(next) if is_expected => Some(next.place),
            _ => shared.keys.place_of(index),
        };
        match place {
            Some(place) => self.pass(place),
            None => (self.cursor, self.is_in_step) = (None, true),
        }
    }

    /// Counts the row of an item that is no counter, and checks its value.
    #[inline(always)]
    fn row(&mut self, shared: &Shared<'_>, index: u64, value: &[u8], wrong: &mut WrongAnswers) {
        self.fields += 1;
        if self.is_summed {
            self.sum = self.sum.wrapping_add(mix64(index));
        }
        match shared.values.check(index, value) {
            Err(fault) => wrong.add(|| format!("scan: key {index}: {fault}")),
            Ok(version) => self.version(shared, index, version, value, wrong),
        }
    }

    /// The row at this position was returned.
    #[inline(always)]
    fn pass(&mut self, place: u64) {
        self.cursor = if self.reverse { place.checked_sub(self.step) } else { Some(place + self.step) };
        self.is_in_step = true;
    }

    /// A counter is no row that is expected, and it must not take the place of one: all rows before it were returned.
    fn counter(&self, shared: &Shared<'_>, index: u64, expected: Option<Next>, wrong: &mut WrongAnswers) {
        let Some((next, at)) = expected.zip(shared.keys.place_of(index)) else { return };
        if if self.reverse { next.place > at } else { next.place < at } {
            let missing = next.index;
            wrong.add(|| format!("scan: counter {index} returned, but key {missing} was expected before it"));
        }
    }

    /// Checks the version of a row; `version` is none for values too small to contain it.
    #[inline(always)]
    fn version(
        &self,
        shared: &Shared<'_>,
        index: u64,
        version: Option<u64>,
        value: &[u8],
        wrong: &mut WrongAnswers,
    ) {
        let Some(newest) = shared.versions.and_then(|table| table.started(index)) else { return };
        let last = u64::from(newest.version());
        let is_right = if self.is_raced || shared.accepts_stale {
            version.is_none_or(|version| version <= last)
        } else {
            shared.allows(index, Window { oldest: newest, newest }, version, value)
        };
        if !is_right && !shared.is_doubtful(index, version) {
            let seen = Shared::shown(version, value);
            wrong.add(|| format!("scan: key {index}: {seen}, but the last written was {last}"));
        }
    }

    /// Checks at the end of the scan whether rows are missing.
    pub(super) fn end(&mut self, shared: &Shared<'_>, wrong: &mut WrongAnswers) {
        if self.rows > u64::from(self.limit) {
            wrong.add(|| format!("scan: {} rows returned, but {} were requested", self.rows, self.limit));
        }
        if self.index > 0 {
            return self.end_indexed(shared, wrong);
        }
        if self.is_foreign && !self.own.is_empty() && !self.has_own {
            let own = shown(&self.own);
            wrong.add(|| format!("scan: key {own}, at which it begins, was not returned"));
        }
        if self.is_counted {
            self.end_hash(shared, wrong);
        }
        if let Some(item) = self.prefixed {
            self.end_prefix(shared, item, wrong);
        }
        if self.is_counted_at_end && self.rows < u64::from(self.limit) {
            self.end_unplaced(shared, wrong);
        }
        if self.is_exact
            && self.rows < u64::from(self.limit)
            && let Some(Next { index, .. }) = self.expected(shared)
        {
            wrong.add(|| format!("scan: ended after {} rows, key {index} is missing", self.rows));
        }
    }

    /// The scan of a whole hash ended, and nothing wrote meanwhile: are its rows those that must be there?
    fn end_hash(&self, shared: &Shared<'_>, wrong: &mut WrongAnswers) {
        let (space, count) = (u64::from(self.space), shared.spaces.count());
        let end = self
            .population
            .next_insert
            .max(shared.fill_items)
            .min(shared.versions.map_or(u64::MAX, |table| table.len()));
        let is_there = |item: &u64| match shared.versions {
            Some(table) => table.acked(*item).is_some_and(|state| !state.is_absent()),
            None => *item < self.population.dense,
        };
        let (mut rows, mut sum) = (0u64, 0u64);
        for item in (space..end).step_by(count as usize).filter(is_there) {
            rows += 1;
            sum = sum.wrapping_add(mix64(item));
        }
        if self.fields != rows {
            wrong.add(|| format!("scan: {} rows came of hash {space}, it has {rows}", self.fields));
        } else if self.sum != sum {
            wrong.add(|| format!("scan: {rows} rows came of hash {space}, some twice and others not at all"));
        }
    }

    /// The scan ended before its limit: did it return all rows from its start on?
    fn end_unplaced(&self, shared: &Shared<'_>, wrong: &mut WrongAnswers) {
        let mut key = vec![0; shared.keys.max_len() + shared.spaces.extra_len()];
        let end = self.population.next_insert.max(shared.fill_items);
        let (mut rows, mut sum) = (0_u64, 0_u64);
        for item in (0..end).filter(|item| self.is_there(shared, *item)) {
            let is_inside = self.start.is_empty() || {
                let length = shared.spaces.write_key(shared.keys, item, &mut key).length;
                let key = &key[..length];
                if self.reverse { *key <= self.start[..] } else { *key >= self.start[..] }
            };
            if is_inside {
                rows += 1;
                sum = sum.wrapping_add(mix64(item));
            }
        }
        if (self.fields, self.sum) != (rows, sum) {
            let returned = self.fields;
            wrong
                .add(|| format!("scan: ended after {returned} rows, but {rows} are there from its start on"));
        }
    }

    /// A scan by an index, from the row of `item`.
    fn begin_indexed(&mut self, shared: &Shared<'_>, item: u64) {
        self.space = shared.spaces.index_space(item, self.index);
        self.is_exact = false;
        // Items are drawn from those that were there before the scan was sent, and nothing takes rows away. Of the new ones
        // a thread draws its own.
        let Population { dense, whole, next_insert } = shared.population;
        if whole && !shared.accepts_stale && dense > 0 && !(dense..next_insert).contains(&item) {
            self.own.resize(shared.keys.max_len() + shared.spaces.extra_len(), 0);
            let value = indexed_value(shared.values, item, &mut self.value);
            let row = shared.spaces.write_index_key(shared.keys, item, value, self.index, &mut self.own);
            self.own.truncate(row.key.length);
        }
    }

    /// A row: `key` as it came, `plain` without the mark of its keyspace.
    fn indexed_content(
        &mut self,
        shared: &Shared<'_>,
        key: &[u8],
        plain: &[u8],
        value: &[u8],
        wrong: &mut WrongAnswers,
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
            wrong.add(|| format!("index {number}: row {} is of a key never written", shown(plain)));
            return;
        };
        let right = indexed_value(shared.values, item, &mut self.value);
        if bytes != &right[index.from as usize..][..index.length as usize] {
            wrong.add(|| format!("index {number}: key {item} stands under bytes that its value has not"));
        }
        let (space, expected) = (shared.spaces.index_space(item, number), self.space);
        if space != expected {
            wrong.add(|| format!("index {number}: key {item} came from keyspace {expected}, not {space}"));
        }
        if value != shared.spaces.index_value(number, right) {
            let what =
                if index.clustering { "other bytes than the row" } else { "a value, and may have none" };
            wrong.add(|| format!("index {number}: the index row of key {item} has {what}"));
        }
    }

    /// The scan ended; did the row come that it began at, and over all of an index, one for each row?
    fn end_indexed(&self, shared: &Shared<'_>, wrong: &mut WrongAnswers) {
        let number = self.index;
        let has_ended = self.rows < u64::from(self.limit);
        let has_passed = if self.reverse { self.last < self.own } else { self.last > self.own };
        if !self.own.is_empty() && !self.has_own && (has_ended || has_passed) {
            let own = shown(&self.own);
            wrong.add(|| format!("index {number}: the index row {own} is missing"));
        }
        if !self.is_whole || shared.writes || shared.accepts_stale {
            return;
        }
        let of_rows = (self.space - shared.spaces.count() as u16) / shared.spaces.indexes().len() as u16;
        if let Some(rows) = shared.rows_in(of_rows).filter(|rows| *rows != self.rows) {
            wrong.add(|| format!("index {number}: it has {} rows, {rows} were written", self.rows));
        }
    }

    /// Rows in order, in bounds, each of a key that is there, and no fewer than there are keys: then they are all.
    fn end_prefix(&self, shared: &Shared<'_>, item: u64, wrong: &mut WrongAnswers) {
        let Some(places) = shared.keys.prefix_places(item) else { return };
        let limit = u64::from(self.limit);
        let is_there = |place: &u64| self.at_place(shared, *place).is_some();
        let there = places.clone().filter_map(|place| self.at_place(shared, place));
        let (count, sum) = there
            .take(usize::try_from(limit + 1).unwrap_or(usize::MAX))
            .fold((0, 0_u64), |(count, sum), item| (count + 1, sum.wrapping_add(mix64(item))));
        // Counters may have the prefix too, and count toward the limit.
        let (rows, has_ended) = (self.fields, self.rows < limit);
        if rows > count || (has_ended && rows < count) {
            let expected = limit.min(count);
            return wrong.add(|| format!("scan: {rows} rows of a prefix came, {expected} are there"));
        }
        // Without an order, a row may have come twice in the place of another.
        if rows == count && self.sum != sum {
            return wrong
                .add(|| format!("scan: {rows} rows of a prefix came, some twice and others not at all"));
        }
        // Where order tells how far the scan has come, none may be missing up to there.
        let last =
            shared.spaces.unmarked(self.space, self.last_key()).and_then(|key| shared.keys.index_of(key));
        if let Some(last) = last.and_then(|index| shared.keys.place_of(index)).filter(|_| self.is_ordered) {
            let seen = if self.reverse { last..places.end } else { places.start..last + 1 };
            let expected = seen.filter(is_there).count() as u64;
            if rows != expected {
                wrong.add(|| {
                    format!("scan: {rows} rows of a prefix came, {expected} are there up to the last")
                });
            }
        }
    }
}

/// The item of a row: by its key if keys can be decoded, otherwise by the value's header.
fn index_of_row(shared: &Shared<'_>, key: &[u8], value: &[u8]) -> Option<u64> {
    if let Some(index) = shared.keys.index_of(key) {
        return Some(index);
    }
    let (index, _) = shared.values.read_header(value).filter(|(index, _)| *index < shared.keys.range())?;
    let mut expected = vec![0; shared.keys.max_len()];
    let length = shared.keys.write(index, &mut expected);
    (expected[..length] == *key).then_some(index)
}
