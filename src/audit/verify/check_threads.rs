//! Checks with several threads, each with its own session: threads must not disturb each other's writes.

use super::act::{Act, group};
use super::draw::Draw;
use super::model::Model;
use super::subject::{Context, Setup, open_caller, open_database};
use super::{Found, Halt, skip};
use crate::engine::Database;
use crate::engine::abi::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Concurrent sessions.
const THREADS: u8 = 4;
/// Ops of a call; small, so that the threads interleave often.
const CALL: usize = 16;
/// Versions that a reader should have seen before its writer ends.
const ENOUGH_SEEN: u64 = 200;

/// Disjoint keys: each thread's ops against its own oracle, and all rows at the end.
pub(super) fn disjoint(context: &Context<'_>) -> Found {
    if context.has(KV_SINGLE_THREAD) {
        return skip("the engine declares that it supports one session only");
    }
    let setup = Setup {
        threads: THREADS.into(),
        ops: CALL,
        value_bytes: 16 << 10,
        out_bytes: 32 << 10,
        ..context.setup()?
    };
    let database = open_database(context.engine, &setup)?;
    let ops = context.effort.ops / 2;
    let has_ended = AtomicBool::new(false);
    let outcomes: Vec<Result<(Model, u64), String>> = thread::scope(|scope| {
        let (database, setup) = (&database, &setup);
        let work = |number| {
            let draw = thread_draw(context, database, number);
            let seconds = context.effort.seconds;
            scope.spawn(move || {
                one_thread(database, setup, draw, ops, seconds)
                    .map_err(|text| format!("thread {number}: {text}"))
            })
        };
        let threads: Vec<_> = (0..THREADS).map(work).collect();
        let asking = context.has(KV_LIVE_STATS).then(|| scope.spawn(|| ask(database, &has_ended)));
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or(Err("a thread panicked".into()))
        };
        let mut outcomes: Vec<_> = threads.into_iter().map(join).collect();
        has_ended.store(true, Ordering::Release);
        if let Some(Err(text)) = asking.map(|asking| asking.join().unwrap_or(Err("stats panicked".into()))) {
            outcomes.push(Err(text));
        }
        outcomes
    });
    let mut whole = Vec::new();
    let mut conflicts = 0;
    for outcome in outcomes {
        let (model, _) = outcome?;
        conflicts += model.conflicts;
        whole.extend(model.rows().map(|(_, key, value)| (key.to_vec(), value.to_vec())));
    }
    if conflicts > 0 {
        context.note(format!(
            "threads: KV_CONFLICT {conflicts} times, although no two threads write the same key"
        ));
    }
    compare_whole(&database, &setup, &whole)?;
    Ok(database.close().map_err(|error| format!("close: {error}"))?)
}

/// Asks for statistics until the threads have ended, as the core does while a thread makes no progress.
fn ask(database: &Database, has_ended: &AtomicBool) -> Result<(), String> {
    loop {
        let stats = database.stats().map_err(|error| format!("driver.h, KV_LIVE_STATS: {error}"))?;
        if stats.is_empty() {
            return Err("driver.h, KV_LIVE_STATS: there are no statistics".into());
        }
        if has_ended.load(Ordering::Acquire) {
            return Ok(());
        }
        thread::yield_now();
    }
}

fn thread_draw(context: &Context<'_>, database: &Database, number: u8) -> Draw {
    let mut facts = context.facts.clone();
    facts.key_bytes = facts.key_bytes.min(100);
    facts.value_bytes = facts.value_bytes.min(16 << 10);
    let prefix = [b'0' + number];
    Draw::new(
        context.random(30 + u64::from(number)),
        &facts,
        database.in_force().capabilities,
        100,
        &prefix,
        1,
    )
}

fn one_thread(
    database: &Database,
    setup: &Setup,
    mut draw: Draw,
    ops: u64,
    seconds: f64,
) -> Result<(Model, u64), String> {
    let mut caller = open_caller(database, setup)?;
    let mut model = Model::new(database.in_force().capabilities, Vec::new());
    model.may_conflict = true;
    let begun = std::time::Instant::now();
    let mut count = 0;
    while count < ops && begun.elapsed().as_secs_f64() < seconds {
        // Scans see the rows of other threads, which this oracle does not know.
        let acts: Vec<Act> = draw.batch(CALL, &model).into_iter().filter(|act| act.kind != KV_SCAN).collect();
        if acts.is_empty() {
            continue;
        }
        let answers = caller.call(&acts)?;
        model.judge(&acts, &answers).map_err(|text| format!("after {count} ops: {text}"))?;
        count += acts.len() as u64;
        if database.in_force().capabilities & KV_ORDERED != 0 && count.is_multiple_of(7) {
            scan_own(&mut caller, &mut model, setup, &mut draw)?;
        }
    }
    caller.end()?;
    Ok((model, count))
}

/// A scan of only this thread's rows, in pieces.
fn scan_own(
    caller: &mut super::caller::Caller,
    model: &mut Model,
    setup: &Setup,
    draw: &mut Draw,
) -> Result<(), String> {
    let first = draw.keys().next().map_or(b'0', |key| key[0]);
    let mut next = Act::scan(&[first]).to(&[first + 1]).room(setup.out_bytes);
    loop {
        let answers = caller.call(std::slice::from_ref(&next))?;
        model.judge(std::slice::from_ref(&next), &answers)?;
        let rows = answers[0].rows()?;
        match rows.into_iter().last() {
            Some((last, _)) if answers[0].status == KV_SHORT => {
                next = Act { key: last, ..next.with(KV_RESUME) }
            }
            _ => return Ok(()),
        }
    }
}

