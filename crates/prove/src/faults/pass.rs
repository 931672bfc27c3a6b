//! The process of one step: it prepares a database, writes and reads while calls fail, or checks what is left.
//!
//! All steps draw the same commits from the seed, so the number of acknowledged commits says what must be there.

use crate::verify::Effort;
use crate::verify::act::{Act, Reply, group, status_name};
use crate::verify::caller::Caller;
use crate::verify::draw::bytes;
use crate::verify::subject::{Context, Setup, open_caller, open_database};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Engine, Registry};
use kvdyno_core::generator::Random;
use kvdyno_core::results::Durability;
use kvdyno_core::runner::{level_number, level_of};
use kvdyno_measure::sync_calls::{CallKind, Fault, FaultyCalls, SyncCalls, become_faulty};
use kvdyno_measure::{Clock, become_trial_process, signals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The hidden command that runs a step; its argument is the step as JSON.
pub(super) const COMMAND: &str = "faults-one";
/// The prefix of each line that it writes for its parent.
pub(super) const LINE: &str = "kvdyno-faults ";
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
pub(super) struct Pass {
    pub engine: String,
    pub plugin: Option<PathBuf>,
    pub level: Durability,
    pub options: Vec<(String, String)>,
    pub seed: u64,
    /// The folder of the database, absolute and without links.
    pub folder: PathBuf,
    pub step: Step,
}

/// What became of the commits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Commits {
    /// So many have ended, those of the preparation included; the next one may be done in part.
    pub ended: u64,
    /// The numbers of those that the engine has not acknowledged.
    pub failed: Vec<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// Creates the database.
    Prepare,
    /// Writes and reads while calls fail, and closes the database or, if the flag is set, is killed before.
    Run(Fault, bool),
    /// Opens the database and compares it with what was acknowledged.
    Check(Commits),
}

/// A line from the process.
#[derive(Serialize, Deserialize)]
pub(super) enum Line {
    Opened {
        version: String,
        level: Durability,
        in_memory: bool,
    },
    /// The commit with this number, from 0, was acknowledged.
    Acknowledged(u64),
    /// It was not.
    Failed(u64),
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
    Done,
}

fn tell(line: &Line) {
    // If the parent is gone, this process ends with it.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{LINE}{}", serde_json::to_string(line).unwrap_or_default());
    let _ = stdout.flush();
}

/// Runs in the process: the step in a JSON text. What it finds is printed for the parent.
pub fn run_pass(json: &str) -> Result<(), String> {
    let pass: Pass = serde_json::from_str(json).map_err(|error| format!("{COMMAND}: {error}"))?;
    become_trial_process();
    // Before the plug-in is loaded and before any thread is started, so that the filter is in all of them.
    let calls = match &pass.step {
        Step::Run(fault, _) => Some(become_faulty(fault.clone()).map_err(|error| {
            format!("no seccomp notification ({error}); `kvdyno doctor` says what this machine allows")
        })),
        Step::Prepare | Step::Check(_) => None,
    };
    let outcome = calls.transpose().and_then(|calls| {
        let registry = Registry::alone(pass.plugin.as_deref())?;
        let engine =
            registry.engine(&pass.engine).map_err(|_| "the engine is no longer available".to_string())?;
        let root = pass.folder.parent().unwrap_or(Path::new("/"));
        let effort = Effort { seed: pass.seed, ..Effort::default() };
        let mut context = Context::new(&engine, root, (effort, Clock::monotonic()), None);
        context.settings = pass.options.clone();
        run(&engine, &context, &pass, calls);
        Ok(())
    });
    if let Err(reason) = outcome {
        tell(&Line::Unseen(reason));
    }
    tell(&Line::Done);
    Ok(())
}

