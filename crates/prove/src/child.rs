//! A process that a check runs in, followed by the process that started it.

use kvdyno_measure::{Event, Patience, TrialProcess, signals};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

/// Interval between checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exit(i32),
    /// A signal ended it.
    Signal(String),
    /// It made no progress for this many seconds and was killed.
    Stalled(u64),
    /// The user interrupted the command.
    Interrupted,
    /// It could not be killed.
    Unkillable,
}

/// Passes each of its lines on until it has ended.
pub fn follow(process: &mut TrialProcess, stall: Duration, mut line: impl FnMut(&str)) -> Ended {
    let mut patience = Patience::new(stall);
    let mut stalled = false;
    let end = loop {
        match process.next(POLL_INTERVAL) {
            Event::Line(text) => {
                patience.renew();
                line(&text);
            }
            Event::Quiet => {}
            Event::Ended(end) => break end,
        }
        stalled |= patience.is_over();
        if stalled || signals::interrupts() > 0 {
            process.kill();
        }
    };
    let status = end.status;
    match (status.and_then(|status| status.signal()), status.and_then(|status| status.code())) {
        _ if signals::interrupts() > 0 => Ended::Interrupted,
        _ if stalled => Ended::Stalled(stall.as_secs()),
        (Some(signal), _) => Ended::Signal(signals::signal_name(signal)),
        (None, Some(code)) => Ended::Exit(code),
        (None, None) => Ended::Unkillable,
    }
}