/// What all threads wrote is present, and nothing else.
fn compare_whole(database: &Database, setup: &Setup, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
    let mut model = Model::new(KV_ORDERED | KV_OVERWRITE, Vec::new());
    let mut caller = open_caller(database, setup)?;
    let puts: Vec<_> = rows.iter().map(|(key, value)| Act::put(key, value)).collect();
    model.apply_all(&puts);
    for part in rows.chunks(CALL) {
        let gets: Vec<_> = part.iter().map(|(key, _)| Act::get(key)).collect();
        let answers = caller.call(&gets)?;
        model.judge(&gets, &answers).map_err(|text| format!("after all threads: {text}"))?;
    }
    if database.in_force().capabilities & KV_ORDERED != 0 {
        let mut next = Act::scan(&[]).with(KV_KEYS).room(setup.out_bytes);
        loop {
            let answers = caller.call(std::slice::from_ref(&next))?;
            model
                .judge(std::slice::from_ref(&next), &answers)
                .map_err(|text| format!("after all threads: {text}"))?;
            match answers[0].rows()?.into_iter().last() {
                Some((last, _)) if answers[0].status == KV_SHORT => {
                    next = Act { key: last, ..next.with(KV_RESUME) }
                }
                _ => break,
            }
        }
    }
    caller.end()
}

/// While one thread changes two rows in transactions, another reads them, with single gets and in transactions.
pub(super) fn atomic(context: &Context<'_>) -> Found {
    if context.has(KV_SINGLE_THREAD) || !context.has(KV_TRANSACTION) || !context.has(KV_OVERWRITE) {
        return skip("the engine supports no transactions, or one session only");
    }
    let setup = Setup { threads: 2, ops: CALL, ..context.setup()? };
    let database = open_database(context.engine, &setup)?;
    let (is_over, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let (rounds, seconds) = (context.effort.ops / 10, context.effort.seconds);
    let keys = [context.key("a-left"), context.key("z-right")];
    let (written, read) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let outcome = write_pairs(&keys, &database, &setup, &seen, (rounds, seconds));
            is_over.store(true, Ordering::Release);
            outcome
        });
        let read = read_pairs(&keys, &database, &setup, &is_over, &seen);
        (writer.join().unwrap_or(Err("the writer panicked".into())), read)
    });
    let halves_are_seen = read?;
    written?;
    if halves_are_seen {
        context
            .note("transactions are atomic once they end; a concurrent get outside a transaction can see half of one".into());
    }
    if seen.load(Ordering::Relaxed) == 0 {
        return Err(Halt::Skipped("the reader and the writer never ran at the same time".into()));
    }
    Ok(database.close().map_err(|error| format!("close: {error}"))?)
}

fn write_pairs(
    [left, right]: &[Vec<u8>; 2],
    database: &Database,
    setup: &Setup,
    seen: &AtomicU64,
    (rounds, seconds): (u64, f64),
) -> Result<(), String> {
    let mut caller = open_caller(database, setup)?;
    let begun = std::time::Instant::now();
    for number in 1_u64.. {
        let value = number.to_be_bytes();
        let acts = group(vec![Act::put(left, &value), Act::put(right, &value)], KV_ATOMIC);
        let answers = caller.call(&acts)?;
        if answers.iter().any(|answer| !matches!(answer.status, KV_OK | KV_CONFLICT | KV_ABORTED)) {
            return Err(format!("a transaction of two puts failed in round {number}"));
        }
        let is_seen = number >= rounds && seen.load(Ordering::Relaxed) >= ENOUGH_SEEN;
        if is_seen || begun.elapsed().as_secs_f64() > seconds / 2.0 {
            break;
        }
        if number.is_multiple_of(64) {
            thread::yield_now();
        }
    }
    caller.end()
}

/// Reads left, right and left again; `seen` counts the versions. A row's versions may only rise. Separate gets may
/// see one row of a transaction and not yet the other, because no engine claims otherwise; gets of one transaction
/// must not.
fn read_pairs(
    [left, right]: &[Vec<u8>; 2],
    database: &Database,
    setup: &Setup,
    is_over: &AtomicBool,
    seen: &AtomicU64,
) -> Result<bool, String> {
    let mut caller = open_caller(database, setup)?;
    let alone = vec![Act::get(left), Act::get(right), Act::get(left)];
    let together = group(alone.clone(), KV_ATOMIC);
    let has_reads = database.in_force().capabilities & KV_TRANSACTION_READS != 0;
    let mut newest = [0; 2];
    let mut halves_are_seen = false;
    for round in 0_u64.. {
        if is_over.load(Ordering::Acquire) {
            break;
        }
        let in_one = has_reads && round % 2 == 1;
        let answers = caller.call(if in_one { &together } else { &alone })?;
        if answers.iter().any(|answer| answer.status == KV_CONFLICT) {
            continue;
        }
        let versions: Vec<u64> =
            answers.iter().map(|answer| answer.bytes[..].try_into().map_or(0, u64::from_be_bytes)).collect();
        let (first, other, again) = (versions[0], versions[1], versions[2]);
        if first < newest[0] || again < first || other < newest[1] {
            return Err(format!(
                "a reader saw versions {} and {}, and later {first}, {other} and {again}",
                newest[0], newest[1]
            ));
        }
        if in_one && (first != other || other != again) {
            return Err(format!(
                "rule 6: gets of one transaction see half of another: versions {first}, {other} and {again} of rows \
                 that change together"
            ));
        }
        halves_are_seen |= other < first || again < other;
        seen.fetch_add(u64::from(again > newest[0]), Ordering::Relaxed);
        newest = [again, other];
    }
    caller.end()?;
    Ok(halves_are_seen)
}
