//! Sends acts through one session and checks every call against the rules for all calls: stamps, `done`, statuses,
//! error texts, and memory that the driver must not touch.

use super::act::{Act, Reply, group_end, status_name};
use super::failure::{CallError, Failure};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Arena, Database, Executed, Session, Shape};
use kvdyno_measure::Clock;
use kvdyno_measure::sync_calls::{CallCounts, SyncCalls};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes after each out buffer that drivers must not write to.
const GUARD_BYTES: usize = 64;
/// How many bytes after the delivered ones are checked in the out buffer.
const LOOK_BYTES: usize = 512;
const POISON: u64 = 0x5a5a_5a5a_5a5a;
/// Two consecutive reads of the counter may be out of order by this much.
const SLACK_NS: u64 = 1000;

/// One session and the known contents of its memory.
pub(crate) struct Caller {
    session: Session,
    clock: Clock,
    out_bytes: usize,
    /// Filled into the fields that a driver must write, to detect drivers that do not; 0 for an engine that stores
    /// nothing.
    poison: u64,
    /// Contents of each out slot, guard included.
    shadows: Vec<Vec<u8>>,
    stop: &'static AtomicU32,
    faults: StampFaults,
    /// Whether the memory that a driver must not touch is looked at after each call, which takes longer than a short call.
    looks: bool,
    /// The counter of this process's sync calls; `None` if they are not counted.
    calls: Option<SyncCalls>,
}

/// Wrong stamps of all calls. One check reports them, so that they do not hide what other checks find.
#[derive(Clone, Debug, Default)]
pub(crate) struct StampFaults(Arc<Mutex<Vec<String>>>);

impl StampFaults {
    fn push(&self, text: String) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The first ones are enough.
        if faults.len() < 3 {
            faults.push(text);
        }
    }

    /// All faults as one text; `None` if there are none.
    pub(crate) fn text(&self) -> Option<String> {
        let faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// Bytes of an arena's slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    /// Maximum ops of a call.
    pub ops: usize,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub out_bytes: usize,
}

/// The result of a call.
pub(crate) struct Call {
    pub answers: Vec<Reply>,
    /// Acts that were run.
    pub done: usize,
    /// Duration of the call seen from outside, ticks.
    pub wall: u64,
    /// Time that the kit reports as belonging to no op, ticks.
    pub waited: u64,
    /// Sync calls from the beginning of the call to its end; none if they are not counted.
    pub counted: CallCounts,
}

impl Caller {
    /// Opens a session with slots of the given sizes.
    pub(crate) fn new(
        database: &Database,
        clock: Clock,
        slots: Slots,
        faults: StampFaults,
    ) -> Result<Caller, CallError> {
        let Slots { ops, key_bytes, value_bytes, out_bytes } = slots;
        let shape = Shape { ops, key_bytes, value_bytes, out_bytes: out_bytes + GUARD_BYTES };
        // One leaked word per session: four bytes, and it can never dangle.
        let stop: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let arena = Arena::guarded(shape, clock.kind(), stop);
        let session = database.session(arena).map_err(CallError::of("session"))?;
        let shadows = vec![vec![0; shape.out_bytes]; ops];
        let is_floor = database.effective().capabilities & KV_STORES_NOTHING != 0;
        let poison = if is_floor { 0 } else { POISON };
        Ok(Caller { session, clock, out_bytes, poison, shadows, stop, faults, looks: true, calls: None })
    }

    /// From now on the sync calls of each call are counted.
    pub(crate) fn counting(self, calls: SyncCalls) -> Caller {
        Caller { calls: Some(calls), ..self }
    }

    /// From now on the memory that a driver must not touch is not looked at. Only for puts and deletes, which return no bytes.
    pub(crate) fn without_looks(self) -> Caller {
        Caller { looks: false, ..self }
    }

