//! The counters of a process that will crash, in memory that it shares with its parent and that is outside the tested file
//! system.

use super::oracle::Bounds;
use crate::machine::MachineError;
use kvdyno_measure::Counters;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use thiserror::Error;

/// "kvcrash" and the version of the layout, 1.
const MAGIC: u64 = 0x6b76_6372_6173_6801;
/// Words of line 0, after the magic.
const PROCESS: usize = 1;
const STAGE: usize = 2;
const STAGES: usize = 3;
const PAUSED: usize = 4;
const CLOSINGS: usize = 5;
const HELD: usize = 6;
const GOES_ON: usize = 7;
const KILL_IN: usize = 8;
const KILL_AFTER: usize = 9;
const COMMIT_NS: usize = 10;
const KILLED: usize = 11;
const AIMED: usize = 12;
const LEAVING: usize = 13;
/// Words of a thread's line.
const STARTED: usize = 0;
const ACKED: usize = 1;

/// What the process is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::Display, strum::FromRepr)]
#[repr(u64)]
pub enum Stage {
    /// It has not begun.
    #[default]
    #[strum(serialize = "starting")]
    Start,
    /// It creates the database.
    #[strum(serialize = "creating")]
    Create,
    /// It commits.
    #[strum(serialize = "running")]
    Run,
    /// It flushes or compacts.
    #[strum(serialize = "maintaining")]
    Maintain,
    /// It closes the database.
    #[strum(serialize = "closing")]
    Close,
    /// It opens it again.
    #[strum(serialize = "reopening")]
    Reopen,
    /// It opens it after a crash.
    #[strum(serialize = "recovering")]
    Recover,
}

impl Stage {
    /// Whether it has not yet created the database, as far as is known: then it may be created again after a crash.
    pub(super) fn is_creating(self) -> bool {
        matches!(self, Stage::Start | Stage::Create)
    }

    /// Whether it maintains, closes or reopens the database.
    pub(super) fn is_closing(self) -> bool {
        matches!(self, Stage::Maintain | Stage::Close | Stage::Reopen)
    }
}

/// What a board says at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// What the process does.
    pub stage: Stage,
    /// The commits of each thread.
    pub bounds: Vec<Bounds>,
}

impl Snapshot {
    /// As numbers.
    pub(super) fn words(&self) -> Vec<u64> {
        let stage = self.stage as u64;
        let bounds = self.bounds.iter().flat_map(|bounds| [bounds.acked, bounds.started]);
        std::iter::once(stage).chain(bounds).collect()
    }

    /// What these numbers say.
    pub(super) fn of(words: &[u64]) -> Snapshot {
        let Some((stage, bounds)) = words.split_first() else { return Snapshot::default() };
        let bounds = bounds.chunks_exact(2).map(|pair| Bounds { acked: pair[0], started: pair[1] }).collect();
        Snapshot { stage: Stage::from_repr(*stage).unwrap_or_default(), bounds }
    }

    /// Commits acknowledged by all threads.
    pub(super) fn acked(&self) -> u64 {
        self.bounds.iter().map(|bounds| bounds.acked).sum()
    }
}

/// The parent has passed no counters to this process.
#[derive(Debug, Error)]
pub(super) enum NoBoard {
    /// A process that counts.
    #[error("the parent's counters are not there; this command is started by `kvdyno prove --only crash`")]
    Own,
    /// A process that looks at the counters of another one.
    #[error("the parent's counters are not there")]
    OfAnother,
}

/// The counters.
pub(super) struct Board(Counters);

impl Board {
    /// A board for the process that is started next.
    pub(super) fn shared(threads: u32) -> Result<Board, MachineError> {
        let counters = Counters::shared(1 + threads as usize).map_err(MachineError::Memory)?;
        counters.word(0, 0).store(MAGIC, SeqCst);
        Ok(Board(counters))
    }

    /// A board for a process that opens a database after a crash and makes further commits, with numbers after this one. It makes
    /// none before [`Board::go`].
    pub(super) fn going_on(threads: u32, last: u64) -> Result<Board, MachineError> {
        let board = Board::shared(threads)?;
        board.0.word(0, GOES_ON).store(1, SeqCst);
        for thread in 0..threads {
            board.start(thread, last);
            board.acknowledge(thread, last);
        }
        board.pause();
        Ok(board)
    }

