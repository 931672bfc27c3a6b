//! The end of a trial in a fresh process: data that an engine kept only in the memory of the trial's process is missing
//! there.

use super::common_database::Joined;
use super::{Around, Folders, Keep, OnTick, TrialError, TrialRun};
use crate::engine::Engine;
use crate::results::{Cause, EngineFacts, Outcome, Record, StepKind, Trial};
use crate::runner::check::Versions;
use crate::runner::kept::VersionsFile;
use crate::runner::phase_data::{Failure, Population};
use crate::runner::sweep::Extent;
use crate::workload::Durability;
use kvdyno_measure::memory_cap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// The state of a closed database that is needed to reopen and sweep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClosedState {
    population: Population,
    level: Durability,
    merges: u64,
    /// How much is swept.
    extent: Extent,
    is_atomic: bool,
    facts: Option<EngineFacts>,
    versions: Option<VersionsFile>,
    /// Writes that failed and may take effect.
    #[serde(default)]
    doubtful: Vec<(u64, Vec<u32>)>,
    lists: Option<Vec<Range<u64>>>,
    joined: Joined,
}

/// How a trial's process runs its end in a fresh process.
pub(crate) struct Elsewhere<'e> {
    /// The file for the versions of all keys.
    pub versions: &'e Path,
    /// Whether the trial's process needs its versions afterwards, to keep the database.
    pub is_kept: bool,
    /// Starts the process, waits for it, and returns its record; a [`Failure`] reports how it ended without one.
    pub run: &'e dyn Fn(&ClosedState) -> Result<Record, Failure>,
}

/// What the trial's process hands to the fresh one.
pub(crate) struct HandedOver<'h> {
    /// The state of the trial.
    pub state: &'h ClosedState,
    /// The file of versions.
    pub versions: &'h Path,
}

/// The side of the fresh process: reopens the database, sweeps and closes it. Only the outcome and the steps of its record
/// are used.
pub(crate) fn run_end(
    trial: &Trial,
    engine: Engine,
    folders: Folders<'_>,
    around: Around<'_>,
    handed: HandedOver<'_>,
    on_tick: OnTick<'_>,
    keep: Keep<'_>,
) -> Result<Record, TrialError> {
    let HandedOver { state, versions } = handed;
    let mut run = TrialRun::new(trial, engine, &folders, around.clock)?;
    run.board = around.board;
    run.take_over(state, versions)?;
    if run.reopen() {
        // If this process does not finish, the record shows how far it came.
        keep(&run.record())?;
        run.sweep_and_close(state.extent, on_tick);
    }
    Ok(run.record())
}

impl TrialRun<'_> {
    /// Has a fresh process reopen and sweep the closed database, and takes over its results.
    pub(super) fn finish_elsewhere(&mut self, elsewhere: &Elsewhere<'_>, extent: Extent) {
        // Only the trial's process knows the keys that its phases left.
        let keys = self.restored_keys();
        let handed = self.hand_over(elsewhere.versions, extent);
        let handed = handed.map_err(|error| Failure { cause: Cause::Io, text: error.to_string() });
        if !elsewhere.is_kept {
            // The fresh process has its own table, and a cap on memory may have no room for two.
            self.versions = None;
        }
        // What the closed engine has freed would be missing to the fresh process, too.
        memory_cap::return_freed();
        match handed.and_then(|hand_over| (elsewhere.run)(&hand_over)) {
            Ok(record) => self.take(record, keys),
            Err(failure) => self.fail(failure.cause, failure.text),
        }
    }

    fn hand_over(&self, versions: &Path, extent: Extent) -> Result<ClosedState, TrialError> {
        let written = self.versions.as_ref().map(|table| table.write(versions)).transpose();
        Ok(ClosedState {
            population: self.population,
            level: self.level,
            merges: self.merges,
            extent,
            is_atomic: self.spaces.is_atomic(),
            facts: self.facts.clone(),
            versions: written.map_err(|error| TrialError::State(error.to_string()))?,
            doubtful: self.versions.as_ref().map(Versions::all_doubtful).unwrap_or_default(),
            lists: self
                .lists
                .as_ref()
                .map(|lists| (0..lists.count()).map(|list| lists.elements(list)).collect()),
            joined: self.joined.clone(),
        })
    }

    fn take_over(&mut self, hand_over: &ClosedState, versions: &Path) -> Result<(), TrialError> {
        self.population = hand_over.population;
        self.level = hand_over.level;
        self.merges = hand_over.merges;
        self.has_created = true;
        self.joined = hand_over.joined.clone();
        self.facts = hand_over.facts.clone();
        self.spaces.set_atomic(hand_over.is_atomic);
        if let (Some(table), Some(expected)) = (&self.versions, hand_over.versions) {
            table.restore(&[]);
            table.read(versions, expected).map_err(|error| TrialError::State(error.to_string()))?;
            for (index, versions) in &hand_over.doubtful {
                versions.iter().for_each(|version| table.doubt(*index, *version));
            }
        }
        if let (Some(lists), Some(elements)) = (&self.lists, &hand_over.lists) {
            elements
                .iter()
                .zip(0..lists.count())
                .for_each(|(elements, list)| lists.set_elements(list, elements));
        }
        Ok(())
    }

    /// Adds the results of the fresh process to this trial.
    fn take(&mut self, record: Record, keys: Option<u64>) {
        let first = self.steps.len();
        self.steps.extend(record.steps);
        self.steps[first..]
            .iter_mut()
            .filter(|step| step.name == StepKind::Reopen)
            .for_each(|step| step.keys = keys);
        match record.outcome {
            Outcome::Ok => {}
            Outcome::WrongAnswers { faults } => self.wrong.extend(faults),
            Outcome::Failed { cause, text } => self.fail(cause, text),
            Outcome::Crashed { signal, .. } => {
                self.fail(Cause::Io, format!("the fresh process reports a crash: {signal}"))
            }
        }
    }
}
