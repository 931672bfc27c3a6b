//! The processes of a trial. A guard process runs between the trial and the process that starts it: it adopts
//! whatever processes the trial leaves, ends them, and then ends with the same status as the trial. The starting
//! process waits only for the guard.

mod fate;
mod freeze;
mod group;
mod guard;
mod orders;
mod patience;
mod told;
mod uninterruptible;

pub use fate::Fate;
pub use freeze::{StopError, cap_own_memory, continue_tree, kill_tree, stop_tree};
#[cfg(target_os = "linux")]
pub(super) use guard::end_as;
pub(super) use guard::{become_part_of_trial, become_trial_process};
pub use orders::{order, orders};
pub use patience::Patience;
pub use told::{GUARD, TRESPASS, messages_of, write_message};
pub use uninterruptible::responds;

use super::{Printed, signals, start};
use group::Group;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use told::{Told, told};

/// An environment variable of every process of a trial; its value identifies the trial.
const MARK: &str = "KVDYNO_TRIAL";
/// An environment variable of a trial: the folder of its control group.
const GROUP: &str = "KVDYNO_TRIAL_GROUP";
/// Longer lines are not ours.
const LINE_BYTES: u64 = 16 << 20;
/// Lines in the queue to the reader.
const LINES: usize = 256;
/// How long a killed trial may take to end: the memory of a large process is freed first. Seconds.
const DYING_SECONDS: u32 = 5;
/// How long the guard may take to end everything before it is killed itself.
const GUARD_MAY_TAKE: Duration = Duration::from_secs(9);
/// Interval between two checks of a process that is ending.
const PAUSE: Duration = Duration::from_millis(2);
/// How long to wait for lines still in the pipe after the process has ended.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The process of a task with all processes that it starts. If it is dropped before it has ended, all of them are killed.
pub struct TaskProcess<M> {
    guard: Child,
    mark: String,
    group: Option<Group>,
    /// `None` if there are no more.
    lines: Option<Receiver<Line<M>>>,
    /// What was printed on stdout before the message that was returned last, and is not ours.
    printed: Printed,
    /// What the guard has told.
    left: Option<Left>,
    /// The access to a guard page that ended it.
    trespass: Option<String>,
    killed: Option<Instant>,
    ended: Option<(ExitStatus, Instant)>,
}

/// What one of our lines tells, with what was printed before it; `None` after the last one.
type Line<M> = (Printed, Option<Told<M>>);

/// What the process of a task did in some time.
#[derive(Debug)]
pub enum Event<M> {
    /// It told this.
    Told(M),
    /// Nothing.
    Quiet,
    /// It has ended, and so have all processes that it started.
    Ended(End),
}

/// How the process of a task ended.
#[derive(Debug, Default)]
pub struct End {
    /// `None` if it could not be ended.
    pub status: Option<ExitStatus>,
    /// The names of the processes that it started and that were still running after it had ended by itself.
    pub left: Vec<String>,
    /// Processes that were killed and have not ended.
    pub blocked: Vec<Blocked>,
    /// The access to a guard page that ended it.
    pub trespass: Option<String>,
}

impl End {
    /// How it ended, for words.
    pub fn fate(&self) -> Fate {
        Fate::of(self.status)
    }
}

/// A process that was killed and has not ended: the kernel blocks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// Its number.
    pub process: u32,
    /// Its name.
    pub name: String,
}

/// What the guard tells at the end: the names of the processes that the task left, and those that did not end.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    left: Vec<String>,
    blocked: Vec<Blocked>,
}

impl<M: DeserializeOwned + Send + 'static> TaskProcess<M> {
    /// Starts the command of a task, with an empty stdin; its stdout is read here.
    pub fn start(command: &mut Command) -> io::Result<TaskProcess<M>> {
        let (reader, writer) = io::pipe()?;
        Self::start_into(command.stdin(Stdio::null()).stdout(writer), reader)
    }

    /// The same, for a process that reads orders from its stdin until the returned end of it is closed.
    pub fn start_for_orders(command: &mut Command) -> io::Result<(TaskProcess<M>, PipeWriter)> {
        let ((reader, writer), (orders, sender)) = (io::pipe()?, io::pipe()?);
        Ok((Self::start_into(command.stdin(orders).stdout(writer), reader)?, sender))
    }

    /// The same, for a process whose stderr is read here too, in the order in which it writes.
    pub fn start_with_stderr(command: &mut Command) -> io::Result<TaskProcess<M>> {
        let (reader, writer) = io::pipe()?;
        let command = command.stdin(Stdio::null()).stderr(writer.try_clone()?).stdout(writer);
        Self::start_into(command, reader)
    }

    fn start_into(command: &mut Command, reader: PipeReader) -> io::Result<TaskProcess<M>> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}-{now}", std::process::id());
        let group = Group::create();
        command.env(MARK, &mark).env_remove(GROUP);
        if let Some(group) = &group {
            command.env(GROUP, group.folder());
        }
        // A separate process group: Ctrl-C is handled by the starting process. Before it has that, a Ctrl-C reaches it too.
        command.process_group(0);
        // The thread is started first: without it, nothing would read what the process prints.
        let lines = lines_of(reader);
        let guard = lines.is_ok().then(|| signals::with_interrupts_blocked(|| start::process(command)));
        // The command would keep the pipes open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (lines, printed) = (Some(lines?), Printed::default());
        let guard = guard.expect("it was started, because the thread was")?;
        Ok(TaskProcess {
            guard,
            mark,
            group,
            lines,
            printed,
            left: None,
            trespass: None,
            killed: None,
            ended: None,
        })
    }
}

