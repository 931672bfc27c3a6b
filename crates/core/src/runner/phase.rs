//! Runs one phase: its threads, its companions, and the record of the results.

use super::check::WrongAnswers;
use super::chooser::Chooser;
use super::companions::{self, OnTick, Outside, Stage};
use super::draw::{Draw, mix_of};
use super::end_count::{Ending, Finished};
use super::judge::Judge;
use super::phase_data::{Failure, Shared, Slot, Tally};
use super::shape::shape_of;
use super::spaces::Spaces;
use super::worker::{Outcome, Worker};
use crate::engine::abi::*;
use crate::engine::{Arena, Database, Session};
use crate::results::{
    CallTimes, Cause, Check, CheckLevel, EndedBy, HarnessTimes, KindRecord, PhaseRecord, Role, ThreadRecord,
};
use crate::workload::{Access, Durability, Emulate, OpKind, Phase};
use kvdyno_measure::Usage;
use kvdyno_measure::start::thread_in_or_exit;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread::Scope;

/// A phase that was run: its record, and information for the next phases.
pub(super) struct PhaseRun {
    /// The record.
    pub record: PhaseRecord,
    /// Why it was cut short.
    pub failure: Option<Failure>,
    /// Merges acknowledged in it.
    pub merges: u64,
}

/// The roles of a phase's threads, in order.
pub(super) fn roles(phase: &Phase) -> Vec<Role> {
    let has_mix = Chooser::new(&phase.mix).is_some();
    let mix = if has_mix { phase.threads.max(u32::from(phase.readers + phase.writers == 0)) } else { 0 };
    let of = |role, count: u32| std::iter::repeat_n(role, count as usize);
    of(Role::Mix, mix).chain(of(Role::Reader, phase.readers)).chain(of(Role::Writer, phase.writers)).collect()
}

/// The kinds of op that a phase can run, over all roles.
pub(super) fn kinds_of(phase: &Phase) -> Vec<OpKind> {
    let roles = roles(phase);
    let runs = |kind: &OpKind| roles.iter().any(|&role| mix_of(phase, role).share(*kind) > 0.0);
    OpKind::ALL.into_iter().filter(runs).collect()
}

fn inserts(phase: &Phase, role: Role) -> bool {
    mix_of(phase, role).has(|kind| kind.inserts(phase))
}

/// Whether a role writes keys that the distribution draws, and not only new keys.
pub(super) fn writes_keys_there(phase: &Phase, role: Role) -> bool {
    mix_of(phase, role).has(|kind| kind.changes_drawn_keys(phase))
}

/// Whether several threads write the same keys. If each key is drawn once per pass, each thread has its own part.
pub(super) fn is_contended(phase: &Phase) -> bool {
    let writers = roles(phase).into_iter().filter(|role| writes_keys_there(phase, *role)).count();
    !phase.distribution.is_pass() && writers > 1
}

/// The slots of a phase, with each thread's position among writers and inserters.
pub(super) fn slots(phase: &Phase) -> Vec<Slot> {
    let (mut writers, mut inserters) = (0, 0);
    let next = |is: bool, count: &mut u64| {
        is.then(|| {
            *count += 1;
            *count - 1
        })
    };
    let slot = |role: Role| {
        let mix = mix_of(phase, role);
        let kinds: Vec<OpKind> = mix.kinds().collect();
        let writer = next(kinds.iter().any(|kind| kind.writes()), &mut writers);
        Slot::new(role, writer, next(inserts(phase, role), &mut inserters), &kinds)
    };
    roles(phase).into_iter().map(slot).collect()
}

/// The reason why this engine cannot run the phase; none: it can.
pub(super) fn lacks(phase: &Phase, capabilities: u64, spaces: &Spaces) -> Option<String> {
    if let Some(reason) = spaces.lacks(capabilities) {
        return Some(reason);
    }
    let has = |bit: u64| capabilities & bit != 0;
    if phase.transaction.is_some() && !has(KV_CAN_LONG_TRANSACTION) {
        return Some("the engine has no transactions over several calls".into());
    }
    for kind in kinds_of(phase) {
        if let Some(lack) = lack(phase, kind, capabilities, spaces) {
            return Some(format!("the engine has no {lack}"));
        }
    }
    if has(KV_SINGLE_THREAD) && roles(phase).len() > 1 {
        return Some("the engine supports only one thread".into());
    }
    None
}

