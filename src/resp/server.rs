//! The server: its settings, its threads, and what they share.

mod statistics;

use super::client::{Client, Facts};
use super::parse::{Arguments, Limits};
use super::record::{LARGEST, NEXT_NUMBER};
use super::store::{Engine, Store};
use super::stripes::Stripes;
use super::worker::{INBOX, Worker};
use crate::engine::Database;
use crate::engine::abi::*;
use mio::{Poll, Waker};
pub use statistics::CommandCount;
use statistics::Counts;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a server is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engine's name, for INFO.
    pub engine: String,
    /// The password; none: everyone may.
    pub password: Option<String>,
    /// Threads.
    pub threads: usize,
    /// What requests may have.
    pub limits: Limits,
    /// Bytes that may wait to become a request.
    pub query_bytes: usize,
    /// Clients at once.
    pub clients: usize,
    /// A client that says nothing for so long is closed; 0: never.
    pub idle_seconds: u64,
    /// Whether commands are counted and timed.
    pub stats: bool,
}

/// What a thread is told by another.
pub enum Message {
    /// A connection to serve.
    Connection(TcpStream, SocketAddr),
    /// Bytes for the client of that number.
    Line(u64, Vec<u8>),
    /// A client was killed: look around.
    Look,
}

/// A thread's inbox.
struct Inbox {
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

/// What the threads of a server share.
pub struct Shared {
    /// As it was told.
    pub settings: Settings,
    /// When it began.
    pub since: Instant,
    engine: Engine,
    inboxes: Vec<Inbox>,
    counts: Vec<Mutex<Counts>>,
    clients: Mutex<BTreeMap<u64, Arc<Facts>>>,
    open: AtomicUsize,
    next_client: AtomicU64,
    numbers: Mutex<Numbers>,
    cursors: Mutex<Cursors>,
    monitors: Mutex<Vec<(u64, usize)>>,
    monitor_count: AtomicUsize,
    cross_protocol: AtomicU64,
    commands: AtomicU64,
    has_collections: AtomicBool,
    chance: AtomicU64,
    is_stopping: AtomicBool,
}

/// Numbers of collections: those up to `end` are this server's to give.
#[derive(Default)]
struct Numbers {
    next: u64,
    end: u64,
}

/// Numbers that are taken at once, so that a number given is never given again after a crash.
const NUMBERS: u64 = 1 << 20;
/// Scans that may be under way; the oldest are forgotten.
const MOST_CURSORS: usize = 4096;

/// Where scans go on.
#[derive(Default)]
struct Cursors {
    last: u64,
    places: BTreeMap<u64, Vec<u8>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Whether the server is to end.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Ends the server: each thread sends what it has, and goes.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.inboxes.iter().for_each(|inbox| drop(inbox.waker.wake()));
    }

    /// What threads share of the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Threads that serve.
    pub fn threads(&self) -> usize {
        self.inboxes.len()
    }

    /// The messages for a thread.
    pub fn messages(&self, worker: usize) -> Vec<Message> {
        std::mem::take(&mut *locked(&self.inboxes[worker].messages))
    }

    /// Tells a thread something.
    pub fn tell(&self, worker: usize, message: Message) {
        locked(&self.inboxes[worker].messages).push(message);
        // It fails only when the thread's poll is gone, and then nobody is left to be told.
        let _ = self.inboxes[worker].waker.wake();
    }

