//! Cycles and instructions of this process and of all that it starts.
//!
//! They are counted on request only (`--count-cycles`): with open counters the kernel saves and loads them at each context
//! switch, which makes engines with many threads slower than others.

use super::perf_events::{Counter, Event, Whose};
use std::io;
use std::sync::OnceLock;

/// The counters of this process, if it has begun to count.
static COUNTERS: OnceLock<[Counter; 2]> = OnceLock::new();

/// In which mode of the processor is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In user mode only.
    User,
    /// In user mode and in the kernel.
    Both,
}

/// Begins to count, for the rest of this process. To be called before any thread of an engine exists, because threads that exist
/// already are not counted.
pub fn begin(mode: Mode) -> io::Result<()> {
    let counters = open(mode)?;
    // If it had begun before, those counters count on.
    let _ = COUNTERS.set(counters);
    Ok(())
}

/// Whether this machine and user can count them; the error says why not.
pub fn try_out() -> io::Result<()> {
    open(Mode::Both).map(drop)
}

fn open(mode: Mode) -> io::Result<[Counter; 2]> {
    let whose = match mode {
        Mode::User => Whose::StartedInUserMode,
        Mode::Both => Whose::Started,
    };
    let of = |event| {
        Counter::open(event, whose).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(error.kind(), "there are no hardware counters, as in most virtual machines")
            }
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                "not permitted: set kernel.perf_event_paranoid to 1 or less, or run as root",
            ),
            _ => error,
        })
    };
    Ok([of(Event::Cycles)?, of(Event::Instructions)?])
}

/// Cycles and instructions so far; unknown if this process does not count them.
pub(super) fn now() -> [Option<u64>; 2] {
    COUNTERS.get().map_or([None, None], |counters| counters.each_ref().map(Counter::value))
}
