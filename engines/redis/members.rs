//! The nodes of a cluster as members that fail while the core measures: they are announced over a socket within this process,
//! and requests to start one again, and which ones lead, are answered by a thread (`crates/core/src/engine/members.rs`).

#![allow(unsafe_code, reason = "a descriptor that the core names, and a wait for two of them")]

use super::cluster_nodes::Nodes;
use super::server::no_thread;
use kvdyno_driver::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The environment variable with this process's number and the descriptor of the socket, `PID:FD`. The core sets it before it
/// loads the plug-in if the workload has faults.
const CHANNEL: &str = "KVDYNO_MEMBERS";

/// The thread that answers; it ends when this is dropped.
pub(super) struct Members {
    /// Closed to end the thread. The socket itself stays open: the next database uses it too.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    /// Members may fail in the phase that runs.
    fail_now: Arc<AtomicBool>,
}

/// Whether the workload has faults.
pub(super) fn are_disturbed() -> bool {
    descriptor(&std::env::var(CHANNEL).unwrap_or_default()).is_some()
}

/// The socket. The nodes, and the process that opens the database at the end, inherit the variable but not the socket.
fn descriptor(text: &str) -> Option<RawFd> {
    let (process, number) = text.split_once(':')?;
    let is_this = process.parse() == Ok(std::process::id());
    number.parse().ok().filter(|number| is_this && *number >= 0)
}

/// A line of the members: `members NAME=PROCESS NAME=PROCESS`.
fn announcement(nodes: &Nodes) -> String {
    let words = nodes.all().map(|node| format!(" {}={}", node.name, node.server.process()));
    format!("members{}\n", words.collect::<String>())
}

/// The answer to a request: `leader`, `start NAME`, `restart NAME`, `phase disturbed` or `phase calm`.
fn answer(nodes: &Nodes, fail_now: &AtomicBool, line: &str) -> Result<String, Error> {
    let (word, name) = line.split_once(' ').unwrap_or((line, ""));
    if word == "phase" {
        fail_now.store(name == "disturbed", Ordering::Release);
        return Ok("ok".to_string());
    }
    if word == "leader" {
        let leaders = nodes.leaders();
        let none = || Error::new("no master serves");
        return (!leaders.is_empty()).then(|| format!("leader {}", leaders.join(" "))).ok_or_else(none);
    }
    let node = nodes.all().find(|node| node.name == name);
    let node = node.ok_or_else(|| Error::new(format!("no member named `{name}`")))?;
    node.server.again(word == "restart")?;
    Ok(format!("process {}", node.server.process()))
}

impl Members {
    /// Tells the core of the nodes, if the workload has faults; otherwise there is nothing to end.
    pub fn announce(nodes: &Arc<Nodes>) -> Result<Option<Members>, Error> {
        let Some(number) = descriptor(&std::env::var(CHANNEL).unwrap_or_default()) else { return Ok(None) };
        // SAFETY: the core keeps the socket open while a database is open.
        let socket = UnixStream::from(unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?);
        Members::serve(socket, Arc::clone(nodes)).map(Some)
    }

    pub(super) fn serve(socket: UnixStream, nodes: Arc<Nodes>) -> Result<Members, Error> {
        (&socket).write_all(announcement(&nodes).as_bytes())?;
        let (stop, stopped) = UnixStream::pair()?;
        let fail_now = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&fail_now);
        let thread = std::thread::Builder::new().name("members".into()).spawn(move || {
            let mut lines = BufReader::new(&socket);
            let mut line = String::new();
            while has_request(&socket, &stopped) {
                line.clear();
                if !matches!(lines.read_line(&mut line), Ok(1..)) {
                    return;
                }
                let said = answer(&nodes, &told, line.trim_end()).unwrap_or_else(|error| {
                    let words: Vec<&str> = error.text.split_whitespace().collect();
                    format!("error {}", words.join(" "))
                });
                if (&socket).write_all(format!("{said}\n").as_bytes()).is_err() {
                    return;
                }
            }
        });
        let thread = thread.map_err(|error| no_thread(&error))?;
        Ok(Members { stop: Some(stop), thread: Some(thread), fail_now })
    }

    /// Whether members may fail in the phase that runs.
    pub fn fail_now(&self) -> bool {
        self.fail_now.load(Ordering::Acquire)
    }
}

/// Waits for a request, of which the core sends one at a time; false: the thread shall end.
fn has_request(socket: &UnixStream, stopped: &UnixStream) -> bool {
    let waiting =
        |stream: &UnixStream| libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut both = [waiting(socket), waiting(stopped)];
    loop {
        // SAFETY: the descriptors of two live streams.
        let ready = unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
        let is_interrupted = std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        match ready {
            1.. => return both[1].revents == 0,
            _ if is_interrupted => {}
            _ => return false,
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{is_here, nodes};

    #[test]
    fn only_this_process_has_the_socket() {
        let own = std::process::id();
        assert_eq!(descriptor(&format!("{own}:7")), Some(7));
        for text in
            [String::new(), "x".into(), format!("{}:7", own + 1), format!("{own}:-1"), format!("{own}:")]
        {
            assert_eq!(descriptor(&text), None, "{text}");
        }
    }

    #[test]
    fn nodes_are_announced_and_started_again_with_what_they_had() {
        if !is_here() {
            return;
        }
        let (folder, nodes) = nodes("members", 1, 1);
        let (core, driver) = UnixStream::pair().unwrap();
        let members = Members::serve(driver, Arc::clone(&nodes)).unwrap();
        let mut answers = BufReader::new(core.try_clone().unwrap());
        let mut told = || {
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            line.trim_end().to_string()
        };
        let processes: Vec<u32> = nodes.all().map(|node| node.server.process()).collect();
        let [first, second] = processes[..] else { panic!("{processes:?}") };
        assert_eq!(told(), format!("members node-1={first} node-2={second}"));
        let mut ask = |request: &str| {
            (&core).write_all(format!("{request}\n").as_bytes()).unwrap();
            told()
        };
        // A node that waits for its disk may not say so in time.
        assert!((0..60).any(|_| ask("leader") == "leader node-1"));
        nodes.all().next().unwrap().wire().unwrap().ask(&[b"SET", b"kept", b"x"]).unwrap();
        // SAFETY: a system call without memory; the process is a child.
        unsafe { libc::kill(first as i32, libc::SIGKILL) };
        let line = ask("start node-1");
        let third = nodes.all().next().unwrap().server.process();
        assert!(line == format!("process {third}") && third != first, "{line}");
        nodes.until_served().unwrap();
        let value = nodes.all().next().unwrap().wire().unwrap().texts(&[b"GET", b"kept"]).unwrap();
        assert_eq!(value, ["x"], "the log was written before the reply");
        let line = ask("restart node-2");
        let fourth = nodes.all().nth(1).unwrap().server.process();
        assert!(line == format!("process {fourth}") && fourth != second, "{line}");
        assert_eq!(ask("start node-9"), "error no member named `node-9`");
        assert!(!members.fail_now(), "nothing fails before the core says so");
        for (phase, fail_now) in [("phase disturbed", true), ("phase calm", false)] {
            assert_eq!((ask(phase).as_str(), members.fail_now()), ("ok", fail_now));
        }
        drop(members);
        assert!(nodes.all().all(|node| node.server.end_of().is_none()));
        drop(nodes);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
