//! Reports what a driver touched when it dies at a guard page. The handler allocates nothing and takes no lock; a
//! signal that has nothing to do with guard pages is passed to the previous handler.

use super::guard_pages::{Place, Region};
use super::memory::page;
use crate::engine::abi::kv_op;
use crate::engine::answers::kind_name;
use kvdyno_measure::processes::{GUARD, TRESPASS};
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Maximum number of arenas that are searched; beyond that, a crash is only a signal.
const MOST: usize = 128;
/// The signals that an access to a guard page raises.
const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

static ARENAS: [AtomicPtr<Arena>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
static BEFORE: [AtomicPtr<libc::sigaction>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];
static INSTALLED: Once = Once::new();

/// What the handler knows of an arena.
struct Arena {
    places: Box<[[Place; 3]]>,
    /// Kinds of the ops of the last call.
    kinds: Box<[AtomicU8]>,
}

/// An arena that is registered with the handler until this is dropped.
pub(super) struct Watched(*mut Arena);

impl Watched {
    pub(super) fn new(places: &[[Place; 3]]) -> Watched {
        INSTALLED.call_once(install);
        let kinds = places.iter().map(|_| AtomicU8::new(0)).collect();
        let arena = Box::into_raw(Box::new(Arena { places: places.into(), kinds }));
        let enter = |slot: &&AtomicPtr<Arena>| {
            slot.compare_exchange(null_mut(), arena, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        ARENAS.iter().find(enter);
        Watched(arena)
    }

    /// Sets the ops of the next call, which begin at `first`.
    pub(super) fn note(&self, ops: &[kv_op], first: usize) {
        // SAFETY: it lives until this is dropped.
        let arena = unsafe { &*self.0 };
        for (op, kind) in ops.iter().zip(&arena.kinds[first..]) {
            kind.store(op.kind, Ordering::Relaxed);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        for slot in &ARENAS {
            let _ = slot.compare_exchange(self.0, null_mut(), Ordering::AcqRel, Ordering::Relaxed);
        }
        // SAFETY: created by `new`, and no longer known to the handler. A handler that is running now ends the
        // process.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// A line of bytes, without allocation.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

impl Arena {
    /// Describes what is at an address of a guard page.
    fn describe(&self, address: usize, line: &mut Line) -> Option<()> {
        let mut before = None;
        for (at, places) in self.places.iter().enumerate() {
            for (part, place) in [Region::Key, Region::Value, Region::Out].into_iter().zip(places) {
                let start = place.start.addr().get();
                let end = start + place.room;
                let kind = |at: usize| kind_name(self.kinds[at].load(Ordering::Relaxed));
                // Each of two neighbouring places owns half of the page between them.
                if (start - page() / 2..start).contains(&address) && before.is_some() {
                    let kind = kind(at);
                    return write!(line, "{} bytes before the {part} of a {kind}", start - address).ok();
                }
                if (end..end + page() / 2).contains(&address) {
                    let kind = kind(at);
                    return write!(line, "byte {} past the {part} of a {kind}", address - end + 1).ok();
                }
                before = Some(part);
            }
        }
        None
    }
}

/// Writes what is at the address; returns whether it is in a guard page.
fn report(address: usize) -> bool {
    for slot in &ARENAS {
        // SAFETY: an arena leaves the list before it is freed.
        let Some(arena) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else { continue };
        let mut place = Line { bytes: [0; 256], length: 0 };
        if arena.describe(address, &mut place).is_none() {
            continue;
        }
        let place = std::str::from_utf8(&place.bytes[..place.length]).unwrap_or_default();
        // Stderr is for the record of a trial, stdout for `verify`.
        for (file, [before, after]) in [(2, [GUARD, ""]), (1, TRESPASS)] {
            let mut line = Line { bytes: [0; 256], length: 0 };
            let _ = writeln!(
                line,
                "\n{before}rule 5: the driver touched {place}, which is in a guard page{after}"
            );
            // SAFETY: this many bytes are there. A failure cannot be handled.
            unsafe { libc::write(file, line.bytes.as_ptr().cast(), line.length) };
        }
        return true;
    }
    false
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: the kernel passes a complete siginfo_t with these signals.
    let address = unsafe { (*info).si_addr() }.addr();
    let before = SIGNALS.iter().position(|known| *known == signal).map(|at| &BEFORE[at]);
    // SAFETY: set before the handler was, and never freed.
    let before = before.and_then(|before| unsafe { before.load(Ordering::Acquire).as_ref() });
    if let (false, Some(before)) = (report(address), before)
        && before.sa_sigaction != libc::SIG_DFL
        && before.sa_sigaction != libc::SIG_IGN
        && before.sa_flags & libc::SA_SIGINFO != 0
    {
        // SAFETY: a handler with SA_SIGINFO has this type.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(before.sa_sigaction) };
        return handler(signal, info, context);
    }
    // The instruction is retried, and ends the process.
    // SAFETY: a plain system call.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

fn install() {
    for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
        // SAFETY: all zeroes is a valid sigaction; the handler has the type that SA_SIGINFO requires. SA_ONSTACK,
        // because the Go runtime requires it of every handler in its process. No other signal interrupts it: Go's own for
        // preemption would find an unknown stack, and end the process before the report is written.
        unsafe {
            let mut old = Box::new(MaybeUninit::<libc::sigaction>::zeroed().assume_init());
            libc::sigaction(signal, std::ptr::null(), &mut *old);
            before.store(Box::into_raw(old), Ordering::Release);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigfillset(&mut action.sa_mask);
            libc::sigaction(signal, &action, null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_signal_interrupts_the_report() {
        let _watched = Watched::new(&[]);
        for signal in SIGNALS {
            // SAFETY: all zeroes is a valid sigaction, which the kernel fills in.
            let masked = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                assert_eq!(libc::sigaction(signal, std::ptr::null(), &mut action), 0);
                libc::sigismember(&action.sa_mask, libc::SIGURG)
            };
            assert_eq!(masked, 1, "signal {signal}");
        }
    }
}
