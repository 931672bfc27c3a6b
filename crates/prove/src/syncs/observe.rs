//! Both sides of the process of an accounting pass: the parent that starts it and keeps what it reports, and the process itself.

use super::{GROUP, Order, Report, account};
use crate::child::follow;
use crate::engine_process::{DriveError, engine};
use crate::machine::MachineError;
use kvdyno_core::engine::environment_of;
use kvdyno_core::results::Durability;
use kvdyno_core::results::audit::{Audit, Section, Shape};
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::sync_calls::{SyncCalls, become_counted};
use kvdyno_measure::{Task, TaskProcess};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// An accounting pass of one engine at one level.
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
    /// The seed of the values.
    pub seed: u64,
    /// Commits of each section.
    pub commits: u64,
    /// The sections to run, of those that the engine supports.
    pub shapes: Vec<Shape>,
    /// The folder for its database.
    pub data: PathBuf,
    /// The run that it belongs to: the marker of its folder.
    pub run: String,
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
        /// The calls until then, by name.
        before: BTreeMap<String, u64>,
    },
    /// A section begins.
    Begun(Shape),
    /// What was observed in a section.
    Ended(Section),
    /// Nothing more can be observed, for this reason.
    Unseen(String),
    /// The pass is over.
    Done,
}

impl Task for Pass {
    const KIND: Kind = Kind::Audit;
    type Message = Message;
    /// The counter of calls, or why there is none.
    type Prepared = Result<SyncCalls, DriveError>;

    /// Counts before there is a plug-in or a thread, so that nothing escapes.
    fn prepare(&self) -> Self::Prepared {
        become_counted().map_err(DriveError::Unobserved)
    }

    /// Tells an error too, because what was told before is kept.
    fn run(self, calls: Self::Prepared) -> Result<u8, String> {
        if let Err(error) = calls.and_then(|calls| self.observe(&calls)) {
            Pass::tell(&Message::Unseen(error.to_string()));
        }
        Pass::tell(&Message::Done);
        Ok(0)
    }
}

impl Pass {
    fn observe(&self, calls: &SyncCalls) -> Result<(), DriveError> {
        let engine = engine(&self.engine, self.plugin.as_deref())?;
        let order = Order {
            level: self.level,
            settings: &self.options,
            seed: self.seed,
            commits: self.commits,
            shapes: &self.shapes,
        };
        account(&engine, &self.data, &order, calls, |report| {
            Pass::tell(&match report {
                Report::Opened(version, level, before) => {
                    Message::Opened { version, level, before: before.by_name() }
                }
                Report::Begun(shape) => Message::Begun(shape),
                Report::Ended(section) => Message::Ended(section),
                Report::Unseen(reason) => Message::Unseen(reason),
            });
        })
    }
}

/// Runs a pass in a process of its own, whose executable is this one, and keeps what it reports, even if it crashes or makes no
/// progress for `stall`. An error: the folder for its data cannot be used.
pub fn observe(pass: &Pass, stall: Duration) -> Result<Audit, MachineError> {
    let name: String = pass.engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = DataFolder::create(&pass.data, &pass.run, &format!("{}-{name}-{}", pass.run, pass.level))
        .map_err(MachineError::from)?;
    let mut audit = Audit {
        engine: pass.engine.clone(),
        version: None,
        options: pass.options.clone(),
        level: pass.level,
        seed: pass.seed,
        group: GROUP,
        sections: Vec::new(),
        before: BTreeMap::new(),
        unseen: None,
    };
    match start(pass, &folder.database()) {
        Ok(mut process) => watch(&mut process, stall, &mut audit),
        Err(error) => audit.unseen = Some(format!("cannot start its process: {error}")),
    }
    folder.remove().map_err(MachineError::from)?;
    Ok(audit)
}

fn start(pass: &Pass, data: &Path) -> std::io::Result<TaskProcess<Message>> {
    // The path is absolute because an engine may change the working folder.
    let pass = Pass { data: std::path::absolute(data)?, ..pass.clone() };
    pass.start(&std::env::current_exe()?, |command| {
        command.envs(environment_of(&pass.engine)).stderr(Stdio::null());
    })
}

/// Follows the process to its end.
fn watch(process: &mut TaskProcess<Message>, stall: Duration, audit: &mut Audit) {
    let mut doing = "the start".to_string();
    let mut is_done = false;
    let ended = follow(process, stall, |message| match message {
        Message::Opened { version, level, before } => {
            audit.level = level;
            audit.version = Some(version).filter(|version| !version.is_empty());
            audit.before = before;
        }
        Message::Begun(shape) => doing = shape.plural().to_string(),
        Message::Ended(section) => {
            doing = "close".into();
            audit.sections.push(section);
        }
        Message::Unseen(reason) => audit.unseen = Some(reason),
        Message::Done => is_done = true,
    });
    if !(is_done && ended.is_success()) {
        audit.unseen = Some(format!("{ended} (in {doing})"));
    }
}
