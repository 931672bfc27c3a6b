//! What this program runs in processes of its own, so that a crash or a hang is a result: `kvdyno inner TASK`, where TASK is the
//! name of a task and what it is about, as JSON.
//!
//! A task says what its process is before anything else happens in it ([`Task::place`], [`Task::prepare`]), what it does
//! ([`Task::run`]), and what it tells the process that started it ([`Task::Message`]); [`TaskProcess`] is the other side.
//!
//! Every user of the machine can see the arguments of a process, so a task has no secrets; it may name a file that has them.

use super::processes::{
    Fate, TaskProcess, become_part_of_trial, become_trial_process, messages_of, write_message,
};
use super::start;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, PipeWriter};
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

/// The hidden command.
pub const COMMAND: &str = "inner";

/// The tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Measures one trial, or the end of one.
    Trial,
    /// Measures one trial with redis-benchmark.
    RedisBenchmark,
    /// Loads plug-ins and tells what they contain.
    Plugins,
    /// Opens a database and tells the version of its engine.
    Version,
    /// Verifies one engine.
    Verify,
    /// Verifies a database that another process has written.
    VerifyReopened,
    /// Runs an accounting pass.
    Audit,
    /// Runs one step of a fault.
    Faults,
    /// Makes commits until it is crashed.
    CrashWorker,
    /// Forks processes that make commits, and kills them at their calls.
    CrashCalls,
    /// Serves a device that records what is written to it.
    CrashDevice,
    /// Reads a database after a crash.
    CrashVerifier,
    /// Forks processes that read databases after crashes.
    CrashReader,
}

/// To which processes that of a task belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It has a guard, and all that it starts ends with it; started by a [`TaskProcess`].
    Own,
    /// A process of a task started it, and it ends with that one.
    PartOfAnother,
}

/// A task, as one process gives it to another.
pub trait Task: Serialize + DeserializeOwned {
    /// Its name.
    const KIND: Kind;
    /// What its process tells the one that started it.
    type Message: Serialize + DeserializeOwned + Send + 'static;
    /// What [`Task::prepare`] makes.
    type Prepared;

    /// To which processes that of this task belongs.
    fn place(&self) -> Place {
        Place::Own
    }

    /// What must happen before a plug-in is loaded, before a thread is started and before memory is used.
    fn prepare(&self) -> Self::Prepared;

    /// Does the task, and returns the exit code. An `Err` is printed to stderr.
    fn run(self, prepared: Self::Prepared) -> Result<u8, String>;

    /// Tells the process that started this one. If that is gone, this one ends with it.
    fn tell(message: &Self::Message) {
        let _ = write_message(&mut io::stdout(), message);
    }

    /// The command that runs it.
    fn command(&self, executable: &Path) -> io::Result<Command> {
        let mut command = Command::new(executable);
        command.arg(COMMAND).arg(serde_json::to_string(&BTreeMap::from([(Self::KIND, self)]))?);
        Ok(command)
    }

    /// Starts its process; `with` sets what else the command needs.
    fn start(
        &self,
        executable: &Path,
        with: impl FnOnce(&mut Command),
    ) -> io::Result<TaskProcess<Self::Message>> {
        let mut command = self.command(executable)?;
        with(&mut command);
        TaskProcess::start(&mut command)
    }

    /// Starts its process, which is given orders by the returned end of a pipe until that is closed.
    fn start_for_orders(
        &self,
        executable: &Path,
        with: impl FnOnce(&mut Command),
    ) -> io::Result<(TaskProcess<Self::Message>, PipeWriter)> {
        let mut command = self.command(executable)?;
        with(&mut command);
        TaskProcess::start_for_orders(&mut command)
    }

    /// Runs its process, which is a part of this one's task, to the end.
    fn finish(&self, executable: &Path) -> io::Result<Finished<Self::Message>> {
        let mut command = self.command(executable)?;
        let output = start::output(command.stdin(Stdio::null()).stderr(Stdio::inherit()))?;
        let (messages, printed) = messages_of(&String::from_utf8_lossy(&output.stdout));
        Ok(Finished { messages, printed, fate: Fate::of(Some(output.status)) })
    }
}

/// What a process has told that has ended.
#[derive(Debug)]
pub struct Finished<M> {
    /// Its messages.
    pub messages: Vec<M>,
    /// The other lines on its stdout.
    pub printed: Vec<String>,
    /// How it ended.
    pub fate: Fate,
}

/// A task that this process was given: its name, and what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Its name.
    pub kind: Kind,
    about: Value,
}

/// Why a text is not a task.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// It is not JSON, or names no task.
    #[error("{0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is none or several.
    #[error("expected one task")]
    NotOne,
}

impl FromStr for Given {
    type Err = GivenError;

    fn from_str(json: &str) -> Result<Given, GivenError> {
        let all: BTreeMap<Kind, Value> = serde_json::from_str(json)?;
        let mut all = all.into_iter();
        match (all.next(), all.next()) {
            (Some((kind, about)), None) => Ok(Given { kind, about }),
            _ => Err(GivenError::NotOne),
        }
    }
}

impl Given {
    /// Becomes the process of the task and runs it.
    pub fn run<T: Task>(self) -> Result<u8, String> {
        debug_assert_eq!(self.kind, T::KIND);
        let task: T = serde_json::from_value(self.about).map_err(|error| format!("{COMMAND}: {error}"))?;
        match task.place() {
            Place::Own => become_trial_process(),
            Place::PartOfAnother => become_part_of_trial(),
        }
        let prepared = task.prepare();
        task.run(prepared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Example {
        number: u64,
    }

    impl Task for Example {
        const KIND: Kind = Kind::Audit;
        type Message = ();
        type Prepared = ();

        fn prepare(&self) {}

        fn run(self, (): ()) -> Result<u8, String> {
            Ok(0)
        }
    }

    #[test]
    fn a_task_is_one_argument() {
        let command = Example { number: u64::MAX }.command(Path::new("kvdyno")).unwrap();
        let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words, ["inner", "{\"audit\":{\"number\":18446744073709551615}}"]);
        let given: Given = words[1].parse().unwrap();
        assert_eq!(given.kind, Kind::Audit);
        assert_eq!(serde_json::from_value::<Example>(given.about).unwrap(), Example { number: u64::MAX });
    }

    #[test]
    fn what_is_not_one_task_is_refused() {
        for text in ["", "{}", "audit", "{\"unknown\":{}}", "{\"audit\":1,\"trial\":2}"] {
            assert!(text.parse::<Given>().is_err(), "{text}");
        }
    }
}
