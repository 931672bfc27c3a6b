//! A connection: received bytes of incomplete requests, and bytes that could not be sent yet.

use super::super::client::Client;
use super::super::parse::{Arguments, Limits, Parser, Step};
use super::super::reply::Reply;
use super::super::server::Settings;
use mio::net::TcpStream;
use std::io::{self, Read as _, Write as _};
use std::time::Instant;

/// Maximum bytes that are read from one connection in a turn.
pub const READ_BYTES: usize = 64 << 10;
/// Above this many unsent bytes, no more requests of the client are read.
const CHOKED_BYTES: usize = 1 << 20;

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// There may be more.
    On,
    /// The client has disconnected, or has sent more than it may.
    Gone,
}

/// A client's connection.
pub struct Connection {
    pub stream: TcpStream,
    pub client: Client,
    pub may_read: bool,
    pub may_write: bool,
    /// Whether it is in the worker's list.
    pub is_ready: bool,
    pub output: Vec<u8>,
    /// When bytes last arrived.
    pub heard: Instant,
    parser: Parser,
    input: Vec<u8>,
    /// Number of processed bytes in the input.
    taken: usize,
    /// The input contains no complete request.
    is_hungry: bool,
    is_gone: bool,
}

impl Connection {
    pub fn new(stream: std::net::TcpStream, client: Client) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream: TcpStream::from_std(stream),
            client,
            may_read: true,
            may_write: true,
            is_ready: false,
            output: Vec::new(),
            heard: Instant::now(),
            parser: Parser::default(),
            input: Vec::new(),
            taken: 0,
            is_hungry: true,
            is_gone: false,
        })
    }

    /// Reads received bytes, as many as fit into `buffer`, which all connections of a thread share: an idle one has
    /// none.
    pub fn read(&mut self, settings: &Settings, buffer: &mut [u8]) -> Read {
        // Received requests are processed first, so that memory grows no faster than work is done.
        if !self.may_read || !self.is_hungry || self.is_choked(settings) {
            return Read::On;
        }
        self.input.drain(..std::mem::take(&mut self.taken));
        if self.input.is_empty() && self.input.capacity() > READ_BYTES {
            self.input = Vec::new();
        }
        match self.stream.read(buffer) {
            Ok(0) => self.is_gone = true,
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                self.heard = Instant::now();
                self.is_hungry = false;
                // Fewer bytes than requested: the socket is empty, and mio reports when there is more.
                self.may_read = count == buffer.len();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_read = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_gone = true,
        }
        let is_over = self.input.len() > settings.query_bytes;
        if self.is_gone || is_over { Read::Gone } else { Read::On }
    }

    /// Finds the next complete request.
    pub fn next(&mut self, settings: &Settings) -> Step {
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
    pub fn request(&mut self) -> (Arguments<'_>, &mut Client) {
        (self.parser.arguments(&self.input[self.taken..]), &mut self.client)
    }

    /// Marks the request as processed.
    pub fn consume(&mut self) {
        self.taken += self.parser.consume();
    }

    /// Adds a reply.
    pub fn write(&mut self, write: &mut dyn FnMut(&mut Reply)) {
        let mut reply = Reply { bytes: std::mem::take(&mut self.output), version: self.client.version };
        write(&mut reply);
        self.output = reply.bytes;
    }

    /// Sends pending bytes, as many as the client accepts.
    pub fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.output.len() && self.may_write {
            match self.stream.write(&self.output[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_write = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..sent);
        if self.output.is_empty() {
            self.output.shrink_to(0);
        }
        Ok(())
    }

    /// Whether so many bytes are unsent that no more requests are read.
    pub fn is_choked(&self, _settings: &Settings) -> bool {
        self.output.len() > CHOKED_BYTES
    }

    /// Whether there is work that does not need to wait for the network.
    pub fn has_work(&self, settings: &Settings) -> bool {
        !self.is_choked(settings) && (!self.is_hungry || self.may_read)
    }

    /// Whether the connection has ended.
    pub fn is_done(&self) -> bool {
        self.is_gone || (self.client.is_leaving && (self.output.is_empty() || !self.may_write))
    }
}
