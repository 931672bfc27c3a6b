//! Sets: members, one row each.

use super::access::amount;
use crate::resp::command::{Call, Refusal};
use crate::resp::record::Type;

impl Call<'_, '_> {
    /// Removes the members (or fields) that the request names, from its third word on; returns how many existed.
    pub fn remove_members(&mut self, kind: Type) -> Result<i64, Refusal> {
        let row = self.row(self.arguments.get(1));
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
    pub fn reply_length(&mut self, kind: Type) -> Result<(), Refusal> {
        let row = self.row(self.arguments.get(1));
        let length = self.collection(&row, kind)?.map_or(0, |found| found.head.len);
        self.reply().integer(length as i64);
        Ok(())
    }
}

pub fn sadd(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut set = call.collection_to_fill(&row, Type::Set)?;
    let before = set.head.len;
    for member in call.arguments.from(2).iter() {
        let element = call.element(&set, &[member]);
        if call.store.get(&element)?.is_none() {
            // Not every engine accepts an empty value.
            call.store.put(&element, vec![1])?;
            set.head.len += 1;
        }
    }
    if set.head.len > before {
        call.put_head(&row, &set)?;
    }
    call.reply().integer((set.head.len - before) as i64);
    Ok(())
}

pub fn srem(call: &mut Call) -> Result<(), Refusal> {
    let gone = call.remove_members(Type::Set)?;
    call.reply().integer(gone);
    Ok(())
}

pub fn scard(call: &mut Call) -> Result<(), Refusal> {
    call.reply_length(Type::Set)
}

pub fn sismember(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let is_in = match call.collection(&row, Type::Set)? {
        Some(set) => {
            let element = call.element(&set, &[call.arguments.get(2)]);
            call.store.get(&element)?.is_some()
        }
        None => false,
    };
    call.reply().integer(i64::from(is_in));
    Ok(())
}

pub fn smembers(call: &mut Call) -> Result<(), Refusal> {
    let row = call.row(call.arguments.get(1));
    let mut members = Vec::new();
    if let Some(set) = call.collection(&row, Type::Set)? {
        call.elements(&set, b"", 0, &mut |member, _| {
            members.push(member.to_vec());
            true
        })?;
    }
    call.reply().set(members.len());
    members.iter().for_each(|member| call.reply().bulk(member));
    Ok(())
}

/// SPOP key [count]: members near random places of the order; those after large gaps are more likely.
pub fn spop(call: &mut Call) -> Result<(), Refusal> {
    let count = match call.arguments.len() {
        2 => None,
        3 => Some(amount(call.arguments.get(2))?),
        _ => return Err(super::access::SYNTAX.into()),
    };
    let row = call.row(call.arguments.get(1));
    call.lock(&[&row])?;
    let mut popped = Vec::new();
    if let Some(mut set) = call.collection(&row, Type::Set)? {
        let wanted = (count.unwrap_or(1) as u64).min(set.head.len);
        while (popped.len() as u64) < wanted {
            let mut found = None;
            let start = [call.server.chance() as u8];
            // From a random first byte on, otherwise from the first member.
            for part in [&start[..], &[]] {
                call.elements_from(&set, part, 1, &mut |member, _| {
                    found = Some(member.to_vec());
                    false
                })?;
                if found.is_some() {
                    break;
                }
            }
            let member = found.ok_or("ERR a set has fewer members than its size")?;
            let element = call.element(&set, &[&member]);
            call.store.delete(&element)?;
            set.head.len -= 1;
            popped.push(member);
        }
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
