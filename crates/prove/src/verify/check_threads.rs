//! Checks with several threads, each with its own session: threads must not disturb each other's writes.

use super::act::{Act, group};
use super::caller::Caller;
use super::draw::Draw;
use super::failure::{CallError, Failure};
use super::model::Model;
use super::subject::{Context, Setup, open_caller, open_database};
use super::{Found, Halt, skip};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Session};
use kvdyno_measure::start::thread_in_or_exit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Concurrent sessions.
const THREADS: u8 = 4;
/// Ops of a call; small, so that the threads interleave often.
const CALL: usize = 16;
/// Versions that a reader should have seen before its writer ends.
const ENOUGH_SEEN: u64 = 200;

/// How long each driven session waits for the other one to be driven too.
const BOTH: Duration = Duration::from_secs(10);
/// How long a writer waits for its reader to see what it writes.
const READER_STARTS: Duration = Duration::from_secs(5);

/// Disjoint keys: each thread's ops against its own oracle, and all rows at the end.
pub(super) fn disjoint(context: &Context<'_>) -> Found {
    if context.has(KV_SINGLE_THREAD) {
        return skip("the engine declares that it supports one session only");
    }
    threads(context, THREADS, "threads", 30, |own| own.run())
}

/// The same with two sessions whose loops the driver runs at the same time (rules 9 and 12).
pub(super) fn driven(context: &Context<'_>) -> Found {
    if !context.engine.is_driven() {
        return skip("the driver does not run the loops of sessions");
    }
    if context.has(KV_SINGLE_THREAD) {
        return skip("the engine declares that it supports one session only");
    }
    threads(context, 2, "threads-driven", 40, |own| own.run_driven())
}

/// A thread's session, its ops and its oracle.
struct Own<'o> {
    caller: Caller,
    model: Model,
    draw: Draw,
    setup: &'o Setup,
    ops: u64,
    seconds: f64,
    has_order: bool,
    /// The sessions that are being driven.
    driven: &'o AtomicU64,
    /// How many of them must be driven at the same time.
    together: u64,
}