fn run(engine: &Engine, context: &Context<'_>, pass: &Pass, calls: Option<SyncCalls>) {
    let create = matches!(pass.step, Step::Prepare);
    let setup = Setup {
        create,
        level: level_number(pass.level),
        settings: pass.options.clone(),
        ..context.setup_in(pass.folder.clone())
    };
    let selected = || calls.map_or(0, |calls| calls.selected());
    let mut ends = [0; 3];
    match open(engine, &setup, calls) {
        Err(text) => {
            tell(&Line::Reported("open".into(), text.strip_prefix("open: ").unwrap_or(&text).into()));
        }
        Ok((database, mut caller)) => {
            let in_force = database.in_force();
            let level = level_of(in_force.level);
            let in_memory = in_force.capabilities & KV_IN_MEMORY != 0;
            tell(&Line::Opened { version: in_force.version.clone(), level, in_memory });
            ends[0] = selected();
            let mut work = Work {
                caller: &mut caller,
                calls,
                syncs_fail: matches!(&pass.step, Step::Run(fault, _) if fault.calls == FaultyCalls::Syncs)
                    && level == Durability::Power,
                is_ordered: in_force.capabilities & KV_ORDERED != 0,
                keys: (0..KEYS).map(|number| context.key(&format!("key{number:013}"))).collect(),
                rows: Rows::new(),
            };
            let commits = commits(pass.seed, context, &work.keys);
            let found = match pass.step {
                Step::Prepare => work.commit(&commits[..PREPARED as usize], 0),
                Step::Run(..) => {
                    commits[..PREPARED as usize].iter().for_each(|acts| acknowledge(&mut work.rows, acts));
                    work.commit(&commits[PREPARED as usize..], PREPARED).and_then(|()| work.read_all())
                }
                Step::Check(ref ended) => work.check(&commits, ended),
            };
            if let Err(found) = found {
                tell(&found);
            }
            ends[1] = selected();
            if matches!(pass.step, Step::Run(_, true)) {
                tell(&Line::Calls([ends[0], ends[1], ends[1]], calls.map_or(0, |calls| calls.failed())));
                tell(&Line::Killed);
                // Nothing after this line: no close, and no exit handler.
                signals::kill_this_process();
            }
            let close = caller.end().and_then(|()| database.close().map_err(|error| error.to_string()));
            if let Err(text) = close {
                tell(&Line::Reported("close".into(), text));
            }
        }
    }
    ends[2] = selected();
    if calls.is_some_and(|calls| calls.counts().of(CallKind::Hidden) > 0) {
        tell(&Line::Unseen("it hides its files from other processes, so no call can be chosen".into()));
    }
    tell(&Line::Calls(ends, calls.map_or(0, |calls| calls.failed())));
}

fn open(engine: &Engine, setup: &Setup, calls: Option<SyncCalls>) -> Result<(Database, Caller), String> {
    let database = open_database(engine, setup)?;
    let caller = open_caller(&database, setup)?;
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
    /// Makes the commits, also after one that fails, and reads some keys after every fourth; `first` is the number of the first.
    fn commit(&mut self, commits: &[Vec<Act>], first: u64) -> Result<(), Line> {
        for (acts, number) in commits.iter().zip(first..) {
            let failed_before = self.failed();
            let call = self.caller.call_from(0, acts, None).map_err(Line::Broken)?;
            let bad = call.answers.iter().find(|answer| !is_done(answer));
            if let Some(answer) = bad.or_else(|| call.answers.get(call.done)) {
                attempt(&mut self.rows, acts);
                tell(&Line::Reported(format!("commit {number}"), said(answer)));
                tell(&Line::Failed(number));
                continue;
            }
            let has_failed = self.calls.is_some() && self.failed() > failed_before;
            if self.syncs_fail && has_failed && call.counted.syncs() == 0 && self.changes(acts) {
                let text = format!("commit {number} was acknowledged although its sync failed");
                tell(&Line::Broken(text));
            }
            acknowledge(&mut self.rows, acts);
            tell(&Line::Acknowledged(number));
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
    fn read(&mut self, key: &[u8]) -> Result<(), Line> {
        let mut answers =
            self.caller.call_from(0, &[Act::get(key)], None).map_err(Line::Broken)?.answers.into_iter();
        let Some(answer) = answers.next() else { return Ok(()) };
        let found = match answer.status {
            KV_OK => Some(answer.bytes),
            KV_NOT_FOUND => None,
            _ => {
                tell(&Line::Reported("get".into(), said(&answer)));
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
        Err(Line::Broken(text))
    }

    /// Reads every key, and scans if the engine can.
    fn read_all(&mut self) -> Result<(), Line> {
        for key in self.keys.clone() {
            self.read(&key)?;
        }
        if !self.is_ordered {
            return Ok(());
        }
        let act = Act::scan(&[]).rows(2 * KEYS as u32).with(KV_KEYS);
        let mut answers = self.caller.call_from(0, &[act], None).map_err(Line::Broken)?.answers.into_iter();
        let rows = match answers.next() {
            Some(answer) if answer.status == KV_OK => answer.rows().map_err(Line::Broken)?,
            Some(answer) => {
                tell(&Line::Reported("scan".into(), said(&answer)));
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
        Err(Line::Broken(match found.len() == wanted.len() {
            true => "a scan returns other rows than those that are there".into(),
            false => {
                format!("a scan returns {} rows, not the {} that are there", found.len(), wanted.len())
            }
        }))
    }

    /// Compares everything with what was acknowledged.
    fn check(&mut self, commits: &[Vec<Act>], ended: &Commits) -> Result<(), Line> {
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
