//! What the server knows of a client.

use super::commands;
use super::reply::Version;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// No command has come yet.
const NONE_YET: u16 = u16::MAX;

/// What other threads may see of a client, and tell it.
#[derive(Debug)]
pub struct Facts {
    /// Unique in the server, from 1.
    pub id: u64,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// The worker that serves it.
    pub worker: usize,
    /// When it came.
    pub since: Instant,
    name: Mutex<Vec<u8>>,
    /// The number of its last command, and when that came (milliseconds since 1970).
    last: AtomicU16,
    last_ms: AtomicU64,
    database: AtomicU8,
    killed: AtomicBool,
}

impl Facts {
    /// Of a client that has just come.
    pub fn new(id: u64, peer: SocketAddr, worker: usize, now_ms: u64) -> Facts {
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

    /// Its name; empty: it has none.
    pub fn name(&self) -> Vec<u8> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names it.
    pub fn set_name(&self, name: &[u8]) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.to_vec();
    }

    /// Its worker is to close it.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    /// Whether it is to be closed.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Notes its last command, by number, and its database.
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
    /// Each with its arguments.
    pub requests: Vec<Vec<Vec<u8>>>,
    /// Bytes of them all.
    pub bytes: usize,
    /// One of them was refused, so EXEC is too.
    pub is_broken: bool,
}

/// The state of a client, its worker's own.
#[derive(Debug)]
pub struct Client {
    /// What others may see.
    pub facts: Arc<Facts>,
    /// The database it has selected.
    pub database: u8,
    /// The version it speaks.
    pub version: Version,
    /// It has given the password, or none is needed.
    pub is_trusted: bool,
    /// MULTI was given, EXEC not yet.
    pub queue: Option<Queue>,
    /// Rows that it watches, and how often their stripes had been committed.
    pub watched: Vec<(Vec<u8>, u32)>,
    /// It sees every command.
    pub is_monitor: bool,
    /// It goes once its replies are sent.
    pub is_leaving: bool,
}

impl Client {
    /// One that has just come.
    pub fn new(facts: Arc<Facts>, is_trusted: bool) -> Client {
        Client {
            facts,
            database: 0,
            version: Version::Two,
            is_trusted,
            queue: None,
            watched: Vec::new(),
            is_monitor: false,
            is_leaving: false,
        }
    }

    /// As RESET leaves it.
    pub fn reset(&mut self, is_trusted: bool) {
        self.facts.set_name(b"");
        *self = Client::new(Arc::clone(&self.facts), is_trusted);
    }
}
