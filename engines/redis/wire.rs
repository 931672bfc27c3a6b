//! A connection: requests are collected and sent in one write, replies are read in order. RESP2, which every server
//! speaks.

use super::address::{Address, Place};
use super::tls;
use kvdyno_driver::{Error, Status};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Initial room for replies; it grows to the largest one.
const ROOM: usize = 64 << 10;

/// The stream of a connection.
pub(super) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A connection.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// Requests that were not sent yet.
    out: Vec<u8>,
    /// Bytes received; those from `at` to `end` are not read yet.
    input: Vec<u8>,
    at: usize,
    end: usize,
}

/// A reply, in the connection's own memory; the elements of an array follow it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'w> {
    Status(&'w [u8]),
    Error(&'w [u8]),
    Integer(i64),
    Bulk(&'w [u8]),
    Nil,
    Array(usize),
}

impl Reply<'_> {
    /// As an error, if it is one or is not the expected kind.
    pub fn unexpected(&self) -> Error {
        match self {
            Reply::Error(text) => {
                let text = String::from_utf8_lossy(text);
                let status = if text.starts_with("OOM") { Status::Full } else { Status::Error };
                Error::with(status, format!("the server replied: {text}"))
            }
            other => Error::new(format!("the server sent an unexpected reply: {other:.80?}")),
        }
    }
}

impl Wire {
    /// Connects and authenticates; the database is that of the address.
    pub fn connect(address: &Address, files: &tls::Files) -> Result<Wire, Error> {
        Wire::connect_within(address, files, None)
    }

    /// The same; each wait for the server, now and later, ends with an error when it takes longer.
    pub fn connect_within(
        address: &Address,
        files: &tls::Files,
        limit: Option<Duration>,
    ) -> Result<Wire, Error> {
        let failed = |error: std::io::Error| Error::new(format!("cannot connect to {address}: {error}"));
        let stream: Box<dyn Stream> = match &address.place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(failed)?;
                stream.set_read_timeout(limit).and(stream.set_write_timeout(limit)).map_err(failed)?;
                Box::new(stream)
            }
            Place::Tcp { host, port, is_tls } => {
                let stream = tcp((host.as_str(), *port), limit).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_read_timeout(limit).and(stream.set_write_timeout(limit)).map_err(failed)?;
                if *is_tls { tls::wrap(stream, host, files)? } else { Box::new(stream) }
            }
        };
        let mut wire = Wire { stream, out: Vec::new(), input: vec![0; ROOM], at: 0, end: 0 };
        if let Some(password) = &address.password {
            let user = address.user.as_deref();
            let words = ["AUTH"].into_iter().chain(user).chain([password.as_str()]);
            wire.ask(&words.map(str::as_bytes).collect::<Vec<_>>())
                .map_err(|error| Error::new(format!("{address}: AUTH: {}", error.text)))?;
        }
        if address.database != 0 {
            wire.ask(&[b"SELECT", address.database.to_string().as_bytes()])
                .map_err(|error| Error::new(format!("{address}: SELECT: {}", error.text)))?;
        }
        Ok(wire)
    }

    /// Adds a request to those to be sent.
    #[inline]
    pub fn request(&mut self, words: &[&[u8]]) {
        self.begin(words.len());
        words.iter().for_each(|word| self.word(word));
    }

    /// Begins a request of `count` words, which follow.
    #[inline]
    pub fn begin(&mut self, count: usize) {
        self.number(b'*', count);
    }

    /// The next word of the request.
    #[inline]
    pub fn word(&mut self, word: &[u8]) {
        self.number(b'$', word.len());
        self.out.extend_from_slice(word);
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn number(&mut self, mark: u8, number: usize) {
        let mut digits = [0; 24];
        let mut first = digits.len();
        let mut left = number;
        loop {
            first -= 1;
            digits[first] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.out.push(mark);
        self.out.extend_from_slice(&digits[first..]);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Bytes waiting to be sent.
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Sends the waiting bytes.
    pub fn send(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        sent.map_err(broken)
    }

    /// The next reply.
    pub fn reply(&mut self) -> Result<Reply<'_>, Error> {
        let (from, to) = self.line()?;
        let mark = self.input[from];
        if matches!(mark, b'+' | b'-') {
            let text = &self.input[from + 1..to];
            return Ok(if mark == b'+' { Reply::Status(text) } else { Reply::Error(text) });
        }
        let number =
            std::str::from_utf8(&self.input[from + 1..to]).ok().and_then(|text| text.parse::<i64>().ok());
        let number = number.ok_or_else(|| Error::new("this is not a server of the Redis protocol"))?;
        match (mark, usize::try_from(number)) {
            (b':', _) => Ok(Reply::Integer(number)),
            (b'$' | b'*', Err(_)) => Ok(Reply::Nil),
            (b'*', Ok(count)) => Ok(Reply::Array(count)),
            (b'$', Ok(length)) => {
                while self.end - self.at < length + 2 {
                    self.fill(length + 2)?;
                }
                let from = self.at;
                self.at += length + 2;
                Ok(Reply::Bulk(&self.input[from..from + length]))
            }
            _ => Err(Error::new("this is not a server of the Redis protocol")),
        }
    }

    /// Sends one request and returns its reply, which must not be an error.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Reply<'_>, Error> {
        self.request(words);
        self.send()?;
        match self.reply()? {
            reply @ Reply::Error(_) => Err(reply.unexpected()),
            reply => Ok(reply),
        }
    }

    /// Sends one request; returns the elements of its reply, or its single value, as texts. Nil is not included.
    pub fn texts(&mut self, words: &[&[u8]]) -> Result<Vec<String>, Error> {
        let count = match self.ask(words)? {
            Reply::Array(count) => count,
            Reply::Bulk(text) | Reply::Status(text) => {
                return Ok(vec![String::from_utf8_lossy(text).into_owned()]);
            }
            Reply::Integer(number) => return Ok(vec![number.to_string()]),
            _ => return Ok(Vec::new()),
        };
        let mut texts = Vec::new();
        for _ in 0..count {
            match self.reply()? {
                Reply::Bulk(text) | Reply::Status(text) => {
                    texts.push(String::from_utf8_lossy(text).into_owned())
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(texts)
    }

    /// Where the next line lies, without its end.
    #[inline]
    fn line(&mut self) -> Result<(usize, usize), Error> {
        let mut seen = 0;
        loop {
            let unread = &self.input[self.at..self.end];
            if let Some(place) = unread[seen..].iter().position(|&byte| byte == b'\n') {
                let (from, to) = (self.at, self.at + seen + place);
                self.at = to + 1;
                if to <= from + 1 || self.input[to - 1] != b'\r' {
                    return Err(Error::new("this is not a server of the Redis protocol"));
                }
                return Ok((from, to - 1));
            }
            seen = unread.len();
            self.fill(seen + 1)?;
        }
    }

    /// Reads once; there will be room for `wanted` unread bytes.
    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
        }
        if self.at + wanted > self.input.len() {
            self.input.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
            if wanted > self.input.len() {
                self.input.resize(wanted.next_power_of_two(), 0);
            }
        }
        loop {
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => return Err(Error::new("the server has closed the connection")),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

/// Connects to the first of the host's addresses that accepts.
fn tcp(place: (&str, u16), limit: Option<Duration>) -> std::io::Result<TcpStream> {
    let Some(limit) = limit else { return TcpStream::connect(place) };
    let mut last = std::io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn broken(error: std::io::Error) -> Error {
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
        return Error::new("the server did not answer in time (option timeout)");
    }
    Error::new(format!("the connection to the server failed: {error}"))
}
