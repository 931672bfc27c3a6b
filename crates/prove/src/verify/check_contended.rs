//! Two threads that write the same keys at the same time: single ops, groups, transactions, counters and new keys.
//!
//! They work in rounds. In each round both send one call, then both read all keys. What they read must match one of
//! the orders in which the two calls can have been executed. In some rounds only one thread writes, to find a write
//! that is lost in favor of an earlier one of the other thread.

use super::act::{Act, Reply, group, shown, status_name};
use super::caller::Caller;
use super::failure::{CallError, Failure};
use super::subject::{Context, Setup, open_caller, open_database};
use super::{Found, skip};
use kvdyno_core::engine::Database;
use kvdyno_core::engine::abi::*;
use kvdyno_core::generator::Random;
use kvdyno_measure::start::thread_in_or_exit;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

const THREADS: usize = 2;
/// Keys that both threads write; few, so that they collide.
const KEYS: usize = 4;
/// Ops of a call.
const CALL: usize = 16;

/// What a round consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Single,
    Joined,
    Atomic,
    Counters,
    New,
}

/// A call and its answers.
type Call = (Vec<Act>, Vec<Reply>);
/// What a thread sent in a round, or what it read after it; `Err` if that failed.
type Sent = Result<Call, Failure>;

/// What both threads of a check share.
struct Table {
    barrier: Barrier,
    sent: [Mutex<Option<Sent>>; THREADS],
    read: [Mutex<Option<Sent>>; THREADS],
    /// Set when there are no more rounds; `Err` if something was wrong.
    end: Mutex<Option<Result<(), Failure>>>,
}

/// What is known of the keys between two rounds.
struct Known {
    values: Vec<Option<Vec<u8>>>,
    counters: Vec<u64>,
    conflicts: u64,
}

