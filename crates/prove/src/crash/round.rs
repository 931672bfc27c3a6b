//! One round: a process writes, is crashed at a moment that a seed chooses, and another process reads what is left.

use super::board::{Board, Stage};
use super::evidence::{Case, Keeper};
use super::medium::{Crashed, Medium, await_end};
use super::no_result::{Failure, Stopped};
use super::oracle::{Bounds, Judgement, Rows, Verdict, judge};
use super::script::Script;
use super::verifier::VerifierTask;
use super::worker::{Message, Subject, WorkerTask};
use super::{Cell, Round, is_interrupted};
use crate::machine::MachineError;
use kvdyno_core::engine::environment_of;
use kvdyno_core::generator::Random;
use kvdyno_measure::{End, Event, Fate, Patience, Task, TaskProcess};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Interval between two looks at the counters of a process that will be crashed.
const LOOK: Duration = Duration::from_micros(100);
/// Interval between two looks at a process that reads.
const POLL: Duration = Duration::from_millis(20);
/// A process that commits slowly is crashed after this time.
pub(super) const LONGEST: Duration = Duration::from_millis(400);
/// The stream of random numbers that choose the moment of the crash.
const MOMENT_STREAM: u64 = 1;

/// When a process is crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// This long after it began to create the database.
    Creation(Duration),
    /// This long after so many commits of all threads were acknowledged.
    Commits(u64, Duration),
    /// This long after it began to maintain, close or reopen the database for the n-th time.
    Closing(u64, Duration),
}

/// What the seed of a round decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    moment: Moment,
    /// Commits of each thread between two closes.
    session: u64,
    /// Commits after which dirty pages are written back.
    write_back: Option<u64>,
    /// Crash the recovery too, after this time.
    second: Option<Duration>,
}

impl Plan {
    pub(super) fn draw(random: &mut Random) -> Plan {
        // Every order of magnitude is as likely.
        let mut between = |least: f64, most: f64| least * (most / least).powf(random.unit());
        let commits = between(2.0, 4000.0) as u64;
        let (early, late) = (between(30.0, 30_000.0), between(10.0, 10_000.0));
        let (soon, in_recovery) = (between(1.0, 2000.0), between(30.0, 20_000.0));
        let micros = |count: f64| Duration::from_micros(count as u64);
        let moment = match random.below(8) {
            0 => Moment::Creation(micros(early)),
            1 | 2 => Moment::Closing(1 + random.below(6), micros(late)),
            _ => Moment::Commits(commits, micros(soon)),
        };
        let is_closing = matches!(moment, Moment::Closing(..));
        Plan {
            moment,
            session: if is_closing { 4 + random.below(100) } else { 300 + random.below(3000) },
            write_back: (random.below(10) < 7).then_some(commits / 2),
            second: (random.below(4) == 0).then_some(micros(in_recovery)),
        }
    }
}

/// Crashes one database. What the process reports about the engine is added to the cell. The keeper keeps it if it is wrong.
pub(super) fn round(
    subject: &Subject,
    script: Script,
    medium: &mut dyn Medium,
    stall: Duration,
    (cell, mut keeper): (&mut Cell, Option<&mut Keeper>),
) -> Result<Round, Stopped> {
    let mut random = Random::stream(script.seed, MOMENT_STREAM);
    let plan = Plan::draw(&mut random);
    let folder = medium.prepare()?;
    let board = Board::shared(subject.threads)?;
    let task = WorkerTask {
        subject: subject.clone(),
        folder: folder.clone(),
        script,
        session: plan.session,
        board: board.descriptor()?,
    };
    let mut process = start(&task, subject)?;
    let mut write_back = plan.write_back;
    let mut on_commits = |acked| {
        if write_back.is_some_and(|commits| acked >= commits) {
            write_back = None;
            medium.write_back()?;
        }
        Ok(())
    };
    until_moment((plan.moment, LONGEST), &board, &mut process, stall, cell, &mut on_commits)?;
    let Crashed { bounds, end } = medium.crash(&mut process, &board, &mut random)?;
    if let Some(end) = end {
        return Err(ended_before(&end, &board));
    }
    let stage = board.stage();
    // The next process must not inherit it.
    drop((process, board));
    let may_create = matches!(stage, Stage::Start | Stage::Create);
    let mut mount_ns = medium.recover()?;
    let reader = Reader { subject, script, folder: &folder, may_create, stall };
    if let Some(delay) = plan.second {
        reader.crash(delay, medium, &mut random)?;
        mount_ns = medium.recover()?;
    }
    let copied = keeper.as_ref().map(|keeper| keeper.copy(&folder)).transpose()?;
    let read = reader.read()?;
    let acked = bounds.iter().map(|bounds| bounds.acked).sum();
    let judgement = read.judgement(&script, &bounds);
    let mut kept = None;
    if let (Some(keeper), Some(copied)) = (keeper.as_mut(), copied) {
        let case = Case {
            subject,
            version: cell.version.as_ref(),
            mode: cell.mode,
            file_system: &cell.file_system,
            script,
            bounds: &bounds,
            may_create,
        };
        kept = keeper.keep(copied, &case, &judgement)?;
    }
    Ok(Round {
        seed: script.seed,
        verdict: judgement.verdict,
        detail: judgement.detail,
        stage,
        in_recovery: plan.second.is_some(),
        acked,
        started: bounds.iter().map(|bounds| bounds.started).sum(),
        lost: judgement.lost,
        is_empty: judgement.is_empty,
        mount_ns,
        recovery_ns: read.recovery_ns,
        reopen_ns: read.reopen_ns,
        replayed: None,
        called: None,
        kept,
    })
}

