//! The server: its settings, its threads, and their shared state.

mod statistics;

use super::client::{Client, Facts};
use super::error::{ServerError, StoreError};
use super::parse::{Arguments, Limits};
use super::record::{LARGEST, NEXT_NUMBER};
use super::socket::{Listener, Stream};
use super::store::{Engine, Store};
use super::stripes::Stripes;
use super::worker::{INBOX, Worker};
use kvdyno_core::engine::Database;
use kvdyno_core::engine::abi::*;
use kvdyno_measure::start;
use mio::{Poll, Waker};
pub(crate) use statistics::CommandCount;
use statistics::Counts;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engine's name, for INFO.
    pub engine: String,
    /// The password; `None` if no password is needed.
    pub password: Option<String>,
    /// Threads.
    pub threads: usize,
    /// Limits of requests.
    pub limits: Limits,
    /// Maximum bytes of an incomplete request.
    pub query_bytes: usize,
    /// Maximum number of clients.
    pub clients: usize,
    /// Idle clients are closed after this many seconds; 0: never.
    pub idle_seconds: u64,
    /// Whether commands are counted and timed.
    pub stats: bool,
}

/// A message to a thread.
pub enum Message {
    /// A connection to serve.
    Connection(Stream, String),
    /// Bytes to send to the client with that number.
    Line(u64, Vec<u8>),
    /// A client was killed: check all connections.
    CloseIdle,
}

/// A thread's inbox.
struct Inbox {
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

/// State shared by the threads of a server.
pub struct Shared {
    /// The settings.
    pub settings: Settings,
    /// When it started.
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

/// Numbers of collections: those up to `end` are reserved for this server.
#[derive(Default)]
struct Numbers {
    next: u64,
    end: u64,
}

/// Numbers that are reserved at once, so that a number is never assigned again after a crash.
const NUMBERS: u64 = 1 << 20;
/// Maximum number of open SCAN cursors; the oldest are removed.
const MOST_CURSORS: usize = 4096;

/// Where scans continue.
#[derive(Default)]
struct Cursors {
    last: u64,
    places: BTreeMap<u64, Vec<u8>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Stops the server: each thread sends its replies and ends.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.inboxes.iter().for_each(|inbox| drop(inbox.waker.wake()));
    }

    /// The part of the engine that threads share.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Threads that serve.
    pub fn threads(&self) -> usize {
        self.inboxes.len()
    }

    /// The inbox of a thread.
    pub fn messages(&self, worker: usize) -> Vec<Message> {
        std::mem::take(&mut *locked(&self.inboxes[worker].messages))
    }

    /// Sends a message to a thread.
    pub fn send(&self, worker: usize, message: Message) {
        locked(&self.inboxes[worker].messages).push(message);
        // It fails only if the thread's poll is gone, and then there is no receiver.
        let _ = self.inboxes[worker].waker.wake();
    }

