//! The timed loop: written once, inlined around the driver's calls.

use crate::Session;
use crate::abi::*;
use crate::op::{Batch, Error, Op, Status};
use crate::refuse::Refused;
use std::sync::atomic::{AtomicU32, Ordering};

/// One read of the batch's clock, in ticks.
#[inline(always)]
pub fn ticks(clock: u32) -> u64 {
    if clock == KV_CLOCK_COUNTER { counter() } else { monotonic() }
}

/// One read of the batch's clock after all preceding instructions have ended. A plain read of the counter may run ahead
/// of them, so their time would count as that of whatever follows: up to 400 ns after a batch of cache misses. The
/// monotonic clock is ordered by itself.
#[inline(always)]
pub fn ordered_ticks(clock: u32) -> u64 {
    if clock == KV_CLOCK_COUNTER {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: lfence is part of SSE2, which every x86-64 processor has.
        unsafe {
            std::arch::x86_64::_mm_lfence();
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a barrier that touches neither memory nor registers.
        unsafe {
            std::arch::asm!("isb", options(nostack, preserves_flags));
        }
    }
    ticks(clock)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has rdtsc.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: the virtual counter is readable from user space on Linux.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
    };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn counter() -> u64 {
    monotonic()
}

fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[inline(always)]
fn one<S: Session>(session: &mut S, op: &mut Op<'_>, refused: Refused) -> Result<Status, Error> {
    op.raw_mut().retries = 0;
    if refused.refuses(op.raw()) {
        return Ok(Status::Unsupported);
    }
    match op.kind() {
        KV_GET => session.get(op),
        KV_PUT => session.put(op),
        KV_DELETE => session.delete(op),
        KV_SCAN => session.scan(op),
        KV_MERGE => session.merge(op),
        KV_BEGIN | KV_COMMIT | KV_ABORT | KV_DROP => session.control(op),
        KV_PUSH => session.push(op),
        KV_POP => session.pop(op),
        _ => Ok(Status::Unsupported),
    }
}

/// Runs a batch (rules 3, 6, 7 and 11). Returns `KV_OK`, or `KV_ERROR` when an op failed with a text.
#[inline(always)]
pub fn run<S: Session>(session: &mut S, batch: &mut Batch, refused: Refused) -> u32 {
    let count = batch.raw.count as usize;
    let clock = batch.raw.clock;
    // SAFETY: the core gives `count` ops that live for the whole call and are not shared; Op is transparent.
    let ops: &mut [Op<'_>] = unsafe { std::slice::from_raw_parts_mut(batch.raw.ops.cast(), count) };
    // SAFETY: `stop` is never null and outlives the call.
    let stop = unsafe { &*batch.raw.stop };
    let deadline = if batch.raw.deadline == 0 { u64::MAX } else { batch.raw.deadline };
    let mut now = ticks(clock);
    batch.raw.start = now;
    batch.raw.done.store(0, Ordering::Relaxed);
    let mut result = KV_OK;
    let mut next = 0;
    while next < count {
        if stop.load(Ordering::Relaxed) != 0 || now >= deadline {
            break;
        }
        let due = ops[next].raw().due;
        if due > now {
            match spin_until(batch, due, now, stop, deadline) {
                Some(tick) => now = tick,
                None => break,
            }
        }
        if ops[next].raw().flags & KV_JOIN == 0 {
            let op = &mut ops[next];
            let outcome = one(session, op, refused);
            // What the last op has left unfinished would belong to no op.
            let end = if next + 1 == count { ordered_ticks(clock) } else { ticks(clock) };
            let raw = op.raw_mut();
            raw.start = now;
            raw.end = end;
            now = end;
            match outcome {
                Ok(status) => raw.status = status as u32,
                Err(error) => {
                    raw.status = error.status as u32;
                    result = KV_ERROR;
                    batch.fail(next, &error.text);
                }
            }
            next += 1;
        } else {
            let (after, end, failed) = run_group(session, batch, ops, (next, now), refused);
            now = end;
            next = after;
            if failed {
                result = KV_ERROR;
            }
        }
        batch.raw.done.store(next as u32, Ordering::Release);
    }
    result
}

/// Spins until `due`; returns the tick that saw it, or nothing when the stop word or the deadline came first.
#[cold]
fn spin_until(batch: &mut Batch, due: u64, from: u64, stop: &AtomicU32, deadline: u64) -> Option<u64> {
    loop {
        let now = ticks(batch.raw.clock);
        let is_over = now >= deadline || stop.load(Ordering::Relaxed) != 0;
        if now >= due || is_over {
            batch.raw.waited += now - from;
            return (!is_over).then_some(now);
        }
        std::hint::spin_loop();
    }
}

/// Runs the group that begins at `first`; returns the index after it, its end tick, and whether an op failed with a
/// text.
#[inline(never)]
fn run_group<S: Session>(
    session: &mut S,
    batch: &mut Batch,
    ops: &mut [Op<'_>],
    (first, start): (usize, u64),
    refused: Refused,
) -> (usize, u64, bool) {
    let clock = batch.raw.clock;
    let mut after = first;
    while after + 1 < ops.len() && ops[after].raw().flags & KV_JOIN != 0 {
        after += 1;
    }
    after += 1;
    let atomic = ops[first].raw().flags & KV_ATOMIC != 0;
    let group = &mut ops[first..after];
    let mut is_refused = atomic && refused.refuses_transactions();
    for op in group.iter_mut() {
        op.raw_mut().retries = 0;
        is_refused |= refused.refuses(op.raw());
    }
    match if is_refused { Ok(false) } else { session.group(group, atomic) } {
        Ok(true) => {
            let end = ordered_ticks(clock);
            stamp(group, start, end);
            (after, end, false)
        }
        Ok(false) if atomic => {
            let end = ordered_ticks(clock);
            stamp(group, start, end);
            fail_group(group, batch, first, &Error::unsupported("such transactions"));
            (after, end, true)
        }
        Ok(false) => {
            let mut failed = false;
            for (index, op) in group.iter_mut().enumerate() {
                match one(session, op, refused) {
                    Ok(status) => op.finish(status),
                    Err(error) => {
                        op.finish(error.status);
                        batch.fail(first + index, &error.text);
                        failed = true;
                    }
                }
                batch.raw.done.store((first + index + 1) as u32, Ordering::Release);
            }
            let end = ordered_ticks(clock);
            stamp(group, start, end);
            (after, end, failed)
        }
        Err(error) => {
            let end = ordered_ticks(clock);
            stamp(group, start, end);
            fail_group(group, batch, first, &error);
            (after, end, true)
        }
    }
}

/// A failure of a whole group, which had no effect.
fn fail_group(group: &mut [Op<'_>], batch: &mut Batch, first: usize, error: &Error) {
    for op in group {
        op.finish(error.status);
    }
    batch.fail(first, &error.text);
}

fn stamp(group: &mut [Op<'_>], start: u64, end: u64) {
    for op in group {
        op.raw_mut().start = start;
        op.raw_mut().end = end;
    }
}
