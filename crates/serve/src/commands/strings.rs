//! Strings: GET, SET and related commands.

use super::access::{SYNTAX, StoredValue};
use super::numbers::{NOT_A_FLOAT, NOT_AN_INTEGER, integer, is_addend, sum};
use crate::command::{Call, Refusal};
use crate::parse::number;
use crate::record::Type;

pub(super) fn get(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let later = call.store.get_later(&row)?;
    call.answers.value(later, true);
    Ok(())
}

pub(super) fn mget(call: &mut Call) -> Result<(), Refusal> {
    let keys = call.arguments.from(1);
    call.reply().array(keys.len());
    for key in keys.iter() {
        let row = call.row(key);
        let later = call.store.get_later(&row)?;
        call.answers.value(later, false);
    }
    Ok(())
}

/// The options of SET and GETEX.
#[derive(Default)]
struct Conditions<'c> {
    only_new: bool,
    only_there: bool,
    tells_old: bool,
    keeps_expiry: bool,
    ends_expiry: bool,
    end: Option<(&'c [u8], Unit)>,
}

impl<'c> Conditions<'c> {
    /// Those from argument `from` on; `reads` for GETEX.
    fn parse(call: &Call<'c, '_>, from: usize, reads: bool) -> Result<Conditions<'c>, Refusal> {
        let mut found = Conditions::default();
        let mut words = call.arguments.from(from).iter();
        while let Some(word) = words.next() {
            match (word.to_ascii_uppercase().as_slice(), reads) {
                (b"NX", false) => found.only_new = true,
                (b"XX", false) => found.only_there = true,
                (b"GET", false) => found.tells_old = true,
                (b"KEEPTTL", false) => found.keeps_expiry = true,
                (b"PERSIST", true) => found.ends_expiry = true,
                (name, _) => {
                    let unit = unit_of(name).ok_or(SYNTAX)?;
                    // As in Redis, the same unit may be given again.
                    if found.end.is_some_and(|(_, known)| known != unit) {
                        return Err(SYNTAX.into());
                    }
                    found.end = Some((words.next().ok_or(SYNTAX)?, unit));
                }
            }
        }
        let says_twice = (found.keeps_expiry || found.ends_expiry) && found.end.is_some();
        if (found.only_new && found.only_there) || says_twice {
            return Err(SYNTAX.into());
        }
        Ok(found)
    }

    /// When the key expires, milliseconds since 1970; `None` if no time was given.
    fn expires_ms(&self, call: &Call, command: &str) -> Result<Option<u64>, Refusal> {
        self.end.map(|(time, unit)| end_of(call, time, unit, command)).transpose()
    }
}

/// How a time is specified.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit {
    ms: i64,
    is_absolute: bool,
}

fn unit_of(word: &[u8]) -> Option<Unit> {
    let units: [(&[u8], i64, bool); 4] =
        [(b"EX", 1000, false), (b"PX", 1, false), (b"EXAT", 1000, true), (b"PXAT", 1, true)];
    let found = units.iter().find(|(name, ..)| word.eq_ignore_ascii_case(name))?;
    Some(Unit { ms: found.1, is_absolute: found.2 })
}

fn end_of(call: &Call, time: &[u8], unit: Unit, command: &str) -> Result<u64, Refusal> {
    let invalid = || Refusal::from(format!("ERR invalid expire time in '{command}' command"));
    let time = integer(time)?;
    if time <= 0 {
        return Err(invalid());
    }
    let from = if unit.is_absolute { 0 } else { call.now_ms as i64 };
    let end = time.checked_mul(unit.ms).and_then(|ms| ms.checked_add(from)).ok_or_else(invalid)?;
    Ok(end as u64)
}

