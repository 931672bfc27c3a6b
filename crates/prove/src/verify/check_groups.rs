//! Checks of joined groups and transactions: the same effect as single ops, one pair of stamps, all or nothing.

use super::act::{Act, Reply, group, status_name};
use super::draw::bytes;
use super::failure::Failure;
use super::model::expect;
use super::subject::{BATCH, Context, Setup, Subject};
use super::{Found, skip};
use kvdyno_core::engine::abi::*;
use kvdyno_core::generator::Random;

fn keys(context: &Context<'_>, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| context.key(&format!("k{number:02}"))).collect()
}

/// Rule 6: a group of writes has the same effect as its ops one by one; each op has its own status.
pub(super) fn joined(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let keys = keys(context, BATCH);
    let mut random = context.random(13);
    let puts: Vec<_> = keys.iter().map(|key| Act::put(key, &bytes(&mut random, 50))).collect();
    subject.run(&group(puts[..2].to_vec(), 0))?;
    subject.run(&group(puts, 0))?;
    subject.compare(&[])?;
    if context.has(KV_CAN_DELETE) {
        let deletes: Vec<_> = keys.iter().step_by(2).map(|key| Act::delete(key)).collect();
        subject.run(&group(deletes.clone(), 0))?;
        subject.run(&group(deletes, 0))?;
        subject.compare(&keys)?;
    }
    if context.has(KV_CAN_NEW) {
        let news: Vec<_> = keys[..10].iter().map(|key| Act::put(key, b"new").with(KV_NEW)).collect();
        subject.run(&group(news, 0))?;
    }
    // Two groups with a single op between them, in one call.
    let mut acts = group(keys[..3].iter().map(|key| Act::put(key, b"one")).collect(), 0);
    acts.push(Act::get(&keys[0]));
    acts.extend(group(keys[2..6].iter().map(|key| Act::put(key, b"two")).collect(), 0));
    subject.run(&acts)?;
    // A last op with KV_JOIN has nothing to be joined to.
    subject.run(&[Act::put(&keys[7], b"alone").with(KV_JOIN)])?;
    subject.compare(&keys)?;
    Ok(subject.close()?)
}

/// Joined gets: present keys, absent keys, and one whose buffer is too small.
pub(super) fn multi_get(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let keys = keys(context, BATCH);
    let mut random = context.random(14);
    let puts: Vec<_> = keys.iter().step_by(3).map(|key| Act::put(key, &bytes(&mut random, 100))).collect();
    subject.run(&puts)?;
    for _ in 0..20 {
        let count = 2 + random.below(BATCH as u64 - 1) as usize;
        let gets = (0..count).map(|_| Act::get(&keys[random.below(BATCH as u64) as usize])).collect();
        subject.run(&group(gets, 0))?;
    }
    let short = vec![Act::get(&keys[0]), Act::get(&keys[3]).room(20), Act::get(&keys[1]), Act::get(&keys[6])];
    subject.run(&group(short, 0))?;
    subject.compare(&keys)?;
    Ok(subject.close()?)
}

/// A transaction of writes: all of them are present after it.
pub(super) fn transaction(context: &Context<'_>) -> Found {
    if !context.has(KV_TRANSACTION) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let keys = keys(context, BATCH);
    let mut random = context.random(15);
    for round in 0..10 {
        let acts = transaction_acts(context, &keys, &mut random, round);
        subject.run(&group(acts, KV_ATOMIC))?;
        subject.compare(&keys)?;
    }
    // The same key many times: the last write counts.
    let same = (0..20_u8).map(|number| Act::put(&keys[0], &[number; 9])).collect();
    if context.has(KV_OVERWRITE) {
        subject.run(&group(same, KV_ATOMIC))?;
    }
    if subject.is_kept() {
        subject.reopen()?;
    }
    subject.compare(&keys)?;
    Ok(subject.close()?)
}

