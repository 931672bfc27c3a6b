//! The servers that a driver has started, as members that the core lets fail while it measures. Not part of the C boundary: a
//! socket within this process, which a driver that starts servers finds by an environment variable. The driver writes a line with
//! its members when it has opened the database, and answers requests: to start a member again, which ones lead, and whether members
//! fail in the phase that begins.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The environment variable: the process and the descriptor of the driver's end, `PID:FD`.
const CHANNEL: &str = "KVDYNO_MEMBERS";
/// The environment variable: the program by which a driver starts its members, as `LAUNCHER member NUMBER PROGRAM ARGUMENTS`, from 1 in
/// the order in which they are announced; if it is absent, it starts them itself.
const LAUNCHER: &str = "KVDYNO_LAUNCHER";
/// The environment variable: the members' network; the address of member 7 is `NETWORK.7`. If it is absent, a driver chooses
/// addresses of the loopback interface.
const NETWORK: &str = "KVDYNO_NETWORK";
/// The environment variable: where a launched member hands over its syncs, `PID:FD`, as for [`CHANNEL`].
const SYNCS: &str = "KVDYNO_SYNCS";
/// How long the driver may take to answer: a member that is asked to end may take half of it.
const ANSWER: Duration = Duration::from_secs(60);

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The number of its process.
    pub process: u32,
}

/// Why a driver's members are unknown, or not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum MembersError {
    /// What it has announced cannot be read.
    #[error("the members of the store cannot be read: {0}")]
    Unreadable(io::Error),
    /// It has announced something else.
    #[error("the driver announces no members in `{0}`")]
    NoMembers(String),
    /// A request did not reach it, or no answer can be read.
    #[error("the driver cannot be asked `{request}`: {error}")]
    Unasked {
        /// The request.
        request: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// It did not answer a request in time.
    #[error("the driver did not answer `{0}` within {seconds} s", seconds = ANSWER.as_secs())]
    Late(String),
    /// It answered something else.
    #[error("the driver's answer `{0}` is not one to this request")]
    Unclear(String),
    /// It cannot do what was requested: why.
    #[error("{0}")]
    Refused(String),
}

/// What members get when they are started.
#[derive(Debug, Default)]
pub struct Launch {
    network: Option<String>,
    syncs: Option<RawFd>,
}

impl Launch {
    /// A network for members with links of their own, and the descriptor to which they hand over their syncs.
    pub fn of(network: Option<&str>, syncs: Option<RawFd>) -> Launch {
        Launch { network: network.map(String::from), syncs }
    }

    /// Tells the driver, and the members that it starts. To be called before the plug-in is loaded, and before this process has a
    /// second thread.
    pub fn tell(&self, executable: &Path) {
        let is_needed = self.network.is_some() || self.syncs.is_some();
        let syncs = self.syncs.map(|descriptor| format!("{}:{descriptor}", std::process::id()));
        let all = [
            (LAUNCHER, is_needed.then(|| executable.into())),
            (NETWORK, self.network.as_ref().map(OsString::from)),
            (SYNCS, syncs.map(OsString::from)),
        ];
        for (name, value) in all {
            // SAFETY: this process has one thread, as the caller promises.
            unsafe {
                match value {
                    Some(value) => std::env::set_var(name, value),
                    None => std::env::remove_var(name),
                }
            }
        }
    }

    /// What the process that started this one has told.
    pub fn found() -> Launch {
        let text = |name| std::env::var(name).ok();
        let parent = std::os::unix::process::parent_id().to_string();
        let syncs = text(SYNCS).and_then(|text| {
            let (process, descriptor) = text.split_once(':')?;
            // Other programs inherit the variable but not the socket.
            descriptor.parse().ok().filter(|_| process == parent)
        });
        Launch { network: text(NETWORK), syncs }
    }

    /// The members' network; none: they have no links of their own.
    pub fn network(&self) -> Option<&str> {
        self.network.as_deref()
    }

    /// The descriptor to which a member hands over its syncs; none: its disk is never slow.
    pub fn syncs(&self) -> Option<RawFd> {
        self.syncs
    }
}

/// The members of the open database, and the way to their driver.
pub struct Members {
    reader: BufReader<UnixStream>,
    /// The driver's end; each opened database has a duplicate of it.
    theirs: UnixStream,
    all: Vec<Member>,
}

