//! One round: a process writes, is crashed at a moment that a seed chooses, and another process reads what is left. In some rounds a
//! process goes on before that, and is crashed, too.

use super::board::{Board, Stage};
use super::course::{Again, Course};
use super::evidence::{Case, Copied, Keeper};
use super::medium::{Crashed, Medium, await_end};
use super::no_result::{Failure, Stopped};
use super::oracle::{Bounds, Judgement, Rows, Verdict, acknowledged, judge, kept, started};
pub(super) use super::plan::Moment;
use super::plan::{More, NEVER, Pace, Plan, Size};
use super::script::Script;
use super::verifier::VerifierTask;
use super::worker::{Message, Subject, WorkerTask};
use super::{Cell, Round, is_interrupted};
use crate::machine::MachineError;
use kvdyno_core::engine::environment_of;
use kvdyno_core::generator::Random;
use kvdyno_measure::{End, Event, Fate, Patience, Task, TaskProcess};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Interval between two looks at the counters of a process that will be crashed.
const LOOK: Duration = Duration::from_micros(100);
/// Interval between two looks at a process that reads.
pub(super) const POLL: Duration = Duration::from_millis(20);
/// A process that makes hardly any progress is crashed after committing for this long, before its moment.
const LONGEST: Duration = Duration::from_secs(10);
/// Commits that show how fast an engine is, and how long they may take.
const PACE_COMMITS: u64 = 256;
const PACE_TIME: Duration = Duration::from_millis(500);

/// What the rounds of a cell have in common.
pub(super) struct Rounds<'r> {
    subject: &'r Subject,
    /// Options that are set in large rounds.
    buffers: Vec<(String, String)>,
    stall: Duration,
    /// How fast the engine is on the disk and in memory; of one place the first.
    paces: [Option<Pace>; 2],
}

/// What must be in a database.
struct Left {
    script: Script,
    bounds: Vec<Bounds>,
}

/// What a process found and left that went on after a crash.
struct WentOn {
    /// What it read before.
    read: Read,
    /// What that shows.
    found: Judgement,
    /// The same, and how it failed after it had read.
    judgement: Judgement,
    /// What must be there after it was crashed; `None` if it could not go on.
    second: Option<Second>,
}

/// The second crash.
struct Second {
    left: Left,
    again: Again,
    is_by_time: bool,
}

