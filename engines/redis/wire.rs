//! A connection: requests are collected and sent in one write, replies are read in order. RESP2, which every server
//! speaks.

use super::address::{Address, Place};
use super::tls;
use kvdyno_driver::{Error, Status};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Initial room for replies; it grows to the largest one.
const ROOM: usize = 64 << 10;
/// The longest line of a reply. Values are not lines; only errors are long.
const LONGEST_LINE: usize = 64 << 10;
/// The time in which a server must accept a connection and answer for the first time.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// The stream of a connection.
pub(super) trait Stream: Read + Write + Send {
    fn socket(&mut self) -> &mut dyn Waits;
}

/// How long a socket waits for the server.
pub(super) trait Waits {
    /// All waits together end at this moment; none: see `each`.
    fn until(&mut self, until: Option<Instant>);
    /// Each wait ends after this time; none: it has no end.
    fn each(&mut self, limit: Option<Duration>) -> io::Result<()>;
}

/// A socket, and the moment at which waits end that have no limits of their own.
pub(super) struct Socket<S> {
    inner: S,
    until: Option<Instant>,
}

macro_rules! socket {
    ($inner:ty) => {
        impl Waits for Socket<$inner> {
            fn until(&mut self, until: Option<Instant>) {
                self.until = until;
            }

            fn each(&mut self, limit: Option<Duration>) -> io::Result<()> {
                self.inner.set_read_timeout(limit).and(self.inner.set_write_timeout(limit))
            }
        }

        impl Read for Socket<$inner> {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                self.hurry()?;
                self.inner.read(bytes)
            }
        }

        impl Write for Socket<$inner> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.hurry()?;
                self.inner.write(bytes)
            }

            fn flush(&mut self) -> io::Result<()> {
                self.inner.flush()
            }
        }

        impl Stream for Socket<$inner> {
            fn socket(&mut self) -> &mut dyn Waits {
                self
            }
        }
    };
}

socket!(TcpStream);
socket!(UnixStream);

impl Stream for StreamOwned<ClientConnection, Socket<TcpStream>> {
    fn socket(&mut self) -> &mut dyn Waits {
        &mut self.sock
    }
}

impl<S> Socket<S>
where
    Socket<S>: Waits,
{
    /// Before a wait: it ends at the moment, if there is one.
    #[inline]
    fn hurry(&mut self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        match until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            Some(left) => self.each(Some(left)),
            None => Err(ErrorKind::TimedOut.into()),
        }
    }
}

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
    /// Connects and authenticates; the database is that of the address. The server must have answered for the first time within
    /// [`HANDSHAKE`]; later waits have no end.
    pub fn connect(address: &Address, files: &tls::Files) -> Result<Wire, Error> {
        let mut wire = Wire::greet(address, files, HANDSHAKE, true)?;
        wire.wait_for_each(address, None)?;
        Ok(wire)
    }

    /// The same, without a question if none is needed; each wait for the server, now and later, ends with an error when it takes
    /// longer.
    pub fn connect_within(address: &Address, files: &tls::Files, limit: Duration) -> Result<Wire, Error> {
        let mut wire = Wire::greet(address, files, limit.min(HANDSHAKE), false)?;
        wire.wait_for_each(address, Some(limit))?;
        Ok(wire)
    }

    fn wait_for_each(&mut self, address: &Address, limit: Option<Duration>) -> Result<(), Error> {
        let socket = self.stream.socket();
        socket.until(None);
        socket.each(limit).map_err(|error| Error::new(format!("{address}: {error}")))
    }

    /// Connects and authenticates, all of it within the limit; with `asks`, a server that needs no password has answered too.
    pub(super) fn greet(
        address: &Address,
        files: &tls::Files,
        limit: Duration,
        asks: bool,
    ) -> Result<Wire, Error> {
        let until = Some(Instant::now() + limit);
        let failed = |error: io::Error| {
            let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            let why =
                if is_late { format!("no connection within {}", seconds(limit)) } else { error.to_string() };
            Error::new(format!("cannot connect to {address}: {why}"))
        };
        let stream: Box<dyn Stream> = match &address.place {
            Place::Unix(path) => {
                Box::new(Socket { inner: UnixStream::connect(path).map_err(failed)?, until })
            }
            Place::Tcp { host, port, is_tls } => {
                let inner = tcp((host.as_str(), *port), limit).map_err(failed)?;
                inner.set_nodelay(true).map_err(failed)?;
                let socket = Socket { inner, until };
                if *is_tls { tls::wrap(socket, address, host, (files, limit))? } else { Box::new(socket) }
            }
        };
        let mut wire = Wire { stream, out: Vec::new(), input: vec![0; ROOM], at: 0, end: 0 };
        let mut ask = |what: &str, words: &[&[u8]]| {
            wire.ask(words).map(drop).map_err(|error| {
                let is_late = until.is_some_and(|until| Instant::now() >= until);
                let why = if is_late { format!("no answer within {}", seconds(limit)) } else { error.text };
                Error::new(format!("{address}: {what}: {why}"))
            })
        };
        if let Some(password) = &address.password {
            let user = address.user.as_deref();
            let words = ["AUTH"].into_iter().chain(user).chain([password.as_str()]);
            ask("AUTH", &words.map(str::as_bytes).collect::<Vec<_>>())?;
        } else if asks {
            // A server that does not know PING, or does not allow it, has answered.
            let is_answer =
                |text: &str| ["replied: ERR", "replied: NOPERM"].iter().any(|known| text.contains(known));
            ask("PING", &[b"PING"])
                .or_else(|error| if is_answer(&error.text) { Ok(()) } else { Err(error) })?;
        }
        if address.database != 0 {
            ask("SELECT", &[b"SELECT", address.database.to_string().as_bytes()])?;
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
        let number = number.ok_or_else(|| stranger(&self.input[from..to]))?;
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
            _ => Err(stranger(&self.input[from..to])),
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
                    return Err(stranger(&self.input[from..to]));
                }
                return Ok((from, to - 1));
            }
            seen = unread.len();
            // One that speaks another protocol may never send the end of a line.
            if unread.first().is_some_and(|mark| !b"+-:$*".contains(mark)) || seen > LONGEST_LINE {
                return Err(stranger(unread));
            }
            self.fill(seen + 1)?;
        }
    }

    /// Reads once; `wanted`: how many unread bytes are needed.
    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
        }
        if self.at + wanted > self.input.len() {
            self.input.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
            if self.end == self.input.len() {
                // It grows with what has come, because a length that is announced may be wrong.
                self.input.resize(2 * self.end, 0);
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
fn tcp(place: (&str, u16), limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
    let until = Instant::now() + limit;
    for address in place.to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// `10 s`.
pub(super) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

/// The error of a server that sends something else, of which it shows the beginning.
fn stranger(bytes: &[u8]) -> Error {
    const SHOWN: usize = 40;
    // The first byte of a TLS record: an alert, or a handshake.
    if matches!(bytes, [0x15 | 0x16, 3, ..]) {
        return Error::new("this is not a server of the Redis protocol: it expects TLS (rediss://)");
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = line[..line.len().min(SHOWN)].escape_ascii();
    Error::new(format!(
        "this is not a server of the Redis protocol: it sent `{}`",
        text.to_string().trim_end_matches("\\r")
    ))
}

fn broken(error: io::Error) -> Error {
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
        return Error::new("the server did not answer in time (option timeout)");
    }
    Error::new(format!("the connection to the server failed: {error}"))
}
