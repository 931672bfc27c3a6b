//! Many keys at once: SCAN, KEYS, RANGE, DBSIZE, and the commands that empty a database. All need an engine that
//! returns its rows in order, or all rows with a prefix, which are then sorted here.

use super::access::{SYNTAX, elements, fits};
use super::numbers::{cursor, integer};
use crate::command::{Call, FOREIGN, Refusal};
use crate::error::StoreError;
use crate::glob;
use crate::record::{DATABASES, Row, Type, behind, element_row, key_row};
use crate::reply::Reply;
use crate::store::Stretch;
use kvdyno_core::engine::abi::KV_CAN_DELETE;

/// An existing key of the client's database.
struct Found<'a> {
    key: &'a [u8],
    row: Row<'a>,
}

/// Passes the keys from row `from` on (`None`: all) to `take`, until it returns that it needs no more.
fn each(
    call: &mut Call,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    rows: u32,
    take: &mut dyn FnMut(&Found) -> bool,
) -> Result<(), Refusal> {
    let all = key_row(call.client.database, b"");
    let to = to.unwrap_or_else(|| behind(&all));
    let stretch = Stretch { from: from.unwrap_or(all), to, reverse: false, rows };
    let (mut is_foreign, now_ms) = (false, call.now_ms);
    call.store.rows(&stretch, &mut |row, value| match Row::parse(value) {
        Some(parsed) if parsed.is_over(now_ms) => true,
        Some(parsed) => take(&Found { key: &row[1..], row: parsed }),
        None => {
            is_foreign = true;
            false
        }
    })?;
    if is_foreign { Err(FOREIGN) } else { Ok(()) }
}

/// Bytes at which a page of a scan ends before COUNT.
const SCANNED_BYTES: usize = 1 << 20;

/// A page of a scan: its options, and what has been seen so far. The cursor of the next page refers to the first row
/// that was not seen, so that writes in between move nothing: what exists from the first page to the last is returned
/// once.
struct Page<'c> {
    pattern: Option<&'c [u8]>,
    count: u64,
    kind: Option<&'c [u8]>,
    looked_at: u64,
    next: Option<Vec<u8>>,
    /// Words of the reply.
    words: usize,
    start: usize,
}

impl<'c> Page<'c> {
    /// The options from argument `from` on: MATCH pattern, COUNT n, and TYPE type if `has_type`.
    fn new(call: &mut Call<'c, '_>, from: usize, has_type: bool) -> Result<Page<'c>, Refusal> {
        let start = call.reply().bytes.len();
        let mut page =
            Page { pattern: None, count: 10, kind: None, looked_at: 0, next: None, words: 0, start };
        let mut words = call.arguments.from(from).iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(SYNTAX)?;
            match word.to_ascii_uppercase().as_slice() {
                b"MATCH" => page.pattern = Some(value),
                b"COUNT" => {
                    let count = u64::try_from(integer(value)?).ok().filter(|count| *count > 0);
                    page.count = count.ok_or(SYNTAX)?;
                }
                b"TYPE" if has_type => page.kind = Some(value),
                _ => return Err(SYNTAX.into()),
            }
        }
        Ok(page)
    }

    /// The number of rows to request.
    fn rows(&self) -> u32 {
        self.count.min(10_000) as u32 + 1
    }

    /// Whether there is room for the row; if not, the next page begins with it.
    fn has_room(&mut self, row: &[u8], reply: &Reply) -> bool {
        let has_room = self.looked_at < self.count && reply.bytes.len() - self.start < SCANNED_BYTES;
        if has_room {
            self.looked_at += 1;
        } else {
            self.next = Some(row.to_vec());
        }
        has_room
    }

    fn is_match(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name))
    }

    /// Completes the reply.
    fn end(self, call: &mut Call) {
        let next = self.next.map_or(0, |row| call.server.cursor_at(row));
        call.reply().insert(self.start, |reply| {
            reply.array(2);
            reply.bulk(next.to_string().as_bytes());
            reply.array(self.words);
        });
    }
}

/// The row at which the scan of a cursor continues, `first` for cursor 0. Only the last cursors are remembered.
fn place_of(call: &Call, cursor: u64, first: &[u8]) -> Result<Vec<u8>, Refusal> {
    let place = if cursor == 0 { Some(first.to_vec()) } else { call.server.place_of(cursor) };
    let place = place.filter(|row| row.starts_with(first));
    place.ok_or_else(|| "ERR unknown cursor: start again with 0".into())
}