    /// The session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(crate) fn end(self) -> Result<(), CallError> {
        self.session.end().map(drop).map_err(CallError::of("end of session"))
    }

    /// The word that ends a call early.
    pub(crate) fn stop(&self) -> &'static AtomicU32 {
        self.stop
    }

    /// Sends all acts in one call; all of them must be run.
    pub(crate) fn call(&mut self, acts: &[Act]) -> Result<Vec<Reply>, Failure> {
        self.call_whole(acts).map(|call| call.answers)
    }

    /// The same, with all that is known of the call.
    pub(crate) fn call_whole(&mut self, acts: &[Act]) -> Result<Call, Failure> {
        let call = self.call_from(0, acts, None)?;
        if call.done != acts.len() {
            let said = call.answers.iter().find_map(|answer| answer.said.as_ref());
            let said = said.map_or(String::new(), |text| format!("; the driver reports: {text}"));
            return Err(Failure::Broken(format!(
                "rule 3: `done` is {} after a call of {} ops{said}",
                call.done,
                acts.len()
            )));
        }
        Ok(call)
    }

    /// Sends all acts in one call, in the slots from `first` on, with a deadline (a tick).
    pub(crate) fn call_from(
        &mut self,
        first: usize,
        acts: &[Act],
        deadline: Option<u64>,
    ) -> Result<Call, Failure> {
        for (index, act) in acts.iter().enumerate() {
            self.write(first + index, act);
        }
        self.session.arena().set_deadline(deadline);
        let counts = || self.calls.map(|calls| calls.counts()).unwrap_or_default();
        let calls_before = counts();
        let executed = self.session.attempt(first, acts.len());
        // At once: what an engine does after its acknowledgement does not belong to the call.
        let counted = counts().since(&calls_before);
        let (before, after) = (executed.span.entered, executed.span.left);
        if let (true, Some((index, text))) = (executed.is_breach, &executed.error) {
            let act = acts.get(index - first).map_or(String::new(), |act| format!(" ({act})"));
            return Err(Failure::Broken(format!("op {}{act}: {text}", index - first)));
        }
        let ops = self.ops(first, acts.len());
        let batch = self.session.arena().batch();
        let (start, waited) = (batch.start, batch.waited);
        if self.looks {
            self.check_memory(first, acts, &ops)?;
        }
        check_statuses(acts, &ops, &executed)?;
        let slack = self.clock.from_ns(SLACK_NS);
        let window =
            Window { before: before.saturating_sub(slack), start, after: after.saturating_add(slack) };
        if let Err(failure) = check_stamps(acts, &ops[..executed.done], &window) {
            self.faults.push(failure.to_string());
        }
        let wall = after.saturating_sub(before);
        if waited > wall.saturating_add(slack) {
            self.faults.push(format!("rule 7: `waited` is {waited} ticks, longer than the call of {wall}"));
        }
        if waited != 0 && acts.iter().all(|act| act.due == 0) {
            self.faults.push(format!("rule 7: `waited` is {waited} ticks, but no op had a due time"));
        }
        let answers = (0..acts.len())
            .map(|index| self.answer(first + index, &ops[index]).saying(executed.error.as_ref()))
            .collect();
        Ok(Call { answers, done: executed.done, wall, waited, counted })
    }

    fn write(&mut self, index: usize, act: &Act) {
        let (out_bytes, poison) = (self.out_bytes, self.poison);
        let arena = self.session.arena();
        arena.key_mut(index)[..act.key.len()].copy_from_slice(&act.key);
        arena.value_mut(index)[..act.value.len()].copy_from_slice(&act.value);
        let op = arena.op_mut(index);
        op.kind = act.kind;
        op.slot = act.slot;
        op.flags = act.flags;
        op.keyspace = act.keyspace;
        op.split = act.split;
        op.key_length = act.key.len() as u32;
        op.value_length = act.value.len() as u32;
        op.out_size = act.out_size.unwrap_or(out_bytes).min(out_bytes) as u32;
        op.limit = act.limit;
        op.due = act.due;
        op.user = POISON ^ index as u64;
        (op.start, op.end, op.length, op.needed, op.detail) = (poison, poison, poison, poison, poison);
        op.rows = poison as u32;
        op.retries = 0;
        op.status = KV_NOT_RUN;
    }

    fn ops(&mut self, first: usize, count: usize) -> Vec<kv_op> {
        let arena = self.session.arena();
        (first..first + count).map(|index| *arena.op(index)).collect()
    }

    /// A complete out slot, guard included.
    fn slot(&mut self, index: usize) -> &[u8] {
        let arena = self.session.arena();
        let length = arena.op(index).length;
        arena.op_mut(index).length = u64::MAX;
        let all = arena.delivered(index).len();
        arena.op_mut(index).length = length;
        debug_assert_eq!(all, self.out_bytes + GUARD_BYTES);
        arena.op_mut(index).length = all as u64;
        arena.delivered(index)
    }

    fn check_memory(&mut self, first: usize, acts: &[Act], ops: &[kv_op]) -> Result<(), Failure> {
        for (offset, act) in acts.iter().enumerate() {
            let index = first + offset;
            let op = &ops[offset];
            let arena = self.session.arena();
            if arena.key(index) != act.key || arena.value_mut(index)[..act.value.len()] != act.value {
                return Err(Failure::Broken(format!(
                    "rule 5: op {offset} ({act}): the driver changed the caller's key or value"
                )));
            }
            let room = op.out_size as usize;
            let is_copied = is_value(act.kind) && op.status == KV_OK && !act.has(KV_TOUCH);
            let is_scanned = act.kind == KV_SCAN && matches!(op.status, KV_OK | KV_SHORT);
            if (is_copied || is_scanned) && op.length > room as u64 {
                let length = op.length;
                return Err(Failure::Broken(format!(
                    "op {offset} ({act}): length {length} for an out buffer of {room} bytes"
                )));
            }
            let kept = if is_copied { op.length as usize } else { room };
            let mut shadow = std::mem::take(&mut self.shadows[index]);
            let slot = self.slot(index);
            let behind = kept..(kept + LOOK_BYTES).min(room).max(kept);
            let untouched = slot[behind.clone()] == shadow[behind] && slot[room..] == shadow[room..];
            shadow[..room].copy_from_slice(&slot[..room]);
            self.session.arena().op_mut(index).length = op.length;
            self.shadows[index] = shadow;
            if !untouched {
                let what = format!("past the {kept} bytes it delivered (buffer: {room})");
                return Err(Failure::Broken(format!("rule 5: op {offset} ({act}): the driver wrote {what}")));
            }
        }
        Ok(())
    }

    /// Checks that every out slot is as the previous calls left it: nothing writes between calls, and a call writes only
    /// into slots of its own ops.
    pub(crate) fn check_untouched(&mut self) -> Result<(), Failure> {
        for index in 0..self.shadows.len() {
            let shadow = std::mem::take(&mut self.shadows[index]);
            let length = self.session.arena().op(index).length;
            let same = self.slot(index) == shadow && !self.session.arena().is_changed_since(index);
            self.session.arena().op_mut(index).length = length;
            self.shadows[index] = shadow;
            if !same {
                return Err(Failure::Broken(format!(
                    "rule 5: the out buffer of op {index} changed after its call"
                )));
            }
        }
        Ok(())
    }

    fn answer(&mut self, index: usize, op: &kv_op) -> Reply {
        let carries = (is_value(op.kind) || op.kind == KV_SCAN) && matches!(op.status, KV_OK | KV_SHORT);
        let is_copied = carries && op.flags & KV_TOUCH == 0 && !(is_value(op.kind) && op.status == KV_SHORT);
        let bytes = if is_copied {
            let room = (op.length as usize).min(op.out_size as usize);
            self.shadows[index][..room].to_vec()
        } else {
            Vec::new()
        };
        Reply {
            status: op.status,
            bytes,
            length: op.length,
            needed: op.needed,
            detail: op.detail,
            row_count: op.rows,
            start: op.start,
            end: op.end,
            said: None,
        }
    }
}

