//! The hot loop: fill a batch, execute it, judge it, publish once a second. It does not allocate memory (except a buffer if
//! the watcher is over a second late), locks only to publish, and makes no system calls.

use super::chooser::Chooser;
use super::companions::ROW_NS;
use super::companions::faults::Acknowledged;
use super::draw::{Draw, Item, holds_scans, rows_of_call};
use super::epochs::Cursor;
use super::judge::Judge;
use super::longest::{LongOp, Longest};
use super::pacer::Pacer;
use super::phase::merges_by_get;
use super::phase_data::{Runs, Shared, Slot, Tallies, tallies_of};
use super::rows::RowsCheck;
use crate::engine::abi::*;
use crate::engine::{Arena, EngineError, Executed, Session, Status};
use crate::generator::SpecError;
use crate::results::Cause;
use crate::workload::{OpKind, Transaction};
use kvdyno_measure::ThreadTimes;
use kvdyno_measure::stall::LEAST_STALL_NS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError};
use std::time::Duration;

/// Ops of a batch of fast ops. Larger batches are not faster (docs/decisions.md, "Batches").
pub(super) const BATCH_OPS: usize = 64;
/// Calls that take longer get smaller batches, down to `WARM_OPS`: the data of a batch then fits into the nearest cache
/// and leaves most of it to the engine; nanoseconds.
const WARM_CALL_NS: u64 = 8_000;
/// The number of ops of such a small batch.
const WARM_OPS: usize = 8;
/// A call that takes longer halves the batch further, so that stop times and series stay precise; nanoseconds.
const LONG_CALL_NS: u64 = 1_000_000;
/// A thread whose op failed in a phase with faults waits for this time and a random one up to that.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE_US: u64 = 9_000;

/// The results of a thread.
pub(super) struct Outcome {
    /// All its tallies, without warm-up.
    pub total: Tallies,
    /// Its checks.
    pub judge: Judge,
    /// Its longest ops, without warm-up.
    pub longest: Longest,
    /// When its ops were acknowledged, without warm-up; none: the phase has no faults.
    pub acknowledged: Option<Acknowledged>,
    /// Its arrivals; none: the phase has no rate.
    pub pacer: Option<Box<Pacer>>,
    /// Tick at which it began to count.
    pub start: u64,
    /// Tick at which it ended.
    pub end: u64,
    /// Its CPU times while it counted; none: threads of the driver's runtime ran it.
    pub times: Option<ThreadTimes>,
    /// It ended because its count was reached.
    pub by_count: bool,
    /// It ended because no key was left to insert.
    pub out_of_keys: bool,
}

impl Outcome {
    /// The time that it did not wait for requests, ticks.
    pub(super) fn busy_ticks(&self) -> u64 {
        let waited = self.pacer.as_ref().map_or(0, |pacer| pacer.slept_ticks + pacer.spun_ticks);
        self.end.saturating_sub(self.start).saturating_sub(waited)
    }
}

/// The seconds of the rows of the series: all threads count them from the same tick.
#[derive(Clone, Copy, Debug)]
struct Seconds {
    from: u64,
    length: u64,
    /// Tick at which the thread's current row ends.
    end: u64,
}

impl Seconds {
    /// Those of a thread that does not count yet: none of them ends.
    const NONE: Seconds = Seconds { from: 0, length: u64::MAX, end: u64::MAX };

    /// Seconds that begin at a tick, with this many ticks each.
    fn from(from: u64, length: u64) -> Seconds {
        Seconds { from, length, end: from.saturating_add(length) }
    }

    /// Moves to the row that contains `now`; returns its number.
    fn pass(&mut self, now: u64) -> u64 {
        let row = now.saturating_sub(self.from) / self.length;
        self.end = self.from + (row + 1) * self.length;
        row
    }
}

/// The part of a loop that counts.
struct Counted {
    /// Tick at which it began.
    start: u64,
    /// Tick at which it ended.
    end: u64,
    /// As in [`Outcome`].
    times: Option<ThreadTimes>,
}

