//! Checks of indexes that the engine maintains: each index has one entry per row, before and after every kind of
//! change to the rows. The oracle derives the index rows from their definition.

use super::act::{Act, group};
use super::draw::bytes;
use super::failure::Failure;
use super::subject::{Context, Setup, Subject};
use super::{Found, Halt, skip};
use kvdyno_core::engine::abi::*;
use kvdyno_core::generator::Random;

/// Keyspaces of rows: rows of the first are indexed, rows of the second are not.
const INDEXED: u16 = 0;
const PLAIN: u16 = 1;
/// Keyspaces of index rows, of which the second is clustering.
const BY_FEW: u16 = 2;
const BY_MANY: u16 = 3;
/// The indexed bytes end here.
const LEAST_VALUE: usize = 12;

/// Two indexes: one over two bytes that many rows share, one over eight bytes that overlap them.
fn definitions() -> Vec<kv_index> {
    let index = |index_keyspace, from, length, clustering| kv_index {
        keyspace: INDEXED,
        index_keyspace,
        from,
        length,
        clustering,
    };
    vec![index(BY_FEW, 3, 2, 0), index(BY_MANY, 4, 8, 1)]
}

fn subject<'a>(context: &Context<'a>) -> Result<Subject<'a>, Halt> {
    if !context.has(KV_INDEXES) {
        return skip("not declared");
    }
    if !context.has(KV_KEYSPACES) {
        return Err("rule 11: indexes need their own keyspaces, but keyspaces are not declared".into());
    }
    let setup = Setup { keyspaces: 4, indexes: definitions(), ..context.setup()? };
    Ok(context.open(setup)?)
}

fn keys(context: &Context<'_>) -> Vec<Vec<u8>> {
    (0..30).map(|number| context.key(&format!("k{number:02}"))).collect()
}

/// Few different bytes in the indexed places, so that rows share them and overwrites change only one index.
fn value(random: &mut Random) -> Vec<u8> {
    let length = LEAST_VALUE + random.below(60) as usize;
    let mut value = bytes(random, length);
    for byte in &mut value[..LEAST_VALUE] {
        *byte %= 3;
    }
    value
}

/// One write to a row of either keyspace.
fn write(context: &Context<'_>, keys: &[Vec<u8>], random: &mut Random) -> Act {
    let key = &keys[random.below(keys.len() as u64) as usize];
    let act = match random.below(6) {
        0 | 1 if context.has(KV_CAN_DELETE) => Act::delete(key),
        2 if context.has(KV_CAN_NEW) => Act::put(key, &value(random)).with(KV_NEW),
        _ => Act::put(key, &value(random)),
    };
    act.within(if random.below(4) == 0 { PLAIN } else { INDEXED })
}

/// Puts, overwrites and deletes, single and joined; reads of index rows in every way that the engine supports.
pub(super) fn indexes(context: &Context<'_>) -> Found {
    let mut subject = subject(context)?;
    let keys = keys(context);
    let mut random = context.random(30);
    let budget = context.budget();
    for round in 0..40 {
        let count = 1 + random.below(20) as usize;
        let writes = (0..count).map(|_| write(context, &keys, &mut random)).collect();
        let acts = if round % 3 == 0 { group(writes, 0) } else { writes };
        subject.run(&acts)?;
        subject.compare(&keys).map_err(|failure| failure.at(format!("round {round}")))?;
        read_index(context, &mut subject, &mut random)?;
        if budget.is_spent() {
            break;
        }
    }
    // A row that is put again unchanged keeps its place.
    let row = Act::put(&keys[0], &value(&mut random));
    subject.run(&[row.clone(), row.clone(), row])?;
    subject.compare(&keys)?;
    if subject.is_kept() {
        subject.reopen()?;
        subject.compare(&keys).map_err(|failure| failure.at("after close and reopen"))?;
        // The definitions still apply to the reopened database.
        let writes: Vec<_> = (0..20).map(|_| write(context, &keys, &mut random)).collect();
        subject.run(&writes)?;
        subject.compare(&keys)?;
    }
    Ok(subject.close()?)
}

/// Scans by an index: from bytes that rows have, in both directions, with limits, bounds, prefixes and pieces.
fn read_index(context: &Context<'_>, subject: &mut Subject<'_>, random: &mut Random) -> Result<(), Failure> {
    if !context.has(KV_ORDERED) {
        return Ok(());
    }
    for space in [BY_FEW, BY_MANY] {
        let start = bytes(random, 2).iter().map(|byte| byte % 3).collect::<Vec<u8>>();
        let scan = Act::scan(&start).within(space);
        let mut acts = vec![scan.clone(), scan.clone().rows(3), scan.clone().to(&[start[0], 2])];
        if context.has(KV_CAN_REVERSE) {
            acts.extend([scan.clone().with(KV_REVERSE), scan.clone().with(KV_REVERSE).rows(2)]);
        }
        if context.has(KV_CAN_PREFIX) {
            acts.push(Act::scan(&[]).within(space).with(KV_PREFIX).to(&start));
        }
        subject.run_all(&acts).map_err(|failure| failure.at(format!("index keyspace {space}")))?;
        subject.scan_all(scan.room(100))?;
    }
    Ok(())
}

/// Transactions change rows and index rows together, or not at all.
pub(super) fn atomic(context: &Context<'_>) -> Found {
    let mut subject = subject(context)?;
    if !context.has(KV_TRANSACTION) {
        return skip("no transactions");
    }
    let keys = keys(context);
    let mut random = context.random(31);
    for round in 0..20 {
        let count = 2 + random.below(20) as usize;
        let mut writes: Vec<Act> = (0..count).map(|_| write(context, &keys, &mut random)).collect();
        // Whether a transaction may span two keyspaces of rows is a separate check.
        writes.iter_mut().for_each(|act| act.keyspace = INDEXED);
        let at = random.below(count as u64) as usize;
        let is_broken = context.has(KV_TRANSACTION_READS) && round % 2 == 1;
        if is_broken {
            // If the key exists, a get whose buffer is too small rolls everything back; otherwise it changes nothing.
            let key = &keys[random.below(keys.len() as u64) as usize];
            writes.insert(at, Act::get(key).within(INDEXED).room(LEAST_VALUE - 1));
        }
        subject.run(&group(writes, KV_ATOMIC))?;
        subject.compare(&keys).map_err(|failure| failure.at(format!("round {round}")))?;
    }
    if subject.is_kept() {
        subject.reopen()?;
        subject.compare(&keys)?;
    }
    Ok(subject.close()?)
}