impl<M> TaskProcess<M> {
    /// The next message, or the end; waits at most this long.
    pub fn next(&mut self, wait: Duration) -> Event<M> {
        match self.lines.as_ref().map(|lines| lines.recv_timeout(wait)) {
            Some(Ok((printed, told))) => {
                self.printed.append(printed);
                match told {
                    Some(Told::Message(message)) => return Event::Told(message),
                    Some(Told::Trespass(text)) => self.trespass = Some(text),
                    Some(Told::Left(left)) => self.left = Some(left),
                    None => {}
                }
            }
            // The guard keeps the pipe open, so end of file means that it has ended.
            Some(Err(RecvTimeoutError::Disconnected)) => self.lines = None,
            Some(Err(RecvTimeoutError::Timeout)) => {}
            None => std::thread::sleep(wait.min(PAUSE)),
        }
        if self.ended.is_none()
            && let Ok(Some(status)) = self.guard.try_wait()
        {
            self.ended = Some((status, Instant::now()));
        }
        match (self.ended, self.killed) {
            // A process that could not be ended may keep the pipe open without end.
            (Some((status, at)), _) if self.lines.is_none() || at.elapsed() > LAST_LINES => {
                let Left { left, blocked } = self.end_the_rest();
                uninterruptible::remember(blocked.iter().map(|blocked| blocked.process));
                let trespass = self.trespass.take();
                Event::Ended(End { status: Some(status), left, blocked, trespass })
            }
            (None, Some(at)) if at.elapsed() > 2 * GUARD_MAY_TAKE => Event::Ended(End::default()),
            (None, Some(at)) if at.elapsed() > GUARD_MAY_TAKE => {
                // It may be gone already; then there is nothing to kill.
                let _ = self.guard.kill();
                Event::Quiet
            }
            _ => Event::Quiet,
        }
    }

    /// What was printed on stdout and is not ours, since the last call and until the event that was returned last.
    pub fn take_printed(&mut self) -> Printed {
        std::mem::take(&mut self.printed)
    }

    /// Ends it and all that it has started; [`TaskProcess::next`] returns when that is done.
    pub fn kill(&mut self) {
        if self.killed.is_none() && self.ended.is_none() {
            self.killed = Some(Instant::now());
            guard::end(self.guard.id());
        }
    }

    /// Cleans up if somebody has killed the guard. Returns what was left.
    fn end_the_rest(&mut self) -> Left {
        // Kills everything in it.
        self.group = None;
        self.left.take().unwrap_or_else(|| Left {
            left: Vec::new(),
            blocked: guard::end_marked(&format!("{MARK}={}", self.mark)),
        })
    }
}

impl<M> Drop for TaskProcess<M> {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.guard.kill();
            let _ = self.guard.wait();
            self.left = None;
            self.end_the_rest();
        }
    }
}

/// Our lines, read by a detached thread.
fn lines_of<M: DeserializeOwned + Send + 'static>(stdout: PipeReader) -> io::Result<Receiver<Line<M>>> {
    let (send, receive) = sync_channel(LINES);
    start::thread(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        let mut printed = Printed::default();
        loop {
            line.clear();
            match reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => {
                    // If nobody waits for it any more, it is not needed.
                    let _ = send.send((printed, None));
                    return;
                }
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(line.trim_ascii_end());
            // Output of an engine without a line end may precede it.
            let (before, told) = match told(&text) {
                Some((before, told)) => (before, Some(told)),
                None => (&*text, None),
            };
            // The guard begins a new line, which may be empty.
            if !(before.is_empty() || before.starts_with(GUARD)) {
                printed.add(before);
            }
            if told.is_some() && send.send((std::mem::take(&mut printed), told)).is_err() {
                return;
            }
        }
    })?;
    Ok(receive)
}
