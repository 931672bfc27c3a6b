//! Sets: members, one row each.

use super::access::{Collection, SYNTAX, fits, rows_of};
use super::numbers::{amount, amount_or};
use crate::command::{Call, Refusal};
use crate::parse::Arguments;
use crate::record::Type;
use crate::reply::Reply;
use std::collections::BTreeSet;

impl Call<'_, '_> {
    /// Removes the members (or fields) that the request names, from its third word on; returns how many existed.
    pub(crate) fn remove_members(&mut self, kind: Type) -> Result<i64, Refusal> {
        let row = self.row(self.arguments.get(1));
        self.check_elements(self.arguments.from(2), kind, 1)?;
        self.lock(&[&row])?;
        let Some(mut found) = self.collection(&row, kind)? else { return Ok(0) };
        let before = found.head.len;
        for member in self.arguments.from(2).iter() {
            let element = self.element(&found, &[member]);
            if self.store.get(&element)?.is_some() {
                self.store.delete(&element)?;
                found.head.len -= 1;
            }
        }
        if found.head.len < before {
            self.put_head(&row, &found)?;
        }
        Ok((before - found.head.len) as i64)
    }

    /// Replies with a collection's length.
    pub(crate) fn reply_length(&mut self, kind: Type) -> Result<(), Refusal> {
        let row = self.row(self.arguments.get(1));
        let length = self.collection(&row, kind)?.map_or(0, |found| found.head.len);
        self.reply().integer(length as i64);
        Ok(())
    }
}

/// Adds members; the key must be locked. Returns how many are new.
fn put(call: &mut Call, row: &[u8], members: &mut dyn Iterator<Item = &[u8]>) -> Result<i64, Refusal> {
    let mut set = call.collection_to_fill(row, Type::Set)?;
    let before = set.head.len;
    for member in members {
        let element = call.element(&set, &[member]);
        if call.store.get(&element)?.is_none() {
            // Not every engine accepts an empty value.
            call.store.put(&element, vec![1])?;
            set.head.len += 1;
        }
    }
    if set.head.len > before {
        call.put_head(row, &set)?;
    }
    Ok((set.head.len - before) as i64)
}

pub(super) fn sadd(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let members = call.arguments.from(2);
    call.check_elements(members, Type::Set, 1)?;
    let new = put(call, &row, &mut members.iter())?;
    call.reply().integer(new);
    Ok(())
}

pub(super) fn srem(call: &mut Call) -> Result<(), Refusal> {
    let gone = call.remove_members(Type::Set)?;
    call.reply().integer(gone);
    Ok(())
}

/// SMOVE from to member.
pub(super) fn smove(call: &mut Call) -> Result<(), Refusal> {
    let [from, to] = [1, 2].map(|at| call.row(call.arguments.get(at)));
    let member = call.arguments.get(3);
    call.lock(&[&from, &to])?;
    let mut is_moved = false;
    if let Some(mut set) = call.collection(&from, Type::Set)? {
        call.collection(&to, Type::Set)?;
        is_moved = is_in(call, &set, member)?;
        if is_moved && from != to {
            put(call, &to, &mut [member].into_iter())?;
            let element = call.element(&set, &[member]);
            call.store.delete(&element)?;
            set.head.len -= 1;
            call.put_head(&from, &set)?;
        }
    }
    call.reply().integer(i64::from(is_moved));
    Ok(())
}

pub(super) fn scard(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::Set)
}

fn is_in(call: &mut Call, set: &Collection, member: &[u8]) -> Result<bool, Refusal> {
    let element = call.element(set, &[member]);
    Ok(call.store.get(&element)?.is_some())
}

/// For each member that the request names, whether it is in the set.
fn named(call: &mut Call) -> Result<Vec<i64>, Refusal> {
    let row = call.row(call.arguments.get(1));
    let set = call.collection(&row, Type::Set)?;
    let mut members = call.arguments.from(2).iter();
    members.try_fold(Vec::new(), |mut found, member| {
        found.push(set.as_ref().map_or(Ok(false), |set| is_in(call, set, member))?.into());
        Ok(found)
    })
}

pub(super) fn sismember(call: &mut Call) -> Result<(), Refusal> {
    let found = named(call)?;
    call.reply().integer(found[0]);
    Ok(())
}

pub(super) fn smismember(call: &mut Call) -> Result<(), Refusal> {
    let found = named(call)?;
    call.reply().array(found.len());
    found.iter().for_each(|&is_in| call.reply().integer(is_in));
    Ok(())
}

pub(super) fn smembers(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let set = call.collection(&row, Type::Set)?;
    call.reply_elements(set.as_ref(), b"", u64::MAX, Reply::set, |reply, member, _| reply.bulk(member))
}

pub(super) fn sscan(call: &mut Call) -> Result<(), Refusal> {
    call.scan_elements(Type::Set, b"", |reply, member, _| {
        reply.bulk(member);
        Ok(1)
    })
}

/// How sets are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Both,
    Either,
    OnlyFirst,
}