/// Whether an op of this kind returns one value.
fn is_value(kind: u8) -> bool {
    matches!(kind, KV_GET | KV_POP)
}

fn check_statuses(acts: &[Act], ops: &[kv_op], executed: &Executed) -> Result<(), Failure> {
    let says_why = executed.error.is_some() && !executed.is_mute;
    // A panic leaves the op that it came from, and the ops joined to it, with an error and not done.
    let broken = executed.done..acts.get(executed.done).map_or(0, |_| group_end(acts, executed.done));
    for (index, (act, op)) in acts.iter().zip(ops).enumerate() {
        let was_run = index < executed.done;
        if op.status > KV_ERROR {
            return Err(Failure::Broken(format!("op {index} ({act}): {} is not a status", op.status)));
        }
        if was_run && op.status == KV_NOT_RUN {
            return Err(Failure::Broken(format!(
                "rule 3: op {index} ({act}) counts as done but has no status"
            )));
        }
        let is_broken = broken.contains(&index) && op.status == KV_ERROR;
        if !was_run && op.status != KV_NOT_RUN && !is_broken {
            let status = status_name(op.status);
            return Err(Failure::Broken(format!(
                "rule 3: op {index} ({act}) is past `done` but has {status}"
            )));
        }
        if op.status == KV_ERROR && !says_why {
            return Err(Failure::Broken(format!("rule 4: op {index} ({act}): KV_ERROR without a text")));
        }
    }
    if let (Some((_, text)), true) = (&executed.error, ops.iter().all(is_fine)) {
        return Err(Failure::Broken(format!("execute failed (`{text}`), but every op has an answer")));
    }
    Ok(())
}