/// Starts a process of a crash test.
pub(super) fn start<T: Task>(task: &T, subject: &Subject) -> Result<TaskProcess<T::Message>, MachineError> {
    let failed = |error| MachineError::StartFor { engine: subject.engine.clone(), error };
    let executable = std::env::current_exe().map_err(failed)?;
    let started = task.start(&executable, |command| {
        command.envs(environment_of(&subject.engine)).stderr(Stdio::null());
    });
    started.map_err(failed)
}

fn ended_before(end: &End, board: &Board) -> Stopped {
    Failure::Ended { fate: end.fate(), stage: board.stage() }.into()
}

/// Follows the process until it is to be crashed: at the moment, or after committing for the longest time. `on_commits` is called
/// with the number of acknowledged commits.
pub(super) fn until_moment(
    (moment, longest): (Moment, Duration),
    board: &Board,
    process: &mut TaskProcess<Message>,
    stall: Duration,
    cell: &mut Cell,
    on_commits: &mut dyn FnMut(u64) -> Result<(), MachineError>,
) -> Result<(), Stopped> {
    // Since when commits are made, and since when the condition of the moment is met.
    let (mut running, mut due) = (None, None);
    let mut closings = 0;
    let (mut last, mut patience) = ((0, 0), Patience::new(stall));
    loop {
        let event = process.next(LOOK);
        // It may be saying why it fails; an engine may print without end.
        let is_quiet = !matches!(&event, Event::Told(_));
        match event {
            Event::Told(Message::Opened { version, level, in_memory, .. }) => {
                cell.version = Some(version).filter(|version| !version.is_empty());
                cell.level = level;
                if in_memory {
                    return Err(Stopped::Unsuitable("it keeps its data in memory only".into()));
                }
            }
            Event::Told(Message::Unsuitable(reason)) => return Err(Stopped::Unsuitable(reason)),
            Event::Told(Message::Failed(text)) => {
                return Err(Failure::Told(text).into());
            }
            Event::Told(_) | Event::Quiet => {}
            Event::Ended(end) => {
                return Err(ended_before(&end, board));
            }
        }
        if is_interrupted() {
            return Err(Stopped::Interrupted);
        }
        let (now, acked, stages) = (Instant::now(), board.acked(), board.stages());
        if (acked, stages) != last {
            last = (acked, stages);
            patience.renew();
        } else if patience.is_over() {
            return Err(Failure::Stalled { seconds: stall.as_secs(), stage: board.stage() }.into());
        }
        let stage = board.stage();
        if stage == Stage::Run && running.is_none() {
            running = Some(now);
        }
        if !matches!(stage, Stage::Start | Stage::Create | Stage::Run) {
            // Start, create and run come before the first; stages that were too short to be seen count, too.
            closings = stages.saturating_sub(2);
        }
        if running.is_some() {
            on_commits(acked)?;
        }
        let is_long = running.is_some_and(|since: Instant| since.elapsed() > longest);
        let (is_met, delay) = match moment {
            Moment::Creation(delay) => (stages > 0, delay),
            Moment::Commits(commits, delay) => (acked >= commits || is_long, delay),
            Moment::Closing(count, delay) => (closings >= count || is_long, delay),
        };
        if is_met && is_quiet && now.duration_since(*due.get_or_insert(now)) >= delay {
            return Ok(());
        }
    }
}

/// What a process has read.
#[derive(Default)]
pub(super) struct Read {
    rows: Option<Rows>,
    failure: Option<(Verdict, String)>,
    pub recovery_ns: Option<u64>,
    pub reopen_ns: Option<u64>,
}

/// Starts the processes that read.
pub(super) struct Reader<'r> {
    pub subject: &'r Subject,
    pub script: Script,
    pub folder: &'r Path,
    pub may_create: bool,
    pub stall: Duration,
}