impl Members {
    /// Makes the socket. To be called before the plug-in is loaded, and before this process has a second thread.
    pub fn prepare() -> io::Result<Members> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER))?;
        // SAFETY: this process has one thread, as the caller promises.
        unsafe { std::env::set_var(CHANNEL, format!("{}:{}", std::process::id(), theirs.as_raw_fd())) };
        Ok(Members { reader: BufReader::new(ours), theirs, all: Vec::new() })
    }

    /// Reads what a driver has announced; to be called when it has opened the database.
    pub fn take_announced(&mut self) -> Result<(), MembersError> {
        self.all.clear();
        self.reader.get_ref().set_nonblocking(true).map_err(MembersError::Unreadable)?;
        loop {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) => self.all = announced(&line)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(MembersError::Unreadable(error)),
            }
        }
        self.reader.get_ref().set_nonblocking(false).map_err(MembersError::Unreadable)
    }

    /// The members; none: the driver has started no servers, or none that may fail.
    pub fn all(&self) -> &[Member] {
        &self.all
    }

    /// The positions of the members that lead: one, or as many as share the keys. Never empty.
    pub fn leaders(&mut self) -> Result<Vec<usize>, MembersError> {
        let answer = self.ask("leader")?;
        let Some(names) = answer.strip_prefix("leader ") else { return Err(MembersError::Unclear(answer)) };
        let position = |name: &str| self.all.iter().position(|member| member.name == name);
        let places: Option<Vec<usize>> = names.split_whitespace().map(position).collect();
        places.filter(|places| !places.is_empty()).ok_or(MembersError::Unclear(answer))
    }

    /// Starts a member whose process was killed.
    pub fn start(&mut self, member: usize) -> Result<(), MembersError> {
        self.run("start", member)
    }

    /// Asks a member to end, and starts it again.
    pub fn restart(&mut self, member: usize) -> Result<(), MembersError> {
        self.run("restart", member)
    }

    /// Says whether members fail in the phase that begins: only then does an op fail after a short time, and only then is that no
    /// failure of the trial. To be called before the sessions of each phase.
    pub fn begin_phase(&mut self, has_faults: bool) -> Result<(), MembersError> {
        let answer = self.ask(if has_faults { "phase disturbed" } else { "phase calm" })?;
        if answer == "ok" { Ok(()) } else { Err(MembersError::Unclear(answer)) }
    }

    fn run(&mut self, what: &str, member: usize) -> Result<(), MembersError> {
        let answer = self.ask(&format!("{what} {}", self.all[member].name))?;
        let process = answer.strip_prefix("process ").and_then(|number| number.parse().ok());
        self.all[member].process = process.ok_or(MembersError::Unclear(answer))?;
        Ok(())
    }

    fn ask(&mut self, request: &str) -> Result<String, MembersError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => MembersError::Late(request.to_string()),
            _ => MembersError::Unasked { request: request.to_string(), error },
        };
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes()).map_err(failed)?;
        let mut line = String::new();
        self.reader.read_line(&mut line).map_err(failed)?;
        match line.trim_end().strip_prefix("error ") {
            Some(text) => Err(MembersError::Refused(text.to_string())),
            None => Ok(line.trim_end().to_string()),
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        // A driver that still reads sees the end. It may have closed its end already.
        let _ = self.theirs.shutdown(std::net::Shutdown::Both);
    }
}

/// `members NAME=PROCESS NAME=PROCESS`.
fn announced(line: &str) -> Result<Vec<Member>, MembersError> {
    let mut words = line.split_whitespace();
    let is_list = words.next() == Some("members");
    let member = |word: &str| {
        let (name, process) = word.split_once('=')?;
        Some(Member { name: name.to_string(), process: process.parse().ok()? })
    };
    let all: Option<Vec<Member>> = words.map(member).collect();
    all.filter(|_| is_list).ok_or_else(|| MembersError::NoMembers(line.trim_end().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The core's side, and a driver that answers in turn.
    fn with_driver(answers: &'static [&'static str]) -> (Members, std::thread::JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let driver = theirs.try_clone().unwrap();
        (&driver).write_all(b"members old=1\nmembers a=10 b=11\n").unwrap();
        let served = std::thread::spawn(move || {
            let mut asked = Vec::new();
            let mut reader = BufReader::new(driver.try_clone().unwrap());
            for answer in answers {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                asked.push(line.trim_end().to_string());
                (&driver).write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
            asked
        });
        (Members { reader: BufReader::new(ours), theirs, all: Vec::new() }, served)
    }

    #[test]
    fn members_are_those_of_the_last_open_and_the_driver_is_asked() {
        let (mut members, served) = with_driver(&[
            "leader b",
            "process 12",
            "error no such thing",
            "error no member leads",
            "what?",
            "leader b a",
            "leader ",
            "ok",
            "ok",
            "what?",
        ]);
        members.take_announced().unwrap();
        let names: Vec<&str> = members.all().iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(members.leaders().unwrap(), [1]);
        members.start(1).unwrap();
        assert_eq!(members.all()[1].process, 12);
        assert_eq!(members.restart(0).unwrap_err().to_string(), "no such thing");
        assert_eq!(members.leaders().unwrap_err().to_string(), "no member leads");
        assert!(members.leaders().unwrap_err().to_string().contains("`what?`"));
        assert_eq!(members.leaders().unwrap(), [1, 0], "members that share the keys");
        assert!(members.leaders().unwrap_err().to_string().contains("`leader`"));
        members.begin_phase(false).unwrap();
        members.begin_phase(true).unwrap();
        assert!(members.begin_phase(true).unwrap_err().to_string().contains("`what?`"));
        let asked = ["leader", "start b", "restart a", "leader", "leader", "leader", "leader"];
        let phases = ["phase calm", "phase disturbed", "phase disturbed"];
        assert_eq!(served.join().unwrap(), [&asked[..], &phases[..]].concat());
        members.take_announced().unwrap();
        assert_eq!(members.all(), [], "a database without members was opened");
    }

    #[test]
    fn an_unclear_list_is_an_error() {
        assert!(announced("members a=1 b").is_err() && announced("hello").is_err());
        assert!(announced("members\n").unwrap().is_empty());
    }
}
