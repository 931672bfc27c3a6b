//! The trial of a load generator: gates, a common start, and the end of the others.

use super::Seat;
use super::connection::{Connection, JoinError};
use super::secret::Secret;
use super::wire::{Ask, Hello, MOST_TRIAL, Tell};
use kvdyno_measure::Clock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Questions for the hub's time before a start. The quickest answer counts.
const QUESTIONS: u64 = 24;
/// A trial that begins finds the hub of its run at once.
const PATIENCE: Duration = Duration::from_secs(20);
/// Before a start a thread sleeps until this long before it, then reads the clock without a pause.
const AWAKE: Duration = Duration::from_micros(150);

/// Another load generator is gone, so that the trial cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost(pub String);

/// A common start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The start, in ticks of this process's clock.
    pub tick: u64,
    /// The clock of load generator 0 minus the clock of this machine, nanoseconds.
    pub clock_offset_ns: i64,
    /// The maximum error of that, and of the start: half the time of a question and its answer, nanoseconds.
    pub clock_error_ns: u64,
}

/// What a load generator hears during a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Another load generator has ended the phase.
    FirstEnded,
    /// All load generators have.
    Over,
    /// Another load generator is gone.
    Lost(Lost),
}

/// A load generator's connection for a trial.
pub struct Member {
    connection: Connection,
    load_generator: u32,
}

impl Member {
    /// Joins the trial of this name, which `load_generators` load generators run.
    pub fn join(
        seat: &Seat,
        secret: &Secret,
        trial: &str,
        load_generators: u32,
    ) -> Result<Member, JoinError> {
        let hello = Hello {
            version: 0,
            load_generator: seat.load_generator,
            load_generators,
            trial: Some(trial.to_string()),
            plan: Vec::new(),
            nonce: String::new(),
            proof: String::new(),
        };
        let connection = Connection::open(&seat.rendezvous, secret, hello, MOST_TRIAL, PATIENCE)?;
        Ok(Member { connection, load_generator: seat.load_generator })
    }

    /// The load generator.
    pub fn load_generator(&self) -> u32 {
        self.load_generator
    }

    fn send(&self, ask: &Ask) -> Result<(), Lost> {
        self.connection.send(ask).map_err(|reason| Lost(format!("load generator 0: {reason}")))
    }

    /// The next message that `choose` accepts.
    fn wait<Found>(
        &self,
        on_wait: &mut dyn FnMut(),
        choose: impl Fn(&Tell) -> Option<Found>,
    ) -> Result<Found, Lost> {
        loop {
            let tell = self
                .connection
                .next(on_wait)
                .map_err(|reason| Lost(format!("load generator 0: {reason}")))?;
            match &tell {
                Tell::Lost { load_generator, reason } => {
                    return Err(Lost(format!("load generator {load_generator}: {reason}")));
                }
                tell => {
                    if let Some(found) = choose(tell) {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// Waits until all load generators of the trial are at this gate; `on_wait` is called about once a second.
    pub fn meet(&self, gate: &str, on_wait: &mut dyn FnMut()) -> Result<(), Lost> {
        self.meet_with(gate, "", on_wait).map(|_| ())
    }

    /// The same; returns what load generator 0 says there. What others say is not passed on.
    pub fn meet_with(&self, gate: &str, note: &str, on_wait: &mut dyn FnMut()) -> Result<String, Lost> {
        self.send(&Ask::Meet { gate: gate.to_string(), note: note.to_string() })?;
        self.wait(on_wait, |tell| match tell {
            Tell::Met { gate: met, note } if met == gate => Some(note.clone()),
            _ => None,
        })
    }

    /// Agrees with all load generators on the start of a phase. The clocks are compared when all are there, because they drift
    /// apart while some wait.
    pub fn agree(&self, gate: &str, clock: Clock, on_wait: &mut dyn FnMut()) -> Result<Agreed, Lost> {
        self.meet(gate, on_wait)?;
        let mut best: Option<Answered> = None;
        for number in 0..QUESTIONS {
            let answered = self.ask_time(number, clock)?;
            if best.is_none_or(|best| answered.took < best.took) {
                best = Some(answered);
            }
        }
        self.send(&Ask::Start { gate: gate.to_string() })?;
        let at_ns = self.wait(on_wait, |tell| match tell {
            Tell::Go { gate: own, at_ns } if own == gate => Some(*at_ns),
            _ => None,
        })?;
        let Answered { middle, took, hub_ns, own_ns } = best.expect("there is at least one question");
        Ok(Agreed {
            tick: middle + clock.from_ns(at_ns.saturating_sub(hub_ns)),
            clock_offset_ns: hub_ns.wrapping_sub(own_ns) as i64,
            clock_error_ns: clock.to_ns(took) / 2 + 1,
        })
    }

    fn ask_time(&self, number: u64, clock: Clock) -> Result<Answered, Lost> {
        let before = clock.now();
        self.send(&Ask::Time { number })?;
        let hub_ns = self.wait(&mut || (), |tell| match tell {
            Tell::Time { number: own, at_ns } if *own == number => Some(*at_ns),
            _ => None,
        })?;
        let after = clock.now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let took = after.saturating_sub(before);
        Ok(Answered {
            middle: before + took / 2,
            took,
            hub_ns,
            own_ns: now.saturating_sub(clock.to_ns(took) / 2),
        })
    }

    /// Waits for the agreed start.
    pub fn wait_for(agreed: &Agreed, clock: Clock) {
        let left = Duration::from_nanos(clock.to_ns(agreed.tick.saturating_sub(clock.now())));
        if let Some(sleep) = left.checked_sub(AWAKE) {
            std::thread::sleep(sleep);
        }
        while clock.now() < agreed.tick {
            std::hint::spin_loop();
        }
    }

    /// Reports what happens to a phase until all load generators have ended it or one is gone; to be called in a thread of its
    /// own. `on_wait` is called about once a second.
    pub fn follow(&self, gate: &str, on_wait: &mut dyn FnMut(), mut on_event: impl FnMut(Event)) {
        loop {
            match self.connection.next(on_wait) {
                Ok(Tell::Stop { gate: own }) if own == gate => on_event(Event::FirstEnded),
                Ok(Tell::Over { gate: own }) if own == gate => return on_event(Event::Over),
                Ok(Tell::Lost { load_generator, reason }) => {
                    return on_event(Event::Lost(Lost(format!("load generator {load_generator}: {reason}"))));
                }
                Ok(_) => {}
                Err(reason) => return on_event(Event::Lost(Lost(format!("load generator 0: {reason}")))),
            }
        }
    }

    /// Says that this load generator has ended the phase; [`Member::follow`] ends when all have.
    pub fn ended(&self, gate: &str) {
        // A hub that is gone is noticed by `follow`.
        let _ = self.connection.send(&Ask::Ended { gate: gate.to_string() });
    }

    /// Says that the trial has failed here, which ends it everywhere.
    pub fn failed(&self, reason: &str) {
        const MOST: usize = 1000;
        let reason = reason.chars().take(MOST).collect();
        let _ = self.connection.send(&Ask::Failed { reason });
    }

    /// Says that the trial has ended well.
    pub fn leave(&self) {
        let _ = self.connection.send(&Ask::Leave);
    }
}

/// An answer to the question for the time.
#[derive(Clone, Copy)]
struct Answered {
    /// The middle between question and answer, ticks.
    middle: u64,
    /// Ticks from the question to the answer.
    took: u64,
    hub_ns: u64,
    /// The clock of this machine in the middle, nanoseconds since 1970.
    own_ns: u64,
}
