//! Many keys at once: SCAN, KEYS, RANGE, DBSIZE, and the commands that empty a database. All need an engine that
//! returns its rows in order, or all rows with a prefix, which are then sorted here.

use super::access::{SYNTAX, integer};
use crate::engine::abi::KV_CAN_DELETE;
use crate::resp::command::{Call, FOREIGN, Refusal};
use crate::resp::glob;
use crate::resp::record::{DATABASES, Row, behind, element_row, key_row};
use crate::resp::store::Stretch;

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
    if is_foreign { Err(FOREIGN.into()) } else { Ok(()) }
}

/// SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]: the cursor refers to the last key visited, so that writes in
/// between move nothing: a key that exists from the first call to the last is returned once.
pub fn scan(call: &mut Call) -> Result<(), Refusal> {
    let (mut pattern, mut count, mut kind): (Option<&[u8]>, i64, Option<&[u8]>) = (None, 10, None);
    let cursor = integer(call.arguments.get(1)).map_err(|_| "ERR invalid cursor")?;
    let mut words = call.arguments.from(2).iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or(SYNTAX)?;
        match word.to_ascii_uppercase().as_slice() {
            b"MATCH" => pattern = Some(value),
            b"COUNT" => count = integer(value)?,
            b"TYPE" => kind = Some(value),
            _ => return Err(SYNTAX.into()),
        }
    }
    if count < 1 {
        return Err(SYNTAX.into());
    }
    let from = match cursor {
        0 => None,
        // An expired or invalid cursor: as in Redis the scan has ended.
        cursor => Some(call.server.place_of(cursor as u64).unwrap_or_else(|| vec![u8::MAX])),
    };
    let (mut looked_at, mut last, mut keys) = (0, None, Vec::new());
    each(call, from, None, count.min(10_000) as u32 + 1, &mut |found| {
        if looked_at == count {
            last = Some(found.key.to_vec());
            return false;
        }
        looked_at += 1;
        let is_kind = kind.is_none_or(|kind| kind.eq_ignore_ascii_case(found.row.kind.name().as_bytes()));
        if is_kind && pattern.is_none_or(|pattern| glob::matches(pattern, found.key)) {
            keys.push(found.key.to_vec());
        }
        true
    })?;
    let next = last.map_or(0, |key| call.server.cursor_at(call.row(&key)));
    let reply = call.reply();
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(keys.len());
    keys.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

/// LIMIT n and WITHVALUES, KVBench's additions to KEYS, which RANGE supports too.
fn limit_and_values(call: &Call, from: usize) -> Result<(usize, bool), Refusal> {
    let (mut limit, mut with_values) = (usize::MAX, false);
    let mut words = call.arguments.from(from).iter();
    while let Some(word) = words.next() {
        match word.to_ascii_uppercase().as_slice() {
            b"WITHVALUES" => with_values = true,
            b"LIMIT" => {
                let count = integer(words.next().ok_or(SYNTAX)?)?;
                limit = usize::try_from(count).map_err(|_| SYNTAX.to_string())?;
            }
            _ => return Err(SYNTAX.into()),
        }
    }
    Ok((limit, with_values))
}

/// Writes keys (and the values of strings; no values of other types) as they are found.
#[derive(Default)]
struct Listed {
    words: Vec<Option<Vec<u8>>>,
    keys: usize,
}

impl Listed {
    fn add(&mut self, found: &Found, with_values: bool) {
        self.keys += 1;
        self.words.push(Some(found.key.to_vec()));
        if with_values {
            let is_string = found.row.kind == crate::resp::record::Type::String;
            self.words.push(is_string.then(|| found.row.body.to_vec()));
        }
    }

    fn reply(self, call: &mut Call) {
        call.reply().array(self.words.len());
        self.words.iter().for_each(|word| call.reply().bulk_or_nil(word.as_deref()));
    }
}

/// KEYS pattern [LIMIT n] [WITHVALUES].
pub fn keys(call: &mut Call) -> Result<(), Refusal> {
    let pattern = call.arguments.get(1);
    let (limit, with_values) = limit_and_values(call, 2)?;
    // Only keys with the pattern's literal prefix can match.
    let prefix = key_row(call.client.database, glob::plain_prefix(pattern));
    let to = behind(&prefix);
    let mut listed = Listed::default();
    each(call, Some(prefix), Some(to), limit.min(10_000) as u32, &mut |found| {
        if listed.keys < limit && glob::matches(pattern, found.key) {
            listed.add(found, with_values);
        }
        listed.keys < limit
    })?;
    listed.reply(call);
    Ok(())
}

/// RANGE from to [LIMIT n] [WITHVALUES]: the keys from `from` on and below `to`, in order; `+` as `to` means to the
/// end.
pub fn range(call: &mut Call) -> Result<(), Refusal> {
    let (from, to) = (call.arguments.get(1), call.arguments.get(2));
    let (limit, with_values) = limit_and_values(call, 3)?;
    let from = call.row(from);
    let to = (to != b"+").then(|| call.row(to));
    let mut listed = Listed::default();
    if to.as_ref().is_none_or(|to| *to > from) && limit > 0 {
        each(call, Some(from), to, limit.min(10_000) as u32, &mut |found| {
            listed.add(found, with_values);
            listed.keys < limit
        })?;
    }
    listed.reply(call);
    Ok(())
}

/// A key near a random place; keys after large gaps are more likely.
pub fn randomkey(call: &mut Call) -> Result<(), Refusal> {
    let place = crate::resp::worker::now_ms().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
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
pub fn dbsize(call: &mut Call) -> Result<(), Refusal> {
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
        return Err("ERR this engine cannot delete".into());
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
            if call.client.queue.is_none() {
                call.store.commit();
            }
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

pub fn flushdb(call: &mut Call) -> Result<(), Refusal> {
    flush_database(call, call.client.database)?;
    call.reply().ok();
    Ok(())
}

pub fn flushall(call: &mut Call) -> Result<(), Refusal> {
    (0..DATABASES).try_for_each(|database| flush_database(call, database))?;
    call.reply().ok();
    Ok(())
}
