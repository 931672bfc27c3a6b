//! The pace of the machine before and after a phase.

use super::{Companion, Stage};
use crate::results::PhaseRecord;
use crate::runner::worker::Outcome;
use kvdyno_measure::Pace;

/// The paces around a phase. They are measured while its threads wait, and after these have ended.
#[derive(Default)]
pub(super) struct Paces {
    before: Option<Pace>,
    after: Option<Pace>,
}

impl Companion<'_> for Paces {
    fn begin(&mut self, _stage: &Stage<'_, '_>) {
        self.before = Pace::now();
    }

    fn end(&mut self, _outcomes: &[Outcome]) {
        self.after = Pace::now();
    }

    fn record(self: Box<Self>, _outcomes: &[Outcome], record: &mut PhaseRecord) {
        let noise = record.noise.get_or_insert_default();
        (noise.pace_before, noise.pace_after) = (self.before, self.after);
    }
}
