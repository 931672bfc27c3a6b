//! A connection: received bytes of incomplete requests, and bytes that could not be sent yet.

use super::super::client::Client;
use super::super::parse::{Arguments, Limits, Parser, Step};
use super::super::reply::Reply;
use super::super::server::Settings;
use super::super::socket::Stream;
use mio::event::Event;
use std::io::{self, Read as _, Write as _};
use std::time::Instant;

/// Maximum bytes that are read from one connection in a turn.
pub(super) const READ_BYTES: usize = 64 << 10;
/// Above this many unsent bytes, no more requests of the client are read.
const CHOKED_BYTES: usize = 1 << 20;
/// A request with more bytes is large.
const LARGE_BYTES: usize = 1 << 20;
/// A monitor that has not read this many bytes is disconnected.
const MOST_LINE_BYTES: usize = 16 << 20;

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// There may be more.
    On,
    /// The client has disconnected, or has sent more than it may.
    Gone,
}

/// A client's connection.
pub(super) struct Connection {
    pub stream: Stream,
    pub client: Client,
    pub may_read: bool,
    pub may_write: bool,
    /// Whether it is in the worker's list.
    pub is_ready: bool,
    /// When bytes last arrived.
    pub heard: Instant,
    output: Vec<u8>,
    /// Number of bytes of the output that the client has got.
    sent: usize,
    parser: Parser,
    input: Vec<u8>,
    /// Number of processed bytes in the input.
    taken: usize,
    /// The input contains no complete request.
    is_hungry: bool,
    /// The client sends no more.
    is_last: bool,
    is_broken: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, client: Client) -> Connection {
        Connection {
            stream,
            client,
            may_read: true,
            may_write: true,
            is_ready: false,
            heard: Instant::now(),
            output: Vec::new(),
            sent: 0,
            parser: Parser::default(),
            input: Vec::new(),
            taken: 0,
            is_hungry: true,
            is_last: false,
            is_broken: false,
        }
    }

    /// Notes what the network reports.
    pub(super) fn wake(&mut self, event: &Event) {
        self.is_last |= event.is_read_closed() || event.is_error();
        self.may_read |= event.is_readable() || self.is_last;
        self.may_write |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    /// Reads received bytes, as many as fit into `buffer`, which all connections of a thread share: an idle one has
    /// none.
    pub(super) fn read(&mut self, settings: &Settings, buffer: &mut [u8]) -> Read {
        // Received requests are processed first, so that memory grows no faster than work is done.
        if !self.may_read || !self.is_hungry || self.is_choked() {
            return Read::On;
        }
        self.input.drain(..std::mem::take(&mut self.taken));
        if self.input.is_empty() && self.input.capacity() > READ_BYTES {
            self.input = Vec::new();
        }
        match self.stream.read(buffer) {
            Ok(0) => return Read::Gone,
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                self.heard = Instant::now();
                self.is_hungry = false;
                // Fewer bytes than requested: the socket is empty, and mio reports when there is more. It has reported the
                // end already if that came with these bytes.
                self.may_read = count == buffer.len() || self.is_last;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_read = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_broken = true,
        }
        let is_over = self.input.len() > settings.query_bytes;
        if self.is_broken || is_over { Read::Gone } else { Read::On }
    }

    /// Finds the next complete request.
    pub(super) fn next(&mut self, settings: &Settings) -> Step {
        let limits = if self.client.is_trusted { settings.limits } else { Limits::before_password() };
        let step = self.parser.step(&self.input[self.taken..], &limits);
        if step == Step::More {
            self.is_hungry = true;
            if self.taken == self.input.len() {
                // Nothing is pending: an idle connection keeps no buffer.
                self.taken = 0;
                self.input.clear();
                self.input.shrink_to(0);
            }
        }
        step
    }

    /// The request that `next` has found, and its client.
    pub(super) fn request(&mut self) -> (Arguments<'_>, &mut Client) {
        (self.parser.arguments(&self.input[self.taken..]), &mut self.client)
    }

    /// Marks the request as processed. The bytes of a large one are released at once, before its commit needs memory.
    pub(super) fn consume(&mut self) {
        self.taken += self.parser.consume();
        if self.taken > LARGE_BYTES {
            self.input = self.input.split_off(std::mem::take(&mut self.taken));
        }
    }

    /// Adds a reply.
    pub(super) fn write(&mut self, write: &mut dyn FnMut(&mut Reply)) {
        let mut reply = Reply { bytes: std::mem::take(&mut self.output), version: self.client.version };
        write(&mut reply);
        self.output = reply.bytes;
    }

    /// Adds a line that is no reply, for a monitor; `false` if it has not read too many of them.
    pub(super) fn write_line(&mut self, line: &[u8]) -> bool {
        self.output.extend_from_slice(line);
        self.unsent() <= MOST_LINE_BYTES
    }

    /// Sends pending bytes, as many as the client accepts.
    pub(super) fn send(&mut self) -> io::Result<()> {
        while self.unsent() > 0 && self.may_write {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_write = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Not after each call: moving what is left of a large reply each time would take longer than sending it.
        if self.sent > self.output.len() / 2 {
            self.output.drain(..std::mem::take(&mut self.sent));
            if self.output.is_empty() {
                self.output.shrink_to(0);
            }
        }
        Ok(())
    }

    fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Whether so many bytes are unsent that no more requests are read.
    pub(super) fn is_choked(&self) -> bool {
        self.unsent() > CHOKED_BYTES
    }

    /// Whether there is work that does not need to wait for the network.
    pub(super) fn has_work(&self) -> bool {
        !self.is_choked() && !self.client.is_leaving && (!self.is_hungry || self.may_read)
    }

    /// Whether the connection has ended: it is broken, or the client is leaving and has all of its replies.
    pub(super) fn is_done(&self) -> bool {
        self.is_broken || (self.client.is_leaving && self.unsent() == 0)
    }
}
