//! The system calls of a phase, in a trial whose calls are counted.

use super::Companion;
use crate::results::PhaseRecord;
use crate::runner::worker::Outcome;
use kvdyno_measure::system_calls;
use std::collections::BTreeMap;

/// The calls from before the threads are started until they have ended. So those with which a thread starts and ends are always
/// among them: their number is the same each time.
pub(super) struct Calls {
    before: Option<BTreeMap<String, u64>>,
    made: Option<BTreeMap<String, u64>>,
}

impl Calls {
    /// Begins to count; to be made before the threads are started.
    pub(super) fn new() -> Calls {
        Calls { before: system_calls::now(), made: None }
    }
}

impl Companion<'_> for Calls {
    fn end(&mut self, _outcomes: &[Outcome]) {
        let both = system_calls::now().zip(self.before.as_ref());
        self.made = both.map(|(now, before)| system_calls::since(&now, before));
    }

    fn record(self: Box<Self>, _outcomes: &[Outcome], record: &mut PhaseRecord) {
        record.system_calls = self.made;
    }
}
