//! A server that the driver starts on a free port of this machine in the trial's folder, and stops with the trial.

#![allow(unsafe_code, reason = "system calls around a process")]

use super::address::Address;
use super::facts::info;
use super::tls::Files;
use super::wire::{Reply, Wire};
use super::words::{said, telling_line};
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
/// The interval between two requests to end: a server refuses them while it writes its first log, as a replica does that has just
/// been given its data.
const ASK: Duration = Duration::from_millis(100);
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
    /// The number of a node whose link or disk a workload may disturb, from 1; `None`: a single server.
    pub member: Option<usize>,
}

/// A running server.
pub(super) struct Server {
    running: Mutex<Running>,
    name: String,
    /// How redis-server is started, also after a fault; `None`: it is our own server.
    recipe: Option<Recipe>,
    folder: PathBuf,
    pub address: Address,
}

/// A process from its start to its end; a server that is started again has another one.
struct Running {
    child: Child,
    /// The thread that started it lives until this is dropped: a server ends with that thread, not with its process.
    _keeper: Sender<()>,
}

/// How redis-server, or a program that accepts the same configuration, is started.
struct Recipe {
    program: String,
    /// The number of a node, from 1.
    member: Option<usize>,
    /// Its configuration without `appendonly`, which depends on the files that are there.
    settings: String,
    level: Level,
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
            if !["Address already in use", "Failed listening"].iter().any(|text| last.text.contains(text)) {
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
        let mut settings = format!(
            "bind {host}\nport {port}\n{more}daemonize no\nrequirepass {password}\ndir {}\nappendfsync {}\n",
            quoted(self.folder),
            if self.level == Level::Power { "always" } else { "no" },
        );
        if !self.as_shipped {
            settings += "save \"\"\n";
        }
        let recipe =
            Recipe { program: self.program.to_string(), member: self.member, settings, level: self.level };
        let running = Mutex::new(recipe.start(self.folder, false)?);
        let (name, folder) = (self.program.to_string(), self.folder.to_path_buf());
        let address = Address::at(host, port, Some(password));
        Ok(Server { running, name, recipe: Some(recipe), folder, address })
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
        let running = Mutex::new(spawned(command, self.folder, false)?);
        let (name, folder) = (format!("kvdyno serve {}", self.engine), self.folder.to_path_buf());
        let mut server = Server { running, name, recipe: None, folder, address: Address::local(0, None) };
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
}

/// The environment variable with the program that starts members whose link or disk a workload disturbs: it becomes the member when
/// it has made what is needed for that (`crates/core/src/engine/members.rs`).
const LAUNCHER: &str = "KVDYNO_LAUNCHER";

impl Recipe {
    /// The program, started by the launcher where there is one.
    fn command(&self) -> Command {
        match (self.member, std::env::var_os(LAUNCHER)) {
            (Some(number), Some(launcher)) => {
                let mut command = Command::new(launcher);
                command.args(["member", &number.to_string(), &self.program]);
                command
            }
            _ => Command::new(&self.program),
        }
    }

    /// Starts a process in a folder; with `again` its output follows that of the one before.
    fn start(&self, folder: &Path, again: bool) -> Result<Running, Error> {
        // The existing files decide what is loaded; the requested settings are applied afterwards.
        let has_log = log_of(folder).is_some();
        let is_new = !has_log && !folder.join("dump.rdb").exists();
        let appends = if is_new { self.level > Level::None } else { has_log };
        let text = format!("{}appendonly {}\n", self.settings, if appends { "yes" } else { "no" });
        let mut command = self.command();
        command.arg("-").stdin(Stdio::piped());
        let mut running = spawned(command, folder, again)?;
        if let Some(mut stdin) = running.child.stdin.take() {
            // If it has ended already, its log has the reason.
            let _ = stdin.write_all(text.as_bytes());
        }
        Ok(running)
    }
}

fn spawned(mut command: Command, folder: &Path, again: bool) -> Result<Running, Error> {
    let log =
        OpenOptions::new().write(true).create(true).truncate(!again).append(again).open(folder.join(LOG));
    let log = log.map_err(|error| Error::new(format!("{}: {error}", folder.join(LOG).display())))?;
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
    let program = command.get_program().to_string_lossy().into_owned();
    let (started, wait) = channel();
    let (keeper, end) = channel::<()>();
    let thread = std::thread::Builder::new().name("server".into()).spawn(move || {
        let _ = started.send(command.spawn());
        // Nothing is ever sent: the thread ends when the other side is dropped.
        let _ = end.recv();
    });
    thread.map_err(|error| no_thread(&error))?;
    let child = wait.recv()?.map_err(|error| not_started(&program, &error))?;
    Ok(Running { child, _keeper: keeper })
}

/// The core knows by these words what the system was short of, and names the limit.
pub(super) fn no_thread(error: &std::io::Error) -> Error {
    Error::new(format!("cannot start a thread: {error}"))
}

fn not_started(what: &str, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::new(format!(
            "`{what}` is not on the PATH: run `apt-get install redis-server`, or name a running server with \
             --option redis.url=redis://HOST:PORT"
        ));
    }
    Error::new(format!("cannot start `{what}`: {error}"))
}

