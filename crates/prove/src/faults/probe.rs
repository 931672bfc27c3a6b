//! The parent's side: prepares a database, chooses the calls that fail, and judges what the processes report.

use super::pass::{COMMITS, Commits, Message, PREPARED, Pass, Run, Step};
use super::{FaultKind, IN_MEMORY, Point, Reaction, Row};
use crate::child::{Ended, follow};
use crate::machine::MachineError;
use kvdyno_core::engine::environment_of;
use kvdyno_core::generator::Random;
use kvdyno_core::results::Durability;
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::sync_calls::Fault;
use kvdyno_measure::text::{plain_text, short_text};
use kvdyno_measure::{Fate, Task, copy_folder, signals};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use thiserror::Error;

/// Commits of a process that made all of them, those of the preparation included.
const ALL: u64 = PREPARED + COMMITS;

/// The file for what a process writes to stderr, next to the databases.
pub(super) const STDERR: &str = "stderr";
/// Bytes at its end that are read, and the letters of a line that are shown.
const MOST_STDERR: usize = 16 << 10;
const MOST_WORDS: usize = 200;

/// What is probed, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// The engine, as users type it.
    pub engine: String,
    /// Its plug-in; `None` if it is built in.
    pub plugin: Option<PathBuf>,
    /// The requested level.
    pub level: Durability,
    /// Options to set, `name=value`.
    pub options: Vec<(String, String)>,
    /// The seed of keys, values and the choice of calls.
    pub seed: u64,
    /// Faults of each kind, at most.
    pub points: usize,
    /// The folder for its databases.
    pub data: PathBuf,
    /// The folder for images of disks.
    pub images: PathBuf,
    /// Bytes of an image.
    pub image_bytes: u64,
    /// How long a process may make no progress.
    pub stall: Duration,
}

/// What a process reported, and how it ended.
#[derive(Default)]
pub(super) struct Story {
    opened: Option<(String, Durability, bool)>,
    commits: Commits,
    reported: Option<(String, String)>,
    broken: Option<String>,
    /// A commit of which one sync failed and another one did not.
    repeated: Option<u64>,
    calls: Option<([u64; 3], u64)>,
    unseen: Option<String>,
    pub(super) ended: Option<Ended>,
    is_done: bool,
    is_killed: bool,
    /// The last line that its process wrote to stderr.
    last_words: Option<String>,
}

impl Story {
    /// Where an error was reported, and its text.
    fn report(&self) -> Option<String> {
        self.reported.as_ref().map(|(place, text)| format!("{place}: {text}"))
    }

    /// What it was doing last.
    fn doing(&self) -> String {
        match self.commits.ended {
            _ if self.calls.is_some() => "exit".into(),
            _ if self.opened.is_none() => "open".into(),
            ALL => "reads or close".into(),
            next => format!("commit {}", next.max(PREPARED)),
        }
    }

    /// How it ended, if not by itself, and in what.
    fn failure(&self) -> Option<String> {
        let ended = match self.ended.as_ref()? {
            ended if ended.is_success() && self.is_done => return None,
            Ended::Itself(Fate::Died(_)) if self.is_killed => return None,
            ended => ended,
        };
        let words = self.last_words.as_ref().map_or(String::new(), |words| format!(" ({words})"));
        Some(format!("{}: {ended}{words}", self.doing()))
    }

    /// What is wrong with a process that should have found everything; `None` if nothing is.
    pub(super) fn fault(&self) -> Option<String> {
        let report = || match self.reported.as_ref()? {
            (place, text) if place == "open" => Some(format!("cannot be opened any more: {text}")),
            _ => self.report(),
        };
        self.broken.clone().or_else(report).or_else(|| self.failure())
    }
}

/// Why no fault can be tried on an engine.
#[derive(Debug, Error)]
enum Untried {
    /// This machine does not allow it.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The database could not be prepared, for this reason.
    #[error("{0}")]
    NotPrepared(String),
    /// The process told nothing of an open.
    #[error("it was not opened")]
    NotOpened,
    /// It has no files whose calls could fail.
    #[error("{IN_MEMORY}")]
    InMemory,
}

