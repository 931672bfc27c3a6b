//! Companions of a phase: what is done beside its threads while they run, such as watching them or letting members of the store
//! fail. A phase calls them at its moments and knows nothing else about them; the loop of a thread never calls one.

mod arrivals;
mod calls;
pub(super) mod faults;
mod load_generators;
mod paces;
mod rereads;
pub(super) mod stale;
mod stats;
mod watch;

pub(super) use faults::{Unfit, meet};
pub(super) use load_generators::Others;
pub(super) use watch::ROW_NS;
pub use watch::Tick;

use super::end_count::Finished;
use super::means::Means;
use super::phase_data::{Failure, Shared};
use super::worker::Outcome;
use crate::engine::Database;
use crate::results::PhaseRecord;
use arrivals::ArrivalsOf;
use calls::Calls;
use faults::MemberFaults;
use load_generators::Start;
use paces::Paces;
use rereads::Rereads;
use stale::StaleReads;
use stats::Stats;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use watch::Watch;

/// What is done beside the threads of a phase. The methods are the moments of a phase, in their order; all are called in the
/// thread that runs it.
pub(super) trait Companion<'s> {
    /// The threads have been made, and wait.
    fn begin(&mut self, _stage: &Stage<'s, '_>) {}
    /// The threads start directly after this.
    fn start(&mut self, _stage: &Stage<'s, '_>) {}
    /// The threads run. Returns when they have ended, or at once.
    fn attend(&mut self) {}
    /// The threads have ended, with these results.
    fn end(&mut self, _outcomes: &[Outcome]) {}
    /// Adds its part to the record, which has all that the threads know.
    fn record(self: Box<Self>, outcomes: &[Outcome], record: &mut PhaseRecord);
}

/// Where a phase runs.
pub(super) struct Stage<'s, 'e> {
    /// The scope of its threads; a companion ends its own threads itself.
    pub scope: &'s Scope<'s, 'e>,
    /// Counts the threads that have ended.
    pub finished: Arc<Finished>,
    /// None: the phase does not end by a count.
    pub target_ops: Option<u64>,
    /// Memory of the threads' buffers, which is not the engine's, until the threads have ended.
    pub buffers_bytes: u64,
}

/// Receives ticks as they happen.
pub(super) type OnTick<'a> = &'a mut dyn FnMut(&Tick);

/// What companions need of the trial.
pub(super) struct Outside<'s> {
    /// The folder of the database.
    pub data: &'s Path,
    /// The other load generators that run the phase; none: there are none.
    pub others: Option<Others<'s>>,
    /// What faults of members need; none: the workload has none.
    pub means: Option<&'s Mutex<Means>>,
}

/// The companions of a phase: they begin and start in this order, and end and record in the reverse. To be called before the
/// phase opens sessions.
pub(super) fn of<'s>(
    shared: &'s Shared<'s>,
    database: &'s Database,
    outside: Outside<'s>,
    on_tick: OnTick<'s>,
) -> Result<Vec<Box<dyn Companion<'s> + 's>>, Failure> {
    let Outside { data, others, means } = outside;
    // Reads, statistics and paces around the phase are not measured, so that the watcher begins after them and ends before. Faults begin when the clocks run,
    // and have been undone when the other load generators are told of the end.
    let mut all: Vec<Box<dyn Companion<'s> + 's>> = vec![
        Box::new(Calls::new()),
        Box::new(ArrivalsOf { shared }),
        Box::new(Rereads::new(shared, database)),
        Box::new(Stats::new(shared, database)),
        Box::new(StaleReads { shared }),
        Box::new(Paces::default()),
        Box::new(Watch::new(shared, database, data, on_tick)),
        Box::new(Start::new(shared, others)),
    ];
    if let Some(means) = means {
        all.push(Box::new(MemberFaults::new(shared, means)?));
    }
    Ok(all)
}