pub(super) fn contended(context: &Context<'_>) -> Found {
    if context.has(KV_SINGLE_THREAD) || !context.has(KV_OVERWRITE) {
        return skip("the engine allows one session only, or no overwriting");
    }
    let setup = Setup { threads: THREADS as u32, ops: CALL, ..context.setup()? };
    let database = open_database(context.engine, &setup)?;
    let table = Table {
        barrier: Barrier::new(THREADS),
        sent: Default::default(),
        read: Default::default(),
        end: Mutex::default(),
    };
    let known = Mutex::new(Known { values: vec![None; KEYS], counters: vec![0; KEYS], conflicts: 0 });
    let (ops, seconds) = (context.effort.ops, context.effort.seconds);
    let keys = Keys::of(context);
    let forms = forms(database.effective().capabilities);
    let ended: Vec<Result<(), Failure>> = thread::scope(|scope| {
        let work = |number: usize| {
            let (table, known, database, setup, keys, forms) =
                (&table, &known, &database, &setup, &keys, &forms);
            let random = context.random(50 + number as u64);
            thread_in_or_exit(scope, move || {
                let drawn = Rounds { keys, forms, random, number };
                run(table, known, database, setup, drawn, ops / 16, seconds / 2.0)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(work).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(Failure::Check("a thread panicked"))))
            .collect()
    });
    locked(&table.end).take().unwrap_or(Ok(()))?;
    ended.into_iter().collect::<Result<Vec<()>, Failure>>()?;
    let conflicts = locked(&known).conflicts;
    if conflicts > 0 {
        context.note(format!("threads-contended: {conflicts} ops failed with KV_CONFLICT"));
    }
    Ok(database.close().map_err(CallError::of("close"))?)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forms(capabilities: u64) -> Vec<Form> {
    let mut forms = vec![Form::Single, Form::Joined, Form::Single];
    for (capability, form) in
        [(KV_TRANSACTION, Form::Atomic), (KV_MERGE_ADD, Form::Counters), (KV_CAN_NEW, Form::New)]
    {
        if capabilities & capability != 0 {
            forms.push(form);
        }
    }
    forms
}

/// The keys of the check.
struct Keys {
    rows: Vec<Vec<u8>>,
    counters: Vec<Vec<u8>>,
    can_delete: bool,
}

impl Keys {
    fn of(context: &Context<'_>) -> Keys {
        let keys = |front: char| (0..KEYS).map(|number| context.key(&format!("{front}{number}"))).collect();
        Keys { rows: keys('k'), counters: keys('n'), can_delete: context.has(KV_CAN_DELETE) }
    }

    /// The key that both insert in a round; has the fixed key size where there is one.
    fn of_round(round: u64) -> Vec<u8> {
        format!("x{round:015}").into_bytes()
    }
}

/// The ops that one thread draws.
struct Rounds<'c> {
    keys: &'c Keys,
    forms: &'c [Form],
    random: Random,
    number: usize,
}

impl Rounds<'_> {
    fn form(&self, round: u64) -> Form {
        self.forms[(round % self.forms.len() as u64) as usize]
    }

    /// A value that no other op writes.
    fn value(&self, round: u64, place: usize) -> Vec<u8> {
        format!("thread {} round {round} op {place}", self.number).into_bytes()
    }

    fn acts(&mut self, round: u64) -> Vec<Act> {
        let form = self.form(round);
        if form == Form::New {
            return vec![Act::put(&Keys::of_round(round), &self.value(round, 0)).with(KV_NEW)];
        }
        // In every fourth round this thread writes nothing, in another the other thread.
        if round / self.forms.len() as u64 % 4 == self.number as u64 {
            return vec![Act::get(&self.keys.rows[0])];
        }
        let count = 1 + self.random.below(CALL as u64 - 1) as usize;
        let any = |random: &mut Random| random.below(KEYS as u64) as usize;
        match form {
            Form::Counters => {
                (0..count).map(|_| Act::add(&self.keys.counters[any(&mut self.random)], 1)).collect()
            }
            Form::Atomic => {
                let puts = (0..KEYS).map(|key| Act::put(&self.keys.rows[key], &self.value(round, 0)));
                group(puts.collect(), KV_ATOMIC)
            }
            _ => {
                let act = |place: usize| {
                    let key = &self.keys.rows[any(&mut self.random)];
                    match self.random.below(8) {
                        0 | 1 if form == Form::Single => Act::get(key),
                        2 if self.keys.can_delete => Act::delete(key),
                        _ => Act::put(
                            key,
                            &format!("thread {} round {round} op {place}", self.number).into_bytes(),
                        ),
                    }
                };
                let acts = (0..count).map(act).collect();
                if form == Form::Joined { group(acts, 0) } else { acts }
            }
        }
    }

    /// Gets of all keys, and of the round's new key.
    fn gets(&self, round: u64) -> Vec<Act> {
        let rows = self.keys.rows.iter().chain(&self.keys.counters).map(|key| Act::get(key));
        rows.chain((self.form(round) == Form::New).then(|| Act::get(&Keys::of_round(round)))).collect()
    }
}

/// One thread: runs rounds until the first thread ends them or something is wrong.
fn run(
    table: &Table,
    known: &Mutex<Known>,
    database: &Database,
    setup: &Setup,
    mut drawn: Rounds<'_>,
    rounds: u64,
    seconds: f64,
) -> Result<(), Failure> {
    let mut caller = open_caller(database, setup);
    let begun = Instant::now();
    let send = |caller: &mut Result<Caller, CallError>, acts: Vec<Act>| -> Sent {
        let answers = caller.as_mut().map_err(|error| error.clone())?.call(&acts)?;
        Ok((acts, answers))
    };
    for round in 0_u64.. {
        let acts = drawn.acts(round);
        // Both start together; otherwise they would rarely collide.
        table.barrier.wait();
        *locked(&table.sent[drawn.number]) = Some(send(&mut caller, acts));
        table.barrier.wait();
        let gets = drawn.gets(round);
        *locked(&table.read[drawn.number]) = Some(send(&mut caller, gets));
        table.barrier.wait();
        if drawn.number == 0 {
            let verdict = judge(table, &mut locked(known), drawn.form(round), drawn.keys, round)
                .map_err(|failure| failure.at(format!("round {round} ({:?})", drawn.form(round))));
            if verdict.is_err() || round >= rounds || begun.elapsed().as_secs_f64() > seconds {
                *locked(&table.end) = Some(verdict);
            }
        }
        table.barrier.wait();
        if locked(&table.end).is_some() {
            break;
        }
    }
    Ok(caller?.end()?)
}