impl Server {
    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.running().child.id()
    }

    /// Starts it again with the same configuration and files: one that was killed, or, with `asks`, one that is asked to end first.
    pub fn again(&self, asks: bool) -> Result<(), Error> {
        let recipe = self.recipe.as_ref().ok_or_else(|| Error::new("only redis-server is started again"))?;
        let begun = Instant::now();
        let mut asked: Option<Instant> = None;
        while self.end_of().is_none() {
            if asks && asked.is_none_or(|at| at.elapsed() > ASK) {
                // SAFETY: a system call without memory; the number is that of a child that was not waited for.
                unsafe { libc::kill(self.process() as i32, libc::SIGTERM) };
                asked = Some(Instant::now());
            }
            if begun.elapsed() > START {
                let seconds = START.as_secs();
                return Err(
                    self.failed(&format!("did not end within {seconds} s, and cannot be started again"))
                );
            }
            sleep(LOOK);
        }
        *self.running() = recipe.start(&self.folder, true)?;
        Ok(())
    }

    fn is_ours(&self) -> bool {
        self.recipe.is_none()
    }

    fn log(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(self.folder.join(LOG)).and_then(|mut file| file.read_to_end(&mut text));
        if read.is_ok() { String::from_utf8_lossy(&text).into_owned() } else { String::new() }
    }

    /// How it ended; `None`: it runs.
    pub fn end_of(&self) -> Option<String> {
        self.running().child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// An error with the line of the server's log that says why, and its exit status if it has ended.
    pub fn failed(&self, what: &str) -> Error {
        let said = self.log();
        // Redis begins each line with its process and the date.
        let said = telling_line(said.lines()).unwrap_or("nothing");
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
        if self.is_ours() {
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
        if self.is_ours() || level == Level::None {
            return save(wire);
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
    pub fn stop(&self, wire: &mut Wire, saves: bool) -> Result<(), Error> {
        let words: &[&[u8]] = match (self.is_ours(), saves) {
            (true, _) => &[b"SHUTDOWN"],
            (false, true) => &[b"SHUTDOWN", b"SAVE"],
            (false, false) => &[b"SHUTDOWN", b"NOSAVE"],
        };
        let asked = Instant::now();
        loop {
            wire.request(words);
            wire.send()?;
            // It closes the connection; a reply is the reason why it does not stop.
            let why = match wire.reply() {
                Ok(reply @ Reply::Error(_)) => reply.unexpected(),
                _ => break,
            };
            // Without a snapshot to save, it refuses while it writes its first log, as a replica does that has just been given its
            // data, and if it is short of something. Its own log says which.
            let is_short = || telling_line(self.log().lines()).is_some_and(|line| said(line).is_some());
            if saves || is_short() || asked.elapsed() > START {
                return Err(self.failed(&format!("does not stop ({})", why.text)));
            }
            sleep(LOOK);
        }
        let begun = Instant::now();
        loop {
            let ended = self.running().child.try_wait()?;
            match ended {
                Some(status) if status.success() => break,
                Some(_) => return Err(self.failed("ended with an error")),
                None if begun.elapsed() > END => return Err(self.failed("does not stop")),
                None => sleep(LOOK),
            }
        }
        // The snapshot now has all data; a log that ends earlier would be loaded instead.
        match log_of(&self.folder).filter(|_| saves && !self.is_ours()) {
            Some(log) if log.is_dir() => Ok(std::fs::remove_dir_all(log)?),
            Some(log) => Ok(std::fs::remove_file(log)?),
            None => Ok(()),
        }
    }
}

/// The handle is no longer used.
impl Drop for Server {
    fn drop(&mut self) {
        let mut running = self.running();
        if !matches!(running.child.try_wait(), Ok(Some(_))) {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// Makes a snapshot. One that is being made, as for a new replica, may lack what was written since it began, so it is waited for.
fn save(wire: &mut Wire) -> Result<Status, Error> {
    loop {
        match wire.ask(&[b"SAVE"]) {
            Ok(_) => return Ok(Status::Ok),
            Err(error) if !error.text.contains("Background save already in progress") => return Err(error),
            Err(_) => sleep(LOOK),
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
