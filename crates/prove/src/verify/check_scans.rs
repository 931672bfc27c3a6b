//! Checks of scans: order, bounds, limits, pieces.

use super::act::{Act, Row, group};
use super::draw::bytes;
use super::failure::Failure;
use super::subject::{Context, Subject};
use super::{Found, skip};
use kvdyno_core::engine::abi::*;
use kvdyno_core::generator::Random;

/// Rows of the scanned database.
const ROWS: usize = 600;

/// A database whose keys are the even numbers, in scattered order; some are deleted and some have neighbours.
fn filled<'a>(context: &Context<'a>, random: &mut Random) -> Result<Subject<'a>, Failure> {
    let mut subject = context.subject()?;
    let mut numbers: Vec<usize> = (0..ROWS).collect();
    for at in (1..ROWS).rev() {
        numbers.swap(at, random.below(at as u64 + 1) as usize);
    }
    let puts: Vec<_> = numbers
        .iter()
        .map(|number| {
            let length = 1 + random.below(60) as usize;
            Act::put(&key(context, 2 * number), &bytes(random, length))
        })
        .collect();
    subject.run_all(&puts)?;
    if context.has(KV_CAN_DELETE) {
        let deletes: Vec<_> =
            numbers.iter().filter(|&&n| n % 10 == 3).map(|n| Act::delete(&key(context, 2 * n))).collect();
        subject.run_all(&deletes)?;
    }
    if !context.has(KV_FIXED_KEY_SIZE) {
        let edges: [&[u8]; 6] = [&[0], &[0, 0], b"k", b"k0000\0", &[0xff], &[0xff, 0xff]];
        let puts: Vec<_> = edges.iter().map(|edge| Act::put(edge, edge)).collect();
        subject.run_all(&puts)?;
    }
    Ok(subject)
}

fn key(context: &Context<'_>, number: usize) -> Vec<u8> {
    context.key(&format!("k{number:04}"))
}

/// Starts and bounds worth testing: keys that are present, deleted, between others, before and after all.
fn places(context: &Context<'_>) -> Vec<Vec<u8>> {
    let mut places: Vec<_> =
        [0, 1, 6, 7, 100, 599, 600, 1197, 1198, 1199, 2000].map(|n| key(context, n)).into();
    if !context.has(KV_FIXED_KEY_SIZE) {
        places.extend([
            vec![0],
            vec![0, 0, 0],
            b"k".to_vec(),
            vec![0xff, 0xff],
            vec![0xff; 3],
            b"j".to_vec(),
        ]);
    }
    places
}

fn try_all(context: &Context<'_>, subject: &mut Subject<'_>, flags: u16) -> Result<(), Failure> {
    subject.run(&[Act::scan(&[]).with(flags)])?;
    subject.run(&[Act::scan(&[]).with(flags | KV_KEYS)])?;
    let places = places(context);
    for start in &places {
        let from = Act::scan(start).with(flags);
        let limits = [0, 1, 2, 100].map(|limit| from.clone().rows(limit));
        subject.run(&limits)?;
        subject.run(&[from.clone(), Act::scan(&[]).with(flags).to(start)])?;
        let bounded: Vec<_> = places.iter().map(|bound| from.clone().to(bound).rows(50)).collect();
        subject.run_all(&bounded)?;
    }
    Ok(())
}

/// Ascending, each row once, from the start to the exclusive bound.
pub(super) fn forward(context: &Context<'_>) -> Found {
    if !context.has(KV_ORDERED) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    subject.run(&[Act::scan(&[]), Act::scan(&key(context, 1))])?;
    subject.close()?;
    let mut subject = filled(context, &mut context.random(8))?;
    try_all(context, &mut subject, 0)?;
    Ok(subject.close()?)
}

/// The same in descending order.
pub(super) fn reverse(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_REVERSE) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    subject.run(&[Act::scan(&[]).with(KV_REVERSE), Act::scan(&key(context, 1)).with(KV_REVERSE)])?;
    subject.close()?;
    let mut subject = filled(context, &mut context.random(9))?;
    try_all(context, &mut subject, KV_REVERSE)?;
    Ok(subject.close()?)
}