fn transaction_acts(context: &Context<'_>, keys: &[Vec<u8>], random: &mut Random, round: u8) -> Vec<Act> {
    let count = 2 + random.below(BATCH as u64 - 1) as usize;
    let one = |_| {
        let key = &keys[random.below(BATCH as u64) as usize];
        let is_delete = context.has(KV_CAN_DELETE) && random.below(3) == 0;
        if is_delete { Act::delete(key) } else { Act::put(key, &[round; 40]) }
    };
    (0..count).map(one).collect()
}

/// A transaction over two keyspaces is executed or refused as a whole.
pub(super) fn transaction_keyspaces(context: &Context<'_>) -> Found {
    if !context.has(KV_TRANSACTION) || !context.has(KV_KEYSPACES) {
        return skip("no transactions, or only one keyspace");
    }
    let mut subject = context.open(Setup { keyspaces: 2, ..context.setup()? })?;
    let keys = keys(context, BATCH);
    let mut random = context.random(17);
    for round in 0..10 {
        let mut acts = transaction_acts(context, &keys, &mut random, round);
        acts.iter_mut().for_each(|act| act.keyspace = random.below(2) as u16);
        (acts[0].keyspace, acts[1].keyspace) = (0, 1);
        let acts = group(acts, KV_ATOMIC);
        let answers = subject.call(&acts)?;
        if answers.iter().all(|answer| answer.status == KV_UNSUPPORTED) {
            subject.compare(&keys)?;
            return skip("transactions are limited to one keyspace");
        }
        subject.model.judge(&acts, &answers)?;
        subject.compare(&keys)?;
    }
    Ok(subject.close()?)
}

/// Merges in a transaction are executed or refused with it.
pub(super) fn transaction_merge(context: &Context<'_>) -> Found {
    if !context.has(KV_TRANSACTION) || !context.has(KV_MERGE_ADD | KV_MERGE_APPEND) {
        return skip("no transactions, or no merges");
    }
    let mut subject = context.subject()?;
    let keys = keys(context, 4);
    for round in 0..4_u8 {
        let mut acts = vec![Act::put(&keys[0], &[round; 9])];
        if context.has(KV_MERGE_ADD) {
            acts.extend([Act::add(&keys[1], 1 << (9 * round)), Act::add(&keys[1], 1)]);
        }
        if context.has(KV_MERGE_APPEND) {
            acts.push(Act::append(&keys[2], &[round; 3]));
        }
        let acts = group(acts, KV_ATOMIC);
        let answers = subject.call(&acts)?;
        if answers.iter().all(|answer| answer.status == KV_UNSUPPORTED) {
            subject.compare(&keys)?;
            return skip("transactions allow only puts and deletes");
        }
        subject.model.judge(&acts, &answers)?;
        subject.compare(&keys)?;
    }
    Ok(subject.close()?)
}

/// Gets inside a transaction see its writes.
pub(super) fn transaction_reads(context: &Context<'_>) -> Found {
    if !context.has(KV_TRANSACTION_READS) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let keys = keys(context, 8);
    subject.run(&[Act::put(&keys[0], b"old"), Act::put(&keys[1], b"old")])?;
    let mut acts =
        vec![Act::get(&keys[0]), Act::put(&keys[0], b"newer"), Act::get(&keys[0]), Act::get(&keys[2])];
    acts.extend([Act::put(&keys[2], b"fresh"), Act::get(&keys[2]), Act::get(&keys[1])]);
    if context.has(KV_CAN_DELETE) {
        acts.extend([Act::delete(&keys[1]), Act::get(&keys[1])]);
    }
    subject.run(&group(acts, KV_ATOMIC))?;
    subject.compare(&keys)?;
    subject.run(&group(vec![Act::get(&keys[0]), Act::get(&keys[3])], KV_ATOMIC))?;
    Ok(subject.close()?)
}