fn judge(table: &Table, known: &mut Known, form: Form, keys: &Keys, round: u64) -> Result<(), Failure> {
    let take = |slots: &[Mutex<Option<Sent>>; THREADS]| -> Result<Vec<Call>, Failure> {
        let of = |slot: &Mutex<Option<Sent>>| {
            locked(slot).take().unwrap_or(Err(Failure::Check("the thread sent nothing")))
        };
        slots
            .iter()
            .enumerate()
            .map(|(number, slot)| of(slot).map_err(|failure| failure.at(format!("thread {number}"))))
            .collect()
    };
    let (sent, read) = (take(&table.sent)?, take(&table.read)?);
    for (act, answer) in sent.iter().flat_map(|(acts, answers)| acts.iter().zip(answers)) {
        match answer.status {
            KV_OK | KV_NOT_FOUND | KV_EXISTS => {}
            KV_CONFLICT | KV_ABORTED => known.conflicts += u64::from(answer.status == KV_CONFLICT),
            status => {
                let said = answer.said.clone().unwrap_or_default();
                return Err(Failure::Broken(format!("{act}: {} {said}", status_name(status))));
            }
        }
    }
    for (number, (_, answers)) in read.iter().enumerate() {
        if let Some(answer) = answers.iter().find(|answer| !matches!(answer.status, KV_OK | KV_NOT_FOUND)) {
            return Err(Failure::Broken(format!(
                "a get of thread {number} after the round: {}",
                status_name(answer.status)
            )));
        }
    }
    let seen = |thread: usize, place: usize| -> Option<Vec<u8>> {
        let answer = &read[thread].1[place];
        (answer.status == KV_OK).then(|| answer.bytes.clone())
    };
    for key in 0..KEYS {
        let (one, other) = (seen(0, key), seen(1, key));
        if one != other {
            return Err(Failure::Broken(format!(
                "key {key}: one thread reads {}, the other reads {}",
                text(&one),
                text(&other)
            )));
        }
        judge_key(&sent, &keys.rows[key], &known.values[key], &one)?;
        known.values[key] = one;
        let adds = |act: &Act, answer: &Reply| act.key == keys.counters[key] && answer.status == KV_OK;
        let added = sent.iter().flat_map(|(acts, answers)| acts.iter().zip(answers));
        known.counters[key] +=
            added.filter(|(act, answer)| act.kind == KV_MERGE && adds(act, answer)).count() as u64;
        for thread in 0..THREADS {
            let sum = seen(thread, KEYS + key)
                .map_or(Some(0), |bytes| bytes.try_into().ok().map(u64::from_le_bytes));
            if sum != Some(known.counters[key]) {
                return Err(Failure::Broken(format!(
                    "counter {key}: {sum:?} after {} additions",
                    known.counters[key]
                )));
            }
        }
    }
    let has_all = |(_, answers): &Call| answers.len() == KEYS && answers[0].status == KV_OK;
    if form == Form::Atomic
        && sent.iter().any(has_all)
        && known.values.iter().any(|value| *value != known.values[0])
    {
        let values: Vec<String> = known.values.iter().map(text).collect();
        return Err(Failure::Broken(format!(
            "rule 6: rows that two transactions wrote are a mix of both: {}",
            values.join(", ")
        )));
    }
    if form == Form::New {
        judge_new(&sent, [seen(0, 2 * KEYS), seen(1, 2 * KEYS)])
            .map_err(|failure| failure.at(format!("new key {round}")))?;
    }
    Ok(())
}

