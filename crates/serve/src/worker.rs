//! A thread of the server: it reads requests from all its connections, executes them against its store, commits once,
//! and only then sends the replies.

mod connection;

use super::client::{Client, Facts};
use super::command::{self, Call, Replies};
use super::error::ServerError;
use super::parse::Step;
use super::server::{Message, Settings, Shared};
use super::socket::Stream;
use super::store::Store;
use connection::{Connection, READ_BYTES, Read};
use mio::{Events, Interest, Poll, Token};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The token of messages from other threads; connections use the numbers of their slots.
pub(crate) const INBOX: Token = Token(usize::MAX);
/// Maximum requests of one connection in a turn, so that others are served too.
const TURN: usize = 1024;
/// Reads that are answered together.
const READS: usize = 256;
/// Maximum replies that wait for a commit.
const MOST_ANSWERS: usize = 4096;
const MOST_ANSWER_BYTES: usize = 1 << 20;
/// Interval of the checks for idle connections.
const ROUND: Duration = Duration::from_secs(1);

/// One thread's part of the server.
pub(crate) struct Worker<'s> {
    number: usize,
    server: &'s Shared,
    store: Store<'s>,
    poll: Poll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections with something to do, each once.
    ready: Vec<usize>,
    answers: Replies,
    /// How many times answers were passed to their connections.
    finished: u64,
    /// The buffer for a connection's bytes.
    buffer: Vec<u8>,
    /// When the current requests were read.
    read_at: Instant,
    /// Milliseconds since 1970 when the turn of the current connection began.
    now_ms: u64,
}

