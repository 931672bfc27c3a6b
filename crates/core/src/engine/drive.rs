//! Driven sessions (rule 12 of driver.h): the driver runs the session's loop in its own runtime, and calls `turn` for each
//! batch.
//!
//! The core has one loop for all drivers. For a driver with `drive` it is a coroutine with a stack of its own: a call of
//! `Session::execute` suspends it with the batch, and the driver's next turn resumes it with the status. Turns may be on
//! different threads, so the loop must not use thread-locals, nor keep a lock from call to call.

use super::abi::*;
use super::{EngineError, Session};
use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, ScopedCoroutine, ScopedCoroutineRef, Yielder};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The maximum stack of the core's loop, bytes; only what is used takes memory.
const STACK_BYTES: usize = 1 << 20;

/// How long a batch may still run after `drive` has returned too early, until its session ends.
const STILL_RUNNING: Duration = Duration::from_millis(300);

/// What resumes the loop in place of a status: `drive` has returned although the loop has not ended.
const GONE: u32 = u32::MAX;

/// The states of a driven loop.
const WAITING: u32 = 0;
const IN_TURN: u32 = 1;
const ENDED: u32 = 2;
const RETURNED: u32 = 3;

type Batch = *mut kv_batch;
type Loop<'l> = ScopedCoroutineRef<'l, u32, Batch, (), DefaultStack>;

/// How a session reaches its driver.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// By the table's `execute`.
    Call,
    /// By suspending the loop, until the driver's next turn.
    Turn(*const Yielder<u32, Batch>),
    /// Not any more: `drive` has returned, as the text says.
    Gone(&'static str),
}

/// How drivers broke rule 12 in this database.
#[derive(Default)]
pub(super) struct Breaches {
    bits: AtomicU32,
}

/// In the order of the bits.
const BREACHES: [&str; 4] = [
    "drive called turn while another turn was running",
    "drive called turn after turn had returned null",
    "drive called turn after drive had returned",
    "drive returned while a turn was running",
];
const TWO_AT_ONCE: u32 = 1;
const AFTER_THE_END: u32 = 1 << 1;
const AFTER_RETURN: u32 = 1 << 2;
const RETURNED_IN_TURN: u32 = 1 << 3;

impl Breaches {
    fn add(&self, bit: u32) {
        self.bits.fetch_or(bit, Ordering::Release);
    }

    fn has(&self, bit: u32) -> bool {
        self.bits.load(Ordering::Acquire) & bit != 0
    }

    /// An error for all that were found since the last call.
    pub(super) fn take(&self) -> Result<(), EngineError> {
        let bits = self.bits.swap(0, Ordering::Acquire);
        let found: Vec<&str> = BREACHES
            .iter()
            .enumerate()
            .filter(|(bit, _)| bits >> bit & 1 != 0)
            .map(|(_, text)| *text)
            .collect();
        if found.is_empty() { Ok(()) } else { Err(breach(&found.join("; "))) }
    }
}

fn breach(text: &str) -> EngineError {
    EngineError { status: KV_ERROR, text: format!("rule 12: {text}") }
}

/// What `turn` gets as its context. It is never freed, because a driver may call too late.
struct Context {
    state: AtomicU32,
    /// A `Loop`; valid until the state is RETURNED.
    looped: *mut c_void,
    breaches: Arc<Breaches>,
}

