//! The process of one step: it prepares a database, writes and reads while calls fail, or checks what is left.
//!
//! All steps draw the same commits from the seed, so the number of acknowledged commits says what must be there.

use crate::engine_process::{self, DriveError};
use crate::verify::Effort;
use crate::verify::act::{Act, Reply, group, status_name};
use crate::verify::caller::Caller;
use crate::verify::draw::bytes;
use crate::verify::subject::{Context, Setup, open_caller, open_database};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Engine};
use kvdyno_core::generator::Random;
use kvdyno_core::results::Durability;
use kvdyno_core::runner::{level_number, level_of};
use kvdyno_measure::inner::Kind;
use kvdyno_measure::sync_calls::{CallKind, Fault, FaultyCalls, SyncCalls, become_faulty};
use kvdyno_measure::{Clock, Task, signals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Commits of the prepared database.
pub(super) const PREPARED: u64 = 100;
/// Commits while calls fail.
pub(super) const COMMITS: u64 = 60;
/// Keys of all commits.
const KEYS: u64 = 48;
/// Puts of a group.
const GROUP: u64 = 6;

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pass {
    /// The engine, as users type it.
    pub engine: String,
    /// Its plug-in; `None` if it is built in.
    pub plugin: Option<PathBuf>,
    /// The requested level.
    pub level: Durability,
    /// Options to set, `name=value`.
    pub options: Vec<(String, String)>,
    /// The seed of the commits.
    pub seed: u64,
    /// The folder of the database, absolute and without links.
    pub folder: PathBuf,
    /// What is done with it.
    pub step: Step,
}

/// What became of the commits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commits {
    /// So many have ended, those of the preparation included; the next one may be done in part.
    pub ended: u64,
    /// The numbers of those that the engine has not acknowledged.
    pub failed: Vec<u64>,
}

/// What is done with the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    /// Creates the database, and closes it or, if the flag is set, is killed before.
    Prepare(bool),
    /// Writes and reads while something fails, and closes the database or is killed before.
    Run(Run),
    /// Opens the database and compares it with what was acknowledged.
    Check(Commits),
}

/// How a process runs while something fails.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The calls that fail; `None` if something else does.
    pub fault: Option<Fault>,
    /// Whether it is killed instead of closing the database.
    pub is_killed: bool,
    /// It makes no commits once this file is gone.
    pub until: Option<PathBuf>,
}

/// What the process tells.
#[derive(Serialize, Deserialize)]
pub enum Message {
    /// The database is open.
    Opened {
        /// The engine's version.
        version: String,
        /// The effective level.
        level: Durability,
        /// Whether it keeps nothing in files.
        in_memory: bool,
    },
    /// The commit with this number, from 0, was acknowledged.
    Acknowledged(u64),
    /// It was not.
    Failed(u64),
    /// It was acknowledged although a sync of it had failed; a later one had not.
    Repeated(u64),
    /// The engine returned an error, here.
    Reported(String, String),
    /// An answer or an acknowledgement is false.
    Broken(String),
    /// Selected calls at the end of open, of the commits and of close, and how many failed.
    Calls([u64; 3], u64),
    /// It kills itself now, as it was told to.
    Killed,
    /// Nothing could be tried.
    Unseen(String),
    /// The step is over.
    Done,
}

fn tell(message: &Message) {
    Pass::tell(message);
}

fn broken(error: impl Display) -> Message {
    Message::Broken(error.to_string())
}

impl Task for Pass {
    const KIND: Kind = Kind::Faults;
    type Message = Message;
    /// The calls that fail, or why none can; `None` if none is to.
    type Prepared = Result<Option<SyncCalls>, DriveError>;

    /// Sets the filter before there is a plug-in or a thread, so that it is in all of them.
    fn prepare(&self) -> Self::Prepared {
        match &self.step {
            Step::Run(Run { fault: Some(fault), .. }) => {
                become_faulty(fault.clone()).map(Some).map_err(DriveError::Unobserved)
            }
            Step::Run(_) | Step::Prepare(_) | Step::Check(_) => Ok(None),
        }
    }

