//! The start of a trial on a copy of a database that another program made: a survey, from which keys and sizes come.

use super::TrialRun;
use super::errors::NotRun;
use crate::engine::Request;
use crate::engine::abi::KV_ORDERED;
use crate::generator::{MOST_KEY_BYTES, Values};
use crate::results::{Cause, StepKind};
use crate::runner::foreign;
use crate::runner::phase_data::Population;
use crate::workload::Durability;
use kvdyno_measure::{DiskUse, drop_pages_of};

/// Free space in the file of an engine that reserves it when it opens a database, bytes.
const SPARE_BYTES: u64 = 256 << 20;

impl TrialRun<'_> {
    /// Before the first phase on a foreign database: opens it, reads its keys and sizes, closes it, and drops it from the page
    /// cache, so that the trial begins as it would without the survey. Does nothing in other trials.
    pub(super) fn survey(&mut self, level: Durability, before: Option<&str>) -> Result<(), NotRun> {
        if !self.trial.is_foreign() || self.foreign.is_some() || self.engine.stores_nothing() {
            return Ok(());
        }
        let opened = self.open(StepKind::Open, level, before);
        let found = opened.and_then(|()| self.step(StepKind::Survey, before, |run| run.read_all()));
        if let Err(error) = found {
            self.fail(Cause::EngineError, error.to_string());
            return Err(error);
        }
        if !self.close(before) {
            return Err(NotRun::NotClosed);
        }
        drop_pages_of(&self.data).map_err(|error| NotRun::NotDropped { folder: self.data.clone(), error })
    }

    fn read_all(&mut self) -> Result<(), NotRun> {
        let database = self.database.as_ref().expect("it was opened for the survey");
        let (workload, clock) = (&self.trial.workload, self.clock.kind());
        let progress = || self.board.wait();
        let found = if workload.key.file.is_some() {
            foreign::by_keys(database, clock, &self.keys, progress)
        } else if database.effective().capabilities & KV_ORDERED != 0 {
            foreign::by_scan(database, clock, workload.seed, workload.keys, progress)
        } else {
            return Err(NotRun::NoKeys);
        };
        let found = found.map_err(|error| NotRun::Survey(error.to_string()))?;
        let longest = u32::try_from(found.data.value_bytes.max).unwrap_or(u32::MAX);
        let values = Values::foreign(longest);
        self.values.iter_mut().for_each(|own| *own = values.clone());
        let count = found.data.drawn;
        self.population = Population { dense: count, whole: true, next_insert: count };
        // Scans may return every row, also those that are not drawn.
        self.insert_end = found.rows.unwrap_or(u64::MAX / 4);
        (self.counted_end, self.keys, self.foreign) = (count, found.keys, Some(found.data));
        Ok(())
    }

    /// The request with what is known of a foreign database instead of what the workload says.
    pub(super) fn foreign_request(&self, request: Request) -> Request {
        let own = DiskUse::of(&self.data).map_or(0, |disk| disk.apparent_bytes);
        let known = self.foreign.as_ref();
        let most = self.engine.key_size_max().min(MOST_KEY_BYTES);
        let rows = known.and_then(|known| known.rows);
        Request {
            read_only: true,
            expected_rows: rows.unwrap_or(0),
            disk_limit_bytes: own.saturating_mul(2).saturating_add(SPARE_BYTES),
            key_size_max: known.map_or(most, |known| known.key_bytes.max as u32),
            key_size_fixed: 0,
            value_size_max: known.map_or(0, |known| known.value_bytes.max as u32).max(8),
            settings: request
                .settings
                .into_iter()
                .filter(|(name, _)| name != crate::results::FOREIGN.0)
                .collect(),
            ..request
        }
    }
}
