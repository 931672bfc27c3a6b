//! Lists: one row per element, by its position; the head has the first position and the number of elements.

use super::access::{Collection, fits};
use super::numbers::{amount, integer};
use crate::command::{Call, Refusal};
use crate::record::Type;
use crate::reply::Reply;

fn element_at(call: &Call, list: &Collection, place: u64) -> Vec<u8> {
    call.element(list, &[&list.head.first.wrapping_add(place).to_be_bytes()])
}

fn push(call: &mut Call, at_front: bool, only_there: bool) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    if only_there && call.collection(&row, Type::List)?.is_none() {
        call.reply().integer(0);
        return Ok(());
    }
    let mut list = call.collection_to_fill(&row, Type::List)?;
    for value in call.arguments.from(2).iter() {
        if at_front {
            list.head.first = list.head.first.wrapping_sub(1);
        }
        let place = if at_front { 0 } else { list.head.len };
        let element = element_at(call, &list, place);
        call.store.put(&element, value.to_vec())?;
        list.head.len += 1;
    }
    call.put_head(&row, &list)?;
    call.reply().integer(list.head.len as i64);
    Ok(())
}

pub(super) fn lpush(call: &mut Call) -> Result<(), Refusal> {
    push(call, true, false)
}

pub(super) fn lpushx(call: &mut Call) -> Result<(), Refusal> {
    push(call, true, true)
}

pub(super) fn rpushx(call: &mut Call) -> Result<(), Refusal> {
    push(call, false, true)
}

pub(super) fn rpush(call: &mut Call) -> Result<(), Refusal> {
    push(call, false, false)
}

fn pop(call: &mut Call, at_front: bool) -> Result<(), Refusal> {
    let count = match call.arguments.len() {
        2 => None,
        3 => Some(amount(call.arguments.get(2))?),
        _ => {
            let name = if at_front { "lpop" } else { "rpop" };
            return Err(format!("ERR wrong number of arguments for '{name}' command").into());
        }
    };
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let Some(mut list) = call.collection(&row, Type::List)? else {
        match count {
            Some(_) => call.reply().nil_array(),
            None => call.reply().nil(),
        }
        return Ok(());
    };
    let wanted = (count.unwrap_or(1) as u64).min(list.head.len);
    let elements: Vec<Vec<u8>> = (0..wanted)
        .map(|at| element_at(call, &list, if at_front { at } else { list.head.len - 1 - at }))
        .collect();
    let (mut popped, mut bytes) = (Vec::new(), 0);
    for element in &elements {
        let value = call
            .store
            .get(element)?
            .ok_or(Refusal::Foreign("ERR a list has fewer elements than its length"))?;
        bytes += value.len();
        popped.push(value.to_vec());
        fits(bytes)?;
    }
    // Nothing is changed before everything is read.
    elements.iter().try_for_each(|element| call.store.delete(element))?;
    list.head.len -= wanted;
    if at_front {
        list.head.first = list.head.first.wrapping_add(wanted);
    }
    if wanted > 0 {
        call.put_head(&row, &list)?;
    }
    match count {
        None => call.reply().bulk_or_nil(popped.first().map(Vec::as_slice)),
        Some(_) => {
            call.reply().array(popped.len());
            popped.iter().for_each(|value| call.reply().bulk(value));
        }
    }
    Ok(())
}

pub(super) fn lpop(call: &mut Call) -> Result<(), Refusal> {
    pop(call, true)
}

pub(super) fn rpop(call: &mut Call) -> Result<(), Refusal> {
    pop(call, false)
}

pub(super) fn llen(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::List)
}

/// The places between two, both included; negative ones count from the end.
fn places(first: i64, last: i64, length: u64) -> std::ops::Range<u64> {
    let length = length as i64;
    let first = if first < 0 { (length + first).max(0) } else { first };
    let last = if last < 0 { length + last } else { last.min(length - 1) };
    if first > last { 0..0 } else { first as u64..last as u64 + 1 }
}

pub(super) fn lrange(call: &mut Call) -> Result<(), Refusal> {
    let (first, last) = (integer(call.arguments.get(2))?, integer(call.arguments.get(3))?);
    let row = call.row(call.arguments.get(1));
    let list = call.collection(&row, Type::List)?;
    let places = list.as_ref().map_or(0..0, |list| places(first, last, list.head.len));
    let from = list.as_ref().map_or(0, |list| list.head.first.wrapping_add(places.start)).to_be_bytes();
    let most = places.end - places.start;
    call.reply_elements(list.as_ref(), &from, most, Reply::array, |reply, _, value| reply.bulk(value))
}

pub(super) fn lindex(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let mut value = None;
    if let Some(list) = call.collection(&row, Type::List)? {
        // As in Redis, only an existing list needs a valid place.
        let place = integer(call.arguments.get(2))?;
        let place = if place < 0 { list.head.len as i64 + place } else { place };
        if (0..list.head.len as i64).contains(&place) {
            let element = element_at(call, &list, place as u64);
            value = call.store.get(&element)?.map(<[u8]>::to_vec);
        }
    }
    call.reply().bulk_or_nil(value.as_deref());
    Ok(())
}