pub(super) fn set(call: &mut Call) -> Result<(), Refusal> {
    let (key, value) = (call.arguments.get(1), call.arguments.get(2));
    let row = call.row(key);
    if call.arguments.len() == 3 {
        call.lock(&[&row])?;
        call.put_string(&row, value, None)?;
        call.reply().ok();
        return Ok(());
    }
    let conditions = Conditions::parse(call, 3, false)?;
    let expires_ms = conditions.expires_ms(call, "set")?;
    call.lock(&[&row])?;
    let old = call.load(&row)?;
    if conditions.tells_old {
        let old = call.load_as(&row, Type::String)?;
        call.reply().bulk_or_nil(old.as_ref().map(|held| held.body.as_slice()));
    }
    if (conditions.only_new && old.is_some()) || (conditions.only_there && old.is_none()) {
        if !conditions.tells_old {
            call.reply().nil();
        }
        return Ok(());
    }
    let kept = old.filter(|_| conditions.keeps_expiry).and_then(|held| held.expires_ms);
    call.put_string(&row, value, expires_ms.or(kept))?;
    if !conditions.tells_old {
        call.reply().ok();
    }
    Ok(())
}

pub(super) fn setnx(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let is_new = call.load(&row)?.is_none();
    if is_new {
        call.put_string(&row, call.arguments.get(2), None)?;
    }
    call.reply().integer(i64::from(is_new));
    Ok(())
}

fn set_until(call: &mut Call, ms: i64, command: &str) -> Result<(), Refusal> {
    let end = end_of(call, call.arguments.get(2), Unit { ms, is_absolute: false }, command)?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    call.put_string(&row, call.arguments.get(3), Some(end))?;
    call.reply().ok();
    Ok(())
}

pub(super) fn setex(call: &mut Call) -> Result<(), Refusal> {
    set_until(call, 1000, "setex")
}

pub(super) fn psetex(call: &mut Call) -> Result<(), Refusal> {
    set_until(call, 1, "psetex")
}

pub(super) fn getset(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let old = call.load_as(&row, Type::String)?;
    call.put_string(&row, call.arguments.get(2), None)?;
    call.reply().bulk_or_nil(old.as_ref().map(|held| held.body.as_slice()));
    Ok(())
}

pub(super) fn getdel(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let old = call.load_as(&row, Type::String)?;
    if old.is_some() {
        call.remove(&row)?;
    }
    call.reply().bulk_or_nil(old.as_ref().map(|held| held.body.as_slice()));
    Ok(())
}

pub(super) fn getex(call: &mut Call) -> Result<(), Refusal> {
    let conditions = Conditions::parse(call, 2, true)?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let Some(held) = call.load_as(&row, Type::String)? else {
        call.reply().nil();
        return Ok(());
    };
    let expires_ms = conditions.expires_ms(call, "getex")?;
    match expires_ms {
        Some(end) if end <= call.now_ms => drop(call.remove(&row)?),
        None if !conditions.ends_expiry => {}
        _ => call.put_string(&row, &held.body, expires_ms)?,
    }
    call.reply().bulk(&held.body);
    Ok(())
}

/// A key's row, and its new value.
type Pair<'c> = (Vec<u8>, &'c [u8]);

/// The pairs of a command with alternating keys and values.
fn pairs<'c>(call: &Call<'c, '_>, command: &str) -> Result<Vec<Pair<'c>>, Refusal> {
    let words = call.arguments.from(1);
    if !words.len().is_multiple_of(2) {
        return Err(format!("ERR wrong number of arguments for '{command}' command").into());
    }
    Ok((0..words.len()).step_by(2).map(|at| (call.row(words.get(at)), words.get(at + 1))).collect())
}

fn put_pairs(call: &mut Call, pairs: &[Pair]) -> Result<(), Refusal> {
    pairs.iter().try_for_each(|(row, _)| call.store.check_key(row))?;
    if call.store.engine().capabilities & kvdyno_core::engine::abi::KV_TRANSACTION != 0 {
        call.store.make_atomic();
    }
    pairs.iter().try_for_each(|(row, value)| call.put_string(row, value, None))
}