    /// The board that the parent made.
    pub(super) fn inherited(descriptor: i32) -> Result<Board, NoBoard> {
        let board = Board::observed(descriptor).map_err(|_| NoBoard::Own)?;
        board.0.word(0, PROCESS).store(u64::from(std::process::id()), SeqCst);
        Ok(board)
    }

    /// The board of another process that the parent has started, to look at.
    pub(super) fn observed(descriptor: i32) -> Result<Board, NoBoard> {
        let counters = Counters::inherited(descriptor).ok().filter(|counters| counters.get(0, 0) == MAGIC);
        counters.map(Board).ok_or(NoBoard::OfAnother)
    }

    /// The descriptor for the process that is started next.
    pub(super) fn descriptor(&self) -> Result<i32, MachineError> {
        self.0.descriptor().ok_or(MachineError::NoSharedMemory)
    }

    /// The process that inherited it; `None` if it has not begun.
    pub(super) fn process(&self) -> Option<u32> {
        u32::try_from(self.0.word(0, PROCESS).load(SeqCst)).ok().filter(|process| *process > 0)
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.0.word(0, STAGE).store(stage as u64, SeqCst);
        self.0.word(0, STAGES).fetch_add(1, SeqCst);
        if stage.is_closing() {
            self.0.word(0, CLOSINGS).fetch_add(1, SeqCst);
        }
    }

    /// The process may not leave its stage from now on, unless it is already doing so; returns its stage, or `None` if it is leaving it.
    /// Many engines commit so fast that a stage is over between a look at the board and a kill.
    pub(super) fn aim(&self) -> Option<Stage> {
        self.0.word(0, AIMED).store(1, SeqCst);
        let is_leaving = self.0.word(0, LEAVING).load(SeqCst) != 0;
        (!is_leaving).then(|| self.stage())
    }

    /// The process may leave its stage again.
    pub(super) fn aim_elsewhere(&self) {
        self.0.word(0, AIMED).store(0, SeqCst);
    }

    /// The process leaves its stage, unless its parent aims at it; returns whether it may. Either it sees the aim, or the parent
    /// sees that it is leaving (Dekker's rule).
    fn may_leave(&self) -> bool {
        self.0.word(0, LEAVING).store(1, SeqCst);
        let is_aimed_at = self.0.word(0, AIMED).load(SeqCst) != 0;
        if is_aimed_at {
            self.0.word(0, LEAVING).store(0, SeqCst);
        }
        !is_aimed_at
    }

    /// Enters a stage, if the parent does not aim at the process; returns whether it has.
    pub(super) fn try_enter(&self, stage: Stage) -> bool {
        let may = self.may_leave();
        if may {
            self.enter(stage);
            self.0.word(0, LEAVING).store(0, SeqCst);
        }
        may
    }

    /// How often the process began to maintain, close or reopen the database.
    pub(super) fn closings(&self) -> u64 {
        self.0.word(0, CLOSINGS).load(SeqCst)
    }

    /// The process is to stay in a stage when it has done its work: in the n-th in which it maintains, closes or reopens the
    /// database, or in its creation if n is 0. Many last for less time than passes between two looks at the board.
    pub(super) fn hold_at(&self, closing: u64) {
        self.0.word(0, HELD).store(closing + 1, SeqCst);
    }

    /// Whether the process is to stay in the stage that it is in.
    pub(super) fn is_held(&self) -> bool {
        let held = self.0.word(0, HELD).load(SeqCst);
        let stage = self.stage();
        held > 0 && (stage == Stage::Create || stage.is_closing()) && self.closings() + 1 >= held
    }

    /// The process is to kill itself within a commit of its first thread, the one with this number or one after it, after this share
    /// (in thousandths) of the time that the commit before it took. A kill from outside rarely hits what lasts for microseconds.
    pub(super) fn kill_in_commit(&self, number: u64, share: u32) {
        self.0.word(0, KILL_AFTER).store(u64::from(share), SeqCst);
        self.0.word(0, KILL_IN).store(number, SeqCst);
    }

    /// The commit in which the process is to kill itself; `None` if it is not to.
    pub(super) fn kills_in(&self) -> Option<u64> {
        Some(self.0.word(0, KILL_IN).load(SeqCst)).filter(|number| *number > 0)
    }

