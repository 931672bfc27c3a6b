//! Mutants' tables, with the faults outside sessions: false stamps, false waits and a reused buffer.

#![allow(unsafe_code, reason = "it spoils the answers of another table")]

use crate::{Fault, Mutant};
use kvdyno_driver::abi::*;
use std::sync::atomic::Ordering;

/// The table of a mutant.
pub(crate) const fn table<const FAULT: u8>() -> kv_driver {
    let honest = kvdyno_driver::table::<Mutant<FAULT>>();
    match Mutant::<FAULT>::FAULT {
        Fault::TimingLiar | Fault::WaitingLiar | Fault::DanglingBuffer => {
            kv_driver { execute: Some(execute_and_tamper::<FAULT>), ..honest }
        }
        _ => honest,
    }
}

unsafe extern "C" fn execute_and_tamper<const FAULT: u8>(
    session: *mut kv_session,
    batch: *mut kv_batch,
) -> u32 {
    let Some(execute) = kvdyno_driver::table::<Mutant<FAULT>>().execute else {
        return KV_UNSUPPORTED;
    };
    // SAFETY: the caller's arguments, as the boundary requires.
    let status = unsafe { execute(session, batch) };
    // SAFETY: the core gives a live batch with `count` ops, of which `done` were run.
    let ops = unsafe {
        let done = (*batch).done.load(Ordering::Relaxed) as usize;
        std::slice::from_raw_parts_mut((*batch).ops, done)
    };
    match Mutant::<FAULT>::FAULT {
        Fault::TimingLiar => ops.iter_mut().for_each(|op| op.start = op.end),
        // SAFETY: as above.
        Fault::WaitingLiar => unsafe { (*batch).waited += 1 << 40 },
        _ => smear(ops),
    }
    status
}

/// Gives all gets the bytes of the last one, up to their own lengths.
fn smear(ops: &mut [kv_op]) {
    let is_read = |op: &kv_op| op.kind == KV_GET && op.status == KV_OK && op.flags & KV_TOUCH == 0;
    let Some(last) = ops.iter().rposition(is_read) else {
        return;
    };
    let (source, length) = (ops[last].out, ops[last].length);
    for op in ops[..last].iter().filter(|op| is_read(op)) {
        // SAFETY: both buffers hold at least their op's `length` bytes, which the kit wrote; they may be one.
        unsafe { std::ptr::copy(source, op.out, op.length.min(length) as usize) };
    }
}