/// One thread of a phase.
pub(super) struct Worker<'s, 'p> {
    shared: &'s Shared<'p>,
    thread: usize,
    slot: &'s Slot,
    /// The slot's counter, looked up once.
    ops: &'s AtomicU64,
    session: Session,
    draw: Draw,
    judge: Judge,
    rows: RowsCheck,
    total: Tallies,
    longest: Longest,
    acknowledged: Option<Acknowledged>,
    /// None: the next request is sent when the last one has ended.
    pacer: Option<Box<Pacer>>,
    /// The ops that it has to do; none: no limit.
    quota: Option<u64>,
    issued: u64,
    target: usize,
    most: usize,
    warm_ticks: u64,
    long_ticks: u64,
    seconds: Seconds,
    counts: bool,
    /// How far it has checked for threads that hold back the epoch.
    cursor: Cursor,
    emulates_merge: bool,
    /// Scans keep their iterator from call to call, one at a time.
    holds_scans: bool,
    /// For merges by get and put: the counters of a unit and their positions in it.
    sums: Vec<(u64, usize)>,
}

impl<'s, 'p> Worker<'s, 'p> {
    /// A thread with `quota` ops to do; none: no limit.
    pub(super) fn new(
        shared: &'s Shared<'p>,
        thread: usize,
        mut session: Session,
        quota: Option<u64>,
    ) -> Result<Worker<'s, 'p>, SpecError> {
        let slot = &shared.slots[thread];
        let mix = super::draw::mix_of(shared.phase, slot.role);
        let chooser = Chooser::new(&mix).ok_or_else(|| SpecError("an empty mix".into()))?;
        let most = BATCH_OPS.min(session.arena().shape().ops);
        Ok(Worker {
            shared,
            thread,
            slot,
            ops: &slot.ops,
            session,
            draw: Draw::new(shared, thread)?,
            judge: Judge::new(
                tallies_of(shared, chooser.kinds()),
                shared.clock,
                shared.bound,
                shared.knows_staleness(),
            ),
            rows: RowsCheck::default(),
            total: tallies_of(shared, chooser.kinds()),
            longest: Longest::new(shared.clock.from_ns(LEAST_STALL_NS)),
            acknowledged: Acknowledged::of(shared),
            pacer: Pacer::of(shared, thread).map(Box::new),
            quota,
            issued: 0,
            target: WARM_OPS.min(most),
            most,
            warm_ticks: shared.clock.from_ns(WARM_CALL_NS),
            long_ticks: shared.clock.from_ns(LONG_CALL_NS),
            seconds: Seconds::NONE,
            counts: false,
            cursor: Cursor::default(),
            emulates_merge: merges_by_get(shared.phase, shared.capabilities) && mix.merge > 0.0,
            holds_scans: holds_scans(shared.phase, shared.capabilities),
            sums: Vec::with_capacity(shared.phase.join as usize),
        })
    }

    fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Waits for the others, then runs until the phase ends. Ends the session.
    pub(super) fn run(mut self, barrier: &Barrier) -> (Outcome, Result<Arena, EngineError>) {
        barrier.wait();
        let fail = |worker: &Worker<'_, '_>, error: EngineError| {
            worker.shared.fail(Cause::EngineError, format!("phase {}: {error}", worker.shared.phase.name));
        };
        // SAFETY: the loop asks for what belongs to its thread only if no driver runs it, and holds no lock while it calls.
        #[allow(unsafe_code, reason = "the compiler cannot check what a loop keeps between turns")]
        let driven = unsafe { Session::drive(&mut self, Worker::session, Worker::run_to_the_end) };
        let counted = match driven {
            Ok((counted, Ok(()))) => counted,
            Ok((counted, Err(error))) => {
                fail(&self, error);
                counted
            }
            Err(error) => {
                fail(&self, error);
                let now = self.shared.clock.now();
                Counted { start: now, end: now, times: None }
            }
        };
        self.slot.runs_in(Runs::Nowhere);
        self.publish(u64::MAX);
        if self.shared.checked {
            self.judge.check_times();
        }
        let outcome = Outcome {
            total: self.total,
            longest: self.longest,
            acknowledged: self.acknowledged,
            pacer: self.pacer,
            start: counted.start,
            end: counted.end,
            times: counted.times,
            by_count: self.quota.is_some_and(|quota| self.issued >= quota),
            out_of_keys: self.draw.is_out_of_keys(),
            judge: self.judge,
        };
        (outcome, self.session.end())
    }