/// The members of the combination of sets, at most `most` of them. Only these are in memory, not the sets.
fn combined(call: &mut Call, keys: Arguments, how: How, most: usize) -> Result<BTreeSet<Vec<u8>>, Refusal> {
    let mut sets = Vec::new();
    for key in keys.iter() {
        let row = call.row(key);
        sets.push(call.collection(&row, Type::Set)?);
    }
    let mut found = BTreeSet::new();
    if how == How::Both && sets.iter().any(Option::is_none) || how == How::OnlyFirst && sets[0].is_none() {
        return Ok(found);
    }
    let mut sets: Vec<Collection> = sets.into_iter().flatten().collect();
    if how == How::Both {
        sets.sort_by_key(|set| set.head.len);
    }
    let mut bytes = 0;
    let (walked, others) = if how == How::Either { (&sets[..], &[][..]) } else { sets.split_at(1) };
    for set in walked {
        call.each_element(set, &mut |call, member, _| {
            for other in others {
                if is_in(call, other, member)? != (how == How::Both) {
                    return Ok(true);
                }
            }
            if found.insert(member.to_vec()) {
                bytes += member.len();
                fits(bytes)?;
            }
            Ok(found.len() < most)
        })?;
    }
    Ok(found)
}

fn reply_combined(call: &mut Call, how: How) -> Result<(), Refusal> {
    let found = combined(call, call.arguments.from(1), how, usize::MAX)?;
    call.reply().set(found.len());
    found.iter().for_each(|member| call.reply().bulk(member));
    Ok(())
}

pub(super) fn sinter(call: &mut Call) -> Result<(), Refusal> {
    reply_combined(call, How::Both)
}

pub(super) fn sunion(call: &mut Call) -> Result<(), Refusal> {
    reply_combined(call, How::Either)
}

pub(super) fn sdiff(call: &mut Call) -> Result<(), Refusal> {
    reply_combined(call, How::OnlyFirst)
}

/// Replaces the first key with the combination of the others.
fn store_combined(call: &mut Call, how: How) -> Result<(), Refusal> {
    let keys = call.arguments.from(1);
    let rows: Vec<Vec<u8>> = keys.iter().map(|key| call.row(key)).collect();
    call.lock(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let found = combined(call, keys.from(1), how, usize::MAX)?;
    call.remove(&rows[0])?;
    if !found.is_empty() {
        put(call, &rows[0], &mut found.iter().map(Vec::as_slice))?;
    }
    call.reply().count(found.len());
    Ok(())
}

pub(super) fn sinterstore(call: &mut Call) -> Result<(), Refusal> {
    store_combined(call, How::Both)
}

pub(super) fn sunionstore(call: &mut Call) -> Result<(), Refusal> {
    store_combined(call, How::Either)
}

pub(super) fn sdiffstore(call: &mut Call) -> Result<(), Refusal> {
    store_combined(call, How::OnlyFirst)
}

/// SINTERCARD number key... [LIMIT most].
pub(super) fn sintercard(call: &mut Call) -> Result<(), Refusal> {
    let number = amount_or(call.arguments.get(1), NO_KEYS)? as usize;
    let keys = call.arguments.from(2);
    if number == 0 {
        return Err(NO_KEYS.into());
    }
    if number > keys.len() {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    let mut most = 0;
    let mut words = keys.from(number).iter();
    while let Some(word) = words.next() {
        if !word.eq_ignore_ascii_case(b"LIMIT") {
            return Err(SYNTAX.into());
        }
        most = amount_or(words.next().ok_or(SYNTAX)?, "ERR LIMIT can't be negative")? as usize;
    }
    let most = if most == 0 { usize::MAX } else { most };
    let found = combined(call, keys.to(number), How::Both, most)?;
    call.reply().count(found.len());
    Ok(())
}

const NO_KEYS: &str = "ERR numkeys should be greater than 0";

/// SPOP key [count]: neighbours in the order of the members, from a random place on.
pub(super) fn spop(call: &mut Call) -> Result<(), Refusal> {
    let count = match call.arguments.len() {
        2 => None,
        3 => Some(amount(call.arguments.get(2))?),
        _ => return Err(SYNTAX.into()),
    };
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut popped = Vec::new();
    if let Some(mut set) = call.collection(&row, Type::Set)? {
        let wanted = (count.unwrap_or(1) as u64).min(set.head.len);
        let (start, mut bytes) = ([call.server.chance() as u8], 0);
        // From a random first byte on, then the members before it.
        for part in [&start[..], &[]] {
            let left = wanted - popped.len() as u64;
            if left == 0 {
                break;
            }
            call.elements_from(&set, part, rows_of(left), &mut |member, _| {
                if part.is_empty() && member >= &start[..] {
                    return false;
                }
                popped.push(member.to_vec());
                bytes += member.len();
                (popped.len() as u64) < wanted && fits(bytes).is_ok()
            })?;
            fits(bytes)?;
        }
        if (popped.len() as u64) < wanted {
            return Err(Refusal::Foreign("ERR a set has fewer members than its size"));
        }
        // Nothing is changed before everything is read.
        for member in &popped {
            let element = call.element(&set, &[member.as_slice()]);
            call.store.delete(&element)?;
        }
        set.head.len -= wanted;
        if wanted > 0 {
            call.put_head(&row, &set)?;
        }
    }
    match count {
        None => call.reply().bulk_or_nil(popped.first().map(Vec::as_slice)),
        Some(_) => {
            call.reply().set(popped.len());
            popped.iter().for_each(|member| call.reply().bulk(member));
        }
    }
    Ok(())
}