    /// A new client number.
    pub fn next_client(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a connected client.
    pub fn came(&self, facts: Arc<Facts>) {
        locked(&self.clients).insert(facts.id, facts);
    }

    /// Removes a disconnected client.
    pub fn left(&self, id: u64) {
        locked(&self.clients).remove(&id);
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.remove_monitor(id);
    }

    /// The clients, in the order in which they connected.
    pub fn clients(&self) -> Vec<Arc<Facts>> {
        locked(&self.clients).values().cloned().collect()
    }

    /// Makes the client a monitor: it sees all commands from now on.
    pub fn add_monitor(&self, facts: &Facts) {
        self.remove_monitor(facts.id);
        let mut monitors = locked(&self.monitors);
        monitors.push((facts.id, facts.worker));
        self.monitor_count.store(monitors.len(), Ordering::Relaxed);
    }

    /// Sends the client no more requests.
    pub fn remove_monitor(&self, id: u64) {
        let mut monitors = locked(&self.monitors);
        monitors.retain(|(known, _)| *known != id);
        self.monitor_count.store(monitors.len(), Ordering::Relaxed);
    }

    /// Sends a request to the monitors.
    pub fn send_to_monitors(&self, client: &Client, arguments: &Arguments, now_ms: u64) {
        let may_have_password =
            |name: &[u8]| name.eq_ignore_ascii_case(b"auth") || name.eq_ignore_ascii_case(b"hello");
        if self.monitor_count.load(Ordering::Relaxed) == 0 || may_have_password(arguments.get(0)) {
            return;
        }
        let words: Vec<String> =
            arguments.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect();
        let (seconds, rest) = (now_ms / 1000, now_ms % 1000);
        let (database, peer) = (client.database, &client.facts.peer);
        let line = format!("+{seconds}.{rest:03}000 [{database} {peer}] {}\r\n", words.join(" "));
        for (id, worker) in locked(&self.monitors).iter().filter(|(id, _)| *id != client.facts.id) {
            self.send(*worker, Message::Line(*id, line.clone().into_bytes()));
        }
    }

    /// Reports a client that speaks HTTP.
    pub fn note_cross_protocol(&self, peer: &str) {
        if self.cross_protocol.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!(
                "warning: closed a connection from {peer} because it speaks HTTP; further HTTP connections are closed without a warning"
            );
        }
    }

    /// Adds to the number of answered requests.
    pub fn count_commands(&self, count: u64) {
        self.commands.fetch_add(count, Ordering::Relaxed);
    }

    /// Number of requests so far, without those of turns in progress.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// The counts of a thread.
    pub fn stats(&self, worker: usize) -> MutexGuard<'_, Counts> {
        locked(&self.counts[worker])
    }

    /// The counts since the last call, over all threads.
    pub fn take_counts(&self) -> Vec<CommandCount> {
        let taken = self.counts.iter().map(|counts| std::mem::take(&mut *locked(counts)));
        taken.reduce(Counts::with).unwrap_or_default().list()
    }

    /// A number for a new collection.
    pub fn next_number(&self, store: &mut Store) -> Result<u64, StoreError> {
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

    /// Whether a collection was ever created, so that keys may have elements.
    pub fn has_collections(&self) -> bool {
        self.has_collections.load(Ordering::Relaxed)
    }

    /// A number that is hard to predict, for SPOP.
    pub fn chance(&self) -> u64 {
        let state = self.chance.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 31
    }

    /// The cursor of a scan that continues at `row`.
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

    /// Where the scan of that cursor continues; `None` if the cursor is no longer known.
    pub fn place_of(&self, cursor: u64) -> Option<Vec<u8>> {
        locked(&self.cursors).places.get(&cursor).cloned()
    }

    /// Passes clients to the threads until the server is stopped.
    fn accept(
        &self,
        mut listeners: Vec<Listener>,
        is_over: &mut dyn FnMut(&Shared) -> bool,
    ) -> Result<(), ServerError> {
        const PAUSE: Duration = Duration::from_millis(100);
        let failed = |error| ServerError::Wait { what: "clients", error };
        let mut poll = Poll::new().map_err(failed)?;
        let mut events = mio::Events::with_capacity(16);
        for listener in &mut listeners {
            listener.register(poll.registry()).map_err(failed)?;
        }
        let mut turn = 0;
        while !self.is_stopping() && !is_over(self) {
            // Interrupted by a signal, which `is_over` checks.
            let _ = poll.poll(&mut events, Some(PAUSE));
            for listener in &listeners {
                while let Ok((mut stream, peer)) = listener.accept() {
                    if self.open.fetch_add(1, Ordering::Relaxed) >= self.settings.clients {
                        self.open.fetch_sub(1, Ordering::Relaxed);
                        let _ = io::Write::write_all(&mut stream, b"-ERR max number of clients reached\r\n");
                        continue;
                    }
                    self.send(turn % self.inboxes.len(), Message::Connection(stream, peer));
                    turn += 1;
                }
            }
        }
        Ok(())
    }
}

/// Stops the server when a thread of it ends, also by a panic: nobody else would serve its connections.
struct StopWhenDropped<'s>(&'s Shared);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A server that is ready to run.
pub struct Server {
    shared: Shared,
    listeners: Vec<Listener>,
    polls: Vec<Poll>,
}