/// Tries faults of several kinds on one engine. An error: the folder for its data cannot be used.
pub fn probe(target: &Target, kinds: &[FaultKind]) -> Result<Vec<Row>, MachineError> {
    let name: String =
        target.engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder =
        DataFolder::create(&target.data, "faults", &format!("faults-{name}")).map_err(MachineError::from)?;
    let probed = Probe::prepared(target, &folder.database());
    let rows = match probed {
        Err(reason) => Ok(kinds.iter().map(|kind| empty(target, *kind, Some(reason.to_string()))).collect()),
        Ok(probe) => kinds.iter().map(|kind| probe.row(*kind)).collect(),
    };
    folder.remove().map_err(MachineError::from)?;
    rows
}

pub(super) fn empty(target: &Target, fault: FaultKind, skipped: Option<String>) -> Row {
    Row {
        engine: target.engine.clone(),
        version: None,
        level: target.level,
        fault,
        seed: target.seed,
        calls: 0,
        points: Vec::new(),
        skipped,
    }
}

/// An engine with its prepared database.
pub(super) struct Probe<'t> {
    pub(super) target: &'t Target,
    /// The database after a close.
    pub(super) closed: PathBuf,
    /// The database after a kill; `None`: the level promises nothing after one.
    pub(super) killed: Option<PathBuf>,
    work: PathBuf,
    pub(super) version: Option<String>,
    pub(super) level: Durability,
}

