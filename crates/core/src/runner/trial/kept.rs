//! The start of a trial with a kept database, and the end of a trial that keeps its database.

use super::{TrialError, TrialRun};
use crate::engine::Engine;
use crate::results::Trial;
use crate::runner::check::Versions;
use crate::runner::data::{self, Growth, has_merges};
use crate::runner::foreign;
use crate::runner::kept::{self, State};
use crate::runner::phase::is_contended;
use crate::runner::phase_data::Population;
use crate::workload::Workload;
use kvdyno_measure::DiskUse;
use std::path::Path;

/// The initial state of a trial: empty, or that of the kept database.
pub(super) struct Start {
    pub growth: Growth,
    pub counters: u64,
    pub merges: u64,
    pub population: Population,
    state: Option<State>,
    is_foreign: bool,
}

impl Start {
    /// The initial state of a trial whose database was copied from `kept`; none: an empty one.
    pub(super) fn of(trial: &Trial, engine: &Engine, kept: Option<&Path>) -> Result<Start, TrialError> {
        let workload = &trial.workload;
        let empty = Start {
            growth: data::growth(workload),
            counters: if has_merges(workload) { workload.keys } else { 0 },
            merges: 0,
            population: Population { dense: 0, whole: true, next_insert: 0 },
            state: None,
            is_foreign: false,
        };
        let Some(folder) = kept else {
            // Engines that store nothing skip their fills like the others, but have no kept database.
            let is_lost = trial.reused && !engine.stores_nothing();
            return if is_lost { Err(TrialError::NoDatabase) } else { Ok(empty) };
        };
        if trial.is_foreign() {
            if let Some(reason) = foreign::is_unfit(workload) {
                return Err(TrialError::Unfit(reason));
            }
            // The survey determines which keys there are.
            return Ok(Start { is_foreign: true, ..empty });
        }
        let state = kept::state(folder).map_err(|error| TrialError::State(error.to_string()))?;
        state.fits(trial).map_err(|error| TrialError::Unfit(error.to_string()))?;
        let growth = kept::growth(&state, workload).map_err(|error| TrialError::Unfit(error.to_string()))?;
        Ok(Start {
            growth,
            counters: state.counters.max(empty.counters),
            merges: state.merges,
            population: state.population,
            state: Some(state),
            is_foreign: false,
        })
    }

    /// Whether there is a database at the start.
    pub(super) fn has_database(&self) -> bool {
        self.state.is_some() || self.is_foreign
    }

    /// The table of versions, with those in the database.
    pub(super) fn versions(
        &self,
        kept: Option<&Path>,
        workload: &Workload,
        insert_end: u64,
    ) -> Result<Option<Versions>, TrialError> {
        if self.is_foreign {
            return Ok(None);
        }
        let expected = match (&self.state, kept) {
            (Some(state), Some(folder)) => match state.versions {
                Some(expected) => Some((folder, expected)),
                None => return Ok(None),
            },
            _ => None,
        };
        let table = Versions::new(workload.keys, insert_end);
        let table = table.map(|table| table.with_words(workload.phases.iter().any(is_contended)));
        if let Some((folder, expected)) = expected {
            let table = table.as_ref().ok_or(TrialError::TooManyVersions)?;
            let read = table.read(&folder.join(kept::VERSIONS), expected);
            read.map_err(|error| TrialError::State(error.to_string()))?;
        }
        Ok(table)
    }
}

impl TrialRun<'_> {
    /// Writes the state of the closed database to `folder`. Writes nothing if the trial failed or there is nothing to keep.
    pub(super) fn leave(&self, folder: &Path) -> Result<(), TrialError> {
        let is_sound = self.failure.is_none() && self.wrong.is_empty() && self.database.is_none();
        if !is_sound || self.in_memory() || self.engine.stores_nothing() {
            return Ok(());
        }
        let written = self.versions.as_ref().map(|table| table.write(&folder.join(kept::VERSIONS)));
        let versions = written.transpose().map_err(|error| TrialError::State(error.to_string()))?;
        let version = self.facts.as_ref().map(|facts| facts.version.clone()).unwrap_or_default();
        let state = State {
            population: self.population,
            present: self.keys_now(),
            insert_end: self.insert_end,
            counters: self.counters,
            merges: self.merges,
            versions,
            disk: DiskUse::of(&self.data),
            ..kept::begin(self.trial, version)
        };
        kept::write(folder, &state).map_err(|error| TrialError::State(error.to_string()))
    }
}