    /// A commit of the first thread took this long.
    pub(super) fn took(&self, time: Duration) {
        self.0.word(0, COMMIT_NS).store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), SeqCst);
    }

    /// How long after the begin of a commit the process is to kill itself.
    pub(super) fn kill_after(&self) -> Duration {
        let word = |word: usize| self.0.word(0, word).load(SeqCst);
        Duration::from_nanos(word(COMMIT_NS).saturating_mul(word(KILL_AFTER)) / 1000)
    }

    /// The process kills itself now.
    pub(super) fn tell_kill(&self) {
        self.0.word(0, KILLED).store(1, SeqCst);
    }

    /// Whether it has.
    pub(super) fn has_killed_itself(&self) -> bool {
        self.0.word(0, KILLED).load(SeqCst) != 0
    }

    /// Whether the process makes further commits after a crash.
    pub(super) fn goes_on(&self) -> bool {
        self.0.word(0, GOES_ON).load(SeqCst) != 0
    }

    pub(super) fn stage(&self) -> Stage {
        Stage::from_repr(self.0.word(0, STAGE).load(SeqCst)).unwrap_or_default()
    }

    /// How often a stage was entered.
    pub(super) fn stages(&self) -> u64 {
        self.0.word(0, STAGES).load(SeqCst)
    }

    /// Threads make no further commits.
    pub(super) fn pause(&self) {
        self.0.word(0, PAUSED).store(1, SeqCst);
    }

    /// Threads make commits again.
    pub(super) fn go(&self) {
        self.0.word(0, PAUSED).store(0, SeqCst);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.0.word(0, PAUSED).load(SeqCst) != 0
    }

    /// Whether every commit that was started is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.bounds().iter().all(|bounds| bounds.acked == bounds.started)
    }

    /// A commit is sent to the engine.
    pub(super) fn start(&self, thread: u32, number: u64) {
        self.0.word(1 + thread as usize, STARTED).store(number, SeqCst);
    }

    /// The engine has acknowledged it.
    pub(super) fn acknowledge(&self, thread: u32, number: u64) {
        self.0.word(1 + thread as usize, ACKED).store(number, SeqCst);
    }

    /// The commits of each thread.
    pub(super) fn bounds(&self) -> Vec<Bounds> {
        (1..self.0.lines()).map(|line| self.bounds_in(line)).collect()
    }

    /// The commits of the first thread.
    pub(super) fn first(&self) -> Bounds {
        self.bounds_in(1)
    }

    /// What was acknowledged is read first, so that it is never more than what was started.
    fn bounds_in(&self, line: usize) -> Bounds {
        let word = |word: usize| self.0.word(line, word).load(SeqCst);
        let acked = word(ACKED);
        Bounds { acked, started: word(STARTED) }
    }

    /// The number of the last commit that any thread has started.
    pub(super) fn started(&self) -> u64 {
        self.bounds().iter().map(|bounds| bounds.started).max().unwrap_or(0)
    }

    /// All of it. The stage is read last: a database that is no longer being created may not be created again.
    pub(super) fn snapshot(&self) -> Snapshot {
        let bounds = self.bounds();
        Snapshot { stage: self.stage(), bounds }
    }

    /// Commits acknowledged by all threads.
    pub(super) fn acked(&self) -> u64 {
        self.bounds().iter().map(|bounds| bounds.acked).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_measure::start::thread_in;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_process_that_is_aimed_at_stays_in_its_stage() {
        let board = Board::shared(1).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let process = || {
                let mut stages = [Stage::Run, Stage::Close].iter().cycle();
                let mut next = stages.next();
                while !is_over.load(SeqCst) {
                    if next.is_some_and(|stage| board.try_enter(*stage)) {
                        next = stages.next();
                    }
                }
            };
            let process = thread_in(scope, process).unwrap();
            let mut aimed = 0;
            while aimed < 300 {
                let stage = board.aim();
                let entered = board.stages();
                for _ in 0..200 {
                    std::hint::spin_loop();
                }
                if let Some(stage) = stage {
                    aimed += 1;
                    assert_eq!((board.stage(), board.stages()), (stage, entered), "aim {aimed}");
                }
                board.aim_elsewhere();
                // It goes on.
                while board.stages() == entered {
                    std::thread::yield_now();
                }
            }
            is_over.store(true, SeqCst);
            process.join().unwrap();
        });
    }
}
