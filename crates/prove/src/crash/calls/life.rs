//! What the processes do that are killed: a short script of commits, maintenance, closes and reopens, by one thread, so that the
//! n-th call is the same each time if the engine has no threads of its own.

use crate::crash::board::{Board, Stage};
use crate::crash::script::Script;
use crate::crash::verifier::{self, Unusable};
use crate::crash::worker::{Message, Subject, WorkerTask, acts_of, elsewhere, until_acknowledged};
use crate::engine_process::DriveError;
use crate::verify::subject::{Setup, open_caller, open_database};
use kvdyno_core::engine::abi::KV_IN_MEMORY;
use kvdyno_core::engine::{Database, Engine, Work};
use kvdyno_core::runner::level_of;
use kvdyno_measure::Task;
use kvdyno_measure::resources::descendants;
use kvdyno_measure::sync_calls::end_here;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// One step between an open and a close.
enum Step {
    /// So many commits.
    Commit(u64),
    /// Maintenance, and its name.
    Maintain(Work, &'static str),
}

use Step::*;

/// The steps of each session. The database is not closed after the last one.
const SESSIONS: [&[Step]; 3] = [
    &[Commit(9), Maintain(Work::Flush, "flush"), Commit(3)],
    &[Commit(6), Maintain(Work::Compact, "compact"), Commit(2)],
    &[Commit(6)],
];
/// The commits of all sessions.
pub(super) const COMMITS: u64 = 26;
/// What is done after a recovery.
const AFTER: &[Step] = &[Commit(5), Maintain(Work::Flush, "flush"), Commit(2)];

/// A process that will be killed.
pub(super) struct Life<'l> {
    pub subject: &'l Subject,
    pub script: Script,
    pub folder: &'l Path,
    pub board: &'l Board,
}

impl Life<'_> {
    /// Creates the database and runs all sessions. Returns only with an error, or if the engine is none for this test. If `looks` is
    /// set, it is told what was opened.
    pub(super) fn begin(&self, engine: &Engine, looks: bool) -> Result<(), DriveError> {
        let before = if looks { elsewhere(self.folder) } else { Default::default() };
        let mut next = 1;
        for (session, steps) in SESSIONS.iter().enumerate() {
            let is_first = session == 0;
            self.board.enter(if is_first { Stage::Create } else { Stage::Reopen });
            let begun = Instant::now();
            let setup = self.subject.setup(self.folder.to_path_buf(), is_first);
            let database = open_database(engine, &setup).map_err(DriveError::driver)?;
            if looks && is_first {
                let facts = database.effective();
                WorkerTask::tell(&Message::Opened {
                    version: facts.version.clone(),
                    level: level_of(facts.level),
                    in_memory: facts.capabilities & KV_IN_MEMORY != 0,
                    ns: begun.elapsed().as_nanos() as u64,
                });
                let reason = if engine.family() == "server" && descendants().is_empty() {
                    Some("the server runs elsewhere; let the driver start one of its own".to_string())
                } else {
                    elsewhere(self.folder).difference(&before).next().map(|file| {
                        format!(
                            "it writes to {} outside its folder, where no crash reaches it; let the driver keep all files in \
                             the folder that it is given",
                            file.display()
                        )
                    })
                };
                if let Some(reason) = reason {
                    WorkerTask::tell(&Message::Unsuitable(reason));
                    end_here();
                }
            }
            next = self.steps(&database, &setup, next, steps)?;
            if session + 1 == SESSIONS.len() {
                end_here();
            }
            self.board.enter(Stage::Close);
            database.close().map_err(DriveError::engine("close"))?;
        }
        Ok(())
    }

    /// Opens the database after a crash, as the process that reads it does, tells its rows, which are the base of what must be there
    /// from then on, and makes the commits after the last one that was started. Returns only with an error.
    pub(super) fn go_on(&self, engine: &Engine, may_create: bool) -> Result<(), Unusable> {
        self.board.enter(Stage::Recover);
        let (database, _) = verifier::open(engine, self.subject, self.folder, may_create)?;
        let setup = self.subject.setup(self.folder.to_path_buf(), false);
        let mut caller = open_caller(&database, &setup).map_err(DriveError::driver)?;
        let capabilities = database.effective().capabilities;
        let rows = verifier::read(&self.script, self.subject.threads, &mut caller, capabilities)?;
        caller.end().map_err(DriveError::driver)?;
        WorkerTask::tell(&Message::Read(rows));
        self.steps(&database, &setup, self.board.started() + 1, AFTER)?;
        end_here()
    }

    /// Does steps, of which the first commit has this number; the number of the next one.
    fn steps(
        &self,
        database: &Database,
        setup: &Setup,
        mut next: u64,
        steps: &[Step],
    ) -> Result<u64, DriveError> {
        for step in steps {
            match step {
                Commit(count) => {
                    self.board.enter(Stage::Run);
                    self.commit(database, setup, next..next + count)?;
                    next += count;
                }
                Maintain(work, name) => {
                    self.board.enter(Stage::Maintain);
                    database.maintain(*work).map_err(DriveError::engine(name))?;
                }
            }
        }
        Ok(next)
    }

    fn commit(&self, database: &Database, setup: &Setup, numbers: Range<u64>) -> Result<(), DriveError> {
        let mut caller = open_caller(database, setup).map_err(DriveError::driver)?;
        for number in numbers {
            let acts = acts_of(&self.script, 0, number);
            self.board.start(0, number);
            until_acknowledged(&mut caller, &acts).map_err(|error| error.at(format!("commit {number}")))?;
            self.board.acknowledge(0, number);
        }
        caller.end().map_err(DriveError::driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commits_of_all_sessions_are_counted() {
        let commits = SESSIONS.iter().flat_map(|steps| steps.iter());
        let count = |step: &Step| if let Commit(count) = step { *count } else { 0 };
        assert_eq!(commits.map(count).sum::<u64>(), COMMITS);
    }
}