impl<'r> Rounds<'r> {
    /// Rounds with this database; `buffers` are set in large ones.
    pub(super) fn of(subject: &'r Subject, buffers: Vec<(String, String)>, stall: Duration) -> Rounds<'r> {
        Rounds { subject, buffers, stall, paces: [None; 2] }
    }

    /// How fast the engine is in a place, measured before its first round there.
    fn pace(
        &mut self,
        place: usize,
        script: Script,
        medium: &mut dyn Medium,
        cell: &mut Cell,
    ) -> Result<Pace, Stopped> {
        if let Some(pace) = self.paces[place] {
            return Ok(pace);
        }
        let folder = medium.prepare()?;
        let board = Board::shared(self.subject.threads)?;
        let task = WorkerTask {
            subject: self.subject.clone(),
            folder,
            script,
            session: NEVER,
            board: board.descriptor()?,
        };
        let mut process = start(&task, self.subject)?;
        let due = Due { moment: Moment::Commits(PACE_COMMITS, Duration::ZERO), longest: PACE_TIME };
        let reached = until_moment(due, &board, &mut process, self.stall, cell, &mut |_| Ok(()))?;
        let commits = board.acked().clamp(1, u64::from(u32::MAX)) as u32;
        process.kill();
        await_end(&mut process)?;
        medium.discard()?;
        let pace =
            Pace { creation: reached.opened.unwrap_or_default(), commit: reached.committing / commits };
        self.paces[place] = Some(pace);
        Ok(pace)
    }
}

/// Crashes one database. What the process reports about the engine is added to the cell. The keeper keeps it if it is wrong.
pub(super) fn round(
    rounds: &mut Rounds<'_>,
    script: Script,
    medium: &mut dyn Medium,
    cell: &mut Cell,
    mut keeper: Option<&mut Keeper>,
) -> Result<Round, Stopped> {
    let size = Size::draw(script.seed, cell.mode);
    // On a disk, a large round would take long, and most of a commit is a sync.
    let in_memory = size.in_memory || size.is_large || size.in_commit.is_some();
    let place = medium.choose(in_memory);
    let pace = rounds.pace(usize::from(place.is_some() && in_memory), script, medium, cell)?;
    let (plan, mut random) = Plan::draw(script.seed, size.is_large, pace);
    let script = size.script(script);
    let options = if size.is_large { rounds.buffers.clone() } else { Vec::new() };
    let mut subject = rounds.subject.clone();
    subject.options.extend(options.clone());
    if size.has_one_thread {
        subject.threads = 1;
    }
    let plan = plan.within(size.in_commit, subject.threads);
    let threads = Some(subject.threads).filter(|threads| *threads != cell.threads);
    let (subject, stall) = (&subject, rounds.stall);
    let mut course = Course { place, keys: Some(script.keys), threads, options, ..Course::default() };
    let folder = medium.prepare()?;
    let board = Board::shared(subject.threads)?;
    hold(plan.moment, &board);
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
    let reached = until_moment(Due::at(plan.moment), &board, &mut process, stall, cell, &mut on_commits)?;
    let Crashed { bounds, end } = medium.crash(&mut process, &board, &mut random)?;
    if let Some(end) = end {
        return Err(ended_before(&end, &board).into());
    }
    let stage = board.stage();
    course.is_by_time = reached.is_by_time;
    course.is_in_commit = matches!(plan.moment, Moment::InCommit(..)) && !reached.is_by_time;
    // The next process must not inherit it.
    drop((process, board));
    // Also if the engine said that it had created it: at a level that does not promise to survive this crash, some files may be there.
    let may_create = stage.is_creating();
    let mut mount_ns = medium.recover()?;
    let reader = Reader { subject, script, folder: &folder, may_create, stall };
    if let Some(delay) = plan.second {
        reader.crash(delay, medium, &mut random)?;
        mount_ns = medium.recover()?;
    }
    let mut left = Left { script, bounds };
    let (mut first, mut last, mut place) = (None, None, None);
    // Commits that the first crash of two has undone; they were acknowledged, too.
    let mut lost_before = 0;
    if let Some(more) = plan.more.filter(|_| !may_create) {
        let copied = copied(keeper.as_deref(), &folder)?;
        let WentOn { read, found, judgement, second } =
            reader.go_on(&more, &left.bounds, medium, &mut random, cell)?;
        let case = case(cell, &course, &reader, &left);
        // Who reads it again does not go on.
        place = keep(keeper.as_deref_mut(), copied, &case, &found)?;
        match second {
            Some(second) => {
                mount_ns = medium.recover()?;
                lost_before = judgement.lost;
                left = second.left;
                course.again = Some(second.again);
                course.is_by_time |= second.is_by_time;
                first = Some(judgement);
            }
            None => last = Some((read, judgement)),
        }
    }
    let (read, judgement) = match last {
        Some(last) => last,
        None => {
            let reader = Reader { script: left.script, ..reader };
            let copied = copied(keeper.as_deref(), &folder)?;
            let read = reader.read()?;
            let judgement = read.judgement(&left.script, &left.bounds);
            let case = case(cell, &course, &reader, &left);
            place = keep(keeper, copied, &case, &judgement)?.or(place);
            (
                read,
                match first {
                    Some(first) => first.then(judgement),
                    None => judgement,
                },
            )
        }
    };
    course.rows = read.rows.as_ref().map(Rows::count);
    Ok(Round {
        seed: script.seed,
        verdict: judgement.verdict,
        detail: judgement.detail,
        stage,
        in_recovery: plan.second.is_some(),
        acked: lost_before + acknowledged(&left.script, &left.bounds),
        started: lost_before + started(&left.script, &left.bounds),
        lost: judgement.lost,
        is_empty: judgement.is_empty,
        mount_ns,
        recovery_ns: read.recovery_ns,
        reopen_ns: read.reopen_ns,
        replayed: None,
        called: None,
        kept: place,
        course,
    })
}

/// A copy of a database, if it may have to be kept.
fn copied(keeper: Option<&Keeper>, folder: &Path) -> Result<Option<Copied>, MachineError> {
    keeper.map(|keeper| keeper.copy(folder)).transpose()
}

/// What is known about a database.
fn case<'c>(cell: &'c Cell, course: &'c Course, reader: &Reader<'c>, left: &'c Left) -> Case<'c> {
    Case {
        subject: reader.subject,
        version: cell.version.as_ref(),
        mode: cell.mode,
        file_system: course.place.as_ref().unwrap_or(&cell.file_system),
        script: left.script,
        bounds: &left.bounds,
        may_create: reader.may_create,
    }
}

/// Keeps a copied database if something is wrong with it; its folder.
fn keep(
    keeper: Option<&mut Keeper>,
    copied: Option<Copied>,
    case: &Case<'_>,
    judgement: &Judgement,
) -> Result<Option<PathBuf>, MachineError> {
    match (keeper, copied) {
        (Some(keeper), Some(copied)) => keeper.keep(copied, case, judgement),
        _ => Ok(None),
    }
}

/// The process that is started next is to stay in the stage in which it is to be crashed, or to kill itself.
fn hold(moment: Moment, board: &Board) {
    match moment {
        Moment::Creation(_) => board.hold_at(0),
        Moment::Closing(count, _) => board.hold_at(count),
        Moment::InCommit(number, share) => board.kill_in_commit(number, share),
        Moment::Commits(..) => {}
    }
}

/// Starts a process of a crash test.
pub(super) fn start<T: Task>(task: &T, subject: &Subject) -> Result<TaskProcess<T::Message>, MachineError> {
    launched(subject, |executable, with| task.start(executable, with))
}

/// What `start` starts by the executable of this program and what else its command needs.
pub(super) fn launched<P>(
    subject: &Subject,
    start: impl FnOnce(&Path, &dyn Fn(&mut Command)) -> io::Result<P>,
) -> Result<P, MachineError> {
    let failed = |error| MachineError::StartFor { engine: subject.engine.clone(), error };
    let executable = std::env::current_exe().map_err(failed)?;
    let with = |command: &mut Command| {
        command.envs(environment_of(&subject.engine)).stderr(Stdio::null());
    };
    start(&executable, &with).map_err(failed)
}

/// The number of the last commit that any thread has started.
pub(super) fn last_started(bounds: &[Bounds]) -> u64 {
    bounds.iter().map(|bounds| bounds.started).max().unwrap_or(0)
}

fn ended_before(end: &End, board: &Board) -> Failure {
    Failure::Ended { fate: end.fate(), stage: board.stage() }
}

/// How a process was when it was to be crashed.
pub(super) struct Reached {
    /// Whether time was over before its moment.
    pub is_by_time: bool,
    /// How long it took to open its database; `None` if it has not told that.
    pub opened: Option<Duration>,
    /// The time since it began to commit.
    pub committing: Duration,
}

/// When a process is to be crashed.
#[derive(Clone, Copy)]
pub(super) struct Due {
    /// At this moment.
    moment: Moment,
    /// At the latest after committing for this long.
    longest: Duration,
}

impl Due {
    /// At a moment, or after the longest time of a round.
    pub(super) fn at(moment: Moment) -> Due {
        Due { moment, longest: LONGEST }
    }
}

/// Follows the process until it is due to be crashed. `on_commits` is called
/// with the number of acknowledged commits.
pub(super) fn until_moment(
    due: Due,
    board: &Board,
    process: &mut TaskProcess<Message>,
    stall: Duration,
    cell: &mut Cell,
    on_commits: &mut dyn FnMut(u64) -> Result<(), MachineError>,
) -> Result<Reached, Stopped> {
    // Since when commits are made, and since when the condition of the moment is met.
    let Due { moment, longest } = due;
    let (mut running, mut due) = (None, None);
    let mut opened = None;
    let (mut last, mut patience) = ((0, 0), Patience::new(stall));
    loop {
        let event = process.next(LOOK);
        // It may be saying why it fails; an engine may print without end.
        let is_quiet = !matches!(&event, Event::Told(_));
        match event {
            Event::Told(Message::Opened { version, level, in_memory, ns }) => {
                cell.version = Some(version).filter(|version| !version.is_empty());
                cell.level = level;
                opened = Some(Duration::from_nanos(ns));
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
                let is_killed = end.fate() == Fate::Died("SIGKILL".into());
                if is_killed && board.has_killed_itself() {
                    let committing = running.map_or(Duration::ZERO, |since: Instant| since.elapsed());
                    return Ok(Reached { is_by_time: false, opened, committing });
                }
                return Err(ended_before(&end, board).into());
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
        if running.is_some() {
            on_commits(acked)?;
        }
        let committing = running.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        let is_long = committing > longest;
        // Whether the moment is there, and whether the process does what it is to be crashed in.
        let (is_there, is_right, delay) = match moment {
            Moment::Creation(delay) => (stages > 0, true, delay),
            Moment::Commits(commits, delay) => (acked >= commits, stage == Stage::Run, delay),
            Moment::Closing(count, delay) => (board.closings() >= count, true, delay),
            // It ends by itself.
            Moment::InCommit(..) => (false, false, Duration::ZERO),
        };
        if (is_long || is_there && is_right)
            && is_quiet
            && now.duration_since(*due.get_or_insert(now)) >= delay
        {
            // It is killed after this look: until then it stays in the stage that it is to be crashed in.
            let is_to_run = !is_long && matches!(moment, Moment::Commits(..));
            if !is_to_run || board.aim() == Some(Stage::Run) {
                return Ok(Reached { is_by_time: !is_there, opened, committing });
            }
            board.aim_elsewhere();
        }
    }
}

/// What a process has read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Read {
    /// The rows.
    pub(super) rows: Option<Rows>,
    pub(super) failure: Option<(Verdict, String)>,
    /// The first open, nanoseconds.
    pub(super) recovery_ns: Option<u64>,
    /// The one after a clean close, nanoseconds.
    pub(super) reopen_ns: Option<u64>,
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
        self.follow(&mut process, |_| false)
    }

    /// Follows a process that reads, until it has told enough or has ended.
    fn follow(
        &self,
        process: &mut TaskProcess<Message>,
        is_enough: impl Fn(&Read) -> bool,
    ) -> Result<Read, Stopped> {
        let mut read = Read::default();
        let mut patience = Patience::new(self.stall);
        let end = loop {
            match process.next(POLL) {
                Event::Told(message) => {
                    patience.renew();
                    read.hear(message);
                    if is_enough(&read) {
                        return Ok(read);
                    }
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
                await_end(process)?;
                return Ok(read);
            }
        };
        read.end(&end.fate());
        Ok(read)
    }

    /// Goes on after a crash, as an application does: a process opens the database, which is judged, makes further commits without
    /// closing it before, and is crashed. It does not go on if something else than the last commits is missing.
    fn go_on(
        &self,
        more: &More,
        bounds: &[Bounds],
        medium: &mut dyn Medium,
        random: &mut Random,
        cell: &mut Cell,
    ) -> Result<WentOn, Stopped> {
        let board = Board::going_on(self.subject.threads, last_started(bounds))?;
        let moment = match more.moment {
            Moment::Commits(count, delay) => Moment::Commits(board.acked() + count, delay),
            other => other,
        };
        hold(moment, &board);
        let task = WorkerTask {
            subject: self.subject.clone(),
            folder: self.folder.to_path_buf(),
            script: self.script,
            session: more.session,
            board: board.descriptor()?,
        };
        let mut process = start(&task, self.subject)?;
        let has_told = |read: &Read| read.rows.is_some() || read.failure.is_some();
        let read = self.follow(&mut process, has_told)?;
        let found = read.judgement(&self.script, bounds);
        let judgement = found.clone();
        let Some(script) = read.base(&self.script, bounds).filter(|_| read.failure.is_none()) else {
            process.kill();
            await_end(&mut process)?;
            return Ok(WentOn { read, found, judgement, second: None });
        };
        let before = acknowledged(&script, &board.bounds());
        board.go();
        let none = &mut |_| Ok(());
        let reached = until_moment(Due::at(moment), &board, &mut process, self.stall, cell, none);
        let failure = match reached {
            Ok(reached) => {
                let Crashed { bounds, end } = medium.crash(&mut process, &board, random)?;
                match end {
                    Some(end) => ended_before(&end, &board),
                    None => {
                        let commits = acknowledged(&script, &bounds) - before;
                        let again = Again { stage: board.stage(), commits };
                        let left = Left { script, bounds };
                        let second = Second { left, again, is_by_time: reached.is_by_time };
                        return Ok(WentOn { read, found, judgement, second: Some(second) });
                    }
                }
            }
            Err(Stopped::Failed(failure)) => failure,
            Err(stopped) => return Err(stopped),
        };
        process.kill();
        await_end(&mut process)?;
        let verdict = failure.verdict();
        let text = match failure {
            Failure::Told(text) => text,
            failure => failure.to_string(),
        };
        // Before the first crash, or after it.
        let acked = acknowledged(&self.script, bounds).max(acknowledged(&script, &board.bounds()));
        let judgement = judgement.failed(verdict, format!("after the recovery: {text}"), acked);
        Ok(WentOn { read, found, judgement, second: None })
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
            Message::Changed(text) => self.failure = Some((Verdict::Changed, text)),
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
        let acked = acknowledged(script, bounds);
        let judgement = match &self.rows {
            Some(rows) => judge(script, bounds, rows),
            None => {
                let (lost, left) = (0, Vec::new());
                Judgement { verdict: Verdict::Ok, detail: None, lost, left, is_empty: acked > 0 }
            }
        };
        match &self.failure {
            Some((verdict, text)) => judgement.failed(*verdict, text.clone(), acked),
            None => judgement,
        }
    }

    /// The script of a process that continues with what was read: what is not there is undone, and the next commits have the numbers
    /// after the last one that was started. `None` if nothing was read, or if more than the last commits is missing.
    pub(super) fn base(&self, script: &Script, bounds: &[Bounds]) -> Option<Script> {
        let rows = self.rows.as_ref()?;
        let is_sound = !judge(script, bounds, rows).verdict.is_corrupt();
        is_sound.then(|| script.after(&kept(script, bounds, rows), last_started(bounds)))
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
