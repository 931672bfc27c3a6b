//! Keys of any type: whether they exist, their type, and when they expire.

use super::access::{Collection, SYNTAX};
use super::connection::database_of;
use super::numbers::integer;
use crate::command::{Call, FOREIGN, Refusal};
use crate::parse::Arguments;
use crate::record::{Head, Row, Type, element_row, key_row};

pub(super) fn del(call: &mut Call) -> Result<(), Refusal> {
    let rows: Vec<Vec<u8>> = call.arguments.from(1).iter().map(|key| call.row(key)).collect();
    call.lock(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let mut gone = 0;
    for row in &rows {
        gone += i64::from(call.remove(row)?);
    }
    call.reply().integer(gone);
    Ok(())
}

pub(super) fn exists(call: &mut Call) -> Result<(), Refusal> {
    let mut there = 0;
    for key in call.arguments.from(1).iter() {
        let row = call.row(key);
        there += i64::from(call.load(&row)?.is_some());
    }
    call.reply().integer(there);
    Ok(())
}

/// Gives a key another name: only its own row moves, its elements stay where they are.
fn move_to(call: &mut Call, only_new: bool) -> Result<bool, Refusal> {
    call.needs_transactions()?;
    let [from, to] = [1, 2].map(|at| call.row(call.arguments.get(at)));
    call.lock(&[&from, &to])?;
    let held = call.load(&from)?.ok_or("ERR no such key")?;
    if from == to || (only_new && call.load(&to)?.is_some()) {
        return Ok(false);
    }
    call.remove(&to)?;
    call.store.make_atomic();
    call.store.put(&to, held.row().bytes())?;
    call.store.delete(&from)?;
    Ok(true)
}

pub(super) fn rename(call: &mut Call) -> Result<(), Refusal> {
    move_to(call, false)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn renamenx(call: &mut Call) -> Result<(), Refusal> {
    let is_new = move_to(call, true)?;
    call.reply().integer(i64::from(is_new));
    Ok(())
}

/// The options of COPY: the database of the second key, `database` if none is named, and whether its value may be replaced.
pub(super) fn copy_options(arguments: &Arguments, mut database: u8) -> Result<(u8, bool), Refusal> {
    let mut replaces = false;
    let mut words = arguments.from(3).iter();
    while let Some(word) = words.next() {
        match word.to_ascii_uppercase().as_slice() {
            b"REPLACE" => replaces = true,
            b"DB" => database = database_of(words.next().ok_or(SYNTAX)?)?,
            _ => return Err(SYNTAX.into()),
        }
    }
    Ok((database, replaces))
}

/// COPY from to [DB number] [REPLACE].
pub(super) fn copy(call: &mut Call) -> Result<(), Refusal> {
    let (database, replaces) = copy_options(&call.arguments, call.client.database)?;
    let (from, to) = (call.row(call.arguments.get(1)), key_row(database, call.arguments.get(2)));
    if from == to {
        return Err("ERR source and destination objects are the same".into());
    }
    call.lock(&[&from, &to])?;
    let held = call.load(&from)?;
    let is_free = held.is_some() && (replaces || call.load(&to)?.is_none());
    if let Some(held) = held.filter(|_| is_free) {
        call.remove(&to)?;
        let mut copied = held.row().bytes();
        if held.kind != Type::String {
            let head = Head::parse(&held.body).ok_or(FOREIGN)?;
            let number = call.server.next_number(call.store)?;
            call.store.make_atomic();
            let collection = Collection { head, expires_ms: held.expires_ms, kind: held.kind };
            call.each_element(&collection, &mut |call, name, value| {
                call.store.put(&element_row(database, number, &[name]), value.to_vec())?;
                Ok(true)
            })?;
            copied = Row { body: &Head { number, ..head }.bytes(), ..held.row() }.bytes();
        }
        call.store.put(&to, copied)?;
    }
    call.reply().integer(i64::from(is_free));
    Ok(())
}

pub(super) fn kind(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let name = call.load(&row)?.map_or("none", |held| held.kind.name());
    call.reply().status(name);
    Ok(())
}

/// Sets the expiry of a key: `unit_ms` milliseconds per unit, relative to now or to 1970.
fn end_at(call: &mut Call, unit_ms: i64, is_absolute: bool, command: &str) -> Result<(), Refusal> {
    let invalid = || Refusal::from(format!("ERR invalid expire time in '{command}' command"));
    let row = call.row(call.arguments.get(1));
    let from = if is_absolute { 0 } else { call.now_ms as i64 };
    let condition = Condition::parse(call)?;
    let time = integer(call.arguments.get(2))?;
    let end = time.checked_mul(unit_ms).and_then(|ms| ms.checked_add(from)).ok_or_else(invalid)?;
    call.lock(&[&row])?;
    let Some(held) = call.load(&row)? else {
        call.reply().integer(0);
        return Ok(());
    };
    if !condition.holds(held.expires_ms, end) {
        call.reply().integer(0);
        return Ok(());
    }
    if end <= call.now_ms as i64 {
        call.remove(&row)?;
    } else {
        let value = Row { expires_ms: Some(end as u64), ..held.row() }.bytes();
        call.store.put(&row, value)?;
    }
    call.reply().integer(1);
    Ok(())
}

/// The options NX, XX, GT and LT of the EXPIRE family.
#[derive(Default)]
struct Condition {
    only_without: bool,
    only_with: bool,
    only_later: bool,
    only_sooner: bool,
}

impl Condition {
    fn parse(call: &Call) -> Result<Condition, Refusal> {
        let mut found = Condition::default();
        for word in call.arguments.from(3).iter() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => found.only_without = true,
                b"XX" => found.only_with = true,
                b"GT" => found.only_later = true,
                b"LT" => found.only_sooner = true,
                _ => return Err(format!("ERR Unsupported option {}", String::from_utf8_lossy(word)).into()),
            }
        }
        let Condition { only_without, only_with, only_later, only_sooner } = found;
        if only_without && (only_with || only_later || only_sooner) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if only_later && only_sooner {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(found)
    }

    /// A key without an expiry is treated as expiring after all others.
    fn holds(&self, now: Option<u64>, end: i64) -> bool {
        let before = now.map_or(i64::MAX, |now| now as i64);
        !(self.only_without && now.is_some()
            || self.only_with && now.is_none()
            || self.only_later && end <= before
            || self.only_sooner && end >= before)
    }
}

pub(super) fn expire(call: &mut Call) -> Result<(), Refusal> {
    end_at(call, 1000, false, "expire")
}

pub(super) fn pexpire(call: &mut Call) -> Result<(), Refusal> {
    end_at(call, 1, false, "pexpire")
}

pub(super) fn expireat(call: &mut Call) -> Result<(), Refusal> {
    end_at(call, 1000, true, "expireat")
}

pub(super) fn pexpireat(call: &mut Call) -> Result<(), Refusal> {
    end_at(call, 1, true, "pexpireat")
}

/// -2: no such key, -1: it has no expiry; otherwise what `of` computes from its expiry.
fn reply_expiry(call: &mut Call, of: fn(end_ms: u64, now_ms: u64) -> u64) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let now_ms = call.now_ms;
    let told = match call.load(&row)? {
        None => -2,
        Some(held) => held.expires_ms.map_or(-1, |end| of(end, now_ms) as i64),
    };
    call.reply().integer(told);
    Ok(())
}

pub(super) fn ttl(call: &mut Call) -> Result<(), Refusal> {
    reply_expiry(call, |end_ms, now_ms| (end_ms.saturating_sub(now_ms) + 500) / 1000)
}

pub(super) fn pttl(call: &mut Call) -> Result<(), Refusal> {
    reply_expiry(call, |end_ms, now_ms| end_ms.saturating_sub(now_ms))
}

pub(super) fn expiretime(call: &mut Call) -> Result<(), Refusal> {
    reply_expiry(call, |end_ms, _| (end_ms + 500) / 1000)
}

pub(super) fn pexpiretime(call: &mut Call) -> Result<(), Refusal> {
    reply_expiry(call, |end_ms, _| end_ms)
}

pub(super) fn persist(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let held = call.load(&row)?.filter(|held| held.expires_ms.is_some());
    if let Some(held) = &held {
        let value = Row { expires_ms: None, ..held.row() }.bytes();
        call.store.put(&row, value)?;
    }
    call.reply().integer(i64::from(held.is_some()));
    Ok(())
}
