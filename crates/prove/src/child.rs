//! A process that a check runs in, followed by the process that started it.

use kvdyno_measure::{Event, Fate, Patience, TaskProcess, signals};
use std::fmt;
use std::time::Duration;

/// Interval between checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, or it could not be killed.
    Itself(Fate),
    /// It made no progress for this many seconds and was killed.
    Stalled(u64),
    /// The user interrupted the command.
    Interrupted,
}

impl Ended {
    /// Whether it exited with 0.
    pub(crate) fn is_success(&self) -> bool {
        *self == Ended::Itself(Fate::Exited(0))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Itself(fate) => out.write_str(&fate.text("its process")),
            Ended::Stalled(seconds) => write!(out, "no progress for {seconds} s, so it was killed"),
            Ended::Interrupted => out.write_str("interrupted by the user"),
        }
    }
}

/// Passes each of its messages on until it has ended.
pub(crate) fn follow<M>(process: &mut TaskProcess<M>, stall: Duration, mut each: impl FnMut(M)) -> Ended {
    let mut patience = Patience::new(stall);
    let mut stalled = false;
    let end = loop {
        match process.next(POLL_INTERVAL) {
            Event::Told(message) => {
                patience.renew();
                each(message);
            }
            Event::Quiet => {}
            Event::Ended(end) => break end,
        }
        stalled |= patience.is_over();
        if stalled || signals::interrupts() > 0 {
            process.kill();
        }
    };
    match end.fate() {
        _ if signals::interrupts() > 0 => Ended::Interrupted,
        _ if stalled => Ended::Stalled(stall.as_secs()),
        fate => Ended::Itself(fate),
    }
}
