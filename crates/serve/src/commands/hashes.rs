//! Hashes: fields and their values, one row each.

use super::access::fits;
use super::numbers::{NOT_A_FLOAT, integer, is_addend, sum};
use crate::command::{Call, Refusal};
use crate::parse::number;
use crate::record::Type;
use crate::reply::Reply;

/// Sets fields; returns the number of new ones.
fn put_fields(call: &mut Call, only_new: bool) -> Result<i64, Refusal> {
    let row = call.row(call.arguments.get(1));
    let words = call.arguments.from(2);
    call.check_elements(words, Type::Hash, 2)?;
    call.lock(&[&row])?;
    let mut hash = call.collection_to_fill(&row, Type::Hash)?;
    let before = hash.head.len;
    for at in (0..words.len()).step_by(2) {
        let element = call.element(&hash, &[words.get(at)]);
        let is_there = call.store.get(&element)?.is_some();
        if is_there && only_new {
            continue;
        }
        hash.head.len += u64::from(!is_there);
        call.store.put(&element, words.get(at + 1).to_vec())?;
    }
    call.put_head(&row, &hash)?;
    Ok((hash.head.len - before) as i64)
}

fn pairs_only(call: &Call, command: &str) -> Result<(), Refusal> {
    match call.arguments.len().is_multiple_of(2) {
        true => Ok(()),
        false => Err(format!("ERR wrong number of arguments for '{command}' command").into()),
    }
}

pub(super) fn hset(call: &mut Call) -> Result<(), Refusal> {
    pairs_only(call, "hset")?;
    let new = put_fields(call, false)?;
    call.reply().integer(new);
    Ok(())
}

pub(super) fn hmset(call: &mut Call) -> Result<(), Refusal> {
    pairs_only(call, "hmset")?;
    put_fields(call, false)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn hsetnx(call: &mut Call) -> Result<(), Refusal> {
    let new = put_fields(call, true)?;
    call.reply().integer(new);
    Ok(())
}

/// The value of a field; `None` if there is no such key or no such field.
fn field(call: &mut Call, field: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let row = call.row(call.arguments.get(1));
    let Some(hash) = call.collection(&row, Type::Hash)? else { return Ok(None) };
    let element = call.element(&hash, &[field]);
    Ok(call.store.get(&element)?.map(<[u8]>::to_vec))
}

pub(super) fn hget(call: &mut Call) -> Result<(), Refusal> {
    let found = field(call, call.arguments.get(2))?;
    call.reply().bulk_or_nil(found.as_deref());
    Ok(())
}

pub(super) fn hmget(call: &mut Call) -> Result<(), Refusal> {
    let fields = call.arguments.from(2);
    let start = call.reply().bytes.len();
    call.reply().array(fields.len());
    for name in fields.iter() {
        let found = field(call, name)?;
        call.reply().bulk_or_nil(found.as_deref());
        fits(call.reply().bytes.len() - start)?;
    }
    Ok(())
}

pub(super) fn hexists(call: &mut Call) -> Result<(), Refusal> {
    let found = field(call, call.arguments.get(2))?;
    call.reply().integer(i64::from(found.is_some()));
    Ok(())
}

pub(super) fn hstrlen(call: &mut Call) -> Result<(), Refusal> {
    let found = field(call, call.arguments.get(2))?;
    call.reply().count(found.map_or(0, |value| value.len()));
    Ok(())
}

pub(super) fn hdel(call: &mut Call) -> Result<(), Refusal> {
    let gone = call.remove_members(Type::Hash)?;
    call.reply().integer(gone);
    Ok(())
}

pub(super) fn hlen(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::Hash)
}

/// Replies with all fields: `write` appends one, `head` what comes before that many.
fn all(
    call: &mut Call,
    head: fn(&mut Reply, usize),
    write: fn(&mut Reply, &[u8], &[u8]),
) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let hash = call.collection(&row, Type::Hash)?;
    call.reply_elements(hash.as_ref(), b"", u64::MAX, head, write)
}

pub(super) fn hgetall(call: &mut Call) -> Result<(), Refusal> {
    all(call, Reply::map, |reply, name, value| {
        reply.bulk(name);
        reply.bulk(value);
    })
}

pub(super) fn hkeys(call: &mut Call) -> Result<(), Refusal> {
    all(call, Reply::array, |reply, name, _| reply.bulk(name))
}

pub(super) fn hvals(call: &mut Call) -> Result<(), Refusal> {
    all(call, Reply::array, |reply, _, value| reply.bulk(value))
}

pub(super) fn hscan(call: &mut Call) -> Result<(), Refusal> {
    call.scan_elements(Type::Hash, b"", |reply, name, value| {
        reply.bulk(name);
        reply.bulk(value);
        Ok(2)
    })
}

/// Computes the new value of a field from the old one.
type Add<'a> = &'a dyn Fn(Option<&[u8]>) -> Result<String, Refusal>;

/// Replaces the value of a field with the result of `add`, and returns it.
fn add(call: &mut Call, add: Add) -> Result<String, Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut hash = call.collection_to_fill(&row, Type::Hash)?;
    let element = call.element(&hash, &[call.arguments.get(2)]);
    let before = call.store.get(&element)?;
    hash.head.len += u64::from(before.is_none());
    let after = add(before)?;
    call.store.put(&element, after.clone().into_bytes())?;
    call.put_head(&row, &hash)?;
    Ok(after)
}

pub(super) fn hincrby(call: &mut Call) -> Result<(), Refusal> {
    let amount = integer(call.arguments.get(3))?;
    let after = add(call, &|before| {
        let before = before.map_or(Some(0), number).ok_or("ERR hash value is not an integer")?;
        let after = before.checked_add(amount).ok_or("ERR increment or decrement would overflow")?;
        Ok(after.to_string())
    })?;
    call.reply().integer(integer(after.as_bytes())?);
    Ok(())
}

pub(super) fn hincrbyfloat(call: &mut Call) -> Result<(), Refusal> {
    let amount = call.arguments.get(3);
    if !is_addend(amount) {
        return Err(NOT_A_FLOAT.into());
    }
    if sum(amount, b"0").is_err() {
        return Err("ERR value is NaN or Infinity".into());
    }
    let after = add(call, &|before| match before.unwrap_or(b"0") {
        before if is_addend(before) => sum(before, amount),
        _ => Err("ERR hash value is not a float".into()),
    })?;
    call.reply().bulk(after.as_bytes());
    Ok(())
}