    /// A number for a client.
    pub fn next_client(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// A client is served.
    pub fn came(&self, facts: Arc<Facts>) {
        locked(&self.clients).insert(facts.id, facts);
    }

    /// A client has gone.
    pub fn left(&self, id: u64) {
        locked(&self.clients).remove(&id);
        self.open.fetch_sub(1, Ordering::Relaxed);
        let mut monitors = locked(&self.monitors);
        monitors.retain(|(known, _)| *known != id);
        self.monitor_count.store(monitors.len(), Ordering::Relaxed);
    }

    /// The clients, in order of their coming.
    pub fn clients(&self) -> Vec<Arc<Facts>> {
        locked(&self.clients).values().cloned().collect()
    }

    /// From now on the client sees all commands.
    pub fn add_monitor(&self, facts: &Facts) {
        let mut monitors = locked(&self.monitors);
        monitors.push((facts.id, facts.worker));
        self.monitor_count.store(monitors.len(), Ordering::Relaxed);
    }

    /// Shows a request to the monitors.
    pub fn tell_monitors(&self, client: &Client, arguments: &Arguments, now_ms: u64) {
        if self.monitor_count.load(Ordering::Relaxed) == 0 || arguments.get(0).eq_ignore_ascii_case(b"auth") {
            return;
        }
        let words: Vec<String> =
            arguments.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect();
        let (seconds, rest) = (now_ms / 1000, now_ms % 1000);
        let (database, peer) = (client.database, client.facts.peer);
        let line = format!("+{seconds}.{rest:03}000 [{database} {peer}] {}\r\n", words.join(" "));
        for (id, worker) in locked(&self.monitors).iter().filter(|(id, _)| *id != client.facts.id) {
            self.tell(*worker, Message::Line(*id, line.clone().into_bytes()));
        }
    }

    /// Somebody spoke HTTP to us.
    pub fn note_cross_protocol(&self, peer: SocketAddr) {
        if self.cross_protocol.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!(
                "warning: {peer} speaks HTTP; the connection is closed, and such ones are from now on in silence"
            );
        }
    }

    /// So many more requests are answered.
    pub fn count_commands(&self, count: u64) {
        self.commands.fetch_add(count, Ordering::Relaxed);
    }

    /// Requests so far, without those of turns that are under way.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// The counts of a thread.
    pub fn stats(&self, worker: usize) -> MutexGuard<'_, Counts> {
        locked(&self.counts[worker])
    }

    /// What was counted since the last call, over all threads.
    pub fn take_counts(&self) -> Vec<CommandCount> {
        let taken = self.counts.iter().map(|counts| std::mem::take(&mut *locked(counts)));
        taken.reduce(Counts::with).unwrap_or_default().list()
    }

    /// A number for a new collection.
    pub fn next_number(&self, store: &mut Store) -> Result<u64, String> {
        let mut numbers = locked(&self.numbers);
        if numbers.next == numbers.end {
            let end = numbers.end + NUMBERS;
            store.write_now(NEXT_NUMBER, &end.to_be_bytes())?;
            numbers.end = end;
            self.has_collections.store(true, Ordering::Relaxed);
        }
        numbers.next += 1;
        Ok(numbers.next - 1)
    }

    /// Whether there was ever a collection, so that a key may have elements.
    pub fn has_collections(&self) -> bool {
        self.has_collections.load(Ordering::Relaxed)
    }

    /// A number that nobody can foresee in earnest, for SPOP.
    pub fn chance(&self) -> u64 {
        let state = self.chance.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 31
    }

    /// The cursor of a scan that goes on at `row`.
    pub fn cursor_at(&self, row: Vec<u8>) -> u64 {
        let mut cursors = locked(&self.cursors);
        cursors.last += 1;
        let cursor = cursors.last;
        cursors.places.insert(cursor, row);
        if cursors.places.len() > MOST_CURSORS {
            cursors.places.pop_first();
        }
        cursor
    }

    /// Where the scan of that cursor goes on; none: it is not known any more.
    pub fn place_of(&self, cursor: u64) -> Option<Vec<u8>> {
        locked(&self.cursors).places.get(&cursor).cloned()
    }
}

/// A server that is about to run.
pub struct Server {
    shared: Shared,
    listener: TcpListener,
    polls: Vec<Poll>,
}