fn threads(
    context: &Context<'_>,
    count: u8,
    check: &str,
    stream: u64,
    run: fn(&mut Own<'_>) -> Result<(), Failure>,
) -> Found {
    let setup = Setup {
        threads: count.into(),
        ops: CALL,
        value_bytes: 16 << 10,
        out_bytes: 32 << 10,
        ..context.setup()?
    };
    let database = open_database(context.engine, &setup)?;
    let driven = AtomicU64::new(0);
    let has_ended = AtomicBool::new(false);
    let outcomes: Vec<Result<Model, Failure>> = thread::scope(|scope| {
        let (database, setup, driven) = (&database, &setup, &driven);
        let (ops, seconds) = (context.effort.ops / 2, context.effort.seconds);
        let work = |number| {
            let draw = thread_draw(context, database, number, stream);
            // Sessions of an engine with a single writer must be opened in different threads.
            thread_in_or_exit(scope, move || {
                let own = || {
                    let caller = open_caller(database, setup)?;
                    let mut model = Model::new(database.effective().capabilities, Vec::new());
                    model.may_conflict = true;
                    let has_order = database.effective().capabilities & KV_ORDERED != 0;
                    let together = count.into();
                    Ok(Own { caller, model, draw, setup, ops, seconds, has_order, driven, together })
                };
                own()
                    .and_then(|own: Own<'_>| own.run_whole(run))
                    .map_err(|failure| failure.at(format!("thread {number}")))
            })
        };
        let threads: Vec<_> = (0..count).map(work).collect();
        let asking =
            context.has(KV_LIVE_STATS).then(|| thread_in_or_exit(scope, || ask(database, &has_ended)));
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or(Err(Failure::Check("a thread panicked")))
        };
        let mut outcomes: Vec<_> = threads.into_iter().map(join).collect();
        has_ended.store(true, Ordering::Release);
        let asked = asking.map(|asking| asking.join().unwrap_or(Err(Failure::Check("stats panicked"))));
        if let Some(Err(failure)) = asked {
            outcomes.push(Err(failure));
        }
        outcomes
    });
    let mut whole = Vec::new();
    let mut conflicts = 0;
    for outcome in outcomes {
        let model = outcome?;
        conflicts += model.conflicts;
        whole.extend(model.rows().map(|(_, key, value)| (key.to_vec(), value.to_vec())));
    }
    if conflicts > 0 {
        context.note(format!(
            "{check}: KV_CONFLICT {conflicts} times, although no two threads write the same key"
        ));
    }
    compare_whole(&database, &setup, &whole)?;
    Ok(database.close().map_err(CallError::of("close"))?)
}

/// Asks for statistics until the threads have ended, as the core does while a thread makes no progress.
fn ask(database: &Database, has_ended: &AtomicBool) -> Result<(), Failure> {
    loop {
        let stats = database.stats().map_err(CallError::of("driver.h, KV_LIVE_STATS"))?;
        if stats.is_empty() {
            return Err(Failure::Broken("driver.h, KV_LIVE_STATS: there are no statistics".into()));
        }
        if has_ended.load(Ordering::Acquire) {
            return Ok(());
        }
        thread::yield_now();
    }
}

fn thread_draw(context: &Context<'_>, database: &Database, number: u8, stream: u64) -> Draw {
    let mut facts = context.facts.clone();
    facts.key_bytes = facts.key_bytes.min(100);
    facts.value_bytes = facts.value_bytes.min(16 << 10);
    let random = context.random(stream + u64::from(number));
    Draw::new(random, &facts, database.effective().capabilities, 100, &[b'0' + number], 1)
}

impl Own<'_> {
    fn session(&mut self) -> &mut Session {
        self.caller.session()
    }

    /// Runs the ops, then ends the session.
    fn run_whole(mut self, run: fn(&mut Own<'_>) -> Result<(), Failure>) -> Result<Model, Failure> {
        run(&mut self)?;
        self.caller.end()?;
        Ok(self.model)
    }

    fn run(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut count = 0;
        while count < self.ops && begun.elapsed().as_secs_f64() < self.seconds {
            // Scans see the rows of other threads, which this oracle does not know.
            let acts: Vec<Act> =
                self.draw.batch(CALL, &self.model).into_iter().filter(|act| act.kind != KV_SCAN).collect();
            if acts.is_empty() {
                continue;
            }
            let answers = self.caller.call(&acts)?;
            self.model.judge(&acts, &answers).map_err(|failure| failure.at(format!("after {count} ops")))?;
            count += acts.len() as u64;
            if self.has_order && count.is_multiple_of(7) {
                scan_own(&mut self.caller, &mut self.model, self.setup, &mut self.draw)?;
            }
        }
        Ok(())
    }

    /// The same, once all of the sessions are driven.
    fn run_together(&mut self) -> Result<(), Failure> {
        self.driven.fetch_add(1, Ordering::AcqRel);
        let begun = Instant::now();
        while self.driven.load(Ordering::Acquire) < self.together {
            if begun.elapsed() > BOTH {
                return Err(Failure::Broken(format!(
                    "rule 9: the driver did not begin the loop of another session within {} s, while it ran this one",
                    BOTH.as_secs()
                )));
            }
            thread::yield_now();
        }
        self.run()
    }

    /// The same ops in the driver's own loop.
    fn run_driven(&mut self) -> Result<(), Failure> {
        // SAFETY: nothing of a thread's own is kept between calls, and the session stays where it is.
        #[allow(unsafe_code, reason = "the compiler cannot check what a loop keeps between turns")]
        let driven = unsafe { Session::drive(self, Own::session, Own::run_together) };
        let (found, outcome) = driven.map_err(CallError::of("drive"))?;
        found?;
        Ok(outcome.map_err(CallError::of("drive"))?)
    }
}

/// A scan of only this thread's rows, in pieces.
fn scan_own(caller: &mut Caller, model: &mut Model, setup: &Setup, draw: &mut Draw) -> Result<(), Failure> {
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
fn compare_whole(database: &Database, setup: &Setup, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Failure> {
    let mut model = Model::new(KV_ORDERED | KV_OVERWRITE, Vec::new());
    let mut caller = open_caller(database, setup)?;
    let puts: Vec<_> = rows.iter().map(|(key, value)| Act::put(key, value)).collect();
    model.apply_all(&puts);
    for part in rows.chunks(CALL) {
        let gets: Vec<_> = part.iter().map(|(key, _)| Act::get(key)).collect();
        let answers = caller.call(&gets)?;
        model.judge(&gets, &answers).map_err(|failure| failure.at("after all threads"))?;
    }
    if database.effective().capabilities & KV_ORDERED != 0 {
        let mut next = Act::scan(&[]).with(KV_KEYS).room(setup.out_bytes);
        loop {
            let answers = caller.call(std::slice::from_ref(&next))?;
            model
                .judge(std::slice::from_ref(&next), &answers)
                .map_err(|failure| failure.at("after all threads"))?;
            match answers[0].rows()?.into_iter().last() {
                Some((last, _)) if answers[0].status == KV_SHORT => {
                    next = Act { key: last, ..next.with(KV_RESUME) }
                }
                _ => break,
            }
        }
    }
    Ok(caller.end()?)
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
        let writer = thread_in_or_exit(scope, || {
            let outcome = write_pairs(&keys, &database, &setup, &seen, rounds, seconds);
            is_over.store(true, Ordering::Release);
            outcome
        });
        let read = read_pairs(&keys, &database, &setup, &is_over, &seen);
        (writer.join().unwrap_or(Err(Failure::Check("the writer panicked"))), read)
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
    Ok(database.close().map_err(CallError::of("close"))?)
}

fn write_pairs(
    [left, right]: &[Vec<u8>; 2],
    database: &Database,
    setup: &Setup,
    seen: &AtomicU64,
    rounds: u64,
    seconds: f64,
) -> Result<(), Failure> {
    let mut caller = open_caller(database, setup)?;
    let opened = Instant::now();
    let mut begun = opened;
    for number in 1_u64.. {
        let value = number.to_be_bytes();
        let acts = group(vec![Act::put(left, &value), Act::put(right, &value)], KV_ATOMIC);
        let answers = caller.call(&acts)?;
        if answers.iter().any(|answer| !matches!(answer.status, KV_OK | KV_CONFLICT | KV_ABORTED)) {
            return Err(Failure::Broken(format!("a transaction of two puts failed in round {number}")));
        }
        if seen.load(Ordering::Relaxed) == 0 && opened.elapsed() < READER_STARTS {
            begun = Instant::now();
        }
        let is_seen = number >= rounds && seen.load(Ordering::Relaxed) >= ENOUGH_SEEN;
        if is_seen || begun.elapsed().as_secs_f64() > seconds / 2.0 {
            break;
        }
        if number.is_multiple_of(64) {
            thread::yield_now();
        }
    }
    Ok(caller.end()?)
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
) -> Result<bool, Failure> {
    let mut caller = open_caller(database, setup)?;
    let alone = vec![Act::get(left), Act::get(right), Act::get(left)];
    let together = group(alone.clone(), KV_ATOMIC);
    let has_reads = database.effective().capabilities & KV_TRANSACTION_READS != 0;
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
            return Err(Failure::Broken(format!(
                "a reader saw versions {} and {}, and later {first}, {other} and {again}",
                newest[0], newest[1]
            )));
        }
        if in_one && (first != other || other != again) {
            return Err(Failure::Broken(format!(
                "rule 6: gets of one transaction see half of another: versions {first}, {other} and {again} of rows \
                 that change together"
            )));
        }
        halves_are_seen |= other < first || again < other;
        seen.fetch_add(u64::from(again > newest[0]), Ordering::Relaxed);
        newest = [again, other];
    }
    caller.end()?;
    Ok(halves_are_seen)
}
