//! A server that the driver starts on a free port of this machine in the trial's folder, and stops with the trial.

#![allow(unsafe_code, reason = "system calls around a process")]

use super::address::Address;
use super::facts::info;
use super::tls::Files;
use super::wire::{Reply, Wire};
use kvdyno_driver::{Error, Level, Status};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pause between two checks of a server that starts or ends.
const LOOK: Duration = Duration::from_millis(2);
/// The driver gives up on a server that does not answer for this long; one that loads its data answers.
const START: Duration = Duration::from_secs(30);
/// A server that writes its data may take a long time to end.
const END: Duration = Duration::from_secs(600);
/// Attempts, because another process may use the free port first.
const TRIES: u32 = 5;
/// The file of a server's output.
const LOG: &str = "server.log";

/// What to start.
pub(super) struct Wanted<'w> {
    /// A program like redis-server.
    pub program: &'w str,
    /// An engine behind our own server instead; empty: no engine.
    pub engine: &'w str,
    pub folder: &'w Path,
    pub level: Level,
    /// As its authors ship it.
    pub as_shipped: bool,
    /// Its password; `None`: one is generated.
    pub password: Option<&'w str>,
    /// A node of a cluster: its host and port, and further lines of its configuration. `None`: a single server.
    pub node: Option<(&'w str, u16, &'w str)>,
}

/// A running server.
pub(super) struct Server {
    child: Mutex<Child>,
    /// The thread that started it lives until this is dropped: a server ends with that thread, not with its process.
    _keeper: Sender<()>,
    name: String,
    is_ours: bool,
    folder: PathBuf,
    pub address: Address,
}

impl Wanted<'_> {
    /// Starts it and waits until it answers. It has then loaded its data, if there is any.
    pub fn start(&self) -> Result<Server, Error> {
        let mut last = Error::new("no free port");
        for _ in 0..TRIES {
            let server = if self.engine.is_empty() { self.redis()? } else { self.ours()? };
            match server.until_it_answers() {
                Ok(()) => return Ok(server),
                Err(error) => last = error,
            }
            if !last.text.contains("Address already in use") {
                break;
            }
        }
        Err(last)
    }

    /// redis-server, or a program that accepts the same configuration.
    fn redis(&self) -> Result<Server, Error> {
        let (host, port, more) = match self.node {
            Some(node) => node,
            None => ("127.0.0.1", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(), ""),
        };
        let password = self.password.map_or_else(password, |known| Ok(known.to_string()))?;
        // The existing files decide what is loaded; the requested settings are applied afterwards.
        let has_log = log_of(self.folder).is_some();
        let is_new = !has_log && !self.folder.join("dump.rdb").exists();
        let appends = if is_new { self.level > Level::None } else { has_log };
        let mut text = format!(
            "bind {host}\nport {port}\n{more}daemonize no\nrequirepass {password}\ndir {}\nappendonly {}\nappendfsync {}\n",
            quoted(self.folder),
            if appends { "yes" } else { "no" },
            if self.level == Level::Power { "always" } else { "no" },
        );
        if !self.as_shipped {
            text += "save \"\"\n";
        }
        let mut command = Command::new(self.program);
        command.arg("-").stdin(Stdio::piped());
        let server = self.spawned(command, Address::at(host, port, Some(password)))?;
        let stdin = server.child().stdin.take();
        if let Some(mut stdin) = stdin {
            // If it has ended already, its log has the reason.
            let _ = stdin.write_all(text.as_bytes());
        }
        Ok(server)
    }

    /// An engine behind our own server.
    fn ours(&self) -> Result<Server, Error> {
        let level = match (self.as_shipped, self.level) {
            (true, _) => "default",
            (_, Level::None) => "none",
            (_, Level::Process) => "process",
            (_, Level::Power) => "power",
        };
        let mut command = Command::new(std::env::current_exe()?);
        let words = ["serve", self.engine, "--durability", level, "--port", "0", "--dir"];
        command.args(words).arg(self.folder.join("served")).stdin(Stdio::null());
        let password = self.password.map(String::from);
        if let Some(password) = &password {
            let file = self.folder.join("password");
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&file)?
                .write_all(password.as_bytes())?;
            command.arg("--password-file").arg(file);
        }
        let mut server = self.spawned(command, Address::local(0, None))?;
        let begun = Instant::now();
        while begun.elapsed() < START && server.end_of().is_none() {
            let port = server.log().lines().next().and_then(|line| {
                let word = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:"))?;
                word.trim_end_matches(',').rsplit_once(':')?.1.parse::<u16>().ok()
            });
            if let Some(port) = port {
                server.address = Address::local(port, password);
                return Ok(server);
            }
            sleep(LOOK);
        }
        Err(server.failed("did not start"))
    }

    fn spawned(&self, mut command: Command, address: Address) -> Result<Server, Error> {
        let log = File::create(self.folder.join(LOG))
            .map_err(|error| Error::new(format!("{}: {error}", self.folder.join(LOG).display())))?;
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        let parent = std::process::id();
        // SAFETY: only system calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let is_orphan = libc::getppid() as u32 != parent;
                if is_orphan { Err(std::io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
            });
        }
        let (started, wait) = channel();
        let (keeper, end) = channel::<()>();
        std::thread::Builder::new().name("server".into()).spawn(move || {
            let _ = started.send(command.spawn());
            // Nothing is ever sent: the thread ends when the other side is dropped.
            let _ = end.recv();
        })?;
        let child = wait.recv()?.map_err(|error| self.not_started(&error))?;
        let is_ours = !self.engine.is_empty();
        let name = if is_ours { format!("kvdyno serve {}", self.engine) } else { self.program.to_string() };
        let folder = self.folder.to_path_buf();
        Ok(Server { child: Mutex::new(child), _keeper: keeper, name, is_ours, folder, address })
    }

    fn not_started(&self, error: &std::io::Error) -> Error {
        let what = self.program;
        if error.kind() == std::io::ErrorKind::NotFound {
            return Error::new(format!(
                "`{what}` is not on the PATH: run `apt-get install redis-server`, or name a running server with \
                 --option redis.url=redis://HOST:PORT"
            ));
        }
        Error::new(format!("cannot start `{what}`: {error}"))
    }
}