/// What the engine lacks to run this kind in the phase.
fn lack(phase: &Phase, kind: OpKind, capabilities: u64, spaces: &Spaces) -> Option<&'static str> {
    let has = |bit: u64| capabilities & bit != 0;
    let unless = |is: bool, lack: &'static str| (!is).then_some(lack);
    let transactions = |spaces_used: u64| {
        unless(has(KV_TRANSACTION), "transactions")
            .or_else(|| unless(spaces_used <= 1 || spaces.is_atomic(), "transactions over several keyspaces"))
    };
    let refuses_existing = kind == OpKind::Insert && phase.existing.is_some();
    if has(KV_EVICTS) {
        let is_counted = matches!(kind.access(), Access::Count | Access::Push | Access::Pop);
        if is_counted || kind == OpKind::InsertIndexed {
            return Some("counters, lists and indexes, because it is a cache: they would miss evicted rows");
        }
        if refuses_existing {
            return Some("inserts that refuse existing keys, because it is a cache");
        }
    }
    if phase.atomic
        && kind.is_joined()
        && let Some(lack) = transactions(spaces.total())
    {
        return Some(lack);
    }
    match kind {
        OpKind::Get
        | OpKind::MultiGet
        | OpKind::Put
        | OpKind::Merge
        | OpKind::InsertIndexed
        | OpKind::Push => None,
        OpKind::Insert => unless(!refuses_existing || has(KV_CAN_NEW), "inserts that refuse existing keys"),
        OpKind::Update | OpKind::ReadModifyWrite => unless(has(KV_OVERWRITE), "overwriting"),
        OpKind::Transaction => {
            transactions(spaces.count()).or_else(|| unless(has(KV_OVERWRITE), "overwriting"))
        }
        OpKind::Delete => unless(has(KV_CAN_DELETE), "deletes"),
        OpKind::Scan if spaces.are_hashes() && has(KV_CAN_PREFIX) => None,
        OpKind::Scan if phase.scan.prefix && !has(KV_CAN_PREFIX) => Some("prefix scans"),
        OpKind::Scan if !phase.scan.prefix && !has(KV_ORDERED) => Some("ordered scans"),
        OpKind::Scan => unless(!phase.scan.reverse || has(KV_CAN_REVERSE), "reverse scans"),
        OpKind::Pop => {
            unless(has(KV_LISTS) || has(KV_CAN_DELETE), "lists, and no deletes to emulate them with")
        }
    }
}

/// Whether the core merges by get and put, because the engine cannot merge or because the phase requests it.
pub(super) fn merges_by_get(phase: &Phase, capabilities: u64) -> bool {
    phase.mix.merge > 0.0 && (capabilities & KV_MERGE_ADD == 0 || phase.emulate.contains(&Emulate::Merge))
}

/// Why threads would search for a key of their own without end; none: each finds one among these `keys`.
pub(super) fn lacks_keys(phase: &Phase, capabilities: u64, keys: u64) -> Option<String> {
    let writers = slots(phase).iter().filter(|slot| slot.writer.is_some()).count() as u64;
    (merges_by_get(phase, capabilities) && writers > keys).then(|| {
        format!(
            "merges by get and put need a key of its own for each thread that writes, and {writers} threads share {keys} \
             keys; use at most {keys} threads"
        )
    })
}

/// The ops that are emulated for this engine, for the report.
pub(super) fn emulated(phase: &Phase, capabilities: u64, spaces: &Spaces) -> Vec<String> {
    let has = |bit: u64| capabilities & bit != 0;
    let means = |kind: OpKind| match kind {
        OpKind::Merge => merges_by_get(phase, capabilities).then_some("merge = get + put"),
        OpKind::MultiGet => (!has(KV_MULTI_GET)).then_some("multi-get = gets"),
        OpKind::Insert => (!has(KV_CAN_NEW)).then_some("insert = put of a new key"),
        OpKind::Scan => {
            let is_held = phase.scan.rows_per_call == 0 || has(KV_CAN_HOLD);
            (!is_held).then_some("scan continues by a search in each call")
        }
        OpKind::Push | OpKind::Pop => (!has(KV_LISTS)).then_some("lists emulated by keys"),
        OpKind::Get | OpKind::Put | OpKind::Update | OpKind::Delete => None,
        OpKind::ReadModifyWrite | OpKind::Transaction | OpKind::InsertIndexed => None,
    };
    let mut texts = spaces.emulated(phase.mix.insert_indexed > 0.0);
    texts.extend(kinds_of(phase).into_iter().filter_map(means).map(String::from));
    texts.dedup();
    texts
}

