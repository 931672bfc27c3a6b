//! The start of a phase, together with the other load generators if there are any, and its common end.

use super::{Companion, Stage};
use crate::results::load_generators::LoadGeneratorRecord;
use crate::results::{Cause, PhaseRecord};
use crate::runner::board::Board;
use crate::runner::phase_data::Shared;
use crate::runner::worker::Outcome;
use kvdyno_cluster::{Agreed, Event, Lost, Member};
use kvdyno_measure::Clock;
use kvdyno_measure::start::thread_in_or_exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::ScopedJoinHandle;

/// The other load generators of a trial, for its phases.
#[derive(Clone, Copy)]
pub(crate) struct Others<'t> {
    /// The connection.
    pub member: &'t Member,
    /// Where waiting shows as progress: a load generator that waits for others does not hang.
    pub board: &'t Board,
}

impl Others<'_> {
    /// Agrees on the start of a phase.
    fn agree(&self, gate: &str, clock: Clock) -> Result<Agreed, Lost> {
        self.member.agree(gate, clock, &mut || self.board.wait())
    }

    /// Reports what happens to the phase; returns when all load generators have ended it. Waiting counts as progress only once
    /// the own threads have ended.
    fn follow(&self, gate: &str, has_ended: &AtomicBool, on_event: impl FnMut(Event)) {
        let mut on_wait = || {
            if has_ended.load(Ordering::Acquire) {
                self.board.wait();
            }
        };
        self.member.follow(gate, &mut on_wait, on_event);
    }
}

/// The start of the threads.
pub(super) struct Start<'s> {
    shared: &'s Shared<'s>,
    /// None: it starts alone.
    others: Option<Others<'s>>,
    /// None: there is no common start.
    agreed: Option<Agreed>,
    /// The own threads have ended.
    has_ended: Arc<AtomicBool>,
    following: Option<ScopedJoinHandle<'s, ()>>,
}

impl<'s> Start<'s> {
    /// Nothing is agreed yet.
    pub(super) fn new(shared: &'s Shared<'s>, others: Option<Others<'s>>) -> Start<'s> {
        Start { shared, others, agreed: None, has_ended: Arc::default(), following: None }
    }

    /// The name of the phase for the other load generators.
    fn gate(&self) -> String {
        let round = self.shared.round.map_or_else(String::new, |round| format!(", round {round}"));
        format!("phase {}{round}", self.shared.phase.name)
    }
}

impl<'s> Companion<'s> for Start<'s> {
    fn begin(&mut self, stage: &Stage<'s, '_>) {
        let Some(others) = self.others else { return };
        let (shared, gate) = (self.shared, self.gate());
        match others.agree(&gate, shared.clock) {
            Ok(start) => self.agreed = Some(start),
            // The threads wait for their start, and end with it.
            Err(Lost(text)) => return shared.fail(Cause::LoadGeneratorLost, text),
        }
        let has_ended = Arc::clone(&self.has_ended);
        let follow = move || others.follow(&gate, &has_ended, |event| heard(shared, event));
        self.following = Some(thread_in_or_exit(stage.scope, follow));
    }

    fn start(&mut self, _stage: &Stage<'s, '_>) {
        let clock = self.shared.clock;
        if let Some(agreed) = &self.agreed {
            Member::wait_for(agreed, clock);
        }
        // The warm-up begins here, directly before the threads start.
        self.shared.start_clocks(self.agreed.as_ref().map_or_else(|| clock.now(), |agreed| agreed.tick));
    }

    fn end(&mut self, _outcomes: &[Outcome]) {
        let (Some(others), Some(following)) = (self.others, self.following.take()) else { return };
        self.has_ended.store(true, Ordering::Release);
        match &*self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => others.member.failed(&failure.text),
            None => others.member.ended(&self.gate()),
        }
        following.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if self.shared.failure.lock().is_ok_and(|failure| failure.is_none()) {
            // Another load generator may have stopped the threads; the database is still read.
            self.shared.stop.store(0, Ordering::Release);
        }
    }

    fn record(self: Box<Self>, outcomes: &[Outcome], record: &mut PhaseRecord) {
        let (Some(others), Some(agreed)) = (self.others, self.agreed) else { return };
        record.load_generators.extend(load_generator_record(self.shared, others, outcomes, agreed));
    }
}

/// What happens in other load generators.
fn heard(shared: &Shared<'_>, event: Event) {
    match event {
        // All keys are loaded; otherwise the time in which all load generators run is over.
        Event::FirstEnded if shared.phase.each_key => {}
        Event::FirstEnded => shared.stop.store(1, Ordering::Release),
        Event::Over => {}
        Event::Lost(Lost(text)) => shared.fail(Cause::LoadGeneratorLost, text),
    }
}

/// What this load generator did; none: it has no threads.
fn load_generator_record(
    shared: &Shared<'_>,
    others: Others<'_>,
    outcomes: &[Outcome],
    agreed: Agreed,
) -> Option<LoadGeneratorRecord> {
    let from = shared.warm_until.load(Ordering::Acquire);
    // Signed: a thread may end before the time at which counting begins.
    let since = |tick: u64| {
        let ns = |ticks: u64| shared.clock.to_ns(ticks) as i64;
        if tick >= from { ns(tick - from) } else { -ns(from - tick) }
    };
    Some(LoadGeneratorRecord {
        load_generator: others.member.load_generator(),
        ops: outcomes.iter().map(|outcome| outcome.judge.ops).sum(),
        start_ns: since(outcomes.iter().map(|outcome| outcome.start).min()?),
        end_ns: since(outcomes.iter().map(|outcome| outcome.end).max()?),
        clock_offset_ns: agreed.clock_offset_ns,
        clock_error_ns: agreed.clock_error_ns,
    })
}