impl Server {
    /// Prepares the threads. `key_size_max` is the engine's, 0 if it has no limit; `clock` is the kind of clock with which the
    /// driver stamps ops.
    pub fn new(
        listeners: Vec<Listener>,
        settings: Settings,
        database: Database,
        key_size_max: u32,
        clock: u32,
    ) -> io::Result<Server> {
        let capabilities = database.effective().capabilities;
        let threads = if capabilities & KV_SINGLE_THREAD != 0 { 1 } else { settings.threads.max(1) };
        let mut polls = Vec::new();
        let mut inboxes = Vec::new();
        for _ in 0..threads {
            let poll = Poll::new()?;
            inboxes.push(Inbox { messages: Mutex::default(), waker: Waker::new(poll.registry(), INBOX)? });
            polls.push(poll);
        }
        // A server lives as long as its process or a test; its stop word is four bytes.
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
        Ok(Server { shared, listeners, polls })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> io::Result<Vec<String>> {
        self.listeners.iter().map(Listener::address).collect()
    }

    /// Threads that serve.
    pub fn threads(&self) -> usize {
        self.polls.len()
    }

    /// Serves until SHUTDOWN, or until `is_over` returns true (called ten times a second, and once after all threads
    /// have ended; it may print). Returns the database, flushed.
    pub fn run(mut self, is_over: &mut dyn FnMut(&Shared) -> bool) -> Result<Database, ServerError> {
        let polls = std::mem::take(&mut self.polls);
        let listeners = std::mem::take(&mut self.listeners);
        let shared = &self.shared;
        let mut stores = Vec::new();
        {
            let mut store = Store::new(&shared.engine).map_err(ServerError::Open)?;
            let mut known = |row: &[u8]| -> Result<Option<u64>, StoreError> {
                let bytes = store.get(row)?.and_then(|bytes| bytes.try_into().ok());
                Ok(bytes.map(u64::from_be_bytes))
            };
            let (number, largest) = (known(NEXT_NUMBER)?, known(LARGEST)?);
            shared.has_collections.store(number.is_some(), Ordering::Relaxed);
            shared.engine.largest.store(largest.unwrap_or(0) as usize, Ordering::Relaxed);
            let next = number.unwrap_or(1);
            *locked(&shared.numbers) = Numbers { next, end: next };
            stores.push(store.end().map_err(ServerError::End)?);
        }
        let result = std::thread::scope(|scope| {
            let workers: Vec<_> = polls
                .into_iter()
                .enumerate()
                .map(|(number, poll)| {
                    start::thread_in(scope, move || {
                        let _stop = StopWhenDropped(shared);
                        // A session belongs to the thread that opens it.
                        let store = Store::new(&shared.engine).map_err(ServerError::Open)?;
                        Worker::new(number, shared, store, poll).run()
                    })
                })
                .collect();
            // Without one of them, the connections of its inbox would wait without end.
            let all_run = workers.iter().all(Result::is_ok);
            let accepted = if all_run { shared.accept(listeners, is_over) } else { Ok(()) };
            shared.stop();
            let ended = workers.into_iter().map(|worker| {
                let worker = worker.map_err(ServerError::Thread)?;
                worker.join().unwrap_or(Err(ServerError::Panicked))
            });
            let ended = ended.fold(accepted, Result::and);
            // The last call, with the final counts.
            is_over(shared);
            ended
        });
        let database = self.shared.engine.database;
        let flushed = database.maintain(kvdyno_core::engine::Work::Flush);
        result?;
        flushed.map_err(ServerError::Flush)?;
        Ok(database)
    }
}