/// The rows that begin with a prefix, and no others.
pub(super) fn prefix(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_PREFIX) {
        return skip("not declared");
    }
    let mut subject = filled(context, &mut context.random(10))?;
    let mut prefixes: Vec<Vec<u8>> =
        ["k", "k0", "k000", "k01", "k1199", "k9", "z"].map(|text| text.as_bytes().to_vec()).into();
    prefixes.extend([vec![0], vec![0xff], vec![0xff, 0xff], key(context, 0)]);
    let ways = if context.has(KV_CAN_REVERSE) { vec![0, KV_REVERSE] } else { vec![0] };
    for flags in ways {
        for prefix in &prefixes {
            let act = Act::scan(&[]).with(KV_PREFIX | flags).to(prefix);
            subject.run(&[act.clone(), act.clone().rows(3), act.clone().with(KV_KEYS)])?;
            if !context.has(KV_ORDERED) {
                continue;
            }
            for start in [key(context, 1), key(context, 200), prefix.clone()] {
                if start.starts_with(prefix) {
                    subject.run(&[Act { key: start, ..act.clone() }])?;
                }
            }
        }
    }
    Ok(subject.close()?)
}

/// Rule 8: a scan in pieces returns the rows of the complete scan, and tolerates changes between the pieces.
pub(super) fn pieces(context: &Context<'_>) -> Found {
    if !context.has(KV_ORDERED) {
        return skip("no ordered scans");
    }
    let mut subject = filled(context, &mut context.random(11))?;
    let ways = if context.has(KV_CAN_REVERSE) { vec![0, KV_REVERSE] } else { vec![0] };
    for flags in ways {
        for (start, room) in [(Vec::new(), 120), (key(context, 401), 90), (Vec::new(), 1000)] {
            let whole = Act::scan(&start).with(flags);
            let wanted: Vec<Row> = subject.model.walk(&whole);
            let got = subject.scan_all(whole.clone().room(room))?;
            if got != wanted {
                return Err(format!(
                    "{whole}: the pieces of {room} bytes return {} of {} rows",
                    got.len(),
                    wanted.len()
                )
                .into());
            }
        }
        let tiny = subject.run(&[Act::scan(&[]).with(flags).room(9)])?.remove(0);
        if tiny.status == KV_SHORT && tiny.row_count != 0 {
            return Err("rule 8: a row was returned in a buffer that is too small for any row".into());
        }
        changes_between(context, &mut subject, flags)?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}

/// Deletes the row at the scan's position, puts rows before and after it, and resumes the scan.
fn changes_between(context: &Context<'_>, subject: &mut Subject<'_>, flags: u16) -> Result<(), Failure> {
    let first = subject.run(&[Act::scan(&key(context, 300)).with(flags).rows(5)])?.remove(0);
    let last =
        first.rows()?.pop().ok_or_else(|| Failure::Broken("a scan from the middle found no row".into()))?.0;
    let mut acts = vec![Act::put(&key(context, 299), b"before"), Act::put(&key(context, 311), b"behind")];
    if context.has(KV_CAN_DELETE) {
        acts.push(Act::delete(&last));
    }
    subject.run(&acts)?;
    subject
        .run(&[Act::scan(&last).with(flags | KV_RESUME).rows(20), Act::scan(&last).with(flags).rows(20)])?;
    Ok(())
}

/// Scans in calls of a few rows, each held open between calls in its own slot while the session does other work: each
/// call must return the rows after its key as the session left them.
fn held_between(context: &Context<'_>, subject: &mut Subject<'_>, flags: u16) -> Result<(), Failure> {
    let mut random = context.random(13);
    let ways = [flags, flags | KV_KEYS];
    let begin = |slot: u8, way: u16| Act { slot, ..Act::scan(&[]).with(way | KV_HOLD) };
    let mut scans: Vec<Act> = [0, 1, 3].map(|slot| begin(slot, ways[usize::from(slot) % 2])).into();
    let mut at = 0;
    for _ in 0..600 {
        // Mostly the same scan is resumed, so that it is held while something else is done.
        if random.below(4) == 0 {
            at = random.below(scans.len() as u64) as usize;
        }
        for _ in 0..=random.below(2) {
            let next = scans[at].clone().rows(1 + random.below(4) as u32);
            let answer = subject.run(std::slice::from_ref(&next))?.remove(0);
            scans[at] = match answer.rows()?.pop() {
                Some((last, _)) => Act { key: last, ..scans[at].clone().with(KV_RESUME) },
                None => begin(next.slot, next.flags & !(KV_RESUME | KV_HOLD)),
            };
        }
        // The scan's position and the rows that follow it: a change there is either seen or hidden.
        let here = scans[at].key.clone();
        let ahead = subject.model.walk(&scans[at].clone().rows(3));
        let Some((next, _)) = ahead.get(random.below(3) as usize) else { continue };
        let written = bytes(&mut random, 20);
        let can_delete = context.has(KV_CAN_DELETE);
        match random.below(9) {
            0 | 1 => subject.run(&[Act::put(next, &written)])?,
            2 if !here.is_empty() => subject.run(&[Act::put(&here, &written)])?,
            3 if can_delete => subject.run(&[Act::delete(next)])?,
            4 if can_delete && !here.is_empty() => subject.run(&[Act::delete(&here)])?,
            5 => subject.run(&[Act::get(next)])?,
            6 => subject.run(&[Act::scan(next).with(flags).rows(5)])?,
            7 if context.has(KV_TRANSACTION) => {
                let puts = vec![Act::put(next, &written), Act::put(&ahead[0].0, &written)];
                subject.run(&group(puts, KV_ATOMIC))?
            }
            8 => subject.call(&[Act { slot: scans[at].slot, ..Act::control(KV_DROP) }])?,
            // A new row: after an existing one or, where that is impossible, after a deleted one.
            _ if context.has(KV_FIXED_KEY_SIZE) => {
                let number = random.below(2 * ROWS as u64) as usize;
                subject.run(&[Act::put(&key(context, number), &written)])?
            }
            _ => subject.run(&[Act::put(&[next, &[0][..]].concat(), &written)])?,
        };
    }
    // Left open: the end of the session releases them.
    Ok(())
}

/// A held scan resumes where it was, and is released.
pub(super) fn hold(context: &Context<'_>) -> Found {
    if !context.has(KV_CAN_HOLD) {
        return skip("not declared");
    }
    let mut subject = filled(context, &mut context.random(12))?;
    let whole = Act::scan(&[]);
    let wanted = subject.model.walk(&whole);
    for slot in [0, 1, 3] {
        let mut got: Vec<Row> = Vec::new();
        let mut next = Act { slot, ..whole.clone().with(KV_HOLD).room(500) };
        loop {
            let answer = subject.run(std::slice::from_ref(&next))?.remove(0);
            got.extend(answer.rows()?);
            if answer.status == KV_OK {
                break;
            }
            let (last, _) = got.last().ok_or("rule 8: no row fits in a buffer of 500 bytes")?;
            next = Act { key: last.clone(), ..next.with(KV_RESUME) };
        }
        if got != wanted {
            return Err(format!("held in slot {slot}: {} of {} rows", got.len(), wanted.len()).into());
        }
        subject.call(&[Act { slot, ..Act::control(KV_DROP) }])?;
    }
    subject.run(&[Act::put(&key(context, 1), b"after the hold"), whole])?;
    for flags in if context.has(KV_CAN_REVERSE) { vec![0, KV_REVERSE] } else { vec![0] } {
        held_between(context, &mut subject, flags)?;
        subject.renew_session()?;
    }
    subject.compare(&[])?;
    Ok(subject.close()?)
}