    /// The loop. If the driver runs it (rule 12), different threads of its runtime may run parts of it.
    fn run_to_the_end(&mut self) -> Counted {
        let clock = self.shared.clock;
        let is_driven = self.session.is_driven();
        let times_now = || (!is_driven).then(ThreadTimes::of_this_thread);
        let mut times = times_now();
        self.slot.runs_in(Runs::of(times.and_then(|times| times.thread)));
        let begin = clock.now();
        let warm_until = self.shared.warm_until.load(Ordering::Acquire);
        let (mut start, mut now) = (begin, begin);
        if begin >= warm_until {
            start = self.begin_counting(begin);
        }
        let mut end_at = self.shared.end_at();
        self.session.arena().set_deadline(end_at);
        if let Some(pacer) = &mut self.pacer {
            pacer.begin(self.shared, begin);
        }
        self.begin_transaction();
        loop {
            if self.shared.stop.load(Ordering::Relaxed) != 0 || end_at.is_some_and(|end| now >= end) {
                break;
            }
            // The ops of the warm-up are not among those to do.
            let left = self.quota.filter(|_| self.counts).map(|quota| quota.saturating_sub(self.issued));
            if left == Some(0) {
                break;
            }
            now = self.batch(left.unwrap_or(u64::MAX)).unwrap_or_else(|| clock.now());
            if !self.counts && now >= warm_until {
                self.judge.forget_warm_up();
                times = times_now();
                now = clock.now();
                start = self.begin_counting(now);
                end_at = self.shared.end_at();
                self.session.arena().set_deadline(end_at);
            }
            if self.draw.is_out_of_keys() && self.draw.items.is_empty() {
                break;
            }
        }
        if self.end_transaction() {
            now = clock.now();
        }
        if let Some(acknowledged) = &mut self.acknowledged {
            acknowledged.end(now);
        }
        let times = times.map(|earlier| ThreadTimes::of_this_thread().since(&earlier));
        Counted { start, end: now, times }
    }

    /// The thread counts from now on; returns the tick at which its own time begins.
    #[cold]
    fn begin_counting(&mut self, now: u64) -> u64 {
        let from = self.shared.begin_counting(now);
        // Another thread may have read the clock later and stored it earlier.
        let start = now.max(from);
        self.counts = true;
        self.seconds = Seconds::from(from, self.shared.clock.from_ns(ROW_NS));
        if let Some(acknowledged) = &mut self.acknowledged {
            acknowledged.begin(from, start);
        }
        start
    }

    /// Runs one batch; returns the tick at which it had been judged, if it was judged as a whole.
    #[inline(always)]
    fn batch(&mut self, left: u64) -> Option<u64> {
        let epochs = self.shared.epochs.as_ref();
        if let Some(epochs) = epochs {
            self.draw.epoch = epochs.pin(self.thread);
        }
        let returned = self.whole_batch(left);
        if let Some(epochs) = epochs {
            epochs.unpin(self.thread, &mut self.cursor);
        }
        returned
    }

