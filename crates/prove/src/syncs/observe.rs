//! Both sides of the process of an accounting pass: the parent that starts it and keeps what it reports, and the process itself.

use super::{GROUP, Order, Report, account};
use crate::child::{Ended, follow};
use kvdyno_core::engine::{Registry, environment_of};
use kvdyno_core::results::Durability;
use kvdyno_core::results::audit::{Audit, Section, Shape};
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::sync_calls::become_counted;
use kvdyno_measure::{TrialProcess, become_trial_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The hidden command that runs a pass; its argument is the pass as JSON.
const COMMAND: &str = "audit-one";
/// The prefix of each line that it writes for its parent.
const LINE: &str = "kvdyno-audit ";

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

/// A line from the process.
#[derive(Serialize, Deserialize)]
enum Line {
    Opened { version: String, level: Durability, before: BTreeMap<String, u64> },
    Begun(Shape),
    Ended(Section),
    Unseen(String),
    Done,
}

/// Runs in the process: the pass in a JSON text. An error is printed for the parent, which keeps what was reported before.
pub fn run_pass(json: &str) -> Result<(), String> {
    let pass: Pass = serde_json::from_str(json).map_err(|error| format!("{COMMAND}: {error}"))?;
    become_trial_process();
    // Before the plug-in is loaded and before any thread is started, so that nothing escapes the count.
    let calls = become_counted();
    let tell = |line: Line| {
        // If the parent is gone, this process ends with it.
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{LINE}{}", serde_json::to_string(&line).unwrap_or_default());
        let _ = stdout.flush();
    };
    let outcome = calls.map_err(|error| {
        format!("no seccomp notification ({error}); `kvdyno doctor` says what this machine allows")
    });
    let outcome = outcome.and_then(|calls| {
        let registry = Registry::alone(pass.plugin.as_deref())?;
        let engine =
            registry.engine(&pass.engine).map_err(|_| "the engine is no longer available".to_string())?;
        let order = Order {
            level: pass.level,
            settings: &pass.options,
            seed: pass.seed,
            commits: pass.commits,
            shapes: &pass.shapes,
        };
        account(&engine, &pass.data, &order, &calls, |report| {
            tell(match report {
                Report::Opened(version, level, before) => {
                    Line::Opened { version, level, before: before.by_name() }
                }
                Report::Begun(shape) => Line::Begun(shape),
                Report::Ended(section) => Line::Ended(section),
                Report::Unseen(reason) => Line::Unseen(reason),
            });
        })
    });
    if let Err(reason) = outcome {
        tell(Line::Unseen(reason));
    }
    tell(Line::Done);
    Ok(())
}

/// Runs a pass in a process of its own, whose executable is this one, and keeps what it reports, even if it crashes or makes no
/// progress for `stall`. An error: the folder for its data cannot be used.
pub fn observe(pass: &Pass, stall: Duration) -> Result<Audit, String> {
    let name: String = pass.engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = DataFolder::create(&pass.data, &pass.run, &format!("{}-{name}-{}", pass.run, pass.level))?;
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
    folder.remove()?;
    Ok(audit)
}

fn start(pass: &Pass, data: &Path) -> std::io::Result<TrialProcess> {
    // The path is absolute because an engine may change the working folder.
    let pass = Pass { data: std::path::absolute(data)?, ..pass.clone() };
    let mut command = Command::new(std::env::current_exe()?);
    command.envs(environment_of(&pass.engine));
    command.arg(COMMAND).arg(serde_json::to_string(&pass)?).stderr(Stdio::null());
    TrialProcess::start(&mut command)
}

/// Follows the process to its end.
fn watch(process: &mut TrialProcess, stall: Duration, audit: &mut Audit) {
    let mut doing = "the start".to_string();
    let mut is_done = false;
    let ended = follow(process, stall, |line| {
        match line.strip_prefix(LINE).and_then(|json| serde_json::from_str(json).ok()) {
            Some(Line::Opened { version, level, before }) => {
                audit.level = level;
                audit.version = Some(version).filter(|version| !version.is_empty());
                audit.before = before;
            }
            Some(Line::Begun(shape)) => doing = shape.plural().to_string(),
            Some(Line::Ended(section)) => {
                doing = "close".into();
                audit.sections.push(section);
            }
            Some(Line::Unseen(reason)) => audit.unseen = Some(reason),
            Some(Line::Done) => is_done = true,
            None => {}
        }
    });
    let ended = match ended {
        Ended::Exit(0) if is_done => return,
        Ended::Interrupted => "interrupted by the user".into(),
        Ended::Stalled(seconds) => format!("no progress for {seconds} s, so it was killed"),
        Ended::Signal(signal) => format!("its process died of {signal}"),
        Ended::Exit(code) => format!("its process ended early, with exit code {code}"),
        Ended::Unkillable => "its process could not be killed".into(),
    };
    audit.unseen = Some(format!("{ended} (in {doing})"));
}