    /// Tells an error too, because what was told before is kept.
    fn run(self, calls: Self::Prepared) -> Result<u8, String> {
        if let Err(error) = calls.and_then(|calls| self.step(calls)) {
            tell(&Message::Unseen(error.to_string()));
        }
        tell(&Message::Done);
        Ok(0)
    }
}

impl Pass {
    fn step(&self, calls: Option<SyncCalls>) -> Result<(), DriveError> {
        let engine = engine_process::engine(&self.engine, self.plugin.as_deref())?;
        let root = self.folder.parent().unwrap_or(Path::new("/"));
        let effort = Effort { seed: self.seed, ..Effort::default() };
        let mut context = Context::new(&engine, root, effort, Clock::monotonic(), None);
        context.settings = self.options.clone();
        run(&engine, &context, self, calls);
        Ok(())
    }
}

fn run(engine: &Engine, context: &Context<'_>, pass: &Pass, calls: Option<SyncCalls>) {
    let create = matches!(pass.step, Step::Prepare(_));
    let setup = Setup {
        create,
        level: level_number(pass.level),
        settings: pass.options.clone(),
        ..context.setup_in(pass.folder.clone())
    };
    let selected = || calls.map_or(0, |calls| calls.selected());
    let mut ends = [0; 3];
    match open(engine, &setup, calls) {
        Err(error) => {
            let text = error.to_string();
            tell(&Message::Reported("open".into(), text.strip_prefix("open: ").unwrap_or(&text).into()));
        }
        Ok((database, mut caller)) => {
            let effective = database.effective();
            let level = level_of(effective.level);
            let in_memory = effective.capabilities & KV_IN_MEMORY != 0;
            tell(&Message::Opened { version: effective.version.clone(), level, in_memory });
            ends[0] = selected();
            let mut work = Work {
                caller: &mut caller,
                calls,
                syncs_fail: matches!(&pass.step, Step::Run(Run { fault: Some(fault), .. }) if fault.calls == FaultyCalls::Syncs)
                    && level == Durability::Power,
                is_ordered: effective.capabilities & KV_ORDERED != 0,
                keys: (0..KEYS).map(|number| context.key(&format!("key{number:013}"))).collect(),
                rows: Rows::new(),
            };
            let commits = commits(pass.seed, context, &work.keys);
            let found = match &pass.step {
                Step::Prepare(_) => work.commit(&commits[..PREPARED as usize], 0, None),
                Step::Run(run) => {
                    commits[..PREPARED as usize].iter().for_each(|acts| acknowledge(&mut work.rows, acts));
                    let made = work.commit(&commits[PREPARED as usize..], PREPARED, run.until.as_deref());
                    made.and_then(|()| work.read_all())
                }
                Step::Check(ended) => work.check(&commits, ended),
            };
            if let Err(found) = found {
                tell(&found);
            }
            ends[1] = selected();
            if matches!(&pass.step, Step::Run(Run { is_killed: true, .. }) | Step::Prepare(true)) {
                tell_unseen(calls);
                tell(&Message::Calls([ends[0], ends[1], ends[1]], calls.map_or(0, |calls| calls.failed())));
                tell(&Message::Killed);
                // Nothing after this line: no close, and no exit handler.
                signals::kill_this_process();
            }
            let ended = caller.end().map_err(|error| error.to_string());
            let closed = ended.and_then(|()| database.close().map_err(|error| error.to_string()));
            if let Err(text) = closed {
                tell(&Message::Reported("close".into(), text));
            }
        }
    }
    ends[2] = selected();
    tell_unseen(calls);
    tell(&Message::Calls(ends, calls.map_or(0, |calls| calls.failed())));
}