    #[inline(always)]
    fn whole_batch(&mut self, left: u64) -> Option<u64> {
        let shared = self.shared;
        let is_single = self.emulates_merge || self.holds_scans || self.pacer.is_some();
        let target = if is_single { 1 } else { self.target };
        if self.pacer.is_some() && !self.take_arrival() {
            return None;
        }
        self.draw.fill(shared, self.session.arena(), target, left);
        if self.draw.items.is_empty() {
            return None;
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.wait(self.counts);
        }
        if self.emulates_merge && self.draw.items[0].kind == OpKind::Merge {
            self.merge_by_get_and_put();
            return None;
        }
        let before = self.judge.ops;
        let executed = self.session.execute(0, self.draw.items.len());
        let returned = executed.span.left;
        self.pass(returned);
        self.note_sent(&executed);
        let ticks = self.call_ticks(&executed);
        self.judge.batch(shared, &mut self.draw, self.session.arena(), &executed, self.counts);
        let called = self.judge.times.called_ticks();
        if self.shared.inserters > 0 {
            self.slot.inserted.store(self.draw.inserted, Ordering::Release);
        }
        if self.judge.interval[OpKind::Scan as usize].is_some() {
            self.finish_scans(&executed);
        }
        let judged = shared.clock.now();
        if self.counts {
            // The pieces of resumed scans are calls within this time.
            let pieces = self.judge.times.called_ticks() - called;
            self.judge.check_ticks += judged.saturating_sub(returned).saturating_sub(pieces);
        }
        self.issued += self.judge.ops - before;
        if self.acknowledged.is_some() {
            self.note_acknowledged(&executed);
        }
        self.heartbeat(executed.done);
        self.adapt(ticks);
        Some(judged)
    }

    /// Takes the next arrival of a phase with a rate; returns false if there is none before its end.
    #[inline(never)]
    fn take_arrival(&mut self) -> bool {
        let end_at = self.shared.end_at();
        self.pacer.as_mut().is_some_and(|pacer| pacer.take(self.shared, end_at, self.counts))
    }

    /// Notes how long the request of a call had waited, in a phase with a rate.
    #[inline(always)]
    fn note_sent(&mut self, executed: &Executed) {
        if let Some(pacer) = &mut self.pacer {
            let start = self.session.arena().op(0).start;
            let ticks = pacer.sent(start, executed.span.left, executed.done > 0, self.counts);
            self.judge.waited_ns = self.shared.clock.to_ns(ticks);
        }
    }

    /// Notes when the units of a batch were acknowledged, in a phase with faults. After an error the thread waits for a moment, so
    /// that threads whose ops failed together do not go on together.
    #[inline(never)]
    fn note_acknowledged(&mut self, executed: &Executed) {
        let Some(acknowledged) = &mut self.acknowledged else { return };
        acknowledged.note(&self.draw.items, self.session.arena(), executed, self.counts);
        if executed.error.is_some() {
            let now = self.shared.clock.now();
            std::thread::sleep(FIRST_PAUSE + Duration::from_micros(now % LONGEST_PAUSE_US));
        }
    }

    /// The ticks of a call by the driver's stamps; counts them as time inside the driver.
    #[inline(always)]
    fn call_ticks(&mut self, executed: &Executed) -> u64 {
        let arena = self.session.arena();
        let Some(last) = executed.done.checked_sub(1) else { return 0 };
        let ticks = arena.op(last).end.saturating_sub(arena.batch().start);
        if self.counts {
            self.judge.call(ticks, arena.batch().waited, executed);
            if self.longest.has_room(ticks) {
                self.longest.keep_call(&self.draw.items, arena, executed);
            }
        }
        ticks
    }

    #[inline(always)]
    fn heartbeat(&mut self, done: usize) {
        // Only this thread stores it, so no read-modify-write is needed.
        let ops = self.ops.load(Ordering::Relaxed);
        self.ops.store(ops + done as u64, Ordering::Relaxed);
    }

    /// Adapts the size of the next batch to the last one, which took `ticks`.
    #[inline(always)]
    fn adapt(&mut self, ticks: u64) {
        let (warm, long) = (self.warm_ticks, self.long_ticks);
        if (ticks > warm && self.target > WARM_OPS) || ticks > long {
            self.target = (self.target / 2).max(1);
        } else if self.target < self.most && ticks < if self.target < WARM_OPS { long / 2 } else { warm / 2 }
        {
            self.target = (self.target * 2).min(self.most);
        }
    }

