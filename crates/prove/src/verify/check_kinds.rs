//! Checks of the kinds of writes: overwrite, insert only, delete, merge, in keyspaces and collections, with a time to
//! live.

use super::act::{Act, status_name};
use super::failure::Failure;
use super::model::expect;
use super::subject::{Context, Setup, Subject};
use super::{Found, skip};
use kvdyno_core::engine::abi::*;
use std::time::{Duration, Instant};

/// A second put replaces the value with a shorter or longer one; without the capability it changes nothing.
pub(super) fn overwrite(context: &Context<'_>) -> Found {
    let mut subject = context.subject()?;
    let key = context.key("row");
    for length in [10_usize, 10, 3, 900, 4000, 4000, 1] {
        let value = vec![length as u8; length];
        subject.run(&[Act::put(&key, &value), Act::get(&key)])?;
        subject.run(&[Act::get(&key)])?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// Rule 4: KV_NEW inserts, and reports an existing row without changing it.
pub(super) fn new(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_NEW) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let (key, other) = (context.key("row"), context.key("other"));
    let new = |key: &[u8], value: &[u8]| Act::put(key, value).with(KV_NEW);
    subject.run(&[new(&key, b"first"), new(&key, b"second"), Act::get(&key)])?;
    subject.run(&[new(&key, b"third"), Act::get(&key), new(&other, b"one")])?;
    if context.has(KV_CAN_DELETE) {
        subject.run(&[Act::delete(&key), new(&key, b"again"), Act::get(&key)])?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// A deleted row is gone, at once and later, and can be written again.
pub(super) fn delete(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_DELETE) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let keys: Vec<_> = (0..40).map(|number| context.key(&format!("k{number:02}"))).collect();
    let puts: Vec<_> = keys.iter().map(|key| Act::put(key, key)).collect();
    subject.run(&puts)?;
    subject.run(&[Act::delete(&context.key("absent")), Act::get(&context.key("absent"))])?;
    for (number, key) in keys.iter().enumerate() {
        if number.is_multiple_of(2) {
            subject.run(&[Act::delete(key), Act::get(key), Act::delete(key)])?;
        }
        if number.is_multiple_of(4) && context.has(KV_OVERWRITE) {
            subject.run(&[Act::put(key, b"back"), Act::get(key)])?;
        }
    }
    subject.compare(&keys)?;
    subject.renew_session()?;
    subject.compare(&keys)?;
    Ok(subject.close()?)
}

/// Counters of eight bytes, little-endian; an absent one is 0; sums wrap around.
pub(super) fn merge_add(context: &Context<'_>) -> Found {
    if !context.has(KV_MERGE_ADD) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let (key, full) = (context.key("counter"), context.key("full"));
    subject.run(&[Act::add(&key, 1), Act::get(&key), Act::add(&key, 300), Act::add(&key, 1 << 40)])?;
    subject.run(&[
        Act::get(&key),
        Act::put(&full, &u64::MAX.to_le_bytes()),
        Act::add(&full, 2),
        Act::get(&full),
    ])?;
    let mut random = context.random(7);
    for _ in 0..20 {
        let acts: Vec<_> = (0..20).map(|_| Act::add(&key, random.next_u64())).collect();
        subject.run(&acts)?;
        subject.run(&[Act::get(&key)])?;
    }
    if context.has(KV_CAN_DELETE) {
        subject.run(&[Act::delete(&key), Act::add(&key, 7), Act::get(&key)])?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// Appended bytes follow the existing ones; an absent row is empty.
pub(super) fn merge_append(context: &Context<'_>) -> Found {
    if !context.has(KV_MERGE_APPEND) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let key = context.key("row");
    subject.run(&[Act::append(&key, b"a"), Act::get(&key), Act::append(&key, b"bcd"), Act::get(&key)])?;
    for number in 0..40_u8 {
        subject.run(&[Act::append(&key, &[number; 30])])?;
    }
    subject.run(&[Act::get(&key), Act::put(&key, b"anew"), Act::append(&key, b" more"), Act::get(&key)])?;
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// The same key is a different row in each keyspace.
pub(super) fn keyspaces(context: &Context<'_>) -> Found {
    if !context.has(KV_KEYSPACES) {
        return skip("not declared");
    }
    const SPACES: u16 = 3;
    let mut subject = context.open(Setup { keyspaces: SPACES.into(), ..context.setup()? })?;
    let keys: Vec<_> = (0..20).map(|number| context.key(&format!("k{number:02}"))).collect();
    let value = |space: u16, key: &[u8]| [key, &space.to_le_bytes()].concat();
    for space in 0..SPACES {
        // Space 0 has all keys, space 1 every second one, space 2 every third one.
        let held = keys.iter().step_by(usize::from(space) + 1);
        let puts: Vec<_> = held.map(|key| Act::put(key, &value(space, key)).within(space)).collect();
        subject.run(&puts)?;
        if space == 0 {
            read_spaces(&mut subject, &keys, SPACES)?;
        }
    }
    read_spaces(&mut subject, &keys, SPACES)?;
    if context.has(KV_CAN_DELETE) {
        let deletes: Vec<_> = keys.iter().map(|key| Act::delete(key).within(1)).collect();
        subject.run(&deletes)?;
        read_spaces(&mut subject, &keys, SPACES)?;
    }
    subject.compare(&keys)?;
    scan_spaces(context, &mut subject, &keys, SPACES)?;
    if subject.is_kept() {
        subject.reopen()?;
        subject.compare(&keys)?;
        scan_spaces(context, &mut subject, &keys, SPACES)?;
    }
    let beyond = subject.one(Act::get(&keys[0]).within(SPACES))?;
    if beyond.is_answer() {
        return Err(format!(
            "a get in keyspace {SPACES} returned {}, but `config.keyspaces` is {SPACES}: only the keyspaces \
                 0 to {} exist, and ops in others must be refused",
            status_name(beyond.status),
            SPACES - 1
        )
        .into());
    }
    Ok(subject.close()?)
}

fn read_spaces(subject: &mut Subject<'_>, keys: &[Vec<u8>], spaces: u16) -> Result<(), Failure> {
    let gets: Vec<_> =
        (0..spaces).flat_map(|space| keys.iter().map(move |key| Act::get(key).within(space))).collect();
    subject.run_all(&gets)
}

/// Scans end at the end of their keyspace, in both directions, although other keyspaces have such keys too.
fn scan_spaces(
    context: &Context<'_>,
    subject: &mut Subject<'_>,
    keys: &[Vec<u8>],
    spaces: u16,
) -> Result<(), Failure> {
    let prefix = &keys[0][..2];
    for space in 0..spaces {
        let mut scans = Vec::new();
        if context.has(KV_ORDERED) {
            let bounded = Act::scan(&keys[4]).to(&keys[11]);
            scans.extend([Act::scan(&[]), Act::scan(&keys[17]), Act::scan(&keys[2]).rows(5), bounded]);
        }
        if context.has(KV_ORDERED) && context.has(KV_CAN_REVERSE) {
            let down = |act: Act| act.with(KV_REVERSE);
            scans.extend([
                down(Act::scan(&[])),
                down(Act::scan(&keys[2])),
                down(Act::scan(&keys[15]).rows(4)),
            ]);
        }
        if context.has(KV_CAN_PREFIX) {
            scans.push(Act::scan(&[]).with(KV_PREFIX).to(prefix));
        }
        let scans: Vec<_> = scans.into_iter().map(|act| act.within(space)).collect();
        subject.run_all(&scans).map_err(|failure| failure.at(format!("keyspace {space}")))?;
        if context.has(KV_ORDERED) {
            // In pieces: a scan that resumes after a row stays in its keyspace.
            subject.scan_all(Act::scan(&keys[1]).within(space).room(60))?;
        }
    }
    Ok(())
}

/// Keys of two parts: the first names a collection.
pub(super) fn collections(context: &Context<'_>) -> Found {
    if !context.has(KV_COLLECTIONS) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let split = |act: Act| Act { split: 4, ..act };
    let keys: Vec<_> =
        ["nam0", "nam1"].iter().flat_map(|name| (0..10).map(move |n| format!("{name}{n:02}"))).collect();
    let puts: Vec<_> = keys.iter().map(|key| split(Act::put(key.as_bytes(), key.as_bytes()))).collect();
    subject.run(&puts)?;
    let gets: Vec<_> = keys.iter().map(|key| split(Act::get(key.as_bytes()))).collect();
    subject.run(&gets)?;
    if context.has(KV_CAN_DELETE) {
        let deletes: Vec<_> = keys[..5].iter().map(|key| split(Act::delete(key.as_bytes()))).collect();
        subject.run(&deletes)?;
        subject.run(&gets)?;
    }
    if context.has(KV_CAN_PREFIX) {
        subject.run(&[split(Act::scan(b"nam0").with(KV_PREFIX).to(b"nam0"))])?;
        // Pieces of a few rows each.
        subject.scan_all(split(Act::scan(b"nam1").with(KV_PREFIX).to(b"nam1")).room(60))?;
    }
    if context.has(KV_ORDERED) {
        scan_inside(&mut subject)?;
    }
    Ok(subject.close()?)
}

/// Scans bounded to one collection, which they must not leave, in both directions.
fn scan_inside(subject: &mut Subject<'_>) -> Result<(), Failure> {
    let scan = |from: &[u8], to: &[u8], flags: u16| Act { split: 4, ..Act::scan(from).to(to).with(flags) };
    subject.run(&[scan(b"nam0", b"nam1", 0), scan(b"nam103", b"nam2", 0).rows(4)])?;
    subject.run(&[scan(b"nam007", b"nam1", 0), scan(b"nam199", b"nam2", 0)])?;
    if subject.has(KV_CAN_REVERSE) {
        let end = [&b"nam0"[..], &[0xff; 8]].concat();
        subject.run(&[scan(b"nam106", b"nam1", KV_REVERSE), scan(&end, b"nam0", KV_REVERSE)])?;
    }
    Ok(())
}

/// A row with a time to live is present first and gone later.
pub(super) fn time_to_live(context: &Context<'_>) -> Found {
    if !context.has(KV_TIME_TO_LIVE) {
        return skip("not declared");
    }
    const LONGEST: Duration = Duration::from_secs(20);
    let mut subject = context.subject()?;
    let (short, long, ever) = (context.key("short"), context.key("long"), context.key("ever"));
    let puts = [Act::put(&short, b"1").rows(2), Act::put(&long, b"2").rows(100_000), Act::put(&ever, b"3")];
    let begun = Instant::now();
    subject.run(&puts)?;
    let answer = subject.one(Act::get(&short))?;
    // On a machine that was suspended for the whole time, the row may rightly be gone.
    if begun.elapsed() < Duration::from_secs(1) {
        expect(&answer, KV_OK).map_err(|failure| {
            failure.at("a row with a time to live of 2 seconds, immediately after the put")
        })?;
    }
    while subject.one(Act::get(&short))?.status != KV_NOT_FOUND {
        if begun.elapsed() > LONGEST {
            return Err("a row with a time to live of 2 seconds is still there after 20 seconds".into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    subject.run(&[Act::get(&long), Act::get(&ever)])?;
    Ok(subject.close()?)
}