fn text(value: &Option<Vec<u8>>) -> String {
    value.as_ref().map_or("no value".into(), |value| match std::str::from_utf8(value) {
        Ok(text) => format!("`{text}`"),
        Err(_) => shown(value),
    })
}

/// The value that an acknowledged write leaves; `None` if the op is not a write or had no effect.
fn left(act: &Act, answer: &Reply) -> Option<Option<Vec<u8>>> {
    match (act.kind, answer.status) {
        (KV_PUT, KV_OK) => Some(Some(act.value.clone())),
        (KV_DELETE, KV_OK | KV_NOT_FOUND) => Some(None),
        _ => None,
    }
}

/// The key had the value `before`, both threads sent their ops, and now it has the value `now`.
fn judge_key(
    sent: &[Call],
    key: &[u8],
    before: &Option<Vec<u8>>,
    now: &Option<Vec<u8>>,
) -> Result<(), Failure> {
    let of_key = |(acts, answers): &Call| -> Vec<(Act, Reply)> {
        let pairs = acts.iter().zip(answers).filter(|(act, _)| act.key == key);
        pairs.map(|(act, answer)| (act.clone(), answer.clone())).collect()
    };
    let ops: Vec<Vec<(Act, Reply)>> = sent.iter().map(of_key).collect();
    let last = |ops: &Vec<(Act, Reply)>| ops.iter().rev().find_map(|(act, answer)| left(act, answer));
    let lasts: Vec<Option<Vec<u8>>> = ops.iter().filter_map(last).collect();
    let is_right = if lasts.is_empty() { now == before } else { lasts.contains(now) };
    if !is_right {
        let wanted: Vec<String> =
            if lasts.is_empty() { vec![text(before)] } else { lasts.iter().map(text).collect() };
        let (key, now) = (shown(key), text(now));
        return Err(Failure::Broken(format!("key {key} holds {now}; expected {}", wanted.join(" or "))));
    }
    let written: Vec<Option<Vec<u8>>> =
        ops.iter().flatten().filter_map(|(act, answer)| left(act, answer)).collect();
    for own in &ops {
        let mut has_written = false;
        for (act, answer) in own {
            if act.kind == KV_GET && matches!(answer.status, KV_OK | KV_NOT_FOUND) {
                let value = (answer.status == KV_OK).then(|| answer.bytes.clone());
                // After its own write, a thread cannot see the value from before the round.
                if !(written.contains(&value) || !has_written && value == *before) {
                    return Err(Failure::Broken(format!(
                        "a get of key {} returned {}",
                        shown(key),
                        text(&value)
                    )));
                }
            }
            has_written |= left(act, answer).is_some();
        }
    }
    Ok(())
}

/// Both threads tried to insert one key: one must succeed, the other must be refused.
fn judge_new(sent: &[Call], seen: [Option<Vec<u8>>; THREADS]) -> Result<(), Failure> {
    let done: Vec<&Act> =
        sent.iter().filter(|(_, answers)| answers[0].status == KV_OK).map(|(acts, _)| &acts[0]).collect();
    let gave_up = sent.iter().any(|(_, answers)| matches!(answers[0].status, KV_CONFLICT | KV_ABORTED));
    match done[..] {
        [one] if seen.iter().all(|value| value.as_ref() == Some(&one.value)) => Ok(()),
        [] if gave_up => Ok(()),
        [_] => {
            let [one, other] = seen;
            Err(Failure::Broken(format!(
                "one of two inserts succeeded, but the key holds {} and {}",
                text(&one),
                text(&other)
            )))
        }
        // Which thread's value is stored is random, but a seed must produce the same text each time.
        _ => Err(Failure::Broken(format!("{} of two inserts succeeded", done.len()))),
    }
}