impl Server {
    /// Binds `address` and prepares the threads. `key_size_max` is the engine's, 0 where it has none; `clock` is the
    /// kind of clock that the driver stamps ops with.
    pub fn new(
        address: SocketAddr,
        settings: Settings,
        database: Database,
        key_size_max: u32,
        clock: u32,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let capabilities = database.in_force().capabilities;
        let threads = if capabilities & KV_SINGLE_THREAD != 0 { 1 } else { settings.threads.max(1) };
        let mut polls = Vec::new();
        let mut inboxes = Vec::new();
        for _ in 0..threads {
            let poll = Poll::new()?;
            inboxes.push(Inbox { messages: Mutex::default(), waker: Waker::new(poll.registry(), INBOX)? });
            polls.push(poll);
        }
        // A server lives as long as its process, or as a test; its stop word is four bytes.
        let stop: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let engine = Engine {
            database,
            stripes: Stripes::new(),
            capabilities,
            key_size_max: key_size_max as usize,
            clock,
            stop,
            largest: AtomicUsize::new(0),
            raising: Mutex::default(),
        };
        let shared = Shared {
            settings,
            since: Instant::now(),
            engine,
            counts: inboxes.iter().map(|_| Mutex::default()).collect(),
            inboxes,
            clients: Mutex::default(),
            open: AtomicUsize::new(0),
            next_client: AtomicU64::new(1),
            numbers: Mutex::default(),
            cursors: Mutex::default(),
            monitors: Mutex::default(),
            monitor_count: AtomicUsize::new(0),
            cross_protocol: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            has_collections: AtomicBool::new(false),
            chance: AtomicU64::new(1),
            is_stopping: AtomicBool::new(false),
        };
        Ok(Server { shared, listener, polls })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Threads that serve.
    pub fn threads(&self) -> usize {
        self.polls.len()
    }

    /// Serves until SHUTDOWN, or until `is_over` says so (asked ten times a second, and once when all threads have
    /// ended; it may print meanwhile). Gives the database back, flushed.
    pub fn run(mut self, is_over: &mut dyn FnMut(&Shared) -> bool) -> Result<Database, String> {
        let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let polls = std::mem::take(&mut self.polls);
        let shared = &self.shared;
        let mut stores = Vec::new();
        self.listener.set_nonblocking(true).map_err(|error| failed("cannot listen", &error))?;
        {
            let mut store =
                Store::new(&shared.engine).map_err(|error| failed("cannot open a session", &error))?;
            let mut known = |row: &[u8]| -> Result<Option<u64>, String> {
                let bytes = store.get(row)?.and_then(|bytes| bytes.try_into().ok());
                Ok(bytes.map(u64::from_be_bytes))
            };
            let (number, largest) = (known(NEXT_NUMBER)?, known(LARGEST)?);
            shared.has_collections.store(number.is_some(), Ordering::Relaxed);
            shared.engine.largest.store(largest.unwrap_or(0) as usize, Ordering::Relaxed);
            let next = number.unwrap_or(1);
            *locked(&shared.numbers) = Numbers { next, end: next };
            stores.push(store.end().map_err(|error| failed("cannot end a session", &error))?);
        }
        let result = std::thread::scope(|scope| {
            let workers: Vec<_> = polls
                .into_iter()
                .enumerate()
                .map(|(number, poll)| {
                    scope.spawn(move || {
                        // A session belongs to the thread that opens it.
                        let store =
                            Store::new(&shared.engine).map_err(|error| format!("a session: {error}"))?;
                        let ended = Worker::new(number, shared, store, poll).run();
                        shared.stop();
                        ended
                    })
                })
                .collect();
            let accepted = self.accept(is_over);
            shared.stop();
            let ended = workers.into_iter().map(|worker| {
                worker.join().unwrap_or_else(|_| Err("a thread of the server has panicked".to_string()))
            });
            let ended = ended.fold(accepted, Result::and);
            // The last word on what was done since it was asked.
            is_over(shared);
            ended
        });
        let database = self.shared.engine.database;
        let flushed = database.maintain(crate::engine::Work::Flush);
        result?;
        flushed.map_err(|error| failed("flush", &error))?;
        Ok(database)
    }

    fn accept(&self, is_over: &mut dyn FnMut(&Shared) -> bool) -> Result<(), String> {
        const PAUSE: Duration = Duration::from_millis(100);
        let shared = &self.shared;
        let mut poll = Poll::new().map_err(|error| error.to_string())?;
        let mut events = mio::Events::with_capacity(16);
        let raw = self.listener.try_clone().map_err(|error| error.to_string())?;
        let mut source = mio::net::TcpListener::from_std(raw);
        poll.registry()
            .register(&mut source, mio::Token(0), mio::Interest::READABLE)
            .map_err(|error| error.to_string())?;
        let mut turn = 0;
        while !shared.is_stopping() && !is_over(shared) {
            // Interrupted by a signal: `is_over` knows.
            let _ = poll.poll(&mut events, Some(PAUSE));
            while let Ok((stream, peer)) = self.listener.accept() {
                if shared.open.fetch_add(1, Ordering::Relaxed) >= shared.settings.clients {
                    shared.open.fetch_sub(1, Ordering::Relaxed);
                    let _ = io::Write::write_all(&mut &stream, b"-ERR max number of clients reached\r\n");
                    continue;
                }
                shared.tell(turn % shared.inboxes.len(), Message::Connection(stream, peer));
                turn += 1;
            }
        }
        Ok(())
    }
}