impl Reader<'_> {
    pub(super) fn start(&self, only_opens: bool) -> Result<(TaskProcess<Message>, Board), MachineError> {
        let board = Board::shared(self.subject.threads)?;
        let task = VerifierTask {
            subject: self.subject.clone(),
            folder: self.folder.to_path_buf(),
            script: self.script,
            may_create: self.may_create,
            only_opens,
            board: board.descriptor()?,
        };
        Ok((start(&task, self.subject)?, board))
    }

    /// Crashes a process that opens the database.
    fn crash(&self, delay: Duration, medium: &mut dyn Medium, random: &mut Random) -> Result<(), Stopped> {
        let (mut process, board) = self.start(true)?;
        let mut patience = Patience::new(self.stall);
        let mut opening = None;
        loop {
            // It may crash by itself; the next process finds that out.
            if let Event::Ended(_) = process.next(LOOK) {
                return Ok(());
            }
            if is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            if board.stage() == Stage::Recover {
                opening.get_or_insert(Instant::now());
            }
            if opening.is_some_and(|since| since.elapsed() >= delay) || patience.is_over() {
                medium.crash(&mut process, &board, random)?;
                return Ok(());
            }
        }
    }

    /// Reads the database.
    pub(super) fn read(&self) -> Result<Read, Stopped> {
        let (mut process, _board) = self.start(false)?;
        let mut read = Read::default();
        let mut patience = Patience::new(self.stall);
        let end = loop {
            match process.next(POLL) {
                Event::Told(message) => {
                    patience.renew();
                    read.hear(message);
                }
                Event::Quiet => {}
                Event::Ended(end) => break end,
            }
            if is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            if patience.is_over() {
                read.hang(self.stall);
                process.kill();
                await_end(&mut process)?;
                return Ok(read);
            }
        };
        read.end(&end.fate());
        Ok(read)
    }
}

impl Read {
    /// What the process tells.
    pub(super) fn hear(&mut self, message: Message) {
        match message {
            Message::Opened { ns, .. } => self.recovery_ns = Some(ns),
            Message::Read(rows) => self.rows = Some(rows),
            Message::Reopened(ns) => self.reopen_ns = Some(ns),
            Message::Failed(text) => self.failure = Some((Verdict::OpenFailed, text)),
            Message::Ready | Message::Unsuitable(_) => {}
        }
    }

    /// It made no progress for so long.
    pub(super) fn hang(&mut self, stall: Duration) {
        let text = format!("no progress for {} s {}", stall.as_secs(), self.doing());
        self.failure = Some((Verdict::OpenHung, text));
    }

    /// It has ended.
    pub(super) fn end(&mut self, fate: &Fate) {
        let is_success = *fate == Fate::Exited(0);
        if self.failure.is_none() && !(is_success && self.reopen_ns.is_some()) {
            let text = format!("{} {}", fate.text("its process"), self.doing());
            self.failure = Some((Verdict::OpenFailed, text));
        }
    }

    /// Compares what was read with the commits.
    pub(super) fn judgement(&self, script: &Script, bounds: &[Bounds]) -> Judgement {
        let acked = bounds.iter().map(|bounds| bounds.acked).sum();
        let judgement = match &self.rows {
            Some(rows) => judge(script, bounds, rows),
            None => Judgement { verdict: Verdict::Ok, detail: None, lost: 0, is_empty: acked > 0 },
        };
        match &self.failure {
            Some((verdict, text)) => judgement.failed(*verdict, text.clone(), acked),
            None => judgement,
        }
    }

    /// What the process did last.
    fn doing(&self) -> &'static str {
        match (&self.recovery_ns, &self.rows, &self.reopen_ns) {
            (None, ..) => "while it opened the database",
            (_, None, _) => "while it read the database",
            (_, _, None) => "while it wrote to the database and opened it again",
            _ => "while it ended",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_moments_are_drawn_and_a_seed_draws_the_same() {
        let draw = |seed| Plan::draw(&mut Random::stream(seed, MOMENT_STREAM));
        let plans: Vec<Plan> = (0..400).map(draw).collect();
        assert_eq!(plans, (0..400).map(draw).collect::<Vec<_>>());
        let count = |is: fn(&Plan) -> bool| plans.iter().filter(|plan| is(plan)).count();
        assert!(count(|plan| matches!(plan.moment, Moment::Creation(_))) > 20);
        assert!(count(|plan| matches!(plan.moment, Moment::Closing(..))) > 50);
        assert!(count(|plan| matches!(plan.moment, Moment::Commits(1000.., _))) > 20);
        assert!(count(|plan| matches!(plan.moment, Moment::Commits(..10, _))) > 20);
        assert!(count(|plan| plan.second.is_some()) > 50);
        assert!(count(|plan| plan.write_back.is_none()) > 50);
    }
}