impl<'t> Probe<'t> {
    /// Creates the database.
    fn prepared(target: &'t Target, data: &Path) -> Result<Probe<'t>, Untried> {
        let root = fs::canonicalize(data).map_err(MachineError::file("use", data))?;
        let [closed, killed, work] = ["closed", "killed", "work"].map(|name| root.join(name));
        let prepare = |folder: &Path, is_killed: bool| {
            fs::create_dir(folder).map_err(MachineError::file("use", data))?;
            run(target, folder, Step::Prepare(is_killed))
        };
        let story = prepare(&closed, false)?;
        if let Some(reason) = story.unseen.clone().or_else(|| story.fault()) {
            return Err(Untried::NotPrepared(reason));
        }
        let Some((version, level, in_memory)) = story.opened else { return Err(Untried::NotOpened) };
        if in_memory {
            return Err(Untried::InMemory);
        }
        let version = Some(version).filter(|version| !version.is_empty());
        let mut probe = Probe { target, closed, killed: None, work, version, level };
        // An engine that loses or breaks something at a kill alone is found by crashes, and every fault would find it again.
        if level >= Durability::Process && prepare(&killed, true)?.fault().is_none() {
            probe.killed = Some(killed);
            let ended = Commits { ended: PREPARED, failed: Vec::new() };
            if probe.step(Step::Check(ended), Some(true))?.fault().is_some() {
                probe.killed = None;
            }
        }
        Ok(probe)
    }

    /// Runs a step on a copy of the database that was closed or, if the flag is set, killed before; `None`: on what the last step
    /// has left.
    fn step(&self, step: Step, after_kill: Option<bool>) -> Result<Story, MachineError> {
        if let Some(after_kill) = after_kill {
            let prepared = self.killed.as_ref().filter(|_| after_kill).unwrap_or(&self.closed);
            if self.work.exists() {
                fs::remove_dir_all(&self.work).map_err(MachineError::file("remove", &self.work))?;
            }
            fs::create_dir(&self.work).map_err(MachineError::file("create", &self.work))?;
            copy_folder(prepared, &self.work).map_err(MachineError::from)?;
        }
        run(self.target, &self.work, step)
    }

    /// Runs a process in which a call fails. If the database is not closed while calls fail, every second one is killed before: a
    /// close may write again what could not be written before.
    fn run(&self, fault: &Fault, after_kill: bool, commits_end: u64) -> Result<Story, MachineError> {
        let is_killed = (1..=commits_end).contains(&fault.first) && fault.first.is_multiple_of(2);
        let run = Run { fault: Some(fault.clone()), is_killed, until: None };
        self.step(Step::Run(run), Some(after_kill))
    }

    fn row(&self, kind: FaultKind) -> Result<Row, MachineError> {
        let Some((calls, errno)) = kind.failing() else { return self.disk_row() };
        let mut fault = Fault { folder: self.work.clone(), calls, first: 0, lasts: kind.lasts(), errno };
        let mut row = empty(self.target, kind, None);
        (row.version, row.level) = (self.version.clone(), self.level);
        let mut ends = [[0; 3]; 2];
        for after_kill in [false, true] {
            if after_kill && self.killed.is_none() {
                continue;
            }
            let story = self.run(&fault, after_kill, 0)?;
            let reason = story.fault().map(|fault| format!("without a fault: {fault}"));
            if let Some(reason) = story.unseen.clone().or(reason) {
                row.skipped = Some(reason);
                return Ok(row);
            }
            ends[usize::from(after_kill)] = story.calls.unwrap_or_default().0;
        }
        row.calls = ends[0][2] + ends[1][2];
        let [of_closed, of_killed] = shares(ends.map(|ends| ends[2] as usize), self.target.points);
        let points = [(false, of_closed), (true, of_killed)].into_iter().flat_map(|(after_kill, count)| {
            let ends = ends[usize::from(after_kill)];
            chosen(ends, count, self.target.seed).into_iter().map(move |call| (after_kill, call, ends[1]))
        });
        for (after_kill, call, commits_end) in points {
            if signals::interrupts() > 0 {
                row.skipped = Some("interrupted by the user".into());
                return Ok(row);
            }
            fault.first = call;
            let story = self.run(&fault, after_kill, commits_end)?;
            // With other threads the calls differ from run to run: the chosen one may not come.
            if story.calls.is_some_and(|(_, failed)| failed == 0) {
                continue;
            }
            if let Some(reason) = &story.unseen {
                row.skipped = Some(reason.clone());
                return Ok(row);
            }
            let check = |step| self.step(step, None);
            row.points.push(Point { after_kill, ..self.point(call, &story, check)? });
            // The others would take as long.
            if matches!(story.ended, Some(Ended::Stalled(_))) {
                break;
            }
        }
        Ok(row)
    }

    /// Judges a process in which a call failed, and checks what it has left.
    pub(super) fn point(
        &self,
        call: u64,
        story: &Story,
        check: impl FnOnce(Step) -> Result<Story, MachineError>,
    ) -> Result<Point, MachineError> {
        let crash = story.failure();
        let (mut reaction, mut text) = match (&story.broken, &story.ended) {
            (Some(text), _) => (Reaction::Broken, text.clone()),
            (None, Some(Ended::Stalled(_))) => (Reaction::Hung, crash.clone().unwrap_or_default()),
            _ if crash.is_some() => (Reaction::Crashed, crash.clone().unwrap_or_default()),
            _ => match story.report() {
                Some(report) => (Reaction::Reported, report),
                None if story.repeated.is_some() => {
                    let number = story.repeated.unwrap_or_default();
                    let text = format!(
                        "a sync of commit {number} failed and a later one did not: pages may be lost"
                    );
                    (Reaction::Repeated, text)
                }
                None => (Reaction::Absorbed, String::new()),
            },
        };
        // At `none` an engine that has failed promises nothing.
        let is_promised =
            self.level >= Durability::Process || matches!(reaction, Reaction::Absorbed | Reaction::Repeated);
        if reaction != Reaction::Broken && is_promised {
            let ended = story.commits.ended.max(PREPARED);
            let after = check(Step::Check(Commits { ended, ..story.commits.clone() }))?;
            if let Some(wrong) = after.fault() {
                let before =
                    if text.is_empty() { "no error before".into() } else { format!("before: {text}") };
                (reaction, text) = (Reaction::Broken, format!("{wrong} ({before})"));
            }
        }
        Ok(Point { call, after_kill: false, reaction, text })
    }
}

/// How many of the calls in two processes fail: half of the points in each, or more in one if the other has fewer calls.
fn shares([one, other]: [usize; 2], points: usize) -> [usize; 2] {
    let of_one = one.min(points - other.min(points / 2));
    [of_one, other.min(points - of_one)]
}

/// The calls that fail: the first and the last of open, commits and close, and others that the seed draws.
pub(super) fn chosen(ends: [u64; 3], points: usize, seed: u64) -> Vec<u64> {
    let [open, commits, all] = ends;
    let mut random = Random::stream(seed, 2);
    let ends = [open + 1, 1, commits, all, open, commits + 1];
    let wanted = points.min(all as usize);
    let mut chosen: Vec<u64> = Vec::new();
    let mut next = ends.into_iter().filter(|call| (1..=all).contains(call));
    while chosen.len() < wanted {
        let call = match next.next() {
            Some(call) => call,
            None => 1 + random.below(all),
        };
        if !chosen.contains(&call) {
            chosen.push(call);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Runs a step in a process of its own, whose executable is this one.
fn run(target: &Target, folder: &Path, step: Step) -> Result<Story, MachineError> {
    run_with(target, folder, &folder.with_file_name(STDERR), step)
}

/// The same, with a file for what the process writes to stderr.
pub(super) fn run_with(
    target: &Target,
    folder: &Path,
    words: &Path,
    step: Step,
) -> Result<Story, MachineError> {
    let pass = Pass {
        engine: target.engine.clone(),
        plugin: target.plugin.clone(),
        level: target.level,
        options: target.options.clone(),
        seed: target.seed,
        folder: folder.to_path_buf(),
        step,
    };
    let stderr = fs::File::create(words).map_or_else(|_| Stdio::null(), Stdio::from);
    let executable = std::env::current_exe().map_err(MachineError::Start)?;
    let started = pass.start(&executable, |command| {
        command.envs(environment_of(&pass.engine)).stderr(stderr);
    });
    let mut process = started.map_err(MachineError::Start)?;
    let mut story = Story::default();
    let ended = follow(&mut process, target.stall, |message| match message {
        Message::Opened { version, level, in_memory } => {
            story.opened = Some((version, level, in_memory));
        }
        Message::Acknowledged(number) => story.commits.ended = number + 1,
        Message::Failed(number) => {
            story.commits.ended = number + 1;
            story.commits.failed.push(number);
        }
        Message::Reported(place, text) => drop(story.reported.get_or_insert((place, text))),
        Message::Broken(text) => drop(story.broken.get_or_insert(text)),
        Message::Repeated(number) => drop(story.repeated.get_or_insert(number)),
        Message::Calls(ends, failed) => story.calls = Some((ends, failed)),
        Message::Killed => story.is_killed = true,
        Message::Unseen(reason) => story.unseen = Some(reason),
        Message::Done => story.is_done = true,
    });
    story.ended = Some(ended);
    story.last_words = last_line(words);
    Ok(story)
}

/// The last line of a file that is not empty, shortened.
fn last_line(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(MOST_STDERR)..]).into_owned();
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(short_text(&plain_text(line.trim()), MOST_WORDS))
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn half_of_the_calls_that_fail_are_in_each_process_unless_one_has_too_few() {
        for (calls, points, expected) in [
            ([100, 100], 6, [3, 3]),
            ([100, 100], 1, [1, 0]),
            ([100, 0], 6, [6, 0]),
            ([0, 100], 6, [0, 6]),
            ([100, 2], 25, [23, 2]),
            ([3, 100], 25, [3, 22]),
            ([2, 1], 25, [2, 1]),
        ] {
            assert_eq!(shares(calls, points), expected, "{calls:?} {points}");
        }
    }
}
