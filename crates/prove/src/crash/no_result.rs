//! Why a crash test has no result.

use super::Cell;
use super::board::Stage;
use super::oracle::Verdict;
use crate::machine::MachineError;
use kvdyno_measure::Fate;
use thiserror::Error;

/// Why a round has no result.
#[derive(Debug, Error)]
pub enum Stopped {
    /// By the user.
    #[error("interrupted by the user")]
    Interrupted,
    /// This machine does not allow the test.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The kind of engine does not allow the test, for this reason.
    #[error("{0}")]
    Unsuitable(String),
    /// The engine failed before it was crashed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// How an engine failed before it was crashed.
#[derive(Debug, Error)]
pub enum Failure {
    /// It returned an error, or its driver broke a rule.
    #[error("the engine failed before a crash: {0}")]
    Told(String),
    /// Its process ended.
    #[error("{} before a crash ({stage})", fate.text("its process"))]
    Ended {
        /// How.
        fate: Fate,
        /// What it did.
        stage: Stage,
    },
    /// Its process made no progress.
    #[error("no progress for {seconds} s before a crash ({stage})")]
    Stalled {
        /// For so long.
        seconds: u64,
        /// What it did.
        stage: Stage,
    },
}

impl Failure {
    /// What it shows of a database that was opened after a crash.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Failure::Stalled { .. } => Verdict::OpenHung,
            Failure::Told(_) | Failure::Ended { .. } => Verdict::OpenFailed,
        }
    }
}

impl Stopped {
    /// Writes the reason to the cell.
    pub(super) fn tell(self, cell: &mut Cell) {
        cell.has_failed = matches!(self, Stopped::Failed(_));
        if matches!(self, Stopped::Unsuitable(_)) {
            // On a busy machine processes may be killed before they have said what kind of engine it is. Such rounds show nothing.
            cell.rounds.clear();
        }
        cell.skipped = Some(self.to_string());
    }
}
