//! The process that forks other ones, kills them at their calls, and has what is left read by a further one. It loads the plug-in
//! once and opens no database, so that a round is a matter of milliseconds.

use super::life::Life;
use super::plan::{boundaries, end, points, shuffle, spread};
use super::{At, AtCall, Called, Seen, Told};
use crate::crash::board::{Board, Stage};
use crate::crash::course::Course;
use crate::crash::evidence::{Case, Keeper};
use crate::crash::forks::{Forks, progress};
use crate::crash::medium::{shortage, unless_at_fault};
use crate::crash::no_result::{Failure, Stopped};
use crate::crash::oracle::{Bounds, Judgement, Verdict, acknowledged, started};
use crate::crash::round::{Read, last_started};
use crate::crash::script::Script;
use crate::crash::worker::{MEMORY_BYTES, Message, Subject, WorkerTask};
use crate::crash::{Mode, Round};
use crate::machine::MachineError;
use kvdyno_core::generator::Random;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::processes::{cap_own_memory, messages_of};
use kvdyno_measure::sync_calls::{Change, Point, Ran, Watch, end_here, forked};
use kvdyno_measure::{Fate, Task};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The stream of random numbers that choose second kills.
const CALLS_STREAM: u64 = 7;
/// Second kills if no number of rounds is given.
const SECONDS: u32 = 200;
/// Second kills after one first kill, before all others had as many.
const OF_ONE: usize = 3;
/// The point that no process reaches: it is killed after its last call.
const NEVER: Point = Point { call: u64::MAX, pages: 0 };

/// What the process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallsTask {
    /// The database.
    pub(super) subject: Subject,
    /// The commits.
    pub(super) script: Script,
    /// The folder for databases, absolute and without links.
    pub(super) folder: PathBuf,
    /// The most rounds; `None`: all kills of one process, and some of two.
    pub(super) most: Option<u32>,
    /// Only this round is run.
    pub(super) only: Option<At>,
    /// The folder for databases that are wrong.
    pub(super) keep: Option<PathBuf>,
    /// The name of the file system.
    pub(super) file_system: String,
    /// How long a process may take for a step without progress.
    pub(super) stall: Duration,
}

impl Task for CallsTask {
    const KIND: Kind = Kind::CrashCalls;
    type Message = Told;
    type Prepared = ();

    fn prepare(&self) {
        cap_own_memory(MEMORY_BYTES);
    }

    fn run(self, (): ()) -> Result<u8, String> {
        if let Err(stopped) = Bench::of(&self).and_then(|mut bench| bench.run()) {
            CallsTask::tell(&Told::Stopped {
                reason: stopped.to_string(),
                has_failed: matches!(stopped, Stopped::Failed(_)),
                is_unsuitable: matches!(stopped, Stopped::Unsuitable(_)),
            });
        }
        Ok(0)
    }
}

/// Forks, kills and judges.
struct Bench<'t> {
    task: &'t CallsTask,
    forks: Forks,
    keeper: Option<Keeper>,
    version: Option<String>,
    /// The number of the last database.
    databases: u64,
    /// Whether the calls of a process were watched.
    has_watched: bool,
    /// The calls of a process that is not killed.
    calls: Vec<Change>,
    seen: Seen,
}

/// What was done.
struct Done {
    round: Round,
    /// The calls of the second process.
    changes: Vec<Change>,
    /// What the process has found that reads the database at the end, without what the second one has found or how it failed: what
    /// is found again in a copy.
    shown: Verdict,
}

/// What must be in a database.
struct Left {
    script: Script,
    bounds: Vec<Bounds>,
    may_create: bool,
}

/// What a process found that went on after a first kill.
struct GoneOn {
    read: Read,
    /// What that shows; `None` if it was killed or has failed before.
    found: Option<Judgement>,
    failure: Option<Failure>,
}

impl GoneOn {
    /// The judgement of both kills.
    fn and_then(self, second: Judgement, left: &Left) -> Judgement {
        let lost_before = self.found.as_ref().map_or(0, |found| found.lost);
        let both = match self.found {
            Some(found) => found.then(second),
            None => second,
        };
        match self.failure {
            Some(failure) => {
                let text = format!("the process after the first crash: {failure}");
                let acked = lost_before + acknowledged(&left.script, &left.bounds);
                both.failed(failure.verdict(), text, acked)
            }
            None => both,
        }
    }
}

/// Tells why a process cannot do what it should, if so, and ends it.
fn finish(done: Result<(), impl Display>) -> ! {
    if let Err(error) = done {
        WorkerTask::tell(&Message::Failed(error.to_string()));
    }
    end_here()
}