/// The ops of each thread; none: no limit. With more threads than ops, some have none to do. `draws`: the items of each
/// thread in one pass.
fn quotas(phase: &Phase, draws: &[u64]) -> Option<Vec<u64>> {
    if phase.each_key {
        return Some(draws.to_vec());
    }
    let (all, threads) = (phase.ops_limit()?, draws.len() as u64);
    Some((0..threads).map(|thread| all / threads + u64::from(thread < all % threads)).collect())
}

fn open_sessions(
    shared: &Shared<'_>,
    database: &Database,
    quotas: Option<&[u64]>,
) -> Result<Vec<Session>, Failure> {
    let clock = shared.clock.kind();
    (0..shared.slots.len())
        .map(|thread| {
            let shape = shape_of(shared, thread, quotas.map(|quotas| quotas[thread]));
            let mut arena = match shared.is_guarded {
                true => Arena::guarded(shape, clock, shared.stop).touched(),
                false => Arena::new(shape, clock, shared.stop),
            };
            arena.set_split(shared.spaces.split());
            let mut session = database.session(arena).map_err(|error| Failure {
                cause: Cause::EngineError,
                text: format!("phase {}: session of thread {thread}: {error}", shared.phase.name),
            })?;
            if shared.accepts_stale {
                session.accept_stale_reads();
            }
            Ok(session)
        })
        .collect()
}

/// Runs the threads of a phase to its end, with its companions.
pub(super) fn run(
    shared: &Shared<'_>,
    database: &Database,
    outside: Outside<'_>,
    on_tick: OnTick<'_>,
) -> Result<PhaseRun, Failure> {
    let barrier = Barrier::new(shared.slots.len() + 1);
    std::thread::scope(|scope| run_in(scope, &barrier, shared, database, outside, on_tick))
}

