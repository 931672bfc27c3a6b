//! Hashes: fields and their values, one row each.

use super::access::integer;
use crate::resp::command::{Call, Refusal};
use crate::resp::record::Type;

/// Sets fields; returns the number of new ones.
fn put_fields(call: &mut Call, only_new: bool) -> Result<i64, Refusal> {
    let row = call.row(call.arguments.get(1));
    let words = call.arguments.from(2);
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
        false => Err(format!("ERR wrong number of arguments for '{command}' command")),
    }
}

pub fn hset(call: &mut Call) -> Result<(), Refusal> {
    pairs_only(call, "hset")?;
    let new = put_fields(call, false)?;
    call.reply().integer(new);
    Ok(())
}

pub fn hmset(call: &mut Call) -> Result<(), Refusal> {
    pairs_only(call, "hmset")?;
    put_fields(call, false)?;
    call.reply().ok();
    Ok(())
}

pub fn hsetnx(call: &mut Call) -> Result<(), Refusal> {
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

pub fn hget(call: &mut Call) -> Result<(), Refusal> {
    let found = field(call, call.arguments.get(2))?;
    call.reply().bulk_or_nil(found.as_deref());
    Ok(())
}

pub fn hmget(call: &mut Call) -> Result<(), Refusal> {
    let fields = call.arguments.from(2);
    let found: Result<Vec<_>, Refusal> = fields.iter().map(|name| field(call, name)).collect();
    let found = found?;
    call.reply().array(found.len());
    found.iter().for_each(|value| call.reply().bulk_or_nil(value.as_deref()));
    Ok(())
}

pub fn hexists(call: &mut Call) -> Result<(), Refusal> {
    let found = field(call, call.arguments.get(2))?;
    call.reply().integer(i64::from(found.is_some()));
    Ok(())
}

pub fn hdel(call: &mut Call) -> Result<(), Refusal> {
    let gone = call.remove_members(Type::Hash)?;
    call.reply().integer(gone);
    Ok(())
}

pub fn hlen(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::Hash)
}

/// A field and its value.
type Field = (Vec<u8>, Vec<u8>);

fn all(call: &mut Call) -> Result<Vec<Field>, Refusal> {
    let row = call.row(call.arguments.get(1));
    let Some(hash) = call.collection(&row, Type::Hash)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    call.elements(&hash, b"", 0, &mut |name, value| {
        found.push((name.to_vec(), value.to_vec()));
        true
    })?;
    Ok(found)
}

pub fn hgetall(call: &mut Call) -> Result<(), Refusal> {
    let found = all(call)?;
    let reply = call.reply();
    reply.map(found.len());
    for (name, value) in &found {
        reply.bulk(name);
        reply.bulk(value);
    }
    Ok(())
}

pub fn hkeys(call: &mut Call) -> Result<(), Refusal> {
    let found = all(call)?;
    call.reply().array(found.len());
    found.iter().for_each(|(name, _)| call.reply().bulk(name));
    Ok(())
}

pub fn hvals(call: &mut Call) -> Result<(), Refusal> {
    let found = all(call)?;
    call.reply().array(found.len());
    found.iter().for_each(|(_, value)| call.reply().bulk(value));
    Ok(())
}

pub fn hincrby(call: &mut Call) -> Result<(), Refusal> {
    let amount = integer(call.arguments.get(3))?;
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut hash = call.collection_to_fill(&row, Type::Hash)?;
    let element = call.element(&hash, &[call.arguments.get(2)]);
    let before = match call.store.get(&element)? {
        Some(text) => crate::resp::parse::number(text).ok_or("ERR hash value is not an integer")?,
        None => {
            hash.head.len += 1;
            0
        }
    };
    let after = before.checked_add(amount).ok_or("ERR increment or decrement would overflow")?;
    call.store.put(&element, after.to_string().into_bytes())?;
    call.put_head(&row, &hash)?;
    call.reply().integer(after);
    Ok(())
}