/// SCAN cursor [MATCH pattern] [COUNT n] [TYPE type].
pub(super) fn scan(call: &mut Call) -> Result<(), Refusal> {
    let cursor = cursor(call.arguments.get(1))?;
    let mut page = Page::new(call, 2, true)?;
    let first = key_row(call.client.database, b"");
    let from = place_of(call, cursor, &first)?;
    let stretch = Stretch { from, to: behind(&first), reverse: false, rows: page.rows() };
    let (mut is_foreign, now_ms) = (false, call.now_ms);
    let reply = &mut call.answers.reply;
    call.store.rows(&stretch, &mut |row, value| {
        let Some(parsed) = Row::parse(value) else {
            is_foreign = true;
            return false;
        };
        if parsed.is_over(now_ms) {
            return true;
        }
        if !page.has_room(row, reply) {
            return false;
        }
        let is_kind = page.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(parsed.kind.name().as_bytes()));
        if is_kind && page.is_match(&row[1..]) {
            reply.bulk(&row[1..]);
            page.words += 1;
        }
        true
    })?;
    if is_foreign {
        return Err(FOREIGN);
    }
    page.end(call);
    Ok(())
}

/// Appends an element, its name and its value, and returns the number of words.
type WriteElement = fn(&mut Reply, &[u8], &[u8]) -> Result<usize, Refusal>;

impl Call<'_, '_> {
    /// HSCAN, SSCAN and ZSCAN key cursor [MATCH pattern] [COUNT n]: of the elements whose rows begin with `part`.
    pub(crate) fn scan_elements(
        &mut self,
        kind: Type,
        part: &[u8],
        write: WriteElement,
    ) -> Result<(), Refusal> {
        let cursor = cursor(self.arguments.get(2))?;
        let row = self.row(self.arguments.get(1));
        let Some(found) = self.collection(&row, kind)? else {
            let reply = self.reply();
            reply.array(2);
            reply.bulk(b"0");
            reply.array(0);
            return Ok(());
        };
        let mut page = Page::new(self, 3, false)?;
        let mut stretch = elements(self.client.database, found.head.number, part, page.rows());
        let head = stretch.from.len();
        stretch.from = place_of(self, cursor, &stretch.from)?;
        let reply = &mut self.answers.reply;
        let mut failure = None;
        self.store.rows(&stretch, &mut |row, value| {
            if !page.has_room(row, reply) {
                return false;
            }
            if page.is_match(&row[head..]) {
                match write(reply, &row[head..], value) {
                    Ok(words) => page.words += words,
                    Err(refusal) => failure = Some(refusal),
                }
            }
            failure.is_none()
        })?;
        if let Some(refusal) = failure {
            return Err(refusal);
        }
        page.end(self);
        Ok(())
    }
}

/// Replies with keys (and the values of strings; no values of other types) as they are found.
struct Listed {
    limit: usize,
    with_values: bool,
    keys: usize,
    reply: Reply,
}

impl Listed {
    /// The options from argument `from` on: LIMIT n and WITHVALUES, KVBench's additions to KEYS, which RANGE has too.
    fn new(call: &Call, from: usize, refusal: &'static str) -> Result<Listed, Refusal> {
        let reply = Reply { version: call.client.version, ..Reply::default() };
        let mut listed = Listed { limit: usize::MAX, with_values: false, keys: 0, reply };
        let mut words = call.arguments.from(from).iter();
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"WITHVALUES" => listed.with_values = true,
                b"LIMIT" => {
                    let count = integer(words.next().ok_or(SYNTAX)?)?;
                    listed.limit = usize::try_from(count).map_err(|_| SYNTAX)?;
                }
                _ => return Err(refusal.into()),
            }
        }
        Ok(listed)
    }

    /// The number of rows to request.
    fn rows(&self) -> u32 {
        self.limit.min(10_000) as u32
    }

    /// Adds a key; returns whether more are needed.
    fn add(&mut self, found: &Found) -> bool {
        self.keys += 1;
        self.reply.bulk(found.key);
        if self.with_values {
            self.reply.bulk_or_nil((found.row.kind == Type::String).then_some(found.row.body));
        }
        self.keys < self.limit && fits(self.reply.bytes.len()).is_ok()
    }

    fn end(self, call: &mut Call) -> Result<(), Refusal> {
        fits(self.reply.bytes.len())?;
        call.reply().array(if self.with_values { 2 * self.keys } else { self.keys });
        call.reply().bytes.extend_from_slice(&self.reply.bytes);
        Ok(())
    }
}