fn run_in<'s>(
    scope: &'s Scope<'s, '_>,
    barrier: &'s Barrier,
    shared: &'s Shared<'s>,
    database: &'s Database,
    outside: Outside<'s>,
    on_tick: OnTick<'s>,
) -> Result<PhaseRun, Failure> {
    let usage_failure = |text: String| Failure { cause: Cause::Refused, text };
    let mut companions = companions::of(shared, database, outside, on_tick)?;
    let mut passes = Vec::new();
    for thread in 0..shared.slots.len() {
        let draw = Draw::new(shared, thread).map_err(|error| usage_failure(error.to_string()))?;
        passes.push(draw.pass_len());
    }
    let quotas = quotas(shared.phase, &passes);
    let mut sessions = open_sessions(shared, database, quotas.as_deref())?;
    let buffers_bytes: u64 = sessions.iter_mut().map(|session| session.arena().memory_bytes()).sum();
    let mut workers = Vec::new();
    for (thread, session) in sessions.into_iter().enumerate() {
        let quota = quotas.as_ref().map(|quotas| quotas[thread]);
        let worker = Worker::new(shared, thread, session, quota);
        workers.push(worker.map_err(|error| usage_failure(error.to_string()))?);
    }
    let finished: Arc<Finished> = Arc::default();
    let start = |worker: Worker<'s, 's>| {
        let ending = Ending(Arc::clone(&finished));
        thread_in_or_exit(scope, move || {
            let _ending = ending;
            worker.run(barrier)
        })
    };
    let threads: Vec<_> = workers.into_iter().map(start).collect();
    let target_ops = quotas.map(|quotas| quotas.iter().sum());
    let stage = Stage { scope, finished, target_ops, buffers_bytes };
    companions.iter_mut().for_each(|companion| companion.begin(&stage));
    companions.iter_mut().for_each(|companion| companion.start(&stage));
    barrier.wait();
    companions.iter_mut().for_each(|companion| companion.attend());
    let mut outcomes = Vec::new();
    for thread in threads {
        match thread.join() {
            Ok((outcome, ended)) => {
                if let Err(error) = ended {
                    shared.fail(Cause::EngineError, format!("end of a session: {error}"));
                }
                outcomes.push(outcome);
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    companions.iter_mut().rev().for_each(|companion| companion.end(&outcomes));
    let failure = shared.failure.lock().ok().and_then(|failure| failure.clone());
    let merges = outcomes.iter().map(|outcome| outcome.judge.merges).sum();
    let mut record = record_of(shared, &outcomes, failure.as_ref());
    companions.into_iter().rev().for_each(|companion| companion.record(&outcomes, &mut record));
    Ok(PhaseRun { record, failure, merges })
}

/// The time of the phase, from the first thread that counted to the end of the last one, nanoseconds; 0: nothing was counted.
pub(super) fn elapsed_ns(shared: &Shared<'_>, outcomes: &[Outcome]) -> u64 {
    let end = outcomes.iter().map(|outcome| outcome.end).max().unwrap_or(0);
    let from = shared.counted_from.get().copied().unwrap_or(end);
    shared.clock.to_ns(end.saturating_sub(from))
}

fn thread_record(shared: &Shared<'_>, thread: usize, outcome: &Outcome) -> ThreadRecord {
    let mut all = Tally::new();
    outcome.total.iter().flatten().for_each(|tally| all.merge(tally));
    ThreadRecord {
        thread: thread as u32,
        role: shared.slots[thread].role.into(),
        ops: outcome.judge.ops,
        elapsed_ns: shared.clock.to_ns(outcome.end.saturating_sub(outcome.start)),
        inside_ns: shared.clock.to_ns(outcome.judge.inside_ticks),
        cpu_ns: outcome.times.and_then(|times| times.cpu_ns),
        run_delay_ns: outcome.times.and_then(|times| times.run_delay_ns),
        slept_ns: shared.clock.to_ns(outcome.pacer.as_ref().map_or(0, |pacer| pacer.slept_ticks)),
        p50_ns: all.service.quantile_if_enough(1, 2),
        p99_ns: all.service.quantile_if_enough(99, 100),
        max_ns: all.service.max_ns(),
    }
}

fn kind_records(outcomes: &[Outcome]) -> Vec<KindRecord> {
    let of = |kind: OpKind| {
        let tallies = outcomes.iter().filter_map(|outcome| outcome.total[kind as usize].as_ref());
        let sum = tallies.fold(None, |sum: Option<Tally>, tally| {
            let mut sum = sum.unwrap_or_default();
            sum.merge(tally);
            Some(sum)
        })?;
        Some(KindRecord {
            kind: kind.into(),
            ops: sum.ops,
            misses: sum.misses,
            evicted: sum.evicted,
            rows: sum.rows,
            retries: sum.retries,
            service_ns: sum.service.packed(),
            wait_ns: sum.arrived.as_ref().map(|arrived| arrived.wait.packed()),
            response_ns: sum.arrived.as_ref().map(|arrived| arrived.response.packed()),
        })
    };
    OpKind::ALL.into_iter().filter_map(of).collect()
}

fn check_of(shared: &Shared<'_>, outcomes: &[Outcome]) -> Check {
    let mut wrong = WrongAnswers::default();
    outcomes.iter().for_each(|outcome| wrong.merge(outcome.judge.wrong.clone()));
    let sum = |of: fn(&Judge) -> u64| outcomes.iter().map(|outcome| of(&outcome.judge)).sum();
    let is_foreign = shared.values.are_foreign();
    let level = match (shared.checked, shared.versions) {
        (false, _) => CheckLevel::None,
        _ if is_foreign => CheckLevel::Presence,
        (true, None) if shared.lists.is_none() => CheckLevel::Stateless,
        (true, _) => CheckLevel::Full,
    };
    Check {
        level,
        values: if is_foreign { 0 } else { sum(|judge| judge.values_checked) },
        rows: if is_foreign { 0 } else { sum(|judge| judge.rows_checked) },
        faults: wrong.count,
        first_faults: wrong.first,
    }
}

fn record_of(shared: &Shared<'_>, outcomes: &[Outcome], failure: Option<&Failure>) -> PhaseRecord {
    let sum = |of: fn(&Judge) -> u64| -> u64 { outcomes.iter().map(|outcome| of(&outcome.judge)).sum() };
    let busy: u64 = outcomes.iter().map(|outcome| outcome.busy_ticks()).sum();
    let inside = sum(|judge| judge.inside_ticks);
    let ended_by = match failure {
        Some(_) => EndedBy::Failure,
        None if outcomes.iter().any(|outcome| outcome.out_of_keys) => EndedBy::Keys,
        None if outcomes.iter().all(|outcome| outcome.by_count) => EndedBy::Count,
        None if shared.is_steady.load(Ordering::Acquire) => EndedBy::Steady,
        None => EndedBy::Time,
    };
    let batches = sum(|judge| judge.batches);
    PhaseRecord {
        phase: shared.phase.clone(),
        round: shared.round,
        not_run: failure.map(|failure| format!("cut short: {}", failure.text)),
        durability_effective: None,
        durability_requested: Durability::None,
        emulated: emulated(shared.phase, shared.capabilities, shared.spaces),
        elapsed_ns: elapsed_ns(shared, outcomes),
        ops: sum(|judge| judge.ops),
        ended_by,
        keys_after: None,
        kinds: kind_records(outcomes),
        threads: outcomes
            .iter()
            .enumerate()
            .map(|(at, outcome)| thread_record(shared, at, outcome))
            .collect(),
        series: Vec::new(),
        stalls: Vec::new(),
        usage: Usage::default(),
        watcher: None,
        device: None,
        noise: None,
        cap_use: None,
        logical_bytes_written: sum(|judge| judge.written_bytes),
        logical_bytes_read: sum(|judge| judge.read_bytes),
        disk_peak: None,
        disk_end: None,
        engine_stats: Vec::new(),
        disk_settled: None,
        batch_mean: if batches > 0 { sum(|judge| judge.batch_ops) as f64 / batches as f64 } else { 0.0 },
        call_times: CallTimes::of_all(outcomes.iter().map(|outcome| outcome.judge.times.totals())),
        harness_share: if busy > 0 { 1.0 - (inside as f64 / busy as f64).min(1.0) } else { 0.0 },
        harness: Some(harness_times(shared, outcomes)),
        check: check_of(shared, outcomes),
        observed: None,
        load_generators: Vec::new(),
        buffers_bytes: None,
        disturbed: None,
        staleness: None,
        arrivals: None,
        system_calls: None,
    }
}

/// What the harness spent its part of the threads' time on.
fn harness_times(shared: &Shared<'_>, outcomes: &[Outcome]) -> HarnessTimes {
    let mut times = HarnessTimes::default();
    for outcome in outcomes {
        let judge = &outcome.judge;
        let ns = |ticks| shared.clock.to_ns(ticks);
        // A thread that waits for the moment of a request reads the clock all the time shortly before it.
        let spun = outcome.pacer.as_ref().map_or(0, |pacer| pacer.spun_ticks);
        let outside = (outcome.busy_ticks() + spun).saturating_sub(judge.inside_ticks);
        let boundary = judge.times.within_bound_ticks().min(outside);
        let checks = judge.check_ticks.min(outside - boundary);
        times.boundary_ns += ns(boundary);
        times.checks_ns += ns(checks);
        times.generation_ns += ns(outside - boundary - checks);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_are_divided_among_all_threads_and_surplus_threads_have_none() {
        let of = |ops, threads: usize| quotas(&Phase { ops, ..Phase::default() }, &vec![7; threads]);
        assert_eq!(of(3, 8), Some(vec![1, 1, 1, 0, 0, 0, 0, 0]));
        assert_eq!(of(8, 3), Some(vec![3, 3, 2]));
        assert_eq!(of(0, 3), None, "no limit");
        let each_key = Phase { each_key: true, ops: 5, ..Phase::default() };
        assert_eq!(quotas(&each_key, &[2, 1, 0]), Some(vec![2, 1, 0]));
    }
}