impl<'t> Bench<'t> {
    fn of(task: &'t CallsTask) -> Result<Bench<'t>, Stopped> {
        let keeper = task.keep.as_ref().map(|folder| {
            Keeper::in_folder(
                folder,
                &task.subject.engine,
                task.subject.level,
                Mode::Calls,
                &task.file_system,
            )
        });
        let seen = Seen { calls: 0, boundaries: 0, moved: 0, unseen: Vec::new() };
        let (forks, calls) = (Forks::of(&task.subject, task.stall)?, Vec::new());
        Ok(Bench { task, forks, keeper, version: None, databases: 0, has_watched: false, calls, seen })
    }

    fn run(&mut self) -> Result<(), Stopped> {
        self.count()?;
        if let Some(at) = self.task.only {
            // How many calls the second process has.
            let calls = match at.second {
                Some(_) => {
                    let done = self.round(At { second: Some(NEVER), ..at }, None, false)?;
                    Some(done.changes.len() as u64)
                }
                None => None,
            };
            self.tell_round(at, calls)?;
            return self.tell_seen();
        }
        let all = points(&self.calls);
        let firsts = spread(&all, self.task.most.unwrap_or(u32::MAX));
        let seconds = self.task.most.map_or(SECONDS, |most| most.saturating_sub(firsts.len() as u32));
        let mut sound = Vec::new();
        for first in firsts {
            let round = self.tell_round(At { first, second: None }, None)?.round;
            // What is wrong after one kill says nothing about a second one.
            if round.verdict == Verdict::Ok {
                sound.push(first);
            }
        }
        self.run_seconds(sound, seconds)?;
        self.tell_seen()
    }

    /// Kills second processes: a few after each first kill, then all others, as long as there are rounds.
    fn run_seconds(&mut self, mut firsts: Vec<Point>, mut rounds: u32) -> Result<(), Stopped> {
        let mut random = Random::stream(self.task.script.seed, CALLS_STREAM);
        shuffle(&mut firsts, &mut random);
        let mut rest = Vec::new();
        for first in firsts {
            if rounds == 0 {
                return Ok(());
            }
            rounds -= 1;
            let changes = self.tell_round(At { first, second: Some(NEVER) }, None)?.changes;
            let calls = changes.len() as u64;
            // Before its first call, nothing has changed since the first kill.
            let untested = |point: &Point| *point != Point { call: 1, pages: 0 } && *point != end(&changes);
            let mut seconds: Vec<Point> = points(&changes).into_iter().filter(untested).collect();
            shuffle(&mut seconds, &mut random);
            let now = seconds.split_off(seconds.len().saturating_sub(OF_ONE));
            rounds = self.run_after(first, now, calls, rounds)?;
            rest.push((first, seconds, calls));
        }
        for (first, seconds, calls) in rest {
            rounds = self.run_after(first, seconds, calls, rounds)?;
        }
        Ok(())
    }

    /// Kills second processes after one first kill; the rounds that are left.
    fn run_after(
        &mut self,
        first: Point,
        seconds: Vec<Point>,
        calls: u64,
        rounds: u32,
    ) -> Result<u32, Stopped> {
        let count = seconds.len().min(rounds as usize);
        for second in seconds.into_iter().take(count) {
            self.tell_round(At { first, second: Some(second) }, Some(calls))?;
        }
        Ok(rounds - count as u32)
    }

    /// Runs a process that is not killed, to know its calls.
    fn count(&mut self) -> Result<(), Stopped> {
        let folder = self.fresh()?;
        let board = Board::shared(1)?;
        let ran = self.first(&folder, &board, None).map_err(|stopped| match stopped {
            Stopped::Failed(failure) => {
                shortage(&folder, &failure.to_string()).map_or(failure.into(), Stopped::from)
            }
            stopped => stopped,
        })?;
        self.has_watched = true;
        remove(&folder)?;
        for message in messages_of::<Message>(&ran.printed).0 {
            match message {
                Message::Opened { in_memory: true, .. } => {
                    return Err(Stopped::Unsuitable("it keeps its data in memory only".into()));
                }
                Message::Opened { version, level, .. } => {
                    self.version = Some(version.clone()).filter(|version| !version.is_empty());
                    CallsTask::tell(&Told::Opened(version, level));
                }
                Message::Unsuitable(reason) => return Err(Stopped::Unsuitable(reason)),
                _ => {}
            }
        }
        self.seen.calls = ran.changes.len() as u64;
        let inside = ran.changes.iter().map(|change| boundaries(change.boundaries).len() as u64);
        self.seen.boundaries = inside.sum();
        self.seen.unseen = ran.unseen.iter().map(ToString::to_string).collect();
        self.calls = ran.changes;
        self.tell_seen()
    }

    fn tell_seen(&self) -> Result<(), Stopped> {
        CallsTask::tell(&Told::Seen(self.seen.clone()));
        Ok(())
    }

    /// Runs a round and tells it. A wrong database is kept by a second run of it, so that no other one is copied.
    fn tell_round(&mut self, at: At, calls: Option<u64>) -> Result<Done, Stopped> {
        let mut done = self.round(at, calls, false)?;
        let is_wanted = |keeper: &Keeper| done.shown != Verdict::Ok && keeper.lacks(done.shown);
        if self.keeper.as_ref().is_some_and(is_wanted) {
            let again = self.round(at, calls, true)?;
            if again.round.kept.is_some() {
                done = again;
            }
        }
        let called = done.round.called.as_ref();
        let known = self.calls.get(called.map_or(0, |called| called.first.call as usize - 1));
        let what = called.map_or("", |called| &called.first.what);
        self.seen.moved += u32::from(known.map_or("", |change| &change.text) != what);
        CallsTask::tell(&Told::Round(Box::new(done.round.clone())));
        Ok(done)
    }

    /// Kills one process, or two, and judges what is left. `calls` are those of a second process that is not killed, if they are known.
    fn round(&mut self, at: At, calls: Option<u64>, keeps: bool) -> Result<Done, Stopped> {
        let folder = self.fresh()?;
        self.keeper.iter_mut().for_each(Keeper::begin);
        let (mut changes, mut shown) = (Vec::new(), Verdict::Ok);
        let outcome = self.round_in(&folder, at, calls, keeps).map(|done| {
            (changes, shown) = (done.changes, done.shown);
            done.round
        });
        let outcome = unless_at_fault(outcome, |said| shortage(&folder, said), self.keeper.as_mut());
        let removed = remove(&folder);
        let round = outcome?;
        removed?;
        Ok(Done { round, changes, shown })
    }

    fn round_in(&mut self, folder: &Path, at: At, calls: Option<u64>, keeps: bool) -> Result<Done, Stopped> {
        let board = Board::shared(1)?;
        let ran = self.first(folder, &board, Some(at.first))?;
        let stage = board.stage();
        let first = at_call(&ran, Some(self.calls.len() as u64));
        let mut left =
            Left { script: self.task.script, bounds: board.bounds(), may_create: stage.is_creating() };
        let (mut second, mut gone_on, mut changes) = (None, None, Vec::new());
        if let Some(point) = at.second {
            let (ran, after) = self.go_on(folder, &mut left, point)?;
            second = Some(at_call(&ran, calls));
            gone_on = Some(after);
            changes = ran.changes;
        }
        let base = gone_on.as_ref().and_then(|after| after.found.as_ref());
        // These are no longer among what must be there.
        let lost_before = base.filter(|found| !found.verdict.is_corrupt()).map_or(0, |found| found.lost);
        let (mut kept, mut shown) = (None, Verdict::Ok);
        let (read, judgement) = match gone_on {
            // What it made of that is of no interest.
            Some(GoneOn { found: Some(found), read, .. }) if found.verdict.is_corrupt() => (read, found),
            gone_on => {
                let keeper = self.keeper.as_ref().filter(|_| keeps);
                let copied = keeper.map(|keeper| keeper.copy(folder)).transpose()?;
                let read = self.forks.read(self.task.script, folder, left.may_create)?;
                let judgement = read.judgement(&left.script, &left.bounds);
                shown = judgement.verdict;
                if let (Some(keeper), Some(copied)) = (self.keeper.as_mut(), copied) {
                    let case = Case {
                        subject: &self.task.subject,
                        version: self.version.as_ref(),
                        mode: Mode::Calls,
                        file_system: &self.task.file_system,
                        script: left.script,
                        bounds: &left.bounds,
                        may_create: left.may_create,
                    };
                    kept = keeper.keep(copied, &case, &judgement)?;
                }
                let judgement = match gone_on {
                    Some(after) => after.and_then(judgement, &left),
                    None => judgement,
                };
                (read, judgement)
            }
        };
        let round = Round {
            seed: left.script.seed,
            verdict: judgement.verdict,
            detail: judgement.detail,
            stage,
            in_recovery: second.is_some(),
            acked: lost_before + acknowledged(&left.script, &left.bounds),
            started: lost_before + started(&left.script, &left.bounds),
            lost: judgement.lost,
            is_empty: judgement.is_empty,
            mount_ns: None,
            recovery_ns: read.recovery_ns,
            reopen_ns: read.reopen_ns,
            replayed: None,
            called: Some(Called { first, second }),
            kept,
            course: Course::default(),
        };
        Ok(Done { round, changes, shown })
    }

    /// Opens a database after a first kill, and kills the process that does. What must be there after that is put into `left`: if it
    /// has read the rows, these and what it has committed.
    fn go_on(&self, folder: &Path, left: &mut Left, until: Point) -> Result<(Ran, GoneOn), Stopped> {
        let board = Board::going_on(1, last_started(&left.bounds))?;
        let ran = self.second(folder, &board, left.may_create, until)?;
        let failure = failure_of(&ran, &board, self.task.stall);
        let mut read = Read::default();
        let told = messages_of::<Message>(&ran.printed).0.into_iter();
        // How it failed is known; what it has read counts as well.
        told.filter(|message| matches!(message, Message::Read(_))).for_each(|message| read.hear(message));
        let found = read.rows.is_some().then(|| read.judgement(&left.script, &left.bounds));
        if let Some(script) = read.base(&left.script, &left.bounds) {
            *left = Left { script, bounds: board.bounds(), may_create: false };
        }
        left.may_create &= matches!(board.stage(), Stage::Start | Stage::Recover);
        Ok((ran, GoneOn { read, found, failure }))
    }

    /// A process that creates a database. One that fails before it is killed ends the rounds.
    fn first(&self, folder: &Path, board: &Board, until: Option<Point>) -> Result<Ran, Stopped> {
        let life = self.life(folder, board);
        let ran = self.watched(&life, until, || {
            finish(self.forks.with_engine(|engine| life.begin(engine, until.is_none())))
        })?;
        failure_of(&ran, board, self.task.stall).map_or(Ok(ran), |failure| Err(failure.into()))
    }

    /// A process that opens it after a crash and goes on.
    fn second(&self, folder: &Path, board: &Board, may_create: bool, until: Point) -> Result<Ran, Stopped> {
        let life = self.life(folder, board);
        let work = || finish(self.forks.with_engine(|engine| life.go_on(engine, may_create)));
        Ok(self.watched(&life, Some(until), work)?)
    }

    fn life<'l>(&'l self, folder: &'l Path, board: &'l Board) -> Life<'l> {
        Life { subject: &self.task.subject, script: self.task.script, folder, board }
    }

    fn watched(
        &self,
        life: &Life<'_>,
        until: Option<Point>,
        work: impl FnOnce(),
    ) -> Result<Ran, MachineError> {
        let watch = Watch { folder: life.folder.to_path_buf(), until };
        // The first process shows whether calls can be watched here.
        let wrong = if self.has_watched { MachineError::Unfollowed } else { MachineError::Unobserved };
        forked(Some(&watch), self.task.stall, &|| progress(life.board), work).map_err(wrong)
    }

    /// An empty folder for the next database.
    fn fresh(&mut self) -> Result<PathBuf, MachineError> {
        self.databases += 1;
        let folder = self.task.folder.join(format!("database-{}", self.databases));
        fs::create_dir(&folder).map_err(MachineError::file("create", &folder))?;
        Ok(folder)
    }
}

