//! Runs workloads on engines: the plan, one process per trial, the hot loop, and the checks.

mod board;
mod check;
mod chooser;
mod companions;
mod contention;
mod count;
mod data;
mod draw;
mod end_count;
mod epochs;
mod examine;
mod facts;
mod folder;
pub mod foreign;
mod gets;
mod judge;
pub mod kept;
mod lists;
mod longest;
mod means;
mod option;
mod others;
mod pacer;
mod part;
mod phase;
mod phase_data;
mod plan;
mod process;
mod rows;
mod schedule;
mod shape;
mod short;
mod spaces;
mod sweep;
mod trial;
mod worker;

pub use board::{Doing, Snapshot};
pub use companions::Tick;
pub use data::DataError;
pub use examine::{ProbeError, described};
pub use facts::{level_number, level_of, target_level};
pub use folder::{DataFolder, FolderError, check_parent, check_place, is_of_run, reap};
pub use gets::ReadError;
pub use means::{MeansError, become_member};
pub use option::{OptionError, option_value};
pub use others::{Company, Side};
pub use part::refusal as load_generator_refusal;
pub use plan::{
    Contestant, Entry, PlanError, Seeds, TrialSettings, URL, check_plan, disk_estimate_bytes, has_url, plan,
    time_estimate_seconds,
};
pub use process::{Files, ProcessError, Runner, TrialTask};
pub use schedule::{Turn, schedule};
pub use shape::memory_estimate_bytes;
pub use sweep::{SWEEP_GET_SECONDS, SWEEP_GETS};
pub use trial::{TrialError, run as run_trial};

use crate::results::store::{RunFolder, StoreError};
use crate::results::{Cause, Outcome, Plan, Record, Reserve, ReserveError, Trial, now_rfc3339};
use kept::KeptError;
use kvdyno_measure::signals;
use std::path::Path;

/// Follows the progress of a run.
pub trait Observer {
    /// A trial begins; it has position `place` of `count`, from 0.
    fn trial_begins(&mut self, trial: &Trial, place: usize, count: usize);
    /// Progress of the trial.
    fn tick(&mut self, tick: &Tick);
    /// The state of the trial, several times a second; never called if processes cannot share memory.
    fn snapshot(&mut self, snapshot: &Snapshot);
    /// The trial has ended, and its record is on disk.
    fn trial_ended(&mut self, record: &Record);
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All trials have records.
    Complete,
    /// The user interrupted the run; the results so far are on disk.
    Interrupted,
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Results cannot be written or read.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// There is no space for records.
    #[error("{0}")]
    Reserve(#[from] ReserveError),
    /// The folder of a database cannot be made, kept or removed.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// The database that a trial starts with cannot be copied.
    #[error("{0}")]
    Kept(#[from] KeptError),
    /// It cannot be copied, and what was copied cannot be removed.
    #[error("{error}; {left}")]
    Left {
        /// Why it cannot be copied.
        error: Box<KeptError>,
        /// Why the rest is left.
        left: Box<FolderError>,
    },
    /// The other load generators cannot go on: why.
    #[error("{0}")]
    Company(String),
}

/// Runs the trials of a plan that have no record yet, one after another. Each record is on disk before the next trial
/// starts.
pub fn run(
    plan: &Plan,
    runner: &Runner,
    results: &mut RunFolder,
    data: &Path,
    observer: &mut dyn Observer,
) -> Result<Ending, RunError> {
    let run_id = results.run().id.clone();
    let earlier = results.finished()?;
    let mut last: Vec<Record> = earlier.into_iter().filter(is_last_of_cell).collect();
    let load_generator = runner.company.as_ref().map_or(0, |company| company.seat.load_generator);
    let reserve = Reserve::new(results.path());
    for (place, trial) in plan.trials.iter().enumerate() {
        // In a run with several numbers of load generators, some have fewer load generators than the run.
        if results.is_done(&trial.id) || load_generator >= trial.load_generators.max(1) {
            continue;
        }
        if signals::interrupts() > 0 {
            return Ok(Ending::Interrupted);
        }
        if let Some(first) = last.iter().find(|record| record.trial.is_cell_of(trial)) {
            let record = skipped(trial, first);
            results.save(&record)?;
            observer.trial_begins(trial, place, plan.trials.len());
            observer.trial_ended(&record);
            continue;
        }
        reserve.claim()?;
        observer.trial_begins(trial, place, plan.trials.len());
        let folder = DataFolder::create(data, &run_id, &trial.id)?;
        if let Some(kept) = runner.reuse.get(&trial.id)
            && let Err(error) = kept::copy(trial, kept, &folder.database())
        {
            return Err(match folder.remove() {
                Ok(()) => error.into(),
                Err(left) => RunError::Left { error: Box::new(error), left: Box::new(left) },
            });
        }
        let place = runner.place(trial);
        let scratch = results.trial_folder(&trial.id)?;
        let files = Files { scratch: &scratch, reserve: Some(reserve.file()) };
        let record = runner.run(trial, &folder, &files, observer);
        let is_interrupted = signals::interrupts() >= 2;
        // Before the record is written, because the database may have filled the disk that both are on.
        let cleared = match place {
            Some(place) if !is_interrupted => folder.keep_as(&place),
            _ => folder.remove(),
        };
        reserve.release();
        if is_interrupted {
            cleared?;
            return Ok(Ending::Interrupted);
        }
        let (record, broken) = match &runner.company {
            Some(company) if trial.load_generators > 1 => match company.settle(trial, record) {
                Some(settled) => settled,
                None => {
                    cleared?;
                    return Ok(Ending::Interrupted);
                }
            },
            _ => (record, None),
        };
        results.save(&record)?;
        observer.trial_ended(&record);
        if let Some(text) = broken {
            cleared?;
            return Err(RunError::Company(text));
        }
        last.extend(Some(record).filter(is_last_of_cell));
        cleared?;
    }
    Ok(if signals::interrupts() > 0 { Ending::Interrupted } else { Ending::Complete })
}

/// Whether later trials of the same engine and workload are skipped.
fn is_last_of_cell(record: &Record) -> bool {
    matches!(record.outcome, Outcome::Failed { cause, .. } if cause.skips_other_runs())
}

/// The record of a trial that is not run, because `first`, of the same engine and workload, was too slow or hung.
fn skipped(trial: &Trial, first: &Record) -> Record {
    let reason = |text: &str| text.split(';').next().unwrap_or_default().to_string();
    let why = match &first.outcome {
        Outcome::Failed { cause: Cause::Timeout, text } => format!("hung: {}", reason(text)),
        Outcome::Failed { text, .. } => format!("was too slow: it {}", reason(text)),
        _ => String::new(),
    };
    let text = format!("run {} {why}", first.trial.repetition);
    let outcome = Outcome::Failed { cause: Cause::Skipped, text };
    Record::failed(trial.clone(), now_rfc3339(), outcome)
}

#[cfg(test)]
mod tests;