impl<'s> Worker<'s> {
    /// Creates the worker with that number; `poll` has its inbox's waker registered.
    pub(crate) fn new(number: usize, server: &'s Shared, store: Store<'s>, poll: Poll) -> Worker<'s> {
        Worker {
            number,
            server,
            store,
            poll,
            connections: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            answers: Replies::default(),
            finished: 0,
            buffer: vec![0; READ_BYTES],
            read_at: Instant::now(),
            now_ms: now_ms(),
        }
    }

    /// Serves until the server is stopped.
    pub(crate) fn run(mut self) -> Result<(), ServerError> {
        let mut events = Events::with_capacity(1024);
        let mut looked_at = Instant::now();
        while !self.server.is_stopping() {
            let wait = if self.ready.is_empty() { ROUND } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(ServerError::Wait { what: "connections", error });
                }
                _ => {}
            }
            self.read_at = Instant::now();
            for event in events.iter().filter(|event| event.token() != INBOX) {
                let slot = event.token().0;
                if let Some(Some(connection)) = self.connections.get_mut(slot) {
                    connection.wake(event);
                    self.make_ready(slot);
                }
            }
            self.take_messages();
            self.turn();
            if looked_at.elapsed() >= ROUND {
                self.close_idle();
                looked_at = Instant::now();
            }
        }
        self.finish();
        self.store.end().map_err(ServerError::End)
    }

    fn make_ready(&mut self, slot: usize) {
        let Some(Some(connection)) = self.connections.get_mut(slot) else { return };
        if !connection.is_ready {
            connection.is_ready = true;
            self.ready.push(slot);
        }
    }

    fn take_messages(&mut self) {
        for message in self.server.messages(self.number) {
            match message {
                Message::Connection(stream, peer) => self.welcome(stream, peer),
                Message::Line(id, bytes) => {
                    let is_meant = |known: &Connection| known.client.facts.id == id;
                    let mut all = self.connections.iter();
                    let Some(slot) = all.position(|known| known.as_ref().is_some_and(is_meant)) else {
                        continue;
                    };
                    let Some(connection) = &mut self.connections[slot] else { continue };
                    if !connection.write_line(&bytes) || connection.send().is_err() {
                        self.close(slot);
                    }
                }
                Message::CloseIdle => self.close_idle(),
            }
        }
    }

    fn welcome(&mut self, stream: Stream, peer: String) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let facts = Arc::new(Facts::new(self.server.next_client(), peer, self.number, now_ms()));
        let client = Client::new(Arc::clone(&facts), self.server.settings.password.is_none());
        let mut connection = Connection::new(stream, client);
        let both = Interest::READABLE | Interest::WRITABLE;
        match self.poll.registry().register(connection.stream.source(), Token(slot), both) {
            Ok(()) => {
                self.server.came(facts);
                self.connections[slot] = Some(connection);
                self.make_ready(slot);
            }
            Err(_) => {
                self.server.left(facts.id);
                self.free.push(slot);
            }
        }
    }

    /// Serves all ready connections once. Writes wait for the end, to share a commit; reads do not wait, so that
    /// their clients can continue while the next ones run.
    fn turn(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        let mut served = 0;
        for (place, &slot) in ready.iter().enumerate() {
            let finished = self.finished;
            self.serve(slot);
            if self.answers.len() >= READS && !self.store.has_writes() {
                self.finish();
                self.send(&ready[served..=place]);
                served = place + 1;
            } else if self.finished != finished {
                // A commit was due: the connections before this one have all their answers, and need not wait for the
                // next.
                self.send(&ready[served..place]);
                served = place;
            }
        }
        self.finish();
        self.send(&ready[served..]);
    }

    /// Sends the replies of these connections, and keeps the connections that have more work.
    fn send(&mut self, slots: &[usize]) {
        for &slot in slots {
            let Some(connection) = &mut self.connections[slot] else { continue };
            connection.is_ready = false;
            if connection.send().is_err() || connection.is_done() {
                self.close(slot);
            } else if connection.has_work() {
                connection.is_ready = true;
                self.ready.push(slot);
            }
        }
    }

    /// Reads from a connection, and executes its complete requests.
    fn serve(&mut self, slot: usize) {
        let Some(connection) = &mut self.connections[slot] else { return };
        if connection.client.is_leaving {
            return;
        }
        if connection.read(&self.server.settings, &mut self.buffer) == Read::Gone {
            connection.client.is_leaving = true;
        }
        // After the read, so that no request was sent later.
        self.now_ms = now_ms();
        for _ in 0..TURN {
            let Some(connection) = &mut self.connections[slot] else { return };
            if connection.client.is_leaving || connection.is_choked() {
                return;
            }
            match connection.next(&self.server.settings) {
                Step::More => return,
                Step::Broken(text) => {
                    connection.client.is_leaving = true;
                    self.answers.reply.error(text);
                    return self.answers.end(slot, usize::MAX, self.now_ms, false);
                }
                Step::Request => {}
            }
            self.request(slot);
            if self.store.is_full()
                || self.answers.len() >= MOST_ANSWERS
                || self.answers.bytes() + self.store.answer_bytes() >= MOST_ANSWER_BYTES
            {
                self.finish();
            }
        }
    }

    fn request(&mut self, slot: usize) {
        let Some(connection) = &mut self.connections[slot] else { return };
        let (arguments, client) = connection.request();
        if arguments.is_empty() {
            return connection.consume();
        }
        let name = arguments.get(0);
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            // A browser that was tricked into this: the remaining bytes are not commands.
            self.server.note_cross_protocol(&client.facts.peer);
            client.is_leaving = true;
            return connection.consume();
        }
        self.server.send_to_monitors(client, &arguments, self.now_ms);
        self.store.write_for(self.answers.len());
        let mut call = Call {
            arguments,
            client,
            store: &mut self.store,
            answers: &mut self.answers,
            server: self.server,
            now_ms: self.now_ms,
            is_queued: false,
        };
        command::run(&mut call, slot);
        connection.consume();
    }

    /// Commits, and passes each answer to its connection.
    fn finish(&mut self) {
        self.finished += 1;
        self.server.count_commands(self.answers.len() as u64);
        self.store.commit();
        let failure = self.store.take_failure();
        let counts = self.server.settings.stats;
        let waited = self.read_at.elapsed();
        let mut stats = if counts { Some(self.server.stats(self.number)) } else { None };
        let connections = &mut self.connections;
        self.answers.deliver(&self.store, failure.as_ref(), &mut |slot, command, write| {
            if let Some(stats) = &mut stats {
                stats.note(command, waited);
            }
            if let Some(Some(connection)) = connections.get_mut(slot) {
                connection.write(write);
            }
        });
        self.store.forget_answers();
    }

    fn close(&mut self, slot: usize) {
        if let Some(mut connection) = self.connections[slot].take() {
            let _ = self.poll.registry().deregister(connection.stream.source());
            self.server.left(connection.client.facts.id);
            self.free.push(slot);
            self.ready.retain(|&ready| ready != slot);
        }
    }

    /// Closes clients that were killed or have been idle for too long.
    fn close_idle(&mut self) {
        let Settings { idle_seconds, .. } = self.server.settings;
        for slot in 0..self.connections.len() {
            let Some(connection) = &self.connections[slot] else { continue };
            let is_idle = idle_seconds > 0 && connection.heard.elapsed().as_secs() >= idle_seconds;
            if connection.client.facts.is_killed() || (is_idle && !connection.client.is_monitor) {
                self.close(slot);
            }
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
