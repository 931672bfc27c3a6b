//! Lists: one row per element, by its position; the head has the first position and the number of elements.

use super::access::{Collection, amount, integer};
use crate::resp::command::{Call, Refusal};
use crate::resp::record::Type;

fn element_at(call: &Call, list: &Collection, place: u64) -> Vec<u8> {
    call.element(list, &[&list.head.first.wrapping_add(place).to_be_bytes()])
}

fn push(call: &mut Call, at_front: bool) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
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

pub fn lpush(call: &mut Call) -> Result<(), Refusal> {
    push(call, true)
}

pub fn rpush(call: &mut Call) -> Result<(), Refusal> {
    push(call, false)
}

fn pop(call: &mut Call, at_front: bool) -> Result<(), Refusal> {
    let count = match call.arguments.len() {
        2 => None,
        3 => Some(amount(call.arguments.get(2))?),
        _ => {
            let name = if at_front { "lpop" } else { "rpop" };
            return Err(format!("ERR wrong number of arguments for '{name}' command"));
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
    let mut popped = Vec::new();
    for _ in 0..wanted {
        let place = if at_front { 0 } else { list.head.len - 1 };
        let element = element_at(call, &list, place);
        let value =
            call.store.get(&element)?.ok_or("ERR a list has fewer elements than its length")?.to_vec();
        call.store.delete(&element)?;
        list.head.len -= 1;
        if at_front {
            list.head.first = list.head.first.wrapping_add(1);
        }
        popped.push(value);
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

pub fn lpop(call: &mut Call) -> Result<(), Refusal> {
    pop(call, true)
}

pub fn rpop(call: &mut Call) -> Result<(), Refusal> {
    pop(call, false)
}

pub fn llen(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::List)
}

/// The places between two, both included; negative ones count from the end.
fn places(first: i64, last: i64, length: u64) -> std::ops::Range<u64> {
    let length = length as i64;
    let first = if first < 0 { (length + first).max(0) } else { first };
    let last = if last < 0 { length + last } else { last.min(length - 1) };
    if first > last { 0..0 } else { first as u64..last as u64 + 1 }
}

pub fn lrange(call: &mut Call) -> Result<(), Refusal> {
    let (first, last) = (integer(call.arguments.get(2))?, integer(call.arguments.get(3))?);
    let row = call.row(call.arguments.get(1));
    let mut values: Vec<Vec<u8>> = Vec::new();
    if let Some(list) = call.collection(&row, Type::List)? {
        let places = places(first, last, list.head.len);
        let wanted = places.end - places.start;
        if wanted > 0 {
            let from = list.head.first.wrapping_add(places.start).to_be_bytes();
            let rows = u32::try_from(wanted).unwrap_or(0);
            call.elements_from(&list, &from, rows, &mut |_, value| {
                values.push(value.to_vec());
                (values.len() as u64) < wanted
            })?;
        }
    }
    call.reply().array(values.len());
    values.iter().for_each(|value| call.reply().bulk(value));
    Ok(())
}

pub fn lindex(call: &mut Call) -> Result<(), Refusal> {
    let place = integer(call.arguments.get(2))?;
    let row = call.row(call.arguments.get(1));
    let mut value = None;
    if let Some(list) = call.collection(&row, Type::List)? {
        let place = if place < 0 { list.head.len as i64 + place } else { place };
        if (0..list.head.len as i64).contains(&place) {
            let element = element_at(call, &list, place as u64);
            value = call.store.get(&element)?.map(<[u8]>::to_vec);
        }
    }
    call.reply().bulk_or_nil(value.as_deref());
    Ok(())
}