fn is_fine(op: &kv_op) -> bool {
    matches!(op.status, KV_OK | KV_NOT_FOUND | KV_EXISTS | KV_SHORT | KV_NOT_RUN)
}

/// The time of a call, ticks.
struct Window {
    /// Before the call.
    before: u64,
    /// The batch's start, as the driver reports it.
    start: u64,
    /// After the call.
    after: u64,
}

/// Rules 6 and 7.
fn check_stamps(acts: &[Act], ops: &[kv_op], window: &Window) -> Result<(), Failure> {
    let Window { before, start, after } = *window;
    if start < before || start > after {
        return Err(Failure::Broken(format!(
            "rule 7: the batch's start {start} is outside the call ({before} to {after})"
        )));
    }
    let mut clock = start;
    let mut first = 0;
    while first < ops.len() {
        let end = group_end(acts, first).min(ops.len());
        let (from, to) = (ops[first].start, ops[first].end);
        let what = || format!("op {first} ({}), {from} to {to}", acts[first]);
        if ops[first..end].iter().any(|op| (op.start, op.end) != (from, to)) {
            return Err(Failure::Broken(format!(
                "rule 6: {}: the ops of its group have different stamps",
                what()
            )));
        }
        if from > to || to > after {
            return Err(Failure::Broken(format!(
                "rule 7: {}: ends before its start or after the call ({after})",
                what()
            )));
        }
        let due = acts[first].due;
        if from < due {
            return Err(Failure::Broken(format!("rule 7: {}: starts before it is due ({due})", what())));
        }
        if from < clock || (due <= clock && from != clock) {
            return Err(Failure::Broken(format!(
                "rule 7: {}: it must start where the previous op ended, at {clock}",
                what()
            )));
        }
        clock = to;
        first = end;
    }
    Ok(())
}

/// Sets a stop word, for checks that end a call early.
pub(crate) fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Relaxed);
}