/// A transaction that cannot be executed has no effect; an answer such as KV_EXISTS does not stop it.
pub(super) fn failure(context: &Context<'_>) -> Found {
    if !context.has(KV_TRANSACTION) {
        return skip("not declared");
    }
    let limit = context.engine.key_size_max() as usize;
    let is_limited = limit < 65_536 && !context.has(KV_FIXED_KEY_SIZE);
    let key_bytes = if is_limited { limit + 1 } else { context.facts.key_bytes };
    let mut subject = context.open(Setup { key_bytes, ..context.setup()? })?;
    let keys = keys(context, 12);
    let puts: Vec<_> = keys[..6].iter().map(|key| Act::put(key, &[1; 100])).collect();
    subject.run(&puts)?;
    if context.has(KV_CAN_NEW) {
        subject.run(&group(answered_acts(context, &keys), KV_ATOMIC))?;
        subject.compare(&keys)?;
    }
    let mut tried = false;
    let writes = |place: usize, culprit: Act| {
        let mut acts =
            vec![Act::put(&keys[9], b"x"), Act::put(&keys[0], &[2; 100]), Act::put(&keys[10], b"y")];
        if context.has(KV_CAN_DELETE) {
            acts.push(Act::delete(&keys[1]));
        }
        acts.insert(place.min(acts.len()), culprit);
        group(acts, KV_ATOMIC)
    };
    for place in [0, 2, 9] {
        if context.has(KV_TRANSACTION_READS) {
            // On a row that the transaction does not change.
            subject.run(&writes(place, Act::get(&keys[3]).room(10)))?;
            subject.compare(&keys)?;
            tried = true;
        }
        if is_limited {
            refused(&mut subject, &writes(place, Act::put(&vec![b'x'; limit + 1], b"v")), "a too large key")?;
            tried = true;
        }
        if context.has(KV_KEYSPACES) {
            let space = Act::put(&keys[11], b"v").within(7);
            refused(&mut subject, &writes(place, space), "a keyspace not below `config.keyspaces`")?;
            tried = true;
        }
        subject.compare(&keys)?;
    }
    if !tried {
        context.note("transaction-failure: no known way to make a transaction of this engine fail".into());
    }
    if subject.is_kept() {
        subject.reopen()?;
        subject.compare(&keys)?;
    }
    Ok(subject.close()?)
}

/// Ops whose answers are KV_EXISTS and KV_NOT_FOUND, mixed with ops that change something.
fn answered_acts(context: &Context<'_>, keys: &[Vec<u8>]) -> Vec<Act> {
    let mut acts = vec![Act::put(&keys[7], b"a"), Act::put(&keys[0], b"no").with(KV_NEW)];
    acts.push(Act::put(&keys[8], b"b").with(KV_NEW));
    if context.has(KV_CAN_DELETE) {
        acts.push(Act::delete(&context.key("absent")));
    }
    acts
}

/// A transaction that must fail as a whole.
fn refused(subject: &mut Subject<'_>, acts: &[Act], reason: &str) -> Result<Vec<Reply>, Failure> {
    let answers = subject.call(acts)?;
    for (act, answer) in acts.iter().zip(&answers) {
        if answer.is_answer() {
            let status = status_name(answer.status);
            return Err(Failure::Broken(format!(
                "rule 6: a transaction with {reason} must fail, but {act} has status {status}"
            )));
        }
    }
    Ok(answers)
}

/// Transactions over several calls: committed or aborted, and invisible to others until then.
pub(super) fn long_transaction(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_LONG_TRANSACTION) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let keys = keys(context, 4);
    subject.run(&[Act::put(&keys[0], b"before")])?;
    for (end, is_kept) in [(KV_ABORT, false), (KV_COMMIT, true)] {
        let before = subject.model.clone();
        expect(&subject.one(Act::control(KV_BEGIN))?, KV_OK)?;
        subject.run(&[Act::put(&keys[0], b"inside"), Act::put(&keys[1], b"more")])?;
        subject.run(&[Act::get(&keys[0]), Act::get(&keys[1]), Act::get(&keys[2])])?;
        expect(&subject.one(Act::control(end))?, KV_OK)?;
        if !is_kept {
            subject.model = before;
        }
        subject.compare(&keys)?;
    }
    Ok(subject.close()?)
}