impl Server {
    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(self.folder.join(LOG)).and_then(|mut file| file.read_to_end(&mut text));
        if read.is_ok() { String::from_utf8_lossy(&text).into_owned() } else { String::new() }
    }

    /// How it ended; `None`: it runs.
    pub fn end_of(&self) -> Option<String> {
        self.child().try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// An error with the last line that the server printed, and its exit status if it has ended.
    pub fn failed(&self, what: &str) -> Error {
        let said = self.log();
        // Redis begins each line with its process and the date.
        let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        let ended = self.end_of().map_or_else(String::new, |end| format!(" ({end})"));
        Error::new(format!("{} {what}{ended}; its last message: {said}", self.name))
    }

    fn until_it_answers(&self) -> Result<(), Error> {
        let mut begun = Instant::now();
        loop {
            if self.end_of().is_some() {
                return Err(self.failed("did not start"));
            }
            let answer = Wire::connect(&self.address, &Files::default())
                .and_then(|mut wire| wire.ask(&[b"PING"]).map(|reply| reply != Reply::Nil));
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if error.text.contains("LOADING") => begun = Instant::now(),
                Err(error) if begun.elapsed() > START => {
                    return Err(self.failed(&format!("does not answer ({})", error.text)));
                }
                Err(_) => {}
            }
            sleep(LOOK);
        }
    }

    /// Turns the log on or off, as the level requires: it was started with the settings that load the existing data.
    pub fn keep_log(&self, wire: &mut Wire, level: Level) -> Result<(), Error> {
        if self.is_ours {
            return Ok(());
        }
        let wanted = if level > Level::None { "yes" } else { "no" };
        if wire.texts(&[b"CONFIG", b"GET", b"appendonly"])?.last().is_some_and(|is| is == wanted) {
            return Ok(());
        }
        wire.ask(&[b"CONFIG", b"SET", b"appendonly", wanted.as_bytes()])?;
        // All loaded data is written to the new log, in the background.
        loop {
            let lines = info(wire)?;
            let is = |name: &str, value: &str| lines.contains(&(name.into(), value.into()));
            if is("aof_last_bgrewrite_status", "err") {
                return Err(self.failed("could not write its log"));
            }
            if is("aof_rewrite_in_progress", "0") && is("aof_rewrite_scheduled", "0") {
                return Ok(());
            }
            sleep(LOOK);
        }
    }

    /// Makes everything acknowledged durable. The log was written before each reply, so it is enough to
    /// sync its files from here; without a log it makes a snapshot.
    pub fn flush(&self, wire: &mut Wire, level: Level) -> Result<Status, Error> {
        if self.is_ours || level == Level::None {
            return wire.ask(&[b"SAVE"]).map(|_| Status::Ok);
        }
        let log = log_of(&self.folder).filter(|log| log.is_dir());
        for folder in log.into_iter().chain([self.folder.clone()]) {
            for entry in std::fs::read_dir(&folder)?.flatten().filter(|entry| entry.path().is_file()) {
                File::open(entry.path())?.sync_all()?;
            }
            File::open(folder)?.sync_all()?;
        }
        Ok(Status::Ok)
    }

    /// Stops it and waits until its data is written.
    pub fn stop(self, wire: &mut Wire, saves: bool) -> Result<(), Error> {
        let words: &[&[u8]] = match (self.is_ours, saves) {
            (true, _) => &[b"SHUTDOWN"],
            (false, true) => &[b"SHUTDOWN", b"SAVE"],
            (false, false) => &[b"SHUTDOWN", b"NOSAVE"],
        };
        wire.request(words);
        wire.send()?;
        // It closes the connection; a reply is the reason why it does not stop.
        if let Ok(reply @ Reply::Error(_)) = wire.reply() {
            return Err(reply.unexpected());
        }
        let begun = Instant::now();
        loop {
            let ended = self.child().try_wait()?;
            match ended {
                Some(status) if status.success() => break,
                Some(_) => return Err(self.failed("ended with an error")),
                None if begun.elapsed() > END => return Err(self.failed("does not stop")),
                None => sleep(LOOK),
            }
        }
        // The snapshot now has all data; a log that ends earlier would be loaded instead.
        match log_of(&self.folder).filter(|_| saves && !self.is_ours) {
            Some(log) if log.is_dir() => Ok(std::fs::remove_dir_all(log)?),
            Some(log) => Ok(std::fs::remove_file(log)?),
            None => Ok(()),
        }
    }
}

/// The handle is no longer used.
impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child();
        if !matches!(child.try_wait(), Ok(Some(_))) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The append-only log: a folder since Redis 7, a file before.
fn log_of(folder: &Path) -> Option<PathBuf> {
    ["appendonlydir", "appendonly.aof"].map(|name| folder.join(name)).into_iter().find(|log| log.exists())
}

/// A password for one server, so that no other program on the machine can use it, and we cannot use another's port.
pub(super) fn password() -> Result<String, Error> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A path in the syntax of redis.conf.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte as char]),
            0x20..=0x7e => text.push(byte as char),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text + "\""
}
