//! The server's state of a client.

use super::commands;
use super::reply::Version;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// No command has arrived yet.
const NONE_YET: u16 = u16::MAX;

/// What other threads may see and set of a client.
#[derive(Debug)]
pub struct Facts {
    /// Unique in the server, from 1.
    pub id: u64,
    /// Its address.
    pub peer: String,
    /// The worker that serves it.
    pub worker: usize,
    /// When it connected.
    pub since: Instant,
    name: Mutex<Vec<u8>>,
    /// The number of its last command, and its time (milliseconds since 1970).
    last: AtomicU16,
    last_ms: AtomicU64,
    database: AtomicU8,
    killed: AtomicBool,
}

impl Facts {
    /// Facts of a newly connected client.
    pub fn new(id: u64, peer: String, worker: usize, now_ms: u64) -> Facts {
        Facts {
            id,
            peer,
            worker,
            since: Instant::now(),
            name: Mutex::new(Vec::new()),
            last: AtomicU16::new(NONE_YET),
            last_ms: AtomicU64::new(now_ms),
            database: AtomicU8::new(0),
            killed: AtomicBool::new(false),
        }
    }

    /// Its name; empty if it has none.
    pub fn name(&self) -> Vec<u8> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets its name.
    pub fn set_name(&self, name: &[u8]) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.to_vec();
    }

    /// Tells its worker to close it.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    /// Whether it is to be closed.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Records the number of its last command, and its database.
    pub fn note(&self, command: usize, database: u8, now_ms: u64) {
        self.last.store(command as u16, Ordering::Relaxed);
        self.last_ms.store(now_ms, Ordering::Relaxed);
        self.database.store(database, Ordering::Relaxed);
    }

    /// Its line in CLIENT LIST.
    pub fn line(&self, now_ms: u64) -> String {
        let idle_ms = now_ms.saturating_sub(self.last_ms.load(Ordering::Relaxed));
        let last = commands::LIST.get(usize::from(self.last.load(Ordering::Relaxed)));
        format!(
            "id={} addr={} name={} age={} idle={} flags=N db={} cmd={}",
            self.id,
            self.peer,
            String::from_utf8_lossy(&self.name()),
            self.since.elapsed().as_secs(),
            idle_ms / 1000,
            self.database.load(Ordering::Relaxed),
            last.map_or("NULL", |command| command.name).to_lowercase(),
        )
    }
}

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
pub struct Queue {
    /// Each command with its arguments.
    pub requests: Vec<Vec<Vec<u8>>>,
    /// Total bytes.
    pub bytes: usize,
    /// Whether one of them was refused, so that EXEC must be refused too.
    pub is_broken: bool,
}

/// A watched key, as it was at WATCH.
#[derive(Debug)]
pub struct Watched {
    /// The commit count of its stripe.
    pub commits: u32,
    /// When it expires, milliseconds since 1970; `None` if never, and if it did not exist.
    pub expires_ms: Option<u64>,
}

impl Watched {
    /// Whether it was written, or has expired.
    pub fn has_changed(&self, commits: u32, now_ms: u64) -> bool {
        self.commits != commits || self.expires_ms.is_some_and(|end| end <= now_ms)
    }
}

/// The state of a client, owned by its worker.
#[derive(Debug)]
pub struct Client {
    /// What other threads may see.
    pub facts: Arc<Facts>,
    /// The database it has selected.
    pub database: u8,
    /// The protocol version that it uses.
    pub version: Version,
    /// Whether it has sent the password, or none is needed.
    pub is_trusted: bool,
    /// The commands after MULTI, until EXEC.
    pub queue: Option<Queue>,
    /// The watched keys, by their rows.
    pub watched: HashMap<Vec<u8>, Watched>,
    /// Whether it is a monitor, which sees every command.
    pub is_monitor: bool,
    /// Whether it is closed once its replies are sent.
    pub is_leaving: bool,
}

impl Client {
    /// State of a newly connected client.
    pub fn new(facts: Arc<Facts>, is_trusted: bool) -> Client {
        Client {
            facts,
            database: 0,
            version: Version::Two,
            is_trusted,
            queue: None,
            watched: HashMap::new(),
            is_monitor: false,
            is_leaving: false,
        }
    }

    /// Forgets the commands after MULTI and the watched keys.
    pub fn end_transaction(&mut self) {
        self.queue = None;
        self.watched.clear();
    }

    /// Resets the state, as RESET does.
    pub fn reset(&mut self, is_trusted: bool) {
        self.facts.set_name(b"");
        *self = Client::new(Arc::clone(&self.facts), is_trusted);
    }
}