    /// Checks the rows of the batch's scans, and resumes those that filled their buffer. The service time of a scan is the
    /// sum over its pieces.
    fn finish_scans(&mut self, executed: &Executed) {
        for at in 0..executed.done {
            let item = self.draw.items[at];
            if item.kind != OpKind::Scan {
                continue;
            }
            let next = self.draw.items.get(at + 1).filter(|next| next.kind == OpKind::Scan).copied();
            self.finish_scan(at, item, next);
        }
    }

    /// The scan at `at`; `next`: the one after it.
    fn finish_scan(&mut self, at: usize, item: Item, next: Option<Item>) {
        let shared = self.shared;
        let arena = self.session.arena();
        let op = *arena.op(at);
        let mut ticks = op.end.saturating_sub(op.start);
        if shared.checked {
            self.rows.begin(shared, item.index, &op, arena.key(at), arena.value(at));
            if let Some(next) = next {
                self.rows.prepare(shared, next.index, arena.op(at + 1).user as u32);
            }
            loop {
                let arena = self.session.arena();
                let kv_op { status, rows, limit, .. } = *arena.op(at);
                self.rows.piece(shared, arena.delivered(at), rows, &mut self.judge.wrong);
                let continues = match Status::of(status) {
                    Status::Short => rows > 0 || !self.is_row_too_large(at),
                    Status::Ok => rows == limit && self.rows.left() > 0,
                    // Not answers of a scan: the call has an error.
                    Status::NotFound | Status::Exists | Status::Conflict | Status::Aborted => false,
                    Status::Full | Status::TooLarge | Status::Unsupported => false,
                    Status::NotRun | Status::Error | Status::Unknown(_) => false,
                };
                if !continues {
                    if status == KV_OK {
                        self.rows.end(shared, &mut self.judge.wrong);
                    }
                    break;
                }
                if self.rows.is_endless(shared, &mut self.judge.wrong) {
                    break;
                }
                let Some(piece) = self.resume(at) else { break };
                ticks += piece;
            }
            if self.holds_scans {
                ticks += self.drop_iterator(at).unwrap_or(0);
            }
            self.judge.scan(&self.rows, self.counts);
        }
        if self.counts {
            self.judge.tally(shared, &item, ticks);
            if self.longest.has_room(ticks) {
                let end = shared.clock.now();
                self.longest.keep(LongOp { kind: item.kind.name(), start: op.start, end, ticks });
            }
        }
    }

    /// Handles a short scan without a row: a row does not fit, although the buffer can hold the largest row.
    fn is_row_too_large(&mut self, at: usize) -> bool {
        let needed = self.session.arena().op(at).needed;
        self.judge.wrong.add(|| format!("scan: a row of {needed} bytes, larger than any written"));
        true
    }

    /// Resumes a scan after its last row; returns the ticks, or none after a failure.
    fn resume(&mut self, at: usize) -> Option<u64> {
        let arena = self.session.arena();
        let key = self.rows.last_key();
        let has_moved = *key != *arena.key(at);
        if key.len() > arena.shape().key_bytes {
            return None;
        }
        arena.key_mut(at)[..key.len()].copy_from_slice(key);
        let op = arena.op_mut(at);
        op.key_length = key.len() as u32;
        op.flags |= KV_RESUME;
        op.limit = rows_of_call(&self.shared.phase.scan, self.rows.left());
        // A scan of many calls is one op, so a long one would seem to hang. Only rows count as progress.
        self.heartbeat(usize::from(has_moved));
        self.again(at, "resumed scan")
    }

    /// Releases the iterator that a scan has kept open; returns the ticks, or none after a failure.
    fn drop_iterator(&mut self, at: usize) -> Option<u64> {
        let op = self.session.arena().op_mut(at);
        (op.kind, op.flags, op.key_length, op.value_length) = (KV_DROP, 0, 0, 0);
        self.again(at, "end of a scan")
    }