/// KEYS pattern [LIMIT n] [WITHVALUES].
pub(super) fn keys(call: &mut Call) -> Result<(), Refusal> {
    let pattern = call.arguments.get(1);
    let mut listed = Listed::new(call, 2, "ERR wrong number of arguments for 'keys' command")?;
    // Only keys with the pattern's literal prefix can match.
    let prefix = key_row(call.client.database, glob::plain_prefix(pattern));
    let to = behind(&prefix);
    if listed.limit > 0 {
        each(call, Some(prefix), Some(to), listed.rows(), &mut |found| {
            !glob::matches(pattern, found.key) || listed.add(found)
        })?;
    }
    listed.end(call)
}

/// RANGE from to [LIMIT n] [WITHVALUES]: the keys from `from` on and below `to`, in order; `+` as `to` means to the
/// end.
pub(super) fn range(call: &mut Call) -> Result<(), Refusal> {
    let (from, to) = (call.arguments.get(1), call.arguments.get(2));
    let mut listed = Listed::new(call, 3, SYNTAX)?;
    let from = call.row(from);
    let to = (to != b"+").then(|| call.row(to));
    if to.as_ref().is_none_or(|to| *to > from) && listed.limit > 0 {
        each(call, Some(from), to, listed.rows(), &mut |found| listed.add(found))?;
    }
    listed.end(call)
}

/// A key near a random place; keys after large gaps are more likely.
pub(super) fn randomkey(call: &mut Call) -> Result<(), Refusal> {
    let place = crate::worker::now_ms().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let row = call.row(&place);
    let mut key = None;
    for from in [Some(row), None] {
        each(call, from, None, 1, &mut |found| {
            key = Some(found.key.to_vec());
            false
        })?;
        if key.is_some() {
            break;
        }
    }
    call.reply().bulk_or_nil(key.as_deref());
    Ok(())
}

/// Counts the keys by scanning them: engines keep no count that stays right when rows are written without a read.
pub(super) fn dbsize(call: &mut Call) -> Result<(), Refusal> {
    let mut keys = 0;
    each(call, None, None, 0, &mut |_| {
        keys += 1;
        true
    })?;
    call.reply().integer(keys);
    Ok(())
}

/// Rows that are deleted per commit.
const FLUSHED: usize = 512;

fn flush(call: &mut Call, prefix: Vec<u8>) -> Result<(), Refusal> {
    call.store.needs_rows()?;
    if call.store.engine().capabilities & KV_CAN_DELETE == 0 {
        return Err(StoreError::CannotDelete.into());
    }
    let to = behind(&prefix);
    let mut from = prefix;
    let most = if call.store.is_sorted_here() { usize::MAX } else { FLUSHED };
    loop {
        let mut rows: Vec<Vec<u8>> = Vec::new();
        let stretch = Stretch { from: from.clone(), to: to.clone(), reverse: false, rows: FLUSHED as u32 };
        call.store.rows(&stretch, &mut |row, _| {
            rows.push(row.to_vec());
            rows.len() < most
        })?;
        let Some(last) = rows.last() else { return Ok(()) };
        from = last.clone();
        for rows in rows.chunks(FLUSHED) {
            call.store.lock(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            rows.iter().try_for_each(|row| call.store.delete(row))?;
            call.store.commit();
        }
        from.push(0);
    }
}

fn flush_database(call: &mut Call, database: u8) -> Result<(), Refusal> {
    flush(call, key_row(database, b""))?;
    let mut elements = element_row(database, 0, &[]);
    elements.truncate(1);
    flush(call, elements)
}

/// Fails unless the arguments from `from` on are SYNC or ASYNC, or none; the server does the same for each.
pub(super) fn flush_mode(call: &Call, from: usize) -> Result<(), Refusal> {
    let words = call.arguments.from(from);
    let is_known = |word: &[u8]| word.eq_ignore_ascii_case(b"SYNC") || word.eq_ignore_ascii_case(b"ASYNC");
    if words.len() <= 1 && words.iter().all(is_known) { Ok(()) } else { Err(SYNTAX.into()) }
}

pub(super) fn flushdb(call: &mut Call) -> Result<(), Refusal> {
    flush_mode(call, 1)?;
    flush_database(call, call.client.database)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn flushall(call: &mut Call) -> Result<(), Refusal> {
    flush_mode(call, 1)?;
    (0..DATABASES).try_for_each(|database| flush_database(call, database))?;
    call.reply().ok();
    Ok(())
}