/// Tells why calls cannot be made to fail, if they cannot.
fn tell_unseen(calls: Option<SyncCalls>) {
    let Some(calls) = calls else { return };
    if calls.counts().of(CallKind::Hidden) > 0 {
        let text = "the files of its process in /proc cannot be read, so none of its calls can be made to fail; root \
                    can read them";
        tell(&Message::Unseen(text.into()));
    } else if calls.submitted() > 0 {
        let text = "it reads or writes through io_uring or io_submit, whose requests cannot be made to fail";
        tell(&Message::Unseen(text.into()));
    }
}

fn open(engine: &Engine, setup: &Setup, calls: Option<SyncCalls>) -> Result<(Database, Caller), DriveError> {
    let database = open_database(engine, setup).map_err(DriveError::driver)?;
    let caller = open_caller(&database, setup).map_err(DriveError::driver)?;
    Ok(match calls {
        Some(calls) => (database, caller.counting(calls)),
        None => (database, caller),
    })
}

/// All commits, drawn from the seed: puts, deletes, and groups of puts.
fn commits(seed: u64, context: &Context<'_>, keys: &[Vec<u8>]) -> Vec<Vec<Act>> {
    let mut random = Random::stream(seed, 1);
    let put = |random: &mut Random| {
        let key = &keys[random.below(KEYS) as usize];
        let size = 100 + random.below(1900) as usize;
        Act::put(key, &bytes(random, size))
    };
    let mut commit = |_| match random.below(8) {
        0 if context.has(KV_CAN_DELETE) => vec![Act::delete(&keys[random.below(KEYS) as usize])],
        1 => group((0..GROUP).map(|_| put(&mut random)).collect(), 0),
        _ => vec![put(&mut random)],
    };
    (0..PREPARED + COMMITS).map(&mut commit).collect()
}

/// The values that each key may have, of which `None` is no row: one, and those of later commits that failed. A key that is not
/// here has no row.
type Rows = BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>;

/// The value of a key after a put or a delete.
fn value_of(act: &Act) -> Option<Vec<u8>> {
    (act.kind != KV_DELETE).then(|| act.value.clone())
}

/// A commit that is there.
fn acknowledge(rows: &mut Rows, acts: &[Act]) {
    for act in acts {
        rows.insert(act.key.clone(), vec![value_of(act)]);
    }
}

/// A commit of which any part may be there.
fn attempt(rows: &mut Rows, acts: &[Act]) {
    for act in acts {
        rows.entry(act.key.clone()).or_insert_with(|| vec![None]).push(value_of(act));
    }
}

/// An open database and what must be in it.
struct Work<'w> {
    caller: &'w mut Caller,
    calls: Option<SyncCalls>,
    /// Whether syncs fail that commits need.
    syncs_fail: bool,
    is_ordered: bool,
    keys: Vec<Vec<u8>>,
    rows: Rows,
}