    /// Makes one more call for an op that is part of a scan; returns the ticks, or none after a failure.
    fn again(&mut self, at: usize, what: &str) -> Option<u64> {
        let executed = self.session.execute(at, 1);
        self.pass(executed.span.left);
        if let Some((_, text)) = &executed.error {
            self.shared.fail(Cause::EngineError, format!("phase {}: {what}: {text}", self.shared.phase.name));
            return None;
        }
        let arena = self.session.arena();
        let op = arena.op(at);
        let ticks = op.end.saturating_sub(op.start);
        if self.counts {
            self.judge.call(ticks, arena.batch().waited, &executed);
        }
        (executed.done == 1).then_some(ticks)
    }

    /// Publishes the results of earlier seconds before anything that ended at `now` is counted.
    #[inline(always)]
    fn pass(&mut self, now: u64) {
        if now >= self.seconds.end {
            self.pass_second(now);
        }
    }

    #[cold]
    fn pass_second(&mut self, now: u64) {
        let row = self.seconds.pass(now);
        self.publish(row);
    }

    /// Publishes the current row to the watcher and adds it to the thread's total; the next row is `next`.
    #[cold]
    fn publish(&mut self, next: u64) {
        if !self.counts {
            self.judge.forget_warm_up();
        }
        let mut published = self.slot.published.lock().unwrap_or_else(PoisonError::into_inner);
        published.publish(&self.judge.interval, next);
        drop(published);
        for (new, total) in self.judge.interval.iter_mut().zip(&mut self.total) {
            if let (Some(new), Some(total)) = (new, total) {
                total.merge(new);
                new.clear();
            }
        }
    }

    /// Runs the merges of the batch, which are one unit: separate gets, then puts that are joined like the merges. The
    /// unit's time is the sum of both calls. No other thread writes these counters, so no update is lost.
    fn merge_by_get_and_put(&mut self) {
        let shared = self.shared;
        let unit = self.draw.items[0];
        let count = self.draw.items.len();
        let arena = self.session.arena();
        let tie = arena.op(0).flags & KV_ATOMIC;
        for at in 0..count {
            let op = arena.op_mut(at);
            (op.kind, op.flags, op.value_length) = (KV_GET, 0, 0);
        }
        let (got, mut ticks) = self.timed(count);
        self.note_sent(&got);
        let mut merged = 0;
        let mut error = got.error;
        if error.is_none() && got.done == count && self.add_up(count) {
            for at in 0..count {
                let op = self.session.arena().op_mut(at);
                let join = if at + 1 < count { KV_JOIN } else { 0 };
                (op.kind, op.flags, op.value_length) = (KV_PUT, tie | join, 8);
            }
            let (put, of_puts) = self.timed(count);
            ticks += of_puts;
            let arena = self.session.arena();
            merged = (0..put.done).filter(|&at| arena.op(at).status == KV_OK).count();
            if tie != 0 {
                self.judge.transaction(arena, unit, 0..count, put.done);
            }
            error = put.error;
        }
        if let Some((at, text)) = error {
            let index = self.draw.items.get(at).map_or(0, |item| item.index);
            let phase = &shared.phase.name;
            shared.fail(Cause::EngineError, format!("phase {phase}: merge of key {index}: {text}"));
        }
        self.judge.merges += merged as u64;
        if merged == count && self.counts {
            self.judge.tally(shared, &unit, ticks);
        }
        // Failed merges count as issued too, or the phase would not end.
        if self.counts {
            self.issued += count as u64;
        }
        let arena = self.session.arena();
        let bytes = |at| arena.key(at).len() as u64 - shared.mark_bytes + 8;
        self.judge.written_bytes += (0..merged).map(bytes).sum::<u64>();
        self.heartbeat(merged);
    }

    /// Executes the first `count` ops; returns the result and the ticks.
    fn timed(&mut self, count: usize) -> (Executed, u64) {
        let executed = self.session.execute(0, count);
        self.pass(executed.span.left);
        let ticks = self.call_ticks(&executed);
        (executed, ticks)
    }