pub(super) fn mset(call: &mut Call) -> Result<(), Refusal> {
    let pairs = pairs(call, "mset")?;
    call.lock(&pairs.iter().map(|(row, _)| row.as_slice()).collect::<Vec<_>>())?;
    put_pairs(call, &pairs)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn msetnx(call: &mut Call) -> Result<(), Refusal> {
    let pairs = pairs(call, "msetnx")?;
    call.lock(&pairs.iter().map(|(row, _)| row.as_slice()).collect::<Vec<_>>())?;
    for (row, _) in &pairs {
        if call.load(row)?.is_some() {
            call.reply().integer(0);
            return Ok(());
        }
    }
    put_pairs(call, &pairs)?;
    call.reply().integer(1);
    Ok(())
}

fn add(call: &mut Call, amount: i64) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let old = call.load_as(&row, Type::String)?;
    let (before, expires_ms) = match &old {
        Some(held) => (number(&held.body).ok_or(NOT_AN_INTEGER)?, held.expires_ms),
        None => (0, None),
    };
    let after = before.checked_add(amount).ok_or("ERR increment or decrement would overflow")?;
    call.put_string(&row, after.to_string().as_bytes(), expires_ms)?;
    call.reply().integer(after);
    Ok(())
}

pub(super) fn incr(call: &mut Call) -> Result<(), Refusal> {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call) -> Result<(), Refusal> {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call) -> Result<(), Refusal> {
    add(call, integer(call.arguments.get(2))?)
}

pub(super) fn decrby(call: &mut Call) -> Result<(), Refusal> {
    let amount = integer(call.arguments.get(2))?;
    add(call, amount.checked_neg().ok_or("ERR decrement would overflow")?)
}

pub(super) fn append(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let old = call.load_as(&row, Type::String)?;
    overwrite(call, &row, old, None)
}

/// Writes the last argument into a string, which may not exist, at a place, or at its end, and replies with the new length.
fn overwrite(
    call: &mut Call,
    row: &[u8],
    old: Option<StoredValue>,
    at: Option<usize>,
) -> Result<(), Refusal> {
    let (mut body, expires_ms) = old.map_or((Vec::new(), None), |held| (held.body, held.expires_ms));
    let value = call.arguments.get(call.arguments.len() - 1);
    let at = at.unwrap_or(body.len());
    let end = at.checked_add(value.len()).filter(|end| *end <= call.server.settings.limits.bulk_bytes);
    let end = end.ok_or("ERR string exceeds maximum allowed size (proto-max-bulk-len)")?;
    if body.len() < end {
        body.resize(end, 0);
    }
    body[at..end].copy_from_slice(value);
    call.put_string(row, &body, expires_ms)?;
    call.reply().count(body.len());
    Ok(())
}

pub(super) fn setrange(call: &mut Call) -> Result<(), Refusal> {
    let at = usize::try_from(integer(call.arguments.get(2))?).map_err(|_| "ERR offset is out of range")?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let old = call.load_as(&row, Type::String)?;
    if call.arguments.get(3).is_empty() {
        call.reply().count(old.map_or(0, |held| held.body.len()));
        return Ok(());
    }
    overwrite(call, &row, old, Some(at))
}

pub(super) fn getrange(call: &mut Call) -> Result<(), Refusal> {
    let (first, last) = (integer(call.arguments.get(2))?, integer(call.arguments.get(3))?);
    let row = call.row(call.arguments.get(1));
    let body = call.load_as(&row, Type::String)?.map_or(Vec::new(), |held| held.body);
    let length = body.len() as i64;
    let at = |place: i64| if place < 0 { (length + place).max(0) } else { place };
    let places = at(first)..at(last).min(length - 1) + 1;
    let is_turned = first < 0 && last < 0 && first > last;
    let part =
        if is_turned || places.is_empty() { &[] } else { &body[places.start as usize..places.end as usize] };
    call.reply().bulk(part);
    Ok(())
}

pub(super) fn incrbyfloat(call: &mut Call) -> Result<(), Refusal> {
    let amount = call.arguments.get(2);
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let old = call.load_as(&row, Type::String)?;
    let (before, expires_ms) = old.map_or((b"0".to_vec(), None), |held| (held.body, held.expires_ms));
    if !is_addend(&before) || !is_addend(amount) {
        return Err(NOT_A_FLOAT.into());
    }
    let after = sum(&before, amount)?;
    call.put_string(&row, after.as_bytes(), expires_ms)?;
    call.reply().bulk(after.as_bytes());
    Ok(())
}

pub(super) fn strlen(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let held = call.load_as(&row, Type::String)?;
    call.reply().count(held.map_or(0, |held| held.body.len()));
    Ok(())
}