impl Work<'_> {
    /// Makes the commits, also after one that fails, and reads some keys after every fourth; `first` is the number of the
    /// first. Ends early once the file is gone.
    fn commit(&mut self, commits: &[Vec<Act>], first: u64, until: Option<&Path>) -> Result<(), Message> {
        for (acts, number) in commits.iter().zip(first..) {
            if until.is_some_and(|file| !file.exists()) {
                return Ok(());
            }
            let failed_before = self.failed();
            let call = self.caller.call_from(0, acts, None).map_err(broken)?;
            let bad = call.answers.iter().find(|answer| !is_done(answer));
            if let Some(answer) = bad.or_else(|| call.answers.get(call.done)) {
                attempt(&mut self.rows, acts);
                tell(&Message::Reported(format!("commit {number}"), said(answer)));
                tell(&Message::Failed(number));
                continue;
            }
            let has_failed = self.calls.is_some() && self.failed() > failed_before;
            if self.syncs_fail && has_failed && self.changes(acts) {
                tell(&match call.counted.syncs() {
                    0 => {
                        Message::Broken(format!("commit {number} was acknowledged although its sync failed"))
                    }
                    _ => Message::Repeated(number),
                });
            }
            acknowledge(&mut self.rows, acts);
            tell(&Message::Acknowledged(number));
            if number % 4 == 3 {
                for key in self.keys.clone().iter().skip(number as usize % 8).step_by(8) {
                    self.read(key)?;
                }
            }
        }
        Ok(())
    }

    fn failed(&self) -> u64 {
        self.calls.map_or(0, |calls| calls.failed())
    }

    /// Whether there is anything to store: a delete of a key without a row needs no sync.
    fn changes(&self, acts: &[Act]) -> bool {
        let may_exist =
            |key: &Vec<u8>| self.rows.get(key).is_some_and(|values| values.iter().any(Option::is_some));
        acts.iter().any(|act| act.kind != KV_DELETE || may_exist(&act.key))
    }

    /// Compares a key with the values that it may have. An error that the engine returns is reported.
    fn read(&mut self, key: &[u8]) -> Result<(), Message> {
        let mut answers =
            self.caller.call_from(0, &[Act::get(key)], None).map_err(broken)?.answers.into_iter();
        let Some(answer) = answers.next() else { return Ok(()) };
        let found = match answer.status {
            KV_OK => Some(answer.bytes),
            KV_NOT_FOUND => None,
            _ => {
                tell(&Message::Reported("get".into(), said(&answer)));
                return Ok(());
            }
        };
        let none = vec![None];
        let possible = self.rows.get(key).unwrap_or(&none);
        if possible.contains(&found) {
            return Ok(());
        }
        let key = String::from_utf8_lossy(key).into_owned();
        let text = match found {
            None => format!("{key} was acknowledged and is not found"),
            Some(_) if possible.iter().all(Option::is_none) => format!("{key} was deleted and is found"),
            Some(_) => format!("{key} has another value than the acknowledged one"),
        };
        Err(Message::Broken(text))
    }

    /// Reads every key, and scans if the engine can.
    fn read_all(&mut self) -> Result<(), Message> {
        for key in self.keys.clone() {
            self.read(&key)?;
        }
        if !self.is_ordered {
            return Ok(());
        }
        let act = Act::scan(&[]).rows(2 * KEYS as u32).with(KV_KEYS);
        let mut answers = self.caller.call_from(0, &[act], None).map_err(broken)?.answers.into_iter();
        let rows = match answers.next() {
            Some(answer) if answer.status == KV_OK => answer.rows().map_err(broken)?,
            Some(answer) => {
                tell(&Message::Reported("scan".into(), said(&answer)));
                return Ok(());
            }
            None => return Ok(()),
        };
        let found: Vec<&Vec<u8>> = rows.iter().map(|(key, _)| key).collect();
        // A key whose last commit failed may have a row or none.
        let is_wanted = |(key, values): &(&Vec<u8>, &Vec<Option<Vec<u8>>>)| {
            let may_exist = values.iter().any(Option::is_some);
            may_exist && (!values.contains(&None) || found.contains(key))
        };
        let wanted: Vec<&Vec<u8>> = self.rows.iter().filter(is_wanted).map(|(key, _)| key).collect();
        if found == wanted {
            return Ok(());
        }
        Err(Message::Broken(match found.len() == wanted.len() {
            true => "a scan returns other rows than those that are there".into(),
            false => {
                format!("a scan returns {} rows, not the {} that are there", found.len(), wanted.len())
            }
        }))
    }

    /// Compares everything with what was acknowledged.
    fn check(&mut self, commits: &[Vec<Act>], ended: &Commits) -> Result<(), Message> {
        for (acts, number) in commits.iter().zip(0..) {
            if number >= ended.ended || ended.failed.contains(&number) {
                attempt(&mut self.rows, acts);
            } else {
                acknowledge(&mut self.rows, acts);
            }
            if number == ended.ended {
                break;
            }
        }
        self.read_all()
    }
}

/// Whether the engine has done what was asked.
fn is_done(answer: &Reply) -> bool {
    matches!(answer.status, KV_OK | KV_NOT_FOUND | KV_EXISTS)
}

fn said(answer: &Reply) -> String {
    answer.said.clone().unwrap_or_else(|| status_name(answer.status))
}