fn remove(folder: &Path) -> Result<(), MachineError> {
    fs::remove_dir_all(folder).map_err(MachineError::file("remove", folder))
}

/// Where a process was killed; `calls` are those of one that is not, if they are known.
fn at_call(ran: &Ran, calls: Option<u64>) -> AtCall {
    let own = ran.changes.len() as u64;
    match (ran.killed, ran.changes.last()) {
        (Some(Point { call, pages }), Some(change)) => {
            AtCall { call, pages, calls: calls.unwrap_or(own), what: change.text.clone() }
        }
        _ => AtCall { call: own + 1, pages: 0, calls: own, what: String::new() },
    }
}

/// How a process failed before it was killed, if it did.
fn failure_of(ran: &Ran, board: &Board, stall: Duration) -> Option<Failure> {
    if ran.killed.is_some() {
        return None;
    }
    let failed = messages_of(&ran.printed).0.into_iter().find_map(|message| match message {
        Message::Failed(text) => Some(text),
        _ => None,
    });
    let fate = Fate::of(Some(ran.status));
    match failed {
        Some(text) => Some(Failure::Told(text)),
        None if ran.is_stalled => Some(Failure::Stalled { seconds: stall.as_secs(), stage: board.stage() }),
        None if fate != Fate::Died("SIGKILL".into()) => Some(Failure::Ended { fate, stage: board.stage() }),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_measure::sync_calls::Unseen;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_unseen_is_put_into_words() {
        let unseen = BTreeSet::from([Unseen::Map("lock.mdb".into()), Unseen::IoUring]);
        let texts: Vec<String> = unseen.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["writes through a map of lock.mdb", "single writes through io_uring"]);
    }
}