/// The core's side of a driven session: takes the status of the last batch and returns the next one, or null at the end.
///
/// # Safety
///
/// The context must be the one that `drive` was called with.
unsafe extern "C" fn turn(context: *mut c_void, status: u32) -> Batch {
    // SAFETY: the caller's promise; contexts live forever.
    let context = unsafe { &*context.cast::<Context>() };
    if let Err(state) = context.state.compare_exchange(WAITING, IN_TURN, Ordering::Acquire, Ordering::Relaxed)
    {
        context.breaches.add(match state {
            IN_TURN => TWO_AT_ONCE,
            ENDED => AFTER_THE_END,
            _ => AFTER_RETURN,
        });
        return null_mut();
    }
    // SAFETY: the state, which only this thread could change to IN_TURN, says that the loop exists and is suspended.
    let looped = unsafe { &mut *context.looped.cast::<Loop<'_>>() };
    // A status of the driver's own must not look as if it had gone.
    let (state, batch) = match looped.resume(status.min(GONE - 1)) {
        CoroutineResult::Yield(batch) => (WAITING, batch),
        CoroutineResult::Return(()) => (ENDED, null_mut()),
    };
    context.state.store(state, Ordering::Release);
    batch
}

impl Session {
    /// Whether the driver runs the loops of its sessions.
    pub fn is_driven(&self) -> bool {
        self.handle.table.drive.is_some()
    }

    /// Runs `work`, whose calls of this session's `execute` are turns of the driver's loop if it has one. Returns what
    /// `work` returned, and how the driver broke the rules of a driven session.
    ///
    /// # Errors
    ///
    /// There is no memory for the loop's stack.
    ///
    /// # Safety
    ///
    /// The driver may resume `work` on another thread after each call of `execute`. So `work` must keep nothing across these
    /// calls that belongs to a thread, such as a lock's guard or a reference to a thread-local. `session` must return the same
    /// session each time, and `work` must not move it or end it.
    pub unsafe fn drive<O: Send, R: Send>(
        owner: &mut O,
        session: fn(&mut O) -> &mut Session,
        work: fn(&mut O) -> R,
    ) -> Result<(R, Result<(), EngineError>), EngineError> {
        let Some(drive) = session(owner).handle.table.drive else {
            return Ok((work(owner), Ok(())));
        };
        let breaches = Arc::clone(&session(owner).handle.breaches);
        let raw = session(owner).raw;
        let stack = DefaultStack::new(STACK_BYTES).map_err(|error| EngineError {
            status: KV_ERROR,
            text: format!("cannot create the stack of a driven session: {error}"),
        })?;
        let mut result: Option<Result<R, Box<dyn Any + Send>>> = None;
        let looped = ScopedCoroutine::with_stack(stack, |yielder: &Yielder<u32, Batch>, status| {
            session(owner).way = match status {
                GONE => Way::Gone("drive returned without a turn"),
                _ => Way::Turn(yielder),
            };
            result = Some(catch_unwind(AssertUnwindSafe(|| work(owner))));
            session(owner).way = Way::Call;
        });
        let outcome = looped.scope(|mut looped| driven(&mut looped, drive, raw, breaches));
        match result.expect("the loop has ended") {
            Ok(result) => Ok((result, outcome)),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// Has the driver run the loop to its end.
fn driven(
    looped: &mut Loop<'_>,
    drive: kv_drive_fn,
    raw: *mut kv_session,
    breaches: Arc<Breaches>,
) -> Result<(), EngineError> {
    let context: &'static Context = Box::leak(Box::new(Context {
        state: AtomicU32::new(WAITING),
        looped: std::ptr::from_mut(looped).cast(),
        breaches,
    }));
    // SAFETY: the session is open; the context lives forever, and the loop until this function returns.
    let status = unsafe { drive(raw, turn, std::ptr::from_ref(context).cast_mut().cast()) };
    let has_ended = loop {
        match context.state.compare_exchange(WAITING, RETURNED, Ordering::Acquire, Ordering::Acquire) {
            Err(IN_TURN) => {
                context.breaches.add(RETURNED_IN_TURN);
                std::thread::yield_now();
            }
            Err(_) => break true,
            Ok(_) => break false,
        }
    };
    context.state.store(RETURNED, Ordering::Release);
    if !has_ended {
        // A batch that still runs should end before its session does. Then a thread of the driver takes another turn.
        let until = Instant::now() + STILL_RUNNING;
        while !context.breaches.has(AFTER_RETURN) && Instant::now() < until {
            std::thread::sleep(STILL_RUNNING / 100);
        }
        // Every call of the loop fails now, so it ends.
        while let CoroutineResult::Yield(_) = looped.resume(GONE) {}
    }
    context.breaches.take()?;
    if status == KV_OK { Ok(()) } else { Err(breach(&format!("drive returned status {status}"))) }
}

impl Session {
    /// Has the driver run a batch: by a call of `execute`, or as the result of its next turn. Returns the status, or why
    /// there is none.
    #[inline(always)]
    pub(super) fn call(&mut self, batch: Batch) -> Result<u32, &'static str> {
        let yielder = match self.way {
            Way::Call => {
                let call = self.handle.table.execute.expect("the registry refuses tables that lack an entry");
                // SAFETY: the session is open; the batch and everything that it points to are in its arena.
                return Ok(unsafe { call(self.raw, batch) });
            }
            Way::Turn(yielder) => yielder,
            Way::Gone(text) => return Err(text),
        };
        // SAFETY: this runs in the loop, which the yielder is from.
        match unsafe { &*yielder }.suspend(batch) {
            GONE => {
                let text = "drive returned before turn had returned null";
                self.way = Way::Gone(text);
                // A thread of the driver may still run the batch.
                self.arena().keep_mapped();
                Err(text)
            }
            status => Ok(status),
        }
    }
}
