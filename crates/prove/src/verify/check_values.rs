//! Checks of get and put: reads return the written bytes, and nothing else is written.

use super::act::{Act, group, shown};
use super::draw::bytes;
use super::failure::{CallError, Failure};
use super::model::expect;
use super::subject::{BATCH, Context, Setup, Subject, VALUE_BYTES, open_database};
use super::{Found, skip};
use crate::machine::MachineError;
use kvdyno_core::engine::Work;
use kvdyno_core::engine::abi::*;

/// Put, get, and an absent key.
pub(super) fn basics(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let mut random = context.random(1);
    let absent = Act::get(&context.key("absent"));
    subject.run(std::slice::from_ref(&absent))?;
    for length in [1, 7, 8, 9, 100, 1000, 4096] {
        let key = context.key(&format!("k{length}"));
        let value = bytes(&mut random, length);
        subject.run(&[Act::put(&key, &value), Act::get(&key)])?;
        subject.run(&[Act::get(&key), absent.clone()])?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// A value of 0 bytes is a value: it is found, replaced and deleted like others, and it survives. An engine that has no such
/// values says so, and refuses them.
pub(super) fn empty(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let keys: Vec<_> = ["e0", "e1", "e2", "e3"].iter().map(|text| context.key(text)).collect();
    let [first, second, third, fourth] = &keys[..] else { return Err("four keys".into()) };
    let empty = |key: &[u8]| Act::put(key, &[]);
    if context.has(KV_NO_EMPTY_VALUES) {
        let answer = subject.one(empty(first))?;
        expect(&answer, KV_TOO_LARGE)
            .map_err(|failure| failure.at("driver.h, KV_NO_EMPTY_VALUES: put of a value of 0 bytes"))?;
        subject.run(&[Act::put(second, b"1"), Act::get(first), Act::get(second)])?;
        subject.compare(&keys)?;
        return Ok(subject.close()?);
    }
    let hint = |failure: Failure| {
        failure
            .with(" (values of 0 bytes; an engine that has none declares KV_NO_EMPTY_VALUES, see driver.h)")
    };
    subject.run(&[empty(first), Act::get(first), Act::get(first).room(0)]).map_err(hint)?;
    subject.run(&group(vec![empty(second), Act::put(third, b"bytes")], 0)).map_err(hint)?;
    let gets = keys.iter().map(|key| Act::get(key)).collect();
    subject.run(&group(gets, 0)).map_err(hint)?;
    subject.compare(&keys).map_err(hint)?;
    if context.has(KV_OVERWRITE) {
        subject
            .run(&[Act::put(first, b"x"), empty(third), Act::get(first), Act::get(third)])
            .map_err(hint)?;
        subject.run(&[empty(first), empty(first), Act::get(first)]).map_err(hint)?;
    }
    if context.has(KV_CAN_NEW) {
        subject.run(&[Act::put(first, b"new").with(KV_NEW), empty(fourth).with(KV_NEW)]).map_err(hint)?;
        subject.run(&[empty(fourth).with(KV_NEW), Act::get(first), Act::get(fourth)]).map_err(hint)?;
    }
    if context.has(KV_TRANSACTION) {
        let more = [context.key("t0"), context.key("t1")];
        let mut acts = vec![empty(&more[0]), Act::put(&more[1], b"1")];
        if context.has(KV_TRANSACTION_READS) {
            acts.push(Act::get(&more[0]));
        }
        subject.run(&group(acts, KV_ATOMIC)).map_err(hint)?;
    }
    if context.has(KV_CAN_TOUCH) {
        subject.run(&[Act::get(second).with(KV_TOUCH).room(0)]).map_err(hint)?;
    }
    if context.has(KV_CAN_DELETE) {
        subject.run(&[Act::delete(second), Act::get(second)]).map_err(hint)?;
    }
    subject.compare(&keys).map_err(hint)?;
    subject.database()?.maintain(Work::Flush).map_err(CallError::of("flush"))?;
    subject.compare(&keys).map_err(|failure| hint(failure.at("after a flush")))?;
    if subject.is_kept() {
        subject.reopen().map_err(hint)?;
        subject.compare(&keys).map_err(|failure| hint(failure.at("after close and reopen")))?;
    }
    Ok(subject.close()?)
}

/// Rule 4: for a buffer that is too small, the driver reports the needed size and changes nothing.
pub(super) fn short_get(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let mut random = context.random(2);
    let key = context.key("row");
    let value = bytes(&mut random, 5000);
    // Fills the slot with bytes other than zero, so that a write past the value is detected.
    let filler = context.key("filler");
    subject.run(&[Act::put(&key, &value), Act::put(&filler, &bytes(&mut random, 8000))])?;
    subject.run(&[Act::get(&filler)])?;
    for room in [0, 1, 100, 4999, 5000, 5001] {
        let answer = subject.run(&[Act::get(&key).room(room)])?.remove(0);
        if answer.status == KV_SHORT {
            subject.run(&[Act::get(&key).room(answer.needed as usize)])?;
        }
        subject.run(&[Act::get(&filler)])?;
    }
    Ok(subject.close()?)
}

/// Rule 5: the values of one call are copies, and do not change after it.
pub(super) fn independent(context: &Context<'_>) -> Found {
    let setup = Setup { value_bytes: 1024, out_bytes: 1024, ..context.setup()? };
    let mut subject = context.open(setup)?;
    let mut random = context.random(3);
    let keys: Vec<_> = (0..BATCH / 2).map(|number| context.key(&format!("k{number}"))).collect();
    let puts: Vec<_> = keys.iter().map(|key| Act::put(key, &bytes(&mut random, 1000))).collect();
    subject.run(&puts)?;
    for _ in 0..4 {
        let gets: Vec<_> = keys.iter().map(|key| Act::get(key)).collect();
        let answers = subject.run(&gets)?;
        subject.caller()?.check_untouched()?;
        // Delivered bytes must not be a window into memory that other ops change.
        let others: Vec<_> = keys.iter().map(|key| Act::put(key, &bytes(&mut random, 900))).collect();
        let call = subject.caller()?.call_from(BATCH / 2, &others, None)?;
        subject.model.judge(&others, &call.answers)?;
        subject.caller()?.check_untouched()?;
        drop(answers);
        subject.compare(&[])?;
        subject.caller()?.check_untouched()?;
    }
    Ok(subject.close()?)
}

/// Rule 5: digests of bytes in place.
pub(super) fn touch(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_TOUCH) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let mut random = context.random(4);
    for length in [1, 7, 8, 9, 15, 16, 1000, 4099] {
        let key = context.key(&format!("k{length}"));
        let value = bytes(&mut random, length);
        subject.run(&[Act::put(&key, &value), Act::get(&key).with(KV_TOUCH)])?;
        subject.run(&[Act::get(&key).with(KV_TOUCH).room(0), Act::get(&key)])?;
    }
    subject.run(&[Act::get(&context.key("absent")).with(KV_TOUCH)])?;
    subject.caller()?.check_untouched()?;
    Ok(subject.close()?)
}

/// The longest key that a workload may have and the engine declares, bytes.
fn largest_key(context: &Context<'_>) -> usize {
    const LONGEST: usize = 64 << 10;
    if context.has(KV_FIXED_KEY_SIZE) {
        return context.key("").len();
    }
    (context.engine.key_size_max() as usize).min(LONGEST)
}

/// Keys up to the declared limit.
pub(super) fn large(context: &Context<'_>) -> Found {
    let most = largest_key(context);
    let value_bytes = context.facts.value_bytes;
    let setup = Setup {
        ops: 4,
        key_bytes: most,
        value_bytes,
        out_bytes: VALUE_BYTES + most + 64,
        ..context.setup()?
    };
    let mut subject = context.open(setup)?;
    let mut random = context.random(5);
    let sizes: Vec<usize> =
        if context.has(KV_FIXED_KEY_SIZE) { vec![16; 3] } else { vec![1, most / 2, most - 1, most] };
    for size in sizes {
        let key = bytes(&mut random, size.max(1));
        let small = bytes(&mut random, 10);
        let what = |failure: Failure| failure.at(format!("key of {size} bytes"));
        subject.run(&[Act::put(&key, &small), Act::get(&key)]).map_err(what)?;
        let large = bytes(&mut random, value_bytes);
        let both = |failure: Failure| failure.at(format!("key of {size} bytes, value of {value_bytes}"));
        if context.has(KV_OVERWRITE) {
            subject.run(&[Act::put(&key, &large), Act::get(&key)]).map_err(both)?;
        }
        if context.has(KV_ORDERED) {
            let scan = Act::scan(&key);
            subject.run(&[scan]).map_err(|failure| failure.at(format!("scan from a key of {size} bytes")))?;
        }
    }
    subject.compare(&[])?;
    if subject.is_kept() {
        subject.reopen()?;
        subject.compare(&[])?;
    }
    Ok(subject.close()?)
}

/// Rule 10: a row with the longest key and the largest value is stored; a larger value is stored or refused.
pub(super) fn largest_value(context: &Context<'_>) -> Found {
    // More is not tried, so that a check takes little memory.
    const TRIED: usize = 16 << 20;
    let key_bytes = largest_key(context);
    let of = |value_bytes: usize| -> Result<Setup, MachineError> {
        let room = value_bytes + key_bytes + 64;
        Ok(Setup { ops: 1, key_bytes, value_bytes, out_bytes: room, ..context.setup()? })
    };
    // The limit may depend on what is requested.
    let asked = open_database(context.engine, &of(TRIED)?)?;
    let declared = asked.effective().value_size_max();
    asked.close().map_err(CallError::of("close"))?;
    let most = declared.map_or(TRIED, |limit| TRIED.min(limit as usize));
    context.note(match declared {
        Some(limit) if limit <= TRIED as u64 => format!("the largest value has {limit} bytes"),
        Some(limit) => format!("values of {TRIED} bytes were tried, and {limit} are declared"),
        None => format!("values of {TRIED} bytes were tried, and no limit is declared"),
    });
    let mut subject = context.open(of(most)?)?;
    let mut random = context.random(7);
    let key = bytes(&mut random, key_bytes);
    let what = |failure: Failure| failure.at(format!("key of {key_bytes} bytes, value of {most}"));
    for act in [Act::put(&key, &bytes(&mut random, most)), Act::get(&key)] {
        subject.run(&[act]).map_err(what)?;
    }
    if context.has(KV_OVERWRITE) {
        for act in [Act::put(&key, &bytes(&mut random, most)), Act::get(&key)] {
            subject.run(&[act]).map_err(|failure| what(failure).at("overwritten"))?;
        }
    }
    if context.has(KV_ORDERED) {
        subject.scan_all(Act::scan(&key)).map_err(|failure| what(failure).at("scan"))?;
    }
    if subject.is_kept() {
        subject.reopen()?;
    }
    subject.compare(&[]).map_err(what)?;
    subject.close()?;
    if declared.is_none_or(|limit| limit >= TRIED as u64) {
        return Ok(());
    }
    let mut subject = context.open(of(most + 1)?)?;
    let more = Act::put(&key, &bytes(&mut random, most + 1));
    let answer = subject.one(more.clone())?;
    if answer.status != KV_TOO_LARGE {
        let over =
            |failure: Failure| failure.at(format!("a value of {} bytes, over the declared limit", most + 1));
        subject.model.judge(&[more], &[answer]).map_err(over)?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// A key over the declared limit, and an empty key, are refused or stored; never accepted and lost.
pub(super) fn too_large_key(context: &Context<'_>) -> Found {
    let limit = context.engine.key_size_max() as usize;
    let is_limited = limit < 65_536 && !context.has(KV_FIXED_KEY_SIZE);
    let key_bytes = if is_limited { limit + 1 } else { context.facts.key_bytes };
    let mut subject = context.open(Setup { ops: 4, key_bytes, ..context.setup()? })?;
    subject.run(&[Act::put(&context.key("row"), b"stays")])?;
    if is_limited {
        let key = vec![b'x'; limit + 1];
        let answer = subject.one(Act::put(&key, b"v"))?;
        expect(&answer, KV_TOO_LARGE)
            .map_err(|failure| failure.at(format!("rule 4: put of a key of {} bytes", limit + 1)))?;
        let answer = subject.one(Act::get(&key))?;
        if !matches!(answer.status, KV_NOT_FOUND | KV_TOO_LARGE) {
            return Err(format!("get of a refused key ({}) found a value", shown(&key)).into());
        }
    }
    if !context.has(KV_FIXED_KEY_SIZE) {
        let empty = Act::put(&[], b"no key");
        let answer = subject.one(empty.clone())?;
        if answer.status == KV_OK {
            subject.model.judge(&[empty], &[answer])?;
            subject.compare(&[])?;
            subject.database()?.maintain(Work::Flush).map_err(CallError::of("flush"))?;
            subject.compare(&[]).map_err(|failure| failure.at("a row with an empty key, after a flush"))?;
            if subject.is_kept() {
                subject.reopen()?;
                subject
                    .compare(&[])
                    .map_err(|failure| failure.at("a row with an empty key, after close and reopen"))?;
            }
        } else {
            context.note("empty keys are refused".into());
        }
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// Many bytes are read again and again, to detect faults that occur once in a million reads.
pub(super) fn volume(context: &Context<'_>) -> Found {
    let length = context.facts.value_bytes.min(8 << 10);
    let mut subject = context.open(Setup { value_bytes: length, out_bytes: length, ..context.setup()? })?;
    let mut random = context.random(6);
    let keys: Vec<_> = (0..BATCH).map(|number| context.key(&format!("v{number}"))).collect();
    let puts: Vec<_> = keys.iter().map(|key| Act::put(key, &bytes(&mut random, length))).collect();
    subject.run_all(&puts)?;
    let gets: Vec<_> = keys.iter().map(|key| Act::get(key)).collect();
    read_again(context, &mut subject, &gets, context.effort.ops / 50)?;
    Ok(subject.close()?)
}

fn read_again(context: &Context<'_>, subject: &mut Subject<'_>, gets: &[Act], rounds: u64) -> Found {
    let budget = context.budget();
    for round in 0..rounds.max(8) {
        subject
            .run(gets)
            .map_err(|failure| failure.at(format!("round {round} of reading {} rows", gets.len())))?;
        if budget.is_spent() {
            context
                .note(format!("volume: the time limit was reached after {} of {rounds} rounds", round + 1));
            break;
        }
    }
    Ok(())
}
