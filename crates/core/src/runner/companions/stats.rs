//! Internal statistics that the engine reports after a phase.

use super::Companion;
use crate::engine::Database;
use crate::results::{Cause, PhaseRecord};
use crate::runner::phase_data::Shared;
use crate::runner::worker::Outcome;

/// The statistics of a phase.
pub(super) struct Stats<'s> {
    shared: &'s Shared<'s>,
    database: &'s Database,
    found: Vec<(String, String)>,
}

impl<'s> Stats<'s> {
    /// Nothing is known yet.
    pub(super) fn new(shared: &'s Shared<'s>, database: &'s Database) -> Stats<'s> {
        Stats { shared, database, found: Vec::new() }
    }
}

impl<'s> Companion<'s> for Stats<'s> {
    fn end(&mut self, _outcomes: &[Outcome]) {
        match self.database.stats() {
            Ok(found) => self.found = found,
            Err(error) => {
                let phase = &self.shared.phase.name;
                self.shared.fail(Cause::EngineError, format!("stats after phase {phase}: {error}"));
            }
        }
    }

    fn record(self: Box<Self>, _outcomes: &[Outcome], record: &mut PhaseRecord) {
        record.engine_stats = self.found;
    }
}