    /// Computes the values to put from those that were read: each plus one, and plus one again if a unit has a counter
    /// twice. Returns false if a value is not a counter, or was not read.
    fn add_up(&mut self, count: usize) -> bool {
        self.sums.clear();
        self.sums.extend(self.draw.items[..count].iter().enumerate().map(|(at, item)| (item.index, at)));
        self.sums.sort_unstable();
        let mut last = (u64::MAX, 0);
        for &(index, at) in &self.sums {
            let arena = self.session.arena();
            let stored = match Status::of(arena.op(at).status) {
                // An engine that stores nothing has no value to add to.
                Status::Ok if !self.shared.checked => Some(0),
                Status::Ok => arena.delivered(at).try_into().ok().map(u64::from_le_bytes),
                Status::NotFound => Some(0),
                Status::Short => None,
                // Not answers of a get: the call has an error.
                Status::Exists | Status::Conflict | Status::Aborted | Status::Full => return false,
                Status::TooLarge | Status::Unsupported | Status::NotRun => return false,
                Status::Error | Status::Unknown(_) => return false,
            };
            let Some(stored) = stored else {
                self.judge.wrong.add(|| format!("counter {index}: its value does not have 8 bytes"));
                return false;
            };
            let sum: u64 = if last.0 == index { last.1 } else { stored };
            last = (index, sum.wrapping_add(1));
            arena.value_mut(at)[..8].copy_from_slice(&last.1.to_le_bytes());
        }
        true
    }

    /// Begins the transaction, if the phase is one.
    fn begin_transaction(&mut self) {
        if self.shared.phase.transaction.is_some() {
            self.control(KV_BEGIN, "begin");
        }
    }

    /// Commits or aborts the transaction; returns whether there was one. After a failure, the end of the session does that.
    fn end_transaction(&mut self) -> bool {
        // The transaction must end even if the phase is late.
        self.session.arena().set_deadline(None);
        match self.shared.phase.transaction {
            Some(Transaction::Whole) => self.control(KV_COMMIT, "commit"),
            Some(Transaction::Aborted) => self.control(KV_ABORT, "abort"),
            None => return false,
        }
        true
    }

    fn control(&mut self, kind: u8, what: &'static str) {
        let op = self.session.arena().op_mut(0);
        (op.kind, op.flags, op.keyspace) = (kind, 0, 0);
        (op.key_length, op.value_length, op.limit) = (0, 0, 0);
        let executed = self.session.execute(0, 1);
        let kv_op { start, end, status, .. } = *self.session.arena().op(0);
        let ticks = end.saturating_sub(start);
        // It was not run because the phase was stopped.
        if executed.done == 0 && executed.error.is_none() {
            return;
        }
        let waited = self.session.arena().batch().waited;
        self.judge.control(ticks, waited, &executed, self.counts);
        if self.counts && self.longest.has_room(ticks) {
            self.longest.keep(LongOp { kind: what, start, end, ticks });
        }
        let phase = &self.shared.phase.name;
        match executed.error {
            Some((_, text)) => {
                self.shared
                    .fail(Cause::EngineError, format!("phase {phase}: {what} of its transaction: {text}"));
            }
            None if status == KV_OK => {}
            None => self.shared.fail(
                Cause::EngineError,
                format!("phase {phase}: {what} of its transaction: status {status}"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_count_seconds_from_the_common_tick() {
        let mut seconds = Seconds::from(500, 100);
        assert_eq!(seconds.end, 600);
        // Exactly at the end, late, several seconds at once, and before the beginning.
        for (now, row, end) in [(600, 1, 700), (799, 2, 800), (1_250, 7, 1_300), (1_300, 8, 1_400)] {
            assert_eq!((seconds.pass(now), seconds.end), (row, end), "at {now}");
        }
        assert_eq!(Seconds::from(500, 100).pass(3), 0);
    }
}
